/* Speed and memory, each beside a peer in the same run, because machines are noisy: the ratio is
 * what counts, and above 1 means better than the peer. Writes build/bench.json. */
#include "bench.h"
#include "kube/kube.h"
#include "prometheus/prometheus.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double bench_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd);
}

/* --- the machine ----------------------------------------------------------------------------- */
/* How fast the processor really is for us, as others may be on it, too: a multiplication and an
 * addition that wait for each other take 4 cycles on every x86-64 of these years. */
static struct figure bench_clock(void)
{
    enum { ROUNDS = 100000000 };
    volatile uint64_t begin = 1; /* so that nobody computes it beforehand */
    uint64_t x = begin;
    double t = bench_cpu_s();
    for (uint64_t i = 0; i < ROUNDS; i++)
        x = x * 6364136223846793005u + i;
    double ghz = 4.0 * ROUNDS / (bench_cpu_s() - t) / 1e9;
    begin = x;
    return (struct figure){"cpu_ghz", "GHz", NULL, ghz, NAN, NAN, true};
}

/* --- Prometheus' answers: ours against jansson's tree -------------------------------------------
 */
static char *make_answer(size_t series, size_t *len)
{
    struct buf b;
    buf_init(&b, (size_t)1 << 30);
    int full =
        buf_puts(&b, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
    for (size_t i = 0; i < series && !full; i++)
        full =
            buf_printf(&b,
                       "%s{\"metric\":{\"namespace\":\"team-%zu\",\"pod\":\"function-%zu-abcde\","
                       "\"le\":\"0.%zu\"},\"value\":[1767225700.123,\"%g\"]}",
                       i ? "," : "", i % 50, i / 12, i % 12, (double)i * 0.37);
    if (full || buf_puts(&b, "]}}"))
        abort();
    *len = b.len;
    return buf_take(&b);
}

static struct figure bench_answer(void)
{
    size_t len;
    cleanup_free char *text = make_answer(60000, &len);
    struct prom_result result;
    struct error err;
    double t = bench_cpu_s();
    for (int i = 0; i < 3; i++) {
        if (prom_parse(text, len, &result, &err) < 0)
            abort();
        prom_result_clear(&result);
    }
    double ours = (bench_cpu_s() - t) / 3;
    t = bench_cpu_s();
    for (int i = 0; i < 3; i++)
        json_decref(json_loadb(text, len, 0, NULL));
    double theirs = (bench_cpu_s() - t) / 3;
    double mb = (double)len / 1e6;
    return (struct figure){
        "prometheus_parse_mb_per_s", "MB/s", "jansson", mb / ours, mb / theirs, NAN, true};
}

/* --- a pod in memory: our projection against the JSON tree ---------------------------------------
 */
static const char pod_text[] =
    "{\"metadata\":{\"name\":\"function-6686468686-xxtb5\",\"namespace\":\"team-7\","
    "\"uid\":\"0b7d3a52-2f4e-4d0c-9a8e-6f1d2b3c4d5e\",\"resourceVersion\":\"12345\","
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"app\":\"function\","
    "\"pod-template-hash\":\"6686468686\"},\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":"
    "\"function-6686468686\",\"uid\":\"1b7d3a52-2f4e-4d0c-9a8e-6f1d2b3c4d5e\",\"controller\":true}]"
    "},"
    "\"spec\":{\"containers\":[{\"name\":\"function\",\"image\":\"local/"
    "function:1\",\"resources\":{"
    "\"requests\":{\"cpu\":\"200m\",\"memory\":\"64Mi\"},\"limits\":{\"cpu\":\"200m\",\"memory\":"
    "\"64Mi\"}}}],\"nodeName\":\"node0\"},\"status\":{\"phase\":\"Running\",\"qosClass\":"
    "\"Guaranteed\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":"
    "\"2026-01-01T00:00:10Z\"}],\"containerStatuses\":[{\"name\":\"function\",\"restartCount\":0,"
    "\"resources\":{\"requests\":{\"cpu\":\"200m\",\"memory\":\"64Mi\"}}}]}}";

static struct figure bench_pod(void)
{
    enum { N = 2000 };
    static json_t *trees[N];
    static struct kube_pod *pods[N];
    double before = bench_heap_bytes();
    for (int i = 0; i < N; i++)
        trees[i] = json_loads(pod_text, 0, NULL);
    double tree = (bench_heap_bytes() - before) / N;
    before = bench_heap_bytes();
    for (int i = 0; i < N; i++)
        pods[i] = kube_pod_from_json(trees[i]);
    double ours = (bench_heap_bytes() - before) / N;
    for (int i = 0; i < N; i++) {
        kube_pod_free(pods[i]);
        json_decref(trees[i]);
    }
    return (struct figure){"pod_bytes", "B", "jansson", ours, tree, 1024, false};
}

/* --- the table
 * ---------------------------------------------------------------------------------------- */
static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

/* tests/bench/run goes on with the same columns. */
static void print_heads(void)
{
    printf("%-34s %14s %-5s %14s %-6s  %s\n", "FIGURE", "VALUE", "UNIT", "GOAL", "",
           "BESIDE A PEER");
}

/* What is not a number reaches nothing. */
static bool missed(const struct figure *f)
{
    if (isnan(f->goal))
        return false;
    return !(f->more_is_better ? f->value >= f->goal : f->value <= f->goal);
}

static json_t *print(const struct figure *f)
{
    double ratio = f->more_is_better ? f->value / f->peer_value : f->peer_value / f->value;
    char goal[32] = "";
    if (!isnan(f->goal))
        snprintf(goal, sizeof(goal), "%.2f", f->goal);
    printf("%-34s %14.2f %-5s %14s %-6s", f->name, f->value, f->unit, goal,
           missed(f) ? "missed" : "");
    if (f->peer)
        printf("  %s %.2f, ratio %.2f", f->peer, f->peer_value, ratio);
    puts("");
    return json_pack("{s:s, s:o, s:s, s:s?, s:o, s:o, s:o}", "name", f->name, "value",
                     number(f->value), "unit", f->unit, "peer", f->peer, "peer_value",
                     number(f->peer_value), "ratio", number(ratio), "goal", number(f->goal));
}

static void run(struct figure (*const *benches)(void), size_t count, json_t *all)
{
    for (size_t i = 0; i < count; i++) {
        struct figure f = benches[i]();
        json_array_append_new(all, print(&f));
        fflush(stdout);
    }
}

/* bench [OUT [learning]]: all of it, or only what other learners are held against. */
int main(int argc, char **argv)
{
    static struct figure (*const general[])(void) = {
        bench_clock,           bench_answer,          bench_pod,
        bench_decide,          bench_decide_many,     bench_decide_telling,
        bench_decide_learning, bench_sim_mmc,         bench_sim_replicas,
        bench_sim_memory,      bench_sim_memory_less, bench_sim_memory_of_hours,
        bench_sim_step,        bench_net_samples,     bench_train_five};
    static struct figure (*const learning[])(void) = {bench_policy_forward, bench_train_steps,
                                                      bench_train_sim_steps};
    struct figure more[BENCH_DAY + BENCH_NETS];
    cleanup_json json_t *all = json_array();
    print_heads();
    if (argc < 3) {
        run(general, ARRAY_LEN(general), all);
        bench_sim_day(more);
        bench_nets(more + BENCH_DAY);
        for (size_t i = 0; i < ARRAY_LEN(more); i++)
            json_array_append_new(all, print(&more[i]));
    }
    run(learning, ARRAY_LEN(learning), all);
    if (argc > 1 && json_dump_file(all, argv[1], JSON_INDENT(2)) < 0) {
        fprintf(stderr, "bench: cannot write %s\n", argv[1]);
        return 1;
    }
    return 0;
}
