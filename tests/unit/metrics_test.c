/* pkg/metrics: what is written, byte for byte, by the rules of the text format 0.0.4. */
#include "metrics/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DROPPED(count)                                                                             \
    "# HELP x_dropped_total Samples left out because a metric had too many series.\n"              \
    "# TYPE x_dropped_total counter\n"                                                             \
    "x_dropped_total " count "\n"

static int setup(void **state)
{
    *state = metrics_new("x_dropped_total");
    return 0;
}

static int teardown(void **state)
{
    metrics_free(*state);
    return 0;
}

static char *text_of(struct metrics *m)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(metrics_write(m, &out), 0);
    return buf_take(&out);
}

static void assert_text(struct metrics *m, const char *expected)
{
    cleanup_free char *text = text_of(m);
    assert_string_equal(text, expected);
}

static void test_counters_and_gauges(void **state)
{
    struct metrics *m = *state;
    struct metrics_family *requests =
        metrics_register(m, &(struct metrics_spec){.name = "x_requests_total",
                                                   .help = "Requests by method and code.",
                                                   .type = METRICS_COUNTER,
                                                   .labels = {"method", "code"}});
    struct metrics_family *queue = metrics_register(
        m, &(struct metrics_spec){
               .name = "x_queue_length", .help = "Waiting.", .type = METRICS_GAUGE});
    metrics_count(requests, 1, METRICS_LABELS("GET", "200"));
    metrics_count(requests, 0, METRICS_LABELS("PATCH", "409"));
    metrics_count(requests, 2, METRICS_LABELS("GET", "200"));
    metrics_count(requests, -5, METRICS_LABELS("GET", "200")); /* counters only grow */
    metrics_count(requests, NAN, METRICS_LABELS("GET", "200"));
    metrics_set(queue, 7, NULL);
    metrics_set(queue, 3.5, NULL);
    assert_text(m, "# HELP x_requests_total Requests by method and code.\n"
                   "# TYPE x_requests_total counter\n"
                   "x_requests_total{method=\"GET\",code=\"200\"} 3\n"
                   "x_requests_total{method=\"PATCH\",code=\"409\"} 0\n"
                   "# HELP x_queue_length Waiting.\n"
                   "# TYPE x_queue_length gauge\n"
                   "x_queue_length 3.5\n" DROPPED("0"));
}

static void test_nothing_told_is_nothing_written(void **state)
{
    metrics_register(*state, &(struct metrics_spec){.name = "x", .help = "X."});
    assert_text(*state, DROPPED("0"));
}

/* In label values \, " and newline are escaped, in HELP \ and newline; nothing else is. */
static void test_escaping(void **state)
{
    struct metrics_family *f =
        metrics_register(*state, &(struct metrics_spec){.name = "x",
                                                        .help = "A \\ and a\nnewline, \"quoted\".",
                                                        .type = METRICS_GAUGE,
                                                        .labels = {"a", "b"}});
    metrics_set(f, 1, METRICS_LABELS("C:\\DIR", "say \"hi\"\nand →"));
    metrics_set(f, 2, METRICS_LABELS("", "{}\t,="));
    metrics_set(f, 3, METRICS_LABELS("a missing one is empty"));
    assert_text(*state, "# HELP x A \\\\ and a\\nnewline, \"quoted\".\n"
                        "# TYPE x gauge\n"
                        "x{a=\"C:\\\\DIR\",b=\"say \\\"hi\\\"\\nand →\"} 1\n"
                        "x{a=\"\",b=\"{}\t,=\"} 2\n"
                        "x{a=\"a missing one is empty\",b=\"\"} 3\n" DROPPED("0"));
}

/* Two sets of values that would look alike if they were only joined. */
static void test_label_sets_are_told_apart(void **state)
{
    struct metrics_family *f = metrics_register(
        *state, &(struct metrics_spec){
                    .name = "x", .help = "X.", .type = METRICS_GAUGE, .labels = {"a", "b"}});
    metrics_set(f, 1, METRICS_LABELS("p\",b=\"q", "r"));
    metrics_set(f, 2, METRICS_LABELS("p", "q\",b=\"r"));
    cleanup_free char *text = text_of(*state);
    assert_non_null(strstr(text, "x{a=\"p\\\",b=\\\"q\",b=\"r\"} 1\n"));
    assert_non_null(strstr(text, "x{a=\"p\",b=\"q\\\",b=\\\"r\"} 2\n"));
}

static void test_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-1, "-1"},
        {0.1, "0.1"},
        {1e6, "1000000"},
        {1767225600.123, "1767225600.123"},
        {9007199254740991, "9007199254740991"}, /* 2^53 - 1: the last whole one */
        {1e21, "1e+21"},
        {NAN, "NaN"},
        {INFINITY, "+Inf"},
        {-INFINITY, "-Inf"},
    };
    struct metrics_family *f = metrics_register(
        *state, &(struct metrics_spec){.name = "x", .help = "X.", .type = METRICS_GAUGE});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char line[64];
        metrics_set(f, cases[i].value, NULL);
        snprintf(line, sizeof(line), "\nx %s\n", cases[i].text);
        cleanup_free char *text = text_of(*state);
        assert_non_null(strstr(text, line));
    }
    double third = 1.0 / 3;
    metrics_set(f, third, NULL);
    cleanup_free char *text = text_of(*state);
    assert_true(strtod(strstr(text, "\nx ") + 3, NULL) == third);
}

