/* Events, as client-go's recorder makes them: the same words again about the same object count up
 * the event that is there, and no object gets more than a few. */
#include "kube/internal.h"

#include <stdio.h>
#include <string.h>

#define COMPONENT       "faasrl-mpa"
#define MAX_SAYINGS     4096
#define MAX_REMEMBERED  256 /* of those that are sent: a saying takes 5.5 KiB */
#define MAX_OBJECTS     4096
#define SAME_WITHIN_MS  (10 * 60 * 1000)
#define OBJECT_BURST    25.0
#define OBJECT_REFILL_S 300.0
#define OBJECT_SWEEP_MS 60000
#define MAX_MESSAGE     1024
#define MAX_REASON      128
#define MAX_OBJECT_NAME 230

/* One thing said about one object. */
struct saying {
    struct kube_node node;
    TAILQ_ENTRY(saying) recent;
    struct kube_events *events;
    char *key;
    char *namespace_, *name; /* of the event; the name is new each time it is created */
    json_t *body;
    int64_t said_ms; /* monotonic, the last time */
    int count, sent_count;
    bool sending, creating;
};

struct object_bucket {
    struct kube_node node;
    TAILQ_ENTRY(object_bucket) recent;
    char *key;
    double tokens;
    int64_t filled_ms;
};

struct kube_events {
    struct kube *kube;
    struct kube_index sayings, objects;
    TAILQ_HEAD(saying_list, saying) recent_sayings; /* the longest unheard first */
    TAILQ_HEAD(, object_bucket) recent_objects;
    int64_t swept_ms;
};

/* --- the bound per object --------------------------------------------------------------------- */
static void object_free(struct kube_events *events, struct object_bucket *o)
{
    kube_index_remove(&events->objects, &o->node);
    TAILQ_REMOVE(&events->recent_objects, o, recent);
    free(o->key);
    free(o);
}

static void object_refill(struct object_bucket *o, int64_t now_ms)
{
    o->tokens += (double)(now_ms - o->filled_ms) / 1000.0 / OBJECT_REFILL_S;
    if (o->tokens > OBJECT_BURST)
        o->tokens = OBJECT_BURST;
    o->filled_ms = now_ms;
}

/* A full bucket bounds no more than a new one would: objects that went, or have long been quiet,
 * take no memory. One that is still limited may be older than many that are not, so all are looked
 * at, once a minute. */
static void objects_sweep(struct kube_events *events, int64_t now_ms)
{
    if (now_ms - events->swept_ms < OBJECT_SWEEP_MS)
        return;
    events->swept_ms = now_ms;
    struct object_bucket *o = TAILQ_FIRST(&events->recent_objects), *next;
    for (; o; o = next) {
        next = TAILQ_NEXT(o, recent);
        object_refill(o, now_ms);
        if (o->tokens >= OBJECT_BURST)
            object_free(events, o);
    }
}

static struct object_bucket *object_find(struct kube_events *events, const char *key)
{
    uint64_t hash = kube_hash(key, NULL);
    struct kube_node *node = kube_index_first(&events->objects, hash);
    for (; node; node = kube_index_next(node)) {
        struct object_bucket *o = (struct object_bucket *)(void *)node; /* its first field */
        if (strcmp(o->key, key) == 0)
            return o;
    }
    if (events->objects.count >= MAX_OBJECTS)
        object_free(events, TAILQ_FIRST(&events->recent_objects));
    struct object_bucket *o = xcalloc(1, sizeof(*o));
    o->key = xstrdup(key);
    o->tokens = OBJECT_BURST;
    o->filled_ms = clock_mono_ms();
    kube_index_add(&events->objects, &o->node, hash);
    TAILQ_INSERT_TAIL(&events->recent_objects, o, recent);
    return o;
}

