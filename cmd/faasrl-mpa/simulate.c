#include "simulate.h"
#include "base/parallel.h"
#include "scenario.h"
#include "screen.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#define TICK_MS 40
/* The most that is done before the loop turns again, which notices Ctrl-C. */
#define STEPS_PER_TURN 500
/* At most one row of a function in a second; as fast as possible is taken for an hour a second. */
#define USUAL_SPEED 3600
#define DAY_MS      86400000
#define FIRST_PORT  8080 /* and so many after it */
#define PORTS       20

static const char *const peers[] = {"hpa", "oracle"};

struct simulation {
    const struct options *options;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_signal_t interrupt, terminate;
    struct scenario scenario;
    struct screen *screen;
    struct embed *embed;
    struct journal *journal;
    double end_s;
    uint64_t began_ns;
    bool served, stopped; /* stopped: by a signal */
};

/* --- what is shown --------------------------------------------------------------------------- */
static void on_status(void *arg, size_t function, const json_t *mpa)
{
    struct simulation *s = arg;
    screen_status(s->screen, function, mpa, embed_now_s(s->embed));
}

static void on_event(void *arg, size_t function, const struct kube_event *event)
{
    struct simulation *s = arg;
    (void)function;
    screen_event(s->screen, event);
}

/* --- time ------------------------------------------------------------------------------------ */
static void on_tick(uv_timer_t *timer)
{
    struct simulation *s = timer->data;
    double real_s = (double)(uv_hrtime() - s->began_ns) / 1e9, speed = s->options->simulate_speed;
    double until_s = speed > 0 ? fmin(real_s * speed, s->end_s) : s->end_s;
    for (int i = 0; i < STEPS_PER_TURN && embed_now_s(s->embed) < until_s; i++)
        embed_step(s->embed);
    screen_clock(s->screen, embed_now_s(s->embed), s->end_s);
    fflush(stdout);
    if (embed_now_s(s->embed) >= s->end_s)
        uv_stop(&s->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct simulation *s = handle->data;
    (void)number;
    s->stopped = true;
    uv_stop(&s->loop);
}

/* --- the end: how others would have done ------------------------------------------------------ */
struct comparison {
    const struct embed *embed;
    struct trial_result results[ARRAY_LEN(peers)][SCENARIO_MAX];
    struct error errors[ARRAY_LEN(peers)];
};

static void compare(void *arg, size_t i)
{
    struct comparison *c = arg;
    embed_compare(c->embed, peers[i], c->results[i], &c->errors[i]);
}

static void on_compare(uv_work_t *work)
{
    parallel_for(parallel_cores(), ARRAY_LEN(peers), compare, work->data);
}

static void on_compared(uv_work_t *work, int status)
{
    (void)status;
    uv_stop(work->loop);
}

/* The dashboard answers meanwhile. */
static void compare_all(struct simulation *s, struct comparison *c)
{
    uv_work_t work = {.data = c};
    if (uv_queue_work(&s->loop, &work, on_compare, on_compared) == 0)
        uv_run(&s->loop, UV_RUN_DEFAULT);
}

/* What would have been done; nothing was. */
static void tell_watched(const struct simulation *s)
{
    for (size_t i = s->scenario.managed; i < s->scenario.count; i++) {
        const json_t *mpa = embed_mpa(s->embed, i);
        const char *would = json_str(json_path(mpa, "status", "whatIf", "message", NULL));
        if (*would)
            printf("\n%s is in mode Off, so nothing of it was changed.\n%s\n",
                   json_str(json_path(mpa, "metadata", "name", NULL)), would);
    }
}

static int summarize(struct simulation *s, struct error *err)
{
    size_t count = s->scenario.managed;
    struct comparison c = {.embed = s->embed};
    struct trial_result own[SCENARIO_MAX];
    const char *names[SCENARIO_MAX];
    uint64_t requests = 0;
    for (size_t i = 0; i < count; i++) {
        embed_result(s->embed, i, &own[i]);
        names[i] = json_str(json_path(embed_mpa(s->embed, i), "metadata", "name", NULL));
        requests += own[i].requests;
    }
    printf("\nThe same %llu requests in %.3g hours: with this controller, with a "
           "HorizontalPodAutoscaler, and with\nan oracle that knows the load of the next %g "
           "seconds. LATE is beyond the SLO; CPU is what is requested.\n\n",
           (unsigned long long)requests, embed_now_s(s->embed) / 3600, s->options->interval_s);
    fflush(stdout);
    compare_all(s, &c);
    struct screen_results results[1 + ARRAY_LEN(peers)] = {
        {"threshold", own}}; /* as the MPAs say */
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        if (c.errors[i].code) {
            *err = c.errors[i];
            return error_prefix(err, "%s", peers[i]);
        }
        results[i + 1] = (struct screen_results){peers[i], c.results[i]};
    }
    screen_summary(s->screen, names, count, results, ARRAY_LEN(results));
    tell_watched(s);
    return 0;
}

/* --- the beginning --------------------------------------------------------------------------- */
/* Midnight, so that the times in status are those of the day that is simulated. */
static int64_t midnight_ms(void)
{
    return clock_wall_ms() / DAY_MS * DAY_MS;
}

