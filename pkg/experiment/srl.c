/* Single agents: each alone on the platform, and all of them on it at once. */
#include "tenants.h"

#include <math.h>

#define EPISODES 500
#define LEAST    4 /* a round of ours, whatever the effort */

/* CAREFUL: ours, with a reward that counts the goal more. Only alone. */
enum { PAPERS, OURS, SETTINGS, CAREFUL = SETTINGS, ALONE_SETTINGS };
#define CAREFUL_ALPHA 0.8

struct school { /* five agents that learned by each setting */
    size_t settings;
    struct tenants who[ALONE_SETTINGS];
    struct train *train[ALONE_SETTINGS];
    struct tenants_curve curves[ALONE_SETTINGS];
};

static void school_clear(struct school *s)
{
    for (size_t k = 0; k < s->settings; k++) {
        train_free(s->train[k]);
        tenants_curve_clear(&s->curves[k]);
    }
}

static int teach(struct experiment_run *run, bool alone, size_t settings, double begin, double end,
                 struct school *out, struct error *err)
{
    *out = (struct school){.settings = settings};
    for (size_t k = 0; k < settings; k++) {
        out->who[k] = (struct tenants){"ppo", TENANT_KINDS, alone, k == PAPERS,
                                       k == CAREFUL ? CAREFUL_ALPHA : 0};
        double part = (end - begin) / (double)settings, first = begin + part * (double)k;
        struct tenants_lesson lesson = {.who = out->who[k],
                                        .episodes = run_episodes(run, EPISODES, LEAST),
                                        .stage = alone ? 0 : 1,
                                        .begin = first,
                                        .end = first + part};
        out->train[k] = tenants_learn(run, &lesson, &out->curves[k], err);
        if (out->train[k] == NULL) {
            school_clear(out);
            return -1;
        }
    }
    return 0;
}

/* --- alone ----------------------------------------------------------------------------------- */
enum isolation_row {
    ALONE_CONVERGED,
    ALONE_P99 = ALONE_CONVERGED + ALONE_SETTINGS,             /* (settings, kinds) */
    ALONE_BROKEN = ALONE_P99 + ALONE_SETTINGS * TENANT_KINDS, /* and ENSURE's */
    ALONE_UTILIZATION = ALONE_BROKEN + ALONE_SETTINGS + 1,
    ALONE_GAIN = ALONE_UTILIZATION + ALONE_SETTINGS + 1,
    ALONE_ROWS = ALONE_GAIN + ALONE_SETTINGS
};

#define GREEDY                                                                                      \
    "The reward's α of 0.3 counts utilisation more than the goal: one container fewer earns more " \
    "than the requests that are late by it cost. Below is the same with α = 0.8."
#define AS_FAST(name, settings, why)                                                               \
    {                                                                                              \
        "p99 of single agents ÷ ENSURE's, " settings, name, "×", "similar", EXPERIMENT_AT_MOST,    \
            1.1, why                                                                               \
    }
#define AS_FAST_ALL(settings, why)                                                                 \
    AS_FAST("base64", settings, why), AS_FAST("primes", settings, why),                            \
        AS_FAST("markdown2html", settings, why), AS_FAST("sentiment-analysis", settings, why),     \
        AS_FAST("image-resize", settings, why)

