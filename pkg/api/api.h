/* The MultidimPodAutoscaler resource: parse, default, validate, print its status. */
#ifndef FAASRL_API_H
#define FAASRL_API_H

#include "base/base.h"

#define API_GROUP   "autoscaling.faasrl.io"
#define API_VERSION "v1alpha1"
#define API_KIND    "MultidimPodAutoscaler"
#define API_PLURAL  "multidimpodautoscalers"
/* "true" on an MPA holds everything: nothing but status is written. */
#define API_PAUSE_ANNOTATION API_GROUP "/paused"

#define API_ABSENT         INT64_MIN /* an amount that is not stated */
#define API_MAX_METRICS    8
#define API_MAX_CONTAINERS 16
#define API_MAX_POLICIES   8

/* --- spec ------------------------------------------------------------------------------------ */
enum api_mode { API_MODE_OFF, API_MODE_INITIAL, API_MODE_AUTO };
enum api_resource { API_CPU, API_MEMORY, API_RESOURCE_COUNT };

struct api_metric { /* HPA v2's Resource and ContainerResource */
    enum api_resource resource;
    char *container;       /* NULL: the whole pod */
    int32_t utilization;   /* per cent of the request; 0 when average_value is used */
    int64_t average_value; /* milli-cores or bytes; API_ABSENT when utilization is used */
};

enum api_policy_type { API_POLICY_PODS, API_POLICY_PERCENT };
enum api_select { API_SELECT_MAX, API_SELECT_MIN, API_SELECT_DISABLED };

struct api_rules { /* HPA v2's scaleUp / scaleDown */
    int32_t stabilization_s;
    enum api_select select;
    double tolerance; /* 0.1 unless stated */
    struct {
        enum api_policy_type type;
        int32_t value, period_s;
    } policies[API_MAX_POLICIES];
    size_t policy_count;
};

struct api_container { /* constraints.container[]; name "*" is for those not named */
    char *name;
    bool off;                                                 /* mode: Off */
    bool requests_only;                                       /* controlledValues */
    int64_t min[API_RESOURCE_COUNT], max[API_RESOURCE_COUNT]; /* milli-cores, bytes; API_ABSENT */
};

struct api_boost {  /* policy.startupBoost.cpu: what a new pod's containers get until it is ready */
    int32_t factor; /* times their size; 0: no boost, or */
    int64_t more_milli; /* so much more; 0: likewise */
    int32_t duration_s; /* and for so long after */
};

struct api_spec {
    char *target_api_version, *target_kind, *target_name;
    bool is_action; /* of OpenWhisk, whose own are replicas and memory */
    struct {
        const char *reason, *message;
    } unsupported; /* what was asked for and is left out all the same; reason NULL: nothing */
    double latency_percentile; /* 99 */
    int64_t latency_target_us; /* 0: no latency goal */
    char *latency_query;       /* an own query for latency, NULL: the installation's */
    struct api_metric metrics[API_MAX_METRICS];
    size_t metric_count;
    bool has_default_metric; /* none was of cpu: the last one was added, 70 % of the CPU request */
    int32_t min_replicas, max_replicas;
    struct api_rules scale_up, scale_down; /* HPA's defaults filled in */
    bool controls[API_RESOURCE_COUNT];     /* containerControlledResources */
    struct api_container containers[API_MAX_CONTAINERS];
    size_t container_count;
    enum api_mode mode;
    struct api_boost boost;
    char *harvest_group; /* whose MPAs of the namespace share CPU; NULL: this one with nobody */
    bool knative_own;    /* what is of Knative is to be given our class, not its autoscaler's */
    char *recommender;   /* "threshold" when none is named */
};

struct api_mpa {
    char *namespace_, *name, *uid, *resource_version;
    int64_t generation, created_ms; /* wall clock */
    bool paused, deleting;
    struct api_spec spec;
    json_t *status; /* as read from the API server, NULL when it has none */
};

