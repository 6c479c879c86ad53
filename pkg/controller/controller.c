#include "controller/controller.h"
#include "entry.h"
#include "serve.h"

#include <string.h>

/* Events of the cluster are gathered for this long before they are acted on. */
#define SOON_MS 250

/* --- deciding -------------------------------------------------------------------------------- */
static bool can_decide(const struct controller *c)
{
    if (!c->leading || c->stopping || !kube_cache_synced(c->cache))
        return false;
    for (size_t i = 0; i < c->scope_count; i++)
        if (!kube_watch_synced(c->scopes[i].watch))
            return false;
    return observe_collected_ms(c->observe) > 0;
}

static void decide(struct controller *c, bool all)
{
    void *value;
    if (!can_decide(c))
        return;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (all || e->due)
            entry_decide(e);
    }
}

static void on_collected(void *arg)
{
    struct controller *c = arg;
    int64_t began_ms = clock_mono_ms();
    decide(c, true);
    report_pass_ended(c);
    log_debug("a pass is done", log_int("mpas", (int64_t)c->entries.count),
              log_int("ms", clock_mono_ms() - began_ms));
}

static void ask_own_queries(struct controller *c)
{
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (e->invalid || e->mpa.spec.latency_query == NULL)
            continue;
        const struct kube_workload *workload;
        struct observe_own_query own = {.key = e->key, .mpa = &e->mpa};
        const struct kube_pod **pods = entry_pods(e, &workload, &own.pod_count);
        own.pods = pods;
        if (workload)
            observe_add_own(c->observe, &own);
        free(pods);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct controller *c = timer->data;
    if (!c->leading || c->stopping || observe_busy(c->observe) || !kube_cache_synced(c->cache))
        return;
    report_pass_began(c);
    history_ask(c);
    ask_own_queries(c);
    observe_collect(c->observe, on_collected, c);
}

/* New pods get the size that was decided for the others at once, not at the next interval. */
static void on_soon(uv_timer_t *timer)
{
    struct controller *c = timer->data;
    void *value;
    decide(c, false);
    for (size_t i = 0; c->leading && (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (!e->may_act || !e->pods_changed)
            continue;
        e->pods_changed = false;
        const struct kube_workload *workload;
        size_t n;
        const struct kube_pod **pods = entry_pods(e, &workload, &n);
        struct actuate_report report;
        act_on_sizes(e, pods, n, &report);
        free(pods);
    }
}

static void soon(struct controller *c)
{
    if (!c->stopping && !uv_is_active((uv_handle_t *)&c->soon))
        uv_timer_start(&c->soon, on_soon, SOON_MS, 0);
}

/* --- what the watches tell ------------------------------------------------------------------- */
static void on_pod(void *arg, const struct kube_pod *pod, bool deleted)
{
    struct controller *c = arg;
    const struct kube_workload *owner = deleted ? NULL : kube_cache_owner(c->cache, pod);
    if (owner == NULL)
        return;
    cleanup_free char *target = xasprintf("%s/%s/%s", owner->namespace_, owner->kind, owner->name);
    struct entry *e = map_get(&c->by_target, target);
    if (e) {
        e->pods_changed = true;
        soon(c);
    }
}

static void on_workload(void *arg, const struct kube_workload *workload, bool deleted)
{
    struct controller *c = arg;
    cleanup_free char *target =
        xasprintf("%s/%s/%s", workload->namespace_, workload->kind, workload->name);
    struct entry *e = map_get(&c->by_target, target);
    (void)deleted;
    if (e && e->may_act == false) {
        e->due = true; /* the target it was waiting for may have come */
        soon(c);
    }
}

static char *target_of(const struct entry *e)
{
    return xasprintf("%s/%s/%s", e->mpa.namespace_, e->mpa.spec.target_kind,
                     e->mpa.spec.target_name);
}

/* Of several MPAs with one target, one that acts has it before one in mode Off, and the oldest of
 * these before the younger ones. */
static bool comes_before(const struct entry *a, const struct entry *b)
{
    bool a_off = a->mpa.spec.mode == API_MODE_OFF, b_off = b->mpa.spec.mode == API_MODE_OFF;
    if (a_off != b_off)
        return b_off;
    if (a->mpa.created_ms != b->mpa.created_ms)
        return a->mpa.created_ms < b->mpa.created_ms;
    return strcmp(a->key, b->key) < 0;
}

static void index_target(struct controller *c, struct entry *e)
{
    if (e->mpa.uid == NULL)
        return;
    cleanup_free char *target = target_of(e);
    const struct entry *holder = map_get(&c->by_target, target);
    if (holder == NULL || comes_before(e, holder))
        map_put(&c->by_target, target, e);
}

/* The next one in line takes its place. */
static void unindex(struct controller *c, const struct entry *e)
{
    if (e->mpa.uid == NULL)
        return;
    cleanup_free char *target = target_of(e);
    if (map_get(&c->by_target, target) != e)
        return;
    map_remove(&c->by_target, target);
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *other = value;
        if (other == e || other->mpa.uid == NULL)
            continue;
        cleanup_free char *its = target_of(other);
        if (strcmp(its, target) == 0)
            index_target(c, other);
    }
}

