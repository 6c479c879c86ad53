/* PPO whose policy is a score for each option of a decision. */
#include "learner.h"

#include <string.h>

const struct rl_ppo_config rl_score_default = {
    .hidden = {32, 16},
    .hidden_count = 2,
    .activation = RL_TANH,
    .actor_rate = 1e-3,
    .critic_rate = 1e-3,
    .rate_end = 0.1,
    .gamma = 0.95,
    .lambda = 0.9,
    .clip = 0.2,
    .entropy = 0.01,
    .critic_weight = 0.5,
    .max_gradient = 0.5,
    .stop_kl = 0.03,
    .horizon = 1,
    .epochs = 4,
    .minibatch = 256,
    .normalise = true,
};

struct decision {
    struct rl_heads heads;
    size_t row; /* the first of its options */
    int32_t action[RL_MAX_HEADS];
    double log_p, reward; /* NaN: not known yet */
    double value, advantage;
    bool ends; /* what follows belongs to another episode */
};

struct rl_score {
    struct rl_ppo_config config;
    struct rl_net actor_net, critic_net;
    struct learner actor, critic;
    struct decision *decisions;
    size_t count, capacity;
    float *states; /* (capacity, state_size) */
    float *rows;   /* of all decisions, one after the other */
    size_t row_count, row_capacity, batch_capacity;
    uint32_t *order; /* (capacity) */
    struct random random;
    size_t updates, planned;
};

/* --- beginning ------------------------------------------------------------------------------- */
static int make_net(struct rl_score *s, struct rl_net *net, size_t inputs, float gain,
                    struct error *err)
{
    return ppo_make_net(net, &s->config, inputs, 1, gain, &s->random, err);
}

struct rl_score *rl_score_new(const struct rl_ppo_config *config, size_t option_size,
                              size_t state_size, size_t updates, uint64_t seed, struct error *err)
{
    struct rl_score *s = xcalloc(1, sizeof(*s));
    s->config = *config;
    s->planned = updates;
    s->random = random_stream(seed, 0);
    if (ppo_check(config, err) < 0 || make_net(s, &s->actor_net, option_size, 0.01f, err) < 0 ||
        make_net(s, &s->critic_net, state_size, 1, err) < 0) {
        rl_score_free(s);
        return NULL;
    }
    learner_init(&s->actor, "policy", &s->actor_net, 1);
    learner_init(&s->critic, "critic", &s->critic_net, 1);
    return s;
}

void rl_score_free(struct rl_score *s)
{
    if (s == NULL)
        return;
    learner_clear(&s->actor);
    learner_clear(&s->critic);
    rl_net_clear(&s->actor_net);
    rl_net_clear(&s->critic_net);
    free(s->decisions);
    free(s->states);
    free(s->rows);
    free(s->order);
    free(s);
}

struct rl_net *rl_score_actor(struct rl_score *s)
{
    return &s->actor_net;
}

struct rl_net *rl_score_critic(struct rl_score *s)
{
    return &s->critic_net;
}

/* --- deciding -------------------------------------------------------------------------------- */
static void make_room(struct rl_score *s, size_t rows)
{
    size_t state_size = s->critic_net.shape.inputs, option_size = s->actor_net.shape.inputs;
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 1024;
        s->decisions = xrealloc(s->decisions, s->capacity, sizeof(*s->decisions));
        s->states = xrealloc(s->states, s->capacity * state_size, sizeof(*s->states));
        s->order = xrealloc(s->order, s->capacity, sizeof(*s->order));
    }
    while (s->row_count + rows > s->row_capacity) {
        s->row_capacity = s->row_capacity ? 2 * s->row_capacity : 4096;
        s->rows = xrealloc(s->rows, s->row_capacity * option_size, sizeof(*s->rows));
    }
}

