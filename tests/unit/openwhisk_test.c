/* OpenWhisk's actions as targets: whose pods they are, by the rules that its invokers name them by.
 * The expected names were worked out from those rules by hand. */
#include "kube_fake.h"

/* Of release "owdev", the first pod of its invokers' StatefulSet: 23 characters, which leave 40. */
#define HEAD "wskowdev-invoker-00-12-"
#define A30  "abcdefghijklmnopqrstuvwxyzabcd"

/* --- names ------------------------------------------------------------------------------------ */
static void names_of_actions_are_read(void **state)
{
    static const struct {
        const char *text, *namespace_, *package, *name; /* namespace_ NULL: refused */
    } cases[] = {
        {"guest/hello", "guest", "", "hello"},
        {"whisk.system/utils/echo", "whisk.system", "utils", "echo"},
        {"me@example.com_dev/my pkg/a&b-c.d", "me@example.com_dev", "my pkg", "a&b-c.d"},
        {"_/x", "_", "", "x"},
        {"hello", NULL, NULL, NULL},
        {"/guest/hello", NULL, NULL, NULL},
        {"guest/hello/", NULL, NULL, NULL},
        {"guest//hello", NULL, NULL, NULL},
        {"guest/a/b/hello", NULL, NULL, NULL},
        {"guest/-hello", NULL, NULL, NULL},
        {"guest/hello ", NULL, NULL, NULL},
        {"guest/h\xc3\xa9llo", NULL, NULL, NULL},
        {"", NULL, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_action a;
        struct error err = {0};
        assert_int_equal(kube_action_parse(cases[i].text, &a, &err), cases[i].namespace_ ? 0 : -1);
        if (!cases[i].namespace_) {
            assert_int_equal(err.code, ERROR_INVALID);
            continue;
        }
        assert_string_equal(a.namespace_, cases[i].namespace_);
        assert_string_equal(a.package, cases[i].package);
        assert_string_equal(a.name, cases[i].name);
    }
}

static void a_name_may_have_256_characters(void **state)
{
    struct kube_action a;
    struct error err;
    char text[300] = "g/";
    (void)state;
    memset(text + 2, 'x', 256);
    assert_int_equal(kube_action_parse(text, &a, &err), 0);
    text[2 + 256] = 'x';
    assert_int_equal(kube_action_parse(text, &a, &err), -1);
}

static void what_a_pod_keeps_of_a_name(void **state)
{
    static const struct {
        const char *action, *first, *second;
    } cases[] = {
        {"guest/hello", "guest-hello", NULL},
        {"guest/Hello-World.v2", "guest-helloworldv2", NULL},
        {"me@example.com_dev/do_it", "meexamplecom-dev-do-it", NULL},
        {"guest/hello_", "guest-hello", NULL},
        {"guest/tools/hello", "guest-hello", "guesttools-hello"},
        {"whisk.system/my pkg/a&b", "whisksystem-ab", "whisksystemmypkg-ab"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char ends[KUBE_ACTION_ENDS][KUBE_ACTION_END_SIZE];
        struct kube_action a;
        struct error err;
        assert_int_equal(kube_action_parse(cases[i].action, &a, &err), 0);
        assert_int_equal(kube_action_ends(&a, ends), cases[i].second ? 2 : 1);
        assert_string_equal(ends[0], cases[i].first);
        if (cases[i].second)
            assert_string_equal(ends[1], cases[i].second);
    }
}

/* --- claims ----------------------------------------------------------------------------------- */
/* As the Kubernetes container factory makes them; told: labels that are added at initialisation. */
static char *pod_text(const char *uid, const char *name, const char *invoker, const char *told)
{
    return xasprintf(
        "{'metadata':{'name':'%s','namespace':'s','uid':'%s','resourceVersion':'9','labels':{"
        "'name':'%s','user-action-pod':'true','release':'owdev','invoker':'%s'%s}},'spec':{"
        "'containers':[{'name':'user-action','resources':{'requests':{'cpu':'100m','memory':'256Mi'"
        "},"
        "'limits':{'cpu':'100m','memory':'256Mi'}}}]},'status':{'phase':'Running'}}",
        name, uid, name, invoker, told);
}

static struct kube_pod *pod_of(const char *text)
{
    cleanup_free char *json = fake_quoted(text);
    cleanup_json json_t *object = json_loads(json, 0, NULL);
    assert_non_null(object);
    return kube_pod_from_json(object);
}

#define TOLD(namespace_, action)                                                                   \
    ",'openwhisk/namespace':'" namespace_ "','openwhisk/action':'" action "'"

static void pods_are_claimed(void **state)
{
    static const struct {
        const char *pod, *invoker, *told, *action;
        enum kube_claim expected;
    } cases[] = {
        {HEAD "guest-hello", "invoker0", "", "guest/hello", KUBE_CLAIM_BY_NAME},
        {HEAD "guest-hello", "invoker0", "", "guest/hallo", KUBE_CLAIM_NONE},
        {HEAD "guest-hello", "invoker0", "", "guest/ello", KUBE_CLAIM_NONE},
        {HEAD "guest-hello", "invoker0", "", "guest/tools/hello", KUBE_CLAIM_BY_NAME},
        {HEAD "guesttools-hello", "invoker0", "", "guest/tools/hello", KUBE_CLAIM_BY_NAME},
        {HEAD "guesttools-hello", "invoker0", "", "guest/hello", KUBE_CLAIM_NONE},
        {HEAD "meexamplecom-dev-do-it", "invoker0", "", "me@example.com_dev/do_it",
         KUBE_CLAIM_BY_NAME},
        /* Invokers: the third pod of the set with number 10, one without a name, and not this
           one's. */
        {"wskowdev-invoker-310-7-guest-hello", "invoker10", "", "guest/hello", KUBE_CLAIM_BY_NAME},
        {"wskowdev-invoker-310-7-guest-hello", "invoker1", "", "guest/hello", KUBE_CLAIM_NONE},
        {"wsk0-1-guest-hello", "invoker0", "", "guest/hello", KUBE_CLAIM_BY_NAME},
        {"wskowdev-invoker-00-12-guest-hello", "", "", "guest/hello", KUBE_CLAIM_NONE},
        {"wskowdev-invoker-00-12-guest-hello", "invokerx", "", "guest/hello", KUBE_CLAIM_NONE},
        /* Not named by an invoker. */
        {"guest-hello", "invoker0", "", "guest/hello", KUBE_CLAIM_NONE},
        {"wskowdev-invoker-00-guest-hello", "invoker0", "", "guest/hello", KUBE_CLAIM_NONE},
        /* Nobody's yet, or the action nodejs14 of a user called prewarm; then taken by an action.
         */
        {HEAD "prewarm-nodejs14", "invoker0", "", "guest/hello", KUBE_CLAIM_NONE},
        {HEAD "prewarm-nodejs14", "invoker0", "", "prewarm/nodejs14", KUBE_CLAIM_DOUBTFUL},
        {HEAD "prewarm-nodejs14", "invoker0", TOLD("guest", "hello"), "guest/hello",
         KUBE_CLAIM_BY_LABEL},
        {HEAD "prewarm-nodejs14", "invoker0", TOLD("guest", "hello"), "prewarm/nodejs14",
         KUBE_CLAIM_NONE},
        /* Labels tell what a name does not, letter by letter, and none is there for a package. */
        {HEAD "guest-myfunc", "invoker0", TOLD("guest", "my-func"), "guest/my-func",
         KUBE_CLAIM_BY_LABEL},
        {HEAD "guest-myfunc", "invoker0", TOLD("guest", "my-func"), "guest/myfunc",
         KUBE_CLAIM_NONE},
        {HEAD "guest-hello", "invoker0", TOLD("guest", "Hello"), "guest/hello", KUBE_CLAIM_NONE},
        {HEAD "guest-hello", "invoker0", TOLD("guest", "hello"), "guest/tools/hello",
         KUBE_CLAIM_NONE},
        /* 23 + 6 + 32 = 61 characters: whole. 62 and 63: something may have been cut off. */
        {HEAD "guest-" A30 "ef", "invoker0", "", "guest/" A30 "ef", KUBE_CLAIM_BY_NAME},
        {HEAD "guest-" A30 "efg", "invoker0", "", "guest/" A30 "efg", KUBE_CLAIM_DOUBTFUL},
        {HEAD "guest-" A30 "efgh", "invoker0", "", "guest/" A30 "efgh", KUBE_CLAIM_DOUBTFUL},
        /* 64: cut. Others that begin so are cut to the same, */
        {HEAD "guest-" A30 "efgh", "invoker0", "", "guest/" A30 "efghi", KUBE_CLAIM_DOUBTFUL},
        {HEAD "guest-" A30 "efgh", "invoker0", "", "guest/" A30 "efghxyz", KUBE_CLAIM_DOUBTFUL},
        {HEAD "guest-" A30 "efgh", "invoker0", "", "guest/" A30 "efgx", KUBE_CLAIM_NONE},
        /* unless labels tell; and a dash at the cut goes, too. */
        {HEAD "guest-" A30 "efgh", "invoker0", TOLD("guest", A30 "efghi"), "guest/" A30 "efghi",
         KUBE_CLAIM_BY_LABEL},
        {HEAD "guest-" A30 "efg", "invoker0", "", "guest/" A30 "efg_tail", KUBE_CLAIM_DOUBTFUL},
        /* The 12th pod of 5_guest/hello, or the 5th of guest/hello by an invoker "x2-1" 2. */
        {"wskx2-12-5-guest-hello", "invoker2", "", "guest/hello", KUBE_CLAIM_DOUBTFUL},
        {"wskx2-12-5-guest-hello", "invoker2", "", "5_guest/hello", KUBE_CLAIM_DOUBTFUL},
        {"wskx1-12-5-guest-hello", "invoker1", "", "5_guest/hello", KUBE_CLAIM_BY_NAME},
        {"wskx1-12-5-guest-hello", "invoker1", "", "guest/hello", KUBE_CLAIM_NONE},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_action a;
        struct error err;
        cleanup_free char *text = pod_text("u", cases[i].pod, cases[i].invoker, cases[i].told);
        struct kube_pod *pod = pod_of(text);
        assert_int_equal(kube_action_parse(cases[i].action, &a, &err), 0);
        enum kube_claim claim = kube_action_claim(&a, pod);
        if (claim != cases[i].expected)
            fail_msg("%s of %s: %d, not %d", cases[i].pod, cases[i].action, claim,
                     cases[i].expected);
        kube_pod_free(pod);
    }
}

static void a_pod_with_an_owner_is_not_of_openwhisk(void **state)
{
    struct kube_pod *pod = pod_of(
        "{'metadata':{'name':'wsk0-1-guest-hello','namespace':'s','uid':'u','labels':{"
        "'user-action-pod':'true','invoker':'invoker0'},'ownerReferences':[{'controller':true,"
        "'kind':'ReplicaSet','name':'x','uid':'o'}]},'spec':{'containers':[]}}");
    struct kube_action a;
    struct error err;
    (void)state;
    assert_int_equal(kube_action_parse("guest/hello", &a, &err), 0);
    assert_null(pod->openwhisk);
    assert_int_equal(kube_action_claim(&a, pod), KUBE_CLAIM_NONE);
    kube_pod_free(pod);
}

/* --- through the cache ------------------------------------------------------------------------ */
struct world {
    struct fake fake;
    struct kube_cache *cache;
    const char *pods;
    struct fake_conn *stream;
    int seen; /* pods told of */
    char owner[128];
};

static void on_request(void *arg, const struct fake_request *r)
{
    struct world *w = arg;
    bool pods = strstr(r->target, "/pods?");
    if (strstr(r->target, "watch=1")) {
        if (pods)
            w->stream = r->conn;
        fake_stream_begin(r->conn);
    } else {
        fake_reply_list(r, pods ? w->pods : "");
    }
}

static void on_pod(void *arg, const struct kube_pod *pod, bool deleted)
{
    struct world *w = arg;
    const struct kube_workload *owner =
        w->cache && !deleted ? kube_cache_owner(w->cache, pod) : NULL;
    snprintf(w->owner, sizeof(w->owner), "%s", owner ? owner->name : "");
    w->seen++;
}

static struct world *start(const char *pods)
{
    struct world *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    w->pods = pods;
    fake_start(&w->fake, NULL);
    w->cache =
        kube_cache_start(w->fake.kube, &(struct kube_cache_options){.on_pod = on_pod, .arg = w});
    fake_run_until(&w->fake, kube_cache_synced(w->cache));
    return w;
}

static void stop(struct world *w)
{
    kube_cache_stop(w->cache);
    fake_stop(&w->fake);
    free(w);
}

static const struct kube_workload *find(const struct world *w, const char *name, const char *rival,
                                        struct error *err)
{
    *err = (struct error){0};
    return kube_cache_workload(
        w->cache,
        &(struct kube_target){"openwhisk.apache.org/v1", "Action", "s", name, .rival = rival}, err);
}

static int count(const struct world *w, const char *name, const char *rival)
{
    struct error err;
    const struct kube_workload *found = find(w, name, rival, &err);
    if (!found)
        return err.code == ERROR_CONFLICT ? -1 : -2;
    assert_true(kube_is_action(found));
    assert_int_equal(found->replicas, found->replicas_wanted);
    assert_int_equal(kube_cache_pods(w->cache, found, NULL, 0), found->replicas);
    return found->replicas;
}

static void tell(struct world *w, const char *type, const char *pod)
{
    cleanup_free char *text = xasprintf("{'type':'%s','object':%s}\n", type, pod);
    cleanup_free char *line = fake_quoted(text);
    int seen = w->seen;
    fake_run_until(&w->fake, w->stream);
    fake_stream_write(w->stream, line);
    fake_run_until(&w->fake, w->seen > seen);
}

static void pods_come_and_go(void **state)
{
    cleanup_free char *first = pod_text("p1", HEAD "guest-hello", "invoker0", "");
    cleanup_free char *second = pod_text("p2", "wskowdev-invoker-11-3-guest-hello", "invoker1", "");
    cleanup_free char *taken =
        pod_text("p3", HEAD "prewarm-nodejs14", "invoker0", TOLD("guest", "hello"));
    cleanup_free char *free_one = pod_text("p3", HEAD "prewarm-nodejs14", "invoker0", "");
    cleanup_free char *other = pod_text("p4", HEAD "guest-other", "invoker0", "");
    cleanup_free char *list = xasprintf("%s,%s", free_one, other);
    struct world *w = start(list);
    (void)state;
    assert_int_equal(count(w, "guest/hello", NULL), 0);
    tell(w, "ADDED", first);
    assert_string_equal(w->owner, "guest/hello");
    assert_int_equal(count(w, "guest/hello", NULL), 1);
    tell(w, "ADDED", second);
    assert_int_equal(count(w, "guest/hello", NULL), 2);
    tell(w, "MODIFIED", taken);
    assert_string_equal(w->owner, "guest/hello");
    assert_int_equal(count(w, "guest/hello", NULL), 3);
    assert_int_equal(count(w, "guest/other", NULL), 1);
    tell(w, "DELETED", first);
    assert_int_equal(count(w, "guest/hello", NULL), 2);
    stop(w);
}

/* An action's pods are those of the MPA's own namespace, whoever else's name it gives. */
static void pods_of_other_namespaces_are_not_taken(void **state)
{
    cleanup_free char *pod = pod_text("p1", HEAD "bank-pay", "invoker0", TOLD("bank", "pay"));
    struct world *w = start(pod);
    struct error err;
    (void)state;
    assert_int_equal(count(w, "bank/pay", NULL), 1);
    const struct kube_workload *found = kube_cache_workload(
        w->cache,
        &(struct kube_target){"openwhisk.apache.org/v1", "Action", "shop", "bank/pay", NULL}, &err);
    assert_non_null(found);
    assert_int_equal(found->replicas, 0);
    assert_int_equal(kube_cache_pods(w->cache, found, NULL, 0), 0);
    stop(w);
}

static void a_rival_leaves_only_what_labels_tell(void **state)
{
    cleanup_free char *named = pod_text("p1", HEAD "guest-hello", "invoker0", "");
    cleanup_free char *labelled =
        pod_text("p2", "wskowdev-invoker-00-13-guest-hello", "invoker0", TOLD("guest", "hello"));
    struct error err;
    struct world *w = start(named);
    (void)state;
    assert_int_equal(count(w, "guest/hello", NULL), 1);
    assert_null(find(w, "guest/hello", "guest/tools/hello", &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_non_null(strstr(err.message, "pod " HEAD "guest-hello may be of guest/hello or of "
                                        "guest/tools/hello"));
    tell(w, "ADDED", labelled);
    assert_int_equal(count(w, "guest/hello", "guest/tools/hello"), 1);
    assert_int_equal(count(w, "guest/hello", NULL), 2);
    /* The labels of the second pod tell the other that it is not alone. */
    assert_null(find(w, "guest/tools/hello", NULL, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_non_null(strstr(err.message, "or of guest/hello"));
    stop(w);
}

static void a_cut_name_is_ambiguous_without_labels(void **state)
{
    cleanup_free char *cut = pod_text("p1", HEAD "guest-" A30 "efgh", "invoker0", "");
    cleanup_free char *told =
        pod_text("p1", HEAD "guest-" A30 "efgh", "invoker0", TOLD("guest", A30 "efghi"));
    struct error err;
    struct world *w = start(cut);
    (void)state;
    assert_null(find(w, "guest/" A30 "efghi", NULL, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_non_null(strstr(err.message, "was cut"));
    tell(w, "MODIFIED", told);
    assert_int_equal(count(w, "guest/" A30 "efghi", NULL), 1);
    assert_int_equal(count(w, "guest/" A30 "efghxyz", NULL), 0);
    stop(w);
}

/* 61 characters are whole, but the tenth pod of the action has 62. */
static void one_doubtful_name_makes_all_doubtful(void **state)
{
#define LONG "guest-" A30 "efg"
    cleanup_free char *ninth = pod_text("p1", "wskowdev-invoker-00-9-" LONG, "invoker0", "");
    cleanup_free char *tenth = pod_text("p2", "wskowdev-invoker-00-10-" LONG, "invoker0", "");
    struct world *w = start(ninth);
    (void)state;
    assert_int_equal(count(w, "guest/" A30 "efg", NULL), 1);
    tell(w, "ADDED", tenth);
    assert_int_equal(count(w, "guest/" A30 "efg", NULL), -1);
    stop(w);
}

static void other_kinds_and_bad_names_are_refused(void **state)
{
    struct world *w = start("");
    struct error err = {0};
    (void)state;
    assert_null(kube_cache_workload(
        w->cache, &(struct kube_target){"openwhisk.apache.org/v1", "Trigger", "s", "guest/t", NULL},
        &err));
    assert_int_equal(err.code, ERROR_INVALID);
    assert_non_null(strstr(err.message, "a Trigger of OpenWhisk cannot be scaled"));
    assert_int_equal(count(w, "hello", NULL), -2);
    stop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_actions_are_read),
        cmocka_unit_test(a_name_may_have_256_characters),
        cmocka_unit_test(what_a_pod_keeps_of_a_name),
        cmocka_unit_test(pods_are_claimed),
        cmocka_unit_test(a_pod_with_an_owner_is_not_of_openwhisk),
        cmocka_unit_test(pods_come_and_go),
        cmocka_unit_test(pods_of_other_namespaces_are_not_taken),
        cmocka_unit_test(a_rival_leaves_only_what_labels_tell),
        cmocka_unit_test(a_cut_name_is_ambiguous_without_labels),
        cmocka_unit_test(one_doubtful_name_makes_all_doubtful),
        cmocka_unit_test(other_kinds_and_bad_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
