/* oracle-requests: knows every request that will come, and tries in copies of the cluster what it
 * could do until the next decision. Greedy: it takes the cheapest that keeps the goal so far. On
 * functions with few requests it drops to the least between any two of them, which nobody can do
 * who does not know the future: a floor to costs, not a goal. */
#include "trial/internal.h"

#include <math.h>
#include <stdio.h>

#define SIZE_RATIO 1.2
#define GIVE_UP    3   /* after so many counts of replicas in a row that are no cheaper */
#define AT_LEAST   0.7 /* of the CPU that requests need on average must be there */

struct outcome {
    int replicas;
    double milli;
    double late; /* requests; beyond what is allowed only where nothing is allowed */
};

struct search {
    const struct oracle *oracle;
    double next_s, until_s; /* the next decision, and when its effect is known */
    int most_replicas;
    double most_milli;
    double allowed; /* late requests until then */
    double work;    /* expected of requests until then, in milli-cores */
    struct outcome best;
    bool found;
};

static double cost_of(const struct outcome *o)
{
    return o->replicas * o->milli;
}

/* Late requests, were it so until the next decision, and that one gave them all there is. */
static double late_with(const struct search *s, int replicas, double milli)
{
    const struct oracle_world *w = &s->oracle->world;
    struct cluster *copy = cluster_clone(w->cluster);
    struct cluster_state before, after;
    cluster_begin_interval(copy);
    cluster_state(copy, w->function, &before);
    cluster_scale(copy, w->function, replicas);
    cluster_resize(copy, w->function, ceil(milli),
                   before.limit_milli > 0 ? oracle_limit_milli(w, ceil(milli)) : 0);
    cluster_run(copy, s->next_s);
    cluster_scale(copy, w->function, s->most_replicas);
    cluster_resize(copy, w->function, s->most_milli,
                   before.limit_milli > 0 ? oracle_limit_milli(w, s->most_milli) : 0);
    cluster_run(copy, s->until_s);
    const struct cluster_stats *stats = cluster_stats(copy, w->function);
    cluster_state(copy, w->function, &after);
    double late = (double)(stats->late + stats->lost + after.overdue) - (double)before.overdue;
    cluster_free(copy);
    return late;
}

/* Whether it is now the best: the cheapest of those within what is allowed, else the least late. */
static bool try(struct search *s, int replicas, double milli)
{
    struct outcome o = {replicas, milli, late_with(s, replicas, milli)};
    bool allowed = o.late <= s->allowed, have = s->best.replicas > 0;
    bool better = allowed != s->found ? allowed
                  : allowed           ? cost_of(&o) < cost_of(&s->best)
                                      : o.late < s->best.late;
    if (!have || better) {
        s->best = o;
        s->found = allowed;
    }
    return allowed;
}

/* The least size that n replicas can do with: bisection, and never dearer than the best. */
static void try_sizes(struct search *s, int n, double low, double high)
{
    if (s->found)
        high = fmin(high, cost_of(&s->best) / n / SIZE_RATIO);
    if (high < low || !try(s, n, high))
        return;
    low = fmin(fmax(low, AT_LEAST * s->work / n), high);
    int steps = (int)ceil(log(high / low) / log(SIZE_RATIO));
    int least = 0, most = steps;
    while (least < most) {
        int middle = (least + most) / 2;
        if (try(s, n, low * pow(high / low, (double)middle / steps)))
            most = middle;
        else
            least = middle + 1;
    }
}

static void search(struct search *s, const struct observation *seen)
{
    const struct recommend_container *c = &seen->containers[0];
    bool fixed = !c->controlled[RECOMMEND_CPU];
    double low = fixed ? c->request[RECOMMEND_CPU] : c->min[RECOMMEND_CPU];
    double high = fixed ? c->request[RECOMMEND_CPU] : c->max[RECOMMEND_CPU];
    int first = seen->min_replicas > 0 ? seen->min_replicas : 1, vain = 0;
    first = (int)fmin(fmax(first, ceil(AT_LEAST * s->work / high)), seen->max_replicas);
    for (int n = first; n <= seen->max_replicas && vain < GIVE_UP; n++) {
        double before = s->found ? cost_of(&s->best) : INFINITY;
        try_sizes(s, n, low, high);
        vain = s->found && cost_of(&s->best) >= before ? vain + 1 : 0;
    }
}

static int floor_recommend(void *self, const struct observation *seen, struct recommendation *out,
                           struct error *err)
{
    struct oracle *o = self;
    const struct oracle_world *w = &o->world;
    const struct cluster_function *f = w->settings;
    const struct cluster_stats *stats = cluster_stats(w->cluster, w->function);
    struct cluster_state state;
    (void)err;
    cluster_state(w->cluster, w->function, &state);
    o->budget += w->late_share * (double)stats->arrived - (double)(stats->late + stats->lost);
    double span_s = w->interval_s + f->resize_s + f->goal_ms / 1000;
    double coming = (double)cluster_peek(w->cluster, w->function, span_s, NULL, 0);
    double soon = (double)cluster_peek(w->cluster, w->function, w->interval_s, NULL, 0);
    struct search s = {
        .oracle = o,
        .next_s = seen->now_s + w->interval_s,
        .until_s = seen->now_s + span_s,
        .most_replicas = seen->max_replicas,
        .most_milli = seen->containers[0].controlled[RECOMMEND_CPU]
                          ? seen->containers[0].max[RECOMMEND_CPU]
                          : seen->containers[0].request[RECOMMEND_CPU],
        .allowed = fmax(o->budget - (double)state.overdue + w->late_share * soon, 0),
        .work = coming * trace_slowdown(f->workload, seen->now_s + w->interval_s) *
                trace_mean_cpu_ms(f->workload) / span_s,
        .best = {seen->min_replicas > 0 ? seen->min_replicas : 1,
                 seen->containers[0].min[RECOMMEND_CPU], 0},
        .found = true,
    };
    if (coming + (double)(state.in_flight + state.waiting) > 0) {
        s.best = (struct outcome){0};
        s.found = false;
        search(&s, seen);
    }
    oracle_propose(seen, s.best.replicas, s.best.milli, out);
    char amount[32];
    snprintf(out->reason, sizeof(out->reason), "%g requests will come: %d × %s", coming,
             s.best.replicas, recommend_print_amount(RECOMMEND_CPU, ceil(s.best.milli), amount));
    return 0;
}

const struct recommender trial_oracle_requests = {
    .name = "oracle-requests",
    .summary = "knows every request that will come: a floor to costs, not a goal",
    .damps_itself = true,
    .create = oracle_create,
    .destroy = oracle_destroy,
    .recommend = floor_recommend,
};
