/* The documents' experiments: how seeds become figures and curves, and how a run ends. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "experiment/internal.h"

/* --- an experiment whose figures are known --- */
enum { SEED, AT_MOST, AT_LEAST, SOMETIMES, ROWS };
static const struct experiment_row rows[ROWS] = {
    [SEED] = {"g", "the seed", "", NULL, EXPERIMENT_NO_AIM, 0, NULL},
    [AT_MOST] = {"g", "the seed", "", "3", EXPERIMENT_AT_MOST, 3, "why"},
    [AT_LEAST] = {"g", "the seed", "", "3.1", EXPERIMENT_AT_LEAST, 3.1, "why"},
    [SOMETIMES] = {"g", "odd seeds", "ms", NULL, EXPERIMENT_AT_MOST, 100, "why"},
};
static const struct experiment_line lines[] = {{"a", "up"}, {"a", "down"}, {"b", "up"}};

/* As many points as the seed, but for seeds below 3. */
static void draw(struct experiment_run *run)
{
    double x[16], y[16], n = (double)run->seed;
    size_t count = run->seed < 3 ? 3 : run->seed;
    for (size_t i = 0; i < count; i++) {
        x[i] = 10 * (double)i;
        y[i] = n + (double)i;
    }
    run_line(run, 0, x, y, count);
    run_line(run, 2, x, y, count);
    for (size_t i = 0; i < count; i++)
        y[i] = -y[i];
    run_line(run, 1, x, y, count);
}

static int run_known(struct experiment_run *run, struct error *err)
{
    double n = (double)run->seed;
    run_set(run, SEED, n);
    run_set(run, AT_MOST, n);
    run_set(run, AT_LEAST, n);
    if (run->seed % 2 == 1)
        run_set(run, SOMETIMES, n);
    draw(run);
    return run_progress(run, 0.5, err);
}

static struct experiment make(int (*run)(struct experiment_run *run, struct error *err))
{
    return (struct experiment){.name = "known",
                               .title = "T",
                               .document = "D",
                               .setting = "S",
                               .rows = rows,
                               .row_count = ROWS,
                               .x_label = "x",
                               .lines = lines,
                               .line_count = ARRAY_LEN(lines),
                               .run = run};
}

static struct experiment_result *run_seeds(const struct experiment *e, size_t seeds, size_t threads)
{
    struct error err;
    const struct experiment_config config = {
        .seeds = seeds, .seed = 1, .threads = threads, .effort = 1};
    struct experiment_result *result = experiment_run(e, &config, &err);
    if (result == NULL)
        fail_msg("%s", err.message);
    return result;
}

static void assert_close(double is, double should)
{
    if (!(fabs(is - should) < 1e-12))
        fail_msg("%.17g is not %.17g", is, should);
}

/* --- figures --- */
static void test_figures_are_means_of_the_seeds(void **state)
{
    (void)state;
    const struct experiment e = make(run_known);
    struct experiment_result *r = run_seeds(&e, 5, 3);
    assert_ptr_equal(experiment_of(r), &e);
    assert_int_equal(experiment_seeds(r), 5);
    for (size_t i = 0; i < 5; i++)
        assert_close(experiment_values(r, SEED)[i], (double)(i + 1));
    assert_int_equal(experiment_count(r, SEED), 5);
    assert_close(experiment_mean(r, SEED), 3);
    assert_close(experiment_spread(r, SEED), sqrt(10.0 / 4)); /* 4 + 1 + 0 + 1 + 4 over n − 1 */
    assert_int_equal(experiment_count(r, SOMETIMES), 3);
    assert_close(experiment_mean(r, SOMETIMES), 3);
    assert_close(experiment_spread(r, SOMETIMES), 2); /* of 1, 3 and 5 */
    assert_true(isnan(experiment_values(r, SOMETIMES)[1]));
    assert_true(experiment_seconds(r) >= 0);
    experiment_result_free(r);
}

static void test_one_seed_has_no_spread(void **state)
{
    (void)state;
    const struct experiment e = make(run_known);
    struct experiment_result *r = run_seeds(&e, 1, 1);
    assert_close(experiment_mean(r, SEED), 1);
    assert_true(isnan(experiment_spread(r, SEED)));
    experiment_result_free(r);
}

