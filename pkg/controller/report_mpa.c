/* What is told about each MPA at /metrics, unless --per-mpa-metrics=false. All of it is looked up
 * at the scrape. Only the leader tells: a sum over the replicas counts no MPA twice. */
#include "entry.h"

#include <math.h>
#include <string.h>

typedef void (*tell_fn)(const struct entry *entry, struct metrics_family *family);

static void tell_all(const struct controller *c, struct metrics_family *f, tell_fn tell)
{
    void *value;
    for (size_t i = 0; c->leading && (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        const struct entry *e = value;
        if (e->last.decided && e->mpa.uid)
            tell(e, f);
    }
}

#define OF(e) (e)->mpa.namespace_, (e)->mpa.name

/* NaN: this one has none. */
static void set(const struct entry *e, struct metrics_family *f, double value)
{
    if (!isnan(value))
        metrics_set(f, value, METRICS_LABELS(OF(e)));
}

/* --- what it is ------------------------------------------------------------------------------ */
static void info(const struct entry *e, struct metrics_family *f)
{
    const struct api_spec *spec = &e->mpa.spec;
    metrics_set(f, 1,
                METRICS_LABELS(OF(e), spec->target_kind, spec->target_name,
                               api_mode_name(spec->mode), spec->recommender));
}

static void min_replicas(const struct entry *e, struct metrics_family *f)
{
    set(e, f, e->mpa.spec.min_replicas);
}

static void max_replicas(const struct entry *e, struct metrics_family *f)
{
    set(e, f, e->mpa.spec.max_replicas);
}

static void goal(const struct entry *e, struct metrics_family *f)
{
    int64_t goal_us = e->mpa.spec.latency_target_us;
    set(e, f, goal_us > 0 ? (double)goal_us / 1e6 : NAN);
}

/* --- what is seen ---------------------------------------------------------------------------- */
static double seen(const struct entry *e, const char *figure)
{
    cleanup_json json_t *all =
        e->last.observation ? json_loads(e->last.observation, 0, NULL) : NULL;
    const json_t *value = json_object_get(all, figure);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void latency(const struct entry *e, struct metrics_family *f)
{
    set(e, f, e->last.latency_us / 1e6);
}

static void requests(const struct entry *e, struct metrics_family *f)
{
    set(e, f, seen(e, "requestsPerSecond"));
}

static void usage(const struct entry *e, struct metrics_family *f)
{
    set(e, f, seen(e, "cpuUsageMilli") / 1000);
}

static void utilization(const struct entry *e, struct metrics_family *f)
{
    set(e, f, seen(e, "cpuUtilization"));
}

static void throttled(const struct entry *e, struct metrics_family *f)
{
    set(e, f, seen(e, "throttledRatio"));
}

static void ready_pods(const struct entry *e, struct metrics_family *f)
{
    set(e, f, seen(e, "readyPods"));
}

/* --- what is decided ------------------------------------------------------------------------- */
static double replicas(int32_t count)
{
    return count < 0 ? (double)NAN : count;
}

static void current_replicas(const struct entry *e, struct metrics_family *f)
{
    set(e, f, replicas(e->last.current_replicas));
}

static void desired_replicas(const struct entry *e, struct metrics_family *f)
{
    set(e, f, replicas(e->last.desired_replicas));
}

static void last_decision(const struct entry *e, struct metrics_family *f)
{
    set(e, f, e->last.decided_ms ? (double)e->last.decided_ms / 1000 : NAN);
}

/* In force, on average over the pods that have the container; NaN: in none. */
static double mean_cores(const struct kube_pod *const *pods, size_t n, const char *container)
{
    double milli = 0;
    int count = 0;
    for (size_t p = 0; p < n; p++) {
        for (size_t k = 0; k < pods[p]->container_count; k++) {
            const struct kube_container *c = &pods[p]->containers[k];
            if (pods[p]->phase != KUBE_RUNNING || c->actual_requests.cpu_milli == KUBE_ABSENT ||
                strcmp(c->name, container) != 0)
                continue;
            milli += (double)c->actual_requests.cpu_milli;
            count++;
        }
    }
    return count ? milli / count / 1000 : NAN;
}

/* The containers of the first pod stand for those of all. */
static void request(const struct entry *e, struct metrics_family *f)
{
    const struct kube_workload *workload;
    size_t n;
    const struct kube_pod **pods = entry_pods(e, &workload, &n);
    for (size_t k = 0; n > 0 && k < pods[0]->container_count; k++) {
        const char *name = pods[0]->containers[k].name;
        double cores = mean_cores(pods, n, name);
        if (!isnan(cores))
            metrics_set(f, cores, METRICS_LABELS(OF(e), name));
    }
    free(pods);
}

static void recommended(const struct entry *e, struct metrics_family *f)
{
    const char *name;
    json_t *cores;
    cleanup_json json_t *all = e->last.cpu ? json_loads(e->last.cpu, 0, NULL) : NULL;
    json_object_foreach (all, name, cores)
        metrics_set(f, json_number_value(cores), METRICS_LABELS(OF(e), name));
}

/* --- how it is ------------------------------------------------------------------------------- */
static void ready(const struct entry *e, struct metrics_family *f)
{
    set(e, f, e->last.true_ >> API_COND_READY & 1);
}

static void conditions(const struct entry *e, struct metrics_family *f)
{
    for (enum api_condition k = 0; k < API_COND_COUNT; k++)
        if (e->last.known >> k & 1)
            metrics_set(f, e->last.true_ >> k & 1,
                        METRICS_LABELS(OF(e), api_condition_name(k), e->last.reasons[k]));
}

static void stage(const struct entry *e, struct metrics_family *f)
{
    struct learning_state state;
    if (learning_state(e, &state))
        metrics_set(f, 1, METRICS_LABELS(OF(e), state.stage));
}

static void stage_since(const struct entry *e, struct metrics_family *f)
{
    struct learning_state state;
    if (learning_state(e, &state))
        set(e, f, (double)state.since_ms / 1000);
}

static void own_policy(const struct entry *e, struct metrics_family *f)
{
    struct learning_state state;
    if (learning_state(e, &state))
        set(e, f, state.own_policy);
}

static void progress(const struct entry *e, struct metrics_family *f)
{
    struct learning_state state;
    if (learning_state(e, &state))
        set(e, f, state.progress);
}

/* --- all of them ----------------------------------------------------------------------------- */
#define FIGURES(X)                                                                                 \
    X(info)                                                                                        \
    X(min_replicas)                                                                                \
    X(max_replicas)                                                                                \
    X(current_replicas)                                                                            \
    X(desired_replicas)                                                                            \
    X(ready_pods)                                                                                  \
    X(latency)                                                                                     \
    X(goal)                                                                                        \
    X(requests)                                                                                    \
    X(usage)                                                                                       \
    X(utilization)                                                                                 \
    X(throttled)                                                                                   \
    X(request)                                                                                     \
    X(recommended)                                                                                 \
    X(ready)                                                                                       \
    X(conditions)                                                                                  \
    X(last_decision)                                                                               \
    X(stage)                                                                                       \
    X(stage_since)                                                                                 \
    X(own_policy)                                                                                  \
    X(progress)
#define COLLECT(figure)                                                                            \
    static void tell_##figure(void *arg, struct metrics_family *f)                                 \
    {                                                                                              \
        tell_all(arg, f, figure);                                                                  \
    }
FIGURES(COLLECT)

#define NAME(name) REPORT_NAME("mpa_" name)
#define OF_MPA     "namespace", "name"
static const struct report_gauge gauges[] = {
    {NAME("info"),
     "1; what it scales, how, and who is to decide are in the labels.",
     tell_info,
     {OF_MPA, "target_kind", "target_name", "mode", "recommender"}},
    {NAME("min_replicas"), "The fewest replicas that it may set.", tell_min_replicas, {OF_MPA}},
    {NAME("max_replicas"), "The most replicas that it may set.", tell_max_replicas, {OF_MPA}},
    {NAME("current_replicas"), "Replicas that the target has.", tell_current_replicas, {OF_MPA}},
    {NAME("desired_replicas"), "Replicas that were decided on.", tell_desired_replicas, {OF_MPA}},
    {NAME("ready_pods"), "Pods of the target that are ready.", tell_ready_pods, {OF_MPA}},
    {NAME("latency_seconds"), "Latency at the goal's percentile.", tell_latency, {OF_MPA}},
    {NAME("latency_goal_seconds"), "The latency that is to be kept.", tell_goal, {OF_MPA}},
    {NAME("requests_per_second"), "Requests to the target.", tell_requests, {OF_MPA}},
    {NAME("cpu_usage_cores"), "CPU that all its pods use.", tell_usage, {OF_MPA}},
    {NAME("cpu_utilization_ratio"),
     "CPU used, as a part of the CPU requested.",
     tell_utilization,
     {OF_MPA}},
    {NAME("cpu_throttled_ratio"),
     "Part of the CFS periods that were throttled.",
     tell_throttled,
     {OF_MPA}},
    {NAME("cpu_request_cores"),
     "CPU request in force, on average over the pods.",
     tell_request,
     {OF_MPA, "container"}},
    {NAME("cpu_recommended_cores"),
     "CPU request that was decided on, for each pod.",
     tell_recommended,
     {OF_MPA, "container"}},
    {NAME("ready"), "1 while the condition Ready is True, else 0.", tell_ready, {OF_MPA}},
    {NAME("condition"),
     "1 while the condition is True, 0 while it is False; its reason is in the label.",
     tell_conditions,
     {OF_MPA, "condition", "reason"}},
    {NAME("last_decision_timestamp_seconds"),
     "When all was known that a decision needs, last.",
     tell_last_decision,
     {OF_MPA}},
    {NAME("learning_stage"),
     "1 for the stage of learning that it is in.",
     tell_stage,
     {OF_MPA, "stage"}},
    {NAME("learning_stage_start_timestamp_seconds"),
     "Since when it is in that stage.",
     tell_stage_since,
     {OF_MPA}},
    {NAME("own_policy"),
     "1 where a policy of its own was found, 0 where the general one is all it has.",
     tell_own_policy,
     {OF_MPA}},
    {NAME("learning_progress_ratio"),
     "How much of the search for a policy of its own is done.",
     tell_progress,
     {OF_MPA}},
};

void report_mpas(struct controller *c)
{
    report_gauges(c, gauges, ARRAY_LEN(gauges));
}
