/* Recommenders by name. */
#include "recommend/recommend.h"

#include <string.h>

static const struct recommender *const recommenders[] = {
    &recommend_threshold,
};

const struct recommender *recommend_find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(recommenders); i++)
        if (strcmp(recommenders[i]->name, name) == 0)
            return recommenders[i];
    return NULL;
}
