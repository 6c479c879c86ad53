/* kubectl mpa top: the figures of all MPAs in a table, once or live. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kubectl.h"
#include "mpactl.h"
#include "table.h"

#define LOOK_MS 250 /* how often is looked whether there is something new to show */

/* --- the table ------------------------------------------------------------------------------- */
static double cores(const json_t *mpa)
{
    return view_replicas(mpa) * view_cpu_milli(mpa) / 1000;
}

static double figure(const json_t *mpa, const char *key)
{
    if (strcmp(key, "cpu") == 0)
        return cores(mpa);
    if (strcmp(key, "replicas") == 0)
        return view_replicas(mpa);
    if (strcmp(key, "rate") == 0)
        return view_seen(mpa, "requestsPerSecond");
    if (strcmp(key, "latency") == 0)
        return view_latency_ms(mpa);
    if (strcmp(key, "goal") == 0)
        return view_latency_ms(mpa) / view_goal_ms(mpa);
    return view_seen(mpa, "cpuUtilization");
}

static int compare_names(const json_t *a, const json_t *b)
{
    int order = strcmp(view_namespace(a), view_namespace(b));
    return order ? order : strcmp(view_name(a), view_name(b));
}

/* The greatest first, those without a figure last. */
static int compare(const void *x, const void *y, void *arg)
{
    const json_t *a = *(json_t *const *)x, *b = *(json_t *const *)y;
    const char *key = arg;
    if (strcmp(key, "name") == 0)
        return compare_names(a, b);
    double of_a = figure(a, key), of_b = figure(b, key);
    if (isnan(of_a) || isnan(of_b) || of_a == of_b)
        return isnan(of_a) == isnan(of_b) ? compare_names(a, b) : isnan(of_a) - isnan(of_b);
    return of_a < of_b ? 1 : -1;
}

static void add_row(struct table *t, const json_t *mpa, const struct plugin_options *o,
                    size_t reason_width)
{
    const json_t *decision = json_path(mpa, "status", "lastDecision", NULL);
    const char *mode = json_str(json_path(mpa, "spec", "policy", "updateMode", NULL));
    const char *ready = view_condition(mpa, "Ready"), *reason = view_text(decision, "reason");
    char a[TABLE_TEXT], cpu[QUANTITY_SIZE] = "–", age[VIEW_AGE];
    if (view_cpu_milli(mpa) > 0)
        quantity_print_cpu((int64_t)view_cpu_milli(mpa), cpu);
    if (o->all_namespaces)
        table_cell(t, "%s", view_namespace(mpa));
    table_cell(t, "%s", view_name(mpa));
    table_cell(t, "%s%s", *mode ? mode : "Auto", view_is_paused(mpa) ? ", paused" : "");
    table_cell(t, "%s", table_count(view_replicas(mpa), a));
    table_cell(t, "%s", cpu);
    table_cell(t, "%s", table_number(cores(mpa), 2, a));
    table_cell(t, "%s", table_percent(view_seen(mpa, "cpuUtilization"), 0, a));
    table_cell(t, "%s", table_number(view_seen(mpa, "requestsPerSecond"), 1, a));
    table_cell(t, "%s", table_duration(view_latency_ms(mpa), a));
    table_cell(t, "%s", table_duration(view_goal_ms(mpa), a));
    table_cell(t, "%s", table_percent(view_latency_ms(mpa) / view_goal_ms(mpa), 0, a));
    table_cell(t, "%s", *ready ? ready : "–");
    table_cell(t, "%s", view_age(view_text(decision, "time"), age));
    table_cell(t, "%.*s", table_fit(reason, reason_width), reason);
}

