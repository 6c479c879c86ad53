/* FaaSRM's questions, asked of the recommender ppo in a harvest group: do functions whose users
 * asked for too little get faster with what others leave, and is anybody harmed? */
#include "experiment/served.h"

#include "harvest/group.h"

#include <math.h>
#include <stdio.h>

#define FUNCTIONS  20  /* every second one has too little */
#define INTERVALS  480 /* two hours */
#define PERCENTILE 98  /* of the goals: the document's */
#define MOST_MILLI 4000
#define SLOWED     1.1

enum who { GROUP, PPO, FIXED, GREEDY, ENSURE, WHO_COUNT };
static const char *const names[WHO_COUNT] = {"ppo", "ppo", "fixed", "greedy:step_milli=100",
                                             "ensure"};

enum row {
    UPDATES,
    RATIO, /* (who), and so on */
    OVER = RATIO + WHO_COUNT,
    UNDER = OVER + WHO_COUNT,
    TAIL = UNDER + WHO_COUNT,
    CHANGE = TAIL + WHO_COUNT,
    CHANGE_UNDER,
    HARMED,
    LATE,
    LATE_OVER = LATE + WHO_COUNT,
    CPU = LATE_OVER + WHO_COUNT,
    HIGHEST = CPU + WHO_COUNT,
    ROWS
};

#define DECIDING "what ppo decides by"
#define MEAN     "request time ÷ that with what users asked for, mean of all requests"
#define MEAN_OF  "the same, functions whose users asked for too "
#define P98      "p98 of request times ÷ Fixed's, mean of the functions"
#define LATES    "late requests"
#define LATES_OF "late requests, functions whose users asked for too much"
#define RESERVED "CPU reserved, of what users asked for"

#define BY_GOAL                                                                                    \
    "ppo gives what the goal needs and no more: it takes CPU from functions that are faster than " \
    "they must be, and these get slower within their goals. FaaSRM knows no goal and gives "       \
    "whatever lies idle"
#define SCARCE                                                                                     \
    "where the group leaves enough they are 1.1 to 1.5 %; where all that its users asked for is "  \
    "out, those with too little go on to have too little"
#define HARM                                                                                       \
    "a function that has more than its goal needs gets slower when that is taken; late requests "  \
    "tell harm here"
#define ONE_INTERVAL                                                                               \
    "a member that takes back what is its own has it at once, and who borrowed it gives it back "  \
    "with its next decision; here somebody takes something back in nearly every interval"

#define PLAIN(group, what, unit, document)                                                         \
    {                                                                                              \
        group, what, unit, document, EXPERIMENT_NO_AIM, 0, NULL                                    \
    }
#define BY_WHO(group, unit)                                                                        \
    PLAIN(group, "ppo in a harvest group", unit, NULL), PLAIN(group, "ppo alone", unit, NULL),     \
        PLAIN(group, "Fixed", unit, NULL), PLAIN(group, "Greedy", unit, NULL),                     \
        PLAIN(group, "ENSURE", unit, NULL)

static const struct experiment_row rows[ROWS] = {
    PLAIN(DECIDING, "updates of the general policy; 0: the core alone", "", NULL),
    {MEAN, "ppo in a harvest group", "", "0.76", EXPERIMENT_AT_MOST, 0.76, BY_GOAL},
    PLAIN(MEAN, "ppo alone", "", NULL),
    PLAIN(MEAN, "Fixed", "", "1.00"),
    PLAIN(MEAN, "Greedy", "", "1.49"),
    PLAIN(MEAN, "ENSURE", "", "0.91"),
    BY_WHO(MEAN_OF "much", ""),
    BY_WHO(MEAN_OF "little", ""),
    BY_WHO(P98, ""),
    {P98, "ppo in a harvest group against Fixed", "%", "-87.6 %", EXPERIMENT_AT_MOST, -87.6,
     BY_GOAL ". Those whose users asked for too little gain as much as the document's"},
    PLAIN(P98, "the same, functions whose users asked for too little", "%", NULL),
    {"harm", "over-provisioned functions over 1.1 times slower, ppo in a group", "%", "none",
     EXPERIMENT_AT_MOST, 1, HARM},
    {LATES, "ppo in a harvest group", "%", NULL, EXPERIMENT_AT_MOST, 2, SCARCE},
    PLAIN(LATES, "ppo alone", "%", NULL),
    PLAIN(LATES, "Fixed", "%", NULL),
    PLAIN(LATES, "Greedy", "%", NULL),
    PLAIN(LATES, "ENSURE", "%", NULL),
    {LATES_OF, "ppo in a harvest group", "%", NULL, EXPERIMENT_AT_MOST, 2,
     "the goals are of p98, and what was taken comes back an interval after it is missed"},
    PLAIN(LATES_OF, "ppo alone", "%", NULL),
    PLAIN(LATES_OF, "Fixed", "%", NULL),
    PLAIN(LATES_OF, "Greedy", "%", NULL),
    PLAIN(LATES_OF, "ENSURE", "%", NULL),
    BY_WHO(RESERVED, "%"),
    {RESERVED, "ppo in a harvest group, the most at any time", "%", NULL, EXPERIMENT_AT_MOST, 100,
     ONE_INTERVAL},
};

