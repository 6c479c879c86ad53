/* The applications of the experiment aware: drawn, simulated, measured and modelled. */
#include "aware.h"

#include <math.h>
#include <stdio.h>

#define TAIL_MEAN                                                                                  \
    1.118              /* mean ÷ median of a logarithmic normal distribution whose p99 is thrice  \
                          the median */
#define LEAST_TAIL 2.0 /* p99 ÷ median of a model; what is more than most is queueing */
#define MOST_TAIL  6.0
#define PEAKED     2.5 /* peak ÷ mean rate: bursts */

/* --- drawing ---------------------------------------------------------------------------------- */
static double draw_log(struct random *r, double low, double high)
{
    return low * exp(random_uniform(r) * log(high / low));
}

/* What they differ in is not in what a policy sees: how many requests, how heavy, how much of the
 * goal is not CPU, how much memory. */
void app_draw(struct app *app, struct random *r)
{
    double cores = draw_log(r, 0.15, 1);
    *app = (struct app){.rate_spread = 1, .demand_spread = 1};
    app->pattern = (unsigned)random_below(r, 3);
    app->demand_ms = draw_log(r, 30, 150);
    app->p99_ms = app->demand_ms * draw_log(r, 1.5, 5);
    app->rate = 1000 * cores / app->demand_ms;
    app->overhead_ms = app->p99_ms * random_uniform(r) / 2;
    app->goal_ms = app->overhead_ms + app->p99_ms * draw_log(r, 1.5, 10);
    app->memory_mib = draw_log(r, 64, 240);
    app->request_memory_mib = draw_log(r, 2, 24);
}

/* --- simulating ------------------------------------------------------------------------------- */
void app_trace(const struct app *app, double span_s, char *out, size_t size)
{
    static const char *const forms[] = {
        [APP_STEADY] = "poisson:",
        [APP_DAILY] = "diurnal:amplitude=0.7,period=1800,",
        [APP_BURSTY] = "bursty:burst=4,every=600,length=60,", /* a tenth of the time at that rate */
    };
    snprintf(out, size, "%srate=%.9g,span=%.9g,demand=%.9g,p99=%.9g", forms[app->pattern],
             app->pattern == APP_BURSTY ? app->rate / 1.3 : app->rate, span_s, app->demand_ms,
             app->p99_ms);
}

int app_config(const struct app *app, int steps, struct sim_config *out, struct error *err)
{
    char trace[256];
    if (sim_config_init(out, "aware", err) < 0)
        return -1;
    app_trace(app, app->pattern == APP_BURSTY ? 7200 : 3600, trace, sizeof(trace));
    out->nodes = 0;
    out->concurrency = 0;
    out->episode_steps = steps;
    out->overhead_ms = app->overhead_ms;
    out->goal_ms = app->goal_ms;
    out->memory_mib = app->memory_mib;
    out->request_memory_mib = app->request_memory_mib;
    out->rate_spread = app->rate_spread;
    out->demand_spread = app->demand_spread;
    return sim_config_set(out, "trace", trace, err);
}

/* --- measuring and modelling ------------------------------------------------------------------ */
void app_look(struct app_sight *s, const double *f)
{
    double memory_mib = f[SIM_MEMORY_UTILIZATION] * f[SIM_MEMORY_MIB];
    bool served = f[SIM_LATENCY_MS] > 0; /* there were requests */
    s->rate += f[SIM_RATE];
    s->peak = fmax(s->peak, f[SIM_RATE]);
    s->work_ms = f[SIM_WORK_MS];
    s->goal_ms = f[SIM_GOAL_MS];
    if (served && (s->latency_ms <= 0 || f[SIM_LATENCY_MS] < s->latency_ms))
        s->latency_ms = f[SIM_LATENCY_MS];
    if (memory_mib > 0 && (s->memory_mib <= 0 || memory_mib < s->memory_mib))
        s->memory_mib = memory_mib;
    s->looks++;
}

/* The lowest p99 seen is what requests need when nothing holds them up, whatever it consists of. */
void app_fit(const struct app_sight *s, struct app *out)
{
    double demand_ms = fmax(s->work_ms / TAIL_MEAN, 1), rate = s->rate / (double)s->looks;
    double tail = fmin(fmax(s->latency_ms / demand_ms, LEAST_TAIL), MOST_TAIL);
    *out = (struct app){
        .pattern = s->peak > PEAKED * rate ? APP_BURSTY : APP_DAILY,
        .rate = fmax(rate, 0.01),
        .demand_ms = demand_ms,
        .p99_ms = tail * demand_ms,
        .goal_ms = s->goal_ms,
        .memory_mib = fmax(s->memory_mib, 1),
        .request_memory_mib = 16,
        .rate_spread = 1.5,
        .demand_spread = 1.2,
    };
}

/* --- sums ------------------------------------------------------------------------------------- */
void sums_add(struct sums *s, double reward, const double *f)
{
    s->reward += reward;
    s->cpu += f[SIM_CPU_UTILIZATION];
    s->memory += f[SIM_MEMORY_UTILIZATION];
    s->violations += f[SIM_VIOLATION_RATIO] * f[SIM_RATE];
    s->requests += f[SIM_RATE];
    s->steps++;
}

void sums_join(struct sums *s, const struct sums *more)
{
    s->reward += more->reward;
    s->cpu += more->cpu;
    s->memory += more->memory;
    s->violations += more->violations;
    s->requests += more->requests;
    s->steps += more->steps;
}
