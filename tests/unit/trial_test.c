/* The closed loop with small recommenders made for it, whose cost and effect can be worked out by
 * hand, and the oracles against settings that are fixed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "trial/trial.h"

#define CPU RECOMMEND_CPU

static void assert_near(double is, double should, double within)
{
    if (!(fabs(is - should) <= within))
        fail_msg("%.10g is not %.10g ± %g", is, should, within);
}

/* --- recommenders ------------------------------------------------------------------------------
 */
static void *create(double memory_s, const double *params)
{
    (void)memory_s;
    (void)params;
    return xcalloc(1, sizeof(int));
}

static void propose(struct recommendation *out, int replicas, double cpu_milli)
{
    *out = (struct recommendation){.replicas = replicas, .container_count = 1};
    out->containers[0].target[CPU] = cpu_milli;
    out->containers[0].target[RECOMMEND_MEMORY] = NAN;
}

static int *calls_of(void *self)
{
    return self;
}

static int keep(void *self, const struct observation *seen, struct recommendation *out,
                struct error *err)
{
    (void)self;
    (void)err;
    propose(out, seen->replicas_wanted, seen->containers[0].request[CPU]);
    return 0;
}

static int shrug(void *self, const struct observation *seen, struct recommendation *out,
                 struct error *err)
{
    (void)self;
    (void)seen;
    (void)out;
    return error_set(err, ERROR_UNAVAILABLE, "it never knows");
}

/* Twice the replicas at the first decision, half the CPU at the second. */
static int step(void *self, const struct observation *seen, struct recommendation *out,
                struct error *err)
{
    (void)err;
    int call = ++*calls_of(self);
    double cpu = seen->containers[0].request[CPU];
    propose(out, call == 1 ? 4 : seen->replicas_wanted, call == 2 ? cpu / 2 : cpu);
    return 0;
}

static int rave(void *self, const struct observation *seen, struct recommendation *out,
                struct error *err)
{
    static const struct {
        int replicas;
        double cpu_milli;
    } wishes[] = {{1000000, 1e8},  {-5, -1},       {0, 0},        {7, NAN},
                  {3, INFINITY},   {INT32_MAX, 1}, {1, 99999},    {INT32_MIN, 1e300},
                  {15, 1999.9999}, {2, -INFINITY}, {1000, 100.01}};
    (void)err;
    (void)seen;
    size_t call = (size_t)(*calls_of(self))++ % ARRAY_LEN(wishes);
    propose(out, wishes[call].replicas, wishes[call].cpu_milli);
    return 0;
}

#define RECOMMENDER(NAME)                                                                          \
    {                                                                                              \
        .name = #NAME, .create = create, .destroy = free, .recommend = NAME                        \
    }
static const struct recommender keeps = RECOMMENDER(keep), fails = RECOMMENDER(shrug),
                                steps = RECOMMENDER(step), raves = RECOMMENDER(rave);

/* What it was shown, for tests of the observation. */
struct shown {
    int calls;
    struct observation last;
    struct recommend_pod pods[32];
};
static struct shown shown;

static int watch(void *self, const struct observation *seen, struct recommendation *out,
                 struct error *err)
{
    shown.calls++;
    shown.last = *seen;
    for (size_t i = 0; i < seen->pod_count && i < ARRAY_LEN(shown.pods); i++)
        shown.pods[i] = seen->pods[i];
    return keep(self, seen, out, err);
}

/* --- scenes ------------------------------------------------------------------------------------
 */
struct scene {
    double count;
    struct trace_quantile quantiles[2];
    struct trace_function workload;
    struct api_spec spec;
    struct trial_function function;
    struct trial_choice choice;
    struct trial_config config;
    struct trial_result result;
};

/* Poisson requests, each of which needs demand_ms, without delays that are not asked for. */
static struct scene *new_scene(const struct recommender *recommender, double requests_per_s,
                               double demand_ms)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    s->count = requests_per_s * 3600;
    s->quantiles[0] = (struct trace_quantile){0, demand_ms};
    s->quantiles[1] = (struct trace_quantile){1, demand_ms};
    s->workload = (struct trace_function){.name = (char *)"f",
                                          .slot_s = 3600,
                                          .counts = &s->count,
                                          .slot_count = 1,
                                          .poisson = true,
                                          .quantiles = s->quantiles,
                                          .quantile_count = 2,
                                          .memory_bytes = NAN};
    trial_default_spec(&s->spec);
    s->function = (struct trial_function){
        .workload = &s->workload, .spec = &s->spec, .behavior_stated = true};
    s->choice = (struct trial_choice){.recommender = recommender};
    s->config = (struct trial_config){.functions = &s->function,
                                      .function_count = 1,
                                      .defaults = trial_default_function,
                                      .choice = &s->choice,
                                      .interval_s = 15,
                                      .span_s = 3600,
                                      .seed = 1};
    return s;
}

static struct trial_result run(struct scene *s)
{
    struct error err = {0};
    assert_int_equal(trial_run(&s->config, &s->result, &err), 0);
    return s->result;
}

/* --- another hand --- */
struct hand {
    int calls;
    bool fails;
};

static int lend(void *arg, size_t function, const struct observation *seen,
                struct recommendation *out, struct error *err)
{
    struct hand *h = arg;
    assert_int_equal(function, 0);
    h->calls++;
    if (h->fails)
        return error_set(err, ERROR_UNAVAILABLE, "it never knows");
    propose(out, 1000, seen->containers[0].request[CPU]);
    return 0;
}

