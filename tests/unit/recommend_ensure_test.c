/* ENSURE: square-root staffing by its formula, CPU by the stated rule. */
#include "recommend_scene.h"

/* ceil(R + c·√R), by hand. */
static void containers_come_from_square_root_staffing(void **state)
{
    (void)state;
    static const struct {
        double load, c;
        int containers;
    } cases[] = {{1, 1, 2},   {4, 1, 6}, {9, 1, 12},  {9, 2, 15},
                 {16, 0, 16}, {2, 1, 4}, {0.25, 1, 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double params[] = {0.15, cases[i].c, 125, 60, 600};
        struct scene *s = scene_new(&recommend_ensure, params);
        scene_load(s, 10, cases[i].load, 50);
        scene_expect(s, cases[i].containers, 500, NULL);
        scene_free(s);
    }
}

static void idle_containers_time_out(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_ensure, NULL);
    scene_load(s, 10, 9, 50);
    scene_expect(s, 12, 500, "9 requests in flight, p99 1.00 times the best: replicas 1 → 12");
    scene_pods(s, 12);
    scene_load(s, 0, 0, NAN);
    for (int i = 0; i < 9; i++) {
        s->seen.now_s += 60;
        scene_expect(s, 12, 500, NULL);
    }
    s->seen.now_s += 60;
    scene_expect(s, 1, 500, NULL);
    scene_free(s);
}

/* Answers of one minute with this latency. */
static void minute(struct scene *s, double latency_ms)
{
    for (int i = 0; i < 4; i++) {
        s->seen.now_s += 15;
        scene_load(s, 10, 0.5, latency_ms);
        assert_int_equal(scene_ask(s), 0);
        if (i < 3)
            scene_obey(s, 0);
    }
}

static void cpu_grows_only_when_requests_got_slower(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_ensure, NULL);
    minute(s, 100);
    scene_obey(s, 0);
    minute(s, 114); /* less than 15 % */
    assert_true(scene_target(s) == 500);
    scene_obey(s, 0);
    minute(s, 130);
    assert_true(scene_target(s) > 500);
    scene_free(s);
}

static void cpu_goes_back_to_what_the_user_asked_for(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_ensure, NULL);
    minute(s, 100);
    scene_obey(s, 0);
    minute(s, 130);
    scene_obey(s, 0);
    double grown = s->seen.containers[0].request[CPU];
    assert_true(grown > 500);
    for (int i = 0; i < 120 && s->seen.containers[0].request[CPU] > 500; i++) {
        minute(s, 100);
        scene_obey(s, 0);
    }
    minute(s, 100);
    assert_true(scene_target(s) == 500);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_come_from_square_root_staffing),
        cmocka_unit_test(idle_containers_time_out),
        cmocka_unit_test(cpu_grows_only_when_requests_got_slower),
        cmocka_unit_test(cpu_goes_back_to_what_the_user_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
