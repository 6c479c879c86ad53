/* Replicas under `behavior`, against answers of Kubernetes' own HPA controller (v1.34.4), and what
 * its documentation promises. Everything goes through guard_check. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guard/guard.h"

#define MAX      API_SELECT_MAX
#define MIN      API_SELECT_MIN
#define DISABLED API_SELECT_DISABLED
#define PODS     API_POLICY_PODS
#define PCT      API_POLICY_PERCENT

struct rules {
    int stabilization_s;
    enum api_select select;
    struct {
        enum api_policy_type type;
        int value, period_s;
    } policies[2];
};

struct past {
    int age_s, value; /* age 0: none */
};

struct row {
    int min, max, current, desired;
    struct rules up, down;
    struct past proposals[3], changes[3];
    int expected;
    const char *reason;
};

/* clang-format off */
static const struct row rows[] = {
    {1, 33, 6, 31, {0, MAX, {{PODS, 2, 60}, {PODS, 1, 180}}}, {60, MAX, {{PCT, 50, 60}}},
        {{299, 6}, {390, 37}}, {{49, 4}}, 6, "ScaleUpLimit"},
    {2, 16, 12, 20, {60, MIN, {{PCT, 50, 180}}}, {300, MAX, {{PODS, 2, 180}, {PCT, 25, 15}}},
        {{143, 11}}, {{153, -1}, {67, -2}}, 16, "TooManyReplicas"},
    {2, 18, 11, 12, {300, DISABLED, {{PODS, 5, 180}, {PCT, 50, 60}}}, {60, MIN, {{PCT, 100, 15}}},
        {{209, 13}, {383, 6}}, {{92, -2}, {22, -1}, {185, -3}}, 11, "ScaleUpLimit"},
    {2, 23, 15, 11, {60, MAX, {{PCT, 100, 180}}}, {60, MAX, {{PCT, 10, 15}, {PCT, 10, 60}}},
        {{221, 2}, {86, 1}}, {{91, 4}, {55, -2}, {196, -2}}, 13, "ScaleDownLimit"},
    {3, 37, 25, 11, {0, MIN, {{PODS, 5, 60}, {PCT, 25, 180}}}, {300, MAX, {{PODS, 1, 180}, {PCT, 50, 15}}},
        {{277, 41}, {332, 27}, {314, 10}}, {{10, 2}}, 25, "ScaleDownStabilized"},
    {1, 24, 4, 26, {300, MIN, {{PCT, 50, 180}}}, {0, MIN, {{PODS, 4, 60}}},
        {{258, 20}, {301, 4}}, {{117, 2}, {30, -4}, {68, 3}}, 5, "ScaleUpLimit"},
    {1, 31, 30, 19, {0, MAX, {{PCT, 50, 180}, {PODS, 5, 180}}}, {300, MIN, {{PODS, 4, 60}, {PCT, 50, 15}}},
        {{95, 10}, {396, 24}, {278, 3}}, {{58, 3}, {140, -1}, {124, -1}}, 23, "ScaleDownLimit"},
    {1, 12, 4, 17, {60, MAX, {{PODS, 1, 15}, {PODS, 2, 15}}}, {0, MIN, {{PCT, 100, 60}}},
        {{47, 11}}, {{79, -3}, {82, -3}}, 6, "ScaleUpLimit"},
    {3, 16, 6, 1, {60, MIN, {{PODS, 1, 180}, {PCT, 25, 15}}}, {300, MIN, {{PODS, 6, 15}}},
        {{383, 16}}, {{0, 0}}, 3, "TooFewReplicas"},
    {2, 8, 6, 9, {0, DISABLED, {{PCT, 25, 180}, {PODS, 6, 60}}}, {300, MAX, {{PCT, 10, 180}}},
        {{221, 4}, {123, 10}}, {{0, 0}}, 6, "ScaleUpLimit"},
    {1, 34, 1, 37, {60, MIN, {{PODS, 4, 180}, {PCT, 50, 60}}}, {60, MAX, {{PODS, 1, 180}}},
        {{313, 14}}, {{0, 0}}, 2, "ScaleUpLimit"},
    {2, 18, 14, 4, {300, MIN, {{PODS, 4, 60}}}, {60, MAX, {{PODS, 4, 180}}},
        {{167, 6}, {84, 22}}, {{69, 2}, {62, 1}}, 7, "ScaleDownLimit"},
    {1, 9, 4, 1, {0, MAX, {{PCT, 50, 15}, {PODS, 5, 60}}}, {0, MAX, {{PCT, 100, 15}, {PODS, 3, 60}}},
        {{141, 3}}, {{22, 4}, {78, 1}}, 1, "DesiredWithinRange"},
    {2, 11, 9, 11, {60, MIN, {{PODS, 2, 180}}}, {60, MIN, {{PODS, 4, 60}, {PODS, 5, 15}}},
        {{201, 9}}, {{130, -1}}, 11, "DesiredWithinRange"},
    {3, 28, 15, 26, {60, MAX, {{PCT, 100, 60}, {PCT, 100, 180}}}, {60, MIN, {{PCT, 10, 15}, {PCT, 10, 180}}},
        {{301, 10}, {131, 26}}, {{48, -2}, {120, 2}, {125, 1}}, 26, "DesiredWithinRange"},
    {1, 9, 1, 0, {60, DISABLED, {{PODS, 3, 15}, {PODS, 3, 15}}}, {0, MIN, {{PODS, 2, 15}, {PODS, 3, 60}}},
        {{264, 13}, {345, 6}}, {{40, 1}}, 1, "TooFewReplicas"},
    {2, 37, 32, 38, {300, DISABLED, {{PODS, 4, 60}}}, {0, MAX, {{PCT, 100, 180}, {PCT, 25, 15}}},
        {{112, 31}, {144, 6}}, {{126, -2}}, 32, "ScaleUpStabilized"},
    {2, 18, 15, 6, {60, DISABLED, {{PODS, 2, 180}}}, {0, MAX, {{PODS, 4, 180}}},
        {{146, 4}, {285, 10}, {7, 12}}, {{157, 4}}, 7, "ScaleDownLimit"},
    {1, 13, 2, 2, {60, MIN, {{PODS, 2, 180}, {PODS, 6, 60}}}, {300, MAX, {{PODS, 1, 15}}},
        {{23, 5}, {391, 13}, {308, 1}}, {{45, 3}}, 2, "DesiredWithinRange"},
    {3, 24, 3, 3, {0, DISABLED, {{PODS, 1, 60}}}, {300, MAX, {{PODS, 3, 60}}},
        {{185, 9}, {206, 12}, {81, 20}}, {{106, -4}, {96, 3}}, 3, "DesiredWithinRange"},
    {1, 30, 16, 21, {60, MIN, {{PCT, 25, 15}, {PODS, 2, 15}}}, {0, MAX, {{PODS, 5, 180}}},
        {{171, 21}, {328, 19}, {244, 17}}, {{5, -4}}, 21, "DesiredWithinRange"},
    {1, 19, 2, 22, {300, MAX, {{PODS, 5, 15}}}, {60, MAX, {{PCT, 50, 15}, {PCT, 50, 60}}},
        {{48, 21}}, {{147, 2}, {91, 2}, {124, 4}}, 7, "ScaleUpLimit"},
    {3, 23, 7, 13, {0, MIN, {{PODS, 2, 60}, {PODS, 6, 60}}}, {0, MIN, {{PODS, 1, 60}}},
        {{117, 15}, {289, 26}, {345, 1}}, {{10, 3}}, 7, "ScaleUpLimit"},
    {2, 8, 2, 1, {60, MAX, {{PODS, 4, 60}}}, {300, MAX, {{PODS, 4, 60}}},
        {{21, 12}}, {{85, 2}, {59, -1}, {136, -4}}, 2, "ScaleDownStabilized"},
    {3, 8, 8, 12, {60, MAX, {{PCT, 100, 60}, {PCT, 50, 60}}}, {60, MIN, {{PCT, 25, 180}}},
        {{189, 10}, {171, 2}, {139, 8}}, {{0, 0}}, 8, "TooManyReplicas"},
    {1, 36, 21, 17, {0, DISABLED, {{PCT, 25, 180}, {PODS, 2, 180}}}, {60, DISABLED, {{PCT, 100, 180}, {PODS, 6, 60}}},
        {{390, 8}, {391, 2}, {367, 4}}, {{53, -4}}, 21, "ScaleDownLimit"},
    {3, 8, 8, 7, {60, MIN, {{PODS, 1, 60}}}, {0, MAX, {{PODS, 3, 180}, {PODS, 1, 15}}},
        {{89, 1}, {271, 10}}, {{203, -3}, {189, -2}}, 7, "DesiredWithinRange"},
    {3, 13, 13, 9, {60, MIN, {{PODS, 2, 180}, {PODS, 1, 15}}}, {300, MAX, {{PCT, 100, 180}}},
        {{382, 0}, {106, 11}, {82, 8}}, {{179, 3}, {5, -2}, {57, 3}}, 11, "ScaleDownStabilized"},
    {2, 10, 7, 13, {300, MIN, {{PODS, 1, 180}, {PODS, 5, 60}}}, {300, MIN, {{PODS, 3, 60}}},
        {{306, 10}, {384, 11}}, {{157, -2}}, 10, "TooManyReplicas"},
    {3, 30, 22, 23, {0, MAX, {{PCT, 10, 180}}}, {60, MAX, {{PCT, 25, 180}}},
        {{249, 34}, {404, 25}, {340, 23}}, {{0, 0}}, 23, "DesiredWithinRange"},
    {1, 20, 14, 23, {60, DISABLED, {{PCT, 25, 60}}}, {0, DISABLED, {{PODS, 5, 180}, {PCT, 50, 180}}},
        {{269, 0}, {176, 8}, {343, 17}}, {{30, -4}}, 14, "ScaleUpLimit"},
    {3, 27, 27, 15, {0, MIN, {{PODS, 1, 15}, {PCT, 10, 60}}}, {0, MIN, {{PODS, 3, 15}}},
        {{317, 11}}, {{195, 4}, {186, -3}, {63, 3}}, 24, "ScaleDownLimit"},
    {1, 13, 7, 4, {300, DISABLED, {{PCT, 25, 15}, {PCT, 50, 60}}}, {300, DISABLED, {{PODS, 2, 60}}},
        {{18, 8}, {42, 10}, {16, 3}}, {{112, -2}}, 7, "ScaleDownStabilized"},
    {1, 20, 10, 19, {300, DISABLED, {{PODS, 5, 180}}}, {60, DISABLED, {{PODS, 4, 15}, {PODS, 3, 180}}},
        {{354, 15}, {163, 6}, {160, 19}}, {{203, -4}}, 10, "ScaleUpStabilized"},
    {2, 9, 3, 8, {300, MIN, {{PCT, 25, 60}, {PCT, 50, 60}}}, {0, DISABLED, {{PODS, 6, 180}}},
        {{99, 11}, {341, 2}}, {{48, -4}, {90, -2}}, 8, "DesiredWithinRange"},
    {1, 34, 26, 10, {300, DISABLED, {{PODS, 3, 15}, {PCT, 100, 180}}}, {0, MIN, {{PCT, 25, 180}}},
        {{355, 28}, {382, 13}, {345, 19}}, {{123, -1}, {156, 4}}, 17, "ScaleDownLimit"},
    {1, 18, 13, 21, {0, MIN, {{PODS, 1, 60}}}, {300, DISABLED, {{PODS, 5, 60}, {PCT, 25, 15}}},
        {{140, 1}}, {{37, -3}, {16, -2}}, 18, "TooManyReplicas"},
    {2, 21, 7, 13, {300, MIN, {{PCT, 100, 60}}}, {60, MAX, {{PCT, 10, 15}, {PCT, 100, 15}}},
        {{354, 7}, {357, 17}, {251, 1}}, {{98, -3}, {147, 2}}, 7, "ScaleUpStabilized"},
    {3, 21, 3, 24, {300, MAX, {{PCT, 100, 180}}}, {0, MAX, {{PCT, 50, 15}, {PCT, 50, 15}}},
        {{199, 7}, {92, 23}, {138, 5}}, {{141, -2}}, 5, "ScaleUpStabilized"},
    {1, 27, 13, 1, {300, MAX, {{PCT, 25, 180}}}, {300, MIN, {{PODS, 6, 15}, {PCT, 100, 15}}},
        {{54, 1}, {305, 9}, {123, 31}}, {{109, -3}}, 13, "ScaleDownStabilized"},
    {3, 36, 10, 2, {0, DISABLED, {{PODS, 2, 60}}}, {300, MIN, {{PCT, 100, 60}}},
        {{351, 15}}, {{160, 1}}, 3, "TooFewReplicas"},
    {2, 31, 21, 15, {300, DISABLED, {{PODS, 5, 15}}}, {300, MIN, {{PODS, 6, 180}, {PODS, 2, 180}}},
        {{270, 16}, {263, 26}, {34, 23}}, {{58, 3}}, 21, "ScaleDownStabilized"},
    {2, 19, 4, 8, {300, MAX, {{PODS, 2, 15}}}, {0, MAX, {{PODS, 6, 15}}},
        {{142, 1}, {223, 19}}, {{0, 0}}, 4, "ScaleUpStabilized"},
    {1, 17, 12, 5, {60, MIN, {{PCT, 50, 180}}}, {0, DISABLED, {{PCT, 10, 180}}},
        {{115, 10}, {351, 14}}, {{0, 0}}, 12, "ScaleDownLimit"},
    {2, 26, 9, 4, {60, MIN, {{PCT, 100, 60}, {PODS, 1, 15}}}, {300, MIN, {{PCT, 50, 180}}},
        {{292, 27}}, {{0, 0}}, 9, "ScaleDownStabilized"},
    {3, 31, 3, 21, {300, DISABLED, {{PODS, 2, 15}, {PODS, 5, 15}}}, {300, MIN, {{PCT, 50, 15}, {PODS, 1, 180}}},
        {{281, 3}, {302, 9}, {368, 22}}, {{80, 4}, {186, -4}}, 3, "ScaleUpStabilized"},
    {1, 28, 27, 28, {300, MAX, {{PCT, 10, 60}}}, {0, DISABLED, {{PODS, 1, 15}, {PCT, 100, 60}}},
        {{139, 27}, {324, 2}, {371, 30}}, {{187, 3}, {149, -4}}, 27, "ScaleUpStabilized"},
    {1, 18, 12, 22, {60, MAX, {{PCT, 25, 180}}}, {300, DISABLED, {{PODS, 2, 15}, {PODS, 2, 15}}},
        {{271, 18}, {17, 14}}, {{0, 0}}, 14, "ScaleUpStabilized"},
    {3, 24, 24, 17, {60, MAX, {{PCT, 25, 15}, {PCT, 10, 180}}}, {0, DISABLED, {{PCT, 50, 15}, {PODS, 2, 15}}},
        {{83, 19}}, {{98, -4}}, 24, "ScaleDownLimit"},
    {1, 22, 2, 11, {300, MIN, {{PODS, 4, 180}, {PCT, 50, 180}}}, {300, MAX, {{PCT, 25, 15}}},
        {{88, 4}, {62, 3}, {100, 21}}, {{0, 0}}, 3, "ScaleUpStabilized"},
    {1, 11, 6, 16, {0, MAX, {{PODS, 6, 60}, {PCT, 10, 15}}}, {60, MIN, {{PODS, 3, 180}, {PCT, 25, 15}}},
        {{33, 16}, {242, 8}, {85, 15}}, {{65, -1}, {105, 3}}, 11, "TooManyReplicas"},
    {2, 29, 29, 30, {0, MIN, {{PODS, 1, 180}}}, {0, MIN, {{PCT, 25, 180}, {PODS, 1, 180}}},
        {{270, 0}, {296, 13}}, {{0, 0}}, 29, "TooManyReplicas"},
    {3, 24, 24, 26, {0, MAX, {{PCT, 10, 15}}}, {0, DISABLED, {{PCT, 100, 180}, {PODS, 1, 180}}},
        {{192, 4}, {13, 27}, {367, 26}}, {{154, 2}}, 24, "TooManyReplicas"},
    {3, 24, 17, 10, {60, MAX, {{PCT, 50, 15}, {PCT, 10, 60}}}, {300, DISABLED, {{PCT, 10, 180}, {PODS, 5, 15}}},
        {{231, 20}, {218, 18}}, {{111, -1}}, 17, "ScaleDownStabilized"},
    {2, 13, 12, 14, {0, MAX, {{PODS, 2, 60}, {PODS, 3, 60}}}, {300, MAX, {{PODS, 6, 15}}},
        {{55, 3}, {150, 6}}, {{103, -4}}, 13, "TooManyReplicas"},
    {3, 9, 9, 14, {60, DISABLED, {{PCT, 100, 15}, {PCT, 100, 180}}}, {300, MAX, {{PCT, 100, 180}}},
        {{365, 1}, {133, 13}}, {{52, 3}}, 9, "TooManyReplicas"},
    {3, 31, 22, 6, {300, DISABLED, {{PODS, 2, 180}}}, {60, MAX, {{PCT, 100, 180}, {PCT, 100, 60}}},
        {{256, 30}, {18, 12}, {289, 18}}, {{45, 2}}, 12, "ScaleDownStabilized"},
    {1, 13, 10, 0, {300, MIN, {{PODS, 3, 15}, {PODS, 3, 180}}}, {0, MAX, {{PCT, 50, 15}, {PCT, 100, 15}}},
        {{227, 0}}, {{0, 0}}, 1, "TooFewReplicas"},
    {3, 25, 6, 1, {0, MAX, {{PCT, 50, 60}}}, {60, MAX, {{PCT, 100, 15}, {PCT, 10, 15}}},
        {{238, 26}, {316, 10}, {338, 27}}, {{129, -2}}, 3, "TooFewReplicas"},
    {2, 18, 2, 0, {0, MIN, {{PODS, 2, 15}}}, {60, MIN, {{PCT, 10, 15}}},
        {{119, 6}, {279, 0}, {112, 18}}, {{0, 0}}, 2, "TooFewReplicas"},
    {2, 21, 2, 1, {0, MAX, {{PODS, 6, 15}, {PODS, 4, 60}}}, {0, MIN, {{PCT, 50, 15}, {PCT, 25, 15}}},
        {{156, 1}, {240, 1}, {146, 11}}, {{81, 3}}, 2, "TooFewReplicas"},
    {2, 10, 2, 1, {0, DISABLED, {{PODS, 2, 15}, {PODS, 2, 60}}}, {60, MAX, {{PODS, 1, 180}}},
        {{249, 5}}, {{0, 0}}, 2, "TooFewReplicas"},
    {3, 15, 3, 1, {60, MAX, {{PCT, 10, 60}}}, {60, DISABLED, {{PODS, 4, 60}}},
        {{293, 12}, {345, 7}}, {{82, -3}, {37, -4}, {110, -3}}, 3, "TooFewReplicas"},
};
/* clang-format on */

