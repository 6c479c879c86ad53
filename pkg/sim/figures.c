/* What the last interval of a function was like, in plain units. */
#include "sim/env.h"

#define NEED_WINDOW_S      60.0
#define NEED_UTILIZATION   0.7
#define PEAK_HALF_LIFE_S   1800.0
#define REQUESTS_OF_A_MEAN 100.0 /* so many weigh the work of the last interval fully */

const char *const sim_figure_names[SIM_FIGURE_COUNT + 1] = {
    [SIM_TIME_S] = "time_s",
    [SIM_RATE] = "requests_per_s",
    [SIM_RATE_CHANGE] = "rate_change",
    [SIM_LATENCY_MS] = "latency_ms",
    [SIM_GOAL_MS] = "goal_ms",
    [SIM_SLO_PRESERVATION] = "slo_preservation",
    [SIM_VIOLATION_RATIO] = "violation_ratio",
    [SIM_CPU_USED] = "cpu_used_cores",
    [SIM_CPU_RESERVED] = "cpu_reserved_cores",
    [SIM_CPU_NEEDED] = "cpu_needed_cores",
    [SIM_CPU_UTILIZATION] = "cpu_utilization",
    [SIM_MEMORY_UTILIZATION] = "memory_utilization",
    [SIM_THROTTLED_RATIO] = "throttled_ratio",
    [SIM_REPLICAS] = "replicas",
    [SIM_READY_REPLICAS] = "ready_replicas",
    [SIM_CPU] = "cpu",
    [SIM_MEMORY_MIB] = "memory_mib",
    [SIM_IN_SYSTEM] = "requests_in_system",
    [SIM_RECENT_PEAK] = "recent_peak_per_s",
    [SIM_WORK_MS] = "work_ms",
    [SIM_SINCE_CHANGE_S] = "since_change_s",
    [SIM_ILLEGAL] = "illegal",
    [SIM_OSCILLATING] = "oscillating",
};

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void update_rate(const struct agent *a, double *f, const struct cluster_stats *stats)
{
    double now = ratio((double)stats->arrived, stats->span_s);
    double before = a->seen ? f[SIM_RATE] : now;
    f[SIM_RATE] = now;
    f[SIM_RATE_CHANGE] = ratio(now - before, fmax(now, before));
    f[SIM_RECENT_PEAK] = fmax(now, f[SIM_RECENT_PEAK] * exp2(-stats->span_s / PEAK_HALF_LIFE_S));
}

/* Requests that are stuck have a latency too: at least the goal and as long as they have been seen
 * overdue. Those that are lost have been so for an interval: else who kills them all would look
 * fast. Both count where they are more than the percentile leaves out. */
static double latency_ms(const struct sim *sim, const struct agent *a, double measured_ms,
                         const struct cluster_stats *stats)
{
    double left_out = 1 - sim->config.percentile / 100;
    double missing = (double)a->overdue + (double)stats->lost;
    double stuck_s = stats->lost > 0 ? fmax(a->stuck_s, stats->span_s) : a->stuck_s;
    if (missing <= left_out * (missing + (double)stats->completed))
        return measured_ms;
    return fmax(a->goal_ms + 1000 * stuck_s, measured_ms); /* fmax skips NaN */
}

/* A request breaks the goal once: when it is overdue, done late or lost before. */
static void update_latency(const struct sim *sim, const struct world *world, size_t function,
                           const struct cluster_state *state)
{
    struct agent *a = &world->agents[function];
    const struct cluster_stats *stats = cluster_stats(world->cluster, function);
    double measured_ms = cluster_latency_quantile_ms(cluster_latency(world->cluster, function),
                                                     sim->config.percentile / 100);
    double broken =
        (double)stats->late + (double)stats->lost + (double)state->overdue - (double)a->overdue;
    double *f = a->figures;
    a->stuck_s = state->overdue > 0 && a->overdue > 0 ? a->stuck_s + stats->span_s : 0;
    a->overdue = state->overdue;
    f[SIM_GOAL_MS] = a->goal_ms;
    f[SIM_LATENCY_MS] = latency_ms(sim, a, measured_ms, stats);
    bool broke = a->goal_ms > 0 && f[SIM_LATENCY_MS] > a->goal_ms;
    f[SIM_SLO_PRESERVATION] = broke ? a->goal_ms / f[SIM_LATENCY_MS] : 1;
    f[SIM_VIOLATION_RATIO] = fmin(fmax(broken, 0) / fmax((double)stats->arrived, 1), 1);
}

