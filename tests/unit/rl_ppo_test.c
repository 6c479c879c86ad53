/* PPO and REINFORCE: step by step against PyTorch, and on worlds with known answers. */
#include "rl_worlds.h"

#include "base/parallel.h"
#include "reference/rl_reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* --- a world that shows what was written down, whatever is done in it --- */
enum { ROWS = 3, HORIZON = 6, OWN = 5, GLOBAL = 2, OPTIONS = 7, HEADS = 2 };

struct script {
    struct rl_world world;
    size_t step;
    float observations[ROWS * OWN], globals[ROWS * GLOBAL], rewards[ROWS];
    uint8_t masks[ROWS * OPTIONS], present[ROWS], terminated[ROWS], truncated[ROWS];
    int32_t actions[ROWS * HEADS];
};

#define COPY_SLICE(to, from, at) memcpy(to, (from) + (at)*ARRAY_LEN(to), sizeof(to))

static void script_show(struct script *s)
{
    COPY_SLICE(s->observations, ref_ppo_observations, s->step);
    COPY_SLICE(s->globals, ref_ppo_globals, s->step);
    COPY_SLICE(s->rewards, ref_ppo_rewards, s->step);
    COPY_SLICE(s->masks, ref_ppo_masks, s->step);
    COPY_SLICE(s->present, ref_ppo_present, s->step);
    COPY_SLICE(s->terminated, ref_ppo_terminated, s->step);
    COPY_SLICE(s->truncated, ref_ppo_truncated, s->step);
}

static void script_step(void *self)
{
    struct script *s = self;
    const int32_t *expected = ref_ppo_actions + s->step * ARRAY_LEN(s->actions);
    assert_memory_equal(s->actions, expected, sizeof(s->actions));
    s->step++;
    script_show(s);
}

static void script_init(struct script *s)
{
    *s = (struct script){.world = {.rows = ROWS,
                                   .observation_size = OWN,
                                   .global_size = GLOBAL,
                                   .observations = s->observations,
                                   .globals = s->globals,
                                   .masks = s->masks,
                                   .present = s->present,
                                   .terminated = s->terminated,
                                   .truncated = s->truncated,
                                   .rewards = s->rewards,
                                   .actions = s->actions,
                                   .step = script_step,
                                   .self = s}};
    assert_int_equal(rl_heads_init(&s->world.heads, (size_t[]){3, 4}, 2, NULL), 0);
    script_show(s);
}

static const struct rl_ppo_config script_config = {
    .hidden = {8, 6},
    .hidden_count = 2,
    .activation = RL_TANH,
    .central_critic = true,
    .actor_rate = 0.01,
    .critic_rate = 0.02,
    .rate_end = 0.5,
    .gamma = 0.9,
    .lambda = 0.8,
    .clip = 0.1,
    .value_clip = 0.05,
    .entropy = 0.02,
    .critic_weight = 0.5,
    .max_gradient = 0.4,
    .horizon = HORIZON,
    .epochs = 3,
    .minibatch = 4,
    .normalise = true,
};

static int gather_and_update(struct rl_ppo *ppo, const struct rl_world *world,
                             struct rl_ppo_report *report, struct error *err)
{
    while (!rl_ppo_is_full(ppo)) {
        rl_ppo_act(ppo);
        world->step(world->self);
        rl_ppo_see(ppo);
    }
    return rl_ppo_update(ppo, report, err);
}

static void assert_near(const float *values, const float *expected, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(values[i] - expected[i]) > tolerance)
            fail_msg("number %zu is %.9g, not %.9g", i, values[i], expected[i]);
}

static void check_report(const struct rl_ppo_report *r, const float *expected)
{
    const float ours[] = {(float)r->policy_loss, (float)r->value_loss, (float)r->entropy,
                          (float)r->kl,          (float)r->clipped,    (float)r->samples};
    assert_near(ours, expected, ARRAY_LEN(ours), 2e-5);
}

