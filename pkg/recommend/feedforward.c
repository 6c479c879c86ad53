/* Feed-forward: a forecast of the rate, what a request costs, and a queue model say which replicas
 * × CPU is the cheapest that keeps the latency goal. Where the goal is missed all the same, a
 * correction grows. docs/baselines.md tells it in words. */
#include "recommend/internal.h"

#include <stdio.h>

#define CORRECTION_MOST  3.0
#define CORRECTION_LEAST 0.8
#define CORRECTION_UP    0.10 /* of its logarithm, for twice as many late requests as planned */
#define CORRECTION_DOWN  0.01 /* for none */
#define KEEP             1.08 /* a change of replicas must save more than this */
#define HELPLESS         0.9  /* of the goal: a demand that leaves no time to wait */
#define STABLE           0.95 /* of a replica's CPU in use, at most */
#define EXACT            0.02 /* of a size */
#define HOPELESS         0.1  /* of the allowed late requests, beyond those that no CPU can help */
#define DEARER_IN_A_ROW  3

enum { MARGIN, PEAK_HOLD_S, RATE_MEMORY_S, LATE, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [MARGIN] = {"margin", "on top of the rate", 0.1, 0, 1},
    [PEAK_HOLD_S] = {"peak_hold_s", "for how long a peak is held ready for", 1800, 0, 7200},
    [RATE_MEMORY_S] = {"rate_memory_s", "over which the rate is averaged", 60, 15, 600},
    [LATE] = {"late", "share of the late requests that the goal allows which is planned for", 0.9,
              0.1, 2},
};

struct feedforward {
    double params[PARAM_COUNT];
    struct look_memory look;
    struct forecast *forecast;
    double planned_rate; /* what the last proposal was made for */
    double correction;   /* of the CPU that the model says */
};

static void *feedforward_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct feedforward *f = xcalloc(1, sizeof(*f));
    recommend_params_fill(&recommend_feedforward, values, f->params);
    recommend_look_init(&f->look);
    f->forecast = recommend_forecast_new(f->params[RATE_MEMORY_S], f->params[PEAK_HOLD_S]);
    f->correction = 1;
    return f;
}

static void feedforward_destroy(void *self)
{
    struct feedforward *f = self;
    recommend_look_clear(&f->look);
    recommend_forecast_free(f->forecast);
    free(f);
}

/* --- learning -------------------------------------------------------------------------------- */
/* The model is to blame only for what it planned for, once that is in force. */
static void learn_correction(struct feedforward *f, const struct look *l, double tail_s)
{
    const struct observation *seen = l->seen;
    if (!recommend_latency_known(seen) || l->rate > f->planned_rate ||
        seen->since_increase_s < seen->latency_window_s)
        return;
    if (tail_s > HELPLESS * l->goal_s)
        return; /* it would have been late alone */
    double allowed = (1 - l->quantile) * f->params[LATE];
    double requests = seen->requests_per_s * l->span_s, expected = requests * allowed;
    double late = 0;
    if (seen->latency_ms > seen->goal_ms)
        late = fmax((1 - l->quantile) * requests, fmin(1, l->span_s / seen->latency_window_s));
    double excess = (late - expected) / fmax(1, expected);
    double step = excess > 0 ? CORRECTION_UP * fmin(excess, 3) : CORRECTION_DOWN * excess;
    f->correction = clamp(f->correction * exp(step), CORRECTION_LEAST, CORRECTION_MOST);
}

/* --- the choice ------------------------------------------------------------------------------ */
struct plan {
    const struct look *look;
    struct queue_load load; /* of all replicas */
    double correction, late;
};

struct choice {
    int replicas;
    double milli;
};

static double cost_of(struct choice c)
{
    return c.replicas * c.milli;
}

static bool enough(const struct plan *p, double rate, double milli)
{
    struct queue_load load = p->load;
    load.rate = rate;
    return rate * load.mean_s < STABLE * milli / 1000 &&
           recommend_queue_keeps(&load, milli / 1000 / p->correction, p->late);
}

/* The least CPU with which a replica keeps the goal at this rate; INFINITY: the most is too little.
 */
