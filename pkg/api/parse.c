/* A valid object into its struct, with the defaults of a spec that leaves things out. */
#include "kube/kube.h"
#include "schema.h"

#include <string.h>

#define DEFAULT_PERCENTILE      99
#define DEFAULT_CPU_UTILIZATION 70
#define DEFAULT_RECOMMENDER     "threshold"

/* HPA v2's behaviour when nothing is said. */
static const struct api_rules default_scale_up = {
    .stabilization_s = 0,
    .select = API_SELECT_MAX,
    .tolerance = 0.1,
    .policies = {{.type = API_POLICY_PODS, .value = 4, .period_s = 15},
                 {.type = API_POLICY_PERCENT, .value = 100, .period_s = 15}},
    .policy_count = 2,
};
static const struct api_rules default_scale_down = {
    .stabilization_s = 300,
    .select = API_SELECT_MAX,
    .tolerance = 0.1,
    .policies = {{.type = API_POLICY_PERCENT, .value = 100, .period_s = 15}},
    .policy_count = 1,
};

static const struct api_container no_policy = {
    .name = NULL,
    .min = {API_ABSENT, API_ABSENT},
    .max = {API_ABSENT, API_ABSENT},
};
static const struct api_container hands_off = {
    .off = true, .min = {API_ABSENT, API_ABSENT}, .max = {API_ABSENT, API_ABSENT}};

/* --- members of a valid object -------------------------------------------------------------- */
static char *read_string(const json_t *object, const char *name)
{
    return xstrdup(json_string_value(api_member(object, name)));
}

static bool member_is(const json_t *object, const char *name, const char *text)
{
    return strcmp(json_str(api_member(object, name)), text) == 0;
}

static int32_t read_int(const json_t *object, const char *name, int32_t otherwise)
{
    int64_t value = 0;
    return api_integer(api_member(object, name), &value) ? (int32_t)value : otherwise;
}

static double read_number(const json_t *object, const char *name, double otherwise)
{
    const json_t *value = api_member(object, name);
    return value ? json_number_value(value) : otherwise;
}

static int64_t read_time(const json_t *object, const char *name)
{
    int64_t ms = 0;
    const char *text = json_str(api_member(object, name));
    return *text && time_parse(text, &ms) == 0 ? ms : 0;
}

/* --- goals ---------------------------------------------------------------------------------- */
static void parse_metric(const json_t *json, struct api_metric *out)
{
    bool whole_pod = member_is(json, "type", "Resource");
    const json_t *source = api_member(json, whole_pod ? "resource" : "containerResource");
    const json_t *target = api_member(source, "target");

    out->resource = member_is(source, "name", "memory") ? API_MEMORY : API_CPU;
    out->container = whole_pod ? NULL : read_string(source, "container");
    out->utilization = read_int(target, "averageUtilization", 0);
    out->average_value = api_amount(api_member(target, "averageValue"), out->resource);
}

static void parse_metrics(const json_t *metrics, struct api_spec *spec)
{
    bool cpu = false;

    for (size_t i = 0; i < json_array_size(metrics) && i < API_MAX_METRICS; i++) {
        struct api_metric *metric = &spec->metrics[spec->metric_count++];
        parse_metric(json_array_get(metrics, i), metric);
        cpu = cpu || metric->resource == API_CPU;
    }
    /* Whoever decides, the threshold recommender must have something to stand on. */
    if (cpu || spec->metric_count == API_MAX_METRICS)
        return;
    spec->has_default_metric = true;
    spec->metrics[spec->metric_count++] = (struct api_metric){
        .resource = API_CPU, .utilization = DEFAULT_CPU_UTILIZATION, .average_value = API_ABSENT};
}

static int parse_goals(const json_t *goals, struct api_spec *spec, struct error *err)
{
    const json_t *latency = api_member(goals, "latency");

    spec->latency_percentile = read_number(latency, "percentile", DEFAULT_PERCENTILE);
    spec->latency_query = read_string(latency, "query");
    parse_metrics(api_member(goals, "metrics"), spec);
    if (!latency)
        return 0;
    return duration_parse(json_str(api_member(latency, "target")), &spec->latency_target_us, err);
}

/* --- constraints ---------------------------------------------------------------------------- */
static enum api_select parse_select(const json_t *rules)
{
    if (member_is(rules, "selectPolicy", "Min"))
        return API_SELECT_MIN;
    return member_is(rules, "selectPolicy", "Disabled") ? API_SELECT_DISABLED : API_SELECT_MAX;
}

