/* Kubernetes client: configuration, requests, watches with a lean cache, events, leader election,
 * quantities. One thread, callbacks only, one multiplexed connection. */
#ifndef FAASRL_KUBE_H
#define FAASRL_KUBE_H

#include "base/base.h"
#include "http/http.h"

/* --- quantities (quantity.c) -----------------------------------------------------------------
 * Exact as k8s.io/apimachinery/pkg/api/resource: what Kubernetes accepts is accepted, what it
 * refuses is refused, and rounding is its rounding (up, away from zero). A result that does not fit
 * is the nearest int64, where Kubernetes' functions give 0 or wrap around. */
int quantity_parse_milli(const char *text, int64_t *milli, struct error *err); /* as MilliValue() */
int quantity_parse_value(const char *text, int64_t *value, struct error *err); /* as Value() */
#define QUANTITY_SIZE 32
/* Canonical forms. CPU as DecimalSI: 1500 → "1500m", 2000 → "2", 1000000 → "1k". Memory as
 * BinarySI: 67108864 → "64Mi", 1500000 → "1500000" (not a multiple of 1024), 1000 → "1k" (below
 * 1024 decimal). */
void quantity_print_cpu(int64_t milli, char out[QUANTITY_SIZE]);
void quantity_print_memory(int64_t bytes, char out[QUANTITY_SIZE]);

/* --- configuration (kubeconfig.c, credentials.c) ---------------------------------------------
 */
struct kube_exec { /* a client-go credential plugin */
    char *command;
    char **args, **env; /* NULL-terminated; env as "NAME=value" */
    char *api_version;
    char *install_hint;
    bool provide_cluster_info; /* the plugin is told the server and how to trust it */
};

struct kube_config {
    char *server;     /* no trailing slash */
    char *namespace_; /* of the context; "default" when it names none */
    struct http_tls tls;
    char *token;      /* a fixed bearer token */
    char *token_file; /* read again as it rotates; wins over token */
    char *user, *password;
    struct kube_exec *exec;
};

/* What kubectl would use: path, else $KUBECONFIG (a list of files, merged), else ~/.kube/config,
 * and without any of these the pod's service account. context NULL: current-context. */
int kube_config_load(const char *path, const char *context, struct kube_config *out,
                     struct error *err);
/* The same with what kubectl's flags say instead: names of the kubeconfig's entries, and a server
 * and a token that win over theirs. With a server no kubeconfig is needed. Each may be NULL. */
struct kube_config_choice {
    const char *context, *cluster, *user;
    const char *server, *token;
};
int kube_config_load_as(const char *path, const struct kube_config_choice *choice,
                        struct kube_config *out, struct error *err);
/* One kubeconfig text; relative file names are taken from dir. */
int kube_config_parse(const char *text, size_t len, const char *dir, const char *context,
                      struct kube_config *out, struct error *err);
/* The service account's files below root (normally /var/run/secrets/kubernetes.io/serviceaccount),
 * with KUBERNETES_SERVICE_HOST and _PORT. */
int kube_config_in_cluster(const char *root, struct kube_config *out, struct error *err);
void kube_config_clear(struct kube_config *config);

/* --- requests (client.c) --------------------------------------------------------------------- */
struct kube;

struct kube_options {
    double writes_per_second;  /* our own limit on writes; 0: 50 */
    double write_burst;        /* 0: 100 */
    const char *field_manager; /* NULL: "faasrl-mpa" */
};

/* Takes a copy of what it needs from config. options may be NULL. */
struct kube *kube_new(uv_loop_t *loop, struct http *http, const struct kube_config *config,
                      const struct kube_options *options, struct error *err);
/* Everything under way, queued or waiting ends with ERROR_CANCELLED, watches and leases stop (their
 * own _stop still has to be called, before or after). Run the loop once more after it. */
void kube_free(struct kube *kube);

enum kube_patch {
    KUBE_PATCH_MERGE = 1, /* RFC 7386 */
    KUBE_PATCH_STRATEGIC,
    KUBE_PATCH_JSON,  /* RFC 6902 */
    KUBE_PATCH_APPLY, /* server-side apply, forced */
};

