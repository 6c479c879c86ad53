/* The simulated cluster against queueing theory, Linux's rules, and its own laws of conservation.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "sim/cluster.h"

#define NODE(cores_) (&(struct cluster_node){.cores = (cores_), .memory_bytes = INFINITY})

/* --- workloads ------------------------------------------------------------------------------- */
struct load {
    struct trace_function workload;
    double counts[4];
    struct trace_quantile quantiles[4];
};

/* A Poisson process without an end, of requests with exponential demand. */
static struct trace_function *poisson(struct load *l, double per_s, double mean_ms)
{
    *l = (struct load){.counts = {per_s}};
    l->workload = (struct trace_function){
        .slot_s = 1,
        .counts = l->counts,
        .slot_count = 1,
        .poisson = true,
        .repeat = true,
        .demand = TRACE_DEMAND_EXPONENTIAL,
        .mean_cpu_ms = mean_ms,
        .quantiles = l->quantiles,
    };
    return &l->workload;
}

/* The same, but it ends after so many seconds, so that in the end all requests are done. */
static struct trace_function *poisson_for(struct load *l, double span_s, double per_s,
                                          double mean_ms)
{
    poisson(l, per_s * span_s, mean_ms);
    l->workload.slot_s = span_s;
    l->workload.repeat = false;
    return &l->workload;
}

static struct trace_function *always_ms(struct load *l, double cpu_ms)
{
    l->quantiles[0] = (struct trace_quantile){0, cpu_ms};
    l->quantiles[1] = (struct trace_quantile){1, cpu_ms};
    l->workload.quantile_count = 2;
    l->workload.demand = TRACE_DEMAND_QUANTILES;
    return &l->workload;
}

/* count requests of cpu_ms within the first slot, and none after. */
static struct trace_function *at_once(struct load *l, double count, double slot_s, double cpu_ms)
{
    poisson(l, count, 1);
    l->workload.slot_s = slot_s;
    l->workload.poisson = l->workload.repeat = false;
    return always_ms(l, cpu_ms);
}

static struct cluster *new_cluster(const struct cluster_node *node,
                                   const struct cluster_function *functions, size_t count)
{
    struct error err = {0};
    struct cluster *c = cluster_new(&(struct cluster_config){.nodes = node,
                                                             .node_count = 1,
                                                             .functions = functions,
                                                             .function_count = count,
                                                             .seed = 5},
                                    &err);
    if (c == NULL)
        fail_msg("%s", err.message);
    return c;
}

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance * fabs(b)))
        fail_msg("%.9g instead of %.9g", a, b);
}

static double mean_ms(const struct cluster *c, size_t function)
{
    const struct cluster_latency *l = cluster_latency(c, function);
    return 1000 * l->sum_s / (double)l->count;
}

/* --- conservation ---------------------------------------------------------------------------- */
/* All that is to come, known before anything has: how many, and the sums of when and of how much.
 */
struct due {
    uint64_t count;
    double arrivals_s, cpu_s;
};

static struct due due_of(const struct cluster *c, size_t function)
{
    struct due due = {.count = cluster_peek(c, function, INFINITY, NULL, 0)};
    cleanup_free struct cluster_request *all = xcalloc(due.count + 1, sizeof(*all));
    cluster_peek(c, function, INFINITY, all, due.count);
    for (uint64_t i = 0; i < due.count; i++) {
        due.arrivals_s += all[i].arrives_s;
        due.cpu_s += all[i].cpu_ms / 1000;
    }
    return due;
}

/* At any time. */
static void assert_accounted(const struct cluster *c, size_t function)
{
    const struct cluster_stats *s = cluster_stats(c, function);
    struct cluster_state now;
    cluster_state(c, function, &now);
    assert_int_equal(s->arrived, s->completed + s->lost + now.in_flight + now.waiting);
    assert_int_equal(s->completed, cluster_latency(c, function)->count);
    assert_int_equal(now.wanted, now.ready + now.starting + now.unscheduled);
    assert_true(s->waiting_s >= 0 && s->waiting_s <= s->in_flight_s * (1 + 1e-9));
}

/* In the end: every request is done, CPU used is what they asked, and, which is Little's law, their
 * number over time is the sum of how long each was there. */
static void assert_conserved(const struct cluster *c, size_t function, const struct due *due)
{
    const struct cluster_stats *s = cluster_stats(c, function);
    assert_accounted(c, function);
    assert_int_equal(s->lost, 0);
    assert_int_equal(s->completed, due->count);
    assert_near(s->cpu_s, due->cpu_s, 1e-9);
    assert_near(s->in_flight_s, cluster_latency(c, function)->sum_s, 1e-9);
}

/* --- theory ---------------------------------------------------------------------------------- */
/* Runs for the span of the load, checks utilisation, and then until all are done. */
static struct cluster *run_queue_of(uint64_t seed, const struct cluster_node *node,
                                    const struct cluster_function *f)
{
    const struct trace_function *w = f->workload;
    struct cluster *c = new_cluster(node, f, 1);
    cluster_reset(c, seed);
    struct due due = due_of(c, 0);
    cluster_run(c, w->slot_s);
    double mean_cpu_s = w->demand == TRACE_DEMAND_EXPONENTIAL
                            ? w->mean_cpu_ms / 1000
                            : (w->quantiles[0].cpu_ms + w->quantiles[1].cpu_ms) / 2000;
    assert_near(cluster_stats(c, 0)->cpu_s / w->slot_s, w->counts[0] / w->slot_s * mean_cpu_s,
                0.02);
    assert_accounted(c, 0);
    cluster_run(c, 2 * w->slot_s);
    assert_conserved(c, 0, &due);
    return c;
}

static struct cluster *run_queue(const struct cluster_node *node, const struct cluster_function *f)
{
    return run_queue_of(5, node, f);
}

static void mm1_ps_has_the_mean_of_theory(void **state)
{
    (void)state;
    struct load l;
    for (double load = 0.3; load < 0.75; load += 0.4) {
        struct cluster_function f = {.workload = poisson_for(&l, 1e4 / load, load * 100, 10),
                                     .replicas = 1};
        struct cluster *c = run_queue(NODE(1), &f);
        assert_near(mean_ms(c, 0), 10 / (1 - load), 0.02);
        cluster_free(c);
    }
}

/* From one second on a request needs three times as much: M/M/1-PS at 0.2, then at 0.6. */
static void a_function_gets_slower(void **state)
{
    (void)state;
    struct load l;
    poisson_for(&l, 100000, 20, 10)->slower = 3;
    l.workload.slower_from_s = 50000;
    struct cluster_function f = {.workload = &l.workload, .replicas = 1};
    struct cluster *c = new_cluster(NODE(1), &f, 1);
    struct due due = due_of(c, 0);
    cluster_run(c, 50000);
    assert_near(mean_ms(c, 0), 10 / (1 - 0.2), 0.02);
    double cpu_s = cluster_stats(c, 0)->cpu_s;
    cluster_run(c, 100000);
    assert_near((cluster_stats(c, 0)->cpu_s - cpu_s) / 50000, 0.6, 0.02);
    cluster_run(c, 100100);
    assert_conserved(c, 0, &due);
    assert_near(mean_ms(c, 0), (10 / (1 - 0.2) + 30 / (1 - 0.6)) / 2, 0.03);
    cluster_free(c);
}

