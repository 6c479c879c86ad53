#include "kernel.h"
#include "rl/rl.h"

#include <string.h>

/* --- shape ----------------------------------------------------------------------------------- */
size_t rl_shape_size(const struct rl_shape *shape)
{
    size_t in = shape->inputs, size = 0;
    if (in == 0 || in > RL_MAX_WIDTH || shape->hidden_count > RL_MAX_HIDDEN ||
        (shape->activation != RL_TANH && shape->activation != RL_RELU))
        return 0;
    for (size_t i = 0; i <= shape->hidden_count; i++) {
        size_t out = i < shape->hidden_count ? shape->hidden[i] : shape->outputs;
        if (out == 0 || out > RL_MAX_WIDTH)
            return 0;
        size += in * out + out;
        in = out;
    }
    return size;
}

int rl_net_make(struct rl_net *net, const struct rl_shape *shape, struct error *err)
{
    size_t in = shape->inputs;
    if (rl_shape_size(shape) == 0)
        return error_set(err, ERROR_INVALID,
                         "a network must have at most %d hidden layers, each layer 1 to %d wide",
                         RL_MAX_HIDDEN, RL_MAX_WIDTH);
    *net = (struct rl_net){.shape = *shape};
    for (size_t i = 0; i <= shape->hidden_count; i++) {
        size_t out = i < shape->hidden_count ? shape->hidden[i] : shape->outputs;
        net->layers[net->layer_count++] = (struct rl_layer){
            .in = in,
            .out = out,
            .weights = net->param_count,
            .biases = net->param_count + in * out,
        };
        net->param_count += in * out + out;
        in = out;
    }
    net->params = xcalloc(net->param_count, sizeof(*net->params));
    return 0;
}

/* --- the beginning --------------------------------------------------------------------------- */
/* Takes from row i its shares of the rows before, and makes its length 1. */
static void straighten(double *rows, size_t i, size_t width)
{
    double *row = rows + i * width, length = 0;
    for (size_t j = 0; j < i; j++) {
        const double *other = rows + j * width;
        double share = 0;
        for (size_t k = 0; k < width; k++)
            share += row[k] * other[k];
        for (size_t k = 0; k < width; k++)
            row[k] -= share * other[k];
    }
    for (size_t k = 0; k < width; k++)
        length += row[k] * row[k];
    for (size_t k = 0; k < width; k++)
        row[k] /= sqrt(length);
}

/* Rows or columns, whichever are fewer, at right angles to each other. */
static void make_orthogonal(float *weights, size_t in, size_t out, float gain,
                            struct random *random)
{
    size_t few = in < out ? in : out, many = in < out ? out : in;
    double *rows = xcalloc(few * many, sizeof(*rows));
    for (size_t i = 0; i < few; i++) {
        for (size_t k = 0; k < many; k++)
            rows[i * many + k] = random_normal(random);
        straighten(rows, i, many);
    }
    for (size_t i = 0; i < in; i++)
        for (size_t k = 0; k < out; k++)
            weights[i * out + k] =
                gain * (float)(in < out ? rows[i * many + k] : rows[k * many + i]);
    free(rows);
}

void rl_net_randomise(struct rl_net *net, float last_gain, struct random *random)
{
    for (size_t i = 0; i < net->layer_count; i++) {
        const struct rl_layer *l = &net->layers[i];
        float gain = i + 1 < net->layer_count ? 1.41421356f : last_gain;
        make_orthogonal(net->params + l->weights, l->in, l->out, gain, random);
        memset(net->params + l->biases, 0, l->out * sizeof(*net->params));
    }
}

void rl_net_clear(struct rl_net *net)
{
    free(net->params);
    *net = (struct rl_net){0};
}

/* --- forward --------------------------------------------------------------------------------- */
/* y (rows, out) of a layer from x (rows, in). */
static void run_layer(const struct rl_net *net, size_t i, const float *x, float *y, size_t rows)
{
    const struct rl_layer *l = &net->layers[i];
    kernel_product(&(struct kernel_product){.a = x,
                                            .a_row = l->in,
                                            .a_inner = 1,
                                            .b = net->params + l->weights,
                                            .start = net->params + l->biases,
                                            .c = y,
                                            .rows = rows,
                                            .inner = l->in,
                                            .columns = l->out});
    if (i + 1 == net->layer_count)
        return;
    if (net->shape.activation == RL_TANH)
        kernel_tanh(y, rows * l->out);
    else
        for (size_t k = 0; k < rows * l->out; k++)
            y[k] = y[k] < 0 ? 0 : y[k]; /* what is no number stays none */
}

