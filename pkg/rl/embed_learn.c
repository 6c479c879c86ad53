/* Learning to tell workloads apart by what they do: encoder, mean, predictor. */
#include "embedding.h"
#include "learner.h"
#include "log.h"

#include <string.h>

/* --- samples --------------------------------------------------------------------------------- */
struct lesson {
    struct rl_embed *embed;
    const struct rollout *seen;
    uint32_t *samples; /* those that count and whose next observation is there, row after row */
    size_t *firsts;    /* (rows + 1): where each row's begin */
    double *spread;    /* (outputs): variances of what is to be said */
    struct learner encoder, predictor;
    size_t *counts; /* (batch): steps of each context */
    float *codes;   /* (batch, size): embeddings */
    float *d_asked; /* (batch, asked) */
    float *targets; /* (batch, outputs) */
    size_t *of;     /* (batch): the row */
    struct random random;
};

static struct rl_step get_step(const struct lesson *l, size_t at)
{
    const struct rollout *s = l->seen;
    size_t own = s->world->observation_size;
    return (struct rl_step){.before = s->observations + at * own,
                            .after = s->observations + (at + s->rows) * own,
                            .action = s->actions + at * s->world->heads.count,
                            .reward = s->rewards[at]};
}

/* What is to be said of a step: how what is seen changes, and the reward. */
static void get_target(const struct lesson *l, size_t at, float *to)
{
    struct rl_step step = get_step(l, at);
    size_t own = l->embed->observation_size;
    for (size_t k = 0; k < own; k++)
        to[k] = step.after[k] - step.before[k];
    to[own] = step.reward;
}

static void list_samples(struct lesson *l, size_t steps)
{
    const struct rollout *s = l->seen;
    size_t count = 0;
    for (size_t row = 0; row < s->rows; row++) {
        l->firsts[row] = count;
        for (size_t t = 0; t + 1 < steps; t++)
            if (s->counts[t * s->rows + row])
                l->samples[count++] = (uint32_t)(t * s->rows + row);
    }
    l->firsts[s->rows] = count;
}

static void measure_spread(struct lesson *l)
{
    size_t outputs = l->embed->observation_size + 1, count = l->firsts[l->seen->rows];
    cleanup_free float *target = xcalloc(outputs, sizeof(*target));
    cleanup_free double *sum = xcalloc(outputs, sizeof(*sum));
    for (size_t i = 0; i < count; i++) {
        get_target(l, l->samples[i], target);
        for (size_t k = 0; k < outputs; k++) {
            sum[k] += target[k];
            l->spread[k] += (double)target[k] * target[k];
        }
    }
    for (size_t k = 0; k < outputs; k++) {
        double mean = sum[k] / (double)count;
        l->spread[k] = fmax(l->spread[k] / (double)count - mean * mean, 1e-4);
    }
}

/* --- a batch --------------------------------------------------------------------------------- */
/* A step of a row to ask about, and others around it to be told of. */
static void draw_sample(struct lesson *l, size_t b, size_t *steps)
{
    const struct rl_embed *e = l->embed;
    size_t row;
    do
        row = random_below(&l->random, l->seen->rows);
    while (l->firsts[row + 1] - l->firsts[row] < 2);
    size_t first = l->firsts[row], count = l->firsts[row + 1] - first;
    size_t asked = random_below(&l->random, count), window = e->config.window;
    size_t low = asked > window ? asked - window : 0;
    size_t high = asked + window < count ? asked + window : count - 1;
    struct rl_step step = get_step(l, l->samples[first + asked]);
    float *to = l->predictor.in + b * asked_size(e);
    embed_put_asked(e, &step, to);
    get_target(l, l->samples[first + asked], l->targets + b * (e->observation_size + 1));
    l->of[b] = row;
    l->counts[b] = 1 + random_below(&l->random, e->config.context);
    for (size_t i = 0; i < l->counts[b]; i++) {
        size_t other = low + random_below(&l->random, high - low); /* any but the one asked about */
        step = get_step(l, l->samples[first + other + (other >= asked)]);
        embed_put_step(e, &step, l->encoder.in + (*steps)++ * step_size(e));
    }
}

/* The embeddings of a batch, and where the predictor is told of them. */
static void encode(struct lesson *l, size_t steps)
{
    const struct rl_embed *e = l->embed;
    size_t size = e->config.size, at = 0;
    const float *out = rl_net_forward(&e->encoder, l->encoder.in, steps, &l->encoder.work);
    for (size_t b = 0; b < e->config.batch; b++) {
        float *code = l->codes + b * size;
        embed_pool(out + at * size, l->counts[b], size, code);
        memcpy(l->predictor.in + (b + 1) * asked_size(e) - size, code, size * sizeof(*code));
        at += l->counts[b];
    }
}

/* Mean squared error in variances; d: its derivatives, where wanted. */
static double measure_error(const struct lesson *l, const float *said, float *d)
{
    size_t outputs = l->embed->observation_size + 1, n = l->embed->config.batch * outputs;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double off = said[i] - l->targets[i], scale = l->spread[i % outputs] * (double)n;
        sum += off * off / scale;
        if (d)
            d[i] = (float)(2 * off / scale);
    }
    return sum;
}

