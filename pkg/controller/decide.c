/* One round for one MPA. The steps stand in a table in the order of the flow; a step that cannot go
 * on says why in a condition, and nothing after it happens: nothing is changed. */
#include "entry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct round {
    struct entry *entry;
    const struct kube_workload *workload;
    const struct kube_pod **pods;
    size_t pod_count;
    struct observe_view view;
    bool observed, decided;
    bool cpu_capped;            /* a node has just refused more CPU */
    bool shares;                /* CPU with others of its group, */
    struct harvest_range range; /* which leave it this */
    struct recommendation proposed;
    struct guard_decision decision;
    struct api_status status;
    json_t *observation;
};

#define REASON_LOOKING_UP "LookingUpTarget"
#define REASON_QOS        "QosClassForbids"
#define REASON_NO_REQUEST "NoCpuRequest"

#define say(r, condition, value, reason, ...)                                                      \
    say_(&(r)->status.conditions[condition], value, reason, __VA_ARGS__)
PRINTF_LIKE(4, 5)
static void say_(struct api_condition_value *c, bool status, const char *reason, const char *fmt,
                 ...)
{
    va_list args;
    va_start(args, fmt);
    c->known = true;
    c->status = status;
    snprintf(c->reason, sizeof(c->reason), "%s", reason);
    vsnprintf(c->message, sizeof(c->message), fmt, args);
    va_end(args);
}

/* --- 1. is the MPA one that can be followed? ------------------------------------------------- */
static bool check_spec(struct round *r)
{
    const struct api_mpa *mpa = &r->entry->mpa;
    say(r, API_COND_PAUSED, mpa->paused, mpa->paused ? "PausedByAnnotation" : "NotPaused",
        mpa->paused ? "annotation " API_PAUSE_ANNOTATION " is \"true\": nothing is changed"
                    : "not paused");
    if (r->entry->invalid) {
        say(r, API_COND_CONFIG_UNSUPPORTED, true, "InvalidSpec", "%s", r->entry->invalid);
        return false;
    }
    if (mpa->spec.unsupported.reason) /* the rest is followed */
        say(r, API_COND_CONFIG_UNSUPPORTED, true, mpa->spec.unsupported.reason, "%s",
            mpa->spec.unsupported.message);
    else
        say(r, API_COND_CONFIG_UNSUPPORTED, false, "Supported", "the spec can be followed");
    return true;
}

/* --- 2. is the target there? ----------------------------------------------------------------- */
static void tell_why_not(struct round *r)
{
    struct error err = {0};
    if (entry_workload(r->entry, &err)) /* cannot be: it was not there a moment ago */
        return;
    if (err.code == ERROR_INVALID)
        say(r, API_COND_CONFIG_UNSUPPORTED, true, "UnsupportedTarget", "%s", err.message);
    else
        say(r, API_COND_ABLE_TO_SCALE, false,
            err.code == ERROR_BUSY       ? REASON_LOOKING_UP
            : err.code == ERROR_CONFLICT ? "AmbiguousTarget"
                                         : "FailedGetScale",
            "%s", err.message);
}

static bool find_target(struct round *r)
{
    r->pods = entry_pods(r->entry, &r->workload, &r->pod_count);
    if (r->workload == NULL) {
        tell_why_not(r);
        return false;
    }
    act_settle(r->entry, r->workload);
    r->status.current_replicas = r->workload->replicas;
    r->status.desired_replicas = r->workload->replicas_wanted;
    return true;
}

/* What cannot be owned is steered. */
static bool check_own(struct round *r)
{
    const struct world *world = &r->entry->controller->world;
    struct error err = {0};
    if (r->entry->mpa.spec.knative_own && world->may_own &&
        world->may_own(world->self, r->workload, &err) < 0)
        say(r, API_COND_CONFIG_UNSUPPORTED, true, "CannotOwn",
            "spec.policy.knative is Own, but %s; until then Knative's own autoscaler is steered",
            err.message);
    return true;
}

/* --- 3. is it ours alone? -------------------------------------------------------------------- */
#define REASON_OWNED "OwnedByAnother"

/* In mode Off nothing is touched anyway: people try us beside what they have. */
static bool goes_on(const struct round *r)
{
    return r->entry->mpa.spec.mode == API_MODE_OFF;
}

static bool refuse_scaled(struct round *r, const char *kind, const char *name)
{
    say(r, API_COND_ABLE_TO_SCALE, false, REASON_OWNED,
        "%s %s is scaled by %s %s: delete that one, or this", r->workload->kind, r->workload->name,
        kind, name);
    return goes_on(r);
}

