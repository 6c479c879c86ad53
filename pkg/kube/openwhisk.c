/* OpenWhisk's actions as workloads. An invoker makes a bare pod for an action, named
 *
 *     wsk UNIQUE-NAME N - COUNT - NAMESPACE - ACTION
 *
 * where N is the invoker's number, which the label `invoker` has, too; letters are lower-cased, '_'
 * becomes '-', what is neither letter nor digit is dropped, and what is beyond 63 characters cut.
 * So the name does not tell one action for certain. Labels that tell it are added when the pod is
 * initialised, but only where they can be labels: not for an action in a package, and not by
 * invokers that work with OpenWhisk's scheduler. */
#include "kube/internal.h"

#include <ctype.h>
#include <string.h>

#define MAX_POD_NAME 63
#define PREWARM      "prewarm-" /* as the namespace of those that are no action's yet */

static const struct kube_resource action_resource = {KUBE_OPENWHISK, KUBE_ACTION, "", ""};

struct ends { /* of the names of an action's pods */
    char all[KUBE_ACTION_ENDS][KUBE_ACTION_END_SIZE];
    size_t count;
};

struct target { /* what somebody has asked for */
    struct kube_workload workload;
    struct kube_action action;
    struct ends ends;
    char *namespace_, *name;
    bool by_label_only; /* its pods' names do not tell, or another action has the same */
};

struct kube_openwhisk {
    const struct kube_cache *cache;
    struct map targets; /* "namespace/name" → struct target */
};

/* --- names of actions --------------------------------------------------------------------------
 */
static bool is_part(const char *text, size_t len)
{
    if (len == 0 || len >= KUBE_ACTION_PART_SIZE || text[len - 1] == ' ')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_' &&
            (i == 0 || !strchr("@ .&-", text[i])))
            return false;
    return true;
}

static bool take_part(const char **at, char out[KUBE_ACTION_PART_SIZE])
{
    size_t len = strcspn(*at, "/");
    if (!is_part(*at, len))
        return false;
    memcpy(out, *at, len);
    out[len] = '\0';
    *at += len + ((*at)[len] == '/' && (*at)[len + 1]);
    return true;
}

int kube_action_parse(const char *text, struct kube_action *out, struct error *err)
{
    char parts[3][KUBE_ACTION_PART_SIZE] = {0};
    const char *at = text;
    size_t count = 0;
    *out = (struct kube_action){0};
    while (*at && count < ARRAY_LEN(parts) && take_part(&at, parts[count]))
        count++;
    if (*at || count < 2)
        return error_set(err, ERROR_INVALID,
                         "\"%.100s\" is no action of OpenWhisk: NAMESPACE/ACTION or "
                         "NAMESPACE/PACKAGE/ACTION is",
                         text);
    memcpy(out->namespace_, parts[0], sizeof(parts[0]));
    if (count == 3)
        memcpy(out->package, parts[1], sizeof(parts[1]));
    memcpy(out->name, parts[count - 1], sizeof(parts[0]));
    return 0;
}

/* Appends what a pod's name keeps of a text. */
static char *put_kept(char *out, const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text))
            *out++ = (char)tolower((unsigned char)*text);
        else if (*text == '_')
            *out++ = '-';
    return out;
}

static size_t without_dashes(const char *text, size_t len)
{
    while (len > 0 && text[len - 1] == '-')
        len--;
    return len;
}

static void make_end(const char *namespace_, const char *package, const char *name,
                     char out[KUBE_ACTION_END_SIZE])
{
    char *at = put_kept(put_kept(out, namespace_), package);
    *at++ = '-';
    at = put_kept(at, name);
    out[without_dashes(out, (size_t)(at - out))] = '\0';
}

size_t kube_action_ends(const struct kube_action *a,
                        char out[KUBE_ACTION_ENDS][KUBE_ACTION_END_SIZE])
{
    make_end(a->namespace_, "", a->name, out[0]);
    if (!*a->package)
        return 1;
    make_end(a->namespace_, a->package, a->name, out[1]);
    return 2;
}

/* --- names of pods -----------------------------------------------------------------------------
 */
/* The next place in a pod's name where the action's part may begin: behind the invoker's number, a
 * dash, a count and a dash. NULL: there is none. */
static const char *next_end(const char *name, const char *from, const char *number)
{
    size_t len = strlen(number);
    for (const char *dash = strchr(from, '-'); dash; dash = strchr(dash + 1, '-')) {
        size_t digits = strspn(dash + 1, "0123456789");
        if ((size_t)(dash - name) >= 3 + len && memcmp(dash - len, number, len) == 0 &&
            digits > 0 && dash[1 + digits] == '-')
            return dash + 1 + digits + 1;
    }
    return NULL;
}

