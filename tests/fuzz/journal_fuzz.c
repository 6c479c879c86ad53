/* Any bytes as a journal: told with the line that is wrong, or repeated. Half of them get a right
 * beginning, so that what follows it is reached. */
#include "journal/journal.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char start[] =
    "{\"line\":\"setting\",\"journal\":1,\"begins\":true,\"resize_cooldown_s\":10,"
    "\"resize_up_factor\":4,\"resize_down_factor\":0.5,\"resize_threshold\":0.1,"
    "\"default_cpu_utilization\":70}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_step(void *arg, const struct journal_step *step)
{
    size_t *steps = arg;
    if (!step->key || !step->seen || (step->same && !step->known))
        abort();
    return ++*steps < 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct error err = {0};
    size_t steps = 0;
    int fd = memfd_create("journal", MFD_CLOEXEC);
    bool started = size > 0 && data[0] % 2;
    if (fd < 0 || (started && write(fd, start, strlen(start)) < 0) ||
        (size > 0 && write(fd, data + 1, size - 1) < 0))
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct journal_replay replay = {.on_step = on_step, .arg = &steps};
    if (journal_replay(path, &replay, &err) < 0 && err.message[0] == '\0')
        abort();
    close(fd);
    return 0;
}
