/* VPA alone and beside HPA. Percentiles of usage are those that VPA's own histogram gives: the end
 * of the bucket that a steady usage falls into. */
#include "recommend_scene.h"

#define P90_OF_100 110.26564319570306
#define P90_OF_250 258.40366356020638
#define P90_OF_500 511.13453758887061
#define P90_OF_1E9 1016281388.5540904

/* Rounded up to tens. */
static double tens(double milli)
{
    return ceil(milli / 10) * 10;
}

static void a_pod_gets_p90_and_the_margin(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_vpa, NULL);
    scene_pods(s, 3);
    scene_cpu(s, 500, 250);
    scene_expect(s, 3, tens(P90_OF_250 * 1.15), "p90 of usage and 15%: cpu 500m → 300m");
    scene_free(s);
}

static void small_changes_are_left(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_vpa, NULL);
    scene_cpu(s, 320, 250);
    scene_expect(s, 1, 320, "p90 of usage and 15%: no change");
    scene_free(s);
}

/* One sample in five is the higher one: above p75, below p90. */
static void percentile_and_margin_are_parameters(void **state)
{
    (void)state;
    double lower[] = {75, 0, 86400, 0}, higher[] = {90, 1, 86400, 0};
    struct scene *s = scene_new(&recommend_vpa, lower), *t = scene_new(&recommend_vpa, higher);
    for (int i = 0; i < 20; i++) {
        double usage = i % 5 == 4 ? 500 : 100;
        recommend_vpa.remember(s->self, "app", CPU, 900 + i, usage);
        recommend_vpa.remember(t->self, "app", CPU, 900 + i, usage);
    }
    scene_cpu(s, 500, NAN);
    scene_cpu(t, 500, NAN);
    scene_expect(s, 1, tens(P90_OF_100), "p75 of usage and 0%: cpu 500m → 120m");
    scene_expect(t, 1, tens(2 * P90_OF_500), "p90 of usage and 100%: cpu 500m → 1030m");
    scene_free(s);
    scene_free(t);
}

static void a_least_size_can_be_set(void **state)
{
    (void)state;
    double params[] = {90, 0.15, 86400, 400};
    struct scene *s = scene_new(&recommend_vpa, params);
    scene_cpu(s, 1000, 5);
    scene_expect(s, 1, 400, "p90 of usage and 15%: cpu 1 → 400m");
    scene_free(s);
}

static void memory_is_sized_where_it_is_ours(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_vpa, NULL);
    s->seen.containers[0].controlled[MEM] = true;
    s->seen.containers[0].request[MEM] = 512 * MI;
    s->pods[0].containers[0].usage[MEM] = 1e9;
    assert_int_equal(scene_ask(s), 0);
    assert_true(s->out.containers[0].target[MEM] == ceil(P90_OF_1E9 * 1.15 / MI) * MI);
    scene_free(s);
}

/* --- with HPA --------------------------------------------------------------------------------- */
static void hpa_counts_requests_while_vpa_sizes(void **state)
{
    (void)state;
    double params[] = {2, 300, 90, 0.15, 86400, 0};
    struct scene *s = scene_new(&recommend_hpa_vpa, params);
    scene_pods(s, 2);
    scene_cpu(s, 500, 250);
    scene_load(s, 100, 7.1, 50); /* ceil(7.1 / 2) */
    scene_expect(s, 4, 300,
                 "7.1 requests in flight, 2 per pod wanted: replicas 2 → 4, cpu 500m → 300m");
    scene_free(s);
}

static void hpa_tolerates_a_tenth_and_waits_before_it_shrinks(void **state)
{
    (void)state;
    double params[] = {2, 300, 90, 0.15, 86400, 0};
    struct scene *s = scene_new(&recommend_hpa_vpa, params);
    scene_pods(s, 4);
    scene_cpu(s, 300, 250);
    scene_load(s, 100, 8.7, 50);
    scene_expect(s, 4, 300, NULL);
    scene_load(s, 100, 8.9, 50);
    scene_expect(s, 5, 300, NULL);
    s->seen.now_s += 15;
    scene_load(s, 100, 2, 50);
    scene_expect(s, 4, 300, NULL);
    s->seen.now_s += 300;
    scene_expect(s, 1, 300, NULL);
    scene_free(s);
}

/* Without a count, Little's law with the latency that is known. */
static void requests_in_flight_can_be_reckoned(void **state)
{
    (void)state;
    double params[] = {2, 300, 90, 0.15, 86400, 0};
    struct scene *s = scene_new(&recommend_hpa_vpa, params);
    scene_cpu(s, 300, 250);
    scene_load(s, 100, NAN, 59); /* 5.9 in flight */
    scene_expect(s, 3, 300, NULL);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_gets_p90_and_the_margin),
        cmocka_unit_test(small_changes_are_left),
        cmocka_unit_test(percentile_and_margin_are_parameters),
        cmocka_unit_test(a_least_size_can_be_set),
        cmocka_unit_test(memory_is_sized_where_it_is_ours),
        cmocka_unit_test(hpa_counts_requests_while_vpa_sizes),
        cmocka_unit_test(hpa_tolerates_a_tenth_and_waits_before_it_shrinks),
        cmocka_unit_test(requests_in_flight_can_be_reckoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
