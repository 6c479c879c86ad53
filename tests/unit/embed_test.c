/* The controller on the simulated cluster: what it does there is what it does on a real one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "embed/embed.h"

#define INTERVAL_S 15
#define START_MS   1767225600000 /* 2026-01-01T00:00:00Z */

struct scene {
    double counts[2];
    struct trace_quantile quantiles[2];
    struct trace_function workload;
    json_t *manifest;
    struct embed_function function;
    struct embed_options options;
    struct embed *embed;
    int rescales, resizes, deferred, events, statuses;
    char last_event[256];
};

static void on_status(void *arg, size_t function, const json_t *mpa)
{
    struct scene *s = arg;
    assert_int_equal(function, 0);
    assert_string_equal(json_str(json_path(mpa, "metadata", "name", NULL)), "f");
    s->statuses++;
}

static void on_event(void *arg, size_t function, const struct kube_event *event)
{
    struct scene *s = arg;
    assert_int_equal(function, 0);
    assert_string_equal(event->kind, API_KIND);
    assert_string_equal(event->name, "f");
    s->events++;
    s->rescales += strcmp(event->reason, "SuccessfulRescale") == 0;
    s->resizes += strcmp(event->reason, "ResizedInPlace") == 0;
    s->deferred += strcmp(event->reason, "ResizeDeferred") == 0;
    snprintf(s->last_event, sizeof(s->last_event), "%s", event->message);
}

static json_t *manifest(const char *mode, int max_replicas, const char *max_cpu)
{
    cleanup_free char *text = xasprintf(
        "apiVersion: autoscaling.faasrl.io/v1alpha1\n"
        "kind: MultidimPodAutoscaler\n"
        "metadata: {name: f}\n"
        "spec:\n"
        "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: work}\n"
        "  goals: {latency: {percentile: 99, target: 200ms}}\n"
        "  constraints:\n"
        "    global: {minReplicas: 1, maxReplicas: %d}\n"
        "    container:\n"
        "    - {name: c, requests: {minAllowed: {cpu: 100m}, maxAllowed: {cpu: \"%s\"}}}\n"
        "  policy: {updateMode: \"%s\"}\n",
        max_replicas, max_cpu, mode);
    struct error err = {0};
    cleanup_json json_t *documents = yaml_to_json(text, strlen(text), &err);
    assert_non_null(documents);
    return json_incref(json_array_get(documents, 0));
}

/* Requests of 5 ms: busy_per_s of them for 40 minutes, then quiet_per_s. One replica of 100m with
 * no more quota than that to begin with. */
static struct scene *prepare(const char *mode, double busy_per_s, double quiet_per_s)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    s->counts[0] = busy_per_s * 2400;
    s->counts[1] = quiet_per_s * 2400;
    s->quantiles[0] = (struct trace_quantile){0, 5};
    s->quantiles[1] = (struct trace_quantile){1, 5};
    s->workload = (struct trace_function){.slot_s = 2400,
                                          .counts = s->counts,
                                          .slot_count = 2,
                                          .poisson = true,
                                          .repeat = true,
                                          .quantiles = s->quantiles,
                                          .quantile_count = 2};
    s->manifest = manifest(mode, 4, "300m");
    s->function = (struct embed_function){.workload = &s->workload,
                                          .mpa = s->manifest,
                                          .request_milli = 100,
                                          .limit_milli = 100,
                                          .replicas = 1};
    s->options = (struct embed_options){.functions = &s->function,
                                        .function_count = 1,
                                        .seed = 1,
                                        .start_ms = START_MS,
                                        .window_s = 60,
                                        .controller = {.interval_s = INTERVAL_S,
                                                       .status_interval_s = INTERVAL_S,
                                                       .default_cpu_utilization = 70,
                                                       .limits = guard_default_limits},
                                        .on_status = on_status,
                                        .on_event = on_event,
                                        .arg = s};
    return s;
}

static struct scene *start(struct scene *s)
{
    struct error err = {0};
    s->embed = embed_new(&s->options, &err);
    assert_string_equal(err.message, "");
    assert_non_null(s->embed);
    return s;
}

static void stop(struct scene *s)
{
    embed_free(s->embed);
    json_decref(s->manifest);
    free(s);
}

static struct cluster_state state_of(const struct scene *s)
{
    struct cluster_state state;
    cluster_state(embed_cluster(s->embed), 0, &state);
    return state;
}

static void run_until(struct scene *s, double until_s)
{
    while (embed_now_s(s->embed) < until_s) {
        embed_step(s->embed);
        struct cluster_state state = state_of(s);
        assert_true(state.wanted >= 1 && state.wanted <= 4);
        assert_true(state.request_milli >= 100 && state.request_milli <= 300);
        assert_true(state.limit_milli == state.request_milli); /* it moves in proportion */
    }
}

static const json_t *status_of(const struct scene *s)
{
    return json_object_get(embed_mpa(s->embed, 0), "status");
}

