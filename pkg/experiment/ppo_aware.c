/* AWARE's questions, asked of the recommender ppo: how soon it is at home in a function never seen,
 * what the first hours are like, and what becomes of functions that change. */
#include "experiment/ppo_aware.h"

#define TUNE_EPISODES 2 /* a quarter of what the controller takes */

#define DECIDING "what ppo decides by"
#define ADAPTING "intervals until the reward is there, in a function never seen"
#define REACHED  "reward reached in the end"
#define EARLY    "the first 1,000 intervals, by the general policy"
#define CHANGING "a function changes: 600 intervals from then on"

/* Why a figure may not be as good as the document's. */
#define NOTHING_TO_LOSE                                                                            \
    "who does not learn again serves as well: a third of what is late is so within the first "     \
    "five minutes, before a change is told, and by then the core has followed rates and "          \
    "demand, whatever the policy"
#define SPREAD_OF_TL "a learner may be lucky with what it is transferred from"
#define LOADED                                                                                     \
    "ppo spends some of the late requests that its goal allows, and the learner, which begins "    \
    "every episode with ample pods, has but a few percent of them; seeds differ much"
#define BUSIER                                                                                     \
    "the change takes it, whether something is learned or not: bursts need CPU that is ready "     \
    "for them, and some goals are out of reach once requests take three times the CPU"

static const struct experiment_row rows[PPO_AWARE_ROWS] = {
    [PPO_AWARE_UPDATES] = {.group = DECIDING,
                           .what = "updates of the general policy; 0: the core alone",
                           .unit = ""},
    [PPO_AWARE_ADAPT_GENERAL] = {.group = ADAPTING,
                                 .what = "ppo by the general policy",
                                 .unit = "intervals"},
    [PPO_AWARE_ADAPT_OWN] = {.group = ADAPTING,
                             .what = "ppo by a policy of its own, after 2 hours of history",
                             .unit = "intervals"},
    [PPO_AWARE_ADAPT_THRESHOLD] = {.group = ADAPTING, .what = "thresholds", .unit = "intervals"},
    [PPO_AWARE_ADAPT_TL] = {.group = ADAPTING,
                            .what = "TL: a learner begun with another application",
                            .unit = "intervals",
                            .document = "about 230 episodes"},
    [PPO_AWARE_ADAPT_NOTHING] = {.group = ADAPTING,
                                 .what = "a learner begun with nothing",
                                 .unit = "intervals"},
    [PPO_AWARE_FASTER_TL] = {ADAPTING, "ppo by the general policy, faster than TL", "×", "5.5 ×",
                             EXPERIMENT_AT_LEAST, 5.5, SPREAD_OF_TL},
    [PPO_AWARE_END_GENERAL] = {.group = REACHED, .what = "ppo by the general policy", .unit = ""},
    [PPO_AWARE_END_OWN] = {.group = REACHED, .what = "ppo by a policy of its own", .unit = ""},
    [PPO_AWARE_END_THRESHOLD] = {.group = REACHED, .what = "thresholds", .unit = ""},
    [PPO_AWARE_END_TL] = {.group = REACHED, .what = "TL", .unit = ""},
    [PPO_AWARE_END_NOTHING] = {.group = REACHED,
                               .what = "a learner begun with nothing",
                               .unit = ""},
    [PPO_AWARE_FOUND] = {.group = REACHED,
                         .what = "applications that a policy of its own was found for",
                         .unit = "%"},
    [PPO_AWARE_EARLY_CPU] = {EARLY, "more CPU utilisation than a learner begun with nothing", "%",
                             "47.5 %", EXPERIMENT_AT_LEAST, 47.5, LOADED},
    [PPO_AWARE_EARLY_FEWER] = {EARLY, "fewer late requests than that learner", "×", "16.9 ×",
                               EXPERIMENT_AT_LEAST, 16.9, LOADED},
    [PPO_AWARE_EARLY_CPU_THRESHOLD] = {.group = EARLY,
                                       .what = "more CPU utilisation than thresholds",
                                       .unit = "%"},
    [PPO_AWARE_EARLY_FEWER_THRESHOLD] = {.group = EARLY,
                                         .what = "fewer late requests than thresholds",
                                         .unit = "×"},
    [PPO_AWARE_EARLY_LATE] = {EARLY, "late requests, ppo", "%", NULL, EXPERIMENT_AT_MOST, 1,
                              "the goal is one of p99, and what bursts cost before they are known "
                              "is not won back in four hours"},
    [PPO_AWARE_EARLY_LATE_THRESHOLD] = {.group = EARLY,
                                        .what = "late requests, thresholds",
                                        .unit = "%"},
    [PPO_AWARE_EARLY_LATE_NOTHING] = {.group = EARLY,
                                      .what = "late requests, learner begun with nothing",
                                      .unit = "%"},
    [PPO_AWARE_EARLY_BUSY] = {.group = EARLY, .what = "CPU utilisation, ppo", .unit = "%"},
    [PPO_AWARE_EARLY_BUSY_THRESHOLD] = {.group = EARLY,
                                        .what = "CPU utilisation, thresholds",
                                        .unit = "%"},
    [PPO_AWARE_EARLY_BUSY_NOTHING] = {.group = EARLY,
                                      .what = "CPU utilisation, learner begun with nothing",
                                      .unit = "%"},
    [PPO_AWARE_TOLD] = {.group = CHANGING, .what = "changes that were told", .unit = "%"},
    [PPO_AWARE_DELAY_SLOWER] = {CHANGING, "3 × slower, told after", "intervals", NULL,
                                EXPERIMENT_AT_MOST, 48,
                                "what adaptation.md promises is for demand that hangs together "
                                "less from one interval to the next"},
    [PPO_AWARE_DELAY_LOAD] = {.group = CHANGING,
                              .what = "3 × the load, told after",
                              .unit = "intervals"},
    [PPO_AWARE_DELAY_PATTERN] = {.group = CHANGING,
                                 .what = "another pattern, told after",
                                 .unit = "intervals"},
    [PPO_AWARE_FALSE] = {CHANGING, "false alarms a week", "", NULL, EXPERIMENT_AT_MOST, 1,
                         "an application may do for hours what it did not do in the hours that "
                         "are known of it"},
    [PPO_AWARE_AGAIN_CPU] = {CHANGING, "more CPU utilisation than without retraining", "%", "9.6 %",
                             EXPERIMENT_AT_LEAST, 9.6, NOTHING_TO_LOSE},
    [PPO_AWARE_AGAIN_FEWER] = {CHANGING, "fewer late requests than without", "×", "3.1 ×",
                               EXPERIMENT_AT_LEAST, 3.1, NOTHING_TO_LOSE},
    [PPO_AWARE_AGAIN_LOST] = {CHANGING, "reward lost with retraining", "%", "less than 3.6 %",
                              EXPERIMENT_AT_MOST, 3.6, BUSIER},
    [PPO_AWARE_STILL_LOST] = {.group = CHANGING,
                              .what = "reward lost without retraining",
                              .unit = "%",
                              .document = "21.8 %"},
    [PPO_AWARE_AGAIN_LATE] = {.group = CHANGING,
                              .what = "late requests, ppo with retraining",
                              .unit = "%"},
    [PPO_AWARE_STILL_LATE] = {.group = CHANGING,
                              .what = "late requests, ppo without retraining",
                              .unit = "%"},
    [PPO_AWARE_THRESHOLD_LATE] = {.group = CHANGING,
                                  .what = "late requests, thresholds",
                                  .unit = "%"},
    [PPO_AWARE_AGAIN_BUSY] = {.group = CHANGING,
                              .what = "CPU utilisation, ppo with retraining",
                              .unit = "%"},
    [PPO_AWARE_STILL_BUSY] = {.group = CHANGING,
                              .what = "CPU utilisation, ppo without retraining",
                              .unit = "%"},
    [PPO_AWARE_THRESHOLD_BUSY] = {.group = CHANGING,
                                  .what = "CPU utilisation, thresholds",
                                  .unit = "%"},
};