/* --- functions ---------------------------------------------------------------------------------
 */
struct town {
    struct experiment_run *run;
    struct served_policy policy;
    size_t intervals;
    struct trace traces[FUNCTIONS];
    struct api_spec spec;
    struct trial_function functions[FUNCTIONS];
};

static bool is_under(size_t function)
{
    return function % 2 == 1;
}

static double between(struct random *random, double low, double high)
{
    return low * exp(random_uniform(random) * log(high / low));
}

/* What its user asked for is 90 to 97 % busy, which the safeguard counts as too little, or 10 to 30
 * %. */
static int open_function(struct town *t, size_t i, struct random *random, struct error *err)
{
    char text[160];
    double cores = between(random, 0.15, 1), demand_ms = between(random, 30, 150);
    bool waves = !is_under(i) && random_below(random, 2) == 1;
    snprintf(text, sizeof(text), "diurnal:rate=%.9g,amplitude=%g,period=1800,span=%zu,demand=%.9g",
             1000 * cores / demand_ms, waves ? 0.3 : 0, t->intervals * (size_t)SERVED_INTERVAL_S,
             demand_ms);
    if (trace_open(text, &t->traces[i], err) < 0)
        return -1;
    const struct trace_function *f = t->traces[i].functions;
    double needed = trace_requests(f) / trace_span_s(f) * trace_mean_cpu_ms(f);
    double busy = is_under(i) ? between(random, 0.9, 0.97) : between(random, 0.1, 0.3);
    double milli = round(fmin(fmax(needed / busy, 100), MOST_MILLI));
    t->functions[i] = (struct trial_function){.workload = f,
                                              .spec = &t->spec,
                                              .request_milli = milli,
                                              .limit_milli = milli,
                                              .replicas = 1};
    return 0;
}

static void town_clear(struct town *t)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        trace_clear(&t->traces[i]);
    served_policy_clear(&t->policy);
}

static int town_init(struct town *t, struct experiment_run *run, struct error *err)
{
    struct random random = random_stream(run->seed, 95);
    *t = (struct town){.run = run, .intervals = run_episodes(run, INTERVALS, 80)};
    trial_default_spec(&t->spec);
    t->spec.latency_percentile = PERCENTILE;
    t->spec.max_replicas = 1; /* as an invocation has one container */
    t->spec.containers[0].max[API_CPU] = MOST_MILLI;
    int result = served_policy_init(&t->policy, run, err);
    for (size_t i = 0; i < FUNCTIONS && result == 0; i++)
        result = open_function(t, i, &random, err);
    if (result < 0)
        town_clear(t);
    return result;
}

/* --- a harvest group, as in pkg/controller/harvest.c --------------------------------------------
 */
struct group {
    const struct town *town;
    struct harvest_member members[FUNCTIONS];
    struct recommend_seat seats[FUNCTIONS];
};

static double left_by_others(const struct group *g, size_t function)
{
    double sum = 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        sum += i == function ? 0 : floor(harvest_member_leaves(&g->members[i]));
    return sum;
}

static void see(struct harvest_member *m, const struct observation *seen)
{
    m->most = seen->containers[0].max[RECOMMEND_CPU];
    m->replicas = seen->replicas_wanted;
    for (size_t i = 0; i < seen->pod_count; i++)
        if (seen->pods[i].ready)
            harvest_member_see(m, seen->pods[i].containers[0].request[RECOMMEND_CPU],
                               seen->pods[i].containers[0].usage[RECOMMEND_CPU]);
}

