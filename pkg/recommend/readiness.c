/* How much to be ready for, learned from what each rule would have come to.
 *
 * A rule says: be ready for the level of now, and for a share of the highest level of the last
 * while, or of the level that was a period ago, as timers make it. Each is followed on paper: what
 * it would have cost, and how many requests came when it was not ready for them. The cheapest one
 * whose requests at risk are few enough is taken. A peak that none was ready for is taken to come
 * once more, so that a first burst is not forgotten before it is known whether there are others; a
 * rule of a period has to foresee some before that is no longer held against it. */
#include "recommend/internal.h"

#define BIN_S       60.0
#define BINS        210
#define LEAD_S      45.0 /* before a period is over: decisions and starts take time */
#define LAG_S       15.0 /* after it */
#define HALF_LIFE_S 21600.0
#define BEARABLE    1.02 /* times what it is ready for does no harm, */
#define LATE_AT     0.3  /* more than that makes all requests late */
#define PRICE       6.0  /* of as many late requests as the goal allows, in times the least cost */
#define SURE        1.5  /* standard deviations below what came: so much of it was no chance */

#define FORESEEN 0.25 /* what is left of a doubt about a period with each peak it foresaw */
#define CLEARLY  0.5  /* short of CPU, where a peak is one to foresee */

static const struct rule {
    double hold_s, share;
    double forgets; /* a peak that comes once more, how likely it is to be forgotten by then */
    bool period;    /* hold_s is one */
} rules[] = {
    {0, 0, 1, 0},        {600, 0.6, 0.8, 0},  {600, 0.8, 0.8, 0},  {600, 1, 0.8, 0},
    {600, 1.2, 0.8, 0},  {1800, 0.6, 0.5, 0}, {1800, 0.8, 0.5, 0}, {1800, 1, 0.5, 0},
    {1800, 1.2, 0.5, 0}, {3900, 0.6, 0.2, 0}, {3900, 0.8, 0.2, 0}, {3900, 1, 0.2, 0},
    {3900, 1.2, 0.2, 0}, {12000, 0.6, 0, 0},  {12000, 0.8, 0, 0},  {12000, 1, 0, 0},
    {12000, 1.2, 0, 0},  {300, 1.1, 1, 1},    {600, 1.1, 1, 1},    {900, 1.1, 1, 1},
    {1200, 1.1, 1, 1},   {1800, 1.1, 1, 1},   {3600, 1.1, 1, 1},   {7200, 1.1, 1, 1},
};
#define RULES ARRAY_LEN(rules)

static const double holds_s[] = {600, 1800, 3900, 12000}; /* of the rules */
#define HOLDS ARRAY_LEN(holds_s)

struct readiness {
    float peaks[BINS];   /* of the level, a ring of times */
    int64_t bin;         /* the newest, counted from time 0 */
    float before[HOLDS]; /* the highest of each hold, but for the newest */
    double ready[RULES]; /* for such a rate, each of the rules */
    double risk[RULES];  /* decayed: requests that it was not ready for, */
    double doubt[RULES]; /* and those that it might not be ready for once more, */
    double cost[RULES];  /* and milli-core seconds */
    double requests, span_s;
};

struct readiness *recommend_readiness_new(void)
{
    struct readiness *r = xcalloc(1, sizeof(*r));
    r->bin = INT64_MIN;
    return r;
}

void recommend_readiness_free(struct readiness *r)
{
    free(r);
}

/* --- peaks ----------------------------------------------------------------------------------- */
static size_t slot(int64_t bin)
{
    return (size_t)(((bin % BINS) + BINS) % BINS);
}

/* The highest of the bins from first to last. */
static float highest(const struct readiness *r, int64_t first, int64_t last)
{
    float most = 0;
    for (int64_t i = first; i <= last; i++) {
        float peak = r->peaks[slot(i)];
        most = peak > most ? peak : most;
    }
    return most;
}

/* Each hold reaches further back than the one before it. */
static void begin_bin(struct readiness *r, int64_t bin)
{
    float most = 0;
    int64_t from = bin;
    if (r->bin == INT64_MIN || bin - r->bin > BINS)
        r->bin = bin - BINS;
    while (r->bin < bin)
        r->peaks[slot(++r->bin)] = 0;
    for (size_t i = 0; i < HOLDS; i++) {
        int64_t reach = bin - (int64_t)(holds_s[i] / BIN_S);
        r->before[i] = most = fmaxf(most, highest(r, reach, from - 1));
        from = reach;
    }
}

static void keep_peak(struct readiness *r, double time_s, double level)
{
    int64_t bin = (int64_t)floor(time_s / BIN_S);
    if (bin > r->bin)
        begin_bin(r, bin);
    r->peaks[slot(bin)] = fmaxf(r->peaks[slot(bin)], (float)level);
}

