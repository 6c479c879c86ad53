/* Shared by the files of the guard. */
#ifndef FAASRL_GUARD_INTERNAL_H
#define FAASRL_GUARD_INTERNAL_H

#include "guard/guard.h"

/* --- what was proposed and done before (behavior.c) ------------------------------------------ */
struct guard_sample {
    double time_s, value;
};

/* The largest of recent values. A value that a later one reaches is forgotten, so a steady series
 * costs one entry. */
struct guard_window {
    struct guard_sample *items; /* older and larger first */
    size_t count, cap;
};

struct guard_series {                /* past proposals for one number */
    struct guard_window highs, lows; /* lows hold negated values */
};
void guard_series_clear(struct guard_series *series);

/* HPA's stabilisation: brings current as near to proposed as every proposal in the windows of the
 * rules allows, and remembers proposed. The first call remembers current too. */
double guard_stabilize(struct guard_series *series, const struct api_spec *spec, double now_s,
                       double current, double proposed);

struct guard_events { /* changes of replicas that were written: positive when up */
    struct guard_sample *items;
    size_t count, cap;
};
void guard_events_add(struct guard_events *events, double now_s, int change);

/* How far HPA's policies let replicas go from current, at this moment. */
int guard_scale_up_limit(const struct guard_events *events, const struct api_rules *rules,
                         double now_s, int current);
int guard_scale_down_limit(const struct guard_events *events, const struct api_rules *rules,
                           double now_s, int current);

#endif
