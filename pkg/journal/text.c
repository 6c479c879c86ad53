/* Observations, proposals and decisions as JSON and back, without losing a bit. */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const latency_names[] = {
    [LATENCY_NO_GOAL] = "no-goal",       [LATENCY_KNOWN] = "known",
    [LATENCY_NO_TRAFFIC] = "no-traffic", [LATENCY_OVERFLOW] = "overflow",
    [LATENCY_MISSING] = "missing",
};

#define AT(field) offsetof(struct observation, field)
static const struct {
    const char *name;
    size_t offset;
} numbers[] =
    {
        {"now_s", AT(now_s)},
        {"percentile", AT(percentile)},
        {"goal_ms", AT(goal_ms)},
        {"latency_ms", AT(latency_ms)},
        {"requests_per_s", AT(requests_per_s)},
        {"concurrency", AT(concurrency)},
        {"throttled", AT(throttled)},
        {"since_increase_s", AT(since_increase_s)},
        {"latency_window_s", AT(latency_window_s)},
        {"tolerance_up", AT(tolerance_up)},
        {"tolerance_down", AT(tolerance_down)},
},
  counts[] = {
      {"replicas_wanted", AT(replicas_wanted)},
      {"min_replicas", AT(min_replicas)},
      {"max_replicas", AT(max_replicas)},
};

/* --- numbers ------------------------------------------------------------------------------------
 */
json_t *journal_number(double value)
{
    if (isnan(value))
        return json_null();
    return isinf(value) ? json_string(value > 0 ? "inf" : "-inf") : json_real(value);
}

static int read_number(const json_t *value, double *out)
{
    if (json_is_number(value))
        *out = json_number_value(value);
    else if (json_is_null(value))
        *out = NAN;
    else if (strcmp(json_str(value), "inf") == 0 || strcmp(json_str(value), "-inf") == 0)
        *out = *json_str(value) == '-' ? -INFINITY : INFINITY;
    else
        return -1;
    return 0;
}

int journal_read_number(const json_t *object, const char *name, double *out, struct error *err)
{
    if (read_number(json_object_get(object, name), out) < 0)
        return error_set(err, ERROR_MALFORMED, "%s is no number, null or \"inf\"", name);
    return 0;
}

static int read_count(const json_t *object, const char *name, int *out, struct error *err)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || llabs(json_integer_value(value)) > INT32_MAX)
        return error_set(err, ERROR_MALFORMED, "%s is no whole number", name);
    *out = (int)json_integer_value(value);
    return 0;
}

static json_t *pair(const double values[RECOMMEND_RESOURCE_COUNT])
{
    json_t *list = json_array();
    for (int k = 0; k < RECOMMEND_RESOURCE_COUNT; k++)
        json_array_append_new(list, journal_number(values[k]));
    return list;
}

static int read_pair(const json_t *list, const char *name, double out[RECOMMEND_RESOURCE_COUNT],
                     struct error *err)
{
    for (size_t k = 0; k < RECOMMEND_RESOURCE_COUNT; k++)
        if (read_number(json_array_get(list, k), &out[k]) < 0)
            return error_set(err, ERROR_MALFORMED, "%s has no number for cpu and memory", name);
    return 0;
}

/* --- observations: containers and pods -----------------------------------------------------------
 */
static json_t *containers_json(const struct observation *seen)
{
    json_t *list = json_array();
    for (size_t i = 0; i < seen->container_count; i++) {
        const struct recommend_container *c = &seen->containers[i];
        json_array_append_new(
            list, json_pack("{s:s,s:[b,b],s:o,s:o,s:o}", "name", c->name, "controlled",
                            c->controlled[RECOMMEND_CPU], c->controlled[RECOMMEND_MEMORY],
                            "request", pair(c->request), "min", pair(c->min), "max", pair(c->max)));
    }
    return list;
}

static int read_container(const json_t *from, struct recommend_container *out, char **name,
                          struct error *err)
{
    const json_t *controlled = json_object_get(from, "controlled");
    *name = xstrdup(json_str(json_object_get(from, "name")));
    out->name = *name;
    for (size_t k = 0; k < RECOMMEND_RESOURCE_COUNT; k++)
        out->controlled[k] = json_is_true(json_array_get(controlled, k));
    if (read_pair(json_object_get(from, "request"), "request", out->request, err) < 0 ||
        read_pair(json_object_get(from, "min"), "min", out->min, err) < 0)
        return -1;
    return read_pair(json_object_get(from, "max"), "max", out->max, err);
}

