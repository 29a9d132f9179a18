/*
 * crc32c.h - CRC-32C (Castagnoli), the checksum of log frames and stored blocks.
 *
 * Finds accidents, not attackers: anyone can make a second text with the same sum. The result is
 * the usual one (RFC 3720): reflected, started with and xored by all ones; "123456789" gives
 * 0xe3069283.
 */
#ifndef RON_BASE_CRC32C_H
#define RON_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sum of size bytes that follow those summed in crc; 0 starts. Chainable: the sum of "ab" is
 * ron_crc32c(ron_crc32c(0, "a", 1), "b", 1). Any thread; never fails. data may be NULL if size is
 * 0. Uses the processor's instructions where there are some, else the tables. */
uint32_t ron_crc32c(uint32_t crc, const void *data, size_t size);

/* The same by tables, on every processor, and by words, where the processor has an instruction for
 * these; for tests and benchmarks. */
uint32_t ron_crc32c_software(uint32_t crc, const void *data, size_t size);
uint32_t ron_crc32c_by_words(uint32_t crc, const void *data, size_t size);
/* Whether there is one here, and whether ron_crc32c takes large inputs 64 bytes at a time. */
bool ron_crc32c_is_hardware(void);
bool ron_crc32c_is_wide(void);

#endif
