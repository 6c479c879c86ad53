/* What agents can do: the action sets by name, and doing an action. */
#include "sim/env.h"

#include <string.h>

#define SHARES_PER_CORE 1024

/* --- steps of the documents ---------------------------------------------------------------------
 * One step up or down, or none. Without a container only scaling out is possible; a step beyond the
 * bounds is illegal. */
#define SHARES_STEP     128
#define MEMORY_STEP_MIB 64

static const char *const steps_of_one[] = {"-1", "0", "+1"};
static const char *const steps_of_shares[] = {"-128", "0", "+128"};
static const char *const steps_of_memory[] = {"-64", "0", "+64"};

static const enum lever mp3_levers[] = {CPU, REPLICAS};
static const struct sim_dimension mp3_dimensions[] = {
    {"vertical", 3, steps_of_shares},
    {"horizontal", 3, steps_of_one},
};
static const enum lever mappo_levers[] = {CPU, MEMORY, REPLICAS};
static const struct sim_dimension mappo_dimensions[] = {
    {"vertical_cpu", 3, steps_of_shares},
    {"vertical_memory", 3, steps_of_memory},
    {"horizontal", 3, steps_of_one},
};

static bool within(double low, double value, double high)
{
    return value >= low && value <= high;
}

static bool choose_step(const struct sim_config *c, const struct allocation *now, enum lever lever,
                        int option, struct allocation *wanted)
{
    int direction = option - 1;
    if (direction == 0)
        return true;
    if (now->replicas == 0 && !(lever == REPLICAS && direction > 0))
        return false;
    switch (lever) {
    case REPLICAS:
        wanted->replicas = now->replicas + direction;
        return within(c->min_replicas, wanted->replicas, c->max_replicas);
    case CPU:
        wanted->cpu = now->cpu + direction * SHARES_STEP;
        return within(c->min_cpu, wanted->cpu, c->max_cpu);
    default:
        wanted->memory_mib = now->memory_mib + direction * MEMORY_STEP_MIB;
        return within(c->min_memory_mib, wanted->memory_mib, c->max_memory_mib);
    }
}

/* --- ours ---------------------------------------------------------------------------------------
 * In proportion, so that any size is a few decisions away; doubling both answers a burst fourfold
 * at once. A step is cut at the bounds; one that would change nothing is illegal. */
static const char *const steps_of_replicas[] = {"/2", "-1", "0", "+1", "x2"};
static const char *const steps_of_cpu[] = {"/2", "/1.25", "0", "x1.25", "x2"};

static const enum lever default_levers[] = {REPLICAS, CPU};
static const struct sim_dimension default_dimensions[] = {
    {"replicas", 5, steps_of_replicas},
    {"cpu", 5, steps_of_cpu},
};

static double cut(double low, double value, double high)
{
    return fmin(fmax(value, low), high);
}

static bool choose_factor(const struct sim_config *c, const struct allocation *now,
                          enum lever lever, int option, struct allocation *wanted)
{
    static const double factors[] = {0.5, 0.8, 1, 1.25, 2};
    int n = now->replicas, counts[] = {(n + 1) / 2, n - 1, n, n + 1, n > 0 ? 2 * n : 2};
    if (option == 2)
        return true;
    if (lever == REPLICAS) {
        wanted->replicas = (int)cut(c->min_replicas, counts[option], c->max_replicas);
        return wanted->replicas != n;
    }
    wanted->cpu = cut(c->min_cpu, round(now->cpu * factors[option]), c->max_cpu);
    return wanted->cpu != now->cpu;
}

/* --- by name ---------------------------------------------------------------------------------- */
static const struct action_set sets[] = {
    {"default", default_dimensions, default_levers, 2, false, false, choose_factor},
    {"mp3", mp3_dimensions, mp3_levers, 2, true, false, choose_step},
    {"mappo", mappo_dimensions, mappo_levers, 3, true, true, choose_step},
    /* on Kubernetes, whose pods have limits: the same numbers are millicores */
    {"aware", mappo_dimensions, mappo_levers, 3, false, true, choose_step},
};

