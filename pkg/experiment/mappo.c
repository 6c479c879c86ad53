/* MA-PPO: agents of a team, whose critics see all; functions join and leave. */
#include "tenants.h"

#define RIVAL_EPISODES 400
#define LEAST          4 /* a round of ours, whatever the effort */
#define STAGES         4
#define MOST_FUNCTIONS 15

enum { PAPERS, OURS, SETTINGS };

struct stage {
    size_t functions, first, episodes; /* first: of those before, who stays as function 0 */
};
/* More episodes than it may take, so that it can be seen to take longer. The document goes from 5
 * to 15 functions in 4,000 episodes; with its settings two changes must do here. */
static const struct stage plans[SETTINGS][STAGES] = {
    [PAPERS] = {{5, 0, 800}, {10, 0, 350}, {5, 5, 350}},
    [OURS] = {{5, 0, 550}, {10, 0, 350}, {15, 0, 350}, {10, 5, 350}},
};
static const size_t leaves[SETTINGS] = {2, 3}; /* the stage in which five have left */

struct team {
    struct train *train[STAGES];
    struct tenants_curve curves[STAGES];
    struct tenants_rivals rivals;
};

enum row {
    CONVERGED,
    JOINED = CONVERGED + SETTINGS,
    JOINED_AGAIN = JOINED + SETTINGS,
    LEFT,
    JOIN_DROP = LEFT + SETTINGS,
    LEAVE_DROP = JOIN_DROP + SETTINGS,
    SLOWER = LEAVE_DROP + SETTINGS, /* (settings, kinds) */
    SLOWER_OF_15 = SLOWER + SETTINGS * TENANT_KINDS,
    FASTER, /* (settings, kinds) */
    FASTER_THAN_MOVED = FASTER + SETTINGS * TENANT_KINDS,
    FASTER_THAN_ENSURE = FASTER_THAN_MOVED + SETTINGS,
    UTILIZATION = FASTER_THAN_ENSURE + SETTINGS, /* and ENSURE's */
    ROWS = UTILIZATION + SETTINGS + 1
};

#define RESTLESS                                                                                   \
    "Minibatches of 5 decisions and no normalised advantages: rewards still wander. With our "     \
    "settings they rest."
#define SHORT                                                                                      \
    "The platform gives idle cores to whoever needs them, so that p99 rises with what all use "    \
    "together, whoever decides: agents can only choose who waits. The reward's α of 0.3 counts "  \
    "utilisation more than the goal."
#define NOT_SO_BAD                                                                                 \
    "Single agents that learn together do not fail here: rewards come to rest within a few "       \
    "percent of the team's, as they too see what contention does to their own function."
#define STARVED                                                                                    \
    "Agents that have not come to rest, as above, starve a function now and then: a few seeds "    \
    "make the mean."
#define EACH(row, group, unit, range, markdown, sentiment, image, aim, bound, why)                 \
    {group, "base64", unit, range, aim, bound, why},                                               \
        {group, "primes", unit, range, aim, bound, why},                                           \
        {group, "markdown2html", unit, markdown, aim, bound, why},                                 \
        {group, "sentiment-analysis", unit, sentiment, aim, bound, why},                           \
    {                                                                                              \
        group, "image-resize", unit, image, aim, bound, why                                        \
    }
#define SLOWER_ROWS(settings, why)                                                                 \
    EACH(SLOWER, "p99 above that of single agents, each alone: " settings, "%", "1.8 to 9.9 %",    \
         "9.9 %", "1.8 %", "1.8 to 9.9 %", EXPERIMENT_AT_MOST, 9.9, why)
#define FASTER_ROWS(settings, why)                                                                 \
    EACH(FASTER, "p99 of single agents that learned together ÷ MA-PPO's: " settings, "×",          \
         "2.5 to 4.4 ×", "2.5 to 4.4 ×", "2.5 ×", "4.4 ×", EXPERIMENT_AT_LEAST, 2.5, why)
#define BOTH(group, unit, says, aim, bound, why)                                                   \
    {group, "paper's settings", unit, says, aim, bound, why},                                      \
    {                                                                                              \
        group, "our settings", unit, says, aim, bound, why                                         \
    }
