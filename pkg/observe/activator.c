/* Asks Knative's activators, pod by pod, for whom they hold requests. */
#include "observe/observe.h"

#include <string.h>

#define PODS     "/api/v1/namespaces/knative-serving/pods"
#define SELECTOR "app=activator"
#define PORT     9090 /* unless it says otherwise */
#define EVERY_MS 1000
#define WAIT_MS  3000
#define MAX_BODY (8 << 20)
#define MAX_NAME 254

/* Requests at the activator, by Revision, in the names of Knative 1.19 and newer (those that are
 * queued and active from 1.22 on) and of older ones. What exports the former adds their unit,
 * {request}, to the name, unless it is told not to. */
#define UNIT "__request_"
static const struct gauge {
    const char *name, *namespace_, *revision;
} gauges[] = {
    {"kn_revision_request_concurrency" UNIT, "k8s_namespace_name", "kn_revision_name"},
    {"kn_revision_request_queued" UNIT, "k8s_namespace_name", "kn_revision_name"},
    {"kn_revision_request_active" UNIT, "k8s_namespace_name", "kn_revision_name"},
    {"kn_revision_request_concurrency", "k8s_namespace_name", "kn_revision_name"},
    {"kn_revision_request_queued", "k8s_namespace_name", "kn_revision_name"},
    {"kn_revision_request_active", "k8s_namespace_name", "kn_revision_name"},
    {"activator_request_concurrency", "namespace_name", "revision_name"},
};

struct pod {
    struct observe_activators *all;
    char *address; /* NULL: it cannot be asked yet */
    int port;
    bool ready;
    struct http_call *call; /* NULL: none under way */
    int64_t read_ms;        /* monotonic, 0: never */
    struct map held;        /* namespace/revision → "": requests wait */
    uint64_t mark;          /* of the list that it was in last */
};

struct observe_activators {
    struct kube *kube;
    struct http *http;
    struct kube_watch *watch; /* NULL: nobody has listened yet */
    uv_timer_t timer;
    struct map pods; /* name → struct pod */
    uint64_t mark;
    int64_t heard_ms; /* monotonic: all were read, or listening began */
    bool listening;
    struct error trouble; /* the last; ERROR_NONE: there was none since all were read */
    void (*on_read)(void *arg);
    void *arg;
};

static void pod_free(void *value)
{
    struct pod *pod = value;
    if (pod->call)
        http_cancel(pod->call);
    map_free(&pod->held, NULL);
    free(pod->address);
    free(pod);
}

/* --- reading ---------------------------------------------------------------------------------- */
static void on_sample(void *arg, const struct prom_exposed *sample)
{
    struct pod *pod = arg;
    static char held[] = "";
    char namespace_[MAX_NAME], revision[MAX_NAME];
    for (size_t i = 0; i < ARRAY_LEN(gauges) && sample->value > 0; i++) {
        if (!prom_exposed_is(sample, gauges[i].name))
            continue;
        prom_exposed_label(sample, gauges[i].namespace_, namespace_, sizeof(namespace_));
        prom_exposed_label(sample, gauges[i].revision, revision, sizeof(revision));
        cleanup_free char *key = xasprintf("%s/%s", namespace_, revision);
        map_put(&pod->held, key, held);
    }
}

/* Of those that take requests. One that does not answer may hold some that nobody knows of. */
static bool all_are_read(const struct observe_activators *a, int64_t since_ms)
{
    bool any = false;
    void *value;
    for (size_t i = 0; (i = map_next(&a->pods, i, NULL, &value)) != 0;) {
        const struct pod *pod = value;
        if (pod->ready && pod->read_ms < since_ms)
            return false;
        any |= pod->ready;
    }
    return any;
}

static void on_answer(void *arg, const struct http_response *response)
{
    struct pod *pod = arg;
    struct observe_activators *a = pod->all;
    struct error err = response->error;
    pod->call = NULL;
    map_free(&pod->held, NULL);
    pod->held = (struct map){0};
    if (!err.code && response->status != 200)
        error_set(&err, ERROR_UNAVAILABLE, "HTTP status %d", response->status);
    if (err.code || prom_expose(response->body, response->body_len, on_sample, pod, &err) < 0) {
        a->trouble = err;
        error_prefix(&a->trouble, "http://%s:%d/metrics", pod->address, pod->port);
        return;
    }
    pod->read_ms = clock_mono_ms();
    if (all_are_read(a, pod->read_ms - WAIT_MS)) {
        a->heard_ms = pod->read_ms;
        a->trouble = (struct error){0};
    }
    a->on_read(a->arg);
}

static void ask(struct pod *pod)
{
    struct error err;
    bool v6 = strchr(pod->address, ':') != NULL;
    cleanup_free char *url = xasprintf("http://%s%s%s:%d/metrics", v6 ? "[" : "", pod->address,
                                       v6 ? "]" : "", pod->port);
    pod->call = http_send(pod->all->http,
                          &(struct http_request){.url = url,
                                                 .accept = "text/plain",
                                                 .timeout_ms = WAIT_MS,
                                                 .max_body = MAX_BODY,
                                                 .on_done = on_answer,
                                                 .arg = pod},
                          &err);
}

