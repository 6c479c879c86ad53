/* Functions that are no longer what they were: ppo with a course of learning, as the controller has
 * it, without one, and thresholds. */
#include "experiment/ppo_aware.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BEFORE     1400  /* intervals served before a change */
#define AFTER      600   /* and after it */
#define SHOWN      300   /* of those before, in the plot */
#define BLOCK      20    /* intervals of a point in the plot */
#define STATIONARY 11520 /* intervals without a change: two days */
#define USUAL_S    14400 /* of load, in place of a day, as all of it is over within nine hours */
#define FACTOR     3
#define GATHER_S   600.0
#define WEEK_S     604800.0
#define LEAST_LATE 1e-5 /* share, to divide by */
#define POINTS     ((SHOWN + AFTER) / BLOCK)

enum change { SLOWER, LOAD, PATTERN, CHANGES };
enum arm { AGAIN, STILL, THRESHOLD, ARMS }; /* learns again; does not; has nothing to learn */

/* --- a function with a course, as in pkg/controller/learning.c ----------------------------------
 */
struct pupil {
    const struct ppo_aware *all;
    double goal_ms;
    bool only_watch; /* news are counted and nothing is learned from them */
    struct recommend_seat seat;
    struct learn_course *course;
    struct learn_last last;
    struct rl_checkpoint own; /* nothing: the general one */
    bool searched;            /* in the last interval, and this was found: */
    struct rl_checkpoint found;
    struct recommend_policy *policy;
    double changes_s; /* when what is told is no false alarm; INFINITY: never */
    double told_s;    /* the first time after it; NaN: it was not */
    double false_alarms;
    struct error failed;
};

static int pupil_init(struct pupil *p, const struct ppo_aware *a, const struct ppo_aware_app *app,
                      struct error *err)
{
    struct learn_rules rules = learn_rules_default;
    rules.usual_s = USUAL_S;
    rules.renew_s = 0; /* only changes are looked at here */
    *p =
        (struct pupil){.all = a, .goal_ms = app->app.goal_ms, .changes_s = INFINITY, .told_s = NAN};
    const struct recommend_policy *policy = ppo_aware_policy(a, app);
    if (app->policy && rl_checkpoint_copy(&app->own, &p->own, err) < 0)
        return -1;
    p->course = learn_course_new(&rules, a->general.policy, 0, err);
    if (!p->course)
        return -1;
    learn_course_resume(p->course, policy);
    return recommend_seat_take(&p->seat, &recommend_ppo, 2 * SERVED_INTERVAL_S, NULL, policy, err);
}

static void pupil_clear(struct pupil *p)
{
    recommend_seat_leave(&p->seat);
    learn_course_free(p->course);
    recommend_policy_release(p->policy);
    rl_checkpoint_clear(&p->found);
    rl_checkpoint_clear(&p->own);
}

static int search(struct pupil *p, double now_s, struct error *err)
{
    struct trace fitted;
    if (learn_course_fit(p->course, "application", &fitted, err) < 0) {
        learn_course_failed(p->course, now_s);
        return 0;
    }
    learn_course_began(p->course);
    p->searched = true;
    int result = p->only_watch ? 0
                               : ppo_aware_tune(p->all, fitted.functions, p->goal_ms,
                                                p->own.net_count > 0 ? &p->own : NULL, &p->found,
                                                &p->policy, err);
    trace_clear(&fitted);
    return result;
}

/* A search takes a moment: what it found decides an interval later. */
static void take_found(struct pupil *p, double now_s)
{
    learn_course_found(p->course, p->policy, now_s);
    if (p->policy) {
        rl_checkpoint_clear(&p->own);
        p->own = p->found;
        p->found = (struct rl_checkpoint){0};
    }
    recommend_policy_release(p->policy);
    p->policy = NULL;
    p->searched = false;
}

static void hear(struct pupil *p, double now_s)
{
    if (now_s < p->changes_s)
        p->false_alarms++;
    else if (isnan(p->told_s))
        p->told_s = now_s;
}

static int study(struct pupil *p, const struct observation *seen, struct error *err)
{
    if (p->searched)
        take_found(p, seen->now_s);
    if (learn_course_see(p->course, seen, p->last) == LEARN_DRIFTED)
        hear(p, seen->now_s);
    if (learn_course_wants(p->course, seen->now_s) && search(p, seen->now_s, err) < 0)
        return -1;
    return recommend_seat_use(&p->seat, learn_course_policy(p->course), err);
}

