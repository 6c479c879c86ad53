#include "entry.h"

#include <string.h>

static void on_written(void *arg, const struct error *err)
{
    struct entry *e = arg;
    bool cancelled = err && err->code == ERROR_CANCELLED;
    e->writing = false;
    if (!e->gone && !cancelled)
        metrics_count(e->controller->report.status_writes, 1,
                      METRICS_LABELS(err ? "failed" : "succeeded"));
    if (err && !e->gone && !cancelled) {
        log_warn("status was not written", log_str("mpa", e->key), log_str("why", err->message));
        entry_move_status(e, &e->written_before, &e->written);
        e->unknown = true; /* write again next time */
    }
    if (!e->gone)
        entry_keep_status(e, &e->written_before, NULL);
    entry_release(e);
}

/* What an external recommender writes is not ours to overwrite. */
static void leave_external(struct entry *e, json_t *status)
{
    if (!entry_is_external(e))
        return;
    json_object_del(status, "recommendation");
    json_object_del(status, "desiredReplicas");
}

/* A merge patch: what is no longer there must be said to be null. */
static json_t *patch_from(const json_t *old, json_t *status, bool external)
{
    const char *key;
    json_t *value, *patch = json_copy(status);
    json_object_foreach ((json_t *)(uintptr_t)old, key, value) {
        bool theirs =
            external && (strcmp(key, "recommendation") == 0 || strcmp(key, "desiredReplicas") == 0);
        if (!json_object_get(status, key) && !theirs)
            json_object_set_new(patch, key, json_null());
    }
    return json_pack("{s:o}", "status", patch);
}

void publish(struct entry *e, struct api_status *status)
{
    int64_t now_ms = clock_mono_ms();
    if (e->gone || e->writing || e->mpa.uid == NULL)
        return;
    const json_t *old = entry_status(e);
    cleanup_json json_t *new = api_status_json(status, old, clock_wall_ms());
    leave_external(e, new);
    bool old_figures =
        (double)(now_ms - e->written_ms) >= e->controller->options.status_interval_s * 1000;
    if (old && !e->unknown && !api_status_differs(old, new) &&
        (!old_figures || json_equal(old, new)))
        return;
    cleanup_json json_t *patch = patch_from(old, new, entry_is_external(e));
    const struct world *world = &e->controller->world;
    if (world->may_tell && !world->may_tell(world->self)) {
        e->controller->untold = true;
        return;
    }
    entry_move_status(e, &e->written, &e->written_before);
    entry_keep_status(e, &e->written, new);
    e->unknown = false;
    e->written_ms = now_ms;
    e->writing = true;
    entry_hold(e);
    world->write_status(world->self, &e->mpa, patch, on_written, e);
}
