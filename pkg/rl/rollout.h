/* What was seen in some rows of a world, step by step. Private to pkg/rl. */
#ifndef FAASRL_RL_ROLLOUT_H
#define FAASRL_RL_ROLLOUT_H

#include "rl/rl.h"

struct rollout { /* (steps, rows, …) each */
    const struct rl_world *world;
    struct rl_rows which;
    size_t steps, rows, input_size;
    float *observations; /* one step more, for what lies behind the last */
    float *inputs;       /* of a critic, as observations; the same array where it sees no more */
    uint8_t *masks;      /* NULL: all is legal */
    uint8_t *counts;     /* 1: to be learned from */
    uint8_t *ends, *terminal; /* ends: what follows belongs to another episode */
    int32_t *actions;
    float *rewards;
};

/* Fails when there are no such rows. */
int rollout_init(struct rollout *r, const struct rl_world *world, struct rl_rows rows, size_t steps,
                 bool with_globals, struct error *err);
void rollout_clear(struct rollout *r);
static inline size_t rollout_row(const struct rollout *r, size_t i) /* of the world */
{
    return r->which.first + i * r->which.stride;
}
static inline const uint8_t *rollout_mask(const struct rollout *r, size_t sample)
{
    return r->masks ? r->masks + sample * r->world->heads.total : NULL;
}
void rollout_look(struct rollout *r, size_t step); /* observations and inputs */
void rollout_act(struct rollout *r, size_t step);  /* masks, actions, who counts */
void rollout_see(struct rollout *r, size_t step);  /* rewards and ends */
/* Fails on the first reward or observation that counts and is no number. */
int rollout_check(const struct rollout *r, size_t steps, struct error *err);
/* Lists the samples of the first steps that count; gives back how many. */
size_t rollout_list(const struct rollout *r, size_t steps, uint32_t *samples);

#endif