static void test_a_hand_decides_in_place_of_the_choice(void **state)
{
    (void)state;
    struct scene *s = new_scene(&steps, 1, 50);
    struct hand h = {0};
    const struct trial_hand hand = {lend, &h};
    s->config.instead = &hand;
    s->function.replicas = 2;
    s->spec.max_replicas = 3;
    struct trial_result r = run(s);
    assert_int_equal(h.calls, 3600 / 15 - 1);
    assert_int_equal(r.actions, 1); /* and the guard stands behind it */
    assert_near(r.cpu_core_seconds, 2 * 15 + 3 * (3600 - 15), 1e-6);
    h.fails = true;
    assert_int_equal(run(s).actions, 0);
    free(s);
}

/* --- costs -------------------------------------------------------------------------------------
 */
static void test_fixed_size_costs_what_it_is(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 10, 50);
    s->function.replicas = 3;
    s->function.request_milli = s->function.limit_milli = 700;
    struct trial_result r = run(s);
    assert_near(r.cpu_core_seconds, 3 * 0.7 * 3600, 1e-6);
    assert_near(r.replicas_mean, 3, 1e-9);
    assert_int_equal(r.actions, 0);
    /* λ·E[S] over what is reserved; the count of requests is Poisson: 5 σ. */
    double sigma = sqrt(36000) * 0.05 / r.cpu_core_seconds;
    assert_near(r.cpu_utilization, 10 * 0.05 / 2.1, 5 * sigma);
    assert_near(r.cpu_used_seconds, r.cpu_utilization * r.cpu_core_seconds, 1e-6);
    assert_near((double)r.requests, 36000, 5 * sqrt(36000));
    free(s);
}

static void test_what_is_not_said_is_one_core_once(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 1, 50);
    struct trial_result r = run(s);
    assert_near(r.cpu_core_seconds, 3600, 1e-6);
    assert_near(r.goal_ms, 100, 1e-9); /* twice p99 alone */
    s->spec.latency_target_us = 250000;
    assert_near(run(s).goal_ms, 250, 1e-9);
    s->function.goal_ms = 70;
    assert_near(run(s).goal_ms, 70, 1e-9);
    s->spec.containers[0].max[API_CPU] = 400;
    assert_near(run(s).cpu_core_seconds, 0.4 * 3600, 1e-6);
    free(s);
}

/* M/G/1 with processor sharing: E[S] ÷ (1 − ρ), whatever the distribution. */
static void test_mean_latency_is_that_of_theory(void **state)
{
    (void)state;
    const struct cluster_node core = {.cores = 1, .memory_bytes = INFINITY};
    struct scene *s = new_scene(&keeps, 10, 50);
    s->function.replicas = 1;
    s->function.request_milli = 1000;
    s->config.nodes = &core;
    s->config.node_count = 1;
    s->config.span_s = 36000;
    assert_near(run(s).latency_mean_ms, 50 / (1 - 0.5), 5);
    s->count = 0;
    assert_true(isnan(run(s).latency_mean_ms));
    free(s);
}

/* A request alone takes its demand: with a goal below it all are late, above it hardly any. */
static void test_violations_are_counted(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 0.5, 50);
    s->function.goal_ms = 49;
    assert_near(run(s).violation_ratio, 1, 1e-3); /* all but who is in flight at the end */
    s->function.goal_ms = 60;
    struct trial_result r = run(s);
    assert_true(r.violation_ratio < 0.05);
    assert_true(r.latency_ms > 49 && r.latency_ms < 110);
    free(s);
}

/* An overload of 2: half of the work is left at the end, and all that waits longer than the goal
 * counts. Of n requests the last to be done on time came within the first moments. */
static void test_overdue_requests_count_at_the_end(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 20, 100);
    s->function.goal_ms = 1000;
    s->config.span_s = 600;
    s->function.replicas = 1;
    assert_true(run(s).violation_ratio > 0.97);
    s->function.replicas = 0; /* not said: 2 cores of work make 4 half busy replicas of a core */
    assert_near(run(s).replicas_mean, 4, 1e-9);
    free(s);
}

/* Two replicas for 15 s, four from then on (those that start are paid for), half of the CPU from
 * 30 s on (half a second after it was asked for). */
static void test_delays_and_starts_are_charged(void **state)
{
    (void)state;
    struct scene *s = new_scene(&steps, 1, 10);
    s->function.replicas = 2;
    s->function.request_milli = s->function.limit_milli = 1000;
    s->spec.scale_down.stabilization_s = 0;
    s->config.span_s = 100;
    struct trial_result r = run(s);
    assert_int_equal(r.actions, 2);
    assert_near(r.replicas_mean, (2 * 15 + 4 * 85) / 100.0, 1e-9);
    assert_near(r.cpu_core_seconds, 2 * 15 + 4 * 15.5 + 4 * 0.5 * 69.5, 1e-6);
    free(s);
}

/* Before the new replica is ready its requests are not served by it. */
static void test_late_starts_hurt(void **state)
{
    (void)state;
    double ratio[2];
    for (int slow = 0; slow < 2; slow++) {
        struct scene *s = new_scene(&steps, 30, 100); /* 3 cores of work on 2 replicas */
        s->function.replicas = 2;
        s->function.request_milli = s->function.limit_milli = 2000;
        s->function.goal_ms = 500;
        s->spec.controls[API_CPU] = false;
        s->config.span_s = 300;
        s->config.defaults.start_s = slow ? 120 : 1;
        ratio[slow] = run(s).violation_ratio;
        free(s);
    }
    assert_true(ratio[1] > ratio[0] + 0.02);
}

/* --- fairness ----------------------------------------------------------------------------------
 */
