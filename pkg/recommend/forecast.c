/* The rate of requests to be ready for: the level of late with a margin, the highest of a longer
 * while, and at once what comes when a burst begins. */
#include "recommend/internal.h"

struct forecast {
    double memory_s, hold_s;
    struct window *rates; /* of each interval */
    struct window *peaks; /* of the level */
};

struct forecast *recommend_forecast_new(double memory_s, double hold_s)
{
    struct forecast *f = xcalloc(1, sizeof(*f));
    f->memory_s = memory_s;
    f->hold_s = hold_s;
    f->rates = recommend_window_new(memory_s);
    f->peaks = recommend_window_new(fmax(hold_s, memory_s));
    return f;
}

void recommend_forecast_free(struct forecast *f)
{
    recommend_window_free(f->rates);
    recommend_window_free(f->peaks);
    free(f);
}

bool recommend_is_burst(double rate, double level, double span_s)
{
    double expected = level * span_s;
    return rate * span_s > expected + 3 * sqrt(expected) + 3;
}

double recommend_forecast(struct forecast *f, double time_s, double span_s, double rate)
{
    double before = recommend_window_mean(f->rates, time_s - f->memory_s);
    recommend_window_add(f->rates, time_s, span_s, rate);
    double level = recommend_window_mean(f->rates, time_s - f->memory_s);
    if (recommend_is_burst(rate, isnan(before) ? 0 : before, span_s))
        level = fmax(level, rate);
    recommend_window_add(f->peaks, time_s, span_s, level);
    return fmax(level, recommend_window_max(f->peaks, time_s - f->hold_s));
}
