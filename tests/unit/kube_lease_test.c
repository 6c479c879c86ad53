#include "kube_fake.h"

/* A server of one lease, with versions and conflicts as the API server has them. */
struct office {
    struct fake fake;
    json_t *lease;
    int version, gets, puts, posts;
    bool broken; /* answers 500 */
    struct kube_lease **stop_at_put;
};

struct candidate {
    struct kube_lease *lease;
    int gained, lost;
    bool leading;
    struct candidate *rival;
    bool stop_when_gained;
};

static void on_change(void *arg, bool leading)
{
    struct candidate *c = arg;
    assert_int_not_equal(c->leading, leading);
    c->leading = leading;
    c->gained += leading;
    c->lost += !leading;
    if (c->rival && leading)
        assert_false(c->rival->leading); /* never two */
    if (leading && c->stop_when_gained) {
        kube_lease_stop(c->lease);
        c->lease = NULL;
        c->leading = false;
    }
}

static void reply_lease(struct office *o, struct fake_conn *conn, int status)
{
    cleanup_free char *text = json_dumps(o->lease, JSON_COMPACT);
    fake_reply(conn, status, "", text);
}

static void store(struct office *o, const char *body)
{
    cleanup_free char *version = xasprintf("%d", ++o->version);
    json_decref(o->lease);
    o->lease = json_loads(body, 0, NULL);
    assert_non_null(o->lease);
    json_object_set_new(json_object_get(o->lease, "metadata"), "resourceVersion",
                        json_string(version));
}

static bool same_version(struct office *o, const char *body)
{
    cleanup_json json_t *sent = json_loads(body, 0, NULL);
    return json_equal(json_path(sent, "metadata", "resourceVersion", NULL),
                      json_path(o->lease, "metadata", "resourceVersion", NULL));
}

static void on_request(void *arg, const struct fake_request *r)
{
    struct office *o = arg;
    bool get = strcmp(r->method, "GET") == 0, put = strcmp(r->method, "PUT") == 0;
    o->gets += get;
    o->puts += put;
    o->posts += !get && !put;
    if (o->broken) {
        fake_reply(r->conn, 500, "", "{\"message\":\"etcd is away\"}");
    } else if (strstr(r->target, "/leases") == NULL) {
        fake_reply(r->conn, 200, "", "{}");
    } else if (!get && !put && o->lease) {
        fake_reply(r->conn, 409, "", "{\"message\":\"exists already\"}");
    } else if (!get && !put) {
        assert_non_null(strstr(r->target, "/apis/coordination.k8s.io/v1/namespaces/n/leases?"));
        store(o, r->body);
        reply_lease(o, r->conn, 201);
    } else if (!o->lease) {
        fake_reply(r->conn, 404, "", "{\"message\":\"no lease\"}");
    } else if (put && !same_version(o, r->body)) {
        fake_reply(r->conn, 409, "", "{\"message\":\"changed\"}");
    } else {
        if (put)
            store(o, r->body);
        reply_lease(o, r->conn, 200);
        if (put && o->stop_at_put && *o->stop_at_put) {
            kube_lease_stop(*o->stop_at_put);
            *o->stop_at_put = NULL;
        }
    }
}

static const char *field(struct office *o, const char *name)
{
    return json_str(json_path(o->lease, "spec", name, NULL));
}

static json_int_t number(struct office *o, const char *name)
{
    return json_integer_value(json_path(o->lease, "spec", name, NULL));
}

static void store_foreign(struct office *o, const char *renew_time)
{
    cleanup_free char *text =
        xasprintf("{\"metadata\":{\"name\":\"l\",\"labels\":{\"keep\":\"me\"}},\"spec\":{"
                  "\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15,\"acquireTime\":"
                  "\"2000-01-01T00:00:00.000000Z\",\"renewTime\":\"%s\",\"leaseTransitions\":6}}",
                  renew_time);
    store(o, text);
}

static struct office *office_new(void)
{
    struct office *o = xcalloc(1, sizeof(*o));
    log_setup(LOG_ERROR, LOG_LOGFMT);
    o->fake.on_request = on_request;
    o->fake.arg = o;
    return o;
}

