/* Learning in the environment: that it learns, that chance is the seed's alone, and that functions
 * may stand in any order and number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "train/train.h"

#define CALM             "poisson:rate=2,span=3600,demand=20,p99=60"
#define IDLE             "poisson:rate=0.000001,span=3600,demand=10"
#define SET(config, ...) set(config, (const char *const[]){__VA_ARGS__, NULL})

static void set(struct train_config *config, const char *const *settings)
{
    struct error err;
    for (size_t i = 0; settings[i]; i += 2)
        if (sim_config_set(&config->world, settings[i], settings[i + 1], &err) < 0 &&
            train_config_set(config, settings[i], settings[i + 1], &err) < 0)
            fail_msg("%s", err.message);
}

/* Small enough for a test. */
static void configure(struct train_config *config, const char *algorithm, const char *formulation)
{
    struct error err;
    if (train_config_init(config, algorithm, formulation, &err) < 0)
        fail_msg("%s", err.message);
    SET(config, "trace", CALM, "episode_steps", "40", "hidden", "16x16", "epochs", "4", "nodes",
        "0");
    config->episodes = 8;
}

static struct train *begin(const struct train_config *config)
{
    struct error err;
    struct train *train = train_new(config, &err);
    if (train == NULL)
        fail_msg("%s", err.message);
    return train;
}

static struct train_report go_on(struct train *train)
{
    struct train_report report = {0};
    struct error err;
    while (!train_is_done(train))
        if (train_round(train, &report, &err) < 0)
            fail_msg("%s", err.message);
    return report;
}

/* --- it learns --- */
/* Ten replicas of a core each, for a load that a tenth of a core serves: what costs least is to
 * have fewer, whatever comes. Random actions walk about anywhere. */
static void test_ppo_is_better_than_chance(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    configure(&config, "ppo", NULL);
    SET(&config, "initial_replicas", "10", "clusters", "4", "horizon", "32", "actor_rate", "0.003",
        "critic_rate", "0.003");
    config.episodes = 4;
    struct train *train = begin(&config);
    struct train_report chance, learned, judged;
    assert_int_equal(train_round(train, &chance, &err), 0);
    train_free(train);
    config.episodes = 400;
    train = begin(&config);
    learned = go_on(train);
    assert_int_equal(learned.episodes, 400);
    assert_int_equal(learned.steps, 400 * 40);
    assert_true(learned.reward > chance.reward / 2);
    struct sim *unseen = sim_new(&config.world, &err);
    train_evaluate(train, unseen, 99, &judged);
    assert_int_equal(judged.steps, 4 * 40);
    assert_true(judged.reward > chance.reward / 2);
    sim_free(unseen);
    train_free(train);
    train_config_clear(&config);
}

static void assert_plausible(const struct train_report *r)
{
    assert_true(isfinite(r->reward) && r->reward_min <= r->reward && r->reward <= r->reward_max);
    assert_in_range((uintmax_t)(1000 * r->slo_preservation), 0, 1000);
    assert_in_range((uintmax_t)(1000 * r->cpu_utilization), 0, 1000);
    assert_in_range((uintmax_t)(1000 * r->violation_ratio), 0, 1000);
}

static void test_every_algorithm_learns_in_its_formulation(void **state)
{
    (void)state;
    for (size_t i = 0; train_algorithm(i); i++) {
        const struct train_algorithm *algorithm = train_algorithm(i);
        struct train_config config;
        configure(&config, algorithm->name, NULL);
        SET(&config, "functions", "3");
        config.episodes = 3;
        struct train *train = begin(&config);
        struct train_report report = go_on(train);
        assert_plausible(&report);
        assert_int_equal(train_learner_count(train), algorithm->shared ? 1 : 3);
        train_free(train);
        train_config_clear(&config);
    }
}

/* --- who sees what --- */
static void test_separate_learners_differ_and_critics_see_all(void **state)
{
    (void)state;
    struct train_config config;
    configure(&config, "mappo", NULL);
    SET(&config, "functions", "3");
    struct train *train = begin(&config);
    go_on(train);
    assert_int_equal(train_learner_count(train), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct rl_net *actor = train_actor(train, i),
                            *other = train_actor(train, (i + 1) % 3);
        assert_int_equal(actor->shape.inputs, 7);                      /* MA-PPO's state */
        assert_int_equal(train_critic(train, i)->shape.inputs, 7 + 6); /* and all others' */
        assert_memory_not_equal(actor->params, other->params, 16 * sizeof(float));
        assert_true(isfinite(train_function_rewards(train)[i]));
    }
    train_free(train);
    train_config_clear(&config);
}

