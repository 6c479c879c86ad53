/* Credentials that change: token files and plugins (shell scripts here). Time is set by hand. */
#include "kube/credentials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WALL_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define V1      "client.authentication.k8s.io/v1"

struct fixture {
    uv_loop_t loop;
    char dir[64];
    char *file; /* in dir: a token, or a line per run of the plugin */
    char *args[3], *env[2];
    struct kube_exec exec;
    struct kube_config config;
    struct kube_credentials *credentials;
};

struct outcome {
    int calls;
    char bearer[64];
    const struct http_tls *tls;
    struct error error;
};

static void on_credentials(void *arg, const char *bearer, const struct http_tls *tls,
                           const struct error *err)
{
    struct outcome *o = arg;
    o->calls++;
    snprintf(o->bearer, sizeof(o->bearer), "%s", bearer ? bearer : "");
    o->tls = tls;
    o->error = err ? *err : (struct error){0};
    assert_int_equal(err == NULL, tls != NULL);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    *state = f;
    uv_loop_init(&f->loop);
    snprintf(f->dir, sizeof(f->dir), "/tmp/credentials_test.XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    f->file = xasprintf("%s/file", f->dir);
    f->config.server = xstrdup("https://10.0.0.1:6443");
    f->config.tls.ca_pem = xstrdup("ca");
    clock_set(1000000, WALL_MS);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    kube_credentials_free(f->credentials);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    int result = uv_loop_close(&f->loop);
    free(f->args[1]);
    free(f->env[0]);
    unlink(f->file);
    free(f->file);
    free(f->config.server);
    free(f->config.token);
    free(f->config.token_file);
    http_tls_clear(&f->config.tls);
    clock_use_system();
    result |= rmdir(f->dir);
    free(f);
    return result;
}

static void write_file(const struct fixture *f, const char *text)
{
    FILE *out = fopen(f->file, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

/* The script runs with $FILE set to f->file. */
static void use_plugin(struct fixture *f, const char *script)
{
    f->args[0] = (char *)(uintptr_t) "-c";
    f->args[1] = xstrdup(script);
    f->env[0] = xasprintf("FILE=%s", f->file);
    f->exec = (struct kube_exec){.command = (char *)(uintptr_t) "sh",
                                 .args = f->args,
                                 .env = f->env,
                                 .api_version = (char *)(uintptr_t)V1};
    f->config.exec = &f->exec;
}

static struct outcome get(struct fixture *f)
{
    struct outcome o = {0};
    if (f->credentials == NULL)
        f->credentials = kube_credentials_new(&f->loop, &f->config);
    kube_credentials_get(f->credentials, on_credentials, &o);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(o.calls, 1);
    return o;
}

static int runs(const struct fixture *f)
{
    struct error err;
    cleanup_free char *text = file_read(f->file, 1000, NULL, &err);
    int n = 0;
    for (const char *p = text; p && *p; p++)
        n += *p == '\n';
    return n;
}

/* Tokens t1, t2 … by the number of the run. */
#define COUNT_RUN "echo >> \"$FILE\"; n=$(wc -l < \"$FILE\"); "
#define ANSWER(status)                                                                             \
    "echo '{\"apiVersion\": \"" V1 "\", \"kind\": \"ExecCredential\", \"status\": {" status "}}'"
#define TOKEN_N "\"token\": \"t'$n'\""

static void test_fixed_token(void **state)
{
    struct fixture *f = *state;
    f->config.token = xstrdup("abc");
    f->credentials = kube_credentials_new(&f->loop, &f->config);
    struct outcome o = {0};
    kube_credentials_get(f->credentials, on_credentials, &o);
    assert_int_equal(o.calls, 1); /* at once */
    assert_string_equal(o.bearer, "abc");
    assert_string_equal(o.tls->ca_pem, "ca");
    assert_ptr_not_equal(o.tls, &f->config.tls);
}

static void test_no_token(void **state)
{
    struct outcome o = get(*state);
    assert_string_equal(o.bearer, "");
    assert_int_equal(o.error.code, ERROR_NONE);
}

static void test_token_cannot_end_the_header(void **state)
{
    struct fixture *f = *state;
    f->config.token = xstrdup("abc\r\nX-Evil: 1");
    struct outcome o = get(f);
    assert_int_equal(o.error.code, ERROR_INVALID);
}

static void test_token_file_rotates(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = xstrdup(f->file);
    write_file(f, "one\n");
    assert_string_equal(get(f).bearer, "one");
    write_file(f, "two\n");
    clock_advance(9999);
    assert_string_equal(get(f).bearer, "one");
    clock_advance(1);
    assert_string_equal(get(f).bearer, "two");
    write_file(f, "three\n");
    kube_credentials_invalidate(f->credentials);
    assert_string_equal(get(f).bearer, "three");
}

static void test_token_file_goes_away(void **state)
{
    struct fixture *f = *state;
    f->config.token_file = xstrdup(f->file);
    struct outcome o = get(f);
    assert_int_equal(o.error.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(o.error.message, f->file));
    write_file(f, " \n");
    assert_int_equal(get(f).error.code, ERROR_INVALID);
    write_file(f, "one");
    assert_string_equal(get(f).bearer, "one");
    unlink(f->file);
    clock_advance(20000);
    struct buf log;
    buf_init(&log, 10000);
    log_set_output_for_test(&log);
    assert_string_equal(get(f).bearer, "one");
    log_set_output_for_test(NULL);
    assert_non_null(strstr(buf_string(&log), f->file));
    buf_free(&log);
}

static void test_plugin_runs_once_for_all(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, COUNT_RUN ANSWER(TOKEN_N));
    f->credentials = kube_credentials_new(&f->loop, &f->config);
    struct outcome o[3] = {0};
    for (int i = 0; i < 3; i++)
        kube_credentials_get(f->credentials, on_credentials, &o[i]);
    assert_int_equal(o[0].calls, 0);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(o[i].calls, 1);
        assert_string_equal(o[i].bearer, "t1");
    }
    clock_advance(INT64_C(1000) * 3600 * 24); /* no expiry was given */
    assert_string_equal(get(f).bearer, "t1");
    assert_int_equal(runs(f), 1);
}

static void test_plugin_runs_again_before_expiry(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, COUNT_RUN ANSWER(
                      TOKEN_N ", \"expirationTimestamp\": \"2026-01-01T00:'$((n * 10))':00Z\""));
    assert_string_equal(get(f).bearer, "t1");
    clock_advance(10 * 60000 - 30001);
    assert_string_equal(get(f).bearer, "t1");
    clock_advance(1);
    assert_string_equal(get(f).bearer, "t2");
    assert_string_equal(get(f).bearer, "t2");
}

