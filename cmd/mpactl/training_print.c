/* What was learned: as a table, as CSV and as a curve. */
#include <math.h>

#include "plot/plot.h"
#include "table.h"
#include "training.h"

#define CONVERGED_WITHIN 0.05
#define TAIL             10 /* the last 1/10 of the rounds is what learning has come to */

static size_t max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* --- the table ------------------------------------------------------------------------------- */
static struct train_report mean_of(const struct train_report *rounds, size_t count)
{
    struct train_report mean = {0};
    double n = (double)count;
    for (size_t i = 0; i < count; i++) {
        mean.reward += rounds[i].reward / n;
        mean.slo_preservation += rounds[i].slo_preservation / n;
        mean.cpu_utilization += rounds[i].cpu_utilization / n;
        mean.violation_ratio += rounds[i].violation_ratio / n;
    }
    return mean;
}

/* Steps count from the beginning, also where it was resumed; seconds do not. */
static double steps_per_s(const struct train_history *h)
{
    const struct train_report *first = &h->rounds[0], *last = &h->rounds[h->count - 1];
    if (h->count < 2)
        return (double)last->steps / fmax(last->seconds, 1e-3);
    return (double)(last->steps - first->steps) / fmax(last->seconds - first->seconds, 1e-3);
}

static void add_row(struct table *table, const struct train_history *h)
{
    char text[TABLE_TEXT];
    size_t tail = max(h->count / TAIL, 1);
    const struct train_report *last = &h->rounds[h->count - 1];
    struct train_report first = mean_of(h->rounds, tail);
    struct train_report end = mean_of(h->rounds + h->count - tail, tail);
    size_t converged =
        train_converged(h->rounds, h->count, max(h->count / 20, 1), CONVERGED_WITHIN);
    table_cell(table, "%llu", (unsigned long long)h->seed);
    table_cell(table, "%zu", last->episodes);
    table_cell(table, "%s", table_number(first.reward, 4, text));
    table_cell(table, "%s", table_number(end.reward, 4, text));
    if (converged < h->count)
        table_cell(table, "%zu", h->rounds[converged - 1].episodes);
    else
        table_cell(table, "–");
    table_cell(table, "%s", table_percent(end.slo_preservation, 1, text));
    table_cell(table, "%s", table_percent(end.violation_ratio, 2, text));
    table_cell(table, "%s", table_percent(end.cpu_utilization, 1, text));
    table_cell(table, "%s", table_count((double)last->steps, text));
    table_cell(table, "%s", table_number(last->seconds, 1, text));
    table_cell(table, "%s", table_count(round(steps_per_s(h)), text));
}

void training_print(const struct training *t)
{
    static const char *const titles[] = {
        "SEED",       "EPISODES", "REWARD: FIRST", "LAST",    "CONVERGED AT", "SLO PRESERVED",
        "VIOLATIONS", "CPU USED", "DECISIONS",     "SECONDS", "DECISIONS/S",  NULL};
    struct table table;
    printf("%s, formulation %s; functions: %d, clusters: %d%s\n", t->config.algorithm->name,
           t->config.world.formulation, t->config.world.functions, t->config.world.clusters,
           t->interrupted ? "; ended early" : "");
    table_begin(&table, "rrrrrrrrrrr", titles);
    for (size_t i = 0; i < t->count; i++)
        if (t->histories[i].count > 0)
            add_row(&table, &t->histories[i]);
    table_end(&table, "  ");
}

/* --- CSV ------------------------------------------------------------------------------------- */
void training_write_csv(const struct training *t, FILE *out)
{
    fputs("episode,seed,reward_mean,reward_min,reward_max,slo_preservation,cpu_utilization,"
          "violation_ratio,steps,seconds\n",
          out);
    for (size_t i = 0; i < t->count; i++) {
        const struct train_history *h = &t->histories[i];
        for (size_t k = 0; k < h->count; k++) {
            const struct train_report *r = &h->rounds[k];
            fprintf(out, "%zu,%llu,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%llu,%.3f\n", r->episodes,
                    (unsigned long long)h->seed, r->reward, r->reward_min, r->reward_max,
                    r->slo_preservation, r->cpu_utilization, r->violation_ratio,
                    (unsigned long long)r->steps, r->seconds);
        }
    }
}

