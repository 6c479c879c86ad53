/*
 * The functions behind HTTP: the workload that the autoscaler's tests scale.
 *
 * Each call has a thread of its own, so calls share the cpu as they come in: with more of them,
 * or with less cpu, every one takes longer.
 */
#include <errno.h>
#include <getopt.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "action.h"
#include "events.h"
#include "metrics.h"
#include "workloads.h"

enum {
    /* For probes, scrapes and refusals while all calls are busy; MHD hangs up on any more. */
    SPARE_CONNECTIONS = 448,
    STACK_BYTES = 128 * 1024,
    CONNECTION_BYTES = 8 * 1024,
    IDLE_SECONDS = 10,
    BODY_BYTES = 64 * 1024,
    DRAIN_SECONDS = 20, /* less than the 30 s that Kubernetes waits by default */
};

struct options {
    unsigned port;
    unsigned max_in_flight;
    unsigned linger_seconds;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/*
 * When the kernel received the request. A pod that is out of cpu neither accepts nor reads, so
 * its own clock would miss just the waiting that matters; the kernel's is exact to one tick.
 */
static double arrival_time(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct tcp_info tcp = {0};
    socklen_t size = sizeof(tcp);

    if (info != NULL)
        getsockopt(info->connect_fd, IPPROTO_TCP, TCP_INFO, &tcp, &size);
    return now() - tcp.tcpi_last_data_recv / 1e3;
}

/* What the call cost and whom, for those who have to know it exactly: the cpu time of its thread.
 */
static void add_timing(struct MHD_Response *response)
{
    struct timespec used = {0};
    char pod[65] = "", timing[128];

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    gethostname(pod, sizeof(pod) - 1);
    snprintf(timing, sizeof(timing), "cpu;dur=%.3f, pod;desc=%s",
             (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6, pod);
    MHD_add_response_header(response, "Server-Timing", timing);
}

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
                                     const char *type, struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    /* One call per connection: the next one may go to another pod. */
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *text)
{
    return send_response(
        connection, status, "text/plain",
        MHD_create_response_from_buffer(strlen(text), (void *)(size_t)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result send_metrics(struct MHD_Connection *connection)
{
    size_t length;
    char *text = metrics_render(&length);
    if (text == NULL)
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    return send_response(connection, MHD_HTTP_OK, "text/plain; version=0.0.4",
                         MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE));
}

static bool parse_number(const char *text, unsigned long least, unsigned long greatest,
                         unsigned long *number)
{
    if (*text == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *number = strtoul(text, NULL, 10);
    return errno == 0 && *number >= least && *number <= greatest;
}

static bool wanted_n(struct MHD_Connection *connection, const struct workload *workload,
                     unsigned long *n)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "n");

    *n = workload->standard_n;
    if (text != NULL)
        return parse_number(text, 1, workload->greatest_n, n);
    /* "?n" has the key without a value, which the lookup does not tell from no key. */
    return MHD_lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND, "n", 1, NULL, NULL) ==
           MHD_NO;
}

static enum MHD_Result compute(struct MHD_Connection *connection, const struct workload *workload,
                               unsigned long n)
{
    double arrived = arrival_time(connection);
    double result;
    char answer[128];

    if (!workload->run(n, &result))
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    snprintf(answer, sizeof(answer), "{\"function\":\"%s\",\"n\":%lu,\"result\":%.10g}\n",
             workload->name, n, result);
    metrics_observe((size_t)(workload - workloads), now() - arrived);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(answer), answer, MHD_RESPMEM_MUST_COPY);
    if (response != NULL)
        add_timing(response);
    return send_response(connection, MHD_HTTP_OK, "application/json", response);
}

static enum MHD_Result call(struct MHD_Connection *connection, const struct workload *workload,
                            const struct options *options)
{
    unsigned long n;

    if (!wanted_n(connection, workload, &n)) {
        char reason[64];
        snprintf(reason, sizeof(reason), "n: must be a whole number from 1 to %lu\n",
                 workload->greatest_n);
        return send_text(connection, MHD_HTTP_BAD_REQUEST, reason);
    }
    if (!metrics_enter(options->max_in_flight))
        return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many calls in flight\n");
    enum MHD_Result result = compute(connection, workload, n);
    metrics_leave();
    return result;
}

/* --- OpenWhisk ------------------------------------------------------------------------------ */
struct request {
    size_t length;
    bool too_long;
    char body[BODY_BYTES];
};

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer answer)
{
    if (answer.json == NULL)
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    return send_response(
        connection, answer.status, "application/json",
        MHD_create_response_from_buffer(strlen(answer.json), answer.json, MHD_RESPMEM_MUST_FREE));
}

static const char *argument(struct MHD_Connection *connection, const char *name)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    return text != NULL ? text : "";
}

static bool read_seconds(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text != '\0' && *end == '\0' && *out >= 0;
}

static enum MHD_Result take_event(struct MHD_Connection *connection)
{
    const char *waited = argument(connection, "wait");
    double seconds, wait_s = 0;
    if (!read_seconds(argument(connection, "seconds"), &seconds) ||
        (*waited && !read_seconds(waited, &wait_s)) ||
        !events_activation(argument(connection, "namespace"), argument(connection, "initiator"),
                           argument(connection, "action"), seconds, wait_s))
        return send_text(connection, MHD_HTTP_BAD_REQUEST, "no such activation can be\n");
    return send_text(connection, MHD_HTTP_OK, "ok\n");
}

