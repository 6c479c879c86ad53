/* JSON as RFC 8259 has it, nothing more: no comments, no trailing commas, valid UTF-8. */
#include "prometheus/scan.h"

#include <math.h>
#include <string.h>

void scan_init(struct scan *s, const char *data, size_t len)
{
    *s = (struct scan){.begin = data, .at = data, .end = data + len, .text = ""};
}

void scan_free(struct scan *s)
{
    free(s->unescaped);
    s->unescaped = NULL;
}

int scan_fail(struct scan *s, const char *problem)
{
    if (!s->problem)
        s->problem = problem;
    return -1;
}

char scan_peek(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
    return s->at < s->end ? *s->at : '\0';
}

int scan_end(struct scan *s)
{
    scan_peek(s);
    return s->at == s->end ? 0 : scan_fail(s, "something follows the end");
}

bool scan_is(const struct scan *s, const char *text)
{
    return strlen(text) == s->text_len && memcmp(text, s->text, s->text_len) == 0;
}

/* --- objects and arrays -------------------------------------------------------------------- */
int scan_begin(struct scan *s, char open)
{
    if (scan_peek(s) != open)
        return scan_fail(s, open == '{' ? "an object was expected" : "an array was expected");
    if (++s->depth > SCAN_MAX_DEPTH)
        return scan_fail(s, "nested too deep");
    s->at++;
    if (scan_peek(s) != (open == '{' ? '}' : ']'))
        return 1;
    s->at++;
    s->depth--;
    return 0;
}

int scan_next(struct scan *s, char close)
{
    char c = scan_peek(s);
    if (c != ',' && c != close)
        return scan_fail(s, s->at == s->end ? "cut short" : "a comma or the end was expected");
    s->at++;
    if (c == ',')
        return 1;
    s->depth--;
    return 0;
}

int scan_name(struct scan *s)
{
    if (scan_string(s) < 0)
        return -1;
    if (scan_peek(s) != ':')
        return scan_fail(s, "a colon was expected");
    s->at++;
    return 0;
}

/* --- strings ------------------------------------------------------------------------------- */
/* The length of the valid UTF-8 character at `at`, or 0: no overlong forms, no surrogates, nothing
 * beyond U+10FFFF. */
static size_t utf8_length(const char *at, const char *end)
{
    const unsigned char *c = (const unsigned char *)at;
    size_t len = c[0] < 0x80   ? 1
                 : c[0] < 0xc2 ? 0
                 : c[0] < 0xe0 ? 2
                 : c[0] < 0xf0 ? 3
                 : c[0] < 0xf5 ? 4
                               : 0;
    if (len > (size_t)(end - at))
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    return len;
}

static size_t utf8_put(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[len] | code);
    return len;
}

static int hex4(struct scan *s, uint32_t *code)
{
    if (s->end - s->at < 4)
        return scan_fail(s, "cut short");
    *code = 0;
    for (int i = 0; i < 4; i++) {
        char c = *s->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return scan_fail(s, "a \\u needs four hexadecimal digits");
        *code = *code << 4 | digit;
    }
    return 0;
}

/* Behind "\u". A NUL, which a pod may well put into a label, must not end the string nor make the
 * answer useless for everybody else: it becomes U+FFFD. */
static int unescape_unicode(struct scan *s, char *out, size_t *len)
{
    uint32_t code, low;
    if (hex4(s, &code) < 0)
        return -1;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || s->end - s->at < 2 || s->at[0] != '\\' || s->at[1] != 'u')
            return scan_fail(s, "half a surrogate pair");
        s->at += 2;
        if (hex4(s, &low) < 0)
            return -1;
        if (low < 0xdc00 || low >= 0xe000)
            return scan_fail(s, "half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *len += utf8_put(out + *len, code ? code : 0xfffd);
    return 0;
}

static int unescape(struct scan *s, char *out, size_t *len)
{
    static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    s->at++;
    if (s->at == s->end)
        return scan_fail(s, "cut short");
    char c = *s->at++;
    if (c == 'u')
        return unescape_unicode(s, out, len);
    const char *letter = c ? strchr(letters, c) : NULL;
    if (!letter)
        return scan_fail(s, "an escape that JSON does not have");
    out[(*len)++] = meaning[letter - letters];
    return 0;
}

/* Passes over plain characters; at the end stands a quote, a backslash, or what is wrong. */
static void plain_run(struct scan *s)
{
    while (s->at < s->end) {
        unsigned char c = (unsigned char)*s->at;
        if (c == '"' || c == '\\' || c < 0x20)
            return;
        size_t len = c < 0x80 ? 1 : utf8_length(s->at, s->end);
        if (len == 0)
            return;
        s->at += len;
    }
}

