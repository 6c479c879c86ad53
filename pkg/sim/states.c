/* What agents see: the states by name, each figure brought to a range around 1. */
#include "sim/env.h"

#include <string.h>

static double cut(double low, double value, double high)
{
    return fmin(fmax(value, low), high);
}

/* Where a value lies between its bounds. */
static double place(double low, double value, double high)
{
    return high > low ? (value - low) / (high - low) : 0;
}

/* --- MP3 -------------------------------------------------------------------------------------- */
static const struct sim_field mp3_fields[] = {
    {"cpu_util", 0, 1, false},       {"slo_preservation", 0, 1, false},
    {"cpu_shares", 0, 1, false},     {"cpu_shares_others", 0, 1, false},
    {"num_containers", 0, 1, false}, {"arrival_rate_change", 0, 1, false},
};

static void mp3_fill(const struct sim *sim, const struct agent *a, const struct totals *all,
                     float *out)
{
    const struct sim_config *c = &sim->config;
    const double *f = a->figures;
    double own = a->asked.replicas * a->asked.cpu, most = c->max_replicas * c->max_cpu;
    double others = (c->functions - 1) * most;
    out[0] = (float)f[SIM_CPU_UTILIZATION];
    out[1] = (float)f[SIM_SLO_PRESERVATION];
    out[2] = (float)(own / most);
    out[3] = (float)(others > 0 ? (all->cpu - own) / others : 0);
    out[4] = (float)((double)a->asked.replicas / c->max_replicas);
    out[5] = (float)((1 + f[SIM_RATE_CHANGE]) / 2);
}

/* --- MA-PPO, SIMPPO, AWARE -------------------------------------------------------------------- */
static const struct sim_field simppo_fields[] = {
    {"SP", 0, 1, false},  {"RU_cpu", 0, 1, false},  {"RU_mem", 0, 1, false},
    {"AC", -1, 1, false}, {"RLT_cpu", 0, 1, false}, {"RLT_mem", 0, 1, false},
    {"NC", 0, 1, false},  {"ARLT_cpu", 0, 1, true}, {"ARLT_mem", 0, 1, true},
    {"AV", -2, 2, true},  {"AH", -1, 1, true},      {"MSP", 0, 1, false},
    {"MRU", 0, 1, false},
};
#define OWN_FIELDS    7
#define GLOBAL_FIELDS 6

static void mappo_fill(const struct sim *sim, const struct agent *a, const struct totals *all,
                       float *out)
{
    const struct sim_config *c = &sim->config;
    const double *f = a->figures;
    (void)all;
    out[0] = (float)f[SIM_SLO_PRESERVATION];
    out[1] = (float)f[SIM_CPU_UTILIZATION];
    out[2] = (float)f[SIM_MEMORY_UTILIZATION];
    out[3] = (float)f[SIM_RATE_CHANGE];
    out[4] = (float)place(c->min_cpu, a->asked.cpu, c->max_cpu);
    out[5] = (float)place(c->min_memory_mib, a->asked.memory_mib, c->max_memory_mib);
    out[6] = (float)((double)a->asked.replicas / c->max_replicas);
}

/* The virtual agent: all others, summed up or on average. */
static void virtual_agent_fill(const struct sim *sim, const struct agent *a,
                               const struct totals *all, float *out)
{
    const struct sim_config *c = &sim->config;
    const double *f = a->figures;
    double others = (double)all->present - 1;
    double utilization = all->figures[SIM_CPU_UTILIZATION] - f[SIM_CPU_UTILIZATION] +
                         all->figures[SIM_MEMORY_UTILIZATION] - f[SIM_MEMORY_UTILIZATION];
    memset(out, 0, GLOBAL_FIELDS * sizeof(*out));
    if (others < 1)
        return;
    double sums[] = {
        all->place_cpu - place(c->min_cpu, a->asked.cpu, c->max_cpu),
        all->place_memory - place(c->min_memory_mib, a->asked.memory_mib, c->max_memory_mib),
        all->moved[CPU] - a->moved[CPU] + all->moved[MEMORY] - a->moved[MEMORY],
        all->moved[REPLICAS] - a->moved[REPLICAS],
    };
    for (size_t i = 0; i < ARRAY_LEN(sums); i++)
        out[i] = (float)(c->mean_field ? sums[i] / others : sums[i]);
    out[4] = (float)((all->figures[SIM_SLO_PRESERVATION] - f[SIM_SLO_PRESERVATION]) / others);
    out[5] = (float)(utilization / 2 / others);
}

static void simppo_fill(const struct sim *sim, const struct agent *a, const struct totals *all,
                        float *out)
{
    mappo_fill(sim, a, all, out);
    virtual_agent_fill(sim, a, all, out + OWN_FIELDS);
}

