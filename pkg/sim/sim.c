/* The environment: its one block of memory, and steps through it. */
#include "sim/sim.h"

#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "sim/env.h"

#define SHARES_NEVER_FULL 1e6 /* times the cores of a node: weights may add up to any sum */

/* --- making it -------------------------------------------------------------------------------- */
/* Day and night in an hour, bursts, steady, and hardly any. */
static const char *const made_up[] = {
    "diurnal:rate=20,amplitude=0.8,period=3600,span=3600,demand=40,p99=120",
    "bursty:rate=5,burst=6,every=600,length=60,span=7200,demand=60,p99=200",
    "poisson:rate=10,span=3600,demand=50,p99=150",
    "poisson:rate=0.2,span=3600,demand=80,p99=300",
};

static int open_traces(struct sim *sim, struct error *err)
{
    struct sim_config *c = &sim->config;
    for (size_t i = 0; c->trace_count == 0 && i < ARRAY_LEN(made_up); i++)
        if (sim_config_set(c, "trace", made_up[i], err) < 0)
            return -1;
    sim->traces = xcalloc(c->trace_count, sizeof(*sim->traces));
    for (size_t i = 0; i < c->trace_count; i++) {
        if (trace_open(c->traces[i], &sim->traces[i], err) < 0)
            return error_prefix(err, "trace");
        size_t more = sim->traces[i].function_count;
        sim->pool = xrealloc(sim->pool, sim->pool_count + more, sizeof(*sim->pool));
        for (size_t k = 0; k < more; k++)
            sim->pool[sim->pool_count++] = &sim->traces[i].functions[k];
    }
    return sim->pool_count > 0 ? 0
                               : error_set(err, ERROR_INVALID, "trace: there is no function in it");
}

/* So that no episode can fail. */
static int try_workloads(const struct sim *sim, struct error *err)
{
    for (size_t i = 0; i < sim->pool_count; i++) {
        struct cluster_function function = {.workload = sim->pool[i]};
        struct cluster_config config = {.functions = &function, .function_count = 1};
        struct cluster *cluster = cluster_new(&config, err);
        if (cluster == NULL)
            return error_prefix(err, "trace: function %s", sim->pool[i]->name);
        cluster_free(cluster);
    }
    return 0;
}

static void describe(struct sim *sim)
{
    sim->shape = (struct sim_shape){
        .clusters = (size_t)sim->config.clusters,
        .functions = (size_t)sim->config.functions,
        .observation_size = sim->state->size,
        .global_size = sim->state->global_size,
        .action_size = sim->actions->size,
        .observation_fields = sim->state->fields,
        .global_fields = sim->state->global_fields,
        .dimensions = sim->actions->dimensions,
    };
    for (size_t d = 0; d < sim->actions->size; d++)
        sim->shape.mask_size += sim->actions->dimensions[d].option_count;
}

/* One allocation; each part begins on a cache line of its own. */
static void lay_out(struct sim *sim)
{
    struct sim_block *b = &sim->block;
    const struct sim_shape *s = &sim->shape;
    size_t agents = s->clusters * s->functions, total = 0;
    const struct {
        void **at;
        size_t bytes;
    } parts[] = {
        {(void **)&b->observations, sizeof(float) * s->observation_size},
        {(void **)&b->globals, sizeof(float) * s->global_size},
        {(void **)&b->actions, sizeof(int32_t) * s->action_size},
        {(void **)&b->rewards, sizeof(float)},
        {(void **)&b->masks, s->mask_size},
        {(void **)&b->present, 1},
        {(void **)&b->terminated, 1},
        {(void **)&b->truncated, 1},
        {(void **)&b->figures, sizeof(double) * SIM_FIGURE_COUNT},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        total += (agents * parts[i].bytes + 63) / 64 * 64;
    char *at = sim->memory = xcalloc(total + 64, 1);
    at += 64 - (uintptr_t)at % 64;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        *parts[i].at = at;
        at += (agents * parts[i].bytes + 63) / 64 * 64;
    }
}

