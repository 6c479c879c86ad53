/* What is asked of the API server. */
#include "actuate/actuate.h"

#include <string.h>

static const struct {
    const char *kind, *plural;
} kinds[] = {
    {"Deployment", "deployments"},
    {"StatefulSet", "statefulsets"},
    {"ReplicaSet", "replicasets"},
};

static const char *plural_of(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return kinds[i].plural;
    return NULL;
}

int actuate_supports(const struct api_spec *spec, struct error *err)
{
    if (strcmp(spec->target_api_version, "apps/v1") == 0 && plural_of(spec->target_kind))
        return 0;
    return error_set(
        err, ERROR_INVALID,
        "%s %s cannot be scaled; a Deployment, StatefulSet or ReplicaSet of apps/v1 can",
        spec->target_api_version, spec->target_kind);
}

struct call {
    actuate_done on_done;
    void *arg;
};

static void on_answer(void *arg, const struct kube_response *response)
{
    struct call *call = arg;
    call->on_done(call->arg, response->error.code ? &response->error : NULL);
    free(call);
}

void actuate_write(struct kube *kube, enum kube_patch patch, const char *path, const json_t *body,
                   actuate_done on_done, void *arg)
{
    struct call *call = xcalloc(1, sizeof(*call));
    *call = (struct call){.on_done = on_done, .arg = arg};
    kube_send(kube,
              &(struct kube_request){
                  .patch = patch, .path = path, .body = body, .on_done = on_answer, .arg = call});
}

void actuate_replicas(struct kube *kube, const struct kube_workload *workload, int replicas,
                      actuate_done on_done, void *arg)
{
    cleanup_free char *path =
        xasprintf("/apis/apps/v1/namespaces/%s/%s/%s/scale", workload->namespace_,
                  plural_of(workload->kind), workload->name);
    cleanup_json json_t *body = json_pack("{s:{s:i}}", "spec", "replicas", replicas);
    actuate_write(kube, KUBE_PATCH_MERGE, path, body, on_done, arg);
}

void actuate_pod(struct kube *kube, const struct kube_pod *pod, const json_t *patch,
                 actuate_done on_done, void *arg)
{
    cleanup_free char *path =
        xasprintf("/api/v1/namespaces/%s/pods/%s/resize", pod->namespace_, pod->name);
    actuate_write(kube, KUBE_PATCH_STRATEGIC, path, patch, on_done, arg);
}
