/* Prometheus client: instant and range queries, and the arithmetic on histograms.
 *
 * One query serves every MPA: results carry the labels namespace and pod (and container, le), and
 * pkg/observe picks out what belongs to whom. */
#ifndef FAASRL_PROMETHEUS_H
#define FAASRL_PROMETHEUS_H

#include "base/base.h"
#include "http/http.h"

/* --- answers (answer.c) ---------------------------------------------------------------------- */
enum prom_value {
    PROM_MISSING, /* no such series */
    PROM_STALE,   /* a series whose newest sample is older than allowed */
    PROM_NAN,     /* the server says NaN: for a quantile, no requests in the window */
    PROM_INF,     /* ±Inf: for a quantile, beyond the last bucket */
    PROM_NUMBER,
};

struct prom_sample {
    double time_s, value;
};

struct prom_series {                 /* all it points to lives as long as the result */
    const struct prom_label *labels; /* read them with prom_label() */
    struct prom_sample *samples;     /* one for an instant vector */
    uint32_t label_count, sample_count;
};

struct prom_result {
    enum { PROM_VECTOR, PROM_MATRIX, PROM_SCALAR } type;
    struct prom_series *series;
    size_t series_count;
    char *warnings; /* the server's, joined by "; ", or NULL: the answer may lack a part */
    char *infos;    /* likewise its hints about the query */
    struct prom_chunk *memory; /* of labels and samples */
};

/* Parses the body of an answer of /api/v1/query or /api/v1/query_range, of at most PROM_MAX_SERIES
 * series. An answer with status "error" fails with Prometheus' own words. Histograms must be
 * classic ones. out needs no prom_result_clear() after a failure. */
#define PROM_MAX_SERIES 2000000
int prom_parse(const char *body, size_t len, struct prom_result *out, struct error *err);
void prom_result_clear(struct prom_result *result);
const char *prom_label(const struct prom_series *series, const char *name); /* "" when absent */
/* Of a sample that may be NULL. An instant vector carries the time it was asked for, not that of
 * the sample behind it, so PROM_STALE is seen with range queries only. */
enum prom_value prom_classify(const struct prom_sample *sample, double now_s, double max_age_s);

/* Cumulative buckets, the last one +Inf; the same result as PromQL's histogram_quantile (q in
 * 0..1): in the +Inf bucket it is the bound below it. NaN for no requests or no buckets. The
 * buckets are put in order and repaired in place. */
struct prom_bucket {
    double upper, count;
};
double prom_quantile(double q, struct prom_bucket *buckets, size_t n);
/* The share of the requests above a bound, straight within a bucket; those in the +Inf bucket are
 * above any. The buckets are as prom_quantile has left them. NaN for no requests or no buckets. */
double prom_share_above(double bound, const struct prom_bucket *buckets, size_t n);

/* --- exposition (exposition.c): what a program tells of itself at /metrics ---------------------
 * Prometheus' text format. on_sample is called for each line that is a sample; what it gets points
 * into the text. Fails at the first line that is none, and tells which. */
struct prom_exposed {
    const char *name, *labels; /* not NUL-terminated */
    size_t name_len, labels_len;
    double value;
};
int prom_expose(const char *text, size_t len,
                void (*on_sample)(void *arg, const struct prom_exposed *sample), void *arg,
                struct error *err);
bool prom_exposed_is(const struct prom_exposed *sample, const char *name);
/* The value of a label; "" when there is none, or when it does not fit. */
void prom_exposed_label(const struct prom_exposed *sample, const char *label, char *out,
                        size_t size);

/* --- queries (client.c) ---------------------------------------------------------------------- */
struct prom;

struct prom_config {
    const char *url; /* "http://prometheus:9090", with or without a path prefix */
    const char *ca_file, *cert_file, *key_file;
    const char *token_file; /* bearer token, read again for each query as it may rotate */
    const char *user_file, *password_file; /* basic authentication, likewise: keys of a Secret */
    bool insecure;
    int64_t timeout_ms; /* 0: 10 s */
};

/* Copies the config. Fails on a URL that is none, credentials that contradict each other, and files
 * of TLS that cannot be read; these are read again when they change. */
struct prom *prom_new(uv_loop_t *loop, struct http *http, const struct prom_config *config,
                      struct error *err);
/* Queries under way end with ERROR_CANCELLED, after which none may be asked. Before or after
 * http_free(); run the loop once more after it. */
void prom_free(struct prom *prom);

/* Either result or err is NULL; err says why it failed. Called exactly once, and never before the
 * function that asked has returned. Both are gone afterwards. */
typedef void (*prom_done)(void *arg, const struct prom_result *result, const struct error *err);
/* Sent as POST, so that a long query is no problem. time_s 0: the server's now. */
void prom_query(struct prom *prom, const char *query, double time_s, prom_done on_done, void *arg);
void prom_query_range(struct prom *prom, const char *query, double start_s, double end_s,
                      double step_s, prom_done on_done, void *arg);

/* Each series is told as it arrives, and gone when on_series returns: an answer of 40 MB needs no
 * memory. In the end on_done gets a result without them; when it gets an error, there may be some
 * that were told and some that never will be. */
typedef void (*prom_each)(void *arg, const struct prom_series *series);
void prom_query_each(struct prom *prom, const char *query, prom_each on_series, prom_done on_done,
                     void *arg);
void prom_query_range_each(struct prom *prom, const char *query, double start_s, double end_s,
                           double step_s, prom_each on_series, prom_done on_done, void *arg);

/* --- templates (template.c) ------------------------------------------------------------------
 * The queries in use by default; any of them can be replaced for the installation. In them stand
 * $window (the rate window), $namespaces (a regular expression of the namespaces watched), and for
 * an MPA's own query also $namespace, $name (of the target) and $pods (a regular expression).
 * Values are escaped for use inside double quotes. */
enum prom_metric {
    PROM_LATENCY_BUCKETS, /* rate of buckets by namespace, pod, le */
    PROM_CPU_USAGE,       /* cores by namespace, pod, container */
    PROM_CPU_THROTTLED,   /* share of CFS periods throttled by namespace, pod, container */
    PROM_MEMORY_USAGE,    /* bytes by namespace, pod, container */
    PROM_PROXY_BUCKETS,   /* as latency, by Knative's queue-proxy; le in ms where unit is "ms" */
    PROM_ACTION_BUCKETS,  /* as latency, by OpenWhisk's namespace, initiator, action, le */
    PROM_METRIC_COUNT
};
const char *prom_metric_name(enum prom_metric metric); /* "latency", "cpu", … */
const char *prom_template(enum prom_metric metric);

struct prom_variable {
    const char *name, *value; /* name without the dollar sign */
};
/* An unknown $name is an error that names it. "$$" is a dollar sign. free() the result. */
char *prom_expand(const char *template_, const struct prom_variable *variables, size_t n,
                  struct error *err);

/* Whether a query reads series of this namespace only: each selector in it says namespace="…" in
 * so many words. Errs on the safe side: what is not understood is refused, and so is what other
 * dialects than Prometheus' own add. The error says what would be right. */
int prom_query_confined(const char *query, const char *namespace_, struct error *err);

#endif
