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

/* What a Revision's author asked for, where it is stricter. */
static int32_t most_of(const struct kube_revision *r, int most)
{
    int32_t own = r->own_max > 0 ? r->own_max : PLENTY;
    return own < most ? own : most;
}

struct actuate_bounds actuate_share(const struct kube_revision *r, int replicas, int most)
{
    if (r->percent == 0)
        return (struct actuate_bounds){.min = r->own_min, .max = r->own_max};
    int32_t max = most_of(r, most);
    int share = (replicas * r->percent + 99) / 100;
    int32_t floor = share < max ? share : max;
    /* Without requests there is no floor but the author's own. */
    return (struct actuate_bounds){
        .min = replicas > 0 ? floor : r->own_min, .max = max, .steered = true};
}

bool actuate_undone(const struct kube_revision *revisions, size_t count, int replicas, int most)
{
    for (size_t i = 0; i < count; i++) {
        const struct kube_revision *r = &revisions[i];
        struct actuate_bounds to = actuate_share(r, replicas, most);
        if (r->steered && !r->ours && r->percent > 0 && !is_so(r, &to) &&
            r->min_scale == r->own_min && r->max_scale == r->own_max)
            return true;
    }
    return false;
}

int actuate_steer(struct kube *kube, const struct kube_revision *revisions, size_t count,
                  int replicas, int most, actuate_done on_done, void *arg)
{
    struct actuate_gather *all = actuate_gather_new(on_done, arg);
    int written = 0;
    for (size_t i = 0; i < count; i++) {
        struct actuate_bounds to = actuate_share(&revisions[i], replicas, most);
        if (revisions[i].ours || is_so(&revisions[i], &to))
            continue;
        write_bounds(kube, &revisions[i], &to, all);
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
