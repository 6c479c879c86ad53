/* What one collection brought in, by pod. Private to pkg/observe. */
#ifndef FAASRL_OBSERVE_FIGURES_H
#define FAASRL_OBSERVE_FIGURES_H

#include "observe/observe.h"

#define OBSERVE_MAX_BUCKETS 256
#define OBSERVE_MOST_S      1e6 /* of latency: nobody waits eleven days for an answer */

struct bucket_set { /* rates by upper bound, ascending */
    struct prom_bucket *items;
    size_t count;
    double absurd; /* a rate that was said of one and cannot be; 0: none */
};
void buckets_add(struct bucket_set *set, double upper, double rate);
void buckets_merge(struct bucket_set *into, const struct bucket_set *from);

struct container_figures {
    char *name;
    double cpu_milli, throttled, memory_bytes; /* NaN: missing */
};

struct pod_figures {
    struct container_figures *containers;
    size_t container_count;
    struct bucket_set latency, proxy_latency;
    double absurd_cores; /* a usage that was said of one and cannot be; 0: none */
};

struct own_figures { /* the answer of an MPA's own latency query */
    char *failure;   /* NULL: it was answered */
    bool is_histogram;
    struct bucket_set latency;
    enum prom_value state; /* of value_s, when it is no histogram */
    double value_s;
};

struct action_figures {
    struct bucket_set latency;
    double wait; /* for a pod: seconds of all callers together, in a second; 0: perhaps unknown */
};

/* Which actions have pods whose names end alike; two are enough to tell that one is not alone. */
struct alike {
    char *first, *second;
};

struct figures {
    struct map pods;    /* "namespace/pod" → struct pod_figures */
    struct map actions; /* "namespace/package/action" of OpenWhisk → struct action_figures */
    struct map ends;    /* end of pods' names → struct alike */
    bool knows_actions; /* all that OpenWhisk has figures of */
    struct map own;     /* key of the MPA → struct own_figures */
    char *failure[PROM_METRIC_COUNT];
};

struct figures *figures_new(void);
void figures_free(struct figures *figures);
void figures_put(struct figures *figures, const struct observe_figure *figure);
void figures_add(struct figures *figures, enum prom_metric metric,
                 const struct prom_series *series);
/* As if nothing had been added of the metric. */
void figures_drop(struct figures *figures, enum prom_metric metric);
void figures_add_own(struct figures *figures, const char *key, const struct prom_result *result,
                     const char *failure);
/* actions.c */
void figures_free_actions(struct figures *figures);
void figures_add_actions(struct figures *figures, const struct prom_result *result);
/* An action is there, whoever says so. */
void figures_know_action(struct figures *figures, const char *name);
/* What was known before goes on to be known. */
void figures_keep_actions(struct figures *figures, const struct figures *before);
bool figures_bucket_bound(const struct prom_series *series, double *upper); /* false: it is none */

const struct pod_figures *figures_pod(const struct figures *figures, const struct kube_pod *pod);
const struct container_figures *figures_container(const struct pod_figures *pod, const char *name);

struct observe {
    struct prom *prom;
    char *queries[PROM_METRIC_COUNT];
    bool proxies;       /* are asked about in the next pass */
    struct map actions; /* likewise, as these are named by MPAs; name → non-NULL */
    enum observe_own own;
    double window_s;
    char window[16];
    struct figures *newest, *coming; /* coming: of the pass under way */
    struct pass *pass;
    struct map own_queries,
        own_mistakes; /* key → query, or what is wrong with it; for the next pass */
    int64_t collected_ms;
    observe_told on_query;
    void *on_query_arg;
};

#endif
