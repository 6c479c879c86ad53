/* SIMPPO's questions, asked of the recommender ppo: what becomes of functions when many share
 * nodes, and when others join and leave. */
#include "experiment/served.h"
#include "experiment/tenants.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INTERVALS  240  /* of a trial: an hour */
#define NODE_CORES 7.0  /* for five functions: four times what they use in the mean */
#define BEGIN      1000 /* milli-cores */
#define WAITING    100  /* of those that have not joined yet */
#define GOAL       4    /* times the p99 of demand */
#define GOAL_SHARE 0.3  /* of the reward: the document's α */
#define STAY       10   /* functions that stay while as many join and leave */
#define BLOCK      4    /* intervals of a reward, when functions join: a minute */
#define GOOD       0.95 /* of what it is alone */
#define LEAST_LOSS 1.0  /* percent: less is none that one could tell */

static const size_t sizes[] = {5, 10, 20, 50, 110};
#define SIZES ARRAY_LEN(sizes)
#define MOST  110

enum who { PPO, FEEDFORWARD, ENSURE, WHO_COUNT };
static const char *const names[WHO_COUNT] = {"ppo", "feedforward", "ensure"};
enum where { ALONE, FEW, MANY, WHERE_COUNT }; /* 5 and 110 functions */

enum row {
    UPDATES,
    SLOWER,                          /* (sizes) */
    SLOWER_OTHERS = SLOWER + SIZES,  /* feedforward and ENSURE, few and many */
    LESS_SLOWER = SLOWER_OTHERS + 4, /* ENSURE's ÷ ours */
    DROP,
    DROP_OTHERS = DROP + SIZES, /* feedforward and ENSURE, many */
    LATE = DROP_OTHERS + 2,     /* (who, where) */
    CORES = LATE + WHO_COUNT * WHERE_COUNT,
    STAYED = CORES + WHO_COUNT * WHERE_COUNT, /* (parts) */
    STAYED_LATE = STAYED + 3,
    JOINED = STAYED_LATE + 3,
    JOINED_LATE,
    JOINED_AFTER,
    ROWS
};

#define DECIDING "what ppo decides by"
#define P99      "p99 together above p99 alone, mean of the functions"
#define REWARD   "reward drop against each alone"
#define LATES    "late requests"
#define CPU      "CPU reserved by a function"
#define JOINING  "10 functions on 4 nodes, for an hour with 10 more"

#define FULL                                                                                       \
    "nodes have 1.4 cores for a function, and ppo asks for 1.1 alone, but for more at times: "     \
    "where that finds no room on any one node requests pile up, it asks for still more, and "      \
    "there is less room for all. feedforward, which asks for more but evenly, gets along"
#define ENSURE_SO "what is no loss counts as 1 %"
#define TEMPLATE                                                                                   \
    "those that join have 100m until the first decision after their first requests, and what "     \
    "piled up by then is worked off"

#define PLAIN(group, what, unit)                                                                   \
    {                                                                                              \
        group, what, unit, NULL, EXPERIMENT_NO_AIM, 0, NULL                                        \
    }
#define BY_OTHERS(group, unit)                                                                     \
    PLAIN(group, "feedforward, each alone", unit), PLAIN(group, "feedforward, 5 functions", unit), \
        PLAIN(group, "feedforward, 110 functions", unit),                                          \
        PLAIN(group, "ENSURE, each alone", unit), PLAIN(group, "ENSURE, 5 functions", unit),       \
        PLAIN(group, "ENSURE, 110 functions", unit)

