#include "kube_fake.h"

#include <malloc.h>

/* --- projections ---------------------------------------------------------------------------------
 * A pod as kubectl get -o json shows it on a 1.34 cluster during a resize, without managedFields.
 */
static const char resized_pod[] =
    "{'apiVersion':'v1','kind':'Pod','metadata':{'creationTimestamp':'2026-01-02T03:04:05Z',"
    "'generateName':'web-5d9c7b8f6-','generation':2,'labels':{'app':'web'},"
    "'name':'web-5d9c7b8f6-x2x4q','namespace':'shop','ownerReferences':[{'apiVersion':'apps/v1',"
    "'kind':'ReplicaSet','name':'web-5d9c7b8f6','controller':true,"
    "'uid':'9f5c3c4e-6a1e-4c39-9a77-000000000001'}],'resourceVersion':'4711',"
    "'uid':'0b0f6d2c-4a56-4b8e-8c55-000000000002'},'spec':{'containers':[{'image':'web:1',"
    "'name':'web','resizePolicy':[{'resourceName':'cpu','restartPolicy':'NotRequired'},"
    "{'resourceName':'memory','restartPolicy':'RestartContainer'}],'resources':{'limits':"
    "{'cpu':'2','memory':'256Mi'},'requests':{'cpu':'1500m','memory':'128Mi'}}},"
    "{'image':'log:1','name':'log','resources':{}}],'initContainers':[{'name':'mesh',"
    "'restartPolicy':'Always','resources':{'requests':{'cpu':'10m'}}}],'restartPolicy':'Always'},"
    "'status':{'conditions':[{'lastTransitionTime':'2026-01-02T03:05:00Z',"
    "'message':'Node didn\\u0027t have enough capacity: cpu, requested: 1500, capacity: 1000',"
    "'reason':'Infeasible','status':'True','type':'PodResizePending'},"
    "{'lastTransitionTime':'2026-01-02T03:04:10Z','status':'True','type':'Ready'}],"
    "'containerStatuses':[{'name':'log','ready':true,'resources':{},'restartCount':0},"
    "{'allocatedResources':{'cpu':'500m','memory':'128Mi'},'name':'web','ready':true,"
    "'resources':{'limits':{'cpu':'1','memory':'256Mi'},'requests':{'cpu':'500m',"
    "'memory':'128Mi'}},'restartCount':3}],'phase':'Running','qosClass':'Burstable',"
    "'startTime':'2026-01-02T03:04:06Z'}}";

/* JSON with ' for ", so that it can be read here. */
static json_t *json_of(const char *text)
{
    cleanup_free char *copy = xstrdup(text);
    json_error_t why;
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *value = json_loads(copy, 0, &why);
    if (!value)
        fail_msg("%s", why.text);
    return value;
}

static struct kube_pod *pod_of_text(const char *text)
{
    cleanup_json json_t *object = json_of(text);
    return kube_pod_from_json(object);
}

static void a_pod_is_read(void **state)
{
    (void)state;
    struct kube_pod *pod = pod_of_text(resized_pod);
    assert_non_null(pod);
    assert_string_equal(pod->namespace_, "shop");
    assert_string_equal(pod->name, "web-5d9c7b8f6-x2x4q");
    assert_string_equal(pod->uid, "0b0f6d2c-4a56-4b8e-8c55-000000000002");
    assert_string_equal(pod->owner_uid, "9f5c3c4e-6a1e-4c39-9a77-000000000001");
    assert_int_equal(pod->created_ms, 1767323045000); /* date -d 2026-01-02T03:04:05Z +%s */
    assert_int_equal(pod->started_ms, 1767323046000);
    assert_int_equal(pod->ready_changed_ms, 1767323050000);
    assert_true(pod->ready);
    assert_false(pod->deleting);
    assert_int_equal(pod->phase, KUBE_RUNNING);
    assert_int_equal(pod->qos, KUBE_QOS_BURSTABLE);
    assert_int_equal(pod->resize, KUBE_RESIZE_INFEASIBLE);
    assert_string_equal(pod->resize_message, "Node didn't have enough capacity: cpu, requested: "
                                             "1500, capacity: 1000");
    assert_int_equal(pod->container_count, 2); /* the sidecar is not one of ours */
    kube_pod_free(pod);
}

