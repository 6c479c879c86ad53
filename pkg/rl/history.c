/* What a row has seen of late, as an embedding; and worlds whose rows are told of it. */
#include "embedding.h"

#include <string.h>

/* --- histories ------------------------------------------------------------------------------- */
struct rl_history {
    const struct rl_embed *embed;
    float *codes; /* (window, size): a ring */
    float *step;
    size_t count; /* steps so far */
};

struct rl_history *rl_history_new(const struct rl_embed *embed)
{
    struct rl_history *h = xcalloc(1, sizeof(*h));
    h->embed = embed;
    h->codes = xcalloc(embed->config.window * embed->config.size, sizeof(*h->codes));
    h->step = xcalloc(step_size(embed), sizeof(*h->step));
    return h;
}

void rl_history_free(struct rl_history *h)
{
    if (h == NULL)
        return;
    free(h->codes);
    free(h->step);
    free(h);
}

void rl_history_add(struct rl_history *h, const struct rl_step *step)
{
    size_t at = h->count++ % h->embed->config.window;
    embed_put_step(h->embed, step, h->step);
    rl_net_row(&h->embed->encoder, h->step, h->codes + at * h->embed->config.size);
}

void rl_history_forget(struct rl_history *h)
{
    h->count = 0;
}

void embed_pool(const float *codes, size_t count, size_t size, float *out)
{
    for (size_t k = 0; k < size; k++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += codes[i * size + k];
        out[k] = count > 0 ? (float)tanh(sum / (double)count) : 0;
    }
}

void rl_history_read(const struct rl_history *h, float *out)
{
    size_t window = h->embed->config.window;
    embed_pool(h->codes, h->count < window ? h->count : window, h->embed->config.size, out);
}

/* --- worlds ---------------------------------------------------------------------------------- */
struct rl_embedded {
    const struct rl_world *inner;
    struct rl_world world;
    struct rl_history **histories; /* (rows) */
    float *observations;           /* (rows, observation_size + size) */
    float *before;                 /* (rows, observation_size) */
    uint8_t *acted;                /* (rows) */
};

static void look(struct rl_embedded *e)
{
    size_t own = e->inner->observation_size, wide = e->world.observation_size;
    for (size_t row = 0; row < e->inner->rows; row++) {
        float *to = e->observations + row * wide;
        memcpy(to, e->inner->observations + row * own, own * sizeof(*to));
        rl_history_read(e->histories[row], to + own);
    }
}

static void remember(struct rl_embedded *e, size_t row)
{
    const struct rl_world *w = e->inner;
    size_t own = w->observation_size;
    bool present = w->present == NULL || w->present[row];
    if (!e->acted[row] || !present)
        return;
    rl_history_add(e->histories[row], &(struct rl_step){.before = e->before + row * own,
                                                        .after = w->observations + row * own,
                                                        .action = w->actions + row * w->heads.count,
                                                        .reward = w->rewards[row]});
}

static void step(void *self)
{
    struct rl_embedded *e = self;
    const struct rl_world *w = e->inner;
    memcpy(e->before, w->observations, w->rows * w->observation_size * sizeof(*e->before));
    for (size_t row = 0; row < w->rows; row++)
        e->acted[row] =
            (w->present == NULL || w->present[row]) && !w->terminated[row] && !w->truncated[row];
    w->step(w->self);
    for (size_t row = 0; row < w->rows; row++)
        remember(e, row);
    look(e);
}

static void reset(void *self, uint64_t seed)
{
    struct rl_embedded *e = self;
    e->inner->reset(e->inner->self, seed);
    for (size_t row = 0; row < e->inner->rows; row++)
        rl_history_forget(e->histories[row]);
    look(e);
}

struct rl_embedded *rl_embedded_new(const struct rl_embed *embed, const struct rl_world *inner)
{
    struct rl_embedded *e = xcalloc(1, sizeof(*e));
    e->inner = inner;
    e->world = *inner;
    e->world.observation_size = inner->observation_size + embed->config.size;
    e->histories = xcalloc(inner->rows, sizeof(struct rl_history *));
    for (size_t row = 0; row < inner->rows; row++)
        e->histories[row] = rl_history_new(embed);
    e->observations = xcalloc(inner->rows * e->world.observation_size, sizeof(float));
    e->before = xcalloc(inner->rows * inner->observation_size, sizeof(float));
    e->acted = xcalloc(inner->rows, 1);
    e->world.observations = e->observations;
    e->world.reset = reset;
    e->world.step = step;
    e->world.self = e;
    look(e);
    return e;
}

void rl_embedded_free(struct rl_embedded *e)
{
    if (e == NULL)
        return;
    for (size_t row = 0; row < e->inner->rows; row++)
        rl_history_free(e->histories[row]);
    free(e->histories);
    free(e->observations);
    free(e->before);
    free(e->acted);
    free(e);
}

const struct rl_world *rl_embedded_world(const struct rl_embedded *e)
{
    return &e->world;
}

void rl_embedded_forget(struct rl_embedded *e, size_t row)
{
    rl_history_forget(e->histories[row]);
    look(e);
}
