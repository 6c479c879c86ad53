/* The walk over a manifest: types, bounds, unknown fields with a suggestion. */
#include "schema.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_FINDINGS   100 /* nobody reads more */
#define MAX_SHOWN_NAME 64
#define MAX_PATH       256

struct check {
    struct api_findings *out;
    bool errors_only; /* the caller wants no suggestions */
    size_t errors;
    char path[MAX_PATH]; /* where the walk stands */
    size_t path_len;
};

static void check_value(struct check *check, const struct field *field, const json_t *value);

/* --- findings ------------------------------------------------------------------------------- */
static void add_finding(struct check *check, bool warning, char *field, char *message)
{
    struct api_findings *out = check->out;

    check->errors += warning ? 0 : 1;
    if (out->count == MAX_FINDINGS) {
        free(field);
        free(message);
        return;
    }
    out->items = xrealloc(out->items, out->count + 1, sizeof(*out->items));
    out->items[out->count++] =
        (struct api_finding){.warning = warning, .field = field, .message = message};
}

void check_error(struct check *check, const char *below, const char *fmt, ...)
{
    char message[320];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    if (check->path_len == 0 && *below == '.')
        below++;
    add_finding(check, false, xasprintf("%s%s", check->path, below), xstrdup(message));
}

void api_findings_clear(struct api_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].field);
        free(findings->items[i].message);
    }
    free(findings->items);
    *findings = (struct api_findings){0};
}

/* --- suggestions ---------------------------------------------------------------------------- */
static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein's distance, blind to case. Names too long to be a slip of the pen are far away. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 48 };
    size_t row[LONGEST + 1], len_a = strlen(a), len_b = strlen(b);

    if (len_a > LONGEST || len_b > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= len_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= len_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t above = row[j];
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1));
            diagonal = above;
        }
    }
    return row[len_b];
}

static bool is_slip(const char *written, const char *meant)
{
    size_t len = strlen(meant);
    return distance(written, meant) <= (len <= 4 ? 1u : len <= 8 ? 2u : 3u);
}

static const char *nearest_value(const char *written, const char *const *values)
{
    for (; *values; values++) {
        if (is_slip(written, *values))
            return *values;
    }
    return NULL;
}

static const char *nearest_member(const char *written, const struct field *members)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;

    for (; members->name; members++) {
        size_t d = distance(written, members->name);
        if (d < best_distance && is_slip(written, members->name)) {
            best = members->name;
            best_distance = d;
        }
    }
    return best;
}

/* Finds a field of that name anywhere below, and writes its path; the depth is the table's own. */
static bool find_elsewhere(const struct field *field, const char *name, char *path, size_t len)
{
    if (field->type == FIELD_LIST)
        return find_elsewhere(field->members, name, path, len);
    if (field->type != FIELD_OBJECT)
        return false;
    for (const struct field *m = field->members; m->name; m++) {
        int n = snprintf(path + len, MAX_PATH - len, "%s%s%s", len ? "." : "", m->name,
                         m->type == FIELD_LIST ? "[]" : "");
        if (strcmp(m->name, name) == 0 || find_elsewhere(m, name, path, len + (size_t)n))
            return true;
    }
    path[len] = '\0';
    return false;
}

static void warn_unknown(struct check *check, const struct field *field, const char *name)
{
    char place[MAX_PATH] = "";
    const char *near = nearest_member(name, field->members);
    bool own = near || find_elsewhere(&api_manifest, name, place, 0);

    add_finding(
        check, true,
        xasprintf("%s%s%.*s", check->path, check->path_len ? "." : "", MAX_SHOWN_NAME, name),
        own ? xasprintf("unknown field, it is ignored; did you mean %s?", near ? near : place)
            : xstrdup("unknown field, it is ignored"));
}

/* --- values --------------------------------------------------------------------------------- */
const json_t *api_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

bool api_integer(const json_t *value, int64_t *out)
{
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return true;
    }
    double number = json_real_value(value);
    if (!json_is_real(value) || fabs(number) > 1e15 || number != floor(number))
        return false;
    *out = (int64_t)number;
    return true;
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
    };
    return names[json_typeof(value)];
}

static void check_format(struct check *check, const struct field *field, const char *text)
{
    const char *wanted = field->format ? field->format(text) : NULL;

    if (wanted)
        check_error(check, "", "\"%.*s\" %s", MAX_SHOWN_NAME, text, wanted);
}

static void check_string(struct check *check, const struct field *field, const json_t *value)
{
    const char *text = json_string_value(value);
    double characters = 0;

    if (!text) {
        check_error(check, "", "must be a string, not %s", type_name(value));
        return;
    }
    for (const char *s = text; *s; s++)
        characters += (*s & 0xC0) != 0x80;
    if (field->max > 0 && (characters < field->min || characters > field->max))
        check_error(check, "", "must have %.0f to %.0f characters", field->min, field->max);
    check_format(check, field, text);
}

