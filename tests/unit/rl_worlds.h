/* Small worlds with known answers, for tests of learning. */
#ifndef FAASRL_TESTS_RL_WORLDS_H
#define FAASRL_TESTS_RL_WORLDS_H

#include "rl/rl.h"

#include <string.h>

/* Sanitizers make learning 50 times slower: there it only runs for a while, and need not succeed.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SLOW = 1 };
#else
enum { IS_SLOW = 0 };
#endif

/* --- a pole on a cart ------------------------------------------------------------------------
 * The classic task (Barto, Sutton and Anderson, 1983) with the constants that people compare by:
 * push left or right, +1 for each of at most 500 steps, over when the pole leans or the cart is
 * gone. */
enum { CARTS = 16, CART_STEPS = 500 }; /* at most so many carts */

struct carts {
    struct rl_world world;
    float observations[CARTS][4], rewards[CARTS];
    uint8_t terminated[CARTS], truncated[CARTS];
    int32_t actions[CARTS];
    double state[CARTS][4]; /* place, speed, angle, its speed */
    int steps[CARTS];
    struct random random;
    double finished, total; /* episodes, and their rewards */
};

static inline void cart_begin(struct carts *c, size_t i)
{
    for (int k = 0; k < 4; k++)
        c->state[i][k] = random_uniform(&c->random) * 0.1 - 0.05;
    c->steps[i] = 0;
    c->terminated[i] = c->truncated[i] = 0;
    c->rewards[i] = 0;
}

static inline void cart_push(double *s, bool right)
{
    const double gravity = 9.8, pole = 0.1, all = 1.1, half = 0.5, tick = 0.02;
    double force = right ? 10 : -10, sine = sin(s[2]), cosine = cos(s[2]);
    double push = (force + pole * half * s[3] * s[3] * sine) / all;
    double turn =
        (gravity * sine - cosine * push) / (half * (4.0 / 3 - pole * cosine * cosine / all));
    double go = push - pole * half * turn * cosine / all;
    s[0] += tick * s[1];
    s[1] += tick * go;
    s[2] += tick * s[3];
    s[3] += tick * turn;
}

static inline void carts_show(struct carts *c)
{
    for (size_t i = 0; i < c->world.rows; i++)
        for (int k = 0; k < 4; k++)
            c->observations[i][k] = (float)c->state[i][k];
}

static inline void carts_step(void *self)
{
    struct carts *c = self;
    for (size_t i = 0; i < c->world.rows; i++) {
        if (c->terminated[i] || c->truncated[i]) {
            cart_begin(c, i);
            continue;
        }
        cart_push(c->state[i], c->actions[i] == 1);
        c->rewards[i] = 1;
        c->steps[i]++;
        c->terminated[i] = fabs(c->state[i][0]) > 2.4 || fabs(c->state[i][2]) > 12 * M_PI / 180;
        c->truncated[i] = !c->terminated[i] && c->steps[i] == CART_STEPS;
        if (c->terminated[i] || c->truncated[i]) {
            c->finished++;
            c->total += c->steps[i];
        }
    }
    carts_show(c);
}

static inline void carts_reset(void *self, uint64_t seed)
{
    struct carts *c = self;
    c->random = random_stream(seed, 77);
    for (size_t i = 0; i < c->world.rows; i++)
        cart_begin(c, i);
    carts_show(c);
}

static inline void carts_init(struct carts *c, size_t count, uint64_t seed)
{
    memset(c, 0, sizeof(*c));
    c->world = (struct rl_world){
        .rows = count,
        .observation_size = 4,
        .observations = c->observations[0],
        .terminated = c->terminated,
        .truncated = c->truncated,
        .rewards = c->rewards,
        .actions = c->actions,
        .reset = carts_reset,
        .step = carts_step,
        .self = c,
    };
    rl_heads_init(&c->world.heads, (size_t[]){2}, 1, NULL);
    carts_reset(c, seed);
}

/* --- a bandit --------------------------------------------------------------------------------
 * One step is an episode. The action has two parts; what it pays is 1 with a chance that is the
 * product of what the parts are worth. One option that would be best may be forbidden. */
enum { BANDITS = 32 };
static const double bandit_worth[2][3] = {{0.2, 0.9, 0.5}, {0.8, 0.3, 1.0}};

struct bandits {
    struct rl_world world;
    float observations[BANDITS][1], rewards[BANDITS];
    uint8_t masks[BANDITS][6], terminated[BANDITS], truncated[BANDITS];
    int32_t actions[BANDITS][2];
    struct random random;
    size_t illegal; /* actions that were forbidden */
};

