/* Out of memory, for those who have more to do with it than to allocate: the same words and the
 * same end for all, and for the libraries' allocations as well (jansson's are set up already). */
#ifndef FAASRL_MEMORY_H
#define FAASRL_MEMORY_H

#include "base/base.h"

_Noreturn void out_of_memory(void);
/* As libraries want them. */
void *xmalloc(size_t size);
void *xresize(void *p, size_t size);

#endif
