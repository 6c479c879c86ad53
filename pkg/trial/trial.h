/* A recommender tried on a simulated cluster: each interval observe, recommend, guard, and the
 * cluster does it. Recommender and guard are the controller's own code. */
#ifndef FAASRL_TRIAL_H
#define FAASRL_TRIAL_H

#include "api/api.h"
#include "guard/guard.h"
#include "recommend/recommend.h"
#include "sim/cluster.h"

/* recommend_find's, and those that only a simulation can have: oracle, oracle-requests. */
const struct recommender *trial_find(const char *name);
/* All names, NULL-terminated. */
extern const char *const trial_names[];

/* "hpa" or "hpa:target=0.6,window_s=120". */
struct trial_choice {
    const struct recommender *recommender;
    char *label;                           /* as it was written */
    double *params;                        /* all of them, in the recommender's order */
    const struct recommend_policy *policy; /* of recommenders that have learned, else NULL */
};
int trial_choose(const char *text, struct trial_choice *out, struct error *err);
void trial_choice_clear(struct trial_choice *choice);

struct trial_function {
    const struct trace_function *workload;
    const struct api_spec *spec; /* bounds, metrics, behavior and the goal */
    bool behavior_stated;        /* else nothing but bounds holds a recommender that damps itself */
    double goal_ms;              /* 0: the spec's, and where it has none trace_default_goal_ms */
    /* To begin with. request_milli 0: 1 core, as far as the bounds allow, and the limit the same;
     * limit_milli 0: no quota. replicas 0: as many, within the bounds, as are half busy in the
     * first minute. */
    double request_milli, limit_milli;
    int replicas;
    const struct recommend_policy *policy; /* in place of the choice's, or NULL */
};

struct trial_sample {      /* one interval of one function, for plots; means over it */
    double time_s;         /* at its end */
    double requests_per_s; /* that came */
    double latency_ms;     /* at the goal's percentile; NaN: none was completed */
    double goal_ms;
    double replicas, request_milli, cpu_utilization, violation_ratio;
    double memory_bytes;   /* limit of a replica; NaN: memory is not modelled */
    uint64_t memory_kills; /* not a mean: how many */
    bool changed;          /* a decision at its end, or within it, changed something */
    const char *reason;    /* of the last one that did, else of the last one; "": there was none */
};

/* Decides in place of the choice's recommender, as the controller does that learns and harvests:
 * what it says goes through the guard as well. The choice then tells only how often it is asked and
 * whether it damps itself. */
struct trial_hand {
    int (*recommend)(void *arg, size_t function, const struct observation *seen,
                     struct recommendation *out, struct error *err);
    void *arg;
};

struct trial_config {
    const struct trial_function *functions; /* together on the nodes */
    size_t function_count;
    const struct cluster_node *nodes;
    size_t node_count;                /* 0: ample */
    struct cluster_function defaults; /* delays, overhead, dispatch: all but what is above */
    const struct trial_choice *choice;
    const struct trial_hand *instead; /* or NULL */
    double interval_s; /* between decisions, for recommenders with no interval of their own */
    double span_s;
    uint64_t seed;
    void (*on_sample)(void *arg, size_t function, const struct trial_sample *sample); /* or NULL */
    void *arg;
};

struct trial_result { /* of one function */
    uint64_t requests;
    double violation_ratio; /* late, lost, or overdue at the end, of all requests */
    double latency_ms;      /* at the goal's percentile, whole run; NaN: none was completed */
    double latency_mean_ms; /* NaN likewise */
    double goal_ms;
    double cpu_core_seconds; /* reserved, from the beginning on */
    double cpu_used_seconds;
    double cpu_utilization; /* used of reserved */
    double replicas_mean;
    uint64_t actions; /* decisions that changed something */
    /* All but the kills NaN where memory is not modelled. */
    double memory_byte_seconds; /* reserved, from the beginning on */
    double memory_used_byte_seconds;
    uint64_t memory_kills; /* of replicas that were beyond their limit */
};

/* What clusters are like unless something else is said: start 2 s, resize 0.5 s, as measured. */
extern const struct cluster_function trial_default_function;

/* Bounds for functions without an MPA: 1 to 20 replicas of 100m to 2 cores, HPA's behavior, 70 %
 * CPU, p99 with no goal of its own. There is nothing in it to free. */
void trial_default_spec(struct api_spec *out);

/* Whether memory is modelled under a spec: where it controls it. A replica then has in use what the
 * workload says, trial_idle_bytes where it does not, and trial_request_share of that more for each
 * request in it, which no trace tells. Its limit is twice what an idle one uses to begin with,
 * within the bounds. For oracles memory is not modelled: they are never short of it. */
bool trial_models_memory(const struct api_spec *spec);
extern const double trial_idle_bytes, trial_request_share;

/* Each interval what pkg/observe would see of the last one goes to the recommender, what it says
 * through the guard, and what the guard leaves is done. A recommender that fails changes nothing. A
 * resize that nodes have no room for is taken back as the controller does. The same seed gives the
 * same requests, whatever the recommender, and the same results. */
int trial_run(const struct trial_config *config, struct trial_result *results, struct error *err);

/* --- the same, step by step ------------------------------------------------------------------ */
struct trial;
/* The config and all it names must outlive the trial. */
struct trial *trial_open(const struct trial_config *config, struct error *err);
void trial_close(struct trial *trial);
/* Until the next decision is due; false: the trial is over. */
bool trial_advance(struct trial *trial);
/* Of the interval that ends now. */
const struct cluster_stats *trial_interval(const struct trial *trial, size_t function);
/* Asks the recommender of a function and does nothing. Afterwards it decides as if it had not been
 * asked. */
void trial_ask(struct trial *trial, size_t function);
void trial_decide(struct trial *trial); /* all functions */
void trial_results(const struct trial *trial, struct trial_result *results);
/* The goal that counts. */
double trial_goal_ms(const struct trial *trial, size_t function);

#endif
