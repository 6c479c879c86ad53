/* Learning: one decision, one step of training, and the network's own speed. */
#include "bench.h"

#include "../unit/rl_worlds.h"

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

/* CartPole at the papers' settings: one cart, 200 steps, then 5 epochs of minibatches of 5. */
struct figure bench_train_steps(void)
{
    enum { UPDATES = 250 };
    struct carts c;
    struct rl_ppo_report report;
    struct error err;
    carts_init(&c, 1, 1);
    struct rl_ppo *ppo = rl_ppo_new(&rl_ppo_paper, &c.world, rl_all_rows, UPDATES, 1, &err);
    double t = bench_cpu_s();
    for (int i = 0; i < UPDATES; i++) {
        while (!rl_ppo_is_full(ppo)) {
            rl_ppo_act(ppo);
            carts_step(&c);
            rl_ppo_see(ppo);
        }
        if (rl_ppo_update(ppo, &report, &err) < 0)
            abort();
    }
    double rate = (double)rl_ppo_paper.horizon * UPDATES / (bench_cpu_s() - t);
    rl_ppo_free(ppo);
    return (struct figure){"train_steps_per_s", "/s", NULL, rate, NAN, 25500, true};
}
