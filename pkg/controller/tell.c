#include "tell.h"

#include <math.h>
#include <string.h>

#define MAX_REWARDS 60

/* --- values ---------------------------------------------------------------------------------- */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static json_t *text(const char *value)
{
    return json_text(value, 1024);
}

static void set(json_t *o, const char *key, json_t *value)
{
    json_object_set_new(o, key, value);
}

static json_t *moment(const json_t *rfc3339)
{
    int64_t ms;
    return time_parse(json_str(rfc3339), &ms) == 0 ? json_integer(ms) : json_null();
}

/* What status has as text, so that clients read it as they like. */
static json_t *figure(const json_t *o, const char *key)
{
    const char *value = json_str(json_object_get(o, key));
    char *end;
    double parsed = strtod(value, &end);
    return number(end != value && *end == '\0' ? parsed : NAN);
}

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* --- what is known of an MPA ----------------------------------------------------------------- */
bool tell_is_of(const struct entry *e, const char *namespace_)
{
    size_t len = namespace_ ? strlen(namespace_) : 0;
    return !namespace_ || (strncmp(e->key, namespace_, len) == 0 && e->key[len] == '/');
}

static const json_t *condition_of(const json_t *status, enum api_condition condition)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(status, "conditions"), i, item)
        if (strcmp(json_str(json_object_get(item, "type")), api_condition_name(condition)) == 0)
            return item;
    return NULL;
}

static bool condition_is(const json_t *status, enum api_condition condition, const char *value)
{
    const json_t *found = condition_of(status, condition);
    return found && strcmp(json_str(json_object_get(found, "status")), value) == 0;
}

static const char *message_of(const json_t *status, enum api_condition condition)
{
    return json_str(json_object_get(condition_of(status, condition), "message"));
}

struct figures { /* NaN, -1: unknown */
    double latency_ms, requests_per_s, utilization, cpu_milli, wanted_cpu_milli;
    int64_t replicas, wanted_replicas;
};

static double recommended_cpu(const json_t *status)
{
    const json_t *list = json_path(status, "recommendation", "containerRecommendations", NULL);
    double sum = NAN;
    size_t i;
    const json_t *item;
    json_array_foreach (list, i, item) {
        int64_t milli;
        const char *cpu = json_str(json_path(item, "target", "cpu", NULL));
        if (*cpu && quantity_parse_milli(cpu, &milli, NULL) == 0)
            sum = (isnan(sum) ? 0 : sum) + (double)milli;
    }
    return sum;
}

