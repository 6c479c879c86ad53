/* What the CRD says in patterns and CEL rules: the form of texts, and what members of an object
 * must be to each other. */
#include "schema.h"

#include <stdio.h>
#include <string.h>

#include "kube/kube.h"

#define MAX_LATENCY_US  (INT64_C(600) * 1000 * 1000)
#define MAX_CPU_MILLI   (INT64_C(10000) * 1000)
#define MAX_MEMORY      (INT64_C(64) << 40)
#define MAX_AMOUNT_TEXT 24
#define MAX_TARGET_NAME 253

/* --- scanning ------------------------------------------------------------------------------- */
static size_t span_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* The end of the word of a DNS name at the start of text, or NULL. */
static const char *word_end(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return len == 0 || text[0] == '-' || text[len - 1] == '-' ? NULL : text + len;
}

static bool is_label(const char *text)
{
    const char *end = word_end(text);

    return end && *end == '\0' && end - text <= 63;
}

/* As word_end, for words joined by dots; Kubernetes bounds the whole, not the word. */
static const char *subdomain_end(const char *text)
{
    const char *end = word_end(text);

    while (end && *end == '.')
        end = word_end(end + 1);
    return end && end - text <= 253 ? end : NULL;
}

/* A decimal of at most whole digits before the point and three after it, as the CRD's patterns have
 * it; exact in thousandths. NULL when there is none. */
static const char *decimal_end(const char *text, size_t whole)
{
    size_t len = span_digits(text);

    if (len == 0 || len > whole)
        return NULL;
    text += len;
    if (*text != '.')
        return text;
    len = span_digits(++text);
    return len >= 1 && len <= 3 ? text + len : NULL;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(text, *words) == 0)
            return true;
    }
    return false;
}

/* --- names ---------------------------------------------------------------------------------- */
const char *format_label(const char *text)
{
    return is_label(text) ? NULL
                          : "is not a DNS label: 1 to 63 lower-case letters, digits and '-', "
                            "beginning and ending with a letter or digit";
}

const char *format_recommender(const char *text)
{
    const char *end = word_end(text);

    while (end && *end == '+')
        end = word_end(end + 1);
    return end && *end == '\0' && end - text <= 63 ? NULL
                                                   : "is not a recommender's name: 1 to 63 "
                                                     "lower-case letters, digits and '-', in words "
                                                     "joined by '+'";
}

const char *format_container(const char *text)
{
    return strcmp(text, "*") == 0 || is_label(text)
               ? NULL
               : "is not a container's name: '*' for all that are not named, or 1 to 63 lower-case "
                 "letters, digits and '-'";
}

const char *format_subdomain(const char *text)
{
    const char *end = subdomain_end(text);
    return end && !*end ? NULL
                        : "is not a DNS subdomain: at most 253 lower-case letters, digits, '-' and "
                          "'.', beginning and ending with a letter or digit";
}

/* v1, v2beta1, v1alpha3 */
static bool is_version(const char *text)
{
    if (*text++ != 'v' || span_digits(text) == 0)
        return false;
    text += span_digits(text);
    if (strncmp(text, "alpha", 5) == 0)
        text += 5;
    else if (strncmp(text, "beta", 4) == 0)
        text += 4;
    else
        return *text == '\0';
    return span_digits(text) > 0 && text[span_digits(text)] == '\0';
}

const char *format_api_version(const char *text)
{
    const char *group_end = strchr(text, '/');
    bool right = strlen(text) <= 253;

    if (group_end)
        right = right && subdomain_end(text) == group_end;
    right = right && is_version(group_end ? group_end + 1 : text);
    return right ? NULL : "is not an API version such as apps/v1 or serving.knative.dev/v1";
}

const char *format_kind(const char *text)
{
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
    bool right = text[0] >= 'A' && text[0] <= 'Z' && len <= 63 && text[len] == '\0';

    return right ? NULL : "is not a kind such as Deployment";
}

const char *format_own_api_version(const char *text)
{
    return strcmp(text, API_GROUP "/" API_VERSION) == 0 ? NULL
                                                        : "is wrong: it must be " API_GROUP
                                                          "/" API_VERSION;
}

const char *format_own_kind(const char *text)
{
    return strcmp(text, API_KIND) == 0 ? NULL : "is wrong: it must be " API_KIND;
}

