/* Proximal policy optimisation: a horizon of steps is gathered, then learned from in minibatches.
 */
#include "learner.h"
#include "rl/checkpoint.h"
#include "rollout.h"

#include <string.h>

const struct rl_ppo_config rl_ppo_paper = {
    .hidden = {64, 64},
    .hidden_count = 2,
    .activation = RL_TANH,
    .actor_rate = 3e-4,
    .critic_rate = 3e-4,
    .rate_end = 1,
    .gamma = 0.99,
    .lambda = 0.95,
    .clip = 0.2,
    .entropy = 0.01,
    .critic_weight = 0.05,
    .horizon = 200,
    .epochs = 5,
    .minibatch = 5,
};

const struct rl_ppo_config rl_ppo_default = {
    .hidden = {64, 64},
    .hidden_count = 2,
    .activation = RL_TANH,
    .actor_rate = 1e-3,
    .critic_rate = 1e-3,
    .rate_end = 0.1,
    .gamma = 0.99,
    .lambda = 0.95,
    .clip = 0.2,
    .entropy = 0.01,
    .critic_weight = 0.5,
    .max_gradient = 0.5,
    .stop_kl = 0.03,
    .horizon = 64,
    .epochs = 10,
    .minibatch = 64,
    .normalise = true,
};

const struct rl_ppo_config rl_reinforce_default = {
    .hidden = {64, 64},
    .hidden_count = 2,
    .activation = RL_TANH,
    .monte_carlo = true,
    .actor_rate = 3e-3,
    .critic_rate = 3e-3,
    .rate_end = 1,
    .gamma = 0.99,
    .lambda = 1,
    .clip = 0.2, /* never reached: the policy has not moved when it is looked at */
    .entropy = 0.01,
    .critic_weight = 0.5,
    .max_gradient = 0.5,
    .horizon = 200,
    .epochs = 1,
    .normalise = true,
};

struct rl_ppo {
    struct rl_ppo_config config;
    struct rl_net actor_net, critic_net;
    struct learner actor, critic;
    struct rollout seen;
    float *log_p, *advantages, *returns; /* (horizon, rows), as all that was seen */
    float *values;                       /* (horizon + 1, rows) */
    uint32_t *order;                     /* of samples */
    struct random random;
    size_t step, updates, planned;
};

/* --- beginning ------------------------------------------------------------------------------- */
int ppo_check(const struct rl_ppo_config *c, struct error *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } fields[] = {
        {"actor_rate", c->actor_rate, 0, 1},
        {"critic_rate", c->critic_rate, 0, 1},
        {"rate_end", c->rate_end, 0, 1},
        {"gamma", c->gamma, 0, 1},
        {"lambda", c->lambda, 0, 1},
        {"clip", c->clip, 1e-6, 10},
        {"value_clip", c->value_clip, 0, 1e9},
        {"entropy", c->entropy, 0, 100},
        {"critic_weight", c->critic_weight, 0, 100},
        {"max_gradient", c->max_gradient, 0, 1e9},
        {"stop_kl", c->stop_kl, 0, 1e9},
        {"horizon", (double)c->horizon, 1, 1e6},
        {"epochs", (double)c->epochs, 1, 1000},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!(fields[i].value >= fields[i].low && fields[i].value <= fields[i].high))
            return error_set(err, ERROR_INVALID, "%s is %g: must be %g to %g", fields[i].name,
                             fields[i].value, fields[i].low, fields[i].high);
    return 0;
}

static int make_net(struct rl_net *net, struct rl_ppo *p, size_t inputs, size_t outputs, float gain,
                    struct error *err)
{
    return ppo_make_net(net, &p->config, inputs, outputs, gain, &p->random, err);
}

static int begin(struct rl_ppo *p, const struct rl_world *world, struct rl_rows rows,
                 struct error *err)
{
    size_t own = world->observation_size;
    if (ppo_check(&p->config, err) < 0 ||
        rollout_init(&p->seen, world, rows, p->config.horizon, p->config.central_critic, err) < 0 ||
        make_net(&p->actor_net, p, own, world->heads.total, 0.01f, err) < 0 ||
        make_net(&p->critic_net, p, p->seen.input_size, 1, 1, err) < 0)
        return -1;
    size_t n = p->seen.steps * p->seen.rows;
    if (p->config.minibatch == 0 || p->config.minibatch > n)
        p->config.minibatch = n;
    learner_init(&p->actor, "policy", &p->actor_net, p->config.minibatch);
    learner_init(&p->critic, "critic", &p->critic_net, p->config.minibatch);
    p->log_p = xcalloc(n, sizeof(float));
    p->advantages = xcalloc(n, sizeof(float));
    p->returns = xcalloc(n, sizeof(float));
    p->values = xcalloc(n + p->seen.rows, sizeof(float));
    p->order = xcalloc(n, sizeof(*p->order));
    return 0;
}

