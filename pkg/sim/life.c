/* Replicas come, change and go. */
#include "internal.h"

#include <string.h>

const struct cluster_node cluster_ample_node = {
    .cores = INFINITY, .memory_bytes = INFINITY, .overcommit = 1};

/* --- lists of slots -------------------------------------------------------------------------- */
static void list_add(uint32_t **list, size_t *count, size_t *cap, uint32_t slot)
{
    if (*count == *cap) {
        *cap = *cap ? *cap * 2 : 8;
        *list = xrealloc(*list, *cap, sizeof(**list));
    }
    (*list)[(*count)++] = slot;
}

/* Keeps the order, so that a run does not depend on how the memory is laid out. */
static void list_remove(uint32_t *list, size_t *count, uint32_t slot)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i] == slot) {
            memmove(&list[i], &list[i + 1], (*count - i - 1) * sizeof(*list));
            (*count)--;
            return;
        }
}

/* One slot per leaf of the tournament. */
static uint32_t take_slot(struct cluster *c)
{
    if (c->free_count > 0)
        return c->free_slots[--c->free_count];
    uint32_t first = c->slot_count;
    events_reserve(&c->running, first + 1);
    c->slot_count = c->running.leaves;
    c->slots = xrealloc(c->slots, c->slot_count, sizeof(*c->slots));
    c->free_slots = xrealloc(c->free_slots, c->slot_count, sizeof(*c->free_slots));
    memset(c->slots + first, 0, (c->slot_count - first) * sizeof(*c->slots));
    for (uint32_t i = c->slot_count; i-- > first + 1;)
        c->free_slots[c->free_count++] = i;
    return first;
}

/* --- room on nodes --------------------------------------------------------------------------- */
/* The node with most CPU to give, of those that have enough. */
static size_t find_node(const struct cluster *c, double milli, double bytes)
{
    size_t best = NO_NODE;
    for (size_t i = 0; i < c->node_count; i++) {
        const struct node *n = &c->nodes[i];
        if (n->free_milli >= milli && n->free_bytes >= bytes &&
            (best == NO_NODE || n->free_milli > c->nodes[best].free_milli))
            best = i;
    }
    return best;
}

static void reserve(struct cluster *c, struct replica *r, double milli, double bytes)
{
    struct function *f = function_of(c, r);
    struct node *n = &c->nodes[r->node];
    room_account(f, c->now_s);
    c->room_changed |= milli < r->reserved_milli || bytes < r->reserved_bytes;
    n->free_milli -= milli - r->reserved_milli;
    n->free_bytes -= bytes - r->reserved_bytes;
    f->reserved_milli += milli - r->reserved_milli;
    f->reserved_bytes += bytes - r->reserved_bytes;
    r->reserved_milli = milli;
    r->reserved_bytes = bytes;
}

static double start_delay_s(struct function *f)
{
    double spread = f->config.start_spread;
    if (spread > 0)
        return f->config.start_s * (1 + spread * (2 * random_uniform(&f->random) - 1));
    return f->config.start_s;
}

static void become_ready(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    r->phase = CLUSTER_READY;
    r->cold = true;
    r->ready_at_s = INFINITY;
    r->ready_since_s = c->now_s;
    if (f->config.crash_per_hour > 0)
        r->crash_at_s = c->now_s + random_exponential(&f->random) * 3600 / f->config.crash_per_hour;
    f->ready[f->ready_count++] = slot_of(c, r);
    replica_settle(c, r);
    requests_take_waiting(c, f);
}

static void set_size(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    r->request_milli = f->request_milli;
    r->weight = fmax(2, f->request_milli * 1024 / 1000);
    r->limit_bytes = f->limit_bytes;
    replica_set_limit(c, r, f->limit_milli);
    reserve(c, r, f->request_milli, f->limit_bytes);
}

static bool schedule(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    size_t node = find_node(c, f->request_milli, f->limit_bytes);
    if (node == NO_NODE)
        return false;
    struct node *n = &c->nodes[node];
    list_add(&n->replicas, &n->count, &n->cap, slot_of(c, r));
    n->open = xrealloc(n->open, n->cap, sizeof(*n->open));
    room_account(f, c->now_s);
    f->placed++;
    r->node = node;
    r->phase = CLUSTER_STARTING;
    set_size(c, r);
    r->ready_at_s = c->now_s + start_delay_s(f);
    replica_settle(c, r);
    return true;
}

/* --- resizing -------------------------------------------------------------------------------- */
/* Of CPU and memory together, as the kubelet does it: the whole of it, or nothing yet. The
 * scheduler counts the larger of what is in force and what is on its way. */
