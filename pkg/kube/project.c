/* What we keep of a pod. The whole of it is one block of memory: a cluster has many pods. */
#include "kube/internal.h"

#include <string.h>

#define MAX_CONTAINERS 256
#define MAX_NAME       253
#define MAX_MESSAGE    256
#define FIRST_WORD_MS  5000

const char *kube_uid(const json_t *object)
{
    const char *uid = json_str(json_path(object, "metadata", "uid", NULL));
    return strlen(uid) < KUBE_UID_SIZE ? uid : "";
}

static int64_t time_of(const json_t *value)
{
    int64_t ms;
    return json_is_string(value) && time_parse(json_string_value(value), &ms) == 0 ? ms : 0;
}

static bool text_is(const json_t *value, const char *text)
{
    return strcmp(json_str(value), text) == 0;
}

/* --- amounts ---------------------------------------------------------------------------------- */
static const struct kube_amounts none = {KUBE_ABSENT, KUBE_ABSENT};

static struct kube_amounts amounts_of(const json_t *list)
{
    struct kube_amounts a = none;
    struct error ignored;
    const json_t *cpu = json_object_get(list, "cpu"), *memory = json_object_get(list, "memory");
    if (json_is_string(cpu))
        quantity_parse_milli(json_string_value(cpu), &a.cpu_milli, &ignored);
    if (json_is_string(memory))
        quantity_parse_value(json_string_value(memory), &a.memory_bytes, &ignored);
    return a;
}

/* --- quality of service, where the status does not tell it (yet) ---------------------------------
 * As the kubelet counts: only amounts above zero, over all containers. */
struct qos_count {
    bool any, guaranteed;
};

static void qos_add(struct qos_count *count, int64_t request, int64_t limit)
{
    if (request > 0 || limit > 0)
        count->any = true;
    if (limit <= 0 || (request > 0 && request != limit))
        count->guaranteed = false;
}

static void qos_add_containers(struct qos_count *count, const json_t *containers)
{
    const json_t *container;
    size_t i;
    json_array_foreach (containers, i, container) {
        struct kube_amounts r = amounts_of(json_path(container, "resources", "requests", NULL));
        struct kube_amounts l = amounts_of(json_path(container, "resources", "limits", NULL));
        qos_add(count, r.cpu_milli, l.cpu_milli);
        qos_add(count, r.memory_bytes, l.memory_bytes);
    }
}

static enum kube_qos qos_of(const json_t *object)
{
    const json_t *class = json_path(object, "status", "qosClass", NULL);
    if (text_is(class, "Guaranteed"))
        return KUBE_QOS_GUARANTEED;
    if (text_is(class, "Burstable"))
        return KUBE_QOS_BURSTABLE;
    if (text_is(class, "BestEffort"))
        return KUBE_QOS_BEST_EFFORT;
    struct qos_count count = {.guaranteed = true};
    qos_add_containers(&count, json_path(object, "spec", "containers", NULL));
    qos_add_containers(&count, json_path(object, "spec", "initContainers", NULL));
    if (!count.any)
        return KUBE_QOS_BEST_EFFORT;
    return count.guaranteed ? KUBE_QOS_GUARANTEED : KUBE_QOS_BURSTABLE;
}

/* --- conditions ------------------------------------------------------------------------------ */
static const json_t *condition_of(const json_t *object, const char *type)
{
    const json_t *condition;
    size_t i;
    json_array_foreach (json_path(object, "status", "conditions", NULL), i, condition)
        if (text_is(json_object_get(condition, "type"), type))
            return condition;
    return NULL;
}

static bool condition_true(const json_t *condition)
{
    return text_is(json_object_get(condition, "status"), "True");
}

/* A resize that waits is told before one under way: it is the newer one. */
static enum kube_resize resize_of(const json_t *object, const char **message)
{
    const json_t *pending = condition_of(object, "PodResizePending");
    if (condition_true(pending)) {
        *message = json_str(json_object_get(pending, "message"));
        return text_is(json_object_get(pending, "reason"), "Infeasible") ? KUBE_RESIZE_INFEASIBLE
                                                                         : KUBE_RESIZE_DEFERRED;
    }
    const json_t *running = condition_of(object, "PodResizeInProgress");
    if (condition_true(running)) {
        *message = json_str(json_object_get(running, "message"));
        return text_is(json_object_get(running, "reason"), "Error") ? KUBE_RESIZE_ERROR
                                                                    : KUBE_RESIZE_IN_PROGRESS;
    }
    return KUBE_RESIZE_NONE;
}

