/* CPU between functions of a group: what may be taken, lent, and comes back. */
#include "recommend_scene.h"

#include "harvest/group.h"

static struct harvest_range seen(struct harvest_member *m, double given, double peak, double idle)
{
    harvest_member_see(m, given, peak);
    return harvest_member_range(m, idle);
}

#define assert_range(range, s, l, h)                                                               \
    do {                                                                                           \
        struct harvest_range r = range; /* once: it may be a look, which is remembered */          \
        assert_int_equal(r.state, s);                                                              \
        if (fabs(r.low - (l)) > 1e-9 || fabs(r.high - (h)) > 1e-9)                                 \
            fail_msg("%g to %g instead of %g to %g", r.low, r.high, (double)(l), (double)(h));     \
    } while (0)

static void it_begins_with_what_was_asked_for(void **state)
{
    (void)state;
    struct harvest_member m = {.user = 400, .most = 1000, .replicas = 1};
    assert_range(harvest_member_range(&m, 1000), SAFEGUARD_FIRST, 400, 400);
    harvest_member_see(&m, NAN, 5); /* says nothing */
    harvest_member_see(&m, 400, NAN);
    assert_range(harvest_member_range(&m, 1000), SAFEGUARD_FIRST, 400, 400);
    assert_true(harvest_member_leaves(&m) == 0); /* nothing is decided yet */
}

static void what_is_idle_may_be_taken(void **state)
{
    (void)state;
    struct harvest_member m = {.user = 400, .most = 1000, .replicas = 3};
    assert_range(seen(&m, 400, 90, 0), SAFEGUARD_OVER, 110, 400);
    m.given = 110;
    assert_true(harvest_member_leaves(&m) == 3 * 290);
    assert_range(seen(&m, 110, 60, 0), SAFEGUARD_OVER, 110, 400); /* by the highest peak */
    assert_range(seen(&m, 110, 98, 0), SAFEGUARD_OVER, 98 / 0.9 + 10, 400);
}

static void all_is_back_after_a_spike(void **state)
{
    (void)state;
    struct harvest_member m = {.user = 400, .most = 1000, .replicas = 1};
    seen(&m, 400, 90, 0);
    assert_range(seen(&m, 110, 99, 500), SAFEGUARD_SPIKE, 400, 400);
    assert_range(seen(&m, 400, 45, 0), SAFEGUARD_OVER, 60, 400); /* peaks before it are forgotten */
}

static void who_needs_more_gets_what_others_leave(void **state)
{
    (void)state;
    struct harvest_member m = {.user = 100, .most = 450, .replicas = 2};
    assert_range(seen(&m, 100, 95, 0), SAFEGUARD_UNDER, 100, 100);
    assert_range(harvest_member_range(&m, 290), SAFEGUARD_UNDER, 100, 245);
    assert_range(harvest_member_range(&m, 5000), SAFEGUARD_UNDER, 100, 450);
    assert_range(harvest_member_range(&m, -50), SAFEGUARD_UNDER, 100, 100);
    m.given = 245;
    assert_true(harvest_member_leaves(&m) == -290);
}

/* A calm interval among others takes nothing away; that it has had enough for long does. */
static void who_needed_more_keeps_it_for_a_while(void **state)
{
    (void)state;
    struct harvest_member m = {.user = 100, .most = 450, .replicas = 1};
    seen(&m, 100, 95, 200);
    for (int i = 1; i < HARVEST_HOLD; i++)
        assert_range(seen(&m, 300, 60, 200), SAFEGUARD_UNDER, 100, 300);
    assert_range(seen(&m, 300, 60, 200), SAFEGUARD_OVER, 100, 100); /* 95 was seen */
    seen(&m, 100, 91, 200);
    assert_range(seen(&m, 100, 20, 200), SAFEGUARD_UNDER, 100, 300);
}

/* Whatever is proposed, and whoever is asked first, a group has no more than was asked for. */
static void a_group_has_no_more_than_was_asked_for(void **state)
{
    (void)state;
    struct random random = random_stream(3, 0);
    struct harvest_member m[3] = {{.user = 400, .most = 2000, .replicas = 1},
                                  {.user = 100, .most = 2000, .replicas = 2},
                                  {.user = 250, .most = 2000, .replicas = 1}};
    int over = 0;
    for (int interval = 0; interval < 2000; interval++) {
        double sum = 0;
        bool returned = false;
        for (int i = 0; i < 3; i++) {
            double had = m[i].given > 0 ? m[i].given : m[i].user, idle = 0;
            for (int k = 0; k < 3; k++)
                idle += k == i ? 0 : harvest_member_leaves(&m[k]);
            struct harvest_range range = seen(&m[i], had, had * random_uniform(&random), idle);
            double wanted = 3000 * random_uniform(&random);
            m[i].given = fmin(fmax(wanted, range.low), range.high);
            returned |= m[i].given > had && range.state != SAFEGUARD_UNDER;
            sum += m[i].given * m[i].replicas;
        }
        over = sum > 850 + 1e-6 ? over + 1 : 0;
        assert_true(over <= 1 || returned); /* for one interval after a return */
    }
}

static void recommendations_are_held(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommendation r = {.replicas = 1, .container_count = 2, .reason = "because"};
    s->seen.container_count = 2;
    s->seen.containers[1] = (struct recommend_container){.name = "proxy", .request = {50, NAN}};
    r.containers[0].target[CPU] = 800;
    r.containers[1].target[CPU] = NAN;
    struct harvest_range range = {SAFEGUARD_UNDER, 100, 300};
    assert_true(harvest_hold(&range, &s->seen, &r) == 300);
    assert_true(r.containers[0].target[CPU] == 300);
    assert_string_equal(r.reason, "because; harvest: cpu 300m, what others leave is lent to it");
    assert_true(harvest_hold(&range, &s->seen, &r) == 300); /* nothing more to say */
    assert_string_equal(r.reason, "because; harvest: cpu 300m, what others leave is lent to it");
    s->seen.containers[0].controlled[CPU] = false;
    assert_true(isnan(harvest_hold(&range, &s->seen, &r)));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_with_what_was_asked_for),
        cmocka_unit_test(what_is_idle_may_be_taken),
        cmocka_unit_test(all_is_back_after_a_spike),
        cmocka_unit_test(who_needs_more_gets_what_others_leave),
        cmocka_unit_test(who_needed_more_keeps_it_for_a_while),
        cmocka_unit_test(a_group_has_no_more_than_was_asked_for),
        cmocka_unit_test(recommendations_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
