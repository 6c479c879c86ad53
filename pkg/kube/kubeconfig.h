/* The entries of a kubeconfig file. Private to pkg/kube. */
#ifndef FAASRL_KUBE_KUBECONFIG_H
#define FAASRL_KUBE_KUBECONFIG_H

#include "kube/kube.h"

struct kube_source { /* one kubeconfig file */
    char *file, *dir;
    json_t *root;
};

/* A named cluster, user or context, and where it is written. */
struct kube_entry {
    const struct kube_source *source;
    const char *kind, *name;
    json_t *object;
};

/* Names file, entry and field; is -1. */
#define kube_entry_fail(e, field, err, fmt, ...)                                                   \
    error_set(err, ERROR_INVALID, "%s: %s \"%.64s\": %s: " fmt, (e)->source->file, (e)->kind,      \
              (e)->name, field, ##__VA_ARGS__)
/* Copies the address of an API server, without slashes at its end; refuses one with a user or a
 * password in it, which would be told with the address. */
int kube_server_set(char **slot, const char *server, struct error *err);
/* *out is NULL when the field is absent or empty. */
int kube_entry_string(const struct kube_entry *e, const char *field, const char **out,
                      struct error *err);
/* Fill in what the entry says; on failure out may be filled in part. */
int kube_entry_cluster(const struct kube_entry *e, struct kube_config *out, struct error *err);
int kube_entry_user(const struct kube_entry *e, struct kube_config *out, struct error *err);

#endif
