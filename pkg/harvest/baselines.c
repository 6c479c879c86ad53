/* The resource managers that FaaSRM is measured by: the paper's, and one that knows the input. */
#include "harvest/harvest.h"
#include "harvest/safeguard.h"

#include <math.h>
#include <string.h>

/* --- Fixed: what users asked for ---------------------------------------------------------------
 */
static void ask_fixed(void *self, const struct harvest_view *view, double *wanted)
{
    (void)self;
    memcpy(wanted, view->user, HARVEST_RESOURCES * sizeof(*wanted));
}

const struct harvest_manager harvest_fixed = {"Fixed", ask_fixed, NULL};

/* --- the best there is: just what the input needs -----------------------------------------------
 */
static void ask_oracle(void *self, const struct harvest_view *view, double *wanted)
{
    const struct harvest_workload *load = self;
    const struct harvest_demand *d = &load->invocations[view->invocation].demand;
    const double needed[HARVEST_RESOURCES] = {d->parallelism, d->memory_mb};
    for (int k = 0; k < HARVEST_RESOURCES; k++)
        wanted[k] = ceil(needed[k] / view->cluster->step[k]) * view->cluster->step[k];
}

const struct harvest_manager harvest_oracle = {"oracle", ask_oracle, NULL};

/* --- Greedy: a step down when something was idle, a step up when nearly nothing was -------------
 */
static void ask_greedy(void *self, const struct harvest_view *view, double *wanted)
{
    const struct harvest_record *record = view->record;
    const struct harvest_cluster *c = view->cluster;
    (void)self;
    for (int k = 0; k < HARVEST_RESOURCES; k++) {
        double given = record->last_given[k];
        bool idle = record->last_peak[k] < SAFEGUARD_NEARLY * given;
        double moved =
            idle ? fmax(given - c->step[k], c->step[k]) : fmin(given + c->step[k], c->most[k]);
        wanted[k] = record->done > 0 ? moved : view->user[k];
    }
}

const struct harvest_manager harvest_greedy = {"Greedy", ask_greedy, NULL};

/* --- ENSURE: cores by latency ------------------------------------------------------------------
 */
/* As the authors of FaaSRM rebuilt it: the mean latency of the last three invocations, looked at
 * every few of them; long functions move more carefully than short ones. What latency is expected
 * they took from the trace; nobody knows it beforehand, so that here it is the best mean so far, as
 * in pkg/recommend. */
#define WINDOW     3
#define DEGRADED   1.10
#define LONG_S     5.0
#define LONG_STEP  1.0
#define LONG_WAIT  5 /* invocations between two looks */
#define SHORT_STEP 2.0
#define SHORT_WAIT 3

struct watched {  /* a function */
    double cores; /* 0: what the user asked for */
    double latency_s[WINDOW];
    size_t seen, since; /* invocations; since the last look */
    double best_s;      /* mean */
};

struct harvest_ensure {
    struct watched *functions;
};

struct harvest_ensure *harvest_ensure_new(size_t functions)
{
    struct harvest_ensure *e = xcalloc(1, sizeof(*e));
    e->functions = xcalloc(functions, sizeof(*e->functions));
    return e;
}

void harvest_ensure_free(struct harvest_ensure *e)
{
    if (e == NULL)
        return;
    free(e->functions);
    free(e);
}

static double mean_latency_s(const struct watched *f)
{
    double sum = 0;
    for (size_t i = 0; i < WINDOW; i++)
        sum += f->latency_s[i];
    return sum / WINDOW;
}

/* Up when it got slower; down when the platform has no cores left for others. */
static void look(struct watched *f, const struct harvest_view *view)
{
    const struct harvest_cluster *c = view->cluster;
    double mean_s = mean_latency_s(f), step = mean_s > LONG_S ? LONG_STEP : SHORT_STEP;
    f->best_s = f->best_s > 0 ? fmin(f->best_s, mean_s) : mean_s;
    if (view->free[HARVEST_CPU] <= step)
        f->cores = fmax(f->cores - step, c->step[HARVEST_CPU]);
    else if (mean_s >= DEGRADED * f->best_s)
        f->cores = fmin(f->cores + step, c->most[HARVEST_CPU]);
}

static void ask_ensure(void *self, const struct harvest_view *view, double *wanted)
{
    struct watched *f = &((struct harvest_ensure *)self)->functions[view->function];
    ask_fixed(NULL, view, wanted);
    if (f->cores <= 0)
        f->cores = view->user[HARVEST_CPU];
    size_t wait = view->record->mean_execution_s > LONG_S ? LONG_WAIT : SHORT_WAIT;
    if (f->seen >= WINDOW && f->since >= wait) {
        look(f, view);
        f->since = 0;
    }
    wanted[HARVEST_CPU] = f->cores;
}

static void see_ensure(void *self, const struct harvest_view *view,
                       const struct harvest_outcome *outcome)
{
    struct watched *f = &((struct harvest_ensure *)self)->functions[view->function];
    f->latency_s[f->seen++ % WINDOW] = outcome->wait_s + outcome->execution_s;
    f->since++;
}

const struct harvest_manager harvest_ensure = {"ENSURE", ask_ensure, see_ensure};
