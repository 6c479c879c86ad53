/* Shared by the files of a trial. */
#ifndef FAASRL_TRIAL_INTERNAL_H
#define FAASRL_TRIAL_INTERNAL_H

#include "trial/trial.h"

/* --- one function and what decides for it (subject.c) ---------------------------------------- */
struct tally { /* of several intervals */
    struct cluster_stats stats;
    struct cluster_latency latency;
};
void tally_add(struct tally *t, const struct cluster_stats *stats,
               const struct cluster_latency *latency);

struct subject {
    const struct recommender *recommender;
    const struct trial_hand *instead; /* of it, or NULL */
    struct cluster *cluster;
    size_t index; /* of the function in the cluster */
    double interval_s;
    struct api_spec spec; /* shares its strings with the trial's */
    const struct api_container *policy;
    struct guard *guard;
    const struct guard_limits *limits;
    void *memory;  /* of the recommender */
    bool explains; /* reasons are read, and have to be asked for */
    bool memory_modelled;
    double increased_s;    /* when CPU or replicas last grew; -INFINITY: never */
    double deferred_s;     /* since when nodes have no room for a resize; INFINITY: they have */
    double capped_until_s; /* until then a node's "no" is believed */
    struct observation seen;
    struct recommend_pod *pods;
    struct cluster_replica *replicas;
    size_t pod_cap;
    struct recommendation proposed;
    struct guard_decision decision;
};

/* What the spec says of the one container that pods have here. Where it names one, that is its
 * name. */
const struct api_container *subject_policy(const struct api_spec *spec, const char **name);
/* The settings are those the cluster was made with; config outlives the subject. */
void subject_init(struct subject *s, const struct trial_config *config,
                  const struct cluster_function *settings, struct cluster *cluster, size_t index);
void subject_clear(struct subject *s);
/* Looks at the interval that ends now, decides and acts. Whether something was changed; the reason
 * is "" when nothing could be said. */
bool subject_decide(struct subject *s);
/* Looks and asks, and does nothing; whether something was said. */
bool subject_ask(struct subject *s, struct cluster_state *state);

/* --- oracles --------------------------------------------------------------------------------- */
struct oracle_world { /* what they know beside the observation */
    struct cluster *cluster;
    size_t function;
    const struct cluster_function *settings;
    bool ample;         /* nodes are never short of CPU */
    bool requests_only; /* limits stay when requests move */
    double interval_s, span_s;
    double late_share; /* that the goal allows: 0.01 for p99 */
};
/* The CPU quota that goes with a request; 0: none. Where nodes can be short and there is no limit,
 * only what is requested is sure. */
double oracle_limit_milli(const struct oracle_world *world, double request_milli);

struct oracle { /* the memory of both */
    struct oracle_world world;
    struct capacity *capacity; /* made when first needed, and when the function has changed */
    double slowdown;           /* for which it was */
    double budget;             /* requests that may still be late */
};
extern const struct recommender trial_oracle, trial_oracle_requests;
bool trial_is_oracle(const struct recommender *recommender);
void *oracle_create(double memory_s, const double *params);
void oracle_destroy(void *self);
/* Before the first recommendation. */
void oracle_attach(void *self, const struct oracle_world *world);
/* A recommendation for the one container. */
void oracle_propose(const struct observation *seen, int replicas, double cpu_milli,
                    struct recommendation *out);

/* --- what one replica can take (capacity.c) --------------------------------------------------
 * Found by simulation of one replica under Poisson arrivals: where requests go to replicas at
 * random, each replica sees just that, whatever the others do. */
struct capacity;
struct capacity *capacity_new(const struct oracle_world *world, double slowdown, double low_milli,
                              double high_milli);
void capacity_free(struct capacity *c);
/* The least CPU with which one replica can take so many requests per second and not more than the
 * allowed share of them is late. INFINITY: none within the bounds. */
double capacity_cpu_milli(struct capacity *c, double requests_per_s);

#endif
