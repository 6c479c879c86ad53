/* Preloaded into the controller: its clocks run as many times faster as the schedule says, its wall
 * clock jumps, and its disk is full when told. Nothing of the controller is changed for it.
 *
 * The file that CHAOS_CLOCK names has what is below, and changes while the controller runs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL

static volatile const struct control {
    int64_t begin_mono_ns, begin_wall_ns; /* when the schedule began */
    int64_t warp;
    int64_t jump_ns; /* of the wall clock */
    int64_t disk_at; /* no regular file grows beyond this size; -1: the disk has room */
} * control;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CHAOS_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    control = map == MAP_FAILED ? NULL : map;
}

static int is_wall(clockid_t id)
{
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
}

static int64_t now_ns(clockid_t id)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    int64_t gone = (t.tv_sec * SECOND_NS + t.tv_nsec - control->begin_mono_ns) * control->warp;
    return is_wall(id) ? control->begin_wall_ns + gone + control->jump_ns
                       : control->begin_mono_ns + gone;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int runs = is_wall(id) || id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE ||
               id == CLOCK_MONOTONIC_RAW || id == CLOCK_BOOTTIME;
    if (!control || !runs)
        return (int)syscall(SYS_clock_gettime, id, out);
    int64_t ns = now_ns(id);
    out->tv_sec = ns / SECOND_NS;
    out->tv_nsec = ns % SECOND_NS;
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    out->tv_sec = t.tv_sec;
    out->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

/* Rounded up: who wakes too early only sleeps again. */
static int shorter(int timeout_ms)
{
    int warp = control ? (int)control->warp : 1;
    return timeout_ms > 0 ? (timeout_ms + warp - 1) / warp : timeout_ms;
}

int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout_ms, const sigset_t *mask)
{
    return (int)syscall(SYS_epoll_pwait, fd, events, most, shorter(timeout_ms), mask, 8);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    return epoll_pwait(fd, events, most, timeout_ms, NULL);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return (int)syscall(SYS_poll, fds, count, shorter(timeout_ms));
}

/* What still fits is written, as a disk does that runs full. */
ssize_t write(int fd, const void *data, size_t len)
{
    struct stat about;
    int64_t most = control ? control->disk_at : -1;
    if (most >= 0 && fd > STDERR_FILENO && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        int64_t room = most - about.st_size;
        if (room <= 0) {
            errno = ENOSPC;
            return -1;
        }
        if ((int64_t)len > room)
            len = (size_t)room;
    }
    return syscall(SYS_write, fd, data, len);
}
