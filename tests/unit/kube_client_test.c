#include "kube_fake.h"

#define SENT_MAX 64

struct script {
    struct fake fake;
    int answers[SENT_MAX]; /* HTTP status of the n-th request; 0: 200 */
    const char *headers;   /* of answers other than 200 */
    const char *body;
    char targets[SENT_MAX][160];
    char methods[SENT_MAX][8];
    char last_head[2048], last_body[2048];
    int64_t came_ms[SENT_MAX];
    int held; /* requests from this number on are never answered; 0: none */
};

struct outcome {
    int done, status;
    struct error error;
    char text[64];
};

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

static void on_request(void *arg, const struct fake_request *r)
{
    struct script *s = arg;
    int at = r->number - 1;
    assert_true(at < SENT_MAX);
    copy_text(s->targets[at], sizeof(s->targets[at]), r->target);
    copy_text(s->methods[at], sizeof(s->methods[at]), r->method);
    copy_text(s->last_head, sizeof(s->last_head), r->head);
    copy_text(s->last_body, sizeof(s->last_body), r->body);
    s->came_ms[at] = clock_mono_ms();
    if (s->held && r->number >= s->held)
        return;
    int status = s->answers[at] ? s->answers[at] : 200;
    bool good = status == 200;
    fake_reply(r->conn, status, good || !s->headers ? "" : s->headers,
               good || !s->body ? "{\"answer\":\"yes\"}" : s->body);
}

static void on_done(void *arg, const struct kube_response *response)
{
    struct outcome *o = arg;
    o->done++;
    o->status = response->status;
    o->error = response->error;
    copy_text(o->text, sizeof(o->text), json_str(json_object_get(response->json, "answer")));
}

static struct script *start(const struct kube_options *options)
{
    struct script *s = xcalloc(1, sizeof(*s));
    s->fake.on_request = on_request;
    s->fake.arg = s;
    fake_start(&s->fake, options);
    return s;
}

static void stop(struct script *s)
{
    fake_stop(&s->fake);
    free(s);
}

static void ask(struct script *s, struct outcome *o, struct kube_request request)
{
    request.on_done = on_done;
    request.arg = o;
    kube_send(s->fake.kube, &request);
    assert_int_equal(o->done, 0); /* never inside kube_send */
}

static void get_one(struct script *s, struct outcome *o)
{
    *o = (struct outcome){0};
    ask(s, o, (struct kube_request){.path = "/api/v1/pods"});
    fake_run_until(&s->fake, o->done);
}

static void a_get_brings_json(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome o;
    get_one(s, &o);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.error.code, ERROR_NONE);
    assert_string_equal(o.text, "yes");
    assert_string_equal(s->methods[0], "GET");
    assert_string_equal(s->targets[0], "/api/v1/pods");
    assert_non_null(strcasestr(s->last_head, "Authorization: Bearer secret"));
    assert_non_null(strcasestr(s->last_head, "Accept: application/json"));
    assert_int_equal(kube_writes_sent(s->fake.kube), 0);
    stop(s);
}

static void statuses_become_errors(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum error_code code;
    } cases[] = {
        {400, ERROR_INVALID},     {403, ERROR_FORBIDDEN},   {404, ERROR_NOT_FOUND},
        {409, ERROR_CONFLICT},    {410, ERROR_GONE},        {422, ERROR_INVALID},
        {500, ERROR_UNAVAILABLE}, {503, ERROR_UNAVAILABLE}, {504, ERROR_TIMEOUT},
    };
    struct script *s = start(NULL);
    s->body = "{\"kind\":\"Status\",\"message\":\"pods \\\"x\\\" is so\"}";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct outcome o;
        s->answers[i] = cases[i].status;
        get_one(s, &o);
        assert_int_equal(o.status, cases[i].status);
        assert_int_equal(o.error.code, cases[i].code);
        assert_string_equal(o.error.message, "pods \"x\" is so");
    }
    assert_int_equal(s->fake.requests, ARRAY_LEN(cases)); /* none of them was tried again */
    stop(s);
}

static void no_server_is_unavailable(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct error err;
    struct outcome o = {0};
    struct kube_config config = {.server = (char *)(uintptr_t) "http://127.0.0.1:1"};
    struct kube *lonely = kube_new(&s->fake.loop, s->fake.http, &config, NULL, &err);
    kube_send(lonely, &(struct kube_request){.path = "/x", .on_done = on_done, .arg = &o});
    fake_run_until(&s->fake, o.done);
    assert_int_equal(o.status, 0);
    assert_int_equal(o.error.code, ERROR_UNAVAILABLE);
    kube_free(lonely);
    stop(s);
}

