/* The controller on a Kubernetes cluster: the world it sees through watches and Prometheus and acts
 * on through the API server, on the loop's time, while it holds the lease. */
#include "entry.h"
#include "shards.h"

#include <string.h>

/* Events of the cluster are gathered for this long before they are acted on. A new pod's container
 * starts within a second: what it is to have should be there before. */
#define SOON_MS 20
/* Writes that wait, at which status is left for the next pass. */
#define MOST_WAITING 500
/* How soon it is looked again whether all of the cluster is known. */
#define UNKNOWN_MS 100

/* --- the world ------------------------------------------------------------------------------- */
static bool synced(void *self)
{
    const struct live *live = self;
    for (size_t i = 0; i < live->scope_count; i++)
        if (!kube_watch_synced(live->scopes[i].watch))
            return false;
    return kube_cache_synced(live->cache);
}

static const struct kube_workload *find_workload(void *self, const struct kube_target *target,
                                                 struct error *err)
{
    const struct live *live = self;
    if (strcmp(target->api_version, KUBE_KNATIVE) == 0)
        owner_begin(live->owner);
    return kube_cache_workload(live->cache, target, err);
}

static size_t find_pods(void *self, const struct kube_workload *workload,
                        const struct kube_pod **out, size_t max)
{
    const struct live *live = self;
    return kube_cache_pods(live->cache, workload, out, max);
}

static const struct kube_scaler *find_scaler(void *self, const char *kind, const char *namespace_,
                                             const char *name, bool replicas, bool resources)
{
    const struct live *live = self;
    return kube_cache_scaler(live->cache, kind, namespace_, name, replicas, resources);
}

static void find_whole(void *self, const struct kube_target *target, struct kube_whole *out)
{
    const struct live *live = self;
    kube_cache_whole(live->cache, target, out);
}

static void collect(void *self, struct observe *observe, void (*on_done)(void *arg), void *arg)
{
    (void)self;
    observe_collect(observe, on_done, arg);
}

static void set_replicas(void *self, const struct kube_workload *workload,
                         const struct world_wish *wish, actuate_done on_done, void *arg)
{
    const struct live *live = self;
    struct kube_revision revisions[KUBE_MAX_REVISIONS];
    if (!kube_is_knative(workload)) {
        actuate_replicas(live->kube, workload, wish->replicas, on_done, arg);
        return;
    }
    struct actuate_gather *all = actuate_gather_new(on_done, arg);
    size_t count = kube_cache_revisions(live->cache, workload, revisions);
    actuate_steer(live->kube, revisions, count, wish->quiet_ms ? 0 : wish->replicas, wish->most,
                  actuate_gathered, actuate_gather_add(all));
    owner_set_replicas(live->owner, revisions, count, wish, actuate_gathered,
                       actuate_gather_add(all));
    actuate_gathered(all, NULL);
}

static bool undone(void *self, const struct kube_workload *workload, const struct world_wish *wish)
{
    const struct live *live = self;
    struct kube_revision revisions[KUBE_MAX_REVISIONS];
    size_t count = kube_cache_revisions(live->cache, workload, revisions);
    return actuate_undone(revisions, count, wish->quiet_ms ? 0 : wish->replicas, wish->most);
}

static int comes_to(void *self, const struct kube_workload *workload, int replicas, int most)
{
    const struct live *live = self;
    struct kube_revision revisions[KUBE_MAX_REVISIONS];
    struct actuate_bounds shares[KUBE_MAX_REVISIONS];
    int sum = 0;
    if (!kube_is_knative(workload))
        return replicas;
    size_t count = kube_cache_revisions(live->cache, workload, revisions);
    actuate_shares(revisions, count, replicas, most, shares);
    for (size_t i = 0; i < count; i++)
        sum += revisions[i].percent > 0 ? shares[i].min : 0;
    return sum;
}

static void on_handed_back(void *arg, const struct error *err)
{
    (void)arg;
    if (err)
        log_warn("bounds of a Revision could not be taken back", log_str("why", err->message));
}

static void hand_back(void *self, const struct kube_workload *workload)
{
    const struct live *live = self;
    struct kube_revision revisions[KUBE_MAX_REVISIONS];
    if (!kube_is_knative(workload))
        return;
    size_t count = kube_cache_revisions(live->cache, workload, revisions);
    actuate_hand_back(live->kube, revisions, count, on_handed_back, NULL);
}

static void resize(void *self, const struct kube_pod *pod, const json_t *patch,
                   actuate_done on_done, void *arg)
{
    const struct live *live = self;
    actuate_pod(live->kube, pod, patch, on_done, arg);
}

static void write_status(void *self, const struct api_mpa *mpa, const json_t *patch,
                         actuate_done on_done, void *arg)
{
    const struct live *live = self;
    cleanup_free char *path =
        xasprintf("/apis/" API_GROUP "/" API_VERSION "/namespaces/%s/" API_PLURAL "/%s/status",
                  mpa->namespace_, mpa->name);
    actuate_tell(live->kube, KUBE_PATCH_MERGE, path, patch, on_done, arg);
}

