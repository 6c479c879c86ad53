#include "trace/trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- help ----------------------------------------------------------------------------------- */
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static void open_ok(const char *specification, struct trace *out)
{
    struct error err = {0};
    if (trace_open(specification, out, &err) < 0)
        fail_msg("%s: %s", specification, err.message);
}

static enum error_code open_error(const char *specification, const char *message)
{
    struct error err = {0};
    struct trace trace;
    assert_int_equal(trace_open(specification, &trace, &err), -1);
    if (!strstr(err.message, message))
        fail_msg("%s: \"%s\" is not in \"%s\"", specification, message, err.message);
    assert_null(trace.functions);
    assert_null(trace.name);
    assert_int_equal(trace.function_count, 0);
    return err.code;
}

static void open_fails(const char *specification, const char *message)
{
    assert_int_equal(open_error(specification, message), ERROR_INVALID);
}

static void file_fails(const char *specification, const char *message)
{
    assert_int_not_equal(open_error(specification, message), ERROR_INVALID);
}

static struct trace_text text_of(const char *file, const char *data)
{
    return (struct trace_text){.file = file, .data = data, .len = strlen(data)};
}

static int parse_azure(const char *invocations, const char *durations, const char *memory,
                       struct trace *out, struct error *err)
{
    struct trace_text i = text_of("i.csv", invocations), d = text_of("d.csv", durations);
    struct trace_text m = text_of("m.csv", memory ? memory : "");
    return trace_parse_azure(&i, &d, memory ? &m : NULL, out, err);
}

static void azure_ok(const char *invocations, const char *durations, const char *memory,
                     struct trace *out)
{
    struct error err = {0};
    if (parse_azure(invocations, durations, memory, out, &err) < 0)
        fail_msg("%s", err.message);
}

static void azure_fails(const char *invocations, const char *durations, const char *memory,
                        const char *message)
{
    struct error err = {0};
    struct trace trace;
    assert_int_equal(parse_azure(invocations, durations, memory, &trace, &err), -1);
    assert_string_equal(err.message, message);
    assert_null(trace.functions);
}

static void rps_fails(const char *data, size_t len, const char *message)
{
    struct error err = {0};
    struct trace_text text = {.file = "r.txt", .data = data, .len = len};
    double *counts = NULL;
    size_t count = 0;
    assert_int_equal(trace_parse_rps(&text, &counts, &count, &err), -1);
    assert_string_equal(err.message, message);
    assert_null(counts);
}

static double peak(const struct trace_function *f)
{
    double most = 0;
    for (size_t i = 0; i < f->slot_count; i++)
        most = fmax(most, f->counts[i]);
    return most;
}

#define IDS "HashOwner,HashApp,HashFunction,"
#define DURATIONS                                                                                  \
    IDS "percentile_Average_0,percentile_Average_1,percentile_Average_25,percentile_Average_50,"   \
        "percentile_Average_75,percentile_Average_99,percentile_Average_100\n"
#define FLAT "o,a,f,5,5,5,5,5,5,5\n"

/* --- specifications ------------------------------------------------------------------------- */
static void test_unknown_forms_are_refused(void **state)
{
    (void)state;
    open_fails("", "must begin with azure:, rps:, poisson:, bursty: or diurnal:");
    open_fails("poisson", "workload \"poisson\": must begin with");
    open_fails("gauss:rate=1", "workload \"gauss:rate=1\": must begin with");
    open_fails("Poisson:rate=1", "must begin with");
}

static void test_wrong_options_are_named(void **state)
{
    (void)state;
    open_fails("poisson:", "poisson: option rate is missing: state rate=NUMBER (requests per");
    open_fails("bursty:rate=1,burst=2,every=10", "option length is missing");
    open_fails("poisson:rate=1,burst=2",
               "unknown option \"burst=2\": there are rate, span, demand");
    open_fails("poisson:rate=1,rate=2", "rate is stated twice");
    open_fails("poisson:rate=1,file.csv", "\"file.csv\": must be an option name=number");
    open_fails("poisson:rate=1,", "nothing between two commas, or behind the last one");
    open_fails("bursty:rate=1,burst=2,every=10,length=11", "length=11: must not be above every=10");
    open_fails("poisson:rate=1,demand=5,p99=4", "p99=4: must not be below demand=5");
    open_fails("poisson:rate=1,p99=4", "p99=4: must not be below demand=10");
    open_fails("rps:", "rps: a file is missing");
    open_fails("rps:a,b", "\"b\": at most 1 files, then options");
    open_fails("rps:scale=2", "a file is missing");
    open_fails("azure:a", "files are missing: invocations and durations are needed");
    open_fails("azure:a,b,c,d", "\"d\": at most 3 files");
    open_fails("azure:a,b,demand=1", "unknown option \"demand=1\": there are scale, functions");
}

static void test_wrong_numbers_are_named_with_their_range(void **state)
{
    static const char *const bad[] = {"",   "x",  "-1",  "0",        "nan",   "inf", "1e7",
                                      "1x", "1 ", "0x1", "1e999",    "1.2.3", "+1",  "1e",
                                      "e1", ".",  "1..", "\xff\xfe", "1e-9"};
    char specification[64];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(specification, sizeof(specification), "poisson:rate=%s", bad[i]);
        open_fails(specification, ": must be a number from 1e-06 to 1000000 (requests per second)");
    }
    open_fails("poisson:rate=1,span=1.5", "span=1.5: must be a whole number from 1 to 31622400");
    open_fails("poisson:rate=1,span=31622401", "must be a whole number from 1 to 31622400");
    open_fails("diurnal:rate=1,amplitude=1.01", "must be a number from 0 to 1");
}

