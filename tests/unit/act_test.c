/* Replicas that are written on a world whose answers are lost: what the rates of `behavior` count.
 * An external recommender proposes, so that a test says what is wanted. */
#include "controller/controller.h"
#include "controller/world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NOW_MS 1767225700000 /* 2026-01-01T00:01:40Z */

struct scene {
    struct world world;
    struct observe *observe;
    struct controller *controller;
    struct kube_workload workload;
    struct kube_pod *pod;
    int asked; /* replicas; 0: nothing was since */
    actuate_done on_done;
    void *arg;
};

static const char manifest[] =
    "{\"apiVersion\":\"autoscaling.faasrl.io/v1alpha1\",\"kind\":\"MultidimPodAutoscaler\","
    "\"metadata\":{\"name\":\"m\",\"namespace\":\"ns\",\"uid\":\"x\"},\"spec\":{"
    "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"f\"},"
    "\"goals\":{\"latency\":{\"target\":\"300ms\"}},\"constraints\":{"
    "\"containerControlledResources\":[],\"global\":{\"maxReplicas\":20,"
    "\"behavior\":{\"scaleUp\":{\"policies\":[{\"type\":\"Pods\",\"value\":2,"
    "\"periodSeconds\":60}]}}}},\"recommenders\":[{\"name\":\"me\"}]},"
    "\"status\":{\"desiredReplicas\":10}}";
static const char pod[] =
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"p\"},\"spec\":{\"containers\":["
    "{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"200m\"}}}]},\"status\":{\"phase\":"
    "\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":"
    "\"2026-01-01T00:00:10Z\"}]}}";

static bool synced(void *self)
{
    (void)self;
    return true;
}

static const struct kube_workload *find_workload(void *self, const struct kube_target *target,
                                                 struct error *err)
{
    const struct scene *s = self;
    (void)target;
    (void)err;
    return &s->workload;
}

static size_t find_pods(void *self, const struct kube_workload *workload,
                        const struct kube_pod **out, size_t max)
{
    const struct scene *s = self;
    (void)workload;
    if (max > 0)
        out[0] = s->pod;
    return 1;
}

static const struct kube_scaler *find_scaler(void *self, const char *kind, const char *namespace_,
                                             const char *name, bool replicas, bool resources)
{
    (void)self, (void)kind, (void)namespace_, (void)name, (void)replicas, (void)resources;
    return NULL;
}

static void collect(void *self, struct observe *observe, void (*on_done)(void *arg), void *arg)
{
    (void)self;
    observe_give(observe, NULL, 0);
    on_done(arg);
}

static void set_replicas(void *self, const struct kube_workload *workload,
                         const struct world_wish *wish, actuate_done on_done, void *arg)
{
    struct scene *s = self;
    (void)workload;
    s->asked = wish->replicas;
    s->on_done = on_done;
    s->arg = arg;
}

static void write_status(void *self, const struct api_mpa *mpa, const json_t *patch,
                         actuate_done on_done, void *arg)
{
    (void)self, (void)mpa, (void)patch;
    on_done(arg, NULL);
}

static void tell(void *self, const struct kube_event *event)
{
    (void)self, (void)event;
}

static void wake(void *self, int64_t in_ms)
{
    (void)self, (void)in_ms;
}

static struct scene *start(void)
{
    static const struct kube_resource deployments = {"apps/v1", "Deployment", "/apis/apps/v1",
                                                     "deployments"};
    struct scene *s = xcalloc(1, sizeof(*s));
    struct error err = {0};
    cleanup_json json_t *object = json_loads(pod, 0, NULL);
    cleanup_json json_t *mpa = json_loads(manifest, 0, NULL);
    clock_set(1000000, NOW_MS);
    s->world = (struct world){.self = s,
                              .synced = synced,
                              .workload = find_workload,
                              .pods = find_pods,
                              .scaler = find_scaler,
                              .collect = collect,
                              .set_replicas = set_replicas,
                              .write_status = write_status,
                              .tell = tell,
                              .wake = wake};
    s->workload = (struct kube_workload){.resource = &deployments,
                                         .kind = (char *)(uintptr_t) "Deployment",
                                         .namespace_ = (char *)(uintptr_t) "ns",
                                         .name = (char *)(uintptr_t) "f",
                                         .replicas = 2,
                                         .replicas_wanted = 2};
    s->pod = kube_pod_from_json(object);
    s->observe = observe_new(NULL, &(struct observe_options){.window_s = 30}, &err);
    assert_non_null(s->observe);
    s->controller = controller_new_on(&s->world, s->observe,
                                      &(struct controller_options){.interval_s = 15,
                                                                   .status_interval_s = 15,
                                                                   .default_cpu_utilization = 70,
                                                                   .limits = guard_default_limits});
    controller_mpa(s->controller, mpa, false);
    return s;
}

static void stop(struct scene *s)
{
    controller_free(s->controller);
    observe_free(s->observe);
    kube_pod_free(s->pod);
    clock_use_system();
    free(s);
}

/* What is asked for in the next pass, after so long. */
static int asked_after(struct scene *s, int64_t ms)
{
    clock_advance(ms);
    s->asked = 0;
    controller_pass(s->controller);
    return s->asked;
}

static void answer(struct scene *s, enum error_code code)
{
    struct error err = {0};
    error_set(&err, code, "an answer");
    s->on_done(s->arg, code ? &err : NULL);
}

/* Two a minute, whether or not we were told that they came. */
static void test_a_step_whose_answer_was_lost_counts(void **state)
{
    static const enum error_code lost[] = {ERROR_NONE, ERROR_TIMEOUT, ERROR_UNAVAILABLE,
                                           ERROR_TOO_LARGE};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        struct scene *s = start();
        assert_int_equal(asked_after(s, 0), 4);
        answer(s, lost[i]);
        s->workload.replicas_wanted = 4;
        assert_int_equal(asked_after(s, 15000), 0);
        assert_int_equal(asked_after(s, 30000), 0);
        assert_int_equal(asked_after(s, 15001), 6);
        answer(s, ERROR_NONE);
        stop(s);
    }
}

static void test_a_step_that_was_not_taken_does_not_count(void **state)
{
    static const enum error_code refused[] = {ERROR_INVALID, ERROR_CONFLICT, ERROR_TIMEOUT,
                                              ERROR_UNAVAILABLE};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct scene *s = start();
        assert_int_equal(asked_after(s, 0), 4);
        answer(s, refused[i]);
        assert_int_equal(asked_after(s, 15000), 4);
        answer(s, ERROR_NONE);
        stop(s);
    }
}

/* It was not the step whose answer was lost that brought them. */
static void test_another_count_is_another_ones(void **state)
{
    (void)state;
    struct scene *s = start();
    assert_int_equal(asked_after(s, 0), 4);
    answer(s, ERROR_TIMEOUT);
    s->workload.replicas_wanted = 3; /* by hand */
    assert_int_equal(asked_after(s, 15000), 5);
    answer(s, ERROR_NONE);
    stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_whose_answer_was_lost_counts),
        cmocka_unit_test(test_a_step_that_was_not_taken_does_not_count),
        cmocka_unit_test(test_another_count_is_another_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
