/* Single invocations on workers: the model by hand, the platform by what must always hold. */
#include "harvest/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define assert_near(value, expected, tolerance)                                                    \
    do {                                                                                           \
        double value_ = (value), expected_ = (expected);                                           \
        if (!(fabs(value_ - expected_) <= (tolerance)))                                            \
            fail_msg(#value " is %.12g, not %.12g", value_, expected_);                            \
    } while (0)

static const struct harvest_cluster one_worker = {
    .workers = 1, .capacity = {8, 2048}, .most = {8, 512}, .step = {1, 64}};

/* --- the model --- */
static void test_execution_time_by_hand(void **state)
{
    const struct harvest_demand d = {.fixed_s = 1, .work_s = 6, .parallelism = 3, .memory_mb = 128};
    const struct {
        double given[2], time_s, peak[2];
    } cases[] = {
        {{1, 128}, 7, {1, 128}}, {{2, 128}, 4, {2, 128}}, {{3, 512}, 3, {3, 128}},
        {{8, 128}, 3, {3, 128}}, {{3, 64}, 6, {3, 64}},   {{1, 64}, 14, {1, 64}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double peak[HARVEST_RESOURCES];
        assert_near(harvest_execution_s(&d, cases[i].given), cases[i].time_s, 1e-12);
        harvest_peak(&d, cases[i].given, peak);
        assert_near(peak[HARVEST_CPU], cases[i].peak[0], 0);
        assert_near(peak[HARVEST_MEMORY], cases[i].peak[1], 0);
    }
}

static void test_reward_by_hand(void **state)
{
    struct harvest_outcome o = {.execution_s = 3, .user_s = 4};
    (void)state;
    assert_near(harvest_reward(&o), -0.75, 1e-12);
    o.wait_s = 2;
    assert_near(harvest_reward(&o), -1.25, 1e-12);
    o = (struct harvest_outcome){.execution_s = 0.1, .user_s = 0.1, .wait_s = 2};
    assert_near(harvest_reward(&o), -3, 1e-12); /* waiting counts against 1 s at least */
    o.wait_s = 1000;
    assert_near(harvest_reward(&o), -10, 0);
}

/* --- the workload: published distributions, and what was asked for --- */
static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_functions_are_like_azures(void **state)
{
    const struct harvest_workload_config config = {
        .functions = 4000, .invocations = 4000, .occupancy = 0.5, .noise_low = 1, .noise_high = 1};
    struct harvest_workload load;
    static double time_s[4000], memory_mb[4000];
    double sequential = 0;
    (void)state;
    harvest_workload_make(&config, &harvest_simulation, 3, &load);
    for (size_t i = 0; i < 4000; i++) {
        time_s[i] = load.functions[i].one_core_s;
        memory_mb[i] = load.functions[i].memory_mb;
        sequential += load.functions[i].parallelism == 1;
    }
    qsort(time_s, 4000, sizeof(double), compare);
    qsort(memory_mb, 4000, sizeof(double), compare);
    /* Medians: e^-0.38 s, and λ · (2^(1/k) - 1)^(1/c) MB; the 90th percentiles likewise. */
    assert_near(time_s[2000], 0.684, 0.1);
    assert_near(log(time_s[3600]), -0.38 + 1.2816 * 2.36, 0.2);
    assert_near(memory_mb[2000], 139.6, 4);
    assert_near(memory_mb[3600], 262, 13);
    assert_near(sequential / 4000, 0.5, 0.03);
    harvest_workload_clear(&load);
}

static void test_workload_is_what_was_asked_for(void **state)
{
    struct harvest_workload load;
    double core_s = 0;
    (void)state;
    harvest_workload_make(&harvest_azure, &harvest_simulation, 1, &load);
    assert_int_equal(load.function_count, 1000);
    assert_int_equal(load.invocation_count, 85470);
    for (size_t i = 0; i < load.invocation_count; i++) {
        const struct harvest_invocation *v = &load.invocations[i];
        const double *user = load.functions[v->function].user;
        assert_true(i == 0 || v->arrival_s >= v[-1].arrival_s);
        assert_near(v->user_s, harvest_execution_s(&v->demand, user), 0);
        assert_true(user[HARVEST_CPU] * 64 == user[HARVEST_MEMORY]); /* in proportion */
        core_s += v->user_s * user[HARVEST_CPU];
    }
    assert_near(core_s / (load.span_s * 20 * 8), 0.5, 1e-9);
    harvest_workload_clear(&load);
}

/* --- the platform, with invocations written down --- */
struct script {
    struct harvest_function functions[2];
    struct harvest_invocation invocations[4];
    struct harvest_outcome outcomes[4];
    double wanted[4][HARVEST_RESOURCES];
};

static void ask_script(void *self, const struct harvest_view *view, double *wanted)
{
    const struct script *s = self;
    memcpy(wanted, s->wanted[view->invocation], sizeof(s->wanted[0]));
}
static const struct harvest_manager scripted = {"script", ask_script, NULL};

static void run_script(struct script *s, size_t invocations)
{
    struct harvest_workload load = {s->functions, s->invocations, 2, invocations, 100};
    for (size_t i = 0; i < invocations; i++) {
        struct harvest_invocation *v = &s->invocations[i];
        v->noise = 1;
        v->user_s = harvest_execution_s(&v->demand, s->functions[v->function].user);
    }
    harvest_run(&one_worker, &load, &scripted, s, s->outcomes);
}

static void check_outcome(const struct harvest_outcome *o, double cores, double wait_s,
                          double execution_s)
{
    assert_near(o->given[HARVEST_CPU], cores, 0);
    assert_near(o->wait_s, wait_s, 1e-9);
    assert_near(o->execution_s, execution_s, 1e-9);
}

/* One with 6 of 8 cores; the second wants 8 and gets the 2 that lie idle, as its user asked for 2;
 * the third, for whom that is too little, waits for the first; the fourth comes after it. */
static void test_idle_is_lent_and_what_is_due_is_waited_for(void **state)
{
    struct script s = {
        .functions = {{.user = {2, 128}}, {.user = {4, 128}}},
        .invocations = {{0, 0, {0, 60, 8, 64}, 0, 0},
                        {0, 1, {0, 40, 8, 64}, 0, 0},
                        {1, 2, {0, 8, 4, 64}, 0, 0},
                        {0, 3, {0, 2, 1, 64}, 0, 0}},
        .wanted = {{6, 128}, {8, 128}, {4, 128}, {1, 64}},
    };
    (void)state;
    run_script(&s, 4);
    check_outcome(&s.outcomes[0], 6, 0, 10);
    check_outcome(&s.outcomes[1], 2, 0, 20);
    check_outcome(&s.outcomes[2], 4, 8, 2);
    check_outcome(&s.outcomes[3], 1, 7, 2);
    assert_false(s.outcomes[1].harvested);
    assert_true(s.outcomes[3].harvested);
    assert_near(harvest_rfet(&s.outcomes[0]), 10.0 / 30, 1e-12);
}

static void test_memory_is_waited_for_too(void **state)
{
    struct script s = {
        .functions = {{.user = {1, 512}}, {.user = {1, 512}}},
        .wanted = {{1, 512}, {1, 512}, {1, 512}, {1, 512}},
    };
    const struct harvest_cluster little = {
        .workers = 1, .capacity = {8, 1024}, .most = {8, 512}, .step = {1, 64}};
    struct harvest_workload load = {s.functions, s.invocations, 2, 3, 100};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        s.invocations[i] = (struct harvest_invocation){0, (double)i, {0, 10, 1, 64}, 1, 10};
    harvest_run(&little, &load, &scripted, &s, s.outcomes);
    check_outcome(&s.outcomes[1], 1, 0, 10);
    check_outcome(&s.outcomes[2], 1, 8, 10);
}

/* --- baselines --- */
static struct harvest_view view_of(const double *user, const struct harvest_record *record)
{
    return (struct harvest_view){
        .user = user, .record = record, .cluster = &one_worker, .free = {8, 2048}};
}

static void test_greedy_moves_by_a_step(void **state)
{
    const double user[] = {4, 256};
    struct harvest_record record = {0};
    double wanted[HARVEST_RESOURCES];
    struct harvest_view view = view_of(user, &record);
    const struct {
        double given[2], peak[2], wanted[2];
    } cases[] = {
        {{4, 256}, {3, 256}, {3, 320}}, /* 75 %: down; all: up */
        {{1, 64}, {0.5, 30}, {1, 64}},  /* no less than a step */
        {{8, 512}, {8, 500}, {8, 512}}, /* no more than the most */
        {{5, 320}, {4.5, 287}, {6, 256}},
    };
    (void)state;
    harvest_greedy.decide(NULL, &view, wanted);
    assert_memory_equal(wanted, user, sizeof(user)); /* nothing is known */
    record.done = 1;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        memcpy(record.last_given, cases[i].given, sizeof(record.last_given));
        memcpy(record.last_peak, cases[i].peak, sizeof(record.last_peak));
        harvest_greedy.decide(NULL, &view, wanted);
        assert_memory_equal(wanted, cases[i].wanted, sizeof(wanted));
    }
}

static double ask_ensure(struct harvest_ensure *e, const struct harvest_view *view,
                         double latency_s)
{
    const struct harvest_outcome o = {.execution_s = latency_s};
    double wanted[HARVEST_RESOURCES];
    for (size_t i = 0; i < 3; i++)
        harvest_ensure.done(e, view, &o);
    harvest_ensure.decide(e, view, wanted);
    assert_near(wanted[HARVEST_MEMORY], view->user[HARVEST_MEMORY], 0);
    return wanted[HARVEST_CPU];
}

static void test_ensure_adds_cores_when_it_got_slower(void **state)
{
    const double user[] = {2, 128};
    struct harvest_record record = {.done = 3, .mean_execution_s = 1};
    struct harvest_view view = view_of(user, &record);
    struct harvest_ensure *e = harvest_ensure_new(1);
    (void)state;
    assert_near(ask_ensure(e, &view, 1.0), 2, 0);
    assert_near(ask_ensure(e, &view, 1.09), 2, 0);
    assert_near(ask_ensure(e, &view, 1.11), 4, 0); /* 10 % slower than its best */
    view.free[HARVEST_CPU] = 2;                    /* the platform has none left: others need it */
    assert_near(ask_ensure(e, &view, 1.0), 2, 0);
    harvest_ensure_free(e);
}

/* --- what must hold whoever decides --- */
static const struct harvest_workload_config little = {
    .functions = 60, .invocations = 3000, .occupancy = 0.7, .noise_low = 1, .noise_high = 1};
static const struct harvest_cluster few = {
    .workers = 3, .capacity = {8, 2048}, .most = {8, 512}, .step = {1, 64}};

struct change { /* of what is in use */
    double time_s, cores, memory_mb;
};

/* What ends at a time is given back before what begins then. */
static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    return (x->cores > y->cores) - (x->cores < y->cores);
}

