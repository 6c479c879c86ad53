/* What we keep of workloads and of other people's autoscalers, in one block of memory each. */
#include "kube/internal.h"

#include <string.h>

#define MAX_NAME     253
#define MAX_SELECTOR 16384
#define MAX_TEMPLATE 4096 /* of what is kept of a pod's template */

static const char *text_at(const json_t *object, const char *key)
{
    return json_str(json_object_get(object, key));
}

/* --- selectors ------------------------------------------------------------------------------- */
struct requirement {
    const char *key;
    char *text;
};

static int by_key(const void *a, const void *b)
{
    const struct requirement *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : strcmp(x->text, y->text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "(d,e)", the values in order. */
static char *values_print(const json_t *values)
{
    size_t n = json_array_size(values);
    cleanup_free const char **sorted = xcalloc(n ? n : 1, sizeof(*sorted));
    cleanup_buf struct buf out;
    buf_init(&out, MAX_SELECTOR);
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_str(json_array_get(values, i));
    qsort(sorted, n, sizeof(*sorted), by_text);
    for (size_t i = 0; i < n; i++)
        if (buf_printf(&out, "%s%s", i ? "," : "(", sorted[i]) < 0)
            return NULL;
    return n > 0 && buf_puts(&out, ")") == 0 ? buf_take(&out) : NULL;
}

/* NULL when the expression is not one that Kubernetes knows. */
static char *expression_print(const json_t *expression)
{
    const char *key = text_at(expression, "key"), *op = text_at(expression, "operator");
    if (strcmp(op, "Exists") == 0)
        return xstrdup(key);
    if (strcmp(op, "DoesNotExist") == 0)
        return xasprintf("!%s", key);
    bool in = strcmp(op, "In") == 0;
    cleanup_free char *values = values_print(json_object_get(expression, "values"));
    if ((!in && strcmp(op, "NotIn") != 0) || !values)
        return NULL;
    return xasprintf("%s %s %s", key, in ? "in" : "notin", values);
}

/* Fills all, which has room; how many there are, or -1. */
static int requirements_of(const json_t *selector, struct requirement *all)
{
    const json_t *value;
    const char *key;
    int n = 0;
    size_t i;
    json_t *labels = json_object_get(selector, "matchLabels");
    json_object_foreach (labels, key, value)
        all[n++] = (struct requirement){key, xasprintf("%s=%s", key, json_str(value))};
    json_array_foreach (json_object_get(selector, "matchExpressions"), i, value) {
        char *text = expression_print(value);
        all[n++] = (struct requirement){text_at(value, "key"), text};
        if (!text) {
            while (n > 0)
                free(all[--n].text);
            return -1;
        }
    }
    return n;
}

char *kube_selector_print(const json_t *selector)
{
    size_t most = json_object_size(json_object_get(selector, "matchLabels")) +
                  json_array_size(json_object_get(selector, "matchExpressions"));
    if (!json_is_object(selector) || most > MAX_SELECTOR)
        return NULL;
    cleanup_free struct requirement *all = xcalloc(most + 1, sizeof(*all));
    cleanup_buf struct buf out;
    buf_init(&out, MAX_SELECTOR);
    int n = requirements_of(selector, all);
    bool whole = n >= 0;
    if (n > 0)
        qsort(all, (size_t)n, sizeof(*all), by_key);
    for (int i = 0; i < n; i++) {
        whole = whole && buf_printf(&out, "%s%s", i ? "," : "", all[i].text) == 0;
        free(all[i].text);
    }
    return whole ? buf_take(&out) : NULL;
}

/* --- one block -------------------------------------------------------------------------------
 * Copies a struct and the strings that it points to; at tells where in it the pointers are. Empty
 * strings become NULL. */
static void *packed(const void *from, size_t size, const size_t *at, size_t n, size_t headroom)
{
    size_t strings = 0;
    for (size_t i = 0; i < n; i++) {
        const char *text = *(char *const *)(const void *)((const char *)from + at[i]);
        strings += text && *text ? strlen(text) + 1 : 0;
    }
    char *block = xcalloc(1, headroom + size + strings);
    char *copy = block + headroom, *end = copy + size;
    memcpy(copy, from, size);
    for (size_t i = 0; i < n; i++) {
        char **slot = (char **)(void *)(copy + at[i]);
        *slot = *slot && **slot ? kube_pack(&end, *slot, strlen(*slot)) : NULL;
    }
    return copy;
}

/* The string of a JSON object as a field of a struct that is about to be packed. NULL, hence
 * absent, when it is longer than any name may be. */
static char *lent(const json_t *object, const char *key)
{
    const char *text = text_at(object, key);
    return strlen(text) <= MAX_NAME ? (char *)(uintptr_t)text : NULL;
}

static void copy_uid(char out[KUBE_UID_SIZE], const char *uid)
{
    if (strlen(uid) < KUBE_UID_SIZE)
        memcpy(out, uid, strlen(uid) + 1);
}

static int32_t count_of(const json_t *value, int32_t otherwise)
{
    json_int_t n = json_integer_value(value);
    return json_is_integer(value) && n >= 0 && n <= INT32_MAX ? (int32_t)n : otherwise;
}

/* As "NAME=MILLI,…": one string, as the block has them. NULL: none is requested. */
static char *template_cpu(const json_t *object)
{
    cleanup_buf struct buf out;
    const json_t *item;
    size_t i;
    buf_init(&out, MAX_TEMPLATE);
    json_array_foreach (json_path(object, "spec", "template", "spec", "containers", NULL), i,
                        item) {
        int64_t milli;
        const char *cpu = json_str(json_path(item, "resources", "requests", "cpu", NULL));
        if (quantity_parse_milli(cpu, &milli, NULL) == 0 && milli > 0 &&
            buf_printf(&out, "%s%s=%lld", out.len ? "," : "", text_at(item, "name"),
                       (long long)milli) < 0)
            break;
    }
    return buf_take(&out);
}

int64_t kube_workload_cpu(const struct kube_workload *w, const char *container)
{
    size_t len = strlen(container);
    for (const char *at = w->template_cpu; at && *at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, container, len) == 0 && at[len] == '=')
            return strtoll(at + len + 1, NULL, 10);
    }
    return -1;
}