static int64_t whole(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static struct figures figures_of(const struct entry *e)
{
    const json_t *status = entry_status(e);
    const json_t *seen = json_path(status, "lastDecision", "observation", NULL);
    if (e->last.decided && e->story && e->controller->leading)
        return (struct figures){.latency_ms = e->last.latency_us / 1000,
                                .requests_per_s = e->story->requests_per_s,
                                .utilization = e->story->utilization,
                                .cpu_milli = e->story->cpu_milli,
                                .wanted_cpu_milli = e->story->wanted_cpu_milli,
                                .replicas = e->last.current_replicas,
                                .wanted_replicas = e->last.desired_replicas};
    return (struct figures){.latency_ms = number_of(json_object_get(seen, "latencyMs")),
                            .requests_per_s = number_of(json_object_get(seen, "requestsPerSecond")),
                            .utilization = number_of(json_object_get(seen, "cpuUtilization")),
                            .cpu_milli = NAN,
                            .wanted_cpu_milli = recommended_cpu(status),
                            .replicas = whole(status, "currentReplicas"),
                            .wanted_replicas = whole(status, "desiredReplicas")};
}

/* The first that is true of these; *why is in whose words. */
static const char *health_of(const struct entry *e, const struct figures *f, const char **why)
{
    const json_t *status = entry_status(e);
    double goal_ms = (double)e->mpa.spec.latency_target_us / 1000;
    *why = "";
    if (e->invalid) {
        *why = e->invalid;
        return "trouble";
    }
    if (condition_is(status, API_COND_CONFIG_UNSUPPORTED, "True") ||
        condition_is(status, API_COND_ABLE_TO_SCALE, "False")) {
        *why = message_of(status, condition_is(status, API_COND_ABLE_TO_SCALE, "False")
                                      ? API_COND_ABLE_TO_SCALE
                                      : API_COND_CONFIG_UNSUPPORTED);
        return "trouble";
    }
    if (goal_ms > 0 && f->latency_ms > goal_ms) {
        *why = json_str(json_path(status, "lastDecision", "reason", NULL));
        return "late";
    }
    if (!condition_is(status, API_COND_SCALING_ACTIVE, "True")) {
        *why = message_of(status, API_COND_SCALING_ACTIVE);
        return "unknown";
    }
    if (condition_is(status, API_COND_FALLBACK_ACTIVE, "True")) {
        *why = message_of(status, API_COND_FALLBACK_ACTIVE);
        return "fallback";
    }
    return "ok";
}

/* --- a row ----------------------------------------------------------------------------------- */
static void set_names(json_t *o, const struct entry *e)
{
    const char *slash = strchr(e->key, '/');
    set(o, "namespace", json_stringn(e->key, (size_t)(slash - e->key)));
    set(o, "name", json_string(slash + 1));
}

static void set_spec(json_t *o, const struct entry *e)
{
    const struct api_spec *spec = &e->mpa.spec;
    bool known = e->mpa.uid != NULL; /* else it never could be read */
    const char *by =
        *e->recommender_name && e->controller->leading
            ? e->recommender_name
            : json_str(json_path(entry_status(e), "lastDecision", "recommender", NULL));
    set(o, "target",
        known ? json_sprintf("%s/%s", spec->target_kind, spec->target_name) : json_string(""));
    set(o, "mode", json_string(known ? api_mode_name(spec->mode) : ""));
    set(o, "paused", json_boolean(e->mpa.paused));
    set(o, "recommender", text(known ? spec->recommender : ""));
    set(o, "decidedBy", text(by));
    set(o, "goalMs",
        number(known && spec->latency_target_us > 0 ? (double)spec->latency_target_us / 1000
                                                    : NAN));
    set(o, "percentile", number(known ? spec->latency_percentile : NAN));
}

json_t *tell_row(const struct entry *e)
{
    json_t *o = json_object();
    struct figures f = figures_of(e);
    const char *why;
    const char *health = health_of(e, &f, &why);
    set_names(o, e);
    set_spec(o, e);
    set(o, "latencyMs", number(f.latency_ms));
    set(o, "requestsPerSecond", number(f.requests_per_s));
    set(o, "utilization", number(f.utilization));
    set(o, "replicas", count(f.replicas));
    set(o, "wantedReplicas", count(f.wanted_replicas));
    set(o, "cpuMilli", number(f.cpu_milli));
    set(o, "wantedCpuMilli", number(f.wanted_cpu_milli));
    set(o, "health", json_string(health));
    set(o, "message", text(why));
    return o;
}

/* --- all of one ------------------------------------------------------------------------------ */
static json_t *tell_conditions(const json_t *status)
{
    static const char *const keys[] = {"type", "status", "reason", "message"};
    json_t *list = json_array();
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(status, "conditions"), i, item) {
        json_t *o = json_object();
        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            set(o, keys[k], text(json_str(json_object_get(item, keys[k]))));
        set(o, "lastTransitionTime", moment(json_object_get(item, "lastTransitionTime")));
        json_array_append_new(list, o);
    }
    return list;
}

/* The most common request in force is that of the first pod that runs. */
static double cpu_in_force(const struct kube_pod *const *pods, size_t n, const char *container)
{
    for (size_t p = 0; p < n; p++)
        for (size_t i = 0; pods[p]->phase == KUBE_RUNNING && i < pods[p]->container_count; i++)
            if (strcmp(pods[p]->containers[i].name, container) == 0 &&
                pods[p]->containers[i].actual_requests.cpu_milli != KUBE_ABSENT)
                return (double)pods[p]->containers[i].actual_requests.cpu_milli;
    return NAN;
}

static double amount(int64_t milli)
{
    return milli == API_ABSENT ? NAN : (double)milli;
}

static json_t *tell_containers(const struct entry *e)
{
    const json_t *recommended =
        json_path(entry_status(e), "recommendation", "containerRecommendations", NULL);
    const struct kube_workload *workload;
    size_t n = 0, i;
    const struct kube_pod **pods = e->mpa.uid ? entry_pods(e, &workload, &n) : NULL;
    json_t *list = json_array();
    const json_t *item;
    json_array_foreach (recommended, i, item) {
        const char *name = json_str(json_object_get(item, "containerName"));
        const char *cpu = json_str(json_path(item, "target", "cpu", NULL));
        const struct api_container *policy = api_container_policy(&e->mpa.spec, name);
        json_t *o = json_object();
        int64_t milli;
        bool known = *cpu && quantity_parse_milli(cpu, &milli, NULL) == 0;
        set(o, "name", text(name));
        set(o, "cpuMilli", number(cpu_in_force(pods, n, name)));
        set(o, "wantedCpuMilli", number(known ? (double)milli : NAN));
        set(o, "minCpuMilli", number(amount(policy->min[API_CPU])));
        set(o, "maxCpuMilli", number(amount(policy->max[API_CPU])));
        json_array_append_new(list, o);
    }
    free(pods);
    return list;
}

