/* A study's results as files. They are opened before the work, so that it is not in vain. */
#ifndef FAASRL_MPACTL_STUDY_FILES_H
#define FAASRL_MPACTL_STUDY_FILES_H

#include "study.h"

struct study_files { /* NULL: not asked for */
    FILE *json, *csv, *html;
};

/* These return 0, or the exit status after telling what is wrong. Opening also marks what is to be
 * recorded. */
int study_files_open(struct study_files *files, struct study *study);
int study_files_write(struct study_files *files, const struct study *study);
void study_files_close(struct study_files *files);

#endif
