/* The rule of Kubernetes' Horizontal Pod Autoscaler v2 for one resource metric, including its whole
 * per cents and rounded milli-units: what it answers must be what HPA answers. */
#include "recommend/recommend.h"

#include <math.h>

enum standing { STANDING_COUNTS, STANDING_UNREADY, STANDING_MISSING };

/* Sums over the pods that count, in milli-cores or bytes. */
struct totals {
    double usage, request;
    int pods;
};

struct calculation {
    const struct observation *seen;
    const struct recommend_metric *metric;
    double target_percent; /* when the metric has a utilization */
};

static bool usable(double figure)
{
    return isfinite(figure) && figure >= 0;
}

/* Sums one field over the containers that the metric looks at; NaN when one of them has none. */
static double pod_sum(const struct calculation *c, const struct recommend_pod *pod, bool usage)
{
    double sum = 0;
    for (size_t i = 0; i < c->seen->container_count; i++) {
        if (c->metric->container >= 0 && (size_t)c->metric->container != i)
            continue;
        const struct recommend_usage *u = &pod->containers[i];
        double figure = usage ? u->usage[c->metric->resource] : u->request[c->metric->resource];
        if (!usable(figure))
            return NAN;
        sum += usage ? ceil(figure) : figure; /* MilliValue() rounds up */
    }
    return sum;
}

static enum standing standing_of(const struct calculation *c, const struct recommend_pod *pod)
{
    if (pod->pending)
        return STANDING_UNREADY;
    if (isnan(pod_sum(c, pod, true)))
        return STANDING_MISSING;
    if (c->metric->resource == RECOMMEND_CPU && pod->starting)
        return STANDING_UNREADY;
    return STANDING_COUNTS;
}

static double usage_ratio(const struct calculation *c, const struct totals *t)
{
    if (c->target_percent > 0)
        return floor(t->usage * 100 / t->request) / c->target_percent;
    double unit = c->metric->resource == RECOMMEND_MEMORY ? 1000 : 1; /* HPA counts milli-bytes */
    return floor(t->usage * unit / t->pods) / (c->metric->average_value * unit);
}

/* What HPA assumes of a pod without figures: all of its request, or the target where it is more,
 * when the others ask for less, nothing when they ask for more. Exactly at the target it is left
 * out. */
static void add_missing(const struct calculation *c, const struct recommend_pod *pod, double ratio,
                        struct totals *t)
{
    double request = c->target_percent > 0 ? pod_sum(c, pod, false) : 0;
    if (ratio == 1)
        return;
    if (ratio < 1)
        t->usage += c->target_percent > 0 ? floor(request * fmax(100, c->target_percent) / 100)
                                          : c->metric->average_value;
    t->request += request;
    t->pods++;
}

static bool within(const struct observation *seen, double ratio)
{
    return 1 - seen->tolerance_down <= ratio && ratio <= 1 + seen->tolerance_up;
}

static int whole_replicas(double count)
{
    return count >= INT32_MAX ? INT32_MAX : (int)ceil(count);
}

static int check(struct calculation *c, struct error *err)
{
    const struct recommend_metric *m = c->metric;
    if (m->container >= 0 && (size_t)m->container >= c->seen->container_count)
        return error_set(err, ERROR_INVALID, "the metric names a container that is not there");
    c->target_percent = isfinite(m->utilization) ? round(m->utilization * 100) : 0;
    if (!(c->target_percent > 0) && !(isfinite(m->average_value) && m->average_value > 0))
        return error_set(err, ERROR_INVALID, "the metric has no target");
    if (c->seen->pod_count == 0)
        return error_set(err, ERROR_UNAVAILABLE, "there are no pods");
    for (size_t i = 0; c->target_percent > 0 && i < c->seen->pod_count; i++)
        if (isnan(pod_sum(c, &c->seen->pods[i], false)))
            return error_set(err, ERROR_INVALID, "a container has no %s request",
                             m->resource == RECOMMEND_CPU ? "cpu" : "memory");
    return 0;
}

static int add_counting(const struct calculation *c, struct totals *t, int *unready, int *missing,
                        struct error *err)
{
    for (size_t i = 0; i < c->seen->pod_count; i++) {
        const struct recommend_pod *pod = &c->seen->pods[i];
        enum standing standing = standing_of(c, pod);
        *unready += standing == STANDING_UNREADY;
        *missing += standing == STANDING_MISSING;
        if (standing != STANDING_COUNTS)
            continue;
        t->usage += pod_sum(c, pod, true);
        t->request += c->target_percent > 0 ? pod_sum(c, pod, false) : 0;
        t->pods++;
    }
    if (t->pods == 0)
        return error_set(err, ERROR_UNAVAILABLE, "no ready pod has a %s figure",
                         c->metric->resource == RECOMMEND_CPU ? "cpu" : "memory");
    if (c->target_percent > 0 && !(t->request > 0))
        return error_set(err, ERROR_INVALID, "the pods request nothing");
    return 0;
}

int recommend_hpa_replicas(const struct observation *seen, const struct recommend_metric *metric,
                           int *replicas, double *ratio, struct error *err)
{
    struct calculation c = {.seen = seen, .metric = metric};
    struct totals t = {0};
    int unready = 0, missing = 0, current = seen->replicas_wanted;
    if (check(&c, err) < 0 || add_counting(&c, &t, &unready, &missing, err) < 0)
        return -1;

    double first = usage_ratio(&c, &t), final = first;
    bool grows_with_unready = unready > 0 && first > 1;
    if (grows_with_unready || missing > 0) {
        for (size_t i = 0; i < seen->pod_count; i++) {
            enum standing standing = standing_of(&c, &seen->pods[i]);
            if (standing == STANDING_MISSING ||
                (standing == STANDING_UNREADY && grows_with_unready))
                add_missing(&c, &seen->pods[i], first, &t);
        }
        final = usage_ratio(&c, &t);
    }
    int count = whole_replicas(final * t.pods);
    bool rebalanced = grows_with_unready || missing > 0;
    bool turned = rebalanced && ((first < 1 && final > 1) || (first > 1 && final < 1) ||
                                 (final < 1 && count > current) || (final > 1 && count < current));
    bool keep = within(seen, final) || turned;
    *replicas = keep ? current : count;
    *ratio = keep || current <= 0 ? 1 : final * t.pods / current;
    return 0;
}

double recommend_usage_ratio(const struct observation *seen, const struct recommend_metric *metric)
{
    struct calculation c = {.seen = seen, .metric = metric};
    struct totals t = {0};
    int unready = 0, missing = 0;
    struct error ignored = {0};
    if (check(&c, &ignored) < 0 || add_counting(&c, &t, &unready, &missing, &ignored) < 0)
        return NAN;
    if (c.target_percent > 0)
        return t.usage / t.request / metric->utilization;
    return t.usage / t.pods / metric->average_value;
}
