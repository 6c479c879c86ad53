/* Adapting to an application that was never seen: told by an embedding, or by parameters alone. */
#include "aware.h"

#include <math.h>
#include <string.h>

#include "rl/embed.h"

#define KNOWN      24  /* applications that are learned from */
#define UNSEEN     5   /* that are adapted to */
#define META       60  /* episodes of each known one */
#define LOGGED     6   /* of which the embedding learns from so many more */
#define ADAPT      30  /* episodes of adapting */
#define TO_THE_END 160 /* of the policy that is adapted to */
#define LAST       10  /* of either, whose mean is where it leads to */
#define WINDOW     3   /* episodes that must be good in the mean */
#define GOOD       0.95
#define CURIOUS    0.3   /* share of actions by chance in what is logged */
#define FORGETS    0.33  /* share of histories that begin anew with an episode */
#define LEAST      0.005 /* of a deficit, to divide by */

#define SOURCES 3 /* known applications that a policy is transferred from */

enum arm { EMBEDDING, TL, TL_PLUS, SHARED, NOTHING, ARMS };

/* --- a policy in its world -------------------------------------------------------------------- */
struct session {
    struct fleet *fleet;
    struct rl_embedded *told; /* NULL: it is not */
    const struct rl_world *world;
    struct rl_ppo *ppo;
};

static void session_clear(struct session *s)
{
    rl_ppo_free(s->ppo);
    rl_embedded_free(s->told);
    fleet_free(s->fleet);
    *s = (struct session){0};
}

static int session_init(struct session *s, const struct app *apps, size_t count, enum arm arm,
                        const struct rl_embed *embed, size_t episodes, uint64_t seed,
                        struct error *err)
{
    struct rl_ppo_config config = rl_ppo_default;
    *s = (struct session){.fleet = fleet_new(apps, count, arm == TL_PLUS, err)};
    if (s->fleet == NULL)
        return -1;
    s->world = fleet_world(s->fleet);
    if (arm == EMBEDDING) {
        s->told = rl_embedded_new(embed, s->world);
        s->world = rl_embedded_world(s->told);
    }
    aware_ppo(&config);
    if (count > 1)
        config.minibatch = 256;
    else
        config.rate_end = 1; /* who adapts does not know for how long */
    s->ppo = rl_ppo_new(&config, s->world, rl_all_rows, episodes, seed, err);
    s->world->reset(s->world->self, seed);
    return s->ppo ? 0 : -1;
}

/* One episode of each application, and what is learned from it. */
static int session_episode(struct session *s, struct sums *out, struct error *err)
{
    struct rl_ppo_report report;
    fleet_begin_sums(s->fleet);
    while (!rl_ppo_is_full(s->ppo)) {
        rl_ppo_act(s->ppo);
        s->world->step(s->world->self);
        rl_ppo_see(s->ppo);
    }
    *out = *fleet_sums(s->fleet);
    return rl_ppo_update(s->ppo, &report, err);
}

static void forget_some(struct session *s, struct random *random)
{
    for (size_t row = 0; s->told && row < s->world->rows; row++)
        if (random_uniform(random) < FORGETS)
            rl_embedded_forget(s->told, row);
}

/* --- learning from known applications ----------------------------------------------------------
 */
struct study {
    struct experiment_run *run;
    struct app known[KNOWN], unseen[UNSEEN];
    struct rl_embed *embed;
    struct session taught[ARMS][SOURCES]; /* what is begun with; TL: by one application each */
    struct sums sums[ARMS];               /* while adapting */
    struct sums best;                     /* where adapting leads to */
    double episodes[ARMS];                /* until it has adapted, mean of the unseen */
    double *curves[ARMS];
    size_t adapt, to_the_end;
};

static int learn_known(struct study *st, enum arm arm, size_t source, struct error *err)
{
    bool one = arm == TL || arm == TL_PLUS;
    size_t episodes = one ? st->to_the_end : run_episodes(st->run, META, 4);
    struct session *s = &st->taught[arm][source];
    struct random random = random_stream(st->run->seed, 70);
    struct sums sums;
    if (session_init(s, st->known + source, one ? 1 : KNOWN, arm, st->embed, episodes,
                     st->run->seed, err) < 0)
        return -1;
    for (size_t i = 0; i < episodes; i++) {
        if (session_episode(s, &sums, err) < 0)
            return -1;
        forget_some(s, &random);
    }
    return 0;
}

