/* prom_quantile() against histogram_quantile() of Prometheus 2.42.0. The figures were printed by
 * `promtool test rules` with each of these bucket sets as input_series (a bound as label le), every
 * bit of them. */
#include "prometheus/prometheus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BUCKETS 32

static const double quantiles[] = {0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1};

static const struct vector {
    const char *name;
    struct prom_bucket buckets[MAX_BUCKETS]; /* the first {0, 0} behind the first ends them */
    double expected[ARRAY_LEN(quantiles)];
} vectors[] = {
    {"two", {{1, 5}, {INFINITY, 10}}, {0, 0.02, 0.5, 1, 1, 1, 1, 1, 1}},
    {"classic",
     {{0.005, 24054},
      {0.01, 33444},
      {0.05, 100392},
      {0.1, 129389},
      {0.5, 133988},
      {1, 144000},
      {INFINITY, 144320}},
     {0, 0.0002999916853745739, 0.011574953695405388, 0.033131983031606624, 0.14340073929115027,
      0.6556132640831003, 0.9439073112265276, 1, 1}},
    {"fractions",
     {{0.005, 0.26666666666666666},
      {0.01, 0.9},
      {0.025, 1.7333333333333334},
      {0.05, 3.1},
      {0.1, 3.1},
      {0.25, 7.066666666666666},
      {0.5, 8.2},
      {1, 8.2},
      {INFINITY, 8.233333333333333}},
     {0, 0.00154375, 0.03094512195121951, 0.13844537815126048, 0.325735294117647,
      0.4165441176470587, 0.48919117647058835, 1, 1}},
    {"no requests",
     {{0.1, 0}, {0.5, 0}, {INFINITY, 0}},
     {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}},
    {"one request",
     {{0.1, 0}, {0.5, 1}, {INFINITY, 1}},
     {NAN, 0.10400000000000001, 0.2, 0.30000000000000004, 0.4600000000000001, 0.48, 0.496,
      0.49960000000000004, 0.5}},
    {"all below the first",
     {{0.1, 7}, {0.5, 7}, {INFINITY, 7}},
     {0, 0.001, 0.025, 0.05, 0.09000000000000001, 0.095, 0.099, 0.0999, 0.1}},
    {"all beyond the last",
     {{0.1, 0}, {0.5, 0}, {INFINITY, 9}},
     {NAN, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}},
    {"half beyond the last",
     {{0.1, 0}, {0.5, 5}, {INFINITY, 10}},
     {NAN, 0.10800000000000001, 0.30000000000000004, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}},
    {"without +Inf", {{0.1, 1}, {0.5, 2}, {1, 3}}, {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}},
    {"only +Inf", {{INFINITY, 10}}, {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}},
    {"only one bound", {{0.5, 10}}, {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}},
    {"falling",
     {{0.1, 10}, {0.5, 8}, {1, 12}, {INFINITY, 11}},
     {0, 0.0012000000000000001, 0.03, 0.06, 0.7000000000000002, 0.8499999999999996,
      0.9699999999999998, 0.9969999999999999, 1}},
    {"falling at the end",
     {{0.1, 10}, {0.5, 20}, {1, 30}, {INFINITY, 0}},
     {0, 0.003, 0.07500000000000001, 0.30000000000000004, 0.85, 0.925, 0.985, 0.9984999999999999,
      1}},
    {"falling slightly",
     {{0.1, 4.000000001}, {0.2, 4}, {0.4, 3.9999999995}, {INFINITY, 4.1}},
     {0, 0.0010249999997437498, 0.02562499999359375, 0.0512499999871875, 0.0922499999769375,
      0.09737499997565624, 0.4, 0.4, 0.4}},
    {"first below zero", {{-5, 3}, {0, 5}, {5, 9}, {INFINITY, 10}}, {-5, -5, -5, 0, 5, 5, 5, 5, 5}},
    {"first at zero",
     {{0, 5}, {1, 10}, {INFINITY, 10}},
     {0, 0, 0, 0, 0.8, 0.9, 0.9800000000000001, 0.998, 1}},
    {"all bounds below zero",
     {{-3, 2}, {-2, 4}, {-1, 8}, {INFINITY, 8}},
     {-3, -3, -3, -2, -1.2, -1.1, -1.02, -1.002, -1}},
    {"same bound twice",
     {{1, 3}, {1, 4}, {2, 10}, {INFINITY, 10}},
     {0, 0.014285714285714287, 0.35714285714285715, 0.7142857142857143, 1.6666666666666665,
      1.8333333333333335, 1.9666666666666668, 1.9966666666666666, 2}},
    {"same bound thrice",
     {{0.5, 2}, {0.5, 1}, {0.5, 1}, {1, 4}, {INFINITY, 6}},
     {0, 0.0075, 0.1875, 0.375, 1, 1, 1, 1, 1}},
    {"out of order",
     {{5, 9}, {1, 3}, {INFINITY, 10}, {0.5, 1}},
     {0, 0.05, 0.875, 2.333333333333333, 5, 5, 5, 5, 5}},
    {"a gap",
     {{1, 4}, {2, 4}, {3, 4}, {4, 8}, {INFINITY, 8}},
     {0, 0.02, 0.5, 1, 3.8, 3.9, 3.98, 3.998, 4}},
    {"tiny",
     {{1e-09, 1e-12}, {1e-06, 3e-12}, {1, 4e-12}, {INFINITY, 5e-12}},
     {0, 5e-11, 1.2587499999999993e-07, 7.502499999999996e-07, 1, 1, 1, 1, 1}},
    {"huge",
     {{1000000, 1000000000000000.0},
      {1000000000, 3000000000000000.0},
      {1000000000000, 1e+16},
      {INFINITY, 1.1e+16}},
     {0, 110000, 875125000, 357785714285.7143, 985728571428.5715, 1000000000000, 1000000000000,
      1000000000000, 1000000000000}},
    {"NaN total", {{1, 1}, {2, 2}, {INFINITY, NAN}}, {2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {"NaN inside", {{1, 1}, {2, NAN}, {4, 3}, {INFINITY, 4}}, {NAN, NAN, NAN, NAN, 4, 4, 4, 4, 4}},
    {"NaN first", {{1, NAN}, {2, 2}, {4, 3}, {INFINITY, 4}}, {NAN, NAN, NAN, NAN, 4, 4, 4, 4, 4}},
    {"infinite total", {{1, 1}, {2, 2}, {INFINITY, INFINITY}}, {2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {"negative counts", {{1, -4}, {2, -2}, {INFINITY, -1}}, {2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {"first negative",
     {{1, -1}, {2, 2}, {INFINITY, 4}},
     {1.3333333333333333, 1.3466666666666667, 1.6666666666666665, 2, 2, 2, 2, 2, 2}},
    {"-Inf bound",
     {{-INFINITY, 1}, {1, 3}, {INFINITY, 4}},
     {-INFINITY, -INFINITY, -INFINITY, NAN, 1, 1, 1, 1, 1}},
    {"knative",
     {{0.005, 0},
      {0.01, 12.5},
      {0.025, 88.25},
      {0.05, 120.75},
      {0.075, 121},
      {0.1, 121},
      {0.25, 121.5},
      {0.5, 122},
      {0.75, 122},
      {1, 122.25},
      {2.5, 122.5},
      {5, 122.5},
      {7.5, 122.5},
      {10, 122.5},
      {INFINITY, 122.75}},
     {NAN, 0.005491, 0.013601485148514851, 0.01967821782178218, 0.04209615384615385,
      0.04681730769230769, 0.2612499999999969, 10, 10}},
    {"many",
     {{0.001, 0},
      {0.0015, 3.3333333333333326},
      {0.00225, 6.333333333333331},
      {0.003375, 9.03333333333333},
      {0.0050625, 11.463333333333333},
      {0.00759375, 13.65033333333333},
      {0.011390625, 15.61863333333333},
      {0.017085937, 17.39010333333333},
      {0.025628906, 18.984426333333328},
      {0.038443359, 20.41931703333333},
      {0.057665039, 21.710718663333335},
      {0.086497559, 22.87298013033333},
      {0.129746338, 23.919015450633328},
      {0.194619507, 24.86044723890333},
      {0.29192926, 25.707735848346328},
      {0.43789389, 26.470295596845034},
      {0.656840836, 27.15659937049386},
      {0.985261253, 27.77427276677781},
      {1.47789188, 28.33017882343336},
      {2.21683782, 28.83049427442336},
      {3.32525673, 29.280778180314357},
      {4.987885095, 29.686033695616256},
      {7.481827643, 30.050763659387965},
      {11.222741464, 30.379020626782495},
      {16.834112196, 30.67445189743758},
      {25.251168294, 30.940340041027156},
      {37.876752441, 31.179639370257775},
      {56.815128662, 31.39500876656533},
      {85.222692992, 31.588841223242127},
      {127.834039489, 31.76329043425125},
      {INFINITY, 33.333333333333336}},
     {NAN, 0.00105, 0.0030833333333333346, 0.01476007343532962, 7.134717006049266,
      104.23250631739447, 127.834039489, 127.834039489, 127.834039489}},
};

static size_t copy_buckets(const struct vector *vector, struct prom_bucket out[MAX_BUCKETS])
{
    size_t n = 1;
    while (n < MAX_BUCKETS && (vector->buckets[n].upper != 0 || vector->buckets[n].count != 0))
        n++;
    memcpy(out, vector->buckets, sizeof(vector->buckets));
    return n;
}

static bool same(double a, double b)
{
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
        return (isnan(a) && isnan(b)) || a == b;
    return fabs(a - b) <= 1e-13 * fmax(fabs(a), fabs(b));
}

static void test_as_prometheus(void **state)
{
    (void)state;
    for (size_t v = 0; v < ARRAY_LEN(vectors); v++) {
        for (size_t q = 0; q < ARRAY_LEN(quantiles); q++) {
            struct prom_bucket buckets[MAX_BUCKETS];
            size_t n = copy_buckets(&vectors[v], buckets);
            double got = prom_quantile(quantiles[q], buckets, n);
            if (!same(got, vectors[v].expected[q]))
                fail_msg("%s: quantile %g is %.17g, Prometheus says %.17g", vectors[v].name,
                         quantiles[q], got, vectors[v].expected[q]);
        }
    }
}

/* Also as printed by promtool: the check of q comes before any look at the buckets. */
static void test_quantile_out_of_range(void **state)
{
    (void)state;
    struct prom_bucket requests[] = {{1, 5}, {INFINITY, 10}}, none[] = {{0.1, 0}, {INFINITY, 0}};
    assert_true(prom_quantile(-1, requests, 2) == -(double)INFINITY);
    assert_true(prom_quantile(1.5, requests, 2) == (double)INFINITY);
    assert_true(isnan(prom_quantile(NAN, requests, 2)));
    assert_true(prom_quantile(-1, none, 2) == -(double)INFINITY);
    assert_true(prom_quantile(1.5, none, 2) == (double)INFINITY);
    assert_true(isnan(prom_quantile(NAN, none, 2)));
}

/* By hand: 10 requests, of which 4 took at most 0.1 s, 8 at most 0.3 s. */
static void test_share_above(void **state)
{
    (void)state;
    const struct prom_bucket b[] = {{0.1, 4}, {0.3, 8}, {INFINITY, 10}};
    const struct prom_bucket none[] = {{0.1, 0}, {INFINITY, 0}};
    static const struct {
        double bound, share;
    } cases[] = {{0, 1}, {0.05, 0.8}, {0.1, 0.6}, {0.2, 0.4}, {0.3, 0.2}, {5, 0.2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_true(fabs(prom_share_above(cases[i].bound, b, 3) - cases[i].share) < 1e-12);
    assert_true(isnan(prom_share_above(0.1, none, 2)));
    assert_true(isnan(prom_share_above(0.1, NULL, 0)));
    assert_true(isnan(prom_share_above(NAN, b, 3)));
}

static void test_no_buckets(void **state)
{
    (void)state;
    struct prom_bucket none[1] = {{0, 0}};
    assert_true(isnan(prom_quantile(0.5, none, 0)));
    assert_true(isnan(prom_quantile(0.5, NULL, 0)));
}

/* Prometheus leaves the order of such buckets to chance; we give no figure. */
static void test_bound_that_is_no_number(void **state)
{
    (void)state;
    struct prom_bucket buckets[] = {{1, 5}, {NAN, 6}, {INFINITY, 10}};
    assert_true(isnan(prom_quantile(0.5, buckets, 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_prometheus),
        cmocka_unit_test(test_quantile_out_of_range),
        cmocka_unit_test(test_share_above),
        cmocka_unit_test(test_no_buckets),
        cmocka_unit_test(test_bound_that_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
