/* Runs a credential plugin: bounded in time and in what it may write, and killed with all it
 * started when it passes a bound. */
#include "kube/credentials.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TIME_LIMIT_MS    30000
#define OUTPUT_MAX_BYTES ((size_t)1 << 20)
#define STDERR_MAX_BYTES ((size_t)256) /* enough for an error message */
#define INFO_NAME        "KUBERNETES_EXEC_INFO"

struct kube_plugin {
    uv_process_t process;
    uv_pipe_t out, errors;
    uv_timer_t timer;
    int handles; /* not closed yet: the last one frees */
    bool running, out_open, errors_open, ended;
    int64_t exit_status;
    int signal;
    struct buf output, complaint;
    char *command;
    kube_plugin_done done;
    void *arg;
};

static void on_closed(uv_handle_t *handle)
{
    struct kube_plugin *p = handle->data;
    if (--p->handles > 0)
        return;
    buf_free(&p->output);
    buf_free(&p->complaint);
    free(p->command);
    free(p);
}

/* Ends everything; the memory goes when libuv has let go of it. A killed program is waited for, so
 * that it does not stay as a zombie. */
static void plugin_close(struct kube_plugin *p)
{
    p->ended = true;
    if (p->running)
        kill(-p->process.pid, SIGKILL); /* the group: it was started as a leader */
    else
        uv_close((uv_handle_t *)&p->process, on_closed);
    uv_close((uv_handle_t *)&p->out, on_closed);
    uv_close((uv_handle_t *)&p->errors, on_closed);
    uv_close((uv_handle_t *)&p->timer, on_closed);
}

void kube_plugin_cancel(struct kube_plugin *p)
{
    plugin_close(p);
    if (p->running) /* the loop may not run for long enough to see it end */
        uv_close((uv_handle_t *)&p->process, on_closed);
}

static void finish(struct kube_plugin *p, const struct error *err)
{
    kube_plugin_done done = p->done;
    void *arg = p->arg;
    struct buf output = p->output;
    buf_init(&p->output, OUTPUT_MAX_BYTES);
    plugin_close(p);
    if (err)
        done(arg, NULL, 0, err);
    else
        done(arg, buf_string(&output), output.len, NULL);
    buf_free(&output);
}

static void one_line(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < ' ' || *c == 127)
            *c = ' ';
}

static void finish_if_complete(struct kube_plugin *p)
{
    bool failed = p->exit_status != 0 || p->signal != 0;
    /* Only a failure is worth the wait for stderr, which some helper may keep open. */
    if (p->running || p->out_open || (failed && p->errors_open))
        return;
    if (!failed) {
        finish(p, NULL);
        return;
    }
    struct error err;
    cleanup_free char *complaint = buf_take(&p->complaint);
    one_line(complaint);
    const char *said = *complaint ? complaint : "it did not say why";
    if (p->signal)
        error_set(&err, ERROR_FORBIDDEN, "credential plugin %s was ended by signal %d: %s",
                  p->command, p->signal, said);
    else
        error_set(&err, ERROR_FORBIDDEN, "credential plugin %s failed with exit code %d: %s",
                  p->command, (int)p->exit_status, said);
    finish(p, &err);
}

static void on_exit_(uv_process_t *process, int64_t exit_status, int term_signal)
{
    struct kube_plugin *p = process->data;
    p->running = false;
    p->exit_status = exit_status;
    p->signal = term_signal;
    if (p->ended)
        uv_close((uv_handle_t *)process, on_closed);
    else
        finish_if_complete(p);
}

static void on_time_limit(uv_timer_t *timer)
{
    struct kube_plugin *p = timer->data;
    struct error err;
    error_set(&err, ERROR_TIMEOUT, "credential plugin %s did not finish within %d s", p->command,
              TIME_LIMIT_MS / 1000);
    finish(p, &err);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)handle;
    *out = uv_buf_init(xcalloc(1, suggested), (unsigned)suggested);
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *chunk)
{
    struct kube_plugin *p = stream->data;
    bool fits = n <= 0 || buf_append(&p->output, chunk->base, (size_t)n) == 0;
    free(chunk->base);
    if (!fits) {
        struct error err;
        error_set(&err, ERROR_TOO_LARGE, "credential plugin %s wrote more than %zu bytes",
                  p->command, OUTPUT_MAX_BYTES);
        finish(p, &err);
    } else if (n < 0) {
        uv_read_stop(stream);
        p->out_open = false;
        finish_if_complete(p);
    }
}

