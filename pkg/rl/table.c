/* Q-learning over a table: observations are cut into bins, the heads' options counted through as
 * one number. */
#include "log.h"
#include "rl/checkpoint.h"

#include <string.h>

#define MAX_VALUES ((size_t)1 << 26)

const struct rl_q_config rl_q_default = {.rate = 0.2,
                                         .rate_end = 0.02,
                                         .epsilon = 1,
                                         .epsilon_end = 0.05,
                                         .decay_steps = 20000,
                                         .gamma = 0.99};

/* --- the table ------------------------------------------------------------------------------- */
void rl_grid_init(struct rl_grid *grid, size_t feature_count, size_t bins, float low, float high)
{
    *grid = (struct rl_grid){.feature_count = feature_count};
    for (size_t i = 0; i < RL_MAX_FEATURES; i++) {
        grid->bins[i] = bins;
        grid->low[i] = low;
        grid->high[i] = high;
    }
}

/* product × factor, or 0 when that is more than a table may have. */
static size_t grow(size_t product, size_t factor)
{
    return factor == 0 || product > MAX_VALUES / factor ? 0 : product * factor;
}

static size_t count_states(const struct rl_grid *grid)
{
    size_t states = grid->feature_count > 0 && grid->feature_count <= RL_MAX_FEATURES;
    for (size_t i = 0; states > 0 && i < grid->feature_count; i++) {
        bool is_range =
            isfinite(grid->low[i]) && isfinite(grid->high[i]) && grid->low[i] < grid->high[i];
        states = is_range ? grow(states, grid->bins[i]) : 0;
    }
    return states;
}

size_t rl_table_size(const struct rl_grid *grid, const struct rl_heads *heads)
{
    size_t size = heads->count > 0 ? count_states(grid) : 0;
    for (size_t h = 0; h < heads->count; h++)
        size = grow(size, heads->options[h]);
    return size;
}

int rl_table_make(struct rl_table *table, const struct rl_grid *grid, const struct rl_heads *heads,
                  struct error *err)
{
    size_t size = rl_table_size(grid, heads);
    if (size == 0)
        return error_set(err, ERROR_INVALID,
                         "a table must have 1 to %d features, each with a range, and at most %zu "
                         "values: bins × options",
                         RL_MAX_FEATURES, MAX_VALUES);
    *table = (struct rl_table){.grid = *grid, .states = count_states(grid)};
    table->actions = size / table->states;
    table->values = xcalloc(size, sizeof(float));
    return 0;
}

void rl_table_clear(struct rl_table *table)
{
    free(table->values);
    *table = (struct rl_table){0};
}

static size_t find_state(const struct rl_grid *grid, const float *observation)
{
    size_t state = 0;
    for (size_t i = 0; i < grid->feature_count; i++) {
        double share = ((double)observation[i] - grid->low[i]) / (grid->high[i] - grid->low[i]);
        double bin = floor(share * (double)grid->bins[i]), last = (double)grid->bins[i] - 1;
        bin = bin > 0 ? fmin(bin, last) : 0; /* so that what is no number has a place too */
        state = state * grid->bins[i] + (size_t)bin;
    }
    return state;
}

/* --- actions as one number ------------------------------------------------------------------- */
static void split_action(const struct rl_heads *heads, size_t number, int32_t *action)
{
    for (size_t h = heads->count; h-- > 0; number /= heads->options[h])
        action[h] = (int32_t)(number % heads->options[h]);
}

static size_t join_action(const struct rl_heads *heads, const int32_t *action)
{
    size_t number = 0;
    for (size_t h = 0; h < heads->count; h++)
        number = number * heads->options[h] + (size_t)action[h];
    return number;
}

static bool is_legal(const struct rl_heads *heads, const uint8_t *mask, size_t number)
{
    int32_t action[RL_MAX_HEADS];
    if (mask == NULL)
        return true;
    split_action(heads, number, action);
    return rl_is_legal(heads, mask, action);
}

