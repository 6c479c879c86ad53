/* prom_query() against a server inside the test that plays Prometheus, a proxy, and worse. */
#include "prometheus/prometheus.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ANSWER                                                                                     \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{"        \
    "\"pod\":\"web-0\"},\"value\":[1,\"0.5\"]}]}}"

/* --- the server ------------------------------------------------------------------------------ */
struct seen { /* of the last request, one request at a time */
    char method[8], path[64], authorization[128], type[64];
    char query[256], time[32], timeout[32], start[32], end[32], step[32];
};

struct server {
    struct MHD_Daemon *daemon;
    uv_poll_t poll; /* it runs on the loop of the test */
    struct MHD_Connection *waiting;
    char url[64];
    unsigned status; /* what to answer */
    const char *body;
    bool silent;
    struct seen seen;
};

struct post {
    struct MHD_PostProcessor *processor;
    struct server *server;
};

static enum MHD_Result on_field(void *arg, enum MHD_ValueKind kind, const char *key,
                                const char *file, const char *type, const char *encoding,
                                const char *data, uint64_t offset, size_t size)
{
    (void)kind, (void)file, (void)type, (void)encoding;
    struct seen *seen = &((struct post *)arg)->server->seen;
    const struct {
        const char *name;
        char *slot;
        size_t size;
    } fields[] = {{"query", seen->query, sizeof(seen->query)},
                  {"time", seen->time, sizeof(seen->time)},
                  {"timeout", seen->timeout, sizeof(seen->timeout)},
                  {"start", seen->start, sizeof(seen->start)},
                  {"end", seen->end, sizeof(seen->end)},
                  {"step", seen->step, sizeof(seen->step)}};
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (strcmp(key, fields[i].name) == 0 && offset + size < fields[i].size)
            memcpy(fields[i].slot + offset, data, size);
    return MHD_YES;
}

static void note(struct MHD_Connection *connection, const char *name, char *slot, size_t size)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    snprintf(slot, size, "%s", value ? value : "");
}

static enum MHD_Result begin(struct server *server, struct MHD_Connection *connection,
                             const char *path, const char *method, void **state)
{
    struct seen *seen = &server->seen;
    *seen = (struct seen){0};
    snprintf(seen->path, sizeof(seen->path), "%s", path);
    snprintf(seen->method, sizeof(seen->method), "%s", method);
    note(connection, "Authorization", seen->authorization, sizeof(seen->authorization));
    note(connection, "Content-Type", seen->type, sizeof(seen->type));
    struct post *post = xcalloc(1, sizeof(*post));
    post->server = server;
    post->processor = MHD_create_post_processor(connection, 1024, on_field, post);
    *state = post;
    return MHD_YES;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **state)
{
    (void)version;
    struct server *server = arg;
    struct post *post = *state;
    if (!post)
        return begin(server, connection, path, method, state);
    if (*size > 0) {
        MHD_post_process(post->processor, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (server->silent) {
        server->waiting = connection;
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(server->body), (void *)(uintptr_t)server->body, MHD_RESPMEM_MUST_COPY);
    if (server->status / 100 == 3)
        MHD_add_response_header(response, "Location", "/elsewhere");
    enum MHD_Result result = MHD_queue_response(connection, server->status, response);
    MHD_destroy_response(response);
    return result;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)arg, (void)connection, (void)code;
    struct post *post = *state;
    if (!post)
        return;
    if (post->processor)
        MHD_destroy_post_processor(post->processor);
    free(post);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct server *server = poll->data;
    MHD_UNSIGNED_LONG_LONG wait_ms;
    do {
        MHD_run(server->daemon);
    } while (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms == 0);
}

static void server_start(struct server *server, uv_loop_t *loop)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server->status = 200;
    server->body = ANSWER;
    server->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
                         server, MHD_OPTION_SOCK_ADDR, &any, MHD_OPTION_NOTIFY_COMPLETED,
                         on_completed, NULL, MHD_OPTION_END);
    assert_non_null(server->daemon);
    const union MHD_DaemonInfo *port =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u", port->port);
    const union MHD_DaemonInfo *epoll =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    assert_int_equal(uv_poll_init(loop, &server->poll, epoll->epoll_fd), 0);
    server->poll.data = server;
    assert_int_equal(uv_poll_start(&server->poll, UV_READABLE, on_poll), 0);
}

static void server_stop(struct server *server)
{
    if (server->waiting) {
        server->silent = false;
        MHD_resume_connection(server->waiting);
        MHD_run(server->daemon);
    }
    uv_poll_stop(&server->poll);
    uv_close((uv_handle_t *)&server->poll, NULL);
}

