/* Knative's Revisions of our class: what an MPA has decided, whether there are requests, and who
 * waits at the activator go into a plan for each, once a second and whenever something of them
 * changes. Only what is not seen in the API server is kept here, and all of it can be forgotten. */
#include "entry.h"

#include <stdio.h>
#include <string.h>

#define EVERY_MS 1000
#define SOON_MS  50    /* what happens together is looked at once */
#define RETRY_MS 10000 /* after a refusal */
#define CLAIM_MS 30000 /* between two tries to set a class */
#define DEAF_MS  15000 /* before somebody is told */
#define LEFT_MS  10000 /* between two looks for bounds that nobody holds */
#define READ_MS  30000 /* between two readings of the cluster's defaults */
#define DEFAULTS "/api/v1/namespaces/knative-serving/configmaps/config-autoscaler"

struct keep {                     /* of one Revision */
    struct owner *owner;          /* NULL: it has ended, while a write is under way */
    char *mpa;                    /* key of the MPA that had a say last, or NULL */
    uint64_t seen, said;          /* marks of the looks that saw it, and that found an MPA for it */
    int replicas, most;           /* as decided; replicas -1: not yet */
    int least;                    /* replicas, while there are requests */
    int64_t quiet_ms;             /* monotonic, since when; 0: there are requests; -1: not known */
    int64_t after_ms;             /* monotonic: nothing is written before */
    struct actuate_gather *asked; /* who waits for the write that is under way */
    bool writing;
    bool spare; /* it has no share of the traffic */
};

struct reading {         /* of the cluster's defaults, under way */
    struct owner *owner; /* NULL: it has ended */
};

struct owner {
    struct live *live;
    struct observe_activators *activators;
    uv_timer_t timer;
    struct map keeps; /* namespace/name → struct keep */
    uint64_t mark;
    int64_t disclaim_after_ms, left_after_ms, read_after_ms;
    struct reading *reading; /* NULL: none is under way */
    struct actuate_defaults defaults;
    bool knows_defaults; /* before, nothing is written: who may not sleep could be asleep then */
    bool begun, soon, told_deaf;
};

/* --- keeping ---------------------------------------------------------------------------------- */
static void keep_free(struct keep *k)
{
    free(k->mpa);
    free(k);
}

static void keep_end(void *value)
{
    struct keep *k = value;
    if (k->writing)
        k->owner = NULL;
    else
        keep_free(k);
}

static struct keep *keep_of(struct owner *o, const char *namespace_, const char *name)
{
    cleanup_free char *key = xasprintf("%s/%s", namespace_, name);
    struct keep *k = map_get(&o->keeps, key);
    if (!k) {
        k = xcalloc(1, sizeof(*k));
        *k = (struct keep){.owner = o, .replicas = -1, .quiet_ms = -1};
        map_put(&o->keeps, key, k);
    }
    return k;
}

static void forget_gone(struct owner *o)
{
    void *value;
    for (size_t i = 0; (i = map_next(&o->keeps, i, NULL, &value)) != 0;) {
        const struct keep *k = value;
        if (k->seen == o->mark)
            continue;
        i = map_remove_at(&o->keeps, i);
        keep_end(value);
    }
}

/* --- who has a say ---------------------------------------------------------------------------- */
static bool is_of_knative(const struct entry *e)
{
    return e->mpa.uid && strcmp(e->mpa.spec.target_api_version, KUBE_KNATIVE) == 0;
}

/* A paused MPA holds all as it is, as one does that cannot be followed. */
static bool has_say(const struct entry *e)
{
    return is_of_knative(e) && !e->invalid && !e->mpa.paused && e->mpa.spec.mode != API_MODE_OFF &&
           !entry_rival(e);
}

/* Nobody measures those without a share; the activator, which they stay behind, tells of requests.
 */
