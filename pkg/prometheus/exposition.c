/* Prometheus' text format, as a program exposes it: NAME{LABEL="VALUE",…} NUMBER [TIME], one sample
 * a line, and lines that begin with # or are empty. */
#include "prometheus/prometheus.h"

#include <string.h>

#define MAX_NUMBER 63 /* characters of it */
#define LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS     "0123456789"

struct line {
    const char *at, *end;
};

static char peek(const struct line *l)
{
    return l->at < l->end ? *l->at : '\0';
}

static void skip_blanks(struct line *l)
{
    while (peek(l) == ' ' || peek(l) == '\t')
        l->at++;
}

static bool take(struct line *l, char c)
{
    skip_blanks(l);
    bool there = l->at < l->end && *l->at == c;
    l->at += there;
    return there;
}

/* Its length; 0: there is none. */
static size_t take_name(struct line *l)
{
    const char *begin = l->at;
    while (l->at < l->end && *l->at &&
           strchr(l->at == begin ? LETTERS ":" : LETTERS DIGITS ":", *l->at))
        l->at++;
    return (size_t)(l->at - begin);
}

static bool take_string(struct line *l)
{
    if (!take(l, '"'))
        return false;
    for (; l->at < l->end && *l->at != '"'; l->at++)
        l->at += *l->at == '\\' && l->at + 1 < l->end;
    return take(l, '"');
}

/* The next label of a list; false: it has ended, or is none. */
static bool take_label(struct line *l, const char **name, size_t *name_len, const char **value,
                       size_t *value_len)
{
    skip_blanks(l);
    *name = l->at;
    *name_len = take_name(l);
    if (*name_len == 0 || !take(l, '='))
        return false;
    skip_blanks(l);
    *value = l->at + 1;
    if (!take_string(l))
        return false;
    *value_len = (size_t)(l->at - 1 - *value);
    take(l, ',');
    return true;
}

static bool take_labels(struct line *l, struct prom_exposed *out)
{
    const char *name, *value;
    size_t name_len, value_len;
    out->labels = l->at;
    out->labels_len = 0;
    if (!take(l, '{'))
        return true;
    out->labels = l->at;
    while (take_label(l, &name, &name_len, &value, &value_len))
        ;
    out->labels_len = (size_t)(l->at - out->labels);
    return take(l, '}');
}

static bool take_number(struct line *l, double *out)
{
    char text[MAX_NUMBER + 1], *end;
    size_t n = 0;
    skip_blanks(l);
    for (; l->at < l->end && *l->at != ' ' && *l->at != '\t' && n < MAX_NUMBER; l->at++)
        text[n++] = *l->at;
    text[n] = '\0';
    *out = strtod(text, &end);
    return n > 0 && end == text + n;
}

static bool is_sample(struct line l, struct prom_exposed *out)
{
    double time;
    out->name = l.at;
    out->name_len = take_name(&l);
    if (out->name_len == 0 || !take_labels(&l, out) || !take_number(&l, &out->value))
        return false;
    skip_blanks(&l);
    return l.at == l.end || (take_number(&l, &time) && (skip_blanks(&l), l.at == l.end));
}

int prom_expose(const char *text, size_t len,
                void (*on_sample)(void *arg, const struct prom_exposed *sample), void *arg,
                struct error *err)
{
    const char *end = text + len, *next;
    int number = 1;
    for (; text < end; text = next, number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        struct line l = {text, newline ? newline : end};
        struct prom_exposed sample;
        next = newline ? newline + 1 : end;
        if (l.at < l.end && l.end[-1] == '\r')
            l.end--;
        skip_blanks(&l);
        if (l.at == l.end || *l.at == '#')
            continue;
        if (!is_sample(l, &sample))
            return error_set(err, ERROR_MALFORMED, "line %d is no sample", number);
        on_sample(arg, &sample);
    }
    return 0;
}

bool prom_exposed_is(const struct prom_exposed *sample, const char *name)
{
    return strlen(name) == sample->name_len && memcmp(name, sample->name, sample->name_len) == 0;
}

static void unescape(const char *from, size_t len, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < size; i++) {
        bool escaped = from[i] == '\\' && i + 1 < len;
        i += escaped;
        out[n++] = escaped && from[i] == 'n' ? '\n' : from[i];
    }
    out[n < size ? n : 0] = '\0';
}

void prom_exposed_label(const struct prom_exposed *sample, const char *label, char *out,
                        size_t size)
{
    struct line l = {sample->labels, sample->labels + sample->labels_len};
    const char *name, *value;
    size_t name_len, value_len;
    out[0] = '\0';
    while (take_label(&l, &name, &name_len, &value, &value_len))
        if (strlen(label) == name_len && memcmp(label, name, name_len) == 0)
            unescape(value, value_len, out, size);
}
