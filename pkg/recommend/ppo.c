/* The learned recommender: a model-based core says which replicas × CPU is the cheapest that keeps
 * the goal, a policy corrects how it is asked. Without a policy that fits it recommends nothing.
 * docs/ppo.md tells it in words. */
#include "recommend/ppo.h"

#define KEEP       1.08 /* a change of replicas must save more than this */
#define CAREFUL_AT 0.8  /* of the allowed late requests spent: from there on CPU grows */
#define CAREFUL    0.5  /* by this for as many again, */
#define MOST_CARE  0.5  /* of them at most: what a first burst has cost cannot be bought back */
#define MODEST     1.1  /* where CPU is short: times what the model, corrected, says, at most; */
#define STAY       1.25 /* what is there stays if another choice saves less than this; */
#define HOLD_AT    2    /* and with as much of the allowed late spent, what was needed lately is */
#define HOLD_S     600  /* held */
#define FEW        3    /* allowed late requests: fewer say little */

static void *ppo_create(double memory_s, const double *params)
{
    (void)memory_s;
    (void)params;
    return recommend_ppo_new();
}

static void ppo_destroy(void *self)
{
    recommend_ppo_free(self);
}

static int ppo_use(void *self, const struct recommend_policy *policy, struct error *err)
{
    struct ppo *p = self;
    if (policy && recommend_policy_check(policy, POLICY_OF_CORRECTIONS, err) < 0)
        return -1;
    const struct recommend_policy *before = p->policy;
    p->policy = recommend_policy_hold(policy);
    recommend_policy_release(before);
    return 0;
}

/* --- the choice ------------------------------------------------------------------------------ */
double recommend_ppo_value(const struct ppo_plan *plan, enum policy_head head)
{
    return recommend_policy_heads[head].values[plan->choices[head]];
}

/* How much of the allowed late requests is spent. What is gone makes careful. */
static double spent(const struct ppo *p, const struct look *l)
{
    return p->late / fmax((1 - l->quantile) * p->requests, FEW);
}

static double care(double spent_share)
{
    return 1 + CAREFUL * clamp(spent_share - CAREFUL_AT, 0, MOST_CARE);
}

static double cost_of(struct sizing_choice c)
{
    return c.replicas * c.milli;
}

static struct sizing_choice with_replicas(struct ppo *p, const struct ppo_plan *plan, int n)
{
    return (struct sizing_choice){n,
                                  recommend_sizing_milli(p->sizing, plan->rate / n, plan->factor)};
}

/* As few replicas as can take the rate. */
static struct sizing_choice fewest(struct ppo *p, const struct ppo_plan *plan, int first, int most)
{
    for (int n = first; n <= most; n++) {
        struct sizing_choice c = with_replicas(p, plan, n);
        if (isfinite(c.milli))
            return c;
    }
    return (struct sizing_choice){most, plan->look->size.max};
}

/* Others take at once what is given back where CPU is short: little is not worth that. */
static struct sizing_choice stay(const struct ppo_plan *plan, struct sizing_choice same,
                                 struct sizing_choice best)
{
    const struct look *l = plan->look;
    struct sizing_choice now = {same.replicas, l->size.now};
    bool is_enough =
        l->sized && l->even && same.replicas == l->seen->replicas_wanted && same.milli <= now.milli;
    return plan->is_short && is_enough && cost_of(now) <= STAY * cost_of(best) ? now : best;
}

/* Replicas stay where changing them saves little. Until new ones are ready, those that are there
 * get the CPU to do without them: that takes less than a second. */
static struct sizing_choice choose(struct ppo *p, const struct ppo_plan *plan)
{
    const struct observation *seen = plan->look->seen;
    int first = seen->min_replicas > 0 ? seen->min_replicas : 1, ready = plan->look->ready;
    int most = seen->max_replicas > first ? seen->max_replicas : first;
    int now = (int)clamp(seen->replicas_wanted, first, most), split = plan->choices[POLICY_SPLIT];
    struct sizing_choice same = with_replicas(p, plan, now);
    struct sizing_choice best =
        split == SPLIT_FEWEST ? fewest(p, plan, first, most)
                              : recommend_sizing_cheapest(p->sizing, plan->rate, plan->factor);
    if (isfinite(same.milli) && (split == SPLIT_KEEP || cost_of(same) <= KEEP * cost_of(best)))
        best = same;
    if (best.replicas > ready && ready > 0) {
        double boost = with_replicas(p, plan, ready).milli;
        best.milli = fmax(best.milli, fmin(boost, recommend_ppo_most_milli(p, plan->look)));
    }
    return stay(plan, same, best);
}

