/* kubeconfig files by kubectl's rules. They are not merged but asked in order, so that every
 * message can name the file that is wrong. */
#include "kube/kubeconfig.h"
#include "kube/credentials.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_MAX_BYTES ((size_t)4 << 20)
#define MAX_FILES        64

struct sources {
    size_t count;
    struct kube_source items[MAX_FILES];
};

/* --- contexts --- */

/* The first file that has the name wins, with all of its fields. */
static int find_entry(const struct sources *s, struct kube_entry *e, struct error *err)
{
    char key[16];
    snprintf(key, sizeof(key), "%ss", e->kind);
    for (size_t i = 0; i < s->count && e->source == NULL; i++) {
        const json_t *list = json_object_get(s->items[i].root, key);
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *item = json_array_get(list, k);
            if (strcmp(json_str(json_object_get(item, "name")), e->name) != 0)
                continue;
            if (e->source)
                return error_set(err, ERROR_INVALID, "%s: %s has the name \"%.64s\" twice",
                                 s->items[i].file, key, e->name);
            e->source = &s->items[i];
            e->object = json_object_get(item, e->kind);
        }
    }
    return e->source ? 0 : -1;
}

/* As many names as fit. */
static void list_contexts(const struct sources *s, struct buf *out)
{
    for (size_t i = 0; i < s->count; i++) {
        const json_t *list = json_object_get(s->items[i].root, "contexts");
        for (size_t k = 0; k < json_array_size(list); k++)
            if (buf_printf(out, "%s%s", out->len ? ", " : "",
                           json_str(json_object_get(json_array_get(list, k), "name"))) < 0)
                return;
    }
}

static int fail_no_context(const struct sources *s, const char *wanted, struct error *err)
{
    cleanup_buf struct buf names;
    buf_init(&names, 200);
    list_contexts(s, &names);
    const char *known = names.len ? buf_string(&names) : "none";
    const char *file = s->items[0].file;
    if (wanted == NULL)
        return error_set(err, ERROR_INVALID, "%s: no current-context is set; name one of: %s", file,
                         known);
    return error_set(err, ERROR_INVALID, "%s: there is no context \"%.64s\"; there are: %s", file,
                     wanted, known);
}

/* Finds what the context calls its cluster or user; e->source stays NULL when it names none. */
static int find_referenced(const struct sources *s, const struct kube_entry *context,
                           struct kube_entry *e, struct error *err)
{
    struct error why = {0};
    if (kube_entry_string(context, e->kind, &e->name, err) < 0)
        return -1;
    if (e->name == NULL || find_entry(s, e, &why) == 0)
        return 0;
    if (why.code == ERROR_NONE)
        return kube_entry_fail(context, e->kind, err, "there is no %s \"%.64s\"", e->kind, e->name);
    *err = why;
    return -1;
}

static int find_context(const struct sources *s, const char *name, struct kube_entry *out,
                        struct error *err)
{
    for (size_t i = 0; name == NULL && i < s->count; i++) {
        const char *current = json_str(json_object_get(s->items[i].root, "current-context"));
        name = *current ? current : NULL;
    }
    *out = (struct kube_entry){.kind = "context", .name = name};
    struct error why = {0};
    if (name && find_entry(s, out, &why) == 0)
        return 0;
    if (why.code == ERROR_NONE)
        return fail_no_context(s, name, err);
    *err = why;
    return -1;
}

/* A cluster or user by its own name, whatever the context says. */
static int find_named(const struct sources *s, const char *name, struct kube_entry *e,
                      struct error *err)
{
    struct error why = {0};
    e->name = name;
    if (find_entry(s, e, &why) == 0)
        return 0;
    if (why.code == ERROR_NONE)
        return error_set(err, ERROR_INVALID, "%s: there is no %s \"%.64s\"", s->items[0].file,
                         e->kind, name);
    *err = why;
    return -1;
}

