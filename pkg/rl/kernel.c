/* The loops that cost time. Each is compiled twice, once for machines with AVX2, and chosen as the
 * program runs. Networks here are so small that their weights stay in the cache, where a product
 * that keeps its sums in registers needs no BLAS: those begin to pay at far larger sizes. */
#include "kernel.h"

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2,fma")))
static int is_wide(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define WIDE
static int is_wide(void)
{
    return 0;
}
#endif

/* Defines name(params), which runs name_body, compiled for the machine it runs on. */
#define KERNEL(name, params, args)                                                                 \
    static void name##_plain params                                                                \
    {                                                                                              \
        name##_body args;                                                                          \
    }                                                                                              \
    WIDE static void name##_wide params                                                            \
    {                                                                                              \
        name##_body args;                                                                          \
    }                                                                                              \
    void kernel_##name params                                                                      \
    {                                                                                              \
        if (is_wide())                                                                             \
            name##_wide args;                                                                      \
        else                                                                                       \
            name##_plain args;                                                                     \
    }

/* --- products -------------------------------------------------------------------------------- */
enum { LANES = 8, ROWS = 6, MAX_SUMS = 12 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* `rows` rows × `wide` vectors of c, whose sums stay in registers while the inner index runs. */
INLINE void sum_wide(const struct kernel_product *p, size_t row, size_t column, size_t rows,
                     size_t wide)
{
    lanes sums[MAX_SUMS];
    const size_t a_row = p->a_row, a_inner = p->a_inner, columns = p->columns;
    const float *a = p->a + row * a_row, *b = p->b + column;
    float *c = p->c + row * columns + column;
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < wide; v++)
            sums[r * wide + v] =
                p->start ? *(const lanes *)(p->start + column + v * LANES) : (lanes){0};
    for (size_t i = p->inner; i > 0; i--, a += a_inner, b += columns)
        for (size_t r = 0; r < rows; r++)
            for (size_t v = 0; v < wide; v++)
                sums[r * wide + v] += a[r * a_row] * *(const lanes *)(b + v * LANES);
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < wide; v++)
            *(lanes *)(c + r * columns + v * LANES) = sums[r * wide + v];
}

/* The same for one column. */
INLINE void sum_thin(const struct kernel_product *p, size_t row, size_t column, size_t rows)
{
    float sums[ROWS];
    const size_t a_row = p->a_row, a_inner = p->a_inner, columns = p->columns;
    const float *a = p->a + row * a_row, *b = p->b + column;
    for (size_t r = 0; r < rows; r++)
        sums[r] = p->start ? p->start[column] : 0;
    for (size_t i = p->inner; i > 0; i--, a += a_inner, b += columns)
        for (size_t r = 0; r < rows; r++)
            sums[r] += a[r * a_row] * *b;
    for (size_t r = 0; r < rows; r++)
        p->c[(row + r) * columns + column] = sums[r];
}

INLINE void sum_rows(const struct kernel_product *p, size_t row, size_t rows)
{
    size_t column = 0;
    if (rows == 1) /* one row alone must be wide to keep the processor busy */
        for (; column + 8 * LANES <= p->columns; column += 8 * LANES)
            sum_wide(p, row, column, 1, 8);
    for (; column + 2 * LANES <= p->columns; column += 2 * LANES)
        sum_wide(p, row, column, rows, 2);
    for (; column + LANES <= p->columns; column += LANES)
        sum_wide(p, row, column, rows, 1);
    for (; column < p->columns; column++)
        sum_thin(p, row, column, rows);
}

/* The number of rows is written out so that the compiler unrolls over them. */
INLINE void product_body(const struct kernel_product *p)
{
    size_t row = 0;
    for (; row + ROWS <= p->rows; row += ROWS)
        sum_rows(p, row, ROWS);
    switch (p->rows - row) {
    case 5:
        sum_rows(p, row, 5);
        break;
    case 4:
        sum_rows(p, row, 4);
        break;
    case 3:
        sum_rows(p, row, 3);
        break;
    case 2:
        sum_rows(p, row, 2);
        break;
    case 1:
        sum_rows(p, row, 1);
        break;
    default:
        break;
    }
}
KERNEL(product, (const struct kernel_product *p), (p))

