/* CPU and memory under the guard, and that nothing ever leaves the bounds and rates. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guard/guard.h"

#define NONE API_ABSENT
#define MI   (INT64_C(1) << 20)

static char app[] = "app", star[] = "*";

/* One container of 100m to 2 cores; shrinking waits for five minutes unless a test says less. */
static struct api_spec cpu_spec(void)
{
    struct api_spec spec = {.min_replicas = 1,
                            .max_replicas = 10,
                            .scale_down.stabilization_s = 300,
                            .controls = {true, false},
                            .container_count = 1};
    spec.containers[0] =
        (struct api_container){.name = star, .min = {100, NONE}, .max = {2000, NONE}};
    return spec;
}

struct scene {
    struct guard *guard;
    struct api_spec spec;
    struct guard_limits limits;
    bool goal_missed;
    int64_t memory;
};

static struct scene new_scene(void)
{
    return (struct scene){
        .guard = guard_new(), .spec = cpu_spec(), .limits = guard_default_limits, .memory = NONE};
}

static struct guard_decision ask_both(struct scene *s, double now_s, int64_t current,
                                      double proposed, double memory)
{
    struct guard_container container = {
        .name = app, .request = {current, s->memory}, .limit = {NONE, NONE}};
    struct recommendation recommendation = {.replicas = 1, .container_count = 1};
    recommendation.containers[0].target[RECOMMEND_CPU] = proposed;
    recommendation.containers[0].target[RECOMMEND_MEMORY] = memory;
    struct guard_input in = {.now_s = now_s,
                             .spec = &s->spec,
                             .replicas_wanted = 1,
                             .goal_missed = s->goal_missed,
                             .containers = &container,
                             .container_count = 1,
                             .proposed = &recommendation};
    struct guard_decision out;
    guard_check(s->guard, &s->limits, &in, &out);
    return out;
}

static struct guard_decision ask(struct scene *s, double now_s, int64_t current, double proposed)
{
    return ask_both(s, now_s, current, proposed, NAN);
}

static void assert_cpu(const struct guard_decision *out, int64_t request, bool resize,
                       const char *reason)
{
    assert_int_equal(out->containers[0].request[API_CPU], request);
    assert_int_equal(out->containers[0].resize, resize);
    assert_string_equal(out->limit_reason, reason);
    assert_int_equal(out->limited, strcmp(reason, "DesiredWithinRange") != 0);
}

static void growth_goes_through_at_once(void **state)
{
    (void)state;
    struct scene s = new_scene();
    struct guard_decision out = ask(&s, 0, 250, 499.2);
    assert_cpu(&out, 500, true, "DesiredWithinRange");
    assert_int_equal(out.containers[0].request[API_MEMORY], NONE);
    guard_free(s.guard);
}

static void bounds_hold(void **state)
{
    (void)state;
    struct scene s = new_scene();
    struct guard_decision out = ask(&s, 0, 1000, 5000);
    assert_cpu(&out, 2000, true, "AboveMaxAllowed");
    assert_string_equal(out.limit_message, "cpu of app: 5 proposed, 2 is the most allowed");
    s.spec.scale_down.stabilization_s = 0;
    out = ask(&s, 100, 150, 10);
    assert_cpu(&out, 100, true, "BelowMinAllowed");
    s.spec.containers[0].min[API_CPU] = NONE; /* then 10m are the floor */
    out = ask(&s, 200, 12, 1);
    assert_cpu(&out, 10, true, "BelowMinAllowed");
    guard_free(s.guard);
}

static void one_step_is_limited(void **state)
{
    (void)state;
    struct scene s = new_scene();
    s.spec.scale_down.stabilization_s = 0;
    struct guard_decision out = ask(&s, 0, 110, 1500);
    assert_cpu(&out, 440, true, "ResizeUpLimit");
    out = ask(&s, 100, 1501, 200);
    assert_cpu(&out, 751, true, "ResizeDownLimit");
    guard_free(s.guard);
}

