/* The computations that the test functions serve. They are pure: no state, no input or output. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include <stddef.h>

#define BASE64_LENGTH(bytes) (((bytes) + 2) / 3 * 4)

/* Writes BASE64_LENGTH(length) characters and a final NUL; returns the number of characters. */
size_t base64_encode(const unsigned char *data, size_t length, char *out);

/* How many primes are less than `limit`; -1 without memory. */
long count_primes(unsigned long limit);

/* Returns the length of the whole HTML, as snprintf does, even where `capacity` cut it. */
size_t markdown_to_html(const char *markdown, char *html, size_t capacity);

/* From -1 (bad) over 0 (neutral) to 1 (good). */
double sentiment(const char *text);

struct image {
    unsigned width;
    unsigned height;
    unsigned char *rgb;
};

/* Fills `to`, whose size and memory are given, with `from` scaled bilinearly. */
void resize_image(const struct image *from, const struct image *to);

#endif
