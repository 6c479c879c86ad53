/* New requests and limits of one pod: the QoS class stays, as Kubernetes defines it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guard/guard.h"

#define NONE API_ABSENT
#define MI   (INT64_C(1) << 20)

static struct guard_pod_container container(int64_t cpu, int64_t cpu_limit, int64_t memory,
                                            int64_t memory_limit)
{
    return (struct guard_pod_container){.name = "app",
                                        .request = {cpu, memory},
                                        .limit = {cpu_limit, memory_limit},
                                        .want = {NONE, NONE}};
}

static void assert_cpu(const struct guard_pod_container *c, int64_t request, int64_t limit)
{
    assert_int_equal(c->new_request[API_CPU], request);
    assert_int_equal(c->new_limit[API_CPU], limit);
}

static int fit(struct guard_pod_container *containers, size_t n)
{
    struct error err = {0};
    enum guard_qos before = guard_qos_of(containers, n, false);
    int rc = guard_fit_pod(containers, n, &err);
    if (rc < 0)
        assert_true(strlen(err.message) > 0);
    else
        assert_int_equal(guard_qos_of(containers, n, true), before);
    return rc;
}

static void classes_are_those_of_kubernetes(void **state)
{
    (void)state;
    struct guard_pod_container c[2] = {container(NONE, NONE, NONE, NONE),
                                       container(NONE, NONE, NONE, NONE)};
    assert_int_equal(guard_qos_of(c, 2, false), GUARD_BEST_EFFORT);
    c[0] = container(0, NONE, NONE, 0); /* zero is as good as nothing */
    assert_int_equal(guard_qos_of(c, 2, false), GUARD_BEST_EFFORT);
    c[0] = container(100, NONE, NONE, NONE);
    assert_int_equal(guard_qos_of(c, 2, false), GUARD_BURSTABLE);
    c[0] = container(100, 100, MI, MI); /* the other container has nothing */
    assert_int_equal(guard_qos_of(c, 2, false), GUARD_BURSTABLE);
    assert_int_equal(guard_qos_of(c, 1, false), GUARD_GUARANTEED);
    c[0] = container(NONE, 100, NONE, MI); /* requests come from the limits */
    assert_int_equal(guard_qos_of(c, 1, false), GUARD_GUARANTEED);
    c[0] = container(100, 100, MI, NONE);
    assert_int_equal(guard_qos_of(c, 1, false), GUARD_BURSTABLE);
    c[0] = container(100, 200, MI, MI);
    assert_int_equal(guard_qos_of(c, 1, false), GUARD_BURSTABLE);
}

static void limits_move_in_proportion(void **state)
{
    (void)state;
    struct guard_pod_container c = container(100, 250, MI, NONE);
    c.want[API_CPU] = 300;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 300, 750);
    assert_int_equal(c.new_request[API_MEMORY], MI);
    assert_int_equal(c.new_limit[API_MEMORY], NONE);
    c = container(300, 1000, MI, NONE);
    c.want[API_CPU] = 100;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 100, 333); /* rounded down, as VPA */
    c = container(100, NONE, MI, NONE);
    c.want[API_CPU] = 70;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 70, NONE);
}

static void requests_only_leaves_limits_and_stops_at_them(void **state)
{
    (void)state;
    struct guard_pod_container c = container(100, 500, MI, NONE);
    c.requests_only = true;
    c.want[API_CPU] = 300;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 300, 500);
    c.want[API_CPU] = 900;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 500, 500);
}

static void guaranteed_pods_keep_both_equal(void **state)
{
    (void)state;
    struct guard_pod_container c = container(200, 200, 64 * MI, 64 * MI);
    c.want[API_CPU] = 150;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 150, 150);
    c.want[API_MEMORY] = 96 * MI;
    assert_int_equal(fit(&c, 1), 1);
    assert_int_equal(c.new_request[API_MEMORY], 96 * MI);
    assert_int_equal(c.new_limit[API_MEMORY], 96 * MI);
    c = container(NONE, 200, NONE, 64 * MI);
    c.want[API_CPU] = 400;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 400, 400);
}

static void guaranteed_pods_cannot_leave_their_limits(void **state)
{
    (void)state;
    struct guard_pod_container c = container(200, 200, 64 * MI, 64 * MI);
    c.requests_only = true;
    c.want[API_CPU] = 150;
    assert_true(fit(&c, 1) < 0);
    c.want[API_CPU] = 200; /* what it has */
    assert_int_equal(fit(&c, 1), 0);
}

static void boosts_are_bounded(void **state)
{
    (void)state;
    struct api_container bounds = {
        .name = (char *)(uintptr_t) "app", .min = {NONE, NONE}, .max = {NONE, NONE}};
    struct api_spec spec = {.boost.factor = 2, .containers = {bounds}, .container_count = 1};
    assert_int_equal(guard_boost(&spec, "app", 300), 600);
    spec.containers[0].max[API_CPU] = 500;
    assert_int_equal(guard_boost(&spec, "app", 300), 500);
    assert_int_equal(guard_boost(&spec, "app", 500), 500);
    assert_int_equal(guard_boost(&spec, "app", 700), 700); /* never less than its size */
    spec.boost = (struct api_boost){.more_milli = 150};
    assert_int_equal(guard_boost(&spec, "app", 300), 450);
    assert_int_equal(guard_boost(&spec, "other", 300), 450);
    spec.boost = (struct api_boost){.factor = 100};
    assert_int_equal(guard_boost(&spec, "other", INT64_MAX / 2), INT64_MAX);
}