static void shrinking_waits_for_the_highest_of_the_window(void **state)
{
    (void)state;
    struct scene s = new_scene();
    struct guard_decision out = ask(&s, 0, 1000, 800);
    assert_cpu(&out, 1000, false, "ScaleDownStabilized"); /* the present size counts at first */
    out = ask(&s, 200, 1000, 700);
    assert_cpu(&out, 1000, false, "ScaleDownStabilized");
    out = ask(&s, 299, 1000, 600);
    assert_cpu(&out, 1000, false, "ScaleDownStabilized");
    out = ask(&s, 301, 1000, 600);
    assert_cpu(&out, 700, true, "ScaleDownStabilized"); /* the 700 of 200 s are the highest */
    out = ask(&s, 600, 700, 600);
    assert_cpu(&out, 600, true, "DesiredWithinRange");
    guard_free(s.guard);
}

static void growing_waits_only_when_told(void **state)
{
    (void)state;
    struct scene s = new_scene();
    s.spec.scale_up.stabilization_s = 60;
    struct guard_decision out = ask(&s, 0, 500, 900);
    assert_cpu(&out, 500, false, "ScaleUpStabilized");
    out = ask(&s, 61, 500, 1200);
    assert_cpu(&out, 1200, true, "DesiredWithinRange");
    guard_free(s.guard);
}

static void a_resize_cools_down_unless_the_goal_is_missed(void **state)
{
    (void)state;
    struct scene s = new_scene();
    s.spec.scale_down.stabilization_s = 0;
    guard_resized(s.guard, 100);
    struct guard_decision out = ask(&s, 105, 500, 800);
    assert_cpu(&out, 500, false, "ResizeCooldown");
    s.goal_missed = true;
    out = ask(&s, 106, 500, 800);
    assert_cpu(&out, 800, true, "DesiredWithinRange");
    out = ask(&s, 107, 500, 300); /* a shrink waits all the same */
    assert_cpu(&out, 500, false, "ResizeCooldown");
    out = ask(&s, 110, 500, 300);
    assert_cpu(&out, 300, true, "DesiredWithinRange");
    guard_free(s.guard);
}

static void small_changes_are_not_worth_it(void **state)
{
    (void)state;
    struct scene s = new_scene();
    s.spec.scale_down.stabilization_s = 0;
    struct guard_decision out = ask(&s, 0, 1000, 1099);
    assert_cpu(&out, 1000, false, "DesiredWithinRange");
    out = ask(&s, 1, 1000, 1100);
    assert_cpu(&out, 1100, true, "DesiredWithinRange");
    out = ask(&s, 2, 1950, 2000); /* but it reaches the bound */
    assert_cpu(&out, 2000, true, "DesiredWithinRange");
    guard_free(s.guard);
}

static void sizes_outside_the_bounds_are_always_corrected(void **state)
{
    (void)state;
    struct scene s = new_scene();
    guard_resized(s.guard, 0);
    struct guard_decision out = ask(&s, 1, 2001, 2001); /* cooldown, window and threshold */
    assert_int_equal(out.containers[0].request[API_CPU], 2000);
    assert_true(out.containers[0].resize);
    out = ask(&s, 2, 16000, 300); /* step */
    assert_int_equal(out.containers[0].request[API_CPU], 2000);
    out = ask(&s, 3, 5, 300);
    assert_in_range(out.containers[0].request[API_CPU], 100, 2000);
    out = ask(&s, 4, 5, NAN);
    assert_cpu(&out, 100, true, "InvalidProposal");
    guard_free(s.guard);
}

static void absurd_proposals_never_get_through(void **state)
{
    (void)state;
    const double absurd[] = {NAN, INFINITY, -INFINITY, -1, 1e300, -1e300};
    for (size_t i = 0; i < ARRAY_LEN(absurd); i++) {
        struct scene s = new_scene();
        struct guard_decision out = ask(&s, 0, 500, absurd[i]);
        assert_cpu(&out, NONE, false, "InvalidProposal");
        /* And they leave no trace in the windows. */
        out = ask(&s, 1, 500, 600);
        assert_cpu(&out, 600, true, "DesiredWithinRange");
        guard_free(s.guard);
    }
}

