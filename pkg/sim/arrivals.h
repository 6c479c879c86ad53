/* The requests of one function, one after the other. A value: copy it to look ahead. */
#ifndef FAASRL_SIM_ARRIVALS_H
#define FAASRL_SIM_ARRIVALS_H

#include "base/random.h"
#include "trace/trace.h"

#define DEMAND_GUIDE 256

struct demand {    /* the inverse distribution function, prepared for drawing from it */
    double mean_s; /* of an exponential one; 0: by pieces */
    struct demand_piece {
        double until_share, base_s, slope_s; /* base + slope × share */
    } * pieces;
    uint16_t guide[DEMAND_GUIDE]; /* the piece in which i / DEMAND_GUIDE lies */
};
void demand_init(struct demand *d, const struct trace_function *f);
void demand_clear(struct demand *d);

struct arrivals {
    const struct trace_function *workload;
    struct random random;
    uint64_t slot; /* the next one, counted on when the slots repeat */
    double at_s;   /* of the last request, or where its slot begins */
    double slot_end_s;
    double left; /* of exact slots: requests still to come; of Poisson slots: rate per second */
    double slower_from_s; /* INFINITY: never; before it demand is as it is drawn */
};
void arrivals_init(struct arrivals *a, const struct trace_function *f, uint64_t seed,
                   uint64_t stream);
/* Goes on to the next slot that has requests; false: there is none. */
bool arrivals_next_slot(struct arrivals *a);

/* 1 - exp(-x), x >= 0. */
static inline double arrivals_fall(double x)
{
    return x < 0.02 ? x * (1 - x * (0.5 - x * (1.0 / 6 - x * (1.0 / 24)))) : -expm1(-x);
}

/* When the next request comes; INFINITY: none does. */
static inline double arrivals_next(struct arrivals *a)
{
    if (a->workload->poisson) {
        for (;;) {
            double at_s = a->at_s + random_exponential(&a->random) / a->left;
            if (at_s < a->slot_end_s)
                return a->at_s = at_s;
            if (!arrivals_next_slot(a))
                return INFINITY;
        }
    }
    if (a->left < 1 && !arrivals_next_slot(a))
        return INFINITY;
    /* The first of k points that are spread evenly at random over what is left of the slot. */
    double share = arrivals_fall(random_exponential(&a->random) / a->left);
    a->at_s += (a->slot_end_s - a->at_s) * share;
    a->left--;
    return a->at_s;
}

static inline double demand_draw(const struct demand *d, struct random *r)
{
    if (d->mean_s > 0)
        return d->mean_s * random_exponential(r);
    double share = random_uniform(r);
    const struct demand_piece *piece = &d->pieces[d->guide[(size_t)(share * DEMAND_GUIDE)]];
    while (share >= piece->until_share)
        piece++;
    return piece->base_s + piece->slope_s * share;
}

/* How many times the usual CPU the request that arrivals_next told of needs, once that may be more
 * or less. */
double arrivals_slowdown(const struct arrivals *a);

/* CPU time of the request that arrivals_next told of. */
static inline double arrivals_demand(struct arrivals *a, const struct demand *d)
{
    double cpu_s = demand_draw(d, &a->random);
    return a->at_s < a->slower_from_s ? cpu_s : cpu_s * arrivals_slowdown(a);
}

#endif
