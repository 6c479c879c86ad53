#include "screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define RED   "\033[31m"
#define PLAIN "\033[0m"
#define WIPE  "\r\033[K"

struct screen {
    bool terminal, clock_shown, header_shown;
    int width; /* of the terminal; 0: no bound */
    double row_gap_s;
    double *row_s; /* when each function's last row was */
};

struct screen *screen_new(size_t functions, double row_gap_s)
{
    struct screen *s = xcalloc(1, sizeof(*s));
    struct winsize size = {0};
    s->terminal = isatty(STDOUT_FILENO) == 1;
    if (s->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        s->width = size.ws_col;
    s->row_gap_s = row_gap_s;
    s->row_s = xcalloc(functions, sizeof(*s->row_s));
    for (size_t i = 0; i < functions; i++)
        s->row_s[i] = -INFINITY;
    return s;
}

void screen_free(struct screen *s)
{
    if (s == NULL)
        return;
    free(s->row_s);
    free(s);
}

static const char *style(const struct screen *s, const char *code)
{
    return s->terminal ? code : "";
}

static void wipe_clock(struct screen *s)
{
    if (s->clock_shown)
        fputs(WIPE, stdout);
    s->clock_shown = false;
}

/* --- rows ------------------------------------------------------------------------------------ */
/* Columns beside the reason. */
#define ROW       "%-10s  %-10s  %-4s  %-11s  %-8s  %-6s  %s%-7s%s  %-6s  %-5s  %-6s  "
#define ROW_WIDTH 93

static void print_header(struct screen *s)
{
    if (s->header_shown)
        return;
    s->header_shown = true;
    printf("%s" ROW "REASON%s\n", style(s, BOLD), "NAME", "TARGET", "MODE", "RECOMMENDER",
           "REPLICAS", "CPU", "", "P99", "", "SLO", "READY", "AGE", style(s, PLAIN));
}

static const char *print_age(double s, char text[16])
{
    int minutes = (int)(s / 60);
    if (minutes >= 60)
        snprintf(text, 16, "%dh%02dm", minutes / 60, minutes % 60);
    else
        snprintf(text, 16, "%dm%02ds", minutes, (int)s % 60);
    return text;
}

static const char *ready_of(const json_t *status)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get(status, "conditions"), i, item)
        if (strcmp(json_str(json_object_get(item, "type")), "Ready") == 0)
            return json_str(json_object_get(item, "status"));
    return "";
}

/* How many bytes of text fit into so many columns: a character of several bytes takes one. */
static int fit(const char *text, int columns)
{
    int bytes = 0;
    for (; text[bytes]; bytes++)
        if (((unsigned char)text[bytes] & 0xc0) != 0x80 && columns-- <= 0)
            break;
    return bytes;
}

/* The reason, as far as there is room for it. */
static void print_reason(const struct screen *s, const char *reason)
{
    int room = s->width > ROW_WIDTH ? s->width - ROW_WIDTH : 0;
    bool whole = s->width == 0 || reason[fit(reason, room)] == '\0';
    if (whole)
        printf("%s%s%s\n", style(s, DIM), reason, style(s, PLAIN));
    else
        printf("%s%.*s%s%s\n", style(s, DIM), fit(reason, room - 1), reason, room ? "…" : "",
               style(s, PLAIN));
}

/* As kubectl shows what is not there. */
static const char *cell(const char *text)
{
    return *text ? text : "<none>";
}

static bool is_over(const char *latency, const char *goal)
{
    int64_t latency_us, goal_us;
    return duration_parse(latency, &latency_us, NULL) == 0 &&
           duration_parse(goal, &goal_us, NULL) == 0 && latency_us > goal_us;
}

static double age_s(const json_t *mpa)
{
    int64_t created_ms = 0;
    time_parse(json_str(json_path(mpa, "metadata", "creationTimestamp", NULL)), &created_ms);
    return (double)(clock_wall_ms() - created_ms) / 1000;
}

static void print_row(struct screen *s, const json_t *mpa)
{
    const json_t *spec = json_object_get(mpa, "spec"), *status = json_object_get(mpa, "status");
    const json_t *containers =
        json_path(status, "recommendation", "containerRecommendations", NULL);
    const json_t *recommender = json_array_get(json_object_get(spec, "recommenders"), 0);
    const char *latency = json_str(json_object_get(status, "currentLatency"));
    const char *goal = json_str(json_path(spec, "goals", "latency", "target", NULL));
    bool over = is_over(latency, goal);
    char replicas[16], age[16];
    snprintf(replicas, sizeof(replicas), "%d",
             (int)json_integer_value(json_object_get(status, "currentReplicas")));
    wipe_clock(s);
    print_header(s);
    printf(ROW, json_str(json_path(mpa, "metadata", "name", NULL)),
           json_str(json_path(spec, "scaleTargetRef", "name", NULL)),
           json_str(json_path(spec, "policy", "updateMode", NULL)),
           json_str(json_object_get(recommender, "name")), replicas,
           json_str(json_path(json_array_get(containers, 0), "target", "cpu", NULL)),
           style(s, over ? RED : ""), cell(latency), style(s, over ? PLAIN : ""), goal,
           ready_of(status), print_age(age_s(mpa), age));
    print_reason(s, json_str(json_path(status, "lastDecision", "reason", NULL)));
}

