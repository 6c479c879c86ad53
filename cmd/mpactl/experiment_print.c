/* What came of an experiment, as a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments.h"
#include "table.h"

/* --- numbers ---------------------------------------------------------------------------------- */
/* Three digits that count, more where there are more before the point. */
static int decimals_of(double value)
{
    double size = fabs(value);
    return size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
}

static char *with_unit(const char *number, const char *unit)
{
    bool close = unit[0] == '\0' || strcmp(unit, "×") == 0;
    return xasprintf("%s%s%s", number, close ? "" : " ", unit);
}

char *experiments_figure(const struct figure *f)
{
    if (f->count == 0)
        return xstrdup("–");
    char spread[TABLE_TEXT];
    int decimals = decimals_of(f->mean);
    cleanup_free char *number = f->count > 1 ? xasprintf("%.*f ± %s", decimals, f->mean,
                                                         table_number(f->spread, decimals, spread))
                                             : xasprintf("%.*f", decimals, f->mean);
    char *text = with_unit(number, f->unit);
    if (f->count == f->seeds)
        return text;
    char *longer = xasprintf("%s (%zu of %zu seeds)", text, f->count, f->seeds);
    free(text);
    return longer;
}

char *experiments_aim(const struct experiment_row *row)
{
    if (row->aim == EXPERIMENT_NO_AIM)
        return xstrdup("–");
    cleanup_free char *number =
        xasprintf("%s %g", row->aim == EXPERIMENT_AT_MOST ? "≤" : "≥", row->bound);
    return with_unit(number, row->unit);
}

const char *experiments_reached(const struct experiment_result *result, size_t row)
{
    if (experiment_of(result)->rows[row].aim == EXPERIMENT_NO_AIM)
        return "–";
    return experiment_reached(result, row) ? "yes" : "no";
}

struct figure experiments_figure_of_row(const struct experiment_result *result, size_t row)
{
    return (struct figure){experiment_count(result, row), experiment_seeds(result),
                           experiment_mean(result, row), experiment_spread(result, row),
                           experiment_of(result)->rows[row].unit};
}

/* --- the table -------------------------------------------------------------------------------- */
static void add_group(struct table *table, const char *group)
{
    table_cell(table, "%s", group);
    for (size_t i = 1; i < table->column_count; i++)
        table_cell(table, "%s", "");
}

static void add_row(struct table *table, const struct experiment_result *result, size_t row)
{
    const struct experiment_row *r = &experiment_of(result)->rows[row];
    const struct figure figure = experiments_figure_of_row(result, row);
    cleanup_free char *ours = experiments_figure(&figure), *aim = experiments_aim(r);
    table_cell(table, "  %s", r->what);
    table_cell(table, "%s", r->document ? r->document : "–");
    table_cell(table, "%s", aim);
    table_cell(table, "%s", ours);
    table_cell(table, "%s", experiments_reached(result, row));
}

static const char *reason_of(const struct experiment_row *r)
{
    return r->otherwise ? r->otherwise : "no reason is known";
}

static bool alike(const struct experiment_row *a, const struct experiment_row *b)
{
    return strcmp(a->group, b->group) == 0 && strcmp(reason_of(a), reason_of(b)) == 0;
}

void experiments_write_misses(const struct experiment_result *result, const char *before, FILE *out)
{
    const struct experiment *e = experiment_of(result);
    const struct experiment_row *last = NULL;
    for (size_t i = 0; i < e->row_count; i++) {
        const struct experiment_row *r = &e->rows[i];
        if (experiment_reached(result, i))
            continue;
        if (last && alike(last, r)) {
            fprintf(out, ", %s", r->what);
            continue;
        }
        if (last)
            fprintf(out, ": %s\n", reason_of(last));
        fprintf(out, "%s%s: %s", before, r->group, r->what);
        last = r;
    }
    if (last)
        fprintf(out, ": %s\n", reason_of(last));
}

void experiments_print(const struct experiment_result *result)
{
    static const char *const titles[] = {"FIGURE", "DOCUMENT", "AIM", "OURS", "REACHED", NULL};
    const struct experiment *e = experiment_of(result);
    struct table table;
    printf("%s: %s; seeds: %zu, %.0f s\n", e->name, e->title, experiment_seeds(result),
           experiment_seconds(result));
    table_begin(&table, "lllll", titles);
    for (size_t i = 0; i < e->row_count; i++) {
        if (i == 0 || strcmp(e->rows[i].group, e->rows[i - 1].group) != 0)
            add_group(&table, e->rows[i].group);
        add_row(&table, result, i);
    }
    table_end(&table, "  ");
    experiments_write_misses(result, "  not reached: ", stdout);
    fflush(stdout);
}
