/* Shared by the files of the simulated cluster. */
#ifndef FAASRL_SIM_INTERNAL_H
#define FAASRL_SIM_INTERNAL_H

#include "arrivals.h"
#include "cluster.h"
#include "events.h"

#define CFS_PERIOD_S 0.1
#define NO_NODE      SIZE_MAX

/* What the event of a replica is. */
enum turn {
    TURN_DEPART,   /* its next request is done */
    TURN_THROTTLE, /* the quota of the period is used up */
    TURN_PERIOD,   /* a new period: a throttled replica runs again */
    TURN_LIFE,     /* ready, resized or crashed */
};

struct request {
    double finish;    /* the replica's `work` at which it is done */
    double arrived_s; /* since when it counts as in flight */
};

struct budget {          /* CFS quota in its periods: of a container, and of its pod */
    double used_s;       /* in this period; at its beginning what was overdrawn before */
    double period_end_s; /* INFINITY: no quota */
    bool spent;          /* stands still until then */
};

struct replica {
    /* Processor sharing. */
    double last_s; /* all is accounted for up to here */
    double work;   /* CPU seconds that a request which is here since the beginning has got */
    double rate;   /* cores that each request gets now */
    double demand; /* cores that the replica could use now */
    double share;  /* cores that it gets of a node that is short */
    double cpu_s;  /* used in this interval */
    struct request *requests; /* a heap, the first to finish on top */
    uint32_t count, cap;
    uint32_t function;
    enum turn turn;
    bool throttled;
    /* CFS quota. */
    double quota_s; /* CPU per period; INFINITY: no limit */
    struct budget budgets[2];
    uint32_t budget_count;
    bool ran; /* in this period of the first */
    double tick_s;
    uint64_t periods, throttled_periods;
    /* Its place and its life. */
    enum cluster_phase phase;
    bool cold;                         /* no request yet */
    bool shrink_waits;                 /* until less memory is in use than it is to have */
    double weight;                     /* cpu.shares */
    size_t node;                       /* NO_NODE: unscheduled */
    double request_milli, limit_milli; /* in force */
    double limit_bytes;
    double reserved_milli, reserved_bytes; /* on the node: the larger of in force and on its way */
    double ready_at_s, resize_at_s, crash_at_s; /* INFINITY: not coming */
    double created_s, ready_since_s;
    uint64_t id;
};

struct waiting {
    double arrived_s, cpu_s;
};

struct function {
    struct cluster_function config;
    struct demand demand;
    struct arrivals arrivals;
    struct random random;       /* for all but requests: where they go, delays, crashes */
    double next_cpu_s;          /* of the request that comes next */
    double last_s, room_last_s; /* figures are accounted for up to here */
    double interval_began_s;
    size_t in_flight; /* in replicas */
    double goal_s, overhead_s;
    uint32_t *replicas; /* slots, oldest first */
    size_t replica_count, replica_cap;
    uint32_t *ready; /* slots of those that take requests */
    size_t ready_count;
    size_t turn;           /* of round robin */
    struct waiting *queue; /* a ring */
    size_t queue_cap, queue_first, queued;
    int wanted;
    double request_milli, limit_milli; /* what replicas should have */
    double limit_bytes;
    double reserved_milli, reserved_bytes; /* of all its replicas */
    size_t placed;                         /* replicas on nodes */
    struct cluster_stats stats;
    struct { /* what replicas did in this interval before they went */
        double cpu_s;
        uint64_t periods, throttled_periods;
    } gone;
    struct cluster_latency latency;
};

struct node {
    double cores, free_milli, free_bytes;
    double tick_s;
    double demand;         /* cores that its replicas could use now */
    uint32_t *replicas;    /* slots */
    struct replica **open; /* room to share it out, as many as replicas */
    size_t count, cap;
};

struct cluster {
    double now_s;
    struct events coming, running; /* one leaf per function; one per slot of a replica */
    struct function *functions;
    size_t function_count;
    struct replica *slots;
    uint32_t slot_count, *free_slots, free_count;
    struct node *nodes;
    size_t node_count;
    struct cluster_node *node_config;
    uint64_t seed, next_id;
    uint32_t *unscheduled; /* slots of replicas without a node, the oldest first */
    size_t unscheduled_count, unscheduled_cap;
    bool room_is_awaited; /* some replica is unscheduled, or its resize has no room */
    bool room_changed;    /* since they were last tried: without that it would be in vain */
};

/* --- CPU of one replica (replica.c) ---------------------------------------------------------- */
/* Accounts for the time until now. */
void replica_advance(struct cluster *c, struct replica *r);
/* A request comes; one is done (gives back when it had come). */
void replica_add(struct cluster *c, struct replica *r, double arrived_s, double cpu_s);
double replica_finish(struct cluster *c, struct replica *r);
void replica_throttle(struct cluster *c, struct replica *r);
void replica_run_again(struct cluster *c, struct replica *r); /* in a new period */
void replica_set_limit(struct cluster *c, struct replica *r, double limit_milli); /* 0: none */
/* What it could use, its weight or its life has changed: finds the rates and the next events of all
 * whom that concerns. */
void replica_settle(struct cluster *c, struct replica *r);

/* --- replicas come, change and go (life.c) --------------------------------------------------- */
void life_event(struct cluster *c, struct replica *r);
void life_remove(struct cluster *c, struct replica *r);
void life_restart(struct cluster *c, struct replica *r); /* its requests are lost */
void life_shrink(struct cluster *c, struct replica *r);  /* less memory is in use */
void life_reset(struct cluster *c);                      /* no replicas */
void life_begin(struct cluster *c, struct function *f);  /* those that are there from the start */

/* --- requests (cluster.c) -------------------------------------------------------------------- */
/* Gives waiting requests to replicas that have room. */
void requests_take_waiting(struct cluster *c, struct function *f);
/* Accounts for the time until now: of requests, and of the room that replicas take. */
static inline void requests_account(struct function *f, double now_s)
{
    double span_s = now_s - f->last_s;
    f->stats.in_flight_s += span_s * (double)(int64_t)(f->in_flight + f->queued);
    f->stats.waiting_s += span_s * (double)(int64_t)f->queued;
    f->last_s = now_s;
}

static inline void room_account(struct function *f, double now_s)
{
    double span_s = now_s - f->room_last_s;
    f->stats.requested_cpu_s += span_s * f->reserved_milli / 1000;
    f->stats.reserved_byte_s += span_s * f->reserved_bytes;
    f->stats.replica_s += span_s * (double)f->placed;
    f->room_last_s = now_s;
}

static inline double memory_in_use(const struct function *f, const struct replica *r)
{
    return f->config.memory_base_bytes + r->count * f->config.memory_per_request_bytes;
}

static inline bool has_its_size(const struct function *f, const struct replica *r)
{
    return r->request_milli == f->request_milli && r->limit_milli == f->limit_milli &&
           r->limit_bytes == f->limit_bytes;
}

/* fmin and fmax without their care for NaN, which costs a call. */
static inline double least(double a, double b)
{
    return a < b ? a : b;
}

static inline double greatest(double a, double b)
{
    return a > b ? a : b;
}

static inline uint32_t slot_of(const struct cluster *c, const struct replica *r)
{
    return (uint32_t)(r - c->slots);
}

static inline struct function *function_of(const struct cluster *c, const struct replica *r)
{
    return &c->functions[r->function];
}

#endif
