/* A watch goes round: list in pages, watch from the list's resourceVersion, watch again from the
 * last one seen when the stream ends, list again when the server no longer knows that version.
 * There is one timer and at most one request. */
#include "kube/internal.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_PAGE_LIMIT 100
#define LIST_TIMEOUT_MS    60000
#define LIST_IDLE_MS       20000 /* a connection that died may not tell all who share it */
#define MAX_PAGE           ((size_t)4 << 20) /* of a list; a larger one is asked in smaller pages */
#define IDLE_TIMEOUT_MS    150000            /* the server sends a bookmark about every minute */
#define WATCH_MIN_S        240
#define WATCH_SPREAD_S     240
#define LIVED_MS           5000
#define SETTLED_MS         12000 /* longer than a connection may take: the watch is open by now */
#define BACKOFF_FIRST_MS   500
#define BACKOFF_MAX_MS     30000
#define ABSENT_RETRY_MS    60000
#define RELIST_AFTER       3 /* failures to watch in a row: perhaps the version is the trouble */
/* etcd takes no object of more than 1.5 MiB. All watches together must stay within what the
 * controller may have, whatever they are sent. */
#define MAX_LINE      ((size_t)4 << 20)
#define MAX_INCOMING  ((size_t)4 << 20)
#define KEEP_INCOMING ((size_t)256 << 10)
#define MAX_VERSION   256
#define MAX_CONTINUE  16384

struct kube_watch {
    struct kube_member member;
    struct kube *kube;     /* NULL after the client has gone */
    char *path, *selector; /* the selector is escaped already */
    struct kube_watch_handler handler;
    void *arg;
    int page_limit;
    bool optional;

    struct kube_call *call;
    struct kube_timer *timer; /* with a call: there is input; without: go on */
    bool listing;             /* list next, or list under way; else watch */
    char *version, *more;     /* the resourceVersion to watch from; the token of the next page */
    struct kube_stream stream;
    struct buf incoming;
    int64_t sent_ms;
    unsigned failures;   /* in a row */
    struct error broken; /* why the rest of this stream is not looked at */
    bool synced, failing;
    bool refused;       /* the server lists but does not let us watch: a list proves nothing */
    bool busy, stopped; /* inside a handler; kube_watch_stop was called there */
};

static void watch_go_on(void *arg);
static void watch_on_list(void *arg, const struct kube_response *response);
static void watch_on_end(void *arg, const struct kube_response *response);

/* --- state ------------------------------------------------------------------------------------ */
static void watch_works(struct kube_watch *w)
{
    if (!w->failing)
        return;
    w->failing = w->refused = false;
    log_info("watch works again", log_str("path", w->path));
    if (w->handler.on_state)
        w->handler.on_state(w->arg, NULL);
}

static void watch_fails(struct kube_watch *w, const struct error *err)
{
    if (w->failing)
        return;
    w->failing = true;
    log_warn("watch fails", log_str("path", w->path), log_str("error", err->message));
    if (w->handler.on_state)
        w->handler.on_state(w->arg, err);
}

static void watch_free(struct kube_watch *w)
{
    kube_stream_free(&w->stream);
    buf_free(&w->incoming);
    free(w->path);
    free(w->selector);
    free(w->version);
    free(w->more);
    free(w);
}

static void watch_detach(struct kube_watch *w)
{
    if (w->call)
        kube_call_cancel(w->call);
    kube_timer_free(w->timer);
    w->call = NULL;
    w->timer = NULL;
    w->kube = NULL;
}

/* Every function that runs handlers ends with this. */
static void watch_leave(struct kube_watch *w)
{
    w->busy = false;
    if (w->stopped)
        watch_free(w);
}

static void watch_later(struct kube_watch *w, int64_t ms)
{
    if (w->timer)
        kube_timer_start(w->timer, ms);
}

