/* The inside of an embedder. Private to pkg/rl. */
#ifndef FAASRL_RL_EMBEDDING_H
#define FAASRL_RL_EMBEDDING_H

#include "rl/embed.h"

struct rl_embed {
    struct rl_embed_config config;
    size_t observation_size;
    struct rl_heads heads;
    struct rl_net encoder;   /* a step → size */
    struct rl_net predictor; /* seen, done, embedding → change of what is seen, reward */
};

static inline size_t step_size(const struct rl_embed *e)
{
    return 2 * e->observation_size + e->heads.total + 1;
}
static inline size_t asked_size(const struct rl_embed *e)
{
    return e->observation_size + e->heads.total + e->config.size;
}
/* What the encoder sees of a step; what the predictor is asked about, but for the embedding. */
void embed_put_step(const struct rl_embed *e, const struct rl_step *step, float *to);
void embed_put_asked(const struct rl_embed *e, const struct rl_step *step, float *to);
/* tanh of the mean of `count` codes. */
void embed_pool(const float *codes, size_t count, size_t size, float *out);

#endif
