#include "kube_fake.h"

struct script {
    struct fake fake;
    void (*serve)(struct script *s, const struct fake_request *r);
    struct kube_watch *watch;
    char log[1024]; /* what the handlers were told */
    char requests[16][256];
    struct fake_conn *open; /* of the stream under way */
    int served, lists, watches, streams_open;
    bool stop_at_object;
};

static void note(struct script *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct script *s, const char *fmt, ...)
{
    size_t at = strlen(s->log);
    va_list args;
    va_start(args, fmt);
    vsnprintf(s->log + at, sizeof(s->log) - at, fmt, args);
    va_end(args);
}

static void on_object(void *arg, const json_t *object, bool deleted)
{
    struct script *s = arg;
    note(s, "%c%s ", deleted ? '-' : '+', json_str(json_path(object, "metadata", "name", NULL)));
    if (s->stop_at_object) {
        kube_watch_stop(s->watch);
        s->watch = NULL;
    }
}

static void on_list_begin(void *arg)
{
    note(arg, "[ ");
}

static void on_list_end(void *arg)
{
    note(arg, "] ");
}

static void on_state(void *arg, const struct error *err)
{
    static const char *const names[] = {
        [ERROR_INVALID] = "invalid",     [ERROR_NOT_FOUND] = "absent",
        [ERROR_FORBIDDEN] = "forbidden", [ERROR_GONE] = "gone",
        [ERROR_TOO_LARGE] = "large",     [ERROR_UNAVAILABLE] = "unavailable"};
    if (err)
        note(arg, "!%s ", names[err->code]);
    else
        note(arg, "ok ");
}

static void on_request(void *arg, const struct fake_request *r)
{
    struct script *s = arg;
    bool watching = strstr(r->target, "watch=1") != NULL;
    if (s->served < 16)
        snprintf(s->requests[s->served], sizeof(s->requests[0]), "%s", r->target);
    s->served++;
    s->watches += watching;
    s->lists += !watching;
    if (watching)
        s->open = r->conn;
    s->serve(s, r);
}

static struct script *start(void (*serve)(struct script *, const struct fake_request *),
                            const struct kube_watch_spec *more)
{
    struct script *s = xcalloc(1, sizeof(*s));
    struct kube_watch_spec spec = more ? *more : (struct kube_watch_spec){0};
    log_setup(LOG_ERROR, LOG_LOGFMT);
    s->fake.on_request = on_request;
    s->fake.arg = s;
    s->serve = serve;
    fake_start(&s->fake, NULL);
    spec.path = "/api/v1/pods";
    spec.handler = (struct kube_watch_handler){on_object, on_list_begin, on_list_end, on_state};
    spec.arg = s;
    s->watch = kube_watch_start(s->fake.kube, &spec);
    assert_false(kube_watch_synced(s->watch));
    return s;
}

static void stop(struct script *s)
{
    kube_watch_stop(s->watch);
    fake_stop(&s->fake);
    free(s);
}

#define LIST(version, more, items)                                                                 \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" more \
    "\"},\"items\":[" items "]}"
#define POD(name, version)                                                                         \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static bool has(const struct script *s, int request, const char *text)
{
    return strstr(s->requests[request], text) != NULL;
}

/* --- the usual course ------------------------------------------------------------------------- */
static void serve_pages(struct script *s, const struct fake_request *r)
{
    if (s->watches) {
        fake_stream_begin(r->conn);
        fake_stream_write(r->conn, EVENT("ADDED", POD("d", "11")) "{\"type\":\"DEL");
        fake_stream_write(r->conn, "ETED\",\"object\":" POD("a", "12") "}\n");
        fake_stream_write(r->conn, EVENT("BOOKMARK", POD("", "20")));
    } else if (s->lists == 1) {
        fake_reply(r->conn, 200, "", LIST("9", "next=&", POD("a", "1") "," POD("b", "2")));
    } else {
        fake_reply(r->conn, 200, "", LIST("10", "", POD("c", "3")));
    }
}

