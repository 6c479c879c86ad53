/* mpactl checkpoint: what a file of learned weights holds, and its networks for other programs. */
#include "mpactl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "rl/onnx.h"

/* --- show ------------------------------------------------------------------------------------- */
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

static int read_checkpoint(struct rl_checkpoint *c, const char *path)
{
    struct error err;
    if (rl_checkpoint_read(c, path, &err) == 0)
        return EXIT_FINE;
    mpactl_error("%s: name a checkpoint", err.message);
    return EXIT_FAILED;
}

static int show(int argc, char **argv)
{
    struct rl_checkpoint c;
    if (argc != 2) {
        mpactl_error("checkpoint show: it takes one file: see mpactl checkpoint help");
        return EXIT_USAGE;
    }
    int status = read_checkpoint(&c, argv[1]);
    if (status != EXIT_FINE)
        return status;
    print_checkpoint(&c);
    rl_checkpoint_clear(&c);
    return EXIT_FINE;
}

/* --- export ----------------------------------------------------------------------------------- */
struct export_options {
    const char *onnx, *network;
    bool chances;
};
#define AT(field) offsetof(struct export_options, field)
static const struct args_option table[] = {
    {"onnx", ARGS_TEXT, AT(onnx), NULL, 0, 0, NULL, "file for the network"},
    {"network", ARGS_TEXT, AT(network), "actor", 0, 0, NULL,
     "one of those that show tells: actor, critic, actor/NAME, …"},
    {"chances", ARGS_FLAG, AT(chances), NULL, 0, 0, NULL,
     "of an actor: also how likely each option is, where all are legal"},
};

static const struct rl_saved_net *find_net(const struct rl_checkpoint *c, const char *name)
{
    const struct rl_saved_net *net = rl_checkpoint_net(c, name);
    cleanup_buf struct buf names;
    buf_init(&names, 300);
    for (size_t i = 0; net == NULL && i < c->net_count; i++)
        if (buf_printf(&names, "%s%s", i ? ", " : "", c->nets[i].name) < 0)
            break;
    if (net == NULL)
        mpactl_error("--network %s: there is none: it has %s", name,
                     c->net_count ? buf_string(&names) : "no networks");
    return net;
}

static int write_onnx(const struct rl_checkpoint *c, const struct export_options *o)
{
    struct error err;
    size_t len;
    const struct rl_saved_net *net = find_net(c, o->network);
    if (net == NULL)
        return EXIT_FAILED;
    cleanup_free char *model = rl_onnx_encode(c, net, o->chances, &len, &err);
    if (model && file_write(o->onnx, model, len, &err) == 0)
        return EXIT_FINE;
    mpactl_error("--onnx %s: %s", o->onnx, err.message);
    return EXIT_FAILED;
}

static int export(int argc, char **argv)
{
    struct export_options options = {0};
    struct rl_checkpoint c;
    struct error err = {0};
    bool understood =
        argc > 1 && args_parse(table, ARRAY_LEN(table), argc - 1, argv + 1, &options, &err) == 0;
    if (!understood || options.onnx == NULL) {
        mpactl_error("checkpoint export: %s: see mpactl checkpoint help",
                     understood || argc < 2 ? "it takes a file and --onnx" : err.message);
        return EXIT_USAGE;
    }
    int status = read_checkpoint(&c, argv[1]);
    if (status != EXIT_FINE)
        return status;
    status = write_onnx(&c, &options);
    rl_checkpoint_clear(&c);
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */
static int print_help(void)
{
    puts("mpactl checkpoint show FILE\n"
         "mpactl checkpoint export FILE --onnx OUT [OPTION…]\n\n"
         "Tells what a file of learned weights holds; writes one of its networks as ONNX, for "
         "other\n"
         "programs.\n\nOptions of export:");
    args_print_help(table, ARRAY_LEN(table));
    return EXIT_FINE;
}

int cmd_checkpoint(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "show") == 0)
        return show(argc - 1, argv + 1);
    if (strcmp(what, "export") == 0)
        return export(argc - 1, argv + 1);
    if (strcmp(what, "help") == 0 || strcmp(what, "--help") == 0)
        return print_help();
    mpactl_error("checkpoint: show or export what: see mpactl checkpoint help");
    return EXIT_USAGE;
}
