/* What is written to .status, and when it is worth a write. */
#include "api/api.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define T0_MS   INT64_C(1769860800000) /* 2026-01-31T12:00:00Z */
#define T0_TEXT "2026-01-31T12:00:00Z"
#define T1_MS   (T0_MS + 60000)
#define T1_TEXT "2026-01-31T12:01:00Z"

static struct api_status nothing_known(void)
{
    return (struct api_status){
        .current_replicas = -1, .desired_replicas = -1, .latency_us = NAN, .percentile = 99};
}

static struct api_status sample(const json_t *observation)
{
    struct api_status s = nothing_known();
    s.observed_generation = 3;
    s.current_replicas = 2;
    s.desired_replicas = 4;
    s.last_scale_ms = T0_MS;
    s.latency_us = 212000;
    s.latency_target_us = 300000;
    s.container_count = 1;
    s.containers[0] = (struct api_container_status){.name = "function",
                                                    .target = {1500, INT64_C(64) << 20},
                                                    .lower = {250, API_ABSENT},
                                                    .upper = {2000, API_ABSENT},
                                                    .uncapped = {API_ABSENT, API_ABSENT}};
    s.decision.time_ms = T0_MS;
    s.decision.recommender = "threshold";
    s.decision.action = "Up";
    s.decision.reason = "p99 412ms over goal 300ms: cpu 250m → 500m";
    s.decision.observation = observation;
    s.conditions[API_COND_READY] =
        (struct api_condition_value){true, true, "Following", "all is well"};
    s.conditions[API_COND_SCALING_LIMITED] =
        (struct api_condition_value){true, false, "DesiredWithinRange", ""};
    return s;
}

/* The text at a path of members and list indexes. */
static const char *text_at(const json_t *json, const char *path)
{
    char word[64];
    while (*path) {
        size_t len = strcspn(path, ".");
        snprintf(word, sizeof(word), "%.*s", (int)len, path);
        json = json_is_array(json) ? json_array_get(json, strtoul(word, NULL, 10))
                                   : json_object_get(json, word);
        path += len + (path[len] == '.');
    }
    return json_is_string(json) ? json_string_value(json) : NULL;
}

static void writes_everything(void **state)
{
    (void)state;
    cleanup_json json_t *observation = json_pack("{s:f, s:[i, i]}", "latencyMs", 212.5, "a", 1, 2);
    struct api_status status = sample(observation);
    cleanup_json json_t *json = api_status_json(&status, NULL, T0_MS);
    static const char container[] = "recommendation.containerRecommendations.0.";
    char path[128];

    assert_int_equal(json_integer_value(json_object_get(json, "observedGeneration")), 3);
    assert_int_equal(json_integer_value(json_object_get(json, "currentReplicas")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "desiredReplicas")), 4);
    assert_string_equal(text_at(json, "lastScaleTime"), T0_TEXT);
    assert_string_equal(text_at(json, "currentLatency"), "212ms");
    assert_string_equal(text_at(json, "latencyGoal"), "300ms");
    static const char *const amounts[][2] = {
        {"containerName", "function"}, {"target.cpu", "1500m"},     {"target.memory", "64Mi"},
        {"lowerBound.cpu", "250m"},    {"lowerBound.memory", NULL}, {"upperBound.cpu", "2"},
        {"uncappedTarget", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
        snprintf(path, sizeof(path), "%s%s", container, amounts[i][0]);
        if (amounts[i][1])
            assert_string_equal(text_at(json, path), amounts[i][1]);
        else
            assert_null(text_at(json, path));
    }
    assert_string_equal(text_at(json, "lastDecision.time"), T0_TEXT);
    assert_string_equal(text_at(json, "lastDecision.recommender"), "threshold");
    assert_string_equal(text_at(json, "lastDecision.action"), "Up");
    assert_string_equal(text_at(json, "lastDecision.reason"), status.decision.reason);
    assert_true(json_equal(json_path(json, "lastDecision", "observation", NULL), observation));
}

static void leaves_out_what_is_unknown(void **state)
{
    (void)state;
    struct api_status status = nothing_known();
    cleanup_json json_t *json = api_status_json(&status, NULL, T0_MS);

    assert_int_equal(json_object_size(json), 2);
    assert_non_null(json_object_get(json, "observedGeneration"));
    assert_int_equal(json_array_size(json_object_get(json, "conditions")), 0);
}

static void says_an_unusual_percentile(void **state)
{
    (void)state;
    struct api_status status = sample(NULL);
    status.percentile = 95;
    cleanup_json json_t *json = api_status_json(&status, NULL, T0_MS);
    assert_string_equal(text_at(json, "currentLatency"), "p95 212ms");
    assert_string_equal(text_at(json, "latencyGoal"), "300ms");
    assert_null(json_path(json, "lastDecision", "observation", NULL));
}

