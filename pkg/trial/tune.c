/* Random settings first, the same for all, then small steps from the best of each group of
 * functions: all of them, those of a class, each by itself. All groups go on side by side, so that
 * every round has work for all cores. */
#include "trial/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "base/random.h"

#define BATCH        8   /* settings of a group in one round */
#define FIRST_RADIUS 0.3 /* of steps, in parts of a parameter's range */
#define LAST_RADIUS  0.03
#define PENALTY      10

struct group {
    size_t *members; /* functions */
    size_t count;
    double *best;        /* setting */
    double *best_scores; /* of each member */
};

struct job { /* one trial */
    size_t function;
    const double *params;
    double *score;
};

struct search {
    const struct tune_config *config;
    size_t params; /* of a setting */
    struct group *groups;
    size_t group_count;
    struct job *jobs;
};

const char *tune_strength_name(enum tune_strength strength)
{
    static const char *const names[] = {"all", "class", "function"};
    return names[strength];
}

double tune_score(const struct trial_result *result, double oracle_core_seconds,
                  double late_share_allowed)
{
    double cost = result->cpu_core_seconds / oracle_core_seconds;
    double late = result->violation_ratio / late_share_allowed;
    return cost + (late > 1 ? PENALTY * log(late) : 0);
}

/* --- settings --------------------------------------------------------------------------------- */
static double four_digits(double x)
{
    char text[32];
    snprintf(text, sizeof(text), "%.4g", x);
    return strtod(text, NULL);
}

/* Ranges of more than a decade are searched by factors. */
static bool by_factors(const struct recommend_param *p)
{
    return p->low > 0 && p->high / p->low > 10;
}

/* Between 0 and 1, and back. */
static double place_of(const struct recommend_param *p, double value)
{
    value = fmin(fmax(value, p->low), p->high);
    return by_factors(p) ? log(value / p->low) / log(p->high / p->low)
                         : (value - p->low) / (p->high - p->low);
}

static double value_at(const struct recommend_param *p, double place)
{
    place = fmin(fmax(place, 0), 1);
    double value =
        by_factors(p) ? p->low * pow(p->high / p->low, place) : p->low + (p->high - p->low) * place;
    return fmin(fmax(four_digits(value), p->low), p->high);
}

static void draw(const struct recommender *r, struct random *random, double *out)
{
    for (size_t i = 0; i < r->param_count; i++)
        out[i] = value_at(&r->params[i], random_uniform(random));
}

/* Changes half of the parameters, at least one. */
static void step_from(const struct recommender *r, const double *from, double radius,
                      struct random *random, double *out)
{
    size_t sure = (size_t)random_below(random, r->param_count);
    for (size_t i = 0; i < r->param_count; i++) {
        const struct recommend_param *p = &r->params[i];
        bool moves = random_uniform(random) < 0.5 || i == sure;
        double place = place_of(p, from[i]) + radius * random_normal(random);
        out[i] = moves ? value_at(p, place) : from[i];
    }
}

char *tune_print_setting(const struct recommender *recommender, const double *params)
{
    cleanup_buf struct buf text;
    buf_init(&text, 4096);
    int failed = buf_puts(&text, recommender->name);
    for (size_t i = 0; i < recommender->param_count; i++)
        failed |=
            buf_printf(&text, "%c%s=%.10g", i ? ',' : ':', recommender->params[i].name, params[i]);
    return failed ? xstrdup(recommender->name) : buf_take(&text);
}

/* --- groups ----------------------------------------------------------------------------------- */
static const struct trace_function *workload_of(const struct search *s, size_t function)
{
    return s->config->functions[function].config.functions[0].workload;
}

static size_t group_of(const struct search *s, enum tune_strength strength, size_t function)
{
    if (strength == TUNE_ALL)
        return 0;
    if (strength == TUNE_CLASS)
        return 1 + trace_classify(workload_of(s, function));
    return 1 + TRACE_CLASS_COUNT + function;
}

