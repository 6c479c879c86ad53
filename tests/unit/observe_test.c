/* From what the cluster says and what Prometheus answers to one observation. The fake server is a
 * Prometheus that gives each query a canned answer. */
#include "kube_fake.h"
#include "observe/observe.h"

#include <math.h>

#define NOW_MS 1767225700000 /* 2026-01-01T00:01:40Z */

struct script {
    struct fake fake;
    struct prom *prom;
    struct observe *observe;
    const char *latency, *cpu, *throttled, *memory, *own, *actions,
        *proxies; /* "result" of each; NULL: 503 */
    int queries;
    bool collected;
    struct api_mpa mpa;
    struct kube_workload workload;
    struct kube_pod *pods[4];
    size_t pod_count;
    bool escaped, asked;
    struct observe_view view;
    struct error err;
};

static void on_request(void *arg, const struct fake_request *r)
{
    struct script *s = arg;
    s->queries++;
    const char *result = strstr(r->body, "own_metric")                ? s->own
                         : strstr(r->body, "openwhisk_action")        ? s->actions
                         : strstr(r->body, "revision_request")        ? s->proxies
                         : strstr(r->body, "_bucket")                 ? s->latency
                         : strstr(r->body, "throttled")               ? s->throttled
                         : strstr(r->body, "cpu_usage_seconds_total") ? s->cpu
                                                                      : s->memory;
    if (result == NULL) {
        fake_reply(r->conn, 503, "", "overloaded");
        return;
    }
    cleanup_free char *body = xasprintf(
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[%s]}}", result);
    fake_reply(r->conn, 200, "", body);
}

static const char manifest[] =
    "{\"apiVersion\":\"autoscaling.faasrl.io/v1alpha1\",\"kind\":\"MultidimPodAutoscaler\","
    "\"metadata\":{\"name\":\"m\",\"namespace\":\"ns\",\"uid\":\"x\"},\"spec\":{"
    "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"f\"},"
    "\"goals\":{\"latency\":{\"percentile\":50,\"target\":\"300ms\"%s}},"
    "\"constraints\":{\"global\":{\"maxReplicas\":5},\"container\":[{\"name\":\"c\",\"requests\":{"
    "\"minAllowed\":{\"cpu\":\"100m\"},\"maxAllowed\":{\"cpu\":\"1\"}}}]}}}";

static void add_pod(struct script *s, const char *name, const char *status)
{
    cleanup_free char *text = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"containers\":["
        "{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"400m\"}}},{\"name\":\"side\"}]},"
        "\"status\":%s}",
        name, name, status);
    cleanup_json json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    s->pods[s->pod_count++] = kube_pod_from_json(object);
}

/* Ready since 00:00:10; 200m are in force though 400m are asked for. */
static const char ready[] =
    "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
    "\"lastTransitionTime\":\"2026-01-01T00:00:10Z\"}],\"containerStatuses\":[{\"name\":\"c\","
    "\"resources\":{\"requests\":{\"cpu\":\"200m\"}}}]}";

static struct script *start_with(const char *own_query, enum observe_own own)
{
    struct script *s = xcalloc(1, sizeof(*s));
    s->fake.on_request = on_request;
    s->fake.arg = s;
    fake_start(&s->fake, NULL);
    cleanup_free char *url = xasprintf("http://127.0.0.1:%d", s->fake.port);
    struct prom_config config = {.url = url};
    struct observe_options options = {.window_s = 30, .own = own};
    s->prom = prom_new(&s->fake.loop, s->fake.http, &config, &s->err);
    s->observe = observe_new(s->prom, &options, &s->err);
    assert_non_null(s->observe);

    cleanup_free char *text = xasprintf(manifest, own_query);
    cleanup_json json_t *object = json_loads(text, 0, NULL);
    assert_int_equal(api_parse(object, &s->mpa, &s->err), 0);
    static const struct kube_resource deployments = {"apps/v1", "Deployment", "/apis/apps/v1",
                                                     "deployments"};
    s->workload = (struct kube_workload){.resource = &deployments,
                                         .kind = (char *)(uintptr_t) "Deployment",
                                         .name = (char *)(uintptr_t) "f",
                                         .replicas_wanted = 2};
    s->latency = s->cpu = s->throttled = s->memory = "";
    clock_set(1000000, NOW_MS);
    return s;
}

static struct script *start(const char *own_query)
{
    return start_with(own_query, OBSERVE_OWN_ANY);
}

static void stop(struct script *s)
{
    observe_view_clear(&s->view);
    observe_free(s->observe);
    prom_free(s->prom);
    for (size_t i = 0; i < s->pod_count; i++)
        kube_pod_free(s->pods[i]);
    api_clear(&s->mpa);
    fake_stop(&s->fake);
    clock_use_system();
    free(s);
}

