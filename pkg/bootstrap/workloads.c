/* Made-up functions, in wide variety: what is learned is to hold for those that nobody has seen. */
#include "bootstrap/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SLOT_S     5.0
#define MAX_CORES  6.0  /* that a function keeps busy on average, */
#define MAX_RATE   30.0 /* and its mean rate: more of the same teaches little */
#define PEAK_CORES 10.0 /* at its highest: what cannot be had teaches nothing */
#define NEVER_NONE 0.01 /* of the mean rate */
#define TURN       6.283185307179586
#define VARIES     0.1 /* the rate of a function that is known, by its logarithm */

double bootstrap_between(struct random *random, double low, double high)
{
    return low + (high - low) * random_uniform(random);
}

double bootstrap_factor(struct random *random, double low, double high)
{
    return low * pow(high / low, random_uniform(random));
}

/* --- arrivals: how the rate goes, with a mean of about 1 -------------------------------------- */
struct shape {
    struct random *random;
    double *rates;
    size_t count;
};

static void add(const struct shape *s, double from_s, double span_s, double rate)
{
    for (size_t i = (size_t)fmax(from_s / SLOT_S, 0);
         i < s->count && (double)i * SLOT_S < from_s + span_s; i++)
        s->rates[i] += rate;
}

static void steady(const struct shape *s)
{
    add(s, 0, INFINITY, 1);
}

static void daily(const struct shape *s)
{
    double period_s = bootstrap_factor(s->random, 2400, 30000),
           phase = TURN * random_uniform(s->random);
    double amplitude = bootstrap_between(s->random, 0.2, 0.95);
    for (size_t i = 0; i < s->count; i++)
        s->rates[i] += 1 - amplitude * cos(TURN * (double)i * SLOT_S / period_s + phase);
}

/* How often something that comes every so many seconds fits in. */
static size_t times_within(const struct shape *s, double first_s, double every_s)
{
    double left_s = (double)s->count * SLOT_S - first_s;
    return left_s > 0 ? (size_t)ceil(left_s / every_s) : 0;
}

/* A level with short bursts, at random or regular moments, all alike or not. */
static void bursts(const struct shape *s)
{
    double every_s = bootstrap_factor(s->random, 240, 3600),
           times = bootstrap_factor(s->random, 2.5, 60);
    double length_s = fmin(bootstrap_factor(s->random, 20, 300), every_s / 2);
    double spread = random_uniform(s->random) < 0.5 ? 0 : bootstrap_between(s->random, 0, 0.7);
    bool regular = random_uniform(s->random) < 0.3;
    add(s, 0, INFINITY, 1);
    double first_s = every_s * random_uniform(s->random);
    for (size_t i = 0, count = times_within(s, first_s, every_s); i < count; i++) {
        double wait_s = regular ? 0 : (every_s - length_s) * random_uniform(s->random);
        add(s, first_s + (double)i * every_s + wait_s, length_s,
            times * exp(spread * random_normal(s->random)));
    }
}

/* Minute by minute another rate around a level that drifts. */
static void uneven(const struct shape *s)
{
    double sigma = bootstrap_between(s->random, 0.1, 1.2),
           keep = bootstrap_between(s->random, 0, 0.98);
    double state = 0, minute_s = random_uniform(s->random) < 0.5 ? 60 : 15;
    for (size_t i = 0, count = times_within(s, 0, minute_s); i < count; i++) {
        state = keep * state + sqrt(1 - keep * keep) * sigma * random_normal(s->random);
        add(s, (double)i * minute_s, minute_s, exp(state - sigma * sigma / 2));
    }
}

/* So many requests at once, again and again. */
static void timers(const struct shape *s)
{
    double every_s = 60 * floor(bootstrap_factor(s->random, 1, 30)),
           jitter = bootstrap_between(s->random, 0, 20);
    add(s, 0, INFINITY, random_uniform(s->random) < 0.5 ? 0.02 : 0.3);
    double first_s = every_s * random_uniform(s->random);
    for (size_t i = 0, count = times_within(s, first_s, every_s); i < count; i++)
        add(s, first_s + (double)i * every_s + jitter * random_uniform(s->random), SLOT_S,
            every_s / SLOT_S);
}

