/* Who holds which shard: as a plan, and by leases while replicas come, go, hang and are cut off.
 * The server looks at each write, and knows by the leases alone whose it should be. */
#include "controller/shards.h"
#include "kube_fake.h"

/* --- the plan --------------------------------------------------------------------------------- */
#define SHARDS 8
static const char *const nobody[SHARDS] = {"", "", "", "", "", "", "", ""};

static unsigned count_of(const char *const *owners, unsigned count, const char *name)
{
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++)
        n += owners[i] && strcmp(owners[i], name) == 0;
    return n;
}

static unsigned moved(const char *const *before, const char *const *after, unsigned count)
{
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++)
        n += strcmp(before[i], after[i]) != 0;
    return n;
}

static void a_namespace_stays_in_its_shard(void **state)
{
    (void)state;
    unsigned parts[SHARDS] = {0}, moves = 0;
    char name[32];
    for (int i = 0; i < 8000; i++) {
        snprintf(name, sizeof(name), "team-%d", i);
        unsigned shard = shard_of(name, SHARDS), of_more = shard_of(name, SHARDS + 1);
        assert_int_equal(shard, shard_of(name, SHARDS));
        assert_true(shard < SHARDS);
        assert_int_equal(shard_of(name, 1), 0);
        parts[shard]++;
        moves += shard != of_more;
        if (shard != of_more)
            assert_int_equal(of_more, SHARDS); /* to the new one, and nowhere else */
    }
    /* Binomial: 1000 and 889 expected, with standard deviations of 30 and 28; 5 of them. */
    for (int i = 0; i < SHARDS; i++)
        assert_in_range(parts[i], 850, 1150);
    assert_in_range(moves, 749, 1029);
}

/* What other versions must agree with; from the published algorithms (FNV-1a, the finalizer of
 * splitmix64, jump hash), worked out in Python. */
static void the_hash_never_changes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned of_8, of_64;
    } known[] = {{"default", 7, 41},
                 {"team-a", 2, 55},
                 {"openfaas-fn", 7, 7},
                 {"a-rather-long-namespace-0123456789", 0, 21},
                 {"x", 5, 40}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        assert_int_equal(shard_of(known[i].name, 8), known[i].of_8);
        assert_int_equal(shard_of(known[i].name, 64), known[i].of_64);
    }
}

static void a_plan_is_balanced_and_moves_the_least(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    const char *before[SHARDS], *after[SHARDS];
    shard_plan(nobody, SHARDS, names, 1, before);
    assert_int_equal(count_of(before, SHARDS, "a"), 8);
    for (size_t n = 2; n <= 5; n++) { /* one joins: it gets its part, and nothing else moves */
        shard_plan(before, SHARDS, names, n, after);
        assert_int_equal(count_of(after, SHARDS, names[n - 1]), SHARDS / n);
        assert_int_equal(moved(before, after, SHARDS), SHARDS / n);
        for (size_t i = 0; i < n; i++)
            assert_in_range(count_of(after, SHARDS, names[i]), SHARDS / n, (SHARDS + n - 1) / n);
        memcpy(before, after, sizeof(before));
    }
    for (size_t n = 4; n >= 1; n--) { /* one leaves: its part moves */
        shard_plan(before, SHARDS, names, n, after);
        assert_int_equal(moved(before, after, SHARDS), count_of(before, SHARDS, names[n]));
        memcpy(before, after, sizeof(before));
    }
}

static void a_plan_is_the_same_for_all_and_stays(void **state)
{
    (void)state;
    static const char *const some[] = {"x", "y", "z", "y"}, *const other[] = {"y", "z", "y", "x"};
    const char *const holders[SHARDS] = {"x", "x", "gone", "x", "", "x", "x", "z"};
    const char *one[SHARDS], *two[SHARDS], *again[SHARDS];
    shard_plan(holders, SHARDS, some, 4, one);
    shard_plan(holders, SHARDS, other, 4, two);
    assert_int_equal(moved(one, two, SHARDS), 0);
    shard_plan(one, SHARDS, other, 4, again);
    assert_int_equal(moved(one, again, SHARDS), 0);
    shard_plan(holders, SHARDS, NULL, 0, one);
    for (int i = 0; i < SHARDS; i++)
        assert_null(one[i]);
}

