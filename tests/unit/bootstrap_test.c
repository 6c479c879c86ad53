/* Where the policy of ppo is learned: sameness over threads, sensible workloads, rewards that
 * follow what is done, and a beginning that is the core's own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bootstrap/bootstrap.h"
#include "trace/trace.h"
#include "trial/trial.h"

static struct bootstrap_config small(size_t threads)
{
    struct bootstrap_config c;
    bootstrap_config_init(&c);
    c.world = (struct bootstrap_world_config){
        .alone = 3, .shared = 1, .episode_steps = 12, .interval_s = 15, .threads = threads};
    c.ppo.horizon = 8;
    c.ppo.minibatch = 28;
    c.updates = 4;
    return c;
}

static void learn(const struct bootstrap_config *config, struct rl_checkpoint *out)
{
    struct error err;
    if (bootstrap_learn(config, out, &err) < 0)
        fail_msg("%s", err.message);
}

static bool same_weights(const struct rl_checkpoint *a, const struct rl_checkpoint *b)
{
    const struct rl_net *x = &rl_checkpoint_net(a, "actor")->net;
    const struct rl_net *y = &rl_checkpoint_net(b, "actor")->net;
    assert_int_equal(x->param_count, y->param_count);
    return memcmp(x->params, y->params, x->param_count * sizeof(*x->params)) == 0;
}

static void threads_do_not_matter_but_seeds_do(void **state)
{
    (void)state;
    struct rl_checkpoint one = {0}, three = {0}, other = {0};
    struct bootstrap_config config = small(1);
    learn(&config, &one);
    config = small(3);
    learn(&config, &three);
    config.seed = 2;
    learn(&config, &other);
    assert_true(same_weights(&one, &three));
    assert_false(same_weights(&one, &other));
    rl_checkpoint_clear(&one);
    rl_checkpoint_clear(&three);
    rl_checkpoint_clear(&other);
}

static void what_is_learned_can_be_used(void **state)
{
    (void)state;
    struct rl_checkpoint c = {0};
    struct error err;
    struct bootstrap_config config = small(1);
    config.world.off = "head split,trend";
    learn(&config, &c);
    struct recommend_policy *policy = recommend_policy_new(&c, &err);
    if (!policy)
        fail_msg("%s", err.message);
    assert_string_equal(rl_checkpoint_get(&c, "off"), "head split,trend");
    recommend_policy_release(policy);
    rl_checkpoint_clear(&c);
}

static void without_updates_it_is_the_core(void **state)
{
    (void)state;
    struct rl_checkpoint c = {0};
    struct error err;
    struct bootstrap_config config = small(1);
    struct random random = random_stream(5, 0);
    config.updates = 0;
    learn(&config, &c);
    struct recommend_policy *policy = recommend_policy_new(&c, &err);
    for (int round = 0; round < 100; round++) {
        float features[POLICY_FEATURE_COUNT];
        uint8_t mask[RL_MAX_OPTIONS];
        int32_t choices[POLICY_HEAD_COUNT];
        for (size_t i = 0; i < POLICY_FEATURE_COUNT; i++)
            features[i] = (float)(2 * random_uniform(&random) - 1);
        memset(mask, 1, sizeof(mask));
        recommend_policy_choose(policy, features, mask, choices);
        for (size_t h = 0; h < POLICY_HEAD_COUNT; h++)
            assert_int_equal(choices[h], recommend_policy_heads[h].neutral);
    }
    recommend_policy_release(policy);
    rl_checkpoint_clear(&c);
}

/* --- the world ---------------------------------------------------------------------------------
 */