static bool refuse_rival(struct round *r, const struct entry *rival)
{
    const struct api_spec *its = &rival->mpa.spec;
    if (strcmp(its->target_kind, r->workload->kind) == 0)
        return refuse_scaled(r, API_KIND, rival->mpa.name);
    say(r, API_COND_ABLE_TO_SCALE, false, REASON_OWNED,
        "%s %s and %s %s have Revisions in common, and " API_KIND
        " %s scales the latter: delete that one, or this",
        r->workload->kind, r->workload->name, its->target_kind, its->target_name, rival->mpa.name);
    return goes_on(r);
}

/* What is set on a part, the whole undoes. */
static bool refuse_part(struct round *r)
{
    const struct kube_workload *w = r->workload;
    say(r, API_COND_ABLE_TO_SCALE, false, REASON_OWNED,
        "%s %s belongs to %s %s, which says how many replicas it has: name %s", w->kind, w->name,
        w->owner_kind, w->owner_name,
        strcmp(w->owner_kind, "Revision") == 0 ? "its Knative Service" : "that one");
    return goes_on(r);
}

/* There is no pod. Those that a platform makes for the next request get the size decided before. */
static bool rest(struct round *r)
{
    if (kube_is_action(r->workload) || kube_is_knative(r->workload))
        say(r, API_COND_SCALING_ACTIVE, true, "ScaledToZero",
            "no requests: the last pod was ended, and the next request makes one");
    else
        say(r, API_COND_SCALING_ACTIVE, false, "ScalingDisabled",
            "the target was set to 0 replicas by hand: left so until it has some");
    return false;
}

static bool check_alone(struct round *r)
{
    struct entry *e = r->entry;
    const struct api_spec *spec = &e->mpa.spec;
    bool resources = spec->controls[API_CPU] || spec->controls[API_MEMORY];
    const struct world *world = &e->controller->world;
    const struct kube_scaler *scaler = world->scaler(
        world->self, spec->target_kind, e->mpa.namespace_, spec->target_name, true, resources);
    if (scaler)
        return refuse_scaled(r, scaler->kind, scaler->name);
    const struct entry *rival = entry_rival(e);
    if (rival)
        return refuse_rival(r, rival);
    if (r->workload->owner_kind)
        return refuse_part(r);
    say(r, API_COND_ABLE_TO_SCALE, true, "SucceededGetScale", "%s %s has %d replica(s)",
        r->workload->kind, r->workload->name, r->workload->replicas_wanted);
    e->may_size = spec->mode != API_MODE_OFF && !e->mpa.paused;
    return r->workload->replicas_wanted > 0 || rest(r);
}

static bool has_cpu(const struct kube_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (strcmp(pod->containers[i].name, KUBE_ACTION_CONTAINER) == 0)
            return pod->containers[i].requests.cpu_milli != KUBE_ABSENT;
    return false;
}

/* OpenWhisk gives pods CPU only where it is told to. */
static bool check_cpu(struct round *r)
{
    for (size_t i = 0; kube_is_action(r->workload) && i < r->pod_count; i++) {
        const struct kube_pod *pod = r->pods[i];
        if (has_cpu(pod) || pod->deleting || pod->phase == KUBE_FINISHED)
            continue;
        say(r, API_COND_CONFIG_UNSUPPORTED, true, "NoCpuRequest",
            "pod %s has neither a CPU request nor a limit, so there is nothing to set: turn on "
            "whisk.kubernetes.cpu-scaling of the invokers (millicpus, memory, max-millicpus)",
            pod->name);
        return false;
    }
    return true;
}

/* --- 4. what is known? ----------------------------------------------------------------------- */
static bool sizes_any(const struct observation *seen)
{
    for (size_t i = 0; i < seen->container_count; i++)
        if (seen->containers[i].controlled[RECOMMEND_CPU])
            return true;
    return false;
}

static bool stands_beside(const struct round *r, const char *container)
{
    return observe_stands_beside(&r->entry->mpa.spec, r->view.kube_pods[0], container);
}

/* Whether CPU of a container that is meant to be set cannot be, as a condition's reason; a sidecar
 * that nobody named is not meant. */
