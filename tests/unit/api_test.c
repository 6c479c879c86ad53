/* Reading the resource: defaults, bounds, rules, suggestions, and input that is none. */
#include "api/api.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char minimal[] =
    "apiVersion: autoscaling.faasrl.io/v1alpha1\n"
    "kind: MultidimPodAutoscaler\n"
    "metadata: {name: thumbnail}\n"
    "spec:\n"
    "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: thumbnail}\n"
    "  goals: {latency: {target: 300ms}}\n"
    "  constraints: {global: {maxReplicas: 20}}\n";

static const char full[] =
    "apiVersion: autoscaling.faasrl.io/v1alpha1\n"
    "kind: MultidimPodAutoscaler\n"
    "metadata:\n"
    "  name: thumbnail\n"
    "  namespace: shop\n"
    "  uid: 11111111-2222-3333-4444-555555555555\n"
    "  resourceVersion: \"42\"\n"
    "  generation: 7\n"
    "  creationTimestamp: \"2026-01-31T12:00:00Z\"\n"
    "  labels: {team: a}\n"
    "  annotations: {autoscaling.faasrl.io/paused: \"true\"}\n"
    "spec:\n"
    "  scaleTargetRef: {apiVersion: serving.knative.dev/v1, kind: Service, name: thumb.nail}\n"
    "  goals:\n"
    "    latency: {percentile: 99.9, target: 1m30s, query: up}\n"
    "    metrics:\n"
    "    - type: Resource\n"
    "      resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}\n"
    "    - type: ContainerResource\n"
    "      containerResource:\n"
    "        {name: memory, container: main, target: {type: AverageValue, averageValue: 256Mi}}\n"
    "    - type: Resource\n"
    "      resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}\n"
    "  constraints:\n"
    "    global:\n"
    "      minReplicas: 2\n"
    "      maxReplicas: 9\n"
    "      behavior:\n"
    "        scaleUp:\n"
    "          stabilizationWindowSeconds: 5\n"
    "          selectPolicy: Min\n"
    "          tolerance: 0.05\n"
    "          policies: [{type: Pods, value: 3, periodSeconds: 60}]\n"
    "        scaleDown: {selectPolicy: Disabled}\n"
    "    containerControlledResources: [memory, cpu]\n"
    "    container:\n"
    "    - name: '*'\n"
    "      controlledValues: RequestsOnly\n"
    "      requests: {minAllowed: {cpu: 100m, memory: 64Mi}, maxAllowed: {cpu: 2, memory: 1.5Gi}}\n"
    "    - {name: proxy, mode: \"Off\"}\n"
    "  policy: {updateMode: Initial, harvestGroup: team, knative: Own}\n"
    "  recommenders: [{name: ppo}]\n"
    "status: {currentReplicas: 3}\n";

static json_t *from_yaml(const char *text)
{
    struct error err = {0};
    if (strcmp(text, "null") == 0)
        return json_null(); /* an empty document is none */
    json_t *documents = yaml_to_json(text, strlen(text), &err);
    if (!documents)
        fail_msg("%s", err.message);
    json_t *first = json_incref(json_array_get(documents, 0));
    json_decref(documents);
    assert_non_null(first);
    return first;
}

/* The member or item that path ("spec.goals.metrics.0.type") leads to; its parent and last word. */
static json_t *step(json_t *at, const char *word)
{
    return json_is_array(at) ? json_array_get(at, strtoul(word, NULL, 10))
                             : json_object_get(at, word);
}

/* Sets what path leads to, making objects on the way; an empty value removes it. */
static void put(json_t *root, const char *path, const char *yaml)
{
    char word[64];
    json_t *at = root;
    for (;;) {
        size_t len = strcspn(path, ".");
        assert_true(len < sizeof(word));
        snprintf(word, sizeof(word), "%.*s", (int)len, path);
        if (path[len] == '\0')
            break;
        if (!step(at, word))
            json_object_set_new(at, word, json_object());
        at = step(at, word);
        path += len + 1;
    }
    if (json_is_array(at))
        json_array_set_new(at, strtoul(word, NULL, 10), from_yaml(yaml));
    else if (*yaml)
        json_object_set_new(at, word, from_yaml(yaml));
    else
        json_object_del(at, word);
}

