/* Figures about ourselves, in Prometheus' text format 0.0.4. A registry of families; a family keeps
 * its series, or is asked for them anew at each scrape. One thread, no global state. */
#ifndef FAASRL_METRICS_H
#define FAASRL_METRICS_H

#include "base/base.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_MAX_LABELS   6
#define METRICS_MAX_SERIES   50000 /* of one family */

struct metrics;
struct metrics_family;

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };

struct metrics_spec { /* all it points to must outlive the registry */
    const char *name; /* with its unit; "_total" at the end of a counter */
    const char *help; /* one sentence */
    enum metrics_type type;
    const char *labels[METRICS_MAX_LABELS];
    const double *bounds; /* of a histogram's buckets, ascending, without +Inf */
    size_t bound_count;
    size_t max_series; /* 0: METRICS_MAX_SERIES */
    /* Set: nothing is kept. Called at each scrape, it tells every series of the family, each once,
     * with metrics_set. Not for histograms. */
    void (*collect)(void *arg, struct metrics_family *family);
    void *arg;
};

/* dropped: the name of the counter of samples that were left out because a family had reached its
 * bound; the registry adds it by itself. */
struct metrics *metrics_new(const char *dropped);
void metrics_free(struct metrics *metrics);
struct metrics_family *metrics_register(struct metrics *metrics, const struct metrics_spec *spec);

/* The values of the labels in the order of the spec, UTF-8: METRICS_LABELS("GET", "200"), or NULL
 * for a family without labels. A series begins to exist when it is first told. */
#define METRICS_LABELS(...) ((const char *const[METRICS_MAX_LABELS]){__VA_ARGS__})
void metrics_count(struct metrics_family *counter, double by, const char *const *values);
void metrics_set(struct metrics_family *family, double value, const char *const *values);
void metrics_observe(struct metrics_family *histogram, double value, const char *const *values);

/* Appends everything to out; fails when it does not fit. Families in order of registration, series
 * in order of appearance; a family without series is left out. */
int metrics_write(struct metrics *metrics, struct buf *out);

/* process.c: the process_* metrics that every Prometheus client has, of this process. */
void metrics_register_process(struct metrics *metrics);

#endif
