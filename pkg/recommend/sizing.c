/* What the queue model says, remembered: the CPU that a replica needs by its rate, and what the
 * cheapest replicas cost by the rate of all. Asking the model takes microseconds, many times over
 * for one decision. So demands are rounded to cells, rates to points, and answers to steps; what is
 * known of the cell that a function is in lies here, what any function ever asked in memo.c. */
#include "recommend/internal.h"

#include <string.h>

#define POINTS      90
#define PER_OCTAVE  3
#define LOWEST      1e-3 /* requests per second of the first point */
#define CELLS       12   /* of demand, in an octave */
#define STEPS       128  /* of milli-cores, in an octave */
#define NEVER       MEMO_MOST
#define EXACT       0.02 /* of a size */
#define NEAR        1.1  /* times a guess: where the search begins */
#define FAR         1.5  /* and how it goes on */
#define STABLE      0.95 /* of a replica's CPU in use, at most */
#define TRIMMED     0.8  /* the same where the model is corrected downwards */
#define HOPELESS    0.1  /* of the allowed late requests, beyond those that no CPU can help */
#define LEAST_MILLI 5.0
#define MOST_MILLI  1e6 /* of a replica: no machine has more */
#define BEYOND      64  /* times the largest size: where the table ends */
#define IN_A_ROW    3

struct sizing {
    struct sizing_task task; /* of the middle of its cell */
    double late;             /* that is planned for; NaN: not worked out yet */
    uint64_t one, all;       /* questions about a replica, and about all of them */
    uint16_t milli[POINTS];  /* in steps; 0: not asked yet */
    uint16_t cost[POINTS];
};

struct sizing *recommend_sizing_new(void)
{
    return xcalloc(1, sizeof(struct sizing));
}

void recommend_sizing_free(struct sizing *s)
{
    free(s);
}

static struct queue_load load_of(const struct sizing_task *t, double rate)
{
    return (struct queue_load){rate, t->mean_s, t->tail_s, t->tail_score, t->goal_s};
}

/* --- the cell -------------------------------------------------------------------------------- */
/* Where CPU is not ours, a size may be anything. */
static struct sizing_task within_reason(const struct sizing_task *t)
{
    struct sizing_task bounded = *t;
    bounded.size.min = clamp(fmax(t->size.min, 1), 1, MOST_MILLI); /* fmax skips NaN */
    bounded.size.max = clamp(fmax(t->size.max, 1), bounded.size.min, MOST_MILLI);
    return bounded;
}

void recommend_sizing_set(struct sizing *s, const struct sizing_task *task)
{
    struct sizing_task t = within_reason(task);
    double mean = round(log2(t.mean_s) * CELLS), tail = round(log2(t.tail_s) * CELLS);
    const double one[] = {mean, tail, t.tail_score, t.goal_s, t.allowed, t.late, t.size.max};
    uint64_t of_one = recommend_memo_question(one, ARRAY_LEN(one));
    const double all[] = {t.size.min, t.least_replicas, t.most_replicas};
    uint64_t of_all = of_one ^ recommend_memo_question(all, ARRAY_LEN(all));
    if (s->all == of_all)
        return;
    t.mean_s = exp2(mean / CELLS);
    t.tail_s = exp2(tail / CELLS);
    *s = (struct sizing){.task = t, .late = NAN, .one = of_one, .all = of_all};
}

/* --- answers --------------------------------------------------------------------------------- */
static unsigned steps_of(double milli)
{
    return isfinite(milli) ? (unsigned)clamp(1 + round(log2(milli) * STEPS), 1, NEVER - 1) : NEVER;
}

/* Between two answers, straight between their logarithms. */
static double milli_of(unsigned low, unsigned high, double part)
{
    if (low == NEVER || (high == NEVER && part > 0))
        return INFINITY;
    return exp2((low - 1 + ((double)high - low) * part) / STEPS);
}

static double rate_at(size_t point)
{
    return LOWEST * exp2((double)point / PER_OCTAVE);
}

/* Where a rate lies between the points. */
static double place_of(double rate, size_t *point)
{
    double place = clamp(log2(fmax(rate, LOWEST) / LOWEST) * PER_OCTAVE, 0, POINTS - 1.001);
    *point = (size_t)place;
    return place - (double)*point;
}

/* --- one replica ----------------------------------------------------------------------------- */
/* Requests that are late even alone on the largest replica cannot be planned away. */
static double planned_late(const struct sizing_task *t)
{
    struct queue_load alone = load_of(t, 0);
    double hopeless = recommend_queue_late(&alone, t->size.max / 1000);
    return fmax(t->allowed * t->late, hopeless + t->allowed * HOPELESS);
}