/* --- parsing -------------------------------------------------------------------------------- */
static void parses_defaults(void **state)
{
    (void)state;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(minimal);
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    const struct api_spec *spec = &mpa.spec;

    assert_string_equal(mpa.name, "thumbnail");
    assert_null(mpa.namespace_);
    assert_null(mpa.status);
    assert_false(mpa.paused);
    assert_true(spec->latency_percentile == 99);
    assert_int_equal(spec->latency_target_us, 300000);
    assert_null(spec->latency_query);
    assert_int_equal(spec->metric_count, 1);
    assert_int_equal(spec->metrics[0].resource, API_CPU);
    assert_int_equal(spec->metrics[0].utilization, 70);
    assert_true(spec->metrics[0].average_value == API_ABSENT);
    assert_null(spec->metrics[0].container);
    assert_int_equal(spec->min_replicas, 1);
    assert_int_equal(spec->max_replicas, 20);
    assert_true(spec->controls[API_CPU]);
    assert_false(spec->controls[API_MEMORY]);
    assert_int_equal(spec->container_count, 0);
    assert_int_equal(spec->mode, API_MODE_AUTO);
    assert_false(spec->knative_own);
    assert_string_equal(spec->recommender, "threshold");
    api_clear(&mpa);
}

/* The figures are those of HorizontalPodAutoscaler v2's documentation. */
static void parses_default_behavior(void **state)
{
    (void)state;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(minimal);
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    const struct api_rules *up = &mpa.spec.scale_up, *down = &mpa.spec.scale_down;

    assert_int_equal(up->stabilization_s, 0);
    assert_int_equal(up->select, API_SELECT_MAX);
    assert_true(up->tolerance == 0.1);
    assert_int_equal(up->policy_count, 2);
    assert_int_equal(up->policies[0].type, API_POLICY_PODS);
    assert_int_equal(up->policies[0].value, 4);
    assert_int_equal(up->policies[0].period_s, 15);
    assert_int_equal(up->policies[1].type, API_POLICY_PERCENT);
    assert_int_equal(up->policies[1].value, 100);
    assert_int_equal(up->policies[1].period_s, 15);
    assert_int_equal(down->stabilization_s, 300);
    assert_int_equal(down->select, API_SELECT_MAX);
    assert_true(down->tolerance == 0.1);
    assert_int_equal(down->policy_count, 1);
    assert_int_equal(down->policies[0].type, API_POLICY_PERCENT);
    assert_int_equal(down->policies[0].value, 100);
    assert_int_equal(down->policies[0].period_s, 15);
    api_clear(&mpa);
}

static void assert_full_goals(const struct api_spec *spec)
{
    assert_string_equal(spec->target_api_version, "serving.knative.dev/v1");
    assert_string_equal(spec->target_kind, "Service");
    assert_string_equal(spec->target_name, "thumb.nail");
    assert_true(spec->latency_percentile == 99.9);
    assert_int_equal(spec->latency_target_us, 90 * 1000 * 1000);
    assert_string_equal(spec->latency_query, "up");
    assert_int_equal(spec->metric_count, 3);
    assert_int_equal(spec->metrics[0].utilization, 60);
    assert_int_equal(spec->metrics[1].resource, API_MEMORY);
    assert_string_equal(spec->metrics[1].container, "main");
    assert_int_equal(spec->metrics[1].average_value, 256 << 20);
    assert_int_equal(spec->metrics[1].utilization, 0);
    assert_int_equal(spec->metrics[2].average_value, 1000);
}

static void assert_full_constraints(const struct api_spec *spec)
{
    assert_int_equal(spec->min_replicas, 2);
    assert_int_equal(spec->max_replicas, 9);
    assert_int_equal(spec->scale_up.stabilization_s, 5);
    assert_int_equal(spec->scale_up.select, API_SELECT_MIN);
    assert_true(spec->scale_up.tolerance == 0.05);
    assert_int_equal(spec->scale_up.policy_count, 1);
    assert_int_equal(spec->scale_up.policies[0].value, 3);
    assert_int_equal(spec->scale_up.policies[0].period_s, 60);
    assert_int_equal(spec->scale_down.select, API_SELECT_DISABLED);
    assert_int_equal(spec->scale_down.stabilization_s, 300);
    assert_int_equal(spec->scale_down.policy_count, 1);
    assert_true(spec->controls[API_CPU] && spec->controls[API_MEMORY]);
    assert_int_equal(spec->container_count, 2);
    assert_true(spec->containers[0].requests_only);
    assert_false(spec->containers[0].off);
    assert_int_equal(spec->containers[0].min[API_CPU], 100);
    assert_int_equal(spec->containers[0].max[API_CPU], 2000);
    assert_int_equal(spec->containers[0].min[API_MEMORY], 64 << 20);
    assert_int_equal(spec->containers[0].max[API_MEMORY], 1536 << 20);
    assert_true(spec->containers[1].off);
    assert_false(spec->containers[1].requests_only);
    assert_true(spec->containers[1].min[API_CPU] == API_ABSENT);
}

