/* How fast HPA v2 lets a number of replicas change where no behavior is stated: up by four pods or
 * by as many as there are in 15 s, whichever is more; down to the most that was asked for within
 * the downscale window. */
#include "recommend/internal.h"

#define PERIOD_S    15.0
#define PODS_UP     4
#define MOST_FACTOR 2.0

struct pace {
    double window_s;
    struct window *asked;   /* before any limit, as HPA remembers it */
    struct window *changed; /* by how many replicas */
};

struct pace *recommend_pace_new(double window_s)
{
    struct pace *p = xcalloc(1, sizeof(*p));
    p->window_s = window_s;
    p->asked = recommend_window_new(fmax(window_s, PERIOD_S));
    p->changed = recommend_window_new(PERIOD_S);
    return p;
}

void recommend_pace_free(struct pace *p)
{
    recommend_window_free(p->asked);
    recommend_window_free(p->changed);
    free(p);
}

static int limit_up(const struct pace *p, double now_s, int current)
{
    double before = current - recommend_window_sum(p->changed, now_s - PERIOD_S);
    return (int)fmin(fmax(before + PODS_UP, ceil(before * MOST_FACTOR)), INT32_MAX);
}

int recommend_pace(struct pace *p, const struct observation *seen, int asked, const char **note)
{
    int current = seen->replicas_wanted, replicas = asked;
    double now_s = seen->now_s;
    if (isnan(recommend_window_last_s(p->asked))) /* HPA begins with what is there */
        recommend_window_add(p->asked, now_s - SLACK, 0, current);
    recommend_window_add(p->asked, now_s, 0, asked);
    if (asked < current) {
        double most = recommend_window_max(p->asked, now_s - p->window_s);
        replicas = (int)fmin(fmax(most, asked), current);
        if (replicas > asked)
            *note = "more was needed a while ago";
    } else if (asked > current) {
        int most = limit_up(p, now_s, current);
        if (replicas > most)
            replicas = most > current ? most : current;
    }
    recommend_window_add(p->changed, now_s, 0, replicas - current);
    return replicas;
}