size_t rl_score_act(struct rl_score *s, const struct rl_heads *heads, const float *rows,
                    const float *state, int32_t *action)
{
    size_t state_size = s->critic_net.shape.inputs, option_size = s->actor_net.shape.inputs;
    struct rl_odds odds;
    make_room(s, heads->total);
    struct decision *d = &s->decisions[s->count];
    *d = (struct decision){.heads = *heads, .row = s->row_count, .reward = NAN};
    memcpy(s->states + s->count * state_size, state, state_size * sizeof(*state));
    memcpy(s->rows + d->row * option_size, rows, heads->total * option_size * sizeof(*rows));
    const float *scores = rl_net_forward(&s->actor_net, rows, heads->total, &s->actor.work);
    rl_odds(heads, scores, NULL, &odds);
    rl_draw(heads, &odds, &s->random, d->action);
    d->log_p = rl_log_p(heads, &odds, d->action);
    memcpy(action, d->action, heads->count * sizeof(*action));
    s->row_count += heads->total;
    return s->count++;
}

void rl_score_reward(struct rl_score *s, size_t decision, double reward)
{
    s->decisions[decision].reward = reward;
}

void rl_score_end(struct rl_score *s)
{
    if (s->count > 0)
        s->decisions[s->count - 1].ends = true;
}

void rl_score_best(const struct rl_net *actor, const struct rl_heads *heads, const float *rows,
                   struct rl_work *work, int32_t *action)
{
    rl_best(heads, rl_net_forward(actor, rows, heads->total, work), NULL, action);
}

/* --- advantages ------------------------------------------------------------------------------ */
static int check(const struct rl_score *s, struct error *err)
{
    size_t state_size = s->critic_net.shape.inputs, option_size = s->actor_net.shape.inputs;
    for (size_t i = 0; i < s->count; i++)
        if (!isfinite(s->decisions[i].reward))
            return error_set(err, ERROR_INVALID, "the reward of decision %zu is %g", i,
                             s->decisions[i].reward);
    for (size_t i = 0; i < s->count * state_size; i++)
        if (!isfinite(s->states[i]))
            return error_set(err, ERROR_INVALID, "number %zu of the state of decision %zu is %g",
                             i % state_size, i / state_size, s->states[i]);
    for (size_t i = 0; i < s->row_count * option_size; i++)
        if (!isfinite(s->rows[i]))
            return error_set(err, ERROR_INVALID, "number %zu of an option is %g", i % option_size,
                             s->rows[i]);
    return 0;
}

/* Generalised advantage estimation, from the last decision to the first. */
static void estimate(struct rl_score *s)
{
    const struct rl_ppo_config *c = &s->config;
    const float *values = rl_net_forward(&s->critic_net, s->states, s->count, &s->critic.work);
    rl_score_end(s);
    for (size_t i = s->count; i-- > 0;) {
        struct decision *d = &s->decisions[i];
        double next = d->ends ? 0 : d[1].value, after = d->ends ? 0 : d[1].advantage;
        d->value = values[i];
        d->advantage = d->reward + c->gamma * next - d->value + c->gamma * c->lambda * after;
    }
}

/* --- learning -------------------------------------------------------------------------------- */
struct batch {
    const uint32_t *samples;
    size_t count;
    double mean, spread; /* of advantages */
};

static void measure(const struct rl_score *s, struct batch *b)
{
    double sum = 0, squares = 0;
    if (!s->config.normalise || b->count < 2)
        return;
    for (size_t i = 0; i < b->count; i++)
        sum += s->decisions[b->samples[i]].advantage;
    b->mean = sum / (double)b->count;
    for (size_t i = 0; i < b->count; i++) {
        double off = s->decisions[b->samples[i]].advantage - b->mean;
        squares += off * off;
    }
    b->spread = sqrt(squares / (double)(b->count - 1)) + 1e-8;
}

/* Puts the options of a batch side by side; gives back how many there are. */
static size_t gather_options(struct rl_score *s, const struct batch *b)
{
    struct learner *l = &s->actor;
    size_t width = s->actor_net.shape.inputs, count = 0;
    for (size_t i = 0; i < b->count; i++)
        count += s->decisions[b->samples[i]].heads.total;
    if (count > s->batch_capacity) {
        s->batch_capacity = count;
        l->in = xrealloc(l->in, count * width, sizeof(*l->in));
        l->d_out = xrealloc(l->d_out, count, sizeof(*l->d_out));
    }
    float *to = l->in;
    for (size_t i = 0; i < b->count; i++) {
        const struct decision *d = &s->decisions[b->samples[i]];
        memcpy(to, s->rows + d->row * width, d->heads.total * width * sizeof(*to));
        to += d->heads.total * width;
    }
    return count;
}