static void parses_everything(void **state)
{
    (void)state;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(full);
    assert_int_equal(api_parse(json, &mpa, &err), 0);

    assert_string_equal(mpa.namespace_, "shop");
    assert_string_equal(mpa.uid, "11111111-2222-3333-4444-555555555555");
    assert_string_equal(mpa.resource_version, "42");
    assert_int_equal(mpa.generation, 7);
    assert_true(mpa.created_ms == INT64_C(1769860800000)); /* date -d 2026-01-31T12:00:00Z +%s */
    assert_true(mpa.paused);
    assert_false(mpa.deleting);
    assert_int_equal(json_integer_value(json_object_get(mpa.status, "currentReplicas")), 3);
    assert_full_goals(&mpa.spec);
    assert_full_constraints(&mpa.spec);
    assert_int_equal(mpa.spec.mode, API_MODE_INITIAL);
    assert_true(mpa.spec.knative_own);
    assert_string_equal(api_mode_name(mpa.spec.mode), "Initial");
    assert_string_equal(mpa.spec.recommender, "ppo");
    api_clear(&mpa);
    assert_null(mpa.name);
}

static void parses_variants(void **state)
{
    (void)state;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(minimal);
    put(json, "spec.goals.metrics",
        "[{type: Resource, resource: {name: memory, target: {type: Utilization, "
        "averageUtilization: 80}}}]");
    put(json, "spec.constraints.containerControlledResources", "[]");
    put(json, "spec.constraints.global.minReplicas", "3.0");
    put(json, "spec.constraints.global.behavior", "null");
    put(json, "metadata.deletionTimestamp", "\"2026-01-31T12:00:00Z\"");
    put(json, "metadata.annotations", "{autoscaling.faasrl.io/paused: \"yes\"}");
    assert_int_equal(api_parse(json, &mpa, &err), 0);

    assert_int_equal(mpa.spec.metric_count, 2); /* cpu joins what does not name it */
    assert_true(mpa.spec.has_default_metric);
    assert_int_equal(mpa.spec.metrics[0].resource, API_MEMORY);
    assert_int_equal(mpa.spec.metrics[1].resource, API_CPU);
    assert_int_equal(mpa.spec.metrics[1].utilization, 70);
    assert_false(mpa.spec.controls[API_CPU] || mpa.spec.controls[API_MEMORY]);
    assert_int_equal(mpa.spec.min_replicas, 3);
    assert_int_equal(mpa.spec.scale_down.stabilization_s, 300);
    assert_true(mpa.deleting);
    assert_false(mpa.paused);
    api_clear(&mpa);
}

static void parses_a_boost(void **state)
{
    (void)state;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(minimal);

    assert_int_equal(api_parse(json, &mpa, &err), 0);
    assert_false(api_boosts(&mpa.spec));
    api_clear(&mpa);
    put(json, "spec.policy.startupBoost.cpu", "{type: Factor, factor: 3}");
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    assert_true(api_boosts(&mpa.spec));
    assert_int_equal(mpa.spec.boost.factor, 3);
    assert_int_equal(mpa.spec.boost.more_milli, 0);
    assert_int_equal(mpa.spec.boost.duration_s, 0);
    api_clear(&mpa);
    put(json, "spec.policy.startupBoost.cpu",
        "{type: Quantity, quantity: 500m, durationSeconds: 10}");
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    assert_true(api_boosts(&mpa.spec));
    assert_int_equal(mpa.spec.boost.factor, 0);
    assert_int_equal(mpa.spec.boost.more_milli, 500);
    assert_int_equal(mpa.spec.boost.duration_s, 10);
    api_clear(&mpa);
    put(json, "spec.policy.startupBoost.cpu", "{type: Factor, factor: 1}");
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    assert_false(api_boosts(&mpa.spec)); /* as much as without */
    api_clear(&mpa);
}

