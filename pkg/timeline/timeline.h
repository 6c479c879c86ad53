/* What was seen of each MPA and decided on it of late, in memory that is bounded for all of them
 * together: where there is no more room, the oldest goes first, whosever it is. So a few MPAs have
 * their last day and ten thousand have minutes.
 *
 * A point is one interval's figures; a mark is something that happened, in words. */
#ifndef FAASRL_TIMELINE_H
#define FAASRL_TIMELINE_H

#include "base/base.h"

enum timeline_column {
    TIMELINE_REQUESTS, /* per second */
    TIMELINE_LATENCY,  /* ms, at the goal's percentile */
    TIMELINE_GOAL,     /* ms */
    TIMELINE_REPLICAS,
    TIMELINE_WANTED_REPLICAS,
    TIMELINE_CPU, /* milli-cores of one pod */
    TIMELINE_WANTED_CPU,
    TIMELINE_UTILIZATION, /* 1: all of it */
    TIMELINE_REWARD,
    TIMELINE_COLUMNS
};

struct timeline_point {
    int64_t time_ms;                 /* wall clock */
    float figures[TIMELINE_COLUMNS]; /* NaN: unknown */
};

enum timeline_kind { TIMELINE_DECISION, TIMELINE_POLICY, TIMELINE_FALLBACK, TIMELINE_TROUBLE };

#define TIMELINE_TEXT 400 /* bytes of a mark's text that are kept */
#define TIMELINE_NAME 63  /* of its title and of who decided */

struct timeline_mark {
    int64_t time_ms;
    enum timeline_kind kind;
    bool applied; /* it was done; false: it would have been */
    const char *title, *text, *recommender;
    int32_t from_replicas, to_replicas; /* -1: it is not about them */
    float from_cpu, to_cpu;             /* milli-cores; NaN: likewise */
    uint64_t number;                    /* counts the marks of all, from 1; set by timeline_mark */
};

struct timeline_limits { /* for all together; 0: the defaults, 14 MiB of both */
    size_t point_bytes, mark_bytes;
    size_t points, marks; /* of one; 0: 6,000 and 1,000 */
};

struct timeline;
struct timeline_series; /* of one MPA */

struct timeline *timeline_new(const struct timeline_limits *limits); /* NULL: the defaults */
void timeline_free(struct timeline *timeline); /* after its series; NULL: nothing */
struct timeline_series *timeline_add_series(struct timeline *timeline);
void timeline_remove_series(struct timeline_series *series); /* gives all back; NULL: nothing */

/* Each is newer than the one before. A point that comes within least_ms of the last one takes its
 * place: it tells the same interval better. */
void timeline_add(struct timeline_series *series, const struct timeline_point *point,
                  int64_t least_ms);
void timeline_mark(struct timeline_series *series, const struct timeline_mark *mark);

/* Calls for each that is newer than since_ms, or has a higher number than since; oldest first. */
void timeline_points(const struct timeline_series *series, int64_t since_ms,
                     void (*each)(void *arg, const struct timeline_point *point), void *arg);
void timeline_marks(const struct timeline_series *series, int64_t since_ms,
                    void (*each)(void *arg, const struct timeline_mark *mark), void *arg);
void timeline_marks_after(const struct timeline_series *series, uint64_t number,
                          void (*each)(void *arg, const struct timeline_mark *mark), void *arg);
/* The newest points, at most max of them, oldest first; returns how many. */
size_t timeline_newest(const struct timeline_series *series, struct timeline_point *out,
                       size_t max);

uint64_t timeline_last_mark(const struct timeline *timeline); /* its number; 0: there was none */
size_t timeline_bytes(const struct timeline *timeline);       /* that it holds, series too */

#endif