/* A body waits with its request: ten thousand would be 30 MB. */
static bool may_tell(void *self)
{
    const struct live *live = self;
    return kube_writes_queued(live->kube) < MOST_WAITING;
}

static void tell(void *self, const struct kube_event *event)
{
    const struct live *live = self;
    kube_event_send(live->kube, event);
}

static void on_soon(uv_timer_t *timer)
{
    const struct live *live = timer->data;
    controller_catch_up(live->controller);
}

static void wake(void *self, int64_t in_ms)
{
    struct live *live = self;
    uint64_t delay_ms = in_ms > SOON_MS ? (uint64_t)in_ms : SOON_MS;
    bool sooner =
        uv_is_active((uv_handle_t *)&live->soon) && uv_timer_get_due_in(&live->soon) <= delay_ms;
    if (!live->controller->stopping && !sooner)
        uv_timer_start(&live->soon, on_soon, delay_ms, 0);
}

static struct world world_of(struct live *live)
{
    return (struct world){
        .self = live,
        .synced = synced,
        .workload = find_workload,
        .pods = find_pods,
        .scaler = find_scaler,
        .whole = find_whole,
        .collect = collect,
        .set_replicas = set_replicas,
        .undone = undone,
        .comes_to = comes_to,
        .may_own = owner_may_own,
        .hand_back = hand_back,
        .resize = resize,
        .write_status = write_status,
        .may_tell = may_tell,
        .tell = tell,
        .load_policy = keep_load,
        .save_policy = keep_save,
        .drop_policy = keep_drop,
        .wake = wake,
    };
}

/* --- what the watches tell ------------------------------------------------------------------- */
static void on_pod(void *arg, const struct kube_pod *pod, bool deleted)
{
    const struct live *live = arg;
    const struct kube_workload *owner = deleted ? NULL : kube_cache_owner(live->cache, pod);
    owner_wake(live->owner);
    if (owner)
        controller_pods_changed(live->controller, owner);
}

static void on_workload(void *arg, const struct kube_workload *workload, bool deleted)
{
    const struct live *live = arg;
    (void)deleted;
    owner_wake(live->owner);
    controller_workload_changed(live->controller, workload);
}

static void on_owned(void *arg)
{
    const struct live *live = arg;
    owner_wake(live->owner);
}

static void on_mpa(void *arg, const json_t *object, bool deleted)
{
    struct scope *scope = arg;
    const char *namespace_ = json_str(json_path(object, "metadata", "namespace", NULL));
    if (!controller_has(scope->controller, namespace_))
        return;
    struct entry *e = controller_apply(scope->controller, object, deleted);
    if (e) {
        e->scope = scope;
        e->mark = scope->list_mark;
    }
}

static void on_list_begin(void *arg)
{
    struct scope *scope = arg;
    scope->list_mark++;
}

static void on_list_end(void *arg)
{
    struct scope *scope = arg;
    scope->listed = true;
    controller_forget_unmarked(scope->controller, scope);
    if (scope->controller->live->shards)
        controller_wake(scope->controller, 0); /* what is new could not be decided on before */
}

static void on_watch_state(void *arg, const struct error *err)
{
    struct scope *scope = arg;
    string_set(&scope->trouble, err ? err->message : NULL);
    if (err)
        log_warn("the watch of MPAs is interrupted", log_str("why", err->message));
    else
        log_info("the watch of MPAs works");
}

/* --- time ------------------------------------------------------------------------------------ */
static void on_left(void *arg)
{
    const struct live *live = arg;
    owner_begin(live->owner);
}

static void seek_left(struct live *live)
{
    if (live->sought)
        return;
    live->sought = true;
    kube_cache_seek_left(live->cache, on_left, live);
}

static void on_tick(uv_timer_t *timer)
{
    struct live *live = timer->data;
    struct controller *c = live->controller;
    if (!c->leading || c->stopping || observe_busy(c->observe))
        return;
    if (synced(live)) {
        seek_left(live);
        controller_pass(c);
    } else /* the first pass does not wait for an interval until all is known */
        uv_timer_start(timer, on_tick, UNKNOWN_MS, (uint64_t)(c->options.interval_s * 1000));
}

static void lead(struct live *live)
{
    struct controller *c = live->controller;
    c->leading = true;
    live->sought = false;
    uv_timer_start(&live->tick, on_tick, 0, (uint64_t)(c->options.interval_s * 1000));
}

static void on_lease(void *arg, bool leading)
{
    struct live *live = arg;
    struct controller *c = live->controller;
    log_info(leading ? "this replica leads" : "this replica no longer leads");
    if (leading) {
        lead(live);
        return;
    }
    c->leading = false;
    uv_timer_stop(&live->tick);
    c->options.on_lost(c->options.arg);
}

