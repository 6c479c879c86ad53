/* kubectl mpa list: which MPAs there are and what they ask for; pause and resume: who is held. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kubectl.h"
#include "mpactl.h"
#include "table.h"

/* --- list ------------------------------------------------------------------------------------ */
#define NONE(text) (*(text) ? (text) : "–")

static void add_wide(struct table *t, const json_t *mpa)
{
    const json_t *bounds = json_path(mpa, "spec", "constraints", "global", NULL);
    const json_t *least = json_object_get(bounds, "minReplicas");
    char most[TABLE_TEXT];
    const json_t *max = json_object_get(bounds, "maxReplicas");
    table_cell(t, "%lld", least ? (long long)json_integer_value(least) : 1);
    table_cell(t, "%s", table_count(max ? json_number_value(max) : NAN, most));
    table_cell(t, "%s", NONE(json_str(json_path(mpa, "status", "lastDecision", "action", NULL))));
    table_cell(t, "%s", NONE(json_str(json_path(mpa, "status", "lastDecision", "reason", NULL))));
}

static void add_row(struct table *t, const json_t *mpa, const struct plugin_options *o, bool wide)
{
    const json_t *target = json_path(mpa, "spec", "scaleTargetRef", NULL);
    char replicas[TABLE_TEXT], cpu[QUANTITY_SIZE] = "–", latency[TABLE_TEXT], goal[TABLE_TEXT],
                               age[VIEW_AGE];
    double milli = view_cpu_milli(mpa);
    const char *mode = json_str(json_path(mpa, "spec", "policy", "updateMode", NULL));
    if (milli > 0)
        quantity_print_cpu((int64_t)milli, cpu);
    if (o->all_namespaces)
        table_cell(t, "%s", view_namespace(mpa));
    table_cell(t, "%s", view_name(mpa));
    table_cell(t, "%s/%s", view_text(target, "kind"), view_text(target, "name"));
    table_cell(t, "%s%s", *mode ? mode : "Auto", view_is_paused(mpa) ? ", paused" : "");
    table_cell(t, "%s", view_recommender(mpa));
    table_cell(t, "%s", table_count(view_replicas(mpa), replicas));
    table_cell(t, "%s", cpu);
    table_cell(t, "%s", table_duration(view_latency_ms(mpa), latency));
    table_cell(t, "%s", table_duration(view_goal_ms(mpa), goal));
    table_cell(t, "%s", NONE(view_condition(mpa, "Ready")));
    table_cell(t, "%s",
               view_age(json_str(json_path(mpa, "metadata", "creationTimestamp", NULL)), age));
    if (wide)
        add_wide(t, mpa);
}

static void print_table(const json_t *mpas, const struct plugin_options *o)
{
    static const char *const titles[] = {"NAMESPACE", "NAME", "TARGET",  "MODE",   "RECOMMENDER",
                                         "REPLICAS",  "CPU",  "LATENCY", "GOAL",   "READY",
                                         "AGE",       "MIN",  "MAX",     "ACTION", "REASON"};
    const char *align = "llllrrrrllrrll" /* without the namespace */;
    bool wide = o->output && strcmp(o->output, "wide") == 0;
    size_t first = o->all_namespaces ? 0 : 1, end = wide ? ARRAY_LEN(titles) : 11;
    const char *shown[ARRAY_LEN(titles) + 1] = {0};
    char aligned[ARRAY_LEN(titles) + 1] = "l";
    for (size_t i = first; i < end; i++)
        shown[i - first] = titles[i];
    snprintf(aligned, end - first + 1, "%s%s", first ? "" : "l", align);
    struct table t;
    size_t i;
    const json_t *mpa;
    static const char *const none[] = {NULL};
    table_begin(&t, aligned, o->no_headers ? none : shown);
    json_array_foreach (mpas, i, mpa)
        add_row(&t, mpa, o, wide);
    table_end(&t, "");
}

static void say_none(const struct cluster *c)
{
    if (c->namespace_)
        fprintf(stderr, "No " API_KIND " in namespace %s.\n", c->namespace_);
    else
        fputs("No " API_KIND " in any namespace.\n", stderr);
}

int plugin_list(const struct plugin_options *o)
{
    struct cluster c;
    struct error err = {0};
    json_t *mpas = cluster_open(&c, o, &err) == 0 ? cluster_mpas(&c, o, &err) : NULL;
    if (mpas && view_is_for_machines(o->output))
        view_print(mpas, o->output, o->names.count == 1);
    else if (json_array_size(mpas) > 0)
        print_table(mpas, o);
    else if (mpas)
        say_none(&c);
    cluster_close(&c);
    if (mpas == NULL)
        mpactl_error("list: %s", err.message);
    json_decref(mpas);
    return err.code ? EXIT_FAILED : EXIT_FINE;
}

/* --- pause, resume --------------------------------------------------------------------------- */
static int hold_one(struct cluster *c, const json_t *mpa, bool pause)
{
    struct error err = {0};
    const char *name = view_name(mpa), *was = pause ? "paused" : "running";
    if (view_is_paused(mpa) == pause) {
        printf("mpa/%s was %s already\n", name, was);
        return 0;
    }
    cleanup_free char *path =
        xasprintf("/apis/" API_GROUP "/" API_VERSION "/namespaces/%s/" API_PLURAL "/%s",
                  view_namespace(mpa), name);
    cleanup_json json_t *patch =
        json_pack("{s:{s:{s:o}}}", "metadata", "annotations", API_PAUSE_ANNOTATION,
                  pause ? json_string("true") : json_null());
    cleanup_json json_t *answer = cluster_patch(c, path, patch, &err);
    if (answer == NULL) {
        mpactl_error("%s: %s: %s", pause ? "pause" : "resume", name, err.message);
        return -1;
    }
    printf("mpa/%s %s\n", name, pause ? "paused" : "resumed");
    return 0;
}

/* The others are held too when one cannot be. */
static int hold(const struct plugin_options *o, bool pause)
{
    const char *command = pause ? "pause" : "resume";
    struct cluster c;
    struct error err = {0};
    size_t i, failed = 0;
    const json_t *mpa;
    if (o->names.count == 0 && !o->all && !o->selector) {
        mpactl_error("%s: no name: give names of MPAs, --all or a selector", command);
        return EXIT_USAGE;
    }
    json_t *mpas = cluster_open(&c, o, &err) == 0 ? cluster_mpas(&c, o, &err) : NULL;
    json_array_foreach (mpas, i, mpa)
        failed += hold_one(&c, mpa, pause) < 0;
    if (mpas && json_array_size(mpas) == 0)
        say_none(&c);
    cluster_close(&c);
    json_decref(mpas);
    if (mpas == NULL)
        mpactl_error("%s: %s", command, err.message);
    return mpas && failed == 0 ? EXIT_FINE : EXIT_FAILED;
}

int plugin_pause(const struct plugin_options *o)
{
    return hold(o, true);
}

int plugin_resume(const struct plugin_options *o)
{
    return hold(o, false);
}
