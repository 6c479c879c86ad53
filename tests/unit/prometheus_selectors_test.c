/* prom_query_confined(): what who may write MPAs in one namespace could try to read those of
 * others. */
#include "prometheus/prometheus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_confined(const char *query)
{
    struct error err = {0};
    if (prom_query_confined(query, "shop", &err) < 0)
        fail_msg("\"%s\": %s", query, err.message);
}

static void assert_refused(const char *query, const char *message)
{
    struct error err = {0};
    if (prom_query_confined(query, "shop", &err) == 0)
        fail_msg("\"%s\" is taken", query);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" fails with \"%s\", which lacks \"%s\"", query, err.message, message);
}

static void test_usual_queries(void **state)
{
    (void)state;
    assert_confined("up{namespace=\"shop\"}");
    assert_confined("{namespace='shop'}");
    assert_confined("{ __name__ = \"up\" , namespace = `shop` , }");
    assert_confined("{\"http.requests\", namespace=\"shop\", \"a.b\"!=\"c\"}");
    assert_confined("sum by (le) (rate(x_bucket{namespace=\"shop\",pod=~\"a|b\"}[1m]))");
    assert_confined("sum without (pod) (rate(x{namespace=\"shop\"}[5m:1m] offset 1h))");
    assert_confined("sum(rate(x{namespace=\"shop\"}[1m])) by (le) / 2 > bool 1e-3");
    assert_confined("histogram_quantile(0.99, sum by (le) (x{namespace=\"shop\"} @ end()))");
    assert_confined("x{namespace=\"shop\"} / on (pod) group_left (a, b) y{namespace=\"shop\"}");
    assert_confined("x{namespace=\"shop\"} and y{namespace=\"shop\"} == Inf # z{}");
    assert_confined("topk by (pod) (3, x{namespace=\"shop\"}) unless on () y{namespace=\"shop\"}");
    assert_confined("x{namespace=\"shop\"} != 0 or vector(0)");
    assert_confined("label_replace(x{namespace=\"shop\"}, \"a\", \"$1\", \"b\", \"(.*){}\")");
    assert_confined("0.25");
}

/* Each would answer with what belongs to bank. */
static void test_other_namespaces(void **state)
{
    (void)state;
    assert_refused("up", "a series must have");
    assert_refused("up{}", "must stand in the braces");
    assert_refused("{__name__=\"up\"}", "must stand in the braces");
    assert_refused("up{namespace=\"bank\"}", "must stand in the braces");
    assert_refused("up{namespace=~\"shop\"}", "must stand in the braces");
    assert_refused("up{namespace=~\"shop|bank\"}", "must stand in the braces");
    assert_refused("up{namespace!=\"shop\"}", "must stand in the braces");
    assert_refused("up{Namespace=\"shop\"}", "must stand in the braces");
    assert_refused("up{other_namespace=\"shop\"}", "must stand in the braces");
    assert_refused("up{a=\"namespace='shop'\"}", "must stand in the braces");
    assert_refused("up{\"namespace=\\\"shop\\\"\"}", "must stand in the braces");
    assert_refused("up{namespace=\"shop \"}", "must stand in the braces");
    assert_refused("up{namespace=\"sh\\x6fp\"}", "must stand in the braces");
}

/* One selector is confined, another is not. */
static void test_smuggled_selectors(void **state)
{
    (void)state;
    assert_refused("x{namespace=\"shop\"} + y", "a series must have");
    assert_refused("x{namespace=\"shop\"} or y{namespace=\"bank\"}", "must stand");
    assert_refused("sum(x{namespace=\"shop\"}) by (le) + (secret)", "a series must have");
    assert_refused("label_replace(sum(secret), \"namespace\", \"shop\", \"\", \"\")", "a series");
    assert_refused("x{namespace=\"shop\"}[1m:30s] @ secret", "a series must have");
    assert_refused("x{namespace=\"shop\"} # \n or secret", "a series must have");
    assert_refused("x{namespace=\"shop\"} # \r or secret", "a series must have");
    assert_refused("\"a # \" + secret", "a series must have");
    assert_refused("'\\'' + secret", "a series must have");
    assert_refused("`\\` + secret", "a series must have");
    assert_refused(":secret", "a series must have");
    assert_refused("sum secret", "\"by\" or \"without\"");
    assert_refused("by", "a list of labels is expected");
    assert_refused("sum by (a, {b}) (x{namespace=\"shop\"})", "a list of labels is expected");
    /* Series can have the names of operators. */
    assert_refused("sum(offset)", "a series must have");
    assert_refused("or", "a series must have");
    assert_refused("rate(bool[1m])", "a series must have");
}

/* Of other databases that are asked in Prometheus' language. */
static void test_other_dialects(void **state)
{
    (void)state;
    assert_refused("x{namespace=\"shop\" or namespace=\"bank\"}", "separated by commas");
    assert_refused("WITH (f = {namespace=\"shop\"}) secret", "a series must have");
    assert_refused("x{namespace=\"shop\"} default secret", "a series must have");
    assert_refused("x{f, namespace=\"shop\"}", "a label and its value");
}

static void test_what_has_no_end(void **state)
{
    (void)state;
    assert_refused("x{namespace=\"shop\"", "separated by commas");
    assert_refused("x{", "a label is expected");
    assert_refused("x{namespace=", "must be a string");
    assert_refused("x{namespace=\"shop", "has no end");
    assert_refused("\"\\", "has no end");
    assert_refused("sum by (", "a list of labels is expected");
    assert_refused("sum by (\"", "a list of labels is expected");
    assert_refused("x ; y", "a series must have");
    assert_refused("\xff", "not understood");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_queries),      cmocka_unit_test(test_other_namespaces),
        cmocka_unit_test(test_smuggled_selectors), cmocka_unit_test(test_other_dialects),
        cmocka_unit_test(test_what_has_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
