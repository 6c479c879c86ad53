/* Private to pkg/controller: one followed MPA and the controller that follows it. */
#ifndef FAASRL_CONTROLLER_ENTRY_H
#define FAASRL_CONTROLLER_ENTRY_H

#include "controller/controller.h"
#include "harvest/group.h"
#include "learn/learn.h"
#include "metrics/metrics.h"
#include "serve.h"
#include "timeline/timeline.h"

/* One watch of MPAs: of a namespace, or of all. */
struct scope {
    struct controller *controller;
    const char *namespace_; /* NULL: all */
    struct kube_watch *watch;
    bool listed;        /* it was, once */
    uint64_t list_mark; /* raised at each full list; entries with an older mark are gone */
    char *trouble;      /* why the watch does not work, NULL when it does */
};

/* What is counted as it happens; the rest is looked up at each scrape. */
struct report {
    struct metrics *metrics;
    struct metrics_family *passes, *decisions, *rescales, *resizes, *status_writes;
    struct metrics_family *queries, *query_seconds, *requests, *watch_errors;
    struct metrics_family *learning;
    int64_t pass_began_ms; /* monotonic, 0: none is under way */
    int64_t passed_ms;     /* wall clock, of the last whole pass, 0: none yet */
};

#define REPORT_NAME(name) "faasrl_mpa_" name
struct report_gauge {
    const char *name, *help;
    void (*collect)(void *arg, struct metrics_family *family); /* arg: the controller */
    const char *labels[METRICS_MAX_LABELS];
};

/* What a controller on a Kubernetes cluster has besides (live.c). */
struct live {
    struct controller *controller;
    struct kube *kube;
    struct kube_cache *cache;
    struct scope *scopes;
    size_t scope_count;
    struct kube_lease *lease;
    struct shards *shards; /* in place of the lease; NULL: all is ours while we lead */
    struct owner *owner;   /* of Knative's Revisions that are of our class */
    uv_timer_t tick, soon;
    bool sought; /* whether an earlier controller has left something */
    int open_handles;
};

struct controller {
    struct world world;
    struct observe *observe;
    struct controller_options options;
    struct map entries;   /* namespace/name → struct entry */
    struct map by_target; /* entry_target_key → the entry that has the target */
    struct map parts; /* key → the entry, of those whose target may be a part of another one */
    struct map pools; /* namespace/group → what the members of a harvest group leave */
    bool leading, stopping;
    bool untold;     /* a status was left for the next pass, as too many writes wait */
    size_t begin_at; /* in entries: where the next pass begins, with the first that was left */
    struct report report;
    struct learner *learner;                         /* NULL: nothing is learned */
    struct serve_route routes[3 + DASHBOARD_ROUTES]; /* what is served */
    struct serve *serve;                             /* NULL: nothing is served */
    struct timeline *timeline;   /* what the dashboard shows; NULL: there is none */
    struct dashboard *dashboard; /* NULL: it is not served */
    struct {
        json_t *tree;
        const char *text; /* NULL: none */
    } unpacked;           /* the status asked for last, by entry_status */
    bool ended;           /* nothing more will happen */
    struct live *live;    /* NULL: on another world */
};

/* Kept alive by `refs` while answers are awaited, even after the MPA is gone. */
struct entry {
    struct controller *controller;
    char *key;
    struct api_mpa mpa;
    char *invalid; /* why the spec cannot be followed, NULL when it can */
    const struct scope *scope;
    uint64_t mark;
    int refs;
    bool gone;
    bool pods_changed;
    bool due; /* to be decided on soon, not only at the next interval */

    struct recommend_seat seat;       /* who decides at present */
    const struct recommender *wanted; /* who the spec says should */
    char why_not[256];                /* "": it does */
    double memory_s;                  /* how far back its memory reaches */
    struct guard *guard;
    struct actuator *actuator;
    bool has_history;
    struct learning *learning; /* NULL: its recommender does not learn */
    struct share *share;       /* of a group's CPU; NULL: it shares with nobody */

