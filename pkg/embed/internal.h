/* Shared by the files of the embedded cluster. */
#ifndef FAASRL_EMBED_INTERNAL_H
#define FAASRL_EMBED_INTERNAL_H

#include "embed/embed.h"

#define EMBED_NAMESPACE "default"

/* A pod's counters, by how much they grew in an interval. */
struct growth {
    double cpu_s;
    uint64_t periods, throttled_periods;
};

struct pod {
    uint64_t id;           /* of its replica */
    bool seen;             /* the replica is still there */
    struct kube_pod *kube; /* one block with its container */
    char name[64];         /* its memory */
    struct growth *growth; /* of the window's intervals, in turn */
};

/* Bounds of the latency histogram, as a function's own metrics would have them. */
#define BOUND_COUNT 21
extern const double embed_bounds_s[BOUND_COUNT];

struct latency_growth { /* requests within each bound, in an interval */
    double within[BOUND_COUNT];
};

struct function {
    struct api_mpa mpa; /* as it was given */
    json_t *object;     /* as the API server has it */
    bool joined;        /* the API server has it by now */
    bool changed;       /* the controller has yet to be told */
    bool acted;         /* in this pass */
    const struct trace_function *workload;
    struct cluster_function settings; /* at the beginning */
    struct kube_workload deployment;
    const char *container;
    struct pod **pods;
    size_t pod_count;
    struct latency_growth *latency; /* of the window's intervals, in turn */
    double joins_s, resized_s;      /* when its MPA is created; when a size was last asked for */
    struct cluster_latency all;     /* of the whole run */
    struct cluster_stats total;     /* likewise; only what results need */
    uint64_t actions;
};

struct embed {
    struct embed_options options;
    struct function *functions;
    size_t function_count;
    struct cluster *cluster;
    struct observe *observe;
    struct controller *controller;
    double interval_s;
    size_t slots, slot; /* intervals of a window; the one that is written now */
    uint64_t steps;
    bool woken;
};

/* facts.c: what the cluster shows after an interval. */
void facts_take(struct embed *embed);
void facts_give(const struct embed *embed, struct observe *observe);
void facts_free(struct function *f);
/* world.c */
struct world embed_world(struct embed *embed);

#endif
