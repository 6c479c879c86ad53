/* Requests to the API server. A call is in one of these states: queued (a write that waits for its
 * turn), asking for credentials, sent, or waiting on its own timer to be sent again or to fail.
 * What happens to the answer is in call_answered. */
#include "kube/credentials.h"
#include "kube/internal.h"

#include <string.h>

#define DEFAULT_WRITES_PER_SECOND 50.0
#define DEFAULT_WRITE_BURST       100.0
#define DEFAULT_TIMEOUT_MS        15000
#define MAX_QUEUED                10000
#define LAZY                      ((uint64_t)1 << 63) /* added to the number of a lazy write */
#define MAX_WRITES_IN_FLIGHT      64 /* below the server's limit of streams on one connection */
#define MAX_RETRIES               3
#define DEFAULT_RETRY_AFTER_MS    1000
#define MAX_RETRY_AFTER_MS        60000

struct kube_call {
    struct kube *kube;
    TAILQ_ENTRY(kube_call) link;
    char *url, *body;
    const char *method, *content_type;
    http_chunk on_chunk;
    kube_done on_done;
    void *arg;
    int64_t timeout_ms, idle_timeout_ms;
    size_t max_body;
    uint64_t number; /* the order of asking */
    int retries;
    bool write, urgent, queued, asking, in_flight, authenticated_again;
    struct http_call *http;
    struct kube_timer *timer;
    struct error failure; /* what the timer will tell */
};
TAILQ_HEAD(call_list, kube_call);

struct kube {
    uv_loop_t *loop;
    struct http *http;
    char *server, *user, *password, *field_manager;
    struct kube_credentials *credentials;
    struct call_list queue, others; /* each call is on one of them */
    size_t queued, in_flight;
    uint64_t last_number, writes_sent;
    double rate, burst, tokens;
    int64_t filled_ms, hold_until_ms;
    struct kube_timer *pump_timer;
    LIST_HEAD(, kube_member) members;
    struct kube_events *events;
    struct kube_observer observer;
    int64_t unanswered_ms;
    bool (*may_write)(void *arg);
    void *may_write_arg;
};

static void call_send(struct kube_call *call);
static void call_fail_soon(struct kube_call *call, const struct error *err);

uv_loop_t *kube_loop(const struct kube *kube)
{
    return kube->loop;
}

struct kube_events **kube_events_slot(struct kube *kube)
{
    return &kube->events;
}

uint64_t kube_writes_sent(const struct kube *kube)
{
    return kube->writes_sent;
}

size_t kube_writes_queued(const struct kube *kube)
{
    return kube->queued;
}

uint64_t kube_write_mark(const struct kube *kube)
{
    return kube->last_number;
}

static bool is_pending(const struct call_list *list, uint64_t mark)
{
    const struct kube_call *call;
    TAILQ_FOREACH(call, list, link)
    if (call->write && !call->urgent && call->number <= mark)
        return true;
    return false;
}

bool kube_writes_ended(const struct kube *kube, uint64_t mark)
{
    return !is_pending(&kube->queue, mark) && !is_pending(&kube->others, mark);
}

int64_t kube_unanswered_ms(const struct kube *kube)
{
    return kube->unanswered_ms;
}

void kube_allow_writes(struct kube *kube, bool (*may_write)(void *arg), void *arg)
{
    kube->may_write = may_write;
    kube->may_write_arg = arg;
}

void kube_observe(struct kube *kube, const struct kube_observer *observer)
{
    kube->observer = observer ? *observer : (struct kube_observer){0};
}

void kube_tell_watch_error(const struct kube *kube, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (kube->observer.on_watch_error)
        kube->observer.on_watch_error(kube->observer.arg, slash ? slash + 1 : path);
}

void kube_member_add(struct kube *kube, struct kube_member *member)
{
    LIST_INSERT_HEAD(&kube->members, member, link);
}

void kube_member_remove(struct kube_member *member)
{
    LIST_REMOVE(member, link);
}

/* --- the queue of writes ---------------------------------------------------------------------- */
static void queue_remove(struct kube_call *call)
{
    TAILQ_REMOVE(&call->kube->queue, call, link);
    call->kube->queued--;
    call->queued = false;
    TAILQ_INSERT_TAIL(&call->kube->others, call, link);
}

