/* Learning to scale: the algorithms of pkg/rl in the environment of pkg/sim.
 *
 *   struct train_config config;
 *   train_config_init(&config, "simppo", NULL, &err);
 *   sim_config_set(&config.world, "functions", "10", &err);
 *   struct train *train = train_new(&config, &err);
 *   while (!train_is_done(train))
 *       if (train_round(train, &report, &err) < 0)
 *           …
 *
 * Either each function has a learner of its own, or one is shared by all. The same seed gives the
 * same policies, whatever the number of threads. docs/training.md tells more. */
#ifndef FAASRL_TRAIN_H
#define FAASRL_TRAIN_H

#include "rl/rl.h"
#include "sim/sim.h"

/* --- what can be learned with (algorithms.c) ------------------------------------------------- */
struct train_algorithm {
    const char *name, *summary;
    const char *formulation; /* of the environment, where none is asked for */
    bool shared;             /* one policy for all functions; else one for each */
};
/* The i-th one; NULL behind the last. */
const struct train_algorithm *train_algorithm(size_t i);
/* NULL: there is none of this name. */
const struct train_algorithm *train_algorithm_find(const char *name);

/* --- settings (config.c) --------------------------------------------------------------------- */
struct train_config {
    const struct train_algorithm *algorithm;
    struct sim_config world;
    struct rl_ppo_config ppo; /* horizon 0: an episode */
    struct rl_q_config q;     /* decay_steps 0: half of all */
    size_t bins;              /* of each number in a table's states */
    bool mask;                /* illegal actions cannot be chosen; else they are, and cost */
    size_t episodes;          /* of all clusters together */
    uint64_t seed;
    size_t threads; /* that update learners */
};

/* formulation NULL: the algorithm's usual one. train_config_clear takes it back. */
int train_config_init(struct train_config *config, const char *algorithm, const char *formulation,
                      struct error *err);
void train_config_clear(struct train_config *config);
/* The network and rates that MA-PPO's document tells, with an update after each episode. For
 * REINFORCE no document tells any: it stays as it is. */
void train_config_use_papers(struct train_config *config);
/* One of train_option by its name. */
int train_config_set(struct train_config *config, const char *name, const char *value,
                     struct error *err);

struct train_option {
    const char *name, *help;
    double low, high;
};
/* The i-th setting of learning; NULL behind the last. */
const struct train_option *train_option(size_t i);

/* --- the environment as a world (world.c) ---------------------------------------------------- */
/* Its arrays are the environment's. */
void train_world(struct sim *sim, bool mask, struct rl_world *out);

/* --- learning (train.c) ---------------------------------------------------------------------- */
struct train_report {                         /* of a round: one episode in each cluster */
    size_t episodes;                          /* until now, of all clusters */
    uint64_t steps;                           /* decisions until now, of all functions */
    double seconds;                           /* until now */
    double reward;                            /* of a decision: mean of all */
    double reward_min, reward_max;            /* that of the function worst and best off */
    double slo_preservation, cpu_utilization; /* means of all decisions */
    double memory_utilization;                /* 0: not modelled */
    double violation_ratio;                   /* share of requests */
};

struct train;
struct train *train_new(const struct train_config *config, struct error *err);
void train_free(struct train *train);
/* Fails when what is learned from, or what is learned, is no number. Policies are then as they were
 * before the last update. */
int train_round(struct train *train, struct train_report *report, struct error *err);
bool train_is_done(const struct train *train); /* config.episodes are */
/* Mean reward of each function's decisions in the last round; NaN: it took none. */
const double *train_function_rewards(const struct train *train);

/* --- what was learned (train.c) -------------------------------------------------------------- */
/* Chooses the likeliest actions in a world whose rows look like those learned in. Any number of
 * rows will do for a shared policy; else row i is for learner i modulo the number of functions. */
void train_decide(const struct train *train, const struct rl_world *world);
/* Whole episodes of these decisions, one in each cluster, in an environment of the same
 * formulation. */
void train_evaluate(const struct train *train, struct sim *sim, uint64_t seed,
                    struct train_report *report);
/* The same by anybody's decisions: `decide` sets world->actions before each step. */
void train_judge(struct sim *sim, bool mask, uint64_t seed,
                 void (*decide)(void *arg, const struct rl_world *world), void *arg,
                 struct train_report *report);
size_t train_learner_count(const struct train *train);
/* Of the i-th learner, to be read; NULL where it has none. */
struct rl_net *train_actor(const struct train *train, size_t i);
struct rl_net *train_critic(const struct train *train, size_t i);

/* --- beginning with what others do (bootstrap.c) ---------------------------------------------- */
struct train_teacher { /* anybody who decides by the figures of a function */
    /* action: options; what the mask forbids does not count. */
    void (*decide)(const void *arg, const struct sim_shape *shape, const double *figures,
                   const uint8_t *mask, int32_t *action);
    const void *arg;
};
/* Thresholds on latency, utilisation and memory, in the actions of any formulation. */
extern const struct train_teacher train_thresholds;

/* Lets the teacher decide for so many rounds, and teaches the policies to do as it did. They then
 * learn on from there. The report is the worst learner's. */
int train_clone(struct train *train, const struct train_teacher *teacher, size_t rounds,
                const struct rl_clone_config *config, struct rl_clone_report *report,
                struct error *err);
/* Whole episodes of a teacher's decisions, as train_evaluate. */
void train_evaluate_teacher(const struct train_teacher *teacher, struct sim *sim, uint64_t seed,
                            struct train_report *report);
/* Goes on with what another has learned, by the same algorithm: offline first, say, then online.
 * Fails where the networks differ. */
int train_inherit(struct train *train, const struct train *from, struct error *err);

/* --- checkpoints (save.c) -------------------------------------------------------------------- */
int train_save(const struct train *train, const char *path, struct error *err);
/* Goes on from there, with other episodes than before. Fails, naming the difference, where it was
 * learned by another algorithm or from other figures. */
int train_load(struct train *train, const char *path, struct error *err);

/* Learner i goes on from learner first + i of another, as functions join and leave; those beyond
 * its last begin anew, and so do the rates. Both must learn the same way from the same figures. A
 * policy that is shared goes on whatever `first` is. */
int train_adopt(struct train *train, const struct train *from, size_t first, struct error *err);

/* --- several seeds (seeds.c) ----------------------------------------------------------------- */
struct train_history { /* of one seed */
    uint64_t seed;
    struct train_report *rounds;
    size_t count;
    struct train *train; /* with what was learned */
};

struct train_seeds {
    const struct train_config *config; /* its seed is the first one */
    size_t count, threads;             /* threads: seeds learned at the same time */
    /* May be NULL. Before the first round, in any thread: to load, say. */
    int (*on_begin)(void *arg, struct train *train, uint64_t seed, struct error *err);
    /* May be NULL. After each round, one at a time though in any thread; false: end all here. */
    bool (*on_round)(void *arg, size_t i, const struct train_report *report);
    void *arg;
};
/* out has room for count. What has been learned so far is there even on failure. */
int train_seeds(const struct train_seeds *seeds, struct train_history *out, struct error *err);
void train_history_clear(struct train_history *history);

/* How many rounds it took until the mean of the last `window` rewards was, and stayed, within
 * `share` of where it ends: of its size, or of how far it has come if that is more. count: it was
 * not before the last window. */
size_t train_converged(const struct train_report *rounds, size_t count, size_t window,
                       double share);

#endif
