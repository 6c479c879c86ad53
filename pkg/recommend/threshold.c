/* The threshold recommender: HPA's rule for how much is needed, the latency goal on top, and a
 * stated order of which dimension moves first. docs/threshold.md tells it in words. */
#include "recommend/internal.h"

#define HPA_DEFAULT_UTILIZATION 0.8 /* of HPA v2, where no metric is stated */
#define NEAR_GOAL               0.8 /* above this share of its goal, latency forbids shrinking */
#define SHRINK_TO               0.6 /* and no shrink may bring it above this one: the gap is rest */
#define MIN_LATENCY_PRESSURE    1.2 /* less would drown in the thresholds of a resize */
#define MAX_LATENCY_PRESSURE    2.0
#define THROTTLED_MUCH          0.25
#define THROTTLED_LITTLE        0.05
#define IDLE_RATIO              0.5 /* of the utilisation target: CPU is not what is short */

static void sum_cpu(struct judgement *j)
{
    for (size_t i = 0; i < j->seen->container_count; i++) {
        const struct recommend_container *c = &j->seen->containers[i];
        if (!c->controlled[RECOMMEND_CPU])
            continue;
        j->vertical = true;
        j->cpu += size_of(c);
        j->cpu_max += c->max[RECOMMEND_CPU];
    }
    j->vertical = j->vertical && j->cpu > 0;
}

/* --- utilisation ---------------------------------------------------------------------------- */
static const struct recommend_metric default_metric = {
    .resource = RECOMMEND_CPU,
    .container = -1,
    .utilization = HPA_DEFAULT_UTILIZATION,
    .average_value = NAN,
};

static void take_metrics(struct judgement *j)
{
    const struct observation *seen = j->seen;
    j->metric_count = seen->metric_count;
    for (size_t i = 0; i < seen->metric_count; i++)
        j->metrics[i] = seen->metrics[i];
    if (j->metric_count > 0)
        return;
    j->metrics[0] = default_metric;
    if (j->vertical && seen->min_replicas == seen->max_replicas)
        j->metrics[0].utilization = 1 / VPA_MARGIN;
    j->metric_count = 1;
}

/* Whether more CPU per pod lowers what the metric measures. An average value does not depend on the
 * size of a pod, memory not on CPU. */
static bool met_by_cpu(const struct judgement *j, const struct recommend_metric *m)
{
    return j->vertical && m->resource == RECOMMEND_CPU && isfinite(m->utilization) &&
           (m->container < 0 || j->seen->containers[m->container].controlled[RECOMMEND_CPU]);
}

static double other_request(const struct judgement *j, const struct recommend_metric *m)
{
    double other = 0;
    for (size_t i = 0; m->container < 0 && i < j->seen->container_count; i++) {
        const struct recommend_container *c = &j->seen->containers[i];
        if (!c->controlled[RECOMMEND_CPU] && is_amount(c->request[RECOMMEND_CPU]))
            other += c->request[RECOMMEND_CPU];
    }
    return other;
}

static void assess_metric(struct judgement *j, const struct recommend_metric *m, int *most,
                          struct error *first)
{
    int replicas;
    double ratio;
    struct error failure = {0};
    if (recommend_hpa_replicas(j->seen, m, &replicas, &ratio, &failure) < 0) {
        if (j->invalid++ == 0)
            *first = failure;
        return;
    }
    j->valid++;
    if (!j->lead || replicas > *most) {
        j->lead = m;
        *most = replicas;
    }
    if (m->resource == RECOMMEND_CPU)
        j->busiest = fmax(j->busiest, recommend_usage_ratio(j->seen, m)); /* fmax skips NaN */
    if (!met_by_cpu(j, m)) {
        j->flat = replicas > j->flat ? replicas : j->flat;
        return;
    }
    double other = other_request(j, m);
    j->margin = fmax(j->margin, 1 / m->utilization);
    j->demands[j->demand_count++] = (struct demand){
        .total = j->seen->replicas_wanted * ratio * (j->cpu + other), .other = other};
}

static void assess_metrics(struct judgement *j, struct error *first)
{
    int most = 0;
    for (size_t i = 0; i < j->metric_count; i++)
        assess_metric(j, &j->metrics[i], &most, first);
    if (isnan(j->busiest))
        j->busiest = recommend_usage_ratio(j->seen, &default_metric);
    if (j->invalid > 0) {
        j->may_shrink = false;
        j->no_shrink = "not shrinking while a metric has no figures";
    }
}

