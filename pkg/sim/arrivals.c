#include "arrivals.h"

/* --- demand ---------------------------------------------------------------------------------- */
static void add_piece(struct demand *d, size_t *count, const struct trace_quantile *from,
                      const struct trace_quantile *to)
{
    double width = to->share - from->share;
    if (!(width > 0))
        return; /* a jump: the pieces on both sides of it say all */
    double slope_s = (to->cpu_ms - from->cpu_ms) / 1000 / width;
    d->pieces[(*count)++] = (struct demand_piece){
        .until_share = to->share,
        .base_s = from->cpu_ms / 1000 - slope_s * from->share,
        .slope_s = slope_s,
    };
}

void demand_init(struct demand *d, const struct trace_function *f)
{
    *d = (struct demand){0};
    if (f->demand == TRACE_DEMAND_EXPONENTIAL) {
        d->mean_s = f->mean_cpu_ms / 1000;
        return;
    }
    size_t n = f->quantile_count, count = 0;
    struct trace_quantile first = {0, f->quantiles[0].cpu_ms},
                          last = {1, f->quantiles[n - 1].cpu_ms};
    d->pieces = xcalloc(n + 1, sizeof(*d->pieces));
    add_piece(d, &count, &first, &f->quantiles[0]);
    for (size_t i = 1; i < n; i++)
        add_piece(d, &count, &f->quantiles[i - 1], &f->quantiles[i]);
    add_piece(d, &count, &f->quantiles[n - 1], &last);
    d->pieces[count - 1].until_share = INFINITY; /* so that a search always ends */
    for (size_t i = 0, piece = 0; i < DEMAND_GUIDE; i++) {
        while ((double)i / DEMAND_GUIDE >= d->pieces[piece].until_share)
            piece++;
        d->guide[i] = (uint16_t)piece;
    }
}

void demand_clear(struct demand *d)
{
    free(d->pieces);
    d->pieces = NULL;
}

static inline double demand_at(const struct demand *d, double share)
{
    const struct demand_piece *piece = &d->pieces[d->guide[(size_t)(share * DEMAND_GUIDE)]];
    while (share >= piece->until_share)
        piece++;
    return piece->base_s + piece->slope_s * share;
}

/* --- arrivals -------------------------------------------------------------------------------- */
/* Goes on to the next slot that has requests; false: there is none. */
static bool next_slot(struct arrivals *a)
{
    const struct trace_function *f = a->workload;
    for (uint64_t empty = 0; empty <= f->slot_count; empty++) {
        if (f->slot_count == 0 || (!f->repeat && a->slot >= f->slot_count))
            break;
        double count = f->counts[a->slot % f->slot_count];
        a->at_s = (double)a->slot * f->slot_s;
        a->slot_end_s = (double)++a->slot * f->slot_s;
        a->left = f->poisson ? count / f->slot_s
                             : floor(count) + (random_uniform(&a->random) < count - floor(count));
        if (f->poisson ? count > 0 : a->left >= 1)
            return true;
    }
    a->left = 0;
    a->at_s = a->slot_end_s = INFINITY;
    return false;
}

void arrivals_init(struct arrivals *a, const struct trace_function *f, uint64_t seed,
                   uint64_t stream)
{
    *a = (struct arrivals){.workload = f,
                           .random = random_stream(seed, stream),
                           .slower_from_s = f->works        ? -INFINITY
                                            : f->slower > 0 ? f->slower_from_s
                                                            : INFINITY};
    next_slot(a);
}

/* --- one after the other --------------------------------------------------------------------- */
/* How many times the usual CPU the request at at_s needs, once that may be more or less. */
static double slowdown(const struct arrivals *a)
{
    const struct trace_function *f = a->workload;
    return f->works ? f->works[(a->slot - 1) % f->slot_count] : f->slower;
}

/* So many gaps, exponential with mean 1, and demands: in two vectors, where logarithms do not wait
 * for each other. */
static void draw(struct random *r, const struct demand *d, size_t n, double *gaps, double *cpu_s)
{
    for (size_t i = 0; i < n; i++) {
        gaps[i] = 1 - random_uniform(r);
        cpu_s[i] = random_uniform(r);
    }
    for (size_t i = 0; i < n; i++)
        gaps[i] = random_minus_log(gaps[i]);
    if (d->mean_s > 0)
        for (size_t i = 0; i < n; i++)
            cpu_s[i] = d->mean_s * random_minus_log(1 - cpu_s[i]);
    else
        for (size_t i = 0; i < n; i++)
            cpu_s[i] = demand_at(d, cpu_s[i]);
}

static inline void add(struct arrivals *a, double at_s, double cpu_s)
{
    if (at_s >= a->slower_from_s)
        cpu_s *= slowdown(a);
    a->at_s = at_s;
    a->ahead[a->drawn++] = (struct arrival){at_s, cpu_s};
}

/* False: the first is beyond the slot. */
static bool draw_poisson(struct arrivals *a, const struct demand *d)
{
    double gaps[ARRIVALS_AHEAD], cpu_s[ARRIVALS_AHEAD];
    double expected = a->left * (a->slot_end_s - a->at_s);
    size_t n = expected < ARRIVALS_AHEAD - 1 ? 1 + (size_t)expected : ARRIVALS_AHEAD;
    struct random began = a->random;
    draw(&a->random, d, n, gaps, cpu_s);
    for (size_t i = 0; i < n; i++) {
        double at_s = a->at_s + gaps[i] / a->left;
        if (at_s < a->slot_end_s) {
            add(a, at_s, cpu_s[i]);
            continue;
        }
        /* Nothing behind this gap has been drawn. */
        a->random = began;
        for (size_t k = 0; k < 2 * i + 1; k++)
            random_bits(&a->random);
        return next_slot(a) && i == 0;
    }
    return false;
}

/* 1 - exp(-x), x >= 0. */
static inline double fall(double x)
{
    return x < 0.02 ? x * (1 - x * (0.5 - x * (1.0 / 6 - x * (1.0 / 24)))) : -expm1(-x);
}

/* Each is the first of k points that are spread evenly at random over what is left of the slot. */
static void draw_exact(struct arrivals *a, const struct demand *d)
{
    double gaps[ARRIVALS_AHEAD], cpu_s[ARRIVALS_AHEAD];
    if (a->left < 1 && !next_slot(a))
        return;
    size_t n = a->left < ARRIVALS_AHEAD ? (size_t)a->left : ARRIVALS_AHEAD;
    draw(&a->random, d, n, gaps, cpu_s);
    for (size_t i = 0; i < n; i++) {
        add(a, a->at_s + (a->slot_end_s - a->at_s) * fall(gaps[i] / a->left), cpu_s[i]);
        a->left--;
    }
}

void arrivals_draw(struct arrivals *a, const struct demand *d)
{
    a->next = a->drawn = 0;
    if (!a->workload->poisson)
        draw_exact(a, d);
    else
        while (draw_poisson(a, d))
            ;
    if (a->drawn == 0)
        a->ahead[a->drawn++] = (struct arrival){INFINITY, 0};
}
