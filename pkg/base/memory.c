#include "base/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

void out_of_memory(void)
{
    fputs("out of memory\n", stderr);
    abort();
}

static void *or_abort(void *p)
{
    if (p == NULL)
        out_of_memory();
    return p;
}

void *xmalloc(size_t size)
{
    return or_abort(malloc(size ? size : 1));
}

void *xresize(void *p, size_t size)
{
    return xrealloc(p, size, 1);
}

#ifndef FAASRL_NO_JSON
/* A value that jansson had no memory for would be a field that is missing from what we write. */
__attribute__((constructor)) static void set_up_json(void)
{
    json_set_alloc_funcs(xmalloc, free);
}
#endif

void *xcalloc(size_t n, size_t size)
{
    return or_abort(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
    return or_abort(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return s ? or_abort(strdup(s)) : NULL;
}

char *xasprintf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    return or_abort(n < 0 ? NULL : text);
}

void string_set(char **slot, const char *value)
{
    char *copy = xstrdup(value);
    free(*slot);
    *slot = copy;
}

void memory_trim(void)
{
    malloc_trim(0);
}

void cleanup_free_(void *p)
{
    free(*(void **)p);
}