#define REWARD "reward in a function never seen"
#define LATE   "late requests, %, around a change at 0"

static const struct experiment_line lines[PPO_AWARE_LINES] = {
    [PPO_AWARE_LINE_GENERAL] = {REWARD, "ppo, general policy"},
    [PPO_AWARE_LINE_OWN] = {REWARD, "ppo, a policy of its own"},
    [PPO_AWARE_LINE_THRESHOLD] = {REWARD, "thresholds"},
    [PPO_AWARE_LINE_TL] = {REWARD, "learner, TL"},
    [PPO_AWARE_LINE_NOTHING] = {REWARD, "learner begun with nothing"},
    [PPO_AWARE_LINE_AGAIN] = {LATE, "ppo with retraining"},
    [PPO_AWARE_LINE_STILL] = {LATE, "ppo without"},
    [PPO_AWARE_LINE_CHANGED_THRESHOLD] = {LATE, "thresholds"},
};

/* --- what both parts need ----------------------------------------------------------------------
 */
const struct recommend_policy *ppo_aware_policy(const struct ppo_aware *a,
                                                const struct ppo_aware_app *app)
{
    return app->policy ? app->policy : a->general.policy;
}

int ppo_aware_trace(const struct app *app, double intervals, struct trace *out, struct error *err)
{
    char text[256];
    app_trace(app, intervals * SERVED_INTERVAL_S, text, sizeof(text));
    return trace_open(text, out, err);
}

