/* The functions that share a platform, and agents that learn there. */
#include "tenants.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const tenant_names[TENANT_KINDS] = {"base64", "primes", "markdown2html",
                                                "sentiment-analysis", "image-resize"};

const char *const tenant_workloads[TENANT_KINDS] = {
    "poisson:rate=6,demand=35,p99=60",
    "diurnal:rate=4,amplitude=0.6,period=500,demand=110,p99=180",
    "poisson:rate=5,demand=75,p99=120",
    "diurnal:rate=0.8,amplitude=0.6,period=1000,demand=500,p99=800",
    "bursty:rate=4,burst=2,every=250,length=50,demand=65,p99=105",
};

/* --- the platform ---------------------------------------------------------------------------- */
static int set_world(const struct tenants *t, struct sim_config *world, struct error *err)
{
    static const char *const alike[][2] = {{"episode_steps", "200"},
                                           {"interval_s", "5"},
                                           {"shuffle", "2"},
                                           {"node_cores", "3.5"},
                                           {"max_replicas", "16"}};
    char text[128];
    for (size_t i = 0; i < ARRAY_LEN(alike); i++)
        if (sim_config_set(world, alike[i][0], alike[i][1], err) < 0)
            return -1;
    for (size_t i = 0; i < TENANT_KINDS; i++) {
        snprintf(text, sizeof(text), "%s,span=1000", tenant_workloads[i]);
        if (sim_config_set(world, "trace", text, err) < 0)
            return -1;
    }
    snprintf(text, sizeof(text), "%zu", t->functions);
    if (sim_config_set(world, "functions", text, err) < 0)
        return -1;
    size_t nodes = (t->functions + TENANT_KINDS - 1) / TENANT_KINDS;
    snprintf(text, sizeof(text), "%zu", t->alone ? 0 : nodes);
    return sim_config_set(world, "nodes", text, err);
}

/* What an action does is seen within a few steps, so that rewards far ahead are only noise; and
 * four episodes at once say more than one. */
static void use_ours(struct train_config *config, size_t functions)
{
    config->world.clusters = 4;
    config->ppo.horizon = 0;
    config->ppo.minibatch = config->algorithm->shared ? 40 * functions : 200;
    config->ppo.epochs = 6;
    config->ppo.gamma = 0.9;
}

int tenants_configure(const struct tenants *t, struct train_config *out, struct error *err)
{
    bool single = t->algorithm == NULL || strcmp(t->algorithm, "ppo") == 0;
    if (train_config_init(out, single ? "ppo" : t->algorithm, single ? "mappo" : NULL, err) < 0)
        return -1;
    out->threads = 1;
    /* Of the mean of 110 functions one decision is lost in the noise of all others. */
    out->world.selfish = single || out->algorithm->shared;
    out->world.mean_field = out->algorithm->shared; /* any number looks alike */
    if (t->papers) {
        train_config_use_papers(out);
        out->mask = false; /* illegal actions are chosen, and cost */
    } else {
        use_ours(out, t->functions);
    }
    if (t->alpha > 0)
        out->world.alpha = t->alpha;
    return set_world(t, &out->world, err);
}

/* --- learning -------------------------------------------------------------------------------- */
void tenants_curve_clear(struct tenants_curve *curve)
{
    free(curve->rounds);
    free(curve->rewards);
    *curve = (struct tenants_curve){0};
}

void tenants_curve_add(struct tenants_curve *c, const struct train *train,
                       const struct train_report *report)
{
    c->rounds = xrealloc(c->rounds, c->count + 1, sizeof(*c->rounds));
    c->rewards = xrealloc(c->rewards, (c->count + 1) * c->functions, sizeof(*c->rewards));
    memcpy(c->rewards + c->count * c->functions, train_function_rewards(train),
           c->functions * sizeof(*c->rewards));
    c->rounds[c->count++] = *report;
}

static int learn(struct experiment_run *run, const struct tenants_lesson *l, struct train *train,
                 struct tenants_curve *curve, struct error *err)
{
    struct train_report report;
    if (l->from && train_adopt(train, l->from, l->first, err) < 0)
        return -1;
    while (!train_is_done(train)) {
        if (train_round(train, &report, err) < 0)
            return -1;
        tenants_curve_add(curve, train, &report);
        double share = fmin((double)report.episodes / (double)l->episodes, 1);
        if (run_progress(run, l->begin + share * (l->end - l->begin), err) < 0)
            return -1;
    }
    return 0;
}

struct train *tenants_learn(struct experiment_run *run, const struct tenants_lesson *l,
                            struct tenants_curve *curve, struct error *err)
{
    struct train_config config;
    struct train *train = NULL;
    *curve = (struct tenants_curve){.functions = l->who.functions};
    if (tenants_configure(&l->who, &config, err) == 0) {
        config.episodes = l->episodes;
        config.seed = random_stream(run->seed, l->stage).s[0];
        train = train_new(&config, err);
    }
    train_config_clear(&config);
    if (train && learn(run, l, train, curve, err) == 0)
        return train;
    train_free(train);
    tenants_curve_clear(curve);
    return NULL;
}

/* --- figures of a curve ---------------------------------------------------------------------- */
#define REST_EPISODES  20   /* the mean of so many … */
#define REST_SHARE     0.05 /* … stays as near as this to where it ends */
#define FIRST_EPISODES 4    /* a round of ours */

static size_t window(const struct tenants_curve *c)
{
    size_t rounds = c->count ? REST_EPISODES / c->rounds[0].episodes : 1;
    return rounds > 1 ? rounds : 1;
}

double tenants_converged(const struct tenants_curve *c, size_t function)
{
    cleanup_free struct train_report *rounds = xcalloc(c->count + 1, sizeof(*rounds));
    for (size_t i = 0; i < c->count; i++) {
        rounds[i] = c->rounds[i];
        if (function != TENANTS_MEAN)
            rounds[i].reward = c->rewards[i * c->functions + function];
    }
    size_t took = train_converged(rounds, c->count, window(c), REST_SHARE);
    return took > 0 && took < c->count ? (double)rounds[took - 1].episodes : NAN;
}

static double mean_reward(const struct tenants_curve *c, size_t first, size_t count)
{
    double sum = 0;
    for (size_t i = first; i < first + count; i++)
        sum += c->rounds[i].reward;
    return sum / (double)count;
}

double tenants_first_reward(const struct tenants_curve *c)
{
    size_t rounds = c->count ? FIRST_EPISODES / c->rounds[0].episodes : 0;
    return mean_reward(c, 0, rounds < c->count ? rounds : c->count);
}

double tenants_last_reward(const struct tenants_curve *c)
{
    size_t count = window(c) < c->count ? window(c) : c->count;
    return mean_reward(c, c->count - count, count);
}

double tenants_drop(const struct tenants_curve *before, const struct tenants_curve *after)
{
    return 100 * (1 - tenants_first_reward(after) / tenants_last_reward(before));
}

/* --- the plot -------------------------------------------------------------------------------- */
void tenants_line(struct experiment_run *run, size_t line, const struct tenants_curve *curves,
                  size_t count)
{
    size_t total = 0, at = 0;
    double before = 0;
    for (size_t k = 0; k < count; k++)
        total += curves[k].count;
    cleanup_free double *x = xcalloc(total + 1, sizeof(*x)), *y = xcalloc(total + 1, sizeof(*y));
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < curves[k].count; i++, at++) {
            x[at] = before + (double)curves[k].rounds[i].episodes;
            y[at] = curves[k].rounds[i].reward;
        }
        before = at > 0 ? x[at - 1] : 0;
    }
    run_line(run, line, x, y, total);
}