#define BOTH_PLAIN(group, unit, says) BOTH(group, unit, says, EXPERIMENT_NO_AIM, 0, NULL)

static const struct experiment_row rows[ROWS] = {
    BOTH("Episodes until rewards rest, 5 functions", "episodes", "about 500", EXPERIMENT_AT_MOST,
         500, RESTLESS),
    BOTH("Episodes until they rest again after 5 more join", "episodes", "about 300",
         EXPERIMENT_AT_MOST, 300, RESTLESS),
    {"Episodes until they rest again after 5 more join", "our settings, 10 to 15 functions",
     "episodes", "several hundreds", EXPERIMENT_AT_MOST, 300, RESTLESS},
    BOTH("Episodes until they rest again after 5 leave", "episodes", "several hundreds",
         EXPERIMENT_AT_MOST, 300, RESTLESS),
    BOTH_PLAIN("Reward drop when 5 join", "%", NULL),
    BOTH_PLAIN("Reward drop when 5 leave", "%", "less than when 5 join"),
    SLOWER_ROWS("paper's settings", STARVED),
    SLOWER_ROWS("our settings", SHORT),
    {"p99 above that of single agents, each alone: 15 functions", "our settings, mean", "%",
     "1.8 to 9.9 %", EXPERIMENT_AT_MOST, 9.9, SHORT},
    FASTER_ROWS("paper's settings", STARVED),
    FASTER_ROWS("our settings", NOT_SO_BAD),
    BOTH_PLAIN("p99 of single agents that learned alone, together ÷ MA-PPO's, mean", "×", NULL),
    BOTH_PLAIN("p99 of ENSURE, together ÷ MA-PPO's, mean", "×", NULL),
    BOTH_PLAIN("CPU utilisation", "%", NULL),
    {"CPU utilisation", "ENSURE", "%", NULL, EXPERIMENT_NO_AIM, 0, NULL},
};

/* --- learning -------------------------------------------------------------------------------- */
static void team_clear(struct team *t)
{
    for (size_t i = 0; i < STAGES; i++) {
        train_free(t->train[i]);
        tenants_curve_clear(&t->curves[i]);
    }
}

static int teach(struct experiment_run *run, size_t k, double begin, double end, struct team *t,
                 struct error *err)
{
    for (size_t i = 0; i < STAGES && plans[k][i].episodes > 0; i++) {
        const struct stage *stage = &plans[k][i];
        double width = (end - begin) / STAGES;
        struct tenants_lesson lesson = {
            .who = {"mappo", stage->functions, false, k == PAPERS, 0},
            .episodes = run_episodes(run, stage->episodes, LEAST),
            .from = i > 0 ? t->train[i - 1] : NULL,
            .first = stage->first,
            .stage = 2 + i,
            .begin = begin + width * (double)i,
            .end = begin + width * (double)(i + 1),
        };
        t->train[i] = tenants_learn(run, &lesson, &t->curves[i], err);
        if (t->train[i] == NULL)
            return -1;
    }
    return 0;
}

/* --- telling --------------------------------------------------------------------------------- */
static void tell_curves(struct experiment_run *run, size_t k, const struct team *t)
{
    const struct tenants_curve *c = t->curves;
    size_t left = leaves[k], stages = left + 1;
    run_set(run, CONVERGED + k, tenants_converged(&c[0], TENANTS_MEAN));
    run_set(run, JOINED + k, tenants_converged(&c[1], TENANTS_MEAN));
    run_set(run, LEFT + k, tenants_converged(&c[left], TENANTS_MEAN));
    if (k == OURS)
        run_set(run, JOINED_AGAIN, tenants_converged(&c[2], TENANTS_MEAN));
    run_set(run, JOIN_DROP + k, tenants_drop(&c[0], &c[1]));
    run_set(run, LEAVE_DROP + k, tenants_drop(&c[left - 1], &c[left]));
    tenants_line(run, k, c, stages);
}

