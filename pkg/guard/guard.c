/* Bounds first and last: whatever is proposed, what comes out lies within the spec, the rates of
 * `behavior` and the limits of the installation. */
#include "guard/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct guard_limits guard_default_limits = {
    .resize_cooldown_s = 10,
    .resize_up_factor = 4,
    .resize_down_factor = 0.5,
    .resize_threshold = 0.1,
};

/* Where no minimum is stated; and beyond the second nothing is an amount, but a mistake. */
static const int64_t least_amount[API_RESOURCE_COUNT] = {10, 16 << 20};
static const double absurd_amount[API_RESOURCE_COUNT] = {1e9, 1e15};
static const char *const resource_names[API_RESOURCE_COUNT] = {"cpu", "memory"};

struct guard {
    struct guard_series replicas;
    struct guard_events events;
    double resized_s;
    struct {
        char *name;
        double seen_s;
        struct guard_series series[API_RESOURCE_COUNT];
    } * containers; /* at most API_MAX_CONTAINERS */
    size_t container_count;
};

struct guard *guard_new(void)
{
    struct guard *guard = xcalloc(1, sizeof(*guard));
    guard->resized_s = -INFINITY;
    return guard;
}

static void forget(struct guard *guard, size_t at)
{
    free(guard->containers[at].name);
    guard->containers[at].name = NULL;
    for (int r = 0; r < API_RESOURCE_COUNT; r++)
        guard_series_clear(&guard->containers[at].series[r]);
}

void guard_free(struct guard *guard)
{
    if (!guard)
        return;
    for (size_t i = 0; i < guard->container_count; i++)
        forget(guard, i);
    guard_series_clear(&guard->replicas);
    free(guard->containers);
    free(guard->events.items);
    free(guard);
}

void guard_scaled(struct guard *guard, double now_s, int from, int to)
{
    guard_events_add(&guard->events, now_s, to - from);
}

void guard_resized(struct guard *guard, double now_s)
{
    guard->resized_s = now_s;
}

/* The past of a container, by name; a new name takes the place of the one not seen for longest. */
static struct guard_series *series_of(struct guard *guard, const char *name, double now_s)
{
    size_t at = 0;
    while (at < guard->container_count && strcmp(guard->containers[at].name, name) != 0)
        at++;
    if (at == guard->container_count) {
        if (at < API_MAX_CONTAINERS) {
            guard->containers = xrealloc(guard->containers, at + 1, sizeof(*guard->containers));
            memset(&guard->containers[at], 0, sizeof(*guard->containers));
            guard->container_count++;
        } else {
            at = 0;
            for (size_t i = 1; i < guard->container_count; i++)
                if (guard->containers[i].seen_s < guard->containers[at].seen_s)
                    at = i;
            forget(guard, at);
        }
        guard->containers[at].name = xstrdup(name);
    }
    guard->containers[at].seen_s = now_s;
    return guard->containers[at].series;
}

/* The first thing that held the proposal back is the one that is told. */
PRINTF_LIKE(3, 4)
static void hold(struct guard_decision *out, const char *reason, const char *fmt, ...)
{
    if (out->limited)
        return;
    out->limited = true;
    snprintf(out->limit_reason, sizeof(out->limit_reason), "%s", reason);
    va_list args;
    va_start(args, fmt);
    vsnprintf(out->limit_message, sizeof(out->limit_message), fmt, args);
    va_end(args);
}

/* --- replicas --------------------------------------------------------------------------------- */
static int rate_limited(const struct guard *guard, const struct guard_input *in, int desired,
                        struct guard_decision *out)
{
    const struct api_spec *spec = in->spec;
    int current = in->replicas_wanted;
    if (desired > current) {
        int limit = guard_scale_up_limit(&guard->events, &spec->scale_up, in->now_s, current);
        if (desired > spec->max_replicas && spec->max_replicas <= limit) {
            hold(out, "TooManyReplicas", "%d replicas proposed, %d are the most allowed", desired,
                 spec->max_replicas);
            return spec->max_replicas;
        }
        if (desired > limit)
            hold(out, "ScaleUpLimit", "%d replicas proposed, the scaleUp policies allow %d now",
                 desired, limit);
        return desired > limit ? limit : desired;
    }
    if (desired < current) {
        int limit = guard_scale_down_limit(&guard->events, &spec->scale_down, in->now_s, current);
        if (desired < spec->min_replicas && spec->min_replicas >= limit) {
            hold(out, "TooFewReplicas", "%d replicas proposed, %d are the least allowed", desired,
                 spec->min_replicas);
            return spec->min_replicas;
        }
        if (desired < limit)
            hold(out, "ScaleDownLimit", "%d replicas proposed, the scaleDown policies allow %d now",
                 desired, limit);
        return desired < limit ? limit : desired;
    }
    return desired;
}

