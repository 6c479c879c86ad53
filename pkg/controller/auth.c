#include "auth.h"
#include "base/memory.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "api/api.h"

#define MAX_TOKEN      15000
#define MAX_IDENTITIES 128
#define MAX_ACCESS     8 /* namespaces of one identity that are remembered */
#define MAX_UNDER_WAY  16
#define PER_SECOND     20.0 /* reviews that we ask for, at most, */
#define BURST          40.0 /* and at once */
#define REVIEW_MS      5000
#define WARN_EVERY_MS  10000

#define HASH_SIZE 65 /* in hex */

struct access {
    char *namespace_; /* "": all */
    bool allowed;
    int64_t until_ms;
};

/* What a token stands for. */
struct identity {
    char *user;   /* NULL: nobody */
    json_t *spec; /* of a SubjectAccessReview: user, groups, uid, extra */
    int64_t until_ms;
    struct access access[MAX_ACCESS];
    size_t next; /* place to be taken */
};

struct auth_ask {
    LIST_ENTRY(auth_ask) link;
    struct auth *auth; /* NULL: it is gone */
    char hash[HASH_SIZE];
    char *token;       /* while it is reviewed */
    char *namespace_;  /* "": all */
    auth_done on_done; /* NULL: nobody waits */
    void *arg;
};

struct auth {
    struct kube *kube;
    struct map identities; /* hash of the token → struct identity */
    LIST_HEAD(, auth_ask) asks;
    size_t under_way;
    double allowance;
    int64_t filled_ms, warned_ms;
};

/* --- what is remembered ---------------------------------------------------------------------- */
static void identity_free(void *value)
{
    struct identity *i = value;
    if (!i)
        return;
    for (size_t k = 0; k < MAX_ACCESS; k++)
        free(i->access[k].namespace_);
    json_decref(i->spec);
    free(i->user);
    free(i);
}

static struct identity *find_identity(const struct auth *a, const char *hash)
{
    struct identity *i = map_get(&a->identities, hash);
    return i && i->until_ms > clock_mono_ms() ? i : NULL;
}

static const struct access *find_access(const struct identity *i, const char *namespace_)
{
    for (size_t k = 0; k < MAX_ACCESS; k++)
        if (i->access[k].namespace_ && strcmp(i->access[k].namespace_, namespace_) == 0 &&
            i->access[k].until_ms > clock_mono_ms())
            return &i->access[k];
    return NULL;
}

/* Whatever no longer holds; all of it where that is not enough. */
static void make_room(struct auth *a)
{
    void *value;
    if (a->identities.count < MAX_IDENTITIES)
        return;
    for (size_t i = 0; (i = map_next(&a->identities, i, NULL, &value)) != 0;) {
        if (((struct identity *)value)->until_ms > clock_mono_ms())
            continue;
        i = map_remove_at(&a->identities, i);
        identity_free(value);
    }
    if (a->identities.count >= MAX_IDENTITIES)
        map_free(&a->identities, identity_free);
}

static struct identity *remember(struct auth *a, const char *hash, const json_t *user)
{
    struct identity *i = xcalloc(1, sizeof(*i));
    i->until_ms = clock_mono_ms() + AUTH_CACHE_MS;
    if (user) {
        static const char *const keys[] = {"groups", "uid", "extra"};
        i->user = xstrdup(json_str(json_object_get(user, "username")));
        i->spec = json_pack("{s:s}", "user", i->user);
        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            if (json_object_get(user, keys[k]))
                json_object_set(i->spec, keys[k], json_object_get(user, keys[k]));
    }
    make_room(a);
    identity_free(map_put(&a->identities, hash, i));
    return i;
}

static const struct access *remember_access(struct identity *i, const char *namespace_,
                                            bool allowed)
{
    struct access *access = &i->access[i->next++ % MAX_ACCESS];
    string_set(&access->namespace_, namespace_);
    access->allowed = allowed;
    access->until_ms = clock_mono_ms() + AUTH_CACHE_MS;
    return access;
}

/* --- verdicts -------------------------------------------------------------------------------- */
static const struct auth_verdict no_token = {
    401, NULL,
    "send the header \"Authorization: Bearer TOKEN\" with a token of this cluster, such as "
    "kubectl create token gives"};
static const struct auth_verdict bad_token = {
    401, NULL, "the API server does not know the token, or it has expired: get a new one"};
