#include <stdlib.h>

#include "functions.h"

/* Bit i stands for the odd number 2i + 1, which halves the memory and the work. */
static int is_composite(const unsigned char *sieve, unsigned long i)
{
    return sieve[i / 8] >> i % 8 & 1;
}

static void mark_multiples(unsigned char *sieve, unsigned long odds, unsigned long prime)
{
    for (unsigned long i = prime * prime / 2; i < odds; i += prime)
        sieve[i / 8] = (unsigned char)(sieve[i / 8] | 1u << i % 8);
}

long count_primes(unsigned long limit)
{
    if (limit <= 2)
        return 0;

    unsigned long odds = limit / 2;
    unsigned char *sieve = calloc(odds / 8 + 1, 1);
    if (sieve == NULL)
        return -1;

    long count = 1; /* for 2, which the sieve leaves out; in its place 1 is skipped */
    for (unsigned long i = 1; i < odds; i++) {
        if (is_composite(sieve, i))
            continue;
        count++;
        unsigned long prime = 2 * i + 1;
        if (prime <= limit / prime)
            mark_multiples(sieve, odds, prime);
    }
    free(sieve);
    return count;
}
