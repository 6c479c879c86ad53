/* Embeddings: what a history tells, whatever its order; and that it is enough to do what one who
 * cannot remember cannot. */
#include "rl/embed.h"

#include "rl_worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* --- a world with a secret ---------------------------------------------------------------------
 * A row begins anywhere in ±1 and goes left, stays or goes right by a tenth. It is paid by how near
 * it is to a place that it never sees: −|x − place|. Places are even in ±1, so that who does not
 * remember gets −1/2 at best, by standing at 0. */
enum { ROWS = 32, STEPS = 20 };

struct secret {
    struct rl_world world;
    float x[ROWS], rewards[ROWS], place[ROWS];
    uint8_t terminated[ROWS], truncated[ROWS];
    int32_t actions[ROWS];
    struct random random;
    int step;
    double sum, count;
};

static void begin_episode(struct secret *s)
{
    for (size_t i = 0; i < ROWS; i++)
        s->x[i] = (float)(2 * random_uniform(&s->random) - 1);
    memset(s->rewards, 0, sizeof(s->rewards));
    memset(s->truncated, 0, sizeof(s->truncated));
    s->step = 0;
}

static void secret_step(void *self)
{
    struct secret *s = self;
    if (s->step == STEPS) {
        begin_episode(s);
        return;
    }
    s->step++;
    for (size_t i = 0; i < ROWS; i++) {
        s->x[i] = fminf(fmaxf(s->x[i] + 0.1f * (float)(s->actions[i] - 1), -1), 1);
        s->rewards[i] = -fabsf(s->x[i] - s->place[i]);
        s->truncated[i] = s->step == STEPS;
        s->sum += s->rewards[i];
        s->count++;
    }
}

static void secret_reset(void *self, uint64_t seed)
{
    struct secret *s = self;
    s->random = random_stream(seed, 0);
    for (size_t i = 0; i < ROWS; i++)
        s->place[i] = (float)((double)i + random_uniform(&s->random)) * 2 / ROWS - 1;
    begin_episode(s);
}

static void secret_init(struct secret *s, uint64_t seed)
{
    const size_t options[] = {3};
    *s = (struct secret){.world = {.rows = ROWS, .observation_size = 1}};
    assert_int_equal(rl_heads_init(&s->world.heads, options, 1, NULL), 0);
    s->world.observations = s->x;
    s->world.rewards = s->rewards;
    s->world.terminated = s->terminated;
    s->world.truncated = s->truncated;
    s->world.actions = s->actions;
    s->world.reset = secret_reset;
    s->world.step = secret_step;
    s->world.self = s;
    secret_reset(s, seed);
}

static struct rl_log *walk(struct secret *s, size_t steps)
{
    struct random r = random_stream(3, 3);
    struct rl_log *log = rl_log_new(&s->world, rl_all_rows, steps, NULL);
    for (size_t t = 0; t < steps; t++) {
        for (size_t i = 0; i < ROWS; i++)
            s->actions[i] = (int32_t)random_below(&r, 3);
        rl_log_act(log, NULL);
        s->world.step(s);
        rl_log_see(log);
    }
    return log;
}

static struct rl_embed_config small(void)
{
    struct rl_embed_config config = rl_embed_default;
    config.size = 4;
    config.hidden = 16;
    config.window = 40;
    config.context = 16;
    config.updates = IS_SLOW ? 100 : 1500;
    config.batch = 32;
    config.rate = 1e-2;
    return config;
}

static struct rl_embed *begin(const struct rl_world *world)
{
    struct rl_embed_config config = small();
    struct error err;
    struct rl_embed *embed = rl_embed_new(&config, world, &err);
    if (embed == NULL)
        fail_msg("%s", err.message);
    return embed;
}

static struct rl_embed *learn(struct secret *s, struct rl_embed_report *report)
{
    struct error err;
    struct rl_embed *embed = begin(&s->world);
    struct rl_log *log = walk(s, 250);
    if (rl_embed_learn(embed, log, report, &err) < 0)
        fail_msg("%s", err.message);
    rl_log_free(log);
    return embed;
}

/* --- histories --- */
static void add(struct rl_history *h, float x, int32_t action, float after, float reward)
{
    rl_history_add(h, &(struct rl_step){&x, &after, &action, reward});
}