static void test_same_requests_for_all(void **state)
{
    (void)state;
    static const struct recommender *const all[] = {&keeps, &fails, &steps, &raves};
    uint64_t requests = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct scene *s = new_scene(all[i], 10, 20);
        struct trial_result r = run(s);
        assert_true(i == 0 || r.requests == requests);
        requests = r.requests;
        free(s);
    }
}

static void test_same_seed_same_result(void **state)
{
    (void)state;
    struct trial_choice threshold, oracle;
    struct error err = {0};
    assert_int_equal(trial_choose("threshold", &threshold, &err), 0);
    assert_int_equal(trial_choose("oracle", &oracle, &err), 0);
    const struct trial_choice *const both[] = {&threshold, &oracle};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        struct scene *s = new_scene(NULL, 10, 40);
        s->config.choice = both[i];
        s->config.span_s = 600;
        struct trial_result a = run(s), b = run(s);
        assert_memory_equal(&a, &b, sizeof(a));
        s->config.seed = 2;
        assert_int_not_equal(run(s).requests, a.requests);
        free(s);
    }
    trial_choice_clear(&threshold);
    trial_choice_clear(&oracle);
}

static void test_who_knows_nothing_changes_nothing(void **state)
{
    (void)state;
    struct scene *s = new_scene(&fails, 10, 20);
    s->function.replicas = 2;
    struct trial_result r = run(s);
    assert_int_equal(r.actions, 0);
    assert_near(r.cpu_core_seconds, 2 * 3600, 1e-6);
    free(s);
}

/* --- the guard ---------------------------------------------------------------------------------
 */
static void check_bounds(void *arg, size_t function, const struct trial_sample *sample)
{
    (void)function;
    int *samples = arg;
    (*samples)++;
    assert_true(sample->request_milli >= 100 - 1e-6 && sample->request_milli <= 2000 + 1e-6);
    assert_true(sample->replicas >= 1 - 1e-9 && sample->replicas <= 20 + 1e-9);
}

static void test_bounds_hold_whatever_is_said(void **state)
{
    (void)state;
    for (int damped = 0; damped < 2; damped++) {
        int samples = 0;
        struct recommender mad = raves;
        mad.damps_itself = damped;
        struct scene *s = new_scene(&mad, 5, 20);
        s->function.behavior_stated = !damped;
        s->config.on_sample = check_bounds;
        s->config.arg = &samples;
        run(s);
        assert_int_equal(samples, 240);
        free(s);
    }
}

static int want_one(void *self, const struct observation *seen, struct recommendation *out,
                    struct error *err)
{
    (void)self;
    (void)err;
    propose(out, 1, seen->containers[0].request[CPU]);
    return 0;
}

/* HPA's window of 300 s holds the replicas that were there at the first decision, unless the
 * recommender has windows of its own; a stated behavior always counts. */
static void test_behavior_is_laid_on_top(void **state)
{
    (void)state;
    struct recommender one = RECOMMENDER(want_one);
    for (int own = 0; own < 2; own++) {
        for (int stated = 0; stated < 2; stated++) {
            one.damps_itself = own;
            struct scene *s = new_scene(&one, 1, 20);
            s->function.replicas = 5;
            s->function.behavior_stated = stated;
            s->config.span_s = 600;
            double held_s = own && !stated ? 15 : 315;
            assert_near(run(s).replicas_mean, (5 * held_s + 600 - held_s) / 600, 0.01);
            free(s);
        }
    }
}

static int want_double(void *self, const struct observation *seen, struct recommendation *out,
                       struct error *err)
{
    (void)self;
    (void)err;
    propose(out, 1, 2 * seen->containers[0].request[CPU]);
    return 0;
}

static double mean_latency_at(double limit_milli)
{
    struct recommender twice = RECOMMENDER(want_double);
    struct scene *s = new_scene(&twice, 0.2, 300);
    s->function.replicas = 1;
    s->function.request_milli = 125;
    s->function.limit_milli = limit_milli;
    s->config.span_s = 1800;
    double latency_ms = run(s).latency_ms;
    free(s);
    return latency_ms;
}

/* 125m → 250m → 500m → 1 → 2 cores: a limit of the same size goes along, so that soon a request is
 * as fast as without one; with no limit it is so from the beginning. */
static void test_limits_go_along(void **state)
{
    (void)state;
    double tied = mean_latency_at(125), free_ = mean_latency_at(0);
    assert_true(free_ < 700);              /* alone 300 ms, two at once 600 ms at most */
    assert_true(tied < 300 / 0.125 * 1.2); /* p99 is from the first half minute */
}

/* --- what is seen ------------------------------------------------------------------------------
 */
