#include "options.h"
#include "base/confine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const dashboards[] = {"kubernetes", "off", NULL};
static const char *const own_queries[] = {"any", "namespace", "off", NULL};
static const char *const confines[] = {"true", "must", "false", NULL};
static const char *const formats[] = {"logfmt", "json", NULL};

#define AT(field) offsetof(struct options, field)
static const struct args_option table[] = {
    {"kubeconfig", ARGS_TEXT, AT(kubeconfig), NULL, 0, 0, NULL,
     "kubeconfig file; else $KUBECONFIG, ~/.kube/config or the pod's service account"},
    {"context", ARGS_TEXT, AT(context), NULL, 0, 0, NULL, "context of the kubeconfig"},
    {"namespace", ARGS_LIST, AT(namespaces), NULL, 0, 0, NULL,
     "namespace to watch; may be given several times; all when never given"},
    {"prometheus-url", ARGS_TEXT, AT(prometheus_url), "http://127.0.0.1:9090", 0, 0, NULL,
     "where Prometheus answers"},
    {"prometheus-timeout", ARGS_DURATION, AT(prometheus_timeout_s), "10s", 0.1, 300, NULL,
     "time limit of a query"},
    {"prometheus-ca-file", ARGS_TEXT, AT(prometheus_ca_file), NULL, 0, 0, NULL,
     "authority that signed its certificate"},
    {"prometheus-cert-file", ARGS_TEXT, AT(prometheus_cert_file), NULL, 0, 0, NULL,
     "our client certificate"},
    {"prometheus-key-file", ARGS_TEXT, AT(prometheus_key_file), NULL, 0, 0, NULL,
     "key of our client certificate"},
    {"prometheus-token-file", ARGS_TEXT, AT(prometheus_token_file), NULL, 0, 0, NULL,
     "bearer token, read again for each query"},
    {"prometheus-user-file", ARGS_TEXT, AT(prometheus_user_file), NULL, 0, 0, NULL,
     "user name for basic authentication, as a Secret's key is mounted"},
    {"prometheus-password-file", ARGS_TEXT, AT(prometheus_password_file), NULL, 0, 0, NULL,
     "password for basic authentication"},
    {"prometheus-insecure", ARGS_FLAG, AT(prometheus_insecure), NULL, 0, 0, NULL,
     "do not verify Prometheus' certificate"},
    {"query-latency", ARGS_TEXT, AT(query_latency), NULL, 0, 0, NULL,
     "PromQL for latency buckets by namespace, pod, le"},
    {"query-cpu", ARGS_TEXT, AT(query_cpu), NULL, 0, 0, NULL,
     "PromQL for CPU cores used by namespace, pod, container"},
    {"query-throttled", ARGS_TEXT, AT(query_throttled), NULL, 0, 0, NULL,
     "PromQL for the share of CFS periods throttled, likewise"},
    {"query-memory", ARGS_TEXT, AT(query_memory), NULL, 0, 0, NULL,
     "PromQL for bytes of memory used, likewise"},
    {"query-proxy", ARGS_TEXT, AT(query_proxy), NULL, 0, 0, NULL,
     "PromQL for latency buckets of Knative's queue-proxies, as query-latency"},
    {"query-openwhisk", ARGS_TEXT, AT(query_openwhisk), NULL, 0, 0, NULL,
     "PromQL for latency buckets of OpenWhisk's actions by namespace, initiator, action, le"},
    {"own-queries", ARGS_CHOICE, AT(own_queries), "any", 0, 0, own_queries,
     "any, namespace or off: which spec.goals.latency.query of MPAs are asked; namespace: those "
     "that read series of their own namespace only"},
    {"interval", ARGS_DURATION, AT(interval_s), "15s", 0.5, 3600, NULL, "time between decisions"},
    {"window", ARGS_DURATION, AT(window_s), "1m", 1, 3600, NULL, "how far back rates look"},
    {"status-interval", ARGS_DURATION, AT(status_interval_s), "15s", 0.5, 3600, NULL,
     "time between writes of status that only bring newer figures"},
    {"history", ARGS_DURATION, AT(history_s), "1h", 0, 604800, NULL,
     "how far back CPU usage is read when an MPA is first followed; 0: not at all"},
    {"default-cpu-utilization", ARGS_NUMBER, AT(default_cpu_utilization), "70", 1, 1000, NULL,
     "goal of MPAs that state none for cpu, in per cent of the CPU request"},
    {"resize-cooldown", ARGS_DURATION, AT(resize_cooldown_s), "10s", 0, 3600, NULL,
     "no resize so soon after the last one, unless the goal is missed"},
    {"resize-up-factor", ARGS_NUMBER, AT(resize_up_factor), "4", 1.01, 100, NULL,
     "most growth of CPU or memory in one step"},
    {"resize-down-factor", ARGS_NUMBER, AT(resize_down_factor), "0.5", 0.01, 0.99, NULL,
     "most shrinking of CPU or memory in one step"},
    {"resize-threshold", ARGS_NUMBER, AT(resize_threshold), "0.1", 0, 1, NULL,
     "relative change below which a resize is not worth it"},
    {"journal", ARGS_TEXT, AT(journal), NULL, 0, 0, NULL,
     "file in which every decision is kept, for mpactl explain and mpactl replay"},
    {"journal-max", ARGS_NUMBER, AT(journal_max_mib), "64", 1, 1048576, NULL,
     "MiB at which it becomes FILE.1 and a new one is begun"},
    {"policy", ARGS_TEXT, AT(policy), NULL, 0, 0, NULL,
     "what the recommender ppo has learned; the file policy beside the program when not given; "
     "\"off\": none"},
    {"learn", ARGS_CHOICE, AT(learn), "true", 0, 0, NULL,
     "true or false: find a policy of its own for each MPA that asks for ppo"},
    {"learn-after", ARGS_DURATION, AT(learn_after_s), "10m", 1, 43200, NULL,
     "how much of its load must be known for that"},
    {"learn-history", ARGS_DURATION, AT(learn_history_s), "12h", 0, 43200, NULL,
     "how far back that is read from Prometheus; 0: not at all"},
    {"learn-effort", ARGS_NUMBER, AT(learn_effort), "8", 1, 1000, NULL,
     "simulated spans of 3 hours that each change of a policy is tried on"},
    {"writes-per-second", ARGS_NUMBER, AT(writes_per_second), "50", 1, 10000, NULL,
     "our own limit on writes to the API server"},
    {"write-burst", ARGS_NUMBER, AT(write_burst), "100", 1, 10000, NULL,
     "how many may come at once"},
    {"leader-elect", ARGS_CHOICE, AT(leader_elect), "true", 0, 0, NULL,
     "true or false: write only while holding the lease"},
    {"lease-namespace", ARGS_TEXT, AT(lease_namespace), NULL, 0, 0, NULL,
     "namespace of the lease; our own when not given"},
    {"lease-name", ARGS_TEXT, AT(lease_name), "faasrl-mpa", 0, 0, NULL, "name of the lease"},
    {"shards", ARGS_NUMBER, AT(shards), "1", 1, SHARDS_MAX, NULL,
     "shards that replicas divide among them, each by a lease of its own; the same for all "
     "replicas"},
    {"identity", ARGS_TEXT, AT(identity), NULL, 0, 0, NULL,
     "our name in the lease; host name and a random part when not given"},
    {"listen", ARGS_TEXT, AT(listen), NULL, 0, 0, NULL,
     "ADDRESS:PORT of /metrics, /healthz, /readyz and the dashboard, IPv6 in brackets; \":8080\" "
     "when not given; \"off\": none"},
    {"dashboard", ARGS_CHOICE, AT(dashboard), "kubernetes", 0, 0, dashboards,
     "kubernetes: a page at / for those whose token may list MPAs; off: none"},
    {"per-mpa-metrics", ARGS_CHOICE, AT(per_mpa_metrics), "true", 0, 0, NULL,
     "true or false: series for each MPA at /metrics"},
    {"confine", ARGS_CHOICE, AT(confine), "true", 0, 0, confines,
     "true, must or false: make no system call but those that are needed (seccomp), and run no "
     "program; with must it ends where that cannot be"},
    {"log-level", ARGS_CHOICE, AT(log_level), "info", 0, 0, levels, "debug, info, warn or error"},
    {"log-format", ARGS_CHOICE, AT(log_format), "logfmt", 0, 0, formats, "logfmt or json"},
    {"simulate", ARGS_FLAG, AT(simulate), NULL, 0, 0, NULL,
     "run on a simulated cluster instead, with functions under load, and tell how it went"},
    {"simulate-duration", ARGS_DURATION, AT(simulate_duration_s), "24h", 60, 31536000, NULL,
     "how long, in simulated time"},
    {"simulate-speed", ARGS_NUMBER, AT(simulate_speed), "3600", 0, 1e9, NULL,
     "simulated seconds in a second; 0: as fast as possible"},
    {"simulate-seed", ARGS_NUMBER, AT(simulate_seed), "1", 0, 9007199254740992, NULL,
     "of everything random: the same seed gives the same run"},
    {"simulate-stay", ARGS_FLAG, AT(simulate_stay), NULL, 0, 0, NULL,
     "go on serving the dashboard after the end, until Ctrl-C"},
    {"version", ARGS_FLAG, AT(version), NULL, 0, 0, NULL, "print the version and end"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

static int check_shards(const struct options *o, struct error *err)
{
    if (o->shards != floor(o->shards))
        return error_set(err, ERROR_INVALID, "--shards: %g is not a whole number", o->shards);
    if (o->shards > 1 && !o->leader_elect)
        return error_set(err, ERROR_INVALID,
                         "--shards: with --leader-elect=false there is no lease to hold one by; "
                         "leave one of the two out");
    return 0;
}

int options_parse(int argc, char **argv, struct options *out, struct error *err)
{
    *out = (struct options){0};
    if (args_parse(table, ARRAY_LEN(table), argc, argv, out, err) < 0)
        return -1;
    return check_shards(out, err);
}

void options_print_help(void)
{
    puts("faasrl-mpa: keeps the latency goals of MultidimPodAutoscalers\n\nOptions:");
    args_print_help(table, ARRAY_LEN(table));
}

static bool is_on_loopback(const char *listen)
{
    return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]:", 6) == 0;
}

/* A simulated cluster has nothing to hide, but is no service for others either. */
static enum controller_dashboard dashboard_of(const struct options *o)
{
    const char *listen = options_listen(o);
    if (!listen || strcmp(o->dashboard, "off") == 0)
        return DASHBOARD_OFF;
    if (o->simulate)
        return is_on_loopback(listen) ? DASHBOARD_OPEN : DASHBOARD_OFF;
    return DASHBOARD_KUBERNETES;
}

struct controller_options options_of_controller(const struct options *o)
{
    struct learn_rules learn = learn_rules_default;
    learn.after_s = o->learn_after_s;
    return (struct controller_options){
        .learn = learn,
        .learn_history_s = o->learn_history_s,
        .learn_effort = (size_t)o->learn_effort,
        .namespaces = o->namespaces.items,
        .interval_s = o->interval_s,
        .status_interval_s = o->status_interval_s,
        .history_s = o->history_s,
        .pass_limit_s = 5 * o->interval_s + 60 + o->prometheus_timeout_s,
        .per_mpa_metrics = o->per_mpa_metrics,
        .dashboard = dashboard_of(o),
        .default_cpu_utilization = (int)o->default_cpu_utilization,
        .limits = {.resize_cooldown_s = o->resize_cooldown_s,
                   .resize_up_factor = o->resize_up_factor,
                   .resize_down_factor = o->resize_down_factor,
                   .resize_threshold = o->resize_threshold},
        .leader_election = o->leader_elect,
        .lease_name = o->lease_name,
        .shards = (unsigned)o->shards,
    };
}

int options_open_journal(const struct options *o, struct journal **out, struct error *err)
{
    struct controller_options controller = options_of_controller(o);
    struct journal_setting setting = {
        .limits = controller.limits,
        .default_cpu_utilization = controller.default_cpu_utilization,
    };
    *out = NULL;
    if (o->journal == NULL)
        return 0;
    *out = journal_open(o->journal, (size_t)(o->journal_max_mib * 1048576), &setting, err);
    return *out ? 0 : error_prefix(err, "--journal");
}

enum observe_own options_own_queries(const struct options *o)
{
    return strcmp(o->own_queries, "off") == 0         ? OBSERVE_OWN_OFF
           : strcmp(o->own_queries, "namespace") == 0 ? OBSERVE_OWN_NAMESPACE
                                                      : OBSERVE_OWN_ANY;
}

const char *options_listen(const struct options *o)
{
    if (!o->listen)
        return o->simulate ? "127.0.0.1:8080" : ":8080";
    return *o->listen && strcmp(o->listen, "off") != 0 ? o->listen : NULL;
}

/* A credential plugin is a program to run, with needs of its own. */
int options_confine(const struct options *o, bool plugin, struct error *err)
{
    struct error why = {0};
    if (strcmp(o->confine, "false") == 0)
        return 0;
    if (plugin)
        error_set(&why, ERROR_INVALID, "the kubeconfig names a program to run for credentials");
    else if (confine(&why) == 0)
        return 1;
    if (strcmp(o->confine, "must") == 0)
        return error_set(err, why.code, "--confine=must: %s", why.message);
    log_warn("not confined", log_str("error", why.message));
    return 0;
}