static void more_members_than_shards_have_one_or_none(void **state)
{
    (void)state;
    char names[SHARDS_MAX][8];
    const char *members[SHARDS_MAX], *owners[SHARDS];
    for (int i = 0; i < SHARDS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "m%d", i);
        members[i] = names[i];
    }
    shard_plan(nobody, SHARDS, members, SHARDS_MAX, owners);
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(count_of(owners, SHARDS, owners[i]), 1);
}

/* --- replicas --------------------------------------------------------------------------------- */
#define DURATION_MS 2000
#define DEADLINE_MS 1300
#define SETTLE_MS   500
#define RETRY_MS    40
#define REPLICAS    3
#define LEASES      (1 + 2 * SHARDS)
#define LATE_MS     150

struct record { /* a Lease on the server */
    char name[64];
    json_t *object;
    int64_t written_ms;
};

struct replica {
    char name[16]; /* "": it does not run */
    struct kube *kube;
    struct shards *shards;
    bool has[SHARDS], cut, over; /* cut: it gets no answer; over: it has lost a lease */
    bool slow;                   /* its writes are answered late */
    int64_t healed_ms;           /* when it is no longer cut; 0: it is not, or for good */
};

struct late { /* an answer to a write */
    uint64_t conn;
    struct replica *replica;
    unsigned shard;
    int64_t due_ms;
};

struct scene {
    struct fake fake;
    struct record records[LEASES];
    size_t record_count;
    int version, writes[SHARDS], wrong, handovers, waived;
    char last[SHARDS][16]; /* who wrote last */
    struct replica replicas[REPLICAS];
    struct late late[256];
    size_t late_count;
    uv_timer_t timer;
    unsigned born;
    uint64_t random;
};

static struct record *find_record(struct scene *w, const char *name, size_t len)
{
    for (size_t i = 0; i < w->record_count; i++)
        if (strlen(w->records[i].name) == len && memcmp(w->records[i].name, name, len) == 0)
            return &w->records[i];
    return NULL;
}

static void put_record(struct scene *w, struct record *record, const char *body)
{
    cleanup_free char *version = xasprintf("%d", ++w->version);
    json_decref(record->object);
    record->object = json_loads(body, 0, NULL);
    assert_non_null(record->object);
    json_object_set_new(json_object_get(record->object, "metadata"), "resourceVersion",
                        json_string(version));
    record->written_ms = clock_mono_ms();
    w->waived += *json_str(json_path(record->object, "spec", "holderIdentity", NULL)) == '\0';
}

static void reply_record(struct fake_conn *conn, int status, const struct record *record)
{
    cleanup_free char *text = json_dumps(record->object, JSON_COMPACT);
    fake_reply(conn, status, "", text);
}

static bool is_stale(const struct record *record, const char *body)
{
    cleanup_json json_t *sent = json_loads(body, 0, NULL);
    return !json_equal(json_path(sent, "metadata", "resourceVersion", NULL),
                       json_path(record->object, "metadata", "resourceVersion", NULL));
}

static void make_record(struct scene *w, const struct fake_request *r)
{
    cleanup_json json_t *sent = json_loads(r->body, 0, NULL);
    const char *name = json_str(json_path(sent, "metadata", "name", NULL));
    if (find_record(w, name, strlen(name))) {
        fake_reply(r->conn, 409, "", "{\"message\":\"exists already\"}");
        return;
    }
    assert_true(w->record_count < LEASES);
    struct record *record = &w->records[w->record_count++];
    snprintf(record->name, sizeof(record->name), "%s", name);
    put_record(w, record, r->body);
    reply_record(r->conn, 201, record);
}

static void answer_lease(struct scene *w, const struct fake_request *r, const char *name)
{
    struct record *record = find_record(w, name, strcspn(name, "?"));
    if (strcmp(r->method, "POST") == 0) {
        make_record(w, r);
    } else if (!record) {
        fake_reply(r->conn, 404, "", "{\"message\":\"no lease\"}");
    } else if (strcmp(r->method, "PUT") == 0 && is_stale(record, r->body)) {
        fake_reply(r->conn, 409, "", "{\"message\":\"changed\"}");
    } else {
        if (strcmp(r->method, "PUT") == 0)
            put_record(w, record, r->body);
        reply_record(r->conn, 200, record);
    }
}