/* --- reading ---------------------------------------------------------------------------------
 * Findings name the field by its path ("spec.constraints.global.minReplicas") and say what would
 * be right. */
struct api_finding {
    bool warning; /* an unknown field; everything else is an error */
    char *field, *message;
};
struct api_findings {
    struct api_finding *items;
    size_t count;
};
void api_findings_clear(struct api_findings *findings);

/* Validates a manifest as the API server would with our CRD and CEL rules, and more helpfully.
 * Returns the number of errors (warnings not counted). */
size_t api_validate(const json_t *manifest, struct api_findings *out);

/* Parses and fills in defaults. Fails on the first error that api_validate would find. */
int api_parse(const json_t *object, struct api_mpa *out, struct error *err);
void api_clear(struct api_mpa *mpa);
/* The installation's goal for cpu, in per cent, where the MPA states none. */
void api_use_default_utilization(struct api_spec *spec, int32_t per_cent);
/* The policy for a container by name: its own, else "*", else a built-in one without bounds. Hands
 * off, whatever the spec says, for the container that Knative puts before a function, and for all
 * that stand beside an action of OpenWhisk. */
#define API_QUEUE_PROXY "queue-proxy"
const struct api_container *api_container_policy(const struct api_spec *spec, const char *name);
const char *api_mode_name(enum api_mode mode);
/* Whether new pods get more CPU until they are ready. */
bool api_boosts(const struct api_spec *spec);

/* --- status ----------------------------------------------------------------------------------
 */
enum api_condition {
    API_COND_READY, /* the sum: the MPA is followed and nothing is in its way */
    API_COND_RECOMMENDATION_PROVIDED,
    API_COND_SCALING_ACTIVE,  /* metrics are there */
    API_COND_ABLE_TO_SCALE,   /* the target is there, ours alone, and takes our writes */
    API_COND_SCALING_LIMITED, /* the guard held the recommendation back */
    API_COND_FALLBACK_ACTIVE, /* the threshold recommender decides in another's place */
    API_COND_CONFIG_UNSUPPORTED,
    API_COND_RESIZE_PENDING, /* a pod's resize is Deferred, Infeasible or in Error */
    API_COND_PAUSED,
    API_COND_COUNT
};
const char *api_condition_name(enum api_condition condition);

struct api_condition_value {
    bool known; /* false: leave the condition out */
    bool status;
    char reason[64];
    char message[320];
};

struct api_container_status { /* containerRecommendations[] */
    const char *name;
    int64_t target[API_RESOURCE_COUNT], lower[API_RESOURCE_COUNT], upper[API_RESOURCE_COUNT],
        uncapped[API_RESOURCE_COUNT]; /* API_ABSENT: not controlled */
};

struct api_status {
    int64_t observed_generation;
    int32_t current_replicas, desired_replicas; /* -1: unknown */
    int64_t last_scale_ms;                      /* 0: never */
    struct api_container_status containers[API_MAX_CONTAINERS];
    size_t container_count;
    double latency_us; /* NaN: unknown */
    double percentile;
    int64_t latency_target_us; /* 0: no goal */
    struct {
        int64_t time_ms; /* 0: no decision yet */
        const char *recommender, *action, *reason;
        const json_t *observation; /* NULL: none */
    } decision;
    struct {
        int64_t since_ms; /* 0: there is none */
        double core_hours, core_hours_auto;
        double requests, late, late_auto; /* NaN: could not be judged */
    } what_if;
    struct api_condition_value conditions[API_COND_COUNT];
};

/* The whole status object as JSON (new reference). Conditions keep their lastTransitionTime from
 * previous (the status last read or written, may be NULL) unless their status changes. */
json_t *api_status_json(const struct api_status *status, const json_t *previous, int64_t now_ms);
/* Whether the difference is worth a write: all but the observation's and whatIf's figures, and
 * times. */
bool api_status_differs(const json_t *a, const json_t *b);

#endif
