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

struct arrival {
    double at_s, cpu_s;
};

#define ARRIVALS_AHEAD 16

struct arrivals {
    const struct trace_function *workload;
    struct random random;
    uint64_t slot; /* the next one, counted on when the slots repeat */
    double at_s;   /* of the last request drawn, or where its slot begins */
    double slot_end_s;
    double left; /* of exact slots: requests still to come; of Poisson slots: rate per second */
    double slower_from_s; /* INFINITY: never; before it demand is as it is drawn */
    /* Drawn together: their logarithms do not wait for each other, nor does an event for them. */
    struct arrival ahead[ARRIVALS_AHEAD];
    uint32_t next, drawn;
};
void arrivals_init(struct arrivals *a, const struct trace_function *f, uint64_t seed,
                   uint64_t stream);
/* Draws the requests that come next, as many as the slot has and as there is room for. */
void arrivals_draw(struct arrivals *a, const struct demand *d);

/* The next request; at INFINITY: there is none. */
static inline struct arrival arrivals_next(struct arrivals *a, const struct demand *d)
{
    if (a->next == a->drawn)
        arrivals_draw(a, d);
    return a->ahead[a->next++];
}

#endif
