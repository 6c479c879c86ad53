/* The environment against the formulas of its documents, worked out here from the cluster. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "sim/sim.h"

#define BUSY   "poisson:rate=100,span=60,demand=100,p99=100" /* 10 cores' worth of requests */
#define STEADY "poisson:rate=8,span=60,demand=50,p99=100"
#define SECOND "poisson:rate=3,span=60,demand=100,p99=100"

static struct sim *new_sim(const char *formulation, const char *const *settings)
{
    struct error err = {0};
    struct sim *sim = sim_open(formulation, settings, &err);
    if (sim == NULL)
        fail_msg("%s", err.message);
    return sim;
}
#define SIM(formulation, ...) new_sim(formulation, (const char *const[]){__VA_ARGS__, NULL})

/* --- the block --- */
static size_t agents(const struct sim *sim)
{
    return sim_shape(sim)->clusters * sim_shape(sim)->functions;
}

static const double *figures(const struct sim *sim, size_t row)
{
    return sim_block(sim)->figures + row * SIM_FIGURE_COUNT;
}

static const float *observation(const struct sim *sim, size_t row)
{
    return sim_block(sim)->observations + row * sim_shape(sim)->observation_size;
}

static const uint8_t *mask(const struct sim *sim, size_t row)
{
    return sim_block(sim)->masks + row * sim_shape(sim)->mask_size;
}

static void choose(const struct sim *sim, size_t row, const int *options)
{
    size_t size = sim_shape(sim)->action_size;
    for (size_t d = 0; d < size; d++)
        sim_block(sim)->actions[row * size + d] = options[d];
}
#define CHOOSE(sim, row, ...) choose(sim, row, (const int[]){__VA_ARGS__})

static void hold_all(const struct sim *sim)
{
    const struct sim_shape *s = sim_shape(sim);
    for (size_t i = 0; i < agents(sim); i++)
        for (size_t d = 0; d < s->action_size; d++)
            sim_block(sim)->actions[i * s->action_size + d] =
                (int32_t)s->dimensions[d].option_count / 2;
}

static void choose_at_random(const struct sim *sim, struct random *r)
{
    const struct sim_shape *s = sim_shape(sim);
    for (size_t i = 0; i < agents(sim); i++)
        for (size_t d = 0; d < s->action_size; d++)
            sim_block(sim)->actions[i * s->action_size + d] =
                (int32_t)random_below(r, s->dimensions[d].option_count);
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fmax(1, fabs(b)))) /* observations are floats */
        fail_msg("%.9g instead of %.9g", a, b);
}

/* --- MP3 --- */
/* Its footnote: 512 of 512 + 1536 shares on two cores are 0.5 CPU. */
static void test_mp3_shares_of_one_neighbour(void **state)
{
    (void)state;
    struct sim *sim = SIM("mp3", "functions", "2", "concurrency", "0", "trace", BUSY);
    for (int i = 0; i < 8; i++) {
        CHOOSE(sim, 0, 1, 1);
        CHOOSE(sim, 1, 2, 1);
        sim_step(sim);
    }
    hold_all(sim);
    sim_step(sim);
    assert_near(figures(sim, 0)[SIM_CPU], 512);
    assert_near(figures(sim, 1)[SIM_CPU], 1536);
    assert_near(figures(sim, 0)[SIM_CPU_USED], 0.5);
    assert_near(figures(sim, 1)[SIM_CPU_USED], 1.5);
    sim_free(sim);
}

/* The same with its settings as they are: three neighbours of 512 shares each. */
static void test_mp3_begins_with_its_example(void **state)
{
    (void)state;
    struct sim *sim = SIM("mp3", "trace", BUSY);
    hold_all(sim);
    sim_step(sim);
    for (size_t i = 0; i < 4; i++)
        assert_near(figures(sim, i)[SIM_CPU_USED], 0.5);
    const float *o = observation(sim, 0);
    assert_int_equal(sim_shape(sim)->observation_size, 6);
    assert_near(o[0], 1);                        /* 0.5 used of 512 / 1024 cores */
    assert_near(o[2], 512 / (10 * 2048.0));      /* of 10 containers at most */
    assert_near(o[3], 1536 / (3 * 10 * 2048.0)); /* of three others */
    assert_near(o[4], 1 / 10.0);
    sim_free(sim);
}

/* Shares are weights: 16 containers of 2048 fit on two cores, and each gets an eighth of one. */
static void test_shares_add_up_to_any_sum(void **state)
{
    (void)state;
    struct sim *sim =
        SIM("mp3", "initial_cpu", "2048", "initial_replicas", "4", "trace", BUSY, "nodes", "1");
    hold_all(sim);
    sim_step(sim);
    for (size_t i = 0; i < 4; i++) {
        assert_near(figures(sim, i)[SIM_READY_REPLICAS], 4);
        assert_near(figures(sim, i)[SIM_CPU_USED], 0.5);
    }
    sim_free(sim);
}

