/* The simulator: requests per second, memory, and a day of many functions. */
#include "bench.h"

#include "base/parallel.h"
#include "base/random.h"
#include "sim/sim.h"
#include "trial/trial.h"

#include <math.h>

/* --- one queue ------------------------------------------------------------------------------- */
static double requests_per_s(const struct cluster_node *node, const struct cluster_function *f,
                             double requests)
{
    struct error err;
    struct cluster *c = cluster_new(&(struct cluster_config){.nodes = node,
                                                             .node_count = node ? 1 : 0,
                                                             .functions = f,
                                                             .function_count = 1,
                                                             .seed = 1},
                                    &err);
    double span_s = requests / f->workload->counts[0], t = bench_cpu_s();
    for (double at_s = 15; at_s <= span_s; at_s += 15)
        cluster_run(c, at_s);
    double figure = (double)cluster_stats(c, 0)->completed / (bench_cpu_s() - t);
    cluster_free(c);
    return figure;
}

/* M/M/4 at 70 %, as the peers in peers.py simulate it. */
struct figure bench_sim_mmc(void)
{
    double rate = 280;
    const struct trace_function w = {.slot_s = 1,
                                     .counts = &rate,
                                     .slot_count = 1,
                                     .poisson = true,
                                     .repeat = true,
                                     .demand = TRACE_DEMAND_EXPONENTIAL,
                                     .mean_cpu_ms = 10};
    const struct cluster_node node = {.cores = 4, .memory_bytes = INFINITY};
    const struct cluster_function f = {.workload = &w, .replicas = 1, .concurrency = 4};
    double figure = requests_per_s(&node, &f, 1e7);
    return (struct figure){"sim_requests_per_s", "/s", NULL, figure, NAN, 1e7, true};
}

/* A function as people run it: 8 replicas, demand by percentiles, counts by the second. */
struct figure bench_sim_replicas(void)
{
    double rate = 480;
    struct trace_quantile q[] = {{0, 1},     {0.01, 2},  {0.25, 5}, {0.5, 8},
                                 {0.75, 12}, {0.99, 40}, {1, 60}};
    const struct trace_function w = {.slot_s = 1,
                                     .counts = &rate,
                                     .slot_count = 1,
                                     .repeat = true,
                                     .quantiles = q,
                                     .quantile_count = ARRAY_LEN(q)};
    const struct cluster_function f = {.workload = &w, .replicas = 8, .request_milli = 1000};
    double figure = requests_per_s(NULL, &f, 1e7);
    return (struct figure){"sim_8_replicas_requests_per_s", "/s", NULL, figure, NAN, 1e7, true};
}

/* --- one decision of the environment ---------------------------------------------------------- */
/* Ten functions that hardly have a request; each changes replicas and CPU by a step or not. */
struct figure bench_sim_step(void)
{
    const char *settings[] = {"functions", "10", "trace", "poisson:rate=0.0001", NULL};
    enum { STEPS = 20000 };
    struct error err;
    struct sim *sim = sim_open("default", settings, &err);
    if (sim == NULL)
        abort();
    struct random r = random_stream(1, 0);
    double t = bench_cpu_s();
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < 10 * sim_shape(sim)->action_size; i++)
            sim_block(sim)->actions[i] = (int32_t)(1 + random_below(&r, 3));
        sim_step(sim);
    }
    double us = (bench_cpu_s() - t) / STEPS * 1e6;
    sim_free(sim);
    return (struct figure){"sim_step_us", "us", NULL, us, NAN, 20, false};
}

/* --- memory ---------------------------------------------------------------------------------- */
static double heap_after(double requests, double cpu_ms)
{
    double count = requests;
    struct trace_quantile q[] = {{0, cpu_ms}, {1, cpu_ms}};
    const struct trace_function w = {
        .slot_s = 1000, .counts = &count, .slot_count = 1, .quantiles = q, .quantile_count = 2};
    const struct cluster_function f = {.workload = &w, .replicas = 1};
    struct error err;
    double before = bench_heap_bytes();
    struct cluster *c =
        cluster_new(&(struct cluster_config){.functions = &f, .function_count = 1}, &err);
    cluster_run(c, 1000);
    double bytes = bench_heap_bytes() - before;
    cluster_free(c);
    return bytes;
}

/* What requests need that are all in flight, beyond as many that are done at once. */
static double bytes_per_request(double requests)
{
    return (heap_after(requests, 1e9) - heap_after(requests, 0.01)) / requests;
}

/* The same for 16 times as many: it is in proportion. */
struct figure bench_sim_memory(void)
{
    double bytes = bytes_per_request(1 << 20);
    return (struct figure){"sim_bytes_per_request_in_flight", "B", NULL, bytes, NAN, 64, false};
}

