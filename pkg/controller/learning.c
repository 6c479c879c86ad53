/* Policies of their own for MPAs whose recommender learns: the past of each, the searches, what
 * they find, and where that is kept. What may decide when is its course's business (pkg/learn). */
#include "entry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trial/trial.h"

struct learning {
    struct learn_course *course;
    struct learn_search *search;          /* NULL: none is under way */
    const struct recommend_policy *using; /* what the seat has; NULL: none */
    int64_t generation;                   /* of the MPA that the course is for */
    struct bytes {
        char *data; /* NULL: none */
        size_t len;
    } own, before; /* the policy of its own as an encoded checkpoint, and the one before it */
    bool asked_past, loading, reading; /* its past: was asked for, and what is still to come */
    struct learn_last last;
    struct learn_versions *versions; /* of the policies that decided, */
    enum learn_origin origin;        /* and of its own */
    enum learn_stage stage;          /* as of the last interval, */
    int64_t stage_since_ms;          /* wall clock: and since when */
};

static void count(const struct entry *e, const char *event)
{
    metrics_count(e->controller->report.learning, 1, METRICS_LABELS(event));
}

/* --- life --------------------------------------------------------------------------------------
 */
/* Rates, and a goal to hold them against, are what can be learned from. */
static bool can_learn(const struct entry *e)
{
    const struct api_spec *spec = &e->mpa.spec;
    return e->controller->learner && e->seat.recommender == &recommend_ppo &&
           spec->latency_target_us > 0 && !spec->latency_query;
}

static struct bytes copy(const char *data, size_t len)
{
    struct bytes out = {.data = data ? xcalloc(1, len) : NULL, .len = data ? len : 0};
    if (data)
        memcpy(out.data, data, len);
    return out;
}

static void take_own(struct learning *l, const char *data, size_t len)
{
    free(l->before.data);
    l->before = l->own;
    l->own = copy(data, len);
}

void learning_end(struct entry *e)
{
    struct learning *l = e->learning;
    if (!l)
        return;
    if (l->search)
        learner_give_up(l->search);
    learn_course_free(l->course);
    learn_versions_free(l->versions);
    free(l->own.data);
    free(l->before.data);
    free(l);
    e->learning = NULL;
}

void learning_forget(struct entry *e)
{
    const struct world *world = &e->controller->world;
    if (e->learning && e->controller->leading && world->drop_policy && e->mpa.uid)
        world->drop_policy(world->self, &e->mpa);
}

static void begin(struct entry *e)
{
    const struct controller *c = e->controller;
    struct error err = {0};
    struct learn_course *course = learn_course_new(&c->options.learn, c->options.policy,
                                                   (double)clock_mono_ms() / 1000, &err);
    if (!course) {
        log_error("nothing can be learned", log_str("why", err.message));
        return;
    }
    e->learning = xcalloc(1, sizeof(*e->learning));
    *e->learning = (struct learning){
        .course = course,
        .versions = learn_versions_new(),
        .using = c->options.policy,
        .generation = e->mpa.generation,
        .stage = learn_course_stage(course),
        .stage_since_ms = clock_wall_ms(),
    };
}

void learning_follow(struct entry *e)
{
    bool can = can_learn(e);
    if (e->learning && !can)
        learning_end(e);
    else if (!e->learning && can)
        begin(e);
}

/* --- its past ----------------------------------------------------------------------------------
 */
static void past_is_there(struct learning *l)
{
    if (!l->loading && !l->reading)
        learn_course_has_past(l->course);
}

/* It is looked for anew, and what nobody can read goes. */
static void tell_unreadable(struct entry *e, const struct error *err)
{
    entry_event(e, true, "PolicyUnreadable", "the policy that is kept of it: %s", err->message);
    if (err->code == ERROR_INVALID || err->code == ERROR_MALFORMED)
        learning_forget(e);
}

static void resume(struct entry *e, const struct world_policy *kept)
{
    struct learning *l = e->learning;
    struct error err = {0};
    struct recommend_policy *policy = recommend_policy_decode(kept->bytes, kept->len, &err);
    if (!policy || recommend_policy_check(policy, POLICY_OF_CORRECTIONS, &err) < 0) {
        tell_unreadable(e, &err);
    } else {
        take_own(l, kept->bytes, kept->len);
        l->origin = LEARN_KEPT;
        learn_course_resume(l->course, policy);
        if (kept->generation != e->mpa.generation)
            learn_course_renew(l->course);
        log_info("a policy is back", log_str("mpa", e->key),
                 log_str("sha256", recommend_policy_sha256(policy)));
    }
    recommend_policy_release(policy);
}

