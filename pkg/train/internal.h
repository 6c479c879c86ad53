/* Shared by the files of pkg/train. */
#ifndef FAASRL_TRAIN_INTERNAL_H
#define FAASRL_TRAIN_INTERNAL_H

#include "rl/checkpoint.h"
#include "train/train.h"

/* --- learners -------------------------------------------------------------------------------- */
/* What an algorithm of pkg/rl does, in one form for all. */
struct learner_kind {
    void *(*make)(const struct train_config *config, const struct rl_world *world,
                  struct rl_rows rows, size_t steps, uint64_t seed, struct error *err);
    void (*free)(void *learner);
    void (*act)(void *learner); /* before a step, and after it: */
    int (*see)(void *learner, struct error *err);
    bool (*is_full)(const void *learner); /* time for: */
    int (*update)(void *learner, struct error *err);
    void (*decide)(void *learner, const struct rl_world *world, size_t row); /* the likeliest */
    struct rl_net *(*actor)(void *learner); /* NULL: there are no networks */
    struct rl_net *(*critic)(void *learner);
    void (*save)(const void *learner, const char *name, struct rl_checkpoint *to);
    int (*load)(void *learner, const char *name, const struct rl_checkpoint *from,
                struct error *err);
};

extern const struct learner_kind learner_ppo; /* in all its forms, and REINFORCE */
extern const struct learner_kind learner_q;

struct algorithm {
    struct train_algorithm public; /* first */
    const struct learner_kind *kind;
    const char *states[4]; /* that it can learn from; none: any */
    void (*prepare)(struct train_config *config);
};

static inline const struct algorithm *algorithm_of(const struct train_config *config)
{
    return (const struct algorithm *)config->algorithm;
}

/* --- figures of a round (world.c) ------------------------------------------------------------- */
struct tally {
    const struct sim *sim;
    uint8_t *acted; /* (rows): took part in the step */
    double *rewards;
    uint64_t *decisions; /* of each function */
    double preserved, utilized, memory, violations, requests;
    uint64_t looks; /* decisions whose figures are known */
};
void tally_init(struct tally *t, const struct sim *sim);
void tally_clear(struct tally *t);
void tally_begin(struct tally *t);        /* a round */
void tally_before(const struct tally *t); /* a step */
void tally_after(struct tally *t);
/* All but what counts from the beginning of learning. */
void tally_report(const struct tally *t, struct train_report *out);
uint64_t tally_decisions(const struct tally *t);

/* --- the loop (train.c) ----------------------------------------------------------------------- */
struct train {
    struct train_config config; /* its world is not ours: only plain figures are read */
    const struct learner_kind *kind;
    char *formulation;
    struct sim *sim;
    struct rl_world world;
    void **learners;
    size_t learner_count;
    struct tally tally;
    double *rewards; /* of each function in the last round */
    size_t episodes;
    uint64_t steps;
    int64_t begun_ms;
};

#endif