static void test_order_and_number_of_steps_do_not_matter(void **state)
{
    (void)state;
    struct secret s;
    secret_init(&s, 1);
    struct rl_embed *embed = begin(&s.world);
    struct rl_history *a = rl_history_new(embed), *b = rl_history_new(embed);
    float one[4], other[4], none[4];
    rl_history_read(a, none);
    for (int i = 0; i < 10; i++) {
        add(a, 0.1f * (float)i, i % 3, 0.2f, -0.05f * (float)i);
        for (int k = 0; k < 2; k++)
            add(b, 0.1f * (float)(9 - i), (9 - i) % 3, 0.2f, -0.05f * (float)(9 - i));
    }
    rl_history_read(a, one);
    rl_history_read(b, other);
    for (size_t k = 0; k < 4; k++) {
        assert_float_equal(none[k], 0, 0);
        assert_float_equal(one[k], other[k], 1e-6);
        assert_true(fabsf(one[k]) < 1);
    }
    assert_true(fabsf(one[0]) + fabsf(one[1]) > 1e-3f);
    rl_history_free(a);
    rl_history_free(b);
    rl_embed_free(embed);
}

static void test_what_lies_behind_the_window_is_forgotten(void **state)
{
    (void)state;
    struct secret s;
    secret_init(&s, 1);
    struct rl_embed *embed = begin(&s.world);
    struct rl_history *a = rl_history_new(embed), *b = rl_history_new(embed);
    float one[4], other[4];
    for (int i = 0; i < 25; i++)
        add(a, -1, 0, -1, -5);
    for (int i = 0; i < 40; i++) {
        add(a, 0.3f, 2, 0.4f, -0.2f);
        add(b, 0.3f, 2, 0.4f, -0.2f);
    }
    rl_history_read(a, one);
    rl_history_read(b, other);
    assert_memory_equal(one, other, sizeof(one));
    rl_history_forget(a);
    rl_history_read(a, one);
    assert_float_equal(one[0], 0, 0);
    rl_history_free(a);
    rl_history_free(b);
    rl_embed_free(embed);
}

/* --- learning --- */
/* A step tells x and |x − place|, two of them the place: with it nothing is left to be guessed. */
static void test_it_learns_what_rows_differ_in(void **state)
{
    (void)state;
    struct secret s;
    struct rl_embed_report report;
    secret_init(&s, 1);
    struct rl_embed *embed = learn(&s, &report);
    assert_true(isfinite(report.last));
    if (!IS_SLOW) {
        assert_true(report.last < 0.1 && report.last < report.first / 2);
        assert_true(report.blind > 0.5); /* the reward of another place says nothing */
    }
    rl_embed_free(embed);
}

static double reward_of(struct secret *s, const struct rl_world *world, struct rl_ppo *ppo,
                        int episodes)
{
    s->sum = s->count = 0;
    for (int t = 0; t < episodes * (STEPS + 1); t++) {
        float logits[3];
        for (size_t i = 0; i < ROWS; i++) {
            rl_net_row(rl_ppo_actor(ppo), world->observations + i * world->observation_size,
                       logits);
            rl_best(&world->heads, logits, NULL, world->actions + i);
        }
        world->step(world->self);
    }
    return s->sum / s->count;
}

static struct rl_ppo *practise(const struct rl_world *world, size_t updates)
{
    struct rl_ppo_config config = rl_ppo_default;
    struct rl_ppo_report report;
    struct error err;
    config.horizon = STEPS + 1;
    config.hidden[0] = config.hidden[1] = 32;
    config.actor_rate = config.critic_rate = 3e-3;
    config.gamma = 0.9;
    struct rl_ppo *ppo = rl_ppo_new(&config, world, rl_all_rows, updates, 1, &err);
    for (size_t i = 0; i < updates; i++) {
        while (!rl_ppo_is_full(ppo)) {
            rl_ppo_act(ppo);
            world->step(world->self);
            rl_ppo_see(ppo);
        }
        assert_int_equal(rl_ppo_update(ppo, &report, &err), 0);
        if (i % 3 == 2) /* other places, and what to do without a history */
            world->reset(world->self, i);
    }
    return ppo;
}