static void test_observation(void **state)
{
    (void)state;
    struct recommender watches = RECOMMENDER(watch);
    struct scene *s = new_scene(&watches, 20, 50);
    s->function.replicas = 2;
    s->function.request_milli = s->function.limit_milli = 1000;
    s->config.interval_s = s->config.span_s / 2;
    memset(&shown, 0, sizeof(shown));
    run(s);
    const struct observation *seen = &shown.last;
    assert_int_equal(shown.calls, 1);
    assert_near(seen->now_s, 1800, 1e-9);
    assert_int_equal(seen->latency_state, LATENCY_KNOWN);
    assert_near(seen->goal_ms, 100, 1e-9);
    assert_near(seen->percentile, 99, 1e-9);
    assert_near(seen->latency_window_s, 1800, 1e-9);
    assert_near(seen->requests_per_s, 20, 5 * sqrt(20 / 1800.0));
    /* Little: at least λ·S in flight. */
    assert_true(seen->concurrency > 20 * 0.05 * 0.95 && seen->concurrency < 5);
    assert_true(isinf(seen->since_increase_s));
    assert_int_equal(seen->replicas_wanted, 2);
    assert_int_equal(seen->min_replicas, 1);
    assert_int_equal(seen->max_replicas, 20);
    assert_int_equal(seen->metric_count, 1);
    assert_near(seen->metrics[0].utilization, 0.7, 1e-9);
    assert_int_equal(seen->container_count, 1);
    assert_near(seen->containers[0].min[CPU], 100, 1e-9);
    assert_near(seen->containers[0].max[CPU], 2000, 1e-9);
    assert_true(seen->containers[0].controlled[CPU]);
    assert_false(seen->containers[0].controlled[RECOMMEND_MEMORY]);
    assert_int_equal(seen->pod_count, 2);
    double usage = 0;
    for (size_t i = 0; i < 2; i++) {
        assert_true(shown.pods[i].ready && !shown.pods[i].pending && !shown.pods[i].starting);
        assert_near(shown.pods[i].containers[0].request[CPU], 1000, 1e-9);
        usage += shown.pods[i].containers[0].usage[CPU];
    }
    assert_near(usage, 1000, 5 * 50 * sqrt(20 / 1800.0));
    assert_true(seen->throttled >= 0 && seen->throttled <= 1);
    free(s);
}

static void test_no_traffic_is_not_lateness(void **state)
{
    (void)state;
    struct recommender watches = RECOMMENDER(watch);
    struct scene *s = new_scene(&watches, 0, 50);
    s->function.goal_ms = 100;
    s->config.span_s = 31;
    memset(&shown, 0, sizeof(shown));
    struct trial_result r = run(s);
    assert_int_equal(shown.calls, 2);
    assert_int_equal(shown.last.latency_state, LATENCY_NO_TRAFFIC);
    assert_true(isnan(shown.last.latency_ms));
    assert_int_equal(r.requests, 0);
    assert_near(r.violation_ratio, 0, 0);
    assert_true(isnan(r.latency_ms));
    free(s);
}

static void test_own_interval(void **state)
{
    (void)state;
    struct recommender watches = RECOMMENDER(watch);
    watches.interval_s = 2;
    int samples = 0;
    struct scene *s = new_scene(&watches, 5, 20);
    s->config.span_s = 60;
    s->config.on_sample = check_bounds;
    s->config.arg = &samples;
    memset(&shown, 0, sizeof(shown));
    run(s);
    assert_int_equal(shown.calls, 29); /* at 2, 4 … 58 s */
    assert_near(shown.last.latency_window_s, 2, 1e-9);
    assert_int_equal(samples, 4); /* plots have the interval of all others */
    free(s);
}

/* --- several functions -------------------------------------------------------------------------
 */
/* One core for two functions that want one each and a half: what one has, the other has not. */
static void test_functions_share_nodes(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 9, 50);
    struct cluster_node node = {.cores = 1, .memory_bytes = INFINITY};
    struct trial_function both[2] = {s->function, s->function};
    struct trial_result alone = run(s), results[2];
    struct error err = {0};
    for (int i = 0; i < 2; i++) {
        both[i].replicas = 1;
        both[i].request_milli = 500;
    }
    s->config.functions = both;
    s->config.function_count = 2;
    s->config.nodes = &node;
    s->config.node_count = 1;
    assert_int_equal(trial_run(&s->config, results, &err), 0);
    for (int i = 0; i < 2; i++) {
        assert_near(results[i].cpu_core_seconds, 0.5 * 3600, 1e-6);
        assert_true(results[i].violation_ratio > alone.violation_ratio);
    }
    assert_true(results[0].cpu_used_seconds + results[1].cpu_used_seconds <= 3600 + 1e-6);
    free(s);
}

static int watch_and_double(void *self, const struct observation *seen, struct recommendation *out,
                            struct error *err)
{
    watch(self, seen, out, err);
    return want_double(self, seen, out, err);
}

/* 1200m do not fit on a node with one core. As in the controller: the resize waits, is taken back,
 * and for five minutes what pods have is the most that they can get; then it is tried again. */
static void test_a_node_s_no_is_believed(void **state)
{
    (void)state;
    static const struct {
        double span_s, most_milli;
    } moments[] = {{46, 2000}, {61, 600}, {331, 600}, {361, 2000}};
    struct cluster_node node = {.cores = 1, .memory_bytes = INFINITY};
    struct recommender doubles = RECOMMENDER(watch_and_double);
    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        struct scene *s = new_scene(&doubles, 1, 20);
        s->function.replicas = 1;
        s->function.request_milli = s->function.limit_milli = 600;
        s->config.nodes = &node;
        s->config.node_count = 1;
        s->config.span_s = moments[i].span_s;
        memset(&shown, 0, sizeof(shown));
        struct trial_result r = run(s);
        assert_near(shown.last.containers[0].request[CPU], 600, 1e-9);
        assert_near(shown.last.containers[0].max[CPU], moments[i].most_milli, 1e-9);
        assert_near(r.replicas_mean, 1, 1e-9);
        free(s);
    }
}

/* --- oracles -----------------------------------------------------------------------------------
 */
static struct trial_result run_choice(struct scene *s, const char *text)
{
    struct error err = {0};
    struct trial_choice choice;
    assert_int_equal(trial_choose(text, &choice, &err), 0);
    s->config.choice = &choice;
    s->function.behavior_stated = false;
    struct trial_result r = run(s);
    trial_choice_clear(&choice);
    s->config.choice = &s->choice;
    return r;
}