static void test_mp3_state_and_reward(void **state)
{
    (void)state;
    struct sim *sim = SIM("mp3", "trace", STEADY, "trace", SECOND, "goal_ms", "150");
    struct random r = random_stream(1, 1);
    double before = figures(sim, 0)[SIM_RATE];
    for (int i = 0; i < 50; i++) {
        choose_at_random(sim, &r);
        sim_step(sim);
        const struct cluster *c = sim_cluster(sim, 0);
        const struct cluster_stats *s = cluster_stats(c, 0);
        const float *o = observation(sim, 0);
        double util = fmin(1, s->cpu_s / s->requested_cpu_s), rate = (double)s->arrived / 15;
        assert_near(o[0], util);
        assert_near(o[1], figures(sim, 0)[SIM_SLO_PRESERVATION]);
        assert_near(o[2], figures(sim, 0)[SIM_REPLICAS] * figures(sim, 0)[SIM_CPU] / 20480);
        assert_near(o[5], (1 + (rate - before) / fmax(rate, before)) / 2);
        double penalty = figures(sim, 0)[SIM_ILLEGAL] + figures(sim, 0)[SIM_OSCILLATING] > 0;
        assert_near(sim_block(sim)->rewards[0], 0.3 * o[1] + 0.7 * util - penalty);
        before = rate;
    }
    sim_free(sim);
}

/* --- MA-PPO --- */
static double place(double low, double x, double high)
{
    return (x - low) / (high - low);
}

struct seen { /* of one function, from the cluster alone */
    double sp, ru_cpu, ru_mem, rate;
};

static struct seen look(const struct cluster *c, size_t function, double goal_ms, double limit_mib)
{
    const struct cluster_stats *s = cluster_stats(c, function);
    double p99_ms = cluster_latency_quantile_ms(cluster_latency(c, function), 0.99);
    struct cluster_replica replicas[64];
    size_t count = cluster_replicas(c, function, replicas, 64);
    double bytes = 0, ready = 0;
    for (size_t i = 0; i < count && i < 64; i++) {
        bytes += replicas[i].phase == CLUSTER_READY ? replicas[i].memory_bytes : 0;
        ready += replicas[i].phase == CLUSTER_READY;
    }
    return (struct seen){
        .sp = p99_ms > goal_ms ? goal_ms / p99_ms : 1,
        .ru_cpu = fmin(1, s->cpu_s / s->requested_cpu_s),
        .ru_mem = ready > 0 ? bytes / ready / 1048576 / limit_mib : 0,
        .rate = (double)s->arrived / s->span_s,
    };
}

/* Ample containers, so that no request is overdue at the end of an interval nor any replica
 * drained, and actions that keep clear of the bounds. */
static void test_mappo_state_global_state_and_reward(void **state)
{
    (void)state;
    struct sim *sim = SIM("mappo", "functions", "3", "trace", STEADY, "trace", SECOND, "shuffle",
                          "0", "initial_replicas", "8", "goal_ms", "300", "node_cores", "64");
    static const int plan[4][3][3] = {
        {{1, 0, 2}, {2, 1, 1}, {1, 1, 1}},
        {{2, 1, 2}, {2, 1, 2}, {0, 0, 1}}, /* nothing is taken back */
        {{1, 0, 1}, {1, 1, 2}, {0, 1, 2}},
        {{2, 0, 1}, {1, 1, 1}, {1, 0, 2}},
    };
    double shares[3] = {1024, 1024, 1024}, mib[3] = {512, 512, 512}, count[3] = {8, 8, 8};
    double rate[3];
    for (size_t i = 0; i < 3; i++)
        rate[i] = figures(sim, i)[SIM_RATE];
    for (size_t step = 0; step < 4; step++) {
        double up[3], out[3], reward = 0;
        struct seen seen[3];
        for (size_t i = 0; i < 3; i++)
            choose(sim, i, plan[step][i]);
        sim_step(sim);
        for (size_t i = 0; i < 3; i++) {
            const int *o = plan[step][i];
            shares[i] += 128 * (o[0] - 1);
            mib[i] += 64 * (o[1] - 1);
            count[i] += out[i] = o[2] - 1;
            up[i] = o[0] - 1 + o[1] - 1;
            seen[i] = look(sim_cluster(sim, 0), i, 300, mib[i]);
            reward += 0.3 * seen[i].sp * 2 + 0.7 * (seen[i].ru_cpu + seen[i].ru_mem);
        }
        for (size_t i = 0; i < 3; i++) {
            const float *o = observation(sim, i), *g = sim_block(sim)->globals + i * 6;
            size_t j = (i + 1) % 3, k = (i + 2) % 3;
            assert_near(o[0], seen[i].sp);
            assert_near(o[1], seen[i].ru_cpu);
            assert_near(o[2], seen[i].ru_mem);
            assert_near(o[3], (seen[i].rate - rate[i]) / fmax(seen[i].rate, rate[i]));
            assert_near(o[4], place(128, shares[i], 2048));
            assert_near(o[5], place(128, mib[i], 512));
            assert_near(o[6], count[i] / 1000);
            assert_near(g[0], place(128, shares[j], 2048) + place(128, shares[k], 2048));
            assert_near(g[1], place(128, mib[j], 512) + place(128, mib[k], 512));
            assert_near(g[2], up[j] + up[k]);
            assert_near(g[3], out[j] + out[k]);
            assert_near(g[4], (seen[j].sp + seen[k].sp) / 2);
            assert_near(g[5],
                        (seen[j].ru_cpu + seen[j].ru_mem + seen[k].ru_cpu + seen[k].ru_mem) / 4);
            assert_near(sim_block(sim)->rewards[i], reward / 3);
        }
        for (size_t i = 0; i < 3; i++)
            rate[i] = seen[i].rate;
    }
    sim_free(sim);
}

