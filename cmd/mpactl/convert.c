/* mpactl convert: reads autoscalers, puts together those of the same target, and writes MPAs. What
 * cannot be carried over is told on stderr and above each MPA. */
#include "convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "convert_build.h"
#include "mpactl.h"
#include "options.h"

#define MAX_FILE_BYTES (16u << 20)

#define AT(field) offsetof(struct convert_options, field)
static const struct args_option table[] = {
    {"filename", ARGS_LIST, AT(files), NULL, 0, 0, NULL,
     "manifest with autoscalers; - is standard input; may be given several times"},
    {"latency", ARGS_TEXT, AT(latency), NULL, 0, 0, NULL,
     "goal of all MPAs, such as 250ms; else what was held before is"},
    {"percentile", ARGS_NUMBER, AT(percentile), "99", 1, 99.999, NULL, "of the latency goal"},
    {"replicas", ARGS_NUMBER, AT(replicas), NULL, 1, 10000, NULL,
     "how many a target that only a VPA has is to have"},
    {"recommender", ARGS_TEXT, AT(recommender), NULL, 0, 0, NULL,
     "who decides; hpa or vpa for what only one of them scaled, else threshold, when not given"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};
static const struct options_short shorts[] = {{'f', "filename"}, {'h', "help"}, {0}};

struct input { /* a file that was read */
    char *text;
    size_t len;
};

struct conversion {
    const struct convert_options *options;
    struct input *inputs;
    struct convert_source *sources;
    size_t source_count;
    struct convert_mpa *mpas;
    size_t mpa_count;
};

/* --- reading --------------------------------------------------------------------------------- */
static const struct kind {
    const char *group, *versions[3], *kind, *target;
    int (*convert)(struct convert_mpa *mpa, const struct convert_source *source, struct error *err);
} kinds[] = {
    {"autoscaling",
     {"v2", "v2beta2", "v1"},
     "HorizontalPodAutoscaler",
     "spec.scaleTargetRef",
     convert_hpa},
    {"autoscaling.k8s.io",
     {"v1", "v1beta2"},
     "VerticalPodAutoscaler",
     "spec.targetRef",
     convert_vpa},
    {"keda.sh", {"v1alpha1"}, "ScaledObject", "spec.scaleTargetRef", convert_keda},
};

/* NULL: none of ours; err is set where it is, but of a version that is not known. */
static const struct kind *find_kind(const struct convert_source *source, struct error *err)
{
    const char *version = json_str(json_object_get(source->object, "apiVersion"));
    const char *slash = strchr(version, '/');
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].kind, source->kind) != 0)
            continue;
        size_t len = slash ? (size_t)(slash - version) : 0;
        bool ours = strlen(kinds[i].group) == len && strncmp(kinds[i].group, version, len) == 0;
        for (size_t v = 0; ours && v < ARRAY_LEN(kinds[i].versions) && kinds[i].versions[v]; v++)
            if (strcmp(kinds[i].versions[v], version + len + 1) == 0)
                return &kinds[i];
        convert_fail(source, "apiVersion", err,
                     "\"%.64s\" is not known: ask the API server for %s/%s", version,
                     kinds[i].group, kinds[i].versions[0]);
        return NULL;
    }
    return NULL;
}

static void add_source(struct conversion *c, const char *file, const struct input *input,
                       size_t document, const char *prefix, const json_t *object)
{
    c->sources = xrealloc(c->sources, c->source_count + 1, sizeof(*c->sources));
    c->sources[c->source_count++] = (struct convert_source){
        .file = file,
        .text = input->text,
        .len = input->len,
        .document = document,
        .prefix = xstrdup(prefix),
        .object = json_deep_copy(object),
        .kind = xstrdup(json_str(json_object_get(object, "kind"))),
        .name = xstrdup(json_str(json_path(object, "metadata", "name", NULL))),
        .namespace_ = xstrdup(json_str(json_path(object, "metadata", "namespace", NULL)))};
}

