/* The functions of --simulate: a few shapes of load, each with its MPA. */
#ifndef FAASRL_SCENARIO_H
#define FAASRL_SCENARIO_H

#include "embed/embed.h"

#define SCENARIO_MAX 8

struct scenario {
    struct embed_function functions[SCENARIO_MAX];
    struct trace traces[SCENARIO_MAX];
    json_t *manifests;
    size_t count;
    size_t managed; /* the first so many are in mode Auto, the others are only watched */
    struct cluster_node nodes[3];
};

int scenario_open(struct scenario *out, struct error *err);
void scenario_close(struct scenario *scenario);

#endif
