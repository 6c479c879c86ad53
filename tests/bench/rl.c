/* Learning: one decision, one step of training, and the network's own speed. */
#include "bench.h"

#include "../unit/rl_worlds.h"
#include "experiment/tenants.h"
#include "train/train.h"

static void make_net(struct rl_net *net, size_t inputs, size_t outputs)
{
    struct random random = random_stream(1, 1);
    if (rl_net_make(net, &(struct rl_shape){inputs, outputs, {64, 64}, 2, RL_TANH}, NULL) < 0)
        abort();
    rl_net_randomise(net, 0.01f, &random);
}

/* Each input depends on the output before, so that no two decisions overlap. */
struct figure bench_policy_forward(void)
{
    enum { ROUNDS = 500000 };
    struct rl_net net;
    float in[16] = {0}, out[8];
    make_net(&net, 16, 8);
    double t = bench_cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        rl_net_row(&net, in, out);
        in[i % 16] = out[i % 8];
    }
    double us = (bench_cpu_s() - t) / ROUNDS * 1e6;
    rl_net_clear(&net);
    return (struct figure){"policy_forward_us", "us", NULL, us, NAN, 0.5, false};
}

/* There and back, in batches of 1,024. */
struct figure bench_net_samples(void)
{
    enum { ROWS = 1024, ROUNDS = 300 };
    struct rl_net net;
    struct rl_work work = {0};
    struct random random = random_stream(2, 1);
    make_net(&net, 16, 8);
    cleanup_free float *in = xcalloc(ROWS * 16, sizeof(float));
    cleanup_free float *d_out = xcalloc(ROWS * 8, sizeof(float));
    cleanup_free float *gradient = xcalloc(net.param_count, sizeof(float));
    for (size_t i = 0; i < ROWS * 16; i++)
        in[i] = (float)random_normal(&random);
    for (size_t i = 0; i < ROWS * 8; i++)
        d_out[i] = (float)random_normal(&random);
    double t = bench_cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        rl_net_forward(&net, in, ROWS, &work);
        rl_net_backward(&net, &work, d_out, gradient);
    }
    double rate = ROWS * ROUNDS / (bench_cpu_s() - t);
    rl_work_clear(&work);
    rl_net_clear(&net);
    return (struct figure){"net_samples_per_s", "/s", NULL, rate, NAN, 1.1e6, true};
}

/* --- training at the papers' settings: 200 steps, then 5 epochs of minibatches of 5 -------------
 */
static double steps_per_s(const struct rl_world *world, int updates)
{
    struct rl_ppo_report report;
    struct error err;
    struct rl_ppo *ppo = rl_ppo_new(&rl_ppo_paper, world, rl_all_rows, (size_t)updates, 1, &err);
    double t = bench_cpu_s();
    for (int i = 0; i < updates; i++) {
        while (!rl_ppo_is_full(ppo)) {
            rl_ppo_act(ppo);
            world->step(world->self);
            rl_ppo_see(ppo);
        }
        if (rl_ppo_update(ppo, &report, &err) < 0)
            abort();
    }
    double rate = (double)rl_ppo_paper.horizon * updates / (bench_cpu_s() - t);
    rl_ppo_free(ppo);
    return rate;
}

/* CartPole: one cart. */
struct figure bench_train_steps(void)
{
    struct carts c;
    carts_init(&c, 1, 1);
    double rate = steps_per_s(&c.world, 250);
    return (struct figure){"train_steps_per_s", "/s", NULL, rate, NAN, 25500, true};
}

/* Our own environment as it is when nothing is set: one function, decided on every 15 s, with all
 * requests simulated. As in the binding, illegal options can be chosen. */
struct figure bench_train_sim_steps(void)
{
    const char *settings[] = {NULL};
    struct error err;
    struct rl_world world;
    struct sim *sim = sim_open("default", settings, &err);
    if (sim == NULL)
        abort();
    train_world(sim, false, &world);
    world.reset(world.self, 1);
    double rate = steps_per_s(&world, 100);
    sim_free(sim);
    return (struct figure){"train_sim_steps_per_s", "/s", NULL, rate, NAN, NAN, true};
}

/* Seconds until five functions that begin with nothing have come to rest, on two cores. */
static double train_five(const char *algorithm)
{
    enum { EPISODES = 400 };
    struct tenants five = {algorithm, TENANT_KINDS, false, false, 0};
    struct tenants_curve curve = {.functions = TENANT_KINDS};
    struct train_config config;
    struct train_report report;
    struct error err;
    if (tenants_configure(&five, &config, &err) < 0)
        abort();
    config.episodes = EPISODES;
    config.threads = 2;
    config.world.threads = 2;
    struct train *train = train_new(&config, &err);
    while (!train_is_done(train)) {
        if (train_round(train, &report, &err) < 0)
            abort();
        tenants_curve_add(&curve, train, &report);
    }
    double episodes = tenants_converged(&curve, TENANTS_MEAN), seconds = INFINITY;
    for (size_t i = 0; i < curve.count && !((double)curve.rounds[i].episodes > episodes); i++)
        seconds = curve.rounds[i].seconds;
    bool rests = !isnan(episodes);
    tenants_curve_clear(&curve);
    train_free(train);
    train_config_clear(&config);
    return rests ? seconds : INFINITY;
}

/* Of MA-PPO and SIMPPO the slower one. */
struct figure bench_train_five(void)
{
    double s = fmax(train_five("mappo"), train_five("simppo"));
    return (struct figure){"train_5_functions_s", "s", NULL, s, NAN, 10, false};
}
