/* What happens next: the earliest of a fixed set of leaves, each with one time. A tournament: a
 * leaf that changes plays its way up against its neighbours, whose places are known beforehand, so
 * that nothing waits for memory. Who wins cannot be guessed, so that a branch would cost more than
 * the game: times are kept as the bits of a double, which have the order of the numbers (none is
 * negative), the earlier is a minimum and its leaf is chosen by a mask. A leaf has not the width of
 * a time, so that no compiler moves both through a vector, which takes three times as long. Of
 * equal times any may win, but always the same one after the same calls. */
#ifndef FAASRL_SIM_EVENTS_H
#define FAASRL_SIM_EVENTS_H

#include "base/base.h"

#include <math.h>
#include <string.h>

struct event {
    uint64_t time; /* bits of a double */
    uint32_t leaf;
};

struct events {
    struct event *nodes; /* [1] is the winner, the leaves begin at [leaves] */
    uint32_t leaves;     /* a power of two, at least 2 */
};

static inline double event_time_s(const struct event *e)
{
    double time_s;
    memcpy(&time_s, &e->time, sizeof(time_s));
    return time_s;
}

static inline void events_set(struct events *e, uint32_t leaf, double time_s)
{
    struct event *nodes = e->nodes;
    uint32_t i = e->leaves + leaf;
    uint64_t time;
    memcpy(&time, &time_s, sizeof(time));
    nodes[i] = (struct event){time, leaf};
    do {
        uint64_t other = nodes[i ^ 1].time;
        uint32_t other_leaf = nodes[i ^ 1].leaf;
        uint64_t loses = -(uint64_t)(other < time); /* all bits, or none */
        leaf ^= (leaf ^ other_leaf) & (uint32_t)loses;
        time = other < time ? other : time;
        i >>= 1;
        nodes[i] = (struct event){time, leaf};
    } while (i > 1);
}

static inline double events_time_s(const struct events *e, uint32_t leaf)
{
    return event_time_s(&e->nodes[e->leaves + leaf]);
}

/* Makes room for so many leaves; new ones never happen. */
static inline void events_reserve(struct events *e, uint32_t count)
{
    struct events grown = {.leaves = e->leaves ? e->leaves : 2};
    if (e->nodes && count <= e->leaves)
        return;
    while (grown.leaves < count)
        grown.leaves *= 2;
    grown.nodes = xcalloc((size_t)grown.leaves * 2, sizeof(*grown.nodes));
    for (uint32_t i = 0; i < grown.leaves; i++)
        events_set(&grown, i, e->nodes && i < e->leaves ? events_time_s(e, i) : INFINITY);
    free(e->nodes);
    *e = grown;
}

#endif
