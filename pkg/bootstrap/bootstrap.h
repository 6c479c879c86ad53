/* The general policy of the recommender ppo, learned in simulated clusters before it has seen any
 * real function (AWARE's offline bootstrap).
 *
 * What is learned in is trials: the recommender, the guard and the cluster of mpactl compare, with
 * workloads that are made up anew for each episode. The same seed gives the same weights, whatever
 * the number of threads. docs/ppo.md tells what is made up and what is earned. */
#ifndef FAASRL_BOOTSTRAP_H
#define FAASRL_BOOTSTRAP_H

#include "recommend/policy.h"

struct trace;
struct trace_function;
struct api_spec;

/* --- the world ------------------------------------------------------------------------------- */
struct bootstrap_subject { /* one function that is known */
    const struct trace_function *workload;
    const struct api_spec *spec; /* its bounds; NULL: the usual ones */
    double goal_ms;
    bool as_it_was; /* its last hours, as they were; else some like them */
};

struct bootstrap_world_config {
    size_t alone;         /* clusters with one function, never short of CPU */
    size_t shared;        /* clusters whose functions share scarce nodes */
    size_t episode_steps; /* decisions */
    double interval_s;    /* between them */
    size_t threads;
    const char *off; /* features and heads that policies do without, as in a checkpoint */
    const struct recommender *recommender; /* that is judged; NULL: ppo learns, */
    const struct recommend_policy *policy; /* and what it is judged by */
    /* All rows are this function, each from another moment on; NULL: functions are made up. */
    const struct bootstrap_subject *subject;
};
extern const struct bootstrap_world_config bootstrap_world_default;
#define BOOTSTRAP_SHARED_FUNCTIONS 4

struct bootstrap_figures {      /* sums over all rows since the last reset of them */
    double steps, cost, reward; /* cost: CPU reserved ÷ needed, by step */
    double episodes;            /* that have ended */
    double met;                 /* of which kept their goal */
    double late_ratio;          /* sum over ended episodes: late ÷ allowed, at most 10 */
};

struct bootstrap_world;
/* One row for each function. out->self is the world. */
struct bootstrap_world *bootstrap_world_new(const struct bootstrap_world_config *config,
                                            uint64_t seed, struct error *err);
void bootstrap_world_free(struct bootstrap_world *world);
const struct rl_world *bootstrap_world_rows(const struct bootstrap_world *world);
/* Takes the figures and begins them anew. */
struct bootstrap_figures bootstrap_world_figures(struct bootstrap_world *world);

/* --- learning -------------------------------------------------------------------------------- */
struct bootstrap_config {
    struct bootstrap_world_config world;
    struct rl_ppo_config ppo;
    size_t updates; /* 0: the core's own choices */
    uint64_t seed;
    /* After each update; or NULL. */
    void (*on_update)(void *arg, size_t update, const struct bootstrap_figures *figures);
    void *arg;
};
void bootstrap_config_init(struct bootstrap_config *config);
/* Into an empty checkpoint. */
int bootstrap_learn(const struct bootstrap_config *config, struct rl_checkpoint *out,
                    struct error *err);

/* --- judging (judge.c) ------------------------------------------------------------------------ */
/* How a recommender does on made-up workloads of another seed than was learned with. */
enum { BOOTSTRAP_TOGETHER = 3, BOOTSTRAP_KINDS }; /* the first are those of enum trace_class */
struct bootstrap_judgement {                      /* of functions of one kind */
    size_t functions; /* with 1,000 requests or more; others do not count */
    size_t met;       /* of these kept the goal */
    double late;      /* share of requests, and */
    double cost;      /* CPU reserved ÷ needed, and */
    double reward;    /* of a decision: means over functions */
};
/* Functions alone by their class, and those that share nodes; a subject's episodes, with however
 * many requests, are all of the first kind. world says all but how many. */
int bootstrap_judge(const struct bootstrap_world_config *world, size_t clusters, uint64_t seed,
                    struct bootstrap_judgement out[BOOTSTRAP_KINDS], struct error *err);

/* --- a policy for one function (tune.c) --------------------------------------------------------
 */
/* Whether other choices than a policy's serve one function better: how much it likes each option of
 * its heads is moved, one after the other, and what earns more in the simulator is kept. All are
 * tried on the same requests, so that few episodes tell. */
struct bootstrap_tuning {
    const struct rl_checkpoint *from;  /* a policy of corrections */
    const struct rl_checkpoint *rival; /* to be better than; NULL: than `from` */
    struct bootstrap_subject subject;
    double interval_s;
    size_t episodes; /* to learn from; and half as many others to judge by */
    size_t episode_steps;
    size_t threads;
    uint64_t seed;
    /* How much of it is done, from time to time; false: it is to end. Or NULL. */
    bool (*on_progress)(void *arg, double share);
    void *arg;
};
struct bootstrap_gain {
    struct bootstrap_judgement before, after;   /* on episodes that were not learned from */
    struct bootstrap_judgement was, would_have; /* on the last hours as they were */
    bool better; /* on the former, and no worse on the latter: `out` is worth taking over */
};
/* Into an empty checkpoint. Fails with ERROR_CANCELLED where it was to end. */
int bootstrap_tune(const struct bootstrap_tuning *tuning, struct rl_checkpoint *out,
                   struct bootstrap_gain *gain, struct error *err);

/* --- a function that was watched (fit.c) -------------------------------------------------------
 */
struct recommend_record;
struct bootstrap_fit {
    const struct recommend_record *record;
    const char *name;
    double needs_s;        /* how long it must have been watched */
    double needs_requests; /* and how many must have come */
    double demand_s;       /* what a request costs is of this long ago at most */
};
/* As a workload that comes again and again. Fails, with what there is, where that is too little. */
int bootstrap_fit(const struct bootstrap_fit *fit, struct trace *out, struct error *err);

/* --- workloads (workloads.c) ------------------------------------------------------------------ */
/* Some load that somebody might have: arrivals of span_s and a demand. */
int bootstrap_workload(struct random *random, double span_s, struct trace *out, struct error *err);

#endif
