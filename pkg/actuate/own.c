/* Revisions of Knative that are of our class: nobody else makes them ready, scales them, puts them
 * to sleep or wakes them. */
#include "actuate/actuate.h"

#include <string.h>
#include <strings.h>

#define PLENTY      100000 /* of replicas, where nobody says how many */
#define ACTIVATORS  2      /* that a Revision is behind, at least, in mode Proxy */
#define DEADLINE_MS 600000 /* Knative's own default of how long a start may take */
#define LATER_MS    30000  /* than the deadline: the Revision is to tell first what is wrong */
/* Who sleeps must be heard: it falls asleep only if it would be, and wakes if it would not. */
#define HEARD_MS 5000
#define DEAF_MS  15000

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int64_t stated(int64_t value, int64_t otherwise)
{
    return value >= 0 ? value : otherwise;
}

/* --- defaults --------------------------------------------------------------------------------- */
/* Knative's own: how long there is no request before a Revision may sleep, and how long it is
 * behind the activator before its last pod goes. */
static const struct actuate_defaults knatives = {.initial_scale = 1,
                                                 .activation_scale = 1,
                                                 .window_ms = 60000,
                                                 .grace_ms = 30000,
                                                 .zero_at_first = true};

static void read_count(const json_t *data, const char *key, int32_t *out)
{
    char *end;
    const char *text = json_str(json_object_get(data, key));
    long n = strtol(text, &end, 10);
    if (*text && !*end && n >= 0 && n <= INT32_MAX)
        *out = (int32_t)n;
}

static void read_time(const json_t *data, const char *key, int64_t *out_ms)
{
    int64_t us;
    struct error err;
    if (duration_parse(json_str(json_object_get(data, key)), &us, &err) == 0 && us >= 0)
        *out_ms = us / 1000;
}

static bool is_true(const json_t *data, const char *key, bool otherwise)
{
    const char *text = json_str(json_object_get(data, key));
    return *text ? strcasecmp(text, "true") == 0 : otherwise;
}

void actuate_defaults_read(const json_t *config, struct actuate_defaults *out)
{
    const json_t *data = json_object_get(config, "data");
    *out = knatives;
    read_count(data, "min-scale", &out->min_scale);
    read_count(data, "max-scale", &out->max_scale);
    read_count(data, "initial-scale", &out->initial_scale);
    read_count(data, "activation-scale", &out->activation_scale);
    read_time(data, "stable-window", &out->window_ms);
    read_time(data, "scale-to-zero-grace-period", &out->grace_ms);
    read_time(data, "scale-to-zero-pod-retention-period", &out->retention_ms);
    out->never_zero = !is_true(data, "enable-scale-to-zero", true);
    if (config)
        out->zero_at_first = is_true(data, "allow-zero-initial-scale", false);
    if (out->initial_scale == 0 && !out->zero_at_first)
        out->initial_scale = knatives.initial_scale;
}

static int32_t stated_count(int32_t value, int32_t otherwise)
{
    return value >= 0 ? value : otherwise;
}

/* What its author leaves open is as the cluster has it. */
static struct kube_owned fill_in(const struct kube_owned *o, const struct actuate_defaults *d)
{
    struct kube_owned out = *o;
    out.min_scale = stated_count(o->min_scale, d->min_scale);
    out.max_scale = stated_count(o->max_scale, d->max_scale);
    out.initial_scale = stated_count(o->initial_scale, d->initial_scale);
    out.activation_scale = stated_count(o->activation_scale, d->activation_scale);
    out.window_ms = stated(o->window_ms, d->window_ms);
    out.retention_ms = stated(o->retention_ms, d->retention_ms);
    if (out.initial_scale == 0 && !d->zero_at_first)
        out.initial_scale = d->initial_scale;
    if (d->never_zero) {
        out.min_scale = o->unreachable ? 1 : larger(out.min_scale, 1);
        out.unreachable = false;
    }
    return out;
}

static const struct actuate_defaults *defaults_of(const struct actuate_need *need)
{
    return need->defaults ? need->defaults : &knatives;
}

/* --- what it should have ---------------------------------------------------------------------- */
/* As Knative has it, min-scale is not for a Revision that nothing leads to. */
static int32_t floor_of(const struct kube_owned *o)
{
    return o->unreachable ? 0 : larger(o->min_scale, 0);
}

