/* The last word before anything is written: bounds, the rates of `behavior`, QoS class, step rates,
 * cooldown. Whatever a recommender says, nothing leaves these. Pure: time comes in as a number. */
#ifndef FAASRL_GUARD_H
#define FAASRL_GUARD_H

#include "api/api.h"
#include "recommend/recommend.h"

struct guard; /* the memory of one MPA: past proposals and past changes, for windows and rates */

struct guard *guard_new(void);
void guard_free(struct guard *guard);

struct guard_limits {          /* of the installation */
    double resize_cooldown_s;  /* no resize so soon after the last one, unless latency is over its
                                  goal; 10 */
    double resize_up_factor;   /* at most this factor in one step; 4 */
    double resize_down_factor; /* at least this factor in one step; 0.5 */
    double resize_threshold;   /* smaller relative changes are not worth a resize; 0.1 */
};
extern const struct guard_limits guard_default_limits;

/* What a pod's container has and may get; amounts as in api.h (milli-cores, bytes, API_ABSENT). */
struct guard_container {
    const char *name;
    int64_t request[API_RESOURCE_COUNT], limit[API_RESOURCE_COUNT]; /* in force */
};

struct guard_input {
    double now_s;
    const struct api_spec *spec;
    int replicas_wanted; /* the target's spec at present */
    bool goal_missed;    /* latency is over its goal right now */
    const struct guard_container *containers;
    size_t container_count;
    const struct recommendation *proposed; /* containers in the same order */
};

struct guard_decision {
    int replicas; /* what to set; equal to replicas_wanted: leave */
    bool limited; /* the proposal was held back */
    /* DesiredWithinRange, or the first thing that held it back, replicas before amounts:
     * TooManyReplicas, TooFewReplicas, ScaleUpLimit, ScaleDownLimit, ScaleUpStabilized,
     * ScaleDownStabilized, ScalingDisabled, AboveMaxAllowed, BelowMinAllowed, ResizeUpLimit,
     * ResizeDownLimit, ResizeCooldown, InvalidProposal. */
    char limit_reason[64];
    char limit_message[256];
    struct {
        bool resize; /* whether request differs enough from what is in force */
        int64_t request[API_RESOURCE_COUNT]; /* what should be; API_ABSENT: leave */
    } containers[API_MAX_CONTAINERS];
};

void guard_check(struct guard *guard, const struct guard_limits *limits,
                 const struct guard_input *in, struct guard_decision *out);
/* The same, with what an observation says as input. cpu_capped: a node has just refused more CPU;
 * what pods have is the most, even where minAllowed is above it. */
void guard_check_seen(struct guard *guard, const struct guard_limits *limits,
                      const struct api_spec *spec, const struct observation *seen, bool cpu_capped,
                      const struct recommendation *proposed, struct guard_decision *out);
/* Tells the guard that the change was really written, so that rates and cooldowns count it. */
void guard_scaled(struct guard *guard, double now_s, int from, int to);
void guard_resized(struct guard *guard, double now_s);

/* --- one pod's new resources -----------------------------------------------------------------
 */
struct guard_pod_container {
    const char *name;
    int64_t request[API_RESOURCE_COUNT], limit[API_RESOURCE_COUNT]; /* desired now (spec) */
    int64_t want[API_RESOURCE_COUNT]; /* the wanted request; API_ABSENT: leave */
    bool requests_only;               /* controlledValues */
    int64_t new_request[API_RESOURCE_COUNT],
        new_limit[API_RESOURCE_COUNT]; /* out; API_ABSENT: unset */
};
enum guard_qos { GUARD_BEST_EFFORT, GUARD_BURSTABLE, GUARD_GUARANTEED };
enum guard_qos guard_qos_of(const struct guard_pod_container *containers, size_t n, bool use_new);

/* Works out new requests and limits of one pod such that its QoS class stays: limits move in
 * proportion (RequestsAndLimits) or stay and cap the request (RequestsOnly); a Guaranteed pod keeps
 * request = limit; a Burstable one never becomes Guaranteed. Returns 1 when something changes, 0
 * when nothing does, and fails when the class forbids it: a BestEffort pod cannot gain resources,
 * nor a Guaranteed one change them where its limits are to be left. */
int guard_fit_pod(struct guard_pod_container *containers, size_t n, struct error *err);
/* The CPU of a container while its pod starts, where cpu_milli is its size: as the spec's boost has
 * it, up to maxAllowed, and never less than its size. */
int64_t guard_boost(const struct api_spec *spec, const char *container, int64_t cpu_milli);

#endif
