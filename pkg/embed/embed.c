#include "embed/embed.h"
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The monotonic clock at the beginning: 0 means "never" to some. */
#define MONO_MS 1000000

/* --- beginning ------------------------------------------------------------------------------- */
/* What an API server adds to a manifest. */
static json_t *admit(const json_t *manifest, size_t index, int64_t now_ms)
{
    char uid[32], created[RFC3339_SIZE];
    json_t *object = json_deep_copy(manifest);
    json_t *metadata = json_object_get(object, "metadata");
    snprintf(uid, sizeof(uid), "mpa-%zu", index);
    time_format(now_ms, created);
    json_object_set_new(metadata, "namespace", json_string(EMBED_NAMESPACE));
    json_object_set_new(metadata, "uid", json_string(uid));
    json_object_set_new(metadata, "generation", json_integer(1));
    json_object_set_new(metadata, "creationTimestamp", json_string(created));
    return object;
}

static const struct kube_resource deployments = {"apps/v1", "Deployment", "/apis/apps/v1",
                                                 "deployments"};

static int check_mpa(const struct embed *e, const struct function *f, struct error *err)
{
    const struct api_spec *spec = &f->mpa.spec;
    if (spec->mode == API_MODE_INITIAL)
        return error_set(err, ERROR_INVALID,
                         "MPA %s: mode Initial cannot be simulated, as replicas of a function have "
                         "one size; Off and Auto can",
                         f->mpa.name);
    if (strcmp(spec->target_kind, deployments.kind) != 0 ||
        strcmp(spec->target_api_version, deployments.api_version) != 0)
        return error_set(err, ERROR_INVALID,
                         "MPA %s: only a Deployment of apps/v1 is simulated, no %s of %s",
                         f->mpa.name, spec->target_kind, spec->target_api_version);
    for (const struct function *other = e->functions; other < f; other++)
        if (strcmp(other->mpa.spec.target_name, spec->target_name) == 0)
            return error_set(err, ERROR_INVALID, "MPAs %s and %s have the same target",
                             other->mpa.name, f->mpa.name);
    return 0;
}

/* The name of the container: the first that the MPA names. */
static const char *container_name(const struct api_spec *spec)
{
    for (size_t i = 0; i < spec->container_count; i++)
        if (strcmp(spec->containers[i].name, "*") != 0)
            return spec->containers[i].name;
    return "function";
}

static int set_function(struct embed *e, size_t index, struct error *err)
{
    const struct embed_function *given = &e->options.functions[index];
    struct function *f = &e->functions[index];
    f->joins_s = given->joins_s;
    f->object = admit(given->mpa, index, e->options.start_ms + llround(f->joins_s * 1000));
    if (api_parse(f->object, &f->mpa, err) < 0)
        return -1;
    const struct api_spec *spec = &f->mpa.spec;
    f->container = container_name(spec);
    f->latency = xcalloc(e->slots, sizeof(*f->latency));
    f->settings = trial_default_function;
    f->settings.workload = given->workload;
    f->settings.goal_ms = spec->latency_target_us > 0 ? (double)spec->latency_target_us / 1000
                                                      : trace_default_goal_ms(given->workload);
    f->settings.replicas = given->replicas;
    f->settings.request_milli = given->request_milli;
    f->settings.limit_milli = given->limit_milli;
    f->resized_s = -INFINITY;
    f->deployment = (struct kube_workload){.resource = &deployments,
                                           .kind = spec->target_kind,
                                           .namespace_ = f->mpa.namespace_,
                                           .name = spec->target_name};
    snprintf(f->deployment.uid, sizeof(f->deployment.uid), "deployment-%zu", index);
    return check_mpa(e, f, err);
}

static int start_cluster(struct embed *e, struct error *err)
{
    struct cluster_function *settings = xcalloc(e->function_count, sizeof(*settings));
    for (size_t i = 0; i < e->function_count; i++)
        settings[i] = e->functions[i].settings;
    e->cluster = cluster_new(&(struct cluster_config){.nodes = e->options.nodes,
                                                      .node_count = e->options.node_count,
                                                      .functions = settings,
                                                      .function_count = e->function_count,
                                                      .seed = e->options.seed},
                             err);
    free(settings);
    return e->cluster ? 0 : -1;
}

static void set_clocks(const struct embed *e)
{
    int64_t now_ms = e->cluster ? llround(cluster_now_s(e->cluster) * 1000) : 0;
    clock_set(MONO_MS + now_ms, e->options.start_ms + now_ms);
}

/* The controller hears of MPAs that are there by now. */
static void join(struct embed *e)
{
    for (size_t i = 0; i < e->function_count; i++) {
        struct function *f = &e->functions[i];
        if (f->joined || f->joins_s > cluster_now_s(e->cluster))
            continue;
        f->joined = true;
        controller_mpa(e->controller, f->object, false);
    }
}

