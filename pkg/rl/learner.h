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

/* Refuses what no PPO can be (ppo.c). */
int ppo_check(const struct rl_ppo_config *config, struct error *err);

/* The numbers below count in an order by chance. */
void shuffle(uint32_t *order, size_t count, struct random *random);

#endif
