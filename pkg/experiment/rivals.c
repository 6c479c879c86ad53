/* Single agents and ENSURE, to be compared with those who learn as a team. */
#include "tenants.h"

static const struct tenants nobody_alone = {NULL, TENANT_KINDS, true, false, 0};
static const struct tenants nobody = {NULL, TENANT_KINDS, false, false, 0};

static int learn_alone(struct experiment_run *run, struct tenants_lesson *lesson,
                       struct tenants_rivals *out, struct error *err)
{
    struct tenants_curve curve;
    lesson->who.alone = true;
    struct train *train = tenants_learn(run, lesson, &curve, err);
    if (train == NULL)
        return -1;
    struct tenants together = lesson->who;
    together.alone = false;
    int result = tenants_judge(run, &lesson->who, train, out->alone, err);
    if (result == 0)
        result = tenants_judge(run, &together, train, out->moved, err);
    train_free(train);
    tenants_curve_clear(&curve);
    return result;
}

static int learn_together(struct experiment_run *run, struct tenants_lesson *lesson,
                          struct tenants_rivals *out, struct error *err)
{
    struct tenants_curve curve;
    lesson->who.alone = false;
    struct train *train = tenants_learn(run, lesson, &curve, err);
    if (train == NULL)
        return -1;
    int result = tenants_judge(run, &lesson->who, train, out->together, err);
    train_free(train);
    tenants_curve_clear(&curve);
    return result;
}

int tenants_rivals(struct experiment_run *run, bool papers, size_t episodes, double begin,
                   double end, struct tenants_rivals *out, struct error *err)
{
    double half = (begin + end) / 2;
    struct tenants_lesson lesson = {.who = {"ppo", TENANT_KINDS, true, papers, 0},
                                    .episodes = episodes,
                                    .begin = begin,
                                    .end = half};
    if (learn_alone(run, &lesson, out, err) < 0)
        return -1;
    lesson.stage = 1;
    lesson.begin = half;
    lesson.end = end;
    if (learn_together(run, &lesson, out, err) < 0 ||
        tenants_judge(run, &nobody_alone, NULL, out->ensure_alone, err) < 0)
        return -1;
    return tenants_judge(run, &nobody, NULL, out->ensure, err);
}
