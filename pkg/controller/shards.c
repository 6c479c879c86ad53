/* The leases of a replica that decides beside others:
 * - NAME is held by all replicas together, under an identity that says how many shards there are:
 *   one with another number, or that knows no shards, never writes beside them;
 * - NAME-member-I tells the others that a replica is there, and nothing more;
 * - NAME-shard-I is its holder's right to write what is in the shard.
 * Losing one of the first or the last kind ends the process, as losing the one lease does without
 * shards: a write that is queued, in curl's or the kernel's buffers cannot be called back one by
 * one. A shard is given away only when every write that was asked for before has been answered. */
#include "shards.h"

#include <stdio.h>
#include <string.h>

#define DURATION_MS       15000
#define RENEW_DEADLINE_MS 10000
#define RETRY_MS          2000
/* The common lease lasts so much longer: all renew it, and may be in each other's way. */
#define PATIENCE    3
#define LOOKS       8 /* between two tries of a lease */
#define END_LOOK_MS 20
#define COMPLAIN_MS 60000
/* A write whose answer never came is carried out within the API server's own limit, or never. */
#define SETTLE_MS 60000
/* An event may be made, then counted up, then made anew because it went: each after the other. */
#define ROUNDS 3

enum holding { AWAY, HELD, LEAVING };

struct shard {
    struct shards *all;
    struct kube_lease *lease;
    enum holding holding;
    uint64_t mark; /* writes up to here are awaited, */
    int rounds;    /* and so many times more after them */
};

struct shards {
    struct kube *kube;
    struct shards_spec spec;
    char *identity, *mode_identity;
    struct kube_lease *mode;
    struct kube_lease *members[SHARDS_MAX];
    struct shard shards[SHARDS_MAX];
    unsigned slot; /* the member's lease that is ours, or that we try to get */
    bool in_mode, ending;
    int64_t complained_ms, end_ms; /* monotonic */
    uint64_t end_mark;
    uv_timer_t timer;
};

/* --- the leases ------------------------------------------------------------------------------- */
static void lost(struct shards *s, const char *what, unsigned shard)
{
    if (s->ending) /* there is nobody left to tell */
        return;
    log_error("a lease was lost", log_str("lease", what), log_int("shard", shard));
    s->spec.on_lost(s->spec.arg);
}

static void on_mode(void *arg, bool leading)
{
    struct shards *s = arg;
    s->in_mode = leading;
    if (!leading)
        lost(s, "of all", 0);
}

static void on_shard(void *arg, bool leading)
{
    struct shard *shard = arg;
    struct shards *s = shard->all;
    unsigned number = (unsigned)(shard - s->shards);
    if (!leading) {
        lost(s, "shard", number);
        return;
    }
    if (s->ending)
        return;
    shard->holding = HELD;
    log_info("a shard is ours", log_int("shard", number), log_int("held", shards_held(s)));
    s->spec.on_taken(s->spec.arg, number);
}

static struct kube_lease *start_lease(struct shards *s, const char *kind, unsigned number,
                                      void (*on_change)(void *arg, bool leading), void *arg)
{
    cleanup_free char *name = xasprintf("%s-%s-%u", s->spec.name, kind, number);
    return kube_lease_start(
        s->kube, &(struct kube_lease_spec){.namespace_ = s->spec.namespace_,
                                           .name = name,
                                           .identity = s->identity,
                                           .duration_ms = s->spec.duration_ms,
                                           .renew_deadline_ms = s->spec.renew_deadline_ms,
                                           .retry_ms = s->spec.retry_ms,
                                           .unwanted = true,
                                           .on_change = on_change,
                                           .arg = arg});
}

static void start_leases(struct shards *s)
{
    s->mode = kube_lease_start(
        s->kube,
        &(struct kube_lease_spec){.namespace_ = s->spec.namespace_,
                                  .name = s->spec.name,
                                  .identity = s->mode_identity,
                                  .duration_ms = PATIENCE * s->spec.duration_ms,
                                  .renew_deadline_ms = PATIENCE * s->spec.renew_deadline_ms,
                                  .retry_ms = s->spec.retry_ms,
                                  .shared = true,
                                  .on_change = on_mode,
                                  .arg = s});
    for (unsigned i = 0; i < s->spec.count; i++) {
        s->shards[i].all = s;
        s->shards[i].lease = start_lease(s, "shard", i, on_shard, &s->shards[i]);
        s->members[i] = start_lease(s, "member", i, NULL, NULL);
    }
}

