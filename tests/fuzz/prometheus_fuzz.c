/* Answers of Prometheus: whatever the bytes are, no harm is done, and what is accepted is what
 * jansson reads. The same bytes also serve as a query template. */
#include "prometheus_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expand(const char *data, size_t size)
{
    static const struct prom_variable variables[] = {{"window", "1m"}, {"namespaces", "a\"\\b"}};
    struct error err;
    cleanup_free char *template_ = xasprintf("%.*s", (int)size, data);
    free(prom_expand(template_, variables, ARRAY_LEN(variables), &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of the exact size, so that a read beyond it is seen. */
    cleanup_free char *copy = xcalloc(size, 1);
    memcpy(copy, data, size);
    if (compare_with_jansson(copy, size) == COMPARE_DIFFERS)
        abort();
    expand(copy, size);
    return 0;
}
