/* Functions that are not what they were: from a moment on a request costs more, or they come
 * otherwise. */
#include "trace/internal.h"

#include <math.h>

/* Slots fine enough for a tenth of a group. */
static size_t parts_of(const struct trace_function *f, double group_s)
{
    return (size_t)fmax(ceil(f->slot_s / (group_s / 10) - 1e-9), 1);
}

static void refine(struct trace_function *f, size_t parts)
{
    double *counts = xcalloc(f->slot_count * parts, sizeof(*counts));
    for (size_t i = 0; i < f->slot_count * parts; i++)
        counts[i] = f->counts[i / parts] / (double)parts;
    free(f->counts);
    f->counts = counts;
    f->slot_count *= parts;
    f->slot_s /= (double)parts;
}

static void gather_group(double *counts, size_t slots, size_t tenth)
{
    double sum = 0;
    for (size_t i = 0; i < slots; i++) {
        sum += counts[i];
        counts[i] = 0;
    }
    size_t room = tenth < slots ? tenth : slots;
    for (size_t i = 0; i < room; i++)
        counts[i] = sum / (double)room;
}

static void gather(struct trace_function *f, double from_s, double group_s)
{
    size_t parts = parts_of(f, group_s);
    if (parts > 1)
        refine(f, parts);
    size_t group = (size_t)fmax(round(group_s / f->slot_s), 1);
    for (size_t i = (size_t)ceil(from_s / f->slot_s); i < f->slot_count; i += group)
        gather_group(f->counts + i, group < f->slot_count - i ? group : f->slot_count - i,
                     group >= 10 ? group / 10 : 1);
}

int change_functions(struct trace *trace, const struct change *c, struct error *err)
{
    double counts = 0;
    for (size_t i = 0; i < trace->function_count && !isnan(c->gather_s); i++)
        counts += (double)trace->functions[i].slot_count *
                  (double)parts_of(&trace->functions[i], c->gather_s);
    if (counts > (double)MAX_ALL_COUNTS)
        return error_set(err, ERROR_TOO_LARGE,
                         "gather=%g: would make %.3g counts, and %zu are the most", c->gather_s,
                         counts, MAX_ALL_COUNTS);
    for (size_t i = 0; i < trace->function_count; i++) {
        struct trace_function *f = &trace->functions[i];
        double at_s = isnan(c->at_s) ? trace_span_s(f) / 2 : c->at_s;
        if (!isnan(c->slower)) {
            f->slower = c->slower;
            f->slower_from_s = at_s;
        }
        if (!isnan(c->gather_s))
            gather(f, at_s, c->gather_s);
    }
    return 0;
}
