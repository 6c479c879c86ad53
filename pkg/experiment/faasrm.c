/* FaaSRM: what users over-provision is harvested for what they under-provision, invocation by
 * invocation. */
#include "experiment/internal.h"

#include "harvest/policy.h"

#include <math.h>

/* --- what is asked -------------------------------------------------------------------------------
 */
#define WORKLOAD                                                                                   \
    "who knows every input comes to the figure of 'what is possible': half of our functions "      \
    "cannot "                                                                                      \
    "use a second core, and users ask for too much more often than for too little. The paper "     \
    "does "                                                                                        \
    "not say how fast its functions could have been"

enum who { WHO_FAASRM, WHO_FIXED, WHO_GREEDY, WHO_ENSURE, WHO_CHANCE, WHO_ORACLE, WHO_COUNT };
#define PAPERS 4 /* the first of them */

enum { /* RFET + who, and so on */
       RFET = 0,
       GAIN = RFET + WHO_COUNT,
       TIME,
       TIME_CHANGE = TIME + PAPERS,
       TIME_POSSIBLE,
       HARVESTED,
       ACCELERATED,
       WAIT,
       WAIT_FIXED,
       WAIT_CHANCE,
       SLOWED,
       SLOWED_GREEDY,
       SLOWED_FREE,
       TAIL,
       TAIL_FREE = TAIL + PAPERS,
       RFET_FREE,
       SMALL_RFET,
       SMALL_POSSIBLE = SMALL_RFET + PAPERS,
       SMALL_TAIL,
       SMALL_CHANGE = SMALL_TAIL + PAPERS,
       SMALL_HARVESTED,
       SMALL_ACCELERATED,
       ROW_COUNT
};

#define MEAN  "Simulation: mean RFET"
#define P98   "Simulation: p98 of execution times"
#define SHARE "Simulation: invocations"
#define GUARD "Simulation: harm"
#define SMALL "10 functions, 268 invocations"
#define PLAIN(group, what, unit, document)                                                         \
    {                                                                                              \
        group, what, unit, document, EXPERIMENT_NO_AIM, 0, NULL                                    \
    }

