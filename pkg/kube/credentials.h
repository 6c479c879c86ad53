/* Who we are to the API server, as of now: fixed credentials, a token file that rotates, or a
 * credential plugin. Private to pkg/kube. Basic authentication is not here: client.c takes user and
 * password from the configuration. */
#ifndef FAASRL_KUBE_CREDENTIALS_H
#define FAASRL_KUBE_CREDENTIALS_H

#include "kube/kube.h"

#define KUBE_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_credentials;

/* Called exactly once per get. On success err is NULL, tls is never NULL, and bearer is NULL when
 * there is no token. bearer is gone after the call. tls stays valid for an hour after a later get
 * has given another one, and at most until kube_credentials_free: long enough for every request
 * that was sent with it. On failure bearer and tls are NULL. */
typedef void (*kube_credentials_done)(void *arg, const char *bearer, const struct http_tls *tls,
                                      const struct error *err);

/* Takes copies of what it needs from config. Never NULL. */
struct kube_credentials *kube_credentials_new(uv_loop_t *loop, const struct kube_config *config);
/* Calls done before it returns, except when a plugin has to be run first: then done is called from
 * the loop when the plugin has ended. Getters that come meanwhile share that run. */
void kube_credentials_get(struct kube_credentials *c, kube_credentials_done done, void *arg);
/* Takes back the gets that still wait with this done and arg; their done is not called. */
void kube_credentials_forget(struct kube_credentials *c, kube_credentials_done done,
                             const void *arg);
/* After a 401: the next get reads the token file, or runs the plugin, again. */
void kube_credentials_invalidate(struct kube_credentials *c);
/* Those who wait get ERROR_CANCELLED; a running plugin is killed. Run the loop once more after it,
 * so that libuv can close its handles. Not allowed inside a done. */
void kube_credentials_free(struct kube_credentials *c);

/* --- plugin.c: one run of a credential plugin ------------------------------------------------- */
struct kube_plugin;
/* output is what it wrote to stdout, or NULL when it failed; then err says why. */
typedef void (*kube_plugin_done)(void *arg, const char *output, size_t len,
                                 const struct error *err);
/* Starts the program with info as KUBERNETES_EXEC_INFO. done is called exactly once, from the loop;
 * the run is freed before that. NULL when it could not be started. */
struct kube_plugin *kube_plugin_start(uv_loop_t *loop, const struct kube_exec *exec,
                                      const char *info, kube_plugin_done done, void *arg,
                                      struct error *err);
/* Kills the program; done is not called. */
void kube_plugin_cancel(struct kube_plugin *plugin);

struct kube_exec *kube_exec_copy(const struct kube_exec *exec);
void kube_exec_free(struct kube_exec *exec); /* NULL is fine */

#endif
