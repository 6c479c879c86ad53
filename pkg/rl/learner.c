#include "learner.h"

#include <string.h>

void learner_init(struct learner *l, const char *name, struct rl_net *net, size_t rows)
{
    size_t n = net->param_count;
    *l = (struct learner){.name = name, .net = net};
    rl_adam_init(&l->adam, n);
    l->gradient = xcalloc(n, sizeof(float));
    l->in = xcalloc(rows * net->shape.inputs, sizeof(float));
    l->d_out = xcalloc(rows * net->shape.outputs, sizeof(float));
    l->kept.params = xcalloc(n, sizeof(float));
    l->kept.mean = xcalloc(n, sizeof(float));
    l->kept.square = xcalloc(n, sizeof(float));
}

void learner_clear(struct learner *l)
{
    rl_adam_clear(&l->adam);
    rl_work_clear(&l->work);
    free(l->gradient);
    free(l->in);
    free(l->d_out);
    free(l->kept.params);
    free(l->kept.mean);
    free(l->kept.square);
}

int learner_step(struct learner *l, double rate, double max_gradient, struct error *err)
{
    double norm = rl_clip_gradient(l->gradient, l->net->param_count, max_gradient);
    if (!isfinite(norm))
        return error_set(err, ERROR_INVALID, "the gradient of the %s is %g: try a smaller rate",
                         l->name, norm);
    rl_adam_step(&l->adam, l->net->params, l->gradient, rate);
    return 0;
}

void learner_keep(struct learner *l)
{
    size_t size = l->net->param_count * sizeof(float);
    memcpy(l->kept.params, l->net->params, size);
    memcpy(l->kept.mean, l->adam.mean, size);
    memcpy(l->kept.square, l->adam.square, size);
    l->kept.steps = l->adam.steps;
}

void learner_take_back(struct learner *l)
{
    size_t size = l->net->param_count * sizeof(float);
    memcpy(l->net->params, l->kept.params, size);
    memcpy(l->adam.mean, l->kept.mean, size);
    memcpy(l->adam.square, l->kept.square, size);
    l->adam.steps = l->kept.steps;
}

void learner_load(struct learner *l, const struct rl_net *net, const struct rl_adam *adam)
{
    size_t size = l->net->param_count * sizeof(float);
    memcpy(l->net->params, net->params, size);
    if (adam->count == 0)
        return;
    memcpy(l->adam.mean, adam->mean, size);
    memcpy(l->adam.square, adam->square, size);
    l->adam.steps = adam->steps;
}

void learner_gather(struct learner *l, const float *from, const uint32_t *rows, size_t count)
{
    size_t width = l->net->shape.inputs;
    for (size_t i = 0; i < count; i++)
        memcpy(l->in + i * width, from + rows[i] * width, width * sizeof(*from));
}

void shuffle(uint32_t *order, size_t count, struct random *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t k = random_below(random, i);
        uint32_t swap = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swap;
    }
}

/* --- what every PPO does --------------------------------------------------------------------- */
int ppo_make_net(struct rl_net *net, const struct rl_ppo_config *config, size_t inputs,
                 size_t outputs, float gain, struct random *random, struct error *err)
{
    struct rl_shape shape = {.inputs = inputs,
                             .outputs = outputs,
                             .hidden_count = config->hidden_count,
                             .activation = config->activation};
    memcpy(shape.hidden, config->hidden, sizeof(shape.hidden));
    if (rl_net_make(net, &shape, err) < 0)
        return -1;
    rl_net_randomise(net, gain, random);
    return 0;
}

double ppo_rate_share(const struct rl_ppo_config *config, size_t updates, size_t planned)
{
    double passed = planned > 1 ? fmin((double)updates / (double)(planned - 1), 1) : 0;
    return 1 + (config->rate_end - 1) * passed;
}

void ppo_add_loss(struct rl_ppo_report *report, const struct rl_policy_loss *loss)
{
    report->policy_loss += loss->loss;
    report->entropy += loss->entropy;
    report->kl += loss->kl;
    report->clipped += loss->clipped;
}

int ppo_step(const struct rl_ppo_config *config, double rate_share, struct learner *actor,
             struct learner *critic, const struct rl_ppo_report *report, struct error *err)
{
    double wrong = isfinite(report->value_loss) ? report->policy_loss : report->value_loss;
    if (!isfinite(wrong))
        return error_set(err, ERROR_INVALID,
                         "the loss of the %s is %g: try smaller rates or smaller rewards",
                         isfinite(report->value_loss) ? "policy" : "critic", wrong);
    if (learner_step(actor, config->actor_rate * rate_share, config->max_gradient, err) < 0)
        return -1;
    return learner_step(critic, config->critic_rate * rate_share, config->max_gradient, err);
}

void ppo_take_means(struct rl_ppo_report *report)
{
    double n = report->samples ? (double)report->samples : 1;
    report->policy_loss /= n;
    report->value_loss /= n;
    report->entropy /= n;
    report->kl /= n;
    report->clipped /= n;
}
