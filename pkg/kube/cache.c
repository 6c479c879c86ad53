/* The cache: one watch per kind (and namespace), one record per object. A record is one block: a
 * head with the links of the indexes, then the projection. */
#include "kube/internal.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#define OWNERS_DEEP 3 /* between a pod and what it belongs to, at most */

enum source_kind { SOURCE_POD, SOURCE_WORKLOAD, SOURCE_SCALER };

#define APPS(kind, plural)                                                                         \
    {                                                                                              \
        "apps/v1", kind, "/apis/apps/v1", plural                                                   \
    }
static const struct source_type {
    struct kube_resource resource;
    enum source_kind holds;
    bool optional;
} source_types[] = {
    {APPS("Deployment", "deployments"), SOURCE_WORKLOAD, false},
    {APPS("StatefulSet", "statefulsets"), SOURCE_WORKLOAD, false},
    {APPS("ReplicaSet", "replicasets"), SOURCE_WORKLOAD, false},
    {{"autoscaling/v2", "HorizontalPodAutoscaler", "/apis/autoscaling/v2",
      "horizontalpodautoscalers"},
     SOURCE_SCALER,
     false},
    {{"keda.sh/v1alpha1", "ScaledObject", "/apis/keda.sh/v1alpha1", "scaledobjects"},
     SOURCE_SCALER,
     true},
    {{"autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "/apis/autoscaling.k8s.io/v1",
      "verticalpodautoscalers"},
     SOURCE_SCALER,
     true},
    {{"v1", "Pod", "/api/v1", "pods"}, SOURCE_POD, false},
};

struct source {
    struct kube_cache *cache;
    const struct source_type *type;
    struct kube_watch *watch;
    uint32_t generation; /* of the latest list; records of older ones are swept at its end */
    char *trouble;
};

struct record {
    struct kube_node by_uid;
    struct kube_node by_link; /* pods and workloads: the owner's uid; scalers: the target */
    const struct source *source;
    uint32_t generation;
    bool linked, slim;
};
struct pod_record {
    struct record head; /* a kube_pod follows */
};
struct workload_record {
    struct record head;
    struct kube_node by_name; /* a kube_workload follows */
};
/* A ReplicaSet without replicas that a Deployment keeps for a rollback. There are ten of them for
 * each Deployment, and of use is only whose they are, should pods of theirs turn up. */
struct slim_record {
    struct record head;
    char uid[KUBE_UID_SIZE], owner_uid[KUBE_UID_SIZE];
};
struct scaler_record {
    struct record head;
    char uid[KUBE_UID_SIZE]; /* a kube_scaler follows */
};

struct table {
    struct kube_index by_uid, by_link;
};

struct kube_cache {
    struct kube_cache_options options; /* without the namespaces */
    struct source *sources;
    size_t source_count;
    struct table pods, workloads, scalers;
    struct kube_index workload_names;
    char **namespaces;          /* NULL-terminated; empty: all */
    struct kube_follow *others; /* workloads of kinds that are not above */
    struct kube_knative *knative;
    struct kube_openwhisk *openwhisk;
    size_t pod_bytes;
    bool busy, stopped; /* inside a callback; kube_cache_stop was called there */
};

/* --- records ---------------------------------------------------------------------------------- */
static struct kube_pod *pod_of(const struct record *r)
{
    return (struct kube_pod *)(void *)((struct pod_record *)(uintptr_t)r + 1);
}

static struct kube_workload *workload_of(const struct record *r)
{
    return (struct kube_workload *)(void *)((struct workload_record *)(uintptr_t)r + 1);
}

static struct kube_scaler *scaler_of(const struct record *r)
{
    return (struct kube_scaler *)(void *)((struct scaler_record *)(uintptr_t)r + 1);
}

static struct record *record_at(struct kube_node *node, size_t offset)
{
    return node ? (struct record *)(void *)((char *)node - offset) : NULL;
}
#define BY_UID(node)  record_at(node, offsetof(struct record, by_uid))
#define BY_LINK(node) record_at(node, offsetof(struct record, by_link))
#define BY_NAME(node) record_at(node, offsetof(struct workload_record, by_name))

static const char *uid_of(const struct record *r)
{
    switch (r->source->type->holds) {
    case SOURCE_POD:
        return pod_of(r)->uid;
    case SOURCE_WORKLOAD:
        return r->slim ? ((const struct slim_record *)(const void *)r)->uid : workload_of(r)->uid;
    default:
        return ((const struct scaler_record *)(const void *)r)->uid;
    }
}

