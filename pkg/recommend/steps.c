/* ppo-steps: the papers' way, a policy that moves replicas and CPU by steps and knows no model. It
 * runs what mpactl train --formulation default has learned: the figures are those of that state
 * (docs/environment.md), reckoned from an observation. Of other functions nothing is told here. */
#include "recommend/internal.h"
#include "recommend/policy.h"

#include <stdio.h>

#define PEAK_HALF_LIFE_S 1800.0
#define NEED_WINDOW_S    60.0
#define NEED_UTILIZATION 0.7
#define MANY_REQUESTS    100.0 /* weigh the work of the last interval fully */
#define SETTLED_S        300.0

enum { REPLICAS, CPU, LEVERS };
#define OPTIONS 5
#define NOTHING 2 /* the option that changes nothing */

static const char *const replica_words[OPTIONS] = {"halved", "one fewer", "", "one more",
                                                   "doubled"};
static const double cpu_factors[OPTIONS] = {0.5, 0.8, 1, 1.25, 2};

struct steps {
    const struct recommend_policy *policy;
    double asked_s; /* NaN: never */
    double rate, rate_change, peak, work_s, used_cores;
    double changed_s; /* when it last asked for something else */
    double settled_s; /* how long that was ago, at the last interval */
};

static void *steps_create(double memory_s, const double *params)
{
    (void)memory_s;
    (void)params;
    struct steps *s = xcalloc(1, sizeof(*s));
    s->asked_s = NAN;
    return s;
}

static void steps_destroy(void *self)
{
    struct steps *s = self;
    recommend_policy_release(s->policy);
    free(s);
}

static int steps_use(void *self, const struct recommend_policy *policy, struct error *err)
{
    struct steps *s = self;
    if (policy && recommend_policy_check(policy, POLICY_OF_STEPS, err) < 0)
        return -1;
    const struct recommend_policy *before = s->policy;
    s->policy = recommend_policy_hold(policy);
    recommend_policy_release(before);
    return 0;
}

/* --- what it sees ----------------------------------------------------------------------------- */
struct sight {
    const struct observation *seen;
    struct pod_size size;
    double used_cores, reserved_cores;
    int ready;
};

static double used_cores(const struct observation *seen)
{
    double sum = 0;
    for (size_t p = 0; p < seen->pod_count; p++)
        for (size_t i = 0; i < seen->container_count; i++) {
            double usage = seen->pods[p].containers[i].usage[RECOMMEND_CPU];
            sum += is_amount(usage) && seen->containers[i].controlled[RECOMMEND_CPU] ? usage : 0;
        }
    return sum / 1000;
}

static int look(const struct observation *seen, struct sight *l, struct error *err)
{
    *l = (struct sight){.seen = seen, .size = recommend_pod_size(seen)};
    if (recommend_check(seen, err) < 0)
        return -1;
    if (seen->latency_state == LATENCY_NO_GOAL || !is_amount(seen->goal_ms))
        return error_set(err, ERROR_INVALID, "no figures: its policy needs a latency goal");
    if (!isfinite(seen->requests_per_s) || seen->requests_per_s < 0)
        return error_set(err, ERROR_UNAVAILABLE, "no figures: the rate of requests is unknown");
    l->used_cores = used_cores(seen);
    l->reserved_cores = l->size.now * seen->replicas_wanted / 1000;
    l->ready = recommend_ready(seen);
    return 0;
}

static void learn(struct steps *s, const struct sight *l)
{
    const struct observation *seen = l->seen;
    bool first = isnan(s->asked_s);
    double span_s = first ? fmax(seen->latency_window_s, 1) : seen->now_s - s->asked_s;
    double rate = seen->requests_per_s, before = first ? rate : s->rate;
    if (!(span_s > 0))
        return; /* asked twice */
    double most = fmax(rate, before), requests = rate * span_s;
    s->rate_change = most > 0 ? (rate - before) / most : 0;
    s->rate = rate;
    s->peak = fmax(rate, s->peak * exp2(-span_s / PEAK_HALF_LIFE_S));
    if (requests > 0) {
        double weight = s->work_s > 0 ? fmin(requests / MANY_REQUESTS, 1) : 1;
        s->work_s += weight * (l->used_cores / rate - s->work_s);
    }
    double kept = first ? 0 : exp(-span_s / NEED_WINDOW_S);
    s->used_cores = kept * s->used_cores + (1 - kept) * l->used_cores;
    s->settled_s = seen->now_s - s->changed_s;
    s->asked_s = seen->now_s;
}

static double cut(double low, double x, double high)
{
    return isnan(x) ? 0 : clamp(x, low, high);
}

static double logarithm(double value, double most)
{
    return cut(0, log1p(fmax(value, 0)) / log1p(most), 1);
}

static double balance(double value, double against)
{
    return cut(-1, log2(value / against) / 4, 1);
}

