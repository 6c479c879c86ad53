/* The loop: functions act, a step passes, learners see what came of it and learn. */
#include "internal.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"

/* --- beginning ------------------------------------------------------------------------------- */
static int check_state(const struct train_config *config, struct error *err)
{
    const struct algorithm *algorithm = algorithm_of(config);
    if (algorithm->states[0] == NULL)
        return 0;
    for (size_t i = 0; algorithm->states[i]; i++)
        if (strcmp(config->world.state, algorithm->states[i]) == 0)
            return 0;
    return error_set(err, ERROR_INVALID,
                     "%s cannot learn from state %s, which does not tell it of other functions: "
                     "use the formulation %s",
                     config->algorithm->name, config->world.state, config->algorithm->formulation);
}

static size_t steps_of_round(const struct train *t) /* the last one begins the next episode */
{
    return (size_t)t->config.world.episode_steps + 1;
}

static size_t clusters(const struct train *t)
{
    return sim_shape(t->sim)->clusters;
}

static int make_learners(struct train *t, struct error *err)
{
    size_t functions = sim_shape(t->sim)->functions;
    size_t count = t->config.algorithm->shared ? 1 : functions;
    size_t rounds = (t->config.episodes + clusters(t) - 1) / clusters(t);
    size_t steps = rounds * steps_of_round(t);
    t->learners = xcalloc(count, sizeof(*t->learners));
    for (; t->learner_count < count; t->learner_count++) {
        struct rl_rows rows = {t->learner_count, count};
        void *learner = t->kind->make(&t->config, &t->world, rows, steps, t->config.seed, err);
        if (learner == NULL)
            return -1;
        t->learners[t->learner_count] = learner;
    }
    return 0;
}

static int begin(struct train *t, struct error *err)
{
    if (check_state(&t->config, err) < 0)
        return -1;
    t->sim = sim_new(&t->config.world, err);
    if (t->sim == NULL)
        return -1;
    train_world(t->sim, t->config.mask, &t->world);
    tally_init(&t->tally, t->sim);
    t->rewards = xcalloc(sim_shape(t->sim)->functions, sizeof(*t->rewards));
    if (t->config.ppo.horizon == 0)
        t->config.ppo.horizon = steps_of_round(t);
    return make_learners(t, err);
}

struct train *train_new(const struct train_config *config, struct error *err)
{
    struct train *t = xcalloc(1, sizeof(*t));
    t->config = *config;
    t->kind = algorithm_of(config)->kind;
    t->formulation = xstrdup(config->world.formulation);
    if (begin(t, err) < 0) {
        train_free(t);
        return NULL;
    }
    sim_reset(t->sim, config->seed);
    t->begun_ms = clock_mono_ms();
    return t;
}

void train_free(struct train *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->learner_count; i++)
        t->kind->free(t->learners[i]);
    free(t->learners);
    free(t->formulation);
    free(t->rewards);
    tally_clear(&t->tally);
    sim_free(t->sim);
    free(t);
}

/* --- learning -------------------------------------------------------------------------------- */
struct update { /* of all learners, side by side */
    struct train *train;
    struct error *errors;
    int *results;
};

static void update_one(void *arg, size_t i)
{
    struct update *u = arg;
    u->results[i] = u->train->kind->update(u->train->learners[i], &u->errors[i]);
}

static int update_all(struct train *t, struct error *err)
{
    cleanup_free struct error *errors = xcalloc(t->learner_count, sizeof(*errors));
    cleanup_free int *results = xcalloc(t->learner_count, sizeof(*results));
    struct update u = {t, errors, results};
    parallel_for(t->config.threads, t->learner_count, update_one, &u);
    for (size_t i = 0; i < t->learner_count; i++) {
        if (results[i] == 0)
            continue;
        *err = errors[i];
        return t->learner_count > 1 ? error_prefix(err, "function %zu", i + 1) : -1;
    }
    return 0;
}

/* Learners have the same horizon, so that all are full at once. */
static int step(struct train *t, struct error *err)
{
    tally_before(&t->tally);
    for (size_t i = 0; i < t->learner_count; i++)
        t->kind->act(t->learners[i]);
    t->world.step(t->world.self);
    for (size_t i = 0; i < t->learner_count; i++)
        if (t->kind->see(t->learners[i], err) < 0)
            return -1;
    tally_after(&t->tally);
    return t->kind->is_full(t->learners[0]) ? update_all(t, err) : 0;
}

static void keep_rewards(struct train *t)
{
    const struct tally *y = &t->tally;
    for (size_t i = 0; i < sim_shape(t->sim)->functions; i++)
        t->rewards[i] = y->decisions[i] ? y->rewards[i] / (double)y->decisions[i] : NAN;
}

int train_round(struct train *t, struct train_report *report, struct error *err)
{
    tally_begin(&t->tally);
    for (size_t i = 0; i < steps_of_round(t); i++)
        if (step(t, err) < 0)
            return -1;
    t->episodes += clusters(t);
    t->steps += tally_decisions(&t->tally);
    keep_rewards(t);
    *report = (struct train_report){
        .episodes = t->episodes,
        .steps = t->steps,
        .seconds = (double)(clock_mono_ms() - t->begun_ms) / 1000,
    };
    tally_report(&t->tally, report);
    return 0;
}

bool train_is_done(const struct train *t)
{
    return t->episodes >= t->config.episodes;
}

const double *train_function_rewards(const struct train *t)
{
    return t->rewards;
}

/* --- what was learned ------------------------------------------------------------------------ */
void train_decide(const struct train *t, const struct rl_world *world)
{
    for (size_t row = 0; row < world->rows; row++)
        t->kind->decide(t->learners[row % t->learner_count], world, row);
}

void train_judge(struct sim *sim, bool mask, uint64_t seed,
                 void (*decide)(void *arg, const struct rl_world *world), void *arg,
                 struct train_report *report)
{
    struct rl_world world;
    struct tally tally;
    int64_t begun_ms = clock_mono_ms();
    train_world(sim, mask, &world);
    tally_init(&tally, sim);
    sim_reset(sim, seed);
    do {
        tally_before(&tally);
        decide(arg, &world);
        sim_step(sim);
        tally_after(&tally);
    } while (!world.truncated[0]); /* the first function stays to the end */
    *report = (struct train_report){
        .episodes = sim_shape(sim)->clusters,
        .steps = tally_decisions(&tally),
        .seconds = (double)(clock_mono_ms() - begun_ms) / 1000,
    };
    tally_report(&tally, report);
    tally_clear(&tally);
}

static void decide_as_learned(void *arg, const struct rl_world *world)
{
    train_decide(arg, world);
}

void train_evaluate(const struct train *t, struct sim *sim, uint64_t seed,
                    struct train_report *report)
{
    train_judge(sim, t->config.mask, seed, decide_as_learned, (void *)t, report);
}

size_t train_learner_count(const struct train *t)
{
    return t->learner_count;
}

struct rl_net *train_actor(const struct train *t, size_t i)
{
    return t->kind->actor(t->learners[i]);
}

struct rl_net *train_critic(const struct train *t, size_t i)
{
    return t->kind->critic(t->learners[i]);
}