struct kube_workload *kube_workload_project(const json_t *object,
                                            const struct kube_resource *resource, size_t headroom)
{
    static const size_t strings[] = {
        offsetof(struct kube_workload, kind),        offsetof(struct kube_workload, namespace_),
        offsetof(struct kube_workload, name),        offsetof(struct kube_workload, owner_kind),
        offsetof(struct kube_workload, owner_name),  offsetof(struct kube_workload, selector),
        offsetof(struct kube_workload, template_cpu)};
    const json_t *meta = json_object_get(object, "metadata");
    const json_t *owner = kube_controlling_owner(object);
    cleanup_free char *selector = kube_selector_print(json_path(object, "spec", "selector", NULL));
    cleanup_free char *cpu = template_cpu(object);
    struct kube_workload w = {
        .resource = resource,
        .kind = (char *)(uintptr_t)resource->kind,
        .namespace_ = lent(meta, "namespace"),
        .name = lent(meta, "name"),
        .owner_kind = lent(owner, "kind"),
        .owner_name = lent(owner, "name"),
        .replicas_wanted = count_of(json_path(object, "spec", "replicas", NULL), 1),
        .replicas = count_of(json_path(object, "status", "replicas", NULL), 0),
        .selector = selector,
        .template_cpu = cpu,
    };
    copy_uid(w.uid, kube_uid(object));
    copy_uid(w.owner_uid, text_at(owner, "uid"));
    if (!*w.uid || !w.name || !*w.name || !w.namespace_ || !*w.namespace_)
        return NULL;
    return packed(&w, sizeof(w), strings, ARRAY_LEN(strings), headroom);
}

/* KEDA acts through an HPA of its own: what the user knows is the ScaledObject behind it. */
static const json_t *keda_owner(const json_t *object)
{
    const json_t *owner;
    size_t i;
    json_array_foreach (json_path(object, "metadata", "ownerReferences", NULL), i, owner)
        if (strcmp(text_at(owner, "kind"), "ScaledObject") == 0 &&
            strncmp(text_at(owner, "apiVersion"), "keda.sh/", 8) == 0)
            return owner;
    return NULL;
}

static bool vpa_is_off(const json_t *object)
{
    const json_t *mode = json_path(object, "spec", "updatePolicy", "updateMode", NULL);
    return strcmp(json_str(mode), "Off") == 0;
}

struct kube_scaler *kube_scaler_project(const json_t *object, const char *kind, size_t headroom)
{
    static const size_t strings[] = {
        offsetof(struct kube_scaler, kind),        offsetof(struct kube_scaler, namespace_),
        offsetof(struct kube_scaler, name),        offsetof(struct kube_scaler, target_kind),
        offsetof(struct kube_scaler, target_name), offsetof(struct kube_scaler, owner_kind),
        offsetof(struct kube_scaler, owner_name)};
    const json_t *meta = json_object_get(object, "metadata");
    const json_t *owner = kube_controlling_owner(object), *keda = keda_owner(object);
    bool vertical = strcmp(kind, "VerticalPodAutoscaler") == 0;
    const json_t *target =
        json_path(object, "spec", vertical ? "targetRef" : "scaleTargetRef", NULL);
    struct kube_scaler s = {
        .kind = (char *)(uintptr_t)(keda ? "ScaledObject" : kind),
        .namespace_ = lent(meta, "namespace"),
        .name = keda ? lent(keda, "name") : lent(meta, "name"),
        .target_kind = lent(target, "kind"),
        .target_name = lent(target, "name"),
        .owner_kind = lent(owner, "kind"),
        .owner_name = lent(owner, "name"),
        .acts_on_replicas = !vertical,
        .acts_on_resources = vertical && !vpa_is_off(object),
    };
    if (s.target_kind && !*s.target_kind) /* KEDA's default */
        s.target_kind = (char *)(uintptr_t) "Deployment";
    if (!*kube_uid(object) || !s.namespace_ || !s.name || !*s.name || !s.target_kind ||
        !s.target_name || !*s.target_name)
        return NULL;
    return packed(&s, sizeof(s), strings, ARRAY_LEN(strings), headroom);
}