/* By the order of asking: a write that is to be sent again is older than those that wait. */
static void queue_insert(struct kube_call *call)
{
    struct kube *kube = call->kube;
    struct kube_call *before = TAILQ_LAST(&kube->queue, call_list);
    TAILQ_REMOVE(&kube->others, call, link);
    if (!before || before->number < call->number) {
        TAILQ_INSERT_TAIL(&kube->queue, call, link);
    } else {
        struct kube_call *after = TAILQ_FIRST(&kube->queue);
        while (after->number < call->number)
            after = TAILQ_NEXT(after, link);
        TAILQ_INSERT_BEFORE(after, call, link);
    }
    kube->queued++;
    call->queued = true;
}

static void refill(struct kube *kube, int64_t now_ms)
{
    if (now_ms > kube->filled_ms)
        kube->tokens += kube->rate * (double)(now_ms - kube->filled_ms) / 1000.0;
    if (kube->tokens > kube->burst)
        kube->tokens = kube->burst;
    kube->filled_ms = now_ms;
}

/* Sends what may be sent now; the timer comes back for the rest. */
static void pump(struct kube *kube)
{
    struct kube_call *call;
    int64_t now_ms = clock_mono_ms();
    refill(kube, now_ms);
    while ((call = TAILQ_FIRST(&kube->queue)) && kube->in_flight < MAX_WRITES_IN_FLIGHT) {
        if (now_ms < kube->hold_until_ms) {
            kube_timer_start(kube->pump_timer, kube->hold_until_ms - now_ms);
            return;
        }
        if (kube->tokens < 1) {
            double wait_ms = (1 - kube->tokens) / kube->rate * 1000.0;
            kube_timer_start(kube->pump_timer, (int64_t)wait_ms + 1);
            return;
        }
        kube->tokens -= 1;
        queue_remove(call);
        call_send(call);
    }
}

static void on_pump_timer(void *arg)
{
    pump(arg);
}

/* --- the end of a call ------------------------------------------------------------------------ */
static void call_landed(struct kube_call *call)
{
    if (call->in_flight)
        call->kube->in_flight--;
    call->in_flight = false;
}

static void call_on_credentials(void *arg, const char *bearer, const struct http_tls *tls,
                                const struct error *err);

static void call_free(struct kube_call *call)
{
    struct kube *kube = call->kube;
    if (call->queued)
        queue_remove(call);
    TAILQ_REMOVE(&kube->others, call, link);
    if (call->asking)
        kube_credentials_forget(kube->credentials, call_on_credentials, call);
    if (call->http)
        http_cancel(call->http);
    call_landed(call);
    kube_timer_free(call->timer);
    free(call->url);
    free(call->body);
    free(call);
}

/* The callback comes last, so that it may do anything, even free the client. */
static void call_finish(struct kube_call *call, const struct kube_response *response)
{
    struct kube *kube = call->kube;
    kube_done on_done = call->on_done;
    void *arg = call->arg;
    call_free(call);
    pump(kube);
    if (on_done)
        on_done(arg, response);
}

void kube_call_cancel(struct kube_call *call)
{
    struct kube *kube = call->kube;
    call_free(call);
    pump(kube);
}

static void explain(const struct kube_call *call, const struct http_response *r, const json_t *json,
                    struct error *err)
{
    enum error_code code = kube_status_code(r->status, r->retry_after_ms >= 0);
    const char *message = json_str(json_object_get(json, "message"));
    cleanup_free char *said = *message ? xstrdup(message) : xasprintf("%.200s", r->body);
    http_hide(r, said);
    if (r->error.code != ERROR_NONE)
        *err = r->error;
    else if (*message)
        error_set(err, code, "%s", said);
    else
        error_set(err, code, "%s %s: HTTP %d %s", call->method, call->url, r->status, said);
}

static void call_answered(struct kube_call *call, const struct http_response *r)
{
    struct kube_response response = {.status = r->status};
    struct error not_json;
    cleanup_json json_t *json = NULL;
    if (r->body_len > 0 && r->error.code == ERROR_NONE)
        json = kube_json_decode(r->body, r->body_len, &not_json);
    if (r->error.code != ERROR_NONE || r->status < 200 || r->status > 299)
        explain(call, r, json, &response.error);
    response.json = json;
    call_finish(call, &response);
}

/* --- sending again ---------------------------------------------------------------------------- */
void kube_drop_queued(struct kube *kube)
{
    struct kube_call *call;
    struct error dropped;
    error_set(&dropped, ERROR_CANCELLED, "it was still waiting when it was given up");
    while ((call = TAILQ_FIRST(&kube->queue))) {
        queue_remove(call);
        call_fail_soon(call, &dropped);
    }
}

