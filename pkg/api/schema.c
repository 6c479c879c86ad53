/* Every field of the resource: its type, its bounds, its rule. The CRD says the same to the API
 * server. */
#include "schema.h"

#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

const char *const api_resource_names[] = {"cpu", "memory", NULL};

static const char *const metric_types[] = {"Resource", "ContainerResource", NULL};
static const char *const target_types[] = {"Utilization", "AverageValue", NULL};
static const char *const selects[] = {"Max", "Min", "Disabled", NULL};
static const char *const policy_types[] = {"Pods", "Percent", NULL};
static const char *const container_modes[] = {"Auto", "Off", NULL};
static const char *const controlled_values[] = {"RequestsAndLimits", "RequestsOnly", NULL};
static const char *const update_modes[] = {"Off", "Initial", "Auto", NULL};
static const char *const boost_types[] = {"Factor", "Quantity", NULL};
static const char *const knative_ways[] = {"Steer", "Own", NULL};

/* --- spec.scaleTargetRef, spec.goals -------------------------------------------------------- */
static const struct field target_ref[] = {
    {.name = "apiVersion", .type = FIELD_STRING, .required = true, .format = format_api_version},
    {.name = "kind", .type = FIELD_STRING, .required = true, .format = format_kind},
    {.name = "name", .type = FIELD_STRING, .required = true},
    END,
};

static const struct field latency[] = {
    {.name = "percentile", .type = FIELD_NUMBER, .min = 0, .max = 100, .open = true},
    {.name = "target", .type = FIELD_STRING, .required = true, .format = format_latency},
    {.name = "query", .type = FIELD_STRING, .min = 1, .max = 4096},
    END,
};

static const struct field metric_target[] = {
    {.name = "type", .type = FIELD_STRING, .required = true, .values = target_types},
    {.name = "averageUtilization", .type = FIELD_INTEGER, .min = 1, .max = 10000},
    {.name = "averageValue", .type = FIELD_QUANTITY, .format = format_any_amount},
    END,
};

static const struct field resource_metric[] = {
    {.name = "name", .type = FIELD_STRING, .required = true, .values = api_resource_names},
    {.name = "target",
     .type = FIELD_OBJECT,
     .required = true,
     .members = metric_target,
     .rule = rule_metric_target},
    END,
};

static const struct field container_metric[] = {
    {.name = "name", .type = FIELD_STRING, .required = true, .values = api_resource_names},
    {.name = "container", .type = FIELD_STRING, .required = true, .format = format_label},
    {.name = "target",
     .type = FIELD_OBJECT,
     .required = true,
     .members = metric_target,
     .rule = rule_metric_target},
    END,
};

static const struct field metric_members[] = {
    {.name = "type", .type = FIELD_STRING, .required = true, .values = metric_types},
    {.name = "resource",
     .type = FIELD_OBJECT,
     .members = resource_metric,
     .rule = rule_metric_source},
    {.name = "containerResource",
     .type = FIELD_OBJECT,
     .members = container_metric,
     .rule = rule_metric_source},
    END,
};

static const struct field metric = {
    .type = FIELD_OBJECT, .members = metric_members, .rule = rule_metric};

static const struct field goals[] = {
    {.name = "latency", .type = FIELD_OBJECT, .members = latency},
    {.name = "metrics", .type = FIELD_LIST, .max = API_MAX_METRICS, .members = &metric},
    END,
};

/* --- spec.constraints ----------------------------------------------------------------------- */
static const struct field policy_members[] = {
    {.name = "type", .type = FIELD_STRING, .required = true, .values = policy_types},
    {.name = "value", .type = FIELD_INTEGER, .required = true, .min = 1, .max = 100000},
    {.name = "periodSeconds", .type = FIELD_INTEGER, .required = true, .min = 1, .max = 1800},
    END,
};
static const struct field policy = {.type = FIELD_OBJECT, .members = policy_members};

static const struct field rules[] = {
    {.name = "stabilizationWindowSeconds", .type = FIELD_INTEGER, .min = 0, .max = 3600},
    {.name = "selectPolicy", .type = FIELD_STRING, .values = selects},
    {.name = "tolerance", .type = FIELD_NUMBER, .min = 0, .max = 1},
    {.name = "policies", .type = FIELD_LIST, .min = 1, .max = API_MAX_POLICIES, .members = &policy},
    END,
};

static const struct field behavior[] = {
    {.name = "scaleUp", .type = FIELD_OBJECT, .members = rules},
    {.name = "scaleDown", .type = FIELD_OBJECT, .members = rules},
    END,
};

static const struct field global[] = {
    {.name = "minReplicas", .type = FIELD_INTEGER, .min = 1, .max = API_MAX_REPLICAS},
    {.name = "maxReplicas", .type = FIELD_INTEGER, .min = 1, .max = API_MAX_REPLICAS},
    {.name = "behavior", .type = FIELD_OBJECT, .members = behavior},
    END,
};

