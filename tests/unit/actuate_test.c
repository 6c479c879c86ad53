/* What is asked of the API server, byte for byte, and what is not asked twice. */
#include "actuate/actuate.h"
#include "kube_fake.h"

struct script {
    struct fake fake;
    int status; /* of every answer */
    int patches;
    char target[160], head[2048], body[512];
    int answers;
    struct error refusal;
    struct actuator *actuator;
};

static void on_request(void *arg, const struct fake_request *r)
{
    struct script *s = arg;
    s->patches++;
    snprintf(s->target, sizeof(s->target), "%s %s", r->method, r->target);
    snprintf(s->head, sizeof(s->head), "%s", r->head);
    snprintf(s->body, sizeof(s->body), "%s", r->body);
    fake_reply(r->conn, s->status, "",
               s->status == 200 ? "{}" : "{\"kind\":\"Status\",\"message\":\"node too small\"}");
}

static void on_answer(void *arg, const char *pod, const struct error *err)
{
    struct script *s = arg;
    assert_string_equal(pod, "p");
    s->answers++;
    s->refusal = err ? *err : (struct error){0};
}

static void send_to_kube(void *arg, const struct kube_pod *pod, const json_t *patch,
                         actuate_done on_done, void *done_arg)
{
    actuate_pod(arg, pod, patch, on_done, done_arg);
}

static int setup(void **state)
{
    struct script *s = xcalloc(1, sizeof(*s));
    s->status = 200;
    s->fake.on_request = on_request;
    s->fake.arg = s;
    fake_start(&s->fake, NULL);
    s->actuator = actuator_new(send_to_kube, s->fake.kube);
    actuator_on_answer(s->actuator, on_answer, s);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct script *s = *state;
    actuator_free(s->actuator);
    fake_stop(&s->fake);
    clock_use_system();
    free(s);
    return 0;
}

/* A pod of one container; resources and conditions as JSON. */
static struct kube_pod *make_pod(const char *resources, const char *conditions)
{
    cleanup_free char *text = xasprintf(
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\","
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":%s}]},"
        "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
        "\"lastTransitionTime\":\"2026-01-01T00:00:10Z\"}%s]}}",
        resources, conditions);
    cleanup_json json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    struct kube_pod *pod = kube_pod_from_json(object);
    assert_non_null(pod);
    return pod;
}

static const char *const guaranteed = "{\"requests\":{\"cpu\":\"200m\",\"memory\":\"64Mi\"},"
                                      "\"limits\":{\"cpu\":\"200m\",\"memory\":\"64Mi\"}}";

static struct actuate_sizes want_cpu(int64_t milli)
{
    struct actuate_sizes sizes = {.count = 1};
    snprintf(sizes.containers[0].name, sizeof(sizes.containers[0].name), "c");
    sizes.containers[0].request[API_CPU] = milli;
    sizes.containers[0].request[API_MEMORY] = API_ABSENT;
    return sizes;
}

static struct actuate_report resize(struct script *s, const struct kube_pod *pod, int64_t milli,
                                    bool only_new)
{
    struct actuate_report report;
    struct actuate_sizes sizes = want_cpu(milli);
    actuate_resize(s->actuator, &pod, 1, &sizes, only_new, &report);
    int awaited = s->answers + report.patched;
    fake_run_until(&s->fake, s->answers == awaited);
    return report;
}

static void test_a_guaranteed_pod_gets_request_and_limit(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_pod(guaranteed, "");
    struct actuate_report report = resize(s, pod, 400, false);
    assert_int_equal(report.patched, 1);
    assert_non_null(strstr(s->target, "PATCH /api/v1/namespaces/ns/pods/p/resize"));
    assert_non_null(strcasestr(s->head, "application/strategic-merge-patch+json"));
    assert_string_equal(s->body,
                        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
                        "\"requests\":{\"cpu\":\"400m\"},\"limits\":{\"cpu\":\"400m\"}}}]}}");
    kube_pod_free(pod);
}

