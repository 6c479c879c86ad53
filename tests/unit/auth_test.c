/* Who may see the dashboard, against a server whose every answer the test decides. */
#include "controller/auth.h"
#include "kube_fake.h"

#define GOOD "Bearer good-token"

struct scene {
    struct fake fake;
    struct auth *auth;
    int reviews, accesses; /* that were asked for */
    bool down, silent;
    char last_access[1024];
    struct buf log;
};

struct outcome {
    int done;
    unsigned status;
    char user[64], message[400];
};

static void on_request(void *arg, const struct fake_request *r)
{
    struct scene *s = arg;
    cleanup_json json_t *body = json_loads(r->body, 0, NULL);
    assert_string_equal(r->method, "POST");
    if (strstr(r->target, "/apis/authentication.k8s.io/v1/tokenreviews")) {
        const char *token = json_str(json_path(body, "spec", "token", NULL));
        bool good = strcmp(token, "good-token") == 0;
        s->reviews++;
        cleanup_free char *text =
            fake_quoted(good ? "{'status':{'authenticated':true,'user':{'username':'jane',"
                               "'uid':'7','groups':['a','b'],'extra':{'k':['v']}}}}"
                             : "{'status':{'authenticated':false,'error':'unknown'}}");
        if (s->down)
            fake_reply(r->conn, 403, "",
                       "{\"message\":\"cannot create resource tokenreviews of good-token\"}");
        else if (!s->silent)
            fake_reply(r->conn, 201, "", text);
        return;
    }
    assert_non_null(strstr(r->target, "/apis/authorization.k8s.io/v1/subjectaccessreviews"));
    s->accesses++;
    snprintf(s->last_access, sizeof(s->last_access), "%s", r->body);
    const char *where = json_str(json_path(body, "spec", "resourceAttributes", "namespace", NULL));
    fake_reply(r->conn, 201, "",
               strcmp(where, "shop") == 0 ? "{\"status\":{\"allowed\":true}}"
                                          : "{\"status\":{\"allowed\":false}}");
}

static void on_verdict(void *arg, const struct auth_verdict *v)
{
    struct outcome *o = arg;
    o->done++;
    o->status = v->status;
    snprintf(o->user, sizeof(o->user), "%s", v->user ? v->user : "");
    snprintf(o->message, sizeof(o->message), "%s", v->message ? v->message : "");
}

static struct scene *start(void)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    s->fake.on_request = on_request;
    s->fake.arg = s;
    fake_start(&s->fake, NULL);
    clock_set(1000, 1767225600000);
    s->auth = auth_new(s->fake.kube);
    buf_init(&s->log, 1 << 20);
    log_set_output_for_test(&s->log);
    return s;
}

/* Whatever was said on the way, it was no token. */
static void stop(struct scene *s)
{
    auth_free(s->auth);
    fake_stop(&s->fake);
    assert_null(strstr(buf_string(&s->log), "good-token"));
    assert_null(strstr(buf_string(&s->log), "bad-token"));
    log_set_output_for_test(NULL);
    clock_use_system();
    buf_free(&s->log);
    free(s);
}

static struct outcome check(struct scene *s, const char *authorization, const char *namespace_)
{
    struct outcome o = {0};
    struct auth_ask *ask = auth_check(s->auth, authorization, namespace_, on_verdict, &o);
    assert_int_equal(ask == NULL, o.done == 1);
    fake_run_until(&s->fake, o.done);
    assert_int_equal(o.done, 1);
    return o;
}

static void test_without_a_token_nobody_is_asked(void **state)
{
    (void)state;
    static const char *const headers[] = {
        NULL,        "",           "Bearer",       "Bearer ",
        "Basic abc", "Bearer a b", "Bearer a\x01", "Bearer \xc3\xa9"};
    struct scene *s = start();
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        struct outcome o = check(s, headers[i], NULL);
        assert_int_equal(o.status, 401);
        assert_non_null(strstr(o.message, "Authorization: Bearer TOKEN"));
    }
    cleanup_free char *longest = xcalloc(1, 20001);
    memset(longest, 'a', 20000);
    memcpy(longest, "Bearer ", 7);
    assert_int_equal(check(s, longest, NULL).status, 401);
    assert_int_equal(s->reviews, 0);
    stop(s);
}

