#include "harvest/harvest.h"

#include <math.h>

#define SLOWER 1.1 /* than with the user's amounts: what counts as harm */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double harvest_quantile(double *values, size_t count, double share)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof(*values), compare);
    size_t rank = (size_t)ceil(share * (double)count);
    return values[rank > 0 ? rank - 1 : 0];
}

struct harvest_summary harvest_summarise(const struct harvest_outcome *outcomes, size_t count)
{
    struct harvest_summary s = {0};
    cleanup_free double *rfet = xcalloc(count + 1, sizeof(*rfet));
    cleanup_free double *execution_s = xcalloc(count + 1, sizeof(*execution_s));
    double harvested = 0, slowed = 0, n = (double)count;
    for (size_t i = 0; i < count; i++) {
        const struct harvest_outcome *o = &outcomes[i];
        rfet[i] = harvest_rfet(o);
        execution_s[i] = o->execution_s;
        s.mean_rfet += rfet[i] / n;
        s.mean_wait_s += o->wait_s / n;
        s.waited += (o->wait_s > 0) / n;
        s.accelerated += (o->slowdown < 1) / n;
        harvested += o->harvested;
        slowed += o->harvested && o->slowdown > SLOWER;
    }
    s.harvested = harvested / n;
    s.slowed = harvested > 0 ? slowed / harvested : 0;
    s.p98_rfet = harvest_quantile(rfet, count, 0.98);
    s.p98_execution_s = harvest_quantile(execution_s, count, 0.98);
    return s;
}
