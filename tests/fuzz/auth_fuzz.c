/* Any header of who asks for the dashboard, any namespace, and any answers of the API server to the
 * two reviews: there is one verdict, nobody gets in but whom both answers let in, what was answered
 * holds for the next one, and the log has no token. */
#include "controller/auth.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LEAST_TOKEN 8 /* shorter ones may be a word of the log */

enum { AUTHORIZATION, NAMESPACE, IDENTITY, ACCESS, LINES };

struct outcome {
    int done;
    unsigned status;
};

static struct { /* the requests of the input under way */
    int sent;
    struct kube_request last; /* on_done is NULL when it was answered */
    char *token, *user, *namespace_;
} api;

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* In place of the client's. */
void kube_send(struct kube *kube, const struct kube_request *request)
{
    (void)kube;
    check(api.last.on_done == NULL && request->at_once && strcmp(request->method, "POST") == 0);
    const json_t *spec = json_object_get(request->body, "spec");
    const json_t *where = json_object_get(spec, "resourceAttributes");
    bool identity = strstr(request->path, "/tokenreviews") != NULL;
    check(identity || strstr(request->path, "/subjectaccessreviews"));
    string_set(identity ? &api.token : &api.user,
               json_str(json_object_get(spec, identity ? "token" : "user")));
    if (!identity) {
        check(strcmp(json_str(json_object_get(where, "verb")), "list") == 0);
        string_set(&api.namespace_, json_string_value(json_object_get(where, "namespace")));
    }
    api.last = *request;
    api.sent++;
}

/* "!why" is a failure, all else what was answered. */
static json_t *read_answer(const char *text, struct error *err)
{
    if (*text == '!') {
        error_set(err, ERROR_UNAVAILABLE, "%s", text + 1);
        return NULL;
    }
    return json_loads(text, JSON_ALLOW_NUL, NULL);
}

static void answer(const char *text)
{
    struct kube_response response = {0};
    kube_done on_done = api.last.on_done;
    cleanup_json json_t *json = read_answer(text, &response.error);
    response.json = json;
    api.last.on_done = NULL;
    on_done(api.last.arg, &response);
}

static void on_verdict(void *arg, const struct auth_verdict *v)
{
    struct outcome *o = arg;
    o->done++;
    o->status = v->status;
    check(v->status == 200 || v->status == 401 || v->status == 403 || v->status == 503);
    check((v->status == 200) == (v->user != NULL) && (v->status == 200) == (v->message == NULL));
    check(!v->user || strcmp(v->user, api.user) == 0);
}

static struct outcome ask(struct auth *a, char *const lines[LINES])
{
    struct outcome o = {0};
    auth_check(a, lines[AUTHORIZATION], *lines[NAMESPACE] ? lines[NAMESPACE] : NULL, on_verdict,
               &o);
    for (int i = 0; api.last.on_done; i++) {
        bool identity = strstr(api.last.path, "/tokenreviews") != NULL;
        check(i < 2 && o.done == 0);
        answer(lines[identity ? IDENTITY : ACCESS]);
    }
    check(o.done == 1);
    return o;
}

/* What the answers say, read once more. */
static bool let_in(char *const lines[LINES])
{
    struct error ignored;
    cleanup_json json_t *identity = read_answer(lines[IDENTITY], &ignored);
    cleanup_json json_t *access = read_answer(lines[ACCESS], &ignored);
    const json_t *status = json_object_get(identity, "status");
    return json_is_true(json_object_get(status, "authenticated")) &&
           *json_str(json_path(status, "user", "username", NULL)) &&
           json_is_true(json_path(access, "status", "allowed", NULL));
}

static void check_asked(char *const lines[LINES], const struct outcome *o)
{
    size_t all = strlen(lines[AUTHORIZATION]), len = api.token ? strlen(api.token) : 0;
    cleanup_json json_t *where = json_string(lines[NAMESPACE]);
    if (api.sent > 0)
        check(len > 0 && len < all && strcmp(lines[AUTHORIZATION] + all - len, api.token) == 0);
    if (api.sent > 1 && where) /* it is UTF-8 */
        check(strcmp(api.namespace_ ? api.namespace_ : "", lines[NAMESPACE]) == 0);
    check((o->status == 200) == (api.sent == 2 && let_in(lines)));
    check(api.sent > 0 || o->status == 401);
}

/* Only what was known is known: a failure is asked again, and may find nobody any more. */
static void ask_again(struct auth *a, char *const lines[LINES], const struct outcome *first)
{
    struct outcome o = {0};
    int sent = api.sent;
    if (first->status != 503) {
        o = ask(a, lines);
        check(o.status == first->status && api.sent == sent);
    }
    clock_advance(AUTH_CACHE_MS);
    auth_forget(auth_check(a, lines[AUTHORIZATION], NULL, on_verdict, &o));
    auth_free(a);
    if (api.last.on_done)
        answer(lines[IDENTITY]);
}

static void check_log(const struct buf *log)
{
    const char *why = strstr(buf_string(log), " why=");
    if (why && api.token && strlen(api.token) >= LEAST_TOKEN && !strchr(api.token, '*'))
        check(strstr(why + 5, api.token) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf log;
    char *lines[LINES];
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    char *rest = text;
    for (size_t i = 0; i < LINES; i++)
        lines[i] = rest ? strsep(&rest, "\n") : text + size;
    buf_init(&log, 1 << 20);
    log_set_output_for_test(&log);
    clock_set(1000, INT64_C(1767225600000));
    struct auth *a = auth_new(NULL);
    struct outcome first = ask(a, lines);
    check_asked(lines, &first);
    ask_again(a, lines, &first);
    check_log(&log);
    log_set_output_for_test(NULL);
    buf_free(&log);
    string_set(&api.token, NULL);
    string_set(&api.user, NULL);
    string_set(&api.namespace_, NULL);
    api.sent = 0;
    return 0;
}