static void check_capacity(const struct harvest_workload *load, const struct harvest_outcome *o)
{
    size_t n = load->invocation_count;
    struct change *changes = xcalloc(2 * n, sizeof(*changes)), in_use = {0};
    for (size_t i = 0; i < n; i++) {
        double start_s = load->invocations[i].arrival_s + o[i].wait_s;
        double cores = o[i].given[HARVEST_CPU], memory_mb = o[i].given[HARVEST_MEMORY];
        changes[2 * i] = (struct change){start_s, cores, memory_mb};
        /* a little earlier: times are sums of others */
        changes[2 * i + 1] = (struct change){start_s + o[i].execution_s - 1e-7, -cores, -memory_mb};
    }
    qsort(changes, 2 * n, sizeof(*changes), compare_changes);
    for (size_t i = 0; i < 2 * n; i++) {
        in_use.cores += changes[i].cores;
        in_use.memory_mb += changes[i].memory_mb;
        assert_true(in_use.cores <= 3 * 8 + 1e-9 && in_use.memory_mb <= 3 * 2048 + 1e-9);
    }
    free(changes);
}

static void check_outcomes(const struct harvest_workload *load, const struct harvest_outcome *o)
{
    check_capacity(load, o);
    for (size_t i = 0; i < load->invocation_count; i++) {
        const struct harvest_demand *d = &load->invocations[i].demand;
        assert_true(o[i].wait_s >= 0 && o[i].given[0] >= 1 && o[i].given[1] >= 64);
        assert_true(o[i].given[0] <= 8 && o[i].given[1] <= 512);
        assert_near(o[i].execution_s, harvest_execution_s(d, o[i].given), 1e-9);
        assert_near(o[i].slowdown, harvest_rfet(&o[i]), 1e-9);
    }
}