struct kube_response {
    int status;         /* HTTP status, 0 when no answer came */
    const json_t *json; /* NULL when the answer was not JSON */
    struct error error; /* set for every status but 2xx; the message is the server's own */
};
typedef void (*kube_done)(void *arg, const struct kube_response *response);

struct kube_request {
    const char *method; /* NULL: GET, or PATCH when patch is set */
    enum kube_patch patch;
    const char *path;   /* "/api/v1/namespaces/x/pods/y/resize", with query if any */
    const json_t *body; /* read before kube_send returns; NULL: none */
    int64_t timeout_ms; /* 0: 15 s, counted from when it is sent */
    bool at_once;       /* it writes nothing: it waits for no other, and is not sent again */
    bool lazy;          /* a write that lets all others go first */
    kube_done on_done;  /* called exactly once, never before kube_send has returned */
    void *arg;
};
/* Writes (all but GET) are sent at the limited rate, in order of asking, lazy ones after the
 * others. 429 and 503 with Retry-After are honoured: the request is sent again after the wait, at
 * most 3 times, and other writes hold. */
void kube_send(struct kube *kube, const struct kube_request *request);
uint64_t kube_writes_sent(const struct kube *kube);
size_t kube_writes_queued(const struct kube *kube);
/* Whether all writes but those of leases that were asked for before the mark was taken have ended.
 */
uint64_t kube_write_mark(const struct kube *kube);
bool kube_writes_ended(const struct kube *kube, uint64_t mark);
/* When a write last ended without an answer, which may be carried out still; monotonic, 0: none. */
int64_t kube_unanswered_ms(const struct kube *kube);
/* Those that wait for their turn end with ERROR_CANCELLED, once the loop turns. */
void kube_drop_queued(struct kube *kube);
/* Asked before each write is sent, but not for leases; one that may not be ends with
 * ERROR_CANCELLED. NULL: all may. */
void kube_allow_writes(struct kube *kube, bool (*may_write)(void *arg), void *arg);

/* Who is told what goes over the wire, for metrics. Both may be NULL; neither may call us. */
struct kube_observer {
    void (*on_answer)(void *arg, const char *method, int status); /* status 0: no answer came */
    void (*on_watch_error)(void *arg, const char *resource);      /* its plural: "pods" */
    void *arg;
};
void kube_observe(struct kube *kube, const struct kube_observer *observer); /* NULL: nobody */

/* --- watches (watch.c) -----------------------------------------------------------------------
 * Lists in pages, then watches from the list's resourceVersion with bookmarks; resumes after a
 * disconnect, lists again on 410, waits longer with jitter after each failure. */
struct kube_watch;

struct kube_watch_handler {
    void (*on_object)(void *arg, const json_t *object, bool deleted);
    /* A full list begins / is complete: what was not seen in between is gone. A list that fails
     * half-way begins again without having been complete. */
    void (*on_list_begin)(void *arg);
    void (*on_list_end)(void *arg);
    /* Optional. err is NULL when the watch works (again). */
    void (*on_state)(void *arg, const struct error *err);
};

struct kube_watch_spec {
    const char *path;     /* "/api/v1/pods" or namespaced */
    const char *selector; /* label selector, NULL: all */
    bool optional; /* the kind may not exist (404) or be closed to us: an empty list, asked again */
    int page_limit; /* 0: 100 */
    struct kube_watch_handler handler;
    void *arg;
};
/* Nothing is called before it has returned. kube_watch_stop is allowed inside the handlers. */
struct kube_watch *kube_watch_start(struct kube *kube, const struct kube_watch_spec *spec);
void kube_watch_stop(struct kube_watch *watch);
bool kube_watch_synced(const struct kube_watch *watch); /* one full list was seen */

/* The parser of a watch stream, by itself: bytes in, whole JSON events out. */
struct kube_stream {
    struct buf line;
    void (*on_event)(void *arg, const char *type, const json_t *object);
    void *arg;
};
void kube_stream_init(struct kube_stream *s, size_t max_line,
                      void (*on_event)(void *arg, const char *type, const json_t *object),
                      void *arg);