static const struct experiment_row rows[ROW_COUNT] = {
    [RFET] = {MEAN, "FaaSRM", "", "0.76", EXPERIMENT_AT_MOST, 0.76, WORKLOAD},
    [RFET + WHO_FIXED] = PLAIN(MEAN, "Fixed", "", "1.00"),
    [RFET + WHO_GREEDY] = PLAIN(MEAN, "Greedy", "", "1.49"),
    [RFET + WHO_ENSURE] = PLAIN(MEAN, "ENSURE", "", "0.91"),
    [RFET + WHO_CHANCE] = PLAIN(MEAN, "the safeguard's options by chance", "", NULL),
    [RFET + WHO_ORACLE] = PLAIN(MEAN, "what is possible", "", NULL),
    [GAIN] = PLAIN(MEAN, "FaaSRM, share of what is possible", "%", NULL),
    [TIME] = PLAIN(P98, "FaaSRM", "s", "15 s"),
    [TIME + WHO_FIXED] = PLAIN(P98, "Fixed", "s", "121 s"),
    [TIME + WHO_GREEDY] = PLAIN(P98, "Greedy", "s", "76 s"),
    [TIME + WHO_ENSURE] = PLAIN(P98, "ENSURE", "s", "48 s"),
    [TIME_CHANGE] = {P98, "FaaSRM against Fixed", "%", "-87.6 %", EXPERIMENT_AT_MOST, -87.6,
                     WORKLOAD},
    [TIME_POSSIBLE] = PLAIN(P98, "what is possible against Fixed", "%", NULL),
    [HARVESTED] = PLAIN(SHARE, "harvested", "%", NULL),
    [ACCELERATED] = PLAIN(SHARE, "accelerated", "%", NULL),
    [WAIT] = PLAIN(SHARE, "mean wait, FaaSRM", "s", NULL),
    [WAIT_FIXED] = PLAIN(SHARE, "mean wait, Fixed", "s", NULL),
    [WAIT_CHANCE] = PLAIN(SHARE, "mean wait, options by chance", "s", NULL),
    [SLOWED] = {GUARD, "harvested and over 1.1 times slower, FaaSRM", "%", "none",
                EXPERIMENT_AT_MOST, 1,
                "an input may need more than any before it: the safeguard answers in the next "
                "invocation"},
    [SLOWED_GREEDY] = PLAIN(GUARD, "harvested and slower, Greedy", "%", NULL),
    [SLOWED_FREE] = PLAIN(GUARD, "harvested and slower, learned without the safeguard", "%", NULL),
    [TAIL] = PLAIN(GUARD, "p98 of RFET, FaaSRM", "", NULL),
    [TAIL + WHO_FIXED] = PLAIN(GUARD, "p98 of RFET, Fixed", "", NULL),
    [TAIL + WHO_GREEDY] = PLAIN(GUARD, "p98 of RFET, Greedy", "", NULL),
    [TAIL + WHO_ENSURE] = PLAIN(GUARD, "p98 of RFET, ENSURE", "", NULL),
    [TAIL_FREE] = PLAIN(GUARD, "p98 of RFET, learned without the safeguard", "", NULL),
    [RFET_FREE] = PLAIN(GUARD, "mean RFET, learned without the safeguard", "", NULL),
    [SMALL_RFET] = {SMALL, "mean RFET, FaaSRM", "", "0.89", EXPERIMENT_AT_MOST, 0.89, WORKLOAD},
    [SMALL_RFET + WHO_FIXED] = PLAIN(SMALL, "mean RFET, Fixed", "", "1.09"),
    [SMALL_RFET + WHO_GREEDY] = PLAIN(SMALL, "mean RFET, Greedy", "", "0.93"),
    [SMALL_RFET + WHO_ENSURE] = PLAIN(SMALL, "mean RFET, ENSURE", "", "1.12"),
    [SMALL_POSSIBLE] = PLAIN(SMALL, "mean RFET, what is possible", "", NULL),
    [SMALL_TAIL] = {SMALL, "p98 of RFET, FaaSRM", "", "1.28", EXPERIMENT_AT_MOST, 1.28,
                    "noise alone comes to 1.27"},
    [SMALL_TAIL + WHO_FIXED] = PLAIN(SMALL, "p98 of RFET, Fixed", "", "1.27"),
    [SMALL_TAIL + WHO_GREEDY] = PLAIN(SMALL, "p98 of RFET, Greedy", "", "2.52"),
    [SMALL_TAIL + WHO_ENSURE] = PLAIN(SMALL, "p98 of RFET, ENSURE", "", "5.2"),
    [SMALL_CHANGE] = {SMALL, "p98 of execution times, FaaSRM against Fixed", "%", "-35.81 %",
                      EXPERIMENT_AT_MOST, -35.81, WORKLOAD},
    [SMALL_HARVESTED] = {SMALL, "harvested", "%", "38.8 %", EXPERIMENT_AT_LEAST, 38.8,
                         "while half of the cores lie idle nobody waits for what could be "
                         "harvested, and the reward does not ask for it"},
    [SMALL_ACCELERATED] = {SMALL, "accelerated", "%", "39.2 %", EXPERIMENT_AT_LEAST, 39.2,
                           "half of the functions cannot use a second core"},
};

enum { LINE_RFET, LINE_RFET_FREE, LINE_REWARD, LINE_REWARD_FREE, LINE_COUNT };
static const struct experiment_line lines[LINE_COUNT] = {
    [LINE_RFET] = {"mean RFET", "FaaSRM"},
    [LINE_RFET_FREE] = {"mean RFET", "without the safeguard"},
    [LINE_REWARD] = {"mean reward", "FaaSRM"},
    [LINE_REWARD_FREE] = {"mean reward", "without the safeguard"},
};

/* --- the setting ---------------------------------------------------------------------------------
 */
#define EPISODES       60
#define SMALL_EPISODES 500
#define SMALL_DRAWS    20 /* workloads of 268 invocations, for figures that stand still */
#define CURVE_POINTS   12
#define CHECK_SEED     1 /* of the workload behind the curves; no episode has it, nor the test */
#define TEST_SEED      2
#define FIRST_EPISODE  1000

