#include "entry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void on_resized(void *arg, const char *pod, const struct error *err)
{
    struct entry *e = arg;
    metrics_count(e->controller->report.resizes, 1, METRICS_LABELS(err ? "refused" : "accepted"));
    if (err == NULL)
        return;
    entry_event(e, true, "ResizeRefused", "pod %s: %s", pod, err->message);
    e->pods_changed = true; /* what was refused may have been a boost: the size may do */
    controller_wake(e->controller, 0);
}

struct entry *entry_new(struct controller *controller, const char *key)
{
    struct entry *e = xcalloc(1, sizeof(*e));
    e->controller = controller;
    e->key = xstrdup(key);
    e->refs = 1;
    e->guard = guard_new();
    e->actuator = actuator_new(controller->world.resize, controller->world.self);
    actuator_on_answer(e->actuator, on_resized, e);
    story_begin(e);
    journal_forgot(controller->options.journal, key);
    return e;
}

void entry_hold(struct entry *e)
{
    e->refs++;
}

static void forget_recommender(struct entry *e)
{
    learning_end(e);
    recommend_seat_leave(&e->seat);
    e->has_history = false;
}

void entry_release(struct entry *e)
{
    if (--e->refs > 0)
        return;
    forget_recommender(e);
    guard_free(e->guard);
    recommend_shadow_free(e->shadow);
    api_clear(&e->mpa);
    free(e->last.observation);
    free(e->last.cpu);
    free(e->invalid);
    free(e->key);
    free(e);
}

/* What a platform's own autoscaler was held to is taken back, unless another MPA holds it. The
 * workload itself stays as it is. */
static void hand_back(const struct entry *e)
{
    const struct world *world = &e->controller->world;
    struct error err;
    bool acts = e->mpa.uid && e->mpa.spec.mode != API_MODE_OFF;
    bool may = acts && world->hand_back && e->controller->leading && !entry_rival(e);
    const struct kube_workload *w = may ? entry_workload(e, &err) : NULL;
    if (w)
        world->hand_back(world->self, w);
}

void entry_remove(struct entry *e)
{
    if (!e->controller->stopping) {
        hand_back(e);
        learning_forget(e);
    }
    entry_leave(e);
}

void entry_leave(struct entry *e)
{
    e->gone = true;
    e->may_act = e->may_size = false;
    if (!e->controller->stopping)
        journal_forgot(e->controller->options.journal, e->key);
    learning_end(e);
    harvest_leave(e);
    story_end(e);
    entry_forget_status(e);
    actuator_free(e->actuator);
    e->actuator = NULL;
    entry_release(e);
}

/* --- a new state of the MPA ------------------------------------------------------------------ */
static int64_t recommended(const json_t *target, enum api_resource resource)
{
    int64_t amount;
    const char *text = json_str(json_object_get(target, resource == API_CPU ? "cpu" : "memory"));
    int bad = resource == API_CPU ? quantity_parse_milli(text, &amount, NULL)
                                  : quantity_parse_value(text, &amount, NULL);
    return bad ? API_ABSENT : amount;
}

/* The sizes that status recommends: our own of an earlier life, or an external recommender's. */
static void read_sizes(struct entry *e)
{
    const json_t *list =
        json_path(e->mpa.status, "recommendation", "containerRecommendations", NULL);
    size_t i;
    const json_t *item;
    e->sizes.count = 0;
    json_array_foreach (list, i, item) {
        if (e->sizes.count >= API_MAX_CONTAINERS)
            break;
        const char *name = json_str(json_object_get(item, "containerName"));
        const json_t *target = json_object_get(item, "target");
        const struct api_container *policy = api_container_policy(&e->mpa.spec, name);
        size_t at = e->sizes.count++;
        snprintf(e->sizes.containers[at].name, sizeof(e->sizes.containers[at].name), "%s", name);
        e->sizes.containers[at].requests_only = policy->requests_only;
        for (enum api_resource r = 0; r < API_RESOURCE_COUNT; r++)
            e->sizes.containers[at].request[r] =
                policy->off || !e->mpa.spec.controls[r] ? API_ABSENT : recommended(target, r);
    }
}

/* A controller that starts anew, or waits for its turn, goes on from what the last one wrote. */
static void resume(struct entry *e)
{
    const char *when = json_str(json_object_get(e->mpa.status, "lastScaleTime"));
    time_parse(when, &e->last_scale_ms);
    if (e->mpa.spec.mode != API_MODE_OFF && !entry_is_external(e))
        read_sizes(e);
}

static bool same_target(const struct api_spec *a, const struct api_spec *b)
{
    return strcmp(a->target_name, b->target_name) == 0 &&
           strcmp(a->target_kind, b->target_kind) == 0 &&
           strcmp(a->target_api_version, b->target_api_version) == 0;
}

/* While we lead status is what we write, but for what an external recommender says in it. */
static void keep_read(struct entry *e, bool first)
{
    if (first || !e->controller->leading)
        entry_keep_status(e, &e->written, e->mpa.status);
    if (entry_is_external(e))
        return;
    json_decref(e->mpa.status);
    e->mpa.status = NULL;
}

