/* One MPA's observation from the cluster's facts and the figures. */
#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A boost ends a moment after its time. */
#define BOOST_END_MS 5000

static double amount(int64_t value)
{
    return value == KUBE_ABSENT ? NAN : (double)value;
}

static double bound(int64_t value, double otherwise)
{
    return value == API_ABSENT ? otherwise : (double)value;
}

/* --- the boost of pods that start ------------------------------------------------------------ */
static bool is_boosted(const struct observe_subject *subject, const struct kube_pod *pod)
{
    const struct api_spec *spec = &subject->mpa->spec;
    return api_boosts(spec) &&
           kube_pod_starts(pod, (int64_t)spec->boost.duration_s * 1000 + BOOST_END_MS);
}

/* CPU that is in force, but for a boost. */
static double cpu_of(const struct observe_subject *subject, const struct kube_pod *pod,
                     const struct kube_container *k)
{
    double have = amount(k->actual_requests.cpu_milli);
    int64_t lasting = is_boosted(subject, pod) && subject->lasting_cpu
                          ? subject->lasting_cpu(subject->arg, k->name)
                          : API_ABSENT;
    return lasting == API_ABSENT ? have : fmin(have, (double)lasting);
}

/* --- containers ------------------------------------------------------------------------------
 * A bound that is not stated: the guard has a floor of its own, and an upper bound must be a number
 * for the rule that fills CPU before it adds replicas. Then it is what the container has now, or
 * its limit: without being told how far, growth goes to replicas. */
static void set_bounds(struct recommend_container *c, const struct api_container *policy,
                       const struct kube_container *k, double have_cpu, bool cpu_capped)
{
    bool boosted = have_cpu < amount(k->actual_requests.cpu_milli);
    double limit_cpu = boosted ? have_cpu : amount(k->limits.cpu_milli);
    double have_memory = amount(k->actual_requests.memory_bytes);
    c->request[RECOMMEND_CPU] = have_cpu;
    c->request[RECOMMEND_MEMORY] = have_memory;
    c->min[RECOMMEND_CPU] = bound(policy->min[API_CPU], 10);
    c->min[RECOMMEND_MEMORY] = bound(policy->min[API_MEMORY], 16 << 20);
    c->max[RECOMMEND_CPU] = bound(policy->max[API_CPU], fmax(have_cpu, limit_cpu));
    c->max[RECOMMEND_MEMORY] = bound(policy->max[API_MEMORY], 1e18);
    if (cpu_capped && have_cpu < c->max[RECOMMEND_CPU]) {
        c->max[RECOMMEND_CPU] = have_cpu;
        c->min[RECOMMEND_CPU] = fmin(c->min[RECOMMEND_CPU], have_cpu);
    }
    for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++) {
        if (isnan(c->max[r]) || c->max[r] < c->min[r])
            c->max[r] = c->min[r];
    }
}

static bool any_serves(const struct kube_pod *pod, const char *container)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (pod->containers[i].serves &&
            (!container || !strcmp(pod->containers[i].name, container)))
            return true;
    return false;
}

bool observe_stands_beside(const struct api_spec *spec, const struct kube_pod *pod,
                           const char *container)
{
    const struct api_container *policy = api_container_policy(spec, container);
    bool named = policy->name && strcmp(policy->name, container) == 0;
    return strcmp(spec->target_api_version, KUBE_KNATIVE) == 0 && !named && any_serves(pod, NULL) &&
           !any_serves(pod, container);
}