static int recommend(void *arg, size_t function, const struct observation *seen,
                     struct recommendation *out, struct error *err)
{
    struct group *g = arg;
    struct harvest_member *m = &g->members[function];
    struct error instead;
    see(m, seen);
    struct harvest_range range = harvest_member_range(m, left_by_others(g, function));
    if (recommend_seat_ask(&g->seats[function], seen, false, out, &instead, err) < 0)
        return -1;
    double given = harvest_hold(&range, seen, out);
    if (!isnan(given)) {
        m->given = given;
        m->replicas = out->replicas;
    }
    return 0;
}

static void group_clear(struct group *g)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        recommend_seat_leave(&g->seats[i]);
}

static int group_init(struct group *g, const struct town *t, struct error *err)
{
    *g = (struct group){.town = t};
    for (size_t i = 0; i < FUNCTIONS; i++) {
        g->members[i].user = t->functions[i].request_milli;
        if (recommend_seat_take(&g->seats[i], &recommend_ppo, t->spec.scale_down.stabilization_s,
                                NULL, t->policy.policy, err) < 0) {
            group_clear(g);
            return -1;
        }
    }
    return 0;
}

/* --- serving -----------------------------------------------------------------------------------
 */
static int serve_with(const struct town *t, enum who who, const struct trial_hand *hand,
                      struct served *out, struct error *err)
{
    const struct trial_config config = {
        .functions = t->functions,
        .function_count = FUNCTIONS,
        .defaults = trial_default_function,
        .instead = hand,
        .span_s = (double)t->intervals * SERVED_INTERVAL_S,
        .seed = t->run->seed,
    };
    return served_run(names[who], t->policy.policy, &config, out, err);
}

static int serve(const struct town *t, enum who who, struct served *out, struct error *err)
{
    struct group g;
    const struct trial_hand hand = {recommend, &g};
    if (who != GROUP)
        return serve_with(t, who, NULL, out, err);
    if (group_init(&g, t, err) < 0)
        return -1;
    int result = serve_with(t, who, &hand, out, err);
    group_clear(&g);
    return result;
}

/* --- telling ---------------------------------------------------------------------------------- */
enum kind { ALL, TOO_MUCH, TOO_LITTLE };

static bool is_of(enum kind kind, size_t function)
{
    return kind == ALL || (kind == TOO_LITTLE) == is_under(function);
}

static double ratio_of(const struct served *s, const struct served *fixed, size_t i)
{
    return s->results[i].latency_mean_ms / fixed->results[i].latency_mean_ms;
}

/* By requests, as RFET is a mean over invocations. */
static double mean_ratio(const struct served *s, const struct served *fixed, enum kind kind)
{
    double sum = 0, requests = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (!is_of(kind, i))
            continue;
        double count = (double)s->results[i].requests;
        sum += count * ratio_of(s, fixed, i);
        requests += count;
    }
    return sum / requests;
}

static double tail_ratio(const struct served *s, const struct served *fixed, enum kind kind)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (!is_of(kind, i))
            continue;
        sum += s->results[i].latency_ms / fixed->results[i].latency_ms;
        count++;
    }
    return sum / count;
}

static double late_of(const struct served *s, enum kind kind)
{
    double late = 0, requests = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (!is_of(kind, i))
            continue;
        late += s->results[i].violation_ratio * (double)s->results[i].requests;
        requests += (double)s->results[i].requests;
    }
    return 100 * late / requests;
}

static double asked_for(const struct town *t)
{
    double sum = 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        sum += t->functions[i].request_milli / 1000;
    return sum;
}

static double reserved(const struct town *t, const struct served *s)
{
    double sum = 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        sum += s->results[i].cpu_core_seconds;
    return 100 * sum / asked_for(t) / ((double)t->intervals * SERVED_INTERVAL_S);
}

static double highest(const struct town *t, const struct served *s)
{
    double most = 0;
    for (size_t k = 0; k < s->counts[0]; k++) {
        double sum = 0;
        for (size_t i = 0; i < FUNCTIONS; i++) {
            const struct trial_sample *x = &s->samples[i * s->most + k];
            sum += x->replicas * x->request_milli / 1000;
        }
        most = fmax(most, sum);
    }
    return 100 * most / asked_for(t);
}

static double harmed(const struct served *s, const struct served *fixed)
{
    double count = 0, all = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (is_under(i))
            continue;
        count += ratio_of(s, fixed, i) > SLOWED;
        all++;
    }
    return 100 * count / all;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The functions from the one that gained most to the one that lost most. */
