/* mpactl: the user's tool. Finds the subcommand and leaves the rest to it. */
#include "mpactl.h"

#include <stdio.h>
#include <string.h>

#ifndef FAASRL_VERSION
#define FAASRL_VERSION "unknown"
#endif

static const struct command {
    const char *name, *usage, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"simulate", "--trace WORKLOAD [--recommender NAME] [OPTION…]",
     "show what a recommender does on simulated load", cmd_simulate},
    {"compare", "--trace WORKLOAD… --recommender NAME… [OPTION…]",
     "compare recommenders on the same simulated load", cmd_compare},
    {"tune", "--trace WORKLOAD… [--recommender NAME…] [OPTION…]",
     "search the parameters of recommenders on simulated load", cmd_tune},
    {"train", "[--algorithm NAME] [OPTION…]", "learn to scale in simulated clusters", cmd_train},
    {"checkpoint", "show FILE | export FILE --onnx OUT [OPTION…]",
     "tell what a file of learned weights holds, or hand its networks to other programs",
     cmd_checkpoint},
    {"explain", "JOURNAL [--mpa NAME] [OPTION…]", "tell what a controller decided, and why",
     cmd_explain},
    {"replay", "JOURNAL [--recommender NAME] [OPTION…]",
     "repeat a controller's decisions, or ask another recommender about them", cmd_replay},
    {"experiment", "NAME…|all [OPTION…]", "do the documents' experiments again", cmd_experiment},
    {"policy", "--out FILE [OPTION…]", "learn the policy of the recommender ppo", cmd_policy},
    {"validate", "-f FILE|- [-f FILE…]", "check manifests as the API server would, without one",
     cmd_validate},
    {"convert", "-f FILE|- [-f FILE…] [OPTION…]",
     "write MPAs that stand for HPAs, VPAs and KEDA's ScaledObjects", cmd_convert},
};

void mpactl_error(const char *fmt, ...)
{
    va_list args;

    fputs("mpactl: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

static void print_help(FILE *out)
{
    fputs("mpactl works with MultidimPodAutoscalers.\n\nUsage:\n", out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(out, "  mpactl %s %s\n      %s\n", commands[i].name, commands[i].usage,
                commands[i].summary);
    fputs("  mpactl help\n  mpactl --version\n\n"
          "Exit status: 0 fine, 1 failure, 2 wrong usage.\n",
          out);
}

static bool is_any(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

/* Output that could not be written must not look like success. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    mpactl_error("output: it could not be written: check the disk or the pipe it goes to");
    return EXIT_FAILED;
}

static bool is_called(const char *program, const char *name)
{
    const char *slash = strrchr(program, '/');
    return strcmp(slash ? slash + 1 : program, name) == 0;
}

int main(int argc, char **argv)
{
    if (argc > 0 && is_called(argv[0], "kubectl-mpa"))
        return finish(kubectl_mpa(argc, argv));
    if (argc > 0 && is_called(argv[0], "kubectl_complete-mpa"))
        return finish(kubectl_complete(argc, argv));
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (is_any(argv[1], "help", "--help", "-h")) {
        print_help(stdout);
        return finish(EXIT_FINE);
    }
    if (is_any(argv[1], "version", "--version", "-V")) {
        puts("mpactl " FAASRL_VERSION);
        return finish(EXIT_FINE);
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return finish(commands[i].run(argc - 1, argv + 1));
    }
    mpactl_error("%s: there is no such command: see mpactl help", argv[1]);
    return EXIT_USAGE;
}