/* Step by step it is the same, and asking in between changes nothing. */
static void test_step_by_step(void **state)
{
    (void)state;
    struct error err = {0};
    struct trial_choice choice;
    struct trial_result stepped;
    struct scene *s = new_scene(&keeps, 12, 80);
    struct trial_result whole = run_choice(s, "feedforward");
    assert_int_equal(trial_choose("feedforward", &choice, &err), 0);
    s->config.choice = &choice;
    struct trial *t = trial_open(&s->config, &err);
    assert_non_null(t);
    double arrived = 0;
    while (trial_advance(t)) {
        arrived += (double)trial_interval(t, 0)->arrived;
        trial_ask(t, 0);
        trial_decide(t);
    }
    arrived += (double)trial_interval(t, 0)->arrived;
    assert_false(trial_advance(t));
    trial_results(t, &stepped);
    assert_memory_equal(&stepped, &whole, sizeof(whole));
    assert_near(arrived, (double)whole.requests, 0);
    assert_near(trial_goal_ms(t, 0), whole.goal_ms, 0);
    trial_close(t);
    trial_choice_clear(&choice);
    free(s);
}

/* No fixed replicas × CPU that keeps the goal is cheaper, on a steady load. */
static void test_oracle_beats_every_fixed_size(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 12, 80);
    s->workload.demand = TRACE_DEMAND_EXPONENTIAL;
    s->workload.mean_cpu_ms = 80;
    s->function.goal_ms = 800;
    struct trial_result oracle = run_choice(s, "oracle");
    struct trial_result knows_all = run_choice(s, "oracle-requests");
    assert_true(oracle.violation_ratio <= 0.012);
    assert_true(knows_all.violation_ratio <= 0.01);
    assert_true(knows_all.cpu_core_seconds < oracle.cpu_core_seconds);
    double cheapest = INFINITY;
    for (int replicas = 1; replicas <= 4; replicas++) {
        for (double milli = 250; milli <= 2000; milli *= 1.12) {
            s->function.replicas = replicas;
            s->function.request_milli = s->function.limit_milli = milli;
            struct trial_result fixed = run(s);
            if (fixed.violation_ratio <= 0.008)
                cheapest = fmin(cheapest, fixed.cpu_core_seconds);
        }
    }
    assert_true(isfinite(cheapest));
    assert_true(oracle.cpu_core_seconds < cheapest * 1.05);
    free(s);
}

/* Nothing, then 30 requests per second for five minutes, then nothing: the oracle has what is
 * needed when it is needed, although replicas take 10 s to start. */
static void test_oracle_looks_ahead_of_delays(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 0, 100);
    double counts[12] = {0, 0, 0, 0, 9000, 0, 0, 0, 0, 0, 0, 0};
    s->workload.counts = counts;
    s->workload.slot_count = ARRAY_LEN(counts);
    s->workload.slot_s = 300;
    s->function.goal_ms = 1000;
    s->config.defaults.start_s = 10;
    struct trial_result oracle = run_choice(s, "oracle");
    assert_true(oracle.requests > 8500);
    assert_true(oracle.violation_ratio <= 0.01);
    /* 3 cores of work for 300 s; the least of 100m otherwise, 1 core for the first interval. */
    assert_true(oracle.cpu_core_seconds < 2 * (3 * 330) + 0.1 * 3300 + 15);
    free(s);
}

/* Requests that need three times the CPU after half an hour: it knows that too. */
static void test_oracle_knows_of_a_change(void **state)
{
    (void)state;
    struct scene *s = new_scene(&keeps, 12, 80);
    s->function.goal_ms = 1500;
    struct trial_result before = run_choice(s, "oracle");
    s->workload.slower = 3;
    s->workload.slower_from_s = s->config.span_s / 2;
    struct trial_result after = run_choice(s, "oracle");
    assert_true(after.violation_ratio <= 0.012);
    double more = after.cpu_core_seconds / before.cpu_core_seconds;
    if (!(more > 1.5 && more < 2.8))
        fail_msg("%.2f times the CPU", more);
    free(s);
}

/* --- memory ------------------------------------------------------------------------------------
 */
#define MEM RECOMMEND_MEMORY
#define MI  1048576.0

static int grow_memory(void *self, const struct observation *seen, struct recommendation *out,
                       struct error *err)
{
    watch(self, seen, out, err);
    out->containers[0].target[MEM] = 300 * MI;
    return 0;
}

static int squeeze_memory(void *self, const struct observation *seen, struct recommendation *out,
                          struct error *err)
{
    watch(self, seen, out, err);
    out->containers[0].target[MEM] = 20 * MI;
    return 0;
}

/* An idle replica has so much in use; 0: nobody knows. */
static struct scene *new_memory_scene(const struct recommender *recommender, double requests_per_s,
                                      double demand_ms, double idle_mi)
{
    struct scene *s = new_scene(recommender, requests_per_s, demand_ms);
    s->spec.controls[API_MEMORY] = true;
    s->workload.memory_bytes = idle_mi > 0 ? idle_mi * MI : NAN;
    s->function.replicas = 1;
    memset(&shown, 0, sizeof(shown));
    return s;
}

static double mean_limit_mi(const struct scene *s, const struct trial_result *r)
{
    return r->memory_byte_seconds / MI / r->replicas_mean / s->config.span_s;
}