int kube_stream_feed(struct kube_stream *s, const char *data, size_t len, struct error *err);
void kube_stream_free(struct kube_stream *s);

/* --- cache (cache.c) -------------------------------------------------------------------------
 * The projections of pods and workloads that we use and nothing else. Amounts that are absent in
 * the object are KUBE_ABSENT. */
#define KUBE_ABSENT   INT64_MIN
#define KUBE_UID_SIZE 40

struct kube_amounts {
    int64_t cpu_milli, memory_bytes;
};

struct kube_container {
    char *name;
    struct kube_amounts requests, limits;               /* desired: spec */
    struct kube_amounts actual_requests, actual_limits; /* from status; spec's where it has none */
    int32_t restarts;
    bool cpu_resize_restarts, memory_resize_restarts; /* resizePolicy RestartContainer */
    bool serves; /* by a port of the name that Knative gives to the one that takes requests */
};

enum kube_resize {
    KUBE_RESIZE_NONE,
    KUBE_RESIZE_DEFERRED,
    KUBE_RESIZE_INFEASIBLE,
    KUBE_RESIZE_IN_PROGRESS,
    KUBE_RESIZE_ERROR
};
enum kube_phase { KUBE_PENDING, KUBE_RUNNING, KUBE_FINISHED /* Succeeded or Failed */ };
enum kube_qos { KUBE_QOS_BEST_EFFORT, KUBE_QOS_BURSTABLE, KUBE_QOS_GUARANTEED };

struct kube_action_pod {       /* what OpenWhisk says of a pod of its own */
    char *invoker;             /* that made it: "invoker3" */
    char *namespace_, *action; /* whose it is; NULL: it does not say (yet) */
};

struct kube_pod {
    char *namespace_, *name;
    char uid[KUBE_UID_SIZE], owner_uid[KUBE_UID_SIZE]; /* owner: the controlling owner, or "" */
    int64_t created_ms, started_ms, ready_changed_ms;  /* wall clock; 0 when unknown */
    enum kube_phase phase;
    enum kube_qos qos;
    enum kube_resize resize;
    char *resize_message;              /* the kubelet's words, NULL when none */
    struct kube_action_pod *openwhisk; /* NULL: it is not of OpenWhisk */
    bool ready, deleting;
    uint16_t container_count;
    struct kube_container
        containers[]; /* app containers, in spec order; init containers are not here */
};

struct kube_resource { /* where the API server has a kind */
    const char *api_version, *kind;
    const char *path, *plural; /* "/apis/apps/v1", "deployments" */
};

struct kube_workload { /* a Deployment, StatefulSet, ReplicaSet, or of another kind with a /scale */
    const struct kube_resource *resource;
    char *kind, *namespace_, *name;
    char uid[KUBE_UID_SIZE], owner_uid[KUBE_UID_SIZE];
    char *owner_kind, *owner_name;     /* controlling owner, NULL when none */
    int32_t replicas_wanted, replicas; /* spec (1 when absent), status */
    /* As /scale's status.selector would print it: "a=b,c in (d,e)". NULL when there is none. */
    char *selector;
    char *template_cpu; /* requests of its pods' template: read them with kube_workload_cpu */
    bool owned;         /* of Knative, with a Revision of our class */
};
/* CPU that the template of its pods requests for a container, in milli-cores; -1: nothing. */
int64_t kube_workload_cpu(const struct kube_workload *workload, const char *container);

struct kube_scaler { /* someone else's autoscaler: HPA, ScaledObject, VPA */
    char *kind, *namespace_, *name;
    char *target_kind, *target_name;
    char *owner_kind, *owner_name;
    bool acts_on_replicas, acts_on_resources; /* a VPA in mode Off does neither */
};

struct kube_cache;

struct kube_cache_options {
    const char *const *namespaces; /* NULL-terminated; NULL or empty: all */
    /* Called after a pod appeared, changed or went (then pod is its last state). */
    void (*on_pod)(void *arg, const struct kube_pod *pod, bool deleted);
    void (*on_workload)(void *arg, const struct kube_workload *workload, bool deleted);
    /* Called after something of a Revision of our class changed; may be NULL. */
    void (*on_owned)(void *arg);
    void *arg;
};
struct kube_cache *kube_cache_start(struct kube *kube, const struct kube_cache_options *options);
void kube_cache_stop(struct kube_cache *cache);
bool kube_cache_synced(const struct kube_cache *cache);
/* What is still awaited, and why where that is known: "pods: connection refused". "" when synced.
 */