static void test_nothing_is_asked_where_nothing_differs(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_pod(guaranteed, "");
    assert_int_equal(resize(s, pod, 200, false).patched, 0);
    assert_int_equal(s->patches, 0);
    kube_pod_free(pod);
}

static void test_best_effort_is_told_impossible(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_pod("{}", "");
    struct actuate_report report = resize(s, pod, 400, false);
    assert_int_equal(report.patched, 0);
    assert_int_equal(report.impossible, 1);
    assert_true(strlen(report.message) > 0);
    kube_pod_free(pod);
}

/* The cache shows the new size a moment after the API server took it. */
static void test_the_same_is_not_asked_twice_at_once(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_pod(guaranteed, "");
    assert_int_equal(resize(s, pod, 400, false).patched, 1);
    assert_int_equal(resize(s, pod, 400, false).patched, 0);
    assert_int_equal(resize(s, pod, 300, false).patched, 1);
    kube_pod_free(pod);
}

static void test_a_refusal_is_told_and_waits(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_pod(guaranteed, "");
    s->status = 403;
    assert_int_equal(resize(s, pod, 400, false).patched, 1);
    assert_int_equal(s->refusal.code, ERROR_FORBIDDEN);
    assert_non_null(strstr(s->refusal.message, "node too small"));
    struct actuate_report report = resize(s, pod, 400, false);
    assert_int_equal(report.patched, 0);
    assert_int_equal(report.pending, 1);
    assert_non_null(strstr(report.message, "node too small"));

    clock_set(clock_mono_ms() + 31000, clock_wall_ms() + 31000);
    assert_int_equal(resize(s, pod, 400, false).patched, 1);
    kube_pod_free(pod);
}

static void test_pending_resizes_are_reported(void **state)
{
    static const struct {
        const char *reason;
        bool infeasible, deferred;
    } cases[] = {{"Infeasible", true, false}, {"Deferred", false, true}};
    struct script *s = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *condition =
            xasprintf(",{\"type\":\"PodResizePending\",\"status\":\"True\",\"reason\":\"%s\","
                      "\"message\":\"Node didn't have enough capacity\"}",
                      cases[i].reason);
        struct kube_pod *pod = make_pod(guaranteed, condition);
        struct actuate_report report = resize(s, pod, 200, false);
        assert_int_equal(report.pending, 1);
        assert_int_equal(report.infeasible, cases[i].infeasible);
        assert_int_equal(report.deferred, cases[i].deferred);
        assert_non_null(strstr(report.message, "enough capacity"));
        kube_pod_free(pod);
    }
}

/* The pod was ready at 2026-01-01T00:00:10Z. */
static void test_initial_mode_sizes_a_new_pod_once(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_pod(guaranteed, "");
    clock_set(1000000, 1767225610000 + 60000);
    assert_int_equal(resize(s, pod, 400, true).patched, 0);
    clock_step_wall(-59000); /* it does not become new by a clock that is set back */
    assert_int_equal(resize(s, pod, 400, true).patched, 0);
    clock_set(1000000, 1767225610000 + 5000);
    assert_int_equal(resize(s, pod, 400, true).patched, 1);
    assert_int_equal(resize(s, pod, 300, true).patched, 0);
    kube_pod_free(pod);
}

/* --- pods that start --- */
#define STARTED_MS 1767225601000 /* 2026-01-01T00:00:01Z */

/* A pod as its kubelet has just taken it, or one that nobody has taken yet. */
static struct kube_pod *make_new_pod(bool taken)
{
    struct kube_pod *pod = make_pod(guaranteed, "");
    pod->phase = KUBE_PENDING;
    pod->ready = false;
    pod->started_ms = pod->ready_changed_ms = taken ? STARTED_MS : 0;
    return pod;
}

static void get_ready(struct kube_pod *pod, int64_t after_ms)
{
    pod->phase = KUBE_RUNNING;
    pod->ready = true;
    pod->ready_changed_ms = STARTED_MS + after_ms;
}

/* What the cache would show of a patch that was taken. */
static void take(struct kube_pod *pod, int64_t milli)
{
    pod->containers[0].requests.cpu_milli = pod->containers[0].limits.cpu_milli = milli;
}

