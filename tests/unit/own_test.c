/* Revisions of our class: what is planned for what is seen, and what is written for a plan. */
#include "actuate/actuate.h"
#include "kube_fake.h"

#define NOW    1000000000000
#define SEC    1000
#define LONG   (1000 * SEC)
#define NONE   (-1)
#define BOUND  .min_scale = NONE, .max_scale = NONE, .initial_scale = NONE, .activation_scale = NONE
#define TIMES  .window_ms = NONE, .retention_ms = NONE, .deadline_ms = NONE
#define AUTHOR BOUND, TIMES
/* What was seen since so many seconds. */
#define ACTIVE(s)   .active = KUBE_TRUE, .active_since_ms = NOW - (s)*SEC, .initialized = true
#define INACTIVE(s) .active = KUBE_FALSE, .active_since_ms = NOW - (s)*SEC, .initialized = true
#define WAKING(s)   .active = KUBE_UNKNOWN, .active_since_ms = NOW - (s)*SEC, .initialized = true
#define BORN(s)     .active = KUBE_UNKNOWN, .active_since_ms = NOW - (s)*SEC
#define SERVES      .sks = {.exists = true, .serves = true, .ready = true, .service = "f"}
#define PROXIES                                                                                    \
    .sks = {.exists = true, .service = "f", .metrics_service = "f-private"} /* not yet settled */
#define PROXIED(s)                                                                                 \
    .sks = {.exists = true, .proxied = true, .proxied_since_ms = NOW - (s)*SEC, .service = "f"}
#define NO_SKS              .sks = {.service = "", .metrics_service = ""}
#define HAS(wanted, ready_) .replicas = (wanted), .ready = (ready_)

#define BUSY(n)                                                                                    \
    {                                                                                              \
        .replicas = (n), .most = 10, .quiet_ms = 0, .deaf_ms = NONE, .now_ms = NOW                 \
    }
#define QUIET(s)                                                                                   \
    {                                                                                              \
        .replicas = 1, .most = 10, .quiet_ms = (s)*SEC, .deaf_ms = 0, .now_ms = NOW                \
    }
#define CALLED                                                                                     \
    {                                                                                              \
        .replicas = 1, .most = 10, .quiet_ms = 0, .requests = true, .now_ms = NOW                  \
    }
/* A controller that has just started, and an MPA that was deleted. */
#define ANEW                                                                                       \
    {                                                                                              \
        .replicas = NONE, .most = 10, .quiet_ms = NONE, .deaf_ms = 0, .now_ms = NOW                \
    }
#define KEPT                                                                                       \
    {                                                                                              \
        .kept = true, .replicas = NONE, .quiet_ms = NONE, .deaf_ms = 0, .now_ms = NOW              \
    }
#define SPARE(s)                                                                                   \
    {                                                                                              \
        .spare = true, .replicas = NONE, .most = 10, .quiet_ms = (s)*SEC, .deaf_ms = 0,            \
        .now_ms = NOW                                                                              \
    }
#define DEAF(s)                                                                                    \
    {                                                                                              \
        .replicas = 1, .most = 10, .quiet_ms = LONG, .deaf_ms = (s)*SEC, .now_ms = NOW             \
    }

enum mode { PROXY, SERVE };
enum start { NOT_YET, STARTED };

struct expected { /* replicas -1: left */
    enum mode mode;
    int replicas, desired;
    enum kube_truth active;
    enum start started;
};