static void populate(struct sim *sim)
{
    const struct sim_config *c = &sim->config;
    sim->nodes = xcalloc((size_t)c->nodes, sizeof(*sim->nodes));
    for (int i = 0; i < c->nodes; i++)
        sim->nodes[i] = (struct cluster_node){
            .cores = c->node_cores,
            .memory_bytes = INFINITY,
            .overcommit = sim->actions->shares ? SHARES_NEVER_FULL : 1,
        };
    sim->worlds = xcalloc((size_t)c->clusters, sizeof(*sim->worlds));
    for (int w = 0; w < c->clusters; w++) {
        struct world *world = &sim->worlds[w];
        world->agents = xcalloc((size_t)c->functions, sizeof(*world->agents));
        for (int i = 0; i < c->functions; i++) {
            size_t row = (size_t)w * (size_t)c->functions + (size_t)i;
            world->agents[i].figures = sim->block.figures + row * SIM_FIGURE_COUNT;
        }
    }
}

static void copy_config(struct sim_config *to, const struct sim_config *from)
{
    *to = *from;
    to->traces = xcalloc(from->trace_count, sizeof(*to->traces));
    for (size_t i = 0; i < from->trace_count; i++)
        to->traces[i] = xstrdup(from->traces[i]);
}

struct sim *sim_new(const struct sim_config *config, struct error *err)
{
    if (config_check(config, err) < 0)
        return NULL;
    struct sim *sim = xcalloc(1, sizeof(*sim));
    copy_config(&sim->config, config);
    sim->state = state_find(config->state);
    sim->actions = action_find(config->actions);
    sim->reward = reward_find(config->reward);
    if (open_traces(sim, err) < 0 || try_workloads(sim, err) < 0) {
        sim_free(sim);
        return NULL;
    }
    describe(sim);
    lay_out(sim);
    populate(sim);
    sim_reset(sim, 0);
    return sim;
}

struct sim *sim_open(const char *formulation, const char *const *settings, struct error *err)
{
    struct sim_config config;
    struct sim *sim = NULL;
    int result = sim_config_init(&config, formulation, err);
    for (size_t i = 0; result == 0 && settings[i]; i += 2)
        result = sim_config_set(&config, settings[i], settings[i + 1], err);
    if (result == 0)
        sim = sim_new(&config, err);
    sim_config_clear(&config);
    return sim;
}

void sim_free(struct sim *sim)
{
    if (sim == NULL)
        return;
    for (int w = 0; sim->worlds && w < sim->config.clusters; w++) {
        for (int i = 0; i < sim->config.functions; i++)
            agent_clear(&sim->worlds[w].agents[i]);
        cluster_free(sim->worlds[w].cluster);
        free(sim->worlds[w].agents);
    }
    for (size_t i = 0; sim->traces && i < sim->config.trace_count; i++)
        trace_clear(&sim->traces[i]);
    free(sim->traces);
    free(sim->pool);
    free(sim->nodes);
    free(sim->worlds);
    free(sim->memory);
    sim_config_clear(&sim->config);
    free(sim);
}

const struct sim_shape *sim_shape(const struct sim *sim)
{
    return &sim->shape;
}

const struct sim_block *sim_block(const struct sim *sim)
{
    return &sim->block;
}

const struct cluster *sim_cluster(const struct sim *sim, size_t cluster)
{
    return sim->worlds[cluster].cluster;
}

/* --- running it ------------------------------------------------------------------------------- */
static size_t row_of(const struct sim *sim, const struct world *world, size_t function)
{
    return (size_t)(world - sim->worlds) * sim->shape.functions + function;
}

static void observe(const struct sim *sim, const struct world *world)
{
    const struct sim_shape *s = &sim->shape;
    const struct sim_block *b = &sim->block;
    struct totals all;
    totals_sum(sim, world, &all);
    for (size_t i = 0; i < s->functions; i++) {
        const struct agent *a = &world->agents[i];
        size_t row = row_of(sim, world, i);
        float *out = b->observations + row * s->observation_size;
        float *global = b->globals + row * s->global_size;
        uint8_t *mask = b->masks + row * s->mask_size;
        b->present[row] = a->present;
        if (a->present) {
            sim->state->fill(sim, a, &all, out);
            if (s->global_size > 0)
                sim->state->fill_global(sim, a, &all, global);
            mask_fill(sim, a, mask);
        } else {
            memset(out, 0, s->observation_size * sizeof(*out));
            memset(global, 0, s->global_size * sizeof(*global));
            memset(mask, 0, s->mask_size);
            memset(a->figures, 0, SIM_FIGURE_COUNT * sizeof(*a->figures));
        }
    }
}

