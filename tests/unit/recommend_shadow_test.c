/* What would have been: sums of what was reserved and late, and of what was recommended. */
#include "recommend_scene.h"

#define INTERVAL_S             15.0
#define HOUR_S                 3600.0
#define assert_near(a, b, off) assert_true(fabs((a) - (b)) <= (off))

/* One interval of 4 requests a second, 20 ms of CPU each, in replicas of 500m; 2 % are late where
 * p99 is over the goal. */
static void pass(struct scene *s, struct recommend_shadow *shadow, double latency_ms, int replicas,
                 double milli, double seconds)
{
    struct recommendation wanted = {.replicas = replicas, .container_count = 1};
    wanted.containers[0].target[CPU] = milli;
    wanted.containers[0].target[MEM] = NAN;
    scene_cpu(s, 500, 80.0 / s->seen.replicas_wanted);
    scene_load(s, 4, 0.1, latency_ms);
    s->seen.late_share = latency_ms > s->seen.goal_ms ? 0.02 : 0;
    s->seen.now_s += seconds;
    recommend_shadow_add(shadow, &s->seen, &wanted);
}

static struct recommend_shadow_sums after(double latency_ms, int replicas, double milli)
{
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommend_shadow *shadow = recommend_shadow_new(NULL);
    scene_pods(s, 2);
    for (double t = 0; t <= HOUR_S; t += INTERVAL_S) /* the first only begins */
        pass(s, shadow, latency_ms, replicas, milli, INTERVAL_S);
    struct recommend_shadow_sums sums = recommend_shadow_sums(shadow);
    recommend_shadow_free(shadow);
    scene_free(s);
    return sums;
}

static void cpu_is_counted_over_time(void **state)
{
    (void)state;
    struct recommend_shadow_sums sums = after(50, 3, 200);
    assert_near(sums.span_s, HOUR_S, 1e-6);
    assert_near(sums.core_s, 1.0 * HOUR_S, 1e-6);
    assert_near(sums.core_s_recommended, 0.6 * HOUR_S, 1e-6);
}

/* What took 50 ms with half a core does so with a whole one; where there is less CPU than requests
 * need, all are late. */
static void late_requests_are_those_of_the_model(void **state)
{
    (void)state;
    struct recommend_shadow_sums ample = after(350, 2, 1000), little = after(50, 1, 70);
    assert_near(ample.requests, 4 * ample.judged_s, 1);
    assert_true(ample.judged_s > 0.9 * HOUR_S);
    assert_near(ample.late, 0.02 * ample.requests, 0.001 * ample.requests);
    if (!(ample.late_recommended < 0.25 * ample.late))
        fail_msg("%g late with more CPU instead of %g", ample.late_recommended, ample.late);
    assert_near(little.late, 0, 0);
    assert_near(little.late_recommended, little.requests, 0.01 * little.requests);
}

/* A sidecar's CPU is reserved, too, but serves no request. */
static void sidecars_serve_nothing(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommend_shadow *shadow = recommend_shadow_new(NULL);
    s->seen.container_count = 2;
    s->seen.containers[1] = (struct recommend_container){
        .name = "proxy", .request = {1000, NAN}, .min = {100, 0}, .max = {2000, 1e12}};
    for (double t = 0; t <= HOUR_S; t += INTERVAL_S)
        pass(s, shadow, 50, 1, 70, INTERVAL_S);
    struct recommend_shadow_sums sums = recommend_shadow_sums(shadow);
    assert_near(sums.core_s, 1.5 * HOUR_S, 1e-6);
    assert_near(sums.core_s_recommended, 1.07 * HOUR_S, 1e-6);
    assert_true(sums.requests > 0);
    assert_near(sums.late_recommended, sums.requests, 0.01 * sums.requests);
    recommend_shadow_free(shadow);
    scene_free(s);
}

static void without_a_goal_only_cpu_is_judged(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommend_shadow *shadow = recommend_shadow_new(NULL);
    s->seen.goal_ms = 0;
    for (int i = 0; i < 5; i++)
        pass(s, shadow, 50, 1, 250, INTERVAL_S);
    struct recommend_shadow_sums sums = recommend_shadow_sums(shadow);
    assert_near(sums.core_s_recommended, 0.25 * 4 * INTERVAL_S, 1e-6);
    assert_true(sums.judged_s == 0 && sums.requests == 0);
    recommend_shadow_free(shadow);
    scene_free(s);
}

/* Hours in which nobody looked are not counted; asked twice at one time, neither. */
static void gaps_do_not_count(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommend_shadow *shadow = recommend_shadow_new(NULL);
    pass(s, shadow, 50, 1, 500, INTERVAL_S);
    pass(s, shadow, 50, 1, 500, INTERVAL_S);
    pass(s, shadow, 50, 1, 500, 0);
    pass(s, shadow, 50, 1, 500, 2 * HOUR_S);
    pass(s, shadow, 50, 1, 500, INTERVAL_S);
    assert_near(recommend_shadow_sums(shadow).span_s, 2 * INTERVAL_S, 1e-6);
    recommend_shadow_free(shadow);
    scene_free(s);
}

static void sums_go_on(void **state)
{
    (void)state;
    struct recommend_shadow_sums before = {
        .core_s = 7200, .core_s_recommended = 3600, .judged_s = 1, .requests = 100, .late = 7};
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommend_shadow *shadow = recommend_shadow_new(&before);
    pass(s, shadow, 50, 1, 1000, INTERVAL_S);
    pass(s, shadow, 50, 1, 1000, INTERVAL_S);
    struct recommend_shadow_sums sums = recommend_shadow_sums(shadow);
    assert_near(sums.core_s, 7200 + 0.5 * INTERVAL_S, 1e-6);
    assert_near(sums.core_s_recommended, 3600 + INTERVAL_S, 1e-6);
    assert_true(sums.requests >= 100 && sums.late >= 7);
    recommend_shadow_free(shadow);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_is_counted_over_time),
        cmocka_unit_test(late_requests_are_those_of_the_model),
        cmocka_unit_test(sidecars_serve_nothing),
        cmocka_unit_test(without_a_goal_only_cpu_is_judged),
        cmocka_unit_test(gaps_do_not_count),
        cmocka_unit_test(sums_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
