/* What is told about ourselves at /metrics. What other packages know is looked up
 * at each scrape, so that what is gone vanishes by itself. */
#include "entry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME(name) "faasrl_mpa_" name

/* --- counted as it happens ------------------------------------------------------------------- */
static void on_answer(void *arg, const char *method, int status)
{
    struct controller *c = arg;
    char code[16];
    snprintf(code, sizeof(code), "%d", status);
    metrics_count(c->report.requests, 1, METRICS_LABELS(method, status ? code : "none"));
}

static void on_watch_error(void *arg, const char *resource)
{
    struct controller *c = arg;
    metrics_count(c->report.watch_errors, 1, METRICS_LABELS(resource));
}

static void on_query(void *arg, const char *metric, double took_s, bool succeeded)
{
    struct controller *c = arg;
    metrics_count(c->report.queries, 1, METRICS_LABELS(metric, succeeded ? "succeeded" : "failed"));
    metrics_observe(c->report.query_seconds, took_s, NULL);
}

void report_pass_began(struct controller *c)
{
    c->report.pass_began_ms = clock_mono_ms();
}

void report_pass_ended(struct controller *c)
{
    metrics_observe(c->report.passes, (double)(clock_mono_ms() - c->report.pass_began_ms) / 1000,
                    NULL);
    c->report.pass_began_ms = 0;
    c->report.passed_ms = clock_wall_ms();
}

/* Series that exist from the start can be told from a controller that never did the thing. */
static void begin_at_zero(struct metrics_family *family, const char *const *values)
{
    for (; *values; values++)
        metrics_count(family, 0, METRICS_LABELS(*values));
}

static void register_counters(struct controller *c)
{
    struct report *r = &c->report;
    const struct {
        struct metrics_family **slot;
        const char *name, *help, *labels[2];
        const char *values[6]; /* of the one label */
    } table[] = {
        {&r->decisions,
         NAME("decisions_total"),
         "Decisions by what they change.",
         {"action"},
         {"None", "Rescale", "Resize", "RescaleAndResize"}},
        {&r->rescales,
         NAME("rescales_total"),
         "Writes of replicas.",
         {"result"},
         {"succeeded", "failed"}},
        {&r->resizes,
         NAME("resizes_total"),
         "Resizes: accepted or refused by the API server, deferred or infeasible on a node.",
         {"result"},
         {"accepted", "refused", "deferred", "infeasible"}},
        {&r->status_writes,
         NAME("status_writes_total"),
         "Writes of the status of MPAs.",
         {"result"},
         {"succeeded", "failed"}},
        {&r->learning,
         NAME("learning_total"),
         "What became of policies of single MPAs: searches by their end, and what undid them.",
         {"event"},
         {"found", "kept", "failed", "drifted", "rolled_back"}},
        {&r->queries,
         NAME("prometheus_queries_total"),
         "Queries to Prometheus.",
         {"metric", "result"},
         {0}},
        {&r->requests,
         NAME("kube_requests_total"),
         "Requests to the API server by the status of the answer; code none: no answer.",
         {"method", "code"},
         {0}},
        {&r->watch_errors,
         NAME("watch_errors_total"),
         "Lists and watches that failed.",
         {"resource"},
         {0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        *table[i].slot =
            metrics_register(r->metrics, &(struct metrics_spec){
                                             .name = table[i].name,
                                             .help = table[i].help,
                                             .type = METRICS_COUNTER,
                                             .labels = {table[i].labels[0], table[i].labels[1]},
                                         });
        begin_at_zero(*table[i].slot, table[i].values);
    }
}

static struct metrics_family *register_seconds(struct controller *c, const char *name,
                                               const char *help)
{
    static const double bounds[] = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60};
    return metrics_register(c->report.metrics,
                            &(struct metrics_spec){.name = name,
                                                   .help = help,
                                                   .type = METRICS_HISTOGRAM,
                                                   .bounds = bounds,
                                                   .bound_count = ARRAY_LEN(bounds)});
}

/* --- looked up at each scrape: the controller ------------------------------------------------ */
static void tell_build(void *arg, struct metrics_family *f)
{
    (void)arg;
    metrics_set(f, 1, METRICS_LABELS(FAASRL_VERSION));
}

static void tell_leader(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    metrics_set(f, c->leading, NULL);
}

static void tell_mpas(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    metrics_set(f, (double)c->entries.count, NULL);
}

static void tell_conditions(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    int count[API_COND_COUNT][2] = {0};
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        const struct entry *e = value;
        for (unsigned k = 0; k < API_COND_COUNT; k++)
            if (e->last.known >> k & 1)
                count[k][e->last.true_ >> k & 1]++;
    }
    for (enum api_condition k = 0; c->leading && k < API_COND_COUNT; k++) {
        metrics_set(f, count[k][1], METRICS_LABELS(api_condition_name(k), "True"));
        metrics_set(f, count[k][0], METRICS_LABELS(api_condition_name(k), "False"));
    }
}

