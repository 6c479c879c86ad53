#include "kube/internal.h"
#include "kube_fake.h"

struct journal {
    struct fake fake;
    int posts, patches;
    json_t *last_post, *last_patch;
    char last_target[512];
    bool gone;  /* answers 404 to patches */
    bool quiet; /* does not answer */
    struct fake_conn *held;
};

static void on_request(void *arg, const struct fake_request *r)
{
    struct journal *j = arg;
    bool post = strcmp(r->method, "POST") == 0;
    json_t **slot = post ? &j->last_post : &j->last_patch;
    json_decref(*slot);
    *slot = json_loads(r->body, 0, NULL);
    assert_non_null(*slot);
    snprintf(j->last_target, sizeof(j->last_target), "%s", r->target);
    j->posts += post;
    j->patches += !post;
    if (j->quiet)
        j->held = r->conn;
    else if (!post && j->gone)
        fake_reply(r->conn, 404, "", "{\"message\":\"gone\"}");
    else
        fake_reply(r->conn, post ? 201 : 200, "", "{}");
}

static struct journal *journal_new(void)
{
    struct journal *j = xcalloc(1, sizeof(*j));
    clock_set(1000000, 1700000000000);
    j->fake.on_request = on_request;
    j->fake.arg = j;
    fake_start(&j->fake, NULL);
    return j;
}

static void journal_free(struct journal *j)
{
    fake_stop(&j->fake);
    json_decref(j->last_post);
    json_decref(j->last_patch);
    free(j);
    clock_use_system();
}

static const struct kube_event scaled = {.api_version = "autoscaling.faasrl.io/v1alpha1",
                                         .kind = "MultidimPodAutoscaler",
                                         .namespace_ = "shop",
                                         .name = "web",
                                         .uid = "u1",
                                         .reason = "Rescaled",
                                         .message = "2 to 3 replicas"};

static const char *posted(struct journal *j, const char *key)
{
    return json_str(json_object_get(j->last_post, key));
}

/* Runs the loop until all requests are answered. */
static void settle(struct journal *j)
{
    for (int i = 0; i < 50; i++)
        uv_run(&j->fake.loop, UV_RUN_NOWAIT);
}

static void an_event_is_created(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->posts);
    const char *name = json_str(json_path(j->last_post, "metadata", "name", NULL));
    assert_non_null(strstr(j->last_target, "/api/v1/namespaces/shop/events?"));
    assert_int_equal(strncmp(name, "web.", 4), 0);
    assert_int_equal(strlen(name), 20);
    assert_string_equal(json_str(json_path(j->last_post, "involvedObject", "uid", NULL)), "u1");
    assert_string_equal(posted(j, "reason"), "Rescaled");
    assert_string_equal(posted(j, "message"), "2 to 3 replicas");
    assert_string_equal(posted(j, "type"), "Normal");
    assert_string_equal(posted(j, "reportingComponent"), "faasrl-mpa");
    assert_string_equal(posted(j, "firstTimestamp"), "2023-11-14T22:13:20Z");
    assert_string_equal(json_str(json_path(j->last_post, "source", "component", NULL)),
                        "faasrl-mpa");
    assert_int_equal(json_integer_value(json_object_get(j->last_post, "count")), 1);
    journal_free(j);
}

static void a_cluster_scoped_object_has_its_events_in_default(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    struct kube_event event = scaled;
    event.namespace_ = NULL;
    event.warning = true;
    kube_event_send(j->fake.kube, &event);
    fake_run_until(&j->fake, j->posts);
    assert_non_null(strstr(j->last_target, "/namespaces/default/events?"));
    assert_string_equal(posted(j, "type"), "Warning");
    journal_free(j);
}

static void the_same_again_counts_up(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->posts);
    settle(j);
    cleanup_free char *name = xstrdup(json_str(json_path(j->last_post, "metadata", "name", NULL)));
    clock_advance(599000);
    kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->patches);
    settle(j);
    assert_non_null(strstr(j->last_target, name));
    assert_int_equal(json_integer_value(json_object_get(j->last_patch, "count")), 2);
    assert_string_equal(json_str(json_object_get(j->last_patch, "lastTimestamp")),
                        "2023-11-14T22:23:19Z");
    struct kube_event other = scaled;
    other.message = "3 to 4 replicas";
    kube_event_send(j->fake.kube, &other);
    fake_run_until(&j->fake, j->posts == 2);
    clock_advance(600001); /* too long ago: a new event */
    kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->posts == 3);
    assert_int_equal(json_integer_value(json_object_get(j->last_post, "count")), 1);
    assert_int_equal(j->patches, 1);
    journal_free(j);
}

