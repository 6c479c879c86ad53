/* Whole episodes by one recommender, on workloads that were not learned from. */
#include "bootstrap/internal.h"

#include <math.h>

#include "base/parallel.h"

#define ENOUGH     1000 /* requests: with fewer, one that is late would decide */
#define SHARED_ONE 8    /* of so many clusters one is shared */

struct judging {
    const struct bootstrap_world_config *world;
    uint64_t seed;
    struct verdict {
        struct bootstrap_judgement kinds[BOOTSTRAP_KINDS];
        struct error err;
        bool failed;
    } * verdicts; /* of each cluster */
};

struct arrays { /* what rows of a learner would be */
    float features[POLICY_FEATURE_COUNT], reward;
    uint8_t mask[RL_MAX_OPTIONS], truncated;
    int32_t actions[POLICY_HEAD_COUNT];
};

static void add(struct bootstrap_judgement *to, const struct lesson_outcome *o)
{
    double late = o->late / fmax(o->requests, 1);
    to->functions++;
    to->met += late <= 0.01;
    to->late += late;
    to->cost += o->cost;
    to->reward += o->reward;
}

static void judge_one(void *arg, size_t i)
{
    struct judging *j = arg;
    struct verdict *v = &j->verdicts[i];
    struct arrays arrays[BOOTSTRAP_SHARED_FUNCTIONS] = {0};
    struct lesson_row rows[BOOTSTRAP_SHARED_FUNCTIONS];
    const struct bootstrap_subject *subject = j->world->subject;
    bool shared = !subject && i % SHARED_ONE == SHARED_ONE - 1;
    size_t count = shared ? BOOTSTRAP_SHARED_FUNCTIONS : 1;
    for (size_t k = 0; k < count; k++)
        rows[k] = (struct lesson_row){arrays[k].features, arrays[k].mask, arrays[k].actions,
                                      &arrays[k].reward, &arrays[k].truncated};
    struct random random = random_stream(j->seed, i);
    struct lesson *l = lesson_new(j->world, shared, random_bits(&random), rows, count, &v->err);
    v->failed = !l;
    if (!l)
        return;
    while (!arrays[0].truncated)
        lesson_step(l);
    for (size_t k = 0; k < count; k++) {
        struct lesson_outcome o = lesson_outcome(l, k);
        int kind = shared ? BOOTSTRAP_TOGETHER : subject ? 0 : (int)trace_classify(o.workload);
        if (subject || o.requests >= ENOUGH)
            add(&v->kinds[kind], &o);
    }
    lesson_free(l);
}

static void sum_up(const struct judging *j, size_t clusters,
                   struct bootstrap_judgement out[BOOTSTRAP_KINDS])
{
    for (size_t k = 0; k < BOOTSTRAP_KINDS; k++) {
        struct bootstrap_judgement sum = {0};
        for (size_t i = 0; i < clusters; i++) {
            const struct bootstrap_judgement *one = &j->verdicts[i].kinds[k];
            sum.functions += one->functions;
            sum.met += one->met;
            sum.late += one->late;
            sum.cost += one->cost;
            sum.reward += one->reward;
        }
        sum.late /= sum.functions ? (double)sum.functions : 1;
        sum.cost /= sum.functions ? (double)sum.functions : 1;
        sum.reward /= sum.functions ? (double)sum.functions : 1;
        out[k] = sum;
    }
}

int bootstrap_judge(const struct bootstrap_world_config *world, size_t clusters, uint64_t seed,
                    struct bootstrap_judgement out[BOOTSTRAP_KINDS], struct error *err)
{
    cleanup_free struct verdict *verdicts = xcalloc(clusters + 1, sizeof(*verdicts));
    struct judging j = {world, seed, verdicts};
    parallel_for(world->threads, clusters, judge_one, &j);
    for (size_t i = 0; i < clusters; i++) {
        if (verdicts[i].failed) {
            *err = verdicts[i].err;
            return -1;
        }
    }
    sum_up(&j, clusters, out);
    return 0;
}
