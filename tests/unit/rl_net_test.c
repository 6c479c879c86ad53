/* Networks, losses and Adam: against finite differences, plain loops and PyTorch. */
#include "rl/rl.h"

#include "reference/rl_reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double value, double expected, double tolerance, const char *what, size_t i)
{
    if (fabs(value - expected) <= tolerance * (1 + fabs(expected)))
        return;
    fail_msg("%s %zu: %.9g, not %.9g", what, i, value, expected);
}

static void assert_all_near(const float *values, const float *expected, size_t n, double tolerance,
                            const char *what)
{
    for (size_t i = 0; i < n; i++)
        assert_near(values[i], expected[i], tolerance, what, i);
}

static void fill(float *to, size_t n, struct random *random)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)random_normal(random);
}

static void make(struct rl_net *net, const struct rl_shape *shape, uint64_t seed)
{
    struct random random = random_stream(seed, 0);
    assert_int_equal(rl_net_make(net, shape, NULL), 0);
    rl_net_randomise(net, 0.5f, &random);
    for (size_t i = 0; i < net->layer_count; i++)
        fill(net->params + net->layers[i].biases, net->layers[i].out, &random);
}

/* --- shapes and beginnings --- */
static void test_shapes_that_cannot_be_are_refused(void **state)
{
    const struct rl_shape wrong[] = {
        {.inputs = 0, .outputs = 1},
        {.inputs = 1, .outputs = 0},
        {.inputs = RL_MAX_WIDTH + 1, .outputs = 1},
        {.inputs = 1, .outputs = 1, .hidden = {0}, .hidden_count = 1},
        {.inputs = 1, .outputs = 1, .hidden_count = RL_MAX_HIDDEN + 1},
        {.inputs = 1, .outputs = 1, .activation = (enum rl_activation)7},
    };
    struct rl_net net;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct error err = {0};
        assert_int_equal(rl_net_make(&net, &wrong[i], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
    }
}

/* Rows or columns, whichever are fewer, have length `gain` and are at right angles. */
static void check_orthogonal(const float *w, size_t in, size_t out, double gain)
{
    size_t few = in < out ? in : out, many = in < out ? out : in;
    for (size_t i = 0; i < few; i++)
        for (size_t j = 0; j < few; j++) {
            double dot = 0;
            for (size_t k = 0; k < many; k++)
                dot += in < out ? (double)w[i * out + k] * w[j * out + k]
                                : (double)w[k * out + i] * w[k * out + j];
            assert_near(dot, i == j ? gain * gain : 0, 1e-5, "product of rows", i * few + j);
        }
}

static void test_weights_begin_orthogonal(void **state)
{
    struct rl_net net;
    const struct rl_shape shape = {
        .inputs = 6, .outputs = 3, .hidden = {20, 9}, .hidden_count = 2, .activation = RL_TANH};
    struct random random = random_stream(5, 0);
    (void)state;
    assert_int_equal(rl_net_make(&net, &shape, NULL), 0);
    rl_net_randomise(&net, 0.01f, &random);
    for (size_t i = 0; i < net.layer_count; i++) {
        const struct rl_layer *l = &net.layers[i];
        check_orthogonal(net.params + l->weights, l->in, l->out, i < 2 ? sqrt(2) : 0.01);
        for (size_t k = 0; k < l->out; k++)
            assert_float_equal(net.params[l->biases + k], 0, 0);
    }
    rl_net_clear(&net);
}

/* --- forward: every size takes its own way through the kernels --- */
static void plain_forward(const struct rl_net *net, const double *params, const float *in,
                          double *out)
{
    double buffers[2][256];
    for (size_t k = 0; k < net->shape.inputs; k++)
        buffers[1][k] = in[k];
    for (size_t i = 0; i < net->layer_count; i++) {
        const struct rl_layer *l = &net->layers[i];
        const double *x = buffers[(i + 1) % 2];
        for (size_t k = 0; k < l->out; k++) {
            double sum = params[l->biases + k];
            for (size_t j = 0; j < l->in; j++)
                sum += x[j] * params[l->weights + j * l->out + k];
            if (i + 1 < net->layer_count)
                sum = net->shape.activation == RL_TANH ? tanh(sum) : fmax(sum, 0);
            buffers[i % 2][k] = sum;
        }
    }
    for (size_t k = 0; k < net->shape.outputs; k++)
        out[k] = buffers[(net->layer_count - 1) % 2][k];
}

static double *as_doubles(const struct rl_net *net)
{
    double *params = xcalloc(net->param_count, sizeof(*params));
    for (size_t i = 0; i < net->param_count; i++)
        params[i] = net->params[i];
    return params;
}

static void check_forward(const struct rl_shape *shape, size_t rows)
{
    struct rl_net net;
    struct rl_work work = {0};
    struct random random = random_stream(rows, 1);
    float in[20 * 80], row_out[80];
    double expected[80];
    make(&net, shape, 3);
    cleanup_free double *params = as_doubles(&net);
    fill(in, rows * shape->inputs, &random);
    const float *out = rl_net_forward(&net, in, rows, &work);
    for (size_t r = 0; r < rows; r++) {
        plain_forward(&net, params, in + r * shape->inputs, expected);
        rl_net_row(&net, in + r * shape->inputs, row_out);
        for (size_t k = 0; k < shape->outputs; k++) {
            assert_near(out[r * shape->outputs + k], expected[k], 1e-5, "output", k);
            assert_near(row_out[k], expected[k], 1e-5, "output of a row", k);
        }
    }
    rl_work_clear(&work);
    rl_net_clear(&net);
}

static void test_forward_equals_plain_loops(void **state)
{
    const size_t widths[] = {1, 2, 7, 8, 9, 15, 16, 24, 31, 64, 73};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        for (size_t rows = 1; rows <= 20; rows += rows < 7 ? 1 : 13) {
            size_t w = widths[i], other = widths[(i + 3) % ARRAY_LEN(widths)];
            check_forward(&(struct rl_shape){w, other, {other, w}, 2, RL_TANH}, rows);
            check_forward(&(struct rl_shape){w, other, {w}, 1, RL_RELU}, rows);
            check_forward(&(struct rl_shape){w, other, {0}, 0, RL_TANH}, rows);
        }
}

static void test_tanh_to_the_last_digits_but_one(void **state)
{
    struct rl_net net;
    const struct rl_shape shape = {1, 1, {1}, 1, RL_TANH};
    (void)state;
    assert_int_equal(rl_net_make(&net, &shape, NULL), 0);
    net.params[net.layers[0].weights] = net.params[net.layers[1].weights] = 1;
    for (int i = -120000; i <= 120000; i++) {
        float x = (float)i * 1e-4f, y;
        rl_net_row(&net, &x, &y);
        if (fabs(y - tanh(x)) > 2.5e-7 * fabs(tanh(x)))
            fail_msg("tanh(%.9g) is %.9g, not %.9g", x, y, tanh(x));
    }
    rl_net_clear(&net);
}

static void test_what_is_no_number_stays_none(void **state)
{
    (void)state;
    for (int activation = RL_TANH; activation <= RL_RELU; activation++) {
        struct rl_net net;
        float in[3] = {1, NAN, 1}, out[2];
        make(&net, &(struct rl_shape){3, 2, {8}, 1, (enum rl_activation)activation}, 1);
        rl_net_row(&net, in, out);
        assert_true(isnan(out[0]) && isnan(out[1]));
        rl_net_clear(&net);
    }
}

/* --- backward --- */
/* The loss is a sum of the outputs with fixed weights. */
static double weighted(const struct rl_net *net, const double *params, const float *in, size_t rows,
                       const float *weights)
{
    double sum = 0, out[80];
    for (size_t r = 0; r < rows; r++) {
        plain_forward(net, params, in + r * net->shape.inputs, out);
        for (size_t k = 0; k < net->shape.outputs; k++)
            sum += out[k] * weights[r * net->shape.outputs + k];
    }
    return sum;
}

static void check_gradient(const struct rl_shape *shape, size_t rows)
{
    const double step = 1e-6;
    struct rl_net net;
    struct rl_work work = {0};
    struct random random = random_stream(rows, 2);
    float in[300], weights[300];
    make(&net, shape, 8);
    cleanup_free double *params = as_doubles(&net);
    cleanup_free float *gradient = xcalloc(net.param_count, sizeof(float));
    fill(in, rows * shape->inputs, &random);
    fill(weights, rows * shape->outputs, &random);
    rl_net_forward(&net, in, rows, &work);
    rl_net_backward(&net, &work, weights, gradient);
    for (size_t i = 0; i < net.param_count; i++) {
        params[i] += step;
        double above = weighted(&net, params, in, rows, weights);
        params[i] -= 2 * step;
        double below = weighted(&net, params, in, rows, weights);
        params[i] += step;
        assert_near(gradient[i], (above - below) / (2 * step), 2e-5, "derivative", i);
    }
    rl_work_clear(&work);
    rl_net_clear(&net);
}

static double weighted_at(const struct rl_net *net, const double *params, float *in, size_t i,
                          float value, size_t rows, const float *weights)
{
    float was = in[i];
    in[i] = value;
    double sum = weighted(net, params, in, rows, weights);
    in[i] = was;
    return sum;
}

static void check_input_gradient(const struct rl_shape *shape, size_t rows)
{
    const float step = 0x1p-10f;
    struct rl_net net;
    struct rl_work work = {0};
    struct random random = random_stream(rows, 3);
    float in[300], weights[300], d_in[300];
    make(&net, shape, 9);
    cleanup_free double *params = as_doubles(&net);
    cleanup_free float *gradient = xcalloc(net.param_count, sizeof(float));
    for (size_t i = 0; i < rows * shape->inputs; i++)
        in[i] = roundf(32 * (float)random_normal(&random)) / 32; /* a step away is no rounding */
    fill(weights, rows * shape->outputs, &random);
    rl_net_forward(&net, in, rows, &work);
    rl_net_backward(&net, &work, weights, gradient);
    rl_net_input_gradient(&net, &work, weights, d_in);
    for (size_t i = 0; i < rows * shape->inputs; i++) {
        double above = weighted_at(&net, params, in, i, in[i] + step, rows, weights);
        double below = weighted_at(&net, params, in, i, in[i] - step, rows, weights);
        assert_near(d_in[i], (above - below) / (2 * step), 2e-4, "derivative by input", i);
    }
    rl_work_clear(&work);
    rl_net_clear(&net);
}

static void test_gradient_by_inputs_equals_finite_differences(void **state)
{
    (void)state;
    check_input_gradient(&(struct rl_shape){5, 3, {9, 18}, 2, RL_TANH}, 1);
    check_input_gradient(&(struct rl_shape){5, 3, {17, 8}, 2, RL_TANH}, 7);
    check_input_gradient(&(struct rl_shape){30, 2, {6}, 1, RL_TANH}, 5);
    check_input_gradient(&(struct rl_shape){3, 2, {0}, 0, RL_RELU}, 6);
}

static void test_gradient_equals_finite_differences(void **state)
{
    (void)state;
    check_gradient(&(struct rl_shape){5, 3, {9, 18}, 2, RL_TANH}, 1);
    check_gradient(&(struct rl_shape){5, 3, {17, 8}, 2, RL_TANH}, 7);
    check_gradient(&(struct rl_shape){4, 1, {6, 10, 7}, 3, RL_TANH}, 13);
    check_gradient(&(struct rl_shape){6, 9, {12}, 1, RL_RELU}, 5);
    check_gradient(&(struct rl_shape){3, 2, {0}, 0, RL_RELU}, 6);
}

static void check_reference(enum rl_activation activation, const float *params, const float *in,
                            const float *d_outputs, const float *outputs, const float *gradient)
{
    struct rl_net net;
    struct rl_work work = {0};
    const struct rl_shape shape = {5, 4, {19, 11}, 2, activation};
    assert_int_equal(rl_net_make(&net, &shape, NULL), 0);
    memcpy(net.params, params, net.param_count * sizeof(float));
    float *ours = xcalloc(net.param_count, sizeof(float));
    assert_all_near(rl_net_forward(&net, in, 7, &work), outputs, 28, 2e-6, "output");
    rl_net_backward(&net, &work, d_outputs, ours);
    assert_all_near(ours, gradient, net.param_count, 4e-6, "derivative");
    free(ours);
    rl_work_clear(&work);
    rl_net_clear(&net);
}

static void test_network_equals_pytorch(void **state)
{
    (void)state;
    check_reference(RL_TANH, ref_tanh_params, ref_tanh_inputs, ref_tanh_d_outputs, ref_tanh_outputs,
                    ref_tanh_gradient);
    check_reference(RL_RELU, ref_relu_params, ref_relu_inputs, ref_relu_d_outputs, ref_relu_outputs,
                    ref_relu_gradient);
}

/* --- Adam --- */
static void test_adam_equals_pytorch(void **state)
{
    enum { N = 9, STEPS = 4 };
    struct rl_adam adam;
    float params[N], gradient[N];
    (void)state;
    rl_adam_init(&adam, N);
    memcpy(params, ref_adam_begin, sizeof(params));
    for (size_t i = 0; i < STEPS; i++) {
        rl_adam_step(&adam, params, ref_adam_gradients + i * N, 0.01);
        assert_all_near(params, ref_adam_after + i * N, N, 1e-6, "parameter");
    }
    rl_adam_clear(&adam);
    memcpy(gradient, ref_adam_gradients, sizeof(gradient));
    assert_near(rl_clip_gradient(gradient, N, 0), ref_clip_norm[0], 1e-6, "norm", 0);
    assert_memory_equal(gradient, ref_adam_gradients, sizeof(gradient));
    assert_near(rl_clip_gradient(gradient, N, 0.5), ref_clip_norm[0], 1e-6, "norm", 0);
    assert_all_near(gradient, ref_clip_after, N, 1e-6, "clipped");
}

/* --- choices --- */
static const size_t head_options[] = {3, 4};
enum { OPTIONS = 7, SAMPLES = 8 };

static struct rl_heads two_heads(void)
{
    struct rl_heads heads;
    assert_int_equal(rl_heads_init(&heads, head_options, 2, NULL), 0);
    assert_int_equal(heads.total, OPTIONS);
    return heads;
}

static void test_heads_that_cannot_be_are_refused(void **state)
{
    struct rl_heads heads;
    const size_t none[] = {3, 0}, many[] = {200, 57}, huge[] = {4, SIZE_MAX - 2};
    (void)state;
    assert_int_equal(rl_heads_init(&heads, none, 0, NULL), -1);
    assert_int_equal(rl_heads_init(&heads, none, 2, NULL), -1);
    assert_int_equal(rl_heads_init(&heads, many, 2, NULL), -1);
    assert_int_equal(rl_heads_init(&heads, huge, 2, NULL), -1);
    assert_int_equal(rl_heads_init(&heads, none, RL_MAX_HEADS + 1, NULL), -1);
}

static void test_options_are_drawn_as_often_as_they_are_likely(void **state)
{
    enum { DRAWS = 200000 };
    const struct rl_heads heads = two_heads();
    const float logits[OPTIONS] = {1, 5, 0, -1, 0.5f, 2, 1};
    const uint8_t mask[OPTIONS] = {1, 0, 1, 1, 1, 1, 0};
    const double expected[OPTIONS] = {
        exp(1) / (exp(1) + 1),
        0,
        1 / (exp(1) + 1),
        exp(-1) / (exp(-1) + exp(0.5) + exp(2)),
        exp(0.5) / (exp(-1) + exp(0.5) + exp(2)),
        exp(2) / (exp(-1) + exp(0.5) + exp(2)),
        0,
    };
    struct rl_odds odds;
    struct random random = random_stream(1, 1);
    size_t seen[OPTIONS] = {0};
    int32_t action[2];
    (void)state;
    rl_odds(&heads, logits, mask, &odds);
    for (size_t i = 0; i < DRAWS; i++) {
        rl_draw(&heads, &odds, &random, action);
        assert_true(rl_is_legal(&heads, mask, action));
        seen[action[0]]++;
        seen[3 + action[1]]++;
    }
    for (size_t k = 0; k < OPTIONS; k++) {
        double spread = sqrt(expected[k] * (1 - expected[k]) / DRAWS);
        assert_near(odds.p[k], expected[k], 1e-6, "chance", k);
        assert_true(fabs((double)seen[k] / DRAWS - expected[k]) <= 5 * spread);
    }
    rl_best(&heads, logits, mask, action);
    assert_int_equal(action[0], 0);
    assert_int_equal(action[1], 2);
}

static void test_head_without_a_legal_option_takes_its_first(void **state)
{
    const struct rl_heads heads = two_heads();
    const float logits[OPTIONS] = {1, 5, 0, -1, 0.5f, 2, 1};
    const uint8_t mask[OPTIONS] = {0, 0, 0, 1, 1, 1, 1};
    struct rl_odds odds;
    struct random random = random_stream(1, 1);
    int32_t action[2] = {9, 9};
    float d[OPTIONS];
    (void)state;
    rl_best(&heads, logits, mask, action);
    assert_int_equal(action[0], 0);
    rl_odds(&heads, logits, mask, &odds);
    rl_draw(&heads, &odds, &random, action);
    assert_int_equal(action[0], 0);
    assert_true(isfinite(rl_log_p(&heads, &odds, action)));
    rl_cross_entropy(&heads, logits, mask, action, 1, d);
    for (size_t k = 0; k < OPTIONS; k++)
        assert_true(isfinite(d[k]) && (k >= 3 || d[k] == 0));
}

static void test_legal_is_in_range_and_in_the_mask(void **state)
{
    const struct rl_heads heads = two_heads();
    const uint8_t mask[OPTIONS] = {1, 0, 1, 1, 1, 1, 0};
    (void)state;
    assert_true(rl_is_legal(&heads, mask, (int32_t[]){2, 0}));
    assert_false(rl_is_legal(&heads, mask, (int32_t[]){1, 0}));
    assert_true(rl_is_legal(&heads, NULL, (int32_t[]){1, 0}));
    assert_false(rl_is_legal(&heads, NULL, (int32_t[]){3, 0}));
    assert_false(rl_is_legal(&heads, NULL, (int32_t[]){0, -1}));
}

/* --- losses --- */
static struct rl_policy_sample sample(size_t i)
{
    return (struct rl_policy_sample){ref_policy_masks + i * OPTIONS, ref_policy_actions + i * 2,
                                     ref_policy_old_log_p[i], ref_policy_advantages[i]};
}

static void test_policy_loss_equals_pytorch(void **state)
{
    const struct rl_heads heads = two_heads();
    float d[OPTIONS];
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        const struct rl_policy_sample s = sample(i);
        struct rl_policy_loss loss =
            rl_policy_loss(&heads, ref_policy_logits + i * OPTIONS, &s, 0.2, 0.02, 1, d);
        assert_near(loss.loss, ref_policy_loss[i], 1e-6, "loss", i);
        assert_near(loss.entropy, ref_policy_entropy[i], 1e-6, "entropy", i);
        assert_near(loss.kl, ref_policy_kl[i], 1e-6, "kl", i);
        assert_int_equal(loss.clipped, (int)ref_policy_clipped[i]);
        assert_all_near(d, ref_policy_d_logits + i * OPTIONS, OPTIONS, 1e-6, "derivative");
    }
}

