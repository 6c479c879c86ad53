/* What the server tells Prometheus about itself. All functions may be called by any thread. */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stddef.h>

/* Counts a request in, unless `limit` are in flight already; then it counts as rejected. */
bool metrics_enter(unsigned limit);
void metrics_leave(void);

/* Records the duration of a call of workloads[workload]. */
void metrics_observe(size_t workload, double seconds);

/* The metrics as Prometheus text, to be freed by the caller; NULL without memory. */
char *metrics_render(size_t *length);

#endif
