/* Policies that begin with what a teacher does, and go on elsewhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "train/train.h"

#define CALM "poisson:rate=6,span=3600,demand=30,p99=90"

static void configure(struct train_config *config, const char *algorithm, const char *formulation)
{
    static const char *const settings[][2] = {
        {"trace", CALM}, {"episode_steps", "60"}, {"nodes", "0"}, {"clusters", "2"}};
    struct error err;
    if (train_config_init(config, algorithm, formulation, &err) < 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        assert_int_equal(sim_config_set(&config->world, settings[i][0], settings[i][1], &err), 0);
    assert_int_equal(train_config_set(config, "hidden", "32x32", &err), 0);
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

static struct rl_clone_report teach(struct train *train, size_t rounds, size_t epochs)
{
    struct rl_clone_config config = rl_clone_default;
    struct rl_clone_report report;
    struct error err;
    config.epochs = epochs;
    config.rate = 3e-3;
    if (train_clone(train, &train_thresholds, rounds, &config, &report, &err) < 0)
        fail_msg("%s", err.message);
    return report;
}

/* --- the thresholds --- */
struct scene {
    double latency, utilization, throttled, memory, replicas; /* latency: of the goal */
    int32_t cpu, memory_option, horizontal;
};

static void test_thresholds_do_what_they_say(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {0.75, 0.65, 0, 0.7, 3, 1, 1, 1}, /* as it should be */
        {0.3, 0.3, 0, 0.7, 3, 1, 1, 0},   /* idle: fewer */
        {0.3, 0.3, 0, 0.7, 1, 0, 1, 0},   /* idle and alone: smaller */
        {NAN, 0, 0, 0.7, 3, 1, 1, 0},     /* without requests */
        {0.3, 0.3, 0.3, 0.7, 1, 1, 1, 0}, /* idle but throttled: not smaller */
        {0.95, 0.65, 0, 0.7, 3, 1, 1, 2}, /* slow */
        {0.3, 0.9, 0, 0.7, 3, 1, 1, 2},   /* busy */
        {3, 0.9, 0.5, 0.95, 3, 2, 2, 2},  /* all of it */
        {0.75, 0.65, 0, 0.4, 3, 1, 0, 1}, /* too much memory */
    };
    struct error err;
    const char *settings[] = {NULL};
    struct sim *sim = sim_open("aware", settings, &err);
    const uint8_t all[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, up[] = {1, 1, 0, 1, 1, 0, 1, 1, 0};
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
        const struct scene *s = &scenes[i];
        double figures[SIM_FIGURE_COUNT] = {0};
        int32_t action[3];
        figures[SIM_GOAL_MS] = 200;
        figures[SIM_LATENCY_MS] = 200 * s->latency;
        figures[SIM_CPU_UTILIZATION] = s->utilization;
        figures[SIM_THROTTLED_RATIO] = s->throttled;
        figures[SIM_MEMORY_UTILIZATION] = s->memory;
        figures[SIM_REPLICAS] = s->replicas;
        train_thresholds.decide(NULL, sim_shape(sim), figures, all, action);
        const int32_t expected[] = {s->cpu, s->memory_option, s->horizontal};
        for (size_t d = 0; d < 3; d++)
            if (action[d] != expected[d])
                fail_msg("scene %zu: option %d of dimension %zu", i, (int)action[d], d);
        train_thresholds.decide(NULL, sim_shape(sim), figures, up, action);
        for (size_t d = 0; d < 3; d++)
            assert_int_equal(action[d], expected[d] == 2 ? 1 : expected[d]);
    }
    sim_free(sim);
}

static struct train_report judge(const struct train *train, const struct train_config *config)
{
    struct train_report report;
    struct error err;
    struct sim *sim = sim_new(&config->world, &err);
    if (train)
        train_evaluate(train, sim, 77, &report);
    else
        train_evaluate_teacher(&train_thresholds, sim, 77, &report);
    sim_free(sim);
    return report;
}

