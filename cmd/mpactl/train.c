/* mpactl train: policies learn to scale in simulated clusters. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/parallel.h"
#include "mpactl.h"
#include "progress.h"
#include "training.h"

#define AT(field) offsetof(struct training_options, field)
static const struct args_option table[] = {
    {"algorithm", ARGS_TEXT, AT(algorithm), "simppo", 0, 0, NULL, "one of those below"},
    {"formulation", ARGS_TEXT, AT(formulation), NULL, 0, 0, NULL,
     "what is seen, done and earned: default, mp3, mappo, simppo or aware; else the algorithm's"},
    {"set", ARGS_LIST, AT(set), NULL, 0, 0, NULL,
     "NAME=VALUE: a setting of the environment, one of those below"},
    {"learn", ARGS_LIST, AT(learn), NULL, 0, 0, NULL,
     "NAME=VALUE: a setting of learning, likewise"},
    {"papers", ARGS_FLAG, AT(papers), NULL, 0, 0, NULL,
     "settings of learning as in MA-PPO's paper"},
    {"episodes", ARGS_NUMBER, AT(episodes), "500", 1, 1e9, NULL, "of all clusters together"},
    {"seeds", ARGS_NUMBER, AT(seeds), "1", 1, 1000, NULL, "how many times to learn"},
    {"seed", ARGS_NUMBER, AT(seed), "1", 0, 0x1p53, NULL, "the first; the others follow it"},
    {"jobs", ARGS_NUMBER, AT(jobs), NULL, 1, 1024, NULL,
     "threads; as many as there are cores when not given"},
    {"out", ARGS_TEXT, AT(out), NULL, 0, 0, NULL,
     "directory for episodes.csv, curve.svg, curve.png and seed-N.checkpoint; made if not there"},
    {"resume", ARGS_TEXT, AT(resume), NULL, 0, 0, NULL,
     "directory of an earlier --out: go on from its checkpoints, to --episodes in all"},
    {"csv", ARGS_TEXT, AT(csv), NULL, 0, 0, NULL, "file for the figures of each episode"},
    {"svg", ARGS_TEXT, AT(svg), NULL, 0, 0, NULL, "file for the training curve"},
    {"png", ARGS_TEXT, AT(png), NULL, 0, 0, NULL, "file for the same picture in pixels"},
    {"tensorboard", ARGS_TEXT, AT(tensorboard), NULL, 0, 0, NULL,
     "directory for what TensorBoard shows, while it learns; made if it is not there"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

/* --- options ---------------------------------------------------------------------------------- */
static int read_options(int argc, char **argv, struct training_options *out)
{
    struct error err;
    if (args_parse(table, ARRAY_LEN(table), argc, argv, out, &err) < 0) {
        mpactl_error("train: %s: see mpactl train --help", err.message);
        return EXIT_USAGE;
    }
    const double counts[] = {out->episodes, out->seeds, out->seed, out->jobs};
    for (size_t i = 0; !out->help && i < ARRAY_LEN(counts); i++) {
        if (counts[i] == floor(counts[i]))
            continue;
        mpactl_error("--episodes, --seeds, --seed, --jobs: they are counts: give whole numbers");
        return EXIT_USAGE;
    }
    return 0;
}

static int print_help(void)
{
    puts("mpactl train [--algorithm NAME] [OPTION…]\n\n"
         "Learns to scale functions in simulated clusters, tells how well, and draws the training\n"
         "curve. Ctrl-C ends it early, with all that was asked for.\n\nOptions:");
    args_print_help(table, ARRAY_LEN(table));
    puts("\nAlgorithms:");
    for (size_t i = 0; train_algorithm(i); i++)
        printf("  %-18s %s\n", train_algorithm(i)->name, train_algorithm(i)->summary);
    puts("\nSettings of the environment, for --set:");
    for (size_t i = 0; sim_option(i); i++)
        printf("  %-18s %s\n", sim_option(i)->name, sim_option(i)->help);
    puts("\nSettings of learning, for --learn:");
    for (size_t i = 0; train_option(i); i++)
        printf("  %-18s %s\n", train_option(i)->name, train_option(i)->help);
    return EXIT_FINE;
}

/* "NAME=VALUE" */
static int set_one(struct training *t, const char *text, bool of_world, struct error *err)
{
    cleanup_free char *name = xstrdup(text);
    char *equals = strchr(name, '=');
    if (equals == NULL)
        return error_set(err, ERROR_INVALID, "there is no value in it: give NAME=VALUE");
    *equals = '\0';
    return of_world ? sim_config_set(&t->config.world, name, equals + 1, err)
                    : train_config_set(&t->config, name, equals + 1, err);
}

static int set_all(struct training *t, bool of_world)
{
    struct error err;
    const struct args_list *list = of_world ? &t->options.set : &t->options.learn;
    for (size_t i = 0; i < list->count; i++) {
        if (set_one(t, list->items[i], of_world, &err) == 0)
            continue;
        mpactl_error("--%s %s: %s: see mpactl train --help", of_world ? "set" : "learn",
                     list->items[i], err.message);
        return EXIT_USAGE;
    }
    return 0;
}

