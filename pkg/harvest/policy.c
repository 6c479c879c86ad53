#include "harvest/policy.h"

#include "harvest/safeguard.h"

#include <math.h>
#include <string.h>

#define LEAST_REWARD (-10.0)
#define SHORT_S      1.0 /* waiting is not counted against less */
#define OPTION_SIZE  14
#define STATE_SIZE   16
#define MOST_OPTIONS 64 /* of a resource */

struct harvest_policy {
    bool safeguard;
    struct rl_score *score;
};

double harvest_reward(const struct harvest_outcome *o)
{
    return fmax(-(harvest_rfet(o) + o->wait_s / fmax(o->user_s, SHORT_S)), LEAST_REWARD);
}

/* --- what is seen ------------------------------------------------------------------------------
 */
enum way { BY_LEARNING, BY_SCORE, BY_CHANCE };

struct run {
    enum way way;
    bool safeguard;
    struct rl_score *score;     /* learns */
    const struct rl_net *actor; /* or only scores */
    struct rl_work work;
    struct random random;
    struct safeguard (*guards)[HARVEST_RESOURCES];          /* (functions) */
    struct safeguard_options (*options)[HARVEST_RESOURCES]; /* (invocations) they began with */
    size_t *decisions;                                      /* (invocations) */
};

static float log_scale(double seconds)
{
    return (float)(log(seconds + 1e-3) / 7);
}

/* Of platform and function, whatever the resource. */
static void look(const struct harvest_view *view, float *to)
{
    const struct harvest_cluster *c = view->cluster;
    const struct harvest_record *record = view->record;
    double workers = (double)c->workers;
    to[0] = (float)fmin((double)view->in_flight / (workers * c->capacity[HARVEST_CPU]), 2);
    for (int k = 0; k < HARVEST_RESOURCES; k++)
        to[1 + k] = (float)(view->free[k] / (workers * c->capacity[k]));
    to[3] = log_scale(record->interval_s);
    to[4] = log_scale(record->mean_execution_s);
    to[5] = log_scale(record->first_execution_s);
}

/* How much of what it had the last one used. */
static float used_share(const struct harvest_record *record, int k)
{
    return record->done > 0 ? (float)(record->last_peak[k] / record->last_given[k]) : 0;
}

static void look_at_option(const struct harvest_view *view, const struct safeguard *guard, int k,
                           double option, float *to)
{
    double most = view->cluster->most[k];
    look(view, to);
    to[6] = k == HARVEST_CPU ? 1 : -1;
    to[7] = (float)(view->user[k] / most);
    to[8] = (float)(view->record->mean_peak[k] / most);
    to[9] = (float)(guard->highest_peak / most);
    to[10] = (float)(view->record->last_peak[k] / most);
    to[11] = used_share(view->record, k);
    to[12] = (float)(option / most);
    to[13] = (float)((option - guard->highest_peak) / most);
}

static void look_at_all(const struct harvest_view *view, const struct safeguard_options *options,
                        float *to)
{
    look(view, to);
    for (int k = 0; k < HARVEST_RESOURCES; k++) {
        double most = view->cluster->most[k];
        float *of = to + 6 + 5 * k;
        of[0] = (float)(view->user[k] / most);
        of[1] = (float)(view->record->mean_peak[k] / most);
        of[2] = (float)(options[k].low / most);
        of[3] = (float)(options[k].high / most);
        of[4] = used_share(view->record, k);
    }
}

/* --- choosing ----------------------------------------------------------------------------------
 */
static struct safeguard_options find_options(const struct run *r, const struct harvest_view *view,
                                             int k)
{
    const struct harvest_cluster *c = view->cluster;
    struct safeguard_limits limits = {view->user[k], c->most[k], c->step[k]};
    if (r->safeguard)
        return safeguard_options(&r->guards[view->function][k], &limits);
    size_t count = (size_t)(c->most[k] / c->step[k]);
    return (struct safeguard_options){SAFEGUARD_UNDER, c->step[k], c->most[k], c->step[k], count};
}

