/* Knative's targets: whose pods and replicas they are, and the bounds that its autoscaler gets. */
#include "actuate/actuate.h"
#include "kube_fake.h"

enum { SERVICES, CONFIGURATIONS, REVISIONS, SCALERS, PROXIES, KINDS };
static const char *const plurals[KINDS] = {"services", "configurations", "revisions",
                                           "podautoscalers", "serverlessservices"};

struct world {
    struct fake fake;
    struct kube_cache *cache;
    const char *lists[KINDS];
    struct fake_conn *streams[KINDS];
    char log[512], written[4][512];
    int writes, answers, found, asked; /* asked: for lists of PodAutoscalers */
    struct error refusal;
    int patch_status;
    int looked;  /* for Knative, */
    bool absent; /* which is not there */
};

#define META(name, uid, more)                                                                      \
    "'metadata':{'name':'" name "','namespace':'s','resourceVersion':'9','uid':'" uid "'" more "}"
#define ROUTED(traffic)                                                                            \
    "{" META("f", "ks", "") ",'status':{'latestReadyRevisionName':'f-2','traffic':[" traffic "]}}"
#define REVISION(name, uid, annotations) "{" META(name, uid, ",'annotations':{" annotations "}") "}"
#define SCALER(name, annotations, desired, actual)                                                 \
    "{" META(                                                                                      \
        name, "pa-" name,                                                                          \
        ",'annotations':{" annotations                                                             \
        "},'labels':{'serving.knative.dev/service':'f'}") ",'status':{'desiredScale':" desired     \
                                                          ",'actualScale':" actual "}}"
#define BY(owner)               ",'ownerReferences':[{'kind':'X','name':'x','uid':'" owner "','controller':true}]"
#define OWNED(name, uid, owner) "{" META(name, uid, BY(owner)) ",'spec':{'replicas':1}}"
#define READY_POD(name, uid, owner)                                                                \
    "{" META(name, uid, BY(owner)) ",'status':{'phase':'Running','conditions':[{'type':'Ready',"   \
                                   "'status':'True'}]}}"

