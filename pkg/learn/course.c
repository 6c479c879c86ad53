/* Where one function is on its way to a policy of its own. */
#include "learn/learn.h"

#include <math.h>
#include <stdio.h>

#define BLOCK        8     /* intervals: as drift has them */
#define FAR_WORSE    4.0   /* deviations of the difference of two means */
#define WORSE_BY     0.05  /* of what was earned before: less is not worth going back for */
#define RECENT_S     480.0 /* what a drift has shown at the least */
#define PATTERNS     240   /* blocks that are kept of what the load was like */
#define LEAST_SPREAD 0.01
#define RESTRAINT    40 /* proposals that are looked back on */

const struct learn_rules learn_rules_default = {
    .after_s = 600,
    .requests = 300,
    .patience_s = 600,
    .renew_s = 86400,
    .retry_s = 600,
    .probation_s = 86400,
    .probation_blocks = 30,
    .usual_s = 86400,
    .held_back = 21,
    .drift = {.block = 8, .learn = 128, .slack = 0.5, .limit = 14, .floor = 0.005},
};

struct ledger { /* what a policy has earned, by blocks */
    double blocks, mean, squares;
    double sum; /* of the block that is being filled */
    size_t filled;
};

enum { LOAD, CHANGE, COST, PATTERN_FEATURES };

struct learn_course {
    struct learn_rules rules;
    enum learn_stage stage;
    struct recommend_record *record;
    const struct recommend_policy *general;
    const struct recommend_policy *own;    /* NULL: the general one */
    const struct recommend_policy *before; /* of the one on probation; NULL: the general one */
    struct ledger ledger, ledger_before;
    double began_s;  /* this course, */
    double taken_s;  /* the policy on probation; NaN: none is */
    double next_s;   /* when something is looked for at the earliest */
    bool past, busy; /* it is known; a search is under way */
    bool changed;    /* what a request costs is of late only */
    struct rl_drift rewards, demand;
    struct rl_inputs *inputs; /* what the load is like: rows of pattern */
    float pattern[PATTERN_FEATURES];
    double watched_s;   /* since when it is learned; */
    bool sealed;        /* since then it is judged */
    double earned;      /* in the last interval */
    uint64_t restraint; /* bit i: the proposal i intervals ago was held back; the lowest 40 */
    char why[160];
};

static const char *const names[LEARN_STAGE_COUNT] = {
    [LEARN_BEGIN] = "Bootstrapping",
    [LEARN_WATCH] = "Watching",
    [LEARN_SERVE] = "Serving",
    [LEARN_AGAIN] = "Retraining",
};

const char *learn_stage_name(enum learn_stage stage)
{
    return names[stage];
}

struct learn_course *learn_course_new(const struct learn_rules *rules,
                                      const struct recommend_policy *general, double now_s,
                                      struct error *err)
{
    struct learn_course *c = xcalloc(1, sizeof(*c));
    c->rules = *rules;
    c->earned = NAN;
    c->inputs = rl_inputs_new(PATTERN_FEATURES, BLOCK, PATTERNS, 1, err);
    if (!c->inputs || rl_drift_init(&c->rewards, &rules->drift, err) < 0 ||
        rl_drift_init(&c->demand, &rules->drift, err) < 0) {
        rl_inputs_free(c->inputs);
        free(c);
        return NULL;
    }
    c->pattern[LOAD] = c->pattern[COST] = NAN;
    c->record = recommend_record_new();
    c->general = recommend_policy_hold(general);
    c->began_s = c->watched_s = now_s;
    c->taken_s = NAN;
    return c;
}

void learn_course_free(struct learn_course *c)
{
    if (c == NULL)
        return;
    recommend_record_free(c->record);
    rl_inputs_free(c->inputs);
    recommend_policy_release(c->general);
    recommend_policy_release(c->own);
    recommend_policy_release(c->before);
    free(c);
}

struct recommend_record *learn_course_record(struct learn_course *c)
{
    return c->record;
}

enum learn_stage learn_course_stage(const struct learn_course *c)
{
    return c->stage;
}

const struct recommend_policy *learn_course_policy(const struct learn_course *c)
{
    if (c->stage == LEARN_BEGIN || c->stage == LEARN_AGAIN)
        return NULL;
    return c->own ? c->own : c->general;
}

