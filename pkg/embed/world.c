/* What the controller sees and does, on the simulated cluster. Everything is answered at once. */
#include "internal.h"

#include <string.h>

static bool is_synced(void *self)
{
    (void)self;
    return true;
}

static struct function *find_function(struct embed *e, const char *name)
{
    for (size_t i = 0; i < e->function_count; i++)
        if (strcmp(e->functions[i].deployment.name, name) == 0)
            return &e->functions[i];
    return NULL;
}

static size_t index_of(const struct embed *e, const struct function *f)
{
    return (size_t)(f - e->functions);
}

/* --- what is there --------------------------------------------------------------------------- */
static const struct kube_workload *find_workload(void *self, const struct kube_target *target,
                                                 struct error *err)
{
    const struct function *f = find_function(self, target->name);
    if (f && strcmp(target->kind, f->deployment.kind) == 0 &&
        strcmp(target->namespace_, f->deployment.namespace_) == 0)
        return &f->deployment;
    error_set(err, ERROR_NOT_FOUND, "%s %s/%s does not exist", target->kind, target->namespace_,
              target->name);
    return NULL;
}

static size_t find_pods(void *self, const struct kube_workload *workload,
                        const struct kube_pod **out, size_t max)
{
    const struct function *f = find_function(self, workload->name);
    for (size_t i = 0; i < f->pod_count && i < max; i++)
        out[i] = f->pods[i]->kube;
    return f->pod_count;
}

static const struct kube_scaler *find_scaler(void *self, const char *kind, const char *namespace_,
                                             const char *name, bool replicas, bool resources)
{
    (void)self, (void)kind, (void)namespace_, (void)name, (void)replicas, (void)resources;
    return NULL;
}

static void collect(void *self, struct observe *observe, void (*on_done)(void *arg), void *arg)
{
    facts_give(self, observe);
    on_done(arg);
}

/* --- what is done ---------------------------------------------------------------------------- */
static void set_replicas(void *self, const struct kube_workload *workload,
                         const struct world_wish *wish, actuate_done on_done, void *arg)
{
    struct embed *e = self;
    struct function *f = find_function(e, workload->name);
    cluster_scale(e->cluster, index_of(e, f), wish->replicas);
    f->acted = true;
    on_done(arg, NULL);
}

static double amount(const json_t *container, const char *what, double otherwise)
{
    int64_t milli;
    const char *text = json_str(json_path(container, "resources", what, "cpu", NULL));
    return *text && quantity_parse_milli(text, &milli, NULL) == 0 ? (double)milli : otherwise;
}

/* Each pod is asked for by itself, and all of a function are asked for the same: replicas have one
 * size. */
static void resize(void *self, const struct kube_pod *pod, const json_t *patch,
                   actuate_done on_done, void *arg)
{
    struct embed *e = self;
    size_t i = 0;
    while (strcmp(e->functions[i].deployment.uid, pod->owner_uid) != 0)
        i++;
    const json_t *container = json_array_get(json_path(patch, "spec", "containers", NULL), 0);
    struct cluster_state state;
    cluster_state(e->cluster, i, &state);
    cluster_resize(e->cluster, i, amount(container, "requests", state.request_milli),
                   amount(container, "limits", state.limit_milli));
    e->functions[i].acted = true;
    e->functions[i].resized_s = cluster_now_s(e->cluster);
    on_done(arg, NULL);
}

/* RFC 7386. */
static void merge(json_t *into, const json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)patch, key, value) {
        json_t *old = json_object_get(into, key);
        if (json_is_null(value)) {
            json_object_del(into, key);
        } else if (json_is_object(value)) {
            if (!json_is_object(old)) {
                old = json_object();
                json_object_set_new(into, key, old);
            }
            merge(old, value);
        } else {
            json_object_set(into, key, value);
        }
    }
}

static void write_status(void *self, const struct api_mpa *mpa, const json_t *patch,
                         actuate_done on_done, void *arg)
{
    struct embed *e = self;
    struct function *f = find_function(e, mpa->spec.target_name);
    merge(f->object, patch);
    f->changed = true;
    if (e->options.on_status)
        e->options.on_status(e->options.arg, index_of(e, f), f->object);
    on_done(arg, NULL);
}

static void tell(void *self, const struct kube_event *event)
{
    const struct embed *e = self;
    for (size_t i = 0; e->options.on_event && i < e->function_count; i++)
        if (strcmp(e->functions[i].mpa.name, event->name) == 0)
            e->options.on_event(e->options.arg, i, event);
}

/* Nothing waits longer than a step of the simulation. */
static void wake(void *self, int64_t in_ms)
{
    struct embed *e = self;
    (void)in_ms;
    e->woken = true;
}

struct world embed_world(struct embed *e)
{
    return (struct world){
        .self = e,
        .synced = is_synced,
        .workload = find_workload,
        .pods = find_pods,
        .scaler = find_scaler,
        .collect = collect,
        .set_replicas = set_replicas,
        .resize = resize,
        .write_status = write_status,
        .tell = tell,
        .wake = wake,
    };
}