static void assert_refused(const char *algorithm, const char *formulation, const char *says)
{
    struct train_config config;
    struct error err;
    configure(&config, algorithm, formulation);
    assert_null(train_new(&config, &err));
    if (strstr(err.message, says) == NULL)
        fail_msg("%s", err.message);
    train_config_clear(&config);
}

static void test_refuses_what_cannot_be(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    assert_refused("simppo", "aware", "formulation simppo");
    assert_refused("simppo", "mappo", "formulation simppo");
    assert_refused("mappo", "default", "formulation mappo");
    assert_int_equal(train_config_init(&config, "pqo", NULL, &err), -1);
    assert_non_null(strstr(err.message, "simppo"));
    train_config_clear(&config);
    assert_int_equal(train_config_init(&config, "ppo", "none", &err), -1);
    train_config_clear(&config);
    assert_int_equal(train_config_init(&config, "ppo", NULL, &err), 0);
    static const char *const wrong[][2] = {
        {"gamma", "1.5"}, {"gamma", "x"},     {"gamma", ""},      {"epochs", "2.5"}, {"hidden", ""},
        {"hidden", "0"},  {"hidden", "64x"},  {"hidden", "-4"},   {"hidden", "64y"}, {"mask", "2"},
        {"speed", "1"},   {"hidden", "9999"}, {"minibatch", "-1"}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(train_config_set(&config, wrong[i][0], wrong[i][1], &err), -1);
    assert_int_equal(train_config_set(&config, "hidden", "32x16x8", &err), 0);
    assert_int_equal(config.ppo.hidden_count, 3);
    assert_int_equal(config.ppo.hidden[1], 16);
    train_config_clear(&config);
}

/* --- chance is the seed's --- */
static void assert_same(const struct rl_net *a, const struct rl_net *b)
{
    assert_int_equal(a->param_count, b->param_count);
    assert_memory_equal(a->params, b->params, a->param_count * sizeof(float));
}

static void test_the_same_seed_learns_the_same(void **state)
{
    (void)state;
    struct train_config config;
    configure(&config, "ppo", NULL);
    SET(&config, "functions", "3", "clusters", "2");
    struct train *runs[3];
    struct train_report reports[3];
    for (size_t i = 0; i < 3; i++) {
        config.threads = i == 0 ? 1 : 3;
        config.world.threads = i == 0 ? 1 : 2;
        config.seed = i < 2 ? 7 : 8;
        runs[i] = begin(&config);
        reports[i] = go_on(runs[i]);
    }
    for (size_t k = 0; k < 3; k++) {
        assert_same(train_actor(runs[0], k), train_actor(runs[1], k));
        assert_same(train_critic(runs[0], k), train_critic(runs[1], k));
    }
    assert_true(reports[0].reward == reports[1].reward);
    assert_true(reports[0].reward != reports[2].reward);
    for (size_t i = 0; i < 3; i++)
        train_free(runs[i]);
    train_config_clear(&config);
}

/* --- SIMPPO: any order, any number --- */
#define MANY 6
static const size_t moved_to[MANY] = {3, 0, 5, 1, 4, 2}; /* where each function stands instead */

/* Without requests nothing in a cluster is left to chance, so that the same functions in another
 * order are the same but for where they stand. */
static void test_simppo_does_not_depend_on_the_order(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    configure(&config, "simppo", NULL);
    SET(&config, "functions", "6");
    struct train *train = begin(&config);
    go_on(train);
    free(config.world.traces[0]); /* the policy is learned; now nothing is to come */
    config.world.traces[0] = xstrdup(IDLE);
    struct sim *sims[2] = {sim_new(&config.world, &err), sim_new(&config.world, &err)};
    struct rl_world worlds[2];
    for (size_t w = 0; w < 2; w++)
        train_world(sims[w], true, &worlds[w]);
    size_t heads = worlds[0].heads.count, size = worlds[0].observation_size;
    struct random random = random_stream(5, 0);
    for (int step = 0; step < 12; step++) {
        for (size_t i = 0; i < MANY; i++)
            for (size_t d = 0; d < heads; d++)
                worlds[0].actions[i * heads + d] = worlds[1].actions[moved_to[i] * heads + d] =
                    (int32_t)random_below(&random, worlds[0].heads.options[d]);
        sim_step(sims[0]);
        sim_step(sims[1]);
        train_decide(train, &worlds[0]);
        train_decide(train, &worlds[1]);
        for (size_t i = 0; i < MANY; i++) {
            float values[2];
            rl_net_row(train_critic(train, 0), worlds[0].observations + i * size, &values[0]);
            rl_net_row(train_critic(train, 0), worlds[1].observations + moved_to[i] * size,
                       &values[1]);
            assert_float_equal(values[0], values[1], 1e-4);
            assert_memory_equal(worlds[0].actions + i * heads,
                                worlds[1].actions + moved_to[i] * heads, heads * sizeof(int32_t));
        }
    }
    assert_memory_not_equal(worlds[0].observations, worlds[0].observations + size,
                            size * sizeof(float)); /* they were not all alike */
    sim_free(sims[0]);
    sim_free(sims[1]);
    train_free(train);
    train_config_clear(&config);
}

static void test_simppo_takes_functions_that_join_and_leave(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    struct train_report report;
    configure(&config, "simppo", NULL);
    SET(&config, "functions", "4", "churn", "0.6");
    struct train *train = begin(&config);
    struct train_report learned = go_on(train);
    assert_plausible(&learned);
    assert_true(learned.steps < 8 * 4 * 40); /* some were not there */
    static const char *const numbers[] = {"1", "17"};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        SET(&config, "functions", numbers[i]);
        struct sim *sim = sim_new(&config.world, &err);
        train_evaluate(train, sim, 3, &report);
        assert_plausible(&report);
        assert_true(report.steps >= 40);
        sim_free(sim);
    }
    train_free(train);
    train_config_clear(&config);
}

