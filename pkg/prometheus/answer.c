/* Answers of the query API, read straight into series. Labels and samples lie in large chunks, and
 * a string that was seen lately is not stored again: 240,000 buckets share a few thousand names. */
#include "prometheus/internal.h"
#include "prometheus/scan.h"

#include <math.h>
#include <string.h>

#define MAX_LABELS 128            /* of one series */
#define MAX_NOTES  ((size_t)4096) /* bytes of warnings, and of infos */
#define CHUNK_MIN  ((size_t)4096)
#define CHUNK_MAX  ((size_t)1 << 20)

struct prom_label {
    const char *name, *value;
};

struct prom_chunk {
    struct prom_chunk *next;
    size_t used, cap;
    max_align_t data[];
};

/* The members of an answer we know, as bits: to refuse a second one. */
enum field {
    FIELD_STATUS = 1 << 0,
    FIELD_DATA = 1 << 1,
    FIELD_TYPE = 1 << 2,
    FIELD_RESULT = 1 << 3,
    FIELD_METRIC = 1 << 4,
    FIELD_VALUE = 1 << 5,
    FIELD_ERROR_TYPE = 1 << 6,
    FIELD_ERROR = 1 << 7,
    FIELD_WARNINGS = 1 << 8,
    FIELD_INFOS = 1 << 9,
};

struct answer {
    struct scan scan;
    struct prom_result *out;
    size_t series_cap;
    const char **recent; /* strings stored lately, by hash: a newer one displaces an older */
    size_t recent_mask;
    struct prom_sample *samples; /* of the series being read */
    size_t sample_count, sample_cap;
    const char *early; /* a result that came before its type */
    bool complete;     /* type and result were read */
    enum { STATUS_NONE, STATUS_SUCCESS, STATUS_ERROR } status;
    char error_type[32], error[400];
};

/* --- memory -------------------------------------------------------------------------------- */
static void *chunk_alloc(struct prom_result *out, size_t size, size_t align)
{
    struct prom_chunk *chunk = out->memory;
    size_t at = chunk ? (chunk->used + align - 1) & ~(align - 1) : 0;
    if (!chunk || at > chunk->cap || size > chunk->cap - at) {
        size_t cap = chunk ? chunk->cap * 2 : CHUNK_MIN;
        cap = cap > CHUNK_MAX ? CHUNK_MAX : cap;
        cap = cap < size ? size : cap;
        chunk = xcalloc(1, sizeof(*chunk) + cap);
        chunk->cap = cap;
        chunk->next = out->memory;
        out->memory = chunk;
        at = 0;
    }
    chunk->used = at + size;
    return (char *)chunk->data + at;
}

/* A lasting copy of the scanned text. Each string looks at one place only, so that strings made to
 * have the same hash cost memory but no time. */
static const char *keep_text(struct answer *a)
{
    const char *text = a->scan.text;
    size_t len = a->scan.text_len;
    const char *none = NULL;
    const char **slot = a->recent ? &a->recent[hash_bytes(text, len) & a->recent_mask] : &none;
    if (*slot && strncmp(*slot, text, len) == 0 && (*slot)[len] == '\0')
        return *slot;
    char *copy = chunk_alloc(a->out, len + 1, 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return *slot = copy;
}

static struct prom_series *add_series(struct answer *a)
{
    struct prom_result *out = a->out;
    if (out->series_count == PROM_MAX_SERIES) {
        scan_fail(&a->scan, "more than 2000000 series");
        return NULL;
    }
    if (out->series_count == a->series_cap) {
        a->series_cap = a->series_cap ? a->series_cap * 2 : 16;
        out->series = xrealloc(out->series, a->series_cap, sizeof(*out->series));
    }
    struct prom_series *series = &out->series[out->series_count++];
    *series = (struct prom_series){0};
    return series;
}

/* --- series -------------------------------------------------------------------------------- */
/* Notes that a member was seen; a second one of the same name is refused, as nobody could say which
 * of the two is meant. */
static int seen_once(struct answer *a, unsigned *seen, enum field field)
{
    if (*seen & field)
        return scan_fail(&a->scan, "a member appears twice");
    *seen |= field;
    return 0;
}

static int read_labels(struct answer *a, struct prom_series *series)
{
    struct prom_label labels[MAX_LABELS];
    uint32_t n = 0;
    int more = scan_begin(&a->scan, '{');
    for (; more > 0; more = scan_next(&a->scan, '}')) {
        if (n == MAX_LABELS)
            return scan_fail(&a->scan, "a series with more than 128 labels");
        if (scan_name(&a->scan) < 0)
            return -1;
        labels[n].name = keep_text(a);
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(labels[i].name, labels[n].name) == 0)
                return scan_fail(&a->scan, "a label appears twice");
        if (scan_string(&a->scan) < 0)
            return -1;
        labels[n++].value = keep_text(a);
    }
    if (n > 0) {
        size_t size = n * sizeof(labels[0]);
        series->labels =
            memcpy(chunk_alloc(a->out, size, _Alignof(struct prom_label)), labels, size);
        series->label_count = n;
    }
    return more;
}

