/* An HTTP/1.1 server on the test's own loop, so that a test decides each byte of each answer. */
#ifndef FAASRL_TESTS_KUBE_FAKE_H
#define FAASRL_TESTS_KUBE_FAKE_H

#include "kube/kube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fake;

struct fake_conn {
    uv_tcp_t tcp;
    struct fake *fake;
    struct buf in;
    struct fake_conn *next;
    uint64_t number; /* no other has it */
    bool closing;
};

struct fake_request {
    struct fake_conn *conn;
    const char *method, *target, *head; /* head: all header lines */
    const char *body;
    int number; /* counts from 1 */
};

struct fake {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_timer_t watchdog;
    int port, requests;
    uint64_t connections;
    bool expired;
    struct fake_conn *conns;
    void (*on_request)(void *arg, const struct fake_request *request);
    void *arg;
    struct http *http;
    struct kube *kube;
};

static inline void fake_on_closed(uv_handle_t *handle)
{
    struct fake_conn *conn = handle->data;
    struct fake_conn **link = &conn->fake->conns;
    while (*link != conn)
        link = &(*link)->next;
    *link = conn->next;
    buf_free(&conn->in);
    free(conn);
}

/* Ends the connection where it is. */
static inline void fake_cut(struct fake_conn *conn)
{
    if (!conn->closing)
        uv_close((uv_handle_t *)&conn->tcp, fake_on_closed);
    conn->closing = true;
}

static inline void fake_on_written(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
    free(write);
}

static inline void fake_write(struct fake_conn *conn, const char *data, size_t len)
{
    if (conn->closing)
        return;
    uv_write_t *write = xcalloc(1, sizeof(*write));
    char *copy = xcalloc(1, len + 1);
    memcpy(copy, data, len);
    write->data = copy;
    uv_buf_t buf = uv_buf_init(copy, (unsigned)len);
    uv_write(write, (uv_stream_t *)&conn->tcp, &buf, 1, fake_on_written);
}

/* headers: whole lines with \r\n, or "". */
static inline void fake_reply(struct fake_conn *conn, int status, const char *headers,
                              const char *body)
{
    cleanup_free char *text = xasprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%s"
                                        "Content-Length: %zu\r\n\r\n%s",
                                        status, headers, strlen(body), body);
    fake_write(conn, text, strlen(text));
}

static inline void fake_stream_begin(struct fake_conn *conn)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    fake_write(conn, head, sizeof(head) - 1);
}

static inline void fake_stream_write(struct fake_conn *conn, const char *body)
{
    cleanup_free char *text = xasprintf("%zx\r\n%s\r\n", strlen(body), body);
    fake_write(conn, text, strlen(text));
}

/* JSON that was written with ' in place of ". */
static inline char *fake_quoted(const char *text)
{
    char *copy = xstrdup(text);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

/* A whole list of objects, with commas between them. */
static inline void fake_reply_list(const struct fake_request *r, const char *items)
{
    cleanup_free char *text = xasprintf("{'metadata':{'resourceVersion':'7'},'items':[%s]}", items);
    cleanup_free char *body = fake_quoted(text);
    fake_reply(r->conn, 200, "", body);
}

static inline void fake_stream_end(struct fake_conn *conn)
{
    fake_write(conn, "0\r\n\r\n", 5);
}

static inline size_t fake_body_len(const char *head)
{
    const char *at = strcasestr(head, "\r\nContent-Length:");
    return at ? strtoul(at + 17, NULL, 10) : 0;
}

/* Takes one whole request from what has arrived; false when there is none. */
static inline bool fake_take(struct fake_conn *conn)
{
    const char *data = buf_string(&conn->in), *end = strstr(data, "\r\n\r\n");
    if (!end)
        return false;
    cleanup_free char *head = strndup(data, (size_t)(end - data));
    size_t head_len = (size_t)(end - data) + 4, body_len = fake_body_len(head);
    if (conn->in.len < head_len + body_len)
        return false;
    cleanup_free char *body = strndup(data + head_len, body_len);
    buf_drop_front(&conn->in, head_len + body_len);
    char *method_end = strchr(head, ' ');
    char *target_end = strchr(method_end + 1, ' ');
    *method_end = *target_end = '\0';
    struct fake_request request = {conn,           head, method_end + 1,
                                   target_end + 1, body, ++conn->fake->requests};
    conn->fake->on_request(conn->fake->arg, &request);
    return !conn->closing;
}

static inline void fake_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(xcalloc(1, size), (unsigned)size);
}

static inline void fake_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct fake_conn *conn = stream->data;
    if (n < 0)
        fake_cut(conn);
    else
        assert_int_equal(buf_append(&conn->in, buf->base, (size_t)n), 0);
    free(buf->base);
    while (n > 0 && fake_take(conn))
        continue;
}

static inline void fake_on_connection(uv_stream_t *listener, int status)
{
    struct fake *fake = listener->data;
    struct fake_conn *conn = xcalloc(1, sizeof(*conn));
    assert_int_equal(status, 0);
    conn->fake = fake;
    conn->number = ++fake->connections;
    buf_init(&conn->in, (size_t)1 << 26);
    uv_tcp_init(&fake->loop, &conn->tcp);
    conn->tcp.data = conn;
    conn->next = fake->conns;
    fake->conns = conn;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&conn->tcp), 0);
    uv_read_start((uv_stream_t *)&conn->tcp, fake_alloc, fake_on_read);
}

static inline void fake_on_watchdog(uv_timer_t *timer)
{
    ((struct fake *)timer->data)->expired = true;
}

static inline void fake_listen(struct fake *fake)
{
    struct sockaddr_in address;
    int len = sizeof(address);
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(&fake->loop, &fake->listener);
    fake->listener.data = fake;
    assert_int_equal(uv_tcp_bind(&fake->listener, (struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&fake->listener, 16, fake_on_connection), 0);
    uv_tcp_getsockname(&fake->listener, (struct sockaddr *)&address, &len);
    fake->port = ntohs(address.sin_port);
}

/* A server and a client of it. */
static inline void fake_start(struct fake *fake, const struct kube_options *options)
{
    struct error err = {0};
    uv_loop_init(&fake->loop);
    uv_timer_init(&fake->loop, &fake->watchdog);
    fake->watchdog.data = fake;
    fake_listen(fake);
    cleanup_free char *server = xasprintf("http://127.0.0.1:%d", fake->port);
    struct kube_config config = {.server = server, .token = (char *)(uintptr_t) "secret"};
    fake->http = http_new(&fake->loop, "test");
    fake->kube = kube_new(&fake->loop, fake->http, &config, options, &err);
    assert_non_null(fake->kube);
}

/* Runs the loop until what is pointed to is true; fails after two minutes, which no test
 * comes near. */
#define fake_run_until(fake, condition)                                                            \
    do {                                                                                           \
        (fake)->expired = false;                                                                   \
        uv_timer_start(&(fake)->watchdog, fake_on_watchdog, 120000, 0);                            \
        while (!(condition) && !(fake)->expired)                                                   \
            uv_run(&(fake)->loop, UV_RUN_ONCE);                                                    \
        uv_timer_stop(&(fake)->watchdog);                                                          \
        assert_true(condition);                                                                    \
    } while (0)

static inline void fake_stop(struct fake *fake)
{
    kube_free(fake->kube);
    http_free(fake->http);
    for (struct fake_conn *conn = fake->conns; conn; conn = conn->next)
        fake_cut(conn);
    uv_close((uv_handle_t *)&fake->listener, NULL);
    uv_close((uv_handle_t *)&fake->watchdog, NULL);
    uv_run(&fake->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fake->loop), 0);
}

#endif