/* Three requests far apart, the second of which needs five times the CPU of the others. */
static void requests_can_be_known_one_by_one(void **state)
{
    (void)state;
    double counts[] = {1, 1, 1}, works[] = {1, 5, 1};
    struct load l;
    poisson(&l, 1, 0);
    always_ms(&l, 20);
    l.workload.counts = counts;
    l.workload.works = works;
    l.workload.slot_count = ARRAY_LEN(counts);
    l.workload.slot_s = 10;
    l.workload.poisson = l.workload.repeat = false;
    struct cluster_function f = {.workload = &l.workload, .replicas = 1};
    struct cluster *c = new_cluster(NODE(1), &f, 1);
    struct due due = due_of(c, 0);
    cluster_run(c, 60);
    assert_conserved(c, 0, &due);
    assert_near(cluster_stats(c, 0)->cpu_s, (20 + 5 * 20 + 20) / 1e3, 1e-6);
    assert_near(cluster_latency_quantile_ms(cluster_latency(c, 0), 0.99), 100, 0.02);
    assert_near(trace_slowdown(&l.workload, 15), 5, 1e-9);
    cluster_free(c);
}

/* Processor sharing does not care about the distribution of demand, only about its mean. */
static void mg1_ps_is_insensitive(void **state)
{
    (void)state;
    struct load l;
    poisson_for(&l, 8e5 / 70, 70, 0);
    always_ms(&l, 10);
    struct cluster_function f = {.workload = &l.workload, .replicas = 1};
    struct cluster *c = run_queue(NODE(1), &f);
    assert_near(mean_ms(c, 0), 10 / 0.3, 0.02);
    cluster_free(c);
    l.quantiles[0].cpu_ms = 1;
    l.quantiles[1].cpu_ms = 19;
    c = run_queue(NODE(1), &f);
    assert_near(mean_ms(c, 0), 10 / 0.3, 0.02);
    cluster_free(c);
}

/* Pollaczek and Khinchine: a queue before one server waits half as long for fixed demands. */
static void md1_in_a_queue_has_the_mean_of_theory(void **state)
{
    (void)state;
    struct load l;
    poisson_for(&l, 8e5 / 70, 70, 0);
    struct cluster_function f = {.workload = always_ms(&l, 10), .replicas = 1, .concurrency = 1};
    struct cluster *c = run_queue(NODE(1), &f);
    assert_near(mean_ms(c, 0), 10 + 10 * 0.7 / (2 * 0.3), 0.02);
    assert_near(cluster_stats(c, 0)->waiting_s / (double)cluster_stats(c, 0)->completed,
                0.010 * 0.7 / (2 * 0.3), 0.03);
    cluster_free(c);
}

static double erlang_c(int servers, double load)
{
    double term = 1, sum = 1;
    for (int k = 1; k < servers; k++)
        sum += term *= load / k;
    double last = term * load / servers * servers / (servers - load);
    return last / (sum + last);
}

/* Of the number in an M/M/c, its time average over a long span T varies by chance with variance
 * v / T. This is v, where a service takes 1 on average: by Whitt's formula for birth and death,
 * 2 sum_j (sum_{i>j} (i - mean) p_i)^2 / (lambda p_j). */
static double variance_over_time(int servers, double load)
{
    enum { STATES = 400 }; /* at 0.9 they leave out 1e-18 */
    double p[STATES] = {1}, sum = 1, mean = 0, tail = 0, variance = 0;
    for (int i = 1; i < STATES; i++)
        sum += p[i] = p[i - 1] * load / fmin(i, servers);
    for (int i = 0; i < STATES; i++)
        mean += i * (p[i] /= sum);
    for (int j = STATES - 1; j > 0; j--) {
        tail += (j - mean) * p[j];
        variance += 2 * tail * tail / (load * p[j - 1]);
    }
    return variance;
}

/* How far the mean time of so many requests may be off by chance: four standard deviations, of the
 * number in the queue and of how many came. */
static double mmc_bound(int servers, double load, double requests)
{
    double mean = load + erlang_c(servers, load) * load / (servers - load);
    double deviation = sqrt(variance_over_time(servers, load) * load / requests) / mean;
    return 4 * (deviation + 1 / sqrt(requests));
}

static void assert_mmc(int servers, double utilization)
{
    struct load l;
    double load = servers * utilization, requests = utilization > 0.8 ? 1e6 : 3e5;
    double theory_ms = 10 + erlang_c(servers, load) * 10 / (servers - load);
    double bound = mmc_bound(servers, load, requests);
    poisson_for(&l, requests / (load * 100), load * 100, 10);
    const struct cluster_function shapes[] = {
        {.workload = &l.workload, .replicas = 1, .concurrency = servers},
        {.workload = &l.workload, .replicas = servers, .concurrency = 1},
        {.workload = &l.workload, .replicas = 1},
    };
    assert_true(bound < 0.09);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        uint64_t seed = (uint64_t)(100 * servers + 10 * utilization) * ARRAY_LEN(shapes) + i;
        struct cluster *c = run_queue_of(seed, NODE(servers), &shapes[i]);
        assert_near(mean_ms(c, 0), theory_ms, bound);
        cluster_free(c);
    }
}

/* One queue before c servers: a replica of c cores, c replicas of one request each, or processor
 * sharing with at most one core a request all have the mean of M/M/c. */
static void mmc_has_the_mean_of_theory(void **state)
{
    (void)state;
    assert_near(variance_over_time(1, 0.9), 2 * 0.9 * 1.9 / pow(1 - 0.9, 4), 1e-6);
    for (int servers = 1; servers <= 8; servers *= 2) {
        assert_mmc(servers, 0.5);
        assert_mmc(servers, 0.7);
        assert_mmc(servers, 0.9);
    }
}

/* And longer at one point, within 2 %. */
static void mmc_is_near_to_theory(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {
        .workload = poisson_for(&l, 1.2e6 / 280, 280, 10), .replicas = 1, .concurrency = 4};
    assert_true(mmc_bound(4, 2.8, 1.2e6) < 0.02);
    struct cluster *c = run_queue(NODE(4), &f);
    assert_near(mean_ms(c, 0), 10 + erlang_c(4, 2.8) * 10 / (4 - 2.8), 0.02);
    cluster_free(c);
}

/* Random dispatch splits a Poisson stream into independent ones. */
static void replicas_with_a_core_each_are_separate_queues(void **state)
{
    (void)state;
    struct load l;
    const struct cluster_node nodes[] = {*NODE(1), *NODE(1), *NODE(1)};
    struct cluster_function f = {
        .workload = poisson_for(&l, 4000, 180, 10), .replicas = 3, .request_milli = 1000};
    struct error err;
    struct cluster *c = cluster_new(&(struct cluster_config){nodes, 3, &f, 1, 9}, &err);
    struct due due = due_of(c, 0);
    cluster_run(c, 4100);
    assert_conserved(c, 0, &due);
    assert_near(mean_ms(c, 0), 10 / 0.4, 0.02);
    cluster_free(c);
}

/* The 99th percentile of M/M/1 first come first served is exponential with rate mu - lambda. */
static void quantiles_are_those_of_theory(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {
        .workload = poisson_for(&l, 2e4, 50, 10), .replicas = 1, .concurrency = 1};
    struct cluster *c = run_queue(NODE(1), &f);
    assert_near(cluster_latency_quantile_ms(cluster_latency(c, 0), 0.99), 1000 * log(100) / 50,
                0.03);
    assert_near(cluster_latency_quantile_ms(cluster_latency(c, 0), 0.5), 1000 * log(2) / 50, 0.02);

    const struct cluster_latency *all = cluster_latency(c, 0);
    double count = (double)all->count;
    assert_near(cluster_latency_within(all, 1000 * log(2) / 50) / count, 0.5, 0.02);
    assert_near(cluster_latency_within(all, cluster_latency_quantile_ms(all, 0.9)) / count, 0.9,
                1e-9);
    assert_true(cluster_latency_within(all, 0) == 0);
    assert_true(cluster_latency_within(all, INFINITY) == count);
    cluster_free(c);
}

