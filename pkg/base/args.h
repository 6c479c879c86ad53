/* Command lines: every option, with its default and its bounds, stands in one table. */
#ifndef FAASRL_BASE_ARGS_H
#define FAASRL_BASE_ARGS_H

#include "base/base.h"

enum args_kind {
    ARGS_TEXT,     /* const char *, NULL when not given */
    ARGS_CHOICE,   /* const char *, one of words; without words a bool, true or false */
    ARGS_FLAG,     /* bool; takes no value */
    ARGS_NUMBER,   /* double */
    ARGS_DURATION, /* double, in seconds */
    ARGS_LIST,     /* struct args_list; may be given several times */
};

#define ARGS_LIST_MAX 64
struct args_list {
    const char *items[ARGS_LIST_MAX + 1]; /* NULL-terminated */
    size_t count;
};

struct args_option {
    const char *name;
    enum args_kind kind;
    size_t offset;            /* of its field */
    const char *otherwise;    /* the default, as it would be typed; NULL: none */
    double least, most;       /* ARGS_NUMBER and ARGS_DURATION */
    const char *const *words; /* ARGS_CHOICE; NULL-terminated */
    const char *help;
};

/* Reads argv[1] and on over the defaults into out: "--name=value", "--name value" or, for a flag,
 * "--name". What has no default and is not given stays as it is. The strings point into argv. */
int args_parse(const struct args_option *table, size_t count, int argc, char **argv, void *out,
               struct error *err);
/* One line per option to stdout. */
void args_print_help(const struct args_option *table, size_t count);

#endif
