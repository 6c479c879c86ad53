/* The environment as learners see it, and the figures of what they do in it. */
#include "internal.h"

#include <math.h>
#include <string.h>

/* --- the world ------------------------------------------------------------------------------- */
static void step(void *self)
{
    sim_step(self);
}

static void reset(void *self, uint64_t seed)
{
    sim_reset(self, seed);
}

void train_world(struct sim *sim, bool mask, struct rl_world *out)
{
    const struct sim_shape *s = sim_shape(sim);
    const struct sim_block *b = sim_block(sim);
    *out = (struct rl_world){
        .rows = s->clusters * s->functions,
        .observation_size = s->observation_size,
        .global_size = s->global_size,
        .heads = {.count = s->action_size, .total = s->mask_size},
        .observations = b->observations,
        .globals = b->globals,
        .masks = mask ? b->masks : NULL,
        .present = b->present,
        .terminated = b->terminated,
        .truncated = b->truncated,
        .rewards = b->rewards,
        .actions = b->actions,
        .reset = reset,
        .step = step,
        .self = sim,
    };
    for (size_t d = 0; d < s->action_size; d++)
        out->heads.options[d] = s->dimensions[d].option_count;
}

/* --- the figures of a round ------------------------------------------------------------------ */
void tally_init(struct tally *t, const struct sim *sim)
{
    const struct sim_shape *s = sim_shape(sim);
    *t = (struct tally){
        .sim = sim,
        .acted = xcalloc(s->clusters * s->functions, 1),
        .rewards = xcalloc(s->functions, sizeof(*t->rewards)),
        .decisions = xcalloc(s->functions, sizeof(*t->decisions)),
    };
}

void tally_clear(struct tally *t)
{
    free(t->acted);
    free(t->rewards);
    free(t->decisions);
}

void tally_begin(struct tally *t)
{
    size_t functions = sim_shape(t->sim)->functions;
    memset(t->rewards, 0, functions * sizeof(*t->rewards));
    memset(t->decisions, 0, functions * sizeof(*t->decisions));
    t->preserved = t->utilized = t->memory = t->violations = t->requests = 0;
    t->looks = 0;
}

void tally_before(const struct tally *t)
{
    const struct sim_shape *s = sim_shape(t->sim);
    const struct sim_block *b = sim_block(t->sim);
    for (size_t row = 0; row < s->clusters * s->functions; row++)
        t->acted[row] = b->present[row] && !b->terminated[row] && !b->truncated[row];
}

void tally_after(struct tally *t)
{
    const struct sim_shape *s = sim_shape(t->sim);
    const struct sim_block *b = sim_block(t->sim);
    for (size_t row = 0; row < s->clusters * s->functions; row++) {
        if (!t->acted[row])
            continue;
        t->rewards[row % s->functions] += b->rewards[row];
        t->decisions[row % s->functions]++;
        if (!b->present[row]) /* it has left, and its figures with it */
            continue;
        const double *figures = b->figures + row * SIM_FIGURE_COUNT;
        t->preserved += figures[SIM_SLO_PRESERVATION];
        t->utilized += figures[SIM_CPU_UTILIZATION];
        t->memory += figures[SIM_MEMORY_UTILIZATION];
        t->violations += figures[SIM_VIOLATION_RATIO] * figures[SIM_RATE];
        t->requests += figures[SIM_RATE];
        t->looks++;
    }
}

uint64_t tally_decisions(const struct tally *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sim_shape(t->sim)->functions; i++)
        sum += t->decisions[i];
    return sum;
}

void tally_report(const struct tally *t, struct train_report *out)
{
    double sum = 0, looks = t->looks ? (double)t->looks : 1;
    uint64_t decisions = tally_decisions(t);
    out->reward_min = INFINITY;
    out->reward_max = -INFINITY;
    for (size_t i = 0; i < sim_shape(t->sim)->functions; i++) {
        if (t->decisions[i] == 0)
            continue;
        double mean = t->rewards[i] / (double)t->decisions[i];
        sum += t->rewards[i];
        out->reward_min = fmin(out->reward_min, mean);
        out->reward_max = fmax(out->reward_max, mean);
    }
    out->reward = sum / (decisions ? (double)decisions : 1);
    out->slo_preservation = t->preserved / looks;
    out->cpu_utilization = t->utilized / looks;
    out->memory_utilization = t->memory / looks;
    out->violation_ratio = t->requests > 0 ? t->violations / t->requests : 0;
}