static void finds_container_policy(void **state)
{
    (void)state;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(full), *bare = from_yaml(minimal);

    assert_int_equal(api_parse(json, &mpa, &err), 0);
    assert_string_equal(api_container_policy(&mpa.spec, "proxy")->name, "proxy");
    assert_string_equal(api_container_policy(&mpa.spec, "function")->name, "*");
    api_clear(&mpa);

    assert_int_equal(api_parse(bare, &mpa, &err), 0);
    const struct api_container *none = api_container_policy(&mpa.spec, "function");
    assert_false(none->off || none->requests_only);
    for (int r = 0; r < API_RESOURCE_COUNT; r++)
        assert_true(none->min[r] == API_ABSENT && none->max[r] == API_ABSENT);
    api_clear(&mpa);
}

/* Whatever the MPA says of all containers; a container that only has its name is another matter. */
static void queue_proxy_of_knative_is_left_alone(void **state)
{
    (void)state;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(full);
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    assert_true(api_container_policy(&mpa.spec, API_QUEUE_PROXY)->off);
    assert_string_equal(api_container_policy(&mpa.spec, "user-container")->name, "*");
    api_clear(&mpa);
    put(json, "spec.scaleTargetRef", "{apiVersion: apps/v1, kind: Deployment, name: thumbnail}");
    put(json, "spec.policy", "{updateMode: Initial}");
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    assert_false(api_container_policy(&mpa.spec, API_QUEUE_PROXY)->off);
    api_clear(&mpa);
}

