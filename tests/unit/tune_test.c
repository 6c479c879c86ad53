/* The search on a recommender whose best setting can be found by trying them all. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trial/tune.h"

#define CPU RECOMMEND_CPU

/* --- a recommender: always the same size -------------------------------------------------------
 */
static const struct recommend_param params[] = {
    {"milli", "CPU of a pod", 2000, 100, 2000},
    {"replicas", "how many", 1, 1, 4},
};

static void *create(double memory_s, const double *values)
{
    (void)memory_s;
    double *size = xcalloc(2, sizeof(*size));
    memcpy(size, values, 2 * sizeof(*size));
    return size;
}

static int recommend(void *self, const struct observation *seen, struct recommendation *out,
                     struct error *err)
{
    const double *size = self;
    (void)seen;
    (void)err;
    *out = (struct recommendation){.replicas = (int)size[1], .container_count = 1};
    out->containers[0].target[CPU] = size[0];
    out->containers[0].target[RECOMMEND_MEMORY] = NAN;
    return 0;
}

static const struct recommender sized = {
    .name = "sized",
    .params = params,
    .param_count = ARRAY_LEN(params),
    .damps_itself = true,
    .create = create,
    .destroy = free,
    .recommend = recommend,
};

/* --- functions: two steady ones of different weight, one with hardly any requests --------------
 */
#define FUNCTIONS 3
struct scene {
    double counts[FUNCTIONS][20];
    struct trace_quantile quantiles[FUNCTIONS][2];
    struct trace_function workloads[FUNCTIONS];
    struct trial_function functions[FUNCTIONS];
    struct tune_function tuned[FUNCTIONS];
    struct api_spec spec;
    struct tune_config config;
    double params[TUNE_STRENGTH_COUNT][FUNCTIONS][ARRAY_LEN(params)];
};

static struct scene *new_scene(void)
{
    static const double rates[FUNCTIONS] = {10, 2, 0.02}, demands_ms[FUNCTIONS] = {40, 200, 100};
    struct scene *s = xcalloc(1, sizeof(*s));
    trial_default_spec(&s->spec);
    for (size_t f = 0; f < FUNCTIONS; f++) {
        for (size_t i = 0; i < 20; i++)
            s->counts[f][i] = rates[f] * 60;
        s->quantiles[f][0] = (struct trace_quantile){0, demands_ms[f]};
        s->quantiles[f][1] = (struct trace_quantile){1, demands_ms[f]};
        s->workloads[f] = (struct trace_function){.name = (char *)"f",
                                                  .slot_s = 60,
                                                  .counts = s->counts[f],
                                                  .slot_count = 20,
                                                  .poisson = true,
                                                  .quantiles = s->quantiles[f],
                                                  .quantile_count = 2};
        s->functions[f] = (struct trial_function){
            .workload = &s->workloads[f], .spec = &s->spec, .goal_ms = 5 * demands_ms[f]};
        s->tuned[f] = (struct tune_function){
            .config = {.functions = &s->functions[f],
                       .function_count = 1,
                       .defaults = trial_default_function,
                       .interval_s = 15,
                       .span_s = 600,
                       .seed = 7},
            .oracle_core_seconds = 600 * rates[f] * demands_ms[f] / 1000 + 60,
        };
    }
    s->config = (struct tune_config){.recommender = &sized,
                                     .functions = s->tuned,
                                     .function_count = FUNCTIONS,
                                     .trials = 60,
                                     .seed = 3,
                                     .threads = 2};
    return s;
}

static double score_with(const struct scene *s, size_t function, const double *setting)
{
    struct trial_choice choice = {.recommender = &sized, .params = (double *)setting};
    struct trial_config config = s->tuned[function].config;
    struct trial_result result;
    struct error err = {0};
    config.choice = &choice;
    assert_int_equal(trial_run(&config, &result, &err), 0);
    return tune_score(&result, s->tuned[function].oracle_core_seconds, 0.01);
}

static void search(struct scene *s)
{
    struct error err = {0};
    assert_int_equal(tune_param_count(&s->config), sizeof(s->params) / sizeof(double));
    assert_int_equal(tune_search(&s->config, &s->params[0][0][0], &err), 0);
}

/* --- tests -------------------------------------------------------------------------------------
 */
static void test_finds_what_trying_all_finds(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    search(s);
    for (size_t f = 0; f < FUNCTIONS; f++) {
        double best = INFINITY;
        for (int replicas = 1; replicas <= 3; replicas++)
            for (double milli = 100; milli <= 2000; milli *= 1.12)
                best = fmin(best, score_with(s, f, (const double[]){milli, replicas}));
        /* The guard does not resize by less than a tenth: the score is a staircase. */
        assert_true(score_with(s, f, s->params[TUNE_FUNCTION][f]) < 1.2 * best);
    }
    free(s);
}

