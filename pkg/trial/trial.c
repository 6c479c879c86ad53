/* The loop of a trial: the cluster runs for an interval, then each function is decided on. */
#include "trial/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a function begins with that says nothing. */
#define INITIAL_MILLI 1000
#define INITIAL_BUSY  0.5
#define INITIAL_S     60
#define INITIAL_IDLE  2         /* times the memory of an idle replica */
#define LEAST_BYTES   (16 * MI) /* the guard's, where no minimum is stated */
#define MI            1048576.0

const struct cluster_function trial_default_function = {.start_s = 2, .resize_s = 0.5};

const double trial_idle_bytes = 96 * MI, trial_request_share = 0.01;

void trial_default_spec(struct api_spec *out)
{
    *out = (struct api_spec){
        .latency_percentile = 99,
        .metrics = {{.resource = API_CPU, .utilization = 70, .average_value = API_ABSENT}},
        .metric_count = 1,
        .has_default_metric = true,
        .min_replicas = 1,
        .max_replicas = 20,
        .scale_up = {.tolerance = 0.1,
                     .policies = {{.type = API_POLICY_PODS, .value = 4, .period_s = 15},
                                  {.type = API_POLICY_PERCENT, .value = 100, .period_s = 15}},
                     .policy_count = 2},
        .scale_down = {.stabilization_s = 300,
                       .tolerance = 0.1,
                       .policies = {{.type = API_POLICY_PERCENT, .value = 100, .period_s = 15}},
                       .policy_count = 1},
        .controls = {[API_CPU] = true},
        .containers = {{.name = (char *)"*",
                        .min = {[API_CPU] = 100, [API_MEMORY] = API_ABSENT},
                        .max = {[API_CPU] = 2000, [API_MEMORY] = API_ABSENT}}},
        .container_count = 1,
        .mode = API_MODE_AUTO,
    };
}

/* --- one run ---------------------------------------------------------------------------------- */
struct figures { /* of one function */
    struct tally total, since_sample;
    uint64_t actions;
    bool changed; /* since the sample */
    char reason[sizeof(((struct recommendation *)NULL)->reason) +
                sizeof(((struct guard_decision *)NULL)->limit_message) + 4];
};

struct trial {
    const struct trial_config *config;
    struct cluster_function *settings;
    struct cluster *cluster;
    struct subject *subjects;
    struct figures *figures;
    double next_sample_s;
    uint64_t turn; /* intervals that have passed */
    bool over;
};

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double goal_of(const struct trial_function *f)
{
    if (f->goal_ms > 0)
        return f->goal_ms;
    if (f->spec->latency_target_us > 0)
        return (double)f->spec->latency_target_us / 1000;
    return trace_default_goal_ms(f->workload);
}

/* What someone would deploy who knows the first minute: replicas that are half busy with it. */
static int usual_replicas(const struct trial_function *f, double milli)
{
    const struct trace_function *w = f->workload;
    double requests = 0, span_s = 0;
    for (size_t i = 0; i < w->slot_count && span_s < INITIAL_S; i++) {
        requests += w->counts[i];
        span_s += w->slot_s;
    }
    double busy_milli = span_s > 0 ? requests / span_s * trace_mean_cpu_ms(w) : 0;
    double replicas = ceil(busy_milli / (INITIAL_BUSY * milli));
    return (int)fmax(1, clamp(replicas, f->spec->min_replicas, f->spec->max_replicas));
}

bool trial_models_memory(const struct api_spec *spec)
{
    const char *name;
    return spec->controls[API_MEMORY] && !subject_policy(spec, &name)->off;
}

/* Someone would deploy it who knows what an idle replica has. */
static void set_memory(struct cluster_function *out, const struct trial_function *f,
                       const struct api_container *policy)
{
    double idle = f->workload->memory_bytes > 0 ? f->workload->memory_bytes : trial_idle_bytes;
    int64_t least = policy->min[API_MEMORY], most = policy->max[API_MEMORY];
    double low = least == API_ABSENT ? LEAST_BYTES : (double)least;
    double high = most == API_ABSENT ? INFINITY : (double)most;
    out->memory_base_bytes = idle;
    out->memory_per_request_bytes = trial_request_share * idle;
    out->memory_limit_bytes = clamp(ceil(INITIAL_IDLE * idle / MI) * MI, low, high);
}

