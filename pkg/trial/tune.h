/* Searches the parameters of a recommender on functions to train on, so that baselines are compared
 * at their best. In three strengths, because which one a comparison takes decides much of it: one
 * setting for all functions is what an operator has, one per class of arrivals is a fair start, and
 * one per function in hindsight is more than anyone has. */
#ifndef FAASRL_TRIAL_TUNE_H
#define FAASRL_TRIAL_TUNE_H

#include "trial/trial.h"

enum tune_strength { TUNE_ALL, TUNE_CLASS, TUNE_FUNCTION, TUNE_STRENGTH_COUNT };
const char *tune_strength_name(enum tune_strength strength);

struct tune_function {
    struct trial_config config; /* of this function alone; the choice is left to the search */
    double oracle_core_seconds; /* what the oracle takes for the same */
};

struct tune_config {
    const struct recommender *recommender; /* with parameters */
    const struct tune_function *functions;
    size_t function_count;
    size_t trials; /* settings that each function is tried with, in each strength; at least 2 */
    uint64_t seed; /* of the search */
    size_t threads;
    void (*on_run)(void *arg); /* after each trial, from any thread; or NULL */
    void *arg;
};

/* How many trials the search takes. */
size_t tune_runs(const struct tune_config *config);

/* Fills params, [strength][function][parameter] in one block of tune_param_count numbers: the
 * setting for each function in each strength. The numbers have four digits, so that they can be
 * written down. A stronger search never does worse on these functions than a weaker one. The same
 * seed gives the same result, whatever the number of threads. */
size_t tune_param_count(const struct tune_config *config);
int tune_search(const struct tune_config *config, double *params, struct error *err);

/* What the search makes small, as a mean over functions: CPU relative to the oracle's, and beyond
 * the share of late requests that the goal allows a penalty that grows with its logarithm. */
double tune_score(const struct trial_result *result, double oracle_core_seconds,
                  double late_share_allowed);

/* "hpa:target=0.6,window_s=120", to be freed: as trial_choose reads it. */
char *tune_print_setting(const struct recommender *recommender, const double *params);

#endif