static void test_each_form_is_listed(void **state)
{
    (void)state;
    assert_string_equal(trace_forms,
                        "azure:INVOCATIONS,DURATIONS[,MEMORY][,functions=N][,scale=X]\n"
                        "rps:FILE[,scale=X][,demand=MS][,p99=MS]\n"
                        "poisson:rate=R[,span=S][,demand=MS][,p99=MS]\n"
                        "bursty:rate=R,burst=X,every=S,length=S[,span=S][,demand=MS][,p99=MS]"
                        "[,seed=N]\n"
                        "diurnal:rate=R[,amplitude=A][,period=S][,span=S][,demand=MS][,p99=MS]\n"
                        "  each with [,slower=X][,gather=S][,change=S]: another function from then "
                        "on\n");
}

/* --- generators ----------------------------------------------------------------------------- */
static void test_poisson_has_one_rate(void **state)
{
    struct trace trace;
    (void)state;
    open_ok("poisson:rate=12.5", &trace);
    assert_string_equal(trace.name, "poisson:rate=12.5");
    assert_int_equal(trace.function_count, 1);
    const struct trace_function *f = trace.functions;
    assert_string_equal(f->name, "poisson");
    assert_true(f->poisson && f->repeat && isnan(f->memory_bytes));
    assert_near(trace_span_s(f), 3600, 0);
    assert_near(trace_requests(f), 45000, 1e-9);
    trace_clear(&trace);
    open_ok("poisson:span=60,rate=1e1", &trace);
    assert_near(trace_span_s(trace.functions), 60, 0);
    assert_near(trace_requests(trace.functions), 600, 1e-9);
    trace_clear(&trace);
}

/* A burst of 7.5 s in each 100 s: mean rate (92.5 + 7.5 × 20) / 100 × 4. */
static void test_bursts_have_their_share(void **state)
{
    struct trace trace;
    (void)state;
    open_ok("bursty:rate=4,burst=20,every=100,length=7.5,span=10000", &trace);
    const struct trace_function *f = trace.functions;
    assert_true(f->poisson && f->repeat);
    assert_near(f->slot_s, 1, 0);
    assert_int_equal(f->slot_count, 10000);
    assert_near(trace_requests(f), 10000 * 4 * (92.5 + 7.5 * 20) / 100, 1e-6);
    assert_near(peak(f), 80, 1e-9);
    double extra = 0, begins = 0;
    for (size_t window = 0; window < 100; window++) {
        double here = 0, first = -1;
        for (size_t i = 0; i < 100; i++) {
            double more = f->counts[window * 100 + i] - 4;
            assert_true(more >= -1e-9);
            if (more > 1e-9 && first < 0)
                first = (double)i;
            here += more;
        }
        assert_near(here, 7.5 * 4 * 19, 1e-6); /* one whole burst in each window */
        extra += here;
        begins += first / 100;
    }
    assert_near(extra / trace_requests(f), 7.5 * 19 / (92.5 + 7.5 * 20), 1e-9);
    /* Begins are even on [0, 92.5): mean 46.25 - 0.5 for whole seconds, deviation of the mean 2.7.
     */
    assert_near(begins, 45.75, 4 * 2.7);
    trace_clear(&trace);
}

static void test_bursts_depend_on_the_seed_alone(void **state)
{
    struct trace a, b, c;
    (void)state;
    open_ok("bursty:rate=1,burst=5,every=60,length=10,seed=7", &a);
    open_ok("bursty:rate=1,burst=5,every=60,length=10,seed=7", &b);
    open_ok("bursty:rate=1,burst=5,every=60,length=10,seed=8", &c);
    size_t bytes = a.functions->slot_count * sizeof(double);
    assert_int_equal(bytes, 3600 * sizeof(double));
    assert_memory_equal(a.functions->counts, b.functions->counts, bytes);
    assert_memory_not_equal(a.functions->counts, c.functions->counts, bytes);
    trace_clear(&a);
    trace_clear(&b);
    trace_clear(&c);
}

static void test_a_burst_is_cut_at_the_end_of_the_span(void **state)
{
    struct trace trace;
    (void)state;
    open_ok("bursty:rate=2,burst=3,every=50,length=50,span=75", &trace);
    assert_near(trace_requests(trace.functions), 75 * 6, 1e-9);
    trace_clear(&trace);
}

static void test_a_day_rises_and_falls(void **state)
{
    struct trace trace;
    (void)state;
    open_ok("diurnal:rate=10,amplitude=0.8,period=1000,span=2000", &trace);
    const struct trace_function *f = trace.functions;
    assert_int_equal(f->slot_count, 2000);
    assert_near(trace_requests(f), 20000, 1e-6); /* over whole days the wave is nothing */
    assert_near(f->counts[0], 2, 0.001);
    assert_near(f->counts[250], 10, 0.03);
    assert_near(f->counts[500], 18, 0.001);
    assert_near(f->counts[1500], 18, 0.001);
    trace_clear(&trace);
    open_ok("diurnal:rate=10", &trace);
    f = trace.functions;
    assert_near(trace_span_s(f), 86400, 0);
    assert_near(trace_requests(f), 864000, 1e-3);
    assert_near(f->counts[0], 5, 1e-6);
    assert_near(peak(f), 15, 1e-6);
    trace_clear(&trace);
    open_ok("diurnal:rate=10,amplitude=1,period=10", &trace);
    for (size_t i = 0; i < trace.functions->slot_count; i++)
        assert_true(trace.functions->counts[i] >= 0);
    trace_clear(&trace);
}

