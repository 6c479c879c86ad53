/* When to learn again: tells that rewards, or what is seen, are no longer what they were.
 *
 *   struct rl_drift drift;
 *   rl_drift_init(&drift, &rl_drift_default, &err);
 *   … every interval: if (rl_drift_add(&drift, reward) & RL_DRIFT_WORSE) learn again …
 *   … and then rl_drift_forget(&drift), as its history is that of another policy …
 *
 * Rewards are looked at in blocks, their means and their spreads each against its own history, by
 * CUSUM. A pattern that comes back every period is a part of that history. Memory is bounded, an
 * interval costs O(1). docs/adaptation.md tells the formulas, delays and false alarms. */
#ifndef FAASRL_RL_DRIFT_H
#define FAASRL_RL_DRIFT_H

#include "rl/rl.h"

/* --- rewards (drift.c) ----------------------------------------------------------------------- */
#define RL_DRIFT_SLOTS  48
#define RL_DRIFT_SCALES 3

struct rl_drift_config {
    size_t block;  /* rewards */
    size_t period; /* rewards until a pattern comes back, as a day's; 0: there is none */
    size_t slots;  /* that a period is cut into; 0: 24 */
    size_t learn;  /* blocks that must be seen before any is judged; with a period, all slots too */
    double slack;  /* deviations that a shift must exceed */
    double limit;  /* deviations that must add up beyond that */
    double floor;  /* of a deviation, in rewards: no smaller shift matters */
};
/* Blocks of 8 intervals; no period. */
extern const struct rl_drift_config rl_drift_default;

enum rl_drift_kind {                      /* a set of them */
                     RL_DRIFT_WORSE = 1,  /* the mean has fallen */
                     RL_DRIFT_BETTER = 2, /* it has risen */
                     RL_DRIFT_WILDER = 4, /* the spread has grown */
};

struct rl_drift_level { /* what a figure of blocks usually is */
    struct {
        double mean, squares, weight; /* squares: of how far off blocks are; weight: blocks */
    } slots[RL_DRIFT_SLOTS];
    struct rl_drift_scale { /* squares of the means of several blocks, less what is usual */
        double sum, squares, weight;
        size_t count;
    } scales[RL_DRIFT_SCALES];
    double up, down; /* CUSUMs */
};

struct rl_drift { /* plain memory, to be copied or kept as one likes */
    struct rl_drift_config config;
    struct rl_drift_level mean, spread;
    double sum, squares; /* of the block that is being filled */
    size_t filled;
    uint64_t blocks; /* since it was forgotten */
    uint64_t clock;  /* rewards, always */
    unsigned raised; /* enum rl_drift_kind */
};
/* Refuses what cannot be, naming it. */
int rl_drift_init(struct rl_drift *drift, const struct rl_drift_config *config, struct error *err);
/* Gives back what is raised now. It stays so until what it is about is back for long enough, or is
 * forgotten. NaN, a missing reward, only moves the clock. */
unsigned rl_drift_add(struct rl_drift *drift, double reward);
bool rl_drift_is_ready(const struct rl_drift *drift); /* has learned enough to judge now */
/* Begins to learn what is usual again. */
void rl_drift_forget(struct rl_drift *drift);

/* --- inputs (inputs.c) ------------------------------------------------------------------------
 * What is seen, against what was seen while learning. */
#define RL_INPUTS_WINDOW 16 /* blocks */

struct rl_inputs;
/* Blocks of so many rows. Keeps at most `most` of those learned from, drawn evenly. */
struct rl_inputs *rl_inputs_new(size_t features, size_t block, size_t most, uint64_t seed,
                                struct error *err);
void rl_inputs_free(struct rl_inputs *inputs);
/* While learning: rows of one workload after the other; `begins`: this one is another's first. */
void rl_inputs_learn(struct rl_inputs *inputs, const float *row, bool begins);
/* After it. Fails where too little was seen to tell. */
int rl_inputs_seal(struct rl_inputs *inputs, struct error *err);
/* While serving; true: more than half of the last blocks are farther from what was learned from
 * than anything in it; until less than a quarter is. */
bool rl_inputs_add(struct rl_inputs *inputs, const float *row);
/* How far the last block is, in limits; above 1: beyond. */
double rl_inputs_distance(const struct rl_inputs *inputs);
void rl_inputs_forget(struct rl_inputs *inputs); /* what was served, not what was learned */

#endif
