/* Protocol Buffers, field by field: as much as it takes to write the files of others.
 *
 *   struct protobuf event = protobuf(1000), value = protobuf(1000);
 *   protobuf_float(&value, 2, 0.5f);
 *   protobuf_message(&event, 5, &value);
 *   if (event.full) …
 *
 * What would pass a maximum is left out, and the message is full from then on, as is any that it
 * becomes a part of. */
#ifndef FAASRL_BASE_PROTOBUF_H
#define FAASRL_BASE_PROTOBUF_H

#include "base/base.h"

struct protobuf {
    struct buf bytes;
    bool full;
};

struct protobuf protobuf(size_t max);
void protobuf_free(struct protobuf *p);
#define cleanup_protobuf __attribute__((cleanup(protobuf_free)))

void protobuf_number(struct protobuf *p, uint32_t field, uint64_t value);
void protobuf_float(struct protobuf *p, uint32_t field, float value);
void protobuf_double(struct protobuf *p, uint32_t field, double value);
void protobuf_text(struct protobuf *p, uint32_t field, const char *text);
/* IEEE 754, lowest byte first, as a field of bytes. */
void protobuf_floats(struct protobuf *p, uint32_t field, const float *values, size_t count);
/* Empties the inner one. */
void protobuf_message(struct protobuf *p, uint32_t field, struct protobuf *inner);

#endif
