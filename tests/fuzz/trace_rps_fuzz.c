/* Any bytes as requests per second: refused with a place, or what strtod reads line by line. */
#include "trace/trace.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void compare_with_strtod(const char *text, const double *counts, size_t count)
{
    const char *at = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
    for (size_t i = 0; i < count; i++) {
        char *behind;
        check(strtod(at, &behind) == counts[i] && behind != at);
        check(counts[i] >= 0 && counts[i] <= 1e9);
        at = behind + strspn(behind, " \t\r");
        check(*at == '\n' || i + 1 == count);
        at += *at == '\n';
    }
    check(at[strspn(at, " \t\r\n")] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* One copy of the exact size, so that a read beyond it is seen, and one that ends with NUL. */
    cleanup_free char *copy = xcalloc(size, 1), *string = xcalloc(size + 1, 1);
    struct trace_text text = {.file = "r", .data = copy, .len = size};
    struct error err = {0};
    double *counts = NULL;
    size_t count = 0;
    memcpy(copy, data, size);
    memcpy(string, data, size);
    if (trace_parse_rps(&text, &counts, &count, &err) < 0) {
        check(strncmp(err.message, "r:", 2) == 0 && counts == NULL && count == 0);
        return 0;
    }
    check(count > 0 && memchr(data, '\0', size) == NULL);
    compare_with_strtod(string, counts, count);
    free(counts);
    return 0;
}
