/* Any JSON at all as a MultidimPodAutoscaler: reading it never crashes, validation and parsing
 * agree, and what parses is within its bounds. */
#include "api/api.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_spec(const struct api_spec *spec)
{
    require(spec->target_name && spec->target_kind && spec->target_api_version);
    require(spec->recommender && *spec->recommender);
    require(spec->min_replicas >= 1 && spec->min_replicas <= spec->max_replicas);
    require(spec->metric_count >= 1 && spec->metric_count <= API_MAX_METRICS);
    require(spec->latency_percentile > 0 && spec->latency_percentile < 100);
    require(spec->scale_up.policy_count >= 1 && spec->scale_down.policy_count >= 1);
    for (size_t i = 0; i < spec->metric_count; i++)
        require((spec->metrics[i].utilization > 0) != (spec->metrics[i].average_value > 0));
    for (size_t i = 0; i < spec->container_count; i++) {
        const struct api_container *c = &spec->containers[i];
        require(api_container_policy(spec, c->name) == c);
        for (int r = 0; r < API_RESOURCE_COUNT; r++)
            require(c->max[r] == API_ABSENT || c->min[r] <= c->max[r]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api_findings findings;
    struct api_mpa mpa;
    struct error err = {0};
    json_error_t unused;
    cleanup_json json_t *json = json_loadb((const char *)data, size, JSON_DECODE_ANY, &unused);

    if (!json)
        return 0;
    size_t errors = api_validate(json, &findings);
    int parsed = api_parse(json, &mpa, &err);
    require((errors == 0) == (parsed == 0));
    if (parsed == 0) {
        struct api_status status = {.latency_us = NAN, .conditions[API_COND_READY].known = true};
        check_spec(&mpa.spec);
        cleanup_json json_t *written = api_status_json(&status, mpa.status, 0);
        require(!api_status_differs(written, written));
        api_status_differs(mpa.status, written);
    }
    api_findings_clear(&findings);
    api_clear(&mpa);
    return 0;
}