static void containers_are_read(void **state)
{
    (void)state;
    struct kube_pod *pod = pod_of_text(resized_pod);
    const struct kube_container *web = &pod->containers[0], *log = &pod->containers[1];
    assert_string_equal(web->name, "web");
    assert_int_equal(web->requests.cpu_milli, 1500);
    assert_int_equal(web->requests.memory_bytes, 128 << 20);
    assert_int_equal(web->limits.cpu_milli, 2000);
    assert_int_equal(web->limits.memory_bytes, 256 << 20);
    assert_int_equal(web->actual_requests.cpu_milli, 500);
    assert_int_equal(web->actual_limits.cpu_milli, 1000);
    assert_int_equal(web->actual_limits.memory_bytes, 256 << 20);
    assert_int_equal(web->restarts, 3);
    assert_false(web->cpu_resize_restarts);
    assert_true(web->memory_resize_restarts);
    assert_string_equal(log->name, "log");
    assert_true(log->requests.cpu_milli == KUBE_ABSENT);
    assert_true(log->limits.memory_bytes == KUBE_ABSENT);
    assert_true(log->actual_requests.cpu_milli == KUBE_ABSENT);
    assert_false(log->memory_resize_restarts);
    kube_pod_free(pod);
}

#define META "'metadata':{'uid':'u','name':'n','namespace':'s'}"

