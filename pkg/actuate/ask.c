/* What is asked of the API server. */
#include "actuate/actuate.h"

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

void actuate_tell(struct kube *kube, enum kube_patch patch, const char *path, const json_t *body,
                  actuate_done on_done, void *arg)
{
    struct call *call = xcalloc(1, sizeof(*call));
    *call = (struct call){.on_done = on_done, .arg = arg};
    kube_send(kube, &(struct kube_request){.patch = patch,
                                           .path = path,
                                           .body = body,
                                           .lazy = true,
                                           .on_done = on_answer,
                                           .arg = call});
}

void actuate_make(struct kube *kube, const char *path, const json_t *object, actuate_done on_done,
                  void *arg)
{
    struct call *call = xcalloc(1, sizeof(*call));
    *call = (struct call){.on_done = on_done, .arg = arg};
    kube_send(
        kube,
        &(struct kube_request){
            .method = "POST", .path = path, .body = object, .on_done = on_answer, .arg = call});
}

struct actuate_gather {
    actuate_done on_done;
    void *arg;
    int waiting;
    struct error first;
};

struct actuate_gather *actuate_gather_new(actuate_done on_done, void *arg)
{
    struct actuate_gather *g = xcalloc(1, sizeof(*g));
    *g = (struct actuate_gather){.on_done = on_done, .arg = arg, .waiting = 1};
    return g;
}

struct actuate_gather *actuate_gather_add(struct actuate_gather *g)
{
    g->waiting++;
    return g;
}

void actuate_gathered(void *gather, const struct error *err)
{
    struct actuate_gather *g = gather;
    if (err && !g->first.code)
        g->first = *err;
    if (--g->waiting > 0)
        return;
    g->on_done(g->arg, g->first.code ? &g->first : NULL);
    free(g);
}

void actuate_replicas(struct kube *kube, const struct kube_workload *workload, int replicas,
                      actuate_done on_done, void *arg)
{
    cleanup_free char *path =
        xasprintf("%s/namespaces/%s/%s/%s/scale", workload->resource->path, workload->namespace_,
                  workload->resource->plural, workload->name);
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
