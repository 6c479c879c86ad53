/* One cluster of the world: a trial per episode, whose recommenders do as the learner says. */
#include "bootstrap/internal.h"

#include <math.h>
#include <string.h>

#define SCALE  20.0 /* so that rewards stay within a few units */
#define LINEAR 4.0  /* cost beyond it counts by its logarithm */
/* The price of as many late requests as are allowed, in times the needed CPU: little at first, more
 * from a share of them on that is spent. One step's is bounded, or a single bad one would drown the
 * rest. */
#define PRICE_LEAST 0.2
#define PRICE_MORE  2.0
#define SPENT_FROM  0.5
#define PRICE_MOST  12.0
#define FEW         3.0 /* allowed late requests of an episode: with fewer, as if there were so many */
#define REFERENCE_S 60.0

struct pupil { /* one function */
    struct lesson_row row;
    const struct recommend_policy *policy; /* the learner's word */
    struct trace trace;
    double needed_milli;
    double late_per_step; /* that the goal allows */
    double late, requests;
    double cost, reward;         /* sums for the figures */
    double all_cost, all_reward; /* sums over the episode */
};

struct lesson {
    const struct bootstrap_world_config *config;
    bool shared;
    struct random random;
    struct pupil *pupils;
    size_t count;
    struct api_spec spec;
    struct trial_function *functions;
    struct trial_choice choice;
    struct trial_config trial_config;
    struct cluster_node node[2];
    struct trial *trial;
    size_t step, steps; /* of the episode */
    bool ended;
    struct bootstrap_figures figures;
};

/* --- the learner speaks for a policy --------------------------------------------------------- */
static void repeat_after(void *arg, const float *features, const uint8_t *mask, int32_t *choices)
{
    const struct lesson_row *row = &((struct pupil *)arg)->row;
    struct rl_heads heads;
    recommend_policy_heads_init(&heads);
    memcpy(row->features, features, POLICY_FEATURE_COUNT * sizeof(*features));
    memcpy(row->mask, mask, heads.total);
    memcpy(choices, row->actions, POLICY_HEAD_COUNT * sizeof(*choices));
}

/* --- an episode ------------------------------------------------------------------------------ */
/* As the trace has them, in pieces of a minute: what an oracle would know. */
static double needed_milli(const struct lesson *l, const struct trial_function *f, double goal_ms)
{
    const struct trace_function *w = f->workload;
    size_t per_piece = (size_t)fmax(REFERENCE_S / w->slot_s, 1), count = w->slot_count / per_piece;
    cleanup_free double *rates = xcalloc(count + 1, sizeof(*rates));
    for (size_t i = 0; i < count * per_piece; i++)
        rates[i / per_piece] += w->counts[i] / w->slot_s / (double)per_piece;
    return recommend_needed_milli(
        &(struct recommend_need){
            .mean_s = trace_mean_cpu_ms(w) / 1000,
            .tail_s = trace_cpu_quantile_ms(w, l->spec.latency_percentile / 100) / 1000,
            .percentile = l->spec.latency_percentile,
            .goal_s = goal_ms / 1000,
            .min_milli = (double)l->spec.containers[0].min[API_CPU],
            .max_milli = (double)l->spec.containers[0].max[API_CPU],
            .min_replicas = l->spec.min_replicas,
            .max_replicas = l->spec.max_replicas,
        },
        rates, count);
}

static double draw_goal_ms(struct lesson *l, const struct trace_function *w)
{
    double strict = random_uniform(&l->random) < 0.5 ? 1 : bootstrap_factor(&l->random, 0.7, 3);
    return strict * trace_default_goal_ms(w);
}

