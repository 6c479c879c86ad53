/* Whether an earlier controller has left something of ours in Knative: asked once, by list, so that
 * a cluster where there is nothing pays for no watch. Discovery is asked first, which is open to
 * all: without Knative a list is refused to those who have no right to it. */
#include "kube/internal.h"

#include <string.h>

#define PAGE     250
#define RETRY_MS 10000

struct kube_left {
    struct kube *kube;
    char *const *namespaces;
    bool served;  /* by discovery */
    size_t place; /* in namespaces */
    char *more;   /* the token of the next page */
    struct kube_call *call;
    struct kube_timer *retry;
    void (*on_found)(void *arg);
    void *arg;
};

static void on_answer(void *arg, const struct kube_response *response);

static void get(struct kube_left *l, const char *path)
{
    l->call = kube_call_start(
        l->kube,
        &(struct kube_call_spec){.request = {.path = path, .on_done = on_answer, .arg = l}});
}

static void ask(void *arg)
{
    struct kube_left *l = arg;
    const char *namespace_ = l->namespaces[l->place];
    cleanup_free char *more = l->more ? http_escape(l->more) : NULL;
    cleanup_free char *path = xasprintf(
        KUBE_KNATIVE_SCALERS "%s%s/podautoscalers?limit=%d%s%s", namespace_ ? "/namespaces/" : "",
        namespace_ ? namespace_ : "", PAGE, more ? "&continue=" : "", more ? more : "");
    get(l, l->served ? path : KUBE_KNATIVE_SCALERS);
}

static void ask_next(struct kube_left *l)
{
    if (!l->namespaces[l->place] || !l->namespaces[l->place + 1])
        return;
    l->place++;
    ask(l);
}

static bool is_ours(const json_t *item)
{
    const json_t *annotations = json_path(item, "metadata", "annotations", NULL);
    return json_object_get(annotations, KUBE_STEERED) ||
           strcmp(json_str(json_object_get(annotations, KUBE_CLASS)), KUBE_OUR_CLASS) == 0;
}

static bool any_is_ours(const json_t *list)
{
    const json_t *item;
    size_t i;
    json_array_foreach (json_object_get(list, "items"), i, item)
        if (is_ours(item))
            return true;
    return false;
}

/* Without Knative, or without rights to it, nothing can be of ours; another failure may pass. */
static void on_failure(struct kube_left *l, const struct kube_response *response)
{
    bool closed = response->status == 404 || response->status == 403;
    string_set(&l->more, NULL);
    if (closed && l->served)
        ask_next(l);
    else if (!closed && response->error.code != ERROR_CANCELLED)
        kube_timer_start(l->retry, RETRY_MS);
}

static void on_answer(void *arg, const struct kube_response *response)
{
    struct kube_left *l = arg;
    const char *more = json_str(json_path(response->json, "metadata", "continue", NULL));
    l->call = NULL;
    if (response->error.code) {
        on_failure(l, response);
        return;
    }
    if (!l->served) {
        l->served = true;
        ask(l);
        return;
    }
    if (any_is_ours(response->json)) {
        l->on_found(l->arg);
        return;
    }
    string_set(&l->more, *more ? more : NULL);
    if (l->more)
        ask(l);
    else
        ask_next(l);
}

struct kube_left *kube_left_new(struct kube *kube, char *const *namespaces,
                                void (*on_found)(void *arg), void *arg)
{
    struct kube_left *l = xcalloc(1, sizeof(*l));
    *l = (struct kube_left){
        .kube = kube, .namespaces = namespaces, .on_found = on_found, .arg = arg};
    l->retry = kube_timer_new(kube_loop(kube), ask, l);
    ask(l);
    return l;
}

void kube_left_free(struct kube_left *l)
{
    if (!l)
        return;
    if (l->call)
        kube_call_cancel(l->call);
    kube_timer_free(l->retry);
    free(l->more);
    free(l);
}
