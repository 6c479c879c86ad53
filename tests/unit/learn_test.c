/* A policy of its own: what is recorded, what a course makes of it, and the thread that searches.
 */
#include "recommend_scene.h"

#include "base/random.h"
#include "learn/learn.h"
#include "trial/trial.h"

#define INTERVAL_S             15.0
#define assert_near(a, b, off) assert_true(fabs((a) - (b)) <= (off))

/* --- what is recorded ---------------------------------------------------------------------------
 */
/* A node that has just been started, and a Prometheus that knows of the night before. */
static void what_was_before_the_clock_began_counts(void **state)
{
    (void)state;
    struct recommend_record *r = recommend_record_new();
    struct record_slot slots[RECORD_SLOTS];
    for (int minute = -30; minute <= 5; minute++)
        recommend_record_remember(r, 60 * minute, 60, 100 + minute, 2);
    assert_int_equal(recommend_record_slots(r, slots), 36);
    assert_near(slots[0].requests, 70, 1e-6);
    assert_near(slots[35].requests, 105, 1e-6);
    recommend_record_remember(r, -60.0 * RECORD_SLOTS, 60, 9, 0); /* too old */
    for (size_t i = 0; i < 2; i++)
        recommend_record_remember(r, (double[]){1e300, -1e300}[i], 60, 9, 0);
    assert_int_equal(recommend_record_slots(r, slots), 36);
    recommend_record_free(r);
}

static void minutes_are_kept_and_bounded(void **state)
{
    (void)state;
    struct recommend_record *r = recommend_record_new();
    struct record_slot slots[RECORD_SLOTS];
    assert_int_equal(recommend_record_slots(r, slots), 0);
    for (int minute = 1; minute <= 10; minute++)
        if (minute != 4)
            recommend_record_remember(r, 60 * minute, 60, minute, 0.02 * minute);
    recommend_record_remember(r, 60, 60, 5, 0); /* another pod's */
    assert_int_equal(recommend_record_slots(r, slots), 10);
    assert_near(slots[0].requests, 6, 1e-6);
    assert_near(slots[9].cpu_s, 0.2, 1e-6);
    assert_true(slots[2].seen && !slots[3].seen);
    recommend_record_remember(r, 60 * (RECORD_SLOTS + 5), 60, 7, 0);
    assert_int_equal(recommend_record_slots(r, slots), RECORD_SLOTS);
    assert_near(slots[0].requests, 6, 1e-6); /* minute 6 is the first that is left */
    assert_near(slots[RECORD_SLOTS - 1].requests, 7, 1e-6);
    recommend_record_remember(r, 60, 60, 99, 0);  /* too old */
    recommend_record_remember(r, NAN, 60, 99, 0); /* nonsense */
    recommend_record_remember(r, 6000, 60, -1, NAN);
    assert_near(slots[0].requests, 6, 1e-6);
    recommend_record_remember(r, 1e7, 60, 1, 0); /* long after */
    assert_int_equal(recommend_record_slots(r, slots), 1);
    recommend_record_free(r);
}

/* An interval of rate requests a second that cost so much CPU each, in one pod of 500m. */
static void live(struct scene *s, double rate, double cpu_ms, double latency_ms)
{
    s->seen.now_s += INTERVAL_S;
    scene_cpu(s, 500, rate * cpu_ms);
    scene_load(s, rate, rate * latency_ms / 1000, latency_ms);
    s->seen.late_share = latency_ms > s->seen.goal_ms ? 0.1 : 0;
}

static void what_a_request_costs_is_known(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommend_record *r = recommend_record_new();
    assert_true(isnan(recommend_record_demand(r, 30).mean_s));
    struct record_interval last = {NAN, NAN, NAN};
    for (int i = 0; i < 240; i++) {
        live(s, 10, 20, 60);
        last = recommend_record_add(r, &s->seen);
    }
    struct record_demand demand = recommend_record_demand(r, RECORD_SLOTS);
    assert_near(demand.mean_s, 0.02, 0.0005);
    assert_true(demand.median_s <= demand.mean_s && demand.p99_s > demand.mean_s);
    assert_near(last.demand_s, 0.02, 1e-9);
    if (!(last.earned < -0.5 && last.earned > -2)) /* about what it needs, and nothing late */
        fail_msg("an interval earns %g", last.earned);
    for (int i = 0; i < 40; i++) {
        live(s, 10, 40, 120);
        last = recommend_record_add(r, &s->seen);
    }
    assert_near(recommend_record_demand(r, 8).mean_s, 0.04, 0.0005);
    assert_true(recommend_record_demand(r, RECORD_SLOTS).mean_s < 0.025);
    double before = last.earned;
    live(s, 10, 40, 900);
    assert_true(recommend_record_add(r, &s->seen).earned < before - 5);
    recommend_record_free(r);
    scene_free(s);
}

