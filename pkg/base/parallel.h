/* The same work on many items, on several cores. */
#ifndef FAASRL_BASE_PARALLEL_H
#define FAASRL_BASE_PARALLEL_H

#include <stddef.h>

/* How many cores this process may use, at least 1. */
size_t parallel_cores(void);

/* Calls work(arg, i) once for every i below count, on at most `threads` threads at once, and
 * returns when all is done. Items are begun in order; which thread takes one is not fixed, so a
 * result that is written to its own place is the same whatever the number of threads. */
void parallel_for(size_t threads, size_t count, void (*work)(void *arg, size_t i), void *arg);

#endif
