/* Shared by the files of the environment. */
#ifndef FAASRL_SIM_ENV_H
#define FAASRL_SIM_ENV_H

#include "base/random.h"
#include "sim/sim.h"

#define MIB 1048576.0

enum lever { REPLICAS, CPU, MEMORY, LEVER_COUNT }; /* what a dimension of an action sets */

struct allocation { /* of one function; cpu and memory of each replica */
    int replicas;
    double cpu; /* cpu.shares or millicores */
    double memory_mib;
};

struct agent {
    struct trace_function workload; /* this episode's, ours */
    double goal_ms;
    double memory_base_mib;
    int joins, leaves; /* acts in steps [joins, leaves) of the episode */
    bool present;
    bool seen;        /* an interval before the last one */
    double used_mean; /* cores, over the last minute */
    struct allocation asked;
    int moved[LEVER_COUNT]; /* by the last action that was done: −1, 0, 1 */
    size_t overdue;         /* at the end of the interval before */
    double stuck_s;         /* for so long requests have been overdue at every look */
    double *figures;        /* SIM_FIGURE_COUNT, in the block */
};

struct world { /* one cluster and its agents */
    struct cluster *cluster;
    struct agent *agents;
    uint64_t episode; /* counted since the reset */
    int step;         /* of the episode */
    bool over;
};

/* --- what can be chosen by name --------------------------------------------------------------- */
/* Sums over the functions that are there, for what one sees of the others. */
struct totals {
    size_t present;
    double figures[SIM_FIGURE_COUNT];
    double moved[LEVER_COUNT];
    double cpu;                     /* of all replicas, cpu.shares or millicores */
    double place_cpu, place_memory; /* of one replica within the bounds: RLT in the documents */
};
void totals_sum(const struct sim *sim, const struct world *world, struct totals *out);

struct state_set {
    const char *name;
    const struct sim_field *fields, *global_fields;
    size_t size, global_size;
    void (*fill)(const struct sim *sim, const struct agent *a, const struct totals *all,
                 float *out);
    void (*fill_global)(const struct sim *sim, const struct agent *a, const struct totals *all,
                        float *out); /* NULL: none */
};

struct action_set {
    const char *name;
    const struct sim_dimension *dimensions;
    const enum lever *levers; /* that they set */
    size_t size;
    bool shares; /* CPU is in cpu.shares: weights alone, which a node never runs out of */
    bool memory; /* is modelled and set */
    /* Puts into `wanted` what an option makes of `now`; false: illegal. */
    bool (*choose)(const struct sim_config *config, const struct allocation *now, enum lever lever,
                   int option, struct allocation *wanted);
};

struct reward_set {
    const char *name;
    bool team; /* all get the mean of those that are there */
    double (*of)(const struct sim_config *config, const double *figures);
};

const struct state_set *state_find(const char *name);
const struct action_set *action_find(const char *name);
const struct reward_set *reward_find(const char *name);

/* Says what cannot be, though each setting by itself can. */
int config_check(const struct sim_config *config, struct error *err);

/* --- the environment -------------------------------------------------------------------------- */
struct sim {
    struct sim_config config;
    const struct state_set *state;
    const struct action_set *actions;
    const struct reward_set *reward;
    struct trace *traces;
    const struct trace_function **pool; /* the functions of all traces */
    size_t pool_count;
    struct cluster_node *nodes;
    struct sim_shape shape;
    struct sim_block block;
    void *memory; /* of the block */
    struct world *worlds;
    uint64_t seed;
};

/* Draws an episode and makes its cluster (episode.c). */
int episode_begin(const struct sim *sim, struct world *world, uint64_t seed, struct error *err);
void agent_clear(struct agent *agent);
/* Does an action, or nothing if it is illegal (actions.c). */
void act(const struct sim *sim, struct world *world, size_t function, const int32_t *options);
void mask_fill(const struct sim *sim, const struct agent *agent, uint8_t *out);
/* Figures of the interval that has passed (figures.c). */
void figures_update(const struct sim *sim, const struct world *world, size_t function);
/* What `cores` a number of shares or millicores is. */
double cores_of(const struct sim *sim, double cpu);

#endif
