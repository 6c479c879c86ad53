/* VPA's decaying histogram. A sample's weight is multiplied by 2^(age of the reference / half life)
 * instead of dividing all others, so that adding is cheap; the reference moves when that factor
 * would get too large. */
#include "recommend/recommend.h"

#include <math.h>

#define GROWTH       1.05
#define MIN_WEIGHT   0.0001 /* a bucket below it is empty: a thousandth of VPA's lightest sample */
#define MAX_EXPONENT 100    /* of the decay factor, before the reference moves */
#define MAX_BUCKETS  1024

struct recommend_histogram {
    double first_bucket, half_life_s;
    double reference_s; /* a multiple of the half life */
    bool has_reference;
    double total;
    size_t bucket_count;
    size_t low, high; /* first and last bucket that is not empty; high < low when all are */
    double weights[];
};

static size_t bucket_of(double first_bucket, double value)
{
    if (value < first_bucket)
        return 0;
    double bucket = log(value * (GROWTH - 1) / first_bucket + 1) / log(GROWTH);
    return bucket < MAX_BUCKETS ? (size_t)bucket : MAX_BUCKETS;
}

static double bucket_start(const struct recommend_histogram *h, size_t bucket)
{
    return h->first_bucket * (pow(GROWTH, (double)bucket) - 1) / (GROWTH - 1);
}

struct recommend_histogram *recommend_histogram_new(double first_bucket, double max_value,
                                                    double half_life_s)
{
    double span = log(max_value * (GROWTH - 1) / first_bucket + 1) / log(GROWTH);
    size_t count = span >= 1 && span < MAX_BUCKETS ? (size_t)ceil(span) + 1 : MAX_BUCKETS;
    struct recommend_histogram *h = xcalloc(1, sizeof(*h) + count * sizeof(h->weights[0]));
    h->first_bucket = first_bucket;
    h->half_life_s = half_life_s;
    h->bucket_count = count;
    h->low = count - 1;
    return h;
}

void recommend_histogram_free(struct recommend_histogram *h)
{
    free(h);
}

static void narrow(struct recommend_histogram *h)
{
    while (h->low < h->bucket_count - 1 && h->weights[h->low] < MIN_WEIGHT)
        h->low++;
    while (h->high > 0 && h->weights[h->high] < MIN_WEIGHT)
        h->high--;
}

static void move_reference(struct recommend_histogram *h, double time_s)
{
    double reference = round(time_s / h->half_life_s) * h->half_life_s;
    if (h->has_reference) {
        double factor = exp2(round((h->reference_s - reference) / h->half_life_s));
        h->total *= factor;
        for (size_t i = 0; i < h->bucket_count; i++)
            h->weights[i] *= factor;
        narrow(h);
    }
    h->reference_s = reference;
    h->has_reference = true;
}

static void take_back(struct recommend_histogram *h, size_t bucket, double weight)
{
    double total = h->total - weight, left = h->weights[bucket] - weight;
    h->total = total < MIN_WEIGHT ? 0 : total;
    h->weights[bucket] = left < MIN_WEIGHT ? 0 : left;
    narrow(h);
}

void recommend_histogram_add(struct recommend_histogram *h, double time_s, double value,
                             double weight)
{
    if (!isfinite(time_s) || !isfinite(value) || value < 0 || !isfinite(weight))
        return;
    if (!h->has_reference || time_s > h->reference_s + MAX_EXPONENT * h->half_life_s)
        move_reference(h, time_s);
    weight *= exp2((time_s - h->reference_s) / h->half_life_s);
    size_t bucket = bucket_of(h->first_bucket, value);
    if (bucket >= h->bucket_count)
        bucket = h->bucket_count - 1;
    if (weight < 0) {
        take_back(h, bucket, -weight);
        return;
    }
    h->weights[bucket] += weight;
    h->total += weight;
    if (h->weights[bucket] < MIN_WEIGHT)
        return;
    if (bucket < h->low)
        h->low = bucket;
    if (bucket > h->high)
        h->high = bucket;
}

bool recommend_histogram_empty(const struct recommend_histogram *h)
{
    return h->weights[h->low] < MIN_WEIGHT;
}

double recommend_histogram_percentile(const struct recommend_histogram *h, double q)
{
    if (recommend_histogram_empty(h))
        return NAN;
    double sum = 0;
    size_t bucket = h->low;
    for (; bucket < h->high; bucket++) {
        sum += h->weights[bucket];
        if (sum >= q * h->total)
            break;
    }
    /* The last bucket has no end. */
    return bucket_start(h, bucket < h->bucket_count - 1 ? bucket + 1 : bucket);
}
