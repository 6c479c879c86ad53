/* What came of an experiment, as a page in Markdown. */
#include <string.h>

#include "experiments.h"

static void write_escaped(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

void experiments_write_cell(const char *text, FILE *out)
{
    write_escaped(text, out);
    fputs(" | ", out);
}

static void write_row(const struct experiment_result *result, size_t row, FILE *out)
{
    const struct experiment_row *r = &experiment_of(result)->rows[row];
    const struct figure figure = experiments_figure_of_row(result, row);
    cleanup_free char *ours = experiments_figure(&figure), *aim = experiments_aim(r);
    fputs("| ", out);
    experiments_write_cell(r->what, out);
    experiments_write_cell(r->document ? r->document : "–", out);
    experiments_write_cell(aim, out);
    experiments_write_cell(ours, out);
    fprintf(out, "%s |\n", experiments_reached(result, row));
}

static void write_table(const struct experiment_result *result, FILE *out)
{
    const struct experiment *e = experiment_of(result);
    fputs("| figure | document | aim | ours | reached |\n|---|---|---|---|---|\n", out);
    for (size_t i = 0; i < e->row_count; i++) {
        if (i == 0 || strcmp(e->rows[i].group, e->rows[i - 1].group) != 0) {
            fputs("| **", out);
            write_escaped(e->rows[i].group, out);
            fputs("** | | | | |\n", out);
        }
        write_row(result, i, out);
    }
}

static void write_misses(const struct experiment_result *result, FILE *out)
{
    const struct experiment *e = experiment_of(result);
    for (size_t i = 0; i < e->row_count; i++) {
        if (experiment_reached(result, i))
            continue;
        fputs("\n## Not reached\n\n", out);
        experiments_write_misses(result, "- ", out);
        return;
    }
}

void experiments_write_text(const struct experiment_result *result,
                            const struct experiments_options *options, FILE *out)
{
    const struct experiment *e = experiment_of(result);
    fprintf(out, "# %s\n\n%s\n\n## What is done\n\n%s\n\n## Figures\n\n", e->title, e->document,
            e->setting);
    write_table(result, out);
    write_misses(result, out);
    if (e->line_count > 0)
        fprintf(out,
                "\n## Curves\n\n![%s](%s.svg)\n\nMean of the seeds, and a band from the "
                "lowest to the highest.\n",
                e->title, e->name);
    fprintf(out, "\n## Again\n\n```console\nmpactl experiment %s --seeds %g --seed %.0f", e->name,
            options->seeds, options->seed);
    if (options->effort != 1)
        fprintf(out, " --effort %g", options->effort);
    fprintf(out, "\n```\n\nIt took %.0f s.\n", experiment_seconds(result));
}
