/* The expected JSON is what sigs.k8s.io/yaml v1.6.0 makes of the same text. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_documents(const char *yaml, const char *json)
{
    struct error err = {0};
    cleanup_json json_t *got = yaml_to_json(yaml, strlen(yaml), &err);
    cleanup_json json_t *want = json_loads(json, 0, NULL);
    assert_non_null(want);
    if (got == NULL)
        fail_msg("%s\n%s", yaml, err.message);
    if (!json_equal(got, want)) {
        cleanup_free char *text = json_dumps(got, JSON_ENCODE_ANY);
        fail_msg("%s\ngot      %s\nexpected %s", yaml, text, json);
    }
    assert_int_equal(err.code, ERROR_NONE);
}

static void expect(const char *yaml, const char *json)
{
    cleanup_free char *one = xasprintf("[%s]", json);
    expect_documents(yaml, one);
}

static void expect_error(const char *yaml, const char *part)
{
    struct error err = {0};
    cleanup_json json_t *got = yaml_to_json(yaml, strlen(yaml), &err);
    if (got)
        fail_msg("accepted: %s", yaml);
    assert_int_equal(err.code, ERROR_INVALID);
    if (strstr(err.message, part) == NULL)
        fail_msg("%s\nsays     %s\nexpected %s", yaml, err.message, part);
}

static void test_scalars(void **state)
{
    (void)state;
    static const char *const scalars[][2] = {
        {"", "null"},
        {"~", "null"},
        {"null", "null"},
        {"Null", "null"},
        {"NULL", "null"},
        {"nUll", "\"nUll\""},
        {"true", "true"},
        {"True", "true"},
        {"TRUE", "true"},
        {"yes", "true"},
        {"Yes", "true"},
        {"on", "true"},
        {"y", "true"},
        {"Y", "true"},
        {"false", "false"},
        {"no", "false"},
        {"NO", "false"},
        {"off", "false"},
        {"n", "false"},
        {"N", "false"},
        {"nO", "\"nO\""},
        {"tRue", "\"tRue\""},
        {"0", "0"},
        {"1", "1"},
        {"-1", "-1"},
        {"+1", "1"},
        {"007", "7"},
        {"0777", "511"},
        {"0o17", "15"},
        {"0O17", "15"},
        {"0x1F", "31"},
        {"0XfF", "255"},
        {"-0x10", "-16"},
        {"0b101", "5"},
        {"-0b11", "-3"},
        {"1_000", "1000"},
        {"_1", "\"_1\""},
        {"08", "8"},
        {"0x", "\"0x\""},
        {"0xg", "\"0xg\""},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"12345678901234567890", "12345678901234567890.0"},
        {"100000000000000000000", "100000000000000000000.0"},
        {"1.5", "1.5"},
        {"1.", "1"},
        {"1.0", "1"},
        {".5", "0.5"},
        {"-.5", "-0.5"},
        {"+.5", "0.5"},
        {"1e3", "1000"},
        {"1E-3", "0.001"},
        {"1.5e3", "1500"},
        {"0.1", "0.1"},
        {"1e21", "1e+21"},
        {"1e", "\"1e\""},
        {"e1", "\"e1\""},
        {".", "\".\""},
        {"..", "\"..\""},
        {"--", "\"--\""},
        {"1e400", "\"1e400\""},
        {"1.2.3", "\"1.2.3\""},
        {"12:30", "\"12:30\""},
        {"2001-01-01", "\"2001-01-01\""},
        {"2001-01-01T00:00:00Z", "\"2001-01-01T00:00:00Z\""},
        {"64Mi", "\"64Mi\""},
        {"100m", "\"100m\""},
        {"!!str 1", "\"1\""},
        {"!!str true", "\"true\""},
        {"!!str", "\"\""},
        {"!!int 7", "7"},
        {"!!int \"7\"", "7"},
        {"!!float 1", "1"},
        {"!!float 1.5", "1.5"},
        {"!!bool yes", "true"},
        {"!!null ~", "null"},
        {"!foo 1", "\"1\""},
        {"! 1", "\"1\""},
        {"'1'", "\"1\""},
        {"\"true\"", "\"true\""},
        {"''", "\"\""},
        {"a b", "\"a b\""},
        {"<<", "\"<<\""},
        {"\"\\u00e9\"", "\"\\u00e9\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
        cleanup_free char *yaml = xasprintf("v: %s\n", scalars[i][0]);
        cleanup_free char *json = xasprintf("{\"v\": %s}", scalars[i][1]);
        expect(yaml, json);
    }
}

static void test_keys(void **state)
{
    (void)state;
    expect("1: a", "{\"1\": \"a\"}");
    expect("0x10: a", "{\"16\": \"a\"}");
    expect("1.5: a", "{\"1.5\": \"a\"}");
    expect("1.10: a", "{\"1.1\": \"a\"}");
    expect("1234567.5: a", "{\"1.2345675e+06\": \"a\"}");
    expect("yes: a", "{\"true\": \"a\"}");
    expect("\"<<\": 1", "{\"<<\": 1}");
    expect_error("~: a", "a key must be text");
    expect_error("[a]: b", "a key must be text");
    expect_error("? {a: b}\n: c", "line 1 column 3: a key must be text");
    expect_error("1e300: a", "a key must be text");
}

static void test_structure(void **state)
{
    (void)state;
    expect("{a: 1, b: [x, 'y']}", "{\"a\": 1, \"b\": [\"x\", \"y\"]}");
    expect("- a\n-\n- - b", "[\"a\", null, [\"b\"]]");
    expect("a: |\n  x\n  y\nb: >\n  x\n  y\n", "{\"a\": \"x\\ny\\n\", \"b\": \"x y\\n\"}");
    expect("a: {}\nb: []\n", "{\"a\": {}, \"b\": []}");
    expect("{\"a\": [1, null, \"x\"]}", "{\"a\": [1, null, \"x\"]}");
}

static void test_documents(void **state)
{
    (void)state;
    expect_documents("", "[]");
    expect_documents("# nothing\n", "[]");
    expect_documents("---\n---\n# nothing\n---\n", "[]");
    expect_documents("a: 1\n---\n---\nb: 2\n...\n---\n- 3\n", "[{\"a\": 1}, {\"b\": 2}, [3]]");
    /* An anchor is known in its own document only. */
    expect_error("a: &x 1\n---\nb: *x\n", "line 3 column 4");
}

