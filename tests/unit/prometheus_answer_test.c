/* prom_parse(): answers as the HTTP API documents them and as a Prometheus 2.42 sent them, and
 * everything that is none. jansson is the reference for JSON. */
#include "../fuzz/prometheus_compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define DATA(type, result)                                                                         \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"" type "\",\"result\":" result "}}"
#define VECTOR(labels, sample) DATA("vector", "[{\"metric\":" labels ",\"value\":" sample "}]")

static void parse(const char *body, struct prom_result *out)
{
    struct error err = {0};
    if (prom_parse(body, strlen(body), out, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(err.code, ERROR_NONE);
}

static void assert_fails(const char *body, enum error_code code, const char *message)
{
    struct prom_result result;
    struct error err = {0};
    if (prom_parse(body, strlen(body), &result, &err) == 0)
        fail_msg("accepted: %s", body);
    if (err.code != code || !strstr(err.message, message))
        fail_msg("%s: code %d, \"%s\", which lacks \"%s\"", body, err.code, err.message, message);
    assert_true(strncmp(err.message, "Prometheus answered ", 20) == 0);
    assert_null(result.series);
}

/* --- what is right ------------------------------------------------------------------------- */
static void test_vector(void **state)
{
    (void)state;
    struct prom_result r;
    parse("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
          "{\"metric\":{\"__name__\":\"up\",\"job\":\"self\",\"pod\":\"prometheus-0\"},"
          "\"value\":[1794881331.446,\"1\"]},"
          "{\"metric\":{},\"value\":[1794881331.446,\"-2.5e-3\"]}]}}",
          &r);
    assert_int_equal(r.type, PROM_VECTOR);
    assert_int_equal(r.series_count, 2);
    assert_string_equal(prom_label(&r.series[0], "__name__"), "up");
    assert_string_equal(prom_label(&r.series[0], "pod"), "prometheus-0");
    assert_string_equal(prom_label(&r.series[0], "po"), "");
    assert_string_equal(prom_label(&r.series[1], "pod"), "");
    assert_int_equal(r.series[0].sample_count, 1);
    assert_true(r.series[0].samples[0].time_s == 1794881331.446);
    assert_true(r.series[0].samples[0].value == 1);
    assert_true(r.series[1].samples[0].value == -0.0025);
    assert_null(r.warnings);
    assert_null(r.infos);
    prom_result_clear(&r);
    prom_result_clear(&r);
}

static void test_matrix(void **state)
{
    (void)state;
    struct prom_result r;
    parse(DATA("matrix",
               "[{\"metric\":{\"a\":\"b\"},\"values\":[[1,\"1\"],[2.5,\"NaN\"],[3,\"4e5\"]]},"
               "{\"metric\":{\"a\":\"c\"},\"values\":[]}]"),
          &r);
    assert_int_equal(r.type, PROM_MATRIX);
    assert_int_equal(r.series_count, 2);
    assert_int_equal(r.series[0].sample_count, 3);
    assert_true(r.series[0].samples[1].time_s == 2.5 && isnan(r.series[0].samples[1].value));
    assert_true(r.series[0].samples[2].value == 4e5);
    assert_int_equal(r.series[1].sample_count, 0);
    prom_result_clear(&r);
}

static void test_scalar(void **state)
{
    (void)state;
    struct prom_result r;
    parse(DATA("scalar", "[1794881331.493,\"+Inf\"]"), &r);
    assert_int_equal(r.type, PROM_SCALAR);
    assert_int_equal(r.series_count, 1);
    assert_true(r.series[0].samples[0].value == (double)INFINITY);
    assert_string_equal(prom_label(&r.series[0], "x"), "");
    prom_result_clear(&r);
}

static void test_empty(void **state)
{
    (void)state;
    static const char *const bodies[] = {DATA("vector", "[]"), DATA("matrix", " [ ] "),
                                         DATA("vector", "null")};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct prom_result r;
        parse(bodies[i], &r);
        assert_int_equal(r.series_count, 0);
        prom_result_clear(&r);
    }
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } values[] = {{"0", 0},
                  {"-0", 0},
                  {"1e3", 1000},
                  {"1E+3", 1000},
                  {"0.1", 0.1},
                  {"+Inf", (double)INFINITY},
                  {"-Inf", -(double)INFINITY},
                  {"NaN", (double)NAN},
                  {"1.7976931348623157e+308", 1.7976931348623157e308},
                  {"5e-324", 5e-324},
                  {"9007199254740993", 9007199254740992.0}};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct prom_result r;
        cleanup_free char *body = xasprintf(VECTOR("{}", "[1,\"%s\"]"), values[i].text);
        parse(body, &r);
        double got = r.series[0].samples[0].value;
        assert_true(isnan(values[i].value) ? isnan(got) : got == values[i].value);
        prom_result_clear(&r);
    }
    static const char *const wrong[] = {"",      " 1",    "1 ",  "0x10", "nan",   "infinity",
                                        "1e999", "1_000", "01",  "1.",   ".5",    "+1",
                                        "1e",    "--1",   "one", "inf",  "-1e400"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        cleanup_free char *body = xasprintf(VECTOR("{}", "[1,\"%s\"]"), wrong[i]);
        assert_fails(body, ERROR_INVALID, "a sample that is no number");
    }
}

