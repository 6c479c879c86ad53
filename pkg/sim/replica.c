/* The CPU of a replica: shared by its requests, held by its quota, fought for on its node. */
#include "internal.h"

#define EVEN  1e-9 /* cores; less than this is rounding */
#define SPENT 1e-7 /* CPU seconds; less than this is left by rounding */

/* --- the heap of requests -------------------------------------------------------------------- */
static void push(struct replica *r, struct request request)
{
    if (r->count == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 8;
        r->requests = xrealloc(r->requests, r->cap, sizeof(*r->requests));
    }
    struct request *heap = r->requests;
    uint32_t i = r->count++;
    while (i > 0 && heap[(i - 1) / 2].finish > request.finish) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = request;
}

static struct request pop(struct replica *r)
{
    struct request *heap = r->requests, top = heap[0], last = heap[--r->count];
    uint32_t i = 0, n = r->count;
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1].finish < heap[child].finish;
        if (last.finish <= heap[child].finish)
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* --- time passes ----------------------------------------------------------------------------- */
/* What was overdrawn in a period that has ended since; `passed` have. */
static double overdrawn_s(const struct replica *r, const struct budget *b, double now_s,
                          int64_t passed)
{
    double cores = r->rate * r->count;
    double debt_s = b->used_s - cores * (now_s - b->period_end_s) - r->quota_s;
    return greatest(debt_s - (double)(passed - 1) * (r->quota_s - cores * CFS_PERIOD_S), 0);
}

/* One or more periods have ended since the last look, during which the replica ran all the time or
 * not at all: whatever changes that is an event. */
static void roll_periods(struct replica *r, struct budget *b, double now_s)
{
    int64_t passed = (int64_t)((now_s - b->period_end_s) / CFS_PERIOD_S) + 1;
    double begin_s = b->period_end_s + (double)(passed - 1) * CFS_PERIOD_S;
    double cores = r->rate * r->count;
    double debt_s = r->tick_s > 0 ? overdrawn_s(r, b, now_s, passed) : 0;
    if (b == r->budgets) {
        r->ran = cores > 0;
        r->periods += r->ran ? (uint64_t)passed : 0;
    }
    b->used_s = debt_s + cores * (now_s - begin_s);
    b->spent = false;
    b->period_end_s = begin_s + CFS_PERIOD_S;
    if (b->period_end_s <= now_s)
        b->period_end_s += CFS_PERIOD_S; /* rounding */
}

static inline void advance(struct replica *r, double now_s)
{
    double got_s = r->rate * (now_s - r->last_s), cpu_s = got_s * r->count;
    r->work += got_s;
    r->cpu_s += cpu_s;
    r->last_s = now_s;
    for (struct budget *b = r->budgets; b < r->budgets + r->budget_count; b++) {
        b->used_s += cpu_s;
        if (now_s >= b->period_end_s)
            roll_periods(r, b, now_s);
    }
}

void replica_advance(struct cluster *c, struct replica *r)
{
    advance(r, c->now_s);
}

/* --- what comes next ------------------------------------------------------------------------- */
/* When a budget is found to be spent; at the latest at the end of the period there is a new one. */
static double throttled_at(const struct replica *r, const struct budget *b, double now_s)
{
    double cores = r->rate * r->count, at_s = now_s + (r->quota_s - b->used_s) / cores;
    if (r->tick_s > 0)
        at_s = r->tick_s * ceil(greatest(at_s, now_s) / r->tick_s);
    if (at_s < b->period_end_s)
        return at_s;
    if (r->tick_s > 0)
        return b->period_end_s;
    return cores * CFS_PERIOD_S > r->quota_s ? b->period_end_s + r->quota_s / cores : INFINITY;
}

/* When all that is spent is renewed. */
static double renewed_at(const struct replica *r)
{
    double at_s = 0;
    for (const struct budget *b = r->budgets; b < r->budgets + r->budget_count; b++)
        at_s = b->spent ? greatest(at_s, b->period_end_s) : at_s;
    return at_s;
}

static inline void plan(struct cluster *c, struct replica *r)
{
    double at_s = least(least(r->ready_at_s, r->resize_at_s), r->crash_at_s);
    enum turn turn = TURN_LIFE;
    if (r->rate > 0) {
        double left_s = r->requests[0].finish - r->work;
        double done_s = c->now_s + (r->rate == 1 ? left_s : left_s / r->rate); /* most often 1 */
        if (done_s < at_s) {
            at_s = done_s;
            turn = TURN_DEPART;
        }
        for (const struct budget *b = r->budgets; b < r->budgets + r->budget_count; b++) {
            double throttled_s = throttled_at(r, b, c->now_s);
            if (throttled_s < at_s) {
                at_s = throttled_s;
                turn = TURN_THROTTLE;
            }
        }
    } else if (r->throttled && renewed_at(r) < at_s) {
        at_s = renewed_at(r);
        turn = TURN_PERIOD;
    }
    r->turn = turn;
    events_set(&c->running, slot_of(c, r), greatest(at_s, c->now_s));
}

