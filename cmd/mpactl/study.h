/* Recommenders tried on workloads: what mpactl simulate and mpactl compare have in common. */
#ifndef FAASRL_MPACTL_STUDY_H
#define FAASRL_MPACTL_STUDY_H

#include <stdio.h>

#include "base/args.h"
#include "series.h"
#include "trial/trial.h"

/* --- what is asked for (study_args.c) -------------------------------------------------------- */
struct study_options {
    struct args_list traces, recommenders;
    const char *mpa;                     /* file */
    struct args_list policies;           /* files; none: the one beside the program */
    double goal_s;                       /* 0: the MPA's, else what the trace says */
    double interval_s;                   /* of recommenders that have none of their own */
    double span_s;                       /* 0: the trace's */
    double seed, jobs;                   /* jobs 0: the cores */
    double nodes, cores;                 /* nodes 0: each function alone, never short of CPU */
    double start_s, resize_s;            /* NaN: the usual ones */
    double cold_cpu_s, crashes_per_hour; /* of a replica: 0 for none */
    double concurrency;                  /* requests in a replica at once; 0: no bound */
    const char *initial;                 /* "2x500m" */
    bool no_oracle, functions, help;
    const char *json, *html;
    const char *csv, *function; /* these are simulate's */
    double every_s;
    bool changes;
};

enum study_command { STUDY_SIMULATE, STUDY_COMPARE };
/* Returns 0, or the exit status after telling what is wrong. */
int study_parse(enum study_command command, int argc, char **argv, struct study_options *out);
void study_print_help(enum study_command command);

/* --- the study (study.c) --------------------------------------------------------------------- */
struct study_trace {
    struct trace trace;
    char *label;   /* fit for a terminal, and no two are the same */
    char **labels; /* of its functions, likewise */
    struct trial_function *functions;
    size_t *by_load; /* functions, most requests first */
    double span_s;
};

struct study_run { /* of one function by one recommender */
    struct trial_result result;
    bool record;
    struct series series; /* if it is to be recorded */
};

struct study {
    struct study_options options;
    struct api_mpa mpa;    /* of --mpa */
    struct api_spec usual; /* without one */
    const struct api_spec *spec;
    bool behavior_stated;
    struct study_trace *traces;
    size_t trace_count;
    struct trial_choice *choices; /* those that were asked for, then the oracle if it was not */
    size_t choice_count, shown_count;
    size_t oracle; /* which choice is; choice_count: none */
    const struct recommend_policy **policies;
    size_t policy_count;
    struct cluster_node *nodes;
    size_t node_count;
    struct study_run **runs; /* of each trace: function by function, all choices of each */
};

/* The whole of a command. prepare may mark what is to be recorded, and refuse with an exit status;
 * print shows the results. */
int study_command(enum study_command command, int argc, char **argv,
                  int (*prepare)(struct study *study), void (*print)(const struct study *study));

/* Reads everything that is named. Returns 0, or the exit status after telling what is wrong. */
int study_open(struct study *study, const struct study_options *options);
void study_close(struct study *study);

struct study_run *study_run(const struct study *study, size_t trace, size_t function,
                            size_t choice);
/* How often a choice decides. */
double study_interval_s(const struct study *study, size_t choice);
/* A trial of some of a trace's functions, all but who decides in it. */
void study_configure(const struct study *study, size_t trace, size_t first, size_t count,
                     uint64_t seed, struct trial_config *out);
/* Runs everything on --jobs cores, with the same results whatever their number. */
int study_execute(struct study *study, struct error *err);

/* --- results (study_rows.c) ------------------------------------------------------------------ */
#define STUDY_ALL SIZE_MAX
struct study_row {
    const char *trace, *function, *recommender; /* "*" where it sums */
    uint64_t requests;
    double violation_ratio; /* NaN: no request */
    double p99_ms, goal_ms; /* of the function worst off: with most latency for its goal */
    double cpu_core_seconds, cpu_utilization;
    double replicas_mean; /* of a function */
    uint64_t actions;
    double cost_vs_oracle; /* NaN: not known */
    size_t active, met;    /* functions with requests, and those whose goal was met */
    /* NaN where memory is not modelled: for oracles it never is. */
    double memory_gib_seconds, memory_utilization, memory_kills;
};
/* trace and function may be STUDY_ALL. */
void study_row(const struct study *study, size_t trace, size_t function, size_t choice,
               struct study_row *out);
/* The share of requests that may miss the goal: 0.01 for p99. */
double study_allowed(const struct study *study);
/* Whether there is something to tell of memory. */
bool study_models_memory(const struct study *study);

/* --- what is shown --------------------------------------------------------------------------- */
/* The tables (study_print.c). */
void study_print(const struct study *study);
/* One sentence on what was simulated, to be freed. */
char *study_about(const struct study *study);

#endif