static void tell_line(struct experiment_run *run, enum who who, const struct served *s,
                      const struct served *fixed)
{
    double x[FUNCTIONS], y[FUNCTIONS];
    for (size_t i = 0; i < FUNCTIONS; i++) {
        x[i] = 100 * ((double)i + 1) / FUNCTIONS;
        y[i] = ratio_of(s, fixed, i);
    }
    qsort(y, FUNCTIONS, sizeof(*y), by_value);
    run_line(run, who, x, y, FUNCTIONS);
}

static void tell(const struct town *t, const struct served *all)
{
    struct experiment_run *run = t->run;
    const struct served *fixed = &all[FIXED], *group = &all[GROUP];
    for (enum who who = 0; who < WHO_COUNT; who++) {
        const struct served *s = &all[who];
        run_set(run, RATIO + who, mean_ratio(s, fixed, ALL));
        run_set(run, OVER + who, mean_ratio(s, fixed, TOO_MUCH));
        run_set(run, UNDER + who, mean_ratio(s, fixed, TOO_LITTLE));
        run_set(run, TAIL + who, tail_ratio(s, fixed, ALL));
        run_set(run, LATE + who, late_of(s, ALL));
        run_set(run, LATE_OVER + who, late_of(s, TOO_MUCH));
        run_set(run, CPU + who, reserved(t, s));
        tell_line(run, who, s, fixed);
    }
    run_set(run, CHANGE, 100 * (tail_ratio(group, fixed, ALL) - 1));
    run_set(run, CHANGE_UNDER, 100 * (tail_ratio(group, fixed, TOO_LITTLE) - 1));
    run_set(run, HARMED, harmed(group, fixed));
    run_set(run, HIGHEST, highest(t, group));
}

static int compare(const struct town *t, struct served *all, struct error *err)
{
    for (enum who who = 0; who < WHO_COUNT; who++)
        if (serve(t, who, &all[who], err) < 0 ||
            run_progress(t->run, (double)(who + 1) / WHO_COUNT, err) < 0)
            return -1;
    tell(t, all);
    return 0;
}

static int run(struct experiment_run *run, struct error *err)
{
    struct served all[WHO_COUNT] = {0};
    struct town t;
    if (town_init(&t, run, err) < 0)
        return -1;
    run_set(run, UPDATES, (double)t.policy.checkpoint.updates);
    int result = compare(&t, all, err);
    for (enum who who = 0; who < WHO_COUNT; who++)
        served_clear(&all[who]);
    town_clear(&t);
    return result;
}

#define PANEL "request time ÷ Fixed's"
static const struct experiment_line lines[WHO_COUNT] = {
    {PANEL, "ppo in a harvest group"},
    {PANEL, "ppo alone"},
    {PANEL, "Fixed"},
    {PANEL, "Greedy"},
    {PANEL, "ENSURE"},
};

const struct experiment experiment_ppo_faasrm = {
    .name = "ppo-faasrm",
    .title = "FaaSRM's questions, asked of the recommender ppo in a harvest group",
    .document = "FaaSRM (arXiv 2108.12717), simulation",
    .setting =
        "20 functions of 0.15 to 1 core, requests of 30 to 150 ms, one pod each. The users of one "
        "half asked for so much that it is 10 to 30 % busy, by a steady load or by waves of half "
        "an hour; those of the other for so little that it is 90 to 97 % busy, which the "
        "safeguard counts as too little. For two hours, in trials as "
        "`mpactl compare` makes them, with the guard of the controller and a decision every 15 s; "
        "nodes are ample. Goals are twice the p99 of demand, at p98.\n\n"
        "ppo decides by the policy beside mpactl, as `make policy` makes it, or by its core alone "
        "where there is none. In a group, what it proposes is held within what the safeguard and "
        "the others leave it, as `spec.policy.harvestGroup` does ([harvest](../harvest.md)). "
        "Fixed is what users asked for, Greedy moves by 100m, and ENSURE has one pod as all "
        "have.\n\n"
        "Different from the document: pods that run on, not invocations that end; CPU alone; and "
        "there is a goal. Request time is the mean of all requests of a function, with waiting; "
        "all meet the same requests.",
    .rows = rows,
    .row_count = ROWS,
    .x_label = "functions, %, by what they gained",
    .lines = lines,
    .line_count = ARRAY_LEN(lines),
    .run = run,
    .headline = RATIO,
    .by_policy = true,
};
