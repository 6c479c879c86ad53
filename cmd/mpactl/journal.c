#include "journal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