/* As a trial goes on where nothing is recommended, what failed is kept for afterwards. */
static int recommend(void *arg, size_t function, const struct observation *seen,
                     struct recommendation *out, struct error *err)
{
    struct pupil *p = arg;
    struct error instead = {0};
    (void)function;
    if (p->failed.code || study(p, seen, &p->failed) < 0)
        return error_set(err, ERROR_INVALID, "it has failed");
    int result = recommend_seat_ask(&p->seat, seen, false, out, &instead, err);
    p->last = (struct learn_last){.by_policy = result == 0 && instead.code == ERROR_NONE};
    return result;
}

/* --- changes ---------------------------------------------------------------------------------- */
static int change_trace(const struct app *app, enum change change, struct trace *out,
                        struct error *err)
{
    char text[320];
    double before_s = BEFORE * SERVED_INTERVAL_S;
    app_trace(app, (BEFORE + AFTER) * SERVED_INTERVAL_S, text, sizeof(text) - 64);
    size_t len = strlen(text);
    if (change == SLOWER)
        snprintf(text + len, sizeof(text) - len, ",slower=%d,change=%g", FACTOR, before_s);
    else if (change == PATTERN)
        snprintf(text + len, sizeof(text) - len, ",gather=%g,change=%g", GATHER_S, before_s);
    if (trace_open(text, out, err) < 0)
        return -1;
    if (change == LOAD)
        served_load(out->functions, before_s, INFINITY, FACTOR);
    return 0;
}

struct changed { /* over all applications and changes */
    struct served_figures before[ARMS], after[ARMS];
    double lost[ARMS]; /* of the reward, in percent */
    double curves[ARMS][POINTS];
    double runs, told[CHANGES], delay[CHANGES];
    double false_alarms, watched_s;
};

static void take(struct changed *c, enum arm arm, const struct served *s)
{
    struct served_figures before =
        served_between(s, 0, BEFORE - AFTER, BEFORE, PPO_AWARE_GOAL_SHARE);
    struct served_figures after =
        served_between(s, 0, BEFORE, BEFORE + AFTER, PPO_AWARE_GOAL_SHARE);
    served_join(&c->before[arm], &before);
    served_join(&c->after[arm], &after);
    c->lost[arm] += 100 * (1 - served_reward(&after) / served_reward(&before));
    for (size_t i = 0; i < POINTS; i++) {
        size_t from = BEFORE - SHOWN + i * BLOCK;
        struct served_figures f = served_between(s, 0, from, from + BLOCK, PPO_AWARE_GOAL_SHARE);
        c->curves[arm][i] += 100 * served_late(&f);
    }
}

static void take_told(struct changed *c, enum change change, const struct pupil *p)
{
    bool told = !isnan(p->told_s);
    c->told[change] += told;
    c->delay[change] += told ? (p->told_s - p->changes_s) / SERVED_INTERVAL_S : 0;
    c->false_alarms += p->false_alarms;
    c->watched_s += p->changes_s;
}

static int serve_again(const struct ppo_aware *a, const struct ppo_aware_app *app,
                       const struct served_function *f, double changes_s, struct pupil *p,
                       struct served *out, struct error *err)
{
    struct served_function watched = *f;
    const struct trial_hand hand = {recommend, p};
    watched.instead = &hand;
    if (pupil_init(p, a, app, err) < 0)
        return -1;
    p->changes_s = changes_s;
    p->only_watch = isinf(changes_s);
    if (served_alone("ppo", NULL, &watched, out, err) < 0)
        return -1;
    if (p->failed.code == ERROR_NONE)
        return 0;
    *err = p->failed;
    served_clear(out);
    return -1;
}

static int serve_one(const struct ppo_aware *a, const struct ppo_aware_app *app, enum change change,
                     enum arm arm, const struct served_function *f, struct changed *c,
                     struct error *err)
{
    struct served s;
    struct pupil p = {0};
    int result = arm == AGAIN   ? serve_again(a, app, f, BEFORE * SERVED_INTERVAL_S, &p, &s, err)
                 : arm == STILL ? served_alone("ppo", ppo_aware_policy(a, app), f, &s, err)
                                : served_alone("threshold", NULL, f, &s, err);
    if (result == 0) {
        take(c, arm, &s);
        served_clear(&s);
        if (arm == AGAIN)
            take_told(c, change, &p);
    }
    pupil_clear(&p);
    return result;
}

