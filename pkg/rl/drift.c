/* Rewards that are no longer what they were: CUSUM on blocks against their own history. */
#include "rl/drift.h"

#define CLIP         5.0  /* deviations that one block can count for, at most */
#define CALM         0.5  /* of the limit: below it, what is raised is taken back */
#define CAP          1.5  /* of the limit: so that what is back is soon known to be */
#define SPREAD_LEAST 0.1  /* deviation of a spread's logarithm */
#define LONG         1000 /* blocks that are remembered, without a period */
#define PERIODS      7    /* that are, with one */
#define SEEN         3    /* blocks that make a slot known */
#define HEAVY        2.0 /* times the squares of blocks: their tails may be heavier than normal ones */
#define EDGE         4.0 /* the same with slots, in which rewards may jump too */
#define GROWTH       4   /* of the number of blocks from scale to scale */

const struct rl_drift_config rl_drift_default = {
    .block = 8, .learn = 128, .slack = 0.5, .limit = 14, .floor = 0.005};

/* --- beginning ------------------------------------------------------------------------------- */
static int check(const struct rl_drift_config *c, struct error *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } fields[] = {
        {"block", (double)c->block, 2, 1e6},
        {"period", (double)c->period, 0, 1e9},
        {"slots", (double)c->slots, 0, RL_DRIFT_SLOTS},
        {"learn", (double)c->learn, 16, 1e6},
        {"slack", c->slack, 0.01, 10},
        {"limit", c->limit, 1, 1000},
        {"floor", c->floor, 1e-9, 1e9},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!(fields[i].value >= fields[i].low && fields[i].value <= fields[i].high))
            return error_set(err, ERROR_INVALID, "%s is %g: must be %g to %g", fields[i].name,
                             fields[i].value, fields[i].low, fields[i].high);
    return 0;
}

int rl_drift_init(struct rl_drift *drift, const struct rl_drift_config *config, struct error *err)
{
    if (check(config, err) < 0)
        return -1;
    *drift = (struct rl_drift){.config = *config};
    if (config->slots == 0)
        drift->config.slots = 24;
    if (config->period == 0)
        drift->config.slots = 1;
    if (config->period > 0 && config->period < drift->config.slots * config->block)
        return error_set(err, ERROR_INVALID, "period is %zu: must be %zu or more, a block per slot",
                         config->period, drift->config.slots * config->block);
    return 0;
}

void rl_drift_forget(struct rl_drift *drift)
{
    *drift = (struct rl_drift){.config = drift->config, .clock = drift->clock};
}

/* --- what is usual --------------------------------------------------------------------------- */
struct place { /* a block's in its period: between the middles of two slots */
    size_t own, before, after;
    double share; /* of the way to `after` */
};

static struct place find_place(const struct rl_drift *d)
{
    size_t slots = d->config.slots;
    if (slots == 1)
        return (struct place){0};
    double middle = (double)(d->clock % d->config.period) - (double)d->config.block / 2;
    double at = middle / (double)d->config.period * (double)slots + (double)slots - 0.5;
    size_t before = (size_t)at;
    return (struct place){.own = (size_t)(at + 0.5) % slots,
                          .before = before % slots,
                          .after = (before + 1) % slots,
                          .share = at - (double)before};
}

static bool is_known(const struct rl_drift_level *l, const struct place *p)
{
    return l->slots[p->before].weight >= SEEN && l->slots[p->after].weight >= SEEN;
}

static double usual(const struct rl_drift_level *l, const struct place *p)
{
    if (!is_known(l, p))
        return l->slots[p->own].mean;
    return (1 - p->share) * l->slots[p->before].mean + p->share * l->slots[p->after].mean;
}

/* Deviation of a block from what is usual, as far as sums of blocks go: of means that hang together
 * longer than a block, their squares at the larger scale tell more. */
