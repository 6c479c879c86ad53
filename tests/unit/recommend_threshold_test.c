/* The stated rule of docs/threshold.md, sentence by sentence. Sizes are worked out by hand from the
 * rule; percentiles of usage are those that VPA's own histogram gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recommend/recommend.h"

#define MAX_PODS 12
#define CPU      RECOMMEND_CPU
#define MEM      RECOMMEND_MEMORY
#define MI       1048576.0

/* What VPA's histogram makes of a steady usage: the end of its bucket. */
#define P90_OF_100 110.26564319570306
#define P90_OF_250 258.40366356020638
#define P90_OF_500 511.13453758887061
#define P90_OF_1E9 1016281388.5540904

struct scene {
    void *self;
    struct observation seen;
    struct recommend_pod pods[MAX_PODS];
    struct recommendation out;
    struct error err;
};

static void set_pods(struct scene *s, int count)
{
    s->seen.replicas_wanted = count;
    s->seen.pod_count = (size_t)count;
}

static void set_container(struct scene *s, size_t i, const char *name, double cpu, double usage)
{
    struct recommend_container *c = &s->seen.containers[i];
    *c = (struct recommend_container){.name = name, .controlled = {true, false}};
    c->request[CPU] = cpu;
    c->request[MEM] = NAN;
    c->min[CPU] = 10;
    c->max[CPU] = 4000;
    c->min[MEM] = 16 * MI;
    c->max[MEM] = 1e18;
    for (size_t p = 0; p < MAX_PODS; p++) {
        struct recommend_usage *u = &s->pods[p].containers[i];
        *u = (struct recommend_usage){.usage = {usage, NAN}, .request = {cpu, NAN}};
        s->pods[p].ready = true;
    }
    if (s->seen.container_count <= i)
        s->seen.container_count = i + 1;
}

static void set_latency(struct scene *s, enum recommend_latency latency_state, double ms)
{
    s->seen.latency_state = latency_state;
    s->seen.latency_ms = ms;
}

/* One container, p99 below 300 ms, 70 % CPU, 1 to 10 replicas. */
static struct scene *new_scene(int replicas, double cpu, double usage, double latency_ms)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    s->self = recommend_threshold.create(600, NULL);
    s->seen = (struct observation){
        .now_s = 1000,
        .percentile = 99,
        .goal_ms = 300,
        .throttled = NAN,
        .since_increase_s = INFINITY,
        .latency_window_s = 60,
        .min_replicas = 1,
        .max_replicas = 10,
        .tolerance_up = 0.1,
        .tolerance_down = 0.1,
        .metrics = {{CPU, -1, 0.7, NAN}},
        .metric_count = 1,
        .pods = s->pods,
    };
    set_pods(s, replicas);
    set_container(s, 0, "app", cpu, usage);
    set_latency(s, LATENCY_KNOWN, latency_ms);
    return s;
}

static void free_scene(struct scene *s)
{
    recommend_threshold.destroy(s->self);
    free(s);
}

static int ask(struct scene *s)
{
    s->err = (struct error){0};
    return recommend_threshold.recommend(s->self, &s->seen, &s->out, &s->err);
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fmax(1, fabs(b))))
        fail_msg("%.12g instead of %.12g", a, b);
}

static void expect(struct scene *s, int replicas, double cpu, const char *reason)
{
    if (ask(s) < 0)
        fail_msg("failed: %s", s->err.message);
    assert_string_equal(s->out.reason, reason);
    assert_int_equal(s->out.replicas, replicas);
    assert_near(s->out.containers[0].target[CPU], cpu);
}

/* --- growing ---------------------------------------------------------------------------------- */
static void growth_takes_cpu_first(void **state)
{
    (void)state;
    struct scene *s = new_scene(2, 250, 227, 412); /* 412/300 is more than 90/70 */
    expect(s, 2, 350, "p99 412ms over goal 300ms at 91% CPU: cpu 250m → 350m");
    free_scene(s);
    s = new_scene(2, 250, 227, 95); /* 250 × 90/70 */
    expect(s, 2, 330, "p99 95ms within goal 300ms at 91% CPU: cpu 250m → 330m");
    free_scene(s);
}

