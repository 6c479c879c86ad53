/* Knative's Services, Configurations and Revisions as workloads. Traffic goes to Revisions; each
 * has a PodAutoscaler of its name, which says how many pods it shall have, and a Deployment that
 * belongs to the Revision. Nothing is watched before somebody asks for the first of them, or
 * something of ours is found that an earlier controller has left. */
#include "kube/internal.h"

#include <string.h>

#define DEFAULT_TYPE "kpa.autoscaling.knative.dev"

static const struct kube_resource service = {KUBE_KNATIVE, "Service", "/apis/" KUBE_KNATIVE,
                                             "services"};
static const struct kube_resource configuration = {KUBE_KNATIVE, "Configuration",
                                                   "/apis/" KUBE_KNATIVE, "configurations"};
static const struct kube_resource revision = {KUBE_KNATIVE, "Revision", "/apis/" KUBE_KNATIVE,
                                              "revisions"};
static const struct kube_resource scaler = {"autoscaling.internal.knative.dev/v1alpha1",
                                            "PodAutoscaler", KUBE_KNATIVE_SCALERS,
                                            "podautoscalers"};
static const struct kube_resource proxy = {"networking.internal.knative.dev/v1alpha1",
                                           "ServerlessService", KUBE_KNATIVE_PROXIES,
                                           "serverlessservices"};

struct share {
    char *revision;
    int percent;
};

struct route { /* of a Service or a Configuration: who gets the traffic */
    struct share *shares;
    size_t count; /* at most KUBE_MAX_ROUTED, */
    bool more;    /* though there are more */
    char *namespace_, *name, uid[KUBE_UID_SIZE];
    char *service;                   /* that has made it; NULL: none has */
    char *class;                     /* of the template */
    bool class_is_ours, alone, made; /* as in kube_template */
};

struct own { /* of a Revision: what its author asked for */
    char uid[KUBE_UID_SIZE];
    int32_t min, max;
};

struct pa { /* of a PodAutoscaler */
    char *namespace_, *name, *service, *configuration, *class;
    int32_t min, max, desired, actual;
    bool steered;
    struct kube_ours *claim; /* NULL: it is not of our class */
};

struct target { /* what somebody has asked for */
    struct kube_workload workload;
    char *namespace_, *name;
};

struct kube_knative {
    struct kube *kube;
    char *const *namespaces;
    struct kube_listener listener;
    struct kube_store *services, *configurations, *revisions, *scalers; /* NULL: not asked for */
    struct kube_store *proxies; /* NULL: there was none of our class yet */
    struct map targets;         /* "kind/namespace/name" → struct target */
    struct map by_revision;     /* uid of a Revision → struct target */
    struct kube_left *left;     /* NULL: it was not asked for */
    void (*on_found)(void *arg);
    void *found_arg;
};

/* --- objects ---------------------------------------------------------------------------------- */
static const char *meta(const json_t *object, const char *key)
{
    return json_str(json_path(object, "metadata", key, NULL));
}

static const char *annotation(const json_t *object, const char *key)
{
    return json_str(json_path(object, "metadata", "annotations", key, NULL));
}

/* Knative takes whole numbers only; the older spelling still counts where the new one is absent. */
int32_t kube_scale_at(const json_t *object, const char *key, const char *older)
{
    const char *text = annotation(object, key);
    char *end;
    text = *text || !older ? text : annotation(object, older);
    long n = strtol(text, &end, 10);
    return *text && !*end && n >= 0 && n <= INT32_MAX ? (int32_t)n : -1;
}

int32_t kube_count_at(const json_t *object, const char *key)
{
    const json_t *value = json_path(object, "status", key, NULL);
    json_int_t n = json_integer_value(value);
    return json_is_integer(value) && n >= 0 && n <= INT32_MAX ? (int32_t)n : -1;
}

static void copy_uid(char out[KUBE_UID_SIZE], const char *uid)
{
    if (strlen(uid) < KUBE_UID_SIZE)
        memcpy(out, uid, strlen(uid) + 1);
}

