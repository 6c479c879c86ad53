/* What every recommender owes its callers, and the two simple ones: fixed and greedy. */
#include "recommend_scene.h"

/* --- all of them ------------------------------------------------------------------------------ */
static void params_have_sensible_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; recommend_all[i]; i++) {
        const struct recommender *r = recommend_all[i];
        assert_ptr_equal(recommend_find(r->name), r);
        assert_non_null(r->summary);
        for (size_t p = 0; p < r->param_count; p++) {
            const struct recommend_param *param = &r->params[p];
            bool inside = param->value >= param->low && param->value <= param->high;
            if (!(param->low < param->high) || !(inside || param->value == 0))
                fail_msg("%s: %s", r->name, param->name);
            assert_true(strlen(param->help) > 0);
        }
    }
}

static void assert_within_bounds(const struct scene *s)
{
    double cpu = scene_target(s);
    if (s->out.replicas < s->seen.min_replicas || s->out.replicas > s->seen.max_replicas ||
        !(cpu >= 100 && cpu <= 2000))
        fail_msg("%s: %d × %gm", s->recommender->name, s->out.replicas, cpu);
    assert_true(s->out.containers[0].lower[CPU] <= cpu);
    assert_true(s->out.containers[0].upper[CPU] >= cpu);
    assert_true(isnan(s->out.containers[0].target[MEM]));
    assert_true(s->out.reason[0] != '\0');
}

/* Loads from nothing to far more than the bounds allow, and back. */
static void nothing_leaves_the_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; recommend_all[i]; i++) {
        struct scene *s = scene_new(recommend_all[i], NULL);
        for (int step = 0; step < 200; step++) {
            double cores = pow(10, 3 * sin(step / 20.0)) / 20;
            double of_pod =
                fmin(cores * 1000 / s->seen.replicas_wanted, s->seen.containers[0].request[CPU]);
            scene_cpu(s, s->seen.containers[0].request[CPU], of_pod);
            scene_load(s, cores * 100, cores * 2, 10 * cores * 2);
            if (scene_ask(s) < 0)
                fail_msg("%s: %s", s->recommender->name, s->err.message);
            assert_within_bounds(s);
            scene_obey(s, 15);
        }
        scene_free(s);
    }
}

static void a_size_outside_the_bounds_is_brought_within(void **state)
{
    (void)state;
    for (size_t i = 0; recommend_all[i]; i++) {
        struct scene *s = scene_new(recommend_all[i], NULL);
        scene_pods(s, 30);
        scene_cpu(s, 4000, 10);
        assert_int_equal(scene_ask(s), 0);
        assert_within_bounds(s);
        scene_free(s);
    }
}

static void without_figures_nothing_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; recommend_all[i]; i++) {
        struct scene *s = scene_new(recommend_all[i], NULL);
        scene_cpu(s, 500, NAN);
        scene_load(s, NAN, NAN, NAN);
        s->seen.latency_state = LATENCY_MISSING;
        bool fixed = recommend_all[i] == &recommend_fixed; /* needs none */
        assert_int_equal(scene_ask(s), fixed ? 0 : -1);
        assert_true(fixed || strstr(s->err.message, "no figures"));
        scene_pods(s, 0);
        assert_int_equal(scene_ask(s), -1);
        scene_free(s);
    }
}

static void asked_twice_at_once_they_answer_alike(void **state)
{
    (void)state;
    for (size_t i = 0; recommend_all[i]; i++) {
        struct scene *s = scene_new(recommend_all[i], NULL);
        for (int step = 0; step < 20; step++) {
            scene_load(s, 20 + step, 1 + step, 40 + step);
            assert_int_equal(scene_ask(s), 0);
            struct recommendation first = s->out;
            assert_int_equal(scene_ask(s), 0);
            if (s->out.replicas != first.replicas ||
                scene_target(s) != first.containers[0].target[CPU])
                fail_msg("%s: first %s, then %s", s->recommender->name, first.reason,
                         s->out.reason);
            scene_obey(s, 15);
        }
        scene_free(s);
    }
}