static enum kube_phase phase_of(const json_t *object)
{
    const json_t *phase = json_path(object, "status", "phase", NULL);
    if (text_is(phase, "Running"))
        return KUBE_RUNNING;
    if (text_is(phase, "Succeeded") || text_is(phase, "Failed"))
        return KUBE_FINISHED;
    return KUBE_PENDING;
}

const json_t *kube_controlling_owner(const json_t *object)
{
    const json_t *owner;
    size_t i;
    json_array_foreach (json_path(object, "metadata", "ownerReferences", NULL), i, owner)
        if (json_is_true(json_object_get(owner, "controller")))
            return owner;
    return NULL;
}

/* --- containers ------------------------------------------------------------------------------ */
static bool resize_restarts(const json_t *container, const char *resource)
{
    const json_t *policy;
    size_t i;
    json_array_foreach (json_object_get(container, "resizePolicy"), i, policy)
        if (text_is(json_object_get(policy, "resourceName"), resource))
            return text_is(json_object_get(policy, "restartPolicy"), "RestartContainer");
    return false;
}

static bool has_port(const json_t *container, const char *name)
{
    const json_t *port;
    size_t i;
    json_array_foreach (json_object_get(container, "ports"), i, port)
        if (text_is(json_object_get(port, "name"), name))
            return true;
    return false;
}

static const json_t *status_of(const json_t *object, const char *name)
{
    const json_t *status;
    size_t i;
    json_array_foreach (json_path(object, "status", "containerStatuses", NULL), i, status)
        if (text_is(json_object_get(status, "name"), name))
            return status;
    return NULL;
}

static void container_read(struct kube_container *c, const json_t *object, const json_t *container)
{
    const json_t *status = status_of(object, c->name);
    const json_t *resources = json_object_get(status, "resources");
    const json_t *allocated = json_object_get(status, "allocatedResources");
    c->requests = amounts_of(json_path(container, "resources", "requests", NULL));
    c->limits = amounts_of(json_path(container, "resources", "limits", NULL));
    c->actual_requests = c->requests;
    c->actual_limits = c->limits;
    if (json_object_size(resources) > 0) {
        c->actual_requests = amounts_of(json_object_get(resources, "requests"));
        c->actual_limits = amounts_of(json_object_get(resources, "limits"));
    } else if (json_object_size(allocated) > 0) { /* a container that does not run yet */
        c->actual_requests = amounts_of(allocated);
    }
    json_int_t restarts = json_integer_value(json_object_get(status, "restartCount"));
    c->restarts = restarts >= 0 && restarts <= INT32_MAX ? (int32_t)restarts : 0;
    c->cpu_resize_restarts = resize_restarts(container, "cpu");
    c->memory_resize_restarts = resize_restarts(container, "memory");
    c->serves = has_port(container, "user-port");
}

/* --- OpenWhisk ---------------------------------------------------------------------------------
 */
static const char *label_of(const json_t *object, const char *key)
{
    const char *text = json_str(json_path(object, "metadata", "labels", key, NULL));
    return strlen(text) <= MAX_NAME ? text : "";
}

/* OpenWhisk's pods belong to nobody: one that has an owner only bears the label. */
static bool is_action_pod(const json_t *object)
{
    return strcmp(label_of(object, "user-action-pod"), "true") == 0 &&
           !kube_controlling_owner(object);
}

struct action_labels {
    const char *invoker, *namespace_, *action;
};

static struct action_labels action_labels(const json_t *object)
{
    return (struct action_labels){label_of(object, "invoker"),
                                  label_of(object, "openwhisk/namespace"),
                                  label_of(object, "openwhisk/action")};
}

static size_t action_size(const struct action_labels *l)
{
    return sizeof(struct kube_action_pod) + strlen(l->invoker) + 1 + strlen(l->namespace_) + 1 +
           strlen(l->action) + 1;
}

static void action_read(struct kube_action_pod *out, const struct action_labels *l, char **at)
{
    bool told = *l->namespace_ && *l->action;
    out->invoker = kube_pack(at, l->invoker, strlen(l->invoker));
    out->namespace_ = told ? kube_pack(at, l->namespace_, strlen(l->namespace_)) : NULL;
    out->action = told ? kube_pack(at, l->action, strlen(l->action)) : NULL;
}

