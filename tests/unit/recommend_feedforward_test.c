/* Feed-forward against theory: what is seen comes from formulas for a lone request under a CFS
 * quota and for processor sharing, the cheapest size that keeps the goal is solved for by hand.
 * Then once against the simulator and its oracle. */
#include "recommend_scene.h"

#include "trial/trial.h"

#define PERIOD_S   0.1
#define INTERVAL_S 15.0
#define HOLD_S     1800.0

/* margin 0, no peak hold, a minute of memory, all late requests that the goal allows. */
static const double exact[] = {0, 0, 60, 1};

/* --- worlds ----------------------------------------------------------------------------------- */
struct world {
    double rate, mean_s, tail_s; /* of demand */
    double slower;               /* than theory says */
    double (*latency_s)(const struct world *w, double cores, double rate);
    double now_s;
};

/* A lone request of demand s that comes at this phase of the CFS period. */
static double lone_at_phase_s(double s, double cores, double phase_s)
{
    double quota = cores * PERIOD_S, first = fmin(quota, PERIOD_S - phase_s);
    if (s <= first || cores >= 1)
        return s;
    double more = ceil((s - first) / quota) - 1;
    return PERIOD_S - phase_s + more * PERIOD_S + (s - first - more * quota);
}

/* One request after the other, each at another phase; with the time unknown, the worst of them. */
static double lone_latency_s(const struct world *w, double cores, double rate)
{
    (void)rate;
    double worst = 0;
    if (w->now_s > 0)
        return lone_at_phase_s(w->tail_s, cores, fmod(w->now_s * 0.618034, 1) * PERIOD_S);
    for (int i = 0; i < 100; i++)
        worst = fmax(worst, lone_at_phase_s(w->tail_s, cores, i / 100.0 * PERIOD_S));
    return worst;
}

/* Processor sharing gives a request of demand s the mean s / (cores - load), whatever the others.
 */
static double shared_latency_s(const struct world *w, double cores, double rate)
{
    double left = cores - rate * w->mean_s;
    return left > 0.001 ? fmax(w->tail_s / left, w->tail_s) : 1000;
}

static void show(struct scene *s, struct world *w)
{
    w->now_s = s->seen.now_s;
    int pods = s->seen.replicas_wanted;
    double cores = s->seen.containers[0].request[CPU] / 1000;
    double latency_s = w->slower * w->latency_s(w, cores, w->rate / pods);
    scene_cpu(s, cores * 1000, fmin(w->rate * w->mean_s / pods, cores) * 1000);
    scene_load(s, w->rate, w->rate * w->mean_s, latency_s * 1000);
    s->seen.since_increase_s = INFINITY;
}

static void live(struct scene *s, struct world *w, double seconds)
{
    for (double t = 0; t < seconds; t += INTERVAL_S) {
        show(s, w);
        if (scene_ask(s) < 0)
            fail_msg("%s", s->err.message);
        scene_obey(s, INTERVAL_S);
    }
}

static double cost(const struct scene *s)
{
    return s->seen.replicas_wanted * s->seen.containers[0].request[CPU];
}

static void assert_cost(const struct scene *s, double optimum, double below, double above)
{
    if (cost(s) < optimum * below || cost(s) > optimum * above)
        fail_msg("%.0fm instead of %.0fm: %s", cost(s), optimum, s->out.reason);
}

/* The least CPU of one replica that keeps the goal, by the formula of the world. */
static double least_milli(const struct world *w, double goal_s)
{
    double milli = 100;
    struct world any_time = *w;
    any_time.now_s = 0;
    while (milli < 2000 && w->latency_s(&any_time, milli / 1000, w->rate) > goal_s)
        milli++;
    return milli;
}

/* --- the cheapest size ------------------------------------------------------------------------ */
static void a_lone_request_gets_the_quota_that_it_needs(void **state)
{
    (void)state;
    static const double demands_s[] = {0.02, 0.06, 0.1, 0.15};
    for (size_t i = 0; i < ARRAY_LEN(demands_s); i++) {
        struct world w = {0.05, demands_s[i], demands_s[i], 1, lone_latency_s, 0};
        struct scene *s = scene_new(&recommend_feedforward, exact);
        live(s, &w, 4 * 3600);
        assert_cost(s, least_milli(&w, 0.3), 0.95, 1.3);
        assert_int_equal(s->seen.replicas_wanted, 1);
        scene_free(s);
    }
}

