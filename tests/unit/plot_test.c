/* Plots through their public face: what is drawn, and that odd numbers harm nobody. That the pixels
 * show the same as the SVG is looked at in tests/report/test_plot.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "plot/plot.h"

typedef void (*writer)(const struct plot *plot, FILE *out);

static char *written(const struct plot *plot, writer write, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    write(plot, out);
    fclose(out);
    return text;
}

static char *svg_of(const struct plot_line *lines, size_t count)
{
    size_t len;
    const struct plot_panel panel = {"y", lines, count};
    return written(&(struct plot){"title", "more", "x", &panel, 1}, plot_write_svg, &len);
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

#define FIRST_COLOUR "stroke=\"#0a6ebd\""

static void test_a_gap_parts_a_line(void **state)
{
    const double x[5] = {0, 1, 2, 3, 4}, whole[5] = {1, 2, 3, 4, 5}, gap[5] = {1, 2, NAN, 4, 5};
    (void)state;
    cleanup_free char *one = svg_of(&(struct plot_line){"a", x, whole, NULL, NULL, 5}, 1);
    cleanup_free char *two = svg_of(&(struct plot_line){"a", x, gap, NULL, NULL, 5}, 1);
    assert_int_equal(count_of(one, FIRST_COLOUR), 1);
    assert_int_equal(count_of(two, FIRST_COLOUR), 2);
}

static void test_a_band_and_a_key_where_asked_for(void **state)
{
    const double x[2] = {0, 1}, y[2] = {1, 2}, low[2] = {0, 1}, high[2] = {2, 3};
    const struct plot_line lines[2] = {{"first <&>", x, y, low, high, 2},
                                       {"second", x, y, NULL, NULL, 2}};
    (void)state;
    cleanup_free char *alone = svg_of(lines, 1);
    cleanup_free char *both = svg_of(lines, 2);
    assert_int_equal(count_of(alone, "<polygon"), 1);
    assert_null(strstr(alone, "first"));
    assert_non_null(strstr(both, "first &#60;&#38;&#62;"));
    assert_non_null(strstr(both, "second"));
}

/* Where a text begins. */
static void find_text(const char *svg, const char *text, double *x, double *y)
{
    const char *at = strstr(svg, text), *begin = NULL;
    assert_non_null(at);
    for (const char *p = svg; (p = strstr(p, "translate(")) && p < at; p++)
        begin = p;
    assert_non_null(begin);
    assert_int_equal(sscanf(begin, "translate(%lf %lf)", x, y), 2);
}

static void test_the_key_keeps_off_the_lines(void **state)
{
    enum { COUNT = 50 };
    double x[COUNT], up[COUNT], down[COUNT], px, py;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        x[i] = up[i] = i, down[i] = -i;
    const struct plot_line rising[2] = {{"first", x, up, NULL, NULL, COUNT},
                                        {"second", x, up, NULL, NULL, COUNT}};
    const struct plot_line falling[2] = {{"first", x, down, NULL, NULL, COUNT},
                                         {"second", x, down, NULL, NULL, COUNT}};
    cleanup_free char *a = svg_of(rising, 2);
    cleanup_free char *b = svg_of(falling, 2);
    find_text(a, "first", &px, &py);
    assert_true(px > 380 && py > 170); /* lower right */
    find_text(b, "first", &px, &py);
    assert_true(px > 380 && py < 170); /* upper right */
}

/* Odd numbers of points, numbers that are none, texts that are no UTF-8. */
static void test_odd_plots_are_drawn(void **state)
{
    const double x[3] = {0, 1, 2}, none[3] = {NAN, INFINITY, -INFINITY}, same[3] = {7, 7, 7};
    const double lone[3] = {NAN, 1, NAN}, huge[3] = {-1e300, 0, 1e300};
    const struct plot_line lines[] = {
        {"none", x, none, none, none, 3},           {"same", x, same, same, same, 3},
        {"lone", x, lone, NULL, NULL, 3},           {"huge", x, huge, huge, huge, 3},
        {"\xff\xc3 \xe2\x82", x, x, NULL, NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        const struct plot_panel panels[2] = {{"", &lines[i], 1}, {"\xe4", lines, ARRAY_LEN(lines)}};
        for (size_t panel_count = 0; panel_count <= 2; panel_count++) {
            const struct plot plot = {"", "\x80", "∞", panels, panel_count};
            size_t len;
            cleanup_free char *png = written(&plot, plot_write_png, &len);
            assert_memory_equal(png, "\x89PNG\r\n\x1a\n", 8);
            assert_memory_equal(png + len - 8, "IEND\xae\x42\x60\x82", 8);
            cleanup_free char *svg = written(&plot, plot_write_svg, &len);
            assert_null(strstr(svg, "nan"));
            assert_null(strstr(svg, "inf"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gap_parts_a_line),
        cmocka_unit_test(test_a_band_and_a_key_where_asked_for),
        cmocka_unit_test(test_the_key_keeps_off_the_lines),
        cmocka_unit_test(test_odd_plots_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
