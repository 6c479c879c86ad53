/* A seccomp filter: a program for the kernel's packet filter, which it runs before each system
 * call.
 *
 * The list is what strace saw of the controller on a real cluster, on its simulated one and in the
 * unit tests, with what glibc, OpenSSL, curl and libuv do in its place on other kernels. */
#include "base/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0 /* no list was made for it */
#endif

#if ARCH != 0 && !defined(SANITIZED)
#define CAN_CONFINE
#endif

#ifdef CAN_CONFINE
#define X32_BIT 0x40000000u /* another numbering of the same calls, on x86-64 */

/* In the order of how often they are made: each that is not meant costs two instructions. */
static const uint16_t allowed[] = {
    SYS_read,
    SYS_write,
    SYS_futex,
    SYS_epoll_pwait,
    SYS_recvfrom,
    SYS_sendto,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_readv,
    SYS_writev,
    SYS_epoll_ctl,
    SYS_ppoll,
    SYS_close,
    SYS_fcntl,
    SYS_ioctl,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    /* files */
    SYS_openat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_lseek,
    SYS_pread64,
    SYS_pwrite64,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_dup,
    SYS_dup3,
    /* network */
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept4,
    SYS_accept,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_socketpair,
    SYS_sendmmsg,
    SYS_recvmmsg,
    SYS_shutdown,
    SYS_pselect6,
    SYS_epoll_create1,
    SYS_eventfd2,
    SYS_pipe2,
    /* threads and signals */
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_getaffinity,
    SYS_sched_setscheduler,
    SYS_sched_getscheduler,
    SYS_sched_getparam,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_sched_yield,
    SYS_membarrier,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_restart_syscall,
    /* what there is */
    SYS_gettid,
    SYS_getpid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrandom,
    SYS_prlimit64,
    SYS_getrusage,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getcpu,
#ifdef __x86_64__ /* has the older forms as well */
    SYS_epoll_wait,
    SYS_poll,
    SYS_select,
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_rename,
    SYS_unlink,
    SYS_dup2,
    SYS_epoll_create,
    SYS_eventfd,
    SYS_pipe,
    SYS_getrlimit,
    SYS_time,
#endif
};

/* Of these nobody makes one by mistake. */
static const uint16_t deadly[] = {
    SYS_execve,          SYS_execveat, SYS_ptrace,      SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_memfd_create,    SYS_bpf,      SYS_init_module, SYS_finit_module,     SYS_kexec_load,
    SYS_mount,           SYS_unshare,  SYS_setns,       SYS_userfaultfd,      SYS_keyctl,
    SYS_perf_event_open,
};

static const uint16_t families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};

/* --- the filter ------------------------------------------------------------------------------ */
#define MOST (32 + 2 * (ARRAY_LEN(allowed) + ARRAY_LEN(deadly) + ARRAY_LEN(families)))

struct program {
    struct sock_filter steps[MOST];
    uint16_t count;
};

static void add(struct program *p, struct sock_filter step)
{
    if (p->count >= MOST)
        abort();
    p->steps[p->count++] = step;
}

static void load(struct program *p, size_t at)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at));
}

static void end(struct program *p, uint32_t verdict)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void end_where(struct program *p, uint32_t is, uint32_t verdict)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, is, 0, 1));
    end(p, verdict);
}

static void end_where_any(struct program *p, const uint16_t *numbers, size_t n, uint32_t verdict)
{
    for (size_t i = 0; i < n; i++)
        end_where(p, numbers[i], verdict);
}

/* The low half of a call's argument; both machines keep that one first. */
static size_t argument(size_t i)
{
    return offsetof(struct seccomp_data, args) + i * sizeof(uint64_t);
}

/* Threads, but no processes. glibc asks clone3 first, whose flags a filter cannot see. */
static void judge_clone(struct program *p)
{
    end_where(p, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    load(p, argument(0));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
    end(p, SECCOMP_RET_ALLOW);
    end(p, SECCOMP_RET_ERRNO | EPERM);
}

static void judge_socket(struct program *p)
{
    uint8_t past = 2 * ARRAY_LEN(families) + 2;
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, past));
    load(p, argument(0));
    end_where_any(p, families, ARRAY_LEN(families), SECCOMP_RET_ALLOW);
    end(p, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static void make(struct program *p)
{
    load(p, offsetof(struct seccomp_data, arch));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    end(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
    end(p, SECCOMP_RET_KILL_PROCESS);
    end_where_any(p, allowed, ARRAY_LEN(allowed), SECCOMP_RET_ALLOW);
    judge_clone(p);
    judge_socket(p);
    end_where_any(p, deadly, ARRAY_LEN(deadly), SECCOMP_RET_KILL_PROCESS);
    end(p, SECCOMP_RET_ERRNO | EPERM);
}

int confine(struct error *err)
{
    struct program p = {.count = 0};
    make(&p);
    struct sock_fprog filter = {.len = p.count, .filter = p.steps};
    /* Without it only root may filter itself; and a set-user-id program gets nothing any more. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
        return error_set(err, ERROR_UNAVAILABLE, "the kernel takes no filter of system calls: %s",
                         strerror(errno));
    return 0;
}
#else
int confine(struct error *err)
{
    return error_set(err, ERROR_UNAVAILABLE,
                     "there is no filter of system calls for this machine or this build");
}
#endif