static const struct experiment_row rows[ROWS] = {
    PLAIN(DECIDING, "updates of the general policy; 0: the core alone", ""),
    {P99, "ppo, 5 functions", "%", "below 9.2 %", EXPERIMENT_AT_MOST, 9.2, FULL},
    PLAIN(P99, "ppo, 10", "%"),
    PLAIN(P99, "ppo, 20", "%"),
    PLAIN(P99, "ppo, 50", "%"),
    {P99, "ppo, 110", "%", "below 9.2 %", EXPERIMENT_AT_MOST, 9.2, FULL},
    PLAIN(P99, "feedforward, 5 functions", "%"),
    PLAIN(P99, "feedforward, 110", "%"),
    PLAIN(P99, "ENSURE, 5 functions", "%"),
    PLAIN(P99, "ENSURE, 110", "%"),
    {P99, "ENSURE's ÷ ppo's, 5 functions", "×", "21.4 ×", EXPERIMENT_AT_LEAST, 21.4, ENSURE_SO},
    PLAIN(REWARD, "ppo, 5 functions", "%"),
    PLAIN(REWARD, "ppo, 10", "%"),
    PLAIN(REWARD, "ppo, 20", "%"),
    PLAIN(REWARD, "ppo, 50", "%"),
    {REWARD, "ppo, 110", "%", "3.0 %", EXPERIMENT_AT_MOST, 3.0, FULL},
    PLAIN(REWARD, "feedforward, 110", "%"),
    PLAIN(REWARD, "ENSURE, 110", "%"),
    {LATES, "ppo, each alone", "%", NULL, EXPERIMENT_AT_MOST, 1, FULL},
    {LATES, "ppo, 5 functions", "%", NULL, EXPERIMENT_AT_MOST, 1, FULL},
    {LATES, "ppo, 110 functions", "%", NULL, EXPERIMENT_AT_MOST, 1, FULL},
    BY_OTHERS(LATES, "%"),
    PLAIN(CPU, "ppo, each alone", "cores"),
    PLAIN(CPU, "ppo, 5 functions", "cores"),
    PLAIN(CPU, "ppo, 110 functions", "cores"),
    BY_OTHERS(CPU, "cores"),
    PLAIN(JOINING, "reward drop of those that stay, before", "%"),
    {JOINING, "reward drop of those that stay, with 10 more", "%", "3.0 %", EXPERIMENT_AT_MOST, 3.0,
     FULL},
    PLAIN(JOINING, "reward drop of those that stay, afterwards", "%"),
    PLAIN(JOINING, "late requests of those that stay, before", "%"),
    {JOINING, "late requests of those that stay, with 10 more", "%", NULL, EXPERIMENT_AT_MOST, 1,
     FULL},
    PLAIN(JOINING, "late requests of those that stay, afterwards", "%"),
    PLAIN(JOINING, "reward drop of those that join", "%"),
    {JOINING, "late requests of those that join", "%", NULL, EXPERIMENT_AT_MOST, 1, TEMPLATE},
    {JOINING, "intervals until those that join have the reward they have alone", "intervals",
     "47.2 episodes", EXPERIMENT_AT_MOST, 200, TEMPLATE},
};

/* --- the platform ------------------------------------------------------------------------------
 */
struct platform {
    struct experiment_run *run;
    struct served_policy policy;
    size_t part; /* intervals of a third of all that functions have requests for */
    struct trace traces[MOST];
    struct api_spec spec;
    struct trial_function functions[MOST];
    struct cluster_node nodes[MOST / TENANT_KINDS];
};

static void rotate(struct trace_function *f, size_t by)
{
    cleanup_free double *old = xcalloc(f->slot_count, sizeof(*old));
    memcpy(old, f->counts, f->slot_count * sizeof(*old));
    for (size_t i = 0; i < f->slot_count; i++)
        f->counts[i] = old[(i + by) % f->slot_count];
}