static void note_share(struct keep *k, const struct kube_revision *r, const struct api_spec *spec,
                       const struct actuate_bounds *least)
{
    bool spare = r->percent == 0;
    if (spare != k->spare)
        k->quiet_ms = -1;
    k->spare = spare;
    k->most = spare ? spec->max_replicas : least->max;
    k->least = spare ? 1 : least->min;
    if (spare)
        k->replicas = -1; /* what it has: the traffic may take a moment to leave */
    if (spare && k->quiet_ms <= 0)
        k->quiet_ms = clock_mono_ms();
}

static void note_say(struct owner *o, const struct entry *e)
{
    struct kube_revision all[KUBE_MAX_REVISIONS];
    struct actuate_bounds least[KUBE_MAX_REVISIONS];
    const struct api_spec *spec = &e->mpa.spec;
    struct error err;
    const struct kube_workload *w = entry_workload(e, &err);
    size_t count = w ? kube_cache_revisions(o->live->cache, w, all) : 0;
    actuate_shares(all, count, spec->min_replicas, spec->max_replicas, least);
    for (size_t i = 0; i < count; i++) {
        if (!all[i].ours)
            continue;
        struct keep *k = keep_of(o, all[i].namespace_, all[i].name);
        k->said = o->mark;
        note_share(k, &all[i], spec, &least[i]);
        string_set(&k->mpa, e->key);
    }
}

static void note_says(struct owner *o)
{
    const struct map *entries = &o->live->controller->entries;
    void *value;
    for (size_t i = 0; (i = map_next(entries, i, NULL, &value)) != 0;)
        if (has_say(value))
            note_say(o, value);
}

static struct entry *entry_of(const struct owner *o, const struct keep *k)
{
    return k->mpa ? map_get(&o->live->controller->entries, k->mpa) : NULL;
}

/* --- the cluster's defaults ------------------------------------------------------------------- */
static void take_defaults(struct owner *o, const struct kube_response *response)
{
    bool closed = response->status == 404 || response->status == 403;
    if (response->error.code && !closed) { /* what was read before still counts */
        o->read_after_ms = clock_mono_ms() + EVERY_MS;
        return;
    }
    if (closed && !o->knows_defaults)
        log_warn("Knative's own defaults are taken for those of this cluster",
                 log_str("why", response->error.message));
    if (!closed || !o->knows_defaults)
        actuate_defaults_read(closed ? NULL : response->json, &o->defaults);
    o->knows_defaults = true;
}

static void on_defaults(void *arg, const struct kube_response *response)
{
    struct reading *r = arg;
    if (r->owner) {
        r->owner->reading = NULL;
        take_defaults(r->owner, response);
        owner_wake(r->owner);
    }
    free(r);
}

static void read_defaults(struct owner *o)
{
    int64_t now_ms = clock_mono_ms();
    if (o->reading || now_ms < o->read_after_ms)
        return;
    o->read_after_ms = now_ms + READ_MS;
    o->reading = xcalloc(1, sizeof(*o->reading));
    o->reading->owner = o;
    kube_send(o->live->kube,
              &(struct kube_request){.path = DEFAULTS, .on_done = on_defaults, .arg = o->reading});
}

/* --- one Revision ----------------------------------------------------------------------------- */
static void tell_refusal(const struct owner *o, const struct keep *k, const struct error *err)
{
    struct entry *e = entry_of(o, k);
    if (err->code == ERROR_CANCELLED || err->code == ERROR_NOT_FOUND)
        return;
    if (e && !k->asked)
        entry_event(e, true, "FailedRescale", "a Revision of class " KUBE_OUR_CLASS ": %s",
                    err->message);
    else
        log_warn("a Revision of our class could not be written", log_str("why", err->message));
}

static void on_written(void *arg, const struct error *err)
{
    struct keep *k = arg;
    struct actuate_gather *asked = k->asked;
    k->writing = false;
    if (err && k->owner) {
        k->after_ms = clock_mono_ms() + RETRY_MS;
        tell_refusal(k->owner, k, err);
    }
    k->asked = NULL;
    if (!k->owner)
        keep_free(k);
    if (asked)
        actuate_gathered(asked, err);
}