static void test_updates_equal_pytorch(void **state)
{
    struct script s;
    struct rl_ppo_report report;
    (void)state;
    script_init(&s);
    struct rl_ppo *ppo = rl_ppo_new(&script_config, &s.world, rl_all_rows, 2, 42, NULL);
    struct rl_net *actor = rl_ppo_actor(ppo), *critic = rl_ppo_critic(ppo);
    assert_int_equal(actor->param_count, ARRAY_LEN(ref_ppo_actor));
    assert_int_equal(critic->param_count, ARRAY_LEN(ref_ppo_critic));
    memcpy(actor->params, ref_ppo_actor, sizeof(ref_ppo_actor));
    memcpy(critic->params, ref_ppo_critic, sizeof(ref_ppo_critic));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(gather_and_update(ppo, &s.world, &report, NULL), 0);
        check_report(&report, ref_ppo_reports + i * 6);
    }
    assert_near(actor->params, ref_ppo_actor_after, actor->param_count, 5e-5);
    assert_near(critic->params, ref_ppo_critic_after, critic->param_count, 5e-5);
    rl_ppo_free(ppo);
}

static void test_far_step_ends_the_update(void **state)
{
    struct rl_ppo_config config = script_config;
    struct rl_ppo_report report;
    struct script s;
    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        config.stop_kl = stops ? 1e-9 : 1e9;
        script_init(&s);
        s.world.step = script_step;
        struct rl_ppo *ppo = rl_ppo_new(&config, &s.world, rl_all_rows, 1, 42, NULL);
        memcpy(rl_ppo_actor(ppo)->params, ref_ppo_actor, sizeof(ref_ppo_actor));
        assert_int_equal(gather_and_update(ppo, &s.world, &report, NULL), 0);
        assert_int_equal(report.samples, stops ? 14 : 3 * 14);
        rl_ppo_free(ppo);
    }
}

/* --- refusals --- */
static void test_settings_that_cannot_be_are_refused(void **state)
{
    struct script s;
    struct error err = {0};
    struct rl_ppo_config config = script_config;
    (void)state;
    script_init(&s);
    config.gamma = 1.5;
    assert_null(rl_ppo_new(&config, &s.world, rl_all_rows, 1, 1, &err));
    assert_string_equal(err.message, "gamma is 1.5: must be 0 to 1");
    config.gamma = NAN;
    assert_null(rl_ppo_new(&config, &s.world, rl_all_rows, 1, 1, &err));
    config = script_config;
    config.horizon = 0;
    assert_null(rl_ppo_new(&config, &s.world, rl_all_rows, 1, 1, &err));
    config = script_config;
    config.hidden[1] = 0;
    assert_null(rl_ppo_new(&config, &s.world, rl_all_rows, 1, 1, &err));
    assert_null(rl_ppo_new(&script_config, &s.world, (struct rl_rows){3, 1}, 1, 1, &err));
    assert_string_equal(err.message, "there is no row 3, step 1, among 3");
    assert_null(rl_ppo_new(&script_config, &s.world, (struct rl_rows){0, 0}, 1, 1, &err));
}

/* --- worlds with known answers --- */
static double reward_of(const struct rl_net *actor, const struct bandits *b)
{
    float logits[6];
    int32_t action[2];
    rl_net_row(actor, b->observations[0], logits);
    rl_best(&b->world.heads, logits, b->masks[0], action);
    return bandit_worth[0][action[0]] * bandit_worth[1][action[1]];
}

static void solve_bandit(const struct rl_ppo_config *from, bool forbid_best, double optimum)
{
    struct bandits b;
    struct rl_ppo_report report;
    struct rl_ppo_config config = *from;
    bandits_init(&b, forbid_best);
    config.horizon = 16;
    config.hidden[0] = 8;
    config.hidden_count = 1;
    struct rl_ppo *ppo = rl_ppo_new(&config, &b.world, rl_all_rows, 60, 1, NULL);
    for (size_t i = 0; i < 60; i++)
        assert_int_equal(gather_and_update(ppo, &b.world, &report, NULL), 0);
    assert_float_equal(reward_of(rl_ppo_actor(ppo), &b), optimum, 1e-9);
    assert_int_equal(b.illegal, 0);
    rl_ppo_free(ppo);
}