void kube_cache_awaits(const struct kube_cache *cache, char *out, size_t size);
/* The last failure of a watch that does not work at present, or NULL. */
const char *kube_cache_trouble(const struct kube_cache *cache);
struct kube_target { /* how an autoscaler names its workload */
    const char *api_version, *kind, *namespace_, *name;
    const char *rival; /* of an action: another one whose pods have the same names, or NULL */
};
/* A kind that is not of apps/v1 is looked up by discovery when it is first asked for, and followed
 * from then on if it has a /scale. NULL when there is no such workload; err says why:
 * ERROR_NOT_FOUND, ERROR_INVALID where the kind can be no target, ERROR_BUSY where it is not known
 * yet (on_workload tells when it is), or what hinders us from knowing. */
const struct kube_workload *kube_cache_workload(const struct kube_cache *cache,
                                                const struct kube_target *target,
                                                struct error *err);
/* Pods controlled by the workload, directly or through others (a Rollout's ReplicaSets). Fills out
 * (up to max) and returns how many there are. */
size_t kube_cache_pods(const struct kube_cache *cache, const struct kube_workload *workload,
                       const struct kube_pod **out, size_t max);
/* --- of Knative (knative.c): a Service, Configuration or Revision is a workload of all the pods of
 * the Revisions that get its traffic. */
#define KUBE_KNATIVE_GROUP   "serving.knative.dev"
#define KUBE_KNATIVE         KUBE_KNATIVE_GROUP "/v1"
#define KUBE_KNATIVE_SCALERS "/apis/autoscaling.internal.knative.dev/v1alpha1"
#define KUBE_MIN_SCALE       "autoscaling.knative.dev/min-scale"
#define KUBE_MAX_SCALE       "autoscaling.knative.dev/max-scale"
#define KUBE_STEERED         "autoscaling.faasrl.io/steered" /* the two above are ours */
#define KUBE_MAX_ROUTED      100 /* Revisions with a share: shares are whole percents */
#define KUBE_MAX_REVISIONS   128 /* with those that are still held, and have lost theirs */
struct kube_revision {
    const char *namespace_, *name, *uid;
    const char *class;            /* who scales it */
    int percent;                  /* of the traffic; 0: it has lost it, and is held still */
    int32_t min_scale, max_scale; /* of its PodAutoscaler; -1: not set */
    int32_t own_min, own_max;     /* what the Revision itself asks for; -1: nothing */
    int32_t desired, actual;      /* by its PodAutoscaler's status; desired -1: unknown */
    bool steered;                 /* min_scale and max_scale are ours */
    bool ours;                    /* by its class: see kube_owned */
};
bool kube_is_knative(const struct kube_workload *workload);
size_t kube_cache_revisions(const struct kube_cache *cache, const struct kube_workload *workload,
                            struct kube_revision out[KUBE_MAX_REVISIONS]);
struct kube_whole { /* whose Revisions a target's are among; "": none's, or it is not known (yet) */
    const char *service, *configuration;
};
void kube_cache_whole(const struct kube_cache *cache, const struct kube_target *target,
                      struct kube_whole *out);
/* --- of OpenWhisk (openwhisk.c): an action is a workload of bare pods, told by their labels, or by
 * their names where no label tells and no other action can have them. kube_cache_workload fails
 * with ERROR_CONFLICT where an action has none but pods that may be another's. */
