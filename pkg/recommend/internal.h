/* Shared by the files of the threshold recommender. */
#ifndef FAASRL_RECOMMEND_INTERNAL_H
#define FAASRL_RECOMMEND_INTERNAL_H

#include "recommend/recommend.h"

#include <math.h>

/* --- what was used before (history.c) -------------------------------------------------------- */
struct history; /* VPA's histograms of every container of one MPA */

struct history *recommend_history_new(double cpu_half_life_s);
void recommend_history_free(struct history *history);
void recommend_history_add(struct history *history, const char *container,
                           enum recommend_resource resource, double time_s, double usage);
void recommend_history_observe(struct history *history, const struct observation *seen);

struct history_estimate { /* VPA's percentiles of usage, without a margin; NaN: nothing known */
    double p50, p90, p95;
    double days; /* how much history there is, as VPA measures confidence */
};
struct history_estimate recommend_history_estimate(const struct history *history,
                                                   const char *container,
                                                   enum recommend_resource resource);

/* --- one decision (threshold.c) -------------------------------------------------------------- */
#define VPA_MARGIN 1.15 /* of VPA, on top of the percentile */
#define SLACK      1e-9 /* for figures that are whole but for rounding */

/* What one metric asks for, so that it can be met in either dimension: CPU of all pods together,
 * of which `other` per pod is in containers that we do not size. */
struct demand {
    double total, other;
};

struct judgement {
    const struct observation *seen;
    const struct history *history;
    int n; /* the replicas wanted at present, no more than are allowed */
    struct recommend_metric metrics[RECOMMEND_MAX_METRICS];
    size_t metric_count;
    const struct recommend_metric *lead;

    struct demand demands[RECOMMEND_MAX_METRICS + 1];
    size_t demand_count;
    int flat; /* replicas that metrics ask for which CPU cannot satisfy; 0: none does */
    int valid, invalid;
    double busiest; /* largest CPU usage over its target, NaN: unknown */

    bool vertical;       /* CPU of at least one container is ours */
    double cpu, cpu_max; /* per pod, of those containers */
    double margin;       /* of the remembered usage */

    bool latency_known, may_shrink;
    double pressure;              /* of latency: 1 when it asks for nothing */
    double shrink_floor;          /* share of present capacity that latency needs, by proportion */
    const char *note, *no_shrink; /* why nothing grows, why nothing shrinks */

    int replicas;    /* decided */
    double pod_cpu;  /* decided; equal to cpu: leave */
    double uncapped; /* pod_cpu before the bounds */
};

static inline bool is_amount(double x)
{
    return isfinite(x) && x > 0;
}

static inline double clamp(double x, double low, double high)
{
    return x > high ? high : x < low ? low : x;
}

/* The size of a container now; one without a request counts as its minimum. */
static inline double size_of(const struct recommend_container *c)
{
    double request = c->request[RECOMMEND_CPU];
    return is_amount(request) ? request : c->min[RECOMMEND_CPU];
}

/* --- the amounts of each container (sizes.c) ------------------------------------------------- */
void recommend_sizes_fill(const struct judgement *j, struct recommendation *out);

/* --- why (reason.c) -------------------------------------------------------------------------- */
struct reason {
    const struct observation *seen;
    const struct recommend_metric *lead; /* the metric that asks for most, NULL: none has figures */
    bool latency_known;
    const char *note; /* why nothing changes, or NULL */
};
void recommend_reason_write(const struct reason *why, struct recommendation *out);

#endif