static int read_value(struct scan *s, double *value)
{
    if (scan_string(s) < 0)
        return -1;
    if (scan_is(s, "NaN"))
        *value = (double)NAN;
    else if (scan_is(s, "+Inf") || scan_is(s, "Inf"))
        *value = (double)INFINITY;
    else if (scan_is(s, "-Inf"))
        *value = -(double)INFINITY;
    else if (scan_parse_number(s->text, s->text_len, value) < 0)
        return scan_fail(s, "a sample that is no number");
    return 0;
}

/* [1435781451.781,"0.25"] */
static int read_sample(struct answer *a)
{
    struct scan *s = &a->scan;
    struct prom_sample sample = {0};
    if (scan_begin(s, '[') <= 0 || scan_number(s, &sample.time_s) < 0 || scan_next(s, ']') <= 0 ||
        read_value(s, &sample.value) < 0 || scan_next(s, ']') != 0)
        return scan_fail(s, "a sample must be a time and a value");
    if (a->sample_count == a->sample_cap) {
        a->sample_cap = a->sample_cap ? a->sample_cap * 2 : 16;
        a->samples = xrealloc(a->samples, a->sample_cap, sizeof(*a->samples));
    }
    a->samples[a->sample_count++] = sample;
    return 0;
}

static int read_samples(struct answer *a)
{
    int more = scan_begin(&a->scan, '[');
    for (; more > 0; more = scan_next(&a->scan, ']'))
        if (read_sample(a) < 0)
            return -1;
    return more;
}

static int store_samples(struct answer *a, struct prom_series *series)
{
    if (a->sample_count > UINT32_MAX)
        return scan_fail(&a->scan, "too many samples");
    size_t size = a->sample_count * sizeof(*a->samples);
    if (size > 0) {
        series->samples = chunk_alloc(a->out, size, _Alignof(struct prom_sample));
        memcpy(series->samples, a->samples, size);
    }
    series->sample_count = (uint32_t)a->sample_count;
    a->sample_count = 0;
    return 0;
}

static int read_series_member(struct answer *a, struct prom_series *series, unsigned *seen)
{
    bool matrix = a->out->type == PROM_MATRIX;
    struct scan *s = &a->scan;
    if (scan_name(s) < 0)
        return -1;
    if (scan_is(s, "metric"))
        return seen_once(a, seen, FIELD_METRIC) < 0 ? -1 : read_labels(a, series);
    if (scan_is(s, matrix ? "values" : "value")) {
        if (seen_once(a, seen, FIELD_VALUE) < 0)
            return -1;
        return matrix ? read_samples(a) : read_sample(a);
    }
    if (scan_is(s, "histogram") || scan_is(s, "histograms"))
        return scan_fail(s, "a native histogram, where a number was asked for");
    return scan_skip(s);
}

static int read_series(struct answer *a)
{
    struct prom_series *series = add_series(a);
    if (!series)
        return -1;
    unsigned seen = 0;
    int more = scan_begin(&a->scan, '{');
    for (; more > 0; more = scan_next(&a->scan, '}'))
        if (read_series_member(a, series, &seen) < 0)
            return -1;
    if (more == 0 && seen != (FIELD_METRIC | FIELD_VALUE))
        return scan_fail(&a->scan, "a series without its labels or values");
    return more < 0 ? -1 : store_samples(a, series);
}

/* --- the envelope -------------------------------------------------------------------------- */
static int read_result(struct answer *a)
{
    struct scan *s = &a->scan;
    if (a->out->type == PROM_SCALAR) {
        struct prom_series *series = add_series(a);
        return !series || read_sample(a) < 0 ? -1 : store_samples(a, series);
    }
    if (scan_peek(s) == 'n')
        return scan_skip(s); /* null: no series */
    int more = scan_begin(s, '[');
    for (; more > 0; more = scan_next(s, ']'))
        if (read_series(a) < 0)
            return -1;
    return more;
}

static int read_type(struct answer *a)
{
    static const char *const names[] = {
        [PROM_VECTOR] = "vector", [PROM_MATRIX] = "matrix", [PROM_SCALAR] = "scalar"};
    if (scan_string(&a->scan) < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        if (scan_is(&a->scan, names[i])) {
            a->out->type = i;
            return 0;
        }
    }
    return scan_fail(&a->scan, "a result that is neither vector, matrix nor scalar");
}

