/* mpactl tune: the best that recommenders can do, for fair comparisons. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "mpactl.h"
#include "progress.h"
#include "tuning.h"

#define AT(field) offsetof(struct tuning_options, field)
static const struct args_option table[] = {
    {"trace", ARGS_LIST, AT(study.traces), NULL, 0, 0, NULL,
     "a workload, in one of the forms of mpactl compare --help"},
    {"recommender", ARGS_LIST, AT(study.recommenders), NULL, 0, 0, NULL,
     "whose parameters to search; all but oracles and learned ones when not given"},
    {"trials", ARGS_NUMBER, AT(trials), "60", 2, 100000, NULL,
     "settings that each function is tried with, for each kind of setting"},
    {"seed", ARGS_NUMBER, AT(study.seed), "1", 0, 0x1p53, NULL,
     "of the search and of the load it is done on"},
    {"judge-seed", ARGS_NUMBER, AT(judge_seed), "11", 0, 0x1p53, NULL,
     "of the load that results are told for"},
    {"least-requests", ARGS_NUMBER, AT(least_requests), "100", 0, 1e12, NULL,
     "functions with fewer are left out: one late request would decide"},
    {"mpa", ARGS_TEXT, AT(study.mpa), NULL, 0, 0, NULL,
     "manifest with one MPA, for its goal, bounds and behavior"},
    {"policy", ARGS_LIST, AT(study.policies), NULL, 0, 0, NULL,
     "what ppo has learned (mpactl policy); the file policy beside mpactl when not given"},
    {"goal", ARGS_DURATION, AT(study.goal_s), NULL, 1e-6, 86400, NULL,
     "latency goal of all functions; else the MPA's, else twice the p99 execution time"},
    {"interval", ARGS_DURATION, AT(study.interval_s), "15s", 0.1, 3600, NULL,
     "time between decisions, but for recommenders with a time of their own"},
    {"span", ARGS_DURATION, AT(study.span_s), NULL, 1, 1e9, NULL,
     "how long to simulate; as long as the trace when not given"},
    {"start", ARGS_DURATION, AT(study.start_s), NULL, 0, 3600, NULL,
     "time a replica takes to start; else as measured, 2s"},
    {"resize", ARGS_DURATION, AT(study.resize_s), NULL, 0, 3600, NULL,
     "time until a resize is in force; else as measured, 500ms"},
    {"jobs", ARGS_NUMBER, AT(study.jobs), NULL, 1, 1024, NULL,
     "simulations at the same time; as many as there are cores when not given"},
    {"json", ARGS_TEXT, AT(study.json), NULL, 0, 0, NULL, "file for the settings and results"},
    {"help", ARGS_FLAG, AT(study.help), NULL, 0, 0, NULL, "print this and end"},
};

/* --- options ---------------------------------------------------------------------------------- */
static const char *find_contradiction(const struct tuning_options *o)
{
    const double counts[] = {o->study.seed, o->judge_seed, o->trials, o->study.jobs};
    if (o->study.traces.count == 0)
        return "--trace: none is given: name a workload, as poisson:rate=20";
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (counts[i] != floor(counts[i]))
            return "--seed, --judge-seed, --trials, --jobs: they are counts: give whole numbers";
    if (o->study.seed == o->judge_seed)
        return "--judge-seed: it is that of the search: give another, or results flatter";
    return NULL;
}

static void name_all(struct args_list *list)
{
    for (size_t i = 0; trial_names[i] && list->count < ARGS_LIST_MAX; i++)
        if (recommend_find(trial_names[i]) && !recommend_find(trial_names[i])->use)
            list->items[list->count++] = trial_names[i];
}

static int read_options(int argc, char **argv, struct tuning_options *out)
{
    struct error err;
    *out = (struct tuning_options){.study = {.start_s = NAN, .resize_s = NAN}};
    if (args_parse(table, ARRAY_LEN(table), argc, argv, out, &err) < 0) {
        mpactl_error("tune: %s: see mpactl tune --help", err.message);
        return EXIT_USAGE;
    }
    const char *wrong = out->study.help ? NULL : find_contradiction(out);
    if (wrong) {
        mpactl_error("%s", wrong);
        return EXIT_USAGE;
    }
    if (out->study.recommenders.count == 0)
        name_all(&out->study.recommenders);
    return 0;
}

