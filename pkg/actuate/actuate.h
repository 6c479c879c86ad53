/* Writes what the guard let through: replicas by /scale, CPU and memory of running pods by
 * pods/resize, in place. Knows who else owns a target, and leaves that one alone. */
#ifndef FAASRL_ACTUATE_H
#define FAASRL_ACTUATE_H

#include "api/api.h"
#include "guard/guard.h"
#include "kube/kube.h"

typedef void (*actuate_done)(void *arg, const struct error *err); /* NULL: it is written */

/* Any write whose answer is of no interest but for whether it was taken. */
void actuate_write(struct kube *kube, enum kube_patch patch, const char *path, const json_t *body,
                   actuate_done on_done, void *arg);
/* The same, after all other writes: for what only tells. */
void actuate_tell(struct kube *kube, enum kube_patch patch, const char *path, const json_t *body,
                  actuate_done on_done, void *arg);
void actuate_make(struct kube *kube, const char *path, const json_t *object, actuate_done on_done,
                  void *arg);
/* Several writes whose answer is one: on_done is called after the last, with the first failure.
 * Each write that is added has actuate_gathered for its on_done, and so has the end of adding. */
struct actuate_gather;
struct actuate_gather *actuate_gather_new(actuate_done on_done, void *arg);
struct actuate_gather *actuate_gather_add(struct actuate_gather *gather); /* itself */
void actuate_gathered(void *gather, const struct error *err);
/* What is asked of the API server: replicas by /scale, and one pod's patch by pods/resize. */
void actuate_replicas(struct kube *kube, const struct kube_workload *workload, int replicas,
                      actuate_done on_done, void *arg);
void actuate_pod(struct kube *kube, const struct kube_pod *pod, const json_t *patch,
                 actuate_done on_done, void *arg);

/* --- Knative: bounds for its own autoscaler (knative.c) ----------------------------------------
 */
struct actuate_bounds {
    int32_t min, max; /* -1: none */
    bool steered;     /* by us */
};
/* The bounds of each Revision of a target that is to have so many replicas: a floor by its share of
 * the traffic, and room above it up to its share of `most`, as Knative sees a burst sooner than we
 * do. Shares are by largest remainder, and at least 1: together they are more than `most` only
 * where more Revisions have traffic, or their authors ask for more. Replicas 0: there are no
 * requests, and Knative may end the last pod if the Revision's author lets it. One without traffic
 * gets its own bounds back. count is at most KUBE_MAX_REVISIONS. */
void actuate_shares(const struct kube_revision *revisions, size_t count, int replicas, int most,
                    struct actuate_bounds out[]);
/* Whether one that has been given bounds has those of its author again, and would need others: some
 * versions of Knative set them back. */
bool actuate_undone(const struct kube_revision *revisions, size_t count, int replicas, int most);
/* Writes what differs, to those that are not of our class; how many writes that takes. on_done is
 * called once, after the last answer, or at once if there is none. */
int actuate_steer(struct kube *kube, const struct kube_revision *revisions, size_t count,
                  int replicas, int most, actuate_done on_done, void *arg);
/* All is as the Revisions' authors asked for. */
void actuate_hand_back(struct kube *kube, const struct kube_revision *revisions, size_t count,
                       actuate_done on_done, void *arg);

/* --- Knative: Revisions of our class (own.c) ---------------------------------------------------
 * All is told by what is seen, so that another controller goes on where this one has stopped. A
 * Revision is born with its initial-scale, is ready, has what is needed; when it is quiet it is put
 * behind the activator (Proxy), and after a time of grace its last pod goes. A request at the
 * activator brings it back from there on. */
struct actuate_defaults { /* for what a Revision's author leaves open */
    int32_t min_scale, max_scale, initial_scale, activation_scale; /* max_scale 0: no bound */
    int64_t window_ms, grace_ms, retention_ms;
    bool never_zero;    /* nothing goes to zero, not even what no route leads to */
    bool zero_at_first; /* an initial-scale of 0 counts */
};
/* Those of a cluster, by the ConfigMap config-autoscaler of Knative; NULL, and what cannot be read:
 * Knative's own. */
