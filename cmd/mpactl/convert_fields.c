/* The fields of autoscalers: taken one by one, and what nobody has taken is told. */
#include "convert.h"

#include <stdio.h>
#include <string.h>

static char *place_of(const struct convert_source *s, const char *path)
{
    cleanup_free char *whole = xasprintf("%s%s", s->prefix, path);
    return xasprintf("%s:%zu", s->file, yaml_line(s->text, s->len, s->document, whole));
}

PRINTF_LIKE(1, 0) static char *format(const char *fmt, va_list args)
{
    char *text = NULL;
    return vasprintf(&text, fmt, args) < 0 ? xstrdup("") : text;
}

void convert_note(struct convert_mpa *mpa, const struct convert_source *source, const char *path,
                  const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cleanup_free char *message = format(fmt, args);
    va_end(args);
    cleanup_free char *place = place_of(source, path);
    mpa->notes = xrealloc(mpa->notes, mpa->note_count + 1, sizeof(*mpa->notes));
    mpa->notes[mpa->note_count++] = xasprintf("%s: %s: %s", place, path, message);
}

int convert_fail(const struct convert_source *source, const char *path, struct error *err,
                 const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cleanup_free char *message = format(fmt, args);
    va_end(args);
    cleanup_free char *place = place_of(source, path);
    return error_set(err, ERROR_INVALID, "%s: %s %s: %s: %s", place, source->kind,
                     *source->name ? source->name : "without a name", path, message);
}

/* --- taking ---------------------------------------------------------------------------------- */
json_t *convert_take(json_t *object, const char *key)
{
    json_t *value = json_incref(json_object_get(object, key));
    json_object_del(object, key);
    if (!json_is_null(value))
        return value;
    json_decref(value);
    return NULL;
}

/* Along the keys between dots. */
static json_t *at_path(json_t *root, const char *path)
{
    json_t *at = root;
    for (const char *p = path; at && *p;) {
        size_t len = strcspn(p, ".");
        cleanup_free char *key = xasprintf("%.*s", (int)len, p);
        at = json_object_get(at, key);
        p += len + (p[len] == '.');
    }
    return json_is_null(at) ? NULL : at;
}

int convert_object(const struct convert_source *source, const char *path, json_t **out,
                   struct error *err)
{
    *out = at_path(source->object, path);
    if (*out && !json_is_object(*out))
        return convert_fail(source, path, err, "must be a mapping");
    return 0;
}

int convert_list(const struct convert_source *source, const char *path, json_t **out,
                 struct error *err)
{
    *out = at_path(source->object, path);
    if (*out && !json_is_array(*out))
        return convert_fail(source, path, err, "must be a list");
    return 0;
}

int convert_integer(const struct convert_source *source, json_t *object, const char *path,
                    int64_t *out, struct error *err)
{
    const char *dot = strrchr(path, '.');
    cleanup_json json_t *value = convert_take(object, dot ? dot + 1 : path);
    if (value && !json_is_integer(value))
        return convert_fail(source, path, err, "must be a whole number");
    if (value)
        *out = json_integer_value(value);
    return 0;
}

int convert_text(const struct convert_source *source, const json_t *object, const char *path,
                 const char *key, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    cleanup_free char *at = xasprintf("%s.%s", path, key);
    if (value == NULL || json_is_null(value) || json_is_string(value))
        return 0;
    return convert_fail(source, at, err, "must be text: put it in quotes");
}

