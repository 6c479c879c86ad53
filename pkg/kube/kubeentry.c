/* What a kubeconfig says of a cluster and of a user. What we cannot honour is refused, never passed
 * over in silence. */
#include "kube/credentials.h"
#include "kube/kubeconfig.h"

#include <stdio.h>
#include <string.h>

#define PEM_MAX_BYTES ((size_t)1 << 20)
#define MAX_EXEC_LIST 1000

int kube_entry_string(const struct kube_entry *e, const char *field, const char **out,
                      struct error *err)
{
    const json_t *value = json_object_get(e->object, field);
    *out = NULL;
    if (value == NULL || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return kube_entry_fail(e, field, err, "must be text; put it in quotes");
    if (*json_string_value(value))
        *out = json_string_value(value);
    return 0;
}

static int entry_copy(const struct kube_entry *e, const char *field, char **out, struct error *err)
{
    const char *value;
    if (kube_entry_string(e, field, &value, err) < 0)
        return -1;
    string_set(out, value);
    return 0;
}

static int entry_bool(const struct kube_entry *e, const char *field, bool *out, struct error *err)
{
    const json_t *value = json_object_get(e->object, field);
    if (value && !json_is_boolean(value) && !json_is_null(value))
        return kube_entry_fail(e, field, err, "must be true or false");
    *out = json_is_true(value);
    return 0;
}

/* Fails when the field is given at all. */
static int entry_refuse(const struct kube_entry *e, const char *field, const char *why,
                        struct error *err)
{
    const json_t *value = json_object_get(e->object, field);
    bool empty = value == NULL || json_is_null(value) ||
                 (json_is_string(value) && *json_string_value(value) == '\0');
    return empty ? 0 : kube_entry_fail(e, field, err, "%s", why);
}

/* --- files and PEM --- */

static char *resolve_path(const struct kube_source *source, const char *path)
{
    if (*path == '/' || source->dir == NULL)
        return xstrdup(path);
    return xasprintf("%s/%s", source->dir, path);
}

static int check_pem(const struct kube_entry *e, const char *field, const char *pem, size_t len,
                     struct error *err)
{
    if (strlen(pem) != len || strstr(pem, "-----BEGIN ") == NULL)
        return kube_entry_fail(e, field, err, "is not PEM");
    return 0;
}

/* From FIELD-data, else from the file that FIELD names; *out stays NULL when neither is there. */
static int entry_pem(const struct kube_entry *e, const char *field, char **out, struct error *err)
{
    char data_field[48];
    snprintf(data_field, sizeof(data_field), "%s-data", field);
    const char *data, *path;
    size_t len = 0;
    if (kube_entry_string(e, data_field, &data, err) < 0 ||
        kube_entry_string(e, field, &path, err) < 0)
        return -1;
    if (data) {
        if (strlen(data) > PEM_MAX_BYTES)
            return kube_entry_fail(e, data_field, err, "is larger than %zu bytes", PEM_MAX_BYTES);
        *out = base64_decode(data, &len);
        return *out ? check_pem(e, data_field, *out, len, err)
                    : kube_entry_fail(e, data_field, err, "is not base64");
    }
    if (path == NULL)
        return 0;
    cleanup_free char *full = resolve_path(e->source, path);
    struct error why = {0};
    *out = file_read(full, PEM_MAX_BYTES, &len, &why);
    return *out ? check_pem(e, field, *out, len, err)
                : kube_entry_fail(e, field, err, "%s", why.message);
}

/* --- cluster --- */

static bool names_user(const char *server)
{
    const char *scheme_end = strstr(server, "://"), *host = scheme_end ? scheme_end + 3 : server;
    return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

int kube_server_set(char **slot, const char *server, struct error *err)
{
    if (names_user(server))
        return error_set(err, ERROR_INVALID,
                         "user and password do not belong into the address but to the user");
    if (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0)
        return error_set(err, ERROR_INVALID, "\"%.100s\" must begin with https:// or http://",
                         server);
    string_set(slot, server);
    for (size_t n = strlen(*slot); n > 0 && (*slot)[n - 1] == '/';)
        (*slot)[--n] = '\0';
    return 0;
}

static int read_server(const struct kube_entry *e, struct kube_config *out, struct error *err)
{
    const char *server;
    if (kube_entry_string(e, "server", &server, err) < 0)
        return -1;
    if (server == NULL)
        return kube_entry_fail(e, "server", err, "is missing");
    struct error why = {0};
    return kube_server_set(&out->server, server, &why) < 0
               ? kube_entry_fail(e, "server", err, "%s", why.message)
               : 0;
}

int kube_entry_cluster(const struct kube_entry *e, struct kube_config *out, struct error *err)
{
    if (read_server(e, out, err) < 0 ||
        entry_refuse(e, "proxy-url", "a proxy is not supported", err) < 0 ||
        entry_copy(e, "tls-server-name", &out->tls.server_name, err) < 0 ||
        entry_bool(e, "insecure-skip-tls-verify", &out->tls.insecure, err) < 0 ||
        entry_pem(e, "certificate-authority", &out->tls.ca_pem, err) < 0)
        return -1;
    if (out->tls.insecure && out->tls.ca_pem)
        return kube_entry_fail(e, "insecure-skip-tls-verify", err,
                               "cannot be true together with a certificate-authority");
    return 0;
}

/* --- user --- */

static int exec_fail(const struct kube_entry *user, struct error *err, const char *why)
{
    return kube_entry_fail(user, "exec", err, "%s", why);
}

/* Makes room for what the list holds and a NULL behind it. */
static char **new_list(const struct kube_entry *user, const json_t *list, const char *name,
                       struct error *err)
{
    if ((list && !json_is_null(list) && !json_is_array(list)) ||
        json_array_size(list) > MAX_EXEC_LIST) {
        kube_entry_fail(user, "exec", err, "%s must be a list of at most %d", name, MAX_EXEC_LIST);
        return NULL;
    }
    return xcalloc(json_array_size(list) + 1, sizeof(char *));
}

static int read_args(const struct kube_entry *user, const json_t *list, char ***out,
                     struct error *err)
{
    *out = new_list(user, list, "args", err);
    for (size_t i = 0; *out && i < json_array_size(list); i++) {
        const json_t *arg = json_array_get(list, i);
        if (!json_is_string(arg))
            return exec_fail(user, err, "each of args must be text; put it in quotes");
        (*out)[i] = xstrdup(json_string_value(arg));
    }
    return *out ? 0 : -1;
}

static int read_env(const struct kube_entry *user, const json_t *list, char ***out,
                    struct error *err)
{
    *out = new_list(user, list, "env", err);
    for (size_t i = 0; *out && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *value = json_object_get(item, "value");
        const char *name = json_str(json_object_get(item, "name"));
        if (*name == '\0' || strchr(name, '=') || (value && !json_is_string(value)))
            return exec_fail(user, err, "each of env needs a name, and a value that is text");
        (*out)[i] = xasprintf("%s=%s", name, json_str(value));
    }
    return *out ? 0 : -1;
}

static int check_exec(const struct kube_entry *user, const struct kube_entry *e, struct error *err)
{
    const char *version, *mode;
    if (kube_entry_string(e, "apiVersion", &version, err) < 0 ||
        kube_entry_string(e, "interactiveMode", &mode, err) < 0)
        return -1;
    bool v1 = version && strcmp(version, "client.authentication.k8s.io/v1") == 0;
    bool v1beta1 = version && strcmp(version, "client.authentication.k8s.io/v1beta1") == 0;
    if (!v1 && !v1beta1)
        return exec_fail(user, err,
                         "apiVersion must be client.authentication.k8s.io/v1 or /v1beta1");
    if (mode == NULL)
        return v1 ? exec_fail(user, err, "interactiveMode must be given with apiVersion v1") : 0;
    if (strcmp(mode, "Always") == 0)
        return exec_fail(user, err,
                         "interactiveMode Always is not supported: nobody can answer the plugin");
    if (strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
        return exec_fail(user, err, "interactiveMode must be Never, IfAvailable or Always");
    return 0;
}

static int read_exec(const struct kube_entry *user, struct kube_exec **out, struct error *err)
{
    json_t *object = json_object_get(user->object, "exec");
    if (object == NULL || json_is_null(object))
        return 0;
    if (!json_is_object(object))
        return exec_fail(user, err, "must be a mapping");
    const struct kube_entry e = {user->source, "exec of user", user->name, object};
    if (check_exec(user, &e, err) < 0)
        return -1;
    const char *command;
    if (kube_entry_string(&e, "command", &command, err) < 0)
        return -1;
    if (command == NULL)
        return exec_fail(user, err, "command is missing");
    struct kube_exec *exec = *out = xcalloc(1, sizeof(*exec));
    if (entry_copy(&e, "apiVersion", &exec->api_version, err) < 0 ||
        entry_copy(&e, "installHint", &exec->install_hint, err) < 0 ||
        entry_bool(&e, "provideClusterInfo", &exec->provide_cluster_info, err) < 0)
        return -1;
    exec->command = strchr(command, '/') ? resolve_path(user->source, command) : xstrdup(command);
    if (read_args(user, json_object_get(object, "args"), &exec->args, err) < 0)
        return -1;
    return read_env(user, json_object_get(object, "env"), &exec->env, err);
}

static int read_token(const struct kube_entry *e, struct kube_config *out, struct error *err)
{
    const char *path;
    if (entry_copy(e, "token", &out->token, err) < 0 ||
        kube_entry_string(e, "tokenFile", &path, err) < 0)
        return -1;
    if (path)
        out->token_file = resolve_path(e->source, path);
    return 0;
}

/* What acts as someone else, or asks someone we cannot ask, must not be passed over in silence. */
static int refuse_unsupported(const struct kube_entry *e, struct error *err)
{
    static const char *const impersonation[] = {"as", "as-uid", "as-groups", "as-user-extra"};
    for (size_t i = 0; i < ARRAY_LEN(impersonation); i++)
        if (entry_refuse(e, impersonation[i], "impersonation is not supported", err) < 0)
            return -1;
    return entry_refuse(e, "auth-provider",
                        "is not supported (Kubernetes removed it in 1.26); use exec", err);
}

int kube_entry_user(const struct kube_entry *e, struct kube_config *out, struct error *err)
{
    if (refuse_unsupported(e, err) < 0 || read_token(e, out, err) < 0 ||
        entry_copy(e, "username", &out->user, err) < 0 ||
        entry_copy(e, "password", &out->password, err) < 0 ||
        entry_pem(e, "client-certificate", &out->tls.cert_pem, err) < 0 ||
        entry_pem(e, "client-key", &out->tls.key_pem, err) < 0 || read_exec(e, &out->exec, err) < 0)
        return -1;
    bool basic = out->user || out->password, token = out->token || out->token_file;
    if (basic && token)
        return kube_entry_fail(e, "token", err,
                               "cannot be given together with username and password");
    if ((out->tls.cert_pem == NULL) != (out->tls.key_pem == NULL))
        return kube_entry_fail(e, out->tls.cert_pem ? "client-key" : "client-certificate", err,
                               "is missing; certificate and key come together");
    if (basic || token || out->tls.cert_pem) { /* as kubectl: the plugin is for those without */
        kube_exec_free(out->exec);
        out->exec = NULL;
    }
    return 0;
}