void actuate_defaults_read(const json_t *config, struct actuate_defaults *out);
struct actuate_need {
    const struct actuate_defaults *defaults; /* NULL: Knative's own */
    bool kept;                               /* nobody has a say: it stays as it is */
    bool spare;       /* no share of the traffic is its: it stays behind the activator */
    int replicas;     /* -1: not known yet */
    int most;         /* 0: nobody says */
    int64_t quiet_ms; /* there was no request for so long; -1: not known */
    int64_t deaf_ms;  /* not all activators could be asked for so long; -1: they are not asked */
    bool requests;    /* wait at an activator */
    int64_t now_ms;   /* wall clock */
};
struct actuate_plan {
    bool serve;             /* the mode of its SKS, else Proxy */
    int replicas;           /* of the Deployment; -1: left as it is */
    int desired;            /* as its status is to say, */
    enum kube_truth active; /* with why it is not: */
    const char *reason, *message;
    bool initialized;
};
void actuate_plan(const struct kube_owned *seen, const struct actuate_need *need,
                  struct actuate_plan *out);
/* The status of its PodAutoscaler that follows (new reference). */
json_t *actuate_plan_status(const struct kube_owned *seen, const struct actuate_plan *plan,
                            int64_t now_ms);
/* Writes what differs; how many writes that takes. on_done as of actuate_steer. */
int actuate_own(struct kube *kube, const struct kube_owned *seen, const struct actuate_plan *plan,
                int64_t now_ms, actuate_done on_done, void *arg);
/* Sets our class where the template has none, or takes away what we have set. */
void actuate_claim(struct kube *kube, const struct kube_template *template_, actuate_done on_done,
                   void *arg);
void actuate_disclaim(struct kube *kube, const struct kube_template *template_,
                      actuate_done on_done, void *arg);

/* --- resizing the pods of one MPA ------------------------------------------------------------
 */
struct actuate_sizes { /* what each container should request; API_ABSENT: leave */
    struct {
        char name[64];
        bool requests_only;
        int64_t request[API_RESOURCE_COUNT];
        int64_t boosted_cpu; /* where pods are boosted: while its pod starts */
    } containers[API_MAX_CONTAINERS];
    size_t count;
    bool boosts;           /* pods get boosted_cpu until they are ready, and keep it */
    int64_t boost_more_ms; /* so long after */
};

struct actuator; /* what was tried on which pod, so that a refusal is not repeated at once */

/* Carries one pod's patch out, {"spec": {"containers": [{"name", "resources"}]}}, and calls on_done
 * exactly once, at once or later. */
typedef void (*actuate_send)(void *arg, const struct kube_pod *pod, const json_t *patch,
                             actuate_done on_done, void *done_arg);

struct actuator *actuator_new(actuate_send send, void *arg);
/* Requests under way end silently. */
void actuator_free(struct actuator *actuator);

struct actuate_report {
    int patched;       /* requests sent now, */
    int boosted;       /* of which so many are a boost */
    int pending;       /* pods whose resize is Deferred, Infeasible or in Error, or was refused */
    int impossible;    /* pods whose QoS class forbids it */
    bool infeasible;   /* a node can never give it: more replicas may */
    bool deferred;     /* a node cannot give it at present */
    char message[256]; /* of the first trouble, "" when none */
    int64_t settles_in_ms;   /* until the next boost is over; -1: none is known to end */
    char boost_refusal[256]; /* a node has no room for a boost: its pod does without; "": none */
};

/* Brings every pod to the sizes wanted, where it is not on its way already. A pod that no kubelet
 * has taken yet is made smaller, never larger: the scheduler may have chosen a node already that
 * has no room, and its kubelet would refuse the whole pod. With only_new (mode Initial) a pod is
 * sized once, when it is new: one that has been ready for 30 s is left. */
void actuate_resize(struct actuator *actuator, const struct kube_pod *const *pods, size_t pod_count,
                    const struct actuate_sizes *sizes, bool only_new, struct actuate_report *out);
/* Called for every resize that the API server took (err NULL) or refused. */
void actuator_on_answer(struct actuator *actuator,
                        void (*on_answer)(void *arg, const char *pod, const struct error *err),
                        void *arg);

#endif
