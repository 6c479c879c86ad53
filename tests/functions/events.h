/* The server in the place of OpenWhisk's user-events: it is told of activations, and tells
 * Prometheus of them in the names of that service. All functions may be called by any thread. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>
#include <stdio.h>

/* action is the package and the name, "pkg/hello"; wait_s is before it ran. False when it cannot be
 * kept. */
bool events_activation(const char *namespace_, const char *initiator, const char *action,
                       double seconds, double wait_s);
void events_render(FILE *out);

#endif