/* Half as many workers and functions as in the test, and an invocation in nine: a function is met
 * ten times, when its allocations still move. */
static const struct harvest_cluster training_cluster = {
    .workers = 10, .capacity = {8, 2048}, .most = {8, 512}, .step = {1, 64}};
static const struct harvest_workload_config training_load = {
    .functions = 500, .invocations = 5000, .occupancy = 0.5, .noise_low = 1, .noise_high = 1};

/* With less effort, fewer functions and invocations on the same workers. */
static struct harvest_workload_config test_load(const struct experiment_run *run)
{
    struct harvest_workload_config config = harvest_azure;
    size_t functions = run_episodes(run, config.functions, 50);
    size_t invocations = run_episodes(run, config.invocations, 2000);
    config.functions = functions < config.functions ? functions : config.functions;
    config.invocations = invocations < config.invocations ? invocations : config.invocations;
    return config;
}

static uint64_t seed_of(const struct experiment_run *run, uint64_t which)
{
    return run->seed * 1000000 + which;
}

struct done { /* of a seed */
    struct experiment_run *run;
    double episodes, all;
};

static int count_episode(struct done *d, struct error *err)
{
    d->episodes++;
    return run_progress(d->run, d->episodes / d->all, err);
}

/* --- learning ------------------------------------------------------------------------------------
 */
struct lesson {
    const struct harvest_cluster *cluster;
    const struct harvest_workload_config *load;
    size_t episodes;
    bool safeguard;
    double *x, *rfet, *reward; /* of the curves; NULL: none */
    size_t points;
};

static double mean_reward(const struct harvest_outcome *outcomes, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += harvest_reward(&outcomes[i]);
    return sum / (double)count;
}

/* How it does after so many episodes, on a workload that it does not learn from. */
static void look(const struct experiment_run *run, struct lesson *l,
                 const struct harvest_policy *policy, size_t episodes,
                 struct harvest_outcome *outcomes)
{
    struct harvest_workload load;
    harvest_workload_make(l->load, l->cluster, seed_of(run, CHECK_SEED), &load);
    harvest_policy_run(policy, l->cluster, &load, outcomes);
    l->x[l->points] = (double)episodes;
    l->rfet[l->points] = harvest_summarise(outcomes, load.invocation_count).mean_rfet;
    l->reward[l->points++] = mean_reward(outcomes, load.invocation_count);
    harvest_workload_clear(&load);
}

static int learn(struct done *done, struct lesson *l, struct harvest_policy *policy,
                 struct harvest_outcome *outcomes, struct error *err)
{
    for (size_t i = 0; i < l->episodes; i++) {
        struct harvest_workload load;
        /* Points at equal distances, the first before the first episode. */
        if (l->x && i * CURVE_POINTS / l->episodes >= l->points)
            look(done->run, l, policy, i, outcomes);
        harvest_workload_make(l->load, l->cluster, seed_of(done->run, FIRST_EPISODE + i), &load);
        int result = harvest_policy_train(policy, l->cluster, &load, outcomes, err);
        harvest_workload_clear(&load);
        if (result < 0 || count_episode(done, err) < 0)
            return -1;
    }
    if (l->x)
        look(done->run, l, policy, l->episodes, outcomes);
    return 0;
}

static struct harvest_policy *teach(struct done *done, struct lesson *l, struct error *err)
{
    cleanup_free struct harvest_outcome *outcomes =
        xcalloc(l->load->invocations, sizeof(*outcomes));
    struct harvest_policy *policy =
        harvest_policy_new(&rl_score_default, l->safeguard, l->episodes, done->run->seed, err);
    if (policy == NULL || learn(done, l, policy, outcomes, err) == 0)
        return policy;
    harvest_policy_free(policy);
    return NULL;
}

/* --- comparing -----------------------------------------------------------------------------------
 */