/* No two are alike: each has 0.6 to 1.4 times the load of its kind, from another moment on. */
static int open_function(struct platform *p, size_t i, struct random *random, struct error *err)
{
    char text[160];
    struct trace *trace = &p->traces[i];
    snprintf(text, sizeof(text), "%s,span=%zu", tenant_workloads[i % TENANT_KINDS],
             3 * p->part * (size_t)SERVED_INTERVAL_S);
    if (trace_open(text, trace, err) < 0)
        return -1;
    struct trace_function *f = trace->functions;
    double factor = 0.6 + 0.8 * random_uniform(random);
    rotate(f, random_below(random, f->slot_count));
    served_load(f, 0, INFINITY, factor);
    p->functions[i] = (struct trial_function){.workload = f,
                                              .spec = &p->spec,
                                              .goal_ms = GOAL * trace_cpu_quantile_ms(f, 0.99),
                                              .request_milli = BEGIN,
                                              .limit_milli = BEGIN,
                                              .replicas = 1};
    return 0;
}

static void platform_clear(struct platform *p)
{
    for (size_t i = 0; i < MOST; i++)
        trace_clear(&p->traces[i]);
    served_policy_clear(&p->policy);
    free(p);
}

static struct platform *platform_new(struct experiment_run *run, struct error *err)
{
    struct platform *p = xcalloc(1, sizeof(*p));
    struct random random = random_stream(run->seed, 90);
    p->run = run;
    p->part = run_episodes(run, INTERVALS, 20);
    trial_default_spec(&p->spec);
    for (size_t i = 0; i < ARRAY_LEN(p->nodes); i++)
        p->nodes[i] = (struct cluster_node){.cores = NODE_CORES, .memory_bytes = INFINITY};
    int result = served_policy_init(&p->policy, run, err);
    for (size_t i = 0; i < MOST && result == 0; i++)
        result = open_function(p, i, &random, err);
    if (result == 0)
        return p;
    platform_clear(p);
    return NULL;
}

/* The first so many functions. On an ample node none is in the way of another: each is alone. */
static int serve(const struct platform *p, enum who who, size_t functions, bool alone,
                 size_t intervals, struct served *out, struct error *err)
{
    const struct trial_config config = {
        .functions = p->functions,
        .function_count = functions,
        .nodes = p->nodes,
        .node_count = alone ? 0 : functions / TENANT_KINDS,
        .defaults = trial_default_function,
        .span_s = (double)intervals * SERVED_INTERVAL_S,
        .seed = p->run->seed,
    };
    return served_run(names[who], p->policy.policy, &config, out, err);
}

/* --- many share nodes --------------------------------------------------------------------------
 */
/* Of the functions from first on. */
static struct served_figures figures_of(const struct served *s, size_t first, size_t count,
                                        size_t from, size_t to)
{
    struct served_figures sum = {0};
    for (size_t i = first; i < first + count; i++) {
        struct served_figures f = served_between(s, i, from, to, GOAL_SHARE);
        served_join(&sum, &f);
    }
    return sum;
}

static double drop(const struct served_figures *together, const struct served_figures *alone)
{
    return 100 * (1 - served_reward(together) / served_reward(alone));
}

/* A function that completes nothing has no p99: all it had was late. */
static double slower(const struct served *together, const struct served *alone, size_t count)
{
    double sum = 0, known = 0;
    for (size_t i = 0; i < count; i++) {
        double p99 = together->results[i].latency_ms, before = alone->results[i].latency_ms;
        if (!(p99 > 0 && before > 0))
            continue;
        sum += 100 * (p99 / before - 1);
        known++;
    }
    return known > 0 ? sum / known : NAN;
}

static double late_of(const struct served *s, size_t count)
{
    double late = 0, requests = 0;
    for (size_t i = 0; i < count; i++) {
        requests += (double)s->results[i].requests;
        late += s->results[i].violation_ratio * (double)s->results[i].requests;
    }
    return 100 * late / fmax(requests, 1);
}

static double cores_of(const struct platform *p, const struct served *s, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += s->results[i].cpu_core_seconds;
    return sum / (double)count / ((double)p->part * SERVED_INTERVAL_S);
}

struct together { /* by size */
    double slower[WHO_COUNT][SIZES], drop[WHO_COUNT][SIZES], late[WHO_COUNT][SIZES];
};

