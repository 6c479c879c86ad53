/* pkg/timeline: what is kept, and in how much memory. */
#include "timeline/timeline.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define START_MS    1767225600000 /* 2026-01-01T00:00:00Z */
#define INTERVAL_MS 15000

static void add(struct timeline_series *s, int64_t time_ms, float value)
{
    struct timeline_point point = {.time_ms = time_ms};
    for (int i = 0; i < TIMELINE_COLUMNS; i++)
        point.figures[i] = value + (float)i;
    timeline_add(s, &point, INTERVAL_MS / 2);
}

static void mark(struct timeline_series *s, int64_t time_ms, const char *text)
{
    timeline_mark(s, &(struct timeline_mark){.time_ms = time_ms,
                                             .kind = TIMELINE_DECISION,
                                             .applied = true,
                                             .title = "scale up",
                                             .text = text,
                                             .recommender = "threshold",
                                             .from_replicas = 1,
                                             .to_replicas = 2,
                                             .from_cpu = 100,
                                             .to_cpu = NAN});
}

struct seen {
    size_t count;
    int64_t first_ms, last_ms;
    float last;
    char text[TIMELINE_TEXT + 1], title[TIMELINE_NAME + 1];
    uint64_t number;
};

static void on_point(void *arg, const struct timeline_point *point)
{
    struct seen *seen = arg;
    assert_true(seen->count == 0 || point->time_ms > seen->last_ms);
    if (seen->count++ == 0)
        seen->first_ms = point->time_ms;
    seen->last_ms = point->time_ms;
    seen->last = point->figures[0];
    for (int i = 0; i < TIMELINE_COLUMNS; i++)
        assert_true(point->figures[i] == point->figures[0] + (float)i);
}

static void on_mark(void *arg, const struct timeline_mark *m)
{
    struct seen *seen = arg;
    assert_true(m->number > seen->number);
    if (seen->count++ == 0)
        seen->first_ms = m->time_ms;
    seen->last_ms = m->time_ms;
    seen->number = m->number;
    snprintf(seen->text, sizeof(seen->text), "%s", m->text);
    snprintf(seen->title, sizeof(seen->title), "%s", m->title);
}

static struct seen points(const struct timeline_series *s, int64_t since_ms)
{
    struct seen seen = {0};
    timeline_points(s, since_ms, on_point, &seen);
    return seen;
}

static struct seen marks(const struct timeline_series *s, int64_t since_ms)
{
    struct seen seen = {0};
    timeline_marks(s, since_ms, on_mark, &seen);
    return seen;
}

/* --- what is kept ---------------------------------------------------------------------------- */
static void test_points_come_back(void **state)
{
    (void)state;
    struct timeline *t = timeline_new(NULL);
    struct timeline_series *s = timeline_add_series(t);
    assert_int_equal(points(s, 0).count, 0);
    for (int i = 0; i < 100; i++)
        add(s, START_MS + i * INTERVAL_MS, (float)i);
    struct seen all = points(s, 0), newer = points(s, START_MS + 97 * INTERVAL_MS);
    assert_int_equal(all.count, 100);
    assert_true(all.first_ms == START_MS && all.last_ms == START_MS + 99 * INTERVAL_MS);
    assert_int_equal(newer.count, 2);
    assert_true(newer.first_ms == START_MS + 98 * INTERVAL_MS && newer.last == 99);

    struct timeline_point last[3];
    assert_int_equal(timeline_newest(s, last, 3), 3);
    assert_true(last[0].figures[0] == 97 && last[2].figures[0] == 99);
    timeline_remove_series(s);
    timeline_free(t);
}

/* An MPA that is decided on again within its interval has one point of it. */
static void test_the_same_interval_again(void **state)
{
    (void)state;
    struct timeline *t = timeline_new(NULL);
    struct timeline_series *s = timeline_add_series(t);
    for (int i = 0; i < 40; i++) {
        add(s, START_MS + i * INTERVAL_MS, 0);
        add(s, START_MS + i * INTERVAL_MS + 20, (float)i);
    }
    struct seen all = points(s, 0);
    assert_int_equal(all.count, 40);
    assert_true(all.last == 39 && all.last_ms == START_MS + 39 * INTERVAL_MS + 20);
    timeline_remove_series(s);
    timeline_free(t);
}

/* A clock that was set back, or far ahead, breaks nothing. */
static void test_times_that_jump(void **state)
{
    (void)state;
    struct timeline *t = timeline_new(NULL);
    struct timeline_series *s = timeline_add_series(t);
    add(s, START_MS, 1);
    add(s, START_MS + (int64_t)100 * 86400000, 2);
    struct seen all = points(s, 0);
    assert_int_equal(all.count, 2);
    assert_true(all.last_ms - all.first_ms == (int64_t)100 * 86400000);
    add(s, START_MS, 3);
    assert_int_equal(points(s, START_MS).count, 1);
    timeline_remove_series(s);
    timeline_free(t);
}

static void test_marks_come_back(void **state)
{
    (void)state;
    struct timeline *t = timeline_new(NULL);
    struct timeline_series *a = timeline_add_series(t), *b = timeline_add_series(t);
    mark(a, START_MS, "first");
    mark(b, START_MS + 1, "of another");
    mark(a, START_MS + 2, "second");
    struct seen all = marks(a, 0), newer = marks(a, START_MS), after = {0};
    assert_int_equal(all.count, 2);
    assert_string_equal(all.text, "second");
    assert_string_equal(all.title, "scale up");
    assert_int_equal(newer.count, 1);
    assert_int_equal(timeline_last_mark(t), 3);
    timeline_marks_after(a, 1, on_mark, &after);
    assert_int_equal(after.count, 1);
    assert_int_equal(after.number, 3);
    timeline_remove_series(a);
    timeline_remove_series(b);
    timeline_free(t);
}