static void test_who_may_and_where(void **state)
{
    (void)state;
    struct scene *s = start();
    struct outcome o = check(s, GOOD, "shop");
    assert_int_equal(o.status, 200);
    assert_string_equal(o.user, "jane");
    cleanup_json json_t *asked = json_loads(s->last_access, 0, NULL);
    cleanup_free char *wanted = fake_quoted(
        "{'user':'jane','uid':'7','groups':['a','b'],'extra':{'k':['v']},'resourceAttributes':{"
        "'verb':'list','group':'autoscaling.faasrl.io','resource':'multidimpodautoscalers',"
        "'namespace':'shop'}}");
    cleanup_json json_t *spec = json_loads(wanted, 0, NULL);
    assert_true(json_equal(json_object_get(asked, "spec"), spec));

    o = check(s, GOOD, NULL);
    assert_int_equal(o.status, 403);
    assert_non_null(strstr(o.message, "jane needs the right to list"));
    assert_null(strstr(s->last_access, "namespace\""));
    assert_int_equal(check(s, GOOD, "other").status, 403);
    stop(s);
}

static void test_what_was_answered_holds_for_a_while(void **state)
{
    (void)state;
    struct scene *s = start();
    for (int i = 0; i < 5; i++)
        assert_int_equal(check(s, "bearer good-token", "shop").status, 200);
    for (int i = 0; i < 5; i++)
        assert_int_equal(check(s, GOOD, "other").status, 403);
    assert_int_equal(s->reviews, 1);
    assert_int_equal(s->accesses, 2);
    for (int i = 0; i < 5; i++)
        assert_int_equal(check(s, "Bearer bad-token", "shop").status, 401);
    assert_int_equal(s->reviews, 2);

    clock_advance(AUTH_CACHE_MS - 1);
    assert_int_equal(check(s, GOOD, "shop").status, 200);
    assert_int_equal(s->reviews, 2);
    clock_advance(1);
    assert_int_equal(check(s, GOOD, "shop").status, 200);
    assert_int_equal(s->reviews, 3);
    assert_int_equal(s->accesses, 3);
    stop(s);
}

/* That the API server cannot be asked is no verdict, and is not remembered. */
static void test_a_review_that_fails(void **state)
{
    (void)state;
    struct scene *s = start();
    s->down = true;
    assert_int_equal(check(s, GOOD, "shop").status, 503);
    assert_non_null(strstr(buf_string(&s->log), "cannot create resource tokenreviews"));
    s->down = false;
    assert_int_equal(check(s, GOOD, "shop").status, 200);
    stop(s);
}

/* Tokens of all kinds one after the other do not become a flood of reviews. */
static void test_a_flood(void **state)
{
    (void)state;
    struct scene *s = start();
    int refused = 0;
    for (int i = 0; i < 300; i++) {
        cleanup_free char *header = xasprintf("Bearer bad-token-%d", i);
        struct outcome o = check(s, header, NULL);
        assert_true(o.status == 401 || o.status == 503);
        refused += o.status == 503;
    }
    assert_int_equal(s->reviews, 300 - refused);
    assert_true(s->reviews <= 50);
    clock_advance(1000);
    assert_int_equal(check(s, GOOD, "shop").status, 200);
    stop(s);
}

/* Nobody is told any more, and nothing is left. */
static void test_the_end_in_between(void **state)
{
    (void)state;
    struct scene *s = start();
    struct outcome o = {0}, other = {0};
    s->silent = true;
    struct auth_ask *ask = auth_check(s->auth, GOOD, NULL, on_verdict, &o);
    assert_non_null(ask);
    assert_non_null(auth_check(s->auth, GOOD, "shop", on_verdict, &other));
    fake_run_until(&s->fake, s->reviews == 2);
    auth_forget(ask);
    auth_forget(NULL);
    stop(s);
    assert_int_equal(o.done, 0);
    assert_int_equal(other.done, 0);
    auth_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_token_nobody_is_asked),
        cmocka_unit_test(test_who_may_and_where),
        cmocka_unit_test(test_what_was_answered_holds_for_a_while),
        cmocka_unit_test(test_a_review_that_fails),
        cmocka_unit_test(test_a_flood),
        cmocka_unit_test(test_the_end_in_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