static int configure(struct training *t)
{
    const struct training_options *o = &t->options;
    struct error err;
    if (train_config_init(&t->config, o->algorithm, o->formulation, &err) < 0) {
        mpactl_error("train: %s: see mpactl train --help", err.message);
        return EXIT_USAGE;
    }
    if (o->papers)
        train_config_use_papers(&t->config);
    int status = set_all(t, true);
    if (status == 0)
        status = set_all(t, false);
    t->config.episodes = (size_t)o->episodes;
    t->config.seed = (uint64_t)o->seed;
    return status;
}

/* --- learning --------------------------------------------------------------------------------- */
struct watch {
    struct training *training;
    struct training_files *files;
    struct progress *progress;
    sigset_t signals; /* that end it early; blocked, so that they wait to be asked for */
    uint64_t *steps;  /* of each seed */
    size_t *episodes;
    int64_t begun_ms;
};

static char *checkpoint_path(const char *directory, uint64_t seed)
{
    return xasprintf("%s/seed-%llu.checkpoint", directory, (unsigned long long)seed);
}

static int on_begin(void *arg, struct train *train, uint64_t seed, struct error *err)
{
    const struct watch *w = arg;
    const char *from = w->training->options.resume;
    if (from == NULL)
        return 0;
    cleanup_free char *path = checkpoint_path(from, seed);
    if (train_load(train, path, err) < 0)
        return -1;
    if (train_is_done(train))
        return error_set(err, ERROR_INVALID, "%s has as many episodes: give more --episodes", path);
    return 0;
}

static int save_all(const struct training *t)
{
    struct error err;
    for (size_t i = 0; t->options.out && i < t->count; i++) {
        const struct train_history *h = &t->histories[i];
        cleanup_free char *path = checkpoint_path(t->options.out, h->seed);
        if (train_save(h->train, path, &err) == 0)
            continue;
        mpactl_error("--out %s: %s", t->options.out, err.message);
        return EXIT_FAILED;
    }
    return 0;
}

static bool on_round(void *arg, size_t i, const struct train_report *report)
{
    struct watch *w = arg;
    uint64_t steps = 0;
    training_files_add(w->files, i, report);
    w->steps[i] = report->steps;
    for (size_t k = 0; k < w->training->count; k++)
        steps += w->steps[k];
    double took_s = (double)(clock_mono_ms() - w->begun_ms) / 1000;
    progress_note(w->progress, "reward %.3f, SLO %.1f%%, %.0f decisions/s", report->reward,
                  100 * report->slo_preservation, (double)steps / fmax(took_s, 1e-3));
    progress_add(w->progress, report->episodes - w->episodes[i]);
    w->episodes[i] = report->episodes;
    const struct timespec at_once = {0, 0};
    if (sigtimedwait(&w->signals, NULL, &at_once) > 0)
        w->training->interrupted = true;
    return !w->training->interrupted;
}

/* Cores are for seeds first, then for the clusters and learners of each. */
static int learn(struct training *t, struct training_files *files, struct error *err)
{
    size_t count = (size_t)t->options.seeds, jobs = (size_t)t->options.jobs;
    jobs = jobs > 0 ? jobs : parallel_cores();
    size_t at_once = jobs < count ? jobs : count;
    struct watch w = {.training = t, .files = files, .begun_ms = clock_mono_ms()};
    struct train_seeds seeds = {&t->config, count, at_once, on_begin, on_round, &w};
    sigset_t before;
    sigemptyset(&w.signals);
    sigaddset(&w.signals, SIGINT);
    sigaddset(&w.signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &w.signals, &before);
    t->config.threads = jobs / at_once;
    if (t->config.world.threads == 1)
        t->config.world.threads = (int)t->config.threads;
    t->count = count;
    t->histories = xcalloc(count, sizeof(*t->histories));
    w.steps = xcalloc(count, sizeof(*w.steps));
    w.episodes = xcalloc(count, sizeof(*w.episodes));
    w.progress = progress_begin("learning", count * t->config.episodes);
    int result = train_seeds(&seeds, t->histories, err);
    progress_end(w.progress);
    free(w.steps);
    free(w.episodes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* --- the command ------------------------------------------------------------------------------ */
/* Seeds whose turn never came, as it was ended early, have nothing to tell. */
static void forget_unbegun(struct training *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->histories[i].count > 0)
            t->histories[kept++] = t->histories[i];
        else
            train_history_clear(&t->histories[i]);
    }
    t->count = kept;
}

static int execute(struct training *t, struct training_files *files)
{
    struct error err;
    bool failed = learn(t, files, &err) < 0;
    forget_unbegun(t);
    if (failed)
        mpactl_error("train: %s", err.message);
    if (t->count == 0)
        return EXIT_FAILED;
    training_print(t);
    int status = training_files_write(files, t);
    if (status == 0)
        status = save_all(t);
    return failed ? EXIT_FAILED : status;
}

int cmd_train(int argc, char **argv)
{
    struct training t = {0};
    struct training_files files = {0};
    int status = read_options(argc, argv, &t.options);
    if (status != 0)
        return status;
    if (t.options.help)
        return print_help();
    status = configure(&t);
    if (status == 0)
        status = training_files_open(&files, &t.options);
    if (status == 0)
        status = execute(&t, &files);
    training_files_close(&files);
    for (size_t i = 0; i < t.count; i++)
        train_history_clear(&t.histories[i]);
    free(t.histories);
    train_config_clear(&t.config);
    return status;
}
