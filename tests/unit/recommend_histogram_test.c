/* The decaying histogram against numbers of VPA's own (1.4.1), given the same samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recommend/recommend.h"

#define DAY_S   86400.0
#define START_S 1.7e9

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-8 * fabs(b)))
        fail_msg("%.12g instead of %.12g", a, b);
}

static struct recommend_histogram *new_cpu(double half_life_s)
{
    return recommend_histogram_new(10, 1e6, half_life_s);
}

static struct recommend_histogram *new_memory(void)
{
    return recommend_histogram_new(1e7, 1e12, DAY_S);
}

static void a_percentile_is_the_end_of_its_bucket(void **state)
{
    (void)state;
    static const double cpu[][2] = {
        {0, 10},
        {5, 10},
        {10, 20.499999999999986},
        {14.9, 20.499999999999986},
        {100, 110.26564319570306},
        {250, 258.40366356020638},
        {500, 511.13453758887061},
        {1000, 1016.2813885540904},
        {3700, 3722.6290377658188},
        {64000, 66259.425841371791},
        {999000, 1021109.40890486},
        {1e9, 1021109.40890486}, /* the last bucket has no end */
    };
    static const double memory[][2] = {
        {1, 1e7},
        {1e7, 20499999.999999989},
        {1.5e8, 159171265.20442569},
        {2.56e8, 258403663.56020641},
        {1e9, 1016281388.5540904},
        {3e10, 30245828722.865425},
        {5e12, 1021109408904.86},
    };
    for (size_t i = 0; i < ARRAY_LEN(cpu); i++) {
        struct recommend_histogram *h = new_cpu(DAY_S);
        recommend_histogram_add(h, START_S, cpu[i][0], 0.1);
        assert_near(recommend_histogram_percentile(h, 0.9), cpu[i][1]);
        recommend_histogram_free(h);
    }
    for (size_t i = 0; i < ARRAY_LEN(memory); i++) {
        struct recommend_histogram *h = new_memory();
        recommend_histogram_add(h, START_S, memory[i][0], 1);
        assert_near(recommend_histogram_percentile(h, 0.9), memory[i][1]);
        recommend_histogram_free(h);
    }
}

/* 500 samples of 50 + 2000 u² milli-cores, the last hundred a quarter of that. */
static void streams_give_the_percentiles_of_vpa(void **state)
{
    (void)state;
    static const double shares[] = {0.01, 0.5, 0.9, 0.95, 0.99, 1};
    static const struct {
        double half_life_s, step_s, expected[6];
    } streams[] = {
        {600, 15, {20.5, 177.1298285, 511.1345376, 1140.950231, 1880.253929, 2093.479957}},
        {600, 60, {20.5, 125.7789254, 414.3047512, 511.1345376, 511.1345376, 2093.479957}},
        {600, 3600, {177.1298285, 177.1298285, 177.1298285, 177.1298285, 414.3047512, 414.3047512}},
        {86400, 15, {20.5, 414.3047512, 1597.001559, 1781.194218, 2093.479957, 2093.479957}},
        {86400, 60, {20.5, 414.3047512, 1597.001559, 1781.194218, 2093.479957, 2093.479957}},
        {86400, 3600, {20.5, 142.0678716, 511.1345376, 511.1345376, 1429.933387, 2093.479957}},
    };
    for (size_t s = 0; s < ARRAY_LEN(streams); s++) {
        struct recommend_histogram *h = new_cpu(streams[s].half_life_s);
        uint32_t x = 12345;
        for (int i = 0; i < 500; i++) {
            x = x * 1664525u + 1013904223u;
            double u = (double)(x >> 8) / (1 << 24);
            double value = 50 + 2000 * u * u;
            recommend_histogram_add(h, START_S + i * streams[s].step_s,
                                    i >= 400 ? value / 4 : value, 0.1);
        }
        for (size_t q = 0; q < ARRAY_LEN(shares); q++)
            assert_near(recommend_histogram_percentile(h, shares[q]), streams[s].expected[q]);
        recommend_histogram_free(h);
    }
}

static void old_samples_vanish(void **state)
{
    (void)state;
    struct recommend_histogram *h = new_cpu(600);
    recommend_histogram_add(h, START_S, 2000, 0.1);
    recommend_histogram_add(h, START_S + 600 * 20, 100, 0.1);
    assert_near(recommend_histogram_percentile(h, 1), 2093.479957);
    assert_near(recommend_histogram_percentile(h, 0.9), 110.2656432);
    recommend_histogram_add(h, START_S + 600 * 150, 100, 0.1); /* the reference moves */
    assert_near(recommend_histogram_percentile(h, 0), 110.2656432);
    assert_near(recommend_histogram_percentile(h, 1), 110.2656432);
    recommend_histogram_free(h);
}

/* Two samples, the later one a half life younger: it weighs twice as much. */
static void weights_halve_with_the_half_life(void **state)
{
    (void)state;
    struct recommend_histogram *h = new_cpu(600);
    recommend_histogram_add(h, START_S, 1000, 1);
    recommend_histogram_add(h, START_S + 600, 100, 1);
    assert_near(recommend_histogram_percentile(h, 0.66), 110.26564319570306);
    assert_near(recommend_histogram_percentile(h, 0.67), 1016.2813885540904);
    recommend_histogram_free(h);
}

static void samples_can_be_taken_back(void **state)
{
    (void)state;
    struct recommend_histogram *h = new_memory();
    recommend_histogram_add(h, START_S, 1e8, 1);
    recommend_histogram_add(h, START_S, 9e8, 1);
    recommend_histogram_add(h, START_S, 9e8, -1);
    assert_near(recommend_histogram_percentile(h, 1), 110265643.2);
    recommend_histogram_add(h, START_S, 1e8, -1);
    assert_true(recommend_histogram_empty(h));
    assert_true(isnan(recommend_histogram_percentile(h, 0.5)));
    recommend_histogram_free(h);
}

static void an_empty_one_says_so(void **state)
{
    (void)state;
    struct recommend_histogram *h = new_cpu(600);
    assert_true(recommend_histogram_empty(h));
    assert_true(isnan(recommend_histogram_percentile(h, 0.9)));
    recommend_histogram_add(h, START_S, NAN, 1);
    recommend_histogram_add(h, START_S, -1, 1);
    recommend_histogram_add(h, START_S, INFINITY, 1);
    recommend_histogram_add(h, NAN, 1, 1);
    recommend_histogram_add(h, START_S, 1, NAN);
    recommend_histogram_add(h, START_S, 1, 0);
    assert_true(recommend_histogram_empty(h));
    recommend_histogram_add(h, START_S, 0, 0.1);
    assert_false(recommend_histogram_empty(h));
    recommend_histogram_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_percentile_is_the_end_of_its_bucket),
        cmocka_unit_test(streams_give_the_percentiles_of_vpa),
        cmocka_unit_test(old_samples_vanish),
        cmocka_unit_test(weights_halve_with_the_half_life),
        cmocka_unit_test(samples_can_be_taken_back),
        cmocka_unit_test(an_empty_one_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
