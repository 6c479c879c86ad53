/* FaaSRM's safeguard, against the rule of the document in whole numbers. */
#include "harvest/safeguard.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define assert_near(value, expected, tolerance)                                                    \
    do {                                                                                           \
        double value_ = (value), expected_ = (expected);                                           \
        if (!(fabs(value_ - expected_) <= (tolerance)))                                            \
            fail_msg(#value " is %.12g, not %.12g", value_, expected_);                            \
    } while (0)

enum { MOST = 8 };

/* --- the rule, word by word, for units of one; peaks are tenths --- */
struct rule {
    int low, high;
    bool is_safeguard;
};

static struct rule rule_of(int user, int given, int last_tenths, int highest_tenths)
{
    int peak = highest_tenths / 10;
    if (last_tenths * 10 >= 90 * user) /* not below 90 % of what the user asked for */
        return (struct rule){peak + 1 < MOST ? peak + 1 : MOST, MOST, false};
    if (last_tenths * 10 >= 90 * given) /* the last peak reached 90 % of the allocation */
        return (struct rule){user, user, true};
    return (struct rule){peak + 1 < user ? peak + 1 : user, user, false};
}

static void check_rule(int user, int given, int last, int highest, double unit)
{
    struct rule rule = rule_of(user, given, last, highest);
    const struct safeguard guard = {true, last / 10.0 * unit, given * unit, highest / 10.0 * unit};
    const struct safeguard_limits limits = {user * unit, MOST * unit, unit};
    struct safeguard_options options = safeguard_options(&guard, &limits);
    assert_int_equal(options.state == SAFEGUARD_SPIKE, rule.is_safeguard);
    if (options.count != (size_t)(rule.high - rule.low) + 1)
        fail_msg("user %d, given %d, last %d, highest %d: %zu options, not %d to %d", user, given,
                 last, highest, options.count, rule.low, rule.high);
    for (size_t i = 0; i < options.count; i++)
        assert_near(safeguard_option(&options, i), (rule.low + (int)i) * unit, 1e-9 * unit);
}

/* Cores, memory in steps of 64 MB, cores in tenths: the same mechanism. */
static void test_every_case_is_as_the_rule_says(void **state)
{
    const double units[] = {1, 64, 0.1};
    (void)state;
    for (size_t u = 0; u < 3; u++)
        for (int user = 1; user <= MOST; user++)
            for (int given = 1; given <= MOST; given++)
                for (int last = 0; last <= 10 * given; last++)
                    for (int highest = last; highest <= 10 * MOST; highest++)
                        check_rule(user, given, last, highest, units[u]);
}

/* --- from one run to the next --- */
static const struct safeguard_limits cores = {.user = 6, .most = MOST, .step = 1};

/* A run with the i-th option (from the end: -1) that uses so much. */
static double run(struct safeguard *guard, int i, double used)
{
    struct safeguard_options options = safeguard_options(guard, &cores);
    double given = safeguard_option(&options, i < 0 ? options.count - 1 : (size_t)i);
    safeguard_see(guard, &options, given, fmin(used, given));
    return given;
}

static void test_first_run_has_what_the_user_asked_for(void **state)
{
    struct safeguard guard = {0};
    (void)state;
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_FIRST);
    struct safeguard_options options = safeguard_options(&guard, &cores);
    assert_int_equal(options.count, 1);
    assert_near(safeguard_option(&options, 0), 6, 0);
}

static void test_spike_returns_all_and_calibrates_anew(void **state)
{
    struct safeguard guard = {0};
    (void)state;
    assert_near(run(&guard, 0, 4), 6, 0); /* calibrates: a peak of 4 */
    assert_near(run(&guard, 0, 2), 5, 0); /* harvested; the peak stays 4 */
    assert_near(run(&guard, 0, 5), 5, 0); /* all of it in use */
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_SPIKE);
    assert_near(run(&guard, 0, 1), 6, 0); /* at once what the user asked for */
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_OVER);
    assert_near(run(&guard, 0, 1), 2, 0); /* the old peak of 5 is forgotten */
}

static void test_too_little_may_grow_up_to_the_most(void **state)
{
    struct safeguard guard = {0};
    (void)state;
    assert_near(run(&guard, 0, 9), 6, 0);
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_UNDER);
    assert_near(run(&guard, 0, 9), 7, 0);
    assert_near(run(&guard, -1, 9), 8, 0);
    assert_near(run(&guard, 0, 9), 8, 0); /* nothing lies above the most */
}

/* 5.4 is 90 % of 6: not below it. */
static void test_limits_of_nine_tenths(void **state)
{
    struct safeguard guard = {true, 5.4, 6, 5.4};
    (void)state;
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_UNDER);
    guard.last_peak = 5.39;
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_OVER);
    guard = (struct safeguard){true, 4.5, 5, 4.5};
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_SPIKE);
    guard.last_peak = 4.49;
    assert_int_equal(safeguard_state(&guard, &cores), SAFEGUARD_OVER);
}

static void test_runs_that_overlap(void **state)
{
    struct safeguard guard = {0};
    struct safeguard_options options = safeguard_options(&guard, &cores);
    (void)state;
    safeguard_see(&guard, &options, 6, 4);
    safeguard_see(&guard, &options, 6, 2); /* began before the other ended */
    assert_near(guard.highest_peak, 4, 0);
    struct safeguard_options low = safeguard_options(&guard, &cores);
    safeguard_see(&guard, &low, 5, 5);
    struct safeguard_options back = safeguard_options(&guard, &cores);
    assert_int_equal(back.state, SAFEGUARD_SPIKE);
    safeguard_see(&guard, &low, 5, 1); /* calibrates nothing */
    assert_near(guard.highest_peak, 5, 0);
    safeguard_see(&guard, &back, 6, 1);
    assert_near(guard.highest_peak, 1, 0);
}

static void test_what_the_user_asked_for_is_always_an_option(void **state)
{
    const struct safeguard_limits odd = {.user = 250, .most = 1000, .step = 100};
    const struct safeguard guard = {true, 30, 250, 30};
    struct safeguard_options options = safeguard_options(&guard, &odd);
    const double expected[] = {100, 200, 250};
    (void)state;
    assert_int_equal(options.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_near(safeguard_option(&options, i), expected[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case_is_as_the_rule_says),
        cmocka_unit_test(test_first_run_has_what_the_user_asked_for),
        cmocka_unit_test(test_spike_returns_all_and_calibrates_anew),
        cmocka_unit_test(test_too_little_may_grow_up_to_the_most),
        cmocka_unit_test(test_limits_of_nine_tenths),
        cmocka_unit_test(test_runs_that_overlap),
        cmocka_unit_test(test_what_the_user_asked_for_is_always_an_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
