/* Leader election by a Lease, by the rules of client-go, so that both can compete for one lease:
 * - a foreign lease has run out when its record has not changed for its duration by our own
 *   monotonic clock; the times in the record are for people;
 * - we lead until renew_deadline after the last renewal that succeeded was sent, which is before
 *   anybody else may find the lease run out;
 * - every write carries the resourceVersion of what was read.
 * A shared lease is held by all who bear its identity: what one of them writes renews it for the
 * others, from when they last knew it unrenewed; nobody gives it back. */
#include "kube/internal.h"

#include <string.h>

#define DEFAULT_DURATION_MS       15000
#define DEFAULT_RENEW_DEADLINE_MS 10000
#define DEFAULT_RETRY_MS          2000

struct kube_lease {
    struct kube_member member;
    struct kube *kube; /* NULL after the client has gone */
    char *collection, *path, *name, *identity, *holder;
    int64_t duration_ms, renew_deadline_ms, retry_ms;
    void (*on_change)(void *arg, bool leading);
    void *arg;

    json_t *record;     /* as read or written last; NULL: not known */
    int64_t changed_ms; /* when the record was last seen to change */
    int64_t sent_ms;    /* when the request under way was sent */
    int64_t known_ms;   /* when the request that brought the record was sent */
    int64_t until_ms;   /* we lead no longer than this */
    struct kube_call *call;
    struct kube_timer *retry, *deadline;
    bool leading, read_again, contended;
    bool wanted, shared;
    bool answered;      /* it is known whether somebody holds it */
    bool writing;       /* the request under way is a write */
    bool busy, stopped; /* inside on_change; kube_lease_stop was called there */
};

static void lease_try(void *arg);
static void lease_end(struct kube_lease *l);
static void lease_on_read(void *arg, const struct kube_response *response);
static void lease_on_written(void *arg, const struct kube_response *response);

/* --- who leads -------------------------------------------------------------------------------- */
static void lease_set_leading(struct kube_lease *l, bool leading)
{
    if (l->leading == leading)
        return;
    l->leading = leading;
    log_info(leading ? "leading" : "not leading any more", log_str("lease", l->path),
             log_str("identity", l->identity), log_str("holder", l->holder));
    if (l->on_change)
        l->on_change(l->arg, leading);
}

static void lease_free(struct kube_lease *l)
{
    json_decref(l->record);
    free(l->collection);
    free(l->path);
    free(l->name);
    free(l->identity);
    free(l->holder);
    free(l);
}

static void lease_detach(struct kube_lease *l)
{
    if (l->call)
        kube_call_cancel(l->call);
    kube_timer_free(l->retry);
    kube_timer_free(l->deadline);
    l->call = NULL;
    l->retry = l->deadline = NULL;
    l->kube = NULL;
}

/* Every function that may call on_change ends with this. */
static void lease_leave(struct kube_lease *l)
{
    l->busy = false;
    if (l->stopped)
        lease_free(l);
}

static void lease_on_deadline(void *arg)
{
    struct kube_lease *l = arg;
    l->busy = true;
    lease_set_leading(l, false);
    lease_leave(l);
}

/* --- the record
 * ----------------------------------------------------------------------------------- */
static bool lease_observe(struct kube_lease *l, const json_t *record)
{
    const json_t *spec = json_object_get(record, "spec");
    const char *holder = json_str(json_object_get(spec, "holderIdentity"));
    bool changed = !l->record || !json_equal(json_object_get(l->record, "spec"), spec);
    if (changed)
        l->changed_ms = clock_mono_ms();
    json_decref(l->record);
    l->record = json_deep_copy(record);
    string_set(&l->holder, holder);
    l->known_ms = l->sent_ms;
    l->answered = true;
    return changed;
}

static bool held_by_us(const struct kube_lease *l)
{
    return strcmp(l->holder, l->identity) == 0;
}

static bool held_by_other(const struct kube_lease *l)
{
    json_int_t s = json_integer_value(json_path(l->record, "spec", "leaseDurationSeconds", NULL));
    int64_t duration_ms = s > 0 && s < INT32_MAX ? (int64_t)s * 1000 : l->duration_ms;
    return *l->holder && !held_by_us(l) && clock_mono_ms() < l->changed_ms + duration_ms;
}

/* One more than there were; the API server's own type has 32 bits. */
static json_int_t lease_transitions(const struct kube_lease *l, const json_t *spec)
{
    json_int_t were = json_integer_value(json_object_get(spec, "leaseTransitions"));
    if (were < 0)
        were = 0;
    return were < INT32_MAX ? were + (l->record != NULL) : INT32_MAX;
}