static void replicas_and_memory_of_an_action_are_left_alone(void **state)
{
    static const struct {
        const char *constraints, *reason; /* NULL: all is followed */
    } cases[] = {
        {"{}", NULL},
        {"{global: {minReplicas: 1}, containerControlledResources: [cpu]}", NULL},
        {"{global: {maxReplicas: 3}}", "ReplicasUnsupported"},
        {"{global: {minReplicas: 2}}", "ReplicasUnsupported"},
        {"{containerControlledResources: [cpu, memory]}", "MemoryUnsupported"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct api_mpa mpa;
        struct error err = {0};
        cleanup_json json_t *json = from_yaml(minimal);
        put(json, "spec.scaleTargetRef",
            "{apiVersion: openwhisk.apache.org/v1, kind: Action, name: guest/hello}");
        put(json, "spec.constraints", cases[i].constraints);
        if (api_parse(json, &mpa, &err) < 0)
            fail_msg("%s: %s", cases[i].constraints, err.message);
        assert_true(mpa.spec.is_action);
        assert_true(mpa.spec.controls[API_CPU] && !mpa.spec.controls[API_MEMORY]);
        assert_int_equal(mpa.spec.min_replicas, 1);
        assert_int_equal(mpa.spec.max_replicas, 10000);
        if (cases[i].reason)
            assert_string_equal(mpa.spec.unsupported.reason, cases[i].reason);
        else
            assert_null(mpa.spec.unsupported.reason);
        assert_false(api_container_policy(&mpa.spec, "user-action")->off);
        assert_true(api_container_policy(&mpa.spec, "sidecar")->off);
        api_clear(&mpa);
    }
}

/* --- errors --------------------------------------------------------------------------------- */
static const struct bad {
    const char *path, *value; /* put into the full manifest; "": removed */
    const char *field, *words;
} bad[] = {
    {"apiVersion", "autoscaling.faasrl.io/v1", "apiVersion", "v1alpha1"},
    {"kind", "HorizontalPodAutoscaler", "kind", "MultidimPodAutoscaler"},
    {"metadata.name", "", "metadata.name", "required"},
    {"metadata.name", "Upper", "metadata.name", "DNS subdomain"},
    {"metadata.namespace", "a.b", "metadata.namespace", "DNS label"},
    {"metadata.annotations", "{autoscaling.faasrl.io/paused: true}", "metadata.annotations",
     "quote it"},
    {"spec", "", "spec", "required"},
    {"spec", "[]", "spec", "must be an object, not a list"},
    {"spec.scaleTargetRef.name", "", "spec.scaleTargetRef.name", "required"},
    {"spec.scaleTargetRef.name", "''", "spec.scaleTargetRef.name", "DNS subdomain"},
    {"spec.scaleTargetRef.name", "guest/hello", "spec.scaleTargetRef.name", "DNS subdomain"},
    /* Ways into other namespaces, by our requests and by our queries. */
    {"spec.scaleTargetRef.name", "../../bank/deployments/a", "spec.scaleTargetRef.name", "DNS"},
    {"spec.scaleTargetRef.name", "a%2f..%2fb", "spec.scaleTargetRef.name", "DNS subdomain"},
    {"spec.scaleTargetRef.name", "'a?dryRun=All'", "spec.scaleTargetRef.name", "DNS subdomain"},
    {"spec.scaleTargetRef.name", "'a\"} or up{b=\"c'", "spec.scaleTargetRef.name", "DNS subdomain"},
    {"spec.scaleTargetRef.name", "'a|.+'", "spec.scaleTargetRef.name", "DNS subdomain"},
    {"spec.scaleTargetRef.kind", "Deployment/../../bank", "spec.scaleTargetRef.kind", ""},
    {"spec.scaleTargetRef.apiVersion", "apps/v1/namespaces/bank", "spec.scaleTargetRef.apiVersion",
     ""},
    {"spec.scaleTargetRef", "{apiVersion: openwhisk.apache.org/v1, kind: Action, name: hello}",
     "spec.scaleTargetRef.name", "NAMESPACE/PACKAGE/ACTION"},
    {"spec.scaleTargetRef.kind", "deployment", "spec.scaleTargetRef.kind", "Deployment"},
    {"spec.scaleTargetRef.apiVersion", "apps", "spec.scaleTargetRef.apiVersion", "apps/v1"},
    {"spec.scaleTargetRef.apiVersion", "apps/v1/x", "spec.scaleTargetRef.apiVersion", "apps/v1"},
    {"spec.scaleTargetRef.apiVersion", "apps/v1gamma1", "spec.scaleTargetRef.apiVersion", "such"},
    {"spec.goals", "{}", "spec.goals", "latency, metrics or both"},
    {"spec.goals", "{metrics: []}", "spec.goals", "latency, metrics or both"},
    {"spec.goals.latency.target", "", "spec.goals.latency.target", "required"},
    {"spec.goals.latency.target", "0ms", "spec.goals.latency.target", "above 0"},
    {"spec.goals.latency.target", "10m0.001ms", "spec.goals.latency.target", "10m"},
    {"spec.goals.latency.target", "-1s", "spec.goals.latency.target", "duration"},
    {"spec.goals.latency.target", "300", "spec.goals.latency.target", "must be a string"},
    {"spec.goals.latency.target", "'300'", "spec.goals.latency.target", "duration"},
    {"spec.goals.latency.percentile", "100", "spec.goals.latency.percentile", "less than 100"},
    {"spec.goals.latency.percentile", "0", "spec.goals.latency.percentile", "more than 0"},
    {"spec.goals.latency.percentile", "p99", "spec.goals.latency.percentile", "number"},
    {"spec.goals.latency.query", "''", "spec.goals.latency.query", "characters"},
    {"spec.goals.metrics.0.type", "Pods", "spec.goals.metrics[0].type", "Resource"},
    {"spec.goals.metrics.0.type", "ContainerResource", "spec.goals.metrics[0].resource", "only"},
    {"spec.goals.metrics.1.containerResource", "", "spec.goals.metrics[1].containerResource",
     "required"},
    {"spec.goals.metrics.0.resource.name", "gpu", "spec.goals.metrics[0].resource.name",
     "cpu, memory"},
    {"spec.goals.metrics.0.resource.target.averageUtilization", "0",
     "spec.goals.metrics[0].resource.target.averageUtilization", "from 1"},
    {"spec.goals.metrics.0.resource.target.averageUtilization", "",
     "spec.goals.metrics[0].resource.target.averageUtilization", "required"},
    {"spec.goals.metrics.0.resource.target.averageValue", "1",
     "spec.goals.metrics[0].resource.target.averageValue", "only when type is AverageValue"},
    {"spec.goals.metrics.1.containerResource.target.averageValue", "100m",
     "spec.goals.metrics[1].containerResource.target.averageValue", "memory"},
    {"spec.goals.metrics.2.resource.target.averageValue", "1Mi",
     "spec.goals.metrics[2].resource.target.averageValue", "CPU"},
    {"spec.goals.metrics.1.containerResource.container", "'*'",
     "spec.goals.metrics[1].containerResource.container", "DNS label"},
    {"spec.constraints", "", "spec.constraints", "required"},
    {"spec.constraints.global.maxReplicas", "", "spec.constraints.global.maxReplicas", "required"},
    {"spec.constraints.global", "", "spec.constraints.global.maxReplicas", "required"},
    {"spec.constraints.global.maxReplicas", "null", "spec.constraints.global.maxReplicas",
     "required"},
    {"spec.constraints.global.maxReplicas", "10001", "spec.constraints.global.maxReplicas",
     "10000"},
    {"spec.constraints.global.maxReplicas", "2.5", "spec.constraints.global.maxReplicas",
     "integer"},
    {"spec.constraints.global.minReplicas", "0", "spec.constraints.global.minReplicas", "from 1"},
    {"spec.constraints.global.minReplicas", "10", "spec.constraints.global.minReplicas",
     "10 is more than maxReplicas 9"},
    {"spec.constraints.global.behavior.scaleUp.stabilizationWindowSeconds", "3601",
     "spec.constraints.global.behavior.scaleUp.stabilizationWindowSeconds", "3600"},
    {"spec.constraints.global.behavior.scaleUp.policies", "[]",
     "spec.constraints.global.behavior.scaleUp.policies", "1 to 8"},
    {"spec.constraints.global.behavior.scaleUp.policies.0.periodSeconds", "1801",
     "spec.constraints.global.behavior.scaleUp.policies[0].periodSeconds", "1800"},
    {"spec.constraints.global.behavior.scaleUp.policies.0.value", "0",
     "spec.constraints.global.behavior.scaleUp.policies[0].value", "from 1"},
    {"spec.constraints.global.behavior.scaleUp.tolerance", "-0.1",
     "spec.constraints.global.behavior.scaleUp.tolerance", "from 0"},
    {"spec.constraints.containerControlledResources", "[cpu, cpu]",
     "spec.constraints.containerControlledResources[1]", "before"},
    {"spec.constraints.containerControlledResources", "[gpu]",
     "spec.constraints.containerControlledResources[0]", "cpu, memory"},
    {"spec.constraints.container.1.name", "'*'", "spec.constraints.container[1]", "before"},
    {"spec.constraints.container.1.name", "a_b", "spec.constraints.container[1].name", "'*'"},
    {"spec.constraints.container.1.mode", "off", "spec.constraints.container[1].mode", "\"Off\""},
    {"spec.constraints.container.1.mode", "Aut", "spec.constraints.container[1].mode",
     "did you mean Auto?"},
    {"spec.constraints.container.0.requests.minAllowed.cpu", "3",
     "spec.constraints.container[0].requests.minAllowed.cpu", "3 is more than maxAllowed 2"},
    {"spec.constraints.container.0.requests.minAllowed.memory", "1.501Gi",
     "spec.constraints.container[0].requests.minAllowed.memory", "more than maxAllowed"},
    {"spec.constraints.container.0.requests.maxAllowed.memory", "100m",
     "spec.constraints.container[0].requests.maxAllowed.memory", "bytes"},
    {"spec.constraints.container.0.requests.minAllowed.cpu", "0",
     "spec.constraints.container[0].requests.minAllowed.cpu", "above 0"},
    {"spec.constraints.container.0.requests.minAllowed.cpu", "0.5",
     "spec.constraints.container[0].requests.minAllowed.cpu", "quoted"},
    {"spec.constraints.container.0.requests.minAllowed.cpu", "'-1'",
     "spec.constraints.container[0].requests.minAllowed.cpu", "CPU"},
    {"spec.constraints.container.0.requests.minAllowed.cpu", "100u",
     "spec.constraints.container[0].requests.minAllowed.cpu", "milli-cores"},
    {"spec.policy.updateMode", "Off", "spec.policy.updateMode", "write \"Off\" with quotes"},
    {"spec.policy.updateMode", "Recreate", "spec.policy.updateMode", "Off, Initial, Auto"},
    {"spec.policy.harvestGroup", "The Team", "spec.policy.harvestGroup", "lower-case"},
    {"spec.policy.startupBoost", "{cpu: {type: Factor, factor: 2}}", "spec.policy.startupBoost",
     "beside harvestGroup"},
    {"spec.policy", "{startupBoost: {}}", "spec.policy.startupBoost.cpu", "required"},
    {"spec.policy", "{startupBoost: {cpu: {factor: 2}}}", "spec.policy.startupBoost.cpu.type",
     "required"},
    {"spec.policy", "{startupBoost: {cpu: {type: Factor}}}", "spec.policy.startupBoost.cpu.factor",
     "required when type is Factor"},
    {"spec.policy", "{startupBoost: {cpu: {type: Factor, factor: 0}}}",
     "spec.policy.startupBoost.cpu.factor", "from 1 to 100"},
    {"spec.policy", "{startupBoost: {cpu: {type: Factor, factor: 2, quantity: 1}}}",
     "spec.policy.startupBoost.cpu.quantity", "only when type is Quantity"},
    {"spec.policy", "{startupBoost: {cpu: {type: Quantity, quantity: 1Gi}}}",
     "spec.policy.startupBoost.cpu.quantity", "not an amount of CPU"},
    {"spec.policy", "{startupBoost: {cpu: {type: Factor, factor: 2, durationSeconds: 3601}}}",
     "spec.policy.startupBoost.cpu.durationSeconds", "from 0 to 3600"},
    {"spec.policy.knative", "own", "spec.policy.knative", "Steer, Own"},
    {"spec.recommenders", "[]", "spec.recommenders", "1 to 1"},
    {"spec.recommenders", "[{name: a}, {name: b}]", "spec.recommenders", "1 to 1"},
    {"spec.recommenders.0.name", "PPO", "spec.recommenders[0].name", "recommender's name"},
    {"spec.recommenders.0.name", "hpa+", "spec.recommenders[0].name", "recommender's name"},
};

static bool has_finding(const struct api_findings *findings, bool warning, const char *field,
                        const char *words)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct api_finding *f = &findings->items[i];
        if (f->warning == warning && strcmp(f->field, field) == 0 && strstr(f->message, words))
            return true;
    }
    return false;
}

