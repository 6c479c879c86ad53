/* Kinds that are not built in. Discovery is asked about one when it is first wanted, and its
 * objects are watched from then on. Replica counts come from /scale, because only the API server
 * knows where in an object they stand: it is asked for those objects that somebody wants, whenever
 * they change. */
#include "kube/internal.h"

#include <stdio.h>
#include <string.h>

#define MAX_KINDS         32 /* each costs a watch */
#define DISCOVER_AGAIN_MS 30000
#define SCALE_AGAIN_MS    10000 /* after a refusal */

struct kind {
    struct kube_follow *follow;
    struct kube_resource resource; /* its strings are ours */
    struct kube_call *discovery;   /* under way */
    int64_t discovered_ms;         /* monotonic */
    struct error refusal;          /* code 0: it is followed, or not known yet */
    struct kube_store *objects;    /* of struct object; NULL: not watched */
};

struct object {
    const struct kind *kind;
    struct kube_workload *workload; /* one block */
    struct kube_call *scale;        /* under way */
    bool wanted, known, stale;      /* by somebody; its replicas are; it has changed since asked */
    int64_t asked_ms;               /* monotonic */
    struct error trouble;           /* why its replicas are not known */
};

struct kube_follow {
    struct kube *kube;
    char *const *namespaces;
    struct kube_listener listener;
    struct map kinds;  /* "apiVersion kind" → struct kind */
    struct map by_uid; /* → struct object */
};

/* --- objects --------------------------------------------------------------------------------- */
static int32_t replicas_at(const json_t *scale, const char *part)
{
    json_int_t n = json_integer_value(json_path(scale, part, "replicas", NULL));
    return n >= 0 && n <= INT32_MAX ? (int32_t)n : 0;
}

static void tell(const struct object *o, bool deleted)
{
    const struct kube_listener listener = o->kind->follow->listener;
    listener.enter(listener.arg);
    listener.on_workload(listener.arg, o->workload, deleted);
    listener.leave(listener.arg);
}

static void ask_scale(struct object *o);

static void on_scale(void *arg, const struct kube_response *response)
{
    struct object *o = arg;
    o->scale = NULL;
    o->trouble = response->error;
    o->known = !response->error.code;
    if (o->known) {
        o->workload->replicas_wanted = replicas_at(response->json, "spec");
        o->workload->replicas = replicas_at(response->json, "status");
    }
    if (response->error.code == ERROR_CANCELLED)
        return;
    if (o->stale)
        ask_scale(o);
    else
        tell(o, false);
}

static void ask_scale(struct object *o)
{
    const struct kube_resource *at = &o->kind->resource;
    o->stale = o->scale;
    if (o->scale)
        return;
    o->asked_ms = clock_mono_ms();
    cleanup_free char *path = xasprintf("%s/namespaces/%s/%s/%s/scale", at->path,
                                        o->workload->namespace_, at->plural, o->workload->name);
    struct kube_call_spec spec = {.request = {.path = path, .on_done = on_scale, .arg = o}};
    o->scale = kube_call_start(o->kind->follow->kube, &spec);
}

/* Replicas are the old ones until /scale has told the new. */
static void *object_make(void *arg, const json_t *json, void *old)
{
    struct kind *kind = arg;
    struct object *o = old;
    struct kube_workload *now = kube_workload_project(json, &kind->resource, 0);
    if (!now)
        return NULL;
    if (!o) {
        o = xcalloc(1, sizeof(*o));
        o->kind = kind;
        map_put(&kind->follow->by_uid, now->uid, o);
    } else {
        now->replicas_wanted = o->workload->replicas_wanted;
        now->replicas = o->workload->replicas;
        free(o->workload);
    }
    o->workload = now;
    return o;
}

static void object_free(void *value)
{
    struct object *o = value;
    struct map *by_uid = &o->kind->follow->by_uid;
    if (map_get(by_uid, o->workload->uid) == o)
        map_remove(by_uid, o->workload->uid);
    if (o->scale)
        kube_call_cancel(o->scale);
    free(o->workload);
    free(o);
}

