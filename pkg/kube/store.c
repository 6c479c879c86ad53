/* The objects of one kind, watched: what a projector makes of each. */
#include "kube/internal.h"

#include <string.h>

struct place { /* a namespace, or all of them */
    struct kube_store *store;
    struct kube_watch *watch;
    uint32_t mark; /* of the latest list; objects of older ones are swept at its end */
    struct error trouble;
};

struct item {
    const struct place *place;
    uint32_t mark;
    char *uid;
    void *value;
};

struct kube_store {
    struct kube_store_spec spec;
    struct place *places;
    size_t place_count;
    struct map items; /* namespace/name → struct item */
};

static char *key_of(const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    return xasprintf("%s/%s", json_str(json_object_get(meta, "namespace")),
                     json_str(json_object_get(meta, "name")));
}

static void item_free(const struct kube_store *s, struct item *item)
{
    s->spec.free(item->value);
    free(item->uid);
    free(item);
}

/* The end of s may come inside: nothing of it is touched afterwards. */
static void tell_gone(const struct kube_store *s, struct item *item)
{
    struct kube_store_spec spec = s->spec;
    spec.listener.enter(spec.listener.arg);
    spec.on_change(spec.arg, item->value, true);
    item_free(&(struct kube_store){.spec = spec}, item);
    spec.listener.leave(spec.listener.arg);
}

static void put(struct place *place, const char *key, const json_t *object)
{
    struct kube_store *s = place->store;
    struct item *item = map_get(&s->items, key);
    void *value = s->spec.make(s->spec.arg, object, item ? item->value : NULL);
    if (!value)
        return;
    if (!item) {
        item = xcalloc(1, sizeof(*item));
        item->uid = xstrdup(kube_uid(object));
        map_put(&s->items, key, item);
    }
    item->value = value;
    item->place = place;
    item->mark = place->mark;
    const struct kube_listener listener = s->spec.listener;
    listener.enter(listener.arg);
    s->spec.on_change(s->spec.arg, value, false);
    listener.leave(listener.arg);
}

/* One that was deleted and made again has another uid, and nothing in common with the old one. */
static void on_object(void *arg, const json_t *object, bool deleted)
{
    struct place *place = arg;
    struct kube_store *s = place->store;
    cleanup_free char *key = key_of(object);
    struct item *old = map_get(&s->items, key);
    bool same = old && strcmp(old->uid, kube_uid(object)) == 0;
    if (deleted && same) {
        map_remove(&s->items, key);
        tell_gone(s, old);
    } else if (!deleted) {
        if (old && !same) {
            map_remove(&s->items, key);
            item_free(s, old);
        }
        put(place, key, object);
    }
}

static void on_list_begin(void *arg)
{
    struct place *place = arg;
    place->mark++;
}

static void on_list_end(void *arg)
{
    const struct place *place = arg;
    struct kube_store *s = place->store;
    const struct kube_listener listener = s->spec.listener;
    void *value;
    listener.enter(listener.arg);
    for (size_t i = 0; (i = map_next(&s->items, i, NULL, &value)) != 0;) {
        struct item *item = value;
        if (item->place != place || item->mark == place->mark)
            continue;
        i = map_remove_at(&s->items, i);
        s->spec.on_change(s->spec.arg, item->value, true);
        item_free(s, item);
    }
    listener.leave(listener.arg);
}

static void on_state(void *arg, const struct error *err)
{
    struct place *place = arg;
    place->trouble = err ? *err : (struct error){0};
}

static void watch_place(struct kube_store *s, struct place *place, const char *namespace_)
{
    const struct kube_resource *at = s->spec.resource;
    cleanup_free char *path =
        namespace_ ? xasprintf("%s/namespaces/%s/%s", at->path, namespace_, at->plural)
                   : xasprintf("%s/%s", at->path, at->plural);
    struct kube_watch_spec watch = {.path = path,
                                    .handler = {.on_object = on_object,
                                                .on_list_begin = on_list_begin,
                                                .on_list_end = on_list_end,
                                                .on_state = on_state},
                                    .arg = place};
    place->store = s;
    place->watch = kube_watch_start(s->spec.kube, &watch);
}

struct kube_store *kube_store_new(const struct kube_store_spec *spec)
{
    struct kube_store *s = xcalloc(1, sizeof(*s));
    size_t n = 0;
    s->spec = *spec;
    while (spec->namespaces[n])
        n++;
    s->place_count = n ? n : 1;
    s->places = xcalloc(s->place_count, sizeof(*s->places));
    for (size_t i = 0; i < s->place_count; i++)
        watch_place(s, &s->places[i], n ? spec->namespaces[i] : NULL);
    return s;
}

void kube_store_free(struct kube_store *s)
{
    void *value;
    if (!s)
        return;
    for (size_t i = 0; i < s->place_count; i++)
        kube_watch_stop(s->places[i].watch);
    for (size_t i = 0; (i = map_next(&s->items, i, NULL, &value)) != 0;)
        item_free(s, value);
    map_free(&s->items, NULL);
    free(s->places);
    free(s);
}

int kube_store_check(const struct kube_store *s, struct error *err)
{
    const struct kube_resource *at = s->spec.resource;
    bool synced = true;
    for (size_t i = 0; i < s->place_count; i++) {
        if (kube_watch_synced(s->places[i].watch))
            continue;
        synced = false;
        if (s->places[i].trouble.code) {
            *err = s->places[i].trouble;
            return error_prefix(err, "%s cannot be watched", at->plural);
        }
    }
    return synced
               ? 0
               : error_set(err, ERROR_BUSY, "%s %s is being looked up", at->api_version, at->kind);
}

void *kube_store_get(const struct kube_store *s, const char *namespace_, const char *name)
{
    cleanup_free char *key = xasprintf("%s/%s", namespace_, name);
    const struct item *item = map_get(&s->items, key);
    return item ? item->value : NULL;
}

void *kube_store_next(const struct kube_store *s, size_t *at)
{
    void *value;
    *at = map_next(&s->items, *at, NULL, &value);
    return *at ? ((const struct item *)value)->value : NULL;
}