#define KUBE_OPENWHISK_GROUP  "openwhisk.apache.org"
#define KUBE_OPENWHISK        KUBE_OPENWHISK_GROUP "/v1"
#define KUBE_ACTION           "Action"
#define KUBE_ACTION_CONTAINER "user-action"
#define KUBE_ACTION_PART_SIZE 257
struct kube_action { /* NAMESPACE/ACTION, or NAMESPACE/PACKAGE/ACTION */
    char namespace_[KUBE_ACTION_PART_SIZE], package[KUBE_ACTION_PART_SIZE],
        name[KUBE_ACTION_PART_SIZE]; /* package "": the default one */
};
int kube_action_parse(const char *text, struct kube_action *out, struct error *err);
/* What the names of its pods end with: "guest-hello". Two ways for one in a package: OpenWhisk
 * leaves the package out, and with its scheduler does not. */
#define KUBE_ACTION_ENDS     2
#define KUBE_ACTION_END_SIZE (3 * KUBE_ACTION_PART_SIZE)
size_t kube_action_ends(const struct kube_action *action,
                        char out[KUBE_ACTION_ENDS][KUBE_ACTION_END_SIZE]);
/* Of an action on a pod. Doubtful is a name that was cut, is a prewarmed pod's, or can be read in
 * two ways; by name other actions may claim it still. */
enum kube_claim { KUBE_CLAIM_NONE, KUBE_CLAIM_DOUBTFUL, KUBE_CLAIM_BY_NAME, KUBE_CLAIM_BY_LABEL };
enum kube_claim kube_action_claim(const struct kube_action *action, const struct kube_pod *pod);
bool kube_is_action(const struct kube_workload *workload);
/* --- of Knative, and of our class (owned.c): what Knative's autoscaler would do for a Revision is
 * left to us. It has a PodAutoscaler, a ServerlessService ("SKS"; routes to the pods in mode Serve,
 * to the activator in mode Proxy) and a Deployment. */
#define KUBE_KNATIVE_PROXIES "/apis/networking.internal.knative.dev/v1alpha1"
#define KUBE_CLASS           "autoscaling.knative.dev/class"
#define KUBE_OUR_CLASS       "mpa.faasrl.io"
#define KUBE_OWNED           "autoscaling.faasrl.io/owned" /* the class of the template is ours */
enum kube_truth { KUBE_UNKNOWN, KUBE_TRUE, KUBE_FALSE };
struct kube_owned {
    const char *namespace_, *name; /* of the Revision, the PodAutoscaler and the SKS */
    /* --- the PodAutoscaler */
    const char *uid, *protocol;
    const json_t *labels, *target; /* target: its scaleTargetRef */
    int64_t generation;
    int32_t min_scale, max_scale, initial_scale, activation_scale; /* the author's; -1: not set */
    int64_t window_ms, retention_ms, deadline_ms;                  /* likewise */
    bool unreachable;                                              /* no route leads to it */
    const json_t *status;                                          /* NULL: none yet */
    enum kube_truth active;
    int64_t active_since_ms; /* wall clock; 0: unknown */
    bool initialized;        /* was ready once */
    int32_t desired;         /* -1: unknown */
    /* --- the SKS */
    struct {
        bool exists, foreign;     /* foreign: it is another PodAutoscaler's */
        bool serves, ready;       /* mode Serve; has done what its spec asks for */
        bool proxied;             /* mode Proxy, and requests go to the activator by now */
        int64_t proxied_since_ms; /* wall clock */
        const char *service, *metrics_service; /* "" when not known */
    } sks;
    /* --- the Deployment */
    const char *deployment;
    int32_t replicas, ready; /* that it shall have, -1: it is not there; pods that are ready */
};
/* Walks all of them; 0 begins, false ends. None before all of them are known. */
bool kube_cache_owned(const struct kube_cache *cache, size_t *at, struct kube_owned *out);
/* One of them; false: it is none, or not all of it is known yet. */
bool kube_cache_owned_one(const struct kube_cache *cache, const struct kube_revision *revision,
                          struct kube_owned *out);
struct kube_template { /* of a Service or Configuration */
    const struct kube_resource *resource;
    const char *namespace_, *name;
    const char *class; /* "" when none is set */
    bool ours;         /* it was set by us, */
    bool alone;        /* and no other annotation */
    bool made;         /* a Configuration that belongs to a Service */
};
/* False: the workload has none. */
bool kube_cache_template(const struct kube_cache *cache, const struct kube_workload *workload,
                         struct kube_template *out);
