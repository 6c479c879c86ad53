/* libcurl tells which sockets and which timer it waits for (on_curl_socket, on_curl_timer); libuv
 * tells when they are ready (on_poll, on_timer). A finished call is answered from the loop, never
 * from inside http_send. */
#include "http/http.h"
#include "base/memory.h"

#include <ctype.h>
#include <curl/curl.h>
#include <openssl/crypto.h>
#include <string.h>

#define DEFAULT_MAX_BODY   ((size_t)16 << 20)
#define CONNECT_TIMEOUT_MS 10000L
#define MAX_SECRETS        2

struct http {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer;
    char *user_agent;
    struct http_call *calls;
    long connections_opened;
    int handles; /* libuv handles that are not closed yet: the last one frees */
    bool freed;
    bool in_chunk; /* curl must not be entered again from its own callback */
    bool deferred; /* calls were sent or cancelled meanwhile */
};

struct http_call {
    struct http *http;
    struct http_call *next, **link;
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    struct buf body;
    http_chunk on_chunk;
    http_done on_done;
    void *arg;
    int64_t retry_after_ms;
    char *secrets[MAX_SECRETS + 1];
    char reason[CURL_ERROR_SIZE];
    bool too_large, stopped;
    bool added, cancelled;
};

struct socket_watch {
    uv_poll_t poll;
    curl_socket_t fd;
    struct http *http;
};

void http_tls_clear(struct http_tls *tls)
{
    free(tls->ca_pem);
    free(tls->cert_pem);
    free(tls->key_pem);
    free(tls->server_name);
    *tls = (struct http_tls){0};
}

/* --- what must not be repeated --------------------------------------------------------------- */
static void keep_secrets(struct http_call *call, const struct http_request *r)
{
    if (r->bearer) {
        call->secrets[0] = xstrdup(r->bearer);
    } else if (r->user && r->password) {
        cleanup_free char *both = xasprintf("%s:%s", r->user, r->password);
        call->secrets[0] = base64_encode(both, strlen(both));
        call->secrets[1] = xstrdup(r->password);
    }
}

static void drop_secrets(char **secrets)
{
    for (size_t i = 0; secrets[i]; i++)
        free(secrets[i]);
}

void http_hide(const struct http_response *response, char *text)
{
    for (size_t i = 0; response->secrets && response->secrets[i]; i++)
        text_hide(text, response->secrets[i]);
}

/* --- the end of a call ----------------------------------------------------------------------- */
static void call_free(struct http_call *call)
{
    if (call->next)
        call->next->link = call->link;
    *call->link = call->next;
    if (call->added)
        curl_multi_remove_handle(call->http->multi, call->easy);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    curl_slist_free_all(call->connect_to);
    buf_free(&call->body);
    drop_secrets(call->secrets);
    free(call);
}

/* libcurl does not say with whom. */
static void explain_tls(const struct http_call *call, const char *why, struct error *err)
{
    const char *at = NULL;
    curl_easy_getinfo(call->easy, CURLINFO_EFFECTIVE_URL, &at);
    const char *host = at ? strstr(at, "://") : NULL;
    host = host ? host + 3 : "";
    error_set(err, ERROR_UNAVAILABLE, "no TLS with %.*s: %s", (int)strcspn(host, "/?#"), host, why);
}

static void explain(const struct http_call *call, CURLcode code, struct error *err)
{
    const char *why = call->reason[0] ? call->reason : curl_easy_strerror(code);
    if (call->too_large)
        error_set(err, ERROR_TOO_LARGE, "the answer is larger than %zu bytes", call->body.max);
    else if (call->stopped)
        error_set(err, ERROR_INVALID, "the answer could not be used");
    else if (code == CURLE_OPERATION_TIMEDOUT)
        error_set(err, ERROR_TIMEOUT, "no answer in time: %s", why);
    else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR)
        explain_tls(call, why, err);
    else
        error_set(err, ERROR_UNAVAILABLE, "%s", why);
}

static void finish(struct http_call *call, CURLcode code)
{
    struct http_response response = {.retry_after_ms = call->retry_after_ms};
    long status = 0, opened = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (curl_easy_getinfo(call->easy, CURLINFO_NUM_CONNECTS, &opened) == CURLE_OK)
        call->http->connections_opened += opened;
    response.status = (int)status;
    response.body = buf_string(&call->body);
    response.body_len = call->body.len;
    if (code != CURLE_OK)
        explain(call, code, &response.error);

    /* The answer is handed over after the call has left the pool, so that the callback may do
     * anything, even free the pool. */
    struct buf body = call->body;
    char *secrets[MAX_SECRETS + 1];
    call->body = (struct buf){0};
    memcpy(secrets, call->secrets, sizeof(secrets));
    memset(call->secrets, 0, sizeof(call->secrets));
    response.secrets = secrets;
    http_done on_done = call->on_done;
    void *arg = call->arg;
    call_free(call);
    on_done(arg, &response);
    buf_free(&body);
    drop_secrets(secrets);
}

