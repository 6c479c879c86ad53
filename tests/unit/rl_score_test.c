/* Scores of options: the gradient against finite differences, and decisions with known answers. */
#include "rl_worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { WIDTH = 3, STATE = 2, MOST_ROWS = 16 };

static const struct rl_ppo_config plain = {
    .hidden = {5, 4},
    .hidden_count = 2,
    .activation = RL_TANH,
    .actor_rate = 1e-3,
    .critic_rate = 1e-3,
    .rate_end = 1,
    .lambda = 1,
    .clip = 0.2,
    .entropy = 0.05,
    .critic_weight = 0.5,
    .horizon = 1,
    .epochs = 1,
};

/* --- one update against finite differences --- */
enum { DECISIONS = 9 };

struct sample {
    struct rl_heads heads;
    float rows[MOST_ROWS][WIDTH], state[STATE];
    int32_t action[2];
    double reward;
};

static double plain_output(const struct rl_net *net, const double *params, const float *in)
{
    double buffers[2][8] = {{0}};
    for (size_t k = 0; k < net->shape.inputs; k++)
        buffers[1][k] = in[k];
    for (size_t i = 0; i < net->layer_count; i++) {
        const struct rl_layer *l = &net->layers[i];
        const double *x = buffers[(i + 1) % 2];
        double *y = buffers[i % 2];
        for (size_t k = 0; k < l->out; k++) {
            y[k] = params[l->biases + k];
            for (size_t j = 0; j < l->in; j++)
                y[k] += x[j] * params[l->weights + j * l->out + k];
            y[k] = i + 1 < net->layer_count ? tanh(y[k]) : y[k];
        }
    }
    return buffers[(net->layer_count - 1) % 2][0];
}

/* -A · log p(action) - entropy_weight · H, which has PPO's gradient where the policy has not moved.
 */
static double plain_loss(const struct rl_net *net, const double *params, const struct sample *s,
                         double advantage)
{
    double loss = 0;
    size_t at = 0;
    for (size_t h = 0; h < s->heads.count; at += s->heads.options[h++]) {
        double scores[MOST_ROWS], sum = 0, entropy = 0;
        for (size_t k = 0; k < s->heads.options[h]; k++)
            sum += exp(scores[k] = plain_output(net, params, s->rows[at + k]));
        for (size_t k = 0; k < s->heads.options[h]; k++)
            entropy -= exp(scores[k]) / sum * (scores[k] - log(sum));
        loss -= advantage * (scores[s->action[h]] - log(sum)) + plain.entropy * entropy;
    }
    return loss;
}

static void make_sample(struct sample *s, struct random *random)
{
    size_t options[2] = {1 + random_below(random, 6), 1 + random_below(random, 6)};
    assert_int_equal(rl_heads_init(&s->heads, options, 1 + random_below(random, 2), NULL), 0);
    for (size_t i = 0; i < MOST_ROWS; i++)
        for (size_t k = 0; k < WIDTH; k++)
            s->rows[i][k] = (float)random_normal(random);
    for (size_t k = 0; k < STATE; k++)
        s->state[k] = (float)random_normal(random);
    s->reward = random_normal(random);
}

static double *as_doubles(const struct rl_net *net)
{
    double *params = xcalloc(net->param_count, sizeof(*params));
    for (size_t i = 0; i < net->param_count; i++)
        params[i] = net->params[i];
    return params;
}

/* The derivative of the mean loss by parameter i. */
static double difference(const struct rl_net *net, double *params, size_t i,
                         const struct sample *samples, const double *advantages)
{
    double kept = params[i], sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        params[i] = kept + side * 1e-5;
        for (size_t k = 0; k < DECISIONS; k++)
            sum += side * plain_loss(net, params, &samples[k], advantages[k]);
    }
    params[i] = kept;
    return sum / 2e-5 / DECISIONS;
}

/* Adam's first step is rate × the sign of the gradient, for each parameter. */
static void test_update_follows_finite_differences(void **state)
{
    struct sample samples[DECISIONS];
    double advantages[DECISIONS];
    struct rl_ppo_report report;
    struct random random = random_stream(11, 0);
    size_t checked = 0;
    (void)state;
    struct rl_score *score = rl_score_new(&plain, WIDTH, STATE, 1, 3, NULL);
    struct rl_net *actor = rl_score_actor(score), *critic = rl_score_critic(score);
    rl_net_randomise(actor, 1, &random);
    cleanup_free double *before = as_doubles(actor), *values = as_doubles(critic);
    for (size_t i = 0; i < DECISIONS; i++) {
        struct sample *s = &samples[i];
        make_sample(s, &random);
        assert_int_equal(rl_score_act(score, &s->heads, s->rows[0], s->state, s->action), i);
        rl_score_reward(score, i, s->reward);
        advantages[i] = s->reward - plain_output(critic, values, s->state); /* gamma is 0 */
    }
    assert_int_equal(rl_score_update(score, &report, NULL), 0);
    assert_int_equal(report.samples, DECISIONS);
    for (size_t i = 0; i < actor->param_count; i++) {
        double slope = difference(actor, before, i, samples, advantages);
        if (fabs(slope) < 1e-4)
            continue;
        double moved = actor->params[i] - before[i];
        if (fabs(moved + copysign(plain.actor_rate, slope)) > 0.01 * plain.actor_rate)
            fail_msg("parameter %zu moved by %g where the slope is %g", i, moved, slope);
        checked++;
    }
    assert_true(checked > actor->param_count / 2);
    rl_score_free(score);
}