/* What is left of the terminal for the reason; all of it where there is no terminal. */
static size_t reason_width(const struct plugin_options *o)
{
    enum { OTHERS = 100, LEAST = 20, NAMESPACE = 16 };
    struct winsize size = {0};
    bool whole = o->output && strcmp(o->output, "wide") == 0;
    if (whole || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return SIZE_MAX;
    size_t others = OTHERS + (o->all_namespaces ? NAMESPACE : 0);
    return size.ws_col > others + LEAST ? size.ws_col - others : LEAST;
}

/* What there is of a screen; 0: no end. */
struct room {
    size_t columns, rows;
};

static void print_table(const json_t *mpas, const struct plugin_options *o, struct room room)
{
    static const char *const titles[] = {"NAMESPACE", "NAME",  "MODE",    "REPLICAS", "CPU",
                                         "CORES",     "USED",  "REQ/S",   "LATENCY",  "GOAL",
                                         "OF GOAL",   "READY", "DECIDED", "REASON",   NULL};
    static const char *const none[] = {NULL};
    static const char align[] = "lllrrrrrrrrlrl";
    bool all = o->all_namespaces;
    size_t n = json_array_size(mpas);
    cleanup_free json_t **sorted = xcalloc(n + 1, sizeof(*sorted));
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_array_get(mpas, i);
    qsort_r(sorted, n, sizeof(*sorted), compare, (void *)(uintptr_t)o->sort_by);
    size_t lines = n + !o->no_headers, shown = n;
    if (room.rows && lines > room.rows) /* the last line says how many are left out */
        shown = n - (lines - room.rows + 1);
    struct table t;
    table_begin(&t, align + !all, o->no_headers ? none : titles + !all);
    t.room = room.columns;
    for (size_t i = 0; i < shown; i++)
        add_row(&t, sorted[i], o, reason_width(o));
    table_end(&t, "");
    if (shown < n)
        printf("… %zu more\n", n - shown);
}

static int print_once(struct cluster *c, const struct plugin_options *o, struct error *err)
{
    cleanup_json json_t *mpas = cluster_mpas(c, o, err);
    if (mpas == NULL)
        return -1;
    if (view_is_for_machines(o->output))
        view_print(mpas, o->output, o->names.count == 1);
    else if (json_array_size(mpas) > 0)
        print_table(mpas, o, (struct room){0});
    else
        fprintf(stderr, "No " API_KIND " in %s%s.\n", c->namespace_ ? "namespace " : "",
                c->namespace_ ? c->namespace_ : "any namespace");
    return 0;
}

/* --- live ------------------------------------------------------------------------------------ */
struct live {
    const struct plugin_options *options;
    struct cluster *cluster;
    struct map mpas;   /* namespace/name to json_t */
    struct map listed; /* the same while a list is read */
    bool listing, synced, changed, terminal;
    char trouble[256]; /* "": none */
    int64_t drawn_ms;
};

static void drop(void *value)
{
    json_decref(value);
}

static bool is_asked_for(const struct live *live, const json_t *mpa)
{
    const struct args_list *names = &live->options->names;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], view_name(mpa)) == 0)
            return true;
    return names->count == 0;
}

static void on_object(void *arg, const json_t *object, bool deleted)
{
    struct live *live = arg;
    struct map *map = live->listing ? &live->listed : &live->mpas;
    cleanup_free char *key = xasprintf("%s/%s", view_namespace(object), view_name(object));
    if (!is_asked_for(live, object))
        return;
    json_decref(deleted ? map_remove(map, key) : map_put(map, key, json_deep_copy(object)));
    live->changed = true;
}

static void on_list_begin(void *arg)
{
    struct live *live = arg;
    map_free(&live->listed, drop);
    live->listing = true;
}

static void on_list_end(void *arg)
{
    struct live *live = arg;
    map_free(&live->mpas, drop);
    live->mpas = live->listed;
    live->listed = (struct map){0};
    live->listing = false;
    live->synced = live->changed = true;
}

static void on_state(void *arg, const struct error *err)
{
    struct live *live = arg;
    snprintf(live->trouble, sizeof(live->trouble), "%s", err ? err->message : "");
    live->changed = true;
}

