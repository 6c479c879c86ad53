/* The Azure Functions trace of 2019: invocations per minute, percentiles of execution time and of
 * memory, joined by owner, app and function.
 *
 * As the published files are: some functions have no durations (left out, and counted) and some
 * have two rows of them (the first counts); memory comes by app, or by function in samples made of
 * them. Execution times are whole milliseconds, so that 0 means less than one.
 *
 * Straight lines between so few percentiles make much of the longest executions: the mean would be
 * twice the stated one for one function in six. Where the average is stated, the lines above the
 * 75th percentile are therefore bent until the mean agrees; the percentiles stay as they are. */
#include "trace/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SLOT_S        60
#define MAX_COUNT     1e9 /* requests in a minute */
#define MAX_MS        1e9
#define MAX_MEGABYTES 1e9
#define MEGABYTE      1048576.0
#define MIN_CPU_MS    0.1
#define MAX_BEND      0.99 /* no steps: two points never have the same share */
#define KEY_SIZE      400  /* three identifiers */
#define SHORT_HASH    8
#define MIN_HASH      32

static const struct {
    const char *column;
    double share;
} percentiles[] = {
    {"percentile_Average_0", 0},     {"percentile_Average_1", 0.01},
    {"percentile_Average_25", 0.25}, {"percentile_Average_50", 0.5},
    {"percentile_Average_75", 0.75}, {"percentile_Average_99", 0.99},
    {"percentile_Average_100", 1},
};
#define PERCENTILES ARRAY_LEN(percentiles)
#define BENT_FROM   4 /* the percentile above which lines are bent */
#define AVERAGE     PERCENTILES
static const char average_column[] = "Average";
static const char memory_column[] = "AverageAllocatedMb_pct50";

static bool is_name(const char *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && memcmp(name, wanted, len) == 0;
}

/* Identifiers have no slash in them. */
static void make_key(const struct table *t, bool with_function, char out[KEY_SIZE])
{
    const struct table_id *owner = &t->ids[ROLE_OWNER], *app = &t->ids[ROLE_APP],
                          *function = &t->ids[ROLE_FUNCTION];
    snprintf(out, KEY_SIZE, "%.*s/%.*s/%.*s", (int)owner->len, owner->at, (int)app->len, app->at,
             with_function ? (int)function->len : 0, with_function ? function->at : "");
}

static int need_columns(const struct table *t, bool function_too, struct error *err)
{
    if (!t->has_id[ROLE_OWNER] || !t->has_id[ROLE_APP] ||
        (function_too && !t->has_id[ROLE_FUNCTION]))
        return text_fail(t->text, NULL, err, "the header must have HashOwner, HashApp%s",
                         function_too ? " and HashFunction" : "");
    return 0;
}

/* --- durations ------------------------------------------------------------------------------ */
struct duration {
    struct trace_quantile points[2 * PERCENTILES];
    size_t count;
};

struct duration_columns {
    bool seen[PERCENTILES + 1]; /* the average is the last one */
};

static int duration_role(const char *name, size_t len, void *arg, const char **why)
{
    struct duration_columns *columns = arg;
    for (size_t i = 0; i <= AVERAGE; i++) {
        if (!is_name(name, len, i == AVERAGE ? average_column : percentiles[i].column))
            continue;
        *why = "is there twice";
        if (columns->seen[i])
            return -1;
        columns->seen[i] = true;
        return ROLE_VALUE + (int)i;
    }
    return ROLE_OTHER;
}

/* How far lines must be bent, from 0 (straight) to 1 (steps), for this mean. */
static double bend_for(const double *ms, double average_ms)
{
    double mean = 0, can_give = 0;
    for (size_t i = 0; i + 1 < PERCENTILES; i++) {
        double width = percentiles[i + 1].share - percentiles[i].share;
        mean += width * (ms[i] + ms[i + 1]) / 2;
        if (i >= BENT_FROM)
            can_give += width * (ms[i + 1] - ms[i]) / 2;
    }
    if (!(mean > average_ms) || can_give == 0)
        return 0;
    return fmin((mean - average_ms) / can_give, MAX_BEND);
}

