/* Whether a query can read series of one namespace only.
 *
 * Nothing is rewritten, and PromQL is not parsed: words, strings, braces and signs are told apart,
 * and whatever is not known for harmless is refused. A name that no parenthesis follows is a
 * series, and must have braces; braces must hold namespace="…", and nothing but matchers that all
 * must hold. */
#include "prometheus/prometheus.h"

#include <ctype.h>
#include <string.h>

struct reader {
    const char *at;
    const char *namespace_;
    struct error *err;
};

struct word {
    const char *text;
    size_t len;
};

static int refuse(struct reader *r, const char *at, const char *why)
{
    return error_set(r->err, ERROR_FORBIDDEN,
                     "the query may read series of its own namespace only: at \"%.24s\": %s", at,
                     why);
}

static bool is(struct word w, const char *text)
{
    return strlen(text) == w.len && strncasecmp(w.text, text, w.len) == 0;
}

static bool is_exactly(struct word w, const char *text)
{
    return strlen(text) == w.len && memcmp(w.text, text, w.len) == 0;
}

static bool is_any(struct word w, const char *const *texts)
{
    for (; *texts; texts++)
        if (is(w, *texts))
            return true;
    return false;
}

/* Spaces and comments. */
static void skip(struct reader *r)
{
    for (;;) {
        r->at += strspn(r->at, " \t\r\n");
        if (*r->at != '#')
            return;
        r->at += strcspn(r->at, "\r\n");
    }
}

static struct word read_word(struct reader *r)
{
    struct word w = {r->at, 0};
    while (isalnum((unsigned char)r->at[w.len]) || r->at[w.len] == '_' || r->at[w.len] == ':')
        w.len++;
    r->at += w.len;
    skip(r);
    return w;
}

/* What stands between the quotes, as it is written. */
static int read_string(struct reader *r, struct word *out)
{
    char quote = *r->at;
    const char *begin = ++r->at;
    while (*r->at && *r->at != quote)
        r->at += *r->at == '\\' && quote != '`' && r->at[1] ? 2 : 1;
    if (*r->at == '\0')
        return refuse(r, begin, "a string has no end");
    *out = (struct word){begin, (size_t)(r->at - begin)};
    r->at++;
    skip(r);
    return 0;
}

static bool begins_string(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

static bool begins_word(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == ':';
}

/* --- braces ---------------------------------------------------------------------------------- */
/* name OP "value"; or "name" alone, as Prometheus 3 writes names that are no words. */
static int read_matcher(struct reader *r, bool *confined)
{
    struct word label = {"", 0}, value = {"", 0};
    bool quoted = begins_string(*r->at);
    const char *begin = r->at;
    if (quoted ? read_string(r, &label) < 0 : !begins_word(*r->at))
        return quoted ? -1 : refuse(r, begin, "a label is expected");
    if (!quoted)
        label = read_word(r);
    if (quoted && (*r->at == ',' || *r->at == '}'))
        return 0;
    size_t sign = strspn(r->at, "=!~");
    bool equal = sign == 1 && *r->at == '=';
    if (sign == 0 || sign > 2)
        return refuse(r, begin, "a label and its value are expected");
    r->at += sign;
    skip(r);
    if (!begins_string(*r->at))
        return refuse(r, begin, "the value must be a string");
    if (read_string(r, &value) < 0)
        return -1;
    *confined |= equal && is_exactly(label, "namespace") && is_exactly(value, r->namespace_);
    return 0;
}

static int read_braces(struct reader *r)
{
    bool confined = false;
    const char *begin = r->at++;
    skip(r);
    while (*r->at != '}') {
        if (read_matcher(r, &confined) < 0)
            return -1;
        if (*r->at != ',' && *r->at != '}')
            return refuse(r, begin, "matchers must be separated by commas");
        if (*r->at == ',')
            r->at++;
        skip(r);
    }
    r->at++;
    return confined ? 0 : refuse(r, begin, "namespace=\"$namespace\" must stand in the braces");
}

/* --- words ----------------------------------------------------------------------------------- */
/* sum by (pod) (…): these and a list of labels. */
static const char *const lists[] = {"by",         "without",     "on", "ignoring",
                                    "group_left", "group_right", NULL};
static const char *const signs[] = {"and", "or", "unless", "bool", "atan2", "offset", NULL};
static const char *const numbers[] = {"inf", "nan", NULL};
static const char *const gatherers[] = {"sum",     "avg",      "min",    "max",          "count",
                                        "group",   "stddev",   "stdvar", "count_values", "topk",
                                        "bottomk", "quantile", "limitk", "limit_ratio",  NULL};

/* Labels, up to the closing parenthesis; without one, nothing (on and the like need one). */
static int read_list(struct reader *r, struct word word)
{
    if (*r->at != '(')
        return is(word, "group_left") || is(word, "group_right")
                   ? 0
                   : refuse(r, word.text, "a list of labels is expected");
    for (r->at++, skip(r); *r->at != ')'; skip(r)) {
        struct word label = {"", 0};
        if (begins_string(*r->at) ? read_string(r, &label) < 0 : !begins_word(*r->at))
            return refuse(r, word.text, "a list of labels is expected");
        if (begins_word(*r->at))
            read_word(r);
        if (*r->at == ',')
            r->at++;
    }
    r->at++;
    return 0;
}

static int read_name(struct reader *r)
{
    struct word word = read_word(r);
    if (is_any(word, lists))
        return read_list(r, word);
    if (*r->at == '{')
        return read_braces(r);
    bool operand = *r->at == '\0' || strchr(")],[", *r->at) != NULL; /* a series of that name */
    if (*r->at == '(' || is_any(word, numbers) || (is_any(word, signs) && !operand))
        return 0;
    if (is_any(word, gatherers) && begins_word(*r->at)) {
        struct word next = read_word(r);
        if (is(next, "by") || is(next, "without"))
            return read_list(r, next);
        return refuse(r, word.text, "\"by\" or \"without\" is expected");
    }
    return refuse(r, word.text, "a series must have {namespace=\"$namespace\"}");
}

/* Numbers and durations: 0x1f, 1e-3 (in two parts), 5m30s. */
static void read_number(struct reader *r)
{
    while (isalnum((unsigned char)*r->at) || *r->at == '.' || *r->at == '_')
        r->at++;
}

static int read_sign(struct reader *r)
{
    static const char *const two[] = {"==", "!=", ">=", "<="};
    for (size_t i = 0; i < ARRAY_LEN(two); i++) {
        if (strncmp(r->at, two[i], 2) == 0) {
            r->at += 2;
            return 0;
        }
    }
    if (!strchr("()[],+-*/%^<>@:", *r->at))
        return refuse(r, r->at, "it is not understood");
    r->at++;
    return 0;
}

int prom_query_confined(const char *query, const char *namespace_, struct error *err)
{
    struct reader r = {query, namespace_, err};
    struct word text = {"", 0};
    for (skip(&r); *r.at; skip(&r)) {
        int result = *r.at == '{'                         ? read_braces(&r)
                     : begins_string(*r.at)               ? read_string(&r, &text)
                     : begins_word(*r.at) && *r.at != ':' ? read_name(&r)
                     : isdigit((unsigned char)*r.at)      ? (read_number(&r), 0)
                                                          : read_sign(&r);
        if (result < 0)
            return -1;
    }
    return 0;
}
