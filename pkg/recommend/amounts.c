/* What recommenders have in common: their parameters, whether anything can be said, and how a
 * proposal comes to lie within the bounds. */
#include "recommend/internal.h"

void recommend_params_fill(const struct recommender *recommender, const double *params,
                           double *values)
{
    for (size_t i = 0; i < recommender->param_count; i++)
        values[i] = params ? params[i] : recommender->params[i].value;
}

int recommend_check(const struct observation *seen, struct error *err)
{
    if (seen->container_count > RECOMMEND_MAX_CONTAINERS ||
        seen->metric_count > RECOMMEND_MAX_METRICS)
        return error_set(err, ERROR_TOO_LARGE, "too many containers or metrics");
    if (seen->replicas_wanted <= 0)
        return error_set(err, ERROR_UNAVAILABLE, "no figures: no replicas are wanted");
    return 0;
}

int recommend_whole(double replicas)
{
    double up = ceil(replicas - SLACK * fmax(replicas, 1));
    return up >= INT32_MAX ? INT32_MAX : up < 0 ? 0 : (int)up;
}

int recommend_ready(const struct observation *seen)
{
    int ready = 0;
    for (size_t i = 0; i < seen->pod_count; i++)
        ready += seen->pods[i].ready;
    return ready;
}

double recommend_concurrency(const struct observation *seen)
{
    if (isfinite(seen->concurrency) && seen->concurrency >= 0)
        return seen->concurrency;
    if (seen->latency_state == LATENCY_NO_TRAFFIC)
        return 0;
    double in_flight = seen->requests_per_s * seen->latency_ms / 1000;
    return isfinite(in_flight) && in_flight >= 0 ? in_flight : NAN;
}

/* --- sizes ----------------------------------------------------------------------------------- */
double recommend_round_cpu(double milli)
{
    double unit = milli > 100 ? 10 : 1;
    return ceil(milli / unit - SLACK) * unit;
}

double recommend_within(const struct recommend_container *c, enum recommend_resource r,
                        double amount)
{
    return clamp(amount, c->min[r], c->max[r]);
}

static double sum_at(const struct observation *seen, const double *weights, double factor)
{
    double sum = 0;
    for (size_t i = 0; i < seen->container_count; i++)
        if (seen->containers[i].controlled[RECOMMEND_CPU])
            sum += recommend_within(&seen->containers[i], RECOMMEND_CPU, weights[i] * factor);
    return sum;
}

double recommend_split_factor(const struct observation *seen, const double *weights, double pod_cpu)
{
    double total = 0, low = 0, high = 1;
    for (size_t i = 0; i < seen->container_count; i++)
        if (seen->containers[i].controlled[RECOMMEND_CPU])
            total += weights[i];
    if (fabs(sum_at(seen, weights, pod_cpu / total) - pod_cpu) <= SLACK * pod_cpu)
        return pod_cpu / total; /* no bound is in the way */
    while (sum_at(seen, weights, high) < pod_cpu && high < 1e12)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (sum_at(seen, weights, middle) < pod_cpu)
            low = middle;
        else
            high = middle;
    }
    return high;
}

struct pod_size recommend_pod_size(const struct observation *seen)
{
    struct pod_size size = {0};
    for (size_t i = 0; i < seen->container_count; i++) {
        const struct recommend_container *c = &seen->containers[i];
        if (!c->controlled[RECOMMEND_CPU])
            continue;
        size.now += size_of(c);
        size.min += c->min[RECOMMEND_CPU];
        size.max += c->max[RECOMMEND_CPU];
    }
    size.ours = size.now > 0;
    return size;
}

/* --- proposals ------------------------------------------------------------------------------- */
double recommend_pod_milli(const struct observation *seen, const struct recommendation *with,
                           bool ours_only)
{
    double sum = 0;
    for (size_t i = 0; i < seen->container_count; i++) {
        const struct recommend_container *c = &seen->containers[i];
        bool ours = c->controlled[RECOMMEND_CPU];
        double target = with && ours ? with->containers[i].target[RECOMMEND_CPU] : NAN;
        if (ours || !ours_only)
            sum += is_amount(target) ? target : size_of(c);
    }
    return sum;
}

void recommend_nothing(struct recommendation *out)
{
    for (size_t i = 0; i < RECOMMEND_MAX_CONTAINERS; i++)
        for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++)
            out->containers[i].target[r] = out->containers[i].lower[r] =
                out->containers[i].upper[r] = out->containers[i].uncapped[r] = NAN;
}

void recommend_set_size(const struct observation *seen, size_t container, enum recommend_resource r,
                        double amount, struct recommendation *out)
{
    const struct recommend_container *c = &seen->containers[container];
    out->containers[container].uncapped[r] = amount;
    out->containers[container].target[r] = recommend_within(c, r, amount);
    out->containers[container].lower[r] = c->min[r];
    out->containers[container].upper[r] = fmax(c->max[r], c->min[r]);
}

void recommend_keep(const struct observation *seen, struct recommendation *out)
{
    *out = (struct recommendation){.container_count = seen->container_count};
    recommend_nothing(out);
    recommend_set_replicas(seen, seen->replicas_wanted, out);
    for (size_t i = 0; i < seen->container_count; i++) {
        const struct recommend_container *c = &seen->containers[i];
        double memory = c->request[RECOMMEND_MEMORY];
        if (c->controlled[RECOMMEND_CPU])
            recommend_set_size(seen, i, RECOMMEND_CPU, size_of(c), out);
        if (c->controlled[RECOMMEND_MEMORY])
            recommend_set_size(seen, i, RECOMMEND_MEMORY,
                               is_amount(memory) ? memory : c->min[RECOMMEND_MEMORY], out);
    }
}

void recommend_set_replicas(const struct observation *seen, int replicas,
                            struct recommendation *out)
{
    int most = seen->max_replicas > seen->min_replicas ? seen->max_replicas : seen->min_replicas;
    out->replicas = (int)clamp(replicas, seen->min_replicas, most);
}

void recommend_set_pod_cpu(const struct observation *seen, double milli, struct recommendation *out)
{
    double weights[RECOMMEND_MAX_CONTAINERS] = {0}, total = 0;
    for (size_t i = 0; i < seen->container_count; i++)
        if (seen->containers[i].controlled[RECOMMEND_CPU])
            total += weights[i] = size_of(&seen->containers[i]);
    if (!(total > 0) || milli == total)
        return;
    double factor = recommend_split_factor(seen, weights, milli);
    for (size_t i = 0; i < seen->container_count; i++) {
        if (weights[i] <= 0)
            continue;
        double size = recommend_round_cpu(weights[i] * factor);
        if (factor < 1 && size > weights[i])
            size = weights[i]; /* rounding up must not turn a shrink around */
        recommend_set_size(seen, i, RECOMMEND_CPU, size, out);
        out->containers[i].uncapped[RECOMMEND_CPU] =
            recommend_round_cpu(milli * weights[i] / total);
    }
}
