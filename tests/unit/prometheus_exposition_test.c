/* What a program tells of itself at /metrics, by the rules of Prometheus' text format. */
#include "prometheus/prometheus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    int samples;
    double sum;
    char labels[256];
};

static void on_sample(void *arg, const struct prom_exposed *sample)
{
    struct seen *seen = arg;
    char value[16];
    seen->samples++;
    seen->sum += isnan(sample->value) ? 0 : sample->value;
    prom_exposed_label(sample, "revision", value, sizeof(value));
    size_t at = strlen(seen->labels);
    snprintf(seen->labels + at, sizeof(seen->labels) - at, "%s;", value);
}

static int read_text(const char *text, struct seen *seen, struct error *err)
{
    *seen = (struct seen){0};
    return prom_expose(text, strlen(text), on_sample, seen, err);
}

static void samples_are_told_one_by_one(void **state)
{
    struct seen seen;
    struct error err;
    (void)state;
    assert_int_equal(read_text("# HELP x what it is\n"
                               "# TYPE x gauge\n"
                               "\n"
                               "x 1\n"
                               "x{revision=\"a\"} 2.5\r\n"
                               "x { pod = \"p\" , revision = \"b\" , } 3e0 1395066363000\n"
                               "x_bucket{le=\"+Inf\",revision=\"c\"} 4\n"
                               "y NaN",
                               &seen, &err),
                     0);
    assert_int_equal(seen.samples, 5);
    assert_true(seen.sum == 1 + 2.5 + 3 + 4);
    assert_string_equal(seen.labels, ";a;b;c;;");
}

static void escapes_are_undone_and_what_is_too_long_is_not_told(void **state)
{
    struct seen seen;
    struct error err;
    (void)state;
    assert_int_equal(read_text("x{revision=\"a\\\"b\\\\c\\nd}\"} 1\n"
                               "x{revision=\"0123456789abcdef\"} 1\n"
                               "x{revision=\"0123456789abcde\"} 1\n",
                               &seen, &err),
                     0);
    assert_string_equal(seen.labels, "a\"b\\c\nd};;0123456789abcde;");
}

static void a_name_is_the_whole_name(void **state)
{
    struct prom_exposed sample = {.name = "abc 1", .name_len = 3};
    (void)state;
    assert_true(prom_exposed_is(&sample, "abc"));
    assert_false(prom_exposed_is(&sample, "ab"));
    assert_false(prom_exposed_is(&sample, "abcd"));
}

static void what_is_no_sample_is_told_with_its_line(void **state)
{
    static const char *const bad[] = {"x\n",           "x 1 2 3\n",  "1x 1\n",
                                      "x{a=\"b\" 1\n", "x{a=b} 1\n", "x{=\"b\"} 1\n",
                                      "x{a=\"b} 1\n",  "x one\n",    "{a=\"b\"} 1\n",
                                      "x{a=\"b\"}\n",  "<html>\n"};
    struct seen seen;
    struct error err;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_free char *text = xasprintf("y 1\n%s", bad[i]);
        err = (struct error){0};
        assert_int_equal(read_text(text, &seen, &err), -1);
        assert_int_equal(err.code, ERROR_MALFORMED);
        assert_non_null(strstr(err.message, "line 2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_told_one_by_one),
        cmocka_unit_test(escapes_are_undone_and_what_is_too_long_is_not_told),
        cmocka_unit_test(a_name_is_the_whole_name),
        cmocka_unit_test(what_is_no_sample_is_told_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