static void test_policy_loss_equals_finite_differences(void **state)
{
    const struct rl_heads heads = two_heads();
    const double step = 1e-3;
    float d[OPTIONS], unused[OPTIONS], logits[OPTIONS];
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        const struct rl_policy_sample s = sample(i);
        memcpy(logits, ref_policy_logits + i * OPTIONS, sizeof(logits));
        rl_policy_loss(&heads, logits, &s, 0.2, 0.02, 0.7, d);
        for (size_t k = 0; k < OPTIONS; k++) {
            double sides[2];
            for (int side = 0; side < 2; side++) {
                logits[k] = ref_policy_logits[i * OPTIONS + k] + (float)(side ? step : -step);
                struct rl_policy_loss loss =
                    rl_policy_loss(&heads, logits, &s, 0.2, 0.02, 0.7, unused);
                sides[side] = 0.7 * (loss.loss - 0.02 * loss.entropy);
            }
            logits[k] = ref_policy_logits[i * OPTIONS + k];
            assert_near(d[k], (sides[1] - sides[0]) / (2 * step), 1e-3, "derivative", k);
        }
    }
}

static void test_value_loss_equals_pytorch_and_finite_differences(void **state)
{
    const double bound = 0.3, step = 1e-5;
    float d, unused;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ref_value_values); i++) {
        double value = ref_value_values[i], old = ref_value_old[i], target = ref_value_targets[i];
        double loss = rl_value_loss(value, old, target, bound, 1, &d);
        assert_near(loss, ref_value_loss[i], 1e-6, "loss", i);
        assert_near(d, ref_value_d_values[i], 1e-6, "derivative", i);
        double above = rl_value_loss(value + step, old, target, bound, 1, &unused);
        double below = rl_value_loss(value - step, old, target, bound, 1, &unused);
        assert_near(d, (above - below) / (2 * step), 1e-4, "difference", i);
        loss = rl_value_loss(value, old, target, 0, 0.5, &d);
        assert_near(loss, pow(value - target, 2), 1e-9, "loss without a bound", i);
        assert_near(d, value - target, 1e-6, "derivative without a bound", i);
    }
}

