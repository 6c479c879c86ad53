/* FaaSRM between functions that run all the time: of the CPU that the users of a group asked for,
 * what some leave idle may be lent to others, and comes back at once when it is needed.
 *
 *   struct harvest_member m = {.user = 400, .most = 1000};
 *   … each interval: harvest_member_see(&m, given, peak) …
 *   struct harvest_range range = harvest_member_range(&m, idle of the others);
 *   … give within it, and say so: m.given, m.replicas …
 *
 * The group never has more than its users asked for, but for the moment between a return and the
 * borrower's next decision. Amounts are milli-cores of one pod. */
#ifndef FAASRL_HARVEST_GROUP_H
#define FAASRL_HARVEST_GROUP_H

#include "harvest/safeguard.h"
#include "recommend/recommend.h"

#define HARVEST_STEP 10.0 /* milli-cores */
#define HARVEST_HOLD 20   /* intervals: so long after its last sign one has too little */

struct harvest_member {
    double user, most; /* what its user asked for; what a pod may get, at least as much */
    double given; /* what was decided last; 0: nothing yet, so that it has what was asked for */
    int replicas;
    struct safeguard guard;
    struct safeguard_options options; /* with which the interval began */
    int under_for;                    /* intervals that it still counts as such */
};

/* An interval is over: what its busiest pod had, and used. */
void harvest_member_see(struct harvest_member *member, double given, double peak);
/* Of all its pods together, below what was asked for; negative: it borrows. */
double harvest_member_leaves(const struct harvest_member *member);

struct harvest_range {
    enum safeguard_state state;
    double low, high;
};
/* idle: what the others leave, all of them together. */
struct harvest_range harvest_member_range(const struct harvest_member *member, double idle);
/* Puts the CPU of a pod's containers that are ours, all together, within the range, and says so in
 * the reason. Gives back what that is; NaN: nothing was proposed for them. */
double harvest_hold(const struct harvest_range *range, const struct observation *seen,
                    struct recommendation *proposed);

#endif
