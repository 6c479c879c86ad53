/* The model-based core of ppo: how many requests come, what they cost, what to be ready for, and
 * how far the model has to be corrected so that as many are late as are meant to be. */
#include "recommend/ppo.h"

#define LEVEL_S      60.0
#define SLOW_LEVEL_S 600.0
#define PLANNED_LATE 0.7 /* of the allowed late requests: what the model plans for */
#define TRIM_STEP    0.1 /* of its logarithm, for one late request or as many as are allowed */
#define TRIM_UP      0.4 /* at most in one interval */
#define TRIM_DOWN    0.03
#define TRIM_LEAST   (-0.9)
#define TRIM_MOST    1.1
#define AIM_LEAST    0.1
#define HELPLESS     0.9  /* of the goal: a demand that leaves no time to wait */
#define FEW          2    /* requests that may be late: of more it is not one that is looked at */
#define SETTLES_S    40.0 /* after a surprise: until then its requests are still being answered */
#define SPENT_S      14400.0
#define PATIENCE_S   50.0 /* until what was asked for has to be there */
#define NEARLY       0.9  /* of it */
#define SHORT_S      3600 /* after CPU was not to be had: for so long it counts as short */
#define FITS         0.8  /* of the goal: what a lone request may take in a pod of that size */

struct ppo *recommend_ppo_new(void)
{
    struct ppo *p = xcalloc(1, sizeof(*p));
    recommend_look_init(&p->look);
    p->rates = recommend_window_new(SLOW_LEVEL_S);
    p->sizing = recommend_sizing_new();
    p->readiness = recommend_readiness_new();
    p->aim =
        recommend_policy_heads[POLICY_LATE].values[recommend_policy_heads[POLICY_LATE].neutral];
    p->surprised_s = p->asked_since_s = p->denied_s = p->reach = NAN;
    return p;
}

void recommend_ppo_free(struct ppo *p)
{
    recommend_policy_release(p->policy);
    recommend_look_clear(&p->look);
    recommend_window_free(p->rates);
    recommend_sizing_free(p->sizing);
    recommend_readiness_free(p->readiness);
    free(p);
}

/* --- what nodes have ------------------------------------------------------------------------- */
bool recommend_ppo_is_short(const struct ppo *p, double now_s)
{
    return now_s - p->denied_s < SHORT_S; /* not where it is NaN */
}

/* To ask for what a node has refused, again and again, is to have too little all the while: more
 * pods are the way then, where there may be any, and unless a request alone needs a larger one. */
double recommend_ppo_most_milli(const struct ppo *p, const struct look *l)
{
    bool may_be_more = l->seen->max_replicas > fmax(l->seen->min_replicas, 1);
    if (!l->sized || isnan(p->reach) || !recommend_ppo_is_short(p, l->seen->now_s))
        return l->size.max;
    bool fits = p->demand.tail_s < FITS * l->goal_s * fmin(1, p->reach / 1000);
    return fits && may_be_more ? clamp(p->reach, l->size.min, l->size.max) : l->size.max;
}

/* Whether nodes have the CPU that was asked for. */
static void learn_denied(struct ppo *p, const struct look *l)
{
    double now_s = l->seen->now_s, has = l->ready * l->size.now;
    if (l->even && has >= NEARLY * p->asked_milli) {
        p->asked_since_s = NAN;
        return;
    }
    if (isnan(p->asked_since_s))
        p->asked_since_s = now_s;
    if (!(now_s - p->asked_since_s > PATIENCE_S))
        return;
    p->denied_s = now_s;
    if (l->size.now > 0 && l->size.now < NEARLY * p->asked_size)
        p->reach = l->size.now;
}

/* --- the rate -------------------------------------------------------------------------------- */
static void learn_level(struct ppo *p, const struct look *l)
{
    double now_s = l->seen->now_s, before = recommend_window_mean(p->rates, now_s - LEVEL_S);
    recommend_window_add(p->rates, now_s, l->span_s, l->came);
    p->level = recommend_window_mean(p->rates, now_s - LEVEL_S);
    p->slow_level = recommend_window_mean(p->rates, now_s - SLOW_LEVEL_S);
    if (recommend_is_burst(l->came, isnan(before) ? 0 : before, l->span_s))
        p->level = fmax(p->level, l->came);
}