static void what_does_not_fit_goes_to_replicas(void **state)
{
    (void)state;
    struct scene *s = new_scene(2, 400, 560, 95); /* twice as much as there is: 1600m */
    s->seen.containers[0].max[CPU] = 500;
    expect(s, 4, 500, "p99 95ms within goal 300ms at 140% CPU: replicas 2 → 4, cpu 400m → 500m");
    assert_near(s->out.containers[0].uncapped[CPU], 800);
    free_scene(s);
}

static void latency_counts_for_at_least_a_fifth_and_at_most_double(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 500, 300, 301);
    expect(s, 1, 600, "p99 301ms over goal 300ms at 60% CPU: cpu 500m → 600m");
    free_scene(s);
    s = new_scene(1, 500, 300, 3000);
    expect(s, 1, 1000, "p99 3s over goal 300ms at 60% CPU: cpu 500m → 1");
    free_scene(s);
    s = new_scene(1, 500, 300, 0);
    set_latency(s, LATENCY_OVERFLOW, 10000);
    expect(s, 1, 1000, "p99 beyond 10s over goal 300ms at 60% CPU: cpu 500m → 1");
    set_latency(s, LATENCY_OVERFLOW, 300); /* the bound itself is the goal */
    expect(s, 1, 600, "p99 beyond 300ms over goal 300ms at 60% CPU: cpu 500m → 600m");
    free_scene(s);
}

static void latency_waits_until_the_last_increase_shows(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 500, 350, 600);
    s->seen.since_increase_s = 59;
    expect(s, 1, 500,
           "p99 600ms over goal 300ms at 70% CPU: no change, the last increase is not yet in the "
           "figures");
    s->seen.since_increase_s = 60;
    expect(s, 1, 1000, "p99 600ms over goal 300ms at 70% CPU: cpu 500m → 1");
    free_scene(s);
    s = new_scene(1, 500, 500, 600); /* utilisation itself asks: 100/70 */
    s->seen.since_increase_s = 1;
    expect(s, 1, 720, "p99 600ms over goal 300ms at 100% CPU: cpu 500m → 720m");
    s->seen.throttled = 0.9; /* usage cannot show how much more is needed: latency is believed */
    expect(s, 1, 1000, "p99 600ms over goal 300ms at 100% CPU: cpu 500m → 1");
    free_scene(s);
}

static void throttling_near_the_goal_counts(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 500, 300, 250);
    s->seen.throttled = 0.3;
    expect(s, 1, 600, "p99 250ms within goal 300ms at 60% CPU: cpu 500m → 600m");
    s->seen.throttled = 0.25;
    expect(s, 1, 500,
           "p99 250ms within goal 300ms at 60% CPU: no change, too near the goal to shrink");
    free_scene(s);
    s = new_scene(1, 500, 340, 200);
    s->seen.throttled = 0.9;
    expect(s, 1, 500, "p99 200ms within goal 300ms at 68% CPU: no change");
    free_scene(s);
}

static void slow_dependencies_get_no_cpu(void **state)
{
    (void)state;
    struct scene *s = new_scene(2, 500, 100, 900);
    s->seen.throttled = 0.01;
    expect(s, 2, 500,
           "p99 900ms over goal 300ms at 20% CPU: no change, CPU is not what makes it slow");
    s->seen.throttled = 0.4; /* a lone request in a small quota: idle on average, yet short */
    expect(s, 2, 1000, "p99 900ms over goal 300ms at 20% CPU: cpu 500m → 1");
    s->seen.throttled = NAN;
    expect(s, 2, 1000, "p99 900ms over goal 300ms at 20% CPU: cpu 500m → 1");
    free_scene(s);
}