static void on_change(void *arg, void *value, bool deleted)
{
    const struct kind *kind = arg;
    struct object *o = value;
    if (o->wanted && !deleted)
        ask_scale(o);
    else
        kind->follow->listener.on_workload(kind->follow->listener.arg, o->workload, deleted);
}

/* --- discovery -------------------------------------------------------------------------------- */
static void watch(struct kind *kind)
{
    const struct kube_follow *f = kind->follow;
    kind->objects = kube_store_new(&(struct kube_store_spec){.kube = f->kube,
                                                             .resource = &kind->resource,
                                                             .namespaces = f->namespaces,
                                                             .listener = f->listener,
                                                             .make = object_make,
                                                             .free = object_free,
                                                             .on_change = on_change,
                                                             .arg = kind});
}

/* Looks for the kind in a group's list of resources, and for "plural/scale" beside it. */
static int find_resource(const json_t *resources, const char *kind, const char **plural,
                         bool *namespaced, bool *scale)
{
    const json_t *item;
    size_t i;
    *plural = NULL;
    json_array_foreach (resources, i, item) {
        const char *name = json_str(json_object_get(item, "name"));
        if (strcmp(json_str(json_object_get(item, "kind")), kind) == 0 && !strchr(name, '/')) {
            *plural = name;
            *namespaced = json_is_true(json_object_get(item, "namespaced"));
        }
    }
    if (!*plural)
        return -1;
    cleanup_free char *wanted = xasprintf("%s/scale", *plural);
    *scale = false;
    json_array_foreach (resources, i, item)
        *scale |= strcmp(json_str(json_object_get(item, "name")), wanted) == 0;
    return 0;
}

static void take_discovery(struct kind *kind, const json_t *answer)
{
    struct kube_resource *at = &kind->resource;
    const char *plural;
    bool namespaced = false, scale = false;
    if (find_resource(json_object_get(answer, "resources"), at->kind, &plural, &namespaced,
                      &scale) < 0) {
        error_set(&kind->refusal, ERROR_INVALID, "%s has no kind %s in this cluster",
                  at->api_version, at->kind);
    } else if (!scale || !namespaced) {
        error_set(
            &kind->refusal, ERROR_INVALID,
            "%s %s cannot be scaled: it has no /scale subresource; a Deployment, StatefulSet, "
            "ReplicaSet, or any kind with one can",
            at->api_version, at->kind);
    } else {
        free((char *)(uintptr_t)at->plural);
        at->plural = xstrdup(plural);
        watch(kind);
    }
}

static void on_discovered(void *arg, const struct kube_response *response)
{
    struct kind *kind = arg;
    const struct kube_resource *at = &kind->resource;
    kind->discovery = NULL;
    if (!response->error.code)
        take_discovery(kind, response->json);
    else if (response->error.code == ERROR_NOT_FOUND)
        error_set(&kind->refusal, ERROR_INVALID, "%s %s is not known to this cluster",
                  at->api_version, at->kind);
    else
        kind->refusal = response->error;
}

static void discover(struct kind *kind)
{
    struct kube_call_spec spec = {
        .request = {.path = kind->resource.path, .on_done = on_discovered, .arg = kind}};
    kind->refusal = (struct error){0};
    kind->discovered_ms = clock_mono_ms();
    kind->discovery = kube_call_start(kind->follow->kube, &spec);
}

/* What a user wrote becomes a path, and must not lead anywhere else: GROUP/VERSION or VERSION. */
static bool is_plain(const struct kube_target *t)
{
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    const char *slash = strchr(t->api_version, '/');
    return *t->kind && t->kind[strspn(t->kind, LETTERS)] == '\0' && *t->api_version &&
           t->api_version[strspn(t->api_version, LETTERS ".-/")] == '\0' &&
           !strstr(t->api_version, "..") && !(slash && strchr(slash + 1, '/'));
}

