/* What a request costs, from what pods use and how long requests take. */
#include "recommend/internal.h"

#define MEAN_HALF_LIFE_S 600.0  /* of the mean, and */
#define MEAN_HALF_LIFE   300.0  /* requests, whichever is longer */
#define TAIL_HALF_LIFE_S 7200.0 /* of the tail, which few requests show */
#define IDLE_HALF_LIFE_S 3600.0
#define FIRST_BUCKET_S   0.0005
#define MAX_S            1e5
#define GUESS_REQUESTS   100.0 /* after which a guess is hardly believed any more */

struct demand_memory {
    double cpu_s, requests; /* decayed sums: their ratio is the mean */
    double tail_requests;   /* decayed, of which */
    double tail_shown;      /* were seen at or above the quantile of their window */
    struct recommend_histogram *tail;
    double all_requests; /* not decayed */
    double idle_milli;   /* of a pod without requests */
};

struct demand_memory *recommend_demand_new(void)
{
    struct demand_memory *m = xcalloc(1, sizeof(*m));
    m->tail = recommend_histogram_new(FIRST_BUCKET_S, MAX_S, TAIL_HALF_LIFE_S);
    return m;
}

void recommend_demand_free(struct demand_memory *m)
{
    recommend_histogram_free(m->tail);
    free(m);
}

/* --- the mean -------------------------------------------------------------------------------- */
static void learn_idle(struct demand_memory *m, const struct demand_sample *s)
{
    double share = -expm1(-M_LN2 * s->span_s / IDLE_HALF_LIFE_S);
    if (s->pods > 0)
        m->idle_milli += fmax(share, 1e-3) * (s->used_milli / s->pods - m->idle_milli);
}

static void learn_mean(struct demand_memory *m, const struct demand_sample *s)
{
    double requests = s->requests_per_s * s->span_s;
    double keep = exp2(-fmin(s->span_s / MEAN_HALF_LIFE_S, requests / MEAN_HALF_LIFE));
    double used = fmax(s->used_milli - m->idle_milli * s->pods, 0) / 1000;
    m->cpu_s = m->cpu_s * keep + used * s->span_s;
    m->requests = m->requests * keep + requests;
    m->all_requests += requests;
}

/* --- the tail -------------------------------------------------------------------------------- */
/* The quantile of a window of k requests stands for the (1 - q)·k of them at or above it, at least
 * for one. Over many windows the q-quantile of all is where so many are shown above as there should
 * be. */
static void learn_tail(struct demand_memory *m, const struct demand_sample *s)
{
    double keep = exp2(-s->span_s / TAIL_HALF_LIFE_S);
    double window = s->requests_per_s * s->window_s, part = s->span_s / s->window_s;
    double shown = fmax((1 - s->quantile) * window, fmin(1, window)) * part;
    m->tail_requests = m->tail_requests * keep + s->requests_per_s * s->span_s;
    m->tail_shown = m->tail_shown * keep + shown;
    recommend_histogram_add(m->tail, s->time_s, s->tail_s, shown);
}

void recommend_demand_learn(struct demand_memory *m, const struct demand_sample *s)
{
    if (!isfinite(s->used_milli) || !isfinite(s->requests_per_s) || !(s->span_s > 0))
        return;
    if (s->requests_per_s <= 0)
        learn_idle(m, s);
    learn_mean(m, s);
    if (is_amount(s->tail_s) && s->requests_per_s > 0 && s->window_s > 0)
        learn_tail(m, s);
}

struct demand_estimate recommend_demand_estimate(const struct demand_memory *m, double quantile,
                                                 double guess_s)
{
    struct demand_estimate e = {.mean_s = m->cpu_s / m->requests, .tail_s = NAN};
    if (!(m->all_requests >= 1) || !is_amount(e.mean_s))
        return (struct demand_estimate){NAN, NAN};
    double rare = (1 - quantile) * m->tail_requests / m->tail_shown;
    double seen = recommend_histogram_percentile(m->tail, 1 - rare * (1 - rare / 2));
    e.tail_s = isnan(seen) ? guess_s : fmax(seen, guess_s * exp(-m->all_requests / GUESS_REQUESTS));
    return e;
}