/* A result ahead of its type, which no server we know sends but JSON allows, is passed over and
 * read when the type is known. */
static int read_data_member(struct answer *a, unsigned *seen)
{
    struct scan *s = &a->scan;
    if (scan_name(s) < 0)
        return -1;
    if (scan_is(s, "resultType"))
        return seen_once(a, seen, FIELD_TYPE) < 0 ? -1 : read_type(a);
    if (!scan_is(s, "result"))
        return scan_skip(s);
    if (seen_once(a, seen, FIELD_RESULT) < 0)
        return -1;
    if (*seen & FIELD_TYPE)
        return read_result(a);
    a->early = s->at;
    return scan_skip(s);
}

static int read_data(struct answer *a)
{
    struct scan *s = &a->scan;
    unsigned seen = 0;
    if (scan_peek(s) == 'n')
        return scan_skip(s); /* null, beside an error */
    int more = scan_begin(s, '{');
    for (; more > 0; more = scan_next(s, '}'))
        if (read_data_member(a, &seen) < 0)
            return -1;
    if (more < 0)
        return -1;
    if (a->early) {
        const char *after = s->at;
        s->at = a->early;
        if (seen & FIELD_TYPE && read_result(a) < 0)
            return -1;
        s->at = after;
    }
    a->complete = seen == (FIELD_TYPE | FIELD_RESULT);
    return 0;
}

static int read_status(struct answer *a)
{
    if (scan_string(&a->scan) < 0)
        return -1;
    if (!scan_is(&a->scan, "success") && !scan_is(&a->scan, "error"))
        return scan_fail(&a->scan, "a status other than success and error");
    a->status = scan_is(&a->scan, "success") ? STATUS_SUCCESS : STATUS_ERROR;
    return 0;
}

/* An array of strings, joined; what does not fit is left off. */
static int read_notes(struct answer *a, char **notes)
{
    struct scan *s = &a->scan;
    if (scan_peek(s) == 'n')
        return scan_skip(s);
    cleanup_buf struct buf joined;
    buf_init(&joined, MAX_NOTES);
    int more = scan_begin(s, '[');
    for (; more > 0; more = scan_next(s, ']')) {
        char note[1024];
        if (scan_string(s) < 0)
            return -1;
        scan_quote(s->text, s->text_len, note, sizeof(note));
        (void)!buf_printf(&joined, "%s%s", joined.len ? "; " : "", note);
    }
    if (more == 0 && joined.len > 0)
        *notes = buf_take(&joined);
    return more;
}

static int read_words(struct answer *a, char *out, size_t size)
{
    if (scan_string(&a->scan) < 0)
        return -1;
    scan_quote(a->scan.text, a->scan.text_len, out, size);
    return 0;
}