static struct actuate_need need_of(const struct owner *o, const struct kube_owned *seen,
                                   struct keep *k)
{
    int64_t now_ms = clock_mono_ms();
    struct actuate_need need = {
        .defaults = &o->defaults,
        .kept = k->said != o->mark,
        .spare = k->said == o->mark && k->spare,
        .deaf_ms = o->activators ? observe_activators_deaf_ms(o->activators) : -1,
        .requests =
            o->activators && observe_activators_hold(o->activators, seen->namespace_, seen->name),
        .now_ms = clock_wall_ms(),
    };
    if (need.kept) {
        k->replicas = -1;
        k->quiet_ms = -1;
    }
    if (need.requests)
        k->quiet_ms = 0;
    if (seen->active == KUBE_FALSE && seen->replicas == 0 && !need.kept)
        k->replicas = k->least; /* should it wake */
    need.replicas = k->replicas;
    need.most = need.kept ? 0 : k->most;
    need.quiet_ms = k->quiet_ms > 0 ? now_ms - k->quiet_ms : k->quiet_ms;
    return need;
}

static void reconcile(const struct owner *o, const struct kube_owned *seen, struct keep *k)
{
    struct actuate_plan plan;
    struct actuate_need need = need_of(o, seen, k);
    if (k->writing || !o->knows_defaults || clock_mono_ms() < k->after_ms)
        return;
    actuate_plan(seen, &need, &plan);
    k->writing = true;
    actuate_own(o->live->kube, seen, &plan, need.now_ms, on_written, k);
}

/* Who may fall asleep, or sleeps, has to be heard; but not if no route leads to it, or nobody may.
 */
static bool is_drowsy(const struct owner *o, const struct kube_owned *seen, const struct keep *k)
{
    if (o->defaults.never_zero)
        return false;
    if (seen->unreachable && seen->replicas == 0)
        return false;
    return seen->active == KUBE_FALSE || seen->replicas == 0 || k->quiet_ms > 0;
}

static void tell_deaf(struct owner *o, const struct keep *k)
{
    struct entry *e = entry_of(o, k);
    if (o->told_deaf || observe_activators_deaf_ms(o->activators) < DEAF_MS || !e)
        return;
    o->told_deaf = true;
    entry_event(e, true, "CannotSleep",
                "nothing goes to zero while Knative's activators cannot be read: %s",
                observe_activators_trouble(o->activators));
}

static void look_at_revisions(struct owner *o)
{
    struct kube_owned seen;
    const struct keep *drowsy = NULL;
    for (size_t at = 0; kube_cache_owned(o->live->cache, &at, &seen);) {
        if (!controller_has(o->live->controller, seen.namespace_))
            continue;
        struct keep *k = keep_of(o, seen.namespace_, seen.name);
        k->seen = o->mark;
        read_defaults(o);
        reconcile(o, &seen, k);
        if (is_drowsy(o, &seen, k))
            drowsy = k;
    }
    if (!o->activators)
        return;
    observe_activators_listen(o->activators, drowsy != NULL);
    if (observe_activators_deaf_ms(o->activators) < EVERY_MS)
        o->told_deaf = false;
    if (drowsy)
        tell_deaf(o, drowsy);
}

/* --- templates -------------------------------------------------------------------------------- */
static void on_claimed(void *arg, const struct error *err)
{
    struct entry *e = arg;
    if (!err)
        entry_event(e, false, "Owned",
                    "%s %s: its template is of class " KUBE_OUR_CLASS " now; a Revision follows",
                    e->mpa.spec.target_kind, e->mpa.spec.target_name);
    else if (err->code != ERROR_CANCELLED)
        entry_event(e, true, "CannotOwn", "the class " KUBE_OUR_CLASS " cannot be set on %s %s: %s",
                    e->mpa.spec.target_kind, e->mpa.spec.target_name, err->message);
    entry_release(e);
}

/* An author's class stays. What a Service has made is as that Service says: it would undo ours. And
 * a Revision keeps the class that it was made with. */
