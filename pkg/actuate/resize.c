/* In-place resize. The kubelet works asynchronously: a patch that the API server took may be
 * Deferred, Infeasible or in Error for a while. What we asked of a pod is remembered, so that
 * nothing is asked twice while it is on its way, and a refusal is tried again only later. */
#include "actuate/actuate.h"

#include <stdio.h>
#include <string.h>

#define NEW_POD_MS       30000
#define RETRY_REFUSED_MS 30000
#define RETRY_TAKEN_MS   5000

struct attempt {               /* the last thing asked of one pod */
    struct actuator *actuator; /* NULL: freed meanwhile */
    char *uid, *pod;
    uint64_t asked;      /* hash of the patch */
    int64_t answered_ms; /* monotonic; 0: not yet */
    char refusal[192];   /* "" when it was taken */
    bool under_way;
    bool boost;         /* it was a boost */
    bool without_boost; /* which was refused: the pod starts without */
};

struct actuator {
    actuate_send send;
    void *send_arg;
    struct map attempts; /* pod uid → struct attempt */
    void (*on_answer)(void *arg, const char *pod, const struct error *err);
    void *arg;
};

struct actuator *actuator_new(actuate_send send, void *arg)
{
    struct actuator *a = xcalloc(1, sizeof(*a));
    a->send = send;
    a->send_arg = arg;
    return a;
}

static void attempt_free(struct attempt *attempt)
{
    free(attempt->uid);
    free(attempt->pod);
    free(attempt);
}

/* One that is under way is freed when its answer comes. */
static void attempt_drop(void *value)
{
    struct attempt *attempt = value;
    if (attempt->under_way)
        attempt->actuator = NULL;
    else
        attempt_free(attempt);
}

void actuator_free(struct actuator *a)
{
    if (a == NULL)
        return;
    map_free(&a->attempts, attempt_drop);
    free(a);
}

void actuator_on_answer(struct actuator *a,
                        void (*on_answer)(void *arg, const char *pod, const struct error *err),
                        void *arg)
{
    a->on_answer = on_answer;
    a->arg = arg;
}

/* --- the start of a pod -----------------------------------------------------------------------
 * Told by the pod itself, so that another controller ends what one has begun. */
enum stage {
    STARTING, /* it gets the boost */
    READY,    /* a boost goes on for a while */
    SETTLED,
};

static enum stage stage_of(const struct actuator *a, const struct kube_pod *pod,
                           const struct actuate_sizes *sizes)
{
    const struct attempt *attempt = map_get(&a->attempts, pod->uid);
    if (!sizes->boosts || (attempt && attempt->without_boost))
        return SETTLED;
    if (kube_pod_starts(pod, 0))
        return STARTING;
    return kube_pod_starts(pod, sizes->boost_more_ms) ? READY : SETTLED;
}

static void report_end(const struct kube_pod *pod, const struct actuate_sizes *sizes,
                       struct actuate_report *out)
{
    int64_t ms = sizes->boost_more_ms - clock_since_ms(pod->ready_changed_ms);
    if (out->settles_in_ms < 0 || ms < out->settles_in_ms)
        out->settles_in_ms = ms;
}

static bool waits(const struct kube_pod *pod)
{
    return pod->resize == KUBE_RESIZE_DEFERRED || pod->resize == KUBE_RESIZE_INFEASIBLE;
}

/* --- what to ask -----------------------------------------------------------------------------
 */
static int64_t from_kube(int64_t amount)
{
    return amount == KUBE_ABSENT ? API_ABSENT : amount;
}

static size_t size_of_container(const struct actuate_sizes *sizes, const char *name)
{
    size_t i = 0;
    while (i < sizes->count && strcmp(sizes->containers[i].name, name) != 0)
        i++;
    return i;
}

/* A boost is begun before the pod is ready or not at all, but it is not made smaller before its
 * time. */
static int64_t cpu_wanted(const struct kube_container *c, const struct actuate_sizes *sizes,
                          size_t at, enum stage stage)
{
    int64_t size = sizes->containers[at].request[API_CPU];
    int64_t now = from_kube(c->requests.cpu_milli);
    if (size == API_ABSENT || stage == SETTLED)
        return size;
    if (stage == STARTING)
        return sizes->containers[at].boosted_cpu;
    return now > size ? now : size;
}