static void resize_states(void **state)
{
    (void)state;
    static const struct {
        const char *conditions;
        enum kube_resize resize;
    } cases[] = {
        {"", KUBE_RESIZE_NONE},
        {"{'type':'PodResizePending','status':'True','reason':'Deferred'}", KUBE_RESIZE_DEFERRED},
        {"{'type':'PodResizePending','status':'False','reason':'Deferred'}", KUBE_RESIZE_NONE},
        {"{'type':'PodResizeInProgress','status':'True'}", KUBE_RESIZE_IN_PROGRESS},
        {"{'type':'PodResizeInProgress','status':'True','reason':'Error'}", KUBE_RESIZE_ERROR},
        {"{'type':'PodResizeInProgress','status':'True'},{'type':'PodResizePending',"
         "'status':'True','reason':'Infeasible'}",
         KUBE_RESIZE_INFEASIBLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text =
            xasprintf("{" META ",'status':{'conditions':[%s]}}", cases[i].conditions);
        struct kube_pod *pod = pod_of_text(text);
        assert_int_equal(pod->resize, cases[i].resize);
        assert_null(pod->resize_message);
        kube_pod_free(pod);
    }
}

/* The classes that the Kubernetes documentation gives for such pods. */
static void quality_of_service_is_computed_where_it_is_not_told(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        enum kube_qos qos;
    } cases[] = {
        {"'containers':[{'name':'a'}]", KUBE_QOS_BEST_EFFORT},
        {"'containers':[{'name':'a','resources':{'requests':{'cpu':'0'}}}]", KUBE_QOS_BEST_EFFORT},
        {"'containers':[{'name':'a','resources':{'requests':{'cpu':'1'}}}]", KUBE_QOS_BURSTABLE},
        {"'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'1Gi'},"
         "'limits':{'cpu':'1000m','memory':'1024Mi'}}}]",
         KUBE_QOS_GUARANTEED},
        {"'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'1Gi'},"
         "'limits':{'cpu':'2','memory':'1Gi'}}}]",
         KUBE_QOS_BURSTABLE},
        {"'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'1Gi'},"
         "'limits':{'cpu':'1','memory':'1Gi'}}},{'name':'b'}]",
         KUBE_QOS_BURSTABLE},
        {"'containers':[{'name':'a','resources':{'requests':{'cpu':'1','memory':'1Gi'},"
         "'limits':{'cpu':'1','memory':'1Gi'}}}],'initContainers':[{'name':'i'}]",
         KUBE_QOS_BURSTABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = xasprintf("{" META ",'spec':{%s}}", cases[i].spec);
        struct kube_pod *pod = pod_of_text(text);
        assert_int_equal(pod->qos, cases[i].qos);
        kube_pod_free(pod);
    }
}

static void phases_and_poor_pods(void **state)
{
    (void)state;
    static const struct {
        const char *phase;
        enum kube_phase expect;
    } cases[] = {{"Pending", KUBE_PENDING},
                 {"Running", KUBE_RUNNING},
                 {"Succeeded", KUBE_FINISHED},
                 {"Failed", KUBE_FINISHED}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = xasprintf("{" META ",'status':{'phase':'%s'}}", cases[i].phase);
        struct kube_pod *pod = pod_of_text(text);
        assert_int_equal(pod->phase, cases[i].expect);
        assert_string_equal(pod->owner_uid, "");
        assert_int_equal(pod->created_ms, 0);
        kube_pod_free(pod);
    }
    assert_null(pod_of_text("{}"));
    assert_null(pod_of_text("[]"));
    assert_null(pod_of_text("{'metadata':{'name':'n'}}"));
    assert_null(pod_of_text("{'metadata':{'uid':'u','name':7}}"));
    assert_null(pod_of_text("{'metadata':{'name':'n','uid':'"
                            "0123456789012345678901234567890123456789'}}"));
    struct kube_pod *odd = pod_of_text(
        "{" META ",'spec':{'containers':[7,{'name':[]},{'name':'x','resources':{'requests':"
        "{'cpu':'much','memory':{}}}}]},'status':{'conditions':{},'containerStatuses':'none'}}");
    assert_int_equal(odd->container_count, 3);
    assert_true(odd->containers[2].requests.cpu_milli == KUBE_ABSENT);
    kube_pod_free(odd);
}

/* --- a cluster -------------------------------------------------------------------------------- */
static const char *const plurals[] = {"pods",
                                      "deployments",
                                      "statefulsets",
                                      "replicasets",
                                      "horizontalpodautoscalers",
                                      "scaledobjects",
                                      "verticalpodautoscalers"};
enum { PODS, DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, HPAS, SCALED_OBJECTS, VPAS, KINDS };

struct world {
    struct fake fake;
    struct kube_cache *cache;
    char *lists[KINDS]; /* the items; NULL: the kind does not exist */
    char *(*make_page)(struct world *w, const char *target);
    struct fake_conn *streams[KINDS];
    int listed[KINDS];
    char log[4096];
    bool stop_at_pod;
};

static void note(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct world *w, const char *fmt, ...)
{
    size_t at = strlen(w->log);
    va_list args;
    va_start(args, fmt);
    vsnprintf(w->log + at, sizeof(w->log) - at, fmt, args);
    va_end(args);
}

static void on_pod(void *arg, const struct kube_pod *pod, bool deleted)
{
    struct world *w = arg;
    const struct kube_workload *owner = kube_cache_owner(w->cache, pod);
    (void)owner;
    note(w, "%c%s ", deleted ? '-' : '+', pod->name);
    if (w->stop_at_pod) {
        kube_cache_stop(w->cache);
        w->cache = NULL;
    }
}

static void on_workload(void *arg, const struct kube_workload *workload, bool deleted)
{
    note(arg, "%c%s/%s ", deleted ? '-' : '+', workload->kind, workload->name);
}

static void on_request(void *arg, const struct fake_request *r)
{
    struct world *w = arg;
    int kind = 0;
    for (int i = 0; i < KINDS; i++) {
        cleanup_free char *path = xasprintf("/%s?", plurals[i]);
        if (strstr(r->target, path))
            kind = i;
    }
    if (strstr(r->target, "watch=1")) {
        w->streams[kind] = r->conn;
        fake_stream_begin(r->conn);
        return;
    }
    w->listed[kind]++;
    if (kind == PODS && w->make_page) {
        cleanup_free char *page = w->make_page(w, r->target);
        fake_reply(r->conn, 200, "", page);
        return;
    }
    if (!w->lists[kind]) {
        fake_reply(r->conn, 404, "", "404 page not found\n");
        return;
    }
    cleanup_free char *body =
        xasprintf("{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[%s]}", w->lists[kind]);
    fake_reply(r->conn, 200, "", body);
}

static void set_list(struct world *w, int kind, const char *items)
{
    free(w->lists[kind]);
    w->lists[kind] = fake_quoted(items);
}

static struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    for (int i = 0; i < SCALED_OBJECTS; i++)
        set_list(w, i, "");
    fake_start(&w->fake, NULL);
    return w;
}

