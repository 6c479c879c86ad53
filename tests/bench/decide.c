/* Deciding: thresholds on one MPA, ppo on many. */
#include "bench.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "guard/guard.h"
#include "learn/learn.h"
#include "recommend/policy.h"
#include "trial/trial.h"

/* --- one decision ---------------------------------------------------------------------------- */
static void describe(struct observation *seen, struct recommend_pod *pods, int n)
{
    *seen = (struct observation){.latency_state = LATENCY_KNOWN,
                                 .percentile = 99,
                                 .goal_ms = 300,
                                 .latency_ms = 200,
                                 .throttled = 0.02,
                                 .since_increase_s = INFINITY,
                                 .latency_window_s = 60,
                                 .replicas_wanted = n,
                                 .min_replicas = 1,
                                 .max_replicas = 20,
                                 .tolerance_up = 0.1,
                                 .tolerance_down = 0.1,
                                 .metrics = {{RECOMMEND_CPU, -1, 0.7, NAN}},
                                 .metric_count = 1,
                                 .container_count = 1,
                                 .pods = pods,
                                 .pod_count = (size_t)n};
    seen->containers[0] = (struct recommend_container){.name = "function",
                                                       .controlled = {true, false},
                                                       .request = {400, NAN},
                                                       .min = {100, 1e7},
                                                       .max = {2000, 1e9}};
    for (int i = 0; i < n; i++) {
        pods[i] = (struct recommend_pod){.ready = true, .age_s = 600};
        pods[i].containers[0] =
            (struct recommend_usage){.usage = {250 + i, NAN}, .request = {400, NAN}};
    }
}

struct figure bench_decide(void)
{
    enum { ROUNDS = 100000, PODS = 4 };
    struct observation seen;
    struct recommend_pod pods[PODS];
    struct recommendation out;
    struct error err;
    describe(&seen, pods, PODS);
    void *memory = recommend_threshold.create(300, NULL);
    double t = bench_cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        seen.now_s = i * 15;
        if (recommend_threshold.recommend(memory, &seen, &out, &err) < 0)
            abort();
    }
    double us = (bench_cpu_s() - t) / ROUNDS * 1e6;
    recommend_threshold.destroy(memory);
    return (struct figure){"decide_us", "us", NULL, us, NAN, NAN, false};
}

/* --- many decisions of ppo ------------------------------------------------------------------- */
enum { MPAS = 10000, MPA_ROUNDS = 12, MPA_WINDOW = 4, MPA_PODS = 2 };

/* The one that is shipped; else of random weights, which corrects all the time and so has more to
 * give reasons for. */
static struct recommend_policy *any_policy(void)
{
    struct error none;
    cleanup_free char *path = file_beside_program("policy");
    struct recommend_policy *shipped = recommend_policy_read(path, &none);
    if (shipped)
        return shipped;
    struct rl_checkpoint c = {.algorithm = xstrdup("ppo")};
    struct rl_net net;
    struct error err;
    struct random random = random_stream(1, 0);
    recommend_policy_describe(POLICY_OF_CORRECTIONS, &c.interface);
    struct rl_shape shape = {.inputs = POLICY_FEATURE_COUNT,
                             .outputs = c.interface.heads.total,
                             .hidden = {64, 64},
                             .hidden_count = 2};
    if (rl_net_make(&net, &shape, &err) < 0)
        abort();
    rl_net_randomise(&net, 0.01F, &random);
    rl_checkpoint_add_net(&c, "actor", &net, NULL);
    rl_net_clear(&net);
    struct recommend_policy *policy = recommend_policy_new(&c, &err);
    rl_checkpoint_clear(&c);
    return policy;
}

struct mind { /* of one MPA */
    void *memory;
    struct guard *guard;
    int replicas; /* as last decided */
    double milli;
    double rate, demand_s; /* of its function */
};

/* A function of 0.1 to 100 requests a second of 1 to 16 ms; rates and latencies are never the same
 * twice. What was decided has come about. */
static void vary(struct observation *seen, const struct mind *mind, int round,
                 struct random *random)
{
    double rate = mind->rate * (0.9 + 0.2 * random_uniform(random));
    double cores = rate * mind->demand_s * (0.95 + 0.1 * random_uniform(random));
    struct recommend_pod *pods = (struct recommend_pod *)seen->pods;
    seen->now_s = 1000 + round * 15;
    seen->requests_per_s = rate;
    seen->concurrency = rate * 0.02;
    seen->latency_ms = 100 + 150 * random_uniform(random);
    seen->late_share = 0.001 * random_uniform(random);
    seen->replicas_wanted = mind->replicas;
    seen->pod_count = (size_t)(mind->replicas < MPA_PODS ? mind->replicas : MPA_PODS);
    seen->containers[0].request[RECOMMEND_CPU] = mind->milli;
    for (size_t i = 0; i < seen->pod_count; i++)
        pods[i].containers[0] = (struct recommend_usage){
            .usage = {cores * 1000 / mind->replicas, NAN}, .request = {mind->milli, NAN}};
}

static void decide(struct mind *m, const struct observation *seen, const struct api_spec *spec,
                   bool tells)
{
    struct recommendation out;
    struct guard_decision decision;
    struct error err;
    if (recommend_ppo.recommend(m->memory, seen, &out, &err) < 0)
        return;
    if (tells)
        recommend_ppo.explain(m->memory, seen, &out);
    guard_check_seen(m->guard, &guard_default_limits, spec, seen, false, &out, &decision);
    m->replicas = decision.replicas;
    if (decision.containers[0].resize)
        m->milli = (double)decision.containers[0].request[API_CPU];
}

