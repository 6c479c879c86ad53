#include "scenario.h"

#include <math.h>
#include <string.h>

#define NODE_CORES 8

/* A web interface that people use by day, pictures that come in bursts, something steady that
 * machines call, and a job that is called once an hour; then something that was given more than it
 * needs, of which somebody wants to know after some hours what the controller would do. In the
 * order of the manifests below. */
static const struct {
    const char *trace;
    double request_milli; /* of a pod, to begin with */
    int replicas;         /* likewise */
    double joins_s;
} shapes[] = {
    {"diurnal:rate=40,amplitude=0.9,demand=8,p99=30", 500, 1, 0},
    {"bursty:rate=1,burst=25,every=5400,length=600,span=86400,demand=60,p99=150", 1000, 1, 0},
    {"poisson:rate=8,span=86400,demand=15,p99=40", 500, 1, 0},
    {"bursty:rate=0.01,burst=300,every=3600,length=300,span=86400,demand=100,p99=300", 1000, 1, 0},
    {"diurnal:rate=15,amplitude=0.8,demand=10,p99=40", 1000, 4, 4 * 3600},
};

#define MPA(name, mode, goal, replicas, cpu)                                                       \
    "apiVersion: autoscaling.faasrl.io/v1alpha1\n"                                                 \
    "kind: MultidimPodAutoscaler\n"                                                                \
    "metadata:\n"                                                                                  \
    "  name: " name "\n"                                                                           \
    "spec:\n"                                                                                      \
    "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " name "}\n"                  \
    "  goals:\n"                                                                                   \
    "    latency: {percentile: 99, target: " goal "}\n"                                            \
    "  constraints:\n"                                                                             \
    "    global: {minReplicas: 1, maxReplicas: " replicas "}\n"                                    \
    "    container:\n"                                                                             \
    "    - {name: function, requests: {" cpu "}}\n"                                                \
    "  policy: {updateMode: \"" mode "\"}\n"                                                       \
    "  recommenders: [{name: threshold}]\n"                                                        \
    "---\n"
#define CPU(min, max) "minAllowed: {cpu: " min "}, maxAllowed: {cpu: " max "}"
/* clang-format off */
static const char manifests[] =
    MPA("web", "Auto", "150ms", "10", CPU("200m", "1000m"))
    MPA("thumbnail", "Auto", "500ms", "10", CPU("400m", "1000m"))
    MPA("checkout", "Auto", "150ms", "6", CPU("300m", "1000m"))
    MPA("report", "Auto", "1s", "6", CPU("400m", "1000m"))
    MPA("search", "Off", "300ms", "6", CPU("200m", "1000m"));
/* clang-format on */

int scenario_open(struct scenario *out, struct error *err)
{
    *out = (struct scenario){0};
    out->manifests = yaml_to_json(manifests, strlen(manifests), err);
    if (out->manifests == NULL)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        if (trace_open(shapes[i].trace, &out->traces[i], err) < 0)
            return -1;
        out->functions[out->count++] = (struct embed_function){
            .workload = &out->traces[i].functions[0],
            .mpa = json_array_get(out->manifests, i),
            .request_milli = shapes[i].request_milli,
            .limit_milli = shapes[i].request_milli,
            .replicas = shapes[i].replicas,
            .joins_s = shapes[i].joins_s,
        };
        const json_t *mode = json_path(out->functions[i].mpa, "spec", "policy", "updateMode", NULL);
        if (strcmp(json_str(mode), "Auto") == 0)
            out->managed = out->count;
    }
    for (size_t i = 0; i < ARRAY_LEN(out->nodes); i++)
        out->nodes[i] = (struct cluster_node){.cores = NODE_CORES, .memory_bytes = INFINITY};
    return 0;
}

void scenario_close(struct scenario *s)
{
    for (size_t i = 0; i < s->count; i++)
        trace_clear(&s->traces[i]);
    json_decref(s->manifests);
}