static const struct experiment_row isolation_rows[ALONE_ROWS] = {
    {"Episodes until rewards rest, mean of five functions", "paper's settings", "episodes",
     "280 to 350", EXPERIMENT_AT_MOST, 350,
     "Minibatches of 5 decisions and no normalised advantages: rewards still wander."},
    {"Episodes until rewards rest, mean of five functions", "our settings", "episodes",
     "280 to 350", EXPERIMENT_AT_MOST, 350, "It has not come to rest."},
    {"Episodes until rewards rest, mean of five functions", "our settings, α = 0.8", "episodes",
     "280 to 350", EXPERIMENT_AT_MOST, 350, "It has not come to rest."},
    AS_FAST_ALL("paper's settings", GREEDY),
    AS_FAST_ALL("our settings", GREEDY),
    AS_FAST_ALL("our settings, α = 0.8", "Even so, fewer late requests do not pay for the CPU."),
    {"Requests that broke their goal", "single agents, paper's settings", "%", NULL,
     EXPERIMENT_NO_AIM, 0, NULL},
    {"Requests that broke their goal", "single agents, our settings", "%", NULL, EXPERIMENT_NO_AIM,
     0, NULL},
    {"Requests that broke their goal", "single agents, our settings, α = 0.8", "%", NULL,
     EXPERIMENT_NO_AIM, 0, NULL},
    {"Requests that broke their goal", "ENSURE", "%", NULL, EXPERIMENT_NO_AIM, 0, NULL},
    {"CPU utilisation", "single agents, paper's settings", "%", NULL, EXPERIMENT_NO_AIM, 0, NULL},
    {"CPU utilisation", "single agents, our settings", "%", NULL, EXPERIMENT_NO_AIM, 0, NULL},
    {"CPU utilisation", "single agents, our settings, α = 0.8", "%", NULL, EXPERIMENT_NO_AIM, 0,
     NULL},
    {"CPU utilisation", "ENSURE", "%", NULL, EXPERIMENT_NO_AIM, 0, NULL},
    {"CPU utilisation above ENSURE's", "single agents, paper's settings", "%", "about 20 %",
     EXPERIMENT_AT_LEAST, 20, "Agents keep more than they use."},
    {"CPU utilisation above ENSURE's", "single agents, our settings", "%", "about 20 %",
     EXPERIMENT_AT_LEAST, 20, "Agents keep more than they use."},
    {"CPU utilisation above ENSURE's", "single agents, our settings, α = 0.8", "%", "about 20 %",
     EXPERIMENT_AT_LEAST, 20, "Agents keep more than they use."},
};

static double mean_converged(const struct tenants_curve *curve)
{
    double sum = 0;
    for (size_t i = 0; i < TENANT_KINDS; i++)
        sum += tenants_converged(curve, i);
    return sum / TENANT_KINDS;
}

static double mean_broken(const struct tenant_figures *f)
{
    double sum = 0;
    for (size_t i = 0; i < TENANT_KINDS; i++)
        sum += 100 * f[i].violation_ratio;
    return sum / TENANT_KINDS;
}

static void tell_isolation(struct experiment_run *run, size_t k,
                           const struct tenant_figures *agents, const struct tenant_figures *ensure)
{
    double used = tenants_mean_utilization(agents, TENANT_KINDS),
           theirs = tenants_mean_utilization(ensure, TENANT_KINDS);
    for (size_t i = 0; i < TENANT_KINDS; i++)
        run_set(run, ALONE_P99 + k * TENANT_KINDS + i, agents[i].p99_ms / ensure[i].p99_ms);
    run_set(run, ALONE_BROKEN + k, mean_broken(agents));
    run_set(run, ALONE_UTILIZATION + k, 100 * used);
    run_set(run, ALONE_GAIN + k, 100 * (used / theirs - 1));
}

static int run_isolation(struct experiment_run *run, struct error *err)
{
    struct tenants nobody = {NULL, TENANT_KINDS, true, false, 0};
    struct tenant_figures agents[TENANT_KINDS], ensure[TENANT_KINDS];
    struct school school;
    if (teach(run, true, ALONE_SETTINGS, 0, 0.95, &school, err) < 0)
        return -1;
    int result = tenants_judge(run, &nobody, NULL, ensure, err);
    for (size_t k = 0; k < ALONE_SETTINGS && result == 0; k++) {
        result = tenants_judge(run, &school.who[k], school.train[k], agents, err);
        if (result < 0)
            break;
        run_set(run, ALONE_CONVERGED + k, mean_converged(&school.curves[k]));
        tell_isolation(run, k, agents, ensure);
        tenants_line(run, k, &school.curves[k], 1);
    }
    if (result == 0) {
        run_set(run, ALONE_BROKEN + ALONE_SETTINGS, mean_broken(ensure));
        run_set(run, ALONE_UTILIZATION + ALONE_SETTINGS,
                100 * tenants_mean_utilization(ensure, TENANT_KINDS));
    }
    school_clear(&school);
    return result;
}

