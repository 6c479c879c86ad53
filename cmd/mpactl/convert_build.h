/* The manifest of an MPA from what was gathered for it. */
#ifndef FAASRL_MPACTL_CONVERT_BUILD_H
#define FAASRL_MPACTL_CONVERT_BUILD_H

#include "base/args.h"
#include "convert.h"

struct convert_options {
    struct args_list files;
    const char *latency, *recommender; /* NULL: none is given */
    double percentile, replicas;       /* replicas 0: not given */
    bool help;
};

/* A new reference. What had to be decided here is noted in the MPA. */
json_t *convert_build(struct convert_mpa *mpa, const struct convert_options *options);

#endif
