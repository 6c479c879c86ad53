/* In mode Off nothing is done; status tells what would have been. */
#include "entry.h"

#include <math.h>
#include <stdlib.h>

#define HOUR_S 3600.0

static double figure(const json_t *what_if, const char *key)
{
    const char *text = json_str(json_object_get(what_if, key));
    char *end;
    double value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(value) && value >= 0 ? value : 0;
}

/* What status says of this spec from before a restart, or another leader's time. */
static void resume(struct entry *e, struct recommend_shadow_sums *sums)
{
    const json_t *status = entry_status(e), *what_if = json_object_get(status, "whatIf");
    const json_t *generation = json_object_get(status, "observedGeneration");
    int64_t since_ms;
    e->shadow_since_ms = clock_wall_ms();
    if (json_integer_value(generation) != e->mpa.generation ||
        time_parse(json_str(json_object_get(what_if, "since")), &since_ms) < 0)
        return;
    e->shadow_since_ms = since_ms;
    *sums = (struct recommend_shadow_sums){
        .core_s = figure(what_if, "coreHours") * HOUR_S,
        .core_s_recommended = figure(what_if, "coreHoursAuto") * HOUR_S,
        .requests = figure(what_if, "requests"),
        .late = figure(what_if, "lateRequests"),
        .late_recommended = figure(what_if, "lateRequestsAuto"),
    };
    sums->judged_s = sums->requests > 0;
}

void shadow_add(struct entry *e, const struct observation *seen,
                const struct recommendation *proposed)
{
    struct recommend_shadow_sums sums = {0};
    bool off = e->mpa.spec.mode == API_MODE_OFF;
    if (e->shadow && (!off || e->shadow_generation != e->mpa.generation)) {
        recommend_shadow_free(e->shadow);
        e->shadow = NULL;
    }
    if (!off)
        return;
    if (!e->shadow) {
        resume(e, &sums);
        e->shadow = recommend_shadow_new(&sums);
        e->shadow_generation = e->mpa.generation;
    }
    recommend_shadow_add(e->shadow, seen, proposed);
}

void shadow_tell(const struct entry *e, struct api_status *status)
{
    if (!e->shadow || e->mpa.spec.mode != API_MODE_OFF)
        return;
    struct recommend_shadow_sums sums = recommend_shadow_sums(e->shadow);
    bool judged = sums.judged_s > 0;
    status->what_if.since_ms = e->shadow_since_ms;
    status->what_if.core_hours = sums.core_s / HOUR_S;
    status->what_if.core_hours_auto = sums.core_s_recommended / HOUR_S;
    status->what_if.requests = judged ? sums.requests : NAN;
    status->what_if.late = judged ? sums.late : NAN;
    status->what_if.late_auto = judged ? sums.late_recommended : NAN;
}
