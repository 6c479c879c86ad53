#include "report.h"

#include <math.h>
#include <string.h>

#define POINTS         240 /* of a line, at most */
#define MAX_PLOTS      60
#define MAX_PLOT_BYTES 1500000 /* of all plots, and with so many lines in the table: below 2 MB */
#define MAX_ROWS       2000

/* report.html, NUL-terminated; DATA_MARK is where the data goes. */
extern const char report_template[];
__asm__(".pushsection .rodata\n"
        ".global report_template\n"
        "report_template: .incbin \"cmd/mpactl/report.html\"\n"
        ".byte 0\n"
        ".popsection\n");
#define DATA_MARK "@DATA@"

/* --- what is plotted ------------------------------------------------------------------------- */
struct pick {
    size_t trace, function;
};

/* Of each trace the function with most requests, then of each the second, and so on. */
static size_t pick_functions(const struct study *study, struct pick picks[MAX_PLOTS])
{
    size_t count = 0;
    bool more = true;
    for (size_t rank = 0; more; rank++) {
        more = false;
        for (size_t t = 0; t < study->trace_count && count < MAX_PLOTS; t++) {
            if (rank >= study->traces[t].trace.function_count)
                continue;
            picks[count++] = (struct pick){t, study->traces[t].by_load[rank]};
            more = true;
        }
    }
    return count;
}

/* The same for all recommenders, so that their points are side by side: no less than the longest
 * interval. */
static double bucket_s(const struct study *study, size_t trace)
{
    double longest_s = 0;
    for (size_t c = 0; c < study->shown_count; c++)
        longest_s = fmax(longest_s, study_interval_s(study, c));
    return longest_s * fmax(1, ceil(study->traces[trace].span_s / POINTS / longest_s - 1e-9));
}

void report_record(struct study *study)
{
    struct pick picks[MAX_PLOTS];
    size_t count = pick_functions(study, picks);
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < study->shown_count; c++) {
            struct study_run *run = study_run(study, picks[i].trace, picks[i].function, c);
            run->record = true;
            run->series.bucket_s = bucket_s(study, picks[i].trace);
        }
    }
}

/* --- numbers, as short as they may be -------------------------------------------------------- */
static json_t *number(double value, int digits)
{
    char text[32];
    if (!isfinite(value))
        return json_null();
    snprintf(text, sizeof(text), "%.*g", digits, value);
    double rounded = strtod(text, NULL);
    return rounded == floor(rounded) && fabs(rounded) < 1e15 ? json_integer((json_int_t)rounded)
                                                             : json_real(rounded);
}

static json_t *row_json(const struct study *study, size_t trace, size_t function, size_t choice)
{
    struct study_row r;
    study_row(study, trace, function, choice, &r);
    json_t *row =
        json_pack("[s,s,s,I,o,o,o,o,o,o,I,o]", r.trace, r.function, r.recommender,
                  (json_int_t)r.requests, number(r.violation_ratio, 6), number(r.p99_ms, 6),
                  number(r.goal_ms, 6), number(r.cpu_core_seconds, 6), number(r.cpu_utilization, 6),
                  number(r.replicas_mean, 6), (json_int_t)r.actions, number(r.cost_vs_oracle, 6));
    if (study_models_memory(study)) {
        json_array_append_new(row, number(r.memory_gib_seconds, 6));
        json_array_append_new(row, number(r.memory_utilization, 6));
        json_array_append_new(row, number(r.memory_kills, 9));
    }
    return row;
}

static json_t *sums_json(const struct study *study)
{
    json_t *rows = json_array();
    for (size_t t = 0; t < study->trace_count; t++)
        for (size_t c = 0; c < study->shown_count; c++)
            json_array_append_new(rows, row_json(study, t, STUDY_ALL, c));
    return rows;
}

static void add_functions(const struct study *study, const struct pick *picks, size_t count,
                          json_t *rows)
{
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < study->shown_count; c++)
            json_array_append_new(rows, row_json(study, picks[i].trace, picks[i].function, c));
}

/* --- plots ----------------------------------------------------------------------------------- */
struct reasons {     /* each text once */
    struct map seen; /* to its place in list, plus one */
    json_t *list;
};

static size_t reason_place(struct reasons *reasons, const char *text)
{
    size_t place = (size_t)(uintptr_t)map_get(&reasons->seen, text);
    if (place > 0)
        return place - 1;
    json_t *string = json_string(text);
    json_array_append_new(reasons->list, string ? string : json_string("?"));
    place = json_array_size(reasons->list);
    map_put(&reasons->seen, text, (void *)(uintptr_t)place);
    return place - 1;
}