/* --- amounts -------------------------------------------------------------------------------- */
const char *format_latency(const char *text)
{
    static const char wanted[] = "is not a latency: say a duration above 0 and up to 10m, such as "
                                 "300ms, 1.5s or 1m30s";
    struct error unused;
    int64_t us = 0;

    for (const char *s = text; *s;) {
        s = decimal_end(s, 6);
        if (!s || s - text > MAX_AMOUNT_TEXT)
            return wanted;
        if (strncmp(s, "ms", 2) == 0)
            s += 2;
        else if (*s == 's' || *s == 'm')
            s += 1;
        else
            return wanted;
    }
    if (strlen(text) > MAX_AMOUNT_TEXT || duration_parse(text, &us, &unused) < 0)
        return wanted;
    return us > 0 && us <= MAX_LATENCY_US ? NULL : wanted;
}

/* Thousandths, exactly: the patterns allow three decimals at most. */
static int64_t in_milli(const char *text)
{
    struct error unused;
    int64_t milli = 0;

    return quantity_parse_milli(text, &milli, &unused) < 0 ? -1 : milli;
}

static bool is_cpu(const char *text)
{
    const char *end = decimal_end(text, 6);
    bool milli = span_digits(text) >= 1 && span_digits(text) <= 9 &&
                 strcmp(text + span_digits(text), "m") == 0;

    return milli || (end && !*end);
}

