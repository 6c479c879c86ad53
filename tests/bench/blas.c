/* The network's products beside OpenBLAS's, one thread each, in the same run: forward, and there
 * and back, for batches of every size. OpenBLAS is loaded where it is installed; nothing else needs
 * it. */
#include "bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rl/kernel.h" /* the same tanh on both sides: only products are compared */
#include "rl/rl.h"

enum { INPUTS = 16, OUTPUTS = 8, MOST_ROWS = 4096, ROUNDS = 9, SAMPLES = 1 << 15 };

/* --- OpenBLAS -------------------------------------------------------------------------------- */
enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 }; /* of cblas.h */
typedef void sgemm(int order, int turn_a, int turn_b, int rows, int columns, int inner, float alpha,
                   const float *a, int a_row, const float *b, int b_row, float beta, float *c,
                   int c_row);

/* NULL: it is not there. */
static sgemm *load(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    sgemm *product = NULL;
    void (*set_threads)(int) = NULL;
    if (library == NULL)
        return NULL;
    *(void **)&product = dlsym(library, "cblas_sgemm");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads)
        set_threads(1);
    return product;
}

/* --- the network over it --------------------------------------------------------------------- */
struct subject {
    struct rl_net net;
    float *in, *d_out, *gradient;
    struct rl_work work; /* the memory of either side */
    sgemm *product;      /* NULL: our own */
};

static void blas_forward(struct subject *s, int rows)
{
    const float *in = s->in;
    for (size_t i = 0; i < s->net.layer_count; i++) {
        const struct rl_layer *l = &s->net.layers[i];
        int width = (int)l->out, inner = (int)l->in;
        float *y = s->work.outputs[i];
        for (int r = 0; r < rows; r++)
            memcpy(y + (size_t)r * l->out, s->net.params + l->biases, l->out * sizeof(*y));
        s->product(ROW_MAJOR, PLAIN, PLAIN, rows, width, inner, 1, in, inner,
                   s->net.params + l->weights, width, 1, y, width);
        if (i + 1 < s->net.layer_count)
            kernel_tanh(y, (size_t)rows * l->out);
        in = y;
    }
}

static void derive_tanh(const float *restrict y, float *restrict d, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d[i] *= 1 - y[i] * y[i];
}

static void blas_backward(struct subject *s, int rows)
{
    const float *d = s->d_out;
    for (size_t i = s->net.layer_count; i-- > 0;) {
        const struct rl_layer *l = &s->net.layers[i];
        int width = (int)l->out, inner = (int)l->in;
        const float *x = i > 0 ? s->work.outputs[i - 1] : s->in;
        float *biases = s->gradient + l->biases, *d_in = i > 0 ? s->work.deltas[i - 1] : NULL;
        s->product(ROW_MAJOR, TURNED, PLAIN, inner, width, rows, 1, x, inner, d, width, 0,
                   s->gradient + l->weights, width);
        memset(biases, 0, l->out * sizeof(*biases));
        for (int r = 0; r < rows; r++)
            for (size_t k = 0; k < l->out; k++)
                biases[k] += d[(size_t)r * l->out + k];
        if (i == 0)
            return;
        s->product(ROW_MAJOR, PLAIN, TURNED, rows, inner, width, 1, d, width,
                   s->net.params + l->weights, width, 0, d_in, inner);
        derive_tanh(x, d_in, (size_t)rows * l->in);
        d = d_in;
    }
}

/* --- measuring ------------------------------------------------------------------------------- */
static void make_subject(struct subject *s)
{
    struct random random = random_stream(3, 1);
    const struct rl_shape shape = {INPUTS, OUTPUTS, {64, 64}, 2, RL_TANH};
    *s = (struct subject){.in = xcalloc(MOST_ROWS * INPUTS, sizeof(float)),
                          .d_out = xcalloc(MOST_ROWS * OUTPUTS, sizeof(float))};
    if (rl_net_make(&s->net, &shape, NULL) < 0)
        abort();
    rl_net_randomise(&s->net, 1, &random);
    s->gradient = xcalloc(s->net.param_count, sizeof(float));
    for (size_t i = 0; i < MOST_ROWS * INPUTS; i++)
        s->in[i] = (float)random_normal(&random);
    for (size_t i = 0; i < MOST_ROWS * OUTPUTS; i++)
        s->d_out[i] = (float)random_normal(&random);
    rl_net_forward(&s->net, s->in, MOST_ROWS, &s->work);
}

static void clear_subject(struct subject *s)
{
    rl_net_clear(&s->net);
    rl_work_clear(&s->work);
    free(s->in);
    free(s->d_out);
    free(s->gradient);
}

static void run_once(struct subject *s, size_t rows, bool back)
{
    if (s->product) {
        blas_forward(s, (int)rows);
        if (back)
            blas_backward(s, (int)rows);
        return;
    }
    rl_net_forward(&s->net, s->in, rows, &s->work);
    if (back)
        rl_net_backward(&s->net, &s->work, s->d_out, s->gradient);
}

static double time_of(struct subject *s, size_t rows, bool back)
{
    size_t times = SAMPLES / rows;
    double t = bench_cpu_s();
    for (size_t i = 0; i < times; i++)
        run_once(s, rows, back);
    return (bench_cpu_s() - t) / (double)(times * rows);
}

/* Both must have come to the same, or one of them has not done the work. */
static void check(const struct subject *a, const struct subject *b)
{
    for (size_t i = 0; i < a->net.param_count; i++)
        if (fabsf(a->gradient[i] - b->gradient[i]) > 1e-3f * (1 + fabsf(b->gradient[i])))
            abort();
}

/* By turns, and the best of each: whoever else is on the machine disturbs both alike. */
static struct figure compare(struct subject *ours, struct subject *theirs, const char *name,
                             size_t rows, bool back)
{
    double best = INFINITY, best_of_peer = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        best = fmin(best, time_of(ours, rows, back));
        if (theirs->product)
            best_of_peer = fmin(best_of_peer, time_of(theirs, rows, back));
    }
    if (theirs->product && back)
        check(ours, theirs);
    return (struct figure){name,
                           "/s",
                           theirs->product ? "OpenBLAS" : NULL,
                           1 / best,
                           theirs->product ? 1 / best_of_peer : NAN,
                           NAN,
                           true};
}

void bench_nets(struct figure out[BENCH_NETS])
{
    static const struct {
        size_t rows;
        const char *forward, *back;
    } sizes[BENCH_NETS / 2] = {{5, "net_forward_5_per_s", "net_backward_5_per_s"},
                               {64, "net_forward_64_per_s", "net_backward_64_per_s"},
                               {256, "net_forward_256_per_s", "net_backward_256_per_s"},
                               {1024, "net_forward_1024_per_s", "net_backward_1024_per_s"},
                               {4096, "net_forward_4096_per_s", "net_backward_4096_per_s"}};
    struct subject ours, theirs;
    make_subject(&ours);
    make_subject(&theirs);
    theirs.product = load();
    if (theirs.product == NULL)
        puts("OpenBLAS: left out, it is not installed (make bench PEERS=all)");
    for (size_t i = 0; i < BENCH_NETS / 2; i++) {
        out[2 * i] = compare(&ours, &theirs, sizes[i].forward, sizes[i].rows, false);
        out[2 * i + 1] = compare(&ours, &theirs, sizes[i].back, sizes[i].rows, true);
    }
    clear_subject(&ours);
    clear_subject(&theirs);
}
