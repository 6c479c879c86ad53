#include "base/args.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int set_number(const struct args_option *o, const char *text, double *slot,
                      struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !isfinite(value) || value < o->least || value > o->most)
        return error_set(err, ERROR_INVALID, "--%s: \"%s\" is no number from %.16g to %.16g",
                         o->name, text, o->least, o->most);
    *slot = value;
    return 0;
}

static int set_duration(const struct args_option *o, const char *text, double *slot,
                        struct error *err)
{
    int64_t us;
    if (duration_parse(text, &us, err) < 0)
        return error_prefix(err, "--%s", o->name);
    double s = (double)us / 1e6;
    if (s < o->least || s > o->most)
        return error_set(err, ERROR_INVALID, "--%s: %s is not from %gs to %gs", o->name, text,
                         o->least, o->most);
    *slot = s;
    return 0;
}

static int set_choice(const struct args_option *o, const char *text, void *slot, struct error *err)
{
    if (o->words == NULL) { /* true or false */
        *(bool *)slot = strcmp(text, "true") == 0;
        if (*(bool *)slot || strcmp(text, "false") == 0)
            return 0;
        return error_set(err, ERROR_INVALID, "--%s: \"%s\" is neither true nor false", o->name,
                         text);
    }
    for (size_t i = 0; o->words[i]; i++) {
        if (strcmp(o->words[i], text) == 0) {
            *(const char **)slot = text;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID, "--%s: \"%s\" is not %s", o->name, text, o->help);
}

static int add(const struct args_option *o, const char *text, struct args_list *list,
               struct error *err)
{
    if (list->count == ARGS_LIST_MAX)
        return error_set(err, ERROR_INVALID, "--%s: at most %d can be given", o->name,
                         ARGS_LIST_MAX);
    list->items[list->count++] = text;
    return 0;
}

static int set(const struct args_option *o, const char *text, void *out, struct error *err)
{
    void *slot = (char *)out + o->offset;
    switch (o->kind) {
    case ARGS_TEXT:
        *(const char **)slot = text;
        return 0;
    case ARGS_CHOICE:
        return set_choice(o, text, slot, err);
    case ARGS_FLAG:
        *(bool *)slot = true;
        return 0;
    case ARGS_NUMBER:
        return set_number(o, text, slot, err);
    case ARGS_DURATION:
        return set_duration(o, text, slot, err);
    case ARGS_LIST:
        return add(o, text, slot, err);
    }
    return -1;
}

static const struct args_option *find(const struct args_option *table, size_t count,
                                      const char *name, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == len && strncmp(table[i].name, name, len) == 0)
            return &table[i];
    return NULL;
}

/* Returns how many arguments the option took. */
static int parse_one(const struct args_option *table, size_t count, int argc, char **argv,
                     void *out, struct error *err)
{
    const char *arg = argv[0];
    if (strncmp(arg, "--", 2) != 0)
        return error_set(err, ERROR_INVALID, "\"%s\": options begin with --; see --help", arg);
    const char *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg - 2) : strlen(arg + 2);
    const struct args_option *o = find(table, count, arg + 2, len);
    if (o == NULL)
        return error_set(err, ERROR_INVALID, "%.*s: no such option; see --help", (int)len + 2, arg);
    if (o->kind == ARGS_FLAG && equals)
        return error_set(err, ERROR_INVALID, "--%s takes no value", o->name);
    if (o->kind == ARGS_FLAG || equals)
        return set(o, equals ? equals + 1 : "", out, err) < 0 ? -1 : 1;
    if (argc < 2)
        return error_set(err, ERROR_INVALID, "--%s needs a value", o->name);
    return set(o, argv[1], out, err) < 0 ? -1 : 2;
}

int args_parse(const struct args_option *table, size_t count, int argc, char **argv, void *out,
               struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].otherwise && set(&table[i], table[i].otherwise, out, err) < 0)
            return -1;
    for (int i = 1, taken; i < argc; i += taken) {
        taken = parse_one(table, count, argc - i, argv + i, out, err);
        if (taken < 0)
            return -1;
    }
    return 0;
}

void args_print_help(const struct args_option *table, size_t count)
{
    int width = 0;
    for (size_t i = 0; i < count; i++)
        width = (int)strlen(table[i].name) > width ? (int)strlen(table[i].name) : width;
    for (size_t i = 0; i < count; i++) {
        const struct args_option *o = &table[i];
        printf("  --%-*s %s%s%s%s\n", width + 2, o->name, o->help, o->otherwise ? " (default " : "",
               o->otherwise ? o->otherwise : "", o->otherwise ? ")" : "");
    }
}
