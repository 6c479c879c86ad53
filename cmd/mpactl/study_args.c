/* The options of mpactl simulate and mpactl compare. */
#include <math.h>
#include <string.h>

#include "mpactl.h"
#include "study.h"

#define AT(field) offsetof(struct study_options, field)
#define SHARED_OPTIONS                                                                             \
    {"trace", ARGS_LIST, AT(traces), NULL, 0, 0, NULL, "a workload, in one of the forms below"},   \
        {"recommender",                                                                            \
         ARGS_LIST,                                                                                \
         AT(recommenders),                                                                         \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "NAME or NAME:PARAMETER=VALUE,… as below; the MPA's, else threshold, when not given"},    \
        {"mpa",   ARGS_TEXT,                                                                       \
         AT(mpa), NULL,                                                                            \
         0,       0,                                                                               \
         NULL,    "manifest with one MPA, for its goal, bounds, behavior and recommender"},        \
        {"policy",                                                                                 \
         ARGS_LIST,                                                                                \
         AT(policies),                                                                             \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "what ppo has learned (mpactl policy); the file policy beside mpactl when not given"},    \
        {"goal",                                                                                   \
         ARGS_DURATION,                                                                            \
         AT(goal_s),                                                                               \
         NULL,                                                                                     \
         1e-6,                                                                                     \
         86400,                                                                                    \
         NULL,                                                                                     \
         "latency goal of all functions; else the MPA's, else twice the p99 execution time"},      \
        {"seed", ARGS_NUMBER, AT(seed), "1",                                                       \
         0,      0x1p53,      NULL,     "of all chance; the same gives the same result"},          \
        {"interval",                                                                               \
         ARGS_DURATION,                                                                            \
         AT(interval_s),                                                                           \
         "15s",                                                                                    \
         0.1,                                                                                      \
         3600,                                                                                     \
         NULL,                                                                                     \
         "time between decisions, but for recommenders with a time of their own"},                 \
        {"span",     ARGS_DURATION,                                                                \
         AT(span_s), NULL,                                                                         \
         1,          1e9,                                                                          \
         NULL,       "how long to simulate; as long as the trace when not given"},                 \
        {"initial",   ARGS_TEXT,                                                                   \
         AT(initial), NULL,                                                                        \
         0,           0,                                                                           \
         NULL,        "REPLICASxCPU to begin with (2x500m); else enough for the first minute"},    \
        {"start",     ARGS_DURATION,                                                               \
         AT(start_s), NULL,                                                                        \
         0,           3600,                                                                        \
         NULL,        "time a replica takes to start; else as measured, 2s"},                      \
        {"resize",                                                                                 \
         ARGS_DURATION,                                                                            \
         AT(resize_s),                                                                             \
         NULL,                                                                                     \
         0,                                                                                        \
         3600,                                                                                     \
         NULL,                                                                                     \
         "time until a resize is in force; else as measured, 500ms"},                              \
        {"cold-cpu",                                                                               \
         ARGS_DURATION,                                                                            \
         AT(cold_cpu_s),                                                                           \
         "0",                                                                                      \
         0,                                                                                        \
         3600,                                                                                     \
         NULL,                                                                                     \
         "CPU time that the first request of a replica takes besides its own"},                    \
        {"crashes",                                                                                \
         ARGS_NUMBER,                                                                              \
         AT(crashes_per_hour),                                                                     \
         "0",                                                                                      \
         0,                                                                                        \
         10000,                                                                                    \
         NULL,                                                                                     \
         "per hour of a ready replica; its requests are lost, and it starts anew"},                \
        {"concurrency",                                                                            \
         ARGS_NUMBER,                                                                              \
         AT(concurrency),                                                                          \
         NULL,                                                                                     \
         1,                                                                                        \
         1e6,                                                                                      \
         NULL,                                                                                     \
         "requests in a replica at once, others wait; no bound when not given"},                   \
        {"nodes",                                                                                  \
         ARGS_NUMBER,                                                                              \
         AT(nodes),                                                                                \
         NULL,                                                                                     \
         1,                                                                                        \
         10000,                                                                                    \
         NULL,                                                                                     \
         "the functions of a trace share so many nodes; else each is alone, never short of CPU"},  \
        {"cores", ARGS_NUMBER, AT(cores), NULL, 0.1, 1024, NULL, "of each node"},                  \
        {"jobs",   ARGS_NUMBER,                                                                    \
         AT(jobs), NULL,                                                                           \
         1,        1024,                                                                           \
         NULL,     "simulations at the same time; as many as there are cores when not given"},     \
        {"no-oracle", ARGS_FLAG, AT(no_oracle), NULL,                                              \
         0,           0,         NULL,          "do not run the oracle for its cost; faster"},     \
        {"functions", ARGS_FLAG, AT(functions), NULL, 0, 0, NULL, "a line for each function too"}, \
        {"json", ARGS_TEXT, AT(json), NULL, 0, 0, NULL, "file for the results"},                   \
        {"html", ARGS_TEXT, AT(html), NULL, 0, 0, NULL, "file for a report with plots"},           \
    {                                                                                              \
        "help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"                        \
    }

