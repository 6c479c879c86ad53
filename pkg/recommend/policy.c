#include "recommend/policy.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

const struct policy_head_info recommend_policy_heads[POLICY_HEAD_COUNT] = {
    [POLICY_LATE] = {"late", 4, {0.4, 0.6, 0.8, 0.95}, 1},
    [POLICY_RISK] = {"risk", 5, {0, 0.15, 0.3, 0.6, 1.2}, 2},
    [POLICY_MARGIN] = {"margin", 4, {0, 0.1, 0.25, 0.5}, 1},
    [POLICY_CPU] = {"cpu", 7, {0.8, 0.9, 1, 1.1, 1.25, 1.5, 2}, 2},
    [POLICY_SPLIT] = {"split", SPLIT_COUNT, {SPLIT_CHEAPEST, SPLIT_FEWEST, SPLIT_KEEP}, 0},
};

const char *const recommend_policy_features[POLICY_FEATURE_COUNT] = {
    "busy",     "requests",   "mean",      "tail",    "goal",           "latency", "late",
    "spent",    "confidence", "throttled", "backlog", "pending",        "grown",   "rate_now",
    "peak",     "trend",      "risk",      "unready", "ready_cost",     "trim",    "utilization",
    "replicas", "cpu",        "room",      "short",   "since_surprise",
};

static const char *const steps_features[POLICY_STEPS_FEATURES] = {
    "rate",        "rate_change",       "rate_of_peak", "work",         "utilization",
    "headroom",    "latency",           "violations",   "throttled",    "backlog",
    "ready",       "replicas",          "cpu",          "since_change", "others_reserved",
    "others_used", "others_violations",
};
static const struct {
    const char *name;
    size_t options;
} steps_heads[] = {{"replicas", 5}, {"cpu", 5}};

struct recommend_policy {
    atomic_int refs;
    enum policy_kind kind;
    recommend_choose *choose; /* of someone else, or NULL */
    void *arg;
    struct rl_net actor;
    struct rl_heads heads;
    bool feature_off[POLICY_FEATURE_COUNT], head_off[POLICY_HEAD_COUNT];
    char sha256[65];
};

/* --- what there is to see and choose --------------------------------------------------------- */
static void describe_steps(struct rl_interface *out)
{
    for (size_t i = 0; i < POLICY_STEPS_FEATURES; i++)
        rl_names_add(&out->features, steps_features[i]);
    for (size_t i = 0; i < ARRAY_LEN(steps_heads); i++)
        rl_interface_add_head(out, steps_heads[i].name, steps_heads[i].options);
}

void recommend_policy_describe(enum policy_kind kind, struct rl_interface *out)
{
    if (kind == POLICY_OF_STEPS) {
        describe_steps(out);
        return;
    }
    for (size_t i = 0; i < POLICY_FEATURE_COUNT; i++)
        rl_names_add(&out->features, recommend_policy_features[i]);
    for (size_t i = 0; i < POLICY_HEAD_COUNT; i++)
        rl_interface_add_head(out, recommend_policy_heads[i].name,
                              recommend_policy_heads[i].options);
}

void recommend_policy_heads_init(struct rl_heads *out)
{
    *out = (struct rl_heads){.count = POLICY_HEAD_COUNT};
    for (size_t i = 0; i < POLICY_HEAD_COUNT; i++) {
        out->options[i] = recommend_policy_heads[i].options;
        out->total += out->options[i];
    }
}

/* --- from a checkpoint ----------------------------------------------------------------------- */
static struct recommend_policy *policy_new(void)
{
    struct recommend_policy *p = xcalloc(1, sizeof(*p));
    atomic_init(&p->refs, 1);
    recommend_policy_heads_init(&p->heads);
    return p;
}

static int switch_off(struct recommend_policy *p, const char *name, struct error *err)
{
    for (size_t i = 0; i < POLICY_FEATURE_COUNT; i++)
        if (strcmp(name, recommend_policy_features[i]) == 0)
            return p->feature_off[i] = true, 0;
    for (size_t i = 0; i < POLICY_HEAD_COUNT; i++) {
        const char *head = recommend_policy_heads[i].name;
        if (strncmp(name, "head ", 5) == 0 && strcmp(name + 5, head) == 0)
            return p->head_off[i] = true, 0;
    }
    return error_set(err, ERROR_INVALID, "it does without %s, which there is not", name);
}

static int read_off(struct recommend_policy *p, const char *names, struct error *err)
{
    cleanup_free char *copy = xstrdup(names ? names : "");
    for (char *rest = copy, *one; (one = strsep(&rest, ",")) != NULL;)
        if (*one && switch_off(p, one, err) < 0)
            return -1;
    return 0;
}

static int check(const struct rl_checkpoint *from, enum policy_kind kind,
                 const struct rl_saved_net *actor, struct error *err)
{
    struct rl_interface mine = {0};
    recommend_policy_describe(kind, &mine);
    int result = rl_interface_check(&from->interface, &mine, err);
    if (result == 0 && !actor)
        result = error_set(err, ERROR_INVALID, "it has no network \"actor\"");
    else if (result == 0 && (actor->net.shape.inputs != mine.features.count ||
                             actor->net.shape.outputs != mine.heads.total))
        result = error_set(err, ERROR_INVALID,
                           "its actor has %zu inputs and %zu outputs instead of %zu and %zu",
                           actor->net.shape.inputs, actor->net.shape.outputs, mine.features.count,
                           mine.heads.total);
    rl_interface_clear(&mine);
    return result;
}

