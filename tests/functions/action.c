#include "action.h"

#include <jansson.h>
#include <pthread.h>
#include <string.h>

#include "workloads.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct workload *action; /* NULL: not initialised */

static struct answer answer(unsigned status, json_t *json)
{
    struct answer a = {status, json_dumps(json, JSON_COMPACT)};
    json_decref(json);
    return a;
}

static struct answer refuse(unsigned status, const char *why)
{
    return answer(status, json_pack("{s:s}", "error", why));
}

static json_t *value_of(const char *body, size_t length)
{
    json_t *root = json_loadb(body, length, 0, NULL);
    json_t *value = json_incref(json_object_get(root, "value"));
    json_decref(root);
    return value;
}

static const struct workload *workload_of(const char *name)
{
    for (const struct workload *w = workloads; name && w < workloads + WORKLOAD_COUNT; w++)
        if (strcmp(w->name, name) == 0)
            return w;
    return NULL;
}

struct answer action_init(const char *body, size_t length)
{
    json_t *value = value_of(body, length);
    const struct workload *wanted = workload_of(json_string_value(json_object_get(value, "code")));
    json_decref(value);
    if (!wanted)
        return refuse(502, "code must be the name of a function");

    pthread_mutex_lock(&lock);
    bool again = action != NULL;
    if (!again)
        action = wanted;
    pthread_mutex_unlock(&lock);
    return again ? refuse(403, "the action is initialised already")
                 : answer(200, json_pack("{s:b}", "ok", 1));
}

static const struct workload *initialised(void)
{
    pthread_mutex_lock(&lock);
    const struct workload *w = action;
    pthread_mutex_unlock(&lock);
    return w;
}

struct answer action_run(const char *body, size_t length)
{
    const struct workload *w = initialised();
    if (!w)
        return refuse(500, "the action is not initialised");
    json_t *value = value_of(body, length), *asked = json_object_get(value, "n");
    json_int_t n = asked ? json_integer_value(asked) : (json_int_t)w->standard_n;
    bool is_object = json_is_object(value);
    json_decref(value);
    if (!is_object || n < 1 || (unsigned long)n > w->greatest_n)
        return refuse(502, "value must be an object, and n in it a whole number in bounds");

    double result;
    if (!w->run((unsigned long)n, &result))
        return refuse(500, "out of memory");
    return answer(200, json_pack("{s:s, s:I, s:f}", "function", w->name, "n", n, "result", result));
}