struct rl_ppo *rl_ppo_new(const struct rl_ppo_config *config, const struct rl_world *world,
                          struct rl_rows rows, size_t updates, uint64_t seed, struct error *err)
{
    struct rl_ppo *p = xcalloc(1, sizeof(*p));
    p->config = *config;
    p->planned = updates;
    p->random = random_stream(seed, rows.first);
    if (begin(p, world, rows, err) == 0)
        return p;
    rl_ppo_free(p);
    return NULL;
}

void rl_ppo_free(struct rl_ppo *p)
{
    if (p == NULL)
        return;
    learner_clear(&p->actor);
    learner_clear(&p->critic);
    rl_net_clear(&p->actor_net);
    rl_net_clear(&p->critic_net);
    rollout_clear(&p->seen);
    free(p->log_p);
    free(p->advantages);
    free(p->returns);
    free(p->values);
    free(p->order);
    free(p);
}

/* --- gathering ------------------------------------------------------------------------------- */
/* What the rows see now, and what the critic says of it. */
static void look(struct rl_ppo *p)
{
    struct rollout *s = &p->seen;
    size_t at = p->step * s->rows;
    rollout_look(s, p->step);
    const float *values =
        rl_net_forward(&p->critic_net, s->inputs + at * s->input_size, s->rows, &p->critic.work);
    memcpy(p->values + at, values, s->rows * sizeof(float));
}

void rl_ppo_act(struct rl_ppo *p)
{
    struct rollout *s = &p->seen;
    const struct rl_world *w = s->world;
    size_t at = p->step * s->rows;
    struct rl_odds odds;
    look(p);
    const float *logits = rl_net_forward(&p->actor_net, s->observations + at * w->observation_size,
                                         s->rows, &p->actor.work);
    for (size_t i = 0; i < s->rows; i++) {
        size_t row = rollout_row(s, i);
        int32_t *action = w->actions + row * w->heads.count;
        const uint8_t *mask = w->masks ? w->masks + row * w->heads.total : NULL;
        rl_odds(&w->heads, logits + i * w->heads.total, mask, &odds);
        rl_draw(&w->heads, &odds, &p->random, action);
        p->log_p[at + i] = (float)rl_log_p(&w->heads, &odds, action);
    }
    rollout_act(s, p->step);
}

void rl_ppo_see(struct rl_ppo *p)
{
    rollout_see(&p->seen, p->step++);
}

bool rl_ppo_is_full(const struct rl_ppo *p)
{
    return p->step == p->config.horizon;
}

/* --- advantages ------------------------------------------------------------------------------ */
/* Generalised advantage estimation, from the last step to the first. The row of a truncated episode
 * still shows its last observation in the step after it, so that the critic's word on that is the
 * value that follows. */
static void estimate(struct rl_ppo *p)
{
    struct rollout *s = &p->seen;
    size_t rows = s->rows, n = s->steps * rows;
    double gamma = p->config.gamma, lambda = p->config.lambda;
    for (size_t i = n; i-- > 0;) {
        bool is_last = i + rows >= n;
        double after = is_last || s->ends[i] ? 0 : p->advantages[i + rows];
        bool nothing = p->config.monte_carlo ? s->ends[i] : s->terminal[i];
        double next = nothing ? 0 : p->values[i + rows];
        if (p->config.monte_carlo) /* whole: ends here, or goes on in what is whole */
            s->counts[i] = s->counts[i] && (s->ends[i] || (!is_last && s->counts[i + rows]));
        double delta = s->rewards[i] + gamma * next - p->values[i];
        p->advantages[i] = s->counts[i] ? (float)(delta + gamma * lambda * after) : 0;
        p->returns[i] = p->advantages[i] + p->values[i];
    }
}

/* --- learning -------------------------------------------------------------------------------- */
struct batch {
    const uint32_t *samples;
    size_t count;
    double mean, spread; /* of advantages */
};

static void measure(const struct rl_ppo *p, struct batch *b)
{
    double sum = 0, squares = 0;
    b->mean = 0;
    b->spread = 1;
    if (!p->config.normalise || b->count < 2)
        return;
    for (size_t i = 0; i < b->count; i++)
        sum += p->advantages[b->samples[i]];
    b->mean = sum / (double)b->count;
    for (size_t i = 0; i < b->count; i++) {
        double off = p->advantages[b->samples[i]] - b->mean;
        squares += off * off;
    }
    b->spread = sqrt(squares / (double)(b->count - 1)) + 1e-8;
}

static void learn_policy(struct rl_ppo *p, const struct batch *b, struct rl_ppo_report *report)
{
    const struct rl_heads *heads = &p->seen.world->heads;
    struct learner *l = &p->actor;
    learner_gather(l, p->seen.observations, b->samples, b->count);
    const float *logits = rl_net_forward(l->net, l->in, b->count, &l->work);
    for (size_t i = 0; i < b->count; i++) {
        size_t at = b->samples[i];
        const struct rl_policy_sample sample = {
            .mask = rollout_mask(&p->seen, at),
            .action = p->seen.actions + at * heads->count,
            .old_log_p = p->log_p[at],
            .advantage = (p->advantages[at] - b->mean) / b->spread,
        };
        struct rl_policy_loss loss =
            rl_policy_loss(heads, logits + i * heads->total, &sample, p->config.clip,
                           p->config.entropy, 1 / (double)b->count, l->d_out + i * heads->total);
        ppo_add_loss(report, &loss);
    }
    rl_net_backward(l->net, &l->work, l->d_out, l->gradient);
}

