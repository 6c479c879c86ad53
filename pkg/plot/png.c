/* Pixels as PNG. A plot is mostly white, each row mostly as the one above, so that runs of the same
 * difference are all that is looked for; it is about 100 times smaller then. */
#include "canvas.h"

#include <string.h>

#include "base/checksum.h"

/* --- deflate --------------------------------------------------------------------------------- */
enum { END_OF_BLOCK = 256, SHORTEST = 3, LONGEST = 258 };

struct bits {
    uint8_t *bytes;
    size_t len;
    uint64_t waiting;
    unsigned waiting_count;
};

static void put(struct bits *b, uint32_t value, unsigned count)
{
    b->waiting |= (uint64_t)value << b->waiting_count;
    for (b->waiting_count += count; b->waiting_count >= 8; b->waiting_count -= 8) {
        b->bytes[b->len++] = (uint8_t)b->waiting;
        b->waiting >>= 8;
    }
}

/* Codes go with their highest bit first, numbers with their lowest. */
static void put_code(struct bits *b, uint32_t code, unsigned count)
{
    while (count-- > 0)
        put(b, code >> count & 1, 1);
}

/* A symbol in the code that needs no table in the file. */
static void put_symbol(struct bits *b, uint32_t symbol)
{
    if (symbol < 144)
        put_code(b, 0x30 + symbol, 8);
    else if (symbol < 256)
        put_code(b, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(b, symbol - 256, 7);
    else
        put_code(b, 0xc0 + symbol - 280, 8);
}

/* The bytes of so far back once more; symbols stand for ranges of lengths, 4 for each power of 2.
 */
static void put_run(struct bits *b, size_t length, size_t back)
{
    uint32_t n = (uint32_t)(length - SHORTEST), extra = 0;
    while (n >> extra >= 8)
        extra++;
    if (length == LONGEST) {
        put_symbol(b, 285);
    } else {
        put_symbol(b, n < 8 ? 257 + n : 261 + 4 * extra + (n >> extra & 3));
        put(b, n & ((1u << extra) - 1), extra);
    }
    put_code(b, (uint32_t)back - 1, 5); /* up to 4 */
}

static size_t run_length(const uint8_t *data, size_t at, size_t len, size_t back)
{
    size_t most = len - at < LONGEST ? len - at : LONGEST, n = 0;
    while (at >= back && n < most && data[at + n] == data[at + n - back])
        n++;
    return n;
}

/* One block: bytes, and runs of the byte or the pixel before. */
static void deflate(struct bits *b, const uint8_t *data, size_t len)
{
    put(b, 1, 1); /* the last block */
    put(b, 1, 2); /* in the fixed code */
    for (size_t at = 0; at < len;) {
        size_t bytes = run_length(data, at, len, 1), pixels = run_length(data, at, len, 3);
        size_t run = bytes >= pixels ? bytes : pixels;
        if (run >= SHORTEST)
            put_run(b, run, bytes >= pixels ? 1 : 3);
        else
            put_symbol(b, data[at]);
        at += run >= SHORTEST ? run : 1;
    }
    put_symbol(b, END_OF_BLOCK);
    put(b, 0, (8 - b->waiting_count) % 8);
}

/* --- chunks ---------------------------------------------------------------------------------- */
static void store(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void write_chunk(const char *type, const uint8_t *data, size_t len, FILE *out)
{
    uint8_t number[4];
    store(number, (uint32_t)len);
    fwrite(number, 1, 4, out);
    fwrite(type, 1, 4, out);
    fwrite(data, 1, len, out);
    store(number, checksum_crc32(checksum_crc32(0, type, 4), data, len));
    fwrite(number, 1, 4, out);
}

/* What differs from the row above, after the byte that says so. */
static uint8_t *filter(const uint8_t *pixels, size_t row, size_t height)
{
    enum { UP = 2 };
    uint8_t *out = xcalloc(height, row + 1), *to = out;
    for (size_t y = 0; y < height; y++) {
        *to++ = UP;
        for (size_t i = 0; i < row; i++, pixels++)
            *to++ = (uint8_t)(*pixels - (y > 0 ? pixels[-(ptrdiff_t)row] : 0));
    }
    return out;
}

void png_write(const uint8_t *pixels, size_t width, size_t height, FILE *out)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t header[13] = {[8] = 8, [9] = 2}; /* 8 bits each of red, green and blue */
    size_t len = height * (3 * width + 1);
    cleanup_free uint8_t *rows = filter(pixels, 3 * width, height);
    struct bits b = {.bytes = xcalloc(len / 8 * 9 + 64, 1)}; /* no code has more than 9 bits */
    put(&b, 0x0178, 16);                                     /* zlib's header */
    deflate(&b, rows, len);
    store(b.bytes + b.len, checksum_adler32(1, rows, len));
    store(header, (uint32_t)width);
    store(header + 4, (uint32_t)height);
    fwrite(signature, 1, sizeof(signature), out);
    write_chunk("IHDR", header, sizeof(header), out);
    write_chunk("IDAT", b.bytes, b.len + 4, out);
    write_chunk("IEND", signature, 0, out);
    free(b.bytes);
}
