/* KEDA's ScaledObject, keda.sh/v1alpha1. */
#include "convert.h"

#include <stdio.h>
#include <string.h>

/* --- triggers -------------------------------------------------------------------------------- */
/* A trigger of cpu or memory as a metric of HPA; NULL: it cannot be one. */
static json_t *metric_of(const json_t *trigger)
{
    const json_t *metadata = json_object_get(trigger, "metadata");
    const char *resource = json_str(json_object_get(trigger, "type"));
    const char *kind = json_str(json_object_get(trigger, "metricType"));
    const char *container = json_str(json_object_get(metadata, "containerName"));
    const json_t *value = json_object_get(metadata, "value");
    if (*kind == '\0')
        kind = json_str(json_object_get(metadata, "type")); /* as it was before KEDA 2.9 */
    if (*kind == '\0')
        kind = "Utilization";
    cleanup_json json_t *target = json_pack("{s:s}", "type", kind);
    if (strcmp(kind, "Utilization") == 0) {
        long long per_cent = json_is_integer(value) ? (long long)json_integer_value(value)
                                                    : strtoll(json_str(value), NULL, 10);
        json_object_set_new(target, "averageUtilization", json_integer(per_cent));
    } else {
        json_object_set(target, "averageValue", (json_t *)(uintptr_t)value);
    }
    if (*container)
        return json_pack("{s:s,s:{s:s,s:s,s:O}}", "type", "ContainerResource", "containerResource",
                         "name", resource, "container", container, "target", target);
    return json_pack("{s:s,s:{s:s,s:O}}", "type", "Resource", "resource", "name", resource,
                     "target", target);
}

/* What a trigger of cpu or memory says beside its goal. */
static void note_others(struct convert_mpa *mpa, const struct convert_source *source,
                        const json_t *trigger, const char *path)
{
    static const char *const read[] = {"type", "metricType", "metadata"};
    static const char *const inside[] = {"value", "type", "containerName"};
    cleanup_json json_t *rest = json_deep_copy(trigger);
    json_t *metadata = json_object_get(rest, "metadata"), *value;
    const char *key, *kind = json_str(json_object_get(rest, "metricType"));
    bool other = *kind && strcmp(kind, json_str(json_object_get(metadata, "type"))) != 0;
    for (size_t i = 0; i < ARRAY_LEN(inside); i++)
        if (!other || strcmp(inside[i], "type") != 0) /* metricType decides: type is told */
            json_object_del(metadata, inside[i]);
    json_object_foreach (metadata, key, value) {
        cleanup_free char *at = xasprintf("%s.metadata.%s", path, key);
        convert_note(mpa, source, at, CONVERT_NO_COUNTERPART);
    }
    for (size_t i = 0; i < ARRAY_LEN(read); i++)
        json_object_del(rest, read[i]);
    json_object_foreach (rest, key, value) {
        cleanup_free char *at = xasprintf("%s.%s", path, key);
        convert_note(mpa, source, at, CONVERT_NO_COUNTERPART);
    }
}

static bool utilizes(const json_t *metric)
{
    const json_t *whole = json_path(metric, "resource", "target", NULL);
    const json_t *target = whole ? whole : json_path(metric, "containerResource", "target", NULL);
    return strcmp(json_str(json_object_get(target, "type")), "Utilization") == 0;
}

static bool is_number(const json_t *value)
{
    const char *text = json_str(value);
    return json_is_integer(value) || (*text && text[strspn(text, "0123456789")] == '\0');
}

static int check_texts(const struct convert_source *source, const json_t *trigger, const char *path,
                       struct error *err)
{
    const json_t *metadata = json_object_get(trigger, "metadata");
    cleanup_free char *below = xasprintf("%s.metadata", path);
    if (convert_text(source, trigger, path, "metricType", err) < 0 ||
        convert_text(source, metadata, below, "type", err) < 0 ||
        convert_text(source, metadata, below, "containerName", err) < 0)
        return -1;
    return 0;
}