static void route_free(void *value)
{
    struct route *r = value;
    for (size_t i = 0; i < r->count; i++)
        free(r->shares[i].revision);
    free(r->shares);
    free(r->namespace_);
    free(r->name);
    free(r->service);
    free(r->class);
    free(r);
}

/* given: by the server, so any number. */
static void add_share(struct route *r, const char *name, json_int_t given)
{
    int percent = given < 0 ? 0 : given > 100 ? 100 : (int)given;
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->shares[i].revision, name) == 0) {
            int sum = r->shares[i].percent + percent;
            r->shares[i].percent = sum < 100 ? sum : 100;
            return;
        }
    if (!*name || percent == 0)
        return;
    r->more |= r->count == KUBE_MAX_ROUTED;
    if (r->more)
        return;
    r->shares = xrealloc(r->shares, r->count + 1, sizeof(*r->shares));
    r->shares[r->count++] = (struct share){xstrdup(name), percent};
}

static void read_template(struct route *r, const json_t *object)
{
    const json_t *annotations =
        json_path(object, "spec", "template", "metadata", "annotations", NULL);
    r->class = xstrdup(json_str(json_object_get(annotations, KUBE_CLASS)));
    r->alone = json_object_size(annotations) == 1;
    const json_t *owner = kube_controlling_owner(object);
    r->made = owner != NULL;
    if (strcmp(json_str(json_object_get(owner, "kind")), service.kind) == 0)
        r->service = xstrdup(json_str(json_object_get(owner, "name")));
    /* A Configuration that a Service has made has the Service's annotations, too. */
    r->class_is_ours = *annotation(object, KUBE_OWNED) != '\0' && !r->made;
}

/* Before traffic is routed for the first time all of it is for the newest Revision. */
static void *route_make(void *arg, const json_t *object, void *old)
{
    struct route *r = xcalloc(1, sizeof(*r));
    const json_t *item;
    size_t i;
    (void)arg;
    if (old)
        route_free(old);
    r->namespace_ = xstrdup(meta(object, "namespace"));
    r->name = xstrdup(meta(object, "name"));
    copy_uid(r->uid, kube_uid(object));
    read_template(r, object);
    json_array_foreach (json_path(object, "status", "traffic", NULL), i, item)
        add_share(r, json_str(json_object_get(item, "revisionName")),
                  json_integer_value(json_object_get(item, "percent")));
    const char *ready = json_str(json_path(object, "status", "latestReadyRevisionName", NULL));
    const char *made = json_str(json_path(object, "status", "latestCreatedRevisionName", NULL));
    if (r->count == 0)
        add_share(r, *ready ? ready : made, 100);
    return r;
}

static void *own_make(void *arg, const json_t *object, void *old)
{
    struct own *o = old ? old : xcalloc(1, sizeof(*o));
    (void)arg;
    copy_uid(o->uid, kube_uid(object));
    o->min = kube_scale_at(object, KUBE_MIN_SCALE, "autoscaling.knative.dev/minScale");
    o->max = kube_scale_at(object, KUBE_MAX_SCALE, "autoscaling.knative.dev/maxScale");
    return o;
}

static void pa_free(void *value)
{
    struct pa *p = value;
    free(p->namespace_);
    free(p->name);
    free(p->service);
    free(p->configuration);
    free(p->class);
    kube_ours_free(p->claim);
    free(p);
}

static char *label_of(const json_t *object, const char *key)
{
    return xstrdup(json_str(json_path(object, "metadata", "labels", key, NULL)));
}

static void *pa_make(void *arg, const json_t *object, void *old)
{
    struct pa *p = xcalloc(1, sizeof(*p));
    (void)arg;
    if (old)
        pa_free(old);
    *p = (struct pa){
        .namespace_ = xstrdup(meta(object, "namespace")),
        .name = xstrdup(meta(object, "name")),
        .service = label_of(object, KUBE_KNATIVE_GROUP "/service"),
        .configuration = label_of(object, KUBE_KNATIVE_GROUP "/configuration"),
        .class = xstrdup(annotation(object, KUBE_CLASS)),
        .min = kube_scale_at(object, KUBE_MIN_SCALE, "autoscaling.knative.dev/minScale"),
        .max = kube_scale_at(object, KUBE_MAX_SCALE, "autoscaling.knative.dev/maxScale"),
        .desired = kube_count_at(object, "desiredScale"),
        .actual = kube_count_at(object, "actualScale"),
        .steered = *annotation(object, KUBE_STEERED) != '\0',
    };
    p->claim = strcmp(p->class, KUBE_OUR_CLASS) == 0 ? kube_ours_new(object) : NULL;
    return p;
}

