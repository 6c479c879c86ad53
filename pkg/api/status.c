/* What is written to .status, and when a change of it is worth a write. */
#include "schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kube/kube.h"

#define MAX_REASON_TEXT  512
#define MAX_NAME_TEXT    64
#define FIGURE_TOLERANCE 0.1 /* a figure that moved less is not worth a write by itself */

static const char *const condition_names[API_COND_COUNT] = {
    [API_COND_READY] = "Ready",
    [API_COND_RECOMMENDATION_PROVIDED] = "RecommendationProvided",
    [API_COND_SCALING_ACTIVE] = "ScalingActive",
    [API_COND_ABLE_TO_SCALE] = "AbleToScale",
    [API_COND_SCALING_LIMITED] = "ScalingLimited",
    [API_COND_FALLBACK_ACTIVE] = "FallbackActive",
    [API_COND_CONFIG_UNSUPPORTED] = "ConfigUnsupported",
    [API_COND_RESIZE_PENDING] = "ResizePending",
    [API_COND_PAUSED] = "Paused",
};

const char *api_condition_name(enum api_condition condition)
{
    return condition_names[condition];
}

/* --- values --------------------------------------------------------------------------------- */
static void set_text(json_t *object, const char *key, const char *text, size_t max)
{
    json_object_set_new(object, key, json_text(text, max));
}

static void set_time(json_t *object, const char *key, int64_t wall_ms)
{
    char text[RFC3339_SIZE];

    time_format(wall_ms, text);
    json_object_set_new(object, key, json_string(text));
}

static void set_replicas(json_t *object, const char *key, int32_t replicas)
{
    if (replicas >= 0)
        json_object_set_new(object, key, json_integer(replicas));
}

/* As text: clients read numbers of JSON as they like. */
static void set_figure(json_t *object, const char *key, double figure)
{
    char text[32];

    snprintf(text, sizeof(text), "%.3f", figure);
    json_object_set_new(object, key, json_string(text));
}

static void set_amounts(json_t *object, const char *key, const int64_t amounts[])
{
    json_t *json = json_object();

    for (int r = 0; r < API_RESOURCE_COUNT; r++) {
        char text[QUANTITY_SIZE];
        if (amounts[r] == API_ABSENT)
            continue;
        if (r == API_CPU)
            quantity_print_cpu(amounts[r], text);
        else
            quantity_print_memory(amounts[r], text);
        json_object_set_new(json, api_resource_names[r], json_string(text));
    }
    if (json_object_size(json) > 0)
        json_object_set(object, key, json);
    json_decref(json);
}

/* --- parts ---------------------------------------------------------------------------------- */
static void set_latency(json_t *out, const struct api_status *status)
{
    char duration[24], text[64];

    if (!isnan(status->latency_us)) {
        duration_print(status->latency_us, duration);
        if (status->percentile == 99)
            snprintf(text, sizeof(text), "%s", duration);
        else
            snprintf(text, sizeof(text), "p%g %s", status->percentile, duration);
        json_object_set_new(out, "currentLatency", json_string(text));
    }
    if (status->latency_target_us > 0) {
        duration_print((double)status->latency_target_us, duration);
        json_object_set_new(out, "latencyGoal", json_string(duration));
    }
}

static void set_recommendation(json_t *out, const struct api_status *status)
{
    json_t *list = json_array();

    for (size_t i = 0; i < status->container_count && i < API_MAX_CONTAINERS; i++) {
        const struct api_container_status *container = &status->containers[i];
        json_t *item = json_object();
        set_text(item, "containerName", container->name, MAX_NAME_TEXT);
        set_amounts(item, "target", container->target);
        set_amounts(item, "lowerBound", container->lower);
        set_amounts(item, "upperBound", container->upper);
        set_amounts(item, "uncappedTarget", container->uncapped);
        json_array_append_new(list, item);
    }
    if (json_array_size(list) > 0)
        json_object_set_new(out, "recommendation",
                            json_pack("{s:O}", "containerRecommendations", list));
    json_decref(list);
}

