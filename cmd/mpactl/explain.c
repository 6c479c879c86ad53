/* mpactl explain: what was decided and why, from a controller's journal, as a story. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "journal.h"
#include "mpactl.h"
#include "table.h"

struct explain_options {
    const char *mpa;
    double last;
    bool all, help;
};

#define AT(field) offsetof(struct explain_options, field)
static const struct args_option table[] = {
    {"mpa", ARGS_TEXT, AT(mpa), NULL, 0, 0, NULL, "NAME or NAMESPACE/NAME; else every MPA"},
    {"last", ARGS_NUMBER, AT(last), "20", 1, 1e9, NULL, "so many of the last lines of each MPA"},
    {"all", ARGS_FLAG, AT(all), NULL, 0, 0, NULL, "also decisions to leave all as it is"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

struct story { /* of one MPA: a ring of its last lines */
    char *heading;
    char **lines;
    size_t room, count;
    uint64_t decisions, changes;
};

struct telling {
    const struct explain_options *options;
    struct map stories; /* key → struct story */
};

/* --- one line ------------------------------------------------------------------------------------
 */
static void print_latency(const struct observation *seen, char *out, size_t size)
{
    char latency[TABLE_TEXT], goal[TABLE_TEXT];
    switch (seen->latency_state) {
    case LATENCY_NO_GOAL:
        snprintf(out, size, "no latency goal");
        return;
    case LATENCY_NO_TRAFFIC:
        snprintf(out, size, "no requests");
        return;
    case LATENCY_MISSING:
        snprintf(out, size, "latency unknown");
        return;
    case LATENCY_KNOWN:
    case LATENCY_OVERFLOW:
        break;
    }
    snprintf(out, size, "%s%s of %s", seen->latency_state == LATENCY_OVERFLOW ? "over " : "",
             table_duration(seen->latency_ms, latency), table_duration(seen->goal_ms, goal));
}

/* When, what pods were to be, what was seen, and why. */
static char *line_of(const struct journal_step *step)
{
    char time[RFC3339_SIZE], latency[128], rate[32] = "", size[JOURNAL_TEXT];
    time_format(step->time_ms, time);
    print_latency(step->seen, latency, sizeof(latency));
    if (!isnan(step->seen->requests_per_s))
        snprintf(rate, sizeof(rate), ", %.3g/s", step->seen->requests_per_s);
    return xasprintf("%s  %s  (%s%s)  %s", time,
                     journal_size_text(step, step->was_decided ? &step->was : NULL, size), latency,
                     rate, step->was_decided ? step->reason : "nothing could be said");
}

/* --- all of them ---------------------------------------------------------------------------------
 */
static struct story *story_of(struct telling *t, const char *key)
{
    struct story *story = map_get(&t->stories, key);
    if (story == NULL) {
        story = xcalloc(1, sizeof(*story));
        story->room = (size_t)t->options->last;
        map_put(&t->stories, key, story);
    }
    return story;
}

static void add_line(struct story *story, char *line)
{
    if (story->count < story->room)
        story->lines = xrealloc(story->lines, story->count + 1, sizeof(*story->lines));
    else
        free(story->lines[story->count % story->room]);
    story->lines[story->count++ % story->room] = line;
}

static bool on_step(void *arg, const struct journal_step *step)
{
    struct telling *t = arg;
    if (!journal_is_asked_for(t->options->mpa, step->key))
        return true;
    struct story *story = story_of(t, step->key);
    bool changes = strcmp(step->action, "None") != 0;
    free(story->heading);
    story->heading = journal_heading(step->mpa, step->recommender); /* as it is at the end */
    story->decisions++;
    story->changes += changes;
    if (changes || t->options->all)
        add_line(story, line_of(step));
    return true;
}

static void print_story(const struct story *story)
{
    size_t first = story->count > story->room ? story->count - story->room : 0;
    printf("%s\n  %llu decisions, %llu of them changed something\n", story->heading,
           (unsigned long long)story->decisions, (unsigned long long)story->changes);
    if (first > 0)
        printf("  … %zu before these\n", first);
    for (size_t i = first; i < story->count; i++)
        printf("  %s\n", story->lines[i % story->room]);
}

static void free_story(void *value)
{
    struct story *story = value;
    for (size_t i = 0; i < story->count && i < story->room; i++)
        free(story->lines[i]);
    free(story->lines);
    free(story->heading);
    free(story);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_stories(const struct telling *t)
{
    cleanup_free const char **keys = xcalloc(t->stories.count + 1, sizeof(*keys));
    size_t count = 0;
    for (size_t i = 0; (i = map_next(&t->stories, i, &keys[count], NULL)) != 0;)
        count++;
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (size_t i = 0; i < count; i++)
        print_story(map_get(&t->stories, keys[i]));
}

static int explain(const char *file, const struct explain_options *o)
{
    struct telling t = {.options = o};
    struct error err;
    int result =
        journal_replay(file, &(struct journal_replay){.on_step = on_step, .arg = &t}, &err);
    print_stories(&t);
    if (result < 0)
        mpactl_error("explain: %s", err.message);
    else if (t.stories.count == 0)
        mpactl_error("explain: %s: there is no decision%s%s in it", file, o->mpa ? " on " : "",
                     o->mpa ? o->mpa : "");
    bool found = t.stories.count > 0;
    map_free(&t.stories, free_story);
    return result < 0 || !found ? EXIT_FAILED : EXIT_FINE;
}

int cmd_explain(int argc, char **argv)
{
    struct explain_options options = {0};
    struct error err;
    bool named = argc > 1 && argv[1][0] != '-';
    if (args_parse(table, ARRAY_LEN(table), argc - named, argv + named, &options, &err) < 0) {
        mpactl_error("explain: %s: see mpactl explain --help", err.message);
        return EXIT_USAGE;
    }
    if (options.help) {
        puts("mpactl explain JOURNAL [OPTION…]\n\n"
             "Tells what a controller decided and why, from the file of its option --journal.\n\n"
             "Options:");
        args_print_help(table, ARRAY_LEN(table));
        return EXIT_FINE;
    }
    if (!named || options.last != floor(options.last)) {
        mpactl_error("explain: %s: see mpactl explain --help",
                     named ? "--last is a whole number" : "name the journal first");
        return EXIT_USAGE;
    }
    return explain(argv[1], &options);
}
