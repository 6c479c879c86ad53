/* The served functions: what a call of each does, and how much work may be asked of it. */
#ifndef WORKLOADS_H
#define WORKLOADS_H

#include <stdbool.h>

enum { WORKLOAD_COUNT = 5 };

struct workload {
    const char *name;
    unsigned long standard_n;
    unsigned long greatest_n;
    /* False without memory. The result depends on all of the work, so none is optimised away. */
    bool (*run)(unsigned long n, double *result);
};

extern const struct workload workloads[WORKLOAD_COUNT];

#endif