/* The best legal one; the first where nothing is legal. */
static size_t find_best(const struct rl_table *t, const struct rl_heads *heads, size_t state,
                        const uint8_t *mask)
{
    const float *values = t->values + state * t->actions;
    size_t best = SIZE_MAX;
    for (size_t k = 0; k < t->actions; k++)
        if ((best == SIZE_MAX || values[k] > values[best]) && is_legal(heads, mask, k))
            best = k;
    return best == SIZE_MAX ? 0 : best;
}

void rl_table_best(const struct rl_table *table, const struct rl_heads *heads,
                   const float *observation, const uint8_t *mask, int32_t *action)
{
    size_t state = find_state(&table->grid, observation);
    split_action(heads, find_best(table, heads, state, mask), action);
}

/* --- learning -------------------------------------------------------------------------------- */
struct rl_q {
    struct rl_q_config config;
    struct rl_table table;
    struct rollout seen; /* of one step, and where it led */
    struct random random;
    size_t steps;
};

static int check(const struct rl_q_config *c, const struct rl_grid *grid,
                 const struct rl_world *world, struct error *err)
{
    const struct {
        const char *name;
        double value;
    } shares[] = {{"rate", c->rate},
                  {"rate_end", c->rate_end},
                  {"epsilon", c->epsilon},
                  {"epsilon_end", c->epsilon_end},
                  {"gamma", c->gamma}};
    for (size_t i = 0; i < ARRAY_LEN(shares); i++)
        if (!(shares[i].value >= 0 && shares[i].value <= 1))
            return error_set(err, ERROR_INVALID, "%s is %g: must be 0 to 1", shares[i].name,
                             shares[i].value);
    if (grid->feature_count != world->observation_size)
        return error_set(err, ERROR_INVALID, "the table has %zu features, the world %zu",
                         grid->feature_count, world->observation_size);
    return 0;
}

struct rl_q *rl_q_new(const struct rl_q_config *config, const struct rl_grid *grid,
                      const struct rl_world *world, struct rl_rows rows, uint64_t seed,
                      struct error *err)
{
    struct rl_q *q = xcalloc(1, sizeof(*q));
    q->config = *config;
    q->random = random_stream(seed, rows.first);
    if (check(config, grid, world, err) == 0 &&
        rl_table_make(&q->table, grid, &world->heads, err) == 0 &&
        rollout_init(&q->seen, world, rows, 1, false, err) == 0)
        return q;
    rl_q_free(q);
    return NULL;
}

void rl_q_free(struct rl_q *q)
{
    if (q == NULL)
        return;
    rl_table_clear(&q->table);
    rollout_clear(&q->seen);
    free(q);
}

struct rl_table *rl_q_table(struct rl_q *q)
{
    return &q->table;
}

static double decay(const struct rl_q *q, double from, double to)
{
    if (q->steps >= q->config.decay_steps)
        return to;
    return from + (to - from) * (double)q->steps / (double)q->config.decay_steps;
}

/* Any legal option of each head, all as likely. */
static void choose_any(struct rl_q *q, const uint8_t *mask, int32_t *action)
{
    static const float alike[RL_MAX_OPTIONS];
    struct rl_odds odds;
    rl_odds(&q->seen.world->heads, alike, mask, &odds);
    rl_draw(&q->seen.world->heads, &odds, &q->random, action);
}

void rl_q_act(struct rl_q *q)
{
    const struct rl_world *w = q->seen.world;
    double epsilon = decay(q, q->config.epsilon, q->config.epsilon_end);
    rollout_look(&q->seen, 0);
    for (size_t i = 0; i < q->seen.rows; i++) {
        size_t row = rollout_row(&q->seen, i);
        int32_t *action = w->actions + row * w->heads.count;
        const uint8_t *mask = w->masks ? w->masks + row * w->heads.total : NULL;
        if (random_uniform(&q->random) < epsilon)
            choose_any(q, mask, action);
        else
            rl_table_best(&q->table, &w->heads, q->seen.observations + i * w->observation_size,
                          mask, action);
    }
    rollout_act(&q->seen, 0);
}

