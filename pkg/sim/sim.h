/* The environment: simulated clusters in which agents learn to scale functions, one agent each.
 *
 *   const char *settings[] = {"clusters", "64", "functions", "10", NULL};
 *   struct sim *sim = sim_open("default", settings, &err);
 *   const struct sim_block *block = sim_block(sim);
 *   sim_reset(sim, 1);
 *   for (;;) {
 *       … choose block->actions by block->observations …
 *       sim_step(sim);
 *       … block->observations, block->rewards …
 *   }
 *
 * All clusters stand in one block of memory that never moves, so that a batch costs no copy. What
 * an agent sees, does and gets is chosen by name; docs/environment.md tells every formula. The same
 * seed gives the same numbers, whatever the number of threads. */
#ifndef FAASRL_SIM_H
#define FAASRL_SIM_H

#include "sim/cluster.h"

/* --- settings -------------------------------------------------------------------------------- */
struct sim_config {
    const char *formulation;              /* that the settings began with */
    const char *state, *actions, *reward; /* by name, one of sim_formulations each */
    char **traces;                        /* specifications for trace_open; none: made up ones */
    size_t trace_count;
    int clusters, functions, threads; /* functions: in each cluster */
    int episode_steps;
    double interval_s; /* between decisions */
    int shuffle; /* 1: each episode draws its workloads, and where in them it begins; else function
                    i has workload i, from the beginning (0) or from where an episode draws (2) */
    int nodes;   /* of each cluster; 0: one that is never short */
    double node_cores;
    double rate_spread, demand_spread; /* each episode scales them by 1/x to x; 1: not */
    double churn;   /* the share of functions that join late, and that leave early; not the first */
    double goal_ms; /* 0: of each workload, trace_default_goal_ms */
    double percentile; /* that the goal is about */
    int min_replicas, max_replicas, initial_replicas;
    int concurrency;                      /* as in struct cluster_function */
    double min_cpu, max_cpu, initial_cpu; /* cpu.shares or millicores, as the actions count them */
    double limit_ratio;                   /* of millicores: CFS limit / request; 0: no limit */
    double min_memory_mib, max_memory_mib, initial_memory_mib; /* where actions set memory */
    double memory_mib;         /* an idle replica has, where its workload does not say */
    double request_memory_mib; /* each request in flight adds */
    double start_s, resize_s, cold_cpu_ms, overhead_ms, crash_per_hour; /* as concurrency */
    double alpha;  /* of the documents' rewards */
    double lambda; /* of the default reward: what an interval costs that is late as a whole */
    double illegal_penalty, oscillation_penalty; /* taken off the reward; the larger if both */
    int mean_field; /* what one sees of all others is their mean, not their sum */
    int selfish;    /* each gets its own reward, even where the formulation's is the team's */
};

/* "default", "mp3", "mappo", "simppo", "aware"; NULL-terminated. */
extern const char *const sim_formulations[];

/* The settings of a formulation; sim_config_clear takes them back. */
int sim_config_init(struct sim_config *config, const char *formulation, struct error *err);
void sim_config_clear(struct sim_config *config);
/* Any field by name; "trace" adds one. */
int sim_config_set(struct sim_config *config, const char *name, const char *value,
                   struct error *err);

struct sim_option {
    const char *name, *help;
    double low, high; /* of numbers */
};
/* The i-th setting; NULL behind the last. */
const struct sim_option *sim_option(size_t i);

/* --- what it looks like ---------------------------------------------------------------------- */
struct sim_field {
    const char *name;
    double low, high;
    bool per_other; /* bounds grow with the number of other functions */
};

struct sim_dimension { /* of an action; the option in the middle changes nothing */
    const char *name;
    size_t option_count;
    const char *const *labels; /* of the options */
};

struct sim_shape {
    size_t clusters, functions;
    size_t observation_size, global_size; /* floats of one agent */
    size_t action_size;                   /* numbers that one agent chooses */
    size_t mask_size;                     /* options of all dimensions together */
    const struct sim_field *observation_fields, *global_fields;
    const struct sim_dimension *dimensions;
};