static int read_member(struct answer *a, unsigned *seen)
{
    static const struct {
        const char *name;
        enum field field;
    } known[] = {{"status", FIELD_STATUS},        {"data", FIELD_DATA},
                 {"errorType", FIELD_ERROR_TYPE}, {"error", FIELD_ERROR},
                 {"warnings", FIELD_WARNINGS},    {"infos", FIELD_INFOS}};
    unsigned field = 0;
    if (scan_name(&a->scan) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (scan_is(&a->scan, known[i].name))
            field = known[i].field;
    if (field && seen_once(a, seen, field) < 0)
        return -1;
    switch (field) {
    case FIELD_STATUS:
        return read_status(a);
    case FIELD_DATA:
        return read_data(a);
    case FIELD_ERROR_TYPE:
        return read_words(a, a->error_type, sizeof(a->error_type));
    case FIELD_ERROR:
        return read_words(a, a->error, sizeof(a->error));
    case FIELD_WARNINGS:
        return read_notes(a, &a->out->warnings);
    case FIELD_INFOS:
        return read_notes(a, &a->out->infos);
    default:
        return scan_skip(&a->scan);
    }
}

static int read_answer(struct answer *a)
{
    unsigned seen = 0;
    int more = scan_begin(&a->scan, '{');
    for (; more > 0; more = scan_next(&a->scan, '}'))
        if (read_member(a, &seen) < 0)
            return -1;
    if (more < 0 || scan_end(&a->scan) < 0)
        return -1;
    if (a->status == STATUS_NONE)
        return scan_fail(&a->scan, "no status");
    if (a->status == STATUS_SUCCESS && !a->complete)
        return scan_fail(&a->scan, "no data with resultType and result");
    return 0;
}

/* --- the public functions ------------------------------------------------------------------ */
static void explain(const struct answer *a, struct error *err)
{
    const struct scan *s = &a->scan;
    size_t at = (size_t)(s->at - s->begin), from = at > 24 ? at - 24 : 0;
    char near[80];
    scan_quote(s->begin + from, (size_t)(s->end - s->begin) - from, near, sizeof(near));
    if (s->begin == s->end)
        error_set(err, ERROR_INVALID, "Prometheus answered nothing: an empty body");
    else
        error_set(err, ERROR_INVALID,
                  "Prometheus answered what cannot be read: %s at byte %zu: \"%s\"", s->problem, at,
                  near);
}

static void explain_refusal(const struct answer *a, struct error *err)
{
    static const struct {
        const char *type;
        enum error_code code;
    } codes[] = {{"timeout", ERROR_TIMEOUT},      {"canceled", ERROR_TIMEOUT},
                 {"internal", ERROR_UNAVAILABLE}, {"unavailable", ERROR_UNAVAILABLE},
                 {"not_found", ERROR_NOT_FOUND},  {"too_many_requests", ERROR_BUSY}};
    enum error_code code = ERROR_INVALID; /* bad_data, execution, not_acceptable */
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (strcmp(a->error_type, codes[i].type) == 0)
            code = codes[i].code;
    error_set(err, code, "Prometheus answered %s: %s", a->error_type[0] ? a->error_type : "error",
              a->error[0] ? a->error : "without saying why");
}

static int parse(struct answer *a, const char *body, size_t len, struct prom_result *out)
{
    *a = (struct answer){.out = out};
    *out = (struct prom_result){0};
    scan_init(&a->scan, body, len);
    size_t slots = 64;
    while (slots < len / 512 && slots < 65536)
        slots *= 2;
    a->recent = xcalloc(slots, sizeof(*a->recent));
    a->recent_mask = slots - 1;
    int result = read_answer(a);
    free(a->recent);
    free(a->samples);
    scan_free(&a->scan);
    return result;
}

int prom_parse(const char *body, size_t len, struct prom_result *out, struct error *err)
{
    struct answer a;
    if (parse(&a, body, len, out) < 0)
        explain(&a, err);
    else if (a.status == STATUS_ERROR)
        explain_refusal(&a, err);
    else
        return 0;
    prom_result_clear(out);
    return -1;
}

bool prom_parse_refusal(const char *body, size_t len, struct error *err)
{
    struct answer a;
    struct prom_result ignored;
    bool refusal = parse(&a, body, len, &ignored) == 0 && a.status == STATUS_ERROR;
    if (refusal)
        explain_refusal(&a, err);
    prom_result_clear(&ignored);
    return refusal;
}

struct prom_one {
    struct answer answer;
    struct prom_result result;
};

struct prom_one *prom_one_new(void)
{
    struct prom_one *one = xcalloc(1, sizeof(*one));
    one->answer.out = &one->result;
    return one;
}

void prom_one_free(struct prom_one *one)
{
    free(one->answer.samples);
    prom_result_clear(&one->result);
    free(one);
}

/* The newest chunk, which is the largest, is used again. */
static void begin_anew(struct prom_result *out)
{
    struct prom_chunk *kept = out->memory;
    for (struct prom_chunk *chunk = kept ? kept->next : NULL, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    if (kept)
        kept->next = NULL;
    if (kept)
        kept->used = 0;
    out->series_count = 0;
}

const struct prom_series *prom_one_read(struct prom_one *one, const char *text, size_t len,
                                        bool matrix, struct error *err)
{
    struct answer *a = &one->answer;
    begin_anew(a->out);
    a->out->type = matrix ? PROM_MATRIX : PROM_VECTOR;
    a->sample_count = 0;
    scan_init(&a->scan, text, len);
    int outcome = read_series(a) < 0 ? -1 : scan_end(&a->scan);
    if (outcome < 0)
        explain(a, err);
    scan_free(&a->scan);
    return outcome < 0 ? NULL : a->out->series;
}

void prom_result_clear(struct prom_result *result)
{
    for (struct prom_chunk *chunk = result->memory, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(result->series);
    free(result->warnings);
    free(result->infos);
    *result = (struct prom_result){0};
}

const char *prom_label(const struct prom_series *series, const char *name)
{
    for (uint32_t i = 0; i < series->label_count; i++)
        if (strcmp(series->labels[i].name, name) == 0)
            return series->labels[i].value;
    return "";
}

enum prom_value prom_classify(const struct prom_sample *sample, double now_s, double max_age_s)
{
    if (!sample)
        return PROM_MISSING;
    if (now_s - sample->time_s > max_age_s)
        return PROM_STALE;
    if (isnan(sample->value))
        return PROM_NAN;
    return isinf(sample->value) ? PROM_INF : PROM_NUMBER;
}