static void what_is_too_little_is_told(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_threshold, NULL);
    struct recommend_record *r = recommend_record_new();
    struct bootstrap_fit fit = {
        .record = r, .name = "f", .needs_s = 600, .needs_requests = 300, .demand_s = 1e6};
    struct trace trace;
    struct error err;
    assert_int_equal(bootstrap_fit(&fit, &trace, &err), -1);
    assert_non_null(strstr(err.message, "nothing is known"));
    for (int i = 0; i < 8; i++) {
        live(s, 10, 20, 60);
        recommend_record_add(r, &s->seen);
    }
    assert_int_equal(bootstrap_fit(&fit, &trace, &err), -1);
    assert_non_null(strstr(err.message, "300 in 10 are needed"));
    for (int i = 0; i < 40; i++) {
        live(s, i < 20 ? 10 : 20, 20, 60);
        recommend_record_add(r, &s->seen);
    }
    if (bootstrap_fit(&fit, &trace, &err) < 0)
        fail_msg("%s", err.message);
    const struct trace_function *f = &trace.functions[0];
    assert_string_equal(f->name, "f");
    assert_near(trace_mean_cpu_ms(f), 20, 1);
    assert_near(f->counts[3], 600, 1);
    assert_near(f->counts[f->slot_count - 2], 1200, 1);
    trace_clear(&trace);
    recommend_record_free(r);
    scene_free(s);
}

/* --- a course -----------------------------------------------------------------------------------
 */
struct course_scene {
    struct scene *s;
    struct learn_course *course;
    struct recommend_policy *general, *own;
    struct random random;
};

static void begin(struct course_scene *c, const struct learn_rules *rules)
{
    struct error err;
    c->s = scene_new(&recommend_threshold, NULL);
    c->general = recommend_policy_by(scene_neutral, NULL, NULL, &err);
    c->own = recommend_policy_by(scene_neutral, NULL, NULL, &err);
    c->course = learn_course_new(rules, c->general, c->s->seen.now_s, &err);
    c->random = random_stream(5, 0);
    assert_non_null(c->course);
}

static void end(struct course_scene *c)
{
    learn_course_free(c->course);
    recommend_policy_release(c->general);
    recommend_policy_release(c->own);
    scene_free(c->s);
}

static enum learn_news see(struct course_scene *c, bool held_back)
{
    bool by_policy = learn_course_policy(c->course) != NULL;
    return learn_course_see(c->course, &c->s->seen, (struct learn_last){by_policy, held_back});
}

/* Noise as of Poisson arrivals. The first news that is not none, or none. */
static enum learn_news pass(struct course_scene *c, int intervals, double cpu_ms, double latency_ms,
                            int *took)
{
    for (int i = 0; i < intervals; i++) {
        double rate = 10 + 0.8 * random_normal(&c->random);
        live(c->s, rate, cpu_ms * exp(0.03 * random_normal(&c->random)),
             latency_ms * exp(0.1 * random_normal(&c->random)));
        enum learn_news news = see(c, false);
        if (took)
            *took = i + 1;
        if (news != LEARN_NO_NEWS)
            return news;
    }
    return LEARN_NO_NEWS;
}

static double now(const struct course_scene *c)
{
    return c->s->seen.now_s;
}

