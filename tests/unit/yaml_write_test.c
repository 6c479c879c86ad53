/* What is written reads as itself again, by our reader; which spellings of text must be quoted is
 * YAML 1.1's and 1.2's list of other types. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static json_t *load(const char *json)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (value == NULL)
        fail_msg("no JSON: %s", json);
    return value;
}

static void expect(const char *json, const char *yaml)
{
    cleanup_json json_t *value = load(json);
    cleanup_free char *text = yaml_from_json(value);
    assert_string_equal(text, yaml);
    struct error err = {0};
    cleanup_json json_t *back = yaml_to_json(text, strlen(text), &err);
    if (back == NULL)
        fail_msg("%s\n%s", text, err.message);
    if (json_is_null(value))
        return;
    assert_int_equal(json_array_size(back), 1);
    assert_true(json_equal(json_array_get(back, 0), value));
}

static void test_structure(void **state)
{
    (void)state;
    expect("{\"a\": 1, \"b\": {\"c\": [1, 2]}}", "a: 1\nb:\n  c:\n  - 1\n  - 2\n");
    expect("[{\"a\": 1, \"b\": 2}, {\"c\": [[1, 2], []]}]",
           "- a: 1\n  b: 2\n- c:\n  - - 1\n    - 2\n  - []\n");
    expect("{\"a\": {}, \"b\": []}", "a: {}\nb: []\n");
    expect("{}", "{}\n");
    expect("[]", "[]\n");
    expect("[null, true, false]", "- null\n- true\n- false\n");
}

static void test_numbers(void **state)
{
    (void)state;
    expect("9223372036854775807", "9223372036854775807\n");
    expect("-1", "-1\n");
    expect("0.1", "0.1\n");
    expect("99.9", "99.9\n");
    expect("1e300", "1e+300\n");
    expect("0.30000000000000004", "0.30000000000000004\n");
}

static void test_plain_text(void **state)
{
    (void)state;
    static const char *const plain[] = {"Auto", "apps/v1", "250ms",     "1.5Gi",     "100m",
                                        "64Mi", "1m30s",   "a-b.c_d",   "two words", "/scale",
                                        "30s",  "2k",      "p99 (late)"};
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        cleanup_free char *json = xasprintf("\"%s\"", plain[i]);
        cleanup_free char *yaml = xasprintf("%s\n", plain[i]);
        expect(json, yaml);
    }
}

static void test_text_that_would_be_something_else(void **state)
{
    (void)state;
    static const char *const quoted[] = {
        "",      "Off",   "on",   "yes",  "n",          "true",   "null", "~",   "1",
        "0.5",   "1e3",   "0x1f", "0777", "1_000",      "12:30",  ".inf", "- a", "a: b",
        "a #b",  "*",     "&a",   "!t",   "2026-01-31", "<<",     "=",    " a",  "a ",
        "{}",    "[a]",   "%a",   "@a",   "`a`",        "|",      ">",    "?",   "a\\tb",
        "a\\nb", "1.0.0", "-",    "---",  "...",        "\\\"",   "\\\\", "#a",  "'a'",
        "+1",    "-1",    "NULL", "Y",    "1e+3",       "\\u0001"};
    for (size_t i = 0; i < ARRAY_LEN(quoted); i++) {
        cleanup_free char *json = xasprintf("\"%s\"", quoted[i]);
        cleanup_free char *yaml = xasprintf("\"%s\"\n", quoted[i]);
        expect(json, yaml);
    }
    expect("{\"on\": \"*\", \"1\": 2}", "\"on\": \"*\"\n\"1\": 2\n");
}

static void test_other_characters(void **state)
{
    (void)state;
    expect("\"größer als 250 ms → mehr\"", "\"größer als 250 ms → mehr\"\n");
    expect("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"\n");
    expect("\"a\\u2028b\\ufeffc\\u0085d\\u007f\"", "\"a\\u2028b\\ufeffc\\u0085d\\u007f\"\n");
    cleanup_json json_t *nul = load("\"a\\u0000b\""); /* which our reader refuses */
    cleanup_free char *text = yaml_from_json(nul);
    assert_string_equal(text, "\"a\\u0000b\"\n");
}

static void expect_line(const char *text, size_t document, const char *path, size_t line)
{
    size_t got = yaml_line(text, strlen(text), document, path);
    if (got != line)
        fail_msg("%s of document %zu: line %zu, expected %zu", path, document, got, line);
}

static void test_lines(void **state)
{
    (void)state;
    const char *text = "# about\n"
                       "---\n"
                       "---\n"
                       "kind: A\n"
                       "spec:\n"
                       "  list:\n"
                       "  - a: 1\n"
                       "  - {b: 2,\n"
                       "     c: 3}\n"
                       "  x.y/z: 4\n"
                       "---\n"
                       "kind: B\n"
                       "spec: [1, [2,\n"
                       "  3]]\n";
    expect_line(text, 0, "", 4);
    expect_line(text, 0, "kind", 4);
    expect_line(text, 0, "spec", 5);
    expect_line(text, 0, "spec.list[0].a", 7);
    expect_line(text, 0, "spec.list[1]", 8);
    expect_line(text, 0, "spec.list[1].c", 9);
    expect_line(text, 0, "spec.x.y/z", 10);
    expect_line(text, 1, "spec[1][1]", 14);
    expect_line(text, 0, "spec.list[7].a", 6); /* as deep as it goes */
    expect_line(text, 0, "spec.nothing", 5);
    expect_line(text, 0, "spe", 4);
    expect_line(text, 2, "kind", 0);
    expect_line("a: [", 0, "a[0]", 1);
    expect_line("", 0, "a", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_text_that_would_be_something_else),
        cmocka_unit_test(test_other_characters),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