static const char *owner_uid_of(const struct record *r)
{
    if (r->source->type->holds == SOURCE_POD)
        return pod_of(r)->owner_uid;
    return r->slim ? ((const struct slim_record *)(const void *)r)->owner_uid
                   : workload_of(r)->owner_uid;
}

static uint64_t action_pods_hash(const char *namespace_)
{
    return kube_hash(KUBE_OPENWHISK, namespace_, NULL);
}

/* What by_link is keyed by; 0 for none. */
static uint64_t link_hash(const struct record *r)
{
    if (r->source->type->holds == SOURCE_POD && pod_of(r)->openwhisk)
        return action_pods_hash(pod_of(r)->namespace_);
    if (r->source->type->holds == SOURCE_SCALER) {
        const struct kube_scaler *s = scaler_of(r);
        return kube_hash(s->namespace_, s->target_kind, s->target_name, NULL);
    }
    const char *owner = owner_uid_of(r);
    return *owner ? kube_hash(owner, NULL) : 0;
}

static bool has_name(const struct record *r)
{
    return r->source->type->holds == SOURCE_WORKLOAD && !r->slim;
}

static struct table *table_of(struct kube_cache *cache, const struct source *source)
{
    switch (source->type->holds) {
    case SOURCE_POD:
        return &cache->pods;
    case SOURCE_WORKLOAD:
        return &cache->workloads;
    default:
        return &cache->scalers;
    }
}

static struct record *record_find(const struct table *table, const char *uid)
{
    struct kube_node *node = kube_index_first(&table->by_uid, kube_hash(uid, NULL));
    while (node && strcmp(uid_of(BY_UID(node)), uid) != 0)
        node = kube_index_next(node);
    return BY_UID(node);
}

static void record_add(struct kube_cache *cache, struct record *r)
{
    struct table *table = table_of(cache, r->source);
    uint64_t hash = link_hash(r);
    kube_index_add(&table->by_uid, &r->by_uid, kube_hash(uid_of(r), NULL));
    r->linked = hash != 0;
    if (r->linked)
        kube_index_add(&table->by_link, &r->by_link, hash);
    if (has_name(r)) {
        const struct kube_workload *w = workload_of(r);
        kube_index_add(&cache->workload_names, &((struct workload_record *)(void *)r)->by_name,
                       kube_hash(w->kind, w->namespace_, w->name, NULL));
    }
    if (r->source->type->holds == SOURCE_POD)
        cache->pod_bytes += malloc_usable_size(r) + sizeof(size_t);
}

/* Takes it out of the indexes; the record is the caller's then. */
static void record_remove(struct kube_cache *cache, struct record *r)
{
    struct table *table = table_of(cache, r->source);
    kube_index_remove(&table->by_uid, &r->by_uid);
    if (r->linked)
        kube_index_remove(&table->by_link, &r->by_link);
    if (has_name(r))
        kube_index_remove(&cache->workload_names, &((struct workload_record *)(void *)r)->by_name);
    if (r->source->type->holds == SOURCE_POD)
        cache->pod_bytes -= malloc_usable_size(r) + sizeof(size_t);
}

/* --- what the watches bring ------------------------------------------------------------------- */
static struct record *record_new(const struct source *source, const json_t *object)
{
    const struct kube_resource *resource = &source->type->resource;
    size_t head = source->type->holds == SOURCE_POD        ? sizeof(struct pod_record)
                  : source->type->holds == SOURCE_WORKLOAD ? sizeof(struct workload_record)
                                                           : sizeof(struct scaler_record);
    void *body = source->type->holds == SOURCE_POD ? (void *)kube_pod_project(object, head)
                 : source->type->holds == SOURCE_WORKLOAD
                     ? (void *)kube_workload_project(object, resource, head)
                     : (void *)kube_scaler_project(object, resource->kind, head);
    if (!body)
        return NULL;
    struct record *r = (struct record *)(void *)((char *)body - head);
    r->source = source;
    r->generation = source->generation;
    if (source->type->holds == SOURCE_SCALER) {
        const char *uid = kube_uid(object);
        memcpy(((struct scaler_record *)(void *)r)->uid, uid, strlen(uid) + 1);
    }
    return r;
}

