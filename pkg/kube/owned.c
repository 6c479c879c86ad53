/* What is kept of a Revision of our class: of its PodAutoscaler and of its ServerlessService. */
#include "kube/internal.h"

#include <string.h>

#define PREFIX "autoscaling.knative.dev/"

struct condition {
    enum kube_truth truth;
    int64_t since_ms; /* 0: unknown */
};

struct kube_ours {
    json_t *object; /* of its PodAutoscaler: labels, spec and status */
    struct kube_owned told;
    const char *revision_uid;
};

struct sks {
    char *service, *metrics_service, owner_uid[KUBE_UID_SIZE];
    bool serves, settled; /* settled: it has done what its spec asks for */
    struct condition ready, proxied;
};

static struct condition condition_of(const json_t *object, const char *type)
{
    struct condition found = {0};
    const json_t *item;
    size_t i;
    json_array_foreach (json_path(object, "status", "conditions", NULL), i, item) {
        if (strcmp(json_str(json_object_get(item, "type")), type) != 0)
            continue;
        const char *status = json_str(json_object_get(item, "status"));
        found.truth = strcmp(status, "True") == 0    ? KUBE_TRUE
                      : strcmp(status, "False") == 0 ? KUBE_FALSE
                                                     : KUBE_UNKNOWN;
        time_parse(json_str(json_object_get(item, "lastTransitionTime")), &found.since_ms);
    }
    return found;
}

/* --- PodAutoscalers --------------------------------------------------------------------------- */
static int64_t duration_at(const json_t *object, const char *key)
{
    int64_t us;
    struct error err;
    const char *text = json_str(json_path(object, "metadata", "annotations", key, NULL));
    return duration_parse(text, &us, &err) == 0 ? us / 1000 : -1;
}

static void read_author(struct kube_owned *o, const json_t *object)
{
    o->min_scale = kube_scale_at(object, KUBE_MIN_SCALE, PREFIX "minScale");
    o->max_scale = kube_scale_at(object, KUBE_MAX_SCALE, PREFIX "maxScale");
    o->initial_scale = kube_scale_at(object, PREFIX "initial-scale", PREFIX "initialScale");
    o->activation_scale = kube_scale_at(object, PREFIX "activation-scale", NULL);
    o->window_ms = duration_at(object, PREFIX "window");
    o->retention_ms = duration_at(object, PREFIX "scale-to-zero-pod-retention-period");
    o->deadline_ms = duration_at(object, KUBE_KNATIVE_GROUP "/progress-deadline");
}

static void read_status(struct kube_owned *o, const json_t *object)
{
    struct condition active = condition_of(object, "Active");
    o->status = json_object_get(object, "status");
    o->active = active.truth;
    o->active_since_ms = active.since_ms;
    o->initialized = condition_of(object, "ScaleTargetInitialized").truth == KUBE_TRUE;
    o->desired = kube_count_at(object, "desiredScale");
}

struct kube_ours *kube_ours_new(const json_t *object)
{
    struct kube_ours *claim = xcalloc(1, sizeof(*claim));
    const json_t *meta, *spec;
    claim->object =
        json_pack("{s:O?, s:O?, s:O?}", "metadata", json_object_get(object, "metadata"), "spec",
                  json_object_get(object, "spec"), "status", json_object_get(object, "status"));
    meta = json_object_get(claim->object, "metadata");
    spec = json_object_get(claim->object, "spec");
    claim->revision_uid = json_str(json_object_get(kube_controlling_owner(claim->object), "uid"));
    struct kube_owned *o = &claim->told;
    o->namespace_ = json_str(json_object_get(meta, "namespace"));
    o->name = json_str(json_object_get(meta, "name"));
    o->uid = json_str(json_object_get(meta, "uid"));
    o->generation = json_integer_value(json_object_get(meta, "generation"));
    o->labels = json_object_get(meta, "labels");
    o->protocol = json_str(json_object_get(spec, "protocolType"));
    o->target = json_object_get(spec, "scaleTargetRef");
    o->deployment = json_str(json_object_get(o->target, "name"));
    o->unreachable = strcmp(json_str(json_object_get(spec, "reachability")), "Unreachable") == 0;
    read_author(o, claim->object);
    read_status(o, claim->object);
    return claim;
}

void kube_ours_free(struct kube_ours *claim)
{
    if (!claim)
        return;
    json_decref(claim->object);
    free(claim);
}

/* --- ServerlessServices ----------------------------------------------------------------------- */
void kube_sks_free(void *value)
{
    struct sks *s = value;
    free(s->service);
    free(s->metrics_service);
    free(s);
}

void *kube_sks_make(void *arg, const json_t *object, void *old)
{
    struct sks *s = xcalloc(1, sizeof(*s));
    const char *owner = json_str(json_object_get(kube_controlling_owner(object), "uid"));
    (void)arg;
    if (old)
        kube_sks_free(old);
    if (strlen(owner) < KUBE_UID_SIZE)
        memcpy(s->owner_uid, owner, strlen(owner) + 1);
    s->service = xstrdup(json_str(json_path(object, "status", "serviceName", NULL)));
    s->metrics_service = xstrdup(json_str(json_path(object, "status", "privateServiceName", NULL)));
    s->serves = strcmp(json_str(json_path(object, "spec", "mode", NULL)), "Serve") == 0;
    s->settled = json_integer_value(json_path(object, "metadata", "generation", NULL)) ==
                 json_integer_value(json_path(object, "status", "observedGeneration", NULL));
    s->ready = condition_of(object, "Ready");
    s->proxied = condition_of(object, "ActivatorEndpointsPopulated");
    return s;
}

void kube_ours_tell(const struct kube_ours *claim, const void *sks, struct kube_owned *out,
                    const char **revision_uid)
{
    const struct sks *s = sks;
    *out = claim->told;
    *revision_uid = claim->revision_uid;
    out->sks.service = out->sks.metrics_service = "";
    if (!s)
        return;
    out->sks.foreign = strcmp(s->owner_uid, out->uid) != 0;
    out->sks.exists = !out->sks.foreign;
    if (out->sks.foreign)
        return;
    out->sks.service = s->service;
    out->sks.metrics_service = s->metrics_service;
    out->sks.serves = s->serves;
    out->sks.ready = s->settled && s->ready.truth == KUBE_TRUE;
    out->sks.proxied = !s->serves && s->settled && s->proxied.truth == KUBE_TRUE;
    out->sks.proxied_since_ms = s->proxied.since_ms;
}
