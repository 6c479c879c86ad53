#include "timeline/timeline.h"

#include <math.h>
#include <string.h>
#include <sys/queue.h>

#define POINT_BYTES  ((size_t)11 << 20)
#define MARK_BYTES   ((size_t)3 << 20)
#define MAX_POINTS   6000
#define MAX_MARKS    1000
#define CHUNK_POINTS 16 /* of one series: four minutes at the usual interval */
#define BLOCK_BYTES  16 /* what an allocation costs besides */

/* Points of one series in a row. Times count from the first one, so that they fit into 32 bits. */
struct chunk {
    TAILQ_ENTRY(chunk) all; /* of all series, oldest first */
    TAILQ_ENTRY(chunk) own; /* of the series, likewise */
    struct timeline_series *series;
    int64_t base_ms;
    uint32_t count;
    uint32_t after_ms[CHUNK_POINTS];
    float figures[CHUNK_POINTS][TIMELINE_COLUMNS];
};
TAILQ_HEAD(chunks, chunk);

/* The texts follow it: title, text and recommender, each with its NUL. */
struct record {
    TAILQ_ENTRY(record) all;
    TAILQ_ENTRY(record) own;
    struct timeline_series *series;
    struct timeline_mark mark;
    uint32_t bytes;
    char texts[];
};
TAILQ_HEAD(records, record);

struct timeline_series {
    struct timeline *timeline;
    struct chunks chunks;
    struct records records;
    uint32_t chunk_count, record_count;
};

struct timeline {
    struct timeline_limits limits;
    struct chunks chunks;
    struct records records;
    size_t chunk_bytes, record_bytes, series_bytes;
    uint64_t last_mark;
};

#define CHUNK_BYTES  (sizeof(struct chunk) + BLOCK_BYTES)
#define SERIES_BYTES (sizeof(struct timeline_series) + BLOCK_BYTES)

/* --- life ------------------------------------------------------------------------------------ */
static size_t or_else(size_t value, size_t otherwise)
{
    return value ? value : otherwise;
}

struct timeline *timeline_new(const struct timeline_limits *limits)
{
    static const struct timeline_limits none;
    const struct timeline_limits *l = limits ? limits : &none;
    struct timeline *t = xcalloc(1, sizeof(*t));
    t->limits = (struct timeline_limits){
        .point_bytes = or_else(l->point_bytes, POINT_BYTES),
        .mark_bytes = or_else(l->mark_bytes, MARK_BYTES),
        .points = or_else(l->points, MAX_POINTS),
        .marks = or_else(l->marks, MAX_MARKS),
    };
    TAILQ_INIT(&t->chunks);
    TAILQ_INIT(&t->records);
    return t;
}

void timeline_free(struct timeline *t)
{
    free(t);
}

struct timeline_series *timeline_add_series(struct timeline *t)
{
    struct timeline_series *s = xcalloc(1, sizeof(*s));
    s->timeline = t;
    TAILQ_INIT(&s->chunks);
    TAILQ_INIT(&s->records);
    t->series_bytes += SERIES_BYTES;
    return s;
}

static void unlink_chunk(struct chunk *chunk)
{
    struct timeline_series *s = chunk->series;
    TAILQ_REMOVE(&s->timeline->chunks, chunk, all);
    TAILQ_REMOVE(&s->chunks, chunk, own);
    s->chunk_count--;
    s->timeline->chunk_bytes -= CHUNK_BYTES;
}

static void drop_record(struct record *record)
{
    struct timeline_series *s = record->series;
    TAILQ_REMOVE(&s->timeline->records, record, all);
    TAILQ_REMOVE(&s->records, record, own);
    s->record_count--;
    s->timeline->record_bytes -= record->bytes;
    free(record);
}

void timeline_remove_series(struct timeline_series *s)
{
    struct chunk *chunk;
    struct record *record;
    if (s == NULL)
        return;
    while ((chunk = TAILQ_FIRST(&s->chunks))) {
        unlink_chunk(chunk); /* NOLINT(clang-analyzer-unix.Malloc): a freed one is off the list */
        free(chunk);
    }
    while ((record = TAILQ_FIRST(&s->records)))
        drop_record(record); /* NOLINT(clang-analyzer-unix.Malloc): likewise */
    s->timeline->series_bytes -= SERIES_BYTES;
    free(s);
}

/* --- points ---------------------------------------------------------------------------------- */
/* What is taken from another, or from its own past, need not be allocated. */
static struct chunk *take_chunk(struct timeline_series *s)
{
    struct timeline *t = s->timeline;
    bool full = t->chunk_bytes + CHUNK_BYTES > t->limits.point_bytes;
    bool long_enough = (size_t)s->chunk_count * CHUNK_POINTS >= t->limits.points;
    struct chunk *old = long_enough ? TAILQ_FIRST(&s->chunks)
                        : full      ? TAILQ_FIRST(&t->chunks)
                                    : NULL;
    if (old)
        unlink_chunk(old);
    return old ? old : xcalloc(1, sizeof(*old));
}

static struct chunk *begin_chunk(struct timeline_series *s, int64_t base_ms)
{
    struct chunk *chunk = take_chunk(s);
    struct timeline *t = s->timeline;
    chunk->series = s;
    chunk->base_ms = base_ms;
    chunk->count = 0;
    TAILQ_INSERT_TAIL(&t->chunks, chunk, all);
    TAILQ_INSERT_TAIL(&s->chunks, chunk, own);
    s->chunk_count++;
    t->chunk_bytes += CHUNK_BYTES;
    return chunk;
}