/* A second container that is not ours keeps its size; one that is shares in what the pod gets. */
static void only_our_containers_are_sized(void **state)
{
    (void)state;
    double params[] = {0, 800};
    struct scene *s = scene_new(&recommend_fixed, params);
    s->seen.container_count = 3;
    s->seen.containers[1] = s->seen.containers[2] = s->seen.containers[0];
    s->seen.containers[1].name = "proxy";
    s->seen.containers[1].controlled[CPU] = false;
    s->seen.containers[2].name = "cache";
    s->seen.containers[2].request[CPU] = 100;
    scene_expect(s, 1, 670, "fixed: cpu of app 500m → 670m, cpu of cache 100m → 140m");
    assert_true(isnan(s->out.containers[1].target[CPU]));
    scene_free(s);
}

/* --- fixed ------------------------------------------------------------------------------------ */
static void fixed_keeps_what_it_first_saw(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_fixed, NULL);
    scene_pods(s, 3);
    scene_expect(s, 3, 500, "fixed: no change");
    scene_pods(s, 5);
    scene_cpu(s, 900, 100);
    scene_expect(s, 3, 500, "fixed: replicas 5 → 3, cpu 900m → 500m");
    scene_free(s);
}

static void fixed_takes_what_it_is_told(void **state)
{
    (void)state;
    double params[] = {4, 250};
    struct scene *s = scene_new(&recommend_fixed, params);
    scene_expect(s, 4, 250, "fixed: replicas 1 → 4, cpu 500m → 250m");
    s->seen.max_replicas = 2;
    scene_expect(s, 2, 250, NULL);
    scene_free(s);
}

/* --- greedy ----------------------------------------------------------------------------------- */
static void greedy_moves_by_whole_cores(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_greedy, NULL);
    scene_cpu(s, 1800, 600);
    scene_expect(s, 1, 800, "33% CPU: cpu 1800m → 800m");
    scene_cpu(s, 800, 600); /* 200m lie idle: less than a step */
    scene_expect(s, 1, 800, "75% CPU: no change");
    scene_cpu(s, 800, 720);
    s->seen.now_s += 15;
    scene_expect(s, 1, 1800, "90% CPU: cpu 800m → 1800m");
    scene_free(s);
}

static void greedy_looks_at_the_recent_peak(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_greedy, NULL);
    scene_cpu(s, 1800, 1000);
    scene_expect(s, 1, 1800, NULL);
    s->seen.now_s += 30;
    scene_cpu(s, 1800, 100);
    scene_expect(s, 1, 1800, NULL);
    s->seen.now_s += 30; /* the peak is a minute old */
    scene_expect(s, 1, 800, NULL);
    scene_free(s);
}

static void greedy_has_a_pod_per_request_and_keeps_it_a_while(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_greedy, NULL);
    scene_load(s, 10, 3.2, 50);
    scene_expect(s, 4, 500, NULL);
    scene_load(s, 0, 0, NAN);
    s->seen.now_s += 599;
    scene_expect(s, 4, 500, NULL);
    s->seen.now_s += 1;
    scene_expect(s, 1, 500, NULL);
    scene_free(s);
}

static void greedy_moves_memory_by_64_mi(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_greedy, NULL);
    s->seen.containers[0].controlled[MEM] = true;
    s->seen.containers[0].request[MEM] = 256 * MI;
    s->pods[0].containers[0].usage[MEM] = 100 * MI;
    scene_expect(s, 1, 500, "50% CPU: memory 256Mi → 192Mi");
    s->pods[0].containers[0].usage[MEM] = 240 * MI;
    scene_expect(s, 1, 500, "50% CPU: memory 256Mi → 320Mi");
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(params_have_sensible_ranges),
        cmocka_unit_test(nothing_leaves_the_bounds),
        cmocka_unit_test(a_size_outside_the_bounds_is_brought_within),
        cmocka_unit_test(without_figures_nothing_is_said),
        cmocka_unit_test(asked_twice_at_once_they_answer_alike),
        cmocka_unit_test(only_our_containers_are_sized),
        cmocka_unit_test(fixed_keeps_what_it_first_saw),
        cmocka_unit_test(fixed_takes_what_it_is_told),
        cmocka_unit_test(greedy_moves_by_whole_cores),
        cmocka_unit_test(greedy_looks_at_the_recent_peak),
        cmocka_unit_test(greedy_has_a_pod_per_request_and_keeps_it_a_while),
        cmocka_unit_test(greedy_moves_memory_by_64_mi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
