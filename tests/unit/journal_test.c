/* The journal: nothing that was seen or decided is lost, and all of it can be repeated. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "journal/journal.h"

#define KEY "default/web"

static const struct journal_setting setting = {
    .limits = {.resize_cooldown_s = 10,
               .resize_up_factor = 4,
               .resize_down_factor = 0.5,
               .resize_threshold = 0.1},
    .default_cpu_utilization = 60,
};

struct place { /* of a journal, alone in a directory */
    char directory[64], path[96], before[96];
};

static int make_place(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));
    snprintf(p->directory, sizeof(p->directory), "/tmp/journal_test.XXXXXX");
    assert_non_null(mkdtemp(p->directory));
    snprintf(p->path, sizeof(p->path), "%s/journal", p->directory);
    snprintf(p->before, sizeof(p->before), "%s/journal.1", p->directory);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    unlink(p->path);
    unlink(p->before);
    rmdir(p->directory);
    free(p);
    return 0;
}

/* --- a controller in small -----------------------------------------------------------------------
 */
static json_t *mpa_object(void)
{
    json_t *object = json_loads(
        "{\"apiVersion\":\"autoscaling.faasrl.io/v1alpha1\",\"kind\":\"MultidimPodAutoscaler\","
        "\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"uid\":\"u\",\"generation\":1,"
        "\"managedFields\":[{\"manager\":\"secret\"}]},"
        "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\","
        "\"name\":\"web\"},\"goals\":{\"latency\":{\"percentile\":99,\"target\":\"200ms\"}},"
        "\"constraints\":{\"global\":{\"minReplicas\":1,\"maxReplicas\":10}},"
        "\"recommenders\":[{\"name\":\"threshold\"}]},\"status\":{\"currentReplicas\":1}}",
        0, NULL);
    assert_non_null(object);
    return object;
}

struct scene {
    struct random random;
    struct journal *journal;
    struct api_mpa mpa;
    struct recommend_seat seat;
    struct guard *guard;
    struct observation seen;
    struct recommend_pod pods[5];
    int replicas;
    double cpu_milli, now_s;
};

static double odd_number(struct random *random)
{
    static const double odd[] = {0.1, 1.0 / 3, 5e-324, 1e300, 123456.789012345678, 0};
    return odd[random_below(random, ARRAY_LEN(odd))];
}

static void begin(struct scene *s, const char *path, size_t max_bytes, uint64_t seed)
{
    struct error err;
    json_t *object = mpa_object();
    *s = (struct scene){.random = random_stream(seed, 0), .replicas = 1, .cpu_milli = 200};
    s->journal = journal_open(path, max_bytes, &setting, &err);
    assert_non_null(s->journal);
    assert_int_equal(api_parse(object, &s->mpa, &err), 0);
    api_use_default_utilization(&s->mpa.spec, setting.default_cpu_utilization);
    s->guard = guard_new();
    assert_int_equal(recommend_seat_take(&s->seat, &recommend_threshold, 300, NULL, NULL, &err), 0);
    journal_forgot(s->journal, KEY);
    journal_mpa(s->journal, KEY, object);
    journal_began(s->journal, KEY, "threshold", 300);
    recommend_seat_remember(&s->seat, "app", RECOMMEND_CPU, -1.0 / 3, 100.0 / 3);
    journal_remembered(s->journal, KEY, "app", RECOMMEND_CPU, -1.0 / 3, 100.0 / 3);
    json_decref(object);
}

static void end(struct scene *s)
{
    recommend_seat_leave(&s->seat);
    guard_free(s->guard);
    api_clear(&s->mpa);
    journal_close(s->journal);
}

