/* The parser of a watch stream: one JSON event per line. */
#include "kube/internal.h"

#include <string.h>

#define INTEGER_EXACT                                                                              \
    9007199254740992.0 /* 2^53: beyond it a double no longer holds each integer                    \
                        */

/* Makes integers again of the reals that JSON_DECODE_INT_AS_REAL made of them. */
static json_t *integers_restored(json_t *value)
{
    const char *key;
    json_t *child;
    size_t i;
    void *next;

    if (json_is_object(value)) {
        json_object_foreach_safe(value, next, key, child)
            json_object_set_new(value, key, integers_restored(json_incref(child)));
    } else if (json_is_array(value)) {
        json_array_foreach (value, i, child)
            json_array_set_new(value, i, integers_restored(json_incref(child)));
    } else if (json_is_real(value)) {
        double number = json_real_value(value);
        if (number > -INTEGER_EXACT && number < INTEGER_EXACT &&
            number == (double)(json_int_t)number) {
            json_decref(value);
            return json_integer((json_int_t)number);
        }
    }
    return value;
}

json_t *kube_json_decode(const char *text, size_t len, struct error *err)
{
    json_error_t why;
    json_t *value = json_loadb(text, len, JSON_ALLOW_NUL, &why);
    /* Go prints 1e20 with all its digits. One such number in one object must not blind us to all
     * others. */
    if (!value && json_error_code(&why) == json_error_numeric_overflow) {
        value = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
        if (value)
            value = integers_restored(value);
    }
    if (!value)
        error_set(err, ERROR_INVALID, "not JSON at byte %d: %s", why.position, json_problem(&why));
    return value;
}

void kube_stream_init(struct kube_stream *s, size_t max_line,
                      void (*on_event)(void *arg, const char *type, const json_t *object),
                      void *arg)
{
    buf_init(&s->line, max_line);
    s->on_event = on_event;
    s->arg = arg;
}

void kube_stream_free(struct kube_stream *s)
{
    buf_free(&s->line);
}

static int stream_line(struct kube_stream *s, const char *line, size_t len, struct error *err)
{
    while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (len == 0)
        return 0;
    cleanup_json json_t *event = kube_json_decode(line, len, err);
    if (!event)
        return error_prefix(err, "watch event");
    const json_t *type = json_object_get(event, "type");
    const json_t *object = json_object_get(event, "object");
    if (!json_is_string(type) || !json_is_object(object))
        return error_set(err, ERROR_INVALID, "watch event without type or object");
    s->on_event(s->arg, json_string_value(type), object);
    return 0;
}

static int stream_keep(struct kube_stream *s, const char *data, size_t len, struct error *err)
{
    if (len > 0 && buf_append(&s->line, data, len) < 0)
        return error_set(err, ERROR_TOO_LARGE, "watch event of more than %zu bytes", s->line.max);
    return 0;
}

int kube_stream_feed(struct kube_stream *s, const char *data, size_t len, struct error *err)
{
    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        if (!end)
            return stream_keep(s, data, len, err);
        size_t piece = (size_t)(end - data);
        if (s->line.len == 0 && piece <= s->line.max) { /* a whole line in one piece: no copy */
            if (stream_line(s, data, piece, err) < 0)
                return -1;
        } else {
            if (stream_keep(s, data, piece, err) < 0)
                return -1;
            int ret = stream_line(s, buf_string(&s->line), s->line.len, err);
            buf_clear(&s->line);
            if (ret < 0)
                return -1;
        }
        data = end + 1;
        len -= piece + 1;
    }
    return 0;
}