static void set_decision(json_t *out, const struct api_status *status)
{
    json_t *decision = json_object();

    set_time(decision, "time", status->decision.time_ms);
    set_text(decision, "recommender", status->decision.recommender, MAX_NAME_TEXT);
    set_text(decision, "action", status->decision.action, MAX_NAME_TEXT);
    set_text(decision, "reason", status->decision.reason, MAX_REASON_TEXT);
    if (status->decision.observation)
        json_object_set(decision, "observation", (json_t *)status->decision.observation);
    json_object_set_new(out, "lastDecision", decision);
}

/* "Auto would have reserved 4.5 core-hours less than 12.4, with 12 late requests instead of 96". */
static void say_what_if(json_t *out, const struct api_status *status)
{
    char text[256];
    double saved = status->what_if.core_hours - status->what_if.core_hours_auto;
    int n = snprintf(text, sizeof(text), "Auto would have reserved %.1f core-hours %s than %.1f",
                     fabs(saved), saved >= 0 ? "less" : "more", status->what_if.core_hours);
    if (!isnan(status->what_if.late))
        snprintf(text + n, sizeof(text) - (size_t)n,
                 ", with %.0f late requests instead of %.0f (expected by a model)",
                 status->what_if.late_auto, status->what_if.late);
    json_object_set_new(out, "message", json_string(text));
}

static void set_what_if(json_t *out, const struct api_status *status)
{
    json_t *what_if = json_object();

    set_time(what_if, "since", status->what_if.since_ms);
    set_figure(what_if, "coreHours", status->what_if.core_hours);
    set_figure(what_if, "coreHoursAuto", status->what_if.core_hours_auto);
    if (!isnan(status->what_if.late)) {
        set_figure(what_if, "requests", status->what_if.requests);
        set_figure(what_if, "lateRequests", status->what_if.late);
        set_figure(what_if, "lateRequestsAuto", status->what_if.late_auto);
    }
    say_what_if(what_if, status);
    json_object_set_new(out, "whatIf", what_if);
}

/* --- conditions ----------------------------------------------------------------------------- */
static const json_t *find_condition(const json_t *status, const char *type)
{
    const json_t *list = json_object_get(status, "conditions");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (strcmp(json_str(json_object_get(item, "type")), type) == 0)
            return item;
    }
    return NULL;
}

static json_t *condition_json(const char *type, const struct api_condition_value *value,
                              const json_t *before, int64_t generation, int64_t now_ms)
{
    json_t *out = json_object();
    const char *status = value->status ? "True" : "False";
    const json_t *since = json_object_get(before, "lastTransitionTime");
    bool same = strcmp(json_str(json_object_get(before, "status")), status) == 0;

    json_object_set_new(out, "type", json_string(type));
    json_object_set_new(out, "status", json_string(status));
    json_object_set_new(out, "observedGeneration", json_integer(generation));
    if (same && json_is_string(since))
        json_object_set(out, "lastTransitionTime", (json_t *)since);
    else
        set_time(out, "lastTransitionTime", now_ms);
    /* The API server wants a reason; a condition without one is its own. */
    set_text(out, "reason", value->reason[0] ? value->reason : type, sizeof(value->reason) - 1);
    set_text(out, "message", value->message, sizeof(value->message) - 1);
    return out;
}

static void set_conditions(json_t *out, const struct api_status *status, const json_t *previous,
                           int64_t now_ms)
{
    json_t *list = json_array();

    for (size_t i = 0; i < API_COND_COUNT; i++) {
        const char *type = condition_names[i];
        if (status->conditions[i].known)
            json_array_append_new(list, condition_json(type, &status->conditions[i],
                                                       find_condition(previous, type),
                                                       status->observed_generation, now_ms));
    }
    json_object_set_new(out, "conditions", list);
}

json_t *api_status_json(const struct api_status *status, const json_t *previous, int64_t now_ms)
{
    json_t *out = json_object();

    json_object_set_new(out, "observedGeneration", json_integer(status->observed_generation));
    set_replicas(out, "currentReplicas", status->current_replicas);
    set_replicas(out, "desiredReplicas", status->desired_replicas);
    if (status->last_scale_ms > 0)
        set_time(out, "lastScaleTime", status->last_scale_ms);
    set_latency(out, status);
    set_recommendation(out, status);
    if (status->decision.time_ms > 0)
        set_decision(out, status);
    if (status->what_if.since_ms > 0)
        set_what_if(out, status);
    set_conditions(out, status, previous, now_ms);
    return out;
}

