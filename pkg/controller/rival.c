/* Which of several MPAs has a target, where they name the same one, or one names what is a part of
 * the other's: Knative's Services and Configurations have Revisions. By what they belong to, not by
 * who gets requests at present, so that nobody's turn comes and goes with the traffic. */
#include "entry.h"

#include <string.h>

bool entry_comes_before(const struct entry *a, const struct entry *b)
{
    bool a_off = a->mpa.spec.mode == API_MODE_OFF, b_off = b->mpa.spec.mode == API_MODE_OFF;
    if (a_off != b_off)
        return b_off;
    if (a->mpa.created_ms != b->mpa.created_ms)
        return a->mpa.created_ms < b->mpa.created_ms;
    return strcmp(a->key, b->key) < 0;
}

static bool is_kind(const struct entry *e, const char *kind)
{
    return strcmp(e->mpa.spec.target_api_version, KUBE_KNATIVE) == 0 &&
           strcmp(e->mpa.spec.target_kind, kind) == 0;
}

bool entry_is_part(const struct entry *e)
{
    return is_kind(e, "Revision") || is_kind(e, "Configuration");
}

static struct kube_whole whole_of(const struct entry *e)
{
    const struct world *world = &e->controller->world;
    const struct api_spec *spec = &e->mpa.spec;
    struct kube_whole out = {"", ""};
    if (world->whole)
        world->whole(world->self,
                     &(struct kube_target){.api_version = spec->target_api_version,
                                           .kind = spec->target_kind,
                                           .namespace_ = e->mpa.namespace_,
                                           .name = spec->target_name},
                     &out);
    return out;
}

static bool yields(const struct entry *e, const struct entry *other)
{
    return other && other != e && other->mpa.spec.mode != API_MODE_OFF &&
           entry_comes_before(other, e);
}

static struct entry *rival_above(const struct entry *e)
{
    struct kube_whole whole = whole_of(e);
    const struct controller *c = e->controller;
    struct entry *of_service =
        controller_entry_of(c, KUBE_KNATIVE, "Service", e->mpa.namespace_, whole.service);
    struct entry *of_configuration = controller_entry_of(c, KUBE_KNATIVE, "Configuration",
                                                         e->mpa.namespace_, whole.configuration);
    return yields(e, of_service)         ? of_service
           : yields(e, of_configuration) ? of_configuration
                                         : NULL;
}

static bool has_part(const struct entry *e, const struct entry *part)
{
    if (strcmp(e->mpa.namespace_, part->mpa.namespace_) != 0)
        return false;
    struct kube_whole whole = whole_of(part);
    const char *its = is_kind(e, "Service")         ? whole.service
                      : is_kind(e, "Configuration") ? whole.configuration
                                                    : "";
    return strcmp(its, e->mpa.spec.target_name) == 0;
}

static struct entry *rival_below(const struct entry *e)
{
    void *value;
    for (size_t i = 0; (i = map_next(&e->controller->parts, i, NULL, &value)) != 0;)
        if (yields(e, value) && has_part(e, value))
            return value;
    return NULL;
}

struct entry *entry_rival(const struct entry *e)
{
    cleanup_free char *target = entry_target_key(e);
    struct entry *holder = map_get(&e->controller->by_target, target);
    if (holder && holder != e && holder->mpa.spec.mode != API_MODE_OFF)
        return holder;
    if (strcmp(e->mpa.spec.target_api_version, KUBE_KNATIVE) != 0)
        return NULL;
    struct entry *above = entry_is_part(e) ? rival_above(e) : NULL;
    return above || is_kind(e, "Revision") ? above : rival_below(e);
}