/* What was seen at one place of a rollout, and where it led. */
static void learn(struct rl_q *q, const struct rollout *s, size_t at, const float *next,
                  const uint8_t *next_mask)
{
    const struct rl_heads *heads = &s->world->heads;
    struct rl_table *t = &q->table;
    size_t state = find_state(&t->grid, s->observations + at * s->world->observation_size);
    size_t action = join_action(heads, s->actions + at * heads->count);
    double goal = s->rewards[at], rate = decay(q, q->config.rate, q->config.rate_end);
    if (!s->terminal[at]) {
        size_t after = find_state(&t->grid, next);
        goal +=
            q->config.gamma * t->values[after * t->actions + find_best(t, heads, after, next_mask)];
    }
    float *value = &t->values[state * t->actions + action];
    *value += (float)(rate * (goal - *value));
}

int rl_q_see(struct rl_q *q, struct error *err)
{
    struct rollout *s = &q->seen;
    const struct rl_world *w = s->world;
    rollout_see(s, 0);
    if (rollout_check(s, 1, err) < 0)
        return -1;
    for (size_t i = 0; i < s->rows; i++) {
        size_t row = rollout_row(s, i);
        if (s->counts[i])
            learn(q, s, i, w->observations + row * w->observation_size,
                  w->masks ? w->masks + row * w->heads.total : NULL);
    }
    q->steps++;
    return 0;
}

/* From the oldest step to the newest but one, behind which nothing is known yet. */
int rl_q_replay(struct rl_q *q, const struct rl_log *log, struct error *err)
{
    const struct rollout *s = &log->seen;
    size_t steps = log_steps(log);
    if (s->world->heads.total != q->seen.world->heads.total ||
        s->world->observation_size != q->table.grid.feature_count)
        return error_set(err, ERROR_INVALID, "the log is of another kind of world");
    if (rollout_check(s, steps, err) < 0)
        return -1;
    for (size_t i = log->done - steps; i + 1 < log->done; i++)
        for (size_t row = 0; row < s->rows; row++) {
            size_t at = i % s->steps * s->rows + row, next = (i + 1) % s->steps * s->rows + row;
            if (s->counts[at])
                learn(q, s, at, s->observations + next * s->world->observation_size,
                      rollout_mask(s, next));
        }
    return 0;
}

/* --- checkpoints ----------------------------------------------------------------------------- */
static char *table_name(const char *name)
{
    return xasprintf(*name ? "q/%s" : "q%s", name);
}

static bool is_same_grid(const struct rl_grid *a, const struct rl_grid *b)
{
    bool same = a->feature_count == b->feature_count;
    for (size_t i = 0; same && i < a->feature_count; i++)
        same = a->bins[i] == b->bins[i] && a->low[i] == b->low[i] && a->high[i] == b->high[i];
    return same;
}

void rl_q_save(const struct rl_q *q, const char *name, struct rl_checkpoint *to)
{
    cleanup_free char *full = table_name(name);
    rl_checkpoint_add_table(to, full, &q->table);
    to->updates = q->steps;
}

int rl_q_load(struct rl_q *q, const char *name, const struct rl_checkpoint *from, struct error *err)
{
    cleanup_free char *full = table_name(name);
    const struct rl_saved_table *saved = rl_checkpoint_table(from, full);
    if (saved == NULL)
        return error_set(err, ERROR_NOT_FOUND, "there is no table %s in the checkpoint", full);
    if (!is_same_grid(&saved->table.grid, &q->table.grid) ||
        saved->table.actions != q->table.actions)
        return error_set(err, ERROR_INVALID, "table %s has other bins or actions", full);
    memcpy(q->table.values, saved->table.values,
           q->table.states * q->table.actions * sizeof(float));
    q->steps = from->updates;
    return 0;
}
