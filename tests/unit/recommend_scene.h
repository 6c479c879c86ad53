/* What the tests of recommenders look at: one MPA with pods of one container, as it would be
 * observed. Fields can be changed freely before each question. */
#ifndef FAASRL_TEST_RECOMMEND_SCENE_H
#define FAASRL_TEST_RECOMMEND_SCENE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recommend/policy.h"
#include "recommend/recommend.h"

#define SCENE_PODS 64
#define CPU        RECOMMEND_CPU
#define MEM        RECOMMEND_MEMORY
#define MI         1048576.0

struct scene {
    const struct recommender *recommender;
    void *self;
    struct observation seen;
    struct recommend_pod pods[SCENE_PODS];
    struct recommendation out;
    struct error err;
};

static inline void scene_pods(struct scene *s, int count)
{
    s->seen.replicas_wanted = count;
    s->seen.pod_count = (size_t)count;
}

/* Every pod has this much CPU and uses that much of it. */
static inline void scene_cpu(struct scene *s, double request, double usage)
{
    s->seen.containers[0].request[CPU] = request;
    for (size_t i = 0; i < SCENE_PODS; i++)
        s->pods[i].containers[0] =
            (struct recommend_usage){.usage = {usage, NAN}, .request = {request, NAN}};
}

static inline void scene_load(struct scene *s, double requests_per_s, double concurrency,
                              double latency_ms)
{
    s->seen.requests_per_s = requests_per_s;
    s->seen.concurrency = concurrency;
    s->seen.latency_ms = latency_ms;
    s->seen.latency_state = isnan(latency_ms) ? LATENCY_NO_TRAFFIC : LATENCY_KNOWN;
}

/* A policy that leaves all to the core. */
static inline void scene_neutral(void *arg, const float *features, const uint8_t *mask,
                                 int32_t *choices)
{
    (void)arg;
    (void)features;
    (void)mask;
    for (size_t h = 0; h < POLICY_HEAD_COUNT; h++)
        choices[h] = recommend_policy_heads[h].neutral;
}

static inline void scene_use(struct scene *s, recommend_choose *choose, void *arg)
{
    struct recommend_policy *policy = recommend_policy_by(choose, arg, NULL, &s->err);
    if (s->recommender->use(s->self, policy, &s->err) < 0)
        fail_msg("%s", s->err.message);
    recommend_policy_release(policy);
}

/* Of ppo-steps, with random weights. */
static inline struct recommend_policy *scene_steps_policy(void)
{
    struct error err;
    struct rl_net net;
    struct random random = random_stream(11, 0);
    struct rl_checkpoint c = {.algorithm = xstrdup("simppo")};
    recommend_policy_describe(POLICY_OF_STEPS, &c.interface);
    rl_checkpoint_set(&c, "formulation", "default");
    struct rl_shape shape = {.inputs = POLICY_STEPS_FEATURES,
                             .outputs = c.interface.heads.total,
                             .hidden = {8},
                             .hidden_count = 1};
    assert_int_equal(rl_net_make(&net, &shape, &err), 0);
    rl_net_randomise(&net, 1, &random);
    rl_checkpoint_add_net(&c, "actor", &net, NULL);
    struct recommend_policy *policy = recommend_policy_new(&c, &err);
    assert_non_null(policy);
    rl_checkpoint_clear(&c);
    rl_net_clear(&net);
    return policy;
}

static inline void scene_use_steps(struct scene *s)
{
    struct recommend_policy *policy = scene_steps_policy();
    assert_int_equal(s->recommender->use(s->self, policy, &s->err), 0);
    recommend_policy_release(policy);
}

/* p99 below 300 ms, 1 to 20 replicas of 100m to 2 cores, 70 % CPU; one pod of 500m, half busy. */
static inline struct scene *scene_new(const struct recommender *recommender, const double *params)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    s->recommender = recommender;
    s->self = recommender->create(600, params);
    s->seen = (struct observation){
        .now_s = 1000,
        .percentile = 99,
        .goal_ms = 300,
        .throttled = NAN,
        .since_increase_s = INFINITY,
        .latency_window_s = 15,
        .min_replicas = 1,
        .max_replicas = 20,
        .tolerance_up = 0.1,
        .tolerance_down = 0.1,
        .metrics = {{CPU, -1, 0.7, NAN}},
        .metric_count = 1,
        .pods = s->pods,
        .container_count = 1,
        .containers = {{.name = "app",
                        .controlled = {true, false},
                        .request = {500, NAN},
                        .min = {100, 16 * MI},
                        .max = {2000, 1e12}}},
    };
    for (size_t i = 0; i < SCENE_PODS; i++)
        s->pods[i] = (struct recommend_pod){.ready = true, .age_s = 1000};
    scene_pods(s, 1);
    scene_cpu(s, 500, 250);
    scene_load(s, 10, 0.5, 50);
    if (recommender == &recommend_ppo)
        scene_use(s, scene_neutral, NULL);
    if (recommender == &recommend_ppo_steps)
        scene_use_steps(s);
    return s;
}

static inline void scene_free(struct scene *s)
{
    s->recommender->destroy(s->self);
    free(s);
}

static inline int scene_ask(struct scene *s)
{
    s->err = (struct error){0};
    if (s->recommender->recommend(s->self, &s->seen, &s->out, &s->err) < 0)
        return -1;
    if (s->recommender->explain)
        s->recommender->explain(s->self, &s->seen, &s->out);
    return 0;
}

static inline double scene_target(const struct scene *s)
{
    return s->out.containers[0].target[CPU];
}

static inline void scene_expect(struct scene *s, int replicas, double cpu, const char *reason)
{
    if (scene_ask(s) < 0)
        fail_msg("failed: %s", s->err.message);
    if (reason)
        assert_string_equal(s->out.reason, reason);
    if (s->out.replicas != replicas || fabs(scene_target(s) - cpu) > 1e-6)
        fail_msg("%d × %gm instead of %d × %gm: %s", s->out.replicas, scene_target(s), replicas,
                 cpu, s->out.reason);
}

/* What was recommended has come about, and time has passed. */
static inline void scene_obey(struct scene *s, double seconds)
{
    double usage = s->pods[0].containers[0].usage[CPU] * s->seen.replicas_wanted / s->out.replicas;
    scene_pods(s, s->out.replicas);
    scene_cpu(s, scene_target(s), usage);
    s->seen.now_s += seconds;
}

#endif