static void on_complaint(uv_stream_t *stream, ssize_t n, const uv_buf_t *chunk)
{
    struct kube_plugin *p = stream->data;
    size_t room = STDERR_MAX_BYTES - p->complaint.len;
    if (n > 0 && room > 0) /* the rest is read and dropped, lest the plugin blocks */
        (void)!buf_append(&p->complaint, chunk->base, (size_t)n < room ? (size_t)n : room);
    free(chunk->base);
    if (n < 0) {
        uv_read_stop(stream);
        p->errors_open = false;
        finish_if_complete(p);
    }
}

/* --- start --- */

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strcspn(b, "=") == n && strncmp(a, b, n) == 0;
}

static bool is_replaced(const char *variable, char *const *by)
{
    if (same_name(variable, INFO_NAME))
        return true;
    for (size_t i = 0; by && by[i]; i++)
        if (same_name(variable, by[i]))
            return true;
    return false;
}

static size_t list_length(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* Our own environment with the plugin's variables over it. Only the last string is owned. */
static char **make_env(const struct kube_exec *exec, char *info)
{
    char **env = xcalloc(list_length(environ) + list_length(exec->env) + 2, sizeof(*env));
    size_t n = 0;
    for (size_t i = 0; i < list_length(environ); i++)
        if (!is_replaced(environ[i], exec->env))
            env[n++] = environ[i];
    for (size_t i = 0; i < list_length(exec->env); i++)
        env[n++] = exec->env[i];
    env[n] = info;
    return env;
}

static char **make_args(const struct kube_exec *exec)
{
    size_t n = list_length(exec->args);
    char **args = xcalloc(n + 2, sizeof(*args));
    args[0] = exec->command;
    for (size_t i = 0; i < n; i++)
        args[i + 1] = exec->args[i];
    return args;
}

static int spawn(struct kube_plugin *p, uv_loop_t *loop, const struct kube_exec *exec,
                 const char *info)
{
    cleanup_free char *variable = xasprintf(INFO_NAME "=%s", info);
    cleanup_free char **env = make_env(exec, variable);
    cleanup_free char **args = make_args(exec);
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->out},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->errors},
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_,
        .file = exec->command,
        .args = args,
        .env = env,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = ARRAY_LEN(stdio),
        .stdio = stdio,
    };
    return uv_spawn(loop, &p->process, &options);
}

static struct kube_plugin *plugin_new(uv_loop_t *loop, const struct kube_exec *exec)
{
    struct kube_plugin *p = xcalloc(1, sizeof(*p));
    buf_init(&p->output, OUTPUT_MAX_BYTES);
    buf_init(&p->complaint, STDERR_MAX_BYTES);
    p->command = xstrdup(exec->command);
    uv_pipe_init(loop, &p->out, 0);
    uv_pipe_init(loop, &p->errors, 0);
    uv_timer_init(loop, &p->timer);
    p->process.data = p->out.data = p->errors.data = p->timer.data = p;
    p->handles = 4;
    return p;
}

static void explain_spawn(const struct kube_exec *exec, int result, struct error *err)
{
    if (result != UV_ENOENT) {
        error_set(err, ERROR_SYSTEM, "cannot run credential plugin %s: %s", exec->command,
                  uv_strerror(result));
        return;
    }
    cleanup_free char *hint = xstrdup(exec->install_hint ? exec->install_hint : "");
    one_line(hint);
    error_set(err, ERROR_NOT_FOUND, "credential plugin %s is not installed: %s", exec->command,
              *hint ? hint : "put it into a directory of PATH");
}

struct kube_plugin *kube_plugin_start(uv_loop_t *loop, const struct kube_exec *exec,
                                      const char *info, kube_plugin_done done, void *arg,
                                      struct error *err)
{
    struct kube_plugin *p = plugin_new(loop, exec);
    int result = spawn(p, loop, exec, info);
    if (result < 0) {
        explain_spawn(exec, result, err);
        plugin_close(p);
        return NULL;
    }
    p->running = p->out_open = p->errors_open = true;
    p->done = done;
    p->arg = arg;
    uv_read_start((uv_stream_t *)&p->out, on_alloc, on_output);
    uv_read_start((uv_stream_t *)&p->errors, on_alloc, on_complaint);
    uv_timer_start(&p->timer, on_time_limit, TIME_LIMIT_MS, 0);
    return p;
}
