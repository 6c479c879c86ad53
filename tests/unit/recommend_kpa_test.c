/* Decisions of Knative's own autoscaler (knative.dev/serving v0.46.0, pkg/autoscaler/scaling with
 * its one-second buckets), told every two seconds the load of the phases below, its pods ready at
 * once.
 */
#include "recommend_scene.h"

#define END_S 400

struct step {
    int at_s; /* a load from then on, or the decision that first differs from the one before */
    double value;
};

struct story {
    double target, window_s;
    int ready;
    struct step load[6], pods[16];
};

static const struct story stories[] = {
    {10,
     60,
     1,
     {{0, 5}, {60, 80}, {90, 33}, {200, 0}},
     {{2, 1},
      {62, 5},
      {64, 8},
      {66, 12},
      {124, 8},
      {130, 7},
      {140, 6},
      {148, 5},
      {210, 4},
      {222, 3},
      {236, 2},
      {248, 1},
      {260, 0}}},
    {1,
     60,
     3,
     {{0, 0.5}, {100, 2.2}, {130, 2.9}, {180, 40}, {184, 1}},
     {{2, 3},
      {62, 1},
      {102, 2},
      {104, 3},
      {106, 4},
      {136, 5},
      {164, 4},
      {182, 22},
      {184, 40},
      {244, 20},
      {246, 10},
      {248, 5},
      {250, 2}}},
    {100,
     120,
     12,
     {{0, 300}, {150, 90}, {260, 2500}, {262, 90}},
     {{2, 12}, {122, 6}, {124, 5}, {162, 4}, {202, 3}, {242, 2}, {262, 8}, {384, 4}, {386, 2}}},
};

/* The value of the last step that has begun. */
static double value_at(const struct step *steps, size_t count, int at_s)
{
    double value = steps[0].value;
    for (size_t i = 1; i < count && steps[i].at_s > 0; i++)
        if (at_s >= steps[i].at_s)
            value = steps[i].value;
    return value;
}

static void tell(const struct story *story)
{
    double params[] = {story->target, story->window_s, 0};
    struct scene *s = scene_new(&recommend_kpa, params);
    s->seen.min_replicas = 0;
    s->seen.max_replicas = 1000;
    scene_pods(s, story->ready);
    for (int t = 2; t <= END_S; t += 2) {
        s->seen.now_s = t;
        s->seen.concurrency = value_at(story->load, ARRAY_LEN(story->load), t - 1);
        assert_int_equal(scene_ask(s), 0);
        double pods = value_at(story->pods, ARRAY_LEN(story->pods), t);
        if (s->out.replicas != pods)
            fail_msg("at %d s %d instead of %g: %s", t, s->out.replicas, pods, s->out.reason);
        scene_pods(s, s->out.replicas > 1 ? s->out.replicas : 1);
    }
    scene_free(s);
}

static void it_decides_as_knative_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(stories); i++)
        tell(&stories[i]);
}

static void it_says_why(void **state)
{
    (void)state;
    double params[] = {10, 60, 800};
    struct scene *s = scene_new(&recommend_kpa, params);
    s->seen.concurrency = 9;
    scene_expect(
        s, 2, 800,
        "9 requests in flight, 1 ready, 7 each wanted, panic: replicas 1 → 2, cpu 500m → 800m");
    scene_free(s);
}

/* Asked every 15 s, each answer stands for the time since the one before. */
static void it_can_be_asked_less_often(void **state)
{
    (void)state;
    double params[] = {10, 60, 0};
    struct scene *s = scene_new(&recommend_kpa, params);
    scene_pods(s, 2);
    s->seen.now_s = 0;
    s->seen.concurrency = 0;
    assert_int_equal(scene_ask(s), 0);
    static const double load[] = {10, 10, 20, 20}; /* mean 15 of a minute: three pods of 7 */
    for (size_t i = 0; i < ARRAY_LEN(load); i++) {
        s->seen.now_s += 15;
        s->seen.concurrency = load[i];
        assert_int_equal(scene_ask(s), 0);
    }
    scene_expect(s, 3, 500, "15 requests in flight, 2 ready, 7 each wanted: replicas 2 → 3");
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_decides_as_knative_does),
        cmocka_unit_test(it_says_why),
        cmocka_unit_test(it_can_be_asked_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