static void keeps_transition_times(void **state)
{
    (void)state;
    struct api_status status = sample(NULL);
    cleanup_json json_t *first = api_status_json(&status, NULL, T0_MS);
    assert_string_equal(text_at(first, "conditions.0.type"), "Ready");
    assert_string_equal(text_at(first, "conditions.0.status"), "True");
    assert_string_equal(text_at(first, "conditions.0.reason"), "Following");
    assert_string_equal(text_at(first, "conditions.0.message"), "all is well");
    assert_string_equal(text_at(first, "conditions.0.lastTransitionTime"), T0_TEXT);
    assert_string_equal(text_at(first, "conditions.1.type"), "ScalingLimited");
    assert_string_equal(text_at(first, "conditions.1.status"), "False");
    assert_int_equal(json_array_size(json_object_get(first, "conditions")), 2);

    snprintf(status.conditions[API_COND_READY].message, 16, "still well");
    status.conditions[API_COND_SCALING_LIMITED].status = true;
    status.conditions[API_COND_PAUSED].known = true;
    cleanup_json json_t *second = api_status_json(&status, first, T1_MS);
    assert_string_equal(text_at(second, "conditions.0.lastTransitionTime"), T0_TEXT);
    assert_string_equal(text_at(second, "conditions.0.message"), "still well");
    assert_string_equal(text_at(second, "conditions.1.lastTransitionTime"), T1_TEXT);
    assert_string_equal(text_at(second, "conditions.2.type"), "Paused");
    assert_string_equal(text_at(second, "conditions.2.lastTransitionTime"), T1_TEXT);
    /* The API server refuses a condition without a reason. */
    assert_string_equal(text_at(second, "conditions.2.reason"), "Paused");
}

static void bears_a_strange_previous_status(void **state)
{
    (void)state;
    static const char half_right[] = "{\"conditions\": [1, {\"type\": 2}, {\"type\": \"Ready\", "
                                     "\"status\": \"True\", \"lastTransitionTime\": 5}]}";
    static const char *const texts[] = {"[]", "\"x\"", "{\"conditions\": {\"type\": \"Ready\"}}",
                                        half_right};
    struct api_status status = sample(NULL);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_json json_t *previous = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        cleanup_json json_t *json = api_status_json(&status, previous, T1_MS);
        assert_non_null(previous);
        assert_string_equal(text_at(json, "conditions.0.lastTransitionTime"), T1_TEXT);
        assert_true(api_status_differs(previous, json));
    }
}