static int add(struct http_call *call, struct error *err)
{
    CURLMcode code = curl_multi_add_handle(call->http->multi, call->easy);
    if (code != CURLM_OK)
        return error_set(err, ERROR_SYSTEM, "cannot start a request: %s",
                         curl_multi_strerror(code));
    call->added = true;
    return 0;
}

/* What on_chunk asked for and could not be done inside it. */
static void catch_up(struct http *http)
{
    http->deferred = false;
    for (struct http_call *call = http->calls, *next; call; call = next) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed one is off the list */
        next = call->next;
        if (call->cancelled)
            call_free(call);
        else if (!call->added && add(call, NULL) < 0) {
            finish(call, CURLE_FAILED_INIT);
            next = http->calls; /* the callback may have changed the list */
        }
    }
}

static void drain(struct http *http)
{
    if (http->deferred)
        catch_up(http);
    CURLMsg *message;
    int left;
    while (!http->freed && (message = curl_multi_info_read(http->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *call = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        finish((struct http_call *)(void *)call, code);
    }
}

/* --- sockets and the timer -------------------------------------------------------------------
 */
static void handle_closed(struct http *http)
{
    if (--http->handles > 0 || !http->freed)
        return;
    free(http->user_agent);
    free(http);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct socket_watch *watch = handle->data;
    struct http *http = watch->http;
    free(watch);
    handle_closed(http);
}

static void on_timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket_watch *watch = poll->data;
    struct http *http = watch->http;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    int running;
    curl_multi_socket_action(http->multi, watch->fd, flags, &running);
    drain(http);
}

static void on_timer(uv_timer_t *timer)
{
    struct http *http = timer->data;
    int running;
    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    drain(http);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *arg)
{
    struct http *http = arg;
    (void)multi;
    if (http->freed || timeout_ms < 0)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static struct socket_watch *watch_new(struct http *http, curl_socket_t fd)
{
    struct socket_watch *watch = xcalloc(1, sizeof(*watch));
    watch->http = http;
    watch->fd = fd;
    if (uv_poll_init_socket(http->loop, &watch->poll, fd) != 0) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    http->handles++;
    return watch;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct http *http = arg;
    struct socket_watch *watch = socket_arg;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch) {
            uv_poll_stop(&watch->poll);
            uv_close((uv_handle_t *)&watch->poll, on_poll_closed);
            curl_multi_assign(http->multi, fd, NULL);
        }
        return 0;
    }
    if (watch == NULL) {
        watch = watch_new(http, fd);
        if (watch == NULL)
            return -1;
        curl_multi_assign(http->multi, fd, watch);
    }
    int events = 0;
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    uv_poll_start(&watch->poll, events, on_poll);
    return 0;
}

/* --- the answer as it arrives ----------------------------------------------------------------
 */
static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct http_call *call = arg;
    size_t len = size * n;
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (call->on_chunk && status >= 200 && status < 300) {
        call->http->in_chunk = true;
        call->stopped = call->on_chunk(call->arg, data, len) < 0;
        call->http->in_chunk = false;
        return call->stopped ? 0 : len;
    }
    call->too_large = buf_append(&call->body, data, len) < 0;
    return call->too_large ? 0 : len;
}

/* Retry-After in seconds; the form with a date is rare and means "later", so one second. */
static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    struct http_call *call = arg;
    size_t len = size * n;
    static const char name[] = "retry-after:";
    if (len > sizeof(name) - 1 && strncasecmp(data, name, sizeof(name) - 1) == 0) {
        int64_t s = 0;
        size_t i = sizeof(name) - 1;
        while (i < len && data[i] == ' ')
            i++;
        bool number = i < len && isdigit((unsigned char)data[i]);
        for (; i < len && isdigit((unsigned char)data[i]) && s < 3600; i++)
            s = s * 10 + (data[i] - '0');
        call->retry_after_ms = number ? s * 1000 : 1000;
    }
    return len;
}

/* --- sending --------------------------------------------------------------------------------- */
static void add_header(struct http_call *call, const char *name, const char *value)
{
    cleanup_free char *line = xasprintf("%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(call->headers, line);
    if (longer == NULL)
        out_of_memory();
    call->headers = longer;
}

static void set_headers(struct http_call *call, const struct http_request *r)
{
    add_header(call, "Accept", r->accept ? r->accept : "application/json");
    if (r->body)
        add_header(call, "Content-Type", r->content_type ? r->content_type : "application/json");
    if (r->bearer) {
        cleanup_free char *value = xasprintf("Bearer %s", r->bearer);
        add_header(call, "Authorization", value);
    }
    add_header(call, "Expect", ""); /* no 100-continue: it costs a round trip */
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    if (r->user && r->password) {
        curl_easy_setopt(call->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        curl_easy_setopt(call->easy, CURLOPT_USERNAME, r->user);
        curl_easy_setopt(call->easy, CURLOPT_PASSWORD, r->password);
    }
}

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = {
        .data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    curl_easy_setopt(easy, option, &blob);
}

static void set_tls(CURL *easy, const struct http_tls *tls)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls == NULL)
        return;
    if (tls->ca_pem) {
        set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca_pem);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* trust nobody but this authority */
    }
    if (tls->cert_pem && tls->key_pem) {
        set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
        set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key_pem);
    }
    if (tls->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static void set_limits(CURL *easy, const struct http_request *r)
{
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
    if (r->idle_timeout_ms > 0) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)(r->idle_timeout_ms + 999) / 1000);
    }
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 15L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
}

