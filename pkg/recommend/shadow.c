/* What would have been: a recommendation that nobody carries out, held against what was. */
#include "recommend/internal.h"

#define LONGEST_S 600.0 /* an interval: after a longer one nobody knows what was in between */

struct recommend_shadow {
    struct look_memory look;
    struct recommend_shadow_sums sums;
    double time_s; /* of the last recommendation, NaN: there is none */
    int replicas;  /* which was this, */
    double milli;  /* of each, */
    double served; /* and of those of its containers that requests run in */
};

struct recommend_shadow *recommend_shadow_new(const struct recommend_shadow_sums *from)
{
    struct recommend_shadow *s = xcalloc(1, sizeof(*s));
    recommend_look_init(&s->look);
    s->time_s = NAN;
    if (from)
        s->sums = *from;
    return s;
}

void recommend_shadow_free(struct recommend_shadow *s)
{
    if (s)
        recommend_look_clear(&s->look);
    free(s);
}

struct recommend_shadow_sums recommend_shadow_sums(const struct recommend_shadow *s)
{
    return s->sums;
}

/* --- late requests ---------------------------------------------------------------------------- */
static void judge(struct recommend_shadow *s, const struct look *l, const struct demand_estimate *e)
{
    double requests = l->came * l->span_s;
    struct queue_load load = {l->came / s->replicas, e->mean_s, e->tail_s, l->score, l->goal_s};
    s->sums.judged_s += l->span_s;
    s->sums.requests += requests;
    s->sums.late += recommend_look_late(l);
    if (requests > 0)
        s->sums.late_recommended += requests * recommend_queue_late(&load, s->served / 1000);
}

static void learn(struct recommend_shadow *s, const struct observation *seen, bool counts)
{
    struct look l;
    struct error err;
    if (recommend_look(&s->look, seen, &l, &err) < 0 || !(l.span_s > 0))
        return;
    recommend_look_learn(&s->look, &l, recommend_look_tail(&s->look, &l));
    recommend_look_keep(&s->look, &l);
    struct demand_estimate e = recommend_demand_estimate(s->look.demand, l.quantile, l.guess_s);
    if (counts && is_amount(e.mean_s) && is_amount(e.tail_s))
        judge(s, &l, &e);
}

/* --- an interval ------------------------------------------------------------------------------ */
void recommend_shadow_add(struct recommend_shadow *s, const struct observation *seen,
                          const struct recommendation *recommended)
{
    double span_s = seen->now_s - s->time_s;
    bool counts = span_s > 0 && span_s <= LONGEST_S; /* not where it is NaN */
    if (span_s <= 0)
        return;
    learn(s, seen, counts);
    if (counts) {
        s->sums.span_s += span_s;
        s->sums.core_s +=
            seen->replicas_wanted * recommend_pod_milli(seen, NULL, false) / 1000 * span_s;
        s->sums.core_s_recommended += s->replicas * s->milli / 1000 * span_s;
    }
    s->time_s = seen->now_s;
    s->replicas = recommended->replicas > 0 ? recommended->replicas : 1;
    s->milli = recommend_pod_milli(seen, recommended, false);
    s->served = recommend_pod_milli(seen, recommended, recommend_pod_size(seen).ours);
}