static int start_controller(struct embed *e, struct error *err)
{
    struct world world = embed_world(e);
    struct controller_options options = e->options.controller;
    struct observe_options observe = {.window_s = e->options.window_s};
    options.history_s = 0; /* before the beginning there was nothing */
    e->observe = observe_new(NULL, &observe, err);
    if (e->observe == NULL)
        return -1;
    e->controller = controller_new_on(&world, e->observe, &options);
    join(e);
    return 0;
}

struct embed *embed_new(const struct embed_options *options, struct error *err)
{
    struct embed *e = xcalloc(1, sizeof(*e));
    e->options = *options;
    e->interval_s = options->controller.interval_s;
    e->slots = (size_t)fmax(1, round(options->window_s / e->interval_s));
    e->functions = xcalloc(options->function_count, sizeof(*e->functions));
    set_clocks(e);
    for (size_t i = 0; i < options->function_count; i++) {
        e->function_count++;
        if (set_function(e, i, err) < 0) {
            embed_free(e);
            return NULL;
        }
    }
    if (start_cluster(e, err) < 0 || start_controller(e, err) < 0) {
        embed_free(e);
        return NULL;
    }
    return e;
}

void embed_free(struct embed *e)
{
    if (e == NULL)
        return;
    controller_free(e->controller);
    observe_free(e->observe);
    cluster_free(e->cluster);
    for (size_t i = 0; i < e->function_count; i++) {
        struct function *f = &e->functions[i];
        facts_free(f);
        json_decref(f->object);
        api_clear(&f->mpa);
    }
    free(e->functions);
    free(e);
    clock_use_system();
}

/* --- running --------------------------------------------------------------------------------- */
/* What was written comes back by the watch. */
static void deliver(struct embed *e)
{
    for (size_t i = 0; i < e->function_count; i++) {
        struct function *f = &e->functions[i];
        f->actions += f->acted;
        if (f->changed)
            controller_mpa(e->controller, f->object, false);
        f->acted = f->changed = false;
    }
    if (e->woken)
        controller_catch_up(e->controller);
    e->woken = false;
}

void embed_step(struct embed *e)
{
    e->steps++;
    e->slot = e->steps % e->slots;
    cluster_run(e->cluster, (double)e->steps * e->interval_s);
    set_clocks(e);
    join(e);
    facts_take(e);
    if (e->steps >= e->slots)
        controller_pass(e->controller);
    deliver(e);
    cluster_begin_interval(e->cluster);
}

double embed_now_s(const struct embed *e)
{
    return cluster_now_s(e->cluster);
}

const struct cluster *embed_cluster(const struct embed *e)
{
    return e->cluster;
}

struct controller *embed_controller(struct embed *e)
{
    return e->controller;
}

const json_t *embed_mpa(const struct embed *e, size_t function)
{
    return e->functions[function].object;
}

/* --- results --------------------------------------------------------------------------------- */
static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

void embed_result(const struct embed *e, size_t function, struct trial_result *out)
{
    const struct function *f = &e->functions[function];
    const struct cluster_stats *t = &f->total;
    struct cluster_state state;
    cluster_state(e->cluster, function, &state);
    *out = (struct trial_result){
        .requests = t->arrived,
        .violation_ratio = ratio((double)(t->late + t->lost + state.overdue), (double)t->arrived),
        .latency_ms = cluster_latency_quantile_ms(&f->all, f->mpa.spec.latency_percentile / 100),
        .latency_mean_ms = f->all.count > 0 ? 1000 * f->all.sum_s / (double)f->all.count : NAN,
        .goal_ms = f->settings.goal_ms,
        .cpu_core_seconds = t->requested_cpu_s,
        .cpu_used_seconds = t->cpu_s,
        .cpu_utilization = ratio(t->cpu_s, t->requested_cpu_s),
        .replicas_mean = ratio(t->replica_s, t->span_s),
        .actions = f->actions,
    };
}

int embed_compare(const struct embed *e, const char *recommender, struct trial_result *results,
                  struct error *err)
{
    struct trial_choice choice;
    if (trial_choose(recommender, &choice, err) < 0)
        return -1;
    struct trial_function *functions = xcalloc(e->function_count, sizeof(*functions));
    for (size_t i = 0; i < e->function_count; i++) {
        const struct function *f = &e->functions[i];
        functions[i] = (struct trial_function){
            .workload = f->settings.workload,
            .spec = &f->mpa.spec,
            .behavior_stated =
                json_path(f->object, "spec", "constraints", "global", "behavior", NULL) != NULL,
            .goal_ms = f->settings.goal_ms,
            .request_milli = f->settings.request_milli,
            .limit_milli = f->settings.limit_milli,
            .replicas = f->settings.replicas,
        };
    }
    int result = trial_run(&(struct trial_config){.functions = functions,
                                                  .function_count = e->function_count,
                                                  .nodes = e->options.nodes,
                                                  .node_count = e->options.node_count,
                                                  .defaults = trial_default_function,
                                                  .choice = &choice,
                                                  .interval_s = e->interval_s,
                                                  .span_s = embed_now_s(e),
                                                  .seed = e->options.seed},
                           results, err);
    free(functions);
    trial_choice_clear(&choice);
    return result;
}
