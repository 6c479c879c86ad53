/* The thread that looks for policies. Tasks wait in a queue; what was found goes back to the loop,
 * and only the loop frees searches. */
#include "learn/learn.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "api/api.h"

#define EFFORT 8 /* episodes */

struct learn_search {
    struct learn_search *next;
    struct learner *learner;
    struct learn_task task;
    struct api_spec bounds;
    learn_done on_done;
    void *arg;
    atomic_bool given_up;
    _Atomic double progress;
    struct learn_result result;
    char *bytes;
};

struct queue {
    struct learn_search *first, **end;
};

struct learner {
    uv_async_t wake; /* the loop */
    uv_thread_t thread;
    uv_mutex_t lock; /* of the queues, and `ending` */
    uv_cond_t work;
    struct rl_checkpoint general;
    size_t effort, waiting;
    bool started, ending;
    struct queue tasks, done;
};

/* --- queues ------------------------------------------------------------------------------------
 */
static void push(struct queue *q, struct learn_search *s)
{
    s->next = NULL;
    *q->end = s;
    q->end = &s->next;
}

static struct learn_search *pop(struct queue *q)
{
    struct learn_search *s = q->first;
    if (s == NULL)
        return NULL;
    q->first = s->next;
    if (q->first == NULL)
        q->end = &q->first;
    return s;
}

static void free_search(struct learn_search *s)
{
    trace_clear(&s->task.workload);
    free(s->task.rival);
    recommend_policy_release(s->result.policy);
    free(s->bytes);
    free(s);
}

/* --- in the thread -----------------------------------------------------------------------------
 */
static bool on_progress(void *arg, double share)
{
    struct learn_search *s = arg;
    atomic_store(&s->progress, share);
    uv_mutex_lock(&s->learner->lock);
    bool ending = s->learner->ending;
    uv_mutex_unlock(&s->learner->lock);
    return !ending && !atomic_load(&s->given_up);
}

/* What serves needs neither critic nor Adam's memory. */
static int encode(struct learn_search *s, const struct rl_checkpoint *found)
{
    struct error *err = &s->result.err;
    struct rl_checkpoint lean = *found;
    struct rl_saved_net actor = *rl_checkpoint_net(found, "actor");
    actor.adam = (struct rl_adam){0};
    lean.nets = &actor;
    lean.net_count = 1;
    s->bytes = rl_checkpoint_encode(&lean, &s->result.len, err);
    if (!s->bytes)
        return -1;
    s->result.bytes = s->bytes;
    s->result.policy = recommend_policy_decode(s->bytes, s->result.len, err);
    return s->result.policy ? 0 : -1;
}

static int tune(struct learn_search *s, const struct rl_checkpoint *rival)
{
    struct rl_checkpoint found = {0};
    struct bootstrap_tuning tuning = {
        .from = &s->learner->general,
        .rival = rival,
        .subject = {.workload = s->task.workload.functions,
                    .spec = &s->bounds,
                    .goal_ms = s->task.goal_ms},
        .interval_s = s->task.interval_s,
        .episodes = s->learner->effort,
        .episode_steps = bootstrap_world_default.episode_steps,
        .threads = 1,
        .seed = 1,
        .on_progress = on_progress,
        .arg = s,
    };
    if (bootstrap_tune(&tuning, &found, &s->result.gain, &s->result.err) < 0)
        return -1;
    int result = s->result.gain.better ? encode(s, &found) : 0;
    rl_checkpoint_clear(&found);
    return result;
}

static void search(struct learn_search *s)
{
    struct rl_checkpoint rival = {0};
    int64_t began_ms = clock_mono_ms();
    const struct learn_task *task = &s->task;
    if (task->rival &&
        rl_checkpoint_decode(&rival, task->rival, task->rival_len, &s->result.err) < 0)
        return;
    tune(s, task->rival ? &rival : NULL);
    rl_checkpoint_clear(&rival);
    s->result.seconds = (double)(clock_mono_ms() - began_ms) / 1000;
}

