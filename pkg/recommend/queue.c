/* How many requests are late, by theory rather than by trial.
 *
 * A replica runs its requests side by side, one core each at most, until the CFS quota of the
 * period is used up. A request of demand s that comes at phase u of a period is late when its own
 * demand and what others take from it until the goal do not fit into the quota of that time:
 *
 *     s + V > K(u, goal)   or   s > A(u, goal)
 *
 * K is the quota of the periods that the request can wait for, A what a lone request can make of
 * them. V is the work of others that come near it: as much on average as comes between the period's
 * begin and the goal, so that long requests take the s / (1 - load) of M/G/1-PS, and with the
 * spread of pieces no larger than s, because processor sharing gives nobody more than the request
 * itself gets. For short requests it is the chance that a period is used up. Demands are taken as
 * lognormal, V too. */
#include "recommend/internal.h"

#define PERIOD_S 0.1
#define PHASES   3
#define LEVELS   12
#define TINY     1e-12
#define NEVER    6.0 /* deviations: beyond, one in a billion */
#define TRIES    12
#define NEAR     1.1   /* times a guess: where the search for a tail begins */
#define EXACT    1.025 /* the error that it leaves: half a bucket of those that it is kept in */
#define ROUGH    1.03  /* the relative error of what is only told */

/* Requests in slices by demand: the normal score of the middle one, and the share of all. Fine
 * where it matters whether a request is late. */
static const struct {
    double score, weight;
} levels[LEVELS] = {
    {-0.6745, 0.5},   {0.3186, 0.25},   {0.8871, 0.125},  {1.3180, 0.0625},
    {1.6759, 0.0300}, {1.9600, 0.0145}, {2.2040, 0.0080}, {2.3979, 0.0040},
    {2.5758, 0.0025}, {2.7944, 0.0020}, {3.1214, 0.0010}, {3.5401, 0.0005},
};

/* P(Z > score), right to 1e-7 (Abramowitz and Stegun, 7.1.26), in a third of erfc's time. */
static double above(double score)
{
    double x = fabs(score) * M_SQRT1_2, t = 1 / (1 + 0.3275911 * x);
    double sum = 1.421413741 + t * (-1.453152027 + t * 1.061405429);
    double tail = 0.5 * t * (0.254829592 + t * (-0.284496736 + t * sum)) * exp(-x * x);
    return score < 0 ? 1 - tail : tail;
}

/* --- demand ---------------------------------------------------------------------------------- */
struct shape {                      /* of the lognormal, in seconds */
    double mu, sigma, mean, second; /* E[S²] */
    double most;                    /* no request is larger */
    double thinning;                /* the true mean over that of a lognormal with this tail */
};

/* A tail of more than 15 times the mean, or below it, is more than a lognormal can have. Then the
 * tail is right, and so many fewer or more others come that their work is right too. */

static struct shape shape_of(const struct queue_load *load)
{
    double score = load->tail_score, ratio = log(load->tail_s / load->mean_s);
    double root = score * score - 2 * ratio;
    struct shape d = {.most = 2 * load->tail_s};
    d.sigma = ratio < 0 ? 1 : root > 0 ? fmax(score - sqrt(root), 0.05) : score;
    d.mu = log(load->tail_s) - d.sigma * score;
    d.mean = exp(d.mu + d.sigma * d.sigma / 2);
    d.second = exp(2 * d.mu + 2 * d.sigma * d.sigma);
    d.thinning = load->mean_s / d.mean;
    return d;
}

/* E[min(S, s)²] */
static double capped_second(const struct shape *d, double s)
{
    double score = (log(s) - d->mu) / d->sigma;
    return d->second * (1 - above(score - 2 * d->sigma)) + s * s * above(score);
}

/* --- a replica ------------------------------------------------------------------------------- */
/* What the periods from phase_s on until the goal have to give. */
struct supply {
    double lone; /* to a request that is alone, with at most a core */
    double all;  /* to all requests, the beginning of the first period included */
};

