#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* --- errors --- */
static void test_error_carries_code_and_context(void **state)
{
    struct error err = {0};
    (void)state;
    assert_int_equal(error_set(&err, ERROR_INVALID, "replicas %d", 3), -1);
    assert_int_equal(error_prefix(&err, "file %s", "x.yaml"), -1);
    assert_int_equal(err.code, ERROR_INVALID);
    assert_string_equal(err.message, "file x.yaml: replicas 3");
    assert_int_equal(error_set(NULL, ERROR_INVALID, "nobody listens"), -1);
}

static void test_secrets_are_hidden(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"as t0ken-0f-mine, they say", "t0ken-0f-mine", "as *************, they say"},
        {"t0ken-0f-minet0ken-0f-mine", "t0ken-0f-mine", "**************************"},
        {"\"…n-0f-mine\"", "t0ken-0f-mine", "\"…*********\""}, /* cut before */
        {"t0ken-0", "t0ken-0f-mine", "t0ken-0"},               /* cut after: too little to tell */
        {"t0ken-0f", "t0ken-0f-mine", "********"},
        {"xaaaaaaaaaay", "aaaaaaaaab", "x*********ay"},
        {"say pass", "pass", "say ****"},
        {"say pas", "pass", "say pas"},
        {"a b", "a", "a b"},
        {"a b", "", "a b"},
        {"a b", NULL, "a b"},
        {"", "t0ken-0f-mine", ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = xstrdup(cases[i][0]);
        text_hide(text, cases[i][1]);
        assert_string_equal(text, cases[i][2]);
    }
}

static void test_error_too_long_is_cut(void **state)
{
    struct error err = {0};
    char text[2000];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    error_set(&err, ERROR_INVALID, "%s", text);
    error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

/* --- buffers --- */
static void test_buf_never_passes_its_maximum(void **state)
{
    cleanup_buf struct buf b;
    (void)state;
    buf_init(&b, 10);
    assert_string_equal(buf_string(&b), "");
    assert_int_equal(buf_puts(&b, "12345"), 0);
    assert_int_equal(buf_printf(&b, "%d", 67890), 0);
    assert_int_equal(buf_puts(&b, "x"), -1);
    assert_int_equal(buf_printf(&b, "%d", 1), -1);
    assert_int_equal(buf_append(&b, "", SIZE_MAX), -1);
    assert_string_equal(buf_string(&b), "1234567890");
}

static void test_buf_take_and_drop(void **state)
{
    struct buf b;
    (void)state;
    buf_init(&b, 1000);
    assert_int_equal(buf_puts(&b, "line one\nrest"), 0);
    buf_drop_front(&b, 9);
    assert_string_equal(buf_string(&b), "rest");
    cleanup_free char *taken = buf_take(&b);
    assert_string_equal(taken, "rest");
    assert_int_equal(b.len, 0);
    cleanup_free char *nothing = buf_take(&b);
    assert_string_equal(nothing, "");
    buf_drop_front(&b, 5);
}

/* --- map --- */
static void test_map_keeps_what_is_put(void **state)
{
    struct map m = {0};
    static char values[5000];
    char key[16];
    (void)state;
    assert_null(map_get(&m, "nothing"));
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_null(map_put(&m, key, &values[i]));
    }
    assert_int_equal(m.count, 5000);
    assert_ptr_equal(map_put(&m, "k7", &values[8]), &values[7]);
    for (int i = 0; i < 5000; i += 2) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_non_null(map_remove(&m, key));
        assert_null(map_remove(&m, key));
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_ptr_equal(map_get(&m, key), i % 2 == 0 ? NULL : &values[i == 7 ? 8 : i]);
    }
    map_free(&m, NULL);
}

static void test_map_walk_with_removal_meets_every_entry(void **state)
{
    struct map m = {0};
    static char value, kept;
    char key[16];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        map_put(&m, key, i % 3 == 0 ? &kept : &value);
    }
    void *v;
    for (size_t i = 0; (i = map_next(&m, i, NULL, &v)) != 0;)
        if (v == &value)
            i = map_remove_at(&m, i);
    assert_int_equal(m.count, 334);
    map_free(&m, NULL);
}

/* --- clock --- */
static void test_clock_can_be_set(void **state)
{
    (void)state;
    clock_set(1000, 2000);
    clock_advance(5);
    assert_int_equal(clock_mono_ms(), 1005);
    assert_int_equal(clock_wall_ms(), 2005);
    clock_use_system();
    assert_true(clock_wall_ms() > 1600000000000);
}

/* The monotonic clock goes on when the wall clock jumps; clock_set would make both anew. */
static void test_a_time_of_another_machine_is_as_long_ago_as_it_was(void **state)
{
    (void)state;
    clock_set(1000, 7000500000);
    assert_int_equal(clock_since_ms(7000470000), 30000);
    assert_int_equal(clock_since_ms(7000503000), -3000);
    clock_advance(10000);
    assert_int_equal(clock_since_ms(7000470000), 40000);
    clock_step_wall(-3600000);
    assert_int_equal(clock_since_ms(7000470000), 40000);
    clock_advance(1000);
    assert_int_equal(clock_since_ms(7000470000), 41000);
    clock_step_wall(7200000); /* from what was wrong to what is right */
    assert_int_equal(clock_since_ms(7000470000), 41000 + 3600000);
    clock_use_system();
}

/* A clock that is hours behind would take every pod for one that has yet to come. */
static void test_a_time_far_ahead_was_long_ago(void **state)
{
    (void)state;
    clock_set(1000, 500000);
    assert_int_equal(clock_since_ms(500000 + 3600000), CLOCK_LONG_AGO_MS);
    assert_int_equal(clock_since_ms(500000 + 10000), -10000);
    clock_use_system();
}