static double place(double low, double value, double high)
{
    return high > low ? cut(0, (value - low) / (high - low), 1) : 0;
}

static void fill(const struct steps *s, const struct sight *l, float out[POLICY_STEPS_FEATURES])
{
    const struct observation *seen = l->seen;
    double goal_s = seen->goal_ms / 1000, least = l->size.min / 1000 * fmax(seen->min_replicas, 1);
    double needed =
        fmax(fmax(least, fmin(s->work_s / goal_s, 1)), s->used_cores / NEED_UTILIZATION);
    double in_flight = recommend_concurrency(seen);
    const double fields[POLICY_STEPS_FEATURES] = {
        logarithm(s->rate, 1000),
        s->rate_change,
        s->peak > 0 ? s->rate / s->peak : 0,
        cut(0, s->work_s / goal_s, 1),
        cut(0, l->used_cores / l->reserved_cores, 1),
        balance(l->reserved_cores, needed),
        recommend_latency_known(seen) ? balance(seen->latency_ms, seen->goal_ms) : -1,
        cut(0, seen->late_share, 1),
        cut(0, seen->throttled, 1),
        isfinite(in_flight) ? logarithm(in_flight / fmax(l->ready, 1), 1000) : 0,
        cut(0, l->ready / fmax(seen->replicas_wanted, 1), 1),
        place(log1p(seen->min_replicas), log1p(seen->replicas_wanted), log1p(seen->max_replicas)),
        place(log(l->size.min), log(l->size.now), log(l->size.max)),
        cut(0, s->settled_s / SETTLED_S, 1),
        0, /* others' CPU that is reserved, */
        0, /* used, */
        0, /* and their violations */
    };
    for (size_t i = 0; i < POLICY_STEPS_FEATURES; i++)
        out[i] = (float)fields[i];
}

/* --- what it does ----------------------------------------------------------------------------- */
static int replicas_after(const struct observation *seen, int option)
{
    int n = seen->replicas_wanted;
    const int counts[OPTIONS] = {(n + 1) / 2, n - 1, n, n + 1, n <= INT32_MAX / 2 ? 2 * n : n};
    int most = seen->max_replicas > seen->min_replicas ? seen->max_replicas : seen->min_replicas;
    return (int)clamp(counts[option], fmax(seen->min_replicas, 1), most);
}

static double milli_after(const struct pod_size *size, int option)
{
    return clamp(round(size->now * cpu_factors[option]), size->min, size->max);
}

/* A step that would change nothing is illegal. */
static void mask(const struct sight *l, uint8_t out[LEVERS * OPTIONS])
{
    for (int i = 0; i < OPTIONS; i++) {
        bool nothing = i == NOTHING;
        out[i] = nothing || replicas_after(l->seen, i) != l->seen->replicas_wanted;
        out[OPTIONS + i] = nothing || (l->size.ours && milli_after(&l->size, i) != l->size.now);
    }
}

static void propose(struct steps *s, const struct sight *l, const int32_t *choices,
                    struct recommendation *out)
{
    char situation[128];
    const char *replicas = replica_words[choices[REPLICAS]];
    recommend_set_replicas(l->seen, replicas_after(l->seen, choices[REPLICAS]), out);
    if (l->size.ours)
        recommend_set_pod_cpu(l->seen, milli_after(&l->size, choices[CPU]), out);
    if (choices[REPLICAS] != NOTHING || choices[CPU] != NOTHING)
        s->changed_s = l->seen->now_s;
    snprintf(situation, sizeof(situation), "rate %.3g/s, %.0f%% CPU; policy: %s%scpu × %g", s->rate,
             100 * l->used_cores / fmax(l->reserved_cores, SLACK), replicas, *replicas ? ", " : "",
             cpu_factors[choices[CPU]]);
    recommend_reason_write(&(struct reason){.seen = l->seen, .situation = situation}, out);
}

static int steps_recommend(void *self, const struct observation *seen, struct recommendation *out,
                           struct error *err)
{
    struct steps *s = self;
    struct sight l;
    float features[POLICY_STEPS_FEATURES];
    uint8_t legal[LEVERS * OPTIONS];
    int32_t choices[LEVERS];
    if (!s->policy)
        return error_set(err, ERROR_UNAVAILABLE, "no policy is loaded");
    if (look(seen, &l, err) < 0)
        return -1;
    learn(s, &l);
    fill(s, &l, features);
    mask(&l, legal);
    recommend_policy_choose(s->policy, features, legal, choices);
    recommend_keep(seen, out);
    propose(s, &l, choices, out);
    return 0;
}

const struct recommender recommend_ppo_steps = {
    .name = "ppo-steps",
    .summary = "a learned policy of small steps, as in the papers; needs --policy",
    .damps_itself = true,
    .create = steps_create,
    .destroy = steps_destroy,
    .use = steps_use,
    .recommend = steps_recommend,
};
