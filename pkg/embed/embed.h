/* The controller on a simulated cluster: its own round (observe, recommend, guard, act, status,
 * events) with pkg/sim in place of Kubernetes and Prometheus, in simulated time.
 *
 * Each function is a Deployment of pods with one container, and has one MPA. Replicas of a function
 * have one size, so mode Initial cannot be simulated; only CPU is controlled.
 *
 * The clocks of the process are set while one exists: at most one at a time. */
#ifndef FAASRL_EMBED_H
#define FAASRL_EMBED_H

#include "controller/controller.h"
#include "trial/trial.h"

struct embed_function {
    const struct trace_function *workload; /* must outlive the cluster */
    const json_t *mpa;                     /* a manifest; its target is the function */
    double request_milli, limit_milli;     /* to begin with; limit 0: none */
    int replicas;                          /* likewise */
    double joins_s; /* when its MPA is created; until then nobody scales it */
};

struct embed_options {
    const struct embed_function *functions;
    size_t function_count;
    const struct cluster_node *nodes; /* must outlive the cluster */
    size_t node_count;                /* 0: ample */
    uint64_t seed;
    int64_t start_ms; /* wall clock at the beginning */
    double window_s;  /* figures look back this far, in whole intervals */
    struct controller_options controller;
    /* Who is told, at once; may be NULL. The MPA is as the API server would show it. */
    void (*on_status)(void *arg, size_t function, const json_t *mpa);
    void (*on_event)(void *arg, size_t function, const struct kube_event *event);
    void *arg;
};

struct embed;
/* Fails on an MPA or a setting that cannot be, naming it. */
struct embed *embed_new(const struct embed_options *options, struct error *err);
void embed_free(struct embed *embed);

/* The load of one interval, then a pass of the controller. It comes when there is a whole window to
 * look back on. */
void embed_step(struct embed *embed);
double embed_now_s(const struct embed *embed);
const struct cluster *embed_cluster(const struct embed *embed);
/* To serve what a controller serves. */
struct controller *embed_controller(struct embed *embed);
/* The MPA as the API server would show it. */
const json_t *embed_mpa(const struct embed *embed, size_t function);

/* What came of it so far, as a trial tells it. */
void embed_result(const struct embed *embed, size_t function, struct trial_result *out);
/* The same functions under the same load from the beginning until now with another recommender
 * (trial_choose): one result per function. */
int embed_compare(const struct embed *embed, const char *recommender, struct trial_result *results,
                  struct error *err);

#endif