/* Figures of the last interval in plain units, for people and for rewards of one's own. */
enum sim_figure {
    SIM_TIME_S,      /* since the episode began */
    SIM_RATE,        /* requests per second that came */
    SIM_RATE_CHANGE, /* (now − before) / the larger, −1 to 1 */
    SIM_LATENCY_MS,  /* at the goal's percentile; NaN: no request was done */
    SIM_GOAL_MS,
    SIM_SLO_PRESERVATION, /* goal / latency, at most 1 */
    SIM_VIOLATION_RATIO,  /* requests that broke the goal in this interval / that came, to 1 */
    SIM_CPU_USED,         /* cores */
    SIM_CPU_RESERVED,     /* cores; 1024 cpu.shares count as one */
    SIM_CPU_NEEDED,      /* cores: used in the last minute, at 70 %; at least for a request alone */
    SIM_CPU_UTILIZATION, /* used / reserved, at most 1 */
    SIM_MEMORY_UTILIZATION, /* of the limit, now */
    SIM_THROTTLED_RATIO,    /* of CFS periods */
    SIM_REPLICAS,           /* wanted */
    SIM_READY_REPLICAS,
    SIM_CPU,            /* of one replica, cpu.shares or millicores */
    SIM_MEMORY_MIB,     /* of one replica: the limit; 0: not modelled */
    SIM_IN_SYSTEM,      /* requests now in replicas or waiting */
    SIM_RECENT_PEAK,    /* the highest rate; halves in half an hour */
    SIM_WORK_MS,        /* CPU of a request, mean of the last ones */
    SIM_SINCE_CHANGE_S, /* of replicas, CPU or memory by an action */
    SIM_ILLEGAL,        /* 1: the last action was, and nothing was done */
    SIM_OSCILLATING,    /* 1: it took back the one before */
    SIM_FIGURE_COUNT
};
extern const char *const sim_figure_names[SIM_FIGURE_COUNT + 1]; /* NULL behind the last */

/* One row per agent, functions of a cluster side by side. A slot without a function is zero. */
struct sim_block {
    float *observations; /* (clusters, functions, observation_size) */
    float *globals;      /* (clusters, functions, global_size): for critics only */
    int32_t *actions;    /* (clusters, functions, action_size): options, set before a step */
    float *rewards;      /* (clusters, functions) */
    uint8_t *masks;      /* (clusters, functions, mask_size): 1: legal now */
    uint8_t *present;    /* (clusters, functions): 1: has a function that awaits an action */
    uint8_t *terminated; /* 1: its function has left */
    uint8_t *truncated;  /* 1: the episode is over */
    double *figures;     /* (clusters, functions, SIM_FIGURE_COUNT) */
};

/* --- how it runs ----------------------------------------------------------------------------- */
struct sim;
/* Reads the traces. Fails on a setting that cannot be, naming it. */
struct sim *sim_new(const struct sim_config *config, struct error *err);
/* The same from names and values in turn, NULL at the end, on top of a formulation. */
struct sim *sim_open(const char *formulation, const char *const *settings, struct error *err);
void sim_free(struct sim *sim);
const struct sim_shape *sim_shape(const struct sim *sim);
const struct sim_block *sim_block(const struct sim *sim);

/* Begins an episode in every cluster. One interval passes, so that there is something to see. */
void sim_reset(struct sim *sim, uint64_t seed);
/* One interval in every cluster. An option that is out of range counts as illegal. In a cluster
 * whose episode is over it begins the next one instead: its actions count for nothing, rewards are
 * 0. */
void sim_step(struct sim *sim);

/* Before a step, for deciders that know no steps: gives a function this many replicas of this CPU
 * (cpu.shares or millicores), cut at the bounds. Its action must be the one that changes nothing.
 */
void sim_allocate(struct sim *sim, size_t cluster, size_t function, int replicas, double cpu);

/* For a closer look; its figures are those of the last interval. */
const struct cluster *sim_cluster(const struct sim *sim, size_t cluster);

#endif