/* A line that went on below would push the first one out of sight; so would one more line. */
static struct room room_of(const struct live *live)
{
    enum { LEAST_ROWS = 3, AROUND = 2 }; /* the heading, and where the cursor ends */
    struct winsize size = {0};
    if (!live->terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return (struct room){0};
    size_t rows = size.ws_row < LEAST_ROWS + AROUND ? LEAST_ROWS : size.ws_row - AROUND;
    return (struct room){size.ws_col, size.ws_row ? rows : 0};
}

static void draw(struct live *live)
{
    struct room room = room_of(live);
    char now[RFC3339_SIZE];
    cleanup_json json_t *mpas = json_array();
    void *value;
    for (size_t i = 0; (i = map_next(&live->mpas, i, NULL, &value)) != 0;)
        json_array_append(mpas, value);
    time_format(clock_wall_ms(), now);
    if (live->terminal)
        fputs("\033[H\033[2J", stdout);
    cleanup_free char *heading =
        xasprintf("%s  %zu MPA(s) in %s%s%s", now, json_array_size(mpas),
                  live->cluster->namespace_ ? live->cluster->namespace_ : "all namespaces",
                  *live->trouble ? "; out of touch: " : "", live->trouble);
    printf("%.*s\n", table_fit(heading, room.columns ? room.columns : SIZE_MAX), heading);
    print_table(mpas, live->options, room);
    if (!live->terminal)
        putchar('\n');
    fflush(stdout);
    live->changed = false;
    live->drawn_ms = clock_mono_ms();
}

/* In a terminal ages grow too; elsewhere only what is new is printed. */
static void on_timer(uv_timer_t *timer)
{
    struct live *live = timer->data;
    double since_s = (double)(clock_mono_ms() - live->drawn_ms) / 1000;
    bool due = live->drawn_ms == 0 || since_s >= live->options->interval_s;
    if ((live->synced || *live->trouble) && due && (live->changed || live->terminal))
        draw(live);
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    uv_stop(signal->loop);
}

static void follow(struct cluster *c, const struct plugin_options *o)
{
    struct live live = {.options = o, .cluster = c, .terminal = isatty(STDOUT_FILENO) == 1};
    cleanup_free char *path = cluster_mpas_path(c);
    static const struct kube_watch_handler handler = {on_object, on_list_begin, on_list_end,
                                                      on_state};
    struct kube_watch *watch = kube_watch_start(
        c->kube, &(struct kube_watch_spec){
                     .path = path, .selector = o->selector, .handler = handler, .arg = &live});
    static const int ends[] = {SIGINT, SIGTERM};
    uv_signal_t signals[ARRAY_LEN(ends)];
    uv_timer_t timer;
    uv_timer_init(&c->loop, &timer);
    timer.data = &live;
    uv_timer_start(&timer, on_timer, LOOK_MS, LOOK_MS);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        uv_signal_init(&c->loop, &signals[i]);
        uv_signal_start(&signals[i], on_signal, ends[i]);
    }
    uv_run(&c->loop, UV_RUN_DEFAULT);
    kube_watch_stop(watch);
    uv_close((uv_handle_t *)&timer, NULL);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        uv_close((uv_handle_t *)&signals[i], NULL);
    uv_run(&c->loop, UV_RUN_NOWAIT); /* which closes them */
    map_free(&live.mpas, drop);
    map_free(&live.listed, drop);
}

int plugin_top(const struct plugin_options *o)
{
    struct cluster c;
    struct error err = {0};
    if (o->watch && view_is_for_machines(o->output)) {
        mpactl_error("top: --watch shows a table: leave out --output=%s, or --watch", o->output);
        return EXIT_USAGE;
    }
    int result = cluster_open(&c, o, &err);
    if (result == 0 && !o->watch)
        result = print_once(&c, o, &err);
    else if (result == 0) { /* what is wrong from the start ends it, what comes later does not */
        cleanup_json json_t *first = cluster_mpas(&c, o, &err);
        result = first ? 0 : -1;
        if (first)
            follow(&c, o);
    }
    cluster_close(&c);
    if (result == 0)
        return EXIT_FINE;
    mpactl_error("top: %s", err.message);
    return EXIT_FAILED;
}
