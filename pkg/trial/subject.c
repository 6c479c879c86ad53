/* One round for one function: what pkg/controller does with a real cluster, done with a simulated
 * one. What is seen is what pkg/observe would give; recommender and guard are the same code. */
#include "trial/internal.h"

#include <math.h>
#include <string.h>

/* As in the controller: how long nodes may have no room for a resize before it is taken back, and
 * how long that is remembered. */
#define DEFERRED_PATIENCE_S 10
#define CAP_S               300

#define CPU RECOMMEND_CPU
#define MEM RECOMMEND_MEMORY

/* An oracle shows what delays and bounds allow; limits on steps are not its concern. */
static const struct guard_limits no_limits = {.resize_up_factor = INFINITY};

void tally_add(struct tally *t, const struct cluster_stats *stats,
               const struct cluster_latency *latency)
{
    struct cluster_stats *sum = &t->stats;
    sum->span_s += stats->span_s;
    sum->arrived += stats->arrived;
    sum->completed += stats->completed;
    sum->late += stats->late;
    sum->lost += stats->lost;
    sum->cpu_s += stats->cpu_s;
    sum->requested_cpu_s += stats->requested_cpu_s;
    sum->replica_s += stats->replica_s;
    sum->reserved_byte_s += stats->reserved_byte_s;
    sum->in_flight_s += stats->in_flight_s;
    sum->waiting_s += stats->waiting_s;
    sum->periods += stats->periods;
    sum->throttled_periods += stats->throttled_periods;
    sum->crashes += stats->crashes;
    sum->memory_kills += stats->memory_kills;
    if (latency->count > 0)
        cluster_latency_add(&t->latency, latency);
}

/* --- beginning ------------------------------------------------------------------------------- */
const struct api_container *subject_policy(const struct api_spec *spec, const char **name)
{
    *name = "app";
    for (size_t i = spec->container_count; i > 0; i--)
        if (strcmp(spec->containers[i - 1].name, "*") != 0)
            *name = spec->containers[i - 1].name;
    return api_container_policy(spec, *name);
}

static void set_metrics(struct observation *seen, const struct api_spec *spec)
{
    for (size_t i = 0; i < spec->metric_count; i++) {
        const struct api_metric *m = &spec->metrics[i];
        if (m->container && strcmp(m->container, seen->containers[0].name) != 0)
            continue; /* a container that the pods do not have */
        seen->metrics[seen->metric_count++] = (struct recommend_metric){
            .resource = m->resource == API_CPU ? CPU : MEM,
            .container = m->container ? 0 : -1,
            .utilization = m->utilization > 0 ? m->utilization / 100.0 : NAN,
            .average_value = m->average_value == API_ABSENT ? NAN : (double)m->average_value,
        };
    }
}

static void set_observation(struct subject *s, double goal_ms)
{
    const struct api_spec *spec = &s->spec;
    struct observation *seen = &s->seen;
    *seen = (struct observation){
        .percentile = spec->latency_percentile,
        .goal_ms = goal_ms,
        .latency_window_s = s->interval_s,
        .min_replicas = spec->min_replicas,
        .max_replicas = spec->max_replicas,
        .tolerance_up = spec->scale_up.tolerance,
        .tolerance_down = spec->scale_down.tolerance,
        .container_count = 1,
    };
    struct recommend_container *c = &seen->containers[0];
    s->policy = subject_policy(spec, &c->name);
    c->controlled[CPU] = spec->controls[API_CPU] && !s->policy->off;
    /* Here a replica's request of memory is its limit. */
    c->controlled[MEM] = spec->controls[API_MEMORY] && !s->policy->off &&
                         !s->policy->requests_only && s->memory_modelled;
    set_metrics(seen, spec);
}

/* No windows, and steps of any size. */
static void lift_behavior(struct api_rules *rules)
{
    rules->stabilization_s = 0;
    rules->select = API_SELECT_MAX;
    rules->policies[0].type = API_POLICY_PODS;
    rules->policies[0].value = INT32_MAX;
    rules->policies[0].period_s = 1;
    rules->policy_count = 1;
}