static int set_nothing(struct experiment_run *run, struct error *err)
{
    (void)run, (void)err;
    return 0;
}

static void test_what_no_seed_has_is_not_reached(void **state)
{
    (void)state;
    const struct experiment e = make(set_nothing);
    struct experiment_result *r = run_seeds(&e, 2, 1);
    assert_int_equal(experiment_count(r, SEED), 0);
    assert_true(isnan(experiment_mean(r, SEED)));
    assert_true(experiment_reached(r, SEED)); /* it has no aim */
    assert_false(experiment_reached(r, AT_MOST));
    assert_false(experiment_reached(r, AT_LEAST));
    assert_int_equal(experiment_plot(r)->panels[0].lines[0].count, 0);
    experiment_result_free(r);
}

static void test_an_aim_is_about_the_mean_and_needs_all_seeds(void **state)
{
    (void)state;
    const struct experiment e = make(run_known);
    struct experiment_result *r = run_seeds(&e, 5, 1);
    assert_true(experiment_reached(r, AT_MOST));    /* 3 <= 3 */
    assert_false(experiment_reached(r, AT_LEAST));  /* 3 < 3.1 */
    assert_false(experiment_reached(r, SOMETIMES)); /* two seeds have none */
    experiment_result_free(r);
    r = run_seeds(&e, 6, 1);
    assert_false(experiment_reached(r, AT_MOST)); /* 3.5 */
    assert_true(experiment_reached(r, AT_LEAST));
    experiment_result_free(r);
}

/* --- the plot --- */
static void test_curves_are_means_within_a_band(void **state)
{
    (void)state;
    const struct experiment e = make(run_known);
    struct experiment_result *r = run_seeds(&e, 5, 2);
    const struct plot *plot = experiment_plot(r);
    assert_string_equal(plot->title, "T");
    assert_string_equal(plot->x_label, "x");
    assert_int_equal(plot->panel_count, 2);
    assert_string_equal(plot->panels[0].y_label, "a");
    assert_int_equal(plot->panels[0].line_count, 2);
    assert_int_equal(plot->panels[1].line_count, 1);
    const struct plot_line *up = &plot->panels[0].lines[0], *down = &plot->panels[0].lines[1];
    assert_string_equal(down->label, "down");
    assert_int_equal(up->count, 3); /* that all seeds have */
    for (size_t i = 0; i < 3; i++) {
        double at = (double)i;
        assert_close(up->x[i], 10 * at);
        assert_close(up->y[i], 3 + at);
        assert_close(up->low[i], 1 + at);
        assert_close(up->high[i], 5 + at);
        assert_close(down->y[i], -3 - at);
        assert_close(down->low[i], -5 - at);
        assert_close(down->high[i], -1 - at);
    }
    experiment_result_free(r);
}

/* --- effort and cores --- */
static int tell_shares(struct experiment_run *run, struct error *err)
{
    (void)err;
    run_set(run, SEED, (double)run->threads);
    run_set(run, AT_MOST, (double)run_episodes(run, 1000, 7));
    return 0;
}

static void test_effort_and_cores_are_shared_out(void **state)
{
    (void)state;
    const struct {
        size_t threads, each;
        double effort, episodes;
    } cases[] = {{1, 1, 1, 1000}, {2, 1, 0.1, 100}, {4, 2, 0.001, 7}, {9, 4, 2, 2000}};
    const struct experiment e = make(tell_shares);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err;
        const struct experiment_config config = {
            .seeds = 2, .seed = 1, .threads = cases[i].threads, .effort = cases[i].effort};
        struct experiment_result *r = experiment_run(&e, &config, &err);
        assert_non_null(r);
        assert_close(experiment_mean(r, SEED), (double)cases[i].each);
        assert_close(experiment_mean(r, AT_MOST), cases[i].episodes);
        experiment_result_free(r);
    }
}

