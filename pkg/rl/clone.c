/* Behaviour cloning: an actor learns to decide as a log did. */
#include "learner.h"
#include "log.h"

const struct rl_clone_config rl_clone_default = {
    .rate = 1e-3, .max_gradient = 0.5, .epochs = 20, .minibatch = 64, .seed = 1};

static int check(const struct rl_net *actor, const struct rl_log *log,
                 const struct rl_clone_config *c, struct error *err)
{
    const struct rl_world *w = log->seen.world;
    if (!(c->rate > 0 && c->rate <= 1) || c->epochs == 0 || c->minibatch == 0)
        return error_set(err, ERROR_INVALID,
                         "rate %g, epochs %zu, minibatch %zu: must be above 0, the rate at most 1",
                         c->rate, c->epochs, c->minibatch);
    if (actor->shape.inputs != w->observation_size || actor->shape.outputs != w->heads.total)
        return error_set(
            err, ERROR_INVALID, "the network has %zu inputs and %zu outputs, the log %zu and %zu",
            actor->shape.inputs, actor->shape.outputs, w->observation_size, w->heads.total);
    return rollout_check(&log->seen, log_steps(log), err);
}

static bool is_same(const int32_t *a, const int32_t *b, size_t count)
{
    for (size_t h = 0; h < count; h++)
        if (a[h] != b[h])
            return false;
    return true;
}

/* One minibatch; a sample's share is its weight among those of the others. */
static int learn(struct learner *l, const struct rl_log *log, const uint32_t *samples, size_t count,
                 const struct rl_clone_config *c, struct rl_clone_report *report, struct error *err)
{
    const struct rl_heads *heads = &log->seen.world->heads;
    int32_t best[RL_MAX_HEADS];
    double weights = 0;
    for (size_t i = 0; i < count; i++)
        weights += log->weights[samples[i]];
    learner_gather(l, log->seen.observations, samples, count);
    const float *logits = rl_net_forward(l->net, l->in, count, &l->work);
    for (size_t i = 0; i < count; i++) {
        const float *row = logits + i * heads->total;
        const uint8_t *mask = rollout_mask(&log->seen, samples[i]);
        const int32_t *action = log->seen.actions + samples[i] * heads->count;
        report->loss +=
            rl_cross_entropy(heads, row, mask, action, log->weights[samples[i]] / weights,
                             l->d_out + i * heads->total);
        rl_best(heads, row, mask, best);
        report->agreement += is_same(best, action, heads->count);
    }
    if (!isfinite(report->loss))
        return error_set(err, ERROR_INVALID, "the loss of the policy is %g: try a smaller rate",
                         report->loss);
    rl_net_backward(l->net, &l->work, l->d_out, l->gradient);
    return learner_step(l, c->rate, c->max_gradient, err);
}

static int learn_all(struct learner *l, const struct rl_log *log, const struct rl_clone_config *c,
                     struct rl_clone_report *report, struct error *err)
{
    size_t steps = log_steps(log);
    struct random random = random_stream(c->seed, 0);
    cleanup_free uint32_t *order = xcalloc(steps * log->seen.rows, sizeof(*order));
    size_t samples = rollout_list(&log->seen, steps, order);
    if (samples == 0)
        return error_set(err, ERROR_INVALID, "the log holds no decision to learn from");
    for (size_t epoch = 0; epoch < c->epochs; epoch++) {
        *report = (struct rl_clone_report){0};
        shuffle(order, samples, &random);
        for (size_t at = 0; at < samples; at += c->minibatch) {
            size_t left = samples - at, count = left < c->minibatch ? left : c->minibatch;
            if (learn(l, log, order + at, count, c, report, err) < 0)
                return -1;
        }
        report->loss /= (double)samples;
        report->agreement /= (double)samples;
    }
    return 0;
}

int rl_clone(struct rl_net *actor, const struct rl_log *log, const struct rl_clone_config *config,
             struct rl_clone_report *report, struct error *err)
{
    struct learner l;
    if (check(actor, log, config, err) < 0)
        return -1;
    size_t most = log_steps(log) * log->seen.rows;
    learner_init(&l, "policy", actor, config->minibatch < most ? config->minibatch : most);
    learner_keep(&l);
    int result = learn_all(&l, log, config, report, err);
    if (result < 0)
        learner_take_back(&l);
    learner_clear(&l);
    return result;
}
