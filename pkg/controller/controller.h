/* The loop that joins the packages: watch MPAs, collect figures each interval, decide, guard,
 * actuate, say so in status and events. Only the leader writes, or of each shard its holder. */
#ifndef FAASRL_CONTROLLER_H
#define FAASRL_CONTROLLER_H

#include "guard/guard.h"
#include "journal/journal.h"
#include "kube/kube.h"
#include "learn/learn.h"
#include "observe/observe.h"
#include "world.h"

struct controller;

#define SHARDS_MAX    64
#define SHARDS_END_MS 2000 /* with shards: how long controller_free may need the loop */

enum controller_dashboard {
    DASHBOARD_OFF,
    DASHBOARD_KUBERNETES, /* for those whom the API server lets list MPAs */
    DASHBOARD_OPEN,       /* for anybody who asks for it by a loopback address */
};

struct controller_options {
    const char *const *namespaces; /* NULL-terminated; NULL or empty: all */
    double interval_s;             /* between decisions */
    double status_interval_s;      /* between writes of status that only refresh figures */
    double history_s;              /* how far back usage is read at start; 0: not at all */
    int default_cpu_utilization;   /* the goal of MPAs that state none for cpu, in per cent */
    struct guard_limits limits;
    struct journal *journal;               /* of all decisions, not ours; NULL: none is kept */
    const struct recommend_policy *policy; /* of recommenders that have learned, or NULL */
    const char *policy_trouble;            /* why there is none, or NULL */
    const struct rl_checkpoint *general;   /* the same, to learn from; NULL: nothing is learned */
    struct learn_rules learn;              /* when; */
    double learn_history_s;                /* how far back is looked at first; */
    size_t learn_effort;                   /* as of learner_new */
    double pass_limit_s;                   /* a pass that takes longer hangs: /healthz says so */
    bool per_mpa_metrics;
    enum controller_dashboard dashboard;
    bool leader_election;
    const char *lease_namespace, *lease_name, *identity;
    unsigned shards;   /* that replicas divide among them; less than 2: one replica does all */
    struct http *http; /* for what is asked of Knative's activators; NULL: they cannot be asked */
    /* The lease was lost: nothing may be written any more; the caller ends the process. */
    void (*on_lost)(void *arg);
    void *arg;
};

/* On a Kubernetes cluster: watches it, leads by a lease, makes a pass each interval. */
struct controller *controller_new(uv_loop_t *loop, struct kube *kube, struct observe *observe,
                                  const struct controller_options *options);
void controller_free(struct controller *controller);
/* Serves /metrics, /healthz, /readyz and the dashboard on ADDRESS:PORT until controller_free. */
int controller_serve(struct controller *controller, uv_loop_t *loop, const char *listen,
                     struct error *err);
int controller_port(const struct controller *controller); /* that it is served on */

/* --- on another world -------------------------------------------------------------------------
 * It always leads; its owner says what comes and goes, and when. */
struct controller *controller_new_on(const struct world *world, struct observe *observe,
                                     const struct controller_options *options);
/* An MPA appeared, changed (its status too) or went. */
void controller_mpa(struct controller *controller, const json_t *object, bool deleted);
/* Collects figures, then decides on every MPA. */
void controller_pass(struct controller *controller);
/* Does what need not wait for the next pass: decides on MPAs that are new or changed, and gives new
 * pods the size that was decided for the others. */
void controller_catch_up(struct controller *controller);
/* Nothing more will happen there: the dashboard says so. */
void controller_ended(struct controller *controller);

#endif