#define NOW_S 10000.0

static struct api_rules rules_of(const struct rules *r)
{
    struct api_rules rules = {
        .stabilization_s = r->stabilization_s, .select = r->select, .tolerance = 0.1};
    for (size_t i = 0; i < 2 && r->policies[i].period_s > 0; i++) {
        rules.policies[i].type = r->policies[i].type;
        rules.policies[i].value = r->policies[i].value;
        rules.policies[i].period_s = r->policies[i].period_s;
        rules.policy_count++;
    }
    return rules;
}

static struct guard_decision ask(struct guard *guard, const struct api_spec *spec, double now_s,
                                 int current, int proposed)
{
    struct recommendation recommendation = {.replicas = proposed};
    struct guard_input in = {
        .now_s = now_s, .spec = spec, .replicas_wanted = current, .proposed = &recommendation};
    struct guard_decision out;
    guard_check(guard, &guard_default_limits, &in, &out);
    return out;
}

/* Brings past proposals and changes in, oldest first. */
static void live_through(struct guard *guard, const struct api_spec *spec, const struct row *row)
{
    struct api_spec wide = *spec;
    wide.min_replicas = 0;
    wide.max_replicas = 1000;
    for (int age = 1000; age > 0; age--) {
        for (size_t i = 0; i < ARRAY_LEN(row->proposals); i++)
            if (row->proposals[i].age_s == age)
                ask(guard, &wide, NOW_S - age, row->proposals[i].value, row->proposals[i].value);
        for (size_t i = 0; i < ARRAY_LEN(row->changes); i++)
            if (row->changes[i].age_s == age)
                guard_scaled(guard, NOW_S - age, 100, 100 + row->changes[i].value);
    }
}

