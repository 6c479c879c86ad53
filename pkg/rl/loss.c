#include "rl/rl.h"

/* by_log_p × the derivative of log p(action) + by_entropy × that of the entropy:
 * d log p(a) / d logit k = [k = a] - p(k);  d H / d logit k = -p(k) · (log p(k) + H). */
static void derive(const struct rl_heads *heads, const struct rl_odds *odds, const int32_t *action,
                   double by_log_p, double by_entropy, float *d_logits)
{
    for (size_t h = 0, at = 0; h < heads->count; at += heads->options[h++]) {
        const double *p = odds->p + at, *log_p = odds->log_p + at;
        double entropy = 0;
        for (size_t k = 0; k < heads->options[h]; k++)
            entropy -= p[k] > 0 ? p[k] * log_p[k] : 0;
        for (size_t k = 0; k < heads->options[h]; k++) {
            double d = by_log_p * ((k == (size_t)action[h]) - p[k]);
            d -= p[k] > 0 ? by_entropy * p[k] * (log_p[k] + entropy) : 0;
            d_logits[at + k] = (float)d;
        }
    }
}

struct rl_policy_loss rl_policy_loss(const struct rl_heads *heads, const float *logits,
                                     const struct rl_policy_sample *s, double clip,
                                     double entropy_weight, double weight, float *d_logits)
{
    struct rl_odds odds;
    rl_odds(heads, logits, s->mask, &odds);
    double log_ratio = rl_log_p(heads, &odds, s->action) - s->old_log_p, ratio = exp(log_ratio);
    double bounded = ratio > 1 + clip ? 1 + clip : ratio < 1 - clip ? 1 - clip : ratio;
    /* Where the ratio has left its bounds to the good side, nothing pulls any more. */
    bool held = bounded * s->advantage < ratio * s->advantage;
    derive(heads, &odds, s->action, held ? 0 : -s->advantage * ratio * weight,
           -entropy_weight * weight, d_logits);
    return (struct rl_policy_loss){
        .loss = -(held ? bounded : ratio) * s->advantage,
        .entropy = rl_entropy(heads, &odds),
        .kl = ratio - 1 - log_ratio,
        .clipped = fabs(ratio - 1) > clip,
    };
}

double rl_value_loss(double value, double old, double target, double bound, double weight,
                     float *d_value)
{
    double miss = value - target, held = miss;
    if (bound > 0 && fabs(value - old) > bound)
        held = old + copysign(bound, value - old) - target;
    bool is_held = fabs(held) > fabs(miss);
    *d_value = is_held ? 0 : (float)(2 * miss * weight);
    return is_held ? held * held : miss * miss;
}

double rl_cross_entropy(const struct rl_heads *heads, const float *logits, const uint8_t *mask,
                        const int32_t *action, double weight, float *d_logits)
{
    struct rl_odds odds;
    rl_odds(heads, logits, mask, &odds);
    derive(heads, &odds, action, -weight, 0, d_logits);
    return -rl_log_p(heads, &odds, action);
}