struct recommend_policy *recommend_policy_new(const struct rl_checkpoint *from, struct error *err)
{
    const struct rl_saved_net *actor = rl_checkpoint_net(from, "actor");
    const char *formulation = rl_checkpoint_get(from, "formulation");
    enum policy_kind kind = formulation && strcmp(formulation, "default") == 0
                                ? POLICY_OF_STEPS
                                : POLICY_OF_CORRECTIONS;
    if (check(from, kind, actor, err) < 0)
        return NULL;
    struct recommend_policy *p = policy_new();
    p->kind = kind;
    p->heads = from->interface.heads;
    if (read_off(p, rl_checkpoint_get(from, "off"), err) < 0 ||
        rl_net_make(&p->actor, &actor->net.shape, err) < 0) {
        recommend_policy_release(p);
        return NULL;
    }
    memcpy(p->actor.params, actor->net.params, p->actor.param_count * sizeof(*p->actor.params));
    memcpy(p->sha256, from->sha256, sizeof(p->sha256));
    return p;
}

struct recommend_policy *recommend_policy_read(const char *path, struct error *err)
{
    struct rl_checkpoint c = {0};
    if (rl_checkpoint_read(&c, path, err) < 0)
        return NULL;
    struct recommend_policy *p = recommend_policy_new(&c, err);
    rl_checkpoint_clear(&c);
    if (!p)
        error_prefix(err, "%s", path);
    return p;
}

struct recommend_policy *recommend_policy_decode(const void *data, size_t len, struct error *err)
{
    struct rl_checkpoint c = {0};
    if (rl_checkpoint_decode(&c, data, len, err) < 0)
        return NULL;
    struct recommend_policy *p = recommend_policy_new(&c, err);
    rl_checkpoint_clear(&c);
    return p;
}

struct recommend_policy *recommend_policy_by(recommend_choose *choose, void *arg, const char *off,
                                             struct error *err)
{
    struct recommend_policy *p = policy_new();
    p->choose = choose;
    p->arg = arg;
    if (read_off(p, off, err) == 0)
        return p;
    recommend_policy_release(p);
    return NULL;
}

/* --- sharing --------------------------------------------------------------------------------- */
const struct recommend_policy *recommend_policy_hold(const struct recommend_policy *policy)
{
    if (policy)
        atomic_fetch_add(&((struct recommend_policy *)policy)->refs, 1);
    return policy;
}

void recommend_policy_release(const struct recommend_policy *policy)
{
    struct recommend_policy *p = (struct recommend_policy *)policy;
    if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    rl_net_clear(&p->actor);
    free(p);
}

int recommend_policy_check(const struct recommend_policy *policy, enum policy_kind kind,
                           struct error *err)
{
    static const char *const names[] = {
        [POLICY_OF_CORRECTIONS] = "ppo: learn one by mpactl policy",
        [POLICY_OF_STEPS] = "ppo-steps: learn one by mpactl train --formulation default",
    };
    if (policy->kind == kind)
        return 0;
    return error_set(err, ERROR_INVALID, "the policy is not one of %s", names[kind]);
}

const char *recommend_policy_sha256(const struct recommend_policy *policy)
{
    return policy->sha256;
}

/* What it sees of the features. */
static void see(const struct recommend_policy *p, const float *features, float *seen)
{
    for (size_t i = 0; i < POLICY_FEATURE_COUNT; i++)
        seen[i] = p->feature_off[i] ? 0 : features[i];
}

/* --- choosing -------------------------------------------------------------------------------- */
void recommend_policy_choose(const struct recommend_policy *p, const float *features, uint8_t *mask,
                             int32_t *choices)
{
    float seen[POLICY_FEATURE_COUNT], logits[RL_MAX_OPTIONS];
    size_t first = 0;
    if (p->kind == POLICY_OF_STEPS) {
        rl_net_row(&p->actor, features, logits);
        rl_best(&p->heads, logits, mask, choices);
        return;
    }
    for (size_t h = 0; h < POLICY_HEAD_COUNT; first += p->heads.options[h++])
        for (size_t i = 0; p->head_off[h] && i < p->heads.options[h]; i++)
            mask[first + i] = (int32_t)i == recommend_policy_heads[h].neutral;
    see(p, features, seen);
    if (p->choose) {
        p->choose(p->arg, seen, mask, choices);
        return;
    }
    rl_net_row(&p->actor, seen, logits);
    rl_best(&p->heads, logits, mask, choices);
}

/* --- explaining ------------------------------------------------------------------------------ */
/* Logarithm of how likely the choices of all heads that correct something are together. */
static double likelihood(const struct recommend_policy *p, const float *seen, const uint8_t *mask,
                         const int32_t *choices)
{
    float logits[RL_MAX_OPTIONS];
    struct rl_odds odds;
    double sum = 0;
    rl_net_row(&p->actor, seen, logits);
    rl_odds(&p->heads, logits, mask, &odds);
    for (size_t h = 0, first = 0; h < POLICY_HEAD_COUNT; first += p->heads.options[h++])
        if (choices[h] != recommend_policy_heads[h].neutral)
            sum += odds.log_p[first + (size_t)choices[h]];
    return sum;
}

void recommend_policy_explain(const struct recommend_policy *p, const float *features,
                              const float *usual, const uint8_t *mask, const int32_t *choices,
                              double moved[POLICY_FEATURE_COUNT])
{
    float seen[POLICY_FEATURE_COUNT];
    memset(moved, 0, POLICY_FEATURE_COUNT * sizeof(*moved));
    if (p->kind != POLICY_OF_CORRECTIONS || p->choose)
        return;
    see(p, features, seen);
    double now = likelihood(p, seen, mask, choices);
    for (size_t i = 0; i < POLICY_FEATURE_COUNT; i++) {
        float was = seen[i];
        if (p->feature_off[i] || was == usual[i])
            continue;
        seen[i] = usual[i];
        moved[i] = now - likelihood(p, seen, mask, choices);
        seen[i] = was;
    }
}
