/* The oracle: knows the rate at which requests will come, as the trace has it, and what a replica
 * of each size can take. It takes the cheapest replicas × CPU that keep the goal at that rate.
 * Starts and resizes take as long for it as for everyone, so it looks ahead by that much. */
#include "trial/internal.h"

#include <math.h>
#include <stdio.h>

/* What is this much dearer than the cheapest is kept: changes cost time. */
#define KEEP 1.01

/* --- what both oracles share ----------------------------------------------------------------- */
void *oracle_create(double memory_s, const double *params)
{
    (void)memory_s;
    (void)params;
    return xcalloc(1, sizeof(struct oracle));
}

void oracle_destroy(void *self)
{
    struct oracle *o = self;
    capacity_free(o->capacity);
    free(o);
}

void oracle_attach(void *self, const struct oracle_world *world)
{
    struct oracle *o = self;
    o->world = *world;
}

bool trial_is_oracle(const struct recommender *recommender)
{
    return recommender == &trial_oracle || recommender == &trial_oracle_requests;
}

double oracle_limit_milli(const struct oracle_world *world, double request_milli)
{
    const struct cluster_function *f = world->settings;
    if (!(f->limit_milli > 0))
        return world->ample ? 0 : request_milli;
    if (world->requests_only)
        return f->limit_milli;
    return request_milli * f->limit_milli / f->request_milli;
}

void oracle_propose(const struct observation *seen, int replicas, double cpu_milli,
                    struct recommendation *out)
{
    *out = (struct recommendation){.replicas = replicas, .container_count = 1};
    const double target[] = {
        [RECOMMEND_CPU] = cpu_milli,
        [RECOMMEND_MEMORY] = seen->containers[0].request[RECOMMEND_MEMORY],
    };
    for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++) {
        double amount = seen->containers[0].controlled[r] ? target[r] : NAN;
        out->containers[0].target[r] = out->containers[0].uncapped[r] = amount;
        out->containers[0].lower[r] = out->containers[0].upper[r] = amount;
    }
}

/* --- what is to come -------------------------------------------------------------------------- */
/* Requests per second between two times, as the trace has them. */
static double rate_between(const struct trace_function *f, double from_s, double to_s)
{
    double requests = 0, span_s = to_s - from_s;
    while (from_s < to_s && f->slot_count > 0) {
        size_t slot = (size_t)(from_s / f->slot_s);
        double end_s = (double)(slot + 1) * f->slot_s;
        if (!f->repeat && slot >= f->slot_count)
            break;
        end_s = fmin(end_s, to_s);
        requests += f->counts[slot % f->slot_count] * (end_s - from_s) / f->slot_s;
        from_s = end_s;
    }
    return span_s > 0 ? requests / span_s : 0;
}

struct demand {
    double rate;      /* until the next decision is in force */
    double meanwhile; /* until this one is in force */
};

/* Requests that are still there need what they came for, and what has piled up is worked off within
 * the interval. */
static struct demand look_ahead(const struct oracle_world *w, double now_s)
{
    const struct cluster_function *f = w->settings;
    struct cluster_state state;
    cluster_state(w->cluster, w->function, &state);
    double delay_s = fmax(f->start_s * (1 + f->start_spread), f->resize_s);
    double next_s = now_s + w->interval_s, backlog = (double)state.overdue / w->interval_s;
    double rate = fmax(rate_between(f->workload, now_s, next_s),
                       rate_between(f->workload, next_s, next_s + delay_s));
    if (state.in_flight + state.waiting > 0)
        rate = fmax(rate, rate_between(f->workload, fmax(now_s - f->goal_ms / 1000, 0), now_s));
    return (struct demand){
        .rate = rate + backlog,
        .meanwhile = rate_between(f->workload, now_s, now_s + delay_s) + backlog,
    };
}

/* --- the choice ------------------------------------------------------------------------------- */
struct choice {
    int replicas;
    double milli;
};

static double cost_of(struct choice c)
{
    return c.replicas * c.milli;
}

/* The least CPU with which n replicas are enough, also while those that start are not there yet:
 * the ones that are get more CPU for so long, as much as there is. INFINITY: n are not enough. */
static double milli_for(struct capacity *capacity, int n, int ready, double most_milli,
                        const struct demand *d)
{
    double milli = capacity_cpu_milli(capacity, d->rate / n);
    if (n <= ready || isinf(milli))
        return milli;
    double boost = ready > 0 ? capacity_cpu_milli(capacity, d->meanwhile / ready) : INFINITY;
    return fmax(milli, fmin(boost, most_milli));
}

static struct choice choose(struct oracle *o, const struct observation *seen,
                            const struct demand *d)
{
    double least_milli = seen->containers[0].min[RECOMMEND_CPU];
    double most_milli = seen->containers[0].max[RECOMMEND_CPU];
    struct choice best = {seen->max_replicas, most_milli};
    struct cluster_state state;
    bool found = false;
    cluster_state(o->world.cluster, o->world.function, &state);
    int first = seen->min_replicas > 0 ? seen->min_replicas : 1;
    for (int n = first; n <= seen->max_replicas; n++) {
        if (found && n * least_milli >= cost_of(best))
            break;
        struct choice c = {n, milli_for(o->capacity, n, state.ready, most_milli, d)};
        if (isfinite(c.milli) && (!found || cost_of(c) < cost_of(best))) {
            best = c;
            found = true;
        }
    }
    struct choice now = {state.wanted, state.request_milli};
    bool enough = now.milli >= milli_for(o->capacity, now.replicas, state.ready, most_milli, d);
    return enough && cost_of(now) <= KEEP * cost_of(best) ? now : best;
}

static int oracle_recommend(void *self, const struct observation *seen, struct recommendation *out,
                            struct error *err)
{
    struct oracle *o = self;
    const struct recommend_container *c = &seen->containers[0];
    (void)err;
    double slowdown =
        trace_slowdown(o->world.settings->workload, seen->now_s + o->world.interval_s);
    if (!o->capacity || o->slowdown != slowdown) {
        double fixed = c->request[RECOMMEND_CPU];
        bool free_ = c->controlled[RECOMMEND_CPU];
        capacity_free(o->capacity);
        o->slowdown = slowdown;
        o->capacity = capacity_new(&o->world, slowdown, free_ ? c->min[RECOMMEND_CPU] : fixed,
                                   free_ ? c->max[RECOMMEND_CPU] : fixed);
    }
    struct demand d = look_ahead(&o->world, seen->now_s);
    struct choice best = choose(o, seen, &d);
    oracle_propose(seen, best.replicas, best.milli, out);
    char amount[32];
    snprintf(out->reason, sizeof(out->reason), "%.3g requests/s will come: %d × %s", d.rate,
             best.replicas, recommend_print_amount(RECOMMEND_CPU, ceil(best.milli), amount));
    return 0;
}

const struct recommender trial_oracle = {
    .name = "oracle",
    .summary = "knows the true rate of what is to come, and what a replica can take",
    .damps_itself = true,
    .create = oracle_create,
    .destroy = oracle_destroy,
    .recommend = oracle_recommend,
};
