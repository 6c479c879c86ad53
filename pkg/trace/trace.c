#include "trace/trace.h"

#include <math.h>

void trace_clear(struct trace *trace)
{
    for (size_t i = 0; i < trace->function_count; i++) {
        struct trace_function *f = &trace->functions[i];
        free(f->name);
        free(f->counts);
        free(f->works);
        free(f->quantiles);
    }
    free(trace->functions);
    free(trace->name);
    *trace = (struct trace){0};
}

/* --- arrivals ------------------------------------------------------------------------------- */
double trace_span_s(const struct trace_function *f)
{
    return f->slot_s * (double)f->slot_count;
}

static double sum(const double *values, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += values[i];
    return total;
}

double trace_requests(const struct trace_function *f)
{
    return sum(f->counts, f->slot_count);
}

/* --- demand --------------------------------------------------------------------------------- */
/* Straight lines between the points, flat before the first and behind the last one. */
double trace_mean_cpu_ms(const struct trace_function *f)
{
    if (f->demand == TRACE_DEMAND_EXPONENTIAL)
        return f->mean_cpu_ms;
    const struct trace_quantile *q = f->quantiles, *last = q + f->quantile_count - 1;
    double mean = q->share * q->cpu_ms + (1 - last->share) * last->cpu_ms;
    for (; q < last; q++)
        mean += (q[1].share - q->share) * (q->cpu_ms + q[1].cpu_ms) / 2;
    return mean;
}

double trace_cpu_quantile_ms(const struct trace_function *f, double share)
{
    if (f->demand == TRACE_DEMAND_EXPONENTIAL)
        return -f->mean_cpu_ms * log1p(-share);
    const struct trace_quantile *q = f->quantiles, *last = q + f->quantile_count - 1;
    while (q < last && q[1].share <= share)
        q++;
    if (q == last || share <= q->share)
        return q->cpu_ms;
    return q->cpu_ms + (q[1].cpu_ms - q->cpu_ms) * (share - q->share) / (q[1].share - q->share);
}

double trace_slowdown(const struct trace_function *f, double time_s)
{
    if (f->works)
        return f->works[(size_t)(fmax(0, time_s) / f->slot_s) % f->slot_count];
    return f->slower > 0 && time_s >= f->slower_from_s ? f->slower : 1;
}

double trace_default_goal_ms(const struct trace_function *f)
{
    return 2 * trace_cpu_quantile_ms(f, 0.99);
}

/* --- classes --------------------------------------------------------------------------------
 * By the rates in pieces of at least 15 s, an autoscaler's interval (a minute in Azure traces):
 *
 *   bursty   at least 1 % of the requests come in pieces with more than 3 times the median rate,
 *            and at least 1 request per second: as many as make a 99th percentile miss its goal
 *   sparse   otherwise, less than 1 request per second in the mean
 *   steady   all others */
#define PIECE_S     15
#define BURST_RATIO 3
#define BURST_SHARE 0.01
#define BUSY_RATE   1.0

/* Rounding must not decide about a rate that is just so. */
#define SLIGHTLY (1 - 1e-9)

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rates of the pieces, ascending. */
static double *sorted_rates(const struct trace_function *f, size_t *count)
{
    size_t slots = (size_t)fmax(1, ceil(PIECE_S / f->slot_s));
    *count = f->slot_count / slots + (f->slot_count % slots != 0);
    double *rates = xcalloc(*count, sizeof(*rates));
    for (size_t i = 0; i < *count; i++) {
        size_t rest = f->slot_count - i * slots, n = rest < slots ? rest : slots;
        rates[i] = sum(f->counts + i * slots, n) / ((double)n * f->slot_s);
    }
    qsort(rates, *count, sizeof(*rates), compare_doubles);
    return rates;
}

enum trace_class trace_classify(const struct trace_function *f)
{
    double requests = trace_requests(f), in_bursts = 0;
    if (!(requests > 0))
        return TRACE_SPARSE;
    size_t count;
    cleanup_free double *rates = sorted_rates(f, &count);
    double total = sum(rates, count), least = BUSY_RATE * SLIGHTLY;
    double threshold = fmax(rates[count / 2] * BURST_RATIO, least);
    for (size_t i = count; i-- > 0 && rates[i] > threshold;)
        in_bursts += rates[i];
    if (in_bursts >= BURST_SHARE * total)
        return TRACE_BURSTY;
    return requests / trace_span_s(f) < least ? TRACE_SPARSE : TRACE_STEADY;
}

const char *trace_class_name(enum trace_class class_)
{
    static const char *const names[TRACE_CLASS_COUNT] = {
        [TRACE_SPARSE] = "sparse", [TRACE_STEADY] = "steady", [TRACE_BURSTY] = "bursty"};
    return names[class_];
}