static void test_capacity_holds_whoever_decides(void **state)
{
    struct harvest_workload load;
    static struct harvest_outcome outcomes[3000];
    struct harvest_ensure *ensure = harvest_ensure_new(little.functions);
    (void)state;
    harvest_workload_make(&little, &few, 5, &load);
    harvest_run(&few, &load, &harvest_fixed, NULL, outcomes);
    check_outcomes(&load, outcomes);
    for (size_t i = 0; i < 3000; i++) {
        assert_near(harvest_rfet(&outcomes[i]), 1, 0);
        assert_false(outcomes[i].harvested);
    }
    harvest_run(&few, &load, &harvest_greedy, NULL, outcomes);
    check_outcomes(&load, outcomes);
    harvest_run(&few, &load, &harvest_ensure, ensure, outcomes);
    check_outcomes(&load, outcomes);
    harvest_chance_run(&few, &load, 1, outcomes);
    check_outcomes(&load, outcomes);
    harvest_run(&few, &load, &harvest_oracle, &load, outcomes);
    check_outcomes(&load, outcomes);
    harvest_ensure_free(ensure);
    harvest_workload_clear(&load);
}

/* On a platform without end, nobody is faster than who knows the input. */
static void test_nobody_beats_the_oracle(void **state)
{
    struct harvest_cluster endless = few;
    struct harvest_workload load;
    static struct harvest_outcome best[3000], outcomes[3000];
    (void)state;
    endless.workers = 500;
    harvest_workload_make(&little, &few, 6, &load);
    harvest_run(&endless, &load, &harvest_oracle, &load, best);
    harvest_chance_run(&endless, &load, 1, outcomes);
    for (size_t i = 0; i < 3000; i++) {
        assert_true(best[i].execution_s <= outcomes[i].execution_s * (1 + 1e-12));
        assert_true(harvest_rfet(&best[i]) <= 1 + 1e-12);
    }
    harvest_workload_clear(&load);
}