/* A square of LANES × LANES: rows are woven together pairwise, three times. */
INLINE void transpose_square(const float *from, float *to, size_t from_row, size_t to_row)
{
    lanes a[LANES], b[LANES];
    for (size_t i = 0; i < LANES; i++)
        a[i] = *(const lanes *)(from + i * from_row);
    for (size_t i = 0; i < LANES / 2; i++) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (size_t i = 0; i < LANES / 2; i++) {
        a[2 * i] = __builtin_shufflevector(b[i], b[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        a[2 * i + 1] = __builtin_shufflevector(b[i], b[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (size_t i = 0; i < LANES / 2; i++) {
        *(lanes *)(to + 2 * i * to_row) =
            __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        *(lanes *)(to + (2 * i + 1) * to_row) =
            __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
}

INLINE void transpose_body(const float *restrict from, float *restrict to, size_t rows,
                           size_t columns)
{
    size_t whole_rows = rows - rows % LANES, whole_columns = columns - columns % LANES;
    for (size_t r = 0; r < whole_rows; r += LANES)
        for (size_t c = 0; c < whole_columns; c += LANES)
            transpose_square(from + r * columns + c, to + c * rows + r, columns, rows);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
}
KERNEL(transpose, (const float *restrict from, float *restrict to, size_t rows, size_t columns),
       (from, to, rows, columns))

/* --- element by element ---------------------------------------------------------------------- */
/* tanh(x) = 1 - 2 / (exp(2x) + 1), with exp(t) = 2^power · exp(rest), the rest at most log(2) / 2
 * and its series up to the sixth power. Adding 1.5 · 2^23 rounds to the nearest power and leaves it
 * in the lowest bits. Near 0 the difference would cancel: the series of tanh serves there. */
INLINE void tanh_body(float *x, size_t n)
{
    union number {
        float f;
        uint32_t bits;
    };
    for (size_t i = 0; i < n; i++) {
        float v = x[i], a = v < 0 ? -v : v;
        a = a > 10 ? 10 : a;
        union number power = {.f = 2 * a * 1.44269504f + 12582912};
        union number scale = {.bits = (power.bits << 23) + (127u << 23)};
        float whole = power.f - 12582912;
        float r = (2 * a - whole * 0.693145752f) - whole * 1.42860677e-6f;
        float e =
            1 + r * (1 + r * (1.f / 2 +
                              r * (1.f / 6 + r * (1.f / 24 + r * (1.f / 120 + r * (1.f / 720))))));
        float large = 1 - 2 / (e * scale.f + 1), q = a * a;
        float small =
            a * (1 + q * (-1.f / 3 + q * (2.f / 15 + q * (-17.f / 315 + q * (62.f / 2835)))));
        float result = a < 0.3f ? small : large;
        x[i] = v < 0 ? -result : result;
    }
}
KERNEL(tanh, (float *x, size_t n), (x, n))

INLINE void squares_body(const float *x, size_t n, double *sum)
{
    lanes sums[4] = {0};
    size_t i = 0;
    *sum = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (size_t v = 0; v < 4; v++) {
            lanes part = *(const lanes *)(x + i + v * LANES);
            sums[v] += part * part;
        }
    for (size_t v = 0; v < 4; v++)
        for (size_t l = 0; l < LANES; l++)
            *sum += (double)sums[v][l];
    for (; i < n; i++)
        *sum += (double)x[i] * x[i];
}
KERNEL(squares, (const float *x, size_t n, double *sum), (x, n, sum))

INLINE void adam_body(float *restrict params, float *restrict mean, float *restrict square,
                      const float *restrict gradient, size_t n, float rate, float correction,
                      float epsilon)
{
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i];
        mean[i] += 0.1f * (g - mean[i]);
        square[i] += 0.001f * (g * g - square[i]);
        params[i] -= rate * mean[i] / (__builtin_sqrtf(square[i] * correction) + epsilon);
    }
}
KERNEL(adam,
       (float *restrict params, float *restrict mean, float *restrict square,
        const float *restrict gradient, size_t n, float rate, float correction, float epsilon),
       (params, mean, square, gradient, n, rate, correction, epsilon))
