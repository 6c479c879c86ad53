/* The loops that cost time, for whatever vectors the machine has. Private to pkg/rl. */
#ifndef FAASRL_RL_KERNEL_H
#define FAASRL_RL_KERNEL_H

#include <stddef.h>

/* c (rows, columns) = start + a (rows, inner) · b (inner, columns). */
struct kernel_product {
    const float *a;
    size_t a_row, a_inner; /* what lies between two rows of a, between two of its columns */
    const float *b;
    const float *start; /* (columns); NULL: 0 */
    float *c;
    size_t rows, inner, columns;
};
void kernel_product(const struct kernel_product *p);
/* to (columns, rows) = from (rows, columns), turned. */
void kernel_transpose(const float *from, float *to, size_t rows, size_t columns);
/* In place, to 2e-7; what is no number stays none. */
void kernel_tanh(float *x, size_t n);
void kernel_squares(const float *x, size_t n, double *sum);
void kernel_adam(float *params, float *mean, float *square, const float *gradient, size_t n,
                 float rate, float correction, float epsilon);

#endif
