/* The usage of each container over time, in VPA's histograms. */
#include "recommend/internal.h"

#include <string.h>

/* VPA's half life is a day, which suits a size that changes by eviction. Ours changes in place, so
 * CPU may shrink soon after a burst: its half life is the caller's choice. Memory keeps VPA's. */
#define MEMORY_HALF_LIFE_S  86400.0
#define MEMORY_INTERVAL_S   86400.0 /* one sample, the peak, per interval */
#define CPU_FIRST_BUCKET    10.0    /* milli-cores */
#define CPU_MAX_VALUE       1e6
#define MEMORY_FIRST_BUCKET 1e7 /* bytes */
#define MEMORY_MAX_VALUE    1e12
#define CPU_WEIGHT          0.1
#define DAY_S               86400.0
#define SAMPLES_PER_DAY     1440.0

struct series {
    struct recommend_histogram *histogram; /* NULL: no sample yet */
    double first_s, last_s, samples;
    double peak, interval_end_s; /* memory only */
};

struct history {
    struct {
        char *name;
        struct series series[RECOMMEND_RESOURCE_COUNT];
    } * containers; /* at most RECOMMEND_MAX_CONTAINERS */
    size_t count;
    double cpu_half_life_s;
    double observed_s; /* NaN: never */
};

struct history *recommend_history_new(double cpu_half_life_s)
{
    struct history *history = xcalloc(1, sizeof(*history));
    history->cpu_half_life_s = cpu_half_life_s;
    history->observed_s = NAN;
    return history;
}

static void forget(struct history *history, size_t at)
{
    free(history->containers[at].name);
    for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++)
        recommend_histogram_free(history->containers[at].series[r].histogram);
    memset(&history->containers[at], 0, sizeof(history->containers[at]));
}

void recommend_history_free(struct history *history)
{
    if (!history)
        return;
    for (size_t i = 0; i < history->count; i++)
        forget(history, i);
    free(history->containers);
    free(history);
}

static const struct series *find(const struct history *history, const char *name,
                                 enum recommend_resource resource)
{
    for (size_t i = 0; i < history->count; i++)
        if (strcmp(history->containers[i].name, name) == 0)
            return &history->containers[i].series[resource];
    return NULL;
}

static double last_seen(const struct history *history, size_t at)
{
    const struct series *series = history->containers[at].series;
    return fmax(series[RECOMMEND_CPU].last_s, series[RECOMMEND_MEMORY].last_s);
}

/* A place for a new name: the next free one, else that of the container not seen for longest. */
static size_t make_place(struct history *history)
{
    if (history->count < RECOMMEND_MAX_CONTAINERS) {
        history->containers =
            xrealloc(history->containers, history->count + 1, sizeof(*history->containers));
        memset(&history->containers[history->count], 0, sizeof(*history->containers));
        return history->count++;
    }
    size_t oldest = 0;
    for (size_t i = 1; i < history->count; i++)
        if (last_seen(history, i) < last_seen(history, oldest))
            oldest = i;
    forget(history, oldest);
    return oldest;
}

static struct series *find_or_add(struct history *history, const char *name,
                                  enum recommend_resource resource)
{
    for (size_t i = 0; i < history->count; i++)
        if (strcmp(history->containers[i].name, name) == 0)
            return &history->containers[i].series[resource];
    size_t at = make_place(history);
    history->containers[at].name = xstrdup(name);
    return &history->containers[at].series[resource];
}

/* The sample of an interval is its peak: a higher one takes the place of the one before. */
static void add_peak(struct series *s, double time_s, double usage)
{
    if (s->samples > 0 && time_s < s->interval_end_s) {
        if (usage <= s->peak)
            return;
        recommend_histogram_add(s->histogram, s->interval_end_s, s->peak, -1);
    } else {
        s->interval_end_s = time_s + MEMORY_INTERVAL_S;
    }
    s->peak = usage;
    recommend_histogram_add(s->histogram, s->interval_end_s, usage, 1);
}

void recommend_history_add(struct history *history, const char *container,
                           enum recommend_resource resource, double time_s, double usage)
{
    if (!container || !isfinite(time_s) || !isfinite(usage) || usage < 0)
        return;
    struct series *s = find_or_add(history, container, resource);
    if (!s->histogram) {
        s->histogram =
            resource == RECOMMEND_CPU
                ? recommend_histogram_new(CPU_FIRST_BUCKET, CPU_MAX_VALUE, history->cpu_half_life_s)
                : recommend_histogram_new(MEMORY_FIRST_BUCKET, MEMORY_MAX_VALUE,
                                          MEMORY_HALF_LIFE_S);
        s->first_s = s->last_s = time_s;
    }
    if (resource == RECOMMEND_CPU)
        recommend_histogram_add(s->histogram, time_s, usage, CPU_WEIGHT);
    else
        add_peak(s, time_s, usage);
    s->first_s = fmin(s->first_s, time_s);
    s->last_s = fmax(s->last_s, time_s);
    s->samples++;
}

void recommend_history_observe(struct history *history, const struct observation *seen)
{
    if (seen->now_s == history->observed_s)
        return; /* asked twice */
    history->observed_s = seen->now_s;
    for (size_t c = 0; c < seen->container_count; c++) {
        const struct recommend_container *container = &seen->containers[c];
        for (size_t p = 0; p < seen->pod_count; p++) {
            const struct recommend_pod *pod = &seen->pods[p];
            const double *usage = pod->containers[c].usage;
            if (pod->pending)
                continue;
            if (container->controlled[RECOMMEND_CPU] && !pod->starting)
                recommend_history_add(history, container->name, RECOMMEND_CPU, seen->now_s,
                                      usage[RECOMMEND_CPU]);
            if (container->controlled[RECOMMEND_MEMORY])
                recommend_history_add(history, container->name, RECOMMEND_MEMORY, seen->now_s,
                                      usage[RECOMMEND_MEMORY]);
        }
    }
}

double recommend_history_percentile(const struct history *history, const char *container,
                                    enum recommend_resource resource, double q)
{
    const struct series *s = container ? find(history, container, resource) : NULL;
    return s && s->histogram ? recommend_histogram_percentile(s->histogram, q) : NAN;
}

struct history_estimate recommend_history_estimate(const struct history *history,
                                                   const char *container,
                                                   enum recommend_resource resource)
{
    struct history_estimate e = {.p50 = NAN, .p90 = NAN, .p95 = NAN};
    const struct series *s = container ? find(history, container, resource) : NULL;
    if (!s || !s->histogram)
        return e;
    e.p50 = recommend_histogram_percentile(s->histogram, 0.5);
    e.p90 = recommend_histogram_percentile(s->histogram, 0.9);
    e.p95 = recommend_histogram_percentile(s->histogram, 0.95);
    e.days = fmin((s->last_s - s->first_s) / DAY_S, s->samples / SAMPLES_PER_DAY);
    return e;
}
