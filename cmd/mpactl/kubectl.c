/* kubectl mpa: finds the command and reads its options; each is told of by a table. */
#include "kubectl.h"

#include <stdio.h>
#include <string.h>

#include "mpactl.h"

/* Groups of options. */
enum {
    OF_CLUSTER = 1,
    OF_ALL = 2,    /* of several namespaces, by labels */
    OF_OUTPUT = 4, /* for machines */
    OF_TABLE = 8,
    OF_WATCH = 16,
    OF_PAST = 32,
    OF_CHANGE = 64,
    OF_LOAD = 128,
    OF_SINCE = 256,
    OF_EVERY = 512,
};

#define AT(field) offsetof(struct plugin_options, field)
static const char *const outputs[] = {"wide", "json", "yaml", "name", NULL};
static const char *const keys[] = {"name", "cpu",     "replicas", "used",
                                   "rate", "latency", "goal",     NULL};
/* clang-format off: a line each */
static const struct {
    unsigned group;
    char letter;
    struct args_option option;
} table[] = {
    {OF_CLUSTER,
     'n',
     {"namespace", ARGS_TEXT, AT(namespace_), NULL, 0, 0, NULL,
      "where to look; that of the context when not given"}},
    {OF_ALL,
     'A',
     {"all-namespaces", ARGS_FLAG, AT(all_namespaces), NULL, 0, 0, NULL, "look in all namespaces"}},
    {OF_ALL | OF_CHANGE,
     'l',
     {"selector", ARGS_TEXT, AT(selector), NULL, 0, 0, NULL,
      "only MPAs with these labels, such as app=web"}},
    {OF_CHANGE, 0, {"all", ARGS_FLAG, AT(all), NULL, 0, 0, NULL, "all MPAs of the namespace"}},
    {OF_OUTPUT,
     'o',
     {"output", ARGS_CHOICE, AT(output), NULL, 0, 0, outputs, "wide, json, yaml or name"}},
    {OF_TABLE, 0, {"no-headers", ARGS_FLAG, AT(no_headers), NULL, 0, 0, NULL, "no line of titles"}},
    {OF_WATCH,
     0,
     {"sort-by", ARGS_CHOICE, AT(sort_by), "name", 0, 0, keys,
      "name, cpu, replicas, used, rate, latency or goal"}},
    {OF_WATCH,
     'w',
     {"watch", ARGS_FLAG, AT(watch), NULL, 0, 0, NULL, "go on, and show what changes"}},
    {OF_WATCH,
     0,
     {"interval", ARGS_DURATION, AT(interval_s), "2s", 0.25, 3600, NULL,
      "with --watch: show at most so often"}},
    {OF_PAST, 0, {"last", ARGS_NUMBER, AT(last), "20", 1, 1e6, NULL, "so many of the last events"}},
    {OF_SINCE,
     0,
     {"last", ARGS_NUMBER, AT(last), "1000", 1, 1e6, NULL, "so many of the last lines"}},
    {OF_SINCE,
     0,
     {"since", ARGS_DURATION, AT(since_s), NULL, 1, 1e9, NULL, "not older than this, such as 30m"}},
    {OF_LOAD,
     'f',
     {"filename", ARGS_TEXT, AT(file), NULL, 0, 0, NULL,
      "manifest with one MPA; - is standard input"}},
    {OF_LOAD,
     0,
     {"trace", ARGS_LIST, AT(traces), NULL, 0, 0, NULL,
      "a workload, as mpactl compare takes it; else a day and bursts that suit the MPA"}},
    {OF_LOAD,
     0,
     {"recommender", ARGS_LIST, AT(recommenders), NULL, 0, 0, NULL,
      "NAME or NAME:PARAMETER=VALUE,…; the MPA's when not given"}},
    {OF_LOAD,
     0,
     {"policy", ARGS_TEXT, AT(policy), NULL, 0, 0, NULL, "what ppo has learned (mpactl policy)"}},
    {OF_LOAD, 0, {"html", ARGS_TEXT, AT(html), NULL, 0, 0, NULL, "file for a report with plots"}},
    {OF_LOAD, 0, {"json", ARGS_TEXT, AT(json), NULL, 0, 0, NULL, "file for the results"}},
    {OF_CLUSTER,
     0,
     {"kubeconfig", ARGS_TEXT, AT(kubeconfig), NULL, 0, 0, NULL,
      "file; as kubectl when not given"}},
    {OF_CLUSTER, 0, {"context", ARGS_TEXT, AT(context), NULL, 0, 0, NULL, "of the kubeconfig"}},
    {OF_CLUSTER,
     0,
     {"cluster", ARGS_TEXT, AT(cluster), NULL, 0, 0, NULL,
      "of the kubeconfig, in place of the context's"}},
    {OF_CLUSTER,
     0,
     {"user", ARGS_TEXT, AT(user), NULL, 0, 0, NULL,
      "of the kubeconfig, in place of the context's"}},
    {OF_CLUSTER,
     's',
     {"server", ARGS_TEXT, AT(server), NULL, 0, 0, NULL,
      "address of the API server, https://… or http://…"}},
    {OF_CLUSTER,
     0,
     {"token", ARGS_TEXT, AT(token), NULL, 0, 0, NULL,
      "bearer token, in place of the user's credentials"}},
    {OF_CLUSTER,
     0,
     {"request-timeout", ARGS_TEXT, AT(request_timeout), NULL, 0, 0, NULL,
      "for one request, such as 5s; 0: none; 15s when not given"}},
    {OF_EVERY, 'h', {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"}},
};

const struct plugin_command plugin_commands[] = {
    {"list", "get", "[NAME…]", "which MPAs there are, and what they ask for",
     OF_CLUSTER | OF_ALL | OF_OUTPUT | OF_TABLE, plugin_list},
    {"top", NULL, "[NAME…]", "figures of MPAs: CPU, load, latency and its goal; live with --watch",
     OF_CLUSTER | OF_ALL | OF_OUTPUT | OF_TABLE | OF_WATCH, plugin_top},
    {"explain", NULL, "NAME…", "what was decided on an MPA of late, and why",
     OF_CLUSTER | OF_OUTPUT | OF_PAST, plugin_explain},
    {"history", NULL, "NAME", "decisions, conditions and events of an MPA in order of time",
     OF_CLUSTER | OF_OUTPUT | OF_SINCE, plugin_history},
    {"pause", NULL, "NAME…|--all", "hold MPAs: nothing but their status is written",
     OF_CLUSTER | OF_CHANGE, plugin_pause},
    {"resume", NULL, "NAME…|--all", "let MPAs that are held go on", OF_CLUSTER | OF_CHANGE,
     plugin_resume},
    {"simulate", NULL, "-f FILE|NAME", "try an MPA on simulated load, beside an oracle",
     OF_CLUSTER | OF_LOAD, plugin_simulate},
    {"completion", NULL, "bash|zsh|fish",
     "a script for the shell, so that it completes commands, options and names", 0,
     plugin_completion},
    {0},
};
/* clang-format on */

const struct plugin_command *plugin_find(const char *name)
{
    for (const struct plugin_command *c = plugin_commands; c->name; c++)
        if (strcmp(c->name, name) == 0 || (c->alias && strcmp(c->alias, name) == 0))
            return c;
    return NULL;
}

struct options_table plugin_table(const struct plugin_command *command,
                                  struct args_option room[PLUGIN_MAX_OPTIONS])
{
    static struct options_short shorts[ARRAY_LEN(table) + 1]; /* always the same */
    size_t count = 0, letters = 0;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].letter)
            shorts[letters++] = (struct options_short){table[i].letter, table[i].option.name};
        if (table[i].group & (command->options | OF_EVERY))
            room[count++] = table[i].option;
    }
    return (struct options_table){room, count, shorts};
}