/* --- latency -------------------------------------------------------------------------------- */
/* CPU neither busy nor throttled: more of it would not make requests faster. */
static bool cpu_is_idle(const struct judgement *j)
{
    return j->busiest < IDLE_RATIO && j->seen->throttled < THROTTLED_LITTLE;
}

/* Usage cannot pass a quota: a pod that is busy and throttled needs more than it shows, however
 * recent the last increase. */
static bool is_saturated(const struct judgement *j)
{
    return j->busiest > 1 && j->seen->throttled > THROTTLED_MUCH;
}

static void assess_known_latency(struct judgement *j)
{
    const struct observation *seen = j->seen;
    bool beyond = seen->latency_state == LATENCY_OVERFLOW;
    double share = seen->latency_ms / seen->goal_ms;
    bool over = share > 1 || (beyond && share >= 1);
    bool near = share > NEAR_GOAL || beyond;
    j->shrink_floor = fmin(share / SHRINK_TO, 1);
    if (!j->no_shrink)
        j->no_shrink = "too near the goal to shrink";
    if (!near)
        return;
    j->may_shrink = false;
    if (!over && !(seen->throttled > THROTTLED_MUCH))
        return;
    if (seen->since_increase_s < seen->latency_window_s && !is_saturated(j))
        j->note = "the last increase is not yet in the figures";
    else if (cpu_is_idle(j))
        j->note = "CPU is not what makes it slow";
    else
        j->pressure =
            over ? clamp(share, MIN_LATENCY_PRESSURE, MAX_LATENCY_PRESSURE) : MIN_LATENCY_PRESSURE;
}

static void assess_latency(struct judgement *j)
{
    const struct observation *seen = j->seen;
    if (seen->latency_state == LATENCY_NO_GOAL || seen->latency_state == LATENCY_NO_TRAFFIC)
        return;
    j->latency_known = seen->latency_state != LATENCY_MISSING && isfinite(seen->latency_ms) &&
                       seen->latency_ms >= 0 && is_amount(seen->goal_ms);
    if (j->latency_known) {
        assess_known_latency(j);
    } else {
        j->may_shrink = false;
        j->no_shrink = "not shrinking while latency is unknown";
    }
    if (j->pressure > 1 && j->vertical)
        j->demands[j->demand_count++] =
            (struct demand){.total = seen->replicas_wanted * j->pressure * j->cpu};
}

/* --- which dimension moves ------------------------------------------------------------------ */
static int at_least(int a, int b)
{
    return a > b ? a : b;
}

static double cpu_needed(const struct judgement *j, int replicas)
{
    double most = 0;
    for (size_t i = 0; i < j->demand_count; i++)
        most = fmax(most, j->demands[i].total / replicas - j->demands[i].other);
    return most;
}

static int replicas_needed(const struct judgement *j, double cpu)
{
    double most = 0;
    for (size_t i = 0; i < j->demand_count; i++)
        most = fmax(most, j->demands[i].total / (cpu + j->demands[i].other));
    return recommend_whole(most);
}

/* VPA's target for all our containers, but never so tight that the utilisation target is missed. */
static double cpu_remembered(const struct judgement *j)
{
    double sum = 0;
    for (size_t i = 0; i < j->seen->container_count; i++) {
        const struct recommend_container *c = &j->seen->containers[i];
        if (!c->controlled[RECOMMEND_CPU])
            continue;
        double p90 = recommend_history_estimate(j->history, c->name, RECOMMEND_CPU).p90;
        sum += isnan(p90) ? size_of(c) : p90 * j->margin;
    }
    return sum;
}

/* Told only where less would do and nothing changes all the same. */
static void explain_no_shrink(struct judgement *j)
{
    if (!j->note && (!j->may_shrink || j->shrink_floor > 1 - j->seen->tolerance_down))
        j->note = j->no_shrink;
}

static void decide_replicas_only(struct judgement *j)
{
    int n = j->seen->replicas_wanted;
    int wanted = j->valid > 0 ? j->flat : n;
    if (j->pressure > 1)
        wanted = at_least(wanted, recommend_whole(n * j->pressure));
    if (wanted < n) {
        explain_no_shrink(j);
        wanted = j->may_shrink ? at_least(wanted, recommend_whole(n * j->shrink_floor)) : n;
    }
    j->replicas = wanted;
}