static void thresholds_decide_until_it_has_learned(void **state)
{
    (void)state;
    struct course_scene c;
    struct trace trace;
    struct error err;
    begin(&c, &learn_rules_default);
    assert_int_equal(learn_course_stage(c.course), LEARN_BEGIN);
    assert_null(learn_course_policy(c.course));
    assert_false(learn_course_wants(c.course, now(&c))); /* its past is not known yet */
    for (int minute = 1; minute <= 16; minute++)
        recommend_record_remember(learn_course_record(c.course), 60 * minute, 60, 600, 12);
    learn_course_has_past(c.course);
    pass(&c, 3, 20, 60, NULL);
    assert_true(learn_course_wants(c.course, now(&c)));
    assert_int_equal(learn_course_fit(c.course, "f", &trace, &err), 0);
    trace_clear(&trace);
    learn_course_began(c.course);
    assert_false(learn_course_wants(c.course, now(&c)));
    pass(&c, 3, 20, 60, NULL);
    assert_null(learn_course_policy(c.course));
    learn_course_found(c.course, c.own, now(&c));
    assert_int_equal(learn_course_stage(c.course), LEARN_SERVE);
    assert_ptr_equal(learn_course_policy(c.course), c.own);
    assert_true(learn_course_has_own(c.course));
    assert_false(learn_course_wants(c.course, now(&c) + 86000));
    assert_true(learn_course_wants(c.course, now(&c) + 86401));
    learn_course_renew(c.course);
    assert_true(learn_course_wants(c.course, now(&c)));
    end(&c);
}

static void without_a_past_the_general_policy_decides(void **state)
{
    (void)state;
    struct course_scene c;
    begin(&c, &learn_rules_default);
    learn_course_has_past(c.course);
    assert_true(learn_course_wants(c.course, now(&c)));
    learn_course_failed(c.course, now(&c)); /* there is too little */
    assert_int_equal(learn_course_stage(c.course), LEARN_WATCH);
    assert_ptr_equal(learn_course_policy(c.course), c.general);
    assert_false(learn_course_wants(c.course, now(&c) + 599));
    assert_true(learn_course_wants(c.course, now(&c) + 600));
    learn_course_began(c.course);
    assert_ptr_equal(learn_course_policy(c.course), c.general);
    learn_course_found(c.course, NULL, now(&c)); /* nothing better */
    assert_int_equal(learn_course_stage(c.course), LEARN_SERVE);
    assert_ptr_equal(learn_course_policy(c.course), c.general);
    assert_false(learn_course_has_own(c.course));
    end(&c);
}

static void patience_has_an_end(void **state)
{
    (void)state;
    struct course_scene c;
    begin(&c, &learn_rules_default);
    pass(&c, 39, 20, 60, NULL);
    assert_null(learn_course_policy(c.course));
    pass(&c, 2, 20, 60, NULL);
    assert_ptr_equal(learn_course_policy(c.course), c.general);
    end(&c);
}

static void what_was_kept_serves_at_once(void **state)
{
    (void)state;
    struct course_scene c;
    begin(&c, &learn_rules_default);
    learn_course_resume(c.course, c.own);
    assert_ptr_equal(learn_course_policy(c.course), c.own);
    assert_false(learn_course_wants(c.course, now(&c)));
    end(&c);
}

/* A week of the same, then three times slower. */
static void a_slower_function_is_noticed(void **state)
{
    (void)state;
    struct course_scene c;
    int took = 0;
    begin(&c, &learn_rules_default);
    learn_course_resume(c.course, c.own);
    assert_int_equal(pass(&c, 40320, 10, 60, NULL), LEARN_NO_NEWS);
    assert_int_equal(pass(&c, 100, 30, 250, &took), LEARN_DRIFTED);
    if (took > 48)
        fail_msg("noticed after %d intervals", took);
    assert_string_equal(learn_course_why(c.course), "its requests cost more CPU than they did");
    assert_int_equal(learn_course_stage(c.course), LEARN_AGAIN);
    assert_null(learn_course_policy(c.course));
    assert_true(learn_course_wants(c.course, now(&c)));
    learn_course_failed(c.course, now(&c)); /* thresholds go on */
    assert_null(learn_course_policy(c.course));
    assert_true(learn_course_wants(c.course, now(&c) + 600));
    learn_course_began(c.course);
    learn_course_found(c.course, NULL, now(&c)); /* what it had is still the best */
    assert_ptr_equal(learn_course_policy(c.course), c.own);
    assert_int_equal(pass(&c, 5760, 30, 250, NULL), LEARN_NO_NEWS); /* now that is usual */
    end(&c);
}

/* The CPU of a request is the same, and the goal no longer kept: contention. */
static void late_requests_are_noticed(void **state)
{
    (void)state;
    struct course_scene c;
    int took = 0;
    begin(&c, &learn_rules_default);
    learn_course_resume(c.course, c.own);
    assert_int_equal(pass(&c, 5760, 10, 60, NULL), LEARN_NO_NEWS);
    assert_int_equal(pass(&c, 100, 10, 500, &took), LEARN_DRIFTED);
    if (took > 48)
        fail_msg("noticed after %d intervals", took);
    assert_non_null(strstr(learn_course_why(c.course), "earn"));
    end(&c);
}

