/* Text from outside: read with a bound, and numbers in it. Where in the text something is wrong is
 * only counted once it is, so that reading stays fast. */
#include "trace/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NUMBER   64 /* characters */
#define FIRST_BUFFER ((size_t)1 << 16)

/* --- files ---------------------------------------------------------------------------------- */
static int check_kind(const struct stat *st, const struct trace_text *text, struct error *err)
{
    if (S_ISREG(st->st_mode) && st->st_size > (off_t)TEXT_MAX_BYTES)
        return text_fail(text, NULL, err, "the file has %lld bytes, at most %zu are read",
                         (long long)st->st_size, TEXT_MAX_BYTES);
    if (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode))
        return 0;
    return text_fail(text, NULL, err, "%s where a file is needed",
                     S_ISDIR(st->st_mode) ? "a directory" : "a device or socket");
}

static ssize_t read_some(int fd, char *into, size_t size)
{
    ssize_t n;
    do
        n = read(fd, into, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static int read_all(int fd, size_t expected, struct trace_text *out, struct error *err)
{
    size_t cap = expected + 1 > FIRST_BUFFER ? expected + 1 : FIRST_BUFFER, len = 0;
    cleanup_free char *data = xrealloc(NULL, cap, 1);
    ssize_t n;
    while ((n = read_some(fd, data + len, cap - len)) > 0) {
        len += (size_t)n;
        if (len > TEXT_MAX_BYTES)
            return text_fail(out, NULL, err, "the file has more than the %zu bytes that are read",
                             TEXT_MAX_BYTES);
        if (len == cap)
            data = xrealloc(data, cap *= 2, 1);
    }
    if (n < 0)
        return error_set(err, ERROR_SYSTEM, "cannot read %s: %s", out->file, strerror(errno));
    out->data = data;
    out->len = len;
    data = NULL;
    return 0;
}

int text_read(const char *path, struct trace_text *out, struct error *err)
{
    *out = (struct trace_text){.file = path};
    /* Not to wait for somebody who writes into a named pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_SYSTEM,
                         "cannot open %s: %s", path, strerror(errno));
    struct stat st;
    int result;
    if (fstat(fd, &st) < 0 || fcntl(fd, F_SETFL, 0) < 0)
        result = error_set(err, ERROR_SYSTEM, "cannot read %s: %s", path, strerror(errno));
    else
        result = check_kind(&st, out, err);
    if (result == 0)
        result = read_all(fd, S_ISREG(st.st_mode) ? (size_t)st.st_size : 0, out, err);
    close(fd);
    return result;
}

/* --- places --------------------------------------------------------------------------------- */
const char *text_begin(const struct trace_text *text)
{
    bool marked = text->len >= 3 && memcmp(text->data, "\xef\xbb\xbf", 3) == 0;
    return text->data + (marked ? 3 : 0);
}

const char *text_end(const struct trace_text *text)
{
    const char *begin = text_begin(text), *end = text->data + text->len;
    while (end > begin && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return end;
}

int text_fail(const struct trace_text *text, const char *at, struct error *err, const char *fmt,
              ...)
{
    size_t line = 1, column = 1;
    if (at) {
        const char *start = text_begin(text), *next;
        while ((next = memchr(start, '\n', (size_t)(at - start)))) {
            start = next + 1;
            line++;
        }
        for (; start < at; start++)
            column += (*start & 0xc0) != 0x80; /* a character begins */
    }
    char message[sizeof(((struct error *)0)->message)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return error_set(err, ERROR_MALFORMED, "%s:%zu:%zu: %s", text->file, line, column, message);
}

const char *text_word(const char *at, const char *end, char out[TEXT_WORD_SIZE])
{
    size_t n = 0;
    for (; at < end && n < TEXT_WORD_SIZE - 1 && *at != ',' && *at != '\n' && *at != '\r'; at++)
        out[n++] = *at > ' ' && *at <= '~' ? *at : '?';
    out[n] = '\0';
    return out;
}

/* --- numbers -------------------------------------------------------------------------------- */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* All that can be part of a number, also with an exponent or of a length that needs strtod. */
static const char *long_number(const char **at, const char *end, double *out)
{
    char copy[MAX_NUMBER + 1];
    const char *p = *at;
    while (p < end && (is_digit(*p) || *p == '.'))
        p++;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '-' || *p == '+'))
            p++;
        while (p < end && is_digit(*p))
            p++;
    }
    size_t len = (size_t)(p - *at);
    if (len > MAX_NUMBER)
        return "is too long for a number";
    memcpy(copy, *at, len);
    copy[len] = '\0';
    char *behind;
    *out = strtod(copy, &behind);
    if (behind != copy + len)
        return "is not a number";
    *at = p;
    return NULL;
}

/* A whole number and a power of ten that are both exact as doubles give the nearest double. */
static bool short_number(const char **at, const char *end, double *out)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11};
    const char *p = *at, *point = NULL;
    uint64_t digits = 0;
    for (; p < end && p - *at < 12; p++) {
        if (is_digit(*p))
            digits = digits * 10 + (uint64_t)(*p - '0');
        else if (*p == '.' && !point)
            point = p;
        else
            break;
    }
    if (p < end && (is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E'))
        return false;
    *out = (double)digits / powers[point ? p - point - 1 : 0];
    *at = p;
    return true;
}

const char *text_number(const char **at, const char *end, double most, double *out)
{
    const char *p = *at;
    if (p == end || *p == ',' || *p == '\n' || *p == '\r')
        return "is missing";
    if (*p == '-' && p + 1 < end && is_digit(p[1]))
        return "is negative";
    if (!is_digit(*p) && !(*p == '.' && p + 1 < end && is_digit(p[1])))
        return "is not a number";
    if (!short_number(&p, end, out)) {
        const char *problem = long_number(&p, end, out);
        if (problem)
            return problem;
    }
    if (!(*out <= most))
        return "is too large";
    *at = p;
    return NULL;
}

int text_number_fail(const struct trace_text *text, const char *at, double most,
                     const char *problem, struct error *err)
{
    char word[TEXT_WORD_SIZE];
    text_word(at, text->data + text->len, word);
    if (*word == '\0')
        return text_fail(text, at, err, "a number from 0 to %g %s", most, problem);
    return text_fail(text, at, err, "\"%s\" %s: must be from 0 to %g", word, problem, most);
}
