#include "rollout.h"

#include <string.h>

const struct rl_rows rl_all_rows = {0, 1};

int rollout_init(struct rollout *r, const struct rl_world *world, struct rl_rows rows, size_t steps,
                 bool with_globals, struct error *err)
{
    if (rows.stride == 0 || rows.first >= world->rows)
        return error_set(err, ERROR_INVALID, "there is no row %zu, step %zu, among %zu", rows.first,
                         rows.stride, world->rows);
    size_t count = (world->rows - rows.first + rows.stride - 1) / rows.stride, n = steps * count;
    if (n > UINT32_MAX / 2)
        return error_set(err, ERROR_TOO_LARGE, "%zu steps of %zu rows are more than %u samples",
                         steps, count, UINT32_MAX / 2);
    size_t own = world->observation_size, inputs = own + (with_globals ? world->global_size : 0);
    *r = (struct rollout){
        .world = world, .which = rows, .steps = steps, .rows = count, .input_size = inputs};
    r->observations = xcalloc((n + count) * own, sizeof(float));
    r->inputs = inputs > own ? xcalloc((n + count) * inputs, sizeof(float)) : r->observations;
    r->masks = world->masks ? xcalloc(n * world->heads.total, 1) : NULL;
    r->counts = xcalloc(n, 1);
    r->ends = xcalloc(n, 1);
    r->terminal = xcalloc(n, 1);
    r->actions = xcalloc(n * world->heads.count, sizeof(int32_t));
    r->rewards = xcalloc(n, sizeof(float));
    return 0;
}

void rollout_clear(struct rollout *r)
{
    if (r->inputs != r->observations)
        free(r->inputs);
    free(r->observations);
    free(r->masks);
    free(r->counts);
    free(r->ends);
    free(r->terminal);
    free(r->actions);
    free(r->rewards);
}

void rollout_look(struct rollout *r, size_t step)
{
    const struct rl_world *w = r->world;
    size_t own = w->observation_size, global = r->input_size - own;
    for (size_t i = 0; i < r->rows; i++) {
        size_t row = rollout_row(r, i), at = step * r->rows + i;
        const float *seen = w->observations + row * own;
        memcpy(r->observations + at * own, seen, own * sizeof(float));
        if (global == 0)
            continue;
        float *to = r->inputs + at * r->input_size;
        memcpy(to, seen, own * sizeof(float));
        memcpy(to + own, w->globals + row * global, global * sizeof(float));
    }
}

void rollout_act(struct rollout *r, size_t step)
{
    const struct rl_world *w = r->world;
    size_t total = w->heads.total, heads = w->heads.count;
    for (size_t i = 0; i < r->rows; i++) {
        size_t row = rollout_row(r, i), at = step * r->rows + i;
        if (r->masks)
            memcpy(r->masks + at * total, w->masks + row * total, total);
        memcpy(r->actions + at * heads, w->actions + row * heads, heads * sizeof(int32_t));
        bool present = w->present == NULL || w->present[row];
        r->counts[at] = present && !w->terminated[row] && !w->truncated[row];
    }
}

void rollout_see(struct rollout *r, size_t step)
{
    const struct rl_world *w = r->world;
    for (size_t i = 0; i < r->rows; i++) {
        size_t row = rollout_row(r, i), at = step * r->rows + i;
        r->rewards[at] = w->rewards[row];
        r->terminal[at] = w->terminated[row];
        r->ends[at] = w->terminated[row] || w->truncated[row] || !r->counts[at];
    }
}

static int find_wrong(const struct rollout *r, size_t at, struct error *err)
{
    const float *inputs = r->inputs + at * r->input_size;
    size_t step = at / r->rows, row = rollout_row(r, at % r->rows);
    if (!isfinite(r->rewards[at]))
        return error_set(err, ERROR_INVALID, "the reward of row %zu is %g at step %zu", row,
                         r->rewards[at], step);
    for (size_t k = 0; k < r->input_size; k++)
        if (!isfinite(inputs[k]))
            return error_set(err, ERROR_INVALID, "number %zu that row %zu sees is %g at step %zu",
                             k, row, inputs[k], step);
    return 0;
}

int rollout_check(const struct rollout *r, size_t steps, struct error *err)
{
    for (size_t i = 0; i < steps * r->rows; i++)
        if (r->counts[i] && find_wrong(r, i, err) < 0)
            return -1;
    return 0;
}

size_t rollout_list(const struct rollout *r, size_t steps, uint32_t *samples)
{
    size_t count = 0;
    for (size_t i = 0; i < steps * r->rows; i++)
        if (r->counts[i])
            samples[count++] = (uint32_t)i;
    return count;
}