bool learn_course_has_own(const struct learn_course *c)
{
    return c->own != NULL;
}

double learn_course_earned(const struct learn_course *c)
{
    return c->earned;
}

const char *learn_course_why(const struct learn_course *c)
{
    return c->why;
}

void learn_course_has_past(struct learn_course *c)
{
    c->past = true;
}

/* --- who decides -------------------------------------------------------------------------------
 */
static void swap(const struct recommend_policy **at, const struct recommend_policy *policy)
{
    const struct recommend_policy *old = *at;
    *at = policy ? recommend_policy_hold(policy) : NULL;
    recommend_policy_release(old);
}

/* What was earned and seen so far was another policy's. */
static void serve(struct learn_course *c, const struct recommend_policy *own)
{
    swap(&c->own, own);
    c->ledger = (struct ledger){0};
    c->changed = false;
    c->restraint = 0;
    c->stage = LEARN_SERVE;
    rl_drift_forget(&c->rewards);
    rl_drift_forget(&c->demand);
}

void learn_course_resume(struct learn_course *c, const struct recommend_policy *own)
{
    c->past = true;
    c->next_s = c->began_s + c->rules.renew_s;
    serve(c, own);
}

void learn_course_renew(struct learn_course *c)
{
    c->next_s = c->began_s;
}

/* --- probation ---------------------------------------------------------------------------------
 */
static void enter(struct ledger *l, double earned)
{
    if (isnan(earned))
        return;
    l->sum += earned;
    if (++l->filled < BLOCK)
        return;
    double x = l->sum / BLOCK, delta = x - l->mean;
    l->blocks++;
    l->mean += delta / l->blocks;
    l->squares += delta * (x - l->mean);
    l->sum = 0;
    l->filled = 0;
}

static double error_of_mean(const struct ledger *l)
{
    return fmax(l->squares / (l->blocks - 1), LEAST_SPREAD * LEAST_SPREAD) / l->blocks;
}

static bool earns_less(const struct learn_course *c)
{
    const struct ledger *now = &c->ledger, *then = &c->ledger_before;
    double least = (double)c->rules.probation_blocks;
    if (now->blocks < least || then->blocks < least)
        return false;
    double less = then->mean - now->mean;
    return less > WORSE_BY * fabs(then->mean) &&
           less > FAR_WORSE * sqrt(error_of_mean(now) + error_of_mean(then));
}

static bool look_back(struct learn_course *c, double now_s)
{
    if (isnan(c->taken_s))
        return false;
    if (now_s - c->taken_s > c->rules.probation_s) {
        c->taken_s = NAN;
        swap(&c->before, NULL);
        return false;
    }
    if (!earns_less(c))
        return false;
    snprintf(c->why, sizeof(c->why), "it earned %.3f an interval, and the one before %.3f",
             c->ledger.mean, c->ledger_before.mean);
    struct ledger before = c->ledger_before;
    serve(c, c->before);
    swap(&c->before, NULL);
    c->ledger = before;
    c->taken_s = NAN;
    c->next_s = now_s + c->rules.renew_s;
    return true;
}

/* --- drift -------------------------------------------------------------------------------------
 */
/* How much comes, how much that changes from one interval to the next, and what it costs. What was
 * usual once stays so: after a change the new is learned beside it. */
static bool is_unusual(struct learn_course *c, const struct record_interval *i, double now_s)
{
    struct error err;
    if (i->demand_s > 0)
        c->pattern[COST] = (float)log(i->demand_s);
    if (isnan(i->requests))
        return false;
    float before = c->pattern[LOAD];
    c->pattern[LOAD] = (float)log1p(i->requests);
    c->pattern[CHANGE] = fabsf(c->pattern[LOAD] - before);
    if (isnan(before) || isnan(c->pattern[COST]))
        return false;
    if (c->sealed)
        return rl_inputs_add(c->inputs, c->pattern);
    rl_inputs_learn(c->inputs, c->pattern, false);
    c->sealed = now_s - c->watched_s >= c->rules.usual_s && rl_inputs_seal(c->inputs, &err) == 0;
    return false;
}

