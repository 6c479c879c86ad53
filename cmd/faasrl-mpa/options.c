#include "options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum kind { TEXT, CHOICE, FLAG, NUMBER, DURATION /* in seconds */, NAMESPACES };

struct option {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *otherwise;    /* the default, as it would be typed */
    double least, most;       /* NUMBER and DURATION */
    const char *const *words; /* CHOICE */
    const char *help;
};

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const formats[] = {"logfmt", "json", NULL};

#define AT(field) offsetof(struct options, field)
static const struct option table[] = {
    {"kubeconfig", TEXT, AT(kubeconfig), NULL, 0, 0, NULL,
     "kubeconfig file; else $KUBECONFIG, ~/.kube/config or the pod's service account"},
    {"context", TEXT, AT(context), NULL, 0, 0, NULL, "context of the kubeconfig"},
    {"namespace", NAMESPACES, AT(namespaces), NULL, 0, 0, NULL,
     "namespace to watch; may be given several times; all when never given"},
    {"prometheus-url", TEXT, AT(prometheus_url), "http://127.0.0.1:9090", 0, 0, NULL,
     "where Prometheus answers"},
    {"prometheus-timeout", DURATION, AT(prometheus_timeout_s), "10s", 0.1, 300, NULL,
     "time limit of a query"},
    {"prometheus-ca-file", TEXT, AT(prometheus_ca_file), NULL, 0, 0, NULL,
     "authority that signed its certificate"},
    {"prometheus-cert-file", TEXT, AT(prometheus_cert_file), NULL, 0, 0, NULL,
     "our client certificate"},
    {"prometheus-key-file", TEXT, AT(prometheus_key_file), NULL, 0, 0, NULL,
     "key of our client certificate"},
    {"prometheus-token-file", TEXT, AT(prometheus_token_file), NULL, 0, 0, NULL,
     "bearer token, read again for each query"},
    {"prometheus-user-file", TEXT, AT(prometheus_user_file), NULL, 0, 0, NULL,
     "user name for basic authentication, as a Secret's key is mounted"},
    {"prometheus-password-file", TEXT, AT(prometheus_password_file), NULL, 0, 0, NULL,
     "password for basic authentication"},
    {"prometheus-insecure", FLAG, AT(prometheus_insecure), NULL, 0, 0, NULL,
     "do not verify Prometheus' certificate"},
    {"query-latency", TEXT, AT(query_latency), NULL, 0, 0, NULL,
     "PromQL for latency buckets by namespace, pod, le"},
    {"query-cpu", TEXT, AT(query_cpu), NULL, 0, 0, NULL,
     "PromQL for CPU cores used by namespace, pod, container"},
    {"query-throttled", TEXT, AT(query_throttled), NULL, 0, 0, NULL,
     "PromQL for the share of CFS periods throttled, likewise"},
    {"query-memory", TEXT, AT(query_memory), NULL, 0, 0, NULL,
     "PromQL for bytes of memory used, likewise"},
    {"interval", DURATION, AT(interval_s), "15s", 0.5, 3600, NULL, "time between decisions"},
    {"window", DURATION, AT(window_s), "1m", 1, 3600, NULL, "how far back rates look"},
    {"status-interval", DURATION, AT(status_interval_s), "15s", 0.5, 3600, NULL,
     "time between writes of status that only bring newer figures"},
    {"history", DURATION, AT(history_s), "1h", 0, 604800, NULL,
     "how far back CPU usage is read when an MPA is first followed; 0: not at all"},
    {"default-cpu-utilization", NUMBER, AT(default_cpu_utilization), "70", 1, 1000, NULL,
     "goal of MPAs that state none for cpu, in per cent of the CPU request"},
    {"resize-cooldown", DURATION, AT(resize_cooldown_s), "10s", 0, 3600, NULL,
     "no resize so soon after the last one, unless the goal is missed"},
    {"resize-up-factor", NUMBER, AT(resize_up_factor), "4", 1.01, 100, NULL,
     "most growth of CPU or memory in one step"},
    {"resize-down-factor", NUMBER, AT(resize_down_factor), "0.5", 0.01, 0.99, NULL,
     "most shrinking of CPU or memory in one step"},
    {"resize-threshold", NUMBER, AT(resize_threshold), "0.1", 0, 1, NULL,
     "relative change below which a resize is not worth it"},
    {"writes-per-second", NUMBER, AT(writes_per_second), "50", 1, 10000, NULL,
     "our own limit on writes to the API server"},
    {"write-burst", NUMBER, AT(write_burst), "100", 1, 10000, NULL, "how many may come at once"},
    {"leader-elect", CHOICE, AT(leader_elect), "true", 0, 0, NULL,
     "true or false: write only while holding the lease"},
    {"lease-namespace", TEXT, AT(lease_namespace), NULL, 0, 0, NULL,
     "namespace of the lease; our own when not given"},
    {"lease-name", TEXT, AT(lease_name), "faasrl-mpa", 0, 0, NULL, "name of the lease"},
    {"identity", TEXT, AT(identity), NULL, 0, 0, NULL,
     "our name in the lease; host name and a random part when not given"},
    {"listen", TEXT, AT(listen), ":8080", 0, 0, NULL,
     "ADDRESS:PORT of /metrics, /healthz and /readyz, IPv6 in brackets; \"off\": none"},
    {"per-mpa-metrics", CHOICE, AT(per_mpa_metrics), "true", 0, 0, NULL,
     "true or false: series for each MPA at /metrics"},
    {"log-level", CHOICE, AT(log_level), "info", 0, 0, levels, "debug, info, warn or error"},
    {"log-format", CHOICE, AT(log_format), "logfmt", 0, 0, formats, "logfmt or json"},
    {"version", FLAG, AT(version), NULL, 0, 0, NULL, "print the version and end"},
    {"help", FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

static int set_number(const struct option *o, const char *text, double *slot, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !isfinite(value) || value < o->least || value > o->most)
        return error_set(err, ERROR_INVALID, "--%s: \"%s\" is no number from %g to %g", o->name,
                         text, o->least, o->most);
    *slot = value;
    return 0;
}

static int set_duration(const struct option *o, const char *text, double *slot, struct error *err)
{
    int64_t us;
    if (duration_parse(text, &us, err) < 0)
        return error_prefix(err, "--%s", o->name);
    double s = (double)us / 1e6;
    if (s < o->least || s > o->most)
        return error_set(err, ERROR_INVALID, "--%s: %s is not from %gs to %gs", o->name, text,
                         o->least, o->most);
    *slot = s;
    return 0;
}

static int set_choice(const struct option *o, const char *text, void *slot, struct error *err)
{
    if (o->words == NULL) { /* true or false */
        *(bool *)slot = strcmp(text, "true") == 0;
        if (*(bool *)slot || strcmp(text, "false") == 0)
            return 0;
        return error_set(err, ERROR_INVALID, "--%s: \"%s\" is neither true nor false", o->name,
                         text);
    }
    for (size_t i = 0; o->words[i]; i++) {
        if (strcmp(o->words[i], text) == 0) {
            *(const char **)slot = text;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID, "--%s: \"%s\" is not %s", o->name, text, o->help);
}

static int add_namespace(struct options *out, const char *name, struct error *err)
{
    if (out->namespace_count == OPTIONS_MAX_NAMESPACES)
        return error_set(err, ERROR_INVALID, "--namespace: at most %d can be given",
                         OPTIONS_MAX_NAMESPACES);
    out->namespaces[out->namespace_count++] = name;
    return 0;
}

static int set(const struct option *o, const char *text, struct options *out, struct error *err)
{
    void *slot = (char *)out + o->offset;
    switch (o->kind) {
    case TEXT:
        *(const char **)slot = text;
        return 0;
    case CHOICE:
        return set_choice(o, text, slot, err);
    case FLAG:
        *(bool *)slot = true;
        return 0;
    case NUMBER:
        return set_number(o, text, slot, err);
    case DURATION:
        return set_duration(o, text, slot, err);
    case NAMESPACES:
        return add_namespace(out, text, err);
    }
    return -1;
}

static const struct option *find(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strlen(table[i].name) == len && strncmp(table[i].name, name, len) == 0)
            return &table[i];
    return NULL;
}

/* "--name=value", "--name value" or, for a flag, "--name". Returns how many arguments it took. */
static int parse_one(int argc, char **argv, struct options *out, struct error *err)
{
    const char *arg = argv[0];
    if (strncmp(arg, "--", 2) != 0)
        return error_set(err, ERROR_INVALID, "\"%s\": options begin with --; see --help", arg);
    const char *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg - 2) : strlen(arg + 2);
    const struct option *o = find(arg + 2, len);
    if (o == NULL)
        return error_set(err, ERROR_INVALID, "%.*s: no such option; see --help", (int)len + 2, arg);
    if (o->kind == FLAG && equals)
        return error_set(err, ERROR_INVALID, "--%s takes no value", o->name);
    if (o->kind == FLAG || equals)
        return set(o, equals ? equals + 1 : "", out, err) < 0 ? -1 : 1;
    if (argc < 2)
        return error_set(err, ERROR_INVALID, "--%s needs a value", o->name);
    return set(o, argv[1], out, err) < 0 ? -1 : 2;
}

int options_parse(int argc, char **argv, struct options *out, struct error *err)
{
    *out = (struct options){0};
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].otherwise && set(&table[i], table[i].otherwise, out, err) < 0)
            return -1;
    for (int i = 1, taken; i < argc; i += taken) {
        taken = parse_one(argc - i, argv + i, out, err);
        if (taken < 0)
            return -1;
    }
    return 0;
}

void options_print_help(void)
{
    puts("faasrl-mpa: keeps the latency goals of MultidimPodAutoscalers\n\nOptions:");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct option *o = &table[i];
        printf("  --%-26s %s%s%s%s\n", o->name, o->help, o->otherwise ? " (default " : "",
               o->otherwise ? o->otherwise : "", o->otherwise ? ")" : "");
    }
}
