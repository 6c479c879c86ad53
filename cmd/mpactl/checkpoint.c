/* mpactl checkpoint show: what a file of learned weights holds. */
#include "mpactl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rl/checkpoint.h"

static void print_names(const char *label, const struct rl_names *names)
{
    printf("%-12s", label);
    for (size_t i = 0; i < names->count; i++)
        printf("%s%s", i ? ", " : "", names->items[i]);
    puts(names->count ? "" : "none");
}

static void print_interface(const struct rl_interface *i)
{
    print_names("features", &i->features);
    if (i->globals.count > 0)
        print_names("globals", &i->globals);
    printf("%-12s", "actions");
    for (size_t h = 0; h < i->heads.count; h++)
        printf("%s%s (%zu options)", h ? ", " : "", i->head_names.items[h], i->heads.options[h]);
    puts(i->heads.count ? "" : "none");
}

static void print_net(const struct rl_saved_net *saved)
{
    const struct rl_shape *s = &saved->net.shape;
    printf("%-12s%s: %zu", "network", saved->name, s->inputs);
    for (size_t i = 0; i < s->hidden_count; i++)
        printf("-%zu", s->hidden[i]);
    printf("-%zu %s, %zu weights", s->outputs, s->activation == RL_TANH ? "tanh" : "relu",
           saved->net.param_count);
    if (saved->adam.count > 0)
        printf(", Adam after %" PRIu64 " steps", saved->adam.steps);
    puts("");
}

static void print_checkpoint(const struct rl_checkpoint *c)
{
    printf("%-12s%s\n", "algorithm", c->algorithm);
    printf("%-12s%" PRIu64 " steps, %" PRIu64 " episodes, %" PRIu64 " updates\n", "learned",
           c->steps, c->episodes, c->updates);
    print_interface(&c->interface);
    for (size_t i = 0; i < c->net_count; i++)
        print_net(&c->nets[i]);
    for (size_t i = 0; i < c->table_count; i++)
        printf("%-12s%s: %zu states, %zu actions\n", "table", c->tables[i].name,
               c->tables[i].table.states, c->tables[i].table.actions);
    for (size_t i = 0; i < c->fact_count; i++)
        printf("%-12s%s = %s\n", "fact", c->facts[i].key, c->facts[i].value);
    printf("%-12s%s\n", "sha256", c->sha256);
}

int cmd_checkpoint(int argc, char **argv)
{
    struct rl_checkpoint c;
    struct error err;
    if (argc != 3 || strcmp(argv[1], "show") != 0) {
        fputs("usage: mpactl checkpoint show FILE\n", stderr);
        return EXIT_USAGE;
    }
    if (rl_checkpoint_read(&c, argv[2], &err) < 0) {
        mpactl_error("%s: name a checkpoint", err.message);
        return EXIT_FAILED;
    }
    print_checkpoint(&c);
    rl_checkpoint_clear(&c);
    return EXIT_FINE;
}