/* --- what belongs to a target ------------------------------------------------------------------
 */
static const struct route *route_of(const struct kube_knative *k, const struct kube_workload *w)
{
    const struct kube_store *from = w->resource == &service ? k->services : k->configurations;
    return from ? kube_store_get(from, w->namespace_, w->name) : NULL;
}

static void add_revision(const struct kube_knative *k, const char *namespace_, const char *name,
                         int percent, struct kube_revision *out, size_t *count)
{
    const struct own *own = kube_store_get(k->revisions, namespace_, name);
    const struct pa *p = kube_store_get(k->scalers, namespace_, name);
    if (!own || !p || *count >= KUBE_MAX_REVISIONS)
        return;
    out[(*count)++] = (struct kube_revision){
        .namespace_ = p->namespace_,
        .name = p->name,
        .uid = own->uid,
        .class = *p->class ? p->class : DEFAULT_TYPE,
        .percent = percent,
        .min_scale = p->min,
        .max_scale = p->max,
        .own_min = own->min,
        .own_max = own->max,
        .desired = p->desired,
        .actual = p->actual < 0 ? 0 : p->actual,
        .steered = p->steered,
        .ours = p->claim != NULL,
    };
}

static bool is_in(const struct kube_revision *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return true;
    return false;
}

/* Those that were held once, and have lost their traffic since; of our class, also those that have
 * not got it yet, or that only a tag leads to. */
static void add_left_behind(const struct kube_knative *k, const struct kube_workload *w,
                            struct kube_revision *out, size_t *count)
{
    const struct pa *p;
    for (size_t at = 0; (p = kube_store_next(k->scalers, &at));) {
        const char *whole = w->resource == &service ? p->service : p->configuration;
        if ((p->steered || p->claim) && strcmp(whole, w->name) == 0 &&
            strcmp(p->namespace_, w->namespace_) == 0 && !is_in(out, *count, p->name))
            add_revision(k, w->namespace_, p->name, 0, out, count);
    }
}

size_t kube_knative_revisions(const struct kube_knative *k, const struct kube_workload *w,
                              struct kube_revision out[KUBE_MAX_REVISIONS])
{
    size_t count = 0;
    if (w->resource == &revision) {
        add_revision(k, w->namespace_, w->name, 100, out, &count);
        return count;
    }
    const struct route *r = route_of(k, w);
    for (size_t i = 0; r && i < r->count; i++)
        add_revision(k, w->namespace_, r->shares[i].revision, r->shares[i].percent, out, &count);
    add_left_behind(k, w, out, &count);
    return count;
}

void kube_knative_whole(const struct kube_knative *k, const struct kube_target *t,
                        struct kube_whole *out)
{
    if (k->scalers && strcmp(t->kind, revision.kind) == 0) {
        const struct pa *p = kube_store_get(k->scalers, t->namespace_, t->name);
        if (p)
            *out = (struct kube_whole){p->service, p->configuration};
    } else if (k->configurations && strcmp(t->kind, configuration.kind) == 0) {
        const struct route *r = kube_store_get(k->configurations, t->namespace_, t->name);
        if (r && r->service)
            out->service = r->service;
    }
}

/* --- targets ---------------------------------------------------------------------------------- */
static void tell_target(const struct kube_knative *k, const char *kind, const char *namespace_,
                        const char *name)
{
    cleanup_free char *key = xasprintf("%s/%s/%s", kind, namespace_, name);
    const struct target *t = map_get(&k->targets, key);
    if (t)
        k->listener.on_workload(k->listener.arg, &t->workload, false);
}

static void on_service(void *arg, void *value, bool deleted)
{
    const struct route *r = value;
    (void)deleted;
    tell_target(arg, service.kind, r->namespace_, r->name);
}