static void test_escapes(void **state)
{
    (void)state;
    struct prom_result r;
    parse(VECTOR(
              "{\"q\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"u\":\"\\u0041\\u00e9\\u20ac\\uD83D\\uDe00\","
              "\"nul\":\"a\\u0000b\",\"raw\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"\\u006e\":"
              "\"n\"}",
              "[1,\"1\"]"),
          &r);
    assert_string_equal(prom_label(&r.series[0], "q"), "\"\\/\b\f\n\r\t");
    assert_string_equal(prom_label(&r.series[0], "u"), "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(prom_label(&r.series[0], "raw"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(prom_label(&r.series[0], "n"), "n");
    /* U+FFFD: one pod's odd label must not spoil the answer for all others. */
    assert_string_equal(prom_label(&r.series[0], "nul"), "a\xef\xbf\xbd"
                                                         "b");
    prom_result_clear(&r);
}

static void test_any_order(void **state)
{
    (void)state;
    struct prom_result r;
    parse(" { \"data\" : { \"stats\":{\"a\":[1,[true,false,null]]}, \"result\" : [ { \"value\" :"
          " [ 1 , \"2\" ] , \"x\":{}, \"metric\" : { \"a\" : \"b\" } } ] ,\r\n\t\"resultType\" :"
          " \"vector\" } , \"isPartial\":false, \"status\" : \"success\" } \n",
          &r);
    assert_int_equal(r.series_count, 1);
    assert_true(r.series[0].samples[0].value == 2);
    assert_string_equal(prom_label(&r.series[0], "a"), "b");
    prom_result_clear(&r);
}

static void test_warnings(void **state)
{
    (void)state;
    struct prom_result r;
    parse("{\"status\":\"success\",\"warnings\":[\"store a\\nis gone\",\"store b is gone\"],"
          "\"infos\":[\"no counter\"],\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
          &r);
    assert_string_equal(r.warnings, "store a is gone; store b is gone");
    assert_string_equal(r.infos, "no counter");
    prom_result_clear(&r);
    parse("{\"status\":\"success\",\"warnings\":[],\"infos\":null,"
          "\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
          &r);
    assert_null(r.warnings);
    assert_null(r.infos);
    prom_result_clear(&r);
}

static void test_many_warnings_are_cut(void **state)
{
    (void)state;
    cleanup_buf struct buf body;
    buf_init(&body, 1 << 20);
    assert_int_equal(buf_puts(&body, "{\"status\":\"success\",\"warnings\":["), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_printf(&body, "%s\"store %d is gone\"", i ? "," : "", i), 0);
    assert_int_equal(buf_puts(&body, "],\"data\":{\"resultType\":\"vector\",\"result\":[]}}"), 0);
    struct prom_result r;
    parse(buf_string(&body), &r);
    assert_in_range(strlen(r.warnings), 3000, 4096);
    prom_result_clear(&r);
}

/* --- what Prometheus refuses ---------------------------------------------------------------- */
static void test_error(void **state)
{
    (void)state;
    assert_fails("{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter "
                 "\\\"query\\\": 1:4: parse error: unexpected end of input inside braces\"}",
                 ERROR_INVALID,
                 "Prometheus answered bad_data: invalid parameter \"query\": 1:4: parse error");
    assert_fails("{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out in "
                 "expression evaluation\"}",
                 ERROR_TIMEOUT, "timeout: query timed out");
    assert_fails("{\"status\":\"error\",\"errorType\":\"unavailable\",\"error\":\"tsdb\","
                 "\"data\":null}",
                 ERROR_UNAVAILABLE, "unavailable: tsdb");
    assert_fails("{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"many-to-many\","
                 "\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
                 ERROR_INVALID, "execution: many-to-many");
    assert_fails("{\"status\":\"error\"}", ERROR_INVALID, "without saying why");
}

/* --- what is no answer ------------------------------------------------------------------------ */
static void test_not_an_answer(void **state)
{
    (void)state;
    assert_fails("", ERROR_INVALID, "nothing");
    assert_fails("<html>\r\n<title>502 Bad Gateway</title>\x01\xff", ERROR_INVALID,
                 "\"<html>  <title>502 Bad Gateway</title> ?\"");
    assert_fails("null", ERROR_INVALID, "an object was expected");
    assert_fails("[]", ERROR_INVALID, "an object was expected");
    assert_fails("{}", ERROR_INVALID, "no status");
    assert_fails("{\"status\":\"success\"}", ERROR_INVALID, "no data");
    assert_fails("{\"status\":\"success\",\"data\":null}", ERROR_INVALID, "no data");
    assert_fails("{\"status\":\"success\",\"data\":{}}", ERROR_INVALID, "no data");
    assert_fails("{\"status\":\"success\",\"data\":{\"result\":[]}}", ERROR_INVALID, "no data");
    assert_fails("{\"status\":\"success\",\"data\":[\"a\",\"b\"]}", ERROR_INVALID, "an object");
    assert_fails("{\"status\":\"fine\"}", ERROR_INVALID, "a status other than");
    assert_fails(DATA("vector", "[]") "x", ERROR_INVALID, "something follows");
    assert_fails(DATA("string", "[1,\"hello\"]"), ERROR_INVALID, "neither vector, matrix nor");
    assert_fails(DATA("vector", "{}"), ERROR_INVALID, "an array was expected");
    assert_fails(DATA("scalar", "null"), ERROR_INVALID, "an array was expected");
}

static void test_wrong_series(void **state)
{
    (void)state;
    assert_fails(VECTOR("{\"a\":1}", "[1,\"1\"]"), ERROR_INVALID, "a string was expected");
    assert_fails(VECTOR("{\"a\":{}}", "[1,\"1\"]"), ERROR_INVALID, "a string was expected");
    assert_fails(VECTOR("[]", "[1,\"1\"]"), ERROR_INVALID, "an object was expected");
    assert_fails(VECTOR("{\"a\":\"1\",\"a\":\"2\"}", "[1,\"1\"]"), ERROR_INVALID, "twice");
    assert_fails(VECTOR("{}", "[1,\"1\"],\"value\":[1,\"2\"]"), ERROR_INVALID, "twice");
    assert_fails(VECTOR("{}", "[]"), ERROR_INVALID, "a time and a value");
    assert_fails(VECTOR("{}", "[1]"), ERROR_INVALID, "a time and a value");
    assert_fails(VECTOR("{}", "[1,\"1\",2]"), ERROR_INVALID, "a time and a value");
    assert_fails(VECTOR("{}", "[\"1\",\"1\"]"), ERROR_INVALID, "a number was expected");
    assert_fails(VECTOR("{}", "[1,1]"), ERROR_INVALID, "a string was expected");
    assert_fails(VECTOR("{}", "[1e400,\"1\"]"), ERROR_INVALID, "a number was expected");
    assert_fails(DATA("vector", "[{\"metric\":{}}]"), ERROR_INVALID,
                 "without its labels or values");
    assert_fails(DATA("vector", "[{\"value\":[1,\"1\"]}]"), ERROR_INVALID, "without its labels");
    assert_fails(DATA("matrix", "[{\"metric\":{},\"value\":[1,\"1\"]}]"), ERROR_INVALID, "without");
    assert_fails(DATA("vector", "[{\"metric\":{},\"histogram\":[1,{\"count\":\"1\"}]}]"),
                 ERROR_INVALID, "a native histogram");
}

static void test_wrong_json(void **state)
{
    (void)state;
    static const char *const values[] = {"\"\\x\"",
                                         "\"\\u12\"",
                                         "\"\\u12g4\"",
                                         "\"\\ud800\"",
                                         "\"\\udc00\"",
                                         "\"\\udc00\\udc00\"",
                                         "\"\\ud800x\"",
                                         "\"\\ud800\\n\"",
                                         "\"\\ud800\\u0041\"",
                                         "\"\t\"",
                                         "\"a\nb\"",
                                         "\"\xff\"",
                                         "\"\xc0\x80\"",
                                         "\"\xed\xa0\x80\"",
                                         "\"\xe2\x82\"",
                                         "\"\xf4\x90\x80\x80\"",
                                         "\"\xf5\x80\x80\x80\"",
                                         "\"\xe0\x80\x80\"",
                                         "\"\xf0\x80\x80\x80\"",
                                         "\"\x80\"",
                                         "01",
                                         "-",
                                         "1.",
                                         "1.e1",
                                         "1e",
                                         "+1",
                                         "0x1",
                                         ".5",
                                         "NaN",
                                         "Infinity",
                                         "tru",
                                         "True",
                                         "nul",
                                         "'a'",
                                         "[1,]",
                                         "[,1]",
                                         "[1 2]",
                                         "{\"a\"}",
                                         "{\"a\":1,}",
                                         "{a:1}",
                                         "{\"a\" 1}",
                                         "{1:1}",
                                         "/* */1",
                                         "[1}",
                                         "{\"a\":1]"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        cleanup_free char *body = xasprintf("{\"status\":\"success\",\"x\":%s,\"data\":{"
                                            "\"resultType\":\"vector\",\"result\":[]}}",
                                            values[i]);
        assert_null(json_loads(body, 0, NULL)); /* the reference agrees that it is wrong */
        struct prom_result r;
        struct error err;
        if (prom_parse(body, strlen(body), &r, &err) == 0)
            fail_msg("accepted: %s", body);
    }
}

static void test_depth(void **state)
{
    (void)state;
    struct prom_result r;
    struct error err = {0};
    size_t depth = 1000000;
    cleanup_free char *body = xcalloc(depth + 16, 1);
    memcpy(body, "{\"x\":", 5);
    memset(body + 5, '[', depth);
    assert_int_equal(prom_parse(body, depth + 5, &r, &err), -1);
    assert_non_null(strstr(err.message, "nested too deep"));
}

/* Every beginning of an answer is refused, and no byte behind it is read (under a sanitizer). */
static void test_cut_short(void **state)
{
    (void)state;
    static const char body[] =
        "{\"status\":\"success\",\"x\":[true,false,null,-1.5e+3],\"data\":{\"resultType\":"
        "\"matrix\",\"result\":[{\"metric\":{\"a\":\"\\ud83d\\ude00\xf0\x9f\x98\x80\\n\"},"
        "\"values\":[[1.5,\"NaN\"]]}]},\"warnings\":[\"w\"]}";
    for (size_t len = 0; len < sizeof(body) - 1; len++) {
        char *exact = malloc(len ? len : 1);
        assert_non_null(exact);
        memcpy(exact, body, len);
        struct prom_result r;
        struct error err = {0};
        assert_int_equal(prom_parse(exact, len, &r, &err), -1);
        assert_true(err.message[0] != '\0');
        free(exact);
    }
    assert_int_equal(compare_with_jansson(body, sizeof(body) - 1), COMPARE_EQUAL);
}

static void test_label_bound(void **state)
{
    (void)state;
    for (int count = 128; count <= 129; count++) {
        cleanup_json json_t *labels = json_object();
        for (int i = 0; i < count; i++) {
            char name[16];
            snprintf(name, sizeof(name), "label%d", i);
            json_object_set_new(labels, name, json_string(name));
        }
        cleanup_free char *text = json_dumps(labels, 0);
        cleanup_free char *body = xasprintf(VECTOR("%s", "[1,\"1\"]"), text);
        if (count == 129)
            assert_fails(body, ERROR_INVALID, "more than 128 labels");
        else
            assert_int_equal(compare_with_jansson(body, strlen(body)), COMPARE_EQUAL);
    }
}

static void test_series_bound(void **state)
{
    (void)state;
    static const char one[] = ",{\"metric\":{},\"value\":[1,\"1\"]}";
    cleanup_buf struct buf body;
    buf_init(&body, (size_t)128 << 20);
    assert_int_equal(buf_puts(&body, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\","
                                     "\"result\":[{\"metric\":{},\"value\":[1,\"1\"]}"),
                     0);
    for (int i = 0; i < PROM_MAX_SERIES; i++)
        assert_int_equal(buf_append(&body, one, sizeof(one) - 1), 0);
    assert_int_equal(buf_puts(&body, "]}}"), 0);
    assert_fails(buf_string(&body), ERROR_INVALID, "more than 2000000 series");
}

/* --- against jansson -------------------------------------------------------------------------- */
struct random {
    uint64_t state;
};

static uint32_t below(struct random *r, uint32_t n) /* SplitMix64 */
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % n;
}

