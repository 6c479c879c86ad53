/* The queries: built once, asked together each pass. */
#include "figures.h"

#include <stdio.h>
#include <string.h>

struct pass {                /* one collection under way */
    struct observe *observe; /* NULL: it was freed meanwhile */
    int waiting;
    void (*on_done)(void *arg);
    void *arg;
};

struct ask { /* one query of a pass */
    struct pass *pass;
    enum prom_metric metric;
    char *own_key; /* NULL: a common metric */
    int64_t asked_ms;
};

/* The dots of a name stand for themselves only; nothing else in it means anything. */
static int put_name(struct buf *out, const char *name)
{
    for (; *name; name++)
        if (buf_printf(out, "%s%c", *name == '.' ? "\\" : "", *name) < 0)
            return -1;
    return 0;
}

/* A regular expression that matches exactly these names of namespaces or pods; ".+" for all. */
static char *any_of(const char *const *names)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; names && names[i]; i++)
        if ((i > 0 && buf_puts(&b, "|") < 0) || put_name(&b, names[i]) < 0)
            break;
    if (b.len == 0)
        (void)!buf_puts(&b, ".+");
    return buf_take(&b);
}

struct observe *observe_new(struct prom *prom, const struct observe_options *options,
                            struct error *err)
{
    struct observe *o = xcalloc(1, sizeof(*o));
    o->prom = prom;
    o->window_s = options->window_s;
    o->own = options->own;
    snprintf(o->window, sizeof(o->window), "%.0fs", options->window_s);
    o->newest = figures_new();

    cleanup_free char *namespaces = any_of(options->namespaces);
    const struct prom_variable variables[] = {{"window", o->window}, {"namespaces", namespaces}};
    for (enum prom_metric m = 0; m < PROM_METRIC_COUNT; m++) {
        const char *text = options->templates[m] ? options->templates[m] : prom_template(m);
        o->queries[m] = prom_expand(text, variables, ARRAY_LEN(variables), err);
        if (o->queries[m] == NULL) {
            error_prefix(err, "query for %s", prom_metric_name(m));
            observe_free(o);
            return NULL;
        }
    }
    return o;
}

void observe_free(struct observe *o)
{
    if (o == NULL)
        return;
    if (o->pass)
        o->pass->observe = NULL;
    for (enum prom_metric m = 0; m < PROM_METRIC_COUNT; m++)
        free(o->queries[m]);
    map_free(&o->own_queries, free);
    map_free(&o->own_mistakes, free);
    map_free(&o->actions, NULL);
    figures_free(o->newest);
    figures_free(o->coming);
    free(o);
}

static char *pods_regex(const struct observe_own_query *own)
{
    const char **names = xcalloc(own->pod_count + 1, sizeof(*names));
    for (size_t i = 0; i < own->pod_count; i++)
        names[i] = own->pods[i]->name;
    char *regex = any_of(names);
    free(names);
    return regex;
}

static int check_own(const struct observe *o, const char *query, const char *namespace_,
                     struct error *err)
{
    if (o->own == OBSERVE_OWN_OFF)
        return error_set(err, ERROR_FORBIDDEN,
                         "this installation asks no queries of MPAs: leave out "
                         "spec.goals.latency.query (--own-queries)");
    return o->own == OBSERVE_OWN_NAMESPACE ? prom_query_confined(query, namespace_, err) : 0;
}

void observe_add_own(struct observe *o, const struct observe_own_query *own)
{
    cleanup_free char *pods = pods_regex(own);
    const struct prom_variable variables[] = {
        {"window", o->window},
        {"namespace", own->mpa->namespace_},
        {"namespaces", own->mpa->namespace_},
        {"name", own->mpa->spec.target_name},
        {"pods", pods},
    };
    struct error err = {0};
    char *query = prom_expand(own->mpa->spec.latency_query, variables, ARRAY_LEN(variables), &err);
    if (query && check_own(o, query, own->mpa->namespace_, &err) == 0) {
        free(map_put(&o->own_queries, own->key, query));
        return;
    }
    free(query);
    free(map_put(&o->own_mistakes, own->key, xstrdup(err.message)));
}

void observe_want_proxies(struct observe *o)
{
    o->proxies = true;
}

void observe_want_action(struct observe *o, const char *name)
{
    map_put(&o->actions, name, o);
}

static void take_over(struct observe *o, struct figures *figures)
{
    figures_free(o->newest);
    o->newest = figures;
    o->collected_ms = clock_mono_ms();
}

void observe_give(struct observe *o, const struct observe_figure *given, size_t count)
{
    struct figures *figures = figures_new();
    for (size_t i = 0; i < count; i++)
        figures_put(figures, &given[i]);
    take_over(o, figures);
}

static void finish_pass(struct pass *pass)
{
    struct observe *o = pass->observe;
    if (o) {
        take_over(o, o->coming);
        o->coming = NULL;
        o->pass = NULL;
        pass->on_done(pass->arg);
    }
    free(pass);
}

static void on_series(void *arg, const struct prom_series *series)
{
    const struct ask *ask = arg;
    if (ask->pass->observe)
        figures_add(ask->pass->observe->coming, ask->metric, series);
}