static void set_function(struct cluster_function *out, const struct trial_config *config,
                         const struct trial_function *f)
{
    const char *name;
    const struct api_container *policy = subject_policy(f->spec, &name);
    double low = policy->min[API_CPU] == API_ABSENT ? 0 : (double)policy->min[API_CPU];
    double high = policy->max[API_CPU] == API_ABSENT ? INFINITY : (double)policy->max[API_CPU];
    *out = config->defaults;
    out->workload = f->workload;
    out->goal_ms = goal_of(f);
    out->request_milli = f->request_milli;
    out->limit_milli = f->limit_milli;
    if (!(f->request_milli > 0))
        out->request_milli = out->limit_milli = clamp(INITIAL_MILLI, low, high);
    out->replicas = f->replicas > 0 ? f->replicas : usual_replicas(f, out->request_milli);
    if (trial_models_memory(f->spec) && !trial_is_oracle(config->choice->recommender))
        set_memory(out, f, policy);
}

static int check(const struct trial_config *config, struct error *err)
{
    if (config->function_count == 0)
        return error_set(err, ERROR_INVALID, "a trial needs a function");
    if (!(config->interval_s > 0 && isfinite(config->interval_s)))
        return error_set(err, ERROR_INVALID, "interval: %g s cannot be: more than 0 is right",
                         config->interval_s);
    if (!(config->span_s > 0 && isfinite(config->span_s)))
        return error_set(err, ERROR_INVALID, "span: %g s cannot be: more than 0 is right",
                         config->span_s);
    return 0;
}

static int begin(struct trial *run, struct error *err)
{
    const struct trial_config *config = run->config;
    size_t count = config->function_count;
    if (check(config, err) < 0)
        return -1;
    run->settings = xcalloc(count, sizeof(*run->settings));
    for (size_t i = 0; i < count; i++)
        set_function(&run->settings[i], config, &config->functions[i]);
    run->cluster = cluster_new(&(struct cluster_config){.nodes = config->nodes,
                                                        .node_count = config->node_count,
                                                        .functions = run->settings,
                                                        .function_count = count,
                                                        .seed = config->seed},
                               err);
    if (!run->cluster)
        return -1;
    run->subjects = xcalloc(count, sizeof(*run->subjects));
    run->figures = xcalloc(count, sizeof(*run->figures));
    for (size_t i = 0; i < count; i++)
        subject_init(&run->subjects[i], config, &run->settings[i], run->cluster, i);
    run->next_sample_s = config->interval_s;
    return 0;
}

static void end(struct trial *run)
{
    for (size_t i = 0; run->subjects && i < run->config->function_count; i++)
        subject_clear(&run->subjects[i]);
    free(run->subjects);
    free(run->figures);
    cluster_free(run->cluster);
    free(run->settings);
}

/* --- figures ---------------------------------------------------------------------------------- */
static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void take_figures(struct trial *run, size_t i)
{
    const struct cluster_stats *stats = cluster_stats(run->cluster, i);
    const struct cluster_latency *latency = cluster_latency(run->cluster, i);
    tally_add(&run->figures[i].total, stats, latency);
    if (run->config->on_sample)
        tally_add(&run->figures[i].since_sample, stats, latency);
}

/* Keeps what the recommender said and what held it back, of a decision that changed something
 * rather than of later ones that did not. */
static void decide(struct trial *run, size_t i)
{
    struct figures *f = &run->figures[i];
    const struct subject *s = &run->subjects[i];
    bool changed = subject_decide(&run->subjects[i]);
    f->actions += changed;
    if (!run->config->on_sample || (f->changed && !changed))
        return;
    f->changed = changed;
    if (*s->proposed.reason && s->decision.limited)
        snprintf(f->reason, sizeof(f->reason), "%s (%s)", s->proposed.reason,
                 s->decision.limit_message);
    else
        snprintf(f->reason, sizeof(f->reason), "%s", s->proposed.reason);
}

/* Of a figure of memory; NaN where it is not modelled. */
static double if_modelled(const struct trial *run, size_t i, double figure)
{
    return run->settings[i].memory_limit_bytes > 0 ? figure : NAN;
}

/* Starting replicas have it in use, too. */
static double memory_used_byte_s(const struct cluster_function *f,
                                 const struct cluster_stats *stats)
{
    return stats->replica_s * f->memory_base_bytes +
           (stats->in_flight_s - stats->waiting_s) * f->memory_per_request_bytes;
}

