/* Who decides on one MPA. */
#include "recommend/recommend.h"

#include <string.h>

int recommend_seat_take(struct recommend_seat *seat, const struct recommender *recommender,
                        double memory_s, const double *params,
                        const struct recommend_policy *policy, struct error *err)
{
    void *memory = recommender->create(memory_s, params);
    if (recommender->use && policy == NULL)
        error_set(err, ERROR_NOT_FOUND, "no policy is loaded");
    else if (!recommender->use || recommender->use(memory, policy, err) == 0) {
        *seat = (struct recommend_seat){.recommender = recommender, .memory = memory};
        if (recommender->use)
            seat->standby = recommend_threshold.create(memory_s, NULL);
        return 0;
    }
    recommender->destroy(memory);
    return -1;
}

void recommend_seat_leave(struct recommend_seat *seat)
{
    if (seat->recommender)
        seat->recommender->destroy(seat->memory);
    if (seat->standby)
        recommend_threshold.destroy(seat->standby);
    *seat = (struct recommend_seat){0};
}

int recommend_seat_use(struct recommend_seat *seat, const struct recommend_policy *policy,
                       struct error *err)
{
    if (!seat->recommender || !seat->recommender->use)
        return error_set(err, ERROR_INVALID, "who decides needs no policy");
    return seat->recommender->use(seat->memory, policy, err);
}

void recommend_seat_remember(struct recommend_seat *seat, const char *container,
                             enum recommend_resource resource, double time_s, double usage)
{
    if (seat->recommender && seat->recommender->remember)
        seat->recommender->remember(seat->memory, container, resource, time_s, usage);
    if (seat->standby)
        recommend_threshold.remember(seat->standby, container, resource, time_s, usage);
}

static void explain(const struct recommender *recommender, void *memory,
                    const struct observation *seen, struct recommendation *out)
{
    if (recommender->explain)
        recommender->explain(memory, seen, out);
}

static int fix_sizes(const struct recommender *recommender, void *memory,
                     const struct observation *seen, struct recommendation *out, struct error *err)
{
    struct observation fixed = *seen;
    struct recommendation replicas;
    explain(recommender, memory, seen, out); /* before another question is asked */
    for (size_t i = 0; i < fixed.container_count; i++)
        fixed.containers[i].controlled[RECOMMEND_CPU] = false;
    if (recommender->recommend(memory, &fixed, &replicas, err) < 0)
        return -1;
    out->replicas = replicas.replicas;
    if (replicas.replicas == fixed.replicas_wanted)
        return 0;
    explain(recommender, memory, &fixed, &replicas);
    memcpy(out->reason, replicas.reason, sizeof(out->reason));
    return 0;
}

static int ask(const struct recommender *recommender, void *memory, const struct observation *seen,
               bool sizes_stay, struct recommendation *out, struct error *err)
{
    if (recommender->recommend(memory, seen, out, err) < 0)
        return -1;
    return sizes_stay ? fix_sizes(recommender, memory, seen, out, err) : 0;
}

/* Thresholds watch while a learned one decides, so that they know enough when it cannot. */
int recommend_seat_ask(struct recommend_seat *seat, const struct observation *seen, bool sizes_stay,
                       struct recommendation *out, struct error *instead, struct error *err)
{
    struct recommendation standby;
    struct error none = {0};
    bool ready = seat->standby &&
                 ask(&recommend_threshold, seat->standby, seen, sizes_stay, &standby, &none) == 0;
    *instead = (struct error){0};
    if (ask(seat->recommender, seat->memory, seen, sizes_stay, out, err) == 0)
        return 0;
    if (!ready)
        return -1;
    *instead = *err;
    *out = standby;
    return 0;
}

void recommend_seat_explain(struct recommend_seat *seat, const struct observation *seen,
                            struct recommendation *out)
{
    if (!*out->reason)
        explain(seat->recommender, seat->memory, seen, out);
}