/* --- the world of one test ------------------------------------------------------------------ */
struct outcome {
    int calls;
    bool ok;
    double value;
    struct error error;
};

struct world {
    struct server server;
    uv_loop_t loop;
    struct http *http;
    char dir[32];
    struct outcome outcome;
};

static void on_done(void *arg, const struct prom_result *result, const struct error *err)
{
    struct outcome *outcome = arg;
    outcome->calls++;
    outcome->ok = result != NULL;
    assert_true(outcome->ok == (err == NULL));
    if (err)
        outcome->error = *err;
    if (result && result->series_count > 0)
        outcome->value = result->series[0].samples[0].value;
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    if (uv_loop_init(&w->loop) != 0)
        return -1;
    server_start(&w->server, &w->loop);
    w->http = http_new(&w->loop, "test");
    snprintf(w->dir, sizeof(w->dir), "/tmp/prom-test-XXXXXX");
    *state = w;
    return mkdtemp(w->dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    if (w->http)
        http_free(w->http);
    server_stop(&w->server);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    int left = uv_loop_close(&w->loop); /* UV_EBUSY: a handle was forgotten */
    MHD_stop_daemon(w->server.daemon);
    static const char *const files[] = {"token", "user", "password", "ca"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        cleanup_free char *path = xasprintf("%s/%s", w->dir, files[i]);
        unlink(path);
    }
    rmdir(w->dir);
    free(w);
    return left;
}

static char *write_file(const struct world *w, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", w->dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static struct prom *new_prom(struct world *w, const struct prom_config *config)
{
    struct error err = {0};
    struct prom *prom = prom_new(&w->loop, w->http, config, &err);
    if (!prom)
        fail_msg("%s", err.message);
    return prom;
}

static struct prom *plain_prom(struct world *w)
{
    return new_prom(w, &(struct prom_config){.url = w->server.url});
}

/* Asks once and waits. on_done comes exactly once and not from inside prom_query. */
static const struct outcome *ask(struct world *w, struct prom *prom)
{
    w->outcome = (struct outcome){0};
    prom_query(prom, "up", 0, on_done, &w->outcome);
    assert_int_equal(w->outcome.calls, 0);
    while (w->outcome.calls == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->outcome.calls, 1);
    assert_true(w->outcome.ok == (w->outcome.error.code == ERROR_NONE));
    return &w->outcome;
}

static void assert_error(const struct outcome *outcome, enum error_code code, const char *message)
{
    if (outcome->ok || outcome->error.code != code || !strstr(outcome->error.message, message))
        fail_msg("code %d, \"%s\", not %d with \"%s\"", outcome->error.code, outcome->error.message,
                 code, message);
}

/* --- requests ----------------------------------------------------------------------------------
 */
static void test_instant(void **state)
{
    struct world *w = *state;
    struct prom *prom = plain_prom(w);
    const struct outcome *outcome = ask(w, prom);
    assert_true(outcome->ok && outcome->value == 0.5);
    assert_string_equal(w->server.seen.method, "POST");
    assert_string_equal(w->server.seen.path, "/api/v1/query");
    assert_string_equal(w->server.seen.type, "application/x-www-form-urlencoded");
    assert_string_equal(w->server.seen.authorization, "");
    assert_string_equal(w->server.seen.query, "up");
    assert_string_equal(w->server.seen.time, "");
    assert_string_equal(w->server.seen.timeout, "9000ms"); /* before the 10 s we wait */
    prom_free(prom);
}

static void wait_for(struct world *w)
{
    while (w->outcome.calls == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void test_parameters(void **state)
{
    struct world *w = *state;
    struct prom *prom = plain_prom(w);
    static const char query[] = "sum(rate(x{a=~\"b.*&c=d|\xc3\xa9\"}[1m])) / 100 % 3 + 1";
    prom_query(prom, query, 1794881331.446, on_done, &w->outcome);
    wait_for(w);
    assert_string_equal(w->server.seen.query, query);
    assert_string_equal(w->server.seen.time, "1794881331.446");

    w->outcome = (struct outcome){0};
    prom_query_range(prom, query, 1000, 2000.5, 15, on_done, &w->outcome);
    wait_for(w);
    assert_string_equal(w->server.seen.path, "/api/v1/query_range");
    assert_string_equal(w->server.seen.query, query);
    assert_string_equal(w->server.seen.start, "1000.000");
    assert_string_equal(w->server.seen.end, "2000.500");
    assert_string_equal(w->server.seen.step, "15.000");
    prom_free(prom);
}

static void test_path_prefix(void **state)
{
    struct world *w = *state;
    static const char *const ends[] = {"/", "//", "/prom", "/prom/x/"};
    static const char *const paths[] = {"/api/v1/query", "/api/v1/query", "/prom/api/v1/query",
                                        "/prom/x/api/v1/query"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        cleanup_free char *url = xasprintf("%s%s", w->server.url, ends[i]);
        struct prom *prom = new_prom(w, &(struct prom_config){.url = url});
        assert_true(ask(w, prom)->ok);
        assert_string_equal(w->server.seen.path, paths[i]);
        prom_free(prom);
    }
}

static void test_query_too_long(void **state)
{
    struct world *w = *state;
    struct prom *prom = plain_prom(w);
    size_t len = (size_t)5 << 20;
    cleanup_free char *query = xcalloc(len + 1, 1);
    memset(query, 'x', len);
    prom_query(prom, query, 0, on_done, &w->outcome);
    assert_int_equal(w->outcome.calls, 0);
    wait_for(w);
    assert_error(&w->outcome, ERROR_TOO_LARGE, "longer than");
    prom_free(prom);
}

/* --- configuration ------------------------------------------------------------------------------
 */
static void assert_refused(struct world *w, const struct prom_config *config, const char *message)
{
    struct error err = {0};
    struct prom *prom = prom_new(&w->loop, w->http, config, &err);
    assert_null(prom);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" lacks \"%s\"", err.message, message);
}

static void test_url(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *url, *message;
    } wrong[] = {{NULL, "the URL of Prometheus"},
                 {"", "the URL of Prometheus"},
                 {"prometheus:9090", "http:// or https://"},
                 {"localhost", "http:// or https://"},
                 {"ftp://prometheus", "http:// or https://"},
                 {"file:///etc/passwd", "http:// or https://"},
                 {"http://", "the URL of Prometheus, \"http://\""},
                 {"http://prometheus:99999", "99999"},
                 {"http://prome theus", "the URL of Prometheus"},
                 {"http://prometheus/?query=up", "nothing may follow the path"},
                 {"http://prometheus/#graph", "nothing may follow the path"},
                 {"http://user:secret@prometheus", "files of their own"}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_refused(w, &(struct prom_config){.url = wrong[i].url}, wrong[i].message);
    struct error err = {0};
    struct prom_config secret = {.url = "http://user:secret@prometheus"};
    assert_null(prom_new(&w->loop, w->http, &secret, &err));
    assert_null(strstr(err.message, "secret"));
    static const char *const right[] = {"https://prometheus", "http://[::1]:9090/x",
                                        "HTTP://10.0.0.1:9090"};
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        prom_free(new_prom(w, &(struct prom_config){.url = right[i]}));
}

static void test_files_checked(void **state)
{
    struct world *w = *state;
    struct prom_config c = {.url = w->server.url, .user_file = "u"};
    assert_refused(w, &c, "a user file and a password file");
    c = (struct prom_config){
        .url = w->server.url, .user_file = "u", .password_file = "p", .token_file = "t"};
    assert_refused(w, &c, "not both");
    c = (struct prom_config){.url = w->server.url, .key_file = "k"};
    assert_refused(w, &c, "a certificate file and a key file");
    c = (struct prom_config){.url = w->server.url, .ca_file = "/nowhere/ca.crt"};
    assert_refused(w, &c, "/nowhere/ca.crt");
    cleanup_free char *ca = write_file(w, "ca", "no certificate");
    c = (struct prom_config){.url = w->server.url, .ca_file = ca};
    assert_refused(w, &c, "holds no PEM");
}

/* --- credentials --------------------------------------------------------------------------------
 */
static void test_token_rotates(void **state)
{
    struct world *w = *state;
    cleanup_free char *path = write_file(w, "token", "first\n");
    struct prom *prom =
        new_prom(w, &(struct prom_config){.url = w->server.url, .token_file = path});
    assert_true(ask(w, prom)->ok);
    assert_string_equal(w->server.seen.authorization, "Bearer first");
    free(write_file(w, "token", "second"));
    assert_true(ask(w, prom)->ok);
    assert_string_equal(w->server.seen.authorization, "Bearer second");

    w->server.status = 401;
    w->server.body = "Unauthorized\n";
    assert_error(ask(w, prom), ERROR_FORBIDDEN, "401: the bearer token in ");
    assert_non_null(strstr(w->outcome.error.message, path));
    assert_null(strstr(w->outcome.error.message, "second"));
    prom_free(prom);
}

static void test_token_unusable(void **state)
{
    struct world *w = *state;
    cleanup_free char *path = write_file(w, "token", "");
    struct prom *prom =
        new_prom(w, &(struct prom_config){.url = w->server.url, .token_file = path});
    assert_error(ask(w, prom), ERROR_INVALID, "is empty");
    free(write_file(w, "token", "a\r\nX-Header: b"));
    assert_error(ask(w, prom), ERROR_INVALID, "more than one line");
    unlink(path);
    assert_error(ask(w, prom), ERROR_NOT_FOUND, path);
    assert_string_equal(w->server.seen.method, ""); /* nothing was sent */
    prom_free(prom);
}

static void test_basic(void **state)
{
    struct world *w = *state;
    cleanup_free char *user = write_file(w, "user", "admin\n");
    cleanup_free char *password = write_file(w, "password", "pass:w\xc3\xb6rd\r\n");
    struct prom *prom = new_prom(
        w,
        &(struct prom_config){.url = w->server.url, .user_file = user, .password_file = password});
    assert_true(ask(w, prom)->ok);
    /* printf 'admin:pass:w\303\266rd' | base64 */
    assert_string_equal(w->server.seen.authorization, "Basic YWRtaW46cGFzczp3w7ZyZA==");
    free(write_file(w, "password", "new"));
    assert_true(ask(w, prom)->ok);
    assert_string_equal(w->server.seen.authorization, "Basic YWRtaW46bmV3");
    w->server.status = 403;
    assert_error(ask(w, prom), ERROR_FORBIDDEN, "403: the user in ");
    unlink(password);
    assert_error(ask(w, prom), ERROR_NOT_FOUND, password);
    prom_free(prom);
}

static void test_no_credentials(void **state)
{
    struct world *w = *state;
    struct prom *prom = plain_prom(w);
    w->server.status = 401;
    assert_error(ask(w, prom), ERROR_FORBIDDEN, "401: no credentials are configured");
    prom_free(prom);
}

/* The PEM is not looked into over plain HTTP: what counts is that a change is noticed, and that a
 * file that cannot be read leaves the last reading in use. */
static void test_tls_files_change(void **state)
{
    struct world *w = *state;
    cleanup_buf struct buf log;
    buf_init(&log, 4096);
    cleanup_free char *ca = write_file(w, "ca", "-----BEGIN CERTIFICATE-----\n");
    struct prom *prom = new_prom(w, &(struct prom_config){.url = w->server.url, .ca_file = ca});
    log_set_output_for_test(&log);
    assert_true(ask(w, prom)->ok);
    assert_string_equal(buf_string(&log), "");
    unlink(ca);
    bool ok = ask(w, prom)->ok;
    bool warned = strstr(buf_string(&log), ca) != NULL;
    buf_clear(&log);
    free(write_file(w, "ca", "-----BEGIN CERTIFICATE-----\nnew"));
    bool again = ask(w, prom)->ok;
    log_set_output_for_test(NULL);
    assert_true(ok && warned && again);
    assert_string_equal(buf_string(&log), "");
    prom_free(prom);
}

/* --- wrong answers ------------------------------------------------------------------------------
 */
static void test_status(void **state)
{
    struct world *w = *state;
    static const struct {
        unsigned status;
        const char *body;
        enum error_code code;
        const char *message;
    } answers[] = {
        {400, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:4: parse error\"}",
         ERROR_INVALID, "Prometheus answered bad_data: 1:4: parse error"},
        {422, "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"many-to-many\"}",
         ERROR_INVALID, "execution: many-to-many"},
        {503, "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}",
         ERROR_TIMEOUT, "query timed out"},
        {503, "Service Unavailable", ERROR_UNAVAILABLE, "answered 503: \"Service Unavailable\""},
        {502, "<html>\n<h1>Bad Gateway</h1>", ERROR_UNAVAILABLE, "502: \"<html> <h1>Bad"},
        {404, "404 page not found\n", ERROR_NOT_FOUND, "is the path of the URL right?"},
        {302, "", ERROR_INVALID, "redirects are not followed"},
        {429, "slow down", ERROR_BUSY, "slow down"},
        {500, ANSWER, ERROR_UNAVAILABLE, "answered 500"},
        {200, "<html>Please log in", ERROR_INVALID, "\"<html>Please log in\""},
        {200, "", ERROR_INVALID, "nothing"},
        {200, "{\"status\":\"success\"}", ERROR_INVALID, "no data"},
        {204, "", ERROR_INVALID, "answered 204"},
    };
    struct prom *prom = plain_prom(w);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        w->server.status = answers[i].status;
        w->server.body = answers[i].body;
        assert_error(ask(w, prom), answers[i].code, answers[i].message);
        assert_string_equal(w->server.seen.path, "/api/v1/query");
    }
    w->server.status = 200;
    w->server.body = ANSWER;
    assert_true(ask(w, prom)->ok);
    prom_free(prom);
}

static void test_gone(void **state)
{
    struct world *w = *state;
    struct prom *prom = new_prom(w, &(struct prom_config){.url = "http://127.0.0.1:1"});
    assert_error(ask(w, prom), ERROR_UNAVAILABLE, "Prometheus at http://127.0.0.1:1: ");
    prom_free(prom);
}

static void test_slow(void **state)
{
    struct world *w = *state;
    struct prom *prom = new_prom(w, &(struct prom_config){.url = w->server.url, .timeout_ms = 50});
    w->server.silent = true;
    assert_error(ask(w, prom), ERROR_TIMEOUT, "no answer in time");
    prom_free(prom);
}

/* --- the end ------------------------------------------------------------------------------------
 */
/* One query under way and one that failed before it was sent. */
static struct prom *ask_in_vain(struct world *w, struct outcome *under_way, struct outcome *failed)
{
    cleanup_free char *path = write_file(w, "token", "secret");
    struct prom *prom =
        new_prom(w, &(struct prom_config){.url = w->server.url, .token_file = path});
    w->server.silent = true;
    prom_query(prom, "up", 0, on_done, under_way);
    unlink(path);
    prom_query(prom, "up", 0, on_done, failed);
    return prom;
}

static void test_free_ends_queries(void **state)
{
    struct world *w = *state;
    struct outcome under_way = {0}, failed = {0};
    struct prom *prom = ask_in_vain(w, &under_way, &failed);
    assert_int_equal(under_way.calls + failed.calls, 0);
    prom_free(prom);
    assert_int_equal(under_way.calls, 1);
    assert_int_equal(failed.calls, 1);
    assert_error(&under_way, ERROR_CANCELLED, "shutting down");
    assert_error(&failed, ERROR_CANCELLED, "shutting down");
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(under_way.calls + failed.calls, 2);
}

static void test_free_after_http(void **state)
{
    struct world *w = *state;
    struct outcome under_way = {0}, failed = {0};
    struct prom *prom = ask_in_vain(w, &under_way, &failed);
    http_free(w->http);
    w->http = NULL;
    assert_int_equal(under_way.calls, 1);
    assert_error(&under_way, ERROR_CANCELLED, "");
    prom_free(prom);
    assert_int_equal(under_way.calls, 1);
    assert_int_equal(failed.calls, 1);
}

struct chain {
    struct prom *prom;
    int left;
    bool freed;
};

static void on_link(void *arg, const struct prom_result *result, const struct error *err)
{
    struct chain *chain = arg;
    assert_null(err);
    assert_non_null(result);
    if (--chain->left > 0) {
        prom_query(chain->prom, "up", 0, on_link, chain);
        return;
    }
    prom_free(chain->prom);
    chain->freed = true;
}

static void test_callback_may_ask_and_free(void **state)
{
    struct world *w = *state;
    struct chain chain = {.prom = plain_prom(w), .left = 5};
    prom_query(chain.prom, "up", 0, on_link, &chain);
    while (!chain.freed)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(http_connections_opened(w->http), 1);
}

static void test_many_at_once(void **state)
{
    struct world *w = *state;
    struct prom *prom = plain_prom(w);
    struct outcome outcomes[20] = {0};
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
        prom_query(prom, "up", 0, on_done, &outcomes[i]);
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        while (outcomes[i].calls == 0)
            uv_run(&w->loop, UV_RUN_ONCE);
        assert_true(outcomes[i].ok && outcomes[i].calls == 1);
    }
    prom_free(prom);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_instant),
        TEST(test_parameters),
        TEST(test_path_prefix),
        TEST(test_query_too_long),
        TEST(test_url),
        TEST(test_files_checked),
        TEST(test_token_rotates),
        TEST(test_token_unusable),
        TEST(test_basic),
        TEST(test_no_credentials),
        TEST(test_tls_files_change),
        TEST(test_status),
        TEST(test_gone),
        TEST(test_slow),
        TEST(test_free_ends_queries),
        TEST(test_free_after_http),
        TEST(test_callback_may_ask_and_free),
        TEST(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
