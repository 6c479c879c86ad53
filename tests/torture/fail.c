/* Loaded before a unit test, makes one allocation or one system call of it fail: the TORTURE_AT-th
 * since its tests began. With TORTURE_AT=0 none fails, but each place that one is made from, with
 * the way there, is written to TORTURE_FILE once, as "number name". When one has failed, or abort()
 * was called, by which library, is written there too. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEPTH  10
#define PLACES 65536 /* a power of two */

static bool active, allocations;
static long at = -1;
static long made;
static int report = -1;
static uint64_t places[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;

#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (!real) {                                                                                   \
        inside++;                                                                                  \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
        inside--;                                                                                  \
    }

static ssize_t put(const char *text)
{
    __typeof__(write) *real_write;
    *(void **)&real_write = dlsym(RTLD_NEXT, "write");
    return real_write(report, text, strlen(text));
}

static void tell(const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)!put(text);
}

static const char *library(void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "?";
}

/* What tests and sanitizers do for themselves is no concern of the program. */
static bool foreign(void *caller)
{
    const char *name = library(caller);
    return strstr(name, "libcmocka") || strstr(name, "libasan") || strstr(name, "libubsan");
}

static bool is_new_place(void)
{
    void *frames[DEPTH];
    int n = backtrace(frames, DEPTH);
    uint64_t hash = 1469598103934665603u;
    for (int i = 2; i < n; i++)
        hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    hash |= 1;
    for (uint64_t i = hash % PLACES;; i = (i + 1) % PLACES) {
        if (places[i] == hash)
            return false;
        if (places[i] == 0) {
            places[i] = hash;
            return true;
        }
    }
}

static bool fails(bool allocation, const char *name, void *caller)
{
    if (!active || inside || allocation != allocations)
        return false;
    inside++;
    bool failed = false;
    int saved = errno;
    pthread_mutex_lock(&lock);
    if (!foreign(caller)) {
        failed = ++made == at;
        if (at == 0 && is_new_place())
            tell("%ld %s\n", made, name);
        if (failed)
            tell("failed %s for %s\n", name, library(caller));
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    inside--;
    return failed;
}

#define CALLER __builtin_return_address(0)

/* --- the beginning and the end ------------------------------------------------------------------
 */
struct CMUnitTest;
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
                            void *set_up, void *tear_down);
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
                            void *set_up, void *tear_down)
{
    REAL(_cmocka_run_group_tests)
    const char *file = getenv("TORTURE_FILE"), *number = getenv("TORTURE_AT"),
               *kind = getenv("TORTURE_KIND");
    void *warm[2];
    backtrace(warm, 2); /* loads what it needs */
    if (!file || !number || !kind)
        return real(name, tests, n, set_up, tear_down);
    report = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    at = strtol(number, NULL, 10);
    allocations = strcmp(kind, "allocation") == 0;
    unsetenv("LD_PRELOAD"); /* what a test starts is not tortured */
    active = true;
    int failures = real(name, tests, n, set_up, tear_down);
    active = false;
    return failures;
}

void abort(void)
{
    __typeof__(abort) *real __attribute__((noreturn));
    active = false;
    if (report >= 0)
        tell("aborted by %s\n", library(CALLER));
    *(void **)&real = dlsym(RTLD_NEXT, "abort");
    real();
    __builtin_unreachable();
}

/* --- allocations
 * ---------------------------------------------------------------------------------- */
static char early[1 << 16]; /* until the real ones are known, which needs some itself */
static size_t early_used;

static void *take_early(size_t size)
{
    void *p = early + early_used;
    early_used += (size + 15) & ~(size_t)15;
    if (early_used > sizeof(early))
        _exit(99);
    return p;
}

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static void find_real(void)
{
    static bool finding;
    if (real_free || finding)
        return;
    finding = true;
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
}