static bool begin_resize(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    const struct node *n = &c->nodes[r->node];
    r->resize_at_s = INFINITY;
    r->shrink_waits = false;
    if (has_its_size(f, r)) {
        reserve(c, r, r->request_milli, r->limit_bytes);
        return true;
    }
    if (f->request_milli - r->reserved_milli > n->free_milli ||
        f->limit_bytes - r->reserved_bytes > n->free_bytes)
        return false;
    reserve(c, r, fmax(r->request_milli, f->request_milli), fmax(r->limit_bytes, f->limit_bytes));
    /* One that starts has nothing in force yet. */
    r->resize_at_s = c->now_s + (r->phase == CLUSTER_STARTING ? 0 : f->config.resize_s);
    return true;
}

static void retry_resizes(struct cluster *c, const struct function *f)
{
    for (size_t k = 0; k < f->replica_count; k++) {
        struct replica *r = &c->slots[f->replicas[k]];
        bool resizing = r->resize_at_s < INFINITY || r->shrink_waits;
        bool stays = r->phase == CLUSTER_STARTING || r->phase == CLUSTER_READY;
        if (!stays || resizing || has_its_size(f, r))
            continue;
        if (begin_resize(c, r))
            replica_settle(c, r);
        else
            c->room_is_awaited = true;
    }
}

/* Gives room to those who wait for it: as the scheduler does, to the oldest that fits; then to
 * resizes. */
static void give_room(struct cluster *c)
{
    if (!c->room_is_awaited || !c->room_changed)
        return;
    c->room_is_awaited = c->room_changed = false;
    size_t left = 0;
    for (size_t i = 0; i < c->unscheduled_count; i++)
        if (!schedule(c, &c->slots[c->unscheduled[i]]))
            c->unscheduled[left++] = c->unscheduled[i];
    c->unscheduled_count = left;
    c->room_is_awaited = left > 0;
    for (size_t i = 0; i < c->function_count; i++)
        retry_resizes(c, &c->functions[i]);
}

/* The kubelet sets no memory limit below what is in use, and tries again: as soon as less is, here.
 * One that starts uses none yet. */
static bool must_wait(const struct function *f, const struct replica *r)
{
    bool shrinks = f->limit_bytes > 0 && (r->limit_bytes == 0 || f->limit_bytes < r->limit_bytes);
    return shrinks && r->phase == CLUSTER_READY && memory_in_use(f, r) > f->limit_bytes;
}

static void finish_resize(struct cluster *c, struct replica *r)
{
    r->resize_at_s = INFINITY;
    r->shrink_waits = must_wait(function_of(c, r), r);
    if (!r->shrink_waits)
        set_size(c, r);
    replica_settle(c, r);
    give_room(c);
}

void life_shrink(struct cluster *c, struct replica *r)
{
    if (!must_wait(function_of(c, r), r))
        finish_resize(c, r);
}

/* --- coming and going ------------------------------------------------------------------------ */
static struct replica *create(struct cluster *c, struct function *f)
{
    uint32_t slot = take_slot(c);
    struct replica *r = &c->slots[slot];
    struct request *requests = r->requests;
    uint32_t cap = r->cap;
    *r = (struct replica){
        .requests = requests,
        .cap = cap,
        .last_s = c->now_s,
        .function = (uint32_t)(f - c->functions),
        .quota_s = INFINITY,
        .phase = CLUSTER_UNSCHEDULED,
        .node = NO_NODE,
        .ready_at_s = INFINITY,
        .resize_at_s = INFINITY,
        .crash_at_s = INFINITY,
        .created_s = c->now_s,
        .id = c->next_id++,
    };
    list_add(&f->replicas, &f->replica_count, &f->replica_cap, slot);
    list_add(&c->unscheduled, &c->unscheduled_count, &c->unscheduled_cap, slot);
    f->ready = xrealloc(f->ready, f->replica_cap, sizeof(*f->ready));
    return r;
}

static void leave_node(struct cluster *c, struct replica *r)
{
    struct node *n = &c->nodes[r->node];
    struct function *f = function_of(c, r);
    reserve(c, r, 0, 0);
    c->room_changed = true;
    f->placed--;
    list_remove(n->replicas, &n->count, slot_of(c, r));
}

void life_remove(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    uint32_t slot = slot_of(c, r);
    replica_settle(c, r);
    f->gone.cpu_s += r->cpu_s;
    f->gone.periods += r->periods;
    f->gone.throttled_periods += r->throttled_periods;
    if (r->node != NO_NODE)
        leave_node(c, r);
    else
        list_remove(c->unscheduled, &c->unscheduled_count, slot);
    list_remove(f->replicas, &f->replica_count, slot);
    list_remove(f->ready, &f->ready_count, slot);
    events_set(&c->running, slot, INFINITY);
    c->free_slots[c->free_count++] = slot;
    give_room(c);
}

