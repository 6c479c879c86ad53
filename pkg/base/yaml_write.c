/* JSON as YAML that people read: block style, lists at the indent of their key as kubectl writes
 * them, plain scalars wherever every reader of YAML takes them for text. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define MAX_BYTES ((size_t)64 << 20)

static void put(struct buf *out, const char *text)
{
    if (buf_puts(out, text) < 0)
        abort();
}

static void put_indent(struct buf *out, int depth)
{
    for (int i = 0; i < depth; i++)
        put(out, "  ");
}

/* --- scalars --------------------------------------------------------------------------------- */
/* "250ms", "1.5Gi": plain for every reader, unlike dates, times and numbers with an exponent. */
static bool is_amount(const char *text)
{
    size_t number = strspn(text, "0123456789.");
    size_t unit = strspn(text + number, "kKMGTPEinumsh0123456789");
    return text[number] && strchr("kKMGTPnumsh", text[number]) && text[number + unit] == '\0';
}

static bool has_plain_characters(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-./+@=() ";
    size_t len = strlen(text);
    if (len == 0 || text[len - 1] == ' ')
        return false;
    if (text[0] >= '0' && text[0] <= '9')
        return is_amount(text);
    return (strchr(letters, text[0]) || text[0] == '/') && text[strspn(text, inside)] == '\0';
}

/* Whether it is itself again when it is read: "off" would be false. */
static bool is_plain(const char *text)
{
    struct error unused;
    if (!has_plain_characters(text))
        return false;
    cleanup_json json_t *read = yaml_to_json(text, strlen(text), &unused);
    return json_array_size(read) == 1 && strcmp(json_str(json_array_get(read, 0)), text) == 0;
}

/* The character that begins at text, and its length; jansson holds UTF-8 only. */
static uint32_t character(const char *text, size_t *len)
{
    const unsigned char *p = (const unsigned char *)text;
    *len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t code = *len == 1 ? p[0] : p[0] & (0xffu >> (*len + 1));
    for (size_t i = 1; i < *len; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

/* What readers of YAML refuse, or fold as the end of a line. */
static bool must_escape(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

static void put_quoted(struct buf *out, const char *text, size_t len)
{
    char escaped[16];
    put(out, "\"");
    for (size_t at = 0, step; at < len; at += step) {
        uint32_t code = character(text + at, &step);
        if (code == '"' || code == '\\')
            snprintf(escaped, sizeof(escaped), "\\%c", (char)code);
        else if (code == '\n' || code == '\t')
            snprintf(escaped, sizeof(escaped), "\\%c", code == '\n' ? 'n' : 't');
        else if (must_escape(code))
            snprintf(escaped, sizeof(escaped), "\\u%04x", code);
        else
            snprintf(escaped, sizeof(escaped), "%.*s", (int)step, text + at);
        put(out, escaped);
    }
    put(out, "\"");
}

static void put_text(struct buf *out, const char *text, size_t len)
{
    if (strlen(text) == len && is_plain(text))
        put(out, text);
    else
        put_quoted(out, text, len);
}

/* The shortest that is the same number when it is read. */
static void put_real(struct buf *out, double value)
{
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put(out, text);
}

static void put_scalar(struct buf *out, const json_t *value)
{
    char text[32];
    switch (json_typeof(value)) {
    case JSON_STRING:
        put_text(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        put(out, text);
        break;
    case JSON_REAL:
        put_real(out, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        put(out, json_is_true(value) ? "true" : "false");
        break;
    case JSON_OBJECT:
        put(out, "{}");
        break;
    case JSON_ARRAY:
        put(out, "[]");
        break;
    default:
        put(out, "null");
    }
}

/* --- mappings and lists ---------------------------------------------------------------------- */
static bool has_members(const json_t *value)
{
    return json_object_size(value) > 0 || json_array_size(value) > 0;
}

static void put_block(struct buf *out, const json_t *value, int depth, bool begun);

/* begun: the first line has its indent already, behind the dash of a list. */
static void put_mapping(struct buf *out, const json_t *object, int depth, bool begun)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        if (!begun)
            put_indent(out, depth);
        begun = false;
        put_text(out, key, strlen(key));
        put(out, ":");
        if (has_members(value)) {
            put(out, "\n");
            put_block(out, value, depth + json_is_object(value), false);
        } else {
            put(out, " ");
            put_scalar(out, value);
            put(out, "\n");
        }
    }
}

static void put_list(struct buf *out, const json_t *list, int depth, bool begun)
{
    size_t i;
    const json_t *item;
    json_array_foreach (list, i, item) {
        if (!begun)
            put_indent(out, depth);
        begun = false;
        put(out, "- ");
        if (has_members(item)) {
            put_block(out, item, depth + 1, true);
        } else {
            put_scalar(out, item);
            put(out, "\n");
        }
    }
}

static void put_block(struct buf *out, const json_t *value, int depth, bool begun)
{
    if (json_is_object(value))
        put_mapping(out, value, depth, begun);
    else
        put_list(out, value, depth, begun);
}

char *yaml_from_json(const json_t *value)
{
    cleanup_buf struct buf out;
    buf_init(&out, MAX_BYTES);
    if (has_members(value)) {
        put_block(&out, value, 0, false);
    } else {
        put_scalar(&out, value);
        put(&out, "\n");
    }
    return buf_take(&out);
}
