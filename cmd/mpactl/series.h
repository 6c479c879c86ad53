/* What happened over time in one run of one function, in buckets of time. */
#ifndef FAASRL_MPACTL_SERIES_H
#define FAASRL_MPACTL_SERIES_H

#include "trial/trial.h"

struct series_point { /* of the samples that begin within one bucket */
    double time_s;    /* where the bucket begins */
    double span_s;    /* of its samples */
    double requests_per_s, replicas, request_milli, cpu_utilization; /* means */
    double latency_ms;      /* of the worst sample; NaN: no request */
    double violation_ratio; /* of its requests */
    double memory_bytes;    /* mean limit of a replica; NaN: memory is not modelled */
    uint64_t memory_kills;  /* in all */
    bool changed;           /* a decision changed something */
    char *reason;           /* of the last decision that did, else of the last one */
};

struct series {
    double bucket_s; /* 0: a point for each sample */
    double end_s;    /* of the last sample */
    struct series_point *points;
    size_t count, cap;
};

/* Samples come one after the other, each with the time of its end. */
void series_add(struct series *series, const struct trial_sample *sample);
/* The same in wider buckets, into an empty series that says how wide. */
void series_widen(const struct series *from, struct series *to);
void series_clear(struct series *series);

#endif