static int64_t time_of(const struct chunk *chunk, uint32_t i)
{
    return chunk->base_ms + chunk->after_ms[i];
}

static bool fits(const struct chunk *chunk, int64_t time_ms)
{
    return chunk && chunk->count < CHUNK_POINTS && time_ms >= chunk->base_ms &&
           time_ms - chunk->base_ms <= UINT32_MAX;
}

void timeline_add(struct timeline_series *s, const struct timeline_point *point, int64_t least_ms)
{
    struct chunk *chunk = TAILQ_LAST(&s->chunks, chunks);
    if (chunk && point->time_ms >= chunk->base_ms &&
        point->time_ms - time_of(chunk, chunk->count - 1) < least_ms)
        chunk->count--;
    if (!fits(chunk, point->time_ms))
        chunk = begin_chunk(s, point->time_ms);
    chunk->after_ms[chunk->count] = (uint32_t)(point->time_ms - chunk->base_ms);
    memcpy(chunk->figures[chunk->count], point->figures, sizeof(point->figures));
    chunk->count++;
}

static struct timeline_point point_at(const struct chunk *chunk, uint32_t i)
{
    struct timeline_point point = {.time_ms = time_of(chunk, i)};
    memcpy(point.figures, chunk->figures[i], sizeof(point.figures));
    return point;
}

void timeline_points(const struct timeline_series *s, int64_t since_ms,
                     void (*each)(void *arg, const struct timeline_point *point), void *arg)
{
    const struct chunk *chunk;
    TAILQ_FOREACH(chunk, &s->chunks, own)
    {
        for (uint32_t i = 0; i < chunk->count; i++) {
            if (time_of(chunk, i) <= since_ms)
                continue;
            struct timeline_point point = point_at(chunk, i);
            each(arg, &point);
        }
    }
}

size_t timeline_newest(const struct timeline_series *s, struct timeline_point *out, size_t max)
{
    size_t held = 0, at = 0;
    const struct chunk *chunk;
    TAILQ_FOREACH(chunk, &s->chunks, own)
    held += chunk->count;
    size_t skip = held > max ? held - max : 0;
    TAILQ_FOREACH(chunk, &s->chunks, own)
    for (uint32_t i = 0; i < chunk->count; i++, at++)
        if (at >= skip)
            out[at - skip] = point_at(chunk, i);
    return held - skip;
}

/* --- marks ----------------------------------------------------------------------------------- */
static void make_room(struct timeline_series *s, size_t bytes)
{
    struct timeline *t = s->timeline;
    struct record *oldest;
    while (t->record_bytes + bytes > t->limits.mark_bytes && (oldest = TAILQ_FIRST(&t->records)))
        drop_record(oldest); /* NOLINT(clang-analyzer-unix.Malloc): likewise */
    while (s->record_count >= t->limits.marks)
        drop_record(TAILQ_FIRST(&s->records)); /* NOLINT(clang-analyzer-unix.Malloc): likewise */
}

/* As much of a text as is kept, and not a part of a character. */
static size_t kept(const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);
    if (len <= max)
        return len;
    len = max;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

static const char *put_text(char **at, const char *text, size_t len)
{
    char *begin = *at;
    memcpy(begin, text, len);
    begin[len] = '\0';
    *at = begin + len + 1;
    return begin;
}

void timeline_mark(struct timeline_series *s, const struct timeline_mark *mark)
{
    struct timeline *t = s->timeline;
    const char *who = mark->recommender ? mark->recommender : "";
    size_t title = kept(mark->title, TIMELINE_NAME), text = kept(mark->text, TIMELINE_TEXT);
    size_t name = kept(who, TIMELINE_NAME);
    size_t size = sizeof(struct record) + title + text + name + 3;
    make_room(s, size + BLOCK_BYTES);
    struct record *record = xcalloc(1, size);
    char *at = record->texts;
    record->series = s;
    record->bytes = (uint32_t)(size + BLOCK_BYTES);
    record->mark = *mark;
    record->mark.number = ++t->last_mark;
    record->mark.title = put_text(&at, mark->title, title);
    record->mark.text = put_text(&at, mark->text, text);
    record->mark.recommender = put_text(&at, who, name);
    TAILQ_INSERT_TAIL(&t->records, record, all);
    TAILQ_INSERT_TAIL(&s->records, record, own);
    s->record_count++;
    t->record_bytes += record->bytes;
}

void timeline_marks(const struct timeline_series *s, int64_t since_ms,
                    void (*each)(void *arg, const struct timeline_mark *mark), void *arg)
{
    const struct record *record;
    TAILQ_FOREACH(record, &s->records, own)
    if (record->mark.time_ms > since_ms)
        each(arg, &record->mark);
}

void timeline_marks_after(const struct timeline_series *s, uint64_t number,
                          void (*each)(void *arg, const struct timeline_mark *mark), void *arg)
{
    const struct record *last = TAILQ_LAST(&s->records, records), *record;
    if (last == NULL || last->mark.number <= number)
        return;
    TAILQ_FOREACH(record, &s->records, own)
    if (record->mark.number > number)
        each(arg, &record->mark);
}

/* --- how much -------------------------------------------------------------------------------- */
uint64_t timeline_last_mark(const struct timeline *t)
{
    return t->last_mark;
}

size_t timeline_bytes(const struct timeline *t)
{
    return sizeof(*t) + t->chunk_bytes + t->record_bytes + t->series_bytes;
}