static void make_groups(struct search *s)
{
    size_t functions = s->config->function_count;
    s->group_count = 1 + TRACE_CLASS_COUNT + functions;
    s->groups = xcalloc(s->group_count, sizeof(*s->groups));
    for (int strength = 0; strength < TUNE_STRENGTH_COUNT; strength++) {
        for (size_t f = 0; f < functions; f++) {
            struct group *g = &s->groups[group_of(s, (enum tune_strength)strength, f)];
            g->members = xrealloc(g->members, g->count + 1, sizeof(*g->members));
            g->members[g->count++] = f;
        }
    }
    for (size_t i = 0; i < s->group_count; i++) {
        struct group *g = &s->groups[i];
        g->best = xcalloc(s->params, sizeof(*g->best));
        g->best_scores = xcalloc(g->count + 1, sizeof(*g->best_scores));
        for (size_t m = 0; m < g->count; m++)
            g->best_scores[m] = INFINITY;
    }
}

static void clear(struct search *s)
{
    for (size_t i = 0; i < s->group_count; i++) {
        free(s->groups[i].members);
        free(s->groups[i].best);
        free(s->groups[i].best_scores);
    }
    free(s->groups);
    free(s->jobs);
}

static double sum_of(const double *scores, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += scores[i];
    return sum;
}

/* scores: of each member. What is as good is taken too, to get across where nothing changes. */
static void consider(const struct search *s, struct group *g, const double *params,
                     const double *scores)
{
    if (sum_of(scores, g->count) > sum_of(g->best_scores, g->count))
        return;
    memcpy(g->best, params, s->params * sizeof(*params));
    memcpy(g->best_scores, scores, g->count * sizeof(*scores));
}

/* --- trials ----------------------------------------------------------------------------------- */
static void run_job(void *arg, size_t i)
{
    struct search *s = arg;
    const struct job *job = &s->jobs[i];
    const struct tune_function *f = &s->config->functions[job->function];
    struct trial_choice choice = {.recommender = s->config->recommender,
                                  .params = (double *)job->params};
    struct trial_config config = f->config;
    struct trial_result result;
    struct error err = {0};
    config.choice = &choice;
    double allowed = 1 - config.functions[0].spec->latency_percentile / 100;
    bool fine = trial_run(&config, &result, &err) == 0;
    *job->score = fine ? tune_score(&result, f->oracle_core_seconds, allowed) : NAN;
    if (s->config->on_run)
        s->config->on_run(s->config->arg);
}

static int run_jobs(struct search *s, size_t count, struct error *err)
{
    parallel_for(s->config->threads, count, run_job, s);
    for (size_t i = 0; i < count; i++)
        if (isnan(*s->jobs[i].score))
            return error_set(err, ERROR_INVALID, "%s cannot be tried on function %s",
                             s->config->recommender->name,
                             workload_of(s, s->jobs[i].function)->name);
    return 0;
}

static size_t random_trials(const struct tune_config *config)
{
    return (config->trials + 1) / 2;
}

/* The usual setting and random ones, on every function; each group takes its best. */
static int search_at_random(struct search *s, struct error *err)
{
    const struct recommender *r = s->config->recommender;
    size_t functions = s->config->function_count, tries = random_trials(s->config);
    struct random random = random_stream(s->config->seed, 0);
    cleanup_free double *settings = xcalloc(tries * s->params, sizeof(*settings));
    cleanup_free double *scores = xcalloc(tries * functions, sizeof(*scores));
    cleanup_free double *picked = xcalloc(functions, sizeof(*picked));
    s->jobs = xrealloc(s->jobs, tries * functions, sizeof(*s->jobs));
    for (size_t t = 0; t < tries; t++) {
        double *setting = &settings[t * s->params];
        for (size_t p = 0; t == 0 && p < s->params; p++)
            setting[p] = r->params[p].value;
        if (t > 0)
            draw(r, &random, setting);
        for (size_t f = 0; f < functions; f++)
            s->jobs[t * functions + f] = (struct job){f, setting, &scores[t * functions + f]};
    }
    if (run_jobs(s, tries * functions, err) < 0)
        return -1;
    for (size_t i = 0; i < s->group_count; i++) {
        for (size_t t = 0; t < tries; t++) {
            struct group *g = &s->groups[i];
            for (size_t m = 0; m < g->count; m++)
                picked[m] = scores[t * functions + g->members[m]];
            consider(s, g, &settings[t * s->params], picked);
        }
    }
    return 0;
}