static int read_file(struct conversion *c, const char *file, struct input *input, struct error *err)
{
    bool standard = strcmp(file, "-") == 0;
    input->text = file_read(standard ? "/dev/stdin" : file, MAX_FILE_BYTES, &input->len, err);
    if (input->text == NULL)
        return -1;
    cleanup_json json_t *documents = yaml_to_json(input->text, input->len, err);
    if (documents == NULL)
        return error_prefix(err, "%s", file);
    for (size_t i = 0; i < json_array_size(documents); i++) {
        const json_t *document = json_array_get(documents, i);
        const json_t *items = json_object_get(document, "items");
        if (!json_is_array(items))
            add_source(c, file, input, i, "", document);
        for (size_t k = 0; k < json_array_size(items); k++) {
            cleanup_free char *prefix = xasprintf("items[%zu].", k);
            add_source(c, file, input, i, prefix, json_array_get(items, k));
        }
    }
    return 0;
}

/* --- putting together ------------------------------------------------------------------------ */
/* scaleTargetRef, with KEDA's defaults; what else is in it stays to be noted. */
static json_t *take_target(const struct convert_source *source, const struct kind *kind,
                           struct error *err)
{
    json_t *target;
    if (convert_object(source, kind->target, &target, err) < 0)
        return NULL;
    bool keda = kind->convert == convert_keda;
    cleanup_json json_t *version = convert_take(target, "apiVersion");
    cleanup_json json_t *of = convert_take(target, "kind");
    cleanup_json json_t *name = convert_take(target, "name");
    if (*json_str(name) == '\0' || (!keda && *json_str(of) == '\0')) {
        convert_fail(source, kind->target, err, "must name the kind and the name of a workload");
        return NULL;
    }
    if (!keda && *json_str(version) == '\0') {
        convert_fail(source, kind->target, err, "must have an apiVersion, such as apps/v1");
        return NULL;
    }
    return json_pack("{s:s,s:s,s:s}", "apiVersion", version ? json_str(version) : "apps/v1", "kind",
                     of ? json_str(of) : "Deployment", "name", json_str(name));
}

static struct convert_mpa *mpa_for(struct conversion *c, const struct convert_source *source,
                                   json_t *target)
{
    for (size_t i = 0; i < c->mpa_count; i++)
        if (json_equal(c->mpas[i].target, target) &&
            strcmp(c->mpas[i].namespace_, source->namespace_) == 0)
            return &c->mpas[i];
    c->mpas = xrealloc(c->mpas, c->mpa_count + 1, sizeof(*c->mpas));
    c->mpas[c->mpa_count] = (struct convert_mpa){.name = xstrdup(source->name),
                                                 .namespace_ = xstrdup(source->namespace_),
                                                 .target = json_incref(target),
                                                 .labels = json_object(),
                                                 .annotations = json_object(),
                                                 .metrics = json_array(),
                                                 .containers = json_array(),
                                                 .min_replicas = -1,
                                                 .max_replicas = -1};
    return &c->mpas[c->mpa_count++];
}

/* metadata.labels or metadata.annotations, which the API server takes as text alone; NULL: none. */
static int texts_of(const struct convert_source *source, const char *path, json_t **out,
                    struct error *err)
{
    const char *key;
    json_t *value;
    if (convert_object(source, path, out, err) < 0)
        return -1;
    json_object_foreach (*out, key, value) {
        cleanup_free char *at = xasprintf("%s.%s", path, key);
        if (!json_is_string(value))
            return convert_fail(source, at, err, "must be text: put it in quotes");
    }
    return 0;
}

static void keep_text(struct convert_mpa *mpa, const struct convert_source *source, json_t *kept,
                      const char *path, const char *key, json_t *value)
{
    const json_t *other = json_object_get(kept, key);
    cleanup_free char *at = xasprintf("%s.%s", path, key);
    if (other == NULL)
        json_object_set(kept, key, value);
    else if (!json_equal(other, value))
        convert_note(mpa, source, at, "another autoscaler of the target has \"%s\": it is kept",
                     json_str(other));
}

/* By how they begin; the first that fits. NULL: nothing is said of it. */
static const struct theirs {
    const char *prefix, *note;
} theirs[] = {
    {"kubectl.kubernetes.io/", NULL},
    {"autoscaling.alpha.kubernetes.io/conditions", NULL}, /* status of v1, */
    {"autoscaling.alpha.kubernetes.io/current-metrics", NULL},
    {"autoscaling.alpha.kubernetes.io/metrics", /* and its spec */
     "is not read: left out; as autoscaling/v2 the API server has it in spec.metrics"},
    {"autoscaling.alpha.kubernetes.io/behavior",
     "is not read: left out; as autoscaling/v2 the API server has it in spec.behavior"},
    {"autoscaling.alpha.kubernetes.io/", CONVERT_NO_COUNTERPART},
    {CONVERT_KEDA, CONVERT_NO_COUNTERPART},
};

