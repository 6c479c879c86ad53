/* Command lines as kubectl's users write them, for tables of base/args.h. */
#ifndef FAASRL_MPACTL_OPTIONS_H
#define FAASRL_MPACTL_OPTIONS_H

#include "base/args.h"

struct options_short {
    char letter;
    const char *name; /* of the option in the table */
};

struct options_table {
    const struct args_option *options;
    size_t count;
    const struct options_short *shorts; /* ends with letter 0 */
};

/* Reads argv[1] and on as args_parse, and also "-n x", "-nx", "-n=x", "-Aw", "--flag=true" and
 * names that stand between options; after "--" all are names. The strings live as long as argv's,
 * but those of *kept, to be freed with options_free when they are no more needed. */
int options_parse(const struct options_table *table, int argc, char **argv, void *out,
                  struct args_list *names, char ***kept, struct error *err);
void options_free(char **kept);
/* One line per option to stdout, with its short form. */
void options_print_help(const struct options_table *table);
/* NULL: there is none. */
const struct args_option *options_find(const struct options_table *table, const char *argument);

#endif