int ppo_aware_tune(const struct ppo_aware *a, const struct trace_function *workload, double goal_ms,
                   const struct rl_checkpoint *rival, struct rl_checkpoint *out,
                   struct recommend_policy **policy, struct error *err)
{
    struct api_spec spec;
    struct bootstrap_gain gain;
    trial_default_spec(&spec);
    const struct bootstrap_tuning tuning = {
        .from = &a->general.checkpoint,
        .rival = rival,
        .subject = {.workload = workload, .spec = &spec, .goal_ms = goal_ms},
        .interval_s = SERVED_INTERVAL_S,
        .episodes = a->tune_episodes,
        .episode_steps = a->tune_steps,
        .threads = 1,
        .seed = a->run->seed,
    };
    *policy = NULL;
    if (bootstrap_tune(&tuning, out, &gain, err) < 0)
        return -1;
    if (gain.better) {
        *policy = recommend_policy_new(out, err);
        return *policy ? 0 : -1;
    }
    rl_checkpoint_clear(out);
    return 0;
}

/* --- all of it ---------------------------------------------------------------------------------
 */
static void draw_apps(struct ppo_aware *a)
{
    struct random random = random_stream(a->run->seed, 80);
    for (size_t i = 0; i < a->app_count; i++) {
        app_draw(&a->apps[i].app, &random);
        a->apps[i].app.pattern = (unsigned)i % PPO_AWARE_MOST;
    }
}

static int run(struct experiment_run *run, struct error *err)
{
    struct ppo_aware a = {
        .run = run,
        .app_count = run_episodes(run, PPO_AWARE_MOST, 1),
        .tune_episodes = run_episodes(run, TUNE_EPISODES, 1),
        .tune_steps = run_episodes(run, bootstrap_world_default.episode_steps, 40),
    };
    if (a.app_count > PPO_AWARE_MOST)
        a.app_count = PPO_AWARE_MOST;
    draw_apps(&a);
    if (served_policy_init(&a.general, run, err) < 0)
        return -1;
    run_set(run, PPO_AWARE_UPDATES, (double)a.general.checkpoint.updates);
    int result = ppo_aware_begin(&a, err);
    if (result == 0)
        result = ppo_aware_change(&a, err);
    for (size_t i = 0; i < a.app_count; i++) {
        recommend_policy_release(a.apps[i].policy);
        rl_checkpoint_clear(&a.apps[i].own);
    }
    served_policy_clear(&a.general);
    return result;
}

static const char setting[] =
    "The recommender `ppo` and the guard as in the controller decide every 15 s in trials, as "
    "`mpactl compare` makes them; nothing is tuned for what they meet. ppo decides by the policy "
    "beside mpactl, as `make policy` makes it, or by its core alone where there is none. "
    "Applications are those of the experiment [aware](aware.md), one of each pattern, alone on "
    "ample nodes. The reward is that of aware with CPU alone: 0.3 · the share of CPU in use + 0.7 "
    "· min(1, goal ÷ p99); intervals without requests have none.\n\n"
    "*Adapting*: blocks of 20 intervals; one has adapted with the first of three that have in the "
    "mean 95 % of what the best recommender reaches in the last ten blocks of 1,000 intervals. A "
    "policy of its own is found by `bootstrap_tune` with a quarter of the controller's effort, "
    "from 2 "
    "hours that thresholds have served. Beside them stand bare learners, as in aware: PPO with "
    "formulation `aware`, in episodes of 100 intervals, held against the best learner in the end; "
    "TL has learned another application for 160 episodes. So ppo is not told by the best that "
    "learners come to, nor they by its.\n\n"
    "*The first hours* are the same runs; the learner's first ten episodes are as long, and each "
    "of them begins with ample pods.\n\n"
    "*Changes*: after 1,400 intervals a request takes three times the CPU, or three times as many "
    "come, or all of ten minutes come within one, for 600 intervals. Whether that is told, what "
    "decides then and what is learned is the business of the controller's own course "
    "(`pkg/learn`), which here knows a load after 4 hours in place of a day; a policy that was "
    "found decides an interval later. False alarms are those before the changes, and in two days "
    "of each application without one. Reward lost is against the 600 intervals before the change.";

const struct experiment experiment_ppo_aware = {
    .name = "ppo-aware",
    .title = "AWARE's questions, asked of the recommender ppo",
    .document = "AWARE (ATC '23), RQ1 to RQ3",
    .setting = setting,
    .rows = rows,
    .row_count = PPO_AWARE_ROWS,
    .x_label = "intervals",
    .lines = lines,
    .line_count = PPO_AWARE_LINES,
    .run = run,
    .headline = PPO_AWARE_FASTER_TL,
    .by_policy = true,
};