/* Nothing is done and 1 is taken off: the twin, which holds still, sees the same otherwise. */
static void assert_illegal(const char *cpu, const char *replicas, const char *memory, int vertical,
                           int vertical_memory, int horizontal)
{
    struct sim *sims[2];
    for (int i = 0; i < 2; i++)
        sims[i] = SIM("mappo", "functions", "1", "trace", STEADY, "initial_cpu", cpu,
                      "initial_replicas", replicas, "initial_memory_mib", memory);
    size_t bytes = sim_shape(sims[0])->observation_size * sizeof(float);
    hold_all(sims[0]);
    CHOOSE(sims[1], 0, vertical, vertical_memory, horizontal);
    sim_step(sims[0]);
    sim_step(sims[1]);
    assert_memory_equal(observation(sims[0], 0), observation(sims[1], 0), bytes);
    assert_near(figures(sims[1], 0)[SIM_ILLEGAL], 1);
    assert_near(sim_block(sims[1])->rewards[0], sim_block(sims[0])->rewards[0] - 1);
    sim_free(sims[0]);
    sim_free(sims[1]);
}

static void test_illegal_actions_change_nothing(void **state)
{
    (void)state;
    assert_illegal("2048", "4", "512", 2, 1, 1); /* beyond 2048 shares */
    assert_illegal("128", "4", "512", 0, 1, 1);  /* below 128 */
    assert_illegal("1024", "4", "512", 1, 2, 1); /* beyond the memory */
    assert_illegal("1024", "4", "128", 1, 0, 1);
    assert_illegal("1024", "1000", "512", 1, 1, 2); /* beyond 1000 containers */
    assert_illegal("1024", "0", "512", 1, 1, 0);    /* in, up and down without any */
    assert_illegal("1024", "0", "512", 2, 1, 1);
    assert_illegal("1024", "0", "512", 0, 1, 1);
    assert_illegal("1024", "0", "512", 2, 1, 2);
    assert_illegal("2048", "4", "512", 2, 1, 2); /* the legal half is not done either */
    assert_illegal("1024", "4", "512", 3, 1, 1); /* no such option */
    assert_illegal("1024", "4", "512", -1, 1, 1);
}

