/* A policy for one function: the general one, with other likings. */
#include "bootstrap/internal.h"

#include <string.h>

#define LIKING 8.0f  /* nats: enough for an option to be chosen nearly always */
#define WORTH  0.002 /* of the reward: what earns less more is chance */

struct tuner {
    const struct bootstrap_tuning *tuning;
    struct bootstrap_world_config world;
    struct bootstrap_subject subject;
    struct rl_checkpoint best;
    double reward;
    size_t done, all; /* tries, for the progress */
};

static float *biases(const struct rl_checkpoint *c)
{
    struct rl_net *net = (struct rl_net *)&rl_checkpoint_net(c, "actor")->net;
    return net->params + net->layers[net->layer_count - 1].biases;
}

/* --- trying ---------------------------------------------------------------------------------- */
static int try(struct tuner *t, const struct rl_checkpoint *c, size_t episodes, uint64_t seed,
               struct bootstrap_judgement *out, struct error *err)
{
    struct bootstrap_judgement kinds[BOOTSTRAP_KINDS];
    struct recommend_policy *policy = recommend_policy_new(c, err);
    if (!policy)
        return -1;
    t->world.policy = policy;
    int result = bootstrap_judge(&t->world, episodes, seed, kinds, err);
    recommend_policy_release(policy);
    *out = kinds[0];
    const struct bootstrap_tuning *asked = t->tuning;
    double share = (double)++t->done / (double)t->all;
    if (result == 0 && asked->on_progress && !asked->on_progress(asked->arg, share))
        return error_set(err, ERROR_CANCELLED, "it was to end");
    return result;
}

/* Keeps what is better. */
static int try_liking(struct tuner *t, size_t option, struct error *err)
{
    struct bootstrap_judgement found;
    float *bias = biases(&t->best) + option, was = *bias;
    *bias = was + LIKING;
    if (try(t, &t->best, t->tuning->episodes, t->tuning->seed, &found, err) < 0)
        return -1;
    if (found.reward > t->reward + WORTH * fabs(t->reward))
        t->reward = found.reward;
    else
        *bias = was;
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------- */
static int search(struct tuner *t, struct error *err)
{
    const struct bootstrap_tuning *asked = t->tuning;
    struct rl_heads heads;
    struct bootstrap_judgement first;
    recommend_policy_heads_init(&heads);
    t->all = 5 + heads.total;
    if (try(t, &t->best, asked->episodes, asked->seed, &first, err) < 0)
        return -1;
    t->reward = first.reward;
    for (size_t i = 0; i < heads.total; i++)
        if (try_liking(t, i, err) < 0)
            return -1;
    return 0;
}

static bool is_better(const struct bootstrap_judgement *a, const struct bootstrap_judgement *b,
                      double by)
{
    return a->reward > b->reward + by * fabs(b->reward);
}

static int judge_both(struct tuner *t, size_t episodes, uint64_t seed,
                      struct bootstrap_judgement *before, struct bootstrap_judgement *after,
                      struct error *err)
{
    const struct bootstrap_tuning *asked = t->tuning;
    if (try(t, asked->rival ? asked->rival : asked->from, episodes, seed, before, err) < 0)
        return -1;
    return try(t, &t->best, episodes, seed, after, err);
}

/* The last hours are played twice: only chance inside them differs. */
static int compare(struct tuner *t, struct bootstrap_gain *gain, struct error *err)
{
    const struct bootstrap_tuning *asked = t->tuning;
    uint64_t others = asked->seed + 1000003;
    *gain = (struct bootstrap_gain){0};
    if (judge_both(t, asked->episodes / 2 + 1, others, &gain->before, &gain->after, err) < 0)
        return -1;
    t->subject.as_it_was = true;
    if (judge_both(t, 2, others, &gain->was, &gain->would_have, err) < 0)
        return -1;
    gain->better = is_better(&gain->after, &gain->before, WORTH) &&
                   is_better(&gain->would_have, &gain->was, -WORTH);
    return 0;
}

int bootstrap_tune(const struct bootstrap_tuning *tuning, struct rl_checkpoint *out,
                   struct bootstrap_gain *gain, struct error *err)
{
    struct tuner t = {
        .tuning = tuning,
        .subject = tuning->subject,
        .world = {.episode_steps = tuning->episode_steps,
                  .interval_s = tuning->interval_s,
                  .threads = tuning->threads,
                  .recommender = &recommend_ppo},
    };
    t.world.subject = &t.subject;
    if (rl_checkpoint_copy(tuning->from, &t.best, err) < 0)
        return -1;
    if (search(&t, err) < 0 || compare(&t, gain, err) < 0) {
        rl_checkpoint_clear(&t.best);
        return -1;
    }
    rl_checkpoint_set(&t.best, "tuned for", tuning->subject.workload->name);
    *out = t.best;
    return 0;
}
