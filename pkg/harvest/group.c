#include "harvest/group.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct safeguard_limits limits_of(const struct harvest_member *m)
{
    return (struct safeguard_limits){m->user, fmax(m->most, m->user), HARVEST_STEP};
}

void harvest_member_see(struct harvest_member *m, double given, double peak)
{
    struct safeguard_limits limits = limits_of(m);
    if (!(isfinite(given) && isfinite(peak) && given > 0 && peak >= 0 && m->user > 0))
        return;
    m->options = safeguard_options(&m->guard, &limits);
    safeguard_see(&m->guard, &m->options, given, peak);
    if (safeguard_state(&m->guard, &limits) == SAFEGUARD_UNDER)
        m->under_for = HARVEST_HOLD;
    else if (m->under_for > 0)
        m->under_for--;
}

double harvest_member_leaves(const struct harvest_member *m)
{
    return m->given > 0 ? (m->user - m->given) * m->replicas : 0;
}

/* A step above the highest peak would be nearly too little at that peak: it is no spike until more
 * is used. */
static double least(const struct harvest_member *m, const struct safeguard_options *o)
{
    return fmin(fmax(o->low, m->guard.highest_peak / SAFEGUARD_NEARLY + HARVEST_STEP), m->user);
}

struct harvest_range harvest_member_range(const struct harvest_member *m, double idle)
{
    struct safeguard_limits limits = limits_of(m);
    struct safeguard_options o = safeguard_options(&m->guard, &limits);
    double lent = fmax(idle, 0) / fmax(m->replicas, 1);
    /* An interval is a small sample: who is near the line would give back every other time. */
    if (m->under_for > 0)
        o.state = SAFEGUARD_UNDER;
    switch (o.state) {
    case SAFEGUARD_OVER:
        return (struct harvest_range){o.state, least(m, &o), m->user};
    case SAFEGUARD_UNDER:
        return (struct harvest_range){o.state, m->user, fmin(m->user + lent, limits.most)};
    case SAFEGUARD_FIRST:
    case SAFEGUARD_SPIKE:
        break;
    }
    return (struct harvest_range){o.state, m->user, m->user};
}

/* --- a recommendation ----------------------------------------------------------------------------
 */
static double proposed_milli(const struct observation *seen, const struct recommendation *proposed)
{
    double sum = 0;
    for (size_t i = 0; i < seen->container_count; i++)
        if (seen->containers[i].controlled[RECOMMEND_CPU])
            sum += proposed->containers[i].target[RECOMMEND_CPU];
    return sum > 0 ? sum : NAN;
}

static void say(const struct harvest_range *range, double milli, struct recommendation *proposed)
{
    static const char *const why[] = {
        [SAFEGUARD_FIRST] = "as its user asked for, to see what it needs",
        [SAFEGUARD_SPIKE] = "all that its user asked for is back",
        [SAFEGUARD_OVER] = "the rest is left to others",
        [SAFEGUARD_UNDER] = "what others leave is lent to it",
    };
    size_t len = strlen(proposed->reason);
    snprintf(proposed->reason + len, sizeof(proposed->reason) - len, "; harvest: cpu %.0fm, %s",
             milli, why[range->state]);
}

double harvest_hold(const struct harvest_range *range, const struct observation *seen,
                    struct recommendation *proposed)
{
    double wanted = proposed_milli(seen, proposed);
    double milli = fmin(fmax(wanted, range->low), range->high);
    if (isnan(wanted) || milli == wanted)
        return wanted;
    for (size_t i = 0; i < seen->container_count; i++)
        if (seen->containers[i].controlled[RECOMMEND_CPU])
            proposed->containers[i].target[RECOMMEND_CPU] *= milli / wanted;
    say(range, milli, proposed);
    return milli;
}
