/* The experiment faasrm, with next to no effort: that it runs, alike in any number of threads, and
 * that figures which are known beforehand come out. */
#include "experiment/experiment.h"

#include "rl_worlds.h"

#include <math.h>
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

static struct experiment_result *run(size_t threads)
{
    const struct experiment_config config = {
        .seeds = 2, .seed = 1, .threads = threads, .effort = 0.01};
    struct error err = {0};
    struct experiment_result *result = experiment_run(experiment_find("faasrm"), &config, &err);
    if (result == NULL)
        fail_msg("%s", err.message);
    return result;
}

/* The row of a group; the first one that is so called. */
static double value_of(const struct experiment_result *result, const char *group, const char *what)
{
    const struct experiment *e = experiment_find("faasrm");
    for (size_t i = 0; i < e->row_count; i++)
        if (strcmp(e->rows[i].group, group) == 0 && strcmp(e->rows[i].what, what) == 0)
            return experiment_mean(result, i);
    fail_msg("there is no row %s: %s", group, what);
    return NAN;
}

/* Fixed is what RFET is measured by; no manager is faster than one that knows every input. */
static void check_known_figures(const struct experiment_result *result)
{
    const char *mean = "Simulation: mean RFET";
    double possible = value_of(result, mean, "what is possible");
    assert_near(value_of(result, mean, "Fixed"), 1, 1e-12);
    assert_true(possible < value_of(result, mean, "FaaSRM") && possible < 1);
    assert_true(value_of(result, mean, "FaaSRM, share of what is possible") < 100);
}

static void test_every_row_has_a_figure_whatever_the_number_of_threads(void **state)
{
    const struct experiment *e = experiment_find("faasrm");
    /* Sanitizers make it ten times slower: there it runs once. */
    struct experiment_result *two = run(2), *one = IS_SLOW ? NULL : run(1);
    (void)state;
    for (size_t i = 0; i < e->row_count; i++) {
        if (!isfinite(experiment_mean(two, i)))
            fail_msg("%s, %s: %g", e->rows[i].group, e->rows[i].what, experiment_mean(two, i));
        if (one)
            assert_memory_equal(experiment_values(one, i), experiment_values(two, i),
                                2 * sizeof(double));
    }
    check_known_figures(two);
    experiment_result_free(one);
    experiment_result_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_has_a_figure_whatever_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