static int behaved(struct guard *guard, const struct guard_input *in, struct guard_decision *out)
{
    int current = in->replicas_wanted, proposed = in->proposed->replicas;
    if (proposed < 0) {
        hold(out, "InvalidProposal", "%d replicas cannot be", proposed);
        return current;
    }
    int stable = (int)guard_stabilize(&guard->replicas, in->spec, in->now_s, current, proposed);
    int replicas = rate_limited(guard, in, stable, out);
    if (stable != proposed && !out->limited)
        hold(out, proposed >= current ? "ScaleUpStabilized" : "ScaleDownStabilized",
             "%d replicas proposed, %d kept: the %s proposal of the last %d s counts", proposed,
             replicas, proposed >= current ? "lowest" : "highest",
             proposed >= current ? in->spec->scale_up.stabilization_s
                                 : in->spec->scale_down.stabilization_s);
    return replicas;
}

static int check_replicas(struct guard *guard, const struct guard_input *in,
                          struct guard_decision *out)
{
    const struct api_spec *spec = in->spec;
    int current = in->replicas_wanted, proposed = in->proposed->replicas;
    if (current <= 0 && spec->min_replicas > 0) { /* HPA's convention: 0 switches it off */
        if (proposed != current)
            hold(out, "ScalingDisabled", "the target is scaled to 0 by hand");
        return current;
    }
    if (current > spec->max_replicas || current < spec->min_replicas) {
        bool many = current > spec->max_replicas;
        int bound = many ? spec->max_replicas : spec->min_replicas;
        if (proposed != bound)
            hold(out, many ? "TooManyReplicas" : "TooFewReplicas",
                 "%d replicas are wanted at present, %d are the %s allowed", current, bound,
                 many ? "most" : "least");
        return bound;
    }
    return behaved(guard, in, out);
}

/* --- amounts ---------------------------------------------------------------------------------- */
struct amount { /* one resource of one container */
    const char *container;
    enum recommend_resource resource;
    double current, low, high; /* current NaN: none */
};

/* "cpu of app: 5 proposed, 2 is the most allowed" */
static void hold_amount(struct guard_decision *out, const struct amount *a, const char *reason,
                        double proposed, double kept, const char *why)
{
    char text[2][32];
    if (out->limited)
        return;
    hold(out, reason, "%s of %s: %s proposed, %s %s", resource_names[a->resource], a->container,
         recommend_print_amount(a->resource, proposed, text[0]),
         recommend_print_amount(a->resource, kept, text[1]), why);
}

static double clamp(double x, double low, double high)
{
    return x > high ? high : x < low ? low : x;
}

static bool is_outside(const struct amount *a)
{
    return a->current < a->low || a->current > a->high;
}

static void find_bounds(const struct api_container *policy, int r, struct amount *a)
{
    double high = policy->max[r] == API_ABSENT ? INFINITY : (double)policy->max[r];
    double low = policy->min[r] == API_ABSENT ? (double)least_amount[r] : (double)policy->min[r];
    a->high = fmin(high, absurd_amount[r]);
    a->low = fmin(low, a->high);
}

static double bounded(const struct amount *a, double proposed, struct guard_decision *out)
{
    double value = clamp(ceil(proposed), a->low, a->high);
    if (value < proposed)
        hold_amount(out, a, "AboveMaxAllowed", proposed, value, "is the most allowed");
    else if (value > ceil(proposed))
        hold_amount(out, a, "BelowMinAllowed", proposed, value, "is the least allowed");
    return value;
}