static void on_configuration(void *arg, void *value, bool deleted)
{
    const struct route *r = value;
    (void)deleted;
    tell_target(arg, configuration.kind, r->namespace_, r->name);
}

static void on_revision(void *arg, void *value, bool deleted)
{
    (void)arg, (void)value, (void)deleted; /* its PodAutoscaler comes after it */
}

static void on_proxy(void *arg, void *value, bool deleted)
{
    const struct kube_knative *k = arg;
    (void)value, (void)deleted;
    k->listener.on_owned(k->listener.arg);
}

static struct kube_store *follow(struct kube_knative *k, const struct kube_resource *resource,
                                 void *(*make)(void *, const json_t *, void *),
                                 void (*free_value)(void *),
                                 void (*on_change)(void *, void *, bool))
{
    return kube_store_new(&(struct kube_store_spec){.kube = k->kube,
                                                    .resource = resource,
                                                    .namespaces = k->namespaces,
                                                    .listener = k->listener,
                                                    .make = make,
                                                    .free = free_value,
                                                    .on_change = on_change,
                                                    .arg = k});
}

static void on_scaler(void *arg, void *value, bool deleted)
{
    struct kube_knative *k = arg;
    const struct pa *p = value;
    (void)deleted;
    if (p->claim && !k->proxies)
        k->proxies = follow(k, &proxy, kube_sks_make, kube_sks_free, on_proxy);
    if (p->claim)
        k->listener.on_owned(k->listener.arg);
    tell_target(k, service.kind, p->namespace_, p->service);
    tell_target(k, configuration.kind, p->namespace_, p->configuration);
    tell_target(k, revision.kind, p->namespace_, p->name);
}

static void follow_kind(struct kube_knative *k, const struct kube_resource *kind)
{
    if (kind == &service && !k->services)
        k->services = follow(k, &service, route_make, route_free, on_service);
    if (kind == &configuration && !k->configurations)
        k->configurations = follow(k, &configuration, route_make, route_free, on_configuration);
    if (!k->revisions)
        k->revisions = follow(k, &revision, own_make, free, on_revision);
    if (!k->scalers)
        k->scalers = follow(k, &scaler, pa_make, pa_free, on_scaler);
}

/* All that has to be known before a target of this kind can be found. */
static int await(struct kube_knative *k, const struct kube_resource *kind, struct error *err)
{
    follow_kind(k, kind);
    const struct kube_store *needed[] = {kind == &configuration ? k->configurations : k->services,
                                         k->revisions, k->scalers};
    for (size_t i = kind == &revision; i < ARRAY_LEN(needed); i++)
        if (kube_store_check(needed[i], err) < 0)
            return -1;
    return 0;
}

static const struct kube_resource *kind_of(const char *kind)
{
    static const struct kube_resource *const kinds[] = {&service, &configuration, &revision};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i]->kind, kind) == 0)
            return kinds[i];
    return NULL;
}

static struct target *target_of(struct kube_knative *k, const struct kube_resource *kind,
                                const struct kube_target *wanted)
{
    cleanup_free char *key = xasprintf("%s/%s/%s", kind->kind, wanted->namespace_, wanted->name);
    struct target *t = map_get(&k->targets, key);
    if (!t) {
        t = xcalloc(1, sizeof(*t));
        t->namespace_ = xstrdup(wanted->namespace_);
        t->name = xstrdup(wanted->name);
        t->workload = (struct kube_workload){.resource = kind,
                                             .kind = (char *)(uintptr_t)kind->kind,
                                             .namespace_ = t->namespace_,
                                             .name = t->name};
        map_put(&k->targets, key, t);
    }
    return t;
}

/* A floor of ours is what we want; without one it is what the autoscaler of Knative wants. One of
 * our class that is about to sleep, and so to have none, still has what it has. */
static int32_t wanted_of(const struct kube_revision *r)
{
    if (r->steered && r->min_scale > 0)
        return r->min_scale;
    if (r->ours && r->desired == 0)
        return r->actual;
    return r->desired >= 0 ? r->desired : r->actual;
}

