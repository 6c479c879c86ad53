/* histogram_quantile as Prometheus computes it, in the same steps and the same order of floating
 * point operations, so that both give the same figure. */
#include "prometheus/prometheus.h"

#include <math.h>

static int compare_bounds(const void *a, const void *b)
{
    const struct prom_bucket *x = a, *y = b;
    return (x->upper > y->upper) - (x->upper < y->upper);
}

/* Sorts unless it is sorted already, as it nearly always is. False when a bound is no number. */
static bool sort_buckets(struct prom_bucket *buckets, size_t n)
{
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        if (isnan(buckets[i].upper))
            return false;
        if (i > 0 && buckets[i].upper < buckets[i - 1].upper)
            sorted = false;
    }
    if (!sorted)
        qsort(buckets, n, sizeof(*buckets), compare_bounds);
    return true;
}

/* Buckets with the same bound ("1" and "1.0") are one. */
static size_t merge_equal(struct prom_bucket *buckets, size_t n)
{
    size_t last = 0;
    for (size_t i = 1; i < n; i++) {
        if (buckets[i].upper == buckets[last].upper)
            buckets[last].count += buckets[i].count;
        else
            buckets[++last] = buckets[i];
    }
    return last + 1;
}

/* Counts that fall with a rising bound come from rates of buckets scraped at different moments, and
 * from buckets that were lost: each is at least as large as the one below it. */
static void make_monotonic(struct prom_bucket *buckets, size_t n)
{
    double max = buckets[0].count;
    for (size_t i = 1; i < n; i++) {
        if (buckets[i].count > max)
            max = buckets[i].count;
        else if (buckets[i].count < max)
            buckets[i].count = max;
    }
}

/* The first of n buckets that holds the rank, or n. */
static size_t find_rank(const struct prom_bucket *buckets, size_t n, double rank)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (buckets[middle].count >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

double prom_quantile(double q, struct prom_bucket *buckets, size_t n)
{
    if (isnan(q) || n == 0)
        return (double)NAN;
    if (q < 0 || q > 1)
        return q < 0 ? -(double)INFINITY : (double)INFINITY;
    if (!sort_buckets(buckets, n) || buckets[n - 1].upper != (double)INFINITY)
        return (double)NAN;
    n = merge_equal(buckets, n);
    make_monotonic(buckets, n);
    if (n < 2 || buckets[n - 1].count == 0)
        return (double)NAN;

    double rank = q * buckets[n - 1].count;
    size_t b = find_rank(buckets, n - 1, rank);
    if (b == n - 1)
        return buckets[n - 2].upper;
    if (b == 0 && buckets[0].upper <= 0)
        return buckets[0].upper;
    double start = 0, end = buckets[b].upper, count = buckets[b].count;
    if (b > 0) {
        start = buckets[b - 1].upper;
        count -= buckets[b - 1].count;
        rank -= buckets[b - 1].count;
    }
    return start + (end - start) * (rank / count);
}

double prom_share_above(double bound, const struct prom_bucket *buckets, size_t n)
{
    if (isnan(bound) || n < 2 || !(buckets[n - 1].count > 0))
        return (double)NAN;
    size_t b = 0;
    while (b < n - 1 && buckets[b].upper < bound)
        b++;
    double start = b > 0 ? buckets[b - 1].upper : 0, within = b > 0 ? buckets[b - 1].count : 0;
    if (b < n - 1 && buckets[b].upper > start)
        within += (buckets[b].count - within) * fmax(bound - start, 0) / (buckets[b].upper - start);
    return 1 - within / buckets[n - 1].count;
}
