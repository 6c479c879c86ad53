/* Recommenders by name, with their parameters. */
#include "trial/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const trial_names[] = {
    "fixed",  "threshold",   "hpa", "kpa",       "vpa",    "hpa+vpa",         "ensure",
    "greedy", "feedforward", "ppo", "ppo-steps", "oracle", "oracle-requests", NULL,
};

const struct recommender *trial_find(const char *name)
{
    if (name && strcmp(name, trial_oracle.name) == 0)
        return &trial_oracle;
    if (name && strcmp(name, trial_oracle_requests.name) == 0)
        return &trial_oracle_requests;
    return recommend_find(name);
}

/* --- errors that say what would be right ----------------------------------------------------- */
static int refuse_name(const char *name, struct error *err)
{
    cleanup_buf struct buf names;
    buf_init(&names, sizeof(err->message));
    for (size_t i = 0; trial_names[i]; i++)
        if (trial_find(trial_names[i]) &&
            buf_printf(&names, "%s%s", names.len ? ", " : "", trial_names[i]) < 0)
            break;
    return error_set(err, ERROR_NOT_FOUND, "%s: there is no such recommender: there are %s", name,
                     buf_string(&names));
}

static int refuse_parameter(const struct recommender *r, const char *name, struct error *err)
{
    cleanup_buf struct buf names;
    buf_init(&names, sizeof(err->message));
    for (size_t i = 0; i < r->param_count; i++)
        if (buf_printf(&names, "%s%s", i ? ", " : "", r->params[i].name) < 0)
            break;
    return error_set(err, ERROR_INVALID, "%s has no parameter %s: it has %s", r->name, name,
                     r->param_count ? buf_string(&names) : "none");
}

/* --- parameters ------------------------------------------------------------------------------ */
static int set_parameter(struct trial_choice *choice, char *text, struct error *err)
{
    const struct recommender *r = choice->recommender;
    char *value = strchr(text, '=');
    if (!value)
        return error_set(err, ERROR_INVALID, "%s: %s: write NAME=NUMBER", r->name, text);
    *value++ = '\0';
    size_t at = 0;
    while (at < r->param_count && strcmp(r->params[at].name, text) != 0)
        at++;
    if (at == r->param_count)
        return refuse_parameter(r, text, err);
    char *end;
    double number = strtod(value, &end);
    const struct recommend_param *p = &r->params[at];
    if (end == value || *end)
        return error_set(err, ERROR_INVALID, "%s: %s: \"%s\" is no number", r->name, text, value);
    if (number != p->value && !(number >= p->low && number <= p->high))
        return error_set(err, ERROR_INVALID, "%s: %s: %s is not within %g to %g", r->name, text,
                         value, p->low, p->high);
    choice->params[at] = number;
    return 0;
}

static int set_parameters(struct trial_choice *choice, char *text, struct error *err)
{
    for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL;)
        if (set_parameter(choice, one, err) < 0)
            return -1;
    return 0;
}

int trial_choose(const char *text, struct trial_choice *out, struct error *err)
{
    cleanup_free char *copy = xstrdup(text);
    char *parameters = copy, *name = strsep(&parameters, ":");
    struct trial_choice choice = {.recommender = trial_find(name)};
    if (!choice.recommender)
        return refuse_name(name, err);
    choice.label = xstrdup(text);
    choice.params = xcalloc(choice.recommender->param_count + 1, sizeof(*choice.params));
    for (size_t i = 0; i < choice.recommender->param_count; i++)
        choice.params[i] = choice.recommender->params[i].value;
    if (parameters && set_parameters(&choice, parameters, err) < 0) {
        trial_choice_clear(&choice);
        return -1;
    }
    *out = choice;
    return 0;
}

void trial_choice_clear(struct trial_choice *choice)
{
    free(choice->label);
    free(choice->params);
    *choice = (struct trial_choice){0};
}