/* --- demand --------------------------------------------------------------------------------- */
/* A log-normal distribution: quantiles m (p/m)^(z/z99), mean m exp(σ²/2) with σ = ln(p/m)/z99. */
static void test_demand_is_log_normal(void **state)
{
    struct trace trace;
    (void)state;
    open_ok("poisson:rate=1,demand=20,p99=60", &trace);
    const struct trace_function *f = trace.functions;
    assert_near(trace_cpu_quantile_ms(f, 0.5), 20, 1e-9);
    assert_near(trace_cpu_quantile_ms(f, 0.99), 60, 1e-9);
    assert_near(trace_cpu_quantile_ms(f, 0.01), 20.0 * 20 / 60, 1e-9);
    double sigma = log(3) / 2.326348;
    assert_near(trace_cpu_quantile_ms(f, 0.9), 20 * exp(1.281552 * sigma), 1e-6);
    assert_near(trace_mean_cpu_ms(f) / (20 * exp(sigma * sigma / 2)), 1, 0.02);
    trace_clear(&trace);
    open_ok("poisson:rate=1", &trace);
    assert_near(trace_cpu_quantile_ms(trace.functions, 0.5), 10, 1e-9);
    assert_near(trace_cpu_quantile_ms(trace.functions, 0.99), 20, 1e-9);
    assert_near(trace_default_goal_ms(trace.functions), 40, 1e-9);
    trace_clear(&trace);
    open_ok("poisson:rate=1,demand=7,p99=7", &trace);
    for (double share = 0; share <= 1; share += 0.125)
        assert_near(trace_cpu_quantile_ms(trace.functions, share), 7, 1e-12);
    assert_near(trace_mean_cpu_ms(trace.functions), 7, 1e-12);
    trace_clear(&trace);
}

static void test_quantiles_are_straight_lines(void **state)
{
    struct trace_quantile points[] = {{0, 10}, {0.5, 20}, {0.5, 40}, {1, 80}};
    struct trace_function f = {.quantiles = points, .quantile_count = ARRAY_LEN(points)};
    (void)state;
    assert_near(trace_cpu_quantile_ms(&f, -1), 10, 0);
    assert_near(trace_cpu_quantile_ms(&f, 0), 10, 0);
    assert_near(trace_cpu_quantile_ms(&f, 0.25), 15, 1e-12);
    assert_near(trace_cpu_quantile_ms(&f, 0.5), 40, 1e-12);
    assert_near(trace_cpu_quantile_ms(&f, 0.75), 60, 1e-12);
    assert_near(trace_cpu_quantile_ms(&f, 1), 80, 0);
    assert_near(trace_mean_cpu_ms(&f), 0.5 * 15 + 0.5 * 60, 1e-12);
    struct trace_quantile inner[] = {{0.2, 10}, {0.8, 20}};
    f = (struct trace_function){.quantiles = inner, .quantile_count = 2};
    assert_near(trace_cpu_quantile_ms(&f, 0.1), 10, 0);
    assert_near(trace_cpu_quantile_ms(&f, 0.9), 20, 0);
    assert_near(trace_mean_cpu_ms(&f), 0.2 * 10 + 0.6 * 15 + 0.2 * 20, 1e-12);
}

static void test_exponential_demand(void **state)
{
    struct trace_function f = {.demand = TRACE_DEMAND_EXPONENTIAL, .mean_cpu_ms = 30};
    (void)state;
    assert_near(trace_mean_cpu_ms(&f), 30, 0);
    assert_near(trace_cpu_quantile_ms(&f, 0.5), 30 * log(2), 1e-9);
    assert_near(trace_default_goal_ms(&f), 2 * 30 * log(100), 1e-9);
}

/* --- requests per second -------------------------------------------------------------------- */
static void test_rps_takes_a_number_per_line(void **state)
{
    static const char data[] = "\xef\xbb\xbf"
                               "3\n 0 \r\n\t2.5\n1e2\n123456789.25\n0.1234567890123456789\n7\n\n";
    static const double wanted[] = {3, 0, 2.5, 100, 123456789.25, 0.1234567890123456789, 7};
    struct trace_text text = {.file = "r", .data = data, .len = sizeof(data) - 1};
    struct error err = {0};
    double *counts;
    size_t count;
    (void)state;
    assert_int_equal(trace_parse_rps(&text, &counts, &count, &err), 0);
    assert_int_equal(count, ARRAY_LEN(wanted));
    for (size_t i = 0; i < count; i++)
        assert_true(counts[i] == wanted[i]);
    free(counts);
}

