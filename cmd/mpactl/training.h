/* What mpactl train has done, and how it is shown. */
#ifndef FAASRL_MPACTL_TRAINING_H
#define FAASRL_MPACTL_TRAINING_H

#include <stdio.h>

#include "base/args.h"
#include "train/tensorboard.h"

struct training_options {
    const char *algorithm, *formulation;
    struct args_list set, learn; /* NAME=VALUE */
    double episodes, seeds, seed, jobs;
    const char *out, *csv, *svg, *png, *tensorboard, *resume;
    bool papers, help;
};

struct training {
    struct training_options options;
    struct train_config config;
    struct train_history *histories; /* of each seed */
    size_t count;
    bool interrupted;
};

/* --- training_print.c ------------------------------------------------------------------------ */
/* A line per seed. */
void training_print(const struct training *t);
/* A line per round of each seed. */
void training_write_csv(const struct training *t, FILE *out);
/* The curve: mean over all seeds, and how far they lie apart. */
void training_write_svg(const struct training *t, FILE *out);
void training_write_png(const struct training *t, FILE *out);

/* --- training_files.c ------------------------------------------------------------------------ */
enum { TRAINING_FILES = 6 };
struct training_files {
    struct training_file {
        const char *option; /* that asks for it */
        char *path;
        FILE *stream;
        void (*write)(const struct training *t, FILE *out);
    } items[TRAINING_FILES];
    struct train_events **events; /* of each seed; NULL: not asked for */
    size_t seeds;
    struct error events_err; /* with a code: events could not be written any more */
};
/* Before learning, so that a name that cannot be is told before time is spent. Like the others it
 * gives back an exit status, and tells what is wrong. */
int training_files_open(struct training_files *files, const struct training_options *o);
/* While it learns: a round of the i-th seed. What fails is told by training_files_write. */
void training_files_add(struct training_files *files, size_t i, const struct train_report *report);
int training_files_write(struct training_files *files, const struct training *t);
void training_files_close(struct training_files *files);

#endif
