/* What the cluster shows after each interval: pods as the API server would, and figures as
 * Prometheus would, that is how much counters grew within the window. */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A resize that is not in force by then waits for room on its node. */
#define RESIZE_PATIENCE 2

const double embed_bounds_s[BOUND_COUNT] = {.001, .0025, .005, .01, .025, .05, .075,
                                            .1,   .15,   .2,   .25, .3,   .4,  .5,
                                            .75,  1,     1.5,  2.5, 5,    10,  INFINITY};

/* --- pods ------------------------------------------------------------------------------------ */
static struct pod *pod_new(const struct embed *e, const struct function *f, uint64_t id)
{
    struct pod *p = xcalloc(1, sizeof(*p));
    p->id = id;
    p->growth = xcalloc(e->slots, sizeof(*p->growth));
    p->kube = xcalloc(1, sizeof(*p->kube) + sizeof(p->kube->containers[0]));
    snprintf(p->name, sizeof(p->name), "%.40s-%llu", f->deployment.name, (unsigned long long)id);
    p->kube->namespace_ = f->deployment.namespace_;
    p->kube->name = p->name;
    p->kube->qos = KUBE_QOS_BURSTABLE;
    snprintf(p->kube->uid, sizeof(p->kube->uid), "pod-%llu", (unsigned long long)id);
    snprintf(p->kube->owner_uid, sizeof(p->kube->owner_uid), "%s", f->deployment.uid);
    p->kube->container_count = 1;
    p->kube->containers[0].name = (char *)(uintptr_t)f->container;
    return p;
}

static void pod_free(struct pod *p)
{
    free(p->kube);
    free(p->growth);
    free(p);
}

static struct pod *pod_of(const struct embed *e, struct function *f, uint64_t id)
{
    for (size_t i = 0; i < f->pod_count; i++)
        if (f->pods[i]->id == id)
            return f->pods[i];
    f->pods = xrealloc(f->pods, f->pod_count + 1, sizeof(*f->pods));
    return f->pods[f->pod_count++] = pod_new(e, f, id);
}

static struct kube_amounts amounts(double cpu_milli)
{
    return (struct kube_amounts){cpu_milli > 0 ? llround(cpu_milli) : KUBE_ABSENT, KUBE_ABSENT};
}

static enum kube_resize resize_of(const struct embed *e, const struct function *f,
                                  const struct cluster_replica *r,
                                  const struct cluster_state *state)
{
    if (r->request_milli == state->request_milli && r->limit_milli == state->limit_milli)
        return KUBE_RESIZE_NONE;
    double waited_s = cluster_now_s(e->cluster) - f->resized_s;
    return waited_s <= RESIZE_PATIENCE * f->settings.resize_s ? KUBE_RESIZE_IN_PROGRESS
                                                              : KUBE_RESIZE_DEFERRED;
}

static void show_pod(const struct embed *e, const struct function *f,
                     const struct cluster_replica *r, const struct cluster_state *state,
                     struct kube_pod *out)
{
    int64_t now_ms = clock_wall_ms();
    struct kube_container *c = &out->containers[0];
    bool runs = r->phase != CLUSTER_UNSCHEDULED;
    out->created_ms = now_ms - (int64_t)(r->age_s * 1000);
    out->ready_changed_ms = now_ms - (int64_t)(r->ready_s * 1000);
    out->phase = runs ? KUBE_RUNNING : KUBE_PENDING;
    out->ready = r->phase == CLUSTER_READY;
    out->deleting = r->phase == CLUSTER_DRAINING;
    c->requests = amounts(state->request_milli);
    c->limits = amounts(state->limit_milli);
    c->actual_requests = amounts(r->request_milli);
    c->actual_limits = amounts(r->limit_milli);
    out->resize = runs && !out->deleting ? resize_of(e, f, r, state) : KUBE_RESIZE_NONE;
    out->resize_message = out->resize == KUBE_RESIZE_DEFERRED
                              ? (char *)(uintptr_t) "Node didn't have enough resource: cpu"
                              : NULL;
}

static void drop_gone(struct function *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->pod_count; i++) {
        if (f->pods[i]->seen)
            f->pods[kept++] = f->pods[i];
        else
            pod_free(f->pods[i]);
    }
    f->pod_count = kept;
}

