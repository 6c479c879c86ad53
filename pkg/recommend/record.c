/* What was seen of one function. */
#include "recommend/record.h"
#include "recommend/internal.h"

#define MOST_TIME_S     1e12  /* of any clock */
#define LONGEST_S       600.0 /* an interval: of a longer one nobody knows what was in between */
#define MOST            10.0 /* of either part of what is earned: one bad interval is no more than that */
#define ENOUGH          5.0  /* requests, to tell what one costs */
#define LEAST_DEVIATION 0.05 /* of the logarithm of a request's CPU time: all alike, and */
#define MOST_DEVIATION  1.2  /* p99 of eight times the mean */

struct recommend_record {
    struct look_memory look;
    double percentile, guess_s;             /* of the last observation */
    int64_t newest;                         /* slot, by number_of; -1: none yet */
    struct record_slot slots[RECORD_SLOTS]; /* by their number, around */
};

struct recommend_record *recommend_record_new(void)
{
    struct recommend_record *r = xcalloc(1, sizeof(*r));
    recommend_look_init(&r->look);
    r->percentile = r->guess_s = NAN;
    r->newest = -1;
    return r;
}

void recommend_record_free(struct recommend_record *r)
{
    if (r)
        recommend_look_clear(&r->look);
    free(r);
}

/* --- slots ------------------------------------------------------------------------------------ */
/* The clock of a machine may have begun less long ago than what is remembered of it. */
static int64_t number_of(double time_s)
{
    return (int64_t)floor(time_s / RECORD_SLOT_S) + RECORD_SLOTS;
}

/* Makes room for newer ones. NULL: it is too old to be kept. */
static struct record_slot *slot_at(struct recommend_record *r, double time_s)
{
    if (!(fabs(time_s) < MOST_TIME_S))
        return NULL;
    int64_t number = number_of(time_s);
    if (number < 0 || number + RECORD_SLOTS <= r->newest)
        return NULL;
    int64_t first = r->newest + 1;
    if (first + RECORD_SLOTS <= number)
        first = number - RECORD_SLOTS + 1;
    for (int64_t i = first; i <= number; i++)
        r->slots[i % RECORD_SLOTS] = (struct record_slot){0};
    if (number > r->newest)
        r->newest = number;
    return &r->slots[number % RECORD_SLOTS];
}

/* In the middle of its span: few spans cross the end of a slot, and then it evens out. */
static void count(struct recommend_record *r, double time_s, double span_s,
                  const struct record_slot *more)
{
    struct record_slot *slot = slot_at(r, time_s - span_s / 2);
    if (!slot)
        return;
    slot->seen = true;
    slot->requests += more->requests;
    slot->cpu_s += more->cpu_s;
    slot->late += more->late;
}

void recommend_record_remember(struct recommend_record *r, double time_s, double span_s,
                               double requests, double cpu_s)
{
    if (isfinite(requests) && isfinite(cpu_s) && requests >= 0 && cpu_s >= 0)
        count(r, time_s, span_s,
              &(struct record_slot){.requests = (float)requests, .cpu_s = (float)cpu_s});
}

/* --- an interval ------------------------------------------------------------------------------ */
static double needed_milli(const struct look *l, const struct demand_estimate *e)
{
    const struct observation *seen = l->seen;
    return recommend_needed_milli(
        &(struct recommend_need){
            .mean_s = e->mean_s,
            .tail_s = e->tail_s,
            .percentile = seen->percentile,
            .goal_s = l->goal_s,
            .min_milli = l->size.min,
            .max_milli = l->size.max,
            .min_replicas = seen->min_replicas > 0 ? seen->min_replicas : 1,
            .max_replicas = seen->max_replicas,
        },
        &l->came, 1);
}

static double earned(const struct look *l, const struct demand_estimate *e)
{
    double reserved = l->seen->replicas_wanted * l->size.now, needed = needed_milli(l, e);
    double allowed = fmax((1 - l->quantile) * l->came * l->span_s, 1);
    if (!is_amount(needed))
        return NAN;
    return -(fmin(reserved / needed, MOST) + fmin(recommend_look_late(l) / allowed, MOST));
}

struct record_interval recommend_record_add(struct recommend_record *r,
                                            const struct observation *seen)
{
    struct record_interval out = {NAN, NAN, NAN};
    struct look l;
    struct error err;
    bool first = isnan(r->look.asked_s);
    if (recommend_look(&r->look, seen, &l, &err) < 0 || !(l.span_s > 0) || !isfinite(l.used_milli))
        return out;
    recommend_look_learn(&r->look, &l, recommend_look_tail(&r->look, &l));
    recommend_look_keep(&r->look, &l);
    r->percentile = seen->percentile;
    r->guess_s = l.guess_s;
    if (first || l.span_s > LONGEST_S)
        return out;
    double requests = seen->requests_per_s * l.span_s, cpu_s = l.used_milli / 1000 * l.span_s;
    out.requests = requests;
    count(r, seen->now_s, l.span_s,
          &(struct record_slot){.requests = (float)requests,
                                .cpu_s = (float)cpu_s,
                                .late = (float)recommend_look_late(&l)});
    struct demand_estimate e = recommend_demand_estimate(r->look.demand, l.quantile, l.guess_s);
    if (is_amount(e.mean_s) && is_amount(e.tail_s))
        out.earned = earned(&l, &e);
    if (requests >= ENOUGH && cpu_s > 0)
        out.demand_s = cpu_s / requests;
    return out;
}

/* --- what can be learned from ----------------------------------------------------------------- */
size_t recommend_record_slots(const struct recommend_record *r, struct record_slot *out)
{
    size_t n = 0;
    int64_t oldest = r->newest - RECORD_SLOTS + 1;
    for (int64_t i = oldest > 0 ? oldest : 0; i <= r->newest; i++) {
        const struct record_slot *slot = &r->slots[i % RECORD_SLOTS];
        if (n > 0 || slot->seen)
            out[n++] = *slot;
    }
    return n;
}

/* The logarithm's deviation with which the quantile is so many times the mean: the tail that is
 * seen may be longer than any, as it has waits in it. */
static double deviation(double ratio, double score)
{
    double square = score * score - 2 * log(fmax(ratio, 1));
    return clamp(score - sqrt(fmax(square, 0)), LEAST_DEVIATION, MOST_DEVIATION);
}

struct record_demand recommend_record_demand(const struct recommend_record *r, size_t slots)
{
    double requests = 0, cpu_s = 0, quantile = r->percentile / 100;
    for (int64_t i = r->newest; i >= 0 && i > r->newest - RECORD_SLOTS && slots > 0; i--) {
        const struct record_slot *slot = &r->slots[i % RECORD_SLOTS];
        if (!(slot->requests > 0 && slot->cpu_s > 0))
            continue;
        requests += slot->requests;
        cpu_s += slot->cpu_s;
        slots--;
    }
    struct demand_estimate e = recommend_demand_estimate(r->look.demand, quantile, r->guess_s);
    double mean_s = requests > 0 ? cpu_s / requests : NAN;
    double tail_s = is_amount(e.tail_s) ? e.tail_s : r->guess_s;
    if (!is_amount(mean_s) || !is_amount(tail_s))
        return (struct record_demand){NAN, NAN, NAN};
    double sigma = deviation(tail_s / mean_s, recommend_queue_score(quantile));
    double median_s = mean_s * exp(-sigma * sigma / 2);
    return (struct record_demand){mean_s, median_s,
                                  median_s * exp(recommend_queue_score(0.99) * sigma)};
}