static json_t *random_string(struct random *r)
{
    static const char *const pieces[] = {
        "prod",     "web-5d7f", "0.25", "\"", "\\", "\n",   "/", "\x01",
        "\xc3\xa9", "é€",       "",     "a",  "b",  "\x7f", "$", "\xf0\x9f\x98\x80"};
    char text[64] = "";
    size_t len = 0;
    for (uint32_t i = below(r, 5); i > 0; i--)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
                                pieces[below(r, ARRAY_LEN(pieces))]);
    return json_string(text);
}

static json_t *random_sample(struct random *r)
{
    static const char *const odd[] = {"NaN", "+Inf", "-Inf", "0", "1e-320", "1e+300"};
    char text[64];
    if (below(r, 4) == 0)
        snprintf(text, sizeof(text), "%s", odd[below(r, ARRAY_LEN(odd))]);
    else
        snprintf(text, sizeof(text), "%.*g", (int)below(r, 17) + 1,
                 (below(r, 2000000) - 1e6) / (1 + below(r, 1000)));
    double time_s = below(r, 2000000000) + below(r, 1000) / 1000.0;
    return json_pack("[f,s]", time_s, text);
}

static json_t *random_series(struct random *r, bool matrix)
{
    json_t *labels = json_object(), *values = json_array();
    for (uint32_t i = below(r, 6); i > 0; i--) {
        cleanup_json json_t *name = random_string(r);
        json_object_set_new(labels, json_string_value(name), random_string(r));
    }
    if (!matrix)
        json_array_append_new(values, random_sample(r));
    for (uint32_t i = matrix ? below(r, 5) : 0; i > 0; i--)
        json_array_append_new(values, random_sample(r));
    json_t *series =
        matrix ? json_pack("{s:o,s:O}", "metric", labels, "values", values)
               : json_pack("{s:o,s:O}", "metric", labels, "value", json_array_get(values, 0));
    json_decref(values);
    return series;
}