static void test_oscillation_costs_one(void **state)
{
    (void)state;
    struct sim *paying = SIM("mappo", "functions", "1", "trace", STEADY);
    struct sim *free_of_it =
        SIM("mappo", "functions", "1", "trace", STEADY, "oscillation_penalty", "0");
    static const struct {
        int action[3];
        int paid;
    } plan[] = {
        {{2, 1, 1}, 0}, {{0, 1, 1}, 1}, {{1, 1, 2}, 0}, {{1, 1, 2}, 0},
        {{1, 1, 0}, 1}, {{1, 1, 1}, 0}, {{1, 1, 2}, 0}, {{0, 1, 0}, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(plan); i++) {
        choose(paying, 0, plan[i].action);
        choose(free_of_it, 0, plan[i].action);
        sim_step(paying);
        sim_step(free_of_it);
        assert_near(sim_block(free_of_it)->rewards[0] - sim_block(paying)->rewards[0],
                    plan[i].paid);
    }
    sim_free(paying);
    sim_free(free_of_it);
}

/* Requests came and none was served: that is no preserved goal, and it gets worse. */
static void test_stuck_requests_break_the_goal(void **state)
{
    (void)state;
    struct sim *sim =
        SIM("mappo", "functions", "1", "trace", STEADY, "initial_replicas", "0", "goal_ms", "3000");
    double last = 1;
    for (int i = 0; i < 4; i++) {
        hold_all(sim);
        sim_step(sim);
        double waited_s = 15 * (i + 1); /* since the first look at which some were overdue */
        assert_near(observation(sim, 0)[0], 3 / (3 + waited_s));
        assert_true(observation(sim, 0)[0] < last);
        last = observation(sim, 0)[0];
    }
    sim_free(sim);
}

static void test_no_requests_preserve_the_goal(void **state)
{
    (void)state;
    struct sim *sim =
        SIM("mappo", "functions", "1", "trace", "poisson:rate=0.000001,span=3600,demand=10");
    hold_all(sim);
    sim_step(sim);
    assert_near(observation(sim, 0)[0], 1);
    assert_near(observation(sim, 0)[1], 0);
    assert_near(observation(sim, 0)[3], 0);
    assert_true(isnan(figures(sim, 0)[SIM_LATENCY_MS]));
    sim_free(sim);
}

static void test_aware_reward(void **state)
{
    (void)state;
    struct sim *sim =
        SIM("aware", "alpha", "0.25", "trace", STEADY, "goal_ms", "60", "shuffle", "0");
    for (int i = 0; i < 10; i++) {
        hold_all(sim);
        sim_step(sim);
        const float *o = observation(sim, 0);
        assert_near(sim_block(sim)->rewards[0], 0.25 * (o[1] + o[2]) / 2 + 0.75 * o[0]);
    }
    assert_int_equal(sim_shape(sim)->observation_size, 7);
    sim_free(sim);
}

/* A pod that any request kills answers none: that nothing is slow then is no merit. */
static void test_lost_requests_are_late(void **state)
{
    (void)state;
    struct sim *sim = SIM("aware", "trace", STEADY, "goal_ms", "60", "shuffle", "0", "memory_mib",
                          "120", "request_memory_mib", "16", "initial_memory_mib", "128");
    for (int i = 0; i < 10; i++) {
        hold_all(sim);
        sim_step(sim);
        assert_true(figures(sim, 0)[SIM_LATENCY_MS] >= 60 + 15000);
        assert_true(figures(sim, 0)[SIM_SLO_PRESERVATION] < 0.01);
        assert_true(figures(sim, 0)[SIM_VIOLATION_RATIO] > 0.5);
    }
    sim_free(sim);
}

/* A request of 100 ms on a pod of 0.128 cores has 12.8 ms in each period of 100 ms: it needs the
 * quota of eight of them, of which six pass as a whole, where weights alone would let it have a
 * core. */
static void test_aware_pods_have_limits(void **state)
{
    (void)state;
    const char *lone = "poisson:rate=0.05,span=36000,demand=100,p99=100";
    const char *const formulations[] = {"aware", "mappo"};
    for (size_t k = 0; k < 2; k++) {
        struct sim *sim = SIM(formulations[k], "functions", "1", "trace", lone, "initial_cpu",
                              "128", "nodes", "0", "shuffle", "0");
        for (int i = 0; i < 20; i++) {
            hold_all(sim);
            sim_step(sim);
            double latency_ms = figures(sim, 0)[SIM_LATENCY_MS];
            if (isfinite(latency_ms))
                assert_true(k == 0 ? latency_ms > 600 : latency_ms < 110);
        }
        assert_near(figures(sim, 0)[SIM_CPU_RESERVED], 4 * (k == 0 ? 0.128 : 0.125));
        sim_free(sim);
    }
}

/* --- SIMPPO: functions join and leave --- */
static bool all_zero(const float *row, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (row[i] != 0)
            return false;
    return true;
}

static void assert_virtual_agents(const struct sim *sim)
{
    const struct sim_block *b = sim_block(sim);
    const double *cpu_limits = (const double[]){128, 2048};
    for (size_t i = 0; i < agents(sim); i++) {
        const float *o = observation(sim, i);
        double limits = 0, sp = 0, others = 0;
        if (!b->present[i]) {
            assert_true(all_zero(o, 13));
            continue;
        }
        for (size_t j = 0; j < agents(sim); j++) {
            if (j == i || !b->present[j])
                continue;
            limits += place(cpu_limits[0], figures(sim, j)[SIM_CPU], cpu_limits[1]);
            sp += observation(sim, j)[0];
            others++;
        }
        assert_near(o[7], limits);
        assert_near(o[11], others > 0 ? sp / others : 0);
        if (others == 0)
            assert_true(all_zero(o + 7, 6));
    }
}

static void test_simppo_empty_slots_are_zero(void **state)
{
    (void)state;
    struct sim *sim =
        SIM("simppo", "churn", "0.8", "functions", "6", "episode_steps", "40", "trace", STEADY);
    const struct sim_block *b = sim_block(sim);
    struct random r = random_stream(2, 0);
    int joined = 0, left = 0, over = 0;
    uint8_t was[6];
    sim_reset(sim, 3);
    assert_virtual_agents(sim);
    for (int step = 1; step <= 40; step++) {
        memcpy(was, b->present, sizeof(was));
        choose_at_random(sim, &r);
        sim_step(sim);
        assert_virtual_agents(sim);
        for (size_t i = 0; i < 6; i++) {
            joined += b->present[i] && !was[i];
            left += b->terminated[i];
            over += b->truncated[i];
            assert_int_equal(b->terminated[i], was[i] && !b->present[i]);
            if (!was[i])
                assert_true(b->rewards[i] == 0);
        }
    }
    assert_true(joined > 0 && left > 0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(b->truncated[i], b->present[i]); /* the 40th was the last step */
    assert_true(over < 6);
    sim_free(sim);
}

/* A function that is gone has no replicas, and no request comes. */
static void test_who_left_is_gone(void **state)
{
    (void)state;
    struct sim *sim = SIM("simppo", "churn", "1", "functions", "4", "episode_steps", "60", "trace",
                          "poisson:rate=5,span=60,demand=10,p99=10");
    const struct sim_block *b = sim_block(sim);
    sim_reset(sim, 1);
    int absent[4] = {0}, checked = 0;
    for (int step = 0; step < 60; step++) {
        hold_all(sim);
        sim_step(sim);
        for (size_t i = 0; i < 4; i++) {
            struct cluster_state now;
            cluster_state(sim_cluster(sim, 0), i, &now);
            absent[i] = b->present[i] ? 0 : absent[i] + 1;
            if (absent[i] < 2)
                continue;
            /* One that joins next runs already. */
            assert_true(now.ready == 0 || now.ready == 4);
            checked += now.ready == 0 && cluster_stats(sim_cluster(sim, 0), i)->arrived == 0;
        }
    }
    assert_true(checked > 10);
    sim_free(sim);
}

/* --- ours --- */
struct need { /* of one function, kept from interval to interval */
    double used, work_ms;
    size_t overdue;
};

/* −(CPU reserved / needed + λ · broken goals) / 20, from the cluster alone. */
static double reward_of(const struct cluster *c, size_t function, double goal_ms, double lambda,
                        double kept, struct need *need)
{
    const struct cluster_stats *s = cluster_stats(c, function);
    struct cluster_state now;
    cluster_state(c, function, &now);
    double used = s->cpu_s / 15, weight = fmin(1, (double)s->completed / 100);
    need->used = kept * need->used + (1 - kept) * used;
    if (s->completed > 0)
        need->work_ms += (need->work_ms > 0 ? weight : 1) *
                         (1000 * s->cpu_s / (double)s->completed - need->work_ms);
    double needed = fmax(fmax(0.1, fmin(need->work_ms / goal_ms, 1)), need->used / 0.7);
    double waste = s->requested_cpu_s / 15 / needed;
    double cost = waste <= 4 ? waste : 4 + 4 * log(waste / 4);
    double broken = (double)(s->late + s->lost + now.overdue) - (double)need->overdue;
    assert_true(broken >= 0);
    need->overdue = now.overdue;
    return -(cost + lambda * fmin(1, broken / fmax(1, (double)s->arrived))) / 20;
}

static void test_default_reward(void **state)
{
    (void)state;
    struct sim *sim = SIM("default", "trace", STEADY, "trace", SECOND, "functions", "2", "lambda",
                          "30", "goal_ms", "120");
    struct random r = random_stream(7, 7);
    struct need need[2] = {0};
    for (size_t i = 0; i < 2; i++)
        reward_of(sim_cluster(sim, 0), i, 120, 30, 0, &need[i]);
    for (int step = 0; step < 100; step++) {
        choose_at_random(sim, &r);
        sim_step(sim);
        for (size_t i = 0; i < 2; i++)
            assert_near(sim_block(sim)->rewards[i],
                        reward_of(sim_cluster(sim, 0), i, 120, 30, exp(-15.0 / 60), &need[i]));
    }
    sim_free(sim);
}

static void test_default_actions(void **state)
{
    (void)state;
    struct sim *sim = SIM("default", "trace", STEADY, "max_replicas", "5");
    static const struct {
        int replicas_option, cpu_option;
        double replicas, cpu;
    } plan[] = {
        {4, 3, 2, 1250}, /* ×2, ×1.25 */
        {3, 4, 3, 2000}, /* +1, ×2 as far as the bound */
        {4, 1, 5, 1600}, /* ×2 as far as the bound, ÷1.25 */
        {0, 0, 3, 800},  /* half of 5 is 3 */
        {1, 2, 2, 800},  {0, 0, 1, 400}, {2, 0, 1, 200},
        {2, 0, 1, 100},  {2, 0, 1, 100}, /* illegal: nothing left to halve */
    };
    for (size_t i = 0; i < ARRAY_LEN(plan); i++) {
        CHOOSE(sim, 0, plan[i].replicas_option, plan[i].cpu_option);
        assert_int_equal(mask(sim, 0)[plan[i].replicas_option] &&
                             mask(sim, 0)[5 + plan[i].cpu_option],
                         i + 1 < ARRAY_LEN(plan));
        sim_step(sim);
        struct cluster_state now;
        cluster_state(sim_cluster(sim, 0), 0, &now);
        assert_int_equal(now.wanted, (int)plan[i].replicas);
        assert_near(now.request_milli, plan[i].cpu);
        assert_near(now.limit_milli, plan[i].cpu);
        assert_near(figures(sim, 0)[SIM_ILLEGAL], i + 1 == ARRAY_LEN(plan));
    }
    sim_free(sim);
}

static void test_default_state(void **state)
{
    (void)state;
    struct sim *sim = SIM("default", "functions", "2", "trace", STEADY, "goal_ms", "100", "nodes",
                          "2", "node_cores", "4", "initial_cpu", "500", "initial_replicas", "2");
    hold_all(sim);
    sim_step(sim);
    const struct cluster_stats *s = cluster_stats(sim_cluster(sim, 0), 0);
    const struct cluster_stats *other = cluster_stats(sim_cluster(sim, 0), 1);
    const float *o = observation(sim, 0);
    double p99_ms = cluster_latency_quantile_ms(cluster_latency(sim_cluster(sim, 0), 0), 0.99);
    assert_int_equal(sim_shape(sim)->observation_size, 17);
    assert_near(o[0], log(1 + (double)s->arrived / 15) / log(1001));
    assert_near(o[4], s->cpu_s / s->requested_cpu_s);
    assert_near(o[6], fmax(-1, fmin(1, log2(p99_ms / 100) / 4)));
    assert_near(o[8], (double)s->throttled_periods / (double)s->periods);
    assert_near(o[10], 1);
    assert_near(o[11], log(3 / 2.0) / log(21 / 2.0));
    assert_near(o[12], log(5) / log(20));
    assert_near(o[13], 30 / 300.0);
    assert_near(o[14], 1.0 / 8); /* 2 × 500m of two nodes with 4 cores */
    assert_near(o[15], other->cpu_s / 15 / 8);
    sim_free(sim);
}

/* --- all formulations --- */
static void assert_within_fields(const struct sim *sim)
{
    const struct sim_shape *s = sim_shape(sim);
    for (size_t i = 0; i < agents(sim); i++)
        for (size_t k = 0; k < s->observation_size; k++) {
            const struct sim_field *f = &s->observation_fields[k];
            double wider = f->per_other ? (double)s->functions - 1 : 1;
            double value = observation(sim, i)[k];
            if (!(value >= f->low * wider - 1e-6 && value <= f->high * wider + 1e-6))
                fail_msg("%s is %g", f->name, value);
        }
}

static void test_bounds_hold_whatever_is_done(void **state)
{
    (void)state;
    for (size_t k = 0; sim_formulations[k]; k++) {
        struct sim *sim = SIM(sim_formulations[k], "functions", "3", "max_replicas", "6",
                              "initial_replicas", "3", "episode_steps", "1000");
        struct random r = random_stream(k, 5);
        double least = k == 0 ? 100 : 128, most = k == 0 ? 2000 : 2048;
        for (int step = 0; step < 200; step++) {
            choose_at_random(sim, &r);
            sim_step(sim);
            assert_within_fields(sim);
            for (size_t i = 0; i < 3; i++) {
                struct cluster_state now;
                cluster_state(sim_cluster(sim, 0), i, &now);
                double cpu = figures(sim, i)[SIM_CPU];
                assert_true(now.wanted >= 0 && now.wanted <= 6);
                assert_true(cpu >= least && cpu <= most);
                assert_near(now.request_milli, k == 0 || k == 4 ? cpu : cpu / 1.024);
            }
        }
        sim_free(sim);
    }
}

/* What a mask allows is legal, what it forbids is not. */
static void test_masks_say_what_is_legal(void **state)
{
    (void)state;
    for (size_t k = 0; sim_formulations[k]; k++) {
        struct sim *sim = SIM(sim_formulations[k], "functions", "1", "max_replicas", "4",
                              "initial_replicas", "2", "trace", STEADY);
        const struct sim_shape *s = sim_shape(sim);
        struct random r = random_stream(k, 6);
        for (int step = 0; step < 100; step++) {
            const uint8_t *at = mask(sim, 0);
            bool legal = true;
            choose_at_random(sim, &r);
            for (size_t d = 0; d < s->action_size; d++) {
                legal = legal && at[sim_block(sim)->actions[d]];
                at += s->dimensions[d].option_count;
            }
            sim_step(sim);
            assert_near(figures(sim, 0)[SIM_ILLEGAL], !legal);
        }
        sim_free(sim);
    }
}

/* --- determinism --- */
static void assert_same(const struct sim *a, const struct sim *b)
{
    const struct sim_shape *s = sim_shape(a);
    size_t n = agents(a);
    const struct sim_block *x = sim_block(a), *y = sim_block(b);
    assert_memory_equal(x->observations, y->observations, n * s->observation_size * sizeof(float));
    assert_memory_equal(x->rewards, y->rewards, n * sizeof(float));
    assert_memory_equal(x->masks, y->masks, n * s->mask_size);
    assert_memory_equal(x->figures, y->figures, n * SIM_FIGURE_COUNT * sizeof(double));
    assert_memory_equal(x->truncated, y->truncated, n);
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    const char *threads[] = {"1", "2", "5"};
    struct sim *sims[3];
    for (int i = 0; i < 3; i++)
        sims[i] = SIM("simppo", "clusters", "7", "functions", "3", "threads", threads[i],
                      "episode_steps", "12", "churn", "0.5", "rate_spread", "2");
    for (int step = 0; step < 30; step++)
        for (int i = 0; i < 3; i++) {
            struct random r = random_stream((uint64_t)step, 3);
            choose_at_random(sims[i], &r);
            sim_step(sims[i]);
            assert_same(sims[0], sims[i]);
        }
    for (int i = 0; i < 3; i++)
        sim_free(sims[i]);
}

static void test_reset_begins_again(void **state)
{
    (void)state;
    struct sim *a = SIM("default", "clusters", "3", "functions", "2", "episode_steps", "10");
    struct sim *b = SIM("default", "clusters", "3", "functions", "2", "episode_steps", "10");
    struct random ra = random_stream(1, 0), rb;
    sim_reset(a, 5);
    for (int step = 0; step < 25; step++) { /* into the third episode */
        choose_at_random(a, &ra);
        sim_step(a);
    }
    sim_reset(a, 9);
    sim_reset(b, 9);
    assert_same(a, b);
    ra = rb = random_stream(4, 0);
    for (int step = 0; step < 25; step++) {
        choose_at_random(a, &ra);
        choose_at_random(b, &rb);
        sim_step(a);
        sim_step(b);
        assert_same(a, b);
    }
    /* Another seed, another cluster and the next episode are something else. */
    sim_reset(b, 10);
    sim_reset(a, 9);
    size_t bytes = sim_shape(a)->observation_size * sizeof(float);
    assert_memory_not_equal(observation(a, 0), observation(b, 0), bytes);
    assert_memory_not_equal(observation(a, 0), observation(a, 2), bytes);
    sim_free(a);
    sim_free(b);
}

static void test_the_next_episode_begins_by_itself(void **state)
{
    (void)state;
    struct sim *sim = SIM("default", "episode_steps", "5", "trace", STEADY);
    const struct sim_block *b = sim_block(sim);
    hold_all(sim);
    for (int step = 1; step <= 12; step++) {
        sim_step(sim);
        assert_int_equal(b->truncated[0], step == 5 || step == 11);
        assert_int_equal(b->terminated[0], 0);
        if (step == 6 || step == 12) { /* instead of a step */
            assert_true(b->rewards[0] == 0);
            assert_near(figures(sim, 0)[SIM_TIME_S], 15);
        } else {
            assert_true(b->rewards[0] < 0);
        }
    }
    sim_free(sim);
}

static void test_a_mean_field_is_the_sum_over_the_number_of_others(void **state)
{
    (void)state;
    struct sim *sum = SIM("simppo", "functions", "4", "trace", STEADY);
    struct sim *mean = SIM("simppo", "functions", "4", "trace", STEADY, "mean_field", "1");
    static const int plan[4][3] = {{0, 1, 2}, {2, 1, 2}, {2, 0, 1}, {2, 1, 2}};
    for (size_t i = 0; i < 4; i++) {
        choose(sum, i, plan[i]);
        choose(mean, i, plan[i]);
    }
    sim_step(sum);
    sim_step(mean);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 13; k++) /* the sums stand behind 7 of its own, before 2 means */
            assert_near(observation(mean, i)[k],
                        observation(sum, i)[k] / (k >= 7 && k < 11 ? 3 : 1));
    assert_near(observation(sum, 0)[10], 2); /* of the others, two scaled out */
    sim_free(sum);
    sim_free(mean);
}

/* The team's mean is that of what each would get by itself. */
static void test_selfish_ones_get_their_own_reward(void **state)
{
    (void)state;
    struct sim *team = SIM("mappo", "functions", "3", "trace", STEADY);
    struct sim *own = SIM("mappo", "functions", "3", "trace", STEADY, "selfish", "1");
    static const int plan[3][3] = {{0, 1, 1}, {2, 1, 2}, {1, 0, 0}};
    double sum = 0;
    for (size_t i = 0; i < 3; i++) {
        choose(team, i, plan[i]);
        choose(own, i, plan[i]);
    }
    sim_step(team);
    sim_step(own);
    const float *rewards = sim_block(own)->rewards;
    for (size_t i = 0; i < 3; i++)
        sum += rewards[i];
    assert_true(rewards[0] != rewards[1] && rewards[1] != rewards[2]);
    for (size_t i = 0; i < 3; i++)
        assert_near(sim_block(team)->rewards[i], sum / 3);
    sim_free(team);
    sim_free(own);
}

static void test_a_size_can_be_set_whatever_the_steps(void **state)
{
    (void)state;
    static const int hold[3] = {1, 1, 1};
    struct sim *sim = SIM("mappo", "functions", "2", "trace", STEADY, "max_replicas", "9");
    choose(sim, 0, hold);
    choose(sim, 1, hold);
    sim_allocate(sim, 0, 1, 7, 300);
    sim_step(sim);
    assert_near(figures(sim, 0)[SIM_REPLICAS], 4);
    assert_near(figures(sim, 0)[SIM_CPU], 1024);
    assert_near(figures(sim, 1)[SIM_REPLICAS], 7);
    assert_near(figures(sim, 1)[SIM_READY_REPLICAS], 7);
    assert_near(figures(sim, 1)[SIM_CPU], 300);
    assert_near(figures(sim, 1)[SIM_OSCILLATING], 0);
    sim_allocate(sim, 0, 1, 99, 1e9); /* cut at the bounds */
    sim_step(sim);
    assert_near(figures(sim, 1)[SIM_REPLICAS], 9);
    assert_near(figures(sim, 1)[SIM_CPU], 2048);
    sim_free(sim);
}

/* --- workloads --- */
static void test_without_shuffle_function_i_has_workload_i(void **state)
{
    (void)state;
    struct sim *sim =
        SIM("default", "functions", "3", "trace", "poisson:rate=50,span=60,demand=1,p99=1", "trace",
            "poisson:rate=5,span=60,demand=3,p99=3", "shuffle", "0");
    /* Goals are twice p99 alone; 450 ± 3σ requests of the first in two intervals. */
    assert_near(figures(sim, 0)[SIM_GOAL_MS], 2);
    assert_near(figures(sim, 1)[SIM_GOAL_MS], 6);
    assert_near(figures(sim, 2)[SIM_GOAL_MS], 2);
    assert_true(fabs(figures(sim, 0)[SIM_RATE] - 50) < 3 * sqrt(50 * 15) / 15);
    sim_free(sim);
}

/* The rate of a wave tells where in it an episode begins. */
static void test_with_shuffle_2_workload_i_begins_anywhere(void **state)
{
    (void)state;
    struct sim *sim = SIM("default", "functions", "2", "clusters", "200", "shuffle", "2", "trace",
                          "diurnal:rate=100,amplitude=1,period=3600,demand=1,p99=1", "trace",
                          "poisson:rate=5,span=60,demand=3,p99=3");
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < 400; i += 2) {
        assert_near(figures(sim, i)[SIM_GOAL_MS], 2);
        assert_near(figures(sim, i + 1)[SIM_GOAL_MS], 6);
        low = fmin(low, figures(sim, i)[SIM_RATE]);
        high = fmax(high, figures(sim, i)[SIM_RATE]);
    }
    assert_true(low < 10 && high > 190); /* of 0 to 200; a tenth of the time is beyond each */
    sim_free(sim);
}

