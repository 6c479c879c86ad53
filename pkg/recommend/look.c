/* What an interval shows of the load and of what a request costs, for the recommenders that reckon
 * with a model of a replica. */
#include "recommend/internal.h"

#define MANY       2    /* requests beyond the quantile in one window */
#define PATIENCE   4    /* windows until the model is asked once more */
#define OTHER_RATE 0.25 /* of the rate: then at once */
#define OVERLOADED 0.9  /* of its CPU in use */
#define OVERDUE    4    /* times the goal */
#define SAME       0.1  /* of the CPU: pods that differ by less have the same */
#define GUESS      0.5 /* of what the largest pod can serve within the goal, at one core per request */

void recommend_look_init(struct look_memory *m)
{
    *m = (struct look_memory){.demand = recommend_demand_new(),
                              .asked_s = NAN,
                              .concurrency = NAN,
                              .tail = {.time_s = NAN, .share = NAN}};
}

void recommend_look_clear(struct look_memory *m)
{
    recommend_demand_free(m->demand);
}

/* --- what is seen ---------------------------------------------------------------------------- */
static double used_milli(const struct observation *seen, bool ours_only)
{
    double sum = 0;
    for (size_t p = 0; p < seen->pod_count; p++) {
        for (size_t i = 0; i < seen->container_count; i++) {
            double usage = seen->pods[p].containers[i].usage[RECOMMEND_CPU];
            if (seen->pods[p].pending ||
                (ours_only && !seen->containers[i].controlled[RECOMMEND_CPU]))
                continue;
            if (!isfinite(usage) || usage < 0)
                return NAN;
            sum += usage;
        }
    }
    return sum;
}

/* Where nodes have no room some pods have what was decided and others do not. */
static bool is_even(const struct observation *seen, double pod_milli)
{
    for (size_t p = 0; p < seen->pod_count; p++) {
        double has = 0;
        for (size_t i = 0; i < seen->container_count; i++)
            if (seen->containers[i].controlled[RECOMMEND_CPU])
                has += seen->pods[p].containers[i].request[RECOMMEND_CPU];
        if (seen->pods[p].ready && fabs(has - pod_milli) > SAME * pod_milli)
            return false;
    }
    return true;
}

/* Without a size of ours the pod is as large as all its containers are. */
static struct pod_size whole_size(const struct observation *seen)
{
    double now = recommend_pod_milli(seen, NULL, false);
    return (struct pod_size){.now = now, .min = now, .max = now};
}

/* Where requests had piled up, answers beyond those that came before are of the pile, as far as it
 * can have been that large: it is known as a mean, and grew. */
static double without_pile(const struct look_memory *m, double rate, double span_s)
{
    return m->pile > 0 && rate > m->came ? rate - fmin(rate - m->came, 2 * m->pile / span_s) : rate;
}

/* What has piled up came too, and has to be worked off besides. */
static void see_rate(const struct look_memory *m, struct look *l)
{
    double rate = l->seen->requests_per_s, concurrency = l->seen->concurrency;
    l->came = l->rate = rate;
    if (!(l->span_s > 0)) { /* asked twice */
        l->came = m->came;
        l->rate = m->rate;
        l->pile = m->pile;
        return;
    }
    if (!isfinite(concurrency))
        return;
    double usual = rate * l->goal_s;
    l->pile = fmax(concurrency - usual, 0);
    l->came = without_pile(m, rate, l->span_s);
    if (concurrency > usual && concurrency > m->concurrency)
        l->came += (concurrency - fmax(m->concurrency, usual)) / l->span_s;
    l->rate = l->came + fmax(concurrency - fmax(usual, 1), 0) / l->span_s;
}

int recommend_look(const struct look_memory *m, const struct observation *seen, struct look *l,
                   struct error *err)
{
    *l = (struct look){.seen = seen, .quantile = seen->percentile / 100};
    if (recommend_check(seen, err) < 0)
        return -1;
    if (seen->latency_state == LATENCY_NO_GOAL || !is_amount(seen->goal_ms))
        return error_set(err, ERROR_INVALID, "no figures: its model needs a latency goal");
    if (!isfinite(seen->requests_per_s) || seen->requests_per_s < 0)
        return error_set(err, ERROR_UNAVAILABLE, "no figures: the rate of requests is unknown");
    l->size = recommend_pod_size(seen);
    l->sized = l->size.ours;
    if (!l->sized)
        l->size = whole_size(seen);
    l->score = l->quantile == m->quantile ? m->score : recommend_queue_score(l->quantile);
    l->goal_s = seen->goal_ms / 1000;
    l->guess_s = GUESS * l->goal_s * fmin(1, l->size.max / 1000); /* fmin skips NaN */
    l->span_s = isnan(m->asked_s) ? fmax(seen->latency_window_s, 1) : seen->now_s - m->asked_s;
    l->ready = recommend_ready(seen);
    l->even = !l->sized || is_even(seen, l->size.now);
    l->used_milli = used_milli(seen, l->sized);
    see_rate(m, l);
    return 0;
}