/* NULL: it is to end. */
static struct learn_search *next_task(struct learner *l, struct learn_search *before)
{
    uv_mutex_lock(&l->lock);
    if (before) {
        push(&l->done, before);
        uv_async_send(&l->wake);
    }
    while (!l->ending && l->tasks.first == NULL)
        uv_cond_wait(&l->work, &l->lock);
    struct learn_search *s = l->ending ? NULL : pop(&l->tasks);
    uv_mutex_unlock(&l->lock);
    return s;
}

/* Decisions come first: this runs when nobody else wants the CPU. */
static void run(void *arg)
{
    struct learner *l = arg;
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    for (struct learn_search *s = next_task(l, NULL); s; s = next_task(l, s))
        if (!atomic_load(&s->given_up))
            search(s);
}

/* --- in the loop -------------------------------------------------------------------------------
 */
static void on_wake(uv_async_t *wake)
{
    struct learner *l = wake->data;
    uv_mutex_lock(&l->lock);
    struct queue done = l->done;
    l->done = (struct queue){.end = &l->done.first};
    uv_mutex_unlock(&l->lock);
    if (done.first == NULL)
        done.end = &done.first;
    for (struct learn_search *s; (s = pop(&done));) {
        l->waiting--;
        if (!atomic_load(&s->given_up))
            s->on_done(s->arg, &s->result);
        free_search(s);
    }
}

struct learner *learner_new(uv_loop_t *loop, const struct rl_checkpoint *general, size_t effort,
                            struct error *err)
{
    struct learner *l = xcalloc(1, sizeof(*l));
    if (rl_checkpoint_copy(general, &l->general, err) < 0) {
        free(l);
        return NULL;
    }
    l->effort = effort ? effort : EFFORT;
    l->tasks.end = &l->tasks.first;
    l->done.end = &l->done.first;
    uv_mutex_init(&l->lock);
    uv_cond_init(&l->work);
    uv_async_init(loop, &l->wake, on_wake);
    l->wake.data = l;
    return l;
}

static void on_closed(uv_handle_t *handle)
{
    struct learner *l = handle->data;
    rl_checkpoint_clear(&l->general);
    uv_cond_destroy(&l->work);
    uv_mutex_destroy(&l->lock);
    free(l);
}

void learner_free(struct learner *l)
{
    if (l == NULL)
        return;
    uv_mutex_lock(&l->lock);
    l->ending = true;
    uv_cond_signal(&l->work);
    uv_mutex_unlock(&l->lock);
    if (l->started)
        uv_thread_join(&l->thread);
    for (struct learn_search *s; (s = pop(&l->tasks));)
        free_search(s);
    for (struct learn_search *s; (s = pop(&l->done));)
        free_search(s);
    uv_close((uv_handle_t *)&l->wake, on_closed);
}

struct learn_search *learner_search(struct learner *l, struct learn_task *task, learn_done on_done,
                                    void *arg)
{
    struct learn_search *s = xcalloc(1, sizeof(*s));
    *s = (struct learn_search){.learner = l, .task = *task, .on_done = on_done, .arg = arg};
    s->bounds = *task->bounds;
    *task = (struct learn_task){0};
    uv_mutex_lock(&l->lock);
    push(&l->tasks, s);
    l->waiting++;
    uv_cond_signal(&l->work);
    uv_mutex_unlock(&l->lock);
    if (!l->started)
        l->started = uv_thread_create(&l->thread, run, l) == 0;
    return s;
}

void learner_give_up(struct learn_search *s)
{
    atomic_store(&s->given_up, true);
}

double learner_progress(const struct learn_search *s)
{
    return atomic_load(&((struct learn_search *)s)->progress);
}

size_t learner_waiting(const struct learner *l)
{
    return l->waiting;
}
