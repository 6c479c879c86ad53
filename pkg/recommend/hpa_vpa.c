/* HPA and VPA together as people run them: on different figures, or they would chase each other.
 * HPA sets replicas by requests in flight per pod, VPA sets sizes by past usage. */
#include "recommend/internal.h"

#include <stdio.h>

#define INTERVAL_S 15.0
#define TOLERANCE  0.1

enum { TARGET, WINDOW_S, PERCENTILE, MARGIN, HALF_LIFE_S, LEAST_MILLI, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [TARGET] = {"target", "requests in flight per pod", 1, 0.1, 100},
    [WINDOW_S] = {"window_s", "replicas go down to the most that was asked for in it", 300, 0, 900},
    [PERCENTILE] = {"percentile", "of the usage", 90, 50, 99},
    [MARGIN] = {"margin", "on top of it", 0.15, 0, 2},
    [HALF_LIFE_S] = {"half_life_s", "in which a figure of usage counts half", 86400, 600, 86400},
    [LEAST_MILLI] = {"least_milli", "CPU of a container at least; 0: the bounds alone", 0, 100,
                     2000},
};

struct hpa_vpa {
    double params[PARAM_COUNT];
    struct pace *pace;
    struct history *history;
};

static void *hpa_vpa_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct hpa_vpa *h = xcalloc(1, sizeof(*h));
    recommend_params_fill(&recommend_hpa_vpa, values, h->params);
    h->pace = recommend_pace_new(h->params[WINDOW_S]);
    h->history = recommend_history_new(h->params[HALF_LIFE_S]);
    return h;
}

static void hpa_vpa_destroy(void *self)
{
    struct hpa_vpa *h = self;
    recommend_pace_free(h->pace);
    recommend_history_free(h->history);
    free(h);
}

static void hpa_vpa_remember(void *self, const char *container, enum recommend_resource resource,
                             double time_s, double usage)
{
    struct hpa_vpa *h = self;
    recommend_history_add(h->history, container, resource, time_s, usage);
}

/* HPA's rule for a metric that is a total: an average value per pod, with its tolerance. */
static int replicas_for(double concurrency, double target, int current)
{
    double ratio = concurrency / (target * current);
    bool within = ratio >= 1 - TOLERANCE && ratio <= 1 + TOLERANCE;
    return within ? current : recommend_whole(concurrency / target);
}

static int hpa_vpa_recommend(void *self, const struct observation *seen, struct recommendation *out,
                             struct error *err)
{
    struct hpa_vpa *h = self;
    double concurrency = recommend_concurrency(seen), target = h->params[TARGET];
    if (recommend_check(seen, err) < 0)
        return -1;
    recommend_history_observe(h->history, seen);
    struct vpa_rule rule = {h->history, h->params[PERCENTILE], h->params[MARGIN],
                            h->params[LEAST_MILLI]};
    recommend_keep(seen, out);
    bool sized = recommend_vpa_sizes(&rule, seen, out);
    if (!sized && isnan(concurrency))
        return error_set(err, ERROR_UNAVAILABLE,
                         "no figures: neither usage nor requests in flight are known");
    char situation[128] = "requests in flight unknown";
    const char *note = NULL;
    if (!isnan(concurrency)) {
        int asked = replicas_for(concurrency, target, seen->replicas_wanted);
        recommend_set_replicas(seen, recommend_pace(h->pace, seen, asked, &note), out);
        snprintf(situation, sizeof(situation), "%.3g requests in flight, %.3g per pod wanted",
                 concurrency, target);
    }
    recommend_reason_write(&(struct reason){.seen = seen, .situation = situation, .note = note},
                           out);
    return 0;
}

const struct recommender recommend_hpa_vpa = {
    .name = "hpa+vpa",
    .summary = "HPA on requests in flight and VPA on CPU side by side",
    .params = params,
    .param_count = PARAM_COUNT,
    .interval_s = INTERVAL_S,
    .damps_itself = true,
    .create = hpa_vpa_create,
    .destroy = hpa_vpa_destroy,
    .remember = hpa_vpa_remember,
    .recommend = hpa_vpa_recommend,
};
