/* kubectl mpa history: all that the cluster still knows of an MPA's past, in order of time. */
#include <stdio.h>
#include <string.h>

#include "kubectl.h"
#include "mpactl.h"

/* What has no time has not happened. */
static void add(json_t *past, json_t *item)
{
    if (*view_text(item, "time"))
        json_array_append_new(past, item);
    else
        json_decref(item);
}

static void add_events(json_t *past, const json_t *events)
{
    size_t i;
    const json_t *event;
    json_array_foreach (events, i, event)
        add(past, view_happened_event(event));
}

static void add_conditions(json_t *past, const json_t *mpa)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_path(mpa, "status", "conditions", NULL), i, item)
        add(past, view_happened_condition(item));
}

static void add_status(json_t *past, const json_t *mpa)
{
    add(past, view_happened(json_str(json_path(mpa, "metadata", "creationTimestamp", NULL)),
                            "object", "Created", "the MPA was created", 1));
    add(past, view_happened_decision(json_path(mpa, "status", "lastDecision", NULL)));
}

static int by_time(const void *a, const void *b)
{
    int64_t at[2] = {0};
    time_parse(view_text(*(json_t *const *)a, "time"), &at[0]);
    time_parse(view_text(*(json_t *const *)b, "time"), &at[1]);
    return (at[0] > at[1]) - (at[0] < at[1]);
}

/* The last so many of those that are not too old. */
static json_t *select_last(const json_t *past, const struct plugin_options *o)
{
    size_t n = json_array_size(past), kept = 0;
    cleanup_free json_t **items = xcalloc(n + 1, sizeof(*items));
    int64_t from_ms = o->since_s > 0 ? clock_wall_ms() - (int64_t)(1000 * o->since_s) : INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        int64_t at = 0;
        json_t *item = json_array_get(past, i);
        time_parse(view_text(item, "time"), &at);
        if (at >= from_ms)
            items[kept++] = item;
    }
    qsort(items, kept, sizeof(*items), by_time);
    json_t *out = json_array();
    size_t last = (size_t)o->last;
    for (size_t i = kept > last ? kept - last : 0; i < kept; i++)
        json_array_append(out, items[i]);
    return out;
}

static void print_past(const json_t *past, const char *output)
{
    size_t i;
    const json_t *item;
    if (view_is_for_machines(output)) {
        view_print_data(past, output);
        return;
    }
    json_array_foreach (past, i, item) {
        json_int_t count = json_integer_value(json_object_get(item, "count"));
        printf("%-20.19s  %-9s  %-22s  %s", view_text(item, "time"), view_text(item, "source"),
               view_text(item, "what"), view_text(item, "message"));
        if (count > 1)
            printf(" (%" JSON_INTEGER_FORMAT " times)", count);
        putchar('\n');
    }
}

static int tell(struct cluster *c, const struct plugin_options *o, struct error *err)
{
    const char *name = o->names.items[0];
    cleanup_json json_t *mpa = cluster_mpa(c, name, err);
    cleanup_json json_t *events = mpa ? cluster_events(c, name, err) : NULL;
    if (events == NULL)
        return -1;
    cleanup_json json_t *past = json_array();
    add_status(past, mpa);
    add_conditions(past, mpa);
    add_events(past, events);
    cleanup_json json_t *shown = select_last(past, o);
    print_past(shown, o->output);
    return 0;
}

int plugin_history(const struct plugin_options *o)
{
    struct cluster c;
    struct error err = {0};
    if (o->names.count != 1) {
        mpactl_error("history: %s: give the name of one MPA",
                     o->names.count ? "more than one name" : "no name");
        return EXIT_USAGE;
    }
    if (o->output && strcmp(o->output, "name") == 0) {
        mpactl_error("history: --output: what happened has no names: json, yaml or wide");
        return EXIT_USAGE;
    }
    int result = cluster_open(&c, o, &err) == 0 ? tell(&c, o, &err) : -1;
    cluster_close(&c);
    if (result == 0)
        return EXIT_FINE;
    mpactl_error("history: %s", err.message);
    return EXIT_FAILED;
}
