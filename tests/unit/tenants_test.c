/* Functions that share a platform: what they run on, when their rewards rest, how they are judged,
 * and that a seed's figures are its own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "experiment/tenants.h"

static struct train_config configure(const char *algorithm, size_t functions, bool alone,
                                     bool papers)
{
    struct tenants who = {algorithm, functions, alone, papers, 0};
    struct train_config config;
    struct error err;
    if (tenants_configure(&who, &config, &err) < 0)
        fail_msg("%s", err.message);
    return config;
}

/* --- the platform --- */
static void test_a_node_comes_with_each_five_functions(void **state)
{
    (void)state;
    static const struct {
        size_t functions;
        int nodes;
    } cases[] = {{5, 1}, {10, 2}, {110, 22}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct train_config config = configure("simppo", cases[i].functions, false, false);
        assert_int_equal(config.world.functions, cases[i].functions);
        assert_int_equal(config.world.nodes, cases[i].nodes);
        assert_int_equal(config.world.trace_count, TENANT_KINDS);
        train_config_clear(&config);
    }
    struct train_config config = configure("ppo", 5, true, false);
    assert_int_equal(config.world.nodes, 0); /* never short */
    train_config_clear(&config);
}

/* MA-PPO's table 3. */
static void test_the_papers_settings_are_those_of_the_paper(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"ppo", "mappo"};
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
        struct train_config config = configure(algorithms[i], 5, false, true);
        const struct rl_ppo_config *ppo = &config.ppo;
        assert_true(ppo->actor_rate == 3e-4 && ppo->critic_rate == 3e-4 && ppo->gamma == 0.99);
        assert_true(ppo->hidden_count == 2 && ppo->hidden[0] == 64 && ppo->hidden[1] == 64);
        assert_true(ppo->minibatch == 5 && ppo->epochs == 5 && ppo->clip == 0.2);
        assert_true(ppo->entropy == 0.01 && ppo->critic_weight == 0.05);
        assert_true(config.world.episode_steps == 200 && config.world.alpha == 0.3);
        assert_false(config.mask);
        assert_int_equal(config.world.selfish, i == 0); /* the team earns together */
        assert_int_equal(ppo->central_critic, i == 1);
        train_config_clear(&config);
    }
}

/* --- when rewards rest --- */
static struct tenants_curve make_curve(size_t count, double (*reward)(size_t i))
{
    struct tenants_curve c = {.functions = 2, .count = count};
    c.rounds = xcalloc(count, sizeof(*c.rounds));
    c.rewards = xcalloc(2 * count, sizeof(*c.rewards));
    for (size_t i = 0; i < count; i++) {
        c.rounds[i].episodes = i + 1;
        c.rounds[i].reward = reward(i);
        c.rewards[2 * i] = 1;
        c.rewards[2 * i + 1] = reward(i);
    }
    return c;
}

static double step_up(size_t i)
{
    return i < 100 ? 0.6 : 1;
}

static double rise(size_t i)
{
    return (double)i;
}

/* The mean of 20 is within 5 % of 1 when at most two of them are 0.6. */
static void test_rewards_rest(void **state)
{
    (void)state;
    struct tenants_curve step = make_curve(300, step_up), rising = make_curve(300, rise);
    assert_true(tenants_converged(&step, TENANTS_MEAN) == 118);
    assert_true(tenants_converged(&step, 1) == 118);
    assert_true(tenants_converged(&step, 0) == 20); /* of the first window on */
    assert_true(isnan(tenants_converged(&rising, TENANTS_MEAN)));
    assert_true(tenants_first_reward(&rising) == 1.5);         /* of 0 to 3 */
    assert_true(tenants_last_reward(&rising) == 289.5);        /* of 280 to 299 */
    assert_true(fabs(tenants_drop(&step, &step) - 40) < 1e-9); /* from 1 to 0.6 */
    tenants_curve_clear(&step);
    tenants_curve_clear(&rising);
}

