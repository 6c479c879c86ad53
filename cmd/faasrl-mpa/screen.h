/* What --simulate prints: rows like those of kubectl get mpa -w, and at the end a summary. */
#ifndef FAASRL_SCREEN_H
#define FAASRL_SCREEN_H

#include "embed/embed.h"

struct screen;

/* At most one row of a function in so much simulated time. */
struct screen *screen_new(size_t functions, double row_gap_s);
void screen_free(struct screen *screen);
/* An MPA's status was written: a row, when it was acted on. */
void screen_status(struct screen *screen, size_t function, const json_t *mpa, double now_s);
void screen_event(struct screen *screen, const struct kube_event *event);
/* On a terminal: how far it is, in a line that the next row takes the place of. */
void screen_clock(struct screen *screen, double now_s, double end_s);

/* There are no more rows. */
void screen_end(struct screen *screen);

struct screen_results { /* of one recommender */
    const char *label;
    const struct trial_result *functions; /* in the order of names */
};
/* The last of the results is what CPU is compared with. */
void screen_summary(struct screen *screen, const char *const *names, size_t functions,
                    const struct screen_results *results, size_t result_count);

#endif
