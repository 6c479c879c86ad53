/* An embedder: its two networks, what goes into them, and how they are kept. */
#include "embedding.h"

#include <string.h>

#define ENCODER   "embed/encoder"
#define PREDICTOR "embed/predictor"

const struct rl_embed_config rl_embed_default = {
    .size = 8,
    .hidden = 32,
    .window = 200,
    .context = 32,
    .updates = 2000,
    .batch = 64,
    .rate = 3e-3,
    .max_gradient = 1,
    .seed = 1,
};

/* --- beginning ------------------------------------------------------------------------------- */
static int check(const struct rl_embed_config *c, struct error *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } fields[] = {
        {"size", (double)c->size, 1, 64},
        {"hidden", (double)c->hidden, 1, RL_MAX_WIDTH},
        {"window", (double)c->window, 1, 1e5},
        {"context", (double)c->context, 1, 1e4},
        {"updates", (double)c->updates, 10, 1e7},
        {"batch", (double)c->batch, 2, 1e4},
        {"rate", c->rate, 1e-9, 1},
        {"max_gradient", c->max_gradient, 0, 1e9},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!(fields[i].value >= fields[i].low && fields[i].value <= fields[i].high))
            return error_set(err, ERROR_INVALID, "%s is %g: must be %g to %g", fields[i].name,
                             fields[i].value, fields[i].low, fields[i].high);
    return 0;
}

static int make_net(struct rl_net *net, const struct rl_embed_config *c, size_t in, size_t out,
                    struct random *random, struct error *err)
{
    struct rl_shape shape = {.inputs = in,
                             .outputs = out,
                             .hidden = {c->hidden},
                             .hidden_count = 1,
                             .activation = RL_TANH};
    if (rl_net_make(net, &shape, err) < 0)
        return -1;
    rl_net_randomise(net, 1, random);
    return 0;
}

struct rl_embed *rl_embed_new(const struct rl_embed_config *config, const struct rl_world *world,
                              struct error *err)
{
    if (check(config, err) < 0)
        return NULL;
    struct rl_embed *e = xcalloc(1, sizeof(*e));
    struct random random = random_stream(config->seed, 0);
    e->config = *config;
    e->observation_size = world->observation_size;
    e->heads = world->heads;
    if (make_net(&e->encoder, config, step_size(e), config->size, &random, err) == 0 &&
        make_net(&e->predictor, config, asked_size(e), e->observation_size + 1, &random, err) == 0)
        return e;
    rl_embed_free(e);
    return NULL;
}

void rl_embed_free(struct rl_embed *e)
{
    if (e == NULL)
        return;
    rl_net_clear(&e->encoder);
    rl_net_clear(&e->predictor);
    free(e);
}

size_t rl_embed_size(const struct rl_embed *e)
{
    return e->config.size;
}

/* --- steps as numbers ------------------------------------------------------------------------ */
static float *put_action(const struct rl_embed *e, const int32_t *action, float *to)
{
    memset(to, 0, e->heads.total * sizeof(*to));
    for (size_t h = 0, at = 0; h < e->heads.count; at += e->heads.options[h++])
        if (action[h] >= 0 && (size_t)action[h] < e->heads.options[h])
            to[at + (size_t)action[h]] = 1;
    return to + e->heads.total;
}

static float *put_seen(const struct rl_embed *e, const float *seen, float *to)
{
    memcpy(to, seen, e->observation_size * sizeof(*to));
    return to + e->observation_size;
}

void embed_put_step(const struct rl_embed *e, const struct rl_step *step, float *to)
{
    to = put_seen(e, step->before, to);
    to = put_action(e, step->action, to);
    to = put_seen(e, step->after, to);
    *to = step->reward;
}

void embed_put_asked(const struct rl_embed *e, const struct rl_step *step, float *to)
{
    put_action(e, step->action, put_seen(e, step->before, to));
}

/* --- checkpoints ----------------------------------------------------------------------------- */
void rl_embed_save(const struct rl_embed *e, struct rl_checkpoint *to)
{
    rl_checkpoint_add_net(to, ENCODER, &e->encoder, NULL);
    rl_checkpoint_add_net(to, PREDICTOR, &e->predictor, NULL);
}

static const struct rl_net *find_net(const struct rl_checkpoint *from, const char *name,
                                     const struct rl_net *wanted, struct error *err)
{
    const struct rl_saved_net *saved = rl_checkpoint_net(from, name);
    if (saved == NULL)
        error_set(err, ERROR_NOT_FOUND, "there is no network %s in the checkpoint", name);
    else if (rl_shape_check(&saved->net.shape, &wanted->shape, err) < 0)
        error_prefix(err, "network %s", name);
    else
        return &saved->net;
    return NULL;
}

int rl_embed_load(struct rl_embed *e, const struct rl_checkpoint *from, struct error *err)
{
    const struct rl_net *encoder = find_net(from, ENCODER, &e->encoder, err);
    const struct rl_net *predictor = encoder ? find_net(from, PREDICTOR, &e->predictor, err) : NULL;
    if (predictor == NULL)
        return -1;
    memcpy(e->encoder.params, encoder->params, encoder->param_count * sizeof(float));
    memcpy(e->predictor.params, predictor->params, predictor->param_count * sizeof(float));
    return 0;
}