struct crowd { /* of MPAs */
    struct observation seen;
    struct recommend_pod pods[MPA_PODS];
    struct api_spec spec;
    struct random random;
    struct recommend_policy *policy;
    struct mind minds[MPAS];
    int round;
    bool tells; /* why */
};

static struct crowd *crowd_new(void)
{
    struct crowd *c = xcalloc(1, sizeof(*c));
    struct error err;
    c->random = random_stream(2, 0);
    c->policy = any_policy();
    trial_default_spec(&c->spec);
    describe(&c->seen, c->pods, MPA_PODS);
    for (size_t i = 0; i < MPAS; i++) {
        c->minds[i] = (struct mind){.memory = recommend_ppo.create(300, NULL),
                                    .guard = guard_new(),
                                    .replicas = 1,
                                    .milli = 500,
                                    .rate = 0.1 * pow(1000, (double)(i % 97) / 97),
                                    .demand_s = 0.001 * pow(16, (double)(i % 1009) / 1009)};
        if (recommend_ppo.use(c->minds[i].memory, c->policy, &err) < 0)
            abort();
    }
    return c;
}

static void crowd_free(struct crowd *c)
{
    for (size_t i = 0; i < MPAS; i++) {
        recommend_ppo.destroy(c->minds[i].memory);
        guard_free(c->minds[i].guard);
    }
    recommend_policy_release(c->policy);
    free(c);
}

/* The first so many of them, each once. */
static void decide_all(struct crowd *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        vary(&c->seen, &c->minds[i], c->round, &c->random);
        decide(&c->minds[i], &c->seen, &c->spec, c->tells);
    }
    c->round++;
}

/* From the observation to what the guard lets through, of all of them once, on one core. All have a
 * past by then; the mean of the rounds of one window, as not each of them costs the same. */
static double many_ms(bool tells)
{
    struct crowd *c = crowd_new();
    while (c->round < MPA_ROUNDS - MPA_WINDOW)
        decide_all(c, MPAS);
    c->tells = tells;
    double t = bench_cpu_s();
    while (c->round < MPA_ROUNDS)
        decide_all(c, MPAS);
    double ms = (bench_cpu_s() - t) * 1000 / MPA_WINDOW;
    crowd_free(c);
    return ms;
}

struct figure bench_decide_many(void)
{
    return (struct figure){"decide_10000_mpas_ppo_ms", "ms", NULL, many_ms(false), NAN, 100, false};
}

/* And with the reason of each in words. */
struct figure bench_decide_telling(void)
{
    return (struct figure){
        "decide_10000_mpas_ppo_told_ms", "ms", NULL, many_ms(true), NAN, NAN, false};
}

/* --- decisions while policies are looked for ------------------------------------------------- */
enum { WAKES = 1000, WAKE_US = 4000, AT_A_TIME = 20 };

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* From the moment when 20 MPAs are due until they are decided on: what 99 of 100 times stay below.
 */
static double delay_us(struct crowd *c)
{
    static double us[WAKES];
    double due_s = bench_wall_s();
    for (int i = 0; i < WAKES; i++) {
        due_s += WAKE_US * 1e-6;
        struct timespec due = {.tv_sec = (time_t)due_s,
                               .tv_nsec = (long)((due_s - floor(due_s)) * 1e9)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        decide_all(c, AT_A_TIME);
        us[i] = (bench_wall_s() - due_s) * 1e6;
    }
    qsort(us, WAKES, sizeof(*us), ascending);
    return us[WAKES * 99 / 100];
}

static void nothing(void *arg, const struct learn_result *result)
{
    (void)arg;
    (void)result;
}

static void keep_searching(struct learner *learner)
{
    struct api_spec bounds;
    struct error err;
    trial_default_spec(&bounds);
    struct learn_task task = {.bounds = &bounds, .goal_ms = 300, .interval_s = 15};
    if (trace_open("poisson:rate=15,span=3600,demand=40", &task.workload, &err) < 0)
        abort();
    learner_search(learner, &task, nothing, NULL);
}

/* On one core with the thread that searches, which is more than the controller has to bear where
 * there are two; beside the same without it. */
struct figure bench_decide_learning(void)
{
    struct crowd *c = crowd_new();
    struct bootstrap_config config;
    struct rl_checkpoint general;
    struct error err;
    uv_loop_t loop;
    cpu_set_t all, one;
    bootstrap_config_init(&config);
    config.updates = 0;
    config.world.alone = 1;
    config.world.shared = 0;
    config.world.threads = 1;
    if (bootstrap_learn(&config, &general, &err) < 0)
        abort();
    uv_loop_init(&loop);
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    delay_us(c);
    double without = delay_us(c);
    struct learner *learner = learner_new(&loop, &general, 1000, &err);
    keep_searching(learner);
    double with = delay_us(c);
    bool searched = learner_waiting(learner) == 1; /* all the time */
    learner_free(learner);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    sched_setaffinity(0, sizeof(all), &all);
    rl_checkpoint_clear(&general);
    crowd_free(c);
    return (struct figure){"decide_delay_p99_learning_us",
                           "us",
                           "not learning",
                           searched ? with : NAN,
                           without,
                           NAN,
                           false};
}
