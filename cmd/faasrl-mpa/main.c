#include "controller/controller.h"
#include "options.h"
#include "recommend/policy.h"
#include "simulate.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* After this long at the end, what is still under way is given up. */
#define GOODBYE_MS 3000

struct program {
    uv_loop_t loop;
    uv_signal_t interrupt, terminate;
    uv_timer_t goodbye;
    struct kube_config config;
    struct http *http;
    struct kube *kube;
    struct prom *prom;
    struct observe *observe;
    struct controller *controller;
    struct journal *journal;
    const struct recommend_policy *policy;
    struct rl_checkpoint general; /* the same, to learn from */
    struct error policy_trouble;
    char identity[128];
    int64_t goodbye_ms;
    int exit_code;
};

static int fail(const struct error *err)
{
    fprintf(stderr, "faasrl-mpa: %s\n", err->message);
    return 1;
}

static void set_up_log(const struct options *o)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    enum log_level level = LOG_INFO;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], o->log_level) == 0)
            level = (enum log_level)i;
    if (o->simulate && level == LOG_INFO)
        level = LOG_ERROR; /* the table says it */
    log_setup(level, strcmp(o->log_format, "json") == 0 ? LOG_JSON : LOG_LOGFMT);
}

/* --- the end ------------------------------------------------------------------------------------
 */
