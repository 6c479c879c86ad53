/* Several applications, each in an environment of its own, as one world for a policy. */
#include "aware.h"

#include <math.h>
#include <string.h>

#define BY_HAND 4

struct fleet {
    struct sim **sims;
    size_t count;
    bool by_hand;
    struct rl_world world;
    float *observations, *rewards;
    uint8_t *masks, *terminated, *truncated;
    int32_t *actions;
    struct sums sums;
};

/* What a person would add to tell applications apart: how many requests, how heavy for their goal,
 * how rough, how much memory. */
static void put_by_hand(const double *f, float *to)
{
    to[0] = (float)(log1p(f[SIM_RATE]) / log1p(1000));
    to[1] = (float)fmin(f[SIM_WORK_MS] / f[SIM_GOAL_MS], 1);
    to[2] = (float)(f[SIM_RECENT_PEAK] > 0 ? f[SIM_RATE] / f[SIM_RECENT_PEAK] : 0);
    to[3] = (float)f[SIM_THROTTLED_RATIO];
}

static void look(struct fleet *f)
{
    size_t total = f->world.heads.total, size = f->world.observation_size;
    for (size_t i = 0; i < f->count; i++) {
        const struct sim_block *b = sim_block(f->sims[i]);
        size_t own = sim_shape(f->sims[i])->observation_size;
        memcpy(f->observations + i * size, b->observations, own * sizeof(float));
        if (f->by_hand)
            put_by_hand(b->figures, f->observations + i * size + own);
        memcpy(f->masks + i * total, b->masks, total);
        f->rewards[i] = b->rewards[0];
        f->truncated[i] = b->truncated[0];
    }
}

static void step(void *self)
{
    struct fleet *f = self;
    size_t heads = f->world.heads.count;
    for (size_t i = 0; i < f->count; i++) {
        const struct sim_block *b = sim_block(f->sims[i]);
        bool acts = !b->truncated[0];
        memcpy(b->actions, f->actions + i * heads, heads * sizeof(int32_t));
        sim_step(f->sims[i]);
        if (acts)
            sums_add(&f->sums, b->rewards[0], b->figures);
    }
    look(f);
}

static void reset(void *self, uint64_t seed)
{
    struct fleet *f = self;
    for (size_t i = 0; i < f->count; i++)
        sim_reset(f->sims[i], seed + 1000 * i);
    look(f);
}

static void describe(struct fleet *f)
{
    train_world(f->sims[0], true, &f->world);
    size_t size = f->world.observation_size + (f->by_hand ? BY_HAND : 0);
    f->observations = xcalloc(f->count * size, sizeof(float));
    f->rewards = xcalloc(f->count, sizeof(float));
    f->masks = xcalloc(f->count * f->world.heads.total, 1);
    f->terminated = xcalloc(f->count, 1);
    f->truncated = xcalloc(f->count, 1);
    f->actions = xcalloc(f->count * f->world.heads.count, sizeof(int32_t));
    f->world.rows = f->count;
    f->world.observation_size = size;
    f->world.observations = f->observations;
    f->world.masks = f->masks;
    f->world.present = NULL;
    f->world.rewards = f->rewards;
    f->world.terminated = f->terminated;
    f->world.truncated = f->truncated;
    f->world.actions = f->actions;
    f->world.reset = reset;
    f->world.step = step;
    f->world.self = f;
}

struct fleet *fleet_new(const struct app *apps, size_t count, bool by_hand, struct error *err)
{
    struct fleet *f = xcalloc(1, sizeof(*f));
    f->by_hand = by_hand;
    f->sims = xcalloc(count, sizeof(struct sim *));
    for (; f->count < count; f->count++) {
        struct sim_config config;
        int result = app_config(&apps[f->count], APP_STEPS, &config, err);
        struct sim *sim = result == 0 ? sim_new(&config, err) : NULL;
        sim_config_clear(&config);
        if (sim == NULL) {
            fleet_free(f);
            return NULL;
        }
        f->sims[f->count] = sim;
    }
    describe(f);
    return f;
}

void fleet_free(struct fleet *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->count; i++)
        sim_free(f->sims[i]);
    free(f->sims);
    free(f->observations);
    free(f->rewards);
    free(f->masks);
    free(f->terminated);
    free(f->truncated);
    free(f->actions);
    free(f);
}

const struct rl_world *fleet_world(const struct fleet *f)
{
    return &f->world;
}

const struct sums *fleet_sums(const struct fleet *f)
{
    return &f->sums;
}

void fleet_begin_sums(struct fleet *f)
{
    f->sums = (struct sums){0};
}
