/* The checksums of file formats. */
#ifndef FAASRL_BASE_CHECKSUM_H
#define FAASRL_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of zlib and PNG, CRC-32C of TFRecord; so far: what came of the bytes before, 0 at first.
 */
uint32_t checksum_crc32(uint32_t so_far, const void *data, size_t len);
uint32_t checksum_crc32c(uint32_t so_far, const void *data, size_t len);
/* zlib's; 1 at first. */
uint32_t checksum_adler32(uint32_t so_far, const void *data, size_t len);

#endif