static double observed(const struct scene *s, const char *figure)
{
    return json_number_value(json_path(status_of(s), "lastDecision", "observation", figure, NULL));
}

static const char *condition(const struct scene *s, const char *type)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(status_of(s), "conditions"), i, item)
        if (strcmp(json_str(json_object_get(item, "type")), type) == 0)
            return json_str(json_object_get(item, "status"));
    return "";
}

/* --- what it does ---------------------------------------------------------------------------- */
/* 120 requests/s of 5 ms need 600m: two replicas of 300m at the very least, rather three. */
static void it_scales_up_under_load_and_back(void **state)
{
    struct scene *s = start(prepare("Auto", 120, 2));
    (void)state;
    run_until(s, 2400);
    struct cluster_state busy = state_of(s);
    assert_true(busy.wanted * busy.request_milli > 600);
    assert_true(busy.ready == busy.wanted);
    assert_true(observed(s, "latencyMs") < 200);
    assert_true(s->rescales > 0 && s->resizes > 0);
    assert_string_equal(condition(s, "Ready"), "True");

    run_until(s, 4800);
    struct cluster_state quiet = state_of(s);
    assert_int_equal(quiet.wanted, 1);
    assert_true(quiet.request_milli < 300);
    stop(s);
}

static void mode_off_writes_nothing_but_status(void **state)
{
    struct scene *s = start(prepare("Off", 120, 2));
    (void)state;
    run_until(s, 600);
    struct cluster_state now = state_of(s);
    assert_int_equal(now.wanted, 1);
    assert_true(now.request_milli == 100);
    assert_int_equal(s->events, 0);
    assert_true(s->statuses > 0);
    const json_t *recommended =
        json_path(status_of(s), "recommendation", "containerRecommendations", NULL);
    const json_t *target = json_object_get(json_array_get(recommended, 0), "target");
    int64_t milli = 0;
    assert_int_equal(quantity_parse_milli(json_str(json_object_get(target, "cpu")), &milli, NULL),
                     0);
    assert_true(milli > 100); /* it would grow */
    struct trial_result result;
    embed_result(s->embed, 0, &result);
    assert_int_equal(result.actions, 0);
    stop(s);
}

/* A paused MPA is told of, and left. */
static void the_pause_annotation_holds_it(void **state)
{
    struct scene *s = prepare("Auto", 120, 2);
    (void)state;
    json_object_set_new(json_object_get(s->manifest, "metadata"), "annotations",
                        json_pack("{s:s}", API_PAUSE_ANNOTATION, "true"));
    start(s);
    run_until(s, 300);
    assert_int_equal(s->events, 0);
    assert_string_equal(condition(s, "Paused"), "True");
    stop(s);
}

/* Two nodes of one core each, and a wish for more than a core: the node's "no" is believed, and
 * growth goes to replicas. */
static void a_node_without_room_turns_growth_to_replicas(void **state)
{
    static const struct cluster_node nodes[] = {{.cores = 1, .memory_bytes = INFINITY},
                                                {.cores = 1, .memory_bytes = INFINITY}};
    struct scene *s = prepare("Auto", 240, 240);
    (void)state;
    json_decref(s->manifest);
    s->function.mpa = s->manifest = manifest("Auto", 4, "1500m");
    s->function.request_milli = s->function.limit_milli = 800;
    s->options.nodes = nodes;
    s->options.node_count = 2;
    start(s);
    while (embed_now_s(s->embed) < 900)
        embed_step(s->embed);
    assert_true(s->deferred > 0);
    assert_int_equal(state_of(s).ready, 2);
    assert_true(state_of(s).request_milli <= 1000);
    stop(s);
}

/* --- what it sees ---------------------------------------------------------------------------- */
/* 4 requests/s of 20 ms, one core for each: 80m used. All take 20 ms, which histogram_quantile
 * puts into the bucket from 10 to 25 ms: it sees p99 near its end. */
static void figures_are_those_of_prometheus(void **state)
{
    struct scene *s = prepare("Off", 4, 4);
    (void)state;
    s->quantiles[0].cpu_ms = s->quantiles[1].cpu_ms = 20;
    s->function.request_milli = 1000;
    s->function.limit_milli = 0;
    start(s);
    while (embed_now_s(s->embed) < 1200)
        embed_step(s->embed);
    struct trial_result result;
    embed_result(s->embed, 0, &result);
    assert_true(fabs((double)result.requests / 1200 - 4) < 4 * sqrt(4.0 / 1200));
    assert_true(fabs(result.cpu_used_seconds - 0.02 * (double)result.requests) < 0.1);
    assert_true(fabs(result.cpu_core_seconds - 1200) < 1e-6);
    assert_true(result.violation_ratio == 0);
    assert_true(fabs(result.replicas_mean - 1) < 1e-9);

    assert_true(fabs(observed(s, "requestsPerSecond") - 4) < 4 * sqrt(4.0 / 60));
    assert_true(fabs(observed(s, "cpuUsageMilli") - 20 * observed(s, "requestsPerSecond")) < 2);
    assert_true(fabs(observed(s, "cpuUtilization") - observed(s, "cpuUsageMilli") / 1000) < 2e-3);
    assert_true(fabs(observed(s, "latencyMs") - (10 + 0.99 * 15)) < 0.5);
    assert_int_equal(json_integer_value(json_path(status_of(s), "currentReplicas", NULL)), 1);
    stop(s);
}

