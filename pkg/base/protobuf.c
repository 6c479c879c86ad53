#include "base/protobuf.h"

#include <string.h>

enum wire { WIRE_NUMBER = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 };

struct protobuf protobuf(size_t max)
{
    struct protobuf p = {.full = false};
    buf_init(&p.bytes, max);
    return p;
}

void protobuf_free(struct protobuf *p)
{
    buf_free(&p->bytes);
}

static void add(struct protobuf *p, const void *data, size_t len)
{
    p->full = p->full || buf_append(&p->bytes, data, len) < 0;
}

/* 7 bits a byte, the lowest first; all but the last have their highest bit set. */
static void add_varint(struct protobuf *p, uint64_t value)
{
    uint8_t bytes[10];
    size_t len = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[len++] = (uint8_t)(value | 0x80);
    bytes[len++] = (uint8_t)value;
    add(p, bytes, len);
}

static void add_key(struct protobuf *p, uint32_t field, enum wire wire)
{
    add_varint(p, (uint64_t)field << 3 | wire);
}

/* Lowest byte first, whatever the machine's order is. */
static void add_fixed(struct protobuf *p, uint64_t bits, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(bits >> (8 * i));
    add(p, bytes, size);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

void protobuf_number(struct protobuf *p, uint32_t field, uint64_t value)
{
    add_key(p, field, WIRE_NUMBER);
    add_varint(p, value);
}

void protobuf_float(struct protobuf *p, uint32_t field, float value)
{
    add_key(p, field, WIRE_4_BYTES);
    add_fixed(p, bits_of(value), 4);
}

void protobuf_double(struct protobuf *p, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    add_key(p, field, WIRE_8_BYTES);
    add_fixed(p, bits, 8);
}

void protobuf_text(struct protobuf *p, uint32_t field, const char *text)
{
    size_t len = strlen(text);
    add_key(p, field, WIRE_LENGTH);
    add_varint(p, len);
    add(p, text, len);
}

void protobuf_floats(struct protobuf *p, uint32_t field, const float *values, size_t count)
{
    add_key(p, field, WIRE_LENGTH);
    add_varint(p, 4 * count);
    for (size_t i = 0; i < count; i++)
        add_fixed(p, bits_of(values[i]), 4);
}

void protobuf_message(struct protobuf *p, uint32_t field, struct protobuf *inner)
{
    add_key(p, field, WIRE_LENGTH);
    add_varint(p, inner->bytes.len);
    add(p, inner->bytes.data, inner->bytes.len);
    p->full = p->full || inner->full;
    buf_clear(&inner->bytes);
    inner->full = false;
}
