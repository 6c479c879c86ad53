/* A small HTTP server on the controller's loop: a fixed set of paths, GET and HEAD only, one answer
 * per connection. Private to pkg/controller and its tests. */
#ifndef FAASRL_CONTROLLER_SERVE_H
#define FAASRL_CONTROLLER_SERVE_H

#include "base/base.h"
#include <uv.h>

struct serve;

struct serve_answer {
    unsigned status;          /* 200 unless the route sets it */
    const char *content_type; /* plain text unless the route sets it */
    struct buf body;          /* empty; its maximum is set */
};

struct serve_route {
    const char *path;
    void (*answer)(void *arg, struct serve_answer *out);
};

struct serve_options {
    const char *listen; /* ADDRESS:PORT; no address: all; IPv6 in brackets; port 0: any */
    const struct serve_route *routes; /* must outlive the server */
    size_t route_count;
    void *arg;
    unsigned max_connections;    /* 0: 64; further ones wait until one ends */
    unsigned connection_seconds; /* 0: 10; from accepting to the last byte */
};

struct serve *serve_start(uv_loop_t *loop, const struct serve_options *options, struct error *err);
int serve_port(const struct serve *serve);
/* Run the loop once more after it. NULL is fine. */
void serve_stop(struct serve *serve);

#endif
