/* Between answer.c and client.c. */
#ifndef FAASRL_PROMETHEUS_INTERNAL_H
#define FAASRL_PROMETHEUS_INTERNAL_H

#include "prometheus/prometheus.h"

/* Whether the body is Prometheus' own report of an error; err then holds its words. */
bool prom_parse_refusal(const char *body, size_t len, struct error *err);

#endif
