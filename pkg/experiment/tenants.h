/* What MA-PPO's and SIMPPO's experiments share: five functions like those of their benchmarks, the
 * platform they run on, agents that learn there and figures of how well they do. */
#ifndef FAASRL_EXPERIMENT_TENANTS_H
#define FAASRL_EXPERIMENT_TENANTS_H

#include "internal.h"
#include "train/train.h"

#define TENANT_KINDS 5
extern const char *const tenant_names[TENANT_KINDS];
extern const char *const tenant_workloads[TENANT_KINDS]; /* as trace_open reads them */

/* --- the platform ---------------------------------------------------------------------------- */
struct tenants {
    const char *algorithm; /* of pkg/train: "ppo" is S-RL; NULL: nobody learns */
    size_t functions;      /* function i is of kind i modulo TENANT_KINDS */
    bool alone;            /* each has the platform for itself, else they share it */
    bool papers;           /* learn with the settings of MA-PPO's table 3, else with ours */
    double alpha;          /* of the reward; 0: the document's */
};
int tenants_configure(const struct tenants *tenants, struct train_config *out, struct error *err);

/* --- learning -------------------------------------------------------------------------------- */
struct tenants_curve { /* how well it went, one round after the other */
    size_t functions, count;
    struct train_report *rounds;
    double *rewards; /* (count, functions): mean of each function's decisions */
};
void tenants_curve_add(struct tenants_curve *curve, const struct train *train,
                       const struct train_report *report);
void tenants_curve_clear(struct tenants_curve *curve);

struct tenants_lesson {
    struct tenants who;
    size_t episodes;
    const struct train *from; /* go on from what its learners know; NULL: all begin anew */
    size_t first;             /* of these, the one that is function 0 now */
    uint64_t stage;           /* lessons of other numbers have other episodes */
    double begin, end;        /* what share of the run is done before and after */
};
/* Fills the curve; train_free takes the result back. */
struct train *tenants_learn(struct experiment_run *run, const struct tenants_lesson *lesson,
                            struct tenants_curve *curve, struct error *err);

/* Episodes until the rewards of a function (TENANTS_MEAN: their mean) came to rest; NaN: they did
 * not before the end. */
#define TENANTS_MEAN SIZE_MAX
double tenants_converged(const struct tenants_curve *curve, size_t function);
/* Mean reward of the first four episodes of a curve; of the last twenty. */
double tenants_first_reward(const struct tenants_curve *curve);
double tenants_last_reward(const struct tenants_curve *curve);
/* By how many percent rewards fell from the end of one to the beginning of the other. */
double tenants_drop(const struct tenants_curve *before, const struct tenants_curve *after);

/* A line of the plot: mean rewards over episodes, one curve behind the other. */
void tenants_line(struct experiment_run *run, size_t line, const struct tenants_curve *curves,
                  size_t count);

/* --- judging (judge.c) ----------------------------------------------------------------------- */
struct tenant_figures { /* of one function in whole episodes of the likeliest actions */
    double p99_ms, goal_ms, reward, cpu_utilization, violation_ratio;
    double replicas, cpu; /* means */
};
/* train NULL: by ENSURE. All who are judged in a run meet the same requests. out has room for the
 * functions. */
int tenants_judge(const struct experiment_run *run, const struct tenants *tenants,
                  const struct train *train, struct tenant_figures *out, struct error *err);
/* Means over functions. */
double tenants_mean_utilization(const struct tenant_figures *figures, size_t count);
double tenants_mean_reward(const struct tenant_figures *figures, size_t count);
/* By how many percent the p99 of a function is above that of another. */
double tenants_slower(const struct tenant_figures *now, const struct tenant_figures *before);

/* --- whom others are compared with (rivals.c) ------------------------------------------------ */
struct tenants_rivals {                           /* figures of the five functions */
    struct tenant_figures alone[TENANT_KINDS];    /* single agents, each alone */
    struct tenant_figures moved[TENANT_KINDS];    /* the same agents, together */
    struct tenant_figures together[TENANT_KINDS]; /* single agents that learned together */
    struct tenant_figures ensure_alone[TENANT_KINDS], ensure[TENANT_KINDS];
};
/* Single agents learn for so many episodes, from `begin` to `end` of the run. */
int tenants_rivals(struct experiment_run *run, bool papers, size_t episodes, double begin,
                   double end, struct tenants_rivals *out, struct error *err);

#endif
