/* The settings of learning. */
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"

/* --- the table -------------------------------------------------------------------------------- */
enum kind { KIND_REAL, KIND_COUNT, KIND_BOOL, KIND_WIDTHS };

struct option {
    struct train_option public;
    enum kind kind;
    size_t at; /* in struct train_config */
};

#define PPO(kind, field, low, high, help)                                                          \
    {                                                                                              \
        {#field, help, low, high}, kind, offsetof(struct train_config, ppo.field)                  \
    }

static const struct option options[] = {
    PPO(KIND_WIDTHS, hidden, 1, RL_MAX_WIDTH, "widths of the hidden layers, as 64x64"),
    PPO(KIND_REAL, actor_rate, 0, 1, "learning rate of the policy"),
    PPO(KIND_REAL, critic_rate, 0, 1, "learning rate of the critic"),
    PPO(KIND_REAL, rate_end, 0, 1, "share of the rates that is left at the end"),
    PPO(KIND_REAL, gamma, 0, 1, "what a reward counts one step later"),
    PPO(KIND_REAL, lambda, 0, 1, "of generalised advantage estimation"),
    PPO(KIND_REAL, clip, 1e-6, 10, "how far an update may move the policy"),
    PPO(KIND_REAL, value_clip, 0, 1e9, "how far it may move a value; 0: any"),
    PPO(KIND_REAL, entropy, 0, 100, "weight of staying curious"),
    PPO(KIND_REAL, critic_weight, 0, 100, "weight of the critic's loss"),
    PPO(KIND_REAL, max_gradient, 0, 1e9, "norm of a gradient; 0: any"),
    PPO(KIND_REAL, stop_kl, 0, 1e9, "an update ends when the policy has moved so far; 0: never"),
    PPO(KIND_COUNT, horizon, 0, 1e6, "steps between updates; 0: an episode"),
    PPO(KIND_COUNT, epochs, 1, 1000, "times an update looks at each step"),
    PPO(KIND_COUNT, minibatch, 0, 1e9, "decisions looked at together; 0: all"),
    PPO(KIND_BOOL, normalise, 0, 1, "1: advantages of a minibatch are brought to one scale"),
    {{"bins", "of each number seen, in a table", 1, 1000},
     KIND_COUNT,
     offsetof(struct train_config, bins)},
    {{"table_rate", "learning rate of a table at the beginning", 0, 1},
     KIND_REAL,
     offsetof(struct train_config, q.rate)},
    {{"epsilon", "share of actions by chance at the beginning, with a table", 0, 1},
     KIND_REAL,
     offsetof(struct train_config, q.epsilon)},
    {{"mask", "1: illegal actions cannot be chosen; 0: they can, and cost", 0, 1},
     KIND_BOOL,
     offsetof(struct train_config, mask)},
};

const struct train_option *train_option(size_t i)
{
    return i < ARRAY_LEN(options) ? &options[i].public : NULL;
}

/* --- reading -----------------------------------------------------------------------------------
 */
static int read_widths(struct train_config *config, const char *text, struct error *err)
{
    size_t widths[RL_MAX_HIDDEN] = {0}, count = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        unsigned long width = strtoul(at, &end, 10);
        bool is_number = *at >= '0' && *at <= '9' && errno == 0;
        if (!is_number || width < 1 || width > RL_MAX_WIDTH || count == RL_MAX_HIDDEN)
            return error_set(err, ERROR_INVALID,
                             "hidden is \"%s\": give up to %d widths of 1 to %d, as 64x64", text,
                             RL_MAX_HIDDEN, RL_MAX_WIDTH);
        widths[count++] = width;
        at = end;
        if (*at == '\0')
            break;
        if (*at != 'x')
            return error_set(err, ERROR_INVALID, "hidden is \"%s\": give widths as 64x64", text);
    }
    memcpy(config->ppo.hidden, widths, sizeof(widths));
    config->ppo.hidden_count = count;
    return 0;
}

static int read_number(struct train_config *config, const struct option *option, const char *text,
                       struct error *err)
{
    void *field = (char *)config + option->at;
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    bool whole = option->kind == KIND_REAL || value == floor(value);
    if (end == text || *end != '\0' || errno != 0 || !whole ||
        !(value >= option->public.low && value <= option->public.high))
        return error_set(err, ERROR_INVALID, "%s is \"%s\": give a %snumber from %g to %g",
                         option->public.name, text, option->kind == KIND_REAL ? "" : "whole ",
                         option->public.low, option->public.high);
    if (option->kind == KIND_REAL)
        *(double *)field = value;
    else if (option->kind == KIND_COUNT)
        *(size_t *)field = (size_t)value;
    else
        *(bool *)field = value != 0;
    return 0;
}

int train_config_set(struct train_config *config, const char *name, const char *value,
                     struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (strcmp(options[i].public.name, name) != 0)
            continue;
        if (options[i].kind == KIND_WIDTHS)
            return read_widths(config, value, err);
        return read_number(config, &options[i], value, err);
    }
    return error_set(err, ERROR_INVALID, "there is no \"%s\" in learning", name);
}

/* --- all ---------------------------------------------------------------------------------------
 */
static int refuse_algorithm(const char *name, struct error *err)
{
    char names[200] = "";
    for (size_t i = 0, len = 0; train_algorithm(i) && len < sizeof(names); i++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
                                train_algorithm(i)->name);
    return error_set(err, ERROR_INVALID, "there is no algorithm \"%s\": choose %s", name, names);
}

int train_config_init(struct train_config *config, const char *algorithm, const char *formulation,
                      struct error *err)
{
    *config = (struct train_config){.algorithm = train_algorithm_find(algorithm),
                                    .mask = true,
                                    .bins = 4,
                                    .episodes = 500,
                                    .seed = 1,
                                    .threads = parallel_cores()};
    if (config->algorithm == NULL)
        return refuse_algorithm(algorithm, err);
    algorithm_of(config)->prepare(config);
    return sim_config_init(&config->world,
                           formulation ? formulation : config->algorithm->formulation, err);
}

void train_config_clear(struct train_config *config)
{
    sim_config_clear(&config->world);
}

void train_config_use_papers(struct train_config *config)
{
    bool central = config->ppo.central_critic;
    if (config->ppo.monte_carlo)
        return;
    config->ppo = rl_ppo_paper;
    config->ppo.central_critic = central;
    config->ppo.horizon = 0;
}
