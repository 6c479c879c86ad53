/* Figures of speed and memory. */
#ifndef FAASRL_TESTS_BENCH_H
#define FAASRL_TESTS_BENCH_H

#include "base/base.h"

struct figure {
    const char *name, *unit, *peer;
    double value, peer_value, goal; /* NaN: none */
    bool more_is_better;
};

double bench_cpu_s(void); /* of this process, so far */
double bench_wall_s(void);
double bench_heap_bytes(void);

/* decide.c */
struct figure bench_decide(void);
struct figure bench_decide_many(void);
struct figure bench_decide_telling(void);
struct figure bench_decide_learning(void);

/* sim.c */
struct figure bench_sim_mmc(void);
struct figure bench_sim_replicas(void);
struct figure bench_sim_memory(void);
struct figure bench_sim_memory_less(void);
struct figure bench_sim_memory_of_hours(void);
struct figure bench_sim_step(void);
enum { BENCH_DAY = 2 }; /* how long, and how many requests */
void bench_sim_day(struct figure out[BENCH_DAY]);

/* rl.c */
struct figure bench_policy_forward(void);
struct figure bench_net_samples(void);
struct figure bench_train_steps(void);
struct figure bench_train_sim_steps(void);
struct figure bench_train_five(void);

/* blas.c */
enum { BENCH_NETS = 10 };
void bench_nets(struct figure out[BENCH_NETS]);

#endif
