#include "study.h"
#include "recommend/policy.h"

#include <math.h>
#include <string.h>

#include "kube/kube.h"
#include "mpactl.h"

#define MAX_MANIFEST_BYTES (16u << 20)

/* --- names ----------------------------------------------------------------------------------- */
/* Names come from files: bytes that a terminal would obey, or that are no UTF-8, become '?'. */
static char *clean_name(const char *name)
{
    char *out = xstrdup(name);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    cleanup_json json_t *text = json_string(out);
    for (char *at = out; !text && *at; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    return out;
}

/* Takes the name over; where it was used before, "name (2)" is given. */
static char *unique_name(struct map *used, char *name)
{
    char *result = xstrdup(name);
    for (int n = 2; map_get(used, result); n++) {
        free(result);
        result = xasprintf("%s (%d)", name, n);
    }
    map_put(used, result, used);
    free(name);
    return result;
}

/* --- the MPA --------------------------------------------------------------------------------- */
static const json_t *find_mpa(const json_t *documents, const char *file)
{
    const json_t *document, *found = NULL;
    size_t i, count = 0;
    json_array_foreach ((json_t *)documents, i, document) {
        if (strcmp(json_str(json_path(document, "kind", NULL)), API_KIND) == 0) {
            found = count++ == 0 ? document : found;
        }
    }
    if (count == 1)
        return found;
    mpactl_error("--mpa %s: it has %zu " API_KIND "s: name a file with one", file, count);
    return NULL;
}

static int read_mpa(struct study *study, const char *file)
{
    struct error err;
    size_t len;
    cleanup_free char *text = file_read(file, MAX_MANIFEST_BYTES, &len, &err);
    if (!text) {
        mpactl_error("--mpa %s: %s: name a file that can be read", file, err.message);
        return EXIT_FAILED;
    }
    cleanup_json json_t *documents = yaml_to_json(text, len, &err);
    if (!documents) {
        mpactl_error("--mpa %s: %s: correct it there", file, err.message);
        return EXIT_FAILED;
    }
    const json_t *manifest = find_mpa(documents, file);
    if (!manifest)
        return EXIT_FAILED;
    if (api_parse(manifest, &study->mpa, &err) < 0) {
        mpactl_error("--mpa %s: %s: see mpactl validate -f %s", file, err.message, file);
        return EXIT_FAILED;
    }
    study->behavior_stated = json_object_size(json_path(manifest, "spec", "constraints", "global",
                                                        "behavior", NULL)) > 0;
    return 0;
}

/* --- recommenders ---------------------------------------------------------------------------- */
static int choose(struct study *study, const char *text)
{
    struct error err;
    if (trial_choose(text, &study->choices[study->choice_count], &err) < 0) {
        mpactl_error("--recommender %s: %s: see mpactl compare --help", text, err.message);
        return EXIT_USAGE;
    }
    study->choice_count++;
    return 0;
}

static bool is_chosen(const struct study *study, const char *text)
{
    for (size_t i = 0; i < study->choice_count; i++)
        if (strcmp(study->choices[i].label, text) == 0)
            return true;
    return false;
}

/* What is named, each once; else what the MPA names. The oracle is run for its cost in any case. */
static int choose_all(struct study *study)
{
    const struct args_list *asked = &study->options.recommenders;
    int status = 0;
    study->choices = xcalloc(asked->count + 2, sizeof(*study->choices));
    for (size_t i = 0; i < asked->count && status == 0; i++)
        if (!is_chosen(study, asked->items[i]))
            status = choose(study, asked->items[i]);
    if (status == 0 && asked->count == 0)
        status = choose(study, study->spec->recommender ? study->spec->recommender : "threshold");
    study->shown_count = study->choice_count;
    if (status == 0 && !study->options.no_oracle && !is_chosen(study, "oracle"))
        status = choose(study, "oracle");
    for (study->oracle = 0; study->oracle < study->choice_count; study->oracle++)
        if (strcmp(study->choices[study->oracle].label, "oracle") == 0)
            break;
    return status;
}

/* --- what was learned ------------------------------------------------------------------------ */
static bool needs_policy(const struct study *study)
{
    for (size_t i = 0; i < study->choice_count; i++)
        if (study->choices[i].recommender->use)
            return true;
    return false;
}

static int read_policy(struct study *study, const char *path)
{
    struct error err;
    const struct recommend_policy *policy = recommend_policy_read(path, &err);
    if (policy) {
        study->policies[study->policy_count++] = policy;
        return 0;
    }
    mpactl_error("--policy %s: %s: make one by mpactl policy", path, err.message);
    return EXIT_FAILED;
}

/* The first that fits. */
static int give_policy(const struct study *study, struct trial_choice *choice)
{
    struct error err = {0};
    for (size_t i = 0; i < study->policy_count; i++) {
        if (recommend_fits(choice->recommender, study->policies[i], &err) < 0)
            continue;
        choice->policy = study->policies[i];
        return 0;
    }
    mpactl_error("--policy: none is for %s: %s", choice->label, err.message);
    return EXIT_FAILED;
}

static int read_policies(struct study *study)
{
    const struct args_list *asked = &study->options.policies;
    cleanup_free char *usual = file_beside_program("policy");
    int status = 0;
    study->policies = xcalloc(asked->count + 1, sizeof(*study->policies));
    for (size_t i = 0; i < asked->count && status == 0; i++)
        status = read_policy(study, asked->items[i]);
    if (status == 0 && asked->count == 0 && needs_policy(study))
        status = read_policy(study, usual);
    for (size_t i = 0; i < study->choice_count && status == 0; i++)
        if (study->choices[i].recommender->use)
            status = give_policy(study, &study->choices[i]);
    return status;
}

struct study_run *study_run(const struct study *study, size_t trace, size_t function, size_t choice)
{
    return &study->runs[trace][function * study->choice_count + choice];
}

double study_interval_s(const struct study *study, size_t choice)
{
    double own_s = study->choices[choice].recommender->interval_s;
    return own_s > 0 ? own_s : study->options.interval_s;
}

/* --- workloads ------------------------------------------------------------------------------- */
struct size {
    int replicas; /* 0: the usual size */
    double milli;
};

/* "2x500m" */
static int parse_size(const char *text, struct size *out)
{
    char *end;
    int64_t milli;
    struct error err;
    long replicas = strtol(text, &end, 10);
    if (end == text || *end != 'x' || replicas < 1 || replicas > 10000 ||
        quantity_parse_milli(end + 1, &milli, &err) < 0 || milli < 1 || milli > 1000000) {
        mpactl_error("--initial %s: it must be REPLICASxCPU: write 2x500m, for example", text);
        return EXIT_USAGE;
    }
    *out = (struct size){(int)replicas, (double)milli};
    return 0;
}

static int by_requests(const void *a, const void *b, void *arg)
{
    const struct trace *trace = arg;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    double x = trace_requests(&trace->functions[i]), y = trace_requests(&trace->functions[j]);
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

static void set_up_functions(struct study *study, struct study_trace *t, const struct size *initial)
{
    struct map used = {0};
    size_t count = t->trace.function_count;
    t->functions = xcalloc(count, sizeof(*t->functions));
    t->labels = xcalloc(count, sizeof(*t->labels));
    t->by_load = xcalloc(count, sizeof(*t->by_load));
    for (size_t i = 0; i < count; i++) {
        const struct trace_function *workload = &t->trace.functions[i];
        t->labels[i] = unique_name(&used, clean_name(workload->name));
        t->by_load[i] = i;
        t->span_s = fmax(t->span_s, trace_span_s(workload));
        t->functions[i] = (struct trial_function){
            .workload = workload,
            .spec = study->spec,
            .behavior_stated = study->behavior_stated,
            .goal_ms = 1000 * study->options.goal_s,
            .replicas = initial->replicas,
            .request_milli = initial->milli,
            .limit_milli = initial->milli,
        };
    }
    qsort_r(t->by_load, count, sizeof(*t->by_load), by_requests, &t->trace);
    if (study->options.span_s > 0)
        t->span_s = study->options.span_s;
    map_free(&used, NULL);
}

static int open_traces(struct study *study)
{
    const struct args_list *asked = &study->options.traces;
    struct size initial = {0};
    struct map used = {0};
    int status = 0;
    if (study->options.initial && parse_size(study->options.initial, &initial) != 0)
        return EXIT_USAGE;
    study->traces = xcalloc(asked->count, sizeof(*study->traces));
    study->runs = xcalloc(asked->count, sizeof(struct study_run *));
    for (size_t i = 0; i < asked->count && status == 0; i++) {
        struct study_trace *t = &study->traces[i];
        struct error err;
        if (trace_open(asked->items[i], &t->trace, &err) < 0) {
            bool usage = err.code == ERROR_INVALID;
            mpactl_error("--trace %s: %s: %s", asked->items[i], err.message,
                         usage ? "see mpactl compare --help" : "name a file of that form");
            status = usage ? EXIT_USAGE : EXIT_FAILED;
            break;
        }
        study->trace_count++;
        t->label = unique_name(&used, clean_name(t->trace.name));
        set_up_functions(study, t, &initial);
        study->runs[i] =
            xcalloc(t->trace.function_count * study->choice_count, sizeof(struct study_run));
    }
    map_free(&used, NULL);
    return status;
}

int study_open(struct study *study, const struct study_options *options)
{
    *study = (struct study){.options = *options, .node_count = (size_t)options->nodes};
    int status = 0;
    trial_default_spec(&study->usual);
    study->spec = options->mpa ? &study->mpa.spec : &study->usual;
    if (options->mpa)
        status = read_mpa(study, options->mpa);
    if (status == 0)
        status = choose_all(study);
    if (status == 0)
        status = read_policies(study);
    if (status == 0)
        status = open_traces(study);
    study->nodes = xcalloc(study->node_count, sizeof(*study->nodes));
    for (size_t i = 0; i < study->node_count; i++)
        study->nodes[i] = (struct cluster_node){.cores = options->cores, .memory_bytes = INFINITY};
    return status;
}

static void close_trace(struct study_trace *t, struct study_run *runs, size_t choice_count)
{
    size_t count = t->trace.function_count;
    for (size_t i = 0; i < count * choice_count; i++)
        series_clear(&runs[i].series);
    for (size_t i = 0; i < count; i++)
        free(t->labels[i]);
    free(runs);
    free(t->labels);
    free(t->functions);
    free(t->by_load);
    free(t->label);
    trace_clear(&t->trace);
}

void study_close(struct study *study)
{
    for (size_t i = 0; i < study->trace_count; i++)
        close_trace(&study->traces[i], study->runs[i], study->choice_count);
    for (size_t i = 0; i < study->choice_count; i++)
        trial_choice_clear(&study->choices[i]);
    free(study->runs);
    free(study->traces);
    free(study->choices);
    free(study->nodes);
    for (size_t i = 0; i < study->policy_count; i++)
        recommend_policy_release(study->policies[i]);
    free(study->policies);
    api_clear(&study->mpa);
}
