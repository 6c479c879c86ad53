/* A program that a failure breaks in each way that tests/torture/run must see. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void test_unchecked_memory(void **state)
{
    (void)state;
    volatile char *p = malloc(100);
    p[0] = 1;
    free((void *)(uintptr_t)p);
}

static void test_unchecked_call(void **state)
{
    static int table[1];
    (void)state;
    int fd = open("/dev/null", O_RDONLY);
    volatile int *slot = fd < 0 ? NULL : table;
    *slot = 1;
    close(fd);
}

static void test_waits_for_ever(void **state)
{
    char c;
    (void)state;
    int fds[2];
    if (pipe2(fds, 0) != 0)
        for (;;)
            pause();
    if (write(fds[1], "x", 1) == 1 && read(fds[0], &c, 1) == 1)
        close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unchecked_memory),
        cmocka_unit_test(test_unchecked_call),
        cmocka_unit_test(test_waits_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