static void on_goodbye(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

/* The lease is given back by a request that still needs the loop for a moment. Queries end now:
 * their answers are for the controller. */
static void leave(struct program *p, int exit_code)
{
    if (p->controller == NULL)
        return;
    p->exit_code = exit_code;
    controller_free(p->controller);
    observe_free(p->observe);
    prom_free(p->prom);
    p->controller = NULL;
    p->observe = NULL;
    p->prom = NULL;
    uv_timer_start(&p->goodbye, on_goodbye, exit_code ? 0 : (uint64_t)p->goodbye_ms, 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct program *p = handle->data;
    log_info("ending", log_int("signal", number));
    leave(p, 0);
}

/* Another replica may lead by now: whatever is queued must not be sent any more. */
static void on_lost(void *arg)
{
    log_error("the lease was lost: ending so that nothing is written twice");
    (void)arg;
    _exit(1);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void clean_up(struct program *p)
{
    controller_free(p->controller);
    observe_free(p->observe);
    kube_free(p->kube);
    journal_close(p->journal);
    prom_free(p->prom);
    http_free(p->http);
    kube_config_clear(&p->config);
    recommend_policy_release(p->policy);
    rl_checkpoint_clear(&p->general);
    uv_run(&p->loop, UV_RUN_NOWAIT);
    uv_walk(&p->loop, close_handle, NULL);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    uv_loop_close(&p->loop);
}

/* --- the beginning
 * -------------------------------------------------------------------------------- */
static int connect_kube(struct program *p, const struct options *o, struct error *err)
{
    if (kube_config_load(o->kubeconfig, o->context, &p->config, err) < 0)
        return -1;
    int confined = options_confine(o, p->config.exec != NULL, err);
    if (confined < 0)
        return -1;
    if (confined > 0)
        log_info("confined");
    struct kube_options options = {.writes_per_second = o->writes_per_second,
                                   .write_burst = o->write_burst};
    p->kube = kube_new(&p->loop, p->http, &p->config, &options, err);
    return p->kube ? 0 : -1;
}

static int connect_prometheus(struct program *p, const struct options *o, struct error *err)
{
    struct prom_config config = {
        .url = o->prometheus_url,
        .ca_file = o->prometheus_ca_file,
        .cert_file = o->prometheus_cert_file,
        .key_file = o->prometheus_key_file,
        .token_file = o->prometheus_token_file,
        .user_file = o->prometheus_user_file,
        .password_file = o->prometheus_password_file,
        .insecure = o->prometheus_insecure,
        .timeout_ms = (int64_t)(o->prometheus_timeout_s * 1000),
    };
    p->prom = prom_new(&p->loop, p->http, &config, err);
    if (p->prom == NULL)
        return -1;
    struct observe_options observe = {
        .templates = {o->query_latency, o->query_cpu, o->query_throttled, o->query_memory,
                      o->query_proxy, o->query_openwhisk},
        .namespaces = o->namespaces.items,
        .window_s = o->window_s,
        .own = options_own_queries(o),
    };
    p->observe = observe_new(p->prom, &observe, err);
    return p->observe ? 0 : -1;
}

/* Without a policy thresholds decide, and each MPA says why. */
static void read_policy(struct program *p, const struct options *o)
{
    cleanup_free char *path = o->policy ? xstrdup(o->policy) : file_beside_program("policy");
    if (o->policy ? strcmp(o->policy, "off") == 0 : access(path, F_OK) != 0)
        return;
    if (rl_checkpoint_read(&p->general, path, &p->policy_trouble) == 0)
        p->policy = recommend_policy_new(&p->general, &p->policy_trouble);
    if (p->general.algorithm && !p->policy)
        error_prefix(&p->policy_trouble, "%s", path);
    if (p->policy)
        log_info("policy", log_str("file", path),
                 log_str("sha256", recommend_policy_sha256(p->policy)));
    else
        log_error("policy", log_str("error", p->policy_trouble.message));
}

/* A policy of steps is as it is. */
static bool can_learn(const struct program *p)
{
    struct error none;
    return recommend_policy_check(p->policy, POLICY_OF_CORRECTIONS, &none) == 0;
}

static void name_ourselves(struct program *p)
{
    char host[64] = "unknown";
    unsigned int random = 0;
    gethostname(host, sizeof(host) - 1);
    uv_random(NULL, NULL, &random, sizeof(random), 0, NULL);
    snprintf(p->identity, sizeof(p->identity), "%s_%08x", host, random);
}

static int start(struct program *p, const struct options *o, struct error *err)
{
    name_ourselves(p);
    struct controller_options options = options_of_controller(o);
    options.lease_namespace = o->lease_namespace ? o->lease_namespace : p->config.namespace_;
    options.identity = o->identity ? o->identity : p->identity;
    options.journal = p->journal;
    read_policy(p, o);
    options.policy = p->policy;
    options.policy_trouble = p->policy_trouble.code ? p->policy_trouble.message : NULL;
    options.general = o->learn && p->policy && can_learn(p) ? &p->general : NULL;
    options.http = p->http;
    options.on_lost = on_lost;
    options.arg = p;
    p->goodbye_ms = GOODBYE_MS / 10 + (options.shards > 1 ? SHARDS_END_MS : 0);
    p->controller = controller_new(&p->loop, p->kube, p->observe, &options);
    const char *listen = options_listen(o);
    if (listen && controller_serve(p->controller, &p->loop, listen, err) < 0)
        return error_prefix(err, "--listen");
    log_info("started", log_str("version", FAASRL_VERSION), log_str("server", p->config.server),
             log_str("prometheus", o->prometheus_url), log_str("identity", options.identity));
    return 0;
}

static void catch_signals(struct program *p)
{
    signal(SIGPIPE, SIG_IGN);
    uv_signal_init(&p->loop, &p->interrupt);
    uv_signal_init(&p->loop, &p->terminate);
    uv_timer_init(&p->loop, &p->goodbye);
    p->interrupt.data = p->terminate.data = p;
    uv_signal_start(&p->interrupt, on_signal, SIGINT);
    uv_signal_start(&p->terminate, on_signal, SIGTERM);
}

static int run(const struct options *o)
{
    struct program p = {0};
    struct error err = {0};
    if (uv_loop_init(&p.loop) != 0) {
        error_set(&err, ERROR_SYSTEM, "cannot begin: no file descriptors are left");
        return fail(&err);
    }
    catch_signals(&p);
    p.http = http_new(&p.loop, "faasrl-mpa/" FAASRL_VERSION);
    if (options_open_journal(o, &p.journal, &err) < 0 || connect_kube(&p, o, &err) < 0 ||
        connect_prometheus(&p, o, &err) < 0 || start(&p, o, &err) < 0)
        p.exit_code = fail(&err);
    else
        uv_run(&p.loop, UV_RUN_DEFAULT);
    clean_up(&p);
    return p.exit_code;
}

int main(int argc, char **argv)
{
    struct options options;
    struct error err = {0};
    if (options_parse(argc, argv, &options, &err) < 0) {
        fail(&err);
        return 2;
    }
    if (options.help) {
        options_print_help();
        return 0;
    }
    if (options.version) {
        puts("faasrl-mpa " FAASRL_VERSION);
        return 0;
    }
    set_up_log(&options);
    return options.simulate ? simulate(&options) : run(&options);
}
