/* Any objects as Knative's Services, Configurations, Revisions, PodAutoscalers and
 * ServerlessServices, one JSON object a line ("-" before it deletes it), through every projection:
 * shares and numbers of pods stay within what they can be, what is told of a target is what its
 * Revisions come to, and texts are those of the objects. */
#include "kube/internal.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_STORES 5
#define MAX_LINES  64

struct kube_store {
    struct kube_store_spec spec;
    struct map values; /* namespace/name → what was made of it */
};

static struct kube_store *stores[MAX_STORES];
static size_t store_count;
static unsigned read_bytes; /* so that every text is read to its end */

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void read_text(const char *text)
{
    read_bytes += (unsigned)strlen(text);
}

/* --- in place of store.c, without a server ------------------------------------------------------
 */
struct kube_store *kube_store_new(const struct kube_store_spec *spec)
{
    check(store_count < MAX_STORES);
    struct kube_store *s = xcalloc(1, sizeof(*s));
    s->spec = *spec;
    stores[store_count++] = s;
    return s;
}

void kube_store_free(struct kube_store *s)
{
    if (s)
        map_free(&s->values, s->spec.free);
    free(s);
}

int kube_store_check(const struct kube_store *store, struct error *err)
{
    (void)store, (void)err;
    return 0;
}

void *kube_store_get(const struct kube_store *s, const char *namespace_, const char *name)
{
    cleanup_free char *key = xasprintf("%s/%s", namespace_, name);
    return s ? map_get(&s->values, key) : NULL;
}

void *kube_store_next(const struct kube_store *s, size_t *at)
{
    const char *key;
    void *value;
    *at = map_next(&s->values, *at, &key, &value);
    return *at ? value : NULL;
}

static void put(struct kube_store *s, const json_t *object, bool deleted)
{
    const json_t *meta = json_object_get(object, "metadata");
    cleanup_free char *key = xasprintf("%s/%s", json_str(json_object_get(meta, "namespace")),
                                       json_str(json_object_get(meta, "name")));
    void *value = map_get(&s->values, key);
    if (!deleted) {
        value = s->spec.make(s->spec.arg, object, value);
        check(value != NULL);
        map_put(&s->values, key, value);
        s->spec.on_change(s->spec.arg, value, false);
    } else if (value) {
        map_remove(&s->values, key);
        s->spec.on_change(s->spec.arg, value, true);
        s->spec.free(value);
    }
}

/* --- what is told ------------------------------------------------------------------------------
 */
static void check_count(int32_t count)
{
    check(count >= -1); /* unknown, or not set */
}

static void check_revision(const struct kube_revision *r)
{
    check(r->percent >= 0 && r->percent <= 100 && r->actual >= 0 && *r->class);
    check_count(r->min_scale);
    check_count(r->max_scale);
    check_count(r->own_min);
    check_count(r->own_max);
    check_count(r->desired);
    check(r->ours == (strcmp(r->class, KUBE_OUR_CLASS) == 0) && strlen(r->uid) < KUBE_UID_SIZE);
    read_text(r->namespace_);
    read_text(r->name);
}

static void check_owned(const struct kube_owned *o, const char *revision_uid)
{
    const char *const texts[] = {
        o->namespace_, o->name,        o->uid,       o->protocol,
        o->deployment, o->sks.service, revision_uid, o->sks.metrics_service};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        read_text(texts[i]);
    check_count(o->min_scale);
    check_count(o->max_scale);
    check_count(o->initial_scale);
    check_count(o->activation_scale);
    check_count(o->desired);
    check(o->window_ms >= -1 && o->retention_ms >= -1 && o->deadline_ms >= -1);
    check(!(o->sks.exists && o->sks.foreign) && !(o->sks.ready && !o->sks.exists));
    check(!o->sks.proxied || (o->sks.exists && !o->sks.serves));
}

static void check_target(struct kube_knative *k, const char *kind, const char *namespace_,
                         const char *name)
{
    struct kube_revision all[KUBE_MAX_REVISIONS];
    struct kube_template template;
    struct error err = {0};
    int64_t actual = 0;
    const struct kube_target wanted = {KUBE_KNATIVE, kind, namespace_, name, NULL};
    const struct kube_workload *w = kube_knative_find(k, &wanted, &err);
    if (!w) {
        check(err.code != ERROR_NONE && err.message[0]);
        return;
    }
    check(strcmp(w->name, name) == 0 && strcmp(w->namespace_, namespace_) == 0);
    check(w->replicas >= 0 && w->replicas_wanted >= 0);
    size_t count = kube_knative_revisions(k, w, all);
    check(count > 0 && count <= KUBE_MAX_REVISIONS);
    for (size_t i = 0; i < count; i++) {
        check_revision(&all[i]);
        actual += all[i].percent > 0 ? all[i].actual : 0;
        check(kube_knative_uid(k, all[i].uid) != NULL);
    }
    check(w->replicas == (actual < INT32_MAX ? actual : INT32_MAX));
    if (kube_knative_template(k, w, &template))
        check(strcmp(template.name, name) == 0 && !(template.made && template.ours));
}

static void check_all(struct kube_knative *k)
{
    struct kube_owned owned, again;
    struct kube_template template;
    const char *uid;
    for (size_t at = 0; kube_knative_owned(k, &at, &owned, &uid);) {
        struct kube_revision r = {.namespace_ = owned.namespace_, .name = owned.name};
        check_owned(&owned, uid);
        check(kube_knative_owned_one(k, &r, &again, &uid) && again.name == owned.name);
    }
    for (size_t at = 0; kube_knative_our_templates(k, &at, &template);)
        check(template.ours && !template.made);
}

/* --- the objects -------------------------------------------------------------------------------
 */
static void ignore_workload(void *arg, const struct kube_workload *w, bool deleted)
{
    (void)arg, (void)deleted;
    read_text(w->name);
}

static void ignore(void *arg)
{
    (void)arg;
}

static void take(struct kube_knative *k, const char *line)
{
    bool deleted = *line == '-';
    cleanup_json json_t *object = json_loads(line + deleted, 0, NULL);
    const char *kind = json_str(json_object_get(object, "kind"));
    const json_t *meta = json_object_get(object, "metadata");
    for (size_t i = 0; i < store_count; i++)
        if (strcmp(stores[i]->spec.resource->kind, kind) == 0)
            put(stores[i], object, deleted);
    check_target(k, kind, json_str(json_object_get(meta, "namespace")),
                 json_str(json_object_get(meta, "name")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {"Service", "Configuration", "Revision"};
    static char *const everywhere[] = {NULL};
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    char *rest = text, *line;
    store_count = 0;
    struct kube_knative *k = kube_knative_new(
        NULL, everywhere, &(struct kube_listener){ignore, ignore, ignore_workload, ignore, NULL});
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) /* now all are followed */
        check_target(k, kinds[i], "shop", "web");
    for (int i = 0; i < MAX_LINES && (line = strsep(&rest, "\n")); i++) {
        take(k, line);
        check_all(k);
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        check_target(k, kinds[i], "shop", "web");
    kube_knative_free(k);
    return 0;
}
