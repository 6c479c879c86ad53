/* The simulated side of `make fidelity`: reads points as JSON from stdin, and prints p50, p99 and
 * CPU utilisation of each. A point is simulated many times with the requests at the times at which
 * they were really sent to the pods that really got them. Where in a period of CFS a request falls
 * and which of the demands it has is chance, and differs from run to run: given are medians of the
 * runs, and the p99 of the lowest and highest tenth of them. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cluster.h"

/* Requests fall into slots as short as this, one in each as a rule. */
static const double slot_s = 0.0005;
static const double drain_s = 120; /* for what is in flight after the last arrival */

/* Each pod is a function of one replica, as it is known which requests it got. */
struct point {
    struct trace_function *workloads; /* of the pods */
    struct cluster_function *functions;
    size_t pods;
    struct cluster_node node;
    double *overheads_ms; /* what a client waits beyond the pod, equally likely values, ascending */
    size_t overhead_count;
    double span_s;
    int runs;
};

struct outcome { /* of all runs of a point, one value each */
    double *p50_ms, *p99_ms, *utilization, *throttled;
};

static void die(const char *what)
{
    fprintf(stderr, "simulate-points: %s\n", what);
    exit(1);
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_number(value))
        die(name);
    return json_number_value(value);
}

static void read_quantiles(const json_t *list, struct trace_function *workload)
{
    size_t count = json_array_size(list);

    workload->demand = TRACE_DEMAND_QUANTILES;
    workload->quantile_count = count;
    workload->quantiles = xcalloc(count, sizeof(*workload->quantiles));
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i);
        workload->quantiles[i].share = json_number_value(json_array_get(pair, 0));
        workload->quantiles[i].cpu_ms = json_number_value(json_array_get(pair, 1));
    }
}

/* Pairs of the time at which a request was sent, and of its CPU in ms, which the quantiles spread.
 */
static void read_arrivals(const json_t *list, struct trace_function *workload)
{
    size_t count = json_array_size(list);
    const json_t *last = json_array_get(list, count > 0 ? count - 1 : 0);
    double last_s = json_number_value(json_array_get(last, 0));

    workload->slot_s = slot_s;
    workload->slot_count = (size_t)(last_s / slot_s) + 1;
    workload->counts = xcalloc(workload->slot_count, sizeof(*workload->counts));
    workload->works = xcalloc(workload->slot_count, sizeof(*workload->works));
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i);
        size_t slot = (size_t)(json_number_value(json_array_get(pair, 0)) / slot_s);
        workload->counts[slot] += 1;
        workload->works[slot] = json_number_value(json_array_get(pair, 1));
    }
}

static void read_overheads(const json_t *list, struct point *point)
{
    point->overhead_count = json_array_size(list);
    point->overheads_ms = xcalloc(point->overhead_count, sizeof(*point->overheads_ms));
    for (size_t i = 0; i < point->overhead_count; i++)
        point->overheads_ms[i] = json_number_value(json_array_get(list, i));
}

static void read_pod(const json_t *from, const json_t *arrivals, struct point *point, size_t pod)
{
    struct trace_function *workload = &point->workloads[pod];

    *workload = (struct trace_function){.name = xstrdup("pod"), .memory_bytes = NAN};
    read_quantiles(json_object_get(from, "quantiles"), workload);
    read_arrivals(arrivals, workload);
    point->functions[pod] = (struct cluster_function){
        .workload = workload,
        .replicas = 1,
        .request_milli = number(from, "limit_milli"),
        .limit_milli = number(from, "limit_milli"),
        .pod_quota = number(from, "pod_quota") != 0,
    };
}

static void read_point(const json_t *from, struct point *point)
{
    const json_t *arrivals = json_object_get(from, "arrivals");

    *point = (struct point){
        .pods = json_array_size(arrivals),
        .node = {.cores = number(from, "cores"),
                 .memory_bytes = INFINITY,
                 .tick_s = number(from, "tick_s")},
        .span_s = number(from, "span_s"),
        .runs = (int)number(from, "runs"),
    };
    point->workloads = xcalloc(point->pods, sizeof(*point->workloads));
    point->functions = xcalloc(point->pods, sizeof(*point->functions));
    for (size_t i = 0; i < point->pods; i++)
        read_pod(from, json_array_get(arrivals, i), point, i);
    read_overheads(json_object_get(from, "overheads_ms"), point);
}