/* --- what is worth a write ------------------------------------------------------------------ */
enum weight {
    WEIGH_EXACT,  /* every change counts; objects and lists are looked into */
    WEIGH_FIGURE, /* an amount or duration: counts when it moved by more than the tolerance */
    WEIGH_WORDS,  /* a sentence: its numbers do not count */
    WEIGH_NOT,
};

static enum weight weight_of(const char *key)
{
    static const struct {
        const char *key;
        enum weight weight;
    } table[] = {
        {"time", WEIGH_NOT},
        {"observation", WEIGH_NOT},
        {"whatIf", WEIGH_NOT},
        {"lastTransitionTime", WEIGH_NOT}, /* changes with the condition's status only */
        {"reason", WEIGH_WORDS},
        {"message", WEIGH_WORDS},
        {"currentLatency", WEIGH_FIGURE},
        {"lowerBound", WEIGH_FIGURE},
        {"upperBound", WEIGH_FIGURE},
        {"uncappedTarget", WEIGH_FIGURE},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(key, table[i].key) == 0)
            return table[i].weight;
    }
    return WEIGH_EXACT;
}

/* Whether two texts are the same but for their numbers. */
static bool words_differ(const char *a, const char *b)
{
    static const char number[] = "0123456789.";

    while (*a && *b) {
        size_t digits_a = strspn(a, number), digits_b = strspn(b, number);
        if ((digits_a > 0) != (digits_b > 0) || (digits_a == 0 && *a != *b))
            return true;
        a += digits_a ? digits_a : 1;
        b += digits_b ? digits_b : 1;
    }
    return *a != *b;
}

/* "212ms", "p95 212ms", "250m", "64Mi" as a number; only figures of one kind are compared. */
static bool read_figure(const char *text, double *out)
{
    struct error unused;
    int64_t value = 0;
    const char *space = strchr(text, ' ');
    int found = duration_parse(space ? space + 1 : text, &value, &unused);
    size_t len = strlen(text);

    /* "250m" is both a quarter of a core and 250 minutes: relative to each other it is all one. */
    if (found < 0 || (len > 0 && text[len - 1] == 'm'))
        found = quantity_parse_milli(text, &value, &unused);
    *out = (double)value;
    return found == 0;
}

static bool figure_differs(const char *a, const char *b)
{
    double x = 0, y = 0;

    if (!read_figure(a, &x) || !read_figure(b, &y))
        return strcmp(a, b) != 0;
    return fabs(x - y) > FIGURE_TOLERANCE * fmax(fabs(x), fabs(y));
}

static bool differs(const json_t *a, const json_t *b, enum weight weight);

static bool objects_differ(const json_t *a, const json_t *b, enum weight weight)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)a, key, value) {
        enum weight own = weight_of(key);
        if (own == WEIGH_EXACT)
            own = weight;
        if (own != WEIGH_NOT && differs(value, json_object_get(b, key), own))
            return true;
    }
    json_object_foreach ((json_t *)b, key, value) {
        if (weight_of(key) != WEIGH_NOT && !json_object_get(a, key))
            return true;
    }
    return false;
}

static bool lists_differ(const json_t *a, const json_t *b, enum weight weight)
{
    if (json_array_size(a) != json_array_size(b))
        return true;
    for (size_t i = 0; i < json_array_size(a); i++) {
        if (differs(json_array_get(a, i), json_array_get(b, i), weight))
            return true;
    }
    return false;
}

/* The depth is the one of our own status: observations are not looked into. */
static bool differs(const json_t *a, const json_t *b, enum weight weight)
{
    if (!a || !b || json_typeof(a) != json_typeof(b))
        return a != b;
    if (json_is_object(a))
        return objects_differ(a, b, weight);
    if (json_is_array(a))
        return lists_differ(a, b, weight);
    if (json_is_string(a) && weight == WEIGH_WORDS)
        return words_differ(json_string_value(a), json_string_value(b));
    if (json_is_string(a) && weight == WEIGH_FIGURE)
        return figure_differs(json_string_value(a), json_string_value(b));
    return !json_equal(a, b);
}

bool api_status_differs(const json_t *a, const json_t *b)
{
    return differs(a, b, WEIGH_EXACT);
}