static void answers_are_those_of_kubernetes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        struct api_spec spec = {.min_replicas = row->min,
                                .max_replicas = row->max,
                                .scale_up = rules_of(&row->up),
                                .scale_down = rules_of(&row->down)};
        struct guard *guard = guard_new();
        live_through(guard, &spec, row);
        struct guard_decision out = ask(guard, &spec, NOW_S, row->current, row->desired);
        if (out.replicas != row->expected || strcmp(out.limit_reason, row->reason) != 0)
            fail_msg("row %zu: %d (%s) instead of %d (%s)", i, out.replicas, out.limit_reason,
                     row->expected, row->reason);
        assert_int_equal(out.limited, strcmp(row->reason, "DesiredWithinRange") != 0);
        guard_free(guard);
    }
}

/* HPA's defaults: up at once by 100 % or 4 pods in 15 s, down after 300 s without a limit. */
static struct api_spec default_spec(void)
{
    return (struct api_spec){
        .min_replicas = 1,
        .max_replicas = 100,
        .scale_up = rules_of(&(struct rules){0, MAX, {{PODS, 4, 15}, {PCT, 100, 15}}}),
        .scale_down = rules_of(&(struct rules){300, MAX, {{PCT, 100, 15}}}),
    };
}

static void the_defaults_grow_at_once_and_shrink_after_five_minutes(void **state)
{
    (void)state;
    struct api_spec spec = default_spec();
    struct guard *guard = guard_new();
    assert_int_equal(ask(guard, &spec, 0, 1, 50).replicas, 5); /* 4 pods are more than 100 % */
    guard_scaled(guard, 0, 1, 5);
    assert_int_equal(ask(guard, &spec, 5, 5, 50).replicas, 5); /* the period is used up */
    assert_int_equal(ask(guard, &spec, 16, 5, 50).replicas, 10);
    guard_scaled(guard, 16, 5, 10);

    struct guard_decision out = ask(guard, &spec, 20, 10, 2);
    assert_int_equal(out.replicas, 10);
    assert_true(out.limited);
    assert_string_equal(out.limit_reason, "ScaleDownStabilized");
    assert_string_equal(
        out.limit_message,
        "2 replicas proposed, 10 kept: the highest proposal of the last 300 s counts");
    assert_int_equal(ask(guard, &spec, 315, 10, 2).replicas, 10); /* 50 at 16 s still counts */
    assert_int_equal(ask(guard, &spec, 317, 10, 3).replicas, 3);
    guard_free(guard);
}

