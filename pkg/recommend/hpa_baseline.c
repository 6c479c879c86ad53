/* Kubernetes' Horizontal Pod Autoscaler v2 with its own pace: replicas only. The size of a pod is a
 * parameter, because without one HPA could not be tuned fairly. */
#include "recommend/internal.h"

#define DEFAULT_UTILIZATION 0.7
#define INTERVAL_S          15.0

enum { TARGET, TOLERANCE, WINDOW_S, CPU_MILLI, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [TARGET] = {"target", "CPU in use of what is requested; 0: the MPA's metrics, else 0.7", 0, 0.1,
                0.95},
    [TOLERANCE] = {"tolerance", "how far from the target nothing changes", 0.1, 0, 0.3},
    [WINDOW_S] = {"window_s", "replicas go down to the most that was asked for in it", 300, 0, 900},
    [CPU_MILLI] = {"cpu_milli", "CPU of a pod; 0: what it has", 0, 100, 2000},
};

struct hpa {
    double params[PARAM_COUNT];
    struct pace *pace;
};

static void *hpa_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct hpa *h = xcalloc(1, sizeof(*h));
    recommend_params_fill(&recommend_hpa, values, h->params);
    h->pace = recommend_pace_new(h->params[WINDOW_S]);
    return h;
}

static void hpa_destroy(void *self)
{
    struct hpa *h = self;
    recommend_pace_free(h->pace);
    free(h);
}

/* The metric that asks for most decides. One without figures forbids going down, as in HPA. */
static int most_replicas(const struct observation *seen, const struct recommend_metric **lead,
                         struct error *err)
{
    int most = -1;
    bool missing = false;
    for (size_t i = 0; i < seen->metric_count; i++) {
        int replicas;
        double ratio;
        struct error failure = {0};
        if (recommend_hpa_replicas(seen, &seen->metrics[i], &replicas, &ratio, &failure) < 0) {
            if (!missing)
                *err = failure;
            missing = true;
        } else if (replicas > most) {
            most = replicas;
            *lead = &seen->metrics[i];
        }
    }
    if (most < 0)
        return error_prefix(err, "no figures");
    return missing && most < seen->replicas_wanted ? seen->replicas_wanted : most;
}

static int hpa_recommend(void *self, const struct observation *observed, struct recommendation *out,
                         struct error *err)
{
    struct hpa *h = self;
    struct observation seen = *observed;
    double target = h->params[TARGET];
    if (recommend_check(&seen, err) < 0)
        return -1;
    seen.tolerance_up = seen.tolerance_down = h->params[TOLERANCE];
    if (target > 0 || seen.metric_count == 0) {
        seen.metrics[0] = (struct recommend_metric){RECOMMEND_CPU, -1,
                                                    target > 0 ? target : DEFAULT_UTILIZATION, NAN};
        seen.metric_count = 1;
    }
    const struct recommend_metric *lead = NULL;
    struct error why = {0};
    int asked = most_replicas(&seen, &lead, &why);
    if (asked < 0)
        return error_set(err, why.code, "%s", why.message);
    const char *note = NULL;
    recommend_keep(&seen, out);
    recommend_set_replicas(&seen, recommend_pace(h->pace, &seen, asked, &note), out);
    if (h->params[CPU_MILLI] > 0)
        recommend_set_pod_cpu(&seen, h->params[CPU_MILLI], out);
    seen.latency_state = LATENCY_NO_GOAL; /* HPA looks at no latency, so its reason tells none */
    recommend_reason_write(&(struct reason){.seen = &seen, .lead = lead, .note = note}, out);
    return 0;
}

const struct recommender recommend_hpa = {
    .name = "hpa",
    .summary = "Kubernetes' Horizontal Pod Autoscaler v2: replicas by CPU utilisation",
    .params = params,
    .param_count = PARAM_COUNT,
    .interval_s = INTERVAL_S,
    .damps_itself = true,
    .create = hpa_create,
    .destroy = hpa_destroy,
    .recommend = hpa_recommend,
};
