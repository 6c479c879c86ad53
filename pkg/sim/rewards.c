/* What agents get: the rewards by name. */
#include "sim/env.h"

#include <string.h>

static double penalty(const struct sim_config *c, const double *f)
{
    return fmax(f[SIM_ILLEGAL] * c->illegal_penalty, f[SIM_OSCILLATING] * c->oscillation_penalty);
}

/* MP3 leaves its reward to the reader: that of MA-PPO for its one resource. */
static double mp3_reward(const struct sim_config *c, const double *f)
{
    return c->alpha * f[SIM_SLO_PRESERVATION] + (1 - c->alpha) * f[SIM_CPU_UTILIZATION] -
           penalty(c, f);
}

/* α·SP·|R| + (1−α)·ΣRU + penalty, with R = {cpu, memory}. */
static double mappo_reward(const struct sim_config *c, const double *f)
{
    double utilization = f[SIM_CPU_UTILIZATION] + f[SIM_MEMORY_UTILIZATION];
    return c->alpha * f[SIM_SLO_PRESERVATION] * 2 + (1 - c->alpha) * utilization - penalty(c, f);
}

/* α·RU + (1−α)·SP; RU is the mean of both resources. */
static double aware_reward(const struct sim_config *c, const double *f)
{
    double utilization = (f[SIM_CPU_UTILIZATION] + f[SIM_MEMORY_UTILIZATION]) / 2;
    return c->alpha * utilization + (1 - c->alpha) * f[SIM_SLO_PRESERVATION] - penalty(c, f);
}

/* CPU reserved for each one needed, and lambda for an interval in which all requests broke the
 * goal. Waste beyond the fourfold grows by its logarithm, so that a bad start does not drown the
 * rest. */
#define LINEAR_UP_TO 4.0
#define SCALE        20.0 /* so that rewards stay within a few units */

static double default_reward(const struct sim_config *c, const double *f)
{
    double cost = f[SIM_CPU_RESERVED] / f[SIM_CPU_NEEDED];
    if (cost > LINEAR_UP_TO)
        cost = LINEAR_UP_TO * (1 + log(cost / LINEAR_UP_TO));
    return -(cost + c->lambda * f[SIM_VIOLATION_RATIO]) / SCALE - penalty(c, f);
}

static const struct reward_set sets[] = {
    {"default", false, default_reward}, {"mp3", false, mp3_reward},
    {"mappo", true, mappo_reward},      {"simppo", true, mappo_reward},
    {"aware", false, aware_reward},
};

const struct reward_set *reward_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return NULL;
}
