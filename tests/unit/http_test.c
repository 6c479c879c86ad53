/* pkg/http against a small server in the same process: what curl and libuv must do together. */
#include "http/http.h"

#include <microhttpd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    struct http *http;
    struct MHD_Daemon *server;
    char base[64];
};

struct outcome {
    int calls, status;
    int64_t retry_after_ms;
    char body[256];
    struct error error;
    struct fixture *again; /* send another request from inside the callback */
};

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *text,
                              const char *header, const char *value)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                             MHD_RESPMEM_MUST_COPY);
    if (header)
        MHD_add_response_header(r, header, value);
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result serve(void *cls, struct MHD_Connection *c, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_len, void **state)
{
    (void)cls;
    (void)version;
    if (*state == NULL) {
        *state = xcalloc(1, 256);
        return MHD_YES;
    }
    if (*upload_len > 0) {
        snprintf(*state, 256, "%.*s", (int)*upload_len, upload);
        *upload_len = 0;
        return MHD_YES;
    }
    char text[600];
    if (strcmp(url, "/busy") == 0)
        return answer(c, 429, "slow down", "Retry-After", "7");
    if (strcmp(url, "/slow") == 0)
        uv_sleep(700);
    if (strcmp(url, "/large") == 0) {
        cleanup_free char *big = xcalloc(1, 100001);
        memset(big, 'x', 100000);
        return answer(c, 200, big, NULL, NULL);
    }
    const char *auth = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    snprintf(text, sizeof(text), "%s %s [%s] %s", method, url, (char *)*state, auth ? auth : "-");
    return answer(c, 200, text, NULL, NULL);
}

static void finished(void *cls, struct MHD_Connection *c, void **state,
                     enum MHD_RequestTerminationCode code)
{
    (void)cls;
    (void)c;
    (void)code;
    free(*state);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    uv_loop_init(&f->loop);
    f->http = http_new(&f->loop, "test");
    f->server = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, serve, NULL,
                                 MHD_OPTION_NOTIFY_COMPLETED, finished, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(f->server, MHD_DAEMON_INFO_BIND_PORT);
    snprintf(f->base, sizeof(f->base), "http://127.0.0.1:%u", info->port);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    http_free(f->http);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    MHD_stop_daemon(f->server);
    free(f);
    return 0;
}

static void send_to(struct fixture *f, const char *path, struct outcome *out);

static void on_done(void *arg, const struct http_response *r)
{
    struct outcome *out = arg;
    out->calls++;
    out->status = r->status;
    out->retry_after_ms = r->retry_after_ms;
    out->error = r->error;
    snprintf(out->body, sizeof(out->body), "%s", r->body);
    if (out->again) {
        struct fixture *f = out->again;
        out->again = NULL;
        send_to(f, "/again", out);
    }
}

static void send_request(struct fixture *f, const char *path, struct http_request r,
                         struct outcome *out)
{
    char url[128];
    struct error err = {0};
    snprintf(url, sizeof(url), "%s%s", f->base, path);
    r.url = url;
    r.on_done = on_done;
    r.arg = out;
    r.timeout_ms = r.timeout_ms ? r.timeout_ms : 5000;
    assert_non_null(http_send(f->http, &r, &err));
    assert_int_equal(out->calls, 0);
}

static void send_to(struct fixture *f, const char *path, struct outcome *out)
{
    out->calls = 0;
    send_request(f, path, (struct http_request){0}, out);
}

static void test_body_method_and_bearer_arrive(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    send_request(f, "/x",
                 (struct http_request){
                     .method = "PATCH", .body = "{\"a\":1}", .body_len = 7, .bearer = "t0k"},
                 &out);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(out.calls, 1);
    assert_int_equal(out.status, 200);
    assert_string_equal(out.body, "PATCH /x [{\"a\":1}] Bearer t0k");
}

static void test_basic_authentication(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    send_request(f, "/", (struct http_request){.user = "u", .password = "p"}, &out);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_string_equal(out.body, "GET / [] Basic dTpw"); /* RFC 7617: base64("u:p") */
}

static void test_retry_after_is_read(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    send_to(f, "/busy", &out);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(out.status, 429);
    assert_int_equal(out.retry_after_ms, 7000);
    assert_int_equal(out.error.code, ERROR_NONE);
}

