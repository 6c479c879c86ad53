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

/* --- arrivals -------------------------------------------------------------------------------- */
void arrivals_init(struct arrivals *a, const struct trace_function *f, uint64_t seed,
                   uint64_t stream)
{
    *a = (struct arrivals){.workload = f,
                           .random = random_stream(seed, stream),
                           .slower_from_s = f->works        ? -INFINITY
                                            : f->slower > 0 ? f->slower_from_s
                                                            : INFINITY};
    arrivals_next_slot(a);
}

bool arrivals_next_slot(struct arrivals *a)
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

double arrivals_slowdown(const struct arrivals *a)
{
    const struct trace_function *f = a->workload;
    return f->works ? f->works[(a->slot - 1) % f->slot_count] : f->slower;
}
