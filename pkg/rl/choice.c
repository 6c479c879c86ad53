/* Actions as options of several heads, each by softmax over what is legal. */
#include "rl/rl.h"

int rl_heads_init(struct rl_heads *heads, const size_t *options, size_t count, struct error *err)
{
    *heads = (struct rl_heads){.count = count};
    if (count == 0 || count > RL_MAX_HEADS)
        return error_set(err, ERROR_INVALID, "an action must have 1 to %d parts, not %zu",
                         RL_MAX_HEADS, count);
    for (size_t h = 0; h < count; h++) {
        heads->options[h] = options[h];
        if (options[h] == 0 || options[h] > RL_MAX_OPTIONS - heads->total)
            return error_set(err, ERROR_INVALID,
                             "part %zu of an action has %zu options: must be at least 1, and at "
                             "most %d in all parts together",
                             h, options[h], RL_MAX_OPTIONS);
        heads->total += options[h];
    }
    return 0;
}

/* The likeliest legal option of one head; SIZE_MAX: nothing is legal. */
static size_t find_best(const float *logits, const uint8_t *mask, size_t count)
{
    size_t best = SIZE_MAX;
    for (size_t k = 0; k < count; k++)
        if ((mask == NULL || mask[k]) && (best == SIZE_MAX || logits[k] > logits[best]))
            best = k;
    return best;
}

void rl_best(const struct rl_heads *heads, const float *logits, const uint8_t *mask,
             int32_t *action)
{
    for (size_t h = 0, at = 0; h < heads->count; at += heads->options[h++]) {
        size_t best = find_best(logits + at, mask ? mask + at : NULL, heads->options[h]);
        action[h] = best == SIZE_MAX ? 0 : (int32_t)best;
    }
}

bool rl_is_legal(const struct rl_heads *heads, const uint8_t *mask, const int32_t *action)
{
    for (size_t h = 0, at = 0; h < heads->count; at += heads->options[h++]) {
        if (action[h] < 0 || (size_t)action[h] >= heads->options[h])
            return false;
        if (mask && !mask[at + (size_t)action[h]])
            return false;
    }
    return true;
}

static void find_odds(const float *logits, const uint8_t *mask, size_t count, double *p,
                      double *log_p)
{
    size_t best = find_best(logits, mask, count), alone = best == SIZE_MAX ? 0 : SIZE_MAX;
    double top = logits[alone == 0 ? 0 : best], sum = 0;
    for (size_t k = 0; k < count; k++) {
        bool legal = k == alone || mask == NULL || mask[k];
        log_p[k] = legal ? (double)logits[k] - top : -INFINITY;
        p[k] = legal ? exp(log_p[k]) : 0;
        sum += p[k];
    }
    /* cppcheck-suppress invalidFunctionArg ; the likeliest alone adds 1 */
    double log_sum = log(sum);
    for (size_t k = 0; k < count; k++) {
        p[k] /= sum;
        log_p[k] -= log_sum;
    }
}

void rl_odds(const struct rl_heads *heads, const float *logits, const uint8_t *mask,
             struct rl_odds *odds)
{
    for (size_t h = 0, at = 0; h < heads->count; at += heads->options[h++])
        find_odds(logits + at, mask ? mask + at : NULL, heads->options[h], odds->p + at,
                  odds->log_p + at);
}

static size_t draw(const double *p, size_t count, double left)
{
    size_t last = 0;
    for (size_t k = 0; k < count; k++) {
        left -= p[k];
        if (left < 0)
            return k;
        if (p[k] > 0)
            last = k;
    }
    return last; /* rounding */
}

void rl_draw(const struct rl_heads *heads, const struct rl_odds *odds, struct random *random,
             int32_t *action)
{
    for (size_t h = 0, at = 0; h < heads->count; at += heads->options[h++])
        action[h] = (int32_t)draw(odds->p + at, heads->options[h], random_uniform(random));
}

double rl_log_p(const struct rl_heads *heads, const struct rl_odds *odds, const int32_t *action)
{
    double sum = 0;
    for (size_t h = 0, at = 0; h < heads->count; at += heads->options[h++])
        sum += odds->log_p[at + (size_t)action[h]];
    return sum;
}

double rl_entropy(const struct rl_heads *heads, const struct rl_odds *odds)
{
    double sum = 0;
    for (size_t k = 0; k < heads->total; k++)
        sum -= odds->p[k] > 0 ? odds->p[k] * odds->log_p[k] : 0;
    return sum;
}
