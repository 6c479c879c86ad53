/* Any manifests given to mpactl convert: refused with a message, or MPAs that an API server would
 * take, each of a target that the manifests name; what is told of them is told on stderr and above
 * the MPA alike, and the same manifests give the same again. */
#include "../../cmd/mpactl/mpactl.h"
#include "api/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    int status;
    char *out, *err;
    size_t out_len, err_len;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

void mpactl_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("mpactl: ", stderr);
    vfprintf(stderr, fmt, args);
    va_end(args);
}

static void convert(char *path, char *choice, struct result *r)
{
    char *argv[] = {(char[]){"convert"}, (char[]){"-f"}, path, choice, NULL};
    FILE *out = stdout, *err = stderr;
    stdout = open_memstream(&r->out, &r->out_len);
    stderr = open_memstream(&r->err, &r->err_len);
    check(stdout && stderr);
    r->status = cmd_convert(choice ? 4 : 3, argv);
    fclose(stdout);
    fclose(stderr);
    stdout = out;
    stderr = err;
}

/* Whether a text is somewhere in it, as a name would be. */
static bool names(const json_t *json, const char *text)
{
    const json_t *item;
    const char *key;
    size_t i;
    if (json_is_string(json))
        return strcmp(json_string_value(json), text) == 0;
    json_array_foreach (json, i, item)
        if (names(item, text))
            return true;
    json_object_foreach ((json_t *)(uintptr_t)json, key, item)
        if (names(item, text))
            return true;
    return false;
}

static void check_mpa(const json_t *mpa, const json_t *given)
{
    struct api_findings findings;
    struct api_mpa parsed;
    struct error err = {0};
    check(api_validate(mpa, &findings) == 0 && api_parse(mpa, &parsed, &err) == 0);
    check(names(given, parsed.spec.target_name) && names(given, parsed.name));
    check(parsed.spec.min_replicas >= 1 && parsed.spec.min_replicas <= parsed.spec.max_replicas);
    api_findings_clear(&findings);
    api_clear(&parsed);
}

/* Each comment was told, too. */
static void check_notes(char *out, const char *err)
{
    for (char *line, *rest = out; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "# ", 2) == 0)
            check(strstr(err, line + 2) != NULL);
}

static void check_result(struct result *r, const uint8_t *data, size_t size)
{
    struct error err = {0};
    check(r->status == EXIT_FINE || r->status == EXIT_FAILED);
    if (r->status == EXIT_FAILED) {
        check(strstr(r->err, "mpactl: convert: ") != NULL);
        return;
    }
    cleanup_json json_t *given = yaml_to_json((const char *)data, size, &err);
    cleanup_json json_t *mpas = yaml_to_json(r->out, r->out_len, &err);
    check(given && json_array_size(mpas) > 0);
    for (size_t i = 0; i < json_array_size(mpas); i++)
        check_mpa(json_array_get(mpas, i), given);
    check_notes(r->out, r->err);
}

static void result_free(struct result *r)
{
    free(r->out);
    free(r->err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char latency[] = "--latency=250ms";
    struct result first = {0}, second = {0};
    char path[64];
    int file = memfd_create("manifest", 0);
    check(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    char *choice = size % 2 ? latency : NULL;
    convert(path, choice, &first);
    convert(path, choice, &second);
    check(first.status == second.status && first.out_len == second.out_len &&
          memcmp(first.out, second.out, first.out_len) == 0 && strcmp(first.err, second.err) == 0);
    check_result(&first, data, size);
    close(file);
    result_free(&first);
    result_free(&second);
    return 0;
}