/* As the policy would, but for some actions by chance. */
static void choose(struct session *s, struct random *random)
{
    const struct rl_world *w = s->world;
    float logits[RL_MAX_OPTIONS];
    struct rl_odds odds;
    for (size_t row = 0; row < w->rows; row++) {
        if (random_uniform(random) < CURIOUS)
            memset(logits, 0, sizeof(logits));
        else
            rl_net_row(rl_ppo_actor(s->ppo), w->observations + row * w->observation_size, logits);
        rl_odds(&w->heads, logits, w->masks + row * w->heads.total, &odds);
        rl_draw(&w->heads, &odds, random, w->actions + row * w->heads.count);
    }
}

/* Episodes of a policy without an embedding, for one to learn from. */
static struct rl_log *watch(struct study *st, struct error *err)
{
    struct session *s = &st->taught[SHARED][0];
    struct random random = random_stream(st->run->seed, 71);
    size_t steps = LOGGED * (APP_STEPS + 1);
    struct rl_log *log = rl_log_new(s->world, rl_all_rows, steps, err);
    for (size_t i = 0; log && i < steps; i++) {
        choose(s, &random);
        rl_log_act(log, NULL);
        s->world->step(s->world->self);
        rl_log_see(log);
    }
    return log;
}

static int learn_embedding(struct study *st, struct error *err)
{
    struct rl_embed_config config = rl_embed_default;
    struct rl_embed_report report;
    struct rl_log *log = watch(st, err);
    config.seed = st->run->seed;
    config.updates = run_episodes(st->run, config.updates, 100);
    st->embed = log ? rl_embed_new(&config, st->taught[SHARED][0].world, err) : NULL;
    int result = st->embed ? rl_embed_learn(st->embed, log, &report, err) : -1;
    rl_log_free(log);
    return result;
}

/* --- adapting --------------------------------------------------------------------------------- */
static void take_over(struct session *to, struct session *from)
{
    const struct rl_net *actor = rl_ppo_actor(from->ppo), *critic = rl_ppo_critic(from->ppo);
    memcpy(rl_ppo_actor(to->ppo)->params, actor->params, actor->param_count * sizeof(float));
    memcpy(rl_ppo_critic(to->ppo)->params, critic->params, critic->param_count * sizeof(float));
}

/* The first episode from which on a window of them is good. */
static size_t count_episodes(const double *rewards, size_t count, double good)
{
    for (size_t i = 0; i + WINDOW <= count; i++) {
        double sum = 0;
        for (size_t k = 0; k < WINDOW; k++)
            sum += rewards[i + k] / WINDOW;
        if (sum >= good)
            return i + 1;
    }
    return count;
}

static int learn_to_the_end(const struct study *st, const struct app *app, struct sums *last,
                            struct error *err)
{
    struct session s;
    struct sums sums;
    int result = session_init(&s, app, 1, NOTHING, st->embed, st->to_the_end, st->run->seed, err);
    for (size_t i = 0; i < st->to_the_end && result == 0; i++) {
        result = session_episode(&s, &sums, err);
        if (i + LAST >= st->to_the_end)
            sums_join(last, &sums);
    }
    session_clear(&s);
    return result;
}

static int adapt(struct study *st, size_t unseen, enum arm arm, double *rewards, struct sums *last,
                 struct error *err)
{
    struct session s;
    struct sums sums;
    size_t source = arm == TL || arm == TL_PLUS ? unseen % SOURCES : 0;
    int result = session_init(&s, &st->unseen[unseen], 1, arm, st->embed, st->adapt,
                              st->run->seed + 500, err);
    if (result == 0 && arm != NOTHING)
        take_over(&s, &st->taught[arm][source]);
    for (size_t i = 0; i < st->adapt && result == 0; i++) {
        result = session_episode(&s, &sums, err);
        rewards[i] = sums.reward / sums.steps;
        st->curves[arm][i] += rewards[i] / UNSEEN;
        sums_join(&st->sums[arm], &sums);
        if (i + LAST >= st->adapt)
            sums_join(last, &sums);
    }
    session_clear(&s);
    return result;
}

/* What can be reached: by who learns to the end, or by the best of those who adapt. */
static const struct sums *find_best(const struct sums *last, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (last[i].reward / last[i].steps > last[best].reward / last[best].steps)
            best = i;
    return &last[best];
}

static int adapt_to(struct study *st, size_t unseen, struct error *err)
{
    struct sums last[ARMS + 1] = {0};
    cleanup_free double *rewards = xcalloc(ARMS * st->adapt, sizeof(*rewards));
    if (learn_to_the_end(st, &st->unseen[unseen], &last[ARMS], err) < 0)
        return -1;
    for (enum arm arm = 0; arm < ARMS; arm++)
        if (adapt(st, unseen, arm, rewards + arm * st->adapt, &last[arm], err) < 0)
            return -1;
    const struct sums *best = find_best(last, ARMS + 1);
    sums_join(&st->best, best);
    for (enum arm arm = 0; arm < ARMS; arm++) {
        size_t episodes =
            count_episodes(rewards + arm * st->adapt, st->adapt, GOOD * best->reward / best->steps);
        st->episodes[arm] += (double)episodes / UNSEEN;
    }
    return 0;
}

