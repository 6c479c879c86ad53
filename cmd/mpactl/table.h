/* Text in aligned columns. */
#ifndef FAASRL_MPACTL_TABLE_H
#define FAASRL_MPACTL_TABLE_H

#include "base/base.h"

struct table {
    size_t column_count;
    const char *align; /* 'l' or 'r' for each column */
    char **cells;      /* row by row */
    size_t cell_count, cap;
    size_t room; /* columns of a line, which is cut there; 0: any number */
};

/* The columns' titles, NULL-terminated, make the first row. */
void table_begin(struct table *t, const char *align, const char *const *titles);
/* The next cell of the row; rows end by themselves. */
void table_cell(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* How many bytes of text fit into so many columns. */
int table_fit(const char *text, size_t columns);
/* Prints every line after `indent` to stdout, and forgets all. */
void table_end(struct table *t, const char *indent);

/* Numbers as people read them; "–" where there is none. Each returns text. */
#define TABLE_TEXT 32
const char *table_count(double n, char text[TABLE_TEXT]); /* 1,234,567 */
const char *table_percent(double share, int decimals, char text[TABLE_TEXT]);
const char *table_duration(double ms, char text[TABLE_TEXT]); /* 412ms, 1.52s */
const char *table_number(double n, int decimals, char text[TABLE_TEXT]);
const char *table_clock(double s, char text[TABLE_TEXT]); /* 02:15:30 */

#endif