/* So many ready pods make it active. */
static int32_t enough(const struct kube_owned *o)
{
    return larger(floor_of(o), o->initialized ? 1 : o->initial_scale);
}

static int32_t wanted(const struct kube_owned *o, const struct actuate_need *need)
{
    int32_t most = o->max_scale > 0 ? o->max_scale : PLENTY;
    int32_t n = need->replicas >= 0 && !need->kept ? need->replicas
                : o->desired > 0                   ? o->desired
                                                   : o->replicas;
    if (need->most > 0 && need->most < most)
        most = need->most;
    if (!o->initialized)
        n = enough(o);
    n = larger(larger(n, o->activation_scale), larger(floor_of(o), 1));
    return n < most ? n : most;
}

/* --- does it sleep? --------------------------------------------------------------------------- */
static bool started_in_vain(const struct kube_owned *o, int64_t now_ms)
{
    return o->active == KUBE_UNKNOWN && o->active_since_ms > 0 && o->ready == 0 &&
           now_ms - o->active_since_ms > stated(o->deadline_ms, DEADLINE_MS) + LATER_MS;
}

/* What has just become active is given time to get a request. */
static bool is_quiet(const struct kube_owned *o, const struct actuate_need *need)
{
    if (o->active == KUBE_FALSE)
        return need->quiet_ms < 0 || need->quiet_ms >= o->window_ms;
    return need->quiet_ms >= o->window_ms && o->active == KUBE_TRUE &&
           need->now_ms - o->active_since_ms >= o->window_ms;
}

/* A start is awaited to its deadline. What never became ready and was given up rests. */
static bool sleeps(const struct kube_owned *o, const struct actuate_need *need)
{
    if (floor_of(o) > 0 || need->requests)
        return false;
    if (o->active == KUBE_UNKNOWN)
        return enough(o) == 0 || started_in_vain(o, need->now_ms);
    if (o->unreachable)
        return true;
    if (!o->initialized)
        return o->active == KUBE_FALSE;
    if (o->active == KUBE_FALSE && o->replicas <= 0)
        return need->deaf_ms < DEAF_MS;
    return !need->kept && need->deaf_ms >= 0 && need->deaf_ms < HEARD_MS && is_quiet(o, need);
}

/* --- the plan --------------------------------------------------------------------------------- */
static void say(struct actuate_plan *plan, enum kube_truth active, const char *reason,
                const char *message)
{
    plan->active = active;
    plan->reason = reason;
    plan->message = message;
}

static void plan_awake(const struct kube_owned *o, const struct actuate_need *need,
                       struct actuate_plan *plan)
{
    int32_t n = wanted(o, need);
    plan->desired = n;
    plan->replicas = o->replicas >= 0 && o->replicas != n ? n : -1;
    plan->serve = !need->spare && (o->ready > 0 || o->sks.serves);
    if (o->ready >= enough(o))
        say(plan, KUBE_TRUE, "", "");
    else
        say(plan, KUBE_UNKNOWN, "Queued", "requests wait while pods start");
}

/* Until requests go to the activator it is active: its pods stay, and its Service leads to them. */
static void plan_asleep(const struct kube_owned *o, const struct actuate_need *need,
                        struct actuate_plan *plan)
{
    bool in_vain = !o->initialized && enough(o) > 0 && !o->unreachable;
    bool over = need->now_ms - o->sks.proxied_since_ms >= defaults_of(need)->grace_ms &&
                need->now_ms - o->active_since_ms >= o->retention_ms;
    plan->serve = false;
    plan->replicas = -1;
    if (o->active == KUBE_TRUE && !o->sks.proxied)
        return;
    plan->desired = 0;
    say(plan, KUBE_FALSE, in_vain ? "TimedOut" : "NoTraffic",
        in_vain ? "no pod became ready in time" : "there are no requests");
    if (o->active == KUBE_FALSE && o->sks.proxied && over && o->replicas > 0)
        plan->replicas = 0;
}

void actuate_plan(const struct kube_owned *seen, const struct actuate_need *need,
                  struct actuate_plan *out)
{
    const struct kube_owned o = fill_in(seen, defaults_of(need));
    *out = (struct actuate_plan){0};
    plan_awake(&o, need, out);
    if (sleeps(&o, need))
        plan_asleep(&o, need, out);
    out->initialized = o.initialized || (o.ready >= enough(&o) && *o.sks.service);
}