static void world_sync(struct world *w, const char *const *namespaces)
{
    struct kube_cache_options options = {
        .namespaces = namespaces, .on_pod = on_pod, .on_workload = on_workload, .arg = w};
    w->cache = kube_cache_start(w->fake.kube, &options);
    assert_false(kube_cache_synced(w->cache));
    fake_run_until(&w->fake, w->cache == NULL || kube_cache_synced(w->cache));
}

static void world_free(struct world *w)
{
    kube_cache_stop(w->cache);
    fake_stop(&w->fake);
    for (int i = 0; i < KINDS; i++)
        free(w->lists[i]);
    free(w);
}

static void tell(struct world *w, int kind, const char *type, const char *object)
{
    cleanup_free char *text = xasprintf("{'type':'%s','object':%s}\n", type, object);
    cleanup_free char *line = fake_quoted(text);
    fake_run_until(&w->fake, w->streams[kind]);
    fake_stream_write(w->streams[kind], line);
}

#define POD(name, ns, uid, owner)                                                                  \
    "{'metadata':{'name':'" name "','namespace':'" ns "','uid':'" uid "','resourceVersion':'9'"    \
    ",'ownerReferences':[{'kind':'X','name':'x','uid':'" owner "','controller':true}]}}"
#define OWNED(name, uid, kind, owner_name, owner, replicas)                                        \
    "{'metadata':{'name':'" name "','namespace':'s','uid':'" uid "','resourceVersion':'9'"         \
    ",'ownerReferences':[{'kind':'" kind "','name':'" owner_name "','uid':'" owner                 \
    "','controller':true}]},'spec':{'replicas':" replicas                                          \
    ",'selector':{'matchLabels':{'app':'web'}}},'status':{'replicas':" replicas "}}"
#define TOP(name, uid, more)                                                                       \
    "{'metadata':{'name':'" name "','namespace':'s','uid':'" uid                                   \
    "','resourceVersion':'9'},'spec':{'selector':{'matchLabels':{'app':'" name "'}}" more "}}"

static struct world *shop(void)
{
    struct world *w = world_new();
    set_list(w, DEPLOYMENTS, TOP("web", "d1", ",'replicas':3"));
    set_list(w, STATEFUL_SETS, TOP("db", "s1", ""));
    set_list(w, REPLICA_SETS,
             OWNED("web-1", "r1", "Deployment", "web", "d1",
                   "0") "," OWNED("web-2", "r2", "Deployment", "web", "d1",
                                  "2") "," OWNED("roll-1", "r3", "Rollout", "roll", "x1", "0"));
    set_list(
        w, PODS,
        POD("p1", "s", "u1", "r2") "," POD("p2", "s", "u2", "r2") "," POD(
            "p3", "s", "u3", "r1") "," POD("db-0", "s", "u4",
                                           "s1") "," POD("evil", "other", "u5",
                                                         "r2") "," POD("roll-x", "s", "u6", "r3"));
    return w;
}

static const struct kube_workload *find(struct world *w, const char *kind, const char *namespace_,
                                        const char *name)
{
    struct error err = {0};
    struct kube_target target = {"apps/v1", kind, namespace_, name, NULL};
    const struct kube_workload *found = kube_cache_workload(w->cache, &target, &err);
    assert_true(found || err.code == ERROR_NOT_FOUND);
    return found;
}

static const struct kube_pod *pod_named(const struct kube_pod **pods, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(pods[i]->name, name) == 0)
            return pods[i];
    return NULL;
}

