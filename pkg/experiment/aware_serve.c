/* A policy that serves one application: begun by a bootstrap, and taught again when it drifts. */
#include "aware.h"

#include <math.h>
#include <string.h>

#include "rl/drift.h"

#define BOOT_APPS 6
#define LESSONS   3   /* rounds of the thresholds */
#define OFFLINE   400 /* episodes in the model */
#define SIDE      4   /* of them side by side */
#define EARLY     40  /* episodes online that are looked at */

#define SERVED_APPS 3
#define PRACTICE    20   /* episodes online before it serves */
#define BEFORE      1400 /* intervals served before a change */
#define AFTER       600  /* and after it */
#define LOOK_FOR    40   /* intervals, once told, to see what it is now */

/* --- learning offline ------------------------------------------------------------------------- */
struct train *app_train(const struct app *app, int clusters, size_t episodes, bool careful,
                        uint64_t seed, struct error *err)
{
    struct train_config config;
    struct train *train = NULL;
    if (train_config_init(&config, "ppo", "aware", err) == 0) {
        sim_config_clear(&config.world);
        config.episodes = episodes;
        config.seed = seed;
        config.threads = 1;
        aware_ppo(&config.ppo);
        if (clusters == 1)
            config.ppo.rate_end = 1; /* online nobody knows for how long */
        if (careful) {
            config.ppo.actor_rate *= 0.3;
            config.ppo.entropy = 0;
        }
        if (app_config(app, APP_STEPS, &config.world, err) == 0) {
            config.world.clusters = clusters;
            train = train_new(&config, err);
        }
    }
    train_config_clear(&config);
    return train;
}

int app_learn(struct train *train, struct error *err)
{
    struct train_report report;
    while (!train_is_done(train))
        if (train_round(train, &report, err) < 0)
            return -1;
    return 0;
}

/* Learns in a model of what was seen: from `before` on, or from what thresholds do. */
static struct train *learn_offline(struct experiment_run *run, const struct app_sight *sight,
                                   const struct train *before, struct error *err)
{
    struct app model;
    struct rl_clone_report report;
    app_fit(sight, &model);
    struct train *train =
        app_train(&model, SIDE, run_episodes(run, OFFLINE, 2 * SIDE), false, run->seed, err);
    if (train == NULL)
        return NULL;
    int result =
        before ? train_inherit(train, before, err)
               : train_clone(train, &train_thresholds, LESSONS, &rl_clone_default, &report, err);
    if (result == 0 && app_learn(train, err) == 0)
        return train;
    train_free(train);
    return NULL;
}

/* An episode of the thresholds in the real one, to see what it is like. */
static int look_at(const struct app *app, uint64_t seed, struct app_sight *sight, struct error *err)
{
    struct sim_config config;
    int result = app_config(app, APP_STEPS, &config, err);
    struct sim *sim = result == 0 ? sim_new(&config, err) : NULL;
    sim_config_clear(&config);
    if (sim == NULL)
        return -1;
    const struct sim_block *b = sim_block(sim);
    *sight = (struct app_sight){0};
    sim_reset(sim, seed);
    while (!b->truncated[0]) {
        train_thresholds.decide(NULL, sim_shape(sim), b->figures, b->masks, b->actions);
        sim_step(sim);
        app_look(sight, b->figures);
    }
    sim_free(sim);
    return 0;
}

/* Looks, learns offline, and goes online. */
static struct train *bootstrap(struct experiment_run *run, const struct app *app, size_t episodes,
                               uint64_t seed, struct error *err)
{
    struct app_sight sight;
    if (look_at(app, seed, &sight, err) < 0)
        return NULL;
    struct train *offline = learn_offline(run, &sight, NULL, err);
    struct train *online = offline ? app_train(app, 1, episodes, true, seed, err) : NULL;
    if (online && train_inherit(online, offline, err) < 0) {
        train_free(online);
        online = NULL;
    }
    train_free(offline);
    return online;
}

/* --- bootstrapping ---------------------------------------------------------------------------- */
struct early {
    struct sums sums;
    double *curve;
};

static int learn_early(struct train *train, struct early *e, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct train_report r;
        if (train_round(train, &r, err) < 0)
            return -1;
        sums_join(&e->sums, &(struct sums){r.reward, r.cpu_utilization, r.memory_utilization,
                                           r.violation_ratio, 1, 1});
        e->curve[i] += r.reward / BOOT_APPS;
    }
    return 0;
}