/* What an MPA leaves alone is as if it were not there, whatever a trace says of it. */
static void test_memory_is_modelled_where_it_is_controlled(void **state)
{
    (void)state;
    struct scene *s = new_memory_scene(&keeps, 1, 50, 0);
    s->spec.controls[API_MEMORY] = false;
    struct trial_result without = run(s), r;
    s->workload.memory_bytes = 50 * MI;
    r = run(s);
    assert_memory_equal(&r, &without, sizeof(r));
    assert_true(isnan(r.memory_byte_seconds) && isnan(r.memory_used_byte_seconds));
    s->spec.controls[API_MEMORY] = true;
    s->spec.containers[0].off = true;
    assert_true(isnan(run(s).memory_byte_seconds));
    s->spec.containers[0].off = false;
    r = run(s);
    assert_near(mean_limit_mi(s, &r), 100, 1e-6);
    /* Little's law, on M/G/1 with processor sharing at 5 %: a hundredth for each in flight */
    assert_near(r.memory_used_byte_seconds / 3600 / MI, 50 + 0.05 / 0.95 * 0.5, 0.004);
    assert_int_equal(r.memory_kills, 0);
    assert_near(r.cpu_core_seconds, without.cpu_core_seconds, 0);
    assert_int_equal(r.requests, without.requests);
    free(s);
}

static void test_memory_begins_within_the_bounds(void **state)
{
    (void)state;
    static const struct {
        double idle_mi;
        int64_t min_mi, max_mi;
        double limit_mi;
    } cases[] = {{0, 0, 0, 192},  {30, 0, 0, 60},   {1, 0, 0, 16},   {30, 0, 50, 50},
                 {30, 80, 0, 80}, {30, 70, 90, 70}, {30, 40, 90, 60}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene *s = new_memory_scene(&keeps, 0, 50, cases[i].idle_mi);
        int64_t min = cases[i].min_mi << 20, max = cases[i].max_mi << 20;
        s->spec.containers[0].min[API_MEMORY] = min ? min : API_ABSENT;
        s->spec.containers[0].max[API_MEMORY] = max ? max : API_ABSENT;
        s->config.span_s = 10; /* nothing is decided */
        struct trial_result r = run(s);
        assert_near(mean_limit_mi(s, &r), cases[i].limit_mi, 1e-6);
        free(s);
    }
}

/* A hundred and one for each request: 102 are enough for two of them. There is always a third, so
 * that the replica is killed as soon as it has started. */
static void test_beyond_the_limit_it_is_killed(void **state)
{
    (void)state;
    for (int concurrency = 2; concurrency <= 3; concurrency++) {
        struct scene *s = new_memory_scene(&keeps, 30, 100, 100);
        s->spec.containers[0].max[API_MEMORY] = 102 << 20;
        s->config.defaults.concurrency = concurrency;
        s->config.span_s = 600;
        struct trial_result r = run(s);
        if (concurrency == 2)
            assert_int_equal(r.memory_kills, 0);
        else
            assert_near((double)r.memory_kills, 600 / 2.0, 2);
        free(s);
    }
}

static void note_sample(void *arg, size_t function, const struct trial_sample *sample)
{
    (void)function;
    struct trial_sample *all = arg;
    all[(size_t)(sample->time_s / 15 + 0.5)] = *sample;
}

/* The larger of old and new counts while it is on its way. */
static void test_memory_is_resized(void **state)
{
    (void)state;
    struct recommender grows = RECOMMENDER(grow_memory);
    struct trial_sample samples[8] = {0};
    struct scene *s = new_memory_scene(&grows, 1, 50, 100);
    s->config.span_s = 90;
    s->config.on_sample = note_sample;
    s->config.arg = samples;
    struct trial_result r = run(s);
    assert_int_equal(r.actions, 1);
    assert_near(r.memory_byte_seconds / MI, 200 * 15 + 300 * 75, 1e-6);
    assert_near(samples[1].memory_bytes / MI, 200, 1e-9);
    assert_near(samples[2].memory_bytes / MI, 300, 1e-9);
    assert_near(shown.last.containers[0].request[MEM] / MI, 300, 1e-9);
    assert_near(shown.pods[0].containers[0].request[MEM] / MI, 300, 1e-9);
    s->spec.containers[0].max[API_MEMORY] = 250 << 20; /* the guard stands behind it */
    assert_near(run(s).memory_byte_seconds / MI, 200 * 15 + 250 * 75, 1e-6);
    s->spec.containers[0].requests_only = true; /* limits stay, and here a request is one */
    assert_near(run(s).memory_byte_seconds / MI, 200 * 90, 1e-6);
    assert_false(shown.last.containers[0].controlled[MEM]);
    free(s);
}

static void test_memory_is_observed(void **state)
{
    (void)state;
    struct recommender watches = RECOMMENDER(watch);
    struct scene *s = new_memory_scene(&watches, 0, 50, 60);
    s->function.replicas = 2;
    s->spec.containers[0].max[API_MEMORY] = 500 << 20;
    run(s);
    const struct recommend_container *c = &shown.last.containers[0];
    assert_true(c->controlled[MEM] && c->controlled[CPU]);
    assert_near(c->request[MEM] / MI, 120, 1e-9);
    assert_near(c->min[MEM] / MI, 16, 1e-9);
    assert_near(c->max[MEM] / MI, 500, 1e-9);
    for (size_t i = 0; i < 2; i++)
        assert_near(shown.pods[i].containers[0].usage[MEM] / MI, 60, 1e-9);
    s->spec.controls[CPU] = false; /* memory alone */
    run(s);
    assert_true(c->controlled[MEM] && !c->controlled[CPU]);
    free(s);
}