static void on_request(void *arg, const struct fake_request *r)
{
    struct world *w = arg;
    for (int i = 0; i < KINDS; i++) {
        cleanup_free char *path = xasprintf("/%s?", plurals[i]);
        if (strstr(r->target, path) && strstr(r->target, "watch=1")) {
            w->streams[i] = r->conn;
            fake_stream_begin(r->conn);
            return;
        }
        if (strstr(r->target, path)) {
            w->asked += i == SCALERS;
            fake_reply_list(r, w->lists[i]);
            return;
        }
    }
    if (strcmp(r->method, "PATCH") == 0) {
        snprintf(w->written[w->writes++ % 4], sizeof(w->written[0]), "%s %s", r->target, r->body);
        fake_reply(r->conn, w->patch_status, "", "{\"message\":\"webhook says no\"}");
    } else if (strcmp(r->target, "/apis/autoscaling.internal.knative.dev/v1alpha1") == 0) {
        w->looked++;
        fake_reply(r->conn, w->absent ? 404 : 200, "", "{}");
    } else if (strstr(r->target, "watch=1")) {
        fake_stream_begin(r->conn);
    } else if (strstr(r->target, "/deployments?")) {
        fake_reply_list(
            r, OWNED("f-1-deployment", "d1", "r1") "," OWNED("f-2-deployment", "d2", "r2"));
    } else if (strstr(r->target, "/replicasets?")) {
        fake_reply_list(r, OWNED("f-1-x", "rs1", "d1") "," OWNED("f-2-x", "rs2", "d2"));
    } else if (strstr(r->target, "/pods?")) {
        fake_reply_list(r, READY_POD("f-1-x-a", "p1", "rs1") "," OWNED(
                               "f-2-x-a", "p2", "rs2") "," OWNED("f-2-x-b", "p3", "rs2"));
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

static void on_owned(void *arg)
{
    struct world *w = arg;
    size_t at = strlen(w->log);
    snprintf(w->log + at, sizeof(w->log) - at, "owned ");
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    w->patch_status = 200;
    w->lists[PROXIES] = "";
    w->lists[SERVICES] = ROUTED("{'revisionName':'f-2','percent':75,'latestRevision':true},"
                                "{'revisionName':'f-1','percent':25},"
                                "{'revisionName':'f-1','tag':'old'}");
    w->lists[CONFIGURATIONS] =
        "{" META("f", "kc", "") ",'status':{'latestReadyRevisionName':'f-2'}}";
    w->lists[REVISIONS] = REVISION("f-1", "r1", "") "," REVISION(
        "f-2", "r2", "'autoscaling.knative.dev/min-scale':'1'");
    w->lists[SCALERS] = SCALER("f-1", "", "1", "1") "," SCALER(
        "f-2", "'autoscaling.knative.dev/min-scale':'1'", "3", "2");
    fake_start(&w->fake, NULL);
    struct kube_cache_options options = {
        .on_workload = on_workload, .on_owned = on_owned, .arg = w};
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
    return kube_cache_workload(w->cache, &(struct kube_target){KUBE_KNATIVE, kind, "s", name, NULL},
                               err);
}

static const struct kube_workload *await(struct world *w, const char *kind, const char *name,
                                         struct error *err)
{
    fake_run_until(&w->fake, find(w, kind, name, err) || err->code != ERROR_BUSY);
    return find(w, kind, name, err);
}

static void change(struct world *w, int kind, const char *object)
{
    cleanup_free char *text = xasprintf("{'type':'MODIFIED','object':%s}\n", object);
    cleanup_free char *line = fake_quoted(text);
    fake_run_until(&w->fake, w->streams[kind]);
    fake_stream_write(w->streams[kind], line);
}

static void tell(struct world *w, int kind, const char *object)
{
    w->log[0] = '\0';
    change(w, kind, object);
    fake_run_until(&w->fake, w->log[0]);
}

static void on_done(void *arg, const struct error *err)
{
    struct world *w = arg;
    w->answers++;
    w->refusal = err ? *err : (struct error){0};
}

/* --- whose pods ------------------------------------------------------------------------------- */
static void a_service_has_the_pods_of_all_it_routes_to(void **state)
{
    struct world *w = *state;
    struct error err;
    const struct kube_pod *pods[4];
    assert_null(find(w, "Service", "f", &err));
    assert_int_equal(err.code, ERROR_BUSY);
    const struct kube_workload *f = await(w, "Service", "f", &err);
    assert_non_null(f);
    assert_true(kube_is_knative(f));
    assert_int_equal(f->replicas, 3);
    assert_int_equal(f->replicas_wanted, 4);
    assert_int_equal(kube_cache_pods(w->cache, f, pods, ARRAY_LEN(pods)), 3);
    assert_ptr_equal(kube_cache_owner(w->cache, pods[0]), f);
}

static void a_configuration_is_its_newest_revision(void **state)
{
    struct world *w = *state;
    struct error err;
    const struct kube_workload *f = await(w, "Configuration", "f", &err);
    assert_int_equal(f->replicas_wanted, 3);
    assert_int_equal(kube_cache_pods(w->cache, f, NULL, 0), 2);
}

#define OF_CONFIGURATION(name, annotations)                                                        \
    "{" META(name, "pa-" name,                                                                     \
             ",'annotations':{" annotations                                                        \
             "},'labels':{'serving.knative.dev/configuration':'f'}") "}"

/* A Configuration is often one of no Service: nobody else would give older Revisions back. */
static void what_a_configuration_held_before_is_its_own_again(void **state)
{
    struct world *w = *state;
    struct error err;
    struct kube_revision all[KUBE_MAX_REVISIONS];
    w->lists[SCALERS] = OF_CONFIGURATION(
        "f-1",
        "'autoscaling.knative.dev/min-scale':'3','autoscaling.faasrl.io/"
        "steered':'true'") "," OF_CONFIGURATION("f-2", "'autoscaling.knative.dev/min-scale':'1'");
    const struct kube_workload *f = await(w, "Configuration", "f", &err);
    size_t count = kube_cache_revisions(w->cache, f, all);
    assert_int_equal(count, 2);
    assert_true(all[1].steered && all[1].percent == 0);
    actuate_steer(w->fake.kube, &all[1], 1, 2, 4, on_done, w);
    fake_run_until(&w->fake, w->answers == 1);
    assert_non_null(strstr(w->written[0], "podautoscalers/f-1"));
    assert_non_null(strstr(w->written[0], "\"autoscaling.faasrl.io/steered\":null"));
}

static void a_revision_is_itself(void **state)
{
    struct world *w = *state;
    struct error err;
    const struct kube_workload *f = await(w, "Revision", "f-1", &err);
    assert_int_equal(f->replicas_wanted, 1);
    assert_int_equal(kube_cache_pods(w->cache, f, NULL, 0), 1);
}

static void traffic_that_moves_is_followed(void **state)
{
    struct world *w = *state;
    struct error err;
    await(w, "Service", "f", &err);
    tell(w, SERVICES, ROUTED("{'revisionName':'f-2','percent':100}"));
    assert_string_equal(w->log, "+Service/f ");
    const struct kube_workload *f = find(w, "Service", "f", &err);
    assert_int_equal(f->replicas_wanted, 3);
    assert_int_equal(kube_cache_pods(w->cache, f, NULL, 0), 2);
}

/* Of so many, with one percent each, and the lists of them. */
struct many {
    struct buf traffic, revisions, scalers;
};

static void many_make(struct many *m, int count)
{
    struct buf *all[] = {&m->traffic, &m->revisions, &m->scalers};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_init(all[i], 1 << 20);
    for (int i = 0; i < count; i++) {
        const char *comma = i ? "," : "";
        int failed = buf_printf(all[0], "%s{'revisionName':'r-%d','percent':1}", comma, i);
        failed |= buf_printf(all[1], "%s" REVISION("r-%d", "u-%d", ""), comma, i, i);
        failed |= buf_printf(all[2], "%s" SCALER("r-%d", "", "1", "1"), comma, i, i);
        assert_int_equal(failed, 0);
    }
}

static void many_free(struct many *m)
{
    buf_free(&m->traffic);
    buf_free(&m->revisions);
    buf_free(&m->scalers);
}

static const struct kube_workload *await_many(struct world *w, int count, struct error *err)
{
    struct many m;
    many_make(&m, count);
    cleanup_free char *service = xasprintf(ROUTED("%s"), m.traffic.data);
    w->lists[SERVICES] = service;
    w->lists[REVISIONS] = m.revisions.data;
    w->lists[SCALERS] = m.scalers.data;
    const struct kube_workload *f = await(w, "Service", "f", err);
    many_free(&m);
    return f;
}

/* None of them is left out: each has one percent at least, so that there can be no more. */
static void a_hundred_revisions_are_one_service(void **state)
{
    struct world *w = *state;
    struct error err;
    struct kube_revision all[KUBE_MAX_REVISIONS];
    const struct kube_workload *f = await_many(w, 100, &err);
    assert_non_null(f);
    assert_int_equal(f->replicas, 100);
    assert_int_equal(kube_cache_revisions(w->cache, f, all), 100);
}

static void more_than_can_be_are_told(void **state)
{
    struct world *w = *state;
    struct error err;
    assert_null(await_many(w, 101, &err));
    assert_int_equal(err.code, ERROR_INVALID);
    assert_string_equal(err.message, "Service f gives requests to more than 100 Revisions: give "
                                     "fewer of them a share of the traffic");
}

static void what_is_not_there_or_not_ours_is_told(void **state)
{
    struct world *w = *state;
    struct error err;
    assert_null(await(w, "Service", "g", &err));
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_null(find(w, "Route", "f", &err));
    assert_int_equal(err.code, ERROR_INVALID);
    assert_non_null(strstr(err.message, "a Service, Configuration or Revision can"));
    assert_non_null(find(w, "Service", "f", &err));
    tell(w, SCALERS,
         SCALER("f-1", "'autoscaling.knative.dev/class':'hpa.autoscaling.knative.dev'", "1", "1"));
    assert_null(find(w, "Service", "f", &err));
    assert_int_equal(err.code, ERROR_INVALID);
    assert_non_null(strstr(err.message, "class hpa.autoscaling.knative.dev"));
}

/* A floor of ours is what is wanted, even where Knative's autoscaler has more at present. */
static void our_floor_is_what_is_wanted(void **state)
{
    struct world *w = *state;
    struct error err;
    await(w, "Service", "f", &err);
    tell(w, SCALERS,
         SCALER("f-2",
                "'autoscaling.knative.dev/min-scale':'2','autoscaling.faasrl.io/steered':'true'",
                "5", "5"));
    const struct kube_workload *f = find(w, "Service", "f", &err);
    assert_int_equal(f->replicas_wanted, 3);
    assert_int_equal(f->replicas, 6);
}

/* --- of our class ----------------------------------------------------------------------------- */
#define OURS "'autoscaling.knative.dev/class':'mpa.faasrl.io'"
#define CLAIMED                                                                                    \
    "{" META("f-1", "pa-f-1",                                                                      \
             ",'generation':3,'labels':{'serving.knative.dev/service':'f'},'annotations':{" OURS   \
             ",'autoscaling.knative.dev/initial-scale':'2',"                                       \
             "'autoscaling.knative.dev/window':'90s'}" BY(                                         \
                 "r1")) ",'spec':{'protocolType':'http1','reachability':'Unreachable',"            \
                        "'scaleTargetRef':{'kind':'Deployment','name':'f-1-deployment'}},"         \
                        "'status':{'desiredScale':0,'actualScale':1,'conditions':["                \
                        "{'type':'Active','status':'False','lastTransitionTime':'2026-01-01T00:"   \
                        "00:00Z'},"                                                                \
                        "{'type':'ScaleTargetInitialized','status':'True'}]}}"
#define SKS(owner, mode, observed)                                                                 \
    "{" META("f-1", "sks",                                                                         \
             ",'generation':2" BY(                                                                 \
                 owner)) ",'spec':{'mode':'" mode "'},"                                            \
                         "'status':{'observedGeneration':" observed                                \
                         ",'serviceName':'f-1','privateServiceName':"                              \
                         "'f-1-private','conditions':[{'type':'Ready','status':'True'},"           \
                         "{'type':'ActivatorEndpointsPopulated','status':'True',"                  \
                         "'lastTransitionTime':'2026-01-01T00:00:01Z'}]}}"

static void await_owned(struct world *w, struct kube_owned *out)
{
    struct error err;
    size_t at = 0;
    await(w, "Service", "f", &err);
    fake_run_until(&w->fake, (at = 0, kube_cache_owned(w->cache, &at, out)));
    assert_false(kube_cache_owned(w->cache, &at, &(struct kube_owned){0}));
}

static void one_of_our_class_is_told_with_all_that_belongs_to_it(void **state)
{
    struct world *w = *state;
    struct kube_owned o;
    w->lists[SCALERS] = CLAIMED "," SCALER("f-2", "", "3", "2");
    w->lists[PROXIES] = SKS("pa-f-1", "Proxy", "2");
    await_owned(w, &o);
    assert_string_equal(o.name, "f-1");
    assert_int_equal(o.generation, 3);
    assert_int_equal(o.initial_scale, 2);
    assert_int_equal(o.min_scale, -1);
    assert_int_equal(o.activation_scale, -1);
    assert_int_equal(o.window_ms, 90000);
    assert_int_equal(o.retention_ms, -1);
    assert_true(o.unreachable && o.initialized);
    assert_int_equal(o.active, KUBE_FALSE);
    assert_int_equal(o.sks.proxied_since_ms - o.active_since_ms, 1000);
    assert_true(o.sks.exists && o.sks.proxied && o.sks.ready && !o.sks.serves);
    assert_string_equal(o.sks.metrics_service, "f-1-private");
    assert_string_equal(o.deployment, "f-1-deployment");
    assert_int_equal(o.replicas, 1);
    assert_int_equal(o.ready, 1);
}

/* What is on its way to sleep still has what it has. */
static void a_service_may_have_revisions_of_both_classes(void **state)
{
    struct world *w = *state;
    struct error err;
    w->lists[SCALERS] = CLAIMED "," SCALER("f-2", "", "3", "2");
    const struct kube_workload *f = await(w, "Service", "f", &err);
    assert_non_null(f);
    assert_true(f->owned);
    assert_int_equal(f->replicas_wanted, 1 + 3);
    struct kube_revision all[KUBE_MAX_REVISIONS];
    size_t n = kube_cache_revisions(w->cache, f, all);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(all[i].ours, strcmp(all[i].name, "f-1") == 0);
    /* Bounds are none of its business. */
    assert_int_equal(actuate_steer(w->fake.kube, all, n, 4, 8, on_done, w), 1);
    fake_run_until(&w->fake, w->answers == 1);
}

static void one_of_our_class_without_traffic_still_belongs_to_its_service(void **state)
{
    struct world *w = *state;
    struct error err;
    struct kube_revision all[KUBE_MAX_REVISIONS];
    w->lists[SERVICES] = ROUTED("{'revisionName':'f-2','percent':100}");
    w->lists[SCALERS] = CLAIMED "," SCALER("f-2", "", "3", "2");
    const struct kube_workload *f = await(w, "Service", "f", &err);
    assert_int_equal(kube_cache_revisions(w->cache, f, all), 2);
    assert_true(all[1].ours && all[1].percent == 0);
    assert_int_equal(f->replicas_wanted, 3);
    assert_false(f->owned);
}

static void a_proxy_that_is_late_or_foreign_is_not_believed(void **state)
{
    struct world *w = *state;
    struct kube_owned o;
    w->lists[SCALERS] = CLAIMED;
    w->lists[PROXIES] = SKS("pa-f-1", "Proxy", "1");
    await_owned(w, &o);
    assert_true(o.sks.exists && !o.sks.proxied && !o.sks.ready);
    tell(w, PROXIES, SKS("pa-f-1", "Serve", "2"));
    await_owned(w, &o);
    assert_true(o.sks.serves && !o.sks.proxied);
    tell(w, PROXIES, SKS("another", "Proxy", "2"));
    await_owned(w, &o);
    assert_true(o.sks.foreign && !o.sks.exists && !o.sks.proxied);
}

static void templates_are_told_with_who_set_their_class(void **state)
{
    struct world *w = *state;
    struct error err;
    struct kube_template t;
    size_t at = 0;
    w->lists[SERVICES] = "{" META(
        "f", "ks",
        ",'annotations':{'autoscaling.faasrl.io/owned':'true'}") ",'spec':{'template':{'metadata':{"
                                                                 "'annotations':{" OURS
                                                                 "}}}},'status':{'"
                                                                 "latestReadyRevisionName':'f-2'}}";
    w->lists[CONFIGURATIONS] =
        "{" META("f", "kc", BY("ks")) ",'status':{'latestReadyRevisionName':'f-2'}}";
    assert_true(kube_cache_template(w->cache, await(w, "Service", "f", &err), &t));
    assert_string_equal(t.class, "mpa.faasrl.io");
    assert_true(t.ours && t.alone && !t.made);
    assert_true(kube_cache_template(w->cache, await(w, "Configuration", "f", &err), &t));
    assert_string_equal(t.class, "");
    assert_true(!t.ours && t.made);
    assert_false(kube_cache_template(w->cache, await(w, "Revision", "f-1", &err), &t));
    assert_true(kube_cache_our_templates(w->cache, &at, &t));
    assert_string_equal(t.resource->kind, "Service");
    assert_false(kube_cache_our_templates(w->cache, &at, &t));
}

/* --- what an earlier controller has left ------------------------------------------------------ */
static void on_found(void *arg)
{
    struct world *w = arg;
    w->found++;
}

#define STEERED_SCALER(name)                                                                       \
    "{" META(name, "pa-" name,                                                                     \
             ",'annotations':{'autoscaling.faasrl.io/steered':'true',"                             \
             "'autoscaling.knative.dev/min-scale':'3'},'labels':{"                                 \
             "'serving.knative.dev/service':'f','serving.knative.dev/configuration':'c'}") "}"

static void nothing_is_followed_where_nothing_of_ours_is_left(void **state)
{
    struct world *w = *state;
    kube_cache_seek_left(w->cache, on_found, w);
    fake_run_until(&w->fake, w->asked == 1);
    int64_t began_ms = clock_mono_ms();
    fake_run_until(&w->fake, clock_mono_ms() - began_ms > 300);
    assert_int_equal(w->asked, 1);
    assert_int_equal(w->found, 0);
    for (int i = 0; i < KINDS; i++)
        assert_null(w->streams[i]);
    assert_true(kube_cache_rest(w->cache));
}

static void nothing_is_listed_where_there_is_no_knative(void **state)
{
    struct world *w = *state;
    w->absent = true;
    kube_cache_seek_left(w->cache, on_found, w);
    fake_run_until(&w->fake, w->looked == 1);
    int64_t began_ms = clock_mono_ms();
    fake_run_until(&w->fake, clock_mono_ms() - began_ms > 300);
    assert_int_equal(w->asked, 0);
}

static void bounds_that_are_left_are_told_with_whose_they_are(void **state)
{
    struct world *w = *state;
    struct kube_steered s;
    size_t at = 0;
    w->lists[SCALERS] = STEERED_SCALER("f-1") "," SCALER("f-2", "", "1", "1");
    kube_cache_seek_left(w->cache, on_found, w);
    fake_run_until(&w->fake, w->found == 1);
    fake_run_until(&w->fake, w->streams[SERVICES] && w->streams[CONFIGURATIONS] &&
                                 w->streams[REVISIONS] && w->streams[SCALERS]);
    assert_true(kube_cache_steered(w->cache, &at, &s));
    assert_string_equal(s.revision.name, "f-1");
    assert_string_equal(s.service, "f");
    assert_string_equal(s.configuration, "c");
    assert_int_equal(s.revision.own_min, -1);
    assert_false(kube_cache_steered(w->cache, &at, &s));
    assert_false(kube_cache_rest(w->cache));
    change(w, SCALERS, SCALER("f-1", "", "1", "1"));
    fake_run_until(&w->fake, kube_cache_rest(w->cache));
    assert_false(kube_cache_steered(w->cache, &(size_t){0}, &s));
}

/* Who asks again after a rest finds all anew. */
static void what_rests_is_followed_again_if_it_is_asked_for(void **state)
{
    struct world *w = *state;
    struct error err;
    assert_non_null(await(w, "Service", "f", &err));
    assert_true(kube_cache_rest(w->cache));
    assert_null(find(w, "Service", "f", &err));
    assert_int_equal(err.code, ERROR_BUSY);
    assert_false(kube_cache_rest(w->cache)); /* it is not known yet what is there */
    assert_non_null(await(w, "Service", "f", &err));
}

static void a_class_or_a_template_of_ours_is_no_time_to_rest(void **state)
{
    struct world *w = *state;
    struct error err;
    w->lists[SCALERS] = SCALER("f-1", "'autoscaling.knative.dev/class':'mpa.faasrl.io'", "1", "1");
    kube_cache_seek_left(w->cache, on_found, w);
    fake_run_until(&w->fake, w->found == 1);
    await(w, "Configuration", "f", &err);
    await(w, "Service", "f", &err);
    assert_false(kube_cache_rest(w->cache));
    tell(w, SCALERS, SCALER("f-1", "", "1", "1"));
    fake_run_until(&w->fake, kube_cache_rest(w->cache));
    w->lists[SCALERS] = "";
    w->lists[SERVICES] =
        "{" META("f", "ks", ",'annotations':{'autoscaling.faasrl.io/owned':'true'}") "}";
    await(w, "Service", "f", &err);
    assert_false(kube_cache_rest(w->cache));
}

/* --- bounds ----------------------------------------------------------------------------------- */
static void bounds_are_those_of_the_author_or_ours(void **state)
{
    static const struct {
        struct kube_revision revision;
        int replicas, most;
        struct actuate_bounds expected;
    } cases[] = {
        {{.percent = 100, .own_min = -1, .own_max = -1}, 3, 10, {3, 10, true}},
        {{.percent = 25, .own_min = -1, .own_max = -1}, 5, 12, {2, 3, true}}, /* 1.25 → 2 */
        {{.percent = 1, .own_min = -1, .own_max = -1}, 1, 10, {1, 1, true}},
        {{.percent = 100, .own_min = -1, .own_max = 2}, 3, 10, {2, 2, true}},    /* the author's */
        {{.percent = 100, .own_min = -1, .own_max = 0}, 3, 10, {3, 10, true}},   /* 0: no bound */
        {{.percent = 100, .own_min = -1, .own_max = -1}, 0, 10, {-1, 10, true}}, /* idle */
        {{.percent = 100, .own_min = 2, .own_max = -1}, 0, 10, {2, 10, true}},
        {{.percent = 100, .own_min = 4, .own_max = -1}, 0, 3, {3, 3, true}},
        {{.percent = 0, .own_min = 2, .own_max = -1}, 5, 10, {2, -1, false}}, /* left behind */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct actuate_bounds b;
        actuate_shares(&cases[i].revision, 1, cases[i].replicas, cases[i].most, &b);
        if (b.min != cases[i].expected.min || b.max != cases[i].expected.max ||
            b.steered != cases[i].expected.steered)
            fail_msg("case %zu: %d to %d", i, b.min, b.max);
    }
}

/* By largest remainder: whole parts first, then one each to who has lost most. */
static void replicas_are_dealt_by_the_share_of_traffic(void **state)
{
    static const struct {
        size_t count;
        int percent[10], replicas, most, min[10], max[10];
    } cases[] = {
        {2, {75, 25}, 4, 4, {3, 1}, {3, 1}},
        {2, {75, 25}, 3, 4, {2, 1}, {3, 1}},             /* 2.25 and 0.75 */
        {2, {50, 50}, 3, 9, {2, 1}, {5, 4}},             /* as many have lost: the first */
        {3, {40, 35, 25}, 10, 10, {4, 4, 2}, {4, 4, 2}}, /* 4, 3.5 and 2.5 */
        {3, {60, 0, 40}, 5, 5, {3, -1, 2}, {3, -1, 2}},
        {3, {75, 20, 5}, 2, 5, {1, 1, 1}, {3, 1, 1}}, /* each needs one to serve, */
        {3, {90, 5, 5}, 4, 4, {2, 1, 1}, {2, 1, 1}},  /* and there are four for all, */
        {10,
         {10, 10, 10, 10, 10, 10, 10, 10, 10, 10},
         4,
         4,
         {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, /* but not for ten */
         {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
        {2, {99, 1}, 1, 1, {1, 1}, {1, 1}},
        {2, {30, 30}, 10, 10, {3, 3}, {3, 3}}, /* the rest is of one that is not known yet */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_revision r[10];
        struct actuate_bounds b[10];
        size_t n = cases[i].count;
        for (size_t k = 0; k < n; k++)
            r[k] = (struct kube_revision){
                .percent = cases[i].percent[k], .own_min = -1, .own_max = -1};
        actuate_shares(r, n, cases[i].replicas, cases[i].most, b);
        for (size_t k = 0; k < n; k++)
            if (b[k].min != cases[i].min[k] || b[k].max != cases[i].max[k])
                fail_msg("case %zu, %zu: %d to %d", i, k, b[k].min, b[k].max);
    }
}

/* What comes of a decision must not look like another one, or each would lead to a larger one. */
static void what_is_dealt_is_dealt_so_again(void **state)
{
    (void)state;
    for (int first = 1; first < 98; first += 7)
        for (int n = 1; n <= 20; n++) {
            const struct kube_revision r[] = {
                {.percent = first, .own_min = -1, .own_max = n % 3 ? -1 : 2},
                {.percent = (100 - first) / 2, .own_min = -1, .own_max = -1},
                {.percent = 100 - first - (100 - first) / 2, .own_min = -1, .own_max = -1}};
            struct actuate_bounds b[3];
            int sum = 0;
            actuate_shares(r, 3, n, 40, b);
            for (int i = 0; i < 3; i++)
                sum += b[i].min;
            assert_true(b[0].min >= 1 && b[1].min >= 1 && b[2].min >= 1);
            assert_int_equal(sum, n > 3 ? n : 3);
        }
}

/* A min-scale of its author's needs room, also where the share is less. */
static void what_an_author_asks_for_has_room(void **state)
{
    const struct kube_revision r[] = {{.percent = 90, .own_min = -1, .own_max = -1},
                                      {.percent = 10, .own_min = 3, .own_max = -1}};
    struct actuate_bounds b[2];
    (void)state;
    actuate_shares(r, 2, 0, 10, b);
    assert_int_equal(b[1].min, 3);
    assert_int_equal(b[1].max, 3);
    assert_int_equal(b[0].max, 9);
}

/* Bounds that are the author's again though we have steered, where others are wanted. */
static void bounds_that_were_set_back_are_noticed(void **state)
{
    enum { NONE = -1, ALL = 100 };
    static const struct {
        int32_t percent, min, max, own_min, own_max;
        bool steered;
        int replicas;
        bool undone;
    } cases[] = {
        {ALL, NONE, NONE, NONE, NONE, false, 3, false},
        {ALL, NONE, NONE, NONE, NONE, true, 3, true},
        {ALL, 1, 2, 1, 2, true, 3, true},
        {ALL, 1, 2, 1, 2, true, 0, false},        /* idle */
        {ALL, 1, 10, NONE, NONE, true, 3, false}, /* somebody else's */
        {ALL, 3, 10, NONE, NONE, true, 3, false},
        {0, NONE, NONE, NONE, NONE, true, 3, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_revision r = {.percent = cases[i].percent,
                                  .min_scale = cases[i].min,
                                  .max_scale = cases[i].max,
                                  .own_min = cases[i].own_min,
                                  .own_max = cases[i].own_max,
                                  .steered = cases[i].steered};
        if (actuate_undone(&r, 1, cases[i].replicas, 10) != cases[i].undone)
            fail_msg("case %zu", i);
    }
}

static bool was_written(const struct world *w, const char *where, const char *what)
{
    cleanup_free char *body = fake_quoted(what);
    for (int i = 0; i < w->writes && i < 4; i++)
        if (strstr(w->written[i], where) && strstr(w->written[i], body))
            return true;
    return false;
}

#define PA_PATH "/apis/autoscaling.internal.knative.dev/v1alpha1/namespaces/s/podautoscalers/"

static void each_revision_gets_its_share_once(void **state)
{
    struct world *w = *state;
    struct error err;
    struct kube_revision all[KUBE_MAX_REVISIONS];
    const struct kube_workload *f = await(w, "Service", "f", &err);
    size_t n = kube_cache_revisions(w->cache, f, all);
    assert_int_equal(n, 2);
    assert_int_equal(actuate_steer(w->fake.kube, all, n, 4, 8, on_done, w), 2);
    fake_run_until(&w->fake, w->answers == 1);
    assert_int_equal(w->refusal.code, ERROR_NONE);
    assert_int_equal(w->writes, 2);
    assert_true(was_written(w, PA_PATH "f-2",
                            "{'metadata':{'annotations':{'autoscaling.knative.dev/min-scale':'3',"
                            "'autoscaling.knative.dev/max-scale':'6',"
                            "'autoscaling.faasrl.io/steered':'true'}}}"));
    assert_true(was_written(w, PA_PATH "f-1", "'autoscaling.knative.dev/min-scale':'1'"));
    /* As they are now, nothing is left to write. */
    for (size_t i = 0; i < n; i++) {
        all[i].min_scale = all[i].percent == 75 ? 3 : 1;
        all[i].max_scale = all[i].percent == 75 ? 6 : 2;
        all[i].steered = true;
    }
    assert_int_equal(actuate_steer(w->fake.kube, all, n, 4, 8, on_done, w), 0);
    assert_int_equal(w->answers, 2);
}

static void handing_back_leaves_what_the_author_asked_for(void **state)
{
    struct world *w = *state;
    struct kube_revision all[] = {
        {.namespace_ = "s", .name = "f-1", .own_min = -1, .own_max = -1, .steered = true},
        {.namespace_ = "s", .name = "f-2", .own_min = 1, .own_max = -1, .steered = true},
        {.namespace_ = "s", .name = "f-3", .own_min = 1, .own_max = -1},
    };
    actuate_hand_back(w->fake.kube, all, ARRAY_LEN(all), on_done, w);
    fake_run_until(&w->fake, w->answers == 1);
    assert_int_equal(w->writes, 2);
    assert_true(was_written(w, PA_PATH "f-1",
                            "{'autoscaling.knative.dev/min-scale':null,"
                            "'autoscaling.knative.dev/max-scale':null,"
                            "'autoscaling.faasrl.io/steered':null}"));
    assert_true(was_written(w, PA_PATH "f-2", "'autoscaling.knative.dev/min-scale':'1'"));
}

static void a_refusal_is_told(void **state)
{
    struct world *w = *state;
    struct kube_revision one = {
        .namespace_ = "s", .name = "f-1", .percent = 100, .own_min = -1, .own_max = -1};
    w->patch_status = 403;
    actuate_steer(w->fake.kube, &one, 1, 2, 4, on_done, w);
    fake_run_until(&w->fake, w->answers == 1);
    assert_int_equal(w->refusal.code, ERROR_FORBIDDEN);
    assert_non_null(strstr(w->refusal.message, "webhook says no"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_service_has_the_pods_of_all_it_routes_to),
        TEST(a_configuration_is_its_newest_revision),
        TEST(what_a_configuration_held_before_is_its_own_again),
        TEST(a_revision_is_itself),
        TEST(traffic_that_moves_is_followed),
        TEST(a_hundred_revisions_are_one_service),
        TEST(more_than_can_be_are_told),
        TEST(what_is_not_there_or_not_ours_is_told),
        TEST(our_floor_is_what_is_wanted),
        TEST(one_of_our_class_is_told_with_all_that_belongs_to_it),
        TEST(a_service_may_have_revisions_of_both_classes),
        TEST(one_of_our_class_without_traffic_still_belongs_to_its_service),
        TEST(a_proxy_that_is_late_or_foreign_is_not_believed),
        TEST(templates_are_told_with_who_set_their_class),
        TEST(nothing_is_followed_where_nothing_of_ours_is_left),
        TEST(nothing_is_listed_where_there_is_no_knative),
        TEST(bounds_that_are_left_are_told_with_whose_they_are),
        TEST(what_rests_is_followed_again_if_it_is_asked_for),
        TEST(a_class_or_a_template_of_ours_is_no_time_to_rest),
        cmocka_unit_test(bounds_are_those_of_the_author_or_ours),
        cmocka_unit_test(replicas_are_dealt_by_the_share_of_traffic),
        cmocka_unit_test(what_is_dealt_is_dealt_so_again),
        cmocka_unit_test(what_an_author_asks_for_has_room),
        cmocka_unit_test(bounds_that_were_set_back_are_noticed),
        TEST(each_revision_gets_its_share_once),
        TEST(handing_back_leaves_what_the_author_asked_for),
        TEST(a_refusal_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
