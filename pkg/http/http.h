/* HTTP client: libcurl's multi interface driven by a libuv loop.
 *
 * One thread, callbacks only. Requests to one host share one multiplexed HTTP/2 connection where
 * the server speaks it. Every request has a time limit; every answer has a size limit. */
#ifndef FAASRL_HTTP_H
#define FAASRL_HTTP_H

#include "base/base.h"
#include <uv.h>

struct http;      /* the pool of connections of one loop */
struct http_call; /* one request under way */

/* How to trust the server and who we are to it. PEM in memory; NULL where not used. Several
 * requests may share one, and it must outlive them. */
struct http_tls {
    char *ca_pem; /* NULL: the system's authorities */
    char *cert_pem, *key_pem;
    char *server_name; /* NULL: the host of the URL */
    bool insecure; /* does not verify the server: only what the user asked for in so many words */
};
void http_tls_clear(struct http_tls *tls);

struct http_response {
    int status;       /* 0 when no answer came; then error says why */
    const char *body; /* NUL-terminated; "" for a streamed answer */
    size_t body_len;
    int64_t retry_after_ms; /* from Retry-After, else -1 */
    struct error error;     /* code ERROR_NONE when a whole answer came, whatever its status */
    char *const *secrets;   /* what http_hide hides, up to NULL; NULL: nothing */
};
/* For what is to be said of an answer in a log or a status: stars over the token or password that
 * the request was sent with, where the answer repeats it. */
void http_hide(const struct http_response *response, char *text);

/* Called exactly once per request that http_send took, unless it is cancelled; never before
 * http_send has returned. The response is gone afterwards. */
typedef void (*http_done)(void *arg, const struct http_response *response);
/* Called for each piece of a streamed 2xx answer; a negative return ends the request. */
typedef int (*http_chunk)(void *arg, const char *data, size_t len);

struct http_request {
    const char *method; /* NULL: GET */
    const char *url;
    const char *accept, *content_type; /* NULL: application/json */
    const char *bearer;                /* Authorization: Bearer …, NULL: none */
    const char *user, *password;       /* basic authentication, NULL: none */
    const char *body;                  /* copied; NULL: none */
    size_t body_len;
    const struct http_tls *tls; /* NULL: defaults */
    int64_t timeout_ms;         /* for the whole request; 0 only with idle_timeout_ms */
    int64_t idle_timeout_ms;    /* ends a stream on which nothing arrives; 0: none */
    size_t max_body;            /* 0: 16 MiB */
    http_chunk on_chunk;        /* set: the answer is streamed */
    http_done on_done;
    void *arg;
};

struct http *http_new(uv_loop_t *loop, const char *user_agent);
/* Ends everything under way (on_done is called with ERROR_CANCELLED) and frees. Run the loop once
 * more after it, so that libuv can close its handles. */
void http_free(struct http *http);
/* Starts a request; NULL when it could not even be started. Requests may be started and cancelled
 * from inside any callback. */
struct http_call *http_send(struct http *http, const struct http_request *request,
                            struct error *err);
/* Ends a request without calling on_done. Not allowed inside on_chunk or on_done of the same call.
 */
void http_cancel(struct http_call *call);
/* Percent-encodes for use in a query string; free() the result. */
char *http_escape(const char *text);
/* Connections opened so far: tests see by it that they are reused. */
long http_connections_opened(const struct http *http);

#endif