static void pods_are_found_by_their_workload(void **state)
{
    (void)state;
    struct world *w = shop();
    const struct kube_pod *pods[8];
    world_sync(w, NULL);
    const struct kube_workload *web = find(w, "Deployment", "s", "web");
    const struct kube_workload *db = find(w, "StatefulSet", "s", "db");
    assert_int_equal(kube_cache_pod_count(w->cache), 6);
    /* Through both ReplicaSets, also the old one; not from another namespace. */
    assert_int_equal(kube_cache_pods(w->cache, web, pods, ARRAY_LEN(pods)), 3);
    assert_ptr_equal(kube_cache_owner(w->cache, pod_named(pods, 3, "p1")), web);
    assert_ptr_equal(kube_cache_owner(w->cache, pod_named(pods, 3, "p3")), web);
    assert_int_equal(kube_cache_pods(w->cache, web, pods, 1), 3);
    assert_int_equal(kube_cache_pods(w->cache, web, NULL, 0), 3);
    assert_int_equal(kube_cache_pods(w->cache, db, pods, ARRAY_LEN(pods)), 1);
    assert_string_equal(pods[0]->name, "db-0");
    assert_ptr_equal(kube_cache_owner(w->cache, pods[0]), db);
    /* A ReplicaSet of somebody we do not know is the top. */
    const struct kube_workload *roll = find(w, "ReplicaSet", "s", "roll-1");
    assert_int_equal(kube_cache_pods(w->cache, roll, pods, ARRAY_LEN(pods)), 1);
    assert_ptr_equal(kube_cache_owner(w->cache, pods[0]), roll);
    assert_string_equal(roll->owner_kind, "Rollout");
    assert_null(find(w, "Deployment", "t", "web"));
    assert_null(kube_cache_trouble(w->cache));
    world_free(w);
}

static void workloads_are_read(void **state)
{
    (void)state;
    struct world *w = world_new();
    set_list(w, DEPLOYMENTS,
             "{'metadata':{'name':'a','namespace':'s','uid':'d1'},'spec':{'replicas':4,'selector':{"
             "'matchLabels':{'tier':'web','app':'x'},'matchExpressions':["
             "{'key':'zone','operator':'In','values':['e','d']},"
             "{'key':'canary','operator':'DoesNotExist'},{'key':'live','operator':'Exists'},"
             "{'key':'env','operator':'NotIn','values':['dev']}]}},'status':{'replicas':2}},"
             "{'metadata':{'name':'b','namespace':'s','uid':'d2'},'spec':{'selector':{"
             "'matchExpressions':[{'key':'x','operator':'Near','values':['y']}]}}}");
    world_sync(w, NULL);
    const struct kube_workload *a = find(w, "Deployment", "s", "a");
    const struct kube_workload *b = find(w, "Deployment", "s", "b");
    assert_int_equal(a->replicas_wanted, 4);
    assert_int_equal(a->replicas, 2);
    /* LabelSelectorAsSelector sorts by key. */
    assert_string_equal(a->selector, "app=x,!canary,env notin (dev),live,tier=web,zone in (d,e)");
    assert_null(a->owner_kind);
    assert_int_equal(b->replicas_wanted, 1);
    assert_null(b->selector); /* not understood, and not taken for "everything" */
    world_free(w);
}

