/* What OpenWhisk measures of its actions, and which of them have pods of the same names. */
#include "figures.h"

#include <math.h>
#include <string.h>

static void alike_free(void *value)
{
    struct alike *a = value;
    free(a->first);
    free(a->second);
    free(a);
}

static void action_free(void *value)
{
    struct action_figures *f = value;
    free(f->latency.items);
    free(f);
}

void figures_free_actions(struct figures *figures)
{
    map_free(&figures->actions, action_free);
    map_free(&figures->ends, alike_free);
}

/* --- names -------------------------------------------------------------------------------------
 */
static void know_end(struct figures *figures, const char *end, const char *name)
{
    struct alike *a = map_get(&figures->ends, end);
    if (!a) {
        a = xcalloc(1, sizeof(*a));
        a->first = xstrdup(name);
        map_put(&figures->ends, end, a);
    } else if (strcmp(a->first, name) != 0 && !a->second) {
        a->second = xstrdup(name);
    }
}

static void know(struct figures *figures, const struct kube_action *action, const char *name)
{
    char ends[KUBE_ACTION_ENDS][KUBE_ACTION_END_SIZE];
    size_t count = kube_action_ends(action, ends);
    for (size_t i = 0; i < count; i++)
        know_end(figures, ends[i], name);
}

void figures_know_action(struct figures *figures, const char *name)
{
    struct kube_action action;
    struct error err;
    if (kube_action_parse(name, &action, &err) == 0)
        know(figures, &action, name);
}

/* The pods of an action in somebody else's shared package bear the caller's name. */
static void know_caller(struct figures *figures, const char *name, const char *caller)
{
    struct kube_action action;
    struct error err;
    if (kube_action_parse(name, &action, &err) < 0 || strlen(caller) >= KUBE_ACTION_PART_SIZE)
        return;
    memcpy(action.namespace_, caller, strlen(caller) + 1);
    action.package[0] = '\0';
    know(figures, &action, name);
}

void figures_keep_actions(struct figures *figures, const struct figures *before)
{
    const char *end;
    void *value;
    for (size_t i = 0; (i = map_next(&before->ends, i, &end, &value)) != 0;) {
        const struct alike *a = value;
        know_end(figures, end, a->first);
        if (a->second)
            know_end(figures, end, a->second);
    }
    figures->knows_actions = before->knows_actions;
}

/* --- figures -----------------------------------------------------------------------------------
 */
static struct action_figures *figures_of(struct figures *figures, const char *name)
{
    struct action_figures *f = map_get(&figures->actions, name);
    if (!f) {
        f = xcalloc(1, sizeof(*f));
        map_put(&figures->actions, name, f);
    }
    return f;
}

static void add_series(struct figures *figures, const struct prom_series *series)
{
    double upper = NAN;
    bool waits = strcmp(prom_label(series, "part"), "wait") == 0;
    const char *exported = prom_label(series, "exported_namespace");
    const char *namespace_ = *exported ? exported : prom_label(series, "namespace");
    const char *path = prom_label(series, "action"), *caller = prom_label(series, "initiator");
    if (series->sample_count == 0 || !*path || (!waits && !figures_bucket_bound(series, &upper)))
        return;
    double rate = series->samples[series->sample_count - 1].value;
    cleanup_free char *name = xasprintf("%s/%s", namespace_, path);
    if (!map_get(&figures->actions, name))
        figures_know_action(figures, name);
    if (*caller && strcmp(caller, namespace_) != 0)
        know_caller(figures, name, caller);
    if (isfinite(rate) && waits)
        figures_of(figures, name)->wait += rate;
    else if (isfinite(rate))
        buckets_add(&figures_of(figures, name)->latency, upper, rate);
}

void figures_add_actions(struct figures *figures, const struct prom_result *result)
{
    for (size_t i = 0; i < result->series_count; i++)
        add_series(figures, &result->series[i]);
    figures->knows_actions = true;
}

/* --- questions ---------------------------------------------------------------------------------
 */
bool observe_knows_actions(const struct observe *o)
{
    return o->newest->knows_actions;
}

static const char *other_than(const struct alike *a, const char *name)
{
    return strcmp(a->first, name) != 0 ? a->first : a->second;
}

const char *observe_action_rival(const struct observe *o, const char *name)
{
    char ends[KUBE_ACTION_ENDS][KUBE_ACTION_END_SIZE];
    struct kube_action action;
    struct error err;
    const char *rival = NULL;
    if (kube_action_parse(name, &action, &err) < 0)
        return NULL;
    size_t count = kube_action_ends(&action, ends);
    for (size_t i = 0; i < count && !rival; i++) {
        const struct alike *a = map_get(&o->newest->ends, ends[i]);
        rival = a ? other_than(a, name) : NULL;
    }
    return rival;
}