/* --- CPU on a node --------------------------------------------------------------------------- */
/* cpu.shares 512 beside 1536 on a node of two cores: 2 * 512 / (512 + 1536) = 0.5 CPU. */
static void shares_are_those_of_the_example(void **state)
{
    (void)state;
    struct load a, b;
    const struct cluster_function functions[] = {
        {.workload = at_once(&a, 3, 1e-9, 1e6), .replicas = 1, .request_milli = 512 / 1.024},
        {.workload = at_once(&b, 3, 1e-9, 1e6), .replicas = 1, .request_milli = 1536 / 1.024},
    };
    struct cluster *c = new_cluster(NODE(2), functions, 2);
    cluster_run(c, 1e-6);
    cluster_begin_interval(c);
    cluster_run(c, 10 + 1e-6);
    assert_near(cluster_stats(c, 0)->cpu_s / 10, 0.5, 1e-12);
    assert_near(cluster_stats(c, 1)->cpu_s / 10, 1.5, 1e-12);
    cluster_free(c);
}

/* What one cannot use goes to the others: a lone request uses one core, whatever its share. */
static void unused_shares_go_to_others(void **state)
{
    (void)state;
    struct load a, b;
    const struct cluster_function functions[] = {
        {.workload = at_once(&a, 4, 1e-9, 1e6), .replicas = 1, .request_milli = 100},
        {.workload = at_once(&b, 1, 1e-9, 1e6), .replicas = 1, .request_milli = 1900},
    };
    struct cluster *c = new_cluster(NODE(2), functions, 2);
    cluster_run(c, 10);
    assert_near(cluster_stats(c, 0)->cpu_s, 10, 1e-6);
    assert_near(cluster_stats(c, 1)->cpu_s, 10, 1e-6);
    cluster_free(c);
}

/* A request of 29 ms alone under 100m: 10 ms in each period. Begun at a time o after a period
 * began, it takes 209 ms - o; 119 ms when o is from 90 to 91 ms, and 209 ms when it is later.
 * Evenly spread that is 167.6 ms. A cap without periods would say 290 ms. */
static void a_lone_request_bursts_through_its_quota(void **state)
{
    (void)state;
    struct load l;
    poisson(&l, 0.5, 0);
    l.workload.poisson = false;
    l.counts[0] = 1;
    l.workload.slot_s = 20;
    always_ms(&l, 29);
    struct cluster_function f = {.workload = &l.workload, .replicas = 1, .limit_milli = 100};
    struct cluster *c = new_cluster(NODE(8), &f, 1);
    cluster_run(c, 400000);
    assert_near(mean_ms(c, 0), 167.6, 0.01);
    cluster_free(c);
    always_ms(&l, 8);
    c = new_cluster(NODE(8), &f, 1);
    cluster_run(c, 4000);
    assert_near(mean_ms(c, 0), 8, 1e-6);
    cluster_free(c);
}

/* The mean of requests of 15 ms that are alone in their replicas under 100m. These are many, as
 * each has the phases of its periods by chance. */
static double lone_mean_ms(double tick_s, bool pod_quota)
{
    struct load l;
    struct cluster_node node = {.cores = INFINITY, .memory_bytes = INFINITY, .tick_s = tick_s};
    struct cluster_function f = {.workload = at_once(&l, 30000, 300, 15),
                                 .replicas = 5000,
                                 .limit_milli = 100,
                                 .pod_quota = pod_quota};
    struct cluster *c = new_cluster(&node, &f, 1);
    struct due due = due_of(c, 0);
    cluster_run(c, 400);
    assert_int_equal(cluster_stats(c, 0)->completed, 30000);
    assert_conserved(c, 0, &due);
    double mean = mean_ms(c, 0);
    cluster_free(c);
    return mean;
}

/* Periods end at x after the request came, evenly from 0 to 100 ms. It runs for 10 ms, then from x
 * on for 5: x + 5. If x < 10 there is a second quota at once: 15 in all if that is enough, which it
 * is for x > 5, else 105. That is 60 ms on average. With a pod's periods too, which end at y, both
 * must be renewed: with a the smaller and b the larger, b + 5 for a > 5 and b > 10; 105 for a < 5;
 * 15 for 5 < a < b < 10. That is 76.425 ms. */
static void a_pod_has_a_quota_beside_its_container(void **state)
{
    (void)state;
    assert_near(lone_mean_ms(0, false), 60, 0.01);
    assert_near(lone_mean_ms(0, true), 76.425, 0.01);
}

/* Found out d later, evenly from 0 to 4 ms, the request above has only 5 - d left for the next
 * period and is done at x + 5 - d; 15 if the period ends before that or d is long enough, 105 - d
 * else. */
static void until_the_tick_quota_is_overdrawn(void **state)
{
    (void)state;
    assert_near(lone_mean_ms(0.004, false), 56.38, 0.01);
}

static void assert_uses_its_limit(double tick_s, bool pod_quota)
{
    struct load l;
    struct cluster_node node = {.cores = 8, .memory_bytes = INFINITY, .tick_s = tick_s};
    struct cluster_function f = {.workload = at_once(&l, 3, 1e-9, 1e6),
                                 .replicas = 1,
                                 .request_milli = 350,
                                 .limit_milli = 350,
                                 .pod_quota = pod_quota};
    struct cluster *c = new_cluster(&node, &f, 1);
    cluster_run(c, 1);
    cluster_begin_interval(c);
    cluster_run(c, 101);
    /* What is overdrawn at the ends may differ by 3 cores for a tick. */
    assert_near(cluster_stats(c, 0)->cpu_s, 35, 1e-6 + 3 * tick_s / 35);
    assert_near((double)cluster_stats(c, 0)->periods, 1000, 0.002);
    if (!pod_quota)
        assert_near((double)cluster_stats(c, 0)->throttled_periods, 1000, 0.002);
    cluster_free(c);
}

static void a_busy_replica_uses_its_limit_and_no_more(void **state)
{
    (void)state;
    assert_uses_its_limit(0, false);
    assert_uses_its_limit(0, true);
    assert_uses_its_limit(0.004, false);
    assert_uses_its_limit(0.004, true);
}

/* --- any history ----------------------------------------------------------------------------- */
static struct cluster_function any_function(struct random *r, struct load *l)
{
    at_once(l, (double)(20 + random_below(r, 300)), 5, 1 + 40 * random_uniform(r));
    l->quantiles[1].cpu_ms *= 1 + random_uniform(r);
    l->counts[1] = (double)random_below(r, 50);
    l->workload.slot_count = 2;
    return (struct cluster_function){
        .workload = &l->workload,
        .goal_ms = 50,
        .replicas = (int)random_below(r, 4),
        .request_milli = 50 + 400 * random_uniform(r),
        .limit_milli = random_below(r, 2) ? 100 + 900 * random_uniform(r) : 0,
        .pod_quota = random_below(r, 2),
        .concurrency = (int)random_below(r, 3),
        .dispatch = (enum cluster_dispatch)random_below(r, 3),
        .start_s = random_uniform(r),
        .start_spread = 0.3,
        .resize_s = random_uniform(r),
    };
}

static void do_anything(struct random *r, struct cluster *c, size_t function)
{
    if (random_below(r, 2))
        cluster_scale(c, function, (int)random_below(r, 6));
    if (random_below(r, 2))
        cluster_resize(c, function, 50 + 300 * random_uniform(r),
                       random_below(r, 2) ? 100 + 900 * random_uniform(r) : 0);
}

