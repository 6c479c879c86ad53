/* What a program exposes at /metrics: whatever the bytes are, no harm is done, and what is told of
 * a sample lies within them. */
#include "prometheus/prometheus.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bounds {
    const char *begin, *end;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_sample(void *arg, const struct prom_exposed *sample)
{
    const struct bounds *b = arg;
    char value[16];
    check(sample->name >= b->begin && sample->name_len > 0 &&
          sample->name + sample->name_len <= b->end);
    check(sample->labels >= b->begin && sample->labels + sample->labels_len <= b->end);
    prom_exposed_label(sample, "kn_revision_name", value, sizeof(value));
    check(strlen(value) < sizeof(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of the exact size, so that a read beyond it is seen. */
    cleanup_free char *copy = xcalloc(size, 1);
    memcpy(copy, data, size);
    struct bounds bounds = {copy, copy + size};
    struct error err = {0};
    int result = prom_expose(copy, size, on_sample, &bounds, &err);
    check((result < 0) == (err.code != ERROR_NONE));
    return 0;
}