static const char *find_unsized(const struct round *r, char *message, size_t size)
{
    const struct api_spec *spec = &r->entry->mpa.spec;
    const struct observation *seen = &r->view.seen;
    bool any = sizes_any(seen);
    for (size_t i = 0; spec->controls[API_CPU] && i < seen->container_count; i++) {
        const char *name = seen->containers[i].name;
        const struct api_container *policy = api_container_policy(spec, name);
        bool named = policy->name && strcmp(policy->name, name) == 0;
        if (policy->off || seen->containers[i].controlled[RECOMMEND_CPU] || (any && !named) ||
            stands_beside(r, name))
            continue;
        bool requests = !isnan(seen->containers[i].request[RECOMMEND_CPU]);
        snprintf(message, size,
                 requests
                     ? "the pods are Guaranteed, and controlledValues of container %s are "
                       "RequestsOnly: its CPU is left alone; say RequestsAndLimits"
                     : "container %s has no CPU request: its CPU is left alone; give it one in "
                       "the pod template",
                 name);
        return requests ? REASON_QOS : REASON_NO_REQUEST;
    }
    return NULL;
}

static void tell_unsized(struct round *r)
{
    char message[256];
    const char *reason = find_unsized(r, message, sizeof(message));
    if (reason)
        say(r, API_COND_RESIZE_PENDING, true, reason, "%s", message);
}

static int64_t lasting_cpu(const void *arg, const char *container)
{
    const struct round *r = arg;
    return act_lasting_cpu(r->entry, r->workload, container);
}

static bool look(struct round *r)
{
    struct entry *e = r->entry;
    struct error err = {0};
    int64_t now_ms = clock_mono_ms();
    struct observe_subject subject = {
        .key = e->key,
        .mpa = &e->mpa,
        .workload = r->workload,
        .pods = r->pods,
        .pod_count = r->pod_count,
        .cpu_capped = e->capped_until_ms > now_ms,
        .lasting_cpu = lasting_cpu,
        .arg = r,
        .since_increase_s = e->increased_ms ? (double)(now_ms - e->increased_ms) / 1000 : INFINITY,
    };
    int result = observe_build(e->controller->observe, &subject, &r->view, &err);
    const struct observation *seen = &r->view.seen;
    r->status.latency_us = seen->latency_ms * 1000;
    r->observation = observe_json(seen);
    tell_unsized(r);
    if (result < 0) {
        say(r, API_COND_SCALING_ACTIVE, false, "FailedGetMetrics", "%s: nothing is changed",
            err.message);
        return entry_is_external(e);
    }
    r->observed = true;
    if (seen->latency_state == LATENCY_MISSING)
        say(r, API_COND_SCALING_ACTIVE, false, "LatencyMissing",
            "%s: utilisation alone decides, and nothing shrinks", r->view.latency_trouble);
    else if (observe_calls_wait(&r->view))
        say(r, API_COND_SCALING_ACTIVE, true, "CallsWait",
            "latency and usage are known, but calls wait for a pod longer than the goal before "
            "they run, by openwhisk_action_waitTime_seconds: more invokers would help, CPU does "
            "not");
    else
        say(r, API_COND_SCALING_ACTIVE, true, "ValidMetricFound", "%s",
            seen->latency_state == LATENCY_NO_TRAFFIC ? "no requests at present, usage is known"
            : seen->latency_state == LATENCY_NO_GOAL  ? "usage is known"
                                                      : "latency and usage are known");
    return true;
}

/* --- 5. what would be right? ----------------------------------------------------------------- */
static void propose_nothing(struct round *r)
{
    const struct observation *seen = &r->view.seen;
    r->proposed = (struct recommendation){.replicas = seen->replicas_wanted,
                                          .container_count = seen->container_count};
    for (size_t i = 0; i < seen->container_count; i++)
        for (int k = 0; k < RECOMMEND_RESOURCE_COUNT; k++)
            r->proposed.containers[i].target[k] = r->proposed.containers[i].lower[k] =
                r->proposed.containers[i].upper[k] = r->proposed.containers[i].uncapped[k] = NAN;
}

/* Who is to recommend has to see something first: the observation is told with a decision. */
static void await_external(struct entry *e)
{
    const char *name = e->mpa.spec.recommender;
    snprintf(e->recommender_name, sizeof(e->recommender_name), "%s", name);
    snprintf(e->action, sizeof(e->action), "None");
    snprintf(e->reason, sizeof(e->reason), "%s has not said anything yet", name);
}