static bool holds(struct scene *w, const char *lease, const char *holder)
{
    struct record *record = find_record(w, lease, strlen(lease));
    json_int_t duration_s =
        record ? json_integer_value(json_path(record->object, "spec", "leaseDurationSeconds", NULL))
               : 0;
    return record && clock_mono_ms() < record->written_ms + duration_s * 1000 &&
           strcmp(json_str(json_path(record->object, "spec", "holderIdentity", NULL)), holder) == 0;
}

/* As a judge: nothing but the leases and the clock says who may write. */
static void judge(struct scene *w, const struct replica *replica, unsigned shard)
{
    cleanup_free char *lease = xasprintf("l-shard-%u", shard);
    w->writes[shard]++;
    w->wrong += !holds(w, lease, replica->name) || !holds(w, "l", "8 shards");
    w->handovers += *w->last[shard] && strcmp(w->last[shard], replica->name) != 0;
    snprintf(w->last[shard], sizeof(w->last[shard]), "%s", replica->name);
}

static struct replica *sender(struct scene *w, const struct fake_request *r)
{
    for (int i = 0; i < REPLICAS; i++) {
        cleanup_free char *token = xasprintf("Bearer %s", w->replicas[i].name);
        if (*w->replicas[i].name && strstr(r->head, token))
            return &w->replicas[i];
    }
    return NULL;
}

/* A write is carried out when it arrives, and again judged when it would be carried out last: when
 * it is answered. */
static void on_request(void *arg, const struct fake_request *r)
{
    struct scene *w = arg;
    struct replica *replica = sender(w, r);
    const char *lease = strstr(r->target, "/leases/"), *write = strstr(r->target, "/shard/");
    if (!replica || replica->cut)
        return; /* nobody answers */
    if (write) {
        unsigned shard = (unsigned)strtoul(write + 7, NULL, 10);
        judge(w, replica, shard);
        if (replica->slow && w->late_count < ARRAY_LEN(w->late)) {
            w->late[w->late_count++] =
                (struct late){r->conn->number, replica, shard, clock_mono_ms() + LATE_MS};
            return;
        }
        fake_reply(r->conn, 200, "", "{}");
    } else {
        answer_lease(w, r, lease ? lease + 8 : "");
    }
}

/* --- what replicas do ------------------------------------------------------------------------- */
static void on_taken(void *arg, unsigned shard)
{
    struct replica *replica = arg;
    assert_false(replica->has[shard]);
    replica->has[shard] = true;
}

static void on_leaving(void *arg, unsigned shard)
{
    struct replica *replica = arg;
    assert_true(replica->has[shard]);
    replica->has[shard] = false;
}

/* The process has ended: nothing comes from it any more. */
static void on_lost(void *arg)
{
    struct replica *replica = arg;
    replica->over = replica->cut = true;
    replica->healed_ms = 0;
}

static void start_replica(struct scene *w, struct replica *replica)
{
    struct error err = {0};
    cleanup_free char *server = xasprintf("http://127.0.0.1:%d", w->fake.port);
    *replica = (struct replica){0};
    snprintf(replica->name, sizeof(replica->name), "r%03u", ++w->born);
    struct kube_config config = {.server = server, .token = replica->name};
    replica->kube =
        kube_new(&w->fake.loop, w->fake.http, &config,
                 &(struct kube_options){.writes_per_second = 2000, .write_burst = 20}, &err);
    replica->shards = shards_start(&w->fake.loop, replica->kube,
                                   &(struct shards_spec){.namespace_ = "n",
                                                         .name = "l",
                                                         .identity = replica->name,
                                                         .count = SHARDS,
                                                         .duration_ms = DURATION_MS,
                                                         .renew_deadline_ms = DEADLINE_MS,
                                                         .retry_ms = RETRY_MS,
                                                         .settle_ms = SETTLE_MS,
                                                         .on_taken = on_taken,
                                                         .on_leaving = on_leaving,
                                                         .on_lost = on_lost,
                                                         .arg = replica});
}

static bool passed(int64_t until_ms)
{
    return clock_mono_ms() >= until_ms;
}

static void run_for(struct scene *w, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    fake_run_until(&w->fake, passed(until_ms));
}

