/* Kubernetes' Vertical Pod Autoscaler: each container's size from a percentile of what it used, and
 * a margin. Replicas are left alone. */
#include "recommend/internal.h"

#include <stdio.h>

#define LEAST_CPU    25.0 /* of a pod, VPA's own */
#define LEAST_MEMORY (250.0 * 1024 * 1024)
#define MI           1048576.0

enum { PERCENTILE, MARGIN, HALF_LIFE_S, LEAST_MILLI, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [PERCENTILE] = {"percentile", "of the usage", 90, 50, 99},
    [MARGIN] = {"margin", "on top of it", 0.15, 0, 2},
    [HALF_LIFE_S] = {"half_life_s", "in which a figure counts half", 86400, 600, 86400},
    [LEAST_MILLI] = {"least_milli", "CPU of a container at least; 0: the bounds alone", 0, 100,
                     2000},
};

struct vpa {
    double params[PARAM_COUNT];
    struct history *history;
};

static void *vpa_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct vpa *v = xcalloc(1, sizeof(*v));
    recommend_params_fill(&recommend_vpa, values, v->params);
    v->history = recommend_history_new(v->params[HALF_LIFE_S]);
    return v;
}

static void vpa_destroy(void *self)
{
    struct vpa *v = self;
    recommend_history_free(v->history);
    free(v);
}

static void vpa_remember(void *self, const char *container, enum recommend_resource resource,
                         double time_s, double usage)
{
    struct vpa *v = self;
    recommend_history_add(v->history, container, resource, time_s, usage);
}

/* Leaves what differs by less than VPA's updater would act on. */
static void size(const struct vpa_rule *rule, const struct observation *seen, size_t i,
                 enum recommend_resource r, struct recommendation *out)
{
    const struct recommend_container *c = &seen->containers[i];
    double q = rule->percentile / 100, now = out->containers[i].target[r];
    double usage = recommend_history_percentile(rule->history, c->name, r, q);
    if (isnan(usage))
        return;
    double least = (r == RECOMMEND_CPU ? LEAST_CPU : LEAST_MEMORY) / (double)seen->container_count;
    double wanted = fmax(usage * (1 + rule->margin), least);
    if (r == RECOMMEND_CPU)
        wanted = fmax(wanted, rule->least_milli);
    wanted = r == RECOMMEND_CPU ? recommend_round_cpu(wanted) : ceil(wanted / MI) * MI;
    if (wanted < now * (1 - seen->tolerance_down) || wanted > now * (1 + seen->tolerance_up))
        recommend_set_size(seen, i, r, wanted, out);
}

bool recommend_vpa_sizes(const struct vpa_rule *rule, const struct observation *seen,
                         struct recommendation *out)
{
    bool known = false;
    for (size_t i = 0; i < seen->container_count; i++) {
        for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++) {
            if (!seen->containers[i].controlled[r])
                continue;
            size(rule, seen, i, (enum recommend_resource)r, out);
            known = known ||
                    !isnan(recommend_history_percentile(rule->history, seen->containers[i].name,
                                                        (enum recommend_resource)r, 0.5));
        }
    }
    return known;
}

static int vpa_recommend(void *self, const struct observation *seen, struct recommendation *out,
                         struct error *err)
{
    struct vpa *v = self;
    if (recommend_check(seen, err) < 0)
        return -1;
    recommend_history_observe(v->history, seen);
    struct vpa_rule rule = {v->history, v->params[PERCENTILE], v->params[MARGIN],
                            v->params[LEAST_MILLI]};
    recommend_keep(seen, out);
    if (!recommend_vpa_sizes(&rule, seen, out))
        return error_set(err, ERROR_UNAVAILABLE, "no figures: no usage of a container of ours");
    char situation[64];
    snprintf(situation, sizeof(situation), "p%g of usage and %.0f%%", rule.percentile,
             rule.margin * 100);
    recommend_reason_write(&(struct reason){.seen = seen, .situation = situation}, out);
    return 0;
}

const struct recommender recommend_vpa = {
    .name = "vpa",
    .summary = "Kubernetes' Vertical Pod Autoscaler: sizes by past usage",
    .params = params,
    .param_count = PARAM_COUNT,
    .damps_itself = true,
    .create = vpa_create,
    .destroy = vpa_destroy,
    .remember = vpa_remember,
    .recommend = vpa_recommend,
};