static void on_collected(void *arg)
{
    ((struct script *)arg)->collected = true;
}

static int build(struct script *s)
{
    struct observe_subject subject = {.key = "ns/m",
                                      .mpa = &s->mpa,
                                      .workload = &s->workload,
                                      .pods = (const struct kube_pod *const *)s->pods,
                                      .pod_count = s->pod_count,
                                      .since_increase_s = INFINITY};
    observe_view_clear(&s->view);
    s->err = (struct error){0};
    return observe_build(s->observe, &subject, &s->view, &s->err);
}

static int look(struct script *s)
{
    const struct kube_pod *const *pods = (const struct kube_pod *const *)s->pods;
    if (s->mpa.spec.latency_query)
        observe_add_own(s->observe, &(struct observe_own_query){.key = "ns/m",
                                                                .mpa = &s->mpa,
                                                                .pods = pods,
                                                                .pod_count = s->pod_count});
    s->collected = false;
    observe_collect(s->observe, on_collected, s);
    fake_run_until(&s->fake, s->collected);
    return build(s);
}

#define CPU_OF(pod, cores)                                                                         \
    "{\"metric\":{\"namespace\":\"ns\",\"pod\":\"" pod "\",\"container\":\"c\"},"                  \
    "\"value\":[1,\"" cores "\"]}"
#define BUCKET(pod, le, rate)                                                                      \
    "{\"metric\":{\"namespace\":\"ns\",\"pod\":\"" pod "\",\"le\":\"" le "\"},"                    \
    "\"value\":[1,\"" rate "\"]}"

static void test_figures_meet_their_pods(void **state)
{
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    add_pod(s, "b", ready);
    s->cpu = CPU_OF("a", "0.15") "," CPU_OF("b", "0.05") "," CPU_OF("stranger", "9");
    s->throttled = CPU_OF("a", "0.5") "," CPU_OF("b", "0.1");
    assert_int_equal(look(s), 0);
    const struct observation *seen = &s->view.seen;
    assert_int_equal(s->queries, 4);
    assert_int_equal(seen->pod_count, 2);
    assert_int_equal(seen->replicas_wanted, 2);
    assert_int_equal(seen->max_replicas, 5);
    assert_true(fabs(seen->pods[0].containers[0].usage[RECOMMEND_CPU] - 150) < 1e-6);
    assert_true(fabs(seen->pods[1].containers[0].usage[RECOMMEND_CPU] - 50) < 1e-6);
    assert_true(isnan(seen->pods[0].containers[1].usage[RECOMMEND_CPU]));
    /* What is in force counts, not what is asked for. */
    assert_true(seen->containers[0].request[RECOMMEND_CPU] == 200);
    assert_true(seen->containers[0].min[RECOMMEND_CPU] == 100);
    assert_true(seen->containers[0].max[RECOMMEND_CPU] == 1000);
    /* A container without a request cannot gain one. */
    assert_true(seen->containers[0].controlled[RECOMMEND_CPU]);
    assert_false(seen->containers[1].controlled[RECOMMEND_CPU]);
    assert_true(fabs(seen->throttled - 0.3) < 1e-9);
    stop(s);
}

/* 10 requests/s up to 0.1 s in pod a, 10 more from 0.1 to 0.2 s in pod b: the median of both
 * together is 0.1 s, that of b alone 0.15 s. */
static void test_latency_is_of_all_pods_together(void **state)
{
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    add_pod(s, "b", ready);
    s->cpu = CPU_OF("a", "0.1");
    s->latency = BUCKET("b", "+Inf", "10") "," BUCKET("b", "0.1", "0") "," BUCKET(
        "b", "0.2", "10") "," BUCKET("a", "0.1", "10") "," BUCKET("a", "0.2",
                                                                  "10") "," BUCKET("a", "+Inf",
                                                                                   "10");
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_KNOWN);
    assert_true(fabs(s->view.seen.latency_ms - 100) < 1e-6);
    assert_true(fabs(s->view.seen.requests_per_s - 20) < 1e-9);
    assert_true(s->view.seen.goal_ms == 300);
    stop(s);
}

static void test_missing_silent_and_beyond_are_told_apart(void **state)
{
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_true(strlen(s->view.latency_trouble) > 0);

    s->latency = BUCKET("a", "0.1", "0") "," BUCKET("a", "+Inf", "0");
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_NO_TRAFFIC);

    s->latency = BUCKET("a", "0.1", "1") "," BUCKET("a", "+Inf", "10");
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_OVERFLOW);
    assert_true(fabs(s->view.seen.latency_ms - 100) < 1e-6);

    s->latency = NULL;
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, "503"));
    stop(s);
}