static const char *number_of(const struct kube_pod *pod)
{
    static const char prefix[] = "invoker";
    const char *invoker = pod->openwhisk->invoker;
    if (strncmp(invoker, prefix, strlen(prefix)) != 0 || strncmp(pod->name, "wsk", 3) != 0)
        return NULL;
    const char *number = invoker + strlen(prefix);
    return *number && number[strspn(number, "0123456789")] == '\0' ? number : NULL;
}

/* Whether OpenWhisk would name a pod so. A name of full length, or one less, as a dash at the end
 * is dropped, may have been longer. */
static enum kube_claim compare(const char *name, const char *found, const char *end)
{
    size_t head = (size_t)(found - name), len = strlen(end);
    if (head >= MAX_POD_NAME)
        return KUBE_CLAIM_NONE;
    bool cut = head + len > MAX_POD_NAME;
    if (cut)
        len = without_dashes(end, MAX_POD_NAME - head);
    if (strlen(found) != len || memcmp(found, end, len) != 0)
        return KUBE_CLAIM_NONE;
    return cut || head + len >= MAX_POD_NAME - 1 || strncmp(end, PREWARM, strlen(PREWARM)) == 0
               ? KUBE_CLAIM_DOUBTFUL
               : KUBE_CLAIM_BY_NAME;
}

static enum kube_claim claim_by_name(const struct ends *ends, const struct kube_pod *pod)
{
    size_t readings = 0;
    const char *number = number_of(pod);
    enum kube_claim best = KUBE_CLAIM_NONE;
    for (const char *at = pod->name; number && (at = next_end(pod->name, at, number)); at--) {
        readings++;
        for (size_t i = 0; i < ends->count; i++) {
            enum kube_claim its = compare(pod->name, at, ends->all[i]);
            best = its > best ? its : best;
        }
    }
    return best != KUBE_CLAIM_NONE && readings > 1 ? KUBE_CLAIM_DOUBTFUL : best;
}

static bool is_labelled(const struct kube_action *a, const struct kube_action_pod *says)
{
    return !*a->package && strcmp(says->namespace_, a->namespace_) == 0 &&
           strcmp(says->action, a->name) == 0;
}

static enum kube_claim claim(const struct kube_action *a, const struct ends *ends,
                             const struct kube_pod *pod)
{
    if (!pod->openwhisk)
        return KUBE_CLAIM_NONE;
    if (pod->openwhisk->action)
        return is_labelled(a, pod->openwhisk) ? KUBE_CLAIM_BY_LABEL : KUBE_CLAIM_NONE;
    return claim_by_name(ends, pod);
}

enum kube_claim kube_action_claim(const struct kube_action *a, const struct kube_pod *pod)
{
    struct ends ends;
    ends.count = kube_action_ends(a, ends.all);
    return claim(a, &ends, pod);
}

/* --- targets -----------------------------------------------------------------------------------
 */
static bool is_its(const struct target *t, const struct kube_pod *pod)
{
    enum kube_claim its = claim(&t->action, &t->ends, pod);
    return its == KUBE_CLAIM_BY_LABEL || (its == KUBE_CLAIM_BY_NAME && !t->by_label_only);
}

static bool is_there(const struct kube_pod *pod)
{
    return !pod->deleting && pod->phase != KUBE_FINISHED;
}

/* Another action whose pods have the same names, as the labels of one of them tell. */
static const struct kube_action_pod *labelled_rival(const struct kube_openwhisk *o,
                                                    const struct target *t)
{
    const struct kube_pod *pod;
    for (struct kube_node *at = NULL;
         (pod = kube_cache_next_action_pod(o->cache, t->namespace_, &at));)
        if (is_there(pod) && pod->openwhisk->action && !is_labelled(&t->action, pod->openwhisk) &&
            claim_by_name(&t->ends, pod) != KUBE_CLAIM_NONE)
            return pod->openwhisk;
    return NULL;
}

struct count { /* of pods that an action claims */
    int32_t labelled, named;
    const struct kube_pod *by_name, *doubtful; /* one of them, or NULL */
};

static struct count count_pods(const struct kube_openwhisk *o, const struct target *t)
{
    struct count n = {0};
    const struct kube_pod *pod;
    for (struct kube_node *at = NULL;
         (pod = kube_cache_next_action_pod(o->cache, t->namespace_, &at));) {
        enum kube_claim its = is_there(pod) ? claim(&t->action, &t->ends, pod) : KUBE_CLAIM_NONE;
        n.labelled += its == KUBE_CLAIM_BY_LABEL;
        n.named += its == KUBE_CLAIM_BY_NAME;
        n.by_name = its == KUBE_CLAIM_BY_NAME ? pod : n.by_name;
        n.doubtful = its == KUBE_CLAIM_DOUBTFUL ? pod : n.doubtful;
    }
    return n;
}

