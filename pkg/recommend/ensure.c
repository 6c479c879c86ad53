/* ENSURE, as far as it is published: CPU grows only when a function got slower than expected, and
 * containers come from square-root staffing of the load. docs/baselines.md tells what is known and
 * what was chosen. */
#include "recommend/internal.h"

#include <stdio.h>

#define EXPECTED_MEMORY_S 3600.0 /* the best latency within it is what is expected */

enum { DEGRADATION, STAFFING, STEP_MILLI, SMOOTH_S, KEEP_S, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [DEGRADATION] = {"degradation", "over the expected latency that makes CPU grow", 0.15, 0.05, 2},
    [STAFFING] = {"staffing", "c in R + c·√R containers for a load of R", 1, 0, 4},
    [STEP_MILLI] = {"step_milli", "of CPU", 125, 25, 500},
    [SMOOTH_S] = {"smooth_s", "over which latency and load are averaged", 60, 15, 600},
    [KEEP_S] = {"keep_s", "for how long what is no longer needed stays", 600, 60, 1800},
};

struct ensure {
    double params[PARAM_COUNT];
    double first_cpu;        /* of a pod, what the user asked for; 0: nothing seen yet */
    double grown_s;          /* when CPU last moved */
    struct window *latency;  /* as seen */
    struct window *smoothed; /* the mean of it */
    struct window *load;     /* requests in flight */
    struct window *staffed;  /* containers */
};

static void *ensure_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct ensure *e = xcalloc(1, sizeof(*e));
    recommend_params_fill(&recommend_ensure, values, e->params);
    e->latency = recommend_window_new(e->params[SMOOTH_S]);
    e->smoothed = recommend_window_new(EXPECTED_MEMORY_S);
    e->load = recommend_window_new(e->params[SMOOTH_S]);
    e->staffed = recommend_window_new(e->params[KEEP_S]);
    return e;
}

static void ensure_destroy(void *self)
{
    struct ensure *e = self;
    recommend_window_free(e->latency);
    recommend_window_free(e->smoothed);
    recommend_window_free(e->load);
    recommend_window_free(e->staffed);
    free(e);
}

/* Adds a figure and gives the mean of those lately. */
static double smooth(const struct ensure *e, struct window *w, double now_s, double value)
{
    double last_s = recommend_window_last_s(w);
    double span_s = e->params[SMOOTH_S];
    if (!isnan(value))
        recommend_window_add(w, now_s, isnan(last_s) ? span_s : fmin(now_s - last_s, span_s),
                             value);
    return recommend_window_mean(w, now_s - span_s);
}

/* --- containers ------------------------------------------------------------------------------ */
/* Square-root staffing: with R requests in flight on average, R + c·√R servers leave few waiting.
 */
static bool staff(struct ensure *e, const struct observation *seen, double load,
                  struct recommendation *out)
{
    if (isnan(load))
        return false;
    double wanted = recommend_whole(load + e->params[STAFFING] * sqrt(load));
    recommend_window_add(e->staffed, seen->now_s, 0, wanted);
    double kept = recommend_window_max(e->staffed, seen->now_s - e->params[KEEP_S]);
    recommend_set_replicas(seen, (int)fmin(kept, INT32_MAX), out);
    return true;
}

/* --- CPU ------------------------------------------------------------------------------------- */
/* The latency now over that which is expected; NaN: unknown. */
static double slowdown(struct ensure *e, const struct observation *seen)
{
    bool known = seen->latency_state == LATENCY_KNOWN || seen->latency_state == LATENCY_OVERFLOW;
    if (!known || !is_amount(seen->latency_ms))
        return NAN;
    double now = smooth(e, e->latency, seen->now_s, seen->latency_ms);
    recommend_window_add(e->smoothed, seen->now_s, 0, now);
    return now / recommend_window_min(e->smoothed, seen->now_s - EXPECTED_MEMORY_S);
}

/* A step up when requests got slower; after keep_s of rest a step down, never below what the user
 * asked for. */
static void regulate(struct ensure *e, const struct observation *seen, double slower,
                     struct recommendation *out)
{
    double now = recommend_pod_size(seen).now, wanted = now;
    double step = e->params[STEP_MILLI];
    if (slower > 1 + e->params[DEGRADATION])
        wanted = now + step;
    else if (seen->now_s - e->grown_s > e->params[KEEP_S] && now > e->first_cpu)
        wanted = fmax(now - step, e->first_cpu);
    if (wanted == now)
        return;
    e->grown_s = seen->now_s;
    recommend_set_pod_cpu(seen, wanted, out);
}

static void tell(const struct observation *seen, double load, double slower, char *text,
                 size_t size)
{
    int used = isnan(load) ? snprintf(text, size, "requests in flight unknown")
                           : snprintf(text, size, "%.3g requests in flight", load);
    if (!isnan(slower))
        snprintf(text + used, size - (size_t)used, ", p%g %.2f times the best", seen->percentile,
                 slower);
}

static int ensure_recommend(void *self, const struct observation *seen, struct recommendation *out,
                            struct error *err)
{
    struct ensure *e = self;
    if (recommend_check(seen, err) < 0)
        return -1;
    if (e->first_cpu <= 0) {
        e->first_cpu = recommend_pod_size(seen).now;
        e->grown_s = seen->now_s;
    }
    double load = smooth(e, e->load, seen->now_s, recommend_concurrency(seen));
    double slower = slowdown(e, seen);
    recommend_keep(seen, out);
    bool staffed = staff(e, seen, load, out);
    if (!staffed && isnan(slower))
        return error_set(err, ERROR_UNAVAILABLE,
                         "no figures: neither requests in flight nor latency are known");
    regulate(e, seen, slower, out);
    char situation[128];
    tell(seen, load, slower, situation, sizeof(situation));
    recommend_reason_write(&(struct reason){.seen = seen, .situation = situation}, out);
    return 0;
}

const struct recommender recommend_ensure = {
    .name = "ensure",
    .summary = "ENSURE: CPU by latency degradation, replicas by square-root staffing",
    .params = params,
    .param_count = PARAM_COUNT,
    .damps_itself = true,
    .create = ensure_create,
    .destroy = ensure_destroy,
    .recommend = ensure_recommend,
};
