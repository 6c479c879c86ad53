/* The dashboard's interface: JSON under /api/v1/, and a stream of what changes. docs/dashboard.md
 * tells it in words. */
#include "auth.h"
#include "page.h"
#include "serve.h"
#include "tell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#define JSON_TYPE     "application/json; charset=utf-8"
#define ROOT          "/api/v1/"
#define MAX_STREAMS   32
#define TICK_MS       1000
#define QUIET_TICKS   10 /* after which a comment tells that the stream lives */
#define REVIEW_TICKS  30 /* after which its reader's rights are looked at again */
#define MAX_EVENT     ((size_t)32 << 20)
#define MAX_NAMESPACE 63

enum what { ABOUT, MPAS, MPA, TIMELINE, LEARNING, STREAM, NOTHING };

/* One request, until its asker's rights are known. */
struct question {
    struct dashboard *dashboard;
    struct serve_request *request;
    struct auth_ask *review;
    enum what what;
    char *namespace_; /* that it is about; NULL: all */
    char *key;        /* of the one MPA */
    int64_t since_ms;
};

struct stream {
    LIST_ENTRY(stream) link;
    struct dashboard *dashboard;
    struct serve_request *request;
    struct auth_ask *review;
    char *namespace_;
    int quiet, age; /* ticks since something was sent, and since its reader was reviewed */
    bool missed;    /* something, because it had not taken what came before */
    struct buf rows, marks;
};

struct dashboard {
    struct controller *controller;
    struct auth *auth; /* NULL: open */
    char *policy;      /* of the page */
    struct serve_header headers[1];
    uv_timer_t tick;
    LIST_HEAD(, stream) streams;
    size_t stream_count;
    uint64_t marked; /* the last mark that streams were told */
    json_t *gone;    /* keys of MPAs, since the last tick */
};

/* --- answers --------------------------------------------------------------------------------- */
static void reply_json(struct serve_request *request, unsigned status, json_t *body)
{
    static const struct serve_header bearer[] = {{"WWW-Authenticate", "Bearer"}};
    struct serve_answer answer;
    cleanup_free char *text = json_dumps(body, TELL_FLAGS);
    serve_answer_init(&answer);
    answer.status = status;
    answer.content_type = JSON_TYPE;
    if (status == 401) {
        answer.headers = bearer;
        answer.header_count = ARRAY_LEN(bearer);
    }
    if (text == NULL || buf_printf(&answer.body, "%s\n", text) < 0)
        answer.status = 500;
    json_decref(body);
    serve_reply(request, &answer);
}

static void reply_error(struct serve_request *request, unsigned status, const char *why)
{
    reply_json(request, status, json_pack("{s:o}", "error", json_text(why, 1024)));
}

static json_t *now(void)
{
    return json_integer(clock_wall_ms());
}

static void answer_about(const struct question *q, const char *user)
{
    const struct controller *c = q->dashboard->controller;
    reply_json(q->request, 200,
               json_pack("{s:s, s:b, s:o, s:o, s:f, s:b, s:b}", "version", FAASRL_VERSION,
                         "simulated", c->live == NULL, "user",
                         user ? json_text(user, 256) : json_null(), "now", now(), "intervalSeconds",
                         c->options.interval_s, "leading", c->leading, "ended", c->ended));
}

/* Of each MPA that the question is about what `tell` says, where it says something. */
static json_t *list(const struct question *q, json_t *(*tell)(const struct entry *e))
{
    const struct controller *c = q->dashboard->controller;
    json_t *items = json_array(), *item;
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;)
        if (tell_is_of(value, q->namespace_) && (item = tell(value)) != NULL)
            json_array_append_new(items, item);
    return json_pack("{s:o, s:o}", "now", now(), "items", items);
}

static void answer_timeline(const struct question *q, const struct entry *e)
{
    struct serve_answer answer;
    serve_answer_init(&answer);
    answer.content_type = JSON_TYPE;
    if (tell_timeline(e, q->since_ms, &answer.body) < 0)
        answer.status = 500;
    serve_reply(q->request, &answer);
}

static void answer_one(const struct question *q)
{
    const struct entry *e = map_get(&q->dashboard->controller->entries, q->key);
    if (e == NULL)
        reply_error(q->request, 404, "no such MPA is followed here: " ROOT "mpas lists them");
    else if (q->what == TIMELINE)
        answer_timeline(q, e);
    else
        reply_json(q->request, 200, tell_detail(e));
}

