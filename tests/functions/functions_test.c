#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "action.h"
#include "events.h"
#include "functions.h"
#include "workloads.h"

static void assert_base64(const char *data, const char *code)
{
    char out[BASE64_LENGTH(8) + 1];
    size_t length = base64_encode((const unsigned char *)data, strlen(data), out);
    assert_string_equal(out, code);
    assert_int_equal(length, strlen(code));
}

static void base64_matches_rfc4648(void **state)
{
    (void)state;
    assert_base64("", "");
    assert_base64("f", "Zg==");
    assert_base64("fo", "Zm8=");
    assert_base64("foo", "Zm9v");
    assert_base64("foob", "Zm9vYg==");
    assert_base64("fooba", "Zm9vYmE=");
    assert_base64("foobar", "Zm9vYmFy");
}

static void base64_uses_whole_alphabet(void **state)
{
    (void)state;
    assert_base64("\xfb\xff\xbf", "+/+/");
}

static void primes_are_counted(void **state)
{
    (void)state;
    assert_int_equal(count_primes(0), 0);
    assert_int_equal(count_primes(2), 0);
    assert_int_equal(count_primes(3), 1);
    assert_int_equal(count_primes(7), 3);
    assert_int_equal(count_primes(8), 4);
    assert_int_equal(count_primes(10), 4);
    assert_int_equal(count_primes(1000), 168);
    assert_int_equal(count_primes(100000), 9592);
    assert_int_equal(count_primes(1000000), 78498);
}

static void assert_html(const char *markdown, const char *expected)
{
    char html[512];
    size_t length = markdown_to_html(markdown, html, sizeof(html));
    assert_string_equal(html, expected);
    assert_int_equal(length, strlen(expected));
}