static int draw_function(struct lesson *l, size_t i, double span_s, struct error *err)
{
    struct pupil *p = &l->pupils[i];
    trace_clear(&p->trace);
    p->trace = (struct trace){0};
    const struct bootstrap_subject *subject = l->config->subject;
    if ((subject ? bootstrap_part(&l->random, subject, span_s, &p->trace)
                 : bootstrap_workload(&l->random, span_s, &p->trace, err)) < 0)
        return -1;
    const struct trace_function *w = &p->trace.functions[0];
    struct trial_function *f = &l->functions[i];
    *f = (struct trial_function){
        .workload = w,
        .spec = &l->spec,
        .goal_ms = subject ? subject->goal_ms : draw_goal_ms(l, w),
        .policy = p->policy,
    };
    p->needed_milli = needed_milli(l, f, f->goal_ms);
    double requests = trace_requests(w) / trace_span_s(w) * l->config->interval_s;
    double allowed = requests * (1 - l->spec.latency_percentile / 100);
    p->late_per_step = fmax(allowed, FEW / (double)l->config->episode_steps);
    p->late = p->requests = p->all_cost = p->all_reward = 0;
    return 0;
}

static void draw_cluster(struct lesson *l, double span_s)
{
    struct cluster_function defaults = trial_default_function;
    defaults.start_s = bootstrap_factor(&l->random, 1, 10);
    defaults.resize_s = bootstrap_factor(&l->random, 0.3, 1);
    if (random_uniform(&l->random) < 0.2)
        defaults.overhead_ms = bootstrap_factor(&l->random, 0.3, 10);
    if (random_uniform(&l->random) < 0.2)
        defaults.cold_cpu_ms = bootstrap_factor(&l->random, 5, 200);
    for (size_t i = 0; i < ARRAY_LEN(l->node); i++)
        l->node[i] = (struct cluster_node){.cores = bootstrap_between(&l->random, 2, 6),
                                           .memory_bytes = INFINITY};
    l->trial_config = (struct trial_config){
        .functions = l->functions,
        .function_count = l->count,
        .nodes = l->node,
        .node_count = l->shared ? ARRAY_LEN(l->node) : 0,
        .defaults = defaults,
        .choice = &l->choice,
        .interval_s = l->config->interval_s,
        .span_s = span_s,
        .seed = random_bits(&l->random),
    };
}

static void ask_all(struct lesson *l)
{
    for (size_t i = 0; i < l->count; i++)
        trial_ask(l->trial, i);
}

static int begin_episode(struct lesson *l, struct error *err)
{
    double span_s = (double)(l->steps + 1) * l->config->interval_s;
    trial_close(l->trial);
    l->trial = NULL;
    for (size_t i = 0; i < l->count; i++)
        if (draw_function(l, i, span_s, err) < 0)
            return -1;
    draw_cluster(l, span_s);
    l->trial = trial_open(&l->trial_config, err);
    if (!l->trial)
        return -1;
    l->step = 0;
    l->ended = false;
    trial_advance(l->trial);
    ask_all(l);
    return 0;
}

/* --- what is earned -------------------------------------------------------------------------- */
static void reward(struct lesson *l, size_t i)
{
    struct pupil *p = &l->pupils[i];
    const struct cluster_stats *stats = trial_interval(l->trial, i);
    double late = (double)(stats->late + stats->lost);
    double cost = stats->requested_cpu_s * 1000 / stats->span_s / p->needed_milli;
    p->late += late;
    p->requests += (double)stats->arrived;
    double allowed = (1 - l->spec.latency_percentile / 100) * p->requests;
    double spent = p->late / fmax(allowed, FEW);
    double price = PRICE_LEAST + PRICE_MORE * fmin(fmax(spent - SPENT_FROM, 0), 1);
    p->cost += cost;
    p->all_cost += cost;
    if (cost > LINEAR)
        cost = LINEAR * (1 + log(cost / LINEAR));
    *p->row.reward = (float)(-(cost + fmin(price * late / p->late_per_step, PRICE_MOST)) / SCALE);
    p->reward += *p->row.reward;
    p->all_reward += *p->row.reward;
}