static int string_fail(struct scan *s)
{
    if (s->at == s->end)
        return scan_fail(s, "cut short");
    return scan_fail(s, (unsigned char)*s->at < 0x20 ? "a control character in a string"
                                                     : "invalid UTF-8 in a string");
}

/* Makes room for what the rest of the string can become at most: no escape is longer than what it
 * stands for. start is where the string begins; its closing quote is not known yet. */
static void unescape_room(struct scan *s, const char *start)
{
    size_t need = (size_t)(s->at - start), most = (size_t)(s->end - start);
    while (need < most && start[need] != '"')
        need += start[need] == '\\' ? 2 : 1;
    if (need > s->unescaped_cap) {
        s->unescaped = xrealloc(s->unescaped, need, 1);
        s->unescaped_cap = need;
    }
}

int scan_string(struct scan *s)
{
    if (scan_peek(s) != '"')
        return scan_fail(s, "a string was expected");
    const char *start = ++s->at;
    plain_run(s);
    s->text = start;
    s->text_len = (size_t)(s->at - start);
    if (s->at < s->end && *s->at == '\\') {
        unescape_room(s, start);
        memcpy(s->unescaped, start, s->text_len);
        while (s->at < s->end && *s->at == '\\') {
            if (unescape(s, s->unescaped, &s->text_len) < 0)
                return -1;
            const char *run = s->at;
            plain_run(s);
            memcpy(s->unescaped + s->text_len, run, (size_t)(s->at - run));
            s->text_len += (size_t)(s->at - run);
        }
        s->text = s->unescaped;
    }
    if (s->at == s->end || *s->at != '"')
        return string_fail(s);
    s->at++;
    return 0;
}

/* --- numbers and the rest ------------------------------------------------------------------ */
static const char *digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Where the number that starts at `at` ends; NULL when there is none. */
static const char *number_end(const char *at, const char *end)
{
    if (at < end && *at == '-')
        at++;
    const char *after = digits(at, end);
    if (after == at || (*at == '0' && after != at + 1))
        return NULL;
    at = after;
    if (at < end && *at == '.') {
        after = digits(at + 1, end);
        if (after == at + 1)
            return NULL;
        at = after;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        after = digits(at, end);
        if (after == at)
            return NULL;
        at = after;
    }
    return at;
}

int scan_parse_number(const char *text, size_t len, double *value)
{
    char copy[SCAN_MAX_NUMBER + 1]; /* strtod wants a terminator */
    if (len > SCAN_MAX_NUMBER || number_end(text, text + len) != text + len)
        return -1;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *value = strtod(copy, NULL);
    return isfinite(*value) ? 0 : -1;
}

int scan_number(struct scan *s, double *value)
{
    scan_peek(s);
    const char *end = number_end(s->at, s->end);
    if (!end || scan_parse_number(s->at, (size_t)(end - s->at), value) < 0)
        return scan_fail(s, "a number was expected");
    s->at = end;
    return 0;
}

static int skip_word(struct scan *s, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
        return scan_fail(s, "a value was expected");
    s->at += len;
    return 0;
}

static int skip_members(struct scan *s, char open, char close)
{
    int more = scan_begin(s, open);
    while (more > 0) {
        if ((open == '{' && scan_name(s) < 0) || scan_skip(s) < 0)
            return -1;
        more = scan_next(s, close);
    }
    return more;
}

int scan_skip(struct scan *s)
{
    double ignored;
    switch (scan_peek(s)) {
    case '{':
        return skip_members(s, '{', '}');
    case '[':
        return skip_members(s, '[', ']');
    case '"':
        return scan_string(s);
    case 't':
        return skip_word(s, "true");
    case 'f':
        return skip_word(s, "false");
    case 'n':
        return skip_word(s, "null");
    default:
        return scan_number(s, &ignored);
    }
}

void scan_quote(const char *data, size_t len, char *out, size_t size)
{
    const char *end = data + len;
    size_t used = 0;
    while (data < end) {
        size_t n = utf8_length(data, end);
        bool plain = n > 0 && (unsigned char)*data >= 0x20 && *data != 0x7f;
        if (used + (plain ? n : 1) >= size)
            break;
        if (plain)
            memcpy(out + used, data, n);
        else
            out[used] = n > 0 ? ' ' : '?';
        used += plain ? n : 1;
        data += n > 0 ? n : 1;
    }
    out[used] = '\0';
}