static const struct field amounts[] = {
    {.name = "cpu", .type = FIELD_QUANTITY, .format = format_cpu},
    {.name = "memory", .type = FIELD_QUANTITY, .format = format_memory},
    END,
};

static const struct field requests[] = {
    {.name = "minAllowed", .type = FIELD_OBJECT, .members = amounts},
    {.name = "maxAllowed", .type = FIELD_OBJECT, .members = amounts},
    END,
};

static const struct field container_members[] = {
    {.name = "name", .type = FIELD_STRING, .required = true, .format = format_container},
    {.name = "mode", .type = FIELD_STRING, .values = container_modes},
    {.name = "controlledValues", .type = FIELD_STRING, .values = controlled_values},
    {.name = "requests", .type = FIELD_OBJECT, .members = requests, .rule = rule_requests},
    END,
};
static const struct field container = {.type = FIELD_OBJECT, .members = container_members};

static const struct field resource_name = {.type = FIELD_STRING, .values = api_resource_names};

static const struct field constraints[] = {
    {.name = "global", .type = FIELD_OBJECT, .members = global, .rule = rule_global},
    {.name = "containerControlledResources",
     .type = FIELD_LIST,
     .max = API_RESOURCE_COUNT,
     .members = &resource_name,
     .rule = rule_unique},
    {.name = "container",
     .type = FIELD_LIST,
     .max = API_MAX_CONTAINERS,
     .members = &container,
     .rule = rule_unique_names},
    END,
};

/* --- spec ----------------------------------------------------------------------------------- */
static const struct field cpu_boost[] = {
    {.name = "type", .type = FIELD_STRING, .required = true, .values = boost_types},
    {.name = "factor", .type = FIELD_INTEGER, .min = 1, .max = 100},
    {.name = "quantity", .type = FIELD_QUANTITY, .format = format_cpu},
    {.name = "durationSeconds", .type = FIELD_INTEGER, .min = 0, .max = 3600},
    END,
};

static const struct field startup_boost[] = {
    {.name = "cpu",
     .type = FIELD_OBJECT,
     .required = true,
     .members = cpu_boost,
     .rule = rule_boost},
    END,
};

static const struct field update_policy[] = {
    {.name = "updateMode", .type = FIELD_STRING, .values = update_modes},
    {.name = "harvestGroup", .type = FIELD_STRING, .format = format_label},
    {.name = "startupBoost", .type = FIELD_OBJECT, .members = startup_boost},
    {.name = "knative", .type = FIELD_STRING, .values = knative_ways},
    END,
};

static const struct field recommender_members[] = {
    {.name = "name", .type = FIELD_STRING, .required = true, .format = format_recommender},
    END,
};
static const struct field recommender = {.type = FIELD_OBJECT, .members = recommender_members};

static const struct field spec[] = {
    {.name = "scaleTargetRef",
     .type = FIELD_OBJECT,
     .required = true,
     .members = target_ref,
     .rule = rule_target},
    {.name = "goals", .type = FIELD_OBJECT, .required = true, .members = goals, .rule = rule_goals},
    {.name = "constraints", .type = FIELD_OBJECT, .required = true, .members = constraints},
    {.name = "policy", .type = FIELD_OBJECT, .members = update_policy, .rule = rule_policy},
    {.name = "recommenders", .type = FIELD_LIST, .min = 1, .max = 1, .members = &recommender},
    END,
};

/* --- the manifest --------------------------------------------------------------------------- */
static const struct field metadata[] = {
    {.name = "name", .type = FIELD_STRING, .required = true, .format = format_subdomain},
    {.name = "namespace", .type = FIELD_STRING, .format = format_label},
    {.name = "labels", .type = FIELD_TEXT_MAP},
    {.name = "annotations", .type = FIELD_TEXT_MAP},
    {.name = "generateName"},
    {.name = "selfLink"},
    {.name = "uid"},
    {.name = "resourceVersion"},
    {.name = "generation"},
    {.name = "creationTimestamp"},
    {.name = "deletionTimestamp"},
    {.name = "deletionGracePeriodSeconds"},
    {.name = "ownerReferences"},
    {.name = "finalizers"},
    {.name = "managedFields"},
    END,
};

static const struct field manifest[] = {
    {.name = "apiVersion",
     .type = FIELD_STRING,
     .required = true,
     .format = format_own_api_version},
    {.name = "kind", .type = FIELD_STRING, .required = true, .format = format_own_kind},
    {.name = "metadata", .type = FIELD_OBJECT, .required = true, .members = metadata},
    {.name = "spec", .type = FIELD_OBJECT, .required = true, .members = spec, .rule = rule_spec},
    {.name = "status"}, /* the API server drops what a manifest says here */
    END,
};

const struct field api_manifest = {.type = FIELD_OBJECT, .members = manifest};
