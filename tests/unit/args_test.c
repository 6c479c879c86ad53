/* Command lines: kinds, bounds, and what is said of a wrong one. */
#include "base/args.h"

#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

struct fields {
    const char *text, *choice;
    bool truth, flag;
    double number, duration_s;
    struct args_list list;
};

static const char *const words[] = {"red", "blue", NULL};

#define AT(field) offsetof(struct fields, field)
static const struct args_option table[] = {
    {"text", ARGS_TEXT, AT(text), NULL, 0, 0, NULL, "any text"},
    {"choice", ARGS_CHOICE, AT(choice), "red", 0, 0, words, "red or blue"},
    {"truth", ARGS_CHOICE, AT(truth), "true", 0, 0, NULL, "true or false"},
    {"flag", ARGS_FLAG, AT(flag), NULL, 0, 0, NULL, "a flag"},
    {"number", ARGS_NUMBER, AT(number), "0.5", 0, 9007199254740992, NULL, "a number"},
    {"duration", ARGS_DURATION, AT(duration_s), "15s", 1, 60, NULL, "a duration"},
    {"list", ARGS_LIST, AT(list), NULL, 0, 0, NULL, "a list"},
};

/* The words after the program's name, NULL-terminated. */
static int parse(const char *const *given, struct fields *out, struct error *err)
{
    const char *argv[ARGS_LIST_MAX + 3] = {"program"};
    int argc = 1;
    while (given[argc - 1]) {
        argv[argc] = given[argc - 1];
        argc++;
    }
    *out = (struct fields){0};
    return args_parse(table, ARRAY_LEN(table), argc, (char **)argv, out, err);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_defaults_hold_where_nothing_is_said(void **state)
{
    (void)state;
    struct fields f;
    struct error err;
    assert_int_equal(parse((const char *const[]){NULL}, &f, &err), 0);
    assert_null(f.text);
    assert_string_equal(f.choice, "red");
    assert_true(f.truth);
    assert_false(f.flag);
    assert_true(f.number == 0.5 && f.duration_s == 15);
    assert_int_equal(f.list.count, 0);
}

static void test_both_ways_of_writing(void **state)
{
    (void)state;
    struct fields f;
    struct error err;
    assert_int_equal(
        parse(WORDS("--text=a=b", "--choice", "blue", "--truth=false", "--flag",
                    "--number=9007199254740992", "--duration", "1500ms", "--list", "x", "--list=y"),
              &f, &err),
        0);
    assert_string_equal(f.text, "a=b");
    assert_string_equal(f.choice, "blue");
    assert_false(f.truth);
    assert_true(f.flag);
    assert_true(f.number == 9007199254740992.0 && f.duration_s == 1.5);
    assert_int_equal(f.list.count, 2);
    assert_string_equal(f.list.items[0], "x");
    assert_string_equal(f.list.items[1], "y");
    assert_null(f.list.items[2]);
}

static void test_wrong_ones_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *arg, *says;
    } cases[] = {
        {"text", "options begin with --"},
        {"--nothing=1", "--nothing: no such option"},
        {"--flag=1", "--flag takes no value"},
        {"--text", "--text needs a value"},
        {"--choice=green", "\"green\" is not red or blue"},
        {"--truth=yes", "neither true nor false"},
        {"--number=nan", "is no number from 0 to 9007199254740992"},
        {"--number=1x", "is no number"},
        {"--number=", "is no number"},
        {"--number=-1", "is no number"},
        {"--duration=15", "--duration"},
        {"--duration=61s", "is not from 1s to 60s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fields f;
        struct error err = {0};
        assert_int_equal(parse(WORDS(cases[i].arg), &f, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
        assert_non_null(strstr(err.message, cases[i].says));
    }
}

static void test_a_list_is_bounded(void **state)
{
    (void)state;
    struct fields f;
    struct error err;
    const char *given[ARGS_LIST_MAX + 2] = {NULL};
    for (size_t i = 0; i < ARGS_LIST_MAX; i++)
        given[i] = "--list=x";
    assert_int_equal(parse(given, &f, &err), 0);
    given[ARGS_LIST_MAX] = "--list=x";
    assert_int_equal(parse(given, &f, &err), -1);
    assert_non_null(strstr(err.message, "at most 64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_hold_where_nothing_is_said),
        cmocka_unit_test(test_both_ways_of_writing),
        cmocka_unit_test(test_wrong_ones_are_named),
        cmocka_unit_test(test_a_list_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