static const struct auth_verdict not_now = {
    503, NULL, "the API server could not be asked about the token: try again, or see the log"};
static const struct auth_verdict too_many = {
    503, NULL, "too many tokens are being reviewed: try again in a second"};

static void finish(struct auth_ask *ask, const struct auth_verdict *verdict)
{
    if (ask->on_done)
        ask->on_done(ask->arg, verdict);
    if (ask->auth)
        LIST_REMOVE(ask, link);
    free(ask->token);
    free(ask->namespace_);
    free(ask);
}

static void tell_access(auth_done on_done, void *arg, const struct identity *i,
                        const struct access *access)
{
    char message[400];
    struct auth_verdict verdict = {.status = 200, .user = i->user};
    if (!access->allowed) {
        snprintf(message, sizeof(message),
                 "%.200s needs the right to list " API_PLURAL "." API_GROUP " in %s%.63s", i->user,
                 *access->namespace_ ? "namespace " : "all namespaces; or add ?namespace=NAME",
                 access->namespace_);
        verdict = (struct auth_verdict){403, NULL, message};
    }
    on_done(arg, &verdict);
}

static void tell_and_finish(struct auth_ask *ask, const struct identity *i,
                            const struct access *access)
{
    auth_done on_done = ask->on_done;
    void *arg = ask->arg;
    ask->on_done = NULL;
    finish(ask, NULL);
    if (on_done)
        tell_access(on_done, arg, i, access);
}

/* --- reviews --------------------------------------------------------------------------------- */
static void fail(struct auth_ask *ask, const struct error *err)
{
    struct auth *a = ask->auth;
    int64_t now_ms = clock_mono_ms();
    if (err->code != ERROR_CANCELLED &&
        (a->warned_ms == 0 || now_ms - a->warned_ms >= WARN_EVERY_MS)) {
        struct error shown = *err;
        text_hide(shown.message, ask->token);
        a->warned_ms = now_ms;
        log_warn("who asks for the dashboard could not be reviewed", log_str("why", shown.message));
    }
    finish(ask, &not_now);
}

static void review(struct auth_ask *ask, const char *path, const json_t *body, kube_done on_done)
{
    ask->auth->under_way++;
    kube_send(ask->auth->kube, &(struct kube_request){.method = "POST",
                                                      .path = path,
                                                      .body = body,
                                                      .timeout_ms = REVIEW_MS,
                                                      .at_once = true,
                                                      .on_done = on_done,
                                                      .arg = ask});
}

/* False: nobody is there any more to be told, or the review failed, which was told. */
static bool landed(struct auth_ask *ask, const struct kube_response *response)
{
    if (!ask->auth) {
        finish(ask, NULL);
        return false;
    }
    bool failed = response->error.code != ERROR_NONE;
    ask->auth->under_way--;
    if (failed)
        fail(ask, &response->error);
    return !failed;
}

static void on_access(void *arg, const struct kube_response *response)
{
    struct auth_ask *ask = arg;
    if (!landed(ask, response))
        return;
    struct identity *i = find_identity(ask->auth, ask->hash);
    if (!i || !i->user) { /* it has expired meanwhile */
        finish(ask, &not_now);
        return;
    }
    bool allowed = json_is_true(json_path(response->json, "status", "allowed", NULL));
    tell_and_finish(ask, i, remember_access(i, ask->namespace_, allowed));
}

static void ask_access(struct auth_ask *ask, const struct identity *i)
{
    cleanup_json json_t *attributes =
        json_pack("{s:s, s:s, s:s}", "verb", "list", "group", API_GROUP, "resource", API_PLURAL);
    if (*ask->namespace_)
        json_object_set_new(attributes, "namespace", json_string(ask->namespace_));
    cleanup_json json_t *spec = json_copy(i->spec);
    json_object_set(spec, "resourceAttributes", attributes);
    cleanup_json json_t *body =
        json_pack("{s:s, s:s, s:O}", "apiVersion", "authorization.k8s.io/v1", "kind",
                  "SubjectAccessReview", "spec", spec);
    review(ask, "/apis/authorization.k8s.io/v1/subjectaccessreviews", body, on_access);
}