static double mean_ratio(const struct tenant_figures *theirs, const struct tenant_figures *ours)
{
    double sum = 0;
    for (size_t i = 0; i < TENANT_KINDS; i++)
        sum += theirs[i].p99_ms / ours[i].p99_ms / TENANT_KINDS;
    return sum;
}

static int tell_five(struct experiment_run *run, size_t k, const struct team *t, struct error *err)
{
    struct tenants who = {"mappo", TENANT_KINDS, false, k == PAPERS, 0};
    const struct tenants_rivals *rivals = &t->rivals;
    struct tenant_figures f[TENANT_KINDS];
    if (tenants_judge(run, &who, t->train[0], f, err) < 0)
        return -1;
    for (size_t i = 0; i < TENANT_KINDS; i++) {
        size_t at = k * TENANT_KINDS + i;
        run_set(run, SLOWER + at, tenants_slower(&f[i], &rivals->alone[i]));
        run_set(run, FASTER + at, rivals->together[i].p99_ms / f[i].p99_ms);
    }
    run_set(run, FASTER_THAN_MOVED + k, mean_ratio(rivals->moved, f));
    run_set(run, FASTER_THAN_ENSURE + k, mean_ratio(rivals->ensure, f));
    run_set(run, UTILIZATION + k, 100 * tenants_mean_utilization(f, TENANT_KINDS));
    run_set(run, UTILIZATION + SETTINGS,
            100 * tenants_mean_utilization(rivals->ensure, TENANT_KINDS));
    return 0;
}

static int tell_fifteen(struct experiment_run *run, const struct team *t, struct error *err)
{
    struct tenants who = {"mappo", MOST_FUNCTIONS, false, false, 0};
    struct tenant_figures f[MOST_FUNCTIONS];
    double slower = 0;
    if (tenants_judge(run, &who, t->train[2], f, err) < 0)
        return -1;
    for (size_t i = 0; i < MOST_FUNCTIONS; i++)
        slower += tenants_slower(&f[i], &t->rivals.alone[i % TENANT_KINDS]) / MOST_FUNCTIONS;
    run_set(run, SLOWER_OF_15, slower);
    return 0;
}

static int run_one(struct experiment_run *run, size_t k, double begin, double end, struct team *t,
                   struct error *err)
{
    double third = begin + (end - begin) / 3;
    size_t episodes = run_episodes(run, RIVAL_EPISODES, LEAST);
    if (tenants_rivals(run, k == PAPERS, episodes, begin, third, &t->rivals, err) < 0 ||
        teach(run, k, third, end, t, err) < 0)
        return -1;
    tell_curves(run, k, t);
    if (tell_five(run, k, t, err) < 0)
        return -1;
    return k == OURS ? tell_fifteen(run, t, err) : 0;
}

static int run(struct experiment_run *run, struct error *err)
{
    int result = 0;
    for (size_t k = 0; k < SETTINGS && result == 0; k++) {
        struct team team = {0};
        result = run_one(run, k, 0.5 * (double)k, 0.5 * (double)(k + 1), &team, err);
        team_clear(&team);
    }
    return result;
}

static const struct experiment_line lines[SETTINGS] = {
    {"team's reward", "paper's settings: 5, 10, 5 functions"},
    {"team's reward", "our settings: 5, 10, 15, 10 functions"},
};

const struct experiment experiment_mappo = {
    .name = "mappo",
    .title = "MA-PPO: a team of agents, and functions that join and leave",
    .document = "MA-PPO (EuroMLSys '22), section 6.3",
    .setting =
        "The platform of srl-multitenant. All get the mean reward of the team, critics see the sum "
        "of all others. After 800 episodes (ours: 550) five functions join, and later five leave; "
        "those that stay keep their agents, those that come begin anew, and a node comes or goes "
        "with each five. p99 is that of whole episodes of the likeliest actions, all on the same "
        "requests, against single agents and ENSURE on them. Agents are compared with others of "
        "the same settings of learning.",
    .rows = rows,
    .row_count = ROWS,
    .x_label = "episodes",
    .lines = lines,
    .line_count = SETTINGS,
    .run = run,
    .headline = SLOWER_OF_15,
};
