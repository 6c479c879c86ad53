/* A function that was never seen: how soon ppo is at its best there, and what the first hours are
 * like; beside thresholds, and beside learners that begin with little or nothing. */
#include "experiment/ppo_aware.h"

#include <math.h>

#define HISTORY     480  /* intervals that thresholds serve before a policy is looked for: 2 h */
#define EARLY       1000 /* intervals: ten episodes of the learners */
#define BLOCK       20   /* intervals: what a reward is taken over */
#define SOURCE      160  /* episodes in the application that is transferred from */
#define ADAPT       30   /* episodes of learners */
#define LAST        10   /* blocks or episodes whose mean is where it leads to */
#define GOOD        0.95
#define LEAST_LATE  1e-5 /* share, to divide by */
#define NEEDS_S     600
#define NEEDS_COUNT 300

enum arm { GENERAL, OWN, THRESHOLD, TL, NOTHING, ARMS };
#define SERVERS TL /* the arms before are recommenders */

struct begin {
    struct ppo_aware *all;
    size_t intervals, blocks, episodes;
    double *rewards[ARMS]; /* of blocks or episodes, of the application at hand */
    double *curves[ARMS];  /* the mean of all */
    double adapted[ARMS], end[ARMS], found;
    struct served_figures early[ARMS];
};

/* --- watching, and a policy by what was seen ---------------------------------------------------
 */
struct watch {
    struct recommend_record *record;
    void *thresholds;
};

static int watch(void *arg, size_t function, const struct observation *seen,
                 struct recommendation *out, struct error *err)
{
    struct watch *w = arg;
    (void)function;
    recommend_record_add(w->record, seen);
    return recommend_threshold.recommend(w->thresholds, seen, out, err);
}

static int serve(const struct begin *b, const struct app *app, double intervals, const char *by,
                 const struct recommend_policy *policy, const struct trial_hand *instead,
                 struct served *out, struct error *err)
{
    struct trace trace;
    if (ppo_aware_trace(app, intervals, &trace, err) < 0)
        return -1;
    const struct served_function f = {
        .workload = trace.functions,
        .goal_ms = app->goal_ms,
        .overhead_ms = app->overhead_ms,
        .intervals = intervals,
        .instead = instead,
        .seed = b->all->run->seed + (instead ? 1000 : 0), /* the past is no look ahead */
    };
    int result = served_alone(by, policy, &f, out, err);
    trace_clear(&trace);
    return result;
}

static int learn_from(const struct begin *b, struct ppo_aware_app *app,
                      const struct recommend_record *record, struct error *err)
{
    struct trace fitted;
    struct bootstrap_fit fit = {
        .record = record,
        .name = "application",
        .needs_s = NEEDS_S,
        .needs_requests = NEEDS_COUNT,
        .demand_s = RECORD_SLOTS * RECORD_SLOT_S,
    };
    if (bootstrap_fit(&fit, &fitted, err) < 0)
        return -1;
    int result = ppo_aware_tune(b->all, fitted.functions, app->app.goal_ms, NULL, &app->own,
                                &app->policy, err);
    trace_clear(&fitted);
    return result;
}

static int find_own(struct begin *b, struct ppo_aware_app *app, struct error *err)
{
    struct served past;
    struct watch w = {recommend_record_new(),
                      recommend_threshold.create(2 * SERVED_INTERVAL_S, NULL)};
    const struct trial_hand hand = {watch, &w};
    int result = serve(b, &app->app, HISTORY, "threshold", NULL, &hand, &past, err);
    if (result == 0) {
        result = learn_from(b, app, w.record, err);
        served_clear(&past);
    }
    b->found += app->policy != NULL;
    recommend_threshold.destroy(w.thresholds);
    recommend_record_free(w.record);
    return result;
}

/* --- recommenders ------------------------------------------------------------------------------
 */
static void take_served(struct begin *b, enum arm arm, const struct served *s)
{
    struct served_figures all = served_between(s, 0, 0, b->intervals, PPO_AWARE_GOAL_SHARE);
    served_join(&b->early[arm], &all);
    for (size_t i = 0; i < b->blocks; i++) {
        struct served_figures f =
            served_between(s, 0, i * BLOCK, (i + 1) * BLOCK, PPO_AWARE_GOAL_SHARE);
        b->rewards[arm][i] = served_reward(&f);
    }
}