/* In places that it has not been taught: reset draws others. */
static void test_a_policy_that_is_told_does_what_no_other_can(void **state)
{
    (void)state;
    struct secret s;
    struct rl_embed_report report;
    secret_init(&s, 1);
    struct rl_embed *embed = learn(&s, &report);
    struct rl_embedded *told = rl_embedded_new(embed, &s.world);
    const struct rl_world *world = rl_embedded_world(told);
    assert_int_equal(world->observation_size, 1 + 4);
    struct rl_ppo *ppo = practise(world, IS_SLOW ? 3 : 120);
    world->reset(world->self, 99);
    reward_of(&s, world, ppo, 1); /* to get a history */
    double reward = reward_of(&s, world, ppo, 5);
    assert_true(isfinite(reward));
    if (!IS_SLOW)
        assert_true(reward > -0.4);
    rl_embedded_forget(told, 0);
    assert_float_equal(world->observations[1], 0, 0);
    assert_true(world->observations[5 + 1] != 0);
    rl_ppo_free(ppo);
    rl_embedded_free(told);
    rl_embed_free(embed);
}

static void test_the_same_seed_learns_the_same(void **state)
{
    (void)state;
    float codes[2][4];
    for (size_t k = 0; k < 2; k++) {
        struct secret s;
        struct rl_embed_report report;
        secret_init(&s, 1);
        struct rl_embed *embed = learn(&s, &report);
        struct rl_history *h = rl_history_new(embed);
        add(h, 0.1f, 1, 0.1f, -0.3f);
        rl_history_read(h, codes[k]);
        rl_history_free(h);
        rl_embed_free(embed);
    }
    assert_memory_equal(codes[0], codes[1], sizeof(codes[0]));
}

/* --- keeping it, and what cannot be --- */
static void test_what_was_learned_is_kept(void **state)
{
    (void)state;
    struct secret s;
    struct error err;
    struct rl_checkpoint c = {.algorithm = xstrdup("ppo")}, back = {0};
    size_t len;
    float one[4], other[4];
    secret_init(&s, 1);
    struct rl_embed_config config = small();
    struct rl_embed *a = begin(&s.world);
    config.seed = 2;
    struct rl_embed *b = rl_embed_new(&config, &s.world, &err);
    struct rl_history *ha = rl_history_new(a), *hb = rl_history_new(b);
    rl_embed_save(a, &c);
    cleanup_free char *bytes = rl_checkpoint_encode(&c, &len, &err);
    assert_int_equal(rl_checkpoint_decode(&back, bytes, len, &err), 0);
    assert_int_equal(rl_embed_load(b, &back, &err), 0);
    add(ha, 0.1f, 1, 0.1f, -0.3f);
    add(hb, 0.1f, 1, 0.1f, -0.3f);
    rl_history_read(ha, one);
    rl_history_read(hb, other);
    assert_memory_equal(one, other, sizeof(one));
    config.size = 5;
    struct rl_embed *wider = rl_embed_new(&config, &s.world, &err);
    assert_int_equal(rl_embed_load(wider, &back, &err), -1);
    assert_non_null(strstr(err.message, "embed/encoder"));
    rl_history_free(ha);
    rl_history_free(hb);
    rl_embed_free(a);
    rl_embed_free(b);
    rl_embed_free(wider);
    rl_checkpoint_clear(&c);
    rl_checkpoint_clear(&back);
}

static void test_what_cannot_be_learned_from_is_refused(void **state)
{
    (void)state;
    struct secret s;
    struct error err;
    struct rl_embed_report report;
    struct rl_embed_config config = small();
    secret_init(&s, 1);
    config.size = 0;
    assert_null(rl_embed_new(&config, &s.world, &err));
    struct rl_embed *embed = begin(&s.world);
    struct rl_log *empty = rl_log_new(&s.world, rl_all_rows, 10, &err);
    assert_int_equal(rl_embed_learn(embed, empty, &report, &err), -1);
    struct rl_log *full = walk(&s, 10);
    rl_log_act(full, NULL);
    s.world.step(&s);
    rl_log_see(full);
    assert_int_equal(rl_embed_learn(embed, full, &report, &err), -1);
    rl_log_free(empty);
    rl_log_free(full);
    full = walk(&s, 10);
    s.world.observation_size = 2;
    assert_int_equal(rl_embed_learn(embed, full, &report, &err), -1);
    s.world.observation_size = 1;
    rl_log_free(full);
    rl_embed_free(embed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_number_of_steps_do_not_matter),
        cmocka_unit_test(test_what_lies_behind_the_window_is_forgotten),
        cmocka_unit_test(test_it_learns_what_rows_differ_in),
        cmocka_unit_test(test_a_policy_that_is_told_does_what_no_other_can),
        cmocka_unit_test(test_the_same_seed_learns_the_same),
        cmocka_unit_test(test_what_was_learned_is_kept),
        cmocka_unit_test(test_what_cannot_be_learned_from_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
