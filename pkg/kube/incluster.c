/* The configuration that a pod finds in its own file system, and the end of any configuration. */
#include "kube/credentials.h"

#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 20)

static char *read_below(const char *root, const char *name, struct error *err)
{
    cleanup_free char *path = xasprintf("%s/%s", root, name);
    return file_read(path, FILE_MAX_BYTES, NULL, err);
}

static char *read_namespace(const char *root)
{
    struct error ignored; /* not mounted by every kind of volume */
    char *name = read_below(root, "namespace", &ignored);
    if (name)
        name[strcspn(name, " \t\r\n")] = '\0';
    if (name && *name)
        return name;
    free(name);
    return xstrdup("default");
}

int kube_config_in_cluster(const char *root, struct kube_config *out, struct error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    *out = (struct kube_config){0};
    if (host == NULL || *host == '\0' || port == NULL || *port == '\0')
        return error_set(err, ERROR_NOT_FOUND,
                         "not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set");
    cleanup_free char *token = read_below(root, "token", err);
    cleanup_free char *ca = token ? read_below(root, "ca.crt", err) : NULL;
    if (ca == NULL)
        return error_prefix(err, "service account");
    if (strstr(ca, "-----BEGIN ") == NULL)
        return error_set(err, ERROR_INVALID, "service account: %s/ca.crt is not PEM", root);
    bool ipv6 = strchr(host, ':') != NULL;
    out->server = xasprintf("https://%s%s%s:%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
    out->token_file = xasprintf("%s/token", root);
    out->tls.ca_pem = xstrdup(ca);
    out->namespace_ = read_namespace(root);
    return 0;
}

static char **copy_list(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    char **copy = xcalloc(n + 1, sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        copy[i] = xstrdup(list[i]);
    return copy;
}

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

struct kube_exec *kube_exec_copy(const struct kube_exec *exec)
{
    struct kube_exec *copy = xcalloc(1, sizeof(*copy));
    copy->command = xstrdup(exec->command);
    copy->args = copy_list(exec->args);
    copy->env = copy_list(exec->env);
    copy->api_version = xstrdup(exec->api_version);
    copy->install_hint = xstrdup(exec->install_hint);
    copy->provide_cluster_info = exec->provide_cluster_info;
    return copy;
}

void kube_exec_free(struct kube_exec *exec)
{
    if (exec == NULL)
        return;
    free(exec->command);
    free_list(exec->args);
    free_list(exec->env);
    free(exec->api_version);
    free(exec->install_hint);
    free(exec);
}

void kube_config_clear(struct kube_config *config)
{
    free(config->server);
    free(config->namespace_);
    http_tls_clear(&config->tls);
    free(config->token);
    free(config->token_file);
    free(config->user);
    free(config->password);
    kube_exec_free(config->exec);
    *config = (struct kube_config){0};
}
