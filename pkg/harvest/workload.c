/* Functions and invocations like those of Azure Functions in 2019. Where a number is published it
 * is taken; what nobody measured is chosen here once, and docs/harvest.md says so. */
#include "harvest/harvest.h"

#include "base/random.h"

/* Published fits over functions: execution time log-normal, memory Burr. */
#define TIME_LOG_MEAN   (-0.38)
#define TIME_LOG_SPREAD 2.36
#define LEAST_TIME_S    0.001
#define MOST_TIME_S     600.0 /* the platform's limit */
#define MEMORY_C        11.652
#define MEMORY_K        0.221
#define MEMORY_SCALE_MB 107.083
/* As in a sample of the trace: half of the functions have a p99 above e^1.2 times the median of
 * their times, and memory varies a fifth as much as time. */
#define INPUT_SPREAD     0.5
#define MEMORY_BY_INPUT  0.2
#define PARALLEL_BY_SIZE 0.5
/* Nobody measured these. */
#define SEQUENTIAL_SHARE  0.5 /* of functions: one core whatever the input */
#define MOST_FIXED_SHARE  0.5 /* of the time on one core */
#define MISJUDGED_SPREAD  0.5 /* of the logarithm of what users ask for over what is needed */
#define POPULARITY_SPREAD 1.0
/* Every fifth function comes by a clock and two in five come in bursts. */
#define PERIODIC_SHARE 0.2
#define BURSTY_SHARE   0.4
#define BURST_SIZE     5
#define BURST_S        10.0

const struct harvest_cluster harvest_simulation = {
    .workers = 20, .capacity = {8, 2048}, .most = {8, 512}, .step = {1, 64}};
const struct harvest_cluster harvest_openwhisk = {
    .workers = 10, .capacity = {8, 32768}, .most = {8, 512}, .step = {1, 64}};
const struct harvest_workload_config harvest_azure = {
    .functions = 1000, .invocations = 85470, .occupancy = 0.5, .noise_low = 1, .noise_high = 1};
/* The noise is that of the paper's Fixed RM, whose mean is 1.09 and whose p98 is 1.27. */
const struct harvest_workload_config harvest_applications = {
    .functions = 10, .invocations = 268, .occupancy = 0.5, .noise_low = 0.9, .noise_high = 1.28};

/* --- one invocation ----------------------------------------------------------------------------
 */
double harvest_execution_s(const struct harvest_demand *d, const double *given)
{
    double time_s = d->fixed_s + d->work_s / fmin(given[HARVEST_CPU], d->parallelism);
    return time_s * fmax(1, d->memory_mb / given[HARVEST_MEMORY]);
}

