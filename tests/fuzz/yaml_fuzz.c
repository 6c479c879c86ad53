/* Any text as YAML: what can be read reads the same after it was written, and the line of each of
 * its fields is one of the text's. */
#include "base/base.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_written(const json_t *value)
{
    struct error err = {0};
    cleanup_free char *text = yaml_from_json(value);
    cleanup_json json_t *back = yaml_to_json(text, strlen(text), &err);
    require(json_array_size(back) == 1 && json_equal(json_array_get(back, 0), value));
}

static void check_lines(const char *text, size_t len, size_t document, const json_t *value)
{
    size_t lines = 1;
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n' || text[i] == '\r' || (text[i] & 0x80);
    for (void *at = json_object_iter((json_t *)(uintptr_t)value); at;
         at = json_object_iter_next((json_t *)(uintptr_t)value, at)) {
        const char *key = json_object_iter_key(at);
        cleanup_free char *within = xasprintf("%s[1].a", key);
        size_t line = yaml_line(text, len, document, key);
        size_t line_within = yaml_line(text, len, document, within);
        require(line >= 1 && line <= lines && line_within >= 1 && line_within <= lines);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    size_t i;
    const json_t *document;
    cleanup_json json_t *documents = yaml_to_json((const char *)data, size, &err);
    json_array_foreach (documents, i, document) {
        check_written(document);
        if (size < 4096)
            check_lines((const char *)data, size, i, document);
    }
    return 0;
}
