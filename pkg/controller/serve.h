/* A small HTTP server on the controller's loop: a fixed set of paths, GET and HEAD only, one answer
 * per connection, which may come later or go on as a stream. Nothing waits for a client: one that
 * is slow is cut. Private to pkg/controller and its tests. */
#ifndef FAASRL_CONTROLLER_SERVE_H
#define FAASRL_CONTROLLER_SERVE_H

#include "base/base.h"
#include <uv.h>

struct serve;

struct serve_header {
    const char *name, *value;
};

struct serve_answer {
    unsigned status;                    /* 200 unless the route sets it */
    const char *content_type;           /* plain text unless the route sets it */
    struct buf body;                    /* empty; its maximum is set */
    const struct serve_header *headers; /* further ones, which outlive the server; or NULL */
    size_t header_count;
};

struct serve_request; /* of a route that takes requests */

struct serve_route {
    const char *path;
    void (*answer)(void *arg, struct serve_answer *out); /* at once; or, instead: */
    /* For all paths that begin with this one. Answers by serve_reply or serve_stream, now or later;
     * refusals of the server itself are JSON here: {"error": "…"}. */
    void (*take)(void *arg, struct serve_request *request);
};

struct serve_options {
    const char *listen; /* ADDRESS:PORT; no address: all; IPv6 in brackets; port 0: any */
    const struct serve_route *routes; /* must outlive the server */
    size_t route_count;
    void *arg;
    unsigned max_connections;    /* 0: 64; further ones wait until one ends */
    unsigned connection_seconds; /* 0: 10; from accepting to the last byte */
};

/* Of the dashboard (dashboard.c): its page and its interface. */
#define DASHBOARD_ROUTES 2
extern const struct serve_route dashboard_routes[DASHBOARD_ROUTES];

/* --- requests that are taken ------------------------------------------------------------------ */
const char *serve_path(const struct serve_request *request); /* percent-decoded */
bool serve_is_head(const struct serve_request *request);
/* The first value of a parameter of the query, decoded, or of a header; NULL: there is none. As
 * long as the request. */
const char *serve_query(const struct serve_request *request, const char *name);
const char *serve_header(const struct serve_request *request, const char *name);
/* Called when it is over without us: its time has passed, or the client or the server is gone. The
 * request is not to be touched from then on. */
void serve_on_gone(struct serve_request *request, void (*on_gone)(void *arg), void *arg);

void serve_answer_init(struct serve_answer *answer); /* 200, plain text, nothing */
/* Takes the body over; the request is not to be touched any more, and on_gone is not called. */
void serve_reply(struct serve_request *request, struct serve_answer *answer);

/* The answer begins with status 200, and goes on until serve_stream_end or on_gone. */
void serve_stream(struct serve_request *request, const char *content_type);
/* Fails where that is more than is held for clients altogether. */
int serve_stream_send(struct serve_request *request, const char *data, size_t len,
                      struct error *err);
size_t serve_stream_waits(const struct serve_request *request); /* bytes that it has yet to take */
/* Whether the client is still there. */
bool serve_stream_open(const struct serve_request *request);
/* What was sent still goes out; on_gone will be called. */
void serve_stream_end(struct serve_request *request);

/* --- the server ------------------------------------------------------------------------------- */
struct serve *serve_start(uv_loop_t *loop, const struct serve_options *options, struct error *err);
int serve_port(const struct serve *serve);
/* Run the loop once more after it. NULL is fine. */
void serve_stop(struct serve *serve);

#endif