static char *random_answer(struct random *r)
{
    static const size_t flags[] = {0, JSON_COMPACT, JSON_INDENT(3), JSON_ENSURE_ASCII,
                                   JSON_ESCAPE_SLASH | JSON_SORT_KEYS};
    bool matrix = below(r, 2);
    json_t *result = json_array();
    for (uint32_t i = below(r, 6); i > 0; i--)
        json_array_append_new(result, random_series(r, matrix));
    const char *type = matrix ? "matrix" : "vector";
    json_t *data = below(r, 2) ? json_pack("{s:s,s:o}", "resultType", type, "result", result)
                               : json_pack("{s:o,s:s}", "result", result, "resultType", type);
    cleanup_json json_t *body = json_pack("{s:o,s:s}", "data", data, "status", "success");
    return json_dumps(body, flags[below(r, ARRAY_LEN(flags))]);
}

static void test_as_jansson(void **state)
{
    (void)state;
    struct random r = {1};
    for (int i = 0; i < 2000; i++) {
        cleanup_free char *body = random_answer(&r);
        assert_non_null(body);
        if (compare_with_jansson(body, strlen(body)) != COMPARE_EQUAL)
            fail_msg("not read as jansson reads it: %s", body);
    }
}

static void test_damaged_as_jansson(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\{}[],:0123456789.eE+-ntfu \n\t\x80\xc3\xff";
    struct random r = {2};
    for (int i = 0; i < 20000; i++) {
        cleanup_free char *body = random_answer(&r);
        size_t len = strlen(body);
        for (uint32_t n = below(&r, 3) + 1; n > 0; n--)
            body[below(&r, (uint32_t)len)] = bytes[below(&r, sizeof(bytes) - 1)];
        if (compare_with_jansson(body, len) == COMPARE_DIFFERS)
            fail_msg("accepted and not read as jansson reads it: %s", body);
    }
}

