/* kubectl mpa: what a cluster says of its MPAs, for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "journal.h"
#include "kube/kube.h"
#include "mpactl.h"
#include "table.h"

struct plugin_options {
    const char *kubeconfig, *context, *namespace_;
    double last;
    bool help;
};

#define AT(field) offsetof(struct plugin_options, field)
static const struct args_option table[] = {
    {"namespace", ARGS_TEXT, AT(namespace_), NULL, 0, 0, NULL,
     "of the MPA, or -n; that of the context when not given"},
    {"kubeconfig", ARGS_TEXT, AT(kubeconfig), NULL, 0, 0, NULL, "file; as kubectl when not given"},
    {"context", ARGS_TEXT, AT(context), NULL, 0, 0, NULL, "of the kubeconfig"},
    {"last", ARGS_NUMBER, AT(last), "20", 1, 1e6, NULL, "so many of the last events"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

/* --- asking ------------------------------------------------------------------------------------
 */
struct cluster {
    uv_loop_t loop;
    struct http *http;
    struct kube_config config;
    struct kube *kube;
    json_t *answer;
    struct error err;
};

static int open_cluster(struct cluster *c, const struct plugin_options *o, struct error *err)
{
    *c = (struct cluster){0};
    uv_loop_init(&c->loop);
    c->http = http_new(&c->loop, "kubectl-mpa/" FAASRL_VERSION);
    if (kube_config_load(o->kubeconfig, o->context, &c->config, err) < 0)
        return -1;
    c->kube = kube_new(&c->loop, c->http, &c->config, NULL, err);
    return c->kube ? 0 : -1;
}

static void close_cluster(struct cluster *c)
{
    if (c->kube)
        kube_free(c->kube);
    http_free(c->http);
    kube_config_clear(&c->config);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    uv_loop_close(&c->loop);
}

static void on_answer(void *arg, const struct kube_response *response)
{
    struct cluster *c = arg;
    c->err = response->error;
    c->answer = response->error.code ? NULL : json_incref((json_t *)(uintptr_t)response->json);
    uv_stop(&c->loop);
}

/* A new reference. */
static json_t *get(struct cluster *c, const char *path, struct error *err)
{
    kube_send(c->kube, &(struct kube_request){.path = path, .on_done = on_answer, .arg = c});
    uv_run(&c->loop, UV_RUN_DEFAULT);
    *err = c->err;
    return c->answer;
}

/* --- telling -----------------------------------------------------------------------------------
 */
static const char *text_at(const json_t *object, const char *key)
{
    return json_str(json_object_get(object, key));
}

static void print_now(const json_t *status)
{
    const json_t *decision = json_object_get(status, "lastDecision");
    const json_t *seen = json_object_get(decision, "observation");
    char latency[TABLE_TEXT];
    printf("  now: %lld replica(s)",
           (long long)json_integer_value(json_object_get(status, "currentReplicas")));
    size_t i;
    const json_t *item;
    json_array_foreach (json_path(status, "recommendation", "containerRecommendations", NULL), i,
                        item)
        printf(", %s %s", text_at(item, "containerName"),
               json_str(json_path(item, "target", "cpu", NULL)));
    double latency_ms = json_number_value(json_object_get(seen, "latencyMs"));
    if (latency_ms > 0)
        printf("; latency %s", table_duration(latency_ms, latency));
    const json_t *rate = json_object_get(seen, "requestsPerSecond");
    if (rate)
        printf(", %.3g requests/s", json_number_value(rate));
    if (decision)
        printf("\n  last decision: %s (%s)\n", text_at(decision, "reason"),
               text_at(decision, "time"));
    else
        printf("\n  nothing has been decided yet\n");
}

/* What is not as it should be: Ready and its like are to be true, others false. */
static void print_conditions(const json_t *status)
{
    static const char *const wanted[] = {"Ready", "RecommendationProvided", "ScalingActive",
                                         "AbleToScale"};
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(status, "conditions"), i, item) {
        const char *type = text_at(item, "type");
        bool is_true = strcmp(text_at(item, "status"), "True") == 0, should = false;
        for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
            should |= strcmp(type, wanted[k]) == 0;
        if (is_true != should)
            printf("  %s%s since %s: %s\n", is_true ? "" : "not ", type,
                   text_at(item, "lastTransitionTime"), text_at(item, "message"));
    }
}

static const char *time_of(const json_t *event)
{
    const char *last = text_at(event, "lastTimestamp");
    return *last ? last : text_at(event, "eventTime");
}

