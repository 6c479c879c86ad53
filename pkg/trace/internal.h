/* What the files of this package share. */
#ifndef FAASRL_TRACE_INTERNAL_H
#define FAASRL_TRACE_INTERNAL_H

#include "trace/trace.h"

#define MAX_ALL_COUNTS ((size_t)1 << 27) /* of all functions: 1 GiB */

/* --- text ------------------------------------------------------------------------------------ */
/* The real files of a day have 150 MB. */
#define TEXT_MAX_BYTES ((size_t)1 << 30)

/* Reads a file or pipe of at most TEXT_MAX_BYTES; out->data is to be freed. `path` must stay. */
int text_read(const char *path, struct trace_text *out, struct error *err);
/* Sets "file:line:column: message"; at is where in the text. Returns -1. */
int text_fail(const struct trace_text *text, const char *at, struct error *err, const char *fmt,
              ...) PRINTF_LIKE(4, 5);
/* Where the text begins behind a byte order mark, and where it ends without blank lines. */
const char *text_begin(const struct trace_text *text);
const char *text_end(const struct trace_text *text);
/* A decimal number from 0 to most at *at, which then stands behind it. Else tells what is wrong and
 * leaves *at where it was. */
const char *text_number(const char **at, const char *end, double most, double *out);
/* Fails with the problem that text_number told. */
int text_number_fail(const struct trace_text *text, const char *at, double most,
                     const char *problem, struct error *err);
/* The word at `at`, fit to be shown. */
#define TEXT_WORD_SIZE 24
const char *text_word(const char *at, const char *end, char out[TEXT_WORD_SIZE]);

/* --- tables: CSV with a header ---------------------------------------------------------------- */
/* What a column is, told by its name: ROLE_VALUE + i is the value number i. */
enum { ROLE_OWNER, ROLE_APP, ROLE_FUNCTION, ROLE_IDS, ROLE_OTHER = ROLE_IDS, ROLE_VALUE };

struct table_id {
    const char *at;
    size_t len;
};

struct table {
    const struct trace_text *text;
    const char *at, *end;
    int *roles;
    size_t column_count, value_count;
    bool has_id[ROLE_IDS];
    double most; /* that a value may be */
    /* The row that was read last. */
    const char *row;
    struct table_id ids[ROLE_IDS];
    double *values;
    const char **value_at;
};

/* The role of the column with this name, or a negative number with *why it cannot be. `arg` is for
 * the callee. */
typedef int table_role(const char *name, size_t len, void *arg, const char **why);

int table_open(struct table *t, const struct trace_text *text, double most, table_role *role,
               void *arg, struct error *err);
void table_close(struct table *t);
#define cleanup_table __attribute__((cleanup(table_close)))
/* 1: a row was read, 0: there is none left. */
int table_next(struct table *t, struct error *err);

/* --- readers and generators ------------------------------------------------------------------- */
/* As trace_parse_azure, but ends after so many functions. */
int azure_parse(const struct trace_text *invocations, const struct trace_text *durations,
                const struct trace_text *memory, size_t max_functions, struct trace *out,
                struct error *err);

struct generator { /* of one function's arrivals */
    double rate;   /* per second */
    double span_s;
    double burst, every_s, length_s; /* of bursts; burst is a multiple of rate */
    uint64_t seed;
    double amplitude, period_s; /* of days */
};
void generate_poisson(const struct generator *g, struct trace_function *out);
void generate_bursty(const struct generator *g, struct trace_function *out);
void generate_diurnal(const struct generator *g, struct trace_function *out);
/* Log-normal CPU demand with this median and 99th percentile. */
void generate_demand(double median_ms, double p99_ms, struct trace_function *out);

/* --- a change (change.c) -----------------------------------------------------------------------
 */
struct change {
    double slower; /* so many times the CPU for a request; NaN: as before */
    double
        gather_s; /* of each so many seconds all requests come in the first tenth; NaN: as before */
    double at_s;  /* NaN: after half of the span */
};
int change_functions(struct trace *trace, const struct change *change, struct error *err);

#endif
