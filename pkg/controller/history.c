/* Gives recommenders a memory at start: one range query for all MPAs that have none yet, and two
 * farther back for those that learn. */
#include "entry.h"

#include <math.h>
#include <string.h>

#define STEP_S       60
#define MOST_SAMPLES 2e6 /* of an answer: with many pods less far back */

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

static void ask_memory(struct controller *c)
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
                                                              .step_s = STEP_S,
                                                              .on_sample = on_sample,
                                                              .on_done = on_done,
                                                              .arg = job});
}

/* --- of those that learn ------------------------------------------------------------------------
 * Pods that are long gone count, too: they are told by their names. */
struct past {
    struct controller *controller;
    struct map targets; /* namespace/parts/name → key of the MPA (owned) */
    double offset_s;
    double asked_s; /* by the recommenders' clock: nothing is later */
    int waiting;    /* answers */
};

#define MOST_PARTS 4

struct question {
    struct past *past;
    bool requests;
};

/* How many parts a pod's name has beyond that of its workload. Others than these mostly make
 * ReplicaSets, as Deployments and Rollouts do. */
static int parts_of(const struct api_spec *spec)
{
    static const struct {
        const char *api_version, *kind;
        int parts;
    } known[] = {
        {"apps/v1", "StatefulSet", 1},      {"apps/v1", "ReplicaSet", 1},
        {KUBE_KNATIVE, "Service", 4}, /* name-00001-deployment-hash-id */
        {KUBE_KNATIVE, "Configuration", 4}, {KUBE_KNATIVE, "Revision", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].kind, spec->target_kind) == 0 &&
            strcmp(known[i].api_version, spec->target_api_version) == 0)
            return known[i].parts;
    return 2;
}

static struct entry *find_owner(const struct past *past, const char *namespace_, const char *pod)
{
    cleanup_free char *name = xstrdup(pod);
    for (int parts = 1; parts <= MOST_PARTS; parts++) {
        char *dash = strrchr(name, '-');
        if (!dash)
            return NULL;
        *dash = '\0';
        cleanup_free char *target = xasprintf("%s/%d/%s", namespace_, parts, name);
        const char *key = map_get(&past->targets, target);
        if (key)
            return map_get(&past->controller->entries, key);
    }
    return NULL;
}

static void on_past_sample(void *arg, const char *namespace_, const char *pod,
                           const char *container, double time_s, double value)
{
    const struct question *q = arg;
    struct entry *e = find_owner(q->past, namespace_, pod);
    time_s += q->past->offset_s;
    if (e && isfinite(value) && time_s <= q->past->asked_s + STEP_S)
        learning_remember(e, container, time_s, STEP_S, q->requests ? value : 0,
                          q->requests ? 0 : value);
}

static void tell_all(const struct past *past)
{
    void *key;
    for (size_t i = 0; (i = map_next(&past->targets, i, NULL, &key)) != 0;) {
        struct entry *e = map_get(&past->controller->entries, key);
        if (e)
            learning_past_read(e);
    }
}

static void free_past(struct past *past)
{
    map_free(&past->targets, free);
    free(past);
}

static void on_past_done(void *arg, const struct error *err)
{
    struct question *q = arg;
    struct past *past = q->past;
    if (err)
        log_warn("no history to learn from", log_str("why", err->message));
    free(q);
    if (--past->waiting > 0)
        return;
    if (err == NULL || err->code != ERROR_CANCELLED) /* else the controller is gone */
        tell_all(past);
    free_past(past);
}

static void ask_question(struct past *past, double span_s, bool requests)
{
    struct question *q = xcalloc(1, sizeof(*q));
    *q = (struct question){past, requests};
    past->waiting++;
    observe_ask_history(past->controller->observe,
                        &(struct observe_history){.requests = requests,
                                                  .span_s = span_s,
                                                  .step_s = STEP_S,
                                                  .on_sample = on_past_sample,
                                                  .on_done = on_past_done,
                                                  .arg = q});
}

static size_t count_pods(const struct controller *c)
{
    size_t sum = 0, n;
    void *value;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        const struct kube_workload *workload;
        free(entry_pods(value, &workload, &n));
        sum += n;
    }
    return sum;
}

static void add_target(struct past *past, const struct entry *e)
{
    const struct api_spec *spec = &e->mpa.spec;
    cleanup_free char *target =
        xasprintf("%s/%d/%s", e->mpa.namespace_, parts_of(spec), spec->target_name);
    free(map_put(&past->targets, target, xstrdup(e->key)));
}

static void ask_past(struct controller *c)
{
    double span_s = c->options.learn_history_s;
    struct past *past = xcalloc(1, sizeof(*past));
    void *value;
    past->controller = c;
    past->asked_s = (double)clock_mono_ms() / 1000;
    past->offset_s = past->asked_s - (double)clock_wall_ms() / 1000;
    for (size_t i = 0; (i = map_next(&c->entries, i, NULL, &value)) != 0;) {
        struct entry *e = value;
        const char *why_not;
        if (e->invalid || entry_is_external(e) || e->mpa.uid == NULL)
            continue;
        entry_choose_recommender(e, &why_not);
        learning_follow(e);
        if (!learning_wants_past(e))
            continue;
        learning_ask_past(e, span_s > 0);
        add_target(past, e);
    }
    if (past->targets.count == 0 || span_s <= 0) {
        free_past(past);
        return;
    }
    double most = MOST_SAMPLES / (double)(count_pods(c) + 1);
    span_s = fmin(span_s, fmax(most, 10) * STEP_S);
    ask_question(past, span_s, true);
    ask_question(past, span_s, false);
}

void history_ask(struct controller *c)
{
    ask_memory(c);
    if (c->learner)
        ask_past(c);
}