static void pages_then_events(void **state)
{
    (void)state;
    struct kube_watch_spec spec = {.selector = "app in (x)", .page_limit = 2};
    struct script *s = start(serve_pages, &spec);
    fake_run_until(&s->fake, strstr(s->log, "-a"));
    assert_string_equal(s->log, "[ +a +b +c ] +d -a ");
    assert_true(kube_watch_synced(s->watch));
    assert_string_equal(s->requests[0], "/api/v1/pods?limit=2&labelSelector=app%20in%20%28x%29");
    assert_true(has(s, 1, "&continue=next%3D%26"));
    assert_true(has(s, 2, "&resourceVersion=10&"));
    assert_true(has(s, 2, "allowWatchBookmarks=true"));
    assert_true(has(s, 2, "labelSelector=app%20in%20%28x%29"));
    int seconds = (int)strtol(strstr(s->requests[2], "timeoutSeconds=") + 15, NULL, 10);
    assert_in_range(seconds, 240, 480);
    stop(s);
}

/* --- resume ----------------------------------------------------------------------------------- */
static void serve_cut(struct script *s, const struct fake_request *r)
{
    if (s->watches == 0) {
        fake_reply(r->conn, 200, "", LIST("10", "", POD("a", "1")));
        return;
    }
    fake_stream_begin(r->conn);
    if (s->watches == 1)
        fake_stream_write(r->conn,
                          EVENT("MODIFIED", POD("a", "15")) EVENT("BOOKMARK", POD("", "30")));
    else
        fake_stream_write(r->conn, EVENT("MODIFIED", POD("a", "31")));
}

static void a_cut_stream_is_resumed_from_the_last_version(void **state)
{
    (void)state;
    struct script *s = start(serve_cut, NULL);
    fake_run_until(&s->fake, strstr(s->log, "] +a"));
    fake_stream_write(s->open, "{\"type\":\"MODIFIED\",\"obj"); /* half an event */
    fake_cut(s->open);
    fake_run_until(&s->fake, s->watches == 2 && strstr(s->log, "ok"));
    assert_true(has(s, 2, "resourceVersion=30&"));
    assert_int_equal(s->lists, 1);
    assert_string_equal(s->log, "[ +a ] +a !unavailable ok +a ");
    stop(s);
}

static void serve_old_and_quiet(struct script *s, const struct fake_request *r)
{
    if (s->watches == 0) {
        fake_reply(r->conn, 200, "", LIST("10", "", ""));
        return;
    }
    fake_stream_begin(r->conn);
    fake_stream_write(r->conn, EVENT("BOOKMARK", POD("", "11")));
}

/* A watch that lived longer than 5 s ended for no bad reason: no wait, no trouble. */
static void a_watch_that_lived_is_resumed_at_once(void **state)
{
    (void)state;
    clock_set(1000000, 1700000000000);
    struct script *s = start(serve_old_and_quiet, NULL);
    fake_run_until(&s->fake, s->watches == 1);
    clock_advance(300000);
    fake_stream_end(s->open);
    fake_run_until(&s->fake, s->watches == 2);
    assert_true(has(s, 2, "resourceVersion=11&"));
    clock_advance(300000);
    fake_cut(s->open);
    fake_run_until(&s->fake, s->watches == 3);
    assert_string_equal(s->log, "[ ] ");
    clock_use_system();
    stop(s);
}

/* --- list again ------------------------------------------------------------------------------- */
static void serve_gone(struct script *s, const struct fake_request *r)
{
    if (!strstr(r->target, "watch=1")) {
        if (s->lists == 1)
            fake_reply(r->conn, 200, "", LIST("10", "", POD("a", "1") "," POD("b", "2")));
        else
            fake_reply(r->conn, 200, "", LIST("50", "", POD("b", "2")));
    } else if (s->watches == 1) {
        fake_stream_begin(r->conn);
        fake_stream_write(r->conn, EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,"
                                                  "\"reason\":\"Expired\"}"));
        fake_stream_end(r->conn);
    } else if (s->watches == 2) {
        fake_reply(r->conn, 410, "", "{\"kind\":\"Status\",\"message\":\"too old\"}");
    } else {
        fake_stream_begin(r->conn);
    }
}

/* The first 410 is part of life; the second in a row is trouble, and is waited after. */
static void gone_lists_again(void **state)
{
    (void)state;
    struct script *s = start(serve_gone, NULL);
    fake_run_until(&s->fake, s->watches == 3);
    assert_string_equal(s->log, "[ +a +b ] [ +b ] !gone [ +b ] ok ");
    assert_true(has(s, 5, "resourceVersion=50&"));
    stop(s);
}

