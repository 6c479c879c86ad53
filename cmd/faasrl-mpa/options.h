/* Every option of the controller, with its default and its bounds, stands in one table. */
#ifndef FAASRL_OPTIONS_H
#define FAASRL_OPTIONS_H

#include "base/args.h"
#include "controller/controller.h"

struct options {
    const char *kubeconfig, *context;
    struct args_list namespaces; /* empty: all */
    const char *prometheus_url, *prometheus_ca_file, *prometheus_cert_file, *prometheus_key_file;
    const char *prometheus_token_file, *prometheus_user_file, *prometheus_password_file;
    bool prometheus_insecure;
    double prometheus_timeout_s;
    const char *query_latency, *query_cpu, *query_throttled, *query_memory, *query_proxy,
        *query_openwhisk;
    const char *own_queries; /* "any", "namespace" or "off" */
    double interval_s, window_s, status_interval_s, history_s;
    double default_cpu_utilization;
    double resize_cooldown_s, resize_up_factor, resize_down_factor, resize_threshold;
    const char *journal;
    double journal_max_mib;
    const char *policy; /* file; "off": none; NULL: the one beside the program, if it is there */
    double learn_after_s, learn_history_s, learn_effort;
    double writes_per_second, write_burst;
    bool learn, leader_elect, per_mpa_metrics;
    const char *confine; /* "true", "must" or "false" */
    const char *lease_namespace, *lease_name, *identity;
    double shards;
    const char *listen;    /* NULL: where it is usual */
    const char *dashboard; /* "kubernetes" or "off" */
    const char *log_level, *log_format;
    bool simulate;
    bool simulate_stay;
    double simulate_duration_s, simulate_speed, simulate_seed;
    bool help, version;
};

/* Reads argv over the defaults. The strings point into argv. */
int options_parse(int argc, char **argv, struct options *out, struct error *err);
void options_print_help(void);

/* All that does not come from the cluster, or from files. */
struct controller_options options_of_controller(const struct options *options);
/* NULL in *out: none is asked for. */
int options_open_journal(const struct options *options, struct journal **out, struct error *err);
enum observe_own options_own_queries(const struct options *options);
/* NULL: nothing is served. */
const char *options_listen(const struct options *options);
/* By --confine: 1 when this process is confined from now on, 0 when it is not and need not be, -1
 * when it must. plugin: there is a program to run for credentials. */
int options_confine(const struct options *options, bool plugin, struct error *err);

#endif