static void parse_rules(const json_t *rules, const struct api_rules *defaults,
                        struct api_rules *out)
{
    const json_t *policies = api_member(rules, "policies");

    *out = *defaults;
    out->stabilization_s = read_int(rules, "stabilizationWindowSeconds", out->stabilization_s);
    out->tolerance = read_number(rules, "tolerance", out->tolerance);
    out->select = parse_select(rules);
    if (!policies)
        return;
    out->policy_count = 0;
    for (size_t i = 0; i < json_array_size(policies) && i < API_MAX_POLICIES; i++) {
        const json_t *policy = json_array_get(policies, i);
        size_t n = out->policy_count++;
        out->policies[n].type =
            member_is(policy, "type", "Pods") ? API_POLICY_PODS : API_POLICY_PERCENT;
        out->policies[n].value = read_int(policy, "value", 0);
        out->policies[n].period_s = read_int(policy, "periodSeconds", 0);
    }
}

static void parse_global(const json_t *global, struct api_spec *spec)
{
    const json_t *behavior = api_member(global, "behavior");

    spec->min_replicas = read_int(global, "minReplicas", 1);
    spec->max_replicas = read_int(global, "maxReplicas", 1);
    parse_rules(api_member(behavior, "scaleUp"), &default_scale_up, &spec->scale_up);
    parse_rules(api_member(behavior, "scaleDown"), &default_scale_down, &spec->scale_down);
}

static void parse_controlled(const json_t *resources, struct api_spec *spec)
{
    spec->controls[API_CPU] = resources == NULL;
    for (size_t i = 0; i < json_array_size(resources); i++) {
        bool memory = strcmp(json_str(json_array_get(resources, i)), "memory") == 0;
        spec->controls[memory ? API_MEMORY : API_CPU] = true;
    }
}

static void parse_container(const json_t *json, struct api_container *out)
{
    const json_t *requests = api_member(json, "requests");
    const json_t *min = api_member(requests, "minAllowed");
    const json_t *max = api_member(requests, "maxAllowed");

    out->name = read_string(json, "name");
    out->off = member_is(json, "mode", "Off");
    out->requests_only = member_is(json, "controlledValues", "RequestsOnly");
    for (int r = 0; r < API_RESOURCE_COUNT; r++) {
        out->min[r] = api_amount(api_member(min, api_resource_names[r]), (enum api_resource)r);
        out->max[r] = api_amount(api_member(max, api_resource_names[r]), (enum api_resource)r);
    }
}

static void parse_constraints(const json_t *constraints, struct api_spec *spec)
{
    const json_t *containers = api_member(constraints, "container");

    parse_global(api_member(constraints, "global"), spec);
    parse_controlled(api_member(constraints, "containerControlledResources"), spec);
    for (size_t i = 0; i < json_array_size(containers) && i < API_MAX_CONTAINERS; i++)
        parse_container(json_array_get(containers, i), &spec->containers[spec->container_count++]);
}

/* --- the whole ------------------------------------------------------------------------------ */
static enum api_mode parse_mode(const json_t *policy)
{
    if (member_is(policy, "updateMode", "Off"))
        return API_MODE_OFF;
    return member_is(policy, "updateMode", "Initial") ? API_MODE_INITIAL : API_MODE_AUTO;
}

/* OpenWhisk makes as many pods of an action as its load needs, and keeps account of their memory.
 */
static void leave_to_openwhisk(const json_t *global, struct api_spec *spec)
{
    if (spec->controls[API_MEMORY]) {
        spec->unsupported.reason = "MemoryUnsupported";
        spec->unsupported.message =
            "OpenWhisk keeps account of the memory of its actions: it is left "
            "as it is, and only CPU is set; take memory out of "
            "containerControlledResources";
    }
    if (api_member(global, "maxReplicas") || spec->min_replicas > 1) {
        spec->unsupported.reason = "ReplicasUnsupported";
        spec->unsupported.message = "OpenWhisk makes as many pods of an action as its load needs: "
                                    "replicas cannot be set, and only CPU is; take minReplicas and "
                                    "maxReplicas out of constraints.global";
    }
    spec->controls[API_MEMORY] = false;
    spec->min_replicas = 1;
    spec->max_replicas = API_MAX_REPLICAS;
}