static void test_bandit_is_solved(void **state)
{
    (void)state;
    solve_bandit(&rl_ppo_default, false, 0.9 * 1.0);
    solve_bandit(&rl_ppo_default, true, 0.9 * 0.8);
    solve_bandit(&rl_reinforce_default, false, 0.9 * 1.0);
    solve_bandit(&rl_reinforce_default, true, 0.9 * 0.8);
}

/* Mean length of episodes when the likeliest action is taken. */
static double balance(const struct rl_net *actor)
{
    struct carts c;
    float logits[2];
    carts_init(&c, CARTS, 1000);
    while (c.finished < 50) {
        for (size_t i = 0; i < c.world.rows; i++) {
            rl_net_row(actor, c.observations[i], logits);
            rl_best(&c.world.heads, logits, NULL, &c.actions[i]);
        }
        carts_step(&c);
    }
    return c.total / c.finished;
}

static double learn_to_balance(const struct rl_ppo_config *config, size_t updates, uint64_t seed)
{
    struct carts c;
    struct rl_ppo_report report;
    carts_init(&c, CARTS, seed);
    struct rl_ppo *ppo = rl_ppo_new(config, &c.world, rl_all_rows, updates, seed, NULL);
    for (size_t i = 0; i < (IS_SLOW ? 1 : updates); i++)
        assert_int_equal(gather_and_update(ppo, &c.world, &report, NULL), 0);
    double length = IS_SLOW ? CART_STEPS : balance(rl_ppo_actor(ppo));
    rl_ppo_free(ppo);
    return length;
}

/* CartPole-v1 counts as solved at a mean of 475. */
static void test_pole_is_balanced(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        assert_true(learn_to_balance(&rl_ppo_default, 30, seed) >= 475);
}

static void test_pole_is_balanced_with_the_papers_settings(void **state)
{
    (void)state;
    assert_true(learn_to_balance(&rl_ppo_paper, 20, 2) >= 475);
}

/* --- the same again --- */
static float *learn_weights(uint64_t seed, size_t *count)
{
    struct carts c;
    struct rl_ppo_report report;
    carts_init(&c, 3, seed);
    struct rl_ppo *ppo = rl_ppo_new(&rl_ppo_default, &c.world, rl_all_rows, 5, seed, NULL);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(gather_and_update(ppo, &c.world, &report, NULL), 0);
    struct rl_net *net = rl_ppo_actor(ppo);
    float *copy = xcalloc(net->param_count, sizeof(float));
    memcpy(copy, net->params, net->param_count * sizeof(float));
    *count = net->param_count;
    rl_ppo_free(ppo);
    return copy;
}

static void test_same_seed_gives_the_same_weights(void **state)
{
    size_t n;
    cleanup_free float *one = learn_weights(7, &n);
    cleanup_free float *again = learn_weights(7, &n);
    cleanup_free float *other = learn_weights(8, &n);
    (void)state;
    assert_memory_equal(one, again, n * sizeof(float));
    assert_memory_not_equal(one, other, n * sizeof(float));
}

/* --- several learners in one world --- */
struct several {
    struct rl_ppo *ppos[4];
    struct rl_ppo_report reports[4];
};

static void update_one(void *arg, size_t i)
{
    struct several *s = arg;
    if (rl_ppo_update(s->ppos[i], &s->reports[i], NULL) < 0)
        abort();
}