/* As much as before, but in bursts: what a day has not shown is news within 80 intervals. */
static void another_pattern_is_noticed(void **state)
{
    (void)state;
    struct course_scene c;
    struct learn_rules rules = learn_rules_default;
    int took = 0;
    rules.drift.learn = 100000; /* what is earned says nothing here */
    begin(&c, &rules);
    learn_course_resume(c.course, c.own);
    assert_int_equal(pass(&c, 40320, 10, 60, NULL), LEARN_NO_NEWS);
    enum learn_news news = LEARN_NO_NEWS;
    for (; news == LEARN_NO_NEWS && took <= 80; took++) {
        live(c.s, took % 5 == 0 ? 46 : 1, 10, 60);
        news = see(&c, false);
    }
    if (news != LEARN_DRIFTED)
        fail_msg("not noticed in %d intervals", took);
    assert_string_equal(learn_course_why(c.course), "its load is unlike any that was seen");
    learn_course_found(c.course, NULL, now(&c));
    for (int i = 0; i < 3 * 5760; i++) { /* which is usual from then on, and so is what was */
        live(c.s, i % 5 == 0 && i / 1000 % 2 ? 46 : i / 1000 % 2 ? 1 : 10, 10, 60);
        assert_int_equal(see(&c, false), LEARN_NO_NEWS);
    }
    end(&c);
}

/* 21 of 40. */
static void a_policy_that_is_held_back_rests(void **state)
{
    (void)state;
    struct course_scene c;
    begin(&c, &learn_rules_default);
    learn_course_resume(c.course, c.own);
    for (int i = 0; i < 400; i++) { /* every other time it may be */
        live(c.s, 10, 10, 60);
        assert_int_equal(see(&c, i % 2 == 0), LEARN_NO_NEWS);
    }
    live(c.s, 10, 10, 60);
    assert_int_equal(see(&c, true), LEARN_NO_NEWS);
    live(c.s, 10, 10, 60);
    assert_int_equal(see(&c, true), LEARN_DRIFTED);
    assert_string_equal(learn_course_why(c.course),
                        "the guard held back 21 of its last 40 proposals");
    assert_null(learn_course_policy(c.course));
    assert_false(learn_course_wants(c.course, now(&c) + 599)); /* thresholds have their time */
    assert_true(learn_course_wants(c.course, now(&c) + 600));
    learn_course_began(c.course);
    learn_course_found(c.course, NULL, now(&c) + 620);
    assert_ptr_equal(learn_course_policy(c.course), c.own);
    live(c.s, 10, 10, 60);
    assert_int_equal(see(&c, true), LEARN_NO_NEWS); /* it begins anew */
    end(&c);
}

/* 30 blocks of 8 intervals each are known of both. */
static void what_earns_less_is_taken_back(void **state)
{
    (void)state;
    for (int worse = 0; worse <= 1; worse++) {
        struct course_scene c;
        begin(&c, &learn_rules_default);
        learn_course_has_past(c.course);
        learn_course_failed(c.course, now(&c));
        assert_int_equal(pass(&c, 400, 10, 60, NULL), LEARN_NO_NEWS);
        learn_course_began(c.course);
        learn_course_found(c.course, c.own, now(&c));
        int took = 0;
        enum learn_news news = pass(&c, 300, 10, worse ? 320 : 60, &took);
        assert_int_equal(news, worse ? LEARN_WENT_BACK : LEARN_NO_NEWS);
        assert_ptr_equal(learn_course_policy(c.course), worse ? c.general : c.own);
        assert_int_equal(learn_course_stage(c.course), LEARN_SERVE);
        if (worse) {
            assert_int_equal(took, 240);
            assert_false(learn_course_wants(c.course, now(&c))); /* not at once again */
        }
        end(&c);
    }
}

/* --- the thread ---------------------------------------------------------------------------------
 */
struct search_scene {
    uv_loop_t loop;
    struct rl_checkpoint general;
    struct learner *learner;
    struct api_spec bounds;
    int told;
    bool found;
    size_t len;
    struct bootstrap_gain gain;
    struct error err;
};

