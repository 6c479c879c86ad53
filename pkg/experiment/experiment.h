/* The experiments of the documents that this project grew from, each by its name: the same question
 * asked in our simulator, the document's figure beside ours.
 *
 *   const struct experiment *e = experiment_find("mappo");
 *   struct experiment_config config = {.seeds = 5, .seed = 1, .threads = 2, .effort = 1};
 *   struct experiment_result *result = experiment_run(e, &config, &err);
 *   … experiment_mean(result, row), experiment_reached(result, row), experiment_plot(result) …
 *
 * Everything is done once per seed; the same seed gives the same figures, whatever the number of
 * threads. docs/experiments/README.md tells how to read them. */
#ifndef FAASRL_EXPERIMENT_H
#define FAASRL_EXPERIMENT_H

#include "plot/plot.h"

/* --- what is asked --------------------------------------------------------------------------- */
enum experiment_aim { EXPERIMENT_NO_AIM, EXPERIMENT_AT_MOST, EXPERIMENT_AT_LEAST };

struct experiment_row {      /* a figure */
    const char *group;       /* rows of a group stand together: "p99 of markdown", say */
    const char *what;        /* "MA-PPO with 15 functions" */
    const char *unit;        /* that it is counted in: "ms", "%", "×", "episodes"; "": none */
    const char *document;    /* what the document says: "1.8 to 9.9 %"; NULL: nothing */
    enum experiment_aim aim; /* to be as good as the document, the mean of the seeds is … */
    double bound;
    const char *otherwise; /* why it may not be; told where it is not */
};

struct experiment_line { /* of the plot; lines of a panel stand side by side */
    const char *panel;   /* what its y is */
    const char *label;
};

struct experiment_run;
struct rl_checkpoint;
struct experiment {
    const char *name, *title;
    const char *document; /* "MA-PPO (EuroMLSys '22), sections 5 and 6" */
    const char *setting;  /* Markdown: what is done, and where that differs from the document */
    const struct experiment_row *rows;
    size_t row_count;
    const char *x_label;
    const struct experiment_line *lines;
    size_t line_count;
    /* All of it for one seed. */
    int (*run)(struct experiment_run *run, struct error *err);
    size_t headline; /* the row that says most, for an overview; else the first */
    bool by_policy;  /* the recommender ppo decides, by the policy of the config */
};
/* The i-th one; NULL behind the last. */
const struct experiment *experiment(size_t i);
/* NULL: there is none of this name. */
const struct experiment *experiment_find(const char *name);

/* --- doing it -------------------------------------------------------------------------------- */
struct experiment_config {
    size_t seeds;
    uint64_t seed;  /* the first; the others follow it */
    size_t threads; /* for seeds first, then for each of them */
    double effort;  /* 1: as documented; 0.1: a tenth of the episodes, to see that it works */
    const struct rl_checkpoint *policy; /* of the recommender ppo; NULL: its core alone */
    /* May be NULL. share: of all that is to be done; one call at a time though in any thread;
     * false: end here. */
    bool (*on_progress)(void *arg, double share);
    void *arg;
};

struct experiment_result;
/* Fails when a seed does (the first one's reason is told) or when it was ended (ERROR_CANCELLED).
 */
struct experiment_result *experiment_run(const struct experiment *experiment,
                                         const struct experiment_config *config, struct error *err);
void experiment_result_free(struct experiment_result *result);

/* --- what came of it ------------------------------------------------------------------------- */
const struct experiment *experiment_of(const struct experiment_result *result);
size_t experiment_seeds(const struct experiment_result *result);
const double *experiment_values(const struct experiment_result *result, size_t row); /* (seeds) */
/* How many seeds have the figure, not NaN; mean and standard deviation are theirs. NaN: too few. */
size_t experiment_count(const struct experiment_result *result, size_t row);
double experiment_mean(const struct experiment_result *result, size_t row);
double experiment_spread(const struct experiment_result *result, size_t row);
/* Whether it has no aim, or all seeds have the figure and their mean is as it should be. */
bool experiment_reached(const struct experiment_result *result, size_t row);
double experiment_seconds(const struct experiment_result *result); /* that it took */
/* Mean of the seeds, and a band from the lowest to the highest; lives as long as the result. */
const struct plot *experiment_plot(const struct experiment_result *result);

#endif