static double mean_score(const struct scene *s, enum tune_strength strength)
{
    double sum = 0;
    for (size_t f = 0; f < FUNCTIONS; f++)
        sum += score_with(s, f, s->params[strength][f]);
    return sum / FUNCTIONS;
}

static void test_stronger_is_not_worse(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    search(s);
    double usual = 0;
    for (size_t f = 0; f < FUNCTIONS; f++)
        usual += score_with(s, f, (const double[]){2000, 1}) / FUNCTIONS;
    assert_true(mean_score(s, TUNE_ALL) <= usual);
    assert_true(mean_score(s, TUNE_CLASS) <= mean_score(s, TUNE_ALL));
    assert_true(mean_score(s, TUNE_FUNCTION) <= mean_score(s, TUNE_CLASS));
    free(s);
}

/* One setting for all, one per class, whatever the functions. */
static void test_groups_share_their_setting(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    search(s);
    assert_int_not_equal(trace_classify(&s->workloads[0]), trace_classify(&s->workloads[2]));
    for (size_t f = 0; f < FUNCTIONS; f++) {
        assert_memory_equal(s->params[TUNE_ALL][f], s->params[TUNE_ALL][0],
                            sizeof(s->params[0][0]));
        for (size_t g = 0; g < FUNCTIONS; g++)
            if (trace_classify(&s->workloads[f]) == trace_classify(&s->workloads[g]))
                assert_memory_equal(s->params[TUNE_CLASS][f], s->params[TUNE_CLASS][g],
                                    sizeof(s->params[0][0]));
    }
    free(s);
}

static void count_run(void *arg)
{
    __atomic_fetch_add((size_t *)arg, 1, __ATOMIC_RELAXED);
}

static void test_same_seed_same_setting(void **state)
{
    (void)state;
    struct scene *a = new_scene(), *b = new_scene();
    size_t runs = 0;
    a->config.trials = b->config.trials = 20;
    a->config.on_run = count_run;
    a->config.arg = &runs;
    b->config.threads = 1;
    search(a);
    search(b);
    assert_memory_equal(a->params, b->params, sizeof(a->params));
    assert_int_equal(runs, tune_runs(&a->config));
    b->config.seed++;
    search(b);
    assert_memory_not_equal(a->params, b->params, sizeof(a->params));
    free(a);
    free(b);
}

static void test_score(void **state)
{
    (void)state;
    struct trial_result r = {.cpu_core_seconds = 300, .violation_ratio = 0.01};
    assert_true(fabs(tune_score(&r, 200, 0.01) - 1.5) < 1e-9);
    r.violation_ratio = 0.0101; /* no jump at the edge */
    assert_true(fabs(tune_score(&r, 200, 0.01) - 1.5) < 0.11);
    r.violation_ratio = 0.02;
    assert_true(tune_score(&r, 200, 0.01) > 5);
}

static void test_settings_can_be_written_down(void **state)
{
    (void)state;
    const struct recommender *hpa = trial_find("hpa");
    double *values = xcalloc(hpa->param_count, sizeof(*values));
    for (size_t i = 0; i < hpa->param_count; i++)
        values[i] = hpa->params[i].high;
    values[0] = 0.1235;
    cleanup_free char *text = tune_print_setting(hpa, values);
    struct trial_choice choice;
    struct error err = {0};
    assert_int_equal(trial_choose(text, &choice, &err), 0);
    assert_memory_equal(choice.params, values, hpa->param_count * sizeof(*values));
    trial_choice_clear(&choice);
    free(values);
}

static void test_refuses(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    struct recommender plain = sized;
    struct error err = {0};
    s->config.trials = 1;
    assert_int_equal(tune_search(&s->config, &s->params[0][0][0], &err), -1);
    s->config.trials = 4;
    s->tuned[1].config.span_s = -1;
    assert_int_equal(tune_search(&s->config, &s->params[0][0][0], &err), -1);
    assert_non_null(strstr(err.message, "function f"));
    plain.param_count = 0;
    s->config.recommender = &plain;
    assert_int_equal(tune_search(&s->config, &s->params[0][0][0], &err), -1);
    assert_non_null(strstr(err.message, "no parameters"));
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_what_trying_all_finds),
        cmocka_unit_test(test_stronger_is_not_worse),
        cmocka_unit_test(test_groups_share_their_setting),
        cmocka_unit_test(test_same_seed_same_setting),
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_settings_can_be_written_down),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
