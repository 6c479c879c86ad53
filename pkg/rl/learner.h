/* A network with what moves it. Private to pkg/rl. */
#ifndef FAASRL_RL_LEARNER_H
#define FAASRL_RL_LEARNER_H

#include "rl/rl.h"

struct learner {
    const char *name;   /* for messages */
    struct rl_net *net; /* the caller's */
    struct rl_adam adam;
    struct rl_work work;
    float *gradient;
    float *in, *d_out; /* of a minibatch */
    struct {
        float *params, *mean, *square;
        uint64_t steps;
    } kept;
};

/* rows: of a minibatch, at most. */
void learner_init(struct learner *l, const char *name, struct rl_net *net, size_t rows);
void learner_clear(struct learner *l);
/* One step of Adam along the gradient. Fails, before it, when that is no number. */
int learner_step(struct learner *l, double rate, double max_gradient, struct error *err);
/* Remembers weights and optimiser; goes back to them. */
void learner_keep(struct learner *l);
void learner_take_back(struct learner *l);
/* Takes over weights of the same shape, and the optimiser where adam->count > 0. */
void learner_load(struct learner *l, const struct rl_net *net, const struct rl_adam *adam);
/* Puts rows of `from`, each width floats, side by side into l->in. */
void learner_gather(struct learner *l, const float *from, const uint32_t *rows, size_t count);

/* --- what every PPO does (ppo_check in ppo.c) ------------------------------------------------- */
/* Refuses what none can be. */
int ppo_check(const struct rl_ppo_config *config, struct error *err);
int ppo_make_net(struct rl_net *net, const struct rl_ppo_config *config, size_t inputs,
                 size_t outputs, float gain, struct random *random, struct error *err);
/* Of the learning rates, which fall from update to update. */
double ppo_rate_share(const struct rl_ppo_config *config, size_t updates, size_t planned);
void ppo_add_loss(struct rl_ppo_report *report, const struct rl_policy_loss *loss);
/* Moves both along their gradients. Fails, before it, where a loss is no number. */
int ppo_step(const struct rl_ppo_config *config, double rate_share, struct learner *actor,
             struct learner *critic, const struct rl_ppo_report *report, struct error *err);
void ppo_take_means(struct rl_ppo_report *report);

/* The numbers below count in an order by chance. */
void shuffle(uint32_t *order, size_t count, struct random *random);

#endif