static json_t *pods_json(const struct observation *seen)
{
    json_t *list = json_array();
    for (size_t i = 0; i < seen->pod_count; i++) {
        const struct recommend_pod *p = &seen->pods[i];
        json_t *usage = json_array(), *request = json_array();
        for (size_t c = 0; c < seen->container_count; c++) {
            json_array_append_new(usage, pair(p->containers[c].usage));
            json_array_append_new(request, pair(p->containers[c].request));
        }
        json_array_append_new(list, json_pack("{s:b,s:b,s:b,s:o,s:o,s:o}", "ready", p->ready,
                                              "pending", p->pending, "starting", p->starting,
                                              "age_s", journal_number(p->age_s), "usage", usage,
                                              "request", request));
    }
    return list;
}

static int read_pod(const json_t *from, size_t container_count, struct recommend_pod *out,
                    struct error *err)
{
    const json_t *usage = json_object_get(from, "usage"),
                 *request = json_object_get(from, "request");
    out->ready = json_is_true(json_object_get(from, "ready"));
    out->pending = json_is_true(json_object_get(from, "pending"));
    out->starting = json_is_true(json_object_get(from, "starting"));
    for (size_t c = 0; c < container_count; c++) {
        struct recommend_usage *u = &out->containers[c];
        if (read_pair(json_array_get(usage, c), "usage", u->usage, err) < 0 ||
            read_pair(json_array_get(request, c), "request", u->request, err) < 0)
            return -1;
    }
    return journal_read_number(from, "age_s", &out->age_s, err);
}

static json_t *metrics_json(const struct observation *seen)
{
    json_t *list = json_array();
    for (size_t i = 0; i < seen->metric_count; i++) {
        const struct recommend_metric *m = &seen->metrics[i];
        json_array_append_new(list,
                              json_pack("{s:i,s:i,s:o,s:o}", "resource", m->resource, "container",
                                        m->container, "utilization", journal_number(m->utilization),
                                        "average_value", journal_number(m->average_value)));
    }
    return list;
}

static int read_metric(const json_t *from, size_t container_count, struct recommend_metric *out,
                       struct error *err)
{
    int resource = 0;
    if (read_count(from, "resource", &resource, err) < 0 ||
        read_count(from, "container", &out->container, err) < 0 ||
        journal_read_number(from, "utilization", &out->utilization, err) < 0 ||
        journal_read_number(from, "average_value", &out->average_value, err) < 0)
        return -1;
    if (resource < 0 || resource >= RECOMMEND_RESOURCE_COUNT || out->container < -1 ||
        out->container >= (int)container_count)
        return error_set(err, ERROR_MALFORMED, "a metric is of a resource or container not there");
    out->resource = (enum recommend_resource)resource;
    return 0;
}

/* --- observations --------------------------------------------------------------------------------
 */
json_t *journal_seen_json(const struct observation *seen)
{
    json_t *o = json_object();
    json_object_set_new(o, "latency", json_string(latency_names[seen->latency_state]));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        double value;
        memcpy(&value, (const char *)seen + numbers[i].offset, sizeof(value));
        json_object_set_new(o, numbers[i].name, journal_number(value));
    }
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        int value;
        memcpy(&value, (const char *)seen + counts[i].offset, sizeof(value));
        json_object_set_new(o, counts[i].name, json_integer(value));
    }
    json_object_set_new(o, "metrics", metrics_json(seen));
    json_object_set_new(o, "containers", containers_json(seen));
    json_object_set_new(o, "pods", pods_json(seen));
    return o;
}

static int read_scalars(const json_t *from, struct observation *out, struct error *err)
{
    const char *latency = json_str(json_object_get(from, "latency"));
    size_t state = 0;
    while (state < ARRAY_LEN(latency_names) && strcmp(latency_names[state], latency) != 0)
        state++;
    if (state == ARRAY_LEN(latency_names))
        return error_set(err, ERROR_MALFORMED, "latency is \"%.20s\"", latency);
    out->latency_state = (enum recommend_latency)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        double value;
        if (journal_read_number(from, numbers[i].name, &value, err) < 0)
            return -1;
        memcpy((char *)out + numbers[i].offset, &value, sizeof(value));
    }
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        int value;
        if (read_count(from, counts[i].name, &value, err) < 0)
            return -1;
        memcpy((char *)out + counts[i].offset, &value, sizeof(value));
    }
    return 0;
}

static int list_size(const json_t *from, const char *name, size_t most, size_t *out,
                     struct error *err)
{
    *out = json_array_size(json_object_get(from, name));
    if (*out > most)
        return error_set(err, ERROR_TOO_LARGE, "there are more than %zu %s", most, name);
    return 0;
}