static double deviation(const struct rl_drift *d, const struct rl_drift_level *l,
                        const struct place *p, double least)
{
    double more = d->config.slots > 1 ? EDGE : HEAVY;
    double most = fmax(least * least, more * l->slots[p->own].squares);
    size_t size = 1;
    for (size_t i = 0; i < RL_DRIFT_SCALES; i++, size *= GROWTH)
        if (l->scales[i].weight >= 1)
            most = fmax(most, (double)size * l->scales[i].squares);
    return sqrt(most);
}

static void learn_deviation(struct rl_drift_level *l, double off)
{
    size_t size = 1;
    for (size_t i = 0; i < RL_DRIFT_SCALES; i++, size *= GROWTH) {
        struct rl_drift_scale *s = &l->scales[i];
        s->sum += off;
        if (++s->count < size)
            continue;
        double mean = s->sum / (double)size;
        s->weight = fmin(s->weight + 1, LONG / (double)size);
        s->squares += (mean * mean - s->squares) / s->weight;
        s->sum = 0;
        s->count = 0;
    }
}

static void learn_usual(const struct rl_drift *d, struct rl_drift_level *l, const struct place *p,
                        double value, double off)
{
    double most = LONG;
    if (d->config.period > 0)
        most = PERIODS * (double)d->config.period / (double)(d->config.block * d->config.slots);
    l->slots[p->own].weight = fmin(l->slots[p->own].weight + 1, fmax(most, SEEN));
    l->slots[p->own].mean += (value - l->slots[p->own].mean) / l->slots[p->own].weight;
    l->slots[p->own].squares += (off * off - l->slots[p->own].squares) / l->slots[p->own].weight;
}

/* --- a block --------------------------------------------------------------------------------- */
static double add_up(double sum, double more, double limit)
{
    return fmin(fmax(sum + more, 0), CAP * limit);
}

/* What looks like a change is not learned from, or it would become usual before it is told. */
static void judge(const struct rl_drift *d, struct rl_drift_level *l, double value, double least,
                  bool ready)
{
    struct place p = find_place(d);
    double off = value - usual(l, &p), unit = deviation(d, l, &p, least);
    const struct rl_drift_config *c = &d->config;
    bool seen = l->slots[p.own].weight >= 1;
    if (ready) {
        double z = fmin(fmax(off / unit, -CLIP), CLIP);
        l->up = add_up(l->up, z - c->slack, c->limit);
        l->down = add_up(l->down, -z - c->slack, c->limit);
        off = z * unit;
        value = usual(l, &p) + off;
    }
    if (fmax(l->up, l->down) > CALM * c->limit)
        return;
    if (seen)
        learn_deviation(l, off);
    learn_usual(d, l, &p, value, seen ? off : 0);
}

static void raise(struct rl_drift *d, double sum, enum rl_drift_kind kind)
{
    if (sum > d->config.limit)
        d->raised |= kind;
    else if (sum < CALM * d->config.limit)
        d->raised &= ~(unsigned)kind;
}

static void end_block(struct rl_drift *d)
{
    double n = (double)d->config.block, mean = d->sum / n;
    double variance = fmax(d->squares - n * mean * mean, 0) / (n - 1);
    bool ready = rl_drift_is_ready(d);
    judge(d, &d->mean, mean, d->config.floor, ready);
    judge(d, &d->spread, log(sqrt(variance) + d->config.floor), SPREAD_LEAST, ready);
    raise(d, d->mean.down, RL_DRIFT_WORSE);
    raise(d, d->mean.up, RL_DRIFT_BETTER);
    raise(d, d->spread.up, RL_DRIFT_WILDER);
    d->sum = d->squares = 0;
    d->filled = 0;
    d->blocks++;
}

bool rl_drift_is_ready(const struct rl_drift *d)
{
    struct place p = find_place(d);
    return d->blocks >= d->config.learn && is_known(&d->mean, &p);
}

unsigned rl_drift_add(struct rl_drift *d, double reward)
{
    d->clock++;
    if (!isfinite(reward))
        return d->raised;
    d->sum += reward;
    d->squares += reward * reward;
    if (++d->filled == d->config.block)
        end_block(d);
    return d->raised;
}
