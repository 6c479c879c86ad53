/* Any answers of the API server about a Lease, one a line. A number is a status, "+MS" lets time
 * pass, "w" and "u" want the lease and do not, all else is what is there. A first line "s" makes it
 * a shared one. We lead only while what was answered last names us and our time has not run out,
 * write only where nobody else holds it, and nothing of the record but what makes us its holder. */
#include "kube/internal.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OURS        "us"
#define DEADLINE_MS 10000
#define DURATION_MS 15000
#define MAX_PASS_MS 60000

struct kube_timer {
    void (*on_timer)(void *arg);
    void *arg;
    int64_t due_ms; /* -1: it does not run */
    bool gone;
};

struct kube_call {
    struct kube_request request;
    json_t *body;
    bool pending;
};

static struct {
    struct kube_timer timers[2];
    size_t timer_count;
    struct kube_call call;
    json_t *record; /* as the server told it last; NULL: there is none */
    int64_t changed_ms, sent_ms;
    bool leading, shared, wanted, ending;
} world;

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* --- in place of timer.c and client.c ----------------------------------------------------------
 */
struct kube_timer *kube_timer_new(uv_loop_t *loop, void (*on_timer)(void *arg), void *arg)
{
    (void)loop;
    check(world.timer_count < ARRAY_LEN(world.timers));
    struct kube_timer *t = &world.timers[world.timer_count++];
    *t = (struct kube_timer){on_timer, arg, -1, false};
    return t;
}

void kube_timer_start(struct kube_timer *timer, int64_t ms)
{
    check(!timer->gone);
    timer->due_ms = clock_mono_ms() + (ms > 0 ? ms : 0);
}

void kube_timer_stop(struct kube_timer *timer)
{
    timer->due_ms = -1;
}

void kube_timer_free(struct kube_timer *timer)
{
    timer->gone = true;
    timer->due_ms = -1;
}

double kube_random(void)
{
    return 0.5;
}

uv_loop_t *kube_loop(const struct kube *kube)
{
    (void)kube;
    return NULL;
}

void kube_member_add(struct kube *kube, struct kube_member *member)
{
    (void)kube, (void)member;
}

void kube_member_remove(struct kube_member *member)
{
    (void)member;
}

static bool is_ours(const json_t *record)
{
    return strcmp(json_str(json_path(record, "spec", "holderIdentity", NULL)), OURS) == 0;
}

static bool is_held_by_another(void)
{
    const json_t *spec = json_object_get(world.record, "spec");
    json_int_t s = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
    int64_t lasts_ms = s > 0 && s < INT32_MAX ? (int64_t)s * 1000 : DURATION_MS;
    return *json_str(json_object_get(spec, "holderIdentity")) && !is_ours(world.record) &&
           clock_mono_ms() < world.changed_ms + lasts_ms;
}

/* The same but for what makes somebody the holder, so that what others wrote stays. */
static void check_rest(const json_t *body)
{
    static const char *const ours[] = {"holderIdentity", "leaseDurationSeconds", "renewTime",
                                       "acquireTime", "leaseTransitions"};
    cleanup_json json_t *before = json_deep_copy(world.record), *after = json_deep_copy(body);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        json_object_del(json_object_get(before, "spec"), ours[i]);
        json_object_del(json_object_get(after, "spec"), ours[i]);
    }
    if (!json_is_object(json_object_get(before, "spec")))
        json_object_set_new(before, "spec", json_object());
    check(json_equal(before, after));
}

static void check_write(const struct kube_request *r)
{
    const json_t *spec = json_object_get(r->body, "spec");
    json_int_t lasts_s = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
    bool put = strcmp(r->method, "PUT") == 0;
    check(put || (strcmp(r->method, "POST") == 0 && world.record == NULL));
    if (is_ours(r->body)) {
        check(world.wanted && !is_held_by_another() && lasts_s == DURATION_MS / 1000);
    } else { /* it is given back */
        check(put && (!world.wanted || world.ending) && !world.shared && is_ours(world.record));
        check(lasts_s == 1 && *json_str(json_object_get(spec, "holderIdentity")) == '\0');
    }
    if (put)
        check_rest(r->body);
}

struct kube_call *kube_call_start(struct kube *kube, const struct kube_call_spec *spec)
{
    (void)kube;
    const struct kube_request *r = &spec->request;
    check(spec->urgent && (!world.call.pending || !r->on_done));
    if (r->body)
        check_write(r);
    if (r->on_done == NULL) /* nobody waits for it */
        return NULL;
    world.call = (struct kube_call){*r, json_deep_copy(r->body), true};
    world.sent_ms = clock_mono_ms();
    return &world.call;
}