static bool is_idle_replica_set(const struct record *r)
{
    if (r->source->type->holds != SOURCE_WORKLOAD || r->slim)
        return false;
    const struct kube_workload *w = workload_of(r);
    return strcmp(w->kind, "ReplicaSet") == 0 && w->replicas_wanted == 0 && w->replicas == 0 &&
           w->owner_kind && strcmp(w->owner_kind, "Deployment") == 0;
}

static struct record *slim_new(const struct record *from)
{
    struct slim_record *slim = xcalloc(1, sizeof(*slim));
    const struct kube_workload *w = workload_of(from);
    slim->head.source = from->source;
    slim->head.generation = from->generation;
    slim->head.slim = true;
    memcpy(slim->uid, w->uid, sizeof(slim->uid));
    memcpy(slim->owner_uid, w->owner_uid, sizeof(slim->owner_uid));
    return &slim->head;
}

static void tell_workload(void *arg, const struct kube_workload *workload, bool deleted)
{
    const struct kube_cache *cache = arg;
    if (!cache->stopped && cache->options.on_workload)
        cache->options.on_workload(cache->options.arg, workload, deleted);
}

static void tell_owned(void *arg)
{
    const struct kube_cache *cache = arg;
    if (!cache->stopped && cache->options.on_owned)
        cache->options.on_owned(cache->options.arg);
}

static void tell(struct kube_cache *cache, const struct record *r, bool deleted)
{
    const struct kube_cache_options *o = &cache->options;
    if (cache->stopped || r->slim)
        return;
    if (r->source->type->holds == SOURCE_POD && o->on_pod)
        o->on_pod(o->arg, pod_of(r), deleted);
    else if (r->source->type->holds == SOURCE_WORKLOAD)
        tell_workload(cache, workload_of(r), deleted);
}

static void cache_free(struct kube_cache *cache);

static void cache_enter(void *arg)
{
    struct kube_cache *cache = arg;
    cache->busy = true;
}

static void cache_leave(void *arg)
{
    struct kube_cache *cache = arg;
    cache->busy = false;
    if (cache->stopped)
        cache_free(cache);
}

static void source_on_object(void *arg, const json_t *object, bool deleted)
{
    struct source *source = arg;
    struct kube_cache *cache = source->cache;
    struct record *old = record_find(table_of(cache, source), kube_uid(object));
    struct record *now = record_new(source, object);
    if (old)
        record_remove(cache, old);
    free(old);
    if (!now)
        return;
    bool keep = !deleted && !is_idle_replica_set(now);
    if (keep)
        record_add(cache, now);
    else if (!deleted)
        record_add(cache, slim_new(now));
    cache_enter(cache);
    tell(cache, now, deleted);
    if (!keep)
        free(now);
    cache_leave(cache);
}

static void source_on_list_begin(void *arg)
{
    struct source *source = arg;
    source->generation++;
}

/* What the list did not show is gone. */
static void source_on_list_end(void *arg)
{
    struct source *source = arg;
    struct kube_cache *cache = source->cache;
    struct kube_index *all = &table_of(cache, source)->by_uid;
    struct kube_node *next, *node = kube_index_walk(all, NULL);
    cache_enter(cache);
    for (; node; node = next) {
        struct record *r = BY_UID(node);
        next = kube_index_walk(all, node);
        if (r->source != source || r->generation == source->generation)
            continue;
        record_remove(cache, r);
        tell(cache, r, true);
        free(r);
    }
    cache_leave(cache);
}

