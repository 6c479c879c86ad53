/* CPU between the MPAs of a group: what one leaves of what its user asked for, another may have. */
#include "entry.h"

#include <math.h>
#include <string.h>

/* A member whose spec has just changed may be in no group any more. */
static bool is_with(const struct entry *a, const struct entry *b)
{
    const char *mine = a->mpa.spec.harvest_group, *its = b->mpa.spec.harvest_group;
    return b->harvest && !b->gone && mine && its && strcmp(mine, its) == 0 &&
           strcmp(a->mpa.namespace_, b->mpa.namespace_) == 0;
}

static double idle_of_others(const struct entry *e)
{
    double sum = 0;
    void *value;
    for (size_t i = 0; (i = map_next(&e->controller->entries, i, NULL, &value)) != 0;) {
        const struct entry *other = value;
        if (other != e && is_with(e, other))
            sum += harvest_member_leaves(other->harvest);
    }
    return sum;
}

/* --- what is seen ------------------------------------------------------------------------------
 */
static bool is_ours(const struct observation *seen, size_t container)
{
    return seen->containers[container].controlled[RECOMMEND_CPU];
}

/* What the user asked for: the template's, which resizes in place leave alone. 0: nothing. */
static double asked_for(const struct kube_workload *workload, const struct observation *seen)
{
    double sum = 0;
    for (size_t i = 0; i < seen->container_count; i++) {
        int64_t milli = kube_workload_cpu(workload, seen->containers[i].name);
        if (is_ours(seen, i) && milli > 0)
            sum += (double)milli;
    }
    return sum;
}

static double most_of(const struct observation *seen)
{
    double sum = 0;
    for (size_t i = 0; i < seen->container_count; i++)
        if (is_ours(seen, i))
            sum += seen->containers[i].max[RECOMMEND_CPU];
    return sum;
}

/* The pod that used the largest share of what it had. */
static void see_busiest(struct harvest_member *m, const struct observation *seen)
{
    double given = NAN, peak = NAN;
    for (size_t p = 0; p < seen->pod_count; p++) {
        double has = 0, used = 0;
        for (size_t i = 0; i < seen->container_count; i++) {
            if (!is_ours(seen, i))
                continue;
            has += seen->pods[p].containers[i].request[RECOMMEND_CPU];
            used += seen->pods[p].containers[i].usage[RECOMMEND_CPU];
        }
        if (seen->pods[p].ready && has > 0 && isfinite(used) &&
            (isnan(peak) || used / has > peak / given)) {
            given = has;
            peak = used;
        }
    }
    harvest_member_see(m, given, peak);
}

/* --- what it may get -----------------------------------------------------------------------------
 */
bool harvest_range_of(struct entry *e, const struct kube_workload *workload,
                      const struct observation *seen, struct harvest_range *out)
{
    double user = e->mpa.spec.harvest_group ? asked_for(workload, seen) : 0;
    if (e->mpa.spec.mode != API_MODE_AUTO || !(user > 0)) {
        free(e->harvest);
        e->harvest = NULL;
        return false;
    }
    if (!e->harvest)
        e->harvest = xcalloc(1, sizeof(*e->harvest));
    struct harvest_member *m = e->harvest;
    m->user = user;
    m->most = most_of(seen);
    m->replicas = seen->replicas_wanted;
    see_busiest(m, seen);
    *out = harvest_member_range(m, idle_of_others(e));
    return true;
}

void harvest_gave(struct entry *e, const struct recommendation *proposed, double milli)
{
    e->harvest->given = milli;
    e->harvest->replicas = proposed->replicas;
}