static void test_aliases(void **state)
{
    (void)state;
    expect("a: &x {k: 1}\nb: *x", "{\"a\": {\"k\": 1}, \"b\": {\"k\": 1}}");
    expect("a: &x 1\n*x : 2", "{\"a\": 1, \"1\": 2}");
    expect("- &x 1\n- *x\n- &x 2\n- *x\n", "[1, 1, 2, 2]");
    expect_error("a: *x", "line 1 column 4: *x");
    expect_error("a: &a [*a]", "*a");
}

static void test_copies_are_independent(void **state)
{
    (void)state;
    const char *yaml = "- &x {k: 1}\n- *x\n";
    struct error err;
    cleanup_json json_t *documents = yaml_to_json(yaml, strlen(yaml), &err);
    json_t *list = json_array_get(documents, 0);
    json_object_set_new(json_array_get(list, 0), "k", json_integer(2));
    assert_int_equal(json_integer_value(json_path(json_array_get(list, 1), "k", NULL)), 1);
}

static void test_merge(void **state)
{
    (void)state;
    expect("b: &b {k: 1, l: 2}\nc: {<<: *b, k: 3}",
           "{\"b\": {\"k\": 1, \"l\": 2}, \"c\": {\"k\": 3, \"l\": 2}}");
    /* The YAML merge rule, which go-yaml v2 only keeps when << comes first. */
    expect("b: &b {k: 1, l: 2}\nc: {k: 3, <<: *b}",
           "{\"b\": {\"k\": 1, \"l\": 2}, \"c\": {\"k\": 3, \"l\": 2}}");
    expect("b: &b {k: 1}\nc: &c {k: 2, m: 3}\nd: {<<: [*b, *c]}",
           "{\"b\": {\"k\": 1}, \"c\": {\"k\": 2, \"m\": 3}, \"d\": {\"k\": 1, \"m\": 3}}");
    expect_error("{<<: 1}", "needs a mapping");
    expect_error("{<<: [{a: 1}, 2]}", "needs a mapping");
}

static void test_errors(void **state)
{
    (void)state;
    expect_error("a: 1\nb: 2\na: 3\n", "line 3 column 1: the key \"a\" is given twice");
    expect_error("a:\n  1: x\n  \"1\": y\n", "line 3 column 3: the key \"1\" is given twice");
    expect_error("a: .nan", "line 1 column 4: .nan");
    expect_error("- .inf", "line 1 column 3: .inf");
    expect_error("- -.Inf", "-.Inf");
    expect_error("- !!int x", "\"x\" is not a !!int");
    expect_error("- !!bool 1", "\"1\" is not a !!bool");
    expect_error("- !!binary aGk=", "!!binary");
    expect_error(" a: b\n c", "line 3 column 1");
    expect_error("a: [1, 2", "line ");
    expect_error("a:\n\t- b", "line 2 column 1");
    expect_error("a: \"x\\0y\"", "NUL");
    expect_error("a: \xff\xfe", "byte 3");
}

static void expect_too_large(const struct buf *yaml)
{
    struct error err = {0};
    assert_null(yaml_to_json(buf_string(yaml), yaml->len, &err));
    assert_true(err.code == ERROR_INVALID || err.code == ERROR_TOO_LARGE);
}

static void add(struct buf *b, const char *text)
{
    assert_int_equal(buf_puts(b, text), 0);
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    for (int depth = 64; depth <= 100000; depth *= 10) {
        cleanup_buf struct buf yaml;
        buf_init(&yaml, 1 << 20);
        for (int i = 0; i < depth; i++)
            add(&yaml, "[");
        expect_too_large(&yaml);
    }
    expect("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
           "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
}

static void test_expansion_is_bounded(void **state)
{
    (void)state;
    cleanup_buf struct buf laughs;
    buf_init(&laughs, 1 << 16);
    add(&laughs, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++)
        assert_int_equal(buf_printf(&laughs, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
                                    i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1),
                         0);
    expect_too_large(&laughs);

    cleanup_buf struct buf deep; /* each anchor one level deeper than the last */
    buf_init(&deep, 1 << 16);
    add(&deep, "- &a0 [x]\n");
    for (int i = 1; i < 80; i++)
        assert_int_equal(buf_printf(&deep, "- &a%d [*a%d]\n", i, i - 1), 0);
    expect_too_large(&deep);
}

static void test_size_is_bounded(void **state)
{
    (void)state;
    cleanup_buf struct buf many;
    buf_init(&many, 1 << 20);
    for (int i = 0; i < 100001; i++)
        add(&many, "- x\n");
    expect_too_large(&many);
    cleanup_free char *big = xcalloc((8u << 20) + 1, 1);
    memset(big, '#', (8u << 20) + 1);
    struct error err = {0};
    assert_null(yaml_to_json(big, (8u << 20) + 1, &err));
    assert_int_equal(err.code, ERROR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_copies_are_independent),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_expansion_is_bounded),
        cmocka_unit_test(test_size_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
