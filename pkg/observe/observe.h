/* Facts in, one observation per MPA out: joins what the cluster says (pods, requests) with what
 * Prometheus measured (latency, usage, throttling). */
#ifndef FAASRL_OBSERVE_H
#define FAASRL_OBSERVE_H

#include "api/api.h"
#include "kube/kube.h"
#include "prometheus/prometheus.h"
#include "recommend/recommend.h"

struct observe; /* the queries of an installation and their newest answers */

/* Which queries of MPAs are asked. */
enum observe_own {
    OBSERVE_OWN_ANY,
    OBSERVE_OWN_NAMESPACE, /* those that read series of the MPA's namespace only */
    OBSERVE_OWN_OFF,
};

struct observe_options {
    enum observe_own own;
    const char *templates[PROM_METRIC_COUNT]; /* NULL: the built-in one */
    const char *const *namespaces;            /* NULL-terminated; NULL or empty: all */
    double window_s;                          /* rates look back this far */
};

/* Fails when a template cannot be expanded. prom may be NULL when figures are only given. */
struct observe *observe_new(struct prom *prom, const struct observe_options *options,
                            struct error *err);
void observe_free(struct observe *observe);

/* An MPA's own latency query, asked beside the common ones. */
struct observe_own_query {
    const char *key; /* namespace/name of the MPA */
    const struct api_mpa *mpa;
    const struct kube_pod *const *pods;
    size_t pod_count;
};
/* Registers a query for the next collection. */
void observe_add_own(struct observe *observe, const struct observe_own_query *own);

/* The next collection is to have what Knative's queue-proxies measure, too. */
void observe_want_proxies(struct observe *observe);

/* The next collection is to have what OpenWhisk measures of its actions, and this one is known to
 * be there: NAMESPACE/PACKAGE/ACTION. */
void observe_want_action(struct observe *observe, const char *name);
/* Whether what other actions there are is known, by the newest collection. */
bool observe_knows_actions(const struct observe *observe);
/* Another action that is known and whose pods have the same names, or NULL. */
const char *observe_action_rival(const struct observe *observe, const char *name);

/* Asks everything at once: one query per metric for all MPAs together. Answers replace those of the
 * pass before; a metric whose query failed has no figures at all, never old ones. */
void observe_collect(struct observe *observe, void (*on_done)(void *arg), void *arg);
bool observe_busy(const struct observe *observe);
/* A collection that is not asked for but given: what Prometheus would have answered, by someone who
 * stands in its place. These are all figures there are; those of the pass before go. */
struct observe_figure {
    enum prom_metric metric;
    const char *namespace_, *pod, *container; /* container: of all but latency buckets */
    double upper_s;                           /* of a latency bucket; INFINITY: the last one */
    double value;                             /* in the unit of the metric's query */
};
void observe_give(struct observe *observe, const struct observe_figure *figures, size_t count);
/* Who is told of each query of a collection that was answered or failed, for metrics. metric is
 * prom_metric_name()'s, "own" for an MPA's own query. NULL: nobody. */
typedef void (*observe_told)(void *arg, const char *metric, double seconds, bool succeeded);
void observe_on_query(struct observe *observe, observe_told on_query, void *arg);
int64_t observe_collected_ms(const struct observe *observe); /* monotonic; 0: never */
/* Why the metric has no figures, or NULL. */
const char *observe_failure(const struct observe *observe, enum prom_metric metric);

/* What is known of one MPA besides its figures. */
struct observe_subject {
    const char *key;
    const struct api_mpa *mpa;
    const struct kube_workload *workload;
    const struct kube_pod *const *pods; /* all of the workload, ended ones too */
    size_t pod_count;
    bool cpu_capped; /* a node refused more CPU: what pods have is the most they can get */
    /* CPU that a container has once its pod has started, in milli-cores; API_ABSENT: unknown. Asked
     * where the MPA boosts pods that start: what these have is no size. NULL: unknown of all. */
    int64_t (*lasting_cpu)(const void *arg, const char *container);
    const void *arg;
    double since_increase_s; /* since we last added capacity; INFINITY: never */
};

/* An observation and the memory it points into. */
struct observe_view {
    struct observation seen;
    struct recommend_pod *pods;
    const struct kube_pod **kube_pods; /* those that count, in the same order */
    char latency_trouble[256];         /* why latency is MISSING, else "" */
    double wait_ms; /* of a call of OpenWhisk for a pod, in the mean; latency begins after it. NaN:
                     * unknown */
    bool no_series; /* it was asked for, but there is none of these pods */
};
/* Fails when nothing is known of the pods' usage. The strings belong to the subject. */
int observe_build(const struct observe *observe, const struct observe_subject *subject,
                  struct observe_view *out, struct error *err);
/* Whether calls wait for a pod longer than the goal says that they may take from then on. */
bool observe_calls_wait(const struct observe_view *view);
void observe_view_clear(struct observe_view *view);
/* Whether it stands beside the container that serves in a pod of Knative, and the MPA does not name
 * it: its size is not ours. */
bool observe_stands_beside(const struct api_spec *spec, const struct kube_pod *pod,
                           const char *container);
/* The figures of an observation for status.lastDecision.observation (new reference). */
json_t *observe_json(const struct observation *seen);

/* CPU usage or requests of the last span_s seconds, to give a recommender a memory at start.
 * on_sample is called oldest first per series; on_done at the end, also after failure. */
struct observe_history {
    bool requests; /* per second by pod, container is ""; else milli-cores by container */
    double span_s, step_s;
    void (*on_sample)(void *arg, const char *namespace_, const char *pod, const char *container,
                      double time_s, double value);
    void (*on_done)(void *arg, const struct error *err); /* err NULL: all is told */
    void *arg;
};
void observe_ask_history(struct observe *observe, const struct observe_history *history);

/* --- Knative's activators (activator.c) ---------------------------------------------------------
 * They hold the requests of Revisions without pods. Nobody tells who scales a class of its own: so
 * they are asked, each second, while somebody wants to know. */
struct observe_activators;
/* on_read is called after each answer; not before this has returned, and not after _free. */
struct observe_activators *observe_activators_new(uv_loop_t *loop, struct kube *kube,
                                                  struct http *http, void (*on_read)(void *arg),
                                                  void *arg);
void observe_activators_free(struct observe_activators *activators);
void observe_activators_listen(struct observe_activators *activators, bool on);
/* For how long not all of them could be read, counted from when listening began; -1: nobody
 * listens. */
int64_t observe_activators_deaf_ms(const struct observe_activators *activators);
/* Why they could not, in words. */
const char *observe_activators_trouble(const struct observe_activators *activators);
bool observe_activators_hold(const struct observe_activators *activators, const char *namespace_,
                             const char *revision);

#endif