/* A text is cut between characters. */
static void test_a_long_text(void **state)
{
    (void)state;
    char text[TIMELINE_TEXT + 40];
    struct timeline *t = timeline_new(NULL);
    struct timeline_series *s = timeline_add_series(t);
    memset(text, 'x', sizeof(text));
    memcpy(text + TIMELINE_TEXT - 1, "→", 3);
    text[sizeof(text) - 1] = '\0';
    mark(s, START_MS, text);
    assert_int_equal(strlen(marks(s, 0).text), TIMELINE_TEXT - 1);
    timeline_remove_series(s);
    timeline_free(t);
}

/* --- in how much memory ---------------------------------------------------------------------- */
static void test_the_oldest_go_first(void **state)
{
    (void)state;
    struct timeline *t =
        timeline_new(&(struct timeline_limits){.point_bytes = 8192, .mark_bytes = 4096});
    struct timeline_series *quiet = timeline_add_series(t), *busy = timeline_add_series(t);
    add(quiet, START_MS, 1);
    mark(quiet, START_MS, "long ago");
    for (int i = 1; i < 1000; i++) {
        add(busy, START_MS + i * INTERVAL_MS, (float)i);
        mark(busy, START_MS + i * INTERVAL_MS, "now");
        assert_true(timeline_bytes(t) < 8192 + 4096 + 512);
    }
    assert_int_equal(points(quiet, 0).count, 0);
    assert_int_equal(marks(quiet, 0).count, 0);
    struct seen left = points(busy, 0);
    assert_true(left.count > 100 && left.count < 200);
    assert_true(left.last == 999 &&
                left.first_ms == left.last_ms - (int64_t)(left.count - 1) * INTERVAL_MS);
    assert_true(marks(busy, 0).count > 10);
    add(quiet, START_MS + 1000 * INTERVAL_MS, 1); /* it may come again */
    assert_int_equal(points(quiet, 0).count, 1);
    timeline_remove_series(quiet);
    timeline_remove_series(busy);
    timeline_free(t);
}

static void test_one_has_no_more_than_its_share(void **state)
{
    (void)state;
    struct timeline *t = timeline_new(&(struct timeline_limits){.points = 160, .marks = 5});
    struct timeline_series *s = timeline_add_series(t);
    for (int i = 0; i < 5000; i++) {
        add(s, START_MS + i * INTERVAL_MS, (float)i);
        mark(s, START_MS + i * INTERVAL_MS, "again");
    }
    struct seen left = points(s, 0);
    assert_true(left.count > 160 - 16 && left.count <= 160);
    assert_true(left.last == 4999);
    assert_int_equal(marks(s, 0).count, 5);
    timeline_remove_series(s);
    timeline_free(t);
}

static void test_what_goes_gives_back(void **state)
{
    (void)state;
    struct timeline *t = timeline_new(NULL);
    struct timeline_series *stays = timeline_add_series(t);
    add(stays, START_MS, 1);
    size_t before = timeline_bytes(t);
    for (int round = 0; round < 3; round++) {
        struct timeline_series *goes = timeline_add_series(t);
        for (int i = 0; i < 500; i++) {
            add(goes, START_MS + i * INTERVAL_MS, 1);
            mark(goes, START_MS + i * INTERVAL_MS, "something");
        }
        assert_true(timeline_bytes(t) > before + (size_t)500 * 40);
        timeline_remove_series(goes);
        assert_int_equal(timeline_bytes(t), before);
    }
    assert_int_equal(points(stays, 0).count, 1);
    timeline_remove_series(stays);
    timeline_remove_series(NULL);
    timeline_free(t);
}

/* The promise: 10,000 MPAs cost at most 16 MiB, by our own count and by the allocator's. */
static void test_ten_thousand(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    struct timeline_series **all = xcalloc(COUNT, sizeof(*all));
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct timeline *t = timeline_new(NULL);
    for (int i = 0; i < COUNT; i++)
        all[i] = timeline_add_series(t);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < COUNT; i++) {
            add(all[i], START_MS + round * INTERVAL_MS, 1);
            if ((i + round) % 5 == 0)
                mark(all[i], START_MS + round * INTERVAL_MS,
                     "p99 412ms over goal 300ms at 91% CPU: cpu 250m → 500m");
        }
    }
    size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    assert_true(timeline_bytes(t) <= (size_t)16 << 20);
    if (after > before) /* a sanitizer's allocator does not tell */
        assert_true(after - before <= (size_t)16 << 20);
    struct seen one = points(all[COUNT - 1], 0), other = points(all[0], 0);
    assert_true(one.count >= 12 && other.count >= 12);
    for (int i = 0; i < COUNT; i++)
        timeline_remove_series(all[i]);
    assert_true(timeline_bytes(t) < 1024);
    timeline_free(t);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_come_back),
        cmocka_unit_test(test_the_same_interval_again),
        cmocka_unit_test(test_times_that_jump),
        cmocka_unit_test(test_marks_come_back),
        cmocka_unit_test(test_a_long_text),
        cmocka_unit_test(test_the_oldest_go_first),
        cmocka_unit_test(test_one_has_no_more_than_its_share),
        cmocka_unit_test(test_what_goes_gives_back),
        cmocka_unit_test(test_ten_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