/* The CPU that a world's functions reserve when one option of the head cpu is taken throughout. */
static double cost_of(int32_t cpu)
{
    struct error err;
    struct bootstrap_world_config config = small(2).world;
    config.episode_steps = 100;
    struct bootstrap_world *world = bootstrap_world_new(&config, 3, &err);
    if (!world)
        fail_msg("%s", err.message);
    const struct rl_world *rows = bootstrap_world_rows(world);
    assert_int_equal(rows->rows, 3 + BOOTSTRAP_SHARED_FUNCTIONS);
    for (int step = 0; step < 150; step++) {
        for (size_t i = 0; i < rows->rows * POLICY_HEAD_COUNT; i++)
            rows->actions[i] = recommend_policy_heads[i % POLICY_HEAD_COUNT].neutral;
        for (size_t i = 0; i < rows->rows; i++)
            rows->actions[i * POLICY_HEAD_COUNT + POLICY_CPU] = cpu;
        rows->step(rows->self);
        for (size_t i = 0; i < rows->rows; i++)
            assert_true(isfinite(rows->rewards[i]) && fabsf(rows->rewards[i]) < 30);
        for (size_t i = 0; i < rows->rows * POLICY_FEATURE_COUNT; i++)
            assert_true(fabsf(rows->observations[i]) <= 1);
    }
    struct bootstrap_figures f = bootstrap_world_figures(world);
    assert_true(f.episodes >= (double)rows->rows);
    assert_true(f.met >= 0 && f.met <= f.episodes);
    bootstrap_world_free(world);
    return f.cost / f.steps;
}

static void what_is_chosen_is_done(void **state)
{
    (void)state;
    const struct policy_head_info *cpu = &recommend_policy_heads[POLICY_CPU];
    double core = cost_of(cpu->neutral), twice = cost_of((int32_t)cpu->options - 1);
    assert_true(cpu->values[cpu->options - 1] == 2);
    if (!(twice > 1.2 * core && twice < 2.5 * core)) /* bounds hold some of it back */
        fail_msg("%g × what is needed, then %g ×", core, twice);
}

/* --- workloads ---------------------------------------------------------------------------------
 */
static void workloads_are_of_every_kind(void **state)
{
    (void)state;
    struct random random = random_stream(1, 0);
    size_t classes[TRACE_CLASS_COUNT] = {0};
    for (int i = 0; i < 200; i++) {
        struct trace t;
        struct error err;
        assert_int_equal(bootstrap_workload(&random, 7200, &t, &err), 0);
        const struct trace_function *f = &t.functions[0];
        assert_true(fabs(trace_span_s(f) - 7200) < 60);
        for (size_t k = 0; k < f->slot_count; k++)
            assert_true(isfinite(f->counts[k]) && f->counts[k] >= 0);
        double cores = trace_requests(f) / 7200 * trace_mean_cpu_ms(f) / 1000;
        assert_true(cores > 0 && cores < 6.5);
        classes[trace_classify(f)]++;
        trace_clear(&t);
    }
    for (size_t k = 0; k < TRACE_CLASS_COUNT; k++)
        assert_true(classes[k] >= 20);
}

static void worlds_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct bootstrap_world_config config = small(1).world;
    config.off = "head moon";
    assert_null(bootstrap_world_new(&config, 1, &err));
    assert_non_null(strstr(err.message, "moon"));
    config.off = NULL;
    config.alone = config.shared = 0;
    assert_null(bootstrap_world_new(&config, 1, &err));
}

/* --- for one function ---------------------------------------------------------------------------
 */
struct tuning_scene {
    struct trace trace;
    struct rl_checkpoint from;
    struct bootstrap_tuning tuning;
    size_t asked, most; /* calls of on_progress; end after so many */
    double share;
};

static bool watch(void *arg, double share)
{
    struct tuning_scene *s = arg;
    assert_true(share > s->share && share <= 1);
    s->share = share;
    return ++s->asked < s->most;
}

/* The core, but for a taste for twice the CPU that is needed. */
static void wasteful(struct tuning_scene *s, size_t threads)
{
    struct error err;
    struct bootstrap_config config = small(1);
    *s = (struct tuning_scene){.most = SIZE_MAX};
    config.updates = 0;
    learn(&config, &s->from);
    struct rl_net *net = &s->from.nets[0].net;
    assert_string_equal(s->from.nets[0].name, "actor");
    float *bias = net->params + net->layers[net->layer_count - 1].biases;
    for (size_t h = 0; h < POLICY_CPU; h++)
        bias += recommend_policy_heads[h].options;
    bias[recommend_policy_heads[POLICY_CPU].options - 1] += 6;
    assert_int_equal(trace_open("poisson:rate=15,span=3600,demand=40", &s->trace, &err), 0);
    s->tuning = (struct bootstrap_tuning){
        .from = &s->from,
        .subject = {.workload = &s->trace.functions[0],
                    .goal_ms = trace_default_goal_ms(&s->trace.functions[0])},
        .interval_s = 15,
        .episodes = 3,
        .episode_steps = 120,
        .threads = threads,
        .seed = 1,
        .on_progress = watch,
        .arg = s,
    };
}

