/* Errors, memory, bounded buffers, logging, clock and YAML: what every other package stands on. */
#ifndef FAASRL_BASE_H
#define FAASRL_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#ifndef FAASRL_NO_JSON /* the Python package of the simulator is built without jansson */
#include <jansson.h>
#endif

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))

/* --- errors ----------------------------------------------------------------------------------
 * A function that can fail takes `struct error *err` as its last argument and returns a negative
 * number (or NULL) on failure; err then holds a code and a sentence. On success err is untouched.
 * The message lives inside the struct, so an error never needs to be freed. */
enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID,   /* input that cannot be right; the message names the field */
    ERROR_MALFORMED, /* a file that is not what it should be; the message says where */
    ERROR_NOT_FOUND,
    ERROR_CONFLICT,  /* someone else changed it first */
    ERROR_FORBIDDEN, /* not allowed, or not authenticated */
    ERROR_GONE,      /* the resourceVersion is too old: list again */
    ERROR_BUSY,      /* told to wait (429, or 503 with Retry-After) */
    ERROR_TIMEOUT,
    ERROR_UNAVAILABLE, /* the other side cannot be reached, or answered 5xx */
    ERROR_TOO_LARGE,   /* a bound was reached */
    ERROR_SYSTEM,      /* a system call failed */
    ERROR_CANCELLED,   /* we ended it ourselves, at shutdown */
};

struct error {
    enum error_code code;
    char message[512];
};

/* Sets the error and returns -1, so that `return error_set(err, …)` is one line. */
int error_set(struct error *err, enum error_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Puts "context: " before the message; returns -1. */
int error_prefix(struct error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- memory ----------------------------------------------------------------------------------
 * Out of memory aborts: nothing sensible can be decided without memory, and the next replica of
 * the controller takes over. */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s); /* NULL gives NULL */
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);
void string_set(char **slot, const char *value); /* frees the old value, copies the new one */
/* Puts stars over each piece of the secret that the text repeats: eight characters or more of it,
 * as a cut quotation may have, or all of a shorter one. NULL, and what has less than four
 * characters, is no secret. */
void text_hide(char *text, const char *secret);
/* Gives the system back what is free: after work that needed much for a moment. */
void memory_trim(void);

void cleanup_free_(void *p);
#define cleanup_free __attribute__((cleanup(cleanup_free_)))

/* --- buffers ---------------------------------------------------------------------------------
 * A growable byte string that carries its hard maximum from birth. An append that would pass the
 * maximum fails and leaves the content as it was. The content is always NUL-terminated. */
struct buf {
    char *data; /* NULL until the first append */
    size_t len, cap, max;
};

void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory */
int buf_append(struct buf *b, const void *data, size_t len) __attribute__((warn_unused_result));
int buf_puts(struct buf *b, const char *s) __attribute__((warn_unused_result));
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((warn_unused_result));
void buf_drop_front(struct buf *b, size_t n);
const char *buf_string(const struct buf *b); /* "" when empty */
char *buf_take(struct buf *b); /* hands the memory over and empties the buffer; never NULL */
#define cleanup_buf __attribute__((cleanup(buf_free)))

/* --- map -------------------------------------------------------------------------------------
 * String keys (copied) to pointers (not owned). Adding or removing while walking is not allowed,
 * except map_remove_at of the entry the walk stands on. */
struct map {
    struct map_entry *entries;
    size_t cap, count;
};

void *map_get(const struct map *m, const char *key);
void *map_put(struct map *m, const char *key, void *value); /* gives back the value it replaced */
void *map_remove(struct map *m, const char *key);           /* gives back the value, or NULL */
/* Walk: for (size_t i = 0; (i = map_next(m, i, &key, &value)) != 0;) … ; key may be NULL. */
size_t map_next(const struct map *m, size_t at, const char **key, void **value);
/* Removes the entry the walk stands on and gives back where the walk goes on from (a later entry
 * may have moved into its place; one near the end of the table may be met a second time). */
size_t map_remove_at(struct map *m, size_t at);
void map_free(struct map *m, void (*free_value)(void *value)); /* free_value may be NULL */

/* --- clock -----------------------------------------------------------------------------------
 * Milliseconds. Everything that asks for the time asks here, so that tests and the simulated
 * cluster can be the ones who make it: once set, the clocks stand still but for clock_advance. */
int64_t clock_mono_ms(void);
int64_t clock_wall_ms(void);
/* How long ago another machine's wall clock said so. Ours may be wrong: one that is set back while
 * we run makes nothing younger, and what is further ahead than clocks differ was long ago. */
