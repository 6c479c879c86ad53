/* The report: one HTML file with tables and plots that needs nothing else. */
#ifndef FAASRL_MPACTL_REPORT_H
#define FAASRL_MPACTL_REPORT_H

#include "study.h"

/* Marks the runs that are plotted to be recorded: of the functions with most requests. */
void report_record(struct study *study);
void report_write(const struct study *study, FILE *out);

#endif
