/* Which file, entry and field wins was checked with k8s.io/client-go v0.34.4's clientcmd. */
#include "kube/kube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* "-----BEGIN X-----\n" and the same with Y. */
#define PEM_X    "-----BEGIN X-----\n"
#define PEM_Y    "-----BEGIN Y-----\n"
#define BASE64_X "LS0tLS1CRUdJTiBYLS0tLS0K"
#define BASE64_Y "LS0tLS1CRUdJTiBZLS0tLS0K"

/* A directory of its own for each test. */
struct place {
    char dir[64];
};

static void put(const struct place *place, const char *name, const char *text)
{
    cleanup_free char *path = xasprintf("%s/%s", place->dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    struct place *place = xcalloc(1, sizeof(*place));
    snprintf(place->dir, sizeof(place->dir), "/tmp/kubeconfig_test.XXXXXX");
    *state = place;
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    if (mkdtemp(place->dir) == NULL)
        return -1;
    return setenv("HOME", place->dir, 1);
}

static int tear_down(void **state)
{
    struct place *place = *state;
    static const char *const names[] = {
        "a",         "b",          "c",   "config",       "token", "ca.crt",
        "namespace", "sub/ca.pem", "sub", ".kube/config", ".kube"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cleanup_free char *path = xasprintf("%s/%s", place->dir, names[i]);
        remove(path);
    }
    int result = rmdir(place->dir);
    free(place);
    return result;
}

/* One context with these fields of cluster and user, in YAML's flow style. */
static char *one(const char *cluster, const char *user)
{
    return xasprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\n"
                     "clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n"
                     "contexts: [{name: x, context: {cluster: c, user: u}}]\n",
                     cluster, user);
}

static void parse(const char *text, struct kube_config *out)
{
    struct error err = {0};
    if (kube_config_parse(text, strlen(text), NULL, NULL, out, &err) < 0)
        fail_msg("%s\n%s", text, err.message);
    assert_int_equal(err.code, ERROR_NONE);
}

static void parse_one(const char *cluster, const char *user, struct kube_config *out)
{
    cleanup_free char *text = one(cluster, user);
    parse(text, out);
}

static void expect_refused(const char *text, const char *part)
{
    struct error err = {0};
    struct kube_config config;
    if (kube_config_parse(text, strlen(text), NULL, NULL, &config, &err) == 0)
        fail_msg("accepted: %s", text);
    if (strstr(err.message, part) == NULL)
        fail_msg("%s\nsays     %s\nexpected %s", text, err.message, part);
    assert_null(config.server);
}

static void expect_one_refused(const char *cluster, const char *user, const char *part)
{
    cleanup_free char *text = one(cluster, user);
    expect_refused(text, part);
}

static void test_everything(void **state)
{
    (void)state;
    const char *text = "apiVersion: v1\n"
                       "kind: Config\n"
                       "preferences: {}\n"
                       "current-context: dev\n"
                       "clusters:\n"
                       "- name: other\n"
                       "  cluster: {server: https://other}\n"
                       "- name: near\n"
                       "  cluster:\n"
                       "    server: https://10.0.0.1:6443/\n"
                       "    tls-server-name: kubernetes\n"
                       "    certificate-authority-data: " BASE64_X "\n"
                       "users:\n"
                       "- name: admin\n"
                       "  user:\n"
                       "    client-certificate-data: " BASE64_X "\n"
                       "    client-key-data: " BASE64_Y "\n"
                       "contexts:\n"
                       "- name: dev\n"
                       "  context: {cluster: near, user: admin, namespace: functions}\n"
                       "- name: elsewhere\n"
                       "  context: {cluster: other}\n";
    struct kube_config config;
    parse(text, &config);
    assert_string_equal(config.server, "https://10.0.0.1:6443");
    assert_string_equal(config.namespace_, "functions");
    assert_string_equal(config.tls.ca_pem, PEM_X);
    assert_string_equal(config.tls.cert_pem, PEM_X);
    assert_string_equal(config.tls.key_pem, PEM_Y);
    assert_string_equal(config.tls.server_name, "kubernetes");
    assert_false(config.tls.insecure);
    assert_null(config.token);
    assert_null(config.exec);
    kube_config_clear(&config);
    assert_null(config.server);

    struct error err = {0};
    assert_int_equal(kube_config_parse(text, strlen(text), NULL, "elsewhere", &config, &err), 0);
    assert_string_equal(config.server, "https://other");
    assert_string_equal(config.namespace_, "default");
    assert_null(config.tls.cert_pem); /* no user: anonymous */
    kube_config_clear(&config);
}