/* 2000-02-29T23:59:59Z is 951868799 by `date -u -d … +%s`. */
static void test_time_is_rfc3339(void **state)
{
    char text[RFC3339_SIZE];
    int64_t ms;
    (void)state;
    time_format(951868799123, text);
    assert_string_equal(text, "2000-02-29T23:59:59Z");
    time_format_micro(951868799123, text);
    assert_string_equal(text, "2000-02-29T23:59:59.123000Z");
    assert_int_equal(time_parse("2000-02-29T23:59:59Z", &ms), 0);
    assert_int_equal(ms, 951868799000);
    assert_int_equal(time_parse("2000-03-01T01:59:59.123456+02:00", &ms), 0);
    assert_int_equal(ms, 951868799123);
    static const char *const bad[] = {"",
                                      "2000",
                                      "2000-02-29",
                                      "2000-02-29T23:59:59",
                                      "2000-02-29T23:59:59+2",
                                      "2000-02-29T23:59:59Zx"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(time_parse(bad[i], &ms), -1);
}

static void test_durations_are_go_s(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"300ms", 300000},
                {"1.5s", 1500000},
                {"1m30s", 90000000},
                {"2h", 7200000000},
                {"85us", 85},
                {"85µs", 85},
                {".5s", 500000},
                {"1.s", 1000000},
                {"0", 0},
                {"1h2m3s4ms5us", 3723004005},
                {"1500ns", 2}};
    static const char *const bad[] = {"",    "300", "ms",    "-1s", "1x",
                                      "1s ", "1 s", "1..5s", "s1",  "99999999999999h"};
    int64_t us;
    struct error err = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(duration_parse(good[i].text, &us, &err), 0);
        assert_int_equal(us, good[i].us);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(duration_parse(bad[i], &us, &err), -1);
}

static void test_durations_read_well(void **state)
{
    static const struct {
        double us;
        const char *text;
    } cases[] = {{85, "85us"},      {1500, "1.5ms"},    {9999, "10ms"}, {412300, "412ms"},
                 {999400, "999ms"}, {1520000, "1.52s"}, {60e6, "60s"}};
    char text[24];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        duration_print(cases[i].us, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* --- log --- */
static void test_log_formats(void **state)
{
    cleanup_buf struct buf out;
    (void)state;
    buf_init(&out, 100000);
    log_set_output_for_test(&out);
    clock_set(1, 951868799123);
    log_setup(LOG_INFO, LOG_LOGFMT);
    log_debug("not shown");
    log_info("scaled up", log_str("mpa", "a/b"), log_int("replicas", 3), log_num("cpu", 0.25));
    assert_string_equal(buf_string(&out), "time=2000-02-29T23:59:59.123000Z level=info "
                                          "msg=\"scaled up\" mpa=a/b replicas=3 cpu=0.25\n");
    buf_clear(&out);
    log_setup(LOG_DEBUG, LOG_JSON);
    log_warn("quote \" and\nline", log_str("k", "tab\there"));
    cleanup_json json_t *parsed = json_loads(buf_string(&out), 0, NULL);
    assert_string_equal(json_str(json_object_get(parsed, "msg")), "quote \" and\nline");
    assert_string_equal(json_str(json_object_get(parsed, "k")), "tab\there");
    clock_use_system();
    log_set_output_for_test(NULL);
    log_setup(LOG_INFO, LOG_LOGFMT);
}

/* A field that could break a line into two would let input forge log lines. */
static void test_log_stays_on_one_line_and_bounded(void **state)
{
    cleanup_buf struct buf out;
    char text[20000];
    (void)state;
    memset(text, '\n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    buf_init(&out, 100000);
    log_set_output_for_test(&out);
    log_info(text, log_str("k", text));
    assert_true(out.len < 10000);
    assert_null(memchr(out.data, '\n', out.len - 1));
    assert_int_equal(out.data[out.len - 1], '\n');
    log_set_output_for_test(NULL);
}

/* --- JSON --- */
static void test_json_path(void **state)
{
    cleanup_json json_t *o = json_loads("{\"a\":{\"b\":\"c\"},\"n\":1}", 0, NULL);
    (void)state;
    assert_string_equal(json_str(json_path(o, "a", "b", NULL)), "c");
    assert_null(json_path(o, "a", "x", "y", NULL));
    assert_null(json_path(o, "n", "y", NULL));
    assert_string_equal(json_str(json_path(o, "n", NULL)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_carries_code_and_context),
        cmocka_unit_test(test_secrets_are_hidden),
        cmocka_unit_test(test_error_too_long_is_cut),
        cmocka_unit_test(test_buf_never_passes_its_maximum),
        cmocka_unit_test(test_buf_take_and_drop),
        cmocka_unit_test(test_map_keeps_what_is_put),
        cmocka_unit_test(test_map_walk_with_removal_meets_every_entry),
        cmocka_unit_test(test_clock_can_be_set),
        cmocka_unit_test(test_a_time_of_another_machine_is_as_long_ago_as_it_was),
        cmocka_unit_test(test_a_time_far_ahead_was_long_ago),
        cmocka_unit_test(test_time_is_rfc3339),
        cmocka_unit_test(test_durations_are_go_s),
        cmocka_unit_test(test_durations_read_well),
        cmocka_unit_test(test_log_formats),
        cmocka_unit_test(test_log_stays_on_one_line_and_bounded),
        cmocka_unit_test(test_json_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