static void a_long_request_shares_with_others(void **state)
{
    (void)state;
    static const double loads[] = {0.05, 0.2, 0.4};
    for (size_t i = 0; i < ARRAY_LEN(loads); i++) {
        struct world w = {loads[i] / 0.05, 0.05, 0.75, 1, shared_latency_s, 0};
        struct scene *s = scene_new(&recommend_feedforward, exact);
        s->seen.goal_ms = 1500;
        live(s, &w, 4 * 3600);
        assert_cost(s, least_milli(&w, 1.5), 0.85, 1.3);
        scene_free(s);
    }
}

/* 10 cores of load: at least six replicas of two cores, and not many more. */
static void load_beyond_one_replica_goes_to_several(void **state)
{
    (void)state;
    struct world w = {200, 0.05, 0.2, 1, shared_latency_s, 0};
    struct scene *s = scene_new(&recommend_feedforward, exact);
    scene_cpu(s, 2000, 1000);
    scene_pods(s, 8);
    live(s, &w, 3600);
    if (s->seen.replicas_wanted < 6 || cost(s) < 10000 || cost(s) > 18000)
        fail_msg("%s", s->out.reason);
    scene_free(s);
}

static void the_margin_is_on_top_of_the_rate(void **state)
{
    (void)state;
    double margin[] = {0.5, 0, 60, 1};
    struct world w = {8, 0.05, 0.75, 1, shared_latency_s, 0}, more = {12, 0.05, 0.75, 1, NULL, 0};
    more.latency_s = shared_latency_s;
    struct scene *s = scene_new(&recommend_feedforward, margin);
    s->seen.goal_ms = 1500;
    live(s, &w, 4 * 3600);
    assert_cost(s, least_milli(&more, 1.5), 0.85, 1.3);
    scene_free(s);
}

/* --- when it is wrong ------------------------------------------------------------------------- */
static void it_corrects_a_model_that_is_too_hopeful(void **state)
{
    (void)state;
    struct world w = {4, 0.05, 0.1, 2.5, shared_latency_s, 0};
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    live(s, &w, 4 * 3600);
    show(s, &w);
    if (s->seen.latency_ms > s->seen.goal_ms)
        fail_msg("%.0f ms: %s", s->seen.latency_ms, s->out.reason);
    scene_free(s);
}

static void requests_that_no_cpu_can_help_do_not_drive_it(void **state)
{
    (void)state;
    struct world w = {0.2, 0.05, 0.9, 1, lone_latency_s, 0}; /* goal 0.3 s */
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    live(s, &w, 3600);
    assert_int_equal(s->seen.replicas_wanted, 1);
    assert_true(cost(s) <= 2000);
    scene_free(s);
}

/* Latency that no CPU changes: less and less of it is given, down to the least. */
static double elsewhere_latency_s(const struct world *w, double cores, double rate)
{
    (void)cores;
    (void)rate;
    return w->tail_s;
}

static void it_finds_out_that_cpu_does_not_matter(void **state)
{
    (void)state;
    struct world w = {1, 0.002, 0.15, 1, elsewhere_latency_s, 0};
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    live(s, &w, 24 * 3600);
    assert_cost(s, 100, 1, 1.3);
    scene_free(s);
}

/* --- time ------------------------------------------------------------------------------------- */
static void a_peak_is_held_for_half_an_hour(void **state)
{
    (void)state;
    struct world calm = {2, 0.05, 0.2, 1, shared_latency_s, 0}, peak = {100, 0.05, 0.2, 1, NULL, 0};
    peak.latency_s = shared_latency_s;
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    live(s, &calm, 3600);
    double before = cost(s);
    live(s, &peak, 120);
    double during = cost(s);
    assert_true(during > 5000 && during > 5 * before);
    live(s, &calm, HOLD_S - 120);
    assert_true(cost(s) >= 5000);
    live(s, &calm, 300);
    assert_true(cost(s) < 2 * before);
    scene_free(s);
}

/* A burst that needs more pods: those that are there get all CPU until the others are. */
static void cpu_comes_before_replicas(void **state)
{
    (void)state;
    struct world calm = {2, 0.05, 0.2, 1, shared_latency_s, 0}, peak = {100, 0.05, 0.2, 1, NULL, 0};
    peak.latency_s = shared_latency_s;
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    live(s, &calm, 3600);
    show(s, &peak);
    assert_int_equal(scene_ask(s), 0);
    assert_true(s->out.replicas > s->seen.replicas_wanted);
    assert_true(scene_target(s) == 2000);
    scene_free(s);
}

/* --- what it says, and when it says nothing -----------------------------------------------------
 */
