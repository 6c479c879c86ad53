/* The guard's input from what was observed. */
#include <math.h>

#include "guard/guard.h"

static int64_t whole(double amount)
{
    return isnan(amount) ? API_ABSENT : (int64_t)llround(amount);
}

static bool is_late(const struct observation *seen)
{
    return (seen->latency_state == LATENCY_KNOWN || seen->latency_state == LATENCY_OVERFLOW) &&
           seen->latency_ms > seen->goal_ms;
}

static void stay_below_cap(const struct guard_container *containers, size_t count,
                           struct guard_decision *out)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t *have = containers[i].request;
        int64_t *cpu = &out->containers[i].request[API_CPU];
        int64_t memory = out->containers[i].request[API_MEMORY];
        if (have[API_CPU] == API_ABSENT || *cpu <= have[API_CPU])
            continue;
        *cpu = have[API_CPU];
        out->containers[i].resize = memory != API_ABSENT && memory != have[API_MEMORY];
    }
}

void guard_check_seen(struct guard *guard, const struct guard_limits *limits,
                      const struct api_spec *spec, const struct observation *seen, bool cpu_capped,
                      const struct recommendation *proposed, struct guard_decision *out)
{
    struct guard_container containers[RECOMMEND_MAX_CONTAINERS];
    for (size_t i = 0; i < seen->container_count; i++) {
        containers[i] = (struct guard_container){.name = seen->containers[i].name};
        for (int k = 0; k < API_RESOURCE_COUNT; k++) {
            containers[i].request[k] = seen->containers[i].controlled[k]
                                           ? whole(seen->containers[i].request[k])
                                           : API_ABSENT;
            containers[i].limit[k] = API_ABSENT;
        }
    }
    guard_check(guard, limits,
                &(struct guard_input){.now_s = seen->now_s,
                                      .spec = spec,
                                      .replicas_wanted = seen->replicas_wanted,
                                      .goal_missed = is_late(seen),
                                      .containers = containers,
                                      .container_count = seen->container_count,
                                      .proposed = proposed},
                out);
    if (cpu_capped)
        stay_below_cap(containers, seen->container_count, out);
}