/* The same with replicas that crash, and that have memory for few requests. */
static struct cluster_function any_fragile_function(struct random *r, struct load *l)
{
    struct cluster_function f = any_function(r, l);
    f.crash_per_hour = 3600 * random_uniform(r);
    f.memory_base_bytes = 60;
    f.memory_per_request_bytes = 1;
    f.memory_limit_bytes = 62 + (double)random_below(r, 40);
    return f;
}

#define HISTORIES 3 /* functions side by side */
#define GLANCE_S  (1.0 / 512)

struct history { /* of a function, by what is seen of it from outside */
    struct due due;
    uint64_t gone;
    double departures_s; /* the sum of when requests went, done or lost, to half a glance */
};

static void glance_until(struct cluster *c, struct history *histories, double until_s)
{
    while (cluster_now_s(c) < until_s) {
        cluster_run(c, fmin(cluster_now_s(c) + GLANCE_S, until_s));
        for (size_t i = 0; i < HISTORIES; i++) {
            const struct cluster_stats *s = cluster_stats(c, i);
            struct history *h = &histories[i];
            double went = (double)(s->completed + s->lost - h->gone);
            h->departures_s += went * (cluster_now_s(c) - GLANCE_S / 2);
            h->gone = s->completed + s->lost;
        }
    }
}

static bool all_gone(const struct history *histories)
{
    for (size_t i = 0; i < HISTORIES; i++)
        if (histories[i].gone < histories[i].due.count)
            return false;
    return true;
}

static void live_through(struct cluster *c, struct random *r, struct history *histories)
{
    for (size_t i = 0; i < HISTORIES; i++)
        histories[i] = (struct history){.due = due_of(c, i)};
    for (double at_s = 0.5; at_s < 15; at_s += 0.5) {
        glance_until(c, histories, at_s);
        for (size_t i = 0; i < HISTORIES; i++) {
            do_anything(r, c, i);
            assert_accounted(c, i);
        }
    }
    for (size_t i = 0; i < HISTORIES; i++) {
        cluster_resize(c, i, 100, 0);
        cluster_scale(c, i, 1);
    }
    while (!all_gone(histories) && cluster_now_s(c) < 2000)
        glance_until(c, histories, cluster_now_s(c) + 0.5);
}

/* Of what is lost is not known how much CPU it had; but it was there until it went. */
static void assert_conserved_with_losses(const struct cluster *c, size_t function,
                                         const struct history *h)
{
    const struct cluster_stats *s = cluster_stats(c, function);
    const struct cluster_latency *l = cluster_latency(c, function);
    double there_s = h->departures_s - h->due.arrivals_s;
    assert_accounted(c, function);
    assert_int_equal(s->completed + s->lost, h->due.count);
    if (fabs(s->in_flight_s - there_s) > (double)h->due.count * GLANCE_S / 2 + 1e-9 * there_s)
        fail_msg("requests were there for %.9g s instead of %.9g", s->in_flight_s, there_s);
    assert_true(s->in_flight_s >= l->sum_s * (1 - 1e-9));
    assert_true(s->cpu_s <= h->due.cpu_s * (1 + 1e-9));
}

/* Nothing is lost and nothing comes from nowhere, whatever is done to the cluster. */
static void requests_and_cpu_are_conserved(void **state)
{
    (void)state;
    struct random r = random_stream(11, 0);
    uint64_t lost = 0, crashes = 0, kills = 0;
    for (int round = 0; round < 300; round++) {
        bool fragile = round % 3 == 2;
        struct load loads[HISTORIES];
        struct cluster_function functions[HISTORIES];
        struct history histories[HISTORIES];
        for (size_t i = 0; i < HISTORIES; i++)
            functions[i] = (fragile ? any_fragile_function : any_function)(&r, &loads[i]);
        struct cluster_node node = *NODE(1 + 3 * random_uniform(&r));
        node.tick_s = round % 2 ? 0.004 : 0;
        struct cluster *c = new_cluster(&node, functions, HISTORIES);
        live_through(c, &r, histories);
        for (size_t i = 0; i < HISTORIES; i++) {
            assert_conserved_with_losses(c, i, &histories[i]);
            if (!fragile)
                assert_conserved(c, i, &histories[i].due);
            lost += cluster_stats(c, i)->lost;
            crashes += cluster_stats(c, i)->crashes;
            kills += cluster_stats(c, i)->memory_kills;
        }
        cluster_free(c);
    }
    assert_true(crashes > 1000 && kills > 500 && lost > crashes + kills);
}

/* Its memory is enough for four requests: with the fifth all are lost, and those that come until it
 * has started again wait. */
static void what_is_killed_was_there_until_then(void **state)
{
    (void)state;
    enum { REQUESTS = 20, AT_ONCE = 5 };
    struct load l;
    struct cluster_request all[REQUESTS];
    struct cluster_function f = {.workload = at_once(&l, REQUESTS, 1, 1e6),
                                 .replicas = 1,
                                 .start_s = 0.15,
                                 .memory_limit_bytes = 100,
                                 .memory_base_bytes = 60,
                                 .memory_per_request_bytes = 10};
    struct cluster *c = new_cluster(NODE(1), &f, 1);
    double there_s = 0, waiting_s = 0, ready_s = 0;
    assert_int_equal(cluster_peek(c, 0, 1, all, REQUESTS), REQUESTS);
    for (size_t first = 0; first < REQUESTS; first += AT_ONCE) {
        double killed_s = fmax(all[first + AT_ONCE - 1].arrives_s, ready_s);
        for (size_t i = first; i < first + AT_ONCE; i++) {
            there_s += killed_s - all[i].arrives_s;
            waiting_s += fmax(ready_s - all[i].arrives_s, 0);
        }
        ready_s = killed_s + f.start_s;
    }
    cluster_run(c, 2);
    const struct cluster_stats *s = cluster_stats(c, 0);
    assert_accounted(c, 0);
    assert_int_equal(s->memory_kills, REQUESTS / AT_ONCE);
    assert_int_equal(s->lost, REQUESTS);
    assert_true(waiting_s > 0);
    assert_near(s->in_flight_s, there_s, 1e-9);
    assert_near(s->waiting_s, waiting_s, 1e-9);
    cluster_free(c);
}

/* Runs until right after the next crash, and says when that is. */
static double next_crash_s(struct cluster *c)
{
    uint32_t before = cluster_stats(c, 0)->crashes;
    double low_s = cluster_now_s(c), high_s = low_s + 60;
    while (high_s - low_s > 1e-10) {
        double middle_s = (low_s + high_s) / 2;
        struct cluster *other = cluster_clone(c);
        cluster_run(other, middle_s);
        *(cluster_stats(other, 0)->crashes > before ? &high_s : &low_s) = middle_s;
        cluster_free(other);
    }
    cluster_run(c, high_s);
    return high_s;
}

static void what_a_crash_loses_was_there_until_then(void **state)
{
    (void)state;
    enum { REQUESTS = 40 };
    struct load l;
    struct cluster_request all[REQUESTS];
    struct cluster_function f = {
        .workload = at_once(&l, REQUESTS, 1, 1e6), .replicas = 1, .crash_per_hour = 36000};
    struct cluster *c = new_cluster(NODE(1), &f, 1);
    double there_s = 0;
    uint64_t lost = 0;
    assert_int_equal(cluster_peek(c, 0, 1, all, REQUESTS), REQUESTS);
    while (lost < REQUESTS) {
        double crash_s = next_crash_s(c);
        for (; lost < cluster_stats(c, 0)->lost; lost++)
            there_s += crash_s - all[lost].arrives_s;
        assert_accounted(c, 0);
    }
    assert_true(cluster_stats(c, 0)->crashes > 3);
    assert_near(cluster_stats(c, 0)->in_flight_s, there_s, 1e-8);
    cluster_free(c);
}

