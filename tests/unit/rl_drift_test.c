/* Drift: rarely told where there is none, soon where there is. Rates and delays by Monte Carlo, on
 * series whose theory is known. */
#include "rl/drift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DAY   5760 /* intervals of 15 s */
#define WEEK  40320
#define WEEKS 10

/* --- series --- */
struct series {
    struct random random;
    double carry; /* what of a deviation is left an interval later */
    double (*reward)(double x, long t);
    double x;
    long t;
};

static double next(struct series *s)
{
    s->x = s->carry * s->x + sqrt(1 - s->carry * s->carry) * random_normal(&s->random);
    return s->reward(s->x, s->t++);
}

static double plain(double x, long t)
{
    (void)t;
    return 0.85 + 0.05 * x;
}

/* As SLO preservation: mostly 1, now and then far below. */
static double skewed(double x, long t)
{
    (void)t;
    return 1 - 0.3 / (1 + exp(1.5 - 1.2 * x));
}

static double daily(double x, long t)
{
    return 0.8 + 0.1 * sin(6.283185307179586 * (double)t / DAY) + 0.05 * x;
}

/* Office hours: steps that no slot ends at, and afternoons that are twice as rough. */
static double office(double x, long t)
{
    long clock = t % DAY;
    return 0.8 - (clock > 1900 && clock < 3500 ? 0.15 : 0) + (clock > 3000 ? 0.1 : 0.05) * x;
}

static struct rl_drift begin(size_t period)
{
    struct rl_drift drift;
    struct error err;
    struct rl_drift_config config = rl_drift_default;
    config.period = period;
    if (rl_drift_init(&drift, &config, &err) < 0)
        fail_msg("%s", err.message);
    return drift;
}

/* How often something is raised in these steps. */
static int watch(struct rl_drift *drift, struct series *s, long steps)
{
    int raised = 0;
    unsigned before = drift->raised;
    for (long t = 0; t < steps; t++) {
        unsigned now = rl_drift_add(drift, next(s));
        raised += (now & ~before) != 0;
        before = now;
    }
    return raised;
}

static const struct kind {
    double (*reward)(double x, long t);
    double carry;
    size_t period;
    long found; /* intervals within which a fall by 0.4 is told */
} kinds[] = {
    {plain, 0, 0, 40},     {plain, 0.9, 0, 48},  {skewed, 0, 0, 40},     {skewed, 0.95, 0, 72},
    {daily, 0.8, DAY, 48}, {office, 0, DAY, 48}, {office, 0.8, DAY, 64},
};

static void test_a_stationary_series_raises_less_than_one_alarm_a_week(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        int raised = 0;
        for (uint64_t run = 0; run < WEEKS; run++) {
            struct series s = {random_stream(run, k), kinds[k].carry, kinds[k].reward, 0, 0};
            struct rl_drift drift = begin(kinds[k].period);
            raised += watch(&drift, &s, (kinds[k].period ? DAY : 1024) + WEEK);
            assert_true(rl_drift_is_ready(&drift));
        }
        if (raised >= WEEKS / 2)
            fail_msg("series %zu: %d alarms in %d weeks", k, raised, WEEKS);
    }
}

/* --- what is told, and when --- */
struct change {
    double shift, stretch; /* of what a reward is off 0.85 */
};

static long until_raised(struct rl_drift *drift, struct series *s, struct change c, unsigned kind,
                         long most)
{
    for (long t = 1; t <= most; t++) {
        double reward = next(s);
        reward = c.shift + (c.stretch > 0 ? 0.85 + c.stretch * (reward - 0.85) : reward);
        if (rl_drift_add(drift, reward) & kind)
            return t;
    }
    return most + 1;
}

static void test_a_large_fall_is_told_within_minutes(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (uint64_t run = 0; run < WEEKS; run++) {
            struct series s = {random_stream(run, 50 + k), kinds[k].carry, kinds[k].reward, 0, 0};
            struct rl_drift drift = begin(kinds[k].period);
            watch(&drift, &s, (kinds[k].period ? 2 * DAY : 1500) + (long)run * 97);
            long delay = until_raised(&drift, &s, (struct change){-0.4, 0}, RL_DRIFT_WORSE, 500);
            if (delay > kinds[k].found)
                fail_msg("series %zu: told after %ld intervals", k, delay);
        }
}

/* A shift of d deviations adds d − slack with each block, so that the limit is reached after
 * limit / (d − slack) in the mean. The deviation of 8 independent rewards of 0.05 is 0.05 / √8;
 * that of blocks counts √2 times. */