/* Half of what is in use at the least: it waits, and nobody takes that for a node without room. */
static void test_memory_in_use_is_waited_for(void **state)
{
    (void)state;
    struct recommender squeezes = RECOMMENDER(squeeze_memory);
    struct scene *s = new_memory_scene(&squeezes, 0, 50, 100);
    s->spec.scale_down.stabilization_s = 0;
    s->config.span_s = 300;
    struct trial_result r = run(s);
    assert_near(shown.last.containers[0].request[MEM] / MI, 100, 1e-9);
    assert_near(shown.last.containers[0].max[CPU], 2000, 1e-9);
    assert_int_equal(r.actions, 2); /* 200 → 100, and 50 once */
    assert_int_equal(r.memory_kills, 0);
    free(s);
}

static void test_a_node_without_memory_is_believed(void **state)
{
    (void)state;
    static const double most_milli[] = {2000, 1000};
    struct recommender grows = RECOMMENDER(grow_memory);
    struct cluster_node node = {.cores = 4, .memory_bytes = 250 * MI};
    for (int i = 0; i < 2; i++) {
        struct scene *s = new_memory_scene(&grows, 1, 50, 100);
        s->config.nodes = &node;
        s->config.node_count = 1;
        s->config.span_s = i ? 61 : 46;
        run(s);
        assert_near(shown.last.containers[0].request[MEM] / MI, 200, 1e-9);
        assert_near(shown.last.containers[0].max[CPU], most_milli[i], 1e-9);
        free(s);
    }
}

/* Those with a rule for memory use it, the others leave what is there. */
static void test_recommenders_size_memory(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double least_mi, most_mi; /* mean limit, of 600 in the beginning */
    } cases[] = {{"vpa", 300, 450},  {"hpa+vpa", 300, 450}, {"greedy", 300, 450},
                 {"hpa", 600, 600},  {"kpa", 600, 600},     {"feedforward", 600, 600},
                 {"fixed", 600, 600}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene *s = new_memory_scene(&keeps, 2, 50, 300);
        struct trial_result r = run_choice(s, cases[i].name);
        double limit_mi = mean_limit_mi(s, &r);
        if (!(limit_mi >= cases[i].least_mi - 1e-6 && limit_mi <= cases[i].most_mi + 1e-6))
            fail_msg("%s: %g Mi", cases[i].name, limit_mi);
        assert_int_equal(r.memory_kills, 0);
        free(s);
    }
    /* threshold takes nothing away within hours, and gives what is used, and a margin */
    struct scene *s = new_memory_scene(&keeps, 60, 100, 60);
    s->config.defaults.concurrency = 100;
    s->spec.max_replicas = 1;
    struct trial_result r = run_choice(s, "threshold");
    assert_int_equal(r.memory_kills, 0);
    assert_true(mean_limit_mi(s, &r) > 120 * 1.1 && mean_limit_mi(s, &r) < 120 * 1.3);
    free(s);
}

/* They are about CPU: what memory could do to others never happens to them. */
static void test_oracles_are_never_short_of_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"oracle", "oracle-requests"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct scene *s = new_memory_scene(&keeps, 12, 80, 60);
        s->spec.containers[0].max[API_MEMORY] = 60 << 20; /* any request kills */
        s->config.span_s = 300;
        struct trial_result with = run_choice(s, names[i]);
        s->spec.controls[API_MEMORY] = false;
        struct trial_result without = run_choice(s, names[i]);
        assert_memory_equal(&with, &without, sizeof(with));
        assert_true(isnan(with.memory_byte_seconds));
        free(s);
    }
}

/* --- names and errors --------------------------------------------------------------------------
 */
static void assert_refused(const char *text, const char *why)
{
    struct error err = {0};
    struct trial_choice choice;
    assert_int_equal(trial_choose(text, &choice, &err), -1);
    if (!strstr(err.message, why))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, why);
}

static void test_choose(void **state)
{
    (void)state;
    struct error err = {0};
    struct trial_choice choice;
    for (size_t i = 0; trial_names[i]; i++) {
        assert_int_equal(trial_choose(trial_names[i], &choice, &err), 0);
        assert_string_equal(choice.label, trial_names[i]);
        assert_string_equal(choice.recommender->name, trial_names[i]);
        for (size_t p = 0; p < choice.recommender->param_count; p++) {
            const struct recommend_param *param = &choice.recommender->params[p];
            assert_near(choice.params[p], param->value, 0);
            assert_true(param->low < param->high);
        }
        trial_choice_clear(&choice);
    }
    assert_int_equal(trial_choose("hpa:target=0.5", &choice, &err), 0);
    assert_near(choice.params[0], 0.5, 0);
    trial_choice_clear(&choice);
    assert_refused("hpq", "there is no such recommender: there are fixed, ");
    assert_refused("", "there is no such recommender");
    assert_refused("hpa:", "write NAME=NUMBER");
    assert_refused("hpa:target", "write NAME=NUMBER");
    assert_refused("hpa:traget=0.5", "hpa has no parameter traget: it has target");
    assert_refused("oracle:x=1", "it has none");
    assert_refused("hpa:target=much", "\"much\" is no number");
    assert_refused("hpa:target=0.5x", "\"0.5x\" is no number");
    assert_refused("hpa:target=nan", "is not within");
    assert_refused("hpa:target=1e9", "is not within");
    assert_refused("hpa:target=0.5,", "write NAME=NUMBER");
}