static void end_replica(struct scene *w, struct replica *replica, bool killed)
{
    replica->cut |= killed;
    replica->over = true;
    shards_free(replica->shards);
    run_for(w, SHARDS_END_MS + 50);
    kube_free(replica->kube);
    *replica = (struct replica){0};
}

static void write_all(struct replica *replica)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        cleanup_free char *path = xasprintf("/shard/%u", i);
        if (replica->has[i] && kube_writes_queued(replica->kube) < 40)
            kube_send(replica->kube,
                      &(struct kube_request){.method = "PUT", .path = path, .timeout_ms = 300});
    }
}

static struct fake_conn *find_conn(struct scene *w, uint64_t number)
{
    struct fake_conn *conn = w->fake.conns;
    while (conn && conn->number != number)
        conn = conn->next;
    return conn;
}

/* A late write is carried out late. */
static void answer_late(struct scene *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->late_count; i++) {
        const struct late late = w->late[i];
        struct fake_conn *conn = find_conn(w, late.conn);
        if (!passed(late.due_ms))
            w->late[kept++] = late;
        else if (conn && !late.replica->cut) {
            judge(w, late.replica, late.shard);
            fake_reply(conn, 200, "", "{}");
        }
    }
    w->late_count = kept;
}

static void on_tick(uv_timer_t *timer)
{
    struct scene *w = timer->data;
    answer_late(w);
    for (struct replica *r = w->replicas; r < w->replicas + REPLICAS; r++) {
        if (r->healed_ms && passed(r->healed_ms)) {
            r->healed_ms = 0;
            r->cut = false;
        }
        if (r->shards && !r->over)
            write_all(r);
    }
}

static struct scene *scene_new(void)
{
    struct scene *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR + 1, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    w->random = 1;
    fake_start(&w->fake, NULL);
    uv_timer_init(&w->fake.loop, &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, on_tick, 5, 5);
    return w;
}

static void scene_free(struct scene *w)
{
    for (int i = 0; i < REPLICAS; i++)
        if (w->replicas[i].shards)
            end_replica(w, &w->replicas[i], false);
    uv_close((uv_handle_t *)&w->timer, NULL);
    fake_stop(&w->fake);
    for (size_t i = 0; i < w->record_count; i++)
        json_decref(w->records[i].object);
    free(w);
}

static unsigned held(const struct replica *r)
{
    return r->shards && !r->over ? shards_held(r->shards) : 0;
}

static bool is_writer(const struct scene *w, const char *name, int shard)
{
    for (int i = 0; i < REPLICAS; i++)
        if (strcmp(w->replicas[i].name, name) == 0)
            return w->replicas[i].has[shard];
    return false;
}

/* All are held, by each its part, and so much is written of each. */
static bool is_shared(const struct scene *w, int writes)
{
    unsigned sum = 0, running = 0;
    for (int i = 0; i < REPLICAS; i++)
        running += w->replicas[i].shards && !w->replicas[i].over;
    for (int i = 0; i < REPLICAS; i++) {
        unsigned n = held(&w->replicas[i]);
        sum += n;
        if (n > (SHARDS + running - 1) / running ||
            (w->replicas[i].shards && !w->replicas[i].over && n < SHARDS / running))
            return false;
    }
    for (int i = 0; i < SHARDS; i++)
        if (w->writes[i] < writes || !is_writer(w, w->last[i], i))
            return false;
    return sum == SHARDS;
}

static void await_writes(struct scene *w)
{
    memset(w->writes, 0, sizeof(w->writes));
    fake_run_until(&w->fake, is_shared(w, 3));
    assert_int_equal(w->wrong, 0);
}

/* As Kubernetes starts anew what has ended. */
static void restart_lost(struct scene *w)
{
    for (struct replica *r = w->replicas; r < w->replicas + REPLICAS; r++) {
        if (!r->over)
            continue;
        end_replica(w, r, true);
        start_replica(w, r);
    }
}

/* --- contracts -------------------------------------------------------------------------------- */
static void those_who_join_get_their_part_and_give_it_back(void **state)
{
    (void)state;
    struct scene *w = scene_new();
    for (int i = 0; i < REPLICAS; i++) {
        int handovers = w->handovers;
        start_replica(w, &w->replicas[i]);
        await_writes(w);
        assert_in_range(held(&w->replicas[i]), SHARDS / REPLICAS, SHARDS);
        /* Shards move once, as many as are needed, and each is written again. */
        assert_int_equal(w->handovers - handovers, i ? SHARDS / (i + 1) : 0);
    }
    unsigned part = held(&w->replicas[0]);
    int waived = w->waived;
    end_replica(w, &w->replicas[0], false);
    assert_true(w->waived >= waived + (int)part); /* and its place as a member */
    await_writes(w);
    scene_free(w);
}

