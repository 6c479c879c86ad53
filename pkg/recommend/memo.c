/* Answers that are dear to find, kept for all MPAs and threads of the process. An answer depends on
 * nothing but its question, so that nobody can tell whether it was kept: neither who asked first
 * nor what was lost to a newer one changes a decision.
 *
 * A word has the answer in its lowest bits and the question in the others, so that one load or
 * store is all that threads have to agree on. Questions in a row lie in one cache line. */
#include "recommend/internal.h"

#include <stdatomic.h>

#include "base/random.h"

#define LINES    (1 << 17)
#define PER_LINE 8
#define ANSWER   ((uint64_t)MEMO_MOST)

static _Atomic uint64_t words[LINES][PER_LINE];

uint64_t recommend_memo_question(const double *parts, size_t count)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < count; i++) {
        union {
            double number;
            uint64_t bits;
        } part = {parts[i]};
        hash ^= part.bits;
        hash = random_mix(&hash);
    }
    return hash;
}

static _Atomic uint64_t *word_of(uint64_t question, size_t at, uint64_t *tag)
{
    uint64_t line = question + at / PER_LINE, hash = random_mix(&line);
    *tag = hash & ~ANSWER;
    return &words[hash >> 40 & (LINES - 1)][at % PER_LINE];
}

unsigned recommend_memo_get(uint64_t question, size_t at)
{
    uint64_t tag, word = atomic_load_explicit(word_of(question, at, &tag), memory_order_relaxed);
    return (word & ~ANSWER) == tag ? (unsigned)(word & ANSWER) : 0;
}

void recommend_memo_put(uint64_t question, size_t at, unsigned answer)
{
    uint64_t tag;
    _Atomic uint64_t *word = word_of(question, at, &tag);
    atomic_store_explicit(word, tag | answer, memory_order_relaxed);
}