/* CPU first, because a resize takes less than a second and a pod seconds; what does not fit goes to
 * replicas. */
static void grow(struct judgement *j, double needed)
{
    j->uncapped = needed;
    j->pod_cpu = fmin(needed, j->cpu_max);
    j->replicas = at_least(j->n, j->flat);
    if (needed > j->cpu_max)
        j->replicas = at_least(j->replicas, replicas_needed(j, j->cpu_max));
}

/* Replicas first; CPU only once they are at their least. */
static void shrink_or_hold(struct judgement *j, double needed)
{
    const struct observation *seen = j->seen;
    int n = j->n, least = at_least(seen->min_replicas, j->flat);
    if (needed < j->cpu * (1 - SLACK))
        explain_no_shrink(j);
    j->replicas = n;
    if (j->may_shrink)
        j->replicas = at_least(replicas_needed(j, j->cpu), recommend_whole(n * j->shrink_floor));
    if (j->replicas > n)
        j->replicas = n;
    j->replicas = at_least(j->replicas, j->may_shrink ? least : at_least(n, least));
    if (j->replicas != n || n > least)
        return;
    double size = j->may_shrink ? fmax(needed, j->cpu * j->shrink_floor) : j->cpu;
    size = fmax(size, cpu_remembered(j));
    if (size >= j->cpu * (1 - seen->tolerance_down) && size <= j->cpu * (1 + seen->tolerance_up))
        return;
    j->uncapped = size;
    j->pod_cpu = size;
}

static void decide(struct judgement *j)
{
    const struct observation *seen = j->seen;
    int most = at_least(seen->max_replicas, seen->min_replicas);
    j->n = seen->replicas_wanted < most ? seen->replicas_wanted : most;
    j->pod_cpu = j->uncapped = j->cpu;
    if (!j->vertical) {
        decide_replicas_only(j);
    } else {
        double needed = cpu_needed(j, j->n);
        if (needed > j->cpu * (1 + SLACK))
            grow(j, needed);
        else
            shrink_or_hold(j, needed);
    }
    bool at_most = seen->replicas_wanted >= most && (!j->vertical || j->cpu >= j->cpu_max);
    if ((j->replicas > most || j->pod_cpu > j->cpu_max || j->pressure > 1) && at_most)
        j->note = "at the maximum";
    j->replicas = (int)clamp(j->replicas, seen->min_replicas, most);
}

/* --- the recommender ------------------------------------------------------------------------ */
static int threshold_recommend(void *self, const struct observation *seen,
                               struct recommendation *out, struct error *err)
{
    struct history *history = self;
    struct judgement j = {
        .seen = seen,
        .history = history,
        .busiest = NAN,
        .margin = VPA_MARGIN,
        .may_shrink = true,
        .pressure = 1,
    };
    if (recommend_check(seen, err) < 0)
        return -1;
    recommend_history_observe(history, seen);
    struct error why = {0};
    sum_cpu(&j);
    take_metrics(&j);
    assess_metrics(&j, &why);
    assess_latency(&j);
    if (j.valid == 0 && !j.latency_known)
        return error_set(err, why.code, "no figures: %s", why.message);
    decide(&j);
    *out = (struct recommendation){.replicas = j.replicas};
    recommend_sizes_fill(&j, out);
    recommend_reason_write(
        &(struct reason){
            .seen = seen, .lead = j.lead, .latency_known = j.latency_known, .note = j.note},
        out);
    return 0;
}

static void *threshold_create(double memory_s, const double *params)
{
    (void)params;
    return recommend_history_new(memory_s);
}

static void threshold_destroy(void *self)
{
    recommend_history_free(self);
}

static void threshold_remember(void *self, const char *container, enum recommend_resource resource,
                               double time_s, double usage)
{
    recommend_history_add(self, container, resource, time_s, usage);
}

const struct recommender recommend_threshold = {
    .name = "threshold",
    .summary = "HPA's and VPA's rules joined, and the latency goal on top",
    .create = threshold_create,
    .destroy = threshold_destroy,
    .remember = threshold_remember,
    .recommend = threshold_recommend,
};