static void tell_place(const struct platform *p, enum who who, enum where where,
                       const struct served *s, size_t count)
{
    run_set(p->run, LATE + who * WHERE_COUNT + where, late_of(s, count));
    run_set(p->run, CORES + who * WHERE_COUNT + where, cores_of(p, s, count));
}

static int share(const struct platform *p, enum who who, const struct served *alone,
                 struct together *t, struct error *err)
{
    for (size_t i = 0; i < SIZES; i++) {
        struct served s;
        if (serve(p, who, sizes[i], false, p->part, &s, err) < 0)
            return -1;
        struct served_figures ours = figures_of(&s, 0, sizes[i], 0, p->part);
        struct served_figures theirs = figures_of(alone, 0, sizes[i], 0, p->part);
        t->slower[who][i] = slower(&s, alone, sizes[i]);
        t->drop[who][i] = drop(&ours, &theirs);
        t->late[who][i] = late_of(&s, sizes[i]);
        if (i == 0 || i + 1 == SIZES)
            tell_place(p, who, i == 0 ? FEW : MANY, &s, sizes[i]);
        served_clear(&s);
    }
    return 0;
}

static int compare(const struct platform *p, struct together *t, struct error *err)
{
    for (enum who who = 0; who < WHO_COUNT; who++) {
        struct served alone;
        if (serve(p, who, MOST, true, p->part, &alone, err) < 0)
            return -1;
        tell_place(p, who, ALONE, &alone, MOST);
        int result = share(p, who, &alone, t, err);
        served_clear(&alone);
        if (result < 0 || run_progress(p->run, 0.9 * (who + 1) / WHO_COUNT, err) < 0)
            return -1;
    }
    return 0;
}

static void tell_together(struct experiment_run *run, const struct together *t)
{
    double x[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        x[i] = (double)sizes[i];
        run_set(run, SLOWER + i, t->slower[PPO][i]);
        run_set(run, DROP + i, t->drop[PPO][i]);
    }
    for (enum who who = FEEDFORWARD; who < WHO_COUNT; who++) {
        size_t at = SLOWER_OTHERS + 2 * (who - FEEDFORWARD);
        run_set(run, at, t->slower[who][0]);
        run_set(run, at + 1, t->slower[who][SIZES - 1]);
        run_set(run, DROP_OTHERS + who - FEEDFORWARD, t->drop[who][SIZES - 1]);
    }
    run_set(run, LESS_SLOWER, t->slower[ENSURE][0] / fmax(t->slower[PPO][0], LEAST_LOSS));
    for (enum who who = 0; who < WHO_COUNT; who++) {
        run_line(run, who, x, t->slower[who], SIZES);
        run_line(run, WHO_COUNT + who, x, t->late[who], SIZES);
    }
}

/* --- functions join and leave ------------------------------------------------------------------
 */
/* Those that join have requests in the second of three parts alone. */
static void let_join(struct platform *p)
{
    double part_s = (double)p->part * SERVED_INTERVAL_S;
    for (size_t i = STAY; i < 2 * STAY; i++) {
        p->functions[i].request_milli = p->functions[i].limit_milli = WAITING;
        served_load(p->traces[i].functions, 0, part_s, 0);
        served_load(p->traces[i].functions, 2 * part_s, INFINITY, 0);
    }
}

static double joined_after(const struct platform *p, const struct served *s,
                           const struct served_figures *alone)
{
    size_t blocks = p->part / BLOCK;
    cleanup_free double *rewards = xcalloc(blocks, sizeof(*rewards));
    for (size_t i = 0; i < blocks; i++) {
        size_t from = p->part + i * BLOCK;
        struct served_figures f = figures_of(s, STAY, STAY, from, from + BLOCK);
        rewards[i] = served_reward(&f);
    }
    return served_adapted(rewards, blocks, BLOCK, GOOD * served_reward(alone));
}