static void patches_name_their_type_and_manager(void **state)
{
    (void)state;
    static const struct {
        enum kube_patch patch;
        const char *type, *target;
    } cases[] = {
        {KUBE_PATCH_MERGE, "application/merge-patch+json", "/a?fieldManager=faasrl-mpa"},
        {KUBE_PATCH_STRATEGIC, "application/strategic-merge-patch+json",
         "/a?fieldManager=faasrl-mpa"},
        {KUBE_PATCH_JSON, "application/json-patch+json", "/a?fieldManager=faasrl-mpa"},
        {KUBE_PATCH_APPLY, "application/apply-patch+yaml", "/a?fieldManager=faasrl-mpa&force=true"},
    };
    struct script *s = start(NULL);
    cleanup_json json_t *body = json_pack("{s:i}", "n", 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct outcome o = {0};
        cleanup_free char *header = xasprintf("Content-Type: %s\r\n", cases[i].type);
        ask(s, &o, (struct kube_request){.patch = cases[i].patch, .path = "/a", .body = body});
        fake_run_until(&s->fake, o.done);
        cleanup_free char *head = xasprintf("%s\r\n", s->last_head);
        assert_string_equal(s->methods[i], "PATCH");
        assert_string_equal(s->targets[i], cases[i].target);
        assert_string_equal(s->last_body, "{\"n\":1}");
        assert_non_null(strcasestr(head, header));
    }
    assert_int_equal(kube_writes_sent(s->fake.kube), ARRAY_LEN(cases));
    stop(s);
}

static void field_manager_joins_a_query(void **state)
{
    (void)state;
    struct script *s = start(&(struct kube_options){.field_manager = "a b"});
    struct outcome post = {0}, del = {0};
    cleanup_json json_t *body = json_object();
    ask(s, &post, (struct kube_request){.method = "POST", .path = "/a?dryRun=All", .body = body});
    fake_run_until(&s->fake, post.done);
    assert_string_equal(s->targets[0], "/a?dryRun=All&fieldManager=a%20b");
    ask(s, &del, (struct kube_request){.method = "DELETE", .path = "/a"});
    fake_run_until(&s->fake, del.done);
    assert_string_equal(s->targets[1], "/a");
    stop(s);
}

/* The credentials may just have rotated: one more try, not two. */
static void unauthorized_is_tried_again_once(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome o;
    s->answers[0] = 401;
    get_one(s, &o);
    assert_int_equal(o.status, 200);
    assert_int_equal(s->fake.requests, 2);
    s->answers[2] = s->answers[3] = 401;
    get_one(s, &o);
    assert_int_equal(o.status, 401);
    assert_int_equal(o.error.code, ERROR_FORBIDDEN);
    assert_int_equal(s->fake.requests, 4);
    stop(s);
}

static void lazy_writes_let_others_go_first(void **state)
{
    (void)state;
    struct script *s = start(&(struct kube_options){.writes_per_second = 5, .write_burst = 1});
    struct outcome o[4] = {0};
    static const struct {
        const char *path;
        bool lazy;
    } writes[] = {{"/now", false}, {"/lazy-1", true}, {"/lazy-2", true}, {"/other", false}};
    static const char *const order[] = {"/now", "/other", "/lazy-1", "/lazy-2"};
    for (size_t i = 0; i < ARRAY_LEN(writes); i++)
        ask(s, &o[i],
            (struct kube_request){.method = "PUT", .path = writes[i].path, .lazy = writes[i].lazy});
    fake_run_until(&s->fake, o[0].done && o[1].done && o[2].done && o[3].done);
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        assert_non_null(strstr(s->targets[i], order[i]));
    stop(s);
}

static void retry_after_is_honoured_and_holds_writes(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome first = {0}, second = {0};
    s->answers[0] = 429;
    s->headers = "Retry-After: 1\r\n";
    ask(s, &first, (struct kube_request){.method = "PUT", .path = "/first"});
    fake_run_until(&s->fake, s->fake.requests == 1);
    /* Until the answer is there the second may pass; after it, all writes wait. */
    while (kube_writes_sent(s->fake.kube) == 1 && clock_mono_ms() < s->came_ms[0] + 200)
        uv_run(&s->fake.loop, UV_RUN_NOWAIT);
    ask(s, &second, (struct kube_request){.method = "PUT", .path = "/second"});
    fake_run_until(&s->fake, first.done && second.done);
    assert_int_equal(s->fake.requests, 3);
    assert_non_null(strstr(s->targets[1], "/first")); /* in order of asking */
    assert_non_null(strstr(s->targets[2], "/second"));
    assert_true(s->came_ms[1] >= s->came_ms[0] + 1000);
    assert_true(s->came_ms[2] >= s->came_ms[0] + 1000);
    assert_int_equal(first.status, 200);
    stop(s);
}

static void patience_ends_after_three_retries(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome o;
    for (int i = 0; i < 8; i++)
        s->answers[i] = i % 2 ? 503 : 429;
    s->headers = "Retry-After: 0\r\n";
    get_one(s, &o);
    assert_int_equal(s->fake.requests, 4);
    assert_int_equal(o.status, 503);
    assert_int_equal(o.error.code, ERROR_BUSY);
    stop(s);
}