static void choose(struct run *r, const struct harvest_view *view, const struct rl_heads *heads,
                   const float *rows, int32_t *action)
{
    float state[STATE_SIZE];
    switch (r->way) {
    case BY_LEARNING:
        look_at_all(view, r->options[view->invocation], state);
        r->decisions[view->invocation] = rl_score_act(r->score, heads, rows, state, action);
        return;
    case BY_SCORE:
        rl_score_best(r->actor, heads, rows, &r->work, action);
        return;
    case BY_CHANCE:
        for (size_t h = 0; h < heads->count; h++)
            action[h] = (int32_t)random_below(&r->random, heads->options[h]);
    }
}

static void decide(void *self, const struct harvest_view *view, double *wanted)
{
    struct run *r = self;
    struct safeguard_options *options = r->options[view->invocation];
    struct rl_heads heads = {.count = HARVEST_RESOURCES};
    float rows[HARVEST_RESOURCES * MOST_OPTIONS][OPTION_SIZE];
    int32_t action[HARVEST_RESOURCES];
    for (int k = 0; k < HARVEST_RESOURCES; k++) {
        options[k] = find_options(r, view, k);
        heads.options[k] = options[k].count;
        for (size_t i = 0; i < options[k].count; i++)
            look_at_option(view, &r->guards[view->function][k], k, safeguard_option(&options[k], i),
                           rows[heads.total++]);
    }
    choose(r, view, &heads, rows[0], action);
    for (int k = 0; k < HARVEST_RESOURCES; k++)
        wanted[k] = safeguard_option(&options[k], (size_t)action[k]);
}

static void see(void *self, const struct harvest_view *view, const struct harvest_outcome *o)
{
    struct run *r = self;
    for (int k = 0; k < HARVEST_RESOURCES; k++)
        safeguard_see(&r->guards[view->function][k], &r->options[view->invocation][k], o->given[k],
                      o->peak[k]);
    if (r->way == BY_LEARNING)
        rl_score_reward(r->score, r->decisions[view->invocation], harvest_reward(o));
}

static void run(struct run *r, const struct harvest_cluster *cluster,
                const struct harvest_workload *load, struct harvest_outcome *outcomes)
{
    const struct harvest_manager manager = {"FaaSRM", decide, see};
    r->guards = xcalloc(load->function_count, sizeof(*r->guards));
    r->options = xcalloc(load->invocation_count, sizeof(*r->options));
    r->decisions = xcalloc(load->invocation_count, sizeof(*r->decisions));
    harvest_run(cluster, load, &manager, r, outcomes);
    rl_work_clear(&r->work);
    free(r->guards);
    free(r->options);
    free(r->decisions);
}

/* --- the policy --------------------------------------------------------------------------------
 */
struct harvest_policy *harvest_policy_new(const struct rl_ppo_config *config, bool safeguard,
                                          size_t updates, uint64_t seed, struct error *err)
{
    struct rl_score *score = rl_score_new(config, OPTION_SIZE, STATE_SIZE, updates, seed, err);
    if (score == NULL)
        return NULL;
    struct harvest_policy *p = xcalloc(1, sizeof(*p));
    *p = (struct harvest_policy){safeguard, score};
    return p;
}

void harvest_policy_free(struct harvest_policy *p)
{
    if (p == NULL)
        return;
    rl_score_free(p->score);
    free(p);
}

int harvest_policy_train(struct harvest_policy *p, const struct harvest_cluster *cluster,
                         const struct harvest_workload *load, struct harvest_outcome *outcomes,
                         struct error *err)
{
    struct rl_ppo_report report;
    struct run r = {.way = BY_LEARNING, .safeguard = p->safeguard, .score = p->score};
    run(&r, cluster, load, outcomes);
    return rl_score_update(p->score, &report, err);
}

void harvest_policy_run(const struct harvest_policy *p, const struct harvest_cluster *cluster,
                        const struct harvest_workload *load, struct harvest_outcome *outcomes)
{
    struct run r = {.way = BY_SCORE, .safeguard = p->safeguard, .actor = rl_score_actor(p->score)};
    run(&r, cluster, load, outcomes);
}

void harvest_chance_run(const struct harvest_cluster *cluster, const struct harvest_workload *load,
                        uint64_t seed, struct harvest_outcome *outcomes)
{
    struct run r = {.way = BY_CHANCE, .safeguard = true, .random = random_stream(seed, 37)};
    run(&r, cluster, load, outcomes);
}