static void serve_gone_page(struct script *s, const struct fake_request *r)
{
    if (strstr(r->target, "watch=1"))
        fake_stream_begin(r->conn);
    else if (strstr(r->target, "continue="))
        fake_reply(r->conn, 410, "", "{\"kind\":\"Status\",\"message\":\"too old\"}");
    else if (s->lists == 1)
        fake_reply(r->conn, 200, "", LIST("10", "x", POD("a", "1")));
    else
        fake_reply(r->conn, 200, "", LIST("11", "", POD("b", "1")));
}

static void gone_between_pages_begins_the_list_anew(void **state)
{
    (void)state;
    struct script *s = start(serve_gone_page, NULL);
    fake_run_until(&s->fake, s->watches == 1);
    assert_string_equal(s->log, "[ +a [ +b ] ");
    assert_string_equal(s->requests[2], "/api/v1/pods?limit=100");
    stop(s);
}

static void serve_nonsense(struct script *s, const struct fake_request *r)
{
    if (!strstr(r->target, "watch=1")) {
        fake_reply(r->conn, 200, "", LIST("10", "", POD("a", "1")));
        return;
    }
    fake_stream_begin(r->conn);
    if (s->watches == 1)
        fake_stream_write(r->conn, EVENT("ADDED", POD("b", "11")) "{nonsense}\n" EVENT(
                                       "ADDED", POD("never", "12")));
}

static void an_unreadable_stream_lists_again(void **state)
{
    (void)state;
    struct script *s = start(serve_nonsense, NULL);
    fake_run_until(&s->fake, s->watches == 2);
    assert_string_equal(s->log, "[ +a ] +b !invalid [ +a ] ok ");
    assert_int_equal(s->lists, 2);
    stop(s);
}

/* --- trouble ---------------------------------------------------------------------------------- */
static void serve_forbidden_twice(struct script *s, const struct fake_request *r)
{
    if (s->served <= 2)
        fake_reply(r->conn, 403, "", "{\"kind\":\"Status\",\"message\":\"no\"}");
    else if (s->served == 3)
        fake_reply(r->conn, 200, "", "{\"kind\":\"PodList\"}"); /* no list */
    else if (s->watches)
        fake_stream_begin(r->conn);
    else
        fake_reply(r->conn, 200, "", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}");
}

static void trouble_is_told_once_and_its_end_too(void **state)
{
    (void)state;
    struct script *s = start(serve_forbidden_twice, NULL);
    int64_t begin_ms = clock_mono_ms();
    fake_run_until(&s->fake, s->watches == 1);
    assert_string_equal(s->log, "!forbidden [ ] ok ");
    /* At least half of 0.5 s, 1 s and 2 s. */
    assert_true(clock_mono_ms() - begin_ms >= 1740);
    stop(s);
}

static void serve_list_only(struct script *s, const struct fake_request *r)
{
    if (strstr(r->target, "watch=1"))
        fake_reply(r->conn, 403, "", "{\"kind\":\"Status\",\"message\":\"no watching\"}");
    else
        fake_reply(r->conn, 200, "", LIST("5", "", ""));
    (void)s;
}

/* That the list works does not mean that the watch does: the trouble is told once, not each time.
 */
static void a_list_does_not_end_the_trouble_of_a_watch(void **state)
{
    (void)state;
    struct script *s = start(serve_list_only, NULL);
    fake_run_until(&s->fake, s->lists == 2 && s->watches == 4);
    assert_string_equal(s->log, "[ ] !forbidden [ ] ");
    stop(s);
}

static void serve_heavy(struct script *s, const struct fake_request *r)
{
    if (strstr(r->target, "watch=1")) {
        fake_stream_begin(r->conn);
    } else if (s->lists == 1) {
        cleanup_free char *blanks = xcalloc(1, ((size_t)5 << 20) + 1);
        memset(blanks, ' ', (size_t)5 << 20);
        fake_reply(r->conn, 200, "", blanks);
    } else {
        fake_reply(r->conn, 200, "", LIST("5", "", POD("a", "1")));
    }
}

