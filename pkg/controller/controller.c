#include "controller/controller.h"
#include "entry.h"
#include "serve.h"

#include <string.h>

/* --- deciding -------------------------------------------------------------------------------- */
static bool can_decide(const struct controller *c)
{
    return c->leading && !c->stopping && c->world.synced(c->world.self) &&
           observe_collected_ms(c->observe) > 0;
}

/* The entries of one part of the map; gives the place of the first whose status was left untold, or
 * none. */
static size_t decide_part(struct controller *c, bool all, size_t from, size_t to, size_t none)
{
    size_t left = none, next;
    void *value;
    for (size_t i = from; (next = map_next(&c->entries, i, NULL, &value)) != 0 && next <= to;
         i = next) {
        struct entry *e = value;
        c->untold = false;
        if (all || e->due)
            entry_decide(e);
        if (c->untold && left == none)
            left = i;
    }
    return left;
}

/* Where status is written more slowly than it changes, all get their turn. */
static void decide(struct controller *c, bool all)
{
    size_t begin = c->begin_at;
    if (!can_decide(c))
        return;
    size_t left = decide_part(c, all, begin, SIZE_MAX, SIZE_MAX);
    size_t early = decide_part(c, all, 0, begin, begin);
    if (all)
        c->begin_at = left != SIZE_MAX ? left : early;
}

static void on_collected(void *arg)
{
    struct controller *c = arg;
    int64_t began_ms = clock_mono_ms();
    decide(c, true);
    controller_catch_up(c);
    report_pass_ended(c);
    memory_trim();
    log_debug("a pass is done", log_int("mpas", (int64_t)c->entries.count),
              log_int("ms", clock_mono_ms() - began_ms));
}

