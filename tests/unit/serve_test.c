/* pkg/controller's HTTP server through real sockets; server and clients share one loop and thread.
 */
#include "controller/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000
#define LARGE       ((size_t)5 << 20)

static uv_loop_t loop;

/* --- the server ------------------------------------------------------------------------------ */
static void answer_hello(void *arg, struct serve_answer *out)
{
    int *calls = arg;
    ++*calls;
    assert_int_equal(buf_puts(&out->body, "hello\n"), 0);
}

static void answer_sorry(void *arg, struct serve_answer *out)
{
    (void)arg;
    out->status = 503;
    out->content_type = "text/x-sorry";
    assert_int_equal(buf_puts(&out->body, "not yet\n"), 0);
}

static void answer_large(void *arg, struct serve_answer *out)
{
    (void)arg;
    cleanup_free char *text = xcalloc(1, LARGE);
    memset(text, 'x', LARGE);
    assert_int_equal(buf_append(&out->body, text, LARGE), 0);
}

/* --- requests that are taken: /later/… is answered when the test says so --------------------- */
static struct serve_request *taken[8]; /* that wait for an answer, or stream */
static int gone;

static void on_gone(void *arg)
{
    struct serve_request **slot = arg;
    assert_non_null(*slot);
    *slot = NULL;
    gone++;
}

static struct serve_request **free_slot(void)
{
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        if (taken[i] == NULL)
            return &taken[i];
    fail_msg("more requests than a test has");
    return NULL;
}

static void reply(struct serve_request *r, const char *text)
{
    struct serve_answer answer;
    serve_answer_init(&answer);
    assert_int_equal(buf_puts(&answer.body, text), 0);
    serve_reply(r, &answer);
}

static void on_later(void *arg, struct serve_request *r)
{
    (void)arg;
    const char *path = serve_path(r) + strlen("/later/");
    const char *x = serve_query(r, "x"), *token = serve_header(r, "authorization");
    if (strcmp(path, "now") == 0) {
        cleanup_free char *text = xasprintf("x=%s token=%s head=%d\n", x ? x : "none",
                                            token ? token : "none", serve_is_head(r));
        reply(r, text);
        return;
    }
    struct serve_request **slot = free_slot();
    *slot = r;
    serve_on_gone(r, on_gone, slot);
    if (strcmp(path, "stream") == 0)
        serve_stream(r, "text/event-stream");
}

static const struct serve_route routes[] = {{.path = "/hello", .answer = answer_hello},
                                            {.path = "/sorry", .answer = answer_sorry},
                                            {.path = "/large", .answer = answer_large},
                                            {.path = "/later/", .take = on_later}};

static struct serve *start(const char *listen, unsigned connections, unsigned seconds, int *calls,
                           struct error *err)
{
    return serve_start(&loop,
                       &(struct serve_options){.listen = listen,
                                               .routes = routes,
                                               .route_count = ARRAY_LEN(routes),
                                               .arg = calls,
                                               .max_connections = connections,
                                               .connection_seconds = seconds},
                       err);
}

static struct serve *start_local(unsigned connections, unsigned seconds, int *calls)
{
    struct error err = {0};
    struct serve *s = start("127.0.0.1:0", connections, seconds, calls, &err);
    if (s == NULL)
        fail_msg("%s", err.message);
    assert_int_not_equal(serve_port(s), 0);
    return s;
}

static int set_up(void **state)
{
    (void)state;
    memset(taken, 0, sizeof(taken));
    gone = 0;
    return uv_loop_init(&loop);
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) /* a failed test may have left its server behind */
        uv_run(&loop, UV_RUN_NOWAIT);
    return uv_loop_close(&loop);
}

/* --- clients --------------------------------------------------------------------------------- */
struct client {
    int fd;
    bool ended;
    struct buf in;
};

static void client_open(struct client *c, const struct serve *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)serve_port(s)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    buf_init(&c->in, 2 * LARGE);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof(to)), 0);
}

static void client_send(const struct client *c, const char *text)
{
    (void)!send(c->fd, text, strlen(text), MSG_NOSIGNAL);
}

