/* The overview of the experiments in a directory, whenever each was done. */
#include <string.h>

#include "experiments.h"

#define MAX_FILE (16 << 20)

static const char introduction[] =
    "# Experiments\n\n"
    "The documents that this project grew from made experiments on real clusters. Here the same\n"
    "questions are asked again in our [simulator](../simulator.md), with our\n"
    "[learners](../learning.md), and in `ppo-…` with the recommender [ppo](../ppo.md) and the "
    "guard\n"
    "of the controller; the document's figure beside ours.\n\n"
    "```console\n"
    "mpactl experiment mp3   # one of them, in this terminal\n"
    "make experiments        # all of them, into this directory\n"
    "```\n\n"
    "How to read them:\n\n"
    "- A figure is the mean of all seeds ± their standard deviation. The same seed gives the same\n"
    "  figures, whatever the number of threads. Where not all seeds have a figure it says so.\n"
    "- *Document* is what the document says, in its words where it gives no number; – where it "
    "says\n"
    "  nothing. *Aim* is what our mean must be to be as good, or what we ask of ourselves.\n"
    "- *Reached* is no where the mean misses its aim or a seed has no figure; the page then says "
    "why.\n"
    "- Absolute times are not compared: their functions and machines are not ours.\n"
    "- `--effort 0.1` does a tenth of the episodes: enough to see that it works, not to judge.\n\n"
    "| experiment | its headline | document | ours | aims reached | seeds |\n"
    "|---|---|---|---|---|---|\n";

/* NULL: it was not done yet, or is not ours. */
static json_t *read_json(const char *directory, const char *name)
{
    struct error err;
    size_t len;
    cleanup_free char *path = xasprintf("%s/%s.json", directory, name);
    cleanup_free char *text = file_read(path, MAX_FILE, &len, &err);
    return text ? json_loadb(text, len, 0, NULL) : NULL;
}

static void write_reached(const json_t *rows, FILE *out)
{
    size_t aims = 0, reached = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *r = json_object_get(json_array_get(rows, i), "reached");
        aims += json_is_boolean(r);
        reached += json_is_true(r);
    }
    fprintf(out, "%zu of %zu | ", reached, aims);
}

static void write_line(const char *name, const json_t *e, FILE *out)
{
    const json_t *rows = json_object_get(e, "rows");
    const json_t *row =
        json_array_get(rows, (size_t)json_integer_value(json_object_get(e, "headline")));
    const char *document = json_str(json_object_get(row, "document"));
    double effort = json_number_value(json_object_get(e, "effort"));
    const struct figure figure = experiments_figure_of(row);
    cleanup_free char *ours = experiments_figure(&figure);
    cleanup_free char *what = xasprintf("%s: %s", json_str(json_object_get(row, "group")),
                                        json_str(json_object_get(row, "what")));
    fprintf(out, "| [%s](%s.md): ", name, name);
    experiments_write_cell(json_str(json_object_get(e, "title")), out);
    experiments_write_cell(what, out);
    experiments_write_cell(document[0] ? document : "–", out);
    experiments_write_cell(ours, out);
    write_reached(rows, out);
    fprintf(out, "%lld", (long long)json_integer_value(json_object_get(e, "seeds")));
    if (effort != 1)
        fprintf(out, ", effort %g", effort);
    fputs(" |\n", out);
}

int experiments_write_index(const struct experiments_options *options)
{
    cleanup_free char *data = NULL;
    size_t len;
    if (options->out == NULL)
        return 0;
    FILE *out = open_memstream(&data, &len);
    fputs(introduction, out);
    for (size_t i = 0; experiment(i); i++) {
        cleanup_json json_t *e = read_json(options->out, experiment(i)->name);
        if (e)
            write_line(experiment(i)->name, e, out);
    }
    fclose(out);
    cleanup_free char *path = xasprintf("%s/README.md", options->out);
    return experiments_write_file("out", path, data, len);
}
