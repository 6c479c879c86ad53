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

static const struct serve_route routes[] = {
    {"/hello", answer_hello}, {"/sorry", answer_sorry}, {"/large", answer_large}};

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
        TEST(test_listen),
        TEST(test_a_taken_port),
        TEST(test_all_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
