/* AWARE: adapting by an embedding, bootstrapping offline, and learning again when it drifts. */
#include "aware.h"

#define ADAPTING  "adapting to an application never seen"
#define BOOTING   "the first 40 episodes online"
#define RETRAINED "serving while the application changes"

/* Why a figure may not be as good as the document's, as the runs show. */
#define SPREAD_OF_TL                                                                               \
    "it depends on which application a policy is transferred from: from 1 to 18 episodes, by seed"
#define STARVED                                                                                    \
    "a transferred policy that gives too little has pods as busy as a good one, while it breaks "  \
    "goals: utilisation alone does not tell them apart"
#define AMPLE                                                                                      \
    "a policy which knows nothing breaks 2 to 6 % of goals here; the document's breaks 10 to 56 "  \
    "times as many as its baseline. Pods begin ample (four of a core), which may be why"
#define OVERLOADED                                                                                 \
    "the changes that hurt are those to more work: who does not learn again then starves its "     \
    "pods, which are busy and break goals; who does gives more, and utilisation falls"
#define HARMLESS                                                                                   \
    "four in ten of these changes are not told, as the policy follows its load without much "      \
    "loss; "                                                                                       \
    "until the others are told and looked at, the policy as it was serves a quarter of the time"
#define HARDER                                                                                     \
    "most is lost where an application becomes three times slower: until that is told and looked " \
    "at a quarter of the 600 intervals has passed, and what is learned then is a rough model"

static const struct experiment_row rows[ROW_COUNT] = {
    [ROW_EMBEDDING] = {.group = ADAPTING, .what = "with an embedding", .unit = "episodes"},
    [ROW_TL] = {.group = ADAPTING,
                .what = "TL: begun with a policy of another application",
                .unit = "episodes",
                .document = "about 230"},
    [ROW_TL_PLUS] = {.group = ADAPTING, .what = "TL+: with more features", .unit = "episodes"},
    [ROW_SHARED] = {.group = ADAPTING,
                    .what = "begun with one policy for all known, without embedding",
                    .unit = "episodes"},
    [ROW_NOTHING] = {.group = ADAPTING, .what = "begun with nothing", .unit = "episodes"},
    [ROW_FASTER_TL] = {ADAPTING, "faster than TL", "×", "5.5 ×", EXPERIMENT_AT_LEAST, 5.5,
                       SPREAD_OF_TL},
    [ROW_FASTER_TL_PLUS] = {ADAPTING, "faster than TL+", "×", "4.6 ×", EXPERIMENT_AT_LEAST, 4.6,
                            SPREAD_OF_TL},
    [ROW_FASTER_SHARED] = {.group = ADAPTING,
                           .what = "faster than one policy for all known, without embedding",
                           .unit = "×"},
    [ROW_DEFICIT_CPU] = {ADAPTING, "less deficit of CPU utilisation than TL", "×", "4.6 ×",
                         EXPERIMENT_AT_LEAST, 4.6, STARVED},
    [ROW_DEFICIT_MEMORY] = {ADAPTING, "less deficit of memory utilisation than TL", "×", "6.2 ×",
                            EXPERIMENT_AT_LEAST, 6.2, SPREAD_OF_TL},
    [ROW_ADAPT_VIOLATIONS] = {ADAPTING, "fewer broken goals than TL", "×", "7.1 ×",
                              EXPERIMENT_AT_LEAST, 7.1, SPREAD_OF_TL},
    [ROW_BOOT_CPU] = {BOOTING, "more CPU utilisation than without bootstrapping", "%", "47.5 %",
                      EXPERIMENT_AT_LEAST, 47.5, AMPLE},
    [ROW_BOOT_MEMORY] = {BOOTING, "more memory utilisation than without", "%", "32.2 %",
                         EXPERIMENT_AT_LEAST, 32.2, AMPLE},
    [ROW_BOOT_VIOLATIONS] = {BOOTING, "fewer broken goals than without", "×", "16.9 ×",
                             EXPERIMENT_AT_LEAST, 16.9, AMPLE},
    [ROW_TOLD] = {.group = RETRAINED, .what = "changes that were told", .unit = "%"},
    [ROW_DELAY] = {.group = RETRAINED, .what = "told after", .unit = "intervals"},
    [ROW_FALSE] = {.group = RETRAINED,
                   .what = "false alarms before the changes",
                   .unit = "",
                   .aim = EXPERIMENT_AT_MOST,
                   .bound = 0.5,
                   .otherwise = "more than one in 10,000 intervals: see docs/adaptation.md"},
    [ROW_RETRAIN_CPU] = {RETRAINED, "more CPU utilisation than without retraining", "%", "9.6 %",
                         EXPERIMENT_AT_LEAST, 9.6, OVERLOADED},
    [ROW_RETRAIN_MEMORY] = {RETRAINED, "more memory utilisation than without", "%", "14.8 %",
                            EXPERIMENT_AT_LEAST, 14.8, OVERLOADED},
    [ROW_RETRAIN_VIOLATIONS] = {RETRAINED, "fewer broken goals than without", "×", "3.1 ×",
                                EXPERIMENT_AT_LEAST, 3.1, HARMLESS},
    [ROW_DEGRADATION] = {RETRAINED, "reward lost with retraining", "%", "less than 3.6 %",
                         EXPERIMENT_AT_MOST, 3.6, HARDER},
    [ROW_DEGRADATION_WITHOUT] = {.group = RETRAINED,
                                 .what = "reward lost without retraining",
                                 .unit = "%",
                                 .document = "21.8 %"},
};

