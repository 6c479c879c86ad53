#include "options.h"

#include <stdio.h>
#include <string.h>

struct normal { /* the command line as args_parse wants it */
    const struct options_table *table;
    char **args;
    size_t count;
    struct args_list *names;
};

static const struct args_option *find(const struct options_table *table, const char *name,
                                      size_t len)
{
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->options[i].name) == len &&
            strncmp(table->options[i].name, name, len) == 0)
            return &table->options[i];
    return NULL;
}

static const struct args_option *find_short(const struct options_table *table, char letter)
{
    for (const struct options_short *s = table->shorts; s && s->letter; s++)
        if (s->letter == letter)
            return find(table, s->name, strlen(s->name));
    return NULL;
}

const struct args_option *options_find(const struct options_table *table, const char *argument)
{
    if (strncmp(argument, "--", 2) == 0)
        return find(table, argument + 2, strcspn(argument + 2, "="));
    return argument[0] == '-' ? find_short(table, argument[1]) : NULL;
}

static void add(struct normal *n, char *arg)
{
    n->args[n->count++] = arg;
}

static int add_name(struct normal *n, const char *name, struct error *err)
{
    if (n->names->count == ARGS_LIST_MAX)
        return error_set(err, ERROR_INVALID, "%s: at most %d names can be given", name,
                         ARGS_LIST_MAX);
    n->names->items[n->names->count++] = name;
    return 0;
}

/* "-n x", "-nx", "-n=x", and flags in one word. Returns how many arguments it took. */
static int add_short(struct normal *n, const char *arg, const char *next, struct error *err)
{
    for (const char *p = arg + 1; *p; p++) {
        const struct args_option *o = find_short(n->table, *p);
        if (o == NULL)
            return error_set(err, ERROR_INVALID, "-%c: no such option", *p);
        if (o->kind == ARGS_FLAG) {
            add(n, xasprintf("--%s", o->name));
            continue;
        }
        const char *value = p[1] == '=' ? p + 2 : p[1] ? p + 1 : next;
        if (value == NULL)
            return error_set(err, ERROR_INVALID, "-%c needs a value", *p);
        add(n, xasprintf("--%s=%s", o->name, value));
        return p[1] ? 1 : 2;
    }
    return 1;
}

static int add_long(struct normal *n, const char *arg, const char *next, struct error *err)
{
    const struct args_option *o = options_find(n->table, arg);
    const char *equals = strchr(arg, '=');
    if (o == NULL)
        return error_set(err, ERROR_INVALID, "%.*s: no such option", (int)strcspn(arg, "="), arg);
    if (o->kind == ARGS_FLAG && equals) {
        if (strcmp(equals, "=true") == 0)
            add(n, xasprintf("--%s", o->name));
        else if (strcmp(equals, "=false") != 0)
            return error_set(err, ERROR_INVALID, "--%s: \"%s\" is neither true nor false", o->name,
                             equals + 1);
        return 1;
    }
    if (o->kind == ARGS_FLAG || equals) {
        add(n, xstrdup(arg));
        return 1;
    }
    if (next == NULL)
        return error_set(err, ERROR_INVALID, "--%s needs a value", o->name);
    add(n, xasprintf("%s=%s", arg, next));
    return 2;
}

static int normalize(struct normal *n, int argc, char **argv, struct error *err)
{
    bool only_names = false;
    for (int i = 1, taken; i < argc; i += taken) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        taken = 1;
        if (!only_names && strcmp(argv[i], "--") == 0)
            only_names = true;
        else if (only_names || argv[i][0] != '-' || argv[i][1] == '\0')
            taken = add_name(n, argv[i], err) < 0 ? -1 : 1;
        else
            taken = argv[i][1] == '-' ? add_long(n, argv[i], next, err)
                                      : add_short(n, argv[i], next, err);
        if (taken < 0)
            return -1;
    }
    return 0;
}

int options_parse(const struct options_table *table, int argc, char **argv, void *out,
                  struct args_list *names, char ***kept, struct error *err)
{
    size_t room = 2;
    for (int i = 0; i < argc; i++)
        room += strlen(argv[i]) + 1; /* each letter may be a flag */
    struct normal n = {.table = table, .names = names, .args = xcalloc(room, sizeof(char *))};
    *kept = n.args;
    add(&n, xstrdup(argc > 0 ? argv[0] : ""));
    if (normalize(&n, argc, argv, err) < 0)
        return -1;
    return args_parse(table->options, table->count, (int)n.count, n.args, out, err);
}

void options_free(char **kept)
{
    for (size_t i = 0; kept && kept[i]; i++)
        free(kept[i]);
    free(kept);
}

static char letter_of(const struct options_table *table, const char *name)
{
    for (const struct options_short *s = table->shorts; s && s->letter; s++)
        if (strcmp(s->name, name) == 0)
            return s->letter;
    return '\0';
}

void options_print_help(const struct options_table *table)
{
    size_t width = 0;
    for (size_t i = 0; i < table->count; i++)
        width = strlen(table->options[i].name) > width ? strlen(table->options[i].name) : width;
    for (size_t i = 0; i < table->count; i++) {
        const struct args_option *o = &table->options[i];
        char letter = letter_of(table, o->name), before[8] = "    ";
        if (letter)
            snprintf(before, sizeof(before), "-%c, ", letter);
        printf("  %s--%-*s %s%s%s%s\n", before, (int)width + 2, o->name, o->help,
               o->otherwise ? " (default " : "", o->otherwise ? o->otherwise : "",
               o->otherwise ? ")" : "");
    }
}
