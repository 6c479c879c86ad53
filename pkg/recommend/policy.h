/* What the recommender ppo decides by: a network that sees the features of one MPA and makes one
 * choice per head, each a correction of what the model-based core would do. ppo-steps decides by
 * one of another kind, whose choices are steps of replicas and CPU.
 *
 * A policy never changes once it is made, so that any number of MPAs and threads share it; holding
 * and releasing it may be done in any thread. docs/ppo.md tells the features and the choices. */
#ifndef FAASRL_RECOMMEND_POLICY_H
#define FAASRL_RECOMMEND_POLICY_H

#include "rl/checkpoint.h"

/* --- what a policy sees and chooses ---------------------------------------------------------- */
enum policy_head {                /* options are in the order of the head's values */
                   POLICY_LATE,   /* share of the allowed late requests to aim at in the long run */
                   POLICY_RISK,   /* what may be lost to peaks that nothing is ready for */
                   POLICY_MARGIN, /* on top of the rate of now */
                   POLICY_CPU,    /* factor on the CPU of the model, for this interval */
                   POLICY_SPLIT,  /* between replicas and CPU */
                   POLICY_HEAD_COUNT,
};
enum policy_split { SPLIT_CHEAPEST, SPLIT_FEWEST, SPLIT_KEEP, SPLIT_COUNT };

#define POLICY_MAX_OPTIONS   8  /* of a head */
#define POLICY_FEATURE_COUNT 26 /* each from -1 to 1 */

struct policy_head_info {
    const char *name;
    size_t options;
    double values[POLICY_MAX_OPTIONS];
    int32_t neutral; /* the core's own */
};
extern const struct policy_head_info recommend_policy_heads[POLICY_HEAD_COUNT];
extern const char *const recommend_policy_features[POLICY_FEATURE_COUNT];

/* Of ppo-steps: the state default of docs/environment.md. */
#define POLICY_STEPS_FEATURES 17

enum policy_kind { POLICY_OF_CORRECTIONS, POLICY_OF_STEPS };

/* All of that as a checkpoint has it; and the heads of corrections alone. */
void recommend_policy_describe(enum policy_kind kind, struct rl_interface *out);
void recommend_policy_heads_init(struct rl_heads *out);

/* --- policies -------------------------------------------------------------------------------- */
struct recommend_policy;

/* Of steps where its fact "formulation" is "default", else of corrections. Fails, naming the
 * difference, where the checkpoint is for other features or choices. A fact "off" names features
 * and heads of corrections, with commas between, that it does without. */
struct recommend_policy *recommend_policy_new(const struct rl_checkpoint *from, struct error *err);
struct recommend_policy *recommend_policy_read(const char *path, struct error *err);
/* From an encoded checkpoint. */
struct recommend_policy *recommend_policy_decode(const void *data, size_t len, struct error *err);

/* One that someone else speaks for: how training lets the recommender do as it wants to see. mask
 * has a 1 for each legal option of all heads. off: as the fact above, or NULL. */
typedef void recommend_choose(void *arg, const float *features, const uint8_t *mask,
                              int32_t *choices);
struct recommend_policy *recommend_policy_by(recommend_choose *choose, void *arg, const char *off,
                                             struct error *err);

/* Both are as if the pointer were not const: who holds a policy cannot change it. */
const struct recommend_policy *recommend_policy_hold(const struct recommend_policy *policy);
void recommend_policy_release(const struct recommend_policy *policy); /* NULL: nothing */

/* Fails where it is of the other kind. */
int recommend_policy_check(const struct recommend_policy *policy, enum policy_kind kind,
                           struct error *err);
const char *recommend_policy_sha256(const struct recommend_policy *policy); /* "": of no file */
/* mask may be changed: what the policy does without is no longer legal but for the neutral. */
void recommend_policy_choose(const struct recommend_policy *policy, const float *features,
                             uint8_t *mask, int32_t *choices);
/* Why it chose these: how much less likely, in nats, the choices that are not neutral would be were
 * one feature as it usually is. 0 where nothing can be said: another speaks for it. */
void recommend_policy_explain(const struct recommend_policy *policy, const float *features,
                              const float *usual, const uint8_t *mask, const int32_t *choices,
                              double moved[POLICY_FEATURE_COUNT]);

#endif
