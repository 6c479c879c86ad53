/* Random numbers: xoshiro256++, seeded by splitmix64. A stream is a value: copy it to go on alike.
 */
#ifndef FAASRL_BASE_RANDOM_H
#define FAASRL_BASE_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

struct random {
    uint64_t s[4];
};

static inline uint64_t random_mix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Streams with different seeds or numbers have nothing to do with each other. */
static inline struct random random_stream(uint64_t seed, uint64_t number)
{
    struct random r;
    uint64_t state = random_mix(&seed) ^ (number * 0xd1342543de82ef95u);
    for (int i = 0; i < 4; i++)
        r.s[i] = random_mix(&state);
    return r;
}

static inline uint64_t random_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static inline uint64_t random_bits(struct random *r)
{
    uint64_t *s = r->s, result = random_rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = random_rotl(s[3], 45);
    return result;
}

/* In [0, 1). */
static inline double random_uniform(struct random *r)
{
    return (double)(random_bits(r) >> 11) * 0x1p-53;
}

/* In [0, n), n > 0 and far below 2^64. */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)random_bits(r) * n) >> 64);
}

/* -log(u), u in (0, 1], to 1e-13. Not libm's, so that every machine draws the same numbers, and
 * because it costs no call. Only what every x86-64 can do with two numbers at once: a loop of it is
 * a vector. */
static inline double random_minus_log(double u)
{
    const double exact = 0x1p52; /* plus a small whole number: this has it in its lowest bits */
    uint64_t bits, exact_bits;
    memcpy(&bits, &u, sizeof(bits));
    memcpy(&exact_bits, &exact, sizeof(exact_bits));
    /* u = m * 2^(e - 1023) with m from sqrt(1/2) to sqrt(2) */
    uint64_t e = (bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu)) >> 52,
             e_bits = e | exact_bits;
    bits -= (e - 1023) << 52;
    double m, power;
    memcpy(&m, &bits, sizeof(m));
    memcpy(&power, &e_bits, sizeof(power));
    power -= exact + 1023;
    double s = (m - 1) / (m + 1), q = s * s;
    double tail =
        q *
        (1.0 / 3 +
         q * (1.0 / 5 +
              q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11 + q * (1.0 / 13 + q * (1.0 / 15)))))));
    return -(power * 0.6931471805599453 + 2 * s * (1 + tail));
}

/* With mean 1. */
static inline double random_exponential(struct random *r)
{
    return random_minus_log(1 - random_uniform(r));
}

static inline double random_normal(struct random *r)
{
    double radius = sqrt(2 * random_exponential(r));
    return radius * cos(6.283185307179586 * random_uniform(r));
}

#endif