void rl_net_row(const struct rl_net *net, const float *in, float *out)
{
    float buffers[2][RL_MAX_WIDTH];
    for (size_t i = 0; i < net->layer_count; i++) {
        /* cppcheck-suppress legacyUninitvar ; the layer fills it */
        float *to = i + 1 == net->layer_count ? out : buffers[i % 2];
        run_layer(net, i, in, to, 1);
        in = to;
    }
}

static void make_room(const struct rl_net *net, struct rl_work *work, size_t rows)
{
    size_t width = 0, largest = 0;
    for (size_t i = 0; i < net->layer_count; i++) {
        size_t weights = net->layers[i].in * net->layers[i].out;
        width += net->layers[i].out;
        largest = weights > largest ? weights : largest;
    }
    if (work->capacity < 2 * rows * width + largest) {
        work->capacity = 2 * rows * width + largest;
        work->memory = xrealloc(work->memory, work->capacity, sizeof(*work->memory));
    }
    float *at = work->memory;
    for (size_t i = 0; i < net->layer_count; i++) {
        work->outputs[i] = at;
        work->deltas[i] = at += rows * net->layers[i].out;
        at += rows * net->layers[i].out;
    }
    work->turned = at;
    work->rows = rows;
}

const float *rl_net_forward(const struct rl_net *net, const float *in, size_t rows,
                            struct rl_work *work)
{
    make_room(net, work, rows);
    work->inputs = in;
    for (size_t i = 0; i < net->layer_count; i++) {
        run_layer(net, i, in, work->outputs[i], rows);
        in = work->outputs[i];
    }
    return in;
}

/* --- backward -------------------------------------------------------------------------------- */
/* By the weights and biases of a layer, from d (rows, out): xᵀ · d, and the sum of d. */
static void derive_params(const struct rl_layer *l, const float *x, const float *d, size_t rows,
                          float *gradient)
{
    float *biases = gradient + l->biases;
    kernel_product(&(struct kernel_product){.a = x,
                                            .a_row = 1,
                                            .a_inner = l->in,
                                            .b = d,
                                            .c = gradient + l->weights,
                                            .rows = l->in,
                                            .inner = rows,
                                            .columns = l->out});
    memset(biases, 0, l->out * sizeof(*biases));
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < l->out; k++)
            biases[k] += d[r * l->out + k];
}

/* By what went into a layer: d · wᵀ. */
static void derive_inputs(const struct rl_net *net, const struct rl_layer *l, struct rl_work *work,
                          const float *d, float *d_in)
{
    kernel_transpose(net->params + l->weights, work->turned, l->in, l->out);
    kernel_product(&(struct kernel_product){.a = d,
                                            .a_row = l->out,
                                            .a_inner = 1,
                                            .b = work->turned,
                                            .c = d_in,
                                            .rows = work->rows,
                                            .inner = l->out,
                                            .columns = l->in});
}

/* From derivatives by what an activation gave, y, to those by what went into it. */
static void derive_activation(const struct rl_net *net, const float *restrict y, float *restrict d,
                              size_t n)
{
    if (net->shape.activation == RL_TANH)
        for (size_t i = 0; i < n; i++)
            d[i] *= 1 - y[i] * y[i];
    else
        for (size_t i = 0; i < n; i++)
            d[i] = y[i] > 0 ? d[i] : 0;
}

void rl_net_backward(const struct rl_net *net, struct rl_work *work, const float *d_outputs,
                     float *gradient)
{
    const float *d = d_outputs;
    for (size_t i = net->layer_count - 1;; i--) {
        const struct rl_layer *l = &net->layers[i];
        derive_params(l, i > 0 ? work->outputs[i - 1] : work->inputs, d, work->rows, gradient);
        if (i == 0)
            return;
        derive_inputs(net, l, work, d, work->deltas[i - 1]);
        derive_activation(net, work->outputs[i - 1], work->deltas[i - 1], work->rows * l->in);
        d = work->deltas[i - 1];
    }
}

void rl_net_input_gradient(const struct rl_net *net, struct rl_work *work, const float *d_outputs,
                           float *d_inputs)
{
    const float *d = net->layer_count > 1 ? work->deltas[0] : d_outputs;
    derive_inputs(net, &net->layers[0], work, d, d_inputs);
}

void rl_work_clear(struct rl_work *work)
{
    free(work->memory);
    *work = (struct rl_work){0};
}