static void too_large_a_page_is_asked_for_in_halves(void **state)
{
    (void)state;
    struct script *s = start(serve_heavy, NULL);
    fake_run_until(&s->fake, s->watches == 1);
    assert_string_equal(s->requests[1], "/api/v1/pods?limit=50");
    assert_string_equal(s->log, "!large [ +a ] ok ");
    stop(s);
}

static void serve_absent(struct script *s, const struct fake_request *r)
{
    (void)s;
    fake_reply(r->conn, 404, "", "404 page not found\n");
}

static void an_absent_optional_kind_is_an_empty_list(void **state)
{
    (void)state;
    struct script *s = start(serve_absent, &(struct kube_watch_spec){.optional = true});
    fake_run_until(&s->fake, kube_watch_synced(s->watch));
    assert_string_equal(s->log, "[ ] ");
    assert_int_equal(s->served, 1);
    stop(s);
    s = start(serve_absent, NULL);
    fake_run_until(&s->fake, s->log[0]);
    assert_string_equal(s->log, "!absent ");
    assert_false(kube_watch_synced(s->watch));
    stop(s);
}

static void serve_refusals(struct script *s, const struct fake_request *r)
{
    static const char refusal[] = "{\"kind\":\"Status\",\"message\":\"no\"}";
    if (s->watches == 1 && s->lists == 1)
        fake_reply(r->conn, 410, "", refusal);
    else if (s->lists == 2 || s->lists == 3) /* a refused token is read and tried again */
        fake_reply(r->conn, 401, "", refusal);
    else if (s->lists == 4)
        fake_reply(r->conn, 403, "", refusal);
    else if (strstr(r->target, "watch=1"))
        fake_stream_begin(r->conn);
    else
        fake_reply(r->conn, 200, "", LIST("5", "", POD("a", "1")));
}

/* A token that ran out, or an API server that has not read its rules yet, is no sign that there are
 * none. */
static void a_refusal_does_not_empty_an_optional_kind(void **state)
{
    (void)state;
    struct script *s = start(serve_refusals, &(struct kube_watch_spec){.optional = true});
    fake_run_until(&s->fake, s->watches == 2);
    assert_string_equal(s->log, "[ +a ] !forbidden [ +a ] ok ");
    stop(s);
}

/* --- ends ------------------------------------------------------------------------------------- */
static void stop_inside_a_handler(void **state)
{
    (void)state;
    for (int where = 0; where < 2; where++) { /* in the list, in the stream */
        struct script *s = start(serve_pages, NULL);
        if (where == 1)
            fake_run_until(&s->fake, strstr(s->log, "]"));
        s->stop_at_object = true;
        fake_run_until(&s->fake, s->watch == NULL);
        for (int i = 0; i < 10; i++)
            uv_run(&s->fake.loop, UV_RUN_NOWAIT);
        assert_string_equal(s->log, where == 0 ? "[ +a " : "[ +a +b +c ] +d ");
        stop(s);
    }
}

static void the_client_may_go_first(void **state)
{
    (void)state;
    struct script *s = start(serve_pages, NULL);
    fake_run_until(&s->fake, strstr(s->log, "-a"));
    kube_free(s->fake.kube);
    s->fake.kube = NULL;
    for (int i = 0; i < 10; i++)
        uv_run(&s->fake.loop, UV_RUN_NOWAIT);
    assert_true(kube_watch_synced(s->watch));
    stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_then_events),
        cmocka_unit_test(a_cut_stream_is_resumed_from_the_last_version),
        cmocka_unit_test(a_watch_that_lived_is_resumed_at_once),
        cmocka_unit_test(gone_lists_again),
        cmocka_unit_test(gone_between_pages_begins_the_list_anew),
        cmocka_unit_test(an_unreadable_stream_lists_again),
        cmocka_unit_test(trouble_is_told_once_and_its_end_too),
        cmocka_unit_test(a_list_does_not_end_the_trouble_of_a_watch),
        cmocka_unit_test(too_large_a_page_is_asked_for_in_halves),
        cmocka_unit_test(an_absent_optional_kind_is_an_empty_list),
        cmocka_unit_test(a_refusal_does_not_empty_an_optional_kind),
        cmocka_unit_test(stop_inside_a_handler),
        cmocka_unit_test(the_client_may_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