static void test_without_usage_nothing_is_said(void **state)
{
    struct script *s = start("");
    (void)state;
    assert_int_equal(look(s), -1);
    assert_non_null(strstr(s->err.message, "no pods"));
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("other", "0.1");
    assert_int_equal(look(s), -1);
    assert_non_null(strstr(s->err.message, "no CPU usage"));
    s->cpu = CPU_OF("a", "0.1");
    assert_int_equal(look(s), 0);
    s->cpu = NULL; /* a failed query leaves no figures, not the old ones */
    assert_int_equal(look(s), -1);
    assert_non_null(strstr(s->err.message, "503"));
    stop(s);
}

/* What no function can use or do is no figure: it is told, and nothing is reckoned with it. */
static void test_absurd_figures_are_none(void **state)
{
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    add_pod(s, "b", ready);
    s->cpu = CPU_OF("a", "-0.5") "," CPU_OF("b", "0.1");
    s->throttled = CPU_OF("a", "1e300") "," CPU_OF("b", "0.25");
    s->latency = BUCKET("a", "0.1", "-3") "," BUCKET("b", "0.1", "5") "," BUCKET("b", "+Inf", "5");
    assert_int_equal(look(s), 0);
    assert_true(isnan(s->view.seen.pods[0].containers[0].usage[RECOMMEND_CPU]));
    assert_true(s->view.seen.pods[1].containers[0].usage[RECOMMEND_CPU] == 100);
    assert_true(s->view.seen.throttled == 0.25);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_true(isnan(s->view.seen.requests_per_s));
    assert_string_equal(s->view.latency_trouble,
                        "a bucket of latencies gets -3 requests/s, which cannot be");

    s->cpu = CPU_OF("a", "1e300");
    s->latency = BUCKET("a", "1e7", "0") "," BUCKET("a", "2e7", "5") "," BUCKET("a", "+Inf", "5");
    assert_int_equal(look(s), -1);
    assert_string_equal(s->err.message, "1e+300 cores in use in pod a, which cannot be");
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, "cannot be"));

    s->cpu = CPU_OF("a", "0.5");
    s->latency = BUCKET("a", "0.1", "5") "," BUCKET("a", "+Inf", "5");
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_KNOWN);
    stop(s);
}

/* Our clock is put back by hours, or was wrong before we began: no pod is young for it. */
static void test_a_wrong_clock_makes_no_pod_young(void **state)
{
    (void)state;
    struct script *s = start("");
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
    assert_int_equal(look(s), 0);
    assert_false(s->view.seen.pods[0].starting);
    clock_step_wall(-INT64_C(3600000));
    assert_int_equal(look(s), 0);
    assert_false(s->view.seen.pods[0].starting);
    clock_set(1000000, NOW_MS - INT64_C(3600000));
    assert_int_equal(look(s), 0);
    assert_false(s->view.seen.pods[0].starting);
    stop(s);
}

static void test_pods_that_do_not_count(void **state)
{
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    add_pod(s, "done", "{\"phase\":\"Succeeded\"}");
    add_pod(s, "young", "{\"phase\":\"Pending\"}");
    add_pod(s, "fresh",
            "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
            "\"lastTransitionTime\":\"2026-01-01T00:01:35Z\"}]}");
    s->cpu = CPU_OF("a", "0.1");
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.pod_count, 3);
    assert_false(s->view.seen.pods[0].starting);
    assert_true(s->view.seen.pods[1].pending && s->view.seen.pods[1].starting);
    assert_true(s->view.seen.pods[2].ready && s->view.seen.pods[2].starting);
    stop(s);
}

static int64_t lasting_cpu(const void *arg, const char *container)
{
    (void)arg;
    return strcmp(container, "c") == 0 ? 150 : API_ABSENT;
}

/* 200m are in force in both, of which the second has 50m only until it has started. */
static void test_a_boost_is_no_size(void **state)
{
    (void)state;
    struct script *s = start("");
    struct observe_subject subject = {.key = "ns/m",
                                      .mpa = &s->mpa,
                                      .workload = &s->workload,
                                      .pods = (const struct kube_pod *const *)s->pods,
                                      .pod_count = 1,
                                      .lasting_cpu = lasting_cpu,
                                      .since_increase_s = INFINITY};
    const struct observation *seen = &s->view.seen;
    s->mpa.spec.boost = (struct api_boost){.factor = 2, .duration_s = 120};
    s->mpa.spec.containers[0].max[API_CPU] = API_ABSENT;
    add_pod(s, "p1", ready);
    add_pod(s, "p2", ready);
    observe_build(s->observe, &subject, &s->view, &s->err);
    assert_true(seen->pods[0].starting);
    assert_true(seen->pods[0].containers[0].request[RECOMMEND_CPU] == 200); /* in force */
    assert_true(seen->containers[0].request[RECOMMEND_CPU] == 150);
    assert_true(seen->containers[0].max[RECOMMEND_CPU] == 150); /* as far as it has been told */

    s->pods[1]->ready_changed_ms -= 200000; /* it is over for this one */
    subject.pod_count = 2;
    observe_view_clear(&s->view);
    observe_build(s->observe, &subject, &s->view, &s->err);
    assert_false(seen->pods[1].starting);
    assert_true(seen->containers[0].request[RECOMMEND_CPU] == 200);
    stop(s);
}