static void tell_joined(const struct platform *p, const struct served *s,
                        const struct served *alone)
{
    struct experiment_run *run = p->run;
    for (size_t i = 0; i < 3; i++) {
        struct served_figures ours = figures_of(s, 0, STAY, i * p->part, (i + 1) * p->part);
        struct served_figures theirs = figures_of(alone, 0, STAY, i * p->part, (i + 1) * p->part);
        run_set(run, STAYED + i, drop(&ours, &theirs));
        run_set(run, STAYED_LATE + i, 100 * served_late(&ours));
    }
    struct served_figures ours = figures_of(s, STAY, STAY, p->part, 2 * p->part);
    struct served_figures theirs = figures_of(alone, STAY, STAY, p->part, 2 * p->part);
    run_set(run, JOINED, drop(&ours, &theirs));
    run_set(run, JOINED_LATE, 100 * served_late(&ours));
    run_set(run, JOINED_AFTER, joined_after(p, s, &theirs));
}

static int join_and_leave(struct platform *p, struct error *err)
{
    struct served together, alone;
    let_join(p);
    if (serve(p, PPO, 2 * STAY, true, 3 * p->part, &alone, err) < 0)
        return -1;
    int result = serve(p, PPO, 2 * STAY, false, 3 * p->part, &together, err);
    if (result == 0) {
        tell_joined(p, &together, &alone);
        served_clear(&together);
    }
    served_clear(&alone);
    return result;
}

/* --- all of it ---------------------------------------------------------------------------------
 */
static int run(struct experiment_run *run, struct error *err)
{
    struct together t;
    struct platform *p = platform_new(run, err);
    if (p == NULL)
        return -1;
    run_set(run, UPDATES, (double)p->policy.checkpoint.updates);
    int result = compare(p, &t, err);
    if (result == 0) {
        tell_together(run, &t);
        result = join_and_leave(p, err);
    }
    platform_clear(p);
    return result;
}

#define PANEL_P99  "p99 above that alone, %"
#define PANEL_LATE "late requests, %"
static const struct experiment_line lines[2 * WHO_COUNT] = {
    {PANEL_P99, "ppo"},  {PANEL_P99, "feedforward"},  {PANEL_P99, "ENSURE"},
    {PANEL_LATE, "ppo"}, {PANEL_LATE, "feedforward"}, {PANEL_LATE, "ENSURE"},
};

const struct experiment experiment_ppo_simppo = {
    .name = "ppo-simppo",
    .title = "SIMPPO's questions, asked of the recommender ppo",
    .document = "SIMPPO (SoCC '22, slides)",
    .setting =
        "The five functions of [simppo](simppo.md), each with 0.6 to 1.4 times its load and from "
        "another moment on, on a node of 7 cores for each five of them; for an hour, in trials as "
        "`mpactl compare` makes them, with the guard of the controller and a decision every 15 s. "
        "ppo decides by the policy beside mpactl, as `make policy` makes it, or by its core alone "
        "where there is none; one policy for all, which sees one function at a time and nothing "
        "of the others. Nothing is learned here: who joins is served by what there is.\n\n"
        "Nodes are twice those of simppo: what a pod reserves is its limit here, so that nobody "
        "gets what others leave idle, and 7 cores are four times the mean load. Neighbours are "
        "felt where pods or resizes find no room. Pods begin with a core, those that join with "
        "100m. Alone is the same function, with the same requests, on ample nodes. Goals are 4 "
        "times the p99 of demand. The reward of an interval with requests is 0.3 · min(1, goal ÷ "
        "p99) + 0.7 · the share of CPU in use: who starves functions has busy pods and loses "
        "little of it, so look at late requests, too. The document's 47.2 are episodes of "
        "retraining, of 200 decisions; the aim is one of them.",
    .rows = rows,
    .row_count = ROWS,
    .x_label = "functions",
    .lines = lines,
    .line_count = ARRAY_LEN(lines),
    .run = run,
    .headline = SLOWER + SIZES - 1, /* 110 functions */
    .by_policy = true,
};
