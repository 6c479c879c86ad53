/* What is seen, against what was seen while learning: Mahalanobis' distance of blocks. */
#include "rl/drift.h"

#include <string.h>

#define MARGIN   1.25 /* beyond the farthest block that was learned from */
#define RIDGE    1e-4 /* variance that every feature has at least: a hundredth of a range of 1 */
#define PER_TERM 4    /* blocks for each feature, at least */

struct rl_inputs {
    size_t features, block, most;
    struct random random;
    float *kept; /* (most, features): blocks that were learned from */
    size_t kept_count, seen;
    double *mean, *root; /* (features), and (features, features): a triangle whose square they
                            spread by */
    double limit;
    double *sum; /* of the block that is being filled */
    size_t filled;
    uint32_t beyond; /* bit i: the block i ago was */
    double distance;
    bool raised;
};

struct rl_inputs *rl_inputs_new(size_t features, size_t block, size_t most, uint64_t seed,
                                struct error *err)
{
    if (features == 0 || features > RL_MAX_WIDTH || block == 0 || most < PER_TERM * features) {
        error_set(err, ERROR_INVALID,
                  "%zu features, blocks of %zu, %zu of them: must be 1 to %d, at least 1, and at "
                  "least %d for each feature",
                  features, block, most, RL_MAX_WIDTH, PER_TERM);
        return NULL;
    }
    struct rl_inputs *in = xcalloc(1, sizeof(*in));
    *in = (struct rl_inputs){
        .features = features,
        .block = block,
        .most = most,
        .random = random_stream(seed, 0),
        .kept = xcalloc(most * features, sizeof(float)),
        .mean = xcalloc(features, sizeof(double)),
        .root = xcalloc(features * features, sizeof(double)),
        .sum = xcalloc(features, sizeof(double)),
    };
    return in;
}

void rl_inputs_free(struct rl_inputs *in)
{
    if (in == NULL)
        return;
    free(in->kept);
    free(in->mean);
    free(in->root);
    free(in->sum);
    free(in);
}

/* --- blocks ---------------------------------------------------------------------------------- */
static void begin_block(struct rl_inputs *in)
{
    memset(in->sum, 0, in->features * sizeof(*in->sum));
    in->filled = 0;
}

/* True: the block is full, and its sum is now its mean. */
static bool fill_block(struct rl_inputs *in, const float *row)
{
    for (size_t i = 0; i < in->features; i++)
        in->sum[i] += row[i];
    if (++in->filled < in->block)
        return false;
    for (size_t i = 0; i < in->features; i++)
        in->sum[i] /= (double)in->block;
    return true;
}

/* --- learning -------------------------------------------------------------------------------- */
/* Of all blocks seen each is kept as likely as any other. */
static void keep(struct rl_inputs *in)
{
    size_t at = in->kept_count < in->most ? in->kept_count++ : random_below(&in->random, in->seen);
    if (at >= in->most)
        return;
    for (size_t i = 0; i < in->features; i++)
        in->kept[at * in->features + i] = (float)in->sum[i];
}

void rl_inputs_learn(struct rl_inputs *in, const float *row, bool begins)
{
    if (begins)
        begin_block(in);
    if (!fill_block(in, row))
        return;
    in->seen++;
    keep(in);
    begin_block(in);
}

static void measure(struct rl_inputs *in)
{
    size_t n = in->features;
    double count = (double)in->kept_count;
    memset(in->mean, 0, n * sizeof(double));
    memset(in->root, 0, n * n * sizeof(double));
    for (size_t k = 0; k < in->kept_count; k++)
        for (size_t i = 0; i < n; i++)
            in->mean[i] += in->kept[k * n + i] / count;
    for (size_t k = 0; k < in->kept_count; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++)
                in->root[i * n + j] += (in->kept[k * n + i] - in->mean[i]) *
                                       (in->kept[k * n + j] - in->mean[j]) / count;
    for (size_t i = 0; i < n; i++)
        in->root[i * n + i] += RIDGE;
}

/* Cholesky, in place. */
static void take_root(struct rl_inputs *in)
{
    size_t n = in->features;
    double *a = in->root;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(fmax(sum, RIDGE / 2)) : sum / a[j * n + j];
        }
}

/* The square of Mahalanobis' distance, for each feature. `solved` has room for the features. */
static double far_off(const struct rl_inputs *in, double *solved)
{
    size_t n = in->features;
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            solved[i] -= in->root[i * n + k] * solved[k];
        solved[i] /= in->root[i * n + i];
        square += solved[i] * solved[i];
    }
    return square / (double)n;
}

int rl_inputs_seal(struct rl_inputs *in, struct error *err)
{
    size_t n = in->features;
    cleanup_free double *off = xcalloc(n, sizeof(*off));
    if (in->kept_count < PER_TERM * n)
        return error_set(err, ERROR_INVALID, "%zu blocks of %zu features: at least %zu are needed",
                         in->kept_count, n, PER_TERM * n);
    measure(in);
    take_root(in);
    in->limit = 0;
    for (size_t k = 0; k < in->kept_count; k++) {
        for (size_t i = 0; i < n; i++)
            off[i] = in->kept[k * n + i] - in->mean[i];
        in->limit = fmax(in->limit, MARGIN * far_off(in, off));
    }
    rl_inputs_forget(in);
    return 0;
}

/* --- serving --------------------------------------------------------------------------------- */
static int count_bits(uint32_t bits)
{
    int count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

bool rl_inputs_add(struct rl_inputs *in, const float *row)
{
    if (in->limit <= 0 || !fill_block(in, row))
        return in->raised;
    for (size_t i = 0; i < in->features; i++)
        in->sum[i] -= in->mean[i];
    in->distance = far_off(in, in->sum) / in->limit;
    /* what is no number is beyond all that was learned from */
    uint32_t bit = in->distance <= 1 ? 0u : 1u;
    in->beyond = (in->beyond << 1 | bit) & ((1u << RL_INPUTS_WINDOW) - 1);
    int count = count_bits(in->beyond);
    if (count > RL_INPUTS_WINDOW / 2)
        in->raised = true;
    else if (count < RL_INPUTS_WINDOW / 4)
        in->raised = false;
    begin_block(in);
    return in->raised;
}

double rl_inputs_distance(const struct rl_inputs *in)
{
    return in->distance;
}

void rl_inputs_forget(struct rl_inputs *in)
{
    begin_block(in);
    in->beyond = 0;
    in->distance = 0;
    in->raised = false;
}