void kube_call_cancel(struct kube_call *call)
{
    check(call == &world.call && call->pending);
    call->pending = false;
    json_decref(call->body);
}

/* --- what happens ------------------------------------------------------------------------------
 */
static void on_change(void *arg, bool leading)
{
    (void)arg;
    check(leading != world.leading);
    world.leading = leading;
}

static void check_lease(const struct kube_lease *lease)
{
    int64_t left_ms = kube_lease_left_ms(lease);
    check(left_ms >= 0 && left_ms <= DEADLINE_MS);
    if (!world.wanted)
        check(left_ms == 0);
    if (left_ms > 0)
        check(world.leading && is_ours(world.record) &&
              strcmp(kube_lease_live_holder(lease), OURS) == 0);
    if (is_held_by_another() && kube_lease_is_known(lease))
        check(strcmp(kube_lease_live_holder(lease), kube_lease_holder(lease)) == 0);
}

static void take(json_t *record)
{
    if (!world.record || !record ||
        !json_equal(json_object_get(world.record, "spec"), json_object_get(record, "spec")))
        world.changed_ms = clock_mono_ms();
    json_decref(world.record);
    world.record = record;
}

/* A body that was taken is answered as it is by "200". */
static void answer(const char *line)
{
    struct kube_response response = {.status = 200};
    cleanup_json json_t *sent = world.call.body;
    cleanup_json json_t *json = json_loads(line, JSON_DECODE_ANY, NULL);
    kube_done done = world.call.request.on_done;
    if (json_is_integer(json) && json_integer_value(json) != 200) {
        response.status = (int)(json_integer_value(json) % 1000);
        response.error.code = json_integer_value(json) == 404   ? ERROR_NOT_FOUND
                              : json_integer_value(json) == 409 ? ERROR_CONFLICT
                                                                : ERROR_UNAVAILABLE;
    } else {
        response.json = json_is_integer(json) ? sent : json;
    }
    if (response.error.code == ERROR_NOT_FOUND && !sent)
        take(NULL);
    else if (json_is_object(response.json))
        take(json_deep_copy(response.json));
    world.call.pending = false;
    world.call.body = NULL;
    done(world.call.request.arg, &response);
}

static void pass(int64_t ms)
{
    int64_t end_ms = clock_mono_ms() + ms;
    struct kube_timer *next;
    do {
        next = NULL;
        for (size_t k = 0; k < world.timer_count; k++) {
            struct kube_timer *t = &world.timers[k];
            if (t->due_ms >= 0 && t->due_ms <= end_ms && (!next || t->due_ms < next->due_ms))
                next = t;
        }
        int64_t at_ms = next ? next->due_ms : end_ms;
        clock_advance(at_ms > clock_mono_ms() ? at_ms - clock_mono_ms() : 0);
        if (next) {
            next->due_ms = -1;
            next->on_timer(next->arg);
        }
    } while (next);
}

static void step(struct kube_lease *lease, const char *line)
{
    if (*line == '+') {
        pass(strtol(line + 1, NULL, 10) % MAX_PASS_MS);
    } else if (strcmp(line, "w") == 0 || strcmp(line, "u") == 0) {
        world.wanted = *line == 'w';
        world.leading = world.leading && world.wanted;
        kube_lease_want(lease, world.wanted);
    } else if (world.call.pending) {
        answer(line);
    }
    pass(0);
    check_lease(lease);
}

/* A write under way is awaited before the lease is given back. */
static void end(struct kube_lease *lease, bool abandon)
{
    world.ending = true;
    if (abandon)
        kube_lease_abandon(lease);
    else
        kube_lease_stop(lease);
    if (world.call.pending)
        answer("200");
    check(world.timers[0].gone && world.timers[1].gone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    char *rest = text, *line;
    clock_set(1000, INT64_C(1767225600000));
    memset(&world, 0, sizeof(world));
    world.shared = text[0] == 's';
    world.wanted = true;
    log_setup(LOG_ERROR, LOG_LOGFMT);
    struct kube_lease_spec spec = {.namespace_ = "mpa",
                                   .name = "mpa",
                                   .identity = OURS,
                                   .shared = world.shared,
                                   .on_change = on_change};
    struct kube_lease *lease = kube_lease_start((struct kube *)(void *)&world, &spec);
    pass(0);
    while ((line = strsep(&rest, "\n")))
        step(lease, line);
    end(lease, size % 2);
    take(NULL);
    return 0;
}