static void set_sizing(struct ppo *p, const struct look *l)
{
    const struct observation *seen = l->seen;
    struct pod_size size = l->size;
    size.max = recommend_ppo_most_milli(p, l);
    int first = seen->min_replicas > 0 ? seen->min_replicas : 1;
    recommend_sizing_set(
        p->sizing, &(struct sizing_task){
                       .mean_s = p->demand.mean_s,
                       .tail_s = p->demand.tail_s,
                       .tail_score = l->score,
                       .goal_s = l->goal_s,
                       .allowed = 1 - l->quantile,
                       .late = PLANNED_LATE,
                       .size = size,
                       .least_replicas = first,
                       .most_replicas = seen->max_replicas > first ? seen->max_replicas : first,
                   });
}

/* --- late requests --------------------------------------------------------------------------- */
static bool is_surprised(const struct ppo *p, const struct look *l)
{
    return l->seen->now_s - p->surprised_s < SETTLES_S; /* not where it is NaN */
}

static void learn_spent(struct ppo *p, const struct look *l)
{
    double keep = exp2(-l->span_s / SPENT_S);
    p->span_s = l->span_s;
    p->late_now = recommend_look_late(l);
    p->late = p->late * keep + p->late_now;
    p->lost = p->lost * keep + (is_surprised(p, l) ? p->late_now : 0);
    p->requests = p->requests * keep + l->seen->requests_per_s * l->span_s;
}

/* The model is to blame for late requests only where it was ready for so many and all replicas were
 * there with their CPU; and not for one that would have been late alone. Where they were not there
 * it is to be praised all the same: else what was asked for in need, and never came, would be asked
 * for ever after. What surprises have cost is no longer there to be spent. */
static void learn_trim(struct ppo *p, const struct look *l, double tail_s)
{
    double requests = l->seen->requests_per_s * l->span_s, allowed = (1 - l->quantile) * requests;
    double aim = fmax(p->aim - p->lost / fmax((1 - l->quantile) * p->requests, 1), AIM_LEAST);
    bool there = l->even && l->ready >= l->seen->replicas_wanted;
    if (!recommend_latency_known(l->seen) || is_surprised(p, l))
        return;
    if (there && allowed < FEW && tail_s > HELPLESS * l->goal_s) {
        p->lost += p->late_now;
        return;
    }
    double step = TRIM_STEP * (p->late_now - aim * allowed) / fmax(1, allowed);
    p->trim = clamp(p->trim + clamp(step, -TRIM_DOWN, there ? TRIM_UP : 0), TRIM_LEAST, TRIM_MOST);
}

static void learn_surprise(struct ppo *p, const struct look *l)
{
    double sure = recommend_readiness_sure(l->came, l->span_s);
    p->short_now =
        p->planned_rate > 0 ? recommend_readiness_short(p->sizing, p->planned_rate, sure) : 0;
    if (p->short_now > 0)
        p->surprised_s = l->seen->now_s;
}

bool recommend_ppo_learn(struct ppo *p, const struct look *l)
{
    bool again = !(l->span_s > 0);
    double tail_s = again ? NAN : recommend_look_tail(&p->look, l);
    if (!again)
        recommend_look_learn(&p->look, l, tail_s);
    p->demand = recommend_demand_estimate(p->look.demand, l->quantile, l->guess_s);
    if (!again)
        learn_level(p, l);
    if (isnan(p->demand.mean_s))
        return false;
    set_sizing(p, l);
    if (again)
        return true;
    learn_denied(p, l);
    learn_surprise(p, l);
    learn_spent(p, l);
    learn_trim(p, l, tail_s);
    recommend_readiness_learn(
        p->readiness, p->sizing,
        &(struct readiness_sample){l->seen->now_s, l->span_s, l->came, p->level});
    return true;
}
