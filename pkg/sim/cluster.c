/* Requests: they arrive, go to a replica or wait for one, and are done. */
#include "internal.h"

#include <string.h>

/* --- figures --------------------------------------------------------------------------------- */
/* A bucket is the exponent and the first five bits of a double; the first one begins at 2^-20 s. */
static inline void record(struct cluster_latency *l, double latency_s)
{
    uint64_t bits;
    memcpy(&bits, &latency_s, sizeof(bits));
    int64_t bucket = (int64_t)(bits >> 47) - ((1023 - 20) << 5);
    bucket = bucket < 0 ? 0 : bucket >= CLUSTER_BUCKETS ? CLUSTER_BUCKETS - 1 : bucket;
    l->buckets[bucket]++;
    l->count++;
    l->sum_s += latency_s;
}

/* --- where a request goes -------------------------------------------------------------------- */
static bool has_room(const struct function *f, const struct replica *r)
{
    return f->config.concurrency == 0 || r->count < (uint32_t)f->config.concurrency;
}

static struct replica *least_loaded(const struct cluster *c, const struct function *f)
{
    struct replica *best = NULL;
    for (size_t i = 0; i < f->ready_count; i++) {
        struct replica *r = &c->slots[f->ready[i]];
        if (best == NULL || r->count < best->count)
            best = r;
    }
    return best && has_room(f, best) ? best : NULL;
}

/* Of the replicas that have room; NULL: none has. */
static struct replica *choose(const struct cluster *c, struct function *f)
{
    size_t n = f->ready_count;
    if (n == 0)
        return NULL;
    if (f->config.dispatch == CLUSTER_LEAST_LOADED)
        return least_loaded(c, f);
    size_t at = n == 1                                 ? 0
                : f->config.dispatch == CLUSTER_RANDOM ? random_below(&f->random, n)
                                                       : f->turn++ % n;
    for (size_t i = 0; i < n; i++, at = at + 1 == n ? 0 : at + 1) {
        struct replica *r = &c->slots[f->ready[at]];
        if (has_room(f, r))
            return r;
    }
    return NULL;
}

static void begin(struct cluster *c, struct function *f, struct replica *r, double arrived_s,
                  double cpu_s)
{
    if (r->cold) {
        cpu_s += f->config.cold_cpu_ms / 1000;
        r->cold = false;
    }
    f->in_flight++;
    replica_add(c, r, arrived_s, cpu_s);
    double used = memory_in_use(f, r);
    if (used > 0 && r->limit_bytes > 0 && used > r->limit_bytes) {
        f->stats.memory_kills++;
        life_restart(c, r);
    }
}

/* --- the queue of a function ----------------------------------------------------------------- */
static void enqueue(struct function *f, double arrived_s, double cpu_s)
{
    if (f->queued == f->queue_cap) {
        size_t cap = f->queue_cap ? f->queue_cap * 2 : 16;
        struct waiting *queue = xcalloc(cap, sizeof(*queue));
        for (size_t i = 0; i < f->queued; i++)
            queue[i] = f->queue[(f->queue_first + i) % f->queue_cap];
        free(f->queue);
        f->queue = queue;
        f->queue_cap = cap;
        f->queue_first = 0;
    }
    f->queue[(f->queue_first + f->queued++) % f->queue_cap] = (struct waiting){arrived_s, cpu_s};
}

void requests_take_waiting(struct cluster *c, struct function *f)
{
    struct replica *r;
    if (f->queued == 0)
        return;
    requests_account(f, c->now_s); /* so far they have waited */
    while (f->queued > 0 && (r = choose(c, f)) != NULL) {
        struct waiting first = f->queue[f->queue_first];
        f->queue_first = (f->queue_first + 1) % f->queue_cap;
        f->queued--;
        begin(c, f, r, first.arrived_s, first.cpu_s);
    }
}

/* --- events ---------------------------------------------------------------------------------- */
static void plan_arrival(struct cluster *c, struct function *f)
{
    struct arrival next = arrivals_next(&f->arrivals, &f->demand);
    events_set(&c->coming, (uint32_t)(f - c->functions), next.at_s);
    f->next_cpu_s = next.cpu_s;
}

static void arrive(struct cluster *c, struct function *f)
{
    double cpu_s = f->next_cpu_s;
    requests_account(f, c->now_s);
    f->stats.arrived++;
    plan_arrival(c, f);
    struct replica *r = f->queued > 0 ? NULL : choose(c, f);
    if (r)
        begin(c, f, r, c->now_s, cpu_s);
    else
        enqueue(f, c->now_s, cpu_s);
}