static void check_enum(struct check *check, const struct field *field, const json_t *value)
{
    const char *text = json_string_value(value), *near = NULL;
    char known[128] = "";

    for (const char *const *v = field->values; *v; v++) {
        if (text && strcmp(text, *v) == 0)
            return;
        size_t len = strlen(known);
        snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "", *v);
    }
    if (!text) {
        /* YAML takes a plain Off for false. */
        check_error(check, "", "must be one of %s, not %s%s", known, type_name(value),
                    json_is_false(value) && strstr(known, "Off") ? ": write \"Off\" with quotes"
                                                                 : "");
        return;
    }
    near = nearest_value(text, field->values);
    check_error(check, "", "\"%.*s\" is not one of %s%s%s%s", MAX_SHOWN_NAME, text, known,
                near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static void check_number(struct check *check, const struct field *field, const json_t *value)
{
    int64_t integer = 0;
    bool whole = field->type == FIELD_INTEGER;

    if (whole ? !api_integer(value, &integer) : !json_is_number(value)) {
        check_error(check, "", "must be %s%s%s", whole ? "an integer" : "a number",
                    json_is_number(value) ? "" : ", not ",
                    json_is_number(value) ? "" : type_name(value));
        return;
    }
    double number = json_number_value(value);
    bool inside = field->open ? number > field->min && number < field->max
                              : number >= field->min && number <= field->max;
    if (!inside && field->open)
        check_error(check, "", "must be more than %g and less than %g", field->min, field->max);
    else if (!inside)
        check_error(check, "", "must be from %.10g to %.10g", field->min, field->max);
}

static void check_quantity(struct check *check, const struct field *field, const json_t *value)
{
    char text[API_AMOUNT_SIZE];

    if (api_amount_text(value, text))
        check_format(check, field, text);
    else if (json_is_real(value))
        check_error(check, "", "must be a whole number or a quoted quantity such as \"0.5\"");
    else if (json_is_string(value))
        check_error(check, "", "is too long for a quantity");
    else
        check_error(check, "", "must be a quantity, not %s", type_name(value));
}

static void check_text_map(struct check *check, const json_t *value)
{
    const char *key;
    json_t *item;

    if (!json_is_object(value)) {
        check_error(check, "", "must be an object, not %s", type_name(value));
        return;
    }
    json_object_foreach ((json_t *)value, key, item) {
        if (!json_is_string(item))
            check_error(check, "", "%.*s must be a string, not %s: quote it", MAX_SHOWN_NAME, key,
                        type_name(item));
    }
}

/* --- the walk ------------------------------------------------------------------------------- */
static void check_list(struct check *check, const struct field *field, const json_t *value)
{
    size_t count = json_array_size(value), path_len = check->path_len;

    if (!json_is_array(value)) {
        check_error(check, "", "must be a list, not %s", type_name(value));
        return;
    }
    if ((double)count < field->min || (double)count > field->max) {
        check_error(check, "", "must have %.0f to %.0f items", field->min, field->max);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int n = snprintf(check->path + path_len, MAX_PATH - path_len, "[%zu]", i);
        check->path_len = path_len + (size_t)n;
        check_value(check, field->members, json_array_get(value, i));
        check->path_len = path_len;
        check->path[path_len] = '\0';
    }
}

static void check_member(struct check *check, const struct field *member, const json_t *value)
{
    size_t path_len = check->path_len;
    int n = snprintf(check->path + path_len, MAX_PATH - path_len, "%s%s", path_len ? "." : "",
                     member->name);

    check->path_len = path_len + (size_t)n;
    if (value)
        check_value(check, member, value);
    else if (member->required)
        check_error(check, "", "is required");
    check->path_len = path_len;
    check->path[path_len] = '\0';
}

static bool is_member(const struct field *members, const char *name)
{
    for (; members->name; members++) {
        if (strcmp(members->name, name) == 0)
            return true;
    }
    return false;
}

static void check_object(struct check *check, const struct field *field, const json_t *value)
{
    const char *key;
    json_t *unused;

    if (!json_is_object(value)) {
        check_error(check, "", "must be an object, not %s", type_name(value));
        return;
    }
    for (const struct field *member = field->members; member->name; member++)
        check_member(check, member, api_member(value, member->name));
    if (check->errors_only)
        return;
    json_object_foreach ((json_t *)value, key, unused) {
        if (!is_member(field->members, key))
            warn_unknown(check, field, key);
    }
}

static void check_value(struct check *check, const struct field *field, const json_t *value)
{
    switch (field->type) {
    case FIELD_ANY:
        return;
    case FIELD_OBJECT:
        check_object(check, field, value);
        break;
    case FIELD_LIST:
        check_list(check, field, value);
        break;
    case FIELD_STRING:
        if (field->values)
            check_enum(check, field, value);
        else
            check_string(check, field, value);
        break;
    case FIELD_INTEGER:
    case FIELD_NUMBER:
        check_number(check, field, value);
        break;
    case FIELD_QUANTITY:
        check_quantity(check, field, value);
        break;
    case FIELD_TEXT_MAP:
        check_text_map(check, value);
        break;
    }
    if (field->rule)
        field->rule(check, value);
}

size_t api_validate(const json_t *manifest, struct api_findings *out)
{
    struct check check = {.out = out};

    *out = (struct api_findings){0};
    if (!manifest)
        check_error(&check, "", "there is nothing");
    else
        check_value(&check, &api_manifest, manifest);
    return check.errors;
}

int api_check(const json_t *object, struct error *err)
{
    struct api_findings findings = {0};
    struct check check = {.out = &findings, .errors_only = true};
    int result = 0;

    if (!object)
        return error_set(err, ERROR_INVALID, "there is nothing");
    check_value(&check, &api_manifest, object);
    if (findings.count > 0)
        result = error_set(err, ERROR_INVALID, "%s: %s", findings.items[0].field,
                           findings.items[0].message);
    api_findings_clear(&findings);
    return result;
}