static inline void bandits_step(void *self)
{
    struct bandits *b = self;
    for (size_t i = 0; i < BANDITS; i++) {
        if (b->terminated[i]) { /* an episode begins */
            b->terminated[i] = 0;
            b->rewards[i] = 0;
            continue;
        }
        int32_t x = b->actions[i][0], y = b->actions[i][1];
        b->illegal += b->masks[i][x] == 0 || b->masks[i][3 + y] == 0;
        b->rewards[i] = random_uniform(&b->random) < bandit_worth[0][x] * bandit_worth[1][y];
        b->terminated[i] = 1;
    }
}

static inline void bandits_init(struct bandits *b, bool forbid_best)
{
    memset(b, 0, sizeof(*b));
    b->random = random_stream(3, 78);
    for (size_t i = 0; i < BANDITS; i++) {
        b->observations[i][0] = 1;
        memset(b->masks[i], 1, sizeof(b->masks[i]));
        b->masks[i][5] = !forbid_best;
    }
    b->world = (struct rl_world){
        .rows = BANDITS,
        .observation_size = 1,
        .observations = b->observations[0],
        .masks = b->masks[0],
        .terminated = b->terminated,
        .truncated = b->truncated,
        .rewards = b->rewards,
        .actions = b->actions[0],
        .step = bandits_step,
        .self = b,
    };
    rl_heads_init(&b->world.heads, (size_t[]){3, 3}, 2, NULL);
}

/* --- a corridor ------------------------------------------------------------------------------
 * Seven places in a row; a step goes where it was meant to in 8 of 10 cases and nowhere in the
 * others. The left end pays a little and the right end much. */
enum { WALKS = 16, PLACES = 7, WALK_STEPS = 60 };
static const double walk_success = 0.8, walk_pay[2] = {0.2, 1};

struct walks {
    struct rl_world world;
    float observations[WALKS][1], rewards[WALKS];
    uint8_t terminated[WALKS], truncated[WALKS];
    int32_t actions[WALKS];
    int place[WALKS], steps[WALKS];
    struct random random;
};

static inline void walk_begin(struct walks *w, size_t i)
{
    w->place[i] = 1 + (int)random_below(&w->random, PLACES - 2);
    w->steps[i] = 0;
    w->terminated[i] = w->truncated[i] = 0;
    w->rewards[i] = 0;
}

static inline void walks_step(void *self)
{
    struct walks *w = self;
    for (size_t i = 0; i < WALKS; i++) {
        if (w->terminated[i] || w->truncated[i]) {
            walk_begin(w, i);
        } else {
            if (random_uniform(&w->random) < walk_success)
                w->place[i] += w->actions[i] ? 1 : -1;
            bool right = w->place[i] == PLACES - 1;
            w->terminated[i] = right || w->place[i] == 0;
            w->truncated[i] = !w->terminated[i] && ++w->steps[i] == WALK_STEPS;
            w->rewards[i] = w->terminated[i] ? (float)walk_pay[right] : 0;
        }
        w->observations[i][0] = (float)w->place[i];
    }
}

static inline void walks_init(struct walks *w, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    w->random = random_stream(seed, 79);
    w->world = (struct rl_world){
        .rows = WALKS,
        .observation_size = 1,
        .observations = w->observations[0],
        .terminated = w->terminated,
        .truncated = w->truncated,
        .rewards = w->rewards,
        .actions = w->actions,
        .step = walks_step,
        .self = w,
    };
    rl_heads_init(&w->world.heads, (size_t[]){2}, 1, NULL);
    for (size_t i = 0; i < WALKS; i++) {
        walk_begin(w, i);
        w->observations[i][0] = (float)w->place[i];
    }
}

/* What each action is worth in each place, by value iteration. */
static inline void walks_solve(double gamma, double worth[PLACES][2])
{
    memset(worth, 0, sizeof(double) * PLACES * 2);
    for (int round = 0; round < 1000; round++)
        for (int s = 1; s < PLACES - 1; s++)
            for (int a = 0; a < 2; a++) {
                int to = a ? s + 1 : s - 1;
                bool over = to == 0 || to == PLACES - 1;
                double stay = gamma * fmax(worth[s][0], worth[s][1]);
                double go = over ? walk_pay[a] : gamma * fmax(worth[to][0], worth[to][1]);
                worth[s][a] = walk_success * go + (1 - walk_success) * stay;
            }
}

#endif