/* Half to all of a time that doubles with each failure. */
static int64_t backoff_ms(unsigned failures)
{
    unsigned doublings = failures > 7 ? 7 : failures;
    double ms = BACKOFF_FIRST_MS * (double)(1u << doublings);
    if (ms > BACKOFF_MAX_MS)
        ms = BACKOFF_MAX_MS;
    return (int64_t)(ms * (0.5 + kube_random() / 2));
}

static void watch_failed(struct kube_watch *w, const struct error *err)
{
    watch_later(w, backoff_ms(w->failures));
    w->failures++;
    if (w->kube)
        kube_tell_watch_error(w->kube, w->path);
    watch_fails(w, err);
}

static void watch_list_next(struct kube_watch *w)
{
    w->listing = true;
    string_set(&w->more, NULL);
}

/* --- requests --------------------------------------------------------------------------------- */
static char *list_path(const struct kube_watch *w)
{
    cleanup_free char *more = w->more ? http_escape(w->more) : NULL;
    return xasprintf("%s?limit=%d%s%s%s%s", w->path, w->page_limit,
                     w->selector ? "&labelSelector=" : "", w->selector ? w->selector : "",
                     more ? "&continue=" : "", more ? more : "");
}

static char *watch_path(const struct kube_watch *w, int seconds)
{
    cleanup_free char *version = http_escape(w->version);
    return xasprintf("%s?watch=1&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%d%s%s",
                     w->path, version, seconds, w->selector ? "&labelSelector=" : "",
                     w->selector ? w->selector : "");
}

static int watch_on_chunk(void *arg, const char *data, size_t len)
{
    /* Handlers may send requests, which libcurl does not allow in here. */
    struct kube_watch *w = arg;
    if (w->broken.code != ERROR_NONE)
        return -1;
    if (buf_append(&w->incoming, data, len) < 0)
        return error_set(&w->broken, ERROR_TOO_LARGE, "more watch events than we can hold");
    watch_later(w, 0);
    return 0;
}

static void watch_send(struct kube_watch *w)
{
    int seconds = WATCH_MIN_S + (int)(kube_random() * WATCH_SPREAD_S);
    cleanup_free char *path = w->listing ? list_path(w) : watch_path(w, seconds);
    struct kube_call_spec spec = {
        .request = {.path = path,
                    .timeout_ms = LIST_TIMEOUT_MS,
                    .on_done = w->listing ? watch_on_list : watch_on_end,
                    .arg = w},
        .idle_timeout_ms = LIST_IDLE_MS,
        .max_body = MAX_PAGE,
    };
    if (!w->listing) {
        spec.request.timeout_ms = (int64_t)seconds * 1000 + LIST_TIMEOUT_MS;
        spec.on_chunk = watch_on_chunk;
        spec.idle_timeout_ms = IDLE_TIMEOUT_MS;
        w->broken = (struct error){0};
        buf_clear(&w->stream.line);
        buf_clear(&w->incoming);
    }
    w->sent_ms = clock_mono_ms();
    w->call = kube_call_start(w->kube, &spec);
    if (!w->listing && w->failing) /* on a quiet kind the next event may be a minute away */
        watch_later(w, SETTLED_MS);
}

/* --- the list --------------------------------------------------------------------------------- */
static bool version_ok(const char *version)
{
    return *version && strlen(version) <= MAX_VERSION;
}

static void give_items(struct kube_watch *w, const json_t *items)
{
    const json_t *item;
    size_t i;
    json_array_foreach (items, i, item)
        if (!w->stopped && json_is_object(item))
            w->handler.on_object(w->arg, item, false);
}

static void list_complete(struct kube_watch *w)
{
    w->synced = true;
    if (!w->stopped)
        w->handler.on_list_end(w->arg);
}

