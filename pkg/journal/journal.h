/* The journal of decisions: what was seen, what was proposed and what the guard left of it, so that
 * each decision can be told afterwards, and repeated with the same result.
 *
 * One JSON object per line, in the order in which it happened; docs/journal.md describes them. When
 * the file has grown to its bound it becomes FILE.1, and a new one is begun: never more than two.
 */
#ifndef FAASRL_JOURNAL_H
#define FAASRL_JOURNAL_H

#include "api/api.h"
#include "guard/guard.h"
#include "harvest/group.h"
#include "recommend/recommend.h"

/* --- writing (write.c) ------------------------------------------------------------------------
 * Where journal is NULL nothing is done. A disk that fails ends the journal with one line in the
 * log, and nothing else: decisions go on. */
struct journal;

struct journal_setting { /* of the installation: what decisions depend on besides the MPA */
    struct guard_limits limits;
    int default_cpu_utilization;
};
/* Goes on with a file that is there. */
struct journal *journal_open(const char *path, size_t max_bytes,
                             const struct journal_setting *setting, struct error *err);
void journal_close(struct journal *journal);

/* key: namespace/name. An MPA is followed, or has changed. */
void journal_mpa(struct journal *journal, const char *key, const json_t *object);
/* It is gone, or has another target: guard and recommender know nothing any more. */
void journal_forgot(struct journal *journal, const char *key);
/* A recommender begins with nothing but what it is then told of the past. */
void journal_began(struct journal *journal, const char *key, const char *recommender,
                   double memory_s);
void journal_remembered(struct journal *journal, const char *key, const char *container,
                        enum recommend_resource resource, double time_s, double usage);

/* It decides by another policy from now on: one of its own, as an encoded checkpoint, the one of
 * the installation (NULL, and len 1), or by none (NULL, 0): then thresholds decide. */
void journal_policy(struct journal *journal, const char *key, const char *bytes, size_t len);

struct journal_decision {
    const struct observation *seen;
    bool external;                         /* somebody else proposed it */
    bool sizes_stay;                       /* as in recommend_seat_ask */
    bool cpu_capped;                       /* as in guard_check_seen */
    const struct harvest_range *range;     /* what its group left it; NULL: it has none */
    const struct recommendation *proposed; /* NULL: nothing could be said */
    const struct guard_decision *decided;  /* NULL with it */
    const char *action, *reason;           /* as in status.lastDecision */
};
void journal_decided(struct journal *journal, const char *key,
                     const struct journal_decision *decision);
/* What the guard is told was done. */
void journal_scaled(struct journal *journal, const char *key, double now_s, int from, int to);
void journal_resized(struct journal *journal, const char *key, double now_s);

/* --- reading (replay.c) ----------------------------------------------------------------------- */
struct journal_step { /* a decision of the journal, told and repeated */
    const char *key;
    const struct api_mpa *mpa;
    int64_t time_ms;
    const struct observation *seen;
    const char *recommender; /* who decided; an external one's name, too */
    const char *action, *reason;
    bool was_decided, is_decided;                 /* else nothing could be said */
    struct recommendation was_proposed, proposed; /* then, and repeated */
    struct guard_decision was, is;
    bool known; /* the journal has all that came before: it can be repeated exactly */
    bool same;  /* and was: proposal and decision, to the last bit */
};

struct journal_replay {
    const char *recommender; /* who is asked in place of the one who was; NULL: the same */
    const double *params;    /* its own; NULL: usual */
    const struct recommend_policy *policy; /* of those that have learned; NULL: none */
    /* The step lives until the call ends. False: that is enough. */
    bool (*on_step)(void *arg, const struct journal_step *step);
    void *arg;
};
/* Repeats all decisions of FILE.1, if there is one, and FILE. A last line that was cut in the
 * middle, as by a crash, is left out. Fails with file and line where it is no journal. */
int journal_replay(const char *path, const struct journal_replay *replay, struct error *err);

#endif