/* --- the same again -------------------------------------------------------------------------- */
static void run_wildly(struct cluster *c, uint64_t seed)
{
    struct random r = random_stream(seed, 0);
    for (double at_s = cluster_now_s(c); at_s < 20; at_s += 0.7) {
        cluster_run(c, at_s);
        do_anything(&r, c, 0);
    }
    cluster_run(c, 30);
}

static void a_seed_gives_the_same_bits(void **state)
{
    (void)state;
    struct random r = random_stream(3, 3);
    struct load l;
    struct cluster_function f = any_function(&r, &l);
    f.crash_per_hour = 500;
    struct cluster *a = new_cluster(NODE(2), &f, 1), *b = new_cluster(NODE(2), &f, 1);
    run_wildly(a, 1);
    run_wildly(b, 1);
    assert_memory_equal(cluster_stats(a, 0), cluster_stats(b, 0), sizeof(struct cluster_stats));
    assert_memory_equal(cluster_latency(a, 0), cluster_latency(b, 0),
                        sizeof(struct cluster_latency));
    cluster_reset(b, 5);
    run_wildly(b, 1);
    assert_memory_equal(cluster_stats(a, 0), cluster_stats(b, 0), sizeof(struct cluster_stats));
    cluster_reset(b, 6);
    run_wildly(b, 1);
    assert_memory_not_equal(cluster_stats(a, 0), cluster_stats(b, 0), sizeof(struct cluster_stats));
    cluster_free(a);
    cluster_free(b);
}

static void a_clone_goes_on_alike(void **state)
{
    (void)state;
    struct random r = random_stream(4, 3);
    struct load l;
    struct cluster_function f = any_function(&r, &l);
    struct cluster *a = new_cluster(NODE(2), &f, 1);
    cluster_run(a, 3.3);
    cluster_scale(a, 0, 4);
    struct cluster *b = cluster_clone(a);
    run_wildly(a, 2);
    run_wildly(b, 2);
    assert_memory_equal(cluster_stats(a, 0), cluster_stats(b, 0), sizeof(struct cluster_stats));
    cluster_free(a);
    assert_int_equal(cluster_stats(b, 0)->lost, 0);
    cluster_free(b);
}

static void what_is_done_does_not_change_the_requests(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {.workload = poisson(&l, 40, 10), .replicas = 1};
    struct cluster_request first[512], second[512];
    struct cluster *a = new_cluster(NODE(4), &f, 1), *b = new_cluster(NODE(4), &f, 1);
    cluster_scale(b, 0, 7);
    cluster_run(a, 10);
    cluster_run(b, 10);
    size_t n = cluster_peek(a, 0, 10, first, 512);
    assert_int_equal(cluster_peek(b, 0, 10, second, 512), n);
    assert_memory_equal(first, second, n * sizeof(*first));
    cluster_begin_interval(a);
    cluster_run(a, 20);
    assert_int_equal(cluster_stats(a, 0)->arrived, n);
    cluster_free(a);
    cluster_free(b);
}

/* --- arrivals -------------------------------------------------------------------------------- */
static void exact_slots_have_their_numbers(void **state)
{
    (void)state;
    struct load l;
    at_once(&l, 100, 60, 1);
    l.counts[1] = 0;
    l.counts[2] = 7;
    l.counts[3] = 1000;
    l.workload.slot_count = 4;
    struct cluster_function f = {.workload = &l.workload, .replicas = 1};
    struct cluster *c = new_cluster(NODE(4), &f, 1);
    for (int slot = 0; slot < 6; slot++) {
        cluster_begin_interval(c);
        cluster_run(c, 60 * (slot + 1));
        assert_int_equal(cluster_stats(c, 0)->arrived, slot < 4 ? (uint64_t)l.counts[slot] : 0);
    }
    cluster_free(c);
    l.workload.repeat = true;
    c = new_cluster(NODE(4), &f, 1);
    cluster_run(c, 240 * 10);
    assert_int_equal(cluster_stats(c, 0)->arrived, 11070);
    cluster_free(c);
}

/* Evenly at random within the slot: Kolmogorov's distance to the uniform distribution. */
static void exact_slots_spread_evenly(void **state)
{
    (void)state;
    static struct cluster_request all[20000];
    struct load l;
    at_once(&l, 20000, 60, 1);
    struct cluster_function f = {.workload = &l.workload, .replicas = 1};
    struct cluster *c = new_cluster(NODE(4), &f, 1);
    assert_int_equal(cluster_peek(c, 0, 60, all, 20000), 20000);
    double worst = 0;
    for (int i = 0; i < 20000; i++)
        worst = fmax(worst, fabs(all[i].arrives_s / 60 - (i + 0.5) / 20000));
    assert_true(worst < 1.95 / sqrt(20000)); /* 0.1 % level */
    cluster_free(c);
}

static void demands_follow_their_quantiles(void **state)
{
    (void)state;
    static struct cluster_request all[40000];
    struct load l;
    at_once(&l, 40000, 60, 1);
    l.quantiles[0] = (struct trace_quantile){0, 2};
    l.quantiles[1] = (struct trace_quantile){0.5, 10};
    l.quantiles[2] = (struct trace_quantile){0.99, 50};
    l.quantiles[3] = (struct trace_quantile){1, 200};
    l.workload.quantile_count = 4;
    struct cluster_function f = {.workload = &l.workload, .replicas = 1};
    struct cluster *c = new_cluster(NODE(4), &f, 1);
    size_t below[3] = {0};
    assert_int_equal(cluster_peek(c, 0, 60, all, 40000), 40000);
    for (int i = 0; i < 40000; i++) {
        below[0] += all[i].cpu_ms < 10;
        below[1] += all[i].cpu_ms < 50;
        below[2] += all[i].cpu_ms < 30;
        assert_true(all[i].cpu_ms >= 2 && all[i].cpu_ms <= 200);
    }
    assert_near((double)below[0] / 40000, 0.5, 0.02);
    assert_near((double)below[1] / 40000, 0.99, 0.002);
    assert_near((double)below[2] / 40000, 0.745, 0.02);
    cluster_free(c);
}

/* --- the life of replicas -------------------------------------------------------------------- */
static struct cluster_state state_of(const struct cluster *c)
{
    struct cluster_state s;
    cluster_state(c, 0, &s);
    return s;
}

static void replicas_start_after_their_delay(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {
        .workload = poisson(&l, 10, 1), .replicas = 1, .request_milli = 500, .start_s = 2};
    struct cluster *c = new_cluster(NODE(4), &f, 1);
    cluster_run(c, 10);
    cluster_scale(c, 0, 3);
    cluster_run(c, 11.9);
    assert_int_equal(state_of(c).ready, 1);
    assert_int_equal(state_of(c).starting, 2);
    cluster_run(c, 12.1);
    assert_int_equal(state_of(c).ready, 3);
    assert_near(cluster_stats(c, 0)->requested_cpu_s, 0.5 * (10 + 3 * 2.1), 1e-9);
    assert_near(cluster_stats(c, 0)->replica_s, 10 + 3 * 2.1, 1e-9);
    cluster_free(c);
}