/* The first invocations of a function, until one is done, have what its user asked for. */
static void test_safeguard_calibrates_in_the_run(void **state)
{
    struct harvest_workload load;
    static struct harvest_outcome outcomes[3000];
    bool seen[60] = {0};
    (void)state;
    harvest_workload_make(&little, &few, 7, &load);
    harvest_chance_run(&few, &load, 1, outcomes);
    for (size_t i = 0; i < 3000; i++) {
        uint32_t f = load.invocations[i].function;
        if (!seen[f])
            assert_memory_equal(outcomes[i].given, load.functions[f].user,
                                sizeof(outcomes[i].given));
        seen[f] = true;
    }
    harvest_workload_clear(&load);
}

/* --- the policy --- */
static double train_and_run(uint64_t seed, struct harvest_outcome *outcomes)
{
    struct harvest_workload load;
    struct error err = {0};
    struct harvest_policy *policy = harvest_policy_new(&rl_score_default, true, 2, seed, &err);
    assert_non_null(policy);
    for (uint64_t i = 0; i < 2; i++) {
        harvest_workload_make(&little, &few, 100 + i, &load);
        assert_int_equal(harvest_policy_train(policy, &few, &load, outcomes, &err), 0);
        harvest_workload_clear(&load);
    }
    harvest_workload_make(&little, &few, 8, &load);
    harvest_policy_run(policy, &few, &load, outcomes);
    check_outcomes(&load, outcomes);
    harvest_workload_clear(&load);
    harvest_policy_free(policy);
    return harvest_summarise(outcomes, 3000).mean_rfet;
}

static void test_policy_is_the_same_for_a_seed_and_better_than_fixed(void **state)
{
    static struct harvest_outcome one[3000], again[3000];
    (void)state;
    assert_true(train_and_run(1, one) < 1);
    train_and_run(1, again);
    assert_memory_equal(one, again, sizeof(one));
}

/* --- summing up --- */
static void test_summary_by_hand(void **state)
{
    const struct harvest_outcome o[] = {
        {.execution_s = 1, .user_s = 2, .slowdown = 0.5, .wait_s = 4},
        {.execution_s = 2, .user_s = 2, .slowdown = 1, .harvested = true},
        {.execution_s = 3, .user_s = 2, .slowdown = 1.2, .harvested = true}, /* and noise */
        {.execution_s = 8, .user_s = 8, .slowdown = 1},
    };
    double values[] = {5, 1, 4, 2, 3};
    struct harvest_summary s = harvest_summarise(o, 4);
    (void)state;
    assert_near(s.mean_rfet, (0.5 + 1 + 1.5 + 1) / 4, 1e-12);
    assert_near(s.p98_rfet, 1.5, 0);
    assert_near(s.p98_execution_s, 8, 0);
    assert_near(s.harvested, 0.5, 0);
    assert_near(s.accelerated, 0.25, 0);
    assert_near(s.slowed, 0.5, 0);
    assert_near(s.waited, 0.25, 0);
    assert_near(s.mean_wait_s, 1, 0);
    assert_near(harvest_quantile(values, 5, 0.6), 3, 0); /* the nearest rank */
    assert_near(harvest_quantile(values, 5, 0.61), 4, 0);
    assert_true(isnan(harvest_quantile(values, 0, 0.5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_execution_time_by_hand),
        cmocka_unit_test(test_reward_by_hand),
        cmocka_unit_test(test_functions_are_like_azures),
        cmocka_unit_test(test_workload_is_what_was_asked_for),
        cmocka_unit_test(test_idle_is_lent_and_what_is_due_is_waited_for),
        cmocka_unit_test(test_memory_is_waited_for_too),
        cmocka_unit_test(test_greedy_moves_by_a_step),
        cmocka_unit_test(test_ensure_adds_cores_when_it_got_slower),
        cmocka_unit_test(test_capacity_holds_whoever_decides),
        cmocka_unit_test(test_nobody_beats_the_oracle),
        cmocka_unit_test(test_safeguard_calibrates_in_the_run),
        cmocka_unit_test(test_policy_is_the_same_for_a_seed_and_better_than_fixed),
        cmocka_unit_test(test_summary_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
