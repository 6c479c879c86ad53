/* Gives recommenders a memory at start: one range query for all MPAs that have none yet. */
#include "entry.h"

#include <math.h>

struct job {
    struct controller *controller; /* outlives the job: Prometheus is asked through it */
    struct map pods;               /* namespace/pod → key of the MPA (owned) */
    double offset_s;               /* from wall clock to the recommenders' clock */
    int samples;
};

static void on_sample(void *arg, const char *namespace_, const char *pod, const char *container,
                      double time_s, double cpu_milli)
{
    struct job *job = arg;
    cleanup_free char *name = xasprintf("%s/%s", namespace_, pod);
    const char *key = map_get(&job->pods, name);
    struct entry *e = key ? map_get(&job->controller->entries, key) : NULL;
    if (e == NULL || e->seat.recommender == NULL || !isfinite(cpu_milli))
        return;
    time_s += job->offset_s;
    recommend_seat_remember(&e->seat, container, RECOMMEND_CPU, time_s, cpu_milli);
    journal_remembered(job->controller->options.journal, e->key, container, RECOMMEND_CPU, time_s,
                       cpu_milli);
    job->samples++;
}

static void on_done(void *arg, const struct error *err)
{
    struct job *job = arg;
    if (err)
        log_warn("no usage history: starting without", log_str("why", err->message));
    else
        log_debug("usage history was read", log_int("samples", job->samples));
    map_free(&job->pods, free);
    free(job);
}

static void add_pods(struct job *job, const struct entry *e)
{
    const struct kube_workload *workload;
    size_t n;
    const struct kube_pod **pods = entry_pods(e, &workload, &n);
    for (size_t i = 0; i < n; i++) {
        cleanup_free char *name = xasprintf("%s/%s", pods[i]->namespace_, pods[i]->name);
        free(map_put(&job->pods, name, xstrdup(e->key)));
    }
    free(pods);
}

void history_ask(struct controller *c)
{
    if (c->options.history_s <= 0)
        return;
    struct job *job = xcalloc(1, sizeof(*job));
    job->controller = c;
    job->offset_s = (double)(clock_mono_ms() - clock_wall_ms()) / 1000;
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        if (e->has_history || e->invalid || entry_is_external(e))
            continue;
        const char *why_not;
        entry_choose_recommender(e, &why_not);
        e->has_history = true;
        add_pods(job, e);
    }
    if (job->pods.count == 0) {
        map_free(&job->pods, free);
        free(job);
        return;
    }
    observe_ask_history(c->observe, &(struct observe_history){.span_s = c->options.history_s,
                                                              .step_s = 60,
                                                              .on_sample = on_sample,
                                                              .on_done = on_done,
                                                              .arg = job});
}