static void open_stream(struct question *q);

static void answer(struct question *q, const char *user)
{
    switch (q->what) {
    case ABOUT:
        answer_about(q, user);
        break;
    case MPAS:
        reply_json(q->request, 200, list(q, tell_row));
        break;
    case LEARNING:
        reply_json(q->request, 200, list(q, tell_learning_row));
        break;
    case STREAM:
        open_stream(q);
        break;
    default:
        answer_one(q);
    }
}

/* --- questions ------------------------------------------------------------------------------- */
static bool is_name(const char *text, size_t len, size_t max)
{
    return len > 0 && len <= max && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= len;
}

/* "NAMESPACE/NAME" or "NAMESPACE/NAME/timeline". */
static enum what parse_one(struct question *q, const char *path)
{
    const char *slash = strchr(path, '/');
    const char *name = slash ? slash + 1 : NULL;
    const char *end = name ? strchrnul(name, '/') : NULL;
    if (!name || !is_name(path, (size_t)(slash - path), MAX_NAMESPACE) ||
        !is_name(name, (size_t)(end - name), 253) || (*end && strcmp(end, "/timeline") != 0))
        return NOTHING;
    q->key = strndup(path, (size_t)(end - path));
    free(q->namespace_); /* it is this one's namespace that its asker must be allowed to see */
    q->namespace_ = strndup(path, (size_t)(slash - path));
    return *end ? TIMELINE : MPA;
}

static enum what parse_path(struct question *q, const char *path)
{
    static const struct {
        const char *path;
        enum what what;
    } known[] = {{"about", ABOUT}, {"mpas", MPAS}, {"learning", LEARNING}, {"stream", STREAM}};
    if (strncmp(path, ROOT, strlen(ROOT)) != 0)
        return NOTHING;
    path += strlen(ROOT);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(path, known[i].path) == 0)
            return known[i].what;
    return strncmp(path, "mpas/", 5) == 0 ? parse_one(q, path + 5) : NOTHING;
}

static int parse_query(struct question *q, struct error *err)
{
    const char *namespace_ = serve_query(q->request, "namespace");
    const char *since = serve_query(q->request, "since");
    char *end;
    if (namespace_ && !is_name(namespace_, strlen(namespace_), MAX_NAMESPACE))
        return error_set(err, ERROR_INVALID,
                         "namespace: the name of a namespace has up to 63 of a-z, 0-9 and -");
    if (namespace_)
        q->namespace_ = xstrdup(namespace_);
    errno = 0;
    q->since_ms = since ? strtoll(since, &end, 10) : 0;
    if (since && (*since < '0' || *since > '9' || *end || errno))
        return error_set(err, ERROR_INVALID, "since: a whole number of milliseconds since 1970");
    return 0;
}

static void question_free(struct question *q)
{
    auth_forget(q->review);
    free(q->namespace_);
    free(q->key);
    free(q);
}

static void on_question_gone(void *arg)
{
    question_free(arg);
}

static void on_verdict(void *arg, const struct auth_verdict *verdict)
{
    struct question *q = arg;
    q->review = NULL;
    serve_on_gone(q->request, NULL, NULL);
    if (verdict->status == 200)
        answer(q, verdict->user);
    else
        reply_error(q->request, verdict->status, verdict->message);
    question_free(q);
}

/* A page of another site, whose name its owner lets point here, is not to be answered. */
static bool is_loopback(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; host && i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i]);
        if (strncmp(host, names[i], len) == 0 && (host[len] == '\0' || host[len] == ':'))
            return true;
    }
    return false;
}

/* The one who asks is told only once his rights are known. */
static void review(struct question *q)
{
    static const struct auth_verdict everybody = {.status = 200};
    static const struct auth_verdict elsewhere = {
        403, NULL, "this one is open: ask for it by 127.0.0.1 or localhost"};
    struct dashboard *d = q->dashboard;
    if (!d->auth) {
        bool here = is_loopback(serve_header(q->request, "Host"));
        on_verdict(q, here ? &everybody : &elsewhere);
        return;
    }
    serve_on_gone(q->request, on_question_gone, q);
    struct auth_ask *ask = auth_check(d->auth, serve_header(q->request, "Authorization"),
                                      q->namespace_, on_verdict, q);
    if (ask)
        q->review = ask;
}