void entry_update(struct entry *e, const json_t *object)
{
    struct api_mpa mpa;
    struct error err = {0};
    bool first = e->mpa.uid == NULL;
    if (e->story)
        e->story->changed = true;
    if (api_parse(object, &mpa, &err) < 0) {
        log_warn("an MPA cannot be followed", log_str("mpa", e->key), log_str("why", err.message));
        string_set(&e->invalid, err.message);
        e->may_act = e->may_size = false;
        return;
    }
    bool changed = first || mpa.generation != e->mpa.generation || mpa.paused != e->mpa.paused;
    bool target_changed = !first && !same_target(&mpa.spec, &e->mpa.spec);
    string_set(&e->invalid, NULL);
    if (target_changed || mpa.spec.mode == API_MODE_OFF)
        hand_back(e);
    api_clear(&e->mpa);
    e->mpa = mpa;
    api_use_default_utilization(&e->mpa.spec, e->controller->options.default_cpu_utilization);
    if (target_changed) {
        forget_recommender(e);
        guard_free(e->guard);
        e->guard = guard_new();
        e->scale_unsure = false;
        e->sizes.count = 0;
        journal_forgot(e->controller->options.journal, e->key);
    }
    if (changed)
        journal_mpa(e->controller->options.journal, e->key, object);
    if (first || !e->controller->leading)
        resume(e);
    if (changed || entry_is_external(e)) {
        e->due = true;
        e->may_act = e->may_size = false; /* until the new state has been decided on */
    }
    if (changed)
        e->capped_until_ms = 0; /* what is wanted now may fit */
    keep_read(e, first);
}

/* --- recommenders ----------------------------------------------------------------------------
 */
bool entry_is_external(const struct entry *e)
{
    return e->mpa.spec.recommender && !recommend_find(e->mpa.spec.recommender);
}

/* Without a policy for the one that is wanted thresholds decide. */
static void choose_anew(struct entry *e, const struct recommender *wanted, double memory_s)
{
    const struct controller_options *options = &e->controller->options;
    struct error why = {0}, none;
    forget_recommender(e);
    if (recommend_seat_take(&e->seat, wanted, memory_s, NULL, options->policy, &why) < 0)
        recommend_seat_take(&e->seat, &recommend_threshold, memory_s, NULL, NULL, &none);
    snprintf(e->why_not, sizeof(e->why_not), "%s",
             why.code && options->policy_trouble ? options->policy_trouble : why.message);
    e->wanted = wanted;
    e->memory_s = memory_s;
    journal_began(options->journal, e->key, e->seat.recommender->name, memory_s);
}

bool entry_choose_recommender(struct entry *e, const char **why_not)
{
    const struct recommender *wanted = recommend_find(e->mpa.spec.recommender);
    double memory_s =
        fmax(e->mpa.spec.scale_down.stabilization_s, 2 * e->controller->options.interval_s);
    if (!e->seat.recommender || e->wanted != wanted || e->memory_s != memory_s)
        choose_anew(e, wanted, memory_s);
    *why_not = e->why_not;
    return !*e->why_not;
}

/* --- the target ------------------------------------------------------------------------------ */
/* Which pods are an action's can be told only once other actions are known. */
const struct kube_workload *entry_workload(const struct entry *e, struct error *err)
{
    const struct world *world = &e->controller->world;
    const struct observe *observe = e->controller->observe;
    const struct api_spec *spec = &e->mpa.spec;
    if (spec->is_action && !observe_knows_actions(observe)) {
        error_set(err, ERROR_BUSY, "OpenWhisk's actions are being looked up");
        return NULL;
    }
    return world->workload(
        world->self,
        &(struct kube_target){
            .api_version = spec->target_api_version,
            .kind = spec->target_kind,
            .namespace_ = e->mpa.namespace_,
            .name = spec->target_name,
            .rival = spec->is_action ? observe_action_rival(observe, spec->target_name) : NULL},
        err);
}

const struct kube_pod **entry_pods(const struct entry *e, const struct kube_workload **workload,
                                   size_t *count)
{
    struct error err;
    const struct world *world = &e->controller->world;
    *count = 0;
    *workload = entry_workload(e, &err);
    if (*workload == NULL)
        return NULL;
    size_t n = world->pods(world->self, *workload, NULL, 0);
    const struct kube_pod **pods = xcalloc(n, sizeof(*pods));
    *count = world->pods(world->self, *workload, pods, n);
    return pods;
}

/* Off mode writes nothing but status, so no events either. */
void entry_event(struct entry *e, bool warning, const char *reason, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    log_emit(warning ? LOG_WARN : LOG_INFO, message,
             (struct log_field[]){log_str("mpa", e->key), log_str("reason", reason)}, 2);
    story_event(e, warning, reason, message);
    if (e->gone || e->mpa.spec.mode == API_MODE_OFF || e->mpa.uid == NULL)
        return;
    const struct world *world = &e->controller->world;
    world->tell(world->self, &(struct kube_event){
                                 .api_version = API_GROUP "/" API_VERSION,
                                 .kind = API_KIND,
                                 .namespace_ = e->mpa.namespace_,
                                 .name = e->mpa.name,
                                 .uid = e->mpa.uid,
                                 .warning = warning,
                                 .reason = reason,
                                 .message = message,
                             });
}
