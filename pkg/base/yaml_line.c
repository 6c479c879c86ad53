/* Where in a YAML text a field stands, so that a message can name the line. */
#include "base/base.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#define MAX_DEPTH 64

struct finder {
    yaml_parser_t parser;
    yaml_event_t event;
    const char *path; /* what is left of it */
    size_t line;      /* of the deepest part that was found */
};

/* False at the end, and from an error on: libyaml then says that it is fine, and gives no event. */
static bool next(struct finder *f)
{
    yaml_event_delete(&f->event);
    bool parsed = yaml_parser_parse(&f->parser, &f->event) == 1;
    if (f->parser.error == YAML_MEMORY_ERROR)
        out_of_memory();
    return parsed && f->event.type != YAML_NO_EVENT;
}

/* Steps over the node that the current event begins; false at the end of the text. */
static bool skip(struct finder *f)
{
    int depth = 0;
    do {
        if (f->event.type == YAML_MAPPING_START_EVENT || f->event.type == YAML_SEQUENCE_START_EVENT)
            depth++;
        if (f->event.type == YAML_MAPPING_END_EVENT || f->event.type == YAML_SEQUENCE_END_EVENT)
            depth--;
        if (f->event.type == YAML_NO_EVENT || f->event.type == YAML_STREAM_END_EVENT || !next(f))
            return false;
    } while (depth > 0);
    return true;
}

/* Whether the path goes on with this key; if so, steps over it. A key may have dots in it. */
static bool take_key(struct finder *f, const char *key)
{
    const char *path = f->path + (*f->path == '.');
    size_t len = strlen(key);
    if (len == 0 || strncmp(path, key, len) != 0 || !strchr(".[", path[len]))
        return false; /* the NUL at the end is one of those too */
    f->path = path + len;
    return true;
}

/* Goes to the value of the key that the path names; false when there is none. */
static bool enter_mapping(struct finder *f)
{
    if (!next(f))
        return false;
    while (f->event.type == YAML_SCALAR_EVENT) {
        size_t line = f->event.start_mark.line + 1;
        bool found = take_key(f, (const char *)f->event.data.scalar.value);
        if (!next(f))
            return false;
        if (found) {
            f->line = line;
            return true;
        }
        if (!skip(f))
            return false;
    }
    return false;
}

static bool enter_sequence(struct finder *f)
{
    char *end;
    if (*f->path != '[')
        return false;
    unsigned long wanted = strtoul(f->path + 1, &end, 10);
    if (*end != ']' || !next(f))
        return false;
    for (unsigned long i = 0; f->event.type != YAML_SEQUENCE_END_EVENT; i++) {
        if (i == wanted) {
            f->path = end + 1;
            f->line = f->event.start_mark.line + 1;
            return true;
        }
        if (!skip(f))
            return false;
    }
    return false;
}

/* From the root of a document as deep as the path leads. */
static void follow(struct finder *f)
{
    f->line = f->event.start_mark.line + 1;
    for (int depth = 0; *f->path && depth < MAX_DEPTH; depth++) {
        bool inside = f->event.type == YAML_MAPPING_START_EVENT    ? enter_mapping(f)
                      : f->event.type == YAML_SEQUENCE_START_EVENT ? enter_sequence(f)
                                                                   : false;
        if (!inside)
            return;
    }
}

/* yaml_to_json leaves empty documents out; so do we. */
static bool is_empty(const yaml_event_t *event)
{
    const char *text =
        event->type == YAML_SCALAR_EVENT ? (const char *)event->data.scalar.value : "x";
    return event->type == YAML_SCALAR_EVENT && event->data.scalar.plain_implicit &&
           (*text == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0);
}

size_t yaml_line(const char *text, size_t len, size_t document, const char *path)
{
    struct finder f = {.path = path};
    if (!yaml_parser_initialize(&f.parser))
        out_of_memory();
    yaml_parser_set_input_string(&f.parser, (const unsigned char *)text, len);
    for (size_t seen = 0; f.line == 0 && next(&f) && f.event.type != YAML_STREAM_END_EVENT;) {
        if (f.event.type != YAML_DOCUMENT_START_EVENT || !next(&f))
            continue;
        if (is_empty(&f.event))
            continue;
        if (seen++ == document)
            follow(&f);
        else if (!skip(&f))
            break;
    }
    yaml_event_delete(&f.event);
    yaml_parser_delete(&f.parser);
    return f.line;
}