static int adapt_all(struct study *st, struct error *err)
{
    for (size_t i = 0; i < UNSEEN; i++)
        if (adapt_to(st, i, err) < 0 ||
            run_progress(st->run, 0.4 + 0.3 * (double)(i + 1) / UNSEEN, err) < 0)
            return -1;
    return 0;
}

/* --- telling ---------------------------------------------------------------------------------- */
static double deficit(const struct study *st, enum arm arm, bool memory)
{
    const struct sums *s = &st->sums[arm], *best = &st->best;
    double mine = (memory ? s->memory : s->cpu) / s->steps;
    return fmax((memory ? best->memory : best->cpu) / best->steps - mine, LEAST);
}

static void tell(const struct study *st)
{
    struct experiment_run *run = st->run;
    static const size_t rows[ARMS] = {ROW_EMBEDDING, ROW_TL, ROW_TL_PLUS, ROW_SHARED, ROW_NOTHING};
    static const size_t lines[ARMS] = {LINE_EMBEDDING, LINE_TL, LINE_TL_PLUS, LINE_SHARED,
                                       LINE_NOTHING};
    cleanup_free double *x = xcalloc(st->adapt, sizeof(*x));
    for (size_t i = 0; i < st->adapt; i++)
        x[i] = (double)(i + 1);
    for (enum arm arm = 0; arm < ARMS; arm++) {
        run_set(run, rows[arm], st->episodes[arm]);
        run_line(run, lines[arm], x, st->curves[arm], st->adapt);
    }
    run_set(run, ROW_FASTER_TL, st->episodes[TL] / st->episodes[EMBEDDING]);
    run_set(run, ROW_FASTER_TL_PLUS, st->episodes[TL_PLUS] / st->episodes[EMBEDDING]);
    run_set(run, ROW_FASTER_SHARED, st->episodes[SHARED] / st->episodes[EMBEDDING]);
    run_set(run, ROW_DEFICIT_CPU, deficit(st, TL, false) / deficit(st, EMBEDDING, false));
    run_set(run, ROW_DEFICIT_MEMORY, deficit(st, TL, true) / deficit(st, EMBEDDING, true));
    run_set(run, ROW_ADAPT_VIOLATIONS,
            sums_violations(&st->sums[TL]) / fmax(sums_violations(&st->sums[EMBEDDING]), 1e-6));
}

static int learn_sources(struct study *st, struct error *err)
{
    for (size_t i = 0; i < SOURCES; i++)
        if (learn_known(st, TL, i, err) < 0 || learn_known(st, TL_PLUS, i, err) < 0 ||
            run_progress(st->run, 0.3 + 0.1 * (double)(i + 1) / SOURCES, err) < 0)
            return -1;
    return 0;
}

static int study(struct study *st, struct error *err)
{
    if (learn_known(st, SHARED, 0, err) < 0 || run_progress(st->run, 0.1, err) < 0 ||
        learn_embedding(st, err) < 0 || run_progress(st->run, 0.15, err) < 0 ||
        learn_known(st, EMBEDDING, 0, err) < 0 || run_progress(st->run, 0.3, err) < 0 ||
        learn_sources(st, err) < 0 || adapt_all(st, err) < 0)
        return -1;
    tell(st);
    return 0;
}

int aware_adapt(struct experiment_run *run, struct error *err)
{
    struct study st = {.run = run,
                       .adapt = run_episodes(run, ADAPT, 5),
                       .to_the_end = run_episodes(run, TO_THE_END, LAST)};
    struct random random = random_stream(run->seed, 72);
    for (size_t i = 0; i < KNOWN; i++)
        app_draw(&st.known[i], &random);
    for (size_t i = 0; i < UNSEEN; i++)
        app_draw(&st.unseen[i], &random);
    for (enum arm arm = 0; arm < ARMS; arm++)
        st.curves[arm] = xcalloc(st.adapt, sizeof(double));
    int result = study(&st, err);
    for (enum arm arm = 0; arm < ARMS; arm++) {
        for (size_t i = 0; i < SOURCES; i++)
            session_clear(&st.taught[arm][i]);
        free(st.curves[arm]);
    }
    rl_embed_free(st.embed);
    return result;
}