    struct actuate_sizes sizes; /* what every pod should have; count 0: not decided yet */
    bool may_act;               /* as of the last decision: all is known, and it is ours to act, */
    bool may_size;              /* or not all, but new pods can have the size of the others */
    bool scaling;               /* a write of replicas is under way */
    int scale_from, scale_to;
    bool scale_unsure;       /* that write may have been carried out, though its answer was lost, */
    double scale_unsure_s;   /* monotonic, then */
    char scale_refusal[256]; /* why the last write of replicas was not taken, "" when it was */
    int undone;              /* decisions in a row before which its bounds were set back */
    int64_t quiet_since_ms;  /* monotonic, 0: there are requests */
    int64_t claim_after_ms;  /* monotonic: our class is tried again on its target */
    int64_t settles_ms;      /* monotonic: when the next boost of a pod ends; 0: none does */
    int64_t increased_ms;    /* monotonic, 0: never */
    int64_t last_scale_ms;   /* wall clock, 0: never */
    int64_t deferred_since_ms, capped_until_ms; /* monotonic */
    bool infeasible;                            /* why it is capped; else deferred for too long */
    char cap_message[320];

    struct recommend_shadow *shadow; /* what Auto would have come to, in mode Off; else NULL */
    int64_t shadow_since_ms;         /* wall clock */
    int64_t shadow_generation;       /* of the spec that it is about */

    /* Status as text, as a tree of JSON has ten times the size: last written, or read where another
     * replica leads; and what was there before, while it is being written. NULL: unknown. */
    char *written, *written_before;
    int64_t written_ms;
    bool writing;
    bool unknown; /* whether the last write of status was taken */
    char recommender_name[64], action[32], reason[640];
    char refusal[64]; /* the reason of the refusal that was last said in an event */

    struct { /* of the last round, for metrics */
        bool decided;
        int32_t current_replicas, desired_replicas; /* -1: unknown */
        double latency_us;                          /* NaN: unknown */
        uint32_t known, true_;                      /* conditions, one bit each */
        char reasons[API_COND_COUNT][64];
        char *observation;  /* observe_json as text, NULL: nothing was seen */
        char *cpu;          /* recommended cores by container, likewise */
        int64_t decided_ms; /* wall clock, of the last round that came to a decision, 0: none */
    } last;
    struct story *story; /* what the dashboard tells of it; NULL: there is none */
};

/* controller.c: what both worlds need. */
struct controller *controller_make(const struct world *world, struct observe *observe,
                                   const struct controller_options *options, struct live *live);
/* Gives the entry of the MPA, or NULL when it is gone. */
struct entry *controller_apply(struct controller *controller, const json_t *object, bool deleted);
/* The entries of this scope that its last full list did not have are gone. */
void controller_forget_unmarked(struct controller *controller, const struct scope *scope);
/* Whether what is in the namespace is ours to decide on while we lead. */
bool controller_has(const struct controller *controller, const char *namespace_);
/* Forgets the MPAs that are another's now, and leaves all of theirs as it is. */
void controller_leave(struct controller *controller);
/* By what MPAs with the same target are told. */
char *entry_target_key(const struct entry *entry);
/* rival.c */
/* The MPA to which this one has to leave its target, or a part of it, or NULL. */
struct entry *entry_rival(const struct entry *entry);
/* Of several MPAs with one target, one that acts has it before one in mode Off, and the oldest of
 * these before the younger ones. */
bool entry_comes_before(const struct entry *a, const struct entry *b);
/* Whether what it names may be a part of what another MPA names. */
bool entry_is_part(const struct entry *entry);
void controller_pods_changed(struct controller *controller, const struct kube_workload *owner);
/* controller_catch_up will be called after so long, or sooner. */
void controller_wake(struct controller *controller, int64_t in_ms);
void controller_workload_changed(struct controller *controller,
                                 const struct kube_workload *workload);
struct entry *controller_entry_of(const struct controller *controller, const char *api_version,
                                  const char *kind, const char *namespace_, const char *name);
/* live.c */
void live_stop(struct live *live);