/* Buckets are cumulative, a value on a bound is within it (le), +Inf equals the count. */
static void test_histogram(void **state)
{
    static const double bounds[] = {0.1, 0.5, 2};
    struct metrics_family *f =
        metrics_register(*state, &(struct metrics_spec){.name = "x_seconds",
                                                        .help = "Time.",
                                                        .type = METRICS_HISTOGRAM,
                                                        .labels = {"path"},
                                                        .bounds = bounds,
                                                        .bound_count = ARRAY_LEN(bounds)});
    static const double values[] = {0.0625, 0.1, 0.25, 0.5, 0.5, 2.5, 1e9};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        metrics_observe(f, values[i], METRICS_LABELS("a"));
    metrics_observe(f, NAN, METRICS_LABELS("a"));
    metrics_observe(f, 1, METRICS_LABELS("b"));
    assert_text(*state, "# HELP x_seconds Time.\n"
                        "# TYPE x_seconds histogram\n"
                        "x_seconds_bucket{path=\"a\",le=\"0.1\"} 2\n"
                        "x_seconds_bucket{path=\"a\",le=\"0.5\"} 5\n"
                        "x_seconds_bucket{path=\"a\",le=\"2\"} 5\n"
                        "x_seconds_bucket{path=\"a\",le=\"+Inf\"} 7\n"
                        "x_seconds_sum{path=\"a\"} 1000000003.9125\n"
                        "x_seconds_count{path=\"a\"} 7\n"
                        "x_seconds_bucket{path=\"b\",le=\"0.1\"} 0\n"
                        "x_seconds_bucket{path=\"b\",le=\"0.5\"} 0\n"
                        "x_seconds_bucket{path=\"b\",le=\"2\"} 1\n"
                        "x_seconds_bucket{path=\"b\",le=\"+Inf\"} 1\n"
                        "x_seconds_sum{path=\"b\"} 1\n"
                        "x_seconds_count{path=\"b\"} 1\n" DROPPED("0"));
}

static void test_histogram_without_labels(void **state)
{
    static const double bounds[] = {1};
    struct metrics_family *f =
        metrics_register(*state, &(struct metrics_spec){.name = "x_seconds",
                                                        .help = "Time.",
                                                        .type = METRICS_HISTOGRAM,
                                                        .bounds = bounds,
                                                        .bound_count = ARRAY_LEN(bounds)});
    metrics_observe(f, 0.5, NULL);
    assert_text(*state, "# HELP x_seconds Time.\n"
                        "# TYPE x_seconds histogram\n"
                        "x_seconds_bucket{le=\"1\"} 1\n"
                        "x_seconds_bucket{le=\"+Inf\"} 1\n"
                        "x_seconds_sum 0.5\n"
                        "x_seconds_count 1\n" DROPPED("0"));
}

static void count_up(struct metrics_family *f, int n)
{
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        metrics_count(f, 1, METRICS_LABELS(name));
    }
}

static void test_kept_series_are_bounded(void **state)
{
    struct metrics_family *f =
        metrics_register(*state, &(struct metrics_spec){.name = "x_total",
                                                        .help = "X.",
                                                        .type = METRICS_COUNTER,
                                                        .labels = {"id"},
                                                        .max_series = 2});
    count_up(f, 5);
    metrics_count(f, 1, METRICS_LABELS("1")); /* those that exist go on */
    assert_text(*state, "# HELP x_total X.\n"
                        "# TYPE x_total counter\n"
                        "x_total{id=\"0\"} 1\n"
                        "x_total{id=\"1\"} 2\n" DROPPED("3"));
}

static void test_the_bound_by_default(void **state)
{
    struct metrics_family *f = metrics_register(
        *state, &(struct metrics_spec){
                    .name = "x_total", .help = "X.", .type = METRICS_COUNTER, .labels = {"id"}});
    count_up(f, METRICS_MAX_SERIES + 10);
    struct buf out;
    buf_init(&out, 64 << 20);
    assert_int_equal(metrics_write(*state, &out), 0);
    assert_non_null(strstr(buf_string(&out), "\nx_dropped_total 10\n"));
    buf_free(&out);
}

static void test_a_label_without_end_is_dropped(void **state)
{
    cleanup_free char *endless = xcalloc(1, 100001);
    memset(endless, 'x', 100000);
    struct metrics_family *f = metrics_register(
        *state, &(struct metrics_spec){
                    .name = "x_total", .help = "X.", .type = METRICS_COUNTER, .labels = {"id"}});
    metrics_count(f, 1, METRICS_LABELS(endless));
    assert_text(*state, DROPPED("1"));
}