static json_t *run_json(const struct series *series, struct reasons *reasons)
{
    json_t *latency = json_array(), *replicas = json_array(), *cpu = json_array();
    json_t *used = json_array(), *why = json_array();
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *p = &series->points[i];
        json_array_append_new(latency, number(p->latency_ms, 4));
        json_array_append_new(replicas, number(p->replicas, 3));
        json_array_append_new(cpu, number(p->request_milli, 4));
        json_array_append_new(used, number(p->cpu_utilization, 2));
        json_array_append_new(why, json_integer((json_int_t)reason_place(reasons, p->reason)));
    }
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "latency", latency, "replicas", replicas, "cpu", cpu,
                     "used", used, "why", why);
}

static json_t *load_json(const struct series *series)
{
    json_t *load = json_array();
    for (size_t i = 0; i < series->count; i++)
        json_array_append_new(load, number(series->points[i].requests_per_s, 4));
    return load;
}

/* Requests depend on the seed alone, so that the load of the first run is that of all. */
static json_t *plot_json(const struct study *study, const struct pick *pick,
                         struct reasons *reasons)
{
    const struct study_trace *t = &study->traces[pick->trace];
    json_t *runs = json_array(), *load = NULL;
    double step_s = bucket_s(study, pick->trace);
    for (size_t c = 0; c < study->shown_count; c++) {
        struct series series = {.bucket_s = step_s};
        series_widen(&study_run(study, pick->trace, pick->function, c)->series, &series);
        json_array_append_new(runs, run_json(&series, reasons));
        load = load ? load : load_json(&series);
        series_clear(&series);
    }
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o}", "trace", t->label, "function",
                     t->labels[pick->function], "goal_ms",
                     number(study_run(study, pick->trace, pick->function, 0)->result.goal_ms, 6),
                     "step_s", number(step_s, 9), "load", load, "runs", runs);
}

/* As many as there is room for; returns how many. */
static size_t add_plots(const struct study *study, const struct pick *picks, size_t count,
                        json_t *plots, struct reasons *reasons)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t known = json_array_size(reasons->list);
        cleanup_json json_t *plot = plot_json(study, &picks[i], reasons);
        bytes += json_dumpb(plot, NULL, 0, JSON_COMPACT | JSON_REAL_PRECISION(6));
        if (i > 0 && bytes + json_dumpb(reasons->list, NULL, 0, JSON_COMPACT) > MAX_PLOT_BYTES) {
            while (json_array_size(reasons->list) > known)
                json_array_remove(reasons->list, json_array_size(reasons->list) - 1);
            return i;
        }
        json_array_append(plots, plot);
    }
    return count;
}

/* --- the file -------------------------------------------------------------------------------- */
static char *note(size_t plotted, size_t functions, bool all_rows)
{
    if (plotted == functions)
        return xstrdup("");
    return xasprintf("The %zu of %zu functions with most requests are plotted%s.", plotted,
                     functions,
                     all_rows ? "" : ", and only they have lines of their own in the table");
}

static json_t *recommenders_json(const struct study *study)
{
    json_t *names = json_array();
    for (size_t c = 0; c < study->shown_count; c++)
        json_array_append_new(names, json_string(study->choices[c].label));
    return names;
}

static json_t *data_json(const struct study *study)
{
    struct pick picks[MAX_PLOTS];
    struct reasons reasons = {.list = json_array()};
    size_t picked = pick_functions(study, picks), functions = 0;
    json_t *plots = json_array(), *rows = sums_json(study);
    cleanup_free char *about = study_about(study);
    picked = add_plots(study, picks, picked, plots, &reasons);
    for (size_t t = 0; t < study->trace_count; t++)
        functions += study->traces[t].trace.function_count;
    bool all_rows = functions * study->shown_count <= MAX_ROWS;
    if (all_rows)
        for (size_t t = 0; t < study->trace_count; t++)
            for (size_t f = 0; f < study->traces[t].trace.function_count; f++)
                add_functions(study, &(struct pick){t, f}, 1, rows);
    else
        add_functions(study, picks, picked, rows);
    cleanup_free char *more = note(picked, functions, all_rows);
    map_free(&reasons.seen, NULL);
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "about", about, "note", more,
                     "percentile", number(study->spec->latency_percentile, 4), "allowed",
                     number(study_allowed(study), 4), "recommenders", recommenders_json(study),
                     "rows", rows, "plots", plots, "reasons", reasons.list);
}

/* Inside a script element: nothing in it may look like the element's end. */
static int write_escaped(const char *text, size_t len, void *arg)
{
    FILE *out = arg;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(text[i], out);
    }
    return 0;
}

void report_write(const struct study *study, FILE *out)
{
    const char *mark = strstr(report_template, DATA_MARK);
    const char *rest = mark + strlen(DATA_MARK);
    cleanup_json json_t *data = data_json(study);
    fwrite(report_template, 1, (size_t)(mark - report_template), out);
    json_dump_callback(data, write_escaped, out, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputs(rest, out);
}