static void run_for(struct office *o, struct candidate *c, const char *identity)
{
    /* A second is the shortest that a Lease can say. */
    struct kube_lease_spec spec = {.namespace_ = "n",
                                   .name = "l",
                                   .identity = identity,
                                   .duration_ms = 1000,
                                   .renew_deadline_ms = 400,
                                   .retry_ms = 10,
                                   .on_change = on_change,
                                   .arg = c};
    c->lease = kube_lease_start(o->fake.kube, &spec);
    assert_string_equal(kube_lease_holder(c->lease), "");
}

static void office_free(struct office *o)
{
    fake_stop(&o->fake);
    json_decref(o->lease);
    free(o);
    clock_use_system();
}

static void a_new_lease_is_ours_and_is_renewed(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate c = {0};
    fake_start(&o->fake, NULL);
    run_for(o, &c, "me");
    fake_run_until(&o->fake, c.leading);
    assert_int_equal(o->posts, 1);
    assert_string_equal(field(o, "holderIdentity"), "me");
    assert_int_equal(number(o, "leaseDurationSeconds"), 1);
    assert_int_equal(number(o, "leaseTransitions"), 0);
    assert_string_equal(kube_lease_holder(c.lease), "me");
    cleanup_free char *acquired = xstrdup(field(o, "acquireTime"));
    assert_int_equal(strlen(acquired), 27); /* 2026-01-31T12:00:00.000000Z */
    int gets = o->gets;
    fake_run_until(&o->fake, o->puts >= 5 || c.lost);
    assert_int_equal(c.lost, 0);
    assert_int_equal(o->gets, gets); /* one request per renewal */
    assert_string_equal(field(o, "acquireTime"), acquired);
    assert_true(strcmp(field(o, "renewTime"), acquired) > 0);
    assert_int_equal(number(o, "leaseTransitions"), 0);
    kube_lease_stop(c.lease);
    office_free(o);
}

/* By its own times the lease ran out in the year 2000. That says nothing: clocks differ. */
static void a_foreign_lease_runs_out_by_our_own_clock(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate c = {0};
    clock_set(1000000, 1700000000000);
    store_foreign(o, "2000-01-01T00:00:00.000000Z");
    fake_start(&o->fake, NULL);
    run_for(o, &c, "me");
    fake_run_until(&o->fake, o->gets >= 3);
    assert_string_equal(kube_lease_holder(c.lease), "other");
    clock_advance(14999);
    fake_run_until(&o->fake, o->gets >= 6);
    store_foreign(o, "2000-01-01T00:00:10.000000Z"); /* renewed */
    fake_run_until(&o->fake, o->gets >= 9);
    clock_advance(14999);
    fake_run_until(&o->fake, o->gets >= 12);
    assert_int_equal(o->puts, 0);
    clock_advance(1);
    fake_run_until(&o->fake, c.leading);
    assert_string_equal(field(o, "holderIdentity"), "me");
    assert_int_equal(number(o, "leaseTransitions"), 7);
    assert_string_equal(field(o, "acquireTime"),
                        "2023-11-14T22:13:49.999000Z"); /* our wall clock */
    assert_string_equal(json_str(json_path(o->lease, "metadata", "labels", "keep", NULL)), "me");
    kube_lease_stop(c.lease);
    office_free(o);
}

static void who_cannot_renew_stops_leading_before_it_runs_out(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate c = {0};
    fake_start(&o->fake, NULL);
    run_for(o, &c, "me");
    fake_run_until(&o->fake, c.leading);
    int64_t broken_ms = clock_mono_ms();
    o->broken = true;
    fake_run_until(&o->fake, c.lost);
    int64_t led_ms = clock_mono_ms() - broken_ms;
    assert_true(led_ms >= 400 - 100); /* the last renewal may be a few retries old */
    o->broken = false;
    fake_run_until(&o->fake, c.leading);
    assert_int_equal(c.gained, 2);
    kube_lease_stop(c.lease);
    office_free(o);
}