/* Someone else writes status.desiredReplicas and status.recommendation; we carry it out. */
static bool take_external(struct round *r)
{
    const json_t *status = r->entry->mpa.status;
    const json_t *replicas = json_object_get(status, "desiredReplicas");
    const json_t *list = json_path(status, "recommendation", "containerRecommendations", NULL);
    propose_nothing(r);
    if (replicas == NULL && list == NULL) {
        say(r, API_COND_RECOMMENDATION_PROVIDED, false, "AwaitingRecommender",
            "recommender %s has not written status.recommendation yet",
            r->entry->mpa.spec.recommender);
        await_external(r->entry);
        return false;
    }
    if (json_is_integer(replicas) && !kube_is_action(r->workload))
        r->proposed.replicas = (int)json_integer_value(replicas);
    size_t i;
    const json_t *item;
    json_array_foreach (list, i, item) {
        const char *name = json_str(json_object_get(item, "containerName"));
        const char *cpu = json_str(json_path(item, "target", "cpu", NULL));
        const char *memory = json_str(json_path(item, "target", "memory", NULL));
        for (size_t c = 0; c < r->view.seen.container_count; c++) {
            int64_t amount;
            if (strcmp(r->view.seen.containers[c].name, name) != 0 || stands_beside(r, name))
                continue;
            if (quantity_parse_milli(cpu, &amount, NULL) == 0)
                r->proposed.containers[c].target[RECOMMEND_CPU] = (double)amount;
            if (quantity_parse_value(memory, &amount, NULL) == 0)
                r->proposed.containers[c].target[RECOMMEND_MEMORY] = (double)amount;
        }
    }
    snprintf(r->proposed.reason, sizeof(r->proposed.reason), "recommended by %s",
             r->entry->mpa.spec.recommender);
    snprintf(r->entry->recommender_name, sizeof(r->entry->recommender_name), "%s",
             r->entry->mpa.spec.recommender);
    say(r, API_COND_RECOMMENDATION_PROVIDED, true, "RecommendationProvided", "by %s",
        r->entry->mpa.spec.recommender);
    return true;
}

/* Also what could not be decided is kept: it is a part of what a recommender has seen. */
static void keep(const struct round *r, bool decided)
{
    const struct entry *e = r->entry;
    journal_decided(e->controller->options.journal, e->key,
                    &(struct journal_decision){
                        .seen = &r->view.seen,
                        .external = entry_is_external(e),
                        .sizes_stay = e->mpa.spec.mode == API_MODE_INITIAL,
                        .cpu_capped = r->cpu_capped,
                        .range = r->shares ? &r->range : NULL,
                        .proposed = decided ? &r->proposed : NULL,
                        .decided = decided ? &r->decision : NULL,
                        .action = decided ? e->action : "None",
                        .reason = decided ? e->reason : "",
                    });
}

static void stand_in(struct round *r, const char *why)
{
    struct entry *e = r->entry;
    snprintf(e->recommender_name, sizeof(e->recommender_name), "%s", recommend_threshold.name);
    if (r->status.conditions[API_COND_FALLBACK_ACTIVE].status) /* which was told already */
        return;
    say(r, API_COND_FALLBACK_ACTIVE, true, "PolicyCannotDecide", "%s decides in place of %s: %s",
        recommend_threshold.name, e->seat.recommender->name, why);
}

/* Who decides, and if it is not the one that is asked for, why. */
static void tell_who(struct round *r, const char *why_not)
{
    struct entry *e = r->entry;
    const char *name = e->seat.recommender->name;
    char progress[256];
    const char *held_back = learning_holds_back(e, progress, sizeof(progress));
    if (*why_not)
        say(r, API_COND_FALLBACK_ACTIVE, true, "NoPolicy", "%s decides in place of %s: %s", name,
            e->mpa.spec.recommender, why_not);
    else if (held_back)
        say(r, API_COND_FALLBACK_ACTIVE, true, held_back, "%s decides in place of %s: %s",
            recommend_threshold.name, name, progress);
    else if (e->seat.recommender->use)
        say(r, API_COND_FALLBACK_ACTIVE, false, "NotNeeded", "%s decides by %s", name,
            learning_which(e));
    else
        say(r, API_COND_FALLBACK_ACTIVE, false, "NotNeeded", "%s decides", name);
}