static void the_top_is_said(void **state)
{
    (void)state;
    struct scene *s = new_scene(10, 4000, 4000, 900);
    expect(s, 10, 4000, "p99 900ms over goal 300ms at 100% CPU: no change, at the maximum");
    free_scene(s);
}

/* --- shrinking -------------------------------------------------------------------------------- */
static void shrinking_takes_replicas_first(void **state)
{
    (void)state;
    struct scene *s = new_scene(4, 500, 110, 80);
    expect(s, 2, 500, "p99 80ms within goal 300ms at 22% CPU: replicas 4 → 2");
    free_scene(s);
}

static void cpu_shrinks_only_at_the_fewest_replicas(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 1000, 250, 40);
    assert_near(ceil(P90_OF_250 / 0.7 / 10) * 10, 370); /* more than usage over target, 358m */
    expect(s, 1, 370, "p99 40ms within goal 300ms at 25% CPU: cpu 1 → 370m");
    free_scene(s);
    s = new_scene(2, 1000, 250, 40); /* at two of at least two */
    s->seen.min_replicas = 2;
    expect(s, 2, 370, "p99 40ms within goal 300ms at 25% CPU: cpu 1 → 370m");
    free_scene(s);
}

static void a_remembered_peak_holds_the_size(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 1000, 250, 40);
    for (int t = 0; t < 60; t++)
        recommend_threshold.remember(s->self, "app", CPU, 400 + t * 10, 500);
    assert_near(ceil(P90_OF_500 / 0.7 / 10) * 10, 740);
    expect(s, 1, 740, "p99 40ms within goal 300ms at 25% CPU: cpu 1 → 740m");
    free_scene(s);
}

/* With latency in proportion to size, 150 ms would be 180 ms, 60 % of the goal, at 834m. */
static void latency_limits_a_shrink(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 1000, 250, 150);
    expect(s, 1, 840, "p99 150ms within goal 300ms at 25% CPU: cpu 1 → 840m");
    free_scene(s);
    s = new_scene(8, 1000, 100, 90); /* half of the replicas, though 8/7 would do for CPU */
    expect(s, 4, 1000, "p99 90ms within goal 300ms at 10% CPU: replicas 8 → 4");
    free_scene(s);
    s = new_scene(4, 500, 110, 250);
    expect(s, 4, 500,
           "p99 250ms within goal 300ms at 22% CPU: no change, too near the goal to shrink");
    free_scene(s);
}

static void without_requests_latency_does_not_object(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 400, 4, NAN);
    set_latency(s, LATENCY_NO_TRAFFIC, NAN);
    s->seen.containers[0].min[CPU] = 200;
    expect(s, 1, 200, "no requests, 1% CPU: cpu 400m → 200m");
    free_scene(s);
    s = new_scene(6, 400, 4, NAN);
    set_latency(s, LATENCY_NO_TRAFFIC, NAN);
    expect(s, 1, 400, "no requests, 1% CPU: replicas 6 → 1");
    free_scene(s);
}

static void unknown_latency_allows_growth_only(void **state)
{
    (void)state;
    struct scene *s = new_scene(4, 500, 110, NAN);
    set_latency(s, LATENCY_MISSING, NAN);
    s->seen.percentile = 99.9;
    expect(s, 4, 500,
           "p99.9 unknown at 22% CPU: no change, not shrinking while latency is unknown");
    free_scene(s);
    s = new_scene(1, 500, 525, NAN);
    set_latency(s, LATENCY_MISSING, NAN);
    expect(s, 1, 750, "p99 unknown at 105% CPU: cpu 500m → 750m");
    free_scene(s);
}

static void within_the_tolerance_nothing_changes(void **state)
{
    (void)state;
    struct scene *s = new_scene(3, 500, 340, 95);
    expect(s, 3, 500, "p99 95ms within goal 300ms at 68% CPU: no change");
    free_scene(s);
}