/* Those whose first decision comes next have been running for one interval. */
static void pass_interval(const struct sim *sim, struct world *world)
{
    double until_s = (world->step + 1) * sim->config.interval_s;
    for (size_t i = 0; i < sim->shape.functions; i++)
        if (world->agents[i].joins == world->step && world->step > 0)
            cluster_scale(world->cluster, i, world->agents[i].asked.replicas);
    cluster_run(world->cluster, until_s);
    for (size_t i = 0; i < sim->shape.functions; i++) {
        struct agent *a = &world->agents[i];
        a->present = a->present || a->joins == world->step;
        if (a->present)
            figures_update(sim, world, i);
    }
}

static void reset_world(void *arg, size_t w)
{
    const struct sim *sim = arg;
    struct world *world = &sim->worlds[w];
    const struct sim_block *b = &sim->block;
    size_t row = row_of(sim, world, 0), count = sim->shape.functions;
    uint64_t seed = sim->seed;
    seed = random_mix(&seed) + w;
    if (episode_begin(sim, world, seed, NULL) < 0)
        abort(); /* try_workloads has seen to that */
    memset(b->rewards + row, 0, count * sizeof(*b->rewards));
    memset(b->terminated + row, 0, count);
    memset(b->truncated + row, 0, count);
    pass_interval(sim, world);
    observe(sim, world);
}

static void act_all(const struct sim *sim, struct world *world)
{
    for (size_t i = 0; i < sim->shape.functions; i++)
        if (world->agents[i].present)
            act(sim, world, i, sim->block.actions + row_of(sim, world, i) * sim->shape.action_size);
}

/* For those who acted: who has come since then got nothing to decide yet. */
static void reward_all(const struct sim *sim, const struct world *world)
{
    double sum = 0;
    int acted = 0;
    float *rewards = sim->block.rewards + row_of(sim, world, 0);
    for (size_t i = 0; i < sim->shape.functions; i++) {
        const struct agent *a = &world->agents[i];
        bool counts = a->present && a->joins < world->step;
        double reward = counts ? sim->reward->of(&sim->config, a->figures) : 0;
        rewards[i] = (float)reward;
        sum += reward;
        acted += counts;
    }
    bool shared = sim->reward->team && !sim->config.selfish;
    for (size_t i = 0; shared && i < sim->shape.functions; i++)
        if (world->agents[i].present && world->agents[i].joins < world->step)
            rewards[i] = (float)(sum / acted);
}

static void end_stays(const struct sim *sim, struct world *world)
{
    world->over = world->step == sim->config.episode_steps;
    for (size_t i = 0; i < sim->shape.functions; i++) {
        struct agent *a = &world->agents[i];
        size_t row = row_of(sim, world, i);
        bool left = a->present && a->leaves == world->step;
        sim->block.terminated[row] = left;
        sim->block.truncated[row] = a->present && !left && world->over;
        if (left) {
            a->present = false;
            cluster_scale(world->cluster, i, 0);
        }
    }
}

static void step_world(void *arg, size_t w)
{
    const struct sim *sim = arg;
    struct world *world = &sim->worlds[w];
    if (world->over) {
        world->episode++;
        reset_world(arg, w);
        return;
    }
    cluster_begin_interval(world->cluster);
    act_all(sim, world);
    world->step++;
    pass_interval(sim, world);
    reward_all(sim, world);
    end_stays(sim, world);
    observe(sim, world);
}

void sim_reset(struct sim *sim, uint64_t seed)
{
    sim->seed = seed;
    for (size_t w = 0; w < sim->shape.clusters; w++)
        sim->worlds[w].episode = 0;
    parallel_for((size_t)sim->config.threads, sim->shape.clusters, reset_world, sim);
}

void sim_step(struct sim *sim)
{
    parallel_for((size_t)sim->config.threads, sim->shape.clusters, step_world, sim);
}