/* --- classes of values ------------------------------------------------------------------------ */
static void test_classify(void **state)
{
    (void)state;
    struct prom_sample sample = {.time_s = 100, .value = 1};
    assert_int_equal(prom_classify(NULL, 100, 30), PROM_MISSING);
    assert_int_equal(prom_classify(&sample, 100, 30), PROM_NUMBER);
    assert_int_equal(prom_classify(&sample, 130, 30), PROM_NUMBER);
    assert_int_equal(prom_classify(&sample, 130.5, 30), PROM_STALE);
    assert_int_equal(prom_classify(&sample, 1e9, (double)INFINITY), PROM_NUMBER);
    sample.value = (double)NAN;
    assert_int_equal(prom_classify(&sample, 100, 30), PROM_NAN);
    assert_int_equal(prom_classify(&sample, 200, 30), PROM_STALE);
    sample.value = -(double)INFINITY;
    assert_int_equal(prom_classify(&sample, 100, 30), PROM_INF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector),
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_many_warnings_are_cut),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_not_an_answer),
        cmocka_unit_test(test_wrong_series),
        cmocka_unit_test(test_wrong_json),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_label_bound),
        cmocka_unit_test(test_series_bound),
        cmocka_unit_test(test_as_jansson),
        cmocka_unit_test(test_damaged_as_jansson),
        cmocka_unit_test(test_classify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