static const struct experiment_line isolation_lines[ALONE_SETTINGS] = {
    {"reward of a decision", "paper's settings"},
    {"reward of a decision", "our settings"},
    {"reward of a decision", "our settings, α = 0.8"}};

const struct experiment experiment_srl_isolation = {
    .name = "srl-isolation",
    .title = "Single agents, each alone on the platform",
    .document = "MA-PPO (EuroMLSys '22), section 5.1",
    .setting =
        "Five functions like the document's benchmarks, with flat and fluctuating Poisson loads; "
        "each has an agent (PPO) with the document's state, actions and reward (α = 0.3), and "
        "nobody else on the platform. 500 episodes of 200 decisions, one each 5 s. *Paper's "
        "settings* are those of table 3, an update after each episode, and illegal actions that "
        "cost; *ours* learn from four episodes at once, discount by 0.9 and leave illegal actions "
        "out. Then all are judged by their likeliest actions over four more episodes, beside "
        "ENSURE on the same requests. Other than there, at most 16 containers, and episodes have "
        "their full length from the first one on.",
    .rows = isolation_rows,
    .row_count = ALONE_ROWS,
    .x_label = "episodes",
    .lines = isolation_lines,
    .line_count = ALONE_SETTINGS,
    .run = run_isolation,
    .headline = ALONE_CONVERGED + OURS,
};

/* --- together -------------------------------------------------------------------------------- */
enum multitenant_row {
    SLOWER, /* (settings, kinds) */
    REWARD_DROP = SLOWER + SETTINGS * TENANT_KINDS,
    VARIANCE = REWARD_DROP + SETTINGS,
    TOGETHER_CONVERGED = VARIANCE + SETTINGS,
    TOGETHER_SLOWER = TOGETHER_CONVERGED + SETTINGS,
    TOGETHER_ROWS = TOGETHER_SLOWER + SETTINGS
};

#define NO_HARM                                                                                    \
    "An agent that ended with more cpu.shares than it needs, or with so few containers that few "  \
    "of its requests ever run at once, has little to lose on a platform that gives idle cores to " \
    "whoever needs them."
#define HARM(name, settings, says)                                                                 \
    {                                                                                              \
        "p99 together above p99 alone, " settings, name, "%", says, EXPERIMENT_AT_LEAST, 10,       \
            NO_HARM                                                                                \
    }
#define HARM_ALL(settings)                                                                         \
    HARM("base64", settings, "64.5 to 78.2 %"), HARM("primes", settings, "64.5 to 78.2 %"),        \
        HARM("markdown2html", settings, "78.2 %"), HARM("sentiment-analysis", settings, "64.5 %"), \
        HARM("image-resize", settings, "64.5 to 78.2 %")

static const struct experiment_row multitenant_rows[TOGETHER_ROWS] = {
    HARM_ALL("paper's settings"),
    HARM_ALL("our settings"),
    {"Trained together: reward below that of agents trained alone", "paper's settings", "%",
     "55.9 %", EXPERIMENT_NO_AIM, 0, NULL},
    {"Trained together: reward below that of agents trained alone", "our settings", "%", "55.9 %",
     EXPERIMENT_NO_AIM, 0, NULL},
    {"Trained together: spread of late episodes' rewards ÷ alone", "paper's settings", "×",
     "higher", EXPERIMENT_NO_AIM, 0, NULL},
    {"Trained together: spread of late episodes' rewards ÷ alone", "our settings", "×", "higher",
     EXPERIMENT_NO_AIM, 0, NULL},
    {"Trained together: episodes until rewards rest", "paper's settings", "episodes",
     "not in a stable manner", EXPERIMENT_NO_AIM, 0, NULL},
    {"Trained together: episodes until rewards rest", "our settings", "episodes",
     "not in a stable manner", EXPERIMENT_NO_AIM, 0, NULL},
    {"Trained together: p99 above that of agents trained alone, alone", "paper's settings", "%",
     NULL, EXPERIMENT_NO_AIM, 0, NULL},
    {"Trained together: p99 above that of agents trained alone, alone", "our settings", "%", NULL,
     EXPERIMENT_NO_AIM, 0, NULL},
};

