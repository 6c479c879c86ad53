/* A strict pull scanner for JSON, private to this package: an answer of 30 MB is read straight into
 * its final form, without a tree of ten times its size in between.
 *
 *   int more = scan_begin(s, '{');
 *   while (more > 0) {
 *       if (scan_name(s) < 0) ...          the name is in s->text
 *       ... take the value with scan_string, scan_number, scan_begin or scan_skip ...
 *       more = scan_next(s, '}');
 *   }
 *
 * Every function returns a negative number once the input is wrong; problem and at then say what
 * and where. */
#ifndef FAASRL_PROMETHEUS_SCAN_H
#define FAASRL_PROMETHEUS_SCAN_H

#include "base/base.h"

#define SCAN_MAX_DEPTH  32
#define SCAN_MAX_NUMBER 400 /* Go prints the least double with 'f' in 326 bytes */

struct scan {
    const char *begin, *at, *end;
    const char *text; /* the last string, not terminated; valid until the next one */
    size_t text_len;
    char *unescaped; /* where a string with escapes is put together */
    size_t unescaped_cap;
    int depth;
    const char *problem; /* NULL while all is well */
};

void scan_init(struct scan *s, const char *data, size_t len);
void scan_free(struct scan *s);
#define cleanup_scan __attribute__((cleanup(scan_free)))

int scan_fail(struct scan *s, const char *problem); /* keeps the first problem; returns -1 */
char scan_peek(struct scan *s);                     /* past white space; '\0' at the end */
int scan_begin(struct scan *s, char open);          /* 1: something follows, 0: empty */
int scan_next(struct scan *s, char close);          /* 1: another one follows, 0: closed */
int scan_name(struct scan *s);                      /* of a member, with its colon */
int scan_string(struct scan *s);
int scan_number(struct scan *s, double *value);
int scan_skip(struct scan *s); /* any one value */
int scan_end(struct scan *s);  /* nothing but white space may follow */
bool scan_is(const struct scan *s, const char *text);

/* A number as JSON has it, which must take the whole text and be finite. */
int scan_parse_number(const char *text, size_t len, double *value);
/* For messages: at most size - 1 bytes of valid UTF-8 without control characters. */
void scan_quote(const char *data, size_t len, char *out, size_t size);

#endif
