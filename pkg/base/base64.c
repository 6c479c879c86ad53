/* Base64, as of RFC 4648. */
#include "base/base.h"

#include <openssl/evp.h>
#include <string.h>

char *base64_encode(const void *data, size_t len)
{
    char *out = xcalloc(len / 3 * 4 + 5, 1);
    EVP_EncodeBlock((unsigned char *)out, data, (int)len);
    return out;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char *base64_decode(const char *text, size_t *len)
{
    char *out = xcalloc(strlen(text) / 4 * 3 + 4, 1);
    size_t digits = 0, padding = 0, n = 0;
    uint32_t bits = 0;
    for (const char *p = text; *p; p++) {
        int digit = base64_digit(*p);
        if (*p == '\n' || *p == '\r')
            continue;
        padding += *p == '=';
        if ((digit < 0 && *p != '=') || (digit >= 0 && padding > 0))
            goto wrong;
        bits = bits << 6 | (uint32_t)(digit < 0 ? 0 : digit);
        if (++digits % 4 == 0) {
            out[n++] = (char)(bits >> 16);
            out[n++] = (char)(bits >> 8);
            out[n++] = (char)bits;
        }
    }
    if (digits % 4 != 0 || padding > 2)
        goto wrong;
    *len = n - padding;
    out[*len] = '\0';
    return out;
wrong:
    free(out);
    return NULL;
}
