/* What was gathered of a target's autoscalers, as the manifest of an MPA. */
#include "convert_build.h"

#include <stdio.h>
#include <string.h>

#define USUAL_UTILIZATION 70 /* per cent, as the controller's */
#define MOST_REPLICAS     10000

static void add_remark(struct convert_mpa *mpa, const char *path, const char *message)
{
    mpa->notes = xrealloc(mpa->notes, mpa->note_count + 1, sizeof(*mpa->notes));
    mpa->notes[mpa->note_count++] = xasprintf("MPA %s: %s: %s", mpa->name, path, message);
}

/* Lists that are longer than an MPA's may be. */
static void cut(struct convert_mpa *mpa, json_t *list, size_t most, const char *path)
{
    char message[96];
    if (json_array_size(list) <= most)
        return;
    snprintf(message, sizeof(message),
             "%zu were asked for: the first %zu are kept, others left out", json_array_size(list),
             most);
    add_remark(mpa, path, message);
    while (json_array_size(list) > most)
        json_array_remove(list, most);
}

/* --- goals ----------------------------------------------------------------------------------- */
static json_t *usual_metric(void)
{
    return json_pack("{s:s,s:{s:s,s:{s:s,s:i}}}", "type", "Resource", "resource", "name", "cpu",
                     "target", "type", "Utilization", "averageUtilization", USUAL_UTILIZATION);
}

/* An MPA needs a goal. One that nobody has asked for must not change anything by itself. */
static void ensure_goal(struct convert_mpa *mpa, const struct convert_options *o)
{
    if (o->latency || json_array_size(mpa->metrics) > 0)
        return;
    json_array_append_new(mpa->metrics, usual_metric());
    if (!mpa->horizontal) {
        add_remark(mpa, "spec.goals.metrics",
                   "an MPA needs a goal: 70 per cent of the CPU request, which the recommender vpa "
                   "does not look at; give --latency to have a latency kept");
        return;
    }
    mpa->mode = "Off";
    add_remark(mpa, "spec.goals.metrics",
               "nothing of what was held can be a goal of an MPA: 70 per cent of the CPU request, "
               "in mode Off until you have set the goal right; --latency gives one");
}

static json_t *goals(const struct convert_mpa *mpa, const struct convert_options *o)
{
    json_t *all = json_object();
    if (o->latency)
        json_object_set_new(all, "latency",
                            json_pack("{s:o,s:s}", "percentile",
                                      o->percentile == (int)o->percentile
                                          ? json_integer((json_int_t)o->percentile)
                                          : json_real(o->percentile),
                                      "target", o->latency));
    if (json_array_size(mpa->metrics) > 0)
        json_object_set(all, "metrics", mpa->metrics);
    return all;
}

/* --- bounds ---------------------------------------------------------------------------------- */
/* A VPA alone leaves the replicas as they are. */
static json_t *still_replicas(struct convert_mpa *mpa, const struct convert_options *o)
{
    if (o->replicas > 0)
        return json_pack("{s:I,s:I}", "minReplicas", (json_int_t)o->replicas, "maxReplicas",
                         (json_int_t)o->replicas);
    add_remark(mpa, "spec.constraints.global",
               "replicas are left as they are, since no HPA was given; --replicas N says how many "
               "there are to be");
    return json_pack("{s:i,s:i,s:{s:{s:s},s:{s:s}}}", "minReplicas", 1, "maxReplicas",
                     MOST_REPLICAS, "behavior", "scaleUp", "selectPolicy", "Disabled", "scaleDown",
                     "selectPolicy", "Disabled");
}

static json_t *global(struct convert_mpa *mpa, const struct convert_options *o)
{
    if (!mpa->horizontal)
        return still_replicas(mpa, o);
    json_t *bounds = json_pack("{s:I,s:I}", "minReplicas", (json_int_t)mpa->min_replicas,
                               "maxReplicas", (json_int_t)mpa->max_replicas);
    if (mpa->behavior)
        json_object_set(bounds, "behavior", mpa->behavior);
    return bounds;
}

/* Beside an HPA a VPA in mode Off sets nothing, and without a VPA nobody sized pods. */
static void ensure_controlled(struct convert_mpa *mpa)
{
    bool sizes = mpa->vertical && !(mpa->horizontal && strcmp(mpa->mode, "Off") == 0);
    if (sizes)
        return;
    json_decref(mpa->controlled);
    mpa->controlled = json_array();
    if (mpa->vertical)
        mpa->mode = "Auto";
    add_remark(mpa, "spec.constraints.containerControlledResources",
               mpa->vertical
                   ? "empty, since the VPA is in mode Off and the others set replicas"
                   : "empty, so that only replicas are set, as before; [cpu] has CPU set too");
}

static json_t *constraints(struct convert_mpa *mpa, const struct convert_options *o)
{
    json_t *all = json_pack("{s:o,s:O}", "global", global(mpa, o), "containerControlledResources",
                            mpa->controlled);
    if (json_array_size(mpa->containers) > 0)
        json_object_set(all, "container", mpa->containers);
    return all;
}

/* --- who decides ----------------------------------------------------------------------------- */
/* The rule that decided before, as long as there is no latency to be kept. */
static const char *recommender(const struct convert_mpa *mpa, const struct convert_options *o,
                               bool goal_is_theirs)
{
    if (o->recommender)
        return o->recommender;
    if (o->latency || (mpa->horizontal && mpa->vertical) || !goal_is_theirs)
        return "threshold";
    return mpa->horizontal ? "hpa" : "vpa";
}

static json_t *metadata(const struct convert_mpa *mpa)
{
    json_t *all = json_pack("{s:s}", "name", mpa->name);
    if (*mpa->namespace_)
        json_object_set_new(all, "namespace", json_string(mpa->namespace_));
    if (json_object_size(mpa->labels) > 0)
        json_object_set(all, "labels", mpa->labels);
    if (json_object_size(mpa->annotations) > 0)
        json_object_set(all, "annotations", mpa->annotations);
    return all;
}

json_t *convert_build(struct convert_mpa *mpa, const struct convert_options *o)
{
    cut(mpa, mpa->metrics, API_MAX_METRICS, "spec.goals.metrics");
    cut(mpa, mpa->containers, API_MAX_CONTAINERS, "spec.constraints.container");
    bool goal_is_theirs = json_array_size(mpa->metrics) > 0 || !mpa->horizontal;
    ensure_controlled(mpa);
    ensure_goal(mpa, o);
    json_t *policy = json_pack("{s:s}", "updateMode", mpa->mode ? mpa->mode : "Auto");
    if (mpa->boost)
        json_object_set(policy, "startupBoost", mpa->boost);
    json_t *spec = json_pack("{s:O,s:o,s:o,s:o,s:[{s:s}]}", "scaleTargetRef", mpa->target, "goals",
                             goals(mpa, o), "constraints", constraints(mpa, o), "policy", policy,
                             "recommenders", "name", recommender(mpa, o, goal_is_theirs));
    return json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", API_GROUP "/" API_VERSION, "kind", API_KIND,
                     "metadata", metadata(mpa), "spec", spec);
}