static void look(struct scene *s)
{
    double load = 2.5 + 2 * sin(s->now_s / 900) + random_uniform(&s->random) / 2;
    s->now_s += 15 + random_uniform(&s->random);
    s->seen = (struct observation){
        .now_s = s->now_s,
        .latency_state = (enum recommend_latency)((int)(s->now_s / 1500) % (LATENCY_MISSING + 1)),
        .percentile = 99,
        .goal_ms = 200,
        .latency_ms = 100 * load,
        .requests_per_s = random_below(&s->random, 2) ? NAN : odd_number(&s->random),
        .concurrency = NAN,
        .throttled = random_uniform(&s->random),
        .since_increase_s = random_below(&s->random, 2) ? INFINITY : 20,
        .latency_window_s = 60,
        .replicas_wanted = s->replicas,
        .min_replicas = 1,
        .max_replicas = 10,
        .tolerance_up = 0.1,
        .tolerance_down = 0.1,
        .metrics = {{RECOMMEND_CPU, -1, 0.6, NAN}},
        .metric_count = 1,
        .container_count = 1,
        .pods = s->pods,
        .pod_count = 1 + random_below(&s->random, ARRAY_LEN(s->pods)),
    };
    s->seen.containers[0] = (struct recommend_container){
        .name = "app",
        .controlled = {true, false},
        .request = {s->cpu_milli, NAN},
        .min = {10, 0},
        .max = {400, 1e12},
    };
    for (size_t i = 0; i < s->seen.pod_count; i++)
        s->pods[i] = (struct recommend_pod){
            .ready = random_below(&s->random, 4) > 0,
            .age_s = odd_number(&s->random),
            .containers[0] = {.usage = {s->cpu_milli * load / 5, NAN},
                              .request = {s->cpu_milli, NAN}},
        };
}

static void carry_out(struct scene *s, const struct guard_decision *decided)
{
    if (decided->containers[0].resize) {
        s->cpu_milli = (double)decided->containers[0].request[API_CPU];
        guard_resized(s->guard, s->now_s);
        journal_resized(s->journal, KEY, s->now_s);
    }
    if (decided->replicas != s->replicas) {
        guard_scaled(s->guard, s->now_s, s->replicas, decided->replicas);
        journal_scaled(s->journal, KEY, s->now_s, s->replicas, decided->replicas);
        s->replicas = decided->replicas;
    }
}

static void decide(struct scene *s)
{
    struct recommendation proposed;
    struct guard_decision decided;
    struct error err, instead;
    struct journal_decision line = {.seen = &s->seen, .action = "Some", .reason = "cut \xe2\x86"};
    look(s);
    line.sizes_stay = random_below(&s->random, 4) == 0;
    line.cpu_capped = random_below(&s->random, 4) == 0;
    if (recommend_seat_ask(&s->seat, &s->seen, line.sizes_stay, &proposed, &instead, &err) == 0) {
        guard_check_seen(s->guard, &setting.limits, &s->mpa.spec, &s->seen, line.cpu_capped,
                         &proposed, &decided);
        line.proposed = &proposed;
        line.decided = &decided;
    }
    journal_decided(s->journal, KEY, &line);
    if (line.decided)
        carry_out(s, line.decided);
}

static void decide_often(const char *path, size_t max_bytes, uint64_t seed, int times)
{
    struct scene s;
    begin(&s, path, max_bytes, seed);
    for (int i = 0; i < times; i++)
        decide(&s);
    end(&s);
}

/* --- and its journal, read -----------------------------------------------------------------------
 */
struct found {
    size_t steps, same, known, scaled;
    struct observation last;
    struct recommend_pod pods[5];
    char recommender[32], reason[64];
};

static bool on_step(void *arg, const struct journal_step *step)
{
    struct found *f = arg;
    f->steps++;
    f->same += step->same;
    f->known += step->known;
    f->scaled += step->is_decided && step->is.replicas != step->seen->replicas_wanted;
    f->last = *step->seen;
    memcpy(f->pods, step->seen->pods, step->seen->pod_count * sizeof(*f->pods));
    snprintf(f->recommender, sizeof(f->recommender), "%s", step->recommender);
    snprintf(f->reason, sizeof(f->reason), "%s", step->reason);
    assert_string_equal(step->key, KEY);
    return true;
}

static struct found replay(const char *path, const char *recommender)
{
    struct found found = {0};
    struct error err = {0};
    struct journal_replay asked = {.recommender = recommender, .on_step = on_step, .arg = &found};
    if (journal_replay(path, &asked, &err) < 0)
        fail_msg("%s", err.message);
    return found;
}