static void learn_side_by_side(struct several *s, size_t threads, float *weights)
{
    struct carts c;
    carts_init(&c, 4, 5);
    for (size_t i = 0; i < 4; i++)
        s->ppos[i] = rl_ppo_new(&rl_ppo_default, &c.world, (struct rl_rows){i, 4}, 3, 5, NULL);
    for (size_t update = 0; update < 2; update++) {
        while (!rl_ppo_is_full(s->ppos[0])) {
            for (size_t i = 0; i < 4; i++)
                rl_ppo_act(s->ppos[i]);
            carts_step(&c);
            for (size_t i = 0; i < 4; i++)
                rl_ppo_see(s->ppos[i]);
        }
        parallel_for(threads, 4, update_one, s);
    }
    for (size_t i = 0; i < 4; i++) {
        weights[i] = rl_ppo_actor(s->ppos[i])->params[17];
        rl_ppo_free(s->ppos[i]);
    }
}

static void test_learners_side_by_side_do_not_disturb_each_other(void **state)
{
    struct several s;
    float alone[4], together[4];
    (void)state;
    learn_side_by_side(&s, 1, alone);
    learn_side_by_side(&s, 4, together);
    assert_memory_equal(alone, together, sizeof(alone));
    assert_true(alone[0] != alone[1]);
}

/* --- what is no number --- */
static void check_wrong(struct carts *c, struct rl_ppo *ppo, const char *message)
{
    struct rl_net *actor = rl_ppo_actor(ppo), *critic = rl_ppo_critic(ppo);
    struct rl_ppo_report report;
    struct error err = {0};
    size_t actor_size = actor->param_count * sizeof(float);
    size_t critic_size = critic->param_count * sizeof(float);
    cleanup_free float *actor_before = xcalloc(1, actor_size);
    cleanup_free float *critic_before = xcalloc(1, critic_size);
    memcpy(actor_before, actor->params, actor_size);
    memcpy(critic_before, critic->params, critic_size);
    assert_int_equal(rl_ppo_update(ppo, &report, &err), -1);
    assert_string_equal(err.message, message);
    assert_memory_equal(actor->params, actor_before, actor_size);
    assert_memory_equal(critic->params, critic_before, critic_size);
    carts_reset(c, 9); /* and goes on well */
    assert_int_equal(gather_and_update(ppo, &c->world, &report, &err), 0);
}

static void gather_with(struct rl_ppo *ppo, struct carts *c, size_t step, float *wrong, float value)
{
    for (size_t i = 0; !rl_ppo_is_full(ppo); i++) {
        rl_ppo_act(ppo);
        carts_step(c);
        if (i >= step)
            *wrong = value;
        rl_ppo_see(ppo);
        memset(c->terminated, 0, sizeof(c->terminated)); /* every row goes on and on */
    }
}

static void test_what_is_no_number_is_an_error_and_the_weights_stay(void **state)
{
    struct carts c;
    struct rl_ppo_report report;
    (void)state;
    carts_init(&c, 1, 5);
    struct rl_ppo *ppo = rl_ppo_new(&rl_ppo_default, &c.world, rl_all_rows, 10, 5, NULL);
    assert_int_equal(gather_and_update(ppo, &c.world, &report, NULL), 0);
    gather_with(ppo, &c, 3, &c.rewards[0], NAN);
    check_wrong(&c, ppo, "the reward of row 0 is nan at step 3");
    gather_with(ppo, &c, 4, &c.observations[0][2], INFINITY);
    check_wrong(&c, ppo, "number 2 that row 0 sees is inf at step 5");
    gather_with(ppo, &c, 4, &c.rewards[0], 3e38f);
    check_wrong(&c, ppo, "the loss of the critic is inf: try smaller rates or smaller rewards");
    rl_ppo_free(ppo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates_equal_pytorch),
        cmocka_unit_test(test_far_step_ends_the_update),
        cmocka_unit_test(test_settings_that_cannot_be_are_refused),
        cmocka_unit_test(test_bandit_is_solved),
        cmocka_unit_test(test_pole_is_balanced),
        cmocka_unit_test(test_pole_is_balanced_with_the_papers_settings),
        cmocka_unit_test(test_same_seed_gives_the_same_weights),
        cmocka_unit_test(test_learners_side_by_side_do_not_disturb_each_other),
        cmocka_unit_test(test_what_is_no_number_is_an_error_and_the_weights_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
