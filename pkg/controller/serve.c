/* libmicrohttpd without a thread of its own: its epoll descriptor is polled by our loop, which also
 * keeps its time. */
#include "serve.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS    64
#define CONNECTION_SECONDS 10
#define BACKLOG            128
#define REQUEST_MEMORY     ((size_t)8 << 10) /* per connection; a longer header is refused */
#define MAX_BODY           ((size_t)64 << 20)
#define MAX_LISTEN         256

struct client {
    int fd; /* -1: free */
    uint64_t until_ms;
};

struct serve {
    uv_loop_t *loop;
    struct serve_options options;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    int open_handles, port;
    bool ended;              /* a connection did, in this turn */
    struct client clients[]; /* max_connections of them */
};

/* --- answers --------------------------------------------------------------------------------- */
static const struct serve_route *find_route(const struct serve *s, const char *path)
{
    for (size_t i = 0; i < s->options.route_count; i++)
        if (strcmp(s->options.routes[i].path, path) == 0)
            return &s->options.routes[i];
    return NULL;
}

static void refuse(struct serve_answer *out, unsigned status, const char *why)
{
    out->status = status;
    buf_clear(&out->body);
    (void)!buf_puts(&out->body, why);
}

static void fill(const struct serve *s, const char *path, const char *method,
                 struct serve_answer *out)
{
    const struct serve_route *route = find_route(s, path);
    if (route == NULL)
        refuse(out, MHD_HTTP_NOT_FOUND, "no such page\n");
    else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        refuse(out, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
    else
        route->answer(s->options.arg, out);
}

/* One answer per connection, so that a connection's time is a request's time. */
static void add_headers(struct MHD_Response *response, const struct serve_answer *answer)
{
    MHD_add_response_header(response, "Content-Type", answer->content_type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Connection", "close");
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
}

/* Called as soon as the header is read; a body is not waited for. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    (void)version, (void)upload, (void)upload_len, (void)state;
    struct serve_answer answer = {.status = MHD_HTTP_OK,
                                  .content_type = "text/plain; charset=utf-8"};
    buf_init(&answer.body, MAX_BODY);
    fill(cls, path, method, &answer);
    size_t len = answer.body.len;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, buf_take(&answer.body), MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        return MHD_NO;
    add_headers(response, &answer);
    enum MHD_Result queued = MHD_queue_response(connection, answer.status, response);
    MHD_destroy_response(response);
    return queued;
}

/* --- connections and time -------------------------------------------------------------------- */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct serve *s = cls;
    struct client *client = *context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (client)
            client->fd = -1;
        s->ended = true;
        return;
    }
    for (unsigned i = 0; i < s->options.max_connections; i++) {
        if (s->clients[i].fd >= 0)
            continue;
        s->clients[i].fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        s->clients[i].until_ms = uv_now(s->loop) + s->options.connection_seconds * 1000;
        *context = &s->clients[i];
        return;
    }
}

/* libmicrohttpd's own time limit begins anew with each byte: one who sends a byte now and then
 * could keep a connection forever. Returns when to look again. */
static uint64_t cut_late(struct serve *s)
{
    uint64_t now_ms = uv_now(s->loop), next_ms = UINT64_MAX;
    for (unsigned i = 0; i < s->options.max_connections; i++) {
        struct client *client = &s->clients[i];
        if (client->fd < 0)
            continue;
        if (client->until_ms <= now_ms) {
            shutdown(client->fd, SHUT_RDWR);
            client->until_ms = now_ms + 1000;
        }
        if (client->until_ms < next_ms)
            next_ms = client->until_ms;
    }
    return next_ms;
}

static void on_timer(uv_timer_t *timer);

/* At its limit libmicrohttpd no longer listens, and begins again only when it is run after the end
 * of a connection. */