static void make_points(const double *ms, double bend, struct duration *out)
{
    for (size_t i = 0; i < PERCENTILES; i++) {
        double share = percentiles[i].share;
        out->points[out->count++] = (struct trace_quantile){share, ms[i]};
        if (bend > 0 && i >= BENT_FROM && i + 1 < PERCENTILES)
            out->points[out->count++] =
                (struct trace_quantile){share + bend * (percentiles[i + 1].share - share), ms[i]};
    }
}

static int keep_duration(struct table *t, bool with_average, struct map *out, struct error *err)
{
    char key[KEY_SIZE];
    double *ms = t->values;
    for (size_t i = 1; i < PERCENTILES; i++)
        if (ms[i] < ms[i - 1])
            return text_fail(t->text, t->value_at[i], err, "%s is below %s", percentiles[i].column,
                             percentiles[i - 1].column);
    make_key(t, true, key);
    if (map_get(out, key))
        return 0;
    for (size_t i = 0; i < t->value_count; i++)
        ms[i] = fmax(ms[i], MIN_CPU_MS);
    struct duration *kept = xcalloc(1, sizeof(*kept));
    make_points(ms, with_average ? bend_for(ms, ms[AVERAGE]) : 0, kept);
    map_put(out, key, kept);
    return 0;
}

static int read_durations(const struct trace_text *text, struct map *out, struct error *err)
{
    cleanup_table struct table t;
    struct duration_columns columns = {0};
    if (table_open(&t, text, MAX_MS, duration_role, &columns, err) < 0 ||
        need_columns(&t, true, err) < 0)
        return -1;
    for (size_t i = 0; i < PERCENTILES; i++)
        if (!columns.seen[i])
            return text_fail(text, NULL, err, "the header has no %s", percentiles[i].column);
    int more;
    while ((more = table_next(&t, err)) > 0)
        if (keep_duration(&t, columns.seen[AVERAGE], out, err) < 0)
            return -1;
    return more;
}

/* --- memory --------------------------------------------------------------------------------- */
struct memory {
    struct map bytes; /* by function, or by app */
    bool by_function;
};

static int memory_role(const char *name, size_t len, void *arg, const char **why)
{
    bool *seen = arg;
    if (!is_name(name, len, memory_column))
        return ROLE_OTHER;
    *why = "is there twice";
    if (*seen)
        return -1;
    *seen = true;
    return ROLE_VALUE;
}

static int read_memory(const struct trace_text *text, struct memory *out, struct error *err)
{
    cleanup_table struct table t;
    bool seen = false;
    char key[KEY_SIZE];
    if (table_open(&t, text, MAX_MEGABYTES, memory_role, &seen, err) < 0 ||
        need_columns(&t, false, err) < 0)
        return -1;
    if (!seen)
        return text_fail(text, NULL, err, "the header has no %s", memory_column);
    out->by_function = t.has_id[ROLE_FUNCTION];
    int more;
    while ((more = table_next(&t, err)) > 0) {
        make_key(&t, out->by_function, key);
        if (map_get(&out->bytes, key))
            continue;
        double *bytes = xcalloc(1, sizeof(*bytes));
        *bytes = t.values[0] * MEGABYTE;
        map_put(&out->bytes, key, bytes);
    }
    return more;
}

static double memory_of(const struct memory *m, const struct table *t)
{
    char key[KEY_SIZE];
    make_key(t, m->by_function, key);
    const double *bytes = map_get(&m->bytes, key);
    return bytes ? *bytes : NAN;
}

/* --- names ---------------------------------------------------------------------------------- */
static bool is_hash(const struct table_id *id)
{
    for (size_t i = 0; i < id->len; i++)
        if (!strchr("0123456789abcdefABCDEF", id->at[i]))
            return false;
    return id->len >= MIN_HASH;
}

/* A hash is cut short; a name that somebody else has gets a number. `used` counts them by name. */
static char *make_name(const struct table_id *id, struct map *used)
{
    char *name = xasprintf("%.*s", is_hash(id) ? SHORT_HASH : (int)id->len, id->at);
    size_t *times = map_get(used, name);
    if (times == NULL) {
        map_put(used, name, xcalloc(1, sizeof(*times)));
        return name;
    }
    char *numbered = NULL;
    do {
        free(numbered);
        numbered = xasprintf("%s-%zu", name, ++*times + 1);
    } while (map_get(used, numbered));
    map_put(used, numbered, xcalloc(1, sizeof(*times)));
    free(name);
    return numbered;
}

