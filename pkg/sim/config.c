/* The settings of the environment: one table of them all, and what each formulation sets. */
#include "sim/env.h"

#include <errno.h>
#include <string.h>

/* --- the table -------------------------------------------------------------------------------- */
enum kind { KIND_NAME, KIND_TRACE, KIND_INT, KIND_REAL };

struct option {
    struct sim_option public;
    enum kind kind;
    size_t at; /* in struct sim_config */
};

#define NAME(field, help)                                                                          \
    {                                                                                              \
        {#field, help, 0, 0}, KIND_NAME, offsetof(struct sim_config, field)                        \
    }
#define INT(field, low, high, help)                                                                \
    {                                                                                              \
        {#field, help, low, high}, KIND_INT, offsetof(struct sim_config, field)                    \
    }
#define REAL(field, low, high, help)                                                               \
    {                                                                                              \
        {#field, help, low, high}, KIND_REAL, offsetof(struct sim_config, field)                   \
    }

static const struct option options[] = {
    NAME(state, "what an agent sees: default, mp3, mappo, simppo or aware"),
    NAME(actions, "what it can do: default, mp3, mappo, simppo or aware"),
    NAME(reward, "what it gets: default, mp3, mappo, simppo or aware"),
    {{"trace", "a workload, as in mpactl --trace; may be given several times", 0, 0},
     KIND_TRACE,
     0},
    INT(clusters, 1, 65536, "clusters side by side"),
    INT(functions, 1, 10000, "functions in each cluster, one agent each"),
    INT(threads, 1, 1024, "cores to use"),
    INT(episode_steps, 1, 1e6, "decisions in an episode"),
    REAL(interval_s, 0.1, 3600, "seconds between decisions"),
    INT(nodes, 0, 10000, "nodes of a cluster; 0: one that is never short of CPU"),
    REAL(node_cores, 0.1, 1e6, "cores of a node"),
    INT(shuffle, 0, 2,
        "1: each episode draws its workloads; else function i has workload i, from its "
        "beginning (0) or from anywhere in it (2)"),
    REAL(rate_spread, 1, 1000, "each episode scales a workload's rate by 1/x to x"),
    REAL(demand_spread, 1, 1000, "and the CPU of its requests"),
    REAL(churn, 0, 1, "share of functions that join late, and that leave early; the first stays"),
    REAL(goal_ms, 0, 1e9, "latency goal; 0: twice the workload's p99 alone on one core"),
    REAL(percentile, 1, 99.99, "of requests that must meet the goal"),
    INT(min_replicas, 0, 100000, "bound of replicas"),
    INT(max_replicas, 1, 100000, "bound of replicas"),
    INT(initial_replicas, 0, 100000, "replicas at the beginning of an episode"),
    REAL(min_cpu, 1, 1e6, "bound of a replica's CPU, in cpu.shares or millicores"),
    REAL(max_cpu, 1, 1e6, "bound of a replica's CPU"),
    REAL(initial_cpu, 1, 1e6, "a replica's CPU at the beginning"),
    REAL(limit_ratio, 0, 1000, "CPU limit / request, where CPU is in millicores; 0: no limit"),
    REAL(min_memory_mib, 1, 1e6, "bound of a replica's memory"),
    REAL(max_memory_mib, 1, 1e6, "bound of a replica's memory"),
    REAL(initial_memory_mib, 1, 1e6, "a replica's memory limit at the beginning"),
    REAL(memory_mib, 0, 1e6, "memory of an idle replica, where the workload does not say"),
    REAL(request_memory_mib, 0, 1e6, "memory of each request in flight"),
    INT(concurrency, 0, 1e6, "requests in a replica at once, others wait; 0: no bound"),
    REAL(start_s, 0, 3600, "from scheduled to ready"),
    REAL(resize_s, 0, 3600, "from resized to in force"),
    REAL(cold_cpu_ms, 0, 1e6, "more CPU for the first request of a replica"),
    REAL(overhead_ms, 0, 1e6, "of each request, beside CPU"),
    REAL(crash_per_hour, 0, 3600, "of a replica"),
    REAL(alpha, 0, 1, "weight in the rewards of the documents"),
    REAL(lambda, 0, 1e6, "weight of broken goals in the default reward"),
    REAL(illegal_penalty, 0, 1e6, "taken off the reward of an illegal action"),
    REAL(oscillation_penalty, 0, 1e6, "taken off for taking back the action before"),
    INT(mean_field, 0, 1, "1: a virtual agent is the mean of all others, 0: the sum where it is"),
    INT(selfish, 0, 1, "1: each gets its own reward where the formulation's is the team's"),
};

const struct sim_option *sim_option(size_t i)
{
    return i < ARRAY_LEN(options) ? &options[i].public : NULL;
}

/* --- formulations ----------------------------------------------------------------------------- */
#define ALIKE                                                                                      \
    .clusters = 1, .threads = 1, .episode_steps = 200, .interval_s = 15, .nodes = 1, .shuffle = 1, \
    .rate_spread = 1, .demand_spread = 1, .percentile = 99, .limit_ratio = 1,                      \
    .min_memory_mib = 128, .max_memory_mib = 512, .initial_memory_mib = 512, .memory_mib = 96,     \
    .request_memory_mib = 16, .start_s = 2, .resize_s = 0.5, .alpha = 0.3, .lambda = 80
/* The documents stand on OpenWhisk, which gives a container one request at a time. */
#define OPENWHISK .min_cpu = 128, .max_cpu = 2048, .concurrency = 1
#define PENALTIES .illegal_penalty = 1, .oscillation_penalty = 1
#define TEAM                                                                                       \
    .functions = 5, .node_cores = 8, .min_replicas = 0, .max_replicas = 1000,                      \
    .initial_replicas = 4, .initial_cpu = 1024

static const struct sim_config formulations[] = {
    {.formulation = "default",
     ALIKE,
     .functions = 1,
     .node_cores = 8,
     .min_replicas = 1,
     .max_replicas = 20,
     .initial_replicas = 1,
     .min_cpu = 100,
     .max_cpu = 2000,
     .initial_cpu = 1000},
    {.formulation = "mp3",
     ALIKE,
     OPENWHISK,
     PENALTIES,
     .functions = 4,
     .node_cores = 2,
     .min_replicas = 1,
     .max_replicas = 10,
     .initial_replicas = 1,
     .initial_cpu = 512},
    {.formulation = "mappo", ALIKE, OPENWHISK, PENALTIES, TEAM},
    {.formulation = "simppo", ALIKE, OPENWHISK, PENALTIES, TEAM},
    {.formulation = "aware",
     ALIKE,
     OPENWHISK,
     .functions = 1,
     .node_cores = 8,
     .min_replicas = 1,
     .max_replicas = 20,
     .initial_replicas = 4,
     .initial_cpu = 1024},
};

const char *const sim_formulations[] = {"default", "mp3", "mappo", "simppo", "aware", NULL};

static const struct sim_config *formulation_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(formulations); i++)
        if (strcmp(formulations[i].formulation, name) == 0)
            return &formulations[i];
    return NULL;
}

static int unknown_name(const char *what, const char *name, struct error *err)
{
    return error_set(err, ERROR_INVALID,
                     "%s \"%s\" is not known: must be default, mp3, mappo, simppo or aware", what,
                     name);
}

int sim_config_init(struct sim_config *config, const char *formulation, struct error *err)
{
    const struct sim_config *known = formulation_find(formulation);
    if (known == NULL) {
        *config = (struct sim_config){0};
        return unknown_name("formulation", formulation, err);
    }
    *config = *known;
    config->state = config->actions = config->reward = known->formulation;
    return 0;
}

void sim_config_clear(struct sim_config *config)
{
    for (size_t i = 0; i < config->trace_count; i++)
        free(config->traces[i]);
    free(config->traces);
    *config = (struct sim_config){0};
}

/* --- setting ---------------------------------------------------------------------------------- */
static int set_number(struct sim_config *config, const struct option *o, const char *value,
                      struct error *err)
{
    char *end;
    errno = 0;
    double number = strtod(value, &end);
    bool whole = o->kind == KIND_REAL || number == floor(number);
    if (end == value || *end != '\0' || !whole ||
        !(number >= o->public.low && number <= o->public.high))
        return error_set(err, ERROR_INVALID, "%s is \"%s\": must be a %s from %g to %g",
                         o->public.name, value, o->kind == KIND_INT ? "whole number" : "number",
                         o->public.low, o->public.high);
    void *field = (char *)config + o->at;
    if (o->kind == KIND_INT)
        *(int *)field = (int)number;
    else
        *(double *)field = number;
    return 0;
}

static int set_name(struct sim_config *config, const struct option *o, const char *value,
                    struct error *err)
{
    const struct sim_config *known = formulation_find(value);
    if (known == NULL)
        return unknown_name(o->public.name, value, err);
    *(const char **)((char *)config + o->at) = known->formulation;
    return 0;
}

static int add_trace(struct sim_config *config, const char *value)
{
    config->traces = xrealloc(config->traces, config->trace_count + 1, sizeof(*config->traces));
    config->traces[config->trace_count++] = xstrdup(value);
    return 0;
}

int sim_config_set(struct sim_config *config, const char *name, const char *value,
                   struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const struct option *o = &options[i];
        if (strcmp(o->public.name, name) != 0)
            continue;
        return o->kind == KIND_NAME    ? set_name(config, o, value, err)
               : o->kind == KIND_TRACE ? add_trace(config, value)
                                       : set_number(config, o, value, err);
    }
    return error_set(err, ERROR_INVALID, "there is no setting \"%s\"", name);
}

/* --- what fits together ----------------------------------------------------------------------- */
int config_check(const struct sim_config *c, struct error *err)
{
    const struct {
        const char *what;
        double low, value, high;
    } ranges[] = {
        {"replicas", c->min_replicas, c->initial_replicas, c->max_replicas},
        {"cpu", c->min_cpu, c->initial_cpu, c->max_cpu},
        {"memory_mib", c->min_memory_mib, c->initial_memory_mib, c->max_memory_mib},
    };
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        const char *what = ranges[i].what;
        if (!(ranges[i].low <= ranges[i].value && ranges[i].value <= ranges[i].high))
            return error_set(err, ERROR_INVALID,
                             "min_%s %g, initial_%s %g, max_%s %g: must be in this order", what,
                             ranges[i].low, what, ranges[i].value, what, ranges[i].high);
    }
    if ((double)c->clusters * c->functions > 1e6)
        return error_set(err, ERROR_TOO_LARGE,
                         "%d clusters of %d functions: at most a million in all", c->clusters,
                         c->functions);
    return 0;
}
