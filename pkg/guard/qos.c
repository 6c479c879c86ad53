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

static void fit(struct guard_pod_container *c, int r, enum guard_qos qos)
{
    int64_t want = c->want[r], limit = c->limit[r];
    int64_t request = effective_request(c->request[r], limit);
    c->new_request[r] = want;
    if (!is_set(limit))
        return;
    /* A Guaranteed pod keeps request = limit even where only requests are controlled: one without
     * the other would change its class, which the API server refuses. */
    if (qos == GUARD_GUARANTEED || (!c->requests_only && request == limit))
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
                fit(c, r, qos);
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