static void let_decide(enum who who, const struct harvest_policy *policy,
                       const struct harvest_cluster *cluster, struct harvest_workload *load,
                       uint64_t seed, struct harvest_outcome *outcomes)
{
    struct harvest_ensure *ensure = harvest_ensure_new(load->function_count);
    if (who == WHO_FAASRM)
        harvest_policy_run(policy, cluster, load, outcomes);
    else if (who == WHO_CHANCE)
        harvest_chance_run(cluster, load, seed, outcomes);
    else if (who == WHO_FIXED)
        harvest_run(cluster, load, &harvest_fixed, NULL, outcomes);
    else if (who == WHO_GREEDY)
        harvest_run(cluster, load, &harvest_greedy, NULL, outcomes);
    else if (who == WHO_ENSURE)
        harvest_run(cluster, load, &harvest_ensure, ensure, outcomes);
    else
        harvest_run(cluster, load, &harvest_oracle, load, outcomes);
    harvest_ensure_free(ensure);
}

/* Of all draws of a workload together. */
static struct harvest_summary judge(enum who who, const struct harvest_policy *policy,
                                    const struct harvest_cluster *cluster,
                                    const struct harvest_workload_config *config, uint64_t seed,
                                    size_t draws)
{
    size_t n = config->invocations;
    cleanup_free struct harvest_outcome *outcomes = xcalloc(draws * n, sizeof(*outcomes));
    for (size_t i = 0; i < draws; i++) {
        struct harvest_workload load;
        harvest_workload_make(config, cluster, seed + i, &load);
        let_decide(who, policy, cluster, &load, seed + i, outcomes + i * n);
        harvest_workload_clear(&load);
    }
    return harvest_summarise(outcomes, draws * n);
}

static double percent_change(double value, double from)
{
    return (value / from - 1) * 100;
}

static void tell_simulation(struct experiment_run *run, const struct harvest_policy *policy)
{
    const struct harvest_workload_config load = test_load(run);
    struct harvest_summary s[WHO_COUNT];
    for (int w = 0; w < WHO_COUNT; w++)
        s[w] = judge((enum who)w, policy, &harvest_simulation, &load, seed_of(run, TEST_SEED), 1);
    const struct harvest_summary *own = &s[WHO_FAASRM], *fixed = &s[WHO_FIXED],
                                 *oracle = &s[WHO_ORACLE];
    for (int w = 0; w < WHO_COUNT; w++)
        run_set(run, RFET + (size_t)w, s[w].mean_rfet);
    for (int w = 0; w < PAPERS; w++) {
        run_set(run, TIME + (size_t)w, s[w].p98_execution_s);
        run_set(run, TAIL + (size_t)w, s[w].p98_rfet);
    }
    run_set(run, GAIN, (1 - own->mean_rfet) / (1 - oracle->mean_rfet) * 100);
    run_set(run, TIME_CHANGE, percent_change(own->p98_execution_s, fixed->p98_execution_s));
    run_set(run, TIME_POSSIBLE, percent_change(oracle->p98_execution_s, fixed->p98_execution_s));
    run_set(run, HARVESTED, own->harvested * 100);
    run_set(run, ACCELERATED, own->accelerated * 100);
    run_set(run, WAIT, own->mean_wait_s);
    run_set(run, WAIT_FIXED, fixed->mean_wait_s);
    run_set(run, WAIT_CHANCE, s[WHO_CHANCE].mean_wait_s);
    run_set(run, SLOWED, own->slowed * 100);
    run_set(run, SLOWED_GREEDY, s[WHO_GREEDY].slowed * 100);
}

static void tell_free(struct experiment_run *run, const struct harvest_policy *policy)
{
    const struct harvest_workload_config load = test_load(run);
    struct harvest_summary s =
        judge(WHO_FAASRM, policy, &harvest_simulation, &load, seed_of(run, TEST_SEED), 1);
    run_set(run, RFET_FREE, s.mean_rfet);
    run_set(run, TAIL_FREE, s.p98_rfet);
    run_set(run, SLOWED_FREE, s.slowed * 100);
}

