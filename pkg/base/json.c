#include "base/base.h"

#include <string.h>

json_t *json_path(const json_t *root, ...)
{
    va_list keys;
    va_start(keys, root);
    const json_t *at = root;
    for (const char *key; at && (key = va_arg(keys, const char *));)
        at = json_object_get(at, key);
    va_end(keys);
    return (json_t *)(uintptr_t)at;
}

const char *json_str(const json_t *value)
{
    const char *s = json_string_value(value);
    return s ? s : "";
}

json_t *json_text(const char *text, size_t max)
{
    for (size_t len = strnlen(text ? text : "", max); len > 0; len--) {
        json_t *json = json_stringn(text, len);
        if (json)
            return json;
    }
    return json_string("");
}

const char *json_problem(json_error_t *why)
{
    char *near = strstr(why->text, " near ");
    if (near)
        *near = '\0';
    return why->text;
}

void cleanup_json_(json_t **p)
{
    json_decref(*p);
}
