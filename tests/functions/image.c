#include "functions.h"

/* The two source pixels beside a target pixel, and how far it lies towards the second. */
struct neighbours {
    unsigned first;
    unsigned second;
    float share;
};

static struct neighbours find_neighbours(unsigned target, unsigned target_size,
                                         unsigned source_size)
{
    /* Pixel centres lie at a half, hence the shift there and back. */
    float place = ((float)target + 0.5f) * (float)source_size / (float)target_size - 0.5f;
    if (place < 0)
        place = 0;

    unsigned first = (unsigned)place;
    unsigned second = first + 1 < source_size ? first + 1 : first;
    return (struct neighbours){first, second, place - (float)first};
}

static float mix(unsigned char a, unsigned char b, float share)
{
    return (float)a + share * (float)(b - a);
}

static void resize_pixel(const struct image *from, struct neighbours x, struct neighbours y,
                         unsigned char *out)
{
    const unsigned char *upper = from->rgb + (size_t)3 * y.first * from->width;
    const unsigned char *lower = from->rgb + (size_t)3 * y.second * from->width;

    for (unsigned colour = 0; colour < 3; colour++) {
        size_t left = (size_t)3 * x.first + colour, right = (size_t)3 * x.second + colour;
        float top = mix(upper[left], upper[right], x.share);
        float bottom = mix(lower[left], lower[right], x.share);
        out[colour] = (unsigned char)(top + y.share * (bottom - top) + 0.5f);
    }
}

void resize_image(const struct image *from, const struct image *to)
{
    unsigned char *out = to->rgb;

    for (unsigned row = 0; row < to->height; row++) {
        struct neighbours y = find_neighbours(row, to->height, from->height);
        for (unsigned column = 0; column < to->width; column++, out += 3)
            resize_pixel(from, find_neighbours(column, to->width, from->width), y, out);
    }
}