static json_t *tell_decision(const json_t *status)
{
    static const char *const keys[] = {"recommender", "action", "reason"};
    const json_t *last = json_object_get(status, "lastDecision");
    if (!last)
        return json_null();
    json_t *o = json_object();
    set(o, "time", moment(json_object_get(last, "time")));
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        set(o, keys[k], text(json_str(json_object_get(last, keys[k]))));
    return o;
}

static json_t *tell_what_if(const json_t *status)
{
    static const char *const keys[] = {"coreHours", "coreHoursAuto", "requests", "lateRequests",
                                       "lateRequestsAuto"};
    const json_t *what_if = json_object_get(status, "whatIf");
    if (!what_if)
        return json_null();
    json_t *o = json_object();
    set(o, "since", moment(json_object_get(what_if, "since")));
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        set(o, keys[k], figure(what_if, keys[k]));
    return o;
}

json_t *tell_detail(const struct entry *e)
{
    json_t *o = tell_row(e), *learning = tell_learning(e, true);
    const json_t *status = entry_status(e);
    bool known = e->mpa.uid != NULL;
    set(o, "minReplicas", count(known ? e->mpa.spec.min_replicas : -1));
    set(o, "maxReplicas", count(known ? e->mpa.spec.max_replicas : -1));
    set(o, "containers", tell_containers(e));
    set(o, "conditions", tell_conditions(status));
    set(o, "lastDecision", tell_decision(status));
    set(o, "whatIf", tell_what_if(status));
    set(o, "learning", learning ? learning : json_null());
    return o;
}

/* --- what is learned ------------------------------------------------------------------------- */
static const char *origin_name(const struct learn_version *v)
{
    static const char *const origins[LEARN_ORIGIN_COUNT] = {[LEARN_SHIPPED] = "shipped",
                                                            [LEARN_KEPT] = "kept",
                                                            [LEARN_BOOTSTRAPPED] = "bootstrapped",
                                                            [LEARN_RETRAINED] = "retrained"};
    return origins[v->origin];
}

static json_t *tell_version(const struct learn_version *v)
{
    static const char *const outcomes[LEARN_OUTCOME_COUNT] = {[LEARN_DECIDES] = "decides",
                                                              [LEARN_WAITS] = "waits",
                                                              [LEARN_REPLACED] = "replaced",
                                                              [LEARN_ROLLED_BACK] = "rolledBack"};
    json_t *o = json_object();
    set(o, "number", json_integer((json_int_t)v->number));
    set(o, "origin", json_string(origin_name(v)));
    set(o, "outcome", json_string(outcomes[v->outcome]));
    set(o, "sha256", text(v->sha256));
    set(o, "from", json_integer(v->from_ms));
    set(o, "until", v->until_ms ? json_integer(v->until_ms) : json_null());
    set(o, "earned", number(v->earned));
    set(o, "intervals", json_integer((json_int_t)v->intervals));
    set(o, "why", text(v->why));
    return o;
}

/* Newest first. */
static json_t *tell_versions(const struct learn_versions *versions)
{
    json_t *list = json_array();
    size_t n = versions ? learn_versions_count(versions) : 0;
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, tell_version(learn_versions_newest(versions, i)));
    return list;
}

/* Of the one that decides, or did last: a list of all MPAs has no room for the others. */
static void set_version(json_t *o, const struct learn_versions *versions)
{
    const struct learn_version *v = versions ? learn_versions_current(versions) : NULL;
    size_t n = versions ? learn_versions_count(versions) : 0;
    int64_t back = 0;
    for (size_t i = 0; i < n; i++)
        back += learn_versions_newest(versions, i)->outcome == LEARN_ROLLED_BACK;
    set(o, "version", v ? json_integer((json_int_t)v->number) : json_null());
    set(o, "origin", v ? json_string(origin_name(v)) : json_null());
    set(o, "rolledBack", json_integer(back));
}

json_t *tell_learning(const struct entry *e, bool versions)
{
    struct learning_told told;
    if (!learning_tell(e, &told))
        return NULL;
    json_t *o = json_object();
    set(o, "state", json_string(told.state));
    set(o, "progress", number(told.progress));
    set(o, "since", told.since_ms ? json_integer(told.since_ms) : json_null());
    set(o, "message", text(told.message));
    set(o, "policy", told.policy ? json_string(told.policy) : json_null());
    set(o, "sha256", told.sha256 && *told.sha256 ? text(told.sha256) : json_null());
    set_version(o, told.versions);
    if (versions)
        set(o, "versions", tell_versions(told.versions));
    return o;
}

