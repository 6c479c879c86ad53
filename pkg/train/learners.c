/* The algorithms of pkg/rl in one form. */
#include "internal.h"

/* --- PPO, in all its forms, and REINFORCE ---------------------------------------------------- */
static void *ppo_make(const struct train_config *config, const struct rl_world *world,
                      struct rl_rows rows, size_t steps, uint64_t seed, struct error *err)
{
    return rl_ppo_new(&config->ppo, world, rows, steps / config->ppo.horizon, seed, err);
}

static void ppo_free(void *learner)
{
    rl_ppo_free(learner);
}

static void ppo_act(void *learner)
{
    rl_ppo_act(learner);
}

static int ppo_see(void *learner, struct error *err)
{
    (void)err;
    rl_ppo_see(learner);
    return 0;
}

static bool ppo_is_full(const void *learner)
{
    return rl_ppo_is_full(learner);
}

static int ppo_update(void *learner, struct error *err)
{
    struct rl_ppo_report report;
    return rl_ppo_update(learner, &report, err);
}

static void ppo_decide(void *learner, const struct rl_world *world, size_t row)
{
    float logits[RL_MAX_OPTIONS];
    const struct rl_heads *heads = &world->heads;
    rl_net_row(rl_ppo_actor(learner), world->observations + row * world->observation_size, logits);
    rl_best(heads, logits, world->masks ? world->masks + row * heads->total : NULL,
            world->actions + row * heads->count);
}

static struct rl_net *ppo_actor(void *learner)
{
    return rl_ppo_actor(learner);
}

static struct rl_net *ppo_critic(void *learner)
{
    return rl_ppo_critic(learner);
}

static void ppo_save(const void *learner, const char *name, struct rl_checkpoint *to)
{
    rl_ppo_save(learner, name, to);
}

static int ppo_load(void *learner, const char *name, const struct rl_checkpoint *from,
                    struct error *err)
{
    return rl_ppo_load(learner, name, from, err);
}

const struct learner_kind learner_ppo = {ppo_make,    ppo_free,   ppo_act,    ppo_see,
                                         ppo_is_full, ppo_update, ppo_decide, ppo_actor,
                                         ppo_critic,  ppo_save,   ppo_load};

/* --- Q-learning ------------------------------------------------------------------------------ */
/* Bins from the least to the most that a field can be. */
static void cut(struct rl_grid *grid, const struct sim_shape *shape, size_t bins)
{
    rl_grid_init(grid, shape->observation_size, bins, 0, 1);
    for (size_t i = 0; i < shape->observation_size && i < RL_MAX_FEATURES; i++) {
        const struct sim_field *field = &shape->observation_fields[i];
        double times = field->per_other && shape->functions > 2 ? (double)shape->functions - 1 : 1;
        grid->low[i] = (float)(field->low * times);
        grid->high[i] = (float)(field->high * times);
    }
}

static void *q_make(const struct train_config *config, const struct rl_world *world,
                    struct rl_rows rows, size_t steps, uint64_t seed, struct error *err)
{
    struct rl_grid grid;
    struct rl_q_config q = config->q;
    if (q.decay_steps == 0)
        q.decay_steps = steps / 2;
    cut(&grid, sim_shape(world->self), config->bins);
    return rl_q_new(&q, &grid, world, rows, seed, err);
}

static void q_free(void *learner)
{
    rl_q_free(learner);
}

static void q_act(void *learner)
{
    rl_q_act(learner);
}

static int q_see(void *learner, struct error *err)
{
    return rl_q_see(learner, err);
}

static bool q_is_full(const void *learner)
{
    (void)learner;
    return false; /* it learns as it sees */
}

static void q_decide(void *learner, const struct rl_world *world, size_t row)
{
    const struct rl_heads *heads = &world->heads;
    rl_table_best(rl_q_table(learner), heads, world->observations + row * world->observation_size,
                  world->masks ? world->masks + row * heads->total : NULL,
                  world->actions + row * heads->count);
}

static struct rl_net *q_net(void *learner)
{
    (void)learner;
    return NULL;
}

static void q_save(const void *learner, const char *name, struct rl_checkpoint *to)
{
    rl_q_save(learner, name, to);
}

static int q_load(void *learner, const char *name, const struct rl_checkpoint *from,
                  struct error *err)
{
    return rl_q_load(learner, name, from, err);
}

const struct learner_kind learner_q = {q_make,   q_free, q_act, q_see,  q_is_full, NULL,
                                       q_decide, q_net,  q_net, q_save, q_load};
