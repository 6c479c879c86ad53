/* A policy of its own for each function, found while the controller goes on.
 *
 * A course (course.c) says where one function is: whether there is enough to learn from, what may
 * decide meanwhile, when to learn again and when to go back. The learner (learner.c) is a thread of
 * the lowest priority that looks for policies in the simulator, for one function after the other.
 * docs/adaptation.md tells it in words. */
#ifndef FAASRL_LEARN_H
#define FAASRL_LEARN_H

#include <uv.h>

#include "bootstrap/bootstrap.h"
#include "recommend/record.h"
#include "rl/drift.h"
#include "trace/trace.h"

/* --- the course of one function (course.c) -----------------------------------------------------
 */
enum learn_stage {
    LEARN_BEGIN, /* its past is being read, and a policy found by it: thresholds decide */
    LEARN_WATCH, /* too little is known to learn from: the general policy decides */
    LEARN_SERVE, /* a policy decides: its own, or the general one as long as nothing is better */
    LEARN_AGAIN, /* it is not what it was: thresholds decide until a policy is found */
    LEARN_STAGE_COUNT
};
const char *learn_stage_name(enum learn_stage stage);

struct learn_rules {
    double after_s, requests; /* that must be known before anything is learned; 0 s: at once */
    double patience_s;        /* how long LEARN_BEGIN lasts at most: then the general one decides */
    double renew_s;           /* how often something better is looked for; 0: never */
    double retry_s;           /* after it failed */
    double probation_s;       /* of a new policy, within which it may be taken back */
    size_t probation_blocks;  /* of 8 intervals each, that must be known of both */
    double usual_s;           /* of load, after which another pattern of it is news */
    int held_back;            /* of 40 proposals of a policy in a row, by the guard: is news, too */
    struct rl_drift_config drift;
};
/* 10 minutes, 300 requests; 10 minutes; a day; 10 minutes; a day, 30 blocks; a day; 21;
 * rl_drift_default. */
extern const struct learn_rules learn_rules_default;

struct learn_course;
/* Begins in LEARN_BEGIN, which awaits the past. Holds the general policy. Fails where rules cannot
 * be, naming what. */
struct learn_course *learn_course_new(const struct learn_rules *rules,
                                      const struct recommend_policy *general, double now_s,
                                      struct error *err);
void learn_course_free(struct learn_course *course); /* NULL: nothing */
struct recommend_record *learn_course_record(struct learn_course *course);

enum learn_stage learn_course_stage(const struct learn_course *course);
/* What a learned one is to decide by now; NULL: thresholds decide. */
const struct recommend_policy *learn_course_policy(const struct learn_course *course);
bool learn_course_has_own(const struct learn_course *course);

/* All that could be read of its past is in the record. */
void learn_course_has_past(struct learn_course *course);
/* A policy that was found in an earlier life serves at once. */
void learn_course_resume(struct learn_course *course, const struct recommend_policy *own);

/* What is asked of it has changed: something is looked for as soon as can be. */
void learn_course_renew(struct learn_course *course);

enum learn_news {
    LEARN_NO_NEWS,
    LEARN_DRIFTED,   /* now in LEARN_AGAIN; a search that is under way is of no use any more */
    LEARN_WENT_BACK, /* a new policy earned less than the one before, which decides again */
};
struct learn_last { /* the decision before */
    bool by_policy; /* it was that of learn_course_policy, */
    bool held_back; /* and not let through as it was */
};
/* Each interval. */
enum learn_news learn_course_see(struct learn_course *course, const struct observation *seen,
                                 struct learn_last last);
const char *learn_course_why(const struct learn_course *course); /* of the last news */
/* What the last interval's decision earned (recommend/record.h); NaN: cannot be said. */
double learn_course_earned(const struct learn_course *course);

/* Whether something is to be learned now, and no search is under way: the caller then begins one
 * and says how it ended. */
bool learn_course_wants(const struct learn_course *course, double now_s);
/* What there is to learn from. Fails where it is too little, with what is missing. */
int learn_course_fit(const struct learn_course *course, const char *name, struct trace *out,
                     struct error *err);
