/* SIMPPO: one policy for all, that sees a function and the sum of all others. */
#include "tenants.h"

#include <math.h>

#define EPISODES   400
#define RETRAIN    60  /* more than the document needs, so that it can be seen to take longer */
#define LEAST_LOSS 1.0 /* percent: less is none that one could tell */
#define LEAST      4   /* a round of ours, whatever the effort */

static const size_t sizes[] = {5, 10, 20, 50, 110, 50};
#define SIZES ARRAY_LEN(sizes)

enum row {
    SLOWER,                         /* (kinds) */
    FASTER = SLOWER + TENANT_KINDS, /* (kinds) */
    FASTER_THAN_MOVED = FASTER + TENANT_KINDS,
    ENSURE_SLOWER,
    OURS_SLOWER,
    LESS_SLOWER,
    CONVERGED,
    REWARD_DROP,                         /* (sizes beyond the first) */
    RETRAINED = REWARD_DROP + SIZES - 1, /* the same */
    ROWS = RETRAINED + SIZES - 1
};

#define SHORT                                                                                      \
    "The platform gives idle cores to whoever needs them, so that p99 rises with what all use "    \
    "together, whoever decides: agents can only choose who waits. The reward's α of 0.3 counts "  \
    "utilisation more than the goal."
#define NOT_SO_BAD                                                                                 \
    "Single agents that learn together do not fail here: they too see what contention does to "    \
    "their own function."
#define SLOWER_ROW(name)                                                                           \
    {                                                                                              \
        "p99 above that of single agents, each alone", name, "%", "below 9.2 %",                   \
            EXPERIMENT_AT_MOST, 9.2, SHORT                                                         \
    }
#define FASTER_ROW(name)                                                                           \
    {                                                                                              \
        "p99 of single agents that learned together ÷ SIMPPO's", name, "×", "2 to 4.4 ×",          \
            EXPERIMENT_AT_LEAST, 2, NOT_SO_BAD                                                     \
    }
#define SIZE_ROWS(group, unit, last, bound, why)                                                   \
    {group, "5 to 10 functions", unit, NULL, EXPERIMENT_NO_AIM, 0, NULL},                          \
        {group, "10 to 20", unit, NULL, EXPERIMENT_NO_AIM, 0, NULL},                               \
        {group, "20 to 50", unit, NULL, EXPERIMENT_NO_AIM, 0, NULL},                               \
        {group, "50 to 110", unit, last, EXPERIMENT_AT_MOST, bound, why},                          \
    {                                                                                              \
        group, "back to 50", unit, NULL, EXPERIMENT_NO_AIM, 0, NULL                                \
    }

static const struct experiment_row rows[ROWS] = {
    SLOWER_ROW("base64"),
    SLOWER_ROW("primes"),
    SLOWER_ROW("markdown2html"),
    SLOWER_ROW("sentiment-analysis"),
    SLOWER_ROW("image-resize"),
    FASTER_ROW("base64"),
    FASTER_ROW("primes"),
    FASTER_ROW("markdown2html"),
    FASTER_ROW("sentiment-analysis"),
    FASTER_ROW("image-resize"),
    {"p99 of single agents that learned alone, together ÷ SIMPPO's", "mean", "×", NULL,
     EXPERIMENT_NO_AIM, 0, NULL},
    {"p99 together above p99 alone, mean", "ENSURE", "%", NULL, EXPERIMENT_NO_AIM, 0, NULL},
    {"p99 together above p99 alone, mean", "SIMPPO against single agents", "%", NULL,
     EXPERIMENT_NO_AIM, 0, NULL},
    {"p99 together above p99 alone, mean", "ENSURE's ÷ SIMPPO's", "×", "21.4 ×",
     EXPERIMENT_AT_LEAST, 21.4,
     "ENSURE keeps all functions near 2,000 shares, so that all wait alike, and the platform has "
     "the CPU that they need: its loss stays in tens of percent. SIMPPO's, which goes from -5 to "
     "24 % by seed, counts as 1 % at least."},
    {"Episodes until rewards rest, from nothing", "5 functions", "episodes", NULL,
     EXPERIMENT_NO_AIM, 0, NULL},
    SIZE_ROWS("Reward drop when functions join or leave", "%", "3.0 %", 3.0,
              "The policy meets a platform that it does not know."),
    SIZE_ROWS("Episodes until rewards rest again", "episodes", "47.2", 47.2,
              "Rewards still wander when the episodes end."),
};

/* --- functions join -------------------------------------------------------------------------- */
struct growth {
    struct train *first, *last; /* of the first size; of the one before */
    struct tenants_curve curves[SIZES];
};

