/* HorizontalPodAutoscaler: autoscaling/v2, v2beta2 (the same fields) and v1. */
#include "convert.h"

#include <stdio.h>
#include <string.h>

void convert_bounds(struct convert_mpa *mpa, const struct convert_source *source,
                    const char *min_path, int64_t min, const char *max_path, int64_t max)
{
    if (min == 0) {
        convert_note(mpa, source, min_path,
                     "an MPA does not scale to zero: 1 (for a Knative Service its own autoscaler "
                     "does, beside the MPA)");
        min = 1;
    }
    if (mpa->max_replicas < 0) {
        mpa->min_replicas = min;
        mpa->max_replicas = max;
    } else if (mpa->min_replicas != min || mpa->max_replicas != max) {
        convert_note(mpa, source, max_path,
                     "another autoscaler of the target has the bounds %lld to %lld: they are kept",
                     (long long)mpa->min_replicas, (long long)mpa->max_replicas);
    }
}

void convert_add_metric(struct convert_mpa *mpa, json_t *metric)
{
    for (size_t i = 0; i < json_array_size(mpa->metrics); i++) {
        if (json_equal(json_array_get(mpa->metrics, i), metric)) {
            json_decref(metric);
            return;
        }
    }
    json_array_append_new(mpa->metrics, metric);
}

/* --- behavior -------------------------------------------------------------------------------- */
/* HPA has it as a quantity, "0.05" or 50m. */
static int take_tolerance(const struct convert_source *source, json_t *rules, const char *path,
                          json_t *out, struct error *err)
{
    cleanup_json json_t *value = convert_take(rules, "tolerance");
    char *end;
    if (value == NULL)
        return 0;
    if (json_is_number(value)) {
        json_object_set(out, "tolerance", value);
        return 0;
    }
    double share = strtod(json_str(value), &end);
    if (strcmp(end, "m") == 0)
        share /= 1000;
    else if (*end || *json_str(value) == '\0')
        return convert_fail(source, path, err, "must be a share such as 0.05");
    json_object_set_new(out, "tolerance", json_real(share));
    return 0;
}

static int take_rules(const struct convert_source *source, const char *path, json_t *behavior,
                      const char *direction, struct error *err)
{
    static const char *const same[] = {"stabilizationWindowSeconds", "selectPolicy", "policies"};
    cleanup_free char *at = xasprintf("%s.%s", path, direction);
    json_t *rules;
    if (convert_object(source, at, &rules, err) < 0)
        return -1;
    if (rules == NULL)
        return 0;
    cleanup_json json_t *out = json_object();
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        json_t *value = convert_take(rules, same[i]);
        if (value)
            json_object_set_new(out, same[i], value);
    }
    const json_t *policies = json_object_get(out, "policies");
    if (json_is_array(policies) && json_array_size(policies) == 0)
        json_object_del(out, "policies");
    if (take_tolerance(source, rules, at, out, err) < 0)
        return -1;
    if (json_object_size(out) > 0)
        json_object_set(behavior, direction, out);
    return 0;
}

int convert_behavior(struct convert_mpa *mpa, const struct convert_source *source, const char *path,
                     struct error *err)
{
    cleanup_json json_t *behavior = json_object();
    if (take_rules(source, path, behavior, "scaleUp", err) < 0 ||
        take_rules(source, path, behavior, "scaleDown", err) < 0)
        return -1;
    if (json_object_size(behavior) == 0)
        return 0;
    if (mpa->behavior == NULL)
        mpa->behavior = json_incref(behavior);
    else if (!json_equal(mpa->behavior, behavior))
        convert_note(mpa, source, path, "another autoscaler of the target has one: that is kept");
    return 0;
}

/* --- metrics --------------------------------------------------------------------------------- */
static bool is_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Whether an MPA can have it as it is. */
static bool can_be_goal(const json_t *metric, const char *type)
{
    static const char *const resources[] = {"cpu", "memory"};
    static const char *const targets[] = {"Utilization", "AverageValue"};
    bool whole = strcmp(type, "Resource") == 0;
    const json_t *of = json_object_get(metric, whole ? "resource" : "containerResource");
    const json_t *target = json_object_get(of, "target");
    return (whole || strcmp(type, "ContainerResource") == 0) && json_object_size(metric) == 2 &&
           json_object_size(of) == (whole ? 2u : 3u) && json_object_size(target) == 2 &&
           is_any(json_str(json_object_get(of, "name")), resources, ARRAY_LEN(resources)) &&
           is_any(json_str(json_object_get(target, "type")), targets, ARRAY_LEN(targets));
}

static int take_metrics(struct convert_mpa *mpa, const struct convert_source *source,
                        struct error *err)
{
    static const char *const types[] = {"Resource", "ContainerResource", "Pods", "Object",
                                        "External"};
    json_t *list;
    if (convert_list(source, "spec.metrics", &list, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *metric = json_array_get(list, i);
        const char *type = json_str(json_object_get(metric, "type"));
        cleanup_free char *path = xasprintf("spec.metrics[%zu].type", i);
        if (!is_any(type, types, ARRAY_LEN(types)))
            return convert_fail(source, path, err,
                                "must be Resource, ContainerResource, Pods, Object or External");
        if (!can_be_goal(metric, type))
            continue;
        convert_add_metric(mpa, json_incref(metric));
        json_array_set_new(list, i, json_null()); /* the others keep their places */
    }
    return 0;
}

static json_t *cpu_metric(int64_t per_cent)
{
    return json_pack("{s:s,s:{s:s,s:{s:s,s:I}}}", "type", "Resource", "resource", "name", "cpu",
                     "target", "type", "Utilization", "averageUtilization", (json_int_t)per_cent);
}

int convert_hpa(struct convert_mpa *mpa, const struct convert_source *source, struct error *err)
{
    int64_t min = 1, max = -1, per_cent = INT64_MAX;
    json_t *spec;
    if (convert_object(source, "spec", &spec, err) < 0 ||
        convert_integer(source, spec, "spec.minReplicas", &min, err) < 0 ||
        convert_integer(source, spec, "spec.maxReplicas", &max, err) < 0 ||
        convert_integer(source, spec, "spec.targetCPUUtilizationPercentage", &per_cent, err) < 0)
        return -1;
    if (max < 1)
        return convert_fail(source, "spec.maxReplicas", err, "must be given, and be at least 1");
    if (min < 0 || min > max)
        return convert_fail(source, "spec.minReplicas", err,
                            "must not be negative, nor more than maxReplicas");
    if (per_cent < 1)
        return convert_fail(source, "spec.targetCPUUtilizationPercentage", err,
                            "must be at least 1");
    convert_bounds(mpa, source, "spec.minReplicas", min, "spec.maxReplicas", max);
    mpa->horizontal = true;
    bool none = json_array_size(json_object_get(spec, "metrics")) == 0;
    if (take_metrics(mpa, source, err) < 0 ||
        convert_behavior(mpa, source, "spec.behavior", err) < 0)
        return -1;
    if (per_cent < INT64_MAX)
        convert_add_metric(mpa, cpu_metric(per_cent));
    else if (none) /* what the API server fills in */
        convert_add_metric(mpa, cpu_metric(80));
    return 0;
}
