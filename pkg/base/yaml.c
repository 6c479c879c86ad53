/* YAML as Kubernetes' own tools read it: the scalars of go-yaml v2 (YAML 1.1 words such as "yes"
 * are booleans, 0777 is octal), then JSON. Stricter where those are lax: a key given twice is an
 * error, and a key beside "<<" always wins over a merged one. */
#include "base/base.h"
#include "base/memory.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <yaml.h>

#define YAML_MAX_BYTES ((size_t)8 << 20)
#define YAML_MAX_NODES 100000 /* of all documents, with aliases written out */
#define YAML_MAX_DEPTH 64
#define TAG_PREFIX     "tag:yaml.org,2002:"

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    struct map anchors; /* name to value, of the current document */
    size_t nodes;
    struct error *err;
};

static json_t *must(json_t *value)
{
    if (value == NULL)
        out_of_memory();
    return value;
}

/* Names the place; is -1. */
#define fail_at(r, at, fmt, ...)                                                                   \
    error_set((r)->err, ERROR_INVALID, "line %zu column %zu: " fmt, (at).line + 1,                 \
              (at).column + 1, ##__VA_ARGS__)

static int next_event(struct reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return 0;
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        out_of_memory();
    if (p->error == YAML_READER_ERROR)
        return error_set(r->err, ERROR_INVALID, "byte %zu: %s", p->problem_offset, p->problem);
    return fail_at(r, p->problem_mark, "%s%s%s", p->context ? p->context : "",
                   p->context ? ": " : "", p->problem);
}

/* --- scalars --------------------------------------------------------------------------------- */

struct word {
    const char *text;
    json_type type; /* JSON_REAL stands for what JSON has no number for */
};

static const struct word words[] = {
    {"", JSON_NULL},       {"~", JSON_NULL},      {"null", JSON_NULL},   {"Null", JSON_NULL},
    {"NULL", JSON_NULL},   {"true", JSON_TRUE},   {"True", JSON_TRUE},   {"TRUE", JSON_TRUE},
    {"yes", JSON_TRUE},    {"Yes", JSON_TRUE},    {"YES", JSON_TRUE},    {"y", JSON_TRUE},
    {"Y", JSON_TRUE},      {"on", JSON_TRUE},     {"On", JSON_TRUE},     {"ON", JSON_TRUE},
    {"false", JSON_FALSE}, {"False", JSON_FALSE}, {"FALSE", JSON_FALSE}, {"no", JSON_FALSE},
    {"No", JSON_FALSE},    {"NO", JSON_FALSE},    {"n", JSON_FALSE},     {"N", JSON_FALSE},
    {"off", JSON_FALSE},   {"Off", JSON_FALSE},   {"OFF", JSON_FALSE},   {".nan", JSON_REAL},
    {".NaN", JSON_REAL},   {".NAN", JSON_REAL},   {".inf", JSON_REAL},   {".Inf", JSON_REAL},
    {".INF", JSON_REAL},   {"+.inf", JSON_REAL},  {"+.Inf", JSON_REAL},  {"+.INF", JSON_REAL},
    {"-.inf", JSON_REAL},  {"-.Inf", JSON_REAL},  {"-.INF", JSON_REAL},
};

static const struct word *find_word(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i].text, text) == 0)
            return &words[i];
    return NULL;
}

/* Steps over 0x, 0o, 0b or the bare 0 of an octal number. */
static int take_base(const char **digits)
{
    const char *p = *digits;
    if (p[0] != '0' || p[1] == '\0')
        return 10;
    *digits = p + 2;
    switch (p[1] | 0x20) { /* either case */
    case 'x':
        return 16;
    case 'o':
        return 8;
    case 'b':
        return 2;
    default:
        *digits = p + 1;
        return 8;
    }
}

