#include "entry.h"

#include <stdio.h>
#include <string.h>

/* How long a Deferred resize may wait before growth goes to replicas instead, and how long a node's
 * "no" is believed. */
#define DEFERRED_PATIENCE_MS 10000
#define CAP_MS               300000
/* Decisions in a row that find bounds set back: one may be somebody else's doing. */
#define IN_VAIN 3

static void remember_answer(struct entry *e, const struct error *err)
{
    e->scaling = false;
    if (!err || err->code != ERROR_CANCELLED)
        snprintf(e->scale_refusal, sizeof(e->scale_refusal), "%s", err ? err->message : "");
}

static void remember_scaling(struct entry *e, double now_s)
{
    guard_scaled(e->guard, now_s, e->scale_from, e->scale_to);
    journal_scaled(e->controller->options.journal, e->key, now_s, e->scale_from, e->scale_to);
    e->last_scale_ms = clock_wall_ms();
    if (e->scale_to > e->scale_from)
        e->increased_ms = clock_mono_ms();
}

/* Whether it was carried out is not known: the answer did not come, or was that of a server in
 * trouble. */
static bool is_unsure(const struct error *err)
{
    return err && (err->code == ERROR_TIMEOUT || err->code == ERROR_UNAVAILABLE ||
                   err->code == ERROR_TOO_LARGE || err->code == ERROR_SYSTEM);
}

void act_settle(struct entry *e, const struct kube_workload *workload)
{
    if (!e->scale_unsure || e->scaling || workload->replicas_wanted == e->scale_from)
        return;
    e->scale_unsure = false;
    if (workload->replicas_wanted == e->scale_to)
        remember_scaling(e, e->scale_unsure_s);
}

static void on_replicas_written(void *arg, const struct error *err)
{
    struct entry *e = arg;
    double now_s = (double)clock_mono_ms() / 1000;
    remember_answer(e, err);
    e->scale_unsure = is_unsure(err) || (err && e->scale_unsure);
    e->scale_unsure_s = now_s;
    if (!e->gone && (!err || err->code != ERROR_CANCELLED))
        metrics_count(e->controller->report.rescales, 1,
                      METRICS_LABELS(err ? "failed" : "succeeded"));
    if (err && err->code != ERROR_CANCELLED) {
        entry_event(e, true, "FailedRescale", "replicas %d → %d: %s", e->scale_from, e->scale_to,
                    err->message);
    } else if (!err && !e->gone) {
        remember_scaling(e, now_s);
        entry_event(e, false, "SuccessfulRescale", "replicas %d → %d: %s", e->scale_from,
                    e->scale_to, e->reason);
    }
    entry_release(e);
}

static struct world_wish wish_of(const struct entry *e, int replicas, int64_t quiet_ms)
{
    return (struct world_wish){
        .replicas = replicas, .most = e->mpa.spec.max_replicas, .quiet_ms = quiet_ms};
}

static void set_replicas(struct entry *e, const struct kube_workload *workload, int replicas,
                         int64_t quiet_ms, actuate_done on_done)
{
    const struct world *world = &e->controller->world;
    struct world_wish wish = wish_of(e, replicas, quiet_ms);
    e->scaling = true;
    entry_hold(e);
    world->set_replicas(world->self, workload, &wish, on_done, e);
}

bool act_in_vain(struct entry *e, const struct kube_workload *workload, int replicas,
                 int64_t quiet_ms)
{
    const struct world *world = &e->controller->world;
    struct world_wish wish = wish_of(e, replicas, quiet_ms);
    if (!world->undone || e->scaling)
        return e->undone >= IN_VAIN;
    bool undone = world->undone(world->self, workload, &wish);
    e->undone = !undone ? 0 : e->undone < IN_VAIN ? e->undone + 1 : IN_VAIN;
    return e->undone >= IN_VAIN;
}

void act_on_replicas(struct entry *e, const struct kube_workload *workload, int replicas,
                     int64_t quiet_ms)
{
    if (e->scaling)
        return;
    e->scale_from = workload->replicas_wanted;
    e->scale_to = replicas;
    set_replicas(e, workload, replicas, quiet_ms, on_replicas_written);
}

static void on_held(void *arg, const struct error *err)
{
    struct entry *e = arg;
    remember_answer(e, err);
    if (err && err->code != ERROR_CANCELLED)
        entry_event(e, true, "FailedRescale", "the platform's bounds of replicas: %s",
                    err->message);
    entry_release(e);
}

void act_on_bounds(struct entry *e, const struct kube_workload *workload, int replicas,
                   int64_t quiet_ms)
{
    if (!e->scaling)
        set_replicas(e, workload, replicas, quiet_ms, on_held);
}

/* What it has then is no size. */
static bool starts(const struct entry *e, const struct kube_pod *pod)
{
    return api_boosts(&e->mpa.spec) &&
           kube_pod_starts(pod, (int64_t)e->mpa.spec.boost.duration_s * 1000);
}

static int64_t cpu_in_force(const struct entry *e, const struct kube_pod *pod, size_t container)
{
    bool counts = container < pod->container_count && !starts(e, pod);
    return counts ? pod->containers[container].actual_requests.cpu_milli : KUBE_ABSENT;
}

/* What most pods have of a container, the larger of two that as many have: some may have got what
 * others did not. */
static int64_t common_cpu(const struct entry *e, const struct kube_pod *const *pods, size_t count,
                          size_t container)
{
    int64_t common = KUBE_ABSENT;
    size_t most = 0;
    for (size_t p = 0; p < count; p++) {
        int64_t has = cpu_in_force(e, pods[p], container);
        size_t alike = 0;
        for (size_t i = 0; i < count && has != KUBE_ABSENT; i++)
            alike += cpu_in_force(e, pods[i], container) == has;
        if (alike > most || (alike == most && has > common)) {
            common = has;
            most = alike;
        }
    }
    return common;
}