static void changes_follow(void **state)
{
    (void)state;
    struct world *w = shop();
    const struct kube_pod *pods[8];
    world_sync(w, NULL);
    w->log[0] = '\0';
    tell(w, PODS, "ADDED", POD("p9", "s", "u9", "r1"));
    fake_run_until(&w->fake, strstr(w->log, "+p9"));
    tell(w, PODS, "DELETED", POD("p1", "s", "u1", "r2"));
    fake_run_until(&w->fake, strstr(w->log, "-p1"));
    tell(w, PODS, "MODIFIED", POD("p2", "s", "u2", "s1"));
    fake_run_until(&w->fake, strstr(w->log, "+p2"));
    const struct kube_workload *web = find(w, "Deployment", "s", "web");
    assert_int_equal(kube_cache_pods(w->cache, web, pods, 8), 2);
    assert_non_null(pod_named(pods, 2, "p3"));
    assert_non_null(pod_named(pods, 2, "p9"));
    /* The old ReplicaSet is scaled up and the new one to zero: a rollback. */
    tell(w, REPLICA_SETS, "MODIFIED", OWNED("web-1", "r1", "Deployment", "web", "d1", "2"));
    fake_run_until(&w->fake, strstr(w->log, "+ReplicaSet/web-1"));
    assert_non_null(find(w, "ReplicaSet", "s", "web-1"));
    tell(w, REPLICA_SETS, "MODIFIED", OWNED("web-2", "r2", "Deployment", "web", "d1", "0"));
    fake_run_until(&w->fake, strstr(w->log, "+ReplicaSet/web-2"));
    assert_int_equal(kube_cache_pods(w->cache, web, pods, 8), 2);
    tell(w, REPLICA_SETS, "DELETED", OWNED("web-2", "r2", "Deployment", "web", "d1", "0"));
    fake_run_until(&w->fake, strstr(w->log, "-ReplicaSet/web-2"));
    tell(w, DEPLOYMENTS, "DELETED", TOP("web", "d1", ""));
    fake_run_until(&w->fake, strstr(w->log, "-Deployment/web"));
    assert_null(find(w, "Deployment", "s", "web"));
    world_free(w);
}

/* What vanished while we were not connected is told as deleted when the list is complete. */
static void a_new_list_sweeps(void **state)
{
    (void)state;
    struct world *w = shop();
    world_sync(w, NULL);
    fake_run_until(&w->fake, w->streams[PODS]);
    w->log[0] = '\0';
    set_list(w, PODS, POD("p1", "s", "u1", "r2") "," POD("p3", "s", "u7", "r1"));
    tell(w, PODS, "ERROR", "{'code':410}");
    fake_run_until(&w->fake, w->listed[PODS] == 2 && kube_cache_pod_count(w->cache) == 2);
    assert_non_null(strstr(w->log, "+p1 "));
    assert_null(strstr(w->log, "-p1 "));
    assert_non_null(strstr(w->log, "-p2 "));
    assert_non_null(strstr(w->log, "+p3 ")); /* a new one of the same name, and the old one */
    assert_non_null(strstr(w->log, "-p3 "));
    assert_non_null(strstr(w->log, "-db-0 "));
    world_free(w);
}

static void other_autoscalers_are_seen(void **state)
{
    (void)state;
    struct world *w = world_new();
    set_list(w, HPAS,
             "{'metadata':{'name':'h','namespace':'s','uid':'h1'},'spec':{'scaleTargetRef':{"
             "'kind':'Deployment','name':'web'}}},"
             "{'metadata':{'name':'keda-hpa-k','namespace':'s','uid':'h2','ownerReferences':[{"
             "'apiVersion':'keda.sh/v1alpha1','kind':'ScaledObject','name':'k','uid':'k1',"
             "'controller':true}]},'spec':{'scaleTargetRef':{'kind':'Deployment','name':'q'}}}");
    set_list(w, SCALED_OBJECTS,
             "{'metadata':{'name':'k2','namespace':'s','uid':'k2','annotations':{"
             "'autoscaling.keda.sh/paused':'true'}},'spec':{'scaleTargetRef':{'name':'idle'}}}");
    set_list(w, VPAS,
             "{'metadata':{'name':'v','namespace':'s','uid':'v1'},'spec':{'targetRef':{"
             "'kind':'Deployment','name':'big'}}},"
             "{'metadata':{'name':'off','namespace':'s','uid':'v2'},'spec':{'targetRef':{"
             "'kind':'Deployment','name':'small'},'updatePolicy':{'updateMode':'Off'}}}");
    world_sync(w, NULL);
    const struct kube_scaler *s = kube_cache_scaler(w->cache, "Deployment", "s", "web", true, true);
    assert_string_equal(s->kind, "HorizontalPodAutoscaler");
    assert_string_equal(s->name, "h");
    assert_null(kube_cache_scaler(w->cache, "Deployment", "s", "web", false, true));
    assert_null(kube_cache_scaler(w->cache, "Deployment", "t", "web", true, true));
    assert_null(kube_cache_scaler(w->cache, "StatefulSet", "s", "web", true, true));
    s = kube_cache_scaler(w->cache, "Deployment", "s", "q", true, false);
    assert_string_equal(s->kind, "ScaledObject");
    assert_string_equal(s->name, "k");
    s = kube_cache_scaler(w->cache, "Deployment", "s", "idle", true, false);
    assert_string_equal(s->kind, "ScaledObject");
    assert_string_equal(s->name, "k2");
    s = kube_cache_scaler(w->cache, "Deployment", "s", "big", false, true);
    assert_string_equal(s->kind, "VerticalPodAutoscaler");
    assert_null(kube_cache_scaler(w->cache, "Deployment", "s", "big", true, false));
    assert_null(kube_cache_scaler(w->cache, "Deployment", "s", "small", true, true));
    world_free(w);
}