static void test_users(void **state)
{
    (void)state;
    struct kube_config config;
    parse_one("server: http://x", "token: abc", &config);
    assert_string_equal(config.token, "abc");
    kube_config_clear(&config);

    parse_one("server: http://x", "tokenFile: /run/token, token: abc", &config);
    assert_string_equal(config.token_file, "/run/token");
    kube_config_clear(&config);

    parse_one("server: http://x, insecure-skip-tls-verify: true", "username: me, password: secret",
              &config);
    assert_string_equal(config.user, "me");
    assert_string_equal(config.password, "secret");
    assert_true(config.tls.insecure);
    kube_config_clear(&config);
}

static void test_exec(void **state)
{
    (void)state;
    struct kube_config config;
    parse_one("server: https://x",
              "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, "
              "args: [eks, get-token], env: [{name: A, value: b}, {name: C, value: ''}], "
              "interactiveMode: IfAvailable, installHint: get it, provideClusterInfo: true}",
              &config);
    assert_string_equal(config.exec->command, "aws");
    assert_string_equal(config.exec->api_version, "client.authentication.k8s.io/v1");
    assert_string_equal(config.exec->args[0], "eks");
    assert_string_equal(config.exec->args[1], "get-token");
    assert_null(config.exec->args[2]);
    assert_string_equal(config.exec->env[0], "A=b");
    assert_string_equal(config.exec->env[1], "C=");
    assert_null(config.exec->env[2]);
    assert_string_equal(config.exec->install_hint, "get it");
    assert_true(config.exec->provide_cluster_info);
    kube_config_clear(&config);

    /* v1beta1 needs no interactiveMode; fixed credentials win over a plugin. */
    parse_one("server: https://x",
              "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: p}", &config);
    assert_string_equal(config.exec->command, "p");
    kube_config_clear(&config);
    parse_one("server: https://x",
              "token: t, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: p}",
              &config);
    assert_string_equal(config.token, "t");
    assert_null(config.exec);
    kube_config_clear(&config);
}

#define EXEC_V1 "apiVersion: client.authentication.k8s.io/v1, "

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"", "", "cluster \"c\": server: is missing"},
        {"server: 10.0.0.1:6443", "", "cluster \"c\": server: "},
        {"server: 7", "", "server: must be text"},
        {"server: 'https://u:p@x'", "", "server: user and password do not belong into the address"},
        {"server: https://x, proxy-url: http://p", "", "proxy-url: "},
        {"server: https://x, insecure-skip-tls-verify: 1", "", "must be true or false"},
        {"server: https://x, certificate-authority-data: '*'", "",
         "certificate-authority-data: is not base64"},
        {"server: https://x, certificate-authority-data: QUI", "", "is not base64"},
        {"server: https://x, certificate-authority-data: QUJD", "", "is not PEM"},
        {"server: https://x, insecure-skip-tls-verify: true, certificate-authority-data: " BASE64_X,
         "", "insecure-skip-tls-verify"},
        {"server: https://x, certificate-authority: /nonexistent/ca.pem", "",
         "cluster \"c\": certificate-authority: cannot open /nonexistent/ca.pem"},
        {"server: https://x", "token: 123", "user \"u\": token: must be text"},
        {"server: https://x", "token: a, username: b", "token: cannot be given together"},
        {"server: https://x", "client-certificate-data: " BASE64_X, "client-key: is missing"},
        {"server: https://x", "client-key-data: " BASE64_X, "client-certificate: is missing"},
        {"server: https://x", "auth-provider: {name: gcp}", "user \"u\": auth-provider: "},
        {"server: https://x", "token: t, as: someone", "as: impersonation"},
        {"server: https://x", "token: t, as-groups: [g]", "as-groups: impersonation"},
        {"server: https://x", "exec: 1", "exec: must be a mapping"},
        {"server: https://x", "exec: {command: p}", "apiVersion must be"},
        {"server: https://x",
         "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: p}",
         "apiVersion must be"},
        {"server: https://x", "exec: {" EXEC_V1 "interactiveMode: Never}", "command is missing"},
        {"server: https://x", "exec: {" EXEC_V1 "command: p}", "interactiveMode must be given"},
        {"server: https://x", "exec: {" EXEC_V1 "command: p, interactiveMode: Always}",
         "interactiveMode Always is not supported"},
        {"server: https://x", "exec: {" EXEC_V1 "command: p, interactiveMode: Often}",
         "interactiveMode must be"},
        {"server: https://x", "exec: {" EXEC_V1 "command: p, interactiveMode: Never, args: [1]}",
         "args must be text"},
        {"server: https://x", "exec: {" EXEC_V1 "command: p, interactiveMode: Never, args: x}",
         "args must be a list"},
        {"server: https://x",
         "exec: {" EXEC_V1 "command: p, interactiveMode: Never, env: [{value: x}]}",
         "env needs a name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_one_refused(cases[i][0], cases[i][1], cases[i][2]);
}

