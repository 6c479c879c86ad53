/* What the controller sees and acts on. One world is a Kubernetes cluster with its Prometheus
 * (live.c); another can stand in its place, and the controller's round is the same code on both. */
#ifndef FAASRL_CONTROLLER_WORLD_H
#define FAASRL_CONTROLLER_WORLD_H

#include "actuate/actuate.h"
#include "observe/observe.h"

struct world_policy {  /* of an MPA, as it is kept */
    const char *bytes; /* an encoded checkpoint */
    size_t len;
    int64_t generation; /* of the MPA that it was found for */
};
/* err: ERROR_NOT_FOUND where none is kept; another where what is kept cannot be read. */
typedef void (*world_loaded)(void *arg, const struct world_policy *policy, const struct error *err);

struct world_wish { /* for a target's replicas */
    int replicas;
    int most;         /* a platform that scales by itself may have so many */
    int64_t quiet_ms; /* there was no request for so long; 0: there are some, or it is not known */
};

struct world {
    void *self; /* the first argument of all that follows */

    /* --- what is there; the results live until the world goes on --------------------------- */
    bool (*synced)(void *self); /* all of it is known: before, nothing is decided */
    /* As kube_cache_workload, kube_cache_pods and kube_cache_scaler. */
    const struct kube_workload *(*workload)(void *self, const struct kube_target *target,
                                            struct error *err);
    size_t (*pods)(void *self, const struct kube_workload *workload, const struct kube_pod **out,
                   size_t max);
    const struct kube_scaler *(*scaler)(void *self, const char *kind, const char *namespace_,
                                        const char *name, bool replicas, bool resources);

    /* As kube_cache_whole. NULL: no target is a part of another one here. */
    void (*whole)(void *self, const struct kube_target *target, struct kube_whole *out);

    /* --- what is measured ------------------------------------------------------------------ */
    /* Brings new figures into observe, then calls on_done; at once or later. */
    void (*collect)(void *self, struct observe *observe, void (*on_done)(void *arg), void *arg);

    /* --- what is done: on_done is called exactly once, at once or later -------------------- */
    /* A platform with an autoscaler of its own is held to so many at least, may have up to `most`,
     * and may end the last one where it is quiet. */
    void (*set_replicas)(void *self, const struct kube_workload *workload,
                         const struct world_wish *wish, actuate_done on_done, void *arg);
    /* Whether such a platform has set back what it was held to, so that this wish is not heard.
     * NULL: none here does. */
    bool (*undone)(void *self, const struct kube_workload *workload, const struct world_wish *wish);
    /* What so many replicas come to there, where a part of the traffic needs at least one each.
     * NULL: to as many. */
    int (*comes_to)(void *self, const struct kube_workload *workload, int replicas, int most);
    /* Fails where that autoscaler's place cannot be taken, though the MPA says so; err tells what
     * would be right. NULL: there are none here. */
    int (*may_own)(void *self, const struct kube_workload *workload, struct error *err);
    /* Such a platform does as it did before; nothing to others. NULL: there are none here. */
    void (*hand_back)(void *self, const struct kube_workload *workload);
    actuate_send resize;
    /* patch is a merge patch: {"status": …}. */
    void (*write_status)(void *self, const struct api_mpa *mpa, const json_t *patch,
                         actuate_done on_done, void *arg);
    /* False: so many writes wait that status had better be told another time. NULL: never. */
    bool (*may_tell)(void *self);
    void (*tell)(void *self, const struct kube_event *event);

    /* --- where policies are kept that were found for an MPA; NULL, all of them: nowhere ----- */
    void (*load_policy)(void *self, const struct api_mpa *mpa, world_loaded on_done, void *arg);
    void (*save_policy)(void *self, const struct api_mpa *mpa, const struct world_policy *policy,
                        actuate_done on_done, void *arg);
    void (*drop_policy)(void *self, const struct api_mpa *mpa); /* it is gone */

    /* Something should not wait for the next pass: controller_catch_up is to be called soon, or
     * after in_ms. */
    void (*wake)(void *self, int64_t in_ms);
};

#endif