/* NULL when the text is not an integer that fits. */
static json_t *parse_integer(const char *text)
{
    bool sign = *text == '+' || *text == '-';
    const char *digits = text + sign;
    int base = take_base(&digits);
    const char *allowed = base == 16   ? "0123456789abcdefABCDEF"
                          : base == 10 ? "0123456789"
                          : base == 8  ? "01234567"
                                       : "01";
    if (*digits == '\0' || digits[strspn(digits, allowed)] != '\0')
        return NULL;
    errno = 0;
    unsigned long long v = strtoull(digits, NULL, base);
    if (errno == ERANGE)
        return NULL;
    if (*text == '-')
        return v <= (unsigned long long)INT64_MAX + 1 ? must(json_integer((int64_t)(0 - v))) : NULL;
    if (v <= INT64_MAX)
        return must(json_integer((int64_t)v));
    return sign ? NULL : must(json_real((double)v));
}

static bool is_float(const char *p)
{
    p += *p == '+' || *p == '-';
    size_t whole = strspn(p, "0123456789"), fraction = 0;
    p += whole;
    if (*p == '.') {
        fraction = strspn(++p, "0123456789");
        p += fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        size_t exponent = strspn(p, "0123456789");
        if (exponent == 0)
            return false;
        p += exponent;
    }
    return *p == '\0';
}

/* A whole number is an integer whatever its spelling, as it is after a way through Go's JSON. */
static json_t *parse_float(const char *text)
{
    if (!is_float(text))
        return NULL;
    double v = strtod(text, NULL);
    if (!isfinite(v))
        return NULL;
    if (v == floor(v) && fabs(v) < 0x1p63)
        return must(json_integer((json_int_t)v));
    return must(json_real(v));
}

static json_t *parse_number(const char *text)
{
    if (*text == '.')
        return parse_float(text);
    if (*text == '\0' || strchr("+-0123456789", *text) == NULL)
        return NULL;
    cleanup_free char *plain = xstrdup(text);
    size_t n = 0;
    for (const char *p = text; *p; p++)
        if (*p != '_')
            plain[n++] = *p;
    plain[n] = '\0';
    json_t *number = parse_integer(plain);
    return number ? number : parse_float(plain);
}

/* The value of a plain scalar; 0 with *value NULL when it is just a string. */
static int resolve(struct reader *r, const char *text, json_t **value)
{
    const struct word *word = find_word(text);
    if (word == NULL)
        *value = parse_number(text);
    else if (word->type == JSON_NULL)
        *value = json_null();
    else if (word->type != JSON_REAL)
        *value = json_boolean(word->type == JSON_TRUE);
    else
        return fail_at(r, r->event.start_mark, "%s has no form in JSON; quote it to mean text",
                       text);
    return 0;
}

static bool has_type(const json_t *value, const char *type)
{
    switch (value ? json_typeof(value) : JSON_STRING) {
    case JSON_NULL:
        return strcmp(type, "null") == 0;
    case JSON_TRUE:
    case JSON_FALSE:
        return strcmp(type, "bool") == 0;
    case JSON_INTEGER:
        return strcmp(type, "int") == 0 || strcmp(type, "float") == 0;
    case JSON_REAL:
        return strcmp(type, "float") == 0;
    default:
        return false;
    }
}

static json_t *read_text(struct reader *r, const char *text)
{
    json_t *value = json_string(text);
    if (value == NULL)
        fail_at(r, r->event.start_mark, "not valid UTF-8");
    return value;
}

static json_t *read_tagged(struct reader *r, const char *text, const char *tag)
{
    const char *type =
        strncmp(tag, TAG_PREFIX, strlen(TAG_PREFIX)) == 0 ? tag + strlen(TAG_PREFIX) : "";
    if (strcmp(type, "binary") == 0) {
        fail_at(r, r->event.start_mark, "!!binary is not supported");
        return NULL;
    }
    static const char *const resolved[] = {"null", "bool", "int", "float"};
    for (size_t i = 0; i < ARRAY_LEN(resolved); i++) {
        if (strcmp(type, resolved[i]) != 0)
            continue;
        cleanup_json json_t *value = NULL;
        if (resolve(r, text, &value) < 0)
            return NULL;
        if (has_type(value, type))
            return json_incref(value);
        fail_at(r, r->event.start_mark, "\"%.64s\" is not a !!%s", text, type);
        return NULL;
    }
    return read_text(r, text);
}

