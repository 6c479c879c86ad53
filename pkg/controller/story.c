/* What the dashboard tells of each MPA: a point each interval, and a mark when a decision changes
 * something or an event happens. */
#include "entry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void story_begin(struct entry *e)
{
    if (!e->controller->timeline)
        return;
    e->story = xcalloc(1, sizeof(*e->story));
    *e->story = (struct story){
        .series = timeline_add_series(e->controller->timeline),
        .requests_per_s = NAN,
        .utilization = NAN,
        .cpu_milli = NAN,
        .wanted_cpu_milli = NAN,
        .marked_from = -1,
        .marked_to = -1,
        .marked_from_cpu = NAN,
        .marked_to_cpu = NAN,
        .changed = true,
    };
}

void story_end(struct entry *e)
{
    if (!e->story)
        return;
    if (!e->controller->stopping)
        dashboard_gone(e->controller->dashboard, e->key);
    timeline_remove_series(e->story->series);
    free(e->story);
    e->story = NULL;
}

/* --- marks ----------------------------------------------------------------------------------- */
static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* What is decided again because it has not come about, or never will in mode Off, is no news. */
static bool is_news(struct story *s, const struct story_round *round)
{
    float from = (float)round->cpu_milli, to = (float)round->to_cpu_milli;
    if (s->marked_from == round->from_replicas && s->marked_to == round->to_replicas &&
        same(s->marked_from_cpu, from) && same(s->marked_to_cpu, to))
        return false;
    s->marked_from = round->from_replicas;
    s->marked_to = round->to_replicas;
    s->marked_from_cpu = from;
    s->marked_to_cpu = to;
    return true;
}

static void mark_decision(struct entry *e, const struct story_round *round)
{
    int more = round->to_replicas - round->from_replicas;
    double cpu = round->to_cpu_milli - round->cpu_milli;
    char title[TIMELINE_NAME + 1];
    const char *scale = more > 0 ? "scale up" : more < 0 ? "scale down" : "";
    const char *size = cpu > 0 ? "more CPU" : cpu < 0 ? "less CPU" : "";
    if (!is_news(e->story, round))
        return;
    snprintf(title, sizeof(title), "%s%s%s", scale, *scale && *size ? ", " : "",
             *scale || *size ? size : "resize");
    timeline_mark(e->story->series, &(struct timeline_mark){
                                        .time_ms = clock_wall_ms(),
                                        .kind = TIMELINE_DECISION,
                                        .applied = e->may_act,
                                        .title = title,
                                        .text = e->reason,
                                        .recommender = e->recommender_name,
                                        .from_replicas = round->from_replicas,
                                        .to_replicas = round->to_replicas,
                                        .from_cpu = (float)round->cpu_milli,
                                        .to_cpu = (float)round->to_cpu_milli,
                                    });
}

static void mark_words(struct entry *e, enum timeline_kind kind, const char *title,
                       const char *text)
{
    e->story->changed = true;
    timeline_mark(e->story->series, &(struct timeline_mark){
                                        .time_ms = clock_wall_ms(),
                                        .kind = kind,
                                        .applied = true,
                                        .title = title,
                                        .text = text,
                                        .recommender = e->recommender_name,
                                        .from_replicas = -1,
                                        .to_replicas = -1,
                                        .from_cpu = NAN,
                                        .to_cpu = NAN,
                                    });
}

void story_event(struct entry *e, bool warning, const char *reason, const char *message)
{
    static const char *const of_policies[] = {"PolicyFound",    "PolicyKept",
                                              "LearningFailed", "PolicyUnreadable",
                                              "DriftDetected",  "PolicyRolledBack"};
    bool policy = false;
    for (size_t i = 0; i < ARRAY_LEN(of_policies); i++)
        policy |= strcmp(reason, of_policies[i]) == 0;
    /* The rest of what goes well is the decision's doing, which has a mark. */
    if (e->story && (policy || warning))
        mark_words(e, policy ? TIMELINE_POLICY : TIMELINE_TROUBLE, reason, message);
}

/* --- each interval --------------------------------------------------------------------------- */
static void add_point(struct entry *e, const struct story_round *round)
{
    double goal_us = (double)e->mpa.spec.latency_target_us;
    struct timeline_point point = {.time_ms = clock_wall_ms()};
    float *figures = point.figures;
    figures[TIMELINE_REQUESTS] = (float)round->requests_per_s;
    figures[TIMELINE_LATENCY] = (float)round->latency_ms;
    figures[TIMELINE_GOAL] = goal_us > 0 ? (float)(goal_us / 1000) : NAN;
    figures[TIMELINE_REPLICAS] = round->replicas >= 0 ? (float)round->replicas : NAN;
    figures[TIMELINE_WANTED_REPLICAS] =
        round->wanted_replicas >= 0 ? (float)round->wanted_replicas : NAN;
    figures[TIMELINE_CPU] = (float)round->cpu_milli;
    figures[TIMELINE_WANTED_CPU] = (float)round->wanted_cpu_milli;
    figures[TIMELINE_UTILIZATION] = (float)round->utilization;
    figures[TIMELINE_REWARD] = (float)learning_earned(e);
    timeline_add(e->story->series, &point, (int64_t)(e->controller->options.interval_s * 1000 / 2));
}

static void mark_fallback(struct entry *e, const struct api_condition_value *fallback)
{
    bool active = fallback->known && fallback->status;
    if (!fallback->known || active == e->story->fallback)
        return;
    e->story->fallback = active;
    mark_words(e, TIMELINE_FALLBACK, active ? fallback->reason : "FallbackEnded",
               fallback->message);
}

void story_add(struct entry *e, const struct story_round *round)
{
    struct story *s = e->story;
    if (!s)
        return;
    s->requests_per_s = round->requests_per_s;
    s->utilization = round->utilization;
    s->cpu_milli = round->cpu_milli;
    s->wanted_cpu_milli = round->wanted_cpu_milli;
    s->changed = true;
    add_point(e, round);
    mark_fallback(e, round->fallback);
    if (round->changes)
        mark_decision(e, round);
}