static void client_close(struct client *c)
{
    close(c->fd);
    buf_free(&c->in);
}

/* Lets the server do what it can and takes in what has come. */
static void turn(struct client *c)
{
    char chunk[65536];
    ssize_t n;
    uv_run(&loop, UV_RUN_NOWAIT);
    struct pollfd ready = {.fd = c->fd, .events = POLLIN};
    if (c->ended || poll(&ready, 1, 1) == 0)
        return;
    while ((n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        assert_int_equal(buf_append(&c->in, chunk, (size_t)n), 0);
    c->ended = n == 0 || (n < 0 && errno != EAGAIN);
}

static void turn_for(struct client *c, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    while (clock_mono_ms() < until_ms)
        turn(c);
}

static void await_end(struct client *c)
{
    int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
    while (!c->ended) {
        assert_true(clock_mono_ms() < until_ms);
        turn(c);
    }
}

static char *ask(const struct serve *s, const char *request)
{
    struct client c;
    client_open(&c, s);
    client_send(&c, request);
    await_end(&c);
    close(c.fd);
    return buf_take(&c.in);
}

static char *get(const struct serve *s, const char *method, const char *target)
{
    cleanup_free char *request = xasprintf("%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, target);
    return ask(s, request);
}

static bool has(const char *answer, const char *text)
{
    return strstr(answer, text) != NULL;
}

/* --- what is answered ------------------------------------------------------------------------ */
static void test_get(void **state)
{
    (void)state;
    int calls = 0;
    struct serve *s = start_local(0, 0, &calls);
    cleanup_free char *answer = get(s, "GET", "/hello?x=1");
    assert_true(strncmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0);
    assert_true(has(answer, "\r\nContent-Length: 6\r\n"));
    assert_true(has(answer, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    assert_true(has(answer, "\r\nCache-Control: no-store\r\n"));
    assert_true(has(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_true(has(answer, "\r\nConnection: close\r\n"));
    assert_true(has(answer, "\r\n\r\nhello\n"));

    cleanup_free char *head = get(s, "HEAD", "/hello");
    assert_true(has(head, " 200 OK\r\n") && has(head, "\r\nContent-Length: 6\r\n"));
    assert_false(has(head, "hello\n"));
    assert_int_equal(calls, 2);

    cleanup_free char *sorry = get(s, "GET", "/sorry");
    assert_true(has(sorry, " 503 ") && has(sorry, "\r\n\r\nnot yet\n"));
    assert_true(has(sorry, "\r\nContent-Type: text/x-sorry\r\n"));
    serve_stop(s);
}

static void test_nothing_else_is_there(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/",       "/hello/",        "/hell",           "/hello%00",
        "//hello", "/../etc/passwd", "/hello/../sorry", "/favicon.ico"};
    int calls = 0;
    struct serve *s = start_local(0, 0, &calls);
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        cleanup_free char *answer = get(s, "GET", targets[i]);
        if (!has(answer, "HTTP/1.1 404 ") && strcmp(targets[i], "/hello%00") != 0)
            fail_msg("%s: %s", targets[i], answer);
    }
    serve_stop(s);
}

static void test_nothing_can_be_written(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST",    "PUT",   "DELETE", "PATCH",
                                          "OPTIONS", "TRACE", "get"};
    int calls = 0;
    struct serve *s = start_local(0, 0, &calls);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        cleanup_free char *answer = get(s, methods[i], "/hello");
        assert_true(has(answer, "HTTP/1.1 405 "));
        assert_true(has(answer, "\r\nAllow: GET, HEAD\r\n"));
    }
    cleanup_free char *body =
        ask(s, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde");
    assert_true(has(body, "HTTP/1.1 405 "));
    assert_int_equal(calls, 0);
    serve_stop(s);
}

static void test_what_is_no_http(void **state)
{
    (void)state;
    int calls = 0;
    struct serve *s = start_local(0, 0, &calls);
    cleanup_free char *noise = ask(s, "\x16\x03\x01\x02\x01\xff\r\n\r\n");
    assert_false(has(noise, " 200 "));

    cleanup_free char *padding = xcalloc(1, 100001);
    memset(padding, 'a', 100000);
    cleanup_free char *request =
        xasprintf("GET /hello HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", padding);
    cleanup_free char *too_long = ask(s, request);
    assert_false(has(too_long, " 200 "));
    assert_int_equal(calls, 0);
    cleanup_free char *answer = get(s, "GET", "/hello");
    assert_true(has(answer, " 200 "));
    serve_stop(s);
}

/* --- how many, how long ---------------------------------------------------------------------- */
static void test_a_header_in_pieces(void **state)
{
    (void)state;
    int calls = 0;
    struct client c;
    struct serve *s = start_local(0, 0, &calls);
    client_open(&c, s);
    for (const char *p = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"; *p; p++) {
        client_send(&c, (char[]){*p, '\0'});
        turn(&c);
    }
    await_end(&c);
    assert_true(has(buf_string(&c.in), "hello\n"));
    client_close(&c);
    serve_stop(s);
}

/* More than the sockets hold at once: the rest goes when there is room again. */
static void test_a_large_answer_to_a_slow_reader(void **state)
{
    (void)state;
    int calls = 0;
    struct client c;
    struct serve *s = start_local(0, 0, &calls);
    client_open(&c, s);
    client_send(&c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 100; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    await_end(&c);
    const char *body = strstr(buf_string(&c.in), "\r\n\r\n");
    assert_non_null(body);
    assert_int_equal(strspn(body + 4, "x"), LARGE);
    client_close(&c);
    serve_stop(s);
}

/* A byte now and then does not keep a connection. Others are answered meanwhile. */
static void test_a_slow_client_is_cut(void **state)
{
    (void)state;
    int calls = 0;
    struct client slow;
    struct serve *s = start_local(0, 1, &calls);
    client_open(&slow, s);
    client_send(&slow, "GET /hello HTTP/1.1\r\nX: ");
    turn(&slow);
    cleanup_free char *answer = get(s, "GET", "/hello");
    assert_true(has(answer, "hello\n"));
    int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
    while (!slow.ended) {
        assert_true(clock_mono_ms() < until_ms);
        client_send(&slow, "x");
        turn_for(&slow, 50);
    }
    assert_false(has(buf_string(&slow.in), " 200 "));
    client_close(&slow);
    serve_stop(s);
}

/* One that asks and never reads is cut too. */
static void test_a_client_that_does_not_read_is_cut(void **state)
{
    (void)state;
    int calls = 0;
    struct client silent, other;
    struct serve *s = start_local(1, 1, &calls);
    client_open(&silent, s);
    client_send(&silent, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    client_open(&other, s); /* waits for the one place */
    client_send(&other, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    await_end(&other);
    assert_true(has(buf_string(&other.in), "hello\n"));
    client_close(&other);
    client_close(&silent);
    serve_stop(s);
}

static void test_too_many_connections_wait(void **state)
{
    (void)state;
    int calls = 0;
    struct client idle[3], late;
    struct serve *s = start_local(3, 60, &calls);
    for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
        client_open(&idle[i], s);
        turn_for(&idle[i], 20);
    }
    client_open(&late, s);
    client_send(&late, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_for(&late, 200);
    assert_int_equal(calls, 0);
    assert_int_equal(late.in.len, 0);
    client_close(&idle[0]); /* makes room */
    await_end(&late);
    assert_true(has(buf_string(&late.in), "hello\n"));
    client_close(&late);
    client_close(&idle[1]);
    client_close(&idle[2]);
    serve_stop(s);
}

/* Idle ones hold up the others for no longer than their time. */
static void test_a_flood_passes(void **state)
{
    (void)state;
    int calls = 0;
    struct client idle[6];
    struct serve *s = start_local(3, 1, &calls);
    for (size_t i = 0; i < ARRAY_LEN(idle); i++)
        client_open(&idle[i], s);
    cleanup_free char *answer = get(s, "GET", "/hello");
    assert_true(has(answer, "hello\n"));
    for (size_t i = 0; i < ARRAY_LEN(idle); i++)
        client_close(&idle[i]);
    serve_stop(s);
}

static void test_stop_in_the_middle(void **state)
{
    (void)state;
    int calls = 0;
    struct client asking, reading;
    struct serve *s = start_local(0, 0, &calls);
    client_open(&asking, s);
    client_send(&asking, "GET /hel");
    client_open(&reading, s);
    client_send(&reading, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    serve_stop(s);
    uv_run(&loop, UV_RUN_DEFAULT);
    await_end(&asking);
    assert_int_equal(asking.in.len, 0);
    client_close(&asking);
    client_close(&reading);
    serve_stop(NULL);
}

/* --- later, and on and on -------------------------------------------------------------------- */
static void await_taken(struct client *c, size_t count)
{
    int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
    for (size_t n = 0; n < count;) {
        assert_true(clock_mono_ms() < until_ms);
        turn(c);
        n = 0;
        for (size_t i = 0; i < ARRAY_LEN(taken); i++)
            n += taken[i] != NULL;
    }
}

static void await_text(struct client *c, const char *text)
{
    int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
    while (!has(buf_string(&c->in), text)) {
        assert_true(clock_mono_ms() < until_ms);
        assert_false(c->ended);
        turn(c);
    }
}

static void test_what_is_asked(void **state)
{
    (void)state;
    int calls = 0;
    struct serve *s = start_local(0, 0, &calls);
    cleanup_free char *plain = get(s, "GET", "/later/now");
    assert_true(has(plain, "x=none token=none head=0"));
    cleanup_free char *more = ask(s, "GET /later/now?y=1&x=a%2Fb%20c&x=2 HTTP/1.1\r\nHost: x\r\n"
                                     "Authorization: Bearer abc\r\n\r\n");
    assert_true(has(more, "x=a/b c token=Bearer abc head=0"));
    cleanup_free char *head = get(s, "HEAD", "/later/now");
    assert_true(has(head, " 200 OK\r\n") && !has(head, "x="));
    cleanup_free char *write = get(s, "POST", "/later/now");
    assert_true(has(write, " 405 ") && has(write, "{\"error\":\"only GET and HEAD"));
    cleanup_free char *above = get(s, "GET", "/later");
    assert_true(has(above, " 404 "));
    serve_stop(s);
}

/* Others are answered while one waits. */
static void test_an_answer_that_comes_later(void **state)
{
    (void)state;
    int calls = 0;
    struct client c;
    struct serve *s = start_local(0, 0, &calls);
    client_open(&c, s);
    client_send(&c, "GET /later/x HTTP/1.1\r\nHost: x\r\n\r\n");
    await_taken(&c, 1);
    cleanup_free char *other = get(s, "GET", "/hello");
    assert_true(has(other, "hello\n"));
    turn_for(&c, 100);
    assert_int_equal(c.in.len, 0);
    reply(taken[0], "at last\n");
    await_end(&c);
    assert_true(has(buf_string(&c.in), " 200 ") && has(buf_string(&c.in), "at last\n"));
    assert_int_equal(gone, 0);
    client_close(&c);
    serve_stop(s);
}

static void test_an_answer_that_never_comes(void **state)
{
    (void)state;
    int calls = 0;
    struct client c;
    struct serve *s = start_local(0, 1, &calls);
    client_open(&c, s);
    client_send(&c, "GET /later/x HTTP/1.1\r\nHost: x\r\n\r\n");
    await_end(&c);
    assert_true(has(buf_string(&c.in), " 503 ") && has(buf_string(&c.in), "took too long"));
    assert_int_equal(gone, 1);
    client_close(&c);
    serve_stop(s);
}

static void test_a_stream(void **state)
{
    (void)state;
    int calls = 0;
    struct client c;
    struct error err = {0};
    struct serve *s = start_local(0, 1, &calls);
    client_open(&c, s);
    client_send(&c, "GET /later/stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await_taken(&c, 1);
    assert_int_equal(serve_stream_send(taken[0], "one\n", 4, &err), 0);
    await_text(&c, "one\n");
    assert_true(has(buf_string(&c.in), "\r\nContent-Type: text/event-stream\r\n"));
    turn_for(&c, 2500); /* it has more time than an answer */
    assert_false(c.ended);
    assert_true(serve_stream_open(taken[0]));
    assert_int_equal(serve_stream_send(taken[0], "two\n", 4, &err), 0);
    await_text(&c, "two\n");
    assert_int_equal(serve_stream_waits(taken[0]), 0);
    serve_stream_end(taken[0]);
    await_end(&c);
    assert_int_equal(gone, 1);
    client_close(&c);
    serve_stop(s);
}

/* One that leaves is noticed, also where there is nothing to send. */
static void test_a_reader_that_leaves(void **state)
{
    (void)state;
    int calls = 0;
    struct client c, other;
    struct serve *s = start_local(0, 1, &calls);
    client_open(&c, s);
    client_send(&c, "GET /later/stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await_taken(&c, 1);
    turn_for(&c, 50);
    client_close(&c);
    client_open(&other, s);
    turn_for(&other, 50);
    assert_false(serve_stream_open(taken[0]));
    serve_stream_end(taken[0]);
    int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
    while (gone == 0) {
        assert_true(clock_mono_ms() < until_ms);
        turn(&other);
    }
    client_close(&other);
    serve_stop(s);
}

/* More than the sockets hold: it is cut when it takes nothing for its time, and nobody waits. */
static void test_a_reader_that_does_not_read(void **state)
{
    (void)state;
    int calls = 0;
    struct client c;
    struct error err = {0};
    cleanup_free char *text = xcalloc(1, LARGE);
    memset(text, 'x', LARGE);
    struct serve *s = start_local(0, 1, &calls);
    client_open(&c, s);
    client_send(&c, "GET /later/stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await_taken(&c, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(serve_stream_send(taken[0], text, LARGE, &err), 0);
    int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
    while (gone == 0) {
        assert_true(clock_mono_ms() < until_ms);
        uv_run(&loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    cleanup_free char *answer = get(s, "GET", "/hello");
    assert_true(has(answer, "hello\n"));
    client_close(&c);
    serve_stop(s);
}

/* What is held for all of them is bounded. */
static void test_streams_hold_no_more_than_allowed(void **state)
{
    (void)state;
    int calls = 0;
    struct client c;
    struct error err = {0};
    cleanup_free char *text = xcalloc(1, LARGE);
    memset(text, 'x', LARGE);
    struct serve *s = start_local(0, 0, &calls);
    client_open(&c, s);
    client_send(&c, "GET /later/stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await_taken(&c, 1);
    int sent = 0;
    while (sent < 100 && serve_stream_send(taken[0], text, LARGE, &err) == 0)
        sent++;
    assert_true(sent > 0 && sent < 20);
    assert_int_equal(err.code, ERROR_TOO_LARGE);
    serve_stop(s);
    assert_int_equal(gone, 1);
    client_close(&c);
}

static void test_long_lines_are_refused(void **state)
{
    (void)state;
    int calls = 0;
    struct serve *s = start_local(0, 0, &calls);
    cleanup_free char *padding = xcalloc(1, 20001);
    memset(padding, 'a', 20000);
    cleanup_free char *target = xasprintf("/later/now?x=%s", padding);
    cleanup_free char *line = get(s, "GET", target);
    if (!has(line, " 414 ") && !has(line, " 431 "))
        fail_msg("%.200s", line);
    cleanup_free char *request = xasprintf(
        "GET /later/now HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", padding);
    cleanup_free char *header = ask(s, request);
    if (!has(header, " 431 ") && !has(header, " 413 "))
        fail_msg("%.200s", header);
    padding[12000] = '\0';
    cleanup_free char *usual = xasprintf(
        "GET /later/now HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", padding);
    cleanup_free char *answer = ask(s, usual);
    assert_true(has(answer, " 200 "));
    serve_stop(s);
}

static void test_stop_while_some_wait(void **state)
{
    (void)state;
    int calls = 0;
    struct client waits, reads;
    struct serve *s = start_local(0, 0, &calls);
    client_open(&waits, s);
    client_send(&waits, "GET /later/x HTTP/1.1\r\nHost: x\r\n\r\n");
    client_open(&reads, s);
    client_send(&reads, "GET /later/stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await_taken(&waits, 2);
    turn_for(&waits, 50);
    serve_stop(s);
    assert_int_equal(gone, 2);
    uv_run(&loop, UV_RUN_DEFAULT);
    await_end(&waits);
    await_end(&reads);
    client_close(&waits);
    client_close(&reads);
}

/* --- where ----------------------------------------------------------------------------------- */
static void test_listen(void **state)
{
    (void)state;
    static const struct {
        const char *listen, *why;
    } wrong[] = {
        {"", "is no ADDRESS:PORT"},
        {"8080", "is no ADDRESS:PORT"},
        {"127.0.0.1", "is no ADDRESS:PORT"},
        {"127.0.0.1:", "the port is no number up to 65535"},
        {":65536", "the port is no number up to 65535"},
        {":-1", "the port is no number up to 65535"},
        {": 80", "the port is no number up to 65535"},
        {":80x", "the port is no number up to 65535"},
        {"::1:8080", "an IPv6 address is put in brackets"},
        {"localhost:8080", "localhost:8080"}, /* names are not looked up */
        {"1.2.3.4.5:8080", "1.2.3.4.5:8080"},
        {"[]:8080", "is no ADDRESS:PORT"},
        {"192.0.2.1:0", "cannot listen on 192.0.2.1:0: "}, /* not an address of ours */
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct error err = {0};
        assert_null(start(wrong[i].listen, 0, 0, NULL, &err));
        if (!has(err.message, wrong[i].why))
            fail_msg("%s: %s", wrong[i].listen, err.message);
    }
}

static void test_a_taken_port(void **state)
{
    (void)state;
    int calls = 0;
    struct error err = {0};
    struct serve *s = start_local(0, 0, &calls);
    cleanup_free char *same = xasprintf("127.0.0.1:%d", serve_port(s));
    assert_null(start(same, 0, 0, NULL, &err));
    assert_true(has(err.message, "Address already in use"));
    serve_stop(s);
}

/* All addresses includes IPv4's, on machines with IPv6 and without. */
static void test_all_addresses(void **state)
{
    (void)state;
    int calls = 0;
    struct error err = {0};
    struct serve *s = start(":0", 0, 0, &calls, &err);
    assert_non_null(s);
    cleanup_free char *answer = get(s, "GET", "/hello");
    assert_true(has(answer, "hello\n"));
    serve_stop(s);
    s = start("[::1]:0", 0, 0, &calls, &err);
    if (s == NULL) /* no IPv6 here, and it says so */
        assert_true(has(err.message, "cannot listen on [::1]:0: "));
    serve_stop(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_get),
        TEST(test_nothing_else_is_there),
        TEST(test_nothing_can_be_written),
        TEST(test_what_is_no_http),
        TEST(test_a_header_in_pieces),
        TEST(test_a_large_answer_to_a_slow_reader),
        TEST(test_a_slow_client_is_cut),
        TEST(test_a_client_that_does_not_read_is_cut),
        TEST(test_too_many_connections_wait),
        TEST(test_a_flood_passes),
        TEST(test_stop_in_the_middle),
        TEST(test_what_is_asked),
        TEST(test_an_answer_that_comes_later),
        TEST(test_an_answer_that_never_comes),
        TEST(test_a_stream),
        TEST(test_a_reader_that_leaves),
        TEST(test_a_reader_that_does_not_read),
        TEST(test_streams_hold_no_more_than_allowed),
        TEST(test_long_lines_are_refused),
        TEST(test_stop_while_some_wait),
        TEST(test_listen),
        TEST(test_a_taken_port),
        TEST(test_all_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