static enum MHD_Result run_action(struct MHD_Connection *connection, const struct request *request,
                                  const struct options *options)
{
    if (!metrics_enter(options->max_in_flight))
        return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many calls in flight\n");
    enum MHD_Result result = send_answer(connection, action_run(request->body, request->length));
    metrics_leave();
    return result;
}

static enum MHD_Result route_post(struct MHD_Connection *connection, const char *path,
                                  const struct request *request, const struct options *options)
{
    if (request->too_long)
        return send_text(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long\n");
    if (strcmp(path, "/init") == 0)
        return send_answer(connection, action_init(request->body, request->length));
    if (strcmp(path, "/run") == 0)
        return run_action(connection, request, options);
    if (strcmp(path, "/event") == 0)
        return take_event(connection);
    return send_text(connection, MHD_HTTP_NOT_FOUND, "neither /init nor /run nor /event\n");
}

static enum MHD_Result route(struct MHD_Connection *connection, const char *path,
                             const struct options *options)
{
    if (strcmp(path, "/healthz") == 0)
        return send_text(connection, MHD_HTTP_OK, "ok\n");
    if (strcmp(path, "/metrics") == 0)
        return send_metrics(connection);
    for (const struct workload *w = workloads; w < workloads + WORKLOAD_COUNT; w++) {
        if (path[0] == '/' && strcmp(path + 1, w->name) == 0)
            return call(connection, w, options);
    }
    return send_text(connection, MHD_HTTP_NOT_FOUND, "no such function\n");
}

static struct request without_body;

static void forget(void *arg, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    (void)arg, (void)connection, (void)why;
    if (*state != &without_body)
        free(*state);
}

static void take_part(struct request *request, const char *data, size_t length)
{
    if (length > sizeof(request->body) - request->length) {
        request->too_long = true;
        return;
    }
    memcpy(request->body + request->length, data, length);
    request->length += length;
}

static enum MHD_Result handle(void *options, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    bool post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    (void)version;

    /* MHD calls once for the headers, once for each part of a body, and once at the end. */
    if (*state == NULL) {
        *state = post ? calloc(1, sizeof(struct request)) : &without_body;
        return *state != NULL ? MHD_YES : MHD_NO;
    }
    if (*upload_size > 0) {
        if (post)
            take_part(*state, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (post)
        return route_post(connection, path, *state, options);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                         "only GET and POST are allowed\n");
    return route(connection, path, options);
}

static struct MHD_Daemon *start(struct options *options)
{
    return MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
            MHD_USE_ITC,
        (uint16_t)options->port, NULL, NULL, handle, options, MHD_OPTION_NOTIFY_COMPLETED, forget,
        NULL, MHD_OPTION_CONNECTION_LIMIT, options->max_in_flight + SPARE_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_END);
}

static unsigned open_connections(struct MHD_Daemon *daemon)
{
    return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

static void stop(struct MHD_Daemon *daemon, unsigned linger_seconds)
{
    /* Kubernetes may send requests to a pod for a while after it told it to stop. */
    sleep(linger_seconds);

    int listener = MHD_quiesce_daemon(daemon);
    double deadline = now() + DRAIN_SECONDS;
    while (open_connections(daemon) > 0 && now() < deadline)
        usleep(10 * 1000);
    MHD_stop_daemon(daemon);
    if (listener >= 0)
        close(listener);
}

static unsigned number_option(const char *name, const char *text, unsigned long least,
                              unsigned long greatest)
{
    unsigned long number;

    if (!parse_number(text, least, greatest, &number)) {
        fprintf(stderr, "function: --%s %s: must be a whole number from %lu to %lu\n", name, text,
                least, greatest);
        exit(2);
    }
    return (unsigned)number;
}

static void exit_with_usage(void)
{
    fputs("usage: function [--port N] [--max-in-flight N] [--linger SECONDS]\n", stderr);
    exit(2);
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"port", required_argument, NULL, 'p'},
        {"max-in-flight", required_argument, NULL, 'm'},
        {"linger", required_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.port = 8080, .max_in_flight = 64, .linger_seconds = 0};
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'p')
            options.port = number_option("port", optarg, 1, 65535);
        else if (option == 'm')
            options.max_in_flight = number_option("max-in-flight", optarg, 1, 64);
        else if (option == 'l')
            options.linger_seconds = number_option("linger", optarg, 0, 60);
        else
            exit_with_usage();
    }
    if (optind != argc)
        exit_with_usage();
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);

    /* Blocked before any thread starts, so that only sigwait below takes these. */
    sigset_t stopping;
    sigemptyset(&stopping);
    sigaddset(&stopping, SIGTERM);
    sigaddset(&stopping, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stopping, NULL);
    signal(SIGPIPE, SIG_IGN);

    struct MHD_Daemon *daemon = start(&options);
    if (daemon == NULL) {
        fprintf(stderr, "function: port %u: %s\n", options.port, strerror(errno));
        return 1;
    }
    int received;
    sigwait(&stopping, &received);
    stop(daemon, options.linger_seconds);
    return 0;
}