static void test_the_delay_is_that_of_theory(void **state)
{
    enum { RUNS = 200 };
    const double d = 2.5;
    const struct rl_drift_config *c = &rl_drift_default;
    double sum = 0, blocks = c->limit / (d - c->slack);
    (void)state;
    for (uint64_t run = 0; run < RUNS; run++) {
        struct series s = {random_stream(run, 99), 0, plain, 0, 0};
        struct rl_drift drift = begin(0);
        watch(&drift, &s, 8000);
        struct change fall = {-d * 0.05 / 2, 0};
        sum += (double)until_raised(&drift, &s, fall, RL_DRIFT_WORSE, 1000) / 8;
    }
    /* The last block is a whole one, and estimates of the deviation are at least these. */
    assert_true(sum / RUNS > 0.9 * blocks && sum / RUNS < 1.4 * blocks);
}

static void test_a_rise_and_a_spread_are_told_as_such(void **state)
{
    (void)state;
    for (uint64_t run = 0; run < WEEKS; run++) {
        struct series s = {random_stream(run, 77), 0.5, plain, 0, 0};
        struct rl_drift drift = begin(0), other;
        watch(&drift, &s, 4000);
        other = drift;
        assert_true(until_raised(&drift, &s, (struct change){0.2, 0}, ~0u, 100) <= 40);
        assert_int_equal(drift.raised, RL_DRIFT_BETTER);
        assert_true(until_raised(&other, &s, (struct change){0, 4}, RL_DRIFT_WILDER, 200) <= 120);
        assert_true(other.raised & RL_DRIFT_WILDER);
    }
}

/* --- hysteresis, missing rewards, what cannot be --- */
static void test_it_is_taken_back_when_all_is_as_before(void **state)
{
    (void)state;
    struct series s = {random_stream(1, 1), 0.5, plain, 0, 0};
    struct rl_drift drift = begin(0);
    watch(&drift, &s, 4000);
    assert_true(until_raised(&drift, &s, (struct change){-0.3, 0}, RL_DRIFT_WORSE, 100) <= 40);
    for (int t = 0; t < 400; t++) /* it stays raised while it lasts */
        assert_true(rl_drift_add(&drift, next(&s) - 0.3) & RL_DRIFT_WORSE);
    long back = 0;
    while (rl_drift_add(&drift, next(&s)))
        assert_true(++back < 8 * 40); /* one limit, half of one slack a block, and chance */
    assert_true(back > 8 * 10);
    assert_int_equal(watch(&drift, &s, 4000), 0);
}

static void test_what_is_forgotten_is_learned_again(void **state)
{
    (void)state;
    struct series s = {random_stream(2, 1), 0.5, plain, 0, 0};
    struct rl_drift drift = begin(0);
    watch(&drift, &s, 4000);
    assert_true(until_raised(&drift, &s, (struct change){-0.3, 0}, RL_DRIFT_WORSE, 100) <= 40);
    rl_drift_forget(&drift);
    assert_int_equal(drift.raised, 0);
    assert_false(rl_drift_is_ready(&drift));
    for (int t = 0; t < 6000; t++)
        assert_int_equal(rl_drift_add(&drift, next(&s) - 0.3), 0);
    assert_true(rl_drift_is_ready(&drift));
}

/* A day is seen before any is judged, and the clock goes on where rewards are missing. */
static void test_a_pattern_is_known_after_a_period(void **state)
{
    (void)state;
    struct series s = {random_stream(3, 1), 0.5, office, 0, 0};
    struct rl_drift drift = begin(DAY);
    for (long t = 0; t < DAY - 300; t++)
        assert_int_equal(rl_drift_add(&drift, next(&s)), 0);
    assert_false(rl_drift_is_ready(&drift));
    watch(&drift, &s, 600);
    assert_true(rl_drift_is_ready(&drift));
    for (long t = 0; t < DAY / 2; t++) { /* half a day is missing */
        next(&s);
        assert_int_equal(rl_drift_add(&drift, NAN), 0);
    }
    assert_int_equal(watch(&drift, &s, 2 * DAY), 0);
}

static void test_an_idle_function_is_not_judged_by_rounding(void **state)
{
    (void)state;
    struct rl_drift drift = begin(0);
    for (int t = 0; t < 4000; t++)
        assert_int_equal(rl_drift_add(&drift, 0.7), 0);
    for (int t = 0; t < 4000; t++)
        assert_int_equal(rl_drift_add(&drift, 0.699), 0);
    long t = 1;
    while (!(rl_drift_add(&drift, 0.4) & RL_DRIFT_WORSE))
        assert_true(++t <= 40);
}

static void test_what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct rl_drift drift;
    struct error err;
    struct rl_drift_config wrong[] = {rl_drift_default, rl_drift_default, rl_drift_default,
                                      rl_drift_default, rl_drift_default};
    wrong[0].block = 1;
    wrong[1].limit = NAN;
    wrong[2].slots = RL_DRIFT_SLOTS + 1;
    wrong[3].period = 100;
    wrong[4].floor = 0;
    static const char *const names[] = {"block", "limit", "slots", "period", "floor"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(rl_drift_init(&drift, &wrong[i], &err), -1);
        assert_non_null(strstr(err.message, names[i]));
    }
}