struct figure bench_sim_memory_less(void)
{
    double bytes = bytes_per_request(1 << 16);
    return (struct figure){"sim_bytes_per_request_of_65536", "B", NULL, bytes, NAN, 64, false};
}

/* After hours of 100 requests a second, with half of the core used. */
static double heap_after_hours(double hours)
{
    double rate = 100;
    const struct trace_function w = {.slot_s = 1,
                                     .counts = &rate,
                                     .slot_count = 1,
                                     .poisson = true,
                                     .repeat = true,
                                     .demand = TRACE_DEMAND_EXPONENTIAL,
                                     .mean_cpu_ms = 5};
    const struct cluster_node node = {.cores = 1, .memory_bytes = INFINITY};
    const struct cluster_function f = {.workload = &w, .replicas = 1};
    struct error err;
    double before = bench_heap_bytes();
    struct cluster *c = cluster_new(
        &(struct cluster_config){
            .nodes = &node, .node_count = 1, .functions = &f, .function_count = 1, .seed = 1},
        &err);
    cluster_run(c, hours * 3600);
    double bytes = bench_heap_bytes() - before;
    cluster_free(c);
    return bytes;
}

/* A hundred times as many requests that have come and gone leave nothing behind. Only the most that
 * were ever in flight at once are a few more. */
struct figure bench_sim_memory_of_hours(void)
{
    double ratio = heap_after_hours(100) / heap_after_hours(1);
    return (struct figure){"sim_heap_of_100h_against_1h", "", NULL, ratio, NAN, 1.25, false};
}

/* --- a day ----------------------------------------------------------------------------------- */
enum { FUNCTIONS = 1000, MINUTES = 480 };

struct day {
    struct trace_function workloads[FUNCTIONS];
    double counts[FUNCTIONS][MINUTES];
    struct trace_quantile quantiles[FUNCTIONS][4];
    struct api_spec spec;
    struct trial_choice choice;
    uint64_t requests[FUNCTIONS]; /* that were simulated */
};

/* As in the Azure trace: rates and durations over many decades, half of the functions timers, a few
 * with most of the traffic, some that come in bursts. */
static void make_function(struct day *d, size_t i)
{
    struct random r = random_stream(2019, i);
    double per_minute = exp(2.5 * random_normal(&r) - 1.5),
           median_ms = exp(1.5 * random_normal(&r) + 4);
    bool timer = random_below(&r, 2) == 0, bursty = random_below(&r, 5) == 0;
    uint64_t every = 1 + random_below(&r, 15);
    for (size_t m = 0; m < MINUTES; m++) {
        double burst = bursty && m % 60 < 3 ? 10 : 1;
        d->counts[i][m] =
            timer ? m % every == 0 : floor(per_minute * burst * 2 * random_uniform(&r));
    }
    const struct trace_quantile q[4] = {
        {0, median_ms / 3}, {0.5, median_ms}, {0.99, median_ms * 4}, {1, median_ms * 6}};
    for (size_t k = 0; k < 4; k++)
        d->quantiles[i][k] = q[k];
    d->workloads[i] = (struct trace_function){.slot_s = 60,
                                              .counts = d->counts[i],
                                              .slot_count = MINUTES,
                                              .quantiles = d->quantiles[i],
                                              .quantile_count = 4,
                                              .memory_bytes = NAN};
}

static void try_function(void *arg, size_t i)
{
    struct day *d = arg;
    struct trial_result result;
    struct error err;
    const struct trial_function f = {.workload = &d->workloads[i], .spec = &d->spec};
    const struct trial_config config = {.functions = &f,
                                        .function_count = 1,
                                        .defaults = trial_default_function,
                                        .choice = &d->choice,
                                        .interval_s = 15,
                                        .span_s = MINUTES * 60,
                                        .seed = 1};
    if (trial_run(&config, &result, &err) < 0)
        abort();
    d->requests[i] = result.requests;
}

/* 1,000 functions, 8 hours, the threshold recommender every 15 s: on all cores, by the wall clock.
 */
void bench_sim_day(struct figure out[BENCH_DAY])
{
    struct day *d = xcalloc(1, sizeof(*d));
    struct error err;
    for (size_t i = 0; i < FUNCTIONS; i++)
        make_function(d, i);
    trial_default_spec(&d->spec);
    if (trial_choose("threshold", &d->choice, &err) < 0)
        abort();
    double t = bench_wall_s();
    parallel_for(parallel_cores(), FUNCTIONS, try_function, d);
    t = bench_wall_s() - t;
    double requests = 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        requests += (double)d->requests[i];
    trial_choice_clear(&d->choice);
    free(d);
    out[0] = (struct figure){"sim_1000_functions_8h_s", "s", NULL, t, NAN, 60, false};
    out[1] = (struct figure){"sim_1000_functions_8h_requests", "", NULL, requests, NAN, NAN, true};
}
