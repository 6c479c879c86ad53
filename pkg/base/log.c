#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE 8192

static struct {
    enum log_level least;
    enum log_format format;
    struct buf *test_output;
} settings = {.least = LOG_INFO};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level least, enum log_format format)
{
    settings.least = least;
    settings.format = format;
}

void log_set_output_for_test(struct buf *out)
{
    settings.test_output = out;
}

bool log_enabled(enum log_level level)
{
    return level >= settings.least;
}

/* A JSON string; also what logfmt uses where quotes are needed. What is too long is cut such that
 * there is room for what closes the line. */
static void put_quoted(struct buf *line, const char *s)
{
    (void)!buf_puts(line, "\"");
    for (; *s && line->len < MAX_LINE - 64; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            (void)!buf_printf(line, "\\%c", c);
        else if (c == '\n')
            (void)!buf_puts(line, "\\n");
        else if (c < 0x20)
            (void)!buf_printf(line, "\\u%04x", c);
        else
            (void)!buf_append(line, s, 1);
    }
    (void)!buf_puts(line, "\"");
}

static bool is_bare(const char *s)
{
    if (*s == '\0' || strlen(s) > 256)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == '\\')
            return false;
    return true;
}

static void put_string(struct buf *line, const char *s)
{
    if (settings.format == LOG_LOGFMT && is_bare(s))
        (void)!buf_puts(line, s);
    else
        put_quoted(line, s);
}

static void put_key(struct buf *line, const char *key)
{
    if (settings.format == LOG_JSON)
        (void)!buf_printf(line, "%s\"%s\":", line->len > 1 ? "," : "", key);
    else
        (void)!buf_printf(line, "%s%s=", line->len > 0 ? " " : "", key);
}

static void put_field(struct buf *line, const struct log_field *f)
{
    put_key(line, f->key);
    if (f->type == LOG_FIELD_STR)
        put_string(line, f->str ? f->str : "");
    else if (f->type == LOG_FIELD_INT)
        (void)!buf_printf(line, "%lld", (long long)f->i);
    else if (isfinite(f->num))
        (void)!buf_printf(line, "%.6g", f->num);
    else
        (void)!buf_puts(line, settings.format == LOG_JSON ? "null" : "nan");
}

void log_emit(enum log_level level, const char *message, const struct log_field *fields, size_t n)
{
    if (!log_enabled(level))
        return;
    cleanup_buf struct buf line;
    buf_init(&line, MAX_LINE);
    char now[RFC3339_SIZE];
    time_format_micro(clock_wall_ms(), now);
    if (settings.format == LOG_JSON)
        (void)!buf_puts(&line, "{");
    put_field(&line, &log_str("time", now));
    put_field(&line, &log_str("level", level_names[level]));
    put_field(&line, &log_str("msg", message));
    for (size_t i = 0; i < n && line.len < MAX_LINE / 2; i++)
        put_field(&line, &fields[i]);
    (void)!buf_puts(&line, settings.format == LOG_JSON ? "}\n" : "\n");

    if (settings.test_output)
        (void)!buf_append(settings.test_output, line.data, line.len);
    else
        (void)!write(STDERR_FILENO, line.data, line.len);
}