static void a_new_guard_remembers_the_present_count(void **state)
{
    (void)state;
    struct api_spec spec = default_spec();
    struct guard *guard = guard_new();
    assert_int_equal(ask(guard, &spec, 0, 8, 1).replicas, 8);
    assert_int_equal(ask(guard, &spec, 299, 8, 1).replicas, 8);
    assert_int_equal(ask(guard, &spec, 301, 8, 1).replicas, 1);
    guard_free(guard);
}

static void counts_outside_the_bounds_are_corrected_at_once(void **state)
{
    (void)state;
    struct api_spec spec = default_spec();
    spec.min_replicas = 3;
    spec.max_replicas = 10;
    struct guard *guard = guard_new();
    assert_int_equal(ask(guard, &spec, 0, 20, 25).replicas, 10);
    assert_int_equal(ask(guard, &spec, 1, 20, 1).replicas, 10);
    assert_int_equal(ask(guard, &spec, 2, 1, 1).replicas, 3);
    assert_int_equal(ask(guard, &spec, 3, 2, -5).replicas, 3);
    guard_free(guard);
}

static void zero_by_hand_switches_scaling_off(void **state)
{
    (void)state;
    struct api_spec spec = default_spec();
    struct guard *guard = guard_new();
    struct guard_decision out = ask(guard, &spec, 0, 0, 5);
    assert_int_equal(out.replicas, 0);
    assert_string_equal(out.limit_reason, "ScalingDisabled");
    guard_free(guard);
}

