/* Any words as a command line: what is taken is within its bounds. */
#include "base/args.h"

#include <string.h>

#define MOST 80

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct options {
    const char *text, *choice;
    bool yes, flag;
    double number, duration;
    struct args_list list;
};

static const char *const words[] = {"one", "two", NULL};
#define AT(field) offsetof(struct options, field)
static const struct args_option table[] = {
    {"text", ARGS_TEXT, AT(text), NULL, 0, 0, NULL, "a text"},
    {"choice", ARGS_CHOICE, AT(choice), "one", 0, 0, words, "one or two"},
    {"yes", ARGS_CHOICE, AT(yes), "true", 0, 0, NULL, "true or false"},
    {"flag", ARGS_FLAG, AT(flag), NULL, 0, 0, NULL, "a flag"},
    {"number", ARGS_NUMBER, AT(number), "2", 1, 10, NULL, "a number"},
    {"duration", ARGS_DURATION, AT(duration), "1s", 0.5, 60, NULL, "a time"},
    {"list", ARGS_LIST, AT(list), NULL, 0, 0, NULL, "a list"},
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char program[] = "program", *argv[MOST + 1] = {program};
    int argc = 1;
    struct options o = {0};
    struct error err = {0};
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    for (char *at = text; at <= text + size && argc < MOST; at += strlen(at) + 1) {
        at[strcspn(at, "\n")] = '\0'; /* a word in a line */
        argv[argc++] = at;
    }
    if (args_parse(table, ARRAY_LEN(table), argc, argv, &o, &err) < 0) {
        check(err.code != ERROR_NONE && err.message[0]);
        return 0;
    }
    check(o.number >= 1 && o.number <= 10 && o.duration >= 0.5 && o.duration <= 60);
    check(strcmp(o.choice, "one") == 0 || strcmp(o.choice, "two") == 0);
    check(o.list.count <= ARGS_LIST_MAX && o.list.items[o.list.count] == NULL);
    return 0;
}