static int32_t plus(int32_t a, int32_t b)
{
    int32_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT32_MAX : sum; /* both are counts */
}

/* Those that were left out would have nobody, and the others more than their share. */
static int check_count(const struct kube_knative *k, const struct kube_workload *w,
                       struct error *err)
{
    const struct route *r = w->resource == &revision ? NULL : route_of(k, w);
    if (!r || !r->more)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "%s %s gives requests to more than %d Revisions: give fewer of them a share "
                     "of the traffic",
                     w->kind, w->name, KUBE_MAX_ROUTED);
}

static int sum_up(struct kube_knative *k, struct target *t, struct error *err)
{
    struct kube_revision all[KUBE_MAX_REVISIONS];
    struct kube_workload *w = &t->workload;
    size_t count = kube_knative_revisions(k, w, all), routed = 0;
    w->replicas = w->replicas_wanted = 0;
    w->owned = false;
    for (size_t i = 0; i < count; i++) {
        map_put(&k->by_revision, all[i].uid, t);
        if (all[i].percent == 0)
            continue;
        if (strcmp(all[i].class, DEFAULT_TYPE) != 0 && !all[i].ours)
            return error_set(err, ERROR_INVALID,
                             "Revision %s is scaled by class %s: only " DEFAULT_TYPE
                             " can be steered, and " KUBE_OUR_CLASS
                             " is ours; take the annotation " KUBE_CLASS " away",
                             all[i].name, all[i].class);
        w->owned |= all[i].ours;
        routed++;
        w->replicas = plus(w->replicas, all[i].actual);
        w->replicas_wanted = plus(w->replicas_wanted, wanted_of(&all[i]));
    }
    if (routed == 0)
        return error_set(err, ERROR_NOT_FOUND, "%s %s/%s does not exist, or has no Revision yet",
                         w->kind, w->namespace_, w->name);
    return 0;
}

const struct kube_workload *kube_knative_find(struct kube_knative *k,
                                              const struct kube_target *wanted, struct error *err)
{
    const struct kube_resource *kind = kind_of(wanted->kind);
    if (!kind) {
        error_set(err, ERROR_INVALID,
                  "a %s of Knative cannot be scaled; a Service, Configuration or Revision can",
                  wanted->kind);
        return NULL;
    }
    if (await(k, kind, err) < 0)
        return NULL;
    struct target *t = target_of(k, kind, wanted);
    if (check_count(k, &t->workload, err) < 0 || sum_up(k, t, err) < 0)
        return NULL;
    return &t->workload;
}

const struct kube_workload *kube_knative_uid(const struct kube_knative *k, const char *uid)
{
    const struct target *t = map_get(&k->by_revision, uid);
    return t ? &t->workload : NULL;
}

/* --- of our class ----------------------------------------------------------------------------- */
static bool all_are_known(const struct kube_knative *k)
{
    struct error err;
    return k->proxies && kube_store_check(k->proxies, &err) == 0 &&
           kube_store_check(k->scalers, &err) == 0;
}

static bool tell_owned(const struct kube_knative *k, const struct pa *p, struct kube_owned *out,
                       const char **revision_uid)
{
    if (!p || !p->claim)
        return false;
    kube_ours_tell(p->claim, kube_store_get(k->proxies, p->namespace_, p->name), out, revision_uid);
    return true;
}

bool kube_knative_owned(const struct kube_knative *k, size_t *at, struct kube_owned *out,
                        const char **revision_uid)
{
    const struct pa *p = NULL;
    while (all_are_known(k) && (p = kube_store_next(k->scalers, at)) && !p->claim)
        ;
    return tell_owned(k, p, out, revision_uid);
}

bool kube_knative_owned_one(const struct kube_knative *k, const struct kube_revision *r,
                            struct kube_owned *out, const char **revision_uid)
{
    return all_are_known(k) &&
           tell_owned(k, kube_store_get(k->scalers, r->namespace_, r->name), out, revision_uid);
}

static void tell_template(const struct kube_resource *kind, const struct route *r,
                          struct kube_template *out)
{
    *out = (struct kube_template){.resource = kind,
                                  .namespace_ = r->namespace_,
                                  .name = r->name,
                                  .class = r->class,
                                  .ours = r->class_is_ours,
                                  .alone = r->alone,
                                  .made = r->made};
}