static void turn(struct serve *s)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    uint64_t now_ms = uv_now(s->loop);
    s->ended = false;
    MHD_run(s->daemon);
    uint64_t next_ms = cut_late(s);
    if (s->ended)
        next_ms = now_ms;
    else if (MHD_get_timeout(s->daemon, &wait_ms) == MHD_YES && now_ms + wait_ms < next_ms)
        next_ms = now_ms + wait_ms;
    if (next_ms == UINT64_MAX)
        uv_timer_stop(&s->timer);
    else
        uv_timer_start(&s->timer, on_timer, next_ms - now_ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    turn(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    turn(poll->data);
}

/* --- listening ------------------------------------------------------------------------------- */
/* "1.2.3.4:80", "[::1]:80", ":80"; host is "" for all addresses. */
static int split_listen(const char *text, char host[MAX_LISTEN], const char **port,
                        struct error *err)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    if (colon == NULL || len >= MAX_LISTEN || strncmp(text, "[]", 2) == 0)
        return error_set(err, ERROR_INVALID, "\"%.100s\" is no ADDRESS:PORT", text);
    bool brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    if (!brackets && memchr(text, ':', len))
        return error_set(err, ERROR_INVALID, "\"%.100s\": an IPv6 address is put in brackets",
                         text);
    *port = colon + 1;
    memcpy(host, text + brackets, len - 2 * brackets);
    host[len - 2 * brackets] = '\0';
    char *end;
    unsigned long number = strtoul(*port, &end, 10);
    if (**port < '0' || **port > '9' || *end != '\0' || number > UINT16_MAX)
        return error_set(err, ERROR_INVALID, "\"%.100s\": the port is no number up to 65535", text);
    return 0;
}

static int try_listen(const struct addrinfo *address)
{
    int yes = 1, no = 0;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (address->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* All addresses means IPv6 and IPv4 in one socket where there is IPv6, else IPv4 alone. */
static int listen_on(const char *text, struct error *err)
{
    char host[MAX_LISTEN] = "";
    const char *port = NULL;
    if (split_listen(text, host, &port, err) < 0)
        return -1;
    const char *const hosts[] = {*host ? host : "::", *host ? NULL : "0.0.0.0"};
    int fd = -1;
    for (size_t i = 0; i < ARRAY_LEN(hosts) && hosts[i] && fd < 0; i++) {
        struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM,
                                         .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
        int failed = getaddrinfo(hosts[i], port, &hints, &found);
        if (failed)
            return error_set(err, ERROR_INVALID, "\"%.100s\": %s", text, gai_strerror(failed));
        fd = try_listen(found);
        freeaddrinfo(found);
        if (fd < 0)
            error_set(err, ERROR_SYSTEM, "cannot listen on %.100s: %s", text, strerror(errno));
        if (fd < 0 && errno == EADDRINUSE)
            break;
    }
    return fd;
}

static int port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t len = sizeof(address);
    if (getsockname(fd, &address.any, &len) < 0)
        return -1;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

/* --- life ------------------------------------------------------------------------------------ */
static struct serve *serve_new(uv_loop_t *loop, const struct serve_options *options)
{
    unsigned most = options->max_connections ? options->max_connections : MAX_CONNECTIONS;
    struct serve *s = xcalloc(1, sizeof(*s) + most * sizeof(s->clients[0]));
    s->loop = loop;
    s->options = *options;
    s->options.max_connections = most;
    if (s->options.connection_seconds == 0)
        s->options.connection_seconds = CONNECTION_SECONDS;
    for (unsigned i = 0; i < most; i++)
        s->clients[i].fd = -1;
    return s;
}

struct serve *serve_start(uv_loop_t *loop, const struct serve_options *options, struct error *err)
{
    int fd = listen_on(options->listen, err);
    if (fd < 0)
        return NULL;
    struct serve *s = serve_new(loop, options);
    s->port = port_of(fd);
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, s->options.max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
        s->options.connection_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_MEMORY,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
    if (s->daemon == NULL) {
        error_set(err, ERROR_SYSTEM, "cannot serve on %.100s: %s", options->listen,
                  strerror(errno));
        close(fd);
        free(s);
        return NULL;
    }
    int epoll_fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    uv_poll_init(loop, &s->poll, epoll_fd);
    uv_timer_init(loop, &s->timer);
    s->poll.data = s->timer.data = s;
    s->open_handles = 2;
    uv_poll_start(&s->poll, UV_READABLE, on_poll);
    return s;
}

int serve_port(const struct serve *s)
{
    return s->port;
}

static void on_closed(uv_handle_t *handle)
{
    struct serve *s = handle->data;
    if (--s->open_handles == 0)
        free(s);
}

void serve_stop(struct serve *s)
{
    if (s == NULL)
        return;
    uv_poll_stop(&s->poll);
    MHD_stop_daemon(s->daemon);
    uv_close((uv_handle_t *)&s->poll, on_closed);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}