/* What may be written as bounds at most: steps are still steps, and nothing overflows. */
static void huge_bounds_are_bounds(void **state)
{
    (void)state;
    struct scene s = new_scene();
    s.spec.max_replicas = 10000; /* more is refused: api_test.c */
    s.spec.scale_up = (struct api_rules){
        .policies = {{API_POLICY_PODS, 4, 15}, {API_POLICY_PERCENT, 100, 15}}, .policy_count = 2};
    s.spec.containers[0].max[API_CPU] = INT64_MAX;
    int replicas = 1, rounds = 0;
    int64_t cpu = 100;
    for (double now_s = 0; replicas < 10000; now_s += 15, rounds++) {
        struct guard_container container = {.name = app, .request = {cpu, NONE}};
        struct recommendation most = {.replicas = INT32_MAX, .container_count = 1};
        most.containers[0].target[RECOMMEND_CPU] = 9e18;
        most.containers[0].target[RECOMMEND_MEMORY] = NAN;
        struct guard_input in = {.now_s = now_s,
                                 .spec = &s.spec,
                                 .replicas_wanted = replicas,
                                 .goal_missed = true,
                                 .containers = &container,
                                 .container_count = 1,
                                 .proposed = &most};
        struct guard_decision out;
        guard_check(s.guard, &s.limits, &in, &out);
        assert_in_range(out.replicas, replicas, 10000);
        assert_true(out.replicas <= replicas + 4 || out.replicas <= 2 * replicas);
        guard_scaled(s.guard, now_s, replicas, out.replicas);
        replicas = out.replicas;
        int64_t request = out.containers[0].request[API_CPU];
        assert_true(request == NONE || (request >= cpu && request / 4 <= cpu));
        if (request != NONE)
            cpu = request;
        assert_true(rounds < 100);
    }
    assert_true(rounds > 10);
    guard_free(s.guard);
}

static void what_is_not_controlled_is_left(void **state)
{
    (void)state;
    struct scene s = new_scene();
    s.spec.containers[0].off = true;
    struct guard_decision out = ask(&s, 0, 500, 900);
    assert_cpu(&out, NONE, false, "DesiredWithinRange");
    s.spec = cpu_spec();
    s.spec.controls[API_CPU] = false;
    out = ask(&s, 0, 500, 900);
    assert_cpu(&out, NONE, false, "DesiredWithinRange");
    guard_free(s.guard);
}

static void memory_has_its_own_floor(void **state)
{
    (void)state;
    struct scene s = new_scene();
    s.spec.controls[API_MEMORY] = true;
    s.spec.scale_down.stabilization_s = 0;
    s.memory = 20 * MI;
    struct guard_decision out = ask_both(&s, 0, 500, 500, 1);
    assert_int_equal(out.containers[0].request[API_MEMORY], 16 * MI);
    assert_int_equal(out.containers[0].request[API_CPU], 500);
    assert_string_equal(out.limit_reason, "BelowMinAllowed");
    out = ask_both(&s, 1, 500, 500, (double)(64 * MI));
    assert_int_equal(out.containers[0].request[API_MEMORY], 64 * MI);
    s.memory = NONE; /* a container without a request takes what is proposed, within bounds */
    out = ask_both(&s, 2, 500, 500, (double)(64 * MI));
    assert_int_equal(out.containers[0].request[API_MEMORY], 64 * MI);
    guard_free(s.guard);
}

static void containers_are_known_by_name(void **state)
{
    (void)state;
    struct scene s = new_scene();
    struct guard_decision out;
    char names[40][16];
    for (int i = 0; i < 40; i++) { /* more names over time than there are places */
        snprintf(names[i], sizeof(names[i]), "c%d", i);
        struct guard_container container = {.name = names[i], .request = {1000, NONE}};
        struct recommendation recommendation = {.replicas = 1, .container_count = 1};
        recommendation.containers[0].target[RECOMMEND_CPU] = 500;
        struct guard_input in = {.now_s = i,
                                 .spec = &s.spec,
                                 .replicas_wanted = 1,
                                 .containers = &container,
                                 .container_count = 1,
                                 .proposed = &recommendation};
        guard_check(s.guard, &s.limits, &in, &out);
        assert_int_equal(out.containers[0].request[API_CPU], 1000);
    }
    guard_free(s.guard);
}

/* --- nothing leaves --------------------------------------------------------------------------- */
static uint32_t dice(uint32_t *x, uint32_t sides)
{
    *x = *x * 1664525u + 1013904223u;
    return (*x >> 8) % sides;
}