static void source_on_state(void *arg, const struct error *err)
{
    struct source *source = arg;
    free(source->trouble);
    source->trouble = err ? xasprintf("%s: %s", source->type->resource.plural, err->message) : NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */
static void source_start(struct kube *kube, struct source *source, const char *namespace_)
{
    const struct kube_resource *at = &source->type->resource;
    cleanup_free char *path =
        namespace_ ? xasprintf("%s/namespaces/%s/%s", at->path, namespace_, at->plural)
                   : xasprintf("%s/%s", at->path, at->plural);
    struct kube_watch_spec spec = {
        .path = path,
        .optional = source->type->optional,
        .handler = {.on_object = source_on_object,
                    .on_list_begin = source_on_list_begin,
                    .on_list_end = source_on_list_end,
                    .on_state = source_on_state},
        .arg = source,
    };
    source->watch = kube_watch_start(kube, &spec);
}

struct kube_cache *kube_cache_start(struct kube *kube, const struct kube_cache_options *options)
{
    static const char *const everywhere[] = {NULL};
    struct kube_cache *cache = xcalloc(1, sizeof(*cache));
    const char *const *namespaces = options->namespaces ? options->namespaces : everywhere;
    size_t count = 0;
    while (namespaces[count])
        count++;
    size_t places = count ? count : 1;
    cache->options = *options;
    cache->options.namespaces = NULL;
    cache->source_count = places * ARRAY_LEN(source_types);
    cache->sources = xcalloc(cache->source_count, sizeof(*cache->sources));
    for (size_t i = 0; i < cache->source_count; i++) {
        cache->sources[i].cache = cache;
        cache->sources[i].type = &source_types[i / places];
        source_start(kube, &cache->sources[i], count ? namespaces[i % places] : NULL);
    }
    cache->namespaces = xcalloc(count + 1, sizeof(*cache->namespaces));
    for (size_t i = 0; i < count; i++)
        cache->namespaces[i] = xstrdup(namespaces[i]);
    const struct kube_listener listener = {.enter = cache_enter,
                                           .leave = cache_leave,
                                           .on_workload = tell_workload,
                                           .on_owned = tell_owned,
                                           .arg = cache};
    cache->others = kube_follow_new(kube, cache->namespaces, &listener);
    cache->knative = kube_knative_new(kube, cache->namespaces, &listener);
    cache->openwhisk = kube_openwhisk_new(cache);
    return cache;
}

static void table_free(struct table *table)
{
    struct kube_node *next, *node = kube_index_walk(&table->by_uid, NULL);
    for (; node; node = next) {
        next = kube_index_walk(&table->by_uid, node);
        free(BY_UID(node));
    }
    kube_index_free(&table->by_uid);
    kube_index_free(&table->by_link);
}

static void cache_free(struct kube_cache *cache)
{
    for (size_t i = 0; i < cache->source_count; i++)
        free(cache->sources[i].trouble);
    free(cache->sources);
    table_free(&cache->pods);
    table_free(&cache->workloads);
    table_free(&cache->scalers);
    kube_index_free(&cache->workload_names);
    kube_follow_free(cache->others);
    kube_knative_free(cache->knative);
    kube_openwhisk_free(cache->openwhisk);
    for (size_t i = 0; cache->namespaces[i]; i++)
        free(cache->namespaces[i]);
    free(cache->namespaces);
    free(cache);
}

void kube_cache_stop(struct kube_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->source_count; i++)
        kube_watch_stop(cache->sources[i].watch);
    cache->stopped = true;
    if (!cache->busy)
        cache_free(cache);
}

/* --- questions -------------------------------------------------------------------------------- */
bool kube_cache_synced(const struct kube_cache *cache)
{
    for (size_t i = 0; i < cache->source_count; i++)
        if (!kube_watch_synced(cache->sources[i].watch))
            return false;
    return true;
}

void kube_cache_awaits(const struct kube_cache *cache, char *out, size_t size)
{
    *out = '\0';
    for (size_t i = 0; i < cache->source_count && *out == '\0'; i++) {
        const struct source *source = &cache->sources[i];
        if (!kube_watch_synced(source->watch))
            snprintf(out, size, "%s",
                     source->trouble ? source->trouble : source->type->resource.plural);
    }
}

const char *kube_cache_trouble(const struct kube_cache *cache)
{
    for (size_t i = 0; i < cache->source_count; i++)
        if (cache->sources[i].trouble)
            return cache->sources[i].trouble;
    return NULL;
}

static bool is_built_in(const struct kube_target *t)
{
    for (size_t i = 0; i < ARRAY_LEN(source_types); i++)
        if (source_types[i].holds == SOURCE_WORKLOAD &&
            strcmp(source_types[i].resource.kind, t->kind) == 0 &&
            strcmp(source_types[i].resource.api_version, t->api_version) == 0)
            return true;
    return false;
}

static const struct kube_workload *workload_named(const struct kube_cache *cache, const char *kind,
                                                  const char *namespace_, const char *name)
{
    struct kube_node *node =
        kube_index_first(&cache->workload_names, kube_hash(kind, namespace_, name, NULL));
    for (; node; node = kube_index_next(node)) {
        const struct kube_workload *w = workload_of(BY_NAME(node));
        if (strcmp(w->kind, kind) == 0 && strcmp(w->namespace_, namespace_) == 0 &&
            strcmp(w->name, name) == 0)
            return w;
    }
    return NULL;
}

