/* Targets of kinds that are not built in: discovery, /scale, and what is said where there is none.
 */
#include "kube_fake.h"

#define GROUP "/apis/argoproj.io/v1alpha1"

struct world {
    struct fake fake;
    struct kube_cache *cache;
    const char *discovery; /* of GROUP; NULL: 404 */
    int discovery_status;
    const char *rollouts;   /* items */
    int list_status;        /* of rollouts */
    int scale_status;       /* of /scale */
    int wanted, actual;     /* what /scale says */
    int discovered, scaled; /* requests */
    struct fake_conn *stream;
    char log[512];
};

static void reply(const struct fake_request *r, int status, const char *text)
{
    cleanup_free char *body = fake_quoted(text);
    fake_reply(r->conn, status, "", body);
}

static void reply_scale(struct world *w, const struct fake_request *r)
{
    cleanup_free char *body = xasprintf("{'kind':'Scale','spec':{'replicas':%d},'status':{"
                                        "'replicas':%d,'selector':'app=x'},'message':'no scale'}",
                                        w->wanted, w->actual);
    w->scaled++;
    reply(r, w->scale_status, body);
}

#define POD(name, uid, owner)                                                                      \
    "{'metadata':{'name':'" name "','namespace':'s','uid':'" uid "','ownerReferences':[{"          \
    "'kind':'ReplicaSet','name':'x','uid':'" owner "','controller':true}]}}"
#define SET(name, uid, owner)                                                                      \
    "{'metadata':{'name':'" name "','namespace':'s','uid':'" uid "','ownerReferences':[{"          \
    "'kind':'Rollout','name':'web','uid':'" owner "','controller':true}]},'spec':{'replicas':2}}"
#define ROLLOUT(version)                                                                           \
    "{'metadata':{'name':'web','namespace':'s','uid':'ro','resourceVersion':'" version "'}}"

static void on_request(void *arg, const struct fake_request *r)
{
    struct world *w = arg;
    if (strstr(r->target, "watch=1")) {
        fake_stream_begin(r->conn);
        if (strstr(r->target, "/rollouts?"))
            w->stream = r->conn;
    } else if (strstr(r->target, "/rollouts?")) {
        if (w->list_status != 200)
            reply(r, w->list_status, "{'message':'rollouts is forbidden'}");
        else
            fake_reply_list(r, w->rollouts);
    } else if (strstr(r->target, "/web/scale")) {
        assert_non_null(strstr(r->target, GROUP "/namespaces/s/rollouts/web/scale"));
        reply_scale(w, r);
    } else if (strstr(r->target, GROUP)) {
        w->discovered++;
        reply(r, w->discovery_status, w->discovery);
    } else if (strstr(r->target, "/replicasets?")) {
        fake_reply_list(r, SET("web-1", "rs", "ro"));
    } else if (strstr(r->target, "/pods?")) {
        fake_reply_list(r, POD("web-1-a", "p1", "rs") "," POD("web-1-b", "p2", "rs") "," POD(
                               "other", "p3", "somebody"));
    } else {
        fake_reply_list(r, "");
    }
}

static void on_workload(void *arg, const struct kube_workload *workload, bool deleted)
{
    struct world *w = arg;
    size_t at = strlen(w->log);
    snprintf(w->log + at, sizeof(w->log) - at, "%c%s/%s ", deleted ? '-' : '+', workload->kind,
             workload->name);
}

static const char with_scale[] =
    "{'resources':[{'name':'rollouts','kind':'Rollout','namespaced':true},"
    "{'name':'rollouts/scale','kind':'Scale','namespaced':true},"
    "{'name':'rollouts/status','kind':'Rollout','namespaced':true},"
    "{'name':'analysisruns','kind':'AnalysisRun','namespaced':true}]}";

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    w->discovery = with_scale;
    w->discovery_status = w->list_status = w->scale_status = 200;
    w->rollouts = ROLLOUT("5");
    w->wanted = 3;
    w->actual = 2;
    fake_start(&w->fake, NULL);
    struct kube_cache_options options = {.on_workload = on_workload, .arg = w};
    w->cache = kube_cache_start(w->fake.kube, &options);
    fake_run_until(&w->fake, kube_cache_synced(w->cache));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    kube_cache_stop(w->cache);
    fake_stop(&w->fake);
    free(w);
    return 0;
}

static const struct kube_workload *find(const struct world *w, const char *kind, const char *name,
                                        struct error *err)
{
    *err = (struct error){0};
    return kube_cache_workload(
        w->cache, &(struct kube_target){"argoproj.io/v1alpha1", kind, "s", name, NULL}, err);
}

/* Until something but "not known yet" is said. */
static const struct kube_workload *await(struct world *w, const char *kind, const char *name,
                                         struct error *err)
{
    fake_run_until(&w->fake, find(w, kind, name, err) || err->code != ERROR_BUSY);
    return find(w, kind, name, err);
}

