/* Q-learning, REINFORCE, logs and behaviour cloning, on worlds with known answers. */
#include "rl_worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct rl_q_config q_config = {.rate = 0.2,
                                            .rate_end = 0.01,
                                            .epsilon = 1,
                                            .epsilon_end = 0.2,
                                            .decay_steps = 15000,
                                            .gamma = 0.9};

static struct rl_grid walk_grid(void)
{
    struct rl_grid grid;
    rl_grid_init(&grid, 1, PLACES, -0.5f, PLACES - 0.5f);
    return grid;
}

static void check_table(const struct rl_table *t, const struct walks *w, double tolerance)
{
    double worth[PLACES][2];
    int32_t action;
    walks_solve(0.9, worth);
    for (int s = 1; s < PLACES - 1; s++) {
        float place = (float)s;
        for (int a = 0; a < 2; a++)
            assert_float_equal(t->values[s * 2 + a], worth[s][a], tolerance);
        rl_table_best(t, &w->world.heads, &place, NULL, &action);
        assert_int_equal(action, worth[s][1] > worth[s][0]);
    }
}

/* --- Q-learning --- */
static void test_q_learning_reaches_the_optimum(void **state)
{
    struct walks w;
    struct error err;
    const struct rl_grid grid = walk_grid();
    (void)state;
    walks_init(&w, 1);
    struct rl_q *q = rl_q_new(&q_config, &grid, &w.world, rl_all_rows, 1, &err);
    for (int i = 0; i < 20000; i++) {
        rl_q_act(q);
        walks_step(&w);
        assert_int_equal(rl_q_see(q, &err), 0);
    }
    check_table(rl_q_table(q), &w, 0.03);
    rl_q_free(q);
}

static void test_q_learning_with_two_heads_and_a_mask(void **state)
{
    struct bandits b;
    struct rl_grid grid;
    int32_t action[2];
    (void)state;
    for (int forbid = 0; forbid < 2; forbid++) {
        bandits_init(&b, forbid);
        rl_grid_init(&grid, 1, 1, 0, 2);
        struct rl_q *q = rl_q_new(&q_config, &grid, &b.world, rl_all_rows, 1, NULL);
        for (int i = 0; i < 20000; i++) {
            rl_q_act(q);
            bandits_step(&b);
            assert_int_equal(rl_q_see(q, NULL), 0);
        }
        rl_table_best(rl_q_table(q), &b.world.heads, b.observations[0], b.masks[0], action);
        assert_int_equal(action[0], 1);
        assert_int_equal(action[1], forbid ? 0 : 2);
        assert_int_equal(b.illegal, 0);
        rl_q_free(q);
    }
}

static void test_q_learning_from_a_log_alone(void **state)
{
    struct walks w;
    const struct rl_grid grid = walk_grid();
    struct rl_q_config config = q_config;
    (void)state;
    walks_init(&w, 2);
    struct rl_log *log = rl_log_new(&w.world, rl_all_rows, 4000, NULL);
    for (int i = 0; i < 5000; i++) { /* nobody who knows anything decides */
        for (size_t k = 0; k < WALKS; k++)
            w.actions[k] = (int32_t)random_below(&w.random, 2);
        rl_log_act(log, NULL);
        walks_step(&w);
        rl_log_see(log);
    }
    config.rate = config.rate_end = 0.02;
    struct rl_q *q = rl_q_new(&config, &grid, &w.world, rl_all_rows, 1, NULL);
    for (int i = 0; i < 10; i++)
        assert_int_equal(rl_q_replay(q, log, NULL), 0);
    check_table(rl_q_table(q), &w, 0.05);
    rl_q_free(q);
    rl_log_free(log);
}

static void test_bins_end_at_their_edges(void **state)
{
    struct rl_heads heads;
    struct rl_table t;
    struct rl_grid grid;
    int32_t action;
    (void)state;
    rl_grid_init(&grid, 2, 1, 0, 1);
    grid.bins[1] = 4;
    assert_int_equal(rl_heads_init(&heads, (size_t[]){4}, 1, NULL), 0);
    assert_int_equal(rl_table_make(&t, &grid, &heads, NULL), 0);
    assert_int_equal(t.states, 4);
    for (size_t i = 0; i < 4; i++)
        t.values[i * 4 + i] = 1;
    const struct {
        float value;
        int bin;
    } cases[] = {{-9, 0}, {0, 0},  {0.2499f, 0}, {0.25f, 1},   {0.75f, 3},
                 {1, 3},  {99, 3}, {NAN, 0},     {INFINITY, 3}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rl_table_best(&t, &heads, (float[]){7, cases[i].value}, NULL, &action);
        assert_int_equal(action, cases[i].bin);
    }
    rl_table_clear(&t);
}

