/* VerticalPodAutoscaler: autoscaling.k8s.io/v1, v1beta2 (the same fields). */
#include "convert.h"

#include <stdio.h>
#include <string.h>

static const char *const resources[API_RESOURCE_COUNT] = {"cpu", "memory"};

static int take_mode(struct convert_mpa *mpa, const struct convert_source *source,
                     struct error *err)
{
    static const struct {
        const char *of_vpa, *of_mpa, *note;
    } modes[] = {
        {"Off", "Off", NULL},
        {"Initial", "Initial", NULL},
        {"Auto", "Auto", NULL},
        {"InPlace", "Auto", NULL},
        {"Recreate", "Auto", "running pods are resized in place, and never evicted: Auto"},
        {"InPlaceOrRecreate", "Auto", "pods that cannot be resized in place are not evicted: Auto"},
    };
    json_t *policy;
    if (convert_object(source, "spec.updatePolicy", &policy, err) < 0)
        return -1;
    cleanup_json json_t *value = convert_take(policy, "updateMode");
    const char *text = value ? json_str(value) : "Auto", *path = "spec.updatePolicy.updateMode";
    if (json_is_false(value)) /* as YAML reads Off without quotes */
        text = "Off";
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (strcmp(modes[i].of_vpa, text) != 0)
            continue;
        mpa->mode = modes[i].of_mpa;
        if (modes[i].note)
            convert_note(mpa, source, path, "%s", modes[i].note);
        return 0;
    }
    return convert_fail(source, path, err,
                        "must be Off, Initial, Recreate, InPlaceOrRecreate, InPlace or Auto");
}

/* minAllowed or maxAllowed: cpu and memory, others stay. */
static void take_bounds(json_t *policy, const char *which, json_t *requests)
{
    json_t *bounds = json_object_get(policy, which);
    cleanup_json json_t *out = json_object();
    for (size_t r = 0; r < API_RESOURCE_COUNT; r++) {
        json_t *amount = convert_take(bounds, resources[r]);
        if (amount)
            json_object_set_new(out, resources[r], amount);
    }
    if (json_object_size(out) > 0)
        json_object_set(requests, which, out);
}

/* Which resources a policy lets be set; both unless it says otherwise. */
static int take_controlled(const struct convert_source *source, json_t *policy, const char *path,
                           bool out[API_RESOURCE_COUNT], struct error *err)
{
    cleanup_json json_t *list = convert_take(policy, "controlledResources");
    if (list && !json_is_array(list))
        return convert_fail(source, path, err, "controlledResources: must be a list");
    for (size_t r = 0; r < API_RESOURCE_COUNT; r++)
        out[r] = list == NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_str(json_array_get(list, i));
        bool known = false;
        for (size_t r = 0; r < API_RESOURCE_COUNT; r++)
            if (strcmp(name, resources[r]) == 0)
                known = out[r] = true;
        if (!known)
            return convert_fail(source, path, err, "controlledResources: must be cpu or memory");
    }
    return 0;
}

struct controlled { /* of all containers so far that are sized */
    bool any, all[API_RESOURCE_COUNT];
    bool differ;
};

static void add_controlled(struct controlled *sum, const bool own[API_RESOURCE_COUNT])
{
    for (size_t r = 0; r < API_RESOURCE_COUNT; r++) {
        sum->differ |= sum->any && sum->all[r] != own[r];
        sum->all[r] = own[r] && (!sum->any || sum->all[r]);
    }
    sum->any = true;
}

static int take_container(struct convert_mpa *mpa, const struct convert_source *source,
                          json_t *policy, const char *path, struct controlled *sum,
                          struct error *err)
{
    static const char *const same[] = {"mode", "controlledValues"};
    bool own[API_RESOURCE_COUNT];
    cleanup_json json_t *name = convert_take(policy, "containerName");
    cleanup_json json_t *container = json_object(), *requests = json_object();
    if (*json_str(name) == '\0')
        return convert_fail(source, path, err, "containerName must name a container, or be '*'");
    json_object_set(container, "name", name);
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        json_t *value = convert_take(policy, same[i]);
        if (value) /* Off without quotes is false */
            json_object_set_new(container, same[i],
                                json_is_false(value) ? json_string("Off") : value);
    }
    bool stated = json_object_get(policy, "controlledResources") != NULL;
    if (take_controlled(source, policy, path, own, err) < 0)
        return -1;
    if (strcmp(json_str(json_object_get(container, "mode")), "Off") != 0) {
        add_controlled(sum, own);
    } else if (stated) {
        cleanup_free char *at = xasprintf("%s.controlledResources", path);
        convert_note(mpa, source, at, "says nothing in mode Off: left out");
    }
    take_bounds(policy, "minAllowed", requests);
    take_bounds(policy, "maxAllowed", requests);
    if (json_object_size(requests) > 0)
        json_object_set(container, "requests", requests);
    json_array_append(mpa->containers, container);
    return 0;
}

static int take_containers(struct convert_mpa *mpa, const struct convert_source *source,
                           struct error *err)
{
    const char *path = "spec.resourcePolicy.containerPolicies";
    struct controlled sum = {0};
    json_t *list;
    if (convert_list(source, path, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        cleanup_free char *at = xasprintf("%s[%zu]", path, i);
        if (take_container(mpa, source, json_array_get(list, i), at, &sum, err) < 0)
            return -1;
    }
    if (sum.differ)
        convert_note(mpa, source, path,
                     "an MPA sets the same resources of all containers: those that all of them "
                     "let be set");
    mpa->controlled = json_array();
    for (size_t r = 0; r < API_RESOURCE_COUNT; r++)
        if (!sum.any || sum.all[r])
            json_array_append_new(mpa->controlled, json_string(resources[r]));
    return 0;
}

int convert_vpa(struct convert_mpa *mpa, const struct convert_source *source, struct error *err)
{
    json_t *spec;
    if (mpa->vertical)
        return convert_fail(source, "spec.targetRef", err,
                            "another VerticalPodAutoscaler has this target: give one of them");
    if (convert_object(source, "spec", &spec, err) < 0 || take_mode(mpa, source, err) < 0 ||
        take_containers(mpa, source, err) < 0)
        return -1;
    mpa->vertical = true;
    mpa->boost = convert_take(spec, "startupBoost");
    return 0;
}