/* The core, but for a taste for the most CPU that can be chosen. */
static void wasteful(struct rl_checkpoint *out)
{
    struct error err;
    struct bootstrap_config config;
    bootstrap_config_init(&config);
    config.updates = 0;
    config.world.alone = 1;
    config.world.shared = 0;
    config.world.threads = 1;
    assert_int_equal(bootstrap_learn(&config, out, &err), 0);
    struct rl_net *net = &out->nets[0].net;
    float *bias = net->params + net->layers[net->layer_count - 1].biases;
    for (size_t h = 0; h < POLICY_CPU; h++)
        bias += recommend_policy_heads[h].options;
    bias[recommend_policy_heads[POLICY_CPU].options - 1] += 6;
}

static void start(struct search_scene *s)
{
    *s = (struct search_scene){0};
    uv_loop_init(&s->loop);
    wasteful(&s->general);
    s->learner = learner_new(&s->loop, &s->general, 1, &s->err);
    assert_non_null(s->learner);
    trial_default_spec(&s->bounds);
}

static void stop(struct search_scene *s)
{
    learner_free(s->learner);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    rl_checkpoint_clear(&s->general);
}

static void on_done(void *arg, const struct learn_result *result)
{
    struct search_scene *s = arg;
    s->told++;
    s->err = result->err;
    s->gain = result->gain;
    s->found = result->policy != NULL;
    s->len = result->len;
}

static struct learn_search *ask(struct search_scene *s)
{
    struct learn_task task = {.bounds = &s->bounds, .interval_s = INTERVAL_S};
    assert_int_equal(trace_open("poisson:rate=15,span=3600,demand=40", &task.workload, &s->err), 0);
    task.goal_ms = trace_default_goal_ms(task.workload.functions);
    return learner_search(s->learner, &task, on_done, s);
}

static void run_until_told(struct search_scene *s, int times)
{
    while (s->told < times)
        uv_run(&s->loop, UV_RUN_ONCE);
}

static void a_policy_is_found_in_a_thread(void **state)
{
    (void)state;
    struct search_scene s;
    start(&s);
    const struct learn_search *search = ask(&s);
    assert_true(learner_progress(search) >= 0 && learner_progress(search) <= 1);
    assert_int_equal(learner_waiting(s.learner), 1);
    run_until_told(&s, 1);
    if (s.err.code)
        fail_msg("%s", s.err.message);
    assert_true(s.found && s.gain.better);
    assert_true(s.gain.after.reward > s.gain.before.reward);
    assert_true(s.gain.would_have.reward >= s.gain.was.reward - 0.01 * fabs(s.gain.was.reward));
    assert_true(s.len > 1000 && s.len < 64 * 1024); /* as a ConfigMap has room for */
    assert_int_equal(learner_waiting(s.learner), 0);
    stop(&s);
}

static void who_gives_up_is_not_told(void **state)
{
    (void)state;
    struct search_scene s;
    start(&s);
    struct learn_search *first = ask(&s), *second = ask(&s);
    learner_give_up(second);
    learner_give_up(first);
    ask(&s);
    run_until_told(&s, 1);
    assert_int_equal(s.told, 1);
    assert_int_equal(s.err.code, 0);
    stop(&s);
}

static void it_ends_in_the_middle(void **state)
{
    (void)state;
    struct search_scene s;
    start(&s);
    ask(&s);
    ask(&s);
    stop(&s);
    assert_int_equal(s.told, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minutes_are_kept_and_bounded),
        cmocka_unit_test(what_was_before_the_clock_began_counts),
        cmocka_unit_test(what_a_request_costs_is_known),
        cmocka_unit_test(what_is_too_little_is_told),
        cmocka_unit_test(thresholds_decide_until_it_has_learned),
        cmocka_unit_test(without_a_past_the_general_policy_decides),
        cmocka_unit_test(patience_has_an_end),
        cmocka_unit_test(what_was_kept_serves_at_once),
        cmocka_unit_test(a_slower_function_is_noticed),
        cmocka_unit_test(late_requests_are_noticed),
        cmocka_unit_test(another_pattern_is_noticed),
        cmocka_unit_test(a_policy_that_is_held_back_rests),
        cmocka_unit_test(what_earns_less_is_taken_back),
        cmocka_unit_test(a_policy_is_found_in_a_thread),
        cmocka_unit_test(who_gives_up_is_not_told),
        cmocka_unit_test(it_ends_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
