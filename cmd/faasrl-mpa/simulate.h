/* --simulate: the controller on a simulated cluster, watched live. */
#ifndef FAASRL_SIMULATE_H
#define FAASRL_SIMULATE_H

#include "options.h"

/* Gives the exit status. */
int simulate(const struct options *options);

#endif
