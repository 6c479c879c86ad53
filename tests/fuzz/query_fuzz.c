/* Any text as a query: its variables are filled in or named, and whoever keeps it in a namespace
 * does not let another selector through behind it. */
#include "prometheus/prometheus.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct prom_variable variables[] = {
        {"window", "60s"}, {"namespace", "shop"}, {"pods", "a\\.b|c\"d\n"}};
    struct error err = {0};
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    cleanup_free char *query = prom_expand(text, variables, ARRAY_LEN(variables), &err);
    if (!query) {
        check(err.code != ERROR_NONE && err.message[0]);
        return 0;
    }
    if (prom_query_confined(query, "shop", &err) < 0) {
        check(err.code == ERROR_FORBIDDEN && err.message[0]);
        return 0;
    }
    cleanup_free char *more = xasprintf("%s\n+ secret", query);
    cleanup_free char *other = xasprintf("%s\n+ secret{namespace=\"bank\"}", query);
    check(prom_query_confined(more, "shop", &err) < 0);
    check(prom_query_confined(other, "shop", &err) < 0);
    return 0;
}
