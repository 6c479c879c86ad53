/* The default queries, and the variables in them.
 *
 * Each query looks back over $window only. A range selector sees no sample older than that, where a
 * plain selector would show one of up to five minutes ago: the kubelet's container metrics carry
 * their own timestamps, so Prometheus does not mark them stale when the container is gone. What is
 * too old is thus missing from the answer. A rate needs two samples in the window, and cAdvisor
 * takes one every 10 to 20 s however often it is scraped, unless the kubelet is told otherwise: a
 * minute is safe, less than 40 s is not. */
#include "prometheus/prometheus.h"

#include <ctype.h>
#include <string.h>

#define MAX_QUERY ((size_t)1 << 20) /* thousands of namespaces fit */

#define BY_CONTAINER "by (namespace, pod, container) "
/* container="" is a whole pod's cgroup, "POD" its pause container with some runtimes. */
#define CONTAINERS "{namespace=~\"$namespaces\",container!=\"\",container!=\"POD\"}"

static const struct {
    const char *name, *query;
} templates[PROM_METRIC_COUNT] = {
    /* The sum is over the labels of the application (method, code, path). A pod that two jobs
     * scrape counts twice in it: the request rate doubles, while a quantile stays what it was. */
    [PROM_LATENCY_BUCKETS] =
        {"latency", "sum by (namespace, pod, le) (rate(http_request_duration_seconds_bucket"
                    "{namespace=~\"$namespaces\"}[$window]))"},
    /* max, not sum: the kubelet exports this very name at /metrics/cadvisor and at
     * /metrics/resource, and a cluster may scrape both, or one of them by two jobs; a sum would be
     * double the usage. The price is paid by a container that restarts: its two runs (they differ
     * in label id) are not added up, and it looks less busy until a window has passed. */
    [PROM_CPU_USAGE] = {"cpu", "max " BY_CONTAINER
                               "(rate(container_cpu_usage_seconds_total" CONTAINERS "[$window]))"},
    /* Sums, as duplicates cancel out in a ratio, and the two runs of a restarted container are
     * weighed by their periods. Without a limit there is no such series; NaN when no period ran. */
    [PROM_CPU_THROTTLED] = {"throttled",
                            "sum " BY_CONTAINER
                            "(rate(container_cpu_cfs_throttled_periods_total" CONTAINERS
                            "[$window])) / sum " BY_CONTAINER
                            "(rate(container_cpu_cfs_periods_total" CONTAINERS "[$window]))"},
    [PROM_MEMORY_USAGE] = {"memory", "max " BY_CONTAINER
                                     "(last_over_time(container_memory_working_set_bytes" CONTAINERS
                                     "[$window]))"},
    /* Of Knative 1.19 and newer, then of the versions before, whose buckets are milliseconds. Both
     * count the time in queue-proxy's own queue; revision_app_request_latencies does not. One that
     * was never asked has no histogram yet, but tells that it is there, by a series whose rate is
     * 0: no request, not a missing series. */
    [PROM_PROXY_BUCKETS] =
        {"proxy",
         "sum by (namespace, pod, le) (rate(http_server_request_duration_seconds"
         "_bucket{namespace=~\"$namespaces\"}[$window])) or sum by (namespace, "
         "pod, le, unit) (label_replace(rate(revision_request_latencies_bucket"
         "{namespace=~\"$namespaces\"}[$window]), \"unit\", \"ms\", \"\", \"\")) or "
         "label_replace(max by (namespace, pod) (rate(target_info{namespace=~"
         "\"$namespaces\",kn_revision_name!=\"\"}[$window])), \"le\", \"+Inf\", \"\", \"\")"},
    /* Of OpenWhisk's user-events. Its label `namespace` is a user's; where a scrape puts
     * Kubernetes' one there, Prometheus calls it exported_namespace. The duration has the
     * initialisation in it already; how long calls wait for a pod comes by itself. */
    [PROM_ACTION_BUCKETS] =
        {"openwhisk",
         "sum by (exported_namespace, namespace, initiator, action, le) "
         "(rate(openwhisk_action_duration_seconds_bucket[$window])) or "
         "sum by (exported_namespace, namespace, initiator, action, part) (label_replace("
         "rate(openwhisk_action_waitTime_seconds_sum[$window]), \"part\", \"wait\", \"\", \"\"))"},
};

const char *prom_metric_name(enum prom_metric metric)
{
    return (unsigned)metric < PROM_METRIC_COUNT ? templates[metric].name : "";
}

const char *prom_template(enum prom_metric metric)
{
    return (unsigned)metric < PROM_METRIC_COUNT ? templates[metric].query : "";
}

/* --- variables ----------------------------------------------------------------------------- */
static size_t name_length(const char *text)
{
    size_t n = 0;
    while (isalpha((unsigned char)text[n]) || text[n] == '_' ||
           (n > 0 && isdigit((unsigned char)text[n])))
        n++;
    return n;
}

static int put_escaped(struct buf *out, const char *value)
{
    for (; *value; value++) {
        int result = *value == '\n'                    ? buf_puts(out, "\\n")
                     : *value == '"' || *value == '\\' ? buf_printf(out, "\\%c", *value)
                                                       : buf_append(out, value, 1);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int fail_unknown(const char *name, size_t len, const struct prom_variable *variables,
                        size_t n, struct error *err)
{
    cleanup_buf struct buf known;
    buf_init(&known, 256);
    for (size_t i = 0; i < n; i++)
        if (buf_printf(&known, "%s$%s", i > 0 ? ", " : "", variables[i].name) < 0)
            break;
    return error_set(err, ERROR_INVALID, "unknown variable $%.*s in the query (known: %s)",
                     len > 64 ? 64 : (int)len, name, n > 0 ? buf_string(&known) : "none");
}

static int fail_too_long(struct error *err)
{
    return error_set(err, ERROR_TOO_LARGE, "the query is longer than %zu bytes", MAX_QUERY);
}

/* *at stands behind the dollar sign, and is moved behind the variable. */
static int put_variable(struct buf *out, const char **at, const struct prom_variable *variables,
                        size_t n, struct error *err)
{
    const char *name = *at;
    bool braces = *name == '{';
    size_t len = name_length(name += braces);
    if (len == 0 || (braces && name[len] != '}'))
        return error_set(err, ERROR_INVALID,
                         "\"$\" in the query is not followed by a name: \"$%.20s\" (a dollar sign "
                         "itself is written \"$$\")",
                         *at);
    *at = name + len + braces;
    for (size_t i = 0; i < n; i++)
        if (strlen(variables[i].name) == len && memcmp(variables[i].name, name, len) == 0)
            return put_escaped(out, variables[i].value) < 0 ? fail_too_long(err) : 0;
    return fail_unknown(name, len, variables, n, err);
}

char *prom_expand(const char *template_, const struct prom_variable *variables, size_t n,
                  struct error *err)
{
    cleanup_buf struct buf out;
    buf_init(&out, MAX_QUERY);
    for (const char *at = template_; *at;) {
        size_t plain = strcspn(at, "$");
        if (buf_append(&out, at, plain) < 0) {
            fail_too_long(err);
            return NULL;
        }
        at += plain;
        if (*at == '\0')
            break;
        at++;
        if (*at == '$') {
            if (buf_append(&out, at++, 1) < 0) {
                fail_too_long(err);
                return NULL;
            }
        } else if (put_variable(&out, &at, variables, n, err) < 0) {
            return NULL;
        }
    }
    return buf_take(&out);
}
