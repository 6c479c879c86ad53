/* FaaSRM's world: single invocations of functions on workers, each with cores and memory of its own
 * that somebody decides on when it arrives.
 *
 *   struct harvest_workload load;
 *   harvest_workload_make(&harvest_azure, &harvest_simulation, seed, &load);
 *   struct harvest_outcome *outcomes = xcalloc(load.invocation_count, sizeof(*outcomes));
 *   harvest_run(&harvest_simulation, &load, &harvest_greedy, NULL, outcomes);
 *   … harvest_rfet(&outcomes[i]) …
 *
 * Nothing but the seed is by chance. docs/harvest.md tells the model and where it differs from the
 * paper's; safeguard.h is FaaSRM's safeguard by itself, policy.h what learns under it. */
#ifndef FAASRL_HARVEST_H
#define FAASRL_HARVEST_H

#include "base/base.h"

enum harvest_resource { HARVEST_CPU, HARVEST_MEMORY, HARVEST_RESOURCES };
/* Amounts are double[HARVEST_RESOURCES]: cores, and MB. */

/* --- invocations (workload.c) ------------------------------------------------------------------
 */
struct harvest_demand { /* of one invocation, by its input */
    double fixed_s;     /* that no core makes shorter */
    double work_s;      /* core-seconds that spread over its cores */
    double parallelism; /* cores that it can use at once, at least 1 */
    double memory_mb;   /* that it works on */
};
/* fixed + work / min(cores, parallelism); where memory is short, times memory_mb / memory. */
double harvest_execution_s(const struct harvest_demand *demand, const double *given);
/* The most it uses of what it is given. */
void harvest_peak(const struct harvest_demand *demand, const double *given, double *peak);

struct harvest_function {
    double user[HARVEST_RESOURCES]; /* what its user asked for */
    size_t home;                    /* the worker that is tried first */
    double one_core_s;              /* of a middling input, on one core */
    double fixed_share;             /* of that */
    double parallelism, memory_mb;  /* of a middling input */
    double spread;                  /* of the logarithm of an input's size; its middle is 1 */
};

struct harvest_invocation {
    uint32_t function;
    double arrival_s;
    struct harvest_demand demand;
    double noise;  /* its time is so many times what the model says */
    double user_s; /* its execution with the user's amounts, alone and without noise */
};

struct harvest_workload {
    struct harvest_function *functions;
    struct harvest_invocation *invocations; /* by arrival */
    size_t function_count, invocation_count;
    double span_s;
};

struct harvest_cluster {
    size_t workers;
    double capacity[HARVEST_RESOURCES]; /* of each */
    double most[HARVEST_RESOURCES];     /* that a function may get: 1 to 64 whole steps */
    double step[HARVEST_RESOURCES];
};
/* The paper's: 20 workers of 8 cores and 2 GB, functions of at most 8 cores and 512 MB; 10 workers
 * of 8 cores and 32 GB. Steps are 1 core and 64 MB. */
extern const struct harvest_cluster harvest_simulation, harvest_openwhisk;

struct harvest_workload_config {
    size_t functions, invocations;
    double occupancy; /* the share of the cluster that the users' amounts take up on average */
    double noise_low, noise_high;
};
/* 1,000 functions and 85,470 invocations; 10 and 268, with noise. */
extern const struct harvest_workload_config harvest_azure, harvest_applications;
void harvest_workload_make(const struct harvest_workload_config *config,
                           const struct harvest_cluster *cluster, uint64_t seed,
                           struct harvest_workload *out);
void harvest_workload_clear(struct harvest_workload *load);

/* --- deciding ----------------------------------------------------------------------------------
 */
struct harvest_record { /* what the platform knows of a function */
    size_t arrived, done;
    double last_arrival_s;
    double interval_s; /* between arrivals, as all means: of late, the newest a fifth; 0: unknown */
    /* Of those that are done. */
    double last_given[HARVEST_RESOURCES], last_peak[HARVEST_RESOURCES];
    double mean_peak[HARVEST_RESOURCES];
    double mean_execution_s, first_execution_s; /* the first has what the user asked for */
};

struct harvest_view { /* when an invocation arrives */
    size_t invocation;
    uint32_t function;
    const double *user; /* amounts that its user asked for */
    const struct harvest_record *record;
    const struct harvest_cluster *cluster;
    double free[HARVEST_RESOURCES]; /* on all workers */
    size_t in_flight;               /* running or waiting */
};

struct harvest_outcome {
    double given[HARVEST_RESOURCES], peak[HARVEST_RESOURCES];
    double wait_s, execution_s;
    double user_s;
    double slowdown; /* its RFET if there were no noise */
    bool harvested;  /* it had less than its user asked for of something */
};
/* Its execution time over that with the user's amounts. */
double harvest_rfet(const struct harvest_outcome *outcome);

struct harvest_manager {
    const char *name;
    /* What is wanted for an invocation, in whole steps or the user's amount. */
    void (*decide)(void *self, const struct harvest_view *view, double *wanted);
    /* May be NULL. The record knows of it already. */
    void (*done)(void *self, const struct harvest_view *view,
                 const struct harvest_outcome *outcome);
};

/* --- running it (run.c) -------------------------------------------------------------------------
 * What is wanted below or at the user's amount is waited for, first come first served; what is
 * wanted above it is lent only where it lies idle when the invocation starts. */
void harvest_run(const struct harvest_cluster *cluster, const struct harvest_workload *load,
                 const struct harvest_manager *manager, void *self,
                 struct harvest_outcome *outcomes);

/* --- what came of it (summary.c) ----------------------------------------------------------------
 */
struct harvest_summary {
    double mean_rfet, p98_rfet, p98_execution_s;
    double harvested, accelerated; /* shares of all; accelerated: a slowdown below 1 */
    double slowed;                 /* share of the harvested with a slowdown above 1.1 */
    double waited, mean_wait_s;    /* share of all that waited; of all */
};
struct harvest_summary harvest_summarise(const struct harvest_outcome *outcomes, size_t count);
/* The least of them that so large a share does not exceed; sorts them. NaN: there are none. */
double harvest_quantile(double *values, size_t count, double share);

/* --- managers to compare with (baselines.c) -----------------------------------------------------
 */
extern const struct harvest_manager harvest_fixed;  /* the user's amounts; self: NULL */
extern const struct harvest_manager harvest_greedy; /* a step with the last usage; self: NULL */
extern const struct harvest_manager harvest_ensure; /* cores by latency; self: harvest_ensure_new */
extern const struct harvest_manager harvest_oracle; /* knows what is needed; self: the workload */
struct harvest_ensure *harvest_ensure_new(size_t functions);
void harvest_ensure_free(struct harvest_ensure *ensure);

#endif