static double stepped(const struct guard_limits *limits, const struct amount *a, double value,
                      struct guard_decision *out)
{
    double most = floor(a->current * fmax(limits->resize_up_factor, 1));
    double least = ceil(a->current * clamp(limits->resize_down_factor, 0, 1));
    if (value > most)
        hold_amount(out, a, "ResizeUpLimit", value, most, "is the most in one step");
    else if (value < least)
        hold_amount(out, a, "ResizeDownLimit", value, least, "is the least in one step");
    return clamp(value, least, most);
}

static bool cooling_down(const struct guard *guard, const struct guard_limits *limits,
                         const struct guard_input *in, bool grows)
{
    return in->now_s - guard->resized_s < limits->resize_cooldown_s && !(grows && in->goal_missed);
}

/* A change too small to be worth a resize, unless it reaches a bound. */
static bool is_small(const struct guard_limits *limits, const struct amount *a, double value)
{
    return fabs(value - a->current) < limits->resize_threshold * a->current && value != a->low &&
           value != a->high;
}

static double guarded(struct guard *guard, const struct guard_limits *limits,
                      const struct guard_input *in, const struct amount *a,
                      struct guard_series *series, double proposed, struct guard_decision *out)
{
    double wanted = bounded(a, proposed, out);
    if (isnan(a->current))
        return wanted;
    double stable = guard_stabilize(series, in->spec, in->now_s, a->current, wanted);
    if (is_outside(a)) /* must be corrected whatever else holds */
        return clamp(stable, a->low, a->high);
    if (stable != wanted)
        hold_amount(out, a, wanted >= a->current ? "ScaleUpStabilized" : "ScaleDownStabilized",
                    wanted, stable,
                    wanted >= a->current ? "kept: recent proposals were lower"
                                         : "kept: recent proposals were higher");
    double value = clamp(stepped(limits, a, stable, out), a->low, a->high);
    if (value == a->current || is_small(limits, a, value))
        return a->current;
    if (cooling_down(guard, limits, in, value > a->current)) {
        hold_amount(out, a, "ResizeCooldown", value, a->current,
                    "kept so soon after the last resize");
        return a->current;
    }
    return value;
}

static int64_t check_amount(struct guard *guard, const struct guard_limits *limits,
                            const struct guard_input *in, size_t i, int r,
                            struct guard_decision *out)
{
    const struct guard_container *container = &in->containers[i];
    const struct api_container *policy = api_container_policy(in->spec, container->name);
    int64_t now = container->request[r];
    if (policy->off || !in->spec->controls[r])
        return API_ABSENT;
    struct amount a = {.container = container->name,
                       .resource = (enum recommend_resource)r,
                       .current = now == API_ABSENT ? NAN : (double)now};
    find_bounds(policy, r, &a);
    double proposed =
        i < in->proposed->container_count ? in->proposed->containers[i].target[r] : NAN;
    if (!(proposed >= 0 && proposed < absurd_amount[r])) {
        if (!isnan(proposed) || now != API_ABSENT)
            hold(out, "InvalidProposal", "%s of %s: %g cannot be", resource_names[r], a.container,
                 proposed);
        return is_outside(&a) ? (int64_t)clamp(a.current, a.low, a.high) : API_ABSENT;
    }
    struct guard_series *series = series_of(guard, container->name, in->now_s);
    return (int64_t)guarded(guard, limits, in, &a, &series[r], proposed, out);
}

void guard_check(struct guard *guard, const struct guard_limits *limits,
                 const struct guard_input *in, struct guard_decision *out)
{
    *out = (struct guard_decision){.limit_reason = "DesiredWithinRange",
                                   .limit_message = "the proposal is within all limits"};
    for (size_t i = 0; i < API_MAX_CONTAINERS; i++)
        for (int r = 0; r < API_RESOURCE_COUNT; r++)
            out->containers[i].request[r] = API_ABSENT;
    out->replicas = check_replicas(guard, in, out);
    for (size_t i = 0; i < in->container_count && i < API_MAX_CONTAINERS; i++) {
        for (int r = 0; r < API_RESOURCE_COUNT; r++) {
            int64_t amount = check_amount(guard, limits, in, i, r, out);
            out->containers[i].request[r] = amount;
            if (amount != API_ABSENT && amount != in->containers[i].request[r])
                out->containers[i].resize = true;
        }
    }
}