/* One round of steps from the best of every group. */
static int search_nearby(struct search *s, size_t round, size_t steps, double radius,
                         struct error *err)
{
    size_t all = TUNE_STRENGTH_COUNT * s->config->function_count, count = 0;
    cleanup_free double *settings = xcalloc(s->group_count * steps * s->params, sizeof(*settings));
    cleanup_free double *scores = xcalloc(all * steps, sizeof(*scores));
    s->jobs = xrealloc(s->jobs, all * steps, sizeof(*s->jobs));
    for (size_t i = 0; i < s->group_count; i++) {
        const struct group *g = &s->groups[i];
        struct random random = random_stream(s->config->seed, 1 + round * s->group_count + i);
        for (size_t t = 0; t < steps; t++) {
            double *setting = &settings[(i * steps + t) * s->params];
            step_from(s->config->recommender, g->best, radius, &random, setting);
            for (size_t m = 0; m < g->count; m++, count++)
                s->jobs[count] = (struct job){g->members[m], setting, &scores[count]};
        }
    }
    if (run_jobs(s, count, err) < 0)
        return -1;
    const double *next = scores;
    for (size_t i = 0; i < s->group_count; i++)
        for (size_t t = 0; t < steps; t++, next += s->groups[i].count)
            consider(s, &s->groups[i], &settings[(i * steps + t) * s->params], next);
    return 0;
}

/* What is better for a group than its own best takes its place. */
static void take_over(struct search *s, const struct group *from, struct group *to)
{
    cleanup_free double *scores = xcalloc(to->count + 1, sizeof(*scores));
    size_t found = 0;
    for (size_t m = 0; m < from->count && found < to->count; m++)
        if (from->members[m] == to->members[found])
            scores[found++] = from->best_scores[m];
    if (found == to->count && found > 0)
        consider(s, to, from->best, scores);
}

static void make_stronger_better(struct search *s)
{
    for (size_t i = 0; i < TRACE_CLASS_COUNT; i++)
        take_over(s, &s->groups[group_of(s, TUNE_ALL, 0)], &s->groups[1 + i]);
    for (size_t f = 0; f < s->config->function_count; f++)
        take_over(s, &s->groups[group_of(s, TUNE_CLASS, f)],
                  &s->groups[group_of(s, TUNE_FUNCTION, f)]);
}

/* --- the whole -------------------------------------------------------------------------------- */
size_t tune_runs(const struct tune_config *config)
{
    size_t first = random_trials(config), rest = config->trials - first;
    return config->function_count * (first + TUNE_STRENGTH_COUNT * rest);
}

size_t tune_param_count(const struct tune_config *config)
{
    return TUNE_STRENGTH_COUNT * config->function_count * config->recommender->param_count;
}

static int search(struct search *s, struct error *err)
{
    size_t rest = s->config->trials - random_trials(s->config);
    size_t rounds = (rest + BATCH - 1) / BATCH;
    if (search_at_random(s, err) < 0)
        return -1;
    for (size_t round = 0; round < rounds; round++) {
        double share = rounds > 1 ? (double)round / (double)(rounds - 1) : 0;
        double radius = FIRST_RADIUS * pow(LAST_RADIUS / FIRST_RADIUS, share);
        size_t left = rest - round * BATCH;
        if (search_nearby(s, round, left < BATCH ? left : BATCH, radius, err) < 0)
            return -1;
    }
    make_stronger_better(s);
    return 0;
}

int tune_search(const struct tune_config *config, double *params, struct error *err)
{
    struct search s = {.config = config, .params = config->recommender->param_count};
    if (s.params == 0)
        return error_set(err, ERROR_INVALID, "%s has no parameters", config->recommender->name);
    if (config->trials < 2 || config->function_count == 0)
        return error_set(err, ERROR_INVALID, "tuning needs functions and at least 2 trials");
    make_groups(&s);
    int result = search(&s, err);
    for (int strength = 0; strength < TUNE_STRENGTH_COUNT; strength++) {
        for (size_t f = 0; f < config->function_count; f++) {
            const struct group *g = &s.groups[group_of(&s, (enum tune_strength)strength, f)];
            size_t at = ((size_t)strength * config->function_count + f) * s.params;
            memcpy(&params[at], g->best, s.params * sizeof(*params));
        }
    }
    clear(&s);
    return result;
}