static void namespaces_are_watched_one_by_one(void **state)
{
    (void)state;
    struct world *w = world_new();
    static const char *const namespaces[] = {"s", "t", NULL};
    world_sync(w, namespaces);
    for (int i = 0; i < KINDS; i++)
        assert_int_equal(w->listed[i], 2);
    world_free(w);
}

static void the_cache_may_be_stopped_inside_a_callback(void **state)
{
    (void)state;
    struct world *w = shop();
    w->stop_at_pod = true;
    world_sync(w, NULL);
    assert_null(w->cache);
    world_free(w);
}

/* --- memory --------------------------------------------------------------------------------------
 * 10,000 pods such as a service mesh makes: two containers, 3.5 KB of JSON each. */
static char *env_print(int n)
{
    cleanup_buf struct buf out;
    buf_init(&out, 65536);
    for (int i = 0; i < n; i++)
        assert_int_equal(buf_printf(&out, "%s{'name':'SETTING_NUMBER_%d','value':'value-%d'}",
                                    i ? "," : "", i, i * 7919),
                         0);
    return buf_take(&out);
}

static char *full_pod(int n)
{
    cleanup_free char *env = env_print(24);
    return xasprintf(
        "{'metadata':{'name':'checkout-service-%08x-%05x','generateName':'checkout-service-',"
        "'namespace':'production-%d','uid':'%08x-1111-4222-8333-444455556666',"
        "'resourceVersion':'%d','creationTimestamp':'2026-01-02T03:04:05Z','labels':{"
        "'app.kubernetes.io/name':'checkout','pod-template-hash':'%08x'},'annotations':{"
        "'prometheus.io/scrape':'true','prometheus.io/port':'9090'},'ownerReferences':[{"
        "'apiVersion':'apps/v1','kind':'ReplicaSet','name':'checkout-service-%08x','uid':"
        "'%08x-9999-4222-8333-444455556666','controller':true,'blockOwnerDeletion':true}],"
        "'managedFields':[{'manager':'kube-controller-manager','operation':'Update','apiVersion':"
        "'v1','fieldsType':'FieldsV1','fieldsV1':{'f:metadata':{'f:labels':{'.':{},'f:app':{}}}}}]"
        "},'spec':{'containers':[{'name':'app','image':'example/checkout:1.2.3','env':[%s],"
        "'ports':[{'containerPort':8080,'protocol':'TCP'}],'resources':{'requests':{'cpu':'250m',"
        "'memory':'256Mi'},'limits':{'cpu':'1','memory':'512Mi'}},'volumeMounts':[{'name':"
        "'kube-api-access','readOnly':true,'mountPath':'/var/run/secrets'}]},{'name':'proxy',"
        "'image':'example/proxy:4','resources':{'requests':{'cpu':'100m','memory':'128Mi'}}}],"
        "'restartPolicy':'Always','terminationGracePeriodSeconds':30,'nodeName':'node-%d',"
        "'tolerations':[{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':"
        "'NoExecute','tolerationSeconds':300}]},'status':{'phase':'Running','qosClass':'Burstable',"
        "'podIP':'10.0.%d.%d','startTime':'2026-01-02T03:04:06Z','conditions':[{'type':'Ready',"
        "'status':'True','lastTransitionTime':'2026-01-02T03:04:10Z'},{'type':'PodScheduled',"
        "'status':'True','lastTransitionTime':'2026-01-02T03:04:05Z'}],'containerStatuses':[{"
        "'name':'app','state':{'running':{'startedAt':'2026-01-02T03:04:07Z'}},'ready':true,"
        "'restartCount':0,'image':'example/checkout:1.2.3','imageID':'sha256:%064d',"
        "'containerID':'containerd://%064d','started':true,'resources':{'requests':{'cpu':'250m',"
        "'memory':'256Mi'},'limits':{'cpu':'1','memory':'512Mi'}}},{'name':'proxy','state':{"
        "'running':{'startedAt':'2026-01-02T03:04:07Z'}},'ready':true,'restartCount':0,'imageID':"
        "'sha256:%064d','containerID':'containerd://%064d','started':true}]}}",
        n / 50, n, n % 40, n, n + 1, n / 50, n / 50, n / 50, env, n % 100, n / 256 % 256, n % 256,
        n, n, n, n);
}