/* The record that makes us the holder; everything else in it stays. */
static json_t *lease_claim(const struct kube_lease *l)
{
    char now[RFC3339_SIZE];
    time_format_micro(clock_wall_ms(), now);
    json_t *claim = l->record
                        ? json_deep_copy(l->record)
                        : json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "coordination.k8s.io/v1",
                                    "kind", "Lease", "metadata", "name", l->name);
    json_t *spec = json_object_get(claim, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        json_object_set_new(claim, "spec", spec);
    }
    if (!held_by_us(l) || !json_object_get(spec, "acquireTime")) {
        json_object_set_new(spec, "acquireTime", json_string(now));
        json_object_set_new(spec, "leaseTransitions", json_integer(lease_transitions(l, spec)));
    }
    json_object_set_new(spec, "holderIdentity", json_string(l->identity));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer((l->duration_ms + 999) / 1000));
    json_object_set_new(spec, "renewTime", json_string(now));
    return claim;
}

/* The record that makes nobody the holder: whoever waits need not wait until it runs out. */
static json_t *lease_waiver(const struct kube_lease *l)
{
    char now[RFC3339_SIZE];
    time_format_micro(clock_wall_ms(), now);
    json_t *record = json_deep_copy(l->record);
    json_t *spec = json_object_get(record, "spec");
    json_object_set_new(spec, "holderIdentity", json_string(""));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(1));
    json_object_set_new(spec, "renewTime", json_string(now));
    return record;
}

/* It was renewed after since_ms. */
static void lease_extend(struct kube_lease *l, int64_t since_ms)
{
    int64_t left_ms = since_ms + l->renew_deadline_ms - clock_mono_ms();
    if (left_ms <= 0)
        return;
    l->until_ms = since_ms + l->renew_deadline_ms;
    kube_timer_start(l->deadline, left_ms);
    lease_set_leading(l, true);
}

/* --- requests --------------------------------------------------------------------------------- */
static void lease_send(struct kube_lease *l, const char *method, const json_t *body, kube_done done)
{
    struct kube_call_spec spec = {
        .request = {.method = method,
                    .path = strcmp(method, "POST") == 0 ? l->collection : l->path,
                    .body = body,
                    .timeout_ms = l->renew_deadline_ms / 2,
                    .on_done = done,
                    .arg = l},
        .urgent = true,
    };
    l->sent_ms = clock_mono_ms();
    l->writing = body != NULL;
    l->call = kube_call_start(l->kube, &spec);
}

static void lease_read(struct kube_lease *l)
{
    lease_send(l, "GET", NULL, lease_on_read);
}

static void lease_write(struct kube_lease *l)
{
    cleanup_json json_t *claim = lease_claim(l);
    lease_send(l, l->record ? "PUT" : "POST", claim, lease_on_written);
}

static void lease_give_back(struct kube_lease *l)
{
    cleanup_json json_t *waiver = lease_waiver(l);
    lease_send(l, "PUT", waiver, lease_on_written);
}

/* Another has just renewed it for all. */
static bool lease_lasts(const struct kube_lease *l)
{
    return l->leading && l->until_ms - clock_mono_ms() > l->renew_deadline_ms - 2 * l->retry_ms;
}

/* The record is what is there. */
static void lease_go_on(struct kube_lease *l)
{
    if (l->wanted && !held_by_other(l))
        lease_write(l);
    else if (!l->wanted && !l->shared && held_by_us(l))
        lease_give_back(l);
}

/* While we lead, what we wrote last is what is there: one request renews. */
static void lease_try(void *arg)
{
    struct kube_lease *l = arg;
    kube_timer_start(l->retry, l->leading
                                   ? l->retry_ms
                                   : (int64_t)((double)l->retry_ms * (1 + kube_random() / 5)));
    if (l->call)
        return; /* the last try has its own time limit */
    l->contended = false;
    if (l->leading && l->record && !l->read_again && !l->shared)
        lease_write(l);
    else
        lease_read(l);
}

static void lease_on_read(void *arg, const struct kube_response *response)
{
    struct kube_lease *l = arg;
    l->call = NULL;
    l->busy = true;
    if (response->error.code == ERROR_NOT_FOUND) {
        json_decref(l->record);
        l->record = NULL;
        string_set(&l->holder, "");
        l->answered = true;
        l->read_again = false;
        lease_set_leading(l, false);
        if (l->kube && l->wanted)
            lease_write(l);
    } else if (response->error.code != ERROR_NONE || !json_is_object(response->json)) {
        log_debug("lease not read", log_str("lease", l->path),
                  log_str("error", response->error.message));
    } else {
        int64_t unrenewed_ms = l->record ? l->known_ms : 0;
        bool changed = lease_observe(l, response->json);
        l->read_again = false;
        if (!held_by_us(l))
            lease_set_leading(l, false);
        if (l->shared && l->wanted && held_by_us(l) && changed && unrenewed_ms)
            lease_extend(l, unrenewed_ms);
        if (l->kube && !(l->shared && lease_lasts(l)))
            lease_go_on(l);
    }
    lease_leave(l);
}