static void test_what_cannot_be_sized_is_not_ours(void **state)
{
    (void)state;
    struct script *s = start("");
    add_pod(s, "p1", ready);
    build(s);
    assert_true(s->view.seen.containers[0].controlled[RECOMMEND_CPU]);
    assert_false(s->view.seen.containers[1].controlled[RECOMMEND_CPU]); /* requests nothing */
    s->mpa.spec.containers[0].requests_only = true;
    build(s);
    assert_true(s->view.seen.containers[0].controlled[RECOMMEND_CPU]);
    s->pods[0]->qos = KUBE_QOS_GUARANTEED;
    build(s);
    assert_false(s->view.seen.containers[0].controlled[RECOMMEND_CPU]);
    stop(s);
}

/* In a pod of Knative the container that requests go to is ours, and who is named. */
static void test_what_stands_beside_a_function_is_not_ours(void **state)
{
    static const char pod[] =
        "{'metadata':{'name':'p','namespace':'ns','uid':'p'},'spec':{'containers':["
        "{'name':'log','resources':{'requests':{'cpu':'50m'}},'ports':[{'name':'http'}]},"
        "{'name':'f','resources':{'requests':{'cpu':'400m'}},'ports':[{'name':'user-port'}]},"
        "{'name':'queue-proxy','resources':{'requests':{'cpu':'25m'}}}]}}";
    struct script *s = start("");
    cleanup_free char *text = fake_quoted(pod);
    cleanup_json json_t *object = json_loads(text, 0, NULL);
    const struct recommend_container *c = s->view.seen.containers;
    (void)state;
    s->pods[s->pod_count++] = kube_pod_from_json(object);
    build(s);
    assert_true(c[0].controlled[RECOMMEND_CPU] && c[1].controlled[RECOMMEND_CPU]);
    string_set(&s->mpa.spec.target_api_version, KUBE_KNATIVE);
    build(s);
    assert_false(c[0].controlled[RECOMMEND_CPU] || c[2].controlled[RECOMMEND_CPU]);
    assert_true(c[1].controlled[RECOMMEND_CPU]);
    string_set(&s->mpa.spec.containers[0].name, "*"); /* names nobody */
    build(s);
    assert_false(c[0].controlled[RECOMMEND_CPU]);
    string_set(&s->mpa.spec.containers[0].name, "log");
    build(s);
    assert_true(c[0].controlled[RECOMMEND_CPU] && c[1].controlled[RECOMMEND_CPU]);
    /* Where none is told to serve all are ours but queue-proxy. */
    string_set(&s->mpa.spec.containers[0].name, "*");
    s->pods[0]->containers[1].serves = false;
    build(s);
    assert_true(c[0].controlled[RECOMMEND_CPU] && c[1].controlled[RECOMMEND_CPU]);
    assert_false(c[2].controlled[RECOMMEND_CPU]);
    stop(s);
}

static void test_an_own_query_gives_seconds_or_buckets(void **state)
{
    struct script *s = start(",\"query\":\"own_metric{pod=~\\\"$pods\\\"}\"");
    (void)state;
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
    s->own = "{\"metric\":{},\"value\":[1,\"0.25\"]}";
    assert_int_equal(look(s), 0);
    assert_int_equal(s->queries, 5);
    assert_int_equal(s->view.seen.latency_state, LATENCY_KNOWN);
    assert_true(fabs(s->view.seen.latency_ms - 250) < 1e-6);

    s->own = "{\"metric\":{},\"value\":[1,\"NaN\"]}";
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_NO_TRAFFIC);

    s->own = "{\"metric\":{\"le\":\"0.4\"},\"value\":[1,\"4\"]},"
             "{\"metric\":{\"le\":\"+Inf\"},\"value\":[1,\"4\"]}";
    assert_int_equal(look(s), 0);
    assert_true(fabs(s->view.seen.latency_ms - 200) < 1e-6);

    s->own = "{\"metric\":{},\"value\":[1,\"-2\"]}";
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, "answers -2s"));

    s->own = "";
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    stop(s);
}

/* What is asked holds the text; the body is a form, percent-encoded. */
static void on_dots(void *arg, const struct fake_request *r)
{
    struct script *s = arg;
    if (strstr(r->body, "own_metric"))
        s->escaped = strstr(r->body, "a%5C%5C.b") != NULL && !strstr(r->body, "a.b");
    on_request(arg, r);
}

