/* The fields of the resource as data, and the walk that checks a manifest against them. Private to
 * pkg/api. */
#ifndef FAASRL_API_SCHEMA_H
#define FAASRL_API_SCHEMA_H

#include "api/api.h"

#define API_MAX_REPLICAS 10000

struct check;

enum field_type {
    FIELD_ANY, /* not looked into */
    FIELD_OBJECT,
    FIELD_LIST,
    FIELD_STRING,
    FIELD_INTEGER,
    FIELD_NUMBER,
    FIELD_QUANTITY, /* a string or an integer */
    FIELD_TEXT_MAP, /* any keys, strings as values */
};

struct field {
    const char *name;
    enum field_type type;
    bool required;
    bool open;       /* the bounds themselves are not allowed */
    double min, max; /* of a number, or of a string's or list's length; max 0: no bounds */
    const char *const *values; /* the only ones allowed, NULL-terminated */
    /* Says what would be right, or NULL when the text is right. */
    const char *(*format)(const char *text);
    const struct field *members; /* an object's, up to one without a name; a list's item */
    /* What a single member cannot tell; sees values whose types may be wrong. */
    void (*rule)(struct check *check, const json_t *value);
};

/* The whole manifest. */
extern const struct field api_manifest;

/* As api_validate, for errors only: fails with the first. */
int api_check(const json_t *object, struct error *err);
/* Reports an error at the place of the walk, or below it (".minAllowed.cpu"). */
void check_error(struct check *check, const char *below, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* --- formats and rules (rules.c) -------------------------------------------------------------
 * They say the same as the patterns and CEL rules of the CRD. */
const char *format_api_version(const char *text);
const char *format_kind(const char *text);
const char *format_own_api_version(const char *text);
const char *format_own_kind(const char *text);
const char *format_label(const char *text);
const char *format_recommender(const char *text);
const char *format_container(const char *text);
const char *format_subdomain(const char *text);
const char *format_latency(const char *text);
const char *format_cpu(const char *text);
const char *format_memory(const char *text);
const char *format_any_amount(const char *text);

void rule_target(struct check *check, const json_t *target);
void rule_spec(struct check *check, const json_t *spec);
void rule_goals(struct check *check, const json_t *goals);
void rule_metric(struct check *check, const json_t *metric);
void rule_metric_source(struct check *check, const json_t *source);
void rule_metric_target(struct check *check, const json_t *target);
void rule_global(struct check *check, const json_t *global);
void rule_unique(struct check *check, const json_t *list);
void rule_unique_names(struct check *check, const json_t *list);
void rule_requests(struct check *check, const json_t *requests);
void rule_boost(struct check *check, const json_t *cpu);
void rule_policy(struct check *check, const json_t *policy);

/* Whether a scaleTargetRef is an action of OpenWhisk. */
bool api_is_action(const json_t *target);

/* --- values ----------------------------------------------------------------------------------
 */
/* A member that is there: an explicit null counts as absent, as for the API server. */
const json_t *api_member(const json_t *object, const char *name);
/* An integer, also when written as 3.0. */
bool api_integer(const json_t *value, int64_t *out);
/* A quantity as text, whether it was written as a string or as an integer. */
#define API_AMOUNT_SIZE 32
bool api_amount_text(const json_t *value, char out[API_AMOUNT_SIZE]);
/* Milli-cores or bytes; API_ABSENT when it is none. */
int64_t api_amount(const json_t *value, enum api_resource resource);
extern const char *const api_resource_names[];

#endif