/* --- status ----------------------------------------------------------------------------------- */
static const char *const truths[] = {
    [KUBE_UNKNOWN] = "Unknown", [KUBE_TRUE] = "True", [KUBE_FALSE] = "False"};

static const json_t *condition_before(const struct kube_owned *o, const char *type)
{
    const json_t *item;
    size_t i;
    json_array_foreach (json_object_get(o->status, "conditions"), i, item)
        if (strcmp(json_str(json_object_get(item, "type")), type) == 0)
            return item;
    return NULL;
}

/* The time is that of the last change of its status. */
static json_t *condition(const struct kube_owned *o, const char *type, enum kube_truth truth,
                         const char *reason, const char *message, int64_t now_ms)
{
    char now[RFC3339_SIZE];
    const json_t *before = condition_before(o, type);
    const char *since = json_str(json_object_get(before, "lastTransitionTime"));
    bool same = *since && strcmp(json_str(json_object_get(before, "status")), truths[truth]) == 0;
    time_format(now_ms, now);
    json_t *made = json_pack("{s:s, s:s, s:s}", "type", type, "status", truths[truth],
                             "lastTransitionTime", same ? since : now);
    if (*reason)
        json_object_set_new(made, "reason", json_string(reason));
    if (*message)
        json_object_set_new(made, "message", json_string(message));
    return made;
}

json_t *actuate_plan_status(const struct kube_owned *o, const struct actuate_plan *plan,
                            int64_t now_ms)
{
    enum kube_truth proxy = o->sks.ready ? KUBE_TRUE : KUBE_UNKNOWN;
    enum kube_truth begun = plan->initialized ? KUBE_TRUE : KUBE_UNKNOWN;
    bool whole = proxy == KUBE_TRUE && begun == KUBE_TRUE;
    const char *no_proxy = "the ServerlessService is not ready", *none = "";
    bool active = plan->active == KUBE_TRUE;
    enum kube_truth ready = active && !whole ? KUBE_UNKNOWN : plan->active;
    return json_pack("{s:I, s:i, s:i, s:s, s:s, s:[o, o, o, o]}", "observedGeneration",
                     (json_int_t)o->generation, "desiredScale", plan->desired, "actualScale",
                     o->ready, "serviceName", o->sks.service, "metricsServiceName",
                     o->sks.metrics_service, "conditions",
                     condition(o, "Active", plan->active, plan->reason, plan->message, now_ms),
                     condition(o, "Ready", ready, active && !whole ? "NotReady" : plan->reason,
                               active && !whole ? no_proxy : plan->message, now_ms),
                     condition(o, "SKSReady", proxy, proxy == KUBE_TRUE ? none : "NotReady",
                               proxy == KUBE_TRUE ? none : no_proxy, now_ms),
                     condition(o, "ScaleTargetInitialized", begun, none, none, now_ms));
}

/* --- writes ----------------------------------------------------------------------------------- */
static char *path_of(const struct kube_owned *o, const char *group, const char *plural,
                     const char *name, const char *what)
{
    return xasprintf("%s/namespaces/%s/%s%s%s%s", group, o->namespace_, plural, *name ? "/" : "",
                     name, what);
}

/* Somebody was faster, or our cache is late: the next look will tell. */
static void on_made(void *arg, const struct error *err)
{
    actuate_gathered(arg, err && err->code == ERROR_CONFLICT ? NULL : err);
}

static int make_sks(struct kube *kube, const struct kube_owned *o, const struct actuate_plan *plan,
                    struct actuate_gather *all)
{
    cleanup_free char *path = path_of(o, KUBE_KNATIVE_PROXIES, "serverlessservices", "", "");
    cleanup_json json_t *sks = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:O?, s:[{s:s, s:s, s:s, s:s, s:b}]}, s:{s:s, s:i, s:s, s:O?}}",
        "apiVersion", "networking.internal.knative.dev/v1alpha1", "kind", "ServerlessService",
        "metadata", "name", o->name, "namespace", o->namespace_, "labels", o->labels,
        "ownerReferences", "apiVersion", "autoscaling.internal.knative.dev/v1alpha1", "kind",
        "PodAutoscaler", "name", o->name, "uid", o->uid, "controller", 1, "spec", "mode",
        plan->serve ? "Serve" : "Proxy", "numActivators", ACTIVATORS, "protocolType", o->protocol,
        "objectRef", o->target);
    actuate_make(kube, path, sks, on_made, actuate_gather_add(all));
    return 1;
}