static void attach_oracle(struct subject *s, const struct trial_config *config,
                          const struct cluster_function *settings)
{
    bool ample = true;
    for (size_t i = 0; i < config->node_count; i++)
        ample = ample && isinf(config->nodes[i].cores);
    oracle_attach(s->memory, &(struct oracle_world){
                                 .cluster = s->cluster,
                                 .function = s->index,
                                 .settings = settings,
                                 .ample = ample,
                                 .requests_only = s->policy->requests_only,
                                 .interval_s = s->interval_s,
                                 .span_s = config->span_s,
                                 .late_share = 1 - s->spec.latency_percentile / 100,
                             });
}

void subject_init(struct subject *s, const struct trial_config *config,
                  const struct cluster_function *settings, struct cluster *cluster, size_t index)
{
    const struct trial_function *function = &config->functions[index];
    const struct recommender *r = config->choice->recommender;
    *s = (struct subject){
        .recommender = r,
        .instead = config->instead,
        .cluster = cluster,
        .index = index,
        .interval_s = r->interval_s > 0 ? r->interval_s : config->interval_s,
        .spec = *function->spec,
        .guard = guard_new(),
        .limits = &guard_default_limits,
        .memory_modelled = settings->memory_limit_bytes > 0,
        .increased_s = -INFINITY,
        .deferred_s = INFINITY,
    };
    double memory_s = fmax(s->spec.scale_down.stabilization_s, 2 * s->interval_s);
    s->memory = r->create(memory_s, config->choice->params);
    if (r->use)
        r->use(s->memory, function->policy ? function->policy : config->choice->policy,
               &(struct error){0});
    if (r->damps_itself && !function->behavior_stated) {
        lift_behavior(&s->spec.scale_up);
        lift_behavior(&s->spec.scale_down);
    }
    set_observation(s, settings->goal_ms);
    s->explains = config->on_sample && r->explain;
    if (trial_is_oracle(r)) {
        s->limits = &no_limits;
        attach_oracle(s, config, settings);
    }
}

void subject_clear(struct subject *s)
{
    if (s->memory)
        s->recommender->destroy(s->memory);
    guard_free(s->guard);
    free(s->pods);
    free(s->replicas);
}

/* --- looking --------------------------------------------------------------------------------- */
static void see_pod(const struct subject *s, const struct cluster_replica *r, double span_s,
                    struct recommend_pod *pod)
{
    struct recommend_usage *u = &pod->containers[0];
    double counted_s = fmin(span_s, r->ready_s);
    pod->ready = r->phase == CLUSTER_READY;
    pod->pending = !pod->ready;
    pod->starting = !pod->ready || r->ready_s < span_s / 2;
    pod->age_s = r->age_s;
    u->request[CPU] = r->request_milli;
    u->usage[CPU] = pod->ready && counted_s > 0 ? r->cpu_s / counted_s * 1000 : NAN;
    u->request[MEM] = s->memory_modelled ? r->memory_limit_bytes : NAN;
    u->usage[MEM] = pod->ready && s->memory_modelled ? r->memory_bytes : NAN;
}

static size_t list_replicas(struct subject *s)
{
    size_t count = cluster_replicas(s->cluster, s->index, s->replicas, s->pod_cap);
    if (count <= s->pod_cap)
        return count;
    s->pod_cap = count * 2;
    s->replicas = xrealloc(s->replicas, s->pod_cap, sizeof(*s->replicas));
    s->pods = xrealloc(s->pods, s->pod_cap, sizeof(*s->pods));
    return cluster_replicas(s->cluster, s->index, s->replicas, s->pod_cap);
}

