/* Runs an experiment once per seed, side by side, and sums up what came of it. */
#include "internal.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/parallel.h"

static const struct experiment *const all[] = {
    &experiment_mp3,
    &experiment_srl_isolation,
    &experiment_srl_multitenant,
    &experiment_mappo,
    &experiment_simppo,
    &experiment_faasrm,
    &experiment_aware,
    &experiment_ppo_aware,
    &experiment_ppo_simppo,
    &experiment_ppo_faasrm,
    NULL,
};

const struct experiment *experiment(size_t i)
{
    return i < ARRAY_LEN(all) ? all[i] : NULL;
}

const struct experiment *experiment_find(const char *name)
{
    for (size_t i = 0; all[i]; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

/* --- results ---------------------------------------------------------------------------------- */
struct curve { /* a line of the plot, of one seed and of all */
    double *x, *y;
    size_t count;
};

struct experiment_result {
    const struct experiment *experiment;
    const struct experiment_config *config; /* while it runs */
    size_t seeds;
    double *values;       /* (rows, seeds) */
    struct curve *curves; /* (lines, seeds) */
    double *shares;       /* (seeds) that are done */
    double seconds;
    struct error *err;
    size_t failed; /* the first seed that has; seeds: none */
    bool stop;     /* all of it, as on_progress said */
    pthread_mutex_t lock;
    struct plot plot;
    struct plot_panel *panels;
    struct plot_line *lines;
    double *numbers; /* of the lines */
};

static struct experiment_result *
make_result(const struct experiment *e, const struct experiment_config *config, struct error *err)
{
    struct experiment_result *r = xcalloc(1, sizeof(*r));
    *r = (struct experiment_result){
        .experiment = e,
        .config = config,
        .seeds = config->seeds,
        .values = xcalloc(e->row_count * config->seeds + 1, sizeof(*r->values)),
        .curves = xcalloc(e->line_count * config->seeds + 1, sizeof(*r->curves)),
        .shares = xcalloc(config->seeds, sizeof(*r->shares)),
        .err = err,
        .failed = config->seeds,
    };
    for (size_t i = 0; i < e->row_count * config->seeds; i++)
        r->values[i] = NAN;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void experiment_result_free(struct experiment_result *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->experiment->line_count * r->seeds; i++) {
        free(r->curves[i].x);
        free(r->curves[i].y);
    }
    pthread_mutex_destroy(&r->lock);
    free(r->values);
    free(r->curves);
    free(r->shares);
    free(r->panels);
    free(r->lines);
    free(r->numbers);
    free(r);
}

/* --- for the experiments ------------------------------------------------------------------------
 */
size_t run_episodes(const struct experiment_run *run, size_t episodes, size_t least)
{
    size_t count = (size_t)llround((double)episodes * run->effort);
    return count > least ? count : least;
}

void run_set(struct experiment_run *run, size_t row, double value)
{
    run->result->values[row * run->result->seeds + run->index] = value;
}

static double *copy(const double *from, size_t count)
{
    double *to = xcalloc(count + 1, sizeof(*to));
    memcpy(to, from, count * sizeof(*to));
    return to;
}

void run_line(struct experiment_run *run, size_t line, const double *x, const double *y,
              size_t count)
{
    struct curve *curve = &run->result->curves[line * run->result->seeds + run->index];
    free(curve->x);
    free(curve->y);
    *curve = (struct curve){copy(x, count), copy(y, count), count};
}

int run_progress(struct experiment_run *run, double share, struct error *err)
{
    struct experiment_result *r = run->result;
    double sum = 0;
    pthread_mutex_lock(&r->lock);
    r->shares[run->index] = share;
    for (size_t i = 0; i < r->seeds; i++)
        sum += r->shares[i] / (double)r->seeds;
    if (!r->stop && r->config->on_progress)
        r->stop = !r->config->on_progress(r->config->arg, sum);
    bool stop = r->stop || r->failed < run->index;
    pthread_mutex_unlock(&r->lock);
    return stop ? error_set(err, ERROR_CANCELLED, "it was ended") : 0;
}

/* --- figures ------------------------------------------------------------------------------------
 */
const struct experiment *experiment_of(const struct experiment_result *r)
{
    return r->experiment;
}

size_t experiment_seeds(const struct experiment_result *r)
{
    return r->seeds;
}

const double *experiment_values(const struct experiment_result *r, size_t row)
{
    return r->values + row * r->seeds;
}

size_t experiment_count(const struct experiment_result *r, size_t row)
{
    size_t count = 0;
    for (size_t i = 0; i < r->seeds; i++)
        if (!isnan(experiment_values(r, row)[i]))
            count++;
    return count;
}

double experiment_mean(const struct experiment_result *r, size_t row)
{
    const double *values = experiment_values(r, row);
    double sum = 0;
    for (size_t i = 0; i < r->seeds; i++)
        sum += isnan(values[i]) ? 0 : values[i];
    size_t count = experiment_count(r, row);
    return count > 0 ? sum / (double)count : NAN;
}

double experiment_spread(const struct experiment_result *r, size_t row)
{
    const double *values = experiment_values(r, row);
    double mean = experiment_mean(r, row), sum = 0;
    for (size_t i = 0; i < r->seeds; i++)
        sum += isnan(values[i]) ? 0 : (values[i] - mean) * (values[i] - mean);
    size_t count = experiment_count(r, row);
    return count > 1 ? sqrt(sum / (double)(count - 1)) : NAN;
}

bool experiment_reached(const struct experiment_result *r, size_t row)
{
    const struct experiment_row *asked = &r->experiment->rows[row];
    double mean = experiment_mean(r, row);
    if (asked->aim == EXPERIMENT_NO_AIM)
        return true;
    if (experiment_count(r, row) < r->seeds) /* without those that failed it would flatter */
        return false;
    return asked->aim == EXPERIMENT_AT_MOST ? mean <= asked->bound : mean >= asked->bound;
}

double experiment_seconds(const struct experiment_result *r)
{
    return r->seconds;
}

/* --- the plot -----------------------------------------------------------------------------------
 */
/* Points that all seeds have. */
static size_t points(const struct experiment_result *r, size_t line)
{
    size_t count = SIZE_MAX;
    for (size_t i = 0; i < r->seeds; i++)
        if (r->curves[line * r->seeds + i].count < count)
            count = r->curves[line * r->seeds + i].count;
    return count;
}

static void sum_up(const struct experiment_result *r, size_t line, double *at,
                   struct plot_line *out)
{
    const struct curve *curves = r->curves + line * r->seeds;
    size_t count = points(r, line);
    double *x = at, *y = at + count, *low = at + 2 * count, *high = at + 3 * count;
    for (size_t k = 0; k < count; k++) {
        x[k] = curves[0].x[k];
        y[k] = 0;
        low[k] = INFINITY;
        high[k] = -INFINITY;
        for (size_t i = 0; i < r->seeds; i++) {
            y[k] += curves[i].y[k] / (double)r->seeds;
            low[k] = fmin(low[k], curves[i].y[k]);
            high[k] = fmax(high[k], curves[i].y[k]);
        }
    }
    *out = (struct plot_line){r->experiment->lines[line].label, x, y, low, high, count};
}

static void make_plot(struct experiment_result *r)
{
    const struct experiment *e = r->experiment;
    size_t total = 0, panels = 0;
    for (size_t i = 0; i < e->line_count; i++)
        total += 4 * points(r, i);
    r->lines = xcalloc(e->line_count + 1, sizeof(*r->lines));
    r->panels = xcalloc(e->line_count + 1, sizeof(*r->panels));
    r->numbers = xcalloc(total + 1, sizeof(*r->numbers));
    double *at = r->numbers;
    for (size_t i = 0; i < e->line_count; i++) {
        if (i == 0 || strcmp(e->lines[i].panel, e->lines[i - 1].panel) != 0)
            r->panels[panels++] = (struct plot_panel){e->lines[i].panel, &r->lines[i], 0};
        r->panels[panels - 1].line_count++;
        sum_up(r, i, at, &r->lines[i]);
        at += 4 * points(r, i);
    }
    r->plot = (struct plot){e->title, e->document, e->x_label, r->panels, panels};
}

const struct plot *experiment_plot(const struct experiment_result *result)
{
    return &result->plot;
}

/* --- running ------------------------------------------------------------------------------------
 */
/* Of several failures the first seed's is told, whichever came first: only later ones end for it.
 */
static void fail(struct experiment_result *r, size_t i, const struct error *err)
{
    pthread_mutex_lock(&r->lock);
    if (i < r->failed && err->code != ERROR_CANCELLED) {
        *r->err = *err;
        r->failed = i;
    }
    pthread_mutex_unlock(&r->lock);
}

static void run_one(void *arg, size_t i)
{
    struct experiment_result *r = arg;
    struct error err = {0};
    size_t threads = r->config->threads / r->seeds;
    struct experiment_run run = {.seed = r->config->seed + i,
                                 .effort = r->config->effort,
                                 .result = r,
                                 .index = i,
                                 .threads = threads > 1 ? threads : 1,
                                 .policy = r->config->policy};
    if (run_progress(&run, 0, &err) < 0 || r->experiment->run(&run, &err) < 0)
        fail(r, i, &err);
    else if (run_progress(&run, 1, &err) < 0)
        fail(r, i, &err);
}

struct experiment_result *experiment_run(const struct experiment *experiment,
                                         const struct experiment_config *config, struct error *err)
{
    struct experiment_result *r = make_result(experiment, config, err);
    int64_t begun_ms = clock_mono_ms();
    parallel_for(config->threads, config->seeds, run_one, r);
    r->seconds = (double)(clock_mono_ms() - begun_ms) / 1000;
    r->config = NULL;
    r->err = NULL;
    if (r->failed == r->seeds && !r->stop) {
        make_plot(r);
        return r;
    }
    if (r->failed < r->seeds)
        error_prefix(err, "seed %" PRIu64, config->seed + r->failed);
    else
        error_set(err, ERROR_CANCELLED, "it was ended");
    experiment_result_free(r);
    return NULL;
}
