/* Shared by the recommenders. */
#ifndef FAASRL_RECOMMEND_INTERNAL_H
#define FAASRL_RECOMMEND_INTERNAL_H

#include "recommend/recommend.h"

#include <math.h>

/* --- what was used before (history.c) -------------------------------------------------------- */
struct history; /* VPA's histograms of every container of one MPA */

struct history *recommend_history_new(double cpu_half_life_s);
void recommend_history_free(struct history *history);
void recommend_history_add(struct history *history, const char *container,
                           enum recommend_resource resource, double time_s, double usage);
void recommend_history_observe(struct history *history, const struct observation *seen);

struct history_estimate { /* VPA's percentiles of usage, without a margin; NaN: nothing known */
    double p50, p90, p95;
    double days; /* how much history there is, as VPA measures confidence */
};
struct history_estimate recommend_history_estimate(const struct history *history,
                                                   const char *container,
                                                   enum recommend_resource resource);
/* Any share of the weight, without a margin; NaN: nothing known. */
double recommend_history_percentile(const struct history *history, const char *container,
                                    enum recommend_resource resource, double q);

/* --- figures of the last while (window.c) ---------------------------------------------------- */
struct window; /* samples no older than a span */

struct window *recommend_window_new(double span_s);
void recommend_window_free(struct window *w);
/* The value stands for the covers_s up to time_s. A second one of the same time takes the place of
 * the first: a recommender may be asked twice. */
void recommend_window_add(struct window *w, double time_s, double covers_s, double value);
/* Of samples later than after_s; NaN: there is none (the sum is then 0). */
double recommend_window_max(const struct window *w, double after_s);
double recommend_window_min(const struct window *w, double after_s);
double recommend_window_sum(const struct window *w, double after_s);
double recommend_window_mean(const struct window *w, double after_s); /* over time */
double recommend_window_last_s(const struct window *w);               /* of the newest sample */

/* --- one decision (threshold.c) -------------------------------------------------------------- */
#define VPA_MARGIN 1.15 /* of VPA, on top of the percentile */
#define SLACK      1e-9 /* for figures that are whole but for rounding */

/* What one metric asks for, so that it can be met in either dimension: CPU of all pods together,
 * of which `other` per pod is in containers that we do not size. */
struct demand {
    double total, other;
};

struct judgement {
    const struct observation *seen;
    const struct history *history;
    int n; /* the replicas wanted at present, no more than are allowed */
    struct recommend_metric metrics[RECOMMEND_MAX_METRICS];
    size_t metric_count;
    const struct recommend_metric *lead;

    struct demand demands[RECOMMEND_MAX_METRICS + 1];
    size_t demand_count;
    int flat; /* replicas that metrics ask for which CPU cannot satisfy; 0: none does */
    int valid, invalid;
    double busiest; /* largest CPU usage over its target, NaN: unknown */

    bool vertical;       /* CPU of at least one container is ours */
    double cpu, cpu_max; /* per pod, of those containers */
    double margin;       /* of the remembered usage */

    bool latency_known, may_shrink;
    double pressure;              /* of latency: 1 when it asks for nothing */
    double shrink_floor;          /* share of present capacity that latency needs, by proportion */
    const char *note, *no_shrink; /* why nothing grows, why nothing shrinks */

    int replicas;    /* decided */
    double pod_cpu;  /* decided; equal to cpu: leave */
    double uncapped; /* pod_cpu before the bounds */
};

static inline bool is_amount(double x)
{
    return isfinite(x) && x > 0;
}

static inline double clamp(double x, double low, double high)
{
    return x > high ? high : x < low ? low : x;
}

/* The size of a container now; one without a request counts as its minimum. */
static inline double size_of(const struct recommend_container *c)
{
    double request = c->request[RECOMMEND_CPU];
    return is_amount(request) ? request : c->min[RECOMMEND_CPU];
}

/* --- what recommenders have in common (amounts.c) -------------------------------------------- */
/* The parameters, or their usual values where params is NULL. */
void recommend_params_fill(const struct recommender *recommender, const double *params,
                           double *values);
/* Fails when nothing can be said of such an observation by anyone. */
int recommend_check(const struct observation *seen, struct error *err);
/* Rounded up, but for what is whole but for rounding. */
int recommend_whole(double replicas);
int recommend_ready(const struct observation *seen);
/* Requests in flight, all pods. Where nobody counts them, as many as Little's law gives with the
 * latency at the goal's percentile: too many rather than too few. NaN: unknown. */
double recommend_concurrency(const struct observation *seen);

/* Whole milli-cores, tens above 100m: a size that people would write. */
double recommend_round_cpu(double milli);
double recommend_within(const struct recommend_container *c, enum recommend_resource r,
                        double amount);
/* The factor at which the weighted, bounded CPU sizes of our containers add up to the pod's. */
double recommend_split_factor(const struct observation *seen, const double *weights,
                              double pod_cpu);