/* A token that is given out expired is used, but the plugin does not run for each request. */
static void test_expired_from_the_start(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, COUNT_RUN ANSWER(TOKEN_N ", \"expirationTimestamp\": \"2025-12-31T00:00:00Z\""));
    assert_string_equal(get(f).bearer, "t1");
    assert_string_equal(get(f).bearer, "t1");
    clock_advance(1000);
    assert_string_equal(get(f).bearer, "t2");
}

static void test_plugin_runs_again_after_401(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, COUNT_RUN ANSWER(TOKEN_N));
    assert_string_equal(get(f).bearer, "t1");
    kube_credentials_invalidate(f->credentials); /* of a request with what was there before */
    assert_string_equal(get(f).bearer, "t1");
    clock_advance(5000);
    kube_credentials_invalidate(f->credentials);
    assert_string_equal(get(f).bearer, "t2");
}

static void test_plugin_certificate(void **state)
{
    struct fixture *f = *state;
    use_plugin(f,
               COUNT_RUN ANSWER("\"clientCertificateData\": \"c'$n'\", \"clientKeyData\": \"k\""));
    struct outcome first = get(f);
    assert_string_equal(first.bearer, "");
    assert_string_equal(first.tls->cert_pem, "c1");
    assert_string_equal(first.tls->key_pem, "k");
    assert_string_equal(first.tls->ca_pem, "ca");
    clock_advance(5000);
    kube_credentials_invalidate(f->credentials);
    struct outcome second = get(f);
    assert_string_equal(second.tls->cert_pem, "c2");
    assert_string_equal(first.tls->cert_pem, "c1"); /* still there for requests under way */
    clock_advance(3599999);
    kube_credentials_invalidate(f->credentials);
    assert_string_equal(get(f).tls->cert_pem, "c3");
    assert_string_equal(first.tls->cert_pem, "c1");
}

static void test_plugin_is_told(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, "printf %s \"$KUBERNETES_EXEC_INFO\" > \"$FILE\"; " ANSWER("\"token\": \"t\""));
    f->exec.provide_cluster_info = true;
    f->config.tls.server_name = xstrdup("kubernetes");
    setenv("KUBERNETES_EXEC_INFO", "of someone else", 1);
    assert_string_equal(get(f).bearer, "t");
    unsetenv("KUBERNETES_EXEC_INFO");
    struct error err;
    cleanup_free char *text = file_read(f->file, 10000, NULL, &err);
    cleanup_json json_t *info = json_loads(text, 0, NULL);
    assert_string_equal(json_str(json_path(info, "apiVersion", NULL)), V1);
    assert_string_equal(json_str(json_path(info, "kind", NULL)), "ExecCredential");
    assert_true(json_is_false(json_path(info, "spec", "interactive", NULL)));
    const json_t *cluster = json_path(info, "spec", "cluster", NULL);
    assert_string_equal(json_str(json_path(cluster, "server", NULL)), "https://10.0.0.1:6443");
    assert_string_equal(json_str(json_path(cluster, "tls-server-name", NULL)), "kubernetes");
    assert_string_equal(json_str(json_path(cluster, "certificate-authority-data", NULL)), "Y2E=");
}