static void burstable_pods_never_become_guaranteed(void **state)
{
    (void)state;
    struct guard_pod_container c = container(100, 500, 64 * MI, 64 * MI);
    c.requests_only = true;
    c.want[API_CPU] = 800;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 499, 500);
    c = container(999, 1000, 64 * MI, 64 * MI); /* the proportion vanishes in rounding */
    c.want[API_CPU] = 10;
    assert_int_equal(fit(&c, 1), 1);
    assert_cpu(&c, 9, 10);

    struct guard_pod_container two[2] = {container(100, 500, MI, MI), container(50, 50, MI, MI)};
    two[0].requests_only = true;
    two[0].want[API_CPU] = 500;
    assert_int_equal(fit(two, 2), 1);
    assert_cpu(&two[0], 499, 500);
    assert_cpu(&two[1], 50, 50);
}

static void best_effort_pods_gain_nothing(void **state)
{
    (void)state;
    struct guard_pod_container c = container(NONE, NONE, NONE, NONE);
    assert_int_equal(fit(&c, 1), 0);
    c.want[API_CPU] = 100;
    assert_true(fit(&c, 1) < 0);
}

static void burstable_containers_may_gain_a_request(void **state)
{
    (void)state;
    struct guard_pod_container two[2] = {container(NONE, NONE, NONE, NONE),
                                         container(50, NONE, NONE, NONE)};
    two[0].want[API_CPU] = 100;
    assert_int_equal(fit(two, 2), 1);
    assert_cpu(&two[0], 100, NONE);
}

static void nothing_wanted_changes_nothing(void **state)
{
    (void)state;
    struct guard_pod_container c = container(100, 200, MI, NONE);
    assert_int_equal(fit(&c, 1), 0);
    assert_cpu(&c, 100, 200);
    c.want[API_CPU] = 100;
    assert_int_equal(fit(&c, 1), 0);
    assert_int_equal(fit(NULL, 0), 0);
}

static void absurd_amounts_are_refused_or_bounded(void **state)
{
    (void)state;
    struct guard_pod_container c = container(100, 200, MI, NONE);
    c.want[API_CPU] = 0;
    assert_true(fit(&c, 1) < 0);
    c.want[API_CPU] = -5;
    assert_true(fit(&c, 1) < 0);
    c.want[API_CPU] = INT64_MAX;
    assert_int_equal(fit(&c, 1), 1);
    assert_true(c.new_limit[API_CPU] >= c.new_request[API_CPU]);
}

/* Any pod, any wish: the class stays, no limit falls below its request, nothing is removed. */
static void random_pods_keep_their_class(void **state)
{
    (void)state;
    static const int64_t amounts[] = {NONE, 1, 2, 10, 100, 100, 333, 1000};
    uint32_t x = 1;
    for (int round = 0; round < 100000; round++) {
        struct guard_pod_container c[3];
        size_t n = 1 + (x >> 16) % 3;
        for (size_t i = 0; i < n; i++) {
            c[i] = container(NONE, NONE, NONE, NONE);
            for (int r = 0; r < API_RESOURCE_COUNT; r++) {
                int64_t *slots[] = {&c[i].request[r], &c[i].limit[r], &c[i].want[r]};
                for (size_t s = 0; s < 3; s++) {
                    x = x * 1664525u + 1013904223u;
                    *slots[s] = amounts[(x >> 16) % ARRAY_LEN(amounts)];
                }
                if (c[i].limit[r] != NONE && c[i].request[r] > c[i].limit[r])
                    c[i].request[r] = c[i].limit[r];
            }
            c[i].requests_only = (x >> 24) & 1;
        }
        if (fit(c, n) < 0)
            continue;
        for (size_t i = 0; i < n; i++) {
            for (int r = 0; r < API_RESOURCE_COUNT; r++) {
                assert_true(c[i].new_limit[r] == NONE || c[i].new_limit[r] >= c[i].new_request[r]);
                assert_true((c[i].limit[r] == NONE) == (c[i].new_limit[r] == NONE));
                assert_true(c[i].request[r] == NONE || c[i].new_request[r] > 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_those_of_kubernetes),
        cmocka_unit_test(limits_move_in_proportion),
        cmocka_unit_test(requests_only_leaves_limits_and_stops_at_them),
        cmocka_unit_test(guaranteed_pods_keep_both_equal),
        cmocka_unit_test(guaranteed_pods_cannot_leave_their_limits),
        cmocka_unit_test(boosts_are_bounded),
        cmocka_unit_test(burstable_pods_never_become_guaranteed),
        cmocka_unit_test(best_effort_pods_gain_nothing),
        cmocka_unit_test(burstable_containers_may_gain_a_request),
        cmocka_unit_test(nothing_wanted_changes_nothing),
        cmocka_unit_test(absurd_amounts_are_refused_or_bounded),
        cmocka_unit_test(random_pods_keep_their_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