static bool all_known(const struct shards *s)
{
    for (unsigned i = 0; i < s->spec.count; i++)
        if (!kube_lease_is_known(s->shards[i].lease) || !kube_lease_is_known(s->members[i]))
            return false;
    return true;
}

/* What would be written by a process that was held up for long is not sent. */
static bool may_write(void *arg)
{
    const struct shards *s = arg;
    bool may = !s->ending && kube_lease_left_ms(s->mode) > 0;
    for (unsigned i = 0; i < s->spec.count && may; i++)
        may = s->shards[i].holding == AWAY || kube_lease_left_ms(s->shards[i].lease) > 0;
    return may;
}

/* --- members ---------------------------------------------------------------------------------- */
static bool is_member(const struct shards *s)
{
    return kube_lease_left_ms(s->members[s->slot]) > 0;
}

/* The first place that nobody has, beginning at one that few others begin at. */
static void find_place(struct shards *s)
{
    unsigned first = shard_of(s->identity, s->spec.count);
    if (is_member(s))
        return;
    for (unsigned i = 0; i < s->spec.count; i++) {
        unsigned slot = (first + i) % s->spec.count;
        if (*kube_lease_live_holder(s->members[slot]))
            continue;
        if (slot != s->slot)
            kube_lease_want(s->members[s->slot], false);
        s->slot = slot;
        kube_lease_want(s->members[slot], true);
        return;
    }
}

static size_t list_members(const struct shards *s, const char **out)
{
    size_t n = 0;
    for (unsigned i = 0; i < s->spec.count; i++) {
        const char *holder = kube_lease_live_holder(s->members[i]);
        if (*holder)
            out[n++] = holder;
    }
    return n;
}

/* --- taking and giving away ------------------------------------------------------------------- */
static void begin_to_leave(struct shards *s, unsigned number)
{
    struct shard *shard = &s->shards[number];
    shard->holding = LEAVING;
    s->spec.on_leaving(s->spec.arg, number);
    shard->mark = kube_write_mark(s->kube);
    shard->rounds = ROUNDS;
}

static bool may_be_under_way(const struct shards *s)
{
    int64_t unanswered_ms = kube_unanswered_ms(s->kube);
    return unanswered_ms && clock_mono_ms() - unanswered_ms < s->spec.settle_ms;
}

static void go_on_leaving(struct shards *s, struct shard *shard)
{
    if (!kube_writes_ended(s->kube, shard->mark) || may_be_under_way(s))
        return;
    shard->mark = kube_write_mark(s->kube);
    if (--shard->rounds > 0)
        return;
    shard->holding = AWAY;
    log_info("a shard is given away", log_int("shard", shard - s->shards),
             log_int("held", shards_held(s)));
    kube_lease_want(shard->lease, false);
}

/* What we are leaving is still held by us for others; we count it as free, so that no more than is
 * needed is left. */
static void follow_plan(struct shards *s)
{
    const char *holders[SHARDS_MAX], *owners[SHARDS_MAX], *members[SHARDS_MAX];
    size_t member_count = list_members(s, members);
    for (unsigned i = 0; i < s->spec.count; i++)
        holders[i] =
            s->shards[i].holding == LEAVING ? "" : kube_lease_live_holder(s->shards[i].lease);
    shard_plan(holders, s->spec.count, members, member_count, owners);
    for (unsigned i = 0; i < s->spec.count; i++) {
        bool ours = owners[i] && strcmp(owners[i], s->identity) == 0;
        if (s->shards[i].holding == HELD && !ours)
            begin_to_leave(s, i);
        else if (s->shards[i].holding == AWAY)
            kube_lease_want(s->shards[i].lease, ours);
    }
}