#define CLOCK_LONG_AGO_MS INT64_C(86400000)
int64_t clock_since_ms(int64_t wall_ms);
void clock_set(int64_t mono_ms, int64_t wall_ms);
void clock_advance(int64_t ms);
void clock_step_wall(int64_t ms); /* the wall clock alone, as when it is put right */
void clock_use_system(void);

#define RFC3339_SIZE 32
/* "2026-01-31T12:00:00Z", as Kubernetes' metav1.Time. */
void time_format(int64_t wall_ms, char out[RFC3339_SIZE]);
/* "2026-01-31T12:00:00.000000Z", as metav1.MicroTime. */
void time_format_micro(int64_t wall_ms, char out[RFC3339_SIZE]);
int time_parse(const char *text, int64_t *wall_ms); /* RFC 3339, with or without a fraction */
/* Go's duration syntax ("300ms", "1m30s", "1.5s"), in microseconds; refuses negative values. */
int duration_parse(const char *text, int64_t *us, struct error *err);
/* The shortest readable form: "412ms", "1.52s", "85us". */
void duration_print(double us, char out[24]);

/* --- log -------------------------------------------------------------------------------------
 *   log_info("scaled", log_str("mpa", key), log_int("replicas", n));
 * writes one line to stderr, logfmt or JSON. */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_NUM } type;
    const char *str;
    int64_t i;
    double num;
};

#define log_str(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_STR, .str = (v)})
#define log_int(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_INT, .i = (v)})
#define log_num(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_NUM, .num = (v)})

void log_setup(enum log_level least, enum log_format format);
void log_set_output_for_test(struct buf *out); /* NULL: stderr again */
bool log_enabled(enum log_level level);
void log_emit(enum log_level level, const char *message, const struct log_field *fields, size_t n);

#define LOG_AT(level, message, ...)                                                                \
    do {                                                                                           \
        const struct log_field log_fields_[] = {{.key = NULL}, ##__VA_ARGS__};                     \
        log_emit(level, message, log_fields_ + 1, sizeof(log_fields_) / sizeof(*log_fields_) - 1); \
    } while (0)
#define log_debug(message, ...) LOG_AT(LOG_DEBUG, message, ##__VA_ARGS__)
#define log_info(message, ...)  LOG_AT(LOG_INFO, message, ##__VA_ARGS__)
#define log_warn(message, ...)  LOG_AT(LOG_WARN, message, ##__VA_ARGS__)
#define log_error(message, ...) LOG_AT(LOG_ERROR, message, ##__VA_ARGS__)

/* --- files, YAML, JSON ----------------------------------------------------------------------- */
/* Reads a whole file of at most max bytes. The result is NUL-terminated; free() it. */
char *file_read(const char *path, size_t max, size_t *len, struct error *err);
/* The path of a file in the directory that the program is in, to be freed. */
char *file_beside_program(const char *name);
/* Of RFC 4648, padded; free() the result. Line ends may stand in what is decoded; NULL: it is none.
 */
char *base64_encode(const void *data, size_t len);
char *base64_decode(const char *text, size_t *len);
/* FNV-1a, for tables keyed by strings. */
uint64_t hash_bytes(const void *data, size_t len);
#ifndef FAASRL_NO_JSON
/* Makes or replaces a file as a whole: who reads it, even after a crash, finds the old content or
 * the new one. One writer at a time. */
int file_write(const char *path, const void *data, size_t len, struct error *err);
/* One YAML document per array element, empty ones left out, as the JSON that Kubernetes' tools
 * would make of it: plain scalars as go-yaml v2 reads them (yes, on and y are true, 0777 is
 * octal, 1.0 is 1), quoted ones always strings. Duplicate keys and aliases beyond a bound are
 * refused. */
json_t *yaml_to_json(const char *text, size_t len, struct error *err);
/* In block style, with a line end; yaml_to_json gives back the same value. free() the result. */
char *yaml_from_json(const json_t *value);
/* The line, from 1, that a field ("spec.metrics[1].type") of a document begins at, or as much of
 * its path as there is; 0 when there is no such document. For messages. */
size_t yaml_line(const char *text, size_t len, size_t document, const char *path);
/* Follows a path of object keys: json_path(o, "metadata", "name", NULL). NULL when absent. */
json_t *json_path(const json_t *root, ...) __attribute__((sentinel));
const char *json_str(const json_t *value); /* "" unless it is a string */
/* At most max bytes of a text (NULL: none) as a JSON string. One that was cut inside a character,
 * or holds bytes that are no UTF-8, ends before the first such byte. */
json_t *json_text(const char *text, size_t max);
/* Why jansson could not read a text, without what stands there, which may be a secret. */
const char *json_problem(json_error_t *why);
void cleanup_json_(json_t **p);
#define cleanup_json __attribute__((cleanup(cleanup_json_)))
#endif

#endif