static void on_identity(void *arg, const struct kube_response *response)
{
    struct auth_ask *ask = arg;
    if (!landed(ask, response))
        return;
    const json_t *status = json_object_get(response->json, "status");
    const json_t *user = json_object_get(status, "user");
    bool known = json_is_true(json_object_get(status, "authenticated")) &&
                 *json_str(json_object_get(user, "username"));
    const struct identity *i = remember(ask->auth, ask->hash, known ? user : NULL);
    if (!known)
        finish(ask, &bad_token);
    else
        ask_access(ask, i);
}

static void ask_identity(struct auth_ask *ask, const char *token)
{
    cleanup_json json_t *body =
        json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "authentication.k8s.io/v1", "kind",
                  "TokenReview", "spec", "token", token);
    string_set(&ask->token, token);
    review(ask, "/apis/authentication.k8s.io/v1/tokenreviews", body, on_identity);
}

/* --- asking ---------------------------------------------------------------------------------- */
/* NULL: the header is none of a bearer. */
static const char *token_of(const char *authorization)
{
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return NULL;
    const char *token = authorization + 7 + strspn(authorization + 7, " ");
    size_t len = strlen(token);
    for (size_t i = 0; i < len; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return NULL;
    return len > 0 && len <= MAX_TOKEN ? token : NULL;
}

static void hash_of(const char *token, char out[HASH_SIZE])
{
    uint8_t hash[EVP_MAX_MD_SIZE] = {0};
    if (EVP_Digest(token, strlen(token), hash, NULL, EVP_sha256(), NULL) != 1)
        out_of_memory(); /* nobody may be taken for another */
    for (size_t i = 0; i < (HASH_SIZE - 1) / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static bool may_ask(struct auth *a)
{
    int64_t now_ms = clock_mono_ms();
    a->allowance += PER_SECOND * (double)(now_ms - a->filled_ms) / 1000;
    if (a->allowance > BURST)
        a->allowance = BURST;
    a->filled_ms = now_ms;
    if (a->under_way >= MAX_UNDER_WAY || a->allowance < 1)
        return false;
    a->allowance -= 1;
    return true;
}

static struct auth_ask *ask_new(struct auth *a, const char *hash, const char *namespace_,
                                auth_done on_done, void *arg)
{
    struct auth_ask *ask = xcalloc(1, sizeof(*ask));
    ask->auth = a;
    snprintf(ask->hash, sizeof(ask->hash), "%s", hash);
    ask->namespace_ = xstrdup(namespace_);
    ask->on_done = on_done;
    ask->arg = arg;
    LIST_INSERT_HEAD(&a->asks, ask, link);
    return ask;
}

struct auth_ask *auth_check(struct auth *a, const char *authorization, const char *namespace_,
                            auth_done on_done, void *arg)
{
    const char *token = token_of(authorization), *where = namespace_ ? namespace_ : "";
    char hash[HASH_SIZE];
    if (!token) {
        on_done(arg, &no_token);
        return NULL;
    }
    hash_of(token, hash);
    const struct identity *i = find_identity(a, hash);
    const struct access *access = i && i->user ? find_access(i, where) : NULL;
    if (access) {
        tell_access(on_done, arg, i, access);
    } else if (i && !i->user) {
        on_done(arg, &bad_token);
    } else if (!may_ask(a)) {
        on_done(arg, &too_many);
    } else {
        struct auth_ask *ask = ask_new(a, hash, where, on_done, arg);
        if (i)
            ask_access(ask, i);
        else
            ask_identity(ask, token);
        return ask;
    }
    return NULL;
}

void auth_forget(struct auth_ask *ask)
{
    if (ask)
        ask->on_done = NULL;
}

/* --- life ------------------------------------------------------------------------------------ */
struct auth *auth_new(struct kube *kube)
{
    struct auth *a = xcalloc(1, sizeof(*a));
    a->kube = kube;
    a->allowance = BURST;
    a->filled_ms = clock_mono_ms();
    LIST_INIT(&a->asks);
    return a;
}

/* Answers that are still to come find their asks, and nobody to tell. */
void auth_free(struct auth *a)
{
    struct auth_ask *ask;
    if (!a)
        return;
    while ((ask = LIST_FIRST(&a->asks))) {
        LIST_REMOVE(ask, link);
        ask->auth = NULL;
        ask->on_done = NULL;
    }
    map_free(&a->identities, identity_free);
    free(a);
}