/* --- one block ------------------------------------------------------------------------------- */
char *kube_pack(char **at, const char *text, size_t len)
{
    char *copy = *at;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

/* At most MAX_MESSAGE bytes and no cut through a character. */
static size_t message_len(const char *message)
{
    size_t len = strnlen(message, MAX_MESSAGE + 1);
    if (len > MAX_MESSAGE)
        for (len = MAX_MESSAGE; len > 0 && ((unsigned char)message[len] & 0xc0) == 0x80;)
            len--;
    return len;
}

static size_t names_size(const json_t *containers, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size +=
            strnlen(json_str(json_path(json_array_get(containers, i), "name", NULL)), MAX_NAME) + 1;
    return size;
}

static void pod_read(struct kube_pod *pod, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    const json_t *ready = condition_of(object, "Ready");
    const char *owner = json_str(json_object_get(kube_controlling_owner(object), "uid"));
    memcpy(pod->uid, kube_uid(object), strlen(kube_uid(object)) + 1);
    if (strlen(owner) < KUBE_UID_SIZE)
        memcpy(pod->owner_uid, owner, strlen(owner) + 1);
    pod->created_ms = time_of(json_object_get(meta, "creationTimestamp"));
    pod->started_ms = time_of(json_path(object, "status", "startTime", NULL));
    pod->ready = condition_true(ready);
    pod->ready_changed_ms = time_of(json_object_get(ready, "lastTransitionTime"));
    pod->deleting = json_is_string(json_object_get(meta, "deletionTimestamp"));
    pod->phase = phase_of(object);
    pod->qos = qos_of(object);
}

struct kube_pod *kube_pod_project(const json_t *object, size_t headroom)
{
    const char *namespace_ = json_str(json_path(object, "metadata", "namespace", NULL));
    const char *name = json_str(json_path(object, "metadata", "name", NULL));
    const json_t *containers = json_path(object, "spec", "containers", NULL);
    size_t count = json_array_size(containers);
    if (!*kube_uid(object) || !*name || strlen(name) > MAX_NAME || strlen(namespace_) > MAX_NAME)
        return NULL;
    if (count > MAX_CONTAINERS)
        count = MAX_CONTAINERS;
    const char *message = "";
    enum kube_resize resize = resize_of(object, &message);
    size_t said = message_len(message);
    bool action = is_action_pod(object);
    struct action_labels labels = {0};
    if (action)
        labels = action_labels(object);
    size_t fixed = headroom + sizeof(struct kube_pod) + count * sizeof(struct kube_container);
    char *block = xcalloc(1, fixed + strlen(namespace_) + 1 + strlen(name) + 1 +
                                 names_size(containers, count) + (said ? said + 1 : 0) +
                                 (action ? action_size(&labels) : 0));
    struct kube_pod *pod = (struct kube_pod *)(void *)(block + headroom);
    char *at = block + fixed;

    if (action) {
        pod->openwhisk = (struct kube_action_pod *)(void *)at;
        at += sizeof(*pod->openwhisk);
        action_read(pod->openwhisk, &labels, &at);
    }
    pod_read(pod, object);
    pod->resize = resize;
    pod->namespace_ = kube_pack(&at, namespace_, strlen(namespace_));
    pod->name = kube_pack(&at, name, strlen(name));
    pod->resize_message = said ? kube_pack(&at, message, said) : NULL;
    pod->container_count = (uint16_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *container = json_array_get(containers, i);
        const char *text = json_str(json_object_get(container, "name"));
        pod->containers[i].name = kube_pack(&at, text, strnlen(text, MAX_NAME));
        container_read(&pod->containers[i], object, container);
    }
    return pod;
}

struct kube_pod *kube_pod_from_json(const json_t *object)
{
    return kube_pod_project(object, 0);
}

bool kube_pod_is_taken(const struct kube_pod *pod)
{
    return pod->started_ms > 0 || pod->phase == KUBE_RUNNING;
}

/* The kubelet says that a pod is not ready when it takes it, and then no more until it is. */
bool kube_pod_starts(const struct kube_pod *pod, int64_t longer_ms)
{
    if (pod->ready)
        return clock_since_ms(pod->ready_changed_ms) < longer_ms;
    return pod->ready_changed_ms - pod->started_ms < FIRST_WORD_MS;
}

void kube_pod_free(struct kube_pod *pod)
{
    free(pod);
}