/* A replica that has lost its place as a member keeps what it holds, and takes no more. */
static void look(struct shards *s)
{
    for (unsigned i = 0; i < s->spec.count; i++)
        if (s->shards[i].holding == LEAVING)
            go_on_leaving(s, &s->shards[i]);
    if (!s->in_mode || !all_known(s))
        return;
    find_place(s);
    if (is_member(s))
        follow_plan(s);
}

static void complain(struct shards *s)
{
    int64_t now_ms = clock_mono_ms();
    const char *holder = kube_lease_live_holder(s->mode);
    if (s->in_mode || !*holder || now_ms < s->complained_ms)
        return;
    s->complained_ms = now_ms + COMPLAIN_MS;
    log_warn("replicas do not agree on --shards: nothing is written until the others have ended",
             log_str("lease", s->spec.name), log_str("held by", holder),
             log_str("ours", s->mode_identity));
}

static void on_look(uv_timer_t *timer)
{
    struct shards *s = timer->data;
    complain(s);
    look(s);
}

/* --- what is held ----------------------------------------------------------------------------- */
bool shards_has(const struct shards *s, const char *namespace_)
{
    return s->shards[shard_of(namespace_, s->spec.count)].holding == HELD;
}

unsigned shards_held(const struct shards *s)
{
    unsigned held = 0;
    for (unsigned i = 0; i < s->spec.count; i++)
        held += s->shards[i].holding == HELD;
    return held;
}

/* --- life ------------------------------------------------------------------------------------- */
static void set_default(int64_t *ms, int64_t otherwise)
{
    if (*ms <= 0)
        *ms = otherwise;
}

struct shards *shards_start(uv_loop_t *loop, struct kube *kube, const struct shards_spec *spec)
{
    struct shards *s = xcalloc(1, sizeof(*s));
    s->kube = kube;
    s->spec = *spec;
    set_default(&s->spec.duration_ms, DURATION_MS);
    set_default(&s->spec.renew_deadline_ms, RENEW_DEADLINE_MS);
    set_default(&s->spec.retry_ms, RETRY_MS);
    set_default(&s->spec.settle_ms, SETTLE_MS);
    s->identity = xstrdup(spec->identity);
    s->mode_identity = xasprintf("%u shards", spec->count);
    s->slot = shard_of(s->identity, spec->count);
    start_leases(s);
    kube_allow_writes(kube, may_write, s);
    uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    uint64_t look_ms = (uint64_t)(s->spec.retry_ms / LOOKS);
    uv_timer_start(&s->timer, on_look, look_ms, look_ms);
    return s;
}

static void on_closed(uv_handle_t *handle)
{
    struct shards *s = handle->data;
    free(s->identity);
    free(s->mode_identity);
    free(s);
}

static void end(struct shards *s, bool give_back)
{
    void (*end_lease)(struct kube_lease *) = give_back ? kube_lease_stop : kube_lease_abandon;
    for (unsigned i = 0; i < s->spec.count; i++) {
        end_lease(s->shards[i].lease);
        kube_lease_stop(s->members[i]);
    }
    kube_lease_stop(s->mode);
    kube_allow_writes(s->kube, NULL, NULL);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}

static void on_end_look(uv_timer_t *timer)
{
    struct shards *s = timer->data;
    bool ended = kube_writes_ended(s->kube, s->end_mark);
    if (!ended && clock_mono_ms() < s->end_ms)
        return;
    bool sure = ended && !may_be_under_way(s);
    if (!sure)
        log_warn("writes may be under way still: the leases are left to run out");
    end(s, sure);
}

void shards_free(struct shards *s)
{
    if (!s)
        return;
    s->ending = true;
    kube_drop_queued(s->kube);
    s->end_mark = kube_write_mark(s->kube);
    s->end_ms = clock_mono_ms() + SHARDS_END_MS;
    on_end_look(&s->timer);
    if (uv_is_closing((uv_handle_t *)&s->timer))
        return;
    uv_timer_start(&s->timer, on_end_look, 1, END_LOOK_MS);
}