static int take_trigger(struct convert_mpa *mpa, const struct convert_source *source, json_t *list,
                        size_t i, struct error *err)
{
    json_t *trigger = json_array_get(list, i);
    const char *type = json_str(json_object_get(trigger, "type"));
    const json_t *value = json_path(trigger, "metadata", "value", NULL);
    cleanup_free char *path = xasprintf("spec.triggers[%zu]", i);
    if (*type == '\0')
        return convert_fail(source, path, err,
                            "type must name a scaler, such as cpu or prometheus");
    if (strcmp(type, "cpu") != 0 && strcmp(type, "memory") != 0)
        return 0;
    if (check_texts(source, trigger, path, err) < 0)
        return -1;
    json_t *metric = metric_of(trigger);
    if (!is_number(value) && (*json_str(value) == '\0' || utilizes(metric))) {
        json_decref(metric);
        return convert_fail(source, path, err,
                            "metadata.value must be a number such as \"60\", or an "
                            "amount with metricType AverageValue");
    }
    note_others(mpa, source, trigger, path);
    convert_add_metric(mpa, metric);
    json_array_set_new(list, i, json_null());
    return 0;
}

static int take_triggers(struct convert_mpa *mpa, const struct convert_source *source,
                         struct error *err)
{
    json_t *list;
    if (convert_list(source, "spec.triggers", &list, err) < 0)
        return -1;
    if (json_array_size(list) == 0)
        return convert_fail(source, "spec.triggers", err, "must have one trigger at least");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (take_trigger(mpa, source, list, i, err) < 0)
            return -1;
    return 0;
}

/* --- held by annotations --------------------------------------------------------------------- */
static void forbid(struct convert_mpa *mpa, const char *direction)
{
    if (mpa->behavior == NULL)
        mpa->behavior = json_object();
    json_t *rules = json_object_get(mpa->behavior, direction);
    if (rules == NULL) {
        rules = json_object();
        json_object_set_new(mpa->behavior, direction, rules);
    }
    json_object_set_new(rules, "selectPolicy", json_string("Disabled"));
}

static const struct held {
    const char *key, *direction, *note;
} known[] = {
    {CONVERT_KEDA "paused", NULL, NULL},
    {CONVERT_KEDA "paused-replicas", NULL, "the MPA is paused, at the replicas there are"},
    {CONVERT_KEDA "paused-scale-in", "scaleDown", NULL},
    {CONVERT_KEDA "paused-scale-out", "scaleUp", NULL},
};

static const struct held *find_held(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].key, key) == 0)
            return &known[i];
    return NULL;
}

/* Their annotations are not copied: each is carried over, or noted. */
static void take_annotations(struct convert_mpa *mpa, const struct convert_source *source)
{
    json_t *all = json_path(source->object, "metadata", "annotations", NULL), *value;
    const char *key;
    json_object_foreach (all, key, value) {
        const struct held *held = find_held(key);
        const char *note = held ? held->note : CONVERT_NO_COUNTERPART;
        cleanup_free char *path = xasprintf("metadata.annotations.%s", key);
        if (strncmp(key, CONVERT_KEDA, strlen(CONVERT_KEDA)) != 0 ||
            (held && (*json_str(value) == '\0' || strcmp(json_str(value), "false") == 0)))
            continue;
        if (held && held->direction)
            forbid(mpa, held->direction);
        else if (held)
            json_object_set_new(mpa->annotations, API_PAUSE_ANNOTATION, json_string("true"));
        if (note)
            convert_note(mpa, source, path, "%s", note);
    }
}

int convert_keda(struct convert_mpa *mpa, const struct convert_source *source, struct error *err)
{
    int64_t min = 0, max = 100; /* KEDA's own */
    json_t *spec;
    if (convert_object(source, "spec", &spec, err) < 0 ||
        convert_integer(source, spec, "spec.minReplicaCount", &min, err) < 0 ||
        convert_integer(source, spec, "spec.maxReplicaCount", &max, err) < 0)
        return -1;
    if (max < 1)
        return convert_fail(source, "spec.maxReplicaCount", err, "must be at least 1");
    if (min < 0 || min > max)
        return convert_fail(source, "spec.minReplicaCount", err,
                            "must not be negative, nor more than maxReplicaCount");
    convert_bounds(mpa, source, "spec.minReplicaCount", min, "spec.maxReplicaCount", max);
    mpa->horizontal = true;
    if (take_triggers(mpa, source, err) < 0 ||
        convert_behavior(mpa, source, "spec.advanced.horizontalPodAutoscalerConfig.behavior", err) <
            0)
        return -1;
    take_annotations(mpa, source);
    return 0;
}