static bool is_memory(const char *text)
{
    static const char *const suffixes[] = {"", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", NULL};
    const char *end = decimal_end(text, 15);

    return end && is_one_of(end, suffixes);
}

const char *format_cpu(const char *text)
{
    int64_t milli = is_cpu(text) ? in_milli(text) : -1;
    return milli > 0 && milli <= MAX_CPU_MILLI
               ? NULL
               : "is not an amount of CPU: say cores such as \"0.5\" or 2, or whole milli-cores "
                 "such as 250m, above 0 and up to 10000 cores";
}

const char *format_memory(const char *text)
{
    int64_t milli = is_memory(text) ? in_milli(text) : -1;
    return milli > 0 && milli <= MAX_MEMORY * 1000
               ? NULL
               : "is not an amount of memory: say bytes such as 256Mi, 1.5Gi or 500M, above 0 and "
                 "up to 64Ti";
}

const char *format_any_amount(const char *text)
{
    return !format_cpu(text) || !format_memory(text)
               ? NULL
               : "is not an amount: say CPU such as 250m or memory such as 256Mi, above 0";
}

bool api_amount_text(const json_t *value, char out[API_AMOUNT_SIZE])
{
    int64_t whole = 0;

    if (json_is_string(value))
        return snprintf(out, API_AMOUNT_SIZE, "%s", json_string_value(value)) <= MAX_AMOUNT_TEXT;
    if (!api_integer(value, &whole))
        return false;
    snprintf(out, API_AMOUNT_SIZE, "%lld", (long long)whole);
    return true;
}

int64_t api_amount(const json_t *value, enum api_resource resource)
{
    char text[API_AMOUNT_SIZE];
    struct error unused;
    int64_t amount = API_ABSENT;

    if (!api_amount_text(value, text))
        return API_ABSENT;
    int failed = resource == API_CPU ? quantity_parse_milli(text, &amount, &unused)
                                     : quantity_parse_value(text, &amount, &unused);
    return failed ? API_ABSENT : amount;
}

/* --- rules ---------------------------------------------------------------------------------- */
bool api_is_action(const json_t *target)
{
    return strcmp(json_str(api_member(target, "apiVersion")), KUBE_OPENWHISK) == 0 &&
           strcmp(json_str(api_member(target, "kind")), KUBE_ACTION) == 0;
}

/* Kubernetes' names are not OpenWhisk's. */
void rule_target(struct check *check, const json_t *target)
{
    struct kube_action action;
    struct error err = {0};
    const json_t *member = api_member(target, "name");
    const char *name = json_str(member), *wanted = format_subdomain(name);

    if (!json_is_string(member))
        return;
    if (!api_is_action(target) && wanted)
        check_error(check, ".name", "\"%.63s\" %s", name, wanted);
    else if (api_is_action(target) && strlen(name) > MAX_TARGET_NAME)
        check_error(check, ".name", "has more than %d characters", MAX_TARGET_NAME);
    else if (api_is_action(target) && kube_action_parse(name, &action, &err) < 0)
        check_error(check, ".name", "%s", err.message);
}

/* An action has as many pods as OpenWhisk makes. */
void rule_spec(struct check *check, const json_t *spec)
{
    const json_t *constraints = api_member(spec, "constraints");
    const json_t *global = api_member(constraints, "global");

    if (json_is_object(constraints) && !api_is_action(api_member(spec, "scaleTargetRef")) &&
        (!global || json_is_object(global)) && !api_member(global, "maxReplicas"))
        check_error(check, ".constraints.global.maxReplicas", "is required");
}

void rule_goals(struct check *check, const json_t *goals)
{
    if (json_is_object(goals) && !api_member(goals, "latency") &&
        json_array_size(api_member(goals, "metrics")) == 0)
        check_error(check, "", "must have latency, metrics or both");
}

/* member must be there when, and only when, type is the given one. */
static void rule_union(struct check *check, const json_t *object, const char *type,
                       const char *member)
{
    const char *actual = json_str(api_member(object, "type"));
    bool wanted = strcmp(actual, type) == 0, there = api_member(object, member) != NULL;
    char below[64];

    snprintf(below, sizeof(below), ".%s", member);
    if (wanted && !there)
        check_error(check, below, "is required when type is %s", type);
    else if (!wanted && there && *actual)
        check_error(check, below, "is allowed only when type is %s", type);
}

void rule_metric(struct check *check, const json_t *metric)
{
    rule_union(check, metric, "Resource", "resource");
    rule_union(check, metric, "ContainerResource", "containerResource");
}

void rule_metric_target(struct check *check, const json_t *target)
{
    rule_union(check, target, "Utilization", "averageUtilization");
    rule_union(check, target, "AverageValue", "averageValue");
}

void rule_metric_source(struct check *check, const json_t *source)
{
    char text[API_AMOUNT_SIZE];
    const char *name = json_str(api_member(source, "name"));
    bool cpu = strcmp(name, "cpu") == 0, memory = strcmp(name, "memory") == 0;

    if (!api_amount_text(api_member(api_member(source, "target"), "averageValue"), text) ||
        format_any_amount(text))
        return;
    const char *wanted = cpu ? format_cpu(text) : memory ? format_memory(text) : NULL;
    if (wanted)
        check_error(check, ".target.averageValue", "\"%s\" %s", text, wanted);
}

void rule_global(struct check *check, const json_t *global)
{
    int64_t min = 1, max = 0;

    if (api_integer(api_member(global, "minReplicas"), &min) &&
        api_integer(api_member(global, "maxReplicas"), &max) && min > max)
        check_error(check, ".minReplicas", "%lld is more than maxReplicas %lld", (long long)min,
                    (long long)max);
}

static void rule_distinct(struct check *check, const json_t *list, const char *member)
{
    for (size_t i = 1; i < json_array_size(list) && i < API_MAX_CONTAINERS; i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_str(member ? api_member(item, member) : item);
        for (size_t j = 0; j < i && *name; j++) {
            const json_t *other = json_array_get(list, j);
            if (strcmp(name, json_str(member ? api_member(other, member) : other)) != 0)
                continue;
            char below[64];
            snprintf(below, sizeof(below), "[%zu]", i);
            check_error(check, below, "\"%.63s\" was named before, in [%zu]", name, j);
            break;
        }
    }
}

void rule_unique(struct check *check, const json_t *list)
{
    rule_distinct(check, list, NULL);
}

void rule_unique_names(struct check *check, const json_t *list)
{
    rule_distinct(check, list, "name");
}

void rule_requests(struct check *check, const json_t *requests)
{
    const json_t *min = api_member(requests, "minAllowed"),
                 *max = api_member(requests, "maxAllowed");

    for (size_t r = 0; r < API_RESOURCE_COUNT; r++) {
        char low[API_AMOUNT_SIZE], high[API_AMOUNT_SIZE], below[64];
        if (!api_amount_text(api_member(min, api_resource_names[r]), low) ||
            !api_amount_text(api_member(max, api_resource_names[r]), high))
            continue;
        if (in_milli(high) < 0 || in_milli(low) <= in_milli(high))
            continue;
        snprintf(below, sizeof(below), ".minAllowed.%s", api_resource_names[r]);
        check_error(check, below, "%s is more than maxAllowed %s", low, high);
    }
}

void rule_boost(struct check *check, const json_t *cpu)
{
    rule_union(check, cpu, "Factor", "factor");
    rule_union(check, cpu, "Quantity", "quantity");
}

void rule_policy(struct check *check, const json_t *policy)
{
    if (api_member(policy, "startupBoost") && api_member(policy, "harvestGroup"))
        check_error(
            check, ".startupBoost",
            "is not allowed beside harvestGroup: its pods would take more than the group has");
}
