/* What mpactl explain, mpactl replay and kubectl mpa share: of which MPA, and how figures read. */
#ifndef FAASRL_MPACTL_JOURNAL_H
#define FAASRL_MPACTL_JOURNAL_H

#include "journal/journal.h"

/* "name" or "namespace/name"; NULL: every one. */
bool journal_is_asked_for(const char *wanted, const char *key);
/* "2 × 400m": what was, or would be, decided. Returns text. */
#define JOURNAL_TEXT 64
const char *journal_size_text(const struct journal_step *step,
                              const struct guard_decision *decision, char text[JOURNAL_TEXT]);
/* Of whom something is told: target, goal, bounds, who decides. To be freed. */
char *journal_heading(const struct api_mpa *mpa, const char *recommender);
/* CPU of one pod in milli-cores: as decided, else as it is; NaN: there is none. */
double journal_cpu_milli(const struct journal_step *step, const struct guard_decision *decision);

#endif