static double milli_for(const struct plan *p, double rate)
{
    double low = p->look->size.min, high = p->look->size.max;
    if (enough(p, rate, low))
        return low;
    if (!enough(p, rate, high))
        return INFINITY;
    while (high > low * (1 + EXACT)) {
        double middle = sqrt(low * high);
        if (enough(p, rate, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Requests that are late even alone on the largest replica cannot be planned away. */
static double planned_late(const struct plan *p, double share)
{
    struct queue_load alone = p->load;
    alone.rate = 0;
    double allowed = 1 - p->look->quantile;
    double hopeless = recommend_queue_late(&alone, p->look->size.max / 1000 / p->correction);
    return fmax(allowed * share, hopeless + allowed * HOPELESS);
}

/* With many replicas neighbouring numbers are as good. */
static int next_number(int n)
{
    return n + 1 + n / 16;
}

static struct choice cheapest(const struct plan *p, int first, int most)
{
    struct choice best = {most, p->look->size.max};
    bool found = false;
    double least_milli = milli_for(p, 0); /* of a replica, however many there are */
    double busy_milli = p->load.rate * p->load.mean_s * 1000;
    int least = recommend_whole(busy_milli / STABLE / p->look->size.max);
    for (int n = least > first ? least : first, dearer = 0; n <= most; n = next_number(n)) {
        if (found && (n * least_milli >= cost_of(best) || dearer == DEARER_IN_A_ROW))
            break;
        struct choice c = {n, milli_for(p, p->load.rate / n)};
        if (isinf(c.milli))
            continue;
        dearer = found && cost_of(c) >= cost_of(best) ? dearer + 1 : 0;
        if (!found || cost_of(c) < cost_of(best))
            best = c;
        found = true;
    }
    return best;
}

/* Replicas stay where changing them saves little. Until new ones are ready, those that are there
 * get the CPU to do without them: that takes less than a second. */
static struct choice choose(const struct plan *p)
{
    const struct observation *seen = p->look->seen;
    int first = seen->min_replicas > 0 ? seen->min_replicas : 1;
    int most = seen->max_replicas > first ? seen->max_replicas : first;
    int now = (int)clamp(seen->replicas_wanted, first, most), ready = p->look->ready;
    struct choice best = cheapest(p, first, most);
    if (best.replicas != now) {
        struct choice same = {now, milli_for(p, p->load.rate / now)};
        if (cost_of(same) <= KEEP * cost_of(best))
            best = same;
    }
    if (best.replicas > ready && ready > 0) {
        double boost = milli_for(p, p->load.rate / ready);
        best.milli = fmax(best.milli, fmin(boost, p->look->size.max));
    }
    return best;
}

/* --- the recommender ------------------------------------------------------------------------- */
static void tell(const struct look *l, const struct plan *p, char *text, size_t size)
{
    char mean[24], tail[24];
    duration_print(p->load.mean_s * 1e6, mean);
    duration_print(p->load.tail_s * 1e6, tail);
    int used = snprintf(text, size, "rate %.3g/s, ready for %.3g/s of %s CPU each, p%g %s", l->rate,
                        p->load.rate, mean, l->seen->percentile, tail);
    if (fabs(p->correction - 1) > 0.05)
        snprintf(text + used, size - (size_t)used, ", corrected by %.2f", p->correction);
}

static void propose(struct feedforward *f, const struct look *l, double rate,
                    struct recommendation *out)
{
    const struct observation *seen = l->seen;
    struct demand_estimate e = recommend_demand_estimate(f->look.demand, l->quantile, l->guess_s);
    if (isnan(e.mean_s)) {
        recommend_reason_write(
            &(struct reason){.seen = seen, .situation = "nothing known of its requests yet"}, out);
        return;
    }
    struct plan p = {
        .look = l,
        .load = {rate, e.mean_s, e.tail_s, l->score, l->goal_s},
        .correction = f->correction,
    };
    p.late = planned_late(&p, f->params[LATE]);
    struct choice best = choose(&p);
    recommend_set_replicas(seen, best.replicas, out);
    if (l->sized && isfinite(best.milli))
        recommend_set_pod_cpu(seen, best.milli, out);
    char situation[160];
    tell(l, &p, situation, sizeof(situation));
    recommend_reason_write(&(struct reason){.seen = seen, .situation = situation}, out);
}

static int feedforward_recommend(void *self, const struct observation *seen,
                                 struct recommendation *out, struct error *err)
{
    struct feedforward *f = self;
    struct look l;
    if (recommend_look(&f->look, seen, &l, err) < 0)
        return -1;
    if (l.span_s > 0) { /* else asked twice */
        double tail_s = recommend_look_tail(&f->look, &l);
        recommend_look_learn(&f->look, &l, tail_s);
        learn_correction(f, &l, tail_s);
    }
    double rate = recommend_forecast(f->forecast, seen->now_s, l.span_s, l.rate);
    f->planned_rate = rate * (1 + f->params[MARGIN]);
    recommend_look_keep(&f->look, &l);
    recommend_keep(seen, out);
    propose(f, &l, f->planned_rate, out);
    return 0;
}

const struct recommender recommend_feedforward = {
    .name = "feedforward",
    .summary = "the cheapest replicas × CPU for the forecast rate, by a queue model",
    .params = params,
    .param_count = PARAM_COUNT,
    .damps_itself = true,
    .create = feedforward_create,
    .destroy = feedforward_destroy,
    .recommend = feedforward_recommend,
};