static void it_says_why(void **state)
{
    (void)state;
    struct world w = {40, 0.012, 0.012, 1, shared_latency_s, 0};
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    scene_cpu(s, 1000, 500);
    show(s, &w);
    assert_int_equal(scene_ask(s), 0);
    if (!strstr(s->out.reason, "rate 40/s, ready for 44/s of 12ms CPU each"))
        fail_msg("%s", s->out.reason);
    scene_free(s);
}

static void before_the_first_request_all_stays(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    scene_cpu(s, 500, 2);
    scene_load(s, 0, 0, NAN);
    scene_expect(s, 1, 500, "nothing known of its requests yet: no change");
    scene_free(s);
}

static void without_a_goal_it_says_nothing(void **state)
{
    (void)state;
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    s->seen.latency_state = LATENCY_NO_GOAL;
    assert_int_equal(scene_ask(s), -1);
    assert_non_null(strstr(s->err.message, "needs a latency goal"));
    scene_free(s);
}

static void with_fixed_sizes_replicas_do_it(void **state)
{
    (void)state;
    struct world w = {60, 0.05, 0.1, 1, shared_latency_s, 0}; /* three cores of load */
    struct scene *s = scene_new(&recommend_feedforward, NULL);
    s->seen.containers[0].controlled[CPU] = false;
    scene_cpu(s, 1000, 500);
    scene_pods(s, 5);
    for (int i = 0; i < 100; i++) {
        show(s, &w);
        assert_int_equal(scene_ask(s), 0);
        assert_true(isnan(scene_target(s)));
        scene_pods(s, s->out.replicas);
        s->seen.now_s += INTERVAL_S;
    }
    assert_in_range(s->seen.replicas_wanted, 4, 9);
    scene_free(s);
}

/* --- in the simulator ---------------------------------------------------------------------------
 */
static struct trial_result try_on(const char *recommender, const char *workload)
{
    struct trace trace;
    struct trial_choice choice;
    struct api_spec spec;
    struct error err = {0};
    struct trial_result result;
    trial_default_spec(&spec);
    if (trace_open(workload, &trace, &err) < 0 || trial_choose(recommender, &choice, &err) < 0)
        fail_msg("%s", err.message);
    struct trial_function function = {.workload = &trace.functions[0], .spec = &spec};
    struct trial_config config = {
        .functions = &function,
        .function_count = 1,
        .defaults = trial_default_function,
        .choice = &choice,
        .interval_s = INTERVAL_S,
        .span_s = trace_span_s(function.workload),
        .seed = 3,
    };
    if (trial_run(&config, &result, &err) < 0)
        fail_msg("%s", err.message);
    trial_choice_clear(&choice);
    trace_clear(&trace);
    return result;
}

static void in_simulations_it_is_near_the_oracle(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double dearer; /* the diurnal one for the peak that is held */
    } workloads[] = {
        {"poisson:rate=10,span=7200,demand=40,p99=150", 1.3},
        {"diurnal:rate=15,span=7200,period=7200,demand=40,p99=150", 1.5},
    };
    for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
        struct trial_result own = try_on("feedforward", workloads[i].name);
        struct trial_result best = try_on("oracle", workloads[i].name);
        if (own.violation_ratio > 0.01 ||
            own.cpu_core_seconds > workloads[i].dearer * best.cpu_core_seconds)
            fail_msg("%s: %.2f%% late at %.2f times the oracle's CPU", workloads[i].name,
                     own.violation_ratio * 100, own.cpu_core_seconds / best.cpu_core_seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_request_gets_the_quota_that_it_needs),
        cmocka_unit_test(a_long_request_shares_with_others),
        cmocka_unit_test(load_beyond_one_replica_goes_to_several),
        cmocka_unit_test(the_margin_is_on_top_of_the_rate),
        cmocka_unit_test(it_corrects_a_model_that_is_too_hopeful),
        cmocka_unit_test(requests_that_no_cpu_can_help_do_not_drive_it),
        cmocka_unit_test(it_finds_out_that_cpu_does_not_matter),
        cmocka_unit_test(a_peak_is_held_for_half_an_hour),
        cmocka_unit_test(cpu_comes_before_replicas),
        cmocka_unit_test(it_says_why),
        cmocka_unit_test(before_the_first_request_all_stays),
        cmocka_unit_test(without_a_goal_it_says_nothing),
        cmocka_unit_test(with_fixed_sizes_replicas_do_it),
        cmocka_unit_test(in_simulations_it_is_near_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
