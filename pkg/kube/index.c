/* Chained hash tables. The links are in the records themselves, so that an index costs 24 bytes
 * and one bucket per record and no allocation. Several records may have one key. */
#include "kube/internal.h"

#include <string.h>

/* The strings up to the NULL, each with its end, so that ("a", "bc") is not ("ab", "c"). */
uint64_t kube_hash(const char *first, ...)
{
    va_list rest;
    uint64_t hash = 0;
    va_start(rest, first);
    for (const char *s = first; s; s = va_arg(rest, const char *))
        hash = (hash ^ hash_bytes(s, strlen(s) + 1)) * 0x9e3779b97f4a7c15u;
    va_end(rest);
    return hash ^ hash >> 32;
}

static void link_in(struct kube_index *index, struct kube_node *node)
{
    struct kube_node **bucket = &index->buckets[node->hash & (index->cap - 1)];
    node->next = *bucket;
    node->link = bucket;
    if (node->next)
        node->next->link = &node->next;
    *bucket = node;
}

static void index_resize(struct kube_index *index, size_t cap)
{
    struct kube_index old = *index;
    index->cap = cap;
    index->buckets = xcalloc(cap, sizeof(struct kube_node *));
    for (size_t i = 0; i < old.cap; i++) {
        struct kube_node *node = old.buckets[i];
        while (node) {
            struct kube_node *next = node->next;
            link_in(index, node);
            node = next;
        }
    }
    free(old.buckets);
}

void kube_index_add(struct kube_index *index, struct kube_node *node, uint64_t hash)
{
    if (index->count >= index->cap)
        index_resize(index, index->cap ? index->cap * 2 : 64);
    node->hash = hash;
    link_in(index, node);
    index->count++;
}

void kube_index_remove(struct kube_index *index, struct kube_node *node)
{
    if (node->next)
        node->next->link = node->link;
    *node->link = node->next;
    index->count--;
}

static struct kube_node *same_hash(struct kube_node *node, uint64_t hash)
{
    while (node && node->hash != hash)
        node = node->next;
    return node;
}

struct kube_node *kube_index_first(const struct kube_index *index, uint64_t hash)
{
    if (index->count == 0)
        return NULL;
    return same_hash(index->buckets[hash & (index->cap - 1)], hash);
}

struct kube_node *kube_index_next(const struct kube_node *node)
{
    return same_hash(node->next, node->hash);
}

struct kube_node *kube_index_walk(const struct kube_index *index, const struct kube_node *node)
{
    size_t bucket = 0;
    if (node) {
        if (node->next)
            return node->next;
        bucket = (node->hash & (index->cap - 1)) + 1;
    }
    for (; bucket < index->cap; bucket++)
        if (index->buckets[bucket])
            return index->buckets[bucket];
    return NULL;
}

void kube_index_free(struct kube_index *index)
{
    free(index->buckets);
    *index = (struct kube_index){0};
}
