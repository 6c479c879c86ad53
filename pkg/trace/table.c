/* CSV with a header: columns are known by their names, every row has as many cells. Cells are not
 * quoted. */
#include "trace/internal.h"

#include <string.h>

#define MAX_COLUMNS 100000
#define MAX_ID      128 /* characters */

static const char *const id_names[ROLE_IDS] = {"HashOwner", "HashApp", "HashFunction"};

/* Behind the cell at `at`, if nothing is wrong with it. */
static const char *cell_end(const char *at, const char *end)
{
    while (at < end && *at != ',' && ((unsigned char)*at >= ' ' || *at == '\t'))
        at++;
    return at;
}

/* Passes the line's end, also as "\r\n"; false: there is none here. */
static bool pass_line_end(struct table *t)
{
    if (t->at < t->end && *t->at == '\r' && (t->at + 1 == t->end || t->at[1] == '\n'))
        t->at++;
    if (t->at < t->end && *t->at != '\n')
        return false;
    t->at += t->at < t->end;
    return true;
}

static int unexpected(const struct table *t, const char *at, struct error *err)
{
    if (*at > ' ' && *at <= '~')
        return text_fail(t->text, at, err, "unexpected '%c'", *at);
    return text_fail(t->text, at, err, "unexpected byte 0x%02x", (unsigned char)*at);
}

/* --- header --------------------------------------------------------------------------------- */
static int id_role(const char *name, size_t len)
{
    for (int i = 0; i < ROLE_IDS; i++)
        if (strlen(id_names[i]) == len && memcmp(id_names[i], name, len) == 0)
            return i;
    return ROLE_OTHER;
}

static int take_column(struct table *t, size_t len, table_role *role, void *arg, struct error *err)
{
    const char *why = NULL;
    char word[TEXT_WORD_SIZE];
    int r = id_role(t->at, len);
    if (r < ROLE_IDS && t->has_id[r])
        return text_fail(t->text, t->at, err, "a second column %s", id_names[r]);
    if (r < ROLE_IDS)
        t->has_id[r] = true;
    else
        r = role(t->at, len, arg, &why);
    if (r < 0)
        return text_fail(t->text, t->at, err, "column \"%s\": %s", text_word(t->at, t->end, word),
                         why);
    if (t->column_count == MAX_COLUMNS)
        return text_fail(t->text, t->at, err, "more than %d columns", MAX_COLUMNS);
    if ((t->column_count & (t->column_count - 1)) == 0) /* full at each power of two */
        t->roles = xrealloc(t->roles, t->column_count ? t->column_count * 2 : 1, sizeof(int));
    t->roles[t->column_count++] = r;
    t->value_count += r >= ROLE_VALUE;
    return 0;
}

static int read_header(struct table *t, table_role *role, void *arg, struct error *err)
{
    for (;;) {
        const char *end = cell_end(t->at, t->end);
        if (take_column(t, (size_t)(end - t->at), role, arg, err) < 0)
            return -1;
        t->at = end;
        if (pass_line_end(t))
            return 0;
        if (*t->at != ',')
            return unexpected(t, t->at, err);
        t->at++;
    }
}

int table_open(struct table *t, const struct trace_text *text, double most, table_role *role,
               void *arg, struct error *err)
{
    *t = (struct table){.text = text, .at = text_begin(text), .end = text_end(text), .most = most};
    if (t->at == t->end)
        return text_fail(text, NULL, err, "the file is empty");
    if (read_header(t, role, arg, err) < 0)
        return -1;
    t->values = xcalloc(t->value_count, sizeof(*t->values));
    t->value_at = xcalloc(t->value_count, sizeof(*t->value_at));
    return 0;
}

void table_close(struct table *t)
{
    free(t->roles);
    free(t->values);
    free(t->value_at);
    *t = (struct table){0};
}

/* --- rows ----------------------------------------------------------------------------------- */
static bool is_id_character(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
}

static int read_id(struct table *t, int role, struct error *err)
{
    const char *at = t->at;
    while (t->at < t->end && is_id_character(*t->at))
        t->at++;
    t->ids[role] = (struct table_id){.at = at, .len = (size_t)(t->at - at)};
    if (t->ids[role].len == 0 || t->ids[role].len > MAX_ID)
        return text_fail(t->text, at, err, "%s must be 1 to %d letters, digits, '-', '_' or '.'",
                         id_names[role], MAX_ID);
    return 0;
}

static int read_value(struct table *t, size_t index, struct error *err)
{
    t->value_at[index] = t->at;
    const char *problem = text_number(&t->at, t->end, t->most, &t->values[index]);
    return problem ? text_number_fail(t->text, t->at, t->most, problem, err) : 0;
}

static int read_cell(struct table *t, int role, struct error *err)
{
    if (role >= ROLE_VALUE)
        return read_value(t, (size_t)(role - ROLE_VALUE), err);
    if (role < ROLE_IDS)
        return read_id(t, role, err);
    t->at = cell_end(t->at, t->end);
    return 0;
}

/* Where a cell is followed by something else than what must follow it. */
static int separator_fail(struct table *t, size_t cells, struct error *err)
{
    const char *at = t->at;
    if (pass_line_end(t))
        return text_fail(t->text, at, err, "the row ends after %zu of %zu columns", cells,
                         t->column_count);
    if (*at == ',')
        return text_fail(t->text, at, err, "the row has more than %zu columns", t->column_count);
    return unexpected(t, at, err);
}

int table_next(struct table *t, struct error *err)
{
    if (t->at == t->end)
        return 0;
    t->row = t->at;
    for (size_t i = 0; i < t->column_count; i++) {
        if (read_cell(t, t->roles[i], err) < 0)
            return -1;
        bool last = i + 1 == t->column_count;
        if (last && pass_line_end(t))
            break;
        if (last || t->at == t->end || *t->at != ',')
            return separator_fail(t, i + 1, err);
        t->at++;
    }
    return 1;
}