/* --- sharing --------------------------------------------------------------------------------- */
static double rate_of(const struct replica *r, double cores)
{
    return r->count == 0 ? 0 : cores == r->count ? 1 : cores / r->count;
}

/* By weight, but nobody gets more than it can use: what one leaves goes to the others. Those whose
 * rate stays are left alone, and what was planned for them still holds. */
static void share_node(struct cluster *c, struct node *node, const struct replica *changed)
{
    struct replica **open = node->open; /* those who could use more than they have got so far */
    double cores = node->cores, weights = 0;
    size_t count = 0;
    for (size_t i = 0; i < node->count; i++) {
        struct replica *r = &c->slots[node->replicas[i]];
        r->share = 0;
        if (r->demand > 0) {
            open[count++] = r;
            weights += r->weight;
        }
    }
    for (size_t before = count + 1; count < before;) {
        before = count;
        count = 0;
        for (size_t i = 0; i < before; i++) {
            struct replica *r = open[i];
            if (r->demand * weights > cores * r->weight) {
                open[count++] = r;
                continue;
            }
            r->share = r->demand;
            cores -= r->demand;
            weights -= r->weight;
        }
    }
    for (size_t i = 0; i < count; i++)
        open[i]->share = cores * open[i]->weight / weights;
    for (size_t i = 0; i < node->count; i++) {
        struct replica *r = &c->slots[node->replicas[i]];
        double rate = rate_of(r, r->share);
        if (rate == r->rate && r != changed)
            continue;
        advance(r, c->now_s);
        r->rate = rate;
        plan(c, r);
    }
}

static inline void settle(struct cluster *c, struct replica *r)
{
    struct node *node = &c->nodes[r->node];
    double demand = r->throttled ? 0 : least(r->count, node->cores);
    bool was_short = node->demand > node->cores + EVEN;
    node->demand += demand - r->demand;
    r->demand = demand;
    if (was_short || node->demand > node->cores + EVEN) {
        share_node(c, node, r);
        return;
    }
    r->rate = rate_of(r, demand);
    plan(c, r);
}

void replica_settle(struct cluster *c, struct replica *r)
{
    if (r->node == NO_NODE)
        return;
    advance(r, c->now_s);
    settle(c, r);
}

/* --- events ---------------------------------------------------------------------------------- */
static void note_running(struct replica *r)
{
    if (r->ran || r->throttled || r->count == 0)
        return;
    r->ran = true;
    r->periods++;
}

/* Looks which budgets are spent: whether the replica has to stand still. */
static bool find_spent(struct replica *r)
{
    bool any = false;
    for (struct budget *b = r->budgets; b < r->budgets + r->budget_count; b++) {
        bool spent = b->used_s > r->quota_s - SPENT;
        r->throttled_periods += spent && !b->spent && b == r->budgets;
        b->spent = spent;
        any |= spent;
    }
    return any;
}

void replica_add(struct cluster *c, struct replica *r, double arrived_s, double cpu_s)
{
    advance(r, c->now_s);
    if (r->count == 0)
        r->work = 0; /* small numbers are exact ones */
    push(r, (struct request){.finish = r->work + cpu_s, .arrived_s = arrived_s});
    if (r->tick_s > 0 && r->count == 1)
        r->throttled = find_spent(r);
    note_running(r);
    settle(c, r);
}

double replica_finish(struct cluster *c, struct replica *r)
{
    advance(r, c->now_s);
    double arrived_s = pop(r).arrived_s;
    settle(c, r);
    return arrived_s;
}

void replica_throttle(struct cluster *c, struct replica *r)
{
    advance(r, c->now_s);
    r->throttled = find_spent(r);
    settle(c, r);
}

void replica_run_again(struct cluster *c, struct replica *r)
{
    advance(r, c->now_s);
    r->throttled = find_spent(r);
    note_running(r);
    settle(c, r);
}

/* As in Linux a new quota begins with a fresh one in the pool. */
static void renew(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    bool had_none = r->budget_count == 0;
    r->budget_count = r->quota_s == INFINITY ? 0 : f->config.pod_quota ? 2 : 1;
    r->tick_s = c->nodes[r->node].tick_s;
    r->throttled = false;
    for (struct budget *b = r->budgets; b < r->budgets + r->budget_count; b++) {
        b->used_s = 0;
        b->spent = false;
        if (had_none)
            b->period_end_s = c->now_s + random_uniform(&f->random) * CFS_PERIOD_S;
    }
    if (had_none)
        r->ran = false;
}

void replica_set_limit(struct cluster *c, struct replica *r, double limit_milli)
{
    advance(r, c->now_s);
    double quota_s = limit_milli > 0 ? limit_milli / 1000 * CFS_PERIOD_S : INFINITY;
    r->limit_milli = limit_milli;
    if (quota_s == r->quota_s)
        return;
    r->quota_s = quota_s;
    renew(c, r);
    note_running(r);
}
