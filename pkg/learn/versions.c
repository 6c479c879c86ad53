/* Which policies have decided on one function, and what each of them earned. */
#include "learn/learn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOBODY SIZE_MAX

struct learn_versions {
    struct learn_version items[LEARN_VERSIONS]; /* in the order in which they first took over */
    size_t count, current; /* that decides, or did before thresholds; NOBODY: none has */
    uint64_t total;        /* with those that are forgotten */
};

struct learn_versions *learn_versions_new(void)
{
    struct learn_versions *v = xcalloc(1, sizeof(*v));
    v->current = NOBODY;
    return v;
}

void learn_versions_free(struct learn_versions *v)
{
    free(v);
}

static struct learn_version *current(struct learn_versions *v)
{
    return v->current == NOBODY ? NULL : &v->items[v->current];
}

static size_t find(const struct learn_versions *v, const char *sha256)
{
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->items[i].sha256, sha256) == 0)
            return i;
    return NOBODY;
}

/* The one that decided until now may do so again soon. */
static void forget_oldest(struct learn_versions *v)
{
    size_t at = v->current == 0 ? 1 : 0;
    memmove(&v->items[at], &v->items[at + 1], (v->count - at - 1) * sizeof(*v->items));
    v->count--;
    if (v->current != NOBODY && v->current > at)
        v->current--;
}

static size_t add(struct learn_versions *v, const char *sha256, enum learn_origin origin,
                  int64_t now_ms)
{
    if (v->count == LEARN_VERSIONS)
        forget_oldest(v);
    struct learn_version *added = &v->items[v->count];
    *added = (struct learn_version){
        .number = ++v->total, .origin = origin, .from_ms = now_ms, .earned = NAN};
    snprintf(added->sha256, sizeof(added->sha256), "%s", sha256);
    return v->count++;
}

static void leave(struct learn_version *version, enum learn_outcome outcome, int64_t now_ms)
{
    if (version->outcome == LEARN_DECIDES)
        version->until_ms = now_ms;
    version->outcome = outcome;
}

void learn_versions_take(struct learn_versions *v, const char *sha256, enum learn_origin origin,
                         int64_t now_ms)
{
    struct learn_version *old = current(v);
    bool may_return = old && (old->outcome == LEARN_DECIDES || old->outcome == LEARN_WAITS);
    bool same = old && sha256 && strcmp(old->sha256, sha256) == 0;
    if (may_return && !same)
        leave(old, sha256 ? LEARN_REPLACED : LEARN_WAITS, now_ms);
    if (sha256 == NULL)
        return;
    size_t next = find(v, sha256);
    v->current = next == NOBODY ? add(v, sha256, origin, now_ms) : next;
    struct learn_version *now = current(v);
    now->outcome = LEARN_DECIDES;
    now->until_ms = 0;
    now->why[0] = '\0';
}

void learn_versions_leave(struct learn_versions *v, enum learn_outcome outcome, const char *why,
                          int64_t now_ms)
{
    struct learn_version *now = current(v);
    if (now == NULL)
        return;
    leave(now, outcome, now_ms);
    snprintf(now->why, sizeof(now->why), "%s", why);
}

void learn_versions_earned(struct learn_versions *v, double earned)
{
    struct learn_version *now = current(v);
    if (now == NULL || now->outcome != LEARN_DECIDES || isnan(earned))
        return;
    double before = now->intervals ? now->earned : 0;
    now->intervals++;
    now->earned = before + (earned - before) / (double)now->intervals;
}

size_t learn_versions_count(const struct learn_versions *v)
{
    return v->count;
}

const struct learn_version *learn_versions_newest(const struct learn_versions *v, size_t i)
{
    return i < v->count ? &v->items[v->count - 1 - i] : NULL;
}

const struct learn_version *learn_versions_current(const struct learn_versions *v)
{
    return v->current == NOBODY ? NULL : &v->items[v->current];
}
