#include "workloads.h"

#include <stdlib.h>

#include "functions.h"

static const char article[] =
    "# Scaling functions\n"
    "\n"
    "A *function* runs in a **pod**; its share of the `cpu` decides how long a call takes.\n"
    "See [the notes](https://example.org/notes?a=1&b=2) for \"more\" on that.\n"
    "\n"
    "## Ways to scale\n"
    "\n"
    "- **out**: more pods, each as large as before\n"
    "- **up**: the same pods with *more* `cpu`\n"
    "- both at once\n"
    "\n"
    "1. measure the latency\n"
    "2. compare it with the goal\n"
    "3. act, then **wait** for the effect\n"
    "\n"
    "> A pod that waits for cpu\n"
    "> answers nobody.\n"
    "\n"
    "```\n"
    "if (latency > goal && replicas < most)\n"
    "    replicas++;\n"
    "```\n"
    "\n"
    "---\n"
    "\n"
    "### In short\n"
    "\n"
    "Small pods are *cheap*, large pods are *quick*, and `a < b` is **not** a plan.\n";

static const char review[] =
    "We had a wonderful stay. The room was very clean and quite comfortable, the breakfast "
    "delicious, and the people at the desk were friendly and really helpful. I would not say "
    "that the street is calm: it was noisy at night, and on one day the lift was broken. That "
    "was annoying, but never a real problem. The worst was the train back, late and extremely "
    "slow, with a rude guard and dirty seats. Still, the town is beautiful, the food is good, "
    "and we love the old harbour. Not a perfect week, yet a great one, and we were happy and "
    "sad at once when it ended. Without the noise it would be the best place we know.";

static bool run_base64(unsigned long kibibytes, double *result)
{
    /* A multiple of three, so that the blocks' codes join to the code of the whole. */
    unsigned char block[3072];
    char code[BASE64_LENGTH(sizeof(block)) + 1];
    unsigned checksum = 0;

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (unsigned char)(i * 31);
    for (size_t left = kibibytes * 1024, length; left > 0; left -= length) {
        length = left < sizeof(block) ? left : sizeof(block);
        block[0] = (unsigned char)left;
        size_t code_length = base64_encode(block, length, code);
        for (size_t i = 0; i < code_length; i++)
            checksum += (unsigned char)code[i];
    }
    *result = checksum;
    return true;
}

static bool run_primes(unsigned long limit, double *result)
{
    long count = count_primes(limit);
    *result = (double)count;
    return count >= 0;
}

static bool run_markdown(unsigned long times, double *result)
{
    char html[2 * sizeof(article)];
    size_t length = 0;

    while (times-- > 0)
        length += markdown_to_html(article, html, sizeof(html));
    *result = (double)length;
    return true;
}

static bool run_sentiment(unsigned long times, double *result)
{
    double sum = 0;

    for (unsigned long i = 0; i < times; i++)
        sum += sentiment(review);
    *result = sum / (double)times;
    return true;
}

static void paint(const struct image *image)
{
    unsigned char *out = image->rgb;

    for (unsigned y = 0; y < image->height; y++) {
        for (unsigned x = 0; x < image->width; x++) {
            *out++ = (unsigned char)x;
            *out++ = (unsigned char)y;
            *out++ = (unsigned char)(x ^ y);
        }
    }
}

static double mean(const struct image *image)
{
    size_t size = (size_t)3 * image->width * image->height;
    unsigned long sum = 0;

    for (size_t i = 0; i < size; i++)
        sum += image->rgb[i];
    return (double)sum / (double)size;
}

static bool run_image(unsigned long times, double *result)
{
    enum { WIDTH = 256, HEIGHT = 192, SHRINK = 2, BYTES = 3 * WIDTH * HEIGHT };
    unsigned char *memory = malloc(BYTES + BYTES / (SHRINK * SHRINK));
    if (memory == NULL)
        return false;

    struct image picture = {WIDTH, HEIGHT, memory};
    struct image thumbnail = {WIDTH / SHRINK, HEIGHT / SHRINK, memory + BYTES};
    double sum = 0;
    paint(&picture);
    for (unsigned long i = 0; i < times; i++) {
        resize_image(&picture, &thumbnail);
        sum += mean(&thumbnail);
    }
    free(memory);
    *result = sum / (double)times;
    return true;
}

const struct workload workloads[WORKLOAD_COUNT] = {
    {"base64", 4096, 1048576, run_base64},   {"primes", 2000000, 4000000, run_primes},
    {"markdown", 500, 100000, run_markdown}, {"sentiment", 500, 100000, run_sentiment},
    {"image", 20, 5000, run_image},
};
