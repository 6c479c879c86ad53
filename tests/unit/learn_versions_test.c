/* Which policies have decided on one function, as the dashboard tells them. */
#include "learn/learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_version(const struct learn_version *v, uint64_t number, const char *sha256,
                           enum learn_outcome outcome, int64_t from_ms, int64_t until_ms)
{
    assert_non_null(v);
    assert_int_equal(v->number, number);
    assert_string_equal(v->sha256, sha256);
    assert_int_equal(v->outcome, outcome);
    assert_int_equal(v->from_ms, from_ms);
    assert_int_equal(v->until_ms, until_ms);
}

static void nobody_has_decided(void **state)
{
    (void)state;
    struct learn_versions *v = learn_versions_new();
    learn_versions_take(v, NULL, LEARN_SHIPPED, 1);
    learn_versions_leave(v, LEARN_ROLLED_BACK, "nobody is there", 2);
    learn_versions_earned(v, -1);
    assert_int_equal(learn_versions_count(v), 0);
    assert_null(learn_versions_newest(v, 0));
    assert_null(learn_versions_current(v));
    learn_versions_free(v);
    learn_versions_free(NULL);
}

/* Only those intervals count that it decided. */
static void what_each_earned(void **state)
{
    (void)state;
    struct learn_versions *v = learn_versions_new();
    learn_versions_take(v, "a", LEARN_SHIPPED, 10);
    assert_true(isnan(learn_versions_current(v)->earned));
    for (int i = 1; i <= 4; i++)
        learn_versions_earned(v, -i);
    learn_versions_earned(v, NAN);
    learn_versions_take(v, "a", LEARN_SHIPPED, 20); /* each interval says so */
    assert_version(learn_versions_current(v), 1, "a", LEARN_DECIDES, 10, 0);
    learn_versions_take(v, "b", LEARN_BOOTSTRAPPED, 30);
    learn_versions_earned(v, -0.5);
    learn_versions_leave(v, LEARN_WAITS, "it drifted", 40);
    learn_versions_take(v, NULL, LEARN_SHIPPED, 40);
    learn_versions_earned(v, -100); /* by thresholds */
    assert_version(learn_versions_newest(v, 0), 2, "b", LEARN_WAITS, 30, 40);
    assert_true(learn_versions_newest(v, 0)->earned == -0.5);
    assert_version(learn_versions_newest(v, 1), 1, "a", LEARN_REPLACED, 10, 30);
    assert_true(fabs(learn_versions_newest(v, 1)->earned + 2.5) < 1e-12);
    assert_int_equal(learn_versions_newest(v, 1)->intervals, 4);
    assert_string_equal(learn_versions_newest(v, 1)->why, "");
    learn_versions_free(v);
}

/* Thresholds have decided for a while; nothing better was found, or something was. */
static void after_thresholds(void **state)
{
    (void)state;
    for (int better = 0; better <= 1; better++) {
        struct learn_versions *v = learn_versions_new();
        learn_versions_take(v, "a", LEARN_KEPT, 10);
        learn_versions_leave(v, LEARN_WAITS, "it drifted", 20);
        learn_versions_take(v, NULL, LEARN_SHIPPED, 20);
        learn_versions_take(v, NULL, LEARN_SHIPPED, 25);
        assert_version(learn_versions_current(v), 1, "a", LEARN_WAITS, 10, 20);
        learn_versions_take(v, better ? "b" : "a", LEARN_RETRAINED, 30);
        const struct learn_version *oldest = learn_versions_newest(v, learn_versions_count(v) - 1);
        assert_int_equal(learn_versions_count(v), 1 + better);
        assert_int_equal(oldest->origin, LEARN_KEPT);
        assert_version(oldest, 1, "a", better ? LEARN_REPLACED : LEARN_DECIDES, 10,
                       better ? 20 : 0);
        assert_string_equal(oldest->why, better ? "it drifted" : "");
        learn_versions_free(v);
    }
}

static void one_is_taken_back(void **state)
{
    (void)state;
    struct learn_versions *v = learn_versions_new();
    learn_versions_take(v, "a", LEARN_SHIPPED, 10);
    learn_versions_take(v, "b", LEARN_BOOTSTRAPPED, 20);
    learn_versions_leave(v, LEARN_ROLLED_BACK, "it earned less", 30);
    learn_versions_earned(v, -9); /* it does not decide any more */
    learn_versions_take(v, "a", LEARN_SHIPPED, 30);
    assert_version(learn_versions_newest(v, 0), 2, "b", LEARN_ROLLED_BACK, 20, 30);
    assert_string_equal(learn_versions_newest(v, 0)->why, "it earned less");
    assert_version(learn_versions_current(v), 1, "a", LEARN_DECIDES, 10, 0);
    learn_versions_take(v, "c", LEARN_RETRAINED, 40);
    assert_version(learn_versions_newest(v, 1), 2, "b", LEARN_ROLLED_BACK, 20, 30);
    assert_version(learn_versions_newest(v, 2), 1, "a", LEARN_REPLACED, 10, 40);
    learn_versions_free(v);
}

/* The general policy, to which each of many is taken back, is never forgotten meanwhile. */
static void few_are_kept(void **state)
{
    (void)state;
    struct learn_versions *v = learn_versions_new();
    char name[16];
    learn_versions_take(v, "general", LEARN_SHIPPED, 0);
    for (int i = 1; i <= 100; i++) {
        snprintf(name, sizeof(name), "own %d", i);
        learn_versions_take(v, name, LEARN_BOOTSTRAPPED, i);
        learn_versions_leave(v, LEARN_ROLLED_BACK, "it earned less", i);
        learn_versions_take(v, "general", LEARN_SHIPPED, i);
    }
    assert_int_equal(learn_versions_count(v), LEARN_VERSIONS);
    assert_int_equal(learn_versions_newest(v, 0)->number, 101);
    assert_int_equal(learn_versions_current(v)->number, 1);
    for (size_t i = 0; i + 1 < LEARN_VERSIONS; i++)
        assert_int_equal(learn_versions_newest(v, i)->number, 101 - i);
    for (int i = 1; i <= 10; i++) {
        snprintf(name, sizeof(name), "new %d", i);
        learn_versions_take(v, name, LEARN_RETRAINED, 200 + i);
    }
    assert_int_equal(learn_versions_count(v), LEARN_VERSIONS);
    assert_string_equal(learn_versions_current(v)->sha256, "new 10");
    assert_string_equal(learn_versions_newest(v, LEARN_VERSIONS - 1)->sha256, "new 3");
    learn_versions_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_decided), cmocka_unit_test(what_each_earned),
        cmocka_unit_test(after_thresholds),   cmocka_unit_test(one_is_taken_back),
        cmocka_unit_test(few_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
