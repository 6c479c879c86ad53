/* PPO in the world of trials, beginning with the core's own choices. */
#include "bootstrap/internal.h"

#include <stdio.h>
#include <string.h>

#define NEUTRAL_BIAS 3.5f /* of the logits: how much likelier the core's choice is at first */

void bootstrap_config_init(struct bootstrap_config *config)
{
    *config = (struct bootstrap_config){
        .world = bootstrap_world_default, .ppo = rl_ppo_default, .updates = 80, .seed = 1};
    config->ppo.horizon = 64;
    config->ppo.minibatch = 512;
    config->ppo.epochs = 4;
    config->ppo.gamma = 0.99;
    config->ppo.entropy = 0.001;
}

static void prefer_neutral(struct rl_net *actor)
{
    const struct rl_layer *last = &actor->layers[actor->layer_count - 1];
    float *bias = actor->params + last->biases;
    for (size_t h = 0; h < POLICY_HEAD_COUNT; h++) {
        bias[recommend_policy_heads[h].neutral] += NEUTRAL_BIAS;
        bias += recommend_policy_heads[h].options;
    }
}

static int learn(const struct bootstrap_config *config, struct bootstrap_world *world,
                 struct rl_ppo *ppo, struct error *err)
{
    const struct rl_world *rows = bootstrap_world_rows(world);
    for (size_t i = 0; i < config->updates; i++) {
        while (!rl_ppo_is_full(ppo)) {
            rl_ppo_act(ppo);
            rows->step(rows->self);
            rl_ppo_see(ppo);
        }
        struct rl_ppo_report report;
        if (rl_ppo_update(ppo, &report, err) < 0)
            return -1;
        struct bootstrap_figures figures = bootstrap_world_figures(world);
        if (config->on_update)
            config->on_update(config->arg, i, &figures);
    }
    return 0;
}

static void write_down(const struct bootstrap_config *config, const struct rl_ppo *ppo, size_t rows,
                       struct rl_checkpoint *out)
{
    char text[32];
    *out = (struct rl_checkpoint){.algorithm = xstrdup("ppo")};
    out->steps = config->updates * config->ppo.horizon * rows;
    recommend_policy_describe(POLICY_OF_CORRECTIONS, &out->interface);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)config->seed);
    rl_checkpoint_set(out, "seed", text);
    rl_checkpoint_set(out, "recommender", "ppo");
    if (config->world.off)
        rl_checkpoint_set(out, "off", config->world.off);
    rl_ppo_save(ppo, "", out);
}

int bootstrap_learn(const struct bootstrap_config *config, struct rl_checkpoint *out,
                    struct error *err)
{
    struct bootstrap_world *world = bootstrap_world_new(&config->world, config->seed, err);
    if (!world)
        return -1;
    const struct rl_world *rows = bootstrap_world_rows(world);
    struct rl_ppo *ppo =
        rl_ppo_new(&config->ppo, rows, rl_all_rows, config->updates, config->seed, err);
    int result = ppo ? 0 : -1;
    if (result == 0) {
        prefer_neutral(rl_ppo_actor(ppo));
        result = learn(config, world, ppo, err);
    }
    if (result == 0)
        write_down(config, ppo, rows->rows, out);
    rl_ppo_free(ppo);
    bootstrap_world_free(world);
    return result;
}
