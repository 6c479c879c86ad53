/* The results of a study, by function, by trace and in total. */
#include <math.h>

#include "study.h"

#define GIB 0x1p30

double study_allowed(const struct study *study)
{
    return 1 - study->spec->latency_percentile / 100;
}

bool study_models_memory(const struct study *study)
{
    return trial_models_memory(study->spec);
}

struct sums {
    double violations, used_s, reserved_s, oracle_s, replicas;
    double used_byte_s, reserved_byte_s, kills;
    double worst; /* latency over goal */
    size_t functions;
};

static void add_function(const struct study *study, size_t trace, size_t function, size_t choice,
                         struct study_row *row, struct sums *sums)
{
    const struct trial_result *r = &study_run(study, trace, function, choice)->result;
    double strain = r->latency_ms / r->goal_ms;
    double allowed = study_allowed(study) + 1e-9;
    row->requests += r->requests;
    row->actions += r->actions;
    if (r->requests > 0) {
        sums->violations += r->violation_ratio * (double)r->requests;
        row->active++;
        row->met += r->violation_ratio <= allowed;
    }
    if (sums->functions == 0 || strain > sums->worst || isnan(sums->worst)) {
        sums->worst = strain;
        row->p99_ms = r->latency_ms;
        row->goal_ms = r->goal_ms;
    }
    sums->used_s += r->cpu_used_seconds;
    sums->reserved_s += r->cpu_core_seconds;
    sums->used_byte_s += r->memory_used_byte_seconds;
    sums->reserved_byte_s += r->memory_byte_seconds;
    sums->kills += (double)r->memory_kills;
    sums->replicas += r->replicas_mean;
    sums->functions++;
    if (study->oracle < study->choice_count)
        sums->oracle_s += study_run(study, trace, function, study->oracle)->result.cpu_core_seconds;
}

static void add_trace(const struct study *study, size_t trace, size_t function, size_t choice,
                      struct study_row *row, struct sums *sums)
{
    size_t count = study->traces[trace].trace.function_count;
    size_t first = function == STUDY_ALL ? 0 : function;
    size_t end = function == STUDY_ALL ? count : function + 1;
    for (size_t f = first; f < end; f++)
        add_function(study, trace, f, choice, row, sums);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

void study_row(const struct study *study, size_t trace, size_t function, size_t choice,
               struct study_row *out)
{
    struct sums sums = {0};
    *out = (struct study_row){.trace = "*", .function = "*", .p99_ms = NAN, .goal_ms = NAN};
    out->recommender = study->choices[choice].label;
    if (trace != STUDY_ALL) {
        out->trace = study->traces[trace].label;
        if (function != STUDY_ALL)
            out->function = study->traces[trace].labels[function];
        add_trace(study, trace, function, choice, out, &sums);
    } else {
        for (size_t t = 0; t < study->trace_count; t++)
            add_trace(study, t, STUDY_ALL, choice, out, &sums);
    }
    out->violation_ratio = ratio(sums.violations, (double)out->requests);
    out->cpu_core_seconds = sums.reserved_s;
    out->cpu_utilization = ratio(sums.used_s, sums.reserved_s);
    out->replicas_mean = ratio(sums.replicas, (double)sums.functions);
    out->cost_vs_oracle = ratio(sums.reserved_s, sums.oracle_s);
    out->memory_gib_seconds = sums.reserved_byte_s / GIB;
    out->memory_utilization = ratio(sums.used_byte_s, sums.reserved_byte_s);
    out->memory_kills = isnan(sums.reserved_byte_s) ? NAN : sums.kills;
}