static void test_bad_rps_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *data, *message;
    } bad[] = {
        {"", "r.txt:1:1: the file is empty"},
        {"\n\r\n  \n", "r.txt:1:1: the file is empty"},
        {"\xef\xbb\xbf", "r.txt:1:1: the file is empty"},
        {"1\n\n2\n", "r.txt:2:1: a number from 0 to 1e+09 is missing"},
        {"1\n2\n  -3\n", "r.txt:3:3: \"-3\" is negative: must be from 0 to 1e+09"},
        {"1\nnan\n", "r.txt:2:1: \"nan\" is not a number: must be from 0 to 1e+09"},
        {"1\ninf\n", "r.txt:2:1: \"inf\" is not a number: must be from 0 to 1e+09"},
        {"-inf\n", "r.txt:1:1: \"-inf\" is not a number: must be from 0 to 1e+09"},
        {"1\nten\n", "r.txt:2:1: \"ten\" is not a number: must be from 0 to 1e+09"},
        {"0x1F\n", "r.txt:1:2: a line must hold one number only"},
        {"1 2\n", "r.txt:1:3: a line must hold one number only"},
        {"1,2\n", "r.txt:1:2: a line must hold one number only"},
        {"1e999\n", "r.txt:1:1: \"1e999\" is too large: must be from 0 to 1e+09"},
        {"2000000000\n", "r.txt:1:1: \"2000000000\" is too large: must be from 0 to 1e+09"},
        {"1.2.3\n", "r.txt:1:1: \"1.2.3\" is not a number: must be from 0 to 1e+09"},
        {"1e\n", "r.txt:1:1: \"1e\" is not a number: must be from 0 to 1e+09"},
        {"\xc3\xa4 5\n", "r.txt:1:1: \"???5\" is not a number: must be from 0 to 1e+09"},
        {"5 \xc3\xa4\n", "r.txt:1:3: a line must hold one number only"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        rps_fails(bad[i].data, strlen(bad[i].data), bad[i].message);
    rps_fails("1\n\0\n", 4, "r.txt:2:1: \"?\" is not a number: must be from 0 to 1e+09");
    rps_fails("1\n2\0003\n", 6, "r.txt:2:2: a line must hold one number only");
    char digits[100];
    memset(digits, '1', sizeof(digits));
    rps_fails(digits, sizeof(digits),
              "r.txt:1:1: \"11111111111111111111111\" is too long for a number: must be from 0 to "
              "1e+09");
}

/* --- Azure ---------------------------------------------------------------------------------- */
static void test_azure_joins_by_name_of_column(void **state)
{
    struct trace trace;
    (void)state;
    azure_ok("HashFunction,7,8,Trigger,9,HashOwner,HashApp\r\n"
             "f,1,2,http,3,o,a\r\n"
             "g,0,0,timer,4.5,o,a\r\n",
             "percentile_Average_100,percentile_Average_99,percentile_Average_75,"
             "percentile_Average_50,percentile_Average_25,percentile_Average_1,"
             "percentile_Average_0,HashApp,HashOwner,HashFunction\n"
             "70,60,50,40,30,20,10,a,o,g\n7,6,5,4,3,2,1,a,o,f\n",
             "HashOwner,HashFunction,AverageAllocatedMb_pct50,HashApp\no,g,2.5,a\n", &trace);
    assert_int_equal(trace.function_count, 2);
    assert_int_equal(trace.left_out, 0);
    const struct trace_function *f = &trace.functions[0], *g = &trace.functions[1];
    assert_string_equal(f->name, "f");
    assert_string_equal(g->name, "g");
    assert_int_equal(f->slot_count, 3);
    assert_near(trace_span_s(f), 180, 0);
    assert_near(f->counts[0], 1, 0);
    assert_near(f->counts[2], 3, 0);
    assert_near(trace_requests(g), 4.5, 0);
    assert_false(f->poisson);
    assert_false(f->repeat);
    assert_near(trace_cpu_quantile_ms(g, 0.25), 30, 0);
    assert_near(trace_default_goal_ms(f), 12, 0);
    assert_near(trace_mean_cpu_ms(f), 0.01 * 1.5 + 0.24 * 2.5 + 0.25 * 8 + 0.24 * 5.5 + 0.01 * 6.5,
                1e-12);
    assert_true(isnan(f->memory_bytes));
    assert_near(g->memory_bytes, 2.5 * 1048576, 0);
    trace_clear(&trace);
}

static void test_azure_memory_may_be_by_app(void **state)
{
    struct trace trace;
    (void)state;
    azure_ok(IDS "1\no,a,f,1\no,b,f,1\n", DURATIONS FLAT "o,b,f,6,6,6,6,6,6,6\n",
             "HashOwner,HashApp,SampleCount,AverageAllocatedMb_pct50\no,a,1,100\no,a,1,200\n",
             &trace);
    assert_near(trace.functions[0].memory_bytes, 100 * 1048576.0, 0);
    assert_true(isnan(trace.functions[1].memory_bytes));
    assert_near(trace_mean_cpu_ms(&trace.functions[1]), 6, 1e-12);
    trace_clear(&trace);
}

/* As in the published files, some functions have no durations and some have them twice. */
static void test_azure_leaves_out_functions_without_durations(void **state)
{
    struct trace trace;
    (void)state;
    azure_ok(IDS "1\no,a,e,1\no,a,f,2\no,x,f,1\n", DURATIONS FLAT "o,a,f,6,6,6,6,6,6,6\n", NULL,
             &trace);
    assert_int_equal(trace.function_count, 1);
    assert_int_equal(trace.left_out, 2);
    assert_near(trace_mean_cpu_ms(trace.functions), 5, 1e-12);
    trace_clear(&trace);
    azure_fails(IDS "1\no,a,e,1\n", DURATIONS FLAT, NULL,
                "i.csv:1:1: none of its functions has durations");
}

static void test_azure_times_of_zero_are_little(void **state)
{
    struct trace trace;
    (void)state;
    azure_ok(IDS "1\no,a,f,1\n", DURATIONS "o,a,f,0,0,0,0,0,0,3\n", NULL, &trace);
    assert_near(trace_cpu_quantile_ms(trace.functions, 0), 0.1, 0);
    assert_near(trace_cpu_quantile_ms(trace.functions, 0.99), 0.1, 0);
    assert_near(trace_cpu_quantile_ms(trace.functions, 1), 3, 0);
    trace_clear(&trace);
}

/* Straight lines would give 0.24 × 510 + 0.01 × 3000 + 0.75 × 20 = 167.4. */
static void test_azure_mean_is_the_stated_average(void **state)
{
    static const char header[] =
        IDS "Average,percentile_Average_0,percentile_Average_1,percentile_Average_25,"
            "percentile_Average_50,percentile_Average_75,percentile_Average_99,"
            "percentile_Average_100\n";
    static const struct {
        double stated, mean;
    } cases[] = {{60, 60}, {150, 150}, {167.4, 167.4}, {500, 167.4}};
    struct trace trace;
    char durations[400];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(durations, sizeof(durations), "%so,a,f,%g,20,20,20,20,20,1000,5000\n", header,
                 cases[i].stated);
        azure_ok(IDS "1\no,a,f,1\n", durations, NULL, &trace);
        const struct trace_function *f = trace.functions;
        assert_near(trace_mean_cpu_ms(f), cases[i].mean, 1e-9);
        assert_near(trace_cpu_quantile_ms(f, 0.75), 20, 1e-9);
        assert_near(trace_cpu_quantile_ms(f, 0.99), 1000, 1e-9);
        assert_near(trace_cpu_quantile_ms(f, 1), 5000, 1e-9);
        for (size_t k = 1; k < f->quantile_count; k++)
            assert_true(f->quantiles[k].share > f->quantiles[k - 1].share &&
                        f->quantiles[k].cpu_ms >= f->quantiles[k - 1].cpu_ms);
        trace_clear(&trace);
    }
}

