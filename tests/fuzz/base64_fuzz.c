/* Any text as base64: what it stands for is written and read as itself; and so is any data. */
#include "base/base.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const void *data, size_t size)
{
    size_t len = 0;
    cleanup_free char *text = base64_encode(data, size);
    cleanup_free char *back = base64_decode(text, &len);
    if (!back || len != size || memcmp(back, data, size) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = 0;
    cleanup_free char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    cleanup_free char *decoded = base64_decode(text, &len);
    if (decoded)
        check_round_trip(decoded, len);
    check_round_trip(data, size);
    return 0;
}
