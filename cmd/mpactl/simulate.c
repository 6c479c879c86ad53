/* mpactl simulate: what one recommender does on simulated load, over time. */
#include <math.h>
#include <string.h>

#include "mpactl.h"
#include "study.h"
#include "table.h"

#define LINES 30 /* about so many, unless something else is asked for */

/* Whose lines are printed. Returns 0, or the exit status. */
static int find_function(const struct study *study, size_t *function)
{
    const struct study_trace *t = &study->traces[0];
    const char *wanted = study->options.function;
    *function = t->by_load[0];
    for (size_t i = 0; wanted && i < t->trace.function_count; i++) {
        if (strcmp(t->labels[i], wanted) == 0) {
            *function = i;
            return 0;
        }
    }
    if (!wanted)
        return 0;
    mpactl_error("--function %s: %s has none of this name: its first is %s", wanted, t->label,
                 t->labels[0]);
    return EXIT_USAGE;
}

/* The least round time that gives no more than about LINES lines. */
static double usual_step_s(double span_s, double interval_s)
{
    static const double round_s[] = {1,   2,   5,   10,   15,   30,   60,    120,
                                     300, 600, 900, 1800, 3600, 7200, 14400, 86400};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(round_s) && (round_s[i] < interval_s || span_s / round_s[i] > LINES))
        i++;
    return round_s[i];
}

static void add_memory(struct table *t, const struct series_point *p)
{
    char text[TABLE_TEXT];
    table_cell(t, "%sMi", table_number(p->memory_bytes / 0x1p20, 0, text));
    table_cell(t, "%s", table_count((double)p->memory_kills, text));
}

static void add_line(struct table *t, const struct series_point *p, double goal_ms, bool memory)
{
    char text[TABLE_TEXT];
    table_cell(t, "%s", table_clock(p->time_s, text));
    table_cell(t, "%s", table_number(p->requests_per_s, p->requests_per_s < 100 ? 2 : 0, text));
    table_cell(t, "%s%s", table_duration(p->latency_ms, text), p->latency_ms > goal_ms ? "!" : "");
    table_cell(t, "%s", table_percent(p->violation_ratio, 1, text));
    table_cell(t, "%s", table_number(p->replicas, p->replicas == floor(p->replicas) ? 0 : 1, text));
    table_cell(t, "%sm", table_number(p->request_milli, 0, text));
    table_cell(t, "%s", table_percent(p->cpu_utilization, 0, text));
    if (memory)
        add_memory(t, p);
    table_cell(t, "%s", p->reason);
}

static void print_lines(const struct study *study, size_t function)
{
    static const char *const titles[][11] = {
        {"TIME", "RATE/S", "LATENCY", "LATE", "REPLICAS", "CPU", "USED", "DECISION"},
        {"TIME", "RATE/S", "LATENCY", "LATE", "REPLICAS", "CPU", "USED", "MEMORY", "KILLS",
         "DECISION"},
    };
    const struct study_options *o = &study->options;
    const struct study_run *run = study_run(study, 0, function, 0);
    double goal_ms = run->result.goal_ms;
    bool memory = isfinite(run->result.memory_byte_seconds);
    struct series series = {.bucket_s = o->every_s};
    struct table t;
    char text[TABLE_TEXT];
    if (!o->changes && !(o->every_s > 0))
        series.bucket_s = usual_step_s(study->traces[0].span_s, study_interval_s(study, 0));
    series_widen(&run->series, &series);
    printf("%s of %s by %s, goal p%g %s\n", study->traces[0].labels[function],
           study->traces[0].label, study->choices[0].label, study->spec->latency_percentile,
           table_duration(goal_ms, text));
    table_begin(&t, memory ? "lrrrrrrrrl" : "lrrrrrrl", titles[memory]);
    for (size_t i = 0; i < series.count; i++)
        if (!o->changes || series.points[i].changed)
            add_line(&t, &series.points[i], goal_ms, memory);
    table_end(&t, "  ");
    series_clear(&series);
    putchar('\n');
}

static int prepare(struct study *study)
{
    size_t function;
    int status = find_function(study, &function);
    if (status == 0)
        *study_run(study, 0, function, 0) = (struct study_run){.record = true};
    return status;
}

static void print(const struct study *study)
{
    size_t function;
    if (find_function(study, &function) == 0)
        print_lines(study, function);
    study_print(study);
}

int cmd_simulate(int argc, char **argv)
{
    return study_command(STUDY_SIMULATE, argc, argv, prepare, print);
}