/* --- several seeds --- */
static bool end_at_four(void *arg, size_t i, const struct train_report *report)
{
    (void)i;
    (void)arg;
    return report->episodes < 4;
}

static void test_seeds_are_independent_and_can_be_ended(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    struct train_history all[3], some[1];
    configure(&config, "ppo", NULL);
    config.seed = 5;
    struct train_seeds seeds = {&config, 3, 2, NULL, NULL, NULL};
    assert_int_equal(train_seeds(&seeds, all, &err), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all[i].seed, 5 + i);
        assert_int_equal(all[i].count, 8);
    }
    config.seed = 6;
    seeds = (struct train_seeds){&config, 1, 1, NULL, end_at_four, NULL};
    assert_int_equal(train_seeds(&seeds, some, &err), 0);
    assert_int_equal(some[0].count, 4);
    for (size_t k = 0; k < 4; k++)
        assert_true(some[0].rounds[k].reward == all[1].rounds[k].reward);
    for (size_t i = 0; i < 3; i++)
        train_history_clear(&all[i]);
    train_history_clear(&some[0]);
    train_config_clear(&config);
}

static int fail_the_first_one_late(void *arg, struct train *train, uint64_t seed, struct error *err)
{
    (void)arg;
    (void)train;
    if (seed == 1)
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    return error_set(err, ERROR_INVALID, "it is %llu", (unsigned long long)seed);
}

static void test_of_several_failures_the_first_seeds_is_told(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    struct train_history out[4];
    configure(&config, "ppo", NULL);
    struct train_seeds seeds = {&config, 4, 4, fail_the_first_one_late, NULL, NULL};
    assert_int_equal(train_seeds(&seeds, out, &err), -1);
    assert_string_equal(err.message, "seed 1: it is 1");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(out[i].count, 0);
        train_history_clear(&out[i]);
    }
    train_config_clear(&config);
}

static void test_a_seed_that_fails_says_so(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    struct train_history out[2];
    configure(&config, "simppo", "aware");
    struct train_seeds seeds = {&config, 2, 1, NULL, NULL, NULL};
    assert_int_equal(train_seeds(&seeds, out, &err), -1);
    assert_non_null(strstr(err.message, "seed 1: "));
    train_config_clear(&config);
}

/* --- checkpoints --- */
static void test_what_was_learned_is_kept(void **state)
{
    (void)state;
    char directory[] = "/tmp/train_test.XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/policy", directory);
    for (size_t i = 0; train_algorithm(i); i++) {
        struct train_config config;
        struct error err;
        struct train_report before, after, more;
        configure(&config, train_algorithm(i)->name, NULL);
        SET(&config, "functions", "2");
        struct train *train = begin(&config);
        go_on(train);
        assert_int_equal(train_save(train, path, &err), 0);
        config.seed = 2;
        config.episodes = 10;
        struct train *loaded = begin(&config);
        if (train_load(loaded, path, &err) < 0)
            fail_msg("%s", err.message);
        struct sim *sim = sim_new(&config.world, &err);
        train_evaluate(train, sim, 4, &before);
        train_evaluate(loaded, sim, 4, &after);
        assert_true(before.reward == after.reward);
        more = go_on(loaded);
        assert_int_equal(more.episodes, 10);
        assert_int_equal(more.steps, 10 * 2 * 40);
        sim_free(sim);
        train_free(train);
        train_free(loaded);
        SET(&config, "actions", "default", "state", "mp3");
        if (i != 2) { /* mappo cannot learn from that at all */
            train = begin(&config);
            assert_int_equal(train_load(train, path, &err), -1);
            assert_non_null(strstr(err.message, path));
            train_free(train);
        }
        train_config_clear(&config);
    }
    unlink(path);
    rmdir(directory);
}