const struct action_set *action_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return action_find("mappo"); /* SIMPPO has the same */
}

/* --- doing it --------------------------------------------------------------------------------- */
double cores_of(const struct sim *sim, double cpu)
{
    return cpu / (sim->actions->shares ? SHARES_PER_CORE : 1000);
}

/* Tells the cluster what changes. */
static void allocate(const struct sim *sim, struct cluster *cluster, size_t function,
                     const struct allocation *from, const struct allocation *to)
{
    double request_milli = cores_of(sim, to->cpu) * 1000;
    double limit_milli = sim->actions->shares ? 0 : request_milli * sim->config.limit_ratio;
    if (to->replicas != from->replicas)
        cluster_scale(cluster, function, to->replicas);
    if (to->cpu != from->cpu)
        cluster_resize(cluster, function, request_milli, limit_milli);
    if (to->memory_mib != from->memory_mib)
        cluster_resize_memory(cluster, function, to->memory_mib * MIB);
}

void sim_allocate(struct sim *sim, size_t cluster, size_t function, int replicas, double cpu)
{
    const struct sim_config *c = &sim->config;
    struct agent *agent = &sim->worlds[cluster].agents[function];
    struct allocation wanted = agent->asked;
    wanted.replicas = (int)cut(c->min_replicas, replicas, c->max_replicas);
    wanted.cpu = cut(c->min_cpu, cpu, c->max_cpu);
    if (!agent->present ||
        (wanted.replicas == agent->asked.replicas && wanted.cpu == agent->asked.cpu))
        return;
    allocate(sim, sim->worlds[cluster].cluster, function, &agent->asked, &wanted);
    agent->figures[SIM_SINCE_CHANGE_S] = 0;
    agent->asked = wanted;
}

static bool choose(const struct sim *sim, const struct allocation *now, size_t dimension,
                   int option, struct allocation *wanted)
{
    const struct action_set *set = sim->actions;
    return option >= 0 && option < (int)set->dimensions[dimension].option_count &&
           set->choose(&sim->config, now, set->levers[dimension], option, wanted);
}

void act(const struct sim *sim, struct world *world, size_t function, const int32_t *options)
{
    struct agent *agent = &world->agents[function];
    struct allocation wanted = agent->asked;
    int moved[LEVER_COUNT] = {0};
    bool legal = true, oscillating = false, changed = false;
    for (size_t d = 0; d < sim->actions->size; d++) {
        enum lever lever = sim->actions->levers[d];
        int hold = (int)sim->actions->dimensions[d].option_count / 2;
        legal = choose(sim, &agent->asked, d, options[d], &wanted) && legal;
        moved[lever] = (options[d] > hold) - (options[d] < hold);
        oscillating = oscillating || moved[lever] * agent->moved[lever] < 0;
        changed = changed || moved[lever] != 0;
    }
    agent->figures[SIM_ILLEGAL] = !legal;
    agent->figures[SIM_OSCILLATING] = oscillating;
    if (!legal)
        memset(moved, 0, sizeof(moved));
    memcpy(agent->moved, moved, sizeof(moved));
    if (!legal || !changed)
        return;
    allocate(sim, world->cluster, function, &agent->asked, &wanted);
    agent->figures[SIM_SINCE_CHANGE_S] = 0;
    agent->asked = wanted;
}

void mask_fill(const struct sim *sim, const struct agent *agent, uint8_t *out)
{
    for (size_t d = 0; d < sim->actions->size; d++)
        for (size_t o = 0; o < sim->actions->dimensions[d].option_count; o++) {
            struct allocation wanted = agent->asked;
            *out++ = choose(sim, &agent->asked, d, (int)o, &wanted);
        }
}