/* --- the recommender ------------------------------------------------------------------------- */
/* What the policy sees. */
static struct ppo_plan begin(const struct ppo *p, const struct look *l)
{
    struct ppo_plan plan = {.look = l, .choices = p->choices};
    recommend_ppo_features(p, l, plan.features);
    recommend_ppo_mask(p, l, plan.mask);
    return plan;
}

/* What its choices make of it. */
static void complete(const struct ppo *p, struct ppo_plan *plan)
{
    const struct look *l = plan->look;
    double gone = spent(p, l), left = clamp(2 * (1 - gone), 0, 1);
    plan->ready = recommend_readiness_choose(p->readiness, 1 - l->quantile,
                                             left * recommend_ppo_value(plan, POLICY_RISK));
    plan->rate = fmax(p->level * (1 + recommend_ppo_value(plan, POLICY_MARGIN)) + l->rate - l->came,
                      plan->ready.rate);
    plan->factor = exp(p->trim) * care(gone) * recommend_ppo_value(plan, POLICY_CPU);
    plan->is_short = recommend_ppo_is_short(p, l->seen->now_s);
    if (!plan->is_short)
        return;
    plan->factor = fmin(plan->factor, MODEST * fmax(1, exp(p->trim)));
    if (gone > HOLD_AT)
        plan->rate = fmax(plan->rate, recommend_readiness_peak(p->readiness, HOLD_S));
}

static void propose(struct ppo *p, const struct ppo_plan *plan, struct recommendation *out)
{
    const struct look *l = plan->look;
    p->aim = recommend_ppo_value(plan, POLICY_LATE);
    p->planned_rate = plan->rate;
    struct sizing_choice best = choose(p, plan);
    recommend_set_replicas(l->seen, best.replicas, out);
    if (l->sized && isfinite(best.milli))
        recommend_set_pod_cpu(l->seen, best.milli, out);
    p->asked_size = best.milli;
    p->asked_milli = l->sized ? best.replicas * best.milli : 0;
}

static int ppo_recommend(void *self, const struct observation *seen, struct recommendation *out,
                         struct error *err)
{
    struct ppo *p = self;
    struct look l;
    if (recommend_look(&p->look, seen, &l, err) < 0)
        return -1;
    bool known = recommend_ppo_learn(p, &l);
    recommend_look_keep(&p->look, &l);
    if (!p->policy) /* what it has seen meanwhile it knows when one comes */
        return error_set(err, ERROR_UNAVAILABLE, "no policy is loaded");
    recommend_keep(seen, out);
    if (!known)
        return 0;
    struct ppo_plan plan = begin(p, &l);
    recommend_policy_choose(p->policy, plan.features, plan.mask, p->choices);
    complete(p, &plan);
    propose(p, &plan, out);
    recommend_ppo_get_used(p, plan.features);
    return 0;
}

/* The same plan once more: nothing is learned from an interval twice. */
static void ppo_explain(void *self, const struct observation *seen, struct recommendation *out)
{
    const struct ppo *p = self;
    struct look l;
    if (recommend_look(&p->look, seen, &l, &(struct error){0}) < 0 || isnan(p->demand.mean_s)) {
        recommend_reason_write(
            &(struct reason){.seen = seen, .situation = "nothing known of its requests yet"}, out);
        return;
    }
    struct ppo_plan plan = begin(p, &l);
    complete(p, &plan);
    recommend_ppo_tell(p, &plan, out);
}

const struct recommender recommend_ppo = {
    .name = "ppo",
    .summary = "a learned policy that corrects a model-based core; needs --policy",
    .damps_itself = true,
    .create = ppo_create,
    .destroy = ppo_destroy,
    .use = ppo_use,
    .recommend = ppo_recommend,
    .explain = ppo_explain,
};
