/* Between answer.c and client.c. */
#ifndef FAASRL_PROMETHEUS_INTERNAL_H
#define FAASRL_PROMETHEUS_INTERNAL_H

#include "prometheus/prometheus.h"

/* --- one series after the other (answer.c) --------------------------------------------------- */
struct prom_one;
struct prom_one *prom_one_new(void);
void prom_one_free(struct prom_one *one);
/* Reads an element of the result; NULL: err says why it is none. Until the next one is read. */
const struct prom_series *prom_one_read(struct prom_one *one, const char *text, size_t len,
                                        bool matrix, struct error *err);

/* --- an answer in pieces (stream.c) ----------------------------------------------------------- */
struct prom_stream;
struct prom_stream *prom_stream_new(prom_each on_series, void *arg);
void prom_stream_free(struct prom_stream *stream); /* NULL: nothing */
bool prom_stream_failed(const struct prom_stream *stream);
int prom_stream_feed(struct prom_stream *stream, const char *data, size_t len);
/* What is not a series; fails as prom_parse does, and when feeding failed. */
int prom_stream_end(struct prom_stream *stream, struct prom_result *out, struct error *err);

/* Whether the body is Prometheus' own report of an error; err then holds its words. */
bool prom_parse_refusal(const char *body, size_t len, struct error *err);

#endif