static int find_chosen(const struct sources *s, const char *name, const struct kube_entry *context,
                       struct kube_entry *e, struct error *err)
{
    if (name && *name)
        return find_named(s, name, e, err);
    return context->source ? find_referenced(s, context, e, err) : 0;
}

static bool is_set(const char *text)
{
    return text && *text;
}

static bool has_current_context(const struct sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (*json_str(json_object_get(s->items[i].root, "current-context")))
            return true;
    return false;
}

static int configure(const struct sources *s, const struct kube_config_choice *choice,
                     struct kube_config *out, struct error *err)
{
    struct kube_entry context = {0}, cluster = {.kind = "cluster"}, user = {.kind = "user"};
    const char *namespace_ = NULL, *name = is_set(choice->context) ? choice->context : NULL;
    bool needed = name || (!is_set(choice->cluster) && !is_set(choice->server));
    if ((needed || has_current_context(s)) &&
        (find_context(s, name, &context, err) < 0 ||
         kube_entry_string(&context, "namespace", &namespace_, err) < 0))
        return -1;
    if (find_chosen(s, choice->cluster, &context, &cluster, err) < 0 ||
        find_chosen(s, choice->user, &context, &user, err) < 0)
        return -1;
    if (cluster.source == NULL && !is_set(choice->server))
        return kube_entry_fail(&context, "cluster", err, "is missing");
    if (cluster.source && kube_entry_cluster(&cluster, out, err) < 0)
        return -1;
    if (user.source && kube_entry_user(&user, out, err) < 0)
        return -1;
    out->namespace_ = xstrdup(namespace_ ? namespace_ : "default");
    return 0;
}

/* --- what the user said beside the files --- */

static int use_server(const char *server, struct kube_config *out, struct error *err)
{
    return kube_server_set(&out->server, server, err) < 0 ? error_prefix(err, "server") : 0;
}

/* A token stands for who we are, so that other ways to say it go. */
static void use_token(const char *token, struct kube_config *out)
{
    string_set(&out->token, token);
    string_set(&out->token_file, NULL);
    string_set(&out->user, NULL);
    string_set(&out->password, NULL);
    kube_exec_free(out->exec);
    out->exec = NULL;
}

static int override(const struct kube_config_choice *choice, struct kube_config *out,
                    struct error *err)
{
    if (is_set(choice->server) && use_server(choice->server, out, err) < 0)
        return -1;
    if (is_set(choice->token))
        use_token(choice->token, out);
    return 0;
}

/* --- files --- */

static void sources_free(struct sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->items[i].file);
        free(s->items[i].dir);
        json_decref(s->items[i].root);
    }
}
#define cleanup_sources __attribute__((cleanup(sources_free)))

/* The place is told, but no alias and no scalar: it may be a password that begins with * or !. */
static int yaml_fail(const char *file, struct error *err)
{
    char *problem = err ? strstr(err->message, ": ") : NULL;
    if (problem && (problem[2] == '*' || problem[2] == '"'))
        snprintf(
            problem, sizeof(err->message) - (size_t)(problem - err->message),
            ": an alias or a tag that cannot be followed; quote a text that begins with * or !");
    return error_prefix(err, "%s", file);
}

/* An empty text adds nothing. */
static int add_text(struct sources *s, const char *file, const char *dir, const char *text,
                    size_t len, struct error *err)
{
    cleanup_json json_t *documents = yaml_to_json(text, len, err);
    if (documents == NULL)
        return yaml_fail(file, err);
    json_t *root = json_array_get(documents, 0);
    if (root == NULL)
        return 0;
    const json_t *kind = json_object_get(root, "kind");
    if (!json_is_object(root) || (kind && strcmp(json_str(kind), "Config") != 0))
        return error_set(err, ERROR_INVALID, "%s: is not a kubeconfig (kind: Config)", file);
    if (s->count == MAX_FILES)
        return error_set(err, ERROR_TOO_LARGE, "%s: more than %d kubeconfig files", file,
                         MAX_FILES);
    s->items[s->count++] = (struct kube_source){xstrdup(file), xstrdup(dir), json_incref(root)};
    return 0;
}

