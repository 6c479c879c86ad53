/* Shared by the files of a bootstrap. */
#ifndef FAASRL_BOOTSTRAP_INTERNAL_H
#define FAASRL_BOOTSTRAP_INTERNAL_H

#include "base/random.h"
#include "bootstrap/bootstrap.h"
#include "trial/trial.h"

double bootstrap_between(struct random *random, double low, double high);
double bootstrap_factor(struct random *random, double low, double high); /* evenly by factors */

/* --- one cluster and its episodes (lesson.c) ---------------------------------------------------
 */
struct lesson_row { /* of the world's arrays */
    float *features;
    uint8_t *mask;
    const int32_t *actions;
    float *reward;
    uint8_t *truncated;
};

/* The subject from some moment on: its own course, once around, a little more or less of it; or its
 * last hours. */
int bootstrap_part(struct random *random, const struct bootstrap_subject *subject, double span_s,
                   struct trace *out);

struct lesson;
struct lesson *lesson_new(const struct bootstrap_world_config *config, bool shared, uint64_t seed,
                          const struct lesson_row *rows, size_t count, struct error *err);
void lesson_free(struct lesson *lesson);
/* The first episode is shorter, so that clusters do not all begin anew at once. */
void lesson_reset(struct lesson *lesson, uint64_t seed);
void lesson_step(struct lesson *lesson);
struct bootstrap_figures lesson_figures(struct lesson *lesson);

struct lesson_outcome { /* of a function in the episode so far */
    const struct trace_function *workload;
    double requests, late;
    double cost;   /* CPU reserved ÷ needed */
    double reward; /* mean of a decision */
};
struct lesson_outcome lesson_outcome(const struct lesson *lesson, size_t function);

#endif
