/* Any answers of a credential plugin, one a line ("!why" fails, as the run of a program does), each
 * after the one before has run out: who asks is told once, what is handed out is what was answered,
 * a failure hands out nothing and says why without a secret of the kubeconfig, and nothing is asked
 * for before its time or used after it. */
#include "kube/credentials.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_RUNS 32
#define SECRET   "hunter2-of-the-kubeconfig"
#define WALL_MS  INT64_C(1767225600000)

struct kube_plugin { /* the run under way; done NULL: there is none */
    kube_plugin_done done;
    void *arg;
};

static struct kube_plugin run;
static int runs;

struct told {
    int times;
    char *token, *cert;
    bool failed;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* --- in place of plugin.c ----------------------------------------------------------------------
 */
struct kube_plugin *kube_plugin_start(uv_loop_t *loop, const struct kube_exec *exec,
                                      const char *info, kube_plugin_done done, void *arg,
                                      struct error *err)
{
    (void)loop, (void)err;
    cleanup_json json_t *json = json_loads(info, 0, NULL);
    check(run.done == NULL && strcmp(exec->command, "login") == 0);
    check(strcmp(json_str(json_object_get(json, "apiVersion")), exec->api_version) == 0);
    run = (struct kube_plugin){done, arg};
    runs++;
    return &run;
}

void kube_plugin_cancel(struct kube_plugin *plugin)
{
    check(plugin == &run && run.done);
    run.done = NULL;
}

static void end_run(const char *output, size_t len)
{
    struct error err = {0};
    kube_plugin_done done = run.done;
    run.done = NULL;
    if (len > 0 && *output == '!')
        error_set(&err, ERROR_UNAVAILABLE, "login failed: %.*s", (int)(len - 1), output + 1);
    done(run.arg, err.code ? NULL : output, err.code ? 0 : len, err.code ? &err : NULL);
}

/* --- who asks ----------------------------------------------------------------------------------
 */
static void on_credentials(void *arg, const char *bearer, const struct http_tls *tls,
                           const struct error *err)
{
    struct told *t = arg;
    t->times++;
    t->failed = err != NULL;
    check((err == NULL) == (tls != NULL) && (err == NULL || bearer == NULL));
    check(err == NULL || (err->code != ERROR_NONE && err->message[0]));
    check(err == NULL || strstr(err->message, SECRET) == NULL);
    string_set(&t->token, bearer);
    string_set(&t->cert, tls ? tls->cert_pem : NULL);
    if (tls)
        check((tls->cert_pem == NULL) == (tls->key_pem == NULL) &&
              strcmp(tls->ca_pem, "authority") == 0 && (bearer || tls->cert_pem));
    for (const char *p = bearer; p && *p; p++)
        check(*p > ' ' && *p < 127);
}

static void told_clear(struct told *t)
{
    string_set(&t->token, NULL);
    string_set(&t->cert, NULL);
    *t = (struct told){0};
}

/* An empty text counts as none. */
static void check_is(const char *given, const json_t *status, const char *key)
{
    const char *answered = json_str(json_object_get(status, key));
    check(strcmp(given ? given : "", answered) == 0);
}

/* The moment the answer ends, by the wall clock; INT64_MAX: it does not. */
static int64_t check_answer(const struct told *t, const char *line, size_t len)
{
    int64_t expires_ms = INT64_MAX;
    cleanup_json json_t *root = json_loadb(line, len, 0, NULL);
    const json_t *status = json_object_get(root, "status");
    const char *expires = json_string_value(json_object_get(status, "expirationTimestamp"));
    check(strcmp(json_str(json_object_get(root, "kind")), "ExecCredential") == 0);
    check_is(t->token, status, "token");
    check_is(t->cert, status, "clientCertificateData");
    check(expires == NULL || time_parse(expires, &expires_ms) == 0);
    return expires_ms;
}

/* What was got is kept for its time, and not a moment longer. */
static void wait_for_end(struct kube_credentials *c, int64_t expires_ms)
{
    struct told t = {0};
    int before = runs;
    kube_credentials_get(c, on_credentials, &t);
    check(t.times == 1 && !t.failed && runs == before);
    int64_t left_ms = expires_ms - clock_wall_ms();
    if (expires_ms == INT64_MAX) {
        clock_advance(INT64_C(100) * 86400 * 1000);
        kube_credentials_get(c, on_credentials, &t);
        check(t.times == 2 && runs == before);
        kube_credentials_invalidate(c);
    } else {
        clock_advance(left_ms > 1000 ? left_ms : 1000); /* at least a second lies between runs */
    }
    told_clear(&t);
}

static void ask(struct kube_credentials *c, const char *line, size_t len)
{
    struct told first = {0}, second = {0};
    int before = runs;
    kube_credentials_get(c, on_credentials, &first);
    kube_credentials_get(c, on_credentials, &second); /* shares the run */
    check(runs == before + 1 && run.done && first.times + second.times == 0);
    end_run(line, len);
    check(first.times == 1 && second.times == 1 && first.failed == second.failed);
    if (first.failed) {
        kube_credentials_get(c, on_credentials, &first);
        check(first.times == 2 && first.failed && runs == before + 1); /* not again at once */
        clock_advance(1000);
    } else {
        wait_for_end(c, check_answer(&first, line, len));
    }
    told_clear(&first);
    told_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *args[] = {NULL}, *env[] = {(char[]){"LOGIN_SECRET=" SECRET}, NULL};
    struct kube_exec exec = {.command = (char[]){"login"},
                             .args = args,
                             .env = env,
                             .api_version = (char[]){"client.authentication.k8s.io/v1"},
                             .provide_cluster_info = true};
    struct kube_config config = {
        .server = (char[]){"https://10.0.0.1"}, .tls.ca_pem = (char[]){"authority"}, .exec = &exec};
    struct told last = {0};
    const char *at = (const char *)data, *end = at + size;
    clock_set(1000, WALL_MS);
    runs = 0;
    struct kube_credentials *c = kube_credentials_new(NULL, &config);
    for (int i = 0; i < MAX_RUNS && at < end; i++) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        ask(c, at, (size_t)((line ? line : end) - at));
        at = line ? line + 1 : end;
    }
    kube_credentials_get(c, on_credentials, &last); /* under way when all ends */
    kube_credentials_free(c);
    check(last.times == 1 && last.failed && run.done == NULL);
    told_clear(&last);
    return 0;
}