static void lease_on_written(void *arg, const struct kube_response *response)
{
    struct kube_lease *l = arg;
    bool written = response->error.code == ERROR_NONE && json_is_object(response->json);
    l->call = NULL;
    if (l->stopped) { /* meanwhile */
        if (written) {
            lease_observe(l, response->json);
            l->leading = held_by_us(l);
        }
        lease_end(l);
        return;
    }
    l->busy = true;
    if (!written) {
        log_debug("lease not written", log_str("lease", l->path),
                  log_str("error", response->error.message));
        l->read_again = true; /* it may have been written all the same */
        if (response->error.code == ERROR_CONFLICT && !l->contended)
            lease_read(l); /* once: then the next try */
        l->contended = true;
    } else {
        lease_observe(l, response->json);
        if (!l->wanted)
            lease_go_on(l);
        else if (held_by_us(l))
            lease_extend(l, l->sent_ms);
        else /* it answers with what is there, which is another's */
            lease_set_leading(l, false);
    }
    lease_leave(l);
}

/* --- start and stop --------------------------------------------------------------------------- */
static void lease_on_kube_free(struct kube_member *member)
{
    struct kube_lease *l = (struct kube_lease *)(void *)member; /* its first field */
    lease_detach(l);
    if (l->stopped)
        lease_free(l);
}

struct kube_lease *kube_lease_start(struct kube *kube, const struct kube_lease_spec *spec)
{
    struct kube_lease *l = xcalloc(1, sizeof(*l));
    l->kube = kube;
    l->collection =
        xasprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", spec->namespace_);
    l->path = xasprintf("%s/%s", l->collection, spec->name);
    l->name = xstrdup(spec->name);
    l->identity = xstrdup(spec->identity);
    l->holder = xstrdup("");
    l->duration_ms = spec->duration_ms > 0 ? spec->duration_ms : DEFAULT_DURATION_MS;
    l->renew_deadline_ms =
        spec->renew_deadline_ms > 0 ? spec->renew_deadline_ms : DEFAULT_RENEW_DEADLINE_MS;
    if (l->renew_deadline_ms >= l->duration_ms)
        l->renew_deadline_ms = l->duration_ms * 2 / 3;
    l->retry_ms = spec->retry_ms > 0 ? spec->retry_ms : DEFAULT_RETRY_MS;
    l->wanted = !spec->unwanted;
    l->shared = spec->shared;
    l->on_change = spec->on_change;
    l->arg = spec->arg;
    l->retry = kube_timer_new(kube_loop(kube), lease_try, l);
    l->deadline = kube_timer_new(kube_loop(kube), lease_on_deadline, l);
    l->member.on_kube_free = lease_on_kube_free;
    kube_member_add(kube, &l->member);
    kube_timer_start(l->retry, 0);
    return l;
}

static void lease_release(struct kube_lease *l)
{
    cleanup_json json_t *record = lease_waiver(l);
    struct kube_call_spec call = {.request = {.method = "PUT", .path = l->path, .body = record},
                                  .urgent = true};
    kube_call_start(l->kube, &call);
}

static void lease_end(struct kube_lease *l)
{
    if (l->kube) {
        if (l->leading && l->record && !l->shared)
            lease_release(l);
        kube_member_remove(&l->member);
        lease_detach(l);
    }
    if (!l->busy)
        lease_free(l);
}

void kube_lease_stop(struct kube_lease *lease)
{
    if (!lease)
        return;
    lease->stopped = true;
    if (lease->kube && lease->call && lease->writing) {
        /* What it makes of the lease must be known to give it back. */
        kube_timer_stop(lease->retry);
        kube_timer_stop(lease->deadline);
        return;
    }
    lease_end(lease);
}

void kube_lease_want(struct kube_lease *l, bool wanted)
{
    if (l->wanted == wanted || l->stopped || !l->kube)
        return;
    l->wanted = wanted;
    if (!wanted && l->leading) {
        l->leading = false;
        kube_timer_stop(l->deadline);
        log_info("given up", log_str("lease", l->path), log_str("identity", l->identity));
    }
    if (l->call)
        return; /* its answer goes on from here */
    if (!wanted && l->record)
        lease_go_on(l);
    else
        kube_timer_start(l->retry, 0);
}

bool kube_lease_is_known(const struct kube_lease *lease)
{
    return lease->answered;
}

const char *kube_lease_live_holder(const struct kube_lease *lease)
{
    bool live = lease->leading || (lease->record && held_by_other(lease));
    return live ? lease->holder : "";
}

int64_t kube_lease_left_ms(const struct kube_lease *lease)
{
    return lease->leading ? lease->until_ms - clock_mono_ms() : 0;
}

void kube_lease_abandon(struct kube_lease *lease)
{
    if (!lease)
        return;
    lease->leading = false;
    lease->stopped = true;
    lease_end(lease);
}

const char *kube_lease_holder(const struct kube_lease *lease)
{
    return lease->holder;
}
