/* Fixed: what the user asked for, whatever happens. FaaSRM's Fixed RM. */
#include "recommend/internal.h"

enum { REPLICAS, CPU_MILLI, PARAM_COUNT };

static const struct recommend_param params[PARAM_COUNT] = {
    [REPLICAS] = {"replicas", "how many; 0: as many as there were first", 0, 1, 20},
    [CPU_MILLI] = {"cpu_milli", "CPU of a pod; 0: what it had first", 0, 100, 2000},
};

struct fixed {
    double params[PARAM_COUNT];
    int replicas; /* 0: nothing seen yet */
    double cpu_milli;
};

static void *fixed_create(double memory_s, const double *values)
{
    (void)memory_s;
    struct fixed *f = xcalloc(1, sizeof(*f));
    recommend_params_fill(&recommend_fixed, values, f->params);
    f->replicas = (int)f->params[REPLICAS];
    f->cpu_milli = f->params[CPU_MILLI];
    return f;
}

static int fixed_recommend(void *self, const struct observation *seen, struct recommendation *out,
                           struct error *err)
{
    struct fixed *f = self;
    if (recommend_check(seen, err) < 0)
        return -1;
    if (f->replicas <= 0)
        f->replicas = seen->replicas_wanted;
    if (f->cpu_milli <= 0)
        f->cpu_milli = recommend_pod_size(seen).now;
    recommend_keep(seen, out);
    recommend_set_replicas(seen, f->replicas, out);
    recommend_set_pod_cpu(seen, f->cpu_milli, out);
    recommend_reason_write(&(struct reason){.seen = seen, .situation = "fixed"}, out);
    return 0;
}

const struct recommender recommend_fixed = {
    .name = "fixed",
    .summary = "keeps replicas and CPU as they were first, or as told",
    .params = params,
    .param_count = PARAM_COUNT,
    .damps_itself = true,
    .create = fixed_create,
    .destroy = free,
    .recommend = fixed_recommend,
};