static int try_change(const struct ppo_aware *a, const struct ppo_aware_app *app,
                      enum change change, struct changed *c, struct error *err)
{
    struct trace trace;
    if (change_trace(&app->app, change, &trace, err) < 0)
        return -1;
    const struct served_function f = {
        .workload = trace.functions,
        .goal_ms = app->app.goal_ms,
        .overhead_ms = app->app.overhead_ms,
        .intervals = BEFORE + AFTER,
        .seed = a->run->seed + 2000 + change,
    };
    int result = 0;
    for (enum arm arm = 0; arm < ARMS && result == 0; arm++)
        result = serve_one(a, app, change, arm, &f, c, err);
    c->runs++;
    trace_clear(&trace);
    return result;
}

/* --- no change -------------------------------------------------------------------------------- */
static int stay(const struct ppo_aware *a, const struct ppo_aware_app *app, struct changed *c,
                struct error *err)
{
    struct trace trace;
    struct served s;
    struct pupil p = {0};
    double intervals = (double)run_episodes(a->run, STATIONARY, 1200);
    if (ppo_aware_trace(&app->app, intervals, &trace, err) < 0)
        return -1;
    const struct served_function f = {
        .workload = trace.functions,
        .goal_ms = app->app.goal_ms,
        .overhead_ms = app->app.overhead_ms,
        .intervals = intervals,
        .seed = a->run->seed + 3000,
    };
    int result = serve_again(a, app, &f, INFINITY, &p, &s, err);
    if (result == 0) {
        c->false_alarms += p.false_alarms;
        c->watched_s += intervals * SERVED_INTERVAL_S;
        served_clear(&s);
    }
    pupil_clear(&p);
    trace_clear(&trace);
    return result;
}

/* --- telling ---------------------------------------------------------------------------------- */
static void tell_lines(struct experiment_run *run, const struct changed *c)
{
    double x[POINTS], y[POINTS];
    for (enum arm arm = 0; arm < ARMS; arm++) {
        for (size_t i = 0; i < POINTS; i++) {
            x[i] = ((double)i + 1) * BLOCK - SHOWN;
            y[i] = c->curves[arm][i] / c->runs;
        }
        run_line(run, PPO_AWARE_LINE_AGAIN + arm, x, y, POINTS);
    }
}

static void tell(struct experiment_run *run, const struct changed *c)
{
    double told = 0;
    for (enum change k = 0; k < CHANGES; k++) {
        told += c->told[k];
        run_set(run, PPO_AWARE_DELAY_SLOWER + k, c->told[k] > 0 ? c->delay[k] / c->told[k] : NAN);
    }
    run_set(run, PPO_AWARE_TOLD, 100 * told / c->runs);
    run_set(run, PPO_AWARE_FALSE, c->false_alarms * WEEK_S / c->watched_s);
    run_set(run, PPO_AWARE_AGAIN_CPU,
            100 *
                (served_utilization(&c->after[AGAIN]) / served_utilization(&c->after[STILL]) - 1));
    run_set(run, PPO_AWARE_AGAIN_FEWER,
            served_late(&c->after[STILL]) / fmax(served_late(&c->after[AGAIN]), LEAST_LATE));
    run_set(run, PPO_AWARE_AGAIN_LOST, c->lost[AGAIN] / c->runs);
    run_set(run, PPO_AWARE_STILL_LOST, c->lost[STILL] / c->runs);
    for (enum arm arm = 0; arm < ARMS; arm++) {
        run_set(run, PPO_AWARE_AGAIN_LATE + arm, 100 * served_late(&c->after[arm]));
        run_set(run, PPO_AWARE_AGAIN_BUSY + arm, 100 * served_utilization(&c->after[arm]));
    }
    tell_lines(run, c);
}

int ppo_aware_change(struct ppo_aware *a, struct error *err)
{
    struct changed c = {0};
    for (size_t i = 0; i < a->app_count; i++) {
        for (enum change k = 0; k < CHANGES; k++)
            if (try_change(a, &a->apps[i], k, &c, err) < 0)
                return -1;
        if (stay(a, &a->apps[i], &c, err) < 0 ||
            run_progress(a->run, 0.5 + 0.5 * (double)(i + 1) / (double)a->app_count, err) < 0)
            return -1;
    }
    tell(a->run, &c);
    return 0;
}
