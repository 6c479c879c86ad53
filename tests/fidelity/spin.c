/* Spins until it is killed: `spin FILE`. At the lowest priority it keeps a core from sleeping, and
 * tells how fast that core is: FILE has, as two native 64-bit numbers, the rounds of a fixed work
 * done so far and the nanoseconds of CPU they took. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 4096, ROUNDS_PER_LOOK = 64 };

struct tally {
    volatile uint64_t rounds, cpu_ns;
};

static struct tally *open_tally(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct tally)) != 0)
        return NULL;
    void *at = mmap(NULL, sizeof(struct tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static uint64_t cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Multiplications, loads and branches that cannot be foretold, as in any program. */
static uint32_t work(uint32_t *words, uint32_t x)
{
    for (size_t i = 0; i < WORDS; i++) {
        x = x * 1664525 + words[i];
        if (x & 0x10000)
            words[x % WORDS] ^= x >> 7;
    }
    return x;
}

int main(int argc, char **argv)
{
    struct tally *tally = argc == 2 ? open_tally(argv[1]) : NULL;
    static uint32_t words[WORDS];
    uint32_t x = 1;

    if (tally == NULL) {
        fputs("usage: spin FILE\n", stderr);
        return 2;
    }
    for (uint64_t rounds = ROUNDS_PER_LOOK;; rounds += ROUNDS_PER_LOOK) {
        for (int i = 0; i < ROUNDS_PER_LOOK; i++)
            x = work(words, x);
        words[0] = x;
        tally->rounds = rounds;
        tally->cpu_ns = cpu_ns();
    }
}
