/* prom_expand() and the default queries. */
#include "prometheus/prometheus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct prom_variable variables[] = {
    {"window", "1m"},       {"namespaces", "prod|test\\.1"}, {"namespace", "prod"},
    {"pods", "web-[a-z]+"}, {"odd", "a\"b\\c\nd$e"},
};

static char *expand(const char *text, struct error *err)
{
    return prom_expand(text, variables, ARRAY_LEN(variables), err);
}

static void assert_expands(const char *text, const char *expected)
{
    struct error err = {0};
    cleanup_free char *got = expand(text, &err);
    if (!got)
        fail_msg("\"%s\": %s", text, err.message);
    assert_string_equal(got, expected);
    assert_int_equal(err.code, ERROR_NONE);
}

static void assert_fails(const char *text, const char *message)
{
    struct error err = {0};
    assert_null(expand(text, &err));
    assert_int_equal(err.code, ERROR_INVALID);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" fails with \"%s\", which lacks \"%s\"", text, err.message, message);
}

static void test_variables(void **state)
{
    (void)state;
    assert_expands("", "");
    assert_expands("up", "up");
    assert_expands("rate(x[$window])", "rate(x[1m])");
    assert_expands("rate(x[${window}])", "rate(x[1m])");
    assert_expands("$window$window", "1m1m");
    assert_expands("${window}s", "1ms");
    /* The longest name counts, not the first that fits. */
    assert_expands("{namespace=\"$namespace\",n=~\"$namespaces\"}",
                   "{namespace=\"prod\",n=~\"prod|test\\\\.1\"}");
    assert_expands("$window", "1m");
}

static void test_dollar(void **state)
{
    (void)state;
    assert_expands("x=~\"a$$\"", "x=~\"a$\"");
    assert_expands("$$window", "$window");
    assert_expands("$$$window", "$1m");
    assert_expands("$$$$", "$$");
    assert_fails("x=~\"a$\"", "written \"$$\"");
    assert_fails("$", "not followed by a name");
    assert_fails("label_replace(x, \"a\", \"$1\", \"b\", \"(.*)\")", "$1");
    assert_fails("${", "not followed by a name");
    assert_fails("${window", "not followed by a name");
    assert_fails("${}", "not followed by a name");
    assert_fails("${win dow}", "not followed by a name");
}

/* As Go's strconv.Unquote, which PromQL follows, undoes it. A value is never expanded again. */
static void test_escapes(void **state)
{
    (void)state;
    assert_expands("{a=\"$odd\"}", "{a=\"a\\\"b\\\\c\\nd$e\"}");
}

static void test_unknown(void **state)
{
    (void)state;
    assert_fails("up{job=\"$jobs\"}", "$jobs");
    assert_fails("${jobs}", "$window, $namespaces, $namespace, $pods, $odd");
    assert_fails("$namespace_x", "$namespace_x ");
    struct error err = {0};
    assert_null(prom_expand("$x", NULL, 0, &err));
    assert_non_null(strstr(err.message, "none"));
}

static void test_bounds(void **state)
{
    (void)state;
    size_t len = (size_t)3 << 20;
    cleanup_free char *text = xcalloc(len + 1, 1);
    memset(text, 'x', len);
    struct error err = {0};
    assert_null(expand(text, &err));
    assert_int_equal(err.code, ERROR_TOO_LARGE);
    const struct prom_variable large = {"large", text};
    assert_null(prom_expand("$large", &large, 1, &err));
    assert_int_equal(err.code, ERROR_TOO_LARGE);
    /* A name of any length makes a message of bounded length. */
    text[0] = '$';
    assert_fails(text, "unknown variable $xxx");
}

static void test_defaults(void **state)
{
    (void)state;
    static const char *const names[PROM_METRIC_COUNT] = {"latency", "cpu",   "throttled",
                                                         "memory",  "proxy", "openwhisk"};
    static const struct prom_variable given[] = {{"window", "1m"}, {"namespaces", "prod|dev"}};
    for (enum prom_metric m = 0; m < PROM_METRIC_COUNT; m++) {
        struct error err = {0};
        assert_string_equal(prom_metric_name(m), names[m]);
        cleanup_free char *query = prom_expand(prom_template(m), given, ARRAY_LEN(given), &err);
        assert_non_null(query);
        assert_null(strchr(query, '$'));
        /* A namespace of OpenWhisk is a user's, and none of those watched. */
        assert_true(strstr(query, "{namespace=~\"prod|dev\"") || m == PROM_ACTION_BUCKETS);
        assert_non_null(strstr(query, "[1m]"));
    }
    assert_string_equal(prom_metric_name(PROM_METRIC_COUNT), "");
    assert_string_equal(prom_template(PROM_METRIC_COUNT), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables), cmocka_unit_test(test_dollar),
        cmocka_unit_test(test_escapes),   cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_bounds),    cmocka_unit_test(test_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