static int compare_early(struct experiment_run *run, const struct app *app, struct early *booted,
                         struct early *none, size_t count, struct error *err)
{
    struct train *train = bootstrap(run, app, count, run->seed, err);
    int result = train ? learn_early(train, booted, count, err) : -1;
    train_free(train);
    if (result < 0)
        return -1;
    train = app_train(app, 1, count, false, run->seed, err);
    result = train ? learn_early(train, none, count, err) : -1;
    train_free(train);
    return result;
}

static double percent_more(double mine, double other)
{
    return 100 * (mine / fmax(other, 1e-9) - 1);
}

static void tell_early(struct experiment_run *run, const struct early *booted,
                       const struct early *none, size_t count)
{
    const struct sums *a = &booted->sums, *b = &none->sums;
    cleanup_free double *x = xcalloc(count, sizeof(*x));
    for (size_t i = 0; i < count; i++)
        x[i] = (double)(i + 1);
    run_line(run, LINE_BOOTED, x, booted->curve, count);
    run_line(run, LINE_UNBOOTED, x, none->curve, count);
    run_set(run, ROW_BOOT_CPU, percent_more(a->cpu, b->cpu));
    run_set(run, ROW_BOOT_MEMORY, percent_more(a->memory, b->memory));
    run_set(run, ROW_BOOT_VIOLATIONS, sums_violations(b) / fmax(sums_violations(a), 1e-6));
}

int aware_bootstrap(struct experiment_run *run, struct error *err)
{
    size_t count = run_episodes(run, EARLY, 4);
    struct early booted = {.curve = xcalloc(count, sizeof(double))};
    struct early none = {.curve = xcalloc(count, sizeof(double))};
    struct random random = random_stream(run->seed, 73);
    int result = 0;
    for (size_t i = 0; i < BOOT_APPS && result == 0; i++) {
        struct app app;
        app_draw(&app, &random);
        result = compare_early(run, &app, &booted, &none, count, err);
        if (result == 0)
            result = run_progress(run, 0.7 + 0.1 * (double)(i + 1) / BOOT_APPS, err);
    }
    if (result == 0)
        tell_early(run, &booted, &none, count);
    free(booted.curve);
    free(none.curve);
    return result;
}

/* --- serving ---------------------------------------------------------------------------------- */
struct server {
    const struct train *policy;
    struct sim *sim;
    struct rl_world world;
    struct rl_drift drift;
};

static int server_begin(struct server *s, const struct app *app, const double *from, uint64_t seed,
                        struct error *err)
{
    struct sim_config config;
    int result = app_config(app, BEFORE, &config, err);
    if (from) { /* the pods are what they were */
        config.initial_replicas = (int)from[SIM_REPLICAS];
        config.initial_cpu = from[SIM_CPU];
        config.initial_memory_mib = from[SIM_MEMORY_MIB];
    }
    sim_free(s->sim);
    s->sim = result == 0 ? sim_new(&config, err) : NULL;
    sim_config_clear(&config);
    if (s->sim == NULL)
        return -1;
    train_world(s->sim, true, &s->world);
    sim_reset(s->sim, seed);
    return 0;
}

static unsigned serve(struct server *s, struct sums *sums)
{
    const struct sim_block *b = sim_block(s->sim);
    train_decide(s->policy, &s->world);
    sim_step(s->sim);
    sums_add(sums, b->rewards[0], b->figures);
    return rl_drift_add(&s->drift, b->rewards[0]);
}

/* --- changes ---------------------------------------------------------------------------------- */
enum change { SLOWER, LIGHTER, MORE_LOAD, ANOTHER_PATTERN, CHANGES };

static void change_app(struct app *app, enum change change)
{
    if (change == SLOWER || change == LIGHTER) {
        double factor = change == SLOWER ? 3 : 1.0 / 3;
        app->demand_ms *= factor;
        app->p99_ms *= factor;
    } else if (change == MORE_LOAD)
        app->rate *= 3;
    else
        app->pattern = app->pattern == APP_BURSTY ? APP_DAILY : APP_BURSTY;
}

struct served { /* over all changes */
    struct sums before, with, without;
    double lost, lost_without; /* of the reward, in percent */
    double told, delay, changes, false_alarms, weeks;
};

