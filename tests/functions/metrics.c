#include "metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "events.h"
#include "workloads.h"

static const double bounds[] = {.001, .0025, .005, .01, .025, .05, .075, .1,  .15, .2,
                                .25,  .3,    .4,   .5,  .75,  1,   1.5,  2.5, 5,   10};

enum { BOUND_COUNT = sizeof(bounds) / sizeof(*bounds) };

struct histogram {
    unsigned long buckets[BOUND_COUNT + 1]; /* the last one has no bound */
    double sum;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct histogram histograms[WORKLOAD_COUNT];
static unsigned in_flight;
static unsigned long rejected;

bool metrics_enter(unsigned limit)
{
    pthread_mutex_lock(&lock);
    bool entered = in_flight < limit;
    if (entered)
        in_flight++;
    else
        rejected++;
    pthread_mutex_unlock(&lock);
    return entered;
}

void metrics_leave(void)
{
    pthread_mutex_lock(&lock);
    in_flight--;
    pthread_mutex_unlock(&lock);
}

void metrics_observe(size_t workload, double seconds)
{
    size_t bucket = 0;
    while (bucket < BOUND_COUNT && seconds > bounds[bucket])
        bucket++;

    pthread_mutex_lock(&lock);
    histograms[workload].buckets[bucket]++;
    histograms[workload].sum += seconds;
    pthread_mutex_unlock(&lock);
}

static void render_histogram(FILE *out, const char *function, const struct histogram *histogram)
{
    static const char name[] = "http_request_duration_seconds";
    unsigned long count = 0;

    for (size_t i = 0; i < BOUND_COUNT; i++) {
        count += histogram->buckets[i];
        fprintf(out, "%s_bucket{function=\"%s\",le=\"%g\"} %lu\n", name, function, bounds[i],
                count);
    }
    count += histogram->buckets[BOUND_COUNT];
    fprintf(out, "%s_bucket{function=\"%s\",le=\"+Inf\"} %lu\n", name, function, count);
    fprintf(out, "%s_sum{function=\"%s\"} %.9g\n", name, function, histogram->sum);
    fprintf(out, "%s_count{function=\"%s\"} %lu\n", name, function, count);
}

static void render_header(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void render_all(FILE *out)
{
    render_header(out, "http_request_duration_seconds", "histogram",
                  "Time from the arrival of a request to its answer.");
    for (size_t i = 0; i < WORKLOAD_COUNT; i++)
        render_histogram(out, workloads[i].name, &histograms[i]);
    render_header(out, "http_requests_in_flight", "gauge", "Calls being computed.");
    fprintf(out, "http_requests_in_flight %u\n", in_flight);
    render_header(out, "http_requests_rejected_total", "counter",
                  "Calls refused because too many were in flight.");
    fprintf(out, "http_requests_rejected_total %lu\n", rejected);
    render_header(out, "process_cpu_seconds_total", "counter", "CPU time used.");
    fprintf(out, "process_cpu_seconds_total %.6f\n", cpu_seconds());
}

char *metrics_render(size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (out == NULL)
        return NULL;

    pthread_mutex_lock(&lock);
    render_all(out);
    pthread_mutex_unlock(&lock);
    events_render(out);
    return fclose(out) == 0 ? text : NULL;
}
