/* What is seen of a cluster, and looking ahead in it. */
#include "internal.h"

#include <string.h>

double cluster_now_s(const struct cluster *c)
{
    return c->now_s;
}

/* --- figures --------------------------------------------------------------------------------- */
const struct cluster_stats *cluster_stats(const struct cluster *c, size_t function)
{
    return &c->functions[function].stats;
}

const struct cluster_latency *cluster_latency(const struct cluster *c, size_t function)
{
    return &c->functions[function].latency;
}

void cluster_begin_interval(struct cluster *c)
{
    for (size_t i = 0; i < c->function_count; i++) {
        struct function *f = &c->functions[i];
        f->last_s = f->room_last_s = f->interval_began_s = c->now_s;
        f->stats = (struct cluster_stats){0};
        memset(&f->gone, 0, sizeof(f->gone));
        if (f->latency.count > 0)
            memset(&f->latency, 0, sizeof(f->latency));
        for (size_t k = 0; k < f->replica_count; k++) {
            struct replica *r = &c->slots[f->replicas[k]];
            replica_advance(c, r);
            r->cpu_s = 0;
            r->periods = r->throttled_periods = 0;
        }
    }
}

static double bucket_begin_s(size_t bucket)
{
    return ldexp(1 + (double)(bucket % 32) / 32, (int)(bucket / 32) - 20);
}

double cluster_latency_quantile_ms(const struct cluster_latency *l, double share)
{
    if (l->count == 0)
        return NAN;
    double rank = share * (double)l->count, below = 0;
    size_t i = 0;
    while (i < CLUSTER_BUCKETS - 1 && below + l->buckets[i] < rank)
        below += l->buckets[i++];
    while (i < CLUSTER_BUCKETS - 1 && l->buckets[i] == 0)
        i++; /* share 0: the least there is */
    double inside = l->buckets[i] ? fmin(fmax((rank - below) / l->buckets[i], 0), 1) : 0;
    double begin_s = bucket_begin_s(i), end_s = bucket_begin_s(i + 1);
    return 1000 * (begin_s + inside * (end_s - begin_s));
}

double cluster_latency_within(const struct cluster_latency *l, double ms)
{
    double at_s = ms / 1000, within = 0;
    if (!(at_s < bucket_begin_s(CLUSTER_BUCKETS - 1)))
        return (double)l->count;
    if (at_s < bucket_begin_s(0))
        return 0;
    size_t octave = (size_t)ilogb(at_s * 0x1p20); /* not negative: checked above */
    size_t bucket = 32 * octave + (size_t)(32 * (at_s / bucket_begin_s(32 * octave) - 1));
    for (size_t i = 0; i < bucket; i++)
        within += l->buckets[i];
    double begin_s = bucket_begin_s(bucket), end_s = bucket_begin_s(bucket + 1);
    return within + l->buckets[bucket] * (at_s - begin_s) / (end_s - begin_s);
}