static void on_time(uv_timer_t *timer)
{
    const struct observe_activators *a = timer->data;
    void *value;
    for (size_t i = 0; (i = map_next(&a->pods, i, NULL, &value)) != 0;) {
        struct pod *pod = value;
        if (pod->address && pod->ready && !pod->call)
            ask(pod);
    }
}

/* --- whom ------------------------------------------------------------------------------------- */
static bool is_ready(const json_t *object)
{
    const json_t *item;
    size_t i;
    if (json_path(object, "metadata", "deletionTimestamp", NULL))
        return false;
    json_array_foreach (json_path(object, "status", "conditions", NULL), i, item)
        if (strcmp(json_str(json_object_get(item, "type")), "Ready") == 0)
            return strcmp(json_str(json_object_get(item, "status")), "True") == 0;
    return false;
}

static int port_of(const json_t *object)
{
    const json_t *containers = json_path(object, "spec", "containers", NULL), *port;
    size_t i;
    json_array_foreach (json_object_get(json_array_get(containers, 0), "ports"), i, port)
        if (strcmp(json_str(json_object_get(port, "name")), "metrics") == 0)
            return (int)json_integer_value(json_object_get(port, "containerPort"));
    return PORT;
}

static void on_object(void *arg, const json_t *object, bool deleted)
{
    struct observe_activators *a = arg;
    const char *name = json_str(json_path(object, "metadata", "name", NULL));
    const char *address = json_str(json_path(object, "status", "podIP", NULL));
    struct pod *pod = map_get(&a->pods, name);
    if (deleted) {
        if (map_remove(&a->pods, name))
            pod_free(pod);
        return;
    }
    if (!pod) {
        pod = xcalloc(1, sizeof(*pod));
        pod->all = a;
        map_put(&a->pods, name, pod);
    }
    string_set(&pod->address, *address ? address : NULL);
    pod->port = port_of(object);
    pod->ready = is_ready(object);
    pod->mark = a->mark;
}

static void on_list_begin(void *arg)
{
    struct observe_activators *a = arg;
    a->mark++;
}

static void on_list_end(void *arg)
{
    struct observe_activators *a = arg;
    void *value;
    for (size_t i = 0; (i = map_next(&a->pods, i, NULL, &value)) != 0;) {
        struct pod *pod = value;
        if (pod->mark == a->mark)
            continue;
        i = map_remove_at(&a->pods, i);
        pod_free(pod);
    }
}

static void watch(struct observe_activators *a)
{
    a->watch = kube_watch_start(
        a->kube, &(struct kube_watch_spec){.path = PODS,
                                           .selector = SELECTOR,
                                           .optional = true,
                                           .handler = {.on_object = on_object,
                                                       .on_list_begin = on_list_begin,
                                                       .on_list_end = on_list_end},
                                           .arg = a});
}

/* --- life ------------------------------------------------------------------------------------- */
struct observe_activators *observe_activators_new(uv_loop_t *loop, struct kube *kube,
                                                  struct http *http, void (*on_read)(void *arg),
                                                  void *arg)
{
    struct observe_activators *a = xcalloc(1, sizeof(*a));
    *a = (struct observe_activators){.kube = kube, .http = http, .on_read = on_read, .arg = arg};
    uv_timer_init(loop, &a->timer);
    a->timer.data = a;
    return a;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void observe_activators_free(struct observe_activators *a)
{
    if (!a)
        return;
    kube_watch_stop(a->watch);
    map_free(&a->pods, pod_free);
    uv_close((uv_handle_t *)&a->timer, on_closed);
}

void observe_activators_listen(struct observe_activators *a, bool on)
{
    if (a->listening == on)
        return;
    a->listening = on;
    a->heard_ms = clock_mono_ms();
    if (on && !a->watch)
        watch(a);
    if (on)
        uv_timer_start(&a->timer, on_time, 0, EVERY_MS);
    else
        uv_timer_stop(&a->timer);
}

int64_t observe_activators_deaf_ms(const struct observe_activators *a)
{
    return a->listening ? clock_mono_ms() - a->heard_ms : -1;
}

const char *observe_activators_trouble(const struct observe_activators *a)
{
    return a->trouble.code ? a->trouble.message : "none is ready in namespace knative-serving";
}

/* What was read before listening stopped for a while is not believed. */
bool observe_activators_hold(const struct observe_activators *a, const char *namespace_,
                             const char *revision)
{
    cleanup_free char *key = xasprintf("%s/%s", namespace_, revision);
    int64_t now_ms = clock_mono_ms();
    void *value;
    for (size_t i = 0; (i = map_next(&a->pods, i, NULL, &value)) != 0;) {
        const struct pod *pod = value;
        if (now_ms - pod->read_ms <= WAIT_MS && map_get(&pod->held, key))
            return true;
    }
    return false;
}