struct pod_size { /* CPU of our containers together */
    bool ours;    /* there is at least one to size */
    double now, min, max;
};
struct pod_size recommend_pod_size(const struct observation *seen);
/* CPU of a pod with what is recommended for it (NULL: as it is), of our containers or of all. */
double recommend_pod_milli(const struct observation *seen, const struct recommendation *with,
                           bool ours_only);

void recommend_nothing(struct recommendation *out); /* every amount NaN */
/* All as it is, as far as bounds allow; the setters below change it, within bounds. */
void recommend_keep(const struct observation *seen, struct recommendation *out);
void recommend_set_replicas(const struct observation *seen, int replicas,
                            struct recommendation *out);
void recommend_set_size(const struct observation *seen, size_t container, enum recommend_resource r,
                        double amount, struct recommendation *out);
/* CPU of all our containers together, shared in proportion to what they have. */
void recommend_set_pod_cpu(const struct observation *seen, double milli,
                           struct recommendation *out);

/* --- HPA's pace (pace.c) ---------------------------------------------------------------------- */
struct pace;

struct pace *recommend_pace_new(double window_s);
void recommend_pace_free(struct pace *p);
/* How many of the replicas asked for HPA lets come about now. Sets *note where that is why not. */
int recommend_pace(struct pace *p, const struct observation *seen, int asked, const char **note);

/* --- VPA's sizes (vpa.c) --------------------------------------------------------------------- */
struct vpa_rule {
    const struct history *history;
    double percentile, margin; /* 90, 0.15 */
    double least_milli;        /* of a container, besides its bounds */
};
/* Sets the size of each of our containers that has a past; false: none has. */
bool recommend_vpa_sizes(const struct vpa_rule *rule, const struct observation *seen,
                         struct recommendation *out);

/* --- a queue model of one replica (queue.c) -------------------------------------------------- */
struct queue_load {
    double rate;           /* requests per second, at random times */
    double mean_s, tail_s; /* CPU time of a request: its mean and a quantile */
    double tail_score;     /* of that quantile in the normal distribution; 2.326 for p99 */
    double goal_s;
};
/* The share of requests that take longer than the goal. */
double recommend_queue_late(const struct queue_load *load, double cores);
/* Whether that is at most so much; told sooner. */
bool recommend_queue_keeps(const struct queue_load *load, double cores, double allowed);
/* The CPU time that a request has got which took wait_s, of a replica with so many cores busy. */
double recommend_queue_served(double cores, double busy, double wait_s);
/* The tail with which so many requests as the quantile leaves take longer than goal_s. The load's
 * own is a guess, or NaN. */
double recommend_queue_tail(const struct queue_load *load, double cores);
/* How long requests take at a quantile, about; INFINITY: far longer than the goal. */
double recommend_queue_latency(const struct queue_load *load, double cores, double quantile);
double recommend_queue_score(double quantile); /* 2.326 of 0.99 */

/* --- what a request costs (demand.c) --------------------------------------------------------- */
struct demand_memory;

struct demand_sample {
    double time_s, span_s; /* the figures are means of the span_s before */
    double window_s;       /* but the tail is of this much */
    double quantile;       /* 0.99 */
    double requests_per_s, used_milli;
    int pods;
    double tail_s; /* CPU time of a request at the quantile; NaN: unknown */
};

struct demand_estimate {
    double mean_s, tail_s; /* CPU time; NaN: unknown */
};

struct demand_memory *recommend_demand_new(void);
void recommend_demand_free(struct demand_memory *m);
void recommend_demand_learn(struct demand_memory *m, const struct demand_sample *s);
/* guess_s: of the tail, as long as few requests were seen. */
struct demand_estimate recommend_demand_estimate(const struct demand_memory *m, double quantile,
                                                 double guess_s);

/* --- what an interval shows (look.c) --------------------------------------------------------- */
struct look_memory {
    struct demand_memory *demand;
    double asked_s;                 /* when; NaN: never */
    double rate, came, concurrency; /* then */
    double pile;                    /* of it, requests that had waited for long */
    double quantile, score;         /* then */
    struct {                        /* what the model last said of the tail, */
        double time_s, cores, rate;
        int pods;
        double share; /* of the latency */
    } tail;
};

struct look {
    const struct observation *seen;
    struct pod_size size;
    bool sized;      /* CPU is ours to set */
    double quantile; /* 0.99 */
    double score;    /* of it in the normal distribution */
    double goal_s;
    double guess_s; /* CPU time of a request at the quantile, where nothing is known of it */
    double span_s;  /* since it was last asked; 0: just now */
    double came;    /* requests per second, rather than of those that were answered */
    double pile;    /* requests in flight beyond those that keep the goal */
    double rate;    /* and with those that have piled up, to be worked off */
    double used_milli;
    int ready;
    bool even; /* pods have the same CPU: what they come to tells of one of that size */
};

