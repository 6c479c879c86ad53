#include "events.h"

#include <pthread.h>
#include <string.h>

enum { MOST_ACTIONS = 64, MOST_NAME = 256 };

/* Those of a histogram of Prometheus' Java client, for which nobody has chosen any. */
static const double bounds[] = {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10};

enum { BOUND_COUNT = sizeof(bounds) / sizeof(*bounds) };

struct series {
    char labels[4 * MOST_NAME];
    unsigned long buckets[BOUND_COUNT + 1]; /* the last one has no bound */
    double sum;
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

static void observe(struct series *s, double seconds)
{
    size_t bucket = 0;
    while (bucket < BOUND_COUNT && seconds > bounds[bucket])
        bucket++;
    s->buckets[bucket]++;
    s->sum += seconds;
}

bool events_activation(const char *namespace_, const char *initiator, const char *action,
                       double seconds)
{
    char labels[4 * MOST_NAME];
    if (!is_plain(namespace_) || !is_plain(initiator) || !is_plain(action))
        return false;
    snprintf(labels, sizeof(labels), "namespace=\"%s\",initiator=\"%s\",action=\"%s\"", namespace_,
             initiator, action);
    pthread_mutex_lock(&lock);
    struct series *s = series_of(labels);
    if (s)
        observe(s, seconds);
    pthread_mutex_unlock(&lock);
    return s != NULL;
}

static void render(FILE *out, const struct series *s)
{
    static const char name[] = "openwhisk_action_duration_seconds";
    unsigned long count = 0;
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        count += s->buckets[i];
        fprintf(out, "%s_bucket{%s,le=\"%g\"} %lu\n", name, s->labels, bounds[i], count);
    }
    count += s->buckets[BOUND_COUNT];
    fprintf(out, "%s_bucket{%s,le=\"+Inf\"} %lu\n", name, s->labels, count);
    fprintf(out, "%s_sum{%s} %.9g\n", name, s->labels, s->sum);
    fprintf(out, "%s_count{%s} %lu\n", name, s->labels, count);
}

void events_render(FILE *out)
{
    pthread_mutex_lock(&lock);
    if (series_count > 0)
        fputs("# HELP openwhisk_action_duration_seconds Time that activations took.\n"
              "# TYPE openwhisk_action_duration_seconds histogram\n",
              out);
    for (size_t i = 0; i < series_count; i++)
        render(out, &series[i]);
    pthread_mutex_unlock(&lock);
}