static bool is_restrained(struct learn_course *c, bool held_back)
{
    c->restraint = (c->restraint << 1 | held_back) & ((1ull << RESTRAINT) - 1);
    int count = __builtin_popcountll(c->restraint);
    if (count < c->rules.held_back)
        return false;
    snprintf(c->why, sizeof(c->why), "the guard held back %d of its last %d proposals", count,
             RESTRAINT);
    return true;
}

static bool drifted(struct learn_course *c, const struct record_interval *i, double now_s)
{
    unsigned rewards = rl_drift_add(&c->rewards, i->earned);
    unsigned demand = rl_drift_add(&c->demand, log(i->demand_s));
    bool unusual = is_unusual(c, i, now_s);
    const char *what = demand & RL_DRIFT_BETTER    ? "its requests cost more CPU than they did"
                       : demand & RL_DRIFT_WORSE   ? "its requests cost less CPU than they did"
                       : rewards & RL_DRIFT_WORSE  ? "decisions earn less than they did"
                       : rewards & RL_DRIFT_WILDER ? "what decisions earn varies more than it did"
                       : unusual                   ? "its load is unlike any that was seen"
                                                   : NULL;
    if (what)
        snprintf(c->why, sizeof(c->why), "%s", what);
    return what != NULL;
}

enum learn_news learn_course_see(struct learn_course *c, const struct observation *seen,
                                 struct learn_last last)
{
    struct record_interval i = recommend_record_add(c->record, seen);
    c->earned = i.earned;
    if (c->stage == LEARN_BEGIN && seen->now_s - c->began_s > c->rules.patience_s)
        c->stage = LEARN_WATCH;
    if (!last.by_policy || c->stage == LEARN_BEGIN || c->stage == LEARN_AGAIN)
        return LEARN_NO_NEWS;
    enter(&c->ledger, i.earned);
    if (look_back(c, seen->now_s))
        return LEARN_WENT_BACK;
    if (drifted(c, &i, seen->now_s)) {
        c->changed = true;
        c->next_s = seen->now_s;
    } else if (is_restrained(c, last.held_back)) {
        /* Thresholds are given time: a search at once would find the same. */
        c->next_s = seen->now_s + c->rules.retry_s;
    } else {
        return LEARN_NO_NEWS;
    }
    c->stage = LEARN_AGAIN;
    c->busy = false;
    c->watched_s = seen->now_s;
    c->sealed = false;
    rl_inputs_forget(c->inputs);
    return LEARN_DRIFTED;
}

/* --- learning ----------------------------------------------------------------------------------
 */
bool learn_course_wants(const struct learn_course *c, double now_s)
{
    return c->past && !c->busy && now_s >= c->next_s &&
           (c->stage != LEARN_SERVE || c->rules.renew_s > 0);
}

int learn_course_fit(const struct learn_course *c, const char *name, struct trace *out,
                     struct error *err)
{
    struct bootstrap_fit fit = {
        .record = c->record,
        .name = name,
        .needs_s = c->rules.after_s,
        .needs_requests = c->rules.requests,
        .demand_s = RECORD_SLOTS * RECORD_SLOT_S,
    };
    if (c->changed)
        fit.demand_s = RECENT_S;
    return bootstrap_fit(&fit, out, err);
}

void learn_course_began(struct learn_course *c)
{
    c->busy = true;
}

void learn_course_found(struct learn_course *c, const struct recommend_policy *own, double now_s)
{
    struct ledger before = c->ledger;
    c->busy = false;
    c->next_s = now_s + c->rules.renew_s;
    if (c->stage == LEARN_AGAIN) /* what was earned then was earned in another world */
        before = (struct ledger){0};
    if (own) {
        c->ledger_before = before;
        swap(&c->before, c->own);
        c->taken_s = now_s;
        serve(c, own);
    } else if (c->stage != LEARN_SERVE) {
        serve(c, c->own);
    }
}

/* Without a past there is nothing to fear from the general policy; where something has changed
 * thresholds go on. */
void learn_course_failed(struct learn_course *c, double now_s)
{
    c->busy = false;
    c->next_s = now_s + c->rules.retry_s;
    if (c->stage == LEARN_BEGIN)
        c->stage = LEARN_WATCH;
}