/* A server name other than the URL's host is reached by connecting the name to that host. */
static void set_server_name(struct http_call *call, const struct http_request *r)
{
    if (r->tls == NULL || r->tls->server_name == NULL)
        return;
    CURLU *url = curl_url();
    char *host = NULL, *port = NULL, *changed = NULL;
    if (url && curl_url_set(url, CURLUPART_URL, r->url, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_HOST, r->tls->server_name, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_URL, &changed, 0) == CURLUE_OK) {
        cleanup_free char *map = xasprintf("%s:%s:%s:%s", r->tls->server_name, port, host, port);
        struct curl_slist *connect_to = curl_slist_append(NULL, map);
        curl_easy_setopt(call->easy, CURLOPT_URL, changed);
        curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, connect_to);
        call->connect_to = connect_to; /* curl keeps a pointer to it */
    }
    curl_free(host);
    curl_free(port);
    curl_free(changed);
    curl_url_cleanup(url);
}

static void set_up(struct http_call *call, const struct http_request *r)
{
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_URL, r->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    /* Rather share a connection than open one, where HTTP/2 can be hoped for: without TLS waiting
     * would only put requests in a row. */
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, (long)(strncasecmp(r->url, "https:", 6) == 0));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, call->http->user_agent);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, r->method ? r->method : "GET");
    if (r->body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, r->body);
    }
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    set_headers(call, r);
    set_tls(easy, r->tls);
    set_limits(easy, r);
    set_server_name(call, r);
}

struct http_call *http_send(struct http *http, const struct http_request *request,
                            struct error *err)
{
    if (request->timeout_ms <= 0 && request->idle_timeout_ms <= 0) {
        error_set(err, ERROR_INVALID, "a request needs a time limit");
        return NULL;
    }
    struct http_call *call = xcalloc(1, sizeof(*call));
    call->easy = curl_easy_init();
    if (call->easy == NULL)
        out_of_memory();
    call->http = http;
    call->on_chunk = request->on_chunk;
    call->on_done = request->on_done;
    call->arg = request->arg;
    call->retry_after_ms = -1;
    buf_init(&call->body, request->max_body ? request->max_body : DEFAULT_MAX_BODY);
    call->next = http->calls;
    call->link = &http->calls;
    if (call->next)
        call->next->link = &call->next;
    http->calls = call;
    keep_secrets(call, request);
    set_up(call, request);

    if (http->in_chunk) {
        http->deferred = true;
    } else if (add(call, err) < 0) {
        call_free(call);
        return NULL;
    }
    return call;
}

void http_cancel(struct http_call *call)
{
    if (call->http->in_chunk)
        call->cancelled = call->http->deferred = true;
    else
        call_free(call);
}

/* --- memory of OpenSSL ----------------------------------------------------------------------- */
static void *crypto_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return xmalloc(size);
}

static void *crypto_realloc(void *p, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return xresize(p, size);
}

static void crypto_free(void *p, const char *file, int line)
{
    (void)file, (void)line;
    free(p);
}

/* Which must be told before it has allocated anything. */
__attribute__((constructor)) static void set_up_crypto(void)
{
    CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free);
}

/* --- the pool -------------------------------------------------------------------------------- */
struct http *http_new(uv_loop_t *loop, const char *user_agent)
{
    struct http *http = xcalloc(1, sizeof(*http));
    /* A request that lacks a part, or is never answered, is worse than an end. */
    curl_global_init_mem(CURL_GLOBAL_DEFAULT, xmalloc, free, xresize, xstrdup, xcalloc);
    http->loop = loop;
    http->user_agent = xstrdup(user_agent);
    http->multi = curl_multi_init();
    if (http->multi == NULL || uv_timer_init(loop, &http->timer) != 0)
        out_of_memory();
    http->timer.data = http;
    http->handles = 1;
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    return http;
}

void http_free(struct http *http)
{
    if (http == NULL)
        return;
    http->freed = true;
    while (http->calls) {
        struct http_call *call = http->calls;
        struct http_response response = {.body = "", .retry_after_ms = -1};
        error_set(&response.error, ERROR_CANCELLED, "shutting down");
        /* Each one takes itself off the list. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        http_done on_done = call->cancelled ? NULL : call->on_done;
        void *arg = call->arg;
        call_free(call);
        if (on_done)
            on_done(arg, &response);
    }
    curl_multi_cleanup(http->multi);
    uv_timer_stop(&http->timer);
    uv_close((uv_handle_t *)&http->timer, on_timer_closed);
}

char *http_escape(const char *text)
{
    char *escaped = curl_easy_escape(NULL, text, 0);
    char *copy = xstrdup(escaped ? escaped : "");
    curl_free(escaped);
    return copy;
}

long http_connections_opened(const struct http *http)
{
    return http->connections_opened;
}