static void without_room_replicas_wait_for_it(void **state)
{
    (void)state;
    struct load a, b;
    const struct cluster_function functions[] = {
        {.workload = poisson(&a, 10, 1), .replicas = 1, .request_milli = 900, .start_s = 1},
        {.workload = poisson(&b, 10, 1), .replicas = 1, .request_milli = 900},
    };
    struct cluster *c = new_cluster(NODE(2), functions, 2);
    cluster_scale(c, 0, 2);
    cluster_run(c, 5);
    assert_int_equal(state_of(c).unscheduled, 1);
    cluster_scale(c, 1, 0);
    cluster_run(c, 5.5);
    assert_int_equal(state_of(c).starting, 1);
    cluster_run(c, 6.5);
    assert_int_equal(state_of(c).ready, 2);
    cluster_free(c);
}

/* As the scheduler's queue does, whichever function it is of. */
static void room_goes_to_the_oldest(void **state)
{
    (void)state;
    struct load a, b, d;
    const struct cluster_function functions[] = {
        {.workload = poisson(&a, 10, 1), .replicas = 1, .request_milli = 900},
        {.workload = poisson(&b, 10, 1), .replicas = 1, .request_milli = 900},
        {.workload = poisson(&d, 10, 1), .replicas = 0, .request_milli = 900},
    };
    struct cluster *c = new_cluster(NODE(2), functions, 3);
    struct cluster_state waiting;
    cluster_scale(c, 2, 1);
    cluster_run(c, 1);
    cluster_scale(c, 0, 2);
    cluster_scale(c, 1, 0);
    cluster_run(c, 2);
    cluster_state(c, 2, &waiting);
    assert_int_equal(waiting.unscheduled, 0);
    assert_int_equal(state_of(c).unscheduled, 1);
    cluster_scale(c, 2, 0);
    cluster_run(c, 3);
    assert_int_equal(state_of(c).unscheduled, 0);
    cluster_free(c);
}

static void a_resize_takes_its_time_and_its_room(void **state)
{
    (void)state;
    struct load l;
    struct cluster_replica r;
    struct cluster_function f = {.workload = poisson(&l, 10, 1),
                                 .replicas = 1,
                                 .request_milli = 500,
                                 .limit_milli = 500,
                                 .resize_s = 0.5};
    struct cluster *c = new_cluster(NODE(1), &f, 1);
    cluster_resize(c, 0, 800, 900);
    cluster_run(c, 0.4);
    cluster_replicas(c, 0, &r, 1);
    assert_near(r.request_milli, 500, 0);
    assert_int_equal(state_of(c).resizing, 1);
    cluster_run(c, 0.6);
    cluster_replicas(c, 0, &r, 1);
    assert_near(r.request_milli, 800, 0);
    assert_near(r.limit_milli, 900, 0);
    cluster_resize(c, 0, 1500, 1500); /* more than the node has */
    cluster_run(c, 60);
    cluster_replicas(c, 0, &r, 1);
    assert_near(r.request_milli, 800, 0);
    cluster_resize(c, 0, 1000, 1000);
    cluster_run(c, 61);
    assert_int_equal(state_of(c).resizing, 0);
    cluster_free(c);
}

static void replicas_that_go_finish_their_requests(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {
        .workload = at_once(&l, 8, 0.001, 1000), .replicas = 2, .dispatch = CLUSTER_ROUND_ROBIN};
    struct cluster *c = new_cluster(NODE(8), &f, 1);
    cluster_run(c, 0.5);
    cluster_scale(c, 0, 1);
    assert_int_equal(state_of(c).draining, 1);
    cluster_run(c, 1.1);
    assert_int_equal(state_of(c).draining, 0);
    assert_int_equal(state_of(c).ready, 1);
    assert_int_equal(cluster_stats(c, 0)->completed, 8);
    assert_int_equal(cluster_stats(c, 0)->lost, 0);
    cluster_free(c);
}

/* The first request after a pause of zero replicas waits for the start and pays the cold start. */
static void from_zero_requests_wait_and_pay_the_cold_start(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {.workload = at_once(&l, 1, 1e-9, 50),
                                 .goal_ms = 100,
                                 .start_s = 2,
                                 .cold_cpu_ms = 400,
                                 .overhead_ms = 3};
    struct cluster *c = new_cluster(NODE(8), &f, 1);
    cluster_run(c, 10);
    assert_int_equal(state_of(c).waiting, 1);
    assert_int_equal(state_of(c).overdue, 1);
    cluster_scale(c, 0, 1);
    cluster_run(c, 20);
    assert_near(mean_ms(c, 0), 10000 + 2000 + 450 + 3, 1e-6);
    assert_near(cluster_stats(c, 0)->waiting_s, 10 + 2, 1e-9);
    assert_int_equal(cluster_stats(c, 0)->late, 1);
    cluster_free(c);
}

static void crashes_come_at_their_rate_and_lose_requests(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {
        .workload = poisson(&l, 50, 10), .replicas = 4, .start_s = 1, .crash_per_hour = 60};
    struct cluster *c = new_cluster(NODE(8), &f, 1);
    cluster_run(c, 36000);
    const struct cluster_stats *s = cluster_stats(c, 0);
    assert_accounted(c, 0);
    /* up for a minute on average, then a second to start */
    assert_near(s->crashes, 4 * 36000 / 61.0, 0.06);
    assert_near((double)s->lost / s->crashes, 50 * 0.010 / 4, 0.25); /* Little, on one replica */
    cluster_free(c);
}

static void beyond_its_memory_a_replica_is_killed(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = {.workload = at_once(&l, 5, 0.001, 1000),
                                 .replicas = 1,
                                 .start_s = 1,
                                 .memory_limit_bytes = 100,
                                 .memory_base_bytes = 60,
                                 .memory_per_request_bytes = 10};
    struct cluster *c = new_cluster(NODE(8), &f, 1);
    cluster_run(c, 0.5);
    assert_int_equal(cluster_stats(c, 0)->memory_kills, 1);
    assert_int_equal(cluster_stats(c, 0)->lost, 5);
    assert_int_equal(state_of(c).starting, 1);
    cluster_free(c);
    f.memory_limit_bytes = 110;
    c = new_cluster(NODE(8), &f, 1);
    cluster_run(c, 5);
    assert_int_equal(cluster_stats(c, 0)->completed, 5);
    cluster_free(c);
}

/* --- memory that is resized ------------------------------------------------------------------ */
#define BYTES_NODE(bytes_) (&(struct cluster_node){.cores = 8, .memory_bytes = (bytes_)})

/* A replica has twenty bytes in use, and ten more for each request. */
static struct cluster_function of_memory(const struct trace_function *workload, double limit_bytes)
{
    return (struct cluster_function){.workload = workload,
                                     .replicas = 1,
                                     .request_milli = 100,
                                     .start_s = 1,
                                     .resize_s = 0.5,
                                     .memory_limit_bytes = limit_bytes,
                                     .memory_base_bytes = 20,
                                     .memory_per_request_bytes = 10};
}

static struct cluster_replica first_replica(const struct cluster *c, size_t function)
{
    struct cluster_replica r;
    assert_true(cluster_replicas(c, function, &r, 1) > 0);
    return r;
}

static void assert_limit(const struct cluster *c, size_t function, double bytes)
{
    assert_near(first_replica(c, function).memory_limit_bytes, bytes, 0);
}

