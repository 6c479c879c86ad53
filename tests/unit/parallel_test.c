#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/parallel.h"

#define ITEMS 1000

static void mark(void *arg, size_t i)
{
    int *times = arg;
    times[i]++;
}

static void test_every_item_once(void **state)
{
    (void)state;
    static const size_t threads[] = {0, 1, 2, 7, 2 * ITEMS};
    for (size_t t = 0; t < ARRAY_LEN(threads); t++) {
        int times[ITEMS + 1] = {0};
        parallel_for(threads[t], ITEMS, mark, times);
        for (size_t i = 0; i < ITEMS; i++)
            assert_int_equal(times[i], 1);
        assert_int_equal(times[ITEMS], 0);
    }
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    int times[1] = {0};
    parallel_for(4, 0, mark, times);
    assert_int_equal(times[0], 0);
}

static void test_there_is_a_core(void **state)
{
    (void)state;
    assert_true(parallel_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_there_is_a_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