static void wasteful_clear(struct tuning_scene *s)
{
    rl_checkpoint_clear(&s->from);
    trace_clear(&s->trace);
}

static void what_wastes_is_tuned(void **state)
{
    (void)state;
    struct error err;
    struct rl_checkpoint found[2] = {{0}, {0}};
    struct bootstrap_gain gain;
    for (size_t i = 0; i < 2; i++) { /* whatever the number of threads */
        struct tuning_scene s;
        wasteful(&s, 1 + 2 * i);
        if (bootstrap_tune(&s.tuning, &found[i], &gain, &err) < 0)
            fail_msg("%s", err.message);
        assert_true(s.share == 1);
        if (!gain.better)
            fail_msg("reward %g, then %g; CPU %g, then %g; late %g, then %g", gain.before.reward,
                     gain.after.reward, gain.before.cost, gain.after.cost, gain.before.late,
                     gain.after.late);
        if (!(gain.after.cost < 0.7 * gain.before.cost))
            fail_msg("%g × the needed CPU, then %g", gain.before.cost, gain.after.cost);
        assert_false(same_weights(&s.from, &found[i]));
        wasteful_clear(&s);
    }
    assert_true(same_weights(&found[0], &found[1]));
    assert_string_equal(rl_checkpoint_get(&found[0], "tuned for"), "poisson");
    struct recommend_policy *policy = recommend_policy_new(&found[0], &err);
    assert_non_null(policy);
    recommend_policy_release(policy);
    rl_checkpoint_clear(&found[0]);
    rl_checkpoint_clear(&found[1]);
}

static void tuning_ends_when_it_is_to(void **state)
{
    (void)state;
    struct error err;
    struct tuning_scene s;
    struct rl_checkpoint found = {0};
    struct bootstrap_gain gain;
    wasteful(&s, 1);
    s.most = 4;
    assert_int_equal(bootstrap_tune(&s.tuning, &found, &gain, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    assert_int_equal(s.asked, 4);
    assert_null(found.nets);
    wasteful_clear(&s);
}

/* An MPA may set memory: those who learn do not, and are not judged by it. */
static void memory_has_no_part_in_lessons(void **state)
{
    (void)state;
    struct bootstrap_gain gains[2];
    for (size_t i = 0; i < 2; i++) {
        struct error err;
        struct tuning_scene s;
        struct rl_checkpoint found = {0};
        struct api_spec spec;
        trial_default_spec(&spec);
        spec.controls[API_MEMORY] = i == 1;
        spec.containers[0].max[API_MEMORY] = 64 << 20; /* any request would kill */
        wasteful(&s, 2);
        s.tuning.subject.spec = &spec;
        s.tuning.episodes = 1;
        s.tuning.episode_steps = 40;
        if (bootstrap_tune(&s.tuning, &found, &gains[i], &err) < 0)
            fail_msg("%s", err.message);
        rl_checkpoint_clear(&found);
        wasteful_clear(&s);
    }
    assert_true(gains[0].before.late == gains[1].before.late);
    assert_true(gains[0].before.reward == gains[1].before.reward);
    assert_true(gains[0].after.reward == gains[1].after.reward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter_but_seeds_do),
        cmocka_unit_test(what_is_learned_can_be_used),
        cmocka_unit_test(without_updates_it_is_the_core),
        cmocka_unit_test(what_is_chosen_is_done),
        cmocka_unit_test(workloads_are_of_every_kind),
        cmocka_unit_test(worlds_that_cannot_be_are_refused),
        cmocka_unit_test(what_wastes_is_tuned),
        cmocka_unit_test(tuning_ends_when_it_is_to),
        cmocka_unit_test(memory_has_no_part_in_lessons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