/* Those on their way out are no longer looked at. Throttling is the mean over those that ran. */
static void see_pods(struct subject *s, double span_s)
{
    struct observation *seen = &s->seen;
    size_t count = list_replicas(s);
    double throttled = 0;
    int ran = 0;
    seen->pod_count = 0;
    seen->pods = s->pods;
    double *request = seen->containers[0].request;
    request[CPU] = request[MEM] = NAN;
    for (size_t i = 0; i < count; i++) {
        const struct cluster_replica *r = &s->replicas[i];
        if (r->phase == CLUSTER_DRAINING)
            continue;
        see_pod(s, r, span_s, &s->pods[seen->pod_count++]);
        request[CPU] = fmax(request[CPU], r->request_milli);
        if (s->memory_modelled)
            request[MEM] = fmax(request[MEM], r->memory_limit_bytes);
        if (r->limit_milli > 0 && r->periods > 0) {
            throttled += (double)r->throttled_periods / (double)r->periods;
            ran++;
        }
    }
    seen->throttled = ran ? throttled / ran : NAN;
}

static double bound(int64_t value, double otherwise)
{
    return value == API_ABSENT ? otherwise : (double)value;
}

static void see_bounds(struct subject *s, double limit_milli)
{
    struct recommend_container *c = &s->seen.containers[0];
    double have = c->request[CPU];
    c->min[CPU] = bound(s->policy->min[API_CPU], 10);
    c->max[CPU] = bound(s->policy->max[API_CPU], fmax(have, limit_milli));
    c->min[MEM] = bound(s->policy->min[API_MEMORY], 16 << 20);
    c->max[MEM] = bound(s->policy->max[API_MEMORY], 1e18);
    if (s->capped_until_s > s->seen.now_s && have < c->max[CPU]) {
        c->max[CPU] = have;
        c->min[CPU] = fmin(c->min[CPU], have);
    }
    for (int r = 0; r < RECOMMEND_RESOURCE_COUNT; r++)
        if (c->max[r] < c->min[r])
            c->max[r] = c->min[r];
}

static void see_requests(struct subject *s, const struct cluster_stats *stats)
{
    struct observation *seen = &s->seen;
    seen->requests_per_s = (double)stats->completed / stats->span_s;
    seen->concurrency = stats->in_flight_s / stats->span_s;
    seen->latency_ms = seen->late_share = NAN;
    seen->latency_state = LATENCY_NO_TRAFFIC;
    if (stats->completed > 0) {
        seen->late_share = (double)stats->late / (double)stats->completed;
        seen->latency_ms = cluster_latency_quantile_ms(cluster_latency(s->cluster, s->index),
                                                       seen->percentile / 100);
        seen->latency_state = LATENCY_KNOWN;
    }
    if (!(seen->goal_ms > 0))
        seen->latency_state = LATENCY_NO_GOAL;
}

/* Whether any pod has figures: without them the controller changes nothing. */
static bool look(struct subject *s, const struct cluster_state *state)
{
    const struct cluster_stats *stats = cluster_stats(s->cluster, s->index);
    s->seen.now_s = cluster_now_s(s->cluster);
    s->seen.since_increase_s = s->seen.now_s - s->increased_s;
    s->seen.replicas_wanted = state->wanted;
    see_pods(s, stats->span_s);
    see_bounds(s, state->limit_milli);
    see_requests(s, stats);
    for (size_t i = 0; i < s->seen.pod_count; i++)
        if (!isnan(s->pods[i].containers[0].usage[CPU]))
            return true;
    return false;
}

/* --- acting ---------------------------------------------------------------------------------- */
static int64_t whole(double amount)
{
    return isnan(amount) ? API_ABSENT : (int64_t)llround(amount);
}

static void pass_guard(struct subject *s)
{
    guard_check_seen(s->guard, s->limits, &s->spec, &s->seen, s->capped_until_s > s->seen.now_s,
                     &s->proposed, &s->decision);
}

static bool resize_cpu(struct subject *s, const struct cluster_state *state)
{
    int64_t want = s->decision.containers[0].request[API_CPU];
    if (want == API_ABSENT || want == whole(s->seen.containers[0].request[CPU]))
        return false;
    struct error refused = {0};
    struct guard_pod_container pod = {
        .name = s->seen.containers[0].name,
        .request = {whole(state->request_milli), API_ABSENT},
        .limit = {state->limit_milli > 0 ? whole(state->limit_milli) : API_ABSENT, API_ABSENT},
        .want = {want, API_ABSENT},
        .requests_only = s->policy->requests_only,
    };
    if (guard_fit_pod(&pod, 1, &refused) <= 0)
        return false;
    int64_t limit = pod.new_limit[API_CPU];
    cluster_resize(s->cluster, s->index, (double)pod.new_request[API_CPU],
                   limit == API_ABSENT ? 0 : (double)limit);
    if ((double)want > s->seen.containers[0].request[CPU])
        s->increased_s = s->seen.now_s;
    return true;
}