static int serve_by(struct begin *b, const struct ppo_aware_app *app, enum arm arm,
                    struct error *err)
{
    struct served s;
    const struct recommend_policy *policy = arm == THRESHOLD ? NULL
                                            : arm == GENERAL ? b->all->general.policy
                                                             : ppo_aware_policy(b->all, app);
    const char *by = arm == THRESHOLD ? "threshold" : "ppo";
    if (serve(b, &app->app, (double)b->intervals, by, policy, NULL, &s, err) < 0)
        return -1;
    take_served(b, arm, &s);
    served_clear(&s);
    return 0;
}

/* --- learners ----------------------------------------------------------------------------------
 */
/* An episode as what a recommender would be told by: CPU alone, as these set no memory. */
static void take_episode(struct begin *b, enum arm arm, size_t i, const struct train_report *r)
{
    double steps = APP_STEPS;
    double reward = PPO_AWARE_GOAL_SHARE * r->slo_preservation +
                    (1 - PPO_AWARE_GOAL_SHARE) * r->cpu_utilization;
    b->rewards[arm][i] = reward;
    if ((i + 1) * APP_STEPS > b->intervals)
        return;
    served_join(&b->early[arm], &(struct served_figures){.intervals = steps,
                                                         .reward = reward * steps,
                                                         .utilization = r->cpu_utilization * steps,
                                                         .requests = 1,
                                                         .late = r->violation_ratio});
}

static int learn_by(struct begin *b, const struct ppo_aware_app *app, enum arm arm,
                    const struct train *source, struct error *err)
{
    struct train_report report;
    struct train *train = app_train(&app->app, 1, b->episodes, false, b->all->run->seed, err);
    int result = train ? 0 : -1;
    if (result == 0 && arm == TL)
        result = train_inherit(train, source, err);
    for (size_t i = 0; i < b->episodes && result == 0; i++) {
        result = train_round(train, &report, err);
        if (result == 0)
            take_episode(b, arm, i, &report);
    }
    train_free(train);
    return result;
}

/* --- one application ---------------------------------------------------------------------------
 */
static size_t points(const struct begin *b, enum arm arm)
{
    return arm < SERVERS ? b->blocks : b->episodes;
}

static double end_of(const struct begin *b, enum arm arm)
{
    size_t count = points(b, arm), last = count < LAST ? count : LAST;
    double sum = 0;
    for (size_t i = count - last; i < count; i++)
        sum += b->rewards[arm][i] / (double)last;
    return sum;
}

/* Recommenders are held against the best of them in the end, learners against the best learner. */
static void compare(struct begin *b)
{
    double n = (double)b->all->app_count, best[2] = {0}, end[ARMS];
    for (enum arm arm = 0; arm < ARMS; arm++) {
        end[arm] = end_of(b, arm);
        best[arm >= SERVERS] = fmax(best[arm >= SERVERS], end[arm]);
    }
    for (enum arm arm = 0; arm < ARMS; arm++) {
        size_t count = points(b, arm);
        b->end[arm] += end[arm] / n;
        b->adapted[arm] += served_adapted(b->rewards[arm], count, arm < SERVERS ? BLOCK : APP_STEPS,
                                          GOOD * best[arm >= SERVERS]) /
                           n;
        for (size_t i = 0; i < count; i++)
            b->curves[arm][i] += b->rewards[arm][i] / n;
    }
}

static int meet(struct begin *b, struct ppo_aware_app *app, const struct train *source,
                struct error *err)
{
    if (find_own(b, app, err) < 0)
        return -1;
    for (enum arm arm = 0; arm < ARMS; arm++)
        if ((arm < SERVERS ? serve_by(b, app, arm, err) : learn_by(b, app, arm, source, err)) < 0)
            return -1;
    compare(b);
    return 0;
}

