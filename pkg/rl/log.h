/* The inside of a log, for what learns from it. Private to pkg/rl. */
#ifndef FAASRL_RL_LOG_H
#define FAASRL_RL_LOG_H

#include "rollout.h"

struct rl_log {
    struct rollout seen; /* a ring: step i is at i % seen.steps */
    float *weights;      /* (steps, rows) */
    size_t begun, done;  /* steps so far, with their actions, with what came of them */
};

/* How many steps it holds. */
static inline size_t log_steps(const struct rl_log *log)
{
    return log->done < log->seen.steps ? log->done : log->seen.steps;
}

#endif
