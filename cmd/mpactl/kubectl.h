/* kubectl mpa: what a cluster says of its MPAs, for people. */
#ifndef FAASRL_MPACTL_KUBECTL_H
#define FAASRL_MPACTL_KUBECTL_H

#include "api/api.h"
#include "kube/kube.h"
#include "options.h"

/* --- the command line (kubectl.c) ------------------------------------------------------------ */
struct plugin_options {
    struct args_list names;
    const char *kubeconfig, *context, *cluster, *user, *server, *token, *request_timeout;
    const char *namespace_, *selector, *output, *sort_by, *file;
    struct args_list traces, recommenders;
    const char *html, *json, *policy;
    bool all_namespaces, all, watch, no_headers, help;
    double last, interval_s, since_s;
    int64_t timeout_ms; /* of request_timeout */
};

struct plugin_command {
    const char *name, *alias, *usage, *summary;
    unsigned options;                                 /* groups of options, see kubectl.c */
    int (*run)(const struct plugin_options *options); /* the exit status */
};
extern const struct plugin_command plugin_commands[]; /* ends with a NULL name */
/* The options of one command; the entries live in room for PLUGIN_MAX_OPTIONS of them. */
#define PLUGIN_MAX_OPTIONS 40
struct options_table plugin_table(const struct plugin_command *command,
                                  struct args_option room[PLUGIN_MAX_OPTIONS]);
const struct plugin_command *plugin_find(const char *name); /* or its alias; NULL: there is none */
/* 15 s when the option was not given, or a day for 0, as kubectl takes it. */
int plugin_timeout(struct plugin_options *options, struct error *err);

int plugin_list(const struct plugin_options *options);
int plugin_top(const struct plugin_options *options);
int plugin_explain(const struct plugin_options *options);
int plugin_history(const struct plugin_options *options);
int plugin_pause(const struct plugin_options *options);
int plugin_resume(const struct plugin_options *options);
int plugin_simulate(const struct plugin_options *options);
int plugin_completion(const struct plugin_options *options);

/* --- the cluster (kubectl_cluster.c) --------------------------------------------------------- */
struct cluster {
    uv_loop_t loop;
    struct http *http;
    struct kube_config config;
    struct kube *kube;
    const char *namespace_; /* that is looked in; NULL: all */
    int64_t timeout_ms;
    json_t *answer; /* of the last request */
    int status;
    struct error err;
};
int cluster_open(struct cluster *c, const struct plugin_options *options, struct error *err);
void cluster_close(struct cluster *c);
/* What the API server answers, a new reference. */
json_t *cluster_get(struct cluster *c, const char *path, struct error *err);
json_t *cluster_patch(struct cluster *c, const char *path, const json_t *patch, struct error *err);
/* The path of the MPAs of the namespace that is looked in, or of all. free() it. */
char *cluster_mpas_path(const struct cluster *c);
/* One MPA, or an error that tells where it was looked for. */
json_t *cluster_mpa(struct cluster *c, const char *name, struct error *err);
/* Those that are named, or all that the selector leaves, as an array. */
json_t *cluster_mpas(struct cluster *c, const struct plugin_options *options, struct error *err);
/* Events about an MPA, oldest first, as an array. */
json_t *cluster_events(struct cluster *c, const char *name, struct error *err);
/* Items of all pages of a list. */
json_t *cluster_list(struct cluster *c, const char *path, const char *query, struct error *err);

/* --- what an MPA's object says (kubectl_view.c) ----------------------------------------------- */
const char *view_text(const json_t *object, const char *key); /* "" when it has none */
const char *view_name(const json_t *mpa);
const char *view_namespace(const json_t *mpa);
const char *view_condition(const json_t *mpa, const char *type); /* its status; "" when unknown */
const char *view_recommender(const json_t *mpa);
const char *view_event_time(const json_t *event);
bool view_is_paused(const json_t *mpa);
double view_cpu_milli(const json_t *mpa); /* of a pod, as recommended; NaN: nothing is */
double view_replicas(const json_t *mpa);  /* NaN: unknown */
double view_seen(const json_t *mpa, const char *figure); /* of the last observation; NaN */
double view_latency_ms(const json_t *mpa);
double view_goal_ms(const json_t *mpa); /* NaN: none */
#define VIEW_AGE 16
const char *view_age(const char *time, char text[VIEW_AGE]); /* "5m", as kubectl; "–" */

/* One thing that happened, for history and explain: {time, source, what, message, count}. */
json_t *view_happened(const char *time, const char *source, const char *what, const char *message,
                      json_int_t count);
json_t *view_happened_event(const json_t *event);
json_t *view_happened_condition(const json_t *condition); /* "not Ready" */
json_t *view_happened_decision(const json_t *decision);

/* Objects as --output asks for: json, yaml or name. single: not as a list. */
void view_print(const json_t *objects, const char *output, bool single);
bool view_is_for_machines(
    const char *output); /* not a table or words: --output=json and its like */
void view_print_data(const json_t *data, const char *output); /* json or yaml */

#endif
