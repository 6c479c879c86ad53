/* Any bytes as a kubeconfig: refused with a message, or a configuration that hangs together. */
#include "kube/kube.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool is_pem(const char *pem)
{
    return pem == NULL || strstr(pem, "-----BEGIN ");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    struct kube_config config;
    if (kube_config_parse((const char *)data, size, "/nonexistent", NULL, &config, &err) < 0) {
        check(err.code != ERROR_NONE && err.message[0] && config.server == NULL);
        return 0;
    }
    check(err.code == ERROR_NONE && config.namespace_ && strncmp(config.server, "http", 4) == 0);
    check((config.tls.cert_pem == NULL) == (config.tls.key_pem == NULL));
    check(is_pem(config.tls.ca_pem) && is_pem(config.tls.cert_pem) && is_pem(config.tls.key_pem));
    check(config.exec == NULL || (config.exec->command && config.exec->args && config.exec->env));
    kube_config_clear(&config);
    return 0;
}