static void test_a_dot_in_a_pods_name_is_a_dot(void **state)
{
    struct script *s = start(",\"query\":\"own_metric{pod=~\\\"$pods\\\"}\"");
    (void)state;
    s->fake.on_request = on_dots;
    add_pod(s, "a.b", ready);
    s->cpu = CPU_OF("a.b", "0.1");
    s->own = "";
    assert_int_equal(look(s), 0);
    assert_true(s->escaped);
    stop(s);
}

static void test_a_wrong_own_query_says_what_is_wrong(void **state)
{
    struct script *s = start(",\"query\":\"own_metric{x=\\\"$nonsense\\\"}\"");
    (void)state;
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, "nonsense"));
    stop(s);
}

/* Prometheus is asked nothing that the installation does not allow. */
static void assert_own_is_refused(const char *own_query, enum observe_own own, const char *why)
{
    struct script *s = start_with(own_query, own);
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
    s->own = "{\"metric\":{\"namespace\":\"ns\"},\"value\":[1,\"0.25\"]}";
    assert_int_equal(look(s), 0);
    assert_int_equal(s->queries, 4);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, why));
    stop(s);
}

static void test_an_own_query_may_be_kept_in_its_namespace(void **state)
{
    (void)state;
    assert_own_is_refused(",\"query\":\"own_metric\"", OBSERVE_OWN_NAMESPACE, "its own namespace");
    assert_own_is_refused(",\"query\":\"own_metric{namespace=\\\"bank\\\"}\"",
                          OBSERVE_OWN_NAMESPACE, "its own namespace");
    /* Another namespace that pretends to be this one afterwards. */
    assert_own_is_refused(",\"query\":\"label_replace(own_metric{}, 'namespace', '$namespace', '', "
                          "'')\"",
                          OBSERVE_OWN_NAMESPACE, "its own namespace");
    assert_own_is_refused(",\"query\":\"own_metric{namespace=\\\"$namespace\\\"}\"",
                          OBSERVE_OWN_OFF, "asks no queries of MPAs");

    struct script *s = start_with(",\"query\":\"own_metric{namespace=\\\"$namespace\\\"}\"",
                                  OBSERVE_OWN_NAMESPACE);
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
    s->own = "{\"metric\":{},\"value\":[1,\"0.25\"]}";
    assert_int_equal(look(s), 0);
    assert_int_equal(s->queries, 5);
    assert_true(fabs(s->view.seen.latency_ms - 250) < 1e-6);
    stop(s);
}

/* Labels of another's series, and what Prometheus itself says of them. */
static void on_bank(void *arg, const struct fake_request *r)
{
    struct script *s = arg;
    if (strstr(r->body, "own_metric"))
        s->asked = strstr(r->body, "namespace%3D%22bank%22") != NULL;
    if (strstr(r->body, "own_metric") && s->own == NULL)
        fake_reply(r->conn, 422, "",
                   "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"found "
                   "duplicate series for the match group: [{account=\\\"bank-4711\\\"}]\"}");
    else
        on_request(arg, r);
}

/* Unless the installation says otherwise. docs/security.md tells what is learned by that. */
static void test_any_own_query_is_asked_and_tells_a_number(void **state)
{
    struct script *s = start(",\"query\":\"own_metric{namespace=\\\"bank\\\"}\"");
    (void)state;
    s->fake.on_request = on_bank;
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
    s->own = "{\"metric\":{\"account\":\"bank-4711\"},\"value\":[1,\"0.25\"]},"
             "{\"metric\":{\"account\":\"bank-4712\"},\"value\":[1,\"7\"]}";
    assert_int_equal(look(s), 0);
    assert_int_equal(s->queries, 5);
    assert_true(s->asked);
    assert_true(fabs(s->view.seen.latency_ms - 250) < 1e-6); /* of the first series alone */
    cleanup_json json_t *seen = observe_json(&s->view.seen);
    cleanup_free char *text = json_dumps(seen, 0);
    assert_null(strstr(text, "bank"));
    assert_string_equal(s->view.latency_trouble, "");

    s->own = NULL;
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, "bank-4711"));
    stop(s);
}

static void test_figures_as_json(void **state)
{
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.15");
    assert_int_equal(look(s), 0);
    cleanup_json json_t *o = observe_json(&s->view.seen);
    assert_true(fabs(json_real_value(json_object_get(o, "cpuUtilization")) - 0.75) < 1e-9);
    assert_true(json_is_null(json_object_get(o, "latencyMs")));
    assert_int_equal(json_integer_value(json_object_get(o, "readyPods")), 1);
    stop(s);
}