static int open_cluster(struct simulation *s, struct error *err)
{
    const struct options *o = s->options;
    if (options_open_journal(o, &s->journal, err) < 0 || scenario_open(&s->scenario, err) < 0)
        return -1;
    struct embed_options options = {
        .functions = s->scenario.functions,
        .function_count = s->scenario.count,
        .nodes = s->scenario.nodes,
        .node_count = ARRAY_LEN(s->scenario.nodes),
        .seed = (uint64_t)o->simulate_seed,
        .start_ms = midnight_ms(),
        .window_s = o->window_s,
        .controller = options_of_controller(o),
        .on_status = on_status,
        .on_event = on_event,
        .arg = s,
    };
    options.controller.journal = s->journal;
    s->screen =
        screen_new(s->scenario.count, o->simulate_speed > 0 ? o->simulate_speed : USUAL_SPEED);
    s->embed = embed_new(&options, err);
    s->end_s = o->simulate_duration_s;
    return s->embed ? 0 : -1;
}

static void introduce(const struct simulation *s)
{
    printf("%zu functions on a simulated cluster of %zu nodes, seed %.0f. ", s->scenario.count,
           ARRAY_LEN(s->scenario.nodes), s->options->simulate_seed);
    if (s->options->simulate_speed > 0)
        printf("A second is %g minutes there.", s->options->simulate_speed / 60);
    if (s->served && options_of_controller(s->options).dashboard != DASHBOARD_OFF)
        printf("\nThe dashboard: http://127.0.0.1:%d/",
               controller_port(embed_controller(s->embed)));
    printf("\n\n");
    fflush(stdout);
}

/* Where no port is asked for, the first that is free; without any it goes on all the same. */
static void serve_somewhere(struct simulation *s)
{
    struct error none;
    for (int port = FIRST_PORT; !s->served && port < FIRST_PORT + PORTS; port++) {
        cleanup_free char *listen = xasprintf("127.0.0.1:%d", port);
        s->served = controller_serve(embed_controller(s->embed), &s->loop, listen, &none) == 0;
    }
}

static int serve(struct simulation *s, struct error *err)
{
    const char *listen = options_listen(s->options);
    if (!listen)
        return 0;
    if (!s->options->listen) {
        serve_somewhere(s);
        return 0;
    }
    if (controller_serve(embed_controller(s->embed), &s->loop, listen, err) < 0)
        return error_prefix(err, "--listen");
    s->served = true;
    return 0;
}

static int start(struct simulation *s, struct error *err)
{
    const struct options *o = s->options;
    uv_timer_init(&s->loop, &s->tick);
    uv_signal_init(&s->loop, &s->interrupt);
    uv_signal_init(&s->loop, &s->terminate);
    s->tick.data = s->interrupt.data = s->terminate.data = s;
    s->began_ns = uv_hrtime();
    uv_timer_start(&s->tick, on_tick, 0, o->simulate_speed > 0 ? TICK_MS : 1);
    uv_signal_start(&s->interrupt, on_signal, SIGINT);
    uv_signal_start(&s->terminate, on_signal, SIGTERM);
    return serve(s, err);
}

/* --- all of it ------------------------------------------------------------------------------- */
static void stay(struct simulation *s)
{
    printf("\nStill at http://127.0.0.1:%d/ until Ctrl-C.\n",
           controller_port(embed_controller(s->embed)));
    fflush(stdout);
    uv_signal_start(&s->interrupt, on_signal, SIGINT);
    uv_signal_start(&s->terminate, on_signal, SIGTERM);
    uv_run(&s->loop, UV_RUN_DEFAULT);
}

static int run(struct simulation *s, struct error *err)
{
    if (open_cluster(s, err) < 0 || start(s, err) < 0)
        return -1;
    introduce(s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    uv_timer_stop(&s->tick);
    controller_ended(embed_controller(s->embed));
    /* While others are simulated Ctrl-C ends the process at once. */
    uv_signal_stop(&s->interrupt);
    uv_signal_stop(&s->terminate);
    screen_end(s->screen);
    int failed = embed_now_s(s->embed) > 0 ? summarize(s, err) : 0;
    if (!failed && !s->stopped && s->served && s->options->simulate_stay)
        stay(s);
    return failed;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void clean_up(struct simulation *s)
{
    embed_free(s->embed);
    journal_close(s->journal);
    screen_free(s->screen);
    scenario_close(&s->scenario);
    uv_walk(&s->loop, close_handle, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    uv_loop_close(&s->loop);
}

int simulate(const struct options *options)
{
    struct simulation s = {.options = options};
    struct error err = {0};
    if (options_confine(options, false, &err) < 0) {
        fprintf(stderr, "faasrl-mpa: %s\n", err.message);
        return 1;
    }
    if (uv_loop_init(&s.loop) != 0) {
        fputs("faasrl-mpa: cannot begin: no file descriptors are left\n", stderr);
        return 1;
    }
    int failed = run(&s, &err);
    if (failed)
        fprintf(stderr, "faasrl-mpa: %s\n", err.message);
    clean_up(&s);
    return failed ? 1 : 0;
}