static bool enough(const struct sizing *s, double rate, double milli)
{
    struct queue_load load = load_of(&s->task, rate);
    return rate * load.mean_s < STABLE * milli / 1000 &&
           recommend_queue_keeps(&load, milli / 1000, s->late);
}

/* Processor sharing gives a first guess: what is left beside others has to serve a large request
 * within the goal. */
static double ask(struct sizing *s, double rate)
{
    const struct sizing_task *t = &s->task;
    double most = t->size.max * BEYOND, guess = 1000 * (rate * t->mean_s + t->tail_s / t->goal_s);
    double high = clamp(guess * NEAR, LEAST_MILLI, most), low = fmax(high / NEAR, LEAST_MILLI);
    if (isnan(s->late))
        s->late = planned_late(t);
    while (!enough(s, rate, high)) {
        if (high >= most)
            return INFINITY;
        low = high;
        high = fmin(high * FAR, most);
    }
    while (low < high && enough(s, rate, low)) {
        high = low;
        low = fmax(low / FAR, LEAST_MILLI);
    }
    while (high > low * (1 + EXACT)) {
        double middle = sqrt(low * high);
        if (enough(s, rate, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static unsigned milli_at(struct sizing *s, size_t point)
{
    unsigned answer = s->milli[point];
    if (answer)
        return answer;
    answer = recommend_memo_get(s->one, point);
    if (!answer)
        recommend_memo_put(s->one, point, answer = steps_of(ask(s, rate_at(point))));
    return s->milli[point] = (uint16_t)answer;
}

double recommend_sizing_milli(struct sizing *s, double rate, double factor)
{
    size_t point;
    const struct pod_size *size = &s->task.size;
    double part = place_of(rate, &point);
    double plain = milli_of(milli_at(s, point), milli_at(s, point + 1), part);
    double milli = factor * plain;
    if (factor > 1 && factor * milli_of(milli_at(s, 0), 0, 0) > size->max)
        milli = fmax(fmin(milli, size->max), plain);
    milli = fmax(milli, rate * s->task.mean_s * 1000 / (factor < 1 ? TRIMMED : STABLE));
    return milli > size->max * (1 + SLACK) ? INFINITY : clamp(milli, size->min, size->max);
}

/* --- all of them ----------------------------------------------------------------------------- */
/* With many replicas neighbouring numbers are as good. */
static int next_number(int n)
{
    return n + 1 + n / 16;
}

struct sizing_choice recommend_sizing_cheapest(struct sizing *s, double rate, double factor)
{
    const struct sizing_task *t = &s->task;
    struct sizing_choice best = {t->most_replicas, t->size.max};
    double least_milli = recommend_sizing_milli(s, 0, factor), least_cost = INFINITY;
    int least = recommend_whole(rate * t->mean_s * 1000 / STABLE / t->size.max);
    int n = least > t->least_replicas ? least : t->least_replicas;
    for (int dearer = 0; n <= t->most_replicas && dearer < IN_A_ROW; n = next_number(n)) {
        if (n * least_milli >= least_cost)
            break;
        double milli = recommend_sizing_milli(s, rate / n, factor);
        dearer = isfinite(least_cost) && n * milli >= least_cost ? dearer + 1 : 0;
        if (n * milli < least_cost) {
            best = (struct sizing_choice){n, milli};
            least_cost = n * milli;
        }
    }
    return best;
}

static unsigned cost_at(struct sizing *s, size_t point)
{
    unsigned answer = s->cost[point];
    if (answer)
        return answer;
    answer = recommend_memo_get(s->all, point);
    if (!answer) {
        struct sizing_choice c = recommend_sizing_cheapest(s, rate_at(point), 1);
        recommend_memo_put(s->all, point, answer = steps_of(c.replicas * c.milli));
    }
    return s->cost[point] = (uint16_t)answer;
}

double recommend_sizing_cost(struct sizing *s, double rate)
{
    size_t point;
    double part = place_of(rate, &point);
    return milli_of(cost_at(s, point), cost_at(s, point + 1), part);
}

double recommend_needed_milli(const struct recommend_need *need, const double *rates, size_t count)
{
    struct sizing *s = recommend_sizing_new();
    double sum = 0;
    recommend_sizing_set(s, &(struct sizing_task){
                                .mean_s = need->mean_s,
                                .tail_s = need->tail_s,
                                .tail_score = recommend_queue_score(need->percentile / 100),
                                .goal_s = need->goal_s,
                                .allowed = 1 - need->percentile / 100,
                                .late = 0.8,
                                .size = {true, need->min_milli, need->min_milli, need->max_milli},
                                .least_replicas = need->min_replicas,
                                .most_replicas = need->max_replicas,
                            });
    for (size_t i = 0; i < count; i++)
        sum += recommend_sizing_cost(s, rates[i]);
    recommend_sizing_free(s);
    return sum / (double)count;
}