static void names_what_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct bad *row = &bad[i];
        struct api_findings findings;
        struct api_mpa mpa;
        struct error err = {0};
        cleanup_json json_t *json = from_yaml(full);
        put(json, row->path, row->value);

        size_t errors = api_validate(json, &findings);
        if (errors == 0 || !has_finding(&findings, false, row->field, row->words))
            fail_msg("%s: %s: \"%s\" is not said of %s; %zu errors, first: %s: %s", row->path,
                     row->value, row->words, row->field, errors,
                     findings.count ? findings.items[0].field : "",
                     findings.count ? findings.items[0].message : "");
        assert_int_equal(api_parse(json, &mpa, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
        api_findings_clear(&findings);
        assert_int_equal(findings.count, 0);
    }
}

static const struct {
    const char *path, *value;
} good[] = {
    {"spec.goals.latency.target", "10m"},
    {"spec.goals.latency.target", "0.001ms"},
    {"spec.goals.latency.target", "1.5s"},
    {"spec.goals.latency.percentile", "0.5"},
    {"spec.goals.metrics", "[]"},
    {"spec.scaleTargetRef.apiVersion", "v1"},
    {"spec.scaleTargetRef.apiVersion", "keda.sh/v1alpha1"},
    {"spec.scaleTargetRef", "{apiVersion: openwhisk.apache.org/v1, kind: Action, name: a/b c/d}"},
    {"spec.constraints.global.maxReplicas", "10000"},
    {"spec.constraints.global.minReplicas", "9"},
    {"spec.constraints.container.0.requests.minAllowed.cpu", "'0.5'"},
    {"spec.constraints.container.0.requests.minAllowed.cpu", "2.0"},
    {"spec.constraints.container.0.requests.minAllowed.memory", "1.500Gi"},
    {"spec.constraints.container.0.requests.minAllowed.memory", "1000000"},
    {"spec.constraints.container", "[]"},
    {"spec.constraints.global.behavior", "{}"},
    {"spec.policy", "{}"},
    {"spec.policy", ""},
    {"spec.recommenders", ""},
    {"spec.recommenders.0.name", "hpa+vpa"},
    {"status", "[what, ever]"},
    {"metadata.name", "a23456789-123456789-123456789-123456789-123456789-123456789-123456789"},
};