/* --- judging --- */
static void test_ensure_is_judged_on_the_same_requests(void **state)
{
    (void)state;
    struct experiment_run run = {.seed = 3, .effort = 0.01};
    struct tenants alone = {NULL, TENANT_KINDS, true, false, 0}, shared = alone;
    struct tenant_figures a[TENANT_KINDS], b[TENANT_KINDS], again[TENANT_KINDS];
    struct error err;
    shared.alone = false;
    assert_int_equal(tenants_judge(&run, &alone, NULL, a, &err), 0);
    assert_int_equal(tenants_judge(&run, &shared, NULL, b, &err), 0);
    assert_int_equal(tenants_judge(&run, &shared, NULL, again, &err), 0);
    for (size_t i = 0; i < TENANT_KINDS; i++) {
        assert_memory_equal(&b[i], &again[i], sizeof(b[i]));
        /* The goal is twice the CPU of the 99th of 100 requests: none of these is done sooner. */
        assert_true(a[i].p99_ms > 0.8 * a[i].goal_ms / 2);
        assert_true(a[i].goal_ms == b[i].goal_ms);
        assert_true(a[i].replicas >= 1 && a[i].cpu >= 128 && a[i].cpu <= 2048);
        assert_true(a[i].cpu_utilization > 0 && a[i].cpu_utilization <= 1);
    }
    assert_true(tenants_slower(&(struct tenant_figures){.p99_ms = 150},
                               &(struct tenant_figures){.p99_ms = 100}) == 50);
}

/* --- the experiments --- */
static struct experiment_result *run_tiny(const struct experiment *e, size_t threads)
{
    const struct experiment_config config = {
        .seeds = 2, .seed = 5, .threads = threads, .effort = 0.001};
    struct error err;
    struct experiment_result *result = experiment_run(e, &config, &err);
    if (result == NULL)
        fail_msg("%s", err.message);
    return result;
}

static void assert_told(const struct experiment *e)
{
    assert_true(strlen(e->setting) > 0 && strlen(e->document) > 0);
    for (size_t i = 0; i < e->row_count; i++) {
        assert_non_null(e->rows[i].group);
        assert_non_null(e->rows[i].what);
        assert_int_equal(e->rows[i].aim == EXPERIMENT_NO_AIM, e->rows[i].otherwise == NULL);
    }
}

/* Too few episodes for rewards to rest; all else has a figure, and does not depend on threads. */
static void test_single_agents_give_every_figure(void **state)
{
    (void)state;
    const struct experiment *e = experiment_find("srl-isolation");
    struct experiment_result *one = run_tiny(e, 1), *two = run_tiny(e, 2);
    for (size_t i = 0; i < e->row_count; i++) {
        const double *a = experiment_values(one, i), *b = experiment_values(two, i);
        assert_memory_equal(a, b, 2 * sizeof(*a));
        assert_int_equal(isnan(a[0]) != 0, strcmp(e->rows[i].unit, "episodes") == 0);
    }
    assert_int_equal(experiment_plot(one)->panels[0].lines[0].count, 4);
    assert_int_equal(experiment_plot(one)->panels[0].lines[1].count, 1); /* of four episodes */
    experiment_result_free(one);
    experiment_result_free(two);
}

static void test_every_row_is_told(void **state)
{
    (void)state;
    static const char *const names[] = {"srl-isolation", "srl-multitenant", "mappo", "simppo"};
    for (size_t k = 0; k < ARRAY_LEN(names); k++)
        assert_told(experiment_find(names[k]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_comes_with_each_five_functions),
        cmocka_unit_test(test_the_papers_settings_are_those_of_the_paper),
        cmocka_unit_test(test_rewards_rest),
        cmocka_unit_test(test_ensure_is_judged_on_the_same_requests),
        cmocka_unit_test(test_single_agents_give_every_figure),
        cmocka_unit_test(test_every_row_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
