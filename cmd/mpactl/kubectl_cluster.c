/* What kubectl mpa asks the API server, and what its answers mean to the user. */
#include <stdio.h>
#include <string.h>

#include "kubectl.h"
#include "mpactl.h"

#define PAGE "limit=500"
#define MPAS "/apis/" API_GROUP "/" API_VERSION

int cluster_open(struct cluster *c, const struct plugin_options *o, struct error *err)
{
    const struct kube_config_choice choice = {o->context, o->cluster, o->user, o->server, o->token};
    *c = (struct cluster){.timeout_ms = o->timeout_ms};
    uv_loop_init(&c->loop);
    c->http = http_new(&c->loop, "kubectl-mpa/" FAASRL_VERSION);
    if (kube_config_load_as(o->kubeconfig, &choice, &c->config, err) < 0)
        return -1;
    if (!o->all_namespaces)
        c->namespace_ = o->namespace_ ? o->namespace_ : c->config.namespace_;
    c->kube = kube_new(&c->loop, c->http, &c->config, NULL, err);
    return c->kube ? 0 : -1;
}

void cluster_close(struct cluster *c)
{
    if (c->kube)
        kube_free(c->kube);
    http_free(c->http);
    kube_config_clear(&c->config);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    uv_loop_close(&c->loop);
}

static void on_answer(void *arg, const struct kube_response *response)
{
    struct cluster *c = arg;
    c->err = response->error;
    c->status = response->status;
    c->answer = json_incref((json_t *)(uintptr_t)response->json);
    uv_stop(&c->loop);
}

/* An answer of 404 that says of no object that it is not there: the kind is not. */
static bool is_unknown_kind(const struct cluster *c)
{
    return c->status == 404 && *json_str(json_path(c->answer, "details", "name", NULL)) == '\0';
}

static int explain_failure(struct cluster *c, struct error *err)
{
    if (is_unknown_kind(c))
        return error_set(err, ERROR_UNAVAILABLE,
                         "the cluster at %s has no " API_PLURAL
                         ": install them with kubectl apply --server-side -f crds, or with the "
                         "chart (docs/install.md)",
                         c->config.server);
    *err = c->err;
    return -1;
}

static json_t *ask(struct cluster *c, struct kube_request request, struct error *err)
{
    request.on_done = on_answer;
    request.arg = c;
    request.timeout_ms = c->timeout_ms;
    kube_send(c->kube, &request);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    if (c->err.code == ERROR_NONE)
        return c->answer;
    explain_failure(c, err);
    json_decref(c->answer);
    return NULL;
}

json_t *cluster_get(struct cluster *c, const char *path, struct error *err)
{
    return ask(c, (struct kube_request){.path = path}, err);
}

json_t *cluster_patch(struct cluster *c, const char *path, const json_t *patch, struct error *err)
{
    return ask(c, (struct kube_request){.path = path, .patch = KUBE_PATCH_MERGE, .body = patch},
               err);
}

/* --- MPAs ------------------------------------------------------------------------------------ */
char *cluster_mpas_path(const struct cluster *c)
{
    return c->namespace_ ? xasprintf(MPAS "/namespaces/%s/" API_PLURAL, c->namespace_)
                         : xstrdup(MPAS "/" API_PLURAL);
}

json_t *cluster_list(struct cluster *c, const char *path, const char *query, struct error *err)
{
    json_t *all = json_array();
    cleanup_free char *more = xstrdup("");
    do {
        cleanup_free char *page = xasprintf("%s?" PAGE "%s%s", path, query, more);
        cleanup_json json_t *answer = cluster_get(c, page, err);
        if (answer == NULL) {
            json_decref(all);
            return NULL;
        }
        json_array_extend(all, json_object_get(answer, "items"));
        cleanup_free char *token =
            http_escape(json_str(json_path(answer, "metadata", "continue", NULL)));
        free(more);
        more = *token ? xasprintf("&continue=%s", token) : xstrdup("");
    } while (*more);
    return all;
}

/* The namespaces that have an MPA of this name, " there is one in a, b"; best effort. */
static void hint_elsewhere(struct cluster *c, const char *name, struct buf *out)
{
    struct error unused;
    size_t i;
    const json_t *item;
    cleanup_json json_t *all = cluster_list(c, MPAS "/" API_PLURAL, "", &unused);
    json_array_foreach (all, i, item)
        if (strcmp(view_name(item), name) == 0 &&
            buf_printf(out, "%s%s", out->len ? ", " : "", view_namespace(item)) < 0)
            return;
}

static int fail_not_found(struct cluster *c, const char *name, struct error *err)
{
    cleanup_buf struct buf elsewhere;
    buf_init(&elsewhere, 200);
    hint_elsewhere(c, name, &elsewhere);
    if (elsewhere.len)
        return error_set(err, ERROR_NOT_FOUND,
                         "there is no " API_KIND " \"%.100s\" in namespace %s, but in %s: name it "
                         "with -n",
                         name, c->namespace_, buf_string(&elsewhere));
    return error_set(err, ERROR_NOT_FOUND,
                     "there is no " API_KIND " \"%.100s\" in namespace %s: kubectl mpa list -A "
                     "shows all there are",
                     name, c->namespace_);
}

json_t *cluster_mpa(struct cluster *c, const char *name, struct error *err)
{
    cleanup_free char *in = cluster_mpas_path(c);
    cleanup_free char *path = xasprintf("%s/%s", in, name);
    json_t *mpa = cluster_get(c, path, err);
    if (mpa == NULL && c->status == 404 && err->code == ERROR_NOT_FOUND)
        fail_not_found(c, name, err);
    return mpa;
}

static json_t *named_mpas(struct cluster *c, const struct args_list *names, struct error *err)
{
    json_t *all = json_array();
    for (size_t i = 0; i < names->count; i++) {
        json_t *mpa = cluster_mpa(c, names->items[i], err);
        if (mpa == NULL) {
            json_decref(all);
            return NULL;
        }
        json_array_append_new(all, mpa);
    }
    return all;
}

json_t *cluster_mpas(struct cluster *c, const struct plugin_options *o, struct error *err)
{
    if (o->names.count > 0)
        return named_mpas(c, &o->names, err);
    cleanup_free char *path = cluster_mpas_path(c);
    cleanup_free char *escaped = http_escape(o->selector ? o->selector : "");
    cleanup_free char *query = *escaped ? xasprintf("&labelSelector=%s", escaped) : xstrdup("");
    return cluster_list(c, path, query, err);
}

/* --- events ---------------------------------------------------------------------------------- */
static int compare_events(const void *a, const void *b)
{
    return strcmp(view_event_time(*(json_t *const *)a), view_event_time(*(json_t *const *)b));
}

json_t *cluster_events(struct cluster *c, const char *name, struct error *err)
{
    cleanup_free char *path = xasprintf("/api/v1/namespaces/%s/events", c->namespace_);
    cleanup_free char *query = xasprintf(
        "&fieldSelector=involvedObject.kind%%3D" API_KIND "%%2CinvolvedObject.name%%3D%s", name);
    cleanup_json json_t *list = cluster_list(c, path, query, err);
    if (list == NULL)
        return NULL;
    size_t n = json_array_size(list);
    cleanup_free json_t **events = xcalloc(n + 1, sizeof(*events));
    for (size_t i = 0; i < n; i++)
        events[i] = json_array_get(list, i);
    qsort(events, n, sizeof(*events), compare_events);
    json_t *sorted = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append(sorted, events[i]);
    return sorted;
}
