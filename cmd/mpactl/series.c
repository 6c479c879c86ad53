#include "series.h"

#include <math.h>

/* What one weighs may be nothing. */
static double mean(double a, double weight_a, double b, double weight_b)
{
    double weight = weight_a + weight_b;
    return weight > 0 ? (a * weight_a + b * weight_b) / weight : b;
}

/* b follows a in the same bucket; b's reason is taken over or freed. */
static void merge(struct series_point *a, struct series_point *b)
{
    double requests_a = a->requests_per_s * a->span_s, requests_b = b->requests_per_s * b->span_s;
    a->violation_ratio = mean(a->violation_ratio, requests_a, b->violation_ratio, requests_b);
    a->requests_per_s = mean(a->requests_per_s, a->span_s, b->requests_per_s, b->span_s);
    a->request_milli = mean(a->request_milli, a->span_s, b->request_milli, b->span_s);
    a->cpu_utilization = mean(a->cpu_utilization, a->span_s, b->cpu_utilization, b->span_s);
    a->replicas = mean(a->replicas, a->span_s, b->replicas, b->span_s);
    a->memory_bytes = mean(a->memory_bytes, a->span_s, b->memory_bytes, b->span_s);
    a->memory_kills += b->memory_kills;
    a->latency_ms = fmax(a->latency_ms, b->latency_ms); /* fmax skips NaN */
    a->span_s += b->span_s;
    if (b->changed || !a->changed) {
        free(a->reason);
        a->reason = b->reason;
    } else {
        free(b->reason);
    }
    a->changed = a->changed || b->changed;
}

static void add_point(struct series *series, struct series_point point)
{
    struct series_point *last = series->points ? &series->points[series->count - 1] : NULL;
    if (series->bucket_s > 0) /* a hair later, so that 0.3 / 0.1 is 3 */
        point.time_s = floor(point.time_s / series->bucket_s + 1e-9) * series->bucket_s;
    if (last && series->bucket_s > 0 && point.time_s <= last->time_s) {
        merge(last, &point);
        return;
    }
    if (!series->points || series->count == series->cap) {
        series->cap = series->cap ? series->cap * 2 : 64;
        series->points = xrealloc(series->points, series->cap, sizeof(*series->points));
    }
    series->points[series->count++] = point;
}

void series_add(struct series *series, const struct trial_sample *sample)
{
    add_point(series, (struct series_point){
                          .time_s = series->end_s,
                          .span_s = sample->time_s - series->end_s,
                          .requests_per_s = sample->requests_per_s,
                          .replicas = sample->replicas,
                          .request_milli = sample->request_milli,
                          .cpu_utilization = sample->cpu_utilization,
                          .latency_ms = sample->latency_ms,
                          .violation_ratio = sample->violation_ratio,
                          .memory_bytes = sample->memory_bytes,
                          .memory_kills = sample->memory_kills,
                          .changed = sample->changed,
                          .reason = xstrdup(sample->reason ? sample->reason : ""),
                      });
    series->end_s = sample->time_s;
}

void series_widen(const struct series *from, struct series *to)
{
    for (size_t i = 0; i < from->count; i++) {
        struct series_point point = from->points[i];
        point.reason = xstrdup(point.reason);
        add_point(to, point);
    }
}

void series_clear(struct series *series)
{
    for (size_t i = 0; i < series->count; i++)
        free(series->points[i].reason);
    free(series->points);
    series->points = NULL;
    series->count = series->cap = 0;
}
