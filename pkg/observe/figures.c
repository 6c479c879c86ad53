#include "figures.h"

#include <math.h>
#include <string.h>

/* More than any function has or does: who says so is mistaken, in a query or a recording rule. */
#define MOST_CORES 1e5
#define MOST_BYTES 1e15
#define MOST_RATE  1e9
#define MOST_SHARE 2 /* of throttled periods: two rates, each of them extrapolated */

static bool is_possible(double value, double most)
{
    return value >= 0 && value <= most;
}

void buckets_add(struct bucket_set *set, double upper, double rate)
{
    size_t at = 0;
    if (!is_possible(rate, MOST_RATE)) {
        set->absurd = rate;
        return;
    }
    while (at < set->count && set->items[at].upper < upper)
        at++;
    if (at < set->count && set->items[at].upper == upper) {
        set->items[at].count += rate;
        return;
    }
    if (set->count >= OBSERVE_MAX_BUCKETS)
        return;
    set->items = xrealloc(set->items, set->count + 1, sizeof(*set->items));
    memmove(set->items + at + 1, set->items + at, (set->count - at) * sizeof(*set->items));
    set->items[at] = (struct prom_bucket){.upper = upper, .count = rate};
    set->count++;
}

void buckets_merge(struct bucket_set *into, const struct bucket_set *from)
{
    for (size_t i = 0; i < from->count; i++)
        buckets_add(into, from->items[i].upper, from->items[i].count);
    if (from->absurd != 0)
        into->absurd = from->absurd;
}

static void buckets_clear(struct bucket_set *set)
{
    set->count = 0;
    set->absurd = 0;
}

static void pod_figures_free(void *value)
{
    struct pod_figures *pod = value;
    for (size_t i = 0; i < pod->container_count; i++)
        free(pod->containers[i].name);
    free(pod->containers);
    free(pod->latency.items);
    free(pod->proxy_latency.items);
    free(pod);
}

static void own_figures_free(void *value)
{
    struct own_figures *own = value;
    free(own->failure);
    free(own->latency.items);
    free(own);
}

struct figures *figures_new(void)
{
    return xcalloc(1, sizeof(struct figures));
}

void figures_free(struct figures *figures)
{
    if (figures == NULL)
        return;
    map_free(&figures->pods, pod_figures_free);
    map_free(&figures->own, own_figures_free);
    figures_free_actions(figures);
    for (size_t i = 0; i < PROM_METRIC_COUNT; i++)
        free(figures->failure[i]);
    free(figures);
}

static struct pod_figures *pod_slot(struct figures *figures, const char *namespace_,
                                    const char *name)
{
    cleanup_free char *key = xasprintf("%s/%s", namespace_, name);
    struct pod_figures *pod = map_get(&figures->pods, key);
    if (pod == NULL) {
        pod = xcalloc(1, sizeof(*pod));
        map_put(&figures->pods, key, pod);
    }
    return pod;
}

static struct container_figures *container_slot(struct pod_figures *pod, const char *name)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (strcmp(pod->containers[i].name, name) == 0)
            return &pod->containers[i];
    pod->containers = xrealloc(pod->containers, pod->container_count + 1, sizeof(*pod->containers));
    struct container_figures *c = &pod->containers[pod->container_count++];
    *c = (struct container_figures){
        .name = xstrdup(name), .cpu_milli = NAN, .throttled = NAN, .memory_bytes = NAN};
    return c;
}

bool figures_bucket_bound(const struct prom_series *series, double *upper)
{
    const char *le = prom_label(series, "le");
    char *end;
    *upper = strtod(le, &end);
    if (strcmp(prom_label(series, "unit"), "ms") == 0)
        *upper /= 1000;
    return *le && *end == '\0' && !isnan(*upper);
}

static bool has_buckets(enum prom_metric metric)
{
    return metric == PROM_LATENCY_BUCKETS || metric == PROM_PROXY_BUCKETS;
}