void recommend_look_init(struct look_memory *m);
void recommend_look_clear(struct look_memory *m);
int recommend_look(const struct look_memory *m, const struct observation *seen, struct look *l,
                   struct error *err);
bool recommend_latency_known(const struct observation *seen);
/* Late requests of the interval. Where their share is not told, the latency at the quantile says at
 * least on which side of the allowed it is. */
double recommend_look_late(const struct look *l);
/* The CPU time of a request at the quantile; NaN: unknown. */
double recommend_look_tail(struct look_memory *m, const struct look *l);
void recommend_look_learn(struct look_memory *m, const struct look *l, double tail_s);
void recommend_look_keep(struct look_memory *m, const struct look *l);

/* --- how many will come (forecast.c) --------------------------------------------------------- */
struct forecast;

struct forecast *recommend_forecast_new(double memory_s, double hold_s);
void recommend_forecast_free(struct forecast *f);
/* The rate to be ready for, without a margin, after an interval of span_s with this rate. */
double recommend_forecast(struct forecast *f, double time_s, double span_s, double rate);
/* Whether so many requests in an interval are more than chance makes of the level. */
bool recommend_is_burst(double rate, double level, double span_s);

/* --- answers that are dear to find (memo.c) -------------------------------------------------- */
#define MEMO_MOST 4095 /* answers are from 1 on */

/* What a question is made of; equal parts, equal question. */
uint64_t recommend_memo_question(const double *parts, size_t count);
/* The answer to a question's at-th point; 0: unknown. */
unsigned recommend_memo_get(uint64_t question, size_t at);
void recommend_memo_put(uint64_t question, size_t at, unsigned answer);

/* --- what the queue model says, remembered (sizing.c) ----------------------------------------- */
struct sizing;

struct sizing_task {
    double mean_s, tail_s, tail_score, goal_s; /* as in struct queue_load */
    double allowed;                            /* share of late requests */
    double late;                               /* of which this share is planned for */
    struct pod_size size;
    int least_replicas, most_replicas;
};

struct sizing_choice {
    int replicas;
    double milli;
};

struct sizing *recommend_sizing_new(void);
void recommend_sizing_free(struct sizing *s);
/* Before anything is asked. */
void recommend_sizing_set(struct sizing *s, const struct sizing_task *task);
/* The least CPU, times factor, with which one replica keeps the goal at this rate, within bounds;
 * INFINITY: the most is too little. A factor that would be too much for a lone request counts as
 * 1: no number of replicas could satisfy it. */
double recommend_sizing_milli(struct sizing *s, double rate, double factor);
/* The most of all where nothing is enough. */
struct sizing_choice recommend_sizing_cheapest(struct sizing *s, double rate, double factor);
/* Milli-cores of the cheapest replicas for this rate of all. */
double recommend_sizing_cost(struct sizing *s, double rate);

/* --- what to be ready for (readiness.c) ------------------------------------------------------- */
struct readiness;

struct readiness_sample { /* an interval */
    double time_s, span_s;
    double rate;  /* that came */
    double level; /* to be ready for in any case, from now on */
};

struct readiness_choice {
    double rate;               /* to be ready for */
    double hold_s, share;      /* of the peak that it comes from; 0: the level */
    double risk, risk_unready; /* requests that it, or the level alone, was not ready for, as a
                                  multiple of those that may be late */
    double cost;               /* as a multiple of the level's alone */
};

struct readiness *recommend_readiness_new(void);
void recommend_readiness_free(struct readiness *r);
void recommend_readiness_learn(struct readiness *r, struct sizing *sizing,
                               const struct readiness_sample *sample);
/* tolerance: requests at risk, as a multiple of those that may be late. */
struct readiness_choice recommend_readiness_choose(const struct readiness *r, double allowed,
                                                   double tolerance);
double recommend_readiness_peak(const struct readiness *r, double hold_s);
/* The share of requests that will be late at this rate with what was made ready for another. */
double recommend_readiness_short(struct sizing *sizing, double ready, double rate);
/* How much of what came was no chance. */
double recommend_readiness_sure(double rate, double span_s);

/* --- the amounts of each container (sizes.c) ------------------------------------------------- */
void recommend_sizes_fill(const struct judgement *j, struct recommendation *out);

/* --- why (reason.c) -------------------------------------------------------------------------- */
struct reason {
    const struct observation *seen;
    const char *situation; /* what leads to the decision; NULL: latency and the metric below */
    const struct recommend_metric *lead; /* the metric that asks for most, NULL: none has figures */
    bool latency_known;
    const char *note; /* why nothing changes, or NULL */
};
void recommend_reason_write(const struct reason *why, struct recommendation *out);
/* Adds a piece to a text whole or not at all, so that no name or arrow is cut in the middle. */
PRINTF_LIKE(3, 4) void recommend_say(char *text, size_t size, const char *fmt, ...);

#endif