static void accepts_what_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct api_findings findings;
        cleanup_json json_t *json = from_yaml(full);
        put(json, good[i].path, good[i].value);
        if (api_validate(json, &findings) > 0)
            fail_msg("%s: %s: %s: %s", good[i].path, good[i].value, findings.items[0].field,
                     findings.items[0].message);
        assert_int_equal(findings.count, 0);
        api_findings_clear(&findings);
    }
}

static void warns_of_unknown_fields(void **state)
{
    (void)state;
    struct api_findings findings;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(full);
    put(json, "spec.goals.latency.percentil", "99");
    put(json, "spec.minReplicas", "1");
    put(json, "spec.constraints.container.0.requests.minAllowd", "{}");
    put(json, "metadata.label", "{}");
    put(json, "spec.zebra", "1");
    put(json, "spec.scaleTargetRef.namespace", "bank"); /* a target is always in the MPA's own */

    assert_int_equal(api_validate(json, &findings), 0);
    assert_int_equal(findings.count, 6);
    assert_true(
        has_finding(&findings, true, "spec.goals.latency.percentil", "did you mean percentile?"));
    assert_true(has_finding(&findings, true, "spec.minReplicas",
                            "did you mean spec.constraints.global.minReplicas?"));
    assert_true(has_finding(&findings, true, "spec.constraints.container[0].requests.minAllowd",
                            "did you mean minAllowed?"));
    assert_true(has_finding(&findings, true, "metadata.label", "did you mean labels?"));
    assert_true(has_finding(&findings, true, "spec.zebra", "unknown field, it is ignored"));
    assert_true(has_finding(&findings, true, "spec.scaleTargetRef.namespace", "it is ignored"));
    api_findings_clear(&findings);
    assert_int_equal(api_parse(json, &mpa, &err), 0);
    api_clear(&mpa);
}