static void end_episode(struct lesson *l)
{
    double share = 1 - l->spec.latency_percentile / 100;
    l->ended = true;
    l->steps = l->config->episode_steps;
    for (size_t i = 0; i < l->count; i++) {
        const struct pupil *p = &l->pupils[i];
        double late = p->requests > 0 ? p->late / p->requests / share : 0;
        *l->pupils[i].row.truncated = 1;
        l->figures.episodes++;
        l->figures.met += late <= 1;
        l->figures.late_ratio += fmin(late, 10);
    }
}

static void count_figures(struct lesson *l)
{
    for (size_t i = 0; i < l->count; i++) {
        l->figures.steps++;
        l->figures.cost += l->pupils[i].cost;
        l->figures.reward += l->pupils[i].reward;
        l->pupils[i].cost = l->pupils[i].reward = 0;
    }
}

void lesson_step(struct lesson *l)
{
    struct error err;
    for (size_t i = 0; i < l->count; i++) {
        *l->pupils[i].row.reward = 0;
        *l->pupils[i].row.truncated = 0;
    }
    if (l->ended) { /* the step behind an end counts for nothing */
        begin_episode(l, &err);
        return;
    }
    trial_decide(l->trial);
    trial_advance(l->trial);
    for (size_t i = 0; i < l->count; i++)
        reward(l, i);
    count_figures(l);
    ask_all(l);
    if (++l->step >= l->steps)
        end_episode(l);
}

/* --- the whole ------------------------------------------------------------------------------- */
static int set_policies(struct lesson *l, struct error *err)
{
    for (size_t i = 0; i < l->count; i++) {
        struct pupil *p = &l->pupils[i];
        p->policy = l->config->recommender
                        ? recommend_policy_hold(l->config->policy)
                        : recommend_policy_by(repeat_after, p, l->config->off, err);
        if (!p->policy && !l->config->recommender)
            return -1;
    }
    return 0;
}

struct lesson *lesson_new(const struct bootstrap_world_config *config, bool shared, uint64_t seed,
                          const struct lesson_row *rows, size_t count, struct error *err)
{
    struct lesson *l = xcalloc(1, sizeof(*l));
    l->config = config;
    l->shared = shared;
    l->count = count;
    l->pupils = xcalloc(count, sizeof(*l->pupils));
    l->functions = xcalloc(count, sizeof(*l->functions));
    l->choice.recommender = config->recommender ? config->recommender : &recommend_ppo;
    trial_default_spec(&l->spec);
    if (config->subject && config->subject->spec)
        l->spec = *config->subject->spec;
    l->spec.controls[API_MEMORY] = false; /* nobody who learns has a say in it */
    for (size_t i = 0; i < count; i++)
        l->pupils[i].row = rows[i];
    l->random = random_stream(seed, 0);
    l->steps = config->episode_steps;
    if (set_policies(l, err) == 0 && begin_episode(l, err) == 0)
        return l;
    lesson_free(l);
    return NULL;
}

void lesson_free(struct lesson *l)
{
    trial_close(l->trial);
    for (size_t i = 0; i < l->count; i++) {
        recommend_policy_release(l->pupils[i].policy);
        trace_clear(&l->pupils[i].trace);
    }
    free(l->pupils);
    free(l->functions);
    free(l);
}

void lesson_reset(struct lesson *l, uint64_t seed)
{
    struct error err;
    l->random = random_stream(seed, 0);
    size_t most = l->config->episode_steps;
    l->steps = most / 4 + (size_t)random_below(&l->random, most - most / 4 + 1);
    begin_episode(l, &err);
}

struct lesson_outcome lesson_outcome(const struct lesson *l, size_t function)
{
    const struct pupil *p = &l->pupils[function];
    return (struct lesson_outcome){
        .workload = &p->trace.functions[0],
        .requests = p->requests,
        .late = p->late,
        .cost = l->step > 0 ? p->all_cost / (double)l->step : 0,
        .reward = l->step > 0 ? p->all_reward / (double)l->step : 0,
    };
}

struct bootstrap_figures lesson_figures(struct lesson *l)
{
    struct bootstrap_figures figures = l->figures;
    l->figures = (struct bootstrap_figures){0};
    return figures;
}