const struct kube_workload *kube_cache_workload(const struct kube_cache *cache,
                                                const struct kube_target *t, struct error *err)
{
    if (strcmp(t->api_version, KUBE_KNATIVE) == 0)
        return kube_knative_find(cache->knative, t, err);
    if (strcmp(t->api_version, KUBE_OPENWHISK) == 0)
        return kube_openwhisk_find(cache->openwhisk, t, err);
    if (!is_built_in(t))
        return kube_follow_find(cache->others, t, err);
    const struct kube_workload *w = workload_named(cache, t->kind, t->namespace_, t->name);
    if (w)
        return w;
    error_set(err, ERROR_NOT_FOUND, "%s %s/%s does not exist", t->kind, t->namespace_, t->name);
    return NULL;
}

/* Anybody may name any owner in his own pods: only pods of the owner's namespace count. */
static size_t pods_of(const struct kube_cache *cache, const char *owner_uid, const char *namespace_,
                      const struct kube_pod **out, size_t max, size_t count)
{
    struct kube_node *node = kube_index_first(&cache->pods.by_link, kube_hash(owner_uid, NULL));
    for (; node; node = kube_index_next(node)) {
        const struct kube_pod *pod = pod_of(BY_LINK(node));
        if (strcmp(pod->owner_uid, owner_uid) != 0 || strcmp(pod->namespace_, namespace_) != 0)
            continue;
        if (count < max)
            out[count] = pod;
        count++;
    }
    return count;
}

/* Through what the owner owns, too: a Deployment has ReplicaSets, a Rollout of Argo likewise, and
 * others make Deployments. */
static size_t pods_below(const struct kube_cache *cache, const char *owner_uid,
                         const char *namespace_, int depth, const struct kube_pod **out, size_t max,
                         size_t count)
{
    count = pods_of(cache, owner_uid, namespace_, out, max, count);
    if (depth == 0)
        return count;
    struct kube_node *node =
        kube_index_first(&cache->workloads.by_link, kube_hash(owner_uid, NULL));
    for (; node; node = kube_index_next(node)) {
        const struct record *set = BY_LINK(node);
        if (strcmp(owner_uid_of(set), owner_uid) == 0)
            count = pods_below(cache, uid_of(set), namespace_, depth - 1, out, max, count);
    }
    return count;
}

const struct kube_pod *kube_cache_next_action_pod(const struct kube_cache *cache,
                                                  const char *namespace_, struct kube_node **at)
{
    *at = *at ? kube_index_next(*at)
              : kube_index_first(&cache->pods.by_link, action_pods_hash(namespace_));
    for (; *at; *at = kube_index_next(*at)) {
        const struct kube_pod *pod = pod_of(BY_LINK(*at));
        if (pod->openwhisk && strcmp(pod->namespace_, namespace_) == 0)
            return pod;
    }
    return NULL;
}

size_t kube_cache_pods(const struct kube_cache *cache, const struct kube_workload *workload,
                       const struct kube_pod **out, size_t max)
{
    struct kube_revision all[KUBE_MAX_REVISIONS];
    if (kube_is_action(workload))
        return kube_openwhisk_pods(cache->openwhisk, workload, out, max);
    if (!kube_is_knative(workload))
        return pods_below(cache, workload->uid, workload->namespace_, OWNERS_DEEP, out, max, 0);
    size_t pods = 0, count = kube_knative_revisions(cache->knative, workload, all);
    for (size_t i = 0; i < count; i++)
        if (all[i].percent > 0)
            pods = pods_below(cache, all[i].uid, workload->namespace_, OWNERS_DEEP, out, max, pods);
    return pods;
}

bool kube_is_knative(const struct kube_workload *workload)
{
    return strcmp(workload->resource->api_version, KUBE_KNATIVE) == 0;
}

size_t kube_cache_revisions(const struct kube_cache *cache, const struct kube_workload *workload,
                            struct kube_revision out[KUBE_MAX_REVISIONS])
{
    return kube_knative_revisions(cache->knative, workload, out);
}

void kube_cache_whole(const struct kube_cache *cache, const struct kube_target *target,
                      struct kube_whole *out)
{
    *out = (struct kube_whole){"", ""};
    if (strcmp(target->api_version, KUBE_KNATIVE) == 0)
        kube_knative_whole(cache->knative, target, out);
}