static const struct args_option compare_table[] = {SHARED_OPTIONS};
static const struct args_option simulate_table[] = {
    {"function", ARGS_TEXT, AT(function), NULL, 0, 0, NULL,
     "whose lines over time to print; the one with most requests when not given"},
    {"every", ARGS_DURATION, AT(every_s), NULL, 0.1, 1e9, NULL,
     "a line for so much time; about 30 lines in all when not given"},
    {"changes", ARGS_FLAG, AT(changes), NULL, 0, 0, NULL,
     "a line for each decision that changed something"},
    {"csv", ARGS_TEXT, AT(csv), NULL, 0, 0, NULL, "file for all functions' figures over time"},
    SHARED_OPTIONS,
};

static const struct {
    const char *name, *about;
    const struct args_option *table;
    size_t count;
} commands[] = {
    [STUDY_SIMULATE] = {"simulate",
                        "mpactl simulate --trace WORKLOAD [--recommender NAME] [OPTION…]\n\n"
                        "Runs one recommender on a simulated cluster and shows what it does over "
                        "time.\n",
                        simulate_table, ARRAY_LEN(simulate_table)},
    [STUDY_COMPARE] = {"compare",
                       "mpactl compare --trace WORKLOAD… --recommender NAME… [OPTION…]\n\n"
                       "Runs recommenders on the same simulated load and compares latency and "
                       "CPU.\n",
                       compare_table, ARRAY_LEN(compare_table)},
};

void study_print_help(enum study_command command)
{
    printf("%s\nOptions:\n", commands[command].about);
    args_print_help(commands[command].table, commands[command].count);
    puts("\nWorkloads:");
    for (const char *at = trace_forms; *at; at += strcspn(at, "\n"), at += *at == '\n')
        printf("  %.*s\n", (int)strcspn(at, "\n"), at);
    puts("\nRecommenders, with their parameters:");
    for (size_t i = 0; trial_names[i]; i++) {
        const struct recommender *r = trial_find(trial_names[i]);
        printf("  %-24s %s\n", r->name, r->summary);
        for (size_t p = 0; p < r->param_count; p++) {
            cleanup_free char *name = xasprintf("%s=%g", r->params[p].name, r->params[p].value);
            printf("    %-22s %s (%g to %g)\n", name, r->params[p].help, r->params[p].low,
                   r->params[p].high);
        }
    }
}

/* What options mean together. NULL: all is well. */
static const char *find_contradiction(enum study_command command, const struct study_options *o)
{
    if (o->traces.count == 0)
        return "--trace: none is given: name a workload, as poisson:rate=20";
    if (command == STUDY_SIMULATE && o->traces.count > 1)
        return "--trace: simulate takes one: use mpactl compare for several";
    if (command == STUDY_SIMULATE && o->recommenders.count > 1)
        return "--recommender: simulate takes one: use mpactl compare for several";
    if (o->nodes > 0 && !(o->cores > 0))
        return "--nodes: their size is not given: add --cores";
    if (o->cores > 0 && !(o->nodes > 0))
        return "--cores: there are no nodes to have them: add --nodes";
    if (o->changes && o->every_s > 0)
        return "--changes: it leaves no room for --every: give one of the two";
    if (o->nodes != floor(o->nodes) || o->seed != floor(o->seed) || o->jobs != floor(o->jobs) ||
        o->concurrency != floor(o->concurrency))
        return "--nodes, --seed, --jobs, --concurrency: they are counts: give whole numbers";
    return NULL;
}

int study_parse(enum study_command command, int argc, char **argv, struct study_options *out)
{
    struct error err;
    *out = (struct study_options){.start_s = NAN, .resize_s = NAN};
    if (args_parse(commands[command].table, commands[command].count, argc, argv, out, &err) < 0) {
        mpactl_error("%s: %s: see mpactl %s --help", commands[command].name, err.message,
                     commands[command].name);
        return EXIT_USAGE;
    }
    const char *wrong = out->help ? NULL : find_contradiction(command, out);
    if (wrong)
        mpactl_error("%s", wrong);
    return wrong ? EXIT_USAGE : 0;
}
