/* A simulated cluster: functions on nodes, request by request, as a discrete-event simulation.
 *
 * A replica shares its CPU among its requests in flight, at most one core each. Between replicas of
 * a node CPU is shared by weight (cpu.shares, in proportion to the request) where it is short.
 * Where a limit is set, CFS quota holds in its periods of 100 ms: a replica runs at full speed
 * until the quota of the period is used up and then stands still until the next one. Two traits of
 * real nodes can be had on top, as they change tails by tens of percent: ticks and the pod's quota.
 *
 * The same seed gives the same result, bit for bit. Requests and their demands depend on the seed
 * alone, not on what is done to the cluster, so that recommenders meet the same load. No global
 * state: clusters can run side by side in threads. Time is in seconds since the beginning. */
#ifndef FAASRL_SIM_CLUSTER_H
#define FAASRL_SIM_CLUSTER_H

#include "trace/trace.h"

/* --- what there is --------------------------------------------------------------------------- */
struct cluster_node {
    double cores;        /* that run; INFINITY: never short */
    double memory_bytes; /* that can be requested; INFINITY: never short */
    double overcommit;   /* requests may add up to so many times the cores; 0: once */
    /* How often the kernel looks at quota (1/CONFIG_HZ); 0: always. Until it does, quota is
     * overdrawn, which the next period pays. */
    double tick_s;
};
extern const struct cluster_node cluster_ample_node;

enum cluster_dispatch {                 /* which of the replicas that have room gets a request */
                        CLUSTER_RANDOM, /* as kube-proxy */
                        CLUSTER_ROUND_ROBIN,
                        CLUSTER_LEAST_LOADED,
};

struct cluster_function {
    const struct trace_function *workload; /* must outlive the cluster */
    double goal_ms;                        /* a slower request counts as late; 0: none does */
    int replicas;                          /* ready at the beginning */
    double request_milli;                  /* what the scheduler counts, and the weight */
    double limit_milli;                    /* of CFS quota; 0: none */
    bool pod_quota;  /* not only the container has it but its pod too, in periods of its own */
    int concurrency; /* requests in a replica at once, others wait in the function's one queue;
                        0: no bound. With no ready replica requests wait in any case. */
    enum cluster_dispatch dispatch;
    double overhead_ms;    /* of each request, beside CPU (network, proxy) */
    double start_s;        /* from scheduled to ready */
    double start_spread;   /* start_s varies evenly by this share of it, 0..1 */
    double cold_cpu_ms;    /* more CPU for the first request of a replica */
    double resize_s;       /* from asking to being in force */
    double crash_per_hour; /* of a ready replica; its requests are lost, it starts anew */
    /* Memory; all 0: not modelled. The scheduler counts the limit. Beyond it a replica is killed,
     * and starts anew. */
    double memory_limit_bytes, memory_base_bytes, memory_per_request_bytes;
};

struct cluster_config {
    const struct cluster_node *nodes;
    size_t node_count; /* 0: one ample node */
    const struct cluster_function *functions;
    size_t function_count;
    uint64_t seed;
};

struct cluster;
/* Fails on a setting that cannot be, naming it. */
struct cluster *cluster_new(const struct cluster_config *config, struct error *err);
void cluster_free(struct cluster *cluster);
/* The same cluster once more, to try something in it: both go on alike until told otherwise. */
struct cluster *cluster_clone(const struct cluster *cluster);
/* Begins again with another seed, keeping the memory. */
void cluster_reset(struct cluster *cluster, uint64_t seed);

double cluster_now_s(const struct cluster *cluster);
void cluster_run(struct cluster *cluster, double until_s);

/* --- what is done to it ---------------------------------------------------------------------- */
/* Wants so many replicas. New ones are placed on the node with most room, or wait until there is
 * room; those that go take no new requests and finish what they have. The youngest go first, not
 * yet ready ones before all others. */
