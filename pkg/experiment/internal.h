/* Shared by the experiments. */
#ifndef FAASRL_EXPERIMENT_INTERNAL_H
#define FAASRL_EXPERIMENT_INTERNAL_H

#include "experiment/experiment.h"

/* --- for the experiments (experiment.c) --------------------------------------------------------
 */
struct experiment_run { /* one seed of one experiment */
    uint64_t seed;
    double effort;
    struct experiment_result *result;
    size_t index;                       /* of the seed */
    size_t threads;                     /* that it may use; figures do not depend on them */
    const struct rl_checkpoint *policy; /* as in the config */
};

/* A number of episodes by the effort that is asked for, at least `least`. */
size_t run_episodes(const struct experiment_run *run, size_t episodes, size_t least);
/* The figure of a row. */
void run_set(struct experiment_run *run, size_t row, double value);
/* A line of the plot; x must be the same for all seeds. */
void run_line(struct experiment_run *run, size_t line, const double *x, const double *y,
              size_t count);
/* How much of this seed is done. Fails with ERROR_CANCELLED when it is to end. */
int run_progress(struct experiment_run *run, double share, struct error *err);

/* --- the experiments ---------------------------------------------------------------------------
 */
extern const struct experiment experiment_mp3;             /* mp3.c */
extern const struct experiment experiment_srl_isolation;   /* srl.c */
extern const struct experiment experiment_srl_multitenant; /* srl.c */
extern const struct experiment experiment_mappo;           /* mappo.c */
extern const struct experiment experiment_simppo;          /* simppo.c */
extern const struct experiment experiment_faasrm;          /* faasrm.c */
extern const struct experiment experiment_aware;           /* aware.c */
extern const struct experiment experiment_ppo_aware;       /* ppo_aware.c */
extern const struct experiment experiment_ppo_simppo;      /* ppo_simppo.c */
extern const struct experiment experiment_ppo_faasrm;      /* ppo_faasrm.c */

#endif
