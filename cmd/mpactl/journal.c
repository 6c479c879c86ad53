#include "journal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

bool journal_is_asked_for(const char *wanted, const char *key)
{
    const char *slash = strchr(key, '/');
    return wanted == NULL || strcmp(wanted, key) == 0 || (slash && strcmp(wanted, slash + 1) == 0);
}

double journal_cpu_milli(const struct journal_step *step, const struct guard_decision *decision)
{
    double sum = 0;
    for (size_t i = 0; i < step->seen->container_count; i++) {
        int64_t decided = decision ? decision->containers[i].request[API_CPU] : API_ABSENT;
        double has = step->seen->containers[i].request[RECOMMEND_CPU];
        if (decided != API_ABSENT)
            sum += (double)decided;
        else if (!isnan(has))
            sum += has;
    }
    return sum > 0 ? sum : NAN;
}

const char *journal_size_text(const struct journal_step *step,
                              const struct guard_decision *decision, char text[JOURNAL_TEXT])
{
    char cpu[32];
    int replicas = decision ? decision->replicas : step->seen->replicas_wanted;
    recommend_print_amount(RECOMMEND_CPU, journal_cpu_milli(step, decision), cpu);
    snprintf(text, JOURNAL_TEXT, "%d × %s", replicas, cpu);
    return text;
}

char *journal_heading(const struct api_mpa *mpa, const char *recommender)
{
    const struct api_spec *spec = &mpa->spec;
    char goal[64] = "no latency goal", time[TABLE_TEXT];
    if (spec->latency_target_us > 0)
        snprintf(goal, sizeof(goal), "p%g below %s", spec->latency_percentile,
                 table_duration((double)spec->latency_target_us / 1000, time));
    return xasprintf("%s/%s: %s %s, %s, %d to %d replicas, mode %s, decided by %s", mpa->namespace_,
                     mpa->name, spec->target_kind, spec->target_name, goal, spec->min_replicas,
                     spec->max_replicas, api_mode_name(spec->mode), recommender);
}