static void depart(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    requests_account(f, c->now_s);
    double latency_s = c->now_s - replica_finish(c, r) + f->overhead_s;
    f->in_flight--;
    f->stats.completed++;
    f->stats.late += latency_s > f->goal_s;
    record(&f->latency, latency_s);
    if (r->phase == CLUSTER_DRAINING && r->count == 0) {
        life_remove(c, r);
        return;
    }
    if (f->queued > 0)
        requests_take_waiting(c, f);
    if (r->shrink_waits)
        life_shrink(c, r);
}

static void take_turn(struct cluster *c, struct replica *r)
{
    switch (r->turn) {
    case TURN_DEPART:
        depart(c, r);
        break;
    case TURN_THROTTLE:
        replica_throttle(c, r);
        break;
    case TURN_PERIOD:
        replica_run_again(c, r);
        break;
    case TURN_LIFE:
        life_event(c, r);
        break;
    }
}

/* Brings every figure up to now. */
static void sum_up(struct cluster *c)
{
    for (size_t i = 0; i < c->function_count; i++) {
        struct function *f = &c->functions[i];
        requests_account(f, c->now_s);
        room_account(f, c->now_s);
        f->stats.span_s = c->now_s - f->interval_began_s;
        f->stats.cpu_s = f->gone.cpu_s;
        f->stats.periods = f->gone.periods;
        f->stats.throttled_periods = f->gone.throttled_periods;
        for (size_t k = 0; k < f->replica_count; k++) {
            struct replica *r = &c->slots[f->replicas[k]];
            replica_advance(c, r);
            f->stats.cpu_s += r->cpu_s;
            f->stats.periods += r->periods;
            f->stats.throttled_periods += r->throttled_periods;
        }
    }
}

void cluster_run(struct cluster *c, double until_s)
{
    for (;;) {
        const struct event *comes = &c->coming.nodes[1], *runs = &c->running.nodes[1];
        bool arrives = comes->time <= runs->time;
        const struct event *next = arrives ? comes : runs;
        double time_s = event_time_s(next);
        if (time_s > until_s)
            break;
        c->now_s = time_s;
        if (arrives)
            arrive(c, &c->functions[next->leaf]);
        else
            take_turn(c, &c->slots[next->leaf]);
    }
    c->now_s = greatest(c->now_s, until_s);
    sum_up(c);
}

/* --- a cluster ------------------------------------------------------------------------------- */
static int check_function(const struct cluster_function *f, size_t at, struct error *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } fields[] = {
        {"goal_ms", f->goal_ms, 0, INFINITY},
        {"replicas", f->replicas, 0, 1e6},
        {"request_milli", f->request_milli, 0, 1e9},
        {"limit_milli", f->limit_milli, 0, 1e9},
        {"concurrency", f->concurrency, 0, 1e9},
        {"overhead_ms", f->overhead_ms, 0, 1e9},
        {"start_s", f->start_s, 0, 1e9},
        {"start_spread", f->start_spread, 0, 1},
        {"cold_cpu_ms", f->cold_cpu_ms, 0, 1e9},
        {"resize_s", f->resize_s, 0, 1e9},
        {"crash_per_hour", f->crash_per_hour, 0, 1e6},
        {"memory_limit_bytes", f->memory_limit_bytes, 0, 1e18},
        {"memory_base_bytes", f->memory_base_bytes, 0, 1e18},
        {"memory_per_request_bytes", f->memory_per_request_bytes, 0, 1e18},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!(fields[i].value >= fields[i].low && fields[i].value <= fields[i].high))
            return error_set(err, ERROR_INVALID, "functions[%zu].%s is %g: must be %g to %g", at,
                             fields[i].name, fields[i].value, fields[i].low, fields[i].high);
    const struct trace_function *w = f->workload;
    if (w == NULL || !(w->slot_s > 0))
        return error_set(err, ERROR_INVALID, "functions[%zu].workload has no slots", at);
    if (w->demand == TRACE_DEMAND_QUANTILES ? w->quantile_count == 0 : !(w->mean_cpu_ms > 0))
        return error_set(err, ERROR_INVALID, "functions[%zu].workload has no CPU demand", at);
    return 0;
}