static void an_event_that_went_is_created_anew(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->posts);
    settle(j);
    j->gone = true;
    kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->posts == 2);
    assert_int_equal(json_integer_value(json_object_get(j->last_post, "count")), 2);
    journal_free(j);
}

/* While a request is under way the count goes on, and is sent once afterwards. */
static void a_burst_is_two_requests(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    j->quiet = true;
    for (int i = 0; i < 10; i++)
        kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->held);
    j->quiet = false;
    fake_reply(j->held, 201, "", "{}");
    fake_run_until(&j->fake, j->patches);
    settle(j);
    assert_int_equal(j->posts, 1);
    assert_int_equal(j->patches, 1);
    assert_int_equal(json_integer_value(json_object_get(j->last_patch, "count")), 10);
    journal_free(j);
}

/* client-go: 25 at once, then one in five minutes, for each object. */
static void one_object_cannot_flood(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    for (int i = 0; i < 40; i++) {
        cleanup_free char *message = xasprintf("number %d", i);
        struct kube_event event = scaled;
        event.message = message;
        kube_event_send(j->fake.kube, &event);
    }
    fake_run_until(&j->fake, j->posts == 25);
    settle(j);
    assert_int_equal(j->posts, 25);
    struct kube_event other = scaled;
    other.uid = "u2";
    kube_event_send(j->fake.kube, &other);
    fake_run_until(&j->fake, j->posts == 26);
    clock_advance(300000);
    for (int i = 0; i < 3; i++)
        kube_event_send(j->fake.kube, &scaled);
    fake_run_until(&j->fake, j->posts == 27);
    settle(j);
    assert_int_equal(j->posts + j->patches, 27);
    journal_free(j);
}

static void long_texts_are_cut_between_characters(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    struct kube_event event = scaled;
    char message[1600];
    for (size_t i = 0; i + 3 < sizeof(message); i += 3)
        memcpy(message + i, "\xe2\x82\xac", 4); /* the euro sign */
    event.message = message;
    kube_event_send(j->fake.kube, &event);
    fake_run_until(&j->fake, j->posts);
    assert_int_equal(strlen(posted(j, "message")), 1023); /* 341 × 3, of at most 1024 */
    journal_free(j);
}

/* More objects than are remembered, and the client freed with requests under way. */
static void memory_is_bounded(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    j->quiet = true;
    for (int i = 0; i < 6000; i++) {
        cleanup_free char *uid = xasprintf("u%d", i);
        struct kube_event event = scaled;
        event.uid = uid;
        kube_event_send(j->fake.kube, &event);
    }
    fake_run_until(&j->fake, j->posts > 0);
    assert_int_equal(kube_events_objects(j->fake.kube), 4096);
    journal_free(j);
}

/* Says something about the object with this uid; what it says is new each time. */
static void say(struct journal *j, const char *uid)
{
    static int said;
    cleanup_free char *message = xasprintf("number %d", said++);
    struct kube_event event = scaled;
    event.uid = uid;
    event.message = message;
    kube_event_send(j->fake.kube, &event);
}

/* Objects come and go for hours: of each as much is kept as still bounds something. */
static void objects_that_went_are_forgotten(void **state)
{
    (void)state;
    struct journal *j = journal_new();
    for (int i = 0; i < 25; i++)
        say(j, "flooded");
    fake_run_until(&j->fake, j->posts == 25);
    for (int i = 0; i < 1000; i++) {
        cleanup_free char *uid = xasprintf("u%d", i);
        clock_advance(1000);
        say(j, uid);
        fake_run_until(&j->fake, j->posts == 26 + i);
        /* An event's token is back after 300 s; within another minute it is looked at. */
        assert_in_range(kube_events_objects(j->fake.kube), 1, 300 + 60 + 2);
    }
    clock_advance(400000);
    say(j, "last");
    assert_int_equal(kube_events_objects(j->fake.kube), 2); /* and the flooded one's */
    fake_run_until(&j->fake, j->posts == 25 + 1001);
    /* 1,400 s gave it 4 of its 25 back: it was not forgotten with those that came later. */
    for (int i = 0; i < 10; i++)
        say(j, "flooded");
    fake_run_until(&j->fake, j->posts == 25 + 1001 + 4);
    settle(j);
    assert_int_equal(j->posts, 25 + 1001 + 4);
    journal_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_created),
        cmocka_unit_test(a_cluster_scoped_object_has_its_events_in_default),
        cmocka_unit_test(the_same_again_counts_up),
        cmocka_unit_test(an_event_that_went_is_created_anew),
        cmocka_unit_test(a_burst_is_two_requests),
        cmocka_unit_test(one_object_cannot_flood),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(objects_that_went_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