/* --- told at each scrape --------------------------------------------------------------------- */
static void tell_pets(void *arg, struct metrics_family *f)
{
    for (const char *const *pet = *(const char *const **)arg; *pet; pet++)
        metrics_set(f, (double)strlen(*pet), METRICS_LABELS(*pet));
}

static void test_what_is_gone_vanishes(void **state)
{
    static const char *const both[] = {"cat", "mouse", NULL}, *const one[] = {"cat", NULL},
                             *const none[] = {NULL};
    const char *const *pets = both;
    struct metrics_family *f =
        metrics_register(*state, &(struct metrics_spec){.name = "pet_length",
                                                        .help = "Letters.",
                                                        .type = METRICS_GAUGE,
                                                        .labels = {"name"},
                                                        .max_series = 2,
                                                        .collect = tell_pets,
                                                        .arg = &pets});
    assert_text(*state, "# HELP pet_length Letters.\n"
                        "# TYPE pet_length gauge\n"
                        "pet_length{name=\"cat\"} 3\n"
                        "pet_length{name=\"mouse\"} 5\n" DROPPED("0"));
    pets = one;
    assert_text(*state, "# HELP pet_length Letters.\n"
                        "# TYPE pet_length gauge\n"
                        "pet_length{name=\"cat\"} 3\n" DROPPED("0"));
    pets = none;
    assert_text(*state, DROPPED("0"));
    metrics_set(f, 1, METRICS_LABELS("outside of a scrape"));
    assert_text(*state, DROPPED("0"));
}

static void test_told_series_are_bounded(void **state)
{
    static const char *const names[] = {"a", "b", "c", NULL};
    const char *const *pets = names;
    metrics_register(*state, &(struct metrics_spec){.name = "x",
                                                    .help = "X.",
                                                    .type = METRICS_GAUGE,
                                                    .labels = {"name"},
                                                    .max_series = 2,
                                                    .collect = tell_pets,
                                                    .arg = &pets});
    static const char text[] = "# HELP x X.\n"
                               "# TYPE x gauge\n"
                               "x{name=\"a\"} 1\n"
                               "x{name=\"b\"} 1\n";
    cleanup_free char *first = xasprintf("%s%s", text, DROPPED("1"));
    cleanup_free char *second = xasprintf("%s%s", text, DROPPED("2"));
    assert_text(*state, first);
    assert_text(*state, second);
}

static void test_an_answer_that_does_not_fit_fails(void **state)
{
    static const char *const names[] = {"a", "b", "c", NULL};
    const char *const *pets = names;
    struct buf out;
    metrics_register(
        *state,
        &(struct metrics_spec){
            .name = "x", .help = "X.", .labels = {"name"}, .collect = tell_pets, .arg = &pets});
    cleanup_free char *text = text_of(*state);
    for (size_t max = 0; max < strlen(text); max++) {
        buf_init(&out, max);
        assert_int_equal(metrics_write(*state, &out), -1);
        buf_free(&out);
    }
    buf_init(&out, strlen(text));
    assert_int_equal(metrics_write(*state, &out), 0);
    assert_string_equal(buf_string(&out), text);
    buf_free(&out);
}

/* --- the process ----------------------------------------------------------------------------- */
static double value_of(const char *text, const char *name)
{
    char line[64];
    snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(text, line);
    assert_non_null(at);
    return strtod(at + strlen(line), NULL);
}

static void test_process(void **state)
{
    metrics_register_process(*state);
    cleanup_free char *before = text_of(*state);
    double now_s = (double)time(NULL);
    assert_in_range((uintmax_t)value_of(before, "process_resident_memory_bytes"), 500000,
                    (uintmax_t)1 << 36);
    assert_true(value_of(before, "process_cpu_seconds_total") > 0);
    double started_s = value_of(before, "process_start_time_seconds");
    assert_true(started_s > now_s - 3600 && started_s < now_s + 1);

    int fds[2];
    assert_int_equal(pipe(fds), 0);
    cleanup_free char *after = text_of(*state);
    close(fds[0]);
    close(fds[1]);
    assert_true(value_of(after, "process_open_fds") == value_of(before, "process_open_fds") + 2);
    assert_non_null(strstr(after, "# TYPE process_cpu_seconds_total counter\n"));
    assert_non_null(strstr(after, "# TYPE process_open_fds gauge\n"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_counters_and_gauges),
        TEST(test_nothing_told_is_nothing_written),
        TEST(test_escaping),
        TEST(test_label_sets_are_told_apart),
        TEST(test_numbers),
        TEST(test_histogram),
        TEST(test_histogram_without_labels),
        TEST(test_kept_series_are_bounded),
        TEST(test_the_bound_by_default),
        TEST(test_a_label_without_end_is_dropped),
        TEST(test_what_is_gone_vanishes),
        TEST(test_told_series_are_bounded),
        TEST(test_an_answer_that_does_not_fit_fails),
        TEST(test_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