static void negative_counts_are_no_proposal(void **state)
{
    (void)state;
    struct api_spec spec = default_spec();
    struct guard *guard = guard_new();
    struct guard_decision out = ask(guard, &spec, 0, 5, -1);
    assert_int_equal(out.replicas, 5);
    assert_true(out.limited);
    assert_string_equal(out.limit_reason, "InvalidProposal");
    assert_int_equal(ask(guard, &spec, 1, 5, INT32_MIN).replicas, 5);
    assert_int_equal(ask(guard, &spec, 2, 5, INT32_MAX).replicas, 10);
    guard_free(guard);
}

static void no_policy_means_no_change(void **state)
{
    (void)state;
    struct api_spec spec = default_spec();
    spec.scale_up.policy_count = spec.scale_down.policy_count = 0;
    spec.scale_down.stabilization_s = 0;
    struct guard *guard = guard_new();
    assert_int_equal(ask(guard, &spec, 0, 5, 9).replicas, 5);
    assert_int_equal(ask(guard, &spec, 1, 5, 2).replicas, 5);
    guard_free(guard);
}

/* Thousands of different proposals within one window: memory stays bounded, the result holds. */
static void long_windows_keep_their_highest(void **state)
{
    (void)state;
    struct api_spec spec = default_spec();
    spec.max_replicas = 100000;
    spec.scale_down.stabilization_s = 3600;
    struct guard *guard = guard_new();
    int current = 6000;
    for (int t = 0; t < 3599; t++)
        assert_int_equal(ask(guard, &spec, t, current, current - 1 - t).replicas, current);
    /* At 3700 s the proposals of the first 100 s are over; merging may hold a little longer. */
    int replicas = ask(guard, &spec, 3700, current, 1).replicas;
    assert_in_range(replicas, 5899, 6000);
    assert_int_equal(ask(guard, &spec, 8000, current, 1).replicas, 1);
    guard_free(guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_kubernetes),
        cmocka_unit_test(the_defaults_grow_at_once_and_shrink_after_five_minutes),
        cmocka_unit_test(a_new_guard_remembers_the_present_count),
        cmocka_unit_test(counts_outside_the_bounds_are_corrected_at_once),
        cmocka_unit_test(zero_by_hand_switches_scaling_off),
        cmocka_unit_test(negative_counts_are_no_proposal),
        cmocka_unit_test(no_policy_means_no_change),
        cmocka_unit_test(long_windows_keep_their_highest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