static void test_connection_is_reused(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        struct outcome out = {0};
        send_to(f, "/r", &out);
        uv_run(&f->loop, UV_RUN_DEFAULT);
        assert_int_equal(out.status, 200);
    }
    assert_int_equal(http_connections_opened(f->http), 1);
}

static void test_time_limit(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    send_request(f, "/slow", (struct http_request){.timeout_ms = 100}, &out);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(out.calls, 1);
    assert_int_equal(out.error.code, ERROR_TIMEOUT);
}

static void test_size_limit(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    send_request(f, "/large", (struct http_request){.max_body = 1000}, &out);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(out.error.code, ERROR_TOO_LARGE);
}

static void test_nobody_there(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    char saved[64];
    memcpy(saved, f->base, sizeof(saved));
    snprintf(f->base, sizeof(f->base), "http://127.0.0.1:1");
    send_to(f, "/", &out);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    memcpy(f->base, saved, sizeof(saved));
    assert_int_equal(out.status, 0);
    assert_int_equal(out.error.code, ERROR_UNAVAILABLE);
}

static void test_a_request_needs_a_time_limit(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct http_request r = {.url = f->base, .on_done = on_done};
    assert_null(http_send(f->http, &r, &err));
    assert_int_equal(err.code, ERROR_INVALID);
}

static void test_cancelled_calls_stay_silent(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    struct error err = {0};
    struct http_request r = {.url = f->base, .on_done = on_done, .arg = &out, .timeout_ms = 1000};
    struct http_call *call = http_send(f->http, &r, &err);
    http_cancel(call);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(out.calls, 0);
}

static void test_send_from_a_callback(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {.again = f};
    send_to(f, "/first", &out);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_string_equal(out.body, "GET /again [] -");
}

struct stream {
    struct fixture *f;
    struct outcome inner;
    size_t bytes;
    int stop_after;
};

static int on_chunk(void *arg, const char *data, size_t len)
{
    struct stream *s = arg;
    (void)data;
    if (s->bytes == 0 && s->stop_after == 0)
        send_to(s->f, "/inner", &s->inner);
    s->bytes += len;
    return s->stop_after ? -1 : 0;
}

static void on_stream_done(void *arg, const struct http_response *r)
{
    struct stream *s = arg;
    if (s->stop_after)
        assert_int_equal(r->error.code, ERROR_INVALID);
    else
        assert_int_equal(r->error.code, ERROR_NONE);
}

static void stream(struct fixture *f, struct stream *s)
{
    char url[128];
    struct error err = {0};
    snprintf(url, sizeof(url), "%s/large", f->base);
    struct http_request r = {.url = url,
                             .on_chunk = on_chunk,
                             .on_done = on_stream_done,
                             .arg = s,
                             .idle_timeout_ms = 5000};
    assert_non_null(http_send(f->http, &r, &err));
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

static void test_stream_and_send_from_a_chunk(void **state)
{
    struct fixture *f = *state;
    struct stream s = {.f = f};
    stream(f, &s);
    assert_int_equal(s.bytes, 100000);
    assert_int_equal(s.inner.status, 200);
}

static void test_a_chunk_can_end_the_stream(void **state)
{
    struct fixture *f = *state;
    struct stream s = {.f = f, .stop_after = 1};
    stream(f, &s);
    assert_true(s.bytes < 100000);
}

static void test_free_answers_what_is_under_way(void **state)
{
    struct fixture *f = *state;
    struct outcome out = {0};
    send_to(f, "/slow", &out);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    http_free(f->http);
    assert_int_equal(out.calls, 1);
    assert_int_equal(out.error.code, ERROR_CANCELLED);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    f->http = http_new(&f->loop, "test");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_body_method_and_bearer_arrive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_basic_authentication, setup, teardown),
        cmocka_unit_test_setup_teardown(test_retry_after_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_connection_is_reused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_size_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nobody_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_request_needs_a_time_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancelled_calls_stay_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_send_from_a_callback, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stream_and_send_from_a_chunk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_chunk_can_end_the_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_answers_what_is_under_way, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
