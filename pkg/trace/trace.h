/* Workloads: when requests come and how much CPU each needs. Read from files or made up by
 * generators. Only data: pkg/sim draws the requests from it. */
#ifndef FAASRL_TRACE_H
#define FAASRL_TRACE_H

#include "base/base.h"

/* CPU time alone on one core, as an inverse distribution function: straight lines between points,
 * shares from 0 to 1, both columns never falling. */
struct trace_quantile {
    double share, cpu_ms;
};

enum trace_demand {
    TRACE_DEMAND_QUANTILES,   /* drawn from `quantiles`; two equal points: always the same */
    TRACE_DEMAND_EXPONENTIAL, /* with mean `mean_cpu_ms`, for queueing theory */
};

struct trace_function {
    char *name;
    /* Arrivals: a number per slot of time. */
    double slot_s;
    double *counts;
    size_t slot_count;
    bool poisson; /* counts are means of a Poisson process; else exact numbers of requests, spread
                     over their slot evenly at random (a fraction is rounded at random) */
    bool repeat;  /* after the last slot comes the first; else no further request comes */
    /* Demand. */
    enum trace_demand demand;
    struct trace_quantile *quantiles;
    size_t quantile_count;
    double mean_cpu_ms;
    double slower, slower_from_s; /* from then on it is so many times as much; 0: always as it is */
    double *works; /* of each slot: so many times as much for its requests, in place of `slower`,
                      where they are known one by one; NULL: they are not */
    double memory_bytes; /* of one replica, median; NaN: unknown */
};

struct trace {
    char *name; /* as in the specification it was read from, without directories */
    struct trace_function *functions;
    size_t function_count;
    size_t left_out; /* functions of an Azure trace that have no durations */
};

/* Reads or makes a workload from its specification:
 *
 *   azure:INVOCATIONS,DURATIONS[,MEMORY][,functions=N][,scale=X]
 *   rps:FILE[,scale=X][,demand=MS][,p99=MS]
 *   poisson:rate=R[,span=S][,demand=MS][,p99=MS]
 *   bursty:rate=R,burst=X,every=S,length=S[,span=S][,demand=MS][,p99=MS][,seed=N]
 *   diurnal:rate=R[,amplitude=A][,period=S][,span=S][,demand=MS][,p99=MS]
 *
 * and each with [,slower=X][,gather=S][,change=S], for functions that are not what they were.
 * Units, defaults and file formats: docs/workloads.md. What is wrong with a file is told with file,
 * line and column; a specification that cannot be is ERROR_INVALID, anything else a file's fault.
 * Nothing is left behind then. */
int trace_open(const char *specification, struct trace *out, struct error *err);
void trace_clear(struct trace *trace);

/* The lines above, for help texts. */
extern const char trace_forms[];

double trace_span_s(const struct trace_function *f);   /* of its slots, once */
double trace_requests(const struct trace_function *f); /* expected within its slots, once */
/* Both of demand as it is before it gets slower; and how many times as much it is at a time. */
double trace_mean_cpu_ms(const struct trace_function *f);
double trace_cpu_quantile_ms(const struct trace_function *f, double share);
double trace_slowdown(const struct trace_function *f, double time_s);
/* What a function without a stated goal gets: twice its p99 execution time alone on one core. */
double trace_default_goal_ms(const struct trace_function *f);

/* The class of a function's arrivals, by a stated rule (trace.c): what baselines are tuned by. */
enum trace_class { TRACE_SPARSE, TRACE_STEADY, TRACE_BURSTY, TRACE_CLASS_COUNT };
enum trace_class trace_classify(const struct trace_function *f);
const char *trace_class_name(enum trace_class class_);

/* --- the readers, each by itself (for fuzzing); `file` is only for messages ------------------- */
struct trace_text {
    const char *file;
    const char *data;
    size_t len;
};
int trace_parse_azure(const struct trace_text *invocations, const struct trace_text *durations,
                      const struct trace_text *memory /* NULL: none */, struct trace *out,
                      struct error *err);
/* Numbers, one per line: requests in each second. */
int trace_parse_rps(const struct trace_text *text, double **counts, size_t *count,
                    struct error *err);

#endif
