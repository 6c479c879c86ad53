/* The `behavior` of HPA v2: stabilisation windows and policies, with the same arithmetic. */
#include "guard/internal.h"

#include <math.h>
#include <string.h>

#define MAX_ITEMS    1024
#define EVENT_LIFE_S 3600.0 /* no policy looks back further: periods end at 1800 s */

/* --- windows ---------------------------------------------------------------------------------- */
static void append(struct guard_sample **items, size_t *count, size_t *cap, double time_s,
                   double value)
{
    if (*count == *cap) {
        *cap = *cap ? *cap * 2 : 4;
        *items = xrealloc(*items, *cap, sizeof(**items));
    }
    (*items)[(*count)++] = (struct guard_sample){.time_s = time_s, .value = value};
}

static void drop_first(struct guard_sample *items, size_t *count, size_t n)
{
    if (n == 0)
        return;
    *count -= n;
    memmove(items, items + n, *count * sizeof(*items));
}

static void window_add(struct guard_window *w, double time_s, double value, double oldest_s)
{
    size_t stale = 0;
    while (stale < w->count && w->items[stale].time_s <= oldest_s)
        stale++;
    drop_first(w->items, &w->count, stale);
    while (w->count > 0 && w->items[w->count - 1].value <= value)
        w->count--;
    if (w->count == MAX_ITEMS) { /* the two oldest become one that holds longer, never shorter */
        w->items[1].value = w->items[0].value;
        drop_first(w->items, &w->count, 1);
    }
    append(&w->items, &w->count, &w->cap, time_s, value);
}

static double window_max(const struct guard_window *w, double after_s, double least)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].time_s > after_s)
            return fmax(w->items[i].value, least);
    return least;
}

void guard_series_clear(struct guard_series *series)
{
    free(series->highs.items);
    free(series->lows.items);
    memset(series, 0, sizeof(*series));
}

static void remember(struct guard_series *series, double now_s, double value, double oldest_s)
{
    window_add(&series->highs, now_s, value, oldest_s);
    window_add(&series->lows, now_s, -value, oldest_s);
}

double guard_stabilize(struct guard_series *series, const struct api_spec *spec, double now_s,
                       double current, double proposed)
{
    double up_cutoff = now_s - spec->scale_up.stabilization_s;
    double down_cutoff = now_s - spec->scale_down.stabilization_s;
    double oldest = fmin(up_cutoff, down_cutoff);
    if (series->highs.count == 0 && series->highs.cap == 0)
        remember(series, now_s, current, oldest);
    double least = -window_max(&series->lows, up_cutoff, -proposed);
    double most = window_max(&series->highs, down_cutoff, proposed);
    remember(series, now_s, proposed, oldest);
    return fmin(fmax(current, least), most);
}

/* --- policies --------------------------------------------------------------------------------- */
void guard_events_add(struct guard_events *events, double now_s, int change)
{
    size_t stale = 0;
    while (stale < events->count && events->items[stale].time_s < now_s - EVENT_LIFE_S)
        stale++;
    drop_first(events->items, &events->count, stale);
    if (events->count == MAX_ITEMS) {
        events->items[1].value += events->items[0].value;
        drop_first(events->items, &events->count, 1);
    }
    append(&events->items, &events->count, &events->cap, now_s, change);
}

/* The count at the beginning of the policy's period. */
static double period_start(const struct guard_events *events, double now_s, int32_t period_s,
                           int current)
{
    double start = current;
    for (size_t i = 0; i < events->count; i++)
        if (events->items[i].time_s > now_s - period_s)
            start -= events->items[i].value;
    return start;
}

static int to_int(double x)
{
    return x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : (int)x;
}

int guard_scale_up_limit(const struct guard_events *events, const struct api_rules *rules,
                         double now_s, int current)
{
    if (rules->select == API_SELECT_DISABLED)
        return current;
    bool smallest = rules->select == API_SELECT_MIN;
    double limit = smallest ? INFINITY : -INFINITY;
    for (size_t i = 0; i < rules->policy_count; i++) {
        double start = period_start(events, now_s, rules->policies[i].period_s, current);
        int32_t value = rules->policies[i].value;
        /* Rounded up, else a small count could never grow by a per cent. */
        double allowed = rules->policies[i].type == API_POLICY_PODS
                             ? start + value
                             : ceil(start * (1 + (double)value / 100));
        limit = smallest ? fmin(limit, allowed) : fmax(limit, allowed);
    }
    return to_int(fmax(limit, current));
}

int guard_scale_down_limit(const struct guard_events *events, const struct api_rules *rules,
                           double now_s, int current)
{
    if (rules->select == API_SELECT_DISABLED)
        return current;
    bool smallest = rules->select == API_SELECT_MIN;
    double limit = smallest ? -INFINITY : INFINITY;
    for (size_t i = 0; i < rules->policy_count; i++) {
        double start = period_start(events, now_s, rules->policies[i].period_s, current);
        int32_t value = rules->policies[i].value;
        double allowed = rules->policies[i].type == API_POLICY_PODS
                             ? start - value
                             : trunc(start * (1 - (double)value / 100));
        limit = smallest ? fmax(limit, allowed) : fmin(limit, allowed);
    }
    return to_int(fmin(limit, current));
}
