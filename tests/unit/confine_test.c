/* confine(): each trial in a process of its own, as nothing takes it back. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#define NO_FILTER 77 /* a sanitizer's build, or a kernel without */

/* How a confined process ends that runs the trial: its status, or minus the signal. */
static int run_confined(int (*trial)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct error err = {0};
        if (confine(&err) < 0)
            _exit(err.code == ERROR_UNAVAILABLE && *err.message ? NO_FILTER : 1);
        _exit(trial());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    int end = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    if (end == NO_FILTER)
        skip();
    return end;
}

static int fails_with(long result, int error)
{
    return result == -1 && errno == error ? 0 : 1;
}

/* --- what is gone ------------------------------------------------------------------------------
 */
static int fork_again(void)
{
    return fails_with(fork(), EPERM);
}

static int run_a_program(void)
{
    execl("/bin/true", "true", (char *)NULL);
    return 0;
}

static int look_into_the_parent(void)
{
    return (int)syscall(SYS_ptrace, 16 /* attach */, getppid(), 0, 0);
}

static int make_a_directory(void)
{
    return fails_with(syscall(SYS_mkdirat, AT_FDCWD, "/tmp/confined", 0700), EPERM);
}

static int open_raw_sockets(void)
{
    return fails_with(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT);
}

static int kill_the_parent(void)
{
    return fails_with(kill(getppid(), SIGKILL), EPERM);
}

static void test_what_is_gone(void **state)
{
    (void)state;
    assert_int_equal(run_confined(fork_again), 0);
    assert_int_equal(run_confined(run_a_program), -SIGSYS);
    assert_int_equal(run_confined(look_into_the_parent), -SIGSYS);
    assert_int_equal(run_confined(make_a_directory), 0);
    assert_int_equal(run_confined(open_raw_sockets), 0);
    assert_int_equal(run_confined(kill_the_parent), 0);
}

/* --- what stays ----------------------------------------------------------------------------------
 */
static int resolve_a_name(void)
{
    struct addrinfo *found = NULL;
    int code = getaddrinfo("localhost", "80", NULL, &found);
    if (code == 0)
        freeaddrinfo(found);
    return code == 0 || code == EAI_NONAME || code == EAI_AGAIN ? 0 : 1;
}

static void *in_a_thread(void *arg)
{
    *(int *)arg = fails_with(fork(), EPERM);
    return NULL;
}

/* A thread can be begun, and is confined as well. */
static int begin_a_thread(void)
{
    pthread_t thread;
    int failed = 1;
    if (pthread_create(&thread, NULL, in_a_thread, &failed) != 0)
        return 2;
    return pthread_join(thread, NULL) == 0 ? failed : 3;
}

static int write_a_file(void)
{
    char path[] = "/tmp/confine_XXXXXX";
    struct error err;
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) < 0 || file_write(path, "text", 4, &err) < 0)
        return 1;
    size_t len = 0;
    cleanup_free char *text = file_read(path, 100, &len, &err);
    return unlink(path) == 0 && text && len == 4 ? 0 : 2;
}

static void on_work(uv_work_t *work)
{
    (void)work;
}

static int run_a_loop(void)
{
    uv_loop_t loop;
    uv_work_t work;
    uv_tcp_t server;
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    if (uv_loop_init(&loop) || uv_tcp_init(&loop, &server) ||
        uv_tcp_bind(&server, (const struct sockaddr *)&address, 0) ||
        uv_queue_work(&loop, &work, on_work, NULL))
        return 1;
    uv_close((uv_handle_t *)&server, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 ? 0 : 2;
}

static int abort_now(void)
{
    abort();
}

static void test_what_stays(void **state)
{
    (void)state;
    assert_int_equal(run_confined(resolve_a_name), 0);
    assert_int_equal(run_confined(begin_a_thread), 0);
    assert_int_equal(run_confined(write_a_file), 0);
    assert_int_equal(run_confined(run_a_loop), 0);
    assert_int_equal(run_confined(abort_now), -SIGABRT);
}

/* Threads that are there already are confined with the one that asks. */
static int begun_before(void)
{
    return 0;
}

static void *wait_to_fork(void *arg)
{
    int *pipe = arg;
    char c;
    if (read(pipe[0], &c, 1) != 1)
        _exit(4);
    _exit(fails_with(fork(), EPERM));
}

static void test_threads_that_are_there(void **state)
{
    (void)state;
    (void)run_confined(begun_before); /* skips where there is no filter */
    pid_t child = fork();
    if (child == 0) {
        int pipe[2];
        pthread_t thread;
        struct error err;
        if (uv_pipe(pipe, 0, 0) || pthread_create(&thread, NULL, wait_to_fork, pipe) ||
            confine(&err) < 0 || write(pipe[1], "x", 1) != 1)
            _exit(5);
        pthread_join(thread, NULL);
        _exit(6);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_gone),
        cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_threads_that_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