static void a_resize_of_memory_takes_its_time(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = of_memory(at_once(&l, 0, 1, 1), 50);
    struct cluster *c = new_cluster(BYTES_NODE(100), &f, 1);
    cluster_resize_memory(c, 0, 90);
    cluster_run(c, 0.4);
    assert_limit(c, 0, 50);
    assert_int_equal(state_of(c).resizing, 1);
    assert_near(state_of(c).memory_limit_bytes, 90, 0);
    cluster_run(c, 0.6);
    assert_limit(c, 0, 90);
    assert_int_equal(state_of(c).resizing, 0);
    cluster_resize_memory(c, 0, 40);
    cluster_run(c, 2);
    assert_limit(c, 0, 40);
    /* the larger counts while one is on its way, up as down */
    assert_near(cluster_stats(c, 0)->reserved_byte_s, 90 * 1.1 + 40 * 0.9, 1e-9);
    cluster_reset(c, 5);
    assert_limit(c, 0, 50);
    cluster_free(c);
}

/* Four requests come after the first second, and need sixty bytes. */
static void the_limit_in_force_is_what_kills(void **state)
{
    (void)state;
    for (int in_time = 0; in_time < 2; in_time++) {
        struct load l;
        struct cluster_function f = of_memory(at_once(&l, 0, 1, 5000), 50);
        l.counts[1] = 4;
        l.workload.slot_count = 2;
        struct cluster *c = new_cluster(BYTES_NODE(100), &f, 1);
        struct cluster_request all[4];
        assert_int_equal(cluster_peek(c, 0, 9, all, 4), 4);
        cluster_run(c, in_time ? 0.4 : all[3].arrives_s - 0.4);
        cluster_resize_memory(c, 0, 60);
        cluster_run(c, 3);
        assert_int_equal(cluster_stats(c, 0)->memory_kills, !in_time);
        assert_int_equal(cluster_stats(c, 0)->lost, in_time ? 0 : 4);
        cluster_free(c);
    }
}

static void a_resize_of_memory_waits_for_its_room(void **state)
{
    (void)state;
    struct load a, b;
    const struct cluster_function functions[] = {of_memory(at_once(&a, 0, 1, 1), 50),
                                                 of_memory(at_once(&b, 0, 1, 1), 40)};
    struct cluster *c = new_cluster(BYTES_NODE(100), functions, 2);
    cluster_resize_memory(c, 0, 70); /* ten are free, it needs twenty */
    cluster_run(c, 60);
    assert_limit(c, 0, 50);
    assert_int_equal(state_of(c).resizing, 1);
    cluster_resize_memory(c, 1, 20);
    cluster_run(c, 60.9); /* that takes its time, and then this does */
    assert_limit(c, 1, 20);
    assert_limit(c, 0, 50);
    cluster_run(c, 61.1);
    assert_limit(c, 0, 70);
    cluster_free(c);
}

static void replicas_wait_for_memory(void **state)
{
    (void)state;
    struct load a, b;
    const struct cluster_function functions[] = {of_memory(at_once(&a, 0, 1, 1), 40),
                                                 of_memory(at_once(&b, 0, 1, 1), 30)};
    struct cluster *c = new_cluster(BYTES_NODE(100), functions, 2);
    cluster_resize_memory(c, 0, 70); /* all that is left */
    cluster_run(c, 1);
    assert_limit(c, 0, 70);
    cluster_scale(c, 1, 2);
    struct cluster_state waiting;
    cluster_run(c, 60);
    cluster_state(c, 1, &waiting);
    assert_int_equal(waiting.unscheduled, 1);
    cluster_resize_memory(c, 0, 35);
    cluster_run(c, 60.4); /* what goes counts until it has gone */
    cluster_state(c, 1, &waiting);
    assert_int_equal(waiting.unscheduled, 1);
    cluster_run(c, 60.6);
    cluster_state(c, 1, &waiting);
    assert_int_equal(waiting.starting, 1);
    assert_near(waiting.memory_limit_bytes, 30, 0);
    cluster_free(c);
}

/* As a pod's resize is: the CPU that there is room for waits for the memory that there is not. */
static void cpu_and_memory_are_one_resize(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = of_memory(at_once(&l, 0, 1, 1), 50);
    struct cluster *c = new_cluster(BYTES_NODE(100), &f, 1);
    cluster_resize(c, 0, 300, 0);
    cluster_resize_memory(c, 0, 110);
    cluster_run(c, 60);
    assert_near(first_replica(c, 0).request_milli, 100, 0);
    assert_limit(c, 0, 50);
    cluster_resize_memory(c, 0, 90);
    cluster_run(c, 61);
    assert_near(first_replica(c, 0).request_milli, 300, 0);
    assert_limit(c, 0, 90);
    cluster_resize(c, 0, 9000, 0); /* and the other way round */
    cluster_resize_memory(c, 0, 60);
    cluster_run(c, 120);
    assert_limit(c, 0, 90);
    cluster_free(c);
}

/* Three requests of two seconds have fifty bytes in use until they end. */
static void memory_in_use_is_not_taken(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = of_memory(at_once(&l, 3, 1e-6, 2000), 50);
    struct cluster *c = new_cluster(BYTES_NODE(100), &f, 1);
    cluster_run(c, 0.2);
    cluster_resize_memory(c, 0, 30);
    cluster_resize(c, 0, 300, 0);
    cluster_run(c, 1.9);
    assert_limit(c, 0, 50);
    assert_near(first_replica(c, 0).request_milli, 100, 0);
    assert_int_equal(state_of(c).resizing, 1);
    assert_int_equal(state_of(c).shrinks_waiting, 1);
    cluster_run(c, 2.1);
    assert_limit(c, 0, 30);
    assert_near(first_replica(c, 0).request_milli, 300, 0);
    assert_int_equal(state_of(c).shrinks_waiting, 0);
    assert_near(cluster_stats(c, 0)->reserved_byte_s, 50 * 2 + 30 * 0.1, 1e-5);
    assert_int_equal(cluster_stats(c, 0)->memory_kills, 0);
    assert_int_equal(cluster_stats(c, 0)->completed, 3);
    cluster_resize_memory(c, 0, 15); /* less than it ever has */
    cluster_run(c, 60);
    assert_limit(c, 0, 30);
    cluster_resize_memory(c, 0, 25);
    cluster_run(c, 61);
    assert_limit(c, 0, 25);
    cluster_free(c);
}

/* It waits no longer when the replica is killed, nor when it goes. */
static void who_starts_anew_has_the_new_memory(void **state)
{
    (void)state;
    struct load l;
    struct cluster_function f = of_memory(at_once(&l, 3, 0.5, 60000), 50);
    l.counts[3] = 1; /* at 1.5 s: the straw */
    l.workload.slot_count = 4;
    struct cluster *c = new_cluster(BYTES_NODE(100), &f, 1);
    cluster_run(c, 0.6);
    cluster_resize_memory(c, 0, 30);
    cluster_run(c, 1.4);
    assert_int_equal(state_of(c).shrinks_waiting, 1);
    struct cluster *other = cluster_clone(c);
    cluster_run(c, 2.1);
    assert_int_equal(cluster_stats(c, 0)->memory_kills, 1);
    assert_int_equal(first_replica(c, 0).phase, CLUSTER_STARTING);
    assert_limit(c, 0, 30);
    assert_int_equal(state_of(c).shrinks_waiting, 0);
    cluster_free(c);
    cluster_scale(other, 0, 0);
    assert_int_equal(state_of(other).draining, 1);
    assert_int_equal(state_of(other).shrinks_waiting, 0);
    cluster_free(other);
}