/* The policy that learners transfer is of an application of its own. */
static struct train *learn_source(const struct begin *b, struct random *random, struct error *err)
{
    struct app app;
    app_draw(&app, random);
    struct train *source =
        app_train(&app, 1, run_episodes(b->all->run, SOURCE, 4), false, b->all->run->seed, err);
    if (source && app_learn(source, err) == 0)
        return source;
    train_free(source);
    return NULL;
}

/* --- telling ---------------------------------------------------------------------------------- */
static void tell_line(const struct begin *b, enum arm arm)
{
    size_t count = points(b, arm);
    double step = arm < SERVERS ? BLOCK : APP_STEPS;
    while (arm >= SERVERS && count > 1 && (double)count * step > (double)b->intervals)
        count--;
    cleanup_free double *x = xcalloc(count, sizeof(*x));
    for (size_t i = 0; i < count; i++)
        x[i] = (double)(i + 1) * step;
    run_line(b->all->run, PPO_AWARE_LINE_GENERAL + arm, x, b->curves[arm], count);
}

static void tell_early(const struct begin *b, enum arm than, size_t cpu, size_t fewer)
{
    struct experiment_run *run = b->all->run;
    const struct served_figures *ours = &b->early[GENERAL], *other = &b->early[than];
    run_set(run, cpu, 100 * (served_utilization(ours) / served_utilization(other) - 1));
    run_set(run, fewer, served_late(other) / fmax(served_late(ours), LEAST_LATE));
}

static void tell(const struct begin *b)
{
    static const enum arm early[] = {GENERAL, THRESHOLD, NOTHING};
    struct experiment_run *run = b->all->run;
    for (enum arm arm = 0; arm < ARMS; arm++) {
        run_set(run, PPO_AWARE_ADAPT_GENERAL + arm, b->adapted[arm]);
        run_set(run, PPO_AWARE_END_GENERAL + arm, b->end[arm]);
        tell_line(b, arm);
    }
    run_set(run, PPO_AWARE_FASTER_TL, b->adapted[TL] / b->adapted[GENERAL]);
    run_set(run, PPO_AWARE_FOUND, 100 * b->found / (double)b->all->app_count);
    tell_early(b, NOTHING, PPO_AWARE_EARLY_CPU, PPO_AWARE_EARLY_FEWER);
    tell_early(b, THRESHOLD, PPO_AWARE_EARLY_CPU_THRESHOLD, PPO_AWARE_EARLY_FEWER_THRESHOLD);
    for (size_t i = 0; i < ARRAY_LEN(early); i++) {
        run_set(run, PPO_AWARE_EARLY_LATE + i, 100 * served_late(&b->early[early[i]]));
        run_set(run, PPO_AWARE_EARLY_BUSY + i, 100 * served_utilization(&b->early[early[i]]));
    }
}

static int meet_all(struct begin *b, const struct train *source, struct error *err)
{
    struct ppo_aware *a = b->all;
    for (size_t i = 0; i < a->app_count; i++)
        if (meet(b, &a->apps[i], source, err) < 0 ||
            run_progress(a->run, 0.1 + 0.4 * (double)(i + 1) / (double)a->app_count, err) < 0)
            return -1;
    tell(b);
    return 0;
}

int ppo_aware_begin(struct ppo_aware *a, struct error *err)
{
    struct begin b = {
        .all = a,
        .intervals = run_episodes(a->run, EARLY, 2 * APP_STEPS),
        .episodes = run_episodes(a->run, ADAPT, 5),
    };
    struct random random = random_stream(a->run->seed, 81);
    b.blocks = b.intervals / BLOCK;
    for (enum arm arm = 0; arm < ARMS; arm++) {
        b.rewards[arm] = xcalloc(points(&b, arm), sizeof(double));
        b.curves[arm] = xcalloc(points(&b, arm), sizeof(double));
    }
    struct train *source = learn_source(&b, &random, err);
    int result = source && run_progress(a->run, 0.1, err) == 0 ? meet_all(&b, source, err) : -1;
    train_free(source);
    for (enum arm arm = 0; arm < ARMS; arm++) {
        free(b.rewards[arm]);
        free(b.curves[arm]);
    }
    return result;
}