/* Walks those whose class we have set. */
bool kube_cache_our_templates(const struct kube_cache *cache, size_t *at,
                              struct kube_template *out);
/* Looks once whether an earlier controller has left something of ours in Knative: bounds, or
 * Revisions of our class. Then all of Knative is followed, and on_found called. */
void kube_cache_seek_left(struct kube_cache *cache, void (*on_found)(void *arg), void *arg);
struct kube_steered { /* a Revision whose bounds are ours */
    struct kube_revision revision;
    const char *service, *configuration; /* whose it is; "" when not known */
};
/* Walks all of them; 0 begins, false ends. None before all of them are known. */
bool kube_cache_steered(const struct kube_cache *cache, size_t *at, struct kube_steered *out);
/* Knative is followed no more if nothing of ours is there; false: something is, or may be. For a
 * caller that nobody asks for anything of Knative, and not inside a callback of the cache. */
bool kube_cache_rest(struct kube_cache *cache);
/* The top-level workload that controls the pod, or NULL. */
const struct kube_workload *kube_cache_owner(const struct kube_cache *cache,
                                             const struct kube_pod *pod);
/* The first autoscaler of another kind that acts on the target, or NULL. A ScaledObject is named
 * rather than the HPA that KEDA made for it. */
const struct kube_scaler *kube_cache_scaler(const struct kube_cache *cache, const char *kind,
                                            const char *namespace_, const char *name, bool replicas,
                                            bool resources);
size_t kube_cache_pod_count(const struct kube_cache *cache);
size_t
kube_cache_bytes(const struct kube_cache *cache); /* memory held for pods, for bench and tests */

/* Projection of one object, by itself. */
struct kube_pod *kube_pod_from_json(const json_t *object);
/* Its kubelet has taken it, and answers for its resizes. */
bool kube_pod_is_taken(const struct kube_pod *pod);
/* Whether it has not been ready yet, or for less than longer_ms. One that has lost its readiness
 * does not start again. */
bool kube_pod_starts(const struct kube_pod *pod, int64_t longer_ms);
void kube_pod_free(struct kube_pod *pod);

/* --- events (events.c) -----------------------------------------------------------------------
 * Created, or counted up when the same thing is said again of the same object. */
struct kube_event {
    const char *api_version, *kind, *namespace_, *name, *uid; /* the object it is about */
    bool warning;
    const char *reason;  /* CamelCase, for machines */
    const char *message; /* for people */
};
void kube_event_send(struct kube *kube, const struct kube_event *event);

/* --- leader election (lease.c) --------------------------------------------------------------- */
struct kube_lease;

struct kube_lease_spec {
    const char *namespace_, *name, *identity;
    int64_t duration_ms, renew_deadline_ms, retry_ms; /* 0: 15 s, 10 s, 2 s */
    bool unwanted; /* it is only looked at, until kube_lease_want */
    /* The identity is a group's: its members hold the lease together, and none gives it back. */
    bool shared;
    /* Called on gaining and on losing the lease; lost is said before another can gain it. */
    void (*on_change)(void *arg, bool leading);
    void *arg;
};
struct kube_lease *kube_lease_start(struct kube *kube, const struct kube_lease_spec *spec);
/* Gives the lease back if we hold it (best effort, asynchronous), then frees. */
void kube_lease_stop(struct kube_lease *lease);
/* Frees without giving it back: others have to wait until it runs out. NULL is fine. */
void kube_lease_abandon(struct kube_lease *lease);
/* Unwanted: we lead no more from this call on, which is not said, and it is given back so that
 * another can take it at once. Not inside on_change. */
void kube_lease_want(struct kube_lease *lease, bool wanted);
const char *kube_lease_holder(const struct kube_lease *lease); /* "" when unknown */
bool kube_lease_is_known(const struct kube_lease *lease);      /* it was read or written once */
/* Ourselves while we lead, or another whose lease has not run out; else "". */
const char *kube_lease_live_holder(const struct kube_lease *lease);
int64_t
kube_lease_left_ms(const struct kube_lease *lease); /* that we lead at least; 0: we do not */

#endif
