/* An episode: which functions it has, when they come and go, and the cluster they run on. */
#include "sim/env.h"

#include <string.h>

/* --- workloads -------------------------------------------------------------------------------- */
/* Evenly in the logarithm from 1/spread to spread. */
static double draw_factor(struct random *r, double spread)
{
    return exp((2 * random_uniform(r) - 1) * log(spread));
}

/* The slots of the episode, from `first` of the source on. A function that comes late or goes early
 * has those that lie wholly in its stay. */
static void cut_slots(const struct sim_config *c, struct agent *a,
                      const struct trace_function *from, uint64_t first, double factor)
{
    double begin_s = a->joins * c->interval_s;
    double end_s = a->leaves > c->episode_steps ? INFINITY : (a->leaves + 1) * c->interval_s;
    size_t count = (size_t)ceil((c->episode_steps + 1) * c->interval_s / from->slot_s);
    a->workload.slot_count = count;
    a->workload.counts = xcalloc(count, sizeof(*a->workload.counts));
    a->workload.works = from->works ? xcalloc(count, sizeof(*a->workload.works)) : NULL;
    for (size_t i = 0; i < count; i++) {
        double from_s = (double)i * from->slot_s;
        bool there = from_s >= begin_s && from_s + from->slot_s <= end_s;
        uint64_t at = first + i;
        if (!there || from->slot_count == 0 || (!from->repeat && at >= from->slot_count))
            continue;
        a->workload.counts[i] = from->counts[at % from->slot_count] * factor;
        if (from->works)
            a->workload.works[i] = from->works[at % from->slot_count];
    }
}

static void scale_demand(struct trace_function *f, const struct trace_function *from, double factor)
{
    f->mean_cpu_ms = from->mean_cpu_ms * factor;
    f->quantiles = xcalloc(from->quantile_count, sizeof(*f->quantiles));
    for (size_t i = 0; i < from->quantile_count; i++) {
        f->quantiles[i] = from->quantiles[i];
        f->quantiles[i].cpu_ms *= factor;
    }
}

/* Where in its source a workload begins: anywhere if it repeats, else so that it lasts. */
static uint64_t draw_first_slot(const struct sim_config *c, struct random *r,
                                const struct trace_function *from)
{
    double needed = ceil((c->episode_steps + 1) * c->interval_s / from->slot_s);
    double spare = (double)from->slot_count - needed;
    size_t choices = from->repeat ? from->slot_count : spare > 0 ? (size_t)spare + 1 : 1;
    return choices > 0 ? random_below(r, choices) : 0;
}

void agent_clear(struct agent *a)
{
    free(a->workload.counts);
    free(a->workload.works);
    free(a->workload.quantiles);
    *a = (struct agent){.figures = a->figures};
}

/* The first function is always there, so that a cluster is never empty. */
static void draw_stay(const struct sim_config *c, struct random *r, size_t function,
                      struct agent *a)
{
    double churn = function > 0 ? c->churn : 0;
    bool late = random_uniform(r) < churn, early = random_uniform(r) < churn;
    uint64_t joins = late ? random_below(r, (uint64_t)c->episode_steps) : 0;
    uint64_t stays = (uint64_t)c->episode_steps - joins;
    a->joins = (int)joins;
    /* Who stays to the end is told that the episode is over, not that it left. */
    a->leaves = (int)(joins + (early ? 1 + random_below(r, stays) : stays + 1));
}

static void draw_agent(const struct sim *sim, struct random *r, size_t function, struct agent *a)
{
    const struct sim_config *c = &sim->config;
    agent_clear(a);
    memset(a->figures, 0, SIM_FIGURE_COUNT * sizeof(*a->figures));
    size_t which = c->shuffle == 1 ? random_below(r, sim->pool_count) : function % sim->pool_count;
    const struct trace_function *from = sim->pool[which];
    uint64_t first = draw_first_slot(c, r, from);
    double rate = draw_factor(r, c->rate_spread), demand = draw_factor(r, c->demand_spread);
    draw_stay(c, r, function, a);
    a->workload = *from;
    a->workload.repeat = false;
    cut_slots(c, a, from, c->shuffle ? first : 0, rate);
    scale_demand(&a->workload, from, demand);
    a->goal_ms = c->goal_ms > 0 ? c->goal_ms : trace_default_goal_ms(&a->workload);
    a->asked = (struct allocation){.replicas = c->initial_replicas, .cpu = c->initial_cpu};
    a->asked.memory_mib = sim->actions->memory ? c->initial_memory_mib : c->min_memory_mib;
    /* Half of the bound is left for requests, however large the workload says it is. */
    double known_mib = a->workload.memory_bytes / MIB;
    a->memory_base_mib = fmin(known_mib > 0 ? known_mib : c->memory_mib, c->max_memory_mib / 2);
}

/* --- the cluster ------------------------------------------------------------------------------ */
static struct cluster_function cluster_function(const struct sim *sim, const struct agent *a)
{
    const struct sim_config *c = &sim->config;
    double request_milli = 1000 * cores_of(sim, a->asked.cpu);
    struct cluster_function f = {
        .workload = &a->workload,
        .goal_ms = a->goal_ms,
        .replicas = a->joins == 0 ? a->asked.replicas : 0,
        .request_milli = request_milli,
        .limit_milli = sim->actions->shares ? 0 : request_milli * c->limit_ratio,
        .concurrency = c->concurrency,
        .overhead_ms = c->overhead_ms,
        .start_s = c->start_s,
        .cold_cpu_ms = c->cold_cpu_ms,
        .resize_s = c->resize_s,
        .crash_per_hour = c->crash_per_hour,
    };
    if (sim->actions->memory) {
        f.memory_limit_bytes = a->asked.memory_mib * MIB;
        f.memory_base_bytes = a->memory_base_mib * MIB;
        f.memory_per_request_bytes = c->request_memory_mib * MIB;
    }
    return f;
}

int episode_begin(const struct sim *sim, struct world *world, uint64_t seed, struct error *err)
{
    const struct sim_config *c = &sim->config;
    size_t count = (size_t)c->functions;
    struct random r = random_stream(seed, world->episode);
    cleanup_free struct cluster_function *functions = xcalloc(count, sizeof(*functions));
    for (size_t i = 0; i < count; i++) {
        draw_agent(sim, &r, i, &world->agents[i]);
        functions[i] = cluster_function(sim, &world->agents[i]);
    }
    struct cluster_config config = {
        .nodes = sim->nodes,
        .node_count = (size_t)c->nodes,
        .functions = functions,
        .function_count = count,
        .seed = random_bits(&r),
    };
    cluster_free(world->cluster);
    world->cluster = cluster_new(&config, err);
    world->step = 0;
    world->over = false;
    return world->cluster ? 0 : -1;
}
