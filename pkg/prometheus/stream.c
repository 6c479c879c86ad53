/* An answer in pieces, as the network brings them: each element of data.result is read and told
 * when it is whole. All the rest is put together and read in the end as if there had been none. */
#include "prometheus/internal.h"
#include "prometheus/scan.h"

#include <string.h>

#define MAX_ANSWER   ((size_t)256 << 20)
#define RESULT_DEPTH 3 /* the answer, data, result */

struct prom_stream {
    prom_each on_series;
    void *arg;
    struct prom_one *one;
    struct buf rest, element; /* element: what is there of the one that is being read */
    size_t bytes, series;
    int depth;
    bool quoted, escaped;
    bool in_result, matrix;
    enum { FIRST, AFTER_ELEMENT, AFTER_COMMA } where; /* between the elements */
    struct error error;
};

struct prom_stream *prom_stream_new(prom_each on_series, void *arg)
{
    struct prom_stream *s = xcalloc(1, sizeof(*s));
    s->on_series = on_series;
    s->arg = arg;
    s->one = prom_one_new();
    buf_init(&s->rest, MAX_ANSWER);
    buf_init(&s->element, MAX_ANSWER);
    return s;
}

void prom_stream_free(struct prom_stream *s)
{
    if (s == NULL)
        return;
    prom_one_free(s->one);
    buf_free(&s->rest);
    buf_free(&s->element);
    free(s);
}

static int fail(struct prom_stream *s, const char *why)
{
    return error_set(&s->error, ERROR_INVALID, "Prometheus answered what cannot be read: %s", why);
}

/* --- where the series are ----------------------------------------------------------------------
 */
static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t without_space(const char *text, size_t len)
{
    while (len > 0 && is_space(text[len - 1]))
        len--;
    return len;
}

/* Whether what has been read ends with this name of a member. */
static bool ends_with_name(const struct buf *rest, const char *name)
{
    const char *text = rest->data;
    size_t want = strlen(name), len = without_space(text, rest->len);
    if (len == 0 || text[len - 1] != ':')
        return false;
    len = without_space(text, len - 1);
    return len >= want && memcmp(text + len - want, name, want) == 0;
}

/* Before its type is known, the result is read with the rest. */
static bool knows_type(struct prom_stream *s)
{
    static const char name[] = "\"resultType\"";
    const char *at = memmem(s->rest.data, s->rest.len, name, sizeof(name) - 1);
    if (!at)
        return false;
    const char *end = s->rest.data + s->rest.len;
    for (at += sizeof(name) - 1; at < end && (is_space(*at) || *at == ':');)
        at++;
    s->matrix = end - at > 8 && memcmp(at, "\"matrix\"", 8) == 0;
    return s->matrix || (end - at > 8 && memcmp(at, "\"vector\"", 8) == 0);
}

/* --- what is in it -----------------------------------------------------------------------------
 */
static int tell(struct prom_stream *s, const char *text, size_t len)
{
    if (++s->series > PROM_MAX_SERIES)
        return fail(s, "more than 2000000 series");
    const struct prom_series *series = prom_one_read(s->one, text, len, s->matrix, &s->error);
    if (series == NULL)
        return -1;
    s->on_series(s->arg, series);
    return 0;
}

/* Goes on to behind the bracket or brace that ends the value or begins the next deeper one. */
static const char *next_turn(struct prom_stream *s, const char *at, const char *end)
{
    for (; at < end; at++) {
        char c = *at;
        if (s->escaped)
            s->escaped = false;
        else if (s->quoted && c == '\\')
            s->escaped = true;
        else if (c == '"')
            s->quoted = !s->quoted;
        else if (!s->quoted && (c == '{' || c == '}' || c == '[' || c == ']'))
            return at;
    }
    return end;
}

static int turn(struct prom_stream *s, char c)
{
    s->depth += c == '{' || c == '[' ? 1 : -1;
    return s->depth < 0 || s->depth > SCAN_MAX_DEPTH ? fail(s, "brackets that do not match") : 0;
}

/* From inside an element: to behind its end, or to the end of the piece. */
static const char *read_element(struct prom_stream *s, const char *at, const char *end)
{
    const char *begin = at;
    while (s->depth > RESULT_DEPTH && (at = next_turn(s, at, end)) < end)
        if (turn(s, *at++) < 0)
            return NULL;
    if (buf_append(&s->element, begin, (size_t)(at - begin)) < 0)
        return fail(s, "a series that is too long"), NULL;
    if (s->depth > RESULT_DEPTH)
        return at;
    s->where = AFTER_ELEMENT;
    int outcome = tell(s, s->element.data, s->element.len);
    buf_clear(&s->element);
    return outcome < 0 ? NULL : at;
}

/* Between two elements, one character. Opening braces are left to read_element. */
static int read_between(struct prom_stream *s, char c)
{
    if (is_space(c))
        return 0;
    if (c == ',' && s->where == AFTER_ELEMENT) {
        s->where = AFTER_COMMA;
        return 0;
    }
    if (c != ']' || s->where == AFTER_COMMA)
        return fail(s, "a result that is no list of series");
    s->in_result = false;
    return turn(s, c) < 0 || buf_append(&s->rest, "]", 1) < 0 ? -1 : 0;
}

static const char *read_result(struct prom_stream *s, const char *at, const char *end)
{
    if (s->depth > RESULT_DEPTH)
        return read_element(s, at, end);
    if (*at != '{' || s->where == AFTER_ELEMENT)
        return read_between(s, *at) < 0 ? NULL : at + 1;
    s->depth++;
    if (buf_append(&s->element, "{", 1) < 0)
        return NULL;
    return at + 1;
}

static const char *read_rest(struct prom_stream *s, const char *at, const char *end)
{
    const char *stop = next_turn(s, at, end);
    if (buf_append(&s->rest, at, (size_t)(stop - at)) < 0)
        return fail(s, "it is too long"), NULL;
    if (stop == end)
        return end;
    bool begins = *stop == '[' && s->depth == RESULT_DEPTH - 1 &&
                  ends_with_name(&s->rest, "\"result\"") && knows_type(s);
    if (turn(s, *stop) < 0 || buf_append(&s->rest, stop, 1) < 0)
        return NULL;
    s->in_result = begins;
    s->where = FIRST;
    return stop + 1;
}

bool prom_stream_failed(const struct prom_stream *s)
{
    return s->error.code != ERROR_NONE;
}

int prom_stream_feed(struct prom_stream *s, const char *data, size_t len)
{
    const char *at = data, *end = data + len;
    s->bytes += len;
    if (s->bytes > MAX_ANSWER && s->error.code == ERROR_NONE)
        fail(s, "it is too long");
    while (s->error.code == ERROR_NONE && at && at < end)
        at = s->in_result ? read_result(s, at, end) : read_rest(s, at, end);
    return s->error.code == ERROR_NONE && at ? 0 : -1;
}

int prom_stream_end(struct prom_stream *s, struct prom_result *out, struct error *err)
{
    if (s->error.code != ERROR_NONE) {
        *err = s->error;
        return -1;
    }
    if (s->in_result)
        return error_set(err, ERROR_INVALID,
                         "Prometheus answered what cannot be read: cut short after %zu bytes",
                         s->bytes);
    if (prom_parse(buf_string(&s->rest), s->rest.len, out, err) < 0)
        return -1;
    for (size_t i = 0; i < out->series_count; i++) /* whose type came too late */
        s->on_series(s->arg, &out->series[i]);
    out->series_count = 0;
    return 0;
}