static void on_loaded(void *arg, const struct world_policy *kept, const struct error *err)
{
    struct entry *e = arg;
    struct learning *l = e->learning;
    if (!e->gone && l && l->loading) {
        l->loading = false;
        if (kept)
            resume(e, kept);
        else if (err->code != ERROR_NOT_FOUND && err->code != ERROR_CANCELLED)
            tell_unreadable(e, err);
        past_is_there(l);
    }
    entry_release(e);
}

bool learning_wants_past(const struct entry *e)
{
    return e->learning && !e->learning->asked_past;
}

void learning_ask_past(struct entry *e, bool reading)
{
    struct learning *l = e->learning;
    const struct world *world = &e->controller->world;
    l->asked_past = true;
    l->reading = reading;
    if (world->load_policy) {
        l->loading = true;
        entry_hold(e);
        world->load_policy(world->self, &e->mpa, on_loaded, e);
    }
    past_is_there(l);
}

void learning_remember(struct entry *e, const char *container, double time_s, double span_s,
                       double requests, double cpu_milli)
{
    const struct api_spec *spec = &e->mpa.spec;
    bool theirs =
        *container && spec->controls[API_CPU] && api_container_policy(spec, container)->off;
    if (e->learning && !theirs)
        recommend_record_remember(learn_course_record(e->learning->course), time_s, span_s,
                                  requests * span_s, cpu_milli / 1000 * span_s);
}

void learning_past_read(struct entry *e)
{
    if (!e->learning)
        return;
    e->learning->reading = false;
    past_is_there(e->learning);
}

/* --- searches ----------------------------------------------------------------------------------
 */
static void on_kept(void *arg, const struct error *err)
{
    struct entry *e = arg;
    if (err && err->code != ERROR_CANCELLED)
        log_warn("a policy was not kept: it is lost when another leads", log_str("mpa", e->key),
                 log_str("why", err->message));
    entry_release(e);
}

static void keep(struct entry *e)
{
    const struct world *world = &e->controller->world;
    const struct learning *l = e->learning;
    if (!world->save_policy || e->mpa.spec.mode == API_MODE_OFF) /* which writes but status */
        return;
    entry_hold(e);
    world->save_policy(world->self, &e->mpa,
                       &(struct world_policy){l->own.data, l->own.len, l->generation}, on_kept, e);
}

static void tell_found(struct entry *e, const struct learn_result *r)
{
    const struct bootstrap_gain *g = &r->gain;
    if (r->policy)
        entry_event(e, false, "PolicyFound",
                    "a policy of its own decides: in the simulator %.2f%% instead of %.2f%% of "
                    "requests late with %.2f instead of %.2f times the CPU needed (%.0f s)",
                    100 * g->after.late, 100 * g->before.late, g->after.cost, g->before.cost,
                    r->seconds);
    else
        entry_event(e, false, "PolicyKept",
                    "nothing better was found than the policy it has: %.2f%% of requests late "
                    "with %.2f times the CPU needed in the simulator (%.0f s)",
                    100 * g->before.late, g->before.cost, r->seconds);
}

static void on_found(void *arg, const struct learn_result *r)
{
    struct entry *e = arg;
    struct learning *l = e->learning;
    double now_s = (double)clock_mono_ms() / 1000;
    l->search = NULL;
    const char *result = r->err.code ? "failed" : r->policy ? "found" : "kept";
    count(e, result);
    if (r->err.code) {
        entry_event(e, true, "LearningFailed", "%s", r->err.message);
        learn_course_failed(l->course, now_s);
        return;
    }
    bool again = learn_course_stage(l->course) == LEARN_AGAIN || learn_course_has_own(l->course);
    learn_course_found(l->course, r->policy, now_s);
    tell_found(e, r);
    if (r->policy) {
        l->origin = again ? LEARN_RETRAINED : LEARN_BOOTSTRAPPED;
        take_own(l, r->bytes, r->len);
        keep(e);
    }
}