void cluster_scale(struct cluster *cluster, size_t function, int replicas);
/* Gives every replica, and those to come, this CPU; limit 0: no quota. A replica whose node has no
 * room keeps what it has until there is some. */
void cluster_resize(struct cluster *cluster, size_t function, double request_milli,
                    double limit_milli);
/* Likewise; both together are one resize, which needs room for both. A replica that has more in use
 * than it is to have keeps all that it has, CPU too, until it has not. */
void cluster_resize_memory(struct cluster *cluster, size_t function, double limit_bytes);

/* --- what is seen ---------------------------------------------------------------------------- */
/* Latencies in buckets 1/32 of an octave wide, from 1 µs to 18 hours: a quantile is within 1.6 %.
 */
#define CLUSTER_BUCKETS 1152
struct cluster_latency {
    uint32_t buckets[CLUSTER_BUCKETS];
    uint64_t count;
    double sum_s;
};
double cluster_latency_quantile_ms(const struct cluster_latency *l, double share); /* NaN: none */
/* How many took at most so long; straight within a bucket. */
double cluster_latency_within(const struct cluster_latency *l, double ms);
void cluster_latency_add(struct cluster_latency *into, const struct cluster_latency *from);

struct cluster_stats { /* of one function, since cluster_begin_interval */
    double span_s;
    uint64_t arrived, completed;
    uint64_t late;          /* completed beyond the goal */
    uint64_t lost;          /* by crash or for memory; they are no completions */
    double cpu_s;           /* used, all replicas */
    double requested_cpu_s; /* reserved: the sum of requests over time, starting replicas too */
    double replica_s;       /* replicas over time, starting ones too */
    double reserved_byte_s; /* of memory, over time: the sum of limits, starting replicas too */
    double in_flight_s;     /* requests in flight or waiting, over time; lost ones until then */
    double waiting_s;       /* of these, in the function's queue */
    uint64_t periods, throttled_periods; /* of CFS, in which a replica ran / was throttled */
    uint32_t crashes, memory_kills;
};
const struct cluster_stats *cluster_stats(const struct cluster *cluster, size_t function);
const struct cluster_latency *cluster_latency(const struct cluster *cluster, size_t function);
/* Zeroes the figures of all functions and their replicas. */
void cluster_begin_interval(struct cluster *cluster);

struct cluster_state {                                  /* of one function, now */
    int wanted, ready, starting, unscheduled, draining; /* draining ones are no longer wanted */
    size_t in_flight;                                   /* in replicas */
    size_t waiting;                                     /* in the queue */
    size_t overdue;                    /* of both, those already older than the goal */
    double request_milli, limit_milli; /* what replicas should have */
    double memory_limit_bytes;
    int resizing;        /* replicas that do not have it yet */
    int shrinks_waiting; /* of these, for memory that is in use */
};
void cluster_state(const struct cluster *cluster, size_t function, struct cluster_state *out);

enum cluster_phase { CLUSTER_UNSCHEDULED, CLUSTER_STARTING, CLUSTER_READY, CLUSTER_DRAINING };
struct cluster_replica {
    uint64_t id; /* never used again */
    enum cluster_phase phase;
    size_t node;                       /* undefined while unscheduled */
    double age_s, ready_s;             /* since created, since ready (0 before) */
    double request_milli, limit_milli; /* in force */
    double cpu_s;                      /* used in this interval */
    uint64_t periods, throttled_periods;
    double memory_bytes, memory_limit_bytes; /* in use now; in force */
    size_t in_flight;
};
/* Fills out (up to max) and returns how many there are. */
size_t cluster_replicas(const struct cluster *cluster, size_t function, struct cluster_replica *out,
                        size_t max);

/* What is to come: requests that arrive in the next span_s, whatever is done. Only for oracles.
 * Fills out (up to max; may be NULL) and returns how many there are. */
struct cluster_request {
    double arrives_s, cpu_ms;
};
size_t cluster_peek(const struct cluster *cluster, size_t function, double span_s,
                    struct cluster_request *out, size_t max);

#endif