static double wild_amount(uint32_t *x)
{
    const double odd[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e300, 1e-300, 0.5, 1e9, -0.0};
    return dice(x, 4) == 0 ? odd[dice(x, ARRAY_LEN(odd))] : dice(x, 6000);
}

static int wild_count(uint32_t *x)
{
    const int odd[] = {INT32_MIN, INT32_MAX, -1, 0, 1000000};
    return dice(x, 4) == 0 ? odd[dice(x, ARRAY_LEN(odd))] : (int)dice(x, 30);
}

/* No step up leaves more than 3 replicas above the count of 60 s ago, none down more than 2 below.
 */
static void assert_rates(const int *change, int now)
{
    int net = 0;
    for (int t = now > 59 ? now - 59 : 0; t <= now; t++)
        net += change[t];
    assert_true(change[now] <= 0 || net <= 3);
    assert_true(change[now] >= 0 || net >= -2);
}

static void nothing_ever_leaves_bounds_or_rates(void **state)
{
    (void)state;
    enum { ROUNDS = 100000 };
    struct scene s = new_scene();
    s.spec.min_replicas = 2;
    s.spec.max_replicas = 20;
    s.spec.scale_up = (struct api_rules){.policies = {{API_POLICY_PODS, 3, 60}}, .policy_count = 1};
    s.spec.scale_down = (struct api_rules){
        .stabilization_s = 5, .policies = {{API_POLICY_PODS, 2, 60}}, .policy_count = 1};
    int *change = xcalloc(ROUNDS, sizeof(*change));
    int replicas = 5, changes = 0, resizes = 0;
    int64_t cpu = 500;
    double resized_s = -INFINITY;
    uint32_t x = 7;
    for (int t = 0; t < ROUNDS; t++) {
        struct guard_container container = {.name = app, .request = {cpu, NONE}};
        struct recommendation wild = {.replicas = wild_count(&x), .container_count = dice(&x, 3)};
        wild.containers[0].target[RECOMMEND_CPU] = wild_amount(&x);
        wild.containers[0].target[RECOMMEND_MEMORY] = wild_amount(&x);
        bool missed = dice(&x, 2);
        struct guard_input in = {.now_s = t,
                                 .spec = &s.spec,
                                 .replicas_wanted = replicas,
                                 .goal_missed = missed,
                                 .containers = &container,
                                 .container_count = 1,
                                 .proposed = &wild};
        struct guard_decision out;
        guard_check(s.guard, &s.limits, &in, &out);

        assert_in_range(out.replicas, 2, 20);
        change[t] = out.replicas - replicas;
        assert_rates(change, t);
        if (change[t] != 0) {
            guard_scaled(s.guard, t, replicas, out.replicas);
            replicas = out.replicas;
            changes++;
        }
        assert_int_equal(out.containers[0].request[API_MEMORY], NONE);
        int64_t request = out.containers[0].request[API_CPU];
        assert_true(out.containers[0].resize == (request != NONE && request != cpu));
        if (!out.containers[0].resize)
            continue;
        assert_in_range(request, 100, 2000);
        assert_true(request <= 4 * cpu && 2 * request >= cpu);
        assert_true(llabs(request - cpu) * 10 >= cpu || request == 100 || request == 2000);
        assert_true(t - resized_s >= 10 || (missed && request > cpu));
        guard_resized(s.guard, t);
        resized_s = t;
        cpu = request;
        resizes++;
    }
    /* Held, but not frozen. */
    assert_true(changes > 1000 && resizes > 1000);
    free(change);
    guard_free(s.guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_goes_through_at_once),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(one_step_is_limited),
        cmocka_unit_test(shrinking_waits_for_the_highest_of_the_window),
        cmocka_unit_test(growing_waits_only_when_told),
        cmocka_unit_test(a_resize_cools_down_unless_the_goal_is_missed),
        cmocka_unit_test(small_changes_are_not_worth_it),
        cmocka_unit_test(sizes_outside_the_bounds_are_always_corrected),
        cmocka_unit_test(absurd_proposals_never_get_through),
        cmocka_unit_test(huge_bounds_are_bounds),
        cmocka_unit_test(what_is_not_controlled_is_left),
        cmocka_unit_test(memory_has_its_own_floor),
        cmocka_unit_test(containers_are_known_by_name),
        cmocka_unit_test(nothing_ever_leaves_bounds_or_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
