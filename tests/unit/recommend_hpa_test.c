/* HPA's rule against answers of Kubernetes' own replica calculator (v1.34.4), and the cases that
 * its documentation names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recommend/recommend.h"

#define CPU      RECOMMEND_CPU
#define MEM      RECOMMEND_MEMORY
#define MAX_PODS 6
#define FAILS    (-1)

/* Pods: r counts, s is starting (with figures), m has no figures, p is pending. */
struct row {
    enum recommend_resource resource;
    int current, utilization_percent, average;
    double up, down;
    int container, expected;
    double request[2];
    const char *pods;
    double usage[MAX_PODS][2];
};

/* clang-format off */
static const struct row rows[] = {
    {CPU, 4, 100, 0, 0.1, 0.1, -1, 4, {132, 57}, "rsmp",
        {{159, 68}, {223, 96}, {129, 56}, {223, 96}}},
    {MEM, 6, 50, 0, 0, 0, 1, 6, {233, 30}, "rmrsmm",
        {{209, 27}, {156, 20}, {154, 19}, {198, 25}, {170, 21}, {123, 15}}},
    {MEM, 6, 0, 123, 0.1, 0.1, 0, 12, {200, 24}, "rsprrr",
        {{444, 53}, {222, 26}, {400, 48}, {307, 36}, {240, 28}, {249, 29}}},
    {MEM, 6, 50, 0, 0.1, 0.1, -1, 12, {304, 39}, "prrrms",
        {{401, 51}, {348, 44}, {607, 77}, {471, 60}, {557, 71}, {321, 41}}},
    {MEM, 4, 120, 0, 0.1, 0.1, -1, 4, {61, 49}, "srrr", {{101, 81}, {98, 79}, {68, 55}, {52, 41}}},
    {CPU, 5, 100, 0, 0.1, 0.1, 1, 5, {67, 21}, "smsrr",
        {{99, 31}, {180, 56}, {160, 50}, {137, 43}, {152, 47}}},
    {CPU, 4, 50, 0, 0.1, 0.1, -1, 4, {108, 53}, "rmpm",
        {{242, 118}, {114, 56}, {164, 80}, {168, 82}}},
    {CPU, 2, 100, 0, 0.1, 0.1, -1, 1, {219, 64}, "rs", {{193, 56}, {152, 44}}},
    {CPU, 3, 50, 0, 0.1, 0.1, -1, 3, {60, 37}, "psr", {{67, 41}, {71, 44}, {54, 33}}},
    {MEM, 2, 80, 0, 0.1, 0.1, -1, 2, {246, 26}, "rm", {{93, 9}, {94, 9}}},
    {CPU, 2, 30, 0, 0, 0, -1, 4, {340, 45}, "r", {{363, 48}}},
    {CPU, 2, 50, 0, 0.1, 0.1, 1, 4, {107, 23}, "mr", {{221, 47}, {173, 37}}},
    {MEM, 6, 0, 126, 0.1, 0.1, -1, 8, {202, 39}, "rmrpsr",
        {{184, 35}, {208, 40}, {187, 36}, {300, 57}, {243, 47}, {203, 39}}},
    {MEM, 2, 70, 0, 0.1, 0.1, -1, 3, {101, 17}, "rp", {{190, 32}, {157, 26}}},
    {CPU, 3, 0, 345, 0.1, 0.1, 1, 1, {298, 26}, "srr", {{514, 44}, {653, 57}, {450, 39}}},
    {CPU, 2, 0, 125, 0.1, 0.1, -1, 2, {178, 51}, "mr", {{157, 45}, {110, 31}}},
    {CPU, 6, 30, 0, 0.1, 0.1, 0, 6, {278, 63}, "rrmrmr",
        {{69, 15}, {72, 16}, {50, 11}, {61, 14}, {58, 13}, {40, 9}}},
    {CPU, 3, 80, 0, 0.1, 0.1, -1, 5, {72, 18}, "rrm", {{147, 36}, {132, 33}, {73, 18}}},
    {MEM, 3, 0, 98, 0.1, 0.1, -1, 7, {287, 25}, "rms", {{321, 28}, {245, 21}, {252, 22}}},
    {CPU, 8, 120, 0, 0.1, 0.1, 1, 4, {229, 45}, "rrr", {{323, 63}, {384, 75}, {399, 78}}},
    {MEM, 6, 70, 0, 0.3, 0, 0, 4, {162, 38}, "pmrmsp",
        {{89, 21}, {64, 15}, {46, 10}, {74, 17}, {74, 17}, {64, 15}}},
    {CPU, 4, 30, 0, 0.1, 0.1, -1, 4, {219, 58}, "rsmr", {{112, 29}, {78, 20}, {90, 23}, {110, 29}}},
    {CPU, 4, 120, 0, 0.1, 0.1, -1, 0, {161, 11}, "sprrrs",
        {{2, 0}, {3, 0}, {2, 0}, {2, 0}, {1, 0}, {3, 0}}},
    {CPU, 1, 0, 56, 0.1, 0.1, 0, -1, {302, 41}, "m", {{513, 69}}},
    {MEM, 2, 100, 0, 0.3, 0, 0, 1, {107, 41}, "rs", {{43, 16}, {30, 11}}},
    {CPU, 6, 80, 0, 0, 0.05, -1, 1, {148, 48}, "rprsrr",
        {{34, 11}, {29, 9}, {22, 7}, {16, 5}, {34, 11}, {28, 9}}},
    {CPU, 5, 100, 0, 0, 0.05, 1, 5, {51, 48}, "psrrm",
        {{61, 58}, {41, 39}, {51, 48}, {49, 46}, {52, 49}}},
    {CPU, 1, 0, 311, 0.1, 0.1, -1, 1, {340, 31}, "r", {{215, 19}}},
    {CPU, 4, 0, 198, 0.1, 0.1, -1, 4, {306, 67}, "mrrm",
        {{334, 73}, {227, 49}, {204, 44}, {240, 52}}},
    {MEM, 2, 70, 0, 0.1, 0.1, 1, 5, {107, 62}, "rr", {{193, 112}, {182, 105}}},
    {CPU, 4, 120, 0, 0.05, 0, 0, 2, {119, 17}, "rrmr", {{9, 1}, {9, 1}, {11, 1}, {6, 0}}},
    {CPU, 3, 50, 0, 0.1, 0.1, -1, 3, {297, 44}, "mmr", {{115, 17}, {90, 13}, {61, 9}}},
    {CPU, 5, 0, 243, 0.1, 0.1, 0, 5, {207, 43}, "prrms",
        {{272, 56}, {307, 63}, {185, 38}, {333, 69}, {243, 50}}},
    {CPU, 5, 0, 254, 0.1, 0.1, 0, 1, {124, 34}, "r", {{196, 53}}},
    {CPU, 2, 0, 217, 0.1, 0.1, -1, 2, {190, 12}, "rs", {{248, 15}, {386, 24}}},
    {CPU, 1, 80, 0, 0.05, 0.3, 1, -1, {134, 54}, "m", {{136, 54}}},
    {MEM, 4, 0, 125, 0.1, 0.1, 0, 4, {190, 10}, "rpmm",
        {{280, 14}, {290, 15}, {209, 11}, {209, 11}}},
    {CPU, 2, 0, 71, 0.1, 0.1, -1, 2, {161, 56}, "rprsrs",
        {{36, 12}, {61, 21}, {39, 13}, {39, 13}, {31, 11}, {56, 19}}},
    {CPU, 1, 100, 0, 0.1, 0.1, -1, 1, {184, 39}, "r", {{164, 34}}},
    {CPU, 4, 120, 0, 0.1, 0.1, 1, 3, {128, 38}, "msrm",
        {{109, 32}, {163, 48}, {81, 24}, {100, 29}}},
    {CPU, 4, 0, 169, 0, 0, -1, 2, {192, 32}, "rrms", {{18, 3}, {22, 3}, {36, 6}, {21, 3}}},
    {CPU, 5, 120, 0, 0.1, 0.1, 0, 5, {328, 43}, "rmp", {{509, 66}, {598, 78}, {457, 59}}},
    {CPU, 1, 120, 0, 0.3, 0.05, -1, 3, {165, 26}, "srrr",
        {{94, 14}, {201, 31}, {198, 31}, {119, 18}}},
    {MEM, 6, 80, 0, 0.1, 0.1, -1, 4, {90, 15}, "sssrrm",
        {{42, 7}, {44, 7}, {47, 7}, {35, 5}, {24, 4}, {41, 6}}},
    {CPU, 4, 0, 143, 0.1, 0.1, -1, 4, {185, 63}, "srpm",
        {{306, 104}, {229, 78}, {407, 138}, {355, 121}}},
    {CPU, 4, 0, 65, 0.1, 0.1, -1, 17, {182, 31}, "rmrr",
        {{326, 55}, {333, 56}, {359, 61}, {227, 38}}},
    {MEM, 4, 30, 0, 0.1, 0.1, -1, 3, {221, 35}, "r", {{151, 24}}},
    {CPU, 5, 0, 154, 0.1, 0.1, -1, 1, {326, 59}, "rpp", {{10, 1}, {10, 1}, {9, 1}}},
    {CPU, 3, 0, 293, 0, 0.3, 0, 1, {144, 12}, "rsr", {{118, 9}, {128, 10}, {151, 12}}},
    {MEM, 3, 0, 89, 0.1, 0.1, -1, 11, {291, 29}, "prr", {{523, 52}, {390, 38}, {459, 45}}},
    {CPU, 3, 50, 0, 0.1, 0.1, -1, 5, {55, 37}, "srr", {{71, 48}, {81, 54}, {49, 33}}},
    {MEM, 4, 0, 283, 0.1, 0.1, -1, 2, {74, 27}, "pms", {{17, 6}, {23, 8}, {29, 10}}},
    {CPU, 5, 0, 338, 0.05, 0.05, -1, 3, {112, 21}, "pmsmr",
        {{135, 25}, {213, 40}, {255, 47}, {115, 21}, {167, 31}}},
    {MEM, 6, 0, 163, 0.1, 0.1, -1, 4, {309, 16}, "rspmmr",
        {{42, 2}, {47, 2}, {70, 3}, {42, 2}, {31, 1}, {69, 3}}},
    {CPU, 5, 50, 0, 0.1, 0.1, -1, 5, {338, 51}, "ssrrs",
        {{422, 63}, {323, 48}, {245, 37}, {462, 69}, {376, 56}}},
    {CPU, 3, 0, 166, 0.1, 0.1, -1, 3, {343, 60}, "mpr", {{147, 25}, {243, 42}, {246, 43}}},
    {CPU, 2, 120, 0, 0.1, 0.1, -1, 1, {270, 31}, "rs", {{75, 8}, {78, 9}}},
    {CPU, 6, 120, 0, 0.1, 0.1, -1, 3, {204, 45}, "rmrrrm",
        {{43, 9}, {51, 11}, {59, 13}, {33, 7}, {37, 8}, {50, 11}}},
    {CPU, 4, 0, 108, 0.1, 0.1, 0, 4, {139, 68}, "rsrr", {{88, 43}, {99, 48}, {170, 83}, {150, 73}}},
    {MEM, 5, 30, 0, 0.1, 0.1, -1, 20, {61, 38}, "ssrrr",
        {{61, 38}, {81, 50}, {51, 32}, {95, 59}, {80, 50}}},
    {CPU, 4, 50, 0, 0.1, 0.1, 1, 2, {114, 16}, "prrr", {{55, 7}, {41, 5}, {44, 6}, {42, 5}}},
    {CPU, 6, 0, 80, 0.1, 0.1, 0, 6, {91, 39}, "srrsrm",
        {{168, 72}, {178, 76}, {148, 63}, {89, 38}, {98, 42}, {106, 45}}},
    {CPU, 4, 50, 0, 0, 0, 1, 2, {157, 38}, "rrpr", {{35, 8}, {28, 6}, {25, 6}, {43, 10}}},
    {CPU, 4, 50, 0, 0.1, 0.1, 0, 4, {182, 54}, "srpr", {{95, 28}, {102, 30}, {66, 19}, {72, 21}}},
};
/* clang-format on */

