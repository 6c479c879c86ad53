/* Embeddings: a workload's recent history as a few numbers that tell a policy where it is.
 *
 * An encoder looks at each step by itself (what was seen, what was done, what came of it); the mean
 * over the steps, whatever their order and number, is the embedding. It is learned with a predictor
 * that is told the embedding, and what is seen and done, and has to say what comes of it: what
 * helps there is what workloads differ in.
 *
 *   struct rl_embed *embed = rl_embed_new(&rl_embed_default, &world, &err);
 *   rl_embed_learn(embed, log, &report, &err);             … of many workloads, a row each …
 *   struct rl_embedded *told = rl_embedded_new(embed, &world);
 *   struct rl_ppo *ppo = rl_ppo_new(…, rl_embedded_world(told), …);
 */
#ifndef FAASRL_RL_EMBED_H
#define FAASRL_RL_EMBED_H

#include "rl/checkpoint.h"

struct rl_embed_config {
    size_t size;    /* numbers of an embedding */
    size_t hidden;  /* width of the one hidden layer of both networks */
    size_t window;  /* steps of a history, at most */
    size_t context; /* steps that a sample of learning is told of, at most */
    size_t updates, batch;
    double rate, max_gradient; /* the rate falls evenly to a tenth */
    uint64_t seed;
};
extern const struct rl_embed_config rl_embed_default;

struct rl_embed_report { /* mean squared errors, in variances of what was to be said */
    double first, last;  /* of the first and the last tenth of the updates */
    double blind;        /* of the last tenth, had the embedding been another workload's */
};

struct rl_embed;
/* For worlds whose rows look like this one's. */
struct rl_embed *rl_embed_new(const struct rl_embed_config *config, const struct rl_world *world,
                              struct error *err);
void rl_embed_free(struct rl_embed *embed);
size_t rl_embed_size(const struct rl_embed *embed);
/* A row of the log is one workload, whatever decided in it. On failure all stays as it was. */
int rl_embed_learn(struct rl_embed *embed, const struct rl_log *log, struct rl_embed_report *report,
                   struct error *err);

/* --- histories ------------------------------------------------------------------------------- */
struct rl_step {
    const float *before, *after; /* what was seen */
    const int32_t *action;
    float reward;
};

/* Of one workload: memory is bounded by the window. */
struct rl_history;
struct rl_history *rl_history_new(const struct rl_embed *embed);
void rl_history_free(struct rl_history *history);
void rl_history_add(struct rl_history *history, const struct rl_step *step);
void rl_history_forget(struct rl_history *history);
/* The embedding, each number within ±1; 0 while there is no history. */
void rl_history_read(const struct rl_history *history, float *out);

/* --- worlds ---------------------------------------------------------------------------------- */
/* The same world, in which each row also sees the embedding of its own history. */
struct rl_embedded;
/* Both must outlive it. */
struct rl_embedded *rl_embedded_new(const struct rl_embed *embed, const struct rl_world *inner);
void rl_embedded_free(struct rl_embedded *embedded);
const struct rl_world *rl_embedded_world(const struct rl_embedded *embedded);
/* A row's history: another workload begins there. */
void rl_embedded_forget(struct rl_embedded *embedded, size_t row);

/* --- checkpoints ----------------------------------------------------------------------------- */
/* The networks embed/encoder and embed/predictor. */
void rl_embed_save(const struct rl_embed *embed, struct rl_checkpoint *to);
int rl_embed_load(struct rl_embed *embed, const struct rl_checkpoint *from, struct error *err);

#endif