static bool object_may(struct kube_events *events, const struct kube_event *e)
{
    cleanup_free char *key =
        xasprintf("%s/%s/%s/%s", e->kind ? e->kind : "", e->namespace_ ? e->namespace_ : "",
                  e->name ? e->name : "", e->uid ? e->uid : "");
    int64_t now_ms = clock_mono_ms();
    objects_sweep(events, now_ms);
    struct object_bucket *o = object_find(events, key);
    object_refill(o, now_ms);
    TAILQ_REMOVE(&events->recent_objects, o, recent);
    TAILQ_INSERT_TAIL(&events->recent_objects, o, recent);
    if (o->tokens < 1)
        return false;
    o->tokens -= 1;
    return true;
}

/* --- what is sent ----------------------------------------------------------------------------- */
/* A JSON string of at most max bytes, with no cut through a character. */
static json_t *text(const char *s, size_t max)
{
    size_t len = strnlen(s ? s : "", max + 1);
    if (len > max)
        for (len = max; len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80;)
            len--;
    json_t *value = json_stringn(s ? s : "", len);
    return value ? value : json_string("(not UTF-8)");
}

static json_t *body_new(const struct kube_event *e)
{
    return json_pack("{s:s, s:s, s:{s:o, s:o, s:o, s:o, s:o}, s:o, s:o, s:s, s:{s:s}, s:s, s:s}",
                     "apiVersion", "v1", "kind", "Event", "involvedObject", "apiVersion",
                     text(e->api_version, MAX_REASON), "kind", text(e->kind, MAX_REASON),
                     "namespace", text(e->namespace_, MAX_REASON), "name",
                     text(e->name, MAX_MESSAGE), "uid", text(e->uid, MAX_REASON), "reason",
                     text(e->reason, MAX_REASON), "message", text(e->message, MAX_MESSAGE), "type",
                     e->warning ? "Warning" : "Normal", "source", "component", COMPONENT,
                     "reportingComponent", COMPONENT, "reportingInstance", "");
}

static void new_name(struct saying *s)
{
    const char *object = json_str(json_path(s->body, "involvedObject", "name", NULL));
    uint64_t unique =
        (uint64_t)(kube_random() * 4294967296.0) << 32 | (uint64_t)(kube_random() * 4294967296.0);
    free(s->name);
    s->name = xasprintf("%.*s.%016llx", MAX_OBJECT_NAME, object, (unsigned long long)unique);
}

static void saying_free(struct saying *s)
{
    kube_index_remove(&s->events->sayings, &s->node);
    TAILQ_REMOVE(&s->events->recent_sayings, s, recent);
    json_decref(s->body);
    free(s->namespace_);
    free(s->name);
    free(s->key);
    free(s);
}

/* Makes room by forgetting what was not said for longest; false when all are being sent. */
static bool make_room(struct kube_events *events, size_t most)
{
    if (events->sayings.count < most)
        return true;
    struct saying *s;
    TAILQ_FOREACH(s, &events->recent_sayings, recent)
    {
        if (!s->sending) {
            saying_free(s);
            return true;
        }
    }
    return false;
}

static void saying_on_done(void *arg, const struct kube_response *response);

static void saying_send(struct saying *s)
{
    char now[RFC3339_SIZE];
    time_format(clock_wall_ms(), now);
    if (s->creating) {
        new_name(s);
        json_object_set_new(s->body, "metadata",
                            json_pack("{s:s, s:s}", "name", s->name, "namespace", s->namespace_));
        if (!json_object_get(s->body, "firstTimestamp"))
            json_object_set_new(s->body, "firstTimestamp", json_string(now));
    }
    json_object_set_new(s->body, "lastTimestamp", json_string(now));
    json_object_set_new(s->body, "count", json_integer(s->count));
    cleanup_json json_t *patch = json_pack("{s:i, s:s}", "count", s->count, "lastTimestamp", now);
    cleanup_free char *path = xasprintf("/api/v1/namespaces/%s/events%s%s", s->namespace_,
                                        s->creating ? "" : "/", s->creating ? "" : s->name);
    s->sent_count = s->count;
    s->sending = true;
    kube_send(s->events->kube, &(struct kube_request){.method = s->creating ? "POST" : NULL,
                                                      .patch = s->creating ? 0 : KUBE_PATCH_MERGE,
                                                      .path = path,
                                                      .body = s->creating ? s->body : patch,
                                                      .on_done = saying_on_done,
                                                      .arg = s});
}

