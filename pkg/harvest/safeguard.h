/* FaaSRM's safeguard: how much of one resource a function may get, so that what is taken from it
 * was idle and what it needs comes back at once.
 *
 * The same rule for every resource, each by itself, in any unit:
 *
 *   struct safeguard_limits cores = {.user = 4, .most = 8, .step = 1};
 *   struct safeguard guard = {0};
 *   struct safeguard_options options = safeguard_options(&guard, &cores);
 *   … run with safeguard_option(&options, i) of any i below options.count …
 *   safeguard_see(&guard, &options, given, peak);
 *
 * Runs may overlap: what is seen of a run goes with the options that it began with. docs/harvest.md
 * tells where the rule comes from. */
#ifndef FAASRL_HARVEST_SAFEGUARD_H
#define FAASRL_HARVEST_SAFEGUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Of what the user asked for: below it, there is too much. Of what was given: from it on, it was
 * nearly too little. */
#define SAFEGUARD_NEARLY 0.9

struct safeguard_limits { /* of one resource of one function */
    double user;          /* what its user asked for, above 0 */
    double most;          /* that a function may get, at least user */
    double step;          /* between two options, above 0 */
};

struct safeguard { /* what is known of a function; begins as {0} */
    bool seen;     /* at least once */
    double last_peak, last_given;
    double highest_peak; /* since the last calibration */
};

enum safeguard_state {
    SAFEGUARD_FIRST, /* nothing is known: the user's value, to calibrate */
    SAFEGUARD_SPIKE, /* the last run needed nearly all it had: the user's value, to recalibrate */
    SAFEGUARD_OVER,  /* the user asked for too much: some of it may be harvested */
    SAFEGUARD_UNDER, /* the user asked for too little: it may get more */
};
enum safeguard_state safeguard_state(const struct safeguard *guard,
                                     const struct safeguard_limits *limits);

struct safeguard_options { /* low, low + step, … and high, which is always one of them */
    enum safeguard_state state;
    double low, high, step;
    size_t count; /* at least 1 */
};
/* FIRST and SPIKE: the user's value alone. OVER: from a step above the highest peak to the user's
 * value; UNDER: to the most; both always have at least their highest. */
struct safeguard_options safeguard_options(const struct safeguard *guard,
                                           const struct safeguard_limits *limits);
double safeguard_option(const struct safeguard_options *options, size_t i);

/* What a run was given, and the most it used. */
void safeguard_see(struct safeguard *guard, const struct safeguard_options *options, double given,
                   double peak);

#endif