static struct kind *kind_new(struct kube_follow *f, const char *api_version, const char *name)
{
    struct kind *kind = xcalloc(1, sizeof(*kind));
    kind->follow = f;
    kind->resource = (struct kube_resource){
        .api_version = xstrdup(api_version),
        .kind = xstrdup(name),
        .path = xasprintf("%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version),
    };
    return kind;
}

static void kind_free(void *value)
{
    struct kind *kind = value;
    const struct kube_resource *at = &kind->resource;
    if (kind->discovery)
        kube_call_cancel(kind->discovery);
    kube_store_free(kind->objects);
    free((char *)(uintptr_t)at->api_version);
    free((char *)(uintptr_t)at->kind);
    free((char *)(uintptr_t)at->path);
    free((char *)(uintptr_t)at->plural);
    free(kind);
}

/* --- questions -------------------------------------------------------------------------------- */
static struct kind *kind_of(struct kube_follow *f, const struct kube_target *t, struct error *err)
{
    cleanup_free char *key = xasprintf("%s %s", t->api_version, t->kind);
    struct kind *kind = map_get(&f->kinds, key);
    if (kind)
        return kind;
    if (!is_plain(t)) {
        error_set(err, ERROR_INVALID, "%s %s is no kind of Kubernetes", t->api_version, t->kind);
        return NULL;
    }
    if (f->kinds.count >= MAX_KINDS) {
        error_set(err, ERROR_TOO_LARGE, "%s is one kind of target too many: %d are followed",
                  t->kind, MAX_KINDS);
        return NULL;
    }
    kind = kind_new(f, t->api_version, t->kind);
    map_put(&f->kinds, key, kind);
    discover(kind);
    return kind;
}

/* A kind that is not there may come: it is asked for again, but not all the time. */
static int check_kind(struct kind *kind, struct error *err)
{
    const struct kube_resource *at = &kind->resource;
    if (kind->refusal.code) {
        *err = kind->refusal;
        if (!kind->discovery && clock_mono_ms() - kind->discovered_ms >= DISCOVER_AGAIN_MS)
            discover(kind);
        return -1;
    }
    if (!kind->objects)
        return error_set(err, ERROR_BUSY, "%s %s is being looked up", at->api_version, at->kind);
    return kube_store_check(kind->objects, err);
}

const struct kube_workload *kube_follow_find(struct kube_follow *f, const struct kube_target *t,
                                             struct error *err)
{
    struct kind *kind = kind_of(f, t, err);
    if (!kind || check_kind(kind, err) < 0)
        return NULL;
    struct object *o = kube_store_get(kind->objects, t->namespace_, t->name);
    if (!o) {
        error_set(err, ERROR_NOT_FOUND, "%s %s/%s does not exist", t->kind, t->namespace_, t->name);
        return NULL;
    }
    bool again = o->trouble.code && clock_mono_ms() - o->asked_ms >= SCALE_AGAIN_MS;
    if (!o->wanted || again)
        ask_scale(o);
    o->wanted = true;
    if (o->known)
        return o->workload;
    if (o->trouble.code)
        *err = o->trouble;
    else
        error_set(err, ERROR_BUSY, "the scale of %s %s/%s is being looked up", t->kind,
                  t->namespace_, t->name);
    return NULL;
}

const struct kube_workload *kube_follow_uid(const struct kube_follow *f, const char *uid)
{
    const struct object *o = map_get(&f->by_uid, uid);
    return o ? o->workload : NULL;
}

/* --- life ------------------------------------------------------------------------------------- */
struct kube_follow *kube_follow_new(struct kube *kube, char *const *namespaces,
                                    const struct kube_listener *listener)
{
    struct kube_follow *f = xcalloc(1, sizeof(*f));
    f->kube = kube;
    f->namespaces = namespaces;
    f->listener = *listener;
    return f;
}

void kube_follow_free(struct kube_follow *f)
{
    map_free(&f->kinds, kind_free);
    map_free(&f->by_uid, NULL);
    free(f);
}