static void fill(const struct row *row, struct recommend_pod pods[MAX_PODS],
                 struct observation *seen, struct recommend_metric *metric)
{
    *seen = (struct observation){.replicas_wanted = row->current,
                                 .tolerance_up = row->up,
                                 .tolerance_down = row->down,
                                 .container_count = 2,
                                 .pods = pods,
                                 .pod_count = strlen(row->pods)};
    *metric = (struct recommend_metric){
        .resource = row->resource,
        .container = row->container,
        .utilization = row->utilization_percent ? row->utilization_percent / 100.0 : NAN,
        .average_value = row->utilization_percent ? (double)NAN : row->average,
    };
    for (size_t p = 0; p < seen->pod_count; p++) {
        char kind = row->pods[p];
        pods[p] = (struct recommend_pod){
            .ready = kind == 'r', .starting = kind == 's', .pending = kind == 'p'};
        for (size_t c = 0; c < 2; c++) {
            pods[p].containers[c].usage[row->resource] = kind == 'm' ? NAN : row->usage[p][c];
            pods[p].containers[c].request[row->resource] = row->request[c];
        }
    }
}

static void answers_are_those_of_kubernetes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct recommend_pod pods[MAX_PODS];
        struct observation seen;
        struct recommend_metric metric;
        fill(&rows[i], pods, &seen, &metric);
        int replicas = FAILS;
        double ratio = NAN;
        struct error err = {0};
        int rc = recommend_hpa_replicas(&seen, &metric, &replicas, &ratio, &err);
        if (rc < 0)
            replicas = FAILS;
        if (replicas != rows[i].expected)
            fail_msg("row %zu: %d instead of %d", i, replicas, rows[i].expected);
        if (rc < 0) {
            assert_true(strlen(err.message) > 0);
            continue;
        }
        assert_int_equal(err.code, ERROR_NONE);
        /* The ratio is the same answer before it is rounded to whole replicas. */
        assert_true(fabs(ceil(ratio * rows[i].current - 1e-9) - replicas) < 0.5);
        if (ratio == 1)
            assert_int_equal(replicas, rows[i].current);
    }
}

