/* How far a long run is and how long it still takes: a line on stderr that is written over again,
 * and only where stderr is a terminal. */
#ifndef FAASRL_MPACTL_PROGRESS_H
#define FAASRL_MPACTL_PROGRESS_H

#include "base/base.h"

struct progress;

/* what: "comparing", say. */
struct progress *progress_begin(const char *what, size_t total);
/* n more are done. May be called from any thread. */
void progress_add(struct progress *progress, size_t n);
/* What to say beside how far it is: how well it goes, say. */
void progress_note(struct progress *progress, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Takes the line away. */
void progress_end(struct progress *progress);

#endif
