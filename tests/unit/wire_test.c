/* What others' files are made of: checksums by their published check values, Protocol Buffers by
 * the examples of their specification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/checksum.h"
#include "base/protobuf.h"

/* --- checksums --- */
static void test_checksums_of_known_texts(void **state)
{
    (void)state;
    assert_int_equal(checksum_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(checksum_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(checksum_adler32(1, "Wikipedia", 9), 0x11e60398);
    uint8_t zeros[32] = {0};
    assert_int_equal(checksum_crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
}

static void test_checksums_can_be_continued(void **state)
{
    (void)state;
    assert_int_equal(checksum_crc32(checksum_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
    assert_int_equal(checksum_crc32c(checksum_crc32c(0, "1", 1), "23456789", 8), 0xe3069283);
    assert_int_equal(checksum_adler32(checksum_adler32(1, "Wiki", 4), "pedia", 5), 0x11e60398);
    assert_int_equal(checksum_crc32(7, NULL, 0), 7);
}

/* Only a careful remainder stays right for many large bytes. */
static void test_adler_of_many_bytes(void **state)
{
    enum { COUNT = 100000 };
    cleanup_free uint8_t *bytes = xcalloc(COUNT, 1);
    uint64_t a = 1, b = 0;
    (void)state;
    memset(bytes, 0xff, COUNT);
    for (int i = 0; i < COUNT; i++)
        b += a += 0xff;
    assert_int_equal(checksum_adler32(1, bytes, COUNT), (b % 65521) << 16 | (a % 65521));
}

/* --- Protocol Buffers --- */
static void assert_bytes(const struct protobuf *p, const char *bytes, size_t len)
{
    assert_false(p->full);
    assert_int_equal(p->bytes.len, len);
    assert_memory_equal(p->bytes.data, bytes, len);
}

static void test_fields_are_those_of_the_specification(void **state)
{
    cleanup_protobuf struct protobuf p = protobuf(100), inner = protobuf(100);
    (void)state;
    protobuf_number(&p, 1, 150);
    assert_bytes(&p, "\x08\x96\x01", 3);
    buf_clear(&p.bytes);
    protobuf_text(&p, 2, "testing");
    assert_bytes(&p, "\x12\x07testing", 9);
    buf_clear(&p.bytes);
    protobuf_number(&inner, 1, 150);
    protobuf_message(&p, 3, &inner);
    assert_bytes(&p, "\x1a\x03\x08\x96\x01", 5);
    assert_int_equal(inner.bytes.len, 0);
}

static void test_numbers_have_their_lowest_byte_first(void **state)
{
    const float values[2] = {1, -2};
    cleanup_protobuf struct protobuf p = protobuf(100);
    (void)state;
    protobuf_float(&p, 2, 1);
    protobuf_double(&p, 1, 1);
    protobuf_floats(&p, 16, values, 2);
    protobuf_number(&p, 1, UINT64_MAX);
    assert_bytes(&p,
                 "\x15\x00\x00\x80\x3f"
                 "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f"
                 "\x82\x01\x08\x00\x00\x80\x3f\x00\x00\x00\xc0"
                 "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                 5 + 9 + 11 + 11);
}

static void test_what_is_full_says_so(void **state)
{
    cleanup_protobuf struct protobuf p = protobuf(100), small = protobuf(8);
    (void)state;
    protobuf_text(&small, 1, "123456");
    assert_false(small.full);
    protobuf_number(&small, 1, 1);
    assert_true(small.full);
    assert_int_equal(small.bytes.len, 8);
    protobuf_message(&p, 1, &small);
    assert_true(p.full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksums_of_known_texts),
        cmocka_unit_test(test_checksums_can_be_continued),
        cmocka_unit_test(test_adler_of_many_bytes),
        cmocka_unit_test(test_fields_are_those_of_the_specification),
        cmocka_unit_test(test_numbers_have_their_lowest_byte_first),
        cmocka_unit_test(test_what_is_full_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