static void clear_point(struct point *point)
{
    for (size_t i = 0; i < point->pods; i++) {
        free(point->workloads[i].name);
        free(point->workloads[i].counts);
        free(point->workloads[i].works);
        free(point->workloads[i].quantiles);
    }
    free(point->workloads);
    free(point->functions);
    free(point->overheads_ms);
}

/* How many requests were answered within this time, overhead and all. */
static double answered_within(const struct cluster_latency *latency, const struct point *point,
                              double ms)
{
    double sum = 0;

    for (size_t i = 0; i < point->overhead_count; i++)
        sum += cluster_latency_within(latency, ms - point->overheads_ms[i]);
    return sum / (double)point->overhead_count;
}

static double quantile_ms(const struct cluster_latency *latency, const struct point *point,
                          double share)
{
    double pod_ms = cluster_latency_quantile_ms(latency, share);
    double low = pod_ms + point->overheads_ms[0];
    double high = pod_ms + point->overheads_ms[point->overhead_count - 1];
    double wanted = share * (double)latency->count;

    while (high - low > 1e-3 * high) {
        double middle = (low + high) / 2;
        if (answered_within(latency, point, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void note_run(const struct cluster *cluster, const struct point *point, int run,
                     struct outcome *out)
{
    struct cluster_latency latency = {0};
    double cpu_s = 0, periods = 0, throttled = 0;
    double capacity_s = (double)point->pods * point->functions[0].limit_milli / 1e3 * point->span_s;

    for (size_t i = 0; i < point->pods; i++) {
        const struct cluster_stats *stats = cluster_stats(cluster, i);
        cluster_latency_add(&latency, cluster_latency(cluster, i));
        cpu_s += stats->cpu_s;
        periods += (double)stats->periods;
        throttled += (double)stats->throttled_periods;
    }
    out->p50_ms[run] = quantile_ms(&latency, point, 0.5);
    out->p99_ms[run] = quantile_ms(&latency, point, 0.99);
    out->utilization[run] = cpu_s / capacity_s;
    out->throttled[run] = periods > 0 ? throttled / periods : 0;
}

static void simulate(const struct point *point, struct outcome *out)
{
    struct cluster_config config = {.nodes = &point->node,
                                    .node_count = 1,
                                    .functions = point->functions,
                                    .function_count = point->pods,
                                    .seed = 1};
    struct error err;
    struct cluster *cluster = cluster_new(&config, &err);

    if (cluster == NULL)
        die(err.message);
    for (int run = 0; run < point->runs; run++) {
        cluster_reset(cluster, (uint64_t)run + 1);
        cluster_run(cluster, point->span_s + drain_s);
        note_run(cluster, point, run, out);
    }
    cluster_free(cluster);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that this share of the runs does not exceed. */
static double of_runs(double *values, int runs, double share)
{
    qsort(values, (size_t)runs, sizeof(*values), compare);
    return values[(int)(share * (runs - 1))];
}

static json_t *outcome_json(const struct point *point)
{
    size_t runs = (size_t)point->runs;
    struct outcome out = {xcalloc(runs, sizeof(double)), xcalloc(runs, sizeof(double)),
                          xcalloc(runs, sizeof(double)), xcalloc(runs, sizeof(double))};

    simulate(point, &out);
    json_t *found = json_pack(
        "{s:f,s:f,s:f,s:f,s:f,s:f}", "p50_ms", of_runs(out.p50_ms, point->runs, 0.5), "p99_ms",
        of_runs(out.p99_ms, point->runs, 0.5), "p99_low_ms", of_runs(out.p99_ms, point->runs, 0.1),
        "p99_high_ms", of_runs(out.p99_ms, point->runs, 0.9), "utilization",
        of_runs(out.utilization, point->runs, 0.5), "throttled",
        of_runs(out.throttled, point->runs, 0.5));
    free(out.p50_ms);
    free(out.p99_ms);
    free(out.utilization);
    free(out.throttled);
    return found;
}

int main(void)
{
    json_error_t wrong;
    json_t *points = json_loadf(stdin, 0, &wrong);
    json_t *found = json_array();
    size_t i;
    json_t *from;

    if (points == NULL)
        die(wrong.text);
    json_array_foreach (points, i, from) {
        struct point point;
        read_point(from, &point);
        json_array_append_new(found, outcome_json(&point));
        clear_point(&point);
    }
    json_dumpf(found, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(found);
    json_decref(points);
    return 0;
}
