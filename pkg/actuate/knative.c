/* Steering Knative's own autoscaler. It undoes every other way to set replicas within moments, but
 * takes bounds, and goes on waking what has gone to zero. */
#include "actuate/actuate.h"

#include <stdio.h>

#define PLENTY 100000 /* of replicas, where nobody says how many */

/* The number as an annotation, or null, which takes it away. */
static json_t *number(int32_t n)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", n);
    return n < 0 ? json_null() : json_string(text);
}

static void write_bounds(struct kube *kube, const struct kube_revision *r,
                         const struct actuate_bounds *to, struct actuate_gather *all)
{
    cleanup_free char *path =
        xasprintf(KUBE_KNATIVE_SCALERS "/namespaces/%s/podautoscalers/%s", r->namespace_, r->name);
    cleanup_json json_t *body =
        json_pack("{s:{s:{s:o,s:o,s:o}}}", "metadata", "annotations", KUBE_MIN_SCALE,
                  number(to->min), KUBE_MAX_SCALE, number(to->max), KUBE_STEERED,
                  to->steered ? json_string("true") : json_null());
    actuate_write(kube, KUBE_PATCH_MERGE, path, body, actuate_gathered, actuate_gather_add(all));
}

static bool is_so(const struct kube_revision *r, const struct actuate_bounds *to)
{
    return r->min_scale == to->min && r->max_scale == to->max && r->steered == to->steered;
}

/* --- shares ----------------------------------------------------------------------------------- */
static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t author_most(const struct kube_revision *r)
{
    return r->own_max > 0 ? r->own_max : PLENTY;
}

/* Who is furthest below its share, of those that can have one more; count: nobody. */
static size_t find_neediest(const struct kube_revision *revisions, size_t count, int n, int whole,
                            const int out[])
{
    size_t found = count;
    int most = 0;
    for (size_t i = 0; i < count; i++) {
        int lacks = n * revisions[i].percent - out[i] * whole;
        if (revisions[i].percent == 0 || out[i] >= author_most(&revisions[i]) ||
            (found < count && lacks <= most))
            continue;
        found = i;
        most = lacks;
    }
    return found;
}

/* Each that has traffic has one, as it cannot serve without. Of the others one after the other goes
 * to who lacks most: this is the method of the largest remainder. The sum is n if it can be: what
 * has come of a decision must not look like another one, or each would lead to a larger one. */
static void deal(const struct kube_revision *revisions, size_t count, int n, int out[])
{
    int whole = 0, left = 0;
    for (size_t i = 0; i < count; i++) {
        out[i] = revisions[i].percent > 0;
        whole += revisions[i].percent;
        left -= out[i];
    }
    n = (n * smaller(whole, 100) + 99) / 100; /* the rest is of those that are not known yet */
    for (left += n; left > 0; left--) {
        size_t next = find_neediest(revisions, count, n, whole, out);
        if (next == count)
            return;
        out[next]++;
    }
}

/* Without requests its author's min-scale holds, for which there has to be room. */
static struct actuate_bounds bounds_of(const struct kube_revision *r, int replicas, int share,
                                       int most_share, int most)
{
    if (r->percent == 0)
        return (struct actuate_bounds){.min = r->own_min, .max = r->own_max};
    int32_t room = larger(most_share, smaller(r->own_min, most));
    int32_t max = smaller(author_most(r), room);
    return (struct actuate_bounds){
        .min = smaller(replicas > 0 ? share : r->own_min, max), .max = max, .steered = true};
}

void actuate_shares(const struct kube_revision *revisions, size_t count, int replicas, int most,
                    struct actuate_bounds out[])
{
    int shares[KUBE_MAX_REVISIONS] = {0}, mosts[KUBE_MAX_REVISIONS] = {0};
    deal(revisions, count, replicas, shares);
    deal(revisions, count, most, mosts);
    for (size_t i = 0; i < count; i++)
        out[i] = bounds_of(&revisions[i], replicas, shares[i], mosts[i], most);
}

/* --- writes ----------------------------------------------------------------------------------- */
bool actuate_undone(const struct kube_revision *revisions, size_t count, int replicas, int most)
{
    struct actuate_bounds to[KUBE_MAX_REVISIONS];
    actuate_shares(revisions, count, replicas, most, to);
    for (size_t i = 0; i < count; i++) {
        const struct kube_revision *r = &revisions[i];
        if (r->steered && !r->ours && r->percent > 0 && !is_so(r, &to[i]) &&
            r->min_scale == r->own_min && r->max_scale == r->own_max)
            return true;
    }
    return false;
}

int actuate_steer(struct kube *kube, const struct kube_revision *revisions, size_t count,
                  int replicas, int most, actuate_done on_done, void *arg)
{
    struct actuate_gather *all = actuate_gather_new(on_done, arg);
    struct actuate_bounds to[KUBE_MAX_REVISIONS];
    int written = 0;
    actuate_shares(revisions, count, replicas, most, to);
    for (size_t i = 0; i < count; i++) {
        if (revisions[i].ours || is_so(&revisions[i], &to[i]))
            continue;
        write_bounds(kube, &revisions[i], &to[i], all);
        written++;
    }
    actuate_gathered(all, NULL);
    return written;
}

void actuate_hand_back(struct kube *kube, const struct kube_revision *revisions, size_t count,
                       actuate_done on_done, void *arg)
{
    struct actuate_gather *all = actuate_gather_new(on_done, arg);
    for (size_t i = 0; i < count; i++) {
        const struct kube_revision *r = &revisions[i];
        if (r->steered)
            write_bounds(kube, r, &(struct actuate_bounds){.min = r->own_min, .max = r->own_max},
                         all);
    }
    actuate_gathered(all, NULL);
}