static void test_spreads_scale_rate_and_demand(void **state)
{
    (void)state;
    struct sim *sim =
        SIM("default", "clusters", "200", "trace", "poisson:rate=100,span=60,demand=1,p99=1",
            "rate_spread", "4", "demand_spread", "3");
    double low = INFINITY, high = 0, low_goal = INFINITY, high_goal = 0;
    for (size_t i = 0; i < 200; i++) {
        low = fmin(low, figures(sim, i)[SIM_RATE]);
        high = fmax(high, figures(sim, i)[SIM_RATE]);
        low_goal = fmin(low_goal, figures(sim, i)[SIM_GOAL_MS]);
        high_goal = fmax(high_goal, figures(sim, i)[SIM_GOAL_MS]);
    }
    /* Both ends are within 10 % of the factor with a probability of 1 − 2·exp(−200·0.034). */
    assert_true(low > 25 * 0.8 && low < 25 * 1.2 && high > 400 * 0.85 && high < 400 * 1.1);
    assert_true(low_goal >= 2 / 3.0 && low_goal < 2 / 3.0 * 1.1);
    assert_true(high_goal <= 6 && high_goal > 6 / 1.1);
    sim_free(sim);
}

/* --- settings --- */
static void assert_refused(const char *formulation, const char *name, const char *value,
                           const char *why)
{
    struct error err = {0};
    const char *settings[] = {name, value, NULL};
    struct sim *sim = sim_open(formulation, settings, &err);
    assert_null(sim);
    if (strstr(err.message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.message, why);
}

static void test_settings_that_cannot_be(void **state)
{
    (void)state;
    assert_refused("nothing", "functions", "1", "formulation \"nothing\" is not known");
    assert_refused("mp3", "reward", "nothing", "reward \"nothing\" is not known");
    assert_refused("mp3", "colour", "red", "no setting \"colour\"");
    assert_refused("mp3", "functions", "0", "functions is \"0\": must be a whole number from 1");
    assert_refused("mp3", "functions", "1.5", "whole number");
    assert_refused("mp3", "functions", "", "whole number");
    assert_refused("mp3", "interval_s", "nan", "must be a number from 0.1");
    assert_refused("mp3", "interval_s", "15s", "must be a number");
    assert_refused("mp3", "min_replicas", "5", "must be in this order");
    assert_refused("mp3", "initial_cpu", "4096", "must be in this order");
    assert_refused("mp3", "trace", "nothing:rate=1", "trace");
}

static void test_every_setting_is_described(void **state)
{
    (void)state;
    size_t count = 0;
    for (; sim_option(count); count++)
        assert_true(strlen(sim_option(count)->name) > 0 && strlen(sim_option(count)->help) > 0);
    assert_true(count > 30);
    for (int i = 0; i < SIM_FIGURE_COUNT; i++)
        assert_non_null(sim_figure_names[i]);
}

/* States, actions and rewards go together in any way. */
static void test_names_can_be_mixed(void **state)
{
    (void)state;
    struct random r = random_stream(0, 0);
    for (size_t s = 0; sim_formulations[s]; s++)
        for (size_t a = 0; sim_formulations[a]; a++)
            for (size_t w = 0; sim_formulations[w]; w++) {
                struct sim *sim =
                    SIM("mp3", "state", sim_formulations[s], "actions", sim_formulations[a],
                        "reward", sim_formulations[w], "functions", "2", "trace", SECOND);
                choose_at_random(sim, &r);
                sim_step(sim);
                assert_within_fields(sim);
                assert_true(isfinite(sim_block(sim)->rewards[0]));
                sim_free(sim);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mp3_shares_of_one_neighbour),
        cmocka_unit_test(test_mp3_begins_with_its_example),
        cmocka_unit_test(test_shares_add_up_to_any_sum),
        cmocka_unit_test(test_mp3_state_and_reward),
        cmocka_unit_test(test_mappo_state_global_state_and_reward),
        cmocka_unit_test(test_illegal_actions_change_nothing),
        cmocka_unit_test(test_oscillation_costs_one),
        cmocka_unit_test(test_stuck_requests_break_the_goal),
        cmocka_unit_test(test_no_requests_preserve_the_goal),
        cmocka_unit_test(test_aware_reward),
        cmocka_unit_test(test_aware_pods_have_limits),
        cmocka_unit_test(test_lost_requests_are_late),
        cmocka_unit_test(test_simppo_empty_slots_are_zero),
        cmocka_unit_test(test_who_left_is_gone),
        cmocka_unit_test(test_default_reward),
        cmocka_unit_test(test_default_actions),
        cmocka_unit_test(test_default_state),
        cmocka_unit_test(test_bounds_hold_whatever_is_done),
        cmocka_unit_test(test_masks_say_what_is_legal),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_reset_begins_again),
        cmocka_unit_test(test_the_next_episode_begins_by_itself),
        cmocka_unit_test(test_without_shuffle_function_i_has_workload_i),
        cmocka_unit_test(test_with_shuffle_2_workload_i_begins_anywhere),
        cmocka_unit_test(test_a_mean_field_is_the_sum_over_the_number_of_others),
        cmocka_unit_test(test_selfish_ones_get_their_own_reward),
        cmocka_unit_test(test_a_size_can_be_set_whatever_the_steps),
        cmocka_unit_test(test_spreads_scale_rate_and_demand),
        cmocka_unit_test(test_settings_that_cannot_be),
        cmocka_unit_test(test_every_setting_is_described),
        cmocka_unit_test(test_names_can_be_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
