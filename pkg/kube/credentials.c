/* What a request needs to be let in, kept fresh. Tokens in files and plugins' credentials are read
 * again before they go stale, and at once after the server refused them. */
#include "kube/credentials.h"
#include "base/memory.h"

#include <string.h>
#include <sys/queue.h>

#define TOKEN_MAX_BYTES     ((size_t)64 << 10)
#define TOKEN_FILE_AGE_MS   10000
#define TLS_KEEP_MS         3600000
#define EXPIRY_MARGIN_MS    30000
#define RERUN_AFTER_FAIL_MS 1000 /* a plugin that fails is not run for every request */
#define RERUN_AFTER_401_MS  5000 /* requests sent with the old credentials may still fail */

struct waiter {
    TAILQ_ENTRY(waiter) link;
    kube_credentials_done done;
    void *arg;
};
TAILQ_HEAD(waiters, waiter);

/* A client certificate that was once current: requests under way may still use it. */
struct tls_version {
    struct http_tls tls;
    int64_t retired_ms;
    struct tls_version *older;
};

struct kube_credentials {
    uv_loop_t *loop;
    struct tls_version *tls; /* the current one first */
    char *token;             /* the current bearer token, or NULL */

    char *token_file;
    int64_t token_read_ms;
    bool token_stale; /* read the file, whatever its age */

    struct kube_exec *exec;
    char *exec_info;
    struct kube_plugin *plugin; /* the run under way */
    int64_t refresh_ms;         /* wall clock; INT64_MAX: never, INT64_MIN: now */
    int64_t ran_ms;             /* when the last run ended */
    struct error failure;       /* of the last run */
    struct waiters waiting;     /* for the run under way */
    struct waiters answering;   /* for their turn to be told */
};

/* --- TLS --- */

static struct tls_version *tls_version_new(const struct http_tls *from, const char *cert_pem,
                                           const char *key_pem)
{
    struct tls_version *v = xcalloc(1, sizeof(*v));
    v->tls.ca_pem = xstrdup(from->ca_pem);
    v->tls.cert_pem = xstrdup(cert_pem);
    v->tls.key_pem = xstrdup(key_pem);
    v->tls.server_name = xstrdup(from->server_name);
    v->tls.insecure = from->insecure;
    return v;
}