int owner_may_own(void *self, const struct kube_workload *w, struct error *err)
{
    const struct live *live = self;
    struct kube_template t;
    if (!kube_is_knative(w))
        return 0;
    if (!kube_cache_template(live->cache, w, &t))
        return w->owned ? 0
                        : error_set(err, ERROR_INVALID,
                                    "a Revision keeps the class that it was made with: name the "
                                    "Service or Configuration of %s",
                                    w->name);
    if (strcmp(t.class, KUBE_OUR_CLASS) == 0 || (!*t.class && !t.made))
        return 0;
    if (t.made)
        return error_set(err, ERROR_INVALID,
                         "a Service has made Configuration %s, and says its class: name that one",
                         w->name);
    return error_set(err, ERROR_INVALID,
                     "the template of %s %s has class %s: take its annotation " KUBE_CLASS " away",
                     w->kind, w->name, t.class);
}

static void claim(const struct owner *o, struct entry *e)
{
    struct kube_template t;
    struct error err;
    int64_t now_ms = clock_mono_ms();
    const struct kube_workload *w = entry_workload(e, &err);
    if (!w || owner_may_own(o->live, w, &err) < 0 || !kube_cache_template(o->live->cache, w, &t) ||
        *t.class || now_ms < e->claim_after_ms)
        return;
    e->claim_after_ms = now_ms + CLAIM_MS;
    entry_hold(e);
    actuate_claim(o->live->kube, &t, on_claimed, e);
}

static void on_disclaimed(void *arg, const struct error *err)
{
    (void)arg;
    if (err && err->code != ERROR_CANCELLED)
        log_warn("a class that was set by us could not be taken away",
                 log_str("why", err->message));
}

static bool is_claimed(const struct owner *o, const struct kube_template *t)
{
    const struct entry *e = controller_entry_of(o->live->controller, t->resource->api_version,
                                                t->resource->kind, t->namespace_, t->name);
    return e && e->mpa.spec.mode != API_MODE_OFF && e->mpa.spec.knative_own;
}