/* --- decisions with known answers --- */
/* Options are numbers; the best is the one closest to the first number of the state. */
static size_t make_choice(struct random *random, size_t count, float rows[][2])
{
    float aim = (float)random_uniform(random);
    size_t best = 0;
    for (size_t i = 0; i < count; i++) {
        rows[i][0] = aim;
        rows[i][1] = (float)random_uniform(random);
        if (fabsf(rows[i][1] - aim) < fabsf(rows[best][1] - aim))
            best = i;
    }
    return best;
}

static void learn_to_aim(struct rl_score *score, size_t updates, struct random *random)
{
    struct rl_ppo_report report;
    float rows[MOST_ROWS][2];
    int32_t action;
    for (size_t u = 0; u < updates; u++) {
        for (size_t i = 0; i < 256; i++) {
            struct rl_heads heads;
            size_t count = 1 + random_below(random, 6);
            rl_heads_init(&heads, &count, 1, NULL);
            make_choice(random, count, rows);
            size_t number = rl_score_act(score, &heads, rows[0], rows[0], &action);
            rl_score_reward(score, number, -fabsf(rows[action][1] - rows[action][0]));
        }
        assert_int_equal(rl_score_update(score, &report, NULL), 0);
    }
}

/* Mean distance from the aim beyond that of the best option. */
static double regret(const struct rl_net *actor, size_t count, struct random *random)
{
    struct rl_heads heads;
    struct rl_work work = {0};
    float rows[MOST_ROWS][2];
    double sum = 0;
    rl_heads_init(&heads, &count, 1, NULL);
    for (size_t i = 0; i < 500; i++) {
        int32_t action;
        size_t best = make_choice(random, count, rows);
        rl_score_best(actor, &heads, rows[0], &work, &action);
        sum += fabsf(rows[action][1] - rows[0][0]) - fabsf(rows[best][1] - rows[0][0]);
    }
    rl_work_clear(&work);
    return sum / 500;
}

static void test_choice_is_learned_and_holds_for_more_options_than_ever_seen(void **state)
{
    struct rl_ppo_config config = rl_score_default;
    struct random random = random_stream(5, 1);
    (void)state;
    config.gamma = 0;
    config.actor_rate = config.critic_rate = 3e-3;
    struct rl_score *score = rl_score_new(&config, 2, 2, 150, 1, NULL);
    learn_to_aim(score, IS_SLOW ? 1 : 150, &random);
    if (!IS_SLOW) {
        /* By chance it would be above 0.2. */
        assert_true(regret(rl_score_actor(score), 4, &random) < 0.02);
        assert_true(regret(rl_score_actor(score), 12, &random) < 0.02);
    }
    rl_score_free(score);
}

/* The first of two decisions says what the second is worth, whatever that one takes. */
static void test_what_comes_later_counts(void **state)
{
    struct rl_ppo_config config = rl_score_default;
    struct rl_ppo_report report;
    struct rl_heads heads;
    struct rl_work work = {0};
    const float rows[2][2][2] = {{{0, 0}, {0, 1}}, {{1, 0}, {1, 1}}};
    int32_t action, second;
    (void)state;
    config.gamma = config.lambda = 1;
    config.actor_rate = config.critic_rate = 1e-2;
    rl_heads_init(&heads, (size_t[]){2}, 1, NULL);
    struct rl_score *score = rl_score_new(&config, 2, 2, 20, 1, NULL);
    for (size_t u = 0; u < 20; u++) {
        for (size_t i = 0; i < 64; i++) {
            size_t first = rl_score_act(score, &heads, rows[0][0], rows[0][0], &action);
            size_t last = rl_score_act(score, &heads, rows[1][0], rows[1][0], &second);
            rl_score_end(score);
            rl_score_reward(score, last, action);
            rl_score_reward(score, first, 0);
        }
        assert_int_equal(rl_score_update(score, &report, NULL), 0);
    }
    rl_score_best(rl_score_actor(score), &heads, rows[0][0], &work, &action);
    assert_int_equal(action, 1);
    rl_work_clear(&work);
    rl_score_free(score);
}