static int add_file(struct sources *s, const char *path, bool must_exist, struct error *err)
{
    struct error why = {0};
    size_t len;
    cleanup_free char *text = file_read(path, CONFIG_MAX_BYTES, &len, &why);
    if (text == NULL && why.code == ERROR_NOT_FOUND && !must_exist)
        return 0;
    if (text == NULL) {
        *err = why;
        return -1;
    }
    const char *slash = strrchr(path, '/');
    cleanup_free char *dir =
        slash ? xasprintf("%.*s", (int)(slash - path + (slash == path)), path) : xstrdup(".");
    return add_text(s, path, dir, text, len, err);
}

static int add_list(struct sources *s, const char *list, struct error *err)
{
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, ":");
        cleanup_free char *path = xasprintf("%.*s", (int)len, p);
        if (len > 0 && add_file(s, path, false, err) < 0)
            return -1;
        p += len + (p[len] == ':');
    }
    return 0;
}

static int finish(const struct sources *s, const struct kube_config_choice *choice,
                  struct kube_config *out, struct error *err)
{
    *out = (struct kube_config){0};
    if (configure(s, choice, out, err) == 0 && override(choice, out, err) == 0)
        return 0;
    kube_config_clear(out);
    return -1;
}

int kube_config_parse(const char *text, size_t len, const char *dir, const char *context,
                      struct kube_config *out, struct error *err)
{
    cleanup_sources struct sources s = {0};
    *out = (struct kube_config){0};
    if (add_text(&s, "kubeconfig", dir, text, len, err) < 0)
        return -1;
    if (s.count == 0)
        return error_set(err, ERROR_INVALID, "kubeconfig: is empty");
    return finish(&s, &(struct kube_config_choice){.context = context}, out, err);
}

/* No kubeconfig was found where one might be. */
static int fall_back(const char *looked_at, const struct kube_config_choice *choice,
                     struct kube_config *out, struct error *err)
{
    static const char *const kinds[] = {"context", "cluster", "user"};
    const char *const named[] = {choice->context, choice->cluster, choice->user};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (is_set(named[i]))
            return error_set(err, ERROR_NOT_FOUND,
                             "%s \"%.64s\" asked for, but no kubeconfig at %s", kinds[i], named[i],
                             looked_at);
    if (is_set(choice->server)) {
        out->namespace_ = xstrdup("default");
        if (override(choice, out, err) == 0)
            return 0;
        kube_config_clear(out);
        return -1;
    }
    struct error why = {0};
    if (kube_config_in_cluster(KUBE_SERVICE_ACCOUNT, out, &why) == 0)
        return override(choice, out, err);
    return error_set(err, why.code, "no kubeconfig at %s, and %s", looked_at, why.message);
}

int kube_config_load_as(const char *path, const struct kube_config_choice *choice,
                        struct kube_config *out, struct error *err)
{
    cleanup_sources struct sources s = {0};
    *out = (struct kube_config){0};
    if (path && *path) {
        if (add_file(&s, path, true, err) < 0)
            return -1;
        if (s.count == 0)
            return error_set(err, ERROR_INVALID, "%s: is empty", path);
        return finish(&s, choice, out, err);
    }
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
    cleanup_free char *at =
        list && *list ? xstrdup(list) : xasprintf("%s/.kube/config", home ? home : "");
    int result = list && *list ? add_list(&s, at, err) : add_file(&s, at, false, err);
    if (result < 0)
        return -1;
    return s.count == 0 ? fall_back(at, choice, out, err) : finish(&s, choice, out, err);
}

int kube_config_load(const char *path, const char *context, struct kube_config *out,
                     struct error *err)
{
    return kube_config_load_as(path, &(struct kube_config_choice){.context = context}, out, err);
}
