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
#define REQUEST_MEMORY     ((size_t)17 << 10) /* per connection; a longer header is refused */
#define MAX_BODY           ((size_t)64 << 20)
#define MAX_HELD           ((size_t)48 << 20) /* for all clients of routes that take requests */
#define MAX_LISTEN         256
#define NEVER              UINT64_MAX
#define JSON_TYPE          "application/json; charset=utf-8"

struct client {
    int fd; /* -1: free */
    uint64_t until_ms;
    struct serve_request *request; /* NULL: none, or one that was answered at once */
};

enum state { ASKED, ANSWERED, STREAMS };

struct serve_request {
    struct serve *serve;
    struct MHD_Connection *connection;
    struct client *client;
    enum state state;
    bool head, suspended, ending;
    char *path;
    struct serve_answer answer; /* once it is there */
    struct buf out;             /* of a stream; */
    size_t taken;               /* of it, by the client's socket */
    size_t held;                /* counted in the server's */
    void (*on_gone)(void *arg);
    void *arg;
};

struct serve {
    uv_loop_t *loop;
    struct serve_options options;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    int open_handles, port;
    bool again;              /* a connection ended or went on, in this turn */
    size_t held;             /* bytes of answers that are taken and not gone yet */
    struct client clients[]; /* max_connections of them */
};

/* --- answers --------------------------------------------------------------------------------- */
static const struct serve_route *find_route(const struct serve *s, const char *path)
{
    for (size_t i = 0; i < s->options.route_count; i++) {
        const struct serve_route *route = &s->options.routes[i];
        if (route->take ? strncmp(route->path, path, strlen(route->path)) == 0
                        : strcmp(route->path, path) == 0)
            return route;
    }
    return NULL;
}

void serve_answer_init(struct serve_answer *answer)
{
    *answer =
        (struct serve_answer){.status = MHD_HTTP_OK, .content_type = "text/plain; charset=utf-8"};
    buf_init(&answer->body, MAX_BODY);
}

static void refuse(struct serve_answer *out, bool json, unsigned status, const char *why)
{
    out->status = status;
    buf_clear(&out->body);
    if (json)
        out->content_type = JSON_TYPE;
    (void)!buf_printf(&out->body, json ? "{\"error\":\"%s\"}\n" : "%s\n", why);
}

