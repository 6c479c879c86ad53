/* A walk through the environment that Python repeats: prints every observation and reward. */
#include <stdio.h>

#include "sim/sim.h"

int main(void)
{
    const char *settings[] = {"clusters",      "2",  "functions", "3", "churn", "0.5",
                              "episode_steps", "20", NULL};
    struct error err = {0};
    struct sim *sim = sim_open("simppo", settings, &err);
    if (sim == NULL) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const struct sim_shape *shape = sim_shape(sim);
    const struct sim_block *block = sim_block(sim);
    size_t agents = shape->clusters * shape->functions;
    sim_reset(sim, 42);
    for (int step = 0; step < 30; step++) {
        for (size_t i = 0; i < agents * shape->action_size; i++)
            block->actions[i] = (int32_t)((size_t)step * 7 + i * 5) % 3;
        sim_step(sim);
        for (size_t i = 0; i < agents; i++) {
            printf("%a", (double)block->rewards[i]);
            for (size_t k = 0; k < shape->observation_size; k++)
                printf(" %a", (double)block->observations[i * shape->observation_size + k]);
            printf("\n");
        }
    }
    sim_free(sim);
    return 0;
}
