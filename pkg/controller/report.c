/* What is told about ourselves at /metrics. What other packages know is looked up
 * at each scrape, so that what is gone vanishes by itself. */
#include "entry.h"
#include "shards.h"

#include <stdio.h>
#include <string.h>

#define NAME REPORT_NAME

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

/* Those that every pass asks; the others begin with the first MPA that needs them. */
static void begin_queries(struct metrics_family *family)
{
    static const char *const asked[] = {"latency", "cpu", "throttled", "memory"};
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        metrics_count(family, 0, METRICS_LABELS(asked[i], "succeeded"));
        metrics_count(family, 0, METRICS_LABELS(asked[i], "failed"));
    }
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
    begin_queries(r->queries);
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

static void tell_shards(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    metrics_set(f, c->options.shards > 1 ? c->options.shards : 1, NULL);
}

static void tell_shards_held(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    bool several = c->live && c->live->shards;
    metrics_set(f, several ? shards_held(c->live->shards) : c->leading, NULL);
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

static void tell_interval(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    metrics_set(f, c->options.interval_s, NULL);
}

static void tell_searches(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    if (c->learner)
        metrics_set(f, (double)learner_waiting(c->learner), NULL);
}

static void tell_dashboard(void *arg, struct metrics_family *f)
{
    const struct controller *c = arg;
    if (c->timeline)
        metrics_set(f, (double)timeline_bytes(c->timeline), NULL);
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

/* --- all of them ----------------------------------------------------------------------------- */
static const struct report_gauge own[] = {
    {NAME("build_info"), "1; the version is in the label.", tell_build, {"version"}},
    {NAME("leader"), "1 while this replica leads, else 0.", tell_leader, {0}},
    {NAME("shards"), "Shards that the replicas divide among them.", tell_shards, {0}},
    {NAME("shards_held"), "Shards that this replica decides on.", tell_shards_held, {0}},
    {NAME("mpas"), "MultidimPodAutoscalers that are followed.", tell_mpas, {0}},
    {NAME("mpas_by_condition"),
     "MPAs whose condition has this status.",
     tell_conditions,
     {"condition", "status"}},
    {NAME("interval_seconds"), "The time that is to lie between passes.", tell_interval, {0}},
    {NAME("last_pass_timestamp_seconds"), "When the last pass ended.", tell_last_pass, {0}},
    {NAME("learning_searches"),
     "Searches for policies of single MPAs that wait or are under way.",
     tell_searches,
     {0}},
};

static const struct report_gauge of_dashboard[] = {
    {NAME("dashboard_bytes"), "Memory of what the dashboard keeps.", tell_dashboard, {0}},
};

static const struct report_gauge of_kube[] = {
    {NAME("kube_write_queue_length"), "Writes that wait for their turn.", tell_queue, {0}},
    {NAME("pods_cached"), "Pods in the cache.", tell_pods, {0}},
    {NAME("pod_cache_bytes"), "Memory of the pods in the cache.", tell_pod_bytes, {0}},
};

void report_gauges(struct controller *c, const struct report_gauge *gauges, size_t n)
{
    for (const struct report_gauge *g = gauges; g < gauges + n; g++) {
        struct metrics_spec spec = {.name = g->name,
                                    .help = g->help,
                                    .type = METRICS_GAUGE,
                                    .collect = g->collect,
                                    .arg = c};
        memcpy(spec.labels, g->labels, sizeof(spec.labels));
        metrics_register(c->report.metrics, &spec);
    }
}

void report_start(struct controller *c)
{
    c->report.metrics = metrics_new(NAME("metrics_dropped_total"));
    report_gauges(c, own, ARRAY_LEN(own));
    if (c->timeline)
        report_gauges(c, of_dashboard, ARRAY_LEN(of_dashboard));
    if (c->live)
        report_gauges(c, of_kube, ARRAY_LEN(of_kube));
    register_counters(c);
    c->report.passes =
        register_seconds(c, NAME("pass_duration_seconds"),
                         "Time of a pass, from asking Prometheus to the last decision.");
    c->report.query_seconds =
        register_seconds(c, NAME("prometheus_query_duration_seconds"),
                         "Time until a query to Prometheus was answered or failed.");
    if (c->options.per_mpa_metrics)
        report_mpas(c);
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