static void test_decisions_are_repeated_to_the_last_bit(void **state)
{
    const struct place *p = *state;
    decide_often(p->path, 1 << 30, 1, 400);
    struct found found = replay(p->path, NULL);
    assert_int_equal(found.steps, 400);
    assert_int_equal(found.known, 400);
    assert_int_equal(found.same, 400);
    assert_true(found.scaled > 5);
    assert_string_equal(found.recommender, "threshold");
    assert_string_equal(found.reason, "cut ");
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void test_what_was_seen_comes_back_as_it_was(void **state)
{
    const struct place *p = *state;
    for (uint64_t seed = 1; seed < 30; seed++) {
        struct scene s;
        unlink(p->path);
        begin(&s, p->path, 1 << 30, seed);
        decide(&s);
        struct found found = replay(p->path, NULL);
        const struct observation *a = &s.seen, *b = &found.last;
        assert_int_equal(a->latency_state, b->latency_state);
        assert_true(same_bits(a->now_s, b->now_s));
        assert_true(same_bits(a->latency_ms, b->latency_ms));
        assert_true(same_bits(a->requests_per_s, b->requests_per_s));
        assert_true(same_bits(a->throttled, b->throttled));
        assert_true(same_bits(a->since_increase_s, b->since_increase_s));
        assert_int_equal(a->pod_count, b->pod_count);
        for (size_t i = 0; i < a->pod_count; i++) {
            assert_int_equal(s.pods[i].ready, found.pods[i].ready);
            assert_true(same_bits(s.pods[i].age_s, found.pods[i].age_s));
            assert_true(same_bits(s.pods[i].containers[0].usage[RECOMMEND_CPU],
                                  found.pods[i].containers[0].usage[RECOMMEND_CPU]));
        }
        end(&s);
    }
}

static void test_another_recommender_can_be_asked(void **state)
{
    const struct place *p = *state;
    decide_often(p->path, 1 << 30, 2, 100);
    struct found found = replay(p->path, "fixed");
    assert_int_equal(found.steps, 100);
    assert_true(found.same < 100);
}

static void test_a_controller_that_starts_anew_goes_on(void **state)
{
    const struct place *p = *state;
    decide_often(p->path, 1 << 30, 3, 50);
    decide_often(p->path, 1 << 30, 4, 50);
    struct found found = replay(p->path, NULL);
    assert_int_equal(found.steps, 100);
    assert_int_equal(found.same, 100);
}

static void test_it_never_takes_more_than_two_files(void **state)
{
    const struct place *p = *state;
    size_t size;
    struct error err;
    decide_often(p->path, 20000, 5, 200);
    free(file_read(p->before, 1 << 20, &size, &err));
    assert_true(size >= 20000 && size < 30000);
    free(file_read(p->path, 1 << 20, &size, &err));
    assert_true(size < 30000);
    struct found found = replay(p->path, NULL);
    assert_true(found.steps > 5 && found.steps < 200);
    assert_int_equal(found.known, 0); /* what came before is gone, and it does not claim to know */
}

static void append(const char *path, const char *text)
{
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_a_line_cut_by_a_crash_is_left_out(void **state)
{
    const struct place *p = *state;
    decide_often(p->path, 1 << 30, 6, 5);
    append(p->path, "{\"line\":\"deci");
    assert_int_equal(replay(p->path, NULL).steps, 5);
    decide_often(p->path, 1 << 30, 7, 5);
    assert_int_equal(replay(p->path, NULL).same, 10);
}

static void test_what_is_no_journal_is_told_with_its_line(void **state)
{
    const struct place *p = *state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"hello\n", "journal:1: "},
        {"{\"line\":\"mpa\",\"mpa\":\"a/b\"}\n", "does not begin with a line \"setting\""},
        {"{\"line\":\"setting\",\"journal\":9}\n", "version 9 of the journal"},
        {"{\"line\":\"setting\",\"journal\":1}\n", "resize_cooldown_s"},
    };
    static const char *const after[] = {
        "{\"line\":\"else\",\"mpa\":\"a/b\"}\n",
        "{\"line\":\"decision\",\"mpa\":\"a/b\",\"seen\":{}}\n",
        "{\"line\":\"began\",\"mpa\":\"a/b\",\"recommender\":\"no\",\"memory_s\":1}\n",
        "{\"line\":\"mpa\",\"mpa\":\"a/b\",\"object\":{}}\n",
        "{\"line\":\"remembered\",\"mpa\":\"a/b\",\"time_s\":0,\"usage\":0,\"resource\":7}\n",
    };
    struct error err;
    struct found found = {0};
    struct journal_replay asked = {.on_step = on_step, .arg = &found};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unlink(p->path);
        append(p->path, cases[i].text);
        assert_int_equal(journal_replay(p->path, &asked, &err), -1);
        assert_non_null(strstr(err.message, cases[i].says));
    }
    for (size_t i = 0; i < ARRAY_LEN(after); i++) {
        unlink(p->path);
        journal_close(journal_open(p->path, 1 << 20, &setting, &err));
        append(p->path, after[i]);
        assert_int_equal(journal_replay(p->path, &asked, &err), -1);
        assert_non_null(strstr(err.message, "journal:2: "));
    }
    unlink(p->path);
    assert_int_equal(journal_replay(p->path, &asked, &err), -1);
    assert_non_null(strstr(err.message, "cannot open"));
}

