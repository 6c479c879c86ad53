/* Any specification of a workload: refused by the name of its form, with nothing left behind, or a
 * workload that can be simulated, the same when it is opened again. "@i", "@d", "@m", "@r" and "@x"
 * stand for files that are there: of Azure, of requests per second, and of neither. */
#include "trace/trace.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_S 100000 /* longer workloads are only slower */
#define IDS    "HashOwner,HashApp,HashFunction,"

static const char *const files[128] = {
    ['i'] = IDS "1,2\no,a,f,3,0.5\no,a,g,0,7\n",
    ['d'] = IDS "percentile_Average_0,percentile_Average_1,percentile_Average_25,"
                "percentile_Average_50,percentile_Average_75,percentile_Average_99,"
                "percentile_Average_100\no,a,f,1,2,3,4,5,6,7\no,a,g,5,5,5,5,5,5,5\n",
    ['m'] = "HashOwner,HashApp,SampleCount,AverageAllocatedMb_pct50\no,a,1,100\n",
    ['r'] = "5\n0\n7.5\n",
    ['x'] = "5\n-1\n",
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* In memory only, so that nothing has to be cleared away. */
static int file_of(char letter)
{
    static int made[128];
    size_t at = (size_t)letter, len = strlen(files[at]);
    if (made[at] == 0) {
        made[at] = memfd_create("trace", MFD_CLOEXEC);
        check(made[at] > 0 && write(made[at], files[at], len) == (ssize_t)len);
    }
    return made[at];
}

static char *with_files(const char *text)
{
    cleanup_buf struct buf out;
    int full = 0;
    buf_init(&out, (size_t)1 << 20);
    for (; *text && !full; text++) {
        if (*text == '@' && text[1] > 0 && files[(size_t)text[1]])
            full = buf_printf(&out, "/proc/self/fd/%d", file_of(*++text));
        else
            full = buf_printf(&out, "%c", *text);
    }
    check(!full);
    return buf_take(&out);
}

/* Of a workload of so many seconds each has its count. */
static bool is_long(const char *text)
{
    static const char *const options[] = {"span=", "period="};
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        for (const char *at = text; (at = strstr(at, options[i])); at++)
            if (strtod(at + strlen(options[i]), NULL) > MOST_S)
                return true;
    return false;
}

static void check_function(const struct trace_function *f)
{
    double before_ms = 0, before = 0;
    check(f->name && f->slot_s > 0 && f->slot_count > 0 && f->quantile_count > 0);
    for (size_t i = 0; i < f->slot_count; i++)
        check(isfinite(f->counts[i]) && f->counts[i] >= 0);
    for (size_t i = 0; i < f->quantile_count; i++) {
        const struct trace_quantile *q = &f->quantiles[i];
        check(q->share >= before && q->share <= 1);
        check(isfinite(q->cpu_ms) && q->cpu_ms >= before_ms);
        before = q->share;
        before_ms = q->cpu_ms;
    }
    check(isfinite(trace_default_goal_ms(f)) && trace_default_goal_ms(f) > 0);
    check(trace_classify(f) < TRACE_CLASS_COUNT);
    check(isnan(f->memory_bytes) || f->memory_bytes > 0);
    check(f->slower == 0 || f->slower_from_s >= 0);
}

static void check_same(const struct trace *a, const struct trace *b)
{
    check(strcmp(a->name, b->name) == 0 && a->function_count == b->function_count);
    for (size_t i = 0; i < a->function_count; i++) {
        const struct trace_function *f = &a->functions[i], *g = &b->functions[i];
        check(f->slot_count == g->slot_count && trace_requests(f) == trace_requests(g));
        check(memcmp(f->counts, g->counts, f->slot_count * sizeof(*f->counts)) == 0);
    }
}

static void try(const char *specification)
{
    struct trace trace, again;
    struct error err = {0};
    size_t form = strcspn(specification, ":");
    if (trace_open(specification, &trace, &err) < 0) {
        check(trace.name == NULL && trace.functions == NULL && trace.function_count == 0);
        check(strncmp(err.message, specification, form) == 0 ||
              strstr(err.message, "must begin with azure:"));
        return;
    }
    check(trace.function_count > 0 && strncmp(trace.name, specification, form + 1) == 0);
    check(strchr(trace.name, '/') == NULL);
    for (size_t i = 0; i < trace.function_count; i++)
        check_function(&trace.functions[i]);
    check(trace_open(specification, &again, &err) == 0);
    check_same(&trace, &again);
    trace_clear(&again);
    trace_clear(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    if (strchr(text, '/') || is_long(text)) /* no other file of this machine */
        return 0;
    cleanup_free char *specification = with_files(text);
    try(specification);
    return 0;
}
