/* What the dashboard's interface says of MPAs, as JSON. Private to pkg/controller. */
#ifndef FAASRL_CONTROLLER_TELL_H
#define FAASRL_CONTROLLER_TELL_H

#include "entry.h"

/* Rounded for people, times as milliseconds since 1970. */
#define TELL_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(6))

bool tell_is_of(const struct entry *entry, const char *namespace_); /* NULL: any */
json_t *tell_row(const struct entry *entry);
json_t *tell_detail(const struct entry *entry);
json_t *tell_learning(const struct entry *entry, bool versions); /* NULL: it learns nothing */
/* With a name, reward and fallback, for a list. */
json_t *tell_learning_row(const struct entry *entry);
json_t *tell_marks_after(const struct entry *entry, uint64_t number); /* an array */
int tell_timeline(const struct entry *entry, int64_t since_ms, struct buf *out);

#endif