static void time_is_the_clusters(void **state)
{
    struct scene *s = start(prepare("Auto", 120, 2));
    (void)state;
    for (int i = 0; i < 8; i++)
        embed_step(s->embed);
    assert_int_equal(clock_wall_ms() - START_MS, 8 * INTERVAL_S * 1000);
    assert_string_equal(json_str(json_path(status_of(s), "lastDecision", "time", NULL)),
                        "2026-01-01T00:02:00Z");
    stop(s);
    assert_true(llabs(clock_wall_ms() - START_MS) > 1000); /* the system's again */
}

/* --- results --------------------------------------------------------------------------------- */
static char *run_to_text(uint64_t seed, struct trial_result *result)
{
    struct scene *s = prepare("Auto", 120, 2);
    s->options.seed = seed;
    start(s);
    run_until(s, 1800);
    embed_result(s->embed, 0, result);
    char *text = json_dumps(embed_mpa(s->embed, 0), JSON_SORT_KEYS);
    stop(s);
    return text;
}

static void a_seed_decides_everything(void **state)
{
    struct trial_result first, again, other;
    (void)state;
    cleanup_free char *a = run_to_text(7, &first);
    cleanup_free char *b = run_to_text(7, &again);
    free(run_to_text(8, &other));
    assert_string_equal(a, b);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_true(first.requests != other.requests);
}

static void others_are_compared_under_the_same_load(void **state)
{
    struct scene *s = start(prepare("Auto", 120, 2));
    struct trial_result own, oracle;
    struct error err = {0};
    (void)state;
    run_until(s, 1800);
    embed_result(s->embed, 0, &own);
    assert_int_equal(embed_compare(s->embed, "oracle", &oracle, &err), 0);
    assert_true(own.requests == oracle.requests);
    assert_true(own.goal_ms == 200 && oracle.goal_ms == 200);
    assert_true(own.actions > 0 && own.actions <= (uint64_t)(s->rescales + s->resizes));
    assert_int_equal(embed_compare(s->embed, "nobody", &oracle, &err), -1);
    assert_non_null(strstr(err.message, "nobody"));
    stop(s);
}

static void an_mpa_may_come_later(void **state)
{
    struct scene *s = prepare("Auto", 120, 2);
    char created[RFC3339_SIZE];
    (void)state;
    s->function.joins_s = 600;
    start(s);
    run_until(s, 600 - INTERVAL_S);
    assert_int_equal(s->statuses, 0);
    assert_int_equal(state_of(s).ready, 1);
    run_until(s, 1800);
    assert_true(s->rescales + s->resizes > 0);
    time_format(START_MS + 600000, created);
    assert_string_equal(
        json_str(json_path(embed_mpa(s->embed, 0), "metadata", "creationTimestamp", NULL)),
        created);
    stop(s);
}

/* --- what cannot be -------------------------------------------------------------------------- */
static void refused(const struct scene *s, const char *why)
{
    struct error err = {0};
    assert_null(embed_new(&s->options, &err));
    if (strstr(err.message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.message, why);
}

static void what_cannot_be_simulated_is_refused(void **state)
{
    struct scene *s = prepare("Initial", 1, 1);
    (void)state;
    refused(s, "mode Initial");

    json_decref(s->manifest);
    s->function.mpa = s->manifest = manifest("Auto", 4, "1");
    const struct embed_function twice[] = {s->function, s->function};
    s->options.functions = twice;
    s->options.function_count = 2;
    refused(s, "same target");
    s->options.functions = &s->function;
    s->options.function_count = 1;

    json_t *target = json_path(s->manifest, "spec", "scaleTargetRef", NULL);
    json_object_set_new(target, "kind", json_string("StatefulSet"));
    refused(s, "StatefulSet");
    json_object_set_new(json_object_get(s->manifest, "spec"), "goals", json_string("low"));
    refused(s, "goals");
    stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_scales_up_under_load_and_back),
        cmocka_unit_test(mode_off_writes_nothing_but_status),
        cmocka_unit_test(the_pause_annotation_holds_it),
        cmocka_unit_test(a_node_without_room_turns_growth_to_replicas),
        cmocka_unit_test(figures_are_those_of_prometheus),
        cmocka_unit_test(time_is_the_clusters),
        cmocka_unit_test(a_seed_decides_everything),
        cmocka_unit_test(others_are_compared_under_the_same_load),
        cmocka_unit_test(an_mpa_may_come_later),
        cmocka_unit_test(what_cannot_be_simulated_is_refused),
    };
    log_setup(LOG_ERROR, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