static struct supply supply_of(double cores, double phase_s, double goal_s)
{
    double quota_s = cores * PERIOD_S, first = fmin(PERIOD_S - phase_s, goal_s);
    double rest = goal_s - first, whole = floor(rest / PERIOD_S), last = rest - whole * PERIOD_S;
    double between = whole * quota_s;
    return (struct supply){
        .lone = fmin(quota_s, first) + between + fmin(quota_s, last),
        .all = quota_s + between + fmin(quota_s, last * fmax(cores, 1)),
    };
}

/* The share of a core that a long request gets beside others, under processor sharing. */
static double long_run_share(double cores, double busy)
{
    double weight = 1, sum = 0, got = 0;
    for (int others = 0; others < 1000; others++) {
        double rate = fmin(1, cores / (others + 1));
        sum += weight;
        got += weight * rate;
        double next = busy / ((others + 1) * fmin(1, cores / (others + 2)));
        weight *= next;
        if (next < 1 && weight < 1e-6 * sum)
            break;
    }
    return got / sum;
}

/* The same from what a period is short of on average: others may use its quota in any order. */
static double period_share(const struct queue_load *load, const struct shape *d, double cores)
{
    double second = d->thinning * capped_second(d, d->most);
    double sd = sqrt(load->rate * PERIOD_S * second);
    double spare = (cores - 1 - load->rate * load->mean_s) * PERIOD_S, score = spare / sd;
    double lost = sd * exp(-score * score / 2) / sqrt(2 * M_PI) - spare * above(score);
    return 1 - lost / PERIOD_S;
}

struct phase { /* of a period, at which a request comes */
    struct supply supply;
    double requests; /* of others that it meets, */
    double any;      /* the chance that it meets one, */
    double mean;     /* and the mean work of all these then */
};

/* Those that come before or after meet a request for a part of their time: twice as many, of which
 * half the demand counts on average. */
static struct phase phase_at(const struct queue_load *load, const struct shape *d, double cores,
                             double phase_s)
{
    double requests = 2 * load->rate * d->thinning * (phase_s + load->goal_s),
           any = -expm1(-requests);
    return (struct phase){
        .supply = supply_of(cores, phase_s, load->goal_s),
        .requests = requests,
        .any = any,
        .mean = any > 0 ? requests * d->mean / 2 / any : 0,
    };
}

/* P(V > room) for parts, from none to all, of requests that come at random: lognormal with their
 * first two moments; second is E[S²]. */
static double others_above(const struct phase *p, double second, double room)
{
    if (p->any < TINY || room <= 0)
        return room <= 0 ? 1 : 0;
    double var =
        log(fmax(p->requests * second / (3 * p->any * p->mean * p->mean) + p->any, 1 + TINY));
    double score = (log(room / p->mean) + var / 2) / sqrt(var);
    return score < NEVER ? p->any * above(score) : 0;
}

struct outlook { /* of one replica's requests */
    const struct queue_load *load;
    double cores, share, eaten_s;
    struct shape d;
    struct phase phases[PHASES];
};

/* False: more comes than it can work off. */
static bool look_out(const struct queue_load *load, double cores, struct outlook *out)
{
    double busy = load->rate * load->mean_s;
    if (busy >= cores * (1 - SLACK))
        return false;
    *out = (struct outlook){.load = load, .cores = cores, .share = 1, .d = shape_of(load)};
    for (int i = 0; i < PHASES; i++)
        out->phases[i] = phase_at(load, &out->d, cores, (i + 0.5) / PHASES * PERIOD_S);
    if (cores > 1)
        out->share = fmax(long_run_share(cores, busy), period_share(load, &out->d, cores));
    /* What others have used up of a period, before a request came, is not shared with it. */
    out->eaten_s = cores * PERIOD_S * fmin(1, PERIOD_S / load->goal_s);
    return true;
}