static void test_tables_that_cannot_be_are_refused(void **state)
{
    struct walks w;
    struct rl_grid grid;
    struct rl_q_config config = q_config;
    struct error err = {0};
    (void)state;
    walks_init(&w, 1);
    rl_grid_init(&grid, 2, 4, 0, 1);
    assert_null(rl_q_new(&config, &grid, &w.world, rl_all_rows, 1, &err));
    assert_string_equal(err.message, "the table has 2 features, the world 1");
    rl_grid_init(&grid, 1, SIZE_MAX / 2, 0, 1);
    assert_null(rl_q_new(&config, &grid, &w.world, rl_all_rows, 1, &err));
    rl_grid_init(&grid, 1, 0, 0, 1);
    assert_null(rl_q_new(&config, &grid, &w.world, rl_all_rows, 1, &err));
    rl_grid_init(&grid, 1, 4, 1, 1);
    assert_null(rl_q_new(&config, &grid, &w.world, rl_all_rows, 1, &err));
    grid = walk_grid();
    config.epsilon = 1.5;
    assert_null(rl_q_new(&config, &grid, &w.world, rl_all_rows, 1, &err));
    assert_string_equal(err.message, "epsilon is 1.5: must be 0 to 1");
}

static void test_wrong_reward_leaves_the_table(void **state)
{
    struct walks w;
    struct error err = {0};
    const struct rl_grid grid = walk_grid();
    (void)state;
    walks_init(&w, 1);
    struct rl_q *q = rl_q_new(&q_config, &grid, &w.world, rl_all_rows, 1, NULL);
    rl_q_act(q);
    walks_step(&w);
    w.rewards[3] = NAN;
    assert_int_equal(rl_q_see(q, &err), -1);
    assert_string_equal(err.message, "the reward of row 3 is nan at step 0");
    for (size_t i = 0; i < PLACES * 2; i++)
        assert_float_equal(rl_q_table(q)->values[i], 0, 0);
    rl_q_free(q);
}

/* --- REINFORCE --- */
static void test_reinforce_finds_the_way(void **state)
{
    struct walks w;
    struct rl_ppo_config config = rl_reinforce_default;
    struct rl_ppo_report report;
    double worth[PLACES][2];
    (void)state;
    walks_init(&w, 1);
    walks_solve(0.9, worth);
    config.gamma = 0.9;
    config.hidden[0] = config.hidden[1] = 16;
    config.horizon = 2 * (WALK_STEPS + 1);
    struct rl_ppo *ppo = rl_ppo_new(&config, &w.world, rl_all_rows, 60, 1, NULL);
    for (int i = 0; i < 60; i++) {
        while (!rl_ppo_is_full(ppo)) {
            rl_ppo_act(ppo);
            walks_step(&w);
            rl_ppo_see(ppo);
        }
        assert_int_equal(rl_ppo_update(ppo, &report, NULL), 0);
        assert_float_equal(report.kl, 0, 1e-9); /* looked at once: the policy has not moved */
    }
    for (int s = 1; s < PLACES - 1; s++) {
        float place = (float)s, logits[2];
        rl_net_row(rl_ppo_actor(ppo), &place, logits);
        assert_int_equal(logits[1] > logits[0], worth[s][1] > worth[s][0]);
    }
    rl_ppo_free(ppo);
}

/* An episode that is cut by the horizon says nothing of what it would have paid. */
static void test_reinforce_learns_from_whole_episodes_only(void **state)
{
    struct walks w;
    struct rl_ppo_config config = rl_reinforce_default;
    struct rl_ppo_report report;
    size_t whole = 0, open[WALKS] = {0};
    (void)state;
    walks_init(&w, 4);
    config.horizon = 30;
    struct rl_ppo *ppo = rl_ppo_new(&config, &w.world, rl_all_rows, 1, 1, NULL);
    while (!rl_ppo_is_full(ppo)) {
        for (size_t i = 0; i < WALKS; i++)
            open[i] += !w.terminated[i];
        rl_ppo_act(ppo);
        walks_step(&w);
        rl_ppo_see(ppo);
        for (size_t i = 0; i < WALKS; i++)
            if (w.terminated[i]) {
                whole += open[i];
                open[i] = 0;
            }
    }
    assert_int_equal(rl_ppo_update(ppo, &report, NULL), 0);
    assert_int_equal(report.samples, whole);
    rl_ppo_free(ppo);
}

/* --- logs --- */
static void test_log_keeps_the_last_steps(void **state)
{
    struct walks w;
    struct error err;
    (void)state;
    walks_init(&w, 1);
    assert_null(rl_log_new(&w.world, rl_all_rows, 0, &err));
    assert_null(rl_log_new(&w.world, rl_all_rows, SIZE_MAX / 4, &err));
    struct rl_log *log = rl_log_new(&w.world, (struct rl_rows){0, 4}, 5, &err);
    for (int i = 0; i < 12; i++) {
        w.actions[8] = i == 10 ? 2 : 1; /* there is no such option */
        for (size_t k = 0; k < WALKS; k++)
            w.place[k] = 3; /* nothing ends */
        rl_log_act(log, i == 11 ? (float[]){1, 1, 1, 0} : NULL);
        walks_step(&w);
        rl_log_see(log);
        size_t full = 4 * (size_t)(i < 5 ? i + 1 : 5);
        assert_int_equal(rl_log_count(log), i < 10 ? full : full - (size_t)(i - 9));
    }
    rl_log_free(log);
}