static void learn_value(struct rl_ppo *p, const struct batch *b, struct rl_ppo_report *report)
{
    struct learner *l = &p->critic;
    learner_gather(l, p->seen.inputs, b->samples, b->count);
    const float *values = rl_net_forward(l->net, l->in, b->count, &l->work);
    for (size_t i = 0; i < b->count; i++) {
        size_t at = b->samples[i];
        report->value_loss +=
            rl_value_loss(values[i], p->values[at], p->returns[at], p->config.value_clip,
                          p->config.critic_weight / (double)b->count, &l->d_out[i]);
    }
    rl_net_backward(l->net, &l->work, l->d_out, l->gradient);
}

static int learn(struct rl_ppo *p, struct batch *b, double share, struct rl_ppo_report *report,
                 struct error *err)
{
    measure(p, b);
    learn_policy(p, b, report);
    learn_value(p, b, report);
    report->samples += b->count;
    return ppo_step(&p->config, share, &p->actor, &p->critic, report, err);
}

static int learn_all(struct rl_ppo *p, size_t samples, struct rl_ppo_report *report,
                     struct error *err)
{
    const struct rl_ppo_config *c = &p->config;
    double share = ppo_rate_share(c, p->updates, p->planned);
    for (size_t epoch = 0; epoch < c->epochs; epoch++) {
        double before = report->kl;
        shuffle(p->order, samples, &p->random);
        for (size_t at = 0; at < samples; at += c->minibatch) {
            size_t left = samples - at;
            struct batch b = {p->order + at, left < c->minibatch ? left : c->minibatch, 0, 1};
            if (learn(p, &b, share, report, err) < 0)
                return -1;
        }
        if (c->stop_kl > 0 && report->kl - before > c->stop_kl * (double)samples)
            break;
    }
    return 0;
}

int rl_ppo_update(struct rl_ppo *p, struct rl_ppo_report *report, struct error *err)
{
    *report = (struct rl_ppo_report){0};
    look(p);
    p->step = 0;
    if (rollout_check(&p->seen, p->config.horizon, err) < 0)
        return -1;
    estimate(p);
    size_t samples = rollout_list(&p->seen, p->config.horizon, p->order);
    learner_keep(&p->actor);
    learner_keep(&p->critic);
    if (learn_all(p, samples, report, err) < 0) {
        learner_take_back(&p->actor);
        learner_take_back(&p->critic);
        return -1;
    }
    p->updates++;
    ppo_take_means(report);
    return 0;
}

struct rl_net *rl_ppo_actor(struct rl_ppo *p)
{
    return &p->actor_net;
}

struct rl_net *rl_ppo_critic(struct rl_ppo *p)
{
    return &p->critic_net;
}

/* --- checkpoints ----------------------------------------------------------------------------- */
static char *net_name(const char *kind, const char *name)
{
    return xasprintf(*name ? "%s/%s" : "%s%s", kind, name);
}

void rl_ppo_save(const struct rl_ppo *p, const char *name, struct rl_checkpoint *to)
{
    cleanup_free char *actor = net_name("actor", name), *critic = net_name("critic", name);
    rl_checkpoint_add_net(to, actor, &p->actor_net, &p->actor.adam);
    rl_checkpoint_add_net(to, critic, &p->critic_net, &p->critic.adam);
    to->updates = p->updates;
}

static const struct rl_saved_net *find_saved(const struct rl_checkpoint *from, const char *name,
                                             const struct rl_net *wanted, struct error *err)
{
    const struct rl_saved_net *saved = rl_checkpoint_net(from, name);
    if (saved == NULL)
        error_set(err, ERROR_NOT_FOUND, "there is no network %s in the checkpoint", name);
    else if (rl_shape_check(&saved->net.shape, &wanted->shape, err) < 0)
        error_prefix(err, "network %s", name);
    else
        return saved;
    return NULL;
}

int rl_ppo_load(struct rl_ppo *p, const char *name, const struct rl_checkpoint *from,
                struct error *err)
{
    cleanup_free char *actor_name = net_name("actor", name),
                      *critic_name = net_name("critic", name);
    const struct rl_saved_net *actor = find_saved(from, actor_name, &p->actor_net, err);
    const struct rl_saved_net *critic =
        actor ? find_saved(from, critic_name, &p->critic_net, err) : NULL;
    if (critic == NULL)
        return -1;
    learner_load(&p->actor, &actor->net, &actor->adam);
    learner_load(&p->critic, &critic->net, &critic->adam);
    p->updates = from->updates;
    return 0;
}