/* --- ours ------------------------------------------------------------------------------------- */
static const struct sim_field default_fields[] = {
    {"rate", 0, 1, false},
    {"rate_change", -1, 1, false},
    {"rate_of_peak", 0, 1, false},
    {"work", 0, 1, false},
    {"utilization", 0, 1, false},
    {"headroom", -1, 1, false},
    {"latency", -1, 1, false},
    {"violations", 0, 1, false},
    {"throttled", 0, 1, false},
    {"backlog", 0, 1, false},
    {"ready", 0, 1, false},
    {"replicas", 0, 1, false},
    {"cpu", 0, 1, false},
    {"since_change", 0, 1, false},
    {"others_reserved", 0, 1, false},
    {"others_used", 0, 1, false},
    {"others_violations", 0, 1, false},
};

/* 0 at 0, 1 at `most`: tells small numbers apart as well as large ones. */
static double logarithm(double value, double most)
{
    return cut(0, log1p(value) / log1p(most), 1);
}

/* −1 at a 16th, 0 at equal, 1 at 16 times. */
static double balance(double value, double against)
{
    return cut(-1, log2(value / against) / 4, 1);
}

static void default_fill(const struct sim *sim, const struct agent *a, const struct totals *all,
                         float *out)
{
    const struct sim_config *c = &sim->config;
    const double *f = a->figures, *sum = all->figures;
    double others = fmax((double)all->present - 1, 1);
    double cores = c->nodes * c->node_cores;
    double per_replica = f[SIM_IN_SYSTEM] / fmax(f[SIM_READY_REPLICAS], 1);
    const double fields[] = {
        logarithm(f[SIM_RATE], 1000),
        f[SIM_RATE_CHANGE],
        f[SIM_RECENT_PEAK] > 0 ? f[SIM_RATE] / f[SIM_RECENT_PEAK] : 0,
        f[SIM_GOAL_MS] > 0 ? cut(0, f[SIM_WORK_MS] / f[SIM_GOAL_MS], 1) : 0,
        f[SIM_CPU_UTILIZATION],
        balance(f[SIM_CPU_RESERVED], f[SIM_CPU_NEEDED]),
        f[SIM_LATENCY_MS] > 0 && f[SIM_GOAL_MS] > 0 ? balance(f[SIM_LATENCY_MS], f[SIM_GOAL_MS])
                                                    : -1,
        f[SIM_VIOLATION_RATIO],
        f[SIM_THROTTLED_RATIO],
        logarithm(per_replica, 1000),
        cut(0, f[SIM_READY_REPLICAS] / fmax(f[SIM_REPLICAS], 1), 1),
        place(log1p(c->min_replicas), log1p(a->asked.replicas), log1p(c->max_replicas)),
        place(log(c->min_cpu), log(a->asked.cpu), log(c->max_cpu)),
        cut(0, f[SIM_SINCE_CHANGE_S] / 300, 1),
        cores > 0 ? cut(0, (sum[SIM_CPU_RESERVED] - f[SIM_CPU_RESERVED]) / cores, 1) : 0,
        cores > 0 ? cut(0, (sum[SIM_CPU_USED] - f[SIM_CPU_USED]) / cores, 1) : 0,
        cut(0, (sum[SIM_VIOLATION_RATIO] - f[SIM_VIOLATION_RATIO]) / others, 1),
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        out[i] = (float)fields[i];
}

/* --- by name ---------------------------------------------------------------------------------- */
static const struct state_set sets[] = {
    {"default", default_fields, NULL, ARRAY_LEN(default_fields), 0, default_fill, NULL},
    {"mp3", mp3_fields, NULL, ARRAY_LEN(mp3_fields), 0, mp3_fill, NULL},
    {"mappo", simppo_fields, simppo_fields + OWN_FIELDS, OWN_FIELDS, GLOBAL_FIELDS, mappo_fill,
     virtual_agent_fill},
    {"simppo", simppo_fields, NULL, ARRAY_LEN(simppo_fields), 0, simppo_fill, NULL},
    {"aware", simppo_fields, NULL, OWN_FIELDS, 0, mappo_fill, NULL},
};

const struct state_set *state_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return NULL;
}

/* --- all together ----------------------------------------------------------------------------- */
void totals_sum(const struct sim *sim, const struct world *world, struct totals *out)
{
    const struct sim_config *c = &sim->config;
    *out = (struct totals){0};
    for (int i = 0; i < c->functions; i++) {
        const struct agent *a = &world->agents[i];
        if (!a->present)
            continue;
        out->present++;
        out->cpu += a->asked.replicas * a->asked.cpu;
        out->place_cpu += place(c->min_cpu, a->asked.cpu, c->max_cpu);
        out->place_memory += place(c->min_memory_mib, a->asked.memory_mib, c->max_memory_mib);
        for (int l = 0; l < LEVER_COUNT; l++)
            out->moved[l] += a->moved[l];
        for (int k = 0; k < SIM_FIGURE_COUNT; k++)
            out->figures[k] += a->figures[k];
    }
}
