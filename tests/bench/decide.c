/* Deciding: thresholds on one MPA, ppo on many. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "guard/guard.h"
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
enum { MPAS = 10000, MPA_ROUNDS = 12, MPA_PODS = 2 };

/* A policy of random weights: it takes as long as one that has learned. */
static struct recommend_policy *any_policy(void)
{
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
};

/* A function of 0.1 to 100 requests a second; rates and latencies are never the same twice. What
 * was decided has come about. */
static void vary(struct observation *seen, const struct mind *mind, size_t mpa, int round,
                 struct random *random)
{
    double rate = 0.1 * pow(1000, (double)(mpa % 97) / 97) * (0.9 + 0.2 * random_uniform(random));
    double cores = rate * 0.004 * (0.95 + 0.1 * random_uniform(random));
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

static void decide(struct mind *m, const struct observation *seen, const struct api_spec *spec)
{
    struct recommendation out;
    struct guard_decision decision;
    struct error err;
    if (recommend_ppo.recommend(m->memory, seen, &out, &err) < 0)
        return;
    guard_check_seen(m->guard, &guard_default_limits, spec, seen, false, &out, &decision);
    m->replicas = decision.replicas;
    if (decision.containers[0].resize)
        m->milli = (double)decision.containers[0].request[API_CPU];
}

/* From the observation to what the guard lets through, of all of them once, on one core. */
struct figure bench_decide_many(void)
{
    struct observation seen;
    struct recommend_pod pods[MPA_PODS];
    struct error err;
    struct api_spec spec;
    struct random random = random_stream(2, 0);
    struct recommend_policy *policy = any_policy();
    struct mind *minds = xcalloc(MPAS, sizeof(*minds));
    double ms = 0;
    trial_default_spec(&spec);
    describe(&seen, pods, MPA_PODS);
    for (size_t i = 0; i < MPAS; i++) {
        minds[i] = (struct mind){recommend_ppo.create(300, NULL), guard_new(), 1, 500};
        if (recommend_ppo.use(minds[i].memory, policy, &err) < 0)
            abort();
    }
    for (int round = 0; round < MPA_ROUNDS; round++) {
        double t = bench_cpu_s();
        for (size_t i = 0; i < MPAS; i++) {
            vary(&seen, &minds[i], i, round, &random);
            decide(&minds[i], &seen, &spec);
        }
        ms = (bench_cpu_s() - t) * 1000; /* of the last round: all have a past by then */
    }
    for (size_t i = 0; i < MPAS; i++) {
        recommend_ppo.destroy(minds[i].memory);
        guard_free(minds[i].guard);
    }
    free(minds);
    recommend_policy_release(policy);
    return (struct figure){"decide_10000_mpas_ppo_ms", "ms", NULL, ms, NAN, 100, false};
}
