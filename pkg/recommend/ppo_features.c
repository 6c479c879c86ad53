/* What a policy sees of one MPA: numbers from -1 to 1, 0 where nothing is known. */
#include "recommend/ppo.h"

#define USUAL_S 14400.0 /* what is usual is of the last hours */

static float within_one(double x)
{
    return isnan(x) ? 0 : (float)clamp(x, -1, 1);
}

/* How many times more or less, in so many doublings. */
static double doublings(double ratio, double most)
{
    return ratio > 0 ? log2(ratio) / most : -1;
}

/* A number of 0 or more, in so many decades. */
static double decades(double x, double most)
{
    return log10(1 + fmax(x, 0)) / most;
}

static double place(double x, double low, double high)
{
    return high > low ? 2 * log(x / low) / log(high / low) - 1 : 0;
}

static double spent(const struct ppo *p, double allowed)
{
    return (p->late + 0.5) / (p->requests * allowed + 0.5);
}

void recommend_ppo_features(const struct ppo *p, const struct look *l, float *out)
{
    const struct observation *seen = l->seen;
    double allowed = 1 - l->quantile, requests = l->came * p->span_s;
    double reserved = l->size.now * seen->replicas_wanted, pods = fmax(l->ready, 1);
    const struct demand_estimate *e = &p->demand;
    struct readiness_choice r = recommend_readiness_choose(
        p->readiness, allowed,
        recommend_policy_heads[POLICY_RISK].values[recommend_policy_heads[POLICY_RISK].neutral]);
    double needed = recommend_sizing_cost(p->sizing, p->level);
    const double values[POLICY_FEATURE_COUNT] = {
        doublings(p->level * e->mean_s * 4, 10),
        decades(requests, 4),
        doublings(e->mean_s / l->goal_s * 8, 8),
        doublings(e->tail_s / l->goal_s * 2, 4),
        doublings(l->goal_s, 10),
        recommend_latency_known(seen) ? doublings(seen->latency_ms / seen->goal_ms, 4) : -1,
        decades(p->late_now / fmax(requests * allowed, 0.1), 2),
        doublings(spent(p, allowed), 5),
        decades(p->requests * allowed, 4),
        seen->throttled,
        isfinite(seen->concurrency) ? doublings((seen->concurrency + 0.1) / pods, 8) : 0,
        1 - pods / fmax(seen->replicas_wanted, 1),
        clamp(seen->since_increase_s / 300, 0, 1),
        doublings((l->came + 0.01) / (p->level + 0.01), 4),
        doublings((recommend_readiness_peak(p->readiness, 3900) + 0.01) / (p->level + 0.01), 7),
        doublings((p->level + 0.01) / (p->slow_level + 0.01), 4),
        decades(r.risk, 2),
        decades(r.risk_unready, 2),
        doublings(r.cost, 5),
        p->trim,
        isfinite(l->used_milli) ? l->used_milli / fmax(l->size.now * pods, 1) : 0,
        place(fmax(seen->replicas_wanted, 1), fmax(seen->min_replicas, 1), seen->max_replicas),
        l->sized ? place(l->size.now, l->size.min, l->size.max) : 0,
        doublings(reserved / fmax(needed, 1), 5),
        p->short_now,
        isnan(p->surprised_s) ? 1 : clamp((seen->now_s - p->surprised_s) / 3600, 0, 1),
    };
    for (size_t i = 0; i < POLICY_FEATURE_COUNT; i++)
        out[i] = within_one(values[i]);
}

/* --- masks ----------------------------------------------------------------------------------- */
static uint8_t *head_mask(enum policy_head head, uint8_t *mask)
{
    for (enum policy_head h = 0; h < head; h++)
        mask += recommend_policy_heads[h].options;
    return mask;
}

void recommend_ppo_mask(const struct ppo *p, const struct look *l, uint8_t *out)
{
    const struct observation *seen = l->seen;
    const struct policy_head_info *cpu = &recommend_policy_heads[POLICY_CPU];
    uint8_t *cpu_mask = head_mask(POLICY_CPU, out), *split = head_mask(POLICY_SPLIT, out);
    bool missed = recommend_latency_known(seen) && seen->latency_ms > seen->goal_ms;
    struct rl_heads heads;
    (void)p;
    recommend_policy_heads_init(&heads);
    for (size_t i = 0; i < heads.total; i++)
        out[i] = 1;
    for (size_t i = 0; i < cpu->options; i++)
        if ((missed && cpu->values[i] < 1) || (!l->sized && cpu->values[i] != 1))
            cpu_mask[i] = 0;
    if (seen->replicas_wanted < seen->min_replicas || seen->replicas_wanted > seen->max_replicas)
        split[SPLIT_KEEP] = 0;
}

void recommend_ppo_get_used(struct ppo *p, const float *features)
{
    p->usual_s = fmin(p->usual_s + p->span_s, USUAL_S);
    float part = p->usual_s > 0 ? (float)(p->span_s / p->usual_s) : 1;
    for (size_t i = 0; i < POLICY_FEATURE_COUNT; i++)
        p->usual[i] += part * (features[i] - p->usual[i]);
}
