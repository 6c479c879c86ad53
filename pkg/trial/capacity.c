/* How many requests per second one replica can take, by its CPU. */
#include "trial/internal.h"

#include <math.h>

#define MAX_SIZES     64
#define SIZE_RATIO    1.2   /* of neighbouring sizes, at most */
#define MAX_REQUESTS  20000 /* of one simulation */
#define MIN_REQUESTS  1000
#define FEW_REQUESTS  250    /* where each takes very many CFS periods */
#define PERIODS_WORTH 200000 /* of CFS, that one simulation may take */
#define CFS_PERIOD_S  0.1
#define IDLE_LOAD     0.002 /* requests hardly ever meet */
#define PARTS         8     /* of a simulation, after each of which it may have failed already */
#define MARGIN        0.8   /* of the allowed share: simulations and traces are finite */
#define HOPELESS      0.1   /* of it, beyond what even the largest replica has late without load */

struct capacity {
    struct oracle_world world;
    double late_share;
    double slowdown;  /* of the function, at the time this is about */
    double low_milli; /* the bound; below sizes[0] a lone request is late too often */
    double sizes_milli[MAX_SIZES], rates[MAX_SIZES]; /* NaN: not known yet */
    size_t count;
    double most_requests;
};

static double mean_s(const struct capacity *c)
{
    return c->slowdown * trace_mean_cpu_ms(c->world.settings->workload) / 1000;
}

/* --- one replica under load ------------------------------------------------------------------- */
/* Requests of one simulation: many, but not many more than the function has itself, and fewer where
 * each of them takes long. */
static double requests_of(const struct capacity *c, double limit_milli)
{
    double quota_s = limit_milli > 0 ? limit_milli / 1000 * CFS_PERIOD_S : INFINITY;
    double affordable = PERIODS_WORTH / (1 + mean_s(c) / quota_s);
    return floor(fmin(c->most_requests, fmax(affordable, FEW_REQUESTS)));
}

/* The share of late requests; where it is too large, perhaps only a part of it. */
static double late_share(const struct capacity *c, double milli, double requests_per_s)
{
    struct cluster_function one = *c->world.settings;
    struct trace_function load = *one.workload;
    struct error err = {0};
    one.workload = &load;
    one.replicas = 1;
    one.request_milli = milli;
    one.limit_milli = oracle_limit_milli(&c->world, milli);
    one.crash_per_hour = 0;
    double requests = requests_of(c, one.limit_milli);
    load.counts = &requests;
    load.slot_count = 1;
    load.slot_s = requests / requests_per_s;
    load.poisson = load.repeat = false;
    load.works = NULL;
    load.slower = c->slowdown;
    load.slower_from_s = 0;
    struct cluster *cluster = cluster_new(
        &(struct cluster_config){.functions = &one, .function_count = 1, .seed = 1}, &err);
    if (!cluster)
        return 1;
    double late = 0;
    for (int part = 1; part <= PARTS && !(late > c->late_share * requests); part++) {
        struct cluster_state state;
        cluster_run(cluster, load.slot_s * part / PARTS + (part == PARTS ? one.goal_ms / 1000 : 0));
        const struct cluster_stats *stats = cluster_stats(cluster, 0);
        cluster_state(cluster, 0, &state);
        late = (double)(stats->late + stats->lost + state.overdue);
    }
    cluster_free(cluster);
    return late / requests;
}

static bool keeps_goal(const struct capacity *c, double milli, double requests_per_s)
{
    return late_share(c, milli, requests_per_s) <= c->late_share;
}

/* The rate at which all CPU, or all places for requests, would be taken. */
static double full_rate(const struct capacity *c, double milli)
{
    const struct cluster_function *f = c->world.settings;
    double limit = oracle_limit_milli(&c->world, milli);
    double cores = limit > 0 ? limit / 1000 : INFINITY;
    if (f->concurrency > 0)
        cores = fmin(cores, f->concurrency);
    return cores / mean_s(c);
}

static double idle_rate(const struct capacity *c, double milli)
{
    double full = full_rate(c, milli);
    return IDLE_LOAD * (isinf(full) ? 1 / mean_s(c) : full);
}

static double find_rate(const struct capacity *c, double milli)
{
    double low = 0, high = full_rate(c, milli);
    if (isinf(high))
        return INFINITY;
    while (high - low > 0.01 * high) {
        double middle = (low + high) / 2;
        if (keeps_goal(c, milli, middle))
            low = middle;
        else
            high = middle;
        if (high < idle_rate(c, milli))
            break;
    }
    return low;
}

/* --- sizes ------------------------------------------------------------------------------------ */
/* The least size with which a lone request is not late too often; the largest one where none is
 * enough. */
static double find_least(const struct capacity *c, double low, double high)
{
    if (keeps_goal(c, low, idle_rate(c, low)))
        return low;
    while (high > low * 1.01) {
        double middle = sqrt(low * high);
        if (keeps_goal(c, middle, idle_rate(c, middle)))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void set_sizes(struct capacity *c, double least, double high)
{
    double steps = fmin(ceil(log(high / least) / log(SIZE_RATIO)), MAX_SIZES - 1);
    c->count = (size_t)fmax(steps, 0) + 1;
    for (size_t i = 0; i < c->count; i++) {
        double share = c->count > 1 ? (double)i / (double)(c->count - 1) : 1;
        c->sizes_milli[i] = least * pow(high / least, share);
        c->rates[i] = NAN;
    }
}

struct capacity *capacity_new(const struct oracle_world *world, double slowdown, double low_milli,
                              double high_milli)
{
    struct capacity *c = xcalloc(1, sizeof(*c));
    const struct trace_function *workload = world->settings->workload;
    double all = trace_requests(workload) * fmax(world->span_s / trace_span_s(workload), 1);
    c->world = *world;
    c->slowdown = slowdown;
    c->low_milli = low_milli;
    c->most_requests = fmin(fmax(2 * all, MIN_REQUESTS), MAX_REQUESTS);
    c->late_share = NAN; /* nothing to compare with: the simulation runs to its end */
    double alone = late_share(c, high_milli, idle_rate(c, high_milli));
    c->late_share = fmax(MARGIN * world->late_share, alone + HOPELESS * world->late_share);
    set_sizes(c, find_least(c, low_milli, high_milli), high_milli);
    return c;
}

void capacity_free(struct capacity *c)
{
    free(c);
}

static double rate_of(struct capacity *c, size_t i)
{
    if (isnan(c->rates[i]))
        c->rates[i] = find_rate(c, c->sizes_milli[i]);
    return c->rates[i];
}

double capacity_cpu_milli(struct capacity *c, double requests_per_s)
{
    if (!(requests_per_s > 0))
        return c->low_milli;
    size_t low = 0, high = c->count; /* the answer is in low..high, high: none */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rate_of(c, middle) >= requests_per_s)
            high = middle;
        else
            low = middle + 1;
    }
    if (high == c->count)
        return INFINITY;
    if (high == 0)
        return c->sizes_milli[0];
    double below = rate_of(c, high - 1), above = rate_of(c, high);
    double share = isinf(above) ? 1 : (requests_per_s - below) / (above - below);
    return c->sizes_milli[high - 1] + share * (c->sizes_milli[high] - c->sizes_milli[high - 1]);
}
