#include "base/base.h"

#include <stdio.h>
#include <string.h>

int error_set(struct error *err, enum error_code code, const char *fmt, ...)
{
    if (err == NULL)
        return -1;
    va_list args;
    va_start(args, fmt);
    err->code = code;
    vsnprintf(err->message, sizeof(err->message), fmt, args);
    va_end(args);
    return -1;
}

int error_prefix(struct error *err, const char *fmt, ...)
{
    if (err == NULL)
        return -1;
    char old[sizeof(err->message)];
    memcpy(old, err->message, sizeof(old));

    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->message, sizeof(err->message), fmt, args);
    va_end(args);

    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof(err->message))
        snprintf(err->message + used, sizeof(err->message) - used, ": %.*s", (int)sizeof(old) - 1,
                 old);
    return -1;
}