/* --- inputs --- */
#define FEATURES 6

/* Two features that hang together, others by themselves; each workload sits elsewhere. */
static void draw_row(struct random *r, const double *at, float *row)
{
    double common = random_normal(r);
    for (size_t i = 0; i < FEATURES; i++)
        row[i] =
            (float)(at[i] + 0.1 * (i < 2 ? common + 0.1 * random_normal(r) : random_normal(r)));
}

static struct rl_inputs *learn_inputs(struct random *r)
{
    struct error err;
    struct rl_inputs *in = rl_inputs_new(FEATURES, 8, 400, 1, &err);
    float row[FEATURES];
    for (int workload = 0; workload < 60; workload++) {
        double at[FEATURES];
        at[0] = at[1] = random_uniform(r);
        for (size_t i = 2; i < FEATURES; i++)
            at[i] = random_uniform(r);
        for (int t = 0; t < 200; t++) {
            draw_row(r, at, row);
            rl_inputs_learn(in, row, t == 0);
        }
    }
    if (rl_inputs_seal(in, &err) < 0)
        fail_msg("%s", err.message);
    return in;
}

static bool serve(struct rl_inputs *in, struct random *r, const double *at, int steps)
{
    float row[FEATURES];
    bool raised = false;
    for (int t = 0; t < steps; t++) {
        draw_row(r, at, row);
        raised = rl_inputs_add(in, row);
    }
    return raised;
}

static void test_inputs_like_those_learned_from_are_fine(void **state)
{
    (void)state;
    struct random r = random_stream(4, 0);
    struct rl_inputs *in = learn_inputs(&r);
    int raised = 0;
    for (int workload = 0; workload < 200; workload++) {
        double at[FEATURES];
        at[0] = at[1] = random_uniform(&r);
        for (size_t i = 2; i < FEATURES; i++)
            at[i] = random_uniform(&r);
        rl_inputs_forget(in);
        raised += serve(in, &r, at, 400);
    }
    assert_int_equal(raised, 0);
    rl_inputs_free(in);
}

static void test_inputs_beyond_them_are_told_and_taken_back(void **state)
{
    (void)state;
    struct random r = random_stream(5, 0);
    struct rl_inputs *in = learn_inputs(&r);
    const double usual[FEATURES] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    const double far[FEATURES] = {0.5, 0.5, 0.5, 3, 0.5, 0.5};
    const double apart[FEATURES] = {0.2, 0.8, 0.5, 0.5, 0.5, 0.5}; /* each alone is usual */
    assert_false(serve(in, &r, usual, 400));
    assert_false(serve(in, &r, far, 8 * 8));
    assert_true(serve(in, &r, far, 8));
    assert_true(rl_inputs_distance(in) > 1);
    assert_true(serve(in, &r, usual, 8 * 8)); /* for a while */
    assert_false(serve(in, &r, usual, 8 * 8));
    assert_true(serve(in, &r, apart, 8 * 9));
    rl_inputs_forget(in);
    assert_false(serve(in, &r, usual, 400));
    rl_inputs_free(in);
}

static void test_inputs_that_cannot_tell_are_refused(void **state)
{
    (void)state;
    struct error err;
    float row[3] = {1, 2, 3};
    assert_null(rl_inputs_new(0, 8, 100, 1, &err));
    assert_null(rl_inputs_new(3, 0, 100, 1, &err));
    assert_null(rl_inputs_new(30, 8, 100, 1, &err));
    struct rl_inputs *in = rl_inputs_new(3, 8, 100, 1, &err);
    for (int t = 0; t < 80; t++)
        rl_inputs_learn(in, row, false);
    assert_int_equal(rl_inputs_seal(in, &err), -1);
    assert_false(rl_inputs_add(in, row));
    rl_inputs_free(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stationary_series_raises_less_than_one_alarm_a_week),
        cmocka_unit_test(test_a_large_fall_is_told_within_minutes),
        cmocka_unit_test(test_the_delay_is_that_of_theory),
        cmocka_unit_test(test_a_rise_and_a_spread_are_told_as_such),
        cmocka_unit_test(test_it_is_taken_back_when_all_is_as_before),
        cmocka_unit_test(test_what_is_forgotten_is_learned_again),
        cmocka_unit_test(test_a_pattern_is_known_after_a_period),
        cmocka_unit_test(test_an_idle_function_is_not_judged_by_rounding),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_inputs_like_those_learned_from_are_fine),
        cmocka_unit_test(test_inputs_beyond_them_are_told_and_taken_back),
        cmocka_unit_test(test_inputs_that_cannot_tell_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