/* --- functions join and leave --- */
static struct train *begin_with(const char *algorithm, const char *functions, uint64_t seed)
{
    struct train_config config;
    configure(&config, algorithm, NULL);
    SET(&config, "functions", functions);
    config.seed = seed;
    struct train *train = begin(&config);
    train_config_clear(&config);
    return train;
}

static void test_functions_join_and_leave_and_the_others_go_on(void **state)
{
    (void)state;
    struct error err;
    struct train *old = begin_with("mappo", "2", 1), *more = begin_with("mappo", "3", 2),
                 *fresh = begin_with("mappo", "3", 2), *less = begin_with("mappo", "1", 3);
    go_on(old);
    assert_int_equal(train_adopt(more, old, 0, &err), 0);
    assert_same(train_actor(more, 0), train_actor(old, 0));
    assert_same(train_critic(more, 1), train_critic(old, 1));
    assert_same(train_actor(more, 2), train_actor(fresh, 2)); /* the one that joins */
    go_on(more);
    assert_int_equal(train_adopt(less, more, 2, &err), 0); /* the first two have left */
    assert_same(train_actor(less, 0), train_actor(more, 2));
    train_free(old);
    train_free(more);
    train_free(fresh);
    train_free(less);
}

static void test_a_shared_policy_goes_on_with_any_number(void **state)
{
    (void)state;
    struct error err;
    struct train *old = begin_with("simppo", "4", 1), *more = begin_with("simppo", "7", 2),
                 *other = begin_with("mappo", "4", 1);
    go_on(old);
    assert_int_equal(train_adopt(more, old, 3, &err), 0);
    assert_same(train_actor(more, 0), train_actor(old, 0));
    go_on(more);
    assert_int_equal(train_adopt(more, other, 0, &err), -1);
    assert_non_null(strstr(err.message, "mappo"));
    train_free(old);
    train_free(more);
    train_free(other);
}

/* --- where it converges --- */
static void test_convergence(void **state)
{
    (void)state;
    struct train_report rounds[100] = {{0}};
    for (size_t i = 0; i < 100; i++)
        rounds[i].reward = i < 50 ? (double)i : 50;
    /* The mean of round i and the one before is i - 0.5: 45 and on is near 50 by a tenth. */
    assert_int_equal(train_converged(rounds, 100, 2, 0.1), 47);
    rounds[70].reward = 0; /* means of 25 in rounds 70 and 71 */
    assert_int_equal(train_converged(rounds, 100, 2, 0.1), 73);
    rounds[99].reward = 0;
    assert_int_equal(train_converged(rounds, 100, 2, 0.1), 100);
    assert_int_equal(train_converged(rounds, 3, 2, 0.1), 3); /* too few to tell */
    for (size_t i = 0; i < 100; i++)
        rounds[i].reward = -1;
    assert_int_equal(train_converged(rounds, 100, 5, 0.05), 5); /* from the first window on */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ppo_is_better_than_chance),
        cmocka_unit_test(test_every_algorithm_learns_in_its_formulation),
        cmocka_unit_test(test_separate_learners_differ_and_critics_see_all),
        cmocka_unit_test(test_refuses_what_cannot_be),
        cmocka_unit_test(test_the_same_seed_learns_the_same),
        cmocka_unit_test(test_simppo_does_not_depend_on_the_order),
        cmocka_unit_test(test_simppo_takes_functions_that_join_and_leave),
        cmocka_unit_test(test_seeds_are_independent_and_can_be_ended),
        cmocka_unit_test(test_a_seed_that_fails_says_so),
        cmocka_unit_test(test_of_several_failures_the_first_seeds_is_told),
        cmocka_unit_test(test_what_was_learned_is_kept),
        cmocka_unit_test(test_functions_join_and_leave_and_the_others_go_on),
        cmocka_unit_test(test_a_shared_policy_goes_on_with_any_number),
        cmocka_unit_test(test_convergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
