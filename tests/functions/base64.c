#include "functions.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode_group(unsigned bits, char *out)
{
    out[0] = alphabet[bits >> 18 & 63];
    out[1] = alphabet[bits >> 12 & 63];
    out[2] = alphabet[bits >> 6 & 63];
    out[3] = alphabet[bits & 63];
}

static char *encode_rest(const unsigned char *data, size_t length, char *out)
{
    unsigned bits = (unsigned)data[0] << 16;
    if (length == 2)
        bits |= (unsigned)data[1] << 8;
    encode_group(bits, out);
    out[3] = '=';
    if (length == 1)
        out[2] = '=';
    return out + 4;
}

size_t base64_encode(const unsigned char *data, size_t length, char *out)
{
    char *start = out;

    for (; length >= 3; data += 3, length -= 3, out += 4)
        encode_group((unsigned)data[0] << 16 | (unsigned)data[1] << 8 | data[2], out);
    if (length > 0)
        out = encode_rest(data, length, out);
    *out = '\0';
    return (size_t)(out - start);
}