static void set_container(struct container_figures *c, enum prom_metric metric, double value)
{
    if (metric == PROM_CPU_USAGE)
        c->cpu_milli = is_possible(value, MOST_CORES) ? value * 1000 : NAN;
    else if (metric == PROM_CPU_THROTTLED)
        c->throttled = is_possible(value, MOST_SHARE) ? value : NAN;
    else
        c->memory_bytes = is_possible(value, MOST_BYTES) ? value : NAN;
}

void figures_put(struct figures *figures, const struct observe_figure *f)
{
    if (!isfinite(f->value))
        return; /* 0/0 of a container without a quota: as good as missing */
    struct pod_figures *pod = pod_slot(figures, f->namespace_, f->pod);
    if (f->metric == PROM_LATENCY_BUCKETS)
        buckets_add(&pod->latency, f->upper_s, f->value);
    else if (f->metric == PROM_PROXY_BUCKETS)
        buckets_add(&pod->proxy_latency, f->upper_s, f->value);
    else
        set_container(container_slot(pod, f->container), f->metric, f->value);
    if (f->metric == PROM_CPU_USAGE && !is_possible(f->value, MOST_CORES))
        pod->absurd_cores = f->value;
}

void figures_add(struct figures *figures, enum prom_metric metric, const struct prom_series *series)
{
    struct observe_figure f = {
        .metric = metric,
        .namespace_ = prom_label(series, "namespace"),
        .pod = prom_label(series, "pod"),
        .container = prom_label(series, "container"),
    };
    if (series->sample_count == 0 || *f.pod == '\0' ||
        (has_buckets(metric) && !figures_bucket_bound(series, &f.upper_s)))
        return;
    f.value = series->samples[series->sample_count - 1].value;
    figures_put(figures, &f);
}

void figures_drop(struct figures *figures, enum prom_metric metric)
{
    void *value;
    for (size_t i = 0; (i = map_next(&figures->pods, i, NULL, &value)) != 0;) {
        struct pod_figures *pod = value;
        if (metric == PROM_LATENCY_BUCKETS)
            buckets_clear(&pod->latency);
        else if (metric == PROM_PROXY_BUCKETS)
            buckets_clear(&pod->proxy_latency);
        else if (metric == PROM_CPU_USAGE)
            pod->absurd_cores = 0;
        for (size_t c = 0; !has_buckets(metric) && c < pod->container_count; c++)
            set_container(&pod->containers[c], metric, NAN);
    }
}

static void read_own(struct own_figures *own, const struct prom_result *result)
{
    own->state = PROM_MISSING;
    for (size_t i = 0; i < result->series_count; i++) {
        const struct prom_series *series = &result->series[i];
        double upper;
        if (series->sample_count == 0)
            continue;
        const struct prom_sample *sample = &series->samples[series->sample_count - 1];
        if (figures_bucket_bound(series, &upper)) {
            own->is_histogram = true;
            if (isfinite(sample->value))
                buckets_add(&own->latency, upper, sample->value);
        } else if (own->state == PROM_MISSING) {
            own->state = prom_classify(sample, sample->time_s, INFINITY);
            own->value_s = sample->value;
        }
    }
}

void figures_add_own(struct figures *figures, const char *key, const struct prom_result *result,
                     const char *failure)
{
    struct own_figures *own = xcalloc(1, sizeof(*own));
    own->failure = xstrdup(failure);
    if (result)
        read_own(own, result);
    void *old = map_put(&figures->own, key, own);
    if (old)
        own_figures_free(old);
}

const struct pod_figures *figures_pod(const struct figures *figures, const struct kube_pod *pod)
{
    cleanup_free char *key = xasprintf("%s/%s", pod->namespace_, pod->name);
    return map_get(&figures->pods, key);
}

const struct container_figures *figures_container(const struct pod_figures *pod, const char *name)
{
    for (size_t i = 0; pod && i < pod->container_count; i++)
        if (strcmp(pod->containers[i].name, name) == 0)
            return &pod->containers[i];
    return NULL;
}