void *malloc(size_t size)
{
    find_real();
    if (!real_malloc)
        return take_early(size);
    if (fails(true, "malloc", CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return real_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    find_real();
    if (!real_calloc)
        return take_early(n * size);
    if (fails(true, "calloc", CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return real_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    find_real();
    if (is_early(p)) {
        void *copy = real_malloc(size);
        memcpy(copy, p, size);
        return copy;
    }
    if (fails(true, "realloc", CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return real_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || fails(true, "reallocarray", CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    inside++;
    void *grown = realloc(p, bytes);
    inside--;
    return grown;
}

void free(void *p)
{
    find_real();
    if (real_free && !is_early(p))
        real_free(p);
}

/* --- system calls
 * --------------------------------------------------------------------------------- */
#define CALL(type, name, error, args, pass)                                                        \
    type name args                                                                                 \
    {                                                                                              \
        REAL(name)                                                                                 \
        if (fails(false, #name, CALLER)) {                                                         \
            errno = error;                                                                         \
            return -1;                                                                             \
        }                                                                                          \
        return real pass;                                                                          \
    }

CALL(ssize_t, read, EIO, (int fd, void *p, size_t n), (fd, p, n))
CALL(ssize_t, write, ENOSPC, (int fd, const void *p, size_t n), (fd, p, n))
CALL(ssize_t, readv, EIO, (int fd, const struct iovec *v, int n), (fd, v, n))
CALL(ssize_t, writev, ENOSPC, (int fd, const struct iovec *v, int n), (fd, v, n))
CALL(int, fsync, EIO, (int fd), (fd))
CALL(int, rename, EACCES, (const char *from, const char *to), (from, to))
CALL(int, unlink, EACCES, (const char *path), (path))
CALL(int, stat, EACCES, (const char *path, struct stat *out), (path, out))
CALL(int, fstat, EIO, (int fd, struct stat *out), (fd, out))
CALL(int, socket, EMFILE, (int family, int type, int protocol), (family, type, protocol))
CALL(int, connect, ENETUNREACH, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
CALL(int, bind, EADDRINUSE, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
CALL(int, listen, EADDRINUSE, (int fd, int backlog), (fd, backlog))
CALL(int, accept, EMFILE, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
CALL(int, accept4, EMFILE, (int fd, struct sockaddr *a, socklen_t *n, int f), (fd, a, n, f))
CALL(ssize_t, recv, ECONNRESET, (int fd, void *p, size_t n, int f), (fd, p, n, f))
CALL(ssize_t, recvmsg, ECONNRESET, (int fd, struct msghdr *m, int f), (fd, m, f))
CALL(ssize_t, send, EPIPE, (int fd, const void *p, size_t n, int f), (fd, p, n, f))
CALL(ssize_t, sendmsg, EPIPE, (int fd, const struct msghdr *m, int f), (fd, m, f))
CALL(int, getsockname, ENOBUFS, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
CALL(int, getsockopt, ENOBUFS, (int fd, int l, int o, void *v, socklen_t *n), (fd, l, o, v, n))
CALL(int, setsockopt, ENOBUFS, (int fd, int l, int o, const void *v, socklen_t n), (fd, l, o, v, n))
CALL(int, epoll_create1, EMFILE, (int flags), (flags))
CALL(int, epoll_ctl, ENOSPC, (int fd, int op, int to, struct epoll_event *e), (fd, op, to, e))
CALL(int, epoll_wait, EINTR, (int fd, struct epoll_event *e, int n, int t), (fd, e, n, t))
CALL(int, poll, EINTR, (struct pollfd * p, nfds_t n, int t), (p, n, t))
CALL(int, eventfd, EMFILE, (unsigned int v, int flags), (v, flags))
CALL(int, pipe2, EMFILE, (int fds[2], int flags), (fds, flags))

int close(int fd)
{
    REAL(close)
    int result = real(fd);
    if (fails(false, "close", CALLER)) { /* it is closed all the same, as by Linux */
        errno = EIO;
        return -1;
    }
    return result;
}

int open(const char *path, int flags, ...)
{
    REAL(open)
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fails(false, "open", CALLER)) {
        errno = EMFILE;
        return -1;
    }
    return real(path, flags, mode);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    REAL(getaddrinfo)
    return fails(false, "getaddrinfo", CALLER) ? EAI_MEMORY : real(node, service, hints, out);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    REAL(pthread_create)
    return fails(false, "pthread_create", CALLER) ? EAGAIN : real(thread, attr, run, arg);
}