static bool recommend(struct round *r)
{
    struct entry *e = r->entry;
    struct error err = {0}, instead;
    const char *why_not;
    if (entry_is_external(e)) {
        say(r, API_COND_FALLBACK_ACTIVE, false, "External", "an external recommender decides");
        return take_external(r);
    }
    entry_choose_recommender(e, &why_not);
    learning_see(e, &r->view.seen);
    tell_who(r, why_not);
    snprintf(e->recommender_name, sizeof(e->recommender_name), "%s", e->seat.recommender->name);
    if (recommend_seat_ask(&e->seat, &r->view.seen, e->mpa.spec.mode == API_MODE_INITIAL,
                           &r->proposed, &instead, &err) < 0) {
        keep(r, false);
        learning_decided(e, false);
        say(r, API_COND_RECOMMENDATION_PROVIDED, false, "NoRecommendation",
            "%s: nothing is changed", err.message);
        return false;
    }
    recommend_seat_explain(&e->seat, &r->view.seen, &r->proposed);
    if (instead.code)
        stand_in(r, instead.message);
    learning_decided(e, !instead.code);
    say(r, API_COND_RECOMMENDATION_PROVIDED, true, "RecommendationProvided", "by %s",
        e->recommender_name);
    return true;
}

/* --- 6. what does its group leave it? ----------------------------------------------------------
 */
static bool share_cpu(struct round *r)
{
    r->shares = harvest_range_of(r->entry, r->workload, &r->view.seen, &r->range);
    if (r->shares)
        harvest_gave(r->entry, &r->proposed, harvest_hold(&r->range, &r->view.seen, &r->proposed));
    return true;
}

/* --- 7. what is allowed? --------------------------------------------------------------------- */
static bool pass_guard(struct round *r)
{
    const struct entry *e = r->entry;
    r->cpu_capped = e->capped_until_ms > clock_mono_ms();
    guard_check_seen(e->guard, &e->controller->options.limits, &e->mpa.spec, &r->view.seen,
                     r->cpu_capped, &r->proposed, &r->decision);
    say(r, API_COND_SCALING_LIMITED, r->decision.limited, r->decision.limit_reason, "%s",
        r->decision.limit_message);
    return true;
}

/* --- 8. the decision, and doing it ----------------------------------------------------------- */
/* Where nothing is to be resized, new pods are to have what the others have. */
static void set_sizes(struct round *r)
{
    struct actuate_sizes *sizes = &r->entry->sizes;
    const struct observation *seen = &r->view.seen;
    bool first = sizes->count != seen->container_count;
    sizes->count = seen->container_count;
    for (size_t i = 0; i < seen->container_count; i++) {
        const char *name = seen->containers[i].name;
        snprintf(sizes->containers[i].name, sizeof(sizes->containers[i].name), "%s", name);
        sizes->containers[i].requests_only =
            api_container_policy(&r->entry->mpa.spec, name)->requests_only;
        for (int k = 0; k < API_RESOURCE_COUNT; k++) {
            int64_t *size = &sizes->containers[i].request[k];
            int64_t decided = r->decision.containers[i].request[k];
            if (first)
                *size = API_ABSENT;
            if (decided != API_ABSENT && (r->decision.containers[i].resize || *size == API_ABSENT))
                *size = decided;
        }
    }
}

static bool resizes(const struct round *r)
{
    for (size_t i = 0; i < r->view.seen.container_count; i++)
        if (r->decision.containers[i].resize)
            return true;
    return false;
}

static bool grows(const struct round *r)
{
    for (size_t i = 0; i < r->view.seen.container_count; i++)
        if (r->decision.containers[i].resize &&
            (double)r->decision.containers[i].request[API_CPU] >
                r->view.seen.containers[i].request[RECOMMEND_CPU])
            return true;
    return false;
}

/* Some replicas come to more than were decided, and stay so. */
static bool rescales(const struct round *r)
{
    const struct world *world = &r->entry->controller->world;
    int has = r->workload->replicas_wanted, wants = r->decision.replicas;
    return wants != has &&
           !(world->comes_to && world->comes_to(world->self, r->workload, wants,
                                                r->entry->mpa.spec.max_replicas) == has);
}

static void name_action(struct round *r)
{
    struct entry *e = r->entry;
    bool scale = rescales(r), resize = resizes(r);
    snprintf(e->action, sizeof(e->action), "%s",
             scale && resize ? "RescaleAndResize"
             : scale         ? "Rescale"
             : resize        ? "Resize"
                             : "None");
    if (r->decision.limited)
        snprintf(e->reason, sizeof(e->reason), "%s (%s)", r->proposed.reason,
                 r->decision.limit_message);
    else
        snprintf(e->reason, sizeof(e->reason), "%s", r->proposed.reason);
}

