/* Shared by the parts of the experiment ppo-aware. */
#ifndef FAASRL_EXPERIMENT_PPO_AWARE_H
#define FAASRL_EXPERIMENT_PPO_AWARE_H

#include "aware.h"
#include "served.h"

#include "learn/learn.h"

#define PPO_AWARE_GOAL_SHARE 0.7 /* of the reward, as in the experiment aware */
#define PPO_AWARE_MOST       3   /* applications: one of each pattern */

struct ppo_aware_app {
    struct app app;
    struct rl_checkpoint
        own; /* what was found for it; nothing: the general policy serves it best */
    struct recommend_policy *policy; /* of the same, or NULL */
};

struct ppo_aware {
    struct experiment_run *run;
    struct served_policy general;
    struct ppo_aware_app apps[PPO_AWARE_MOST];
    size_t app_count;
    size_t tune_episodes, tune_steps;
};

/* What decides for the application: its own policy, or the general one. */
const struct recommend_policy *ppo_aware_policy(const struct ppo_aware *a,
                                                const struct ppo_aware_app *app);
/* Looks in the simulator for a policy that is better for the workload than the rival (NULL: than
 * the general one); *policy stays NULL where there is none. */
int ppo_aware_tune(const struct ppo_aware *a, const struct trace_function *workload, double goal_ms,
                   const struct rl_checkpoint *rival, struct rl_checkpoint *out,
                   struct recommend_policy **policy, struct error *err);

/* The application's requests for so many intervals. */
int ppo_aware_trace(const struct app *app, double intervals, struct trace *out, struct error *err);

enum { /* rows and lines of the experiment */
       PPO_AWARE_UPDATES,
       PPO_AWARE_ADAPT_GENERAL,
       PPO_AWARE_ADAPT_OWN,
       PPO_AWARE_ADAPT_THRESHOLD,
       PPO_AWARE_ADAPT_TL,
       PPO_AWARE_ADAPT_NOTHING,
       PPO_AWARE_FASTER_TL,
       PPO_AWARE_END_GENERAL,
       PPO_AWARE_END_OWN,
       PPO_AWARE_END_THRESHOLD,
       PPO_AWARE_END_TL,
       PPO_AWARE_END_NOTHING,
       PPO_AWARE_FOUND,
       PPO_AWARE_EARLY_CPU,
       PPO_AWARE_EARLY_FEWER,
       PPO_AWARE_EARLY_CPU_THRESHOLD,
       PPO_AWARE_EARLY_FEWER_THRESHOLD,
       PPO_AWARE_EARLY_LATE,
       PPO_AWARE_EARLY_LATE_THRESHOLD,
       PPO_AWARE_EARLY_LATE_NOTHING,
       PPO_AWARE_EARLY_BUSY,
       PPO_AWARE_EARLY_BUSY_THRESHOLD,
       PPO_AWARE_EARLY_BUSY_NOTHING,
       PPO_AWARE_TOLD,
       PPO_AWARE_DELAY_SLOWER,
       PPO_AWARE_DELAY_LOAD,
       PPO_AWARE_DELAY_PATTERN,
       PPO_AWARE_FALSE,
       PPO_AWARE_AGAIN_CPU,
       PPO_AWARE_AGAIN_FEWER,
       PPO_AWARE_AGAIN_LOST,
       PPO_AWARE_STILL_LOST,
       PPO_AWARE_AGAIN_LATE,
       PPO_AWARE_STILL_LATE,
       PPO_AWARE_THRESHOLD_LATE,
       PPO_AWARE_AGAIN_BUSY,
       PPO_AWARE_STILL_BUSY,
       PPO_AWARE_THRESHOLD_BUSY,
       PPO_AWARE_ROWS
};
enum {
    PPO_AWARE_LINE_GENERAL,
    PPO_AWARE_LINE_OWN,
    PPO_AWARE_LINE_THRESHOLD,
    PPO_AWARE_LINE_TL,
    PPO_AWARE_LINE_NOTHING,
    PPO_AWARE_LINE_AGAIN,
    PPO_AWARE_LINE_STILL,
    PPO_AWARE_LINE_CHANGED_THRESHOLD,
    PPO_AWARE_LINES
};

int ppo_aware_begin(struct ppo_aware *a, struct error *err);  /* ppo_aware_begin.c */
int ppo_aware_change(struct ppo_aware *a, struct error *err); /* ppo_aware_change.c */

#endif
