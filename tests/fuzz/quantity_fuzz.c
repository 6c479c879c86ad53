/* Any text as a quantity: the two readings agree with each other, and what is printed reads back.
 */
#include "kube/kube.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* value is milli/1000 rounded away from zero, as long as milli did not reach its limit. */
static void check_rounding(int64_t milli, int64_t value)
{
    if (milli == INT64_MAX || milli <= -INT64_MAX)
        return;
    int64_t whole = milli / 1000, rest = milli % 1000;
    check(value == whole + (rest > 0) - (rest < 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    struct error err = {0};
    int64_t milli = 0, value = 0, back = 0;
    int result = quantity_parse_milli(text, &milli, &err);
    check(quantity_parse_value(text, &value, &err) == result);
    check((result < 0) == (err.code != ERROR_NONE));
    if (result < 0)
        return 0;
    check_rounding(milli, value);
    char out[QUANTITY_SIZE];
    quantity_print_cpu(milli, out);
    check(quantity_parse_milli(out, &back, &err) == 0 && back == milli);
    quantity_print_memory(value, out);
    check(quantity_parse_value(out, &back, &err) == 0 && back == value);
    return 0;
}
