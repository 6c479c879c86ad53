/* The files of mpactl experiment. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments.h"
#include "mpactl.h"

/* --- beforehand ------------------------------------------------------------------------------- */
static int check_file(const char *option, const char *path)
{
    struct stat is;
    const char *slash = strrchr(path, '/');
    cleanup_free char *directory =
        slash ? xasprintf("%.*s", (int)(slash - path + 1), path) : xstrdup(".");
    bool taken = stat(path, &is) == 0 && !S_ISREG(is.st_mode);
    if (!taken && access(directory, W_OK | X_OK) == 0)
        return 0;
    mpactl_error("--%s %s: %s: name a file that can be written", option, path,
                 taken ? "it is there and no file" : strerror(errno));
    return EXIT_FAILED;
}

static int check_directory(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) {
        cleanup_free char *index = xasprintf("%s/README.md", path);
        return check_file("out", index);
    }
    mpactl_error("--out %s: %s: name a directory that can be made", path, strerror(errno));
    return EXIT_FAILED;
}

int experiments_check(const struct experiments_options *options)
{
    int status = options->json ? check_file("json", options->json) : 0;
    return status == 0 && options->out ? check_directory(options->out) : status;
}

/* --- writing ---------------------------------------------------------------------------------- */
int experiments_write_file(const char *option, const char *path, const void *data, size_t len)
{
    struct error err;
    if (file_write(path, data, len, &err) == 0)
        return 0;
    mpactl_error("--%s: %s", option, err.message);
    return EXIT_FAILED;
}

static void write_svg(const struct experiment_result *result,
                      const struct experiments_options *options, FILE *out)
{
    (void)options;
    plot_write_svg(experiment_plot(result), out);
}

static void write_json(const struct experiment_result *result,
                       const struct experiments_options *options, FILE *out)
{
    json_t *all = experiments_json(result, options, false);
    json_dumpf(all, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(all);
}

static const struct {
    const char *ending;
    void (*write)(const struct experiment_result *result, const struct experiments_options *options,
                  FILE *out);
} kinds[] = {{"md", experiments_write_text}, {"svg", write_svg}, {"json", write_json}};

int experiments_write(const struct experiment_result *result,
                      const struct experiments_options *options)
{
    int status = 0;
    for (size_t i = 0; options->out && i < ARRAY_LEN(kinds) && status == 0; i++) {
        cleanup_free char *path =
            xasprintf("%s/%s.%s", options->out, experiment_of(result)->name, kinds[i].ending);
        cleanup_free char *data = NULL;
        size_t len;
        FILE *out = open_memstream(&data, &len);
        kinds[i].write(result, options, out);
        fclose(out);
        status = experiments_write_file("out", path, data, len);
    }
    return status;
}

int experiments_write_json(const json_t *all, const struct experiments_options *options)
{
    if (options->json == NULL)
        return 0;
    cleanup_free char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    return experiments_write_file("json", options->json, text, strlen(text));
}
