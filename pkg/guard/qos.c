/* One pod's new requests and limits: whatever is wanted, its QoS class stays. */
#include "guard/guard.h"

static bool is_set(int64_t amount)
{
    return amount != API_ABSENT && amount > 0;
}

/* The API server takes a missing request from the limit. */
static int64_t effective_request(int64_t request, int64_t limit)
{
    return is_set(request) ? request : limit;
}

enum guard_qos guard_qos_of(const struct guard_pod_container *containers, size_t n, bool use_new)
{
    bool any = false, guaranteed = n > 0;
    for (size_t i = 0; i < n; i++) {
        for (int r = 0; r < API_RESOURCE_COUNT; r++) {
            const struct guard_pod_container *c = &containers[i];
            int64_t limit = use_new ? c->new_limit[r] : c->limit[r];
            int64_t request = effective_request(use_new ? c->new_request[r] : c->request[r], limit);
            any = any || is_set(request) || is_set(limit);
            guaranteed = guaranteed && is_set(limit) && request == limit;
        }
    }
    if (!any)
        return GUARD_BEST_EFFORT;
    return guaranteed ? GUARD_GUARANTEED : GUARD_BURSTABLE;
}

/* amount × numerator / denominator, rounded down as VPA does. */
static int64_t scale(int64_t amount, int64_t numerator, int64_t denominator)
{
    __int128 scaled = (__int128)amount * numerator / denominator;
    return scaled > INT64_MAX ? INT64_MAX : (int64_t)scaled;
}

static void fit(struct guard_pod_container *c, int r)
{
    int64_t want = c->want[r], limit = c->limit[r];
    int64_t request = effective_request(c->request[r], limit);
    c->new_request[r] = want;
    if (!is_set(limit))
        return;
    if (!c->requests_only && request == limit)
        c->new_limit[r] = want;
    else if (!c->requests_only)
        c->new_limit[r] = scale(limit, want, request);
    else if (want > limit)
        c->new_request[r] = limit;
    if (c->new_limit[r] < c->new_request[r])
        c->new_limit[r] = c->new_request[r]; /* rounding */
}

/* Keeps a Burstable pod Burstable: the smallest difference between a request that moves and its
 * limit is enough. */
static bool nudge(struct guard_pod_container *containers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (int r = 0; r < API_RESOURCE_COUNT; r++) {
            struct guard_pod_container *c = &containers[i];
            if (c->want[r] == API_ABSENT || c->new_request[r] <= 1)
                continue;
            c->new_request[r] = c->new_limit[r] - 1;
            return true;
        }
    }
    return false;
}

/* One without the other would change the class of a Guaranteed pod. */
static bool needs_limit(const struct guard_pod_container *c, int r, enum guard_qos qos)
{
    return qos == GUARD_GUARANTEED && c->requests_only && c->want[r] != c->limit[r];
}

static int check(const struct guard_pod_container *containers, size_t n, enum guard_qos qos,
                 struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        for (int r = 0; r < API_RESOURCE_COUNT; r++) {
            int64_t want = containers[i].want[r];
            if (want == API_ABSENT)
                continue;
            if (want < 1)
                return error_set(err, ERROR_INVALID, "container %s: a request must be above 0",
                                 containers[i].name);
            if (qos == GUARD_BEST_EFFORT)
                return error_set(err, ERROR_INVALID,
                                 "the pod is BestEffort and cannot gain resources while it runs: "
                                 "give container %s a request in the pod template",
                                 containers[i].name);
            if (needs_limit(&containers[i], r, qos))
                return error_set(err, ERROR_INVALID,
                                 "the pod is Guaranteed, and controlledValues of container %s are "
                                 "RequestsOnly: say RequestsAndLimits",
                                 containers[i].name);
        }
    }
    return 0;
}

int guard_fit_pod(struct guard_pod_container *containers, size_t n, struct error *err)
{
    enum guard_qos qos = guard_qos_of(containers, n, false);
    if (check(containers, n, qos, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct guard_pod_container *c = &containers[i];
        for (int r = 0; r < API_RESOURCE_COUNT; r++) {
            c->new_request[r] = c->request[r];
            c->new_limit[r] = c->limit[r];
            if (c->want[r] != API_ABSENT)
                fit(c, r);
        }
    }
    if (qos == GUARD_BURSTABLE && guard_qos_of(containers, n, true) == GUARD_GUARANTEED)
        nudge(containers, n);
    if (guard_qos_of(containers, n, true) != qos)
        return error_set(err, ERROR_INVALID, "the resize would change the QoS class of the pod");
    int changed = 0;
    for (size_t i = 0; i < n; i++)
        for (int r = 0; r < API_RESOURCE_COUNT; r++)
            changed |= containers[i].new_request[r] != containers[i].request[r] ||
                       containers[i].new_limit[r] != containers[i].limit[r];
    return changed;
}

int64_t guard_boost(const struct api_spec *spec, const char *container, int64_t cpu_milli)
{
    int64_t most = api_container_policy(spec, container)->max[API_CPU];
    int64_t boosted = scale(cpu_milli, spec->boost.factor > 1 ? spec->boost.factor : 1, 1);
    if (boosted < INT64_MAX - spec->boost.more_milli)
        boosted += spec->boost.more_milli;
    if (most != API_ABSENT && boosted > most)
        boosted = most;
    return boosted > cpu_milli ? boosted : cpu_milli;
}