/* As in the tests above, but without a query: half of 20 requests/s within 0.1 s. */
static void test_figures_can_be_given(void **state)
{
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    const struct observe_figure figures[] = {
        {PROM_CPU_USAGE, "ns", "a", "c", 0, 0.15},
        {PROM_CPU_THROTTLED, "ns", "a", "c", 0, 0.5},
        {PROM_MEMORY_USAGE, "ns", "a", "c", 0, NAN},
        {PROM_LATENCY_BUCKETS, "ns", "a", NULL, 0.1, 10},
        {PROM_LATENCY_BUCKETS, "ns", "a", NULL, INFINITY, 20},
        {PROM_LATENCY_BUCKETS, "ns", "a", NULL, 0.2, 20},
    };
    observe_give(s->observe, figures, ARRAY_LEN(figures));
    assert_int_equal(observe_collected_ms(s->observe), clock_mono_ms());
    assert_int_equal(build(s), 0);
    const struct observation *seen = &s->view.seen;
    assert_true(fabs(seen->pods[0].containers[0].usage[RECOMMEND_CPU] - 150) < 1e-9);
    assert_true(isnan(seen->pods[0].containers[0].usage[RECOMMEND_MEMORY]));
    assert_true(fabs(seen->throttled - 0.5) < 1e-12);
    assert_true(fabs(seen->latency_ms - 100) < 1e-9);
    assert_true(fabs(seen->requests_per_s - 20) < 1e-12);

    observe_give(s->observe, NULL, 0); /* nothing old is kept */
    assert_int_equal(build(s), -1);
    assert_int_equal(s->queries, 0);
    stop(s);
}

/* --- actions of OpenWhisk: measured by action, not by pod ----------------------------------------
 */
#define ACTIVATIONS(namespaces, initiator, action, le, rate)                                       \
    "{\"metric\":{" namespaces ",\"initiator\":\"" initiator "\",\"action\":\"" action             \
    "\",\"le\":\"" le "\"},\"value\":[1,\"" rate "\"]}"
#define ONE_OF(namespace_, initiator, action)                                                      \
    ACTIVATIONS("\"namespace\":\"" namespace_ "\"", initiator, action, "+Inf", "1")

static void make_action(struct script *s, const char *name)
{
    static const struct kube_resource actions = {KUBE_OPENWHISK, KUBE_ACTION, "", ""};
    s->workload.resource = &actions;
    free(s->mpa.spec.target_name);
    s->mpa.spec.target_name = xstrdup(name);
    add_pod(s, "a", ready);
    s->cpu = CPU_OF("a", "0.1");
}

static int look_at_action(struct script *s)
{
    observe_want_action(s->observe, s->mpa.spec.target_name);
    return look(s);
}

/* 10 of 20 requests/s within 0.1 s: of the action alone, whoever calls it, and by the user's
 * namespace where Prometheus has renamed it. */
static void test_latency_of_an_action(void **state)
{
#define USER "\"exported_namespace\":\"guest\",\"namespace\":\"openwhisk\""
    struct script *s = start("");
    (void)state;
    make_action(s, "guest/tools/hello");
    s->actions = ACTIVATIONS(USER, "guest", "tools/hello", "0.1", "6") "," ACTIVATIONS(
        USER, "guest", "tools/hello", "+Inf",
        "12") "," ACTIVATIONS(USER, "other", "tools/hello", "0.1",
                              "4") "," ACTIVATIONS(USER, "other", "tools/hello", "+Inf",
                                                   "8") "," ACTIVATIONS(USER, "guest", "else",
                                                                        "0.1",
                                                                        "0") "," ACTIVATIONS(USER,
                                                                                             "gues"
                                                                                             "t",
                                                                                             "else",
                                                                                             "+Inf",
                                                                                             "100");
    assert_int_equal(look_at_action(s), 0);
    assert_int_equal(s->queries, 5);
    assert_int_equal(s->view.seen.latency_state, LATENCY_OVERFLOW); /* half of them: the median */
    assert_true(fabs(s->view.seen.latency_ms - 100) < 1e-6);
    assert_true(fabs(s->view.seen.requests_per_s - 20) < 1e-9);
    /* Two pods are wanted, and nobody can set another number. */
    assert_int_equal(s->view.seen.min_replicas, 2);
    assert_int_equal(s->view.seen.max_replicas, 2);

    s->actions = ONE_OF("guest", "guest", "else");
    assert_int_equal(look_at_action(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, "no figures of this action"));
    s->actions = NULL;
    assert_int_equal(look_at_action(s), 0);
    assert_non_null(strstr(s->view.latency_trouble, "503"));
    stop(s);
}

#define WAITS(initiator, action, seconds)                                                          \
    "{\"metric\":{\"namespace\":\"guest\",\"initiator\":\"" initiator "\",\"action\":\"" action    \
    "\",\"part\":\"wait\"},\"value\":[1,\"" seconds "\"]}"