static const struct theirs *whose(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
        if (strncmp(key, theirs[i].prefix, strlen(theirs[i].prefix)) == 0)
            return &theirs[i];
    return NULL;
}

static void take_annotation(struct convert_mpa *mpa, const struct convert_source *source,
                            const char *key, json_t *value)
{
    const char *path = "metadata.annotations";
    const struct theirs *other = whose(key);
    cleanup_free char *at = xasprintf("%s.%s", path, key);
    bool told = other && strcmp(other->prefix, CONVERT_KEDA) == 0 &&
                strcmp(source->kind, "ScaledObject") == 0; /* by convert_keda */
    if (other == NULL)
        keep_text(mpa, source, mpa->annotations, path, key, value);
    else if (other->note && !told)
        convert_note(mpa, source, at, "%s", other->note);
}

static int take_metadata(struct convert_mpa *mpa, const struct convert_source *source,
                         struct error *err)
{
    json_t *labels, *annotations, *value;
    const char *key;
    if (texts_of(source, "metadata.labels", &labels, err) < 0 ||
        texts_of(source, "metadata.annotations", &annotations, err) < 0)
        return -1;
    json_object_foreach (labels, key, value)
        keep_text(mpa, source, mpa->labels, "metadata.labels", key, value);
    json_object_foreach (annotations, key, value)
        take_annotation(mpa, source, key, value);
    return 0;
}

/* KEDA makes HPAs of its own, which the ScaledObject stands for. */
static bool is_made_by_keda(const struct convert_source *source)
{
    const json_t *owners = json_path(source->object, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < json_array_size(owners); i++)
        if (strcmp(json_str(json_object_get(json_array_get(owners, i), "kind")), "ScaledObject") ==
            0)
            return true;
    return false;
}

static int convert_one(struct conversion *c, const struct convert_source *source, struct error *err)
{
    struct error why = {0};
    const struct kind *kind = find_kind(source, &why);
    if (why.code) {
        *err = why;
        return -1;
    }
    if (kind == NULL || is_made_by_keda(source)) {
        fprintf(stderr, "%s: %s %s skipped: %s\n", source->file,
                *source->kind ? source->kind : "object", source->name,
                kind ? "KEDA makes it of a ScaledObject"
                     : "it is no HorizontalPodAutoscaler, VerticalPodAutoscaler or ScaledObject");
        return 0;
    }
    if (convert_text(source, json_object_get(source->object, "metadata"), "metadata", "namespace",
                     err) < 0)
        return -1;
    if (*source->name == '\0')
        return convert_fail(source, "metadata.name", err, "must be given");
    if (!json_is_object(json_object_get(source->object, "spec")))
        return convert_fail(source, "spec", err, "must be given");
    cleanup_json json_t *target = take_target(source, kind, err);
    if (target == NULL)
        return -1;
    struct convert_mpa *mpa = mpa_for(c, source, target);
    if (kind->convert != convert_vpa && !mpa->horizontal)
        string_set(&mpa->name, source->name);
    if (take_metadata(mpa, source, err) < 0 || kind->convert(mpa, source, err) < 0)
        return -1;
    convert_note_rest(mpa, source);
    return 0;
}

/* --- writing --------------------------------------------------------------------------------- */
/* What is not valid is not written. */
static int check(const json_t *manifest, struct error *err)
{
    struct api_findings findings = {0};
    int result = 0;
    api_validate(manifest, &findings);
    for (size_t i = 0; i < findings.count && result == 0; i++)
        if (!findings.items[i].warning)
            result = error_set(err, ERROR_INVALID, "the MPA %s would not be valid: %s: %s",
                               json_str(json_path(manifest, "metadata", "name", NULL)),
                               findings.items[i].field, findings.items[i].message);
    api_findings_clear(&findings);
    return result;
}

