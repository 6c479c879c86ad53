/* MP3: three ways to learn in its environment, and four rewards to learn from. */
#include "internal.h"

#include "base/random.h"
#include "train/train.h"

/* --- what is asked ---------------------------------------------------------------------------- */
enum policy { Q, REINFORCE, PPO, LEARNERS, NOTHING = LEARNERS, CHANCE, POLICIES };
enum { DESIGNS = 4, USUAL = 1 }; /* of rewards */

enum row { /* the first of those for each policy, learner or reward */
           REWARD,
           PRESERVED = REWARD + POLICIES,
           UTILISED = PRESERVED + POLICIES,
           OVER_NOTHING = UTILISED + POLICIES,
           OVER_CHANCE = OVER_NOTHING + LEARNERS,
           PPO_OVER = OVER_CHANCE + LEARNERS,
           CONVERGED_AT = PPO_OVER + PPO,
           BY_PRESERVED = CONVERGED_AT + LEARNERS,
           BY_VIOLATED = BY_PRESERVED + DESIGNS,
           BY_UTILISED = BY_VIOLATED + DESIGNS,
           ROWS = BY_UTILISED + DESIGNS
};

#define G_REWARD    "reward of a decision"
#define G_PRESERVED "SLO preservation"
#define G_UTILISED  "CPU utilisation"
#define G_NOTHING   "reward beyond doing nothing"
#define G_CHANCE    "reward beyond random actions"
#define G_PPO       "reward of PPO beyond"
#define G_CONVERGED "until it converged"
#define G_DESIGN_P  "SLO preservation, by the reward that PPO learns from"
#define G_DESIGN_V  "requests later than their goal, likewise"
#define G_DESIGN_U  "CPU utilisation, likewise"

#define COARSE "its table knows each of six figures in three steps: states that differ look alike"
#define FEW    "it had too few episodes"
#define SAYS   "comparable or better"

#define NONE  NULL, EXPERIMENT_NO_AIM, 0, NULL
#define CLEAR NULL, EXPERIMENT_AT_LEAST, 0.05

static const struct experiment_row rows[] = {
    {G_REWARD, "Q-learning", "", NONE},
    {G_REWARD, "REINFORCE", "", NONE},
    {G_REWARD, "PPO", "", NONE},
    {G_REWARD, "doing nothing", "", NONE},
    {G_REWARD, "random actions", "", NONE},
    {G_PRESERVED, "Q-learning", "%", NONE},
    {G_PRESERVED, "REINFORCE", "%", NONE},
    {G_PRESERVED, "PPO", "%", NONE},
    {G_PRESERVED, "doing nothing", "%", NONE},
    {G_PRESERVED, "random actions", "%", NONE},
    {G_UTILISED, "Q-learning", "%", NONE},
    {G_UTILISED, "REINFORCE", "%", NONE},
    {G_UTILISED, "PPO", "%", NONE},
    {G_UTILISED, "doing nothing", "%", NONE},
    {G_UTILISED, "random actions", "%", NONE},
    {G_NOTHING, "Q-learning", "", CLEAR, COARSE},
    {G_NOTHING, "REINFORCE", "", CLEAR, FEW},
    {G_NOTHING, "PPO", "", CLEAR, FEW},
    {G_CHANCE, "Q-learning", "", CLEAR, COARSE},
    {G_CHANCE, "REINFORCE", "", CLEAR, FEW},
    {G_CHANCE, "PPO", "", CLEAR, FEW},
    {G_PPO, "Q-learning", "", SAYS, EXPERIMENT_AT_LEAST, 0, FEW},
    {G_PPO, "REINFORCE", "", SAYS, EXPERIMENT_AT_LEAST, 0, FEW},
    {G_CONVERGED, "Q-learning", "episodes", NONE},
    {G_CONVERGED, "REINFORCE", "episodes", NONE},
    {G_CONVERGED, "PPO", "episodes", NONE},
    {G_DESIGN_P, "α = 0.1", "%", NONE},
    {G_DESIGN_P, "α = 0.3", "%", NONE},
    {G_DESIGN_P, "α = 0.7", "%", NONE},
    {G_DESIGN_P, "ours", "%", NONE},
    {G_DESIGN_V, "α = 0.1", "%", NONE},
    {G_DESIGN_V, "α = 0.3", "%", NONE},
    {G_DESIGN_V, "α = 0.7", "%", NONE},
    {G_DESIGN_V, "ours", "%", NONE},
    {G_DESIGN_U, "α = 0.1", "%", NONE},
    {G_DESIGN_U, "α = 0.3", "%", NONE},
    {G_DESIGN_U, "α = 0.7", "%", NONE},
    {G_DESIGN_U, "ours", "%", NONE},
};
_Static_assert(ARRAY_LEN(rows) == ROWS, "each row has its number");