/* --- without figures -------------------------------------------------------------------------- */
static void nothing_known_is_an_error(void **state)
{
    (void)state;
    struct scene *s = new_scene(2, 500, NAN, NAN);
    set_latency(s, LATENCY_MISSING, NAN);
    assert_true(ask(s) < 0);
    assert_string_equal(s->err.message, "no figures: no ready pod has a cpu figure");
    set_latency(s, LATENCY_NO_TRAFFIC, NAN);
    assert_true(ask(s) < 0);
    s->seen.pod_count = 0;
    assert_true(ask(s) < 0);
    assert_string_equal(s->err.message, "no figures: there are no pods");
    s->seen.replicas_wanted = 0;
    assert_true(ask(s) < 0);
    free_scene(s);
}

static void latency_alone_can_grow_but_not_shrink(void **state)
{
    (void)state;
    struct scene *s = new_scene(2, 500, NAN, 600);
    expect(s, 2, 1000, "p99 600ms over goal 300ms: cpu 500m → 1");
    set_latency(s, LATENCY_KNOWN, 10);
    expect(s, 2, 500,
           "p99 10ms within goal 300ms: no change, not shrinking while a metric has no figures");
    free_scene(s);
}

/* OpenWhisk's invokers: calls wait for a pod, which costs them no CPU. Without a request there is
 * nothing to hold usage against; with a limit that is not reached CPU is not to blame. */
static void replicas_alone_follow_waits_where_cpu_is_requested_and_not_limited(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 250, 5, 2400);
    s->seen.containers[0].controlled[CPU] = false;
    assert_int_equal(ask(s), 0);
    assert_int_equal(s->out.replicas, 2);
    s->seen.throttled = 0;
    assert_int_equal(ask(s), 0);
    assert_int_equal(s->out.replicas, 1);
    s->seen.throttled = NAN;
    set_pods(s, 3);
    set_latency(s, LATENCY_KNOWN, 10);
    assert_int_equal(ask(s), 0);
    assert_int_equal(s->out.replicas, 1);
    set_container(s, 0, "app", NAN, 5);
    s->seen.containers[0].controlled[CPU] = false;
    assert_int_equal(ask(s), 0);
    assert_int_equal(s->out.replicas, 3);
    free_scene(s);
}

static void one_metric_without_figures_forbids_shrinking(void **state)
{
    (void)state;
    struct scene *s = new_scene(4, 500, 110, 80);
    s->seen.metrics[1] = (struct recommend_metric){MEM, -1, 0.5, NAN};
    s->seen.metric_count = 2;
    expect(s, 4, 500,
           "p99 80ms within goal 300ms at 22% CPU: no change, not shrinking while a metric has no "
           "figures");
    free_scene(s);
}

/* --- metrics that CPU cannot meet --------------------------------------------------------------
 */
static void memory_pressure_goes_to_replicas(void **state)
{
    (void)state;
    struct scene *s = new_scene(2, 500, 345, 80);
    for (int p = 0; p < 2; p++) {
        s->pods[p].containers[0].usage[MEM] = 90 * MI;
        s->pods[p].containers[0].request[MEM] = 100 * MI;
    }
    s->seen.metrics[1] = (struct recommend_metric){MEM, -1, 0.6, NAN};
    s->seen.metric_count = 2;
    expect(s, 3, 500,
           "p99 80ms within goal 300ms at 69% CPU, 90% memory over target 60%: replicas 2 → 3");
    free_scene(s);
}

static void average_values_go_to_replicas(void **state)
{
    (void)state;
    struct scene *s = new_scene(2, 500, 400, NAN);
    s->seen.latency_state = LATENCY_NO_GOAL;
    s->seen.metrics[0] = (struct recommend_metric){CPU, -1, NAN, 200};
    expect(s, 4, 500, "CPU 400m per pod over target 200m: replicas 2 → 4");
    free_scene(s);
}

static void other_containers_keep_their_share(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 100, 110, 80);
    set_container(s, 1, "proxy", 100, 100);
    s->seen.containers[1].controlled[CPU] = false;
    /* 210 of 200 is 1.5 times the target: 300m, of which the proxy keeps 100m. */
    expect(s, 1, 200, "p99 80ms within goal 300ms at 105% CPU: cpu 100m → 200m");
    assert_true(isnan(s->out.containers[1].target[CPU]));
    free_scene(s);
}