static void test_refused_settings(void **state)
{
    (void)state;
    struct error err = {0};
    struct scene *s = new_scene(&keeps, 1, 10);
    s->config.interval_s = 0;
    assert_int_equal(trial_run(&s->config, &s->result, &err), -1);
    assert_non_null(strstr(err.message, "interval"));
    s->config.interval_s = 15;
    s->config.span_s = NAN;
    assert_int_equal(trial_run(&s->config, &s->result, &err), -1);
    assert_non_null(strstr(err.message, "span"));
    s->config.span_s = 60;
    s->config.defaults.start_s = -1; /* the cluster refuses it */
    assert_int_equal(trial_run(&s->config, &s->result, &err), -1);
    s->config.function_count = 0;
    assert_int_equal(trial_run(&s->config, &s->result, &err), -1);
    free(s);
}

/* The defaults of a manifest that states nothing but the bounds. */
static void test_default_spec_is_a_manifests(void **state)
{
    (void)state;
    static const char manifest[] =
        "{\"apiVersion\": \"autoscaling.faasrl.io/v1alpha1\", \"kind\": \"MultidimPodAutoscaler\","
        " \"metadata\": {\"name\": \"x\"}, \"spec\": {"
        "  \"scaleTargetRef\": {\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\","
        "                       \"name\": \"x\"},"
        "  \"goals\": {\"latency\": {\"target\": \"1s\"}},"
        "  \"constraints\": {\"global\": {\"minReplicas\": 1, \"maxReplicas\": 20},"
        "    \"container\": [{\"name\": \"*\", \"requests\": {"
        "      \"minAllowed\": {\"cpu\": \"100m\"}, \"maxAllowed\": {\"cpu\": \"2\"}}}]}}}";
    cleanup_json json_t *json = json_loads(manifest, 0, NULL);
    struct api_mpa mpa;
    struct api_spec spec;
    struct error err = {0};
    if (api_parse(json, &mpa, &err) < 0)
        fail_msg("%s", err.message);
    trial_default_spec(&spec);
    assert_near(spec.latency_percentile, mpa.spec.latency_percentile, 0);
    assert_int_equal(spec.metric_count, mpa.spec.metric_count);
    assert_int_equal(spec.metrics[0].utilization, mpa.spec.metrics[0].utilization);
    assert_int_equal(spec.metrics[0].average_value, mpa.spec.metrics[0].average_value);
    assert_int_equal(spec.min_replicas, mpa.spec.min_replicas);
    assert_int_equal(spec.max_replicas, mpa.spec.max_replicas);
    const struct api_rules *ours[] = {&spec.scale_up, &spec.scale_down};
    const struct api_rules *theirs[] = {&mpa.spec.scale_up, &mpa.spec.scale_down};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ours[i]->stabilization_s, theirs[i]->stabilization_s);
        assert_int_equal(ours[i]->select, theirs[i]->select);
        assert_near(ours[i]->tolerance, theirs[i]->tolerance, 0);
        assert_int_equal(ours[i]->policy_count, theirs[i]->policy_count);
        assert_memory_equal(ours[i]->policies, theirs[i]->policies, sizeof(ours[i]->policies));
    }
    assert_int_equal(spec.mode, mpa.spec.mode);
    assert_int_equal(spec.controls[API_CPU], mpa.spec.controls[API_CPU]);
    assert_int_equal(spec.controls[API_MEMORY], mpa.spec.controls[API_MEMORY]);
    assert_memory_equal(spec.containers[0].min, mpa.spec.containers[0].min,
                        sizeof(spec.containers[0].min));
    assert_memory_equal(spec.containers[0].max, mpa.spec.containers[0].max,
                        sizeof(spec.containers[0].max));
    api_clear(&mpa);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed_size_costs_what_it_is),
        cmocka_unit_test(test_what_is_not_said_is_one_core_once),
        cmocka_unit_test(test_mean_latency_is_that_of_theory),
        cmocka_unit_test(test_a_hand_decides_in_place_of_the_choice),
        cmocka_unit_test(test_violations_are_counted),
        cmocka_unit_test(test_overdue_requests_count_at_the_end),
        cmocka_unit_test(test_delays_and_starts_are_charged),
        cmocka_unit_test(test_late_starts_hurt),
        cmocka_unit_test(test_same_requests_for_all),
        cmocka_unit_test(test_same_seed_same_result),
        cmocka_unit_test(test_who_knows_nothing_changes_nothing),
        cmocka_unit_test(test_bounds_hold_whatever_is_said),
        cmocka_unit_test(test_behavior_is_laid_on_top),
        cmocka_unit_test(test_limits_go_along),
        cmocka_unit_test(test_observation),
        cmocka_unit_test(test_no_traffic_is_not_lateness),
        cmocka_unit_test(test_own_interval),
        cmocka_unit_test(test_step_by_step),
        cmocka_unit_test(test_functions_share_nodes),
        cmocka_unit_test(test_a_node_s_no_is_believed),
        cmocka_unit_test(test_oracle_beats_every_fixed_size),
        cmocka_unit_test(test_oracle_looks_ahead_of_delays),
        cmocka_unit_test(test_oracle_knows_of_a_change),
        cmocka_unit_test(test_memory_is_modelled_where_it_is_controlled),
        cmocka_unit_test(test_memory_begins_within_the_bounds),
        cmocka_unit_test(test_beyond_the_limit_it_is_killed),
        cmocka_unit_test(test_memory_is_resized),
        cmocka_unit_test(test_memory_is_observed),
        cmocka_unit_test(test_memory_in_use_is_waited_for),
        cmocka_unit_test(test_a_node_without_memory_is_believed),
        cmocka_unit_test(test_recommenders_size_memory),
        cmocka_unit_test(test_oracles_are_never_short_of_memory),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_refused_settings),
        cmocka_unit_test(test_default_spec_is_a_manifests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