int plugin_timeout(struct plugin_options *o, struct error *err)
{
    enum { DAY_MS = 86400000 };
    int64_t us = 0;
    char *end;
    if (o->request_timeout == NULL)
        return 0;
    double s = strtod(o->request_timeout, &end); /* kubectl takes seconds without a unit too */
    if (*o->request_timeout && *end == '\0' && s >= 0 && s <= 86400)
        us = (int64_t)(s * 1e6);
    else if (duration_parse(o->request_timeout, &us, err) < 0)
        return error_prefix(err, "--request-timeout");
    o->timeout_ms = us == 0 ? DAY_MS : us < 1000 ? 1 : us / 1000;
    return 0;
}

/* --- help ------------------------------------------------------------------------------------ */
static int print_help(int status)
{
    FILE *out = status ? stderr : stdout;
    fputs("kubectl mpa tells of MultidimPodAutoscalers in a cluster.\n\nUsage:\n", out);
    for (const struct plugin_command *c = plugin_commands; c->name; c++)
        fprintf(out, "  kubectl mpa %s %s%s\n      %s\n", c->name, c->usage,
                c->options ? " [OPTION…]" : "", c->summary);
    fputs("  kubectl mpa version\n\n"
          "kubectl mpa COMMAND --help lists its options. Exit status: 0 fine, 1 failure, 2 wrong "
          "usage.\n",
          out);
    return status;
}