static void drop_tls(struct tls_version **at, int64_t retired_before_ms)
{
    while (*at) {
        struct tls_version *v = *at;
        if (v->retired_ms >= retired_before_ms) {
            at = &v->older;
            continue;
        }
        *at = v->older;
        http_tls_clear(&v->tls);
        free(v);
    }
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void use_certificate(struct kube_credentials *c, const char *cert_pem, const char *key_pem)
{
    struct tls_version *current = c->tls;
    int64_t now = clock_mono_ms();
    drop_tls(&current->older, now - TLS_KEEP_MS);
    if (same(current->tls.cert_pem, cert_pem) && same(current->tls.key_pem, key_pem))
        return;
    current->retired_ms = now;
    c->tls = tls_version_new(&current->tls, cert_pem, key_pem);
    c->tls->older = current;
}

/* --- tokens --- */

/* A token goes into a header: nothing that could end the line. */
static bool is_token(const char *token)
{
    for (const unsigned char *p = (const unsigned char *)token; *p; p++)
        if (*p <= ' ' || *p >= 127)
            return false;
    return *token != '\0';
}

static int read_token_file(struct kube_credentials *c, struct error *err)
{
    cleanup_free char *text = file_read(c->token_file, TOKEN_MAX_BYTES, NULL, err);
    if (text == NULL)
        return -1;
    const char *token = text + strspn(text, " \t\r\n");
    text[(size_t)(token - text) + strcspn(token, " \t\r\n")] = '\0';
    if (!is_token(token))
        return error_set(err, ERROR_INVALID, "token file %s holds no token", c->token_file);
    string_set(&c->token, token);
    return 0;
}

/* As long as there is a token from before, a file that cannot be read is only worth a warning. */
static int refresh_token_file(struct kube_credentials *c, struct error *err)
{
    int64_t now = clock_mono_ms();
    if (!c->token_stale && now - c->token_read_ms < TOKEN_FILE_AGE_MS)
        return 0;
    struct error why = {0};
    if (read_token_file(c, &why) == 0) {
        c->token_stale = false;
        c->token_read_ms = now;
        return 0;
    }
    if (c->token == NULL) {
        *err = why;
        return -1;
    }
    log_warn("keeping the old token", log_str("error", why.message));
    c->token_stale = false;
    c->token_read_ms = now;
    return 0;
}

/* --- plugins --- */

static json_t *cluster_info(const struct kube_config *config)
{
    cleanup_free char *ca =
        config->tls.ca_pem ? base64_encode(config->tls.ca_pem, strlen(config->tls.ca_pem)) : NULL;
    json_t *info = json_pack("{s:s, s:s*, s:s*, s:n}", "server", config->server, "tls-server-name",
                             config->tls.server_name, "certificate-authority-data", ca, "config");
    if (info && config->tls.insecure)
        json_object_set_new(info, "insecure-skip-tls-verify", json_true());
    return info;
}

static char *make_exec_info(const struct kube_config *config)
{
    const struct kube_exec *exec = config->exec;
    cleanup_json json_t *info =
        json_pack("{s:s, s:s, s:{s:b, s:o*}}", "apiVersion", exec->api_version, "kind",
                  "ExecCredential", "spec", "interactive", 0, "cluster",
                  exec->provide_cluster_info ? cluster_info(config) : NULL);
    char *text = json_dumps(info, JSON_COMPACT);
    if (text == NULL)
        out_of_memory();
    return text;
}

/* When to run the plugin again: a little before the end, and never at every request. */
static int64_t refresh_time(int64_t expires_ms)
{
    int64_t now = clock_wall_ms(), lifetime = expires_ms - now;
    int64_t margin = lifetime / 4 < EXPIRY_MARGIN_MS ? lifetime / 4 : EXPIRY_MARGIN_MS;
    return lifetime < RERUN_AFTER_FAIL_MS ? now + RERUN_AFTER_FAIL_MS : expires_ms - margin;
}

static int take_status(struct kube_credentials *c, const json_t *status, struct error *err)
{
    const char *token = json_string_value(json_object_get(status, "token"));
    const char *cert = json_string_value(json_object_get(status, "clientCertificateData"));
    const char *key = json_string_value(json_object_get(status, "clientKeyData"));
    const char *expires = json_string_value(json_object_get(status, "expirationTimestamp"));
    int64_t expires_ms = 0;
    token = token && *token ? token : NULL;
    cert = cert && *cert ? cert : NULL;
    key = key && *key ? key : NULL;
    if (token == NULL && cert == NULL && key == NULL)
        return error_set(err, ERROR_INVALID, "gave neither a token nor a certificate");
    if ((cert == NULL) != (key == NULL))
        return error_set(err, ERROR_INVALID, "gave only one of certificate and key");
    if (token && !is_token(token))
        return error_set(err, ERROR_INVALID, "gave a token with characters that no token has");
    if (expires && time_parse(expires, &expires_ms) < 0)
        return error_set(err, ERROR_INVALID, "gave expirationTimestamp \"%.40s\"", expires);
    c->refresh_ms = expires ? refresh_time(expires_ms) : INT64_MAX;
    string_set(&c->token, token);
    use_certificate(c, cert, key);
    return 0;
}

static int take_output(struct kube_credentials *c, const char *output, size_t len,
                       struct error *err)
{
    json_error_t where;
    cleanup_json json_t *root = json_loadb(output, len, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return error_set(err, ERROR_INVALID, "did not write JSON: %s at byte %d",
                         json_problem(&where), where.position);
    const char *version = json_str(json_object_get(root, "apiVersion"));
    if (strcmp(json_str(json_object_get(root, "kind")), "ExecCredential") != 0 ||
        strcmp(version, c->exec->api_version) != 0)
        return error_set(err, ERROR_INVALID,
                         "must answer with an ExecCredential of %s, not \"%.64s\"",
                         c->exec->api_version, version);
    return take_status(c, json_object_get(root, "status"), err);
}

static void answer(struct kube_credentials *c, kube_credentials_done done, void *arg,
                   const struct error *err)
{
    if (err)
        done(arg, NULL, NULL, err);
    else
        done(arg, c->token, &c->tls->tls, NULL);
}

static void answer_all(struct kube_credentials *c, const struct error *err)
{
    TAILQ_CONCAT(&c->answering, &c->waiting, link);
    struct waiter *w;
    while ((w = TAILQ_FIRST(&c->answering)) != NULL) {
        TAILQ_REMOVE(&c->answering, w, link);
        answer(c, w->done, w->arg, err);
        free(w);
    }
}

/* What the kubeconfig gives the plugin as a secret, and the plugin may complain of. */
static void hide_environment(const struct kube_exec *exec, char *message)
{
    static const char *const words[] = {"SECRET", "TOKEN", "PASS", "KEY", "CREDENTIAL"};
    for (char *const *env = exec->env; *env; env++) {
        const char *value = strchr(*env, '=');
        for (size_t i = 0; value && i < ARRAY_LEN(words); i++) {
            const char *word = strcasestr(*env, words[i]);
            if (word && word < value)
                text_hide(message, value + 1);
        }
    }
}

static void on_plugin_done(void *arg, const char *output, size_t len, const struct error *err)
{
    struct kube_credentials *c = arg;
    c->plugin = NULL;
    c->ran_ms = clock_mono_ms();
    c->failure = (struct error){0};
    if (err)
        c->failure = *err;
    else if (take_output(c, output, len, &c->failure) < 0)
        error_prefix(&c->failure, "credential plugin %s", c->exec->command);
    hide_environment(c->exec, c->failure.message);
    struct error failure = c->failure;
    answer_all(c, failure.code == ERROR_NONE ? NULL : &failure);
}

static void wait_for_plugin(struct kube_credentials *c, kube_credentials_done done, void *arg)
{
    struct error err;
    int64_t now = clock_mono_ms();
    if (c->plugin == NULL && c->failure.code && now - c->ran_ms < RERUN_AFTER_FAIL_MS) {
        err = c->failure;
        answer(c, done, arg, &err);
        return;
    }
    if (c->plugin == NULL)
        c->plugin = kube_plugin_start(c->loop, c->exec, c->exec_info, on_plugin_done, c, &err);
    if (c->plugin == NULL) {
        c->failure = err;
        c->ran_ms = now;
        answer(c, done, arg, &err);
        return;
    }
    struct waiter *w = xcalloc(1, sizeof(*w));
    w->done = done;
    w->arg = arg;
    TAILQ_INSERT_TAIL(&c->waiting, w, link);
}

/* --- the interface --- */

struct kube_credentials *kube_credentials_new(uv_loop_t *loop, const struct kube_config *config)
{
    struct kube_credentials *c = xcalloc(1, sizeof(*c));
    TAILQ_INIT(&c->waiting);
    TAILQ_INIT(&c->answering);
    c->loop = loop;
    c->tls = tls_version_new(&config->tls, config->tls.cert_pem, config->tls.key_pem);
    c->token = xstrdup(config->token);
    c->token_file = xstrdup(config->token_file);
    c->token_stale = true;
    c->refresh_ms = INT64_MIN;
    if (config->exec && c->token_file == NULL && c->token == NULL) {
        c->exec = kube_exec_copy(config->exec);
        c->exec_info = make_exec_info(config);
    }
    return c;
}

void kube_credentials_get(struct kube_credentials *c, kube_credentials_done done, void *arg)
{
    struct error err;
    if (c->exec && clock_wall_ms() >= c->refresh_ms) {
        wait_for_plugin(c, done, arg);
        return;
    }
    if (c->token_file && refresh_token_file(c, &err) < 0) {
        answer(c, done, arg, &err);
        return;
    }
    if (c->token && !is_token(c->token)) {
        error_set(&err, ERROR_INVALID, "the token has characters that no token has");
        answer(c, done, arg, &err);
        return;
    }
    answer(c, done, arg, NULL);
}

static void forget_in(struct waiters *list, kube_credentials_done done, const void *arg)
{
    struct waiter *next;
    for (struct waiter *w = TAILQ_FIRST(list); w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (w->done != done || w->arg != arg)
            continue;
        TAILQ_REMOVE(list, w, link);
        free(w);
    }
}

void kube_credentials_forget(struct kube_credentials *c, kube_credentials_done done,
                             const void *arg)
{
    forget_in(&c->waiting, done, arg);
    forget_in(&c->answering, done, arg);
}

void kube_credentials_invalidate(struct kube_credentials *c)
{
    c->token_stale = true;
    if (c->plugin == NULL && clock_mono_ms() - c->ran_ms >= RERUN_AFTER_401_MS)
        c->refresh_ms = INT64_MIN;
}

void kube_credentials_free(struct kube_credentials *c)
{
    if (c == NULL)
        return;
    if (c->plugin)
        kube_plugin_cancel(c->plugin);
    c->plugin = NULL;
    struct error cancelled;
    error_set(&cancelled, ERROR_CANCELLED, "shutting down");
    answer_all(c, &cancelled);
    drop_tls(&c->tls, INT64_MAX);
    free(c->token);
    free(c->token_file);
    kube_exec_free(c->exec);
    free(c->exec_info);
    free(c);
}
