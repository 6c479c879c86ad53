/* Requests per second, one number per line. */
#include "trace/internal.h"

#define MAX_SECONDS ((size_t)366 * 86400)
#define MAX_RATE    1e9

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

static int read_line(const struct trace_text *text, const char **at, const char *end, double *out,
                     struct error *err)
{
    const char *start = skip_blanks(*at, end), *behind = start;
    const char *problem = text_number(&behind, end, MAX_RATE, out);
    if (problem)
        return text_number_fail(text, start, MAX_RATE, problem, err);
    behind = skip_blanks(behind, end);
    if (behind < end && *behind != '\n')
        return text_fail(text, behind, err, "a line must hold one number only");
    *at = behind + (behind < end);
    return 0;
}

int trace_parse_rps(const struct trace_text *text, double **counts, size_t *count,
                    struct error *err)
{
    const char *at = text_begin(text), *end = text_end(text);
    cleanup_free double *values = NULL;
    size_t n = 0, cap = 0;
    if (at == end)
        return text_fail(text, NULL, err, "the file is empty");
    while (at < end) {
        if (n == MAX_SECONDS)
            return text_fail(text, at, err, "more than %zu seconds", MAX_SECONDS);
        if (n == cap)
            values = xrealloc(values, cap = cap ? cap * 2 : 1024, sizeof(*values));
        if (read_line(text, &at, end, &values[n++], err) < 0)
            return -1;
    }
    *counts = xrealloc(values, n, sizeof(*values));
    *count = n;
    values = NULL;
    return 0;
}