static int print_command_help(const struct plugin_command *command,
                              const struct options_table *options)
{
    printf("kubectl mpa %s %s [OPTION…]\n\n%c%s.\n\nOptions:\n", command->name, command->usage,
           command->summary[0] - ('a' - 'A'), command->summary + 1);
    options_print_help(options);
    return EXIT_FINE;
}

/* --- running --------------------------------------------------------------------------------- */
/* A name goes into a path. */
static bool is_name(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '\0';
}

static int check(const struct plugin_command *command, struct plugin_options *o, struct error *err)
{
    for (size_t i = 0; i < o->names.count; i++)
        if (!is_name(o->names.items[i]))
            return error_set(err, ERROR_INVALID, "\"%.100s\" is no name of an MPA",
                             o->names.items[i]);
    if (o->namespace_ && !is_name(o->namespace_))
        return error_set(err, ERROR_INVALID, "--namespace: \"%.100s\" is no name of a namespace",
                         o->namespace_);
    if (o->all_namespaces && o->names.count > 0)
        return error_set(err, ERROR_INVALID,
                         "names are of one namespace: leave out "
                         "--all-namespaces, or the names");
    if (strstr(command->usage, "NAME") == command->usage && !strchr(command->usage, '|') &&
        o->names.count == 0)
        return error_set(err, ERROR_INVALID, "no name: give the name of an MPA");
    return plugin_timeout(o, err);
}

static int run(const struct plugin_command *command, int argc, char **argv)
{
    struct args_option room[PLUGIN_MAX_OPTIONS];
    const struct options_table options = plugin_table(command, room);
    struct plugin_options o = {0};
    struct error err = {0};
    char **kept = NULL;
    int status = EXIT_USAGE;
    int parsed = options_parse(&options, argc, argv, &o, &o.names, &kept, &err);
    if (parsed == 0 && o.help)
        status = print_command_help(command, &options);
    else if (parsed < 0 || check(command, &o, &err) < 0)
        mpactl_error("%s: %s: see kubectl mpa %s --help", command->name, err.message,
                     command->name);
    else
        status = command->run(&o);
    options_free(kept);
    return status;
}

int kubectl_mpa(int argc, char **argv)
{
    static const char *const help[] = {"help", "--help", "-h"};
    if (argc < 2)
        return print_help(EXIT_USAGE);
    for (size_t i = 0; i < ARRAY_LEN(help); i++)
        if (strcmp(argv[1], help[i]) == 0)
            return print_help(EXIT_FINE);
    if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0) {
        puts("kubectl-mpa " FAASRL_VERSION);
        return EXIT_FINE;
    }
    if (strcmp(argv[1], "__complete") == 0)
        return kubectl_complete(argc - 1, argv + 1);
    const struct plugin_command *command = plugin_find(argv[1]);
    if (command)
        return run(command, argc - 1, argv + 1);
    mpactl_error("%s: there is no such command: see kubectl mpa help", argv[1]);
    return EXIT_USAGE;
}