struct entry *entry_new(struct controller *controller, const char *key);
void entry_hold(struct entry *entry);
void entry_release(struct entry *entry);
/* The MPA is gone: stops everything, frees when the last answer has come. */
void entry_remove(struct entry *entry);
/* It is another replica's: the same, but nothing is handed back or dropped. */
void entry_leave(struct entry *entry);
/* Takes over a new state of the MPA. */
void entry_update(struct entry *entry, const json_t *object);
/* Chooses the recommender the spec names; false when the threshold one stands in, with the reason.
 */
bool entry_choose_recommender(struct entry *entry, const char **why_not);
bool entry_is_external(const struct entry *entry);

/* NULL: err tells why, as kube_cache_workload does. */
const struct kube_workload *entry_workload(const struct entry *entry, struct error *err);
/* The pods of the entry's target, as an array to free() (NULL when there is no such target). */
const struct kube_pod **entry_pods(const struct entry *entry, const struct kube_workload **workload,
                                   size_t *count);
__attribute__((format(printf, 4, 5))) void entry_event(struct entry *entry, bool warning,
                                                       const char *reason, const char *fmt, ...);

/* decide.c: the whole round for one MPA: observe, recommend, guard, actuate, status. */
void entry_decide(struct entry *entry);
/* act.c */
/* A write of replicas whose answer was lost counts for the rates once the target has them. */
void act_settle(struct entry *entry, const struct kube_workload *workload);
void act_on_replicas(struct entry *entry, const struct kube_workload *workload, int replicas,
                     int64_t quiet_ms);
/* Keeps a platform's own autoscaler to what is decided already, and tells nobody. */
void act_on_bounds(struct entry *entry, const struct kube_workload *workload, int replicas,
                   int64_t quiet_ms);
/* Whether a platform sets back what it is held to, again and again. Once for each decision. */
bool act_in_vain(struct entry *entry, const struct kube_workload *workload, int replicas,
                 int64_t quiet_ms);
void act_on_sizes(struct entry *entry, const struct kube_workload *workload,
                  const struct kube_pod *const *pods, size_t count, struct actuate_report *report);
/* CPU of a container once its pod has started: what is decided, or else the template's. API_ABSENT:
 * neither, or it is not ours to set. */
int64_t act_lasting_cpu(const struct entry *entry, const struct kube_workload *workload,
                        const char *container);
/* shadow.c: what Auto would have come to. Nothing, but in mode Off. */
void shadow_add(struct entry *entry, const struct observation *seen,
                const struct recommendation *proposed);
void shadow_tell(const struct entry *entry, struct api_status *status);
/* learning.c: policies of their own. Those that take an entry do nothing for one that does not
 * learn, unless they say otherwise. */
/* Begins or ends, as its recommender is one that learns or not. */
void learning_follow(struct entry *entry);
void learning_end(struct entry *entry);
void learning_forget(struct entry *entry); /* what is kept of it */
bool learning_wants_past(const struct entry *entry);
/* reading: learning_remember and learning_past_read will be called. Must learn. */
void learning_ask_past(struct entry *entry, bool reading);
void learning_remember(struct entry *entry, const char *container, double time_s, double span_s,
                       double requests_per_s, double cpu_milli);
void learning_past_read(struct entry *entry);
/* Before a decision: takes in what is seen, begins searches, gives the seat its policy. */
void learning_see(struct entry *entry, const struct observation *seen);
void learning_decided(struct entry *entry, bool by_policy);
void learning_guarded(struct entry *entry, const struct guard_decision *decision, bool cpu_capped);
/* Why thresholds are to decide for now, as a condition's reason, and in words; NULL: they are not.
 */
