/* Any bytes as the files of an Azure trace, divided by lines of three dashes: refused with a place,
 * or a workload that hangs together. */
#include "trace/trace.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Takes a text off the front. A copy of the exact size, so that a read beyond it is seen. */
static struct trace_text take(const char *file, const char **data, size_t *size)
{
    static const char divider[] = "---\n";
    const char *end = memmem(*data, *size, divider, strlen(divider));
    size_t len = end ? (size_t)(end - *data) : *size, passed = end ? len + strlen(divider) : len;
    char *copy = xcalloc(len, 1);
    memcpy(copy, *data, len);
    *data += passed;
    *size -= passed;
    return (struct trace_text){.file = file, .data = copy, .len = len};
}

/* "i:3:14: what" */
static void check_place(const char *message)
{
    const char *at = message + 1;
    check(strchr("idm", message[0]) != NULL);
    for (int i = 0; i < 2; i++) {
        check(*at++ == ':' && *at >= '1' && *at <= '9');
        while (isdigit((unsigned char)*at))
            at++;
    }
    check(at[0] == ':' && at[1] == ' ' && at[2] != '\0');
}

static void check_function(const struct trace_function *f)
{
    check(f->name[0] && f->slot_s == 60 && f->slot_count > 0 && f->quantile_count >= 2);
    for (size_t i = 0; i < f->slot_count; i++)
        check(f->counts[i] >= 0 && f->counts[i] <= 1e9);
    const struct trace_quantile *q = f->quantiles, *last = q + f->quantile_count - 1;
    check(q->share == 0 && last->share == 1 && q->cpu_ms >= 0.1 && last->cpu_ms <= 1e9);
    for (; q < last; q++)
        check(q->share < q[1].share && q->cpu_ms <= q[1].cpu_ms);
    double mean = trace_mean_cpu_ms(f);
    check(mean >= f->quantiles[0].cpu_ms * 0.999999 && mean <= last->cpu_ms * 1.000001);
    check(isnan(f->memory_bytes) || (f->memory_bytes >= 0 && isfinite(f->memory_bytes)));
    check(trace_class_name(trace_classify(f)) != NULL);
}

static void check_trace(const struct trace *trace)
{
    struct map names = {0};
    check(trace->function_count > 0);
    for (size_t i = 0; i < trace->function_count; i++) {
        check_function(&trace->functions[i]);
        check(map_put(&names, trace->functions[i].name, &names) == NULL);
    }
    map_free(&names, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *rest = (const char *)data;
    struct trace_text i = take("i", &rest, &size), d = take("d", &rest, &size);
    bool with_memory = size > 0;
    struct trace_text m = take("m", &rest, &size);
    struct error err = {0};
    struct trace trace;
    if (trace_parse_azure(&i, &d, with_memory ? &m : NULL, &trace, &err) < 0) {
        check_place(err.message);
        check(trace.functions == NULL && trace.function_count == 0);
    } else {
        check(err.code == ERROR_NONE);
        check_trace(&trace);
    }
    trace_clear(&trace);
    free((void *)i.data);
    free((void *)d.data);
    free((void *)m.data);
    return 0;
}