static struct target *target_of(struct kube_openwhisk *o, const struct kube_target *wanted,
                                struct error *err)
{
    struct kube_action action;
    cleanup_free char *key = xasprintf("%s/%s", wanted->namespace_, wanted->name);
    struct target *t = map_get(&o->targets, key);
    if (t)
        return t;
    if (kube_action_parse(wanted->name, &action, err) < 0)
        return NULL;
    t = xcalloc(1, sizeof(*t));
    t->action = action;
    t->ends.count = kube_action_ends(&action, t->ends.all);
    t->namespace_ = xstrdup(wanted->namespace_);
    t->name = xstrdup(wanted->name);
    t->workload = (struct kube_workload){.resource = &action_resource,
                                         .kind = (char *)(uintptr_t)action_resource.kind,
                                         .namespace_ = t->namespace_,
                                         .name = t->name};
    map_put(&o->targets, key, t);
    return t;
}

/* No pod is its own for certain, but this one may be: that is told, not guessed. */
static int tell_doubt(const struct target *t, const struct count *n, const char *rival,
                      const struct kube_action_pod *labelled, struct error *err)
{
    if (n->doubtful)
        return error_set(
            err, ERROR_CONFLICT,
            "pod %s may be of %s or not: its name, of %d characters at most, was cut or "
            "can be read in two ways, and no label tells; it is left alone",
            n->doubtful->name, t->name, MAX_POD_NAME);
    return error_set(
        err, ERROR_CONFLICT,
        "pod %s may be of %s or of %s%s%s: OpenWhisk names the pods of both alike, and "
        "no label tells; it is left alone",
        n->by_name->name, t->name, labelled ? labelled->namespace_ : rival, labelled ? "/" : "",
        labelled ? labelled->action : "");
}

const struct kube_workload *kube_openwhisk_find(struct kube_openwhisk *o,
                                                const struct kube_target *wanted, struct error *err)
{
    if (strcmp(wanted->kind, KUBE_ACTION) != 0) {
        error_set(err, ERROR_INVALID, "a %s of OpenWhisk cannot be scaled; an " KUBE_ACTION " can",
                  wanted->kind);
        return NULL;
    }
    struct target *t = target_of(o, wanted, err);
    if (!t)
        return NULL;
    struct count n = count_pods(o, t);
    const struct kube_action_pod *labelled = labelled_rival(o, t);
    t->by_label_only = wanted->rival || labelled || n.doubtful;
    int32_t its = n.labelled + (t->by_label_only ? 0 : n.named);
    t->workload.replicas = t->workload.replicas_wanted = its;
    if (its > 0 || !(n.by_name || n.doubtful))
        return &t->workload;
    tell_doubt(t, &n, wanted->rival, labelled, err);
    return NULL;
}

size_t kube_openwhisk_pods(const struct kube_openwhisk *o, const struct kube_workload *workload,
                           const struct kube_pod **out, size_t max)
{
    cleanup_free char *key = xasprintf("%s/%s", workload->namespace_, workload->name);
    const struct target *t = map_get(&o->targets, key);
    const struct kube_pod *pod;
    size_t count = 0;
    for (struct kube_node *at = NULL;
         t && (pod = kube_cache_next_action_pod(o->cache, t->namespace_, &at));) {
        if (!is_its(t, pod))
            continue;
        if (count < max)
            out[count] = pod;
        count++;
    }
    return count;
}

const struct kube_workload *kube_openwhisk_owner(const struct kube_openwhisk *o,
                                                 const struct kube_pod *pod)
{
    void *value;
    for (size_t i = 0; (i = map_next(&o->targets, i, NULL, &value)) != 0;) {
        const struct target *t = value;
        if (strcmp(t->namespace_, pod->namespace_) == 0 && is_its(t, pod))
            return &t->workload;
    }
    return NULL;
}

bool kube_is_action(const struct kube_workload *workload)
{
    return strcmp(workload->resource->api_version, KUBE_OPENWHISK) == 0;
}

/* --- life --------------------------------------------------------------------------------------
 */
struct kube_openwhisk *kube_openwhisk_new(const struct kube_cache *cache)
{
    struct kube_openwhisk *o = xcalloc(1, sizeof(*o));
    o->cache = cache;
    return o;
}

static void target_free(void *value)
{
    struct target *t = value;
    free(t->namespace_);
    free(t->name);
    free(t);
}

void kube_openwhisk_free(struct kube_openwhisk *o)
{
    map_free(&o->targets, target_free);
    free(o);
}
