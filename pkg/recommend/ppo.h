/* Between the parts of the recommender ppo. */
#ifndef FAASRL_RECOMMEND_PPO_H
#define FAASRL_RECOMMEND_PPO_H

#include "recommend/internal.h"
#include "recommend/policy.h"

/* --- what is remembered of one MPA (ppo_core.c) ---------------------------------------------- */
struct ppo {
    const struct recommend_policy *policy;
    struct look_memory look;
    struct window *rates;
    struct sizing *sizing;
    struct readiness *readiness;
    double level, slow_level; /* rates of a minute and of ten */
    double trim; /* logarithm of the factor on the model's CPU that late requests ask for */
    double late, requests; /* decayed sums: what of the allowed late requests is spent, */
    double lost;           /* and how many of them on peaks that nothing was ready for */
    double span_s;         /* of the last interval, */
    double late_now;       /* its late requests */
    double short_now;      /* share of its requests that nothing was ready for */
    double planned_rate;   /* what the last proposal was made for */
    double aim;            /* share of the allowed late requests, as last chosen */
    double surprised_s;    /* when a peak last found nothing ready; NaN: never */
};

struct ppo *recommend_ppo_new(void);
void recommend_ppo_free(struct ppo *p);
/* Learns from the interval, once. False: nothing is known of its requests yet. */
bool recommend_ppo_learn(struct ppo *p, const struct look *l);

/* --- what a policy sees (ppo_features.c) ------------------------------------------------------ */
void recommend_ppo_features(const struct ppo *p, const struct look *l, float *out);
/* Which choices make sense at all. */
void recommend_ppo_mask(const struct ppo *p, const struct look *l, uint8_t *out);

#endif
