/* The steps that mpactl simulate and mpactl compare have in common. */
#include "mpactl.h"
#include "study_files.h"

static int execute(struct study *study, struct study_files *files,
                   void (*print)(const struct study *study))
{
    struct error err;
    if (study_execute(study, &err) < 0) {
        mpactl_error("%s: change what it names", err.message);
        return EXIT_FAILED;
    }
    print(study);
    return study_files_write(files, study);
}

int study_command(enum study_command command, int argc, char **argv,
                  int (*prepare)(struct study *study), void (*print)(const struct study *study))
{
    struct study_options options;
    struct study_files files = {0};
    struct study study;
    int status = study_parse(command, argc, argv, &options);
    if (status != 0)
        return status;
    if (options.help) {
        study_print_help(command);
        return EXIT_FINE;
    }
    status = study_open(&study, &options);
    if (status == 0)
        status = study_files_open(&files, &study);
    if (status == 0 && prepare)
        status = prepare(&study);
    if (status == 0)
        status = execute(&study, &files, print);
    study_files_close(&files);
    study_close(&study);
    return status;
}
