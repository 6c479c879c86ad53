/* The files of mpactl train: opened before, written after. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mpactl.h"
#include "training.h"

static char *in_directory(const char *directory, const char *name)
{
    return directory ? xasprintf("%s/%s", directory, name) : NULL;
}

int training_files_open(struct training_files *files, const struct training_options *o)
{
    if (o->out && mkdir(o->out, 0777) < 0 && errno != EEXIST) {
        mpactl_error("--out %s: %s: name a directory that can be made", o->out, strerror(errno));
        return EXIT_FAILED;
    }
    *files = (struct training_files){{
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
    return 0;
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
    return 0;
}

void training_files_close(struct training_files *files)
{
    for (struct training_file *f = files->items; f < files->items + TRAINING_FILES; f++) {
        if (f->stream)
            fclose(f->stream);
        free(f->path);
    }
}