#define MANY      10000
#define PAGE_SIZE 100

static char *many_page(struct world *w, const char *target)
{
    (void)w;
    const char *at = strstr(target, "continue=");
    int first = at ? (int)strtol(at + 9, NULL, 10) : 0;
    cleanup_buf struct buf out;
    buf_init(&out, (size_t)1 << 24);
    assert_int_equal(buf_printf(&out, "{'metadata':{'resourceVersion':'1'"), 0);
    if (first + PAGE_SIZE < MANY)
        assert_int_equal(buf_printf(&out, ",'continue':'%d'", first + PAGE_SIZE), 0);
    assert_int_equal(buf_puts(&out, "},'items':["), 0);
    for (int i = first; i < first + PAGE_SIZE; i++) {
        cleanup_free char *pod = full_pod(i);
        assert_int_equal(buf_printf(&out, "%s%s", i > first ? "," : "", pod), 0);
    }
    assert_int_equal(buf_puts(&out, "]}"), 0);
    return fake_quoted(buf_string(&out));
}

static void ten_thousand_pods_take_little_memory(void **state)
{
    (void)state;
    struct world *w = world_new();
    world_sync(w, NULL); /* what the client itself needs is there before we measure */
    kube_cache_stop(w->cache);
    w->make_page = many_page;
    w->log[0] = '\0';
    size_t before = mallinfo2().uordblks;
    world_sync(w, NULL);
    size_t after = mallinfo2().uordblks;
    cleanup_free char *one = full_pod(1);
    size_t bytes = kube_cache_bytes(w->cache);
    assert_int_equal(kube_cache_pod_count(w->cache), MANY);
    print_message("  JSON %zu bytes a pod; cache %zu, malloc %zd\n", strlen(one), bytes / MANY,
                  ((ssize_t)after - (ssize_t)before) / MANY);
    assert_in_range(strlen(one), 3300, 3900);
    assert_in_range(bytes / MANY, 200, 1024);
    assert_true((ssize_t)after - (ssize_t)before <= 1024 * MANY);
    /* Every pod's owner is a ReplicaSet with 50 pods, in 40 namespaces. */
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_read),
        cmocka_unit_test(containers_are_read),
        cmocka_unit_test(resize_states),
        cmocka_unit_test(quality_of_service_is_computed_where_it_is_not_told),
        cmocka_unit_test(phases_and_poor_pods),
        cmocka_unit_test(pods_are_found_by_their_workload),
        cmocka_unit_test(workloads_are_read),
        cmocka_unit_test(changes_follow),
        cmocka_unit_test(a_new_list_sweeps),
        cmocka_unit_test(other_autoscalers_are_seen),
        cmocka_unit_test(namespaces_are_watched_one_by_one),
        cmocka_unit_test(the_cache_may_be_stopped_inside_a_callback),
        cmocka_unit_test(ten_thousand_pods_take_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
