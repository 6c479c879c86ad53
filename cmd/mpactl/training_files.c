/* The files of mpactl train: opened before, written after; those for TensorBoard meanwhile. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mpactl.h"
#include "training.h"

static char *in_directory(const char *directory, const char *name)
{
    return directory ? xasprintf("%s/%s", directory, name) : NULL;
}

static int make_directory(const char *option, const char *path)
{
    if (path == NULL || mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    mpactl_error("--%s %s: %s: name a directory that can be made", option, path, strerror(errno));
    return EXIT_FAILED;
}

/* --- for TensorBoard -------------------------------------------------------------------------- */
static int open_events(struct training_files *files, const struct training_options *o)
{
    struct error err;
    if (o->tensorboard == NULL)
        return 0;
    files->seeds = (size_t)o->seeds;
    files->events = xcalloc(files->seeds, sizeof(struct train_events *));
    for (size_t i = 0; i < files->seeds; i++) {
        cleanup_free char *directory =
            xasprintf("%s/seed-%llu", o->tensorboard, (unsigned long long)o->seed + i);
        files->events[i] = train_events_open(directory, &err);
        if (files->events[i])
            continue;
        mpactl_error("--tensorboard %s: %s", o->tensorboard, err.message);
        return EXIT_FAILED;
    }
    return 0;
}

void training_files_add(struct training_files *files, size_t i, const struct train_report *report)
{
    if (files->events && files->events_err.code == ERROR_NONE)
        (void)train_events_add(files->events[i], report, &files->events_err);
}

/* --- all ---------------------------------------------------------------------------------------
 */
int training_files_open(struct training_files *files, const struct training_options *o)
{
    if (make_directory("out", o->out) != 0 || make_directory("tensorboard", o->tensorboard) != 0)
        return EXIT_FAILED;
    *files = (struct training_files){
        .items = {
            {"out", in_directory(o->out, "episodes.csv"), NULL, training_write_csv},
            {"out", in_directory(o->out, "curve.svg"), NULL, training_write_svg},
            {"out", in_directory(o->out, "curve.png"), NULL, training_write_png},
            {"csv", xstrdup(o->csv), NULL, training_write_csv},
            {"svg", xstrdup(o->svg), NULL, training_write_svg},
            {"png", xstrdup(o->png), NULL, training_write_png},
        }};
    for (struct training_file *f = files->items; f < files->items + TRAINING_FILES; f++) {
        f->stream = f->path ? fopen(f->path, "we") : NULL;
        if (!f->path || f->stream)
            continue;
        mpactl_error("--%s %s: %s: name a file that can be written", f->option, f->path,
                     strerror(errno));
        return EXIT_FAILED;
    }
    return open_events(files, o);
}

int training_files_write(struct training_files *files, const struct training *t)
{
    for (struct training_file *f = files->items; f < files->items + TRAINING_FILES; f++) {
        if (!f->stream)
            continue;
        f->write(t, f->stream);
        if (fflush(f->stream) == 0 && !ferror(f->stream))
            continue;
        mpactl_error("--%s %s: it could not be written: check the disk", f->option, f->path);
        return EXIT_FAILED;
    }
    if (files->events_err.code == ERROR_NONE)
        return 0;
    mpactl_error("--tensorboard: %s", files->events_err.message);
    return EXIT_FAILED;
}

void training_files_close(struct training_files *files)
{
    for (struct training_file *f = files->items; f < files->items + TRAINING_FILES; f++) {
        if (f->stream)
            fclose(f->stream);
        free(f->path);
    }
    for (size_t i = 0; i < files->seeds; i++)
        train_events_close(files->events[i]);
    free(files->events);
}
