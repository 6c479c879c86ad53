/* The same learning from several seeds, side by side, and where it converges. */
#include "internal.h"

#include <math.h>
#include <pthread.h>

#include "base/parallel.h"

/* --- several seeds --------------------------------------------------------------------------- */
struct work { /* for several threads */
    const struct train_seeds *seeds;
    struct train_history *histories;
    struct error *err;
    bool stop;
    size_t failed; /* the first of those that did; count: none */
    pthread_mutex_t lock;
};

/* Of several failures the first seed's is told, whichever came first. */
static void fail(struct work *w, const struct error *err, size_t i)
{
    pthread_mutex_lock(&w->lock);
    if (i < w->failed) {
        *w->err = *err;
        error_prefix(w->err, "seed %llu", (unsigned long long)w->histories[i].seed);
        w->failed = i;
    }
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
}

/* Gives back whether to go on. */
static bool tell(struct work *w, size_t i, const struct train_report *report)
{
    pthread_mutex_lock(&w->lock);
    if (!w->stop && report && w->seeds->on_round)
        w->stop = !w->seeds->on_round(w->seeds->arg, i, report);
    bool go_on = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

static void begin(void *arg, size_t i)
{
    struct work *w = arg;
    struct train_history *h = &w->histories[i];
    struct train_config config = *w->seeds->config;
    struct error err;
    config.seed = h->seed;
    h->train = train_new(&config, &err);
    if (h->train == NULL ||
        (w->seeds->on_begin && w->seeds->on_begin(w->seeds->arg, h->train, h->seed, &err) < 0))
        fail(w, &err, i);
}

static void learn(void *arg, size_t i)
{
    struct work *w = arg;
    struct train_history *h = &w->histories[i];
    struct train_report report;
    struct error err;
    bool go_on = tell(w, i, NULL);
    while (go_on && !train_is_done(h->train)) {
        if (train_round(h->train, &report, &err) < 0) {
            fail(w, &err, i);
            return;
        }
        h->rounds = xrealloc(h->rounds, h->count + 1, sizeof(*h->rounds));
        h->rounds[h->count++] = report;
        go_on = tell(w, i, &report);
    }
}

/* All begin before any learns: what is wrong from the start is told before time is spent on it, and
 * does not depend on which thread was faster. */
int train_seeds(const struct train_seeds *seeds, struct train_history *out, struct error *err)
{
    struct work w = {.seeds = seeds, .histories = out, .err = err, .failed = seeds->count};
    for (size_t i = 0; i < seeds->count; i++)
        out[i] = (struct train_history){.seed = seeds->config->seed + i};
    pthread_mutex_init(&w.lock, NULL);
    parallel_for(seeds->threads, seeds->count, begin, &w);
    parallel_for(seeds->threads, seeds->count, learn, &w);
    pthread_mutex_destroy(&w.lock);
    return w.failed < seeds->count ? -1 : 0;
}

void train_history_clear(struct train_history *history)
{
    free(history->rounds);
    train_free(history->train);
    *history = (struct train_history){0};
}

/* --- where it converges ---------------------------------------------------------------------- */
static double mean_reward(const struct train_report *rounds, size_t end, size_t window)
{
    double sum = 0;
    for (size_t i = end - window; i < end; i++)
        sum += rounds[i].reward;
    return sum / (double)window;
}

size_t train_converged(const struct train_report *rounds, size_t count, size_t window, double share)
{
    if (window == 0 || count < 2 * window)
        return count;
    double first = mean_reward(rounds, window, window), last = mean_reward(rounds, count, window);
    double most = share * fmax(fabs(last), fabs(last - first));
    size_t end = count;
    while (end > window && fabs(mean_reward(rounds, end - 1, window) - last) <= most)
        end--;
    return end > count - window ? count : end;
}