static void sample(struct trial *run, size_t i)
{
    struct figures *f = &run->figures[i];
    const struct tally *t = &f->since_sample;
    const struct cluster_stats *stats = &t->stats;
    const struct subject *s = &run->subjects[i];
    run->config->on_sample(
        run->config->arg, i,
        &(struct trial_sample){
            .time_s = cluster_now_s(run->cluster),
            .requests_per_s = ratio((double)stats->arrived, stats->span_s),
            .latency_ms = cluster_latency_quantile_ms(&t->latency, s->seen.percentile / 100),
            .goal_ms = run->settings[i].goal_ms,
            .replicas = ratio(stats->replica_s, stats->span_s),
            .request_milli = ratio(stats->requested_cpu_s, stats->replica_s) * 1000,
            .cpu_utilization = ratio(stats->cpu_s, stats->requested_cpu_s),
            .violation_ratio = ratio((double)(stats->late + stats->lost),
                                     (double)(stats->completed + stats->lost)),
            .memory_bytes = if_modelled(run, i, ratio(stats->reserved_byte_s, stats->replica_s)),
            .memory_kills = stats->memory_kills,
            .changed = f->changed,
            .reason = f->reason,
        });
    f->since_sample = (struct tally){0};
    f->changed = false;
    f->reason[0] = '\0';
}

static void sample_all(struct trial *run, bool last)
{
    double now_s = cluster_now_s(run->cluster);
    if (!run->config->on_sample || (!last && now_s < run->next_sample_s))
        return;
    for (size_t i = 0; i < run->config->function_count; i++)
        sample(run, i);
    while (run->next_sample_s <= now_s)
        run->next_sample_s += run->config->interval_s;
}

static void conclude(const struct trial *run, size_t i, struct trial_result *out)
{
    const struct tally *t = &run->figures[i].total;
    const struct cluster_stats *stats = &t->stats;
    struct cluster_state state;
    cluster_state(run->cluster, i, &state);
    *out = (struct trial_result){
        .requests = stats->arrived,
        .violation_ratio =
            ratio((double)(stats->late + stats->lost + state.overdue), (double)stats->arrived),
        .latency_ms =
            cluster_latency_quantile_ms(&t->latency, run->subjects[i].seen.percentile / 100),
        .latency_mean_ms =
            t->latency.count > 0 ? 1000 * t->latency.sum_s / (double)t->latency.count : NAN,
        .goal_ms = run->settings[i].goal_ms,
        .cpu_core_seconds = stats->requested_cpu_s,
        .cpu_used_seconds = stats->cpu_s,
        .cpu_utilization = ratio(stats->cpu_s, stats->requested_cpu_s),
        .replicas_mean = ratio(stats->replica_s, stats->span_s),
        .actions = run->figures[i].actions,
        .memory_byte_seconds = if_modelled(run, i, stats->reserved_byte_s),
        .memory_used_byte_seconds =
            if_modelled(run, i, memory_used_byte_s(&run->settings[i], stats)),
        .memory_kills = stats->memory_kills,
    };
}

void trial_results(const struct trial *run, struct trial_result *results)
{
    for (size_t i = 0; i < run->config->function_count; i++)
        conclude(run, i, &results[i]);
}

/* --- step by step ----------------------------------------------------------------------------- */
struct trial *trial_open(const struct trial_config *config, struct error *err)
{
    struct trial *run = xcalloc(1, sizeof(*run));
    run->config = config;
    if (begin(run, err) == 0)
        return run;
    trial_close(run);
    return NULL;
}

void trial_close(struct trial *run)
{
    if (!run)
        return;
    end(run);
    free(run);
}

bool trial_advance(struct trial *run)
{
    const struct trial_config *config = run->config;
    if (run->over)
        return false;
    if (run->turn > 0)
        cluster_begin_interval(run->cluster);
    double until_s = (double)++run->turn * run->subjects[0].interval_s;
    run->over = until_s >= config->span_s;
    cluster_run(run->cluster, run->over ? config->span_s : until_s);
    for (size_t i = 0; i < config->function_count; i++)
        take_figures(run, i);
    if (run->over)
        sample_all(run, true);
    return !run->over;
}

const struct cluster_stats *trial_interval(const struct trial *run, size_t function)
{
    return cluster_stats(run->cluster, function);
}

void trial_ask(struct trial *run, size_t function)
{
    struct cluster_state state;
    subject_ask(&run->subjects[function], &state);
}

void trial_decide(struct trial *run)
{
    for (size_t i = 0; i < run->config->function_count; i++)
        decide(run, i);
    sample_all(run, false);
}

double trial_goal_ms(const struct trial *run, size_t function)
{
    return run->settings[function].goal_ms;
}

int trial_run(const struct trial_config *config, struct trial_result *results, struct error *err)
{
    struct trial *run = trial_open(config, err);
    if (!run)
        return -1;
    while (trial_advance(run))
        trial_decide(run);
    trial_results(run, results);
    trial_close(run);
    return 0;
}
