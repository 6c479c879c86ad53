#include "harvest/safeguard.h"

#include <math.h>

#define ROUNDING 1e-9 /* shares that differ by less are the same */

static bool is_nearly(double peak, double of)
{
    return peak >= (SAFEGUARD_NEARLY - ROUNDING) * of;
}

enum safeguard_state safeguard_state(const struct safeguard *guard,
                                     const struct safeguard_limits *limits)
{
    if (!guard->seen)
        return SAFEGUARD_FIRST;
    if (is_nearly(guard->last_peak, limits->user))
        return SAFEGUARD_UNDER;
    return is_nearly(guard->last_peak, guard->last_given) ? SAFEGUARD_SPIKE : SAFEGUARD_OVER;
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