/* The pod as one container: what is ours of it, or all of it as it is. */
static struct api_spec bounds_of(const struct entry *e, const struct observation *seen)
{
    struct api_spec out;
    double min = 0, max = 0, all = 0;
    trial_default_spec(&out);
    for (size_t i = 0; i < seen->container_count; i++) {
        const struct recommend_container *c = &seen->containers[i];
        if (isfinite(c->request[RECOMMEND_CPU]))
            all += c->request[RECOMMEND_CPU];
        if (!c->controlled[RECOMMEND_CPU])
            continue;
        min += c->min[RECOMMEND_CPU];
        max += c->max[RECOMMEND_CPU];
    }
    out.latency_percentile = e->mpa.spec.latency_percentile;
    out.min_replicas = seen->min_replicas > 0 ? seen->min_replicas : 1;
    out.max_replicas = seen->max_replicas;
    out.containers[0].min[API_CPU] = llround(fmax(max > 0 ? min : all, 1));
    out.containers[0].max[API_CPU] = llround(fmax(max > 0 ? max : all, 1));
    return out;
}

static void search(struct entry *e, const struct observation *seen)
{
    struct learning *l = e->learning;
    struct learn_task task = {.goal_ms = seen->goal_ms,
                              .interval_s = e->controller->options.interval_s};
    struct error err = {0};
    if (learn_course_fit(l->course, e->mpa.name, &task.workload, &err) < 0) {
        log_debug("too little to learn from", log_str("mpa", e->key), log_str("why", err.message));
        learn_course_failed(l->course, seen->now_s);
        return;
    }
    struct api_spec bounds = bounds_of(e, seen);
    task.bounds = &bounds;
    struct bytes rival = copy(l->own.data, l->own.len);
    task.rival = rival.data;
    task.rival_len = rival.len;
    l->generation = e->mpa.generation;
    learn_course_began(l->course);
    l->search = learner_search(e->controller->learner, &task, on_found, e);
}

/* --- each interval -----------------------------------------------------------------------------
 */
static void go_back(struct entry *e)
{
    struct learning *l = e->learning;
    free(l->own.data);
    l->own = l->before;
    l->before = (struct bytes){0};
    if (l->own.data)
        keep(e);
    else
        learning_forget(e);
}

static void take_news(struct entry *e, enum learn_news news)
{
    struct learning *l = e->learning;
    const char *why = learn_course_why(l->course);
    if (news == LEARN_DRIFTED) {
        if (l->search)
            learner_give_up(l->search);
        l->search = NULL;
        learn_versions_leave(l->versions, LEARN_WAITS, why, clock_wall_ms());
        entry_event(e, true, "DriftDetected", "%s: thresholds decide until it has learned again",
                    why);
        count(e, "drifted");
    } else if (news == LEARN_WENT_BACK) {
        learn_versions_leave(l->versions, LEARN_ROLLED_BACK, why, clock_wall_ms());
        entry_event(e, true, "PolicyRolledBack", "the policy before decides again: %s", why);
        go_back(e);
        count(e, "rolled_back");
    }
}

static void use(struct entry *e)
{
    struct learning *l = e->learning;
    const struct recommend_policy *policy = learn_course_policy(l->course);
    bool own = policy && learn_course_has_own(l->course);
    struct error err;
    if (policy != l->using) {
        if (recommend_seat_use(&e->seat, policy, &err) < 0)
            return;
        l->using = policy;
        journal_policy(e->controller->options.journal, e->key, own ? l->own.data : NULL,
                       own ? l->own.len : policy != NULL);
    }
    learn_versions_take(l->versions, policy ? recommend_policy_sha256(policy) : NULL,
                        own ? l->origin : LEARN_SHIPPED, clock_wall_ms());
}

static void note_stage(struct learning *l)
{
    enum learn_stage stage = learn_course_stage(l->course);
    if (stage == l->stage)
        return;
    l->stage = stage;
    l->stage_since_ms = clock_wall_ms();
}

void learning_see(struct entry *e, const struct observation *seen)
{
    learning_follow(e);
    struct learning *l = e->learning;
    if (!l)
        return;
    if (l->generation != e->mpa.generation && !l->search) {
        learn_course_renew(l->course);
        l->generation = e->mpa.generation;
    }
    enum learn_news news = learn_course_see(l->course, seen, l->last);
    if (l->last.by_policy)
        learn_versions_earned(l->versions, learn_course_earned(l->course));
    take_news(e, news);
    if (learn_course_wants(l->course, seen->now_s))
        search(e, seen);
    note_stage(l);
    use(e);
}