static bool told_to_wait(const struct http_response *r)
{
    return r->error.code == ERROR_NONE &&
           (r->status == 429 || (r->status == 503 && r->retry_after_ms >= 0));
}

static void call_send_later(struct kube_call *call, int64_t wait_ms)
{
    struct kube *kube = call->kube;
    call->retries++;
    if (wait_ms < 0)
        wait_ms = DEFAULT_RETRY_AFTER_MS;
    if (wait_ms > MAX_RETRY_AFTER_MS)
        wait_ms = MAX_RETRY_AFTER_MS;
    if (!call->write) {
        kube_timer_start(call->timer, wait_ms);
        return;
    }
    int64_t until_ms = clock_mono_ms() + wait_ms;
    if (until_ms > kube->hold_until_ms)
        kube->hold_until_ms = until_ms;
    queue_insert(call);
    pump(kube);
}

static void call_on_http(void *arg, const struct http_response *r)
{
    struct kube_call *call = arg;
    const struct kube_observer *observer = &call->kube->observer;
    call->http = NULL;
    call_landed(call);
    if (call->write && !call->urgent && r->status == 0)
        call->kube->unanswered_ms = clock_mono_ms();
    if (observer->on_answer)
        observer->on_answer(observer->arg, call->method, r->status);
    if (r->status == 401 && r->error.code == ERROR_NONE && !call->authenticated_again) {
        call->authenticated_again = true;
        kube_credentials_invalidate(call->kube->credentials);
        call_send(call);
    } else if (told_to_wait(r) && !call->urgent && call->retries < MAX_RETRIES) {
        call_send_later(call, r->retry_after_ms);
    } else {
        call_answered(call, r);
    }
}

static void call_on_timer(void *arg)
{
    struct kube_call *call = arg;
    if (call->failure.code == ERROR_NONE) {
        call_send(call);
        return;
    }
    struct kube_response response = {.error = call->failure};
    call_finish(call, &response);
}

static void call_fail_soon(struct kube_call *call, const struct error *err)
{
    call->failure = *err;
    kube_timer_start(call->timer, 0);
}

/* --- sending ---------------------------------------------------------------------------------- */
static int call_on_chunk(void *arg, const char *data, size_t len)
{
    struct kube_call *call = arg;
    return call->on_chunk(call->arg, data, len);
}

static void call_on_credentials(void *arg, const char *bearer, const struct http_tls *tls,
                                const struct error *err)
{
    struct kube_call *call = arg;
    struct kube *kube = call->kube;
    struct error failure = {0};
    call->asking = false;
    if (!err && call->write && !call->urgent && kube->may_write &&
        !kube->may_write(kube->may_write_arg)) {
        error_set(&failure, ERROR_CANCELLED, "it may not be written any more");
        err = &failure;
    }
    if (err) {
        call_landed(call);
        call_fail_soon(call, err);
        return;
    }
    struct http_request request = {
        .method = call->method,
        .url = call->url,
        .content_type = call->content_type,
        .bearer = bearer,
        .user = bearer ? NULL : kube->user,
        .password = bearer ? NULL : kube->password,
        .body = call->body,
        .body_len = call->body ? strlen(call->body) : 0,
        .tls = tls,
        .timeout_ms = call->timeout_ms,
        .idle_timeout_ms = call->idle_timeout_ms,
        .max_body = call->max_body,
        .on_chunk = call->on_chunk ? call_on_chunk : NULL,
        .on_done = call_on_http,
        .arg = call,
    };
    call->http = http_send(kube->http, &request, &failure);
    if (!call->http) {
        call_landed(call);
        call_fail_soon(call, &failure);
    }
    kube->writes_sent += call->write && call->http;
}

static void call_send(struct kube_call *call)
{
    if (call->write) {
        call->in_flight = true;
        call->kube->in_flight++;
    }
    call->asking = true;
    kube_credentials_get(call->kube->credentials, call_on_credentials, call);
}

