/* Invocations on workers, event by event. */
#include "harvest/harvest.h"

#include <math.h>
#include <string.h>

#define NEWEST 0.2 /* its weight in a mean of late */

struct running {
    double end_s;
    size_t invocation, worker;
};

struct run {
    const struct harvest_cluster *cluster;
    const struct harvest_workload *load;
    const struct harvest_manager *manager;
    void *self;
    struct harvest_outcome *outcomes;
    struct harvest_record *records;      /* (functions) */
    double (*free)[HARVEST_RESOURCES];   /* (workers) */
    double (*wanted)[HARVEST_RESOURCES]; /* (invocations) */
    struct running *heap;                /* the next to end comes first */
    size_t heap_count;
    size_t *queue; /* of invocations that wait, in the order of arrival */
    size_t queue_first, queue_end;
};

/* --- the next to end ---------------------------------------------------------------------------
 */
static bool is_earlier(const struct running *a, const struct running *b)
{
    return a->end_s != b->end_s ? a->end_s < b->end_s : a->invocation < b->invocation;
}

static void heap_push(struct run *r, struct running item)
{
    size_t i = r->heap_count++;
    for (; i > 0 && is_earlier(&item, &r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = item;
}

static struct running heap_pop(struct run *r)
{
    struct running first = r->heap[0], last = r->heap[--r->heap_count];
    size_t i = 0;
    for (size_t next; (next = 2 * i + 1) < r->heap_count; i = next) {
        if (next + 1 < r->heap_count && is_earlier(&r->heap[next + 1], &r->heap[next]))
            next++;
        if (!is_earlier(&r->heap[next], &last))
            break;
        r->heap[i] = r->heap[next];
    }
    r->heap[i] = last;
    return first;
}

/* --- finding a place ---------------------------------------------------------------------------
 */
static const struct harvest_function *function_of(const struct run *r, size_t i)
{
    return &r->load->functions[r->load->invocations[i].function];
}

static bool fits(const double *free, const double *amounts)
{
    return free[HARVEST_CPU] >= amounts[HARVEST_CPU] &&
           free[HARVEST_MEMORY] >= amounts[HARVEST_MEMORY];
}

/* The first worker from home on that has all of it; workers: none has. */
static size_t find_first(const struct run *r, size_t home, const double *amounts)
{
    size_t n = r->cluster->workers;
    for (size_t k = 0; k < n; k++)
        if (fits(r->free[(home + k) % n], amounts))
            return (home + k) % n;
    return n;
}

/* The one with the most free cores among those that have it. */
static size_t find_freest(const struct run *r, size_t home, const double *amounts)
{
    size_t n = r->cluster->workers, best = n;
    for (size_t k = 0; k < n; k++) {
        size_t w = (home + k) % n;
        if (fits(r->free[w], amounts) &&
            (best == n || r->free[w][HARVEST_CPU] > r->free[best][HARVEST_CPU]))
            best = w;
    }
    return best;
}

/* What is wanted, as far as it lies idle here, but never less than what is due. */
static void lend(const struct run *r, size_t worker, const double *due, const double *wanted,
                 double *given)
{
    for (int k = 0; k < HARVEST_RESOURCES; k++) {
        double step = r->cluster->step[k], idle = floor(r->free[worker][k] / step) * step;
        given[k] = fmax(due[k], fmin(wanted[k], idle));
    }
}

static void start(struct run *r, size_t i, size_t worker, double now_s)
{
    const struct harvest_invocation *v = &r->load->invocations[i];
    const struct harvest_function *f = function_of(r, i);
    struct harvest_outcome *o = &r->outcomes[i];
    o->wait_s = now_s - v->arrival_s;
    o->user_s = v->user_s;
    o->slowdown = harvest_execution_s(&v->demand, o->given) / v->user_s;
    o->execution_s = o->slowdown * v->user_s * v->noise;
    o->harvested = !fits(o->given, f->user);
    harvest_peak(&v->demand, o->given, o->peak);
    for (int k = 0; k < HARVEST_RESOURCES; k++)
        r->free[worker][k] -= o->given[k];
    heap_push(r, (struct running){now_s + o->execution_s, i, worker});
}

/* false: it has to wait. */
static bool place(struct run *r, size_t i, double now_s)
{
    const struct harvest_function *f = function_of(r, i);
    const double *wanted = r->wanted[i];
    double due[HARVEST_RESOURCES];
    for (int k = 0; k < HARVEST_RESOURCES; k++)
        due[k] = fmin(wanted[k], f->user[k]);
    size_t worker = find_first(r, f->home, wanted);
    if (worker == r->cluster->workers)
        worker = find_freest(r, f->home, due);
    if (worker == r->cluster->workers)
        return false;
    lend(r, worker, due, wanted, r->outcomes[i].given);
    start(r, i, worker, now_s);
    return true;
}

/* --- what happens ------------------------------------------------------------------------------
 */
static struct harvest_view view_of(const struct run *r, size_t i)
{
    const struct harvest_invocation *v = &r->load->invocations[i];
    struct harvest_view view = {
        .invocation = i,
        .function = v->function,
        .user = r->load->functions[v->function].user,
        .record = &r->records[v->function],
        .cluster = r->cluster,
        .in_flight = r->heap_count + r->queue_end - r->queue_first,
    };
    for (size_t w = 0; w < r->cluster->workers; w++)
        for (int k = 0; k < HARVEST_RESOURCES; k++)
            view.free[k] += r->free[w][k];
    return view;
}

static double mean_of(double before, double value, bool first)
{
    return first ? value : before + NEWEST * (value - before);
}

static void arrive(struct run *r, size_t i)
{
    double now_s = r->load->invocations[i].arrival_s;
    struct harvest_view view = view_of(r, i);
    struct harvest_record *record = &r->records[view.function];
    if (record->arrived > 0)
        record->interval_s =
            mean_of(record->interval_s, now_s - record->last_arrival_s, record->arrived == 1);
    record->arrived++;
    record->last_arrival_s = now_s;
    r->manager->decide(r->self, &view, r->wanted[i]);
    if (r->queue_first != r->queue_end || !place(r, i, now_s))
        r->queue[r->queue_end++] = i;
}

static void note(struct harvest_record *record, const struct harvest_outcome *o)
{
    bool first = record->done++ == 0;
    for (int k = 0; k < HARVEST_RESOURCES; k++) {
        record->last_given[k] = o->given[k];
        record->last_peak[k] = o->peak[k];
        record->mean_peak[k] = mean_of(record->mean_peak[k], o->peak[k], first);
    }
    record->mean_execution_s = mean_of(record->mean_execution_s, o->execution_s, first);
    if (first)
        record->first_execution_s = o->execution_s;
}

static void end(struct run *r)
{
    struct running ended = heap_pop(r);
    const struct harvest_outcome *o = &r->outcomes[ended.invocation];
    for (int k = 0; k < HARVEST_RESOURCES; k++)
        r->free[ended.worker][k] += o->given[k];
    note(&r->records[r->load->invocations[ended.invocation].function], o);
    struct harvest_view view = view_of(r, ended.invocation);
    if (r->manager->done)
        r->manager->done(r->self, &view, o);
    while (r->queue_first != r->queue_end && place(r, r->queue[r->queue_first], ended.end_s))
        r->queue_first++;
}

double harvest_rfet(const struct harvest_outcome *o)
{
    return o->execution_s / o->user_s;
}

void harvest_run(const struct harvest_cluster *cluster, const struct harvest_workload *load,
                 const struct harvest_manager *manager, void *self,
                 struct harvest_outcome *outcomes)
{
    size_t n = load->invocation_count;
    struct run r = {
        .cluster = cluster,
        .load = load,
        .manager = manager,
        .self = self,
        .outcomes = outcomes,
        .records = xcalloc(load->function_count, sizeof(*r.records)),
        .free = xcalloc(cluster->workers, sizeof(*r.free)),
        .wanted = xcalloc(n, sizeof(*r.wanted)),
        .heap = xcalloc(n, sizeof(*r.heap)),
        .queue = xcalloc(n, sizeof(*r.queue)),
    };
    for (size_t w = 0; w < cluster->workers; w++)
        memcpy(r.free[w], cluster->capacity, sizeof(*r.free));
    for (size_t next = 0; next < n || r.heap_count > 0;) {
        bool ends =
            r.heap_count > 0 && (next == n || r.heap[0].end_s <= load->invocations[next].arrival_s);
        if (ends)
            end(&r);
        else
            arrive(&r, next++);
    }
    free(r.records);
    free(r.free);
    free(r.wanted);
    free(r.heap);
    free(r.queue);
}
