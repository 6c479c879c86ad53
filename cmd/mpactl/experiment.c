/* mpactl experiment: the documents' experiments, their figures beside ours. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parallel.h"
#include "experiments.h"
#include "mpactl.h"
#include "progress.h"
#include "rl/checkpoint.h"

#define AT(field) offsetof(struct experiments_options, field)
static const struct args_option table[] = {
    {"seeds", ARGS_NUMBER, AT(seeds), "5", 1, 1000, NULL, "how many times to do each"},
    {"seed", ARGS_NUMBER, AT(seed), "1", 0, 0x1p53, NULL, "the first; the others follow it"},
    {"jobs", ARGS_NUMBER, AT(jobs), NULL, 1, 1024, NULL,
     "threads; as many as there are cores when not given"},
    {"effort", ARGS_NUMBER, AT(effort), "1", 0.001, 100, NULL,
     "share of the episodes that an experiment asks for; less shows only that it works"},
    {"out", ARGS_TEXT, AT(out), NULL, 0, 0, NULL,
     "directory for NAME.md, NAME.svg, NAME.json and an overview; made if it is not there"},
    {"json", ARGS_TEXT, AT(json), NULL, 0, 0, NULL, "file for all figures of all seeds"},
    {"policy", ARGS_TEXT, AT(policy), NULL, 0, 0, NULL,
     "what ppo decides by in ppo-…; the file policy beside mpactl when not given, and the core "
     "alone where there is none"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

/* --- options ---------------------------------------------------------------------------------- */
static int print_help(void)
{
    puts(
        "mpactl experiment NAME…|all [OPTION…]\n\n"
        "Asks the questions of the documents again, in simulated clusters, and puts their figures\n"
        "beside ours. Ctrl-C ends it; experiments that are done by then are kept.\n\n"
        "Experiments:");
    for (size_t i = 0; experiment(i); i++)
        printf("  %-16s %s\n", experiment(i)->name, experiment(i)->title);
    puts("\nOptions:");
    args_print_help(table, ARRAY_LEN(table));
    return EXIT_FINE;
}

static int refuse_name(const char *name)
{
    cleanup_free char *names = xstrdup("");
    for (size_t i = 0; experiment(i); i++) {
        char *longer = xasprintf("%s%s, ", names, experiment(i)->name);
        free(names);
        names = longer;
    }
    mpactl_error("experiment: there is no \"%s\": choose %sor all", name, names);
    return EXIT_USAGE;
}

/* Those that are asked for, in the order of the documents; each once. */
static int choose(char **names, int count, bool *chosen)
{
    for (int n = 0; n < count; n++) {
        bool all = strcmp(names[n], "all") == 0, known = all;
        for (size_t i = 0; experiment(i); i++) {
            bool same = strcmp(names[n], experiment(i)->name) == 0;
            chosen[i] = chosen[i] || all || same;
            known = known || same;
        }
        if (!known)
            return refuse_name(names[n]);
    }
    return 0;
}

static int read_options(int argc, char **argv, struct experiments_options *out)
{
    struct error err;
    if (args_parse(table, ARRAY_LEN(table), argc, argv, out, &err) < 0) {
        mpactl_error("experiment: %s: see mpactl experiment --help", err.message);
        return EXIT_USAGE;
    }
    const double counts[] = {out->seeds, out->seed, out->jobs};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        if (counts[i] == floor(counts[i]))
            continue;
        mpactl_error("--seeds, --seed, --jobs: they are counts: give whole numbers");
        return EXIT_USAGE;
    }
    return 0;
}

/* --- doing it --------------------------------------------------------------------------------- */
#define PARTS 100 /* of an experiment, in the bar */

struct work {
    const struct experiments_options *options;
    const bool *chosen;
    json_t *done;
    struct rl_checkpoint policy; /* no network in it: there is none */
    struct progress *progress;
    size_t parts;     /* of this experiment that were told */
    sigset_t signals; /* that end it early; blocked, so that they wait to be asked for */
};

static bool on_progress(void *arg, double share)
{
    struct work *w = arg;
    const struct timespec at_once = {0, 0};
    size_t parts = (size_t)(share * PARTS);
    if (parts > w->parts) {
        progress_add(w->progress, parts - w->parts);
        w->parts = parts;
    }
    return sigtimedwait(&w->signals, NULL, &at_once) <= 0;
}

static int run_one(struct work *w, const struct experiment *e)
{
    const struct experiments_options *o = w->options;
    const struct experiment_config config = {
        .seeds = (size_t)o->seeds,
        .seed = (uint64_t)o->seed,
        .threads = o->jobs > 0 ? (size_t)o->jobs : parallel_cores(),
        .effort = o->effort,
        .policy = w->policy.net_count > 0 ? &w->policy : NULL,
        .on_progress = on_progress,
        .arg = w,
    };
    struct error err;
    w->progress = progress_begin(e->name, PARTS);
    w->parts = 0;
    struct experiment_result *result = experiment_run(e, &config, &err);
    progress_end(w->progress);
    if (result == NULL) {
        mpactl_error("experiment %s: %s", e->name, err.message);
        return EXIT_FAILED;
    }
    experiments_print(result);
    json_array_append_new(w->done, experiments_json(result, o, true));
    int status = experiments_write(result, o);
    experiment_result_free(result);
    return status;
}

/* For experiments that it matters to. */
static int read_policy(struct work *w)
{
    cleanup_free char *usual = file_beside_program("policy");
    const char *path = w->options->policy ? w->options->policy : usual;
    struct error err;
    bool needed = false;
    for (size_t i = 0; experiment(i); i++)
        needed = needed || (w->chosen[i] && experiment(i)->by_policy);
    if (!needed || (!w->options->policy && access(path, F_OK) != 0))
        return 0;
    if (rl_checkpoint_read(&w->policy, path, &err) == 0)
        return 0;
    mpactl_error("--policy %s: %s: make one by mpactl policy", path, err.message);
    return EXIT_FAILED;
}

static int run_all(struct work *w)
{
    int status = experiments_check(w->options);
    if (status == 0)
        status = read_policy(w);
    for (size_t i = 0; experiment(i) && status == 0; i++)
        if (w->chosen[i])
            status = run_one(w, experiment(i));
    if (json_array_size(w->done) == 0)
        return status;
    int index = experiments_write_index(w->options);
    int json = experiments_write_json(w->done, w->options);
    return status ? status : index ? index : json;
}

static int execute(const struct experiments_options *options, const bool *chosen)
{
    sigset_t before;
    struct work w = {.options = options, .chosen = chosen, .done = json_array()};
    sigemptyset(&w.signals);
    sigaddset(&w.signals, SIGINT);
    sigaddset(&w.signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &w.signals, &before);
    int status = run_all(&w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    json_decref(w.done);
    rl_checkpoint_clear(&w.policy);
    return status;
}

static size_t experiment_total(void)
{
    size_t count = 0;
    while (experiment(count))
        count++;
    return count;
}

int cmd_experiment(int argc, char **argv)
{
    struct experiments_options options = {0};
    int names = 0; /* before the options */
    while (names + 1 < argc && argv[names + 1][0] != '-')
        names++;
    int status = read_options(argc - names, argv + names, &options);
    if (status != 0)
        return status;
    if (options.help || argc == 1)
        return print_help();
    if (names == 0) {
        mpactl_error("experiment: none is named: name one or all, before the options");
        return EXIT_USAGE;
    }
    cleanup_free bool *chosen = xcalloc(experiment_total() + 1, sizeof(*chosen));
    status = choose(argv + 1, names, chosen);
    return status != 0 ? status : execute(&options, chosen);
}