static void expect_failure(struct fixture *f, const char *script, const char *part)
{
    use_plugin(f, script);
    struct outcome o = get(f);
    if (o.error.code == ERROR_NONE || strstr(o.error.message, part) == NULL)
        fail_msg("%s\nsays     %s\nexpected %s", script, o.error.message, part);
    kube_credentials_free(f->credentials);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    f->credentials = NULL;
    free(f->args[1]);
    free(f->env[0]);
    f->args[1] = f->env[0] = NULL;
}

static void test_plugin_failures(void **state)
{
    struct fixture *f = *state;
    expect_failure(f, "echo log in first >&2; exit 3", "plugin sh failed with exit code 3: log in");
    expect_failure(f, "exit 1", "exit code 1: it did not say why");
    expect_failure(f, "kill -9 $$", "ended by signal 9");
    expect_failure(f, "yes >&2 & exec head -c 2000000 /dev/zero", "more than 1048576 bytes");
    expect_failure(f, "echo hello", "did not write JSON");
    expect_failure(f, "true", "did not write JSON");
    expect_failure(f, "echo '{}'", "ExecCredential of " V1);
    expect_failure(f, "echo '{\"apiVersion\": \"v1\", \"kind\": \"ExecCredential\"}'",
                   "not \"v1\"");
    expect_failure(f, ANSWER(""), "neither a token nor a certificate");
    expect_failure(f, ANSWER("\"token\": \"\""), "neither a token nor a certificate");
    expect_failure(f, ANSWER("\"clientKeyData\": \"k\""), "only one of certificate and key");
    expect_failure(f, ANSWER("\"token\": \"a b\""), "no token has");
    expect_failure(f, ANSWER("\"token\": \"t\", \"expirationTimestamp\": \"soon\""),
                   "expirationTimestamp \"soon\"");
}

static void test_failing_plugin_is_not_hammered(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, COUNT_RUN "test $n = 2 || exit 1; " ANSWER(TOKEN_N));
    assert_int_equal(get(f).error.code, ERROR_FORBIDDEN);
    assert_int_equal(get(f).error.code, ERROR_FORBIDDEN);
    assert_int_equal(runs(f), 1);
    clock_advance(1000);
    assert_string_equal(get(f).bearer, "t2");
}

static void test_missing_plugin(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, "");
    f->exec.command = (char *)(uintptr_t) "/nonexistent/plugin";
    f->exec.install_hint = (char *)(uintptr_t) "get it\nfrom the shop";
    struct outcome o = get(f);
    assert_int_equal(o.error.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(o.error.message, "/nonexistent/plugin is not installed"));
    assert_non_null(strstr(o.error.message, "get it from the shop"));
}

static void test_forget(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, COUNT_RUN ANSWER(TOKEN_N));
    f->credentials = kube_credentials_new(&f->loop, &f->config);
    struct outcome kept = {0}, forgotten = {0};
    kube_credentials_get(f->credentials, on_credentials, &forgotten);
    kube_credentials_get(f->credentials, on_credentials, &kept);
    kube_credentials_forget(f->credentials, on_credentials, &forgotten);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(forgotten.calls, 0);
    assert_string_equal(kept.bearer, "t1");
}

static void test_free_while_waiting(void **state)
{
    struct fixture *f = *state;
    use_plugin(f, "sleep 1000 & sleep 1000");
    f->credentials = kube_credentials_new(&f->loop, &f->config);
    struct outcome o = {0};
    kube_credentials_get(f->credentials, on_credentials, &o);
    kube_credentials_free(f->credentials);
    f->credentials = NULL;
    assert_int_equal(o.calls, 1);
    assert_int_equal(o.error.code, ERROR_CANCELLED);
    assert_int_equal(uv_run(&f->loop, UV_RUN_NOWAIT), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_fixed_token),
        TEST(test_no_token),
        TEST(test_token_cannot_end_the_header),
        TEST(test_token_file_rotates),
        TEST(test_token_file_goes_away),
        TEST(test_plugin_runs_once_for_all),
        TEST(test_plugin_runs_again_before_expiry),
        TEST(test_expired_from_the_start),
        TEST(test_plugin_runs_again_after_401),
        TEST(test_plugin_certificate),
        TEST(test_plugin_is_told),
        TEST(test_plugin_failures),
        TEST(test_failing_plugin_is_not_hammered),
        TEST(test_missing_plugin),
        TEST(test_forget),
        TEST(test_free_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
