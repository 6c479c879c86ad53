/* Any bytes as a checkpoint, once as they are and once as content under a right header: what is
 * read is written again as the same bytes. */
#include "rl/checkpoint.h"

#include <openssl/evp.h>
#include <string.h>

enum { HEADER_SIZE = 52, HASH_AT = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void try_bytes(const char *data, size_t size)
{
    struct rl_checkpoint c;
    struct error err = {0};
    size_t len;
    if (rl_checkpoint_decode(&c, data, size, &err) < 0) {
        check(err.code != ERROR_NONE && err.message[0] && c.nets == NULL);
        return;
    }
    cleanup_free char *again = rl_checkpoint_encode(&c, &len, &err);
    check(again && len == size && memcmp(again, data, size) == 0);
    check(rl_interface_check(&c.interface, &c.interface, &err) == 0);
    rl_checkpoint_clear(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *sealed = xcalloc(HEADER_SIZE + size, 1);
    try_bytes((const char *)data, size);
    memcpy(sealed, "FAASRLCP\1\0\0\0", 12);
    for (int i = 0; i < 8; i++)
        sealed[12 + i] = (char)(size >> (8 * i));
    memcpy(sealed + HEADER_SIZE, data, size);
    check(EVP_Digest(data, size, (uint8_t *)sealed + HASH_AT, NULL, EVP_sha256(), NULL) == 1);
    try_bytes(sealed, HEADER_SIZE + size);
    return 0;
}