static void look_at_templates(struct owner *o)
{
    const struct map *entries = &o->live->controller->entries;
    struct kube_template t;
    int64_t now_ms = clock_mono_ms();
    void *value;
    for (size_t i = 0; (i = map_next(entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (has_say(e) && e->mpa.spec.knative_own)
            claim(o, e);
    }
    if (now_ms < o->disclaim_after_ms)
        return;
    for (size_t at = 0; kube_cache_our_templates(o->live->cache, &at, &t);) {
        if (is_claimed(o, &t) || !controller_has(o->live->controller, t.namespace_))
            continue;
        o->disclaim_after_ms = now_ms + EVERY_MS; /* our cache is to know of it first */
        actuate_disclaim(o->live->kube, &t, on_disclaimed, NULL);
    }
}

/* --- what nobody holds any more --------------------------------------------------------------- */
static bool holds(const struct owner *o, const char *kind, const char *namespace_, const char *name)
{
    const struct entry *e =
        controller_entry_of(o->live->controller, KUBE_KNATIVE, kind, namespace_, name);
    return e && e->mpa.spec.mode != API_MODE_OFF;
}

static void on_handed_back(void *arg, const struct error *err)
{
    (void)arg;
    if (err && err->code != ERROR_CANCELLED)
        log_warn("bounds that nobody holds could not be taken back", log_str("why", err->message));
}

/* Its MPA went while no controller was there, or giving them back has failed. */
static void look_at_bounds(struct owner *o)
{
    struct kube_steered s;
    int64_t now_ms = clock_mono_ms();
    if (now_ms < o->left_after_ms)
        return;
    for (size_t at = 0; kube_cache_steered(o->live->cache, &at, &s);) {
        const char *namespace_ = s.revision.namespace_;
        o->left_after_ms = now_ms + LEFT_MS;
        if (!controller_has(o->live->controller, namespace_) ||
            holds(o, "Service", namespace_, s.service) ||
            holds(o, "Configuration", namespace_, s.configuration) ||
            holds(o, "Revision", namespace_, s.revision.name))
            continue;
        actuate_hand_back(o->live->kube, &s.revision, 1, on_handed_back, NULL);
    }
}

static bool any_of_knative(const struct owner *o)
{
    const struct map *entries = &o->live->controller->entries;
    void *value;
    for (size_t i = 0; (i = map_next(entries, i, NULL, &value)) != 0;)
        if (is_of_knative(value))
            return true;
    return false;
}

/* Nobody asks for Knative, and nothing there is ours: it is followed no more. */
static void rest(struct owner *o)
{
    if (any_of_knative(o) || !kube_cache_rest(o->live->cache))
        return;
    o->begun = false;
    uv_timer_stop(&o->timer);
}

/* --- time ------------------------------------------------------------------------------------- */
static bool may_look(const struct owner *o)
{
    const struct controller *c = o->live->controller;
    return c->leading && !c->stopping && c->world.synced(c->world.self);
}

static void look(void *arg)
{
    struct owner *o = arg;
    if (!may_look(o))
        return;
    o->mark++;
    note_says(o);
    look_at_revisions(o);
    forget_gone(o);
}

static void on_time(uv_timer_t *timer)
{
    struct owner *o = timer->data;
    o->soon = false;
    look(o);
    if (!may_look(o))
        return;
    look_at_templates(o);
    look_at_bounds(o);
    rest(o);
}

void owner_begin(struct owner *o)
{
    if (o->begun)
        return;
    o->begun = true;
    uv_timer_start(&o->timer, on_time, EVERY_MS, EVERY_MS);
}

void owner_wake(struct owner *o)
{
    if (!o || !o->begun || o->soon)
        return;
    o->soon = true;
    uv_timer_start(&o->timer, on_time, SOON_MS, EVERY_MS);
}

/* --- what is decided -------------------------------------------------------------------------- */
static struct keep *note_wish(struct owner *o, const struct kube_revision *r,
                              const struct world_wish *wish, const struct actuate_bounds *share)
{
    struct keep *k = keep_of(o, r->namespace_, r->name);
    k->said = o->mark;
    k->most = share->max;
    k->replicas = share->min;
    k->quiet_ms = wish->quiet_ms ? clock_mono_ms() - wish->quiet_ms : 0;
    return k;
}

/* A write that is under way is not waited for: what is wished for now follows it. */
void owner_set_replicas(struct owner *o, const struct kube_revision *revisions, size_t count,
                        const struct world_wish *wish, actuate_done on_done, void *arg)
{
    struct actuate_gather *all = actuate_gather_new(on_done, arg);
    struct actuate_bounds shares[KUBE_MAX_REVISIONS];
    struct kube_owned seen;
    actuate_shares(revisions, count, wish->replicas, wish->most, shares);
    for (size_t i = 0; i < count; i++) {
        if (!revisions[i].ours || revisions[i].percent == 0)
            continue;
        struct keep *k = note_wish(o, &revisions[i], wish, &shares[i]);
        if (k->writing || !kube_cache_owned_one(o->live->cache, &revisions[i], &seen))
            continue;
        k->asked = actuate_gather_add(all);
        reconcile(o, &seen, k);
        if (k->asked && !k->writing) { /* nothing is written for now */
            k->asked = NULL;
            actuate_gathered(all, NULL);
        }
    }
    actuate_gathered(all, NULL);
}

/* --- life ------------------------------------------------------------------------------------- */
struct owner *owner_new(struct live *live, uv_loop_t *loop)
{
    struct owner *o = xcalloc(1, sizeof(*o));
    struct http *http = live->controller->options.http;
    o->live = live;
    o->mark = 1; /* none was seen or said before */
    o->activators = http ? observe_activators_new(loop, live->kube, http, look, o) : NULL;
    uv_timer_init(loop, &o->timer);
    o->timer.data = o;
    return o;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void owner_free(struct owner *o)
{
    observe_activators_free(o->activators);
    if (o->reading)
        o->reading->owner = NULL;
    map_free(&o->keeps, keep_end);
    uv_close((uv_handle_t *)&o->timer, on_closed);
}
