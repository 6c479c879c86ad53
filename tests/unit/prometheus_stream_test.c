/* An answer in pieces is the same as the whole one, wherever it is cut. */
#include "prometheus/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char vector[] =
    "{\"status\":\"success\",\"warnings\":[\"[{\\\"result\\\":[\"],\"data\": "
    "{\"resultType\":\"vector\","
    "\"result\" : [ "
    "{\"metric\":{\"pod\":\"a}]\\\"\\u00e9\",\"result\":\"x\"},\"value\":[1.5,\"0.25\"]} ,"
    "{\"metric\":{},\"value\":[1.5,\"NaN\"],\"more\":[{\"a\":[]}]}]},\"infos\":[\"i\"]}";
static const char matrix[] =
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
    "{\"metric\":{\"pod\":\"a\"},\"values\":[[1,\"1\"],[2,\"+Inf\"]]},"
    "{\"metric\":{\"pod\":\"b\"},\"values\":[[1,\"3\"]]}]}}";

struct told {
    char text[2048];
    size_t len;
    struct error error;
};

static void put(struct told *told, const char *text)
{
    told->len +=
        (size_t)snprintf(told->text + told->len, sizeof(told->text) - told->len, "%s;", text);
}

static void on_series(void *arg, const struct prom_series *series)
{
    struct told *told = arg;
    char number[64];
    put(told, prom_label(series, "pod"));
    put(told, prom_label(series, "result"));
    for (size_t i = 0; i < series->sample_count; i++) {
        snprintf(number, sizeof(number), "%g=%g", series->samples[i].time_s,
                 series->samples[i].value);
        put(told, number);
    }
}

static void tell_rest(struct told *told, const struct prom_result *result)
{
    put(told, result->warnings ? result->warnings : "");
    put(told, result->infos ? result->infos : "");
}

/* As prom_parse has it. */
static void tell_whole(const char *text, struct told *told)
{
    struct prom_result result;
    struct error err;
    *told = (struct told){0};
    assert_int_equal(prom_parse(text, strlen(text), &result, &err), 0);
    for (size_t i = 0; i < result.series_count; i++)
        on_series(told, &result.series[i]);
    tell_rest(told, &result);
    prom_result_clear(&result);
}

/* Cut before the byte at and, unless step is 0, each step bytes from there. */
static int feed(const char *text, size_t len, size_t at, size_t step, struct told *told)
{
    struct prom_stream *stream = prom_stream_new(on_series, told);
    struct prom_result result;
    struct error err = {0};
    *told = (struct told){0};
    int outcome = prom_stream_feed(stream, text, at);
    while (at < len && outcome == 0) {
        size_t n = step && step < len - at ? step : len - at;
        outcome = prom_stream_feed(stream, text + at, n);
        at += n;
    }
    if (prom_stream_end(stream, &result, &err) < 0) {
        assert_string_not_equal(err.message, "");
        told->error = err;
        outcome = -1;
    } else {
        assert_int_equal(result.series_count, 0);
        tell_rest(told, &result);
        prom_result_clear(&result);
    }
    prom_stream_free(stream);
    return outcome;
}

static void assert_same_wherever_cut(const char *text)
{
    struct told whole, pieces;
    size_t len = strlen(text);
    tell_whole(text, &whole);
    assert_true(whole.len > 8);
    for (size_t at = 0; at <= len; at++) {
        assert_int_equal(feed(text, len, at, 0, &pieces), 0);
        assert_string_equal(pieces.text, whole.text);
    }
    for (size_t step = 1; step < 9; step++) {
        assert_int_equal(feed(text, len, 0, step, &pieces), 0);
        assert_string_equal(pieces.text, whole.text);
    }
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    assert_same_wherever_cut(vector);
    assert_same_wherever_cut(matrix);
}

/* Where the series are it is told that there should be more. */
static void test_too_short(void **state)
{
    (void)state;
    struct told told;
    size_t first = (size_t)(strstr(vector, "{\"metric\"") - vector);
    size_t last = (size_t)(strstr(vector, "]},\"infos\"") - vector);
    for (size_t len = 0; len < sizeof(vector) - 1; len++) {
        assert_int_equal(feed(vector, len, len / 2, 0, &told), -1);
        if (len >= first && len <= last && !strstr(told.error.message, "cut short after"))
            fail_msg("%zu: %s", len, told.error.message);
    }
}

/* What prom_parse refuses, a stream refuses. */
static void test_refused(void **state)
{
    (void)state;
#define RESULT(type, list)                                                                         \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"" type "\",\"result\":" list "}}"
#define SERIES "{\"metric\":{},\"value\":[1,\"1\"]}"
    static const char *const bad[] = {
        RESULT("vector", "[,]"),
        RESULT("vector", "[" SERIES ",]"),
        RESULT("vector", "[" SERIES SERIES "]"),
        RESULT("vector", "[1]"),
        RESULT("vector", "[{\"metric\":{}}]"),
        RESULT("vector", "[{\"metric\":{},\"value\":[1,\"x\"]}]"),
        RESULT("vector", "[{\"metric\":{},\"values\":[[1,\"1\"]]}]"),
        RESULT("matrix", "[" SERIES "]"),
        RESULT("vector", "[" SERIES "]") "}",
        RESULT("vector", "[{]}"),
        "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"too slow\"}",
        "no JSON",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct told told;
        struct prom_result result;
        struct error err;
        size_t len = strlen(bad[i]);
        assert_int_equal(prom_parse(bad[i], len, &result, &err), -1);
        assert_int_equal(feed(bad[i], len, 0, 1, &told), -1);
        assert_int_equal(feed(bad[i], len, len, 0, &told), -1);
    }
}

/* Then the series are read, and told, at the end. */
static void test_type_after_result(void **state)
{
    (void)state;
    static const char late[] =
        "{\"status\":\"success\",\"data\":{\"result\":[" SERIES "],\"resultType\":\"vector\"}}";
    struct told told = {0};
    struct prom_stream *stream = prom_stream_new(on_series, &told);
    struct prom_result result;
    struct error err;
    assert_int_equal(prom_stream_feed(stream, late, sizeof(late) - 1), 0);
    assert_int_equal(told.len, 0);
    assert_int_equal(prom_stream_end(stream, &result, &err), 0);
    assert_string_equal(told.text, ";;1=1;");
    assert_int_equal(result.series_count, 0);
    prom_result_clear(&result);
    prom_stream_free(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_type_after_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