static int write_mode(struct kube *kube, const struct kube_owned *o,
                      const struct actuate_plan *plan, struct actuate_gather *all)
{
    if (!o->sks.exists)
        return o->sks.foreign ? 0 : make_sks(kube, o, plan, all);
    if (o->sks.serves == plan->serve)
        return 0;
    cleanup_free char *path = path_of(o, KUBE_KNATIVE_PROXIES, "serverlessservices", o->name, "");
    cleanup_json json_t *body =
        json_pack("{s:{s:s}}", "spec", "mode", plan->serve ? "Serve" : "Proxy");
    actuate_write(kube, KUBE_PATCH_MERGE, path, body, actuate_gathered, actuate_gather_add(all));
    return 1;
}

static int write_scale(struct kube *kube, const struct kube_owned *o,
                       const struct actuate_plan *plan, struct actuate_gather *all)
{
    if (plan->replicas < 0)
        return 0;
    cleanup_free char *path = path_of(o, "/apis/apps/v1", "deployments", o->deployment, "/scale");
    cleanup_json json_t *body = json_pack("{s:{s:i}}", "spec", "replicas", plan->replicas);
    actuate_write(kube, KUBE_PATCH_MERGE, path, body, actuate_gathered, actuate_gather_add(all));
    return 1;
}

static bool says_so(const struct kube_owned *o, json_t *status)
{
    const char *key;
    json_t *value;
    json_object_foreach (status, key, value)
        if (!json_equal(json_object_get(o->status, key), value))
            return false;
    return true;
}

static int write_status(struct kube *kube, const struct kube_owned *o,
                        const struct actuate_plan *plan, int64_t now_ms, struct actuate_gather *all)
{
    cleanup_json json_t *body = json_pack("{s:o}", "status", actuate_plan_status(o, plan, now_ms));
    if (says_so(o, json_object_get(body, "status")))
        return 0;
    cleanup_free char *path =
        path_of(o, KUBE_KNATIVE_SCALERS, "podautoscalers", o->name, "/status");
    actuate_write(kube, KUBE_PATCH_MERGE, path, body, actuate_gathered, actuate_gather_add(all));
    return 1;
}

int actuate_own(struct kube *kube, const struct kube_owned *o, const struct actuate_plan *plan,
                int64_t now_ms, actuate_done on_done, void *arg)
{
    struct actuate_gather *all = actuate_gather_new(on_done, arg);
    int written = write_scale(kube, o, plan, all); /* a request may wait for it */
    written += write_mode(kube, o, plan, all);
    written += write_status(kube, o, plan, now_ms, all);
    actuate_gathered(all, NULL);
    return written;
}

/* --- templates -------------------------------------------------------------------------------- */
static void write_class(struct kube *kube, const struct kube_template *t, json_t *mark,
                        json_t *annotations, actuate_done on_done, void *arg)
{
    cleanup_free char *path = xasprintf("%s/namespaces/%s/%s/%s", t->resource->path, t->namespace_,
                                        t->resource->plural, t->name);
    cleanup_json json_t *body =
        json_pack("{s:{s:{s:o}}, s:{s:{s:{s:o}}}}", "metadata", "annotations", KUBE_OWNED, mark,
                  "spec", "template", "metadata", "annotations", annotations);
    actuate_write(kube, KUBE_PATCH_MERGE, path, body, on_done, arg);
}

void actuate_claim(struct kube *kube, const struct kube_template *t, actuate_done on_done,
                   void *arg)
{
    write_class(kube, t, json_string("true"), json_pack("{s:s}", KUBE_CLASS, KUBE_OUR_CLASS),
                on_done, arg);
}

/* The class that somebody else has set meanwhile stays. */
void actuate_disclaim(struct kube *kube, const struct kube_template *t, actuate_done on_done,
                      void *arg)
{
    bool still = strcmp(t->class, KUBE_OUR_CLASS) == 0;
    json_t *annotations = !still     ? json_object()
                          : t->alone ? json_null()
                                     : json_pack("{s:n}", KUBE_CLASS);
    write_class(kube, t, json_null(), annotations, on_done, arg);
}
