#include "events.h"

#include <pthread.h>
#include <string.h>

enum { MOST_ACTIONS = 64, MOST_NAME = 256 };

/* Those of a histogram of Prometheus' Java client, for which nobody has chosen any. */
static const double bounds[] = {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10};

enum { BOUND_COUNT = sizeof(bounds) / sizeof(*bounds) };

struct histogram {
    unsigned long buckets[BOUND_COUNT + 1]; /* the last one has no bound */
    double sum;
};

struct series {
    char labels[4 * MOST_NAME];
    struct histogram duration, wait;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct series series[MOST_ACTIONS];
static size_t series_count;

static bool is_plain(const char *text)
{
    return strlen(text) < MOST_NAME && text[strcspn(text, "\"\\\n")] == '\0';
}

static struct series *series_of(const char *labels)
{
    for (size_t i = 0; i < series_count; i++)
        if (strcmp(series[i].labels, labels) == 0)
            return &series[i];
    if (series_count == MOST_ACTIONS)
        return NULL;
    memcpy(series[series_count].labels, labels, strlen(labels) + 1);
    return &series[series_count++];
}

static void observe(struct histogram *h, double seconds)
{
    size_t bucket = 0;
    while (bucket < BOUND_COUNT && seconds > bounds[bucket])
        bucket++;
    h->buckets[bucket]++;
    h->sum += seconds;
}

bool events_activation(const char *namespace_, const char *initiator, const char *action,
                       double seconds, double wait_s)
{
    char labels[4 * MOST_NAME];
    if (!is_plain(namespace_) || !is_plain(initiator) || !is_plain(action))
        return false;
    snprintf(labels, sizeof(labels), "namespace=\"%s\",initiator=\"%s\",action=\"%s\"", namespace_,
             initiator, action);
    pthread_mutex_lock(&lock);
    struct series *s = series_of(labels);
    if (s) {
        observe(&s->duration, seconds);
        observe(&s->wait, wait_s);
    }
    pthread_mutex_unlock(&lock);
    return s != NULL;
}

static void render(FILE *out, const char *name, const char *labels, const struct histogram *h)
{
    unsigned long count = 0;
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        count += h->buckets[i];
        fprintf(out, "%s_bucket{%s,le=\"%g\"} %lu\n", name, labels, bounds[i], count);
    }
    count += h->buckets[BOUND_COUNT];
    fprintf(out, "%s_bucket{%s,le=\"+Inf\"} %lu\n", name, labels, count);
    fprintf(out, "%s_sum{%s} %.9g\n", name, labels, h->sum);
    fprintf(out, "%s_count{%s} %lu\n", name, labels, count);
}

static void render_all(FILE *out, bool waits)
{
    const char *name =
        waits ? "openwhisk_action_waitTime_seconds" : "openwhisk_action_duration_seconds";
    fprintf(out, "# HELP %s Time that activations %s.\n# TYPE %s histogram\n", name,
            waits ? "waited" : "took", name);
    for (size_t i = 0; i < series_count; i++)
        render(out, name, series[i].labels, waits ? &series[i].wait : &series[i].duration);
}

void events_render(FILE *out)
{
    pthread_mutex_lock(&lock);
    if (series_count > 0) {
        render_all(out, false);
        render_all(out, true);
    }
    pthread_mutex_unlock(&lock);
}
