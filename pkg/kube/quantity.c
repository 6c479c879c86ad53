/* Quantities as k8s.io/apimachinery reads and prints them, oddities of its grammar included ("k" is
 * zero, "1." is one). Where its MilliValue() and Value() wrap around or give 0 because the result
 * does not fit, ours is the nearest int64. */
#include "kube/kube.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define QUANTITY_MAX_TEXT 1024

/* The digits as a whole number, times 10^exponent. */
struct decimal {
    bool negative;
    bool binary; /* written with a suffix such as Mi: Kubernetes holds those to ±(2^63-1) */
    size_t len;
    int64_t exponent;
    unsigned char digits[QUANTITY_MAX_TEXT + 24]; /* 24: room for 2^60 more */
};

struct suffix {
    const char *text;
    int exponent; /* of ten, or the power of 1024 when binary */
    bool binary;
};

static const struct suffix suffixes[] = {
    {"", 0, false},   {"n", -9, false}, {"u", -6, false}, {"m", -3, false},
    {"k", 3, false},  {"M", 6, false},  {"G", 9, false},  {"T", 12, false},
    {"P", 15, false}, {"E", 18, false}, {"Ki", 1, true},  {"Mi", 2, true},
    {"Gi", 3, true},  {"Ti", 4, true},  {"Pi", 5, true},  {"Ei", 6, true},
};

static int parse_suffix(const char *text, int64_t *exponent, bool *binary)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (strcmp(suffixes[i].text, text) == 0) {
            *exponent = suffixes[i].exponent;
            *binary = suffixes[i].binary;
            return 0;
        }
    }
    if (*text != 'e' && *text != 'E')
        return -1;
    const char *digits = text + 1;
    digits += *digits == '+' || *digits == '-';
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return -1;
    errno = 0;
    *exponent = strtoll(text + 1, NULL, 10);
    *binary = false;
    return errno == ERANGE ? -1 : 0;
}

static void times_1024(struct decimal *d)
{
    unsigned carry = 0;
    for (size_t i = d->len; i-- > 0;) {
        carry += d->digits[i] * 1024u;
        d->digits[i] = (unsigned char)(carry % 10);
        carry /= 10;
    }
    unsigned char head[4] = {0};
    size_t n = 0;
    for (; carry; carry /= 10)
        head[n++] = (unsigned char)(carry % 10);
    memmove(d->digits + n, d->digits, d->len);
    for (size_t i = 0; i < n; i++)
        d->digits[i] = head[n - 1 - i];
    d->len += n;
}

/* Appends the digits at p without leading zeros; gives what follows them. */
static const char *take_digits(struct decimal *d, const char *p)
{
    for (; *p >= '0' && *p <= '9'; p++)
        if (d->len > 0 || *p != '0')
            d->digits[d->len++] = (unsigned char)(*p - '0');
    return p;
}

/* Without any digit Kubernetes takes the number as zero, but only on the way it takes for numbers
 * that are neither very small nor very large. */
static bool may_lack_digits(int64_t exponent, bool binary)
{
    return binary ? exponent <= 4 : exponent >= -9;
}

/* d comes zeroed. */
static int parse_decimal(const char *text, struct decimal *d, struct error *err)
{
    if (*text == '\0')
        return error_set(err, ERROR_INVALID, "an empty text is not a quantity");
    if (strlen(text) > QUANTITY_MAX_TEXT)
        return error_set(err, ERROR_TOO_LARGE, "a quantity of more than %d characters",
                         QUANTITY_MAX_TEXT);
    d->negative = *text == '-';
    const char *p = text + (*text == '-' || *text == '+'), *start = p;
    p = take_digits(d, p);
    bool digits = p > start;
    size_t decimals = 0;
    if (*p == '.') {
        start = p + 1;
        p = take_digits(d, start);
        decimals = (size_t)(p - start);
    }
    int64_t exponent;
    bool binary;
    if (parse_suffix(p, &exponent, &binary) < 0 ||
        (!digits && decimals == 0 && !may_lack_digits(exponent, binary)))
        return error_set(err, ERROR_INVALID,
                         "\"%.64s\" is not a quantity: expected a number such as 2, 0.5, 500m, "
                         "1.5G, 64Mi or 1e3",
                         text);
    for (int64_t i = 0; binary && i < exponent; i++)
        times_1024(d);
    d->binary = binary;
    d->exponent = binary ? 0 : exponent;
    /* An exponent near INT64_MIN must not wrap; below 4 * QUANTITY_MAX_TEXT it says "tiny" anyway.
     */
    if (d->exponent < -4 * QUANTITY_MAX_TEXT)
        d->exponent = -4 * QUANTITY_MAX_TEXT;
    if (d->exponent > 4 * QUANTITY_MAX_TEXT)
        d->exponent = 4 * QUANTITY_MAX_TEXT;
    d->exponent -= (int64_t)decimals;
    return 0;
}

/* v * 10 + digit, or limit when that is more. */
static uint64_t shift_in(uint64_t v, unsigned digit, uint64_t limit)
{
    return v > (limit - digit) / 10 ? limit : v * 10 + digit;
}

/* The number times 10^scale, rounded away from zero. */
static int64_t decimal_scaled(const struct decimal *d, int scale)
{
    uint64_t limit = (uint64_t)INT64_MAX + (d->negative && !d->binary), v = 0;
    int64_t whole = (int64_t)d->len + d->exponent + scale;
    bool fraction = false;
    for (size_t i = 0; i < d->len; i++) {
        if ((int64_t)i < whole)
            v = shift_in(v, d->digits[i], limit);
        else
            fraction = fraction || d->digits[i];
    }
    for (int64_t i = (int64_t)d->len; i < whole && v > 0 && v < limit; i++)
        v = shift_in(v, 0, limit);
    if (fraction && v < limit)
        v++;
    return (int64_t)(d->negative ? 0 - v : v);
}

int quantity_parse_milli(const char *text, int64_t *milli, struct error *err)
{
    struct decimal d = {0};
    if (parse_decimal(text, &d, err) < 0)
        return -1;
    *milli = decimal_scaled(&d, 3);
    return 0;
}

int quantity_parse_value(const char *text, int64_t *value, struct error *err)
{
    struct decimal d = {0};
    if (parse_decimal(text, &d, err) < 0)
        return -1;
    *value = decimal_scaled(&d, 0);
    return 0;
}

/* Divides by step as often as that leaves no rest and there is a suffix for it; not INT64_MIN,
 * which Kubernetes prints as it is since it would not read -8Ei back as the same. */
static void print_steps(int64_t value, int64_t step, const char *const suffix[], size_t suffixes_n,
                        char out[QUANTITY_SIZE])
{
    size_t i = 0;
    while (i + 1 < suffixes_n && value != 0 && value != INT64_MIN && value % step == 0) {
        value /= step;
        i++;
    }
    snprintf(out, QUANTITY_SIZE, "%" PRId64 "%s", value, value == 0 ? "" : suffix[i]);
}

void quantity_print_cpu(int64_t milli, char out[QUANTITY_SIZE])
{
    static const char *const suffix[] = {"m", "", "k", "M", "G", "T", "P"};
    print_steps(milli, 1000, suffix, ARRAY_LEN(suffix), out);
}

void quantity_print_memory(int64_t bytes, char out[QUANTITY_SIZE])
{
    static const char *const decimal[] = {"", "k"};
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    if (bytes > -1024 && bytes < 1024)
        print_steps(bytes, 1000, decimal, ARRAY_LEN(decimal), out);
    else
        print_steps(bytes, 1024, binary, ARRAY_LEN(binary), out);
}
