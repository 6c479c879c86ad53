#include "base/base.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The only state of this file: -1 means the system's clocks. */
static _Atomic int64_t set_mono_ms = -1, set_wall_ms = -1;
#define NOT_YET          INT64_MIN
#define CLOCKS_DIFFER_MS 10000             /* of two machines, at most */
static _Atomic int64_t apart_ms = NOT_YET; /* the wall clock and the monotonic one, once */

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_mono_ms(void)
{
    int64_t set = atomic_load(&set_mono_ms);
    return set >= 0 ? set : read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
    int64_t set = atomic_load(&set_wall_ms);
    return set >= 0 ? set : read_clock(CLOCK_REALTIME);
}

int64_t clock_since_ms(int64_t wall_ms)
{
    int64_t wall_now_ms = clock_wall_ms(), mono_ms = clock_mono_ms(), apart = NOT_YET;
    if (atomic_compare_exchange_strong(&apart_ms, &apart, wall_now_ms - mono_ms))
        apart = wall_now_ms - mono_ms;
    int64_t steady_ms = mono_ms + apart;
    int64_t since_ms = (wall_now_ms > steady_ms ? wall_now_ms : steady_ms) - wall_ms;
    return since_ms < -CLOCKS_DIFFER_MS ? CLOCK_LONG_AGO_MS : since_ms;
}

void clock_set(int64_t mono_ms, int64_t wall_ms)
{
    atomic_store(&apart_ms, NOT_YET);
    atomic_store(&set_mono_ms, mono_ms);
    atomic_store(&set_wall_ms, wall_ms);
}

void clock_advance(int64_t ms)
{
    atomic_fetch_add(&set_mono_ms, ms);
    atomic_fetch_add(&set_wall_ms, ms);
}

void clock_step_wall(int64_t ms)
{
    atomic_fetch_add(&set_wall_ms, ms);
}

void clock_use_system(void)
{
    clock_set(-1, -1);
}

static void format(int64_t wall_ms, bool micro, char out[RFC3339_SIZE])
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    if (micro)
        snprintf(out + n, RFC3339_SIZE - n, ".%03d000Z", (int)(wall_ms % 1000));
    else
        snprintf(out + n, RFC3339_SIZE - n, "Z");
}

void time_format(int64_t wall_ms, char out[RFC3339_SIZE])
{
    format(wall_ms, false, out);
}

void time_format_micro(int64_t wall_ms, char out[RFC3339_SIZE])
{
    format(wall_ms, true, out);
}

/* "Z" or "+hh:mm"; gives the offset in seconds. */
static int parse_zone(const char *text, int64_t *offset_s)
{
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        *offset_s = 0;
        return 0;
    }
    int hours, minutes, used = 0;
    if ((*text != '+' && *text != '-') ||
        sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || text[1 + used] != '\0')
        return -1;
    *offset_s = (int64_t)(hours * 3600 + minutes * 60) * (*text == '-' ? -1 : 1);
    return 0;
}

int time_parse(const char *text, int64_t *wall_ms)
{
    struct tm tm = {0};
    int used = 0;
    if (sscanf(text, "%4d-%2d-%2d%*1[Tt]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &used) != 6)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    text += used;

    int64_t fraction_ms = 0, unit = 100, offset_s;
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
            fraction_ms += (*text - '0') * unit;
    }
    if (parse_zone(text, &offset_s) < 0)
        return -1;
    *wall_ms = ((int64_t)timegm(&tm) - offset_s) * 1000 + fraction_ms;
    return 0;
}

static const struct {
    const char *name;
    double us;
} units[] = {{"ns", 1e-3}, {"us", 1},  {"µs", 1},   {"μs", 1},
             {"ms", 1e3},  {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}};

/* The unit that the text begins with; the longest name wins ("ms" is not "m"). */
static double unit_of(const char *text, size_t *len)
{
    double us = 0;
    *len = 0;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        size_t n = strlen(units[i].name);
        if (n > *len && strncmp(text, units[i].name, n) == 0) {
            us = units[i].us;
            *len = n;
        }
    }
    return us;
}

/* "12.5": digits with at most one point, at least one digit. */
static int parse_decimal(const char **text, double *value)
{
    double v = 0, place = 1;
    int digits = 0;
    bool fraction = false;
    for (;; (*text)++) {
        if (**text == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (**text < '0' || **text > '9')
            break;
        v = v * 10 + (**text - '0');
        place *= fraction ? 10 : 1;
        digits++;
    }
    *value = v / place;
    return digits > 0 ? 0 : -1;
}

int duration_parse(const char *text, int64_t *us, struct error *err)
{
    const char *p = text;
    double total = 0;
    if (strcmp(text, "0") == 0) {
        *us = 0;
        return 0;
    }
    do {
        double value, unit;
        size_t len;
        if (parse_decimal(&p, &value) < 0 || (unit = unit_of(p, &len), len == 0))
            return error_set(err, ERROR_INVALID, "\"%.40s\" is no duration such as 300ms or 1.5s",
                             text);
        total += value * unit;
        p += len;
    } while (*p);
    if (total > 9e15)
        return error_set(err, ERROR_INVALID, "\"%.40s\" is too long a duration", text);
    *us = (int64_t)llround(total);
    return 0;
}

void duration_print(double us, char out[24])
{
    if (us < 1000)
        snprintf(out, 24, "%.0fus", us);
    else if (us < 9.95e3)
        snprintf(out, 24, "%.3gms", us / 1e3);
    else if (us < 1e6)
        snprintf(out, 24, "%.0fms", us / 1e3);
    else
        snprintf(out, 24, "%.3gs", us / 1e6);
}