/* The chance that a request of this level is late. */
static double late_at(const struct outlook *o, size_t level)
{
    double s = fmin(exp(o->d.mu + o->d.sigma * levels[level].score), o->d.most), late = 0;
    double second = capped_second(&o->d, fmin(s + o->eaten_s, o->d.most));
    for (int k = 0; k < PHASES; k++) {
        const struct supply *supply = &o->phases[k].supply;
        bool alone = s > (o->cores < 1 ? supply->lone : o->share * o->load->goal_s);
        late += alone ? 1 : others_above(&o->phases[k], second, supply->all - s);
    }
    return late / PHASES;
}

double recommend_queue_late(const struct queue_load *load, double cores)
{
    struct outlook o;
    double late = 0;
    if (!look_out(load, cores, &o))
        return 1;
    for (size_t i = LEVELS; i-- > 0;)
        late += levels[i].weight * late_at(&o, i);
    return late;
}

/* From the largest requests on: smaller ones are less often late, so that the answer is known
 * before most of them are looked at. */
bool recommend_queue_keeps(const struct queue_load *load, double cores, double allowed)
{
    struct outlook o;
    double late = 0, rest = 1;
    if (!look_out(load, cores, &o))
        return allowed >= 1;
    for (size_t i = LEVELS; i-- > 0;) {
        double chance = late_at(&o, i);
        late += levels[i].weight * chance;
        rest -= levels[i].weight;
        if (late > allowed)
            return false;
        if (late + rest * chance <= allowed)
            return true;
    }
    return true;
}

double recommend_queue_served(double cores, double busy, double wait_s)
{
    struct supply supply = supply_of(cores, PERIOD_S / 2, wait_s);
    double others = busy < cores ? long_run_share(cores, busy) / fmin(cores, 1) : 0;
    return (cores < 1 ? supply.lone : wait_s) * others;
}

double recommend_queue_tail(const struct queue_load *load, double cores)
{
    struct queue_load guess = *load;
    double allowed = above(load->tail_score), least = load->goal_s / 1000, low = least,
           high = load->goal_s;
    double step = isfinite(load->tail_s) ? NEAR : high / least;
    guess.tail_s = isfinite(load->tail_s) ? fmin(fmax(load->tail_s, least), high) : high;
    int tries = 0;
    for (bool more = true; more && tries < TRIES; step *= step, tries++) { /* around the guess */
        bool late = !recommend_queue_keeps(&guess, cores, allowed);
        double next = late ? guess.tail_s / step : guess.tail_s * step;
        if (late)
            high = guess.tail_s;
        else
            low = guess.tail_s;
        more = next > low && next < high;
        guess.tail_s = next;
    }
    for (; high > low * EXACT && tries < 2 * TRIES; tries++) {
        guess.tail_s = sqrt(low * high);
        if (recommend_queue_keeps(&guess, cores, allowed))
            low = guess.tail_s;
        else
            high = guess.tail_s;
    }
    return high;
}

double recommend_queue_latency(const struct queue_load *load, double cores, double quantile)
{
    struct queue_load guess = *load;
    double allowed = 1 - quantile, low = 0, high = INFINITY;
    for (int i = 0; i < TRIES && !(low > 0 && high <= 2 * low); i++) { /* from the goal on */
        bool late = !recommend_queue_keeps(&guess, cores, allowed);
        *(late ? &low : &high) = guess.goal_s;
        guess.goal_s *= late ? 2 : 0.5;
    }
    for (int i = 0; i < TRIES && low > 0 && isfinite(high) && high > low * ROUGH; i++) {
        guess.goal_s = sqrt(low * high);
        *(recommend_queue_keeps(&guess, cores, allowed) ? &high : &low) = guess.goal_s;
    }
    return high;
}

/* Newton's steps from Hastings' formula (Abramowitz and Stegun, 26.2.23), which is right to 5e-4.
 */
double recommend_queue_score(double quantile)
{
    double beyond = fmin(fmax(1 - quantile, 1e-14), 0.5), t = sqrt(-2 * log(beyond));
    double score = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                           (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int i = 0; i < 2; i++)
        score += (0.5 * erfc(score * M_SQRT1_2) - beyond) * sqrt(2 * M_PI) * exp(score * score / 2);
    return score;
}