static void test_cross_entropy_equals_pytorch(void **state)
{
    const struct rl_heads heads = two_heads();
    float d[OPTIONS];
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        double loss =
            rl_cross_entropy(&heads, ref_policy_logits + i * OPTIONS,
                             ref_policy_masks + i * OPTIONS, ref_policy_actions + i * 2, 1, d);
        assert_near(loss, ref_cross_loss[i], 1e-6, "loss", i);
        assert_all_near(d, ref_cross_d_logits + i * OPTIONS, OPTIONS, 1e-6, "derivative");
    }
}

static void test_cross_entropy_equals_finite_differences(void **state)
{
    const struct rl_heads heads = two_heads();
    const double step = 1e-3;
    float d[OPTIONS], unused[OPTIONS], logits[OPTIONS];
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        const uint8_t *mask = ref_policy_masks + i * OPTIONS;
        const int32_t *action = ref_policy_actions + i * 2;
        memcpy(logits, ref_policy_logits + i * OPTIONS, sizeof(logits));
        rl_cross_entropy(&heads, logits, mask, action, 1, d);
        for (size_t k = 0; k < OPTIONS; k++) {
            float at = logits[k];
            logits[k] = at + (float)step;
            double above = rl_cross_entropy(&heads, logits, mask, action, 1, unused);
            logits[k] = at - (float)step;
            double below = rl_cross_entropy(&heads, logits, mask, action, 1, unused);
            logits[k] = at;
            assert_near(d[k], (above - below) / (2 * step), 1e-3, "derivative", k);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_that_cannot_be_are_refused),
        cmocka_unit_test(test_weights_begin_orthogonal),
        cmocka_unit_test(test_forward_equals_plain_loops),
        cmocka_unit_test(test_tanh_to_the_last_digits_but_one),
        cmocka_unit_test(test_what_is_no_number_stays_none),
        cmocka_unit_test(test_gradient_equals_finite_differences),
        cmocka_unit_test(test_gradient_by_inputs_equals_finite_differences),
        cmocka_unit_test(test_network_equals_pytorch),
        cmocka_unit_test(test_adam_equals_pytorch),
        cmocka_unit_test(test_heads_that_cannot_be_are_refused),
        cmocka_unit_test(test_options_are_drawn_as_often_as_they_are_likely),
        cmocka_unit_test(test_head_without_a_legal_option_takes_its_first),
        cmocka_unit_test(test_legal_is_in_range_and_in_the_mask),
        cmocka_unit_test(test_policy_loss_equals_pytorch),
        cmocka_unit_test(test_policy_loss_equals_finite_differences),
        cmocka_unit_test(test_value_loss_equals_pytorch_and_finite_differences),
        cmocka_unit_test(test_cross_entropy_equals_pytorch),
        cmocka_unit_test(test_cross_entropy_equals_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
