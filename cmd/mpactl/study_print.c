/* A study's results as tables for people. */
#include <math.h>
#include <string.h>

#include "study.h"
#include "table.h"

static void begin(struct table *t, const struct study *study, bool of_functions)
{
    char percentile[16];
    const char *titles[] = {"FUNCTION",  "RECOMMENDER", "REQUESTS", "VIOLATIONS",
                            "MET",       percentile,    "GOAL",     "CPU CORE-H",
                            "USED",      "REPLICAS",    "ACTIONS",  "÷ ORACLE",
                            "MEM GIB-H", "MEM USED",    "KILLS",    NULL};
    bool memory = study_models_memory(study);
    const char *align = memory ? "llrrrrrrrrrrrrr" : "llrrrrrrrrrr";
    titles[strlen(align)] = NULL;
    snprintf(percentile, sizeof(percentile), "P%g", study->spec->latency_percentile);
    table_begin(t, align + !of_functions, titles + !of_functions);
}

static void add_memory(struct table *t, const struct study_row *r)
{
    char text[TABLE_TEXT];
    double hours = r->memory_gib_seconds / 3600;
    table_cell(t, "%s", table_number(hours, hours < 10 ? 3 : 1, text));
    table_cell(t, "%s", table_percent(r->memory_utilization, 0, text));
    table_cell(t, "%s", table_count(r->memory_kills, text));
}

static void add_figures(struct table *t, const struct study *study, const struct study_row *r)
{
    char text[TABLE_TEXT];
    double hours = r->cpu_core_seconds / 3600;
    table_cell(t, "%s", table_count((double)r->requests, text));
    table_cell(t, "%s", table_percent(r->violation_ratio, 2, text));
    table_cell(t, "%zu/%zu", r->met, r->active);
    table_cell(t, "%s", table_duration(r->p99_ms, text));
    table_cell(t, "%s", table_duration(r->goal_ms, text));
    table_cell(t, "%s", table_number(hours, hours < 10 ? 3 : 1, text));
    table_cell(t, "%s", table_percent(r->cpu_utilization, 0, text));
    table_cell(t, "%s", table_number(r->replicas_mean, 2, text));
    table_cell(t, "%s", table_count((double)r->actions, text));
    table_cell(t, "%s", table_number(r->cost_vs_oracle, 2, text));
    if (study_models_memory(study))
        add_memory(t, r);
}

static void print_sums(const struct study *study, size_t trace)
{
    struct table t;
    struct study_row row;
    begin(&t, study, false);
    for (size_t choice = 0; choice < study->shown_count; choice++) {
        study_row(study, trace, STUDY_ALL, choice, &row);
        table_cell(&t, "%s", row.recommender);
        add_figures(&t, study, &row);
    }
    table_end(&t, "  ");
}

static void print_functions(const struct study *study, size_t trace)
{
    const struct study_trace *from = &study->traces[trace];
    struct table t;
    struct study_row row;
    begin(&t, study, true);
    for (size_t i = 0; i < from->trace.function_count; i++) {
        for (size_t choice = 0; choice < study->shown_count; choice++) {
            study_row(study, trace, from->by_load[i], choice, &row);
            table_cell(&t, "%s", choice == 0 ? row.function : "");
            table_cell(&t, "%s", row.recommender);
            add_figures(&t, study, &row);
        }
    }
    putchar('\n');
    table_end(&t, "  ");
}

static void print_heading(const struct study_trace *t)
{
    char clock[TABLE_TEXT];
    printf("%s: %zu function%s, %s\n", t->label, t->trace.function_count,
           t->trace.function_count == 1 ? "" : "s", table_clock(t->span_s, clock));
}

/* What replicas are not unless asked for. */
static char *about_replicas(const struct study_options *o)
{
    cleanup_free char *cold =
        o->cold_cpu_s > 0 ? xasprintf("; their first request takes %gs more CPU", o->cold_cpu_s)
                          : xstrdup("");
    cleanup_free char *crashes =
        o->crashes_per_hour > 0 ? xasprintf("; each crashes %g times an hour", o->crashes_per_hour)
                                : xstrdup("");
    cleanup_free char *concurrency =
        o->concurrency > 0 ? xasprintf("; at most %.0f requests in one at once", o->concurrency)
                           : xstrdup("");
    return xasprintf("%s%s%s", cold, crashes, concurrency);
}

static char *about_memory(const struct study *study)
{
    char idle[32];
    if (!study_models_memory(study))
        return xstrdup("");
    return xasprintf(" Memory: an idle replica uses what its trace says, else %s, and %g%% of it "
                     "more for each request in it; beyond its limit it is killed, but for the "
                     "oracles'.",
                     recommend_print_amount(RECOMMEND_MEMORY, trial_idle_bytes, idle),
                     100 * trial_request_share);
}

char *study_about(const struct study *study)
{
    const struct study_options *o = &study->options;
    cleanup_free char *where =
        study->node_count > 0
            ? xasprintf("functions of a trace together on %zu node%s of %g core%s",
                        study->node_count, study->node_count == 1 ? "" : "s", o->cores,
                        o->cores == 1 ? "" : "s")
            : xstrdup("each function alone, never short of CPU");
    cleanup_free char *more = about_replicas(o), *memory = about_memory(study);
    return xasprintf("Simulated: seed %.0f; a decision every %gs, or at a recommender's own pace; "
                     "%s; replicas start in %gs, resizes take %gs%s.%s",
                     o->seed, o->interval_s, where,
                     isnan(o->start_s) ? trial_default_function.start_s : o->start_s,
                     isnan(o->resize_s) ? trial_default_function.resize_s : o->resize_s, more,
                     memory);
}

void study_print(const struct study *study)
{
    for (size_t i = 0; i < study->trace_count; i++) {
        print_heading(&study->traces[i]);
        print_sums(study, i);
        if (study->options.functions)
            print_functions(study, i);
        putchar('\n');
    }
    if (study->trace_count > 1) {
        printf("all %zu traces\n", study->trace_count);
        print_sums(study, STUDY_ALL);
        putchar('\n');
    }
    cleanup_free char *about = study_about(study);
    printf("%s\n", about);
}