static struct kube_call *call_new(struct kube *kube, const struct kube_call_spec *spec)
{
    const struct kube_request *r = &spec->request;
    struct kube_call *call = xcalloc(1, sizeof(*call));
    const char *method = kube_method(r);
    call->kube = kube;
    call->method = method ? method : "GET";
    call->url = kube_url(kube->server, kube->field_manager, r);
    call->content_type = kube_content_type(r->patch);
    call->body = r->body ? json_dumps(r->body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    call->on_chunk = spec->on_chunk;
    call->on_done = r->on_done;
    call->arg = r->arg;
    call->timeout_ms = r->timeout_ms > 0 || spec->on_chunk ? r->timeout_ms : DEFAULT_TIMEOUT_MS;
    call->idle_timeout_ms = spec->idle_timeout_ms;
    call->max_body = spec->max_body;
    call->number = ++kube->last_number + (r->lazy ? LAZY : 0);
    call->write = strcmp(call->method, "GET") != 0;
    call->urgent = spec->urgent;
    call->timer = kube_timer_new(kube->loop, call_on_timer, call);
    TAILQ_INSERT_TAIL(&kube->others, call, link);
    if (!method || (r->body && !call->body))
        error_set(&call->failure, ERROR_INVALID, "%s",
                  method ? "body that is no JSON" : "no such method");
    return call;
}

struct kube_call *kube_call_start(struct kube *kube, const struct kube_call_spec *spec)
{
    struct kube_call *call = call_new(kube, spec);
    if (call->failure.code == ERROR_NONE && call->write && !call->urgent &&
        kube->queued >= MAX_QUEUED)
        error_set(&call->failure, ERROR_BUSY, "%d writes wait already", MAX_QUEUED);
    if (call->failure.code != ERROR_NONE) {
        kube_timer_start(call->timer, 0);
    } else if (call->write && !call->urgent) {
        queue_insert(call);
        pump(kube);
    } else {
        call_send(call);
    }
    return call;
}

void kube_send(struct kube *kube, const struct kube_request *request)
{
    struct kube_call_spec spec = {.request = *request, .urgent = request->at_once};
    kube_call_start(kube, &spec);
}

/* --- the client ------------------------------------------------------------------------------- */
struct kube *kube_new(uv_loop_t *loop, struct http *http, const struct kube_config *config,
                      const struct kube_options *options, struct error *err)
{
    static const struct kube_options defaults;
    const struct kube_options *o = options ? options : &defaults;
    if (!config->server || !*config->server) {
        error_set(err, ERROR_INVALID, "the configuration names no API server");
        return NULL;
    }
    struct kube *kube = xcalloc(1, sizeof(*kube));
    kube->loop = loop;
    kube->http = http;
    kube->server = xstrdup(config->server);
    kube->user = xstrdup(config->user);
    kube->password = xstrdup(config->password);
    kube->field_manager = xstrdup(o->field_manager ? o->field_manager : "faasrl-mpa");
    kube->credentials = kube_credentials_new(loop, config);
    kube->rate = o->writes_per_second > 0 ? o->writes_per_second : DEFAULT_WRITES_PER_SECOND;
    kube->burst = o->write_burst >= 1 ? o->write_burst : DEFAULT_WRITE_BURST;
    kube->tokens = kube->burst;
    kube->filled_ms = clock_mono_ms();
    kube->pump_timer = kube_timer_new(loop, on_pump_timer, kube);
    TAILQ_INIT(&kube->queue);
    TAILQ_INIT(&kube->others);
    LIST_INIT(&kube->members);
    return kube;
}

static void cancel_first(struct call_list *list)
{
    struct kube_call *call = TAILQ_FIRST(list);
    struct kube_response response = {0};
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed one is off the queue */
    kube_done on_done = call->on_done;
    void *arg = call->arg;
    error_set(&response.error, ERROR_CANCELLED, "shutting down");
    call_free(call);
    if (on_done)
        on_done(arg, &response);
}

void kube_free(struct kube *kube)
{
    struct kube_member *member;
    if (!kube)
        return;
    while ((member = LIST_FIRST(&kube->members))) {
        LIST_REMOVE(member, link);
        member->on_kube_free(member);
    }
    kube->hold_until_ms = INT64_MAX; /* nothing more is sent */
    while (!TAILQ_EMPTY(&kube->queue) || !TAILQ_EMPTY(&kube->others))
        cancel_first(TAILQ_EMPTY(&kube->queue) ? &kube->others : &kube->queue);
    kube_events_free(kube->events);
    kube_credentials_free(kube->credentials);
    kube_timer_free(kube->pump_timer);
    free(kube->server);
    free(kube->user);
    free(kube->password);
    free(kube->field_manager);
    free(kube);
}
