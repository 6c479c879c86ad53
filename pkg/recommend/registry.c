/* Recommenders by name. */
#include "recommend/recommend.h"

#include <string.h>

const struct recommender *const recommend_all[] = {
    &recommend_threshold,   &recommend_fixed,   &recommend_hpa,       &recommend_kpa,
    &recommend_vpa,         &recommend_hpa_vpa, &recommend_ensure,    &recommend_greedy,
    &recommend_feedforward, &recommend_ppo,     &recommend_ppo_steps, NULL,
};

const struct recommender *recommend_find(const char *name)
{
    for (size_t i = 0; name && recommend_all[i]; i++)
        if (strcmp(recommend_all[i]->name, name) == 0)
            return recommend_all[i];
    return NULL;
}

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