const char *learning_holds_back(const struct entry *entry, char *text, size_t size);
const char *learning_which(const struct entry *entry); /* policy decides */
struct learning_state {
    const char *stage;
    int64_t since_ms; /* wall clock */
    bool own_policy;
    double progress; /* of the search under way, 0 to 1; NaN: there is none */
};
/* For metrics; false: it does not learn. */
bool learning_state(const struct entry *entry, struct learning_state *out);
struct learning_told {
    const char *state; /* bootstrapping, retraining, learning, own or general */
    double progress;   /* of a search, 0 to 1; NaN: none is under way */
    char message[256];
    const char *policy, *sha256;           /* that decides; NULL: none does */
    int64_t since_ms;                      /* wall clock: when none began to decide; 0: one does */
    const struct learn_versions *versions; /* NULL: there is nothing to choose from */
};
/* False: it has nothing to do with policies. */
bool learning_tell(const struct entry *entry, struct learning_told *out);
double learning_earned(const struct entry *entry); /* in the last interval; NaN: unknown */
/* story.c: what happened of late, for the dashboard. Nothing where there is none. */
struct story {
    struct timeline_series *series;
    double requests_per_s, utilization, cpu_milli, wanted_cpu_milli; /* of the last round */
    bool fallback;                                                   /* likewise */
    int32_t marked_from, marked_to; /* of the decision that was marked last */
    float marked_from_cpu, marked_to_cpu;
    bool changed;  /* since streams were last told */
    uint64_t told; /* hash of what they were */
};
struct story_round { /* NaN: unknown */
    double requests_per_s, latency_ms, utilization, cpu_milli, wanted_cpu_milli;
    int32_t replicas, wanted_replicas; /* -1: unknown */
    bool changes; /* something is decided, from what the target asks for now: */
    int32_t from_replicas, to_replicas;
    double to_cpu_milli;
    const struct api_condition_value *fallback;
};
void story_begin(struct entry *entry);
void story_end(struct entry *entry);
void story_add(struct entry *entry, const struct story_round *round);
void story_event(struct entry *entry, bool warning, const char *reason, const char *message);
/* keep.c: where live.c keeps policies; as in struct world. */
void keep_load(void *self, const struct api_mpa *mpa, world_loaded on_done, void *arg);
void keep_save(void *self, const struct api_mpa *mpa, const struct world_policy *policy,
               actuate_done on_done, void *arg);
void keep_drop(void *self, const struct api_mpa *mpa);
/* own.c: Knative's Revisions of our class, and bounds that nobody holds any more. Followed while a
 * target is of Knative, or something of ours is there. */
struct owner *owner_new(struct live *live, uv_loop_t *loop);
void owner_free(struct owner *owner);
void owner_begin(struct owner *owner); /* a target of Knative is asked for, or ours is there */
/* Something of theirs may have changed. NULL is fine. */
void owner_wake(struct owner *owner);
/* As in struct world. */
int owner_may_own(void *self, const struct kube_workload *workload, struct error *err);
/* As in struct world, for those of these Revisions that are of our class. */
void owner_set_replicas(struct owner *owner, const struct kube_revision *revisions, size_t count,
                        const struct world_wish *wish, actuate_done on_done, void *arg);
/* harvest.c: what a pod may get by the MPA's group; false: it has none. Once an interval. */
bool harvest_range_of(struct entry *entry, const struct kube_workload *workload,
                      const struct observation *seen, struct harvest_range *out);
void harvest_leave(struct entry *entry); /* nothing where it is in none */
/* What is proposed within the range. */
void harvest_gave(struct entry *entry, const struct recommendation *proposed, double milli);
/* status.c: what status is, of any leader; NULL: none. Until that of another MPA is asked for. */
const json_t *entry_status(const struct entry *entry);
/* Puts status as text in the place of another; either may be NULL. */
void entry_keep_status(struct entry *entry, char **place, const json_t *status);
void entry_move_status(struct entry *entry, char **from, char **to);
void entry_forget_status(struct entry *entry);
/* publish.c: writes status when it differs, or when its figures are old. */
void publish(struct entry *entry, struct api_status *status);
/* history.c */
void history_ask(struct controller *controller);
/* dashboard.c */
struct dashboard *dashboard_new(struct controller *controller, uv_loop_t *loop);
void dashboard_free(struct dashboard *dashboard);                  /* NULL: nothing */
void dashboard_gone(struct dashboard *dashboard, const char *key); /* an MPA is; NULL: nothing */
/* report.c */
void report_start(struct controller *controller);
void report_stop(struct controller *controller);
void report_gauges(struct controller *controller, const struct report_gauge *gauges, size_t count);
void report_pass_began(struct controller *controller);
void report_pass_ended(struct controller *controller);
/* report_mpa.c: what is told of each MPA. */
void report_mpas(struct controller *controller);

#endif