/* Once told, looks at what there is now, learns, and goes on with that. */
static int serve_and_learn(struct experiment_run *run, struct server *s, struct sums *sums,
                           struct served *out, struct error *err)
{
    struct app_sight sight = {0};
    struct train *learned = NULL;
    long told = -1;
    for (long t = 0; t < AFTER; t++) {
        unsigned raised = serve(s, sums);
        if (told < 0 && (raised & (RL_DRIFT_WORSE | RL_DRIFT_WILDER)))
            told = t + 1;
        if (told < 0 || learned)
            continue;
        app_look(&sight, sim_block(s->sim)->figures);
        if (sight.looks < LOOK_FOR)
            continue;
        learned = learn_offline(run, &sight, s->policy, err);
        if (learned == NULL)
            return -1;
        s->policy = learned;
        rl_drift_forget(&s->drift);
    }
    out->told += told >= 0;
    out->delay += told >= 0 ? (double)told : 0;
    train_free(learned);
    return 0;
}

static int try_change(struct experiment_run *run, const struct server *before,
                      const struct app *app, enum change change, double reward, struct served *out,
                      struct error *err)
{
    struct app changed = *app;
    struct sums with = {0}, without = {0};
    const double *figures = sim_block(before->sim)->figures;
    struct server s = *before;
    change_app(&changed, change);
    s.sim = NULL;
    int result = server_begin(&s, &changed, figures, run->seed + change, err);
    if (result == 0)
        result = serve_and_learn(run, &s, &with, out, err);
    s.policy = before->policy;
    if (result == 0)
        result = server_begin(&s, &changed, figures, run->seed + change, err);
    for (size_t t = 0; t < AFTER && result == 0; t++)
        serve(&s, &without);
    sim_free(s.sim);
    sums_join(&out->with, &with);
    sums_join(&out->without, &without);
    out->lost += 100 * (1 - with.reward / AFTER / reward);
    out->lost_without += 100 * (1 - without.reward / AFTER / reward);
    out->changes++;
    return result;
}

static int serve_app(struct experiment_run *run, const struct app *app, struct served *out,
                     struct error *err)
{
    struct sums sums = {0};
    struct server s = {0};
    struct train *train = bootstrap(run, app, run_episodes(run, PRACTICE, 2), run->seed, err);
    int result = train && app_learn(train, err) == 0 ? 0 : -1;
    if (result == 0)
        result = rl_drift_init(&s.drift, &rl_drift_default, err);
    s.policy = train;
    if (result == 0)
        result = server_begin(&s, app, NULL, run->seed, err);
    unsigned was = 0;
    for (size_t t = 0; t + 1 < BEFORE && result == 0; t++) {
        unsigned raised = serve(&s, &sums);
        out->false_alarms += (raised & ~was) != 0;
        was = raised;
    }
    for (enum change c = 0; c < CHANGES && result == 0; c++)
        result = try_change(run, &s, app, c, sums.reward / sums.steps, out, err);
    sim_free(s.sim);
    train_free(train);
    return result;
}

int aware_retrain(struct experiment_run *run, struct error *err)
{
    struct served out = {0};
    struct random random = random_stream(run->seed, 74);
    for (size_t i = 0; i < SERVED_APPS; i++) {
        struct app app;
        app_draw(&app, &random);
        if (serve_app(run, &app, &out, err) < 0 ||
            run_progress(run, 0.8 + 0.2 * (double)(i + 1) / SERVED_APPS, err) < 0)
            return -1;
    }
    run_set(run, ROW_TOLD, 100 * out.told / out.changes);
    run_set(run, ROW_DELAY, out.told > 0 ? out.delay / out.told : NAN);
    run_set(run, ROW_FALSE, out.false_alarms);
    run_set(run, ROW_RETRAIN_CPU, percent_more(out.with.cpu, out.without.cpu));
    run_set(run, ROW_RETRAIN_MEMORY, percent_more(out.with.memory, out.without.memory));
    run_set(run, ROW_RETRAIN_VIOLATIONS,
            sums_violations(&out.without) / fmax(sums_violations(&out.with), 1e-6));
    run_set(run, ROW_DEGRADATION, out.lost / out.changes);
    run_set(run, ROW_DEGRADATION_WITHOUT, out.lost_without / out.changes);
    return 0;
}
