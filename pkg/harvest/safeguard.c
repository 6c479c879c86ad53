#include "harvest/safeguard.h"

#include <math.h>

/* Of a step: what is so close to an option is the option. */
#define ROUNDING 1e-9

enum safeguard_state safeguard_state(const struct safeguard *guard,
                                     const struct safeguard_limits *limits)
{
    if (!guard->seen)
        return SAFEGUARD_FIRST;
    if (guard->last_peak >= SAFEGUARD_NEARLY * limits->user)
        return SAFEGUARD_UNDER;
    return guard->last_peak >= SAFEGUARD_NEARLY * guard->last_given ? SAFEGUARD_SPIKE
                                                                    : SAFEGUARD_OVER;
}

struct safeguard_options safeguard_options(const struct safeguard *guard,
                                           const struct safeguard_limits *limits)
{
    enum safeguard_state state = safeguard_state(guard, limits);
    double high = state == SAFEGUARD_UNDER ? limits->most : limits->user, low = high;
    if (state == SAFEGUARD_OVER || state == SAFEGUARD_UNDER) {
        double steps = floor(guard->highest_peak / limits->step + ROUNDING) + 1;
        low = fmin(steps * limits->step, high);
    }
    double above = ceil((high - low) / limits->step - ROUNDING);
    return (struct safeguard_options){state, low, high, limits->step, (size_t)above + 1};
}

double safeguard_option(const struct safeguard_options *options, size_t i)
{
    return i + 1 >= options->count ? options->high : options->low + (double)i * options->step;
}

void safeguard_see(struct safeguard *guard, const struct safeguard_options *options, double given,
                   double peak)
{
    bool anew = !guard->seen || options->state == SAFEGUARD_SPIKE;
    guard->highest_peak = anew ? peak : fmax(guard->highest_peak, peak);
    guard->last_peak = peak;
    guard->last_given = given;
    guard->seen = true;
}