static size_t plan(const struct kube_pod *pod, const struct actuate_sizes *sizes, enum stage stage,
                   struct guard_pod_container out[API_MAX_CONTAINERS])
{
    size_t n = 0;
    for (; n < pod->container_count && n < API_MAX_CONTAINERS; n++) {
        const struct kube_container *c = &pod->containers[n];
        out[n] = (struct guard_pod_container){
            .name = c->name,
            .request = {from_kube(c->requests.cpu_milli), from_kube(c->requests.memory_bytes)},
            .limit = {from_kube(c->limits.cpu_milli), from_kube(c->limits.memory_bytes)},
            .want = {API_ABSENT, API_ABSENT},
        };
        size_t at = size_of_container(sizes, c->name);
        if (at == sizes->count)
            continue;
        out[n].requests_only = sizes->containers[at].requests_only;
        out[n].want[API_MEMORY] = sizes->containers[at].request[API_MEMORY];
        out[n].want[API_CPU] = cpu_wanted(c, sizes, at, stage);
    }
    return n;
}

static bool grows(const struct guard_pod_container *containers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int r = 0; r < API_RESOURCE_COUNT; r++)
            if (containers[i].new_request[r] > containers[i].request[r])
                return true;
    return false;
}

static void put_amount(json_t *o, enum api_resource resource, int64_t old, int64_t new)
{
    char text[QUANTITY_SIZE];
    if (new == API_ABSENT || new == old)
        return;
    if (resource == API_CPU)
        quantity_print_cpu(new, text);
    else
        quantity_print_memory(new, text);
    json_object_set_new(o, resource == API_CPU ? "cpu" : "memory", json_string(text));
}

/* {"name": …, "resources": {"requests": {…}, "limits": {…}}} with what changes, or NULL. */
static json_t *container_patch(const struct guard_pod_container *c)
{
    json_t *requests = json_object(), *limits = json_object();
    for (enum api_resource r = 0; r < API_RESOURCE_COUNT; r++) {
        put_amount(requests, r, c->request[r], c->new_request[r]);
        put_amount(limits, r, c->limit[r], c->new_limit[r]);
    }
    json_t *resources = json_object();
    if (json_object_size(requests) > 0)
        json_object_set(resources, "requests", requests);
    if (json_object_size(limits) > 0)
        json_object_set(resources, "limits", limits);
    json_decref(requests);
    json_decref(limits);
    if (json_object_size(resources) == 0) {
        json_decref(resources);
        return NULL;
    }
    return json_pack("{s:s, s:o}", "name", c->name, "resources", resources);
}

static json_t *pod_patch(const struct guard_pod_container *containers, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *patch = container_patch(&containers[i]);
        if (patch)
            json_array_append_new(list, patch);
    }
    return json_pack("{s:{s:o}}", "spec", "containers", list);
}

/* --- asking ---------------------------------------------------------------------------------- */
static void on_patched(void *arg, const struct error *err)
{
    struct attempt *attempt = arg;
    struct actuator *a = attempt->actuator;
    attempt->under_way = false;
    if (a == NULL) {
        attempt_free(attempt);
        return;
    }
    bool gone = err && err->code == ERROR_NOT_FOUND;
    bool cancelled = err && err->code == ERROR_CANCELLED;
    attempt->answered_ms = clock_mono_ms();
    if (err && !gone)
        snprintf(attempt->refusal, sizeof(attempt->refusal), "%s", err->message);
    attempt->without_boost |= attempt->boost && err && !cancelled;
    if (a->on_answer && !gone && !cancelled)
        a->on_answer(a->arg, attempt->pod, err);
}

static void ask(struct actuator *a, const struct kube_pod *pod, struct attempt *attempt,
                const json_t *patch, uint64_t hash)
{
    attempt->asked = hash;
    attempt->refusal[0] = '\0';
    attempt->under_way = true;
    a->send(a->send_arg, pod, patch, on_patched, attempt);
}

static struct attempt *attempt_of(struct actuator *a, const struct kube_pod *pod)
{
    struct attempt *attempt = map_get(&a->attempts, pod->uid);
    if (attempt == NULL) {
        attempt = xcalloc(1, sizeof(*attempt));
        attempt->actuator = a;
        attempt->uid = xstrdup(pod->uid);
        attempt->pod = xstrdup(pod->name);
        map_put(&a->attempts, pod->uid, attempt);
    }
    return attempt;
}

static void note(struct actuate_report *out, const char *pod, const char *what)
{
    if (out->message[0] == '\0')
        snprintf(out->message, sizeof(out->message), "pod %s: %s", pod, what);
}

/* A node that has no room for a boost may well have it for the size. */
static void do_without_boost(struct actuator *a, const struct kube_pod *pod,
                             struct actuate_report *out)
{
    struct attempt *attempt = attempt_of(a, pod);
    if (!attempt->without_boost)
        snprintf(out->boost_refusal, sizeof(out->boost_refusal), "pod %s: %s", pod->name,
                 pod->resize_message ? pod->resize_message : "no message");
    attempt->without_boost = true;
}

