/* kubectl mpa simulate: a manifest, or an MPA of the cluster, on simulated load: mpactl compare
 * with a load that its bounds and goal suggest. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kubectl.h"
#include "mpactl.h"

#define MAX_FILE_BYTES (16u << 20)
#define MAX_RATE       300.0 /* requests per second: a simulation of seconds */

/* A day in an hour, and bursts, so that a third of the most CPU is in use on average. A request
 * needs a tenth of the goal alone on a core. */
struct load {
    double rate, demand_ms;
};

static struct load usual_load(const struct api_spec *spec)
{
    const struct api_container *any = api_container_policy(spec, "*");
    int64_t most = spec->container_count ? spec->containers[0].max[API_CPU] : any->max[API_CPU];
    double cores = (most == API_ABSENT ? 1000.0 : (double)most) / 1000 * spec->max_replicas;
    double demand_ms = spec->latency_target_us > 0 ? (double)spec->latency_target_us / 1e4 : 10;
    double rate = cores / 3 / (demand_ms / 1000);
    return (struct load){fmin(fmax(rate, 0.1), MAX_RATE), demand_ms};
}

static int add_usual_load(const char *file, struct args_list *traces, char *words[2],
                          struct error *err)
{
    size_t len;
    struct api_mpa mpa;
    cleanup_free char *text = file_read(file, MAX_FILE_BYTES, &len, err);
    cleanup_json json_t *documents = text ? yaml_to_json(text, len, err) : NULL;
    if (documents == NULL)
        return error_prefix(err, "%s", file);
    if (api_parse(json_array_get(documents, 0), &mpa, err) < 0)
        return error_prefix(err, "%s", file);
    struct load load = usual_load(&mpa.spec);
    api_clear(&mpa);
    words[0] =
        xasprintf("diurnal:rate=%.3g,period=3600,span=3600,demand=%.3g", load.rate, load.demand_ms);
    words[1] = xasprintf("bursty:rate=%.3g,burst=3,every=600,length=60,demand=%.3g", load.rate / 2,
                         load.demand_ms);
    for (int i = 0; i < 2; i++)
        traces->items[traces->count++] = words[i];
    return 0;
}

/* Runs mpactl compare. */
static int compare(const struct plugin_options *o, const char *file, const struct args_list *traces)
{
    char *argv[2 * ARGS_LIST_MAX + 32];
    int argc = 0;
    argv[argc++] = xstrdup("compare");
    argv[argc++] = xasprintf("--mpa=%s", file);
    for (size_t i = 0; i < traces->count; i++)
        argv[argc++] = xasprintf("--trace=%s", traces->items[i]);
    for (size_t i = 0; i < o->recommenders.count && i < ARGS_LIST_MAX; i++)
        argv[argc++] = xasprintf("--recommender=%s", o->recommenders.items[i]);
    const char *const files[][2] = {{"html", o->html}, {"json", o->json}, {"policy", o->policy}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (files[i][1])
            argv[argc++] = xasprintf("--%s=%s", files[i][0], files[i][1]);
    argv[argc] = NULL;
    int status = cmd_compare(argc, argv);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return status;
}

static int simulate_file(const struct plugin_options *o, const char *file)
{
    struct error err = {0};
    struct args_list traces = o->traces;
    char *words[2] = {0};
    int status = EXIT_FAILED;
    if (traces.count == 0 && add_usual_load(file, &traces, words, &err) < 0)
        mpactl_error("simulate: %s", err.message);
    else
        status = compare(o, file, &traces);
    free(words[0]);
    free(words[1]);
    return status;
}

/* What is read twice must be a file. */
static int simulate_text(const struct plugin_options *o, const char *text, size_t len)
{
    char path[] = "/tmp/kubectl-mpa.XXXXXX";
    int fd = mkstemp(path), status = EXIT_FAILED;
    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        mpactl_error("simulate: %s: it could not be written: see that /tmp has room", path);
    else
        status = simulate_file(o, path);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    return status;
}

static int simulate_live(const struct plugin_options *o)
{
    struct cluster c;
    struct error err = {0};
    json_t *mpa = cluster_open(&c, o, &err) == 0 ? cluster_mpa(&c, o->names.items[0], &err) : NULL;
    cluster_close(&c);
    if (mpa == NULL) {
        mpactl_error("simulate: %s", err.message);
        return EXIT_FAILED;
    }
    cleanup_free char *text = yaml_from_json(mpa);
    json_decref(mpa);
    return simulate_text(o, text, strlen(text));
}

int plugin_simulate(const struct plugin_options *o)
{
    struct error err = {0};
    size_t len;
    if ((o->file != NULL) + o->names.count != 1) {
        mpactl_error("simulate: give a manifest with -f, or the name of one MPA of the cluster");
        return EXIT_USAGE;
    }
    if (o->file == NULL)
        return simulate_live(o);
    if (strcmp(o->file, "-") != 0)
        return simulate_file(o, o->file);
    cleanup_free char *text = file_read("/dev/stdin", MAX_FILE_BYTES, &len, &err);
    if (text)
        return simulate_text(o, text, len);
    mpactl_error("simulate: standard input: %s", err.message);
    return EXIT_FAILED;
}
