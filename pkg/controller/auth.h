/* Who may see the dashboard: those whom the API server knows by their token, and lets list MPAs.
 * What it answered holds for at most 10 s, under the token's hash; a token is never written
 * anywhere. Private to pkg/controller and its tests. */
#ifndef FAASRL_CONTROLLER_AUTH_H
#define FAASRL_CONTROLLER_AUTH_H

#include "kube/kube.h"

#define AUTH_CACHE_MS 10000

struct auth;
struct auth_ask; /* someone waits for a verdict */

struct auth_verdict {
    unsigned status;     /* 200; 401: nobody known; 403: may not; 503: it cannot be said now */
    const char *user;    /* NULL unless 200 */
    const char *message; /* what would be right; NULL where 200 */
};
typedef void (*auth_done)(void *arg, const struct auth_verdict *verdict);

struct auth *auth_new(struct kube *kube);
void auth_free(struct auth *auth); /* who still waits is not told; NULL: nothing */
/* authorization: the header, NULL: there was none; namespace_ NULL: all. Calls on_done at once, and
 * gives NULL, or later. */
struct auth_ask *auth_check(struct auth *auth, const char *authorization, const char *namespace_,
                            auth_done on_done, void *arg);
void auth_forget(struct auth_ask *ask); /* on_done will not be called; NULL: nothing */

#endif
