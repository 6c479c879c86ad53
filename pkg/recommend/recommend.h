/* The one interface that matters: an observation in, a recommendation with its reason out.
 *
 * Knows nothing of Kubernetes or HTTP; the simulator and the controller call the same code. Figures
 * that are not known are NaN. CPU is in milli-cores, memory in bytes, latency in milliseconds. */
#ifndef FAASRL_RECOMMEND_H
#define FAASRL_RECOMMEND_H

#include "base/base.h"

#define RECOMMEND_MAX_CONTAINERS 16
#define RECOMMEND_MAX_METRICS    8

enum recommend_resource { RECOMMEND_CPU, RECOMMEND_MEMORY, RECOMMEND_RESOURCE_COUNT };

/* --- what is known --------------------------------------------------------------------------- */
enum recommend_latency { /* why latency_ms is or is not a number */
                         LATENCY_NO_GOAL,
                         LATENCY_KNOWN,
                         LATENCY_NO_TRAFFIC, /* the series are there, no request came: nothing to be
                                                late */
                         LATENCY_OVERFLOW, /* beyond the histogram's last bucket: latency_ms is that
                                              bound */
                         LATENCY_MISSING,  /* no series, or stale: not the same as zero */
};

struct recommend_container {
    const char *name;
    bool controlled[RECOMMEND_RESOURCE_COUNT];
    double request[RECOMMEND_RESOURCE_COUNT]; /* what pods have now (the most common), NaN: none */
    double min[RECOMMEND_RESOURCE_COUNT], max[RECOMMEND_RESOURCE_COUNT]; /* always numbers */
};

struct recommend_usage {
    double usage[RECOMMEND_RESOURCE_COUNT];   /* NaN: missing */
    double request[RECOMMEND_RESOURCE_COUNT]; /* in force, NaN: none */
};

struct recommend_pod {
    bool ready;
    bool pending;  /* not running yet: left out whatever its figures */
    bool starting; /* its CPU figures do not count yet (HPA's readiness delay) */
    double age_s;
    struct recommend_usage containers[RECOMMEND_MAX_CONTAINERS];
};

struct recommend_metric { /* a target as in HPA v2 */
    enum recommend_resource resource;
    int container;        /* index, or -1: the whole pod */
    double utilization;   /* 0.7 of the request; NaN when average_value is used */
    double average_value; /* per pod; NaN when utilization is used */
};

struct observation {
    double now_s; /* any clock that only goes forward */
    enum recommend_latency latency_state;
    double percentile, goal_ms, latency_ms, requests_per_s;
    double concurrency;      /* requests in flight or waiting, mean of the window; NaN: unknown */
    double late_share;       /* of the requests, slower than the goal, 0..1; NaN: unknown */
    double throttled;        /* share of CFS periods throttled, 0..1, NaN: unknown */
    double since_increase_s; /* since replicas or CPU last grew by our hand; INFINITY: never */
    double latency_window_s; /* latency_ms looks back this far */
    int replicas_wanted;     /* the target's spec */
    int min_replicas, max_replicas;
    double tolerance_up, tolerance_down;
    struct recommend_metric metrics[RECOMMEND_MAX_METRICS];
    size_t metric_count;
    struct recommend_container containers[RECOMMEND_MAX_CONTAINERS];
    size_t container_count;
    const struct recommend_pod *pods;
    size_t pod_count;
};

/* --- what is proposed ------------------------------------------------------------------------ */
enum recommend_action { ACTION_NONE, ACTION_UP, ACTION_DOWN, ACTION_BOTH };

struct recommendation {
    int replicas;
    struct {
        double target[RECOMMEND_RESOURCE_COUNT]; /* within min..max; NaN: not controlled */
        double lower[RECOMMEND_RESOURCE_COUNT], upper[RECOMMEND_RESOURCE_COUNT];
        double uncapped[RECOMMEND_RESOURCE_COUNT];
    } containers[RECOMMEND_MAX_CONTAINERS];
    size_t container_count;
    /* One plain sentence with its numbers:
     * "p99 412ms over goal 300ms at 91% CPU: cpu 250m → 500m". */
    char reason[384];
};

/* An amount as people write it: "250m", "2", "64Mi"; "none" for NaN. Returns text. */
const char *recommend_print_amount(enum recommend_resource resource, double amount, char text[32]);

/* --- recommenders --------------------------------------------------------------------------- */
struct recommend_param { /* something that can be tuned */
    const char *name, *help;
    double value;     /* unless told otherwise; 0 outside low..high: see help */
    double low, high; /* what is sensible, and what tuning searches */
};

struct recommend_policy; /* recommend/policy.h */

struct recommender {
    const char *name, *summary;
    const struct recommend_param *params;
    size_t param_count;
    double interval_s; /* how often it wants to be asked; 0: as often as the installation asks */
    /* It has windows of its own, so that in simulations nothing but bounds is laid on top unless an
     * MPA states a behavior. */
    bool damps_itself;
    /* The memory of one MPA; what was seen memory_s ago counts half of what is seen now. params are
     * in the order of the table above; NULL: their usual values. */
    void *(*create)(double memory_s, const double *params);
    void (*destroy)(void *self);
    /* A usage figure from the past, oldest first, to begin with more than nothing. Optional. */
    void (*remember)(void *self, const char *container, enum recommend_resource resource,
                     double time_s, double usage);
    /* Of those that have learned: what to decide by from now on, NULL: nothing. Is held until
     * another one comes. Without one nothing can be recommended. Fails, and leaves all as it is,
     * with one that is for another recommender. NULL: it needs none. */
    int (*use)(void *self, const struct recommend_policy *policy, struct error *err);
    /* Fails when nothing can be said (no pods, no figures); then nothing must be changed. */
    int (*recommend)(void *self, const struct observation *seen, struct recommendation *out,
                     struct error *err);
    /* Writes the reason of what was just recommended, which takes longer than to decide. NULL:
     * recommend has written it; else it leaves it empty, for those who do not read it. */
    void (*explain)(void *self, const struct observation *seen, struct recommendation *out);
};
const struct recommender *recommend_find(const char *name); /* NULL when it is not one of ours */
/* All of them, NULL-terminated. */
extern const struct recommender *const recommend_all[];
extern const struct recommender recommend_threshold;
/* The baselines; docs/baselines.md tells what each does and where it is from. */
extern const struct recommender recommend_fixed, recommend_hpa, recommend_kpa, recommend_vpa,
    recommend_hpa_vpa, recommend_ensure, recommend_greedy, recommend_feedforward;
