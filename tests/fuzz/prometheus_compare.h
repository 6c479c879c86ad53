/* What prom_parse() makes of a body against what jansson makes of it: shared by the unit test and
 * the fuzz target. */
#ifndef FAASRL_PROMETHEUS_COMPARE_H
#define FAASRL_PROMETHEUS_COMPARE_H

#include "prometheus/prometheus.h"

#include <math.h>
#include <string.h>

static inline bool compare_sample(const struct prom_sample *sample, const json_t *pair)
{
    const char *text = json_string_value(json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || !text)
        return false;
    double value = strtod(text, NULL);
    return sample->time_s == json_number_value(json_array_get(pair, 0)) &&
           (sample->value == value || (isnan(sample->value) && isnan(value)));
}

static inline bool compare_labels(const struct prom_series *series, const json_t *labels)
{
    const char *name;
    json_t *value;
    if (!json_is_object(labels) || json_object_size(labels) != series->label_count)
        return false;
    json_object_foreach ((json_t *)(uintptr_t)labels, name, value)
        if (!json_is_string(value) || strcmp(prom_label(series, name), json_str(value)) != 0)
            return false;
    return true;
}

static inline bool compare_series(const struct prom_result *result, size_t at, const json_t *item)
{
    const struct prom_series *series = &result->series[at];
    if (!compare_labels(series, json_object_get(item, "metric")))
        return false;
    if (result->type == PROM_VECTOR)
        return series->sample_count == 1 &&
               compare_sample(series->samples, json_object_get(item, "value"));
    const json_t *values = json_object_get(item, "values");
    if (!json_is_array(values) || json_array_size(values) != series->sample_count)
        return false;
    for (uint32_t i = 0; i < series->sample_count; i++)
        if (!compare_sample(&series->samples[i], json_array_get(values, i)))
            return false;
    return true;
}

static inline bool compare_result(const struct prom_result *result, const json_t *body)
{
    static const char *const types[] = {
        [PROM_VECTOR] = "vector", [PROM_MATRIX] = "matrix", [PROM_SCALAR] = "scalar"};
    const json_t *items = json_path(body, "data", "result", NULL);
    if (strcmp(json_str(json_object_get(body, "status")), "success") != 0 ||
        strcmp(json_str(json_path(body, "data", "resultType", NULL)), types[result->type]) != 0)
        return false;
    if (result->type == PROM_SCALAR)
        return result->series_count == 1 && result->series[0].label_count == 0 &&
               result->series[0].sample_count == 1 &&
               compare_sample(result->series[0].samples, items);
    if (!(json_is_array(items) || json_is_null(items)) ||
        json_array_size(items) != result->series_count)
        return false;
    for (size_t i = 0; i < result->series_count; i++)
        if (!compare_series(result, i, json_array_get(items, i)))
            return false;
    return true;
}

enum comparison { COMPARE_REFUSED, COMPARE_EQUAL, COMPARE_DIFFERS };

/* What we accept, jansson must accept with the same content. (We refuse more: what is no answer.)
 * Bodies with "\u0000" are not compared, as both have a way of their own with them. */
static inline enum comparison compare_with_jansson(const char *data, size_t len)
{
    struct prom_result result;
    struct error err = {0};
    if (prom_parse(data, len, &result, &err) < 0)
        return err.code != ERROR_NONE && err.message[0] ? COMPARE_REFUSED : COMPARE_DIFFERS;
    cleanup_json json_t *body =
        json_loadb(data, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    bool same = memmem(data, len, "\\u0000", 6) || (body && compare_result(&result, body));
    prom_result_clear(&result);
    return same ? COMPARE_EQUAL : COMPARE_DIFFERS;
}

#endif
