/* What the files of pkg/kube share and nobody else sees. */
#ifndef FAASRL_KUBE_INTERNAL_H
#define FAASRL_KUBE_INTERNAL_H

#include "kube/kube.h"

#include <sys/queue.h>

/* --- client.c -------------------------------------------------------------------------------- */
struct kube_call; /* one request, queued, under way or waiting */

struct kube_call_spec {
    struct kube_request request;
    bool urgent; /* a write that neither waits for the rate limit nor is sent again after a 429 */
    http_chunk on_chunk; /* set: the answer is streamed; then no timeout_ms means none */
    int64_t idle_timeout_ms;
    size_t max_body; /* 0: 16 MiB */
};
/* As kube_send, with more choice. The result is good until on_done is called. */
struct kube_call *kube_call_start(struct kube *kube, const struct kube_call_spec *spec);
/* Ends the call without on_done. Not inside its on_chunk. */
void kube_call_cancel(struct kube_call *call);

uv_loop_t *kube_loop(const struct kube *kube);
void kube_tell_watch_error(const struct kube *kube, const char *path);
/* The state of events.c, kept for it by the client. */
struct kube_events;
struct kube_events **kube_events_slot(struct kube *kube);
size_t kube_events_objects(struct kube *kube); /* of how many objects it counts the events */
void kube_events_free(struct kube_events *events);

/* Something that must know when the client goes: watches and leases. */
struct kube_member {
    LIST_ENTRY(kube_member) link;
    void (*on_kube_free)(struct kube_member *member);
};
void kube_member_add(struct kube *kube, struct kube_member *member);
void kube_member_remove(struct kube_member *member);

/* --- request.c ------------------------------------------------------------------------------ */
enum error_code kube_status_code(int status, bool told_to_wait);
const char *kube_content_type(enum kube_patch patch);
const char *kube_method(const struct kube_request *request); /* NULL: not one that we know */
char *kube_url(const char *server, const char *manager, const struct kube_request *r);

/* --- timer.c --------------------------------------------------------------------------------- */
struct kube_timer; /* a uv_timer_t that can be freed at any time */
struct kube_timer *kube_timer_new(uv_loop_t *loop, void (*on_timer)(void *arg), void *arg);
void kube_timer_start(struct kube_timer *timer, int64_t ms); /* once; replaces an earlier start */
void kube_timer_stop(struct kube_timer *timer);
bool kube_timer_active(const struct kube_timer *timer);
void kube_timer_free(struct kube_timer *timer); /* NULL is fine */
double kube_random(void);                       /* uniform in [0, 1) */

/* --- stream.c -------------------------------------------------------------------------------- */
json_t *kube_json_decode(const char *text, size_t len, struct error *err);

/* --- project.c, workload.c: objects to what we keep of them
 * ------------------------------------------------ Each result is one block of memory, strings
 * included, that begins with `headroom` zeroed bytes for the cache's own use; free() the block.
 * NULL when the object is not usable. */
struct kube_pod *kube_pod_project(const json_t *object, size_t headroom);
struct kube_workload *kube_workload_project(const json_t *object,
                                            const struct kube_resource *resource, size_t headroom);
struct kube_scaler *kube_scaler_project(const json_t *object, const char *kind, size_t headroom);
/* The uid of the object, "" when it has none that we can keep. */
const char *kube_uid(const json_t *object);
const json_t *kube_controlling_owner(const json_t *object); /* its reference, or NULL */
/* Copies len bytes and a NUL to *at and moves it behind them. */
char *kube_pack(char **at, const char *text, size_t len);
/* As Kubernetes' LabelSelectorAsSelector().String(). NULL when it cannot be told. */
char *kube_selector_print(const json_t *selector);

/* --- store.c: the objects of one kind, as somebody else's values -------------------------------
 */
struct kube_listener {
    void (*enter)(void *arg); /* callbacks begin: our end may be asked for inside, */
    void (*leave)(void *arg); /* and has to wait until here */
    void (*on_workload)(void *arg, const struct kube_workload *workload, bool deleted);
    void (*on_owned)(void *arg);
    void *arg;
};
struct kube_store;
struct kube_store_spec {
    struct kube *kube;
    const struct kube_resource *resource; /* outlives the store, */
    char *const *namespaces;              /* as these do; NULL-terminated; empty: all */
    struct kube_listener listener;        /* for enter and leave */
    /* The value of an object, made of the old one (which it may be), or NULL when it is not usable:
     * then the old one stays. */
    void *(*make)(void *arg, const json_t *object, void *old);
    void (*free)(void *value);
    void (*on_change)(void *arg, void *value, bool deleted);
    void *arg;
};
struct kube_store *kube_store_new(const struct kube_store_spec *spec);
void kube_store_free(struct kube_store *store); /* NULL is fine */
/* Fails while not all is known: ERROR_BUSY, or why. */
int kube_store_check(const struct kube_store *store, struct error *err);
void *kube_store_get(const struct kube_store *store, const char *namespace_, const char *name);
void *kube_store_next(const struct kube_store *store, size_t *at); /* walks all; 0 begins */

/* --- follow.c: kinds that are not built in -----------------------------------------------------
 */
struct kube_follow;
struct kube_follow *kube_follow_new(struct kube *kube, char *const *namespaces,
                                    const struct kube_listener *listener);
void kube_follow_free(struct kube_follow *follow);
/* As kube_cache_workload, for any kind with a /scale. */
const struct kube_workload *kube_follow_find(struct kube_follow *follow,
                                             const struct kube_target *target, struct error *err);