static void a_kind_with_scale_is_followed(void **state)
{
    struct world *w = *state;
    struct error err;
    const struct kube_pod *pods[4];
    assert_null(find(w, "Rollout", "web", &err));
    assert_int_equal(err.code, ERROR_BUSY);
    const struct kube_workload *web = await(w, "Rollout", "web", &err);
    assert_non_null(web);
    assert_int_equal(web->replicas_wanted, 3);
    assert_int_equal(web->replicas, 2);
    assert_string_equal(web->resource->plural, "rollouts");
    assert_int_equal(kube_cache_pods(w->cache, web, pods, ARRAY_LEN(pods)), 2);
    assert_ptr_equal(kube_cache_owner(w->cache, pods[0]), web);
    assert_int_equal(w->discovered, 1);
    assert_int_equal(w->scaled, 1);
}

static void scale_is_asked_again_when_the_object_changes(void **state)
{
    struct world *w = *state;
    struct error err;
    await(w, "Rollout", "web", &err);
    w->wanted = 5;
    w->log[0] = '\0';
    fake_run_until(&w->fake, w->stream);
    cleanup_free char *line = fake_quoted("{'type':'MODIFIED','object':" ROLLOUT("8") "}\n");
    fake_stream_write(w->stream, line);
    fake_run_until(&w->fake, strstr(w->log, "+Rollout/web"));
    assert_int_equal(find(w, "Rollout", "web", &err)->replicas_wanted, 5);
    cleanup_free char *gone = fake_quoted("{'type':'DELETED','object':" ROLLOUT("9") "}\n");
    fake_stream_write(w->stream, gone);
    fake_run_until(&w->fake, strstr(w->log, "-Rollout/web"));
    assert_null(find(w, "Rollout", "web", &err));
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void what_cannot_be_scaled_is_told(void **state)
{
    struct world *w = *state;
    struct error err;
    assert_null(await(w, "AnalysisRun", "web", &err));
    assert_int_equal(err.code, ERROR_INVALID);
    assert_non_null(strstr(err.message, "AnalysisRun cannot be scaled: it has no /scale"));
    assert_null(await(w, "Nothing", "web", &err));
    assert_int_equal(err.code, ERROR_INVALID);
    assert_non_null(strstr(err.message, "no kind Nothing"));
    assert_int_equal(w->discovered, 2); /* a "no" is believed for a while */
}

static void a_group_that_is_not_there_is_told(void **state)
{
    struct world *w = *state;
    struct error err;
    w->discovery_status = 404;
    assert_null(await(w, "Rollout", "web", &err));
    assert_int_equal(err.code, ERROR_INVALID);
    assert_non_null(strstr(err.message, "argoproj.io/v1alpha1 Rollout is not known"));
}

static void a_target_that_is_not_there_is_told(void **state)
{
    struct world *w = *state;
    struct error err;
    assert_null(await(w, "Rollout", "api", &err));
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_string_equal(err.message, "Rollout s/api does not exist");
    assert_int_equal(w->scaled, 0); /* nobody wants the one that is there */
}

static void a_missing_permission_is_told(void **state)
{
    struct world *w = *state;
    struct error err;
    w->list_status = 403;
    assert_null(await(w, "Rollout", "web", &err));
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_non_null(strstr(err.message, "rollouts cannot be watched: "));
    assert_non_null(strstr(err.message, "rollouts is forbidden"));
}

static void a_closed_scale_is_told_and_not_asked_all_the_time(void **state)
{
    struct world *w = *state;
    struct error err;
    w->scale_status = 403;
    assert_null(await(w, "Rollout", "web", &err));
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    for (int i = 0; i < 5; i++)
        assert_null(find(w, "Rollout", "web", &err));
    assert_int_equal(w->scaled, 1);
}

static void a_kind_that_leads_elsewhere_is_refused(void **state)
{
    struct world *w = *state;
    struct error err = {0};
    static const char *const bad[] = {"../../api/v1", "a/v1?x=", "", "a b/v1",
                                      "apps/v1/namespaces/x"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_null(kube_cache_workload(
            w->cache, &(struct kube_target){bad[i], "Rollout", "s", "web", NULL}, &err));
        assert_int_equal(err.code, ERROR_INVALID);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_kind_with_scale_is_followed),
        TEST(scale_is_asked_again_when_the_object_changes),
        TEST(what_cannot_be_scaled_is_told),
        TEST(a_group_that_is_not_there_is_told),
        TEST(a_target_that_is_not_there_is_told),
        TEST(a_missing_permission_is_told),
        TEST(a_closed_scale_is_told_and_not_asked_all_the_time),
        TEST(a_kind_that_leads_elsewhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