static void a_lease_taken_from_us_is_lost_at_once(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate c = {0};
    fake_start(&o->fake, NULL);
    run_for(o, &c, "me");
    fake_run_until(&o->fake, c.leading);
    clock_set(clock_mono_ms(), clock_wall_ms()); /* time stands still: no deadline passes */
    store_foreign(o, "2026-01-01T00:00:00.000000Z");
    fake_run_until(&o->fake, c.lost);
    assert_string_equal(kube_lease_holder(c.lease), "other");
    assert_string_equal(field(o, "holderIdentity"), "other");
    kube_lease_stop(c.lease);
    office_free(o);
}

static void stopping_hands_over(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate a = {0}, b = {.rival = &a};
    a.rival = &b;
    fake_start(&o->fake, NULL);
    run_for(o, &a, "a");
    fake_run_until(&o->fake, a.leading);
    run_for(o, &b, "b");
    fake_run_until(&o->fake, strcmp(kube_lease_holder(b.lease), "a") == 0);
    clock_set(clock_mono_ms(), clock_wall_ms()); /* nothing runs out any more */
    a.leading = false;
    kube_lease_stop(a.lease);
    fake_run_until(&o->fake, strcmp(field(o, "holderIdentity"), "a") != 0);
    fake_run_until(&o->fake, b.leading);
    assert_int_equal(number(o, "leaseTransitions"), 1);
    kube_lease_stop(b.lease);
    office_free(o);
}

/* The answer to a renewal that is under way has the version without which nothing is handed over.
 */
static void stopping_during_a_renewal_hands_over_too(void **state)
{
    (void)state;
    for (int client_goes_first = 0; client_goes_first < 2; client_goes_first++) {
        struct office *o = office_new();
        struct candidate c = {0};
        fake_start(&o->fake, NULL);
        run_for(o, &c, "me");
        fake_run_until(&o->fake, c.leading);
        o->stop_at_put = &c.lease;
        fake_run_until(&o->fake, c.lease == NULL);
        if (!client_goes_first)
            fake_run_until(&o->fake, *field(o, "holderIdentity") == '\0');
        assert_int_equal(c.lost, 0);
        office_free(o);
    }
}

static void of_two_that_begin_together_one_leads(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate a = {0}, b = {.rival = &a};
    a.rival = &b;
    fake_start(&o->fake, NULL);
    run_for(o, &a, "a");
    run_for(o, &b, "b");
    fake_run_until(&o->fake, a.leading || b.leading);
    int gets = o->gets;
    fake_run_until(&o->fake, o->gets >= gets + 10); /* the other goes on asking */
    assert_int_equal(a.gained + b.gained, 1);
    kube_lease_stop(a.lease);
    kube_lease_stop(b.lease);
    office_free(o);
}

static void a_renewal_does_not_queue_behind_other_writes(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate c = {0};
    fake_start(&o->fake, &(struct kube_options){.writes_per_second = 0.001, .write_burst = 1});
    for (int i = 0; i < 100; i++)
        kube_send(o->fake.kube, &(struct kube_request){.method = "PUT", .path = "/x"});
    run_for(o, &c, "me");
    fake_run_until(&o->fake, c.leading);
    kube_lease_stop(c.lease);
    office_free(o);
}

static void stop_inside_on_change_and_after_the_client(void **state)
{
    (void)state;
    struct office *o = office_new();
    struct candidate c = {.stop_when_gained = true}, late = {0};
    fake_start(&o->fake, NULL);
    run_for(o, &c, "me");
    fake_run_until(&o->fake, c.gained);
    fake_run_until(&o->fake, *field(o, "holderIdentity") == '\0'); /* given back */
    run_for(o, &late, "late");
    fake_run_until(&o->fake, late.gained);
    kube_free(o->fake.kube);
    o->fake.kube = NULL;
    kube_lease_stop(late.lease);
    office_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_lease_is_ours_and_is_renewed),
        cmocka_unit_test(a_foreign_lease_runs_out_by_our_own_clock),
        cmocka_unit_test(who_cannot_renew_stops_leading_before_it_runs_out),
        cmocka_unit_test(a_lease_taken_from_us_is_lost_at_once),
        cmocka_unit_test(stopping_hands_over),
        cmocka_unit_test(stopping_during_a_renewal_hands_over_too),
        cmocka_unit_test(of_two_that_begin_together_one_leads),
        cmocka_unit_test(a_renewal_does_not_queue_behind_other_writes),
        cmocka_unit_test(stop_inside_on_change_and_after_the_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
