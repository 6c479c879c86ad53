/* Which MPAs are decided by which replica, where there are several that decide (docs/sharding.md).
 * A namespace belongs to one of a fixed number of shards for good, and each shard to the replica
 * that holds its lease. Private to pkg/controller and its tests. */
#ifndef FAASRL_CONTROLLER_SHARDS_H
#define FAASRL_CONTROLLER_SHARDS_H

#include "controller/controller.h"

/* --- shard_plan.c: pure functions ------------------------------------------------------------- */
/* The shard of a namespace: the same everywhere and always. Of count + 1 shards each takes its part
 * from all, and nothing else moves. */
unsigned shard_of(const char *namespace_, unsigned count);

/* Who should hold each shard: owners[i] is one of the members, or NULL where there is none. holders
 * are those that do, "" for none. Each member has as many as any other, or one more; a shard stays
 * with a member that may keep it. The same for the same holders and members, in any order. */
void shard_plan(const char *const *holders, unsigned count, const char *const *members,
                size_t member_count, const char **owners);

/* --- shards.c --------------------------------------------------------------------------------- */
struct shards;

struct shards_spec {
    const char *namespace_, *name, *identity; /* of the leases: NAME, NAME-shard-0, NAME-member-0 */
    unsigned count;                           /* of shards, 2 to SHARDS_MAX */
    int64_t duration_ms, renew_deadline_ms, retry_ms; /* of the leases; 0: 15 s, 10 s, 2 s */
    int64_t settle_ms; /* a write that is not answered may be carried out for so long; 0: 60 s */
    /* Ours from now on. */
    void (*on_taken)(void *arg, unsigned shard);
    /* Nothing of it may be written from the return of this on. What was asked for before may be: it
     * is given away only when that has ended. */
    void (*on_leaving)(void *arg, unsigned shard);
    /* A lease ran out or was taken: nothing may be written any more. */
    void (*on_lost)(void *arg);
    void *arg;
};

struct shards *shards_start(uv_loop_t *loop, struct kube *kube, const struct shards_spec *spec);
/* Gives all away once what is under way has ended, or leaves it to run out if that takes too long;
 * what waits for its turn is dropped. Where something is, the loop has to turn and the client to
 * stay for SHARDS_END_MS. NULL is fine. */
void shards_free(struct shards *shards);
bool shards_has(const struct shards *shards, const char *namespace_);
unsigned shards_held(const struct shards *shards);

#endif
