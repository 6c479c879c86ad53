/* The dashboard of a controller on the simulated cluster, through real sockets: server and clients
 * share one loop and thread. */
#include "controller/page.h"
#include "embed/embed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define INTERVAL_S 15
#define START_MS   1767225600000 /* 2026-01-01T00:00:00Z */
#define PATIENCE   20000
#define STREAMS    32
#define MAX_ANSWER ((size_t)4 << 20)

struct scene {
    double counts[2];
    struct trace_quantile quantiles[2];
    struct trace_function workload;
    json_t *manifest;
    struct embed_function function;
    struct embed *embed;
    struct controller *controller;
    uv_loop_t loop;
};

/* Requests of 5 ms: 80 a second for 40 minutes, then 2. One replica of 100m. */
static struct scene *start(const char *mode)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    struct error err = {0};
    cleanup_free char *text =
        xasprintf("apiVersion: autoscaling.faasrl.io/v1alpha1\n"
                  "kind: MultidimPodAutoscaler\n"
                  "metadata: {name: f}\n"
                  "spec:\n"
                  "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: work}\n"
                  "  goals: {latency: {percentile: 99, target: 200ms}}\n"
                  "  constraints:\n"
                  "    global: {minReplicas: 1, maxReplicas: 4}\n"
                  "    container:\n"
                  "    - {name: c, requests: {minAllowed: {cpu: 100m}, maxAllowed: {cpu: 300m}}}\n"
                  "  policy: {updateMode: \"%s\"}\n",
                  mode);
    cleanup_json json_t *documents = yaml_to_json(text, strlen(text), &err);
    s->manifest = json_incref(json_array_get(documents, 0));
    s->counts[0] = 80.0 * 2400;
    s->counts[1] = 2.0 * 2400;
    s->quantiles[0] = (struct trace_quantile){0, 5};
    s->quantiles[1] = (struct trace_quantile){1, 5};
    s->workload = (struct trace_function){.slot_s = 2400,
                                          .counts = s->counts,
                                          .slot_count = 2,
                                          .poisson = true,
                                          .repeat = true,
                                          .quantiles = s->quantiles,
                                          .quantile_count = 2};
    s->function = (struct embed_function){.workload = &s->workload,
                                          .mpa = s->manifest,
                                          .request_milli = 100,
                                          .limit_milli = 100,
                                          .replicas = 1};
    s->embed = embed_new(&(struct embed_options){.functions = &s->function,
                                                 .function_count = 1,
                                                 .seed = 1,
                                                 .start_ms = START_MS,
                                                 .window_s = 60,
                                                 .controller = {.interval_s = INTERVAL_S,
                                                                .status_interval_s = INTERVAL_S,
                                                                .default_cpu_utilization = 70,
                                                                .limits = guard_default_limits,
                                                                .dashboard = DASHBOARD_OPEN}},
                         &err);
    assert_string_equal(err.message, "");
    s->controller = embed_controller(s->embed);
    uv_loop_init(&s->loop);
    assert_int_equal(controller_serve(s->controller, &s->loop, "127.0.0.1:0", &err), 0);
    return s;
}

static void stop(struct scene *s)
{
    embed_free(s->embed);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    json_decref(s->manifest);
    free(s);
}

static void run(struct scene *s, double until_s)
{
    while (embed_now_s(s->embed) < until_s)
        embed_step(s->embed);
}

/* --- clients --------------------------------------------------------------------------------- */
struct client {
    int fd;
    bool ended;
    struct buf in;
};