static int list_page(struct kube_watch *w, const json_t *page, struct error *err)
{
    const json_t *items = json_object_get(page, "items");
    const json_t *meta = json_object_get(page, "metadata");
    const char *version = json_str(json_object_get(meta, "resourceVersion"));
    const char *more = json_str(json_object_get(meta, "continue"));
    /* An empty list may be null. */
    if (!version_ok(version) || strlen(more) > MAX_CONTINUE ||
        (!json_is_array(items) && !json_is_null(items)))
        return error_set(err, ERROR_INVALID, "%s: the answer is no list", w->path);
    if (!w->more)
        w->handler.on_list_begin(w->arg);
    give_items(w, items);
    string_set(&w->more, *more ? more : NULL);
    if (!w->more) {
        string_set(&w->version, version);
        w->listing = false;
        list_complete(w);
    }
    return 0;
}

/* The kind does not exist here, or was never for us to see: there are none. What was seen once is
 * not given up for a refusal: a token may have run out, and an API server that has just started
 * forbids everything for a moment. */
static bool is_absent(const struct kube_watch *w, const struct kube_response *response)
{
    return w->optional &&
           (response->error.code == ERROR_NOT_FOUND || (response->status == 403 && !w->synced));
}

static void list_absent(struct kube_watch *w, const struct error *err)
{
    watch_list_next(w);
    w->handler.on_list_begin(w->arg);
    list_complete(w);
    if (w->stopped)
        return;
    if (err->code == ERROR_FORBIDDEN) {
        watch_failed(w, err);
        return;
    }
    w->failures = 0;
    watch_later(w, ABSENT_RETRY_MS);
    watch_works(w);
}

static void list_failed(struct kube_watch *w, const struct error *err)
{
    bool in_the_middle = w->more != NULL;
    watch_list_next(w);
    if (err->code == ERROR_TOO_LARGE && w->page_limit > 1)
        w->page_limit /= 2;
    if (err->code == ERROR_GONE && in_the_middle && w->failures == 0) {
        w->failures++;
        watch_later(w, 0); /* the pages took too long: nothing is wrong */
        return;
    }
    watch_failed(w, err);
}

static void watch_on_list(void *arg, const struct kube_response *response)
{
    struct kube_watch *w = arg;
    struct error err = response->error;
    w->call = NULL;
    w->busy = true;
    if (is_absent(w, response)) {
        list_absent(w, &err);
    } else if (err.code != ERROR_NONE || list_page(w, response->json, &err) < 0) {
        list_failed(w, &err);
    } else if (!w->stopped) {
        if (!w->refused)
            watch_works(w);
        if (w->kube && !w->stopped)
            watch_send(w);
    }
    watch_leave(w);
}

/* --- the stream ------------------------------------------------------------------------------- */
static void error_event(struct kube_watch *w, const json_t *status)
{
    const char *message = json_str(json_object_get(status, "message"));
    json_int_t code = json_integer_value(json_object_get(status, "code"));
    error_set(&w->broken, code == 410 ? ERROR_GONE : ERROR_UNAVAILABLE, "%s",
              *message ? message : "the server ended the watch");
}