bool kube_knative_template(const struct kube_knative *k, const struct kube_workload *w,
                           struct kube_template *out)
{
    const struct route *r = w->resource == &revision ? NULL : route_of(k, w);
    if (r)
        tell_template(w->resource, r, out);
    return r != NULL;
}

/* The walk goes on in the second store behind the end of the first. */
#define SECOND (SIZE_MAX / 2)

bool kube_knative_our_templates(const struct kube_knative *k, size_t *at, struct kube_template *out)
{
    const struct route *r = NULL;
    bool first = *at < SECOND;
    size_t within = first ? *at : *at - SECOND;
    const struct kube_store *from = first ? k->services : k->configurations;
    while (from && (r = kube_store_next(from, &within)) && !r->class_is_ours)
        ;
    if (!r && first) {
        *at = SECOND;
        return kube_knative_our_templates(k, at, out);
    }
    *at = first ? within : within + SECOND;
    if (r)
        tell_template(first ? &service : &configuration, r, out);
    return r != NULL;
}

/* --- what an earlier controller has left ------------------------------------------------------ */
static void on_left(void *arg)
{
    struct kube_knative *k = arg;
    log_info("an earlier controller has left something of ours in Knative");
    follow_kind(k, &service);
    follow_kind(k, &configuration);
    k->on_found(k->found_arg);
}

void kube_knative_seek_left(struct kube_knative *k, void (*on_found)(void *arg), void *arg)
{
    k->on_found = on_found;
    k->found_arg = arg;
    kube_left_free(k->left);
    k->left = kube_left_new(k->kube, k->namespaces, on_left, k);
}

static bool is_known(const struct kube_store *store)
{
    struct error err;
    return store && kube_store_check(store, &err) == 0;
}

bool kube_knative_steered(const struct kube_knative *k, size_t *at, struct kube_steered *out)
{
    const struct pa *p;
    if (!is_known(k->scalers) || !is_known(k->revisions))
        return false;
    while ((p = kube_store_next(k->scalers, at))) {
        size_t count = 0;
        if (p->steered)
            add_revision(k, p->namespace_, p->name, 0, &out->revision, &count);
        if (count == 0)
            continue;
        out->service = p->service;
        out->configuration = p->configuration;
        return true;
    }
    return false;
}

static bool any_is_ours(const struct kube_knative *k)
{
    struct kube_template template_;
    const struct pa *p;
    for (size_t at = 0; (p = kube_store_next(k->scalers, &at));)
        if (p->steered || p->claim)
            return true;
    return kube_knative_our_templates(k, &(size_t){0}, &template_);
}

static void unfollow(struct kube_knative *k)
{
    kube_store_free(k->services);
    kube_store_free(k->configurations);
    kube_store_free(k->revisions);
    kube_store_free(k->scalers);
    kube_store_free(k->proxies);
    k->services = k->configurations = k->revisions = k->scalers = k->proxies = NULL;
}

bool kube_knative_rest(struct kube_knative *k)
{
    const struct kube_store *all[] = {k->services, k->configurations, k->revisions, k->proxies};
    if (!k->scalers)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i] && !is_known(all[i]))
            return false;
    if (!is_known(k->scalers) || any_is_ours(k))
        return false;
    unfollow(k);
    return true;
}

/* --- life ------------------------------------------------------------------------------------- */
struct kube_knative *kube_knative_new(struct kube *kube, char *const *namespaces,
                                      const struct kube_listener *listener)
{
    struct kube_knative *k = xcalloc(1, sizeof(*k));
    k->kube = kube;
    k->namespaces = namespaces;
    k->listener = *listener;
    return k;
}

static void target_free(void *value)
{
    struct target *t = value;
    free(t->namespace_);
    free(t->name);
    free(t);
}

void kube_knative_free(struct kube_knative *k)
{
    kube_left_free(k->left);
    unfollow(k);
    map_free(&k->by_revision, NULL);
    map_free(&k->targets, target_free);
    free(k);
}
