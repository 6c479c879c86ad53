#include "base/checksum.h"

/* Bit by bit: what is summed up here is small. */
static uint32_t crc(uint32_t polynomial, uint32_t so_far, const uint8_t *data, size_t len)
{
    uint32_t rest = ~so_far;
    for (size_t i = 0; i < len; i++) {
        rest ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? polynomial : 0);
    }
    return ~rest;
}

uint32_t checksum_crc32(uint32_t so_far, const void *data, size_t len)
{
    return crc(0xedb88320, so_far, data, len);
}

uint32_t checksum_crc32c(uint32_t so_far, const void *data, size_t len)
{
    return crc(0x82f63b78, so_far, data, len);
}

uint32_t checksum_adler32(uint32_t so_far, const void *data, size_t len)
{
    enum { PRIME = 65521 };
    const uint8_t *bytes = data;
    uint32_t a = so_far & 0xffff, b = so_far >> 16;
    for (size_t i = 0; i < len; i++) {
        a = (a + bytes[i]) % PRIME;
        b = (b + a) % PRIME;
    }
    return b << 16 | a;
}