void cluster_latency_add(struct cluster_latency *into, const struct cluster_latency *from)
{
    if (from->count == 0)
        return;
    for (size_t i = 0; i < CLUSTER_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->sum_s += from->sum_s;
}

/* --- now ------------------------------------------------------------------------------------- */
static size_t count_overdue(const struct cluster *c, const struct function *f)
{
    double before_s = c->now_s - f->goal_s;
    size_t overdue = 0;
    for (size_t i = 0; i < f->replica_count; i++) {
        const struct replica *r = &c->slots[f->replicas[i]];
        for (uint32_t k = 0; k < r->count; k++)
            overdue += r->requests[k].arrived_s < before_s;
    }
    for (size_t i = 0; i < f->queued; i++)
        overdue += f->queue[(f->queue_first + i) % f->queue_cap].arrived_s < before_s;
    return overdue;
}

void cluster_state(const struct cluster *c, size_t function, struct cluster_state *out)
{
    const struct function *f = &c->functions[function];
    *out = (struct cluster_state){
        .wanted = f->wanted,
        .in_flight = f->in_flight,
        .waiting = f->queued,
        .overdue = count_overdue(c, f),
        .request_milli = f->request_milli,
        .limit_milli = f->limit_milli,
        .memory_limit_bytes = f->limit_bytes,
    };
    for (size_t i = 0; i < f->replica_count; i++) {
        const struct replica *r = &c->slots[f->replicas[i]];
        out->ready += r->phase == CLUSTER_READY;
        out->starting += r->phase == CLUSTER_STARTING;
        out->unscheduled += r->phase == CLUSTER_UNSCHEDULED;
        out->draining += r->phase == CLUSTER_DRAINING;
        out->resizing +=
            (r->phase == CLUSTER_READY || r->phase == CLUSTER_STARTING) && !has_its_size(f, r);
        out->shrinks_waiting += r->shrink_waits;
    }
}

size_t cluster_replicas(const struct cluster *c, size_t function, struct cluster_replica *out,
                        size_t max)
{
    const struct function *f = &c->functions[function];
    for (size_t i = 0; i < f->replica_count && i < max; i++) {
        const struct replica *r = &c->slots[f->replicas[i]];
        bool running = r->phase == CLUSTER_READY || r->phase == CLUSTER_DRAINING;
        out[i] = (struct cluster_replica){
            .id = r->id,
            .phase = r->phase,
            .node = r->node,
            .age_s = c->now_s - r->created_s,
            .ready_s = running ? c->now_s - r->ready_since_s : 0,
            .request_milli = r->request_milli,
            .limit_milli = r->limit_milli,
            .cpu_s = r->cpu_s,
            .periods = r->periods,
            .throttled_periods = r->throttled_periods,
            .memory_bytes = memory_in_use(f, r),
            .memory_limit_bytes = r->limit_bytes,
            .in_flight = r->count,
        };
    }
    return f->replica_count;
}

/* --- ahead ----------------------------------------------------------------------------------- */
size_t cluster_peek(const struct cluster *c, size_t function, double span_s,
                    struct cluster_request *out, size_t max)
{
    const struct function *f = &c->functions[function];
    struct arrivals ahead = f->arrivals;
    struct arrival next = {events_time_s(&c->coming, (uint32_t)function), f->next_cpu_s};
    size_t count = 0;
    for (; next.at_s <= c->now_s + span_s && next.at_s < INFINITY; count++) {
        if (out && count < max)
            out[count] = (struct cluster_request){next.at_s, next.cpu_s * 1000};
        next = arrivals_next(&ahead, &f->demand);
    }
    return count;
}

static void *copy(const void *from, size_t count, size_t size)
{
    return from ? memcpy(xcalloc(count, size), from, count * size) : NULL;
}

struct cluster *cluster_clone(const struct cluster *from)
{
    struct cluster *c = copy(from, 1, sizeof(*c));
    c->functions = copy(from->functions, c->function_count, sizeof(*c->functions));
    c->slots = copy(from->slots, c->slot_count, sizeof(*c->slots));
    c->free_slots = copy(from->free_slots, c->slot_count, sizeof(*c->free_slots));
    c->unscheduled = copy(from->unscheduled, c->unscheduled_cap, sizeof(*c->unscheduled));
    c->nodes = copy(from->nodes, c->node_count, sizeof(*c->nodes));
    c->node_config = copy(from->node_config, c->node_count, sizeof(*c->node_config));
    c->coming.nodes = copy(from->coming.nodes, 2 * (size_t)c->coming.leaves, sizeof(struct event));
    c->running.nodes =
        copy(from->running.nodes, 2 * (size_t)c->running.leaves, sizeof(struct event));
    for (size_t i = 0; i < c->function_count; i++) {
        struct function *f = &c->functions[i];
        f->replicas = copy(f->replicas, f->replica_cap, sizeof(*f->replicas));
        f->ready = copy(f->ready, f->replica_cap, sizeof(*f->ready));
        f->queue = copy(f->queue, f->queue_cap, sizeof(*f->queue));
        demand_init(&f->demand, f->config.workload);
    }
    for (uint32_t i = 0; i < c->slot_count; i++)
        c->slots[i].requests = copy(c->slots[i].requests, c->slots[i].cap, sizeof(struct request));
    for (size_t i = 0; i < c->node_count; i++) {
        struct node *n = &c->nodes[i];
        n->replicas = copy(n->replicas, n->cap, sizeof(*n->replicas));
        n->open = xcalloc(n->cap, sizeof(*n->open));
    }
    return c;
}