/* Whatever is asked for, replicas have no more memory than their nodes. */
static void no_memory_is_given_twice(void **state)
{
    (void)state;
    const struct cluster_node nodes[] = {{.cores = 4, .memory_bytes = 300},
                                         {.cores = 4, .memory_bytes = 200}};
    struct random r = random_stream(12, 0);
    struct error err = {0};
    int unscheduled = 0, resizing = 0, waiting = 0;
    for (int round = 0; round < 50; round++) {
        struct load loads[3];
        struct cluster_function functions[3];
        for (size_t i = 0; i < 3; i++)
            functions[i] = of_memory(poisson(&loads[i], 4, 200), 40);
        struct cluster *c = cluster_new(&(struct cluster_config){.nodes = nodes,
                                                                 .node_count = 2,
                                                                 .functions = functions,
                                                                 .function_count = 3,
                                                                 .seed = (uint64_t)round},
                                        &err);
        for (double at_s = 0.3; at_s < 20; at_s += 0.3) {
            double given[2] = {0};
            cluster_run(c, at_s);
            for (size_t i = 0; i < 3; i++) {
                struct cluster_replica replicas[32];
                struct cluster_state s;
                do_anything(&r, c, i);
                if (random_below(&r, 2))
                    cluster_resize_memory(c, i, 20 + (double)random_below(&r, 100));
                cluster_state(c, i, &s);
                unscheduled += s.unscheduled;
                resizing += s.resizing;
                waiting += s.shrinks_waiting;
                size_t count = cluster_replicas(c, i, replicas, 32);
                for (size_t k = 0; k < count; k++)
                    if (replicas[k].phase != CLUSTER_UNSCHEDULED)
                        given[replicas[k].node] += replicas[k].memory_limit_bytes;
            }
            for (size_t n = 0; n < 2; n++)
                assert_true(given[n] <= nodes[n].memory_bytes + 1e-9);
        }
        /* all that was given comes back */
        for (size_t i = 0; i < 3; i++)
            cluster_scale(c, i, 0);
        cluster_run(c, 1000);
        cluster_resize_memory(c, 0, 300);
        cluster_resize_memory(c, 1, 200);
        cluster_resize(c, 0, 100, 0);
        cluster_resize(c, 1, 100, 0);
        cluster_scale(c, 0, 1);
        cluster_scale(c, 1, 1);
        cluster_run(c, 1002);
        for (size_t i = 0; i < 2; i++) {
            struct cluster_state s;
            cluster_state(c, i, &s);
            assert_int_equal(s.unscheduled, 0);
        }
        cluster_free(c);
    }
    assert_true(unscheduled > 0 && resizing > 0 && waiting > 0);
}

static void requests_go_where_dispatch_says(void **state)
{
    (void)state;
    struct load l;
    struct cluster_replica r[4];
    struct cluster_function f = {.workload = at_once(&l, 8, 0.001, 1e6), .replicas = 4};
    for (f.dispatch = CLUSTER_ROUND_ROBIN; f.dispatch <= CLUSTER_LEAST_LOADED; f.dispatch++) {
        struct cluster *c = new_cluster(NODE(100), &f, 1);
        cluster_run(c, 1);
        assert_int_equal(cluster_replicas(c, 0, r, 4), 4);
        for (int i = 0; i < 4; i++)
            assert_int_equal(r[i].in_flight, 2);
        cluster_free(c);
    }
    f.concurrency = 1;
    f.dispatch = CLUSTER_RANDOM;
    struct cluster *c = new_cluster(NODE(100), &f, 1);
    cluster_run(c, 1);
    assert_int_equal(state_of(c).in_flight, 4);
    assert_int_equal(state_of(c).waiting, 4);
    cluster_free(c);
}

static void settings_that_cannot_be_are_named(void **state)
{
    (void)state;
    struct load l;
    struct error err;
    struct cluster_function f = {.workload = poisson(&l, 1, 1), .start_s = -1};
    struct cluster_config config = {.functions = &f, .function_count = 1};
    assert_null(cluster_new(&config, &err));
    assert_non_null(strstr(err.message, "functions[0].start_s is -1"));
    f.start_s = NAN;
    assert_null(cluster_new(&config, &err));
    f.start_s = 0;
    f.workload = always_ms(&l, 1);
    l.workload.quantile_count = 0;
    assert_null(cluster_new(&config, &err));
    assert_non_null(strstr(err.message, "no CPU demand"));
    l.workload.quantile_count = 2;
    config.nodes = NODE(0);
    config.node_count = 1;
    assert_null(cluster_new(&config, &err));
    assert_non_null(strstr(err.message, "nodes[0]"));
    config.nodes = &(struct cluster_node){.cores = 1, .memory_bytes = 1, .tick_s = 0.2};
    assert_null(cluster_new(&config, &err));
    assert_non_null(strstr(err.message, "nodes[0].tick_s is 0.2"));
    config.function_count = 0;
    assert_null(cluster_new(&config, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mm1_ps_has_the_mean_of_theory),
        cmocka_unit_test(a_function_gets_slower),
        cmocka_unit_test(requests_can_be_known_one_by_one),
        cmocka_unit_test(mg1_ps_is_insensitive),
        cmocka_unit_test(md1_in_a_queue_has_the_mean_of_theory),
        cmocka_unit_test(mmc_has_the_mean_of_theory),
        cmocka_unit_test(mmc_is_near_to_theory),
        cmocka_unit_test(replicas_with_a_core_each_are_separate_queues),
        cmocka_unit_test(quantiles_are_those_of_theory),
        cmocka_unit_test(shares_are_those_of_the_example),
        cmocka_unit_test(unused_shares_go_to_others),
        cmocka_unit_test(a_lone_request_bursts_through_its_quota),
        cmocka_unit_test(a_pod_has_a_quota_beside_its_container),
        cmocka_unit_test(until_the_tick_quota_is_overdrawn),
        cmocka_unit_test(a_busy_replica_uses_its_limit_and_no_more),
        cmocka_unit_test(requests_and_cpu_are_conserved),
        cmocka_unit_test(what_is_killed_was_there_until_then),
        cmocka_unit_test(what_a_crash_loses_was_there_until_then),
        cmocka_unit_test(a_seed_gives_the_same_bits),
        cmocka_unit_test(a_clone_goes_on_alike),
        cmocka_unit_test(what_is_done_does_not_change_the_requests),
        cmocka_unit_test(exact_slots_have_their_numbers),
        cmocka_unit_test(exact_slots_spread_evenly),
        cmocka_unit_test(demands_follow_their_quantiles),
        cmocka_unit_test(replicas_start_after_their_delay),
        cmocka_unit_test(without_room_replicas_wait_for_it),
        cmocka_unit_test(room_goes_to_the_oldest),
        cmocka_unit_test(a_resize_takes_its_time_and_its_room),
        cmocka_unit_test(replicas_that_go_finish_their_requests),
        cmocka_unit_test(from_zero_requests_wait_and_pay_the_cold_start),
        cmocka_unit_test(crashes_come_at_their_rate_and_lose_requests),
        cmocka_unit_test(beyond_its_memory_a_replica_is_killed),
        cmocka_unit_test(a_resize_of_memory_takes_its_time),
        cmocka_unit_test(the_limit_in_force_is_what_kills),
        cmocka_unit_test(a_resize_of_memory_waits_for_its_room),
        cmocka_unit_test(replicas_wait_for_memory),
        cmocka_unit_test(cpu_and_memory_are_one_resize),
        cmocka_unit_test(memory_in_use_is_not_taken),
        cmocka_unit_test(who_starts_anew_has_the_new_memory),
        cmocka_unit_test(no_memory_is_given_twice),
        cmocka_unit_test(requests_go_where_dispatch_says),
        cmocka_unit_test(settings_that_cannot_be_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