static void add_containers(struct observation *seen, const struct observe_subject *subject,
                           const struct kube_pod *pod)
{
    const struct api_spec *spec = &subject->mpa->spec;
    for (size_t i = 0; i < pod->container_count && i < RECOMMEND_MAX_CONTAINERS; i++) {
        const struct kube_container *k = &pod->containers[i];
        const struct api_container *policy = api_container_policy(spec, k->name);
        struct recommend_container *c = &seen->containers[seen->container_count++];
        *c = (struct recommend_container){.name = k->name};
        bool ours = !policy->off && !observe_stands_beside(spec, pod, k->name) &&
                    !(policy->requests_only && pod->qos == KUBE_QOS_GUARANTEED);
        c->controlled[RECOMMEND_CPU] =
            spec->controls[API_CPU] && ours && k->requests.cpu_milli != KUBE_ABSENT;
        c->controlled[RECOMMEND_MEMORY] =
            spec->controls[API_MEMORY] && ours && k->requests.memory_bytes != KUBE_ABSENT;
        set_bounds(c, policy, k, cpu_of(subject, pod, k), subject->cpu_capped);
    }
}

/* --- pods ------------------------------------------------------------------------------------ */
static int container_index(const struct observation *seen, const char *name)
{
    for (size_t i = 0; i < seen->container_count; i++)
        if (strcmp(seen->containers[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void fill_pod(const struct observe *o, const struct observation *seen,
                     const struct kube_pod *k, struct recommend_pod *pod)
{
    double ready_s = (double)clock_since_ms(k->ready_changed_ms) / 1000;
    pod->ready = k->ready;
    pod->pending = k->phase == KUBE_PENDING;
    pod->age_s = (double)clock_since_ms(k->created_ms) / 1000;
    pod->starting = !k->ready || ready_s < o->window_s / 2;
    for (size_t i = 0; i < RECOMMEND_MAX_CONTAINERS; i++)
        for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++)
            pod->containers[i].usage[r] = pod->containers[i].request[r] = NAN;

    const struct pod_figures *figures = figures_pod(o->newest, k);
    for (size_t i = 0; i < k->container_count; i++) {
        int at = container_index(seen, k->containers[i].name);
        if (at < 0)
            continue;
        struct recommend_usage *u = &pod->containers[at];
        u->request[RECOMMEND_CPU] = amount(k->containers[i].actual_requests.cpu_milli);
        u->request[RECOMMEND_MEMORY] = amount(k->containers[i].actual_requests.memory_bytes);
        const struct container_figures *f = figures_container(figures, k->containers[i].name);
        if (f) {
            u->usage[RECOMMEND_CPU] = f->cpu_milli;
            u->usage[RECOMMEND_MEMORY] = f->memory_bytes;
        }
    }
}

static bool counts(const struct kube_pod *pod)
{
    return !pod->deleting && pod->phase != KUBE_FINISHED;
}

/* Pods may differ for a moment, when a new one has the template's size: the largest counts. */
static void raise_requests(struct observation *seen, const struct observe_subject *subject,
                           const struct kube_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct kube_container *k = &pod->containers[i];
        int at = container_index(seen, k->name);
        if (at < 0)
            continue;
        double *request = seen->containers[at].request;
        request[RECOMMEND_CPU] = fmax(request[RECOMMEND_CPU], cpu_of(subject, pod, k));
        request[RECOMMEND_MEMORY] =
            fmax(request[RECOMMEND_MEMORY], amount(k->actual_requests.memory_bytes));
    }
}

static void add_pods(const struct observe *o, const struct observe_subject *subject,
                     struct observe_view *view)
{
    struct observation *seen = &view->seen;
    view->pods = xcalloc(subject->pod_count, sizeof(*view->pods));
    view->kube_pods = xcalloc(subject->pod_count, sizeof(*view->kube_pods));
    for (size_t i = 0; i < subject->pod_count; i++) {
        const struct kube_pod *pod = subject->pods[i];
        if (!counts(pod))
            continue;
        if (seen->container_count == 0)
            add_containers(seen, subject, pod);
        view->kube_pods[seen->pod_count] = pod;
        fill_pod(o, seen, pod, &view->pods[seen->pod_count]);
        view->pods[seen->pod_count++].starting |= is_boosted(subject, pod);
        raise_requests(seen, subject, pod);
    }
    seen->pods = view->pods;
}

/* The mean over pods that have a quota at all. */
static double throttled(const struct observe *o, const struct observe_view *view)
{
    double sum = 0;
    int n = 0;
    for (size_t i = 0; i < view->seen.pod_count; i++) {
        const struct pod_figures *f = figures_pod(o->newest, view->kube_pods[i]);
        for (size_t c = 0; f && c < f->container_count; c++) {
            if (!isnan(f->containers[c].throttled)) {
                sum += f->containers[c].throttled;
                n++;
            }
        }
    }
    return n ? sum / n : NAN;
}

/* --- latency --------------------------------------------------------------------------------- */
PRINTF_LIKE(2, 3)
static void miss_latency(struct observe_view *view, const char *format, ...)
{
    va_list values;
    view->seen.latency_state = LATENCY_MISSING;
    va_start(values, format);
    vsnprintf(view->latency_trouble, sizeof(view->latency_trouble), format, values);
    va_end(values);
}

static bool is_latency(double seconds)
{
    return seconds >= 0 && seconds <= OBSERVE_MOST_S;
}

static void read_buckets(struct observe_view *view, struct bucket_set *set)
{
    struct observation *seen = &view->seen;
    if (set->absurd != 0)
        return miss_latency(view, "a bucket of latencies gets %g requests/s, which cannot be",
                            set->absurd);
    if (set->count == 0) {
        view->no_series = true;
        return miss_latency(view, "no latency series for these pods");
    }
    double q_s = prom_quantile(seen->percentile / 100, set->items, set->count);
    if (!isnan(q_s) && !is_latency(q_s))
        return miss_latency(view, "a latency of %gs cannot be", q_s);
    seen->requests_per_s = set->items[set->count - 1].count;
    if (isnan(q_s)) {
        seen->latency_state = LATENCY_NO_TRAFFIC;
        return;
    }
    double last_finite_s = set->count > 1 ? set->items[set->count - 2].upper : 0;
    seen->latency_ms = q_s * 1000;
    if (seen->goal_ms > 0)
        seen->late_share = prom_share_above(seen->goal_ms / 1000, set->items, set->count);
    seen->latency_state = q_s >= last_finite_s ? LATENCY_OVERFLOW : LATENCY_KNOWN;
}

static void read_own_value(struct observe_view *view, const struct own_figures *own)
{
    struct observation *seen = &view->seen;
    switch (own->state) {
    case PROM_NUMBER:
        if (!is_latency(own->value_s))
            return miss_latency(view, "the MPA's own query answers %gs, which no latency can be",
                                own->value_s);
        seen->latency_ms = own->value_s * 1000;
        seen->latency_state = LATENCY_KNOWN;
        return;
    case PROM_NAN:
        seen->latency_state = LATENCY_NO_TRAFFIC;
        return;
    default:
        miss_latency(view, "the MPA's own query %s",
                     own->state == PROM_INF ? "answers infinity" : "has no result");
    }
}

static void add_own_latency(const struct observe *o, const struct observe_subject *subject,
                            struct observe_view *view)
{
    const struct own_figures *own = map_get(&o->newest->own, subject->key);
    if (own == NULL)
        return miss_latency(view, "the MPA's own query was not asked yet");
    if (own->failure)
        return miss_latency(view, "%s", own->failure);
    if (!own->is_histogram)
        return read_own_value(view, own);
    struct bucket_set set = {0};
    buckets_merge(&set, &own->latency);
    read_buckets(view, &set);
    free(set.items);
}

/* Before the pods of Knative there is a queue-proxy, which counts the time in its queue, too. */
static void add_common_latency(const struct observe *o, const struct kube_workload *workload,
                               struct observe_view *view)
{
    bool proxied = kube_is_knative(workload);
    enum prom_metric metric = proxied ? PROM_PROXY_BUCKETS : PROM_LATENCY_BUCKETS;
    if (o->newest->failure[metric])
        return miss_latency(view, "%s", o->newest->failure[metric]);
    struct bucket_set set = {0};
    for (size_t i = 0; i < view->seen.pod_count; i++) {
        const struct pod_figures *f = figures_pod(o->newest, view->kube_pods[i]);
        if (f)
            buckets_merge(&set, proxied ? &f->proxy_latency : &f->latency);
    }
    read_buckets(view, &set);
    free(set.items);
}

/* OpenWhisk measures by action, not by pod. Each activation counts in both: what it waits for a
 * pod, and what it takes from then on. Quantiles of the two do not add up, so the wait is a mean,
 * and no part of the latency: CPU would be given in vain. */
static void add_action_latency(const struct observe *o, const char *action,
                               struct observe_view *view)
{
    const struct action_figures *found = map_get(&o->newest->actions, action);
    if (o->newest->failure[PROM_ACTION_BUCKETS])
        return miss_latency(view, "%s", o->newest->failure[PROM_ACTION_BUCKETS]);
    if (!found || (found->latency.count == 0 && found->latency.absurd == 0))
        return miss_latency(view, "OpenWhisk's user-events have no figures of this action");
    struct bucket_set set = {0};
    buckets_merge(&set, &found->latency);
    read_buckets(view, &set);
    free(set.items);
    double wait_s = found->wait / view->seen.requests_per_s;
    if (is_latency(wait_s)) /* not where nothing is called */
        view->wait_ms = wait_s * 1000;
}

bool observe_calls_wait(const struct observe_view *view)
{
    return view->seen.goal_ms > 0 && view->wait_ms > view->seen.goal_ms;
}

static void add_latency(const struct observe *o, const struct observe_subject *subject,
                        struct observe_view *view)
{
    const struct api_spec *spec = &subject->mpa->spec;
    view->seen.percentile = spec->latency_percentile;
    view->seen.goal_ms = (double)spec->latency_target_us / 1000;
    view->seen.latency_ms = view->seen.requests_per_s = view->seen.concurrency = NAN;
    view->seen.late_share = view->wait_ms = NAN;
    if (spec->latency_query && spec->latency_target_us > 0)
        add_own_latency(o, subject, view);
    else if (kube_is_action(subject->workload))
        add_action_latency(o, spec->target_name, view);
    else
        add_common_latency(o, subject->workload, view); /* shown even when there is no goal */
    if (spec->latency_target_us == 0) {
        view->seen.latency_state = LATENCY_NO_GOAL;
        view->latency_trouble[0] = '\0';
    }
}

/* --- the whole ------------------------------------------------------------------------------- */
static void add_metrics(struct observation *seen, const struct api_spec *spec)
{
    for (size_t i = 0; i < spec->metric_count; i++) {
        const struct api_metric *m = &spec->metrics[i];
        struct recommend_metric *out = &seen->metrics[seen->metric_count];
        out->resource = m->resource == API_CPU ? RECOMMEND_CPU : RECOMMEND_MEMORY;
        out->container = m->container ? container_index(seen, m->container) : -1;
        if (m->container && out->container < 0)
            continue; /* a container that the pods do not have */
        out->utilization = m->utilization > 0 ? m->utilization / 100.0 : NAN;
        out->average_value = m->average_value == API_ABSENT ? NAN : (double)m->average_value;
        seen->metric_count++;
    }
}

/* Why none is known: there is none, or it cannot be. */
static int miss_usage(const struct observe *o, const struct observe_view *view,
                      const struct kube_workload *workload, struct error *err)
{
    size_t count = view->seen.pod_count;
    for (size_t i = 0; i < count; i++) {
        const struct pod_figures *f = figures_pod(o->newest, view->kube_pods[i]);
        if (f && f->absurd_cores != 0)
            return error_set(err, ERROR_UNAVAILABLE, "%g cores in use in pod %s, which cannot be",
                             f->absurd_cores, view->kube_pods[i]->name);
    }
    return error_set(err, ERROR_NOT_FOUND, "no CPU usage of the %zu pod(s) of %s/%s", count,
                     workload->kind, workload->name);
}

static bool any_usage(const struct observation *seen)
{
    for (size_t i = 0; i < seen->pod_count; i++)
        for (size_t c = 0; c < seen->container_count; c++)
            if (!isnan(seen->pods[i].containers[c].usage[RECOMMEND_CPU]))
                return true;
    return false;
}

int observe_build(const struct observe *o, const struct observe_subject *subject,
                  struct observe_view *out, struct error *err)
{
    const struct api_spec *spec = &subject->mpa->spec;
    *out = (struct observe_view){0};
    struct observation *seen = &out->seen;
    seen->now_s = (double)clock_mono_ms() / 1000;
    seen->since_increase_s = subject->since_increase_s;
    seen->latency_window_s = o->window_s;
    seen->replicas_wanted = subject->workload->replicas_wanted;
    /* OpenWhisk alone makes pods of an action: who decides must not count on any other number. */
    bool fixed = kube_is_action(subject->workload);
    seen->min_replicas = fixed ? seen->replicas_wanted : spec->min_replicas;
    seen->max_replicas = fixed ? seen->replicas_wanted : spec->max_replicas;
    seen->tolerance_up = spec->scale_up.tolerance;
    seen->tolerance_down = spec->scale_down.tolerance;
    add_pods(o, subject, out);
    add_metrics(seen, spec);
    add_latency(o, subject, out);
    seen->throttled = throttled(o, out);

    if (seen->pod_count == 0)
        return error_set(err, ERROR_NOT_FOUND, "%s/%s has no pods", subject->workload->kind,
                         subject->workload->name);
    if (o->newest->failure[PROM_CPU_USAGE])
        return error_set(err, ERROR_UNAVAILABLE, "CPU usage: %s",
                         o->newest->failure[PROM_CPU_USAGE]);
    if (!any_usage(seen))
        return miss_usage(o, out, subject->workload, err);
    return 0;
}

void observe_view_clear(struct observe_view *view)
{
    free(view->pods);
    free(view->kube_pods);
    view->pods = NULL;
    view->kube_pods = NULL;
}

/* --- as JSON --------------------------------------------------------------------------------- */
/* null, not absence, for what is not known: status is written as a merge patch. */
static void set_number(json_t *o, const char *key, double value, double per_unit)
{
    json_object_set_new(
        o, key, isfinite(value) ? json_real(round(value * per_unit) / per_unit) : json_null());
}

json_t *observe_json(const struct observation *seen)
{
    double usage = 0, request = 0;
    int ready = 0;
    for (size_t i = 0; i < seen->pod_count; i++) {
        ready += seen->pods[i].ready;
        for (size_t c = 0; c < seen->container_count; c++) {
            const struct recommend_usage *u = &seen->pods[i].containers[c];
            if (!isnan(u->usage[RECOMMEND_CPU]) && !isnan(u->request[RECOMMEND_CPU])) {
                usage += u->usage[RECOMMEND_CPU];
                request += u->request[RECOMMEND_CPU];
            }
        }
    }
    json_t *o = json_object();
    json_object_set_new(o, "pods", json_integer((json_int_t)seen->pod_count));
    json_object_set_new(o, "readyPods", json_integer(ready));
    set_number(o, "cpuUsageMilli", usage, 1);
    set_number(o, "cpuUtilization", request > 0 ? usage / request : NAN, 1000);
    set_number(o, "latencyMs", seen->latency_ms, 10);
    set_number(o, "requestsPerSecond", seen->requests_per_s, 100);
    set_number(o, "throttledRatio", seen->throttled, 1000);
    return o;
}
