/* What mpactl tune found: a table, the settings, and both as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table.h"
#include "tuning.h"

/* --- figures ---------------------------------------------------------------------------------- */
#define EVERY_CLASS TRACE_CLASS_COUNT

struct summary { /* means over functions */
    size_t functions, met;
    double late, cost;   /* the share of late requests; CPU over the oracle's */
    double kills, gib_s; /* not a mean: in all; memory reserved */
};

static void add(struct summary *s, const struct tuning *t, const struct trial_result *result,
                size_t function)
{
    s->functions++;
    s->met += result->violation_ratio <= study_allowed(&t->study);
    s->late += result->violation_ratio;
    s->cost += result->cpu_core_seconds / t->oracle[function].cpu_core_seconds;
    s->kills += (double)result->memory_kills;
    s->gib_s += result->memory_byte_seconds / 0x1p30;
}

static void divide(struct summary *s)
{
    s->late /= (double)s->functions;
    s->cost /= (double)s->functions;
    s->gib_s /= (double)s->functions;
}

/* recommender tuned_count: the oracle. class EVERY_CLASS: all. */
static struct summary sum_up(const struct tuning *t, size_t recommender, size_t row, size_t class_)
{
    struct summary s = {0};
    for (size_t i = 0; i < t->function_count; i++) {
        if (class_ != EVERY_CLASS && t->functions[i].class_ != class_)
            continue;
        add(&s, t,
            recommender == t->tuned_count ? &t->oracle[i] : tuning_result(t, recommender, row, i),
            i);
    }
    divide(&s);
    return s;
}

/* --- tables ----------------------------------------------------------------------------------- */
static void print_row(struct table *table, const struct tuning *t, size_t recommender, size_t row)
{
    bool oracle = recommender == t->tuned_count;
    char text[TABLE_TEXT];
    table_cell(table, "%s",
               oracle || row > 0 ? (oracle ? "oracle" : "")
                                 : t->tuned[recommender].recommender->name);
    table_cell(table, "%s", oracle ? "" : tuning_row_name(row));
    for (size_t c = 0; c <= EVERY_CLASS; c++) {
        struct summary s = sum_up(t, recommender, row, c);
        table_cell(table, "%s", table_percent(s.functions ? s.late : NAN, 2, text));
        table_cell(table, "%s", table_number(s.functions ? s.cost : NAN, 2, text));
    }
    struct summary s = sum_up(t, recommender, row, EVERY_CLASS);
    table_cell(table, "%zu of %zu", s.met, s.functions);
    if (study_models_memory(&t->study)) {
        double hours = s.gib_s / 3600;
        table_cell(table, "%s", table_number(hours, hours < 10 ? 3 : 1, text));
        table_cell(table, "%s", table_count(isnan(s.gib_s) ? NAN : s.kills, text));
    }
}

static void print_results(const struct tuning *t)
{
    const char *titles[] = {"RECOMMENDER", "TUNED FOR", "SPARSE", "CPU", "STEADY",
                            "CPU",         "BURSTY",    "CPU",    "ALL", "CPU",
                            "GOAL MET",    "MEM GIB-H", "KILLS",  NULL};
    const char *align = study_models_memory(&t->study) ? "llrrrrrrrrrrr" : "llrrrrrrrrr";
    struct table table;
    titles[strlen(align)] = NULL;
    table_begin(&table, align, titles);
    for (size_t r = 0; r < t->tuned_count; r++)
        for (size_t row = 0; row < tuning_rows(t, r); row++)
            print_row(&table, t, r, row);
    print_row(&table, t, t->tuned_count, 0);
    table_end(&table, "");
}

/* The first function of a class; function_count: none. */
static size_t first_of(const struct tuning *t, size_t class_)
{
    size_t i = 0;
    while (i < t->function_count && t->functions[i].class_ != class_)
        i++;
    return i;
}