static const struct row one_pod = {CPU, 1, 50, 0, 0.1, 0.1, -1, 2, {100, 100}, "r", {{100, 100}}};

static int ask(const struct observation *seen, const struct recommend_metric *metric)
{
    int replicas = FAILS;
    double ratio;
    struct error err = {0};
    return recommend_hpa_replicas(seen, metric, &replicas, &ratio, &err) < 0 ? FAILS : replicas;
}

static void a_missing_request_is_an_error_for_utilization_only(void **state)
{
    (void)state;
    struct recommend_pod pods[MAX_PODS];
    struct observation seen;
    struct recommend_metric metric;
    fill(&one_pod, pods, &seen, &metric);
    assert_int_equal(ask(&seen, &metric), 2);
    pods[0].containers[1].request[CPU] = NAN;
    assert_int_equal(ask(&seen, &metric), FAILS);
    assert_true(isnan(recommend_usage_ratio(&seen, &metric)));
    metric.container = 0; /* the other container has one */
    assert_int_equal(ask(&seen, &metric), 2);
    metric = (struct recommend_metric){CPU, -1, NAN, 100};
    assert_int_equal(ask(&seen, &metric), 2);
}

static void figures_that_cannot_be_are_missing(void **state)
{
    (void)state;
    const double absurd[] = {NAN, INFINITY, -INFINITY, -1};
    for (size_t i = 0; i < ARRAY_LEN(absurd); i++) {
        struct recommend_pod pods[MAX_PODS];
        struct observation seen;
        struct recommend_metric metric;
        fill(&one_pod, pods, &seen, &metric);
        pods[0].containers[0].usage[CPU] = absurd[i];
        assert_int_equal(ask(&seen, &metric), FAILS);
    }
}