static json_t *read_scalar(struct reader *r)
{
    const char *text = (const char *)r->event.data.scalar.value;
    const char *tag = (const char *)r->event.data.scalar.tag;
    if (memchr(text, '\0', r->event.data.scalar.length)) {
        fail_at(r, r->event.start_mark, "text with a NUL character is not supported");
        return NULL;
    }
    if (tag)
        return read_tagged(r, text, tag);
    json_t *value = NULL;
    if (r->event.data.scalar.plain_implicit && resolve(r, text, &value) < 0)
        return NULL;
    return value ? value : read_text(r, text);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static json_t *read_node(struct reader *r, int depth);

static bool is_merge(const yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT || strcmp((char *)event->data.scalar.value, "<<") != 0)
        return false;
    const char *tag = (const char *)event->data.scalar.tag;
    return tag ? strcmp(tag, TAG_PREFIX "merge") == 0 : event->data.scalar.plain_implicit;
}

/* The shortest text that gives back the same float, as Go prints one that is a key. */
static char *float_key(double value)
{
    if (fabs(value) > FLT_MAX)
        return NULL;
    float f = (float)value;
    char text[32];
    int digits = 0;
    snprintf(text, sizeof(text), "%.*e", digits, (double)f);
    while (digits < 9 && strtof(text, NULL) != f)
        snprintf(text, sizeof(text), "%.*e", ++digits, (double)f);
    const char *e = strchr(text, 'e');
    int exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= 6)
        return xstrdup(text);
    return xasprintf("%.*f", digits > exponent ? digits - exponent : 0, (double)f);
}

/* NULL for what cannot be a key. */
static char *key_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return xstrdup(json_string_value(value));
    case JSON_INTEGER:
        return xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    case JSON_REAL:
        return float_key(json_real_value(value));
    case JSON_TRUE:
    case JSON_FALSE:
        return xstrdup(json_is_true(value) ? "true" : "false");
    default:
        return NULL;
    }
}

static int merge_into(struct reader *r, json_t *merged, json_t *value, yaml_mark_t at)
{
    if (json_is_object(value)) {
        json_object_update_missing(merged, value);
        return 0;
    }
    bool fits = json_is_array(value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *item = json_array_get(value, i);
        fits = fits && json_is_object(item);
        json_object_update_missing(merged, item);
    }
    return fits ? 0 : fail_at(r, at, "\"<<\" needs a mapping or a list of mappings");
}

static int read_entry(struct reader *r, json_t *own, json_t *merged, int depth)
{
    yaml_mark_t at = r->event.start_mark;
    bool merge = is_merge(&r->event);
    cleanup_json json_t *name = read_node(r, depth);
    if (name == NULL)
        return -1;
    cleanup_free char *key = key_of(name);
    if (key == NULL)
        return fail_at(r, at, "a key must be text, a boolean or a number of sane size");
    if (!merge && json_object_get(own, key))
        return fail_at(r, at, "the key \"%.64s\" is given twice", key);
    if (next_event(r) < 0)
        return -1;
    cleanup_json json_t *value = read_node(r, depth);
    if (value == NULL)
        return -1;
    if (merge)
        return merge_into(r, merged, value, at);
    if (json_object_set(own, key, value) < 0)
        out_of_memory();
    return 0;
}