/* What was used in the last minute says what is needed, so that an interval without requests does
 * not make everything a waste; and one request alone must be done in time. */
static double cpu_needed(const struct sim *sim, const struct agent *a)
{
    const struct sim_config *c = &sim->config;
    double least = cores_of(sim, c->min_cpu) * fmax(c->min_replicas, 1);
    double alone = fmin(ratio(a->figures[SIM_WORK_MS], a->goal_ms), 1); /* uses one core at most */
    return fmax(fmax(least, alone), a->used_mean / NEED_UTILIZATION);
}

static void update_cpu(const struct sim *sim, struct agent *a, double *f,
                       const struct cluster_stats *stats)
{
    double kept = a->seen ? exp(-stats->span_s / NEED_WINDOW_S) : 0;
    f[SIM_CPU_USED] = ratio(stats->cpu_s, stats->span_s);
    f[SIM_CPU_RESERVED] = ratio(stats->requested_cpu_s, stats->span_s);
    f[SIM_CPU_UTILIZATION] = fmin(ratio(stats->cpu_s, stats->requested_cpu_s), 1);
    a->used_mean = kept * a->used_mean + (1 - kept) * f[SIM_CPU_USED];
    f[SIM_CPU_NEEDED] = cpu_needed(sim, a);
    /* A period may have begun in the interval before. */
    double throttled = (double)stats->throttled_periods;
    f[SIM_THROTTLED_RATIO] = fmin(ratio(throttled, (double)stats->periods), 1);
}

static void update_work(double *f, const struct cluster_stats *stats)
{
    if (stats->completed == 0)
        return;
    double weight = fmin((double)stats->completed / REQUESTS_OF_A_MEAN, 1);
    double work_ms = 1000 * stats->cpu_s / (double)stats->completed;
    f[SIM_WORK_MS] += (f[SIM_WORK_MS] > 0 ? weight : 1) * (work_ms - f[SIM_WORK_MS]);
}

static void update_memory(const struct sim *sim, const struct agent *a, double *f,
                          const struct cluster_state *state)
{
    if (!sim->actions->memory)
        return;
    double per_replica = ratio((double)state->in_flight, state->ready);
    double used_mib = a->memory_base_mib + per_replica * sim->config.request_memory_mib;
    f[SIM_MEMORY_MIB] = a->asked.memory_mib;
    f[SIM_MEMORY_UTILIZATION] = state->ready > 0 ? fmin(used_mib / a->asked.memory_mib, 1) : 0;
}

void figures_update(const struct sim *sim, const struct world *world, size_t function)
{
    struct agent *a = &world->agents[function];
    const struct cluster_stats *stats = cluster_stats(world->cluster, function);
    struct cluster_state state;
    double *f = a->figures;
    cluster_state(world->cluster, function, &state);
    f[SIM_TIME_S] = cluster_now_s(world->cluster);
    update_rate(a, f, stats);
    update_latency(sim, world, function, &state);
    update_work(f, stats);
    update_cpu(sim, a, f, stats);
    update_memory(sim, a, f, &state);
    f[SIM_REPLICAS] = a->asked.replicas;
    f[SIM_READY_REPLICAS] = state.ready;
    f[SIM_CPU] = a->asked.cpu;
    f[SIM_IN_SYSTEM] = (double)(state.in_flight + state.waiting);
    f[SIM_SINCE_CHANGE_S] += stats->span_s;
    a->seen = true;
}