/* --- the two statements -------------------------------------------------------------------------
 */
static uint32_t dice(uint32_t *x, uint32_t sides)
{
    *x = *x * 1664525u + 1013904223u;
    return (*x >> 8) % sides;
}

static void random_pods(struct scene *s, uint32_t *x)
{
    double level = 20 + dice(x, 400);
    set_pods(s, 1 + (int)dice(x, MAX_PODS));
    for (size_t p = 0; p < s->seen.pod_count; p++) {
        struct recommend_usage *u = &s->pods[p].containers[0];
        *u = (struct recommend_usage){.usage = {level + dice(x, 100), (50 + dice(x, 200)) * MI},
                                      .request = {200, 100 * MI}};
        s->pods[p].starting = dice(x, 8) == 0;
        s->pods[p].pending = dice(x, 12) == 0;
        if (dice(x, 8) == 0)
            u->usage[CPU] = NAN;
    }
    if (dice(x, 4) == 0)
        s->seen.replicas_wanted = 1 + (int)dice(x, 10);
}

/* HPA takes the largest count of its metrics, and does not shrink while one of them fails. */
static int hpa_answer(const struct observation *seen)
{
    int most = 0, failed = 0;
    for (size_t i = 0; i < seen->metric_count; i++) {
        int replicas;
        double ratio;
        struct error ignored = {0};
        if (recommend_hpa_replicas(seen, &seen->metrics[i], &replicas, &ratio, &ignored) < 0)
            failed++;
        else if (replicas > most)
            most = replicas;
    }
    if (failed == (int)seen->metric_count)
        return -1;
    if (failed > 0 && most < seen->replicas_wanted)
        most = seen->replicas_wanted;
    int least = seen->min_replicas, limit = seen->max_replicas;
    return most < least ? least : most > limit ? limit : most;
}

static void without_the_vertical_it_is_hpa(void **state)
{
    (void)state;
    uint32_t x = 3;
    int answered = 0;
    for (int round = 0; round < 5000; round++) {
        struct scene *s = new_scene(1, 200, 100, NAN);
        s->seen.latency_state = LATENCY_NO_GOAL;
        s->seen.containers[0].controlled[CPU] = false;
        random_pods(s, &x);
        s->seen.metrics[1] = (struct recommend_metric){MEM, -1, NAN, 120 * MI};
        s->seen.metric_count = 1 + dice(&x, 2);
        int expected = hpa_answer(&s->seen);
        int rc = ask(s);
        assert_int_equal(rc < 0, expected < 0);
        if (rc == 0) {
            assert_int_equal(s->out.replicas, expected);
            assert_true(isnan(s->out.containers[0].target[CPU]));
            answered++;
        }
        free_scene(s);
    }
    assert_true(answered > 4000);
}

/* 500 samples as in the histogram's test, then one of 100m; the numbers are VPA's. */
static void with_fixed_replicas_it_is_vpa_and_latency(void **state)
{
    (void)state;
    struct scene *s = new_scene(3, 4000, 100, 1);
    s->seen.min_replicas = s->seen.max_replicas = 3;
    s->seen.metric_count = 0;
    s->seen.containers[0].max[CPU] = 1e6;
    set_pods(s, 1);
    s->seen.replicas_wanted = 3;
    s->seen.now_s = 1200000 + 500 * 15;
    uint32_t x = 12345;
    for (int i = 0; i < 500; i++) {
        x = x * 1664525u + 1013904223u;
        double u = (double)(x >> 8) / (1 << 24);
        recommend_threshold.remember(s->self, "app", CPU, 1200000 + i * 15, 50 + 2000 * u * u);
    }
    expect(s, 3, 2170, "p99 1ms within goal 300ms at 2% CPU: cpu 4 → 2170m"); /* 2162.29 */
    assert_near(s->out.containers[0].lower[CPU], 574.4921773738515);
    assert_near(s->out.containers[0].upper[CPU], 30141.92442305628);
    assert_near(s->out.containers[0].uncapped[CPU], 2170);
    set_latency(s, LATENCY_KNOWN, 450);
    expect(s, 3, 6000, "p99 450ms over goal 300ms at 2% CPU: cpu 4 → 6");
    set_latency(s, LATENCY_KNOWN, 135); /* 135 of 180: three quarters must stay */
    expect(s, 3, 3000, "p99 135ms within goal 300ms at 2% CPU: cpu 4 → 3");
    free_scene(s);
}