static int32_t ready_below(const struct kube_cache *cache, const char *owner_uid,
                           const char *namespace_)
{
    int32_t ready = 0;
    size_t n = pods_below(cache, owner_uid, namespace_, OWNERS_DEEP, NULL, 0, 0);
    cleanup_free const struct kube_pod **pods = xcalloc(n, sizeof(*pods));
    pods_below(cache, owner_uid, namespace_, OWNERS_DEEP, pods, n, 0);
    for (size_t i = 0; i < n; i++)
        ready += pods[i]->ready && !pods[i]->deleting;
    return ready;
}

static void add_deployment(const struct kube_cache *cache, const char *revision_uid,
                           struct kube_owned *out)
{
    const struct kube_workload *w =
        workload_named(cache, "Deployment", out->namespace_, out->deployment);
    out->replicas = w ? w->replicas_wanted : -1;
    out->ready = ready_below(cache, revision_uid, out->namespace_);
}

bool kube_cache_owned(const struct kube_cache *cache, size_t *at, struct kube_owned *out)
{
    const char *revision_uid;
    bool found = kube_knative_owned(cache->knative, at, out, &revision_uid);
    if (found)
        add_deployment(cache, revision_uid, out);
    return found;
}

bool kube_cache_owned_one(const struct kube_cache *cache, const struct kube_revision *revision,
                          struct kube_owned *out)
{
    const char *revision_uid;
    bool found = kube_knative_owned_one(cache->knative, revision, out, &revision_uid);
    if (found)
        add_deployment(cache, revision_uid, out);
    return found;
}

bool kube_cache_template(const struct kube_cache *cache, const struct kube_workload *workload,
                         struct kube_template *out)
{
    return kube_is_knative(workload) && kube_knative_template(cache->knative, workload, out);
}

bool kube_cache_our_templates(const struct kube_cache *cache, size_t *at, struct kube_template *out)
{
    return kube_knative_our_templates(cache->knative, at, out);
}

void kube_cache_seek_left(struct kube_cache *cache, void (*on_found)(void *arg), void *arg)
{
    kube_knative_seek_left(cache->knative, on_found, arg);
}

bool kube_cache_steered(const struct kube_cache *cache, size_t *at, struct kube_steered *out)
{
    return kube_knative_steered(cache->knative, at, out);
}

bool kube_cache_rest(struct kube_cache *cache)
{
    return kube_knative_rest(cache->knative);
}

const struct kube_workload *kube_cache_owner(const struct kube_cache *cache,
                                             const struct kube_pod *pod)
{
    const char *uid = pod->owner_uid;
    const struct kube_workload *top = NULL;
    if (pod->openwhisk)
        return kube_openwhisk_owner(cache->openwhisk, pod);
    for (int depth = 0; depth <= OWNERS_DEEP && *uid; depth++) {
        const struct record *r = record_find(&cache->workloads, uid);
        const struct kube_workload *w = !r        ? kube_follow_uid(cache->others, uid)
                                        : r->slim ? NULL
                                                  : workload_of(r);
        if (!r && !w)
            return kube_knative_uid(cache->knative, uid) ?: top;
        if (w && strcmp(w->namespace_, pod->namespace_) == 0)
            top = w;
        uid = r ? owner_uid_of(r) : w->owner_uid;
    }
    return top;
}

const struct kube_scaler *kube_cache_scaler(const struct kube_cache *cache, const char *kind,
                                            const char *namespace_, const char *name, bool replicas,
                                            bool resources)
{
    struct kube_node *node =
        kube_index_first(&cache->scalers.by_link, kube_hash(namespace_, kind, name, NULL));
    for (; node; node = kube_index_next(node)) {
        const struct kube_scaler *s = scaler_of(BY_LINK(node));
        bool acts = (replicas && s->acts_on_replicas) || (resources && s->acts_on_resources);
        if (acts && strcmp(s->target_kind, kind) == 0 && strcmp(s->namespace_, namespace_) == 0 &&
            strcmp(s->target_name, name) == 0)
            return s;
    }
    return NULL;
}

size_t kube_cache_pod_count(const struct kube_cache *cache)
{
    return cache->pods.by_uid.count;
}

size_t kube_cache_bytes(const struct kube_cache *cache)
{
    size_t buckets = cache->pods.by_uid.cap + cache->pods.by_link.cap;
    return cache->pod_bytes + buckets * sizeof(struct kube_node *);
}
