/* A workload from what was seen of a function. */
#include "bootstrap/internal.h"
#include "recommend/record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct amount { /* that was seen */
    size_t slots;
    double requests;
};

/* Where nobody looked it was as before. Returns what there is. */
static struct amount fill(const struct recommend_record *record, struct trace_function *f)
{
    struct record_slot slots[RECORD_SLOTS];
    struct amount all = {0};
    f->slot_s = RECORD_SLOT_S;
    f->slot_count = recommend_record_slots(record, slots);
    free(f->counts);
    f->counts = xcalloc(f->slot_count + 1, sizeof(*f->counts));
    for (size_t i = 0; i < f->slot_count; i++) {
        f->counts[i] = slots[i].seen ? slots[i].requests : i > 0 ? f->counts[i - 1] : 0;
        all.slots += slots[i].seen;
        all.requests += slots[i].seen ? slots[i].requests : 0;
    }
    return all;
}

static int check(const struct bootstrap_fit *fit, const struct amount *all, struct error *err)
{
    double known_s = (double)all->slots * RECORD_SLOT_S;
    if (known_s >= fit->needs_s && all->requests >= fit->needs_requests)
        return 0;
    return error_set(err, ERROR_UNAVAILABLE,
                     "%.0f requests in %.0f minutes are known of it, and %.0f in %.0f are needed",
                     all->requests, known_s / 60, fit->needs_requests, fit->needs_s / 60);
}

int bootstrap_fit(const struct bootstrap_fit *fit, struct trace *out, struct error *err)
{
    struct record_demand demand =
        recommend_record_demand(fit->record, (size_t)ceil(fit->demand_s / RECORD_SLOT_S));
    char text[160];
    if (isnan(demand.mean_s))
        return error_set(err, ERROR_UNAVAILABLE, "nothing is known of what its requests cost");
    snprintf(text, sizeof(text), "poisson:rate=1,demand=%.6g,p99=%.6g", demand.median_s * 1000,
             demand.p99_s * 1000);
    if (trace_open(text, out, err) < 0)
        return -1;
    struct trace_function *f = &out->functions[0];
    struct amount all = fill(fit->record, f);
    f->poisson = false;
    f->repeat = true;
    string_set(&f->name, fit->name);
    if (check(fit, &all, err) == 0)
        return 0;
    trace_clear(out);
    return -1;
}