static int check(const struct cluster_config *config, struct error *err)
{
    if (config->function_count == 0)
        return error_set(err, ERROR_INVALID, "functions: there must be at least one");
    for (size_t i = 0; i < config->function_count; i++)
        if (check_function(&config->functions[i], i, err) < 0)
            return -1;
    for (size_t i = 0; i < config->node_count; i++) {
        const struct cluster_node *n = &config->nodes[i];
        if (!(n->cores > 0) || !(n->memory_bytes > 0))
            return error_set(err, ERROR_INVALID,
                             "nodes[%zu] has %g cores and %g bytes of memory: must be more than 0",
                             i, n->cores, n->memory_bytes);
        if (!(n->tick_s >= 0 && n->tick_s < CFS_PERIOD_S))
            return error_set(err, ERROR_INVALID, "nodes[%zu].tick_s is %g: must be 0 to %g", i,
                             n->tick_s, CFS_PERIOD_S);
    }
    return 0;
}

struct cluster *cluster_new(const struct cluster_config *config, struct error *err)
{
    if (check(config, err) < 0)
        return NULL;
    struct cluster *c = xcalloc(1, sizeof(*c));
    c->node_count = config->node_count ? config->node_count : 1;
    c->nodes = xcalloc(c->node_count, sizeof(*c->nodes));
    c->node_config = xcalloc(c->node_count, sizeof(*c->node_config));
    for (size_t i = 0; i < c->node_count; i++)
        c->node_config[i] = config->node_count ? config->nodes[i] : cluster_ample_node;
    c->function_count = config->function_count;
    c->functions = xcalloc(c->function_count, sizeof(*c->functions));
    for (size_t i = 0; i < c->function_count; i++) {
        c->functions[i].config = config->functions[i];
        demand_init(&c->functions[i].demand, config->functions[i].workload);
    }
    cluster_reset(c, config->seed);
    return c;
}

static void reset_function(struct cluster *c, struct function *f)
{
    const struct cluster_function *config = &f->config;
    uint64_t number = (uint64_t)(f - c->functions);
    arrivals_init(&f->arrivals, config->workload, c->seed, 2 * number);
    f->random = random_stream(c->seed, 2 * number + 1);
    f->goal_s = config->goal_ms > 0 ? config->goal_ms / 1000 : INFINITY;
    f->overhead_s = config->overhead_ms / 1000;
    f->request_milli = config->request_milli;
    f->limit_milli = config->limit_milli;
    f->limit_bytes = config->memory_limit_bytes;
    f->replica_count = f->ready_count = f->queued = f->queue_first = f->in_flight = 0;
    f->placed = f->turn = 0;
    f->reserved_milli = f->reserved_bytes = 0;
    f->wanted = 0;
    plan_arrival(c, f);
}

void cluster_reset(struct cluster *c, uint64_t seed)
{
    c->seed = seed;
    c->now_s = 0;
    c->next_id = 0;
    c->room_is_awaited = c->room_changed = false;
    for (size_t i = 0; i < c->node_count; i++) {
        c->nodes[i].cores = c->node_config[i].cores;
        const struct cluster_node *node = &c->node_config[i];
        c->nodes[i].free_milli = node->cores * 1000 * (node->overcommit > 0 ? node->overcommit : 1);
        c->nodes[i].free_bytes = c->node_config[i].memory_bytes;
        c->nodes[i].tick_s = c->node_config[i].tick_s;
        c->nodes[i].demand = 0;
        c->nodes[i].count = 0;
    }
    life_reset(c);
    for (size_t i = 0; i < c->function_count; i++)
        reset_function(c, &c->functions[i]);
    cluster_begin_interval(c);
    for (size_t i = 0; i < c->function_count; i++)
        life_begin(c, &c->functions[i]);
}

void cluster_free(struct cluster *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->function_count; i++) {
        struct function *f = &c->functions[i];
        demand_clear(&f->demand);
        free(f->replicas);
        free(f->ready);
        free(f->queue);
    }
    for (uint32_t i = 0; i < c->slot_count; i++)
        free(c->slots[i].requests);
    for (size_t i = 0; i < c->node_count; i++) {
        free(c->nodes[i].replicas);
        free(c->nodes[i].open);
    }
    free(c->functions);
    free(c->slots);
    free(c->free_slots);
    free(c->unscheduled);
    free(c->nodes);
    free(c->node_config);
    free(c->coming.nodes);
    free(c->running.nodes);
    free(c);
}