/* --- several containers, memory -----------------------------------------------------------------
 */
static void containers_share_by_recent_usage(void **state)
{
    (void)state;
    struct scene *s = new_scene(1, 600, 500, 95);
    set_container(s, 1, "side", 200, 100);
    s->seen.metrics[0].utilization = 0.5; /* 600 of 800: one and a half times the target */
    double share = P90_OF_500 / (P90_OF_500 + P90_OF_100);
    expect(
        s, 1, ceil(1200 * share / 10) * 10,
        "p99 95ms within goal 300ms at 75% CPU: cpu of app 600m → 990m, cpu of side 200m → 220m");
    assert_near(s->out.containers[1].target[CPU], ceil(1200 * (1 - share) / 10) * 10);
    s->seen.containers[1].max[CPU] = 150; /* what one may not have, the other gets */
    expect(
        s, 1, 1050,
        "p99 95ms within goal 300ms at 75% CPU: cpu of app 600m → 1050m, cpu of side 200m → 150m");
    assert_near(s->out.containers[1].uncapped[CPU], 220);
    free_scene(s);
}

static struct scene *memory_scene(double request, double usage)
{
    struct scene *s = new_scene(1, 500, 340, 299);
    s->seen.containers[0].controlled[MEM] = true;
    s->seen.containers[0].request[MEM] = request;
    s->pods[0].containers[0].request[MEM] = request;
    s->pods[0].containers[0].usage[MEM] = usage;
    return s;
}

static void assert_memory(struct scene *s, double mi)
{
    assert_int_equal(ask(s), 0);
    assert_near(s->out.containers[0].target[MEM] / MI, mi);
    assert_near(s->out.containers[0].target[CPU], 500);
}

static void memory_follows_vpa_alone(void **state)
{
    (void)state;
    double target = ceil(P90_OF_1E9 * 1.15 / MI);
    struct scene *s = memory_scene(960 * MI, 1e9);
    assert_memory(s, target);
    assert_string_equal(s->out.reason,
                        "p99 299ms within goal 300ms at 68% CPU: memory 960Mi → 1115Mi");
    free_scene(s);
    s = memory_scene(4096 * MI, 1e9); /* too little history to shrink */
    assert_memory(s, 4096);
    for (int minute = 0; minute < 1440; minute++)
        recommend_threshold.remember(s->self, "app", MEM, -86400 + minute * 60, 9e8);
    assert_memory(s, target);
    free_scene(s);
    s = memory_scene(1100 * MI, 1e9); /* within a tenth */
    assert_memory(s, 1100);
    free_scene(s);
}

static void memory_stays_above_what_is_used(void **state)
{
    (void)state;
    struct scene *s = memory_scene(100 * MI, 3e12); /* beyond the histogram */
    assert_memory(s, ceil(3e12 * 1.05 / MI));
    free_scene(s);
}

/* --- bounds -------------------------------------------------------------------------------------
 */
static void counts_above_the_maximum_keep_their_capacity(void **state)
{
    (void)state;
    struct scene *s = new_scene(10, 400, 280, 95); /* at the target, but five too many */
    s->seen.max_replicas = 5;
    expect(s, 5, 800, "p99 95ms within goal 300ms at 70% CPU: replicas 10 → 5, cpu 400m → 800m");
    free_scene(s);
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 0x80)
            continue;
        if (c[0] != 0xe2 || c[1] != 0x86 || c[2] != 0x92) /* the arrow is all there is */
            return false;
        c += 2;
    }
    return true;
}