static int print_help(void)
{
    puts(
        "mpactl tune --trace WORKLOAD… [--recommender NAME…] [OPTION…]\n\n"
        "Searches the parameters of recommenders for the least CPU with which the latency goal is\n"
        "kept: one setting for all functions, one for each class of arrivals, and one for each\n"
        "function in hindsight. Results are told for load of the same kind that the search has "
        "not\n"
        "seen.\n\nOptions:");
    args_print_help(table, ARRAY_LEN(table));
    return EXIT_FINE;
}

/* --- what there is to do ---------------------------------------------------------------------- */
const char *tuning_row_name(size_t row)
{
    return row == TUNING_USUAL ? "usual" : tune_strength_name((enum tune_strength)(row - 1));
}

const double *tuning_params(const struct tuning *t, size_t recommender, size_t row, size_t function)
{
    const struct tuned *tuned = &t->tuned[recommender];
    return &tuned->params[(row * t->function_count + function) * tuned->recommender->param_count];
}

const struct trial_result *tuning_result(const struct tuning *t, size_t recommender, size_t row,
                                         size_t function)
{
    return &t->tuned[recommender].results[row * t->function_count + function];
}

static void list_functions(struct tuning *t)
{
    const struct study *study = &t->study;
    for (size_t i = 0; i < study->trace_count; i++) {
        for (size_t f = 0; f < study->traces[i].trace.function_count; f++) {
            const struct trace_function *workload = &study->traces[i].trace.functions[f];
            if (trace_requests(workload) < t->options.least_requests)
                continue;
            t->functions = xrealloc(t->functions, t->function_count + 1, sizeof(*t->functions));
            t->functions[t->function_count++] =
                (struct tuning_function){i, f, trace_classify(workload)};
        }
    }
    t->train = xcalloc(t->function_count + 1, sizeof(*t->train));
    t->judge = xcalloc(t->function_count + 1, sizeof(*t->judge));
    t->oracle = xcalloc(t->function_count + 1, sizeof(*t->oracle));
    for (size_t i = 0; i < t->function_count; i++) {
        const struct tuning_function *f = &t->functions[i];
        study_configure(study, f->trace, f->function, 1, (uint64_t)study->options.seed,
                        &t->train[i].config);
        study_configure(study, f->trace, f->function, 1, (uint64_t)t->options.judge_seed,
                        &t->judge[i].config);
    }
}

size_t tuning_rows(const struct tuning *t, size_t recommender)
{
    return t->tuned[recommender].recommender->param_count > 0 ? TUNING_ROWS : 1;
}

/* The oracle is there in any case. */
static void list_recommenders(struct tuning *t)
{
    const struct study *study = &t->study;
    t->tuned = xcalloc(study->shown_count, sizeof(*t->tuned));
    for (size_t i = 0; i < study->shown_count; i++) {
        const struct recommender *r = study->choices[i].recommender;
        if (i == study->oracle)
            continue;
        t->tuned[t->tuned_count++] = (struct tuned){
            .recommender = r,
            .policy = study->choices[i].policy,
            .params = xcalloc(TUNING_ROWS * t->function_count * r->param_count + 1, sizeof(double)),
            .results = xcalloc(TUNING_ROWS * t->function_count, sizeof(struct trial_result)),
        };
    }
}

/* --- doing it --------------------------------------------------------------------------------- */
struct work { /* for several threads */
    struct tuning *tuning;
    struct progress *progress;
    size_t recommender;
    size_t threads;
};

static void run_one(struct work *w, const struct trial_config *config,
                    const struct trial_choice *choice, struct trial_result *out)
{
    struct error err;
    struct trial_config chosen = *config;
    chosen.choice = choice;
    if (trial_run(&chosen, out, &err) < 0)
        *out = (struct trial_result){.violation_ratio = NAN};
    progress_add(w->progress, 1);
}

static void run_oracle(void *arg, size_t i)
{
    struct work *w = arg;
    struct tuning *t = w->tuning;
    struct trial_result trained;
    const struct trial_choice *oracle = &t->study.choices[t->study.oracle];
    run_one(w, &t->train[i].config, oracle, &trained);
    run_one(w, &t->judge[i].config, oracle, &t->oracle[i]);
    t->train[i].oracle_core_seconds = trained.cpu_core_seconds;
    t->judge[i].oracle_core_seconds = t->oracle[i].cpu_core_seconds;
}

static void judge(void *arg, size_t i)
{
    struct work *w = arg;
    struct tuning *t = w->tuning;
    size_t row = i / t->function_count, function = i % t->function_count;
    struct tuned *tuned = &t->tuned[w->recommender];
    struct trial_choice choice = {
        .recommender = tuned->recommender,
        .params = (double *)tuning_params(t, w->recommender, row, function),
        .policy = tuned->policy,
    };
    run_one(w, &t->judge[function].config, &choice, &tuned->results[i]);
}