static const struct experiment_line lines[] = {
    /* of each policy in each panel */
    {G_REWARD, "Q-learning"},
    {G_REWARD, "REINFORCE"},
    {G_REWARD, "PPO"},
    {G_REWARD, "doing nothing"},
    {G_REWARD, "random actions"},
    {G_PRESERVED, "Q-learning"},
    {G_PRESERVED, "REINFORCE"},
    {G_PRESERVED, "PPO"},
    {G_PRESERVED, "doing nothing"},
    {G_PRESERVED, "random actions"},
    {G_UTILISED, "Q-learning"},
    {G_UTILISED, "REINFORCE"},
    {G_UTILISED, "PPO"},
    {G_UTILISED, "doing nothing"},
    {G_UTILISED, "random actions"},
};

/* --- learning --------------------------------------------------------------------------------- */
#define EPISODES   480
#define CLUSTERS   4
#define JUDGED     16 /* episodes that nobody has learned from */
#define JUDGE_SEED 1000000
#define TRAININGS  (LEARNERS + DESIGNS - 1)

static const char *const traces[] = {
    "diurnal:rate=6,amplitude=0.8,period=3600,span=3600,demand=100,p99=250",
    "bursty:rate=2,burst=5,every=600,length=60,span=7200,demand=100,p99=250",
    "poisson:rate=5,span=3600,demand=100,p99=250",
    "poisson:rate=0.3,span=3600,demand=100,p99=250",
};

struct design {
    const char *reward; /* of an environment's formulation */
    double alpha, penalty;
};
static const struct design designs[DESIGNS] = {
    {"mp3", 0.1, 1}, {"mp3", 0.3, 1}, {"mp3", 0.7, 1}, {"default", 0, 0}};

struct outcome {
    struct train_report *rounds;
    size_t count;
    struct train_report judged;
};

/* As trying has shown. What a step changes is seen within a few steps, so that far ones count
 * little; more bins leave a table too few looks at each state. */
static void use_settings(struct train_config *out)
{
    out->ppo.activation = RL_RELU; /* two hidden layers make MP3's three */
    out->ppo.gamma = out->q.gamma = 0.9;
    out->ppo.entropy = 0.003;
    if (!out->ppo.monte_carlo)
        out->ppo.epochs = 8;
    out->bins = 3;
    out->q.rate = out->q.epsilon = 0.5;
}

