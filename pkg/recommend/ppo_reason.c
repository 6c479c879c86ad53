/* Why ppo decides so: the numbers of its model, what the policy changed and for what, and what is
 * expected of it. */
#include "recommend/ppo.h"

#define NAMED     2    /* features, at most */
#define MATTERS   0.1  /* nats: what moves choices by less is not named */
#define UNLIKELY  10   /* times the goal: an expectation that says no more than "late" */
#define LEAST_CPU 5    /* milli-cores: a smaller change is none */
#define LITTLE    0.05 /* of the CPU: less is not worth a resize by any guard, nor more words */

#define SITUATION      256 /* bytes of all that is said before what changes */
#define say(text, ...) recommend_say(text, SITUATION, __VA_ARGS__)

/* --- the policy ------------------------------------------------------------------------------ */
static bool corrects(const struct ppo_plan *plan)
{
    for (enum policy_head h = 0; h < POLICY_HEAD_COUNT; h++)
        if (plan->choices[h] != recommend_policy_heads[h].neutral)
            return true;
    return false;
}

static void say_choices(char *text, const struct ppo_plan *plan)
{
    static const char *const splits[] = {"", "fewest replicas", "same replicas"};
    const char *between = "; policy: ";
    for (enum policy_head h = 0; h < POLICY_HEAD_COUNT; h++) {
        if (plan->choices[h] == recommend_policy_heads[h].neutral)
            continue;
        if (h == POLICY_SPLIT)
            say(text, "%s%s", between, splits[plan->choices[h]]);
        else
            say(text, "%s%s %g", between, recommend_policy_heads[h].name,
                recommend_ppo_value(plan, h));
        between = ", ";
    }
}

/* What is not as usual, and without which it would not have been chosen. */
static void say_moved(char *text, const struct ppo *p, const struct ppo_plan *plan)
{
    double moved[POLICY_FEATURE_COUNT];
    recommend_policy_explain(p->policy, plan->features, p->usual, plan->mask, plan->choices, moved);
    for (int named = 0; named < NAMED; named++) {
        size_t most = 0;
        for (size_t i = 1; i < POLICY_FEATURE_COUNT; i++)
            if (moved[i] > moved[most])
                most = i;
        if (!(moved[most] >= MATTERS))
            return;
        say(text, "%s%s %s than usual", named ? ", " : " for ", recommend_policy_features[most],
            plan->features[most] > p->usual[most] ? "higher" : "lower");
        moved[most] = 0;
    }
}

/* --- what is expected ------------------------------------------------------------------------ */
/* By the model as late requests have corrected it, once what is decided is there. */
static void say_expected(char *text, const struct ppo *p, const struct look *l,
                         const struct recommendation *out)
{
    double pod = l->sized ? recommend_pod_milli(l->seen, out, true) : l->size.now;
    double more = pod * out->replicas - l->size.now * l->seen->replicas_wanted;
    struct queue_load load = {l->came / out->replicas, p->demand.mean_s, p->demand.tail_s, l->score,
                              l->goal_s};
    double latency_s = recommend_queue_latency(&load, pod / 1000 / exp(p->trim), l->quantile);
    char latency[24];
    if (!(pod > 0))
        return;
    duration_print(round(latency_s * 1e3) * 1e3, latency);
    if (latency_s > UNLIKELY * l->goal_s)
        say(text, "; expects p%g over goal", l->seen->percentile);
    else
        say(text, "; expects p%g %s", l->seen->percentile, latency);
    if (fabs(more) >= LEAST_CPU)
        say(text, ", cpu %+.2g core%s", more / 1000, fabs(more) == 1000 ? "" : "s");
}

/* --- the sentence ---------------------------------------------------------------------------- */
static bool changes(const struct recommendation *out, const struct look *l)
{
    return out->replicas != l->seen->replicas_wanted ||
           (l->sized &&
            fabs(recommend_pod_milli(l->seen, out, true) - l->size.now) >= LITTLE * l->size.now);
}

void recommend_ppo_tell(const struct ppo *p, const struct ppo_plan *plan,
                        struct recommendation *out)
{
    const struct look *l = plan->look;
    char situation[SITUATION] = "", mean[24], tail[24];
    duration_print(p->demand.mean_s * 1e6, mean);
    duration_print(p->demand.tail_s * 1e6, tail);
    say(situation, "rate %.3g/s, ready for %.3g/s of %s CPU each, p%g %s, trim %.2f", l->rate,
        plan->rate, mean, l->seen->percentile, tail, exp(p->trim));
    say_choices(situation, plan);
    if (changes(out, l)) {
        if (corrects(plan))
            say_moved(situation, p, plan);
        say_expected(situation, p, l, out);
    }
    recommend_reason_write(&(struct reason){.seen = l->seen, .situation = situation}, out);
}
