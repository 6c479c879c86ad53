/* What the experiments with the recommender ppo share: the policy that it decides by, trials of
 * functions as mpactl compare does them, and how well functions were served in these. */
#ifndef FAASRL_EXPERIMENT_SERVED_H
#define FAASRL_EXPERIMENT_SERVED_H

#include "internal.h"

#include <math.h>

#include "recommend/policy.h"
#include "trial/trial.h"

#define SERVED_INTERVAL_S 15.0

/* --- what decides ----------------------------------------------------------------------------- */
struct served_policy {
    struct rl_checkpoint checkpoint;
    struct recommend_policy *policy;
};
/* That of the run; the core's own choices where it has none. */
int served_policy_init(struct served_policy *policy, const struct experiment_run *run,
                       struct error *err);
void served_policy_clear(struct served_policy *policy);

/* --- trials ----------------------------------------------------------------------------------- */
struct served {
    size_t functions, most;       /* samples of a function, at the most */
    struct trial_sample *samples; /* (functions, most) without their reasons */
    size_t *counts;               /* (functions) */
    struct trial_result *results; /* (functions) */
};
/* by: as trial_choose reads it; policy: for those that have learned. The config says all but that
 * and the interval. */
int served_run(const char *by, const struct recommend_policy *policy,
               const struct trial_config *config, struct served *out, struct error *err);
void served_clear(struct served *served);

/* One function with all the room it wants. */
struct served_function {
    const struct trace_function *workload;
    double goal_ms, overhead_ms;
    double intervals;
    const struct trial_hand *instead; /* of the recommender, or NULL */
    uint64_t seed;
};
int served_alone(const char *by, const struct recommend_policy *policy,
                 const struct served_function *function, struct served *out, struct error *err);

/* So many times as many requests come within that time. */
void served_load(struct trace_function *workload, double from_s, double to_s, double factor);

/* --- figures ---------------------------------------------------------------------------------- */
struct served_figures { /* sums over intervals in which requests came */
    double intervals, reward, utilization;
    double requests, late;
};
/* Of intervals from <= i < to. The reward is goal_share · min(1, goal ÷ latency) and for the rest
 * the share of CPU in use. */
struct served_figures served_between(const struct served *served, size_t function, size_t from,
                                     size_t to, double goal_share);
void served_join(struct served_figures *sum, const struct served_figures *more);
static inline double served_reward(const struct served_figures *f)
{
    return f->reward / fmax(f->intervals, 1);
}
static inline double served_utilization(const struct served_figures *f)
{
    return f->utilization / fmax(f->intervals, 1);
}
static inline double served_late(const struct served_figures *f) /* share of requests */
{
    return f->late / fmax(f->requests, 1);
}

/* The first block from which on three have in the mean what is good, in intervals; all of them: no
 * such block. */
double served_adapted(const double *rewards, size_t count, double block, double good);

#endif