static void test_azure_names_are_short_and_differ(void **state)
{
#define HASH "0123456789abcdef0123456789abcdef"
    static const char *const wanted[] = {"01234567",    "thumbnail",   "01234567-2", "thumbnail-3",
                                         "thumbnail-2", "thumbnail-4", "01234567-3"};
    struct trace trace;
    (void)state;
    azure_ok(IDS "1\no,a," HASH "00,1\no,a,thumbnail,1\no,a," HASH "01,1\no,a,thumbnail-3,1\n"
                 "o,b,thumbnail,1\no,c,thumbnail,1\no,b," HASH "00,1\n",
             DURATIONS "o,a," HASH "00,5,5,5,5,5,5,5\no,a,thumbnail,5,5,5,5,5,5,5\n"
                       "o,a," HASH "01,5,5,5,5,5,5,5\no,a,thumbnail-3,5,5,5,5,5,5,5\n"
                       "o,b,thumbnail,5,5,5,5,5,5,5\no,c,thumbnail,5,5,5,5,5,5,5\n"
                       "o,b," HASH "00,5,5,5,5,5,5,5\n",
             NULL, &trace);
    assert_int_equal(trace.function_count, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        assert_string_equal(trace.functions[i].name, wanted[i]);
    trace_clear(&trace);
}

static void test_bad_azure_invocations_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *data, *message;
    } bad[] = {
        {"", "i.csv:1:1: the file is empty"},
        {IDS "1\n", "i.csv:1:1: no row follows the header"},
        {IDS "Trigger\no,a,f,x\n", "i.csv:1:1: the header has no minutes: columns 1, 2, 3, …"},
        {"HashOwner,HashApp,1\no,a,1\n",
         "i.csv:1:1: the header must have HashOwner, HashApp and HashFunction"},
        {IDS "HashApp,1\n", "i.csv:1:32: a second column HashApp"},
        {IDS "1,2,4\n", "i.csv:1:36: column \"4\": minutes must follow each other"},
        {IDS "1,1\n", "i.csv:1:34: column \"1\": minutes must follow each other"},
        {IDS "1,\0012\n", "i.csv:1:34: unexpected byte 0x01"},
        {IDS "1,2\no,a,f,1\n", "i.csv:2:8: the row ends after 4 of 5 columns"},
        {IDS "1\no,a,f,1,2\n", "i.csv:2:8: the row has more than 4 columns"},
        {IDS "1\no,a,f,\n", "i.csv:2:7: a number from 0 to 1e+09 is missing"},
        {IDS "1,2\no,a,f,,1\n", "i.csv:2:7: a number from 0 to 1e+09 is missing"},
        {IDS "1\no,a,f,-1\n", "i.csv:2:7: \"-1\" is negative: must be from 0 to 1e+09"},
        {IDS "1\no,a,f,NaN\n", "i.csv:2:7: \"NaN\" is not a number: must be from 0 to 1e+09"},
        {IDS "1\no,a,f,1\no,a,f,1e10\n",
         "i.csv:3:7: \"1e10\" is too large: must be from 0 to 1e+09"},
        {IDS "1\no,a,f,1x\n", "i.csv:2:8: unexpected 'x'"},
        {IDS "1\n\no,a,f,1\n",
         "i.csv:2:1: HashOwner must be 1 to 128 letters, digits, '-', '_' or '.'"},
        {IDS "1\no,,f,1\n", "i.csv:2:3: HashApp must be 1 to 128 letters, digits, '-', '_' or '.'"},
        {IDS "1\no,a,f g,1\n", "i.csv:2:6: unexpected byte 0x20"},
        {"Trigger," IDS "1\n\xc3\xa4,o,a,f,x\n",
         "i.csv:2:9: \"x\" is not a number: must be from 0 to 1e+09"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        azure_fails(bad[i].data, DURATIONS FLAT, NULL, bad[i].message);
}

static void test_bad_azure_durations_and_memory_are_refused_with_their_place(void **state)
{
    static const char invocations[] = IDS "1\no,a,f,1\n";
    (void)state;
    azure_fails(invocations, "", NULL, "d.csv:1:1: the file is empty");
    azure_fails(invocations, invocations, NULL,
                "d.csv:1:1: the header has no percentile_Average_0");
    azure_fails(invocations, IDS "percentile_Average_0,percentile_Average_0\n", NULL,
                "d.csv:1:53: column \"percentile_Average_0\": is there twice");
    azure_fails(invocations, DURATIONS "o,a,f,5,5,5,4,5,5,5\n", NULL,
                "d.csv:2:13: percentile_Average_50 is below percentile_Average_25");
    azure_fails(invocations, DURATIONS "o,a,f,5,5,5,5,5,5,x\n", NULL,
                "d.csv:2:19: \"x\" is not a number: must be from 0 to 1e+09");
    azure_fails(invocations, DURATIONS FLAT, "", "m.csv:1:1: the file is empty");
    azure_fails(invocations, DURATIONS FLAT, "HashApp,AverageAllocatedMb_pct50\na,1\n",
                "m.csv:1:1: the header must have HashOwner, HashApp");
    azure_fails(invocations, DURATIONS FLAT, "HashOwner,HashApp\no,a\n",
                "m.csv:1:1: the header has no AverageAllocatedMb_pct50");
    azure_fails(invocations, DURATIONS FLAT, "HashOwner,HashApp,AverageAllocatedMb_pct50\no,a,-1\n",
                "m.csv:2:5: \"-1\" is negative: must be from 0 to 1e+09");
}

static void test_azure_takes_wide_tables_within_a_bound(void **state)
{
    cleanup_buf struct buf header;
    struct trace trace;
    struct error err = {0};
    (void)state;
    buf_init(&header, 1 << 20);
    assert_int_equal(buf_puts(&header, IDS "0"), 0);
    for (int i = 1; i < 100000; i++)
        assert_int_equal(buf_printf(&header, ",%d", i), 0);
    assert_int_equal(parse_azure(buf_string(&header), DURATIONS FLAT, NULL, &trace, &err), -1);
    assert_non_null(strstr(err.message, ": more than 100000 columns"));
}

/* --- classes -------------------------------------------------------------------------------- */
static enum trace_class class_of(const char *specification)
{
    struct trace trace;
    open_ok(specification, &trace);
    enum trace_class class_ = trace_classify(trace.functions);
    trace_clear(&trace);
    return class_;
}

static void test_classes_follow_their_rule(void **state)
{
    (void)state;
    assert_int_equal(class_of("poisson:rate=0.99"), TRACE_SPARSE);
    assert_int_equal(class_of("poisson:rate=1"), TRACE_STEADY);
    assert_int_equal(class_of("diurnal:rate=10,amplitude=1"), TRACE_STEADY);
    assert_int_equal(class_of("diurnal:rate=0.5,amplitude=1"), TRACE_SPARSE);
    assert_int_equal(class_of("bursty:rate=1,burst=10,every=600,length=30"), TRACE_BURSTY);
    assert_int_equal(class_of("bursty:rate=0.1,burst=30,every=600,length=60"), TRACE_BURSTY);
    /* Three times the rate is not more than three times, and few requests are no burst. */
    assert_int_equal(class_of("bursty:rate=1,burst=3,every=600,length=60"), TRACE_STEADY);
    assert_int_equal(class_of("bursty:rate=0.01,burst=50,every=600,length=60"), TRACE_SPARSE);
    /* One burst in ten hours with 0.75 % of the requests. */
    assert_int_equal(class_of("bursty:rate=1,burst=10,every=36000,length=30,span=36000"),
                     TRACE_STEADY);
    struct trace_function nothing = {.slot_s = 60};
    assert_int_equal(trace_classify(&nothing), TRACE_SPARSE);
    assert_string_equal(trace_class_name(TRACE_SPARSE), "sparse");
    assert_string_equal(trace_class_name(TRACE_STEADY), "steady");
    assert_string_equal(trace_class_name(TRACE_BURSTY), "bursty");
}

/* --- files ---------------------------------------------------------------------------------- */
struct directory {
    char path[64];
};

static int make_directory(void **state)
{
    struct directory *d = xcalloc(1, sizeof(*d));
    snprintf(d->path, sizeof(d->path), "/tmp/trace_test.XXXXXX");
    *state = d;
    return mkdtemp(d->path) ? 0 : -1;
}

static int remove_directory(void **state)
{
    static const char *const names[] = {"i.csv", "d.csv", "load.txt", "pipe", "big"};
    struct directory *d = *state;
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", d->path, names[i]);
        unlink(path);
    }
    int result = rmdir(d->path);
    free(d);
    return result;
}

