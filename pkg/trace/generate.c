/* Made-up workloads: mean numbers of a Poisson process, second by second. */
#include "base/random.h"
#include "trace/internal.h"

#include <math.h>

#define TURN 6.283185307179586

static void set_arrivals(struct trace_function *f, double slot_s, size_t slots)
{
    f->slot_s = slot_s;
    f->slot_count = slots;
    f->counts = xcalloc(slots, sizeof(*f->counts));
    f->poisson = true;
    f->repeat = true;
}

void generate_poisson(const struct generator *g, struct trace_function *out)
{
    set_arrivals(out, g->span_s, 1);
    out->counts[0] = g->rate * g->span_s;
}

/* Adds `rate` from begin to end, which may lie within seconds. */
static void add_between(struct trace_function *f, double begin_s, double end_s, double rate)
{
    for (size_t i = (size_t)begin_s; i < f->slot_count && (double)i < end_s; i++)
        f->counts[i] += (fmin((double)i + 1, end_s) - fmax((double)i, begin_s)) * rate;
}

/* Each span of `every` seconds has one burst in it, wholly, at a random moment. */
void generate_bursty(const struct generator *g, struct trace_function *out)
{
    struct random random = random_stream(g->seed, 0);
    size_t bursts = (size_t)ceil(g->span_s / g->every_s);
    set_arrivals(out, 1, (size_t)g->span_s);
    add_between(out, 0, g->span_s, g->rate);
    for (size_t i = 0; i < bursts; i++) {
        double wait_s = (g->every_s - g->length_s) * random_uniform(&random);
        double begin_s = (double)i * g->every_s + wait_s;
        add_between(out, begin_s, begin_s + g->length_s, (g->burst - 1) * g->rate);
    }
}

/* rate × (1 − amplitude × cos(2π t / period)), integrated over each second: begins at the least. */
void generate_diurnal(const struct generator *g, struct trace_function *out)
{
    double turn = TURN / g->period_s, before = 0;
    set_arrivals(out, 1, (size_t)g->span_s);
    for (size_t i = 0; i < out->slot_count; i++) {
        double wave = sin(turn * (double)(i + 1));
        out->counts[i] = fmax(0, g->rate * (1 - g->amplitude * (wave - before) / turn));
        before = wave;
    }
}

/* Points of the normal distribution; the tails are cut at one in a thousand. */
void generate_demand(double median_ms, double p99_ms, struct trace_function *out)
{
    static const struct {
        double share, z;
    } normal[] = {
        {0, -3.090232},   {0.01, -2.326348}, {0.05, -1.644854}, {0.1, -1.281552},
        {0.25, -0.67449}, {0.5, 0},          {0.75, 0.67449},   {0.9, 1.281552},
        {0.95, 1.644854}, {0.99, 2.326348},  {1, 3.090232},
    };
    const double z99 = normal[9].z;
    out->demand = TRACE_DEMAND_QUANTILES;
    out->quantile_count = ARRAY_LEN(normal);
    out->quantiles = xcalloc(ARRAY_LEN(normal), sizeof(*out->quantiles));
    for (size_t i = 0; i < ARRAY_LEN(normal); i++)
        out->quantiles[i] = (struct trace_quantile){
            normal[i].share, median_ms * pow(p99_ms / median_ms, normal[i].z / z99)};
}
