/* Specifications: "form:part,part,…", where a part is a file or an option "name=number". */
#include "trace/internal.h"

#include <math.h>
#include <string.h>

const char trace_forms[] =
    "azure:INVOCATIONS,DURATIONS[,MEMORY][,functions=N][,scale=X]\n"
    "rps:FILE[,scale=X][,demand=MS][,p99=MS]\n"
    "poisson:rate=R[,span=S][,demand=MS][,p99=MS]\n"
    "bursty:rate=R,burst=X,every=S,length=S[,span=S][,demand=MS][,p99=MS][,seed=N]\n"
    "diurnal:rate=R[,amplitude=A][,period=S][,span=S][,demand=MS][,p99=MS]\n"
    "  each with [,slower=X][,gather=S][,change=S]: another function from then on\n";

#define MAX_SPAN_S       31622400 /* 366 days */
#define MAX_FILES        3
#define DEFAULT_DEMAND   10
#define DEFAULT_SPREAD   2 /* p99 of demand */
#define DEFAULT_SPAN_S   3600
#define DEFAULT_PERIOD_S 86400

#define BIT(option) (1u << (option))

enum option {
    RATE,
    BURST,
    EVERY,
    LENGTH,
    AMPLITUDE,
    PERIOD,
    SPAN,
    DEMAND,
    P99,
    SEED,
    SCALE,
    FUNCTIONS,
    SLOWER,
    GATHER,
    CHANGE,
    OPTION_COUNT
};

static const struct {
    const char *name, *what;
    double least, most;
    bool whole;
} rules[OPTION_COUNT] = {
    [RATE] = {"rate", "requests per second", 1e-6, 1e6, false},
    [BURST] = {"burst", "rate in a burst, as a multiple of rate", 1, 1e6, false},
    [EVERY] = {"every", "seconds, with one burst in each", 1, MAX_SPAN_S, false},
    [LENGTH] = {"length", "seconds of a burst", 0.001, MAX_SPAN_S, false},
    [AMPLITUDE] = {"amplitude", "share of rate by which it rises and falls", 0, 1, false},
    [PERIOD] = {"period", "seconds of a day", 1, MAX_SPAN_S, false},
    [SPAN] = {"span", "whole seconds", 1, MAX_SPAN_S, true},
    [DEMAND] = {"demand", "milliseconds of CPU, median", 0.001, 1e7, false},
    [P99] = {"p99", "milliseconds of CPU, 99th percentile", 0.001, 1e7, false},
    [SEED] = {"seed", "a whole number", 0, 0x1p53, true},
    [SCALE] = {"scale", "factor for the number of requests", 1e-6, 1e6, false},
    [FUNCTIONS] = {"functions", "how many to take, a whole number", 1, 1e9, true},
    [SLOWER] = {"slower", "factor for the CPU of a request after the change", 0.001, 1000, false},
    [GATHER] = {"gather", "seconds, of which all requests come in a tenth after the change", 10,
                MAX_SPAN_S, false},
    [CHANGE] = {"change", "seconds until the change", 0, MAX_SPAN_S, false},
};

/* A specification taken apart. An option that is not stated is NaN. */
struct spec {
    const struct form *form;
    char *copy; /* which files point into */
    const char *files[MAX_FILES];
    size_t file_count;
    double options[OPTION_COUNT];
};

struct form {
    const char *name;
    size_t min_files, max_files;
    unsigned required, allowed; /* options, as bits */
    int (*open)(const struct spec *spec, struct trace *out, struct error *err);
};

