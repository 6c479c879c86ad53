/* Reading the journal, and repeating what it tells. */
#include "internal.h"
#include "recommend/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct subject { /* an MPA as far as it has been read */
    struct api_mpa mpa;
    bool parsed;
    bool whole; /* guard and recommender were there from their beginning */
    struct recommend_seat seat;
    char *name; /* of the one who decided then */
    struct guard *guard;
};

struct reading {
    const struct journal_replay *replay;
    const char *path;
    size_t number; /* of the line */
    struct journal_setting setting;
    bool set; /* the setting is known */
    struct map subjects;
    bool enough;
};

/* --- MPAs ----------------------------------------------------------------------------------------
 */
static void forget(struct subject *s)
{
    recommend_seat_leave(&s->seat);
    guard_free(s->guard);
    s->guard = guard_new();
    s->whole = true;
}

static void free_subject(void *value)
{
    struct subject *s = value;
    recommend_seat_leave(&s->seat);
    guard_free(s->guard);
    if (s->parsed)
        api_clear(&s->mpa);
    free(s->name);
    free(s);
}

static struct subject *subject_of(struct reading *r, const char *key)
{
    struct subject *s = map_get(&r->subjects, key);
    if (s == NULL) {
        s = xcalloc(1, sizeof(*s));
        s->guard = guard_new();
        map_put(&r->subjects, key, s);
    }
    return s;
}

/* --- lines ---------------------------------------------------------------------------------------
 */
static int read_setting(struct reading *r, const json_t *line, struct error *err)
{
    struct guard_limits *l = &r->setting.limits;
    json_int_t version = json_integer_value(json_object_get(line, "journal"));
    if (version != JOURNAL_VERSION)
        return error_set(err, ERROR_INVALID, "version %lld of the journal: %d can be read",
                         (long long)version, JOURNAL_VERSION);
    if (json_is_true(json_object_get(line, "begins"))) /* another process: it knows nothing */
        map_free(&r->subjects, free_subject);
    r->setting.default_cpu_utilization =
        (int)json_integer_value(json_object_get(line, "default_cpu_utilization"));
    r->set = true;
    if (journal_read_number(line, "resize_cooldown_s", &l->resize_cooldown_s, err) < 0 ||
        journal_read_number(line, "resize_up_factor", &l->resize_up_factor, err) < 0 ||
        journal_read_number(line, "resize_down_factor", &l->resize_down_factor, err) < 0)
        return -1;
    return journal_read_number(line, "resize_threshold", &l->resize_threshold, err);
}

static int read_mpa(struct reading *r, struct subject *s, const json_t *line, struct error *err)
{
    struct api_mpa mpa;
    if (api_parse(json_object_get(line, "object"), &mpa, err) < 0)
        return error_prefix(err, "object");
    if (s->parsed)
        api_clear(&s->mpa);
    s->mpa = mpa;
    s->parsed = true;
    api_use_default_utilization(&s->mpa.spec, r->setting.default_cpu_utilization);
    return 0;
}

static int read_forgot(struct reading *r, struct subject *s, const json_t *line, struct error *err)
{
    (void)r;
    (void)line;
    (void)err;
    forget(s);
    return 0;
}

static int read_began(struct reading *r, struct subject *s, const json_t *line, struct error *err)
{
    const char *name = json_str(json_object_get(line, "recommender"));
    const char *asked = r->replay->recommender ? r->replay->recommender : name;
    double memory_s;
    if (journal_read_number(line, "memory_s", &memory_s, err) < 0)
        return -1;
    const struct recommender *recommender = recommend_find(asked);
    if (recommender == NULL)
        return error_set(err, ERROR_INVALID, "there is no recommender \"%.64s\" here", asked);
    recommend_seat_leave(&s->seat);
    string_set(&s->name, name);
    if (recommend_seat_take(&s->seat, recommender, memory_s,
                            r->replay->recommender ? r->replay->params : NULL, r->replay->policy,
                            err) < 0)
        return error_prefix(err, "%s", asked);
    return 0;
}

