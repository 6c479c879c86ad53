/* How the CPU of a pod is shared by its containers, memory, and VPA's bounds. */
#include "recommend/internal.h"

#define MEMORY_HEADROOM 1.05
#define MEMORY_MIN_DAYS 0.5 /* VPA's updater leaves pods younger than this, within bounds */
#define MI              1048576.0

static double weight_of(const struct judgement *j, const struct recommend_container *c)
{
    double p90 = recommend_history_estimate(j->history, c->name, RECOMMEND_CPU).p90;
    return is_amount(p90) ? p90 : size_of(c);
}

/* VPA's bounds: wide with little history, narrow with much. */
static void fill_range(const struct judgement *j, size_t i, enum recommend_resource r,
                       struct recommendation *out)
{
    const struct recommend_container *c = &j->seen->containers[i];
    struct history_estimate e = recommend_history_estimate(j->history, c->name, r);
    double margin = r == RECOMMEND_CPU ? j->margin : VPA_MARGIN;
    double target = out->containers[i].target[r];
    double lower = e.p50 * margin * pow(1 + 0.001 / e.days, -2);
    double upper = e.p95 * margin * (1 + 1 / e.days);
    lower = isnan(lower) ? c->min[r] : recommend_within(c, r, lower);
    upper = isnan(upper) ? c->max[r] : recommend_within(c, r, upper);
    out->containers[i].lower[r] = fmin(lower, target);
    out->containers[i].upper[r] = fmax(upper, target);
}

static void size_cpu(const struct judgement *j, struct recommendation *out)
{
    double weights[RECOMMEND_MAX_CONTAINERS] = {0}, total = 0;
    for (size_t i = 0; i < j->seen->container_count; i++) {
        const struct recommend_container *c = &j->seen->containers[i];
        if (c->controlled[RECOMMEND_CPU])
            total += weights[i] = weight_of(j, c);
    }
    bool changes = j->pod_cpu != j->cpu;
    double factor = changes ? recommend_split_factor(j->seen, weights, j->pod_cpu) : 0;
    for (size_t i = 0; i < j->seen->container_count; i++) {
        const struct recommend_container *c = &j->seen->containers[i];
        if (!c->controlled[RECOMMEND_CPU])
            continue;
        double size = changes ? recommend_round_cpu(weights[i] * factor) : size_of(c);
        if (weights[i] * factor < size_of(c) && size > size_of(c))
            size = size_of(c); /* rounding up must not turn a shrink around */
        double uncapped =
            changes ? recommend_round_cpu(j->uncapped * weights[i] / total) : size_of(c);
        out->containers[i].target[RECOMMEND_CPU] = recommend_within(c, RECOMMEND_CPU, size);
        out->containers[i].uncapped[RECOMMEND_CPU] = uncapped;
        fill_range(j, i, RECOMMEND_CPU, out);
    }
}

static double memory_in_use(const struct observation *seen, size_t container)
{
    double most = 0;
    for (size_t i = 0; i < seen->pod_count; i++) {
        double usage = seen->pods[i].containers[container].usage[RECOMMEND_MEMORY];
        if (is_amount(usage))
            most = fmax(most, usage);
    }
    return most;
}

/* VPA's rule for memory alone: latency has no say, because too little of it kills. */
static void size_memory(const struct judgement *j, size_t i, struct recommendation *out)
{
    const struct recommend_container *c = &j->seen->containers[i];
    struct history_estimate e = recommend_history_estimate(j->history, c->name, RECOMMEND_MEMORY);
    double now = c->request[RECOMMEND_MEMORY];
    double least = memory_in_use(j->seen, i) * MEMORY_HEADROOM;
    double size = fmax(e.p90 * VPA_MARGIN, least);
    if (!is_amount(size))
        size = is_amount(now) ? now : c->min[RECOMMEND_MEMORY];
    size = ceil(size / MI) * MI;
    out->containers[i].uncapped[RECOMMEND_MEMORY] = size;
    out->containers[i].target[RECOMMEND_MEMORY] = size;
    fill_range(j, i, RECOMMEND_MEMORY, out);
    bool too_soon =
        size < now && e.days < MEMORY_MIN_DAYS && now <= out->containers[i].upper[RECOMMEND_MEMORY];
    bool small = size >= now * (1 - j->seen->tolerance_down) &&
                 size <= now * (1 + j->seen->tolerance_up) && now >= least;
    if (too_soon || small)
        size = now;
    out->containers[i].target[RECOMMEND_MEMORY] = recommend_within(c, RECOMMEND_MEMORY, size);
    fill_range(j, i, RECOMMEND_MEMORY, out);
}

void recommend_sizes_fill(const struct judgement *j, struct recommendation *out)
{
    recommend_nothing(out);
    out->container_count = j->seen->container_count;
    size_cpu(j, out);
    for (size_t i = 0; i < j->seen->container_count; i++)
        if (j->seen->containers[i].controlled[RECOMMEND_MEMORY])
            size_memory(j, i, out);
}