static void bounds_its_findings(void **state)
{
    (void)state;
    struct api_findings findings;
    struct api_mpa mpa;
    struct error err = {0};
    cleanup_json json_t *json = from_yaml(full);
    char name[200];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (size_t i = 0; i < 1000; i++) {
        snprintf(name, 8, "%07zu", i);
        name[7] = 'x';
        json_object_set_new(json, name, json_null());
    }
    assert_int_equal(api_validate(json, &findings), 0);
    assert_true(findings.count > 0 && findings.count <= 100);
    for (size_t i = 0; i < findings.count; i++)
        assert_true(strlen(findings.items[i].field) < 100);
    api_findings_clear(&findings);

    assert_int_equal(api_validate(NULL, &findings), 1);
    api_findings_clear(&findings);
    assert_int_equal(api_parse(NULL, &mpa, &err), -1);
}

/* --- wrong types everywhere ------------------------------------------------------------------ */
static void check_agreement(const json_t *root)
{
    struct api_findings findings;
    struct api_mpa mpa;
    struct error err = {0};
    size_t errors = api_validate(root, &findings);
    int parsed = api_parse(root, &mpa, &err);

    assert_int_equal(parsed == 0, errors == 0);
    if (errors > 0) {
        cleanup_free char *first = NULL;
        for (size_t i = 0; i < findings.count && !first; i++) {
            if (!findings.items[i].warning)
                first = xasprintf("%s: %s", findings.items[i].field, findings.items[i].message);
        }
        assert_string_equal(err.message, first);
    }
    api_findings_clear(&findings);
    api_clear(&mpa);
}

static json_t *const *odd_values(void)
{
    static json_t *values[10];
    static const char *const texts[] = {"null", "true",  "-1",     "1.5", "9223372036854775807",
                                        "\"\"", "\"x\"", "[[[]]]", "{}",  "{\"name\": [1]}"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        json_decref(values[i]);
        values[i] = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        assert_non_null(values[i]);
    }
    return values;
}

/* Puts every odd value in the place of every member and item below at. */
static void replace_all(json_t *root, json_t *at, json_t *const *odd)
{
    const char *key;
    json_t *value;
    size_t index;

    json_object_foreach (at, key, value) {
        json_incref(value);
        replace_all(root, value, odd);
        for (size_t i = 0; i < 10; i++) {
            json_object_set(at, key, odd[i]);
            check_agreement(root);
        }
        json_object_set_new(at, key, value);
    }
    json_array_foreach (at, index, value) {
        json_incref(value);
        replace_all(root, value, odd);
        for (size_t i = 0; i < 10; i++) {
            json_array_set(at, index, odd[i]);
            check_agreement(root);
        }
        json_array_set_new(at, index, value);
    }
}

static void survives_any_type_anywhere(void **state)
{
    (void)state;
    cleanup_json json_t *json = from_yaml(full);
    json_t *const *odd = odd_values();

    for (size_t i = 0; i < 10; i++)
        check_agreement(odd[i]);
    replace_all(json, json, odd);
    check_agreement(json);
    for (size_t i = 0; i < 10; i++)
        json_decref(odd[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_defaults),
        cmocka_unit_test(parses_default_behavior),
        cmocka_unit_test(parses_everything),
        cmocka_unit_test(parses_variants),
        cmocka_unit_test(parses_a_boost),
        cmocka_unit_test(finds_container_policy),
        cmocka_unit_test(queue_proxy_of_knative_is_left_alone),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(accepts_what_is_right),
        cmocka_unit_test(warns_of_unknown_fields),
        cmocka_unit_test(replicas_and_memory_of_an_action_are_left_alone),
        cmocka_unit_test(bounds_its_findings),
        cmocka_unit_test(survives_any_type_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