static void test_broken_files(void **state)
{
    (void)state;
    expect_refused("", "is empty");
    expect_refused("kind: Pod\n", "is not a kubeconfig");
    expect_refused("- 1\n", "is not a kubeconfig");
    expect_refused("a: [", "kubeconfig: line ");
    expect_refused("contexts: [{name: a}, {name: b}]",
                   "no current-context is set; name one of: a, b");
    expect_refused("current-context: q\ncontexts: [{name: a}]", "no context \"q\"; there are: a");
    expect_refused("current-context: a\ncontexts: [{name: a}]",
                   "context \"a\": cluster: is missing");
    expect_refused("current-context: a\ncontexts: [{name: a, context: {cluster: z}}]",
                   "context \"a\": cluster: there is no cluster \"z\"");
    expect_refused("current-context: a\nclusters: [{name: z, cluster: {server: 'https://z'}}]\n"
                   "contexts: [{name: a, context: {cluster: z, user: u}}]",
                   "context \"a\": user: there is no user \"u\"");
    expect_refused("current-context: a\ncontexts: [{name: a}, {name: a}]", "\"a\" twice");
    expect_refused("current-context: a\ncontexts: {name: a}\nclusters: 3", "no context \"a\"");
}

static const char file_a[] = "clusters: [{name: c, cluster: {server: 'https://a'}}]\n"
                             "users: [{name: u, user: {token: ta}}]\n";
static const char file_b[] =
    "current-context: x\n"
    "clusters: [{name: c, cluster: {server: 'https://b/', tls-server-name: sb}}]\n"
    "users: [{name: u, user: {username: nn, password: p}}]\n"
    "contexts: [{name: x, context: {cluster: c, user: u, namespace: nb}}]\n";
static const char file_c[] = "current-context: yy\n"
                             "contexts:\n"
                             "- {name: x, context: {cluster: c, user: u, namespace: nc}}\n"
                             "- {name: yy, context: {cluster: c, user: u}}\n";

static void load_list(const struct place *place, const char *order, const char *context,
                      struct kube_config *out)
{
    cleanup_buf struct buf list;
    buf_init(&list, 4096);
    for (const char *name = order; *name; name++)
        assert_int_equal(*name == '-' ? buf_puts(&list, ":")
                                      : buf_printf(&list, ":%s/%c", place->dir, *name),
                         0);
    setenv("KUBECONFIG", buf_string(&list), 1);
    struct error err = {0};
    if (kube_config_load(NULL, context, out, &err) < 0)
        fail_msg("%s: %s", order, err.message);
}