static void take_pods(struct embed *e, size_t index)
{
    struct function *f = &e->functions[index];
    struct cluster_state state;
    cluster_state(e->cluster, index, &state);
    f->deployment.replicas_wanted = state.wanted;
    f->deployment.replicas = state.ready + state.starting + state.unscheduled;

    size_t count = cluster_replicas(e->cluster, index, NULL, 0);
    struct cluster_replica *replicas = xcalloc(count, sizeof(*replicas));
    cluster_replicas(e->cluster, index, replicas, count);
    for (size_t i = 0; i < f->pod_count; i++)
        f->pods[i]->seen = false;
    for (size_t i = 0; i < count; i++) {
        const struct cluster_replica *r = &replicas[i];
        struct pod *p = pod_of(e, f, r->id);
        p->seen = true;
        p->growth[e->slot] = (struct growth){r->cpu_s, r->periods, r->throttled_periods};
        show_pod(e, f, r, &state, p->kube);
    }
    free(replicas);
    drop_gone(f);
}

/* --- figures --------------------------------------------------------------------------------- */
static void take_requests(struct embed *e, size_t index)
{
    struct function *f = &e->functions[index];
    const struct cluster_latency *latency = cluster_latency(e->cluster, index);
    const struct cluster_stats *stats = cluster_stats(e->cluster, index);
    for (size_t k = 0; k < BOUND_COUNT; k++)
        f->latency[e->slot].within[k] = cluster_latency_within(latency, embed_bounds_s[k] * 1000);
    cluster_latency_add(&f->all, latency);
    f->total.span_s += stats->span_s;
    f->total.arrived += stats->arrived;
    f->total.late += stats->late;
    f->total.lost += stats->lost;
    f->total.cpu_s += stats->cpu_s;
    f->total.requested_cpu_s += stats->requested_cpu_s;
    f->total.replica_s += stats->replica_s;
}

void facts_take(struct embed *e)
{
    for (size_t i = 0; i < e->function_count; i++) {
        take_pods(e, i);
        take_requests(e, i);
    }
}

struct answer { /* all figures of a collection */
    struct observe_figure *items;
    size_t count, cap;
};

static void add(struct answer *a, const struct observe_figure *figure)
{
    if (a->count == a->cap) {
        a->cap = a->cap ? 2 * a->cap : 64;
        a->items = xrealloc(a->items, a->cap, sizeof(*a->items));
    }
    a->items[a->count++] = *figure;
}

/* Like rate(): a pod that is younger than the window is taken for idle before. */
static void add_usage(const struct embed *e, const struct pod *p, struct answer *a)
{
    struct growth sum = {0};
    for (size_t i = 0; i < e->slots; i++) {
        sum.cpu_s += p->growth[i].cpu_s;
        sum.periods += p->growth[i].periods;
        sum.throttled_periods += p->growth[i].throttled_periods;
    }
    struct observe_figure figure = {.metric = PROM_CPU_USAGE,
                                    .namespace_ = p->kube->namespace_,
                                    .pod = p->name,
                                    .container = p->kube->containers[0].name,
                                    .value = sum.cpu_s / ((double)e->slots * e->interval_s)};
    add(a, &figure);
    if (p->kube->containers[0].actual_limits.cpu_milli == KUBE_ABSENT)
        return;
    figure.metric = PROM_CPU_THROTTLED;
    figure.value = (double)sum.throttled_periods / (double)sum.periods;
    add(a, &figure); /* 0/0 when it did not run: missing */
}

/* The function's requests are told as those of one of its pods: they are put together again for the
 * MPA, whichever pods they came from. */
static void add_latency(const struct embed *e, const struct function *f, struct answer *a)
{
    size_t speaker = 0;
    while (speaker < f->pod_count && f->pods[speaker]->kube->deleting)
        speaker++;
    for (size_t k = 0; speaker < f->pod_count && k < BOUND_COUNT; k++) {
        double count = 0;
        for (size_t i = 0; i < e->slots; i++)
            count += f->latency[i].within[k];
        add(a, &(struct observe_figure){.metric = PROM_LATENCY_BUCKETS,
                                        .namespace_ = f->deployment.namespace_,
                                        .pod = f->pods[speaker]->name,
                                        .upper_s = embed_bounds_s[k],
                                        .value = count / ((double)e->slots * e->interval_s)});
    }
}

void facts_give(const struct embed *e, struct observe *observe)
{
    struct answer answer = {0};
    for (size_t i = 0; i < e->function_count; i++) {
        const struct function *f = &e->functions[i];
        for (size_t p = 0; p < f->pod_count; p++)
            if (f->pods[p]->kube->ready)
                add_usage(e, f->pods[p], &answer);
        add_latency(e, f, &answer);
    }
    observe_give(observe, answer.items, answer.count);
    free(answer.items);
}

void facts_free(struct function *f)
{
    for (size_t i = 0; i < f->pod_count; i++)
        pod_free(f->pods[i]);
    free(f->pods);
    free(f->latency);
}