static void on_run(void *arg)
{
    progress_add(arg, 1);
}

static int tune_one(struct work *w, struct error *err)
{
    struct tuning *t = w->tuning;
    struct tuned *tuned = &t->tuned[w->recommender];
    size_t params = tuned->recommender->param_count;
    for (size_t i = 0; i < t->function_count * params; i++)
        tuned->params[i] = tuned->recommender->params[i % params].value;
    struct tune_config config = {
        .recommender = tuned->recommender,
        .functions = t->train,
        .function_count = t->function_count,
        .trials = (size_t)t->options.trials,
        .seed = (uint64_t)t->options.study.seed,
        .threads = w->threads,
        .on_run = on_run,
        .arg = w->progress,
    };
    if (params > 0 && tune_search(&config, &tuned->params[t->function_count * params], err) < 0)
        return -1;
    parallel_for(w->threads, tuning_rows(t, w->recommender) * t->function_count, judge, w);
    return 0;
}

static size_t count_runs(const struct tuning *t)
{
    size_t runs = 2 * t->function_count;
    for (size_t i = 0; i < t->tuned_count; i++) {
        runs += tuning_rows(t, i) * t->function_count;
        if (t->tuned[i].recommender->param_count > 0)
            runs += tune_runs(&(struct tune_config){.function_count = t->function_count,
                                                    .trials = (size_t)t->options.trials});
    }
    return runs;
}

static int run_all(struct tuning *t, struct error *err)
{
    size_t jobs = (size_t)t->options.study.jobs;
    struct work w = {.tuning = t,
                     .threads = jobs > 0 ? jobs : parallel_cores(),
                     .progress = progress_begin("tuning", count_runs(t))};
    int result = 0;
    parallel_for(w.threads, t->function_count, run_oracle, &w);
    for (size_t i = 0; i < t->function_count && result == 0; i++)
        if (!(t->train[i].oracle_core_seconds > 0 && t->judge[i].oracle_core_seconds > 0))
            result = error_set(err, ERROR_INVALID, "function %zu of %s: the oracle cannot run it",
                               t->functions[i].function + 1,
                               t->study.traces[t->functions[i].trace].label);
    for (; w.recommender < t->tuned_count && result == 0; w.recommender++)
        result = tune_one(&w, err);
    progress_end(w.progress);
    return result;
}

/* --- the command ------------------------------------------------------------------------------ */
static int prepare(struct tuning *t, FILE **json)
{
    const char *path = t->options.study.json;
    t->options.study.no_oracle = false;
    int status = study_open(&t->study, &t->options.study);
    if (status != 0)
        return status;
    list_functions(t);
    if (t->function_count == 0) {
        mpactl_error("--least-requests %g: no function has so many: give a smaller number",
                     t->options.least_requests);
        return EXIT_FAILED;
    }
    *json = path ? fopen(path, "we") : NULL;
    if (path && !*json) {
        mpactl_error("--json %s: %s: name a file that can be written", path, strerror(errno));
        return EXIT_FAILED;
    }
    list_recommenders(t);
    return 0;
}

static int finish(const struct tuning *t, FILE *json)
{
    tuning_print(t);
    if (!json)
        return EXIT_FINE;
    tuning_write_json(t, json);
    if (fflush(json) == 0 && !ferror(json))
        return EXIT_FINE;
    mpactl_error("--json %s: it could not be written: check the disk", t->options.study.json);
    return EXIT_FAILED;
}

static void end(struct tuning *t)
{
    for (size_t i = 0; i < t->tuned_count; i++) {
        free(t->tuned[i].params);
        free(t->tuned[i].results);
    }
    free(t->tuned);
    free(t->functions);
    free(t->train);
    free(t->judge);
    free(t->oracle);
    study_close(&t->study);
}

int cmd_tune(int argc, char **argv)
{
    struct tuning tuning = {0};
    struct error err;
    FILE *json = NULL;
    int status = read_options(argc, argv, &tuning.options);
    if (status != 0)
        return status;
    if (tuning.options.study.help)
        return print_help();
    status = prepare(&tuning, &json);
    if (status == 0 && run_all(&tuning, &err) < 0) {
        mpactl_error("%s: change what it names", err.message);
        status = EXIT_FAILED;
    }
    if (status == 0)
        status = finish(&tuning, json);
    if (json)
        fclose(json);
    end(&tuning);
    return status;
}