static void tell_pending(struct round *r, const struct actuate_report *report)
{
    const struct entry *e = r->entry;
    if (report->impossible == 0 && e->capped_until_ms > clock_mono_ms()) {
        say(r, API_COND_RESIZE_PENDING, true, e->infeasible ? "Infeasible" : "Deferred", "%s",
            e->cap_message);
        return;
    }
    bool pending = report->pending > 0 || report->impossible > 0;
    if (!pending && r->status.conditions[API_COND_RESIZE_PENDING].known)
        return; /* it cannot be sized at all */
    const char *reason = report->impossible   ? REASON_QOS
                         : report->infeasible ? "Infeasible"
                         : report->deferred   ? "Deferred"
                                              : "Refused";
    say(r, API_COND_RESIZE_PENDING, pending, pending ? reason : "NonePending", "%s",
        pending ? report->message : "every pod has the size it was given");
}

/* That the last write was refused matters as long as there is something to write. */
static void tell_scale_refusal(struct round *r, bool writes)
{
    struct entry *e = r->entry;
    if (!writes)
        e->scale_refusal[0] = '\0';
    else if (e->scale_refusal[0])
        say(r, API_COND_ABLE_TO_SCALE, false, "FailedUpdateScale", "%s", e->scale_refusal);
}

/* Pods that were never asked have no series either; the activator will tell before the last one
 * goes. */
static bool is_quiet(const struct round *r)
{
    const struct observation *seen = &r->view.seen;
    return kube_is_knative(r->workload) &&
           (seen->latency_state == LATENCY_NO_TRAFFIC || seen->requests_per_s == 0 ||
            (r->workload->owned && r->view.no_series));
}

/* Rates look back: what they call quiet was so for their whole window. */
static int64_t quiet_ms(struct round *r)
{
    struct entry *e = r->entry;
    int64_t now_ms = clock_mono_ms();
    bool quiet = is_quiet(r), measured = !r->view.no_series;
    if (!quiet)
        e->quiet_since_ms = 0;
    else if (e->quiet_since_ms == 0)
        e->quiet_since_ms =
            now_ms - (measured ? (int64_t)(r->view.seen.latency_window_s * 1000) : 1);
    return quiet ? now_ms - e->quiet_since_ms : 0;
}

/* Its own autoscaler decides then, and nothing of ours is a rescale. */
static bool is_in_vain(struct round *r, int replicas, int64_t quiet)
{
    if (!kube_is_knative(r->workload) || !act_in_vain(r->entry, r->workload, replicas, quiet))
        return false;
    say(r, API_COND_CONFIG_UNSUPPORTED, true, "BoundsUndone",
        "Knative sets bounds of its autoscaler back, as its versions from 1.21 on do: replicas "
        "stay its own, unless policy.knative is Own on the Service; CPU is set all the same");
    return true;
}

/* Knative takes a quiet function to zero by itself, if nobody holds it, and new Revisions have to
 * get their share of what is decided already. What is of our class only shrinks then. */
static void set_replicas(struct round *r)
{
    const struct kube_workload *w = r->workload;
    if (kube_is_action(w))
        return; /* OpenWhisk's own */
    int replicas = r->decision.replicas;
    int64_t quiet = quiet_ms(r);
    bool ours = !quiet || (w->owned && replicas < w->replicas_wanted);
    bool change = ours && rescales(r), in_vain = is_in_vain(r, replicas, quiet);
    tell_scale_refusal(r, change || kube_is_knative(w));
    if (change && !in_vain)
        act_on_replicas(r->entry, w, replicas, quiet);
    else if (kube_is_knative(w))
        act_on_bounds(r->entry, w, replicas, quiet);
}

static bool act(struct round *r)
{
    struct entry *e = r->entry;
    r->decided = true;
    name_action(r);
    keep(r, true);
    metrics_count(e->controller->report.decisions, 1, METRICS_LABELS(e->action));
    e->last.decided_ms = clock_wall_ms();
    r->status.desired_replicas = r->decision.replicas;
    e->may_act = e->may_size;
    learning_guarded(e, &r->decision, r->cpu_capped);
    shadow_add(e, &r->view.seen, &r->proposed);
    if (!e->may_act)
        return true;
    set_sizes(r);
    if (resizes(r)) {
        guard_resized(e->guard, r->view.seen.now_s);
        journal_resized(e->controller->options.journal, e->key, r->view.seen.now_s);
        if (grows(r) && e->mpa.spec.mode == API_MODE_AUTO)
            e->increased_ms = clock_mono_ms();
    }
    struct actuate_report report;
    act_on_sizes(e, r->workload, r->pods, r->pod_count, &report);
    tell_pending(r, &report);
    set_replicas(r);
    return true;
}

/* --- the end of the round: status ------------------------------------------------------------ */
static int64_t whole(double amount)
{
    return isnan(amount) ? API_ABSENT : (int64_t)llround(amount);
}