static void saying_on_done(void *arg, const struct kube_response *response)
{
    struct saying *s = arg;
    s->sending = false;
    if (response->error.code == ERROR_CANCELLED)
        return; /* kube_events_free comes next */
    if (response->error.code == ERROR_NOT_FOUND && !s->creating) {
        s->creating = true; /* it went in the meantime */
        saying_send(s);
    } else if (response->error.code != ERROR_NONE) {
        log_debug("event not sent", log_str("event", s->name),
                  log_str("error", response->error.message));
        saying_free(s);
    } else {
        s->creating = false;
        if (s->sent_count != s->count)
            saying_send(s);
        make_room(s->events, MAX_REMEMBERED); /* it may be this one that goes */
    }
}

/* --- saying ----------------------------------------------------------------------------------- */
static struct saying *saying_find(struct kube_events *events, const char *key, uint64_t hash)
{
    struct kube_node *node = kube_index_first(&events->sayings, hash);
    for (; node; node = kube_index_next(node)) {
        struct saying *s = (struct saying *)(void *)node; /* its first field */
        if (strcmp(s->key, key) == 0)
            return s;
    }
    return NULL;
}

static struct saying *saying_new(struct kube_events *events, const struct kube_event *e,
                                 const char *key, uint64_t hash)
{
    struct saying *s = xcalloc(1, sizeof(*s));
    bool namespaced = e->namespace_ && *e->namespace_;
    s->events = events;
    s->key = xstrdup(key);
    s->namespace_ = xstrdup(namespaced ? e->namespace_ : "default");
    s->body = body_new(e);
    s->creating = true;
    kube_index_add(&events->sayings, &s->node, hash);
    TAILQ_INSERT_TAIL(&events->recent_sayings, s, recent);
    return s;
}

static struct kube_events *events_of(struct kube *kube)
{
    struct kube_events **slot = kube_events_slot(kube);
    if (!*slot) {
        *slot = xcalloc(1, sizeof(**slot));
        (*slot)->kube = kube;
        TAILQ_INIT(&(*slot)->recent_sayings);
        TAILQ_INIT(&(*slot)->recent_objects);
    }
    return *slot;
}

void kube_event_send(struct kube *kube, const struct kube_event *event)
{
    struct kube_events *events = events_of(kube);
    int64_t now_ms = clock_mono_ms();
    if (!object_may(events, event))
        return;
    cleanup_free char *key =
        xasprintf("%s/%s/%s/%d/%s/%.*s", event->uid ? event->uid : "",
                  event->namespace_ ? event->namespace_ : "", event->name ? event->name : "",
                  event->warning, event->reason, MAX_MESSAGE, event->message);
    uint64_t hash = kube_hash(key, NULL);
    struct saying *s = saying_find(events, key, hash);
    if (s && !s->sending && now_ms - s->said_ms > SAME_WITHIN_MS) {
        saying_free(s);
        s = NULL;
    }
    if (!s && make_room(events, MAX_SAYINGS))
        s = saying_new(events, event, key, hash);
    if (!s)
        return;
    s->count++;
    s->said_ms = now_ms;
    TAILQ_REMOVE(&events->recent_sayings, s, recent);
    TAILQ_INSERT_TAIL(&events->recent_sayings, s, recent);
    if (!s->sending)
        saying_send(s);
}

size_t kube_events_objects(struct kube *kube)
{
    return events_of(kube)->objects.count;
}

void kube_events_free(struct kube_events *events)
{
    if (!events)
        return;
    while (!TAILQ_EMPTY(&events->recent_sayings))
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed one is off the list */
        saying_free(TAILQ_FIRST(&events->recent_sayings));
    while (!TAILQ_EMPTY(&events->recent_objects))
        object_free(events, TAILQ_FIRST(&events->recent_objects));
    kube_index_free(&events->sayings);
    kube_index_free(&events->objects);
    free(events);
}