static int write_mpa(struct convert_mpa *mpa, const struct convert_options *o, bool first,
                     struct error *err)
{
    cleanup_json json_t *manifest = convert_build(mpa, o);
    for (size_t i = 0; i < mpa->note_count; i++)
        fprintf(stderr, "%s\n", mpa->notes[i]);
    if (check(manifest, err) < 0)
        return -1;
    cleanup_free char *text = yaml_from_json(manifest);
    if (!first)
        puts("---");
    for (size_t i = 0; i < mpa->note_count; i++)
        printf("# %s\n", mpa->notes[i]);
    fputs(text, stdout);
    return 0;
}

static int convert(struct conversion *c, struct error *err)
{
    const struct args_list *files = &c->options->files;
    for (size_t i = 0; i < files->count; i++)
        if (read_file(c, files->items[i], &c->inputs[i], err) < 0)
            return -1;
    for (size_t i = 0; i < c->source_count; i++)
        if (convert_one(c, &c->sources[i], err) < 0)
            return -1;
    if (c->mpa_count == 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "%s: there is no HorizontalPodAutoscaler, VerticalPodAutoscaler or "
                         "ScaledObject in it",
                         files->items[files->count - 1]);
    for (size_t i = 0; i < c->mpa_count; i++)
        if (write_mpa(&c->mpas[i], c->options, i == 0, err) < 0)
            return -1;
    return 0;
}

static void clear_mpa(struct convert_mpa *m)
{
    json_t *const all[] = {m->target,   m->labels,     m->annotations, m->metrics,
                           m->behavior, m->containers, m->controlled,  m->boost};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_decref(all[i]);
    for (size_t i = 0; i < m->note_count; i++)
        free(m->notes[i]);
    free(m->notes);
    free(m->name);
    free(m->namespace_);
}

static void clear(struct conversion *c)
{
    for (size_t i = 0; i < c->mpa_count; i++)
        clear_mpa(&c->mpas[i]);
    for (size_t i = 0; i < c->source_count; i++) {
        json_decref(c->sources[i].object);
        free(c->sources[i].prefix);
        free(c->sources[i].kind);
        free(c->sources[i].name);
        free(c->sources[i].namespace_);
    }
    for (size_t i = 0; i < c->options->files.count; i++)
        free(c->inputs[i].text);
    free(c->inputs);
    free(c->sources);
    free(c->mpas);
}

/* --- the command line ------------------------------------------------------------------------ */
static int check_options(const struct convert_options *o, const struct args_list *names,
                         struct error *err)
{
    int64_t us;
    if (names->count > 0)
        return error_set(err, ERROR_INVALID, "%s: name files with -f", names->items[0]);
    if (o->files.count == 0)
        return error_set(err, ERROR_INVALID, "no file: name one with -f");
    if (o->latency && duration_parse(o->latency, &us, err) < 0)
        return error_prefix(err, "--latency");
    if (o->replicas != floor(o->replicas))
        return error_set(err, ERROR_INVALID, "--replicas: must be a whole number");
    return 0;
}

static int run(const struct convert_options *o)
{
    struct error err = {0};
    struct conversion c = {.options = o, .inputs = xcalloc(o->files.count, sizeof(struct input))};
    int result = convert(&c, &err);
    clear(&c);
    if (result == 0)
        return EXIT_FINE;
    mpactl_error("convert: %s", err.message);
    return EXIT_FAILED;
}

int cmd_convert(int argc, char **argv)
{
    const struct options_table options = {table, ARRAY_LEN(table), shorts};
    struct convert_options o = {0};
    struct args_list names = {0};
    struct error err = {0};
    char **kept = NULL;
    int status = EXIT_USAGE;
    int parsed = options_parse(&options, argc, argv, &o, &names, &kept, &err);
    if (parsed == 0 && o.help) {
        puts(
            "mpactl convert -f FILE… [OPTION…]\n\n"
            "Writes MPAs that stand for HorizontalPodAutoscalers, VerticalPodAutoscalers and "
            "KEDA's\n"
            "ScaledObjects, one for each target. What cannot be carried over is told on stderr.\n\n"
            "Options:");
        options_print_help(&options);
        status = EXIT_FINE;
    } else if (parsed < 0 || check_options(&o, &names, &err) < 0) {
        mpactl_error("convert: %s: see mpactl convert --help", err.message);
    } else {
        status = run(&o);
    }
    options_free(kept);
    return status;
}