/* --- invocations ---------------------------------------------------------------------------- */
struct minutes {
    size_t count;
    unsigned last;
};

static int minute_role(const char *name, size_t len, void *arg, const char **why)
{
    struct minutes *m = arg;
    unsigned number = 0;
    for (size_t i = 0; i < len; i++) {
        if (name[i] < '0' || name[i] > '9' || i == 8)
            return ROLE_OTHER;
        number = number * 10 + (unsigned)(name[i] - '0');
    }
    if (len == 0)
        return ROLE_OTHER;
    *why = "minutes must follow each other";
    if (m->count > 0 && number != m->last + 1)
        return -1;
    m->last = number;
    return ROLE_VALUE + (int)m->count++;
}

static void add_function(const struct table *t, const struct duration *duration,
                         double memory_bytes, struct map *names, struct trace *out)
{
    size_t n = out->function_count;
    if ((n & (n - 1)) == 0) /* full at each power of two */
        out->functions = xrealloc(out->functions, n ? n * 2 : 1, sizeof(*out->functions));
    struct trace_function *f = &out->functions[out->function_count++];
    *f = (struct trace_function){
        .name = make_name(&t->ids[ROLE_FUNCTION], names),
        .slot_s = SLOT_S,
        .counts = xcalloc(t->value_count, sizeof(double)),
        .slot_count = t->value_count,
        .quantiles = xcalloc(duration->count, sizeof(struct trace_quantile)),
        .quantile_count = duration->count,
        .memory_bytes = memory_bytes,
    };
    memcpy(f->counts, t->values, t->value_count * sizeof(double));
    memcpy(f->quantiles, duration->points, duration->count * sizeof(struct trace_quantile));
}

static int read_invocations(struct table *t, const struct map *durations,
                            const struct memory *memory, struct map *names, size_t max_functions,
                            struct trace *out, struct error *err)
{
    char key[KEY_SIZE];
    int more = 1;
    while (out->function_count < max_functions && (more = table_next(t, err)) > 0) {
        make_key(t, true, key);
        const struct duration *duration = map_get(durations, key);
        if (duration == NULL) {
            out->left_out++;
            continue;
        }
        if ((out->function_count + 1) * t->value_count > MAX_ALL_COUNTS)
            return text_fail(t->text, t->row, err,
                             "more than %zu counts so far: take fewer with functions=N",
                             MAX_ALL_COUNTS);
        add_function(t, duration, memory_of(memory, t), names, out);
    }
    return more < 0 ? -1 : 0;
}

static int join(const struct trace_text *invocations, const struct map *durations,
                const struct memory *memory, size_t max_functions, struct trace *out,
                struct error *err)
{
    cleanup_table struct table t;
    struct minutes minutes = {0};
    if (table_open(&t, invocations, MAX_COUNT, minute_role, &minutes, err) < 0 ||
        need_columns(&t, true, err) < 0)
        return -1;
    if (minutes.count == 0)
        return text_fail(invocations, NULL, err, "the header has no minutes: columns 1, 2, 3, …");
    struct map names = {0};
    int result = read_invocations(&t, durations, memory, &names, max_functions, out, err);
    map_free(&names, free);
    if (result == 0 && out->function_count == 0)
        return text_fail(invocations, NULL, err,
                         out->left_out ? "none of its functions has durations"
                                       : "no row follows the header");
    return result;
}

int azure_parse(const struct trace_text *invocations, const struct trace_text *durations,
                const struct trace_text *memory, size_t max_functions, struct trace *out,
                struct error *err)
{
    struct map by_function = {0};
    struct memory by_memory = {0};
    *out = (struct trace){0};
    int result = read_durations(durations, &by_function, err);
    if (result == 0 && memory)
        result = read_memory(memory, &by_memory, err);
    if (result == 0)
        result = join(invocations, &by_function, &by_memory, max_functions, out, err);
    map_free(&by_function, free);
    map_free(&by_memory.bytes, free);
    if (result < 0)
        trace_clear(out);
    return result;
}

int trace_parse_azure(const struct trace_text *invocations, const struct trace_text *durations,
                      const struct trace_text *memory, struct trace *out, struct error *err)
{
    return azure_parse(invocations, durations, memory, SIZE_MAX, out, err);
}
