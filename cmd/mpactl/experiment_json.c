/* What came of an experiment, as JSON. */
#include <math.h>

#include "experiments.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *numbers(const double *values, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, number(values[i]));
    return list;
}

static json_t *row_json(const struct experiment_result *result, size_t row)
{
    static const char *const aims[] = {
        [EXPERIMENT_AT_MOST] = "at most", [EXPERIMENT_AT_LEAST] = "at least"};
    const struct experiment_row *r = &experiment_of(result)->rows[row];
    bool aimed = r->aim != EXPERIMENT_NO_AIM;
    return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:s?}", "group",
                     r->group, "what", r->what, "unit", r->unit, "document", r->document, "aim",
                     aimed ? aims[r->aim] : NULL, "bound", aimed ? number(r->bound) : json_null(),
                     "mean", number(experiment_mean(result, row)), "spread",
                     number(experiment_spread(result, row)), "values",
                     numbers(experiment_values(result, row), experiment_seeds(result)), "reached",
                     aimed ? json_boolean(experiment_reached(result, row)) : json_null(),
                     "otherwise", r->otherwise);
}

static json_t *lines_json(const struct plot *plot)
{
    json_t *list = json_array();
    for (size_t p = 0; p < plot->panel_count; p++) {
        for (size_t i = 0; i < plot->panels[p].line_count; i++) {
            const struct plot_line *l = &plot->panels[p].lines[i];
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "panel", plot->panels[p].y_label,
                                "label", l->label, "x", numbers(l->x, l->count), "mean",
                                numbers(l->y, l->count), "low", numbers(l->low, l->count), "high",
                                numbers(l->high, l->count)));
        }
    }
    return list;
}

json_t *experiments_json(const struct experiment_result *result,
                         const struct experiments_options *options, bool lines)
{
    const struct experiment *e = experiment_of(result);
    json_t *rows = json_array();
    for (size_t i = 0; i < e->row_count; i++)
        json_array_append_new(rows, row_json(result, i));
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:I, s:o}", "name", e->name, "title",
                  e->title, "document", e->document, "seeds", (json_int_t)options->seeds, "seed",
                  (json_int_t)options->seed, "effort", options->effort, "seconds",
                  experiment_seconds(result), "headline", (json_int_t)e->headline, "rows", rows);
    if (lines)
        json_object_set_new(all, "lines", lines_json(experiment_plot(result)));
    return all;
}

struct figure experiments_figure_of(const json_t *row)
{
    const json_t *values = json_object_get(row, "values");
    struct figure f = {.seeds = json_array_size(values),
                       .mean = json_number_value(json_object_get(row, "mean")),
                       .spread = json_number_value(json_object_get(row, "spread")),
                       .unit = json_str(json_object_get(row, "unit"))};
    for (size_t i = 0; i < f.seeds; i++)
        f.count += json_is_number(json_array_get(values, i));
    return f;
}