static void write_file(const struct directory *d, const char *name, const char *content)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", d->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_files_are_opened(void **state)
{
    const struct directory *d = *state;
    struct trace trace;
    char specification[300];
    write_file(d, "load.txt", "10\n20\n");
    snprintf(specification, sizeof(specification), "rps:%s/load.txt,scale=0.5,demand=3", d->path);
    open_ok(specification, &trace);
    assert_string_equal(trace.name, "rps:load.txt,scale=0.5,demand=3");
    assert_string_equal(trace.functions->name, "load");
    assert_near(trace.functions->slot_s, 1, 0);
    assert_false(trace.functions->poisson);
    assert_false(trace.functions->repeat);
    assert_near(trace.functions->counts[1], 10, 0);
    assert_near(trace_default_goal_ms(trace.functions), 12, 1e-9);
    trace_clear(&trace);

    write_file(d, "i.csv", IDS "1,2\no,a,f,1,2\no,a,g,3,4\no,a,f,x,x\n");
    write_file(d, "d.csv", DURATIONS FLAT "o,a,g,6,6,6,6,6,6,6\n");
    snprintf(specification, sizeof(specification), "azure:%s/i.csv,%s/d.csv,functions=2,scale=10",
             d->path, d->path);
    open_ok(specification, &trace);
    assert_string_equal(trace.name, "azure:i.csv,d.csv,functions=2,scale=10");
    assert_int_equal(trace.function_count, 2);
    assert_near(trace_requests(&trace.functions[1]), 70, 0);
    trace_clear(&trace);
    snprintf(specification, sizeof(specification), "azure:%s/i.csv,%s/d.csv", d->path, d->path);
    file_fails(specification, "/i.csv:4:7: \"x\" is not a number");
}

