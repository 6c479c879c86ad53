#include "rl/checkpoint.h"

#include <string.h>

/* --- memory ---------------------------------------------------------------------------------- */
void rl_names_add(struct rl_names *names, const char *name)
{
    names->items = xrealloc(names->items, names->count + 1, sizeof(*names->items));
    names->items[names->count++] = xstrdup(name);
}

static void clear_names(struct rl_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

void rl_interface_add_head(struct rl_interface *i, const char *name, size_t options)
{
    rl_names_add(&i->head_names, name);
    if (i->heads.count < RL_MAX_HEADS) /* encoding refuses more */
        i->heads.options[i->heads.count] = options;
    i->heads.count++;
    i->heads.total += options;
}

void rl_interface_clear(struct rl_interface *i)
{
    clear_names(&i->features);
    clear_names(&i->globals);
    clear_names(&i->head_names);
    *i = (struct rl_interface){0};
}

void rl_checkpoint_clear(struct rl_checkpoint *c)
{
    free(c->algorithm);
    rl_interface_clear(&c->interface);
    for (size_t i = 0; i < c->net_count; i++) {
        free(c->nets[i].name);
        rl_net_clear(&c->nets[i].net);
        rl_adam_clear(&c->nets[i].adam);
    }
    for (size_t i = 0; i < c->table_count; i++) {
        free(c->tables[i].name);
        rl_table_clear(&c->tables[i].table);
    }
    for (size_t i = 0; i < c->fact_count; i++) {
        free(c->facts[i].key);
        free(c->facts[i].value);
    }
    free(c->nets);
    free(c->tables);
    free(c->facts);
    *c = (struct rl_checkpoint){0};
}

static float *copy_floats(const float *from, size_t count)
{
    float *to = xcalloc(count, sizeof(*to));
    memcpy(to, from, count * sizeof(*to));
    return to;
}

/* --- adding ---------------------------------------------------------------------------------- */
void rl_checkpoint_add_net(struct rl_checkpoint *c, const char *name, const struct rl_net *net,
                           const struct rl_adam *adam)
{
    struct rl_saved_net saved = {.name = xstrdup(name), .net = *net};
    saved.net.params = copy_floats(net->params, net->param_count);
    if (adam) {
        saved.adam = *adam;
        saved.adam.mean = copy_floats(adam->mean, adam->count);
        saved.adam.square = copy_floats(adam->square, adam->count);
    }
    c->nets = xrealloc(c->nets, c->net_count + 1, sizeof(*c->nets));
    c->nets[c->net_count++] = saved;
}

void rl_checkpoint_add_table(struct rl_checkpoint *c, const char *name,
                             const struct rl_table *table)
{
    struct rl_saved_table saved = {.name = xstrdup(name), .table = *table};
    saved.table.values = copy_floats(table->values, table->states * table->actions);
    c->tables = xrealloc(c->tables, c->table_count + 1, sizeof(*c->tables));
    c->tables[c->table_count++] = saved;
}

static struct rl_fact *find_fact(const struct rl_checkpoint *c, const char *key)
{
    for (size_t i = 0; i < c->fact_count; i++)
        if (strcmp(c->facts[i].key, key) == 0)
            return &c->facts[i];
    return NULL;
}

void rl_checkpoint_set(struct rl_checkpoint *c, const char *key, const char *value)
{
    struct rl_fact *fact = find_fact(c, key);
    if (fact == NULL) {
        c->facts = xrealloc(c->facts, c->fact_count + 1, sizeof(*c->facts));
        fact = &c->facts[c->fact_count++];
        *fact = (struct rl_fact){.key = xstrdup(key)};
    }
    string_set(&fact->value, value);
}

/* --- finding --------------------------------------------------------------------------------- */
const char *rl_checkpoint_get(const struct rl_checkpoint *c, const char *key)
{
    const struct rl_fact *fact = find_fact(c, key);
    return fact ? fact->value : NULL;
}

const struct rl_saved_net *rl_checkpoint_net(const struct rl_checkpoint *c, const char *name)
{
    for (size_t i = 0; i < c->net_count; i++)
        if (strcmp(c->nets[i].name, name) == 0)
            return &c->nets[i];
    return NULL;
}

const struct rl_saved_table *rl_checkpoint_table(const struct rl_checkpoint *c, const char *name)
{
    for (size_t i = 0; i < c->table_count; i++)
        if (strcmp(c->tables[i].name, name) == 0)
            return &c->tables[i];
    return NULL;
}

/* --- comparing ------------------------------------------------------------------------------- */
static int check_names(const char *what, const struct rl_names *saved,
                       const struct rl_names *wanted, struct error *err)
{
    for (size_t i = 0; i < saved->count && i < wanted->count; i++)
        if (strcmp(saved->items[i], wanted->items[i]) != 0)
            return error_set(err, ERROR_INVALID, "%s %zu is %s there, and should be %s", what,
                             i + 1, saved->items[i], wanted->items[i]);
    if (saved->count > wanted->count)
        return error_set(err, ERROR_INVALID, "it has %zu %ss, the first too many is %s",
                         saved->count, what, saved->items[wanted->count]);
    if (saved->count < wanted->count)
        return error_set(err, ERROR_INVALID, "it has %zu %ss, the first that it lacks is %s",
                         saved->count, what, wanted->items[saved->count]);
    return 0;
}

int rl_interface_check(const struct rl_interface *saved, const struct rl_interface *wanted,
                       struct error *err)
{
    if (check_names("feature", &saved->features, &wanted->features, err) < 0 ||
        check_names("global feature", &saved->globals, &wanted->globals, err) < 0 ||
        check_names("action", &saved->head_names, &wanted->head_names, err) < 0)
        return -1;
    for (size_t h = 0; h < saved->heads.count; h++)
        if (saved->heads.options[h] != wanted->heads.options[h])
            return error_set(
                err, ERROR_INVALID, "action %s has %zu options there, and should have %zu",
                saved->head_names.items[h], saved->heads.options[h], wanted->heads.options[h]);
    return 0;
}

int rl_shape_check(const struct rl_shape *saved, const struct rl_shape *wanted, struct error *err)
{
    if (saved->activation != wanted->activation)
        return error_set(err, ERROR_INVALID, "its activation is another");
    if (saved->inputs != wanted->inputs)
        return error_set(err, ERROR_INVALID, "it has %zu inputs, and should have %zu",
                         saved->inputs, wanted->inputs);
    if (saved->outputs != wanted->outputs)
        return error_set(err, ERROR_INVALID, "it has %zu outputs, and should have %zu",
                         saved->outputs, wanted->outputs);
    if (saved->hidden_count != wanted->hidden_count)
        return error_set(err, ERROR_INVALID, "it has %zu hidden layers, and should have %zu",
                         saved->hidden_count, wanted->hidden_count);
    for (size_t i = 0; i < saved->hidden_count; i++)
        if (saved->hidden[i] != wanted->hidden[i])
            return error_set(err, ERROR_INVALID,
                             "its hidden layer %zu is %zu wide, and should be %zu", i + 1,
                             saved->hidden[i], wanted->hidden[i]);
    return 0;
}
