/* What was seen of one function, by the minute and bounded: how many requests came, what CPU time
 * they took, how many were late; what a request costs; and what each interval's decision earned.
 *
 * It says nothing of who decided: it is what there is to learn from. */
#ifndef FAASRL_RECOMMEND_RECORD_H
#define FAASRL_RECOMMEND_RECORD_H

#include "recommend/recommend.h"

#define RECORD_SLOT_S 60.0
#define RECORD_SLOTS  720 /* 12 hours; what is older is forgotten */

struct recommend_record;
struct recommend_record *recommend_record_new(void);
void recommend_record_free(struct recommend_record *record); /* NULL: nothing */

/* Of the past, by the clock of observations, in any order; what is missing of the two is 0. Both
 * are of the span_s up to time_s. */
void recommend_record_remember(struct recommend_record *record, double time_s, double span_s,
                               double requests, double cpu_s);

struct record_interval { /* NaN: cannot be said */
    double requests;
    double earned;   /* -(CPU reserved ÷ needed + late requests ÷ allowed), each at most 10 */
    double demand_s; /* CPU time of a request */
};
/* Each interval, once, whoever decides. */
struct record_interval recommend_record_add(struct recommend_record *record,
                                            const struct observation *seen);

/* --- what can be learned from ----------------------------------------------------------------- */
struct record_slot {
    float requests, cpu_s, late;
    bool seen; /* else nobody looked */
};
/* The slots from the first that was seen to the newest, oldest first; returns how many. out has
 * room for RECORD_SLOTS. */
size_t recommend_record_slots(const struct recommend_record *record, struct record_slot *out);

struct record_demand { /* CPU time of a request; NaN: unknown */
    double mean_s;
    double median_s, p99_s; /* as if its logarithm were normal */
};
/* The mean is of the last `slots` slots with requests, the rest by what is seen of the tail. */
struct record_demand recommend_record_demand(const struct recommend_record *record, size_t slots);

#endif
