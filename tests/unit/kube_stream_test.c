#include "kube/kube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    int count;
    char types[256];
    char last_name[64];
    json_int_t last_number;
};

static void on_event(void *arg, const char *type, const json_t *object)
{
    struct seen *seen = arg;
    size_t at = strlen(seen->types);
    seen->count++;
    if (at < sizeof(seen->types) - 2)
        seen->types[at] = type[0];
    const char *name = json_str(json_path(object, "metadata", "name", NULL));
    memcpy(seen->last_name, name, strnlen(name, sizeof(seen->last_name) - 1) + 1);
    seen->last_number = json_integer_value(json_object_get(object, "n"));
}

static int feed(struct kube_stream *s, const char *text, size_t piece, struct error *err)
{
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at += piece)
        if (kube_stream_feed(s, text + at, len - at < piece ? len - at : piece, err) < 0)
            return -1;
    return 0;
}

static const char three[] =
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
    "\r\n"
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"b\\nb\"}}}\r\n"
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"name\":\"c\"}}}\n";

/* The same events come out wherever the network cuts them. */
static void cuts_do_not_matter(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= sizeof(three); piece++) {
        struct seen seen = {0};
        struct kube_stream s;
        struct error err;
        kube_stream_init(&s, 1024, on_event, &seen);
        assert_int_equal(feed(&s, three, piece, &err), 0);
        assert_int_equal(seen.count, 3);
        assert_string_equal(seen.types, "AMB");
        assert_string_equal(seen.last_name, "c");
        kube_stream_free(&s);
    }
}

static void an_unfinished_line_waits(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct kube_stream s;
    struct error err;
    kube_stream_init(&s, 1024, on_event, &seen);
    assert_int_equal(feed(&s, "{\"type\":\"ADDED\",\"object\":{}}", 7, &err), 0);
    assert_int_equal(seen.count, 0);
    assert_int_equal(feed(&s, "\n", 1, &err), 0);
    assert_int_equal(seen.count, 1);
    kube_stream_free(&s);
}

static void what_is_no_event_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\n",
        "nonsense\n",
        "[]\n",
        "{\"type\":\"ADDED\"}\n",
        "{\"object\":{}}\n",
        "{\"type\":1,\"object\":{}}\n",
        "{\"type\":\"ADDED\",\"object\":[]}\n",
        "{\"type\":\"ADDED\",\"object\":{}} {}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct seen seen = {0};
        struct kube_stream s;
        struct error err = {0};
        kube_stream_init(&s, 1024, on_event, &seen);
        assert_int_equal(feed(&s, bad[i], 3, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
        assert_int_equal(seen.count, 0);
        kube_stream_free(&s);
    }
}

/* In pieces or whole, a line beyond the bound is refused and one at the bound is not. */
static void long_lines_are_refused(void **state)
{
    (void)state;
    static const char line[] = "{\"type\":\"ADDED\",\"object\":{}}\n";
    size_t len = sizeof(line) - 2; /* without the end of line */
    for (size_t piece = 1; piece <= len + 1; piece++) {
        for (size_t max = len - 1; max <= len; max++) {
            struct seen seen = {0};
            struct kube_stream s;
            struct error err = {0};
            kube_stream_init(&s, max, on_event, &seen);
            int ret = feed(&s, line, piece, &err);
            assert_int_equal(ret, max == len ? 0 : -1);
            assert_int_equal(err.code, max == len ? ERROR_NONE : ERROR_TOO_LARGE);
            assert_int_equal(seen.count, max == len);
            kube_stream_free(&s);
        }
    }
}

/* Go prints the float 1e20 as 100000000000000000000, which is no int64; and a label may hold a NUL
 * byte for all JSON cares. Neither may hide the other objects of the cluster. */
static void odd_values_do_not_blind_us(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct kube_stream s;
    struct error err = {0};
    kube_stream_init(&s, 1024, on_event, &seen);
    assert_int_equal(feed(&s,
                          "{\"type\":\"ADDED\",\"object\":{\"big\":100000000000000000000,"
                          "\"n\":42,\"deep\":[{\"n\":[1,2.5]}]}}\n",
                          1000, &err),
                     0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last_number, 42);
    assert_int_equal(
        feed(&s, "{\"type\":\"ADDED\",\"object\":{\"x\":\"a\\u0000b\",\"n\":7}}\n", 1000, &err), 0);
    assert_int_equal(seen.last_number, 7);
    kube_stream_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_do_not_matter),          cmocka_unit_test(an_unfinished_line_waits),
        cmocka_unit_test(what_is_no_event_is_refused), cmocka_unit_test(long_lines_are_refused),
        cmocka_unit_test(odd_values_do_not_blind_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
