#include "metrics/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_LABELS_TEXT 8192
#define NUMBER_SIZE     32

struct series {
    struct series *next;
    char *labels;      /* as they are printed, without braces; "" for none */
    double value;      /* of a histogram: the sum */
    uint64_t counts[]; /* one for each bound and one for +Inf; not cumulative */
};

struct metrics_family {
    struct metrics *metrics;
    struct metrics_family *next;
    struct metrics_spec spec;
    struct map by_labels;
    struct series *first, **last;
    size_t told;  /* series kept, or told in the scrape under way */
    bool started; /* HELP and TYPE are written in this scrape */
};

struct metrics {
    struct metrics_family *first, **last;
    double dropped;
    struct buf *out; /* of the scrape under way */
    bool full;
};

/* --- families -------------------------------------------------------------------------------- */
static void tell_dropped(void *arg, struct metrics_family *family)
{
    const struct metrics *m = arg;
    metrics_set(family, m->dropped, NULL);
}

struct metrics *metrics_new(const char *dropped)
{
    struct metrics *m = xcalloc(1, sizeof(*m));
    m->last = &m->first;
    metrics_register(m, &(struct metrics_spec){
                            .name = dropped,
                            .help = "Samples left out because a metric had too many series.",
                            .type = METRICS_COUNTER,
                            .collect = tell_dropped,
                            .arg = m,
                        });
    return m;
}

struct metrics_family *metrics_register(struct metrics *m, const struct metrics_spec *spec)
{
    struct metrics_family *f = xcalloc(1, sizeof(*f));
    f->metrics = m;
    f->spec = *spec;
    if (f->spec.max_series == 0)
        f->spec.max_series = METRICS_MAX_SERIES;
    f->last = &f->first;
    *m->last = f;
    m->last = &f->next;
    return f;
}

static void family_free(struct metrics_family *f)
{
    for (struct series *s = f->first, *next; s; s = next) {
        next = s->next;
        free(s->labels);
        free(s);
    }
    map_free(&f->by_labels, NULL);
    free(f);
}

void metrics_free(struct metrics *m)
{
    if (m == NULL)
        return;
    for (struct metrics_family *f = m->first, *next; f; f = next) {
        next = f->next;
        family_free(f);
    }
    free(m);
}

/* --- labels ---------------------------------------------------------------------------------- */
static int put_escaped(struct buf *b, const char *text, bool quotes)
{
    for (const char *rest = text; *rest;) {
        size_t plain = strcspn(rest, quotes ? "\\\n\"" : "\\\n");
        if (buf_append(b, rest, plain) < 0)
            return -1;
        rest += plain;
        if (*rest == '\0')
            break;
        const char escape[] = {'\\', *rest == '\n' ? 'n' : *rest};
        if (buf_append(b, escape, sizeof(escape)) < 0)
            return -1;
        rest++;
    }
    return 0;
}

static int put_labels(struct buf *b, const struct metrics_spec *spec, const char *const *values)
{
    for (size_t i = 0; values && i < METRICS_MAX_LABELS && spec->labels[i]; i++)
        if (buf_printf(b, "%s%s=\"", i ? "," : "", spec->labels[i]) < 0 ||
            put_escaped(b, values[i] ? values[i] : "", true) < 0 || buf_puts(b, "\"") < 0)
            return -1;
    return 0;
}

/* --- telling --------------------------------------------------------------------------------- */
static bool has_room(struct metrics_family *f)
{
    if (f->told < f->spec.max_series) {
        f->told++;
        return true;
    }
    f->metrics->dropped++;
    return false;
}

static struct series *series_add(struct metrics_family *f, const char *labels)
{
    if (!has_room(f))
        return NULL;
    size_t counts = f->spec.type == METRICS_HISTOGRAM ? f->spec.bound_count + 1 : 0;
    struct series *s = xcalloc(1, sizeof(*s) + counts * sizeof(s->counts[0]));
    s->labels = xstrdup(labels);
    *f->last = s;
    f->last = &s->next;
    map_put(&f->by_labels, labels, s);
    return s;
}

/* NULL when there is no room for one more. */
static struct series *series_of(struct metrics_family *f, const char *const *values)
{
    cleanup_buf struct buf labels;
    buf_init(&labels, MAX_LABELS_TEXT);
    if (put_labels(&labels, &f->spec, values) < 0) {
        f->metrics->dropped++;
        return NULL;
    }
    struct series *s = map_get(&f->by_labels, buf_string(&labels));
    return s ? s : series_add(f, buf_string(&labels));
}

