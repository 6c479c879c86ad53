/* What mpactl tune does: each recommender's parameters searched on some load, then judged on other
 * load of the same kind. */
#ifndef FAASRL_MPACTL_TUNING_H
#define FAASRL_MPACTL_TUNING_H

#include "study.h"
#include "trial/tune.h"

struct tuning_options {
    struct study_options study; /* its seed is that of the load to search on */
    double judge_seed;
    double trials, least_requests;
};

/* The usual setting, then the strengths of the search. */
#define TUNING_USUAL 0
#define TUNING_ROWS  (1 + TUNE_STRENGTH_COUNT)
const char *tuning_row_name(size_t row);

struct tuned { /* one recommender */
    const struct recommender *recommender;
    const struct recommend_policy *policy; /* where it has learned */
    double *params;                        /* [row][function][parameter] */
    struct trial_result *results;          /* [row][function], on the load to judge by */
};

struct tuning {
    struct tuning_options options;
    struct study study;
    struct tuning_function {
        size_t trace, function;
        enum trace_class class_;
    } * functions;
    size_t function_count;
    struct tune_function *train, *judge;
    struct trial_result *oracle; /* on the load to judge by */
    struct tuned *tuned;
    size_t tuned_count;
};

/* All rows, or the usual one where there is nothing to tune. */
size_t tuning_rows(const struct tuning *t, size_t recommender);
const double *tuning_params(const struct tuning *t, size_t recommender, size_t row,
                            size_t function);
const struct trial_result *tuning_result(const struct tuning *t, size_t recommender, size_t row,
                                         size_t function);

/* --- what is shown (tuning_print.c) ---------------------------------------------------------- */
void tuning_print(const struct tuning *t);
/* A list of settings, each with what it is for and how it did. */
void tuning_write_json(const struct tuning *t, FILE *out);

#endif
