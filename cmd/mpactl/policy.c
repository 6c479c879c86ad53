/* mpactl policy: the policy that the recommender ppo comes with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/parallel.h"
#include "bootstrap/bootstrap.h"
#include "mpactl.h"
#include "progress.h"
#include "recommend/recommend.h"
#include "trace/trace.h"

#define PARTS 1000 /* of the progress */

struct policy_options {
    const char *out, *off, *judge, *workload, *function, *from;
    double updates, seed, jobs, clusters, goal_s, episodes;
    bool verbose, help;
};

#define AT(field) offsetof(struct policy_options, field)
static const struct args_option table[] = {
    {"out", ARGS_TEXT, AT(out), NULL, 0, 0, NULL, "file for what is learned"},
    {"updates", ARGS_NUMBER, AT(updates), "80", 0, 1e9, NULL,
     "of the policy, one for 6,144 decisions; 0: what it begins with, the core's own choices"},
    {"seed", ARGS_NUMBER, AT(seed), "1", 0, 0x1p53, NULL, "of all chance; the same gives the same"},
    {"off", ARGS_TEXT, AT(off), NULL, 0, 0, NULL,
     "features, and heads as \"head NAME\", to do without, with commas between; with --judge, what "
     "was learned is tried without them, and nobody beside it"},
    {"judge", ARGS_TEXT, AT(judge), NULL, 0, 0, NULL,
     "file that was learned: try it, and others beside it, on workloads of --seed instead"},
    {"for", ARGS_TEXT, AT(workload), NULL, 0, 0, NULL,
     "workload of one function: find what of --from serves it better, instead"},
    {"function", ARGS_TEXT, AT(function), NULL, 0, 0, NULL, "which one, where --for has several"},
    {"goal", ARGS_DURATION, AT(goal_s), NULL, 0.001, 1e6, NULL,
     "its latency goal; twice its p99 execution time when not given"},
    {"from", ARGS_TEXT, AT(from), NULL, 0, 0, NULL,
     "policy to begin with; the file policy beside mpactl when not given"},
    {"episodes", ARGS_NUMBER, AT(episodes), "8", 1, 1e6, NULL,
     "of 3 hours, to find it by; half as many others judge it"},
    {"clusters", ARGS_NUMBER, AT(clusters), "160", 1, 1e6, NULL, "to judge in, 8 hours in each"},
    {"jobs", ARGS_NUMBER, AT(jobs), NULL, 1, 1024, NULL,
     "threads; as many as there are cores when not given"},
    {"verbose", ARGS_FLAG, AT(verbose), NULL, 0, 0, NULL, "a line for every ten updates"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

static int read_options(int argc, char **argv, struct policy_options *out)
{
    struct error err;
    if (args_parse(table, ARRAY_LEN(table), argc, argv, out, &err) < 0) {
        mpactl_error("policy: %s: see mpactl policy --help", err.message);
        return EXIT_USAGE;
    }
    const char *wrong = NULL;
    if (!out->help && !out->out && !out->judge)
        wrong = "--out: no file is given for what is learned: name one";
    if (out->updates != floor(out->updates) || out->seed != floor(out->seed) ||
        out->jobs != floor(out->jobs))
        wrong = "--updates, --seed, --jobs: they are counts: give whole numbers";
    if (wrong)
        mpactl_error("%s", wrong);
    return wrong ? EXIT_USAGE : 0;
}

static int print_help(void)
{
    puts("mpactl policy --out FILE [OPTION…]\n\n"
         "Learns the general policy of the recommender ppo in simulated clusters, on workloads "
         "that\n"
         "are made up. With --for, finds a policy for one function of yours.\n\nOptions:");
    args_print_help(table, ARRAY_LEN(table));
    return EXIT_FINE;
}

struct watch {
    struct progress *progress;
    bool verbose;
    struct bootstrap_figures sum;
};

static void on_update(void *arg, size_t update, const struct bootstrap_figures *f)
{
    struct watch *w = arg;
    progress_add(w->progress, 1);
    w->sum.steps += f->steps;
    w->sum.cost += f->cost;
    w->sum.reward += f->reward;
    w->sum.episodes += f->episodes;
    w->sum.met += f->met;
    w->sum.late_ratio += f->late_ratio;
    if (!w->verbose || (update + 1) % 10 != 0)
        return;
    printf(
        "update %4zu  reward %.4f  CPU %.3f × needed  goal met %.1f%% of %g  late %.2f × allowed\n",
        update + 1, w->sum.reward / w->sum.steps, w->sum.cost / w->sum.steps,
        100 * w->sum.met / fmax(w->sum.episodes, 1), w->sum.episodes,
        w->sum.late_ratio / fmax(w->sum.episodes, 1));
    fflush(stdout);
    w->sum = (struct bootstrap_figures){0};
}

static int learn(const struct policy_options *o, struct error *err)
{
    struct bootstrap_config config;
    struct rl_checkpoint checkpoint = {0};
    struct watch watch = {.progress = progress_begin("learning", (size_t)o->updates),
                          .verbose = o->verbose};
    bootstrap_config_init(&config);
    config.updates = (size_t)o->updates;
    config.seed = (uint64_t)o->seed;
    config.world.off = o->off;
    config.world.threads = o->jobs > 0 ? (size_t)o->jobs : parallel_cores();
    config.on_update = on_update;
    config.arg = &watch;
    int result = bootstrap_learn(&config, &checkpoint, err);
    progress_end(watch.progress);
    if (result == 0)
        result = rl_checkpoint_write(&checkpoint, o->out, err);
    rl_checkpoint_clear(&checkpoint);
    return result;
}

/* --- for one function --------------------------------------------------------------------------
 */
static const struct trace_function *find_function(const struct policy_options *o,
                                                  const struct trace *trace, struct error *err)
{
    for (size_t i = 0; i < trace->function_count; i++)
        if (o->function ? strcmp(trace->functions[i].name, o->function) == 0
                        : trace->function_count == 1)
            return &trace->functions[i];
    if (o->function)
        error_set(err, ERROR_NOT_FOUND, "--function: %s has no function %s", o->workload,
                  o->function);
    else
        error_set(err, ERROR_INVALID, "--for: %s has %zu functions: name one by --function",
                  o->workload, trace->function_count);
    return NULL;
}

struct tuning_watch {
    struct progress *progress;
    size_t done;
};

static bool on_tuning(void *arg, double share)
{
    struct tuning_watch *w = arg;
    size_t done = (size_t)(share * PARTS);
    progress_add(w->progress, done - w->done);
    w->done = done;
    return true;
}

static void print_gain(const char *name, const struct bootstrap_judgement *j)
{
    printf("%-8s  %6.2f%% late  CPU %.3f × needed  reward %.4f\n", name, 100 * j->late, j->cost,
           j->reward);
}

static int tune_on(const struct policy_options *o, const struct trace_function *function,
                   const struct rl_checkpoint *from, struct error *err)
{
    struct rl_checkpoint found = {0};
    struct bootstrap_gain gain;
    struct tuning_watch watch = {.progress = progress_begin("trying", PARTS)};
    struct bootstrap_tuning tuning = {
        .from = from,
        .subject = {.workload = function,
                    .goal_ms = o->goal_s > 0 ? o->goal_s * 1000 : trace_default_goal_ms(function)},
        .interval_s = bootstrap_world_default.interval_s,
        .episodes = (size_t)o->episodes,
        .episode_steps = bootstrap_world_default.episode_steps,
        .threads = o->jobs > 0 ? (size_t)o->jobs : parallel_cores(),
        .seed = (uint64_t)o->seed,
        .on_progress = on_tuning,
        .arg = &watch,
    };
    int result = bootstrap_tune(&tuning, &found, &gain, err);
    progress_end(watch.progress);
    if (result < 0)
        return -1;
    print_gain("before", &gain.before);
    print_gain("after", &gain.after);
    if (gain.better)
        result = rl_checkpoint_write(&found, o->out, err);
    else
        printf("nothing better was found: %s is not written\n", o->out);
    rl_checkpoint_clear(&found);
    return result;
}

static int tune(const struct policy_options *o, struct error *err)
{
    cleanup_free char *usual = file_beside_program("policy");
    struct rl_checkpoint from = {0};
    struct trace trace;
    if (rl_checkpoint_read(&from, o->from ? o->from : usual, err) < 0)
        return -1;
    int result = trace_open(o->workload, &trace, err);
    if (result == 0) {
        const struct trace_function *function = find_function(o, &trace, err);
        result = function ? tune_on(o, function, &from, err) : -1;
        trace_clear(&trace);
    }
    rl_checkpoint_clear(&from);
    return result;
}

/* --- judging ---------------------------------------------------------------------------------- */
static void print_judgement(const char *name, const struct bootstrap_judgement *kinds)
{
    size_t met = 0, functions = 0;
    printf("%-12s", name);
    for (size_t k = 0; k < BOOTSTRAP_KINDS; k++) {
        printf("  %6.2f%% · %5.2f · %3zu/%-3zu", 100 * kinds[k].late, kinds[k].cost, kinds[k].met,
               kinds[k].functions);
        met += kinds[k].met;
        functions += kinds[k].functions;
    }
    printf("  %zu/%zu\n", met, functions);
    fflush(stdout);
}

static struct recommend_policy *read_judged(const struct policy_options *o, struct error *err)
{
    struct rl_checkpoint checkpoint = {0};
    if (rl_checkpoint_read(&checkpoint, o->judge, err) < 0)
        return NULL;
    if (o->off)
        rl_checkpoint_set(&checkpoint, "off", o->off);
    struct recommend_policy *policy = recommend_policy_new(&checkpoint, err);
    rl_checkpoint_clear(&checkpoint);
    return policy;
}

static int judge(const struct policy_options *o, struct error *err)
{
    static const char *const names[] = {"ppo", "feedforward", "threshold"};
    size_t count = o->off ? 1 : ARRAY_LEN(names);
    struct bootstrap_world_config world = bootstrap_world_default;
    struct recommend_policy *policy = read_judged(o, err);
    int result = policy ? 0 : -1;
    world.threads = o->jobs > 0 ? (size_t)o->jobs : parallel_cores();
    world.episode_steps = (size_t)(8 * 3600 / world.interval_s);
    world.policy = policy;
    puts("Late requests · CPU reserved ÷ needed · goals met, of functions with 1,000 requests or "
         "more\n"
         "              sparse                    steady                    bursty"
         "                    together                  all");
    for (size_t i = 0; i < count && result == 0; i++) {
        struct bootstrap_judgement kinds[BOOTSTRAP_KINDS];
        world.recommender = recommend_find(names[i]);
        result = bootstrap_judge(&world, (size_t)o->clusters, (uint64_t)o->seed, kinds, err);
        if (result == 0)
            print_judgement(names[i], kinds);
    }
    recommend_policy_release(policy);
    return result;
}

int cmd_policy(int argc, char **argv)
{
    struct policy_options options = {0};
    struct error err;
    int status = read_options(argc, argv, &options);
    if (status != 0)
        return status;
    if (options.help)
        return print_help();
    int (*job)(const struct policy_options *, struct error *) = options.judge      ? judge
                                                                : options.workload ? tune
                                                                                   : learn;
    if (job(&options, &err) == 0)
        return EXIT_FINE;
    mpactl_error("policy: %s", err.message);
    return EXIT_FAILED;
}