/* One answer per connection, so that a connection's time is a request's time. */
static void add_headers(struct MHD_Response *response, const struct serve_answer *answer)
{
    MHD_add_response_header(response, "Content-Type", answer->content_type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Connection", "close");
    for (size_t i = 0; i < answer->header_count; i++)
        MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
}

static enum MHD_Result queue(struct MHD_Connection *connection, struct MHD_Response *response,
                             const struct serve_answer *answer)
{
    if (response == NULL)
        return MHD_NO;
    add_headers(response, answer);
    enum MHD_Result queued = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct serve_answer *answer)
{
    size_t len = answer->body.len;
    return queue(
        connection,
        MHD_create_response_from_buffer(len, buf_take(&answer->body), MHD_RESPMEM_MUST_FREE),
        answer);
}

/* --- requests that are taken ----------------------------------------------------------------- */
static void wake(struct serve *s);

static uint64_t limit_ms(const struct serve *s)
{
    return uv_now(s->loop) + s->options.connection_seconds * 1000;
}

static struct serve_request *request_new(struct serve *s, struct MHD_Connection *connection,
                                         const char *path, const char *method)
{
    struct serve_request *r = xcalloc(1, sizeof(*r));
    r->serve = s;
    r->connection = connection;
    r->path = xstrdup(path);
    r->head = strcmp(method, "HEAD") == 0;
    r->client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    r->client->request = r;
    serve_answer_init(&r->answer);
    buf_init(&r->out, MAX_HELD);
    return r;
}

static void request_free(struct serve_request *r)
{
    r->client->request = NULL;
    r->serve->held -= r->held;
    buf_free(&r->answer.body);
    buf_free(&r->out);
    free(r->path);
    free(r);
}

static void suspend(struct serve_request *r)
{
    r->suspended = true;
    MHD_suspend_connection(r->connection);
}

static void resume(struct serve_request *r)
{
    if (!r->suspended)
        return;
    r->suspended = false;
    MHD_resume_connection(r->connection);
    wake(r->serve);
}

static void tell_gone(struct serve_request *r)
{
    void (*on_gone)(void *arg) = r->on_gone;
    r->on_gone = NULL;
    if (on_gone)
        on_gone(r->arg);
}

const char *serve_path(const struct serve_request *r)
{
    return r->path;
}

bool serve_is_head(const struct serve_request *r)
{
    return r->head;
}

const char *serve_query(const struct serve_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *serve_header(const struct serve_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

void serve_on_gone(struct serve_request *r, void (*on_gone)(void *arg), void *arg)
{
    r->on_gone = on_gone;
    r->arg = arg;
}

static bool hold(struct serve_request *r, size_t bytes)
{
    if (bytes > MAX_HELD - r->serve->held)
        return false;
    r->serve->held += bytes;
    r->held += bytes;
    return true;
}

void serve_reply(struct serve_request *r, struct serve_answer *answer)
{
    r->answer = *answer;
    r->on_gone = NULL;
    r->state = ANSWERED;
    if (!hold(r, r->answer.body.len))
        refuse(&r->answer, true, MHD_HTTP_SERVICE_UNAVAILABLE,
               "too much is being answered already: ask again in a moment");
    resume(r);
}

/* --- streams --------------------------------------------------------------------------------- */
/* Called when there is room in the client's socket. */
static ssize_t on_read(void *cls, uint64_t at, char *out, size_t max)
{
    (void)at;
    struct serve_request *r = cls;
    size_t n = r->out.len - r->taken;
    if (n == 0 && r->ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        r->client->until_ms = NEVER;
        suspend(r);
        return 0;
    }
    n = n < max ? n : max;
    memcpy(out, r->out.data + r->taken, n);
    r->taken += n;
    r->client->until_ms = limit_ms(r->serve);
    if (r->taken == r->out.len) {
        r->serve->held -= r->held;
        r->held = r->taken = 0;
        buf_free(&r->out);
        buf_init(&r->out, MAX_HELD);
    }
    return (ssize_t)n;
}

void serve_stream(struct serve_request *r, const char *content_type)
{
    r->answer.content_type = content_type;
    r->state = STREAMS;
    resume(r);
}

int serve_stream_send(struct serve_request *r, const char *data, size_t len, struct error *err)
{
    if (r->ending || !hold(r, len) || buf_append(&r->out, data, len) < 0)
        return error_set(err, ERROR_TOO_LARGE, "more waits for clients than is held for them");
    if (r->client->until_ms == NEVER)
        r->client->until_ms = limit_ms(r->serve);
    resume(r);
    return 0;
}

size_t serve_stream_waits(const struct serve_request *r)
{
    return r->out.len - r->taken;
}

bool serve_stream_open(const struct serve_request *r)
{
    char byte;
    ssize_t n = recv(r->client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void serve_stream_end(struct serve_request *r)
{
    r->ending = true;
    r->client->until_ms = limit_ms(r->serve);
    resume(r);
}

/* --- from libmicrohttpd ---------------------------------------------------------------------- */
static enum MHD_Result go_on(struct serve_request *r)
{
    if (r->state == ANSWERED)
        return send_answer(r->connection, &r->answer);
    if (r->state == STREAMS)
        return queue(r->connection,
                     MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, on_read, r, NULL),
                     &r->answer);
    suspend(r);
    return MHD_YES;
}

/* Called as soon as the header is read, and again when a request that was suspended goes on; a body
 * is not waited for. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    (void)version, (void)upload, (void)upload_len;
    struct serve *s = cls;
    const struct serve_route *route = find_route(s, path);
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (*state)
        return go_on(*state);
    if (route && route->take && reads) {
        struct serve_request *r = *state = request_new(s, connection, path, method);
        route->take(s->options.arg, r);
        return go_on(r);
    }
    struct serve_answer answer;
    serve_answer_init(&answer);
    if (route == NULL)
        refuse(&answer, false, MHD_HTTP_NOT_FOUND, "no such page");
    else if (!reads)
        refuse(&answer, route->take != NULL, MHD_HTTP_METHOD_NOT_ALLOWED,
               "only GET and HEAD are answered");
    else
        route->answer(s->options.arg, &answer);
    return send_answer(connection, &answer);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)cls, (void)connection, (void)why;
    struct serve_request *r = *state;
    if (r == NULL)
        return;
    *state = NULL;
    tell_gone(r);
    request_free(r);
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
        s->again = true;
        return;
    }
    for (unsigned i = 0; i < s->options.max_connections; i++) {
        if (s->clients[i].fd >= 0)
            continue;
        s->clients[i].fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        s->clients[i].until_ms = limit_ms(s);
        *context = &s->clients[i];
        return;
    }
}

/* Its answer did not come in time: the client is told, and who owes it that nobody waits. */
static void give_up(struct serve_request *r)
{
    struct serve_answer answer;
    serve_answer_init(&answer);
    refuse(&answer, true, MHD_HTTP_SERVICE_UNAVAILABLE, "the answer took too long: ask again");
    tell_gone(r);
    serve_reply(r, &answer);
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
            if (client->request && client->request->suspended)
                give_up(client->request);
            else
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
    s->again = false;
    MHD_run(s->daemon);
    uint64_t next_ms = cut_late(s);
    if (s->again)
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

static void wake(struct serve *s)
{
    s->again = true;
    uv_timer_start(&s->timer, on_timer, 0, 0);
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
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, s->options.max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, s->options.connection_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_END);
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
    for (unsigned i = 0; i < s->options.max_connections; i++) {
        struct serve_request *r = s->clients[i].fd >= 0 ? s->clients[i].request : NULL;
        if (r) {
            r->ending = true;
            resume(r);
        }
    }
    uv_poll_stop(&s->poll);
    MHD_stop_daemon(s->daemon);
    uv_close((uv_handle_t *)&s->poll, on_closed);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}