static void test_secrets_of_others_are_not_kept(void **state)
{
    const struct place *p = *state;
    struct error err;
    decide_often(p->path, 1 << 30, 8, 1);
    cleanup_free char *text = file_read(p->path, 1 << 20, NULL, &err);
    assert_null(strstr(text, "managedFields"));
    assert_null(strstr(text, "currentReplicas"));
}

static void test_where_it_cannot_be_written_is_told(void **state)
{
    const struct place *p = *state;
    struct error err;
    assert_null(journal_open(p->directory, 1 << 20, &setting, &err));
    assert_non_null(strstr(err.message, "cannot write"));
    assert_null(journal_open("/dev/full", 1 << 20, &setting, &err));
    assert_non_null(strstr(err.message, "no plain file"));
}

/* A disk that is full is played by a limit on the size of files. */
static void test_a_full_disk_ends_the_journal_and_nothing_else(void **state)
{
    const struct place *p = *state;
    struct rlimit before, small;
    struct buf log;
    struct scene s;
    buf_init(&log, 1 << 20);
    log_set_output_for_test(&log);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 8192;
    begin(&s, p->path, 1 << 30, 9);
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 50; i++)
        decide(&s);
    setrlimit(RLIMIT_FSIZE, &before);
    end(&s);
    log_set_output_for_test(NULL);
    assert_non_null(strstr(buf_string(&log), "the journal ends here"));
    assert_null(strstr(strstr(buf_string(&log), "ends here") + 1, "ends here"));
    buf_free(&log);
    struct found found = replay(p->path, NULL);
    assert_true(found.steps > 0 && found.steps == found.same);
}

static void test_none_is_kept_where_none_is_asked_for(void **state)
{
    (void)state;
    struct scene s = {0};
    journal_forgot(NULL, KEY);
    journal_began(NULL, KEY, "threshold", 1);
    journal_decided(NULL, KEY, &(struct journal_decision){.seen = &s.seen});
    journal_scaled(NULL, KEY, 0, 1, 2);
    journal_resized(NULL, KEY, 0);
    journal_close(NULL);
}

int main(void)
{
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(test_decisions_are_repeated_to_the_last_bit),
        IN_A_PLACE(test_what_was_seen_comes_back_as_it_was),
        IN_A_PLACE(test_another_recommender_can_be_asked),
        IN_A_PLACE(test_a_controller_that_starts_anew_goes_on),
        IN_A_PLACE(test_it_never_takes_more_than_two_files),
        IN_A_PLACE(test_a_line_cut_by_a_crash_is_left_out),
        IN_A_PLACE(test_what_is_no_journal_is_told_with_its_line),
        IN_A_PLACE(test_secrets_of_others_are_not_kept),
        IN_A_PLACE(test_where_it_cannot_be_written_is_told),
        IN_A_PLACE(test_a_full_disk_ends_the_journal_and_nothing_else),
        cmocka_unit_test(test_none_is_kept_where_none_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