/* Of the last fifth, the mean of what functions spread. */
static double late_spread(const struct tenants_curve *c)
{
    size_t first = c->count * 4 / 5, count = c->count - first;
    double spread = 0;
    for (size_t i = 0; i < c->functions; i++) {
        double sum = 0, squares = 0;
        for (size_t k = first; k < c->count; k++)
            sum += c->rewards[k * c->functions + i];
        for (size_t k = first; k < c->count; k++)
            squares += pow(c->rewards[k * c->functions + i] - sum / (double)count, 2);
        spread += sqrt(squares / (double)count) / (double)c->functions;
    }
    return spread;
}

static double drop(double before, double after)
{
    return 100 * (1 - after / before);
}

static void tell_curves(struct experiment_run *run, size_t k, const struct tenants_curve *alone,
                        const struct tenants_curve *together)
{
    run_set(run, REWARD_DROP + k, drop(tenants_last_reward(alone), tenants_last_reward(together)));
    run_set(run, VARIANCE + k, late_spread(together) / late_spread(alone));
    run_set(run, TOGETHER_CONVERGED + k, mean_converged(together));
    tenants_line(run, 2 * k, alone, 1);
    tenants_line(run, 2 * k + 1, together, 1);
}

static int judge_together(struct experiment_run *run, size_t k, const struct school *alone,
                          const struct school *together, struct error *err)
{
    struct tenant_figures before[TENANT_KINDS], now[TENANT_KINDS], trained[TENANT_KINDS];
    double slower = 0;
    if (tenants_judge(run, &alone->who[k], alone->train[k], before, err) < 0 ||
        tenants_judge(run, &together->who[k], alone->train[k], now, err) < 0 ||
        tenants_judge(run, &together->who[k], together->train[k], trained, err) < 0)
        return -1;
    for (size_t i = 0; i < TENANT_KINDS; i++) {
        run_set(run, SLOWER + k * TENANT_KINDS + i, tenants_slower(&now[i], &before[i]));
        slower += tenants_slower(&trained[i], &before[i]) / TENANT_KINDS;
    }
    run_set(run, TOGETHER_SLOWER + k, slower);
    return 0;
}

static int run_multitenant(struct experiment_run *run, struct error *err)
{
    struct school alone, together;
    int result = 0;
    if (teach(run, true, SETTINGS, 0, 0.45, &alone, err) < 0)
        return -1;
    if (teach(run, false, SETTINGS, 0.45, 0.95, &together, err) < 0) {
        school_clear(&alone);
        return -1;
    }
    for (size_t k = 0; k < SETTINGS && result == 0; k++) {
        tell_curves(run, k, &alone.curves[k], &together.curves[k]);
        result = judge_together(run, k, &alone, &together, err);
    }
    school_clear(&alone);
    school_clear(&together);
    return result;
}

static const struct experiment_line multitenant_lines[2 * SETTINGS] = {
    {"reward of a decision, paper's settings", "alone"},
    {"reward of a decision, paper's settings", "together"},
    {"reward of a decision, our settings", "alone"},
    {"reward of a decision, our settings", "together"},
};

const struct experiment experiment_srl_multitenant = {
    .name = "srl-multitenant",
    .title = "Single agents that share a platform",
    .document = "MA-PPO (EuroMLSys '22), section 5.2",
    .setting = "The five functions and agents of srl-isolation, on one node whose cores are "
               "shared by cpu.shares where they are short. First those that learned alone run "
               "together; then five learn together, each for itself and without seeing the "
               "others.",
    .rows = multitenant_rows,
    .row_count = TOGETHER_ROWS,
    .x_label = "episodes",
    .lines = multitenant_lines,
    .line_count = 2 * SETTINGS,
    .run = run_multitenant,
    .headline = SLOWER + 2, /* markdown2html, the document's worst */
};