static void on_request(void *arg, struct serve_request *request)
{
    const struct controller *c = arg;
    struct question *q = xcalloc(1, sizeof(*q));
    struct error err = {0};
    q->dashboard = c->dashboard;
    q->request = request;
    int failed = parse_query(q, &err);
    q->what = parse_path(q, serve_path(request));
    if (q->what == NOTHING)
        reply_error(request, 404,
                    "no such path: there are about, mpas, mpas/NAMESPACE/NAME, its /timeline, "
                    "learning and stream under " ROOT);
    else if (failed)
        reply_error(request, 400, err.message);
    else {
        review(q);
        return;
    }
    question_free(q);
}

/* --- streams --------------------------------------------------------------------------------- */
static void on_stream_gone(void *arg)
{
    struct stream *s = arg;
    struct dashboard *d = s->dashboard;
    LIST_REMOVE(s, link);
    if (--d->stream_count == 0)
        uv_timer_stop(&d->tick);
    auth_forget(s->review);
    buf_free(&s->rows);
    buf_free(&s->marks);
    free(s->namespace_);
    free(s);
}

static void add_item(struct buf *out, const char *item)
{
    (void)!buf_printf(out, "%s%s", out->len ? "," : "", item);
}

/* What does not fit ends the stream: its reader begins again with all rows. */
static void send_stream(struct stream *s, const char *gone, bool always)
{
    struct buf out;
    struct error err;
    int failed = 0;
    buf_init(&out, MAX_EVENT);
    if (s->rows.len || *gone || always)
        failed |= buf_printf(&out, "event: mpas\ndata: {\"now\":%lld,\"items\":[",
                             (long long)clock_wall_ms()) |
                  buf_puts(&out, buf_string(&s->rows)) |
                  buf_printf(&out, "],\"gone\":[%s]}\n\n", gone);
    failed |= buf_puts(&out, buf_string(&s->marks));
    if (out.len == 0 && ++s->quiet >= QUIET_TICKS)
        failed |= buf_puts(&out, ": nothing new\n\n");
    if (out.len)
        s->quiet = 0;
    if (failed || (out.len && serve_stream_send(s->request, out.data, out.len, &err) < 0))
        serve_stream_end(s->request);
    buf_free(&out);
    buf_free(&s->rows);
    buf_free(&s->marks);
    buf_init(&s->rows, MAX_EVENT);
    buf_init(&s->marks, MAX_EVENT);
}

static void send_all(struct stream *s)
{
    const struct controller *c = s->dashboard->controller;
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        if (!tell_is_of(value, s->namespace_))
            continue;
        cleanup_json json_t *row = tell_row(value);
        cleanup_free char *text = json_dumps(row, TELL_FLAGS);
        add_item(&s->rows, text);
    }
    send_stream(s, "", true);
}

static void on_review(void *arg, const struct auth_verdict *verdict)
{
    struct stream *s = arg;
    s->review = NULL;
    if (verdict->status == 401 || verdict->status == 403)
        serve_stream_end(s->request);
}

/* False: it is not to be told anything now. */
static bool is_ready(struct stream *s)
{
    struct dashboard *d = s->dashboard;
    size_t waits = serve_stream_waits(s->request);
    if (!serve_stream_open(s->request) || (s->missed && waits == 0)) {
        serve_stream_end(s->request);
        return false;
    }
    if (d->auth && ++s->age >= REVIEW_TICKS && !s->review) {
        s->age = 0;
        struct auth_ask *ask = auth_check(d->auth, serve_header(s->request, "Authorization"),
                                          s->namespace_, on_review, s);
        if (ask)
            s->review = ask;
    }
    s->missed |= waits > 0;
    return waits == 0;
}

static void add_marks(const struct dashboard *d, const struct entry *e)
{
    struct stream *s;
    json_t *marks = tell_marks_after(e, d->marked);
    if (json_array_size(marks) > 0) {
        const char *slash = strchr(e->key, '/');
        cleanup_json json_t *event = json_pack("{s:o, s:s, s:O}", "namespace",
                                               json_stringn(e->key, (size_t)(slash - e->key)),
                                               "name", slash + 1, "marks", marks);
        cleanup_free char *text = json_dumps(event, TELL_FLAGS);
        LIST_FOREACH(s, &d->streams, link)
        if (!s->missed && tell_is_of(e, s->namespace_))
            (void)!buf_printf(&s->marks, "event: marks\ndata: %s\n\n", text);
    }
    json_decref(marks);
}

