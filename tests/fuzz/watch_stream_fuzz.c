/* A watch stream from a hostile server, through the parser and every projection. The first byte
 * says into pieces of which size the network cuts the rest. */
#include "kube/internal.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct kube_resource deployments = {"apps/v1", "Deployment", "/apis/apps/v1",
                                                 "deployments"};

static void on_event(void *arg, const char *type, const json_t *object)
{
    static const char *const scalers[] = {"HorizontalPodAutoscaler", "VerticalPodAutoscaler"};
    unsigned *events = arg;
    *events += (unsigned)strlen(type);
    struct kube_pod *pod = kube_pod_from_json(object);
    if (pod && (strlen(pod->uid) >= KUBE_UID_SIZE || strlen(pod->owner_uid) >= KUBE_UID_SIZE))
        abort();
    for (unsigned i = 0; pod && i < pod->container_count; i++)
        *events += (unsigned)strlen(pod->containers[i].name);
    kube_pod_free(pod);
    free(kube_workload_project(object, &deployments, 0));
    for (size_t i = 0; i < ARRAY_LEN(scalers); i++)
        free(kube_scaler_project(object, scalers[i], 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_stream stream;
    struct error err;
    unsigned events = 0;
    if (size < 2)
        return 0;
    size_t piece = data[0] ? data[0] : size;
    kube_stream_init(&stream, 4096, on_event, &events);
    for (size_t at = 1; at < size; at += piece)
        if (kube_stream_feed(&stream, (const char *)data + at,
                             size - at < piece ? size - at : piece, &err) < 0)
            break;
    kube_stream_free(&stream);
    return 0;
}