void learning_decided(struct entry *e, bool by_policy)
{
    if (e->learning)
        e->learning->last = (struct learn_last){.by_policy = by_policy};
}

/* Windows, and what a node cannot give, hold everyone back. */
void learning_guarded(struct entry *e, const struct guard_decision *decision, bool cpu_capped)
{
    static const char *const of_anyone[] = {"ScaleUpStabilized", "ScaleDownStabilized",
                                            "ScalingDisabled"};
    if (!e->learning || !e->may_act || cpu_capped || !decision->limited)
        return;
    for (size_t i = 0; i < ARRAY_LEN(of_anyone); i++)
        if (strcmp(decision->limit_reason, of_anyone[i]) == 0)
            return;
    e->learning->last.held_back = true;
}

const char *learning_holds_back(const struct entry *e, char *text, size_t size)
{
    const struct learning *l = e->learning;
    if (!l || learn_course_policy(l->course))
        return NULL;
    enum learn_stage stage = learn_course_stage(l->course);
    double done = l->search ? learner_progress(l->search) : 0;
    if (stage == LEARN_BEGIN)
        snprintf(text, size, "bootstrapping %.0f %%", 100 * done);
    else
        snprintf(text, size, "retraining %.0f %%, as %s", 100 * done, learn_course_why(l->course));
    return learn_stage_name(stage);
}

const char *learning_which(const struct entry *e)
{
    return e->learning && learn_course_has_own(e->learning->course) ? "a policy of its own"
                                                                    : "the general policy";
}

bool learning_state(const struct entry *e, struct learning_state *out)
{
    const struct learning *l = e->learning;
    if (!l)
        return false;
    *out = (struct learning_state){
        .stage = learn_stage_name(l->stage),
        .since_ms = l->stage_since_ms,
        .own_policy = learn_course_has_own(l->course),
        .progress = l->search ? learner_progress(l->search) : (double)NAN,
    };
    return true;
}

/* A policy that nobody looks for a better one of: it is said why. */
static bool tell_fixed(const struct entry *e, struct learning_told *out)
{
    const struct recommend_policy *policy = e->controller->options.policy;
    if (!e->seat.recommender || !e->seat.recommender->use || !policy)
        return false;
    out->state = "general";
    out->policy = "general policy";
    out->sha256 = recommend_policy_sha256(policy);
    snprintf(out->message, sizeof(out->message), "%s",
             !e->controller->learner ? "nothing is learned here"
                                     : "nothing is learned of it: that needs recommender ppo and "
                                       "a latency goal without a query of its own");
    return true;
}

static const char *state_of(const struct learning *l)
{
    enum learn_stage stage = learn_course_stage(l->course);
    return stage == LEARN_BEGIN              ? "bootstrapping"
           : stage == LEARN_AGAIN            ? "retraining"
           : l->search                       ? "learning"
           : learn_course_has_own(l->course) ? "own"
                                             : "general";
}

bool learning_tell(const struct entry *e, struct learning_told *out)
{
    const struct learning *l = e->learning;
    *out = (struct learning_told){.progress = NAN};
    if (!l)
        return tell_fixed(e, out);
    const struct recommend_policy *policy = learn_course_policy(l->course);
    out->state = state_of(l);
    out->versions = l->versions;
    if (!policy)
        out->since_ms = l->stage_since_ms;
    if (l->search)
        out->progress = learner_progress(l->search);
    if (policy) {
        out->policy = learn_course_has_own(l->course) ? "a policy of its own" : "general policy";
        out->sha256 = recommend_policy_sha256(policy);
    }
    if (!learning_holds_back(e, out->message, sizeof(out->message)))
        snprintf(out->message, sizeof(out->message), "%s",
                 learn_course_stage(l->course) == LEARN_WATCH
                     ? "too little is known of its load to learn from"
                 : l->search ? "something better is looked for"
                             : "");
    return true;
}

double learning_earned(const struct entry *e)
{
    return e->learning ? learn_course_earned(e->learning->course) : NAN;
}