static void metrics_without_sense_are_refused(void **state)
{
    (void)state;
    struct recommend_pod pods[MAX_PODS];
    struct observation seen;
    struct recommend_metric metric;
    fill(&one_pod, pods, &seen, &metric);
    metric.container = 2;
    assert_int_equal(ask(&seen, &metric), FAILS);
    metric = (struct recommend_metric){CPU, -1, NAN, NAN};
    assert_int_equal(ask(&seen, &metric), FAILS);
    metric = (struct recommend_metric){CPU, -1, 0, 0};
    assert_int_equal(ask(&seen, &metric), FAILS);
    fill(&one_pod, pods, &seen, &metric);
    seen.pod_count = 0;
    assert_int_equal(ask(&seen, &metric), FAILS);
}

static void counts_stay_whole_numbers(void **state)
{
    (void)state;
    struct recommend_pod pods[MAX_PODS];
    struct observation seen;
    struct recommend_metric metric;
    fill(&one_pod, pods, &seen, &metric);
    pods[0].containers[0].usage[CPU] = 1e300;
    assert_int_equal(ask(&seen, &metric), INT32_MAX);
}

static void usage_ratio_is_plain(void **state)
{
    (void)state;
    struct recommend_pod pods[MAX_PODS];
    struct observation seen;
    struct recommend_metric metric;
    const struct row two = {
        CPU, 2, 80, 0, 0.1, 0.1, -1, 0, {100, 100}, "rs", {{60, 9}, {200, 200}}};
    fill(&two, pods, &seen, &metric);
    /* 69 of 200 against 80 %, without the starting pod. */
    assert_true(fabs(recommend_usage_ratio(&seen, &metric) - 0.345 / 0.8) < 1e-12);
    metric = (struct recommend_metric){CPU, 0, NAN, 30};
    assert_true(fabs(recommend_usage_ratio(&seen, &metric) - 2) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_kubernetes),
        cmocka_unit_test(a_missing_request_is_an_error_for_utilization_only),
        cmocka_unit_test(figures_that_cannot_be_are_missing),
        cmocka_unit_test(metrics_without_sense_are_refused),
        cmocka_unit_test(counts_stay_whole_numbers),
        cmocka_unit_test(usage_ratio_is_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