static void fail(struct figures *figures, enum prom_metric metric, const struct error *err)
{
    string_set(&figures->failure[metric], err->message);
    if (metric != PROM_ACTION_BUCKETS)
        figures_drop(figures, metric);
}

static void on_answer(void *arg, const struct prom_result *result, const struct error *err)
{
    struct ask *ask = arg;
    struct observe *o = ask->pass->observe;
    if (o && o->on_query)
        o->on_query(o->on_query_arg, ask->own_key ? "own" : prom_metric_name(ask->metric),
                    (double)(clock_mono_ms() - ask->asked_ms) / 1000, result != NULL);
    if (o && ask->own_key)
        figures_add_own(o->coming, ask->own_key, result, err ? err->message : NULL);
    else if (o && result && ask->metric == PROM_ACTION_BUCKETS)
        figures_add_actions(o->coming, result);
    else if (o && !result)
        fail(o->coming, ask->metric, err);
    if (o && !ask->own_key && ask->metric == PROM_ACTION_BUCKETS && !result)
        figures_keep_actions(o->coming, o->newest);
    struct pass *pass = ask->pass;
    free(ask->own_key);
    free(ask);
    if (--pass->waiting == 0)
        finish_pass(pass);
}

static void ask_for(struct pass *pass, const char *query, enum prom_metric metric,
                    const char *own_key)
{
    struct ask *ask = xcalloc(1, sizeof(*ask));
    *ask = (struct ask){
        .pass = pass, .metric = metric, .own_key = xstrdup(own_key), .asked_ms = clock_mono_ms()};
    pass->waiting++;
    if (own_key || metric == PROM_ACTION_BUCKETS) /* small, and read as a whole */
        prom_query(pass->observe->prom, query, 0, on_answer, ask);
    else
        prom_query_each(pass->observe->prom, query, on_series, on_answer, ask);
}

static bool is_wanted(const struct observe *o, enum prom_metric metric)
{
    return metric == PROM_PROXY_BUCKETS    ? o->proxies
           : metric == PROM_ACTION_BUCKETS ? o->actions.count > 0
                                           : true;
}

void observe_collect(struct observe *o, void (*on_done)(void *arg), void *arg)
{
    struct pass *pass = xcalloc(1, sizeof(*pass));
    *pass = (struct pass){.observe = o, .on_done = on_done, .arg = arg};
    o->pass = pass;
    o->coming = figures_new();
    const char *key;
    void *query;
    for (enum prom_metric m = 0; m < PROM_METRIC_COUNT; m++)
        if (is_wanted(o, m))
            ask_for(pass, o->queries[m], m, NULL);
    o->proxies = false;
    for (size_t i = 0; (i = map_next(&o->actions, i, &key, NULL)) != 0;)
        figures_know_action(o->coming, key);
    map_free(&o->actions, NULL);
    for (size_t i = 0; (i = map_next(&o->own_queries, i, &key, &query)) != 0;)
        ask_for(pass, query, PROM_LATENCY_BUCKETS, key);
    map_free(&o->own_queries, free);
    for (size_t i = 0; (i = map_next(&o->own_mistakes, i, &key, &query)) != 0;)
        figures_add_own(o->coming, key, NULL, query);
    map_free(&o->own_mistakes, free);
}

void observe_on_query(struct observe *o, observe_told on_query, void *arg)
{
    o->on_query = on_query;
    o->on_query_arg = arg;
}

bool observe_busy(const struct observe *o)
{
    return o->pass != NULL;
}

int64_t observe_collected_ms(const struct observe *o)
{
    return o->collected_ms;
}

const char *observe_failure(const struct observe *o, enum prom_metric metric)
{
    return o->newest->failure[metric];
}

/* --- history ---------------------------------------------------------------------------------
 */
static void on_past(void *arg, const struct prom_series *series)
{
    const struct observe_history *h = arg;
    double unit = h->requests ? 1 : 1000;
    for (size_t j = 0; j < series->sample_count; j++)
        h->on_sample(h->arg, prom_label(series, "namespace"), prom_label(series, "pod"),
                     prom_label(series, "container"), series->samples[j].time_s,
                     series->samples[j].value * unit);
}

static void on_history(void *arg, const struct prom_result *result, const struct error *err)
{
    struct observe_history *h = arg;
    (void)result;
    h->on_done(h->arg, err);
    free(h);
}

/* Buckets are cumulative: the largest has all requests. */
static char *past_requests(const struct observe *o)
{
    const char *latency = o->queries[PROM_LATENCY_BUCKETS], *proxy = o->queries[PROM_PROXY_BUCKETS];
    return o->proxies ? xasprintf("max by (namespace, pod) ((%s) or (%s))", latency, proxy)
                      : xasprintf("max by (namespace, pod) (%s)", latency);
}

void observe_ask_history(struct observe *o, const struct observe_history *history)
{
    struct observe_history *copy = xcalloc(1, sizeof(*copy));
    *copy = *history;
    double now_s = (double)clock_wall_ms() / 1000;
    cleanup_free char *query =
        history->requests ? past_requests(o) : xstrdup(o->queries[PROM_CPU_USAGE]);
    prom_query_range_each(o->prom, query, now_s - history->span_s, now_s, history->step_s, on_past,
                          on_history, copy);
}
