#include "kernel.h"
#include "rl/rl.h"

void rl_adam_init(struct rl_adam *adam, size_t count)
{
    *adam = (struct rl_adam){
        .mean = xcalloc(count, sizeof(float)),
        .square = xcalloc(count, sizeof(float)),
        .count = count,
    };
}

void rl_adam_clear(struct rl_adam *adam)
{
    free(adam->mean);
    free(adam->square);
    *adam = (struct rl_adam){0};
}

/* Beta 0.9 and 0.999, epsilon 1e-8, with the correction of the first steps. */
void rl_adam_step(struct rl_adam *adam, float *params, const float *gradient, double rate)
{
    double steps = (double)++adam->steps;
    kernel_adam(params, adam->mean, adam->square, gradient, adam->count,
                (float)(rate / (1 - pow(0.9, steps))), (float)(1 / (1 - pow(0.999, steps))), 1e-8f);
}

double rl_clip_gradient(float *gradient, size_t count, double most)
{
    double squares;
    kernel_squares(gradient, count, &squares);
    double norm = sqrt(squares);
    if (most > 0 && norm > most)
        for (size_t i = 0; i < count; i++)
            gradient[i] *= (float)(most / norm);
    return norm;
}