/* --- what is watched ------------------------------------------------------------------------- */
static void watch_mpas(struct scope *scope)
{
    const char *namespace_ = scope->namespace_;
    cleanup_free char *path =
        namespace_
            ? xasprintf("/apis/" API_GROUP "/" API_VERSION "/namespaces/%s/" API_PLURAL, namespace_)
            : xstrdup("/apis/" API_GROUP "/" API_VERSION "/" API_PLURAL);
    scope->watch =
        kube_watch_start(scope->controller->live->kube,
                         &(struct kube_watch_spec){.path = path,
                                                   .handler = {.on_object = on_mpa,
                                                               .on_list_begin = on_list_begin,
                                                               .on_list_end = on_list_end,
                                                               .on_state = on_watch_state},
                                                   .arg = scope});
}

static void start_watches(struct live *live, const char *const *names)
{
    size_t n = 0;
    while (names && names[n])
        n++;
    live->scope_count = n ? n : 1;
    live->scopes = xcalloc(live->scope_count, sizeof(*live->scopes));
    for (size_t i = 0; i < live->scope_count; i++) {
        live->scopes[i].controller = live->controller;
        live->scopes[i].namespace_ = n ? names[i] : NULL;
        watch_mpas(&live->scopes[i]);
    }
    live->cache =
        kube_cache_start(live->kube, &(struct kube_cache_options){.namespaces = names,
                                                                  .on_pod = on_pod,
                                                                  .on_workload = on_workload,
                                                                  .on_owned = on_owned,
                                                                  .arg = live});
}

/* --- shards ---------------------------------------------------------------------------------- */
bool controller_has(const struct controller *c, const char *namespace_)
{
    return !c->live || !c->live->shards || shards_has(c->live->shards, namespace_);
}

/* From a list that begins now: it has all that its last holder has written. */
static void on_taken(void *arg, unsigned shard)
{
    struct live *live = arg;
    (void)shard;
    for (size_t i = 0; i < live->scope_count; i++) {
        kube_watch_stop(live->scopes[i].watch);
        watch_mpas(&live->scopes[i]);
    }
    lead(live);
}

static void on_leaving(void *arg, unsigned shard)
{
    const struct live *live = arg;
    struct controller *c = live->controller;
    (void)shard;
    controller_leave(c);
    c->leading = shards_held(live->shards) > 0;
}

static void on_lost(void *arg)
{
    const struct live *live = arg;
    struct controller *c = live->controller;
    c->leading = false;
    c->options.on_lost(c->options.arg);
}

static void start_shards(struct live *live, uv_loop_t *loop)
{
    const struct controller_options *o = &live->controller->options;
    live->shards = shards_start(loop, live->kube,
                                &(struct shards_spec){.namespace_ = o->lease_namespace,
                                                      .name = o->lease_name,
                                                      .identity = o->identity,
                                                      .count = o->shards,
                                                      .on_taken = on_taken,
                                                      .on_leaving = on_leaving,
                                                      .on_lost = on_lost,
                                                      .arg = live});
}

/* --- life ------------------------------------------------------------------------------------ */
static void start_lease(struct live *live, const struct controller_options *options)
{
    live->lease = kube_lease_start(live->kube,
                                   &(struct kube_lease_spec){.namespace_ = options->lease_namespace,
                                                             .name = options->lease_name,
                                                             .identity = options->identity,
                                                             .on_change = on_lease,
                                                             .arg = live});
}

static void start_learner(struct live *live, uv_loop_t *loop)
{
    struct controller *c = live->controller;
    struct error err = {0};
    if (!c->options.general)
        return;
    c->learner = learner_new(loop, c->options.general, c->options.learn_effort, &err);
    if (!c->learner)
        log_error("nothing will be learned", log_str("why", err.message));
}

struct controller *controller_new(uv_loop_t *loop, struct kube *kube, struct observe *observe,
                                  const struct controller_options *options)
{
    struct live *live = xcalloc(1, sizeof(*live));
    struct world world = world_of(live);
    live->kube = kube;
    uv_timer_init(loop, &live->tick);
    uv_timer_init(loop, &live->soon);
    live->tick.data = live->soon.data = live;
    live->open_handles = 2;
    live->controller = controller_make(&world, observe, options, live);
    start_learner(live, loop);
    live->owner = owner_new(live, loop);
    start_watches(live, options->namespaces);
    if (options->shards > 1)
        start_shards(live, loop); /* nothing is called before we return */
    else if (options->leader_election)
        start_lease(live, options);
    else
        lead(live);
    return live->controller;
}

static void on_closed(uv_handle_t *handle)
{
    struct live *live = handle->data;
    if (--live->open_handles == 0)
        free(live);
}

void live_stop(struct live *live)
{
    owner_free(live->owner);
    live->owner = NULL;
    if (live->lease)
        kube_lease_stop(live->lease);
    shards_free(live->shards);
    for (size_t i = 0; i < live->scope_count; i++) {
        kube_watch_stop(live->scopes[i].watch);
        free(live->scopes[i].trouble);
    }
    free(live->scopes);
    kube_cache_stop(live->cache);
    uv_close((uv_handle_t *)&live->tick, on_closed);
    uv_close((uv_handle_t *)&live->soon, on_closed);
}