static void ask_own_queries(struct controller *c)
{
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (!e->invalid && strcmp(e->mpa.spec.target_api_version, KUBE_KNATIVE) == 0)
            observe_want_proxies(c->observe);
        if (!e->invalid && e->mpa.spec.is_action)
            observe_want_action(c->observe, e->mpa.spec.target_name);
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

void controller_pass(struct controller *c)
{
    report_pass_began(c);
    ask_own_queries(c);
    history_ask(c);
    c->world.collect(c->world.self, c->observe, on_collected, c);
}

static void size_pods(struct entry *e)
{
    const struct kube_workload *workload;
    size_t n;
    const struct kube_pod **pods = entry_pods(e, &workload, &n);
    struct actuate_report report;
    e->pods_changed = false;
    e->settles_ms = 0;
    if (workload)
        act_on_sizes(e, workload, pods, n, &report);
    free(pods);
}

/* New pods get the size that was decided for the others at once, not at the next interval, and lose
 * the boost of their start in time. */
void controller_catch_up(struct controller *c)
{
    void *value;
    int64_t now_ms = clock_mono_ms(), next_ms = 0;
    decide(c, false);
    for (size_t i = 0; c->leading && (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        bool settles = e->settles_ms && e->settles_ms <= now_ms;
        if (e->may_size && (e->pods_changed || settles))
            size_pods(e);
        if (e->may_size && e->settles_ms && (next_ms == 0 || e->settles_ms < next_ms))
            next_ms = e->settles_ms;
    }
    if (next_ms)
        controller_wake(c, next_ms - now_ms);
}

void controller_wake(struct controller *c, int64_t in_ms)
{
    c->world.wake(c->world.self, in_ms);
}

/* --- targets --------------------------------------------------------------------------------- */
static char *key_of(const char *api_version, const char *kind, const char *namespace_,
                    const char *name)
{
    return xasprintf("%s/%s/%s/%s", api_version, kind, namespace_, name);
}

char *entry_target_key(const struct entry *e)
{
    const struct api_spec *spec = &e->mpa.spec;
    return key_of(spec->target_api_version, spec->target_kind, e->mpa.namespace_,
                  spec->target_name);
}

struct entry *controller_entry_of(const struct controller *c, const char *api_version,
                                  const char *kind, const char *namespace_, const char *name)
{
    cleanup_free char *target = key_of(api_version, kind, namespace_, name);
    return map_get(&c->by_target, target);
}

static struct entry *entry_of(const struct controller *c, const struct kube_workload *w)
{
    return controller_entry_of(c, w->resource->api_version, w->kind, w->namespace_, w->name);
}

void controller_pods_changed(struct controller *c, const struct kube_workload *owner)
{
    struct entry *e = entry_of(c, owner), *rival = e ? entry_rival(e) : NULL;
    e = rival ? rival : e; /* a Revision's pods are its Service's, too */
    if (e) {
        e->pods_changed = true;
        controller_wake(c, 0);
    }
}

void controller_workload_changed(struct controller *c, const struct kube_workload *workload)
{
    struct entry *e = entry_of(c, workload);
    if (e && e->may_act == false) {
        e->due = true; /* the target it was waiting for may have come */
        controller_wake(c, 0);
    }
}

static void index_target(struct controller *c, struct entry *e)
{
    if (e->mpa.uid == NULL)
        return;
    cleanup_free char *target = entry_target_key(e);
    const struct entry *holder = map_get(&c->by_target, target);
    if (holder == NULL || entry_comes_before(e, holder))
        map_put(&c->by_target, target, e);
    if (entry_is_part(e))
        map_put(&c->parts, e->key, e);
}

/* The next one in line takes its place. */
static void unindex(struct controller *c, const struct entry *e)
{
    if (e->mpa.uid == NULL)
        return;
    cleanup_free char *target = entry_target_key(e);
    map_remove(&c->parts, e->key);
    if (map_get(&c->by_target, target) != e)
        return;
    map_remove(&c->by_target, target);
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *other = value;
        if (other == e || other->mpa.uid == NULL)
            continue;
        cleanup_free char *its = entry_target_key(other);
        if (strcmp(its, target) == 0)
            index_target(c, other);
    }
}

/* --- MPAs ------------------------------------------------------------------------------------ */
static void forget(struct controller *c, struct entry *e)
{
    log_info("an MPA is gone: its target is left as it is", log_str("mpa", e->key));
    unindex(c, e);
    map_remove(&c->entries, e->key);
    entry_remove(e);
}

struct entry *controller_apply(struct controller *c, const json_t *object, bool deleted)
{
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
        return NULL;
    if (e == NULL) {
        e = entry_new(c, key);
        map_put(&c->entries, key, e);
        log_info("an MPA is followed", log_str("mpa", key));
    }
    unindex(c, e);
    entry_update(e, object);
    index_target(c, e);
    if (e->due)
        controller_wake(c, 0);
    return e;
}

void controller_mpa(struct controller *c, const json_t *object, bool deleted)
{
    controller_apply(c, object, deleted);
}

void controller_forget_unmarked(struct controller *c, const struct scope *scope)
{
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

/* Its key begins with its namespace. */
static bool has_entry(const struct controller *c, const struct entry *e)
{
    char *namespace_ = strndup(e->key, strcspn(e->key, "/"));
    bool has = controller_has(c, namespace_);
    free(namespace_);
    return has;
}

void controller_leave(struct controller *c)
{
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (has_entry(c, e))
            continue;
        unindex(c, e);
        i = map_remove_at(&c->entries, i);
        entry_leave(e);
    }
}

/* --- life ------------------------------------------------------------------------------------ */
struct controller *controller_make(const struct world *world, struct observe *observe,
                                   const struct controller_options *options, struct live *live)
{
    struct controller *c = xcalloc(1, sizeof(*c));
    c->world = *world;
    c->observe = observe;
    c->options = *options;
    c->live = live;
    if (options->dashboard != DASHBOARD_OFF)
        c->timeline = timeline_new(NULL);
    report_start(c);
    return c;
}

struct controller *controller_new_on(const struct world *world, struct observe *observe,
                                     const struct controller_options *options)
{
    struct controller *c = controller_make(world, observe, options, NULL);
    c->leading = true;
    return c;
}

void controller_ended(struct controller *c)
{
    c->ended = true;
}

static void free_entry(void *value)
{
    entry_remove(value);
}

void controller_free(struct controller *c)
{
    if (c == NULL)
        return;
    c->stopping = true;
    c->leading = false;
    serve_stop(c->serve);
    dashboard_free(c->dashboard);
    c->dashboard = NULL;
    report_stop(c);
    if (c->live)
        live_stop(c->live);
    map_free(&c->entries, free_entry);
    map_free(&c->by_target, NULL);
    map_free(&c->parts, NULL);
    map_free(&c->pools, NULL);
    learner_free(c->learner);
    timeline_free(c->timeline);
    json_decref(c->unpacked.tree);
    free(c);
}