/* Back through the predictor, the embedding and the mean to every step. */
static void derive(struct lesson *l)
{
    const struct rl_embed *e = l->embed;
    size_t size = e->config.size, at = 0;
    rl_net_backward(&e->predictor, &l->predictor.work, l->predictor.d_out, l->predictor.gradient);
    rl_net_input_gradient(&e->predictor, &l->predictor.work, l->predictor.d_out, l->d_asked);
    for (size_t b = 0; b < e->config.batch; b++) {
        const float *d = l->d_asked + (b + 1) * asked_size(e) - size, *code = l->codes + b * size;
        for (size_t i = 0; i < l->counts[b]; i++, at++)
            for (size_t k = 0; k < size; k++)
                l->encoder.d_out[at * size + k] =
                    d[k] * (1 - code[k] * code[k]) / (float)l->counts[b];
    }
    rl_net_backward(&e->encoder, &l->encoder.work, l->encoder.d_out, l->encoder.gradient);
}

/* The same questions with the embedding of the sample before, which is another workload's. */
static double measure_blind(struct lesson *l)
{
    const struct rl_embed *e = l->embed;
    size_t size = e->config.size, width = asked_size(e);
    for (size_t b = 0; b < e->config.batch; b++) {
        size_t other = b;
        for (size_t k = 1; k < e->config.batch && l->of[other] == l->of[b]; k++)
            other = (b + k) % e->config.batch;
        memcpy(l->predictor.in + (b + 1) * width - size, l->codes + other * size,
               size * sizeof(float));
    }
    return measure_error(
        l, rl_net_forward(&e->predictor, l->predictor.in, e->config.batch, &l->predictor.work),
        NULL);
}

static int learn(struct lesson *l, double rate, double *error, struct error *err)
{
    const struct rl_embed_config *c = &l->embed->config;
    size_t steps = 0;
    for (size_t b = 0; b < c->batch; b++)
        draw_sample(l, b, &steps);
    encode(l, steps);
    const float *said =
        rl_net_forward(&l->embed->predictor, l->predictor.in, c->batch, &l->predictor.work);
    *error = measure_error(l, said, l->predictor.d_out);
    if (!isfinite(*error))
        return error_set(err, ERROR_INVALID, "the error of the predictor is %g: try a smaller rate",
                         *error);
    derive(l);
    if (learner_step(&l->encoder, rate, c->max_gradient, err) < 0)
        return -1;
    return learner_step(&l->predictor, rate, c->max_gradient, err);
}

/* --- learning -------------------------------------------------------------------------------- */
static void lesson_init(struct lesson *l, struct rl_embed *e, const struct rl_log *log)
{
    size_t batch = e->config.batch, outputs = e->observation_size + 1;
    *l = (struct lesson){.embed = e, .seen = &log->seen};
    l->random = random_stream(e->config.seed, 1);
    learner_init(&l->encoder, "encoder", &e->encoder, batch * e->config.context);
    learner_init(&l->predictor, "predictor", &e->predictor, batch);
    l->samples = xcalloc(log_steps(log) * log->seen.rows + 1, sizeof(*l->samples));
    l->firsts = xcalloc(log->seen.rows + 1, sizeof(*l->firsts));
    l->spread = xcalloc(outputs, sizeof(*l->spread));
    l->counts = xcalloc(batch, sizeof(*l->counts));
    l->of = xcalloc(batch, sizeof(*l->of));
    l->codes = xcalloc(batch * e->config.size, sizeof(*l->codes));
    l->d_asked = xcalloc(batch * asked_size(e), sizeof(*l->d_asked));
    l->targets = xcalloc(batch * outputs, sizeof(*l->targets));
    learner_keep(&l->encoder);
    learner_keep(&l->predictor);
}

static void lesson_clear(struct lesson *l)
{
    learner_clear(&l->encoder);
    learner_clear(&l->predictor);
    free(l->samples);
    free(l->firsts);
    free(l->spread);
    free(l->counts);
    free(l->of);
    free(l->codes);
    free(l->d_asked);
    free(l->targets);
}

static int learn_all(struct lesson *l, struct rl_embed_report *report, struct error *err)
{
    const struct rl_embed_config *c = &l->embed->config;
    size_t tenth = c->updates / 10;
    *report = (struct rl_embed_report){0};
    for (size_t i = 0; i < c->updates; i++) {
        double error, passed = (double)i / (double)c->updates;
        if (learn(l, c->rate * (1 - 0.9 * passed), &error, err) < 0)
            return -1;
        if (i < tenth)
            report->first += error / (double)tenth;
        if (i + tenth < c->updates)
            continue;
        report->last += error / (double)tenth;
        report->blind += measure_blind(l) / (double)tenth;
    }
    return 0;
}

/* What a row can be told of, and asked about. */
static int check_log(const struct lesson *l, size_t steps, struct error *err)
{
    const struct rl_world *w = l->seen->world;
    if (w->observation_size != l->embed->observation_size ||
        memcmp(&w->heads, &l->embed->heads, sizeof(w->heads)) != 0)
        return error_set(err, ERROR_INVALID, "the log is that of another world");
    if (rollout_check(l->seen, steps, err) < 0)
        return -1;
    for (size_t row = 0; row < l->seen->rows; row++)
        if (l->firsts[row + 1] - l->firsts[row] >= 2)
            return 0;
    return error_set(err, ERROR_INVALID, "the log holds no two steps of a workload");
}

int rl_embed_learn(struct rl_embed *e, const struct rl_log *log, struct rl_embed_report *report,
                   struct error *err)
{
    struct lesson l;
    if (log->done > log->seen.steps)
        return error_set(err, ERROR_INVALID, "the log has lost its first steps: make it longer");
    lesson_init(&l, e, log);
    list_samples(&l, log_steps(log));
    int result = check_log(&l, log_steps(log), err);
    if (result == 0) {
        measure_spread(&l);
        result = learn_all(&l, report, err);
    }
    if (result < 0) {
        learner_take_back(&l.encoder);
        learner_take_back(&l.predictor);
    }
    lesson_clear(&l);
    return result;
}