/* --- the curve ------------------------------------------------------------------------------- */
enum { PANELS = 3 };
static const struct {
    const char *label;
    size_t at; /* in struct train_report */
} figures[PANELS] = {
    {"reward of a decision", offsetof(struct train_report, reward)},
    {"SLO preservation", offsetof(struct train_report, slo_preservation)},
    {"CPU utilisation", offsetof(struct train_report, cpu_utilization)},
};

struct curve {
    double *x, *mean, *low, *high;
    size_t count, window;
};

/* Mean of the window that ends at a round. */
static double smooth(const struct train_history *h, size_t round, size_t window, size_t at)
{
    size_t first = round + 1 > window ? round + 1 - window : 0;
    double sum = 0;
    for (size_t i = first; i <= round; i++)
        sum += *(const double *)(const void *)((const char *)&h->rounds[i] + at);
    return sum / (double)(round + 1 - first);
}

static void fill(const struct training *t, struct curve *c, size_t at)
{
    double n = (double)t->count;
    for (size_t round = 0; round < c->count; round++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < t->count; i++)
            sum += smooth(&t->histories[i], round, c->window, at);
        for (size_t i = 0; i < t->count; i++)
            squares += pow(smooth(&t->histories[i], round, c->window, at) - sum / n, 2);
        double spread = t->count > 1 ? sqrt(squares / (n - 1)) : 0;
        c->x[round] = (double)t->histories[0].rounds[round].episodes;
        c->mean[round] = sum / n;
        c->low[round] = sum / n - spread;
        c->high[round] = sum / n + spread;
    }
}

static size_t rounds_of_all(const struct training *t)
{
    size_t count = SIZE_MAX;
    for (size_t i = 0; i < t->count; i++)
        count = t->histories[i].count < count ? t->histories[i].count : count;
    return count;
}

static void describe(const struct training *t, size_t window, char *title, char *subtitle,
                     size_t size)
{
    snprintf(title, size, "%s, formulation %s", t->config.algorithm->name,
             t->config.world.formulation);
    snprintf(subtitle, size, "functions: %d, clusters: %d; mean of seeds: %zu%s, of episodes: %zu",
             t->config.world.functions, t->config.world.clusters, t->count,
             t->count > 1 ? ", ± one standard deviation" : "",
             window * (size_t)t->config.world.clusters);
}

static void write_curve(const struct training *t, void (*write)(const struct plot *plot, FILE *out),
                        FILE *out)
{
    struct curve curves[PANELS];
    struct plot_line lines[PANELS];
    struct plot_panel panels[PANELS];
    char title[128], subtitle[128];
    size_t count = rounds_of_all(t), window = max(count / 40, 1);
    for (size_t i = 0; i < PANELS; i++) {
        double *memory = xcalloc(4 * count, sizeof(double));
        curves[i] = (struct curve){memory, memory + count, memory + 2 * count, memory + 3 * count,
                                   count,  window};
        fill(t, &curves[i], figures[i].at);
        lines[i] = (struct plot_line){.label = t->config.algorithm->name,
                                      .x = curves[i].x,
                                      .y = curves[i].mean,
                                      .low = t->count > 1 ? curves[i].low : NULL,
                                      .high = t->count > 1 ? curves[i].high : NULL,
                                      .count = count};
        panels[i] = (struct plot_panel){figures[i].label, &lines[i], 1};
    }
    describe(t, window, title, subtitle, sizeof(title));
    const struct plot plot = {title, subtitle, "episodes", panels, PANELS};
    write(&plot, out);
    for (size_t i = 0; i < PANELS; i++)
        free(curves[i].x);
}

void training_write_svg(const struct training *t, FILE *out)
{
    write_curve(t, plot_write_svg, out);
}

void training_write_png(const struct training *t, FILE *out)
{
    write_curve(t, plot_write_png, out);
}