/* A message that was cut in the middle of a character ends before it. */
static void bears_broken_texts(void **state)
{
    (void)state;
    struct api_status status = sample(NULL);
    char reason[2000];
    memset(reason, 'a', sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    status.decision.reason = reason;
    status.decision.action = NULL;
    snprintf(status.conditions[API_COND_READY].message, 16, "cpu 1 \xe2\x86");
    cleanup_json json_t *json = api_status_json(&status, NULL, T0_MS);
    assert_string_equal(text_at(json, "conditions.0.message"), "cpu 1 ");
    assert_string_equal(text_at(json, "lastDecision.action"), "");
    size_t len = strlen(text_at(json, "lastDecision.reason"));
    assert_true(len >= 255 && len <= 1024); /* the CRD allows 1024 */
}

static void bounds_containers(void **state)
{
    (void)state;
    struct api_status status = sample(NULL);
    for (size_t i = 0; i < API_MAX_CONTAINERS; i++)
        status.containers[i] = status.containers[0];
    status.container_count = API_MAX_CONTAINERS + 5;
    cleanup_json json_t *json = api_status_json(&status, NULL, T0_MS);
    assert_int_equal(
        json_array_size(json_path(json, "recommendation", "containerRecommendations", NULL)),
        API_MAX_CONTAINERS);
}

/* --- differs -------------------------------------------------------------------------------- */
static bool change_counts(void (*change)(struct api_status *status))
{
    cleanup_json json_t *observation = json_pack("{s:i}", "latencyMs", 212);
    struct api_status status = sample(observation);
    cleanup_json json_t *before = api_status_json(&status, NULL, T0_MS);
    change(&status);
    cleanup_json json_t *after = api_status_json(&status, before, T1_MS);
    bool counts = api_status_differs(before, after);
    assert_int_equal(counts, api_status_differs(after, before));
    return counts;
}

/* In mode Off. */
static void tells_what_would_have_been(void **state)
{
    (void)state;
    struct api_status status = sample(NULL);
    cleanup_json json_t *without = api_status_json(&status, NULL, T0_MS);
    assert_null(json_object_get(without, "whatIf"));
    status.what_if.since_ms = T0_MS;
    status.what_if.core_hours = 12.44;
    status.what_if.core_hours_auto = 7.9;
    status.what_if.requests = status.what_if.late = status.what_if.late_auto = NAN;
    cleanup_json json_t *cpu = api_status_json(&status, NULL, T0_MS);
    assert_string_equal(text_at(cpu, "whatIf.since"), T0_TEXT);
    assert_string_equal(text_at(cpu, "whatIf.coreHours"), "12.440");
    assert_string_equal(text_at(cpu, "whatIf.coreHoursAuto"), "7.900");
    assert_string_equal(text_at(cpu, "whatIf.message"),
                        "Auto would have reserved 4.5 core-hours less than 12.4");
    assert_null(text_at(cpu, "whatIf.lateRequests"));
    status.what_if.core_hours_auto = 13.5;
    status.what_if.requests = 5000;
    status.what_if.late = 96;
    status.what_if.late_auto = 12.2;
    cleanup_json json_t *both = api_status_json(&status, NULL, T0_MS);
    assert_string_equal(text_at(both, "whatIf.lateRequestsAuto"), "12.200");
    assert_string_equal(text_at(both, "whatIf.message"),
                        "Auto would have reserved 1.1 core-hours more than 12.4, with 12 late "
                        "requests instead of 96 (expected by a model)");
    assert_false(api_status_differs(cpu, both)); /* its figures alone are not worth a write */
}

static void no_change(struct api_status *s)
{
    (void)s;
}
static void newer_observation(struct api_status *s)
{
    s->decision.time_ms = T1_MS;
    s->decision.observation = NULL;
}
static void other_figures_in_reason(struct api_status *s)
{
    s->decision.reason = "p99 98.5ms over goal 300ms: cpu 250m → 500m";
}
static void slightly_other_latency(struct api_status *s)
{
    s->latency_us = 220000;
}
static void slightly_other_bound(struct api_status *s)
{
    s->containers[0].lower[API_CPU] = 240;
    s->containers[0].upper[API_CPU] = 2050; /* "2" becomes "2050m" */
}
static void other_latency(struct api_status *s)
{
    s->latency_us = 320000;
}
static void no_latency(struct api_status *s)
{
    s->latency_us = NAN;
}
static void other_words_in_reason(struct api_status *s)
{
    s->decision.reason = "p99 412ms within goal 300ms";
}
static void other_bound(struct api_status *s)
{
    s->containers[0].lower[API_CPU] = 100;
}
static void other_target(struct api_status *s)
{
    s->containers[0].target[API_CPU] = 1501;
}
static void other_replicas(struct api_status *s)
{
    s->desired_replicas = 5;
}
static void other_generation(struct api_status *s)
{
    s->observed_generation = 4;
}
static void other_scale_time(struct api_status *s)
{
    s->last_scale_ms = T1_MS;
}
static void other_condition(struct api_status *s)
{
    s->conditions[API_COND_READY].status = false;
}
static void one_condition_more(struct api_status *s)
{
    s->conditions[API_COND_PAUSED].known = true;
}
static void other_recommender(struct api_status *s)
{
    s->decision.recommender = "ppo";
}

static void weighs_changes(void **state)
{
    (void)state;
    static void (*const small[])(struct api_status *) = {
        no_change, newer_observation, other_figures_in_reason, slightly_other_latency,
        slightly_other_bound};
    static void (*const large[])(struct api_status *) = {
        other_latency,   no_latency,         other_words_in_reason, other_bound,
        other_target,    other_replicas,     other_generation,      other_scale_time,
        other_condition, one_condition_more, other_recommender};
    for (size_t i = 0; i < ARRAY_LEN(small); i++) {
        if (change_counts(small[i]))
            fail_msg("small change %zu counts", i);
    }
    for (size_t i = 0; i < ARRAY_LEN(large); i++) {
        if (!change_counts(large[i]))
            fail_msg("large change %zu does not count", i);
    }
    cleanup_json json_t *json = json_object();
    assert_true(api_status_differs(NULL, json));
    assert_false(api_status_differs(NULL, NULL));
}

static void names_conditions(void **state)
{
    (void)state;
    for (int i = 0; i < API_COND_COUNT; i++)
        assert_true(strlen(api_condition_name((enum api_condition)i)) > 0);
    assert_string_equal(api_condition_name(API_COND_FALLBACK_ACTIVE), "FallbackActive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_everything),
        cmocka_unit_test(leaves_out_what_is_unknown),
        cmocka_unit_test(says_an_unusual_percentile),
        cmocka_unit_test(keeps_transition_times),
        cmocka_unit_test(bears_a_strange_previous_status),
        cmocka_unit_test(bears_broken_texts),
        cmocka_unit_test(bounds_containers),
        cmocka_unit_test(tells_what_would_have_been),
        cmocka_unit_test(weighs_changes),
        cmocka_unit_test(names_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