static void tell_small(struct experiment_run *run, const struct harvest_policy *policy)
{
    struct harvest_summary s[WHO_COUNT];
    for (int w = 0; w < WHO_COUNT; w++)
        s[w] = judge((enum who)w, policy, &harvest_openwhisk, &harvest_applications,
                     seed_of(run, TEST_SEED), SMALL_DRAWS);
    const struct harvest_summary *own = &s[WHO_FAASRM], *fixed = &s[WHO_FIXED];
    for (int w = 0; w < PAPERS; w++) {
        run_set(run, SMALL_RFET + (size_t)w, s[w].mean_rfet);
        run_set(run, SMALL_TAIL + (size_t)w, s[w].p98_rfet);
    }
    run_set(run, SMALL_POSSIBLE, s[WHO_ORACLE].mean_rfet);
    run_set(run, SMALL_CHANGE, percent_change(own->p98_execution_s, fixed->p98_execution_s));
    run_set(run, SMALL_HARVESTED, own->harvested * 100);
    run_set(run, SMALL_ACCELERATED, own->accelerated * 100);
}

/* --- all of it -----------------------------------------------------------------------------------
 */
static int learn_simulation(struct done *done, size_t episodes, bool safeguard, struct error *err)
{
    double x[CURVE_POINTS + 1], rfet[CURVE_POINTS + 1], reward[CURVE_POINTS + 1];
    struct lesson l = {.cluster = &training_cluster,
                       .load = &training_load,
                       .episodes = episodes,
                       .safeguard = safeguard,
                       .x = x,
                       .rfet = rfet,
                       .reward = reward};
    struct harvest_policy *policy = teach(done, &l, err);
    if (policy == NULL)
        return -1;
    run_line(done->run, safeguard ? LINE_RFET : LINE_RFET_FREE, x, rfet, l.points);
    run_line(done->run, safeguard ? LINE_REWARD : LINE_REWARD_FREE, x, reward, l.points);
    if (safeguard)
        tell_simulation(done->run, policy);
    else
        tell_free(done->run, policy);
    harvest_policy_free(policy);
    return 0;
}

static int learn_small(struct done *done, size_t episodes, struct error *err)
{
    struct lesson l = {.cluster = &harvest_openwhisk,
                       .load = &harvest_applications,
                       .episodes = episodes,
                       .safeguard = true};
    struct harvest_policy *policy = teach(done, &l, err);
    if (policy == NULL)
        return -1;
    tell_small(done->run, policy);
    harvest_policy_free(policy);
    return 0;
}

static int run_faasrm(struct experiment_run *run, struct error *err)
{
    size_t episodes = run_episodes(run, EPISODES, 1);
    size_t small = run_episodes(run, SMALL_EPISODES, 1);
    struct done done = {run, 0, (double)(2 * episodes + small)};
    if (learn_simulation(&done, episodes, true, err) < 0 ||
        learn_simulation(&done, episodes, false, err) < 0)
        return -1;
    return learn_small(&done, small, err);
}

const struct experiment experiment_faasrm = {
    .name = "faasrm",
    .title = "FaaSRM: harvesting idle cores and memory for functions that have too little",
    .document = "FaaSRM (arXiv 2108.12717), simulation and OpenWhisk experiment",
    .setting =
        "1,000 functions drawn from published distributions of Azure Functions, 85,470 invocations "
        "on 20 workers of 8 cores and 2 GB; a function gets at most 8 cores and 512 MB. Users ask "
        "for memory, more or less what they need, and cores come in proportion; what users ask for "
        "would take up half of the cores. RFET is the execution time over that with the user's "
        "amounts alone.\n\n"
        "FaaSRM chooses, for each invocation, among the cores and the memory that its safeguard "
        "allows: one network of 32 and 16 tanh scores every option, PPO learns it in 60 episodes "
        "of "
        "5,000 invocations on half the platform. Test and training share no function and no "
        "invocation. Beside it: the paper's Fixed, Greedy and ENSURE, the same safeguard with "
        "options by chance, and what is possible for who knows every input.\n\n"
        "Different from the paper: execution times follow from work, parallelism and memory "
        "instead of a straight line between two percentiles; demand varies with the input; more "
        "than the user asked for is lent only where it lies idle; waiting counts in the reward. "
        "The small setting has the paper's numbers of functions, invocations and workers and the "
        "noise that its Fixed RM shows, but not its applications. docs/harvest.md tells all of it.",
    .rows = rows,
    .row_count = ROW_COUNT,
    .x_label = "episodes",
    .lines = lines,
    .line_count = LINE_COUNT,
    .run = run_faasrm,
};