static void tell_last_pass(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    if (c->report.passed_ms > 0)
        metrics_set(f, (double)c->report.passed_ms / 1000, NULL);
}

static void tell_queue(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    metrics_set(f, (double)kube_writes_queued(c->live->kube), NULL);
}

static void tell_pods(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    metrics_set(f, (double)kube_cache_pod_count(c->live->cache), NULL);
}

static void tell_pod_bytes(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    metrics_set(f, (double)kube_cache_bytes(c->live->cache), NULL);
}

/* --- looked up at each scrape: the MPAs ------------------------------------------------------ */
/* Only the leader tells: a sum over the replicas counts no MPA twice. NaN: this one has none. */
static void tell_each(const struct controller *c, struct metrics_family *f,
                      double (*figure)(const struct entry *))
{
    void *value;
    for (size_t i = 0; c->leading && (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        const struct entry *e = value;
        double told = e->last.decided && e->mpa.uid ? figure(e) : NAN;
        if (!isnan(told))
            metrics_set(f, told, METRICS_LABELS(e->mpa.namespace_, e->mpa.name));
    }
}

static double replicas(int32_t count)
{
    return count < 0 ? (double)NAN : count;
}

static double current_replicas(const struct entry *e)
{
    return replicas(e->last.current_replicas);
}

static double desired_replicas(const struct entry *e)
{
    return replicas(e->last.desired_replicas);
}

static double latency_seconds(const struct entry *e)
{
    return e->last.latency_us / 1e6;
}

static double goal_seconds(const struct entry *e)
{
    int64_t goal_us = e->mpa.spec.latency_target_us;
    return goal_us > 0 ? (double)goal_us / 1e6 : NAN;
}

static double ready(const struct entry *e)
{
    return e->last.true_ >> API_COND_READY & 1;
}

static void tell_current(void *arg, struct metrics_family *f)
{
    tell_each(arg, f, current_replicas);
}

static void tell_desired(void *arg, struct metrics_family *f)
{
    tell_each(arg, f, desired_replicas);
}

static void tell_latency(void *arg, struct metrics_family *f)
{
    tell_each(arg, f, latency_seconds);
}

static void tell_goal(void *arg, struct metrics_family *f)
{
    tell_each(arg, f, goal_seconds);
}

static void tell_ready(void *arg, struct metrics_family *f)
{
    tell_each(arg, f, ready);
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
static void tell_cores_of(const struct entry *e, struct metrics_family *f)
{
    const struct kube_workload *workload;
    size_t n;
    const struct kube_pod **pods = entry_pods(e, &workload, &n);
    for (size_t k = 0; n > 0 && k < pods[0]->container_count; k++) {
        const char *name = pods[0]->containers[k].name;
        double cores = mean_cores(pods, n, name);
        if (!isnan(cores))
            metrics_set(f, cores, METRICS_LABELS(e->mpa.namespace_, e->mpa.name, name));
    }
    free(pods);
}

static void tell_cores(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    void *value;
    for (size_t i = 0; c->leading && (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        const struct entry *e = value;
        if (e->last.decided && e->mpa.uid)
            tell_cores_of(e, f);
    }
}

/* --- all of them ----------------------------------------------------------------------------- */
struct gauge {
    const char *name, *help;
    void (*collect)(void *arg, struct metrics_family *family);
    const char *labels[3];
};

static const struct gauge own[] = {
    {NAME("build_info"), "1; the version is in the label.", tell_build, {"version"}},
    {NAME("leader"), "1 while this replica leads, else 0.", tell_leader, {0}},
    {NAME("mpas"), "MultidimPodAutoscalers that are followed.", tell_mpas, {0}},
    {NAME("mpas_by_condition"),
     "MPAs whose condition has this status.",
     tell_conditions,
     {"condition", "status"}},
    {NAME("last_pass_timestamp_seconds"), "When the last pass ended.", tell_last_pass, {0}},
};

static const struct gauge of_kube[] = {
    {NAME("kube_write_queue_length"), "Writes that wait for their turn.", tell_queue, {0}},
    {NAME("pods_cached"), "Pods in the cache.", tell_pods, {0}},
    {NAME("pod_cache_bytes"), "Memory of the pods in the cache.", tell_pod_bytes, {0}},
};

#define OF_MPA "namespace", "name"
static const struct gauge per_mpa[] = {
    {NAME("mpa_current_replicas"), "Replicas that the target has.", tell_current, {OF_MPA}},
    {NAME("mpa_desired_replicas"), "Replicas that were decided on.", tell_desired, {OF_MPA}},
    {NAME("mpa_latency_seconds"), "Latency at the goal's percentile.", tell_latency, {OF_MPA}},
    {NAME("mpa_latency_goal_seconds"), "The latency that is to be kept.", tell_goal, {OF_MPA}},
    {NAME("mpa_ready"), "1 while the condition Ready is True, else 0.", tell_ready, {OF_MPA}},
    {NAME("mpa_cpu_request_cores"),
     "CPU request in force, on average over the pods.",
     tell_cores,
     {OF_MPA, "container"}},
};

static void register_gauges(struct controller *c, const struct gauge *gauges, size_t n)
{
    for (const struct gauge *g = gauges; g < gauges + n; g++)
        metrics_register(
            c->report.metrics,
            &(struct metrics_spec){.name = g->name,
                                   .help = g->help,
                                   .type = METRICS_GAUGE,
                                   .labels = {g->labels[0], g->labels[1], g->labels[2]},
                                   .collect = g->collect,
                                   .arg = c});
}

void report_start(struct controller *c)
{
    c->report.metrics = metrics_new(NAME("metrics_dropped_total"));
    register_gauges(c, own, ARRAY_LEN(own));
    if (c->live)
        register_gauges(c, of_kube, ARRAY_LEN(of_kube));
    register_counters(c);
    c->report.passes =
        register_seconds(c, NAME("pass_duration_seconds"),
                         "Time of a pass, from asking Prometheus to the last decision.");
    c->report.query_seconds =
        register_seconds(c, NAME("prometheus_query_duration_seconds"),
                         "Time until a query to Prometheus was answered or failed.");
    if (c->options.per_mpa_metrics)
        register_gauges(c, per_mpa, ARRAY_LEN(per_mpa));
    metrics_register_process(c->report.metrics);
    observe_on_query(c->observe, on_query, c);
    if (c->live)
        kube_observe(c->live->kube, &(struct kube_observer){on_answer, on_watch_error, c});
}

void report_stop(struct controller *c)
{
    observe_on_query(c->observe, NULL, NULL);
    if (c->live)
        kube_observe(c->live->kube, NULL);
    metrics_free(c->report.metrics);
}