/* --- cloning --- */
/* A policy that was taught decides like its teacher, and does about as well. */
static void test_what_is_taught_is_learned(void **state)
{
    (void)state;
    static const char *const formulations[] = {"default", "aware"};
    for (size_t k = 0; k < ARRAY_LEN(formulations); k++) {
        struct train_config config;
        configure(&config, "ppo", formulations[k]);
        struct train *train = begin(&config);
        struct train_report before = judge(train, &config), teacher = judge(NULL, &config);
        assert_int_equal(teacher.steps, 2 * 60);
        struct rl_clone_report taught = teach(train, 12, 100);
        struct train_report after = judge(train, &config);
        /* what is seen in aware does not tell how far below its goal a latency is */
        assert_true(taught.agreement > (k == 0 ? 0.85 : 0.5));
        assert_true(fabs(after.reward - teacher.reward) < 0.25 * fabs(teacher.reward));
        assert_true(before.reward != after.reward);
        train_free(train);
        train_config_clear(&config);
    }
}

static void test_it_learns_on_from_there(void **state)
{
    (void)state;
    struct train_config config;
    struct train_report report;
    struct error err;
    configure(&config, "ppo-shared", "aware");
    struct train *train = begin(&config), *same = begin(&config);
    teach(train, 2, 20);
    teach(same, 2, 20);
    while (!train_is_done(train)) {
        assert_int_equal(train_round(train, &report, &err), 0);
        assert_int_equal(train_round(same, &report, &err), 0);
    }
    assert_int_equal(report.episodes, 8); /* lessons are no episodes of its own */
    const struct rl_net *a = train_actor(train, 0), *b = train_actor(same, 0);
    assert_memory_equal(a->params, b->params, a->param_count * sizeof(float));
    train_free(train);
    train_free(same);
    train_config_clear(&config);
}

static void test_several_learners_are_taught_by_their_own_rows(void **state)
{
    (void)state;
    struct train_config config;
    struct error err;
    configure(&config, "ppo", "aware");
    assert_int_equal(sim_config_set(&config.world, "functions", "2", &err), 0);
    assert_int_equal(sim_config_set(&config.world, "trace", "poisson:rate=60,demand=30", &err), 0);
    assert_int_equal(sim_config_set(&config.world, "shuffle", "0", &err), 0);
    struct train *train = begin(&config);
    assert_true(teach(train, 4, 40).agreement > 0.5);
    const struct rl_net *a = train_actor(train, 0), *b = train_actor(train, 1);
    assert_memory_not_equal(a->params, b->params, 64 * sizeof(float));
    train_free(train);
    train_config_clear(&config);
}

/* --- from one to the other --- */
static void test_what_was_learned_goes_on_elsewhere(void **state)
{
    (void)state;
    struct train_config config, other;
    struct error err;
    configure(&config, "ppo", "aware");
    configure(&other, "ppo", "aware");
    free(other.world.traces[0]);
    other.world.traces[0] = xstrdup("poisson:rate=1,span=3600,demand=30");
    struct train *offline = begin(&config), *online = begin(&other);
    teach(offline, 2, 20);
    assert_true(judge(offline, &config).reward != judge(online, &config).reward);
    assert_int_equal(train_inherit(online, offline, &err), 0);
    assert_true(judge(offline, &config).reward == judge(online, &config).reward);
    train_free(online);
    assert_int_equal(train_config_set(&other, "hidden", "16", &err), 0);
    online = begin(&other);
    assert_int_equal(train_inherit(online, offline, &err), -1);
    train_free(online);
    train_free(offline);
    train_config_clear(&config);
    train_config_clear(&other);
}

static void test_a_table_cannot_be_taught(void **state)
{
    (void)state;
    struct train_config config;
    struct rl_clone_report report;
    struct error err;
    configure(&config, "qlearning", "mp3");
    struct train *train = begin(&config);
    assert_int_equal(train_clone(train, &train_thresholds, 1, &rl_clone_default, &report, &err),
                     -1);
    assert_non_null(strstr(err.message, "qlearning"));
    assert_int_equal(train_inherit(train, train, &err), -1);
    train_free(train);
    train_config_clear(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thresholds_do_what_they_say),
        cmocka_unit_test(test_what_is_taught_is_learned),
        cmocka_unit_test(test_it_learns_on_from_there),
        cmocka_unit_test(test_several_learners_are_taught_by_their_own_rows),
        cmocka_unit_test(test_what_was_learned_goes_on_elsewhere),
        cmocka_unit_test(test_a_table_cannot_be_taught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