/* --- what is left ---------------------------------------------------------------------------- */
/* By the path without its indices; with a dot at the end, of all that is right below. */
static const struct {
    const char *path, *message;
} sentences[] = {
    {"spec.metrics[]",
     "goals of an MPA are latency and the usage of cpu and memory: this metric is "
     "left out; --latency, or spec.goals.latency.query, may take its place"},
    {"spec.triggers[]", "goals of an MPA are latency and the usage of cpu and memory: this trigger "
                        "is left out; --latency, or spec.goals.latency.query, may take its place"},
    {"spec.updatePolicy.minReplicas", "an MPA evicts no pods, whatever their number: left out"},
    {"spec.updatePolicy.evictionRequirements", "an MPA evicts no pods: left out"},
    {"spec.updatePolicy.evictAfterOOMSeconds", "an MPA evicts no pods: left out"},
    {"spec.recommenders", "a recommender of VPA is none of an MPA's: left out; see "
                          "spec.recommenders of the MPA"},
    {"spec.resourcePolicy.containerPolicies[].minAllowed.",
     "only cpu and memory have bounds: left out"},
    {"spec.resourcePolicy.containerPolicies[].maxAllowed.",
     "only cpu and memory have bounds: left out"},
    {"spec.resourcePolicy.containerPolicies[].startupBoost",
     "an MPA boosts all containers alike (spec.policy.startupBoost): left out"},
    {"spec.pollingInterval", "the controller looks at its own interval (--interval): left out"},
    {"spec.cooldownPeriod", "is for scale to zero, which an MPA does not: left out"},
    {"spec.initialCooldownPeriod", "is for scale to zero, which an MPA does not: left out"},
    {"spec.idleReplicaCount", "an MPA has no replica count for idle times: left out"},
    {"spec.fallback", "where figures are missing an MPA holds what it has: left out"},
    {"spec.advanced.restoreToOriginalReplicaCount",
     "deleting an MPA leaves the replicas as they are: left out"},
    {"spec.advanced.scalingModifiers", "an MPA does not reckon with formulas: left out"},
    {"spec.advanced.horizontalPodAutoscalerConfig.name", "an MPA makes no HPA: left out"},
    {"spec.scaleTargetRef.envSourceContainerName", "is for credentials of triggers: left out"},
    {"metadata.ownerReferences", "who made it would not make the MPA: left out"},
};

static const char *sentence_for(const char *path)
{
    char plain[256];
    size_t n = 0;
    for (const char *p = path; *p && n + 1 < sizeof(plain); p++) {
        plain[n++] = *p;
        if (*p == '[')
            p += strspn(p + 1, "0123456789");
    }
    plain[n] = '\0';
    const char *last = strrchr(plain, '.');
    size_t above = last ? (size_t)(last - plain) + 1 : 0;
    for (size_t i = 0; i < ARRAY_LEN(sentences); i++) {
        size_t len = strlen(sentences[i].path);
        bool below = len == above && sentences[i].path[len - 1] == '.';
        if (strncmp(sentences[i].path, plain, len) == 0 && (below || plain[len] == '\0'))
            return sentences[i].message;
    }
    return NULL;
}

static bool is_empty(const json_t *value)
{
    return json_is_null(value) || (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static void note_value(struct convert_mpa *mpa, const struct convert_source *source,
                       const char *path, json_t *value)
{
    const char *key, *sentence = sentence_for(path);
    json_t *member;
    size_t i;
    if (is_empty(value))
        return;
    if (sentence || (!json_is_object(value) && !json_is_array(value))) {
        convert_note(mpa, source, path, "%s", sentence ? sentence : CONVERT_NO_COUNTERPART);
        return;
    }
    json_object_foreach (value, key, member) {
        cleanup_free char *below = xasprintf("%s%s%s", path, *path ? "." : "", key);
        note_value(mpa, source, below, member);
    }
    json_array_foreach (value, i, member) {
        cleanup_free char *below = xasprintf("%s[%zu]", path, i);
        note_value(mpa, source, below, member);
    }
}

void convert_note_rest(struct convert_mpa *mpa, const struct convert_source *source)
{
    static const char *const filled_in[] = {
        "uid",         "resourceVersion",   "generation",
        "selfLink",    "creationTimestamp", "managedFields",
        "name",        "namespace",         "labels",
        "annotations", "generateName"}; /* by the API server, or done */
    json_t *metadata = json_object_get(source->object, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(filled_in); i++)
        json_object_del(metadata, filled_in[i]);
    json_object_del(source->object, "apiVersion");
    json_object_del(source->object, "kind");
    json_object_del(source->object, "status");
    note_value(mpa, source, "", source->object);
}
