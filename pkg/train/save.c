/* What was learned, kept in a file. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

static void describe(const struct train *t, struct rl_interface *out)
{
    const struct sim_shape *s = sim_shape(t->sim);
    for (size_t i = 0; i < s->observation_size; i++)
        rl_names_add(&out->features, s->observation_fields[i].name);
    for (size_t i = 0; i < s->global_size; i++)
        rl_names_add(&out->globals, s->global_fields[i].name);
    for (size_t d = 0; d < s->action_size; d++)
        rl_interface_add_head(out, s->dimensions[d].name, s->dimensions[d].option_count);
}

/* Nothing for the only learner, else the number of its function. */
static const char *name_learner(const struct train *t, size_t i, char text[32])
{
    text[0] = '\0';
    if (!t->config.algorithm->shared)
        snprintf(text, 32, "%zu", i + 1);
    return text;
}

int train_save(const struct train *t, const char *path, struct error *err)
{
    struct rl_checkpoint c = {.algorithm = xstrdup(t->config.algorithm->name),
                              .steps = t->steps,
                              .episodes = t->episodes};
    char text[32];
    describe(t, &c.interface);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)t->config.seed);
    rl_checkpoint_set(&c, "seed", text);
    rl_checkpoint_set(&c, "formulation", t->formulation);
    for (size_t i = 0; i < t->learner_count; i++)
        t->kind->save(t->learners[i], name_learner(t, i, text), &c);
    int result = rl_checkpoint_write(&c, path, err);
    rl_checkpoint_clear(&c);
    return result;
}

/* That what is there means the same to us. */
static int check(const struct train *t, const struct rl_checkpoint *c, struct error *err)
{
    struct rl_interface mine = {0};
    if (strcmp(c->algorithm, t->config.algorithm->name) != 0)
        return error_set(err, ERROR_INVALID, "it was learned by %s, not %s", c->algorithm,
                         t->config.algorithm->name);
    describe(t, &mine);
    int result = rl_interface_check(&c->interface, &mine, err);
    rl_interface_clear(&mine);
    return result;
}

static int take(struct train *t, const struct rl_checkpoint *c, struct error *err)
{
    char text[32];
    int result = check(t, c, err);
    for (size_t i = 0; i < t->learner_count && result == 0; i++)
        result = t->kind->load(t->learners[i], name_learner(t, i, text), c, err);
    if (result < 0)
        return -1;
    t->steps = c->steps;
    t->episodes = c->episodes;
    sim_reset(t->sim, t->config.seed + random_stream(t->config.seed, c->episodes).s[0]);
    return 0;
}

int train_load(struct train *t, const char *path, struct error *err)
{
    struct rl_checkpoint c = {0};
    if (rl_checkpoint_read(&c, path, err) < 0)
        return -1;
    int result = take(t, &c, err);
    rl_checkpoint_clear(&c);
    return result < 0 ? error_prefix(err, "%s", path) : 0;
}

/* --- functions join and leave ---------------------------------------------------------------- */
static int adopt_one(struct train *t, size_t i, const struct train *from, size_t k,
                     struct error *err)
{
    struct rl_checkpoint c = {.algorithm = xstrdup(from->config.algorithm->name)};
    describe(from, &c.interface);
    int result = check(t, &c, err);
    if (result == 0) {
        from->kind->save(from->learners[k], "", &c);
        c.updates = 0; /* the rates begin anew */
        result = t->kind->load(t->learners[i], "", &c, err);
    }
    rl_checkpoint_clear(&c);
    return result;
}

int train_adopt(struct train *t, const struct train *from, size_t first, struct error *err)
{
    if (from->config.algorithm->shared)
        first = 0;
    for (size_t i = 0; i < t->learner_count && first + i < from->learner_count; i++)
        if (adopt_one(t, i, from, first + i, err) < 0)
            return -1;
    return 0;
}