static void watch_on_event(void *arg, const char *type, const json_t *object)
{
    struct kube_watch *w = arg;
    if (w->stopped || w->broken.code != ERROR_NONE)
        return;
    if (strcmp(type, "ERROR") == 0) {
        error_event(w, object);
        return;
    }
    const char *version = json_str(json_path(object, "metadata", "resourceVersion", NULL));
    bool deleted = strcmp(type, "DELETED") == 0;
    if (!version_ok(version)) {
        error_set(&w->broken, ERROR_INVALID, "%s: event without resourceVersion", w->path);
        return;
    }
    w->failures = 0;
    string_set(&w->version, version);
    watch_works(w);
    if (w->stopped)
        return;
    if (deleted || strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        w->handler.on_object(w->arg, object, deleted);
}

static void watch_digest(struct kube_watch *w)
{
    struct error err = {0};
    int ret = kube_stream_feed(&w->stream, buf_string(&w->incoming), w->incoming.len, &err);
    if (ret < 0 && w->broken.code == ERROR_NONE) {
        w->broken = err;
        w->broken.code = ERROR_INVALID;
        log_warn("watch cannot be read", log_str("path", w->path), log_str("error", err.message));
    }
    if (w->incoming.cap > KEEP_INCOMING)
        buf_free(&w->incoming);
    buf_clear(&w->incoming);
}

/* After a stream that could not be read, or whose version is gone, only a list tells the truth. */
static bool must_list(const struct kube_watch *w, const struct error *err)
{
    return err->code == ERROR_GONE || err->code == ERROR_INVALID || err->code == ERROR_TOO_LARGE ||
           err->code == ERROR_NOT_FOUND || w->failures + 1 >= RELIST_AFTER;
}

static void watch_on_end(void *arg, const struct kube_response *response)
{
    struct kube_watch *w = arg;
    w->call = NULL;
    w->busy = true;
    watch_digest(w); /* what came before the end counts */
    struct error err = w->broken.code != ERROR_NONE ? w->broken : response->error;
    bool lived = clock_mono_ms() - w->sent_ms > LIVED_MS;
    if (w->stopped) {
        watch_leave(w);
        return;
    }
    if (lived && response->status == 200)
        w->failures = 0;
    w->refused = response->status >= 400 && response->status != 410;
    if (err.code == ERROR_GONE)
        log_info("the history is gone, listing again", log_str("path", w->path));
    if (err.code != ERROR_NONE && must_list(w, &err))
        watch_list_next(w);
    bool at_once = w->failures == 0 && (lived || err.code == ERROR_GONE);
    if (at_once && (response->status == 200 || err.code == ERROR_GONE)) {
        w->failures += w->listing; /* not twice at once */
        watch_later(w, 0);
    } else if (err.code != ERROR_NONE) {
        watch_failed(w, &err);
    } else {
        watch_later(w, backoff_ms(w->failures++));
    }
    watch_leave(w);
}

/* --- the timer -------------------------------------------------------------------------------- */
static void watch_go_on(void *arg)
{
    struct kube_watch *w = arg;
    if (!w->call) {
        watch_send(w);
        return;
    }
    w->busy = true;
    watch_digest(w);
    if (w->call && w->broken.code != ERROR_NONE) {
        struct kube_response response = {.status = 200};
        kube_call_cancel(w->call);
        watch_on_end(w, &response);
        return;
    }
    if (w->call && clock_mono_ms() - w->sent_ms >= SETTLED_MS)
        watch_works(w);
    watch_leave(w);
}

/* --- start and stop --------------------------------------------------------------------------- */
static void watch_on_kube_free(struct kube_member *member)
{
    struct kube_watch *w = (struct kube_watch *)(void *)member; /* its first field */
    watch_detach(w);
}

struct kube_watch *kube_watch_start(struct kube *kube, const struct kube_watch_spec *spec)
{
    struct kube_watch *w = xcalloc(1, sizeof(*w));
    w->kube = kube;
    w->path = xstrdup(spec->path);
    w->selector = spec->selector && *spec->selector ? http_escape(spec->selector) : NULL;
    w->handler = spec->handler;
    w->arg = spec->arg;
    w->optional = spec->optional;
    w->page_limit = spec->page_limit > 0 ? spec->page_limit : DEFAULT_PAGE_LIMIT;
    w->listing = true;
    w->timer = kube_timer_new(kube_loop(kube), watch_go_on, w);
    kube_stream_init(&w->stream, MAX_LINE, watch_on_event, w);
    buf_init(&w->incoming, MAX_INCOMING);
    w->member.on_kube_free = watch_on_kube_free;
    kube_member_add(kube, &w->member);
    kube_timer_start(w->timer, 0);
    return w;
}

void kube_watch_stop(struct kube_watch *watch)
{
    if (!watch)
        return;
    if (watch->kube) {
        kube_member_remove(&watch->member);
        watch_detach(watch);
    }
    watch->stopped = true;
    if (!watch->busy)
        watch_free(watch);
}

bool kube_watch_synced(const struct kube_watch *watch)
{
    return watch->synced;
}
