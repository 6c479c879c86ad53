/* FaaSRM's Greedy RM: sizes move by fixed steps with recent usage. A step that lies idle is
 * harvested, a container that uses nearly all it has gets one more. Replicas follow the requests in
 * flight as on the platform it was made for, which keeps an idle container for ten minutes. */
#include "recommend/internal.h"

#include <stdio.h>

#define MI       1048576.0
#define NEARLY   0.9 /* of its size in use: FaaSRM's line between too much and too little */
#define RECENT_S 60.0

enum { STEP_MILLI, STEP_MI, PER_POD, KEEP_S, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [STEP_MILLI] = {"step_milli", "of CPU", 1000, 50, 1000},
    [STEP_MI] = {"step_mi", "of memory, in Mi", 64, 16, 256},
    [PER_POD] = {"per_pod", "requests in flight that a pod takes; 0: replicas stay", 1, 0.5, 20},
    [KEEP_S] = {"keep_s", "for how long an idle pod stays", 600, 60, 1800},
};

struct greedy {
    double params[PARAM_COUNT];
    struct window *concurrency;
    struct window *peaks[RECOMMEND_MAX_CONTAINERS][RECOMMEND_RESOURCE_COUNT];
};

static void *greedy_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct greedy *g = xcalloc(1, sizeof(*g));
    recommend_params_fill(&recommend_greedy, values, g->params);
    g->concurrency = recommend_window_new(g->params[KEEP_S]);
    return g;
}

static void greedy_destroy(void *self)
{
    struct greedy *g = self;
    recommend_window_free(g->concurrency);
    for (size_t i = 0; i < RECOMMEND_MAX_CONTAINERS; i++)
        for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++)
            recommend_window_free(g->peaks[i][r]);
    free(g);
}

/* The most that one of the pods used lately; NaN: unknown. */
static double recent_peak(struct greedy *g, const struct observation *seen, size_t container,
                          enum recommend_resource r)
{
    double most = NAN;
    for (size_t i = 0; i < seen->pod_count; i++) {
        double usage = seen->pods[i].containers[container].usage[r];
        if (!seen->pods[i].pending && isfinite(usage) && usage >= 0)
            most = fmax(most, usage);
    }
    struct window **peaks = &g->peaks[container][r];
    if (*peaks == NULL)
        *peaks = recommend_window_new(RECENT_S);
    if (!isnan(most))
        recommend_window_add(*peaks, seen->now_s, 0, most);
    return recommend_window_max(*peaks, seen->now_s - RECENT_S);
}

static bool size(struct greedy *g, const struct observation *seen, size_t i,
                 enum recommend_resource r, struct recommendation *out)
{
    double step = r == RECOMMEND_CPU ? g->params[STEP_MILLI] : g->params[STEP_MI] * MI;
    double now = out->containers[i].target[r], peak = recent_peak(g, seen, i, r);
    if (isnan(peak))
        return false;
    if (peak >= NEARLY * now)
        recommend_set_size(seen, i, r, now + step, out);
    else if (peak < NEARLY * (now - step))
        recommend_set_size(seen, i, r, now - step, out);
    return true;
}

static double follow_load(struct greedy *g, const struct observation *seen,
                          struct recommendation *out)
{
    double now = recommend_concurrency(seen), per_pod = g->params[PER_POD];
    if (isnan(now) || !(per_pod > 0))
        return NAN;
    recommend_window_add(g->concurrency, seen->now_s, 0, now);
    double most = recommend_window_max(g->concurrency, seen->now_s - g->params[KEEP_S]);
    recommend_set_replicas(seen, recommend_whole(most / per_pod), out);
    return most;
}

static int greedy_recommend(void *self, const struct observation *seen, struct recommendation *out,
                            struct error *err)
{
    struct greedy *g = self;
    bool known = false;
    if (recommend_check(seen, err) < 0)
        return -1;
    recommend_keep(seen, out);
    for (size_t i = 0; i < seen->container_count; i++)
        for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++)
            if (seen->containers[i].controlled[r])
                known = size(g, seen, i, (enum recommend_resource)r, out) || known;
    double concurrency = follow_load(g, seen, out);
    if (!known && isnan(concurrency))
        return error_set(err, ERROR_UNAVAILABLE,
                         "no figures: neither usage nor requests in flight are known");
    struct recommend_metric whole = {RECOMMEND_CPU, -1, 1, NAN};
    double percent = recommend_usage_ratio(seen, &whole) * 100;
    char situation[128] = "CPU usage unknown";
    if (!isnan(percent))
        snprintf(situation, sizeof(situation), "%.0f%% CPU", percent);
    recommend_reason_write(&(struct reason){.seen = seen, .situation = situation}, out);
    return 0;
}

const struct recommender recommend_greedy = {
    .name = "greedy",
    .summary = "FaaSRM's Greedy: harvests and adds CPU by fixed steps",
    .params = params,
    .param_count = PARAM_COUNT,
    .damps_itself = true,
    .create = greedy_create,
    .destroy = greedy_destroy,
    .recommend = greedy_recommend,
};