static void print_settings(const struct tuning *t)
{
    static const char *const titles[] = {"FOR", "SETTING", NULL};
    struct table table;
    size_t tunable = 0;
    for (size_t r = 0; r < t->tuned_count; r++)
        tunable += t->tuned[r].recommender->param_count > 0;
    if (tunable == 0)
        return;
    putchar('\n');
    table_begin(&table, "ll", titles);
    for (size_t r = 0; r < t->tuned_count; r++) {
        const struct recommender *recommender = t->tuned[r].recommender;
        if (recommender->param_count == 0)
            continue;
        cleanup_free char *all =
            tune_print_setting(recommender, tuning_params(t, r, 1 + TUNE_ALL, 0));
        table_cell(&table, "all");
        table_cell(&table, "%s", all);
        for (size_t c = 0; c < TRACE_CLASS_COUNT; c++) {
            size_t i = first_of(t, c);
            if (i == t->function_count)
                continue;
            cleanup_free char *text =
                tune_print_setting(recommender, tuning_params(t, r, 1 + TUNE_CLASS, i));
            table_cell(&table, "%s", trace_class_name((enum trace_class)c));
            table_cell(&table, "%s", text);
        }
    }
    table_end(&table, "");
}

void tuning_print(const struct tuning *t)
{
    size_t of_class[TRACE_CLASS_COUNT];
    for (size_t c = 0; c < TRACE_CLASS_COUNT; c++)
        of_class[c] = sum_up(t, t->tuned_count, 0, c).functions;
    printf("%zu functions: %zu sparse, %zu steady, %zu bursty; %g trials each on seed %g, judged "
           "on seed %g.\nLate requests and CPU over the oracle's, means over functions.\n\n",
           t->function_count, of_class[TRACE_SPARSE], of_class[TRACE_STEADY],
           of_class[TRACE_BURSTY], t->options.trials, t->options.study.seed, t->options.judge_seed);
    print_results(t);
    print_settings(t);
}

/* --- JSON ------------------------------------------------------------------------------------- */
static json_t *entry_json(const struct tuning *t, size_t recommender, size_t row, size_t class_,
                          size_t function, const struct summary *s)
{
    bool one = row == 1 + TUNE_FUNCTION;
    const struct tuning_function *f = &t->functions[function];
    const struct study_trace *trace = &t->study.traces[f->trace];
    cleanup_free char *setting = tune_print_setting(t->tuned[recommender].recommender,
                                                    tuning_params(t, recommender, row, function));
    json_t *entry = json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:f,s:f}", "recommender",
        t->tuned[recommender].recommender->name, "tuned_for", tuning_row_name(row), "class",
        class_ == EVERY_CLASS ? "*" : trace_class_name((enum trace_class)class_), "trace",
        one ? trace->label : "*", "function", one ? trace->labels[f->function] : "*", "setting",
        setting, "functions", (json_int_t)s->functions, "goal_met", (json_int_t)s->met,
        "violation_ratio", s->late, "cost_vs_oracle", s->cost);
    if (study_models_memory(&t->study)) {
        bool known = isfinite(s->gib_s);
        json_object_set_new(entry, "memory_gib_seconds", known ? json_real(s->gib_s) : json_null());
        json_object_set_new(entry, "memory_kills",
                            known ? json_integer((json_int_t)s->kills) : json_null());
    }
    return entry;
}

static void add_groups(const struct tuning *t, size_t recommender, size_t row, json_t *list)
{
    for (size_t c = 0; c <= EVERY_CLASS; c++) {
        bool wanted = (row == 1 + TUNE_CLASS) == (c != EVERY_CLASS);
        size_t first = c == EVERY_CLASS ? 0 : first_of(t, c);
        if (!wanted || first == t->function_count)
            continue;
        struct summary s = sum_up(t, recommender, row, c);
        json_array_append_new(list, entry_json(t, recommender, row, c, first, &s));
    }
}

static void add_functions(const struct tuning *t, size_t recommender, json_t *list)
{
    size_t row = 1 + TUNE_FUNCTION;
    for (size_t i = 0; i < t->function_count; i++) {
        struct summary s = {0};
        add(&s, t, tuning_result(t, recommender, row, i), i);
        json_array_append_new(list, entry_json(t, recommender, row, t->functions[i].class_, i, &s));
    }
}

void tuning_write_json(const struct tuning *t, FILE *out)
{
    cleanup_json json_t *list = json_array();
    for (size_t r = 0; r < t->tuned_count; r++) {
        for (size_t row = 0; row < tuning_rows(t, r); row++) {
            if (row == 1 + TUNE_FUNCTION)
                add_functions(t, r, list);
            else
                add_groups(t, r, row, list);
        }
    }
    json_dumpf(list, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
}