static void growth_clear(struct growth *g)
{
    if (g->last != g->first)
        train_free(g->last);
    train_free(g->first);
    for (size_t i = 0; i < SIZES; i++)
        tenants_curve_clear(&g->curves[i]);
}

static int grow(struct experiment_run *run, double begin, double end, struct growth *g,
                struct error *err)
{
    double done = begin, work = 0;
    for (size_t i = 0; i < SIZES; i++)
        work += (double)sizes[i];
    for (size_t i = 0; i < SIZES; i++) {
        double after = done + (end - begin) * (double)sizes[i] / work;
        struct tenants_lesson lesson = {
            .who = {"simppo", sizes[i], false, false, 0},
            .episodes = run_episodes(run, i > 0 ? RETRAIN : EPISODES, LEAST),
            .from = g->last,
            .stage = 2 + i,
            .begin = done,
            .end = after,
        };
        struct train *train = tenants_learn(run, &lesson, &g->curves[i], err);
        if (train == NULL)
            return -1;
        if (g->last != g->first)
            train_free(g->last);
        g->first = g->first ? g->first : train;
        g->last = train;
        done = after;
    }
    return 0;
}

static void tell_growth(struct experiment_run *run, const struct growth *g)
{
    run_set(run, CONVERGED, tenants_converged(&g->curves[0], TENANTS_MEAN));
    for (size_t i = 1; i < SIZES; i++) {
        run_set(run, REWARD_DROP + i - 1, tenants_drop(&g->curves[i - 1], &g->curves[i]));
        run_set(run, RETRAINED + i - 1, tenants_converged(&g->curves[i], TENANTS_MEAN));
    }
    tenants_line(run, 0, g->curves, SIZES);
}

/* --- against others -------------------------------------------------------------------------- */
static void compare(struct experiment_run *run, const struct tenant_figures *f,
                    const struct tenants_rivals *rivals)
{
    double ours = 0, theirs = 0, faster = 0;
    for (size_t i = 0; i < TENANT_KINDS; i++) {
        double slower = tenants_slower(&f[i], &rivals->alone[i]);
        run_set(run, SLOWER + i, slower);
        run_set(run, FASTER + i, rivals->together[i].p99_ms / f[i].p99_ms);
        faster += rivals->moved[i].p99_ms / f[i].p99_ms / TENANT_KINDS;
        ours += slower / TENANT_KINDS;
        theirs += tenants_slower(&rivals->ensure[i], &rivals->ensure_alone[i]) / TENANT_KINDS;
    }
    run_set(run, FASTER_THAN_MOVED, faster);
    run_set(run, ENSURE_SLOWER, theirs);
    run_set(run, OURS_SLOWER, ours);
    run_set(run, LESS_SLOWER, theirs / fmax(ours, LEAST_LOSS));
}

static int run(struct experiment_run *run, struct error *err)
{
    struct tenants five = {"simppo", TENANT_KINDS, false, false, 0};
    struct tenants_rivals rivals;
    struct tenant_figures f[TENANT_KINDS];
    struct growth g = {0};
    size_t episodes = run_episodes(run, EPISODES, LEAST);
    int result = tenants_rivals(run, false, episodes, 0, 0.3, &rivals, err);
    if (result == 0)
        result = grow(run, 0.3, 1, &g, err);
    if (result == 0)
        result = tenants_judge(run, &five, g.first, f, err);
    if (result == 0) {
        compare(run, f, &rivals);
        tell_growth(run, &g);
    }
    growth_clear(&g);
    return result;
}

static const struct experiment_line lines[] = {
    {"mean reward", "5, 10, 20, 50, 110, 50 functions"},
};

const struct experiment experiment_simppo = {
    .name = "simppo",
    .title = "SIMPPO: one policy for any number of functions",
    .document = "SIMPPO (SoCC '22, slides)",
    .setting =
        "The platform of srl-multitenant and our settings of learning, as the slides tell none. "
        "One "
        "policy decides for all functions by the state of each and the virtual agent. Sums over "
        "all others are divided by their number, as else 110 functions look like nothing that was "
        "learned from 5; and a decision earns its function's own reward, as it would be lost in "
        "the noise of the mean of 110. It learns with 5 functions; then "
        "others join until there are 110, and 60 leave, and the same network goes on, 60 episodes "
        "each time. A node comes with each five functions, so that each has as much room as "
        "before. The drop is that of the first four episodes.",
    .rows = rows,
    .row_count = ROWS,
    .x_label = "episodes",
    .lines = lines,
    .line_count = ARRAY_LEN(lines),
    .run = run,
    .headline = RETRAINED + 3, /* 50 to 110 functions */
};