static void drain(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    if (r->count == 0) {
        life_remove(c, r);
        return;
    }
    r->phase = CLUSTER_DRAINING;
    r->resize_at_s = INFINITY;
    r->shrink_waits = false;
    list_remove(f->ready, &f->ready_count, slot_of(c, r));
    replica_settle(c, r);
}

void life_restart(struct cluster *c, struct replica *r)
{
    struct function *f = function_of(c, r);
    replica_advance(c, r);
    requests_account(f, c->now_s);
    f->stats.lost += r->count;
    f->in_flight -= r->count;
    r->count = 0;
    r->throttled = false;
    r->crash_at_s = INFINITY;
    if (r->phase == CLUSTER_DRAINING) {
        life_remove(c, r);
        return;
    }
    list_remove(f->ready, &f->ready_count, slot_of(c, r));
    r->phase = CLUSTER_STARTING;
    r->ready_at_s = c->now_s + start_delay_s(f);
    if (r->shrink_waits)
        finish_resize(c, r);
    else
        replica_settle(c, r);
}

void life_event(struct cluster *c, struct replica *r)
{
    if (r->ready_at_s <= c->now_s) {
        become_ready(c, r);
    } else if (r->resize_at_s <= c->now_s) {
        finish_resize(c, r);
    } else if (r->crash_at_s <= c->now_s) {
        function_of(c, r)->stats.crashes++;
        life_restart(c, r);
    }
}

void life_reset(struct cluster *c)
{
    c->free_count = 0;
    c->unscheduled_count = 0;
    for (uint32_t i = c->slot_count; i-- > 0;)
        c->free_slots[c->free_count++] = i;
    events_reserve(&c->coming, (uint32_t)c->function_count);
    events_reserve(&c->running, c->slot_count);
    for (uint32_t i = 0; i < c->slot_count; i++)
        events_set(&c->running, i, INFINITY);
}

void life_begin(struct cluster *c, struct function *f)
{
    cluster_scale(c, (size_t)(f - c->functions), f->config.replicas);
    for (size_t i = 0; i < f->replica_count; i++)
        if (c->slots[f->replicas[i]].phase == CLUSTER_STARTING)
            become_ready(c, &c->slots[f->replicas[i]]);
}

/* --- what is done from outside --------------------------------------------------------------- */
/* The next to go: unscheduled before starting before ready, the youngest of these. */
static struct replica *youngest(const struct cluster *c, const struct function *f)
{
    struct replica *found = NULL;
    for (size_t i = f->replica_count; i-- > 0;) {
        struct replica *r = &c->slots[f->replicas[i]];
        if (r->phase != CLUSTER_DRAINING && (found == NULL || r->phase < found->phase))
            found = r;
    }
    return found;
}

void cluster_scale(struct cluster *c, size_t function, int replicas)
{
    struct function *f = &c->functions[function];
    int wanted = replicas < 0 ? 0 : replicas;
    for (; f->wanted < wanted; f->wanted++) {
        create(c, f);
        c->room_is_awaited = c->room_changed = true;
    }
    for (; f->wanted > wanted; f->wanted--)
        drain(c, youngest(c, f));
    give_room(c);
}

static void resize_all(struct cluster *c, struct function *f)
{
    for (size_t i = 0; i < f->replica_count; i++) {
        struct replica *r = &c->slots[f->replicas[i]];
        if (r->phase == CLUSTER_UNSCHEDULED || r->phase == CLUSTER_DRAINING)
            continue;
        c->room_is_awaited |= !begin_resize(c, r);
        replica_settle(c, r);
    }
    give_room(c);
}

void cluster_resize(struct cluster *c, size_t function, double request_milli, double limit_milli)
{
    struct function *f = &c->functions[function];
    if (f->request_milli == request_milli && f->limit_milli == limit_milli)
        return;
    c->room_changed |= request_milli < f->request_milli; /* one that waits for a node may fit */
    f->request_milli = request_milli;
    f->limit_milli = limit_milli;
    resize_all(c, f);
}

void cluster_resize_memory(struct cluster *c, size_t function, double limit_bytes)
{
    struct function *f = &c->functions[function];
    if (f->limit_bytes == limit_bytes)
        return;
    c->room_changed |= limit_bytes < f->limit_bytes;
    f->limit_bytes = limit_bytes;
    resize_all(c, f);
}