/* Nothing, then something, and so on. */
static void on_and_off(const struct shape *s)
{
    double on_s = bootstrap_factor(s->random, 60, 3600),
           off_s = bootstrap_factor(s->random, 60, 3600);
    bool on = random_uniform(s->random) < 0.5;
    for (double t = 0; t < (double)s->count * SLOT_S; on = !on) {
        double span_s = (on ? on_s : off_s) * random_exponential(s->random);
        if (on)
            add(s, t, span_s, (on_s + off_s) / on_s);
        t += span_s + SLOT_S;
    }
}

/* Levels that change once in a while and stay. */
static void levels(const struct shape *s)
{
    double stay_s = bootstrap_factor(s->random, 600, 7200),
           spread = bootstrap_between(s->random, 0.3, 1.2);
    for (double t = 0; t < (double)s->count * SLOT_S;) {
        double span_s = stay_s * (0.3 + random_exponential(s->random));
        add(s, t, span_s, exp(spread * random_normal(s->random)));
        t += span_s;
    }
}

static void (*const shapes[])(const struct shape *s) = {
    steady, daily, bursts, bursts, uneven, uneven, timers, on_and_off, levels,
};

static double mean_of(const struct shape *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->rates[i];
    return fmax(sum / (double)s->count, 1e-3);
}

static double peak_of(const struct shape *s)
{
    double most = 1e-3;
    for (size_t i = 0; i < s->count; i++)
        most = fmax(most, s->rates[i]);
    return most;
}

/* --- a function ------------------------------------------------------------------------------ */
/* Nearly all are well below a core, as in the public traces. */
static double draw_rate(struct random *random, double mean_s)
{
    double cores = bootstrap_factor(random, 0.002, MAX_CORES);
    return fmin(fmax(cores / mean_s, 0.02), fmin(MAX_RATE, MAX_CORES / mean_s));
}

int bootstrap_workload(struct random *random, double span_s, struct trace *out, struct error *err)
{
    char text[160];
    double median_ms = bootstrap_factor(random, 2, 4000);
    snprintf(text, sizeof(text), "poisson:rate=1,demand=%.6g,p99=%.6g", median_ms,
             median_ms * bootstrap_factor(random, 1.1, 12));
    if (trace_open(text, out, err) < 0)
        return -1;
    struct trace_function *f = &out->functions[0];
    struct shape s = {.random = random, .count = (size_t)ceil(span_s / SLOT_S)};
    s.rates = xcalloc(s.count, sizeof(*s.rates));
    add(&s, 0, INFINITY, NEVER_NONE);
    for (int parts = random_uniform(random) < 0.3 ? 2 : 1; parts > 0; parts--)
        shapes[random_below(random, ARRAY_LEN(shapes))](&s);
    double mean_s = trace_mean_cpu_ms(f) / 1000;
    double scale = fmin(draw_rate(random, mean_s) / mean_of(&s), PEAK_CORES / mean_s / peak_of(&s));
    for (size_t i = 0; i < s.count; i++)
        s.rates[i] *= scale * SLOT_S;
    free(f->counts);
    f->counts = s.rates;
    f->slot_count = s.count;
    f->slot_s = SLOT_S;
    return 0;
}

/* --- a function that is known ---------------------------------------------------------------- */
/* Where its last hours end at its end. */
static size_t last_hours(const struct trace_function *whole, size_t slots)
{
    size_t beyond = slots % whole->slot_count;
    return beyond > 0 ? whole->slot_count - beyond : 0;
}

int bootstrap_part(struct random *random, const struct bootstrap_subject *subject, double span_s,
                   struct trace *out)
{
    const struct trace_function *whole = subject->workload;
    struct trace_function *f = xcalloc(1, sizeof(*f));
    size_t first = (size_t)random_below(random, whole->slot_count);
    double more = exp(VARIES * random_normal(random));
    *f = *whole;
    f->name = xstrdup(whole->name);
    f->slot_count = (size_t)ceil(span_s / whole->slot_s);
    if (subject->as_it_was) {
        first = last_hours(whole, f->slot_count);
        more = 1;
    }
    f->counts = xcalloc(f->slot_count, sizeof(*f->counts));
    for (size_t i = 0; i < f->slot_count; i++)
        f->counts[i] = more * whole->counts[(first + i) % whole->slot_count];
    f->quantiles = xcalloc(whole->quantile_count + 1, sizeof(*f->quantiles));
    memcpy(f->quantiles, whole->quantiles, whole->quantile_count * sizeof(*f->quantiles));
    *out = (struct trace){.name = xstrdup(whole->name), .functions = f, .function_count = 1};
    return 0;
}