/* Where another recommender is asked than the one who decided, policies are not for it. */
static int read_policy(struct reading *r, struct subject *s, const json_t *line, struct error *err)
{
    const char *text = json_str(json_object_get(line, "policy"));
    const struct recommender *asked = s->seat.recommender;
    size_t len;
    if (!asked || !asked->use || strcmp(asked->name, s->name) != 0)
        return 0;
    if (strcmp(text, "general") == 0 || !*text)
        return recommend_seat_use(&s->seat, *text ? r->replay->policy : NULL, err);
    cleanup_free char *bytes = base64_decode(text, &len);
    if (!bytes)
        return error_set(err, ERROR_MALFORMED, "policy: is not base64");
    struct recommend_policy *policy = recommend_policy_decode(bytes, len, err);
    if (!policy)
        return error_prefix(err, "policy");
    int result = recommend_seat_use(&s->seat, policy, err);
    recommend_policy_release(policy);
    return result;
}

static int read_remembered(struct reading *r, struct subject *s, const json_t *line,
                           struct error *err)
{
    (void)r;
    double time_s, usage;
    json_int_t resource = json_integer_value(json_object_get(line, "resource"));
    if (journal_read_number(line, "time_s", &time_s, err) < 0 ||
        journal_read_number(line, "usage", &usage, err) < 0)
        return -1;
    if (resource < 0 || resource >= RECOMMEND_RESOURCE_COUNT)
        return error_set(err, ERROR_MALFORMED, "there is no resource %lld", (long long)resource);
    recommend_seat_remember(&s->seat, json_str(json_object_get(line, "container")),
                            (enum recommend_resource)resource, time_s, usage);
    return 0;
}

static int read_scaled(struct reading *r, struct subject *s, const json_t *line, struct error *err)
{
    (void)r;
    double now_s;
    if (journal_read_number(line, "now_s", &now_s, err) < 0)
        return -1;
    guard_scaled(s->guard, now_s, (int)json_integer_value(json_object_get(line, "from")),
                 (int)json_integer_value(json_object_get(line, "to")));
    return 0;
}

static int read_resized(struct reading *r, struct subject *s, const json_t *line, struct error *err)
{
    (void)r;
    double now_s;
    if (journal_read_number(line, "now_s", &now_s, err) < 0)
        return -1;
    guard_resized(s->guard, now_s);
    return 0;
}

/* --- decisions -----------------------------------------------------------------------------------
 */
static int read_step(const struct subject *s, const json_t *line, struct journal_step *step,
                     struct error *err)
{
    const json_t *proposed = json_object_get(line, "proposed");
    step->mpa = &s->mpa;
    step->action = json_str(json_object_get(line, "action"));
    step->reason = json_str(json_object_get(line, "reason"));
    step->recommender = json_is_true(json_object_get(line, "external")) || s->name == NULL
                            ? s->mpa.spec.recommender
                            : s->name;
    step->was_decided = proposed != NULL;
    if (time_parse(json_str(json_object_get(line, "time")), &step->time_ms) < 0)
        return error_set(err, ERROR_MALFORMED, "time is no time");
    if (proposed == NULL)
        return 0;
    if (journal_read_proposed(proposed, &step->was_proposed, err) < 0)
        return error_prefix(err, "proposed");
    if (journal_read_decided(json_object_get(line, "decided"), &step->was, err) < 0)
        return error_prefix(err, "decided");
    return 0;
}

/* What the group of the MPA left it then. */
static void hold(const json_t *harvest, const struct observation *seen,
                 struct recommendation *proposed)
{
    json_int_t state = json_integer_value(json_object_get(harvest, "state"));
    struct harvest_range range;
    struct error none;
    if (!harvest || state < SAFEGUARD_FIRST || state > SAFEGUARD_UNDER ||
        journal_read_number(harvest, "low", &range.low, &none) < 0 ||
        journal_read_number(harvest, "high", &range.high, &none) < 0)
        return;
    range.state = (enum safeguard_state)state;
    harvest_hold(&range, seen, proposed);
}

/* An external proposal is taken as it was, unless another recommender is asked. */
static void repeat(const struct reading *r, struct subject *s, const json_t *line,
                   const struct observation *seen, struct journal_step *step)
{
    struct error why = {0}, instead;
    bool external = json_is_true(json_object_get(line, "external"));
    if (external && !r->replay->recommender) {
        step->proposed = step->was_proposed;
        step->is_decided = step->was_decided;
    } else {
        step->is_decided =
            s->seat.recommender &&
            recommend_seat_ask(&s->seat, seen, json_is_true(json_object_get(line, "sizes_stay")),
                               &step->proposed, &instead, &why) == 0;
        if (step->is_decided) {
            recommend_seat_explain(&s->seat, seen, &step->proposed);
            hold(json_object_get(line, "harvest"), seen, &step->proposed);
        }
    }
    if (step->is_decided)
        guard_check_seen(s->guard, &r->setting.limits, &s->mpa.spec, seen,
                         json_is_true(json_object_get(line, "cpu_capped")), &step->proposed,
                         &step->is);
}

