/* HPA as a recommender of its own: the rule is in recommend_hpa_test.c, here is its pace, by hand
 * from the documented defaults of HPA v2's behavior. */
#include "recommend_scene.h"

static void usage(struct scene *s, double percent)
{
    scene_cpu(s, 500, 5 * percent);
}

static void replicas_follow_the_mpas_metrics(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_hpa, NULL);
    scene_pods(s, 2);
    usage(s, 105); /* ceil(2 × 105 / 70) */
    scene_expect(s, 3, 500, "105% CPU over target 70%: replicas 2 → 3");
    scene_free(s);
    s = scene_new(&recommend_hpa, NULL);
    scene_pods(s, 2);
    s->seen.metrics[0].utilization = 0.35;
    usage(s, 70);
    scene_expect(s, 4, 500, "70% CPU over target 35%: replicas 2 → 4");
    scene_free(s);
}

static void parameters_have_the_last_word(void **state)
{
    (void)state;
    double params[] = {0.5, 0.3, 0, 250};
    struct scene *s = scene_new(&recommend_hpa, params);
    scene_pods(s, 4);
    usage(s, 64); /* 1.28 of the target is within 0.3 */
    scene_expect(s, 4, 250, "64% CPU near target 50%: cpu 500m → 250m");
    usage(s, 75);
    scene_expect(s, 6, 250, "75% CPU over target 50%: replicas 4 → 6, cpu 500m → 250m");
    s->seen.now_s += 15;
    usage(s, 20); /* no window: at once */
    scene_expect(s, 2, 250, "20% CPU under target 50%: replicas 4 → 2, cpu 500m → 250m");
    scene_free(s);
}

/* Four pods or as many as there are, whichever is more, in 15 s. */
static void it_grows_at_most_as_hpa_does(void **state)
{
    (void)state;
    static const struct {
        int now, then;
    } steps[] = {{1, 5}, {3, 7}, {4, 8}, {5, 10}, {8, 16}, {15, 20}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct scene *s = scene_new(&recommend_hpa, NULL);
        scene_pods(s, steps[i].now);
        usage(s, 2000);
        scene_expect(s, steps[i].then, 500, NULL);
        scene_free(s);
    }
}

static void asked_often_it_grows_no_faster(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_hpa, NULL);
    usage(s, 2000);
    scene_expect(s, 5, 500, NULL);
    scene_pods(s, 5);
    s->seen.now_s += 5; /* one pod at the period's start: 1 + 4 is all */
    scene_expect(s, 5, 500, NULL);
    s->seen.now_s += 10;
    scene_expect(s, 10, 500, NULL);
    scene_free(s);
}

static void it_shrinks_to_the_most_of_five_minutes(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_hpa, NULL);
    scene_pods(s, 8);
    usage(s, 70);
    scene_expect(s, 8, 500, "70% CPU near target 70%: no change");
    s->seen.now_s += 150;
    usage(s, 35);
    scene_expect(s, 8, 500, "35% CPU under target 70%: no change, more was needed a while ago");
    s->seen.now_s += 149;
    usage(s, 10);
    scene_expect(s, 8, 500, NULL);
    s->seen.now_s += 1; /* 8 was asked for 300 s ago, then 4 and 2 */
    scene_expect(s, 4, 500, "10% CPU under target 70%: replicas 8 → 4");
    scene_free(s);
}

static void at_the_start_it_remembers_what_was_there(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_hpa, NULL);
    scene_pods(s, 6);
    usage(s, 7);
    scene_expect(s, 6, 500, NULL);
    s->seen.now_s += 300;
    scene_expect(s, 1, 500, NULL);
    scene_free(s);
}

/* HPA never scales down while one of its metrics is missing. */
static void a_missing_metric_forbids_shrinking(void **state)
{
    (void)state;
    double params[] = {0, 0.1, 0, 0};
    struct scene *s = scene_new(&recommend_hpa, params);
    scene_pods(s, 4);
    s->seen.metrics[1] = (struct recommend_metric){MEM, -1, NAN, 100 * MI};
    s->seen.metric_count = 2;
    usage(s, 7);
    scene_expect(s, 4, 500, NULL);
    usage(s, 140);
    scene_expect(s, 8, 500, NULL);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_follow_the_mpas_metrics),
        cmocka_unit_test(parameters_have_the_last_word),
        cmocka_unit_test(it_grows_at_most_as_hpa_does),
        cmocka_unit_test(asked_often_it_grows_no_faster),
        cmocka_unit_test(it_shrinks_to_the_most_of_five_minutes),
        cmocka_unit_test(at_the_start_it_remembers_what_was_there),
        cmocka_unit_test(a_missing_metric_forbids_shrinking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