static const struct {
    const char *what;
    struct kube_owned seen;
    struct actuate_need need;
    struct expected plan;
} cases[] = {
    /* --- born, until it was ready once */
    {"born",
     {AUTHOR, NO_SKS, HAS(1, 0), .desired = NONE},
     ANEW,
     {PROXY, NONE, 1, KUBE_UNKNOWN, NOT_YET}},
    {"born without a Deployment",
     {AUTHOR, NO_SKS, HAS(NONE, 0), .desired = NONE},
     ANEW,
     {PROXY, NONE, 1, KUBE_UNKNOWN, NOT_YET}},
    {"ready before its Service is known",
     {AUTHOR, NO_SKS, HAS(1, 1), .desired = 1},
     ANEW,
     {SERVE, NONE, 1, KUBE_TRUE, NOT_YET}},
    {"ready",
     {AUTHOR, PROXIES, HAS(1, 1), BORN(3), .desired = 1},
     ANEW,
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
    {"has initial-scale whatever is decided",
     {TIMES, .min_scale = NONE, .max_scale = NONE, .initial_scale = 3, PROXIES, HAS(3, 2), BORN(3)},
     BUSY(1),
     {SERVE, NONE, 3, KUBE_UNKNOWN, NOT_YET}},
    {"has reached initial-scale",
     {TIMES, .min_scale = NONE, .max_scale = NONE, .initial_scale = 3, SERVES, HAS(3, 3), BORN(3)},
     BUSY(1),
     {SERVE, NONE, 3, KUBE_TRUE, STARTED}},
    {"min-scale is above initial-scale",
     {TIMES, .min_scale = 2, .max_scale = NONE, .initial_scale = NONE, PROXIES, HAS(1, 1), BORN(3)},
     ANEW,
     {SERVE, 2, 2, KUBE_UNKNOWN, NOT_YET}},
    {"initial-scale 0 sleeps from birth",
     {TIMES, .min_scale = NONE, .max_scale = NONE, .initial_scale = 0, PROXIES, HAS(0, 0), BORN(0)},
     ANEW,
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"crashes at first",
     {AUTHOR, PROXIED(60), HAS(1, 0), BORN(60), .unreachable = true},
     ANEW,
     {PROXY, NONE, 1, KUBE_UNKNOWN, NOT_YET}},
    {"never became ready",
     {AUTHOR, PROXIED(631), HAS(1, 0), BORN(631), .desired = 1},
     ANEW,
     {PROXY, NONE, 0, KUBE_FALSE, NOT_YET}},
    {"was given up",
     {AUTHOR, PROXIED(640), HAS(1, 0), .active = KUBE_FALSE, .active_since_ms = NOW - 9 * SEC},
     KEPT,
     {PROXY, 0, 0, KUBE_FALSE, NOT_YET}},

    /* --- busy */
    {"more are needed",
     {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
     BUSY(3),
     {SERVE, 3, 3, KUBE_TRUE, STARTED}},
    {"fewer are needed",
     {AUTHOR, SERVES, HAS(3, 3), ACTIVE(100), .desired = 3},
     BUSY(2),
     {SERVE, 2, 2, KUBE_TRUE, STARTED}},
    {"has what is needed",
     {AUTHOR, SERVES, HAS(2, 2), ACTIVE(100), .desired = 2},
     BUSY(2),
     {SERVE, NONE, 2, KUBE_TRUE, STARTED}},
    {"somebody else has scaled it",
     {AUTHOR, SERVES, HAS(7, 2), ACTIVE(100), .desired = 2},
     ANEW,
     {SERVE, 2, 2, KUBE_TRUE, STARTED}},
    {"somebody else has taken its pods",
     {AUTHOR, SERVES, HAS(0, 0), ACTIVE(100), .desired = 2},
     BUSY(2),
     {SERVE, 2, 2, KUBE_UNKNOWN, STARTED}},
    {"max-scale of the author",
     {TIMES, .min_scale = NONE, .max_scale = 2, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
     BUSY(3),
     {SERVE, 2, 2, KUBE_TRUE, STARTED}},
    {"maxReplicas of the MPA",
     {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
     BUSY(30),
     {SERVE, 10, 10, KUBE_TRUE, STARTED}},
    {"min-scale of the author",
     {TIMES, .min_scale = 2, .max_scale = NONE, SERVES, HAS(2, 2), ACTIVE(100), .desired = 2},
     BUSY(1),
     {SERVE, NONE, 2, KUBE_TRUE, STARTED}},
    {"activation-scale is for all that is not zero",
     {TIMES, .min_scale = NONE, .max_scale = NONE, .activation_scale = 2, SERVES, HAS(1, 1),
      ACTIVE(100), .desired = 1},
     BUSY(1),
     {SERVE, 2, 2, KUBE_TRUE, STARTED}},
    {"its pods have crashed",
     {AUTHOR, SERVES, HAS(2, 0), ACTIVE(100), .desired = 2},
     BUSY(2),
     {SERVE, NONE, 2, KUBE_UNKNOWN, STARTED}},

    /* --- quiet, and asleep step by step */
    {"quiet, but not for a window",
     {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
     QUIET(59),
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
    {"quiet for a window",
     {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
     QUIET(60),
     {PROXY, NONE, 1, KUBE_TRUE, STARTED}},
    {"quiet for a window of its own",
     {BOUND, .window_ms = 6 * SEC, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
     QUIET(6),
     {PROXY, NONE, 1, KUBE_TRUE, STARTED}},
    {"quiet, but active for a moment only",
     {AUTHOR, SERVES, HAS(1, 1), ACTIVE(59), .desired = 1},
     QUIET(600),
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
    {"quiet, but its author wants one",
     {TIMES, .min_scale = 1, .max_scale = NONE, SERVES, HAS(3, 3), ACTIVE(100), .desired = 3},
     QUIET(600),
     {SERVE, 1, 1, KUBE_TRUE, STARTED}},
    {"quiet, but nobody would hear it",
     {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
     DEAF(5),
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
    {"not yet behind the activator",
     {AUTHOR, PROXIES, HAS(1, 1), ACTIVE(100), .desired = 1},
     QUIET(61),
     {PROXY, NONE, 1, KUBE_TRUE, STARTED}},
    {"behind the activator",
     {AUTHOR, PROXIED(0), HAS(1, 1), ACTIVE(100), .desired = 1},
     QUIET(62),
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"in its grace",
     {AUTHOR, PROXIED(29), HAS(1, 1), INACTIVE(29), .desired = 0},
     QUIET(90),
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"its grace is over",
     {AUTHOR, PROXIED(30), HAS(1, 1), INACTIVE(29), .desired = 0},
     QUIET(91),
     {PROXY, 0, 0, KUBE_FALSE, STARTED}},
    {"its last pod is kept longer",
     {BOUND, .window_ms = NONE, .retention_ms = 60 * SEC, PROXIED(40), HAS(1, 1), INACTIVE(40),
      .desired = 0},
     QUIET(100),
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"a request in its grace",
     {AUTHOR, PROXIED(20), HAS(1, 1), INACTIVE(20), .desired = 0},
     CALLED,
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
    {"figures tell of a request in its grace",
     {AUTHOR, PROXIED(20), HAS(1, 1), INACTIVE(20), .desired = 0},
     BUSY(1),
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
    {"asleep",
     {AUTHOR, PROXIED(LONG / SEC), HAS(0, 0), INACTIVE(900), .desired = 0},
     QUIET(900),
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"asleep, and its MPA thinks of requests",
     {AUTHOR, PROXIED(900), HAS(0, 0), INACTIVE(900), .desired = 0},
     BUSY(2),
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"asleep, and somebody else gives it pods",
     {AUTHOR, PROXIED(900), HAS(2, 0), INACTIVE(900), .desired = 0},
     QUIET(900),
     {PROXY, 0, 0, KUBE_FALSE, STARTED}},
    {"asleep, and the activators are silent for a moment",
     {AUTHOR, PROXIED(900), HAS(0, 0), INACTIVE(900), .desired = 0},
     DEAF(14),
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"asleep, and nobody would hear it",
     {AUTHOR, PROXIED(900), HAS(0, 0), INACTIVE(900), .desired = 0},
     DEAF(15),
     {PROXY, 1, 1, KUBE_UNKNOWN, STARTED}},

    /* --- woken */
    {"called",
     {AUTHOR, PROXIED(900), HAS(0, 0), INACTIVE(900), .desired = 0},
     CALLED,
     {PROXY, 1, 1, KUBE_UNKNOWN, STARTED}},
    {"called, with an activation-scale",
     {TIMES, .min_scale = NONE, .max_scale = NONE, .activation_scale = 3, PROXIED(900), HAS(0, 0),
      INACTIVE(900), .desired = 0},
     CALLED,
     {PROXY, 3, 3, KUBE_UNKNOWN, STARTED}},
    {"waking",
     {AUTHOR, PROXIED(900), HAS(1, 0), WAKING(2), .desired = 1},
     QUIET(900),
     {PROXY, NONE, 1, KUBE_UNKNOWN, STARTED}},
    {"awake",
     {AUTHOR, PROXIED(900), HAS(1, 1), WAKING(2), .desired = 1},
     QUIET(900),
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},

    /* --- without a share of the traffic */
    {"spare: not yet quiet",
     {AUTHOR, SERVES, HAS(3, 3), ACTIVE(100), .desired = 3},
     SPARE(1),
     {PROXY, NONE, 3, KUBE_TRUE, STARTED}},
    {"spare: born",
     {AUTHOR, NO_SKS, HAS(1, 1), BORN(3), .desired = 1},
     SPARE(1),
     {PROXY, NONE, 1, KUBE_TRUE, NOT_YET}},
    {"spare: quiet",
     {AUTHOR, PROXIED(90), HAS(1, 1), ACTIVE(100), .desired = 1},
     SPARE(60),
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},

    /* --- a route leads there no more */
    {"unreachable",
     {AUTHOR, SERVES, HAS(2, 2), ACTIVE(100), .desired = 2, .unreachable = true},
     KEPT,
     {PROXY, NONE, 2, KUBE_TRUE, STARTED}},
    {"unreachable, its grace is over",
     {TIMES, .min_scale = 2, .max_scale = NONE, PROXIED(31), HAS(2, 2), INACTIVE(30), .desired = 0,
      .unreachable = true},
     KEPT,
     {PROXY, 0, 0, KUBE_FALSE, STARTED}},

    /* --- a controller that starts anew goes on */
    {"anew: active",
     {AUTHOR, SERVES, HAS(3, 3), ACTIVE(100), .desired = 3},
     ANEW,
     {SERVE, NONE, 3, KUBE_TRUE, STARTED}},
    {"anew: not yet behind the activator",
     {AUTHOR, PROXIES, HAS(1, 1), ACTIVE(100), .desired = 1},
     ANEW,
     {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
    {"anew: in its grace",
     {AUTHOR, PROXIED(9), HAS(1, 1), INACTIVE(9), .desired = 0},
     ANEW,
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"anew: its grace is over",
     {AUTHOR, PROXIED(90), HAS(1, 1), INACTIVE(90), .desired = 0},
     ANEW,
     {PROXY, 0, 0, KUBE_FALSE, STARTED}},
    {"anew: asleep",
     {AUTHOR, PROXIED(90), HAS(0, 0), INACTIVE(90), .desired = 0},
     ANEW,
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
    {"anew: waking",
     {AUTHOR, PROXIED(90), HAS(1, 0), WAKING(1), .desired = 1},
     ANEW,
     {PROXY, NONE, 1, KUBE_UNKNOWN, STARTED}},

    /* --- its MPA is gone */
    {"kept: active",
     {AUTHOR, SERVES, HAS(3, 3), ACTIVE(100), .desired = 3},
     KEPT,
     {SERVE, NONE, 3, KUBE_TRUE, STARTED}},
    {"kept: in its grace",
     {AUTHOR, PROXIED(90), HAS(2, 2), INACTIVE(90), .desired = 0},
     KEPT,
     {SERVE, NONE, 2, KUBE_TRUE, STARTED}},
    {"kept: asleep",
     {AUTHOR, PROXIED(90), HAS(0, 0), INACTIVE(90), .desired = 0},
     KEPT,
     {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
};

static void check(const char *what, const struct kube_owned *seen, const struct actuate_need *need,
                  const struct expected *expected)
{
    struct actuate_plan p;
    actuate_plan(seen, need, &p);
    bool as_said = p.serve == (expected->mode == SERVE) && p.replicas == expected->replicas &&
                   p.desired == expected->desired && p.active == expected->active &&
                   p.initialized == (expected->started == STARTED);
    if (!as_said)
        fail_msg("%s: serve %d, replicas %d, desired %d, active %d, initialized %d", what, p.serve,
                 p.replicas, p.desired, (int)p.active, p.initialized);
}

static void every_state_has_its_plan(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(cases[i].what, &cases[i].seen, &cases[i].need, &cases[i].plan);
}

/* --- the cluster's defaults ------------------------------------------------------------------- */
static struct actuate_defaults defaults_by(const char *data)
{
    struct actuate_defaults d;
    cleanup_free char *text = xasprintf("{'data':{%s}}", data);
    cleanup_free char *quoted = fake_quoted(text);
    cleanup_json json_t *config = json_loads(quoted, 0, NULL);
    assert_non_null(config);
    actuate_defaults_read(config, &d);
    return d;
}

/* As its sources have it: knative.dev/serving, pkg/autoscaler/config. */
static void without_a_word_of_the_cluster_knative_has_its_own_defaults(void **state)
{
    struct actuate_defaults none, empty = defaults_by("'_example':'stable-window: 5s'");
    (void)state;
    actuate_defaults_read(NULL, &none);
    assert_int_equal(none.window_ms, 60 * SEC);
    assert_int_equal(none.grace_ms, 30 * SEC);
    assert_int_equal(none.retention_ms, 0);
    assert_int_equal(none.initial_scale, 1);
    assert_int_equal(none.min_scale, 0);
    assert_int_equal(none.max_scale, 0);
    assert_false(none.never_zero);
    assert_true(none.zero_at_first); /* its webhook has let the Revision pass */
    assert_int_equal(empty.window_ms, 60 * SEC);
    assert_false(empty.zero_at_first);
}

static void what_the_cluster_says_is_read(void **state)
{
    struct actuate_defaults d = defaults_by(
        "'enable-scale-to-zero':'false','scale-to-zero-grace-period':'1m30s','stable-window':'6s',"
        "'scale-to-zero-pod-retention-period':'5m','initial-scale':'0','min-scale':'2',"
        "'allow-zero-initial-scale':'true','max-scale':'7','activation-scale':'3'");
    (void)state;
    assert_true(d.never_zero && d.zero_at_first);
    assert_int_equal(d.grace_ms, 90 * SEC);
    assert_int_equal(d.window_ms, 6 * SEC);
    assert_int_equal(d.retention_ms, 300 * SEC);
    assert_int_equal(d.initial_scale, 0);
    assert_int_equal(d.min_scale, 2);
    assert_int_equal(d.max_scale, 7);
    assert_int_equal(d.activation_scale, 3);
    d = defaults_by("'initial-scale':'0','min-scale':'many','stable-window':'-5s','max-scale':''");
    assert_int_equal(d.initial_scale, 1);
    assert_int_equal(d.min_scale, 0);
    assert_int_equal(d.window_ms, 60 * SEC);
    assert_int_equal(d.max_scale, 0);
}

static void the_cluster_decides_what_an_author_leaves_open(void **state)
{
    static const struct {
        const char *name, *data;
        struct kube_owned seen;
        struct actuate_need need;
        struct expected expected;
    } rows[] = {
        {"a shorter window",
         "'stable-window':'10s'",
         {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
         QUIET(10),
         {PROXY, NONE, 1, KUBE_TRUE, STARTED}},
        {"a window of its own",
         "'stable-window':'10s'",
         {BOUND, .window_ms = 60 * SEC, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
         QUIET(10),
         {SERVE, NONE, 1, KUBE_TRUE, STARTED}},
        {"a longer grace",
         "'scale-to-zero-grace-period':'60s'",
         {AUTHOR, PROXIED(59), HAS(1, 1), INACTIVE(59), .desired = 0},
         QUIET(120),
         {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
        {"a longer grace is over",
         "'scale-to-zero-grace-period':'60s'",
         {AUTHOR, PROXIED(60), HAS(1, 1), INACTIVE(60), .desired = 0},
         QUIET(120),
         {PROXY, 0, 0, KUBE_FALSE, STARTED}},
        {"the last pod is kept",
         "'scale-to-zero-pod-retention-period':'5m'",
         {AUTHOR, PROXIED(60), HAS(1, 1), INACTIVE(60), .desired = 0},
         QUIET(120),
         {PROXY, NONE, 0, KUBE_FALSE, STARTED}},
        {"a min-scale",
         "'min-scale':'2'",
         {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
         QUIET(600),
         {SERVE, 2, 2, KUBE_UNKNOWN, STARTED}},
        {"a min-scale, and its author's",
         "'min-scale':'2'",
         {TIMES, .min_scale = 0, .max_scale = NONE, .initial_scale = NONE, SERVES, HAS(1, 1),
          ACTIVE(100), .desired = 1},
         QUIET(600),
         {PROXY, NONE, 1, KUBE_TRUE, STARTED}},
        {"a max-scale",
         "'max-scale':'2'",
         {AUTHOR, SERVES, HAS(1, 1), ACTIVE(100), .desired = 1},
         BUSY(5),
         {SERVE, 2, 2, KUBE_TRUE, STARTED}},
        {"a max-scale, and none of its author",
         "'max-scale':'2'",
         {TIMES, .min_scale = NONE, .max_scale = 0, .initial_scale = NONE, SERVES, HAS(1, 1),
          ACTIVE(100), .desired = 1},
         BUSY(5),
         {SERVE, 5, 5, KUBE_TRUE, STARTED}},
        {"an initial-scale",
         "'initial-scale':'3'",
         {AUTHOR, NO_SKS, HAS(1, 0), .desired = NONE},
         ANEW,
         {PROXY, 3, 3, KUBE_UNKNOWN, NOT_YET}},
        {"an initial-scale of 0 that is not allowed",
         "'initial-scale':'2'",
         {TIMES, .min_scale = NONE, .max_scale = NONE, .initial_scale = 0, NO_SKS, HAS(1, 0),
          .desired = NONE},
         ANEW,
         {PROXY, 2, 2, KUBE_UNKNOWN, NOT_YET}},
        {"nothing goes to zero",
         "'enable-scale-to-zero':'false'",
         {AUTHOR, SERVES, HAS(3, 3), ACTIVE(100), .desired = 3},
         QUIET(600),
         {SERVE, 1, 1, KUBE_TRUE, STARTED}},
        {"nothing goes to zero, and what sleeps wakes",
         "'enable-scale-to-zero':'false'",
         {AUTHOR, PROXIED(900), HAS(0, 0), INACTIVE(900), .desired = 0},
         QUIET(900),
         {PROXY, 1, 1, KUBE_UNKNOWN, STARTED}},
        {"nothing goes to zero, not even where no route leads",
         "'enable-scale-to-zero':'false'",
         {TIMES, .min_scale = 2, .max_scale = NONE, .initial_scale = NONE, SERVES, HAS(2, 2),
          ACTIVE(100), .desired = 2, .unreachable = true},
         QUIET(600),
         {SERVE, 1, 1, KUBE_TRUE, STARTED}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct actuate_defaults d = defaults_by(rows[i].data);
        struct actuate_need need = rows[i].need;
        need.defaults = &d;
        check(rows[i].name, &rows[i].seen, &need, &rows[i].expected);
    }
}

/* --- status ----------------------------------------------------------------------------------- */
static const char *condition(const json_t *status, const char *type, const char *key)
{
    const json_t *item;
    size_t i;
    json_array_foreach (json_object_get(status, "conditions"), i, item)
        if (strcmp(json_str(json_object_get(item, "type")), type) == 0)
            return json_str(json_object_get(item, key));
    return "absent";
}

static void status_is_what_makes_a_revision_ready(void **state)
{
    struct kube_owned seen = {AUTHOR, HAS(2, 1), ACTIVE(9), .generation = 4};
    struct actuate_plan plan = {.desired = 2, .active = KUBE_TRUE, .reason = "", .message = ""};
    (void)state;
    seen.sks.service = "f";
    seen.sks.metrics_service = "f-private";
    plan.initialized = true;
    cleanup_json json_t *waits = actuate_plan_status(&seen, &plan, NOW);
    assert_string_equal(condition(waits, "Ready", "status"), "Unknown");
    assert_string_equal(condition(waits, "SKSReady", "status"), "Unknown");
    seen.sks.ready = true;
    cleanup_json json_t *ready = actuate_plan_status(&seen, &plan, NOW);
    assert_string_equal(condition(ready, "Active", "status"), "True");
    assert_string_equal(condition(ready, "Ready", "status"), "True");
    assert_string_equal(condition(ready, "SKSReady", "status"), "True");
    assert_string_equal(condition(ready, "ScaleTargetInitialized", "status"), "True");
    assert_int_equal(json_integer_value(json_object_get(ready, "observedGeneration")), 4);
    assert_int_equal(json_integer_value(json_object_get(ready, "desiredScale")), 2);
    assert_int_equal(json_integer_value(json_object_get(ready, "actualScale")), 1);
    assert_string_equal(json_str(json_object_get(ready, "serviceName")), "f");
    assert_string_equal(json_str(json_object_get(ready, "metricsServiceName")), "f-private");
}

static void a_time_is_that_of_the_last_change(void **state)
{
    struct kube_owned seen = {AUTHOR, HAS(1, 1), ACTIVE(9)};
    struct actuate_plan plan = {.active = KUBE_TRUE, .reason = "", .message = ""};
    (void)state;
    seen.sks.service = seen.sks.metrics_service = "f";
    cleanup_json json_t *first = actuate_plan_status(&seen, &plan, NOW);
    seen.status = first;
    cleanup_json json_t *same = actuate_plan_status(&seen, &plan, NOW + 60 * SEC);
    assert_true(json_equal(first, same));
    plan.active = KUBE_FALSE;
    plan.reason = "NoTraffic";
    cleanup_json json_t *other = actuate_plan_status(&seen, &plan, NOW + 60 * SEC);
    assert_string_equal(condition(other, "Active", "lastTransitionTime"), "2001-09-09T01:47:40Z");
    assert_string_equal(condition(other, "Active", "reason"), "NoTraffic");
    assert_string_equal(condition(other, "Ready", "status"), "False");
    assert_string_equal(condition(other, "SKSReady", "lastTransitionTime"), "2001-09-09T01:46:40Z");
}

/* --- writes ----------------------------------------------------------------------------------- */
struct world {
    struct fake fake;
    char written[8][1024];
    int writes, answers, status;
    struct error refusal;
};

static void on_request(void *arg, const struct fake_request *r)
{
    struct world *w = arg;
    snprintf(w->written[w->writes++ % 8], sizeof(w->written[0]), "%s %s %s", r->method, r->target,
             r->body);
    fake_reply(r->conn, w->status, "", "{\"message\":\"no\"}");
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    log_setup(LOG_ERROR, LOG_LOGFMT);
    w->fake.on_request = on_request;
    w->fake.arg = w;
    w->status = 200;
    fake_start(&w->fake, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    fake_stop(&w->fake);
    free(w);
    return 0;
}

static void on_done(void *arg, const struct error *err)
{
    struct world *w = arg;
    w->answers++;
    w->refusal = err ? *err : (struct error){0};
}

static bool was_written(const struct world *w, const char *where, const char *what)
{
    cleanup_free char *body = xstrdup(what);
    for (char *p = body; *p; p++)
        if (*p == '\'')
            *p = '"';
    for (int i = 0; i < w->writes && i < 8; i++)
        if (strncmp(w->written[i], where, strlen(where)) == 0 && strstr(w->written[i], body))
            return true;
    return false;
}

#define SKS_PATH "/apis/networking.internal.knative.dev/v1alpha1/namespaces/s/serverlessservices"
#define PA_PATH  "/apis/autoscaling.internal.knative.dev/v1alpha1/namespaces/s/podautoscalers"

static void what_differs_is_written_once(void **state)
{
    struct world *w = *state;
    cleanup_json json_t *target = json_pack("{s:s}", "name", "f-1-deployment");
    cleanup_json json_t *labels = json_pack("{s:s}", "a", "b");
    struct kube_owned seen = {AUTHOR,
                              HAS(0, 0),
                              INACTIVE(900),
                              .namespace_ = "s",
                              .name = "f-1",
                              .uid = "u",
                              .protocol = "http1",
                              .target = target,
                              .labels = labels,
                              .deployment = "f-1-deployment"};
    struct actuate_plan plan;
    seen.sks.service = seen.sks.metrics_service = "";
    actuate_plan(&seen, &(struct actuate_need)CALLED, &plan);
    assert_int_equal(actuate_own(w->fake.kube, &seen, &plan, NOW, on_done, w), 3);
    fake_run_until(&w->fake, w->answers == 1);
    assert_int_equal(w->refusal.code, ERROR_NONE);
    assert_true(was_written(w, "PATCH /apis/apps/v1/namespaces/s/deployments/f-1-deployment/scale",
                            "{'spec':{'replicas':1}}"));
    assert_true(was_written(w, "POST " SKS_PATH, "'labels':{'a':'b'}"));
    assert_true(was_written(w, "POST " SKS_PATH, "'uid':'u','controller':true"));
    assert_true(was_written(w, "POST " SKS_PATH,
                            "'spec':{'mode':'Proxy','numActivators':2,'protocolType':'http1',"
                            "'objectRef':{'name':'f-1-deployment'}}"));
    assert_true(was_written(w, "PATCH " PA_PATH "/f-1/status", "'desiredScale':1"));
    /* As it is then, nothing is left to write. */
    cleanup_json json_t *status = actuate_plan_status(&seen, &plan, NOW);
    seen.sks.exists = true;
    seen.status = status;
    plan.replicas = -1;
    assert_int_equal(actuate_own(w->fake.kube, &seen, &plan, NOW + LONG, on_done, w), 0);
    assert_int_equal(w->answers, 2);
    plan.serve = true;
    actuate_own(w->fake.kube, &seen, &plan, NOW, on_done, w);
    fake_run_until(&w->fake, w->answers == 3);
    assert_true(was_written(w, "PATCH " SKS_PATH "/f-1", "{'spec':{'mode':'Serve'}}"));
}

static void one_that_is_there_already_is_no_failure_and_a_foreign_one_is_left(void **state)
{
    struct world *w = *state;
    struct kube_owned seen = {AUTHOR,     HAS(1, 0),           .namespace_ = "s", .name = "f-1",
                              .uid = "u", .protocol = "http1", .deployment = "d"};
    struct actuate_plan plan;
    seen.sks.service = seen.sks.metrics_service = "";
    actuate_plan(&seen, &(struct actuate_need)ANEW, &plan);
    cleanup_json json_t *status = actuate_plan_status(&seen, &plan, NOW);
    seen.status = status;
    w->status = 409;
    assert_int_equal(actuate_own(w->fake.kube, &seen, &plan, NOW, on_done, w), 1);
    fake_run_until(&w->fake, w->answers == 1);
    assert_int_equal(w->refusal.code, ERROR_NONE);
    seen.sks.foreign = true;
    assert_int_equal(actuate_own(w->fake.kube, &seen, &plan, NOW, on_done, w), 0);
}

static void a_template_gets_our_class_and_is_as_it_was(void **state)
{
    struct world *w = *state;
    static const struct kube_resource service = {"serving.knative.dev/v1", "Service",
                                                 "/apis/serving.knative.dev/v1", "services"};
    struct kube_template t = {.resource = &service, .namespace_ = "s", .name = "f", .class = ""};
#define OF "PATCH /apis/serving.knative.dev/v1/namespaces/s/services/f"
    actuate_claim(w->fake.kube, &t, on_done, w);
    fake_run_until(&w->fake, w->answers == 1);
    assert_true(was_written(w, OF,
                            "{'metadata':{'annotations':{'autoscaling.faasrl.io/owned':'true'}},"
                            "'spec':{'template':{'metadata':{'annotations':"
                            "{'autoscaling.knative.dev/class':'mpa.faasrl.io'}}}}}"));
    t.class = "mpa.faasrl.io";
    actuate_disclaim(w->fake.kube, &t, on_done, w);
    t.alone = true;
    actuate_disclaim(w->fake.kube, &t, on_done, w);
    t.class = "somebody.example.com";
    actuate_disclaim(w->fake.kube, &t, on_done, w);
    fake_run_until(&w->fake, w->answers == 4);
#define TAKEN "{'metadata':{'annotations':{'autoscaling.faasrl.io/owned':null}},"
#define IN    "'spec':{'template':{'metadata':{'annotations':"
    assert_true(was_written(w, OF, TAKEN IN "{'autoscaling.knative.dev/class':null}}}}}"));
    assert_true(was_written(w, OF, TAKEN IN "null}}}}"));
    assert_true(was_written(w, OF, TAKEN IN "{}}}}}"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_has_its_plan),
        cmocka_unit_test(without_a_word_of_the_cluster_knative_has_its_own_defaults),
        cmocka_unit_test(what_the_cluster_says_is_read),
        cmocka_unit_test(the_cluster_decides_what_an_author_leaves_open),
        cmocka_unit_test(status_is_what_makes_a_revision_ready),
        cmocka_unit_test(a_time_is_that_of_the_last_change),
        TEST(what_differs_is_written_once),
        TEST(one_that_is_there_already_is_no_failure_and_a_foreign_one_is_left),
        TEST(a_template_gets_our_class_and_is_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