static bool is_same(const struct journal_step *step, const json_t *line)
{
    if (step->was_decided != step->is_decided)
        return false;
    if (!step->is_decided)
        return true;
    cleanup_json json_t *proposed = journal_proposed_json(&step->proposed);
    cleanup_json json_t *decided = journal_decided_json(&step->is, step->seen->container_count);
    return json_equal(proposed, json_object_get(line, "proposed")) &&
           json_equal(decided, json_object_get(line, "decided"));
}

static int read_decision(struct reading *r, struct subject *s, const json_t *line,
                         struct error *err)
{
    struct journal_seen seen;
    struct journal_step step = {.key = json_str(json_object_get(line, "mpa"))};
    int result = journal_read_seen(json_object_get(line, "seen"), &seen, err);
    if (result < 0)
        error_prefix(err, "seen");
    if (result == 0 && s->parsed)
        result = read_step(s, line, &step, err);
    if (result == 0 && s->parsed) { /* else it is from before the journal's beginning */
        step.seen = &seen.seen;
        step.known =
            s->whole && (s->seat.recommender || json_is_true(json_object_get(line, "external")));
        repeat(r, s, line, &seen.seen, &step);
        step.same = step.known && is_same(&step, line);
        r->enough = !r->replay->on_step(r->replay->arg, &step);
    }
    journal_seen_clear(&seen);
    return result;
}

/* --- files ---------------------------------------------------------------------------------------
 */
static const struct {
    const char *name;
    int (*read)(struct reading *r, struct subject *s, const json_t *line, struct error *err);
} kinds[] = {
    {"mpa", read_mpa},           {"forgot", read_forgot},         {"began", read_began},
    {"scaled", read_scaled},     {"remembered", read_remembered}, {"resized", read_resized},
    {"decision", read_decision}, {"policy", read_policy},
};

static int read_line(struct reading *r, const char *text, size_t len, struct error *err)
{
    json_error_t wrong;
    cleanup_json json_t *line = json_loadb(text, len, 0, &wrong);
    if (line == NULL)
        return error_set(err, ERROR_MALFORMED, "%s", wrong.text);
    const char *kind = json_str(json_object_get(line, "line"));
    const char *key = json_str(json_object_get(line, "mpa"));
    if (strcmp(kind, "setting") == 0)
        return read_setting(r, line, err);
    if (!r->set)
        return error_set(err, ERROR_MALFORMED, "it does not begin with a line \"setting\"");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kind, kinds[i].name) == 0 && *key)
            return kinds[i].read(r, subject_of(r, key), line, err);
    return error_set(err, ERROR_MALFORMED, "there is no line \"%.20s\" with an MPA", kind);
}

static int read_lines(struct reading *r, FILE *file, struct error *err)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t len;
    int result = 0;
    while (result == 0 && !r->enough && (len = getline(&text, &room, file)) > 0) {
        r->number++;
        if (text[len - 1] != '\n') /* cut while it was written */
            break;
        if ((size_t)len > JOURNAL_MAX_LINE)
            result =
                error_set(err, ERROR_TOO_LARGE, "a line of more than %zu bytes", JOURNAL_MAX_LINE);
        else if (len > 1)
            result = read_line(r, text, (size_t)len - 1, err);
    }
    free(text);
    return result < 0 ? error_prefix(err, "%s:%zu", r->path, r->number) : 0;
}

static int read_file(struct reading *r, const char *path, bool must_be, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL && !must_be)
        return 0;
    if (file == NULL)
        return error_set(err, ERROR_NOT_FOUND, "cannot open %s: %s", path, strerror(errno));
    r->path = path;
    r->number = 0;
    int result = read_lines(r, file, err);
    fclose(file);
    return result;
}

int journal_replay(const char *path, const struct journal_replay *replay, struct error *err)
{
    struct reading r = {.replay = replay};
    cleanup_free char *before = xasprintf("%s.1", path);
    int result = read_file(&r, before, false, err);
    if (result == 0 && !r.enough)
        result = read_file(&r, path, true, err);
    map_free(&r.subjects, free_subject);
    return result;
}
