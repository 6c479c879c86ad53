/* What can be learned with: a row for each algorithm. */
#include "internal.h"

#include <string.h>

/* --- how each begins ------------------------------------------------------------------------- */
static void prepare_ppo(struct train_config *config)
{
    config->ppo = rl_ppo_default;
}

static void prepare_mappo(struct train_config *config)
{
    config->ppo = rl_ppo_default;
    config->ppo.central_critic = true;
}

static void prepare_reinforce(struct train_config *config)
{
    config->ppo = rl_reinforce_default;
    config->ppo.horizon = 0;
}

static void prepare_q(struct train_config *config)
{
    config->q = rl_q_default;
    config->q.decay_steps = 0;
}

/* --- the table ------------------------------------------------------------------------------- */
static const struct algorithm algorithms[] = {
    {{"ppo", "each function learns alone, by PPO: single-agent RL", "default", false},
     &learner_ppo,
     {NULL},
     prepare_ppo},
    {{"ppo-shared", "the same, with one policy for all functions", "default", true},
     &learner_ppo,
     {NULL},
     prepare_ppo},
    {{"mappo", "each function has a policy, and a critic that sees all: MA-PPO", "mappo", false},
     &learner_ppo,
     {"mappo", NULL},
     prepare_mappo},
    {{"simppo", "one policy that sees a function and the sum of all others: SIMPPO", "simppo",
      true},
     &learner_ppo,
     {"simppo", "default", "mp3", NULL},
     prepare_ppo},
    {{"reinforce", "each function learns alone, from whole episodes", "mp3", false},
     &learner_ppo,
     {NULL},
     prepare_reinforce},
    {{"qlearning", "each function learns alone, in a table of coarse states", "mp3", false},
     &learner_q,
     {NULL},
     prepare_q},
};

const struct train_algorithm *train_algorithm(size_t i)
{
    return i < ARRAY_LEN(algorithms) ? &algorithms[i].public : NULL;
}

const struct train_algorithm *train_algorithm_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        if (strcmp(algorithms[i].public.name, name) == 0)
            return &algorithms[i].public;
    return NULL;
}