static void at_ms(int64_t after_start)
{
    clock_set(1000000 + after_start, STARTED_MS + after_start);
}

static struct actuate_report boost(struct script *s, const struct kube_pod *pod, bool only_new)
{
    struct actuate_sizes sizes = want_cpu(300);
    sizes.boosts = true;
    sizes.boost_more_ms = 10000;
    sizes.containers[0].boosted_cpu = 600;
    struct actuate_report report;
    actuate_resize(s->actuator, &pod, 1, &sizes, only_new, &report);
    int awaited = s->answers + report.patched;
    fake_run_until(&s->fake, s->answers == awaited);
    return report;
}

static void test_a_pod_is_sized_before_it_runs(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_new_pod(true);
    at_ms(0);
    assert_int_equal(resize(s, pod, 400, true).patched, 1);
    kube_pod_free(pod);
}

/* The node may have been chosen by what the template asks for. */
static void test_a_pod_that_nobody_has_taken_never_grows(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_new_pod(false);
    at_ms(0);
    assert_int_equal(resize(s, pod, 400, false).patched, 0);
    assert_int_equal(boost(s, pod, false).patched, 0);
    assert_int_equal(resize(s, pod, 100, false).patched, 1);
    kube_pod_free(pod);
}

static void test_a_boost_lasts_until_the_pod_is_ready_and_a_while(void **state)
{
    for (int only_new = 0; only_new < 2; only_new++) {
        struct script *s = *state;
        struct kube_pod *pod = make_new_pod(true);
        pod->uid[1] = (char)('1' + only_new);
        at_ms(1000);
        struct actuate_report report = boost(s, pod, only_new);
        assert_int_equal(report.patched, 1);
        assert_int_equal(report.boosted, 1);
        assert_int_equal(report.settles_in_ms, -1); /* it will be told when it is ready */
        assert_non_null(strstr(s->body, "600m"));
        take(pod, 600);
        at_ms(60000); /* it takes its time */
        assert_int_equal(boost(s, pod, only_new).patched, 0);

        get_ready(pod, 60000);
        at_ms(64000);
        report = boost(s, pod, only_new);
        assert_int_equal(report.patched, 0);
        assert_int_equal(report.settles_in_ms, 6000);
        at_ms(70000);
        report = boost(s, pod, only_new);
        assert_int_equal(report.patched, 1);
        assert_int_equal(report.boosted, 0);
        assert_int_equal(report.settles_in_ms, -1);
        assert_non_null(strstr(s->body, "300m"));
        take(pod, 300);
        assert_int_equal(boost(s, pod, only_new).patched, 0);
        kube_pod_free(pod);
    }
}

/* Another one has boosted it and is gone. */
static void test_a_controller_that_starts_anew_ends_a_boost(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_new_pod(true);
    take(pod, 600);
    get_ready(pod, 5000);
    at_ms(8000);
    assert_int_equal(boost(s, pod, true).settles_in_ms, 7000);
    at_ms(20000);
    assert_int_equal(boost(s, pod, true).patched, 1);
    assert_non_null(strstr(s->body, "300m"));
    kube_pod_free(pod);
}

static void test_a_pod_that_lost_its_readiness_is_not_boosted(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_new_pod(true);
    take(pod, 300);
    get_ready(pod, 3600000);
    at_ms(3600000);
    pod->ready = false;
    assert_int_equal(boost(s, pod, false).patched, 0);
    pod->ready = true;
    assert_int_equal(boost(s, pod, false).patched, 0);
    kube_pod_free(pod);
}

static void test_a_node_without_room_for_a_boost_gives_the_size(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_new_pod(true);
    at_ms(1000);
    assert_int_equal(boost(s, pod, true).boosted, 1);
    take(pod, 600);
    pod->resize = KUBE_RESIZE_DEFERRED;
    struct actuate_report report = boost(s, pod, true);
    assert_int_equal(report.patched, 1);
    assert_int_equal(report.boosted, 0);
    assert_non_null(strstr(s->body, "300m"));
    assert_non_null(strstr(report.boost_refusal, "pod p"));
    assert_false(report.deferred); /* nothing is said of the size */
    assert_int_equal(report.pending, 0);
    take(pod, 300);
    report = boost(s, pod, true); /* the kubelet has not seen it yet */
    assert_int_equal(report.patched, 0);
    assert_string_equal(report.boost_refusal, "");
    pod->resize = KUBE_RESIZE_NONE;
    assert_int_equal(boost(s, pod, true).patched, 0);
    kube_pod_free(pod);
}