static double option(const struct spec *spec, enum option o, double fallback)
{
    return isnan(spec->options[o]) ? fallback : spec->options[o];
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- the forms ------------------------------------------------------------------------------ */
static void scale_counts(const struct spec *spec, struct trace *trace)
{
    double scale = option(spec, SCALE, 1);
    if (scale == 1)
        return;
    for (size_t i = 0; i < trace->function_count; i++)
        for (size_t k = 0; k < trace->functions[i].slot_count; k++)
            trace->functions[i].counts[k] *= scale;
}

static int open_azure(const struct spec *spec, struct trace *out, struct error *err)
{
    struct trace_text texts[MAX_FILES] = {0};
    int result = 0;
    for (size_t i = 0; i < spec->file_count && result == 0; i++)
        result = text_read(spec->files[i], &texts[i], err);
    if (result == 0)
        result = azure_parse(&texts[0], &texts[1], spec->file_count > 2 ? &texts[2] : NULL,
                             (size_t)option(spec, FUNCTIONS, 1e9), out, err);
    for (size_t i = 0; i < MAX_FILES; i++)
        free((void *)texts[i].data);
    if (result == 0)
        scale_counts(spec, out);
    return result;
}

static struct trace_function *only_function(struct trace *out)
{
    *out = (struct trace){.functions = xcalloc(1, sizeof(*out->functions)), .function_count = 1};
    out->functions[0].memory_bytes = NAN;
    return out->functions;
}

static int set_demand(const struct spec *spec, struct trace_function *f, struct error *err)
{
    double median = option(spec, DEMAND, DEFAULT_DEMAND);
    double p99 = option(spec, P99, DEFAULT_SPREAD * median);
    if (p99 < median)
        return error_set(err, ERROR_INVALID, "p99=%g: must not be below demand=%g", p99, median);
    generate_demand(median, p99, f);
    return 0;
}

static int open_rps(const struct spec *spec, struct trace *out, struct error *err)
{
    struct trace_text text;
    if (text_read(spec->files[0], &text, err) < 0)
        return -1;
    struct trace_function *f = only_function(out);
    int result = trace_parse_rps(&text, &f->counts, &f->slot_count, err);
    free((void *)text.data);
    if (result < 0)
        return result;
    const char *name = base_name(spec->files[0]), *dot = strrchr(name, '.');
    f->name = xasprintf("%.*s", dot && dot != name ? (int)(dot - name) : (int)strlen(name), name);
    f->slot_s = 1;
    scale_counts(spec, out);
    return set_demand(spec, f, err);
}

static int check_generator(const struct spec *spec, struct error *err)
{
    double every = option(spec, EVERY, NAN), length = option(spec, LENGTH, NAN);
    if (length > every)
        return error_set(err, ERROR_INVALID, "length=%g: must not be above every=%g", length,
                         every);
    return 0;
}

static int generate(const struct spec *spec, struct trace *out,
                    void (*arrivals)(const struct generator *g, struct trace_function *f),
                    struct error *err)
{
    double period = option(spec, PERIOD, DEFAULT_PERIOD_S);
    bool diurnal = spec->form->allowed & BIT(PERIOD);
    struct generator g = {
        .rate = spec->options[RATE],
        .span_s = option(spec, SPAN, diurnal ? ceil(period) : DEFAULT_SPAN_S),
        .burst = spec->options[BURST],
        .every_s = spec->options[EVERY],
        .length_s = spec->options[LENGTH],
        .seed = (uint64_t)option(spec, SEED, 1),
        .amplitude = option(spec, AMPLITUDE, 0.5),
        .period_s = period,
    };
    if (check_generator(spec, err) < 0)
        return -1;
    struct trace_function *f = only_function(out);
    f->name = xstrdup(spec->form->name);
    arrivals(&g, f);
    return set_demand(spec, f, err);
}

static int open_poisson(const struct spec *spec, struct trace *out, struct error *err)
{
    return generate(spec, out, generate_poisson, err);
}

static int open_bursty(const struct spec *spec, struct trace *out, struct error *err)
{
    return generate(spec, out, generate_bursty, err);
}

static int open_diurnal(const struct spec *spec, struct trace *out, struct error *err)
{
    return generate(spec, out, generate_diurnal, err);
}

static int apply_change(const struct spec *spec, struct trace *trace, struct error *err)
{
    const double *o = spec->options;
    if (isnan(o[SLOWER]) && isnan(o[GATHER]))
        return isnan(o[CHANGE])
                   ? 0
                   : error_set(err, ERROR_INVALID, "change=%g: state slower=X or gather=S, too",
                               o[CHANGE]);
    return change_functions(trace, &(struct change){o[SLOWER], o[GATHER], o[CHANGE]}, err);
}

#define CHANGE_BITS  (BIT(SLOWER) | BIT(GATHER) | BIT(CHANGE))
#define DEMAND_BITS  (BIT(DEMAND) | BIT(P99) | CHANGE_BITS)
#define BURSTY_BITS  (BIT(RATE) | BIT(BURST) | BIT(EVERY) | BIT(LENGTH))
#define DIURNAL_BITS (BIT(RATE) | BIT(AMPLITUDE) | BIT(PERIOD) | BIT(SPAN))
static const struct form forms[] = {
    {"azure", 2, 3, 0, BIT(FUNCTIONS) | BIT(SCALE) | CHANGE_BITS, open_azure},
    {"rps", 1, 1, 0, BIT(SCALE) | DEMAND_BITS, open_rps},
    {"poisson", 0, 0, BIT(RATE), BIT(RATE) | BIT(SPAN) | DEMAND_BITS, open_poisson},
    {"bursty", 0, 0, BURSTY_BITS, BURSTY_BITS | BIT(SPAN) | BIT(SEED) | DEMAND_BITS, open_bursty},
    {"diurnal", 0, 0, BIT(RATE), DIURNAL_BITS | DEMAND_BITS, open_diurnal},
};

/* --- taking a specification apart ----------------------------------------------------------- */
static int list_options(const struct form *form, const char *part, struct error *err)
{
    cleanup_buf struct buf list;
    buf_init(&list, 200);
    for (int o = 0; o < OPTION_COUNT; o++)
        if (form->allowed & BIT(o) &&
            buf_printf(&list, "%s%s", list.len ? ", " : "", rules[o].name) < 0)
            break;
    return error_set(err, ERROR_INVALID, "unknown option \"%s\": there are %s", part,
                     buf_string(&list));
}

static int bad_option(enum option o, const char *text, struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s=%s: must be a%s number from %.9g to %.9g (%s)",
                     rules[o].name, text, rules[o].whole ? " whole" : "", rules[o].least,
                     rules[o].most, rules[o].what);
}

