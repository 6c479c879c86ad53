/* All trials of a study, on several cores. */
#include <math.h>

#include "base/parallel.h"
#include "base/random.h"
#include "progress.h"
#include "study.h"

#define DECISION_WORTH 50 /* about as long as so many requests take */

struct job { /* one trial: a function alone, or all of a trace together */
    struct study *study;
    size_t trace, first, count, choice;
    double worth; /* about how long it takes, in requests */
    struct progress *progress;
    struct error err; /* of code ERROR_NONE when all is well */
};

static void on_sample(void *arg, size_t function, const struct trial_sample *sample)
{
    struct job *job = arg;
    struct study_run *run = study_run(job->study, job->trace, job->first + function, job->choice);
    double interval_s = study_interval_s(job->study, job->choice);
    progress_add(job->progress,
                 DECISION_WORTH + (size_t)fmax(0, sample->requests_per_s * interval_s));
    if (run->record)
        series_add(&run->series, sample);
}

void study_configure(const struct study *study, size_t trace, size_t first, size_t count,
                     uint64_t seed, struct trial_config *out)
{
    const struct study_trace *t = &study->traces[trace];
    /* A function meets the same load whatever decides for it. */
    struct random random = random_stream(seed, first);
    *out = (struct trial_config){
        .functions = t->functions + first,
        .function_count = count,
        .nodes = study->nodes,
        .node_count = study->node_count,
        .defaults = trial_default_function,
        .interval_s = study->options.interval_s,
        .span_s = t->span_s,
        .seed = random_bits(&random),
    };
    if (!isnan(study->options.start_s))
        out->defaults.start_s = study->options.start_s;
    if (!isnan(study->options.resize_s))
        out->defaults.resize_s = study->options.resize_s;
    out->defaults.cold_cpu_ms = 1000 * study->options.cold_cpu_s;
    out->defaults.crash_per_hour = study->options.crashes_per_hour;
    out->defaults.concurrency = (int)study->options.concurrency;
}

static void run_job(void *arg, size_t i)
{
    struct job *job = &((struct job *)arg)[i];
    struct study *study = job->study;
    struct trial_config config;
    cleanup_free struct trial_result *results = xcalloc(job->count, sizeof(*results));
    study_configure(study, job->trace, job->first, job->count, (uint64_t)study->options.seed,
                    &config);
    config.choice = &study->choices[job->choice];
    config.on_sample = on_sample;
    config.arg = job;
    if (trial_run(&config, results, &job->err) < 0)
        error_prefix(&job->err, "%s", study->traces[job->trace].label);
    for (size_t f = 0; f < job->count; f++)
        study_run(study, job->trace, job->first + f, job->choice)->result = results[f];
}

static int longest_first(const void *a, const void *b)
{
    double x = ((const struct job *)a)->worth, y = ((const struct job *)b)->worth;
    return (x < y) - (x > y);
}

static double expected_requests(const struct trace_function *f, double span_s)
{
    double times = span_s / trace_span_s(f);
    return trace_requests(f) * (f->repeat ? times : fmin(times, 1));
}

static struct job make_job(struct study *study, size_t trace, size_t first, size_t count,
                           size_t choice)
{
    const struct study_trace *t = &study->traces[trace];
    double decisions = t->span_s / study_interval_s(study, choice);
    struct job job = {study, trace, first, count, choice, .worth = 0};
    for (size_t f = first; f < first + count; f++)
        job.worth +=
            expected_requests(&t->trace.functions[f], t->span_s) + DECISION_WORTH * decisions;
    return job;
}

static struct job *list_jobs(struct study *study, size_t *count)
{
    size_t most = 0;
    for (size_t trace = 0; trace < study->trace_count; trace++)
        most += study->traces[trace].trace.function_count * study->choice_count;
    struct job *jobs = xcalloc(most, sizeof(*jobs));
    *count = 0;
    for (size_t trace = 0; trace < study->trace_count; trace++) {
        size_t all = study->traces[trace].trace.function_count;
        size_t together = study->node_count > 0 ? all : 1;
        for (size_t first = 0; first < all; first += together)
            for (size_t choice = 0; choice < study->choice_count; choice++)
                jobs[(*count)++] = make_job(study, trace, first, together, choice);
    }
    qsort(jobs, *count, sizeof(*jobs), longest_first);
    return jobs;
}

int study_execute(struct study *study, struct error *err)
{
    size_t count, threads = (size_t)study->options.jobs;
    cleanup_free struct job *jobs = list_jobs(study, &count);
    double worth = 0;
    for (size_t i = 0; i < count; i++)
        worth += jobs[i].worth;
    struct progress *progress = progress_begin("simulating", (size_t)worth);
    for (size_t i = 0; i < count; i++)
        jobs[i].progress = progress;
    parallel_for(threads > 0 ? threads : parallel_cores(), count, run_job, jobs);
    progress_end(progress);
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].err.code != ERROR_NONE) {
            *err = jobs[i].err;
            return -1;
        }
    }
    return 0;
}