bool recommend_latency_known(const struct observation *seen)
{
    return (seen->latency_state == LATENCY_KNOWN || seen->latency_state == LATENCY_OVERFLOW) &&
           is_amount(seen->latency_ms) && seen->requests_per_s > 0;
}

double recommend_look_late(const struct look *l)
{
    const struct observation *seen = l->seen;
    double requests = seen->requests_per_s * l->span_s, allowed = 1 - l->quantile;
    if (!recommend_latency_known(seen))
        return 0;
    bool over = seen->latency_ms > seen->goal_ms;
    double share = seen->late_share, ratio = seen->latency_ms / seen->goal_ms;
    if (!isfinite(share) || (over && share <= 0))
        share = over ? fmax(allowed * ratio * ratio,
                            fmin(1, l->span_s / seen->latency_window_s) / requests)
                     : 0;
    return requests * clamp(share, 0, 1);
}

/* --- learning -------------------------------------------------------------------------------- */
/* How much of its latency a large request is itself, by the model. */
static void ask_model(struct look_memory *m, const struct look *l, double mean_s, double guess_s)
{
    double cores = l->size.now / 1000, latency_s = l->seen->latency_ms / 1000;
    double tail_s = recommend_queue_tail(
        &(struct queue_load){l->seen->requests_per_s / fmax(l->ready, 1), mean_s,
                             isnan(m->tail.share) ? guess_s : m->tail.share * latency_s, l->score,
                             latency_s},
        cores);
    m->tail.time_s = l->seen->now_s;
    m->tail.cores = cores;
    m->tail.rate = l->seen->requests_per_s;
    m->tail.pods = l->ready;
    m->tail.share = tail_s / latency_s;
}

/* Whether what the model said still holds. Not where it has said nothing: that is NaN. */
static bool is_fresh(const struct look_memory *m, const struct look *l)
{
    double rate = l->seen->requests_per_s;
    return l->seen->now_s - m->tail.time_s < PATIENCE * l->seen->latency_window_s &&
           l->size.now / 1000 == m->tail.cores && l->ready == m->tail.pods &&
           fabs(rate - m->tail.rate) <= OTHER_RATE * m->tail.rate;
}

/* With many requests their latency is that of the model, with few it is that of one of them. */
double recommend_look_tail(struct look_memory *m, const struct look *l)
{
    const struct observation *seen = l->seen;
    double cores = l->size.now / 1000, pods = fmax(l->ready, 1);
    double busy = l->used_milli / 1000 / pods, latency_s = seen->latency_ms / 1000;
    double beyond = seen->requests_per_s * seen->latency_window_s * (1 - l->quantile);
    if (!recommend_latency_known(seen))
        return NAN;
    if (!(beyond > MANY))
        return recommend_queue_served(cores, busy, latency_s);
    if (is_fresh(m, l))
        return m->tail.share * latency_s;
    struct demand_estimate e = recommend_demand_estimate(m->demand, l->quantile, l->guess_s);
    if (isnan(e.mean_s))
        return recommend_queue_served(cores, busy, latency_s);
    ask_model(m, l, e.mean_s, e.tail_s);
    return m->tail.share * latency_s;
}

void recommend_look_learn(struct look_memory *m, const struct look *l, double tail_s)
{
    const struct observation *seen = l->seen;
    bool overloaded = l->used_milli > OVERLOADED * l->size.now * fmax(l->ready, 1) ||
                      seen->latency_ms > OVERDUE * seen->goal_ms;
    recommend_demand_learn(m->demand, &(struct demand_sample){
                                          .time_s = seen->now_s,
                                          .span_s = l->span_s,
                                          .window_s = seen->latency_window_s,
                                          .quantile = l->quantile,
                                          .requests_per_s = seen->requests_per_s,
                                          .used_milli = l->used_milli,
                                          .pods = l->ready,
                                          .tail_s = overloaded || !l->even ? NAN : tail_s,
                                      });
}

void recommend_look_keep(struct look_memory *m, const struct look *l)
{
    m->asked_s = l->seen->now_s;
    m->rate = l->rate;
    m->came = l->came;
    m->concurrency = l->seen->concurrency;
    m->pile = l->pile;
    m->quantile = l->quantile;
    m->score = l->score;
}