#define TEN_WITHIN_100_MS                                                                          \
    ACTIVATIONS("\"namespace\":\"guest\"", "guest", "hello", "0.1", "10")                          \
    "," ACTIVATIONS("\"namespace\":\"guest\"", "guest", "hello", "+Inf", "10")

/* The mean over all callers, beside a latency without it. */
static void test_waits_for_a_pod_are_told_by_themselves(void **state)
{
    struct script *s = start("");
    (void)state;
    s->mpa.spec.latency_target_us = 250000;
    make_action(s, "guest/hello");
    s->actions = TEN_WITHIN_100_MS "," WAITS("guest", "hello", "2") "," WAITS(
        "other", "hello", "0.4") "," WAITS("guest", "else", "90");
    assert_int_equal(look_at_action(s), 0);
    assert_true(s->view.seen.latency_ms <= 100);
    assert_true(fabs(s->view.wait_ms - 240) < 1e-6);
    assert_false(observe_calls_wait(&s->view));
    s->actions = TEN_WITHIN_100_MS "," WAITS("guest", "hello", "2.6");
    assert_int_equal(look_at_action(s), 0);
    assert_true(observe_calls_wait(&s->view));
    /* A query of somebody's own may not bring them. */
    s->actions = TEN_WITHIN_100_MS;
    assert_int_equal(look_at_action(s), 0);
    assert_false(observe_calls_wait(&s->view));
    /* What cannot be is not known. */
    s->actions = TEN_WITHIN_100_MS "," WAITS("guest", "hello", "1e300");
    assert_int_equal(look_at_action(s), 0);
    assert_true(isnan(s->view.wait_ms));
    assert_false(observe_calls_wait(&s->view));
    /* By itself it is no latency. */
    s->actions = WAITS("guest", "hello", "2.6");
    assert_int_equal(look_at_action(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_false(observe_calls_wait(&s->view));
    stop(s);
}

/* An MPA in ns may name anybody's action: docs/security.md says that its latency is told. */
static void test_latency_of_another_users_action_is_told(void **state)
{
    struct script *s = start("");
    (void)state;
    make_action(s, "bank/pay");
    s->actions = ACTIVATIONS("\"namespace\":\"bank\"", "bank", "pay", "0.1", "10") "," ACTIVATIONS(
        "\"namespace\":\"bank\"", "bank", "pay", "0.2",
        "20") "," ACTIVATIONS("\"namespace\":\"bank\"", "bank", "pay", "+Inf", "20");
    assert_int_equal(look_at_action(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_KNOWN);
    assert_true(fabs(s->view.seen.latency_ms - 100) < 1e-6);
    assert_int_equal(s->view.seen.min_replicas, s->view.seen.max_replicas);
    stop(s);
}

static void test_actions_with_pods_of_the_same_names(void **state)
{
    static const struct {
        const char *others, *rival; /* of guest/my-func */
    } cases[] = {
        {"", NULL},
        {ONE_OF("guest", "guest", "my-func"), NULL},
        {ONE_OF("guest", "guest", "my_func"), NULL},
        {ONE_OF("guest", "guest", "myfunc"), "guest/myfunc"},
        {ONE_OF("guest", "guest", "MyFunc"), "guest/MyFunc"},
        {ONE_OF("guest", "guest", "tools/my-func"), "guest/tools/my-func"},
        {ONE_OF("guest", "guest", "my-func") "," ONE_OF("gu.est", "gu.est", "myfunc"),
         "gu.est/myfunc"},
        {ONE_OF("other", "other", "shared/myfunc"), NULL},
        {ONE_OF("other", "guest", "shared/myfunc"), "other/shared/myfunc"},
        {ONE_OF("gue", "gue", "st/myfunc"), "gue/st/myfunc"}, /* with the scheduler: guest-myfunc */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct script *s = start("");
        make_action(s, "guest/my-func");
        assert_false(observe_knows_actions(s->observe));
        s->actions = cases[i].others;
        look_at_action(s);
        assert_true(observe_knows_actions(s->observe));
        const char *rival = observe_action_rival(s->observe, "guest/my-func");
        if (!cases[i].rival != !rival || (rival && strcmp(rival, cases[i].rival) != 0))
            fail_msg("%s: %s", cases[i].others, rival ? rival : "none");
        stop(s);
    }
}

/* What was known is not forgotten when Prometheus fails, and MPAs are known without it. */
static void test_actions_that_mpas_name_are_known(void **state)
{
    struct script *s = start("");
    (void)state;
    make_action(s, "guest/my-func");
    s->actions = NULL;
    look_at_action(s);
    assert_false(observe_knows_actions(s->observe));
    s->actions = ONE_OF("guest", "guest", "myfunc");
    look_at_action(s);
    assert_non_null(observe_action_rival(s->observe, "guest/my-func"));
    s->actions = NULL;
    look_at_action(s);
    assert_true(observe_knows_actions(s->observe));
    assert_non_null(observe_action_rival(s->observe, "guest/my-func"));
    s->actions = "";
    look_at_action(s);
    assert_null(observe_action_rival(s->observe, "guest/my-func"));
    observe_want_action(s->observe, "guest/My.Func");
    look_at_action(s);
    assert_string_equal(observe_action_rival(s->observe, "guest/my-func"), "guest/My.Func");
    stop(s);
}

/* --- Knative: what its queue-proxies measure -----------------------------------------------------
 */
#define OLDER(pod, le, rate)                                                                       \
    "{\"metric\":{\"namespace\":\"ns\",\"pod\":\"" pod "\",\"le\":\"" le                           \
    "\",\"unit\":\"ms\"},\"value\":[1,\"" rate "\"]}"

/* Half of 20 requests/s are within 0.1 s in each pod; that of the older version tells milliseconds.
 * What the containers themselves tell does not count: the wait before is not in it. */
static void test_latency_of_knative_in_the_units_of_each_version(void **state)
{
    static const struct kube_resource services = {KUBE_KNATIVE, "Service", "/apis/" KUBE_KNATIVE,
                                                  "services"};
    struct script *s = start("");
    (void)state;
    add_pod(s, "a", ready);
    add_pod(s, "b", ready);
    s->workload.resource = &services;
    s->cpu = CPU_OF("a", "0.1");
    s->latency = BUCKET("a", "0.005", "9") "," BUCKET("a", "+Inf", "9");
    s->proxies = BUCKET("a", "0.1", "5") "," BUCKET("a", "0.2", "10") "," BUCKET(
        "a", "+Inf", "10") "," OLDER("b", "100", "5") "," OLDER("b", "200",
                                                                "10") "," OLDER("b", "+Inf", "10");
    observe_want_proxies(s->observe);
    assert_int_equal(look(s), 0);
    assert_int_equal(s->queries, 5);
    assert_int_equal(s->view.seen.latency_state, LATENCY_KNOWN);
    assert_true(fabs(s->view.seen.latency_ms - 100) < 1e-6);
    assert_true(fabs(s->view.seen.requests_per_s - 20) < 1e-9);

    s->proxies = NULL;
    observe_want_proxies(s->observe);
    assert_int_equal(look(s), 0);
    assert_int_equal(s->view.seen.latency_state, LATENCY_MISSING);
    assert_non_null(strstr(s->view.latency_trouble, "503"));
    stop(s);
}

static void test_a_bad_template_is_refused_at_start(void **state)
{
    struct observe_options options = {.templates = {"rate($windwo)"}, .window_s = 30};
    struct error err = {0};
    (void)state;
    assert_null(observe_new(NULL, &options, &err));
    assert_non_null(strstr(err.message, "windwo"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_meet_their_pods),
        cmocka_unit_test(test_latency_is_of_all_pods_together),
        cmocka_unit_test(test_missing_silent_and_beyond_are_told_apart),
        cmocka_unit_test(test_without_usage_nothing_is_said),
        cmocka_unit_test(test_absurd_figures_are_none),
        cmocka_unit_test(test_absurd_figures_are_none),
        cmocka_unit_test(test_a_wrong_clock_makes_no_pod_young),
        cmocka_unit_test(test_pods_that_do_not_count),
        cmocka_unit_test(test_a_boost_is_no_size),
        cmocka_unit_test(test_what_cannot_be_sized_is_not_ours),
        cmocka_unit_test(test_what_stands_beside_a_function_is_not_ours),
        cmocka_unit_test(test_an_own_query_gives_seconds_or_buckets),
        cmocka_unit_test(test_a_wrong_own_query_says_what_is_wrong),
        cmocka_unit_test(test_a_dot_in_a_pods_name_is_a_dot),
        cmocka_unit_test(test_an_own_query_may_be_kept_in_its_namespace),
        cmocka_unit_test(test_any_own_query_is_asked_and_tells_a_number),
        cmocka_unit_test(test_figures_as_json),
        cmocka_unit_test(test_figures_can_be_given),
        cmocka_unit_test(test_latency_of_an_action),
        cmocka_unit_test(test_waits_for_a_pod_are_told_by_themselves),
        cmocka_unit_test(test_latency_of_another_users_action_is_told),
        cmocka_unit_test(test_actions_with_pods_of_the_same_names),
        cmocka_unit_test(test_actions_that_mpas_name_are_known),
        cmocka_unit_test(test_latency_of_knative_in_the_units_of_each_version),
        cmocka_unit_test(test_a_bad_template_is_refused_at_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
