#include "log.h"

#define MAX_SAMPLES 1e8

struct rl_log *rl_log_new(const struct rl_world *world, struct rl_rows rows, size_t steps,
                          struct error *err)
{
    struct rl_log *log = xcalloc(1, sizeof(*log));
    if (steps == 0 || (double)steps * (double)world->rows > MAX_SAMPLES)
        error_set(err, ERROR_INVALID, "a log must hold 1 to %g decisions, not %zu steps of %zu",
                  MAX_SAMPLES, steps, world->rows);
    else if (rollout_init(&log->seen, world, rows, steps, false, err) == 0) {
        log->weights = xcalloc(steps * log->seen.rows, sizeof(float));
        return log;
    }
    free(log);
    return NULL;
}

void rl_log_free(struct rl_log *log)
{
    if (log == NULL)
        return;
    rollout_clear(&log->seen);
    free(log->weights);
    free(log);
}

void rl_log_act(struct rl_log *log, const float *weights)
{
    struct rollout *s = &log->seen;
    const struct rl_heads *heads = &s->world->heads;
    size_t step = log->begun++ % s->steps;
    rollout_look(s, step);
    rollout_act(s, step);
    for (size_t i = 0; i < s->rows; i++) {
        size_t at = step * s->rows + i;
        log->weights[at] = weights ? weights[i] : 1;
        s->counts[at] = s->counts[at] && log->weights[at] > 0 &&
                        rl_is_legal(heads, rollout_mask(s, at), s->actions + at * heads->count);
    }
}

void rl_log_see(struct rl_log *log)
{
    rollout_see(&log->seen, log->done++ % log->seen.steps);
}

size_t rl_log_count(const struct rl_log *log)
{
    size_t count = 0;
    for (size_t i = 0; i < log_steps(log) * log->seen.rows; i++)
        count += log->seen.counts[i];
    return count;
}
