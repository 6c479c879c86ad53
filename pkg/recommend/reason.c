/* A decision in one plain sentence with its numbers. */
#include "recommend/internal.h"

#include <stdio.h>
#include <string.h>

#define MI             1048576.0
#define MAX_CONTAINERS 2 /* named in one sentence */

#define say(out, ...) recommend_say((out)->reason, sizeof((out)->reason), __VA_ARGS__)

void recommend_say(char *text, size_t size, const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text + used, size - used, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= size - used)
        text[used] = '\0';
}

const char *recommend_print_amount(enum recommend_resource resource, double amount, char text[32])
{
    bool bytes = resource == RECOMMEND_MEMORY, whole = fmod(amount, 1000) == 0;
    const char *unit = bytes ? amount < MI ? "" : "Mi" : whole ? "" : "m";
    double number = amount / (bytes ? amount < MI ? 1 : MI : whole ? 1000 : 1);
    if (!isfinite(amount))
        snprintf(text, 32, "none");
    else if (fabs(number) < INT32_MAX) /* which is faster to print */
        snprintf(text, 32, "%ld%s", lrint(number), unit);
    else
        snprintf(text, 32, "%.0f%s", number, unit);
    return text;
}

static const char *metric_word(enum recommend_resource resource)
{
    return resource == RECOMMEND_CPU ? "CPU" : "memory";
}

static const char *against_target(const struct observation *seen, double ratio)
{
    if (ratio > 1 + seen->tolerance_up)
        return "over";
    return ratio < 1 - seen->tolerance_down ? "under" : "near";
}

/* "91% CPU over target 70%" or "CPU 350m per pod over target 300m". */
static void say_metric(const struct reason *why, const char *before, struct recommendation *out)
{
    const struct recommend_metric *m = why->lead;
    double ratio = recommend_usage_ratio(why->seen, m);
    const char *relation = against_target(why->seen, ratio);
    char usage[32], target[32];
    if (isfinite(m->utilization))
        say(out, "%s%.0f%% %s %s target %.0f%%", before, ratio * m->utilization * 100,
            metric_word(m->resource), relation, m->utilization * 100);
    else
        say(out, "%s%s %s per pod %s target %s", before, metric_word(m->resource),
            recommend_print_amount(m->resource, round(ratio * m->average_value), usage), relation,
            recommend_print_amount(m->resource, m->average_value, target));
}

/* CPU in per cent of the request; NaN: unknown. */
static double cpu_percent(const struct reason *why)
{
    struct recommend_metric whole = {
        .resource = RECOMMEND_CPU, .container = -1, .utilization = 1, .average_value = NAN};
    if (why->lead && why->lead->resource == RECOMMEND_CPU)
        whole.container = why->lead->container;
    return recommend_usage_ratio(why->seen, &whole) * 100;
}

static void say_latency(const struct reason *why, struct recommendation *out)
{
    const struct observation *seen = why->seen;
    if (seen->latency_state == LATENCY_NO_TRAFFIC) {
        say(out, "no requests");
        return;
    }
    if (!why->latency_known) {
        say(out, "p%g unknown", seen->percentile);
        return;
    }
    char latency[24], goal[24];
    duration_print(seen->latency_ms * 1000, latency);
    duration_print(seen->goal_ms * 1000, goal);
    bool beyond = seen->latency_state == LATENCY_OVERFLOW;
    bool over = seen->latency_ms > seen->goal_ms || (beyond && seen->latency_ms >= seen->goal_ms);
    say(out, "p%g %s%s %s goal %s", seen->percentile, beyond ? "beyond " : "", latency,
        over ? "over" : "within", goal);
}

static void say_situation(const struct reason *why, struct recommendation *out)
{
    if (why->seen->latency_state == LATENCY_NO_GOAL) {
        if (why->lead)
            say_metric(why, "", out);
        return;
    }
    say_latency(why, out);
    double percent = cpu_percent(why);
    if (isfinite(percent))
        say(out, why->seen->latency_state == LATENCY_NO_TRAFFIC ? ", %.0f%% CPU" : " at %.0f%% CPU",
            percent);
    const struct recommend_metric *lead = why->lead;
    if (lead && (lead->resource != RECOMMEND_CPU || !isfinite(lead->utilization)))
        say_metric(why, ", ", out);
}

static bool changes(double from, double to)
{
    return isfinite(to) && !(from == to);
}

/* Returns how many containers change. */
static int say_sizes(const struct reason *why, enum recommend_resource resource,
                     const char **separator, struct recommendation *out)
{
    const struct recommend_container *containers = why->seen->containers;
    int changed = 0, controlled = 0;
    for (size_t i = 0; i < why->seen->container_count; i++)
        controlled += containers[i].controlled[resource];
    for (size_t i = 0; i < why->seen->container_count; i++) {
        double from = containers[i].request[resource], to = out->containers[i].target[resource];
        if (!changes(from, to) || ++changed > MAX_CONTAINERS)
            continue;
        char was[32], is[32];
        say(out, "%s%s%s%s %s → %s", *separator, resource == RECOMMEND_CPU ? "cpu" : "memory",
            controlled > 1 ? " of " : "", controlled > 1 ? containers[i].name : "",
            recommend_print_amount(resource, from, was), recommend_print_amount(resource, to, is));
        *separator = ", ";
    }
    if (changed > MAX_CONTAINERS)
        say(out, " and %d more", changed - MAX_CONTAINERS);
    return changed;
}

void recommend_reason_write(const struct reason *why, struct recommendation *out)
{
    out->reason[0] = '\0';
    if (why->situation)
        say(out, "%s", why->situation);
    else
        say_situation(why, out);
    const char *separator = out->reason[0] ? ": " : "";
    int changed = 0;
    if (out->replicas != why->seen->replicas_wanted) {
        say(out, "%sreplicas %d → %d", separator, why->seen->replicas_wanted, out->replicas);
        separator = ", ";
        changed++;
    }
    changed += say_sizes(why, RECOMMEND_CPU, &separator, out);
    changed += say_sizes(why, RECOMMEND_MEMORY, &separator, out);
    if (changed == 0)
        say(out, "%sno change%s%s", separator, why->note ? ", " : "", why->note ? why->note : "");
}
