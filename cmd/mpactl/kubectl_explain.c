/* kubectl mpa explain: how an MPA stands, and what was decided of late. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "journal.h"
#include "kubectl.h"
#include "mpactl.h"
#include "table.h"

static void print_now(const json_t *status)
{
    const json_t *decision = json_object_get(status, "lastDecision");
    const json_t *seen = json_object_get(decision, "observation");
    char latency[TABLE_TEXT];
    printf("  now: %lld replica(s)",
           (long long)json_integer_value(json_object_get(status, "currentReplicas")));
    size_t i;
    const json_t *item;
    json_array_foreach (json_path(status, "recommendation", "containerRecommendations", NULL), i,
                        item)
        printf(", %s %s", view_text(item, "containerName"),
               json_str(json_path(item, "target", "cpu", NULL)));
    double latency_ms = json_number_value(json_object_get(seen, "latencyMs"));
    if (latency_ms > 0)
        printf("; latency %s", table_duration(latency_ms, latency));
    const json_t *rate = json_object_get(seen, "requestsPerSecond");
    if (rate)
        printf(", %.3g requests/s", json_number_value(rate));
    if (decision)
        printf("\n  last decision: %s (%s)\n", view_text(decision, "reason"),
               view_text(decision, "time"));
    else
        printf("\n  nothing has been decided yet\n");
}

/* Not as it should be: Ready and its like are to be true, others false. */
static bool is_amiss(const json_t *condition)
{
    static const char *const wanted[] = {"Ready", "RecommendationProvided", "ScalingActive",
                                         "AbleToScale"};
    const char *type = view_text(condition, "type");
    bool is_true = strcmp(view_text(condition, "status"), "True") == 0, should = false;
    for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
        should |= strcmp(type, wanted[k]) == 0;
    return is_true != should;
}

static void print_conditions(const json_t *status)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(status, "conditions"), i, item) {
        bool is_true = strcmp(view_text(item, "status"), "True") == 0;
        if (is_amiss(item))
            printf("  %s%s since %s: %s\n", is_true ? "" : "not ", view_text(item, "type"),
                   view_text(item, "lastTransitionTime"), view_text(item, "message"));
    }
}

static void print_events(const json_t *events, size_t last)
{
    size_t n = json_array_size(events);
    if (n == 0)
        printf("  no events: nothing was changed of late\n");
    if (n > last)
        printf("  … %zu before these\n", n - last);
    for (size_t i = n > last ? n - last : 0; i < n; i++) {
        const json_t *event = json_array_get(events, i);
        long long count = (long long)json_integer_value(json_object_get(event, "count"));
        char times[32] = "";
        if (count > 1)
            snprintf(times, sizeof(times), " (%lld times)", count);
        printf("  %s  %-17s  %s%s\n", view_event_time(event), view_text(event, "reason"),
               view_text(event, "message"), times);
    }
}

static void print_mpa(const char *heading, const json_t *object, const json_t *events, size_t last)
{
    printf("%s\n", heading);
    print_now(json_object_get(object, "status"));
    print_conditions(json_object_get(object, "status"));
    print_events(events, last);
}

/* --- for machines ---------------------------------------------------------------------------- */
static json_t *figure(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *containers_of(const json_t *status)
{
    json_t *list = json_array();
    size_t i;
    const json_t *item;
    json_array_foreach (json_path(status, "recommendation", "containerRecommendations", NULL), i,
                        item)
        json_array_append_new(list,
                              json_pack("{s:s,s:s}", "name", view_text(item, "containerName"),
                                        "cpu", json_str(json_path(item, "target", "cpu", NULL))));
    return list;
}

static json_t *amiss_of(const json_t *status)
{
    json_t *list = json_array();
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(status, "conditions"), i, item)
        if (is_amiss(item))
            json_array_append_new(list, view_happened_condition(item));
    return list;
}

static json_t *last_of(const json_t *events, size_t before)
{
    json_t *list = json_array();
    for (size_t i = before; i < json_array_size(events); i++)
        json_array_append_new(list, view_happened_event(json_array_get(events, i)));
    return list;
}

/* The same as in words; decision, conditions and events are written as by history. */
static json_t *data_of(const char *heading, const json_t *object, const json_t *events, size_t last)
{
    const json_t *status = json_object_get(object, "status");
    const json_t *decision = json_object_get(status, "lastDecision");
    const json_t *replicas = json_object_get(status, "currentReplicas");
    size_t n = json_array_size(events), before = n > last ? n - last : 0;
    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:o}", "namespace",
                     view_namespace(object), "name", view_name(object), "about", heading,
                     "replicas", replicas ? json_deep_copy(replicas) : json_null(), "containers",
                     containers_of(status), "latencyMs", figure(view_seen(object, "latencyMs")),
                     "requestsPerSecond", figure(view_seen(object, "requestsPerSecond")),
                     "lastDecision", decision ? view_happened_decision(decision) : json_null(),
                     "conditions", amiss_of(status), "earlierEvents", (json_int_t)before, "events",
                     last_of(events, before));
}

/* Adds to `data` where that is asked for, else prints. */
static int explain_one(const json_t *object, const json_t *events, const struct plugin_options *o,
                       json_t *data, struct error *err)
{
    struct api_mpa mpa;
    if (api_parse(object, &mpa, err) < 0)
        return -1;
    cleanup_free char *heading = journal_heading(&mpa, mpa.spec.recommender);
    if (view_is_for_machines(o->output))
        json_array_append_new(data, data_of(heading, object, events, (size_t)o->last));
    else
        print_mpa(heading, object, events, (size_t)o->last);
    api_clear(&mpa);
    return 0;
}

static int explain(struct cluster *c, const struct plugin_options *o, struct error *err)
{
    cleanup_json json_t *data = json_array();
    for (size_t i = 0; i < o->names.count; i++) {
        const char *name = o->names.items[i];
        cleanup_json json_t *object = cluster_mpa(c, name, err);
        cleanup_json json_t *events = object ? cluster_events(c, name, err) : NULL;
        if (events == NULL || explain_one(object, events, o, data, err) < 0)
            return -1;
    }
    if (view_is_for_machines(o->output))
        view_print_data(data, o->output);
    return 0;
}

int plugin_explain(const struct plugin_options *o)
{
    struct cluster c;
    struct error err = {0};
    if (o->output && strcmp(o->output, "name") == 0) {
        mpactl_error("explain: --output: what was decided has no names: json, yaml or wide");
        return EXIT_USAGE;
    }
    int result = cluster_open(&c, o, &err) == 0 ? explain(&c, o, &err) : -1;
    cluster_close(&c);
    if (result == 0)
        return EXIT_FINE;
    mpactl_error("explain: %s", err.message);
    return EXIT_FAILED;
}