static void fill_recommendation(struct round *r)
{
    const struct observation *seen = &r->view.seen;
    for (size_t i = 0; i < seen->container_count; i++) {
        struct api_container_status *out = &r->status.containers[r->status.container_count];
        bool any = false;
        out->name = seen->containers[i].name;
        for (int k = 0; k < API_RESOURCE_COUNT; k++) {
            /* What is decided, where it was; else what pods have. */
            bool decided = r->decision.containers[i].request[k] != API_ABSENT;
            bool mine = seen->containers[i].controlled[k];
            out->target[k] = !mine     ? API_ABSENT
                             : decided ? r->decision.containers[i].request[k]
                                       : whole(seen->containers[i].request[k]);
            out->lower[k] = mine ? whole(r->proposed.containers[i].lower[k]) : API_ABSENT;
            out->upper[k] = mine ? whole(r->proposed.containers[i].upper[k]) : API_ABSENT;
            out->uncapped[k] = mine ? whole(r->proposed.containers[i].uncapped[k]) : API_ABSENT;
            any |= out->target[k] != API_ABSENT;
        }
        r->status.container_count += any;
    }
}

/* A target without pods keeps what is decided for the next one, also for another controller. */
static void keep_recommendation(struct round *r)
{
    const struct actuate_sizes *sizes = &r->entry->sizes;
    if (r->workload == NULL || r->view.seen.container_count > 0)
        return;
    for (size_t i = 0; i < sizes->count; i++) {
        struct api_container_status *out = &r->status.containers[r->status.container_count];
        bool any = false;
        out->name = sizes->containers[i].name;
        for (int k = 0; k < API_RESOURCE_COUNT; k++) {
            out->target[k] = sizes->containers[i].request[k];
            out->lower[k] = out->upper[k] = out->uncapped[k] = API_ABSENT;
            any |= out->target[k] != API_ABSENT;
        }
        r->status.container_count += any;
    }
}