static void forget(struct controller *c, struct entry *e)
{
    log_info("an MPA is gone: its target is left as it is", log_str("mpa", e->key));
    unindex(c, e);
    map_remove(&c->entries, e->key);
    entry_remove(e);
}

static void on_mpa(void *arg, const json_t *object, bool deleted)
{
    struct scope *scope = arg;
    struct controller *c = scope->controller;
    cleanup_free char *key =
        xasprintf("%s/%s", json_str(json_path(object, "metadata", "namespace", NULL)),
                  json_str(json_path(object, "metadata", "name", NULL)));
    struct entry *e = map_get(&c->entries, key);
    const char *uid = json_str(json_path(object, "metadata", "uid", NULL));
    bool replaced = e && e->mpa.uid && strcmp(e->mpa.uid, uid) != 0;
    if (e && (deleted || replaced)) {
        forget(c, e);
        e = NULL;
    }
    if (deleted)
        return;
    if (e == NULL) {
        e = entry_new(c, key);
        map_put(&c->entries, key, e);
        log_info("an MPA is followed", log_str("mpa", key));
    }
    e->scope = scope;
    e->mark = scope->list_mark;
    unindex(c, e);
    entry_update(e, object);
    index_target(c, e);
    if (e->due)
        soon(c);
}

static void on_list_begin(void *arg)
{
    struct scope *scope = arg;
    scope->list_mark++;
}

static void on_list_end(void *arg)
{
    struct scope *scope = arg;
    struct controller *c = scope->controller;
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (e->scope != scope || e->mark == scope->list_mark)
            continue;
        unindex(c, e);
        i = map_remove_at(&c->entries, i);
        entry_remove(e);
    }
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

/* --- life
 * ------------------------------------------------------------------------------------------------
 */
static void lead(struct controller *c)
{
    c->leading = true;
    uv_timer_start(&c->tick, on_tick, 0, (uint64_t)(c->options.interval_s * 1000));
}

static void on_lease(void *arg, bool leading)
{
    struct controller *c = arg;
    log_info(leading ? "this replica leads" : "this replica no longer leads");
    if (leading) {
        lead(c);
        return;
    }
    c->leading = false;
    uv_timer_stop(&c->tick);
    c->options.on_lost(c->options.arg);
}

static void watch_mpas(struct scope *scope, const char *namespace_)
{
    cleanup_free char *path =
        namespace_
            ? xasprintf("/apis/" API_GROUP "/" API_VERSION "/namespaces/%s/" API_PLURAL, namespace_)
            : xstrdup("/apis/" API_GROUP "/" API_VERSION "/" API_PLURAL);
    scope->watch =
        kube_watch_start(scope->controller->kube,
                         &(struct kube_watch_spec){.path = path,
                                                   .handler = {.on_object = on_mpa,
                                                               .on_list_begin = on_list_begin,
                                                               .on_list_end = on_list_end,
                                                               .on_state = on_watch_state},
                                                   .arg = scope});
}

static void start_watches(struct controller *c)
{
    const char *const *names = c->options.namespaces;
    size_t n = 0;
    while (names && names[n])
        n++;
    c->scope_count = n ? n : 1;
    c->scopes = xcalloc(c->scope_count, sizeof(*c->scopes));
    for (size_t i = 0; i < c->scope_count; i++) {
        c->scopes[i].controller = c;
        watch_mpas(&c->scopes[i], n ? names[i] : NULL);
    }
    c->cache = kube_cache_start(
        c->kube, &(struct kube_cache_options){
                     .namespaces = names, .on_pod = on_pod, .on_workload = on_workload, .arg = c});
}

struct controller *controller_new(uv_loop_t *loop, struct kube *kube, struct observe *observe,
                                  const struct controller_options *options)
{
    struct controller *c = xcalloc(1, sizeof(*c));
    c->loop = loop;
    c->kube = kube;
    c->observe = observe;
    c->options = *options;
    uv_timer_init(loop, &c->tick);
    uv_timer_init(loop, &c->soon);
    c->tick.data = c->soon.data = c;
    c->open_handles = 2;
    report_start(c);
    start_watches(c);
    if (options->leader_election)
        c->lease =
            kube_lease_start(kube, &(struct kube_lease_spec){.namespace_ = options->lease_namespace,
                                                             .name = options->lease_name,
                                                             .identity = options->identity,
                                                             .on_change = on_lease,
                                                             .arg = c});
    else
        lead(c);
    return c;
}

static void free_entry(void *value)
{
    entry_remove(value);
}

static void on_closed(uv_handle_t *handle)
{
    struct controller *c = handle->data;
    if (--c->open_handles == 0)
        free(c);
}

void controller_free(struct controller *c)
{
    if (c == NULL)
        return;
    c->stopping = true;
    c->leading = false;
    if (c->lease)
        kube_lease_stop(c->lease);
    for (size_t i = 0; i < c->scope_count; i++) {
        kube_watch_stop(c->scopes[i].watch);
        free(c->scopes[i].trouble);
    }
    free(c->scopes);
    serve_stop(c->serve);
    report_stop(c);
    kube_cache_stop(c->cache);
    map_free(&c->entries, free_entry);
    map_free(&c->by_target, NULL);
    uv_close((uv_handle_t *)&c->tick, on_closed);
    uv_close((uv_handle_t *)&c->soon, on_closed);
}