static void learn_policy(struct rl_score *s, const struct batch *b, struct rl_ppo_report *report)
{
    struct learner *l = &s->actor;
    size_t rows = gather_options(s, b), at = 0;
    const float *scores = rl_net_forward(l->net, l->in, rows, &l->work);
    for (size_t i = 0; i < b->count; i++) {
        const struct decision *d = &s->decisions[b->samples[i]];
        const struct rl_policy_sample sample = {
            .action = d->action,
            .old_log_p = d->log_p,
            .advantage = (d->advantage - b->mean) / b->spread,
        };
        struct rl_policy_loss loss =
            rl_policy_loss(&d->heads, scores + at, &sample, s->config.clip, s->config.entropy,
                           1 / (double)b->count, l->d_out + at);
        at += d->heads.total;
        ppo_add_loss(report, &loss);
    }
    rl_net_backward(l->net, &l->work, l->d_out, l->gradient);
}

static void learn_value(struct rl_score *s, const struct batch *b, struct rl_ppo_report *report)
{
    struct learner *l = &s->critic;
    learner_gather(l, s->states, b->samples, b->count);
    const float *values = rl_net_forward(l->net, l->in, b->count, &l->work);
    for (size_t i = 0; i < b->count; i++) {
        const struct decision *d = &s->decisions[b->samples[i]];
        report->value_loss +=
            rl_value_loss(values[i], d->value, d->value + d->advantage, s->config.value_clip,
                          s->config.critic_weight / (double)b->count, &l->d_out[i]);
    }
    rl_net_backward(l->net, &l->work, l->d_out, l->gradient);
}

static int learn(struct rl_score *s, struct batch *b, double share, struct rl_ppo_report *report,
                 struct error *err)
{
    measure(s, b);
    learn_policy(s, b, report);
    learn_value(s, b, report);
    report->samples += b->count;
    return ppo_step(&s->config, share, &s->actor, &s->critic, report, err);
}

static int learn_all(struct rl_score *s, size_t minibatch, struct rl_ppo_report *report,
                     struct error *err)
{
    const struct rl_ppo_config *c = &s->config;
    double share = ppo_rate_share(c, s->updates, s->planned);
    for (size_t epoch = 0; epoch < c->epochs; epoch++) {
        double before = report->kl;
        shuffle(s->order, s->count, &s->random);
        for (size_t at = 0; at < s->count; at += minibatch) {
            size_t left = s->count - at;
            struct batch b = {s->order + at, left < minibatch ? left : minibatch, 0, 1};
            if (learn(s, &b, share, report, err) < 0)
                return -1;
        }
        if (c->stop_kl > 0 && report->kl - before > c->stop_kl * (double)s->count)
            break;
    }
    return 0;
}

static int update(struct rl_score *s, struct rl_ppo_report *report, struct error *err)
{
    struct learner *critic = &s->critic;
    size_t minibatch = s->config.minibatch;
    if (minibatch == 0 || minibatch > s->count)
        minibatch = s->count;
    if (check(s, err) < 0)
        return -1;
    estimate(s);
    for (size_t i = 0; i < s->count; i++)
        s->order[i] = (uint32_t)i;
    critic->in = xrealloc(critic->in, minibatch * critic->net->shape.inputs, sizeof(float));
    critic->d_out = xrealloc(critic->d_out, minibatch, sizeof(float));
    learner_keep(&s->actor);
    learner_keep(critic);
    if (learn_all(s, minibatch, report, err) == 0)
        return 0;
    learner_take_back(&s->actor);
    learner_take_back(critic);
    return -1;
}

int rl_score_update(struct rl_score *s, struct rl_ppo_report *report, struct error *err)
{
    *report = (struct rl_ppo_report){0};
    int result = s->count > 0 ? update(s, report, err) : 0;
    s->count = s->row_count = 0;
    if (result < 0)
        return -1;
    s->updates++;
    ppo_take_means(report);
    return 0;
}
