/* How well functions do that share a platform, by what was learned or by ENSURE. */
#include "tenants.h"

#include <math.h>
#include <string.h>

#include "recommend/recommend.h"

#define JUDGED_EPISODES 4
#define SHARES_PER_CORE 1024

struct judge {
    struct sim *sim;
    struct rl_world world;
    size_t functions;
    struct cluster_latency *latencies; /* (functions) */
    struct sums {
        double rewards, utilized, violations, requests, replicas, cpu, goal_ms, looks;
    } * sums;      /* (functions) */
    void **ensure; /* (rows) */
};

/* --- ENSURE ---------------------------------------------------------------------------------- */
static struct observation observe(const struct judge *j, size_t row, const struct sim_config *c)
{
    const double *f = sim_block(j->sim)->figures + row * SIM_FIGURE_COUNT;
    const struct cluster_stats *stats =
        cluster_stats(sim_cluster(j->sim, row / j->functions), row % j->functions);
    double milli = 1000.0 / SHARES_PER_CORE;
    bool known = !isnan(f[SIM_LATENCY_MS]);
    return (struct observation){
        .now_s = f[SIM_TIME_S],
        .latency_state = known ? LATENCY_KNOWN : LATENCY_NO_TRAFFIC,
        .percentile = c->percentile,
        .goal_ms = f[SIM_GOAL_MS],
        .latency_ms = f[SIM_LATENCY_MS],
        .requests_per_s = f[SIM_RATE],
        .concurrency = stats->in_flight_s / stats->span_s,
        .throttled = NAN,
        .since_increase_s = INFINITY,
        .latency_window_s = c->interval_s,
        .replicas_wanted = (int)f[SIM_REPLICAS],
        .min_replicas = 1,
        .max_replicas = c->max_replicas,
        .container_count = 1,
        .containers = {{.name = "function",
                        .controlled = {true, false},
                        .request = {f[SIM_CPU] * milli, NAN},
                        .min = {c->min_cpu * milli, 0},
                        .max = {c->max_cpu * milli, 0}}},
    };
}

/* It is not bound to the agents' steps: what it recommends is what the function gets. */
static int decide_by_ensure(const struct judge *j, const struct sim_config *c, struct error *err)
{
    struct recommendation out;
    for (size_t i = 0; i < j->world.rows * j->world.heads.count; i++)
        j->world.actions[i] = 1; /* the one in the middle */
    for (size_t row = 0; row < j->world.rows; row++) {
        struct observation seen = observe(j, row, c);
        if (recommend_ensure.recommend(j->ensure[row], &seen, &out, err) < 0)
            return -1;
        sim_allocate(j->sim, row / j->functions, row % j->functions, out.replicas,
                     out.containers[0].target[RECOMMEND_CPU] * SHARES_PER_CORE / 1000);
    }
    return 0;
}

/* --- figures --------------------------------------------------------------------------------- */
static void look(const struct judge *j)
{
    const struct sim_block *b = sim_block(j->sim);
    for (size_t row = 0; row < j->world.rows; row++) {
        const double *f = b->figures + row * SIM_FIGURE_COUNT;
        size_t i = row % j->functions;
        struct sums *s = &j->sums[i];
        cluster_latency_add(&j->latencies[i],
                            cluster_latency(sim_cluster(j->sim, row / j->functions), i));
        s->rewards += b->rewards[row];
        s->utilized += f[SIM_CPU_UTILIZATION];
        s->violations += f[SIM_VIOLATION_RATIO] * f[SIM_RATE];
        s->requests += f[SIM_RATE];
        s->replicas += f[SIM_REPLICAS];
        s->cpu += f[SIM_CPU];
        s->goal_ms += f[SIM_GOAL_MS];
        s->looks++;
    }
}

static void sum_up(const struct judge *j, struct tenant_figures *out)
{
    for (size_t i = 0; i < j->functions; i++) {
        const struct sums *s = &j->sums[i];
        out[i] = (struct tenant_figures){
            .p99_ms = cluster_latency_quantile_ms(&j->latencies[i], 0.99),
            .goal_ms = s->goal_ms / s->looks,
            .reward = s->rewards / s->looks,
            .cpu_utilization = s->utilized / s->looks,
            .violation_ratio = s->violations / fmax(s->requests, 1e-9),
            .replicas = s->replicas / s->looks,
            .cpu = s->cpu / s->looks,
        };
    }
}

/* --- episodes -------------------------------------------------------------------------------- */
static int play(const struct judge *j, const struct train *train, const struct sim_config *c,
                struct error *err)
{
    for (int step = 0; step < c->episode_steps; step++) {
        if (train)
            train_decide(train, &j->world);
        else if (decide_by_ensure(j, c, err) < 0)
            return -1;
        sim_step(j->sim);
        look(j);
    }
    return 0;
}

static int judge(const struct train_config *config, const struct train *train, uint64_t seed,
                 struct tenant_figures *out, struct error *err)
{
    struct judge j = {.sim = sim_new(&config->world, err)};
    if (j.sim == NULL)
        return -1;
    j.functions = sim_shape(j.sim)->functions;
    train_world(j.sim, config->mask, &j.world);
    j.latencies = xcalloc(j.functions, sizeof(*j.latencies));
    j.sums = xcalloc(j.functions, sizeof(*j.sums));
    j.ensure = xcalloc(j.world.rows, sizeof(*j.ensure));
    for (size_t row = 0; row < j.world.rows; row++)
        j.ensure[row] = recommend_ensure.create(600, NULL);
    sim_reset(j.sim, seed);
    int result = play(&j, train, &config->world, err);
    if (result == 0)
        sum_up(&j, out);
    for (size_t row = 0; row < j.world.rows; row++)
        recommend_ensure.destroy(j.ensure[row]);
    free(j.latencies);
    free(j.sums);
    free(j.ensure);
    sim_free(j.sim);
    return result;
}

int tenants_judge(const struct experiment_run *run, const struct tenants *tenants,
                  const struct train *train, struct tenant_figures *out, struct error *err)
{
    struct train_config config;
    int result = tenants_configure(tenants, &config, err);
    config.world.clusters = (int)run_episodes(run, JUDGED_EPISODES, 1);
    if (result == 0)
        result = judge(&config, train, run->seed, out, err);
    train_config_clear(&config);
    return result;
}

/* --- comparing ------------------------------------------------------------------------------- */
double tenants_mean_utilization(const struct tenant_figures *figures, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += figures[i].cpu_utilization;
    return sum / (double)count;
}

double tenants_mean_reward(const struct tenant_figures *figures, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += figures[i].reward;
    return sum / (double)count;
}

double tenants_slower(const struct tenant_figures *now, const struct tenant_figures *before)
{
    return 100 * (now->p99_ms / before->p99_ms - 1);
}
