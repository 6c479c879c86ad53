/* Open addressing with linear probing; removal shifts the run back, so there are no tombstones. */
#include "base/base.h"

#include <string.h>

struct map_entry {
    char *key; /* NULL: empty */
    uint64_t hash;
    void *value;
};

uint64_t hash_bytes(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* The slot that holds the key, or the empty one where it belongs. */
static size_t find(const struct map *m, const char *key, uint64_t hash)
{
    size_t at = hash & (m->cap - 1);
    while (m->entries[at].key &&
           (m->entries[at].hash != hash || strcmp(m->entries[at].key, key) != 0))
        at = (at + 1) & (m->cap - 1);
    return at;
}

static void grow(struct map *m)
{
    struct map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->entries = xcalloc(m->cap, sizeof(*m->entries));
    for (size_t i = 0; i < old.cap; i++)
        if (old.entries[i].key)
            m->entries[find(m, old.entries[i].key, old.entries[i].hash)] = old.entries[i];
    free(old.entries);
}

void *map_get(const struct map *m, const char *key)
{
    if (m->count == 0)
        return NULL;
    return m->entries[find(m, key, hash_bytes(key, strlen(key)))].value;
}

void *map_put(struct map *m, const char *key, void *value)
{
    if ((m->count + 1) * 4 > m->cap * 3)
        grow(m);
    uint64_t hash = hash_bytes(key, strlen(key));
    struct map_entry *e = &m->entries[find(m, key, hash)];
    void *old = e->value;
    if (e->key == NULL) {
        *e = (struct map_entry){.key = xstrdup(key), .hash = hash};
        m->count++;
    }
    e->value = value;
    return old;
}

static void *take(struct map *m, size_t at)
{
    void *value = m->entries[at].value;
    free(m->entries[at].key);
    m->count--;
    size_t hole = at, mask = m->cap - 1;
    for (size_t i = (hole + 1) & mask; m->entries[i].key; i = (i + 1) & mask) {
        size_t home = m->entries[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->entries[hole] = m->entries[i];
            hole = i;
        }
    }
    m->entries[hole] = (struct map_entry){0};
    return value;
}

void *map_remove(struct map *m, const char *key)
{
    if (m->count == 0)
        return NULL;
    size_t at = find(m, key, hash_bytes(key, strlen(key)));
    return m->entries[at].key ? take(m, at) : NULL;
}

size_t map_next(const struct map *m, size_t at, const char **key, void **value)
{
    for (; at < m->cap; at++) {
        if (m->entries[at].key == NULL)
            continue;
        if (key)
            *key = m->entries[at].key;
        if (value)
            *value = m->entries[at].value;
        return at + 1;
    }
    return 0;
}

size_t map_remove_at(struct map *m, size_t at)
{
    take(m, at - 1);
    return at - 1;
}

void map_free(struct map *m, void (*free_value)(void *value))
{
    for (size_t i = 0; i < m->cap; i++) {
        if (m->entries[i].key && free_value)
            free_value(m->entries[i].value);
        free(m->entries[i].key);
    }
    free(m->entries);
    *m = (struct map){0};
}