/* --- behaviour cloning --- */
struct teacher {
    struct walks w;
    struct rl_log *log;
    struct rl_net actor;
};

/* Whoever teaches goes right from the middle on and left before it; in one case of four somebody
 * who is worth less does the opposite. */
static void teach(struct teacher *t, bool with_weights)
{
    struct random random = random_stream(1, 2);
    walks_init(&t->w, 1);
    t->log = rl_log_new(&t->w.world, rl_all_rows, 200, NULL);
    assert_int_equal(rl_net_make(&t->actor, &(struct rl_shape){1, 2, {16}, 1, RL_TANH}, NULL), 0);
    rl_net_randomise(&t->actor, 0.01f, &random);
    for (int i = 0; i < 250; i++) {
        float weights[WALKS];
        for (size_t k = 0; k < WALKS; k++) {
            bool wrong = with_weights && random_below(&random, 4) > 0;
            t->w.actions[k] = (t->w.place[k] >= PLACES / 2) != wrong;
            weights[k] = wrong ? 0.1f : 1;
        }
        rl_log_act(t->log, weights);
        walks_step(&t->w);
        rl_log_see(t->log);
    }
}

static void check_pupil(const struct rl_net *actor)
{
    for (int s = 1; s < PLACES - 1; s++) {
        float place = (float)s, logits[2];
        rl_net_row(actor, &place, logits);
        assert_int_equal(logits[1] > logits[0], s >= PLACES / 2);
    }
}

static void end_lesson(struct teacher *t)
{
    rl_log_free(t->log);
    rl_net_clear(&t->actor);
}

static void test_pupil_does_as_the_teacher(void **state)
{
    struct teacher t;
    struct rl_clone_report report;
    (void)state;
    teach(&t, false);
    assert_int_equal(rl_clone(&t.actor, t.log, &rl_clone_default, &report, NULL), 0);
    check_pupil(&t.actor);
    assert_float_equal(report.agreement, 1, 0);
    assert_true(report.loss < 0.1);
    end_lesson(&t);
    teach(&t, true);
    assert_int_equal(rl_clone(&t.actor, t.log, &rl_clone_default, &report, NULL), 0);
    check_pupil(&t.actor);
    assert_true(report.agreement < 0.5);
    end_lesson(&t);
}

static void test_cloning_refuses_what_does_not_fit(void **state)
{
    struct teacher t;
    struct rl_clone_report report;
    struct rl_clone_config config = rl_clone_default;
    struct error err = {0};
    struct rl_net other;
    (void)state;
    teach(&t, false);
    assert_int_equal(rl_net_make(&other, &(struct rl_shape){1, 3, {4}, 1, RL_TANH}, NULL), 0);
    assert_int_equal(rl_clone(&other, t.log, &config, &report, &err), -1);
    assert_string_equal(err.message, "the network has 1 inputs and 3 outputs, the log 1 and 2");
    rl_net_clear(&other);
    config.minibatch = 0;
    assert_int_equal(rl_clone(&t.actor, t.log, &config, &report, &err), -1);
    struct rl_log *empty = rl_log_new(&t.w.world, rl_all_rows, 5, NULL);
    assert_int_equal(rl_clone(&t.actor, empty, &rl_clone_default, &report, &err), -1);
    assert_string_equal(err.message, "the log holds no decision to learn from");
    rl_log_free(empty);
    end_lesson(&t);
}

static void test_failed_cloning_leaves_the_weights(void **state)
{
    struct teacher t;
    struct rl_clone_report report;
    struct error err = {0};
    (void)state;
    teach(&t, false);
    size_t last = t.actor.param_count - 1;
    float first = t.actor.params[0];
    t.actor.params[last] = INFINITY;
    assert_int_equal(rl_clone(&t.actor, t.log, &rl_clone_default, &report, &err), -1);
    assert_non_null(strstr(err.message, "the loss of the policy is "));
    assert_true(t.actor.params[0] == first);
    end_lesson(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_q_learning_reaches_the_optimum),
        cmocka_unit_test(test_q_learning_with_two_heads_and_a_mask),
        cmocka_unit_test(test_q_learning_from_a_log_alone),
        cmocka_unit_test(test_bins_end_at_their_edges),
        cmocka_unit_test(test_tables_that_cannot_be_are_refused),
        cmocka_unit_test(test_wrong_reward_leaves_the_table),
        cmocka_unit_test(test_reinforce_finds_the_way),
        cmocka_unit_test(test_reinforce_learns_from_whole_episodes_only),
        cmocka_unit_test(test_log_keeps_the_last_steps),
        cmocka_unit_test(test_pupil_does_as_the_teacher),
        cmocka_unit_test(test_cloning_refuses_what_does_not_fit),
        cmocka_unit_test(test_failed_cloning_leaves_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