static void markdown_has_blocks(void **state)
{
    (void)state;
    assert_html("", "");
    assert_html("# One\n### Three", "<h1>One</h1>\n<h3>Three</h3>\n");
    assert_html("a\nb\n\nc\n", "<p>a\nb</p>\n<p>c</p>\n");
    assert_html("- a\n* b\n", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n");
    assert_html("1. a\n20. b\nc", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n<p>c</p>\n");
    assert_html("> a\n> b\n", "<blockquote>a\nb</blockquote>\n");
    assert_html("a\n---\nb", "<p>a</p>\n<hr>\n<p>b</p>\n");
    assert_html("```\n*a* <b>\n\n# c\n```\nd",
                "<pre><code>*a* &lt;b&gt;\n\n# c\n</code></pre>\n<p>d</p>\n");
    assert_html("```\nopen", "<pre><code>open\n</code></pre>\n");
}

static void markdown_has_inline_marks(void **state)
{
    (void)state;
    assert_html("a **b *c*** d", "<p>a <strong>b *c</strong>* d</p>\n");
    assert_html("**b** *c* `d*e*`", "<p><strong>b</strong> <em>c</em> <code>d*e*</code></p>\n");
    assert_html("[*x*](/y?a&b)", "<p><a href=\"/y?a&amp;b\"><em>x</em></a></p>\n");
    assert_html("\"<&>\"", "<p>&quot;&lt;&amp;&gt;&quot;</p>\n");
}

static void markdown_leaves_what_is_no_mark(void **state)
{
    (void)state;
    assert_html("#no", "<p>#no</p>\n");
    assert_html("####### no", "<p>####### no</p>\n");
    assert_html("#", "<p>#</p>\n");
    assert_html("-no 1.no", "<p>-no 1.no</p>\n");
    assert_html("a * b ** `", "<p>a <em> b </em>* `</p>\n");
    assert_html("[a] (b) [c](d", "<p>[a] (b) [c](d</p>\n");
}

static void markdown_reports_what_does_not_fit(void **state)
{
    (void)state;
    char html[6] = "#####";
    assert_int_equal(markdown_to_html("abc", html, sizeof(html)), strlen("<p>abc</p>\n"));
    assert_string_equal(html, "<p>ab");
    assert_int_equal(markdown_to_html("abc", NULL, 0), strlen("<p>abc</p>\n"));
}

static void sentiment_has_the_right_sign(void **state)
{
    (void)state;
    assert_true(sentiment("What a GREAT, friendly place!") > 0.5);
    assert_true(sentiment("The worst. Rude and dirty.") < -0.5);
    assert_true(sentiment("The train has four doors.") == 0);
    assert_true(sentiment("") == 0);
}

static void sentiment_heeds_negation_and_boost(void **state)
{
    (void)state;
    assert_true(sentiment("not good") < 0);
    assert_true(sentiment("never a real problem") > 0);
    assert_true(sentiment("not that one it was good") > 0);
    assert_true(sentiment("very good") > sentiment("good"));
    assert_true(sentiment("slightly good") < sentiment("good"));
}

static void constant_image_stays_constant(void **state)
{
    (void)state;
    unsigned char source[3 * 7 * 5], target[3 * 3 * 2];
    memset(source, 77, sizeof(source));
    memset(target, 0, sizeof(target));
    resize_image(&(struct image){7, 5, source}, &(struct image){3, 2, target});
    for (size_t i = 0; i < sizeof(target); i++)
        assert_int_equal(target[i], 77);
}

static void gradient_is_sampled_at_pixel_centres(void **state)
{
    (void)state;
    unsigned char source[3 * 16 * 16], target[3 * 8 * 8];
    for (unsigned y = 0; y < 16; y++) {
        for (unsigned x = 0; x < 16; x++) {
            unsigned char *pixel = source + 3 * (16 * y + x);
            pixel[0] = (unsigned char)(4 * x);
            pixel[1] = (unsigned char)(8 * y);
            pixel[2] = (unsigned char)(2 * x + 6 * y);
        }
    }
    resize_image(&(struct image){16, 16, source}, &(struct image){8, 8, target});
    for (unsigned y = 0; y < 8; y++) {
        for (unsigned x = 0; x < 8; x++) {
            const unsigned char *pixel = target + 3 * (8 * y + x);
            assert_int_equal(pixel[0], 8 * x + 2);
            assert_int_equal(pixel[1], 16 * y + 4);
            assert_int_equal(pixel[2], 4 * x + 12 * y + 4);
        }
    }
}

static void single_pixel_can_be_source_and_target(void **state)
{
    (void)state;
    unsigned char one[3] = {1, 2, 3}, four[3 * 4];
    resize_image(&(struct image){1, 1, one}, &(struct image){2, 2, four});
    assert_memory_equal(four + 9, one, sizeof(one));
    resize_image(&(struct image){2, 2, four}, &(struct image){1, 1, one});
    assert_memory_equal(one, four, sizeof(one));
}

static void workloads_take_least_work(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORKLOAD_COUNT; i++) {
        double result;
        assert_true(workloads[i].run(1, &result));
        assert_true(workloads[i].run(2, &result));
    }
}

/* --- OpenWhisk ----------------------------------------------------------------------------------
 */
static void assert_answer(struct answer answer, unsigned status, const char *part)
{
    assert_int_equal(answer.status, status);
    assert_non_null(strstr(answer.json, part));
    free(answer.json);
}

#define GIVE(function, body) function(body, strlen(body))

static void an_action_is_initialised_once_and_run(void **state)
{
    (void)state;
    assert_answer(GIVE(action_run, "{\"value\":{}}"), 500, "not initialised");
    assert_answer(GIVE(action_init, "{\"value\":{\"code\":\"x\"}}"), 502, "name of a function");
    assert_answer(GIVE(action_init, "not JSON"), 502, "name of a function");
    assert_answer(GIVE(action_init, "{\"value\":{\"name\":\"hello\",\"code\":\"primes\"}}"), 200,
                  "\"ok\":true");
    assert_answer(GIVE(action_init, "{\"value\":{\"code\":\"primes\"}}"), 403, "already");
    assert_answer(GIVE(action_run, "{\"value\":{\"n\":10},\"namespace\":\"guest\"}"), 200,
                  "\"result\":4.0");
    assert_answer(GIVE(action_run, "{\"value\":{\"n\":0}}"), 502, "in bounds");
    assert_answer(GIVE(action_run, "{}"), 502, "must be an object");
}

static void activations_are_told_to_prometheus(void **state)
{
    char *text = NULL;
    size_t length;
    (void)state;
    assert_true(events_activation("guest", "me", "pkg/hello", 0.03, 0));
    assert_true(events_activation("guest", "me", "pkg/hello", 20, 2));
    assert_false(events_activation("a\"b", "me", "hello", 1, 0));
    FILE *out = open_memstream(&text, &length);
    events_render(out);
    fclose(out);
#define SERIES "{namespace=\"guest\",initiator=\"me\",action=\"pkg/hello\""
    assert_non_null(
        strstr(text, "openwhisk_action_duration_seconds_bucket" SERIES ",le=\"0.025\"} 0\n"));
    assert_non_null(
        strstr(text, "openwhisk_action_duration_seconds_bucket" SERIES ",le=\"0.05\"} 1\n"));
    assert_non_null(
        strstr(text, "openwhisk_action_duration_seconds_bucket" SERIES ",le=\"+Inf\"} 2\n"));
    assert_non_null(strstr(text, "openwhisk_action_duration_seconds_count" SERIES "} 2\n"));
    assert_non_null(
        strstr(text, "openwhisk_action_waitTime_seconds_bucket" SERIES ",le=\"0.005\"} 1\n"));
    assert_non_null(strstr(text, "openwhisk_action_waitTime_seconds_sum" SERIES "} 2\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_matches_rfc4648),
        cmocka_unit_test(base64_uses_whole_alphabet),
        cmocka_unit_test(primes_are_counted),
        cmocka_unit_test(markdown_has_blocks),
        cmocka_unit_test(markdown_has_inline_marks),
        cmocka_unit_test(markdown_leaves_what_is_no_mark),
        cmocka_unit_test(markdown_reports_what_does_not_fit),
        cmocka_unit_test(sentiment_has_the_right_sign),
        cmocka_unit_test(sentiment_heeds_negation_and_boost),
        cmocka_unit_test(constant_image_stays_constant),
        cmocka_unit_test(gradient_is_sampled_at_pixel_centres),
        cmocka_unit_test(single_pixel_can_be_source_and_target),
        cmocka_unit_test(workloads_take_least_work),
        cmocka_unit_test(an_action_is_initialised_once_and_run),
        cmocka_unit_test(activations_are_told_to_prometheus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