#define REWARD_ADAPTING "reward while adapting"
#define REWARD_BOOTING  "reward in the first episodes online"

static const struct experiment_line lines[LINE_COUNT] = {
    [LINE_EMBEDDING] = {REWARD_ADAPTING, "with an embedding"},
    [LINE_SHARED] = {REWARD_ADAPTING, "one policy for all known"},
    [LINE_TL_PLUS] = {REWARD_ADAPTING, "TL+"},
    [LINE_TL] = {REWARD_ADAPTING, "TL"},
    [LINE_NOTHING] = {REWARD_ADAPTING, "begun with nothing"},
    [LINE_BOOTED] = {REWARD_BOOTING, "bootstrapped"},
    [LINE_UNBOOTED] = {REWARD_BOOTING, "not bootstrapped"},
};

static int run_all(struct experiment_run *run, struct error *err)
{
    if (aware_adapt(run, err) < 0 || aware_bootstrap(run, err) < 0)
        return -1;
    return aware_retrain(run, err);
}

static const char setting[] =
    "Applications are drawn by chance, as the document draws its thousand: 0.15 to 1 core, "
    "requests of 30 to 150 ms (p99 1.5 to 5 times that), goals of 1.5 to 10 times the p99 "
    "beside up to half of it that is waiting, 64 to 240 MiB and 2 to 24 more per request; "
    "steady, in waves of half an hour or in bursts. Each is alone on an ample node; "
    "formulation `aware` with α = 0.3, episodes of 100 decisions. The document learns with "
    "DDPG, here it is PPO.\n\n"
    "*Adapting*: a policy learns in 24 applications, 60 episodes each, and goes on learning "
    "in one of 5 never seen. It has adapted when three episodes have 95 % of the reward that "
    "is reached there in the end: by a policy that learns there alone for 160 episodes, or by "
    "the best of those that adapt, whichever is more. TL begins with a policy that learned "
    "one other application for 160 episodes; TL+ also sees rate, work, peak and throttling. "
    "Beside them stands one policy for all 24 without an embedding, which the document does "
    "not have. A deficit is what utilisation lacks of that in the end, at least half a "
    "percent; it and broken goals are those of all 30 episodes.\n\n"
    "*Bootstrapping*: thresholds serve an episode, by which a model is made (rate, work, "
    "lowest p99, memory). A policy is taught by thresholds, learns for 400 episodes in the "
    "model and goes online. The other one begins online with nothing.\n\n"
    "*Retraining*: a policy so begun serves 1,400 intervals of 15 s; then its application "
    "becomes three times slower or three times lighter, gets three times the load or another "
    "pattern, for 600 intervals. Once drift is told, 40 more intervals are looked at, a model "
    "is made of them, and the policy learns on in it. Reward lost is against before the "
    "change.";

const struct experiment experiment_aware = {
    .name = "aware",
    .title = "AWARE: embedding, bootstrapping, retraining",
    .document = "AWARE (ATC '23), RQ1 to RQ3",
    .setting = setting,
    .rows = rows,
    .row_count = ROW_COUNT,
    .x_label = "episodes",
    .lines = lines,
    .line_count = LINE_COUNT,
    .run = run_all,
    .headline = ROW_FASTER_TL,
};