static void test_pipes_are_read_to_their_end(void **state)
{
    struct trace trace;
    char specification[64];
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "1\n2\n", 4), 4);
    close(ends[1]);
    snprintf(specification, sizeof(specification), "rps:/dev/fd/%d", ends[0]);
    open_ok(specification, &trace);
    assert_int_equal(trace.functions->slot_count, 2);
    trace_clear(&trace);
    close(ends[0]);
}

static void test_what_is_no_file_is_refused(void **state)
{
    const struct directory *d = *state;
    char path[128], specification[300];
    file_fails("rps:/nonexistent/file", "cannot open /nonexistent/file: No such file");
    file_fails("rps:/dev/zero", "/dev/zero:1:1: a device or socket where a file is needed");
    snprintf(specification, sizeof(specification), "rps:%s", d->path);
    file_fails(specification, ":1:1: a directory where a file is needed");
    snprintf(path, sizeof(path), "%s/pipe", d->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(specification, sizeof(specification), "rps:%s", path);
    file_fails(specification, "/pipe:1:1: the file is empty"); /* and nobody waits */
    snprintf(path, sizeof(path), "%s/big", d->path);
    write_file(d, "big", "1\n");
    assert_int_equal(truncate(path, (off_t)10 << 30), 0);
    snprintf(specification, sizeof(specification), "azure:%s,%s", path, path);
    file_fails(specification,
               "/big:1:1: the file has 10737418240 bytes, at most 1073741824 are read");
}

/* --- the real ones -------------------------------------------------------------------------- */
static const char *real_traces(void)
{
    const char *directory = getenv("FAASRL_TRACES");
    struct stat st;
    directory = directory ? directory : "../shared/traces";
    if (stat(directory, &st) == 0)
        return directory;
    print_message("no traces in %s (FAASRL_TRACES): skipped\n", directory);
    return NULL;
}

/* Sums and classes as told by adding up the columns with other tools. */
static void test_real_azure_trace(void **state)
{
    const char *directory = real_traces();
    struct trace trace;
    (void)state;
    if (!directory)
        skip();
    cleanup_free char *specification =
        xasprintf("azure:%s/azure-2019/invocations-250.csv,%s/azure-2019/durations-250.csv,"
                  "%s/azure-2019/memory-250.csv",
                  directory, directory, directory);
    open_ok(specification, &trace);
    assert_string_equal(trace.name, "azure:invocations-250.csv,durations-250.csv,memory-250.csv");
    assert_int_equal(trace.function_count, 250);
    size_t busy = 0, classes[TRACE_CLASS_COUNT] = {0};
    for (size_t i = 0; i < trace.function_count; i++) {
        const struct trace_function *f = &trace.functions[i];
        assert_int_equal(f->slot_count, 480);
        assert_true(f->memory_bytes > 0 && trace_mean_cpu_ms(f) >= 0.1);
        busy += trace_requests(f) >= 1000;
        classes[trace_classify(f)] += trace_requests(f) >= 1000;
        if (strcmp(f->name, "1fa06535") == 0)
            assert_near(trace_requests(f), 273379, 0);
    }
    assert_int_equal(busy, 19);
    assert_int_equal(classes[TRACE_STEADY], 4);
    assert_int_equal(classes[TRACE_BURSTY], 2);
    trace_clear(&trace);
}

static void test_real_rps_traces_are_steady(void **state)
{
    const char *directory = real_traces();
    (void)state;
    if (!directory)
        skip();
    cleanup_free char *diurnal = xasprintf("rps:%s/autothrottle/diurnal.txt", directory);
    cleanup_free char *noisy = xasprintf("rps:%s/autothrottle/noisy.txt,scale=0.1", directory);
    assert_int_equal(class_of(diurnal), TRACE_STEADY);
    assert_int_equal(class_of(noisy), TRACE_STEADY);
}

/* --- functions that change -------------------------------------------------------------------- */
static double counts_between(const struct trace_function *f, double from_s, double to_s)
{
    double sum = 0;
    for (size_t i = 0; i < f->slot_count; i++)
        if ((double)i * f->slot_s >= from_s && (double)(i + 1) * f->slot_s <= to_s + 1e-9)
            sum += f->counts[i];
    return sum;
}

static void a_function_can_get_slower(void **state)
{
    (void)state;
    struct trace t;
    open_ok("poisson:rate=2,span=7200,demand=40,slower=3", &t);
    const struct trace_function *f = t.functions;
    assert_true(trace_slowdown(f, 3599) == 1 && trace_slowdown(f, 3600) == 3);
    assert_near(trace_default_goal_ms(f), 160, 1e-3); /* that of before */
    assert_near(trace_requests(f), 14400, 1e-6);
    trace_clear(&t);
    open_ok("poisson:rate=2,span=7200,slower=0.5,change=100", &t);
    assert_true(trace_slowdown(t.functions, 99) == 1 && trace_slowdown(t.functions, 100) == 0.5);
    trace_clear(&t);
}

static void a_load_can_gather(void **state)
{
    (void)state;
    struct trace t;
    open_ok("diurnal:rate=2,span=7200,period=7200,gather=600,change=3600", &t);
    const struct trace_function *f = t.functions;
    struct trace plain;
    open_ok("diurnal:rate=2,span=7200,period=7200", &plain);
    assert_near(trace_requests(f), trace_requests(plain.functions), 1e-6);
    for (double at_s = 0; at_s < 7200; at_s += 600) {
        double all = counts_between(plain.functions, at_s, at_s + 600);
        assert_near(counts_between(f, at_s, at_s + 600), all, 1e-6);
        if (at_s >= 3600)
            assert_near(counts_between(f, at_s, at_s + 60), all, 1e-6);
        else
            assert_near(counts_between(f, at_s, at_s + 60),
                        counts_between(plain.functions, at_s, at_s + 60), 1e-6);
    }
    trace_clear(&plain);
    trace_clear(&t);
    open_ok("poisson:rate=2,span=3600,gather=100", &t); /* one slot becomes many */
    assert_near(t.functions->slot_s, 10, 1e-9);
    assert_near(counts_between(t.functions, 1800, 1810), 200, 1e-6);
    assert_near(counts_between(t.functions, 1810, 1900), 0, 1e-6);
    trace_clear(&t);
}

static void changes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    open_fails("poisson:rate=2,change=60", "change=60: state slower=X or gather=S, too");
    open_fails("poisson:rate=2,slower=0", "slower=0: must be");
    open_fails("poisson:rate=2,gather=9", "gather=9: must be");
    open_fails("poisson:rate=2,slower=2,change=-1", "change=-1: must be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_forms_are_refused),
        cmocka_unit_test(test_wrong_options_are_named),
        cmocka_unit_test(test_wrong_numbers_are_named_with_their_range),
        cmocka_unit_test(test_each_form_is_listed),
        cmocka_unit_test(test_poisson_has_one_rate),
        cmocka_unit_test(test_bursts_have_their_share),
        cmocka_unit_test(test_bursts_depend_on_the_seed_alone),
        cmocka_unit_test(test_a_burst_is_cut_at_the_end_of_the_span),
        cmocka_unit_test(test_a_day_rises_and_falls),
        cmocka_unit_test(test_demand_is_log_normal),
        cmocka_unit_test(test_quantiles_are_straight_lines),
        cmocka_unit_test(test_exponential_demand),
        cmocka_unit_test(test_rps_takes_a_number_per_line),
        cmocka_unit_test(test_bad_rps_is_refused_with_its_place),
        cmocka_unit_test(test_azure_joins_by_name_of_column),
        cmocka_unit_test(test_azure_memory_may_be_by_app),
        cmocka_unit_test(test_azure_leaves_out_functions_without_durations),
        cmocka_unit_test(test_azure_times_of_zero_are_little),
        cmocka_unit_test(test_azure_mean_is_the_stated_average),
        cmocka_unit_test(test_azure_names_are_short_and_differ),
        cmocka_unit_test(test_bad_azure_invocations_are_refused_with_their_place),
        cmocka_unit_test(test_bad_azure_durations_and_memory_are_refused_with_their_place),
        cmocka_unit_test(test_azure_takes_wide_tables_within_a_bound),
        cmocka_unit_test(test_classes_follow_their_rule),
        cmocka_unit_test_setup_teardown(test_files_are_opened, make_directory, remove_directory),
        cmocka_unit_test(test_pipes_are_read_to_their_end),
        cmocka_unit_test_setup_teardown(test_what_is_no_file_is_refused, make_directory,
                                        remove_directory),
        cmocka_unit_test(test_real_azure_trace),
        cmocka_unit_test(test_real_rps_traces_are_steady),
        cmocka_unit_test(a_function_can_get_slower),
        cmocka_unit_test(a_load_can_gather),
        cmocka_unit_test(changes_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
