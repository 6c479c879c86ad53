/* mpactl replay: the decisions of a controller's journal once more: the same, or another
 * recommender's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "journal.h"
#include "mpactl.h"
#include "recommend/policy.h"
#include "table.h"
#include "trial/trial.h"

#define TOLD 10 /* differences that are printed */

struct replay_options {
    const char *mpa, *recommender, *policy;
    bool help;
};

#define AT(field) offsetof(struct replay_options, field)
static const struct args_option table[] = {
    {"mpa", ARGS_TEXT, AT(mpa), NULL, 0, 0, NULL, "NAME or NAMESPACE/NAME; else every MPA"},
    {"recommender", ARGS_TEXT, AT(recommender), NULL, 0, 0, NULL,
     "NAME or NAME:param=value,…: what it would have said of what was seen"},
    {"policy", ARGS_TEXT, AT(policy), NULL, 0, 0, NULL,
     "what ppo has learned; the file policy beside mpactl when not given"},
    {"help", ARGS_FLAG, AT(help), NULL, 0, 0, NULL, "print this and end"},
};

struct sum { /* of the decisions of one MPA */
    uint64_t decisions, same, unknown;
    double was_cores, is_cores, was_replicas, is_replicas; /* sums over `both` */
    uint64_t both;                                         /* decisions that both took */
};

struct tally {
    const struct replay_options *options;
    struct map sums; /* key → struct sum */
    struct sum all;
};

/* --- counting ------------------------------------------------------------------------------------
 */
static double cores(const struct journal_step *step, const struct guard_decision *decision)
{
    double milli = journal_cpu_milli(step, decision);
    return isnan(milli) ? 0 : decision->replicas * milli / 1000;
}

static void add(struct sum *sum, const struct journal_step *step)
{
    sum->decisions++;
    sum->unknown += !step->known;
    sum->same += step->same;
    if (!step->was_decided || !step->is_decided)
        return;
    sum->both++;
    sum->was_cores += cores(step, &step->was);
    sum->is_cores += cores(step, &step->is);
    sum->was_replicas += step->was.replicas;
    sum->is_replicas += step->is.replicas;
}

static void tell_difference(const struct journal_step *step)
{
    char time[RFC3339_SIZE], was[JOURNAL_TEXT], is[JOURNAL_TEXT];
    time_format(step->time_ms, time);
    printf("  %s %s: %s then (%s)\n      %s now (%s)\n", time, step->key,
           step->was_decided ? journal_size_text(step, &step->was, was) : "nothing",
           step->was_proposed.reason,
           step->is_decided ? journal_size_text(step, &step->is, is) : "nothing",
           step->proposed.reason);
}

static bool on_step(void *arg, const struct journal_step *step)
{
    struct tally *t = arg;
    if (!journal_is_asked_for(t->options->mpa, step->key))
        return true;
    struct sum *sum = map_get(&t->sums, step->key);
    if (sum == NULL) {
        sum = xcalloc(1, sizeof(*sum));
        map_put(&t->sums, step->key, sum);
    }
    add(sum, step);
    add(&t->all, step);
    if (!t->options->recommender && step->known && !step->same &&
        t->all.decisions - t->all.same - t->all.unknown <= TOLD)
        tell_difference(step);
    return true;
}

/* --- telling -------------------------------------------------------------------------------------
 */
static void add_row(struct table *table_, const char *name, const struct sum *sum)
{
    char text[TABLE_TEXT];
    double n = sum->both ? (double)sum->both : NAN;
    table_cell(table_, "%s", name);
    table_cell(table_, "%s", table_count((double)sum->decisions, text));
    table_cell(table_, "%s", table_count((double)sum->both, text));
    table_cell(table_, "%s", table_number(sum->was_replicas / n, 2, text));
    table_cell(table_, "%s", table_number(sum->is_replicas / n, 2, text));
    table_cell(table_, "%s", table_number(sum->was_cores / n, 3, text));
    table_cell(table_, "%s", table_number(sum->is_cores / n, 3, text));
}