/* Any figures: the proposal is made of numbers within the bounds, and no dimension shrinks while
 * the other grows unless capacity stays. */
static void random_scenes_stay_within_bounds(void **state)
{
    (void)state;
    static const enum recommend_latency states[] = {LATENCY_NO_GOAL,  LATENCY_KNOWN,
                                                    LATENCY_KNOWN,    LATENCY_NO_TRAFFIC,
                                                    LATENCY_OVERFLOW, LATENCY_MISSING};
    uint32_t x = 9;
    struct scene *s = new_scene(1, 200, 100, NAN);
    for (int round = 0; round < 20000; round++) {
        s->seen.now_s += 5;
        set_latency(s, states[dice(&x, 6)], dice(&x, 900));
        random_pods(s, &x);
        struct recommend_container *c = &s->seen.containers[0];
        c->request[CPU] = 200;
        c->min[CPU] = 50 + dice(&x, 200);
        c->max[CPU] = c->min[CPU] + dice(&x, 500);
        c->controlled[MEM] = dice(&x, 2);
        c->request[MEM] = 100 * MI;
        s->seen.throttled = dice(&x, 3) ? dice(&x, 100) / 100.0 : NAN;
        s->seen.since_increase_s = dice(&x, 120);
        s->seen.min_replicas = 1 + (int)dice(&x, 4);
        s->seen.max_replicas = s->seen.min_replicas + (int)dice(&x, 8);
        if (ask(s) < 0)
            continue;
        double cpu = s->out.containers[0].target[CPU];
        assert_true(cpu >= c->min[CPU] && cpu <= c->max[CPU]);
        assert_true(s->out.containers[0].lower[CPU] <= cpu);
        assert_true(s->out.containers[0].upper[CPU] >= cpu);
        assert_in_range(s->out.replicas, s->seen.min_replicas, s->seen.max_replicas);
        assert_true(isnan(s->out.containers[0].target[MEM]) == !c->controlled[MEM]);
        assert_true(strlen(s->out.reason) > 0 && is_utf8(s->out.reason));
        int n = s->seen.replicas_wanted;
        bool in_bounds = n <= s->seen.max_replicas && 200 >= c->min[CPU] && 200 <= c->max[CPU];
        if (in_bounds && ((s->out.replicas > n && cpu < 200) || (s->out.replicas < n && cpu > 200)))
            fail_msg("%s", s->out.reason);
    }
    free_scene(s);
}

static void long_names_do_not_break_the_reason(void **state)
{
    (void)state;
    static char names[8][64];
    struct scene *s = new_scene(1, 100, 200, 400);
    for (size_t i = 0; i < 8; i++) {
        memset(names[i], 'a' + (int)i, 63);
        set_container(s, i, names[i], 100, 200);
    }
    assert_int_equal(ask(s), 0);
    assert_true(strlen(s->out.reason) < sizeof(s->out.reason) && is_utf8(s->out.reason));
    assert_non_null(strstr(s->out.reason, " and 6 more"));
    free_scene(s);
}

/* --- over time ----------------------------------------------------------------------------------
 */
/* Where the decisions of many rounds lead, with every proposal carried out at once. */
struct plant {
    double work_milli; /* CPU that all requests together need */
    double alone_ms;   /* a lone request at one core */
};

