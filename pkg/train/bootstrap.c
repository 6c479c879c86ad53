/* Policies that begin with what somebody else does, instead of with nothing. */
#include "internal.h"

#include <math.h>
#include <string.h>

/* --- thresholds ------------------------------------------------------------------------------ */
#define SLOW        0.9 /* of the latency goal: more is needed */
#define FAST        0.6 /* below: less may do */
#define BUSY        0.8 /* of the CPU */
#define IDLE        0.5
#define THROTTLED   0.1 /* of CFS periods: a replica is too small, whatever their number */
#define FULL        0.9 /* of the memory */
#define HALF_EMPTY  0.55
#define MAY_BE_LATE 0.01 /* of requests */

/* One step more (1) or less (−1), or the largest one (2), if it is legal. */
static void move(const struct sim_dimension *dimension, const uint8_t *mask, int steps,
                 int32_t *option)
{
    int hold = (int)dimension->option_count / 2;
    int wanted = steps == 2 ? (int)dimension->option_count - 1 : hold + steps;
    *option = mask[wanted] ? wanted : hold;
}

static bool is_slow(const double *f, double share)
{
    return f[SIM_LATENCY_MS] > share * f[SIM_GOAL_MS] || f[SIM_VIOLATION_RATIO] > MAY_BE_LATE;
}

/* A replica that was killed for memory shows little of it: what is slow may have been. */
static int want_memory(const double *f)
{
    double used = f[SIM_MEMORY_UTILIZATION];
    if (used > FULL || is_slow(f, 1))
        return 1;
    return used < HALF_EMPTY && used > 0 ? -1 : 0;
}

static bool is_idle(const double *f)
{
    return !is_slow(f, FAST) && f[SIM_CPU_UTILIZATION] < IDLE;
}

static int want_replicas(const double *f)
{
    if (is_slow(f, 1))
        return 2;
    if (is_slow(f, SLOW) || f[SIM_CPU_UTILIZATION] > BUSY)
        return 1;
    return is_idle(f) ? -1 : 0;
}

/* Replicas go first; a replica grows where it is what holds requests up. */
static int want_cpu(const double *f)
{
    if (f[SIM_THROTTLED_RATIO] > THROTTLED && is_slow(f, SLOW))
        return is_slow(f, 1) ? 2 : 1;
    return is_idle(f) && f[SIM_REPLICAS] <= 1 && f[SIM_THROTTLED_RATIO] < THROTTLED ? -1 : 0;
}

static int want(const char *dimension, const double *figures)
{
    if (strstr(dimension, "memory"))
        return want_memory(figures);
    if (strstr(dimension, "replicas") || strstr(dimension, "horizontal"))
        return want_replicas(figures);
    return want_cpu(figures);
}

static void decide_by_thresholds(const void *arg, const struct sim_shape *shape,
                                 const double *figures, const uint8_t *mask, int32_t *action)
{
    (void)arg;
    for (size_t d = 0; d < shape->action_size; mask += shape->dimensions[d++].option_count) {
        const struct sim_dimension *dimension = &shape->dimensions[d];
        move(dimension, mask, want(dimension->name, figures), &action[d]);
    }
}

const struct train_teacher train_thresholds = {decide_by_thresholds, NULL};

/* --- lessons --------------------------------------------------------------------------------- */
static void decide(const struct train_teacher *teacher, const struct sim *sim)
{
    const struct sim_shape *s = sim_shape(sim);
    const struct sim_block *b = sim_block(sim);
    for (size_t row = 0; row < s->clusters * s->functions; row++)
        if (b->present[row])
            teacher->decide(teacher->arg, s, b->figures + row * SIM_FIGURE_COUNT,
                            b->masks + row * s->mask_size, b->actions + row * s->action_size);
}

static void take_lessons(struct train *t, const struct train_teacher *teacher, struct rl_log **logs,
                         size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        decide(teacher, t->sim);
        for (size_t k = 0; k < t->learner_count; k++)
            rl_log_act(logs[k], NULL);
        t->world.step(t->world.self);
        for (size_t k = 0; k < t->learner_count; k++)
            rl_log_see(logs[k]);
    }
}

static int learn_lessons(struct train *t, struct rl_log **logs,
                         const struct rl_clone_config *config, struct rl_clone_report *report,
                         struct error *err)
{
    *report = (struct rl_clone_report){.agreement = 1};
    for (size_t k = 0; k < t->learner_count; k++) {
        struct rl_clone_report one;
        if (rl_clone(train_actor(t, k), logs[k], config, &one, err) < 0)
            return -1;
        if (one.agreement <= report->agreement)
            *report = one;
    }
    return 0;
}

static int clone_all(struct train *t, const struct train_teacher *teacher, struct rl_log **logs,
                     size_t steps, const struct rl_clone_config *config,
                     struct rl_clone_report *report, struct error *err)
{
    for (size_t k = 0; k < t->learner_count; k++) {
        struct rl_rows rows = {k, t->learner_count};
        logs[k] = rl_log_new(&t->world, rows, steps, err);
        if (logs[k] == NULL)
            return -1;
    }
    take_lessons(t, teacher, logs, steps);
    return learn_lessons(t, logs, config, report, err);
}

int train_clone(struct train *t, const struct train_teacher *teacher, size_t rounds,
                const struct rl_clone_config *config, struct rl_clone_report *report,
                struct error *err)
{
    size_t steps = rounds * ((size_t)t->config.world.episode_steps + 1);
    if (train_actor(t, 0) == NULL)
        return error_set(err, ERROR_INVALID, "%s has no network that could be taught",
                         t->config.algorithm->name);
    cleanup_free struct rl_log **logs = xcalloc(t->learner_count, sizeof(struct rl_log *));
    int result = clone_all(t, teacher, logs, steps, config, report, err);
    for (size_t k = 0; k < t->learner_count; k++)
        rl_log_free(logs[k]);
    return result;
}

void train_evaluate_teacher(const struct train_teacher *teacher, struct sim *sim, uint64_t seed,
                            struct train_report *report)
{
    struct tally tally;
    int64_t begun_ms = clock_mono_ms();
    tally_init(&tally, sim);
    sim_reset(sim, seed);
    do {
        tally_before(&tally);
        decide(teacher, sim);
        sim_step(sim);
        tally_after(&tally);
    } while (!sim_block(sim)->truncated[0]);
    *report = (struct train_report){
        .episodes = sim_shape(sim)->clusters,
        .steps = tally_decisions(&tally),
        .seconds = (double)(clock_mono_ms() - begun_ms) / 1000,
    };
    tally_report(&tally, report);
    tally_clear(&tally);
}

/* --- from one to the other ------------------------------------------------------------------- */
static int adopt_net(struct rl_net *to, const struct rl_net *from, struct error *err)
{
    if (to == NULL || from == NULL)
        return error_set(err, ERROR_INVALID, "there are no networks to take over");
    if (rl_shape_check(&from->shape, &to->shape, err) < 0)
        return -1;
    memcpy(to->params, from->params, to->param_count * sizeof(*to->params));
    return 0;
}

int train_inherit(struct train *t, const struct train *from, struct error *err)
{
    for (size_t k = 0; k < t->learner_count; k++) {
        size_t of = k % from->learner_count;
        if (adopt_net(train_actor(t, k), train_actor(from, of), err) < 0 ||
            adopt_net(train_critic(t, k), train_critic(from, of), err) < 0)
            return -1;
    }
    return 0;
}
