/* Knative's pod autoscaler: replicas so that each has its target of requests in flight, by the mean
 * of a minute; by that of six seconds when it panics, and then never down. Its rounding included:
 * what it answers must be what Knative answers. */
#include "recommend/internal.h"

#include <stdio.h>

#define INTERVAL_S          2.0
#define TARGET_UTILIZATION  0.7
#define TARGET_LEAST        0.01
#define PANIC_SHARE         0.1 /* of the stable window */
#define PANIC_WINDOW_LEAST  1.0
#define PANIC_THRESHOLD     2.0
#define MAX_SCALE_UP_RATE   1000.0
#define MAX_SCALE_DOWN_RATE 2.0
#define DIGITS              1e6 /* to which means are rounded */

enum { TARGET, STABLE_WINDOW_S, CPU_MILLI, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [TARGET] = {"target", "requests in flight per pod, of which 70% are aimed at", 100, 0.1, 100},
    [STABLE_WINDOW_S] = {"stable_window_s", "of the mean; panic looks at a tenth of it", 60, 6,
                         600},
    [CPU_MILLI] = {"cpu_milli", "CPU of a pod; 0: what it has", 0, 100, 2000},
};

struct kpa {
    double params[PARAM_COUNT];
    struct window *concurrency;
    bool asked_before;
    double panic_s; /* when the load was last that high; NaN: calm */
    int panic_pods; /* the most wanted since panic began */
};

struct view {
    double stable, panic;               /* requests in flight */
    double stable_wanted, panic_wanted; /* pods, before any limit */
    int ready;
};

static void *kpa_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct kpa *k = xcalloc(1, sizeof(*k));
    recommend_params_fill(&recommend_kpa, values, k->params);
    k->concurrency = recommend_window_new(k->params[STABLE_WINDOW_S]);
    k->panic_s = NAN;
    return k;
}

static void kpa_destroy(void *self)
{
    struct kpa *k = self;
    recommend_window_free(k->concurrency);
    free(k);
}

static double rounded(double mean)
{
    return round(mean * DIGITS) / DIGITS;
}

static struct view look(struct kpa *k, const struct observation *seen, double concurrency)
{
    double last_s = recommend_window_last_s(k->concurrency), now_s = seen->now_s;
    double stable_s = k->params[STABLE_WINDOW_S];
    double panic_s = fmax(stable_s * PANIC_SHARE, PANIC_WINDOW_LEAST);
    double target = fmax(k->params[TARGET] * TARGET_UTILIZATION, TARGET_LEAST);
    recommend_window_add(k->concurrency, now_s, isnan(last_s) ? INTERVAL_S : now_s - last_s,
                         concurrency);
    struct view v = {
        .stable = rounded(recommend_window_mean(k->concurrency, now_s - stable_s)),
        .panic = rounded(recommend_window_mean(k->concurrency, now_s - panic_s)),
        .ready = recommend_ready(seen),
    };
    v.stable_wanted = ceil(v.stable / target);
    v.panic_wanted = ceil(v.panic / target);
    return v;
}

static int limited(double wanted, double ready)
{
    double least = floor(ready / MAX_SCALE_DOWN_RATE), most = ceil(ready * MAX_SCALE_UP_RATE);
    return (int)fmin(fmin(fmax(wanted, least), most), INT32_MAX);
}

/* Knative begins in panic, one interval before its first decision, when there is more than one pod:
 * it knows nothing of the load yet. */
static void begin(struct kpa *k, double now_s, int ready)
{
    if (!k->asked_before && ready > 1)
        k->panic_s = now_s - INTERVAL_S;
    if (!k->asked_before)
        k->panic_pods = ready;
    k->asked_before = true;
}

static int decide(struct kpa *k, const struct view *v, double now_s)
{
    double ready = fmax(v->ready, 1);
    int stable = limited(v->stable_wanted, ready), panic = limited(v->panic_wanted, ready);
    if (v->panic_wanted / ready >= PANIC_THRESHOLD) {
        k->panic_s = now_s;
    } else if (k->panic_s + k->params[STABLE_WINDOW_S] < now_s) {
        k->panic_s = NAN;
        k->panic_pods = 0;
    }
    if (isnan(k->panic_s))
        return stable;
    int wanted = panic > stable ? panic : stable;
    if (wanted > k->panic_pods)
        k->panic_pods = wanted;
    return k->panic_pods;
}

static int kpa_recommend(void *self, const struct observation *seen, struct recommendation *out,
                         struct error *err)
{
    struct kpa *k = self;
    double concurrency = recommend_concurrency(seen);
    if (recommend_check(seen, err) < 0)
        return -1;
    if (isnan(concurrency))
        return error_set(err, ERROR_UNAVAILABLE,
                         "no figures: neither requests in flight nor their latency are known");
    struct view v = look(k, seen, concurrency);
    begin(k, seen->now_s, v.ready);
    recommend_keep(seen, out);
    recommend_set_replicas(seen, decide(k, &v, seen->now_s), out);
    if (k->params[CPU_MILLI] > 0)
        recommend_set_pod_cpu(seen, k->params[CPU_MILLI], out);
    char situation[128];
    bool panics = !isnan(k->panic_s);
    snprintf(situation, sizeof(situation), "%.3g requests in flight, %d ready, %.3g each wanted%s",
             panics ? fmax(v.panic, v.stable) : v.stable, v.ready,
             k->params[TARGET] * TARGET_UTILIZATION, panics ? ", panic" : "");
    recommend_reason_write(&(struct reason){.seen = seen, .situation = situation}, out);
    return 0;
}

const struct recommender recommend_kpa = {
    .name = "kpa",
    .summary = "Knative's pod autoscaler: replicas by requests in flight",
    .params = params,
    .param_count = PARAM_COUNT,
    .interval_s = INTERVAL_S,
    .damps_itself = true,
    .create = kpa_create,
    .destroy = kpa_destroy,
    .recommend = kpa_recommend,
};