/* --- the order of options, and of rewards --- */
static void test_order_of_options_does_not_matter(void **state)
{
    struct rl_net net;
    struct rl_work work = {0};
    struct rl_heads heads;
    const struct rl_shape shape = {.inputs = WIDTH, .outputs = 1, .hidden = {7}, .hidden_count = 1};
    struct random random = random_stream(2, 0);
    float rows[6][WIDTH], turned[6][WIDTH];
    int32_t one, other;
    (void)state;
    rl_net_make(&net, &shape, NULL);
    rl_net_randomise(&net, 1, &random);
    rl_heads_init(&heads, (size_t[]){6}, 1, NULL);
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < WIDTH; k++)
            rows[i][k] = turned[5 - i][k] = (float)random_normal(&random);
    rl_score_best(&net, &heads, rows[0], &work, &one);
    rl_score_best(&net, &heads, turned[0], &work, &other);
    assert_int_equal(one, 5 - other);
    rl_work_clear(&work);
    rl_net_clear(&net);
}

/* Rewards come in the order of decisions, or in the other one. */
static float *learn_weights(uint64_t seed, bool backwards, size_t *count)
{
    struct rl_score *score = rl_score_new(&rl_score_default, WIDTH, STATE, 3, seed, NULL);
    struct random random = random_stream(4, 0);
    struct rl_ppo_report report;
    struct sample samples[40];
    for (size_t u = 0; u < 3; u++) {
        for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
            struct sample *s = &samples[i];
            make_sample(s, &random);
            rl_score_act(score, &s->heads, s->rows[0], s->state, s->action);
        }
        for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
            size_t which = backwards ? ARRAY_LEN(samples) - 1 - i : i;
            rl_score_reward(score, which, samples[which].reward);
        }
        assert_int_equal(rl_score_update(score, &report, NULL), 0);
    }
    struct rl_net *net = rl_score_actor(score);
    float *copy = xcalloc(net->param_count, sizeof(float));
    memcpy(copy, net->params, net->param_count * sizeof(float));
    *count = net->param_count;
    rl_score_free(score);
    return copy;
}

static void test_same_seed_gives_the_same_weights(void **state)
{
    size_t n;
    cleanup_free float *one = learn_weights(7, false, &n);
    cleanup_free float *again = learn_weights(7, true, &n);
    cleanup_free float *other = learn_weights(8, false, &n);
    (void)state;
    assert_memory_equal(one, again, n * sizeof(float));
    assert_memory_not_equal(one, other, n * sizeof(float));
}

/* --- what cannot be --- */
static void check_wrong(struct rl_score *score, float wrong, double reward, const char *message)
{
    struct rl_net *actor = rl_score_actor(score);
    cleanup_free double *before = as_doubles(actor);
    struct rl_ppo_report report;
    struct error err = {0};
    struct rl_heads heads;
    float rows[2][WIDTH] = {{1, 2, 3}, {4, 5, wrong}}, seen[STATE] = {0};
    int32_t action;
    rl_heads_init(&heads, (size_t[]){2}, 1, NULL);
    rl_score_act(score, &heads, rows[0], seen, &action);
    if (!isnan(reward))
        rl_score_reward(score, 0, reward);
    assert_int_equal(rl_score_update(score, &report, &err), -1);
    assert_string_equal(err.message, message);
    for (size_t i = 0; i < actor->param_count; i++)
        assert_true(actor->params[i] == (float)before[i]);
}

static void test_what_is_no_number_is_an_error_and_the_weights_stay(void **state)
{
    struct rl_ppo_report report;
    (void)state;
    struct rl_score *score = rl_score_new(&rl_score_default, WIDTH, STATE, 1, 1, NULL);
    check_wrong(score, 6, NAN, "the reward of decision 0 is nan");
    check_wrong(score, 6, INFINITY, "the reward of decision 0 is inf");
    check_wrong(score, INFINITY, 1, "number 2 of an option is inf");
    assert_int_equal(rl_score_update(score, &report, NULL), 0); /* nothing to learn from */
    assert_int_equal(report.samples, 0);
    rl_score_free(score);
}

static void test_settings_that_cannot_be_are_refused(void **state)
{
    struct rl_ppo_config config = rl_score_default;
    struct error err = {0};
    (void)state;
    config.clip = 0;
    assert_null(rl_score_new(&config, WIDTH, STATE, 1, 1, &err));
    assert_string_equal(err.message, "clip is 0: must be 1e-06 to 10");
    assert_null(rl_score_new(&rl_score_default, 0, STATE, 1, 1, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_follows_finite_differences),
        cmocka_unit_test(test_choice_is_learned_and_holds_for_more_options_than_ever_seen),
        cmocka_unit_test(test_what_comes_later_counts),
        cmocka_unit_test(test_order_of_options_does_not_matter),
        cmocka_unit_test(test_same_seed_gives_the_same_weights),
        cmocka_unit_test(test_what_is_no_number_is_an_error_and_the_weights_stay),
        cmocka_unit_test(test_settings_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