void screen_status(struct screen *s, size_t function, const json_t *mpa, double now_s)
{
    const char *action = json_str(json_path(mpa, "status", "lastDecision", "action", NULL));
    const char *mode = json_str(json_path(mpa, "spec", "policy", "updateMode", NULL));
    if (now_s - s->row_s[function] < s->row_gap_s || strcmp(action, "None") == 0)
        return;
    /* In mode Off the same is said again and again, as it is not done. */
    s->row_s[function] = strcmp(mode, "Off") == 0 ? (double)INFINITY : now_s;
    print_row(s, mpa);
}

/* What was done stands in the rows; what is wrong is told at once. */
void screen_event(struct screen *s, const struct kube_event *event)
{
    if (!event->warning)
        return;
    wipe_clock(s);
    printf("%-10s  Warning %s: %s\n", event->name, event->reason, event->message);
}

void screen_clock(struct screen *s, double now_s, double end_s)
{
    char now[16], end[16];
    if (!s->terminal)
        return;
    printf(WIPE DIM "%s of %s; Ctrl-C ends it here" PLAIN, print_age(now_s, now),
           print_age(end_s, end));
    fflush(stdout);
    s->clock_shown = true;
}

void screen_end(struct screen *s)
{
    wipe_clock(s);
    fflush(stdout);
}

/* --- the summary ----------------------------------------------------------------------------- */
static void add(struct trial_result *sum, const struct trial_result *r)
{
    double late = sum->violation_ratio * (double)sum->requests;
    sum->requests += r->requests;
    late += r->violation_ratio * (double)r->requests;
    sum->violation_ratio = sum->requests ? late / (double)sum->requests : 0;
    sum->cpu_core_seconds += r->cpu_core_seconds;
    sum->cpu_used_seconds += r->cpu_used_seconds;
    sum->replicas_mean += r->replicas_mean;
    sum->actions += r->actions;
    sum->latency_ms = sum->goal_ms = NAN; /* has no meaning for several functions together */
}

static void print_ms(double ms, char text[24])
{
    if (isnan(ms))
        snprintf(text, 24, "-");
    else
        duration_print(ms * 1000, text);
}

static void print_result(const struct screen *s, const char *name, const char *label,
                         const struct trial_result *r, const struct trial_result *best)
{
    char p99[24], goal[24];
    bool over = r->latency_ms > r->goal_ms;
    print_ms(r->latency_ms, p99);
    print_ms(r->goal_ms, goal);
    double against =
        best->cpu_core_seconds > 0 ? r->cpu_core_seconds / best->cpu_core_seconds : NAN;
    printf("%-10s  %-11s  %9llu  %6.2f%%  %s%-6s%s  %-6s  %8.1f  %9.1f  %4.0f%%  %8.2fx  %7llu\n",
           name, label, (unsigned long long)r->requests, r->violation_ratio * 100,
           style(s, over ? RED : ""), p99, style(s, over ? PLAIN : ""), goal, r->replicas_mean,
           r->cpu_core_seconds / 3600,
           r->cpu_core_seconds > 0 ? 100 * r->cpu_used_seconds / r->cpu_core_seconds : 0, against,
           (unsigned long long)r->actions);
}

void screen_summary(struct screen *s, const char *const *names, size_t functions,
                    const struct screen_results *results, size_t result_count)
{
    const struct screen_results *best = &results[result_count - 1];
    struct trial_result *totals = xcalloc(result_count, sizeof(*totals));
    printf("%s%-10s  %-11s  %9s  %7s  %-6s  %-6s  %8s  %9s  %5s  %9s  %7s%s\n", style(s, BOLD),
           "FUNCTION", "RECOMMENDER", "REQUESTS", "LATE", "P99", "SLO", "REPLICAS", "CPU-HOURS",
           "USED", "VS ORACLE", "ACTIONS", style(s, PLAIN));
    for (size_t f = 0; f < functions; f++) {
        for (size_t i = 0; i < result_count; i++) {
            print_result(s, i ? "" : names[f], results[i].label, &results[i].functions[f],
                         &best->functions[f]);
            add(&totals[i], &results[i].functions[f]);
        }
    }
    for (size_t i = 0; functions > 1 && i < result_count; i++)
        print_result(s, i ? "" : "total", results[i].label, &totals[i], &totals[result_count - 1]);
    free(totals);
}