static int take_option(struct spec *spec, const char *part, size_t name_len, struct error *err)
{
    int o = 0;
    while (o < OPTION_COUNT &&
           (!(spec->form->allowed & BIT(o)) || strlen(rules[o].name) != name_len ||
            memcmp(rules[o].name, part, name_len) != 0))
        o++;
    if (o == OPTION_COUNT)
        return list_options(spec->form, part, err);
    if (!isnan(spec->options[o]))
        return error_set(err, ERROR_INVALID, "%s is stated twice", rules[o].name);
    const char *text = part + name_len + 1, *at = text, *end = text + strlen(text);
    double value;
    if (text_number(&at, end, rules[o].most, &value) || at != end || value < rules[o].least ||
        (rules[o].whole && value != floor(value)))
        return bad_option((enum option)o, text, err);
    spec->options[o] = value;
    return 0;
}

/* "./name=x" is a file, "name=x" an option. */
static int take_part(struct spec *spec, const char *part, struct error *err)
{
    size_t name_len = strspn(part, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (part[name_len] == '=')
        return take_option(spec, part, name_len, err);
    if (*part == '\0')
        return error_set(err, ERROR_INVALID, "nothing between two commas, or behind the last one");
    if (spec->file_count == spec->form->max_files)
        return spec->form->max_files == 0
                   ? error_set(err, ERROR_INVALID, "\"%s\": must be an option name=number", part)
                   : error_set(err, ERROR_INVALID, "\"%s\": at most %zu files, then options", part,
                               spec->form->max_files);
    spec->files[spec->file_count++] = part;
    return 0;
}

static int check_complete(const struct spec *spec, struct error *err)
{
    if (spec->file_count < spec->form->min_files)
        return error_set(err, ERROR_INVALID, "%s",
                         spec->form->min_files == 1 ? "a file is missing"
                                                    : "files are missing: invocations and "
                                                      "durations are needed");
    for (int o = 0; o < OPTION_COUNT; o++)
        if (spec->form->required & BIT(o) && isnan(spec->options[o]))
            return error_set(err, ERROR_INVALID, "option %s is missing: state %s=NUMBER (%s)",
                             rules[o].name, rules[o].name, rules[o].what);
    return 0;
}

static int take_apart(struct spec *spec, struct error *err)
{
    char *rest = spec->copy, *part;
    if (*rest == '\0')
        return check_complete(spec, err);
    while ((part = strsep(&rest, ",")))
        if (take_part(spec, part, err) < 0)
            return -1;
    return check_complete(spec, err);
}

/* The specification without directories; its files begin at `begin`. */
static char *make_title(const char *specification, size_t begin)
{
    char *title = xstrdup(specification), *out = title + begin;
    for (const char *at = out; *at; at++) {
        if (*at == '/')
            while (out > title + begin && out[-1] != ',')
                out--;
        else
            *out++ = *at;
    }
    *out = '\0';
    return title;
}

static const struct form *find_form(const char *specification, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (strlen(forms[i].name) == len && memcmp(forms[i].name, specification, len) == 0)
            return &forms[i];
    return NULL;
}

int trace_open(const char *specification, struct trace *out, struct error *err)
{
    size_t len = strcspn(specification, ":");
    *out = (struct trace){0};
    struct spec spec = {.form = find_form(specification, len)};
    if (!spec.form || specification[len] == '\0')
        return error_set(err, ERROR_INVALID,
                         "workload \"%.80s\": must begin with azure:, rps:, "
                         "poisson:, bursty: or diurnal:",
                         specification);
    for (int o = 0; o < OPTION_COUNT; o++)
        spec.options[o] = NAN;
    spec.copy = xstrdup(specification + len + 1);
    int result = take_apart(&spec, err);
    if (result == 0)
        result = spec.form->open(&spec, out, err);
    if (result == 0)
        result = apply_change(&spec, out, err);
    free(spec.copy);
    if (result < 0) {
        trace_clear(out);
        return error_prefix(err, "%s", spec.form->name);
    }
    out->name = make_title(specification, len + 1);
    return 0;
}