const struct kube_workload *kube_follow_uid(const struct kube_follow *follow, const char *uid);

/* --- knative.c: Knative's Services, Configurations and Revisions -------------------------------
 */
struct kube_knative;
struct kube_knative *kube_knative_new(struct kube *kube, char *const *namespaces,
                                      const struct kube_listener *listener);
void kube_knative_free(struct kube_knative *knative);
/* As kube_cache_workload and kube_cache_revisions. */
const struct kube_workload *kube_knative_find(struct kube_knative *knative,
                                              const struct kube_target *target, struct error *err);
size_t kube_knative_revisions(const struct kube_knative *knative,
                              const struct kube_workload *workload,
                              struct kube_revision out[KUBE_MAX_REVISIONS]);
/* As kube_cache_whole. */
void kube_knative_whole(const struct kube_knative *knative, const struct kube_target *target,
                        struct kube_whole *out);
/* What somebody has asked for that routes to the Revision with this uid, or NULL. */
const struct kube_workload *kube_knative_uid(const struct kube_knative *knative, const char *uid);

/* As kube_cache_owned and kube_cache_owned_one, without what is known of the Deployment;
 * revision_uid: whose pods they are.
 */
bool kube_knative_owned(const struct kube_knative *knative, size_t *at, struct kube_owned *out,
                        const char **revision_uid);
bool kube_knative_owned_one(const struct kube_knative *knative,
                            const struct kube_revision *revision, struct kube_owned *out,
                            const char **revision_uid);
/* As kube_cache_template and kube_cache_our_templates. */
bool kube_knative_template(const struct kube_knative *knative, const struct kube_workload *workload,
                           struct kube_template *out);
bool kube_knative_our_templates(const struct kube_knative *knative, size_t *at,
                                struct kube_template *out);
/* As kube_cache_seek_left, kube_cache_steered and kube_cache_rest. */
void kube_knative_seek_left(struct kube_knative *knative, void (*on_found)(void *arg), void *arg);
bool kube_knative_steered(const struct kube_knative *knative, size_t *at, struct kube_steered *out);
bool kube_knative_rest(struct kube_knative *knative);

/* --- left.c: whether Knative has something of ours ----------------------------------------------
 */
struct kube_left;
/* Asks at once; on_found is called at most once, never before this has returned. */
struct kube_left *kube_left_new(struct kube *kube, char *const *namespaces,
                                void (*on_found)(void *arg), void *arg);
void kube_left_free(struct kube_left *left); /* NULL is fine; not inside on_found */

/* --- owned.c: what is kept of a Revision of our class -------------------------------------------
 */
struct kube_ours; /* of its PodAutoscaler */
struct kube_ours *kube_ours_new(const json_t *object);
void kube_ours_free(struct kube_ours *claim); /* NULL is fine */
void *kube_sks_make(void *arg, const json_t *object, void *old);
void kube_sks_free(void *sks);
/* sks may be NULL. The result lives as long as both. */
void kube_ours_tell(const struct kube_ours *claim, const void *sks, struct kube_owned *out,
                    const char **revision_uid);
/* An annotation that is a whole number, also in its older spelling (NULL: there is none); -1:
 * absent. */
int32_t kube_scale_at(const json_t *object, const char *key, const char *older);
int32_t kube_count_at(const json_t *object, const char *key); /* of its status; -1: unknown */

/* --- openwhisk.c: OpenWhisk's actions -----------------------------------------------------------
 */
struct kube_openwhisk;
struct kube_openwhisk *kube_openwhisk_new(const struct kube_cache *cache);
void kube_openwhisk_free(struct kube_openwhisk *openwhisk);
/* As kube_cache_workload, kube_cache_pods and kube_cache_owner. */
const struct kube_workload *kube_openwhisk_find(struct kube_openwhisk *openwhisk,
                                                const struct kube_target *target,
                                                struct error *err);
size_t kube_openwhisk_pods(const struct kube_openwhisk *openwhisk,
                           const struct kube_workload *workload, const struct kube_pod **out,
                           size_t max);
const struct kube_workload *kube_openwhisk_owner(const struct kube_openwhisk *openwhisk,
                                                 const struct kube_pod *pod);

/* --- cache.c -----------------------------------------------------------------------------------
 */
struct kube_node;
/* Walks the pods of OpenWhisk in a namespace: *at NULL begins, NULL ends. */
const struct kube_pod *kube_cache_next_action_pod(const struct kube_cache *cache,
                                                  const char *namespace_, struct kube_node **at);

/* --- index.c: hash tables whose links live in the records ------------------------------------- */
struct kube_node {
    struct kube_node *next, **link;
    uint64_t hash;
};
struct kube_index {
    struct kube_node **buckets;
    size_t cap, count;
};
uint64_t kube_hash(const char *first, ...) __attribute__((sentinel));
void kube_index_add(struct kube_index *index, struct kube_node *node, uint64_t hash);
void kube_index_remove(struct kube_index *index, struct kube_node *node);
/* The first node with this hash, and the next one after a node: the caller compares the keys. */
struct kube_node *kube_index_first(const struct kube_index *index, uint64_t hash);
struct kube_node *kube_index_next(const struct kube_node *node);
/* Walks all: NULL begins, NULL ends. The node before may be removed once the next is known. */
struct kube_node *kube_index_walk(const struct kube_index *index, const struct kube_node *node);
void kube_index_free(struct kube_index *index); /* not the records */

#endif