/* What was seen is what came of other decisions: it shows leanings, not what would have been. */
static int tell_others(const struct tally *t)
{
    static const char *const titles[] = {"MPA",    "DECISIONS", "BOTH DECIDED", "REPLICAS",
                                         "OTHERS", "CORES",     "OTHERS",       NULL};
    struct table out;
    const char *key;
    void *value;
    table_begin(&out, "lrrrrrr", titles);
    for (size_t i = 0; (i = map_next(&t->sums, i, &key, &value)) != 0;)
        add_row(&out, key, value);
    add_row(&out, "all", &t->all);
    table_end(&out, "");
    printf("\nMeans of what was decided then, and of what %s says of the same observations. They "
           "came of the\n"
           "decisions that were taken, not of its own: mpactl compare shows what those would lead "
           "to.\n",
           t->options->recommender);
    return EXIT_FINE;
}

static int tell_same(const struct tally *t)
{
    const struct sum *all = &t->all;
    uint64_t differ = all->decisions - all->same - all->unknown;
    printf("%llu decisions on %zu MPA(s): %llu repeated with the same result, %llu with another\n",
           (unsigned long long)all->decisions, t->sums.count, (unsigned long long)all->same,
           (unsigned long long)differ);
    if (all->unknown > 0)
        printf("%llu cannot be repeated exactly: the journal begins after their recommender did\n",
               (unsigned long long)all->unknown);
    return differ > 0 ? EXIT_FAILED : EXIT_FINE;
}

/* The one that is asked for, or that lies beside the program; none is no failure but where one is
 * needed. */
static int read_policy(const char *asked, const struct recommend_policy **out)
{
    struct error err;
    cleanup_free char *usual = file_beside_program("policy");
    *out = recommend_policy_read(asked ? asked : usual, &err);
    if (*out || !asked)
        return 0;
    mpactl_error("--policy %s: %s: make one by mpactl policy", asked, err.message);
    return EXIT_FAILED;
}

static int replay(const char *file, const struct replay_options *o,
                  const struct recommend_policy *policy)
{
    struct tally t = {.options = o};
    struct trial_choice choice = {0};
    struct error err;
    if (o->recommender && trial_choose(o->recommender, &choice, &err) < 0) {
        mpactl_error("--recommender %s: %s", o->recommender, err.message);
        return EXIT_USAGE;
    }
    struct journal_replay asked = {.recommender = o->recommender ? choice.recommender->name : NULL,
                                   .params = choice.params,
                                   .policy = policy,
                                   .on_step = on_step,
                                   .arg = &t};
    int status, result = journal_replay(file, &asked, &err);
    if (result == 0 && t.all.decisions == 0)
        result = error_set(&err, ERROR_NOT_FOUND, "%s: there is no decision%s%s in it", file,
                           o->mpa ? " on " : "", o->mpa ? o->mpa : "");
    if (result < 0)
        mpactl_error("replay: %s", err.message);
    status = result < 0 ? EXIT_FAILED : o->recommender ? tell_others(&t) : tell_same(&t);
    map_free(&t.sums, free);
    trial_choice_clear(&choice);
    return status;
}

int cmd_replay(int argc, char **argv)
{
    struct replay_options options = {0};
    struct error err;
    bool named = argc > 1 && argv[1][0] != '-';
    if (args_parse(table, ARRAY_LEN(table), argc - named, argv + named, &options, &err) < 0) {
        mpactl_error("replay: %s: see mpactl replay --help", err.message);
        return EXIT_USAGE;
    }
    if (options.help) {
        puts("mpactl replay JOURNAL [OPTION…]\n\n"
             "Repeats the decisions of a controller from the file of its option --journal, to the\n"
             "last bit, or asks another recommender about what was seen.\n\nOptions:");
        args_print_help(table, ARRAY_LEN(table));
        return EXIT_FINE;
    }
    if (!named) {
        mpactl_error("replay: name the journal first: see mpactl replay --help");
        return EXIT_USAGE;
    }
    const struct recommend_policy *policy;
    int status = read_policy(options.policy, &policy);
    if (status == 0)
        status = replay(argv[1], &options, policy);
    recommend_policy_release(policy);
    return status;
}