/* A node that cannot give the CPU now or ever: pods go back to what most have, and for a while
 * growth goes to replicas. */
static void remember_refusal(struct entry *e, const struct kube_pod *const *pods, size_t count,
                             const struct actuate_report *report)
{
    int64_t now_ms = clock_mono_ms();
    if (!report->deferred)
        e->deferred_since_ms = 0;
    else if (e->deferred_since_ms == 0)
        e->deferred_since_ms = now_ms;
    bool waited = e->deferred_since_ms && now_ms - e->deferred_since_ms >= DEFERRED_PATIENCE_MS;
    if (!report->infeasible && !waited)
        return;
    for (size_t i = 0; i < e->sizes.count; i++) {
        int64_t common = common_cpu(e, pods, count, i);
        if (common != KUBE_ABSENT && e->sizes.containers[i].request[API_CPU] > common)
            e->sizes.containers[i].request[API_CPU] = common;
    }
    if (e->capped_until_ms > now_ms)
        return; /* it is told already; pods are on their way back */
    e->capped_until_ms = now_ms + CAP_MS;
    e->infeasible = report->infeasible;
    snprintf(e->cap_message, sizeof(e->cap_message), "%s; %s for %d minutes", report->message,
             e->mpa.spec.is_action ? "pods keep what they have" : "growth goes to replicas",
             CAP_MS / 60000);
    metrics_count(e->controller->report.resizes, 1,
                  METRICS_LABELS(report->infeasible ? "infeasible" : "deferred"));
    entry_event(e, true, report->infeasible ? "ResizeInfeasible" : "ResizeDeferred", "%s",
                e->cap_message);
}

/* --- the boost of pods that start ------------------------------------------------------------ */
static size_t find_size(const struct actuate_sizes *sizes, const char *container)
{
    size_t i = 0;
    while (i < sizes->count && strcmp(sizes->containers[i].name, container) != 0)
        i++;
    return i;
}

int64_t act_lasting_cpu(const struct entry *e, const struct kube_workload *workload,
                        const char *container)
{
    const struct api_spec *spec = &e->mpa.spec;
    size_t at = find_size(&e->sizes, container);
    if (!spec->controls[API_CPU] || api_container_policy(spec, container)->off)
        return API_ABSENT;
    if (at < e->sizes.count && e->sizes.containers[at].request[API_CPU] != API_ABSENT)
        return e->sizes.containers[at].request[API_CPU];
    int64_t milli = kube_workload_cpu(workload, container);
    return milli > 0 ? milli : API_ABSENT;
}

static void boost_container(const struct entry *e, const struct kube_workload *workload,
                            const char *name, struct actuate_sizes *sizes)
{
    const struct api_spec *spec = &e->mpa.spec;
    int64_t cpu = act_lasting_cpu(e, workload, name);
    size_t at = find_size(sizes, name);
    if (cpu == API_ABSENT || at == API_MAX_CONTAINERS)
        return;
    if (at == sizes->count) {
        sizes->count++;
        snprintf(sizes->containers[at].name, sizeof(sizes->containers[at].name), "%s", name);
        sizes->containers[at].requests_only = api_container_policy(spec, name)->requests_only;
        sizes->containers[at].request[API_MEMORY] = API_ABSENT;
    }
    sizes->containers[at].request[API_CPU] = cpu;
    sizes->containers[at].boosted_cpu = guard_boost(spec, name, cpu);
}

static void add_boost(const struct entry *e, const struct kube_workload *workload,
                      const struct kube_pod *pod, struct actuate_sizes *sizes)
{
    if (!api_boosts(&e->mpa.spec))
        return;
    sizes->boosts = true;
    sizes->boost_more_ms = (int64_t)e->mpa.spec.boost.duration_s * 1000;
    for (size_t i = 0; i < pod->container_count; i++)
        if (!observe_stands_beside(&e->mpa.spec, pod, pod->containers[i].name))
            boost_container(e, workload, pod->containers[i].name, sizes);
}

/* --- sizes ----------------------------------------------------------------------------------- */
static void tell_what_was_done(struct entry *e, const struct actuate_report *report)
{
    int resized = report->patched - report->boosted;
    if (resized > 0)
        entry_event(e, false, "ResizedInPlace", "%d pod(s): %s", resized, e->reason);
    if (report->boosted > 0)
        entry_event(e, false, "StartupBoosted", "%d pod(s) get more CPU until they are ready",
                    report->boosted);
    if (report->boost_refusal[0])
        entry_event(e, true, "BoostRefused", "%s; it starts without", report->boost_refusal);
}

void act_on_sizes(struct entry *e, const struct kube_workload *workload,
                  const struct kube_pod *const *pods, size_t count, struct actuate_report *report)
{
    struct actuate_sizes sizes = e->sizes;
    *report = (struct actuate_report){0};
    e->settles_ms = 0;
    if (count > 0)
        add_boost(e, workload, pods[0], &sizes);
    if (sizes.count == 0)
        return;
    actuate_resize(e->actuator, pods, count, &sizes, e->mpa.spec.mode == API_MODE_INITIAL, report);
    tell_what_was_done(e, report);
    remember_refusal(e, pods, count, report);
    if (report->settles_in_ms < 0)
        return;
    e->settles_ms = clock_mono_ms() + report->settles_in_ms;
    controller_wake(e->controller, report->settles_in_ms);
}
