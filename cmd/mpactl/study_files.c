/* A study's results as files: JSON, CSV and the report. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "mpactl.h"
#include "report.h"
#include "study_files.h"

/* --- opening --------------------------------------------------------------------------------- */
static int open_one(FILE **file, const char *option, const char *path)
{
    *file = path ? fopen(path, "we") : NULL;
    if (!path || *file)
        return 0;
    mpactl_error("--%s %s: %s: name a file that can be written", option, path, strerror(errno));
    return EXIT_FAILED;
}

static void record_all(struct study *study)
{
    for (size_t t = 0; t < study->trace_count; t++)
        for (size_t f = 0; f < study->traces[t].trace.function_count; f++)
            for (size_t c = 0; c < study->shown_count; c++)
                *study_run(study, t, f, c) = (struct study_run){.record = true};
}

int study_files_open(struct study_files *files, struct study *study)
{
    const struct study_options *o = &study->options;
    *files = (struct study_files){0};
    int status = open_one(&files->json, "json", o->json);
    if (status == 0)
        status = open_one(&files->csv, "csv", o->csv);
    if (status == 0)
        status = open_one(&files->html, "html", o->html);
    if (files->html)
        report_record(study);
    if (files->csv)
        record_all(study);
    return status;
}

void study_files_close(struct study_files *files)
{
    FILE *all[] = {files->json, files->csv, files->html};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i])
            fclose(all[i]);
    *files = (struct study_files){0};
}

/* --- JSON ------------------------------------------------------------------------------------ */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *row_json(const struct study_row *r)
{
    return json_pack("{s:s,s:s,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:o}", "trace", r->trace,
                     "function", r->function, "recommender", r->recommender, "requests",
                     (json_int_t)r->requests, "violation_ratio", number(r->violation_ratio),
                     "p99_ms", number(r->p99_ms), "goal_ms", number(r->goal_ms), "cpu_core_seconds",
                     number(r->cpu_core_seconds), "cpu_utilization", number(r->cpu_utilization),
                     "replicas_mean", number(r->replicas_mean), "actions", (json_int_t)r->actions,
                     "cost_vs_oracle", number(r->cost_vs_oracle));
}

/* Keys that are there where memory is modelled. */
static void add_memory(const struct study_row *r, json_t *row)
{
    bool known = isfinite(r->memory_kills);
    json_object_set_new(row, "memory_gib_seconds", number(r->memory_gib_seconds));
    json_object_set_new(row, "memory_utilization", number(r->memory_utilization));
    json_object_set_new(row, "memory_kills",
                        known ? json_integer((json_int_t)r->memory_kills) : json_null());
}

static void write_row(const struct study *study, size_t trace, size_t function, size_t choice,
                      FILE *out)
{
    struct study_row row;
    study_row(study, trace, function, choice, &row);
    cleanup_json json_t *json = row_json(&row);
    if (study_models_memory(study))
        add_memory(&row, json);
    bool first = trace == 0 && function == STUDY_ALL && choice == 0;
    fputs(first ? "" : ",\n", out);
    json_dumpf(json, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

/* A line per object, so that it can be read and compared by line too. */
static void write_json(const struct study *study, FILE *out)
{
    fputs("[\n", out);
    for (size_t t = 0; t < study->trace_count; t++) {
        for (size_t c = 0; c < study->shown_count; c++)
            write_row(study, t, STUDY_ALL, c, out);
        for (size_t f = 0; f < study->traces[t].trace.function_count; f++)
            for (size_t c = 0; c < study->shown_count; c++)
                write_row(study, t, f, c, out);
    }
    fputs("\n]\n", out);
}

/* --- CSV ------------------------------------------------------------------------------------- */
static void write_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (size_t len; (len = strcspn(text, "\"")), text[len]; text += len + 1) {
        fwrite(text, 1, len, out);
        fputs("\"\"", out);
    }
    fprintf(out, "%s\"", text);
}

/* Nothing where it is not known. */
static void write_number(double value, FILE *out)
{
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

static void write_points(const struct study *study, size_t trace, size_t function, size_t choice,
                         FILE *out)
{
    const struct study_trace *t = &study->traces[trace];
    const struct study_run *run = study_run(study, trace, function, choice);
    for (size_t i = 0; i < run->series.count; i++) {
        const struct series_point *p = &run->series.points[i];
        double figures[] = {p->time_s,   p->requests_per_s, p->latency_ms,      run->result.goal_ms,
                            p->replicas, p->request_milli,  p->cpu_utilization, p->violation_ratio};
        write_text(t->label, out);
        fputc(',', out);
        write_text(t->labels[function], out);
        fputc(',', out);
        write_text(study->choices[choice].label, out);
        for (size_t k = 0; k < ARRAY_LEN(figures); k++)
            write_number(figures[k], out);
        fprintf(out, ",%d,", p->changed);
        write_text(p->reason, out);
        if (study_models_memory(study)) {
            write_number(p->memory_bytes, out);
            fprintf(out, ",%" PRIu64, p->memory_kills);
        }
        fputc('\n', out);
    }
}

static void write_csv(const struct study *study, FILE *out)
{
    fputs("trace,function,recommender,time_s,requests_per_s,latency_ms,goal_ms,replicas,"
          "request_milli,cpu_utilization,violation_ratio,changed,reason",
          out);
    fputs(study_models_memory(study) ? ",memory_bytes,memory_kills\n" : "\n", out);
    for (size_t t = 0; t < study->trace_count; t++)
        for (size_t f = 0; f < study->traces[t].trace.function_count; f++)
            for (size_t c = 0; c < study->shown_count; c++)
                write_points(study, t, f, c, out);
}

/* --- all ------------------------------------------------------------------------------------- */
static int write_one(FILE **file, const char *option, const char *path, const struct study *study,
                     void (*write)(const struct study *study, FILE *out))
{
    if (!*file)
        return 0;
    write(study, *file);
    bool failed = ferror(*file) != 0;
    failed = fclose(*file) != 0 || failed;
    *file = NULL;
    if (!failed)
        return 0;
    mpactl_error("--%s %s: it could not be written: check the disk", option, path);
    return EXIT_FAILED;
}

int study_files_write(struct study_files *files, const struct study *study)
{
    const struct study_options *o = &study->options;
    int json = write_one(&files->json, "json", o->json, study, write_json);
    int csv = write_one(&files->csv, "csv", o->csv, study, write_csv);
    int html = write_one(&files->html, "html", o->html, study, report_write);
    return json ? json : csv ? csv : html;
}
