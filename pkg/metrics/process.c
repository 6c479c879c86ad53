/* The process_* metrics, as https://prometheus.io/docs/instrumenting/writing_clientlibs/ names
 * them. What /proc does not tell is left out. */
#include "metrics/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_STAT        4096
#define STAT_START_TIME 22 /* the field of /proc/self/stat, counted from 1 */

static double clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The n-th word of a line, counted from 1, as a number; 0 for none. */
static double nth_number(const char *text, int n)
{
    while (--n > 0 && text && (text = strchr(text, ' ')) != NULL)
        text++;
    return text ? strtod(text, NULL) : 0;
}

static void tell_memory(void *arg, struct metrics_family *family)
{
    (void)arg;
    cleanup_free char *statm = file_read("/proc/self/statm", MAX_STAT, NULL, NULL);
    double pages = statm ? nth_number(statm, 2) : 0;
    if (pages > 0)
        metrics_set(family, pages * (double)sysconf(_SC_PAGESIZE), NULL);
}

static void tell_cpu(void *arg, struct metrics_family *family)
{
    (void)arg;
    metrics_set(family, clock_s(CLOCK_PROCESS_CPUTIME_ID), NULL);
}

static void tell_fds(void *arg, struct metrics_family *family)
{
    (void)arg;
    DIR *fds = opendir("/proc/self/fd");
    if (fds == NULL)
        return;
    int count = -3; /* ".", ".." and the one it is read by */
    /* cppcheck-suppress readdirCalled ; the stream is ours alone */
    while (readdir(fds))
        count++;
    closedir(fds);
    metrics_set(family, count, NULL);
}

/* The name of the program, which is the second field, may hold anything but ends at the last ")".
 */
static void tell_start(void *arg, struct metrics_family *family)
{
    (void)arg;
    cleanup_free char *stat = file_read("/proc/self/stat", MAX_STAT, NULL, NULL);
    const char *after_name = stat ? strrchr(stat, ')') : NULL;
    double ticks = after_name ? nth_number(after_name, STAT_START_TIME - 1) : 0;
    if (ticks <= 0)
        return;
    double since_boot_s = ticks / (double)sysconf(_SC_CLK_TCK);
    metrics_set(family, clock_s(CLOCK_REALTIME) - clock_s(CLOCK_BOOTTIME) + since_boot_s, NULL);
}

void metrics_register_process(struct metrics *m)
{
    static const struct metrics_spec specs[] = {
        {.name = "process_resident_memory_bytes",
         .help = "Resident memory size in bytes.",
         .type = METRICS_GAUGE,
         .collect = tell_memory},
        {.name = "process_cpu_seconds_total",
         .help = "Total user and system CPU time spent in seconds.",
         .type = METRICS_COUNTER,
         .collect = tell_cpu},
        {.name = "process_open_fds",
         .help = "Number of open file descriptors.",
         .type = METRICS_GAUGE,
         .collect = tell_fds},
        {.name = "process_start_time_seconds",
         .help = "Start time of the process since unix epoch in seconds.",
         .type = METRICS_GAUGE,
         .collect = tell_start},
    };
    for (size_t i = 0; i < ARRAY_LEN(specs); i++)
        metrics_register(m, &specs[i]);
}