void learn_course_began(struct learn_course *course);
/* NULL: nothing better was found. */
void learn_course_found(struct learn_course *course, const struct recommend_policy *own,
                        double now_s);
void learn_course_failed(struct learn_course *course, double now_s);

/* --- the versions of its policy (versions.c) ----------------------------------------------------
 */
#define LEARN_VERSIONS 8 /* that are kept, the oldest goes first, but not the one that decides */

enum learn_origin {
    LEARN_SHIPPED,      /* the general policy */
    LEARN_KEPT,         /* found in an earlier life, and kept */
    LEARN_BOOTSTRAPPED, /* the first of its own, found by its past */
    LEARN_RETRAINED,    /* found when it was not what it had been, or in place of its own */
    LEARN_ORIGIN_COUNT
};
enum learn_outcome {
    LEARN_DECIDES,
    LEARN_WAITS,       /* thresholds decide instead, until something is found; it may be it */
    LEARN_REPLACED,    /* by a newer one */
    LEARN_ROLLED_BACK, /* it earned less than the one before, which decides again */
    LEARN_OUTCOME_COUNT
};
struct learn_version {
    uint64_t number; /* counts all that there were, from 1 */
    enum learn_origin origin;
    enum learn_outcome outcome;
    char sha256[65];
    int64_t from_ms;    /* when it first decided, */
    int64_t until_ms;   /* and last; 0: it does */
    double earned;      /* in an interval, on the average; NaN: unknown */
    uint64_t intervals; /* that earned is of */
    char why[160];      /* it does not decide any more; "": a newer one was better */
};

struct learn_versions;
struct learn_versions *learn_versions_new(void);
void learn_versions_free(struct learn_versions *versions); /* NULL: nothing */
/* Who decides from now on, also if it is who did; NULL: thresholds. A policy that has decided
 * before is the version that it was. */
void learn_versions_take(struct learn_versions *versions, const char *sha256,
                         enum learn_origin origin, int64_t now_ms);
/* The one that decides will not, and why; learn_versions_take then says who does. */
void learn_versions_leave(struct learn_versions *versions, enum learn_outcome outcome,
                          const char *why, int64_t now_ms);
void learn_versions_earned(struct learn_versions *versions, double earned); /* NaN: unknown */
size_t learn_versions_count(const struct learn_versions *versions);         /* that are kept */
/* The i-th from the newest; NULL: there is none. */
const struct learn_version *learn_versions_newest(const struct learn_versions *versions, size_t i);
/* The one that decides, or did before thresholds; NULL: none has. */
const struct learn_version *learn_versions_current(const struct learn_versions *versions);

/* --- the thread (learner.c) --------------------------------------------------------------------
 */
struct learner;
struct learn_task {
    struct trace workload;         /* one function; taken over */
    const struct api_spec *bounds; /* of a pod with one container; copied, but not its texts */
    double goal_ms, interval_s;
    char *rival; /* encoded checkpoint of the policy to beat, taken over; NULL: the general one */
    size_t rival_len;
};

struct learn_result {
    struct error err;                      /* code 0: it was looked for */
    struct bootstrap_gain gain;            /* what was found */
    const struct recommend_policy *policy; /* NULL: nothing better */
    const char *bytes;                     /* it as an encoded checkpoint */
    size_t len;
    double seconds;
};
typedef void (*learn_done)(void *arg, const struct learn_result *result);

/* A copy of the general policy is what every search begins with. The thread begins with the first
 * task. effort: how much is tried, in episodes; 0: 8. */
struct learner *learner_new(uv_loop_t *loop, const struct rl_checkpoint *general, size_t effort,
                            struct error *err);
/* What is under way ends within about a second, and nobody is told. Run the loop once more. */
void learner_free(struct learner *learner);

struct learn_search; /* a task that waits or is under way; ours until on_done */
/* on_done is called once, from the loop, unless it is given up before. */
struct learn_search *learner_search(struct learner *learner, struct learn_task *task,
                                    learn_done on_done, void *arg);
void learner_give_up(struct learn_search *search);
double learner_progress(const struct learn_search *search); /* 0 to 1 */
size_t learner_waiting(const struct learner *learner);      /* with the one under way */

#endif