static void test_a_boost_that_the_api_server_refuses_gives_the_size(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_new_pod(true);
    at_ms(1000);
    s->status = 403;
    assert_int_equal(boost(s, pod, true).boosted, 1);
    s->status = 200;
    struct actuate_report report = boost(s, pod, true);
    assert_int_equal(report.patched, 1);
    assert_int_equal(report.boosted, 0);
    kube_pod_free(pod);
}

static void test_a_refusal_in_initial_mode_is_told_and_repeated(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_new_pod(true);
    at_ms(0);
    s->status = 403;
    assert_int_equal(resize(s, pod, 400, true).patched, 1);
    get_ready(pod, 0);
    at_ms(20000);
    assert_int_equal(resize(s, pod, 400, true).pending, 1);
    s->status = 200;
    at_ms(40000);
    assert_int_equal(resize(s, pod, 400, true).patched, 1);
    take(pod, 400);
    at_ms(80000);
    assert_int_equal(resize(s, pod, 300, true).patched, 0);
    kube_pod_free(pod);
}

static void test_freeing_with_a_request_under_way(void **state)
{
    struct script *s = *state;
    struct kube_pod *pod = make_pod(guaranteed, "");
    const struct kube_pod *pods[] = {pod};
    struct actuate_sizes sizes = want_cpu(400);
    struct actuate_report report;
    actuate_resize(s->actuator, pods, 1, &sizes, false, &report);
    actuator_free(s->actuator);
    s->actuator = NULL;
    fake_run_until(&s->fake, s->patches == 1);
    assert_int_equal(s->answers, 0);
    kube_pod_free(pod);
}

/* --- replicas --- */
static void on_scaled(void *arg, const struct error *err)
{
    struct script *s = arg;
    s->answers++;
    s->refusal = err ? *err : (struct error){0};
}

static void test_replicas_go_to_scale(void **state)
{
    struct script *s = *state;
    static const struct kube_resource rollouts = {"argoproj.io/v1alpha1", "Rollout",
                                                  "/apis/argoproj.io/v1alpha1", "rollouts"};
    struct kube_workload w = {.resource = &rollouts,
                              .kind = (char *)(uintptr_t) "Rollout",
                              .namespace_ = (char *)(uintptr_t) "ns",
                              .name = (char *)(uintptr_t) "db"};
    actuate_replicas(s->fake.kube, &w, 3, on_scaled, s);
    fake_run_until(&s->fake, s->answers == 1);
    assert_non_null(
        strstr(s->target, "PATCH /apis/argoproj.io/v1alpha1/namespaces/ns/rollouts/db/scale"));
    assert_non_null(strcasestr(s->head, "application/merge-patch+json"));
    assert_string_equal(s->body, "{\"spec\":{\"replicas\":3}}");
    assert_int_equal(s->refusal.code, ERROR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_guaranteed_pod_gets_request_and_limit, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_asked_where_nothing_differs, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_best_effort_is_told_impossible, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_is_not_asked_twice_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_refusal_is_told_and_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pending_resizes_are_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(test_initial_mode_sizes_a_new_pod_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pod_is_sized_before_it_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pod_that_nobody_has_taken_never_grows, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_boost_lasts_until_the_pod_is_ready_and_a_while,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_controller_that_starts_anew_ends_a_boost, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_pod_that_lost_its_readiness_is_not_boosted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_node_without_room_for_a_boost_gives_the_size, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_boost_that_the_api_server_refuses_gives_the_size,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_refusal_in_initial_mode_is_told_and_repeated, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_freeing_with_a_request_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replicas_go_to_scale, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