double recommend_readiness_peak(const struct readiness *r, double hold_s)
{
    size_t hold = 0;
    while (hold + 1 < HOLDS && holds_s[hold] < hold_s)
        hold++;
    return r->bin == INT64_MIN ? 0 : fmaxf(r->before[hold], r->peaks[slot(r->bin)]);
}

static double peak_a_period_ago(const struct readiness *r, const struct rule *rule, double now_s)
{
    double then_s = now_s - rule->hold_s;
    return highest(r, (int64_t)floor((then_s - LAG_S) / BIN_S),
                   (int64_t)floor((then_s + LEAD_S) / BIN_S));
}

/* --- what the rules would have come to ------------------------------------------------------- */
static double short_of(double have, double want)
{
    return clamp((want / have - BEARABLE) / LATE_AT, 0, 1);
}

double recommend_readiness_short(struct sizing *sizing, double ready, double rate)
{
    return short_of(recommend_sizing_cost(sizing, ready), recommend_sizing_cost(sizing, rate));
}

double recommend_readiness_sure(double rate, double span_s)
{
    double count = rate * span_s;
    return fmax(count - SURE * sqrt(count), 0) / span_s;
}

/* Many rules say no more than the level, or the same as their neighbour. */
static void find_costs(const struct readiness *r, struct sizing *sizing, double *cost)
{
    const double *ready = r->ready;
    cost[0] = recommend_sizing_cost(sizing, ready[0]);
    for (size_t i = 1; i < RULES; i++)
        cost[i] = ready[i] == ready[0]       ? cost[0]
                  : ready[i] == ready[i - 1] ? cost[i - 1]
                                             : recommend_sizing_cost(sizing, ready[i]);
}

static void judge(struct readiness *r, struct sizing *sizing, double span_s, double rate)
{
    double sure = recommend_readiness_sure(rate, span_s), missed[RULES], cost[RULES], least = 1;
    double want = recommend_sizing_cost(sizing, sure);
    find_costs(r, sizing, cost);
    for (size_t i = 0; i < RULES; i++)
        least = fmin(least, missed[i] = short_of(cost[i], want));
    for (size_t i = 0; i < RULES; i++) {
        double again = 0;
        if (least > 0)
            again = fmax(rules[i].forgets * least,
                         recommend_readiness_short(sizing, rules[i].share * sure, sure));
        else if (rules[i].period && missed[0] > CLEARLY && missed[i] == 0)
            r->doubt[i] *= FORESEEN;
        r->risk[i] += missed[i] * rate * span_s;
        r->doubt[i] += again * rate * span_s;
        r->cost[i] += cost[i] * span_s;
    }
    r->requests += rate * span_s;
    r->span_s += span_s;
}

static void forget(struct readiness *r, double span_s)
{
    double keep = exp2(-span_s / HALF_LIFE_S);
    for (size_t i = 0; i < RULES; i++) {
        r->risk[i] *= keep;
        r->doubt[i] *= keep;
        r->cost[i] *= keep;
    }
    r->requests *= keep;
    r->span_s *= keep;
}

void recommend_readiness_learn(struct readiness *r, struct sizing *sizing,
                               const struct readiness_sample *s)
{
    forget(r, s->span_s);
    if (r->bin != INT64_MIN)
        judge(r, sizing, s->span_s, s->rate);
    keep_peak(r, s->time_s, s->level);
    double hold_s = 0, peak = 0;
    for (size_t i = 0; i < RULES; i++) {
        if (rules[i].period) {
            peak = peak_a_period_ago(r, &rules[i], s->time_s);
        } else if (rules[i].hold_s != hold_s) { /* several in a row have the same */
            hold_s = rules[i].hold_s;
            peak = recommend_readiness_peak(r, hold_s);
        }
        r->ready[i] = fmax(s->level, rules[i].share * peak);
    }
}

/* --- the choice ------------------------------------------------------------------------------ */
static double risk_of(const struct readiness *r, size_t rule, double allowed)
{
    return (r->risk[rule] + r->doubt[rule]) / fmax(r->requests * allowed, 1);
}

struct readiness_choice recommend_readiness_choose(const struct readiness *r, double allowed,
                                                   double tolerance)
{
    size_t best = 0;
    double least = INFINITY, cost_unit = 1 / fmax(r->cost[0], SLACK);
    double risk_unit = 1 / fmax(r->requests * allowed, 1);
    for (size_t i = 0; i < RULES && r->span_s > 0; i++) {
        double risk = (r->risk[i] + r->doubt[i]) * risk_unit;
        double score = r->cost[i] * cost_unit + PRICE * fmax(risk - tolerance, 0);
        if (score < least) {
            least = score;
            best = i;
        }
    }
    return (struct readiness_choice){
        .rate = r->ready[best],
        .hold_s = rules[best].hold_s,
        .share = rules[best].share,
        .risk = risk_of(r, best, allowed),
        .risk_unready = risk_of(r, 0, allowed),
        .cost = r->cost[best] / fmax(r->cost[0], SLACK),
    };
}