/* --- ends --- */
/* The fourth seed is the first to fail, in time. */
static int fail_some(struct experiment_run *run, struct error *err)
{
    if (run->seed == 2)
        usleep(50000);
    if (run->seed == 2 || run->seed == 4)
        return error_set(err, ERROR_INVALID, "number %d", (int)run->seed);
    return 0;
}

static void test_the_first_seed_that_fails_is_told(void **state)
{
    (void)state;
    const struct experiment e = make(fail_some);
    for (size_t threads = 1; threads <= 5; threads += 2) {
        struct error err = {0};
        const struct experiment_config config = {
            .seeds = 5, .seed = 1, .threads = threads, .effort = 1};
        assert_null(experiment_run(&e, &config, &err));
        assert_int_equal(err.code, ERROR_INVALID);
        assert_string_equal(err.message, "seed 2: number 2");
    }
}

struct heard {
    double last, until; /* the share at which to end it */
    size_t calls;
};

static bool hear(void *arg, double share)
{
    struct heard *h = arg;
    assert_true(share >= h->last && share <= 1 + 1e-12);
    h->last = share;
    h->calls++;
    return share < h->until;
}

static void test_progress_rises_to_the_end(void **state)
{
    (void)state;
    const struct experiment e = make(run_known);
    struct heard heard = {.until = 2};
    struct error err;
    const struct experiment_config config = {
        .seeds = 4, .seed = 1, .threads = 3, .effort = 1, .on_progress = hear, .arg = &heard};
    experiment_result_free(experiment_run(&e, &config, &err));
    assert_close(heard.last, 1);
    assert_int_equal(heard.calls, 4 * 3); /* at its beginning, in the middle, at its end */
}

static void test_it_can_be_ended(void **state)
{
    (void)state;
    const struct experiment e = make(run_known);
    for (size_t threads = 1; threads <= 4; threads += 3) {
        struct heard heard = {.until = 0.5};
        struct error err = {0};
        const struct experiment_config config = {.seeds = 4,
                                                 .seed = 1,
                                                 .threads = threads,
                                                 .effort = 1,
                                                 .on_progress = hear,
                                                 .arg = &heard};
        assert_null(experiment_run(&e, &config, &err));
        assert_int_equal(err.code, ERROR_CANCELLED);
        assert_close(heard.last, 0.5); /* and is not asked again */
    }
}

/* --- those there are --- */
static void assert_row(const struct experiment_row *row)
{
    assert_true(row->group && row->group[0] && row->what && row->what[0]);
    assert_non_null(row->unit);
    if (row->aim != EXPERIMENT_NO_AIM)
        assert_true(isfinite(row->bound) && row->otherwise && row->otherwise[0]);
}

static void test_each_experiment_says_what_it_is(void **state)
{
    (void)state;
    assert_non_null(experiment(0));
    for (size_t i = 0; experiment(i); i++) {
        const struct experiment *e = experiment(i);
        assert_ptr_equal(experiment_find(e->name), e); /* so that names are its own */
        assert_true(e->title[0] && e->document[0] && e->setting[0] && e->row_count > 0);
        assert_true(e->headline < e->row_count);
        for (size_t k = 0; k < e->row_count; k++)
            assert_row(&e->rows[k]);
        for (size_t k = 0; k < e->line_count; k++)
            assert_true(e->lines[k].panel[0] && e->lines[k].label[0]);
        if (e->line_count > 0)
            assert_true(e->x_label[0]);
    }
    assert_null(experiment_find("none"));
}

/* The real thing, as small as it can be. */
static struct experiment_result *run_small(const struct experiment *e, size_t seeds, size_t threads)
{
    struct error err;
    const struct experiment_config config = {
        .seeds = seeds, .seed = 7, .threads = threads, .effort = 0.001};
    struct experiment_result *result = experiment_run(e, &config, &err);
    if (result == NULL)
        fail_msg("%s", err.message);
    return result;
}

