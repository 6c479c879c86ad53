/* CPU between the MPAs of a group: what one leaves of what its user asked for, another may have. */
#include "entry.h"

#include <math.h>
#include <string.h>

struct pool {   /* what a group's members leave, so that none has to look at all the others */
    char *name; /* namespace/group */
    size_t members;
    int64_t left_milli; /* of all; negative: more is out than was left */
};

struct share { /* an MPA's part in its pool */
    struct harvest_member member;
    struct pool *pool;
    int64_t left_milli;
};

static void set_left(struct share *s, double milli)
{
    int64_t left = (int64_t)floor(milli);
    s->pool->left_milli += left - s->left_milli;
    s->left_milli = left;
}

void harvest_leave(struct entry *e)
{
    struct share *s = e->share;
    if (!s)
        return;
    set_left(s, 0);
    if (--s->pool->members == 0) {
        map_remove(&e->controller->pools, s->pool->name);
        free(s->pool->name);
        free(s->pool);
    }
    free(s);
    e->share = NULL;
}

static struct pool *pool_of(struct controller *c, const char *name)
{
    struct pool *pool = map_get(&c->pools, name);
    if (pool)
        return pool;
    pool = xcalloc(1, sizeof(*pool));
    pool->name = xstrdup(name);
    map_put(&c->pools, name, pool);
    return pool;
}

static struct share *join(struct entry *e)
{
    cleanup_free char *name = xasprintf("%s/%s", e->mpa.namespace_, e->mpa.spec.harvest_group);
    if (e->share && strcmp(e->share->pool->name, name) != 0)
        harvest_leave(e);
    if (!e->share) {
        e->share = xcalloc(1, sizeof(*e->share));
        e->share->pool = pool_of(e->controller, name);
        e->share->pool->members++;
    }
    return e->share;
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
        harvest_leave(e);
        return false;
    }
    struct share *s = join(e);
    struct harvest_member *m = &s->member;
    m->user = user;
    m->most = most_of(seen);
    m->replicas = seen->replicas_wanted;
    see_busiest(m, seen);
    set_left(s, harvest_member_leaves(m));
    *out = harvest_member_range(m, (double)(s->pool->left_milli - s->left_milli));
    return true;
}

void harvest_gave(struct entry *e, const struct recommendation *proposed, double milli)
{
    struct harvest_member *m = &e->share->member;
    m->given = milli;
    m->replicas = proposed->replicas;
    set_left(e->share, harvest_member_leaves(m));
}
