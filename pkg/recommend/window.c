/* Figures of the last while. Samples lie in one array, oldest first; those too old for the span are
 * skipped at its front until the array would have to grow. */
#include "recommend/internal.h"

#include <string.h>

#define MAX_SAMPLES 4096 /* then the oldest give way, whatever the span */

struct sample {
    double from_s, time_s, value;
};

struct window {
    double span_s;
    struct sample *samples;
    size_t first, end, cap;
};

struct window *recommend_window_new(double span_s)
{
    struct window *w = xcalloc(1, sizeof(*w));
    w->span_s = span_s;
    return w;
}

void recommend_window_free(struct window *w)
{
    if (!w)
        return;
    free(w->samples);
    free(w);
}

static void make_room(struct window *w)
{
    if (w->end - w->first >= MAX_SAMPLES)
        w->first++;
    if (w->end < w->cap)
        return;
    if (w->first >= w->cap / 2 && w->first > 0) {
        memmove(w->samples, w->samples + w->first, (w->end - w->first) * sizeof(w->samples[0]));
        w->end -= w->first;
        w->first = 0;
        return;
    }
    w->cap = w->cap ? 2 * w->cap : 16;
    w->samples = xrealloc(w->samples, w->cap, sizeof(w->samples[0]));
}

void recommend_window_add(struct window *w, double time_s, double covers_s, double value)
{
    if (w->end > w->first && w->samples[w->end - 1].time_s >= time_s) {
        w->samples[w->end - 1].value = value;
        return;
    }
    while (w->first < w->end && w->samples[w->first].time_s <= time_s - w->span_s)
        w->first++;
    make_room(w);
    w->samples[w->end++] = (struct sample){time_s - covers_s, time_s, value};
}

double recommend_window_max(const struct window *w, double after_s)
{
    double most = NAN;
    for (size_t i = w->end; i > w->first && w->samples[i - 1].time_s > after_s; i--)
        most = fmax(most, w->samples[i - 1].value); /* fmax skips NaN */
    return most;
}

double recommend_window_min(const struct window *w, double after_s)
{
    double least = NAN;
    for (size_t i = w->end; i > w->first && w->samples[i - 1].time_s > after_s; i--)
        least = fmin(least, w->samples[i - 1].value);
    return least;
}

double recommend_window_sum(const struct window *w, double after_s)
{
    double sum = 0;
    for (size_t i = w->end; i > w->first && w->samples[i - 1].time_s > after_s; i--)
        sum += w->samples[i - 1].value;
    return sum;
}

double recommend_window_mean(const struct window *w, double after_s)
{
    double sum = 0, covered = 0;
    for (size_t i = w->end; i > w->first && w->samples[i - 1].time_s > after_s; i--) {
        const struct sample *s = &w->samples[i - 1];
        double part = s->time_s - fmax(s->from_s, after_s);
        sum += s->value * part;
        covered += part;
    }
    return sum / covered; /* NaN: none */
}

double recommend_window_last_s(const struct window *w)
{
    return w->end > w->first ? w->samples[w->end - 1].time_s : NAN;
}