static void test_figures_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct experiment_result *results[2];
    const struct experiment *e = experiment_find("mp3");
    for (size_t i = 0; i < 2; i++)
        results[i] = run_small(e, 2, 1 + 3 * i);
    for (size_t row = 0; row < e->row_count; row++)
        assert_memory_equal(experiment_values(results[0], row), experiment_values(results[1], row),
                            2 * sizeof(double));
    assert_true(experiment_values(results[0], 0)[0] != experiment_values(results[0], 0)[1]);
    for (size_t i = 0; i < 2; i++)
        experiment_result_free(results[i]);
}

/* --- with the recommender ppo --- */
static double mean_of(const struct experiment_result *r, const char *group, const char *what)
{
    const struct experiment *e = experiment_of(r);
    for (size_t i = 0; i < e->row_count; i++)
        if (strcmp(e->rows[i].group, group) == 0 && strcmp(e->rows[i].what, what) == 0)
            return experiment_mean(r, i);
    fail_msg("there is no row %s: %s", group, what);
    return NAN;
}

static void assert_within(double is, double low, double high)
{
    if (!(is >= low && is <= high))
        fail_msg("%g is not from %g to %g", is, low, high);
}

/* Whoever does as users asked for is as fast as with what users asked for, and reserves it; and a
 * group lends what was asked for, no more, but for the moment of a return. */
static void test_ppo_in_a_harvest_group(void **state)
{
    (void)state;
    struct experiment_result *r = run_small(experiment_find("ppo-faasrm"), 1, 1);
    assert_close(
        mean_of(r, "what ppo decides by", "updates of the general policy; 0: the core alone"),
        0); /* no policy was given */
    assert_close(
        mean_of(r, "request time ÷ that with what users asked for, mean of all requests", "Fixed"),
        1);
    const char *reserved = "CPU reserved, of what users asked for";
    assert_within(mean_of(r, reserved, "Fixed"), 99.999, 100.001);
    assert_within(mean_of(r, reserved, "ppo in a harvest group"), 1, 103);
    assert_within(mean_of(r, reserved, "ppo in a harvest group, the most at any time"), 99, 125);
    assert_within(mean_of(r, "the same, functions whose users asked for too little",
                          "ppo in a harvest group"),
                  0.01, 1);
    experiment_result_free(r);
}

static void test_ppo_among_many_functions(void **state)
{
    (void)state;
    struct experiment_result *r = run_small(experiment_find("ppo-simppo"), 1, 1);
    const char *cpu = "CPU reserved by a function", *late = "late requests";
    assert_within(mean_of(r, cpu, "ppo, 110 functions"), 0.1, 1.4); /* a node has no more */
    assert_within(mean_of(r, cpu, "ENSURE, 5 functions"), 0.1, 1.4);
    assert_within(mean_of(r, late, "ppo, each alone"), 0, 10);
    experiment_result_free(r);
}

static void test_ppo_in_functions_never_seen(void **state)
{
    (void)state;
    struct experiment_result *r = run_small(experiment_find("ppo-aware"), 1, 1);
    const char *changing = "a function changes: 600 intervals from then on";
    assert_within(mean_of(r, changing, "changes that were told"), 0, 100);
    assert_within(mean_of(r, changing, "3 × slower, told after"), 1, 600);
    assert_within(mean_of(r, "reward reached in the end", "ppo by the general policy"), 0.5, 1);
    experiment_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_are_means_of_the_seeds),
        cmocka_unit_test(test_one_seed_has_no_spread),
        cmocka_unit_test(test_what_no_seed_has_is_not_reached),
        cmocka_unit_test(test_an_aim_is_about_the_mean_and_needs_all_seeds),
        cmocka_unit_test(test_curves_are_means_within_a_band),
        cmocka_unit_test(test_effort_and_cores_are_shared_out),
        cmocka_unit_test(test_the_first_seed_that_fails_is_told),
        cmocka_unit_test(test_progress_rises_to_the_end),
        cmocka_unit_test(test_it_can_be_ended),
        cmocka_unit_test(test_each_experiment_says_what_it_is),
        cmocka_unit_test(test_figures_do_not_depend_on_threads),
        cmocka_unit_test(test_ppo_in_a_harvest_group),
        cmocka_unit_test(test_ppo_among_many_functions),
        cmocka_unit_test(test_ppo_in_functions_never_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
