#include "base/memory.h"
#include "kube/internal.h"

#include <sys/random.h>

struct kube_timer {
    uv_timer_t uv;
    void (*on_timer)(void *arg);
    void *arg;
};

struct kube_timer *kube_timer_new(uv_loop_t *loop, void (*on_timer)(void *arg), void *arg)
{
    struct kube_timer *timer = xcalloc(1, sizeof(*timer));
    if (uv_timer_init(loop, &timer->uv) != 0)
        out_of_memory();
    timer->uv.data = timer;
    timer->on_timer = on_timer;
    timer->arg = arg;
    return timer;
}

static void on_uv_timer(uv_timer_t *uv)
{
    struct kube_timer *timer = uv->data;
    timer->on_timer(timer->arg);
}

void kube_timer_start(struct kube_timer *timer, int64_t ms)
{
    /* libuv's idea of now is as old as the loop's last round. */
    uv_update_time(timer->uv.loop);
    uv_timer_start(&timer->uv, on_uv_timer, ms > 0 ? (uint64_t)ms : 0, 0);
}

void kube_timer_stop(struct kube_timer *timer)
{
    uv_timer_stop(&timer->uv);
}

bool kube_timer_active(const struct kube_timer *timer)
{
    return uv_is_active((const uv_handle_t *)&timer->uv);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void kube_timer_free(struct kube_timer *timer)
{
    if (timer)
        uv_close((uv_handle_t *)&timer->uv, on_closed);
}

double kube_random(void)
{
    uint32_t bits = 0;
    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        bits = (uint32_t)clock_mono_ms() * 2654435761u;
    return (double)bits / 4294967296.0;
}