void metrics_count(struct metrics_family *f, double by, const char *const *values)
{
    struct series *s = by >= 0 ? series_of(f, values) : NULL;
    if (s)
        s->value += by;
}

void metrics_observe(struct metrics_family *f, double value, const char *const *values)
{
    struct series *s = isnan(value) ? NULL : series_of(f, values);
    if (s == NULL)
        return;
    size_t bucket = 0;
    while (bucket < f->spec.bound_count && value > f->spec.bounds[bucket])
        bucket++;
    s->counts[bucket]++;
    s->value += value;
}

/* --- writing --------------------------------------------------------------------------------- */
/* The fewest digits that read back as the same number. */
static void print_number(double value, char out[NUMBER_SIZE])
{
    if (!isfinite(value)) {
        snprintf(out, NUMBER_SIZE, "%s", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

static int put_header(struct metrics_family *f)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    struct buf *out = f->metrics->out;
    if (f->started)
        return 0;
    f->started = true;
    return buf_printf(out, "# HELP %s ", f->spec.name) < 0 ||
                   put_escaped(out, f->spec.help, false) < 0 ||
                   buf_printf(out, "\n# TYPE %s %s\n", f->spec.name, types[f->spec.type]) < 0
               ? -1
               : 0;
}

/* le: NULL when it is no bucket. */
static int put_sample(struct metrics_family *f, const char *suffix, const char *labels,
                      const char *le, double value)
{
    char number[NUMBER_SIZE];
    const char *comma = *labels && le ? "," : "";
    print_number(value, number);
    if (put_header(f) < 0 || buf_printf(f->metrics->out, "%s%s", f->spec.name, suffix) < 0)
        return -1;
    if (le)
        return buf_printf(f->metrics->out, "{%s%sle=\"%s\"} %s\n", labels, comma, le, number);
    if (*labels)
        return buf_printf(f->metrics->out, "{%s} %s\n", labels, number);
    return buf_printf(f->metrics->out, " %s\n", number);
}

static int put_histogram(struct metrics_family *f, const struct series *s)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= f->spec.bound_count; i++) {
        char le[NUMBER_SIZE];
        print_number(i < f->spec.bound_count ? f->spec.bounds[i] : INFINITY, le);
        count += s->counts[i];
        if (put_sample(f, "_bucket", s->labels, le, (double)count) < 0)
            return -1;
    }
    if (put_sample(f, "_sum", s->labels, NULL, s->value) < 0)
        return -1;
    return put_sample(f, "_count", s->labels, NULL, (double)count);
}

static int put_told(struct metrics_family *f, double value, const char *const *values)
{
    cleanup_buf struct buf labels;
    buf_init(&labels, MAX_LABELS_TEXT);
    if (!has_room(f))
        return 0;
    if (put_labels(&labels, &f->spec, values) < 0) {
        f->metrics->dropped++;
        return 0;
    }
    return put_sample(f, "", buf_string(&labels), NULL, value);
}

void metrics_set(struct metrics_family *f, double value, const char *const *values)
{
    if (f->spec.collect == NULL) {
        struct series *s = series_of(f, values);
        if (s)
            s->value = value;
    } else if (f->metrics->out && !f->metrics->full) {
        f->metrics->full = put_told(f, value, values) < 0;
    }
}

static void write_family(struct metrics_family *f)
{
    struct metrics *m = f->metrics;
    f->started = false;
    if (f->spec.collect) {
        f->told = 0;
        f->spec.collect(f->spec.arg, f);
        return;
    }
    for (const struct series *s = f->first; s && !m->full; s = s->next)
        m->full =
            (f->spec.type == METRICS_HISTOGRAM ? put_histogram(f, s)
                                               : put_sample(f, "", s->labels, NULL, s->value)) < 0;
}

int metrics_write(struct metrics *m, struct buf *out)
{
    m->out = out;
    m->full = false;
    /* The first one counts what the others drop: it comes last. */
    for (struct metrics_family *f = m->first->next; f && !m->full; f = f->next)
        write_family(f);
    if (!m->full)
        write_family(m->first);
    m->out = NULL;
    return m->full ? -1 : 0;
}