json_t *tell_learning_row(const struct entry *e)
{
    json_t *o = tell_learning(e, false), *rewards;
    const json_t *status = entry_status(e);
    bool fallback = condition_is(status, API_COND_FALLBACK_ACTIVE, "True");
    struct timeline_point points[MAX_REWARDS];
    if (!o)
        return NULL;
    set_names(o, e);
    set(o, "fallback", json_boolean(fallback));
    set(o, "fallbackReason", text(fallback ? message_of(status, API_COND_FALLBACK_ACTIVE) : ""));
    set(o, "reward", rewards = json_array());
    size_t n = e->story ? timeline_newest(e->story->series, points, MAX_REWARDS) : 0;
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rewards, number((double)points[i].figures[TIMELINE_REWARD]));
    return o;
}

/* --- what happened --------------------------------------------------------------------------- */
static void add_mark(void *arg, const struct timeline_mark *mark)
{
    static const char *const kinds[] = {[TIMELINE_DECISION] = "decision",
                                        [TIMELINE_POLICY] = "policy",
                                        [TIMELINE_FALLBACK] = "fallback",
                                        [TIMELINE_TROUBLE] = "trouble"};
    json_t *o = json_object();
    set(o, "time", json_integer(mark->time_ms));
    set(o, "kind", json_string(kinds[mark->kind]));
    set(o, "title", text(mark->title));
    set(o, "text", text(mark->text));
    set(o, "recommender", text(mark->recommender));
    set(o, "fromReplicas", count(mark->from_replicas));
    set(o, "toReplicas", count(mark->to_replicas));
    set(o, "fromCpuMilli", number((double)mark->from_cpu));
    set(o, "toCpuMilli", number((double)mark->to_cpu));
    set(o, "applied", json_boolean(mark->applied));
    json_array_append_new(arg, o);
}

json_t *tell_marks_after(const struct entry *e, uint64_t mark_number)
{
    json_t *list = json_array();
    if (e->story)
        timeline_marks_after(e->story->series, mark_number, add_mark, list);
    return list;
}

struct points {
    struct timeline_point *items;
    size_t count, cap;
};

static void add_point(void *arg, const struct timeline_point *point)
{
    struct points *points = arg;
    if (points->count == points->cap) {
        points->cap = points->cap ? 2 * points->cap : 64;
        points->items = xrealloc(points->items, points->cap, sizeof(*points->items));
    }
    points->items[points->count++] = *point;
}

/* Thousands of figures are printed as they are, not made into JSON values first. */
static int print_columns(struct buf *out, const struct points *points)
{
    static const char *const names[TIMELINE_COLUMNS] = {[TIMELINE_REQUESTS] = "requestsPerSecond",
                                                        [TIMELINE_LATENCY] = "latencyMs",
                                                        [TIMELINE_GOAL] = "goalMs",
                                                        [TIMELINE_REPLICAS] = "replicas",
                                                        [TIMELINE_WANTED_REPLICAS] =
                                                            "wantedReplicas",
                                                        [TIMELINE_CPU] = "cpuMilli",
                                                        [TIMELINE_WANTED_CPU] = "wantedCpuMilli",
                                                        [TIMELINE_UTILIZATION] = "utilization",
                                                        [TIMELINE_REWARD] = "reward"};
    int failed = buf_puts(out, "\"points\":{\"time\":[");
    for (size_t i = 0; i < points->count; i++)
        failed |= buf_printf(out, "%s%lld", i ? "," : "", (long long)points->items[i].time_ms);
    for (int k = 0; k < TIMELINE_COLUMNS; k++) {
        failed |= buf_printf(out, "],\"%s\":[", names[k]);
        for (size_t i = 0; i < points->count; i++) {
            double value = (double)points->items[i].figures[k];
            failed |= isfinite(value) ? buf_printf(out, "%s%.6g", i ? "," : "", value)
                                      : buf_puts(out, i ? ",null" : "null");
        }
    }
    return failed | buf_puts(out, "]}");
}

int tell_timeline(const struct entry *e, int64_t since_ms, struct buf *out)
{
    struct points points = {0};
    cleanup_json json_t *marks = json_array();
    if (e->story) {
        timeline_points(e->story->series, since_ms, add_point, &points);
        timeline_marks(e->story->series, since_ms, add_mark, marks);
    }
    cleanup_free char *marks_text = json_dumps(marks, TELL_FLAGS);
    int failed = buf_printf(out, "{\"now\":%lld,", (long long)clock_wall_ms());
    failed |= print_columns(out, &points);
    failed |= buf_puts(out, ",\"marks\":") | buf_puts(out, marks_text) | buf_puts(out, "}\n");
    free(points.items);
    return failed ? -1 : 0;
}