/* What was asked for before and waits is nothing new. */
static bool resize_memory(struct subject *s, const struct cluster_state *state)
{
    const struct recommend_container *c = &s->seen.containers[0];
    int64_t want = s->decision.containers[0].request[API_MEMORY];
    if (!c->controlled[MEM] || want == API_ABSENT || want == whole(c->request[MEM]) ||
        want == whole(state->memory_limit_bytes))
        return false;
    cluster_resize_memory(s->cluster, s->index, (double)want);
    return true;
}

static bool scale(struct subject *s)
{
    int from = s->seen.replicas_wanted, to = s->decision.replicas;
    if (from == to)
        return false;
    cluster_scale(s->cluster, s->index, to);
    guard_scaled(s->guard, s->seen.now_s, from, to);
    if (to > from)
        s->increased_s = s->seen.now_s;
    return true;
}

static bool has_size(const struct cluster_replica *r)
{
    return r->phase == CLUSTER_STARTING || r->phase == CLUSTER_READY;
}

/* What most of them have, the larger of two that as many have. */
static double common_request(const struct subject *s, size_t count)
{
    const struct cluster_replica *r = s->replicas;
    double common = 0;
    size_t most = 0;
    for (size_t p = 0; p < count; p++) {
        size_t alike = 0;
        for (size_t i = 0; i < count && has_size(&r[p]); i++)
            alike += has_size(&r[i]) && r[i].request_milli == r[p].request_milli;
        if (alike > most || (alike == most && alike && r[p].request_milli > common)) {
            common = r[p].request_milli;
            most = alike;
        }
    }
    return common;
}

/* Nodes that have no room for a resize: replicas go back to what most have, and growth goes to more
 * of them for a while. One that waits for memory in use is no such thing. */
static void believe_refusal(struct subject *s, const struct cluster_state *state)
{
    double now_s = cluster_now_s(s->cluster);
    if (state->resizing == state->shrinks_waiting)
        s->deferred_s = INFINITY;
    else if (isinf(s->deferred_s))
        s->deferred_s = now_s;
    if (now_s - s->deferred_s < DEFERRED_PATIENCE_S)
        return;
    double have = common_request(s, list_replicas(s));
    if (!(have > 0))
        return;
    cluster_resize(s->cluster, s->index, have, state->limit_milli * have / state->request_milli);
    s->capped_until_s = now_s + CAP_S;
    s->deferred_s = INFINITY;
}

static int recommend(struct subject *s, struct error *err)
{
    if (s->instead)
        return s->instead->recommend(s->instead->arg, s->index, &s->seen, &s->proposed, err);
    return s->recommender->recommend(s->memory, &s->seen, &s->proposed, err);
}

bool subject_ask(struct subject *s, struct cluster_state *state)
{
    struct error none = {0};
    cluster_state(s->cluster, s->index, state);
    s->proposed.reason[0] = '\0';
    if (state->wanted <= 0 || !look(s, state) || recommend(s, &none) < 0)
        return false;
    if (s->explains && !s->instead)
        s->recommender->explain(s->memory, &s->seen, &s->proposed);
    return true;
}

bool subject_decide(struct subject *s)
{
    struct cluster_state state;
    if (!subject_ask(s, &state))
        return false;
    pass_guard(s);
    bool resized = resize_cpu(s, &state);
    resized = resize_memory(s, &state) || resized;
    if (resized)
        guard_resized(s->guard, s->seen.now_s);
    else
        believe_refusal(s, &state);
    bool scaled = scale(s);
    return resized || scaled;
}
