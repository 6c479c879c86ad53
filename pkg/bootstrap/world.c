/* All clusters, as rows of numbers. */
#include "bootstrap/internal.h"

#include "base/parallel.h"

const struct bootstrap_world_config bootstrap_world_default = {
    .alone = 80, .shared = 4, .episode_steps = 720, .interval_s = 15, .threads = 1};

struct bootstrap_world {
    struct bootstrap_world_config config;
    struct rl_world rows;
    struct lesson **lessons;
    size_t lesson_count;
    float *features, *rewards;
    uint8_t *masks, *truncated, *terminated;
    int32_t *actions;
};

static void step_one(void *arg, size_t i)
{
    lesson_step(((struct bootstrap_world *)arg)->lessons[i]);
}

static void step(void *self)
{
    struct bootstrap_world *w = self;
    parallel_for(w->config.threads, w->lesson_count, step_one, w);
}

static void reset(void *self, uint64_t seed)
{
    struct bootstrap_world *w = self;
    for (size_t i = 0; i < w->lesson_count; i++) {
        struct random random = random_stream(seed, i);
        lesson_reset(w->lessons[i], random_bits(&random));
    }
}

static void make_rows(struct bootstrap_world *w)
{
    struct rl_world *r = &w->rows;
    *r = (struct rl_world){
        .rows = w->config.alone + BOOTSTRAP_SHARED_FUNCTIONS * w->config.shared,
        .observation_size = POLICY_FEATURE_COUNT,
        .reset = reset,
        .step = step,
        .self = w,
    };
    recommend_policy_heads_init(&r->heads);
    r->observations = w->features = xcalloc(r->rows * POLICY_FEATURE_COUNT, sizeof(float));
    r->masks = w->masks = xcalloc(r->rows * r->heads.total, 1);
    r->terminated = w->terminated = xcalloc(r->rows, 1);
    r->truncated = w->truncated = xcalloc(r->rows, 1);
    r->rewards = w->rewards = xcalloc(r->rows, sizeof(float));
    r->actions = w->actions = xcalloc(r->rows * POLICY_HEAD_COUNT, sizeof(int32_t));
    for (size_t i = 0; i < r->rows * r->heads.total; i++)
        w->masks[i] = 1;
}

static struct lesson_row row_at(const struct bootstrap_world *w, size_t row)
{
    return (struct lesson_row){
        .features = w->features + row * POLICY_FEATURE_COUNT,
        .mask = w->masks + row * w->rows.heads.total,
        .actions = w->actions + row * POLICY_HEAD_COUNT,
        .reward = w->rewards + row,
        .truncated = w->truncated + row,
    };
}

static int make_lessons(struct bootstrap_world *w, uint64_t seed, struct error *err)
{
    size_t count = w->config.alone + w->config.shared, row = 0;
    w->lessons = xcalloc(count + 1, sizeof(struct lesson *));
    for (; w->lesson_count < count; w->lesson_count++) {
        bool shared = w->lesson_count >= w->config.alone;
        size_t functions = shared ? BOOTSTRAP_SHARED_FUNCTIONS : 1;
        struct lesson_row rows[BOOTSTRAP_SHARED_FUNCTIONS];
        struct random random = random_stream(seed, w->lesson_count);
        for (size_t i = 0; i < functions; i++)
            rows[i] = row_at(w, row++);
        struct lesson *l =
            lesson_new(&w->config, shared, random_bits(&random), rows, functions, err);
        if (!l)
            return -1;
        w->lessons[w->lesson_count] = l;
    }
    return 0;
}

struct bootstrap_world *bootstrap_world_new(const struct bootstrap_world_config *config,
                                            uint64_t seed, struct error *err)
{
    if (config->alone + config->shared == 0 || config->episode_steps < 2 ||
        !(config->interval_s > 0)) {
        error_set(err, ERROR_INVALID, "a world needs clusters, episodes and an interval");
        return NULL;
    }
    struct bootstrap_world *w = xcalloc(1, sizeof(*w));
    w->config = *config;
    make_rows(w);
    if (make_lessons(w, seed, err) < 0) {
        bootstrap_world_free(w);
        return NULL;
    }
    reset(w, seed);
    return w;
}

void bootstrap_world_free(struct bootstrap_world *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->lesson_count; i++)
        lesson_free(w->lessons[i]);
    free(w->lessons);
    free(w->features);
    free(w->masks);
    free(w->terminated);
    free(w->truncated);
    free(w->rewards);
    free(w->actions);
    free(w);
}

const struct rl_world *bootstrap_world_rows(const struct bootstrap_world *w)
{
    return &w->rows;
}

struct bootstrap_figures bootstrap_world_figures(struct bootstrap_world *w)
{
    struct bootstrap_figures sum = {0};
    for (size_t i = 0; i < w->lesson_count; i++) {
        struct bootstrap_figures f = lesson_figures(w->lessons[i]);
        sum.steps += f.steps;
        sum.cost += f.cost;
        sum.reward += f.reward;
        sum.episodes += f.episodes;
        sum.met += f.met;
        sum.late_ratio += f.late_ratio;
    }
    return sum;
}