static void plain_429_waits_a_second(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome o;
    s->answers[0] = 429;
    get_one(s, &o);
    assert_int_equal(o.status, 200);
    assert_true(s->came_ms[1] >= s->came_ms[0] + 1000);
    stop(s);
}

/* Burst 2 at 20 a second: the fifth write cannot leave before 3/20 s have passed. */
static void writes_keep_the_rate(void **state)
{
    (void)state;
    struct script *s = start(&(struct kube_options){.writes_per_second = 20, .write_burst = 2});
    struct outcome o[5] = {0}, read = {0};
    int64_t begin_ms = clock_mono_ms();
    for (int i = 0; i < 5; i++) {
        cleanup_free char *path = xasprintf("/%d", i);
        ask(s, &o[i], (struct kube_request){.method = "DELETE", .path = path});
    }
    ask(s, &read, (struct kube_request){.path = "/read"});
    fake_run_until(&s->fake, read.done);
    assert_int_equal(o[4].done, 0); /* reads do not wait for writes */
    fake_run_until(&s->fake, o[4].done);
    assert_true(clock_mono_ms() >= begin_ms + 149);
    assert_int_equal(s->fake.requests, 6);
    stop(s);
}

static void too_many_writes_are_refused(void **state)
{
    (void)state;
    struct script *s = start(&(struct kube_options){.writes_per_second = 0.001, .write_burst = 1});
    static struct outcome o[10002];
    memset(o, 0, sizeof(o));
    for (int i = 0; i < 10002; i++)
        ask(s, &o[i], (struct kube_request){.method = "DELETE", .path = "/x"});
    fake_run_until(&s->fake, o[0].done && o[10001].done);
    assert_int_equal(o[0].status, 200); /* took the only token; 10,000 wait */
    assert_int_equal(o[10001].error.code, ERROR_BUSY);
    assert_int_equal(o[10000].done, 0);
    kube_free(s->fake.kube);
    s->fake.kube = NULL;
    for (int i = 1; i < 10001; i++) {
        assert_int_equal(o[i].done, 1);
        assert_int_equal(o[i].error.code, ERROR_CANCELLED);
    }
    stop(s);
}

static void free_ends_what_is_under_way(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome hanging = {0}, waiting = {0}, fresh = {0};
    s->answers[0] = 429;
    s->held = 2;
    ask(s, &waiting, (struct kube_request){.path = "/waiting"});
    fake_run_until(&s->fake, s->fake.requests == 1);
    ask(s, &hanging, (struct kube_request){.path = "/hanging"});
    fake_run_until(&s->fake, s->fake.requests >= 2);
    ask(s, &fresh, (struct kube_request){.path = "/fresh"});
    kube_free(s->fake.kube);
    s->fake.kube = NULL;
    assert_int_equal(hanging.done, 1);
    assert_int_equal(waiting.done, 1);
    assert_int_equal(fresh.done, 1);
    assert_int_equal(hanging.error.code, ERROR_CANCELLED);
    assert_int_equal(waiting.error.code, ERROR_CANCELLED);
    assert_int_equal(fresh.error.code, ERROR_CANCELLED);
    stop(s);
}

static void a_request_has_a_time_limit(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome o = {0};
    s->held = 1;
    ask(s, &o, (struct kube_request){.path = "/slow", .timeout_ms = 50});
    fake_run_until(&s->fake, o.done);
    assert_int_equal(o.error.code, ERROR_TIMEOUT);
    assert_int_equal(o.status, 0);
    stop(s);
}

static void nonsense_is_refused_later(void **state)
{
    (void)state;
    struct script *s = start(NULL);
    struct outcome o = {0};
    ask(s, &o, (struct kube_request){.method = "BREW", .path = "/x"});
    fake_run_until(&s->fake, o.done);
    assert_int_equal(o.error.code, ERROR_INVALID);
    assert_int_equal(s->fake.requests, 0);
    stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_brings_json),
        cmocka_unit_test(statuses_become_errors),
        cmocka_unit_test(no_server_is_unavailable),
        cmocka_unit_test(patches_name_their_type_and_manager),
        cmocka_unit_test(field_manager_joins_a_query),
        cmocka_unit_test(unauthorized_is_tried_again_once),
        cmocka_unit_test(lazy_writes_let_others_go_first),
        cmocka_unit_test(retry_after_is_honoured_and_holds_writes),
        cmocka_unit_test(patience_ends_after_three_retries),
        cmocka_unit_test(plain_429_waits_a_second),
        cmocka_unit_test(writes_keep_the_rate),
        cmocka_unit_test(too_many_writes_are_refused),
        cmocka_unit_test(free_ends_what_is_under_way),
        cmocka_unit_test(a_request_has_a_time_limit),
        cmocka_unit_test(nonsense_is_refused_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
