#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/base.h"

struct gang {
    void (*work)(void *arg, size_t i);
    void *arg;
    size_t count;
    atomic_size_t next;
};

size_t parallel_cores(void)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof(mine), &mine) < 0)
        return 1;
    int n = CPU_COUNT(&mine);
    return n > 0 ? (size_t)n : 1;
}

static void *take_turns(void *arg)
{
    struct gang *gang = arg;
    for (size_t i; (i = atomic_fetch_add(&gang->next, 1)) < gang->count;)
        gang->work(gang->arg, i);
    return NULL;
}

void parallel_for(size_t threads, size_t count, void (*work)(void *arg, size_t i), void *arg)
{
    struct gang gang = {.work = work, .arg = arg, .count = count};
    size_t helpers = threads < count ? threads : count, started = 0;
    helpers = helpers > 0 ? helpers - 1 : 0; /* this thread works as well */
    cleanup_free pthread_t *ids = xcalloc(helpers + 1, sizeof(*ids));
    /* Fewer threads than wanted are slower, not wrong. */
    while (started < helpers && pthread_create(&ids[started], NULL, take_turns, &gang) == 0)
        started++;
    take_turns(&gang);
    for (size_t i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
}