static void client_open(const struct scene *s, struct client *c, const char *target,
                        const char *host)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)controller_port(s->controller)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    buf_init(&c->in, MAX_ANSWER);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof(to)), 0);
    cleanup_free char *request = xasprintf("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, host);
    assert_int_equal(send(c->fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
}

static void client_close(struct client *c)
{
    close(c->fd);
    buf_free(&c->in);
}

static void turn(struct scene *s, struct client *c)
{
    char chunk[65536];
    ssize_t n;
    uv_run(&s->loop, UV_RUN_NOWAIT);
    struct pollfd ready = {.fd = c->fd, .events = POLLIN};
    if (c->ended || poll(&ready, 1, 1) == 0)
        return;
    while ((n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        assert_int_equal(buf_append(&c->in, chunk, (size_t)n), 0);
    c->ended = n == 0 || (n < 0 && errno != EAGAIN);
}

/* Until a text came, or with NULL all did. The simulated clock stands still meanwhile. */
static void await(struct scene *s, struct client *c, const char *text)
{
    uint64_t until_ns = uv_hrtime() + (uint64_t)PATIENCE * 1000000;
    while (text ? strstr(buf_string(&c->in), text) == NULL : !c->ended) {
        if (uv_hrtime() > until_ns || (text && c->ended))
            fail_msg("no %s in %.300s", text ? text : "end", buf_string(&c->in));
        turn(s, c);
    }
}

/* The body of an answer with this status, as JSON. */
static json_t *get(struct scene *s, const char *target, int status)
{
    struct client c;
    client_open(s, &c, target, "127.0.0.1");
    await(s, &c, NULL);
    cleanup_free char *line = xasprintf("HTTP/1.1 %d ", status);
    if (strncmp(buf_string(&c.in), line, strlen(line)) != 0)
        fail_msg("%s: %.300s", target, buf_string(&c.in));
    const char *body = strstr(buf_string(&c.in), "\r\n\r\n");
    json_t *json = json_loads(body, 0, NULL);
    assert_non_null(json);
    client_close(&c);
    return json;
}

static double number(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* --- what is told ---------------------------------------------------------------------------- */
static void test_before_anything_is_known(void **state)
{
    (void)state;
    struct scene *s = start("Auto");
    cleanup_json json_t *about = get(s, "/api/v1/about", 200);
    assert_true(json_is_true(json_object_get(about, "simulated")));
    assert_true(json_is_false(json_object_get(about, "ended")));
    assert_true(number(about, "now") == START_MS);
    cleanup_json json_t *row = get(s, "/api/v1/mpas/default/f", 200);
    assert_string_equal(json_str(json_object_get(row, "health")), "unknown");
    assert_true(json_is_null(json_object_get(row, "latencyMs")));
    assert_true(json_is_null(json_object_get(row, "lastDecision")));
    cleanup_json json_t *line = get(s, "/api/v1/mpas/default/f/timeline", 200);
    assert_int_equal(json_array_size(json_path(line, "points", "time", NULL)), 0);
    controller_ended(s->controller);
    cleanup_json json_t *later = get(s, "/api/v1/about", 200);
    assert_true(json_is_true(json_object_get(later, "ended")));
    stop(s);
}

static void test_rows_and_details(void **state)
{
    (void)state;
    struct scene *s = start("Auto");
    run(s, 1800);
    cleanup_json json_t *list = get(s, "/api/v1/mpas", 200);
    const json_t *row = json_array_get(json_object_get(list, "items"), 0);
    assert_int_equal(json_array_size(json_object_get(list, "items")), 1);
    assert_string_equal(json_str(json_object_get(row, "target")), "Deployment/work");
    assert_string_equal(json_str(json_object_get(row, "decidedBy")), "threshold");
    assert_string_equal(json_str(json_object_get(row, "health")), "ok");
    assert_true(fabs(number(row, "requestsPerSecond") - 80) < 10);
    assert_true(number(row, "goalMs") == 200 && number(row, "percentile") == 99);
    /* 80 requests of 5 ms take 400m. */
    assert_true(
        fabs(number(row, "utilization") * number(row, "replicas") * number(row, "cpuMilli") - 400) <
        60);

    cleanup_json json_t *all = get(s, "/api/v1/mpas/default/f", 200);
    const json_t *container = json_array_get(json_object_get(all, "containers"), 0);
    assert_true(number(container, "minCpuMilli") == 100 && number(container, "maxCpuMilli") == 300);
    assert_true(number(container, "cpuMilli") == number(all, "cpuMilli"));
    assert_true(number(json_object_get(all, "lastDecision"), "time") > START_MS);
    assert_true(json_array_size(json_object_get(all, "conditions")) > 5);
    assert_true(json_is_null(json_object_get(all, "whatIf")));
    assert_true(json_is_null(json_object_get(all, "learning")));
    cleanup_json json_t *none = get(s, "/api/v1/mpas?namespace=other", 200);
    assert_int_equal(json_array_size(json_object_get(none, "items")), 0);
    cleanup_json json_t *learning = get(s, "/api/v1/learning", 200);
    assert_int_equal(json_array_size(json_object_get(learning, "items")), 0);
    stop(s);
}

static void test_the_timeline(void **state)
{
    (void)state;
    struct scene *s = start("Auto");
    run(s, 1800);
    cleanup_json json_t *line = get(s, "/api/v1/mpas/default/f/timeline", 200);
    const json_t *points = json_object_get(line, "points"), *marks = json_object_get(line, "marks");
    const json_t *times = json_object_get(points, "time");
    size_t n = json_array_size(times), i;
    assert_true(n >= 115 && n <= 120);
    const char *key;
    json_t *column;
    json_object_foreach ((json_t *)(uintptr_t)points, key, column)
        assert_int_equal(json_array_size(column), n);
    assert_int_equal(json_object_size(points), 10);
    for (i = 1; i < n; i++)
        assert_true(json_integer_value(json_array_get(times, i)) -
                        json_integer_value(json_array_get(times, i - 1)) ==
                    INTERVAL_S * 1000);
    const json_t *mark;
    assert_true(json_array_size(marks) > 0);
    json_array_foreach (marks, i, mark) {
        assert_string_equal(json_str(json_object_get(mark, "kind")), "decision");
        assert_true(json_is_true(json_object_get(mark, "applied")));
        assert_true(number(mark, "fromReplicas") != number(mark, "toReplicas") ||
                    number(mark, "fromCpuMilli") != number(mark, "toCpuMilli"));
        assert_true(strlen(json_str(json_object_get(mark, "text"))) > 10);
    }
    cleanup_free char *since =
        xasprintf("/api/v1/mpas/default/f/timeline?since=%lld",
                  (long long)json_integer_value(json_array_get(times, n - 4)));
    cleanup_json json_t *newer = get(s, since, 200);
    assert_int_equal(json_array_size(json_path(newer, "points", "time", NULL)), 3);
    stop(s);
}

/* What would have been done is marked once, not each interval. */
static void test_mode_off(void **state)
{
    (void)state;
    struct scene *s = start("Off");
    run(s, 1800);
    cleanup_json json_t *line = get(s, "/api/v1/mpas/default/f/timeline", 200);
    const json_t *marks = json_object_get(line, "marks"), *mark;
    size_t i;
    assert_true(json_array_size(marks) > 0 && json_array_size(marks) < 60);
    json_array_foreach (marks, i, mark)
        assert_true(json_is_false(json_object_get(mark, "applied")));
    cleanup_json json_t *all = get(s, "/api/v1/mpas/default/f", 200);
    assert_true(number(json_object_get(all, "whatIf"), "coreHours") > 0);
    stop(s);
}

static void test_what_is_not_there(void **state)
{
    (void)state;
    static const char *const targets[] = {"/api/",
                                          "/api/v1/",
                                          "/api/v2/mpas",
                                          "/api/v1/mpas/",
                                          "/api/v1/mpas/default",
                                          "/api/v1/mpas/default/",
                                          "/api/v1/mpas/default/g",
                                          "/api/v1/mpas/default/f/",
                                          "/api/v1/mpas/default/f/timeline/",
                                          "/api/v1/mpas/default/f/../f",
                                          "/api/v1/mpas/..%2F..%2Fetc/passwd",
                                          "/api/v1/../../etc/passwd"};
    static const char *const wrong[] = {
        "/api/v1/mpas?namespace=",
        "/api/v1/mpas?namespace=A",
        "/api/v1/mpas?namespace=a/b",
        "/api/v1/mpas/default/f/timeline?since=",
        "/api/v1/mpas/default/f/timeline?since=-1",
        "/api/v1/mpas/default/f/timeline?since=1e3",
        "/api/v1/mpas/default/f/timeline?since=9999999999999999999"};
    struct scene *s = start("Auto");
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        cleanup_json json_t *error = get(s, targets[i], 404);
        assert_true(strlen(json_str(json_object_get(error, "error"))) > 10);
    }
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        cleanup_json json_t *error = get(s, wrong[i], 400);
        assert_true(strlen(json_str(json_object_get(error, "error"))) > 10);
    }
    stop(s);
}

/* A page elsewhere whose name points to loopback gets nothing. */
static void test_another_host(void **state)
{
    (void)state;
    static const char *const hosts[] = {"evil.example", "localhost.evil.example",
                                        "127.0.0.1.nip.io"};
    struct scene *s = start("Auto");
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct client c;
        client_open(s, &c, "/api/v1/mpas", hosts[i]);
        await(s, &c, NULL);
        assert_non_null(strstr(buf_string(&c.in), "HTTP/1.1 403 "));
        client_close(&c);
    }
    struct client c;
    client_open(s, &c, "/api/v1/mpas", "localhost:8080");
    await(s, &c, NULL);
    assert_non_null(strstr(buf_string(&c.in), "HTTP/1.1 200 "));
    client_close(&c);
    stop(s);
}

/* --- the page -------------------------------------------------------------------------------- */
static void test_the_page(void **state)
{
    (void)state;
    size_t len;
    const char *html = page_html(&len);
    assert_int_equal(strlen(html), len);
    struct scene *s = start("Auto");
    struct client c;
    client_open(s, &c, "/", "127.0.0.1");
    await(s, &c, NULL);
    assert_non_null(strstr(buf_string(&c.in), "Content-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(buf_string(&c.in), "Content-Security-Policy: default-src 'none'; "
                                              "script-src 'sha256-"));
    assert_non_null(strstr(buf_string(&c.in), html));
    client_close(&c);
    stop(s);
}

/* Of the two hashes: printf 'alert(1)' | openssl dgst -sha256 -binary | base64, and of 'a{}'. */
static void test_the_policy_of_a_page(void **state)
{
    (void)state;
    cleanup_free char *policy =
        page_policy("<style>a{}</style><script type=\"module\">alert(1)</script>");
    assert_non_null(
        strstr(policy, "script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';"));
    assert_non_null(
        strstr(policy, "style-src 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk=';"));
    cleanup_free char *unfinished = page_policy("<script>x");
    assert_null(strstr(unfinished, "sha256"));
}

/* --- streams --------------------------------------------------------------------------------- */
static void test_a_stream(void **state)
{
    (void)state;
    struct scene *s = start("Auto");
    struct client c;
    run(s, 60);
    client_open(s, &c, "/api/v1/stream", "127.0.0.1");
    await(s, &c, "event: mpas\ndata: {\"now\":");
    await(s, &c, "\"gone\":[]}\n\n");
    assert_non_null(strstr(buf_string(&c.in), "Content-Type: text/event-stream\r\n"));
    assert_non_null(strstr(buf_string(&c.in), "\"name\":\"f\""));
    buf_clear(&c.in);
    run(s, 600);
    await(s, &c, "event: marks\ndata: {\"namespace\":\"default\",\"name\":\"f\",\"marks\":[{");
    await(s, &c, "\"requestsPerSecond\":");
    controller_mpa(s->controller, embed_mpa(s->embed, 0), true);
    await(s, &c, "\"gone\":[\"default/f\"]");
    client_close(&c);
    stop(s);
}

static void test_too_many_streams(void **state)
{
    (void)state;
    struct scene *s = start("Auto");
    struct client all[STREAMS], more;
    for (size_t i = 0; i < STREAMS; i++) {
        client_open(s, &all[i], "/api/v1/stream", "127.0.0.1");
        await(s, &all[i], "event: mpas");
    }
    cleanup_json json_t *error = get(s, "/api/v1/stream", 503);
    assert_non_null(strstr(json_str(json_object_get(error, "error")), "32 streams"));
    cleanup_json json_t *list = get(s, "/api/v1/mpas", 200); /* others are answered */
    assert_int_equal(json_array_size(json_object_get(list, "items")), 1);
    client_close(&all[0]);
    uint64_t until_ns = uv_hrtime() + (uint64_t)PATIENCE * 1000000;
    for (bool open = false; !open;) { /* its place is free as soon as it is missed */
        assert_true(uv_hrtime() < until_ns);
        client_open(s, &more, "/api/v1/stream", "127.0.0.1");
        await(s, &more, "\r\n\r\n");
        open = strstr(buf_string(&more.in), " 200 ") != NULL;
        client_close(&more);
    }
    for (size_t i = 1; i < STREAMS; i++)
        client_close(&all[i]);
    stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_anything_is_known),
        cmocka_unit_test(test_rows_and_details),
        cmocka_unit_test(test_the_timeline),
        cmocka_unit_test(test_mode_off),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_another_host),
        cmocka_unit_test(test_the_page),
        cmocka_unit_test(test_the_policy_of_a_page),
        cmocka_unit_test(test_a_stream),
        cmocka_unit_test(test_too_many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