/* What was asked for is answered before another may have it. */
static void a_slow_write_is_waited_for(void **state)
{
    (void)state;
    struct scene *w = scene_new();
    start_replica(w, &w->replicas[0]);
    await_writes(w);
    w->replicas[0].slow = true;
    run_for(w, 2 * LATE_MS);
    start_replica(w, &w->replicas[1]);
    await_writes(w);
    assert_int_equal(held(&w->replicas[1]), SHARDS / 2);
    assert_int_equal(w->handovers, SHARDS / 2);
    run_for(w, 2 * LATE_MS); /* what might have come too late has come */
    assert_int_equal(w->wrong, 0);
    scene_free(w);
}

static void keep_mode(struct scene *w, struct record *record, const char *holder)
{
    cleanup_free char *body =
        xasprintf("{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"%s\","
                  "\"leaseDurationSeconds\":2,\"renewTime\":\"%d\"}}",
                  holder, w->version);
    put_record(w, record, body);
}

static void nothing_is_written_beside_another_number_of_shards(void **state)
{
    (void)state;
    static const char *const others[] = {"host_12345678", "4 shards"};
    for (size_t k = 0; k < ARRAY_LEN(others); k++) {
        struct scene *w = scene_new();
        struct record *record = &w->records[w->record_count++];
        snprintf(record->name, sizeof(record->name), "l");
        keep_mode(w, record, others[k]);
        start_replica(w, &w->replicas[0]);
        for (int i = 0; i < 25; i++) {
            run_for(w, 100);
            assert_int_equal(held(&w->replicas[0]), 0);
            keep_mode(w, record, others[k]);
        }
        await_writes(w); /* it has run out */
        assert_int_equal(held(&w->replicas[0]), SHARDS);
        keep_mode(w, record, others[k]); /* taken by force */
        fake_run_until(&w->fake, w->replicas[0].over);
        scene_free(w);
    }
}

static unsigned draw(struct scene *w, unsigned below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->random >> 33) % below;
}

/* One of them is killed, ended, cut off for a while, or slow. */
static void trouble(struct scene *w)
{
    struct replica *r = &w->replicas[draw(w, REPLICAS)];
    unsigned what = draw(w, 5);
    if (r->over || !r->shards || what < 2) {
        if (r->shards)
            end_replica(w, r, r->over || what == 0);
        start_replica(w, r);
    } else if (what == 2) {
        r->slow = !r->slow;
    } else if (!r->cut) {
        r->cut = true;
        r->healed_ms = clock_mono_ms() + 100 + draw(w, 2400);
    }
    run_for(w, draw(w, 1000));
}

static void whatever_happens_each_write_is_by_the_holder(void **state)
{
    (void)state;
    struct scene *w = scene_new();
    for (int i = 0; i < REPLICAS; i++)
        start_replica(w, &w->replicas[i]);
    await_writes(w);
    for (int i = 0; i < 16; i++)
        trouble(w);
    memset(w->writes, 0, sizeof(w->writes));
    for (int i = 0; i < 1000 && !is_shared(w, 3); i++) {
        restart_lost(w);
        run_for(w, 50);
    }
    assert_true(is_shared(w, 3));
    assert_int_equal(w->wrong, 0);
    assert_true(w->handovers >= 10);
    scene_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_namespace_stays_in_its_shard),
        cmocka_unit_test(the_hash_never_changes),
        cmocka_unit_test(a_plan_is_balanced_and_moves_the_least),
        cmocka_unit_test(a_plan_is_the_same_for_all_and_stays),
        cmocka_unit_test(more_members_than_shards_have_one_or_none),
        cmocka_unit_test(those_who_join_get_their_part_and_give_it_back),
        cmocka_unit_test(a_slow_write_is_waited_for),
        cmocka_unit_test(nothing_is_written_beside_another_number_of_shards),
        cmocka_unit_test(whatever_happens_each_write_is_by_the_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
