/* The server in the place of OpenWhisk's user-events: it is told of activations, and tells
 * Prometheus of them in the names of that service. All functions may be called by any thread. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>
#include <stdio.h>

/* action is the package and the name, "pkg/hello". False when it cannot be kept. */
bool events_activation(const char *namespace_, const char *initiator, const char *action,
                       double seconds);
void events_render(FILE *out);

#endif