/* The learned ones; docs/ppo.md. */
extern const struct recommender recommend_ppo, recommend_ppo_steps;

/* --- who decides on one MPA (seat.c) -----------------------------------------------------------
 */
struct recommend_seat {
    const struct recommender *recommender; /* NULL: nobody yet */
    void *memory;
    void *standby; /* thresholds' memory: they watch where a learned one decides; else NULL */
};
/* Begins with nothing. Fails, and leaves the seat as it is, where the recommender has learned and
 * the policy is none for it. */
int recommend_seat_take(struct recommend_seat *seat, const struct recommender *recommender,
                        double memory_s, const double *params,
                        const struct recommend_policy *policy, struct error *err);
void recommend_seat_leave(struct recommend_seat *seat);
/* Decides by another policy from now on; NULL: by none, so that thresholds decide. */
int recommend_seat_use(struct recommend_seat *seat, const struct recommend_policy *policy,
                       struct error *err);
void recommend_seat_remember(struct recommend_seat *seat, const char *container,
                             enum recommend_resource resource, double time_s, double usage);
/* sizes_stay: only new pods can get another size, so that growing those that run is no answer: the
 * number of replicas is what it would be with sizes fixed. Where a learned one cannot decide,
 * thresholds do, and instead->code is not ERROR_NONE: why. */
int recommend_seat_ask(struct recommend_seat *seat, const struct observation *seen, bool sizes_stay,
                       struct recommendation *out, struct error *instead, struct error *err);
/* Writes the reason of what was just asked for, where there is none yet. */
void recommend_seat_explain(struct recommend_seat *seat, const struct observation *seen,
                            struct recommendation *out);
/* Whether a recommender can decide by a policy; why not. */
int recommend_fits(const struct recommender *recommender, const struct recommend_policy *policy,
                   struct error *err);

/* --- what would have been (shadow.c) -----------------------------------------------------------
 * Holds what a target has, and what became of its requests, against what was recommended for it and
 * not done. Late requests are those that the queue model of feedforward and ppo expects with the
 * sizes recommended, a demand that is learned as it goes, and the rate of each interval. */
struct recommend_shadow;

struct recommend_shadow_sums {
    double span_s;                     /* that is covered */
    double core_s, core_s_recommended; /* CPU reserved, and recommended, of all replicas */
    double judged_s;                   /* of the span: in which late requests could be judged */
    double requests, late;             /* in these */
    double late_recommended;           /* expected */
};

/* Goes on from these sums; NULL: from nothing. */
struct recommend_shadow *recommend_shadow_new(const struct recommend_shadow_sums *from);
void recommend_shadow_free(struct recommend_shadow *shadow); /* NULL: nothing */
/* Each interval: what is recommended now counts for the interval that begins. */
void recommend_shadow_add(struct recommend_shadow *shadow, const struct observation *seen,
                          const struct recommendation *recommended);
struct recommend_shadow_sums recommend_shadow_sums(const struct recommend_shadow *shadow);

/* --- what must be there ---------------------------------------------------------------------- */
struct recommend_need {
    double mean_s, tail_s; /* CPU time of a request: its mean, and at the percentile */
    double percentile, goal_s;
    double min_milli, max_milli; /* of a replica */
    int min_replicas, max_replicas;
};
/* The CPU of all replicas that keeps the goal by the queue model of feedforward and ppo: the mean
 * over these rates, were each known when it comes. */
double recommend_needed_milli(const struct recommend_need *need, const double *rates, size_t count);

/* --- parts of the threshold recommender, each a contract of its own ------------------------- */
/* HPA v2's rule for one metric: how many replicas, with its treatment of unready and missing pods
 * and its tolerance. *ratio is the capacity needed over that of the wanted replicas, before
 * rounding to whole replicas (1 when HPA keeps the count). Fails when no pod has a figure. */
int recommend_hpa_replicas(const struct observation *seen, const struct recommend_metric *metric,
                           int *replicas, double *ratio, struct error *err);
/* Plain usage over target of the pods that count, without HPA's rounding; NaN: unknown. */
double recommend_usage_ratio(const struct observation *seen, const struct recommend_metric *metric);

/* VPA's decaying histogram: exponential buckets (first 0.01 core, growing 5 %), weights that halve
 * every half_life_s. */
struct recommend_histogram;
struct recommend_histogram *recommend_histogram_new(double first_bucket, double max_value,
                                                    double half_life_s);
void recommend_histogram_free(struct recommend_histogram *h);
/* A negative weight takes back a sample that was added with the same time and value. */
void recommend_histogram_add(struct recommend_histogram *h, double time_s, double value,
                             double weight);
/* The end of the bucket in which the share q of the weight is reached; NaN: empty. */
double recommend_histogram_percentile(const struct recommend_histogram *h, double q);
bool recommend_histogram_empty(const struct recommend_histogram *h);

#endif
