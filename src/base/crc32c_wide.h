/*
 * crc32c_wide.h - CRC-32C of large inputs, 256 bytes a step. For crc32c.c alone.
 */
#ifndef RON_BASE_CRC32C_WIDE_H
#define RON_BASE_CRC32C_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CRC32C_WIDE_MIN = 256, CRC32C_WIDE_STEP = 64 };

/* Make it ready, before main; false: this processor cannot. */
bool ron_crc32c_wide_init(void);
/* The register (not inverted) after the bytes: a multiple of CRC32C_WIDE_STEP, at least
 * CRC32C_WIDE_MIN. */
uint32_t ron_crc32c_wide(uint32_t r, const uint8_t *p, size_t size);

#endif