int journal_read_seen(const json_t *from, struct journal_seen *out, struct error *err)
{
    struct observation *seen = &out->seen;
    *out = (struct journal_seen){0};
    if (read_scalars(from, seen, err) < 0 ||
        list_size(from, "containers", RECOMMEND_MAX_CONTAINERS, &seen->container_count, err) < 0 ||
        list_size(from, "metrics", RECOMMEND_MAX_METRICS, &seen->metric_count, err) < 0 ||
        list_size(from, "pods", JOURNAL_MAX_PODS, &seen->pod_count, err) < 0)
        return -1;
    out->pods = xcalloc(seen->pod_count + 1, sizeof(*out->pods));
    seen->pods = out->pods;
    for (size_t i = 0; i < seen->container_count; i++)
        if (read_container(json_array_get(json_object_get(from, "containers"), i),
                           &seen->containers[i], &out->names[i], err) < 0)
            return -1;
    for (size_t i = 0; i < seen->metric_count; i++)
        if (read_metric(json_array_get(json_object_get(from, "metrics"), i), seen->container_count,
                        &seen->metrics[i], err) < 0)
            return -1;
    for (size_t i = 0; i < seen->pod_count; i++)
        if (read_pod(json_array_get(json_object_get(from, "pods"), i), seen->container_count,
                     &out->pods[i], err) < 0)
            return -1;
    return 0;
}

void journal_seen_clear(struct journal_seen *seen)
{
    for (size_t i = 0; i < RECOMMEND_MAX_CONTAINERS; i++)
        free(seen->names[i]);
    free(seen->pods);
    *seen = (struct journal_seen){0};
}

/* --- proposals and decisions ---------------------------------------------------------------------
 */
json_t *journal_proposed_json(const struct recommendation *proposed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < proposed->container_count; i++)
        json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:o}", "target",
                                              pair(proposed->containers[i].target), "lower",
                                              pair(proposed->containers[i].lower), "upper",
                                              pair(proposed->containers[i].upper), "uncapped",
                                              pair(proposed->containers[i].uncapped)));
    return json_pack("{s:i,s:o,s:o}", "replicas", proposed->replicas, "containers", list, "reason",
                     json_text(proposed->reason, sizeof(proposed->reason)));
}

int journal_read_proposed(const json_t *from, struct recommendation *out, struct error *err)
{
    *out = (struct recommendation){0};
    if (read_count(from, "replicas", &out->replicas, err) < 0 ||
        list_size(from, "containers", RECOMMEND_MAX_CONTAINERS, &out->container_count, err) < 0)
        return -1;
    for (size_t i = 0; i < out->container_count; i++) {
        const json_t *c = json_array_get(json_object_get(from, "containers"), i);
        if (read_pair(json_object_get(c, "target"), "target", out->containers[i].target, err) < 0 ||
            read_pair(json_object_get(c, "lower"), "lower", out->containers[i].lower, err) < 0 ||
            read_pair(json_object_get(c, "upper"), "upper", out->containers[i].upper, err) < 0 ||
            read_pair(json_object_get(c, "uncapped"), "uncapped", out->containers[i].uncapped,
                      err) < 0)
            return -1;
    }
    snprintf(out->reason, sizeof(out->reason), "%s", json_str(json_object_get(from, "reason")));
    return 0;
}

static json_t *amount_json(int64_t amount)
{
    return amount == API_ABSENT ? json_null() : json_integer(amount);
}

json_t *journal_decided_json(const struct guard_decision *decided, size_t container_count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < container_count; i++) {
        const int64_t *request = decided->containers[i].request;
        json_array_append_new(
            list, json_pack("{s:b,s:[o,o]}", "resize", decided->containers[i].resize, "request",
                            amount_json(request[API_CPU]), amount_json(request[API_MEMORY])));
    }
    return json_pack("{s:i,s:b,s:s,s:o,s:o}", "replicas", decided->replicas, "limited",
                     decided->limited, "limit_reason", decided->limit_reason, "limit_message",
                     json_text(decided->limit_message, sizeof(decided->limit_message)),
                     "containers", list);
}

int journal_read_decided(const json_t *from, struct guard_decision *out, struct error *err)
{
    size_t count;
    *out = (struct guard_decision){.limited = json_is_true(json_object_get(from, "limited"))};
    if (read_count(from, "replicas", &out->replicas, err) < 0 ||
        list_size(from, "containers", API_MAX_CONTAINERS, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < API_MAX_CONTAINERS; i++) {
        const json_t *c = json_array_get(json_object_get(from, "containers"), i);
        out->containers[i].resize = json_is_true(json_object_get(c, "resize"));
        for (size_t k = 0; k < API_RESOURCE_COUNT; k++) {
            const json_t *amount = json_array_get(json_object_get(c, "request"), k);
            out->containers[i].request[k] =
                json_is_integer(amount) ? json_integer_value(amount) : API_ABSENT;
        }
    }
    snprintf(out->limit_reason, sizeof(out->limit_reason), "%s",
             json_str(json_object_get(from, "limit_reason")));
    snprintf(out->limit_message, sizeof(out->limit_message), "%s",
             json_str(json_object_get(from, "limit_message")));
    return 0;
}
