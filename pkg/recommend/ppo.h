/* Between the parts of the recommender ppo. */
#ifndef FAASRL_RECOMMEND_PPO_H
#define FAASRL_RECOMMEND_PPO_H

#include "recommend/internal.h"
#include "recommend/policy.h"

/* --- what is remembered of one MPA (ppo_core.c) ---------------------------------------------- */
struct ppo {
    const struct recommend_policy *policy;
    struct look_memory look;
    struct demand_estimate demand; /* after the last interval */
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
    double asked_milli;    /* CPU of all pods, as last proposed; 0: nothing was */
    double asked_size;     /* that of one */
    double asked_since_s;  /* since when so much was, and not there; NaN: it is */
    double denied_s;       /* when it was last not to be had; NaN: never */
    double reach;          /* CPU that a pod had when nodes last refused it more; NaN: never */
    float usual[POLICY_FEATURE_COUNT];  /* slow means of what the policy sees, */
    double usual_s;                     /* of so much time */
    int32_t choices[POLICY_HEAD_COUNT]; /* its last ones */
};

struct ppo *recommend_ppo_new(void);
void recommend_ppo_free(struct ppo *p);
/* Learns from the interval, once. False: nothing is known of its requests yet. */
bool recommend_ppo_learn(struct ppo *p, const struct look *l);
/* Whether nodes have lately been short of CPU, */
bool recommend_ppo_is_short(const struct ppo *p, double now_s);
/* and the largest pod that they have room for, as far as that is known. */
double recommend_ppo_most_milli(const struct ppo *p, const struct look *l);

/* --- what a policy sees (ppo_features.c) ------------------------------------------------------ */
void recommend_ppo_features(const struct ppo *p, const struct look *l, float *out);
/* Which choices make sense at all. */
void recommend_ppo_mask(const struct ppo *p, const struct look *l, uint8_t *out);
/* Keeps in mind what is usual for it. */
void recommend_ppo_get_used(struct ppo *p, const float *features);

/* --- one decision (ppo.c), and what is said of it (ppo_reason.c) ------------------------------ */
struct ppo_plan {
    const struct look *look;
    float features[POLICY_FEATURE_COUNT];
    uint8_t mask[RL_MAX_OPTIONS];
    const int32_t *choices; /* one per head */
    struct readiness_choice ready;
    double rate, factor; /* to be ready for; on the model's CPU */
    bool is_short;       /* nodes have lately had too little */
};
double recommend_ppo_value(const struct ppo_plan *plan, enum policy_head head);
/* Writes the reason. */
void recommend_ppo_tell(const struct ppo *p, const struct ppo_plan *plan,
                        struct recommendation *out);

#endif
