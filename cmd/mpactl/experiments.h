/* What mpactl experiment has done, and how it is shown. */
#ifndef FAASRL_MPACTL_EXPERIMENTS_H
#define FAASRL_MPACTL_EXPERIMENTS_H

#include <stdio.h>

#include "base/args.h"
#include "experiment/experiment.h"

struct experiments_options {
    double seeds, seed, jobs, effort;
    const char *out, *json, *policy;
    bool help;
};

/* --- experiment_print.c ---------------------------------------------------------------------- */
struct figure { /* of a row */
    size_t count, seeds;
    double mean, spread; /* of the count seeds that have it */
    const char *unit;
};
/* "0.512 ± 0.013 ms"; where not all seeds have it, how many do. free() it. */
char *experiments_figure(const struct figure *figure);
/* "≥ 5 %"; "–": none. free() it. */
char *experiments_aim(const struct experiment_row *row);
/* "yes", "no"; "–": there is no aim. */
const char *experiments_reached(const struct experiment_result *result, size_t row);
struct figure experiments_figure_of_row(const struct experiment_result *result, size_t row);
/* A line for each group of rows whose aims were missed for the same reason. */
void experiments_write_misses(const struct experiment_result *result, const char *before,
                              FILE *out);
/* A line per row, and why aims were missed. */
void experiments_print(const struct experiment_result *result);

/* --- experiment_json.c ----------------------------------------------------------------------- */
/* lines: with the points of the plot. */
json_t *experiments_json(const struct experiment_result *result,
                         const struct experiments_options *options, bool lines);
/* Of one of its rows; lives as long. */
struct figure experiments_figure_of(const json_t *row);

/* --- experiment_files.c ---------------------------------------------------------------------- */
/* These return 0, or the exit status after telling what is wrong. Files are replaced as a whole. */
/* Makes the directory if it is not there, and finds out beforehand what cannot be written. */
int experiments_check(const struct experiments_options *options);
/* NAME.md, NAME.svg and NAME.json in the directory, if there is to be one. */
int experiments_write(const struct experiment_result *result,
                      const struct experiments_options *options);
/* The file for all results, if there is to be one. */
int experiments_write_json(const json_t *all, const struct experiments_options *options);
/* For experiment_index.c. */
int experiments_write_file(const char *option, const char *path, const void *data, size_t len);

/* --- experiment_index.c ---------------------------------------------------------------------- */
/* README.md: a line for each NAME.json of the directory, whenever it was made. */
int experiments_write_index(const struct experiments_options *options);

/* --- experiment_text.c ----------------------------------------------------------------------- */
/* NAME.md */
void experiments_write_text(const struct experiment_result *result,
                            const struct experiments_options *options, FILE *out);
/* A cell of a table in Markdown, and what ends it. */
void experiments_write_cell(const char *text, FILE *out);

#endif