/* Ready is the sum of the others: the first that is not as it should be gives its reason. */
static void sum_up(struct round *r)
{
    static const struct {
        enum api_condition condition;
        bool wanted;
    } needed[] = {
        {API_COND_CONFIG_UNSUPPORTED, false},
        {API_COND_ABLE_TO_SCALE, true},
        {API_COND_SCALING_ACTIVE, true},
        {API_COND_RECOMMENDATION_PROVIDED, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        const struct api_condition_value *c = &r->status.conditions[needed[i].condition];
        if (c->known && c->status != needed[i].wanted) {
            say(r, API_COND_READY, false, c->reason, "%s", c->message);
            return;
        }
    }
    say(r, API_COND_READY, true, "Following", "the goal is followed");
}

/* What nodes and the API server refuse is told when they do. */
static bool cannot_be_sized(const struct api_condition_value *sizing)
{
    return sizing->known && sizing->status &&
           (strcmp(sizing->reason, REASON_QOS) == 0 ||
            strcmp(sizing->reason, REASON_NO_REQUEST) == 0);
}

/* A refusal is said in an event once, when it begins. That a target is still being looked up is
 * none. */
static void tell_refusal(struct round *r)
{
    struct entry *e = r->entry;
    const struct api_condition_value *unable = &r->status.conditions[API_COND_ABLE_TO_SCALE];
    const struct api_condition_value *config = &r->status.conditions[API_COND_CONFIG_UNSUPPORTED];
    const struct api_condition_value *sizing = &r->status.conditions[API_COND_RESIZE_PENDING];
    const struct api_condition_value *why = unable->known && !unable->status  ? unable
                                            : config->known && config->status ? config
                                            : cannot_be_sized(sizing)         ? sizing
                                                                              : NULL;
    if (why && strcmp(why->reason, REASON_LOOKING_UP) == 0)
        return;
    if (why && strcmp(why->reason, e->refusal) != 0)
        entry_event(e, true, why->reason, "%s", why->message);
    snprintf(e->refusal, sizeof(e->refusal), "%s", why ? why->reason : "");
}

static json_t *recommended_cores(const struct api_status *status)
{
    json_t *out = json_object();
    for (size_t i = 0; i < status->container_count; i++) {
        const struct api_container_status *c = &status->containers[i];
        if (c->target[API_CPU] != API_ABSENT)
            json_object_set_new(out, c->name, json_real((double)c->target[API_CPU] / 1000));
    }
    return out;
}

static void keep_for_metrics(const struct round *r)
{
    struct entry *e = r->entry;
    e->last.decided = true;
    e->last.current_replicas = r->status.current_replicas;
    e->last.desired_replicas = r->status.desired_replicas;
    e->last.latency_us = r->status.latency_us;
    e->last.known = e->last.true_ = 0;
    for (unsigned i = 0; i < API_COND_COUNT; i++) {
        const struct api_condition_value *c = &r->status.conditions[i];
        e->last.known |= (uint32_t)c->known << i;
        e->last.true_ |= (uint32_t)(c->known && c->status) << i;
        snprintf(e->last.reasons[i], sizeof(e->last.reasons[i]), "%s", c->reason);
    }
    free(e->last.observation);
    e->last.observation = r->observation ? json_dumps(r->observation, JSON_COMPACT) : NULL;
    free(e->last.cpu);
    cleanup_json json_t *cores = recommended_cores(&r->status);
    e->last.cpu = json_dumps(cores, JSON_COMPACT);
}

/* CPU of what is controlled in one pod, and what it is to be. */
static double controlled_cpu(const struct round *r)
{
    double milli = NAN;
    for (size_t i = 0; i < r->view.seen.container_count; i++) {
        const struct recommend_container *c = &r->view.seen.containers[i];
        if (c->controlled[RECOMMEND_CPU] && !isnan(c->request[RECOMMEND_CPU]))
            milli = (isnan(milli) ? 0 : milli) + c->request[RECOMMEND_CPU];
    }
    return milli;
}

static double wanted_cpu(const struct round *r)
{
    double milli = NAN;
    for (size_t i = 0; i < r->status.container_count; i++)
        if (r->status.containers[i].target[API_CPU] != API_ABSENT)
            milli = (isnan(milli) ? 0 : milli) + (double)r->status.containers[i].target[API_CPU];
    return milli;
}

static void keep_for_dashboard(const struct round *r)
{
    const json_t *utilization = json_object_get(r->observation, "cpuUtilization");
    double cpu = controlled_cpu(r), wanted = wanted_cpu(r);
    story_add(r->entry,
              &(struct story_round){
                  .requests_per_s = r->observed ? r->view.seen.requests_per_s : NAN,
                  .latency_ms = r->status.latency_us / 1000,
                  .utilization = json_is_number(utilization) ? json_number_value(utilization) : NAN,
                  .cpu_milli = cpu,
                  .wanted_cpu_milli = wanted,
                  .replicas = r->status.current_replicas,
                  .wanted_replicas = r->status.desired_replicas,
                  .changes = r->decided && strcmp(r->entry->action, "None") != 0,
                  .from_replicas = r->workload ? r->workload->replicas_wanted : -1,
                  .to_replicas = r->decision.replicas,
                  .to_cpu_milli = r->decided && resizes(r) ? wanted : cpu,
                  .fallback = &r->status.conditions[API_COND_FALLBACK_ACTIVE],
              });
}

static void begin(struct round *r, struct entry *e)
{
    *r = (struct round){.entry = e};
    r->status.observed_generation = e->mpa.generation;
    r->status.current_replicas = r->status.desired_replicas = -1;
    r->status.latency_us = NAN;
    r->status.percentile = e->mpa.spec.latency_percentile;
    r->status.latency_target_us = e->mpa.spec.latency_target_us;
    for (size_t i = 0; i < API_MAX_CONTAINERS; i++)
        for (int k = 0; k < API_RESOURCE_COUNT; k++)
            r->decision.containers[i].request[k] = API_ABSENT;
}

static void end(struct round *r)
{
    struct entry *e = r->entry;
    fill_recommendation(r);
    keep_recommendation(r);
    sum_up(r);
    tell_refusal(r);
    keep_for_metrics(r);
    r->status.last_scale_ms = e->last_scale_ms;
    shadow_tell(e, &r->status);
    if (e->action[0]) {
        r->status.decision.time_ms = clock_wall_ms();
        r->status.decision.recommender = e->recommender_name;
        r->status.decision.action = e->action;
        r->status.decision.reason = e->reason;
        r->status.decision.observation = r->observation;
    }
    publish(e, &r->status);
    keep_for_dashboard(r);
    observe_view_clear(&r->view);
    json_decref(r->observation);
    free(r->pods);
}

void entry_decide(struct entry *e)
{
    static bool (*const steps[])(struct round *) = {
        check_spec, find_target, check_own, check_alone, check_cpu,
        look,       recommend,   share_cpu, pass_guard,  act,
    };
    struct round r;
    begin(&r, e);
    e->due = e->may_act = e->may_size = false;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (!steps[i](&r))
            break;
    end(&r);
}
