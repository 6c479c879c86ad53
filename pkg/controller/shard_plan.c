#include "base/base.h"
#include "shards.h"

#include <string.h>

/* --- namespaces to shards --------------------------------------------------------------------- */
static uint64_t mix(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Jump consistent hash (Lamping and Veach, 2014): from i shards to i + 1 a key jumps to the new one
 * with probability 1 / (i + 1). */
unsigned shard_of(const char *namespace_, unsigned count)
{
    uint64_t key = mix(hash_bytes(namespace_, strlen(namespace_)));
    int64_t at = 0, next = 0;
    while (next < (int64_t)count) {
        at = next;
        key = key * 2862933555777941757u + 1;
        next = (int64_t)((double)(at + 1) * ((double)(1LL << 31) / (double)((key >> 33) + 1)));
    }
    return (unsigned)at;
}

/* --- shards to members ------------------------------------------------------------------------ */
struct place { /* of a member */
    const char *name;
    unsigned held, quota;
};

static uint64_t weight(const char *member, unsigned shard)
{
    return mix(hash_bytes(member, strlen(member)) + mix(shard + 1));
}

/* Those that have most first: who may have one more is who has it already. */
static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->held != y->held)
        return x->held > y->held ? -1 : 1;
    return strcmp(x->name, y->name);
}

static struct place *place_of(struct place *places, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(places[i].name, name) == 0)
            return &places[i];
    return NULL;
}

/* Takes the shard from a member that suits it least. */
static void take_one(struct place *from, const char **owners, unsigned count)
{
    unsigned least = count;
    for (unsigned s = 0; s < count; s++)
        if (owners[s] && owners[s] == from->name &&
            (least == count || weight(from->name, s) < weight(from->name, least)))
            least = s;
    owners[least] = NULL;
    from->held--;
}

static void give(struct place *places, size_t n, unsigned shard, const char **owners)
{
    struct place *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (places[i].held < places[i].quota &&
            (!best || weight(places[i].name, shard) > weight(best->name, shard)))
            best = &places[i];
    if (!best)
        return;
    owners[shard] = best->name;
    best->held++;
}

void shard_plan(const char *const *holders, unsigned count, const char *const *members,
                size_t member_count, const char **owners)
{
    struct place places[SHARDS_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < member_count && n < ARRAY_LEN(places); i++)
        if (!place_of(places, n, members[i]))
            places[n++] = (struct place){.name = members[i]};
    for (unsigned s = 0; s < count; s++) {
        struct place *place = place_of(places, n, holders[s]);
        owners[s] = place ? place->name : NULL;
        if (place)
            place->held++;
    }
    qsort(places, n, sizeof(*places), compare);
    for (size_t i = 0; i < n; i++) {
        places[i].quota = count / (unsigned)n + (i < count % n);
        while (places[i].held > places[i].quota)
            take_one(&places[i], owners, count);
    }
    for (unsigned s = 0; s < count; s++)
        if (!owners[s])
            give(places, n, s, owners);
}
