#include "entry.h"

#include <stdio.h>

/* How long a Deferred resize may wait before growth goes to replicas instead, and how long a node's
 * "no" is believed. */
#define DEFERRED_PATIENCE_MS 10000
#define CAP_MS               300000

static void on_replicas_written(void *arg, const struct error *err)
{
    struct entry *e = arg;
    e->scaling = false;
    if (!e->gone && (!err || err->code != ERROR_CANCELLED))
        metrics_count(e->controller->report.rescales, 1,
                      METRICS_LABELS(err ? "failed" : "succeeded"));
    if (err && err->code != ERROR_CANCELLED) {
        entry_event(e, true, "FailedRescale", "replicas %d → %d: %s", e->scale_from, e->scale_to,
                    err->message);
    } else if (!err && !e->gone) {
        double now_s = (double)clock_mono_ms() / 1000;
        guard_scaled(e->guard, now_s, e->scale_from, e->scale_to);
        journal_scaled(e->controller->options.journal, e->key, now_s, e->scale_from, e->scale_to);
        e->last_scale_ms = clock_wall_ms();
        if (e->scale_to > e->scale_from)
            e->increased_ms = clock_mono_ms();
        entry_event(e, false, "SuccessfulRescale", "replicas %d → %d: %s", e->scale_from,
                    e->scale_to, e->reason);
    }
    entry_release(e);
}

void act_on_replicas(struct entry *e, const struct kube_workload *workload, int replicas)
{
    if (e->scaling)
        return;
    e->scaling = true;
    e->scale_from = workload->replicas_wanted;
    e->scale_to = replicas;
    entry_hold(e);
    const struct world *world = &e->controller->world;
    world->set_replicas(world->self, workload, replicas, e->mpa.spec.max_replicas,
                        on_replicas_written, e);
}

static void on_held(void *arg, const struct error *err)
{
    struct entry *e = arg;
    e->scaling = false;
    if (err && err->code != ERROR_CANCELLED)
        entry_event(e, true, "FailedRescale", "the platform's bounds of replicas: %s",
                    err->message);
    entry_release(e);
}

void act_on_bounds(struct entry *e, const struct kube_workload *workload, int replicas)
{
    const struct world *world = &e->controller->world;
    if (e->scaling)
        return;
    e->scaling = true;
    entry_hold(e);
    world->set_replicas(world->self, workload, replicas, e->mpa.spec.max_replicas, on_held, e);
}

/* A node that cannot give the CPU now or ever: pods go back to what they have, and for a while
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
        int64_t most = KUBE_ABSENT;
        for (size_t p = 0; p < count; p++)
            if (i < pods[p]->container_count &&
                pods[p]->containers[i].actual_requests.cpu_milli > most)
                most = pods[p]->containers[i].actual_requests.cpu_milli;
        if (most != KUBE_ABSENT && e->sizes.containers[i].request[API_CPU] > most)
            e->sizes.containers[i].request[API_CPU] = most;
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

void act_on_sizes(struct entry *e, const struct kube_pod *const *pods, size_t count,
                  struct actuate_report *report)
{
    *report = (struct actuate_report){0};
    if (e->sizes.count == 0)
        return;
    actuate_resize(e->actuator, pods, count, &e->sizes, e->mpa.spec.mode == API_MODE_INITIAL,
                   report);
    if (report->patched > 0)
        entry_event(e, false, "ResizedInPlace", "%d pod(s): %s", report->patched, e->reason);
    remember_refusal(e, pods, count, report);
}