static void run(struct scene *s, const struct plant *plant, int rounds, int *changes)
{
    for (int i = 0; i < rounds; i++) {
        struct recommend_container *c = &s->seen.containers[0];
        double cpu = c->request[CPU];
        double usage = fmin(plant->work_milli / s->seen.replicas_wanted, cpu);
        set_container(s, 0, "app", cpu, usage);
        c->max[CPU] = 1000;
        s->seen.throttled = cpu < 1000 ? 0.5 : 0;
        set_latency(s, LATENCY_KNOWN, plant->alone_ms * 1000 / cpu / fmax(1 - usage / cpu, 0.01));
        assert_int_equal(ask(s), 0);
        double next = s->out.containers[0].target[CPU];
        bool small = fabs(next - cpu) < 0.1 * cpu; /* the guard's threshold */
        s->seen.since_increase_s += 15;
        if (s->out.replicas > s->seen.replicas_wanted || (next > cpu && !small))
            s->seen.since_increase_s = 0;
        *changes += s->out.replicas != s->seen.replicas_wanted || !small;
        set_pods(s, s->out.replicas);
        c->request[CPU] = small ? cpu : next;
        s->seen.now_s += 15;
    }
}

static void steady_load_comes_to_rest_within_the_goal(void **state)
{
    (void)state;
    static const struct plant plants[] = {
        {20, 50}, {100, 50}, {300, 20}, {900, 20}, {2500, 30}, {5000, 10},
    };
    static const double begin[][2] = {{1, 10}, {1, 1000}, {10, 100}, {10, 1000}};
    for (size_t p = 0; p < ARRAY_LEN(plants); p++) {
        for (size_t b = 0; b < ARRAY_LEN(begin); b++) {
            struct scene *s = new_scene((int)begin[b][0], begin[b][1], 0, NAN);
            int early = 0, late = 0;
            run(s, &plants[p], 200, &early);
            run(s, &plants[p], 200, &late);
            if (late > 0 || s->seen.latency_ms > 300)
                fail_msg("plant %zu from %zu: %d late changes, %s", p, b, late, s->out.reason);
            free_scene(s);
        }
    }
}

static void recommenders_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(recommend_find("threshold"), &recommend_threshold);
    assert_null(recommend_find("thresholds"));
    assert_null(recommend_find(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_takes_cpu_first),
        cmocka_unit_test(what_does_not_fit_goes_to_replicas),
        cmocka_unit_test(latency_counts_for_at_least_a_fifth_and_at_most_double),
        cmocka_unit_test(latency_waits_until_the_last_increase_shows),
        cmocka_unit_test(throttling_near_the_goal_counts),
        cmocka_unit_test(slow_dependencies_get_no_cpu),
        cmocka_unit_test(the_top_is_said),
        cmocka_unit_test(shrinking_takes_replicas_first),
        cmocka_unit_test(cpu_shrinks_only_at_the_fewest_replicas),
        cmocka_unit_test(a_remembered_peak_holds_the_size),
        cmocka_unit_test(latency_limits_a_shrink),
        cmocka_unit_test(without_requests_latency_does_not_object),
        cmocka_unit_test(unknown_latency_allows_growth_only),
        cmocka_unit_test(within_the_tolerance_nothing_changes),
        cmocka_unit_test(nothing_known_is_an_error),
        cmocka_unit_test(latency_alone_can_grow_but_not_shrink),
        cmocka_unit_test(replicas_alone_follow_waits_where_cpu_is_requested_and_not_limited),
        cmocka_unit_test(one_metric_without_figures_forbids_shrinking),
        cmocka_unit_test(memory_pressure_goes_to_replicas),
        cmocka_unit_test(average_values_go_to_replicas),
        cmocka_unit_test(other_containers_keep_their_share),
        cmocka_unit_test(without_the_vertical_it_is_hpa),
        cmocka_unit_test(with_fixed_replicas_it_is_vpa_and_latency),
        cmocka_unit_test(containers_share_by_recent_usage),
        cmocka_unit_test(memory_follows_vpa_alone),
        cmocka_unit_test(memory_stays_above_what_is_used),
        cmocka_unit_test(counts_above_the_maximum_keep_their_capacity),
        cmocka_unit_test(random_scenes_stay_within_bounds),
        cmocka_unit_test(long_names_do_not_break_the_reason),
        cmocka_unit_test(steady_load_comes_to_rest_within_the_goal),
        cmocka_unit_test(recommenders_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
