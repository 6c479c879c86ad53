/* Recommenders by name. */
#include "recommend/recommend.h"

#include <string.h>

const struct recommender *const recommend_all[] = {
    &recommend_threshold,   &recommend_fixed,
    &recommend_hpa,         &recommend_kpa,
    &recommend_vpa,         &recommend_hpa_vpa,
    &recommend_ensure,      &recommend_greedy,
    &recommend_feedforward, &recommend_ppo,
    &recommend_ppo_steps,   NULL,
};

const struct recommender *recommend_find(const char *name)
{
    for (size_t i = 0; name && recommend_all[i]; i++)
        if (strcmp(recommend_all[i]->name, name) == 0)
            return recommend_all[i];
    return NULL;
}

static int fix_sizes(const struct recommender *recommender, void *self,
                     const struct observation *seen, struct recommendation *out, struct error *err)
{
    struct observation fixed = *seen;
    struct recommendation replicas;
    for (size_t i = 0; i < fixed.container_count; i++)
        fixed.containers[i].controlled[RECOMMEND_CPU] = false;
    if (recommender->recommend(self, &fixed, &replicas, err) < 0)
        return -1;
    out->replicas = replicas.replicas;
    if (replicas.replicas != fixed.replicas_wanted)
        memcpy(out->reason, replicas.reason, sizeof(out->reason));
    return 0;
}

int recommend_run(const struct recommender *recommender, void *self, const struct observation *seen,
                  bool sizes_stay, struct recommendation *out, struct error *err)
{
    if (recommender->recommend(self, seen, out, err) < 0)
        return -1;
    return sizes_stay ? fix_sizes(recommender, self, seen, out, err) : 0;
int recommend_fits(const struct recommender *recommender, const struct recommend_policy *policy,
                   struct error *err)
{
    if (!recommender->use)
        return error_set(err, ERROR_INVALID, "%s has learned nothing", recommender->name);
    void *self = recommender->create(1, NULL);
    int result = recommender->use(self, policy, err);
    recommender->destroy(self);
    return result;
}