static int compare_events(const void *a, const void *b)
{
    return strcmp(time_of(*(json_t *const *)a), time_of(*(json_t *const *)b));
}

static void print_events(const json_t *list, size_t last)
{
    size_t n = json_array_size(list), i;
    cleanup_free const json_t **events = xcalloc(n + 1, sizeof(*events));
    for (i = 0; i < n; i++)
        events[i] = json_array_get(list, i);
    qsort(events, n, sizeof(*events), compare_events);
    if (n == 0)
        printf("  no events: nothing was changed of late\n");
    if (n > last)
        printf("  … %zu before these\n", n - last);
    for (i = n > last ? n - last : 0; i < n; i++) {
        long long count = (long long)json_integer_value(json_object_get(events[i], "count"));
        char times[32] = "";
        if (count > 1)
            snprintf(times, sizeof(times), " (%lld times)", count);
        printf("  %s  %-17s  %s%s\n", time_of(events[i]), text_at(events[i], "reason"),
               text_at(events[i], "message"), times);
    }
}

static int print_mpa(const json_t *object, const json_t *events, size_t last, struct error *err)
{
    struct api_mpa mpa;
    if (api_parse(object, &mpa, err) < 0)
        return -1;
    cleanup_free char *heading = journal_heading(&mpa, mpa.spec.recommender);
    printf("%s\n", heading);
    print_now(json_object_get(object, "status"));
    print_conditions(json_object_get(object, "status"));
    print_events(json_object_get(events, "items"), last);
    api_clear(&mpa);
    return 0;
}

static int explain(const char *name, const struct plugin_options *o, struct error *err)
{
    struct cluster c;
    int result = -1;
    if (open_cluster(&c, o, err) == 0) {
        const char *in = o->namespace_ ? o->namespace_ : c.config.namespace_;
        cleanup_free char *path = xasprintf(
            "/apis/" API_GROUP "/" API_VERSION "/namespaces/%s/" API_PLURAL "/%s", in, name);
        cleanup_free char *about =
            xasprintf("/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind%%3D" API_KIND
                      "%%2CinvolvedObject.name%%3D%s",
                      in, name);
        cleanup_json json_t *object = get(&c, path, err);
        cleanup_json json_t *events = object ? get(&c, about, err) : NULL;
        if (events)
            result = print_mpa(object, events, (size_t)o->last, err);
    }
    close_cluster(&c);
    return result;
}

/* --- the command line --------------------------------------------------------------------------
 */
static int print_help(int status)
{
    fputs("kubectl mpa explain NAME [OPTION…]\n\n"
          "Tells what was decided on a MultidimPodAutoscaler, and why.\n\nOptions:\n",
          status ? stderr : stdout);
    if (!status)
        args_print_help(table, ARRAY_LEN(table));
    return status;
}

/* A name goes into a path. */
static bool is_name(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '\0';
}

int kubectl_mpa(int argc, char **argv)
{
    struct plugin_options options = {0};
    struct error err = {0};
    const char *name = NULL;
    int kept = 1;
    if (argc < 2 || strcmp(argv[1], "explain") != 0)
        return print_help(argc > 1 && strcmp(argv[1], "--help") == 0 ? EXIT_FINE : EXIT_USAGE);
    for (int i = 2; i < argc; i++) { /* as kubectl: names and options in any order, -n for short */
        if (strcmp(argv[i], "-n") == 0)
            argv[i] = (char *)"--namespace";
        bool is_value = i > 2 && strncmp(argv[i - 1], "--", 2) == 0 && !strchr(argv[i - 1], '=');
        if (argv[i][0] != '-' && !is_value && !name)
            name = argv[i];
        else
            argv[++kept - 1] = argv[i];
    }
    if (args_parse(table, ARRAY_LEN(table), kept, argv, &options, &err) < 0) {
        mpactl_error("explain: %s: see kubectl mpa explain --help", err.message);
        return EXIT_USAGE;
    }
    if (options.help)
        return print_help(EXIT_FINE);
    if (!name || !is_name(name) || (options.namespace_ && !is_name(options.namespace_))) {
        mpactl_error("explain: %s: give the name of an MPA", name ? name : "no name");
        return EXIT_USAGE;
    }
    if (explain(name, &options, &err) == 0)
        return EXIT_FINE;
    mpactl_error("explain: %s", err.message);
    return EXIT_FAILED;
}
