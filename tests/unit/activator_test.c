/* Who waits at Knative's activators, and whether all of them can be asked. */
#include "kube_fake.h"
#include "observe/observe.h"

struct world {
    struct fake fake;
    struct observe_activators *activators;
    struct fake_conn *stream;
    const char *metrics[2]; /* of each activator; NULL: it answers 500 */
    int asked, reads;
    char pods[2][512];
    int pod_count;
};

static void make_pod(struct world *w, int i, const char *ready)
{
    snprintf(
        w->pods[i], sizeof(w->pods[i]),
        "{\"metadata\":{\"name\":\"a%d\",\"namespace\":\"knative-serving\",\"uid\":\"u%d\","
        "\"resourceVersion\":\"9\"},\"spec\":{\"containers\":[{\"ports\":[{\"name\":\"metrics\","
        "\"containerPort\":%d}]}]},\"status\":{\"podIP\":\"%s\",\"conditions\":"
        "[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
        i, i, w->fake.port, i ? "::ffff:127.0.0.1" : "127.0.0.1", ready);
}

static void reply_pods(const struct world *w, const struct fake_request *r)
{
    cleanup_free char *body =
        xasprintf("{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[%s%s%s]}",
                  w->pod_count > 0 ? w->pods[0] : "", w->pod_count > 1 ? "," : "",
                  w->pod_count > 1 ? w->pods[1] : "");
    fake_reply(r->conn, 200, "", body);
}

static void on_request(void *arg, const struct fake_request *r)
{
    struct world *w = arg;
    if (strstr(r->target, "watch=1")) {
        w->stream = r->conn;
        fake_stream_begin(r->conn);
    } else if (strstr(r->target, "/pods?")) {
        assert_non_null(strstr(r->target, "/namespaces/knative-serving/pods"));
        assert_non_null(strstr(r->target, "activator"));
        reply_pods(w, r);
    } else {
        const char *text = w->metrics[strcasestr(r->head, "Host: [") != NULL];
        w->asked++;
        fake_reply(r->conn, text ? 200 : 500, "", text ? text : "");
    }
}

static void on_read(void *arg)
{
    struct world *w = arg;
    w->reads++;
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    w->pod_count = 1;
    w->metrics[0] = w->metrics[1] = "up 1\n";
    fake_start(&w->fake, NULL);
    make_pod(w, 0, "True");
    make_pod(w, 1, "True");
    w->activators = observe_activators_new(&w->fake.loop, w->fake.kube, w->fake.http, on_read, w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    observe_activators_free(w->activators);
    fake_stop(&w->fake);
    free(w);
    return 0;
}

static bool holds(const struct world *w, const char *revision)
{
    return observe_activators_hold(w->activators, "s", revision);
}

static void nobody_is_asked_before_somebody_listens(void **state)
{
    struct world *w = *state;
    assert_int_equal(observe_activators_deaf_ms(w->activators), -1);
    assert_int_equal(w->fake.requests, 0);
    observe_activators_listen(w->activators, true);
    fake_run_until(&w->fake, w->reads > 0);
    observe_activators_listen(w->activators, false);
    assert_int_equal(observe_activators_deaf_ms(w->activators), -1);
}

static void each_name_of_the_gauge_counts_above_zero(void **state)
{
    struct world *w = *state;
    w->metrics[0] =
        "kn_revision_request_concurrency{k8s_namespace_name=\"s\",kn_revision_name=\"a\"} 0.5\n"
        "kn_revision_request_concurrency{k8s_namespace_name=\"s\",kn_revision_name=\"b\"} 0\n"
        "kn_revision_request_concurrency__request_{k8s_namespace_name=\"s\",kn_revision_name=\"g\"}"
        " 1\n"
        "kn_revision_request_concurrency{k8s_namespace_name=\"t\",kn_revision_name=\"c\"} 1\n"
        "kn_revision_request_queued{k8s_namespace_name=\"s\",kn_revision_name=\"d\"} 1\n"
        "activator_request_concurrency{namespace_name=\"s\",revision_name=\"e\"} 2\n"
        "something_else{k8s_namespace_name=\"s\",kn_revision_name=\"f\"} 1\n";
    observe_activators_listen(w->activators, true);
    fake_run_until(&w->fake, w->reads > 0);
    assert_true(holds(w, "a") && holds(w, "d") && holds(w, "e") && holds(w, "g"));
    assert_false(holds(w, "b") || holds(w, "c") || holds(w, "f") || holds(w, "h"));
    w->metrics[0] = "up 1\n";
    int reads = w->reads;
    fake_run_until(&w->fake, w->reads > reads);
    assert_false(holds(w, "a"));
}

static void all_of_them_have_to_answer(void **state)
{
    struct world *w = *state;
    w->pod_count = 2;
    w->metrics[1] = NULL;
    observe_activators_listen(w->activators, true);
    fake_run_until(&w->fake, w->asked >= 6); /* two seconds */
    assert_true(w->reads > 0);
    assert_true(observe_activators_deaf_ms(w->activators) > 1500);
    assert_non_null(strstr(observe_activators_trouble(w->activators), "::ffff"));
    w->metrics[1] =
        "kn_revision_request_queued{k8s_namespace_name=\"s\",kn_revision_name=\"a\"} 1\n";
    fake_run_until(&w->fake, holds(w, "a"));
    assert_true(observe_activators_deaf_ms(w->activators) < 500);
}

static void none_that_is_ready_is_none_that_hears(void **state)
{
    struct world *w = *state;
    make_pod(w, 0, "False");
    observe_activators_listen(w->activators, true);
    fake_run_until(&w->fake, observe_activators_deaf_ms(w->activators) > 1200);
    assert_int_equal(w->asked, 0);
    assert_non_null(strstr(observe_activators_trouble(w->activators), "none is ready"));
    make_pod(w, 0, "True");
    cleanup_free char *line = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", w->pods[0]);
    fake_stream_write(w->stream, line);
    fake_run_until(&w->fake, observe_activators_deaf_ms(w->activators) < 500);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nobody_is_asked_before_somebody_listens),
        TEST(each_name_of_the_gauge_counts_above_zero),
        TEST(all_of_them_have_to_answer),
        TEST(none_that_is_ready_is_none_that_hears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