static void parse_boost(const json_t *cpu, struct api_boost *out)
{
    int64_t more = api_amount(api_member(cpu, "quantity"), API_CPU);

    out->factor = read_int(cpu, "factor", 0);
    out->more_milli = more == API_ABSENT ? 0 : more;
    out->duration_s = read_int(cpu, "durationSeconds", 0);
}

static int parse_spec(const json_t *json, struct api_spec *spec, struct error *err)
{
    const json_t *target = api_member(json, "scaleTargetRef");
    const json_t *recommenders = api_member(json, "recommenders");
    const json_t *policy = api_member(json, "policy");

    spec->target_api_version = read_string(target, "apiVersion");
    spec->target_kind = read_string(target, "kind");
    spec->target_name = read_string(target, "name");
    spec->mode = parse_mode(policy);
    spec->harvest_group = read_string(policy, "harvestGroup");
    parse_boost(api_member(api_member(policy, "startupBoost"), "cpu"), &spec->boost);
    spec->knative_own = member_is(policy, "knative", "Own");
    spec->recommender = read_string(json_array_get(recommenders, 0), "name");
    if (!spec->recommender)
        spec->recommender = xstrdup(DEFAULT_RECOMMENDER);
    parse_constraints(api_member(json, "constraints"), spec);
    spec->is_action = api_is_action(target);
    if (spec->is_action)
        leave_to_openwhisk(api_member(api_member(json, "constraints"), "global"), spec);
    return parse_goals(api_member(json, "goals"), spec, err);
}

static void parse_metadata(const json_t *metadata, struct api_mpa *out)
{
    out->namespace_ = read_string(metadata, "namespace");
    out->name = read_string(metadata, "name");
    out->uid = read_string(metadata, "uid");
    out->resource_version = read_string(metadata, "resourceVersion");
    out->generation = json_integer_value(api_member(metadata, "generation"));
    out->created_ms = read_time(metadata, "creationTimestamp");
    out->deleting = api_member(metadata, "deletionTimestamp") != NULL;
    out->paused = member_is(api_member(metadata, "annotations"), API_PAUSE_ANNOTATION, "true");
}

int api_parse(const json_t *object, struct api_mpa *out, struct error *err)
{
    *out = (struct api_mpa){0};
    if (api_check(object, err) < 0)
        return -1;
    parse_metadata(api_member(object, "metadata"), out);
    if (parse_spec(api_member(object, "spec"), &out->spec, err) < 0) {
        api_clear(out);
        return -1;
    }
    out->status = json_incref((json_t *)api_member(object, "status"));
    return 0;
}

static void clear_spec(struct api_spec *spec)
{
    free(spec->target_api_version);
    free(spec->target_kind);
    free(spec->target_name);
    free(spec->latency_query);
    free(spec->recommender);
    free(spec->harvest_group);
    for (size_t i = 0; i < spec->metric_count; i++)
        free(spec->metrics[i].container);
    for (size_t i = 0; i < spec->container_count; i++)
        free(spec->containers[i].name);
}

void api_clear(struct api_mpa *mpa)
{
    free(mpa->namespace_);
    free(mpa->name);
    free(mpa->uid);
    free(mpa->resource_version);
    clear_spec(&mpa->spec);
    json_decref(mpa->status);
    *mpa = (struct api_mpa){0};
}

void api_use_default_utilization(struct api_spec *spec, int32_t per_cent)
{
    if (spec->has_default_metric)
        spec->metrics[spec->metric_count - 1].utilization = per_cent;
}

const struct api_container *api_container_policy(const struct api_spec *spec, const char *name)
{
    const struct api_container *others = &no_policy;

    if (strcmp(name, API_QUEUE_PROXY) == 0 && spec->target_api_version &&
        strncmp(spec->target_api_version, "serving.knative.dev/", 20) == 0)
        return &hands_off;
    if (spec->is_action && strcmp(name, KUBE_ACTION_CONTAINER) != 0)
        return &hands_off;
    for (size_t i = 0; i < spec->container_count; i++) {
        if (strcmp(spec->containers[i].name, name) == 0)
            return &spec->containers[i];
        if (strcmp(spec->containers[i].name, "*") == 0)
            others = &spec->containers[i];
    }
    return others;
}

const char *api_mode_name(enum api_mode mode)
{
    static const char *const names[] = {"Off", "Initial", "Auto"};
    return names[mode];
}

bool api_boosts(const struct api_spec *spec)
{
    return spec->boost.factor > 1 || spec->boost.more_milli > 0;
}