void harvest_peak(const struct harvest_demand *d, const double *given, double *peak)
{
    peak[HARVEST_CPU] = fmin(given[HARVEST_CPU], d->parallelism);
    peak[HARVEST_MEMORY] = fmin(given[HARVEST_MEMORY], d->memory_mb);
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static struct harvest_demand draw_demand(const struct harvest_function *f,
                                         const struct harvest_cluster *c, struct random *random)
{
    double size = exp(f->spread * random_normal(random));
    double time_s = clamp(f->one_core_s * size, LEAST_TIME_S, MOST_TIME_S);
    double cores = f->parallelism > 1 ? round(f->parallelism * pow(size, PARALLEL_BY_SIZE)) : 1;
    return (struct harvest_demand){
        .fixed_s = time_s * f->fixed_share,
        .work_s = time_s * (1 - f->fixed_share),
        .parallelism = clamp(cores, 1, c->most[HARVEST_CPU]),
        .memory_mb = fmin(f->memory_mb * pow(size, MEMORY_BY_INPUT), c->most[HARVEST_MEMORY]),
    };
}

/* --- functions ---------------------------------------------------------------------------------
 */
static double draw_burr(struct random *random)
{
    double above = 1 - random_uniform(random); /* in (0, 1] */
    return MEMORY_SCALE_MB * pow(pow(above, -1 / MEMORY_K) - 1, 1 / MEMORY_C);
}

/* Users ask for memory, more or less as much as they need, and cores come in proportion. */
static void draw_user(struct harvest_function *f, const struct harvest_cluster *c,
                      struct random *random)
{
    double steps = c->most[HARVEST_MEMORY] / c->step[HARVEST_MEMORY];
    double asked_mb = f->memory_mb * exp(MISJUDGED_SPREAD * random_normal(random));
    double asked = clamp(ceil(asked_mb / c->step[HARVEST_MEMORY]), 1, steps);
    f->user[HARVEST_MEMORY] = asked * c->step[HARVEST_MEMORY];
    double cores = c->most[HARVEST_CPU] * asked / steps;
    f->user[HARVEST_CPU] = ceil(cores / c->step[HARVEST_CPU]) * c->step[HARVEST_CPU];
}

static void draw_function(struct harvest_function *f, const struct harvest_cluster *c,
                          struct random *random)
{
    f->home = random_below(random, c->workers);
    f->one_core_s = clamp(exp(TIME_LOG_MEAN + TIME_LOG_SPREAD * random_normal(random)),
                          LEAST_TIME_S, MOST_TIME_S);
    f->fixed_share = MOST_FIXED_SHARE * random_uniform(random);
    f->parallelism = 1;
    if (random_uniform(random) >= SEQUENTIAL_SHARE)
        f->parallelism = 2 + (double)random_below(random, (uint64_t)c->most[HARVEST_CPU] - 1);
    f->memory_mb = clamp(draw_burr(random), 1, c->most[HARVEST_MEMORY]);
    f->spread = 2 * INPUT_SPREAD * random_uniform(random);
    draw_user(f, c, random);
}

/* --- arrivals ----------------------------------------------------------------------------------
 */
/* How many invocations each function has: by popularity, all of them together as asked for. */
static size_t *draw_counts(const struct harvest_workload *load, struct random *random)
{
    size_t n = load->function_count, left = load->invocation_count;
    size_t *counts = xcalloc(n, sizeof(*counts));
    cleanup_free double *weights = xcalloc(n, sizeof(*weights));
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += weights[i] = exp(POPULARITY_SPREAD * random_normal(random));
    for (size_t i = 0; i < n; i++) {
        counts[i] = (size_t)((double)load->invocation_count * weights[i] / sum);
        left -= counts[i];
    }
    for (size_t i = 0; i < n && left > 0; i++, left--) /* less than one was cut off each */
        counts[i]++;
    return counts;
}

enum arrivals { PERIODIC, POISSON, BURSTY };

static enum arrivals draw_arrivals(struct random *random)
{
    double u = random_uniform(random);
    return u < PERIODIC_SHARE ? PERIODIC : u < PERIODIC_SHARE + BURSTY_SHARE ? BURSTY : POISSON;
}

static void draw_times(struct harvest_invocation *at, size_t count, double span_s,
                       struct random *random)
{
    enum arrivals kind = draw_arrivals(random);
    double phase = random_uniform(random), burst_s = 0;
    for (size_t i = 0; i < count; i++) {
        if (kind == BURSTY && i % BURST_SIZE == 0)
            burst_s = random_uniform(random) * span_s;
        double chance = random_uniform(random);
        at[i].arrival_s = kind == PERIODIC ? ((double)i + phase) * span_s / (double)count
                          : kind == BURSTY ? burst_s + chance * BURST_S
                                           : chance * span_s;
    }
}

static int compare_arrivals(const void *a, const void *b)
{
    const struct harvest_invocation *x = a, *y = b;
    if (x->arrival_s != y->arrival_s)
        return x->arrival_s < y->arrival_s ? -1 : 1;
    return (x->function > y->function) - (x->function < y->function);
}

static void draw_invocation(struct harvest_workload *load, size_t i, uint32_t function,
                            const struct harvest_workload_config *config,
                            const struct harvest_cluster *cluster, struct random *random)
{
    const struct harvest_function *f = &load->functions[function];
    struct harvest_invocation *to = &load->invocations[i];
    to->function = function;
    to->demand = draw_demand(f, cluster, random);
    to->user_s = harvest_execution_s(&to->demand, f->user);
    to->noise =
        config->noise_low + (config->noise_high - config->noise_low) * random_uniform(random);
}

/* The span in which the users' cores take up as much as they should. */
static double find_span_s(const struct harvest_workload *load, const struct harvest_cluster *c,
                          double occupancy)
{
    double core_s = 0;
    for (size_t i = 0; i < load->invocation_count; i++) {
        const struct harvest_invocation *v = &load->invocations[i];
        core_s += v->user_s * load->functions[v->function].user[HARVEST_CPU];
    }
    return core_s / (occupancy * (double)c->workers * c->capacity[HARVEST_CPU]);
}

void harvest_workload_make(const struct harvest_workload_config *config,
                           const struct harvest_cluster *cluster, uint64_t seed,
                           struct harvest_workload *out)
{
    struct random random = random_stream(seed, 31);
    *out = (struct harvest_workload){
        .functions = xcalloc(config->functions, sizeof(*out->functions)),
        .function_count = config->functions,
        .invocations = xcalloc(config->invocations, sizeof(*out->invocations)),
        .invocation_count = config->invocations,
    };
    for (size_t i = 0; i < config->functions; i++)
        draw_function(&out->functions[i], cluster, &random);
    cleanup_free size_t *counts = draw_counts(out, &random);
    for (size_t f = 0, at = 0; f < config->functions; f++)
        for (size_t k = 0; k < counts[f]; k++)
            draw_invocation(out, at++, (uint32_t)f, config, cluster, &random);
    out->span_s = find_span_s(out, cluster, config->occupancy);
    for (size_t f = 0, at = 0; f < config->functions; at += counts[f++])
        draw_times(out->invocations + at, counts[f], out->span_s, &random);
    qsort(out->invocations, out->invocation_count, sizeof(*out->invocations), compare_arrivals);
}

void harvest_workload_clear(struct harvest_workload *load)
{
    free(load->functions);
    free(load->invocations);
    *load = (struct harvest_workload){0};
}