static void report_pending(const struct kube_pod *pod, struct actuate_report *out)
{
    static const char *const words[] = {
        [KUBE_RESIZE_DEFERRED] = "resize deferred",
        [KUBE_RESIZE_INFEASIBLE] = "resize infeasible",
        [KUBE_RESIZE_ERROR] = "resize in error",
    };
    if (pod->resize == KUBE_RESIZE_NONE || pod->resize == KUBE_RESIZE_IN_PROGRESS)
        return;
    char text[224];
    snprintf(text, sizeof(text), "%s: %s", words[pod->resize],
             pod->resize_message ? pod->resize_message : "no message");
    note(out, pod->name, text);
    out->pending++;
    out->infeasible |= pod->resize == KUBE_RESIZE_INFEASIBLE;
    out->deferred |= pod->resize == KUBE_RESIZE_DEFERRED;
}

/* A boost is to be ended, and what was refused is asked again. */
static bool is_new(const struct actuator *a, const struct kube_pod *pod,
                   const struct actuate_sizes *sizes)
{
    const struct attempt *attempt = map_get(&a->attempts, pod->uid);
    if (attempt)
        return attempt->boost || attempt->refusal[0] || waits(pod);
    return !pod->ready || clock_since_ms(pod->ready_changed_ms) < NEW_POD_MS + sizes->boost_more_ms;
}

/* A patch that was just taken shows in our cache a moment later: the same one is not sent again.
 * One that was refused waits longer; another size may be asked at once. */
static bool worth_asking(const struct attempt *attempt, uint64_t hash, struct actuate_report *out)
{
    if (attempt->under_way)
        return false;
    bool refused = attempt->refusal[0] != '\0';
    int64_t wait_ms = refused ? RETRY_REFUSED_MS : RETRY_TAKEN_MS;
    if (attempt->asked != hash || clock_mono_ms() - attempt->answered_ms >= wait_ms)
        return true;
    if (refused) {
        note(out, attempt->pod, attempt->refusal);
        out->pending++;
    }
    return false;
}

static void resize_pod(struct actuator *a, const struct kube_pod *pod,
                       const struct actuate_sizes *sizes, struct actuate_report *out)
{
    struct guard_pod_container containers[API_MAX_CONTAINERS];
    struct error err = {0};
    enum stage stage = stage_of(a, pod, sizes);
    size_t n = plan(pod, sizes, stage, containers);
    int change = guard_fit_pod(containers, n, &err);
    if (stage == READY)
        report_end(pod, sizes, out);
    if (change < 0) {
        out->impossible++;
        note(out, pod->name, err.message);
    }
    if (change <= 0 || (!kube_pod_is_taken(pod) && grows(containers, n)))
        return;
    cleanup_json json_t *patch = pod_patch(containers, n);
    cleanup_free char *text = json_dumps(patch, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t hash = hash_bytes(text, strlen(text));
    struct attempt *attempt = attempt_of(a, pod);
    if (!worth_asking(attempt, hash, out))
        return;
    attempt->boost = stage == STARTING;
    ask(a, pod, attempt, patch, hash);
    out->patched++;
    out->boosted += stage == STARTING;
}

/* Pods that are gone need no memory. */
static void forget_gone(struct actuator *a, const struct kube_pod *const *pods, size_t n)
{
    if (a->attempts.count <= n)
        return;
    const char *uid;
    void *value;
    for (size_t i = 0; (i = map_next(&a->attempts, i, &uid, &value)) != 0;) {
        size_t p = 0;
        while (p < n && strcmp(pods[p]->uid, uid) != 0)
            p++;
        if (p == n) {
            i = map_remove_at(&a->attempts, i);
            attempt_drop(value);
        }
    }
}

void actuate_resize(struct actuator *a, const struct kube_pod *const *pods, size_t pod_count,
                    const struct actuate_sizes *sizes, bool only_new, struct actuate_report *out)
{
    *out = (struct actuate_report){.settles_in_ms = -1};
    forget_gone(a, pods, pod_count);
    for (size_t i = 0; i < pod_count; i++) {
        const struct kube_pod *pod = pods[i];
        if (pod->deleting || pod->phase == KUBE_FINISHED)
            continue;
        if (sizes->boosts && waits(pod) && kube_pod_starts(pod, sizes->boost_more_ms))
            do_without_boost(a, pod, out);
        else
            report_pending(pod, out);
        if (!only_new || is_new(a, pod, sizes))
            resize_pod(a, pod, sizes, out);
    }
}