static json_t *read_mapping(struct reader *r, int depth)
{
    cleanup_json json_t *own = must(json_object());
    cleanup_json json_t *merged = must(json_object());
    for (;;) {
        if (next_event(r) < 0)
            return NULL;
        if (r->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (read_entry(r, own, merged, depth) < 0)
            return NULL;
    }
    json_object_update_missing(own, merged);
    return json_incref(own);
}

static json_t *read_sequence(struct reader *r, int depth)
{
    cleanup_json json_t *list = must(json_array());
    for (;;) {
        if (next_event(r) < 0)
            return NULL;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return json_incref(list);
        json_t *item = read_node(r, depth);
        if (item == NULL)
            return NULL;
        if (json_array_append_new(list, item) < 0)
            out_of_memory();
    }
}

/* Counts the nodes of a value that is about to be copied. */
static bool count_nodes(struct reader *r, json_t *value, int depth)
{
    if (++r->nodes > YAML_MAX_NODES || depth > YAML_MAX_DEPTH)
        return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!count_nodes(r, json_array_get(value, i), depth + 1))
            return false;
    for (void *at = json_object_iter(value); at; at = json_object_iter_next(value, at))
        if (!count_nodes(r, json_object_iter_value(at), depth + 1))
            return false;
    return true;
}

static json_t *read_alias(struct reader *r, int depth)
{
    const char *name = (const char *)r->event.data.alias.anchor;
    json_t *target = map_get(&r->anchors, name);
    if (target == NULL) {
        fail_at(r, r->event.start_mark, "*%.64s: no such anchor is complete before here", name);
        return NULL;
    }
    if (!count_nodes(r, target, depth)) {
        fail_at(r, r->event.start_mark, "*%.64s makes the document too large or too deep", name);
        return NULL;
    }
    return must(json_deep_copy(target));
}

static void drop_anchor(void *value)
{
    json_decref(value);
}

static char *anchor_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return xstrdup((const char *)event->data.scalar.anchor);
    case YAML_SEQUENCE_START_EVENT:
        return xstrdup((const char *)event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return xstrdup((const char *)event->data.mapping_start.anchor);
    default:
        return NULL;
    }
}

static json_t *read_value(struct reader *r, int depth)
{
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(r, depth + 1);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(r, depth + 1);
    case YAML_ALIAS_EVENT:
        return read_alias(r, depth);
    default:
        fail_at(r, r->event.start_mark, "a value is missing");
        return NULL;
    }
}

/* Reads the node that the current event begins. */
static json_t *read_node(struct reader *r, int depth)
{
    if (depth > YAML_MAX_DEPTH || ++r->nodes > YAML_MAX_NODES) {
        fail_at(r, r->event.start_mark, "more than %d values or %d levels", YAML_MAX_NODES,
                YAML_MAX_DEPTH);
        return NULL;
    }
    cleanup_free char *anchor = anchor_of(&r->event);
    json_t *value = read_value(r, depth);
    if (value && anchor)
        json_decref(map_put(&r->anchors, anchor, json_incref(value)));
    return value;
}

static int read_document(struct reader *r, json_t *documents)
{
    if (next_event(r) < 0)
        return -1;
    json_t *root = read_node(r, 1);
    map_free(&r->anchors, drop_anchor);
    if (root == NULL)
        return -1;
    if (json_is_null(root))
        return next_event(r);
    if (json_array_append_new(documents, root) < 0)
        out_of_memory();
    return next_event(r);
}

json_t *yaml_to_json(const char *text, size_t len, struct error *err)
{
    if (len > YAML_MAX_BYTES) {
        error_set(err, ERROR_TOO_LARGE, "YAML of more than %zu bytes", YAML_MAX_BYTES);
        return NULL;
    }
    struct reader r = {.err = err};
    if (!yaml_parser_initialize(&r.parser))
        out_of_memory();
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    json_t *documents = must(json_array());
    int result;
    while ((result = next_event(&r)) == 0 && r.event.type != YAML_STREAM_END_EVENT)
        if (r.event.type == YAML_DOCUMENT_START_EVENT &&
            (result = read_document(&r, documents)) < 0)
            break;
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (result == 0)
        return documents;
    json_decref(documents);
    return NULL;
}