static void test_list_of_files(void **state)
{
    const struct place *place = *state;
    put(place, "a", file_a);
    put(place, "b", file_b);
    put(place, "c", file_c);
    struct kube_config config;
    load_list(place, "abc", NULL, &config);
    assert_string_equal(config.server, "https://a");
    assert_string_equal(config.namespace_, "nb");
    assert_string_equal(config.token, "ta");
    assert_null(config.tls.server_name); /* nothing of the second entry of that name */
    assert_null(config.user);
    kube_config_clear(&config);

    load_list(place, "a-bzc", "yy", &config); /* an empty name and a missing file between */
    assert_string_equal(config.server, "https://a");
    assert_string_equal(config.namespace_, "default");
    kube_config_clear(&config);

    load_list(place, "cba", NULL, &config);
    assert_string_equal(config.server, "https://b");
    assert_string_equal(config.namespace_, "default");
    assert_string_equal(config.user, "nn");
    assert_string_equal(config.tls.server_name, "sb");
    assert_null(config.token);
    kube_config_clear(&config);
}

static void test_messages_name_the_file(void **state)
{
    const struct place *place = *state;
    struct kube_config config;
    struct error err = {0};
    put(place, "a", file_b);
    put(place, "b", "users: {");
    cleanup_free char *list = xasprintf("%s/a:%s/b", place->dir, place->dir);
    cleanup_free char *b = xasprintf("%s/b: line ", place->dir);
    setenv("KUBECONFIG", list, 1);
    assert_int_equal(kube_config_load(NULL, NULL, &config, &err), -1);
    assert_non_null(strstr(err.message, b));
}

