/* Shared by the parts of the experiment aware. */
#ifndef FAASRL_EXPERIMENT_AWARE_H
#define FAASRL_EXPERIMENT_AWARE_H

#include "internal.h"

#include "train/train.h"

/* --- applications (aware_apps.c) ---------------------------------------------------------------
 */
#define APP_STEPS 100 /* of an episode */

struct app {
    enum { APP_STEADY, APP_DAILY, APP_BURSTY } pattern;
    double rate;              /* requests per second, mean */
    double demand_ms, p99_ms; /* CPU of a request */
    double overhead_ms;       /* waiting for others */
    double goal_ms;           /* 0: twice the p99 */
    double memory_mib, request_memory_mib;
    double rate_spread, demand_spread; /* of episodes; 1: none */
};
/* As the document draws its thousand applications: by chance, from a few segments. */
void app_draw(struct app *app, struct random *random);
/* The environment of an application: aware's formulation on ample nodes. */
int app_config(const struct app *app, int steps, struct sim_config *out, struct error *err);

/* Its workload, as trace_open reads it. */
void app_trace(const struct app *app, double span_s, char *out, size_t size);

/* What all policies here learn with: what an action does shows within a few intervals. */
static inline void aware_ppo(struct rl_ppo_config *config)
{
    config->horizon = APP_STEPS + 1; /* an episode, and the step that begins the next */
    config->gamma = 0.9;
    config->lambda = 0.9;
}

/* What can be measured of an application that runs. */
struct app_sight {
    double rate, peak, work_ms, latency_ms, goal_ms, memory_mib;
    size_t looks;
};
void app_look(struct app_sight *sight, const double *figures); /* after each interval */
/* A model of it to learn in: what was seen, and some more of it. */
void app_fit(const struct app_sight *sight, struct app *out);

struct sums { /* of what was done in a number of intervals */
    double reward, cpu, memory, violations, requests;
    double steps;
};
void sums_add(struct sums *sums, double reward, const double *figures);
void sums_join(struct sums *sums, const struct sums *more);
static inline double sums_violations(const struct sums *s) /* share of requests */
{
    return s->requests > 0 ? s->violations / s->requests : 0;
}

/* --- fleets (aware_fleet.c) --------------------------------------------------------------------
 */
/* Several applications side by side as one world; what is seen may have features made by hand. */
struct fleet;
struct fleet *fleet_new(const struct app *apps, size_t count, bool by_hand, struct error *err);
void fleet_free(struct fleet *fleet);
const struct rl_world *fleet_world(const struct fleet *fleet);
const struct sums *fleet_sums(const struct fleet *fleet); /* since: */
void fleet_begin_sums(struct fleet *fleet);

/* --- the three parts ---------------------------------------------------------------------------
 */
enum { /* rows and lines of the experiment */
       ROW_EMBEDDING,
       ROW_TL,
       ROW_TL_PLUS,
       ROW_SHARED,
       ROW_NOTHING,
       ROW_FASTER_TL,
       ROW_FASTER_TL_PLUS,
       ROW_FASTER_SHARED,
       ROW_DEFICIT_CPU,
       ROW_DEFICIT_MEMORY,
       ROW_ADAPT_VIOLATIONS,
       ROW_BOOT_CPU,
       ROW_BOOT_MEMORY,
       ROW_BOOT_VIOLATIONS,
       ROW_TOLD,
       ROW_DELAY,
       ROW_FALSE,
       ROW_RETRAIN_CPU,
       ROW_RETRAIN_MEMORY,
       ROW_RETRAIN_VIOLATIONS,
       ROW_DEGRADATION,
       ROW_DEGRADATION_WITHOUT,
       ROW_COUNT
};
enum {
    LINE_EMBEDDING,
    LINE_SHARED,
    LINE_TL_PLUS,
    LINE_TL,
    LINE_NOTHING,
    LINE_BOOTED,
    LINE_UNBOOTED,
    LINE_COUNT
};

/* A learner that knows nothing yet, in so many clusters of the application; careful: it goes on
 * from what another has learned. And all of its episodes. (aware_serve.c) */
struct train *app_train(const struct app *app, int clusters, size_t episodes, bool careful,
                        uint64_t seed, struct error *err);
int app_learn(struct train *train, struct error *err);

int aware_adapt(struct experiment_run *run, struct error *err);     /* aware_adapt.c */
int aware_bootstrap(struct experiment_run *run, struct error *err); /* aware_serve.c */
int aware_retrain(struct experiment_run *run, struct error *err);   /* aware_serve.c */

#endif