static int configure(struct train_config *out, const char *algorithm, const struct design *design,
                     const struct experiment_run *run, struct error *err)
{
    if (train_config_init(out, algorithm, "mp3", err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(traces); i++)
        if (sim_config_set(&out->world, "trace", traces[i], err) < 0)
            return -1;
    out->world.reward = design->reward;
    out->world.alpha = design->alpha;
    out->world.illegal_penalty = out->world.oscillation_penalty = design->penalty;
    out->world.node_cores = 4;
    out->world.episode_steps = 50;
    out->world.clusters = CLUSTERS;
    use_settings(out);
    out->episodes = run_episodes(run, EPISODES, CLUSTERS);
    out->seed = run->seed;
    out->threads = run->threads;
    return 0;
}

/* A cluster for each episode that is judged. */
static struct sim *judge_world(const struct experiment_run *run, const struct train_config *config,
                               struct error *err)
{
    struct sim_config world = config->world;
    world.clusters = run->effort < 1 ? (int)run_episodes(run, JUDGED, 2) : JUDGED;
    return sim_new(&world, err);
}

static int learn_all(struct experiment_run *run, struct train *train, size_t number,
                     struct outcome *out, struct error *err)
{
    size_t rounds = run_episodes(run, EPISODES, CLUSTERS) / CLUSTERS + 1;
    out->rounds = xcalloc(rounds, sizeof(*out->rounds));
    for (; !train_is_done(train); out->count++) {
        double share = ((double)number + (double)out->count / (double)rounds) / TRAININGS;
        if (run_progress(run, share, err) < 0 ||
            train_round(train, &out->rounds[out->count], err) < 0)
            return -1;
    }
    return 0;
}

static int learn_and_judge(struct experiment_run *run, const struct train_config *config,
                           size_t number, struct outcome *out, struct error *err)
{
    struct train *train = train_new(config, err);
    struct sim *sim = train ? judge_world(run, config, err) : NULL;
    int result = sim ? learn_all(run, train, number, out, err) : -1;
    if (result == 0)
        train_evaluate(train, sim, JUDGE_SEED + run->seed, &out->judged);
    sim_free(sim);
    train_free(train);
    return result;
}

/* The number-th training of this seed. */
static int learn(struct experiment_run *run, size_t number, const char *algorithm,
                 const struct design *design, struct outcome *out, struct error *err)
{
    struct train_config config;
    int result = configure(&config, algorithm, design, run, err);
    if (result == 0)
        result = learn_and_judge(run, &config, number, out, err);
    train_config_clear(&config);
    return result;
}

/* --- not learning ----------------------------------------------------------------------------- */
static void decide_nothing(void *arg, const struct rl_world *world)
{
    (void)arg;
    for (size_t row = 0; row < world->rows; row++)
        for (size_t h = 0; h < world->heads.count; h++)
            world->actions[row * world->heads.count + h] = (int32_t)(world->heads.options[h] / 2);
}

/* Any option that is legal. */
static void decide_by_chance(void *arg, const struct rl_world *world)
{
    const struct rl_heads *heads = &world->heads;
    const float alike[RL_MAX_OPTIONS] = {0};
    struct rl_odds odds;
    for (size_t row = 0; row < world->rows; row++) {
        rl_odds(heads, alike, world->masks + row * heads->total, &odds);
        rl_draw(heads, &odds, arg, world->actions + row * heads->count);
    }
}

static int judge_unlearned(const struct experiment_run *run, struct outcome *out, struct error *err)
{
    struct train_config config;
    struct random random = random_stream(run->seed, 3);
    int result = configure(&config, "ppo", &designs[USUAL], run, err);
    struct sim *sim = result == 0 ? judge_world(run, &config, err) : NULL;
    if (sim) {
        uint64_t seed = JUDGE_SEED + run->seed;
        train_judge(sim, true, seed, decide_nothing, NULL, &out[NOTHING].judged);
        train_judge(sim, true, seed, decide_by_chance, &random, &out[CHANCE].judged);
    }
    train_config_clear(&config);
    sim_free(sim);
    return sim ? 0 : -1;
}

/* --- figures ---------------------------------------------------------------------------------- */
static void tell_policies(struct experiment_run *run, const struct outcome *policies)
{
    double nothing = policies[NOTHING].judged.reward, chance = policies[CHANCE].judged.reward;
    for (size_t i = 0; i < POLICIES; i++) {
        run_set(run, REWARD + i, policies[i].judged.reward);
        run_set(run, PRESERVED + i, 100 * policies[i].judged.slo_preservation);
        run_set(run, UTILISED + i, 100 * policies[i].judged.cpu_utilization);
    }
    for (size_t i = 0; i < LEARNERS; i++) {
        run_set(run, OVER_NOTHING + i, policies[i].judged.reward - nothing);
        run_set(run, OVER_CHANCE + i, policies[i].judged.reward - chance);
    }
    for (size_t i = 0; i < PPO; i++)
        run_set(run, PPO_OVER + i, policies[PPO].judged.reward - policies[i].judged.reward);
}

static void tell_designs(struct experiment_run *run, const struct outcome *by)
{
    for (size_t i = 0; i < DESIGNS; i++) {
        run_set(run, BY_PRESERVED + i, 100 * by[i].judged.slo_preservation);
        run_set(run, BY_VIOLATED + i, 100 * by[i].judged.violation_ratio);
        run_set(run, BY_UTILISED + i, 100 * by[i].judged.cpu_utilization);
    }
}

enum { PANELS = 3 };
_Static_assert(ARRAY_LEN(lines) == PANELS * POLICIES, "each line has its place");

static double figure(const struct train_report *report, size_t panel)
{
    const double of[PANELS] = {report->reward, report->slo_preservation, report->cpu_utilization};
    return of[panel];
}

/* Each point is the mean of the window that ends there. */
static void draw(struct experiment_run *run, size_t panel, size_t policy, const struct outcome *o,
                 size_t window)
{
    cleanup_free double *x = xcalloc(o->count, sizeof(*x)), *y = xcalloc(o->count, sizeof(*y));
    for (size_t i = 0; i < o->count; i++) {
        size_t first = i + 1 > window ? i + 1 - window : 0;
        for (size_t k = first; k <= i; k++)
            y[i] += figure(&o->rounds[k], panel) / (double)(i + 1 - first);
        x[i] = (double)o->rounds[i].episodes;
    }
    run_line(run, panel * POLICIES + policy, x, y, o->count);
}

/* What never learns is the same from end to end. */
static void draw_flat(struct experiment_run *run, size_t panel, size_t policy,
                      const struct outcome *o, const struct outcome *beside)
{
    double x[] = {(double)beside->rounds[0].episodes,
                  (double)beside->rounds[beside->count - 1].episodes};
    double y[] = {figure(&o->judged, panel), figure(&o->judged, panel)};
    run_line(run, panel * POLICIES + policy, x, y, 2);
}

static void tell_curves(struct experiment_run *run, const struct outcome *policies)
{
    for (size_t i = 0; i < POLICIES; i++) {
        const struct outcome *o = &policies[i];
        size_t window = o->count / 20 > 1 ? o->count / 20 : 1;
        size_t converged = train_converged(o->rounds, o->count, o->count / 8, 0.05);
        if (converged < o->count)
            run_set(run, CONVERGED_AT + i, (double)o->rounds[converged - 1].episodes);
        for (size_t panel = 0; panel < PANELS; panel++) {
            if (i < LEARNERS)
                draw(run, panel, i, o, window);
            else
                draw_flat(run, panel, i, o, &policies[PPO]);
        }
    }
}

/* --- all of it -------------------------------------------------------------------------------- */
static int learn_everything(struct experiment_run *run, struct outcome *policies,
                            struct outcome *by, struct error *err)
{
    static const char *const algorithms[LEARNERS] = {"qlearning", "reinforce", "ppo"};
    size_t number = 0;
    for (size_t i = 0; i < LEARNERS; i++)
        if (learn(run, number++, algorithms[i], &designs[USUAL], &policies[i], err) < 0)
            return -1;
    by[USUAL].judged = policies[PPO].judged;
    for (size_t i = 0; i < DESIGNS; i++)
        if (i != USUAL && learn(run, number++, "ppo", &designs[i], &by[i], err) < 0)
            return -1;
    return 0;
}

static int run_mp3(struct experiment_run *run, struct error *err)
{
    struct outcome policies[POLICIES] = {0}, by[DESIGNS] = {0};
    int result = judge_unlearned(run, policies, err);
    if (result == 0)
        result = learn_everything(run, policies, by, err);
    if (result == 0) {
        tell_policies(run, policies);
        tell_designs(run, by);
        tell_curves(run, policies);
    }
    for (size_t i = 0; i < POLICIES; i++)
        free(policies[i].rounds);
    for (size_t i = 0; i < DESIGNS; i++)
        free(by[i].rounds);
    return result;
}

const struct experiment experiment_mp3 = {
    .name = "mp3",
    .title = "Three ways to learn, four rewards to learn from",
    .document = "Mini Project 3 of ECE 471 (fall 2022), tasks 2 and 3",
    .setting =
        "Four functions share a node of four cores. Their workloads, drawn anew for each\n"
        "episode, are a day and night in an hour, bursts, a steady and a sparse one, of 0.3\n"
        "to 11 requests a second that need 100 ms of CPU each (p99 250 ms). The goal is twice\n"
        "that p99. Every 15 s, 50 times in an episode, each function's agent sees MP3's six\n"
        "figures, may change its containers by one and their `cpu.shares` by 128, and gets α\n"
        "· SLO preservation + (1 − α) · CPU utilisation, less 1 for taking back its last step\n"
        "([environment](../environment.md#mp3)). It begins with one container of 512 shares.\n"
        "\n"
        "- MP3 asks for Q-learning, REINFORCE and PPO with an actor of three fully connected\n"
        "  layers, ReLU and softmax. Ours are these, with two hidden layers of 64 and a table\n"
        "  of three bins for each figure.\n"
        "- Each learns from 480 episodes, four clusters at a time. Then its likeliest actions\n"
        "  are judged on 16 episodes that nobody has learned from, the same for all. Curves\n"
        "  show it while it learns, when it still tries things out. It has converged when the\n"
        "  mean of an eighth of the episodes stays within 5 % of where it ends.\n"
        "- MP3's task 3 is to design a reward. PPO learns from four: α of 0.1, 0.3 (MA-PPO's)\n"
        "  and 0.7, and [our own](../environment.md#default): CPU paid for each that is\n"
        "  needed, and requests that break the goal.\n"
        "- MP3 has no figures: aims are ours, and so are workloads and the settings of\n"
        "  learning, which were chosen by trying. The node of MP3's example has two cores;\n"
        "  there, four such functions are short of CPU whatever they do.",
    .rows = rows,
    .row_count = ROWS,
    .x_label = "episodes",
    .lines = lines,
    .line_count = ARRAY_LEN(lines),
    .run = run_mp3,
    .headline = OVER_NOTHING + PPO,
};