static void test_explicit_path(void **state)
{
    const struct place *place = *state;
    struct kube_config config;
    struct error err = {0};
    put(place, "a", file_c); /* not used: the explicit path stands alone */
    put(place, "b", file_b);
    cleanup_free char *a = xasprintf("%s/a", place->dir), *b = xasprintf("%s/b", place->dir);
    cleanup_free char *missing = xasprintf("%s/none", place->dir);
    setenv("KUBECONFIG", a, 1);
    assert_int_equal(kube_config_load(b, NULL, &config, &err), 0);
    assert_string_equal(config.namespace_, "nb");
    kube_config_clear(&config);
    assert_int_equal(kube_config_load(missing, NULL, &config, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(err.message, missing));
}

static void test_home_and_relative_paths(void **state)
{
    const struct place *place = *state;
    cleanup_free char *kube = xasprintf("%s/.kube", place->dir);
    cleanup_free char *sub = xasprintf("%s/sub", place->dir);
    assert_int_equal(mkdir(kube, 0700), 0);
    assert_int_equal(mkdir(sub, 0700), 0);
    put(place, "sub/ca.pem", PEM_Y);
    cleanup_free char *text =
        one("server: https://x, certificate-authority: ../sub/ca.pem", "tokenFile: ../token");
    put(place, ".kube/config", text);
    struct kube_config config;
    struct error err = {0};
    assert_int_equal(kube_config_load(NULL, NULL, &config, &err), 0);
    assert_string_equal(config.tls.ca_pem, PEM_Y);
    cleanup_free char *token = xasprintf("%s/.kube/../token", place->dir);
    assert_string_equal(config.token_file, token);
    kube_config_clear(&config);

    cleanup_free char *exec =
        one("server: https://x",
            "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/plugin}");
    assert_int_equal(kube_config_parse(exec, strlen(exec), "/etc/k", NULL, &config, &err), 0);
    assert_string_equal(config.exec->command, "/etc/k/./bin/plugin");
    kube_config_clear(&config);
}

static void test_in_cluster(void **state)
{
    const struct place *place = *state;
    struct kube_config config;
    struct error err = {0};
    assert_int_equal(kube_config_in_cluster(place->dir, &config, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);

    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(kube_config_in_cluster(place->dir, &config, &err), -1);
    assert_non_null(strstr(err.message, "/token"));
    put(place, "token", "abc\n");
    assert_int_equal(kube_config_in_cluster(place->dir, &config, &err), -1);
    assert_non_null(strstr(err.message, "/ca.crt"));
    put(place, "ca.crt", PEM_X);
    assert_int_equal(kube_config_in_cluster(place->dir, &config, &err), 0);
    assert_string_equal(config.server, "https://10.96.0.1:443");
    assert_string_equal(config.namespace_, "default");
    assert_string_equal(config.tls.ca_pem, PEM_X);
    cleanup_free char *token = xasprintf("%s/token", place->dir);
    assert_string_equal(config.token_file, token);
    kube_config_clear(&config);

    put(place, "namespace", "functions\n");
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    assert_int_equal(kube_config_in_cluster(place->dir, &config, &err), 0);
    assert_string_equal(config.server, "https://[fd00::1]:443");
    assert_string_equal(config.namespace_, "functions");
    kube_config_clear(&config);
}

static void test_nothing_found(void **state)
{
    const struct place *place = *state;
    struct kube_config config;
    struct error err = {0};
    assert_int_equal(kube_config_load(NULL, NULL, &config, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(err.message, place->dir));
    assert_non_null(strstr(err.message, "not in a pod"));
}

static int load_as(struct kube_config_choice choice, struct kube_config *out, struct error *err)
{
    return kube_config_load_as(NULL, &choice, out, err);
}

static void test_choices(void **state)
{
    const struct place *place = *state;
    struct kube_config config;
    struct error err = {0};
    put(place, "a",
        "current-context: x\n"
        "clusters: [{name: c, cluster: {server: 'https://c'}}, {name: d, cluster: {server: "
        "'https://d', insecure-skip-tls-verify: true}}]\n"
        "users: [{name: u, user: {username: name, password: word}}, {name: v, user: {token: tv}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u, namespace: nx}}]\n");
    cleanup_free char *a = xasprintf("%s/a", place->dir);
    setenv("KUBECONFIG", a, 1);
    assert_int_equal(
        load_as((struct kube_config_choice){.cluster = "d", .user = "v"}, &config, &err), 0);
    assert_string_equal(config.server, "https://d");
    assert_true(config.tls.insecure);
    assert_string_equal(config.token, "tv");
    assert_string_equal(config.namespace_, "nx"); /* still the context's */
    assert_null(config.user);
    kube_config_clear(&config);

    assert_int_equal(
        load_as((struct kube_config_choice){.server = "http://s/", .token = "t"}, &config, &err),
        0);
    assert_string_equal(config.server, "http://s");
    assert_string_equal(config.token, "t");
    assert_null(config.user);
    assert_null(config.password);
    kube_config_clear(&config);

    assert_int_equal(load_as((struct kube_config_choice){.cluster = "e"}, &config, &err), -1);
    assert_non_null(strstr(err.message, "there is no cluster \"e\""));
    assert_int_equal(load_as((struct kube_config_choice){.user = "w"}, &config, &err), -1);
    assert_non_null(strstr(err.message, "there is no user \"w\""));
    assert_int_equal(load_as((struct kube_config_choice){.server = "s:80"}, &config, &err), -1);
    assert_non_null(strstr(err.message, "must begin with https:// or http://"));
    assert_null(config.server);
}

static void test_choices_without_a_context(void **state)
{
    const struct place *place = *state;
    struct kube_config config;
    struct error err = {0};
    assert_int_equal(load_as((struct kube_config_choice){.server = "https://s"}, &config, &err), 0);
    assert_string_equal(config.server, "https://s"); /* no kubeconfig is needed */
    assert_string_equal(config.namespace_, "default");
    kube_config_clear(&config);
    assert_int_equal(load_as((struct kube_config_choice){.user = "u"}, &config, &err), -1);
    assert_non_null(strstr(err.message, "user \"u\" asked for, but no kubeconfig"));
    put(place, "a", "clusters: [{name: c, cluster: {server: 'https://c'}}]\n");
    cleanup_free char *a = xasprintf("%s/a", place->dir);
    setenv("KUBECONFIG", a, 1);
    assert_int_equal(load_as((struct kube_config_choice){.cluster = "c"}, &config, &err), 0);
    assert_string_equal(config.server, "https://c");
    kube_config_clear(&config);
    assert_int_equal(load_as((struct kube_config_choice){0}, &config, &err), -1);
    assert_non_null(strstr(err.message, "no current-context is set"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_broken_files),
        cmocka_unit_test_setup_teardown(test_list_of_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_messages_name_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_explicit_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_home_and_relative_paths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_cluster, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_choices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_choices_without_a_context, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
