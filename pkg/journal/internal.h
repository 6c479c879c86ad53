/* Shared by the files of pkg/journal: what a line says, as JSON and back. */
#ifndef FAASRL_JOURNAL_INTERNAL_H
#define FAASRL_JOURNAL_INTERNAL_H

#include "journal/journal.h"

#define JOURNAL_VERSION  1
#define JOURNAL_MAX_LINE ((size_t)16 << 20)
#define JOURNAL_MAX_PODS 100000
#define JOURNAL_REAL     JSON_REAL_PRECISION(17) /* as many digits as a double needs */

/* A number that may be none (null) or without end ("inf"). */
json_t *journal_number(double value);
/* Fails, naming the field, where it is none of these. */
int journal_read_number(const json_t *object, const char *name, double *out, struct error *err);

json_t *journal_seen_json(const struct observation *seen);
json_t *journal_proposed_json(const struct recommendation *proposed);
json_t *journal_decided_json(const struct guard_decision *decided, size_t container_count);

struct journal_seen { /* an observation and the memory it points into */
    struct observation seen;
    struct recommend_pod *pods;
    char *names[RECOMMEND_MAX_CONTAINERS];
};
int journal_read_seen(const json_t *from, struct journal_seen *out, struct error *err);
void journal_seen_clear(struct journal_seen *seen);
int journal_read_proposed(const json_t *from, struct recommendation *out, struct error *err);
int journal_read_decided(const json_t *from, struct guard_decision *out, struct error *err);

#endif
