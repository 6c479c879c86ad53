#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOTHING "–"
#define GAP     "  "

void table_begin(struct table *t, const char *align, const char *const *titles)
{
    *t = (struct table){.align = align, .column_count = strlen(align)};
    for (size_t i = 0; titles[i]; i++)
        table_cell(t, "%s", titles[i]);
}

void table_cell(struct table *t, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    if (t->cell_count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = xrealloc(t->cells, t->cap, sizeof(*t->cells));
    }
    t->cells[t->cell_count++] = n < 0 ? xstrdup("") : text;
}

/* Of UTF-8: bytes that begin a character. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

int table_fit(const char *text, size_t columns)
{
    int bytes = 0;
    for (; text[bytes]; bytes++)
        if (((unsigned char)text[bytes] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return bytes;
}

static size_t column_width(const struct table *t, size_t column)
{
    size_t widest = 0;
    for (size_t i = column; i < t->cell_count; i += t->column_count) {
        size_t width = width_of(t->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void put(const char *text, size_t *room)
{
    size_t width = width_of(text);
    printf("%.*s", table_fit(text, *room), text);
    *room -= width < *room ? width : *room;
}

static void put_spaces(size_t n, size_t *room)
{
    size_t fitting = n < *room ? n : *room;
    printf("%*s", (int)fitting, "");
    *room -= fitting;
}

static void print_cell(const char *text, char align, size_t width, bool last, size_t *room)
{
    size_t pad = width - width_of(text);
    if (align == 'r')
        put_spaces(pad, room);
    put(text, room);
    if (align != 'r' && !last)
        put_spaces(pad, room);
    if (!last)
        put(GAP, room);
}

/* No spaces at the end of a line: empty cells there are as if they were not. */
static void print_row(const struct table *t, char *const *cells, const size_t *widths)
{
    size_t last = t->column_count - 1, room = t->room ? t->room : SIZE_MAX;
    while (last > 0 && cells[last][0] == '\0')
        last--;
    for (size_t c = 0; c <= last; c++)
        print_cell(cells[c], t->align[c], widths[c], c == last, &room);
    putchar('\n');
}

void table_end(struct table *t, const char *indent)
{
    cleanup_free size_t *widths = xcalloc(t->column_count, sizeof(*widths));
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = column_width(t, c);
    for (size_t i = 0; i + t->column_count <= t->cell_count; i += t->column_count) {
        fputs(indent, stdout);
        print_row(t, t->cells + i, widths);
    }
    for (size_t i = 0; i < t->cell_count; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){0};
}

/* --- numbers --------------------------------------------------------------------------------- */
const char *table_count(double n, char text[TABLE_TEXT])
{
    char plain[TABLE_TEXT];
    if (!isfinite(n) || fabs(n) >= 1e15)
        return NOTHING;
    int len = snprintf(plain, sizeof(plain), "%.0f", n), out = 0;
    for (int i = 0; i < len; i++) {
        text[out++] = plain[i];
        if ((len - i - 1) % 3 == 0 && i + 1 < len && plain[i] != '-')
            text[out++] = ',';
    }
    text[out] = '\0';
    return text;
}

const char *table_percent(double share, int decimals, char text[TABLE_TEXT])
{
    if (!isfinite(share))
        return NOTHING;
    snprintf(text, TABLE_TEXT, "%.*f%%", decimals, 100 * share);
    return text;
}

const char *table_duration(double ms, char text[TABLE_TEXT])
{
    if (!isfinite(ms))
        return NOTHING;
    duration_print(1000 * ms, text);
    return text;
}

const char *table_number(double n, int decimals, char text[TABLE_TEXT])
{
    if (!isfinite(n))
        return NOTHING;
    snprintf(text, TABLE_TEXT, "%.*f", decimals, n);
    return text;
}

const char *table_clock(double s, char text[TABLE_TEXT])
{
    if (!isfinite(s))
        return NOTHING;
    int64_t whole = (int64_t)s;
    snprintf(text, TABLE_TEXT, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600,
             whole / 60 % 60, whole % 60);
    return text;
}
