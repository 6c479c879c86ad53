/* What the object of an MPA says, by figures and words; and objects as machines read them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kubectl.h"

const char *view_text(const json_t *object, const char *key)
{
    return json_str(json_object_get(object, key));
}

const char *view_name(const json_t *mpa)
{
    return json_str(json_path(mpa, "metadata", "name", NULL));
}

const char *view_namespace(const json_t *mpa)
{
    return json_str(json_path(mpa, "metadata", "namespace", NULL));
}

const char *view_condition(const json_t *mpa, const char *type)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_path(mpa, "status", "conditions", NULL), i, item)
        if (strcmp(view_text(item, "type"), type) == 0)
            return view_text(item, "status");
    return "";
}

const char *view_recommender(const json_t *mpa)
{
    const json_t *first = json_array_get(json_path(mpa, "spec", "recommenders", NULL), 0);
    const char *name = view_text(first, "name");
    return *name ? name : "threshold";
}

const char *view_event_time(const json_t *event)
{
    const char *last = view_text(event, "lastTimestamp");
    return *last ? last : view_text(event, "eventTime");
}

bool view_is_paused(const json_t *mpa)
{
    return strcmp(json_str(json_path(mpa, "metadata", "annotations", API_PAUSE_ANNOTATION, NULL)),
                  "true") == 0;
}

double view_cpu_milli(const json_t *mpa)
{
    double sum = 0;
    size_t i;
    const json_t *item;
    json_array_foreach (
        json_path(mpa, "status", "recommendation", "containerRecommendations", NULL), i, item) {
        int64_t milli;
        struct error unused;
        const json_t *cpu = json_path(item, "target", "cpu", NULL);
        cleanup_free char *text = json_is_integer(cpu)
                                      ? xasprintf("%lld", (long long)json_integer_value(cpu))
                                      : xstrdup(json_str(cpu));
        if (quantity_parse_milli(text, &milli, &unused) == 0)
            sum += (double)milli;
    }
    return sum > 0 ? sum : NAN;
}

static double number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

double view_replicas(const json_t *mpa)
{
    return number(json_path(mpa, "status", "currentReplicas", NULL));
}

double view_seen(const json_t *mpa, const char *figure)
{
    return number(json_path(mpa, "status", "lastDecision", "observation", figure, NULL));
}

/* "212ms", or "p95 212ms". */
double view_latency_ms(const json_t *mpa)
{
    const char *text = json_str(json_path(mpa, "status", "currentLatency", NULL));
    const char *space = strrchr(text, ' ');
    struct error unused;
    int64_t us;
    return duration_parse(space ? space + 1 : text, &us, &unused) == 0 ? (double)us / 1000 : NAN;
}

double view_goal_ms(const json_t *mpa)
{
    struct error unused;
    int64_t us;
    const char *text = json_str(json_path(mpa, "spec", "goals", "latency", "target", NULL));
    return duration_parse(text, &us, &unused) == 0 ? (double)us / 1000 : NAN;
}

const char *view_age(const char *time, char text[VIEW_AGE])
{
    int64_t ms;
    if (time_parse(time, &ms) < 0)
        return "–";
    int64_t s = (clock_wall_ms() - ms) / 1000;
    s = s < 0 ? 0 : s;
    if (s < 120)
        snprintf(text, VIEW_AGE, "%ds", (int)s);
    else if (s < 2 * 3600)
        snprintf(text, VIEW_AGE, "%dm", (int)(s / 60));
    else if (s < 2 * 86400)
        snprintf(text, VIEW_AGE, "%dh", (int)(s / 3600));
    else
        snprintf(text, VIEW_AGE, "%lldd", (long long)(s / 86400));
    return text;
}

/* --- what happened --------------------------------------------------------------------------- */
json_t *view_happened(const char *time, const char *source, const char *what, const char *message,
                      json_int_t count)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:I}", "time", time, "source", source, "what", what,
                     "message", message, "count", count);
}

json_t *view_happened_event(const json_t *event)
{
    json_int_t count = json_integer_value(json_object_get(event, "count"));
    return view_happened(view_event_time(event), "event", view_text(event, "reason"),
                         view_text(event, "message"), count > 1 ? count : 1);
}

json_t *view_happened_condition(const json_t *condition)
{
    bool is_true = strcmp(view_text(condition, "status"), "True") == 0;
    cleanup_free char *what =
        xasprintf("%s%s", is_true ? "" : "not ", view_text(condition, "type"));
    return view_happened(view_text(condition, "lastTransitionTime"), "condition", what,
                         view_text(condition, "message"), 1);
}

json_t *view_happened_decision(const json_t *decision)
{
    return view_happened(view_text(decision, "time"), "decision", view_text(decision, "action"),
                         view_text(decision, "reason"), 1);
}

/* --- for machines ---------------------------------------------------------------------------- */
bool view_is_for_machines(const char *output)
{
    return output && strcmp(output, "wide") != 0;
}

void view_print_data(const json_t *data, const char *output)
{
    bool yaml = strcmp(output, "yaml") == 0;
    cleanup_free char *text = yaml ? yaml_from_json(data) : json_dumps(data, JSON_INDENT(4));
    printf("%s%s", text, yaml ? "" : "\n");
}

static json_t *without_managed_fields(const json_t *object)
{
    json_t *copy = json_deep_copy(object);
    json_object_del(json_object_get(copy, "metadata"), "managedFields");
    return copy;
}

static json_t *whole(const json_t *objects, bool single)
{
    json_t *items = json_array();
    size_t i;
    const json_t *item;
    json_array_foreach (objects, i, item) {
        json_t *copy = without_managed_fields(item);
        if (!json_object_get(copy, "kind")) { /* the items of a list do not say */
            json_object_set_new(copy, "apiVersion", json_string(API_GROUP "/" API_VERSION));
            json_object_set_new(copy, "kind", json_string(API_KIND));
        }
        json_array_append_new(items, copy);
    }
    if (single && json_array_size(items) == 1) {
        json_t *one = json_incref(json_array_get(items, 0));
        json_decref(items);
        return one;
    }
    return json_pack("{s:s,s:s,s:o}", "apiVersion", "v1", "kind", "List", "items", items);
}

void view_print(const json_t *objects, const char *output, bool single)
{
    size_t i;
    const json_t *item;
    if (strcmp(output, "name") == 0) {
        json_array_foreach (objects, i, item)
            printf("multidimpodautoscaler." API_GROUP "/%s\n", view_name(item));
        return;
    }
    cleanup_json json_t *all = whole(objects, single);
    view_print_data(all, output);
}
