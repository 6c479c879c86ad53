/* mpactl validate: what the API server would say of manifests, without one. */
#include "mpactl.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

#define MAX_FILE_BYTES (16u << 20)

struct tally {
    const char *file;
    size_t checked, invalid;
};

static void validate_one(struct tally *tally, const json_t *manifest)
{
    struct api_findings findings = {0};
    const char *name = json_str(json_path(manifest, "metadata", "name", NULL));
    const char *namespace_ = json_str(json_path(manifest, "metadata", "namespace", NULL));
    cleanup_free char *who = xasprintf("%s: %s/%s", tally->file,
                                       *namespace_ ? namespace_ : "default", *name ? name : "?");
    size_t errors = api_validate(manifest, &findings);

    tally->checked++;
    tally->invalid += errors > 0;
    for (size_t i = 0; i < findings.count; i++) {
        const struct api_finding *f = &findings.items[i];
        printf("%s: %s: %s: %s\n", who, f->warning ? "warning" : "error", f->field, f->message);
    }
    if (errors == 0)
        printf("%s: valid\n", who);
    api_findings_clear(&findings);
}

/* Ours by kind or by group, so that a slip in one of them is found by the other. */
static bool is_ours(const json_t *manifest)
{
    const char *kind = json_str(json_path(manifest, "kind", NULL));
    const char *version = json_str(json_path(manifest, "apiVersion", NULL));

    return strcasecmp(kind, API_KIND) == 0 ||
           strncmp(version, API_GROUP "/", strlen(API_GROUP "/")) == 0 || !*kind || !*version;
}

static void validate_document(struct tally *tally, const json_t *document)
{
    const char *kind = json_str(json_path(document, "kind", NULL));
    const json_t *items = json_path(document, "items", NULL), *item;
    size_t i;

    if (json_is_null(document))
        return;
    if (json_is_array(items) && (strcmp(kind, "List") == 0 || strcmp(kind, API_KIND "List") == 0)) {
        json_array_foreach ((json_t *)items, i, item) {
            if (is_ours(item))
                validate_one(tally, item);
        }
    } else if (is_ours(document)) {
        validate_one(tally, document);
    } else {
        fprintf(stderr, "%s: %s/%s skipped: it is no " API_KIND "\n", tally->file, kind,
                json_str(json_path(document, "metadata", "name", NULL)));
    }
}

static char *read_input(const char *file, size_t *len, struct error *err)
{
    return file_read(strcmp(file, "-") == 0 ? "/dev/stdin" : file, MAX_FILE_BYTES, len, err);
}

static int validate_file(struct tally *tally)
{
    struct error err;
    size_t len, i;
    const json_t *document;
    cleanup_free char *text = read_input(tally->file, &len, &err);

    if (!text) {
        mpactl_error("%s: %s: name a file that can be read", tally->file, err.message);
        return -1;
    }
    cleanup_json json_t *documents = yaml_to_json(text, len, &err);
    if (!documents) {
        mpactl_error("%s: %s: correct it there", tally->file, err.message);
        return -1;
    }
    json_array_foreach (documents, i, document)
        validate_document(tally, document);
    return 0;
}

static int print_help(void)
{
    puts("mpactl validate -f FILE|- [-f FILE…]\n\n"
         "Says of each MPA of the files what the API server would, and what would be right.\n\n"
         "Options:\n"
         "  -f, --filename   manifest; - is standard input; may be given several times\n"
         "  -h, --help       print this and end");
    return EXIT_FINE;
}

static int usage(void)
{
    fputs("usage: mpactl validate -f FILE|- [-f FILE…]\n", stderr);
    return EXIT_USAGE;
}

/* The files that are named, in memory that the caller frees; NULL when the command line is wrong.
 */
static const char **read_arguments(int argc, char **argv, size_t *count)
{
    static const struct option options[] = {{"filename", required_argument, NULL, 'f'}, {0}};
    const char **files = xcalloc((size_t)argc, sizeof(*files));
    bool right = true;

    optind = 1;
    opterr = 0;
    *count = 0;
    for (int c; (c = getopt_long(argc, argv, "+:f:", options, NULL)) != -1;) {
        right = right && c == 'f';
        files[right ? (*count)++ : 0] = optarg;
    }
    if (right && *count > 0 && optind == argc)
        return files;
    free(files);
    return NULL;
}

int cmd_validate(int argc, char **argv)
{
    struct tally tally = {0};
    size_t count;
    bool failed = false;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_help();
    cleanup_free const char **files = read_arguments(argc, argv, &count);

    if (!files)
        return usage();
    for (size_t i = 0; i < count; i++) {
        tally.file = files[i];
        failed = validate_file(&tally) < 0 || failed;
    }
    if (!failed && tally.checked == 0) {
        mpactl_error("%s: there is no " API_KIND " in it: check its kind", tally.file);
        failed = true;
    }
    return failed || tally.invalid > 0 ? EXIT_FAILED : EXIT_FINE;
}
