/* Trials of the recommender ppo and of others, and how well they served. */
#include "experiment/served.h"

#include "bootstrap/bootstrap.h"

#include <math.h>

#define WINDOW 3 /* blocks that must be good in the mean */

/* --- what decides ----------------------------------------------------------------------------- */
static int make_core(struct rl_checkpoint *out, struct error *err)
{
    struct bootstrap_config config;
    bootstrap_config_init(&config);
    config.updates = 0;
    config.world.threads = 1;
    return bootstrap_learn(&config, out, err);
}

int served_policy_init(struct served_policy *p, const struct experiment_run *run, struct error *err)
{
    *p = (struct served_policy){0};
    int result = run->policy ? rl_checkpoint_copy(run->policy, &p->checkpoint, err)
                             : make_core(&p->checkpoint, err);
    if (result < 0)
        return -1;
    p->policy = recommend_policy_new(&p->checkpoint, err);
    if (p->policy && recommend_policy_check(p->policy, POLICY_OF_CORRECTIONS, err) == 0)
        return 0;
    served_policy_clear(p);
    return -1;
}

void served_policy_clear(struct served_policy *p)
{
    recommend_policy_release(p->policy);
    rl_checkpoint_clear(&p->checkpoint);
    *p = (struct served_policy){0};
}

/* --- trials ----------------------------------------------------------------------------------- */
static void on_sample(void *arg, size_t function, const struct trial_sample *sample)
{
    struct served *s = arg;
    if (s->counts[function] == s->most)
        return;
    struct trial_sample *at = &s->samples[function * s->most + s->counts[function]++];
    *at = *sample;
    at->reason = NULL; /* it is gone when this returns */
}

static void make_room(struct served *s, const struct trial_config *config)
{
    *s = (struct served){
        .functions = config->function_count,
        .most = (size_t)ceil(config->span_s / SERVED_INTERVAL_S) + 1,
    };
    s->samples = xcalloc(s->functions * s->most, sizeof(*s->samples));
    s->counts = xcalloc(s->functions, sizeof(*s->counts));
    s->results = xcalloc(s->functions, sizeof(*s->results));
}

void served_clear(struct served *s)
{
    free(s->samples);
    free(s->counts);
    free(s->results);
    *s = (struct served){0};
}

int served_run(const char *by, const struct recommend_policy *policy,
               const struct trial_config *config, struct served *out, struct error *err)
{
    struct trial_config whole = *config;
    struct trial_choice choice;
    if (trial_choose(by, &choice, err) < 0)
        return -1;
    choice.policy = policy;
    make_room(out, config);
    whole.choice = &choice;
    whole.interval_s = SERVED_INTERVAL_S;
    whole.on_sample = on_sample;
    whole.arg = out;
    int result = trial_run(&whole, out->results, err);
    trial_choice_clear(&choice);
    if (result < 0)
        served_clear(out);
    return result;
}

int served_alone(const char *by, const struct recommend_policy *policy,
                 const struct served_function *f, struct served *out, struct error *err)
{
    struct api_spec spec;
    trial_default_spec(&spec);
    const struct trial_function function = {
        .workload = f->workload, .spec = &spec, .goal_ms = f->goal_ms};
    struct trial_config config = {
        .functions = &function,
        .function_count = 1,
        .defaults = trial_default_function,
        .instead = f->instead,
        .span_s = f->intervals * SERVED_INTERVAL_S,
        .seed = f->seed,
    };
    config.defaults.overhead_ms = f->overhead_ms;
    return served_run(by, policy, &config, out, err);
}

/* A steady load is one slot, however long. */
static void split(struct trace_function *f)
{
    size_t parts = (size_t)ceil(f->slot_s / SERVED_INTERVAL_S), count = f->slot_count * parts;
    double *counts = xcalloc(count, sizeof(*counts));
    for (size_t i = 0; i < count; i++)
        counts[i] = f->counts[i / parts] / (double)parts;
    free(f->counts);
    f->counts = counts;
    f->slot_count = count;
    f->slot_s /= (double)parts;
}

void served_load(struct trace_function *f, double from_s, double to_s, double factor)
{
    split(f);
    for (size_t i = 0; i < f->slot_count; i++) {
        double middle_s = ((double)i + 0.5) * f->slot_s;
        if (middle_s >= from_s && middle_s < to_s)
            f->counts[i] *= factor;
    }
}

/* --- figures ---------------------------------------------------------------------------------- */
/* Where nothing is completed in time nothing of the goal is kept. */
static double goal_kept(const struct trial_sample *s)
{
    return s->latency_ms > 0 ? fmin(s->goal_ms / s->latency_ms, 1) : 0;
}

struct served_figures served_between(const struct served *s, size_t function, size_t from,
                                     size_t to, double goal_share)
{
    struct served_figures sum = {0};
    for (size_t i = from; i < to && i < s->counts[function]; i++) {
        const struct trial_sample *x = &s->samples[function * s->most + i];
        double requests = x->requests_per_s * SERVED_INTERVAL_S;
        if (!(requests > 0))
            continue;
        sum.intervals++;
        sum.reward += goal_share * goal_kept(x) + (1 - goal_share) * fmin(x->cpu_utilization, 1);
        sum.utilization += x->cpu_utilization;
        sum.requests += requests;
        sum.late += requests * x->violation_ratio;
    }
    return sum;
}

void served_join(struct served_figures *sum, const struct served_figures *more)
{
    sum->intervals += more->intervals;
    sum->reward += more->reward;
    sum->utilization += more->utilization;
    sum->requests += more->requests;
    sum->late += more->late;
}

double served_adapted(const double *rewards, size_t count, double block, double good)
{
    for (size_t i = 0; i + WINDOW <= count; i++) {
        double sum = 0;
        for (size_t k = 0; k < WINDOW; k++)
            sum += rewards[i + k] / WINDOW;
        if (sum >= good)
            return (double)(i + 1) * block;
    }
    return (double)count * block;
}