/* Each row is made once, whoever is told it, and only where something may have changed. */
static void add_row(const struct dashboard *d, struct entry *e)
{
    struct stream *s;
    cleanup_json json_t *row = tell_row(e);
    cleanup_free char *text = json_dumps(row, TELL_FLAGS);
    uint64_t hash = hash_bytes(text, strlen(text));
    e->story->changed = false;
    if (hash == e->story->told)
        return;
    e->story->told = hash;
    LIST_FOREACH(s, &d->streams, link)
    if (!s->missed && tell_is_of(e, s->namespace_))
        add_item(&s->rows, text);
}

static char *gone_of(const struct dashboard *d, const struct stream *s)
{
    struct buf out;
    size_t i, len = s->namespace_ ? strlen(s->namespace_) : 0;
    const json_t *key;
    buf_init(&out, MAX_EVENT);
    json_array_foreach (d->gone, i, key) {
        const char *text = json_str(key);
        if (!len || (strncmp(text, s->namespace_, len) == 0 && text[len] == '/'))
            (void)!buf_printf(&out, "%s\"%s\"", out.len ? "," : "", text);
    }
    return buf_take(&out);
}

static void on_tick(uv_timer_t *timer)
{
    struct dashboard *d = timer->data;
    const struct controller *c = d->controller;
    struct stream *s;
    void *value;
    LIST_FOREACH(s, &d->streams, link)
    is_ready(s);
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (!e->story || !e->story->changed)
            continue;
        add_marks(d, e);
        add_row(d, e);
    }
    LIST_FOREACH(s, &d->streams, link)
    {
        cleanup_free char *gone = gone_of(d, s);
        if (!s->missed)
            send_stream(s, gone, false);
    }
    json_array_clear(d->gone);
    d->marked = timeline_last_mark(c->timeline);
}

static void open_stream(struct question *q)
{
    struct dashboard *d = q->dashboard;
    if (d->stream_count >= MAX_STREAMS) {
        reply_error(q->request, 503, "32 streams are open already: close one, or ask for mpas");
        return;
    }
    if (serve_is_head(q->request)) {
        struct serve_answer answer;
        serve_answer_init(&answer);
        answer.content_type = "text/event-stream";
        serve_reply(q->request, &answer);
        return;
    }
    struct stream *s = xcalloc(1, sizeof(*s));
    s->dashboard = d;
    s->request = q->request;
    s->namespace_ = xstrdup(q->namespace_);
    buf_init(&s->rows, MAX_EVENT);
    buf_init(&s->marks, MAX_EVENT);
    if (d->stream_count++ == 0) {
        d->marked = timeline_last_mark(d->controller->timeline);
        uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
    }
    LIST_INSERT_HEAD(&d->streams, s, link);
    serve_on_gone(q->request, on_stream_gone, s);
    serve_stream(q->request, "text/event-stream");
    send_all(s);
}

void dashboard_gone(struct dashboard *d, const char *key)
{
    if (d && d->stream_count > 0)
        json_array_append_new(d->gone, json_string(key));
}

/* --- life ------------------------------------------------------------------------------------ */
static void answer_page(void *arg, struct serve_answer *out)
{
    const struct controller *c = arg;
    size_t len;
    const char *html = page_html(&len);
    out->content_type = "text/html; charset=utf-8";
    out->headers = c->dashboard->headers;
    out->header_count = ARRAY_LEN(c->dashboard->headers);
    if (buf_append(&out->body, html, len) < 0)
        out->status = 500;
}

const struct serve_route dashboard_routes[DASHBOARD_ROUTES] = {
    {.path = "/", .answer = answer_page}, {.path = "/api/", .take = on_request}};

struct dashboard *dashboard_new(struct controller *c, uv_loop_t *loop)
{
    size_t len;
    struct dashboard *d = xcalloc(1, sizeof(*d));
    d->controller = c;
    d->policy = page_policy(page_html(&len));
    d->headers[0] = (struct serve_header){"Content-Security-Policy", d->policy};
    d->gone = json_array();
    if (c->options.dashboard == DASHBOARD_KUBERNETES)
        d->auth = auth_new(c->live->kube);
    LIST_INIT(&d->streams);
    uv_timer_init(loop, &d->tick);
    d->tick.data = d;
    return d;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The server is stopped before, so that no request is left. */
void dashboard_free(struct dashboard *d)
{
    if (d == NULL)
        return;
    auth_free(d->auth);
    json_decref(d->gone);
    free(d->policy);
    uv_close((uv_handle_t *)&d->tick, on_closed);
}
